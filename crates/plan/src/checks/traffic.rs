//! Whether the load of a cell can be offered: its frames, its rate, its connections.

use super::http::{of_http, of_nginx};
use super::place::Place;
use crate::backend::Backend;
use crate::campaign::{Kind, Origins};
use crate::diagnostic::{Diagnostic, Problems, Span};
use crate::settings::{Cpus, Dut, Settings};
use crate::units::{MOST_PER_THREAD, Rate};
use crate::value::Tree;
use crate::{forms, lower, rules};
use linerate_measure::record::{Direction, States};
use linerate_wire::units::{grouped, line_rate};
use linerate_wire::{
    CLIENT_PORTS, CLIENTS, Exchange, Extensions, Family, FrameMix, LARGEST_OBJECT, Selection,
    SourceMacs, Transport, pairs,
};

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
fn of_connections(
    place: &Place<'_>,
    settings: &Tree,
    traffic: &Tree,
    problems: &mut Vec<Diagnostic>,
) {
    let (kind, rate) = lower::traffic(traffic);
    let usual = Kind::default();
    for entry in &traffic.entries {
        let fits = match entry.key.as_str() {
            "connections" | "object" | "family" | "rate" | "open" | "close" | "servers"
            | "flood" | "illegal" | "served-by" => true,
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
    if kind.served_by.is_nginx() {
        of_nginx(place, traffic, &kind, problems);
    } else if kind.object > LARGEST_OBJECT.into() {
        let message = format!("an answer of {} bytes does not fit a segment", kind.object);
        let help = format!(
            "write {LARGEST_OBJECT} or less, or use {}",
            place.draft.with("traffic", "http", "\"close\"")
        );
        problems.fault(span_of(place, traffic, "object"), message, help);
    }
    if let Some((message, help)) = refusal(place, settings, &kind, rate) {
        problems.fault(span_of(place, traffic, "connections"), message, help);
    }
    kept_open(place, settings, traffic, &kind, problems);
    let udp = kind.connections.is_some_and(|exchange| !exchange.is_tcp());
    let strays = [
        ("flood", "a flood of SYNs comes", kind.flood > 0),
        ("illegal", "illegal attempts come", kind.illegal > 0.0),
    ];
    for (key, what, _) in strays.into_iter().filter(|(.., sent)| *sent) {
        let key_text = place.draft.key("traffic", key);
        if udp || kind.open.is_some() {
            let message = format!("{what} with connections of TCP that are closed one by one");
            let help = format!(
                "leave {key_text} out, or use {}",
                place.draft.with("traffic", "connections", REQUEST)
            );
            problems.fault(span_of(place, traffic, key), message, help);
        }
    }
    if kind.flood > 0 && kind.illegal > 0.0 {
        let message = "a flood and illegal attempts cannot come together";
        let help = format!("leave {} out", place.draft.key("traffic", "illegal"));
        problems.fault(span_of(place, traffic, "illegal"), message, help);
    }
}

/// The kind of connections that remedies name.
const REQUEST: &str = "\"request\"";

/// The remedy for a key that comes with connections only.
fn without_connections(place: &Place<'_>, key: &str) -> String {
    let draft = place.draft;
    let connections = draft.add("traffic", "connections", REQUEST);
    format!("{connections}, or leave {} out", draft.key("traffic", key))
}

/// Whether so many connections can be open at the same time, to these servers.
fn kept_open(
    place: &Place<'_>,
    settings: &Tree,
    traffic: &Tree,
    kind: &Kind,
    problems: &mut Vec<Diagnostic>,
) {
    let servers = kind.servers;
    if !servers.is_power_of_two() {
        let message = format!("connections cannot be spread among {servers} servers");
        let help = "write 1, 2, 4, 8 or 16";
        problems.fault(span_of(place, traffic, "servers"), message, help);
        return;
    }
    let Some(open) = kind.open else {
        if let Some(close) = traffic.get("close") {
            let open = place.draft.add("traffic", "open", "1000");
            let help = format!("{open}, or leave it out");
            let message = "only connections that are kept open are closed by somebody else";
            problems.fault(close.span, message, help);
        }
        return;
    };
    let span = span_of(place, traffic, "open");
    let trials = place.draft.tree.table("trials");
    if u64::from(open) > pairs(servers) {
        let message = format!(
            "{} connections cannot be open at the same time: {CLIENTS} clients with {} ports each and {} make {} pairs of addresses and ports",
            grouped(open),
            grouped(CLIENT_PORTS),
            kind.servers_in_words(),
            grouped(pairs(servers))
        );
        problems.fault(span, message, "use a smaller number, or more servers");
    } else if kind.connections != Some(Exchange::Request) {
        let message = "only connections of the kind request can be kept open";
        let help = format!(
            "use {}, or leave it out",
            place.draft.with("traffic", "connections", REQUEST)
        );
        problems.fault(span_of(place, traffic, "connections"), message, help);
    } else if trials.and_then(|trials| trials.text("measure")) == Some("search") {
        let message = "a search looks for a rate, and the number of connections that are kept open is no rate";
        let help =
            "leave out `measure` of [trials], and give a factor several levels of traffic.open";
        problems.fault(span, message, help);
    } else if matches!(lower::settings(settings).dut, Dut::KnownLossOf { .. }) {
        let message = "the DUT loses a kind of frame of connections that are closed one by one";
        let open = place.draft.key("traffic", "open");
        let help = format!("leave {open} out, or write known-loss=N");
        problems.fault(span, message, help);
    }
}

/// Why connections cannot be measured here, and the remedy.
fn refusal(
    place: &Place<'_>,
    settings: &Tree,
    kind: &Kind,
    rate: Rate,
) -> Option<(&'static str, String)> {
    let measure = place
        .draft
        .tree
        .table("trials")
        .and_then(|trials| trials.text("measure"));
    let threaded = place
        .draft
        .tree
        .table("lab")
        .and_then(|lab| lab.text("mode"))
        == Some("threaded");
    let dut = lower::settings(settings).dut;
    let lacks = match (dut, kind.connections) {
        (Dut::KnownLossOf { of, .. }, Some(exchange)) => !of.is_of(exchange),
        _ => false,
    };
    let between_hosts = (!place.embedded).then(|| on_hosts(place, kind, rate, measure));
    if let Some(refused) = between_hosts.flatten() {
        Some(refused)
    } else if measure == Some("rfc2544") {
        Some((
            "the tests of RFC 2544 are of frames, not of connections",
            "leave out `measure` of [trials]".into(),
        ))
    } else if dut == Dut::Vlan {
        Some((
            "connections carry no 802.1Q tags",
            "choose another variant than vlan".into(),
        ))
    } else if lacks {
        Some((
            "the DUT loses a frame that these connections do not have",
            "choose another kind of frame, such as syn".into(),
        ))
    } else if !matches!(rate, Rate::Max | Rate::Frames(_)) {
        Some((
            "the rate of connections is one of connections",
            format!(
                "use {}: 10,000 connections a second",
                place.draft.with("traffic", "rate", "\"10 kpps\"")
            ),
        ))
    } else if threaded && measure != Some("search") && rate == Rate::Max {
        Some((
            "in threaded mode, connections at the rate \"max\" would overrun every DUT",
            format!(
                "{}: 10,000 connections a second",
                place.draft.add("traffic", "rate", "\"10 kpps\"")
            ),
        ))
    } else {
        None
    }
}

/// Why connections cannot be measured between hosts, and the remedy.
fn on_hosts(
    place: &Place<'_>,
    kind: &Kind,
    rate: Rate,
    measure: Option<&str>,
) -> Option<(&'static str, String)> {
    let leave_out = |key| {
        let key = place.draft.key("traffic", key);
        format!("leave out {key}, or `file` of [lab]")
    };
    let exchange = kind.connections?;
    if kind.open.is_some() {
        Some((
            "connections can be kept open in the embedded lab only",
            leave_out("open"),
        ))
    } else if kind.flood > 0 {
        Some((
            "a flood can come with connections in the embedded lab only",
            leave_out("flood"),
        ))
    } else if kind.illegal > 0.0 {
        Some((
            "illegal attempts can come with connections in the embedded lab only",
            leave_out("illegal"),
        ))
    } else if rate == Rate::Max && measure != Some("search") && !exchange.closes_at_client() {
        Some((
            "between hosts, these connections need a rate: their last frame arrives at the server, so the client cannot wait for it",
            format!(
                "{}: 10,000 connections a second",
                place.draft.add("traffic", "rate", "\"10 kpps\"")
            ),
        ))
    } else {
        None
    }
}

/// The place of a key, or of the cell where the plan does not name it.
fn span_of(place: &Place<'_>, traffic: &Tree, key: &str) -> Span {
    traffic
        .get(key)
        .map_or_else(|| place.span(), |node| node.span)
}

/// Keys that frames do not have.
const OF_CONNECTIONS: [(&str, &str); 6] = [
    ("object", "only connections and HTTP have an object"),
    ("close", "only connections are closed"),
    ("servers", "only connections have servers"),
    ("served-by", "only connections are answered"),
    ("flood", "a flood comes with connections only"),
    ("illegal", "illegal attempts come with connections only"),
];

/// Whether the load of a cell can be offered, and its frames pass.
pub(in super::super) fn traffic(
    place: &Place<'_>,
    settings: &Tree,
    traffic: &Tree,
    problems: &mut Vec<Diagnostic>,
) {
    if place.draft.is_of_end_hosts() {
        return of_end_hosts(traffic, problems);
    }
    let (kind, rate) = lower::traffic(traffic);
    if kind.http.is_some() {
        return of_http(place, settings, traffic, problems);
    }
    if kind.connections.is_some() {
        return of_connections(place, settings, traffic, problems);
    }
    let lowered = lower::settings(settings);
    if matches!(lowered.dut, Dut::KnownLossOf { .. }) {
        let connections = place.draft.add("traffic", "connections", REQUEST);
        let help = format!("{connections}, or write \"known-loss=1000\"");
        problems.fault(
            place.span(),
            "known-loss with a kind loses frames of connections",
            help,
        );
    }
    for (key, message) in OF_CONNECTIONS {
        if let Some(node) = traffic.get(key) {
            problems.fault(node.span, message, without_connections(place, key));
        }
    }
    let span = |key: &str| span_of(place, traffic, key);
    let average = kind.size.average_len_fcs();
    let link = lower::link_speed(&place.draft.tree);
    if let Some(problem) = unreachable(place, rate, average, link, threads(place, settings)) {
        problems.push(problem.within(span("rate")));
    }
    if kind.direction == Direction::Both {
        both_ways(place, &lowered, &kind, span("direction"), problems);
    }
    lengths(place, &lowered, &kind, span("size"), problems);
    if let Err(error) = kind
        .traffic(&Origins::default())
        .and_then(|traffic| traffic.check())
    {
        let keys = [
            "ipv6-share",
            "extension-headers",
            "broadcast-every",
            "flows",
        ];
        let key = keys
            .into_iter()
            .find(|key| traffic.get(key).is_some())
            .unwrap_or("flows");
        problems.fault(
            span(key),
            error.to_string(),
            "see [traffic] in docs/plans.md",
        );
    }
    if kind.networks > kind.flows {
        let message = format!(
            "{} flows cannot go to {} networks",
            kind.flows, kind.networks
        );
        let help = format!("add flows = {} to [traffic], or more", kind.networks);
        problems.fault(span("networks"), message, help);
    }
    contradictions(place, &lowered, &kind, rate, traffic, problems);
    checksum(place, &kind, traffic, problems);
}

/// Whether frames can do without a checksum.
fn checksum(place: &Place<'_>, kind: &Kind, traffic: &Tree, problems: &mut Vec<Diagnostic>) {
    let sets_family = |(factor, _): &(usize, usize)| {
        place.draft.factors[*factor]
            .sets
            .iter()
            .any(|(field, _)| field.path() == "traffic.family")
    };
    if traffic.read("checksum") == Some(false)
        && kind.checksum
        && !place.levels.iter().any(sets_family)
    {
        let message = format!(
            "{} {} frames must have a checksum",
            kind.family, kind.transport
        );
        problems.fault(
            span_of(place, traffic, "checksum"),
            message,
            "leave it out: only IPv4 UDP can do without",
        );
    }
}

/// Whether the longest frames fit the MTU.
fn lengths(
    place: &Place<'_>,
    settings: &Settings,
    kind: &Kind,
    span: Span,
    problems: &mut Vec<Diagnostic>,
) {
    let mtu = settings.inside.mtu;
    let allowed = if place.embedded {
        mtu
    } else {
        Some(mtu.unwrap_or(1500))
    };
    let length = kind.size.max_len_fcs();
    let longest = u32::from(length).saturating_sub(18);
    if let Some(mtu) = allowed.filter(|mtu| longest > *mtu) {
        let message = format!("frames of {length} B do not fit an MTU of {mtu} B");
        let most = mtu + 18;
        let help =
            format!("set interface.mtu = \"{longest} B\", or send frames of at most {most} B");
        problems.fault(span, message, help);
    }
}

/// Faults of bursts, broadcast frames and mixed IP versions where something else of the plan rules them out.
fn contradictions(
    place: &Place<'_>,
    settings: &Settings,
    kind: &Kind,
    rate: Rate,
    traffic: &Tree,
    problems: &mut Vec<Diagnostic>,
) {
    let one_way = place.embedded && kind.direction == Direction::Forward;
    let trials = place.draft.tree.table("trials");
    let is_rate = trials
        .and_then(|trials| trials.text("measure"))
        .is_none_or(|measure| measure == "rate");
    let faults = [
        (
            kind.burst == 1,
            "burst",
            "a burst needs two frames or more",
            "use 2 or more, or leave burst out",
        ),
        (
            kind.broadcast_every > 0 && !(one_way && settings.dut != Dut::Bridge),
            "broadcast-every",
            "broadcast frames can be counted only in the embedded lab, in one direction, and not through a bridge, which floods them",
            "leave it out on hosts, with direction = \"both\", and for bridges",
        ),
        (
            kind.ipv6_share > 0.0 && settings.tracks(),
            "ipv6-share",
            "IPv6 frames cannot be mixed with IPv4 frames through connection tracking, which would have to learn both",
            "leave it out for stateful rules",
        ),
        (
            kind.burst > 0 && is_rate && rate == Rate::Max,
            "burst",
            "bursts at the rate \"max\" would have no pauses between them",
            "add rate = \"100 kpps\" to [traffic], or leave bursts out",
        ),
    ];
    for (_, key, why, help) in faults.into_iter().filter(|(wrong, ..)| *wrong) {
        problems.fault(span_of(place, traffic, key), why, help);
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
    let port = place
        .draft
        .tree
        .table("lab")
        .and_then(|lab| lab.text("port"));
    let translates = settings
        .rules
        .as_ref()
        .is_some_and(|rules| rules.kind == rules::Kind::Nat);
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
    let lab = place
        .draft
        .tree
        .table("lab")
        .and_then(|l| l.read::<Vec<u32>>("generator-cpus"))
        .map(|c| c.len());
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
            (
                line * 1.000_001,
                message,
                "ask for less, for shorter frames, or say \"max\"".into(),
            )
        }
        None => {
            let most = MOST_PER_THREAD * threads as f64;
            let message = format!(
                "{asked} frames/s are more than {threads} generator CPU(s) can ever be asked for: {}",
                grouped(most as u128)
            );
            let cpus = draft.key("lab", "generator-cpus");
            (
                most,
                message,
                format!("use a lower rate, longer frames, more {cpus}, or say \"max\""),
            )
        }
    };
    (wanted > most).then(|| Diagnostic::new(message).remedy(help))
}
