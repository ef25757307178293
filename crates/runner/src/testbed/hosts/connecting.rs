//! Connections between hosts: the account of a trial, by what both ends and the DUT's table have counted.

use super::super::TrialOutcome;
use super::super::connecting::{account, full, lost_by_tester, used_up};
use linerate_hosts::agent::connecting::EndCounts;
use linerate_linux::lab::ledger::Account;
use linerate_measure::audit::SecondCount;
use linerate_measure::record::{ConnectionTrial, Connections, Mode};
use linerate_plan::settings::Settings;
use linerate_remote::Observed;
use linerate_wire::ConnectionSpec;

/// The connections of a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub spec: ConnectionSpec,
    /// Whether the DUT's rules are linerate's own, and keep states for the usual time.
    pub usual: bool,
}

impl Kind {
    pub fn new(spec: ConnectionSpec, settings: &Settings) -> Kind {
        let mut names = settings.sysctls.keys();
        let usual = !names.any(|name| name.contains("netfilter"));
        let usual = usual && settings.rules.is_some() && settings.tracks();
        Kind { spec, usual }
    }
}

/// Figures that a trial of connections has beside those of frames.
pub(super) struct Opened {
    trial: ConnectionTrial,
    faults: Vec<String>,
}

impl Opened {
    /// Of what both ends have counted. `accounts`: those of the frames, which become that of the connections.
    pub fn new(
        ends: EndCounts,
        spec: &ConnectionSpec,
        accounts: &mut Vec<Account>,
        load_ns: u64,
    ) -> Opened {
        let EndCounts {
            opened: mut trial,
            frames: [sent, came],
            used_up: all,
            ..
        } = ends;
        let frames = std::mem::take(accounts);
        let losses = frames.iter().flat_map(|account| account.losses.clone());
        trial.lost = losses.collect();
        accounts.push(account(&trial, spec, frames, [&sent, &came], 0));
        let mut faults = trial.faults(spec, load_ns, Mode::Hosts);
        faults.extend(lost_by_tester(&trial, "a lower rate"));
        faults.extend(used_up(all, &trial));
        Opened { trial, faults }
    }

    /// Whether every connection closed.
    pub fn all_closed(&self) -> bool {
        self.trial.closed() == self.trial.attempted
    }

    /// The DUT has an entry for each connection; `None` if it cannot be asked.
    pub fn tracked(&self, host: &Observed, spec: &ConnectionSpec) -> Option<SecondCount> {
        let protocol = if spec.exchange.is_tcp() { "tcp" } else { "udp" };
        let count = format!("conntrack -L -p {protocol} --dport 80 2>/dev/null | wc -l");
        Some(SecondCount {
            place: "DUT: connections that it tracks".into(),
            frames: host.output(&count).ok()?.trim().parse().ok()?,
            expected: self.trial.attempted,
        })
    }

    /// Enters it into the outcome of the trial.
    pub fn enter(self, outcome: &mut TrialOutcome) {
        let evidence = &mut outcome.evidence;
        let states = evidence.connections;
        // The cause of other faults, so it comes before them.
        let faults = states.and_then(full).into_iter().chain(self.faults);
        evidence.faults.extend(faults);
        evidence.passes_first_frames = self.trial.reached.first() > Some(&0);
        outcome.record.opened = Some(Box::new(self.trial));
    }
}

/// Entries of the table of a DUT with Linux, and how many it holds.
pub(super) fn table(host: &Observed, states: Connections) -> Connections {
    let both = "cd /proc/sys/net/netfilter && cat nf_conntrack_count nf_conntrack_max";
    let said = host.output(both).unwrap_or_default();
    let mut numbers = said.lines().map(|line| line.trim().parse().ok());
    let mut number = || numbers.next().flatten();
    Connections {
        tracked: number(),
        // 0: no limit.
        limit: number().filter(|limit| *limit > 0),
        ..states
    }
}
