//! The firewall writes a log entry for frames.

use super::{change, cost_or_setting, in_lab};
use crate::{Case, Examined};
use linerate_measure::record::Finding;

/// Functions that write log entries.
pub(super) const FUNCTIONS: [&str; 8] = ["nf_log_packet", "nft_log_eval", "nfulnl_log_packet", "nf_log_*", "log_tg*", "LOG_TG", "ipfw_log*", "pflog_packet"];

/// Takes the rules out that log and do nothing else.
const WITHOUT_LOGGING: &str = "nft -a list ruleset | awk '$1 == \"table\" { table = $2 \" \" $3 } $1 == \"chain\" { chain = $2 } \
    /[[:space:]]log .*# handle/ && !/(accept|drop|reject|queue|jump .*|goto .*) # handle/ { print \"delete rule\", table, chain, \"handle\", $NF }' | nft -f -; \
    if iptables-save 2> /dev/null | grep -q LOG; then iptables-save | sed '/-j N\\?F\\?LOG/d' | iptables-restore; fi";

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["nft", "iptables"], |found| {
        let chains = found.rule_sets.iter().flat_map(|set| set.forwarding());
        let logging: u64 = chains.map(|chain| chain.logging).sum();
        (logging > 0).then(|| format!("{logging} rules on the way of forwarded frames log"))
    });
    let Some(found) = cost_or_setting(case.spent(&FUNCTIONS), 0.01, setting)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, WITHOUT_LOGGING);
    Ok(Some(Finding {
        statement: "The firewall logs frames under load.".into(),
        mechanism: "A log entry is written and, for nflog, pflog or a socket, the frame is copied, for each frame that meets the rule.".into(),
        changes: vec![
            change("Linux (nftables)", "limit rate 10/second log, or log only ct state new", "nft -f OLD-RULES"),
            change("FreeBSD, OpenBSD (pf)", "no `log` in rules for most frames", "pfctl -f OLD-RULES"),
        ],
        patch,
        untried,
        ..found
    }))
}
