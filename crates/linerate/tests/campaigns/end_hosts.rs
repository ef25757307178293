//! TCP between two hosts that linerate makes: windows, round-trip times and rates that arithmetic knows.

use super::experiment::Experiment;
use crate::common::schema::faults;
use crate::common::{campaign, linerate};
use serde_json::Value;

/// Windows without scaling have 65,535 bytes at most: 45 segments of 1,448 bytes once in each round trip.
const WINDOW: f64 = 45.0 * 1448.0;

/// The trials of a plan's campaign, and its document.
#[track_caller]
fn measured(plan: &str) -> (Vec<Value>, Value) {
    let experiment = Experiment::new(plan, "--format json");
    let ended = experiment.run("").first().run().no_panic();
    // 1: where other programs keep the path from its time, a trial is invalid.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    (campaign::trials(&experiment.records()), ended.json())
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Bit/s of payload of a slot.
fn goodput(document: &Value, slot: usize) -> f64 {
    number(&document["summary"]["rows"][slot]["tcp"]["bits"]["median"])
}

/// One trial over a path whose window is not scaled, and the record.
fn window() -> (Vec<Value>, Value) {
    measured(
        r#"
title = "A window"
question = "Does it pass once in each round trip?"
[lab]
mode = "end-hosts"
[variants.unscaled]
path = { rtt = "15 ms", rate = "100 Mbit/s" }
sysctls = { "net.ipv4.tcp_window_scaling" = 0 }
[trials]
duration = "500 ms"
blocks = 1
"#,
    )
}

#[test]
#[ignore = "needs root"]
fn each_byte_of_tcp_is_accounted_for() {
    let (trials, document) = window();
    let schema = linerate(["show", "--schema"]).run().ok().json();
    assert_eq!(faults(&schema, &document), Vec::<String>::new());
    let trial = trials.iter().find(|trial| trial["slot"] == 1).unwrap();
    let tcp = &trial["tcp"];
    let idle: Vec<f64> = tcp["idle_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert!(idle.iter().all(|ns| *ns >= 15e6), "{idle:?}");
    // Each byte that was read was acknowledged before, each of these sent, each of these written.
    let [read, acknowledged, sent, written] =
        ["read", "acknowledged", "sent", "written"].map(|key| number(&tcp[key]));
    assert!(
        read > 0.0 && read + 37.0 <= acknowledged && acknowledged <= sent && sent <= written + 37.0,
        "{tcp}"
    );
}

#[test]
#[ignore = "needs root"]
fn figures_a_window_over_a_round_trip_is_the_rate_of_tcp() {
    let (trials, document) = window();
    let trial = trials.iter().find(|trial| trial["slot"] == 1).unwrap();
    let tcp = &trial["tcp"];
    let failures = trials
        .iter()
        .flat_map(campaign::failures)
        .collect::<Vec<_>>();
    if failures
        .iter()
        .any(|failure| failure.contains("path was late"))
    {
        // Then no figure is that of the path, and none is given.
        assert_eq!(
            trial["audit"]["valid"],
            campaign::failures(trial).is_empty()
        );
        return;
    }
    assert_eq!(failures, Vec::<String>::new());
    let rtt = number(&tcp["loaded_ns"][1]) / 1e9;
    let (found, known) = (goodput(&document, 1), 8.0 * WINDOW / rtt);
    assert!(
        (found / known - 1.0).abs() < 0.08,
        "{found} bit/s, and a window in {rtt} s are {known}"
    );
    assert!(found < 94.2e6, "more than the path's rate: {found}");
    assert_eq!(document["summary"]["rows"][1]["limit"], "dut");
    assert!(
        goodput(&document, 0) > found,
        "the path without delay and rate is the tester's limit"
    );
}

#[test]
#[ignore = "needs root"]
fn figures_windows_that_grow_fill_the_path_and_others_are_as_slow_as_they_must_be() {
    let (_, document) = measured(
        r#"
title = "Windows"
question = "Do they bring what arithmetic says?"
[lab]
mode = "end-hosts"
[variants.unscaled]
path = { rtt = "40 ms", rate = "200 Mbit/s" }
sysctls = { "net.ipv4.tcp_window_scaling" = 0 }
[variants.scaled]
path = { rtt = "40 ms", rate = "200 Mbit/s" }
[trials]
duration = "1 s"
blocks = 6
[[expect]]
of = "scaled"
is = "faster"
than = "unscaled"
because = "1 MB is on the way, and an unscaled window has 65,535 bytes"
"#,
    );
    let (unscaled, scaled) = (goodput(&document, 1), goodput(&document, 2));
    assert!(
        (unscaled / (8.0 * WINDOW / 0.040) - 1.0).abs() < 0.06,
        "{unscaled}"
    );
    // Full segments of 1,538 bytes at layer 1 with 1,448 bytes of payload.
    assert!(
        (scaled / (200e6 * 1448.0 / 1538.0) - 1.0).abs() < 0.06,
        "{scaled}"
    );
    assert_eq!(document["summary"]["expectations"][0]["judgement"], "met");
    assert_eq!(document["summary"]["rows"][2]["limit"], "path");
}
