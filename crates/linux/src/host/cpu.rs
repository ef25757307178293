//! CPUs: their numbers, their roles, and how busy they were.

mod tasks;

pub(crate) use tasks::thread_ends;
pub use tasks::{GENERATOR, TaskTime, own_tasks, relatives, senders};

use crate::clock::monotonic_ns;
use crate::error::{Doing, Error};
pub use linerate_hosts::cpus::CpuTimes;
use linerate_hosts::cpus::TICK_NS;
use linerate_hosts::systems::Kernel;
pub use linerate_hosts::systems::cpu_list as parse_list;
use linerate_measure::record::{Mode, Roles};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use tasks::field;

/// The times of each CPU, by `proc/stat` below `root`.
///
/// # Errors
/// The file cannot be read, or lists no CPU.
pub fn times(root: &Path) -> Result<CpuTimes, Error> {
    let path = root.join("proc/stat");
    let times = fs::read_to_string(&path).doing(format_args!("read {}", path.display()));
    Some(CpuTimes::of(Kernel::Linux, &times?).read_at(monotonic_ns()))
        .filter(|times| !times.is_empty())
        .ok_or_else(|| Error::Refused(format!("{} lists no CPU", path.display())))
}

/// Ticks of this process and of its children that have ended: outside the kernel, and in it.
pub fn own_ticks() -> [u64; 2] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let of = |fields: [usize; 2]| {
        fields
            .iter()
            .filter_map(|number| field(&stat, *number))
            .sum()
    };
    [of([14, 16]), of([15, 17])]
}

/// The share of each CPU's time between two readings that others used. `own`: the measurement's tasks then and now.
///
/// While a task waits, others have its CPU, in whatever context. Ticks show user time and system time that are more than our own:
/// the kernel samples them, so less than three standard deviations may be chance.
pub fn of_others(times: [&CpuTimes; 2], own: [&BTreeMap<i32, TaskTime>; 2]) -> BTreeMap<u32, f64> {
    let [earlier, later] = times;
    let [then, now] = own;
    let of_cpu = |(cpu, gone): (u32, [f64; 8])| {
        let [user, nice, system, ..] = gone;
        let total: f64 = gone.iter().sum();
        let ticks_of = |ns: u64| ns as f64 / TICK_NS;
        let mut tasks: Vec<TaskTime> = Vec::new();
        for (pid, task) in now.iter().filter(|(_, task)| task.cpu == cpu) {
            let before = then.get(pid).copied().unwrap_or_default();
            let ran_ns = task.ran_ns.saturating_sub(before.ran_ns);
            tasks.push(TaskTime {
                ran_ns,
                waited_ns: task.waited_ns.saturating_sub(before.waited_ns),
                user: task.user.saturating_sub(before.user),
                ..*task
            });
        }
        let ran: u64 = tasks.iter().map(|task| task.ran_ns).sum();
        let of_softirqs = tasks.iter().filter(|task| task.is_softirq);
        let of_softirqs: u64 = of_softirqs.map(|task| task.ran_ns).sum();
        let waited = |task: &TaskTime| task.waited_ns.saturating_sub(ran - task.ran_ns);
        let waits = tasks
            .iter()
            .filter(|task| task.is_bound)
            .map(waited)
            .max()
            .unwrap_or(0);
        let own_user = tasks.iter().map(|task| task.user).sum::<u64>() as f64;
        let by_ticks = beyond(user + nice, own_user, own_user, total)
            + beyond(
                system,
                ticks_of(ran - of_softirqs) - own_user,
                system,
                total,
            );
        (total > 0.0).then(|| (cpu, (by_ticks.max(ticks_of(waits)) / total).min(1.0)))
    };
    let gone = later.gone_since(earlier).into_iter();
    gone.filter_map(of_cpu).collect()
}

/// Ticks beyond our own, less what may be chance where `sampled` of `total` ticks are this time or another.
fn beyond(ticks: f64, own: f64, sampled: f64, total: f64) -> f64 {
    let chance = 3.0 * (sampled * (1.0 - sampled / total)).max(0.0).sqrt();
    (ticks - own.max(0.0) - chance).max(0.0)
}

/// The share of the time of all CPUs between two readings that others used, where our own programs may run anywhere. `own`: what
/// [`own_ticks`] said then and now.
pub fn of_others_anywhere(times: [&CpuTimes; 2], own: [[u64; 2]; 2]) -> Option<f64> {
    let [earlier, later] = times;
    let mut gone = [0.0; 8];
    for of_cpu in later.gone_since(earlier).values() {
        (0..8).for_each(|part| gone[part] += of_cpu[part]);
    }
    let [user, nice, system, ..] = gone;
    let total: f64 = gone.iter().sum();
    let [own_user, own_system] =
        [0, 1].map(|part| own[1][part].saturating_sub(own[0][part]) as f64);
    let (user, own) = (user + nice, own_user + own_system);
    // Softirqs count as our own system time, and not as the CPUs'.
    let by_user = beyond(user, own_user, own_user, total);
    (total > 0.0).then(|| by_user.max(beyond(user + system, own, own, total)) / total)
}

/// The frequency of a CPU in Hz, by the files below `root`; virtual machines do not show any.
pub fn frequency(root: &Path, cpu: u32) -> Option<f64> {
    let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let khz: f64 = fs::read_to_string(root.join(path))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(khz * 1e3)
}

/// The CPUs that this thread may run on, ascending. Ask before pinning anything.
///
/// # Errors
/// The kernel refuses.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    // CPUs that are not there may be allowed as well.
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map(|text| parse_list(&text));
    let is_online = |cpu: &u32| online.as_ref().map_or(true, |online| online.contains(cpu));
    Ok(parse_list(allowed.unwrap_or_default())
        .into_iter()
        .filter(is_online)
        .collect())
}

/// The roles of the CPUs `online`. `asked` are those of the generator, one thread each. CPUs that are not online are never used,
/// asked for or not: refuse them before.
///
/// Inline: generator, DUT and receiver share the last CPU (or those asked for), control has the first of the others. Threaded:
/// one CPU for each of control, generator, DUT and receiver, in this order, if there are four. With fewer, first the control
/// shares with the generator, which it disturbs little; then the receiver shares with the DUT, where the kernel runs it by
/// default.
pub fn default_roles(online: &[u32], mode: Mode, asked: Option<Vec<u32>>) -> Roles {
    let asked = asked.map(|mut cpus| {
        let mut seen = BTreeSet::new();
        cpus.retain(|cpu| online.contains(cpu) && seen.insert(*cpu));
        cpus
    });
    let second = usize::from(mode == Mode::Threaded && online.len() >= 4);
    let usual = if mode == Mode::Inline {
        online.last()
    } else {
        online.get(second)
    };
    let generator = asked
        .filter(|cpus| !cpus.is_empty())
        .unwrap_or_else(|| usual.copied().into_iter().collect());
    let others: Vec<u32> = online
        .iter()
        .copied()
        .filter(|c| !generator.contains(c))
        .collect();
    let shared = generator.first().copied();
    let (control, dut, receiver) = match (mode, others.as_slice()) {
        (Mode::Inline, _) => {
            let control = others.first().copied().or(shared).into_iter().collect();
            return Roles {
                dut: generator.clone(),
                receiver: generator.clone(),
                generator,
                control,
            };
        }
        (_, []) => (shared, generator.last().copied(), generator.last().copied()),
        (_, &[dut]) => (shared, Some(dut), Some(dut)),
        (_, &[dut, receiver]) => (shared, Some(dut), Some(receiver)),
        (_, &[control, dut, receiver, ..]) => (Some(control), Some(dut), Some(receiver)),
    };
    let [control, dut, receiver] = [control, dut, receiver].map(|cpu| cpu.into_iter().collect());
    Roles {
        generator,
        dut,
        receiver,
        control,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named() {
        assert!(
            times(Path::new("/nonexistent"))
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/proc/stat")
        );
    }

    #[test]
    fn the_time_of_others_is_that_for_which_we_wait_or_else_what_is_not_our_own() {
        // A second.
        let later = |user: u64, system: u64, softirq: u64, idle: u64| {
            CpuTimes::of(
                Kernel::Linux,
                &format!("cpu0 {user} 0 {system} {idle} 0 0 {softirq} 0"),
            )
        };
        let begin = CpuTimes::of(Kernel::Linux, "cpu0 0 0 0 0");
        let task = |ran_ms: u64, waited_ms: u64, is_bound| TaskTime {
            cpu: 0,
            ran_ns: ran_ms * 1_000_000,
            waited_ns: waited_ms * 1_000_000,
            user: 0,
            is_bound,
            is_softirq: false,
            slices: 0,
            sends: false,
        };
        let others = |times: CpuTimes, tasks: &[TaskTime]| {
            let now = (0..).zip(tasks.iter().copied()).collect();
            (100.0 * of_others([&begin, &times], [&BTreeMap::new(), &now])[&0]).round()
        };
        // A sender had a tenth of its CPU; another linerate, in softirqs and system calls, had the rest.
        assert_eq!(others(later(6, 40, 54, 0), &[task(100, 900, true)]), 90.0);
        // A sender was alone: its own time contains softirqs, or not.
        assert_eq!(others(later(0, 40, 60, 0), &[task(1000, 0, true)]), 0.0);
        assert_eq!(others(later(0, 40, 60, 0), &[task(400, 0, true)]), 0.0);
        // A sender waited for our other thread.
        assert_eq!(
            others(
                later(0, 100, 0, 0),
                &[task(800, 200, true), task(200, 0, false)]
            ),
            0.0
        );
        // A device's thread waits for frames, and another program makes system calls: beyond chance.
        let system = others(later(10, 80, 0, 10), &[task(200, 0, true)]);
        assert!((50.0..70.0).contains(&system), "{system}");
        // A thread of softirqs has the other half: its time is no system time.
        let softirqs = TaskTime {
            is_softirq: true,
            ..task(500, 0, false)
        };
        let system = others(later(0, 50, 50, 0), &[softirqs]);
        assert!((30.0..50.0).contains(&system), "{system}");
        // A port in user space has all of its CPU, or shares it with another program.
        let port = |ran_ms, user| TaskTime {
            user,
            ..task(ran_ms, 0, true)
        };
        assert_eq!(others(later(30, 70, 0, 0), &[port(1000, 30)]), 0.0);
        assert_eq!(
            others(later(70, 30, 0, 0), &[port(500, 20)]).round(),
            38.0,
            "50, less 12 that may be chance"
        );
    }

    #[test]
    fn the_time_of_others_on_all_cpus_is_what_is_not_our_own_and_our_children_s() {
        let times = |user: u64, system: u64| {
            let cpu = |number| {
                format!(
                    "cpu{number} {user} 0 {system} {} 0 0 0 0\n",
                    1000 - user - system
                )
            };
            CpuTimes::of(Kernel::Linux, &(cpu(0) + &cpu(1)))
        };
        let begin = CpuTimes::of(Kernel::Linux, "cpu0 0 0 0 0\ncpu1 0 0 0 0\n");
        let others = |times: CpuTimes, own| of_others_anywhere([&begin, &times], [[5, 5], own]);
        assert_eq!(others(times(300, 100), [605, 205]), Some(0.0));
        assert!((0.35..0.45).contains(&others(times(700, 100), [605, 205]).unwrap()));
        assert_eq!(
            of_others_anywhere([&times(1, 1), &begin], [[0, 0]; 2]).map(|share| share > 0.0),
            None
        );
        // A child counts once it has ended.
        let before = own_ticks();
        let lines = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
        assert!(
            std::process::Command::new("sh")
                .args(["-c", lines])
                .status()
                .unwrap()
                .success()
        );
        assert!(own_ticks()[0] > before[0]);
    }

    #[test]
    fn a_thread_that_has_ended_is_still_counted_once() {
        let work = || {
            // On a busy machine, a thread has less time than passes.
            let own = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            while own().tv_sec == 0 && own().tv_nsec < 20_000_000 {}
            thread_ends();
            rustix::thread::gettid().as_raw_nonzero().get()
        };
        let pid = std::thread::spawn(work).join().unwrap();
        // The kernel takes its entry away a little later.
        let entry = format!("/proc/self/task/{pid}");
        while std::path::Path::new(&entry).exists() {
            std::thread::yield_now();
        }
        // Another test of this process may have asked in between.
        if let Some(own) = own_tasks(&[], &[]).get(&pid) {
            assert!(own.ran_ns > 1_000_000, "{own:?}");
        }
        assert_eq!(own_tasks(&[], &[]).get(&pid), None);
    }

    /// A sender of another process, which the other one of two hosts on this machine measures.
    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("0"), [0]);
        assert_eq!(parse_list("3-1,x,,5"), [5]);
        assert!(parse_list("0-4294967295").len() < 10_000);
    }

    #[test]
    fn the_mask_of_this_process() {
        let online = online_cpus().unwrap();
        assert!(!online.is_empty() && online.is_sorted());
    }

    fn cpus(online: &[u32], mode: Mode, asked: Option<&[u32]>) -> [Vec<u32>; 4] {
        let r = default_roles(online, mode, asked.map(<[u32]>::to_vec));
        [r.control, r.generator, r.dut, r.receiver]
    }

    #[test]
    fn inline_shares_the_last_cpu() {
        assert_eq!(
            cpus(&[0, 1, 2], Mode::Inline, None),
            [vec![0], vec![2], vec![2], vec![2]]
        );
        assert_eq!(cpus(&[5], Mode::Inline, None), [[5], [5], [5], [5]]);
        let both = cpus(&[0, 1, 2], Mode::Inline, Some(&[0, 1, 1]));
        assert_eq!(both, [vec![2], vec![0, 1], vec![0, 1], vec![0, 1]]);
    }

    #[test]
    fn threaded_gives_each_role_a_cpu_as_far_as_they_reach() {
        let threaded = |online: &[u32]| cpus(online, Mode::Threaded, None);
        assert_eq!(threaded(&[3]), [[3], [3], [3], [3]]);
        assert_eq!(threaded(&[0, 1]), [[0], [0], [1], [1]]);
        assert_eq!(threaded(&[0, 1, 2]), [[0], [0], [1], [2]]);
        assert_eq!(threaded(&[0, 1, 2, 3]), [[0], [1], [2], [3]]);
        assert_eq!(threaded(&[2, 4, 6, 8, 10]), [[2], [4], [6], [8]]);
        let two_generators = cpus(&[0, 1, 2, 3, 4], Mode::Threaded, Some(&[4, 3]));
        assert_eq!(two_generators, [vec![0], vec![4, 3], vec![1], vec![2]]);
        let crowded = cpus(&[0, 1], Mode::Threaded, Some(&[0, 1]));
        assert_eq!(crowded, [vec![0], vec![0, 1], vec![1], vec![1]]);
    }

    #[test]
    fn cpus_that_may_not_be_used_are_not_used() {
        assert_eq!(
            cpus(&[0, 1], Mode::Inline, Some(&[7, 1])),
            [vec![0], vec![1], vec![1], vec![1]]
        );
        assert_eq!(
            cpus(&[0, 1], Mode::Threaded, Some(&[7])),
            cpus(&[0, 1], Mode::Threaded, None)
        );
        assert_eq!(
            cpus(&[], Mode::Inline, None),
            [const { Vec::<u32>::new() }; 4]
        );
    }
}
