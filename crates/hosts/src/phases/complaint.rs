//! The message about a step that failed: where, which, how, and the remedy.

use super::{Design, Outcome, Report, Status, StepId};

/// Letters that are shown of a command, and of its last line.
const SHOWN: usize = 100;

/// `run of trial 1, step 2`, and the beginning of the command.
pub fn place(design: &Design, step: StepId) -> (String, String) {
    let StepId { trial, phase, host, step } = step;
    let text = format!("{} of trial {}, step {}", phase.name(), trial + 1, step + 1);
    (text, shown(&design.hosts[host].steps(phase)[step].command))
}

impl Report {
    /// The message to the user about a step that failed, with host, phase, step and remedy.
    pub fn complaint(&self, design: &Design) -> Option<String> {
        if !self.failed {
            return None;
        }
        let host = &design.hosts[self.step.host];
        let (place, command) = place(design, self.step);
        let limit_ns = host.steps(self.step.phase)[self.step.step].mode.limit_ns();
        let (what, remedy) = self.judgement(limit_ns, &host.name);
        let said = self.last_words().map_or_else(String::new, |words| format!(" ({words})"));
        let still = if self.end.may_still_run { ", and may still run there" } else { "" };
        Some(format!("{}, {place}: `{command}` {what}{still}{said}; {remedy}", host.name))
    }

    fn judgement(&self, limit_ns: Option<u64>, host: &str) -> (String, String) {
        match self.end.outcome {
            Outcome::Ended(Status::Exit(127)) => {
                ("was not found".into(), format!("install it on {host}, or correct the step"))
            }
            Outcome::Ended(Status::Exit(126)) => {
                ("could not be run".into(), "see what was said, and correct the step".into())
            }
            Outcome::Ended(status) => {
                let mut what = format!("ended with status {}", status.as_shells_say());
                if let Some(signal) = status.signal() {
                    what += &format!(", which may mean signal {signal}");
                }
                let full = self.last_words().is_some_and(|words| words.contains("No space left"));
                let todo = if full { "make room on the file systems of" } else { "try it by hand on" };
                (what, format!("{todo} {host}"))
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
        let bytes = self.end.output.bytes();
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
