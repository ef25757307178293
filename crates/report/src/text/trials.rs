//! The table of all trials, for `linerate show --trials`.

use super::names::Names;
use super::numbers::{self, counted, grouped, percent, rate_unit};
use super::page::{Ink, Page, Style, Table};
use linerate_measure::record::{Campaign, TrialRecord};

/// One row per trial in the order they ran, and below it what the audits of the others found.
pub fn trials(campaign: &Campaign, trials: &[TrialRecord], style: Style) -> String {
    let mut page = Page::new(style);
    if super::simulated(campaign) {
        page.paragraph("SIMULATED: all figures are of a simulated DUT, NOT of this machine.", Ink::Warning);
        page.gap();
    }
    if trials.is_empty() {
        page.paragraph("No trial was recorded.", Ink::Plain);
        return page.finish();
    }
    let names = Names::of(campaign);
    let rates = trials.iter().filter_map(|t| t.rates);
    let (scale, unit) = rate_unit(rates.map(|r| r.offered.max(r.received)).fold(0.0, f64::max));
    let mut table = Table::default()
        .column("", "trial and slot")
        .optional("", "block")
        .column("began", "s")
        .column("offered", unit)
        .column("received", unit)
        .column("lost", "%")
        .column("", "audit")
        .optional("sent", "frames")
        .optional("lost", "frames")
        .optional("DUT CPU", "% busy")
        .optional("steal", "%");
    for trial in trials {
        table.row(row(campaign, trial, &names, scale));
    }
    page.table(&table);
    let failed: Vec<&TrialRecord> = trials.iter().filter(|t| !t.audit.valid).collect();
    if !failed.is_empty() {
        let what = if campaign.imported.is_some() { "have no figure" } else { "failed their audit" };
        page.heading(&format!("{} of {} {what}", failed.len(), counted(trials.len(), "trial")));
        for trial in failed {
            let why = trial.audit.failures().collect::<Vec<_>>().join("; ");
            page.item(&format!("{:>5}  ", trial.trial), &why, Ink::Warning);
        }
    }
    page.finish()
}

fn row(campaign: &Campaign, trial: &TrialRecord, names: &Names, scale: f64) -> Vec<String> {
    let rate = |pick: fn(&linerate_measure::trial::Rates) -> f64| {
        let unknown = |r: &f64| trial.imported.is_some() && *r == 0.0;
        match trial.rates.as_ref().map(pick) {
            None if trial.imported.is_some() => "no figure".into(),
            None => "no window".into(),
            Some(r) if unknown(&r) => "-".into(),
            Some(r) => numbers::rate(r, scale, 4),
        }
    };
    let audit = match (trial.audit.valid, trial.imported.is_some()) {
        (true, true) => "none",
        (true, false) => "ok",
        (false, _) => "FAILED",
    };
    let lost = trial.generator.frames.saturating_sub(trial.receiver.unique());
    let dut = trial.cpus.iter().filter(|c| campaign.roles.dut.contains(&c.cpu)).map(|c| c.busy);
    let steal = trial.cpus.iter().map(|c| c.steal);
    let most = |shares: &mut dyn Iterator<Item = f64>| {
        shares.reduce(f64::max).map_or("-".into(), |s| format!("{:.0}", 100.0 * s))
    };
    vec![
        format!("{:>5}  {}", trial.trial, names.get(trial.slot)),
        trial.block.to_string(),
        format!("{:.2}", trial.began_ns as f64 / 1e9),
        rate(|r| r.offered),
        rate(|r| r.received),
        percent(trial.loss_ratio),
        audit.into(),
        grouped(trial.generator.frames),
        grouped(lost),
        most(&mut dut.into_iter()),
        most(&mut steal.into_iter()),
    ]
}
