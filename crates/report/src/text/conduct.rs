//! What a test of Conductor would do, host by host and phase by phase.

use super::page::{Ink, Page, Style};
use linerate_core::conductor::{Mode, Step, Test};
use linerate_core::phases::Phase;

/// A test for a person to read. Commands stand as they are given to the shell, line by line.
pub fn conduct(test: &Test, phases: &[Phase], style: Style) -> String {
    let mut page = Page::new(style);
    let some = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let names: Vec<&str> = phases.iter().map(|phase| name(*phase)).collect();
    let (trials, workers) = (some(test.trials as usize, "trial"), some(test.workers.len(), "worker"));
    page.paragraph(&format!("{}: {trials}, {workers}, {}", test.name, names.join(", ")), Ink::Bold);
    for worker in &test.workers {
        page.heading(&format!("{} on {} ({})", worker.name, worker.host, worker.file));
        for phase in phases {
            for (at, step) in worker.steps(*phase).iter().enumerate() {
                let mark = if at == 0 { name(*phase) } else { "" };
                let mut mark = format!("  {mark:7}  {:>12}  ", manner(step));
                for line in step.command.lines() {
                    page.verbatim(&format!("{mark}{line}"), Ink::Plain);
                    mark = " ".repeat(mark.len());
                }
            }
        }
    }
    page.finish()
}

/// The phase as Conductor calls it.
fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::SetUp => "startup",
        Phase::Run | Phase::Collect | Phase::Reset => phase.name(),
    }
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
