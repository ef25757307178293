//! A lane: a DUT with its links to the tester. Its rules can be exchanged while it stands.

use super::{DutEnd, Interface, Setup};
use crate::error::Error;
use crate::host::changes::Change;
use crate::net::{MacAddr, sysctl};
use crate::process::{Finished, Job};
use std::sync::atomic::AtomicBool;

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
    /// Flows that connection tracking must have room for.
    pub(super) flows: u64,
    pub(super) interrupted: Option<&'static AtomicBool>,
}

impl Lane {
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
            dut.rules.clear(&dut.namespace, self.interrupted)?;
            let mut host = dut.exchange_rules(setup, self.interrupted)?;
            host.extend(setup.host_changes()?);
            let one_way = |a: &[Change], b: &[Change]| a.iter().all(|change| b.contains(change));
            if !one_way(&host, &self.host) || !one_way(&self.host, &host) {
                return Err(Error::Refused(format!(
                    "{} wants other settings of the host than {}: it needs a lab of its own",
                    setup.name, self.setup.name
                )));
            }
        }
        self.setup = setup.clone();
        self.lacks_states().map_or(Ok(()), |(_, refusal)| Err(refusal))
    }

    /// Runs a program in the DUT's namespace (in its room, if it has one), to collect its output with a trial.
    ///
    /// # Errors
    /// It is not installed, fails or takes too long; or there is no DUT.
    pub fn run(&self, job: &Job) -> Result<Finished, Error> {
        let Some(dut) = &self.dut else {
            return Err(Error::Refused(
                "tester-baseline is the tester alone: nothing can be run there".into(),
            ));
        };
        match &dut.room {
            Some(room) => room.run(job, self.interrupted),
            None => {
                let run = job.run(|path| dut.namespace.command(path), self.interrupted);
                run.map_err(|e| Error::Refused(format!("cannot run {}: {e}", job.program)))
            }
        }
    }

    /// The change that raises the host's limit of states, if that is too low for the lane, and the error without consent. The
    /// limit is known once the rules have loaded connection tracking.
    pub(super) fn lacks_states(&self) -> Option<(Change, Error)> {
        let dut = self.dut.as_ref().filter(|_| self.setup.tracks || self.setup.room.is_some())?;
        let states = self.setup.room.unwrap_or(self.flows);
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
