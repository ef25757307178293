//! A few frames over each cable of a lab and through its DUT, and the counters of the interfaces where they must arrive.

use super::asking::{ask, ask_again, everywhere, is_root_by_sudo, put};
use crate::{ExecutionTarget, Interrupt};
use linerate_hosts::phases::Status;
use linerate_hosts::preflight::frames::{self, PortTried, Probe, Skipped, Tried};
use linerate_hosts::systems::ping::{self, FRAMES, Replies};
use linerate_hosts::systems::{Facts, Question};
use linerate_measure::collector::Counters;
use linerate_plan::lab::Lab;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time limit of a ping: those without an answer end within two seconds if ping has such a limit.
const PING: Duration = Duration::from_secs(5);
/// Some cards' counters are read by their drivers once a second.
const COUNTED: Duration = Duration::from_millis(1200);

/// Results of frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frames {
    /// Pings that were sent.
    pub tried: Vec<Tried>,
    /// Pings that were not sent.
    pub skipped: Vec<Skipped>,
    /// Ports of the tester that were tried.
    pub ports: Vec<PortTried>,
}

/// Sends a handful of pings over each cable of a lab, and from generators through the DUT to the receiver; then asks the hosts
/// once more for their ARP entries. Nothing is sent unless the lab file says `isolated = true`. The facts of a lost host say so.
pub fn send_frames(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    facts: &mut BTreeMap<String, Facts>,
    cancelled: Interrupt<'_>,
) -> Frames {
    let plan = frames::plan(lab, facts);
    let mut sent = Frames {
        skipped: plan.skipped,
        ..Frames::default()
    };
    for probe in &plan.probes {
        if cancelled.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return sent;
        }
        match (Wire {
            lab,
            places,
            facts,
            cancelled,
        })
        .carry_out(probe)
        {
            Some(tried) => sent.tried.push(tried),
            None => {
                let what = format!(
                    "{} {} to {} of {}",
                    probe.from.0, probe.from.1, probe.to, probe.whose
                );
                let why = format!("ping is not there, or {} was lost", probe.from.0);
                sent.skipped.push(Skipped { what, why });
            }
        }
    }
    if !plan.probes.is_empty() {
        ask_again(lab, places, facts, cancelled, |_, facts| {
            facts.neighbours.clear();
            vec![Question::Neighbours, Question::Neighbours6]
        });
    }
    sent
}

/// Frames received by interfaces, by the names of hosts and interfaces.
type Counts = BTreeMap<frames::At, u64>;

/// Frames that the interfaces of a lab have received.
pub fn received(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    facts: &BTreeMap<String, Facts>,
    cancelled: Interrupt<'_>,
) -> Counts {
    Wire {
        lab,
        places,
        facts,
        cancelled,
    }
    .counts()
}

struct Wire<'a> {
    lab: &'a Lab,
    places: &'a BTreeMap<String, Arc<ExecutionTarget>>,
    facts: &'a BTreeMap<String, Facts>,
    cancelled: Interrupt<'a>,
}

impl Wire<'_> {
    /// The result of a probe; `None` if it could not be sent.
    fn carry_out(&self, probe: &Probe) -> Option<Tried> {
        let before = self.counts();
        let replies = self.ping(probe)?;
        let mut after = self.counts();
        let rose =
            |after: &Counts, at: &frames::At| Some(after.get(at)?.saturating_sub(*before.get(at)?));
        if probe
            .arrives
            .iter()
            .any(|at| rose(&after, at).is_some_and(|n| n < u64::from(FRAMES)))
        {
            std::thread::sleep(COUNTED);
            after = self.counts();
        }
        Some(Tried {
            replies,
            arrived: probe.arrives.iter().map(|at| rose(&after, at)).collect(),
            elsewhere: self.elsewhere(probe, |at| rose(&after, at)),
            probe: probe.clone(),
        })
    }

    fn ping(&self, probe: &Probe) -> Option<Replies> {
        let host = self
            .lab
            .hosts
            .iter()
            .find(|host| host.name == probe.from.0)?;
        let (place, facts) = (self.places.get(&host.name)?, self.facts.get(&host.name)?);
        let program = ping::argv(facts.kernel()?, probe.source, probe.to);
        let answers = ask(
            PING,
            place,
            is_root_by_sudo(host, facts),
            &[program],
            self.cancelled,
        )
        .ok()?;
        let answer = answers.into_iter().next()?;
        match answer.status {
            Some(Status::Exit(126 | 127)) => None,
            None if !answer.was_slow => None,
            _ => Some(ping::replies(&answer.output)),
        }
    }

    fn counts(&self) -> Counts {
        let counted = everywhere(self.lab, self.places, |host, place| {
            let facts = self.facts.get(&host.name)?;
            facts.kernel()?;
            let mut now = Facts::default();
            now.system.clone_from(&facts.system);
            (now.user, now.sudo) = (facts.user, facts.sudo);
            put(
                host,
                place,
                vec![Question::Counters],
                &mut now,
                self.cancelled,
            )
            .ok()?;
            Some(now.counters)
        });
        let of_host = |(host, counters): (String, BTreeMap<String, _>)| {
            let received = |(interface, counters): (String, Counters)| {
                Some(((host.clone(), interface), *counters.get("rx_packets")?))
            };
            counters
                .into_iter()
                .filter_map(received)
                .collect::<Vec<_>>()
        };
        counted.into_iter().flat_map(of_host).collect()
    }

    /// Other interfaces of the lab that counted as many frames as were sent.
    fn elsewhere(&self, probe: &Probe, rose: impl Fn(&frames::At) -> Option<u64>) -> Vec<String> {
        let first = probe.arrives.first();
        let Some((host, facts)) = first.and_then(|(host, _)| Some((host, self.facts.get(host)?)))
        else {
            return Vec::new();
        };
        let others = frames::interfaces(self.lab, host, facts).into_iter();
        let others = others.filter(|name| probe.arrives.iter().all(|(_, port)| port != name));
        others
            .filter(|name| {
                rose(&(host.clone(), name.clone())).is_some_and(|n| n >= u64::from(FRAMES))
            })
            .collect()
    }
}
