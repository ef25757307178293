//! Faults that remain in a plan of correct form: values that contradict each other, cannot be reached, or would never end.

mod settings;

use super::backend::Backend;
use super::campaign::{Campaign, Kind, Origins};
use super::diagnostic::{Diagnostic, Problems, Span};
use super::draft::Draft;
use super::expand::{MOST_CELLS, MOST_TRIALS};
use super::rules;
use super::settings::{Cpus, Dut, Settings};
use super::timetable::block_ns;
use super::value::Tree;
use super::{forms, lower};
use crate::units::{MOST_PER_THREAD, Rate};
use linerate_measure::experiment::{Benchmark, Measure, Method, System};
use linerate_measure::record::{Direction, States};
use linerate_search::GoalError;
use linerate_wire::units::grouped;
use linerate_wire::units::line_rate;
use linerate_wire::{Extensions, Family, FrameMix, Selection, SourceMacs, Transport};
pub(super) use settings::{rule_file, settings};

const DAY: u64 = 86_400_000_000_000;
/// The longest campaign: a year.
const LONGEST: u64 = 366 * DAY;

/// Place of a cell, for its faults.
pub(super) struct Place<'a> {
    pub(super) draft: &'a Draft,
    pub(super) variant: usize,
    pub(super) system: System,
    pub(super) embedded: bool,
    pub(super) levels: &'a [(usize, usize)],
    /// IP version of its frames.
    pub(super) family: Family,
}

impl Place<'_> {
    fn name(&self) -> &str {
        &self.draft.variants[self.variant].name
    }

    fn span(&self) -> Span {
        self.draft.variants[self.variant].span
    }

    /// Whether the plan lets the device under test be rebooted.
    pub(super) fn reboots(&self) -> bool {
        let trials = self.draft.tree.table("trials");
        trials.and_then(|t| t.text("reboot")).is_some_and(|reboot| reboot != "never")
    }
}

/// Faults of the plan as a whole.
pub(super) fn plan(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    lab(draft, problems);
    for (table, key) in [("trials", "blocks"), ("quick", "blocks")] {
        let Some(table) = draft.tree.table(table) else { continue };
        if let (Some(1), Some(entry)) = (table.read::<u64>(key), table.entry("until")) {
            problems.fault(
                entry.key_span,
                "one block has no interval to stop at",
                "leave one of the two out",
            );
        }
    }
    let Some(trials) = draft.tree.entry("trials") else { return };
    let Some(tree) = trials.node.table() else { return };
    search(draft, tree, problems);
    let is_rate = tree.text("measure").is_none_or(|measure| measure == "rate");
    if tree.get("blocks").is_none() && tree.get("budget").is_none() && is_rate {
        let help = "add blocks = 100, or budget = \"60 s\"";
        problems.fault(trials.key_span, "the plan does not say when the trials end", help);
    }
}

/// Faults of searches: keys of another measure, goals that do not fit together.
fn search(draft: &Draft, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let measure = tree.get("measure").and_then(|node| Some((node, node.text()?)));
    let is = |name: &str| measure.is_some_and(|(_, text)| text == name);
    let tests = is("rfc2544");
    let loads = is("search") || is("loss-curve") || tests;
    let only = [
        (is("search"), &["goals"] as &[_], "search"),
        (is("search") || tests, &["width", "method", "verify", "min-load"], "search"),
        (is("loss-curve") || tests, &["step"], "loss-curve"),
        (loads, &["max-load"], "search"),
        (tests, &["tests", "repeats", "drain", "settle"], "rfc2544"),
    ];
    for (allowed, keys, name) in only {
        for entry in keys.iter().filter(|_| !allowed).filter_map(|key| tree.entry(key)) {
            let why = format!("this key needs measure = \"{name}\"");
            problems.fault(entry.key_span, why, format!("add measure = \"{name}\""));
        }
    }
    let Some((measure, _)) = measure.filter(|_| loads) else { return };
    loads_of_its_own(draft, problems);
    if draft.is_of_end_hosts() {
        let why =
            "this plan measures TCP between end hosts: TCP chooses the load itself, so it cannot be searched";
        problems.fault(measure.span, why, "name a plan of routers");
        return;
    }
    let lab = draft.tree.table("lab");
    if draft.is_embedded() && lab.and_then(|lab| lab.text("mode")) != Some("threaded") {
        let why =
            "in an inline lab the load waits for the DUT and no frame is lost: a search needs an open loop";
        problems.fault(measure.span, why, draft.add("lab", "mode", "\"threaded\""));
    }
    if !draft.is_embedded() && !tests && tree.get("max-load").is_none() {
        let why =
            "the highest load is missing: on hosts, linerate does not measure the tester without the DUT";
        let help =
            format!("{}, at most the rate of the generator", draft.add("trials", "max-load", "\"1 Mpps\""));
        problems.fault(measure.span, why, help);
    }
    goals(draft, tree, measure.span, problems);
}

/// Faults of loads and ends that a search chooses itself.
fn loads_of_its_own(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    let refused = [
        ("trials", "blocks", "a search ends by itself", "leave it out, and name a budget"),
        ("quick", "blocks", "a search ends by itself", "leave it out, and name a budget"),
        ("trials", "order", "searches take turns, trial by trial", "leave it out"),
        ("compare", "until", "a search ends at its width", "leave it out, or use width in [trials]"),
        ("traffic", "rate", "a search chooses the load", "use min-load and max-load in [trials]"),
    ];
    for (table, key, why, help) in refused {
        if let Some(entry) = draft.tree.table(table).and_then(|table| table.entry(key)) {
            problems.fault(entry.key_span, why, help);
        }
    }
    let rate =
        |factor: &&super::draft::FactorDraft| factor.sets.iter().any(|(f, _)| f.path() == "traffic.rate");
    if let Some(factor) = draft.factors.iter().find(rate) {
        problems.fault(factor.span, "a search chooses the load", "leave this factor out");
    }
}

/// Faults of goals, of the method and of tests. `measure`: the place of `measure`.
fn goals(draft: &Draft, tree: &Tree, measure: Span, problems: &mut Vec<Diagnostic>) {
    let trials = lower::trials(&draft.tree, false);
    if trials.measure == Measure::LossCurve {
        return;
    }
    if let (Method::Bisection, [_, second, ..], Some(node)) =
        (trials.method, &trials.goals[..], tree.get("method"))
    {
        let why = format!("bisection searches for one goal, not also for {}", second.name);
        problems.fault(node.span, why, "name one in goals, or leave method out");
    }
    let repeats = tree.entry("verify").filter(|_| trials.verify > 0 && trials.method != Method::Bisection);
    if let Some(verify) = repeats.filter(|_| !trials.tests.contains(&Benchmark::BackToBack)) {
        let why = "only a bisection, and the test back-to-back, repeat trials so: MLRsearch repeats them by its goals";
        let add = draft.add("trials", "method", "\"bisection\"");
        problems.fault(verify.key_span, why, format!("{add}, or leave it out"));
    }
    if let Some(twice) = (1..trials.goals.len()).find(|at| trials.goals[..*at].contains(&trials.goals[*at])) {
        let span = tree.get("goals").map_or(measure, |goals| goals.span);
        problems.fault(
            span,
            format!("the goal {} is given twice", trials.goals[twice].name),
            "leave one out",
        );
    }
    let no_event = !draft.variants.iter().any(|variant| variant.tree.get("event").is_some());
    if let Some(named) = tree.get("tests").filter(|_| no_event && trials.tests.contains(&Benchmark::Reset)) {
        let why = "the test reset needs an event, and no variant has one";
        let help = match draft.key("variants", "event") {
            "event" => "add event = { what = \"forwarding-off\", for = \"100 ms\" } to a variant".into(),
            option => format!("add {option} forwarding-off=100ms"),
        };
        problems.fault(named.span, why, help);
    }
    if let Err(fault) = trials.check_goals() {
        let keys = match fault {
            GoalError::Limits { .. } => ["max-load", "min-load"],
            GoalError::Frames { .. } => ["min-load", "duration"],
            _ => ["goals", "duration"],
        };
        let node = keys.iter().find_map(|key| tree.get(key));
        let told = Diagnostic::at(node.map_or(measure, |node| node.span), fault.to_string());
        problems.push(match fault {
            GoalError::Limits { .. } => {
                told.remedy(format!("name a lower one with {}", draft.key("trials", "min-load")))
            }
            _ => told,
        });
    }
}

fn lab(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    let empty = Tree::default();
    let lab = draft.tree.table("lab").unwrap_or(&empty);
    let mut refuse = |key: &str, why: &str, help: &str| {
        if let Some(entry) = lab.entry(key) {
            problems.fault(entry.key_span, why, help);
        }
    };
    if draft.is_embedded() {
        if draft.systems != [System::Linux] {
            refuse(
                "systems",
                "the embedded lab is Linux",
                "add file = \"lab.toml\" for a real lab, or leave systems out",
            );
        }
        if lab.text("mode") != Some("threaded") {
            refuse(
                "dut-cpus",
                "inline, the DUT works on the generator's CPUs",
                &format!("{}, or leave it out", draft.add("lab", "mode", "\"threaded\"")),
            );
        }
        let trials = draft.tree.table("trials");
        if let Some(node) = trials.filter(|t| t.text("reboot") != Some("never")).and_then(|t| t.get("reboot"))
        {
            let help = "leave it out, or name a real lab: file = \"lab.toml\"";
            problems.fault(node.span, "the embedded lab cannot reboot this machine", help);
        }
    } else {
        let help = "leave it out: the lab file says which host does what";
        for key in ["mode", "generator-cpus", "dut-cpus", "port", "batch", "statement"] {
            refuse(key, "this is for the embedded lab alone", help);
        }
    }
}

/// Numbers of cells and trials of a plan, before any of them is made.
pub(super) fn sizes(
    draft: &Draft,
    quick: bool,
    cells: u128,
    too_much_text: bool,
    problems: &mut Vec<Diagnostic>,
) {
    let trials = lower::trials(&draft.tree, quick);
    let all = cells.saturating_mul(u128::from(trials.blocks.unwrap_or(1)));
    let first = draft.factors.iter().max_by_key(|f| f.levels(quick).len());
    let variants = draft.tree.entry("variants").map(|e| e.key_span).unwrap_or_default();
    let span = first.map_or(variants, |f| f.span);
    let counts: Vec<String> =
        draft.factors.iter().map(|f| format!("{} of {}", f.levels(quick).len(), f.name)).collect();
    let product = format!("{} variants with {}", draft.variants.len(), counts.join(" x "));
    let form = if quick { "the quick form" } else { "this plan" };
    let help =
        "use fewer variants or levels, sweep factors alone (combine = \"alone\"), or write several plans";
    if cells > MOST_CELLS {
        let message =
            format!("{form} has {} cells ({product}): at most {}", grouped(cells), grouped(MOST_CELLS));
        problems.fault(span, message, help);
    } else if all > MOST_TRIALS {
        let blocks = draft.tree.table("trials").and_then(|t| t.entry("blocks")).map_or(span, |e| e.node.span);
        let message = format!(
            "{form} has {} trials ({} cells x {} blocks): at most {}",
            grouped(all),
            grouped(cells),
            grouped(trials.blocks.unwrap_or(1)),
            grouped(MOST_TRIALS)
        );
        problems.fault(blocks, message, "use fewer blocks, or a budget");
    } else if too_much_text {
        let message = format!("{} cells with all this text are more than fits into memory", grouped(cells));
        problems.fault(span, message, "use fewer levels, or shorter files");
    }
    if cells == 0 && !draft.variants.is_empty() && draft.factors.iter().all(|f| !f.levels.is_empty()) && quick
    {
        problems.fault(
            variants,
            "the quick form has nothing to measure",
            "name variants that exist on each system",
        );
    }
}

/// Whether one block fits the time there is.
pub(super) fn times(draft: &Draft, quick: bool, campaign: &Campaign, problems: &mut Vec<Diagnostic>) {
    let (trials, cells) = (&campaign.experiment.trials, campaign.cells.len());
    let block = block_ns(campaign);
    let of = |key: &str| {
        let of = |table: &str| draft.tree.table(table).and_then(|t| t.entry(key)).map(|e| e.node.span);
        if quick { of("quick").or_else(|| of("trials")) } else { of("trials") }
    };
    let form = if quick { " of the quick form" } else { "" };
    let Some(budget) = trials.budget_ns else {
        let all = block.saturating_mul(trials.blocks.unwrap_or(1).into());
        if all > LONGEST {
            let message = format!("the trials{form} take {} days, a year at most", grouped(all / DAY));
            let help = "use fewer blocks, a shorter duration, or a budget";
            problems.fault(of("blocks").unwrap_or_default(), message, help);
        }
        return;
    };
    // A search tells what its budget is too short for.
    if block <= budget || trials.measure != Measure::Rate {
        return;
    }
    let span = of("budget");
    let message = format!(
        "one block{form}, {cells} trials, takes {:.1} s: more than the budget of {}",
        block as f64 / 1e9,
        forms::duration_text(budget)
    );
    problems.fault(
        span.unwrap_or_default(),
        message,
        "give it more time, a shorter duration, or fewer levels",
    );
}

/// End hosts choose their segments themselves; only the number of iperf3's connections can be set.
fn of_end_hosts(traffic: &Tree, problems: &mut Vec<Diagnostic>) {
    const MOST: u64 = 128;
    let (kind, _) = lower::traffic(traffic);
    for entry in &traffic.entries {
        let fits = match entry.key.as_str() {
            "flows" => u64::from(kind.flows) <= MOST,
            "transport" => kind.transport == Transport::Tcp,
            "size" => kind.size == FrameMix::single(lower::SEGMENT_LEN_FCS),
            "family" => kind.family == Family::V4,
            "rate" => entry.node.text() == Some("max"),
            "burst" => kind.burst == 0,
            "ipv6-share" => kind.ipv6_share == 0.0,
            "extension-headers" => kind.extension_headers == Extensions::None,
            "addresses" => kind.addresses == Selection::Counted,
            "source-macs" => kind.source_macs == SourceMacs::Own,
            "direction" => kind.direction == Direction::Forward,
            _ => true,
        };
        if !fits {
            let message = format!("end hosts cannot have this {}", entry.key);
            let help = format!(
                "between end hosts run 1 to {MOST} flows of TCP in IPv4 with full segments, as fast as they can"
            );
            problems.fault(entry.node.span, message, help);
        }
    }
}

/// Connections bring their own frames, and both ends are programs of this machine.
fn of_connections(place: &Place<'_>, settings: &Tree, traffic: &Tree, problems: &mut Vec<Diagnostic>) {
    let (kind, rate) = lower::traffic(traffic);
    let usual = Kind::default();
    for entry in &traffic.entries {
        let fits = match entry.key.as_str() {
            "connections" | "object" | "family" | "rate" => true,
            "size" => kind.size == usual.size,
            "flows" => kind.flows == usual.flows,
            "order" => kind.order == usual.order,
            "burst" => kind.burst == 0,
            "ipv6-share" => kind.ipv6_share == 0.0,
            "extension-headers" => kind.extension_headers == Extensions::None,
            "addresses" => kind.addresses == Selection::Counted,
            "ports" => kind.ports == Selection::Counted,
            "source-macs" => kind.source_macs == SourceMacs::Own,
            "direction" => kind.direction == Direction::Forward,
            "stamp-every" => kind.stamp_every == usual.stamp_every,
            _ => false,
        };
        if !fits {
            let message = format!("connections cannot have this {}", entry.key);
            let help = "leave it out: connections have frames, addresses and ports of their own (docs/connections.md)";
            problems.fault(entry.node.span, message, help);
        }
    }
    let span = traffic.get("connections").map_or_else(|| place.span(), |node| node.span);
    let measure = place.draft.tree.table("trials").and_then(|trials| trials.text("measure"));
    let threaded = place.draft.tree.table("lab").and_then(|lab| lab.text("mode")) == Some("threaded");
    let dut = lower::settings(settings).dut;
    let lacks = match (dut, kind.connections) {
        (Dut::KnownLossOf { of, .. }, Some(exchange)) => !of.is_of(exchange),
        _ => false,
    };
    let refused = if !place.embedded {
        Some(("connections can be opened in the embedded lab only", "leave out `file` of [lab]"))
    } else if measure == Some("rfc2544") {
        Some(("the tests of RFC 2544 are of frames, not of connections", "leave out `measure` of [trials]"))
    } else if dut == Dut::Vlan {
        Some(("connections carry no 802.1Q tags", "choose another variant than vlan"))
    } else if lacks {
        Some((
            "the DUT loses a frame that these connections do not have",
            "choose another kind of frame, such as syn",
        ))
    } else if !matches!(rate, Rate::Max | Rate::Frames(_)) {
        Some((
            "the rate of connections is one of connections",
            "write rate = \"10 kpps\": 10,000 connections a second",
        ))
    } else if threaded && measure != Some("search") && rate == Rate::Max {
        Some((
            "in threaded mode, connections at the rate \"max\" would overrun every DUT",
            "add rate = \"10 kpps\" to [traffic]: 10,000 connections a second",
        ))
    } else {
        None
    };
    if let Some((message, help)) = refused {
        problems.fault(span, message, help);
    }
}

/// Whether the load of a cell can be offered, and its frames pass.
pub(super) fn traffic(place: &Place<'_>, settings: &Tree, traffic: &Tree, problems: &mut Vec<Diagnostic>) {
    if place.draft.is_of_end_hosts() {
        return of_end_hosts(traffic, problems);
    }
    let (kind, rate) = lower::traffic(traffic);
    if kind.connections.is_some() {
        return of_connections(place, settings, traffic, problems);
    }
    if matches!(lower::settings(settings).dut, Dut::KnownLossOf { .. }) {
        let help = "add connections = \"request\" to [traffic], or write \"known-loss=1000\"";
        problems.fault(place.span(), "known-loss with a kind loses frames of connections", help);
    }
    if let Some(object) = traffic.get("object") {
        let help = "add connections = \"request\", or leave object out";
        problems.fault(object.span, "only connections have an object", help);
    }
    let span = |key: &str| traffic.get(key).map_or_else(|| place.span(), |n| n.span);
    let average = kind.size.average_len_fcs();
    let link = lower::link_speed(&place.draft.tree);
    if let Some(problem) = unreachable(place, rate, average, link, threads(place, settings)) {
        problems.push(problem.within(span("rate")));
    }
    let lowered = lower::settings(settings);
    if kind.direction == Direction::Both {
        both_ways(place, &lowered, &kind, span("direction"), problems);
    }
    let mtu = lowered.inside.mtu;
    let longest = u32::from(kind.size.max_len_fcs()).saturating_sub(18);
    let allowed = if place.embedded { mtu } else { Some(mtu.unwrap_or(1500)) };
    if allowed.is_some_and(|mtu| longest > mtu) {
        let message = format!(
            "frames of {} B do not fit an MTU of {} B",
            kind.size.max_len_fcs(),
            allowed.unwrap_or(0)
        );
        let help = format!(
            "set interface.mtu = \"{longest} B\", or send frames of at most {} B",
            allowed.unwrap_or(0) + 18
        );
        problems.fault(span("size"), message, help);
    }
    if let Err(error) = kind.traffic(&Origins::default()).and_then(|traffic| traffic.check()) {
        let keys = ["ipv6-share", "extension-headers", "broadcast-every", "flows"];
        let key = keys.into_iter().find(|key| traffic.get(key).is_some()).unwrap_or("flows");
        problems.fault(span(key), error.to_string(), "see [traffic] in docs/plans.md");
    }
    if kind.networks > kind.flows {
        let message = format!("{} flows cannot go to {} networks", kind.flows, kind.networks);
        problems.fault(
            span("networks"),
            message,
            format!("add flows = {} to [traffic], or more", kind.networks),
        );
    }
    if kind.burst == 1 {
        problems.fault(
            span("burst"),
            "a burst needs two frames or more",
            "use 2 or more, or leave burst out",
        );
    }
    let one_way = place.embedded && kind.direction == Direction::Forward;
    if kind.broadcast_every > 0 && !(one_way && lower::settings(settings).dut != Dut::Bridge) {
        let message = "broadcast frames can be counted only in the embedded lab, in one direction, and not through a bridge, which floods them";
        problems.fault(
            span("broadcast-every"),
            message,
            "leave it out on hosts, with direction = \"both\", and for bridges",
        );
    }
    if kind.ipv6_share > 0.0 && lower::settings(settings).tracks() {
        let message = "IPv6 frames cannot be mixed with IPv4 frames through connection tracking, which would have to learn both";
        problems.fault(span("ipv6-share"), message, "leave it out for stateful rules");
    }
    let trials = place.draft.tree.table("trials");
    let is_rate = trials.and_then(|trials| trials.text("measure")).is_none_or(|measure| measure == "rate");
    if kind.burst > 0 && is_rate && rate == Rate::Max {
        let message = "bursts at the rate \"max\" would have no pauses between them";
        problems.fault(span("burst"), message, "add rate = \"100 kpps\" to [traffic], or leave bursts out");
    }
    let sets_family = |(factor, _): &(usize, usize)| {
        place.draft.factors[*factor].sets.iter().any(|(field, _)| field.path() == "traffic.family")
    };
    if traffic.read("checksum") == Some(false) && kind.checksum && !place.levels.iter().any(sets_family) {
        let message = format!("{} {} frames must have a checksum", kind.family, kind.transport);
        problems.fault(span("checksum"), message, "leave it out: only IPv4 UDP can do without");
    }
}

/// Whether frames can go in both directions: each frame from the outside answers one from the inside.
fn both_ways(
    place: &Place<'_>,
    settings: &Settings,
    kind: &Kind,
    span: Span,
    problems: &mut Vec<Diagnostic>,
) {
    let port = place.draft.tree.table("lab").and_then(|lab| lab.text("port"));
    let translates = settings.rules.as_ref().is_some_and(|rules| rules.kind == rules::Kind::Nat);
    let forward = "leave direction out, or use \"forward\"";
    let faults = [
        (
            !place.embedded && settings.tracks() && settings.states == States::New,
            "on hosts a frame does not wait for the frame that it answers, so frames from the outside could come before their connection is open",
            "use states = \"established\", or the embedded lab, where each frame from the outside follows the frame that it answers",
        ),
        (
            kind.transport != Transport::Udp,
            "both directions need UDP: a SYN or an echo request answers nothing",
            "use transport = \"UDP\", or direction = \"forward\"",
        ),
        (
            port == Some(Backend::AfXdp.name()),
            "both directions need ports that send and receive at one interface: with af-xdp a queue has only one socket",
            "use port = \"xdp\" or \"af-packet\"",
        ),
        (
            settings.states == States::OneWay,
            "connections cannot stay one-way when frames from the outside answer those from the inside",
            "use states = \"established\" or \"new\"",
        ),
        (
            settings.dut == Dut::Vlan,
            "the links to a VLAN router have two tags, and the generator writes one",
            forward,
        ),
        (
            translates,
            "frames from the outside would have to go to the translated addresses, but answer the original ones",
            forward,
        ),
    ];
    for (_, why, help) in faults.into_iter().filter(|(wrong, ..)| *wrong) {
        problems.fault(span, why, help);
    }
}

/// Most generator threads of a cell.
fn threads(place: &Place<'_>, settings: &Tree) -> usize {
    let lab =
        place.draft.tree.table("lab").and_then(|l| l.read::<Vec<u32>>("generator-cpus")).map(|c| c.len());
    match (lab, lower::settings(settings).cpus) {
        (Some(cpus), _) => cpus,
        (None, Some(Cpus::Count(n))) => n as usize,
        _ => 1,
    }
}

fn unreachable(
    place: &Place<'_>,
    rate: Rate,
    average: f64,
    link: Option<f64>,
    threads: usize,
) -> Option<Diagnostic> {
    let draft = place.draft;
    let wanted = match rate.frames_per_second(average, link, usize::MAX >> 11) {
        Ok(wanted) => wanted?,
        Err(error) => {
            let add = draft.add("lab", "link-speed", "\"10 Gbit/s\"");
            return Some(error.remedy(format!("{add}, or write the rate in pps")));
        }
    };
    let asked = grouped(wanted as u128);
    let (most, message, help) = match link {
        Some(speed) => {
            let line = line_rate(speed, average);
            let (link, most) = (forms::speed_text(speed), grouped(line as u128));
            let message = format!(
                "{asked} frames/s of {average:.0} B are more than a link of {link} carries: {most} frames/s"
            );
            (line * 1.000_001, message, "ask for less, for shorter frames, or say \"max\"".into())
        }
        None => {
            let most = MOST_PER_THREAD * threads as f64;
            let message = format!(
                "{asked} frames/s are more than {threads} generator CPU(s) can ever be asked for: {}",
                grouped(most as u128)
            );
            let cpus = draft.key("lab", "generator-cpus");
            (most, message, format!("use a lower rate, longer frames, more {cpus}, or say \"max\""))
        }
    };
    (wanted > most).then(|| Diagnostic::new(message).remedy(help))
}
