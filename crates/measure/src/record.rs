//! The records of a campaign, and the reader of all their versions. docs/records.md describes the files.

mod benchmarks;
mod bisected;
mod connecting;
mod end_hosts;
mod event;
mod finding;
mod host;
mod http;
pub mod imported;
mod on_path;
mod once;
mod read;
mod stability;
pub(crate) mod states;
mod telemetry;
mod trial_parts;
mod verdict;

pub use crate::trial::Direction;
pub use benchmarks::{
    AtLoad, BackToBack, Benchmarked, DelayVariation, Figures, ForwardingRate, Latency, LatencyRun,
    Maximum, Recovery, RecoveryRun, Reset, ResetRun, Tested, Throughput, VariationRun, Why,
};
pub use bisected::{Bisected, BisectionVerdict, Culprit, Element, SecondStep};
pub use connecting::{ByNginx, ConnectionTrial, Flood, FloodRow, Kept, KeptEvent, KeptRow};
pub use end_hosts::{Goodput, PathCounts, PathOf, TcpTrial};
pub use event::{DutEvent, EventClass, POWER_OFF_NS};
pub use finding::{
    After, Balance, Change, Explanation, Finding, NotExamined, Place, Proof, Stage, Strength,
    Verdict,
};
pub use host::HostFacts;
pub use http::{Http, HttpErrors, HttpOf, HttpRow, HttpTimes, HttpTrial, answer_times};
pub use imported::{Imported, ImportedSlot, ImportedTrial, PrintedThroughput};
pub use on_path::{Met, OnPath, PathEntry};
pub use read::{Lines, RecordError, read_document, read_lines};
pub(crate) use stability::UNSTABLE;
pub use stability::{LowLoad, Stability};
pub use states::{Connections, States};
pub use telemetry::{
    Events, ProgramTime, RulesPassed, SlotProfile, StackTimes, Staged, Step, Waits,
};
pub use trial_parts::{
    Clocks, Collected, CollectorCost, CpuHolder, CpuShare, DirectionCounts, RuleCount, SenderTime,
    Stamped,
};
pub use verdict::{
    Against, Compared, DirectionRow, Disagreement, Ended, Expected, JudgedPair, Limit, Ministat,
    NOTHING_PASSES, Point, Row, Searched, SearchedGoal, SearchedLoad, Series, Stopped, Summary,
    Unmeasured, Warning, longer_ns,
};

use crate::audit::{Audit, Loss};
use crate::counters::PortCounters;
use crate::experiment::{Benchmark, Experiment, Levels};
use crate::trial::{Rates, Sample, Shape, Timing};
use linerate_wire::{ConnectionSpec, Traffic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The version that this program writes. Readers accept every version up to it.
pub const VERSION: u32 = 2;

/// `campaign.json`: the request and the set-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Format version: 2.
    pub version: u32,
    /// Version of linerate that wrote it.
    pub linerate: String,
    /// Name of the campaign.
    pub name: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The user's request.
    pub asked: Asked,
    /// The role of each CPU.
    pub roles: Roles,
    /// The slots that alternate.
    #[serde(with = "once")]
    #[schemars(with = "Vec<Slot>")]
    pub slots: Vec<Slot>,
    /// Findings before the first trial, for people: the batch size, say.
    pub notes: Vec<String>,
    /// Hosts and images as they were: a campaign is resumed with the same alone.
    pub standing: BTreeMap<String, String>,
    /// Whose results these are, where linerate did not measure them itself.
    pub imported: Option<Box<Imported>>,
    /// The plan that it carries out, if it has one. Slots are its cells, by the same numbers.
    pub planned: Option<Box<Planned>>,
}

impl Campaign {
    /// Whether connections are opened, and not single frames sent.
    pub fn opens_connections(&self) -> bool {
        self.slots.iter().any(|slot| slot.connections().is_some())
    }

    /// Whether requests of HTTP are made, and not single frames sent.
    pub fn carries_http(&self) -> bool {
        self.slots.iter().any(|slot| slot.http.is_some())
    }

    /// The thing whose rate is measured: `frame`, `connection` or `request`.
    pub fn noun(&self) -> &'static str {
        match self.opens_connections() {
            _ if self.carries_http() => "request",
            true => "connection",
            false => "frame",
        }
    }

    /// The variants with a DUT, in the order of the plan.
    pub fn variants(&self) -> Vec<String> {
        let mut variants: Vec<String> = Vec::new();
        for slot in self.slots.iter().filter(|slot| !slot.is_calibration()) {
            if !variants.contains(&slot.plan_variant) {
                variants.push(slot.plan_variant.clone());
            }
        }
        variants
    }

    /// The variants of which no cell could be measured, although the campaign is not whole without them, each with the reasons.
    pub fn missing(&self) -> Vec<(String, &[String])> {
        let Some(planned) = &self.planned else {
            return Vec::new();
        };
        let lacks = |slot: &Slot| {
            planned
                .skipped
                .iter()
                .find(|s| s.cell == slot.id && !s.optional)
        };
        let of = |variant: String| {
            let slots = || {
                self.slots
                    .iter()
                    .filter(|slot| !slot.is_calibration() && slot.plan_variant == variant)
            };
            let first = slots()
                .all(|slot| lacks(slot).is_some())
                .then(|| slots().find_map(lacks))
                .flatten()?;
            Some((variant, &first.reasons[..]))
        };
        self.variants().into_iter().filter_map(of).collect()
    }

    /// The name of a slot.
    pub fn name_of(&self, slot: usize) -> &str {
        self.slots
            .get(slot)
            .map_or("unknown slot", |slot| &slot.name)
    }

    /// The name of a slot as pages print it.
    pub fn shortened(&self, name: &str) -> String {
        let planned = self.planned.as_ref();
        planned.map_or_else(|| name.into(), |planned| planned.shortened(name))
    }
}

impl Planned {
    /// A name without factors that have one level only in this form of the plan.
    pub fn shortened(&self, name: &str) -> String {
        let factors = self.experiment.factors.iter();
        let factors = factors.filter(|f| f.levels.len() == 1);
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
}

/// The plan of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The plan's file, as it was named; none where `linerate bench` made it of its arguments.
    pub file: Option<String>,
    /// The plan as its author wrote it, in TOML, with the arguments that were laid over it; records of version 1 have none.
    pub source: Option<String>,
    /// Questions of the plan.
    pub experiment: Experiment,
    /// The rest of the expanded plan, for `linerate run --resume`. Slots have the names and levels of its cells.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub plan: serde_json::Value,
    /// Cells that are not measured, because something is lacking.
    pub skipped: Vec<Skipped>,
}

/// A cell that is not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Number of the cell.
    pub cell: usize,
    /// Missing requirements, or changes that need consent.
    pub reasons: Vec<String>,
    /// Whether the campaign is whole without its variant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl Planned {
    /// Why a cell is not measured; empty where it is.
    pub fn lacking(&self, cell: usize) -> &[String] {
        self.skipped
            .iter()
            .find(|s| s.cell == cell)
            .map_or(&[], |s| &s.reasons)
    }
}

/// The user's request, with defaults filled in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// The command line.
    pub command: Vec<String>,
    /// How the lab's CPUs are laid out.
    pub mode: Mode,
    /// Where trials ran.
    pub lab: LabKind,
    /// Whether its namespaces were those of guests, whose kernels the plan names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<Guests>,
    /// The generator's backend: `xdp`, `af-packet`, `pkt-gen`.
    pub generator: String,
    /// The receiver's backend.
    pub receiver: String,
    /// Flows.
    pub flows: u64,
    /// Order of the flows.
    pub order: String,
    /// The rate asked for, as text.
    pub rate: String,
    /// Times of one trial.
    pub timing: Timing,
    /// Frames handed over at once by the generator.
    pub batch: u32,
    /// Seed of the order of trials and of random flows.
    pub seed: u64,
}

/// Who runs the instructions of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guests {
    /// The machine's CPUs.
    Kvm,
    /// QEMU: no figure is of a real machine.
    Emulated,
}

/// How generation, forwarding and reception share the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Closed loop: all on the generator's CPU, so that the DUT sets the offered load. Cost per frame, precisely.
    #[default]
    Inline,
    /// Open loop: the DUT has CPUs of its own. Loss, overload, latency.
    Threaded,
    /// Open loop: generator, DUT and receiver are hosts of their own.
    Hosts,
    /// The hosts at both ends of a path are the DUT: TCP by iperf3 from one to the other.
    #[serde(rename = "end-hosts")]
    EndHosts,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Where the trials of a campaign ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabKind {
    /// The embedded lab of this machine.
    #[default]
    Namespaces,
    /// The hosts of a lab file.
    Hosts,
    /// In memory: no figure is of a machine.
    Simulated,
    /// Elsewhere, and not by linerate.
    Imported,
}

impl fmt::Display for LabKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// CPUs by role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Roles {
    /// Generator threads.
    pub generator: Vec<u32>,
    /// Forwarding.
    pub dut: Vec<u32>,
    /// Reception.
    pub receiver: Vec<u32>,
    /// The thread that takes the samples.
    pub control: Vec<u32>,
}

impl Roles {
    /// The CPUs that a load occupies, those of several roles as often.
    pub fn of_load(&self) -> Vec<u32> {
        [&self.generator[..], &self.dut, &self.receiver].concat()
    }
}

/// One thing that is measured: a variant with its traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// Index in [`Campaign::slots`].
    pub id: usize,
    /// A name that is unique in the campaign: `nft-stateful, rules 1000`, `forwarding IPv4 64 B`.
    pub name: String,
    /// Which way its frames go through the DUT.
    pub direction: Direction,
    /// Variant: `tester-baseline` is the tester without a DUT.
    pub variant: String,
    /// `IPv4` or `IPv6`. This field and the next ones that frames have are absent where `traffic` says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// `UDP`, `TCP` or `ICMP echo`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub transport: String,
    /// Frame length as named by the user: `64`, `IMIX`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub frame: String,
    /// Repeating pattern of lengths in bytes, with FCS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths_fcs: Vec<u16>,
    /// Whether the transport checksum is computed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub l4_checksum: bool,
    /// Whether frames carry the signature.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Frames/s asked for, in each direction; `None` for the maximum.
    pub asked_fps: Option<f64>,
    /// The slot without a DUT whose frames are the same: the tester's ceiling.
    pub ceiling: Option<usize>,
    /// The slot that this one is compared with.
    pub baseline: Option<usize>,
    /// Flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// The generator's CPUs, if they differ from the campaign's: inline, as many forward.
    pub cpus: Option<Vec<u32>>,
    /// Whether there is a DUT, but no rate of the tester without it, as in a lab of hosts.
    pub no_ceiling: bool,
    /// The variant by its name in the plan, without levels; `tester-baseline` without a DUT. Imported slots have none.
    pub plan_variant: String,
    /// The levels of the plan's factors.
    pub levels: Levels,
    /// Slots of one group stand side by side; a block goes from group to group.
    pub group: usize,
    /// Order of its flows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub order: String,
    /// The rate asked for, as text.
    pub rate: String,
    /// All of its frames, without the Ethernet addresses that the testbed fills in: headers, lengths, flows and their order. Absent
    /// where TCP is measured, and in imported and older slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub traffic: Option<Box<Traffic>>,
    /// Whether its DUT has a known answer, and may drop every frame.
    pub known_answer: bool,
    /// Whether rules of its rule file have counters; `None` without a rule file.
    pub rule_counters: Option<bool>,
    /// Class by RFC 6201 of the event that happens to the DUT in the trials that want one; `None`: its plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventClass>,
    /// The path between end hosts, where TCP is measured: then a frame is a full segment of TCP.
    pub path: Option<PathOf>,
    /// The requests of HTTP that are made, instead of single frames sent: then a frame is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpOf>,
    /// Where an imported slot comes from.
    pub imported: Option<Box<ImportedSlot>>,
}

/// The words of a note about hosts that are no machines of their own.
pub const SHARED: &str = "network namespaces of this machine";

impl Slot {
    /// Average frame length in bytes with FCS.
    pub fn average_len_fcs(&self) -> f64 {
        self.lengths_fcs.iter().map(|l| f64::from(*l)).sum::<f64>()
            / self.lengths_fcs.len().max(1) as f64
    }

    /// The connections that it opens, instead of single frames.
    pub fn connections(&self) -> Option<&ConnectionSpec> {
        self.traffic.as_ref()?.connections.as_ref()
    }

    /// Whether its load did not wait for the DUT, so that the time between two frames is not the cost of one: at a rate that was asked
    /// for, and with connections in threaded mode.
    pub fn is_paced(&self, mode: Mode) -> bool {
        self.asked_fps.is_some() || (mode == Mode::Threaded && self.connections().is_some())
    }

    /// Whether this is the tester alone. Imported slots never are.
    pub fn is_calibration(&self) -> bool {
        self.ceiling.is_none() && !self.no_ceiling && self.imported.is_none()
    }
}

/// One line of `trials.jsonl`: a trial with everything that was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// Format version: 2.
    pub version: u32,
    /// Number of the trial in the campaign, from 0.
    pub trial: u64,
    /// Block it belongs to.
    pub block: u32,
    /// Slot, an index into [`Campaign::slots`].
    pub slot: usize,
    /// Beginning of the trial, in nanoseconds since the campaign's first: the time that the strategy used. The time between a
    /// stop and a resume is not counted.
    pub began_ns: u64,
    /// How long it took altogether: set-up, reboots and drain are part of it. 0 in older records.
    pub took_ns: u64,
    /// How long it waited for its turn, while another linerate measured on the same CPUs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ns: u64,
    /// How often the DUT was rebooted for it.
    pub reboots: u32,
    /// Frames/s asked for, in each direction; `None`: as fast as possible. With block, slot and `timing.run_ns` it is the strategy's request.
    pub asked_fps: Option<f64>,
    /// Times of this trial.
    pub timing: Timing,
    /// How its load changed over its time.
    #[serde(default, skip_serializing_if = "Shape::is_constant")]
    pub shape: Shape,
    /// The test that it belongs to, where the campaign carries out several; of a search, only `stability`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<Benchmark>,
    /// The event that happened to the DUT under the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<DutEvent>,
    /// Frame rates in the window; `None` where it was too short.
    pub rates: Option<Rates>,
    /// 1 - received once / sent, over the whole trial.
    pub loss_ratio: f64,
    /// The generator's counters.
    pub generator: PortCounters,
    /// The receiver's counters.
    pub receiver: PortCounters,
    /// Where frames were lost.
    pub losses: Vec<Loss>,
    /// All of the DUT's counters that changed.
    pub dut: BTreeMap<String, u64>,
    /// Shares of the load's time of the DUT's CPUs: in a lab of hosts those of the DUT, else those of this machine, which are the
    /// tester's as well.
    pub cpus: Vec<CpuShare>,
    /// The threads that sent the frames, in the embedded lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<SenderTime>,
    /// Shares of the CPUs of the hosts that send and count, by host, where they have linerate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tester_cpus: BTreeMap<String, Vec<CpuShare>>,
    /// The audit.
    pub audit: Audit,
    /// Raw samples of the window.
    pub samples: Vec<Sample>,
    /// Raw samples of the load before it, which are in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warm_up: Vec<Sample>,
    /// The results of each direction, if frames went in both; all other fields cover both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<DirectionCounts>,
    /// The connections that the DUT tracked when the trial was over, if it keeps states and can be asked.
    pub connections: Option<Connections>,
    /// Output of a plan's commands, and reasons why a collector found nothing.
    pub collected: Vec<Collected>,
    /// Cost of each collector.
    pub collectors: Vec<CollectorCost>,
    /// Counters of the rules of a rule file in this trial, without rules that matched no frame.
    pub rules: Vec<RuleCount>,
    /// Between the first generator's beginning and the last one's, in nanoseconds, where several hosts send; as uncertain as the comparison
    /// of their clocks.
    pub skew_ns: Option<u64>,
    /// How the ages of stamped frames were found, where the agents of hosts stamp and receive.
    pub clocks: Option<Clocks>,
    /// Whose stamps the latencies are of, where a plan asks for those of cards.
    pub stamped: Option<Stamped>,
    /// Behaviour of TCP and of the path between end hosts.
    pub tcp: Option<TcpTrial>,
    /// Connections that were opened, where the plan wants connections: then a frame in all other fields is a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Box<ConnectionTrial>>,
    /// HTTP, where the plan wants it: then a frame in all other fields is a request, sent when the client made it and received when it had its
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpTrial>>,
    /// Where an imported figure comes from.
    pub imported: Option<Box<ImportedTrial>>,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl TrialRecord {
    /// Directions that its frames took.
    pub fn ways(&self) -> usize {
        self.directions.len().max(1)
    }

    /// When it was over, nanoseconds since the campaign's first trial began.
    pub fn ended_ns(&self) -> u64 {
        self.began_ns + self.took_ns.max(self.timing.load_ns())
    }
}

/// One line of `facts.jsonl`: how a slot's DUT was configured before its first trial, in its own words. Readers parse them, so that
/// a later linerate can find more in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotFacts {
    /// Format version: 2.
    pub version: u32,
    /// Slot, an index into [`Campaign::slots`].
    pub slot: usize,
    /// The DUT's kernel: `linux`, `freebsd`, `openbsd`, `netbsd`.
    pub kernel: String,
    /// Interfaces of the DUT; in a campaign, those towards generator and receiver.
    pub interfaces: Vec<String>,
    /// The answers to the questions that were put to it.
    pub answers: Vec<Collected>,
}
