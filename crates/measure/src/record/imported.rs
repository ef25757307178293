//! Parts of the records of imported results: the source and the method of each figure.
//!
//! All of it is optional in the records, and absent in those of linerate's own campaigns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of a campaign: one results folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Whose results: `netbenches`.
    pub source: String,
    /// The folder, relative to the one that was imported.
    pub path: String,
    /// How the figures came about, for a reader.
    pub method: String,
    /// The DUT, as its owner names it.
    pub machine: Option<String>,
    /// Network card.
    pub card: Option<String>,
    /// The subject.
    pub topic: Option<String>,
    /// Name of the series.
    pub label: Option<String>,
    /// Published tables over sets.
    pub series: Vec<Series>,
    /// Searches for an equilibrium throughput, in Mb/s.
    pub equilibria: Vec<Equilibrium>,
    /// Throughput as other tools printed it.
    pub throughputs: Vec<PrintedThroughput>,
}

/// Of a slot: one set of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSlot {
    /// The set, as its owner names it.
    pub set: String,
    /// Whether these are profiling runs.
    pub profiling: bool,
    /// The published medians; `None` without such a file.
    pub published: Option<Published>,
    /// Whether the recomputed medians are the published ones.
    pub agrees: Option<bool>,
    /// By which rule they are.
    pub rule: Option<Rule>,
    /// The difference, if they disagree.
    pub disagreement: Option<String>,
    /// Facts of system, image, generator and receiver.
    pub facts: BTreeMap<String, String>,
    /// Configuration file -> its settings and rules.
    pub description: BTreeMap<String, Vec<Setting>>,
    pub problems: Vec<String>,
}

/// Of a trial: one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedTrial {
    /// The log, or without a log the file of published medians.
    pub file: String,
    /// First and last line of it, from 1, that the figure rests on.
    pub lines: Option<(u64, u64)>,
    /// How `rates.received` came about.
    pub method: String,
    /// How many samples it rests on.
    pub samples: Option<usize>,
    /// Number of the run.
    pub number: Option<u32>,
    /// Median of the steady part, frames/s.
    pub sound: Option<f64>,
    /// First sample of the steady part, from 0, and how many there are in it.
    pub steady: Option<(usize, usize)>,
    pub problems: Vec<String>,
}

/// The middle of an even number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MiddleRule")]
pub enum Rule {
    /// Mean of the two middle points: ministat since late 2015.
    Mean,
    /// The upper middle point: ministat before.
    Upper,
}

/// A file of medians, one a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Path of the file, relative to the folder that was read.
    pub file: String,
    /// The medians in frames/s, in the file's order.
    pub values: Vec<f64>,
    /// Lines without a number: failed runs, mostly.
    pub blank_lines: usize,
    pub problems: Vec<String>,
}

/// A table over sets: `gnuplot.data` and the like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ImportedSeries")]
pub struct Series {
    /// Path of the file, relative to the folder that was read.
    pub file: String,
    /// Names of the columns, where the file has a header.
    pub columns: Vec<String>,
    /// The rows, in the file's order.
    pub rows: Vec<SeriesRow>,
    pub problems: Vec<String>,
}

/// A row of such a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// Line in the file, from 1.
    pub line: usize,
    /// The text that the row begins with: a set, a revision, a number of rules. Empty where the row has numbers only.
    pub key: String,
    /// Median.
    pub median: Option<f64>,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// All numbers behind the key, in their order.
    pub values: Vec<f64>,
}

/// Searches for the greatest rate without loss, of one configuration (Mb/s, Ethernet).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Equilibrium {
    /// Name of the set.
    pub name: String,
    /// The searches, in the order of their logs' names.
    pub runs: Vec<EquilibriumRun>,
    /// Estimates committed to the archive. Older ones may stand before those of these logs.
    pub published: Option<Published>,
    /// Greatest values seen, committed to the archive.
    pub published_max: Option<Published>,
    /// Facts from `.info` and the command line; names as in the archive's facts.
    pub facts: BTreeMap<String, String>,
    /// Whether the published estimates end with those of the logs; `None` if there is nothing to compare.
    pub agrees: Option<bool>,
    /// Faults of the file: stale values, say.
    pub problems: Vec<String>,
}

/// One search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EquilibriumRun {
    /// Path of the log, relative to the folder that was read.
    pub log: String,
    /// Final estimate in Mb/s.
    pub estimate: Option<f64>,
    /// Greatest value seen in Mb/s.
    pub maximum: Option<f64>,
    /// The steps on the way there.
    pub steps: Vec<EquilibriumStep>,
    pub problems: Vec<String>,
}

/// One step of a search, in Mb/s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EquilibriumStep {
    /// Offered load.
    pub offered: f64,
    /// Forwarding rate, if measured.
    pub measured: Option<f64>,
}

/// Throughput of one configuration, as a tool printed it: of TCP connections, mostly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrintedThroughput {
    /// Name of the set.
    pub name: String,
    /// Path of the file, relative to the folder that was read.
    pub file: String,
    /// The source of each value, for a reader.
    pub method: String,
    /// Whether each value is of a whole test, and not one sample of it.
    pub whole: bool,
    /// `Mbit/s`, of payload; empty where the file names none.
    pub unit: String,
    pub values: Vec<f64>,
    /// The line of each value, from 1.
    pub lines: Vec<u64>,
    /// Whether a profiler ran beside it.
    pub profiling: bool,
    /// The test and its commands.
    pub facts: BTreeMap<String, String>,
    pub problems: Vec<String>,
}

/// A line of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name of the setting; empty for a rule.
    pub name: String,
    /// Value without quotes, or the rule.
    pub value: String,
}
