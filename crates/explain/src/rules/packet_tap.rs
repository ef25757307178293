//! A packet socket sees each frame (tcpdump, a DHCP client, an intrusion detection system).

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["packet_rcv*", "tpacket_rcv", "dev_queue_xmit_nit", "bpf_mtap*", "bpf_tap*", "run_filter"])?;
    if !spent.is_clear(0.01) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "A program captures the DUT's frames.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "The kernel offers each frame to every packet socket: its filter runs, and the frames that it wants are cloned and copied.".into(),
        changes: vec![change("Linux", "ss -0p names the programs; end the capture, or give it a filter or an interface", "start the program again")],
        gain: format!("up to {} of a frame's time", percent(spent.share)),
        weight: spent.share,
        ..Finding::default()
    }))
}
