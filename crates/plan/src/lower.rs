//! From trees to the types of [`super::settings`] and [`super::campaign`]: nothing can go wrong any more, what is absent has its default.

use super::campaign::{Collect, Kind, Lab, Requirement, STAMP_EVERY, Trials};
use super::names::Named;
use super::settings::Mode;
use super::settings::{Command, Feature, File, Image, Interface, Neighbour, Route, Settings};
use super::value::{Lists, Tree, Value};
use crate::rules::RuleSet;
use crate::units::Rate;
use linerate_wire::{Family, FlowOrder, FrameMix, FrameSpec, MacAddr, Transport};
use std::collections::BTreeMap;

/// What a variant sets, from the tree of everything that applies to it.
pub(super) fn settings(tree: &Tree) -> Settings {
    let dut = match tree.get("dut").map(|n| &n.value) {
        Some(Value::Dut(dut)) => *dut,
        _ => Default::default(),
    };
    let cpus = match tree.get("cpus").map(|n| &n.value) {
        Some(Value::CpuCount(cpus)) => Some(*cpus),
        _ => None,
    };
    let routes = tree.table("routes");
    let neighbours = tree.table("neighbours");
    Settings {
        dut,
        cpus,
        sysctls: texts(tree.table("sysctls")),
        boot: texts(tree.table("boot")),
        image: tree.table("image").and_then(image),
        inside: interface(tree.table("interface"), "in"),
        outside: interface(tree.table("interface"), "out"),
        route_count: routes.and_then(|t| t.number_u32("count")),
        routes: routes.map(explicit_routes).unwrap_or_default(),
        neighbour_count: neighbours.and_then(|t| t.number_u32("count")),
        neighbours: neighbours.map(explicit_neighbours).unwrap_or_default(),
        rules: tree.table("rules").filter(|t| t.get("file").is_none()).and_then(rules),
        // Its text is read, and its names are known, where the checks are.
        rule_file: None,
        states: tree.choice("states").unwrap_or_default(),
        modules: tree.texts("modules"),
        files: tree.tables("files").map(file).collect(),
        commands: tree.tables("commands").map(command).collect(),
    }
}

fn texts(tree: Option<&Tree>) -> BTreeMap<String, String> {
    let entries = tree.map(|t| t.entries.as_slice()).unwrap_or_default();
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    entries.iter().map(|e| (e.key.clone(), text(&e.node.value))).collect()
}

fn interface(tree: Option<&Tree>, end: &str) -> Interface {
    let mut all = tree.cloned().unwrap_or_default();
    let own = all.table(end).cloned().unwrap_or_default();
    all.entries.retain(|e| e.key != "in" && e.key != "out");
    all.overlay(&own, Lists::Extend);
    let flags = all.table("private-flags").map(|t| t.entries.as_slice()).unwrap_or_default();
    let flag = |value: &Value| *value == Value::Flag(true);
    Interface {
        mtu: all.number_u32("mtu"),
        features: Feature::all().filter_map(|f| Some((f, all.flag(f.key())?))).collect(),
        private_flags: flags.iter().map(|e| (e.key.clone(), flag(&e.node.value))).collect(),
        queues: all.number_u32("queues"),
        rx_ring: all.number_u32("rx-ring"),
        tx_ring: all.number_u32("tx-ring"),
        rx_wait_ns: all.number("rx-wait"),
        rx_wait_frames: all.number_u32("rx-wait-frames"),
        rps: all.cpu_list("rps"),
        rfs: all.number_u32("rfs"),
        xps: all.cpu_list("xps"),
        irq: all.cpu_list("irq"),
    }
}

fn explicit_routes(tree: &Tree) -> Vec<Route> {
    let route = |t: &Tree| Route {
        to: t.text("to").unwrap_or_default().into(),
        via: t.text("via").map(str::to_string),
        end: t.choice("end").unwrap_or_default(),
    };
    tree.tables("explicit").map(route).collect()
}

fn explicit_neighbours(tree: &Tree) -> Vec<Neighbour> {
    let neighbour = |t: &Tree| Neighbour {
        address: t.text("address").unwrap_or_default().into(),
        mac: t.text("mac").unwrap_or_default().into(),
        end: t.choice("end").unwrap_or_default(),
    };
    tree.tables("explicit").map(neighbour).collect()
}

fn rules(tree: &Tree) -> Option<RuleSet> {
    Some(RuleSet {
        rules_before: tree.number_u32("before").unwrap_or(0),
        table: tree.number_u32("table"),
        states: tree.number("states"),
        hash_sized: tree.text("hash") != Some("default"),
        optimize: tree.flag("optimize").unwrap_or(true),
        ..RuleSet::new(tree.choice("tool")?, tree.choice("filter")?)
    })
}

fn file(tree: &Tree) -> File {
    let text = |key: &str| tree.text(key).unwrap_or_default().to_string();
    File { path: text("path"), text: text("text") }
}

fn image(tree: &Tree) -> Option<Image> {
    let text = |key: &str| tree.text(key).map(str::to_string);
    Some(Image { file: text("file")?, install: text("install")?, undo: text("undo")? })
}

fn command(tree: &Tree) -> Command {
    Command {
        run: tree.text("run").unwrap_or_default().into(),
        undo: tree.text("undo").filter(|_| tree.flag("undone-by-reboot") != Some(true)).map(str::to_string),
        within_ns: tree.number("within"),
    }
}

/// The frames and the load of a cell.
pub(super) fn traffic(tree: &Tree) -> (Kind, Rate) {
    let value = |key: &str| tree.get(key).map(|n| &n.value);
    let size = match value("size") {
        Some(Value::Size(mix)) => mix.clone(),
        _ => FrameMix::single(64),
    };
    let order = match value("order") {
        Some(Value::FlowOrder(order)) => *order,
        _ => FlowOrder::Sequential,
    };
    let rate = match value("rate") {
        Some(Value::Rate(rate)) => *rate,
        _ => Rate::Max,
    };
    let family = if tree.text("family") == Some("IPv6") { Family::V6 } else { Family::V4 };
    let transport = match tree.text("transport") {
        Some("TCP") => Transport::Tcp,
        Some("ICMP") => Transport::IcmpEcho,
        _ => Transport::Udp,
    };
    let least = least_length(family, transport);
    let kind = Kind {
        asked: (size.min_len_fcs() < least).then(|| size.name.clone()),
        size: long_enough(size, least),
        family,
        transport,
        flows: tree.number_u32("flows").unwrap_or(2000),
        order,
        checksum: tree.flag("checksum").unwrap_or(true)
            || family == Family::V6
            || transport != Transport::Udp,
        stamp_every: tree.number_u32("stamp-every").unwrap_or(STAMP_EVERY),
    };
    (kind, rate)
}

/// The shortest frame that carries a signature, with FCS.
pub(super) fn least_length(family: Family, transport: Transport) -> u16 {
    let nowhere = MacAddr([2, 0, 0, 0, 0, 0]);
    FrameSpec::new(nowhere, nowhere, family, transport).min_len_fcs()
}

/// Frames that are too short for a signature are made as long as one needs, and named so.
fn long_enough(size: FrameMix, least: u16) -> FrameMix {
    if size.min_len_fcs() >= least {
        return size;
    }
    match size.pattern.len() {
        1 => FrameMix::single(least),
        _ => {
            let pattern = size.pattern.iter().map(|l| (*l).max(least)).collect();
            FrameMix { name: format!("{} (least {least})", size.name), pattern }
        }
    }
}

/// Where a plan runs.
pub(super) fn lab(tree: &Tree) -> Lab {
    let empty = Tree::default();
    let lab = tree.table("lab").unwrap_or(&empty);
    match lab.text("file") {
        Some(path) => Lab::File { path: path.into() },
        None => Lab::Embedded {
            mode: lab.choice("mode").unwrap_or(Mode::Inline),
            generator_cpus: lab.cpu_list("generator-cpus"),
            dut_cpus: lab.cpu_list("dut-cpus"),
            port: lab.text("port").and_then(|port| port.parse().ok()),
            batch: lab.number_u32("batch"),
        },
    }
}

/// The speed that 100 % of line rate is.
pub(super) fn link_speed(tree: &Tree) -> Option<f64> {
    match tree.table("lab")?.get("link-speed")?.value {
        Value::Speed(speed) => Some(speed),
        _ => None,
    }
}

/// How trials are run, in the full or the quick form.
pub(super) fn trials(tree: &Tree, quick: bool) -> Trials {
    let empty = Tree::default();
    let mut trials = tree.table("trials").cloned().unwrap_or_default();
    let mut until = tree.table("compare").and_then(|c| c.share("until"));
    if quick {
        let over = tree.table("quick").unwrap_or(&empty);
        trials.overlay(over, Lists::Replace);
        until = over.share("until").or(until);
    }
    Trials {
        duration_ns: trials.number("duration").unwrap_or(250_000_000),
        blocks: trials.number_u32("blocks"),
        budget_ns: trials.number("budget"),
        order: trials.text("order").unwrap_or("blocks").into(),
        seed: trials.number("seed"),
        reboot: trials.choice("reboot").unwrap_or_default(),
        pause_ns: trials.number("pause").unwrap_or(0),
        until,
    }
}

/// What is collected.
pub(super) fn collect(tree: &Tree) -> Collect {
    let Some(collect) = tree.table("collect") else {
        return Collect { what: vec!["cpus".into()], ..Collect::default() };
    };
    Collect {
        what: collect.texts("what"),
        commands: collect.texts("commands"),
        during: collect.texts("during"),
    }
}

/// What a table `requires` names.
pub(super) fn requirements(tree: Option<&Tree>) -> Vec<Requirement> {
    let Some(tree) = tree else { return Vec::new() };
    let texts =
        |key: &str, of: fn(String) -> Requirement| tree.texts(key).into_iter().map(of).collect::<Vec<_>>();
    let mut all = texts("tools", Requirement::Tool);
    all.extend(texts("modules", Requirement::Module));
    all.extend(texts("sysctls", Requirement::Sysctl));
    all.extend(texts("files", Requirement::File));
    if let Some(Value::Version((major, minor))) = tree.get("kernel").map(|n| &n.value) {
        all.push(Requirement::Kernel(*major, *minor));
    }
    all.extend(tree.number_u32("cpus").map(Requirement::Cpus));
    all.extend(tree.number("memory").map(Requirement::Memory));
    all
}
