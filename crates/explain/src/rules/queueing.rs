//! A queueing discipline takes time.

use super::locks::SLOW_PATHS;
use super::{change, cost_or_setting, in_lab};
use crate::case::Spent;
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::record::Finding;

/// Disciplines that cost next to nothing, or that cards have from the start.
const USUAL: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "fq_codel", "clsact", "ingress"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let shaping = |card: &Card| {
        let discipline = card.qdiscs.iter().find(|qdisc| !USUAL.contains(&qdisc.kind.as_str()));
        discipline.map(|qdisc| format!("{} has the queueing discipline {}", card.name, qdisc.kind))
    };
    let setting = case.configured(&["tc"], |found| found.cards.iter().find_map(shaping));
    // The time in the driver is none of it, and waiting for locks is a cause of its own.
    let without = |spent: Spent, others: &[&str]| Ok::<_, String>(spent.without(&case.spent(others)?));
    let spent = case.spent(&["__dev_xmit_skb", "sch_direct_xmit", "__qdisc_run", "altq_*"]);
    let spent = spent.and_then(|spent| without(spent, &["dev_hard_start_xmit"])).and_then(|spent| without(spent, &SLOW_PATHS));
    let Some(found) = cost_or_setting(spent, 0.02, setting)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, "for dev in {in} {out}; do tc qdisc replace dev $dev root noqueue; done");
    Ok(Some(Finding {
        statement: "A queueing discipline handles each frame.".into(),
        mechanism: "A queueing discipline puts each frame into a queue under a lock and takes it out again.".into(),
        changes: vec![change("Linux", "tc qdisc replace dev IF root noqueue (virtual interfaces), mq (cards)", "tc qdisc replace dev IF root OLD")],
        patch,
        untried,
        ..found
    }))
}
