//! A queueing discipline or a filter of traffic control takes time.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let disciplines = [
        "__dev_xmit_skb", "sch_direct_xmit", "__qdisc_run", "*_enqueue", "tcf_classify*", "tc_run", "tcf_action_exec", "sch_handle_*", "altq_*",
    ];
    let spent = case.spent(&disciplines)?;
    let own = case.spent(&["veth_xmit", "dev_hard_start_xmit"])?;
    // The driver's part is there without a discipline as well.
    let beyond = spent.share - own.share;
    if !spent.is_clear(0.03) || beyond < 0.02 {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "Traffic control (tc) handles each frame.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "A queueing discipline puts each frame into a queue under a lock and takes it out again; a filter classifies it before.".into(),
        changes: vec![change("Linux", "tc qdisc replace dev IF root noqueue (virtual interfaces), mq with pfifo_fast (cards)", "tc qdisc replace dev IF root OLD")],
        gain: format!("up to {} of a frame's time (with the driver that it calls)", percent(spent.share)),
        weight: beyond.max(0.0),
        ..Finding::default()
    }))
}
