//! Results of a campaign: the answer, the cells, the papers' tables, sweeps, and expectations.

mod answer;
mod audits;
mod benchmarks;
pub(crate) mod changes;
mod end_hosts;
mod figures;
mod filters;
mod first;
mod flood;
mod kept;
mod lab;
mod measured;
mod pictures;
mod profiles;
mod searches;
mod tables;
mod telemetry;
mod versions;

pub use first::first;
pub use searches::stalls;
pub(crate) use tables::{JUDGEMENTS, decisive};

use super::{Records, explanation};
use crate::prelude::*;
use linerate_measure::record::{Planned, Searched, Series};
use linerate_standards::{CONDITIONALLY, Compliance};
use linerate_stats::ministat::{Dataset, MAX_SETS, Options, block};

/// Variants in the title of a page.
const MOST_NAMED: usize = 4;

/// The records of a page about a campaign of a plan.
pub struct Shown<'a> {
    pub planned: &'a Planned,
    /// Without trials, a page has no pictures.
    pub records: Records<'a>,
}

impl<'a> std::ops::Deref for Shown<'a> {
    type Target = Records<'a>;

    fn deref(&self) -> &Records<'a> {
        &self.records
    }
}

impl<'a> Shown<'a> {
    /// Whether the page is for somebody who was not there: with pictures, and with the method before the details.
    fn is_whole(&self) -> bool {
        !self.trials.is_empty()
    }
}

impl<'a> Shown<'a> {
    /// The name of a cell.
    fn name(&self, cell: usize) -> String {
        self.shortened(self.campaign.name_of(cell))
    }

    /// The name of a row.
    fn numbered(&self, cell: usize) -> String {
        format!("{:>2} {}", cell + 1, self.name(cell))
    }

    /// A name without factors that have one level only in this form of the plan.
    fn shortened(&self, name: &str) -> String {
        self.planned.shortened(name)
    }

    /// Disturbances that distort a cell's rate, in a few words; empty: none.
    fn spoils(&self, cell: usize) -> String {
        let warnings = self.summary.warnings.iter();
        let own = warnings.filter(|w| w.slot.is_none_or(|slot| slot == cell));
        let spoils = distinct(own.filter_map(|w| w.spoils.as_deref()));
        spoils.join(", ")
    }

    /// [`Shown::spoils`] beside the rate, between these marks.
    fn spoiled(&self, cell: usize, [before, after]: [&str; 2]) -> String {
        match self.spoils(cell) {
            why if why.is_empty() => why,
            why => format!("{before}disturbed: {why}{after}"),
        }
    }

    /// The figures of a cell.
    fn row(&self, cell: usize) -> Option<&Row> {
        self.summary.rows.iter().find(|r| r.slot == cell)
    }

    /// The valid trials of a cell.
    fn valid(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> {
        self.trials
            .iter()
            .filter(move |trial| trial.slot == cell && trial.audit.valid)
    }

    /// The median rate of a cell that has one.
    fn rate(&self, cell: usize) -> Option<f64> {
        self.row(cell)
            .filter(|r| r.received.n > 0)
            .map(|r| r.received.median)
    }

    /// The speed of the links of real hosts, in bit/s: the plan's, or that of the DUT's slowest card.
    fn link_speed(&self) -> Option<f64> {
        let of_cards = || {
            let found = self.facts.iter().filter_map(Configuration::recorded);
            let cards = found
                .flat_map(|found| found.cards)
                .filter(|card| card.kind.is_none());
            cards.filter_map(|card| card.speed).reduce(f64::min)
        };
        let hosts = self.campaign.asked.lab == LabKind::Hosts;
        self.planned
            .experiment
            .link_speed
            .or_else(|| of_cards().filter(|_| hosts))
    }

    /// The figures of the slots with a DUT that were to be measured.
    fn with_dut(&self) -> impl Iterator<Item = &'a Row> {
        let (slots, planned) = (&self.campaign.slots, self.planned);
        let is_dut = move |row: &&Row| slots.get(row.slot).is_some_and(|s| !s.is_calibration());
        let lacks = move |row: &&Row| !planned.lacking(row.slot).is_empty();
        self.rows().filter(is_dut).filter(move |row| !lacks(row))
    }

    /// The slots with a DUT, or those of the tester alone where there is no other.
    fn measured_slots(&self) -> Vec<&Slot> {
        let with_dut = self.slots().any(|slot| !slot.is_calibration());
        let measured = self
            .slots()
            .filter(|slot| slot.is_calibration() != with_dut);
        measured.collect()
    }

    /// The series that are part of the page. Where factors are crossed, the same cells are part of several: those over numbers are.
    fn series(&self) -> impl Iterator<Item = &Series> {
        let numeric = |s: &Series| s.points.iter().all(|p| p.number.is_some());
        let long = || self.summary.series.iter().filter(|s| s.points.len() > 2);
        let is_shown = move |series: &&Series| {
            let cell = series.points.first().map(|p| p.cell);
            let shared = |s: &&Series| {
                s.factor != series.factor && s.points.iter().any(|p| Some(p.cell) == cell)
            };
            numeric(series) || !long().filter(shared).any(numeric)
        };
        long().filter(is_shown)
    }

    /// Whether frames were lost in valid trials of any cell.
    fn loses(&self) -> bool {
        self.summary.rows.iter().any(|r| r.loss_ratio > 0.0)
    }

    /// The head of the column with [`lost`](Self::lost). Connections are accounted for over the whole load.
    fn loss_head(&self) -> [&'static str; 2] {
        match self.opens_connections() {
            true => ["failed", "% of load"],
            false => ["lost", "%"],
        }
    }

    /// The share of a cell's frames that was lost.
    fn lost(&self, cell: usize) -> Option<Cell> {
        self.row(cell)
            .filter(|r| r.valid_trials > 0)
            .map(|r| share(r.loss_ratio))
    }

    /// Whether the hosts at both ends of a path are the device under test.
    fn is_of_end_hosts(&self) -> bool {
        self.campaign.asked.mode == Mode::EndHosts
    }

    /// The unit of the DUT's rates. Between end hosts, bits of payload (layer 4).
    fn unit(&self) -> RateUnit {
        if let Some(path) = self.slots().find_map(|slot| slot.path.as_ref()) {
            return RateUnit {
                scale: 1e6 / path.goodput(1.0),
                name: "Mbit/s",
            };
        }
        // The tester alone may be thousands of times as fast as a limited load.
        let of_dut = self.with_dut().filter(|row| row.trials > 0);
        let mut rows: Vec<&Row> = of_dut.collect();
        if rows.is_empty() {
            rows = self.summary.rows.iter().collect();
        }
        self.unit_of(rows.iter().map(|r| r.received.median.max(r.offered)))
    }

    /// The unit of these rates, of frames or of connections.
    fn unit_of(&self, rates: impl IntoIterator<Item = f64>) -> RateUnit {
        RateUnit::of_campaign(self.campaign, rates)
    }

    /// Whether connections are opened, and not single frames sent.
    fn opens_connections(&self) -> bool {
        self.campaign.opens_connections()
    }

    /// The first of two texts where connections are measured, the other one where frames are.
    fn word<'t>(&self, of_connections: &'t str, of_frames: &'t str) -> &'t str {
        if self.opens_connections() {
            of_connections
        } else {
            of_frames
        }
    }

    fn slot(&self, id: usize) -> Option<&'a Slot> {
        self.campaign.slots.get(id)
    }

    fn slots(&self) -> std::slice::Iter<'a, Slot> {
        self.campaign.slots.iter()
    }

    fn rows(&self) -> std::slice::Iter<'a, Row> {
        self.summary.rows.iter()
    }

    fn search(&self, cell: usize) -> Option<&'a Searched> {
        self.summary
            .searches
            .iter()
            .find(|search| search.slot == cell)
    }

    /// The thing whose rate is measured.
    fn noun(&self) -> &'static str {
        self.campaign.noun()
    }
}

/// Whether a row has a rate at all: a trial can be valid, and still too short to have a window.
pub(super) fn has_rate(row: &Row) -> bool {
    row.valid_trials > 0 && row.received.n > 0
}

/// The whole page. The caller has already said whether the campaign is simulated.
pub fn page(page: &mut Document, shown: &Shown<'_>) {
    let experiment = &shown.planned.experiment;
    match (&shown.planned.file, shown.is_whole()) {
        (None, true) if !shown.campaign.variants().is_empty() => {
            let variants = some(shown.campaign.variants(), MOST_NAMED, ", ");
            page.title = Some(format!("{}: {variants}", experiment.title));
        }
        (None, _) => {}
        (Some(_), false) => super::plan::question(page, experiment),
        (Some(_), true) => {
            page.title = Some(super::plan::titled(experiment));
            super::plan::asked(page, experiment);
        }
    }
    answer::missing(shown)
        .into_iter()
        .for_each(|text| page.warn(text));
    answer::skipped(page, shown);
    let Summary {
        benchmarks,
        searches,
        ..
    } = shown.summary;
    match (benchmarks.is_empty(), searches.is_empty()) {
        (false, _) => benchmarks::benchmarks(page, shown),
        (_, false) => searches::searches(page, shown),
        _ => {
            kept::sentences(shown)
                .into_iter()
                .for_each(|text| page.answer(text));
            answer::answer(page, shown);
            kept::section(page, shown);
            flood::section(page, shown);
            if shown.is_whole() && !shown.is_of_end_hosts() {
                first::top(page, shown);
            }
            pictures::cells(page, shown);
            tables::cells(page, shown);
        }
    }
    let rates = benchmarks.is_empty() && searches.is_empty();
    if rates && !shown.is_whole() {
        details(page, shown);
    } else {
        tables::expectations(page, shown);
        if !rates {
            skipped(page, shown);
        }
    }
    page.warnings(warned(shown));
    measured::measured(page, shown);
    if !shown.is_whole() {
        return;
    }
    if rates {
        details(page, shown);
    }
    pictures::loads(page, shown);
    pictures::cpus(page, shown);
    audits::audits(page, shown);
    conformance(page, shown);
    repeat(page, shown);
    audits::machine(page, shown.host);
    configurations(page, shown);
}

/// Figures behind the rates of the cells.
fn details(page: &mut Document, shown: &Shown<'_>) {
    if shown.is_of_end_hosts() {
        end_hosts::tcp(page, shown)
    } else {
        figures::load(page, shown)
    }
    versions::versions(page, shown);
    tables::papers(page, shown);
    pictures::series(page, shown);
    tables::series(page, shown);
    tables::speed_ups(page, shown);
    if !shown.is_whole() {
        tables::expectations(page, shown);
    }
    explanation::section(page, shown.campaign, shown.summary, shown.is_whole());
    explanation::balance::balance(
        page,
        shown.campaign,
        &shown.summary.explanations,
        shown.is_whole(),
    );
    pictures::queues(page, shown);
    profiles::profiles(page, shown);
    profiles::flames(page, shown);
    telemetry::telemetry(page, shown);
    figures::figures(page, shown);
    pictures::over_time(page, shown);
    ministat(page, shown);
    skipped(page, shown);
}

/// The cells that were not measured, with the reasons.
fn skips(shown: &Shown<'_>) -> Vec<String> {
    let skipped = shown.planned.skipped.iter();
    let skipped = together(skipped.map(|s| (&s.reasons, shown.name(s.cell))));
    skipped
        .iter()
        .map(|(why, names)| format!("{}: {}", names.join("; "), why.join("; ")))
        .collect()
}

fn skipped(page: &mut Document, shown: &Shown<'_>) {
    page.entries("Not measured", skips(shown));
}

/// The requirements of the standard that the campaign claims.
fn conformance(page: &mut Document, shown: &Shown<'_>) {
    let Records {
        campaign,
        host,
        trials,
        facts,
        summary,
        ..
    } = shown.records;
    let records = linerate_standards::Records {
        campaign,
        host,
        trials,
        facts,
        summary: Some(summary),
    };
    let Some(found) = linerate_standards::conformance(&records) else {
        return;
    };
    page.heading("Conformance");
    for claim in &found.claims {
        page.say(claim.to_string());
    }
    let mut all = found.claims.iter().map(|claim| claim.compliance);
    if all.any(|compliance| compliance == Compliance::Conditionally) {
        page.note(CONDITIONALLY);
    }
    page.folded("All requirements, each with its evidence", |page| {
        let mut all = super::conformance(&campaign.name, &found);
        all.blocks.remove(0);
        page.append(all);
    });
}

/// The configuration of the DUTs; those that differ in their traffic alone are configured alike.
fn configurations(page: &mut Document, shown: &Shown<'_>) {
    let mut known = Vec::new();
    page.folded("Configuration of the DUTs", |page| {
        for facts in shown.facts {
            let Some(found) = Configuration::recorded(facts) else { continue };
            if !known.contains(&found) {
                let mut of = super::facts("", &found);
                of.blocks.retain(
                    |block| !matches!(block, Block::Heading { text } if text.starts_with("Facts of")),
                );
                page.folded(shown.name(facts.slot), |page| page.append(of));
                known.push(found);
            }
        }
    });
}

/// The command line, and the plan that `linerate run` carries out again.
fn repeat(page: &mut Document, shown: &Shown<'_>) {
    page.heading("To repeat it");
    page.fact("begun", &shown.campaign.started);
    page.fact("linerate", &shown.campaign.linerate);
    page.code(&shown.campaign.asked.command.join(" "), Tone::Plain);
    if let Some(plan) = &shown.planned.source {
        page.folded("The plan, for `linerate run`", |page| {
            page.code(plan, Tone::Plain)
        });
    }
}

/// The trials of each cell as ministat(1) prints them, to copy.
fn ministat(page: &mut Document, shown: &Shown<'_>) {
    let slots = shown.measured_slots();
    let set = |row: &Row| {
        let trials = shown.valid(row.slot);
        let own = trials.filter(|trial| slots.iter().any(|slot| slot.id == trial.slot));
        let rates: Vec<f64> = own
            .filter_map(|trial| Some(trial.rates?.received.round()))
            .collect();
        (rates.len() >= 3).then(|| Dataset::new(shown.name(row.slot), rates))
    };
    let sets: Vec<Dataset> = shown.rows().filter_map(set).take(MAX_SETS).collect();
    if !sets.is_empty() {
        ministat_block(page, "", &sets);
    }
}

/// Rates as ministat(1) prints them, to copy; `family`: the IP version of their frames.
pub(super) fn ministat_block(page: &mut Document, family: &str, sets: &[Dataset]) {
    page.heading(format!("ministat: received frames/s {family}").trim_end());
    page.code(&block(sets, &Options::default()), Tone::Plain);
}

/// Warnings. One that applies to several cells appears once, with the figures of the first.
fn warned(shown: &Shown<'_>) -> Vec<String> {
    let said = shown.summary.warnings.iter().map(|w| {
        let words: String = w.text.chars().filter(|c| !c.is_ascii_digit()).collect();
        ((w.slot.is_some(), words), w)
    });
    let told = together(said);
    let told = told.iter().map(|(_, said)| {
        let names = said.iter().filter_map(|w| Some(shown.name(w.slot?)));
        let names: Vec<String> = names.collect();
        let who = when(!names.is_empty(), format!("{}: ", listed(&names)));
        format!("{who}{}", said[0].text)
    });
    told.collect()
}

#[cfg(test)]
pub(super) mod tests;
