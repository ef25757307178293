//! Causes that the counters of the DUT show, and the reasons of its kernel to drop frames.

use super::cpus::configured;
use super::{FORWARDING, counted, explanation, first};
use crate::common::Made;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::record::{
    Campaign, DutEvent, EventClass, Events, Finding, SlotProfile, Strength,
};
use linerate_plan::campaign::Kind;

#[test]
fn counters_tell_of_tables_and_budgets() {
    let causes = [
        ("Conntrack.insert_failed", 5_000, "connection-table"),
        ("CPU0: time_squeeze", 20_000, "budget-squeezes"),
        ("arp_cache.unresolved_discards", 30_000, "neighbour-table"),
        ("in: rx_pause", 400, "flow-control"),
    ];
    for (name, n, cause) in causes {
        assert_eq!(
            first(&counted(&[], FORWARDING, &[(name, n)])),
            Some(cause),
            "{name}"
        );
    }
    let clash = counted(
        &[],
        FORWARDING,
        &[
            ("Conntrack.drop", 5_000),
            ("Conntrack.insert_failed", 5_000),
        ],
    );
    assert!(
        clash.findings[0].statement.contains("no free port"),
        "{:?}",
        clash.findings[0]
    );
    let queues = [
        ("in: rx_queue_0_packets", 990_000),
        ("in: rx_queue_1_packets", 10_000),
    ];
    assert_eq!(first(&counted(&[], FORWARDING, &queues)), Some("one-queue"));
    let even = [
        ("in: rx_queue_0_packets", 490_000),
        ("in: rx_queue_1_packets", 510_000),
    ];
    assert_eq!(first(&counted(&[], FORWARDING, &even)), None);
}

/// A DUT that drops half of the frames, for these reasons of its kernel, while an event happens to it or none.
fn dropping(reasons: &[&str], event: Option<&DutEvent>) -> Finding {
    dropping_at("in the DUT", reasons, event)
}

/// One that loses them at this place.
fn dropping_at(place: &str, reasons: &[&str], event: Option<&DutEvent>) -> Finding {
    dropping_with(place, reasons, event, &[])
}

/// One with these answers about its configuration.
fn dropping_with(
    place: &str,
    reasons: &[&str],
    event: Option<&DutEvent>,
    answers: &[(&str, &str)],
) -> Finding {
    let place = Loss {
        place: place.into(),
        side: Side::Dut,
        cause: Cause::Dropped,
        frames: 500_000,
    };
    let mut made = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.receiver.frames = 500_000;
            trial.losses = vec![place.clone()];
            trial.event = event.cloned();
        }
    });
    let events = Events {
        sent: 10_000,
        drops: reasons
            .iter()
            .map(|name| (name.to_string(), 5_000))
            .collect(),
        ..Events::default()
    };
    made.summary.profiles.push(SlotProfile {
        events: Some(events),
        ..SlotProfile::default()
    });
    configured(&mut made, answers);
    let mut found = explanation(&made);
    assert_eq!(first(&found), Some("frames-dropped"));
    found.findings.remove(0)
}

#[test]
fn freebsd_tells_why_it_drops() {
    let reasons = [
        "drop ips_cantforward in ip_tryforward",
        "drop ips_noroute in ip_tryforward",
    ];
    let found = dropping(&reasons, None);
    assert!(found.statement.contains("no route"), "{found:?}");
    assert_eq!(found.changes[0].system, "FreeBSD");
}

#[test]
fn routes_that_drop_are_a_reason() {
    let found = dropping(&["drop NOT_SPECIFIED in ip_error"], None);
    assert!(found.statement.contains("blackhole"), "{found:?}");
    assert!(
        found.changes[0]
            .commands
            .starts_with("ip route del blackhole")
    );
}

#[test]
fn each_reason_of_the_kernel_is_told() {
    let reasons = [
        (
            "drop NO_SOCKET in __udp4_lib_rcv",
            "an address of the DUT itself, where no program",
        ),
        ("drop OTHERHOST in ip_rcv_core", "Ethernet destination"),
        (
            "drop IP_LOCAL_SOURCE in ip_rcv_finish_core",
            "their source is an address of the DUT",
        ),
        (
            "drop XFRM_POLICY in ip_forward",
            "an IPsec policy blocks them",
        ),
        (
            "drop TC_INGRESS in __netif_receive_skb_core.constprop.0",
            "a filter of tc",
        ),
        (
            "drop NOT_SPECIFIED in br_handle_frame_finish",
            "the bridge does not forward",
        ),
        (
            "drop CPU_BACKLOG in enqueue_to_backlog",
            "the CPU that they are steered to",
        ),
        (
            "drop NOT_SPECIFIED in nf_queue",
            "rules queue them for a program",
        ),
    ];
    for (reason, says) in reasons {
        let found = dropping(&[reason], None);
        assert!(found.statement.contains(says), "{reason}: {found:?}");
    }
}

/// Frames that are lost without a reason, in a DUT with these counters.
fn unexplained(counters: &[(&str, u64)], drops: &[(&str, u64)]) -> String {
    let mut made = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.receiver.frames = 0;
            trial.losses = vec![Loss {
                place: "inside the DUT (no counter says why)".into(),
                side: Side::Dut,
                cause: Cause::Unexplained,
                frames: 1_000_000,
            }];
            let all = counters.iter().map(|(name, n)| (name.to_string(), *n));
            trial.dut = all.collect();
        }
    });
    let drops = drops.iter().map(|(name, n)| (name.to_string(), *n));
    made.summary.profiles.push(SlotProfile {
        events: Some(Events {
            sent: 10_000,
            drops: drops.collect(),
            ..Events::default()
        }),
        ..SlotProfile::default()
    });
    explanation(&made).findings[0].statement.clone()
}

#[test]
fn frames_that_the_kernel_did_not_drop_left_or_are_not_seen_again() {
    let sent = [
        ("silent0.tx_packets", 1_000_000),
        ("in0.rx_packets", 1_000_000),
    ];
    let left = "100 % of the frames leave the DUT by silent0, which does not lead to the receiver.";
    assert_eq!(unexplained(&sent, &[]), left);
    let again = [sent[0], ("far0.rx_packets", 1_000_000)];
    let unseen = "100 % of the frames that the DUT takes in are not seen again.";
    assert_eq!(unexplained(&again, &[]), unseen);
    let dropped = unexplained(&sent, &[("drop NETFILTER_DROP in nft_do_chain", 10_000)]);
    assert!(dropped.starts_with("The DUT drops 100 %"), "{dropped}");
}

#[test]
fn routing_rules_that_refuse_frames_are_told() {
    let policy = "==> ip -j rule show <==\n[{\"priority\":100,\"src\":\"all\",\"iif\":\"in0\",\"action\":\"unreachable\"}]\n";
    let reasons = ["drop IP_INNOROUTES in ip_error"];
    let answers = [("policy", policy)];
    let found = dropping_with("DUT: IpExt.InNoRoutes", &reasons, None, &answers);
    assert!(
        found.statement.ends_with(
            "no route to their destination, or a routing rule refuses them (100: action unreachable iif in0 src all)."
        ),
        "{found:?}"
    );
    assert!(
        found.changes[0].commands.starts_with("ip rule del"),
        "{found:?}"
    );
}

#[test]
fn a_route_that_drops_is_told_from_none_by_the_path() {
    let way = "==> to 198.19.10.1 <==\nRTNETLINK answers: No route to host\n";
    let found = dropping_with(
        "DUT: Ip6.InNoRoutes",
        &["drop IP_INNOROUTES in ip6_pkt_discard"],
        None,
        &[("way 198.19.10.1 198.18.10.1", way)],
    );
    assert!(found.statement.contains("one that drops"), "{found:?}");
}

#[test]
fn a_program_of_xdp_that_fails_drops_as_one_that_decides_to() {
    let found = dropping_at("DUT: in0.ethtool.rx_queue_0_xdp_drops", &[], None);
    assert!(found.statement.contains("an XDP program"), "{found:?}");
}

#[test]
fn ipv6_counts_frames_of_routes_that_prohibit_as_without_a_route() {
    let says = |reason| dropping_at("DUT: Ip6.InNoRoutes", &[reason], None).statement;
    let found = says("drop IP_INNOROUTES in ip6_pkt_prohibit");
    assert!(found.contains("one that drops"), "{found}");
    let found = says("drop IP_INNOROUTES in ip6_pkt_discard");
    assert!(found.contains("no route"), "{found}");
}

#[test]
fn what_is_sent_back_is_not_dropped() {
    let place = "DUT: sent back by the interface that they came by";
    assert_eq!(
        dropping_at(place, &[], None).statement,
        "50 % of the frames are sent back by the interface that they came by: the route to their destination leads there."
    );
}

#[test]
fn frames_that_the_stack_receives_twice_are_told() {
    let found = |n| counted(&[], FORWARDING, &[("Ip.InReceives", n)]).findings;
    assert_eq!(found(1_100_000), []);
    let twice = &found(2_000_000)[0];
    assert_eq!(
        twice.statement,
        "Each frame passes the DUT's IP stack 2.0 times."
    );
    assert_eq!(twice.strength, Strength::Inferred);
    let again = format!("{FORWARDING}ip_output;veth_xmit;do_softirq;process_backlog;ip_rcv 400\n");
    let seen = &counted(&[], &again, &[("Ip.InReceives", 2_000_000)]).findings[0];
    assert_eq!(
        (seen.cause.as_str(), seen.strength),
        ("second-pass", Strength::Observed)
    );
    let beside =
        format!("{again}ip_forward 300\ndo_softirq;process_backlog;ip_rcv;ip_forward 300\n");
    let elsewhere = &counted(&[], &beside, &[("Ip.InReceives", 1_000_000)]).findings[0];
    assert!(
        elsewhere.statement.contains("does not read"),
        "{elsewhere:?}"
    );
}

#[test]
fn what_an_event_of_the_plan_breaks_is_no_setting_of_the_dut() {
    let event = DutEvent {
        what: "link-down".into(),
        class: EventClass::Interruption,
        began_ns: 1_000_000,
        ended_ns: 2_000_000,
        ran: Vec::new(),
    };
    let found = dropping(&["drop NOT_SPECIFIED in ip_error"], Some(&event));
    assert!(
        found.statement.contains("link-down happened to it")
            && !found.statement.contains("blackhole"),
        "{found:?}"
    );
    assert!(found.changes.is_empty(), "{found:?}");
}

/// Makes the first slot one of connections.
fn connecting(campaign: &mut Campaign) {
    let mut traffic = Kind::default().traffic(&Default::default()).unwrap();
    let spec = serde_json::json!({ "exchange": "request", "request": 6, "object": 6 });
    traffic.connections = Some(serde_json::from_value(spec).unwrap());
    campaign.slots[0].traffic = Some(Box::new(traffic));
}

#[test]
fn connections_that_fail_are_no_frames() {
    let place = Loss {
        place: "SYN did not arrive".into(),
        side: Side::Dut,
        cause: Cause::Dropped,
        frames: 250_000,
    };
    let made = Made::new(&[1e6], |campaign, trials| {
        connecting(campaign);
        for trial in trials {
            trial.receiver.frames = 750_000;
            trial.losses = vec![place.clone()];
        }
    });
    let found = &explanation(&made).findings[0];
    assert_eq!(found.statement, "25 % of the connections fail at the DUT.");
    assert_eq!(
        found.evidence,
        ["SYN did not arrive: 1500000 connections (25 %)"]
    );
    assert_eq!(found.gain, "up to 33 % more connections carried");
}

#[test]
fn the_frames_of_a_connection_are_no_second_pass() {
    let found = |opens: bool| {
        let made = Made::new(&[1e6], |campaign, trials| {
            if opens {
                connecting(campaign);
            }
            for trial in trials {
                trial.dut = [("Ip.InReceives".to_string(), 6 * trial.generator.frames)].into();
            }
        });
        explanation(&made).findings.len()
    };
    assert_eq!([false, true].map(found), [1, 0]);
}
