//! Needs of `linerate run` in a lab of hosts: their sshds, a folder for plans and records, and a state folder of its own.
#![allow(dead_code, reason = "each test program uses a part of this")]

use crate::common::{Ended, LINERATE, Program, Scratch};
use crate::sshd::SshLab;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Hosts behind sshds, and linerate in the network from which they are reached.
pub struct Site {
    pub ssh: SshLab,
    pub scratch: Scratch,
}

impl Site {
    pub fn new(hosts: &[&str]) -> Site {
        Site {
            ssh: SshLab::new(hosts),
            scratch: Scratch::new(),
        }
    }

    /// Writes a file beside the plan.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.scratch.file(name), text).unwrap();
    }

    /// The program in the network of the lab.
    pub fn linerate(&self, args: &[&str]) -> Program {
        let prefix = self.ssh.prefix();
        let config = self.ssh.config().display().to_string();
        let mut all: Vec<String> = prefix[1..].to_vec();
        all.push(LINERATE.into());
        all.extend(args.iter().map(|a| a.to_string()));
        if args[0] == "run" || args[0] == "lab" {
            all.extend(["--ssh-config".to_string(), config]);
        }
        Program::new(&prefix[0])
            .args(all)
            .dir(self.scratch.path())
            .env("XDG_STATE_HOME", &self.scratch.file("state"))
            .within(120)
    }

    /// `linerate run` with a plan.
    pub fn program(&self, plan: &str, more: &[&str]) -> Program {
        self.write("plan.toml", plan);
        self.linerate(&[&["run", "plan.toml", "--out", "records"], more].concat())
    }

    pub fn run(&self, plan: &str, more: &[&str]) -> Ended {
        self.program(plan, more).run().no_panic()
    }

    /// Goes on with the campaign.
    pub fn resume(&self) -> Ended {
        self.linerate(&["run", "--resume", "records"])
            .run()
            .no_panic()
    }

    pub fn records(&self) -> String {
        self.scratch.file("records")
    }

    /// The finished trials of the campaign.
    pub fn trials(&self) -> Vec<Value> {
        trials(&self.records())
    }
}

/// The finished trials of a campaign.
pub fn trials(records: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(records).join("trials.jsonl")).unwrap_or_default();
    // A line that is being written is none yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
