//! A queueing discipline or a filter of traffic control takes time.

use super::{change, cost_or_setting};
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::record::Finding;

/// Disciplines that cost next to nothing, or that cards have from the start.
const USUAL: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "fq_codel", "clsact", "ingress"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let shaping = |card: &Card| {
        let discipline = card.qdiscs.iter().find(|qdisc| !USUAL.contains(&qdisc.kind.as_str()));
        let filters: u64 = card.filters.values().sum();
        match (discipline, filters) {
            (Some(qdisc), _) => Some(format!("{} has the queueing discipline {}", card.name, qdisc.kind)),
            (None, 0) => None,
            (None, n) => Some(format!("{} has {n} filters of traffic control", card.name)),
        }
    };
    let setting = case.configuration().map(|found| found.cards.iter().find_map(shaping));
    let functions = ["__dev_xmit_skb", "sch_direct_xmit", "__qdisc_run", "tcf_classify*", "tc_run", "sch_handle_*", "altq_*"];
    let spent = case.spent(&functions).and_then(|spent| Ok(spent.without(&case.spent(&["dev_hard_start_xmit"])?)));
    let Some(found) = cost_or_setting(spent, 0.02, setting)? else { return Ok(None) };
    Ok(Some(Finding {
        statement: "Traffic control (tc) handles each frame.".into(),
        mechanism: "A queueing discipline puts each frame into a queue under a lock and takes it out again; a filter classifies it before.".into(),
        changes: vec![change("Linux", "tc qdisc replace dev IF root noqueue (virtual interfaces), mq (cards); tc filter del dev IF", "tc qdisc replace dev IF root OLD")],
        ..found
    }))
}
