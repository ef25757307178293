//! A namespace's own /sys without a mount point: queues' XPS and RPS masks, threaded NAPI.
//!
//! A sysfs superblock belongs to the network namespace of the thread that makes it. Made by the mount API (fsopen,
//! fsmount) it is reachable only through our descriptor, so a killed process leaves no mount behind.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, fsconfig_create, fsmount,
    fsopen, mount, mount_change,
};
use rustix::thread::UnshareFlags;

use super::netns::unshare;
use super::{Error, Netns};

/// The sysfs of one network namespace.
#[derive(Debug)]
pub struct NetSysfs {
    root: OwnedFd,
    label: String,
}

impl NetSysfs {
    /// Mounts the sysfs of `ns`, detached: nobody else sees it and it ends with this value.
    pub fn mount(ns: &Netns) -> Result<NetSysfs, Error> {
        let operation = || format!("mount the sysfs of namespace {}", ns.label());
        let root = ns.run(|| mount_inside().map_err(|e| explain(operation(), e)))?;
        Ok(NetSysfs { root, label: ns.label().to_owned() })
    }

    /// Reads a file such as `class/net/g0/queues/tx-0/xps_cpus`; the final newline is left out.
    pub fn read(&self, path: &str) -> Result<String, Error> {
        let mut text = String::new();
        let read = self.open(path, OFlags::RDONLY).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|e| Error::kernel(format!("read {path} in the sysfs of namespace {}", self.label), e))?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// Writes a file such as `class/net/g0/threaded`.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        let write = self.open(path, OFlags::WRONLY).and_then(|mut file| file.write_all(value.as_bytes()));
        write.map_err(|e| {
            Error::kernel(format!("write {value} to {path} in the sysfs of namespace {}", self.label), e)
        })
    }

    /// Whether a file or folder is there.
    pub fn exists(&self, path: &str) -> bool {
        self.open(path, OFlags::PATH).is_ok()
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.root, relative(path)?, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }
}

/// Refuses paths that would leave the mount.
fn relative(path: &str) -> io::Result<&str> {
    let plain = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "not a plain relative path");
    plain.then_some(path).ok_or_else(wrong)
}

/// Called on a thread inside the namespace, which ends afterwards.
fn mount_inside() -> io::Result<OwnedFd> {
    match mount_detached() {
        // Inside a user namespace the right to mount goes with a mount namespace of one's own.
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            own_mount_namespace().and_then(|()| mount_detached())
        }
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
            own_mount_namespace().and_then(|()| mount_over_sys())
        }
        other => other,
    }
}

fn mount_detached() -> io::Result<OwnedFd> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

/// Before Linux 5.2: an ordinary mount in a mount namespace that only this thread has. It stays alive through the
/// descriptor after the thread, and with it the mount namespace, is gone.
fn mount_over_sys() -> io::Result<OwnedFd> {
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(File::open("/sys")?.into())
}

fn own_mount_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

fn explain(operation: String, error: io::Error) -> Error {
    if error.raw_os_error() == Some(libc::EPERM) {
        let reason =
            "Operation not permitted: it needs root, or a user namespace with its own mount namespace in \
                      which an unmasked /sys is visible"
                .to_owned();
        return Error::Unsupported { operation, reason };
    }
    Error::kernel(operation, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_mount_are_refused() {
        for path in ["", "/", "/sys", "..", "a/../b", "a//b", "./a", "a/"] {
            assert!(relative(path).is_err(), "{path:?}");
        }
        assert!(relative("class/net/g0.5/threaded").is_ok());
    }

    #[test]
    #[ignore = "needs root: run by make test as root"]
    fn the_way_of_old_kernels_gives_the_same_and_leaves_no_mount() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap().matches(" - sysfs ").count();
        let before = mounts();
        let ns = Netns::anonymous().unwrap();
        let root = ns.enter(|| own_mount_namespace().and_then(|()| mount_over_sys())).unwrap().unwrap();
        let sysfs = NetSysfs { root, label: "test".to_owned() };
        assert!(sysfs.exists("class/net/lo"));
        assert_eq!(sysfs.read("class/net/lo/mtu").unwrap(), "65536");
        assert_eq!(mounts(), before);
    }
}
