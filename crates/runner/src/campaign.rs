//! Runs a campaign on a testbed: takes trials from the strategy, audits each, records it at once, and sums up.

mod profiles;

use crate::interrupt::interrupted;
use crate::messages::told;
use crate::progress::Progress;
use crate::testbed::{ATTEMPTS, Request, Testbed, TrialOutcome};
use anyhow::{Context, Result, anyhow};
use linerate_explain::{Records, explain};
use linerate_linux::host::peak_rss_bytes;
use linerate_linux::host::programs::Programs;
use linerate_linux::records::RecordStore;
use linerate_linux::trial::NOTHING_LEFT;
use linerate_measure::audit::{Evidence, audit};
use linerate_measure::experiment::{Benchmark, Measure};
use linerate_measure::record::{
    Campaign, Explanation, HostFacts, LabKind, Mode, Planned, ProgramTime, RulesPassed, SlotFacts,
    SlotProfile, Stopped, Summary, TrialRecord, VERSION, Warning,
};
use linerate_measure::strategy::{
    CONFIGURATION, Design, History, Observed, Strategy, TrialRequest, estimate, replay, spent_ns,
};
use linerate_measure::summary::{programs_beside, summarise};
use linerate_measure::trial::{parts, rates};
use linerate_plan::campaign::Campaign as Plan;
use linerate_plan::timetable::taking;
use linerate_profile::Profile;
use linerate_report::pages;
use linerate_wire::Traffic;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Other programs that the summary names, at most, and the share of a CPU that each used at least.
const MOST_PROGRAMS: usize = 3;
const NOTICEABLE: f64 = 0.02;
/// How often the time of a search is estimated again.
const AGAIN: Duration = Duration::from_secs(5);
/// Result of a campaign.
pub struct Finished {
    /// The verdict.
    pub summary: Summary,
    /// Where the records are.
    pub directory: PathBuf,
    /// How DUTs are configured, of the slots that were asked.
    pub facts: Vec<SlotFacts>,
    /// The error that ended it early.
    pub failure: Option<anyhow::Error>,
    store: RecordStore,
}

impl Finished {
    /// Adds the time that it took to put the lab back, and the reboots that were part of it.
    ///
    /// # Errors
    /// The summary cannot be written again.
    pub fn put_back(&mut self, took: Duration, reboots: u32) -> Result<()> {
        self.summary.lengthen(took.as_secs_f64());
        self.summary.reboots += reboots;
        self.store
            .write_summary(&self.summary)
            .context("writing the records")
    }
}

/// Runs the campaign to its end. `earlier`: the trials recorded before resuming. If it fails in the middle, the result has the
/// error and all trials until then. `profile_ns`: length of the load under which each slot is sampled, in further trials.
///
/// # Errors
/// The records cannot be written at all, or the earlier trials do not belong to this campaign.
pub fn run(
    campaign: &Campaign,
    host: &HostFacts,
    stand: &mut dyn Testbed,
    store: RecordStore,
    earlier: Option<Vec<TrialRecord>>,
    profile_ns: Option<u64>,
    progress: &Progress,
) -> Result<Finished> {
    if earlier.is_none() {
        // The campaign last: a folder with a campaign can be resumed, which needs the host file.
        store.write_host(host)?;
        store.write_campaign(campaign)?;
    }
    let trials = earlier.unwrap_or_default();
    let design = Design::of(campaign).context("the campaign has no plan")?;
    let (mut strategy, observed) =
        replay(design, &trials).context("continuing the stopped campaign")?;
    let before = Duration::from_nanos(trials.last().map_or(0, TrialRecord::ended_ns));
    let began = Instant::now();
    let facts = store.facts()?;
    let mut conductor = Conductor {
        campaign,
        stand,
        store,
        trials,
        observed,
        facts,
        began,
        before,
    };
    let earlier = (campaign.asked.lab == LabKind::Namespaces).then(Programs::now);
    let (stopped, failure) = conductor.all_trials(strategy.as_mut(), progress);
    let beside = earlier.map(|earlier| Programs::now().since(&earlier));
    let took = began.elapsed().as_secs_f64();
    let passed = match failure {
        Some(_) => Vec::new(),
        None => conductor.rules_passed(progress),
    };
    let profiles = match profile_ns.filter(|_| failure.is_none()) {
        Some(load_ns) => conductor.profiles(load_ns, progress),
        None => Vec::new(),
    };
    let Conductor {
        mut store,
        trials,
        facts,
        ..
    } = conductor;
    // Before the summary, which marks the campaign as ended: its trials must be on disk by then.
    let kept = store.finish();
    let mut summary = summarise(campaign, &trials, stopped, peak_rss_bytes());
    let noticeable = |program: &ProgramTime| program.seconds >= NOTICEABLE * took;
    let anywhere = beside.into_iter().flatten().filter(noticeable).collect();
    summary.programs = programs_beside(&trials, NOTICEABLE).unwrap_or(anywhere);
    summary.programs.truncate(MOST_PROGRAMS);
    enter_rules(passed, &mut summary);
    let stacks = enter(profiles, &mut summary);
    let records = Records {
        campaign,
        host,
        summary: &summary,
        trials: &trials,
        facts: &facts,
        stacks: &stacks,
    };
    summary.explanations = explained(&records);
    let directory = store.directory().to_path_buf();
    let written = kept.and(store.write_summary(&summary));
    let failure = failure.or(written
        .err()
        .map(|e| anyhow::Error::from(e).context("writing the records")));
    Ok(Finished {
        summary,
        directory,
        facts,
        failure,
        store,
    })
}

/// Enters how many rules a frame passes in each slot, or why that is not known.
fn enter_rules(passed: Vec<(usize, Result<RulesPassed>)>, summary: &mut Summary) {
    for (slot, rules) in passed {
        match rules {
            Ok(rules) => summary.rules.push(rules),
            Err(error) => summary.warnings.push(Warning {
                slot: Some(slot),
                text: format!(
                    "how many rules a frame passes is not known: {}",
                    told(&error)
                ),
                spoils: None,
            }),
        }
    }
}

/// Enters the profiles of slots, or why there is none; returns the stacks by slot.
fn enter(
    profiles: Vec<(usize, Result<(SlotProfile, Profile)>)>,
    summary: &mut Summary,
) -> BTreeMap<usize, Profile> {
    let mut stacks = BTreeMap::new();
    for (slot, profile) in profiles {
        match profile {
            Ok((profile, all)) => {
                stacks.insert(slot, all);
                summary.profiles.push(profile);
            }
            Err(error) => {
                let text = format!("not profiled: {}", told(&error));
                summary.warnings.push(Warning {
                    slot: Some(slot),
                    text,
                    spoils: None,
                });
            }
        }
    }
    stacks
}

/// The explanations without the lists of what frames meet: records have addresses in a host's own answers alone, from which
/// `linerate explain` makes these lists.
fn explained(records: &Records<'_>) -> Vec<Explanation> {
    let explanations = explain(records).into_iter();
    explanations
        .map(|explanation| Explanation {
            path: None,
            ..explanation
        })
        .collect()
}

struct Conductor<'a> {
    campaign: &'a Campaign,
    stand: &'a mut dyn Testbed,
    store: RecordStore,
    trials: Vec<TrialRecord>,
    /// The strategy's observations of the trials.
    observed: Vec<Observed>,
    /// How DUTs are configured, of the slots that were asked.
    facts: Vec<SlotFacts>,
    began: Instant,
    /// Time that the campaign had taken when it was stopped.
    before: Duration,
}

impl Conductor<'_> {
    fn all_trials(
        &mut self,
        strategy: &mut dyn Strategy,
        progress: &Progress,
    ) -> (Stopped, Option<anyhow::Error>) {
        let planned = self.campaign.planned.as_deref();
        let searching = planned.filter(|of| of.experiment.trials.measure != Measure::Rate);
        let (mut stalls, mut estimated) = (None, None);
        loop {
            if interrupted() {
                return (Stopped::Interrupted, None);
            }
            let elapsed = self.before + self.stand.passed().unwrap_or_else(|| self.began.elapsed());
            progress.advance(elapsed);
            // The strategy's time is recorded: so it can be replayed.
            let elapsed_ns = elapsed.as_nanos() as u64;
            let request = match strategy.next(&History {
                elapsed_ns: spent_ns(elapsed_ns, &self.trials),
                trials: &self.observed,
            }) {
                Ok(request) => request,
                Err(stopped) => return (stopped, None),
            };
            if let Some(planned) = searching {
                if stalls.is_none() {
                    stalls = pages::stalls(&planned.experiment.trials, &strategy.searches());
                    stalls.iter().for_each(|stalls| progress.tell(stalls));
                }
                if progress.is_shown() && estimated.is_none_or(|at| elapsed >= at + AGAIN) {
                    estimated = Some(elapsed);
                    self.left(planned, elapsed)
                        .into_iter()
                        .for_each(|left| progress.lasts(elapsed + left));
                }
            }
            let title = self.campaign.name_of(request.slot);
            let known = strategy
                .progress()
                .map_or(String::new(), |known| format!("; {known}"));
            progress.say(format!("block {}: {title}{known}", request.block + 1));
            if self.stand.passed().is_none() && !self.without_waits(&request) {
                pause(self.campaign);
            }
            match self.one_trial(&request, elapsed_ns) {
                Ok(_) | Err(_) if interrupted() => return (Stopped::Interrupted, None),
                Ok(observed) => {
                    strategy.observe(&observed);
                    self.observed.push(observed);
                    if let Some(fault) = nothing_leaves(&self.trials) {
                        return (
                            Stopped::Failed,
                            Some(anyhow!("{fault}: {ATTEMPTS} trials in succession")),
                        );
                    }
                }
                Err(error) => return (Stopped::Failed, Some(error)),
            }
        }
    }

    /// The time of all trials to come, of a search or of RFC 2544's tests; within the budget.
    fn left(&self, planned: &Planned, elapsed: Duration) -> Option<Duration> {
        let took = taking(&Plan::joined(planned, &self.campaign.slots).ok()?);
        let all = estimate(Design::of(self.campaign)?, &self.observed, took);
        let left = Duration::from_nanos(all.iter().map(|test| test.ns).sum());
        let budget = planned
            .experiment
            .trials
            .time_ns()
            .map(Duration::from_nanos);
        Some(budget.map_or(left, |budget| left.min(budget.saturating_sub(elapsed))))
    }

    /// Whether a trial is the tester alone or before the tests, in a campaign with tests of RFC 2544.
    fn without_waits(&self, request: &TrialRequest) -> bool {
        let trials = self
            .campaign
            .planned
            .as_ref()
            .map(|planned| &planned.experiment.trials);
        matches!(request.benchmark, None | Some(Benchmark::Stability))
            && trials.is_some_and(|trials| trials.measure == Measure::Rfc2544)
    }

    /// Whether a slot's DUT has not been asked yet how it is configured. One that is known from another slot is recorded for this one.
    fn is_unknown(&mut self, slot: usize) -> Result<bool> {
        let asked = |trial: &TrialRecord| {
            trial.slot == slot
                && trial
                    .collectors
                    .iter()
                    .any(|cost| cost.name == CONFIGURATION)
        };
        if self.facts.iter().any(|facts| facts.slot == slot) || self.trials.iter().any(asked) {
            return Ok(false);
        }
        let dut = self.stand.dut(slot);
        let known = self
            .facts
            .iter()
            .find(|facts| dut.is_some() && self.stand.dut(facts.slot) == dut);
        match known.map(|facts| SlotFacts {
            slot,
            ..facts.clone()
        }) {
            Some(facts) => self.learn(facts).map(|()| false),
            None => Ok(true),
        }
    }

    fn learn(&mut self, facts: SlotFacts) -> Result<()> {
        self.store.append_facts(&facts)?;
        self.facts.push(facts);
        Ok(())
    }

    fn traffic(&self, slot: usize) -> Option<&Traffic> {
        self.campaign.slots[slot].traffic.as_deref()
    }

    /// Frames of each burst of a slot's load.
    fn burst(&self, slot: usize) -> u32 {
        self.traffic(slot).map_or(0, |traffic| traffic.burst)
    }

    /// The trial that the strategy requests.
    fn wanted(&mut self, request: &TrialRequest) -> Result<Request> {
        let timing = self.campaign.asked.timing.lasting(request.duration_ns);
        let timing = if self.without_waits(request) {
            timing.without_waits()
        } else {
            timing
        };
        let TrialRequest {
            slot,
            load: rate,
            shape,
            benchmark,
            ..
        } = *request;
        let configuration = self.is_unknown(slot)?;
        let burst = self.burst(slot);
        Ok(Request {
            slot,
            rate,
            timing,
            shape,
            burst,
            benchmark,
            telemetry: None,
            configuration,
        })
    }

    /// A testbed's evidence with all that the campaign knows; the record gets the rates of each direction.
    fn evidence(
        &self,
        wanted: &Request,
        mut evidence: Evidence,
        record: &mut TrialRecord,
    ) -> Evidence {
        let Request {
            slot,
            rate,
            timing,
            shape,
            burst,
            ..
        } = *wanted;
        for ((_, way), counts) in evidence.ways.iter_mut().zip(&mut record.directions) {
            way.parts = parts(&counts.samples, &timing, shape, rate);
            way.rates = rates(&counts.samples);
            counts.rates = way.rates;
        }
        Evidence {
            shape,
            burst,
            ipv6: self
                .traffic(slot)
                .and_then(|traffic| traffic.ipv6.as_ref())
                .map_or(0, |of| of.millionths),
            parts: parts(&record.samples, &timing, shape, rate),
            rates: rates(&record.samples),
            calibration: self.campaign.slots[slot].is_calibration(),
            others: self.campaign.asked.mode == Mode::Hosts,
            ..evidence
        }
    }

    /// Runs one trial and records it.
    fn one_trial(&mut self, request: &TrialRequest, began_ns: u64) -> Result<Observed> {
        let wanted = self.wanted(request)?;
        let title = || {
            format!(
                "trial {} ({})",
                self.trials.len(),
                self.campaign.name_of(request.slot)
            )
        };
        let TrialOutcome {
            evidence,
            mut record,
            facts,
            ..
        } = self.stand.run(&wanted).with_context(title)?;
        facts.map_or(Ok(()), |facts| self.learn(facts))?;
        let ended_ns = (self.before + self.began.elapsed()).as_nanos() as u64;
        let evidence = self.evidence(&wanted, evidence, &mut record);
        let audit = audit(&evidence);
        let Evidence {
            rates,
            generator,
            receiver,
            losses,
            connections,
            ..
        } = evidence;
        let (sent, once) = (generator.frames, receiver.unique());
        let record = TrialRecord {
            version: VERSION,
            trial: self.trials.len() as u64,
            block: request.block,
            slot: request.slot,
            asked_fps: request.load,
            began_ns,
            took_ns: ended_ns.saturating_sub(began_ns),
            timing: wanted.timing,
            shape: request.shape,
            benchmark: request.benchmark,
            rates,
            // Others' frames may be among those that came.
            loss_ratio: if sent > 0 {
                (1.0 - once as f64 / sent as f64).max(0.0)
            } else {
                0.0
            },
            audit,
            generator,
            receiver,
            losses,
            connections,
            ..record
        };
        let observed = Observed::from(&record);
        // One that was cut short has not the window that was asked for.
        if !interrupted() {
            self.store.append_trial(&record)?;
            self.trials.push(record);
        }
        Ok(observed)
    }
}

/// The fault of the last trials, if no frame left in any of them.
fn nothing_leaves(trials: &[TrialRecord]) -> Option<String> {
    let last = &trials[trials.len().checked_sub(ATTEMPTS)?..];
    let fault = |trial: &TrialRecord| {
        trial
            .audit
            .failures()
            .next()
            .filter(|f| f.starts_with(NOTHING_LEFT))
    };
    last.iter()
        .map(fault)
        .reduce(|first, next| next.and(first))
        .flatten()
}

/// The pause that a plan wants before each trial.
fn pause(campaign: &Campaign) {
    let pause = campaign
        .planned
        .as_ref()
        .map_or(0, |p| p.experiment.trials.pause_ns);
    let until = Instant::now() + Duration::from_nanos(pause);
    while Instant::now() < until && !interrupted() {
        std::thread::sleep((until - Instant::now()).min(Duration::from_millis(50)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loads_in_succession_of_which_no_frame_left_end_a_campaign() {
        let trial = |fault: &str| {
            let evidence = Evidence {
                faults: vec![fault.into()],
                ..Evidence::default()
            };
            TrialRecord {
                audit: audit(&evidence),
                ..TrialRecord::default()
            }
        };
        let nothing = || trial(&format!("{NOTHING_LEFT} (xdp): is the interface up?"));
        let mut trials = vec![
            nothing(),
            nothing(),
            trial("interface g0 went down"),
            nothing(),
            nothing(),
        ];
        assert_eq!(nothing_leaves(&trials), None);
        trials.push(nothing());
        assert!(
            nothing_leaves(&trials)
                .unwrap()
                .contains("is the interface up?")
        );
    }
}
