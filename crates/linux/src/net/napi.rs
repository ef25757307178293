//! Threaded NAPI: a device's kernel threads, found, pinned and given a priority.
//!
//! Two labs side by side may have devices of the same name, and a thread's name (`napi/DEV-ID`) does not say in which
//! namespace its device is. So the kernel is asked first ("netdev" netlink family, Linux 6.8), the names come second.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::netlink::Route;
use super::netlink::check_name;
use super::netlink::message::{Body, attribute, u32_at};
use super::netlink::socket::{DUMP, Failure, GENERIC_HEADER as HEADER, Socket};
use super::{Netns, sysfs};
use crate::error::{Doing, Error};

/// linux/netdev.h: `NETDEV_CMD_NAPI_GET` and its attributes.
const NAPI_GET: u8 = 11;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_PID: u16 = 4;
/// A task's name on kernels that keep only 15 bytes of it.
const SHORT_NAME: usize = 15;

/// A kernel thread that polls one queue of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NapiThread {
    /// NAPI number, which grows with the queue's; unknown if the thread's name was cut.
    pub napi_id: Option<u32>,
    /// Process number of the thread.
    pub pid: i32,
}

/// The NAPI threads of a device, in the order of its queues; none if it is not threaded.
pub fn threads(ns: &Netns, dev: &str) -> Result<Vec<NapiThread>, Error> {
    let index = Route::open(ns)?.link(dev)?.index;
    ns.enter(|| ask_kernel(index))?
        .or_else(|_| threads_by_name(Path::new("/proc"), dev))
}

/// The NAPI threads of all devices of that name, in whatever namespace, by the names of tasks under `proc_root`.
pub fn threads_by_name(proc_root: &Path, dev: &str) -> Result<Vec<NapiThread>, Error> {
    check_name(dev)?;
    let tasks =
        fs::read_dir(proc_root).doing(format_args!("list tasks in {}", proc_root.display()))?;
    let mut threads: Vec<NapiThread> = tasks
        .flatten()
        .filter_map(|task| {
            let pid = task.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            parse_name(name.trim_end_matches('\n'), dev).map(|napi_id| NapiThread { napi_id, pid })
        })
        .collect();
    threads.sort();
    Ok(threads)
}

/// Pins a thread (NAPI or other) to one CPU.
pub fn pin(pid: i32, cpu: usize) -> Result<(), Error> {
    bind(Pid::from_raw(pid), cpu).doing(format_args!("pin task {pid} to CPU {cpu}"))
}

/// The CPUs that a thread may run on, as the kernel lists them: `0-3,8`.
pub fn allowed(pid: i32) -> Result<String, Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.doing(format_args!("read the CPUs of task {pid}"))?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.unwrap_or_default().trim().to_owned())
}

/// Lets a thread, or the calling one, run on one CPU only.
pub(crate) fn bind(thread: Option<Pid>, cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(thread, &set)?)
}

/// Puts a NAPI thread before ordinary programs (nice -20), without the power to lock a CPU up that a real-time priority has:
/// a DUT that waits for a compiler loses frames that it could have forwarded.
pub fn favour(pid: i32) -> Result<(), Error> {
    setpriority_process(Pid::from_raw(pid), -20)
        .doing(format_args!("raise the priority of NAPI thread {pid}"))
}

/// Moves a device's NAPI into kernel threads.
pub fn set_threaded(ns: &Netns, dev: &str) -> Result<(), Error> {
    check_name(dev)?;
    sysfs::write(ns, &format!("class/net/{dev}/threaded"), "1")
}

/// `Some(id)` if a task of this name serves `dev`: `napi/DEV-ID`, or as much of that as fits into 15 bytes.
fn parse_name(name: &str, dev: &str) -> Option<Option<u32>> {
    let expected = format!("napi/{dev}-");
    if let Some(id) = name.strip_prefix(&expected) {
        let cut = name.len() == SHORT_NAME;
        let id = id
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| id.parse().ok())?;
        // Fifteen bytes may be all of the name or only its beginning: the number is then not to be trusted.
        return if cut { Some(None) } else { id.map(Some) };
    }
    (name.len() == SHORT_NAME && expected.starts_with(name)).then_some(None)
}

/// Called inside the namespace. A kernel that does not know the family, or the question, gives an error.
fn ask_kernel(index: u32) -> Result<Vec<NapiThread>, Failure> {
    let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
    let family = socket.family("netdev")?;
    let body = Body(vec![NAPI_GET, 1, 0, 0]).number(NAPI_IFINDEX, index);
    let answers = socket.collect(family, DUMP, &body)?;
    let mut threads: Vec<_> = answers.iter().filter_map(|body| parse_napi(body)).collect();
    threads.sort();
    Ok(threads)
}

fn parse_napi(body: &[u8]) -> Option<NapiThread> {
    let number = |wanted| u32_at(attribute(body, HEADER, wanted)?, 0);
    Some(NapiThread {
        napi_id: number(NAPI_ID),
        pid: number(NAPI_PID)?.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_whole_and_cut() {
        assert_eq!(parse_name("napi/d0-8193", "d0"), Some(Some(8193)));
        assert_eq!(parse_name("napi/d0-8193", "d"), None);
        assert_eq!(parse_name("napi/d0-x", "d0"), None);
        assert_eq!(parse_name("napi/d0", "d0"), None);
        assert_eq!(parse_name("napi/a-very-lon", "a-very-long-dev"), Some(None));
        assert_eq!(parse_name("napi/enp1s0f0-81", "enp1s0f0"), Some(Some(81)));
        assert_eq!(parse_name("napi/enp1s0f0-8", "enp1s0f0"), Some(None));
        assert_eq!(parse_name("kworker/0:1", "d0"), None);
    }

    #[test]
    fn an_answer_without_a_thread_gives_none() {
        let body = Body(vec![NAPI_GET, 1, 0, 0]).number(NAPI_ID, 8193);
        assert_eq!(parse_napi(&body.0), None);
        assert_eq!(
            parse_napi(&body.number(NAPI_PID, 77).0),
            Some(NapiThread {
                napi_id: Some(8193),
                pid: 77
            })
        );
        assert_eq!(parse_napi(&[]), None);
    }
}
