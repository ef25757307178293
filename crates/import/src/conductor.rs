//! The tests of Conductor, the coordinator of "Measure Twice, Code Once", read from its own configuration files.
//!
//! A main file names the players, a player's file its host and the steps of four phases. Both vocabularies are read: `[Clients]`
//! and `[Master]` of 2014 to 2016, `[Workers]` and `[Coordinator]` of 2025. Nothing here touches a file: texts come from a
//! function. All faults of a test are reported at once. docs/conductor.md has the format, and where this differs from Conductor.

mod files;
mod ini;
mod interpolation;
mod record;
mod source;
mod step;

#[cfg(test)]
mod tests;

pub use files::read;
pub use record::{Fate, Recorder, StepTrial, Trial, WorkerTrial, phase_name};

use linerate_hosts::phases::{self, Design, Phase, Rules};
use serde::{Serialize, Serializer};

/// Bytes of a file at most. The longest published one has 1,500.
pub const MOST_BYTES: usize = linerate_plan::MOST_BYTES;
/// Trials of a test at most.
pub const MOST_TRIALS: u32 = 1_000_000;
/// Workers of a test at most.
pub const MOST_WORKERS: usize = 1000;
/// Seconds that Conductor gives a step that does not say how long it may take.
pub const DEFAULT_LIMIT_S: u32 = 30;

/// The sections that stand for phases.
const PHASES: [(&str, Phase); 4] = [
    ("Startup", Phase::SetUp),
    ("Run", Phase::Run),
    ("Collect", Phase::Collect),
    ("Reset", Phase::Reset),
];
/// All sections that mean something.
const SECTIONS: [&str; 9] = [
    "Test",
    "Clients",
    "Workers",
    "Master",
    "Coordinator",
    "Startup",
    "Run",
    "Collect",
    "Reset",
];

/// A test: its hosts, their steps, and the number of trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Test {
    /// The name of its main file, or of the folder that has it where the file is called as everybody's is.
    pub name: String,
    /// How often all phases are carried out.
    pub trials: u32,
    /// Format of the results, if it names one.
    #[serde(skip)]
    pub form: Option<Form>,
    /// In the order of the main file.
    pub workers: Vec<Worker>,
}

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A host and its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Name in the main file, in lower case.
    pub name: String,
    /// The player's file, as the main file names it.
    pub file: String,
    /// The address of its player.
    pub host: String,
    /// The address that the player would report to.
    pub conductor: String,
    /// The port that the player would take commands at.
    #[serde(rename = "cmdport")]
    pub command_port: u16,
    /// The port that the conductor would take results at.
    #[serde(rename = "resultsport")]
    pub results_port: u16,
    /// Startup, Run, Collect, Reset, with their steps.
    #[serde(serialize_with = "by_name")]
    pub phases: Vec<(Phase, Vec<Step>)>,
}

impl Test {
    /// Forgets the steps of all phases but these.
    pub fn retain(&mut self, phases: &[Phase]) {
        for worker in &mut self.workers {
            worker.phases.retain(|(phase, _)| phases.contains(phase));
        }
    }

    /// The steps of the run, each with its worker.
    pub fn commands(&self) -> impl Iterator<Item = (&Worker, &Step)> {
        self.workers.iter().flat_map(|worker| {
            worker
                .steps(Phase::Run)
                .iter()
                .map(move |step| (worker, step))
        })
    }

    /// The campaign that carries this test out: all workers need each other.
    ///
    /// Conductor goes on when a step has failed: `rules` say whether this does.
    pub fn design(&self, wanted: &[Phase]) -> Design {
        let phases = Phase::ALL.map(|phase| wanted.contains(&phase));
        let hosts = self.workers.iter().map(|worker| phases::Host {
            name: worker.name.clone(),
            phases: Phase::ALL.map(|phase| worker.steps(phase).iter().map(Step::design).collect()),
            ..phases::Host::default()
        });
        Design {
            trials: self.trials,
            phases,
            hosts: hosts.collect(),
            rules: Rules::default(),
        }
    }
}

impl Worker {
    /// The steps of a phase.
    pub fn steps(&self, phase: Phase) -> &[Step] {
        self.phases
            .iter()
            .find(|(p, _)| *p == phase)
            .map_or(&[], |(_, steps)| steps)
    }
}

fn by_name<S: Serializer>(phases: &[(Phase, Vec<Step>)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(
        phases
            .iter()
            .map(|(phase, steps)| (phase_name(*phase), steps)),
    )
}

/// One command of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Key of the step, in lower case.
    #[serde(skip)]
    pub key: String,
    /// The command for the shell.
    pub command: String,
    /// Whether it is waited for.
    pub mode: Mode,
    /// Seconds after which it is ended; `None` for one in the background, which ends with the trial.
    pub limit_s: Option<u32>,
    /// Line in the player's file, from 1.
    #[serde(skip)]
    pub line: usize,
}

impl Step {
    fn design(&self) -> phases::Step {
        let limit_ns = self
            .limit_s
            .map(|seconds| u64::from(seconds) * 1_000_000_000);
        let mode = match (self.mode, limit_ns) {
            (Mode::Normal, Some(limit_ns)) => phases::Mode::Waited { limit_ns },
            (Mode::Timeout, Some(limit_ns)) => phases::Mode::Timed { limit_ns },
            (_, limit_ns) => phases::Mode::Background { limit_ns },
        };
        phases::Step {
            command: self.command.clone(),
            mode,
        }
    }
}

/// Whether a step is waited for, and the meaning of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The step is waited for; one that takes longer than its limit has failed.
    Normal,
    /// The step is started and not waited for.
    Spawn,
    /// The step is waited for, and ended at its limit: that is how long it is to run.
    Timeout,
}

/// The selected parts of a test.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seconds for steps that do not say how long they may take.
    pub limit_s: u32,
    /// The names of workers, whatever their case; none for all. Files of others are not read.
    pub workers: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limit_s: DEFAULT_LIMIT_S,
            workers: Vec::new(),
        }
    }
}
