//! A plan, expanded: the lanes, kinds of traffic and cells that an executor needs, with the comparisons and expectations between cells.
//!
//! All references between the parts are indices into the lists of [`Campaign`].

use super::settings::Mode;
use super::settings::{Cpus, Feature, Interface, Settings, System};
use super::text_form;
use crate::backend::Backend;
use crate::keys::ORDERS;
use crate::units::Rate;
use linerate_wire::{Family, FlowOrder, FrameMix, Transport};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A plan for one operating system, in its quick or full form, with everything inherited, overridden and multiplied out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// The document that the experiment comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The system of the device under test that the settings are for.
    pub system: System,
    /// Whether this is the quick form.
    pub quick: bool,
    /// Where it runs.
    pub lab: Lab,
    /// Speed in bit/s that is 100 % of line rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_speed: Option<f64>,
    /// The factors, in the order of the plan.
    pub factors: Vec<Factor>,
    /// Distinct configurations of the device under test.
    pub lanes: Vec<Lane>,
    /// Distinct kinds of traffic.
    pub kinds: Vec<Kind>,
    /// The cells. Each block has one trial of each.
    pub cells: Vec<Cell>,
    /// Pairs of cells whose ratio is of interest.
    pub comparisons: Vec<Comparison>,
    /// Expectations of the author.
    pub expectations: Vec<Expectation>,
    /// How trials are run.
    pub trials: Trials,
    /// Data to collect with each trial, beyond the counters.
    pub collect: Collect,
    /// Requirements of the whole plan. Lanes have their own.
    pub requirements: Vec<Requirement>,
}

/// Where a plan runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lab {
    /// In network namespaces of this machine.
    Embedded {
        /// Inline or threaded.
        mode: Mode,
        /// CPUs of the generator; the machine's choice where none are named.
        generator_cpus: Option<Vec<u32>>,
        /// CPUs of the device under test in threaded mode.
        dut_cpus: Option<Vec<u32>>,
        /// How frames leave and arrive; the best that this process may use where none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<Backend>,
        /// Frames that the generator hands over at once; chosen by measurement where none are named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<u32>,
    },
    /// The hosts of a lab file.
    File {
        /// Its path, relative to the plan's folder.
        path: String,
    },
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name in the plan.
    pub name: String,
    /// A description in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The fields that it sets: `rules.before`, `traffic.flows`.
    pub sets: Vec<String>,
    /// Its levels, as text.
    pub levels: Vec<String>,
    /// The levels as numbers, for the axis of a plot; `None` unless all levels are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<f64>>,
    /// Whether it is swept by itself, while the other factors that are swept alone keep the values of the plan. Otherwise each
    /// level is combined with each level of the others.
    pub alone: bool,
}

impl Factor {
    /// Whether the frames show its level.
    pub fn of_frames(&self) -> bool {
        self.sets.iter().all(|f| f == "traffic.size" || f == "traffic.family")
    }
}

/// A configuration of the device under test. Cells that need the same share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Names of the variants that use it, for messages.
    pub variants: Vec<String>,
    pub settings: Settings,
    /// The variant that wants it for itself, although another's is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// Requirements of this lane. If one is missing, its cells are skipped with the reason.
    pub requirements: Vec<Requirement>,
    /// Lanes of one group can follow each other, or stand side by side, without further steps. In the embedded lab, groups differ
    /// in settings that all namespaces of the host share (a setting of the whole kernel, the size of connection tracking's hash).
    /// In a real lab, they differ in settings that take effect at boot.
    pub group: usize,
}

/// Frames to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kind {
    /// Their lengths, with FCS.
    #[serde(with = "text_form::size")]
    pub size: FrameMix,
    /// The requested length, if it is too short for the tester's signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// IP version.
    #[serde(with = "text_form")]
    pub family: Family,
    /// Protocol above IP.
    #[serde(with = "text_form")]
    pub transport: Transport,
    /// Flows.
    pub flows: u32,
    /// In which order they are sent.
    #[serde(with = "text_form")]
    pub order: FlowOrder,
    /// Whether the UDP checksum is computed; the others always are.
    pub checksum: bool,
    /// One frame in this many carries a time stamp.
    #[serde(alias = "stamp-every")]
    pub stamp_every: u32,
}

impl Default for Kind {
    fn default() -> Self {
        Kind {
            size: FrameMix::single(64),
            asked: None,
            family: Family::V4,
            transport: Transport::Udp,
            flows: 2000,
            order: FlowOrder::Sequential,
            checksum: true,
            stamp_every: STAMP_EVERY,
        }
    }
}

/// Default of `stamp_every`: one frame in this many carries a time stamp.
pub const STAMP_EVERY: u32 = 64;

/// One thing that is measured: a variant at certain levels of the factors, with its traffic.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cell {
    /// A name that is unique in the campaign: `nft-stateful, rules 1000`.
    pub name: String,
    /// The variant's name in the plan; `tester-baseline` for a ceiling.
    pub variant: String,
    /// The level of each factor that applies, as an index into [`Factor::levels`], by the factor's index.
    pub levels: Vec<(usize, usize)>,
    /// The configuration it needs.
    pub lane: usize,
    /// The traffic it needs.
    pub kind: usize,
    /// The load.
    #[serde(with = "text_form::rate")]
    pub rate: Rate,
    /// The cell without a DUT whose frames and CPUs are the same: the tester's ceiling. `None` for a ceiling itself, and in a real
    /// lab.
    pub ceiling: Option<usize>,
    /// The cell that this one is compared with first: the baseline variant's at the same levels, or else the first level's.
    pub baseline: Option<usize>,
}

/// A ratio of interest: the rate of `of` divided by the rate of `than`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Numerator, a cell.
    pub of: usize,
    /// Denominator, a cell.
    pub than: usize,
    /// Why it is of interest.
    pub why: Interest,
    /// Whether the stopping rule waits for it.
    pub decides: bool,
}

/// Why a ratio is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interest {
    /// A variant with the baseline variant.
    Variants,
    /// A level with the first level of the factor of this index.
    Levels(usize),
    /// The expectation of this index.
    Expectation(usize),
    /// A variant with the tester alone.
    Ceiling,
}

/// An expectation of the author, which makes a plan a test as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// In words: `nft-stateful is slower than forwarding`.
    pub words: String,
    /// Why.
    pub because: String,
    /// The expected result.
    pub claim: Claim,
    /// The cells it is about, each with the one that it is compared with (none for rates). Empty where the quick form or this system
    /// has none of them.
    pub pairs: Vec<(usize, Option<usize>)>,
    /// Line of the plan.
    pub line: usize,
}

/// A claim about the ratio of two rates, or about a rate. Shares are of 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// Slower, by at least this share.
    Slower(f64),
    /// Faster, by at least this share.
    Faster(f64),
    /// Neither slower nor faster by more than this share.
    Within(f64),
    /// No difference may be proven.
    NoDifference,
    /// At least this number of frames/s.
    AtLeast(f64),
    /// At most this number of frames/s.
    AtMost(f64),
}

/// How trials are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trials {
    /// The measured window of one trial, in nanoseconds.
    #[serde(alias = "duration")]
    pub duration_ns: u64,
    /// Blocks at most.
    pub blocks: Option<u32>,
    /// Time for all trials at most, in nanoseconds.
    #[serde(alias = "budget")]
    pub budget_ns: Option<u64>,
    /// The strategy that chooses the order of trials, by its name.
    #[serde(deserialize_with = "known_order")]
    pub order: String,
    /// Seed of the order; drawn and recorded where the plan names none.
    pub seed: Option<u64>,
    /// When the device under test is rebooted.
    pub reboot: Reboot,
    /// Pause before each trial, in nanoseconds.
    #[serde(alias = "pause")]
    pub pause_ns: u64,
    /// Stop once the 95 % interval of every comparison that decides is narrower than this share (0.02 = 2 %).
    pub until: Option<f64>,
}

/// A strategy that this linerate has: with another, the trials of a record would be shown as those of the wrong one.
fn known_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let order = String::deserialize(deserializer)?;
    match ORDERS.iter().any(|(name, _)| *name == order) {
        true => Ok(order),
        false => Err(D::Error::custom(format!("this linerate has no strategy '{order}'"))),
    }
}

impl Default for Trials {
    fn default() -> Self {
        Trials {
            duration_ns: 250_000_000,
            blocks: None,
            budget_ns: None,
            order: "blocks".into(),
            seed: None,
            reboot: Reboot::Never,
            pause_ns: 0,
            until: None,
        }
    }
}

/// When the device under test is rebooted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reboot {
    /// Never.
    #[default]
    Never,
    /// When the next cell needs other settings that take effect at boot.
    WhenNeeded,
    /// Before each trial.
    EachTrial,
}

/// Data to collect with each trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Collect {
    /// Collectors, by their names.
    pub what: Vec<String>,
    /// Commands whose output is kept, run on the device under test after each trial.
    pub commands: Vec<String>,
    /// Commands whose output is kept, run on the device under test from before the load of each trial until after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<String>,
}

/// Something that a plan or lane cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requirement {
    /// A program on the path.
    Tool(String),
    /// A kind of virtual link that the kernel can make: `macvlan`, `vxlan`, `vlan`, `bridge`.
    Link(String),
    /// A kernel module, loaded or built in or loadable.
    Module(String),
    /// A kernel setting that exists.
    Sysctl(String),
    /// A version of the kernel, at least.
    Kernel(u32, u32),
    /// CPUs, at least.
    Cpus(u32),
    /// Memory in bytes, at least.
    Memory(u64),
    /// A file or device that exists.
    File(String),
}

/// Numbers the second cell of a name, and those after it.
pub(super) fn unique_names(cells: &mut [Cell]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        let number = seen.entry(cell.name.clone()).or_default();
        *number += 1;
        if *number > 1 {
            cell.name = format!("{}#{number}", cell.name);
        }
    }
}

/// The warning about [`Campaign::open_loops`].
pub const OPEN_LOOP: &str = "inline, the load waits for the CPU that sends; RPS and threaded NAPI hand frames over to another CPU, which the load does not wait for: the DUT is overrun, loses frames, and shows a lower rate than it can forward";

impl Campaign {
    /// The CPUs that a cell's device under test forwards on.
    pub fn cpus(&self, cell: usize) -> Option<&Cpus> {
        self.lanes[self.cells[cell].lane].settings.cpus.as_ref()
    }

    /// Variants whose frames another CPU takes over although the lab is inline, so that the load does not wait for the DUT.
    pub fn open_loops(&self) -> impl Iterator<Item = &str> {
        let inline = matches!(self.lab, Lab::Embedded { mode: Mode::Inline, .. });
        let hands_over =
            |end: &Interface| end.rps.is_some() || end.features.get(&Feature::ThreadedNapi) == Some(&true);
        let open = move |lane: &&Lane| {
            inline && (hands_over(&lane.settings.inside) || hands_over(&lane.settings.outside))
        };
        self.lanes.iter().filter(open).flat_map(|lane| lane.variants.iter().map(String::as_str))
    }

    /// Calls each cell by its variant and its frames alone: `nft-stateful IPv6 84 B`.
    pub fn name_by_frames(&mut self) {
        for cell in &mut self.cells {
            let Kind { size, family, .. } = &self.kinds[cell.kind];
            let unit = if size.pattern.len() == 1 { " B" } else { "" };
            cell.name = format!("{} {family} {size}{unit}", cell.variant);
        }
        unique_names(&mut self.cells);
    }

    /// The variant of a cell with the levels of those factors that its frames do not show: `nft-stateful, rules 1000`.
    pub fn variant_of(&self, cell: &Cell) -> String {
        let levels = cell.levels.iter().filter_map(|(factor, level)| {
            let factor = self.factors.get(*factor).filter(|factor| !factor.of_frames())?;
            Some(format!(", {} {}", factor.name, factor.levels.get(*level)?))
        });
        cell.variant.clone() + &levels.collect::<String>()
    }

    /// Whether a cell is the tester alone.
    pub fn is_ceiling(&self, cell: usize) -> bool {
        self.lanes[self.cells[cell].lane].settings.dut == super::settings::Dut::TesterBaseline
    }
}
