//! Programs that use this machine's CPUs beside a campaign.

use linerate_measure::record::ProgramTime;
use std::collections::BTreeMap;
use std::fs;

/// Ticks of a second in /proc/PID/stat: USER_HZ, the same on every architecture that linerate runs on.
const TICKS: f64 = 100.0;

/// A thread of the kernel that works on frames, also on those of the lab.
const OF_FRAMES: [&str; 2] = ["ksoftirqd", "napi"];

/// The CPU time of every program so far.
pub struct Programs(BTreeMap<u32, Program>);

struct Program {
    name: String,
    parent: u32,
    started: u64,
    /// Of the program, and of its children that have ended.
    ticks: u64,
}

impl Programs {
    /// Reads /proc. A program that ends meanwhile is left out.
    pub fn now() -> Programs {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let read = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, Program::read(&stat)?))
        };
        Programs(numbers.filter_map(read).collect())
    }

    /// The programs that used CPU time since an earlier look, by name, most time first: without this process, its children, and threads
    /// of the kernel that work on frames.
    pub fn since(&self, earlier: &Programs) -> Vec<ProgramTime> {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, program) in self.0.iter().filter(|(pid, _)| !self.is_own(**pid)) {
            let before = earlier.0.get(pid).filter(|p| p.started == program.started);
            let ticks = program.ticks.saturating_sub(before.map_or(0, |p| p.ticks));
            *all.entry(&program.name).or_default() += ticks;
        }
        let used = all
            .into_iter()
            .filter(|(name, ticks)| *ticks > 0 && !OF_FRAMES.contains(name));
        let mut used: Vec<ProgramTime> = used
            .map(|(name, ticks)| ProgramTime {
                name: name.into(),
                seconds: ticks as f64 / TICKS,
            })
            .collect();
        used.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        used
    }

    fn is_own(&self, pid: u32) -> bool {
        let own = std::process::id();
        let parent = |pid: &u32| self.0.get(pid).map(|program| program.parent);
        std::iter::successors(Some(pid), parent)
            .take(self.0.len())
            .any(|pid| pid == own)
    }
}

impl Program {
    /// Reads /proc/PID/stat (proc_pid_stat(5)). The name is in brackets and may itself contain brackets and blanks.
    fn read(stat: &str) -> Option<Program> {
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these fields is number 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        // Kernel threads such as kworker/0:1-events are of one name.
        let name = name.split('/').next().filter(|short| !short.is_empty());
        Some(Program {
            name: name?.into(),
            parent: field(4)? as u32,
            started: field(22)?,
            ticks: [14, 15, 16, 17].into_iter().filter_map(field).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(all: &[(u32, &str, u32, u64, u64)]) -> Programs {
        let made = |(pid, name, parent, started, ticks): &(u32, &str, u32, u64, u64)| {
            let stat = format!(
                "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 0"
            );
            (*pid, Program::read(&stat).unwrap())
        };
        Programs(all.iter().map(made).collect())
    }

    #[test]
    fn programs_are_named_by_the_time_that_they_used() {
        let own = std::process::id();
        let (child, other) = (own + 1, own + 2);
        let before = programs(&[
            (1, "init", 0, 1, 500),
            (other, "cc1 (x)", 1, 50, 1_000),
            (7, "kworker/0:1-events", 2, 1, 10),
        ]);
        let after = programs(&[
            (1, "init", 0, 1, 500),
            (own, "linerate", 1, 90, 9_000),
            (child, "tcpdump", own, 95, 9_000),
            (other, "cc1 (x)", 1, 50, 1_250),
            (7, "kworker/0:1-events", 2, 1, 20),
            (8, "kworker/1:0", 2, 1, 20),
            (9, "ksoftirqd/0", 2, 1, 700),
            // Another process of the same number.
            (11, "make", 1, 99, 100),
        ]);
        let found = after.since(&before);
        let found: Vec<(&str, f64)> = found.iter().map(|p| (p.name.as_str(), p.seconds)).collect();
        assert_eq!(found, [("cc1 (x)", 2.5), ("make", 1.0), ("kworker", 0.3)]);
    }

    #[test]
    fn this_machine_has_programs() {
        assert!(Programs::now().0.contains_key(&std::process::id()));
    }
}
