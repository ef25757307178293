//! The public FreeBSD forwarding archive ("netbenches") and trees with its layout: their contents, as values.
//!
//! docs/netbenches.md says which files are read and how agreement is decided.

pub mod assemble;
pub mod config;
pub mod equilibrium;
pub mod info;
pub mod layout;
pub mod logs;
mod printed;
pub mod records;
mod sets;
pub mod shell;
pub mod tables;

use layout::Place;
use linerate_hosts::pktgen::Sample;
pub use linerate_measure::record::imported::{
    Equilibrium, EquilibriumRun, EquilibriumStep, ImportedSlot, ImportedTrial, PrintedThroughput,
    Published, Rule, Series, SeriesRow, Setting,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A tree that has been read, or the part of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Archive {
    /// Every folder with results, in the order of their paths.
    pub directories: Vec<ResultDirectory>,
    /// Files that are broken, and why, in the order of their paths.
    pub problems: Vec<FileProblem>,
    /// How many files there are of each kind.
    pub files: BTreeMap<&'static str, u64>,
    /// Bytes read.
    pub bytes: u64,
}

/// A file that is broken, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Path relative to the folder that was read, `/` between its parts; parts that are not UTF-8 are replaced.
    pub path: String,
    /// Kind of the file: `receiver`, `medians`, ...
    pub kind: &'static str,
    /// The problem, for a reader.
    pub reason: String,
    /// The set that it belongs to, if any: then that set, or its run, has the problem as well.
    pub set: Option<String>,
}

/// A folder that holds medians, or logs without medians: one campaign of the archive.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ResultDirectory {
    /// Path relative to the folder that was read; `.` for that folder itself.
    #[serde(rename = "dir")]
    pub path: String,
    /// Subject of the folder.
    #[serde(flatten)]
    pub place: Place,
    /// The sets of runs, in the order of their names.
    pub sets: Vec<Set>,
    /// Summaries over sets: `gnuplot.data` and the other `.data` files.
    pub series: Vec<Series>,
    /// Searches for the equilibrium throughput (VPN benches).
    pub equilibria: Vec<Equilibrium>,
    /// Throughput that tools printed.
    pub throughputs: Vec<PrintedThroughput>,
    /// Whether these are results as tools printed them, not logs of the archive's script.
    #[serde(skip)]
    pub printed: bool,
}

/// Runs of one configuration, and the medians published for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Set {
    /// The set's part of the records: name, published medians, whether these agree, facts (see [`facts`]), problems.
    #[serde(flatten)]
    pub slot: ImportedSlot,
    /// Image of the system under test, or its source revision.
    pub image: Option<String>,
    /// `inet4` or `inet6`, if the name or the generator's command line has it.
    pub family: Option<String>,
    /// Length of the frames in bytes without FCS, as far as the logs show it.
    pub frame_length: Option<u64>,
    /// The runs, in the order in which the archive's script took them (1, 10, 2, ...).
    pub runs: Vec<Run>,
}

impl Set {
    /// The folder, relative to the one that was read, that holds the medians, or without medians the logs; `.` for the one
    /// that was read.
    pub fn directory(&self) -> &str {
        let published = self.slot.published.as_ref().map(|p| &p.file);
        let file = published.or(self.runs.first().map(|r| &r.trial.file));
        file.map_or(".", |f| folder(f))
    }
}

/// The folder of a path; `.` where it has none.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

/// Keys of a set's facts. Those of a pkt-gen command line are `receiver.<option>` and `sender.<option>`.
pub mod facts {
    /// `uname -a` of the DUT.
    pub const UNAME: &str = "uname";
    /// Source revision of the DUT's kernel, as `uname` has it: `r322489M`, `n302145-...`.
    pub const REVISION: &str = "revision";
    /// FreeBSD's release name, as `uname` has it: `11.1-RELEASE-p1`.
    pub const RELEASE: &str = "release";
    /// When the kernel was built, as `uname` has it.
    pub const BUILT: &str = "built";
    /// Time of the build, RFC 3339, UTC, if it could be read.
    pub const BUILT_UTC: &str = "built_utc";
    /// Beginning of the set, as `.info` has it.
    pub const START: &str = "start";
    /// Beginning of the set, RFC 3339, UTC, if it could be read.
    pub const START_UTC: &str = "start_utc";
    /// End of the set, as `.info` has it.
    pub const END: &str = "end";
    /// Image of the DUT, as `.info` has it.
    pub const IMAGE: &str = "image";
    /// Configuration of the DUT, as `.info` has it.
    pub const CONFIG: &str = "config";
    /// Variant of the generator's arguments, as `.info` has it.
    pub const PKTGEN: &str = "pktgen";
}

/// One run: a receiver's log.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// The run's part of the records: the log, its lines and samples, the steady part, problems.
    #[serde(flatten)]
    pub trial: ImportedTrial,
    /// The archive's figure in frames/s as it prints it (8 significant digits), by the set's rule ([`Rule::Mean`] where
    /// none is known); `None` where there were fewer than three samples.
    pub median_pps: Option<f64>,
    /// Offered load in frames/s, from the sender's log.
    pub offered_pps: Option<f64>,
    /// All samples of the log, each with its line, where the reader was asked to keep them.
    #[serde(skip)]
    pub log_samples: Vec<(u64, Sample)>,
}
