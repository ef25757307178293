//! Campaigns in the forms that other programs read. Another project's reader reads each of them here.

use crate::common::{Ended, Program, Scratch, linerate};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fs;

/// A name that each of the forms has to escape.
const HOSTILE: &str = r#"<b a='1'>&amp; "q" \ ]]> {x="y"} 1"#;

/// A plan with an expectation that is met and one that is missed.
const PLAN: &str = r#"
title = "Forms"
question = "Does each form have each verdict?"
[lab]
mode = "inline"
[traffic]
flows = 16
[variants.forwarding]
from = "forwarding"
[variants.nft-stateful]
from = "nft-stateful"
[trials]
duration = "20 ms"
blocks = 8
seed = 1
[[expect]]
of = "nft-stateful"
is = "not-different"
than = "forwarding"
because = "both are simulated: a < b && \"c\" ]]>"
[[expect]]
of = "nft-stateful"
is = "slower"
than = "forwarding"
because = "this is missed"
"#;

/// Runs the plan, and replaces the name of a cell in its records by a hostile one.
fn campaign(scratch: &Scratch, blocks: u32) -> String {
    let plan = PLAN.replace("blocks = 8", &format!("blocks = {blocks}"));
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let records = scratch.file(&format!("records-{blocks}"));
    let run = [
        "run",
        "plan.toml",
        "--simulate",
        "rate=200kpps",
        "--quiet",
        "--out",
        &records,
    ];
    linerate(run).dir(scratch.path()).run().no_panic();
    for file in ["campaign.json", "summary.json"] {
        let path = format!("{records}/{file}");
        let text = fs::read_to_string(&path).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let of = if file == "campaign.json" {
            "slots"
        } else {
            "rows"
        };
        document[of][2]["name"] = format!("{HOSTILE}\u{1}\u{fffe}\n2").into();
        if of == "rows" {
            found(&mut document);
        }
        fs::write(path, document.to_string()).unwrap();
    }
    fs::create_dir(format!("{records}/profiles")).unwrap();
    fs::write(
        format!("{records}/profiles/2.stack"),
        "main;a;b 30\nmain;<c> 10\n",
    )
    .unwrap();
    records
}

/// Findings of two cells, and the profile of one: records of a simulated DUT have neither.
fn found(summary: &mut Value) {
    let of = |cause: &str, statement: &str| {
        json!({"cause": cause, "statement": statement, "strength": "observed", "evidence": [HOSTILE],
            "mechanism": "", "changes": [], "gain": "", "weight": 0.5, "patch": null, "proof": null})
    };
    let explained = |slot: u32, findings: &[Value], open: &[&str]| {
        let open: Vec<Value> = open
            .iter()
            .map(|cause| json!({"cause": cause, "reason": "why"}))
            .collect();
        json!({"slot": slot, "findings": findings, "absent": [], "not_examined": open, "stages": [], "balance": []})
    };
    let rules = of("linear-rules", "Each frame is compared with many rules.");
    summary["explanations"] = json!([
        explained(0, &[], &["tester-limit", "steal", "other-programs"]),
        explained(1, std::slice::from_ref(&rules), &["steal"]),
        explained(2, &[rules.clone(), of("steal", HOSTILE)], &[]),
    ]);
    summary["profiles"] = json!([{
        "slot": 1, "event": "cpu-clock", "samples": 40, "user": 0, "lost": 0, "received": null,
        "rates": [], "frames": 0, "counted": {}, "stacks": "profiles/2.stack", "functions": [], "stages": null, "events": null, "missing": [],
    }]);
}

fn export(form: &str, records: &str) -> Ended {
    linerate(["export", form, records]).run().ok()
}

/// Attributes by name, unescaped.
fn attributes(element: &BytesStart) -> BTreeMap<String, String> {
    let one = |attribute: Result<quick_xml::events::attributes::Attribute, _>| {
        let attribute = attribute.expect("an attribute");
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Explicit1_0)
            .expect("its value");
        (
            String::from_utf8(attribute.key.0.to_vec()).unwrap(),
            value.into_owned(),
        )
    };
    element.attributes().map(one).collect()
}

/// An element with the name of the one that it is in, and its attributes.
type Element = (String, String, BTreeMap<String, String>);

/// The elements of a file in their order; every tag is closed.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let (mut all, mut open) = (Vec::new(), vec![String::new()]);
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(start) => {
                let name = String::from_utf8(start.name().0.to_vec()).unwrap();
                all.push((
                    name.clone(),
                    open.last().unwrap().clone(),
                    attributes(&start),
                ));
                open.push(name);
            }
            Event::Empty(start) => {
                let name = String::from_utf8(start.name().0.to_vec()).unwrap();
                all.push((name, open.last().unwrap().clone(), attributes(&start)));
            }
            Event::End(_) => drop(open.pop()),
            Event::Eof => break,
            Event::Text(text) => drop(text.decode().expect("UTF-8")),
            Event::Decl(_) | Event::GeneralRef(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(open.len(), 1, "an element is not closed");
    all
}

/// The children and the attributes that CI systems know (Jenkins' junit-10.xsd), with those that must be there.
fn is_junit(all: &[Element]) {
    let known: [(&str, &str, &[&str], &[&str]); 7] = [
        (
            "testsuites",
            "",
            &["tests", "failures", "errors"],
            &["name", "time"],
        ),
        (
            "testsuite",
            "testsuites",
            &["name", "tests", "failures", "errors"],
            &["skipped", "time", "timestamp"],
        ),
        ("properties", "testsuite", &[], &[]),
        ("property", "properties", &["name", "value"], &[]),
        ("testcase", "testsuite", &["name", "classname"], &["time"]),
        ("failure", "testcase", &["message", "type"], &[]),
        ("skipped", "testcase", &["message"], &[]),
    ];
    for (name, parent, attributes) in all.iter().filter(|(name, ..)| name != "system-out") {
        let (_, inside, must, may) = known.iter().find(|known| known.0 == name).expect(name);
        assert_eq!(parent, inside, "{name}");
        assert!(
            must.iter().all(|key| attributes.contains_key(*key)),
            "{name} {attributes:?}"
        );
        assert!(
            attributes
                .keys()
                .all(|key| must.contains(&&**key) || may.contains(&&**key)),
            "{attributes:?}"
        );
    }
    let of = |name: &str| {
        all.iter()
            .filter(|element| element.0 == name)
            .count()
            .to_string()
    };
    for suite in all
        .iter()
        .filter(|element| element.0 == "testsuite" || element.0 == "testsuites")
    {
        assert_eq!(suite.2["tests"], of("testcase"));
        assert_eq!(suite.2["failures"], of("failure"));
        if let Some(skipped) = suite.2.get("skipped") {
            assert_eq!(*skipped, of("skipped"));
        }
    }
}

/// The test case of this kind and name, with its outcome and the message of that.
fn case<'a>(all: &'a [Element], kind: &str, name: &str) -> (&'a str, &'a str) {
    let is = |(tag, _, a): &Element| {
        tag == "testcase" && a["name"] == name && a["classname"].ends_with(kind)
    };
    let at = all
        .iter()
        .position(is)
        .unwrap_or_else(|| panic!("no case {kind} {name} in {all:#?}"));
    match &all.get(at + 1) {
        Some((tag, _, a)) if tag == "failure" || tag == "skipped" => (tag, &a["message"]),
        _ => ("passed", ""),
    }
}

#[test]
fn ci_reads_each_verdict_of_a_campaign() {
    let scratch = Scratch::new();
    let all = elements(&export("junit", &campaign(&scratch, 8)).stdout);
    is_junit(&all);
    assert_eq!(
        case(&all, ".campaign", "the campaign came to its end"),
        ("passed", "")
    );
    assert_eq!(case(&all, ".audit", "forwarding"), ("passed", ""));
    assert_eq!(
        case(&all, ".audit", &format!("{HOSTILE}   2")),
        ("passed", "")
    );
    assert_eq!(
        case(
            &all,
            ".expectations",
            "nft-stateful is not proven to differ from forwarding"
        ),
        ("passed", "")
    );
    let (failed, why) = case(
        &all,
        ".expectations",
        "nft-stateful is slower than forwarding",
    );
    assert!(
        failed == "failure" && why.contains("95 % interval"),
        "{failed} {why}"
    );
    let cells = ["tester-baseline", "forwarding", &format!("{HOSTILE}   2")];
    let found = cells.map(|cell| case(&all, ".findings", cell));
    // Noise says nothing of the DUT.
    let noise = format!("inconclusive: {HOSTILE}");
    assert_eq!(
        found,
        [
            ("skipped", "not examined: why"),
            ("passed", ""),
            ("skipped", &noise)
        ]
    );
    // Of two blocks there is no interval; a campaign that was killed has no verdict.
    let short = campaign(&scratch, 2);
    let all = elements(&export("junit", &short).stdout);
    is_junit(&all);
    let (skipped, why) = case(
        &all,
        ".expectations",
        "nft-stateful is slower than forwarding",
    );
    assert!(
        skipped == "skipped" && why.starts_with("inconclusive: "),
        "{skipped} {why}"
    );
    fs::remove_file(format!("{short}/summary.json")).unwrap();
    fs::write(format!("{short}/trials.jsonl"), "").unwrap();
    let all = elements(&export("junit", &short).stdout);
    is_junit(&all);
    assert_eq!(
        case(&all, ".campaign", "the campaign came to its end").0,
        "failure"
    );
    assert_eq!(
        case(&all, ".audit", "forwarding"),
        ("skipped", "not measured: it has no trial")
    );
    assert!(
        case(
            &all,
            ".expectations",
            "nft-stateful is slower than forwarding"
        )
        .1
        .starts_with("not measured: ")
    );
}

#[test]
fn ci_reads_the_verdicts_of_a_comparison() {
    let scratch = Scratch::new();
    let numbers = |name: &str, from: u32| {
        let lines: String = (0..12).map(|n| format!("{}\n", from + n)).collect();
        fs::write(scratch.file(name), lines).unwrap();
    };
    numbers("before", 1000);
    numbers("same", 1001);
    numbers("slow", 900);
    fs::write(scratch.file("few"), "700\n1300\n").unwrap();
    let line = "compare before same slow few --fail-if-slower 3% --junit out.xml";
    linerate(line.split(' '))
        .dir(scratch.path())
        .run()
        .status(3);
    let all = elements(&fs::read_to_string(scratch.file("out.xml")).unwrap());
    is_junit(&all);
    assert_eq!(
        case(&all, ".comparisons", "same is not 3 % slower than before").0,
        "passed"
    );
    let (failed, why) = case(&all, ".comparisons", "slow is not 3 % slower than before");
    assert!(
        failed == "failure" && why.contains("slow against before: -9.9"),
        "{failed} {why}"
    );
    assert_eq!(
        case(&all, ".comparisons", "few is not 3 % slower than before").0,
        "skipped"
    );
}

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

/// Medians of the valid trials of each cell, by DuckDB and by Polars, beside the figures of the file of cells.
const QUERY: &str = r#"
import duckdb, json, polars
trials = duckdb.sql("SELECT name, median(received_fps), count(*) FROM 'trials.parquet' WHERE valid GROUP BY name").fetchall()
frame = polars.read_parquet("trials.parquet").filter(polars.col("valid"))
medians = frame.group_by("name").agg(polars.col("received_fps").median()).rows()
cells = polars.read_parquet("cells.parquet").select("name", "received_fps", "received_low_fps", "valid_trials", "limited_by", "levels").rows()
about = duckdb.sql("SELECT decode(key), decode(value) FROM parquet_kv_metadata('trials.parquet')").fetchall()
kinds = {name: str(kind) for name, kind in frame.schema.items()}
print(json.dumps({"duckdb": trials, "polars": medians, "cells": cells, "about": about, "kinds": kinds}))
"#;

#[test]
#[cfg_attr(
    not(readers),
    ignore = "needs DuckDB and Polars in target/python (scripts/setup test)"
)]
fn duckdb_and_polars_find_the_medians_of_the_summary() {
    let scratch = Scratch::new();
    let records = campaign(&scratch, 8);
    // Rates that differ, and a trial whose audit failed.
    let path = format!("{records}/trials.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let changed = lines.lines().enumerate().map(|(at, line)| {
        let mut trial: Value = serde_json::from_str(line).unwrap();
        let rate = trial["rates"]["received"].as_f64().unwrap();
        trial["rates"]["received"] = (rate * (1.0 + 0.001 * ((at * at) % 7) as f64)).into();
        trial["audit"]["valid"] = (at != 4).into();
        format!("{trial}\n")
    });
    fs::write(&path, changed.collect::<String>()).unwrap();
    fs::remove_file(format!("{records}/summary.json")).unwrap();
    for (rows, file) in [
        ("trials", "trials.parquet"),
        ("cells", "cells.parquet"),
        ("trials", "again.parquet"),
    ] {
        linerate([
            "export",
            "parquet",
            &records,
            "--rows",
            rows,
            "-o",
            &scratch.file(file),
        ])
        .run()
        .ok();
    }
    let [once, again] =
        ["trials", "again"].map(|name| fs::read(scratch.file(&format!("{name}.parquet"))).unwrap());
    assert!(once == again, "other bytes");
    let summary = linerate(["show", &records, "--json"]).run().json();
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/python/bin/python"
    );
    let found = Program::new(python)
        .args(["-c", QUERY])
        .dir(scratch.path())
        .run()
        .ok()
        .json();
    let of = |kind: &str, name: &Value, at: usize| {
        let rows = found[kind].as_array().unwrap();
        rows.iter()
            .find(|row| row[0] == *name)
            .unwrap_or_else(|| panic!("{kind} has no {name}"))[at]
            .clone()
    };
    let rows = summary["summary"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let (name, median) = (&row["name"], &row["received"]["median"]);
        assert_eq!(of("duckdb", name, 1), *median);
        assert_eq!(of("duckdb", name, 2), row["valid_trials"]);
        assert_eq!(of("polars", name, 1), *median);
        assert_eq!(of("cells", name, 1), *median);
        assert_eq!(of("cells", name, 2), row["received"]["low"]);
        assert_eq!(of("cells", name, 3), row["valid_trials"]);
        assert_eq!(of("cells", name, 4), row["limit"]);
    }
    assert_eq!(
        rows.iter().filter(|row| row["valid_trials"] == 7).count(),
        1
    );
    let about: BTreeMap<String, String> = serde_json::from_value(found["about"].clone())
        .map(|pairs: Vec<(String, String)>| pairs.into_iter().collect())
        .unwrap();
    assert_eq!(
        (
            about["linerate.schema"].as_str(),
            about["linerate.rows"].as_str()
        ),
        ("1", "trials")
    );
    let columns: BTreeMap<String, String> =
        serde_json::from_str(&about["linerate.columns"]).unwrap();
    let kinds: BTreeMap<String, String> = serde_json::from_value(found["kinds"].clone()).unwrap();
    assert!(
        columns.keys().eq(kinds.keys()),
        "each column has its meaning"
    );
    assert_eq!(
        kinds["started"],
        "Datetime(time_unit='ms', time_zone='UTC')"
    );
}

#[test]
fn a_broken_campaign_is_left_out_and_told() {
    let scratch = Scratch::new();
    campaign(&scratch, 2);
    fs::create_dir(scratch.path().join("broken")).unwrap();
    fs::write(scratch.file("broken/campaign.json"), "{").unwrap();
    for form in ["junit", "prometheus", "parquet"] {
        let (all, to) = (scratch.path().display().to_string(), scratch.file("out"));
        let ended = linerate(["export", form, &all, "-o", &to]).run();
        ended.fails(1, &["left out: ", "broken/campaign.json", "written: "]);
        assert!(fs::metadata(&to).unwrap().len() > 500);
        let alone = scratch.file("broken");
        linerate(["export", form, &alone, "-o", &to])
            .run()
            .fails(1, &["left out: ", "no campaign can be read"]);
    }
    let empty = Scratch::new();
    for form in ["junit", "prometheus", "parquet"] {
        let (all, to) = (empty.path().display().to_string(), empty.file("out"));
        linerate(["export", form, &all, "-o", &to])
            .run()
            .fails(1, &["holds no campaign"]);
        assert_eq!(
            fs::read_dir(empty.path()).unwrap().count(),
            0,
            "a file or a draft is left"
        );
    }
}

#[test]
fn the_document_of_the_schema_has_each_column() {
    let document = include_str!("../../../docs/archive-schema.md");
    let rows: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    use linerate_report::export::{Rows, columns};
    let all: HashSet<String> = [Rows::Trials, Rows::Cells]
        .into_iter()
        .flat_map(columns)
        .map(|(name, _)| name)
        .collect();
    for (name, about) in [Rows::Trials, Rows::Cells].into_iter().flat_map(columns) {
        assert!(
            document.contains(&format!("| `{name}` |")) && document.contains(&about),
            "{name}: {about}"
        );
    }
    assert!(rows.iter().all(|name| all.contains(*name)), "{rows:?}");
}

#[test]
fn a_picture_is_a_file_of_its_own() {
    let scratch = Scratch::new();
    let records = campaign(&scratch, 8);
    let list = export("picture", &records).stdout;
    assert!(
        list.contains("  1  Forwarding rate of each cell\n"),
        "{list}"
    );
    assert!(
        list.contains("  The lab\n") && list.contains("  Flame graph: forwarding\n"),
        "{list}"
    );
    for at in 1..=list.lines().count() {
        let file = scratch.file(&format!("{at}.svg"));
        linerate(["export", "picture", &records, &at.to_string(), "-o", &file])
            .run()
            .ok();
        let svg = fs::read_to_string(&file).unwrap();
        let all = elements(&svg);
        let known =
            |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
        assert!(svg.chars().all(known), "{svg:?}");
        let (name, _, attributes) = &all[0];
        assert!(name == "svg" && attributes["xmlns"] == "http://www.w3.org/2000/svg");
        assert!(
            all.iter().any(|(name, _, a)| name == "rect"
                && a["fill"] == "#FFFFFF"
                && a["width"] == "100%")
        );
        assert!(all.iter().all(|(name, _, a)| name != "script"
            && !a.contains_key("class")
            && !a.contains_key("style")));
        assert!(
            svg.contains("SIMULATED") && svg.contains("linerate 0."),
            "{svg}"
        );
    }
    let named = [
        "export",
        "picture",
        &records,
        "Forwarding rate of each cell",
    ];
    assert!(linerate(named).run().ok().stdout.contains("&lt;b a="));
    linerate(["export", "picture", &records, "none"])
        .run()
        .fails(2, &["no picture 'none'", "1  Forwarding rate"]);
    linerate(["export", "picture", &records, "1", "-o", "x.png"])
        .run()
        .fails(2, &["rsvg-convert"]);
}
