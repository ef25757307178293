//! Causes that the counters of the DUT show, and the reasons of its kernel to drop frames.

use super::{FORWARDING, counted, explanation, first};
use crate::common::Made;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::record::{DutEvent, EventClass, Events, Finding, SlotProfile};
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
    let place = Loss {
        place: "in the DUT".into(),
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

#[test]
fn connections_that_fail_are_no_frames() {
    let place = Loss {
        place: "SYN did not arrive".into(),
        side: Side::Dut,
        cause: Cause::Dropped,
        frames: 250_000,
    };
    let mut traffic = Kind::default().traffic(&Default::default()).unwrap();
    let spec = serde_json::json!({ "exchange": "request", "request": 6, "object": 6 });
    traffic.connections = Some(serde_json::from_value(spec).unwrap());
    let made = Made::new(&[1e6], |campaign, trials| {
        campaign.slots[0].traffic = Some(Box::new(traffic));
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
