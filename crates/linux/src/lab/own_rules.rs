//! Rule files of users in the embedded lab: loaded with the names of this lab, and asked for the counts of their rules.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::setup::LOAD_WITHIN;
use super::{Lane, Setup, interface_names};
use crate::process::Job;
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::{LabEnd, RuleCount, RuleFile, counts};

/// Bytes of a listing that are read: a file of the largest size takes some more when it is listed.
const MOST_LISTED: usize = 64 << 20;

/// A user's rules on a DUT.
#[derive(Debug, Clone)]
pub struct OwnRules {
    file: RuleFile,
    ends: [LabEnd; 2],
}

impl Setup {
    /// With a user's rules, as lane number `lane` of a lab.
    #[must_use]
    pub fn with_rule_file(self, file: &RuleFile, lane: usize) -> Setup {
        let [inside, outside] = interface_names(lane);
        let ends = [end(inside, &GENERATOR_SIDE), end(outside, &RECEIVER_SIDE)];
        let (program, arguments) = file.program();
        let load = Job::new(program, arguments).reading(&file.file, file.mapped(&ends)).within(LOAD_WITHIN);
        Setup { rules: vec![load], own: Some(OwnRules { file: file.clone(), ends }), ..self }
    }
}

fn end(interface: String, sides: &[Side; 2]) -> LabEnd {
    LabEnd {
        interface,
        networks: sides.iter().map(|side| format!("{}/{}", side.network.0, side.network.1)).collect(),
        addresses: sides.iter().map(|side| side.dut.0.to_string()).collect(),
    }
}

impl Lane {
    /// The counts of the rules in a user's file, in its own words; `None` without such a file, or if its counters cannot be read.
    pub fn rule_counts(&self) -> Option<Vec<RuleCount>> {
        let own = self.setup.own.as_ref().filter(|own| own.file.counts())?;
        let namespace = &self.dut.as_ref()?.namespace;
        let job = match own.file.firewall {
            Firewall::Nftables => Job::new("nft", &["-t", "list", "ruleset"]),
            _ => Job::new(own.file.program().0.replace("-restore", "-save"), &["-c"]),
        };
        let mut listing = String::new();
        let mut add = |line: &str| {
            if listing.len() < MOST_LISTED {
                listing.push_str(line);
                listing.push('\n');
            }
        };
        job.run_lines(|path| namespace.command(path), None, &mut add).ok()?;
        let mut counts = counts(own.file.firewall, &listing);
        counts.iter_mut().for_each(|count| count.rule = own.file.in_its_words(&count.rule, &own.ends));
        Some(counts)
    }
}
