//! A lab that is up, and its lanes: each a DUT with its links to the tester. A lane's rules can be exchanged while it stands.

use super::rules::listed;
use super::setup::interface_names;
use super::topology::Wiring;
use super::{DutEnd, Interface, LabSpec, Node, Setup, support, tunnels};
use crate::error::Error;
use crate::host::changes::{Change, Consent, Host, HostChanges};
use crate::net::registry::NamespaceRecord;
use crate::net::{MacAddr, Netns, sysctl};
use crate::process::Job;
use linerate_measure::record::RuleCount;
use linerate_plan::rules::Firewall;
use linerate_plan::settings::Dut;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A lab that is up.
pub struct EmbeddedLab {
    /// Where the generator's interfaces are.
    pub generator: Arc<Node>,
    /// Where the receiver's interfaces are.
    pub receiver: Arc<Node>,
    /// The DUTs, in the order they were asked for.
    pub lanes: Vec<Lane>,
    pub spec: LabSpec,
    /// Dropped last: the host is restored when nothing needs its changes any more.
    host: HostChanges,
}

impl EmbeddedLab {
    /// Builds a lab with a lane for each setup.
    ///
    /// # Errors
    /// No privilege, an impossible setup, no consent to a change of the host, or a missing kernel feature. After an error the lab
    /// is removed, and the host is restored.
    pub fn build(spec: LabSpec, setups: &[Setup]) -> Result<Self, Error> {
        let mut host = Host::this().begin();
        for name in setups.iter().flat_map(|setup| &setup.settings.modules) {
            need_module(&mut host, name, spec.host_changes)?;
        }
        let (generator, receiver) = (Node::tester("generator")?, Node::tester("receiver")?);
        let mut lab = EmbeddedLab {
            generator,
            receiver,
            lanes: Vec::new(),
            spec,
            host,
        };
        for (number, setup) in setups.iter().enumerate() {
            let tester = [&lab.generator, &lab.receiver];
            let lane = Lane::build(&Wiring {
                spec: &lab.spec,
                tester,
                number,
                setup,
            })?;
            lab.lanes.push(lane);
        }
        lab.change_host()?;
        for Lane {
            dut, setup, fault, ..
        } in &mut lab.lanes
        {
            let prepared = dut.as_mut().map_or(Ok(()), |dut| dut.prepare(setup));
            match prepared {
                // The other variants can be measured.
                Err(error) if !lab.spec.is_interrupted() => *fault = Some(error.to_string()),
                done => done?,
            }
        }
        Ok(lab)
    }

    /// Makes the changes to the host that the lanes want, if they are agreed to.
    fn change_host(&mut self) -> Result<(), Error> {
        let mut wanted: Vec<Change> = self
            .lanes
            .iter()
            .flat_map(|lane| lane.host.clone())
            .collect();
        // Minima last: a number with a minimum may have been set below it.
        wanted.sort_by_key(|change| (change.at_least, change.clone()));
        wanted.dedup();
        let clash = wanted
            .windows(2)
            .find(|pair| pair[0].file == pair[1].file && !pair[1].at_least);
        if let Some([one, other]) = clash {
            return Err(Error::Refused(format!(
                "/{} cannot be {} and {} at once: it is the whole host's, so these lanes cannot stand side by side",
                one.file, one.value, other.value
            )));
        }
        let refused = self.spec.host_changes == Consent::Refused;
        if refused {
            wanted = Host::this().outstanding(&wanted)?;
            if !wanted.is_empty() {
                let by_hand: Vec<String> = wanted.iter().map(Change::by_hand).collect();
                return Err(without_consent(&by_hand.join("; ")));
            }
        }
        for change in &wanted {
            self.host.set(change)?;
        }
        for (change, refusal) in self.lanes.iter().filter_map(Lane::lacks_states) {
            if refused {
                return Err(refusal);
            }
            self.host.set(&change)?;
        }
        Ok(())
    }

    /// Gives the receivers CPUs of their own: their interfaces' NAPI threads. Their XDP programs must be attached.
    ///
    /// # Errors
    /// The kernel has no threaded NAPI.
    pub fn thread_receivers(&self, cpus: &[u32]) -> Result<(), Error> {
        let inside = |lane: &Lane| match self.spec.both_ways {
            true => lane.generator.thread_napi(cpus),
            false => Ok(()),
        };
        self.lanes
            .iter()
            .try_for_each(|lane| lane.receiver.thread_napi(cpus).and_then(|()| inside(lane)))
    }

    /// The namespaces by role, with the names that [`EmbeddedLab::persist`] gives them.
    pub fn names(&self, prefix: &str) -> BTreeMap<String, NamespaceRecord> {
        let record = |name, namespace: &Netns| NamespaceRecord {
            name,
            inode: namespace.inode(),
        };
        let named = self.named(prefix).into_iter();
        named
            .map(|(role, name, namespace)| (role, record(name, namespace)))
            .collect()
    }

    /// The namespaces, each with its role and its name.
    fn named(&self, prefix: &str) -> Vec<(String, String, &Netns)> {
        let tester = [("generator", &self.generator), ("receiver", &self.receiver)];
        let tester =
            tester.map(|(role, node)| (role.into(), format!("{prefix}-{role}"), &node.namespace));
        let mut all = Vec::from(tester);
        let duts = self
            .lanes
            .iter()
            .filter_map(|lane| Some((&lane.setup.name, lane.dut.as_ref()?)));
        for (n, (setup, dut)) in duts.enumerate() {
            for (part, node) in dut.nodes.iter().enumerate() {
                let (role, name) = match part {
                    0 => (format!("dut {n} ({setup})"), format!("{prefix}-dut{n}")),
                    _ => (
                        format!("dut {n}, {} ({setup})", node.role),
                        format!("{prefix}-dut{n}-{part}"),
                    ),
                };
                all.push((role, name, &node.namespace));
            }
        }
        all
    }

    /// Gives the namespaces names, so that they outlive the process and `ip netns exec` reaches them.
    ///
    /// # Errors
    /// A name is taken, or /run/netns cannot be written.
    pub fn persist(&self, prefix: &str) -> Result<(), Error> {
        for lane in &self.lanes {
            lane.dut.as_ref().map_or(Ok(()), |dut| dut.outlive())?;
            // Receivers other than XDP programs (tcpdump, sockets) need the NAPI that such a program brings along.
            lane.receiver.enable_napi()?;
        }
        self.named(prefix)
            .iter()
            .try_for_each(|(_, name, namespace)| namespace.persist(name))
    }
}

fn without_consent(by_hand: &str) -> Error {
    Error::Refused(format!(
        "this lab needs other settings of the whole host, and linerate changes nothing outside its namespaces without consent. By hand: {by_hand}"
    ))
}

/// A module must be there; loading it changes the host.
fn need_module(host: &mut HostChanges, name: &str, consent: Consent) -> Result<(), Error> {
    match support::is_present(name).map_err(Error::Refused)? {
        true => Ok(()),
        false if consent == Consent::Allowed => host.set(&Change::module(name)),
        false => Err(without_consent(&format!("modprobe {name}"))),
    }
}

/// A DUT with its links.
pub struct Lane {
    pub setup: Setup,
    /// Where frames leave.
    pub generator: Interface,
    /// Where they arrive.
    pub receiver: Interface,
    /// Receive queues of the receiver's interface: at least those of the layout.
    pub receiver_queues: u32,
    /// Receive queues of the generator's interface, which receives with both directions.
    pub generator_queues: u32,
    /// Two generator CPUs send into one receive queue of the DUT: then the kernel's count of frames that found it full is too
    /// low. At its inside, and at its outside.
    pub(super) shared_queue: [bool; 2],
    /// The DUT; none for the tester baseline.
    pub dut: Option<DutEnd>,
    /// Why the DUT is not what was asked for: a file or a command of the variant failed.
    pub fault: Option<String>,
    /// Settings of the host that the DUT wants.
    host: BTreeSet<Change>,
    spec: LabSpec,
}

impl Lane {
    /// Makes the DUT and its links, with all settings except those of the host.
    fn build(wiring: &Wiring<'_>) -> Result<Lane, Error> {
        let (spec, setup) = (wiring.spec.clone(), wiring.setup.clone());
        let mut dut = wiring.connect()?;
        let [generator, receiver] = wiring.tester_interfaces()?;
        for end in [&generator, &receiver] {
            end.set_up()?;
            end.send_to_napi()?;
        }
        let mut host = BTreeSet::new();
        // A veth shows a carrier before its queues are live, and loses frames sent in between.
        if let Some(dut) = &mut dut {
            if let Some(queues) = setup.settings.inside.queues() {
                // The generator redirects, which needs no queue of its own end.
                let own = spec.queues().max(queues);
                generator
                    .ethtool()?
                    .set_channels(&generator.name, own, queues)?;
            }
            if let Some(queues) = setup.settings.outside.queues().filter(|_| spec.both_ways) {
                let own = spec.queues().max(queues);
                receiver
                    .ethtool()?
                    .set_channels(&receiver.name, own, queues)?;
            }
            host = dut.configure(&setup, &spec, [generator.mac, receiver.mac])?;
            dut.nodes.iter().try_for_each(|node| node.wait_running())?;
            if setup.settings.dut == Dut::Wireguard {
                tunnels::shake_hands(dut, &interface_names(wiring.number)[1])?;
            }
        }
        generator.wait_running()?;
        receiver.wait_running()?;
        let receiver_queues = receiver.link()?.num_rx_queues;
        let generator_queues = generator.link()?.num_rx_queues;
        let ends = [&setup.settings.inside, &setup.settings.outside];
        let shared_queue = ends.map(|end| end.queues().is_some_and(|queues| spec.shares(queues)));
        Ok(Lane {
            setup,
            generator,
            receiver,
            receiver_queues,
            generator_queues,
            shared_queue,
            dut,
            fault: None,
            host,
            spec,
        })
    }

    /// Frames of several CPUs go into one receive queue of the DUT's inside, also where the generator has one: answers are the
    /// receiver's.
    pub fn share_inside(&mut self) {
        self.shared_queue[0] = true;
    }

    /// Where a generator addresses its frames to.
    pub fn destination_mac(&self) -> MacAddr {
        match &self.dut {
            Some(dut) if self.setup.settings.dut.routes() => dut.router[0].mac,
            _ => self.receiver.mac,
        }
    }

    /// Where the other generator, at the DUT's outside, addresses its frames to.
    pub fn back_mac(&self) -> MacAddr {
        match &self.dut {
            Some(dut) if self.setup.settings.dut.routes() => dut.router[1].mac,
            _ => self.generator.mac,
        }
    }

    /// Exchanges rules and the namespace's sysctls for those of `setup`, on a DUT that otherwise stays as it is: links, routes,
    /// programs and receivers stand. Connections are forgotten if either rule set tracks them, so learning frames are due again.
    ///
    /// # Errors
    /// The setups differ in other settings; or the new rules cannot be loaded: then the lane has no rules, and needs another
    /// exchange.
    pub fn exchange(&mut self, setup: &Setup) -> Result<(), Error> {
        if !self.setup.differs_only_in_rules(setup) {
            return Err(Error::Refused(format!(
                "{} differs from {} in more than rules and sysctls: it needs a lane of its own",
                setup.name, self.setup.name
            )));
        }
        if let Some(dut) = &mut self.dut
            && dut.exchange(setup)? != self.host
        {
            return Err(Error::Refused(format!(
                "{} wants other settings of the host than {}: it needs a lab of its own",
                setup.name, self.setup.name
            )));
        }
        self.setup = setup.clone();
        self.lacks_states()
            .map_or(Ok(()), |(_, refusal)| Err(refusal))
    }

    /// The counts of the rules in a user's file, in its own words; `None` without such a file, or if its counters cannot be read.
    pub fn rule_counts(&self) -> Option<Vec<RuleCount>> {
        let file = self
            .setup
            .settings
            .rule_file
            .as_ref()
            .filter(|file| file.counts())?;
        let namespace = &self.dut.as_ref()?.namespace;
        let job = match file.firewall {
            Firewall::Nftables => Job::new("nft", &["-t", "list", "ruleset"]),
            _ => Job::new(file.program().0.replace("-restore", "-save"), &["-c"]),
        };
        let (mut counts, ends) = (listed(&job, file.firewall, namespace)?, self.setup.ends());
        counts
            .iter_mut()
            .for_each(|count| count.rule = file.in_its_words(&count.rule, &ends));
        Some(counts)
    }

    /// The change that raises the host's limit of states, if that is too low for the lane, and the error without consent. The
    /// limit is known once the rules have loaded connection tracking.
    fn lacks_states(&self) -> Option<(Change, Error)> {
        let dut = self
            .dut
            .as_ref()
            .filter(|_| self.setup.tracks || self.setup.room.is_some())?;
        let states = self.setup.room.unwrap_or(self.spec.flows);
        let limit = sysctl::get(&dut.namespace, "net/netfilter/nf_conntrack_max").ok()?;
        let limit: u64 = limit.trim().parse().ok()?;
        // Twice as many, because states of an earlier trial may still be there.
        let wanted = states.saturating_mul(2);
        let change = Change::sysctl("net.netfilter.nf_conntrack_max", &wanted.to_string())
            .ok()?
            .or_more();
        let refusal = Error::Refused(format!(
            "{} keeps a state for each of {states} flows, and this host's limit is {limit}: sysctl net.netfilter.nf_conntrack_max={wanted} raises it (linerate changes nothing outside its namespaces)",
            self.setup.name
        ));
        (limit > 0 && limit < states).then_some((change, refusal))
    }
}
