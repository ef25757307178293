//! Where a DUT's commands run and its files are: the DUT's network namespace, with mounts of its own.
//!
//! Like namespaces, the mounts have no names outside and go with the process: a scratch folder in memory, and the /sys of the
//! namespace (`ip netns exec` does that as well). Everything else of the file system is the host's.

use super::setup::shell;
use crate::error::{Doing, Error};
use crate::files::is_plain;
use crate::net::{self, Netns};
use crate::process::Job;
use linerate_plan::settings::{Command as Step, File as TextFile};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, chdir, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The scratch folder as commands see it. The folder itself, on the host, stays empty.
pub const SCRATCH: &str = "/run/linerate/scratch";
/// Where there is no right to make that folder: a folder that every system has, and that only commands see covered.
const SCRATCH_WITHOUT_ROOT: &str = "/mnt";

/// The way into a workspace.
#[derive(Debug, Clone)]
pub struct Entry {
    namespace: Netns,
    mounts: Arc<OwnedFd>,
    scratch: CString,
}

impl Entry {
    /// The way into a namespace, with these files in a scratch folder.
    ///
    /// # Errors
    /// No right to mount, or a file with an impossible path.
    pub fn new(namespace: &Netns, files: &[TextFile]) -> Result<Entry, Error> {
        let scratch = match fs::create_dir_all(SCRATCH) {
            Ok(()) => SCRATCH,
            Err(_) => SCRATCH_WITHOUT_ROOT,
        };
        let mounts = namespace.enter(|| fill(scratch, files))?;
        let mounts = mounts.doing(format_args!(
            "make a scratch folder for commands in namespace {}",
            namespace.label()
        ))?;
        let scratch = CString::new(scratch).expect("a constant");
        Ok(Entry {
            namespace: namespace.clone(),
            mounts: Arc::new(mounts),
            scratch,
        })
    }

    /// The way into a namespace with its /sys, without a scratch folder.
    ///
    /// # Errors
    /// No right to mount.
    pub fn plain(namespace: &Netns) -> Result<Entry, Error> {
        let mounts = namespace.enter(|| {
            net::sysfs::mount_here()?;
            Ok(File::open("/proc/thread-self/ns/mnt")?.into())
        })?;
        let mounts: io::Result<OwnedFd> = mounts;
        let mounts = mounts.doing(format_args!(
            "mount the sysfs of namespace {}",
            namespace.label()
        ))?;
        Ok(Entry {
            namespace: namespace.clone(),
            mounts: Arc::new(mounts),
            scratch: c"/".into(),
        })
    }

    /// The network namespace.
    pub fn namespace(&self) -> &Netns {
        &self.namespace
    }

    /// The scratch folder.
    pub fn scratch(&self) -> &str {
        self.scratch.to_str().unwrap_or_default()
    }

    /// A command that runs in the workspace.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = self.namespace.command(program);
        let (mounts, scratch) = (Arc::clone(&self.mounts), self.scratch.clone());
        let enter = move || {
            move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
            Ok(chdir(&*scratch)?)
        };
        // SAFETY: between fork and exec the closure makes two system calls and neither allocates nor locks.
        unsafe { command.pre_exec(enter) };
        command
    }
}

/// A workspace for commands.
pub struct Workspace {
    /// The way into it.
    pub entry: Entry,
    /// Set when the user wants to stop.
    interrupted: Option<&'static AtomicBool>,
    undo: Vec<Job>,
}

impl Workspace {
    /// Makes the workspace, with these files in its scratch folder.
    pub(super) fn new(
        namespace: &Netns,
        files: &[TextFile],
        interrupted: Option<&'static AtomicBool>,
    ) -> Result<Workspace, Error> {
        Ok(Workspace {
            entry: Entry::new(namespace, files)?,
            interrupted,
            undo: Vec::new(),
        })
    }

    pub(super) fn run_step(&mut self, step: &Step) -> Result<(), Error> {
        // Even a command that fails may have done half of its work.
        self.undo
            .extend(step.undo.as_ref().map(|line| shell(step, line)));
        self.run(&shell(step, &step.run), self.interrupted)
    }

    fn run(&self, job: &Job, interrupted: Option<&AtomicBool>) -> Result<(), Error> {
        let run = job.run(|path| self.entry.command(path), interrupted);
        run.map(drop)
            .map_err(|e| Error::Refused(format!("cannot run '{}': {e}", beginning(job))))
    }

    /// Undoes the commands, the last first. Errors can no longer be reported.
    pub(super) fn undo(&mut self) {
        while let Some(job) = self.undo.pop() {
            let _ = self.run(&job, None);
        }
    }
}

/// A command as a user would know it again.
pub(super) fn words(job: &Job) -> String {
    match job.args.as_slice() {
        [dash, line] if job.program == "sh" && dash == "-c" => line.clone(),
        args => [std::slice::from_ref(&job.program), args]
            .concat()
            .join(" "),
    }
}

/// The beginning of a command, enough for its author: the reason of its failure must fit into a line behind it.
fn beginning(job: &Job) -> String {
    const MOST: usize = 60;
    let words = words(job);
    match words.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}

/// Whether a file can be in the scratch folder: below it, by a plain path.
fn check_file(path: &str) -> Result<(), &'static str> {
    match !is_plain(path) || path.chars().any(char::is_control) || path.len() > 1000 {
        true => Err(
            "the embedded lab writes files only below its scratch folder: use a short plain path",
        ),
        false => Ok(()),
    }
}

/// Called on a thread inside the namespace, which ends afterwards: the mounts live on through the descriptor.
fn fill(scratch: &str, files: &[TextFile]) -> io::Result<OwnedFd> {
    net::sysfs::mount_here()?;
    // For programs that run as nobody, too; others do not see it.
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("linerate", scratch, "tmpfs", flags, c"mode=1777,size=128m")?;
    for TextFile { path, text } in files {
        check_file(path).map_err(|why| io::Error::other(format!("file '{path}': {why}")))?;
        let path = Path::new(scratch).join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(File::open("/proc/thread-self/ns/mnt")?.into())
}

/// Ends processes that commands have left running in the lab's namespaces (a daemon that left its group), so that the namespaces
/// can be removed.
pub(super) fn end_stragglers(namespaces: impl Iterator<Item = u64>) {
    let ours: Vec<u64> = namespaces.collect();
    for process in processes_in(&ours) {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Other processes in these network namespaces.
pub(super) fn processes_in(namespaces: &[u64]) -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let inside = |task: fs::DirEntry| {
        let pid = Pid::from_raw(task.file_name().to_str()?.parse().ok()?)?;
        let namespace = fs::metadata(task.path().join("ns/net")).ok()?.ino();
        (namespaces.contains(&namespace) && pid != rustix::process::getpid()).then_some(pid)
    };
    tasks.flatten().filter_map(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_the_scratch_folder() {
        for path in [
            "",
            "/etc/passwd",
            "..",
            "a/../../b",
            "a//b",
            "./a",
            "a/",
            "a\nb",
            "a\0",
        ] {
            assert!(check_file(path).is_err(), "{path:?}");
        }
        check_file("etc/frr/frr.conf").unwrap();
    }

    #[test]
    fn commands_are_named_as_they_were_written() {
        assert_eq!(
            words(&Job::new("sh", &["-c", "ip link | wc -l"])),
            "ip link | wc -l"
        );
        assert_eq!(words(&Job::new("ip", &["link"])), "ip link");
    }
}
