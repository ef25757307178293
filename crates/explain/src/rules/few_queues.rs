//! The card has fewer receive queues than there are CPUs to serve them.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let card = case.inside()?;
    let queues = card.receive_queues().ok_or("the DUT does not say how many queues its card has")?;
    let cpus = case.usable_cpus().len();
    let steered = card.receive.values().map(|queue| queue.rps.len()).max().unwrap_or(0);
    if cpus == 0 {
        return Err("the number of the DUT's CPUs is not known".into());
    }
    if queues as usize >= cpus || steered >= cpus {
        return Ok(None);
    }
    let full = case.row.full_cpus.len();
    let strength = if full > 0 && full < cpus { Strength::Inferred } else { Strength::Possible };
    let most = card.combined_queues.most.or(card.rx_queues.most).map_or(String::new(), |most| format!(", of {most} possible"));
    Ok(Some(Finding {
        statement: format!("{} CPUs share the receive queues of {}: {queues}.", cpus, card.name),
        strength,
        evidence: vec![format!("receive queues of {}: {queues}{most}; CPUs: {cpus}; CPUs that were full: {full}", card.name)],
        mechanism: "Each queue is served by one CPU at a time: CPUs without a queue forward nothing.".into(),
        changes: vec![
            change("Linux", format!("ethtool -L {} combined {cpus}", card.name), format!("ethtool -L {} combined {queues}", card.name)),
            change("FreeBSD", "dev.IF.iflib.override_nrxqs=N (iflib), hw.cxgbe.nrxq=N (cxgbe) in loader.conf", "the former lines"),
        ],
        gain: "with the number of queues in proportion, as long as it is a power of two ('Tuning FreeBSD for routing and firewalling', 2018, illustration 10)".into(),
        weight: 1.0 - f64::from(queues) / cpus as f64,
        patch: Some(json!({ "interface": { "queues": cpus } })),
        ..Finding::default()
    }))
}
