//! From trees to the types of [`super::settings`] and [`super::campaign`]. The keys of a plan are the names or aliases of fields,
//! so that serde does it; absent keys have their defaults.

use super::campaign::{Collect, Format, Kind, Lab, Requirement};
use super::settings::Settings;
use super::value::{Entry, Lists, Tree};
use crate::rules::RuleSet;
use crate::units::Rate;
use linerate_measure::experiment::{Benchmark, Measure, Method, Trials};
use linerate_measure::record::Mode;
use linerate_wire::{Exchange, Family, FrameMix, FrameSpec, MacAddr, Transport};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

/// A type from a table of its keys. If a key is broken, which is already reported, the default.
fn typed<T: DeserializeOwned + Default>(table: Map<String, Json>) -> T {
    serde_json::from_value(Json::Object(table)).unwrap_or_default()
}

/// The settings of a variant, from the tree of everything that applies to it. The checks read its rule file.
pub(super) fn settings(tree: &Tree) -> Settings {
    let mut table = tree.json();
    table.remove("rules");
    if let Some(both) = tree.table("interface") {
        table.insert("inside".into(), interface(both, "in"));
        table.insert("outside".into(), interface(both, "out"));
    }
    let rules = tree
        .table("rules")
        .filter(|t| t.get("file").is_none())
        .and_then(rules);
    Settings {
        rules,
        ..typed(table)
    }
}

/// Settings of one interface: those of both, then its own.
fn interface(both: &Tree, end: &str) -> Json {
    let mut all = both.clone();
    all.entries.retain(|e| e.key != "in" && e.key != "out");
    if let Some(own) = both.table(end) {
        all.overlay(own, Lists::Extend);
    }
    Json::Object(all.json())
}

fn rules(tree: &Tree) -> Option<RuleSet> {
    Some(RuleSet {
        rules_before: tree.read("before").unwrap_or(0),
        table: tree.read("table"),
        states: tree.read("states"),
        hash_sized: tree.text("hash") != Some("default"),
        flow_table: tree.read("flow-table").unwrap_or(false),
        optimize: tree.read("optimize").unwrap_or(true),
        ..RuleSet::new(tree.read("tool")?, tree.read("filter")?)
    })
}

/// The frames and the load of a cell.
pub(super) fn traffic(tree: &Tree) -> (Kind, Rate) {
    let mut kind: Kind = typed(tree.json());
    kind.checksum &= kind.format != Format::Rfc2544;
    kind.checksum |= kind.family == Family::V6 || kind.transport != Transport::Udp;
    if kind.http.is_some() {
        return (http(tree, kind), rate_of(tree));
    }
    if kind.open.is_some() || kind.served_by.is_nginx() {
        kind.connections.get_or_insert(Exchange::Request);
    }
    if let Some(exchange) = kind.connections {
        kind.transport = if exchange.is_tcp() {
            Transport::Tcp
        } else {
            Transport::Udp
        };
        kind.checksum = true;
        return (kind, rate_of(tree));
    }
    let versions = kind
        .families()
        .map(|family| least_length(family, kind.transport))
        .max();
    let least = versions.unwrap_or(0) + kind.extension_headers.len() as u16;
    if kind.size.min_len_fcs() < least {
        let long = long_enough(&kind.size, least);
        kind.asked = Some(std::mem::replace(&mut kind.size, long).name);
    }
    (kind, rate_of(tree))
}

/// Bytes of an object of HTTP, and connections at the same time, where the plan does not say.
const OBJECT: u32 = 1024;
/// See [`OBJECT`].
const HTTP_CONNECTIONS: u32 = 64;

/// Requests of HTTP. Their segments are the kernel's, at most full ones.
fn http(tree: &Tree, kind: Kind) -> Kind {
    Kind {
        object: tree.read("object").unwrap_or(OBJECT),
        flows: tree.read("flows").unwrap_or(HTTP_CONNECTIONS),
        transport: Transport::Tcp,
        checksum: true,
        ..kind
    }
}

fn rate_of(tree: &Tree) -> Rate {
    tree.text("rate")
        .and_then(|rate| rate.parse().ok())
        .unwrap_or(Rate::Max)
}

/// A full segment's frame with FCS, between end hosts.
pub(super) const SEGMENT_LEN_FCS: u16 = 1518;

/// The segments of TCP between end hosts.
pub(super) fn segments(tree: &Tree) -> Kind {
    let size = FrameMix::single(SEGMENT_LEN_FCS);
    let flows = tree.read("flows").unwrap_or(1);
    Kind {
        size,
        asked: None,
        transport: Transport::Tcp,
        checksum: true,
        flows,
        ..Kind::default()
    }
}

/// The shortest frame that carries a signature, with FCS.
pub(super) fn least_length(family: Family, transport: Transport) -> u16 {
    let nowhere = MacAddr([2, 0, 0, 0, 0, 0]);
    FrameSpec::new(nowhere, nowhere, family, transport).min_len_fcs()
}

/// Frames that are too short for a signature are made as long as one needs, and named so.
fn long_enough(size: &FrameMix, least: u16) -> FrameMix {
    match size.pattern.len() {
        1 => FrameMix::single(least),
        _ => {
            let pattern = size.pattern.iter().map(|l| (*l).max(least)).collect();
            FrameMix {
                name: format!("{} (least {least})", size.name),
                pattern,
            }
        }
    }
}

/// Where a plan runs.
pub(super) fn lab(tree: &Tree) -> Lab {
    let empty = Tree::default();
    let lab = tree.table("lab").unwrap_or(&empty);
    match lab.text("file") {
        Some(path) => Lab::File {
            path: path.into(),
            local: false,
        },
        None => Lab::Embedded {
            mode: lab.read("mode").unwrap_or(Mode::Inline),
            generator_cpus: lab.read("generator-cpus"),
            dut_cpus: lab.read("dut-cpus"),
            port: lab.read("port"),
            batch: lab.read("batch"),
            statement: lab.read("statement"),
        },
    }
}

/// The speed that 100 % of line rate is.
pub(super) fn link_speed(tree: &Tree) -> Option<f64> {
    tree.table("lab")?.read("link-speed")
}

/// RFC 2544's own tests.
const OWN_TESTS: [Benchmark; 5] = [
    Benchmark::Throughput,
    Benchmark::Latency,
    Benchmark::FrameLoss,
    Benchmark::BackToBack,
    Benchmark::Recovery,
];
/// RFC 2544, section 23: 2 s each after a routing update and after learning frames, 2 s for the last frames, and 5 s of rest.
const PAUSE_NS: u64 = 4_000_000_000;
const DRAIN_NS: u64 = 2_000_000_000;
const SETTLE_NS: u64 = 5_000_000_000;

/// How trials are run, in the full or the quick form.
pub(super) fn trials(tree: &Tree, quick: bool) -> Trials {
    let mut trials = tree.table("trials").cloned().unwrap_or_default();
    let form = tree.table("quick").filter(|_| quick);
    form.into_iter()
        .for_each(|form| trials.overlay(form, Lists::Replace));
    let mut table = trials.json();
    let paused = table.contains_key("pause");
    let until = tree
        .table("compare")
        .and_then(|compare| compare.read::<f64>("until"));
    table.entry("until").or_insert(json!(until));
    let mut trials: Trials = typed(table);
    if trials.measure == Measure::Search && trials.goals.is_empty() {
        // A binary search is for one goal.
        let usual: &[_] = if trials.method == Method::Bisection {
            &["ndr"]
        } else {
            &["ndr", "pdr"]
        };
        trials.goals = usual
            .iter()
            .filter_map(|goal| super::goal::parse(goal).ok())
            .collect();
    }
    trials.stability = matches!(trials.measure, Measure::Search | Measure::Rfc2544);
    if trials.measure == Measure::Rfc2544 {
        if !paused {
            trials.pause_ns = PAUSE_NS;
        }
        if trials.tests.is_empty() {
            trials.tests = usual_tests(tree);
        }
        trials.tests.sort_unstable();
        trials.drain_ns.get_or_insert(DRAIN_NS);
        trials.settle_ns.get_or_insert(SETTLE_NS);
    }
    trials
}

/// RFC 2544's own tests. Bursts are another kind of frames than those of back-to-back, and an event is there to be tested.
fn usual_tests(tree: &Tree) -> Vec<Benchmark> {
    let bursts = |entry: &Entry| {
        let sets = entry
            .node
            .table()
            .map(|factor| factor.words::<String>("sets"))
            .unwrap_or_default();
        sets.iter().any(|path| path == "traffic.burst")
    };
    let event = |entry: &Entry| {
        entry
            .node
            .table()
            .is_some_and(|variant| variant.get("event").is_some())
    };
    let mut tests = OWN_TESTS.to_vec();
    if tree.within("factors").iter().any(bursts) {
        tests.retain(|test| *test != Benchmark::BackToBack);
    }
    if tree.within("variants").iter().any(event) {
        tests.push(Benchmark::Reset);
    }
    tests
}

/// The `collect` table, or its default.
pub(super) fn collect(tree: &Tree) -> Collect {
    match tree.table("collect") {
        Some(collect) => typed(collect.json()),
        None => Collect {
            what: vec!["cpus".into()],
            ..Collect::default()
        },
    }
}

/// The requirements of a table `requires`.
pub(super) fn requirements(tree: Option<&Tree>) -> Vec<Requirement> {
    let Some(tree) = tree else { return Vec::new() };
    let named = |key: &str, of: fn(String) -> Requirement| tree.words(key).into_iter().map(of);
    let mut all: Vec<Requirement> = named("tools", Requirement::Tool).collect();
    all.extend(named("modules", Requirement::Module));
    all.extend(named("sysctls", Requirement::Sysctl));
    all.extend(named("files", Requirement::File));
    all.extend(
        tree.read("kernel")
            .map(|(major, minor)| Requirement::Kernel(major, minor)),
    );
    all.extend(tree.read("cpus").map(Requirement::Cpus));
    all.extend(tree.read("memory").map(Requirement::Memory));
    all
}
