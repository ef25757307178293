//! CPUs wait for a lock.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Functions that wait for a lock which another CPU holds.
pub(super) const SLOW_PATHS: [&str; 11] = [
    "native_queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath", "queued_read_lock_slowpath", "queued_write_lock_slowpath",
    "__mtx_lock_sleep", "_mtx_lock_spin_cookie", "__rw_rlock*", "__rw_wlock_hard", "_rw_runlock*", "__rm_rlock*", "lock_delay",
];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&SLOW_PATHS)?;
    if !spent.is_clear(0.03) {
        return Ok(None);
    }
    let holder = case.profile()?.functions().into_iter().find(|f| SLOW_PATHS.iter().any(|wanted| crate::case::is_called(&f.name, wanted)));
    let callers = holder.map(|f| f.callers.into_iter().take(3).map(|(name, _)| name).collect::<Vec<_>>().join(", "));
    let (cpus, queues) = (case.usable_cpus().len(), case.inside().ok().and_then(Card::receive_queues));
    let (patch, untried) = match queues {
        Some(queues) if (queues as usize) < cpus => (Some(json!({ "interface": { "queues": cpus } })), None),
        _ => (None, Some("its callers say which lock it is, and that decides the change".into())),
    };
    Ok(Some(Finding {
        statement: format!("CPUs spend {} of a frame's time on waiting for locks.", percent(spent.share)),
        strength: Strength::Observed,
        evidence: std::iter::once(spent.evidence()).chain(callers.map(|callers| format!("callers of the lock: {callers}"))).collect(),
        mechanism: "CPUs that need the same lock take turns: more CPUs then add waiting, not frames.".into(),
        changes: vec![
            change("Linux", "as many transmit queues as CPUs (ethtool -L), XPS so that each CPU has its own, no shared queueing discipline", "ethtool -L IF combined OLD"),
            change("FreeBSD", "12.0 or later: its route and ARP lookups take no such lock", "nothing to undo"),
        ],
        gain: format!("up to {} of the time; 'Tuning FreeBSD for routing and firewalling' (2018) went from 3.78 to 6.46 Mpps and more without the locks of ARP and routes on FreeBSD 11.1", percent(spent.share)),
        weight: spent.share,
        patch,
        untried,
        ..Finding::default()
    }))
}
