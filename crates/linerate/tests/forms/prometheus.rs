//! Metrics in the text format of Prometheus.

use super::{HOSTILE, campaign};
use crate::common::{Scratch, linerate, linerate_line};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;

/// A sample in the text format of Prometheus: its name, its labels and its value.
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (name, mut rest) = line.split_once('{').expect("labels");
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    loop {
        let (label, quoted) = rest.split_once("=\"").expect("a label");
        assert!(is_name(label), "{line}");
        let (mut value, mut chars) = (String::new(), quoted.char_indices());
        let end = loop {
            match chars.next().expect("an end") {
                (_, '\\') => match chars.next().expect("an escaped character").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c} in {line}"),
                },
                (at, '"') => break at,
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(label.to_string(), value).is_none(), "{line}");
        rest = &quoted[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    (
        name.into(),
        labels,
        rest.strip_prefix("} ")
            .expect("a value")
            .parse()
            .expect("a number"),
    )
}

#[test]
fn a_node_exporter_reads_the_metrics() {
    let scratch = Scratch::new();
    let records = campaign(&scratch, 8);
    let file = scratch.file("linerate.prom");
    fs::write(&file, "old").unwrap();
    linerate(["export", "prometheus", &records, "-o", &file])
        .run()
        .ok();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.ends_with('\n'));
    let left: Vec<_> = fs::read_dir(scratch.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains("draft")),
        "{left:?}"
    );
    // HELP, TYPE and all samples of a metric stand together; no series is there twice.
    let (mut open, mut seen, mut series) = (String::new(), HashSet::new(), HashSet::new());
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            open = help.split_once(' ').expect("a help").0.to_string();
            assert!(seen.insert(open.clone()), "{open} is there twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert_eq!(kind, format!("{open} gauge"));
        } else {
            let (name, labels, value) = sample(line);
            assert_eq!(name, open, "{line}");
            assert!(
                value.is_finite() && labels["campaign"] == "plan" && labels["lab"] == "simulated",
                "{line}"
            );
            assert!(series.insert(format!("{name} {labels:?}")), "{line}");
            found.insert(
                (name, labels.get("cell").cloned().unwrap_or_default()),
                value,
            );
        }
    }
    let summary = fs::read_to_string(format!("{records}/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let hostile = format!("{HOSTILE} \u{fffe} 2");
    for (row, cell) in
        summary["rows"]
            .as_array()
            .unwrap()
            .iter()
            .zip(["tester-baseline", "forwarding", &hostile])
    {
        let of = |name: &str| found[&(format!("linerate_{name}"), cell.to_string())];
        assert_eq!(of("received_frames_per_second"), row["received"]["median"]);
        assert_eq!(of("received_low_frames_per_second"), row["received"]["low"]);
        assert_eq!(
            of("received_high_frames_per_second"),
            row["received"]["high"]
        );
        assert_eq!(of("loss_ratio"), row["loss_ratio"]);
        assert_eq!(
            of("latency_min_seconds"),
            row["latency_ns"]["min"].as_f64().unwrap() / 1e9
        );
        assert_eq!((of("trials"), of("invalid_trials")), (8.0, 0.0));
    }
    let began = found[&(
        "linerate_campaign_start_timestamp_seconds".to_string(),
        String::new(),
    )];
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!(began <= now && now - began < 3600.0, "{began} {now}");
}

#[test]
fn older_campaigns_of_one_name_are_told() {
    let scratch = Scratch::new();
    let bench = |name: &str, out: &str| {
        let line = format!("bench --simulate ok --budget 2s --quiet --name {name} --out {out}");
        linerate_line(&line).dir(scratch.path()).run().ok();
    };
    bench("kernel", "old");
    bench("kernel", "new");
    bench("other", "third");
    let export = |what: &str| {
        let line = format!("export prometheus {what}");
        linerate_line(&line).dir(scratch.path()).run().ok()
    };
    for what in ["old new third", "."] {
        let told = export(what).stderr;
        assert!(
            told.contains("2 campaigns have the name kernel") && told.contains("--name"),
            "{told}"
        );
        assert!(!told.contains("other"), "{told}");
    }
    let both = export("new third");
    assert_eq!(both.stderr, "");
    assert_eq!(
        both.stdout.matches("linerate_campaign_complete{").count(),
        2
    );
}
