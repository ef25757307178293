//! A campaign over hosts, its events, its orders, and its results.

use super::supervision::{Cause, Outcome, Output, Signal, Status};
use crate::words::{one_line, unless_empty};
use serde::{Deserialize, Serialize};

/// The phases of a trial, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Hosts are prepared.
    SetUp,
    /// Load is offered and counted.
    Run,
    /// Results are fetched.
    Collect,
    /// Hosts are restored.
    Reset,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::SetUp, Phase::Run, Phase::Collect, Phase::Reset];

    pub fn name(self) -> &'static str {
        match self {
            Phase::SetUp => "set-up",
            Phase::Run => "run",
            Phase::Collect => "collect",
            Phase::Reset => "reset",
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// A campaign over hosts.
#[derive(Debug, Clone)]
pub struct Design {
    /// How often the phases are carried out.
    pub trials: u32,
    /// Phases that are carried out, by [`Phase::ALL`]. Without reset nothing is undone.
    pub phases: [bool; 4],
    pub hosts: Vec<Host>,
    pub rules: Rules,
}

/// A host and its steps.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub name: String,
    /// Whether its steps are run by `sudo -n`.
    pub sudo: bool,
    /// The first signal to a step that has to end.
    pub stop: Signal,
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
    /// The step is waited for. One that takes longer than its limit and [`Rules::margin_ns`] is ended, and has failed.
    Waited { limit_ns: u64 },
    /// The step is waited for and ended at this time exactly, which is no failure.
    Timed { limit_ns: u64 },
    /// The step is not waited for. It is ended at its limit or with the trial, which is no failure.
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
    /// Whether set-up, run and collection each last until there is enough of them ([`Event::Enough`]).
    pub held: bool,
}

impl Rules {
    /// When a step is ended at the latest, after its command began.
    pub fn ends_after_ns(&self, mode: Mode) -> Option<u64> {
        let margin_ns = if matches!(mode, Mode::Waited { .. }) {
            self.margin_ns
        } else {
            0
        };
        mode.limit_ns()
            .map(|limit_ns| limit_ns.saturating_add(margin_ns))
    }
}

impl Default for Rules {
    fn default() -> Self {
        let (margin_ns, grace_ns, most_output) = (2 * SECOND_NS, 3 * SECOND_NS, 256 << 10);
        Rules {
            margin_ns,
            grace_ns,
            give_up_after: 2,
            most_output,
            held: false,
        }
    }
}

/// Letters that are shown of a command, and of its last line.
const SHOWN: usize = 100;

/// `run of trial 1, step 2`, and the beginning of the command.
pub fn place(design: &Design, step: StepId) -> (String, String) {
    let StepId {
        trial,
        phase,
        host,
        step,
    } = step;
    let text = format!("{} of trial {}, step {}", phase.name(), trial + 1, step + 1);
    let command = &design.hosts[host].steps(phase)[step].command;
    (text, one_line(command, SHOWN))
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
        let said = unless_empty(" (", &self.last_words(), ")");
        let still = if self.end.may_still_run {
            ", and may still run there"
        } else {
            ""
        };
        Some(format!(
            "{}, {place}: `{command}` {what}{still}{said}; {remedy}",
            host.name
        ))
    }

    fn judgement(&self, limit_ns: Option<u64>, host: &str) -> (String, String) {
        match self.end.outcome {
            Outcome::Ended(Status::Exit(127)) => (
                "was not found".into(),
                format!("install it on {host}, or correct the step"),
            ),
            Outcome::Ended(Status::Exit(126)) => (
                "could not be run".into(),
                "see what was said, and correct the step".into(),
            ),
            Outcome::Ended(status) => {
                let mut what = format!("ended with status {}", status.as_shells_say());
                if let Some(signal) = status.signal() {
                    what += &format!(", which may mean signal {signal}");
                }
                let todo = match self.last_words().contains("No space left") {
                    true => "make room on the file systems of",
                    false => "try it by hand on",
                };
                (what, format!("{todo} {host}"))
            }
            Outcome::Lost => (
                "was lost with the connection".into(),
                format!("look at the power, console and link of {host}"),
            ),
            Outcome::TimedOut | Outcome::Interrupted | Outcome::Stopped => {
                let within = limit_ns
                    .map_or_else(String::new, |ns| format!(" within {} s", ns as f64 / 1e9));
                (
                    format!("did not end{within}"),
                    "see why it hangs, or give it a higher limit".into(),
                )
            }
        }
    }

    /// The last line that it wrote.
    fn last_words(&self) -> String {
        let bytes = self.end.output.bytes();
        let text = String::from_utf8_lossy(&bytes);
        one_line(text.trim().lines().last().unwrap_or_default(), SHOWN)
    }
}

/// A step of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StepId {
    /// From 0.
    pub trial: u32,
    pub phase: Phase,
    /// Place of the host in the design.
    pub host: usize,
    /// Step of that phase, from 0.
    pub step: usize,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first trial may begin, or the next one.
    Go,
    /// A step is over.
    Ended(StepId, End),
    /// The connection to a host is lost, or could not be made. The loss of its steps is the next event.
    Lost(usize),
    /// A phase that is held need last no longer: steps that are waited for are ended.
    Enough,
    /// The user wants it to end.
    Interrupt,
}

/// The way in which a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub outcome: Outcome,
    /// Whether the step may still run: it was lost, or was killed and given up.
    pub may_still_run: bool,
    /// When its command began, of a clock that never goes back.
    pub began_ns: u64,
    /// When it was over.
    pub ended_ns: u64,
    pub output: Output,
}

/// An order of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A phase of a trial begins. All that is to be started at once follows.
    Phase { trial: u32, phase: Phase },
    /// Start this step of the design.
    Start(StepId),
    /// End a step. One that is ending already goes on doing so.
    End(StepId, Cause),
    /// A step is over.
    Report(Report),
    /// A host was lost too often: there is no further trial.
    GivenUp(usize),
    /// A trial is over, with the result on each host.
    Trial { trial: u32, verdicts: Vec<Verdict> },
    /// The campaign is over.
    Over,
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub step: StepId,
    /// Whether this counts as a failure.
    pub failed: bool,
    pub end: End,
}

/// The verdict on a host in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Steps that failed.
    pub failed_steps: u32,
    /// Whether the host was lost, or did not obey.
    pub lost: bool,
    /// The trial was cut short, by an interrupt or because a host was lost.
    pub cut_short: bool,
    #[serde(rename = "reset")]
    pub undone: Undone,
}

impl Verdict {
    /// Whether the results of the trial there may be used.
    pub fn is_whole(&self) -> bool {
        self.failed_steps == 0 && !self.lost && !self.cut_short
    }
}

/// The outcome of the reset of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// Reset was not asked for.
    NotNeeded,
    /// All its steps ended without failure.
    All,
    /// All its steps were run, and some failed.
    WithFailures,
    /// The host could not be reached, or did not end a step: it is not as it was.
    No,
}
