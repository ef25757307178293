//! What is said of a step that failed: where, which, how, and what to do.

use super::{Design, Mode, Outcome, Report, Status};

/// What is shown of a command, and of its last words.
const SHOWN: usize = 100;

impl Report {
    /// What to tell a user of a step that failed. It names host, phase, step and remedy.
    pub fn complaint(&self, design: &Design) -> Option<String> {
        if !self.failed {
            return None;
        }
        let id = self.step;
        let host = design.hosts.get(id.host)?;
        let planned = host.steps(id.phase).get(id.step);
        let command = planned.map_or("what undoes the set-up", |step| step.command.as_str());
        let (phase, trial, number) = (id.phase.name(), id.trial + 1, id.step + 1);
        let limit_ns = match planned.map(|step| step.mode) {
            Some(Mode::Waited { limit_ns } | Mode::Timed { limit_ns }) => Some(limit_ns),
            Some(Mode::Background { limit_ns }) => limit_ns,
            None => Some(design.rules.undo_limit_ns),
        };
        let (what, remedy) = self.judgement(limit_ns, &host.name);
        let said = self.last_words().map_or_else(String::new, |words| format!(" ({words})"));
        let still = if self.may_still_run { ", and may still run there" } else { "" };
        let command = shown(command);
        Some(format!(
            "{}, {phase} of trial {trial}, step {number}: `{command}` {what}{still}{said}; {remedy}",
            host.name
        ))
    }

    fn judgement(&self, limit_ns: Option<u64>, host: &str) -> (String, String) {
        let full = self.last_words().is_some_and(|words| words.contains("No space left"));
        match self.outcome {
            Outcome::Ended(Status::Exit(127)) => {
                ("was not found".into(), format!("install it on {host}, or correct the step"))
            }
            Outcome::Ended(Status::Exit(126)) => {
                ("could not be run".into(), "see what was said, and correct the step".into())
            }
            Outcome::Ended(status) => {
                let what = match status {
                    Status::Exit(number) => format!("ended with status {number}"),
                    Status::Signal(number) => {
                        format!(
                            "ended with status {}, which may mean signal {number}",
                            status.as_shells_say()
                        )
                    }
                };
                let remedy = if full {
                    format!("make room on the file systems of {host}")
                } else {
                    format!("try it by hand on {host}")
                };
                (what, remedy)
            }
            Outcome::Lost => (
                "was lost with the connection".into(),
                format!("look at the power, console and link of {host}"),
            ),
            Outcome::TimedOut | Outcome::Interrupted | Outcome::Stopped => {
                let within = limit_ns.map_or_else(String::new, |ns| format!(" within {} s", ns as f64 / 1e9));
                (format!("did not end{within}"), "see why it hangs, or give it a higher limit".into())
            }
        }
    }

    /// The last line that it wrote.
    fn last_words(&self) -> Option<String> {
        let bytes = self.output.bytes();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().rev().find(|line| !line.trim().is_empty()).map(shown)
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut letters = plain.trim().chars();
    let line: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_some() { format!("{line}...") } else { line }
}

#[cfg(test)]
mod tests {
    use super::super::{Host, Output, Phase, Rules, Step, StepId};
    use super::*;

    fn report(outcome: Outcome, said: &str) -> String {
        let mode = Mode::Waited { limit_ns: 30_000_000_000 };
        let step = Step { command: "pkt-gen -i em0\n".into(), mode, undo: None };
        let host = Host { name: "r1".into(), group: 0, phases: [vec![], vec![step], vec![], vec![]] };
        let design = Design { trials: 1, phases: [true; 4], hosts: vec![host], rules: Rules::default() };
        let mut output = Output::new(1000);
        output.push(said.as_bytes());
        let step = StepId { trial: 2, phase: Phase::Run, host: 0, step: 0 };
        let report =
            Report { step, outcome, failed: true, may_still_run: false, began_ns: 0, ended_ns: 0, output };
        report.complaint(&design).unwrap()
    }

    #[test]
    fn host_phase_step_and_remedy_are_named() {
        let missing = report(Outcome::Ended(Status::Exit(127)), "sh: 1: pkt-gen: not found\n");
        assert_eq!(
            missing,
            "r1, run of trial 3, step 1: `pkt-gen -i em0` was not found (sh: 1: pkt-gen: not found); \
             install it on r1, or correct the step"
        );
        assert_eq!(
            report(Outcome::TimedOut, ""),
            "r1, run of trial 3, step 1: `pkt-gen -i em0` did not end within 30 s; see why it hangs, or give it a higher limit"
        );
        let full = report(Outcome::Ended(Status::Exit(1)), "a\ndd: /x: No space left on device\n\n");
        assert!(full.ends_with("make room on the file systems of r1"), "{full}");
        assert!(report(Outcome::Ended(Status::Signal(11)), "\u{1b}[2J").contains("signal 11 ([2J)"));
    }
}
