//! The design of a campaign over hosts.

use super::{Outcome, Phase, Report, Status, StepId};

const SECOND_NS: u64 = 1_000_000_000;

/// A campaign over hosts.
#[derive(Debug, Clone)]
pub struct Design {
    /// How often the phases are carried out.
    pub trials: u32,
    /// Those that are carried out, by [`Phase::ALL`]. Without reset nothing is undone.
    pub phases: [bool; 4],
    pub hosts: Vec<Host>,
    pub rules: Rules,
}

/// A host and its steps.
#[derive(Debug, Clone)]
pub struct Host {
    pub name: String,
    /// The steps of each phase, by [`Phase::ALL`].
    pub phases: [Vec<Step>; 4],
}

impl Host {
    pub fn steps(&self, phase: Phase) -> &[Step] {
        &self.phases[phase as usize]
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// A line for /bin/sh.
    pub command: String,
    pub mode: Mode,
}

/// Whether and how long a step is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is waited for. One that takes longer than its limit and [`Rules::margin_ns`] is ended, and has failed.
    Waited { limit_ns: u64 },
    /// It is waited for and ended at this time exactly, which is no failure.
    Timed { limit_ns: u64 },
    /// It is not waited for. It is ended at its limit or with the trial, which is no failure.
    Background { limit_ns: Option<u64> },
}

impl Mode {
    /// As it was asked for.
    pub fn limit_ns(self) -> Option<u64> {
        match self {
            Mode::Waited { limit_ns } | Mode::Timed { limit_ns } => Some(limit_ns),
            Mode::Background { limit_ns } => limit_ns,
        }
    }

    pub fn is_background(self) -> bool {
        matches!(self, Mode::Background { .. })
    }

    /// Whether this outcome is a failure, in the step's own phase or in a later one.
    ///
    /// A step in the background is ended by others: by `pkill` in a later step, and then with any status.
    pub(super) fn fails(self, outcome: Outcome, in_its_phase: bool) -> bool {
        match outcome {
            Outcome::Ended(Status::Exit(0)) | Outcome::Interrupted | Outcome::Stopped => false,
            Outcome::Ended(Status::Signal(1 | 2 | 9 | 15)) if self.is_background() => false,
            Outcome::Ended(_) => in_its_phase || !self.is_background(),
            Outcome::TimedOut => matches!(self, Mode::Waited { .. }),
            Outcome::Lost => true,
        }
    }
}

/// Limits of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The time that a step that is waited for may take beyond its limit: `sleep 30` with a limit of 30 s has not failed.
    pub margin_ns: u64,
    /// Time from the request to end until a step is killed, and then until it is given up.
    pub grace_ns: u64,
    /// The campaign ends after a host was lost in this many trials in a row.
    pub give_up_after: u32,
    /// Bytes that are kept of the output of a step.
    pub most_output: usize,
}

impl Rules {
    /// When a step is ended at the latest, after its command began.
    pub fn ends_after_ns(&self, mode: Mode) -> Option<u64> {
        let margin_ns = if matches!(mode, Mode::Waited { .. }) { self.margin_ns } else { 0 };
        mode.limit_ns().map(|limit_ns| limit_ns.saturating_add(margin_ns))
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules { margin_ns: 2 * SECOND_NS, grace_ns: 3 * SECOND_NS, give_up_after: 2, most_output: 256 << 10 }
    }
}

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
