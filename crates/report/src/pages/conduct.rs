//! The steps of a Conductor test and the results of its trials: host by host, phase by phase.

use crate::prelude::*;
use linerate_hosts::phases::{Phase, Undone};
use linerate_import::conductor::{Fate, Mode, Step, StepTrial, Test, Trial, phase_name};

/// Lines that are shown of the output of a step that failed: its last.
const SHOWN: usize = 8;

/// A test for a person to read. Commands appear as the shell gets them, line by line.
pub fn conduct(test: &Test, phases: &[Phase]) -> Document {
    let mut page = Document::default();
    let names = phases.iter().map(|phase| phase_name(*phase)).joined(", ");
    let (trials, workers) = (
        counted(test.trials as usize, "trial"),
        counted(test.workers.len(), "worker"),
    );
    page.answer(format!("{}: {trials}, {workers}, {}", test.name, names));
    for worker in &test.workers {
        page.heading(format!(
            "{} on {} ({})",
            worker.name, worker.host, worker.file
        ));
        for phase in phases {
            for (at, step) in worker.steps(*phase).iter().enumerate() {
                let mark = if at == 0 { phase_name(*phase) } else { "" };
                let mark = format!("  {mark:7}  {:>12}  ", manner(step));
                page.marked_code(&mark, &step.command, Tone::Plain);
            }
        }
    }
    page
}

fn manner(step: &Step) -> String {
    match (step.mode, step.limit_s) {
        (Mode::Normal, Some(limit)) => format!("{limit} s"),
        (Mode::Timeout, Some(limit)) => format!("timeout {limit} s"),
        (Mode::Spawn, Some(limit)) => format!("spawn {limit} s"),
        (Mode::Spawn, None) => "spawn".into(),
        (Mode::Normal | Mode::Timeout, None) => "no limit".into(),
    }
}

/// A trial for a person to read: a line for each step, and the last output of each step that failed.
pub fn conducted(trial: &Trial) -> Document {
    let mut page = Document::default();
    let Trial {
        test,
        trial: number,
        trials,
        took_s,
        ..
    } = trial;
    let (tone, result) = match (trial.interrupted, trial.failed_steps()) {
        (true, _) => (Tone::Warning, "interrupted".to_string()),
        (false, 0) if trial.is_whole() => (Tone::Strong, "all steps ended well".into()),
        (false, 0) => (Tone::Warning, "not whole".into()),
        (false, failed) => (
            Tone::Warning,
            format!("{} failed", counted(failed as usize, "step")),
        ),
    };
    page.paragraph(
        format!("{test}: trial {number} of {trials}, {took_s:.1} s: {result}"),
        tone,
    );
    if let (Some(skew), Some(error), 2..) =
        (trial.skew_ms, trial.skew_error_ms, trial.workers.len())
    {
        page.say(format!(
            "the run began on the last worker {skew:.2} ms after the first, +- {error:.2} ms"
        ));
    }
    for worker in &trial.workers {
        let lost = when(worker.verdict.lost, ": lost");
        let reset = when(
            worker.verdict.undone == Undone::No,
            ": not reset, it is not as it was",
        );
        page.heading(format!("{} on {}{lost}{reset}", worker.name, worker.at));
        for steps in worker.steps.chunk_by(|a, b| a.phase == b.phase) {
            for (at, step) in steps.iter().enumerate() {
                stepped(&mut page, if at == 0 { step.phase } else { "" }, step);
            }
        }
    }
    page.gap();
    page
}

/// The result of a test: number of trials, number of failed steps, and the place of the records.
pub fn conducted_all(trials: u32, failed: u32, records: &str) -> Document {
    let mut page = Document::default();
    let failures = match failed {
        0 => "no step failed".to_string(),
        _ => format!("{} failed", counted(failed as usize, "step")),
    };
    let trials = counted(trials as usize, "trial");
    page.say(format!(
        "{trials}, {failures}; outputs, statuses and times: {records}"
    ));
    page
}

fn stepped(page: &mut Document, mark: &str, step: &StepTrial) {
    let tone = if step.failed {
        Tone::Warning
    } else {
        Tone::Plain
    };
    let mark = format!("  {mark:7}  {:>15}  {:>7.2} s  ", fate(step), step.took_s);
    page.marked_code(&mark, &step.step.command, tone);
    if step.failed {
        let lines: Vec<&str> = step.output.lines().collect();
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            page.code(&format!("           | {line}"), Tone::Note);
        }
    }
    if step.may_still_run {
        page.code(
            "           it was told to end, and may still run there",
            Tone::Warning,
        );
    }
}

fn fate(step: &StepTrial) -> String {
    match (step.outcome, step.exit_status, step.signal) {
        (Fate::Ended, Some(0), _) => "ok".into(),
        (Fate::Ended, Some(127), _) => "no such command".into(),
        (Fate::Ended, Some(status), Some(signal)) => format!("{status}, signal {signal}?"),
        (Fate::Ended, status, _) => format!("exit {}", status.unwrap_or_default()),
        (Fate::TimedOut, ..) if !step.failed => "at its limit".into(),
        (Fate::TimedOut, ..) => "too slow".into(),
        (Fate::Interrupted, ..) => "interrupted".into(),
        (Fate::Stopped, ..) => "stopped".into(),
        (Fate::Lost, ..) => "lost".into(),
    }
}
