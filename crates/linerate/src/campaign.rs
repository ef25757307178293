//! Runs a campaign on a testbed: takes trials from the schedule, audits each, records it at once, and sums up.

use crate::interrupt::{INTERRUPTED, interrupted};
use crate::progress::Progress;
use crate::testbed::{Testbed, TrialOutcome};
use anyhow::{Context, Result};
use linerate_linux::host::memory::peak_rss_bytes;
use linerate_linux::records::RecordStore;
use linerate_measure::audit::{Evidence, audit};
use linerate_measure::record::{Campaign, HostFacts, Summary, TrialRecord, VERSION};
use linerate_measure::schedule::{Design, Schedule, Stopped};
use linerate_measure::summary::summarise;
use linerate_measure::trial::rates;
use linerate_plan::settings::Mode;
use linerate_plan::timing::Timing;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a campaign came to.
pub struct Finished {
    /// The verdict.
    pub summary: Summary,
    /// Where the records are.
    pub directory: PathBuf,
    /// What ended it early.
    pub failure: Option<anyhow::Error>,
    store: RecordStore,
}

impl Finished {
    /// Adds the time that it took to put the lab back, and the reboots that were part of it.
    ///
    /// # Errors
    /// The summary cannot be written again.
    pub fn put_back(&mut self, took: Duration, reboots: u32) -> Result<()> {
        let summary = &mut self.summary;
        let loaded = summary.load_share * summary.seconds;
        summary.seconds += took.as_secs_f64();
        summary.load_share = if summary.seconds > 0.0 { loaded / summary.seconds } else { 0.0 };
        summary.reboots += reboots;
        self.store.write_summary(&self.summary).context("writing the records")
    }
}

/// Trials recorded before resuming.
pub struct Earlier {
    /// Its trials.
    pub trials: Vec<TrialRecord>,
}

/// Runs the campaign to its end. A failure in the middle is reported with what was measured until then.
///
/// # Errors
/// The records cannot be written at all; or the trials before do not belong to this campaign.
pub fn run(
    campaign: &Campaign,
    host: &HostFacts,
    stand: &mut dyn Testbed,
    store: RecordStore,
    earlier: Option<Earlier>,
    progress: &Progress,
) -> Result<Finished> {
    if earlier.is_none() {
        // The campaign last: what has one can be resumed, and that needs the host.
        store.write_host(host)?;
        store.write_campaign(campaign)?;
    }
    let trials = earlier.map_or(Vec::new(), |e| e.trials);
    let design = Design::of(campaign);
    let mut schedule =
        Schedule::replay(design, &trials).context("going on where the campaign was stopped")?;
    let before = trials.last().map_or(0, TrialRecord::ended_ns);
    let before = Duration::from_nanos(before);
    let mut conductor = Conductor { campaign, stand, store, trials, began: Instant::now(), before };
    let (stopped, failure) = conductor.all_trials(&mut schedule, progress);
    let Conductor { mut store, trials, .. } = conductor;
    // Before the summary, which says that the campaign came to its end: the trials that it is about must be there by then.
    let kept = store.finish();
    let summary = summarise(campaign, &trials, stopped, peak_rss_bytes());
    let directory = store.directory().to_path_buf();
    let written = kept.and(store.write_summary(&summary));
    let failure = failure.or(written.err().map(|e| anyhow::Error::from(e).context("writing the records")));
    Ok(Finished { summary, directory, failure, store })
}

struct Conductor<'a> {
    campaign: &'a Campaign,
    stand: &'a mut dyn Testbed,
    store: RecordStore,
    trials: Vec<TrialRecord>,
    began: Instant,
    /// Time that the campaign had taken when it was stopped.
    before: Duration,
}

impl Conductor<'_> {
    fn all_trials(
        &mut self,
        schedule: &mut Schedule,
        progress: &Progress,
    ) -> (Stopped, Option<anyhow::Error>) {
        loop {
            if interrupted() {
                return (Stopped::Interrupted, None);
            }
            let elapsed = self.before + self.stand.passed().unwrap_or_else(|| self.began.elapsed());
            progress.advance(elapsed);
            // The schedule's time is what is recorded: so it can be replayed.
            let began_ns = elapsed.as_nanos() as u64;
            let (block, slot) = match schedule.next(began_ns) {
                Ok(next) => next,
                Err(stopped) => return (stopped, None),
            };
            progress.say(describe(self.campaign, schedule, slot));
            if self.stand.passed().is_none() {
                pause(self.campaign);
            }
            match self.one_trial(block, slot, began_ns) {
                Ok(rate) => schedule.observe(block, slot, rate),
                Err(_) if interrupted() => return (Stopped::Interrupted, None),
                Err(error) => return (Stopped::Failed, Some(error)),
            }
        }
    }

    /// Runs one trial and records it. Its forwarding rate, if the audit holds.
    fn one_trial(&mut self, block: u32, slot: usize, began_ns: u64) -> Result<Option<f64>> {
        let timing = self.campaign.asked.timing;
        let title = || format!("trial {} ({})", self.trials.len(), self.campaign.slots[slot].title());
        let shown = self.stand.run(slot, timing, &INTERRUPTED).with_context(title)?;
        if interrupted() {
            return Ok(None); // cut short: its window is not what was asked for
        }
        let ended_ns = (self.before + self.began.elapsed()).as_nanos() as u64;
        let took_ns = ended_ns.saturating_sub(began_ns);
        let record = TrialRecord { took_ns, ..self.record(block, slot, began_ns, timing, shown) };
        let rate = record.rates.filter(|_| record.audit.valid).map(|r| r.received);
        self.store.append_trial(&record)?;
        self.trials.push(record);
        Ok(rate)
    }

    fn record(
        &self,
        block: u32,
        slot: usize,
        began_ns: u64,
        timing: Timing,
        shown: TrialOutcome,
    ) -> TrialRecord {
        let rates = rates(&shown.outcome.samples);
        let evidence = Evidence {
            asked: self.campaign.slots[slot].asked_fps,
            rates,
            generator: shown.generator,
            receiver: shown.receiver,
            losses: shown.account.losses,
            second_counts: shown.account.second_counts,
            calibration: self.campaign.slots[slot].is_calibration(),
            others: self.campaign.asked.mode == Mode::Hosts,
            connections: shown.connections,
            faults: shown.outcome.faults,
        };
        let sent = evidence.generator.frames;
        let once = evidence.receiver.unique();
        TrialRecord {
            version: VERSION,
            trial: self.trials.len() as u64,
            block,
            slot,
            began_ns,
            took_ns: 0,
            reboots: shown.reboots,
            timing,
            rates,
            // Others' frames may be among those that came.
            loss_ratio: if sent > 0 { (1.0 - once as f64 / sent as f64).max(0.0) } else { 0.0 },
            audit: audit(&evidence),
            generator: evidence.generator,
            receiver: evidence.receiver,
            losses: evidence.losses,
            dut: shown.account.dut,
            cpus: shown.cpus,
            samples: shown.outcome.samples,
            connections: evidence.connections,
            collected: shown.collected,
            rules: shown.rules,
            skew_ns: shown.skew_ns,
            imported: None,
        }
    }
}

/// The pause that a plan wants before each trial.
fn pause(campaign: &Campaign) {
    let pause = campaign.planned.as_ref().map_or(0, |p| p.plan.trials.pause_ns);
    let until = Instant::now() + Duration::from_nanos(pause);
    while Instant::now() < until && !interrupted() {
        std::thread::sleep((until - Instant::now()).min(Duration::from_millis(50)));
    }
}

fn describe(campaign: &Campaign, schedule: &Schedule, slot: usize) -> String {
    let title = campaign.slots[slot].title();
    match schedule.widest().filter(|w| w.is_finite()) {
        Some(width) => {
            format!("block {}: {title}; ratios known to {:.1} %", schedule.blocks(), 100.0 * width)
        }
        None => format!("block {}: {title}", schedule.blocks()),
    }
}
