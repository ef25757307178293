//! An XDP program runs in generic mode, after the frame's memory has been made.

use super::{change, cost_or_setting, in_lab};
use crate::{Case, Examined};
use linerate_measure::record::Finding;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["ip "], |found| {
        let generic = |mode: &str| mode == "generic";
        let card = found.cards.iter().find(|card| card.xdp.as_ref().is_some_and(|xdp| generic(&xdp.mode)));
        card.map(|card| format!("{} has a program in generic mode", card.name))
    });
    let Some(found) = cost_or_setting(case.spent(&["do_xdp_generic", "bpf_prog_run_generic_xdp", "netif_receive_generic_xdp"]), 0.01, setting)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, "for dev in {in} {out}; do ip link set $dev xdpgeneric off; done");
    Ok(Some(Finding {
        statement: "An XDP program runs in generic mode.".into(),
        mechanism: "Generic XDP runs after the kernel has allocated the frame's memory, and often copies the frame: the program costs time and saves none.".into(),
        changes: vec![change("Linux", "ip link set IF xdpgeneric off; ip link set IF xdp obj FILE (a driver with XDP), or no program", "ip link set IF xdpgeneric obj FILE")],
        patch,
        untried,
        ..found
    }))
}
