//! The records that the pages of a campaign show, and what these ask of them.

use crate::pages::Records;
use crate::prelude::*;
use linerate_measure::record::{Planned, Searched, Series};

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
    pub(super) fn is_whole(&self) -> bool {
        !self.trials.is_empty()
    }
}

impl<'a> Shown<'a> {
    /// The name of a cell.
    pub(super) fn name(&self, cell: usize) -> String {
        self.shortened(self.campaign.name_of(cell))
    }

    /// The name of a row.
    pub(super) fn numbered(&self, cell: usize) -> String {
        format!("{:>2} {}", cell + 1, self.name(cell))
    }

    /// A name without factors that have one level only in this form of the plan.
    pub(super) fn shortened(&self, name: &str) -> String {
        self.planned.shortened(name)
    }

    /// Disturbances that distort a cell's rate, in a few words; empty: none.
    pub(super) fn spoils(&self, cell: usize) -> String {
        let warnings = self.summary.warnings.iter();
        let own = warnings.filter(|w| w.slot.is_none_or(|slot| slot == cell));
        let spoils = distinct(own.filter_map(|w| w.spoils.as_deref()));
        spoils.join(", ")
    }

    /// [`Shown::spoils`] beside the rate, between these marks.
    pub(super) fn spoiled(&self, cell: usize, [before, after]: [&str; 2]) -> String {
        match self.spoils(cell) {
            why if why.is_empty() => why,
            why => format!("{before}disturbed: {why}{after}"),
        }
    }

    /// The figures of a cell.
    pub(super) fn row(&self, cell: usize) -> Option<&Row> {
        self.summary.rows.iter().find(|r| r.slot == cell)
    }

    /// The valid trials of a cell.
    pub(super) fn valid(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> {
        self.trials
            .iter()
            .filter(move |trial| trial.slot == cell && trial.audit.valid)
    }

    /// The median rate of a cell that has one.
    pub(super) fn rate(&self, cell: usize) -> Option<f64> {
        self.row(cell)
            .filter(|r| r.received.n > 0)
            .map(|r| r.received.median)
    }

    /// The speed of the links of real hosts, in bit/s: the plan's, or that of the DUT's slowest card.
    pub(super) fn link_speed(&self) -> Option<f64> {
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
    pub(super) fn with_dut(&self) -> impl Iterator<Item = &'a Row> {
        let (slots, planned) = (&self.campaign.slots, self.planned);
        let is_dut = move |row: &&Row| slots.get(row.slot).is_some_and(|s| !s.is_calibration());
        let lacks = move |row: &&Row| !planned.lacking(row.slot).is_empty();
        self.rows().filter(is_dut).filter(move |row| !lacks(row))
    }

    /// The slots with a DUT, or those of the tester alone where there is no other.
    pub(super) fn measured_slots(&self) -> Vec<&Slot> {
        let with_dut = self.slots().any(|slot| !slot.is_calibration());
        let measured = self
            .slots()
            .filter(|slot| slot.is_calibration() != with_dut);
        measured.collect()
    }

    /// The series that are part of the page. Where factors are crossed, the same cells are part of several: those over numbers are.
    pub(super) fn series(&self) -> impl Iterator<Item = &Series> {
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
    pub(super) fn loses(&self) -> bool {
        self.summary.rows.iter().any(|r| r.loss_ratio > 0.0)
    }

    /// The head of the column with [`lost`](Self::lost). Connections are accounted for over the whole load.
    pub(super) fn loss_head(&self) -> [&'static str; 2] {
        match self.sends_frames() {
            true => ["lost", "%"],
            false => ["failed", "% of load"],
        }
    }

    /// The share of a cell's frames that was lost.
    pub(super) fn lost(&self, cell: usize) -> Option<Cell> {
        self.row(cell)
            .filter(|r| r.valid_trials > 0)
            .map(|r| share(r.loss_ratio))
    }

    /// Whether the hosts at both ends of a path are the device under test.
    pub(super) fn is_of_end_hosts(&self) -> bool {
        self.campaign.asked.mode == Mode::EndHosts
    }

    /// The unit of the DUT's rates. Between end hosts, bits of payload (layer 4).
    pub(super) fn unit(&self) -> RateUnit {
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
    pub(super) fn unit_of(&self, rates: impl IntoIterator<Item = f64>) -> RateUnit {
        RateUnit::of_campaign(self.campaign, rates)
    }

    /// Whether connections are opened, and not single frames sent.
    pub(super) fn opens_connections(&self) -> bool {
        self.campaign.opens_connections()
    }

    /// Whether single frames are sent, and not connections opened or requests made.
    pub(super) fn sends_frames(&self) -> bool {
        self.noun() == "frame"
    }

    /// The first of these texts where frames are measured, the second where connections are, the third where requests of HTTP are.
    pub(super) fn word<'t>(
        &self,
        [of_frames, of_connections, of_requests]: [&'t str; 3],
    ) -> &'t str {
        match self.noun() {
            "request" => of_requests,
            "connection" => of_connections,
            _ => of_frames,
        }
    }

    pub(super) fn slot(&self, id: usize) -> Option<&'a Slot> {
        self.campaign.slots.get(id)
    }

    pub(super) fn slots(&self) -> std::slice::Iter<'a, Slot> {
        self.campaign.slots.iter()
    }

    pub(super) fn rows(&self) -> std::slice::Iter<'a, Row> {
        self.summary.rows.iter()
    }

    pub(super) fn search(&self, cell: usize) -> Option<&'a Searched> {
        self.summary
            .searches
            .iter()
            .find(|search| search.slot == cell)
    }

    /// The thing whose rate is measured.
    pub(super) fn noun(&self) -> &'static str {
        self.campaign.noun()
    }
}

/// Whether a row has a rate at all: a trial can be valid, and still too short to have a window.
pub fn has_rate(row: &Row) -> bool {
    row.valid_trials > 0 && row.received.n > 0
}
