//! How busy the CPUs of a host are: what prints their times, and the shares between two readings.

use crate::systems::{Kernel, MOST_ENTRIES, procnet};
use linerate_measure::record::CpuShare;
use std::collections::BTreeMap;

/// Time that each CPU has spent since boot, in the kernel's ticks, by the columns of proc(5): user, nice, system, idle with iowait,
/// nothing, irq, softirq, steal. Guest time is part of user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    ticks: BTreeMap<u32, [u64; 8]>,
    /// When Linux printed them, in nanoseconds of one clock.
    read_ns: Option<u64>,
}

/// Nanoseconds of a tick in /proc/stat: proc(5) calls it USER_HZ, and only Alpha has another.
pub const TICK_NS: f64 = 1e7;

/// The line for the shell that prints the times of each CPU.
///
/// # Errors
/// The system does not show them.
pub fn question(kernel: Kernel) -> Result<&'static str, String> {
    match kernel {
        // The lines behind those of the CPUs are long where there are many interrupts.
        Kernel::Linux => Ok("grep '^cpu' /proc/stat"),
        Kernel::FreeBsd => Ok("sysctl -n kern.cp_times"),
        // kern.cp_time2 has them by CPU, and sysctl(8) does not print it: kern.cp_time is the mean of all CPUs.
        Kernel::OpenBsd => Ok("[ \"$(sysctl -n hw.ncpuonline)\" = 1 ] || \
             { echo 'OpenBSD does not print the times of single CPUs, and this machine has several' >&2; exit 1; }; \
             sysctl -n kern.cp_time"),
        Kernel::NetBsd => {
            Err("linerate does not know how this system prints the times of its CPUs".into())
        }
    }
}

impl CpuTimes {
    /// The times in the answer of a kernel.
    pub fn of(kernel: Kernel, text: &str) -> CpuTimes {
        match kernel {
            Kernel::Linux => procnet::ticks(text).filter_map(of_linux).collect(),
            // user, nice, system, interrupt, idle
            Kernel::FreeBsd => of_bsd(text, |&[user, nice, system, irq, idle]| {
                [user, nice, system, idle, irq]
            }),
            // user, nice, system, waiting for locks, interrupt, idle
            Kernel::OpenBsd => of_bsd(text, |&[user, nice, system, spin, irq, idle]| {
                [user, nice, system.saturating_add(spin), idle, irq]
            }),
            Kernel::NetBsd => CpuTimes::default(),
        }
    }

    /// The times, with the time at which Linux printed them, in nanoseconds of one clock.
    pub fn read_at(self, ns: u64) -> CpuTimes {
        CpuTimes {
            read_ns: Some(ns),
            ..self
        }
    }

    /// The ticks of each CPU.
    pub fn ticks(self) -> BTreeMap<u32, [u64; 8]> {
        self.ticks
    }

    /// The ticks of each CPU since `earlier`, which had it too.
    ///
    /// Linux measures idle and stolen time and samples all other: a program that a timer wakes runs at more ticks than by chance. Where both times
    /// of reading are known, samples that are too many for the time that was not idle count less.
    pub fn gone_since(&self, earlier: &CpuTimes) -> BTreeMap<u32, [f64; 8]> {
        let read_ns = self.read_ns.zip(earlier.read_ns);
        let all = read_ns.map(|(now, then)| now.saturating_sub(then) as f64 / TICK_NS);
        let of = |(cpu, now): (&u32, &[u64; 8])| {
            let then = earlier.ticks.get(cpu)?;
            let mut gone: [f64; 8] =
                std::array::from_fn(|part| now[part].saturating_sub(then[part]) as f64);
            let [idle, steal] = [IDLE, STEAL].map(|part| std::mem::take(&mut gone[part]));
            let sampled: f64 = gone.iter().sum();
            let measured = all.map_or(sampled, |all| (all - idle - steal).clamp(0.0, sampled));
            if measured < sampled {
                gone.iter_mut().for_each(|part| *part *= measured / sampled);
            }
            (gone[IDLE], gone[STEAL]) = (idle, steal);
            Some((*cpu, gone))
        };
        self.ticks.iter().filter_map(of).collect()
    }

    /// The CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.ticks.keys().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ticks.is_empty()
    }

    /// Time shares of each CPU of such a kernel between `earlier` and this. A CPU without a tick in between, or without earlier
    /// times, is left out, because its shares are unknown.
    pub fn since(&self, earlier: &CpuTimes, kernel: Kernel) -> Vec<CpuShare> {
        let gone = self.gone_since(earlier).into_iter();
        gone.filter_map(|(cpu, gone)| share(kernel, cpu, gone))
            .collect()
    }
}

impl FromIterator<(u32, [u64; 8])> for CpuTimes {
    fn from_iter<T: IntoIterator<Item = (u32, [u64; 8])>>(ticks: T) -> CpuTimes {
        CpuTimes {
            ticks: ticks.into_iter().collect(),
            read_ns: None,
        }
    }
}

/// The numbers of idle and of stolen time among a CPU's ticks.
const IDLE: usize = 3;
const STEAL: usize = 7;

fn of_linux((cpu, values): (u32, Vec<u64>)) -> Option<(u32, [u64; 8])> {
    let mut ticks = [0; 8];
    ticks
        .iter_mut()
        .zip(&values)
        .for_each(|(to, from)| *to = *from);
    // Either may go backwards (proc(5)).
    ticks[IDLE] = ticks[IDLE].saturating_add(std::mem::take(&mut ticks[4]));
    (values.len() >= 4).then_some((cpu, ticks))
}

/// Ticks of so many states for each CPU, `order` of which are user, nice, system, idle and interrupt.
fn of_bsd<const STATES: usize>(text: &str, order: impl Fn(&[u64; STATES]) -> [u64; 5]) -> CpuTimes {
    let of = |states: &[u64; STATES]| {
        let [user, nice, system, idle, irq] = order(states);
        [user, nice, system, idle, 0, irq, 0, 0]
    };
    (0..).zip(states(text).iter().map(of)).collect()
}

/// The ticks of so many states for each CPU, of a setting such as kern.cp_times.
pub(crate) fn states<const STATES: usize>(text: &str) -> Vec<[u64; STATES]> {
    let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
    let ticks: Vec<u64> = words
        .filter_map(|word| word.parse().ok())
        .take(MOST_ENTRIES)
        .collect();
    ticks.as_chunks().0.to_vec()
}

fn share(kernel: Kernel, cpu: u32, gone: [f64; 8]) -> Option<CpuShare> {
    let [user, nice, system, idle, _, irq, softirq, steal] = gone;
    let total: f64 = gone.iter().sum();
    // Threads of the kernel and its interrupts forward on BSD.
    let softirq = if kernel == Kernel::Linux {
        softirq
    } else {
        system + irq
    };
    (total > 0.0).then(|| CpuShare {
        cpu,
        busy: (total - idle) / total,
        softirq: softirq / total,
        steal: steal / total,
        user: (user + nice) / total,
        others: None,
        frequency: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str =
        "cpu  9 9 9 9\ncpu0 100 0 50 800 10 0 40 0 0 0\ncpu1 10 0 10 500\nintr 1 2 3\n";
    const LATER: &str =
        "cpu  9 9 9 9\ncpu0 110 0 60 840 5 0 70 10 0 0\ncpu1 10 0 10 500\ncpu2 1 1 1 1\n";

    fn linux(text: &str) -> CpuTimes {
        CpuTimes::of(Kernel::Linux, text)
    }

    #[test]
    fn shares_between_two_readings() {
        let shares = linux(LATER).since(&linux(EARLIER), Kernel::Linux);
        // cpu1 has not ticked and cpu2 was not there. Of cpu0: 20 working, 30 softirq, 10 stolen, 35 idle.
        assert_eq!(shares.len(), 1);
        let s = shares[0];
        assert_eq!(s.cpu, 0);
        for (share, expected) in [
            (s.busy, 60.0 / 95.0),
            (s.softirq, 30.0 / 95.0),
            (s.steal, 10.0 / 95.0),
        ] {
            assert!((share - expected).abs() < 1e-9, "{s:?}");
        }
    }

    /// A port that slept half of a second, and a timer woke it at each tick: 49 ticks of idle time, and 98 in which it ran.
    #[test]
    fn ticks_beyond_the_time_that_was_not_idle_count_less() {
        let at = |user: u64, idle: u64, ms: u64| {
            linux(&format!("cpu0 {user} 0 0 {idle}")).read_at(ms * 1_000_000)
        };
        let busy = |later: CpuTimes| later.since(&at(0, 0, 500), Kernel::Linux)[0].busy;
        assert_eq!(busy(at(98, 49, 1500)), 0.51);
        assert_eq!(busy(at(51, 49, 1500)), 0.51);
        // Fewer than the time that was not idle, or a clock that stood still.
        assert_eq!(busy(at(50, 50, 2500)), 0.5);
        assert_eq!(busy(at(50, 50, 500)), 0.0);
    }

    /// The numbers before `kern.cp_times: ` and `kern.cp_time=` of systems at work; the later ones have 100 ticks more.
    #[test]
    fn shares_on_bsd() {
        for (kernel, earlier, later, number) in [
            (
                Kernel::FreeBsd,
                "1181 0 721 52 6113\n",
                "1191 0 771 72 6133\n",
                1,
            ),
            (
                Kernel::FreeBsd,
                "1181 0 721 52 6113 1 2 3 4 5\n",
                "1191 0 771 72 6133 11 2 53 24 25\n",
                2,
            ),
            (
                Kernel::OpenBsd,
                "1170,0,3199,75,376,4849\n",
                "1180,0,3219,105,396,4869\n",
                1,
            ),
        ] {
            let [earlier, later] = [earlier, later].map(|text| CpuTimes::of(kernel, text));
            let shares = later.since(&earlier, kernel);
            let of = |cpu| CpuShare {
                cpu,
                busy: 0.8,
                softirq: 0.7,
                steal: 0.0,
                user: 0.1,
                others: None,
                frequency: None,
            };
            assert_eq!(
                shares,
                (0..number).map(of).collect::<Vec<_>>(),
                "{kernel:?}"
            );
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic() {
        for text in [
            "",
            "cpu",
            "cpu0",
            "cpu0 1 2 3",
            "cpux 1 2 3 4",
            "cpu99999999999 1 2 3 4",
            "cpu0 -1 2 3 4",
            "\u{b5}cpu0",
        ] {
            for kernel in [
                Kernel::Linux,
                Kernel::FreeBsd,
                Kernel::OpenBsd,
                Kernel::NetBsd,
            ] {
                assert_eq!(CpuTimes::of(kernel, text), CpuTimes::default(), "{text}");
            }
        }
        let huge = format!("cpu0 {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX);
        assert_eq!(
            linux(&huge)
                .since(&linux("cpu0 0 0 0 0"), Kernel::Linux)
                .len(),
            1
        );
        let huge = format!("{0},{0},{0},{0},{0},{0}", u64::MAX);
        assert!(!CpuTimes::of(Kernel::OpenBsd, &huge).is_empty());
    }
}
