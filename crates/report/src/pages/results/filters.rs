//! The firewalls that ran on the DUTs of a lab: without `rules` in the plan, a host keeps its own.

use super::Shown;
use crate::prelude::*;
use linerate_hosts::configuration::Configuration;
use linerate_measure::record::LabKind;

/// The firewalls that were active while cells were measured, and in which cells: `pf with 214 rules`.
pub fn filters(shown: &Shown<'_>) -> Option<String> {
    if shown.campaign.asked.lab != LabKind::Hosts {
        return None;
    }
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for facts in shown.facts {
        let Some(found) = Configuration::recorded(facts) else {
            continue;
        };
        let (words, name) = (words(&found), shown.name(facts.slot));
        match all.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => all.push((words, vec![name])),
        }
    }
    match all.as_slice() {
        [] => None,
        [(words, _)] => Some(words.clone()),
        several => {
            let one = |(words, names): &(String, Vec<String>)| {
                format!("{words} in {}", some(names.iter().cloned(), 3, ", "))
            };
            Some(several.iter().map(one).joined("; "))
        }
    }
}

fn words(found: &Configuration) -> String {
    let one = |set: &linerate_hosts::configuration::RuleSet| {
        let rules: u64 = set.chains.iter().map(|chain| chain.rules).sum();
        format!("{} with {}", set.filter, counted(rules as usize, "rule"))
    };
    let active = found.rule_sets.iter().map(one).joined(", ");
    if !active.is_empty() {
        return active;
    }
    // Only root sees the rules.
    let silent = found.unanswered.iter().find(|unanswered| {
        let asks = ["pfctl", "ipfw", "nft"]
            .iter()
            .any(|p| unanswered.question.starts_with(p));
        asks && ["ermission", "not permitted"]
            .iter()
            .any(|w| unanswered.why.contains(w))
    });
    match silent {
        Some(silent) => format!("not known ({}: {})", silent.question, silent.why),
        None => "none".into(),
    }
}
