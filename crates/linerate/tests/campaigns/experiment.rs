//! A plan with its campaign, and properties that its records must have at every moment.

use crate::common::{Ended, Program, Scratch, campaign, linerate};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A plan in a scratch folder, whose campaign is recorded beside it.
pub struct Experiment {
    scratch: Scratch,
    more: Vec<String>,
}

impl Experiment {
    /// A plan; `more` are arguments of every run of it, separated by blanks, also where it is resumed.
    pub fn new(plan: &str, more: &str) -> Self {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("plan.toml"), plan).unwrap();
        fs::create_dir(scratch.path().join("tmp")).unwrap();
        Experiment {
            scratch,
            more: more.split_whitespace().map(String::from).collect(),
        }
    }

    /// The plan's file.
    pub fn plan(&self) -> PathBuf {
        self.scratch.path().join("plan.toml")
    }

    /// The campaign's folder.
    pub fn records(&self) -> PathBuf {
        self.scratch.path().join("records")
    }

    /// The folder that its programs have for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    fn program(&self, args: &[&str]) -> Program {
        let temporary = self.temporary();
        linerate(args)
            .dir(self.scratch.path())
            .env("TMPDIR", temporary.to_str().unwrap())
            .within(120)
    }

    /// `linerate run`, with more arguments that are separated by blanks.
    pub fn run(&self, line: &str) -> Program {
        self.program(&["run", "plan.toml", "--out", "records"])
            .args(&self.more)
            .args(line.split_whitespace())
    }

    /// `linerate run --resume`, with more arguments that are separated by blanks.
    pub fn resume(&self, line: &str) -> Program {
        self.program(&["run", "--resume", "records"])
            .args(&self.more)
            .args(line.split_whitespace())
    }

    /// Begins the campaign or resumes it, whichever is possible.
    pub fn go_on(&self) -> Program {
        if self.has_begun() {
            return self.resume("");
        }
        // Ended before it had begun: there is nothing to resume.
        let _ = fs::remove_dir_all(self.records());
        self.run("--seed 7")
    }

    /// Whether there is something to resume.
    pub fn has_begun(&self) -> bool {
        self.records().join("campaign.json").exists()
    }

    /// Whether it has ended, by its summary.
    pub fn is_over(&self) -> bool {
        self.records().join("summary.json").exists()
            && self.document("summary.json")["stopped"] == "trials"
    }

    /// Copies the records of another campaign.
    pub fn has_records_of(&self, other: &Experiment) {
        fs::create_dir(self.records()).unwrap();
        for file in fs::read_dir(other.records()).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), self.records().join(file.file_name())).unwrap();
        }
    }

    /// Deletes the records.
    pub fn forget(&self) {
        fs::remove_dir_all(self.records()).unwrap();
    }

    /// Trials whose line is whole.
    pub fn trials(&self) -> Vec<Value> {
        campaign::trials(&self.records())
    }

    /// How many trials are recorded so far.
    pub fn recorded(&self) -> usize {
        let text = fs::read(self.records().join("trials.jsonl")).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Blocks and slots of the trials, in order.
    pub fn order(&self) -> Vec<(u64, u64)> {
        let place = |t: &Value| (t["block"].as_u64().unwrap(), t["slot"].as_u64().unwrap());
        self.trials().iter().map(place).collect()
    }

    /// A document of the records.
    #[track_caller]
    pub fn document(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.records().join(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"))
    }

    /// The lines of its trials that are whole, as they are on the disk.
    pub fn whole_lines(&self) -> String {
        let text = fs::read_to_string(self.records().join("trials.jsonl")).unwrap_or_default();
        text.rsplit_once('\n')
            .map_or(String::new(), |(whole, _)| format!("{whole}\n"))
    }

    /// Slots that are not skipped.
    pub fn measured_slots(&self) -> Vec<u64> {
        let campaign = self.document("campaign.json");
        let skipped = campaign["planned"]["skipped"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let slots = campaign["slots"].as_array().unwrap().len() as u64;
        (0..slots)
            .filter(|slot| !skipped.iter().any(|s| s["cell"] == *slot))
            .collect()
    }

    /// The campaign ended, and no record of it is missing or half-written.
    #[track_caller]
    pub fn is_complete(&self, ended: Ended) {
        ended.ok();
        self.records_are_complete();
    }

    /// Removes the drafts that a killed program left.
    pub fn remove_drafts(&self) {
        let files = fs::read_dir(self.records())
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .filter(|file| file.extension().is_some_and(|end| end == "draft"))
            .for_each(|file| fs::remove_file(file).unwrap());
    }

    /// See [`Experiment::is_complete`].
    #[track_caller]
    pub fn records_are_complete(&self) {
        check_numbers(&self.trials());
        assert_eq!(self.document("summary.json")["stopped"], "trials");
        self.document("host.json");
        let names = fs::read_dir(self.records())
            .unwrap()
            .map(|e| e.unwrap().file_name());
        let mut names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
        names.sort();
        // Only a DUT that is a kernel has facts.
        names.retain(|name| name != "facts.jsonl");
        assert_eq!(
            names,
            ["campaign.json", "host.json", "summary.json", "trials.jsonl"]
        );
        assert!(self.whole_lines().ends_with('\n'));
        let whole = self.whole_lines().len() as u64;
        assert_eq!(
            fs::metadata(self.records().join("trials.jsonl"))
                .unwrap()
                .len(),
            whole,
            "half a line"
        );
        let rows = self.document("summary.json")["rows"].clone();
        let counted: u64 = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["trials"].as_u64().unwrap())
            .sum();
        assert_eq!(
            counted,
            self.trials().len() as u64,
            "the summary leaves trials out"
        );
    }

    /// Every block has one trial of every slot of [`Experiment::measured_slots`].
    #[track_caller]
    pub fn blocks_are_complete(&self, blocks: u64) {
        let (order, slots) = (self.order(), self.measured_slots());
        assert_eq!(order.len() as u64, blocks * slots.len() as u64);
        for (block, places) in (0..).zip(order.chunks(slots.len())) {
            assert!(
                places.iter().all(|(b, _)| *b == block),
                "block {block}: {places:?}"
            );
            let mut there: Vec<u64> = places.iter().map(|(_, slot)| *slot).collect();
            there.sort_unstable();
            assert_eq!(there, slots, "block {block}");
        }
    }
}

#[track_caller]
fn check_numbers(trials: &[Value]) {
    let numbers: Vec<u64> = trials
        .iter()
        .map(|t| t["trial"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (0..trials.len() as u64).collect::<Vec<_>>(),
        "numbers of trials"
    );
    let began: Vec<u64> = trials
        .iter()
        .map(|t| t["began_ns"].as_u64().unwrap())
        .collect();
    assert!(began.is_sorted(), "{began:?}");
}

/// Records that exist must stay as they are, byte for byte.
#[derive(Default)]
pub struct Kept(String);

impl Kept {
    /// Looks at the records after the program has ended somehow. Trials that have been added.
    #[track_caller]
    pub fn check(&mut self, experiment: &Experiment) -> usize {
        let now = experiment.whole_lines();
        assert!(
            now.starts_with(&self.0),
            "trials that were whole have changed, or are gone"
        );
        check_numbers(&experiment.trials());
        for name in ["campaign.json", "host.json", "summary.json"] {
            if experiment.records().join(name).exists() {
                experiment.document(name);
            }
        }
        let added = now.lines().count() - self.0.lines().count();
        self.0 = now;
        added
    }

    /// The trials that are kept.
    pub fn trials(&self) -> usize {
        self.0.lines().count()
    }
}

/// Random numbers that are the same in every run of the tests (Marsaglia's xorshift64).
pub struct Random(u64);

impl Random {
    /// From a seed other than 0.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A time below this.
    pub fn below(&mut self, most: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        most.mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}
