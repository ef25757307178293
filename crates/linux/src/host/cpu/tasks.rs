//! The tasks that are a measurement's own, with their times.

use linerate_hosts::cpus::TICK_NS;
use linerate_measure::record::SenderTime;
use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The time of a task, as the kernel's scheduler counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskTime {
    /// The CPU of the thread, or the last one.
    pub cpu: u32,
    /// Nanoseconds that it ran, and that it was ready to run while another one had the CPU.
    pub ran_ns: u64,
    pub waited_ns: u64,
    /// Time slices that it ran in.
    pub slices: u64,
    /// Ticks that it ran outside the kernel.
    pub user: u64,
    /// Whether it stays on its CPU.
    pub is_bound: bool,
    /// Whether its time is that of softirqs, and no system time.
    pub is_softirq: bool,
    /// Whether it is a thread of this process that sends.
    pub sends: bool,
}

/// Begins the names of threads that send; each is bound to a CPU.
pub const GENERATOR: &str = "generator-";

/// Begins the names of the kernel's threads for softirqs.
const SOFTIRQS: &str = "ksoftirqd/";

/// Threads of ports that have ended since [`own_tasks`] was called last, with their times.
static ENDED: Mutex<Vec<(i32, TaskTime)>> = Mutex::new(Vec::new());

/// The calling thread of a port is about to end: the next call of [`own_tasks`] still has its time.
pub(crate) fn thread_ends() {
    let own = fs::read_link("/proc/thread-self").ok();
    let own = own.and_then(|task| task_time(&Path::new("/proc").join(task), false));
    ENDED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(own);
}

/// The tasks that are a measurement's own: the threads of this process, those of its ports that have ended since the call before,
/// `bound` ones, and those of these [`relatives`].
pub fn own_tasks(bound: &[i32], relatives: &[i32]) -> BTreeMap<i32, TaskTime> {
    let ended = std::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let threads = threads.filter_map(|thread| task_time(&thread.path(), false));
    let bound = bound.iter().map(|pid| (pid, true));
    let softirqs = SOFTIRQ_THREADS.get_or_init(softirq_threads).iter();
    let kernels = bound
        .chain(softirqs.map(|pid| (pid, false)))
        .filter_map(|(pid, bound)| task_time(&Path::new("/proc").join(pid.to_string()), bound));
    let mut senders = SENDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let of_relatives = relatives
        .iter()
        .flat_map(|pid| tasks_of(*pid, &mut senders));
    ended
        .into_iter()
        .chain(threads)
        .chain(kernels)
        .chain(of_relatives)
        .collect()
}

/// The kernel's threads that carry out softirqs which are too many for the time of an interrupt: of frames, on the lab's CPUs.
static SOFTIRQ_THREADS: OnceLock<Vec<i32>> = OnceLock::new();

/// One for each CPU, where /proc shows the kernel's threads.
fn softirq_threads() -> Vec<i32> {
    let tasks = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |task: &DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with(SOFTIRQS)
    };
    let pid = |task: DirEntry| task.file_name().to_str()?.parse().ok();
    tasks.filter(is_one).filter_map(pid).collect()
}

/// The other processes of the linerate that this process belongs to: one for each host of a lab on one machine, and the one that started
/// them.
pub fn relatives() -> Vec<i32> {
    relatives_in(Path::new("/proc"), std::process::id() as i32)
}

fn relatives_in(proc: &Path, own: i32) -> Vec<i32> {
    let program = |pid: i32| fs::read_link(proc.join(format!("{pid}/exe"))).ok();
    let parent = |pid: i32| {
        let stat = fs::read_to_string(proc.join(format!("{pid}/stat"))).ok()?;
        field(&stat, 4).map(|parent| parent as i32)
    };
    let Some(linerate) = program(own) else {
        return Vec::new();
    };
    let is_linerate = |pid: &i32| program(*pid).as_ref() == Some(&linerate);
    // Between them are shells and programs that enter a namespace. A process may end, and its number come again, while we look.
    let above = |pid| std::iter::successors(Some(pid), |pid| parent(*pid)).take(DEEPEST);
    let first = above(own).filter(is_linerate).last();
    let tasks = fs::read_dir(proc).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && is_linerate(pid))
        .filter(|pid| above(*pid).any(|above| Some(above) == first))
        .collect()
}

/// Processes between one and the first of all, at most.
const DEEPEST: usize = 64;

/// The tasks of another process: its threads, and one task with the time of those that have ended, on the CPU of its last sender in `seen`.
fn tasks_of(pid: i32, seen: &mut BTreeMap<i32, u32>) -> Vec<(i32, TaskTime)> {
    let process = Path::new("/proc").join(pid.to_string());
    let stat = fs::read_to_string(process.join("stat"));
    let threads = fs::read_dir(process.join("task"));
    let threads = threads.into_iter().flatten().flatten();
    let mut tasks: Vec<_> = threads
        .filter_map(|thread| task_time(&thread.path(), false))
        .collect();
    if let Some((_, sender)) = tasks.iter().find(|(_, task)| task.is_bound) {
        seen.insert(pid, sender.cpu);
    }
    let ticks = |number| stat.as_ref().ok().and_then(|stat| field(stat, number));
    if let Some((user, system)) = ticks(14).zip(ticks(15)) {
        let [own_user, ran] = tasks.iter().fold([0, 0], |[user, ran], (_, task)| {
            [user + task.user, ran + task.ran_ns]
        });
        let all_ns = ((user + system) as f64 * TICK_NS) as u64;
        let ended = TaskTime {
            cpu: seen.get(&pid).copied().unwrap_or(u32::MAX),
            ran_ns: all_ns.saturating_sub(ran),
            user: user.saturating_sub(own_user),
            ..TaskTime::default()
        };
        tasks.push((-pid, ended));
    }
    tasks
}

/// The CPU of the last sender of each of the [`relatives`].
static SENDERS: Mutex<BTreeMap<i32, u32>> = Mutex::new(BTreeMap::new());

fn task_time(task: &Path, is_bound: bool) -> Option<(i32, TaskTime)> {
    let read = |file| fs::read_to_string(task.join(file)).ok();
    let (stat, name) = (read("stat")?, read("comm")?);
    let field = |number| field(&stat, number);
    let (user, cpu) = (field(14)?, field(39)? as u32);
    let pid = task.file_name()?.to_str()?.parse().ok()?;
    let is_sender = name.starts_with(GENERATOR);
    let sends = is_sender && bring_up_to_date(pid);
    let times = read("schedstat")?;
    let mut times = times.split_whitespace().map(|ns| ns.parse().ok());
    let is_bound = is_bound || is_sender;
    Some((
        pid,
        TaskTime {
            cpu,
            ran_ns: times.next()??,
            waited_ns: times.next()??,
            slices: times.next()??,
            user,
            is_bound,
            is_softirq: name.starts_with(SOFTIRQS),
            sends,
        },
    ))
}

/// The kernel adds the time of a running thread at its ticks, and whenever its clock is read. Returns false if it is no thread of this
/// process.
fn bring_up_to_date(thread: i32) -> bool {
    /// `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED` of the kernel, below the inverted number of the thread.
    const OF_THREAD: libc::clockid_t = 6;
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the time into `now`, which lives until the call has ended.
    unsafe { libc::clock_gettime(!thread << 3 | OF_THREAD, &raw mut now) == 0 }
}

/// The times of the threads that sent between two readings of [`own_tasks`], without those who had their CPUs meanwhile.
pub fn senders(load_ns: u64, [then, now]: [&BTreeMap<i32, TaskTime>; 2]) -> Vec<SenderTime> {
    let of_sender = |(pid, task): (&i32, &TaskTime)| {
        let before = then.get(pid).copied().unwrap_or_default();
        SenderTime {
            cpu: task.cpu,
            load_ns,
            ran_ns: task.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: task.waited_ns.saturating_sub(before.waited_ns),
            slices: task.slices.saturating_sub(before.slices),
            counted_ns: 0,
            others: None,
        }
    };
    let senders = now
        .iter()
        .filter(|(pid, task)| task.sends && then.contains_key(pid));
    senders.map(of_sender).collect()
}

/// A number of a line such as /proc/self/stat, by proc(5)'s count; the name, field 2, may have brackets and blanks.
pub(super) fn field(stat: &str, number: usize) -> Option<u64> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_the_same_linerate_are_relatives_and_others_are_not() {
        let proc = std::env::temp_dir().join(format!("linerate-proc-{}", std::process::id()));
        // linerate 10 starts shells, which become the agents 12 and 14 of two hosts; 20 is another linerate, and 15 what an agent runs.
        let processes = [
            (1, 0, "init"),
            (10, 1, "linerate"),
            (11, 10, "sh"),
            (12, 11, "linerate"),
            (13, 10, "sh"),
            (14, 13, "linerate"),
            (15, 14, "ping"),
            (20, 1, "linerate"),
        ];
        for (pid, parent, program) in processes {
            let folder = proc.join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("stat"),
                format!("{pid} (a b) c) S {parent} 0 0\n"),
            )
            .unwrap();
            std::os::unix::fs::symlink(format!("/bin/{program}"), folder.join("exe")).unwrap();
        }
        let of = |pid| {
            let mut found = relatives_in(&proc, pid);
            found.sort_unstable();
            found
        };
        assert_eq!(of(12), [10, 14]);
        assert_eq!(of(10), [12, 14]);
        assert_eq!((of(20), of(99)), (vec![], vec![]));
        fs::remove_dir_all(&proc).unwrap();
    }

    #[test]
    fn the_time_of_a_relative_that_has_ended_its_thread_stays_counted() {
        let own = std::process::id() as i32;
        let mut seen = BTreeMap::new();
        let ran = |tasks: Vec<(i32, TaskTime)>| -> u64 { tasks.iter().map(|t| t.1.ran_ns).sum() };
        let before = ran(tasks_of(own, &mut seen));
        let work = || {
            let own = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            while own().tv_sec == 0 && own().tv_nsec < 200_000_000 {}
        };
        std::thread::spawn(work).join().unwrap();
        let after = tasks_of(own, &mut seen);
        assert!(after.iter().any(|(pid, _)| *pid == -own), "{after:?}");
        let ran = ran(after) - before;
        assert!(ran > 50_000_000, "{ran}");
    }
}
