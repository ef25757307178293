//! A testbed carries out trials: the embedded lab with real packets, hosts, or the in-memory port for tests of everything else.

mod collectors;
mod connecting;
mod connections;
mod embedded;
mod end_hosts;
pub mod guests;
pub mod hosts;
mod http;
mod keeping;
mod nginx;
pub mod prepare;
mod simulated;
mod trying;

pub use connecting::{connection_labs, opens_connections};
pub use embedded::{ATTEMPTS, PACED_BATCH, SequentialLabs};
pub use end_hosts::EndHosts;
pub use http::{http_labs, makes_requests};
pub use simulated::{Simulated, Simulation, parse_simulation};
pub use trying::try_out;

use anyhow::Result;
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::lab::ledger::Account;
use linerate_linux::trial::Outcome;
use linerate_measure::audit::Evidence;
use linerate_measure::collector::Collection;
use linerate_measure::counters::PortCounters;
use linerate_measure::experiment::Benchmark;
use linerate_measure::record::{
    Direction, DirectionCounts, DutEvent, LabKind, RulesPassed, SlotFacts, StackTimes, TrialRecord,
};
use linerate_measure::trial::{Shape, Timing};
use linerate_plan::names::Named;
use linerate_plan::settings::Event;
use linerate_profile::{Sampled, Waited};
use linerate_wire::{Findings, Load, RateStep};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A trial to be run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Request {
    /// The slot: a cell of the plan.
    pub slot: usize,
    /// Frames/s; `None` for as many as possible.
    pub rate: Option<f64>,
    pub timing: Timing,
    pub shape: Shape,
    /// Frames of each burst; 0: evenly spaced.
    pub burst: u32,
    /// The test that it belongs to, where the campaign carries out several.
    pub benchmark: Option<Benchmark>,
    /// Observations in the DUT's kernel under its load.
    pub telemetry: Option<Telemetry>,
    /// Whether the DUT is asked before it how it is configured.
    pub configuration: bool,
}

/// Observations of a trial that are not for its rate. Each takes time from the frames, and from the others: so one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Telemetry {
    /// Stacks of functions.
    Functions,
    /// Times of frames in the stack.
    Stages,
    /// Frames that are dropped, and waits for locks.
    Events,
    /// How far frames go through a rule file.
    Rules,
}

impl Request {
    /// Load of the trial, handed over in batches of this size.
    fn load(&self, batch: u32) -> Load {
        let Timing {
            warm_up_ns, run_ns, ..
        } = self.timing;
        let (frames, step) = match self.shape {
            Shape::Burst { frames } => (Some(frames), None),
            Shape::Step { after_ns, fps } => (
                None,
                Some(RateStep {
                    after_ns: warm_up_ns + after_ns,
                    rate: fps,
                }),
            ),
            Shape::Constant | Shape::Event { .. } => (None, None),
        };
        let every_frame = match (self.shape, self.benchmark) {
            (Shape::Step { .. } | Shape::Event { .. }, _)
            | (_, Some(Benchmark::DelayVariation)) => Some(true),
            (_, Some(Benchmark::Latency)) => Some(false),
            _ => None,
        };
        // RFC 2544, section 26.2 tags a frame after 60 s of 120.
        let findings = every_frame.map(|every_frame| Findings {
            every_frame,
            tag_after_ns: warm_up_ns + run_ns / 2,
        });
        // Frames of a batch leave together: rates, delays and the ends of an outage are known no better than that.
        let longest_s = if findings.is_some() { 50e-6 } else { 1e-3 };
        // Frames of a burst belong together.
        let longest = self
            .rate
            .map(|rate| ((rate * longest_s) as u32).max(self.burst.min(BURST_BATCH)));
        let batch = longest.map_or(batch, |longest| longest.clamp(1, batch));
        let lasting = Load::lasting(self.timing.load());
        Load {
            rate: self.rate,
            frames,
            step,
            findings,
            batch,
            ..lasting
        }
    }
}

/// Frames of a burst that are handed over together at most.
const BURST_BATCH: u32 = 16;

/// The result of an event, its beginning and end in nanoseconds since the load began, and everything that was done.
type EventRun = (Result<(), String>, [u64; 2], Vec<String>);

/// Result of a trial. Its number, its times, its rates and its audit are the campaign's to add.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// Evidence for the audit: counters, losses, faults, and the DUT's connections after the trial.
    pub evidence: Evidence,
    /// The fields of its record that the testbed fills.
    pub record: TrialRecord,
    /// How the DUT is configured, if it was asked.
    pub facts: Option<SlotFacts>,
    /// The stacks of the DUT's kernel, if they were sampled.
    pub profile: Option<Sampled>,
    /// Times of frames in the stack of the DUT's kernel, if they were measured.
    pub stages: Option<StackTimes>,
    /// Waits for its locks, if they were measured.
    pub waited: Option<Waited>,
    /// How far frames went through a rule file, if that was counted.
    pub rules: Option<RulesPassed>,
}

impl TrialOutcome {
    fn new(
        outcome: Outcome,
        [sent, received]: [Vec<PortCounters>; 2],
        accounts: Vec<Account>,
        found: Collection,
    ) -> TrialOutcome {
        let mut dut = found.counters;
        let (mut evidence, mut ways) = (Evidence::default(), Vec::new());
        let (mut directions, mut samples) = (Vec::new(), outcome.each.into_iter());
        let names = if sent.len() > 1 {
            Direction::Both
        } else {
            Direction::Forward
        }
        .ways();
        for ((direction, account), (generator, mut receiver)) in names
            .iter()
            .zip(accounts)
            .zip(sent.into_iter().zip(received))
        {
            receiver.since(outcome.began_ns);
            receiver.end_loss(&generator);
            dut.extend(account.dut);
            let Account {
                losses,
                second_counts,
                ..
            } = account;
            evidence.generator.add(generator.clone());
            evidence.receiver.add(receiver.clone());
            evidence.losses.extend(losses.iter().cloned());
            evidence.second_counts.extend(second_counts.iter().cloned());
            let (sent, received) = (generator.frames, receiver.unique());
            directions.push(DirectionCounts {
                direction: *direction,
                sent,
                received,
                lost: sent.saturating_sub(received),
                losses: losses.clone(),
                rates: None,
                latency: receiver.latency.clone(),
                samples: samples.next().unwrap_or_default(),
            });
            let way = Evidence {
                generator,
                receiver,
                losses,
                second_counts,
                ..Evidence::default()
            };
            ways.push((*direction, way));
        }
        if names.len() == 1 {
            (ways, directions) = (Vec::new(), Vec::new());
        }
        TrialOutcome {
            evidence: Evidence {
                faults: outcome.faults,
                ways,
                ..evidence
            },
            record: TrialRecord {
                directions,
                samples: outcome.samples,
                warm_up: outcome.warm_up,
                dut,
                cpus: found.cpus,
                senders: found.senders,
                collected: found.collected,
                collectors: found.costs,
                ..TrialRecord::default()
            },
            facts: found.facts,
            profile: found.profile,
            stages: found.stages,
            waited: found.waited,
            rules: found.rules,
        }
    }

    /// Adds the event that happened to the DUT: its result, when it began and ended, and everything that was done.
    fn add_event(&mut self, planned: Option<&Event>, event_run: Option<EventRun>) {
        if let (Some(planned), Some((done, [began_ns, ended_ns], ran))) = (planned, event_run) {
            let what = planned.what.name().into();
            let class = planned.what.class();
            self.record.event = Some(DutEvent {
                what,
                class,
                began_ns,
                ended_ns,
                ran,
            });
            self.evidence.faults.extend(
                done.err()
                    .map(|why| format!("the event ({}): {why}", planned.what.name())),
            );
        }
    }

    /// A trial without a result.
    fn failed(why: String) -> TrialOutcome {
        let evidence = Evidence {
            faults: vec![why],
            ..Evidence::default()
        };
        TrialOutcome {
            evidence,
            ..TrialOutcome::default()
        }
    }
}

/// Somewhere that trials can be run.
pub trait Testbed {
    /// Runs one trial, or a part of it if the user wants to stop.
    ///
    /// # Errors
    /// The trial could not run at all. A failure while it runs is a fault in its outcome.
    fn run(&mut self, request: &Request) -> Result<TrialOutcome>;

    /// The number of a slot's DUT; slots of one DUT differ in their traffic alone. `None` where nothing can be asked.
    fn dut(&self, _slot: usize) -> Option<usize> {
        None
    }

    /// Time that has passed on a simulated clock, on which no pause is waited for; `None` with the machine's clock.
    fn passed(&self) -> Option<Duration> {
        None
    }

    /// The names in records, of the lab, of its generator and of its receiver, and how many frames are handed over at once.
    fn names(&self) -> (LabKind, [String; 2], u32);

    /// Remarks about the tester, for the record and the page.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The embedded lab that stands.
    fn lab(&self) -> Option<&EmbeddedLab> {
        None
    }

    /// Restores everything. Returns messages about failures to restore, and the number of reboots of the DUT for it.
    fn take_down(self: Box<Self>) -> (Vec<String>, u32) {
        (Vec::new(), 0)
    }
}
