//! Frames pass many rules one after the other.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

/// Share of a frame's time from which on evaluating rules is a cause of its own. A short rule set takes a few percent.
const LEAST: f64 = 0.2;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["nft_do_chain", "ipt_do_table", "ip6t_do_table", "ipfw_chk", "pf_test_rule", "ipf_check", "fr_check"])?;
    if !spent.is_clear(LEAST) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: format!("The rule set takes {} of a frame's time.", percent(spent.share)),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "Rules are compared with a frame one after the other, until one decides. A set or a map compares all addresses or ports by one lookup.".into(),
        changes: vec![
            change("Linux (nftables)", "nft add set inet filter NAME '{ type ipv4_addr; flags interval; }', and one rule that looks up @NAME; accept established flows first", "nft -f OLD-RULES"),
            change("FreeBSD (ipfw)", "ipfw table 1 create; ipfw add allow ip from 'table(1)' to any", "ipfw -q OLD-RULES"),
            change("OpenBSD, FreeBSD (pf)", "table <NAME> { ... }; quick rules for most frames first", "pfctl -f OLD-RULES"),
        ],
        gain: format!("up to {} of the time of a frame; 'Tuning FreeBSD for routing and firewalling' (2018, illustration 31) found ipfw and ipf nearly useless at 1,000 rules, and pf not slower, because it makes a table of them", percent(spent.share)),
        weight: spent.share,
        ..Finding::default()
    }))
}
