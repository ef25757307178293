//! Trials in which a DUT's kernel is observed: each look takes time from the frames, so their rates enter no result.

use super::Conductor;
use crate::interrupt::interrupted;
use crate::progress::Progress;
use crate::testbed::{Request, Telemetry, TrialOutcome};
use anyhow::{Result, anyhow};
use linerate_linux::lab::collectors::RULES;
use linerate_linux::telemetry::{drops, locks, profile, stages};
use linerate_measure::record::{
    Events, LabKind, Mode, RulesPassed, Slot, SlotProfile, Staged, TrialRecord, Waits,
};
use linerate_measure::trial::{Shape, rates};
use linerate_profile::{Profile, Sampled};

/// Trials of each slot that are profiled. They alternate with those of other slots, as all trials do.
const PROFILED: u64 = 4;
/// Load of a trial whose frames are timed, or whose events are counted, in nanoseconds.
const OBSERVED_NS: u64 = 500_000_000;
/// Load of a trial in which the rules that frames pass are counted, in nanoseconds.
const PASSING_NS: u64 = 50_000_000;
/// Functions of a profile that the summary keeps. The file of its stacks has all.
const MOST_FUNCTIONS: usize = 200;

impl Conductor<'_> {
    /// Profiles each slot that has trials, in trials of its own: each sample takes time from the frames. Or why not. Without a DUT,
    /// its CPUs do nothing, unless the tester uses the same ones. `load_ns`: of all sampled trials of a slot.
    pub(super) fn profiles(
        &mut self,
        load_ns: u64,
        progress: &Progress,
    ) -> Vec<(usize, Result<(SlotProfile, Profile)>)> {
        let inline = self.campaign.asked.mode == Mode::Inline;
        let measured = |slot: &&Slot| {
            (inline || !slot.is_calibration())
                && self.trials.iter().any(|trial| trial.slot == slot.id)
        };
        let slots: Vec<&Slot> = self.campaign.slots.iter().filter(measured).collect();
        let mut all: Vec<Result<Rounds>> = slots.iter().map(|_| Ok(Rounds::default())).collect();
        for round in 0..PROFILED {
            for (slot, sum) in slots.iter().zip(&mut all).filter(|(_, sum)| sum.is_ok()) {
                if interrupted() {
                    return Vec::new();
                }
                progress.say(format!(
                    "profile {} of {PROFILED}: {}",
                    round + 1,
                    self.campaign.name_of(slot.id)
                ));
                match (self.sampled(slot, load_ns / PROFILED), sum.as_mut()) {
                    (Ok(round), Ok(all)) => all.add(round),
                    (Err(error), _) => *sum = Err(error),
                    (Ok(_), Err(_)) => {}
                }
            }
        }
        let kept = slots.iter().zip(all).map(|(slot, sum)| {
            progress.say(format!("profile: {}", self.campaign.name_of(slot.id)));
            let looks_ns = OBSERVED_NS.min(load_ns);
            (
                slot.id,
                sum.and_then(|rounds| self.kept(slot, rounds, looks_ns)),
            )
        });
        kept.collect()
    }

    /// How far frames go through the rules of users' files, or why that is not known. The trials are at the end, because the counters that
    /// they need make rules slower.
    pub(super) fn rules_passed(
        &mut self,
        progress: &Progress,
    ) -> Vec<(usize, Result<RulesPassed>)> {
        let measured = |slot: &&Slot| {
            slot.rule_counters.is_some() && self.trials.iter().any(|trial| trial.slot == slot.id)
        };
        let in_lab = self.campaign.asked.lab == LabKind::Namespaces;
        let slots = self.campaign.slots.iter().filter(|_| in_lab);
        let slots: Vec<&Slot> = slots.filter(measured).collect();
        let mut all = Vec::new();
        for slot in slots.into_iter().take_while(|_| !interrupted()) {
            progress.say(format!("rules: {}", self.campaign.name_of(slot.id)));
            all.push((slot.id, self.passed(slot)));
        }
        all
    }

    fn passed(&mut self, slot: &Slot) -> Result<RulesPassed> {
        let TrialOutcome {
            record,
            evidence,
            rules,
            ..
        } = self.look(slot, Telemetry::Rules, PASSING_NS)?;
        let reason = || failure(&record, RULES).unwrap_or("its rules were not counted".into());
        let (slot, frames) = (slot.id, evidence.generator.frames);
        let passed = rules.ok_or_else(|| anyhow!(reason()))?;
        Ok(RulesPassed {
            slot,
            frames,
            ..passed
        })
    }

    /// The samples of one trial of this length.
    fn sampled(&mut self, slot: &Slot, load_ns: u64) -> Result<Rounds> {
        let TrialOutcome {
            record,
            profile,
            evidence,
            ..
        } = self.look(slot, Telemetry::Functions, load_ns)?;
        let nothing = match self.campaign.asked.lab {
            LabKind::Simulated => "a simulated DUT has no kernel",
            _ => "linerate knows no profiler of its kernel",
        };
        let reason = || failure(&record, profile::NAME).unwrap_or(nothing.into());
        let sampled = profile.ok_or_else(|| anyhow!(reason()))?;
        let rates = rates(&record.samples)
            .map(|rates| rates.received)
            .into_iter()
            .collect();
        Ok(Rounds {
            sampled,
            rates,
            frames: evidence.receiver.unique(),
        })
    }

    /// Writes the stacks of a slot, and looks at the rest of its kernel, in trials of this length.
    fn kept(
        &mut self,
        slot: &Slot,
        rounds: Rounds,
        looks_ns: u64,
    ) -> Result<(SlotProfile, Profile)> {
        let Rounds {
            sampled,
            rates,
            frames,
        } = rounds;
        let Sampled {
            profile,
            event,
            user,
            lost,
            counted,
            not_counted,
        } = sampled;
        let mut missing: Vec<String> = not_counted.into_iter().collect();
        let kept = SlotProfile {
            slot: slot.id,
            event,
            samples: profile.samples(),
            user,
            lost,
            // Trials of the same length: frames by time.
            received: (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
            rates,
            frames,
            counted,
            stacks: self.store.write_stacks(slot.id, "", &profile.lines())?,
            functions: profile
                .functions()
                .into_iter()
                .take(MOST_FUNCTIONS)
                .collect(),
            stages: self.stages(slot, looks_ns, &mut missing)?,
            events: self.events(slot, looks_ns, &mut missing)?,
            missing,
        };
        Ok((kept, profile))
    }

    /// The times of frames in the stack, in a trial of their own. Without a DUT, no frame passes it.
    fn stages(
        &mut self,
        slot: &Slot,
        load_ns: u64,
        missing: &mut Vec<String>,
    ) -> Result<Option<Staged>> {
        if slot.is_calibration() {
            return Ok(None);
        }
        let TrialOutcome { record, stages, .. } = self.look(slot, Telemetry::Stages, load_ns)?;
        missing.extend(failure(&record, stages::NAME));
        let received = rates(&record.samples).map(|rates| rates.received);
        Ok(stages.map(|times| Staged { received, times }))
    }

    /// Frames that are dropped, and waits for locks, in a trial of their own.
    fn events(
        &mut self,
        slot: &Slot,
        load_ns: u64,
        missing: &mut Vec<String>,
    ) -> Result<Option<Events>> {
        let TrialOutcome {
            record,
            waited,
            evidence,
            ..
        } = self.look(slot, Telemetry::Events, load_ns)?;
        let names = [drops::NAME, locks::NAME];
        let failed: Vec<String> = names
            .iter()
            .filter_map(|name| failure(&record, name))
            .collect();
        let nothing = failed.len() == names.len();
        missing.extend(failed);
        if nothing {
            return Ok(None);
        }
        let mut waits = None;
        if let Some(waited) = waited {
            let lines = waited.profile.lines();
            let stacks =
                (waited.waits > 0).then(|| self.store.write_stacks(slot.id, "-locks", &lines));
            let functions = waited
                .functions()
                .into_iter()
                .take(MOST_FUNCTIONS)
                .collect();
            let (ns, times, lost) = (waited.profile.samples(), waited.waits, waited.lost);
            let beside = waited
                .beside
                .waiting()
                .into_iter()
                .filter(|f| f.own > 0)
                .take(MOST_FUNCTIONS)
                .collect();
            waits = Some(Waits {
                ns,
                times,
                lost,
                stacks: stacks.transpose()?,
                functions,
                beside,
            });
        }
        let received = rates(&record.samples).map(|rates| rates.received);
        let drops = record
            .dut
            .into_iter()
            .filter(|(name, _)| name.starts_with("drop "))
            .collect();
        Ok(Some(Events {
            received,
            sent: evidence.generator.frames,
            drops,
            waits,
        }))
    }

    /// Runs a trial of this length, whose rate does not enter the results.
    fn look(&mut self, slot: &Slot, what: Telemetry, load_ns: u64) -> Result<TrialOutcome> {
        let timing = self.campaign.asked.timing.lasting(load_ns);
        let (slot, rate) = (slot.id, slot.asked_fps);
        let (telemetry, configuration) = (Some(what), false);
        let (shape, benchmark) = (Shape::Constant, None);
        let burst = self.burst(slot);
        self.stand.run(&Request {
            slot,
            rate,
            timing,
            shape,
            burst,
            benchmark,
            telemetry,
            configuration,
        })
    }
}

/// The sampled trials of a slot.
#[derive(Default)]
struct Rounds {
    sampled: Sampled,
    /// Received frames/s of each.
    rates: Vec<f64>,
    /// Received frames.
    frames: u64,
}

impl Rounds {
    fn add(&mut self, other: Rounds) {
        self.sampled.add(other.sampled);
        self.rates.extend(other.rates);
        self.frames += other.frames;
    }
}

/// Why a collector found nothing.
fn failure(record: &TrialRecord, name: &str) -> Option<String> {
    let failed = record
        .collected
        .iter()
        .find(|collected| collected.command == name);
    failed.and_then(|collected| Some(format!("{name}: {}", collected.output.as_ref().err()?)))
}
