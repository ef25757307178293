//! Frames pass many rules one after the other.

use super::{and_elsewhere, change, cost_or_setting, locks, logging, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Share of a frame's time from which on evaluating rules is a cause of its own. A short rule set takes a few percent.
const LEAST: f64 = 0.2;

/// A list of so many rules is long.
const MANY: u64 = 50;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["nft", "iptables"], |found| {
        let longest = found.rule_sets.iter().filter_map(|set| Some((set, set.longest()?)));
        let longest = longest.max_by_key(|(_, chain)| chain.rules).filter(|(_, chain)| chain.rules >= MANY);
        longest.map(|(set, chain)| format!("{}: the chain {} has {} rules, {} of them with a set or a map", set.filter, chain.name, chain.rules, chain.lookups))
    });
    // Logging by a rule is a cause of its own, and so is waiting for a lock.
    let others: Vec<&str> = logging::FUNCTIONS.into_iter().chain(locks::SLOW_PATHS).collect();
    let others = case.spent(&others);
    let spent = case.spent(&["nft_do_chain", "ipt_do_table", "ip6t_do_table", "ipfw_chk", "pf_test_rule", "ipf_check", "fr_check"]).and_then(|spent| Ok(spent.without(&others?)));
    let Some(found) = cost_or_setting(spent, LEAST, setting)? else { return Ok(None) };
    // As many entries of a table do the same work, in one lookup.
    let patch = case.setting("/rules/rules-before").and_then(|rules| rules.as_u64()).filter(|rules| *rules > 0).map(|rules| {
        let table = case.setting("/rules/table").and_then(|entries| entries.as_u64()).unwrap_or(0);
        json!({ "rules": { "before": 0, "table": table + rules } })
    });
    Ok(Some(Finding {
        statement: match found.strength {
            Strength::Observed => format!("The rule set takes {} of a frame's time.", percent(found.weight)),
            _ => "Frames pass a long list of rules.".into(),
        },
        mechanism: "Rules are compared with a frame one after the other, until one decides. A set or a map compares all addresses or ports by one lookup.".into(),
        changes: vec![
            change("Linux (nftables)", "nft add set inet filter NAME '{ type ipv4_addr; flags interval; }', and one rule that looks up @NAME; accept established flows first", "nft -f OLD-RULES"),
            change("FreeBSD (ipfw)", "ipfw table 1 create; ipfw add allow ip from 'table(1)' to any", "ipfw -q OLD-RULES"),
            change("OpenBSD, FreeBSD (pf)", "table <NAME> { ... }; quick rules for most frames first", "pfctl -f OLD-RULES"),
        ],
        gain: and_elsewhere(&found.gain, "ipfw and ipf were nearly useless at 1,000 rules, pf, which makes a table of them, was not ('Tuning FreeBSD for routing and firewalling', 2018, illustration 31)"),
        untried: patch.is_none().then(|| "only the author of the rules knows which of them can be one table".into()),
        patch,
        ..found
    }))
}
