//! Collectors of the embedded lab: how busy CPUs are, and everything that the kernel counts.

use super::{DutEnd, Interface, Lane};
use crate::error::Error;
use crate::host::cpu::{self, CpuTimes, TaskTime, frequency, times};
use crate::net::procnet;
use crate::ports::monotonic_ns;
use crate::process::{Input, Job};
use crate::telemetry::switches::{Held, Switches};
use linerate_hosts::systems::Kernel;
use linerate_measure::collector::{Artefact, Collector, Counters, Growth};
use linerate_measure::record::{RulesPassed, SenderTime};
use linerate_measure::trial::Moment;
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::own::passed::{reached, with_counters};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs and threads whose CPU time is the measurement's own.
#[derive(Debug, Clone)]
pub enum Own {
    /// The threads of this process, and these of a lane's devices.
    Threads(Vec<i32>),
    /// This process and the programs that it starts, on any CPU. Every CPU then has the mean share of others.
    Processes,
}

/// How busy each CPU is under load, by `proc/stat` below `root`.
/// `switches`: count who has the CPUs of the threads that send.
pub fn cpus<'a>(root: &Path, own: Own, switches: Option<&'a Switches>) -> impl Collector + 'a {
    Cpus {
        root: root.into(),
        own,
        switches,
        held: None,
        readings: [None, None],
        frequencies: BTreeMap::new(),
    }
}

/// The kernel's threads that poll the devices of a lane.
pub fn threads(lane: &Lane) -> Vec<i32> {
    let cards = lane.dut.iter().flat_map(|dut| [&dut.inside, &dut.outside]);
    let devices = cards.chain([&lane.generator, &lane.receiver]);
    // A device that is gone has none.
    let of = |device: &Interface| device.napi_threads().unwrap_or_default();
    devices.flat_map(of).map(|thread| thread.pid).collect()
}

struct Cpus<'a> {
    root: PathBuf,
    own: Own,
    switches: Option<&'a Switches>,
    /// Counts which tasks had each CPU under the load.
    held: Option<Held>,
    /// When the load began, and when it ended.
    readings: [Option<Reading>; 2],
    /// Hz of each CPU when it ended.
    frequencies: BTreeMap<u32, f64>,
}

/// Times of the CPUs and of linerate's own tasks and processes.
struct Reading {
    at_ns: u64,
    cpus: CpuTimes,
    tasks: BTreeMap<i32, TaskTime>,
    processes: [u64; 2],
}

impl Cpus<'_> {
    fn read(&self) -> Option<Reading> {
        let at_ns = monotonic_ns();
        let tasks = match &self.own {
            Own::Threads(devices) => cpu::own_tasks(devices, &[]),
            Own::Processes => BTreeMap::new(),
        };
        Some(Reading {
            at_ns,
            cpus: times(&self.root).ok()?,
            tasks,
            processes: cpu::own_ticks(),
        })
    }

    /// The share that others used of a CPU's time.
    fn of_others(&self, [before, after]: [&Reading; 2]) -> BTreeMap<u32, f64> {
        let cpus = [&before.cpus, &after.cpus];
        match self.own {
            Own::Threads(_) => cpu::of_others(cpus, [&before.tasks, &after.tasks]),
            Own::Processes => {
                let mean = cpu::of_others_anywhere(cpus, [before.processes, after.processes]);
                mean.iter()
                    .flat_map(|mean| after.cpus.cpus().map(|cpu| (cpu, *mean)))
                    .collect()
            }
        }
    }
}

impl Cpus<'_> {
    /// The threads that sent, with those who had their CPUs meanwhile.
    fn senders(&self, [before, after]: [&Reading; 2]) -> Vec<SenderTime> {
        let load_ns = after.at_ns.saturating_sub(before.at_ns);
        let mut senders = cpu::senders(load_ns, [&before.tasks, &after.tasks]);
        for sender in &mut senders {
            let Some((counted_ns, held)) = &self.held else {
                continue;
            };
            sender.counted_ns = *counted_ns;
            sender.others = Some(held.get(&sender.cpu).cloned().unwrap_or_default());
        }
        senders
    }

    /// Counts who has the CPUs from the beginning of the load on, and keeps the counts at its end.
    fn count(&mut self, moment: Moment) {
        let (Some(switches), Own::Threads(devices)) = (self.switches, &self.own) else {
            return;
        };
        match moment {
            Moment::Began => self.held = switches.begin().is_ok().then(Held::default),
            Moment::Ended => {
                let held = self.held.is_some().then(|| switches.held(devices));
                self.held = held;
            }
        }
    }
}

impl Collector for Cpus<'_> {
    fn name(&self) -> &'static str {
        "cpus"
    }

    fn during(&mut self, moment: Moment) {
        // At once, so that both times are of the load.
        self.count(moment);
        let reading = self.read();
        if moment == Moment::Ended {
            let cpus = reading.iter().flat_map(|reading| reading.cpus.cpus());
            self.frequencies = cpus
                .filter_map(|cpu| Some((cpu, frequency(&self.root, cpu)?)))
                .collect();
        }
        self.readings[usize::from(moment == Moment::Ended)] = reading;
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [Some(before), Some(after)] = &self.readings else {
            return Ok(Vec::new());
        };
        let others = self.of_others([before, after]);
        let mut shares = after.cpus.since(&before.cpus, Kernel::Linux);
        for share in &mut shares {
            share.frequency = self.frequencies.get(&share.cpu).copied();
            share.others = others.get(&share.cpu).copied();
        }
        let senders = self.senders([before, after]);
        Ok(vec![Artefact::Cpus(shares), Artefact::Senders(senders)])
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
        all.extend(
            stats
                .into_iter()
                .map(|(name, n)| (format!("{end}: {name}"), n)),
        );
    }
    Ok(all)
}

/// Name of the collector of [`rules`].
pub const RULES: &str = "rules";

/// How far frames go through a lane's rule file: under the load, each rule has a counter in front of it. Afterwards the rules are as
/// before, and count from 0. `None` without a rule file.
pub fn rules(lane: &Lane) -> Option<impl Collector> {
    let (dut, file) = (lane.dut.as_ref()?, lane.setup.settings.rule_file.as_ref()?);
    Some(Rules {
        dut,
        file,
        original: String::new(),
    })
}

struct Rules<'a> {
    dut: &'a DutEnd,
    file: &'a RuleFile,
    /// The rules without counters.
    original: String,
}

impl Rules<'_> {
    fn list(&self, counters: bool) -> Result<String, String> {
        let job = match self.file.firewall {
            Firewall::Nftables if counters => Job::new("nft", &["list", "ruleset"]),
            Firewall::Nftables => Job::new("nft", &["-s", "list", "ruleset"]),
            _ => {
                let save = self.file.program().0.replace("-restore", "-save");
                Job::new(save, if counters { &["-c"] } else { &[] })
            }
        };
        let mut text = Vec::new();
        let enter = |path: &Path| self.dut.namespace.command(path);
        job.drive(enter, None, &mut |bytes| text.extend_from_slice(bytes))
            .map_err(|e| format!("cannot list the rules: {e}"))?;
        String::from_utf8(text).map_err(|e| format!("cannot list the rules: {e}"))
    }

    /// Replaces all rules at once. Connections stay.
    fn replace(&self, rules: &str) -> Result<(), String> {
        let (program, arguments) = self.file.program();
        let text = match self.file.firewall {
            Firewall::Nftables => format!("flush ruleset\n{rules}"),
            _ => rules.into(),
        };
        let job = Job::new(program, arguments).with_input(Input::text(text));
        job.run(|path| self.dut.namespace.command(path), None)
            .map_err(|e| format!("cannot replace the rules: {e}"))?;
        self.dut.rules.count_from_0();
        Ok(())
    }
}

impl Collector for Rules<'_> {
    fn name(&self) -> &'static str {
        RULES
    }

    fn before(&mut self) -> Result<(), String> {
        self.original = self.list(false)?;
        self.replace(&with_counters(self.file.firewall, &self.original))
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let listing = self.list(true);
        self.replace(&self.original)?;
        let each = reached(self.file.firewall, &listing?)
            .ok_or("the rules are not those that were loaded")?;
        Ok(vec![Artefact::Rules(RulesPassed {
            looks: each.iter().map(|rule| rule.frames).sum(),
            rules: each.len() as u64,
            reached: each.iter().filter(|rule| rule.frames > 0).count() as u64,
            logging: each
                .iter()
                .filter(|rule| rule.logs)
                .map(|rule| rule.frames)
                .sum(),
            ..RulesPassed::default()
        })])
    }
}
