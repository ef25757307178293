//! Collectors of the embedded lab: how busy CPUs are, and everything that the kernel counts.

use super::Lane;
use crate::error::Error;
use crate::host::cpu::{CpuTimes, frequency, times};
use crate::net::procnet;
use linerate_hosts::systems::Kernel;
use linerate_measure::collector::{Artefact, Collector, Counters, Growth};
use linerate_measure::trial::Moment;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How busy each CPU is under load, by `proc/stat` below `root`.
pub fn cpus(root: &Path) -> impl Collector {
    Cpus { root: root.into(), times: [None, None], frequencies: BTreeMap::new() }
}

struct Cpus {
    root: PathBuf,
    /// When the load began, and when it ended.
    times: [Option<CpuTimes>; 2],
    /// Hz of each CPU when it ended.
    frequencies: BTreeMap<u32, f64>,
}

impl Collector for Cpus {
    fn name(&self) -> &'static str {
        "cpus"
    }

    fn during(&mut self, moment: Moment) {
        let times = times(&self.root).ok();
        if moment == Moment::Ended {
            let cpus = times.iter().flat_map(CpuTimes::cpus);
            self.frequencies = cpus.filter_map(|cpu| Some((cpu, frequency(&self.root, cpu)?))).collect();
        }
        self.times[usize::from(moment == Moment::Ended)] = times;
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [Some(before), Some(after)] = &self.times else { return Ok(Vec::new()) };
        let mut shares = after.since(before, Kernel::Linux);
        shares.iter_mut().for_each(|share| share.frequency = self.frequencies.get(&share.cpu).copied());
        Ok(vec![Artefact::Cpus(shares)])
    }
}

/// The machine's counters by CPU, and those of the drivers of the DUT's cards (`in: rx_queue_0_xdp_packets`). The ledger of frames has
/// those of the DUT's namespaces.
pub fn counters(lane: &Lane) -> impl Collector {
    Growth::new("counters", || {
        let mut all = procnet::of_machine(Path::new("/"));
        all.extend(of_drivers(lane).map_err(|error| error.to_string())?);
        Ok(all)
    })
}

fn of_drivers(lane: &Lane) -> Result<Counters, Error> {
    let mut all = Counters::new();
    let Some(dut) = &lane.dut else { return Ok(all) };
    for (end, card) in [("in", &dut.inside), ("out", &dut.outside)] {
        // Drivers without counters return an error.
        let stats = card.ethtool()?.stats(&card.name).unwrap_or_default();
        all.extend(stats.into_iter().map(|(name, n)| (format!("{end}: {name}"), n)));
    }
    Ok(all)
}
