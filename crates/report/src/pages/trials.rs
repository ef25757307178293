//! The table of all trials, for `linerate show --trials`.

use super::simulation::{unreal, warn_of_simulation};
use crate::prelude::*;
use linerate_measure::trial::Rates;

/// One row per trial in their order, then the findings of the audits.
pub fn trials(campaign: &Campaign, trials: &[TrialRecord]) -> Document {
    let mut page = Document::default();
    warn_of_simulation(&mut page, [unreal(campaign)]);
    if trials.is_empty() {
        page.say("No trial was recorded.");
        return page;
    }
    let rates = trials.iter().filter_map(|t| t.rates);
    let unit = RateUnit::of_campaign(campaign, rates.map(|r| r.offered.max(r.received)));
    let imported = campaign.imported.is_some();
    let fps = |t: &&TrialRecord, pick: fn(&Rates) -> f64| match t.rates.as_ref().map(pick) {
        None if imported => "no figure".into(),
        None => "no window".into(),
        Some(r) if imported && r == 0.0 => Cell::Nothing,
        Some(r) => rate(r, unit.scale, 4),
    };
    let things = match campaign.noun() {
        "request" => "requests",
        "connection" => "conn.",
        _ => "frames",
    };
    let most = |shares: &mut dyn Iterator<Item = f64>| {
        shares.reduce(f64::max).map(|s| fixed(100.0 * s, 0))
    };
    let table = Table::of(trials)
        .column("", "trial and slot", |t| {
            format!("{:>5}  {}", t.trial, campaign.name_of(t.slot))
        })
        .optional("", "block", |t| t.block as usize)
        .column("began", "s", |t| fixed(t.began_ns as f64 / 1e9, 2))
        .if_any("asked", unit.name, |t| {
            t.asked_fps
                .map(|fps| rate(t.ways() as f64 * fps, unit.scale, 4))
        })
        .column("offered", unit.name, |t| fps(t, |r| r.offered))
        .column("received", unit.name, |t| fps(t, |r| r.received))
        .column("lost", "%", |t| share(t.loss_ratio))
        .column("", "audit", |t| match (t.audit.valid, imported) {
            (true, true) => "none",
            (true, false) => "ok",
            (false, _) => "FAILED",
        })
        .optional("sent", things, |t| count(t.generator.frames))
        .optional("lost", things, |t| {
            count(t.generator.frames.saturating_sub(t.receiver.unique()))
        })
        .optional("DUT CPU", "% busy", |t| {
            let of_dut =
                |cpu| campaign.asked.lab == LabKind::Hosts || campaign.roles.dut.contains(cpu);
            most(&mut t.cpus.iter().filter(|c| of_dut(&c.cpu)).map(|c| c.busy))
        })
        .optional("steal", "%", |t| most(&mut t.cpus.iter().map(|c| c.steal)))
        .when(trials.iter().any(|t| !t.collectors.is_empty()), |rows| {
            rows.optional("collecting", "ms", |t| {
                fixed(
                    t.collectors.iter().map(|c| c.took_ns).sum::<u64>() as f64 / 1e6,
                    1,
                )
            })
        });
    page.table(table);
    let failed: Vec<&TrialRecord> = trials.iter().filter(|t| !t.audit.valid).collect();
    if !failed.is_empty() {
        let what = if imported {
            "have no figure"
        } else {
            "failed their audit"
        };
        page.heading(format!(
            "{} of {} {what}",
            failed.len(),
            counted(trials.len(), "trial")
        ));
        for trial in failed {
            let why = trial.audit.failures().joined("; ");
            page.item(&format!("{:>5}  ", trial.trial), why, Tone::Warning);
        }
    }
    page
}
