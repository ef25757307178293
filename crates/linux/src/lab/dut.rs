//! The DUT's side of a lane: its interfaces, sysctls, addresses and routes, and the parts that can be exchanged while it stands.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::rules::RuleSet;
use super::{Interface, Node, Setup, filler, room};
use crate::bpf::MappedArray;
use crate::error::Error;
use crate::host::changes::Change;
use crate::net::{MacAddr, Netns, sysctl};
use aya::Ebpf;
use linerate_plan::settings::{End, Settings};
use linerate_wire::Family;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `struct known` in dut.bpf.c: counters of a DUT with a known answer.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Known {
    /// Frames that came in.
    pub seen: u64,
    /// Frames dropped.
    pub dropped: u64,
    /// Frames doubled.
    pub duplicated: u64,
    pad: [u64; 5],
}

/// The DUT of a lane.
pub struct DutEnd {
    /// The namespace that forwards: where rule sets, sysctls, routes and commands belong.
    pub namespace: Netns,
    /// The card towards the generator.
    pub inside: Interface,
    /// The card towards the receiver.
    pub outside: Interface,
    /// Interfaces that forward, towards either side: the cards themselves for most kinds.
    pub(super) router: [Interface; 2],
    /// The one that forwards first.
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) known: Option<MappedArray<Known>>,
    pub(super) rules: RuleSet,
    pub(super) room: Option<room::Room>,
    /// Attached while they are here.
    pub(super) programs: Vec<Ebpf>,
    /// Sysctls that were set, and their values before.
    sysctls: Vec<Sysctl>,
    /// Namespaces that have names are left to themselves.
    kept: AtomicBool,
}

impl DutEnd {
    /// The way into the room of its commands; `None` if they run in its namespace alone.
    pub fn door(&self) -> Option<room::Door> {
        self.room.as_ref().map(|room| room.door.clone())
    }

    /// A DUT with these cards, towards generator and receiver. `router`: the interfaces by which the first of `nodes` forwards (for
    /// a bridge, the cards as well).
    pub(super) fn new(nodes: Vec<Arc<Node>>, cards: [Interface; 2], router: [Interface; 2]) -> DutEnd {
        let [inside, outside] = cards;
        DutEnd {
            namespace: nodes[0].namespace.clone(),
            inside,
            outside,
            router,
            nodes,
            known: None,
            rules: RuleSet::default(),
            room: None,
            programs: Vec::new(),
            sysctls: Vec::new(),
            kept: AtomicBool::new(false),
        }
    }

    /// Writes the files and runs the commands.
    pub(super) fn furnish(&mut self, setup: &Setup, interrupted: Option<&AtomicBool>) -> Result<(), Error> {
        if setup.settings.files.is_empty() && setup.settings.commands.is_empty() {
            return Ok(());
        }
        // In place before the first command: if one fails, the commands before it are undone.
        let room = self.room.insert(room::Room::new(&self.namespace, &setup.settings.files)?);
        setup.settings.commands.iter().try_for_each(|step| room.run_step(step, interrupted))
    }

    /// Whether the DUT can be left to itself: its programs are held by this process, and go with it.
    pub(super) fn outlive(&self) -> Result<(), Error> {
        if !self.programs.is_empty() {
            let why =
                "a DUT that is an eBPF program (xdp, known-...) ends with linerate and cannot be left up";
            return Err(Error::Refused(why.into()));
        }
        self.kept.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the router its addresses, and the routes and neighbours that the traffic needs. `tester`: the Ethernet addresses of
    /// generator and receiver.
    pub(super) fn addresses(&self, tester: [MacAddr; 2]) -> Result<(), Error> {
        let route = &self.nodes[0].route;
        let families = if self.nodes[0].has_ipv6() { 2 } else { 1 };
        for ((interface, side), mac) in self.router.iter().zip([&GENERATOR_SIDE, &RECEIVER_SIDE]).zip(tester)
        {
            for Side { dut, tester, network } in side.iter().take(families) {
                route.add_address(interface.index, dut.0, dut.1)?;
                route.add_neighbour(interface.index, *tester, mac)?;
                route.add_route(network.0, network.1, Some(*tester), interface.index)?;
            }
        }
        Ok(())
    }

    /// Routes and neighbours beyond those that the traffic needs.
    pub(super) fn tables(&self, setup: &Setup, interrupted: Option<&AtomicBool>) -> Result<(), Error> {
        let route = &self.nodes[0].route;
        let end = |end: End| match end {
            End::In => (self.router[0].index, &GENERATOR_SIDE),
            End::Out => (self.router[1].index, &RECEIVER_SIDE),
        };
        let tester = |side: &[Side; 2], v4: bool| side[usize::from(!v4)].tester;
        let Settings { routes, neighbours, .. } = &setup.settings;
        for neighbour in &neighbours.explicit {
            route.add_neighbour(end(neighbour.end).0, neighbour.address, neighbour.mac.0)?;
        }
        for wanted in &routes.explicit {
            let (interface, side) = end(wanted.end);
            let (network, length) = wanted.to.prefix();
            let via = wanted.via.unwrap_or_else(|| tester(side, network.is_ipv4()));
            route.add_route(network, length, Some(via), interface)?;
        }
        let go_on = || !interrupted.is_some_and(|i| i.load(Ordering::Relaxed));
        let (outside, _) = end(End::Out);
        let [routes, neighbours] = [routes.count, neighbours.count].map(Option::unwrap_or_default);
        for family in setup.families.iter().copied() {
            let gateway = tester(&RECEIVER_SIDE, family == Family::V4);
            route.add_routes(filler::routes(family, routes), Some(gateway), outside, go_on)?;
            route.add_neighbours(outside, filler::neighbours(family, neighbours), go_on)?;
        }
        match go_on() {
            true => Ok(()),
            false => Err(Error::Refused("interrupted while the lab was being built".into())),
        }
    }

    /// Sets those of a setup's sysctls that are the namespace's, and returns the others.
    pub(super) fn set_sysctls(&mut self, setup: &Setup) -> Result<Vec<Sysctl>, Error> {
        let wanted = |(key, value): (&String, &String)| {
            sysctl::check_value(key, value)?;
            Ok(Sysctl { path: sysctl::path_of(key)?, value: value.trim().to_owned() })
        };
        self.set(setup.settings.sysctls.iter().map(wanted).collect::<Result<_, Error>>()?)
    }

    fn set(&mut self, wanted: Vec<Sysctl>) -> Result<Vec<Sysctl>, Error> {
        let mut others = Vec::new();
        for one in wanted {
            if !sysctl::is_settable(&self.namespace, &one.path)? {
                others.push(one);
                continue;
            }
            let value = sysctl::get(&self.namespace, &one.path)?;
            sysctl::set(&self.namespace, &one.path, &one.value)?;
            self.sysctls.push(Sysctl { path: one.path, value });
        }
        Ok(others)
    }

    /// Restores the sysctls that were set.
    pub(super) fn restore_sysctls(&mut self) -> Result<(), Error> {
        while let Some(changed) = self.sysctls.pop() {
            sysctl::set(&self.namespace, &changed.path, &changed.value)?;
        }
        Ok(())
    }

    /// Loads a setup's rules, and sets the sysctls that come with their modules. Returns the rest, as settings of the host.
    pub(super) fn load_rules(
        &mut self,
        setup: &Setup,
        sysctls: Vec<Sysctl>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Vec<Change>, Error> {
        self.rules.load(&self.namespace, setup, interrupted)?;
        let of_host = self.set(sysctls)?;
        of_host.iter().map(|Sysctl { path, value }| Change::sysctl(path, value)).collect()
    }
}

/// A sysctl with a value.
pub(super) struct Sysctl {
    path: String,
    value: String,
}

impl Drop for DutEnd {
    fn drop(&mut self) {
        if let Some(room) = &mut self.room {
            room.undo();
            if !*self.kept.get_mut() {
                room::end_stragglers(self.nodes.iter().map(|node| node.namespace.inode()));
            }
        }
    }
}
