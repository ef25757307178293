//! The firewall writes a log entry for frames.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["nf_log_packet", "nft_log_eval", "nfulnl_log_packet", "nf_log_*", "log_tg*", "LOG_TG", "ipfw_log*", "pflog_packet"])?;
    if !spent.is_clear(0.01) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "The firewall logs frames under load.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "A log entry is written and, for nflog, pflog or a socket, the frame is copied, for each frame that meets the rule.".into(),
        changes: vec![
            change("Linux (nftables)", "limit rate 10/second log, or log only ct state new", "nft -f OLD-RULES"),
            change("FreeBSD, OpenBSD (pf)", "no `log` in rules for most frames", "pfctl -f OLD-RULES"),
        ],
        gain: format!("up to {} of a frame's time", percent(spent.share)),
        weight: spent.share,
        ..Finding::default()
    }))
}
