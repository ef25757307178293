//! A packet socket sees each frame (tcpdump, a DHCP client, an intrusion detection system).

use super::{change, cost_or_setting};
use crate::{Case, Examined};
use linerate_measure::record::Finding;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["interfaces"], |found| {
        let tapped = found.cards.iter().find(|card| card.taps > Some(0));
        tapped.map(|card| format!("{} packet sockets see the frames of {}", card.taps.unwrap_or(0), card.name))
    });
    let Some(found) = cost_or_setting(case.spent(&["packet_rcv*", "tpacket_rcv", "dev_queue_xmit_nit", "bpf_mtap*", "bpf_tap*", "run_filter"]), 0.01, setting)? else { return Ok(None) };
    Ok(Some(Finding {
        statement: "A program captures the DUT's frames.".into(),
        mechanism: "The kernel offers each frame to every packet socket: its filter runs, and the frames that it wants are cloned and copied.".into(),
        changes: vec![change("Linux", "ss -0p names the programs; end the capture, or give it a filter or an interface", "start the program again")],
        untried: Some("the program is not of the plan: end it, and measure again".into()),
        ..found
    }))
}
