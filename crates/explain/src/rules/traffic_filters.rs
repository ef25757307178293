//! Filters of traffic control classify each frame.

use super::{change, cost_or_setting, in_lab};
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::record::Finding;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let filters = |card: &Card| {
        let number: u64 = card.filters.values().sum();
        (number > 0).then(|| format!("{} has {number} filters of traffic control", card.name))
    };
    let setting = case.configured(&["tc"], |found| found.cards.iter().find_map(filters));
    let Some(found) = cost_or_setting(case.spent(&["tcf_classify*", "tc_run", "tcx_run*", "sch_handle_*"]), 0.02, setting)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, "for dev in {in} {out}; do for way in ingress egress; do tc filter del dev $dev $way 2> /dev/null; done; done; true");
    Ok(Some(Finding {
        statement: "Filters of traffic control (tc filter) classify each frame.".into(),
        mechanism: "Filters of an interface are tried one after the other, in the order of their preference, until one of them decides.".into(),
        changes: vec![change("Linux", "tc filter del dev IF ingress (or egress); a hash of u32, a map of eBPF or a set of nftables instead of many filters", "tc filter add with the former filters")],
        patch,
        untried,
        ..found
    }))
}
