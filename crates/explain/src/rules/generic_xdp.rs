//! An XDP program runs in generic mode, after the frame's memory has been made.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["do_xdp_generic", "bpf_prog_run_generic_xdp", "netif_receive_generic_xdp"])?;
    if !spent.is_clear(0.01) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "An XDP program runs in generic mode.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "Generic XDP runs after the kernel has allocated the frame's memory, and often copies the frame: the program costs time and saves none.".into(),
        changes: vec![change("Linux", "ip link set IF xdpgeneric off; ip link set IF xdp obj FILE (a driver with XDP), or no program", "ip link set IF xdpgeneric obj FILE")],
        gain: format!("up to {} of a frame's time", percent(spent.share)),
        weight: spent.share,
        ..Finding::default()
    }))
}
