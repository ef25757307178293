//! Campaigns: `linerate bench` with its records.

use super::{Ended, Program, Scratch, linerate};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A campaign to be run, in a scratch folder.
pub struct Bench {
    scratch: Scratch,
    args: Vec<String>,
}

impl Bench {
    /// `linerate bench` with these arguments, separated by blanks. The batch is given, for choosing it takes half a second.
    pub fn new(line: &str) -> Self {
        let scratch = Scratch::new();
        let batch = if ["--batch", "--rate", "--simulate"]
            .iter()
            .any(|o| line.contains(o))
        {
            ""
        } else {
            "--batch 64"
        };
        let mut args: Vec<String> = format!("bench {line} {batch} --out")
            .split_whitespace()
            .map(String::from)
            .collect();
        args.push(scratch.file("records"));
        Bench { scratch, args }
    }

    /// More arguments.
    pub fn and(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|a| a.to_string()));
        self
    }

    /// Where its records will be.
    pub fn directory(&self) -> PathBuf {
        self.scratch.path().join("records")
    }

    /// The program, to be started by hand.
    pub fn program(&self) -> Program {
        linerate(&self.args).dir(self.scratch.path())
    }

    /// Runs it to its end, which must be a success.
    #[track_caller]
    pub fn run(self) -> Campaign {
        let ended = self.program().within(180).run().ok();
        self.read(ended)
    }

    /// Runs it to its end beside other programs, which may keep trials out of the verdict: where they were all trials of a slot, the status
    /// is 1.
    #[track_caller]
    pub fn run_beside(self) -> Campaign {
        let ended = self.program().within(180).run().no_panic();
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        self.read(ended)
    }

    /// Runs it to its end before other programs of the machine. For loads that are paced: their generator has to run when a
    /// frame is due. Where it could not, all trials of a slot may be invalid, and the status 1.
    #[track_caller]
    pub fn run_first(self) -> Campaign {
        let ended = self.program().within(180).first().run().no_panic();
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        self.read(ended)
    }

    /// Reads the records of a campaign that has ended somehow.
    pub fn read(self, ended: Ended) -> Campaign {
        let directory = self.directory();
        Campaign {
            trials: trials(&directory),
            ended,
            directory,
            scratch: self.scratch,
        }
    }
}

/// A campaign that has ended.
pub struct Campaign {
    /// Where its records are.
    pub directory: PathBuf,
    /// The whole lines of `trials.jsonl`.
    pub trials: Vec<Value>,
    /// The program.
    pub ended: Ended,
    scratch: Scratch,
}

impl Campaign {
    /// A document of the records, by its name.
    #[track_caller]
    pub fn document(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.directory.join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Where its records are, as text.
    pub fn path(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    /// The number of the slot whose variant is called this.
    #[track_caller]
    pub fn slot(&self, variant: &str) -> u64 {
        let campaign = self.document("campaign.json");
        let slots = campaign["slots"].as_array().unwrap();
        let slot = slots.iter().find(|s| s["variant"] == variant);
        slot.unwrap_or_else(|| panic!("no slot of {variant} in {slots:?}"))["id"]
            .as_u64()
            .unwrap()
    }

    /// The trials of the first slot of a variant.
    #[track_caller]
    pub fn of(&self, variant: &str) -> Vec<&Value> {
        let slot = self.slot(variant);
        let trials: Vec<&Value> = self.trials.iter().filter(|t| t["slot"] == slot).collect();
        assert!(!trials.is_empty(), "no trial of {variant}");
        trials
    }

    /// The summary's row of the first slot of a variant.
    pub fn row(&self, variant: &str) -> Value {
        self.document("summary.json")["rows"][self.slot(variant) as usize].clone()
    }
}

/// The whole lines of a folder's `trials.jsonl`; empty without a file.
pub fn trials(directory: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .collect()
}

/// Frames that a trial's receiver saw twice.
pub fn duplicates(trial: &Value) -> u64 {
    let streams = trial["receiver"]["streams"].as_array().unwrap();
    streams
        .iter()
        .map(|s| s["duplicates"].as_u64().unwrap())
        .sum()
}

/// Frames sent, and received once, in a trial.
pub fn sent_and_received(trial: &Value) -> (u64, u64) {
    let frames = |end: &str| trial[end]["frames"].as_u64().unwrap();
    (frames("generator"), frames("receiver") - duplicates(trial))
}

/// Frames lost at known places in a trial whose name has this text.
pub fn located(trial: &Value, place: &str) -> u64 {
    let losses = trial["losses"].as_array().unwrap().iter();
    let there = losses.filter(|l| l["place"].as_str().unwrap().contains(place));
    there.map(|l| l["frames"].as_u64().unwrap()).sum()
}

/// Whether the audit of a trial held.
pub fn valid(trial: &Value) -> bool {
    trial["audit"]["valid"] == true
}

/// The failed checks of a trial's audit.
pub fn failures(trial: &Value) -> Vec<String> {
    let checks = trial["audit"]["checks"].as_array().unwrap().iter();
    checks
        .filter(|c| c["ok"] == false)
        .map(|c| format!("{}: {}", c["name"], c["found"]))
        .collect()
}

/// Checks that a trial on a busy machine may fail, so that it is rightly kept out of the verdict: a program did not run when it
/// had to, or a ring ran over meanwhile. All counts are as right then.
const EXCUSABLE: [&str; 6] = [
    "offered as asked",
    "the CPU has no time for more",
    "the tester lost nothing",
    "measured window",
    "closed loop",
    "the DUT was at work",
];

/// The failed checks of a trial's audit that no busy machine excuses: faults of linerate.
pub fn faults(trial: &Value) -> String {
    let failures = failures(trial).into_iter();
    let faults = failures.filter(|fault| !EXCUSABLE.iter().any(|excuse| fault.contains(excuse)));
    faults.map(|fault| fault + "\n").collect()
}

/// The rates, `offered` or `received`, of trials whose audit held.
pub fn rates(trials: &[&Value], which: &str) -> Vec<f64> {
    trials
        .iter()
        .filter(|t| valid(t))
        .filter_map(|t| t["rates"][which].as_f64())
        .collect()
}
