//! Whether requests of HTTP can be made as a plan wants them, and whether nginx can answer its connections.

use super::place::Place;
use crate::campaign::{Campaign, Kind};
use crate::diagnostic::{Diagnostic, Problems};
use crate::draft::Draft;
use crate::settings::Dut;
use crate::units::Rate;
use crate::value::Tree;
use crate::{forms, lower};
use linerate_measure::record::Direction;
use linerate_wire::units::grouped;
use linerate_wire::{Exchange, Extensions, Family, SERVERS, Selection, SourceMacs, Transport};

/// The kernels and the programs at both ends make the segments of HTTP.
pub(super) fn of_http(
    place: &Place<'_>,
    settings: &Tree,
    traffic: &Tree,
    problems: &mut Vec<Diagnostic>,
) {
    /// Each of them has a descriptor in one process of the server.
    const MOST: u32 = 10_000;
    let (kind, rate) = lower::traffic(traffic);
    let usual = Kind::default();
    for entry in &traffic.entries {
        let fits = match entry.key.as_str() {
            "http" | "object" => true,
            "flows" => kind.flows <= MOST,
            "family" => kind.family == Family::V4,
            "rate" => rate == Rate::Max,
            "transport" => kind.transport == Transport::Tcp,
            "size" => kind.size == usual.size,
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
            let message = format!("HTTP cannot have this {}", entry.key);
            let help = format!(
                "leave it out: wrk makes requests over 1 to {} connections (flows) in IPv4, as fast as they are answered",
                grouped(MOST)
            );
            problems.fault(entry.node.span, message, help);
        }
    }
    let of = |table: &str, key: &str| place.draft.tree.table(table)?.text(key);
    let dut = lower::settings(settings).dut;
    let refused = match (of("trials", "measure"), of("lab", "mode")) {
        _ if !place.embedded => Some((
            "HTTP can be measured in the embedded lab only",
            "leave out `file` of [lab]",
        )),
        (Some("search" | "rfc2544"), _) => Some((
            "wrk makes requests as fast as they are answered, so no load can be searched for",
            "leave out `measure` of [trials]",
        )),
        (_, Some("threaded")) => Some((
            "wrk and nginx have the CPUs of the DUT, so HTTP is measured in inline mode only",
            "leave out `mode` of [lab]",
        )),
        _ if matches!(dut, Dut::Vlan | Dut::KnownLossOf { .. }) => Some((
            "HTTP cannot pass this DUT",
            "choose another variant than vlan and known-loss with a kind of frame",
        )),
        _ => None,
    };
    if let Some((message, help)) = refused {
        let span = traffic
            .get("http")
            .map_or_else(|| place.span(), |node| node.span);
        problems.fault(span, message, help);
    }
}

/// nginx has one address, and answers requests; the frames in which it does so are the kernel's.
pub(super) fn of_nginx(
    place: &Place<'_>,
    traffic: &Tree,
    kind: &Kind,
    problems: &mut Vec<Diagnostic>,
) {
    const LONGEST: u32 = u16::MAX as u32;
    let one =
        "nginx answers connections of the kind request to one server in IPv4, in the embedded lab";
    let faults = [
        ("served-by", !place.embedded),
        ("connections", kind.connections != Some(Exchange::Request)),
        ("open", kind.open.is_some()),
        ("flood", kind.flood > 0),
        ("illegal", kind.illegal > 0.0),
        ("servers", kind.servers != SERVERS),
        ("family", kind.family != Family::V4),
        ("object", kind.object > LONGEST),
    ];
    for (key, _) in faults.into_iter().filter(|(_, wrong)| *wrong) {
        let span = traffic
            .get(key)
            .map_or_else(|| place.span(), |node| node.span);
        let message = format!("connections that nginx answers cannot have this {key}");
        let help = match key {
            "object" => format!(
                "write {LONGEST} or less, or use {}",
                place.draft.with("traffic", "http", "\"close\"")
            ),
            _ => format!("{one}: leave out {}", place.draft.key("traffic", key)),
        };
        problems.fault(span, message, help);
    }
}

/// Whether trials of HTTP last as long as wrk can be told to run.
pub(super) fn lasts_whole_seconds(
    draft: &Draft,
    campaign: &Campaign,
    problems: &mut Vec<Diagnostic>,
) {
    const SECOND: u64 = 1_000_000_000;
    let run_ns = campaign.timing().run_ns;
    if !campaign.kinds.iter().any(|kind| kind.http.is_some())
        || run_ns > 0 && run_ns.is_multiple_of(SECOND)
    {
        return;
    }
    let form = campaign.experiment.quick.then(|| draft.tree.table("quick"));
    let forms = form.flatten().into_iter().chain(draft.tree.table("trials"));
    let duration = forms.filter_map(|form| form.get("duration")).next();
    let message = format!(
        "a trial of HTTP cannot last {}: wrk runs for whole seconds",
        forms::duration_text(run_ns)
    );
    let help = format!("use {}", draft.with("trials", "duration", "\"1 s\""));
    problems.fault(
        duration.map_or_else(Default::default, |node| node.span),
        message,
        help,
    );
}
