//! The DUT's side of a lane: its interfaces, sysctls, addresses and routes, the parts that can be exchanged while it stands, and
//! the eBPF programs that forward in place of the kernel or keep an interface polled.

use super::addresses::{self, GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::node::has_ipv6;
use super::rules::RuleSet;
use super::{Interface, LabSpec, Node, Setup, cards, workspace};
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::host::changes::Change;
use crate::net::{MacAddr, Netns, sysctl};
use crate::ports::attached::attach as attach_xdp;
use aya::Ebpf;
use aya::programs::{Program, TcAttachType};
use linerate_plan::settings::{CardSetting, Dut, End, Segment, Settings};
use linerate_wire::Family;
use std::collections::BTreeSet;
use std::mem::offset_of;
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
    /// Frames, in the present load, of the kind that is lost.
    matched: u64,
    pad: [u64; 4],
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
    /// The first router's end of the link to the second, where there are two.
    pub(super) between: Option<Interface>,
    /// The one that forwards first.
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) known: Option<MappedArray<Known>>,
    /// When the first frame of a load came to a DUT with a known answer.
    first: Option<MappedArray<u64>>,
    pub(super) rules: RuleSet,
    pub(super) workspace: Option<workspace::Workspace>,
    /// Attached while they are here.
    pub(super) programs: Vec<Ebpf>,
    /// Sysctls that were set, with their values before and their namespaces.
    sysctls: Vec<(Netns, Change)>,
    /// Set when the user wants to stop.
    interrupted: Option<&'static AtomicBool>,
    /// Namespaces that have names are left to themselves.
    kept: AtomicBool,
}

impl DutEnd {
    /// The way into the workspace of its commands; `None` if they run in its namespace alone.
    pub fn entry(&self) -> Option<workspace::Entry> {
        self.workspace
            .as_ref()
            .map(|workspace| workspace.entry.clone())
    }

    /// The namespaces that its frames pass.
    pub fn namespaces(&self) -> Vec<&Netns> {
        self.nodes.iter().map(|node| &node.namespace).collect()
    }

    /// A DUT with these cards, towards generator and receiver. `router`: the interfaces by which the first of `nodes` forwards (for
    /// a bridge, the cards as well).
    pub(super) fn new(
        nodes: Vec<Arc<Node>>,
        [inside, outside]: [Interface; 2],
        router: [Interface; 2],
        interrupted: Option<&'static AtomicBool>,
    ) -> DutEnd {
        let namespace = nodes[0].namespace.clone();
        DutEnd {
            rules: RuleSet::new(&namespace, interrupted),
            namespace,
            inside,
            outside,
            router,
            between: None,
            nodes,
            known: None,
            first: None,
            workspace: None,
            programs: Vec::new(),
            sysctls: Vec::new(),
            interrupted,
            kept: AtomicBool::new(false),
        }
    }

    /// A load is about to begin: a DUT with a known answer counts its time and its frames from the next frame on.
    pub fn begin_load(&self) {
        self.first.iter().for_each(|first| first.set(0, 0));
        if let Some(known) = &self.known {
            (0..bpf::possible_cpus())
                .for_each(|cpu| known.set_field(cpu, offset_of!(Known, matched), 0));
        }
    }

    /// The rules may have been loaded again, and so count from 0.
    pub fn count_from_0(&self) {
        self.rules.count_from_0();
    }

    /// Writes the files and runs the commands.
    pub(super) fn prepare(&mut self, setup: &Setup) -> Result<(), Error> {
        if setup.settings.files.is_empty() && setup.settings.commands.is_empty() {
            return Ok(());
        }
        // In place before the first command: if one fails, the commands before it are undone.
        let workspace =
            workspace::Workspace::new(&self.namespace, &setup.settings.files, self.interrupted)?;
        let workspace = self.workspace.insert(workspace);
        setup
            .settings
            .commands
            .iter()
            .try_for_each(|step| workspace.run_step(step))
    }

    /// Whether the DUT can be left to itself: its programs are held by this process, and go with it.
    pub(super) fn outlive(&self) -> Result<(), Error> {
        if !self.programs.is_empty() {
            let why = "a DUT that is an eBPF program (xdp, known-...) ends with linerate and cannot be left up";
            return Err(Error::Refused(why.into()));
        }
        self.kept.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the router its addresses, and the routes and neighbours that the traffic needs. `tester`: the Ethernet addresses of
    /// generator and receiver.
    fn addresses(&self, tester: [MacAddr; 2]) -> Result<(), Error> {
        let families = if has_ipv6(&self.namespace) { 2 } else { 1 };
        for ((interface, side), mac) in self
            .router
            .iter()
            .zip([&GENERATOR_SIDE, &RECEIVER_SIDE])
            .zip(tester)
        {
            let route = &interface.node.route;
            for Side {
                dut,
                tester,
                network,
            } in side.iter().take(families)
            {
                route.add_address(interface.index, dut.0, dut.1)?;
                route.add_neighbour(interface.index, *tester, mac)?;
                route.add_route(network.0, network.1, Some(*tester), interface.index)?;
            }
        }
        Ok(())
    }

    /// Routes and neighbours beyond those that the traffic needs.
    fn tables(&self, setup: &Setup) -> Result<(), Error> {
        let end = |end: End| match end {
            End::In => (&self.router[0], &GENERATOR_SIDE),
            End::Out => (&self.router[1], &RECEIVER_SIDE),
        };
        let tester = |side: &[Side; 2], v4: bool| side[usize::from(!v4)].tester;
        let Settings {
            routes, neighbours, ..
        } = &setup.settings;
        for neighbour in &neighbours.explicit {
            let (at, _) = end(neighbour.end);
            let route = &at.node.route;
            route.add_neighbour(at.index, neighbour.address, neighbour.mac.0)?;
        }
        for wanted in &routes.explicit {
            let (interface, side) = end(wanted.end);
            let (network, length) = wanted.to.prefix();
            let via = wanted
                .via
                .unwrap_or_else(|| tester(side, network.is_ipv4()));
            let route = &interface.node.route;
            route.add_route(network, length, Some(via), interface.index)?;
        }
        let go_on = || !self.interrupted.is_some_and(|i| i.load(Ordering::Relaxed));
        let (Interface { node, index, .. }, _) = end(End::Out);
        let (route, outside) = (&node.route, *index);
        let [routes, neighbours] = [routes.count, neighbours.count].map(Option::unwrap_or_default);
        for family in setup.families.iter().copied() {
            let gateway = tester(&RECEIVER_SIDE, family == Family::V4);
            route.add_routes(
                addresses::routes(family, routes),
                Some(gateway),
                outside,
                go_on,
            )?;
            route.add_neighbours(outside, addresses::neighbours(family, neighbours), go_on)?;
        }
        match go_on() {
            true => Ok(()),
            false => Err(Error::Refused(
                "interrupted while the lab was being built".into(),
            )),
        }
    }

    /// Applies all settings except those of the host, and returns these. `tester`: the Ethernet addresses of generator and receiver.
    pub(super) fn configure(
        &mut self,
        setup: &Setup,
        spec: &LabSpec,
        tester: [MacAddr; 2],
    ) -> Result<BTreeSet<Change>, Error> {
        for interface in [&self.inside, &self.outside]
            .into_iter()
            .chain(&self.router)
        {
            interface.set_up()?;
        }
        self.inside.enable_napi()?;
        if spec.both_ways {
            self.outside.enable_napi()?;
        }
        let host = self.load(setup)?;
        if setup.settings.dut.routes() {
            self.addresses(tester)?;
            self.tables(setup)?;
        }
        cards::set_queues(self, setup, spec)?;
        attach_programs(self, setup, spec.both_ways)?;
        cards::apply(self, setup, spec)?;
        Ok(host)
    }

    /// Sets a setup's sysctls and loads its rules. Returns the settings that are the host's.
    fn load(&mut self, setup: &Setup) -> Result<BTreeSet<Change>, Error> {
        let later = self.set_sysctls(setup.sysctls()?)?;
        self.rules.load(setup)?;
        // Some come with the modules of the rules.
        let of_host = self.set_sysctls(later)?;
        Ok(of_host.into_iter().chain(setup.host_changes()?).collect())
    }

    /// Exchanges rules and sysctls. Returns the settings that are the host's.
    pub(super) fn exchange(&mut self, setup: &Setup) -> Result<BTreeSet<Change>, Error> {
        self.rules.clear()?;
        while let Some((namespace, before)) = self.sysctls.pop() {
            sysctl::set(&namespace, before.key().unwrap_or_default(), &before.value)?;
        }
        self.load(setup)
    }

    /// Sets those sysctls that are the namespace's, and returns the others.
    fn set_sysctls(&mut self, wanted: Vec<Change>) -> Result<Vec<Change>, Error> {
        let mut others = Vec::new();
        for wanted in wanted {
            let key = wanted.key().unwrap_or_default();
            if !sysctl::is_settable(&self.namespace, key)? {
                others.push(wanted);
                continue;
            }
            for namespace in self.namespaces_of(key) {
                let value = sysctl::get(&namespace, key)?;
                sysctl::set(&namespace, key, &wanted.value)?;
                let kept = sysctl::get(&namespace, key)?;
                if !kept.split_whitespace().eq(wanted.value.split_whitespace()) {
                    let (key, wanted) = (key.replace('/', "."), &wanted.value);
                    return Err(Error::Refused(format!(
                        "sysctl {key} was set to {wanted}, and the kernel keeps {kept}"
                    )));
                }
                let before = Change {
                    value,
                    ..wanted.clone()
                };
                self.sysctls.push((namespace, before));
            }
        }
        Ok(others)
    }

    /// The namespaces that a sysctl is set in: those that forward; for bridges also that of the cards, where a nested DUT has its bridges.
    fn namespaces_of(&self, key: &str) -> Vec<Netns> {
        if self.between.is_some() {
            return self.namespaces().into_iter().cloned().collect();
        }
        let cards = &self.inside.node.namespace;
        let has_bridges = key.starts_with("net/bridge/") && cards.inode() != self.namespace.inode();
        let mut all = vec![self.namespace.clone()];
        all.extend(has_bridges.then(|| cards.clone()));
        all
    }
}

impl Drop for DutEnd {
    fn drop(&mut self) {
        if let Some(workspace) = &mut self.workspace {
            workspace.undo();
            if !*self.kept.get_mut() {
                workspace::end_stragglers(self.nodes.iter().map(|node| node.namespace.inode()));
            }
        }
    }
}

/// The program of dut.bpf.c that forwards in place of the kernel, or disturbs it, with its constants; none for most kinds.
fn program(dut: Dut) -> Option<(&'static str, Constants)> {
    let none = Constants::default();
    Some(match dut {
        Dut::Xdp => ("xdp_forward", none),
        Dut::KnownRate(rate) => ("known_rate", Constants { rate, ..none }),
        Dut::KnownLoss(one_in) => ("known_loss", Constants { one_in, ..none }),
        Dut::KnownLossOf { one_in, of } => (
            "known_loss_of",
            Constants {
                one_in,
                of: kind(of),
                ..none
            },
        ),
        Dut::KnownNumbers(shift) => ("known_numbers", Constants { shift, ..none }),
        Dut::KnownDuplication(one_in) => ("known_duplication", Constants { one_in, ..none }),
        Dut::KnownDelay(ns) => (
            "known_delay",
            Constants {
                delays_ns: [ns as u32, 0],
                ..none
            },
        ),
        Dut::KnownDelays(ns) => (
            "known_delay",
            Constants {
                delays_ns: ns,
                ..none
            },
        ),
        Dut::KnownQueue { frames, rate } => (
            "known_queue",
            Constants {
                rate,
                queue: frames,
                ..none
            },
        ),
        Dut::KnownOutage { ns, after_ns } => (
            "known_outage",
            Constants {
                outage_ns: [after_ns, ns],
                ..none
            },
        ),
        _ => return None,
    })
}

/// The kind of a connection's frame in its direction, as dut.bpf.c has it.
fn kind(of: Segment) -> u32 {
    match of {
        Segment::Syn | Segment::SynAck => 0,
        Segment::Request | Segment::LastAck => 1,
        Segment::Answer | Segment::Fin => 2,
    }
}

/// Constants of dut.bpf.c.
#[derive(Debug, Clone, Copy, Default)]
struct Constants {
    rate: u32,
    one_in: u32,
    /// The kind of frame that is lost, in its direction.
    of: u32,
    /// Of frames in turn; 0 as the second: the same.
    delays_ns: [u32; 2],
    queue: u32,
    /// Of sequence numbers.
    shift: u32,
    /// From the first frame of a load until it begins, and its length.
    outage_ns: [u64; 2],
}

fn load(constants: Constants) -> Result<Ebpf, Error> {
    let cpus = bpf::possible_cpus() as u32;
    let Constants {
        rate,
        one_in,
        of,
        delays_ns: [delay_ns, other_ns],
        queue,
        shift,
        outage_ns,
    } = constants;
    let numbers = [
        ("RATE", rate),
        ("ONE_IN", one_in),
        ("OF", of),
        ("DELAY_NS", delay_ns),
        ("OTHER_DELAY_NS", other_ns),
        ("QUEUE", queue),
        ("SHIFT", shift),
    ];
    let [after, lasts] = outage_ns.map(u64::to_ne_bytes);
    let times: [(_, &[u8]); 2] = [("OUT_AFTER_NS", &after), ("OUT_NS", &lasts)];
    bpf::DUT.load(&numbers, &times, &[("known", cpus), ("buckets", cpus)])
}

/// Loads and attaches the programs that a setup needs. They are detached when the DUT goes.
pub(super) fn attach_programs(
    dut: &mut DutEnd,
    setup: &Setup,
    both_ways: bool,
) -> Result<(), Error> {
    let (inside, outside) = (dut.inside.clone(), dut.outside.clone());
    let pass = |needed: bool| needed.then_some(("pass", Constants::default()));
    let of_server = setup.settings.dut.loses_of_server();
    let forward = program(setup.settings.dut).filter(|_| !of_server);
    let forward = forward.into_iter().chain(pass(setup.needs_pass()));
    // A DUT with a known answer has it in one direction: forward, unless it loses frames of servers.
    let reverse = match setup.settings.dut {
        dut if of_server || dut == Dut::Xdp || dut.changes_numbers() => program(dut),
        _ => pass(setup.settings.outside.set.contains_key(&CardSetting::Gro)),
    };
    let reverse = reverse
        .filter(|_| both_ways)
        .map(|program| (program, &outside, &inside));
    for ((name, constants), from, to) in forward
        .map(|program| (program, &inside, &outside))
        .chain(reverse)
    {
        let mut ebpf = load(constants)?;
        match name {
            "known_duplication" => attach_egress(&mut ebpf, name, dut)?,
            _ => {
                attach_xdp(&mut ebpf, name, &from.node.namespace, from.index)?;
            }
        }
        match name {
            "xdp_forward" => dut
                .namespace
                .run(|| bpf::set_devmap(&mut ebpf, "egress", 0, to.index))?,
            "pass" => {}
            _ => {
                dut.known = Some(MappedArray::take(&mut ebpf, "known", bpf::possible_cpus())?);
                dut.first = Some(MappedArray::take(&mut ebpf, "first", 1)?);
            }
        }
        dut.programs.push(ebpf);
    }
    Ok(())
}

fn attach_egress(ebpf: &mut Ebpf, name: &str, dut: &DutEnd) -> Result<(), Error> {
    let Some(Program::SchedClassifier(program)) = ebpf.program_mut(name) else {
        return Err(Error::Refused(format!("there is no classifier '{name}'")));
    };
    bpf::verify(name, || program.load())?;
    let attached = dut.namespace.enter(|| {
        // Kernels before 6.6 need the qdisc that later ones do without.
        let _ = aya::programs::tc::qdisc_add_clsact(&dut.outside.name);
        program.attach(&dut.outside.name, TcAttachType::Egress)
    })?;
    attached.map(drop).map_err(|e| bpf::program_error(name, &e))
}

/// Attaches the program that passes everything, to find out whether this kernel can.
///
/// # Errors
/// The kernel refuses the program.
pub(super) fn try_pass(namespace: &Netns, ifindex: u32) -> Result<Ebpf, Error> {
    let mut ebpf = load(Constants::default())?;
    attach_xdp(&mut ebpf, "pass", namespace, ifindex)?;
    Ok(ebpf)
}
