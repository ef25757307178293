//! The registry of collectors, for the embedded lab and for labs of hosts.

use super::Telemetry;
use linerate_hosts::systems::Kernel;
use linerate_linux::lab::collectors::{Own, counters, cpus, rules, threads};
use linerate_linux::lab::{DutEnd, Lane};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::telemetry::switches::Switches;
use linerate_linux::telemetry::{self, drops, locks, profile, stages};
use linerate_measure::collector::{Collector, Collectors};
use linerate_plan::campaign::Collect;
use linerate_plan::placeholders::fill;
use linerate_remote::{AfterLoad, Busy, Configured, ExecutionTarget, Observed, Probed, UnderLoad};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The device that is observed.
pub struct Scene<'a> {
    /// Where commands run; none without a DUT.
    pub host: Option<Observed>,
    /// Lane of the DUT, in the embedded lab: then this machine is the DUT's.
    pub lane: Option<&'a Lane>,
    /// Counts who has the CPUs of the threads that send.
    pub switches: Option<&'a Switches>,
    /// Whether programs of this machine are both ends of the load, and its CPUs the DUT's.
    pub of_programs: bool,
    /// Kernel of the DUT.
    pub kernel: Kernel,
    /// Interfaces of the DUT, towards generator and receiver.
    pub ends: [String; 2],
    /// Observations in the DUT's kernel, and the CPUs that forward, if they are of this machine.
    pub telemetry: Option<(Telemetry, Vec<u32>)>,
    /// The length of the load, on a host whose CPUs are looked at.
    pub load: Option<Duration>,
    /// The slot whose facts are asked for.
    pub configuration: Option<usize>,
    /// Destinations of the frames that its DUT gets, each with a source.
    pub addresses: Vec<[IpAddr; 2]>,
}

/// Makes a collector, where the scene allows for it.
type Make = for<'a> fn(&Scene<'a>) -> Option<Box<dyn Collector + 'a>>;

/// The collectors of every trial, whatever a plan's `collect.what` names: warnings of a summary rest on how busy CPUs were, findings on the
/// counters and the configuration ([`Scene::ask`]). The receiver counts latencies itself.
static COLLECTORS: [Make; 2] = [
    |scene| Some(Box::new(cpus(Path::new("/"), scene.own()?, scene.switches))),
    // Counters of a host are read with the account of frames.
    |scene| Some(Box::new(counters(scene.lane?))),
];

impl<'a> Scene<'a> {
    /// A lane of the embedded lab.
    pub fn of_lane(lane: &'a Lane) -> Scene<'a> {
        let target = ExecutionTarget::of_dut(lane).map(Arc::new);
        let names = |dut: &DutEnd| [&dut.inside, &dut.outside].map(|card| card.name.clone());
        let ends = lane.dut.as_ref().map(names).unwrap_or_default();
        let host = target.map(|target| Observed {
            target,
            sudo: false,
        });
        Scene {
            host,
            lane: Some(lane),
            switches: None,
            of_programs: false,
            kernel: Kernel::Linux,
            ends,
            telemetry: None,
            load: None,
            configuration: None,
            addresses: Vec::new(),
        }
    }

    /// Programs that the testbed runs on this machine; none where the DUT is another.
    fn own(&self) -> Option<Own> {
        match self.lane {
            _ if self.of_programs => Some(Own::Processes),
            Some(lane) => Some(Own::Threads(threads(lane))),
            None => None,
        }
    }

    /// Asks how the DUT of [`Scene::configuration`] is configured. Other linerates need not wait for the answers: that needs no turn.
    pub fn ask(&self) -> Collectors<'static> {
        let configured = self
            .host
            .clone()
            .zip(self.configuration)
            .map(|(host, slot)| {
                let (ends, addresses) = (self.ends.clone(), self.addresses.clone());
                Box::new(Configured::new(host, self.kernel, ends, addresses, slot))
                    as Box<dyn Collector>
            });
        Collectors::before(configured.into_iter().collect(), monotonic_ns)
    }

    /// Prepares the collectors of one trial. `asked`: what [`Scene::ask`] found.
    pub fn before(&self, asked: Collectors<'a>, collect: &Collect) -> Collectors<'a> {
        let mut all: Vec<Box<dyn Collector + 'a>> =
            COLLECTORS.iter().filter_map(|make| make(self)).collect();
        let [inside, outside] = &self.ends;
        let filled = |commands: &[String]| -> Vec<String> {
            commands
                .iter()
                .map(|command| fill(command, inside, outside))
                .collect()
        };
        if let Some(host) = self.host.as_ref().filter(|_| !collect.during.is_empty()) {
            all.push(Box::new(UnderLoad::new(
                host.clone(),
                filled(&collect.during),
            )));
        }
        if let Some(host) = self.host.as_ref().filter(|_| !collect.commands.is_empty()) {
            all.push(Box::new(AfterLoad::new(
                host.clone(),
                filled(&collect.commands),
            )));
        }
        all.extend(self.probes());
        if let (Some(host), Some(load)) = (&self.host, self.load) {
            all.push(Box::new(Busy::new(host.clone(), self.kernel, load)));
        }
        asked.and(Collectors::before(all, monotonic_ns))
    }

    /// The probes of the kernel. Without a DUT, no frame passes its stack.
    fn probes(&self) -> Vec<Box<dyn Collector + 'a>> {
        let Some((what, cpus)) = self.telemetry.clone() else {
            return Vec::new();
        };
        if let (None, Some(host)) = (self.lane, &self.host) {
            let probe = |name| Probed::new(host.clone(), self.kernel, name);
            let probes = match what {
                Telemetry::Functions => vec![probe(profile::NAME)],
                Telemetry::Stages => vec![probe(stages::NAME)],
                Telemetry::Events => vec![probe(drops::NAME), probe(locks::NAME)],
                Telemetry::Rules => Vec::new(),
            };
            return probes
                .into_iter()
                .map(|probe| Box::new(probe) as Box<dyn Collector>)
                .collect();
        }
        let dut = self.lane.and_then(|lane| lane.dut.as_ref());
        match what {
            Telemetry::Functions => {
                let stacks = move || profile::Sampler::load(&cpus, profile::FREQUENCY);
                vec![telemetry::collector(profile::NAME, stacks)]
            }
            Telemetry::Stages => {
                let stages = |dut: &'a DutEnd| {
                    telemetry::collector(stages::NAME, || stages::Stages::load(&dut.namespaces()))
                };
                dut.map(stages).into_iter().collect()
            }
            Telemetry::Events => {
                let drops = |dut: &'a DutEnd| {
                    telemetry::collector(drops::NAME, || drops::Drops::load(&dut.namespaces()))
                };
                let waits = telemetry::collector(locks::NAME, move || locks::Locks::load(&cpus));
                dut.map(drops).into_iter().chain([waits]).collect()
            }
            Telemetry::Rules => {
                let rules = self.lane.and_then(rules).into_iter();
                rules.map(|of| Box::new(of) as Box<dyn Collector>).collect()
            }
        }
    }
}
