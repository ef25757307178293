//! What a record keeps of results that linerate did not measure: where each figure comes from, and by which method.
//!
//! All of it is optional in the records, and absent in those of linerate's own campaigns.

use crate::archive::{Equilibrium, Rule, Series, Setting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of a campaign: one results folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Whose results: `netbenches`.
    pub source: String,
    /// The folder, relative to the one that was imported.
    pub path: String,
    /// How the figures came about, for a reader.
    pub method: String,
    /// The DUT, as its owner names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Its network card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// What was looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Published tables over sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Searches for an equilibrium throughput, in Mb/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equilibria: Vec<Equilibrium>,
}

/// Of a slot: one set of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedSlot {
    /// The set, as its owner names it.
    pub set: String,
    /// Whether these are profiling runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiling: bool,
    /// The file of published medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_file: Option<String>,
    /// The published medians in frames/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Vec<f64>>,
    /// Whether the recomputed medians are the published ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// By which rule they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// What differs, where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<String>,
    /// Facts of system, image, generator and receiver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Configuration file -> its settings and rules.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub description: BTreeMap<String, Vec<Setting>>,
    /// What is wrong with the set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Of a trial: one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedTrial {
    /// The log, or the file of published medians where there is no log.
    pub file: String,
    /// First and last line of it, from 1, that the figure rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
    /// How `rates.received` came about.
    pub method: String,
    /// How many samples it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Number of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Median of the steady part, frames/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<f64>,
    /// First sample of the steady part, from 0, and how many there are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<(usize, usize)>,
    /// What is wrong with the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
