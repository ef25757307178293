//! The DUT's side of a lane: settings, addresses, routes, and the parts that can be exchanged while it stands.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::rules::RuleSet;
use super::topology::Node;
use super::{Interface, LabSpec, Setup, cards, enable_napi, filler, interface, program, room};
use crate::error::Error;
use crate::host::changes::Change;
use crate::net::netlink::Route;
use crate::net::{MacAddr, Netns, sysctl};
use crate::ports::mapped::MappedArray;
use aya::Ebpf;
use linerate_plan::settings::{End, Settings};
use linerate_wire::Family;
use std::sync::atomic::{AtomicBool, Ordering};

/// A router that sends no answers and no announcements; these exist in every network namespace with IP version 4…
const ROUTER_V4: [(&str, &str); 5] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
];

/// …and these with version 6. Multicast listener reports cannot be turned off, but their repetition put off.
const ROUTER_V6: [(&str, &str); 8] = [
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/forwarding", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/mldv1_unsolicited_report_interval", "86400000"),
    ("net/ipv6/conf/default/mldv2_unsolicited_report_interval", "86400000"),
];

/// Makes the namespace a router, before it has interfaces.
pub(super) fn prepare(namespace: &Netns) -> Result<Route, Error> {
    sysctl::apply(namespace, &ROUTER_V4)?;
    if has_ipv6(namespace) {
        sysctl::apply(namespace, &ROUTER_V6)?;
    }
    Route::open(namespace)
}

pub(super) fn has_ipv6(namespace: &Netns) -> bool {
    sysctl::get(namespace, "net/ipv6/conf/all/forwarding").is_ok()
}

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
    nodes: Vec<Node>,
    cards_at: [usize; 2],
    pub(super) known: Option<MappedArray<Known>>,
    pub(super) rules: RuleSet,
    pub(super) room: Option<room::Room>,
    /// Sysctls that were set, and their values before.
    sysctls: Vec<Sysctl>,
    programs: Vec<Ebpf>,
    /// Namespaces that have names are left to themselves.
    kept: AtomicBool,
}

impl DutEnd {
    /// The way into the room of its commands; `None` if they run in its namespace alone.
    pub fn door(&self) -> Option<room::Door> {
        self.room.as_ref().map(|room| room.door.clone())
    }

    /// `cards`: towards the generator and towards the receiver, each at one of `nodes`; `router`: the interfaces by which the
    /// first of `nodes` forwards (for a bridge, the cards as well).
    pub(super) fn new(
        nodes: Vec<Node>,
        cards_at: [usize; 2],
        cards: &[String; 2],
        router: &[String; 2],
    ) -> Result<Self, Error> {
        let at = |node: usize, name: &str| interface(&nodes[node].route, name);
        Ok(DutEnd {
            namespace: nodes[0].namespace.clone(),
            inside: at(cards_at[0], &cards[0])?,
            outside: at(cards_at[1], &cards[1])?,
            router: [at(0, &router[0])?, at(0, &router[1])?],
            cards_at,
            nodes,
            known: None,
            rules: RuleSet::default(),
            room: None,
            sysctls: Vec::new(),
            programs: Vec::new(),
            kept: AtomicBool::new(false),
        })
    }

    /// Applies all settings except those of the host, and returns these.
    pub(super) fn configure(
        &mut self,
        setup: &Setup,
        spec: &LabSpec,
        generator: MacAddr,
        receiver: MacAddr,
    ) -> Result<Vec<Change>, Error> {
        for (card, node) in [(&self.inside, self.cards_at[0]), (&self.outside, self.cards_at[1])] {
            self.nodes[node].route.set_up(card.index, true)?;
        }
        for interface in &self.router {
            self.nodes[0].route.set_up(interface.index, true)?;
        }
        enable_napi(&self.inside_node().namespace, &self.inside.name)?;
        let mut later = wanted_sysctls(setup)?;
        self.set_sysctls(&mut later)?;
        if setup.settings.dut.routes() {
            self.addresses(generator, receiver)?;
            self.tables(setup, spec)?;
        }
        self.rules.load(&self.namespace, setup, spec.interrupted)?;
        // Rules load modules, and these bring settings of their own.
        self.set_sysctls(&mut later)?;
        cards::set_queues(self, setup, spec)?;
        let attached = program::attach(self, setup)?;
        self.programs.extend(attached.programs);
        self.known = attached.known;
        cards::apply(self, setup, spec)?;
        later.iter().map(Sysctl::of_host).collect()
    }

    /// Writes the files and runs the commands.
    pub(super) fn furnish(&mut self, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
        if setup.settings.files.is_empty() && setup.settings.commands.is_empty() {
            return Ok(());
        }
        // In place before the first command: if one fails, the commands before it are undone.
        let room = self.room.insert(room::Room::new(&self.namespace, &setup.settings.files)?);
        setup.settings.commands.iter().try_for_each(|step| room.run_step(step, spec.interrupted))
    }

    /// The namespaces with their roles, the one that forwards first.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&'static str, &Netns)> {
        self.nodes.iter().map(|node| (node.role, &node.namespace))
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = &Route> {
        self.nodes.iter().map(|node| &node.route)
    }

    pub(super) fn inside_node(&self) -> &Node {
        &self.nodes[self.cards_at[0]]
    }

    pub(super) fn outside_node(&self) -> &Node {
        &self.nodes[self.cards_at[1]]
    }

    /// Whether the DUT can be left to itself: its programs are held by this process, and go with it.
    pub(super) fn outlive(&self) -> Result<(), Error> {
        if !self.programs.is_empty() {
            return Err(Error::Refused(
                "a DUT that is an eBPF program (xdp, known-...) ends with linerate and cannot be left up"
                    .into(),
            ));
        }
        self.kept.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn families(&self) -> usize {
        if has_ipv6(&self.namespace) { 2 } else { 1 }
    }

    fn addresses(&self, generator: MacAddr, receiver: MacAddr) -> Result<(), Error> {
        let [inside, outside] = &self.router;
        let route = &self.nodes[0].route;
        for (interface, side, mac) in
            [(inside, &GENERATOR_SIDE, generator), (outside, &RECEIVER_SIDE, receiver)]
        {
            for Side { dut, tester, network } in side.iter().take(self.families()) {
                route.add_address(interface.index, dut.0, dut.1)?;
                route.add_neighbour(interface.index, *tester, mac)?;
                route.add_route(network.0, network.1, Some(*tester), interface.index)?;
            }
        }
        Ok(())
    }

    /// Routes and neighbours beyond those that the traffic needs.
    fn tables(&self, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
        let route = &self.nodes[0].route;
        let end = |end: End| match end {
            End::In => (&self.router[0], &GENERATOR_SIDE),
            End::Out => (&self.router[1], &RECEIVER_SIDE),
        };
        let tester = |side: &[Side; 2], v4: bool| side[usize::from(!v4)].tester;
        let Settings { routes, neighbours, .. } = &setup.settings;
        for neighbour in &neighbours.explicit {
            route.add_neighbour(end(neighbour.end).0.index, neighbour.address, neighbour.mac.0)?;
        }
        for wanted in &routes.explicit {
            let (interface, side) = end(wanted.end);
            let (network, length) = wanted.to.prefix();
            let via = wanted.via.unwrap_or_else(|| tester(side, network.is_ipv4()));
            route.add_route(network, length, Some(via), interface.index)?;
        }
        let go_on = || !spec.interrupted.is_some_and(|i| i.load(Ordering::Relaxed));
        let outside = self.router[1].index;
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

    /// Sets those sysctls that are the namespace's, and leaves the others in the list.
    fn set_sysctls(&mut self, wanted: &mut Vec<Sysctl>) -> Result<(), Error> {
        for one in std::mem::take(wanted) {
            if !sysctl::is_settable(&self.namespace, &one.path)? {
                wanted.push(one);
                continue;
            }
            let value = sysctl::get(&self.namespace, &one.path)?;
            sysctl::set(&self.namespace, &one.path, &one.value)?;
            self.sysctls.push(Sysctl { path: one.path, value });
        }
        Ok(())
    }

    /// Restores the sysctls of the old setup, and applies those and the rules of another; returns the settings of the host. The
    /// old rules must be removed first.
    pub(super) fn exchange_rules(
        &mut self,
        setup: &Setup,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Vec<Change>, Error> {
        while let Some(changed) = self.sysctls.pop() {
            sysctl::set(&self.namespace, &changed.path, &changed.value)?;
        }
        let mut later = wanted_sysctls(setup)?;
        self.set_sysctls(&mut later)?;
        self.rules.load(&self.namespace, setup, interrupted)?;
        self.set_sysctls(&mut later)?;
        later.iter().map(Sysctl::of_host).collect()
    }
}

/// A sysctl with a value.
struct Sysctl {
    path: String,
    value: String,
}

impl Sysctl {
    fn of_host(&self) -> Result<Change, Error> {
        Change::sysctl(&self.path, &self.value)
    }
}

fn wanted_sysctls(setup: &Setup) -> Result<Vec<Sysctl>, Error> {
    let wanted = |(key, value): (&String, &String)| {
        sysctl::check_value(key, value)?;
        Ok(Sysctl { path: sysctl::path_of(key)?, value: value.trim().to_owned() })
    };
    setup.settings.sysctls.iter().map(wanted).collect()
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
