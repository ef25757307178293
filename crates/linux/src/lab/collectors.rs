//! Collectors of the embedded lab: how busy CPUs are, and everything that the kernel counts.

use super::{Interface, Lane};
use crate::error::Error;
use crate::host::cpu::{CpuTimes, TaskTime, frequency, of_others, own_tasks, times};
use crate::net::procnet;
use linerate_hosts::systems::Kernel;
use linerate_measure::collector::{Artefact, Collector, Counters, Growth};
use linerate_measure::trial::Moment;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How busy each CPU is under load, by `proc/stat` below `root`. `own`: the threads of the lane's devices.
pub fn cpus(root: &Path, own: Vec<i32>) -> impl Collector {
    Cpus { root: root.into(), own, times: [None, None], frequencies: BTreeMap::new() }
}

/// The kernel's threads that poll the devices of a lane.
pub fn threads(lane: &Lane) -> Vec<i32> {
    let cards = lane.dut.iter().flat_map(|dut| [&dut.inside, &dut.outside]);
    let devices = cards.chain([&lane.generator, &lane.receiver]);
    // A device that is gone has none.
    let of = |device: &Interface| device.napi_threads().unwrap_or_default();
    devices.flat_map(of).map(|thread| thread.pid).collect()
}

struct Cpus {
    root: PathBuf,
    own: Vec<i32>,
    /// When the load began, and when it ended.
    times: [Option<(CpuTimes, BTreeMap<i32, TaskTime>)>; 2],
    /// Hz of each CPU when it ended.
    frequencies: BTreeMap<u32, f64>,
}

impl Collector for Cpus {
    fn name(&self) -> &'static str {
        "cpus"
    }

    fn during(&mut self, moment: Moment) {
        let tasks = own_tasks(&self.own);
        let times = times(&self.root).ok().map(|times| (times, tasks));
        if moment == Moment::Ended {
            let cpus = times.iter().flat_map(|(times, _)| times.cpus());
            self.frequencies = cpus.filter_map(|cpu| Some((cpu, frequency(&self.root, cpu)?))).collect();
        }
        self.times[usize::from(moment == Moment::Ended)] = times;
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [Some(before), Some(after)] = &self.times else { return Ok(Vec::new()) };
        let others = of_others([&before.0, &after.0], [&before.1, &after.1]);
        let mut shares = after.0.since(&before.0, Kernel::Linux);
        for share in &mut shares {
            share.frequency = self.frequencies.get(&share.cpu).copied();
            share.others = others.get(&share.cpu).copied();
        }
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
