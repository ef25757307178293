//! What a campaign that carried out a plan came to: the answer, the cells, the papers' tables, sweeps, and what was expected.

mod answer;
mod expectations;
mod losses;
mod measured;
mod sweeps;
mod tables;
pub(super) mod words;

use super::names::{listed, together};
use super::numbers::{rate_unit, share};
use super::setup;
use crate::document::{Cell, Document, Tone};
use linerate_measure::record::{Campaign, HostFacts, Planned, Summary};
use linerate_measure::results::{CellResult, Results};
use linerate_measure::summary::Row;
use linerate_stats::Estimate;

/// What there is to show.
pub struct Shown<'a> {
    /// The record.
    pub campaign: &'a Campaign,
    /// Its plan.
    pub planned: &'a Planned,
    /// The machine.
    pub host: &'a HostFacts,
    /// The verdict.
    pub summary: &'a Summary,
    /// What became of the plan.
    pub results: &'a Results,
}

impl Shown<'_> {
    /// The name of a cell.
    fn name(&self, cell: usize) -> String {
        self.results.cells.get(cell).map_or("unknown cell".into(), |c| self.shortened(&c.name))
    }

    /// A name without factors that have one level only in this form of the plan.
    fn shortened(&self, name: &str) -> String {
        let factors = self.planned.plan.factors.iter().filter(|f| f.levels.len() == 1);
        factors.fold(name.to_string(), |name, f| {
            let level = format!(", {} {}", f.name, f.levels[0]);
            match name.split_once(&level) {
                Some((before, after)) if after.is_empty() || after.starts_with([',', '#']) => {
                    format!("{before}{after}")
                }
                _ => name,
            }
        })
    }

    /// The figures of a cell.
    fn row(&self, cell: usize) -> Option<&Row> {
        self.summary.rows.iter().find(|r| r.slot == cell)
    }

    /// Whether frames were lost in valid trials of any cell.
    fn loses(&self) -> bool {
        self.summary.rows.iter().any(|r| r.loss_ratio > 0.0)
    }

    /// The share of a cell's frames that was lost.
    fn lost(&self, cell: usize) -> Option<Cell> {
        self.row(cell).filter(|r| r.valid_trials > 0).map(|r| share(r.loss_ratio))
    }

    /// Whether the first of two cells drops the more frames; `None` where that makes no difference.
    fn drops_more(&self, of: usize, than: usize, cost: Option<Estimate>) -> Option<bool> {
        cost.and(Some(self.row(of)?.dropped > self.row(than)?.dropped))
    }

    /// The unit of all rates: divisor and name.
    fn unit(&self) -> (f64, &'static str) {
        rate_unit(self.results.cells.iter().map(|c| c.rate.median).fold(0.0, f64::max))
    }
}

/// The whole page, behind what says whether it is simulated.
pub fn page(page: &mut Document, shown: &Shown<'_>) {
    let plan = &shown.planned.plan;
    let form = if plan.quick { " (quick form)" } else { "" };
    page.paragraph(&format!("{}{form}", plan.title), Tone::Strong);
    page.paragraph(&plan.question, Tone::Plain);
    if let Some(source) = &plan.source {
        page.paragraph(&format!("From: {source}"), Tone::Note);
    }
    page.gap();
    answer::answer(page, shown);
    tables::cells(page, shown);
    losses::losses(page, shown);
    tables::papers(page, shown);
    sweeps::series(page, shown);
    sweeps::speed_ups(page, shown);
    expectations::expectations(page, shown);
    super::rules::hottest(page, shown.campaign, shown.summary, |cell| shown.name(cell));
    skipped(page, shown);
    warnings(page, shown);
    measured::measured(page, shown);
    setup::stopped(page, shown.summary);
}

/// Cells by the reason why they were not measured.
fn skipped(page: &mut Document, shown: &Shown<'_>) {
    let told = shown.results.skipped.iter().map(|group| {
        let names: Vec<String> = group.cells.iter().map(|c| shown.name(*c)).collect();
        format!("{}: {}", names.join("; "), group.reasons.join("; "))
    });
    page.list("Not measured", "- ", told, Tone::Plain);
}

/// What a reader must know before believing; what is said of several cells, once, with the figures of the first.
fn warnings(page: &mut Document, shown: &Shown<'_>) {
    let said = shown.summary.warnings.iter().map(|warning| {
        let of = |c: &CellResult| Some((shown.shortened(&c.name), after(warning, &c.name)?));
        let (name, text) = shown.results.cells.iter().find_map(of).unzip();
        let text = text.unwrap_or(warning);
        let key: String = text.chars().filter(|c| name.is_none() || !c.is_ascii_digit()).collect();
        (key, (name, text))
    });
    page.warnings(together(said).iter().map(|(_, said)| {
        let names: Vec<String> = said.iter().filter_map(|(name, _)| name.clone()).collect();
        let who = if names.is_empty() { String::new() } else { format!("{}: ", listed(&names)) };
        format!("{who}{}", said[0].1)
    }));
}

/// What a warning says of a cell.
fn after<'a>(warning: &'a str, name: &str) -> Option<&'a str> {
    warning.strip_prefix(name)?.strip_prefix(": ")
}

#[cfg(test)]
mod tests;
