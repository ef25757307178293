//! The DUT of a lane: its kind, and everything that is set on it.

use super::LabError;
use super::filler::{self, Filler};
use super::own_rules::OwnRules;
use crate::host::journal::{self, Change, Journal};
use crate::net::sysctl;
use crate::process::Job;
use linerate_plan::settings::{Dut, Feature, Interface, Neighbour, Route, States};
use std::collections::BTreeMap;

/// A DUT. Other settings stay as the kernel makes them, except for those that keep a lab quiet (docs/packet-io.md).
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// What messages, records and the ledger call it.
    pub name: String,
    /// How frames get from one end to the other.
    pub dut: Dut,
    /// Kernel settings, in either spelling of sysctl(8). Those of a namespace are set in the DUT's; the others are the host's, and
    /// need consent.
    pub sysctls: BTreeMap<String, String>,
    /// Of the interface towards the generator.
    pub inside: Interface,
    /// Of the interface towards the receiver.
    pub outside: Interface,
    pub routes: Vec<Route>,
    /// Routes that no frame takes, by the outside interface.
    pub more_routes: Filler,
    pub neighbours: Vec<Neighbour>,
    /// Neighbours that no frame is sent to, at the outside interface.
    pub more_neighbours: Filler,
    /// The programs that load the rule set, in this order.
    pub rules: Vec<Job>,
    /// Where these are a user's own file: whose counters are read after each trial.
    pub own: Option<OwnRules>,
    /// Whether the rules make the kernel keep a state for each flow.
    pub tracks: bool,
    /// Connections that must find room in the state table; as many as the lab has flows where none are named.
    pub room: Option<u64>,
    /// How far connections are when a trial begins.
    pub states: States,
    /// Kernel modules that must be there. Loading one changes the host, and needs consent.
    pub modules: Vec<String>,
    /// Files below the DUT's scratch folder, which is where commands run: path and content.
    pub files: Vec<(String, String)>,
    /// Commands, run in the DUT's namespace after everything else.
    pub commands: Vec<Step>,
    /// Settings of the whole host.
    pub host: Vec<Change>,
}

/// A command, and the one that undoes it when the lab ends.
#[derive(Debug, Clone)]
pub struct Step {
    pub run: Job,
    /// Undoes it, where the end of the namespace does not.
    pub undo: Option<Job>,
}

/// Files of a lane, all together.
const MOST_FILES: usize = 64 << 20;
/// Longest delay that the program keeps to: it waits by reading the clock a bounded number of times.
const LONGEST_DELAY_NS: u64 = 200_000;

impl Setup {
    /// A DUT of this kind with nothing set.
    pub fn of(dut: Dut) -> Setup {
        Setup { name: dut.to_string(), dut, ..Setup::default() }
    }

    /// Whether the DUT is an eBPF program, which ends with this process.
    pub fn is_program(&self) -> bool {
        self.dut == Dut::Xdp || self.dut.is_known() || self.needs_pass()
    }

    /// Whether a program that passes everything keeps the inside interface polled: a veth has NAPI with GRO or a program, so where
    /// GRO itself is the question, both answers get the program.
    pub(super) fn needs_pass(&self) -> bool {
        self.inside.features.contains_key(&Feature::Gro) && !self.attaches_inside()
    }

    /// Whether a program of the DUT's own is on the inside interface.
    fn attaches_inside(&self) -> bool {
        matches!(self.dut, Dut::Xdp | Dut::KnownRate(_) | Dut::KnownLoss(_) | Dut::KnownDelay(_))
    }

    /// The 802.1Q tags that frames carry on the two links, where they do.
    pub fn tags(&self) -> Option<[u16; 2]> {
        (self.dut == Dut::Vlan).then_some([super::topology::INSIDE_VLAN, super::topology::OUTSIDE_VLAN])
    }

    /// Whether two setups differ in nothing but rules and the namespace's sysctls, which a standing lane can exchange.
    pub fn differs_only_in_rules(&self, other: &Setup) -> bool {
        let rest = |s: &Setup| {
            let jobs: Vec<_> = s.commands.iter().map(|c| format!("{c:?}")).collect();
            (
                s.dut,
                s.inside.clone(),
                s.outside.clone(),
                s.routes.clone(),
                s.more_routes,
                s.neighbours.clone(),
                s.more_neighbours,
                (s.modules.clone(), s.files.clone(), jobs, s.host.clone()),
            )
        };
        rest(self) == rest(other)
    }

    /// Settings of the host that the setup implies or names. How much room the states need is known once the rules are loaded.
    pub(super) fn host_changes(&self) -> Result<Vec<Change>, LabError> {
        let mut changes = self.host.clone();
        let flows = [&self.inside, &self.outside].into_iter().filter_map(|i| i.rfs).max();
        if let Some(flows) = flows.filter(|f| *f > 0) {
            // Without the host's table of flows, a queue's is not looked at (Documentation/networking/scaling.rst).
            changes.push(Change::sysctl("net.core.rps_sock_flow_entries", &flows.to_string())?.or_more());
        }
        Ok(changes)
    }

    /// The changes to the host that it needs, as commands for a user; they need consent. `flows`: connections that must find room
    /// where it keeps a state for each.
    ///
    /// # Errors
    /// The name of a sysctl is not valid.
    pub fn outstanding(&self, flows: u64) -> Result<Vec<String>, LabError> {
        let mut changes = self.host_changes()?;
        for (key, value) in self.sysctls.iter().filter(|(key, _)| !linerate_plan::is_namespaced(key)) {
            changes.push(Change::sysctl(key, value)?);
        }
        let states = self.room.unwrap_or(0).max(if self.tracks { flows } else { 0 });
        if states > 0 {
            changes.push(Change::sysctl("net.netfilter.nf_conntrack_max", &states.to_string())?.or_more());
        }
        let journal = Journal::of_this_host();
        // A setting that is not there yet comes with a module, and may have another value then.
        let open =
            |c: &&Change| journal.outstanding(std::slice::from_ref(*c)).map_or(true, |o| !o.is_empty());
        let mut wanted: Vec<String> = changes.iter().filter(open).map(Change::by_hand).collect();
        let loadable =
            |m: &&String| matches!(super::support::module(m), Ok(super::support::Module::Loadable));
        wanted.extend(self.modules.iter().filter(loadable).map(|m| format!("modprobe {m}")));
        Ok(wanted)
    }

    /// Everything about it that cannot be, on a veth or at all; empty if it is sound. What this kernel lacks is another question
    /// ([`support`](super::support)).
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.check_kind(&mut faults);
        for (key, value) in &self.sysctls {
            let checked = sysctl::path_of(key).and_then(|_| sysctl::check_value(key, value));
            faults.extend(checked.err().map(|e| e.to_string()));
        }
        check_interface("in", &self.inside, &mut faults);
        check_interface("out", &self.outside, &mut faults);
        for (what, filler) in [("routes", self.more_routes), ("neighbours", self.more_neighbours)] {
            if filler.v4.max(filler.v6) > filler::MOST {
                faults.push(format!("at most {} {what} of one family can be generated", filler::MOST));
            }
        }
        for route in &self.routes {
            check_route(route, &mut faults);
        }
        for name in &self.modules {
            faults.extend(journal::check_module(name).err().map(|e| format!("module '{name}': {e}")));
        }
        for (path, _) in &self.files {
            faults.extend(super::room::check_file(path).err().map(|e| format!("file '{path}': {e}")));
        }
        if self.files.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_FILES {
            faults.push(format!("files are at most {} MiB together", MOST_FILES >> 20));
        }
        faults
    }

    fn check_kind(&self, faults: &mut Vec<String>) {
        match self.dut {
            Dut::KnownRate(0) | Dut::KnownLoss(0) | Dut::KnownDuplication(0) | Dut::KnownDelay(0) => {
                faults.push(format!("{} needs a number of at least 1", self.dut));
            }
            Dut::KnownDelay(ns) if ns > LONGEST_DELAY_NS => {
                faults.push("known-delay is at most 200us".into())
            }
            _ => {}
        }
        let tables = self.more_routes != Filler::default() || self.more_neighbours != Filler::default();
        let tables = tables || !self.routes.is_empty() || !self.neighbours.is_empty();
        if !self.dut.routes() && tables {
            faults.push(format!("{} does not route: it can have no routes and no neighbours", self.dut));
        }
        let ends = [&self.inside, &self.outside].into_iter().any(|end| *end != Interface::default());
        let untouched = self.rules.is_empty() && self.sysctls.is_empty() && self.commands.is_empty();
        if self.dut == Dut::TesterBaseline && (ends || !untouched || !self.files.is_empty()) {
            faults.push(
                "tester-baseline is the tester alone: there is no DUT on which anything could be set".into(),
            );
        }
    }
}

/// A setting that a veth does not have is refused, not passed over: a plan must not seem to have measured it.
fn check_interface(end: &str, settings: &Interface, faults: &mut Vec<String>) {
    let Interface { mtu, features, private_flags, queues, .. } = settings;
    let threaded = features.get(&Feature::ThreadedNapi) == Some(&true);
    let ring = "its ring always holds 256 frames (VETH_RING_SIZE in drivers/net/veth.c)";
    let irq = "it has no interrupts; with threaded-napi, irq names the CPUs of the NAPI threads";
    let waits = settings.rx_wait_ns.is_some() || settings.rx_wait_frames.is_some();
    let missing = [
        (settings.rx_ring.is_some() || settings.tx_ring.is_some(), "the ring's size", ring),
        (waits, "interrupt coalescing", "it has no interrupts"),
        (!private_flags.is_empty(), "private flags", "its driver has none"),
        (settings.irq.is_some() && !threaded, "interrupt affinity", irq),
        (features.contains_key(&Feature::FlowControl), "flow-control", "it sends no pause frames"),
        (features.contains_key(&Feature::AdaptiveInterrupts), "adaptive-interrupts", "it has no interrupts"),
        (features.contains_key(&Feature::VlanTso), "vlan-tso", "Linux has no such switch"),
    ];
    for (_, what, why) in missing.iter().filter(|(set, ..)| *set) {
        faults.push(format!("{end}: {what} cannot be set on a veth: {why}"));
    }
    if mtu.is_some_and(|mtu| !(68..=65_535).contains(&mtu)) {
        faults.push(format!("{end}: an MTU goes from 68 to 65535"));
    }
    if queues.is_some_and(|queues| !(1..=1024).contains(&queues)) {
        faults.push(format!("{end}: queues go from 1 to 1024"));
    }
    for (what, cpus) in [("rps", &settings.rps), ("xps", &settings.xps), ("irq", &settings.irq)] {
        if cpus.as_ref().is_some_and(|cpus| cpus.is_empty() || cpus.iter().any(|cpu| *cpu >= 8192)) {
            faults.push(format!("{end}: {what} needs numbers of CPUs"));
        }
    }
}

fn check_route(route: &Route, faults: &mut Vec<String>) {
    if route.via.is_some_and(|via| via.is_ipv4() != route.to.address.is_ipv4()) {
        faults.push(format!("route {}: its next hop is of the other IP version", route.to));
    }
}

#[cfg(test)]
pub(super) mod tests;
