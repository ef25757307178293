//! Collectors of the embedded lab: how busy CPUs are, frames by queue, interrupts by CPU.

use super::Lane;
use crate::error::Error;
use crate::host::cpu::CpuTimes;
use linerate_measure::collector::{Artefact, Collector, Counters, Growth};
use linerate_measure::trial::Moment;
use std::fs;
use std::path::{Path, PathBuf};

/// How busy each CPU is under load, by `proc/stat` below `root`.
pub fn cpus(root: &Path) -> impl Collector {
    Cpus { root: root.into(), times: [None, None] }
}

struct Cpus {
    root: PathBuf,
    /// When the load began, and when it ended.
    times: [Option<CpuTimes>; 2],
}

impl Collector for Cpus {
    fn name(&self) -> &'static str {
        "cpus"
    }

    fn during(&mut self, moment: Moment) {
        self.times[usize::from(moment == Moment::Ended)] = CpuTimes::read(&self.root).ok();
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [Some(before), Some(after)] = &self.times else { return Ok(Vec::new()) };
        Ok(vec![Artefact::Cpus(after.since(before))])
    }
}

/// Frames by queue of the DUT's cards, as their drivers count them.
pub fn queues(lane: &Lane) -> impl Collector {
    Growth::new("queues", || of_queues(lane).map_err(|error| error.to_string()))
}

fn of_queues(lane: &Lane) -> Result<Counters, Error> {
    let mut all = Counters::new();
    let Some(dut) = &lane.dut else { return Ok(all) };
    for (end, card) in [("in", &dut.inside), ("out", &dut.outside)] {
        let stats = card.ethtool()?.stats(&card.name)?;
        let of_queues = stats.into_iter().filter(|(name, _)| name.contains("queue"));
        all.extend(of_queues.map(|(name, n)| (format!("{end}: {name}"), n)));
    }
    Ok(all)
}

/// The files with interrupts by CPU. Not every architecture has both.
pub const INTERRUPTS: [&str; 2] = ["proc/interrupts", "proc/softirqs"];

/// Interrupts by CPU, of the files below `root`.
pub fn interrupts(root: &Path) -> impl Collector {
    Growth::new("interrupts", move || {
        let text = |file| fs::read_to_string(root.join(file)).unwrap_or_default();
        Ok(INTERRUPTS.iter().flat_map(|file| by_cpu(&text(file))).collect())
    })
}

/// [`INTERRUPTS`]: a line of CPUs, then lines of `name: count count ... words`.
pub fn by_cpu(text: &str) -> Counters {
    let mut lines = text.lines();
    let cpus: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let mut all = Counters::new();
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let mut words = rest.split_whitespace();
        let counts: Vec<u64> = words.by_ref().take(cpus.len()).map_while(|w| w.parse().ok()).collect();
        for (cpu, n) in cpus.iter().zip(counts) {
            all.insert(format!("{cpu}: interrupt {}", name.trim()), n);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::collector::grown;

    #[test]
    fn counters_by_cpu() {
        let text = "           CPU0       CPU1\n  1:        9          0   IO-APIC   1-edge      i8042\nLOC:  100 200   Local timer interrupts\nERR:          3\n";
        let counters = by_cpu(text);
        assert_eq!(counters["CPU0: interrupt 1"], 9);
        assert_eq!(counters["CPU1: interrupt LOC"], 200);
        assert_eq!(counters["CPU0: interrupt ERR"], 3);
        assert_eq!(counters.len(), 5);
        let softirqs = "                    CPU0       CPU1       \n          HI:          1          2\n      NET_RX:  5 6\n";
        let later = by_cpu(&softirqs.replace("5 6", "5 9"));
        assert_eq!(grown(&by_cpu(softirqs), &later), Counters::from([("CPU1: interrupt NET_RX".into(), 3)]));
        for odd in ["", "CPU0", ":\n:", "CPU0\nx: y\n: 1\nz: 99999999999999999999"] {
            assert!(by_cpu(odd).len() <= 1, "{odd}");
        }
    }
}
