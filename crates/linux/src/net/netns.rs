//! Network namespaces: made without a name on disk, so that a killed process leaves nothing behind; named on request.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::{Doing, Error};

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// `ioctl` that returns the kind of namespace of a file (linux/nsfs.h: `_IO(0xb7, 3)`).
const NS_GET_NSTYPE: libc::c_ulong = 0xb703;

/// A network namespace, kept alive by an open file. Clones share that file; when the last one goes, and no thread,
/// socket or name holds the namespace, the kernel removes it with all its links.
#[derive(Debug, Clone)]
pub struct Netns {
    file: Arc<OwnedFd>,
    label: Arc<str>,
    inode: u64,
}

impl Netns {
    /// Makes a new namespace that has no name anywhere: it cannot outlive the processes that hold it.
    pub fn anonymous() -> Result<Netns, Error> {
        let made = thread::scope(|scope| scope.spawn(unshare_network).join());
        let file = made.unwrap_or_else(|panic| panic::resume_unwind(panic));
        Netns::from_file(file.doing("create a network namespace")?, None)
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Netns, Error> {
        let path = "/proc/thread-self/ns/net";
        Netns::from_file(File::open(path).doing(format_args!("open {path}"))?, None)
    }

    /// Opens a namespace by path, or by the name under which `ip netns` knows it.
    pub fn open(path_or_name: impl AsRef<Path>) -> Result<Netns, Error> {
        let given = path_or_name.as_ref();
        let path = if given.as_os_str().as_bytes().contains(&b'/') {
            given.to_path_buf()
        } else {
            name_path(&given.to_string_lossy())?
        };
        let open = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        let file = open.doing(format_args!("open network namespace {}", path.display()))?;
        check_kind(&file, &path)?;
        Netns::from_file(file, Some(&given.to_string_lossy()))
    }

    fn from_file(file: File, label: Option<&str>) -> Result<Netns, Error> {
        let inode = file.metadata().doing("examine a network namespace")?.ino();
        let label = label.map_or_else(|| format!("net:[{inode}]"), str::to_owned);
        Ok(Netns {
            file: Arc::new(file.into()),
            label: label.into(),
            inode,
        })
    }

    /// The namespace under a name for error messages, such as `linerate-dut`. Nothing appears on disk.
    pub fn with_label(mut self, label: &str) -> Netns {
        self.label = label.into();
        self
    }

    /// The name of this namespace in error messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The namespace's number, the same for every handle on it while it lives.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Gives the namespace a name, so that `ip netns exec NAME` works and it outlives this process.
    pub fn persist(&self, name: &str) -> Result<(), Error> {
        let path = name_path(name)?;
        prepare_names()?;
        let create = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o000)
            .open(&path);
        create.doing(format_args!("create {}", path.display()))?;
        let source = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let named = mount_bind(&source, &path).inspect_err(|_| drop(fs::remove_file(&path)));
        named.doing(format_args!(
            "name network namespace {} as {}",
            self.label,
            path.display()
        ))
    }

    /// Takes away a name given by [`Netns::persist`]. The namespace itself goes when nothing else holds it.
    pub fn remove_persistent(name: &str) -> Result<(), Error> {
        let path = name_path(name)?;
        unmount_all(&path).doing(format_args!("unmount {}", path.display()))?;
        fs::remove_file(&path).doing(format_args!("remove {}", path.display()))
    }

    /// Runs `f` on a thread inside the namespace and hands back its result; a panic in `f` goes on in the caller.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let inside = || self.current_thread_enter().map(|()| f());
        thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// [`Netns::enter`] for work that has errors of its own.
    pub(crate) fn run<T: Send>(
        &self,
        f: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        self.enter(f)?
    }

    /// Moves the calling thread into the namespace for good: for long-lived worker threads only.
    pub fn current_thread_enter(&self) -> Result<(), Error> {
        if Netns::current().is_ok_and(|here| here == *self) {
            return Ok(()); // entering needs privileges, staying does not
        }
        set_namespace(&self.file).doing(format_args!("enter network namespace {}", self.label))
    }

    /// A command whose process runs inside the namespace. Its /sys remains that of the caller: see
    /// [`sysfs`](super::sysfs) for that.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let file = Arc::clone(&self.file);
        let mut command = Command::new(program);
        // SAFETY: between fork and exec the closure makes one system call and neither allocates nor locks; the file
        // it uses is owned by the closure, so it is open for as long as the command exists.
        unsafe { command.pre_exec(move || set_namespace(&file)) };
        command
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl PartialEq for Netns {
    fn eq(&self, other: &Netns) -> bool {
        self.inode == other.inode
    }
}

impl Eq for Netns {}

fn unshare_network() -> io::Result<File> {
    unshare(UnshareFlags::NEWNET)?;
    File::open("/proc/thread-self/ns/net")
}

/// Gives the calling thread namespaces of its own.
pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: the table of descriptors, which other threads rely on, stays shared.
    Ok(unsafe { unshare_unsafe(namespaces & !UnshareFlags::FILES) }?)
}

fn set_namespace(file: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(
        file.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// Refuses a file that is not a network namespace: an unrelated file under /run/netns would fail much later.
fn check_kind(file: &File, path: &Path) -> Result<(), Error> {
    // SAFETY: the request takes no argument and fails with ENOTTY on other files.
    let kind = unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) };
    if kind == libc::CLONE_NEWNET {
        return Ok(());
    }
    Err(Error::unusable(
        "the file",
        path.display(),
        "it is not a network namespace",
    ))
}

fn name_path(name: &str) -> Result<PathBuf, Error> {
    let path = matches!(name, "" | "." | "..");
    if path || name.len() > 200 || name.bytes().any(|b| b == b'/' || b.is_ascii_control()) {
        let reason = "it must be a file's name without control characters, of at most 200 bytes";
        return Err(Error::unusable("the namespace name", name, reason));
    }
    Ok(Path::new(NAMES).join(name))
}

/// Makes /run/netns as `ip netns add` does: a shared mount of its own, so that names appear in (and disappear from)
/// every mount namespace. A lock on the folder keeps two programs from mounting it upon itself twice.
fn prepare_names() -> Result<(), Error> {
    let names = Path::new(NAMES);
    let share = || {
        mount_change(
            names,
            MountPropagationFlags::SHARED | MountPropagationFlags::REC,
        )
    };
    let prepare = || -> io::Result<()> {
        fs::create_dir_all(names)?;
        let folder = File::open(names)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        match share() {
            Err(Errno::INVAL) => mount_bind_recursive(names, names).and_then(|()| share())?,
            other => other?,
        }
        Ok(())
    };
    prepare().doing(format_args!("prepare {NAMES}"))
}

/// Unmounts all that is stacked on `path`; nothing mounted there is no error.
fn unmount_all(path: &Path) -> io::Result<()> {
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Err(Errno::INVAL) => return Ok(()),
            other => other?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "a\nb"] {
            assert!(name_path(name).is_err(), "{name:?}");
        }
        assert_eq!(
            name_path("linerate-dut").unwrap(),
            Path::new("/run/netns/linerate-dut")
        );
    }

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let error = Netns::open("/proc/self/comm").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the file `/proc/self/comm` is not usable: it is not a network namespace"
        );
    }

    #[test]
    fn the_current_namespace_is_itself() {
        assert_eq!(
            Netns::current().unwrap(),
            Netns::open("/proc/thread-self/ns/net").unwrap()
        );
    }
}
