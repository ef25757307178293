//! Limits that make the question of the DUT's speed moot: the tester, and frames that the DUT drops on purpose.

use super::Look::By;
use super::Try::{InLab, Keys, Not};
use super::filters::NO_FILTER;
use super::path::NO_QUEUE;
use super::{Found, Looked, RULE, Rule, Try, Ways, in_lab, percent};
use crate::case::Case;
use linerate_measure::audit::{Cause, Loss};
use linerate_measure::record::{LabKind, Limit, Met, Mode, Strength};

pub const RULES: &[Rule] = &[
    Rule {
        cause: "tester-limit",
        look: By(tester),
        says: "The tester was the limit: the DUT may be faster than this.",
        mechanism: "The rate is close to the highest one that generator and receiver reach without a DUT: it may be their limit, and not the DUT's.",
        changes: &[["tester", "{remedy}", "nothing to undo"]],
        gain: "unknown until the tester is clearly faster than the DUT (RFC 2544, section 6)",
        otherwise: Not("a plan changes the DUT, and here the tester must change"),
        ..RULE
    },
    Rule {
        cause: "frames-dropped",
        look: By(drops),
        says: "{what}{why}.",
        mechanism: "A frame that is dropped costs the DUT nearly as much as one that it forwards.",
        gain: "{gain}",
        otherwise: Not("the reason of the drops is not known"),
        ..RULE
    },
];

fn tester(case: &Case<'_>) -> Looked {
    let ratio = case.row.ceiling.and_then(|ceiling| ceiling.ratio);
    let (strength, evidence) = match (case.row.limit, ratio) {
        (Limit::Unknown, _) if case.records.campaign.asked.lab == LabKind::Simulated => {
            return Err("the DUT is simulated, and its tester takes no time".into());
        }
        (Limit::Unknown, _) => {
            return Err("the rate of the tester without the DUT is not known".into());
        }
        (Limit::Noisy, _) => {
            return Err(
                "the trials scatter too much to tell whether the tester was the limit".into(),
            );
        }
        (Limit::Tester, Some(ratio)) => {
            let lost = match case.mode() {
                Mode::Threaded if case.row.loss_ratio == 0.0 => {
                    ", and the DUT lost none of its frames"
                }
                _ => "",
            };
            let of_own = percent(ratio.median);
            (
                Strength::Observed,
                format!("its rate is {of_own} of the tester's own{lost}"),
            )
        }
        (Limit::Tester, None) if case.slot.no_ceiling => {
            return Err(
                "the DUT lost no frame, and the rate of the tester without the DUT is not known"
                    .into(),
            );
        }
        _ => return Ok(None),
    };
    // wrk and nginx have the CPUs of the DUT.
    let remedy = match case.slot.http {
        Some(_) => "give wrk and nginx more CPUs (`linerate bench --cpus`)",
        None => "run `linerate bench --mode threaded`, or give the generator more CPUs or hosts",
    };
    Ok(Some(
        Found::new(strength, 1.0, [evidence]).with("remedy", remedy),
    ))
}

/// Counters of drops that other rules explain: `fragmentation`, `connection-table`, `neighbour-table`.
const OF_OTHER_RULES: [&str; 6] = [
    "FragFails",
    "InTooBigErrors",
    "Conntrack.",
    "arp_cache",
    "ndisc_cache",
    "nf_conntrack",
];

/// A reason to drop frames.
struct Reason {
    /// Parts of the names of counters and of the kernel's drop reasons.
    parts: &'static [&'static str],
    why: &'static str,
    /// The remedy and its experiment.
    ways: Ways,
}

impl Reason {
    fn is_of(&self, name: &str) -> bool {
        self.parts.iter().any(|part| name.contains(part))
    }
}

const FORMER: &str = "put the former value back";
const NO_ROUTE: &str = "there is no route to their destination";
const DROPPING_ROUTE: &str =
    "the route to their destination is one that drops (blackhole, unreachable, prohibit)";
const MISSING_ROUTE: Try = Not("linerate does not know which route is missing");
const RETURNED: &str = "sent back by the interface that they came by";
const NOT_FORWARDED: &str = "the DUT does not forward, or their destination is not for it";

/// All reasons. Without a route, FreeBSD counts both of its own.
const REASONS: &[Reason] = &[
    Reason {
        parts: &[
            "InNoRoutes",
            "OutNoRoutes",
            "IP_OUTNOROUTES",
            "IP_INNOROUTES",
        ],
        why: NO_ROUTE,
        ways: (
            &[["Linux", "ip route add NETWORK via GATEWAY", FORMER]],
            MISSING_ROUTE,
        ),
    },
    Reason {
        parts: &["InAddrErrors", "IP_INADDRERRORS"],
        why: NOT_FORWARDED,
        ways: (
            &[["Linux", "sysctl net.ipv4.ip_forward=1", FORMER]],
            Keys(r#"{"sysctls": {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}}"#),
        ),
    },
    Reason {
        parts: &["InHdrErrors", "IP_INHDR"],
        why: "their header is wrong, or their time to live ended",
        ways: (
            &[["Linux", "send frames with a longer time to live", FORMER]],
            Not("the frames must change, and not the DUT"),
        ),
    },
    Reason {
        parts: &["IPReversePathFilter", "IP_RPFILTER"],
        why: "the reverse-path filter expects their source behind another interface",
        ways: (
            &[["Linux", "sysctl net.ipv4.conf.all.rp_filter=0", FORMER]],
            NO_FILTER,
        ),
    },
    Reason {
        parts: &["NETFILTER_DROP"],
        why: "a rule of the firewall drops them",
        ways: (
            &[[
                "Linux",
                "nft list ruleset, with a counter in each rule that drops",
                FORMER,
            ]],
            Not("a rule drops on purpose: only its author knows whether it should"),
        ),
    },
    Reason {
        parts: &["QDISC_"],
        why: "the queue of a queueing discipline is full",
        ways: (
            &[[
                "Linux",
                "tc qdisc replace dev IF root noqueue, or a longer queue",
                FORMER,
            ]],
            NO_QUEUE,
        ),
    },
    Reason {
        parts: &["XDP", "xdp_generic", "_xdp_drops"],
        why: "an XDP program drops them",
        ways: (
            &[["Linux", "ip link set IF xdp off", FORMER]],
            InLab(
                "for dev in {in} {out}; do ip link set $dev xdpgeneric off; ip link set $dev xdp off 2> /dev/null; done; true",
            ),
        ),
    },
    Reason {
        parts: &["in ip_error", "in ip6_pkt_prohibit", "in dst_discard"],
        why: DROPPING_ROUTE,
        ways: (
            &[[
                "Linux",
                "ip route del blackhole NETWORK (or unreachable, prohibit), with a route by a gateway instead",
                "ip route add blackhole NETWORK",
            ]],
            MISSING_ROUTE,
        ),
    },
    Reason {
        parts: &["in nf_queue", "in __nf_queue", "in nfqnl_"],
        why: "rules queue them for a program (NFQUEUE), and none listens or its queue is full",
        ways: (
            &[[
                "Linux",
                "start the program; bypass (--queue-bypass) where none listens; a longer queue, or several (queue num 0-3 fanout)",
                FORMER,
            ]],
            Not(
                "the program behind the queue decides about frames: only its author knows which it must see",
            ),
        ),
    },
    Reason {
        parts: &["CPU_BACKLOG"],
        why: "the queue of the CPU that they are steered to is full",
        ways: (
            &[[
                "Linux",
                "echo 0 > /sys/class/net/IF/queues/rx-N/rps_cpus; or a longer queue: sysctl net.core.netdev_max_backlog=N",
                FORMER,
            ]],
            Not("linerate does not know which interface steers them"),
        ),
    },
    Reason {
        parts: &[RETURNED],
        why: "the route to their destination leads there",
        ways: OTHER_WAY,
    },
    Reason {
        parts: &["_xdp_tx_errors"],
        why: "an XDP program sends them back, and their sender does not take them",
        ways: (
            &[["Linux", "ip link set IF xdp off", FORMER]],
            InLab("for dev in {in} {out}; do ip link set $dev xdp off; done; true"),
        ),
    },
    Reason {
        parts: &["drop NO_SOCKET"],
        why: "their destination is an address of the DUT itself, where no program takes them",
        ways: (
            &[[
                "Linux",
                "ip route get ADDRESS says local: ip addr del ADDRESS dev IF, or ip route del local NETWORK",
                FORMER,
            ]],
            Not("linerate does not know which address or route is wrong"),
        ),
    },
    Reason {
        parts: &["IP_LOCAL_SOURCE"],
        why: "their source is an address of the DUT itself",
        ways: (
            &[[
                "Linux",
                "ip addr shows the address: ip addr del ADDRESS dev IF",
                FORMER,
            ]],
            Not("linerate does not know which of the two has the wrong address"),
        ),
    },
    Reason {
        parts: &["drop OTHERHOST"],
        why: "their Ethernet destination is not the address of the DUT's interface",
        ways: (
            &[[
                "Linux",
                "ip link set IF address ADDRESS, with the address that the senders know; or ip neigh flush at the senders",
                FORMER,
            ]],
            Not("linerate does not know which of the two addresses is right"),
        ),
    },
    Reason {
        parts: &["XFRM_POLICY"],
        why: "an IPsec policy blocks them, or demands that they are encrypted",
        ways: (
            &[[
                "Linux",
                "ip xfrm policy; ip xfrm policy del for the policy, or for one of dir fwd",
                "ip xfrm policy add with the former policy",
            ]],
            InLab("ip xfrm policy flush"),
        ),
    },
    Reason {
        parts: &["in br_handle_frame", "BRIDGE_"],
        why: "the bridge does not forward between these ports",
        ways: (
            &[[
                "Linux",
                "bridge -d link show: a port needs the state forwarding, and two isolated ports exchange no frames (bridge link set dev IF state 3, isolated off)",
                "bridge link set dev IF state OLD, isolated on",
            ]],
            Not("a port may be blocked or isolated on purpose"),
        ),
    },
    Reason {
        parts: &["drop TC_INGRESS", "drop TC_EGRESS"],
        why: "a filter of tc, or an eBPF program there, drops them",
        ways: (
            &[[
                "Linux",
                "tc -s filter show dev IF ingress; tc -s filter show dev IF egress; bpftool net",
                FORMER,
            ]],
            Not("a filter drops on purpose: only its author knows whether it should"),
        ),
    },
    Reason {
        parts: &["s_noroute"],
        why: NO_ROUTE,
        ways: (
            &[["FreeBSD", "route add -net NETWORK GATEWAY", FORMER]],
            MISSING_ROUTE,
        ),
    },
    Reason {
        parts: &["s_cantforward"],
        why: NOT_FORWARDED,
        ways: (
            &[["FreeBSD", "sysctl net.inet.ip.forwarding=1", FORMER]],
            Keys(r#"{"sysctls": {"net.inet.ip.forwarding": 1, "net.inet6.ip6.forwarding": 1}}"#),
        ),
    },
];

fn drops(case: &Case<'_>) -> Looked {
    let is_own = |loss: &&Loss| {
        !OF_OTHER_RULES
            .iter()
            .any(|counter| loss.place.contains(counter))
    };
    let losses = case.lost(|cause| matches!(cause, Cause::Dropped | Cause::Unexplained))?;
    let losses: Vec<&Loss> = losses.into_iter().filter(is_own).collect();
    let share = case.of_sent(losses.iter().map(|loss| loss.frames).sum());
    let noticeable = case.noticeable();
    let Some(first) = losses.first().filter(|_| share >= noticeable) else {
        return Ok(None);
    };
    let mut reasons: Vec<(&str, f64)> = case
        .kernel_drops()
        .into_iter()
        .filter(|(_, part)| *part >= noticeable / 10.0)
        .collect();
    reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
    if reasons
        .first()
        .is_some_and(|(name, part)| name.contains("NEIGH_") && *part > 0.5 * share)
    {
        return Ok(None);
    }
    let known = reason(&first.place, &reasons);
    // Some counters and functions are the same for routes that drop and for none.
    let known = match known {
        Some(reason) if reason.why == NO_ROUTE && has_dropping_route(case) => {
            REASONS.iter().find(|reason| reason.why == DROPPING_ROUTE)
        }
        known => known,
    };
    // A rule of routing may refuse them as well.
    let refusing = known
        .filter(|reason| [NO_ROUTE, DROPPING_ROUTE].contains(&reason.why))
        .and_then(|_| refusing_rule(case));
    // An event of the plan breaks what rules would blame.
    let event = case.trials.iter().find_map(|trial| trial.event.as_ref());
    let known = known.filter(|_| event.is_none());
    let noun = case.records.campaign.noun();
    // The kernel gives a reason for each frame that it frees, where it was asked.
    let asked = case.looked().is_some_and(|looked| looked.events.is_some());
    let told: f64 = reasons.iter().map(|(_, part)| part).sum();
    let unseen =
        asked && known.is_none() && first.cause == Cause::Unexplained && 2.0 * told < share;
    let device = Some(())
        .filter(|()| unseen)
        .and_then(|()| elsewhere(case, share));
    let passed = match noun {
        "connection" | "request" => "carried",
        _ => "forwarded",
    };
    let gain = match share {
        0.999.. => format!("all {noun}s"),
        share => format!(
            "up to {} more {noun}s {passed}",
            percent(share / (1.0 - share))
        ),
    };
    let found = Found::observed(share, places_and_reasons(case, &losses, &reasons))
        .with("gain", gain)
        .with("what", what(case, first, share, unseen, device));
    let found = found.with(
        "why",
        match (event, known) {
            (Some(event), _) => format!(", in trials in which {} happened to it", event.what),
            (None, Some(reason)) => match refusing {
                Some(rule) => format!(": {}, or a routing rule refuses them ({rule})", reason.why),
                None => format!(": {}", reason.why),
            },
            (None, None) => String::new(),
        },
    );
    let ways = known.map(|reason| refusing.map_or(reason.ways, |_| REFUSED));
    Ok(Some(Found {
        instead: ways.or(device.map(|_| OTHER_WAY)),
        ..found
    }))
}

/// Where the lost frames went. `device`: the one that they left by.
fn what(case: &Case<'_>, first: &Loss, share: f64, unseen: bool, device: Option<&str>) -> String {
    let noun = case.records.campaign.noun();
    let part = percent(share);
    match (noun, device) {
        ("connection" | "request", _) => format!("{part} of the {noun}s fail at the DUT"),
        (_, Some(device)) => format!(
            "{part} of the frames leave the DUT by {device}, which does not lead to the receiver"
        ),
        _ if first.place.ends_with(RETURNED) => {
            let part = percent(case.of_sent(first.frames));
            format!("{part} of the frames are {RETURNED}")
        }
        _ if unseen => format!("{part} of the frames that the DUT takes in are not seen again"),
        _ => format!("The DUT drops {part} of the frames that it takes in"),
    }
}

/// The device that sent at least this share of the frames, and not the tester's: no other device received them again.
fn elsewhere<'a>(case: &'a Case<'_>, share: f64) -> Option<&'a str> {
    let of = |ending: &'static str| {
        let all = case.counters(|name| name.ends_with(ending)).ok()?;
        let devices = all.into_iter().filter_map(move |(name, n)| {
            let device = name.strip_suffix(ending)?;
            let is_card = device.contains(' ') || in_lab(device).contains('{');
            (!is_card).then_some((device, case.of_sent(n)))
        });
        Some(devices.collect::<Vec<_>>())
    };
    let sent = of(".tx_packets")?
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let again: f64 = of(".rx_packets")?.iter().map(|(_, part)| part).sum();
    (sent.1 >= 0.99 * share && 2.0 * again < share).then_some(sent.0)
}

/// The reason of losses at this place, by the counter there or by the kernel's reasons with their shares, the largest first.
fn reason(place: &str, reasons: &[(&str, f64)]) -> Option<&'static Reason> {
    let most = reasons.first().map_or(0.0, |(_, part)| 0.9 * part);
    let frequent = || reasons.iter().filter(|(_, part)| *part >= most);
    let of_kernel = |reason: &&Reason| frequent().any(|(name, _)| reason.is_of(name));
    // IPv6 counts the frames of such a route as those without a route.
    let prohibits = frequent().any(|(name, _)| name.ends_with("in ip6_pkt_prohibit"));
    let known = REASONS.iter().find(|reason| match prohibits {
        true => reason.parts.contains(&"in ip6_pkt_prohibit"),
        false => reason.is_of(place),
    });
    known.or_else(|| REASONS.iter().find(of_kernel))
}

/// Where frames leave by the wrong interface.
const OTHER_WAY: Ways = (
    &[[
        "Linux",
        "ip route get ADDRESS from SOURCE iif IF shows the route; ip route replace NETWORK via GATEWAY, by the interface that they are to leave by",
        FORMER,
    ]],
    MISSING_ROUTE,
);

/// Where a routing rule may refuse frames.
const REFUSED: Ways = (
    &[[
        "Linux",
        "ip rule del pref N, for a rule that refuses these frames; ip route add NETWORK via GATEWAY, where they have no route",
        "ip rule add with the former rule",
    ]],
    MISSING_ROUTE,
);

/// Whether a route of the test's addresses is one that drops.
fn has_dropping_route(case: &Case<'_>) -> bool {
    let items = case.configuration().map(|found| found.on_path(&[]).0);
    let drops = ["unreachable", "prohibit", "blackhole"];
    items.is_ok_and(|items| {
        let routes = items
            .iter()
            .filter(|item| item.kind == Met::Route && item.word == "type");
        let mut names = routes.map(|item| item.name.as_str());
        names.any(|name| drops.iter().any(|kind| name.starts_with(kind)))
    })
}

/// The first of the DUT's routing rules that refuses frames.
fn refusing_rule<'a>(case: &'a Case<'_>) -> Option<&'a str> {
    let rules = &case.configuration().ok()?.path.rules;
    let refuses = |rule: &&String| {
        let kinds = ["unreachable", "prohibit", "blackhole"];
        kinds
            .iter()
            .any(|kind| rule.contains(&format!("action {kind}")))
    };
    rules.iter().find(refuses).map(String::as_str)
}

/// Where frames were lost, at which loads, and the kernel's reasons: evidence.
fn places_and_reasons(case: &Case<'_>, losses: &[&Loss], reasons: &[(&str, f64)]) -> Vec<String> {
    let noun = case.records.campaign.noun();
    let counted = losses.iter().take(4).map(|loss| {
        format!(
            "{}: {} {noun}s ({})",
            loss.place,
            loss.frames,
            percent(case.of_sent(loss.frames))
        )
    });
    let of_kernel = reasons.iter().take(4).map(|(name, part)| {
        format!(
            "the kernel's reason: {name}, {} of the {noun}s",
            percent(*part)
        )
    });
    counted.chain(case.loads()).chain(of_kernel).collect()
}
