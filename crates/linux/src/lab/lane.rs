//! A lane: a DUT with its links to the tester. Its rules can be exchanged while it stands.

use super::topology::Wiring;
use super::{DutEnd, Interface, LabSpec, Setup, cards, program};
use crate::error::Error;
use crate::host::changes::Change;
use crate::net::{MacAddr, sysctl};
use crate::process::Job;
use linerate_measure::record::RuleCount;
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::counts;

/// Bytes of a listing of rules that are read: a file of the largest size takes some more when it is listed.
const MOST_LISTED: usize = 64 << 20;

/// A DUT with its links.
pub struct Lane {
    pub setup: Setup,
    /// Where frames leave.
    pub generator: Interface,
    /// Where they arrive.
    pub receiver: Interface,
    /// Receive queues of the receiver's interface: at least those of the layout.
    pub receiver_queues: u32,
    /// Two generator CPUs send into one receive queue of the DUT: then the kernel's count of frames that found it full is too
    /// low.
    pub(super) shared_queue: bool,
    /// The DUT; none for the tester baseline.
    pub dut: Option<DutEnd>,
    /// Settings of the host that the DUT wants.
    pub(super) host: Vec<Change>,
    spec: LabSpec,
}

impl Lane {
    /// Makes the DUT and its links, with all settings except those of the host.
    pub(super) fn build(wiring: &Wiring<'_>) -> Result<Lane, Error> {
        let (spec, setup) = (wiring.spec.clone(), wiring.setup.clone());
        let mut dut = wiring.connect()?;
        let [generator, receiver] = wiring.tester_interfaces()?;
        generator.set_up()?;
        receiver.set_up()?;
        let mut host = Vec::new();
        // A veth shows a carrier before its queues are live, and loses frames sent in between.
        if let Some(dut) = &mut dut {
            if let Some(queues) = setup.settings.inside.queues {
                // The generator redirects, which needs no queue of its own end.
                let own = spec.queues().max(queues);
                generator.ethtool()?.set_channels(&generator.name, own, queues)?;
            }
            host = configure(dut, &setup, &spec, [generator.mac, receiver.mac])?;
            host.extend(setup.host_changes()?);
            dut.nodes.iter().try_for_each(|node| node.wait_running())?;
        }
        generator.wait_running()?;
        receiver.wait_running()?;
        let receiver_queues = receiver.link()?.num_rx_queues;
        let shared_queue = setup.settings.inside.queues.is_some_and(|queues| spec.shares(queues));
        Ok(Lane { setup, generator, receiver, receiver_queues, shared_queue, dut, host, spec })
    }

    /// Writes the DUT's files and runs its commands.
    pub(super) fn furnish(&mut self) -> Result<(), Error> {
        self.dut.as_mut().map_or(Ok(()), |dut| dut.furnish(&self.setup, self.spec.interrupted))
    }

    /// Where a generator addresses its frames to.
    pub fn destination_mac(&self) -> MacAddr {
        match &self.dut {
            Some(dut) if self.setup.settings.dut.routes() => dut.router[0].mac,
            _ => self.receiver.mac,
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
        if let Some(dut) = &mut self.dut {
            dut.rules.clear(&dut.namespace, self.spec.interrupted)?;
            dut.restore_sysctls()?;
            let later = dut.set_sysctls(setup)?;
            let mut host = dut.load_rules(setup, later, self.spec.interrupted)?;
            host.extend(setup.host_changes()?);
            let within = |a: &[Change], b: &[Change]| a.iter().all(|change| b.contains(change));
            if !within(&host, &self.host) || !within(&self.host, &host) {
                return Err(Error::Refused(format!(
                    "{} wants other settings of the host than {}: it needs a lab of its own",
                    setup.name, self.setup.name
                )));
            }
        }
        self.setup = setup.clone();
        self.lacks_states().map_or(Ok(()), |(_, refusal)| Err(refusal))
    }

    /// The counts of the rules in a user's file, in its own words; `None` without such a file, or if its counters cannot be read.
    pub fn rule_counts(&self) -> Option<Vec<RuleCount>> {
        let own = self.setup.own.as_ref().filter(|own| own.file.counts())?;
        let namespace = &self.dut.as_ref()?.namespace;
        let job = match own.file.firewall {
            Firewall::Nftables => Job::new("nft", &["-t", "list", "ruleset"]),
            _ => Job::new(own.file.program().0.replace("-restore", "-save"), &["-c"]),
        };
        let mut listing = String::new();
        let mut add = |line: &str| {
            if listing.len() < MOST_LISTED {
                listing.push_str(line);
                listing.push('\n');
            }
        };
        job.run_lines(|path| namespace.command(path), None, &mut add).ok()?;
        let mut counts = counts(own.file.firewall, &listing);
        counts.iter_mut().for_each(|count| count.rule = own.file.in_its_words(&count.rule, &own.ends));
        Some(counts)
    }

    /// The change that raises the host's limit of states, if that is too low for the lane, and the error without consent. The
    /// limit is known once the rules have loaded connection tracking.
    pub(super) fn lacks_states(&self) -> Option<(Change, Error)> {
        let dut = self.dut.as_ref().filter(|_| self.setup.tracks || self.setup.room.is_some())?;
        let states = self.setup.room.unwrap_or(self.spec.flows);
        let limit = sysctl::get(&dut.namespace, "net/netfilter/nf_conntrack_max").ok()?;
        let limit: u64 = limit.trim().parse().ok()?;
        // Twice as many, because states of an earlier trial may still be there.
        let wanted = states.saturating_mul(2);
        let change = Change::sysctl("net.netfilter.nf_conntrack_max", &wanted.to_string()).ok()?.or_more();
        let refusal = Error::Refused(format!(
            "{} keeps a state for each of {states} flows, and this host's limit is {limit}: sysctl net.netfilter.nf_conntrack_max={wanted} raises it (linerate changes nothing outside its namespaces)",
            self.setup.name
        ));
        (limit > 0 && limit < states).then_some((change, refusal))
    }
}

/// Applies all settings except those of the host, and returns these. `tester`: the addresses of generator and receiver.
fn configure(
    dut: &mut DutEnd,
    setup: &Setup,
    spec: &LabSpec,
    tester: [MacAddr; 2],
) -> Result<Vec<Change>, Error> {
    for interface in [&dut.inside, &dut.outside].into_iter().chain(&dut.router) {
        interface.set_up()?;
    }
    dut.inside.enable_napi()?;
    let later = dut.set_sysctls(setup)?;
    if setup.settings.dut.routes() {
        dut.addresses(tester)?;
        dut.tables(setup, spec.interrupted)?;
    }
    let host = dut.load_rules(setup, later, spec.interrupted)?;
    cards::set_queues(dut, setup, spec)?;
    program::attach(dut, setup)?;
    cards::apply(dut, setup, spec)?;
    Ok(host)
}
