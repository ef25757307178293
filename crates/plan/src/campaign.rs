//! A plan, expanded: the lanes, kinds of traffic and cells that an executor needs, with the comparisons and expectations between cells.
//!
//! All references between the parts are indices into the lists of [`Campaign`].

mod kind;

pub use kind::{AddressRange, Format, Kind, Origins, STAMP_EVERY, StampedBy};

use super::settings::{CardSetting, Cpus, Interface, Settings};
use super::text_form;
use crate::backend::Backend;
use crate::rules::RuleSet;
use crate::units::Rate;
use linerate_measure::experiment::{Experiment, Levels, Measure};
use linerate_measure::record::{Mode, Planned, Slot};
use linerate_measure::strategy::{Design, DesignSlot};
use linerate_measure::trial::Timing;
use linerate_wire::{Extensions, Family};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A plan for one operating system, in its quick or full form, with everything inherited, overridden and multiplied out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Questions, and how trials are run: what the records keep for their readers.
    #[serde(flatten)]
    pub experiment: Experiment,
    /// Where it runs.
    pub lab: Lab,
    /// Distinct configurations of the device under test.
    pub lanes: Vec<Lane>,
    /// Distinct kinds of traffic.
    pub kinds: Vec<Kind>,
    /// The cells. Each block has one trial of each.
    pub cells: Vec<Cell>,
    /// Data to collect with each trial, beyond the counters.
    pub collect: Collect,
    /// Requirements of the whole plan. Lanes have their own.
    pub requirements: Vec<Requirement>,
    /// The plan as its author wrote it, in TOML; empty where a record does not have it.
    #[serde(skip)]
    pub source: String,
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
        port: Option<Backend>,
        /// Frames that the generator hands over at once; chosen by measurement where none are named.
        batch: Option<u32>,
        /// The operator's statement that the device under test is set up as its instructions say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        statement: Option<String>,
    },
    /// The hosts of a lab file.
    File {
        /// Path of the file, relative to the plan's folder.
        path: String,
        /// Whether its hosts are network namespaces of this machine, as far as the file was read.
        #[serde(skip)]
        local: bool,
    },
}

/// A configuration of the device under test. Cells that need the same share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Names of the variants that use it, for messages.
    pub variants: Vec<String>,
    pub settings: Settings,
    /// The variant that wants it for itself, although another's is the same.
    pub apart: Option<String>,
    /// Requirements of this lane. If one is missing, its cells are skipped with the reason.
    pub requirements: Vec<Requirement>,
    /// Lanes of one group can follow each other, or stand side by side, without further steps. In the embedded lab, groups differ
    /// in settings that all namespaces of the host share (a setting of the whole kernel, the size of connection tracking's hash).
    /// In a real lab, they differ in settings that take effect at boot.
    pub group: usize,
}

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
    /// Whether the campaign is whole without its variant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
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
    pub during: Vec<String>,
    /// How long the stacks of the kernel are sampled under the load of each cell, in nanoseconds; `None`: not at all.
    #[serde(rename = "profile-ns", alias = "profile")]
    pub profile_ns: Option<u64>,
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

/// Fields of a cell that its slot in a record has.
const OF_SLOTS: [&str; 5] = ["name", "variant", "levels", "ceiling", "baseline"];

impl Campaign {
    /// Takes over what an estimate needs to know of the lab.
    pub fn is_for(&mut self, lab: &crate::lab::Lab) {
        if let Lab::File { local, .. } = &mut self.lab {
            *local = lab.is_local();
        }
    }

    /// The CPUs that a cell's device under test forwards on.
    pub fn cpus(&self, cell: usize) -> Option<&Cpus> {
        self.lanes[self.cells[cell].lane].settings.cpus.as_ref()
    }

    /// Variants whose frames another CPU takes over although the lab is inline, so that the load does not wait for the DUT.
    pub fn open_loops(&self) -> impl Iterator<Item = &str> {
        let inline = matches!(
            self.lab,
            Lab::Embedded {
                mode: Mode::Inline,
                ..
            }
        );
        let hands_over = |end: &Interface| {
            end.rps.is_some()
                || end.is_on(CardSetting::ThreadedNapi) == Some(true)
                || end.set.contains_key(&CardSetting::NapiDeferHardIrqs)
        };
        let open = move |lane: &&Lane| {
            inline && (hands_over(&lane.settings.inside) || hands_over(&lane.settings.outside))
        };
        self.lanes
            .iter()
            .filter(open)
            .flat_map(|lane| lane.variants.iter().map(String::as_str))
    }

    /// The longest round-trip time of its paths between end hosts.
    pub fn longest_rtt_ns(&self) -> u64 {
        self.lanes
            .iter()
            .filter_map(|lane| lane.settings.path.as_ref())
            .map(|path| path.rtt_ns)
            .max()
            .unwrap_or(0)
    }

    /// The times of its trials.
    pub fn timing(&self) -> Timing {
        let trials = &self.experiment.trials;
        let run_ns = trials.duration_ns;
        let timing = match self.lab {
            Lab::File { .. } => Timing::of_hosts(run_ns),
            Lab::Embedded {
                mode: Mode::EndHosts,
                ..
            } => Timing::of_end_hosts(run_ns, self.longest_rtt_ns()),
            // The programs at both ends have no warm-up that is told apart.
            Lab::Embedded { .. } if self.kinds.iter().any(|kind| kind.http.is_some()) => Timing {
                warm_up_ns: 0,
                ..Timing::slice(run_ns)
            },
            Lab::Embedded { .. } => Timing::slice(run_ns),
        };
        if trials.measure != Measure::Rfc2544 {
            return timing;
        }
        // Every frame of a trial counts, so there are none before its window.
        let [least_drain_ns, settle_ns] =
            [trials.drain_ns, trials.settle_ns].map(Option::unwrap_or_default);
        let drain_ns = timing.drain_ns.max(least_drain_ns);
        Timing {
            warm_up_ns: 0,
            drain_ns,
            settle_ns,
            least_drain_ns,
            ..timing
        }
    }

    /// Calls each cell by its variant and its frames alone: `nft-stateful IPv6 84 B`.
    pub fn name_by_frames(&mut self) {
        for cell in &mut self.cells {
            let kernel = self.lanes[cell.lane].settings.kernel.as_ref();
            let kernel = kernel.map_or(String::new(), |name| format!(" on {name}"));
            let Kind {
                size,
                family,
                ipv6_share,
                extension_headers,
                burst,
                ..
            } = &self.kinds[cell.kind];
            if let Some(of) = self.kinds[cell.kind].exchanged() {
                cell.name = format!("{}{kernel} {of}", cell.variant);
                continue;
            }
            let unit = if size.pattern.len() == 1 { " B" } else { "" };
            let with = match (*ipv6_share > 0.0, extension_headers) {
                (true, _) => format!(" with {} % IPv6", (ipv6_share * 1e6).round() / 1e4),
                (_, Extensions::None) => String::new(),
                (_, headers) => format!(" with {headers}"),
            };
            let bursts = if *burst > 0 {
                format!(" in bursts of {burst}")
            } else {
                String::new()
            };
            cell.name = format!(
                "{}{kernel} {family}{with} {size}{unit}{bursts}",
                cell.variant
            );
        }
        unique_names(&mut self.cells);
    }

    /// The campaign without its experiment and without what slots have of its cells. [`Campaign::joined`] puts both back.
    pub fn rest(&self) -> Value {
        let mut all = json!(self);
        if let (Value::Object(all), Value::Object(experiment)) = (&mut all, json!(self.experiment))
        {
            all.retain(|key, _| !experiment.contains_key(key));
        }
        for cell in all["cells"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            cell.retain(|key, _| !OF_SLOTS.contains(&key.as_str()));
        }
        all
    }

    /// A campaign of its parts in a record.
    ///
    /// # Errors
    /// The record is of another version.
    pub fn joined(planned: &Planned, slots: &[Slot]) -> serde_json::Result<Campaign> {
        let mut rest = planned.plan.clone();
        if let (Value::Object(rest), Value::Object(experiment)) =
            (&mut rest, json!(planned.experiment))
        {
            rest.extend(experiment);
        }
        let cells = rest["cells"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut);
        for (cell, slot) in cells.zip(slots) {
            let Slot {
                name,
                plan_variant,
                levels,
                ceiling,
                baseline,
                ..
            } = slot;
            let of_slot = [
                json!(name),
                json!(plan_variant),
                json!(levels),
                json!(ceiling),
                json!(baseline),
            ];
            cell.extend(OF_SLOTS.map(String::from).into_iter().zip(of_slot));
        }
        let source = planned.source.clone().unwrap_or_default();
        Ok(Campaign {
            source,
            ..serde_json::from_value(rest)?
        })
    }

    /// The design of a strategy that runs all cells.
    pub fn design(&self, seed: u64) -> Design {
        let length = |cell: &Cell| self.kinds[cell.kind].size.average_len_fcs();
        let cells: Vec<(&str, &Levels, f64)> = self
            .cells
            .iter()
            .map(|cell| (cell.variant.as_str(), &cell.levels, length(cell)))
            .collect();
        let shortest = self.experiment.shortest(&cells);
        let slot = |(cell, shortest): (&Cell, bool)| DesignSlot {
            len_fcs: length(cell),
            shortest,
            direction: self.kinds[cell.kind].direction,
            group: self.lanes[cell.lane].group,
            event: self.lanes[cell.lane].settings.event.is_some(),
            ceiling: cell.ceiling,
            tester: self.lanes[cell.lane].settings.dut == super::settings::Dut::TesterBaseline,
            ..DesignSlot::default()
        };
        Design::new(
            &self.experiment,
            self.cells.iter().zip(shortest).map(slot).collect(),
            seed,
        )
    }

    /// Whether a cell is the tester alone.
    pub fn is_ceiling(&self, cell: usize) -> bool {
        self.lanes[self.cells[cell].lane].settings.dut == super::settings::Dut::TesterBaseline
    }

    /// The IP versions of a lane's traffic.
    pub fn families(&self, lane: usize) -> Vec<Family> {
        let of_lane = |family: &Family| {
            let has = |cell: &Cell| self.kinds[cell.kind].families().any(|of| of == *family);
            self.cells.iter().any(|cell| cell.lane == lane && has(cell))
        };
        [Family::V4, Family::V6]
            .into_iter()
            .filter(of_lane)
            .collect()
    }

    /// The rule set of a lane; see [`RuleSet::for_frames`].
    pub fn rule_set(&self, lane: usize, ends: Option<[&str; 2]>) -> Option<RuleSet> {
        let rules = self.lanes[lane].settings.rules.as_ref()?;
        Some(rules.for_frames(self.experiment.system, &self.families(lane), ends))
    }
}
