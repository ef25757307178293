//! Results as time lines: one for each machine, variant and kind of frames, with the changes of its level and their possible
//! causes.
//!
//! [`campaigns`] and importers make time lines of results, [`judge`] finds the changes, [`facts`] names possible causes.
//! docs/history.md explains the method.

pub mod campaigns;
pub mod facts;
pub mod judge;
pub mod revision;

use revision::Place;
use serde::Serialize;
use std::collections::BTreeMap;

pub use judge::{Followed, Found, History, Judged, Outlier, judge};

/// Properties that the points of a time line share.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Whether the figures are of no machine.
    pub simulated: bool,
    /// The machine: CPU model and number, or as the archive names it.
    pub machine: String,
    /// Network card, or the lab that stands in for one.
    pub card: String,
    /// The subject: a topic of the archive.
    pub topic: String,
    /// Variant, or configuration of the archive.
    pub variant: String,
    /// Other names under which an archive has the same runs.
    pub also: Vec<String>,
    /// `IPv4` or `IPv6`.
    pub family: String,
    /// Frame length: `64 B`, `IMIX`.
    pub frame: String,
    /// Other properties that make rates of different time lines incomparable: transport, flows, offered load.
    pub load: String,
    /// The folder that all points are from, where one folder is a time line of its own.
    pub series: String,
    /// Whether it is the tester alone, without a DUT.
    pub tester: bool,
}

impl Key {
    /// The subject of the measurement in a few words: `nft-stateful IPv4 64 B`.
    pub fn what(&self) -> String {
        let variant = if self.variant.is_empty() {
            "(unnamed)"
        } else {
            &self.variant
        };
        let also = match &self.also[..] {
            [] => String::new(),
            names => format!("(also called {})", names.join(", ")),
        };
        join(
            &[variant, &also, &self.family, &self.frame, &self.load],
            " ",
        )
    }

    /// Where it was measured.
    pub fn place(&self) -> String {
        join(
            &[&self.machine, &self.card, &self.topic, &self.series],
            ", ",
        )
    }
}

fn join(parts: &[&str], with: &str) -> String {
    parts
        .iter()
        .filter(|p| !p.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(with)
}

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Median over the runs or trials: frames/s, or a ratio.
    pub value: f64,
    /// Relative standard error of it, from the runs; 0 where it is not known.
    pub error: f64,
    /// Runs or trials; 0 where it is not known.
    pub runs: usize,
}

impl Figure {
    /// The median of runs. For normal noise the standard error of a median is 1.2533 times that of the mean.
    pub fn of_runs(runs: &[f64]) -> Option<Self> {
        let value = linerate_stats::median(runs)?;
        let error = match runs.len() {
            0 | 1 => 0.0,
            n => 1.2533 * linerate_stats::coefficient_of_variation(runs) / (n as f64).sqrt(),
        };
        Some(Figure {
            value,
            error,
            runs: runs.len(),
        })
    }

    /// A median of about five runs with only their minimum and maximum: the mean range of five normal values is 2.326 standard
    /// deviations.
    pub fn of_range(median: f64, least: f64, greatest: f64) -> Self {
        let deviation = (greatest - least).max(0.0) / 2.326;
        let error = if median > 0.0 {
            1.2533 * deviation / 5f64.sqrt() / median
        } else {
            0.0
        };
        Figure {
            value: median,
            error,
            runs: 0,
        }
    }
}

/// A ratio of rates that were measured by turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relative {
    /// The reference: the tester alone (`tester-baseline`), or the variant that this one is compared with.
    pub to: String,
    /// The ratio.
    pub figure: Figure,
}

/// A point of a time line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Where it stands.
    pub place: Place,
    /// Forwarding rate in frames/s.
    pub rate: Figure,
    /// Rate / that of a reference in the same campaign, if there is one.
    pub relative: Option<Relative>,
    /// Facts about the system and the set-up, by name.
    pub facts: BTreeMap<String, String>,
    /// Folder or file that it is from.
    pub source: String,
}

/// Results of one kind, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// Properties that the points share.
    pub key: Key,
    /// The points.
    pub points: Vec<Point>,
}

/// Puts points under their keys and in order.
#[derive(Debug, Default)]
pub struct Timelines(BTreeMap<Key, Vec<Point>>);

impl Timelines {
    /// Adds a point.
    pub fn add(&mut self, key: Key, point: Point) {
        // A rate that is not positive was no measurement.
        if point.rate.value > 0.0 && point.rate.value.is_finite() {
            self.0.entry(key).or_default().push(point);
        }
    }

    /// The time lines, each in order.
    pub fn finish(self) -> Vec<Timeline> {
        let timeline = |(key, mut points): (Key, Vec<Point>)| {
            points.sort_by(|a, b| (&a.place, &a.source).cmp(&(&b.place, &b.source)));
            Timeline { key, points }
        };
        self.0.into_iter().map(timeline).collect()
    }
}
