//! Packet filters on the way: all base chains, sets by their types, and parts of rules that have a cost of their own.

use super::{Configuration, Set, enter};
use crate::configuration::rule_sets::{self, RuleSet};
use crate::systems::text::{lines, shown};

/// Parts of rules, each with the words that show it.
const PARTS: [(&str, &[&str]); 7] = [
    ("helpers", &["ct helper set", "--helper "]),
    (
        "zones",
        &[
            "ct zone set",
            "ct original zone set",
            "--zone ",
            "--zone-orig ",
        ],
    ),
    ("labels", &["ct label set", "--set-xlabel", "connlabel"]),
    ("timeouts", &["ct timeout set", "--timeout "]),
    (
        "queue",
        &["queue num", "queue flags", "queue to ", "-j NFQUEUE"],
    ),
    (
        "nat",
        &[
            "masquerade",
            "snat ",
            "dnat ",
            "redirect to",
            "-j MASQUERADE",
            "-j SNAT",
            "-j DNAT",
            "-j REDIRECT",
        ],
    ),
    ("flow tables", &["flow add @", "flow offload @"]),
];

impl Configuration {
    /// `nft -s -t list ruleset`.
    pub(in super::super) fn nftables(&mut self, answer: &str) {
        self.packet_filter(rule_sets::nftables(answer), answer);
        let mut set: Option<Set> = None;
        for line in lines(answer).map(str::trim) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match (words.as_slice(), &mut set) {
                (["set" | "map", name, "{"], _) => {
                    set = Some(Set {
                        name: shown(name),
                        ..Set::default()
                    })
                }
                (["type" | "typeof", of @ ..], Some(open)) => open.of = shown(&of.join(" ")),
                (["flags", flags @ ..], Some(open)) => open.flags = shown(&flags.join(" ")),
                (["}"], Some(_)) => {
                    set.take()
                        .into_iter()
                        .for_each(|set| enter(&mut self.path.sets, set));
                }
                _ => {}
            }
        }
    }

    /// `iptables-save` of both families.
    pub(in super::super) fn iptables(&mut self, answer: &str) {
        self.packet_filter(rule_sets::of_iptables(answer), answer);
    }

    /// The rules and the kinds of rules that an answer lists.
    fn packet_filter(&mut self, rules: RuleSet, answer: &str) {
        self.rule_sets.extend(rules.clone().some());
        self.path.packet_filters.push(rules);
        let has = |(_, signs): &&(&'static str, &[&str])| {
            let is_rule = |line: &str| signs.iter().any(|sign| line.contains(sign));
            lines(answer).any(is_rule)
        };
        let found: Vec<&str> = PARTS.iter().filter(has).map(|(name, _)| *name).collect();
        self.path.parts.extend(found);
    }
}
