//! Figures that a plan asks for with each trial, beyond the counters that the ledger needs: frames by queue, interrupts by CPU.

use super::{LabError, Lane};
use crate::net::ethtool::Ethtool;
use crate::net::procnet::Counters;
use linerate_plan::campaign::Figures;
use std::fs;
use std::path::Path;

/// Reads the counters behind some kinds of figures.
///
/// # Errors
/// The kernel does not answer.
pub fn read(lane: &Lane, what: &[Figures], root: &Path) -> Result<Counters, LabError> {
    let mut all = Counters::new();
    if what.contains(&Figures::Queues)
        && let Some(dut) = &lane.dut
    {
        let ends = [("in", &dut.inside, dut.inside_node()), ("out", &dut.outside, dut.outside_node())];
        for (end, card, node) in ends {
            let stats = Ethtool::open(&node.namespace)?.stats(&card.name)?;
            let of_queues = stats.into_iter().filter(|(name, _)| name.contains("queue"));
            all.extend(of_queues.map(|(name, n)| (format!("{end}: {name}"), n)));
        }
    }
    if what.contains(&Figures::Interrupts) {
        for file in ["interrupts", "softirqs"] {
            // Not every architecture has both.
            let text = fs::read_to_string(root.join("proc").join(file)).unwrap_or_default();
            all.extend(by_cpu(&text));
        }
    }
    Ok(all)
}

/// `/proc/interrupts` and `/proc/softirqs`: a line of CPUs, then lines of `name: count count ... words`.
fn by_cpu(text: &str) -> Counters {
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
        assert_eq!(
            crate::net::procnet::difference(&by_cpu(softirqs), &later),
            Counters::from([("CPU1: interrupt NET_RX".into(), 3)])
        );
        for odd in ["", "CPU0", ":\n:", "CPU0\nx: y\n: 1\nz: 99999999999999999999"] {
            assert!(by_cpu(odd).len() <= 1, "{odd}");
        }
    }
}
