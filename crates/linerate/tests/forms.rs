//! Campaigns in the forms that other programs read. Another project's reader reads each of them here.

mod junit;
mod parquet;
mod pictures;
mod prometheus;

use crate::common::{Ended, Scratch, linerate};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
