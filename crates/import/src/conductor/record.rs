//! The record of a test's trial: one line of JSON each.

use super::{Step, Test, Worker};
use linerate_hosts::phases::{Outcome, Phase, Report, Verdict};
use serde::Serialize;

/// A trial that is over.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// The version of this form: 1.
    pub format: u32,
    /// The test's name.
    pub test: String,
    /// Which trial, from 1.
    pub trial: u32,
    /// Number of trials of the test.
    pub trials: u32,
    /// When it began: RFC 3339, UTC.
    pub began: String,
    /// Seconds that it took.
    pub took_s: f64,
    /// The user stopped it.
    pub interrupted: bool,
    /// How much later the run began on the last host than on the first, in milliseconds, if measured.
    pub skew_ms: Option<f64>,
    /// How wrong that can be.
    pub skew_error_ms: Option<f64>,
    /// In the order of the test.
    pub workers: Vec<WorkerTrial>,
}

/// Result of a trial on one host.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerTrial {
    /// The worker's name.
    pub name: String,
    /// The worker's address in the test.
    pub host: String,
    /// Where its steps were run: an ssh destination, a namespace, or this machine.
    pub at: String,
    /// Verdict on the worker.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Steps that were started, in the order of phases and steps.
    pub steps: Vec<StepTrial>,
}

/// Result of one step.
#[derive(Debug, Clone, Serialize)]
pub struct StepTrial {
    /// `startup`, `run`, `collect` or `reset`.
    pub phase: &'static str,
    /// Key of the step.
    pub key: String,
    /// Line of the step in the player's file.
    pub line: usize,
    /// Command, mode and limit of the step.
    #[serde(flatten)]
    pub step: Step,
    pub outcome: Fate,
    /// Exit status of the command, if it ended by itself. A shell returns 128 plus the number of the signal that ended a command.
    pub exit_status: Option<i32>,
    /// The signal that its exit status may stand for: a command may also end with 129 to 159 itself.
    pub signal: Option<i32>,
    /// Whether this counts as a failure.
    pub failed: bool,
    /// Whether the step may still run: it did not end on request.
    pub may_still_run: bool,
    /// When it was started, in seconds since the trial's beginning.
    pub began_s: f64,
    /// Seconds that it took.
    pub took_s: f64,
    /// Standard output and standard error, with a line in place of an omitted middle. Bytes that are not UTF-8 are replaced.
    pub output: String,
    /// Bytes that it wrote.
    pub output_bytes: u64,
    /// Bytes that were not kept.
    pub output_missing: u64,
}

/// Result of a step, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The step ended by itself.
    Ended,
    /// The step was ended at its limit.
    TimedOut,
    /// The step was ended because the user stopped the test.
    Interrupted,
    /// The step ran in the background, and was ended with the trial.
    Stopped,
    /// The connection was lost while it ran.
    Lost,
}

impl Trial {
    /// Steps that failed, on all hosts.
    pub fn failed_steps(&self) -> u32 {
        self.workers
            .iter()
            .map(|worker| worker.verdict.failed_steps)
            .sum()
    }

    /// Whether all its steps were run, and none failed.
    pub fn is_whole(&self) -> bool {
        !self.interrupted && self.workers.iter().all(|worker| worker.verdict.is_whole())
    }
}

/// Puts the reports of a trial together.
#[derive(Debug)]
pub struct Recorder<'t> {
    test: &'t Test,
    /// Where each worker's steps run.
    at: Vec<String>,
    began: Option<(u64, String)>,
    /// From the first to the last beginning of a run, and how wrong that can be.
    skew_ns: Option<(u64, u64)>,
    /// By worker.
    reports: Vec<Vec<Report>>,
}

impl<'t> Recorder<'t> {
    /// For the trials of a test whose workers' steps run there.
    pub fn new(test: &'t Test, at: Vec<String>) -> Self {
        let reports = vec![Vec::new(); test.workers.len()];
        Recorder {
            test,
            at,
            began: None,
            skew_ns: None,
            reports,
        }
    }

    /// A phase begins, at this time of a clock and of the calendar (RFC 3339). The first one is the beginning of the trial.
    pub fn phase(&mut self, now_ns: u64, calendar: impl FnOnce() -> String) {
        if self.began.is_none() {
            // Late messages about the trial before do not belong to this one.
            self.skew_ns = None;
            self.began = Some((now_ns, calendar()));
        }
    }

    /// A step is over.
    pub fn step(&mut self, report: Report) {
        if let Some(reports) = self.reports.get_mut(report.step.host) {
            reports.push(report);
        }
    }

    /// A run has begun on all hosts, within `skew_ns` nanoseconds.
    pub fn started(&mut self, skew_ns: u64, error_ns: u64) {
        self.skew_ns = Some((skew_ns, error_ns));
    }

    /// A trial is over; the next one may begin.
    pub fn trial(
        &mut self,
        trial: u32,
        verdicts: &[Verdict],
        interrupted: bool,
        now_ns: u64,
    ) -> Trial {
        let skew = self.skew_ns.take();
        let (began_ns, began) = self.began.take().unwrap_or((now_ns, String::new()));
        let workers = self
            .test
            .workers
            .iter()
            .zip(&self.at)
            .zip(verdicts)
            .zip(&mut self.reports);
        let workers = workers.map(|(((worker, at), verdict), reports)| {
            let mut reports = std::mem::take(reports);
            reports.sort_by_key(|report| report.step);
            WorkerTrial {
                name: worker.name.clone(),
                host: worker.host.clone(),
                at: at.clone(),
                verdict: *verdict,
                steps: reports
                    .iter()
                    .filter_map(|report| step(worker, report, began_ns))
                    .collect(),
            }
        });
        Trial {
            format: 1,
            test: self.test.name.clone(),
            trial: trial + 1,
            trials: self.test.trials,
            took_s: seconds(now_ns.saturating_sub(began_ns)),
            began,
            interrupted,
            skew_ms: skew.map(|(skew, _)| milliseconds(skew)),
            skew_error_ms: skew.map(|(_, error)| milliseconds(error)),
            workers: workers.collect(),
        }
    }
}

fn step(worker: &Worker, report: &Report, began_ns: u64) -> Option<StepTrial> {
    let step = worker.steps(report.step.phase).get(report.step.step)?;
    let (outcome, exit_status, signal) = match report.end.outcome {
        Outcome::Ended(status) => (Fate::Ended, Some(status.as_shells_say()), status.signal()),
        Outcome::TimedOut => (Fate::TimedOut, None, None),
        Outcome::Interrupted => (Fate::Interrupted, None, None),
        Outcome::Stopped => (Fate::Stopped, None, None),
        Outcome::Lost => (Fate::Lost, None, None),
    };
    Some(StepTrial {
        phase: phase_name(report.step.phase),
        key: step.key.clone(),
        line: step.line,
        step: step.clone(),
        outcome,
        exit_status,
        signal,
        failed: report.failed,
        may_still_run: report.end.may_still_run,
        began_s: seconds(report.end.began_ns.saturating_sub(began_ns)),
        took_s: seconds(report.end.ended_ns.saturating_sub(report.end.began_ns)),
        output: String::from_utf8_lossy(&report.end.output.bytes()).into_owned(),
        output_bytes: report.end.output.total(),
        output_missing: report.end.output.missing(),
    })
}

/// A phase as Conductor calls it.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::SetUp => "startup",
        Phase::Run | Phase::Collect | Phase::Reset => phase.name(),
    }
}

fn milliseconds(ns: u64) -> f64 {
    seconds(ns) * 1000.0
}

/// Rounded to microseconds, the precision of a step's times on another host.
fn seconds(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1e6
}
