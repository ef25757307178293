//! The firewalls that ran on the DUTs of a lab: without `rules` in the plan, a host keeps its own.

use super::shown::Shown;
use crate::prelude::*;
use linerate_hosts::configuration::RuleSet;

/// The firewalls that were active while cells were measured, and in which cells: `pf with 214 rules`.
pub fn filters(shown: &Shown<'_>) -> Option<String> {
    if shown.campaign.asked.lab != LabKind::Hosts {
        return None;
    }
    let all = together(shown.facts.iter().filter_map(|facts| {
        let found = Configuration::recorded(facts)?;
        Some((words(&found), shown.name(facts.slot)))
    }));
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
    let one = |set: &RuleSet| {
        let rules: u64 = set.chains.iter().map(|chain| chain.rules).sum();
        format!("{} with {}", set.filter, counted(rules as usize, "rule"))
    };
    let active = found.rule_sets.iter().map(one).joined(", ");
    if !active.is_empty() {
        return active;
    }
    // Only root sees the rules.
    let silent = found.unanswered.iter().find(|of| {
        let mut filters = ["pfctl", "ipfw", "nft"].iter();
        let mut refused = ["ermission", "not permitted"].iter();
        filters.any(|name| of.question.starts_with(name))
            && refused.any(|words| of.why.contains(words))
    });
    match silent {
        Some(silent) => format!("not known ({}: {})", silent.question, silent.why),
        None => "none".into(),
    }
}
