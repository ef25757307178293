//! The records of a campaign, as files.

use crate::common::schema::faults;
use crate::common::{Scratch, linerate, linerate_line};
use linerate_report::printed::{SCHEMA, schema_of_types};
use serde_json::{Value, json};
use std::fs;

const PLAN: &str = r#"# Seven flows are few.
title = "NAT"
question = "What does NAT cost?"
traffic.flows = 7

[variants.router]
[variants.nat]
from = "nat"

[trials]
duration = "20 ms"
blocks = 2
"#;

fn document(scratch: &Scratch, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(scratch.file(file)).unwrap()).unwrap()
}

#[test]
fn a_record_keeps_the_plan_as_its_author_wrote_it() {
    let scratch = Scratch::new();
    fs::write(scratch.file("plan.toml"), PLAN).unwrap();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run().no_panic();
    let source = |records: &str| {
        let campaign = document(&scratch, &format!("{records}/campaign.json"));
        campaign["planned"]["source"].as_str().unwrap().to_string()
    };
    run("run plan.toml --simulate ok --out run --quiet");
    assert_eq!(source("run"), PLAN);
    let page = run("report run").stdout;
    assert!(page.contains("# Seven flows are few."), "{page}");
    // Arguments over the file are part of the plan that was carried out, and so is what a bench is asked for.
    run("search plan.toml --duration 100ms --budget 2s --simulate ok --out search --quiet");
    run("bench --family 4 --trials 1 --duration 20ms --simulate ok --out bench --quiet");
    for (records, says) in [
        ("search", "budget = \"2 s\""),
        ("bench", "duration = \"20 ms\""),
    ] {
        assert!(source(records).contains(says), "{}", source(records));
        fs::write(scratch.file("again.toml"), source(records)).unwrap();
        linerate_line("plan check again.toml")
            .dir(scratch.path())
            .run()
            .ok();
    }
}

/// A record of version 1, and the page that its linerate showed.
const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/records/v1");

#[test]
fn records_of_version_1_are_read() {
    let page = fs::read_to_string(format!("{V1}/show.txt")).unwrap();
    // The page names the folder where show.txt has the word DIRECTORY, so a folder of this name has the same lines.
    let named = Scratch::new();
    let shown = |folder: &str| {
        let link = named.path().join("DIRECTORY");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(folder, &link).unwrap();
        let show = linerate(["show", "--trials", "DIRECTORY"]).dir(named.path());
        let shown = show.run().ok().stdout;
        shown.replace("Records: DIRECTORY\n", "")
    };
    assert_eq!(shown(V1), page);
    let json = linerate(["show", "--json", V1]).run().ok().json();
    assert_eq!(json["campaign"]["version"], 2);
    assert_eq!(
        json["campaign"]["slots"][0]["traffic"]["mix"]["lengths_fcs"],
        json!([64])
    );
    assert_eq!(json["campaign"]["planned"]["source"], Value::Null);
    let schema = linerate(["show", "--schema"]).run().ok().json();
    assert_eq!(faults(&schema, &json), Vec::<String>::new());
    // Older ones lack some fields.
    let scratch = Scratch::new();
    for file in ["campaign.json", "host.json", "trials.jsonl", "summary.json"] {
        fs::copy(format!("{V1}/{file}"), scratch.file(file)).unwrap();
    }
    let mut summary = document(&scratch, "summary.json");
    summary.as_object_mut().unwrap().remove("searches");
    for explanation in summary["explanations"].as_array_mut().unwrap() {
        explanation.as_object_mut().unwrap().remove("balance");
    }
    fs::write(scratch.file("summary.json"), summary.to_string()).unwrap();
    assert_eq!(shown(&scratch.file("")), page);
}

/// A frame's length stands once in a slot, and its cell repeats nothing of it.
#[test]
fn a_slot_says_nothing_twice() {
    let scratch = Scratch::new();
    let line = "bench --sizes 1017 --family 4 --trials 1 --duration 20ms --simulate ok --out bench --quiet";
    linerate_line(line).dir(scratch.path()).run().no_panic();
    let campaign = document(&scratch, "bench/campaign.json");
    let slot = campaign["slots"][1].as_object().unwrap();
    assert_eq!(slot["traffic"]["mix"]["lengths_fcs"], json!([1017]));
    for field in [
        "family",
        "transport",
        "frame",
        "lengths_fcs",
        "l4_checksum",
        "signed",
        "flows",
        "order",
    ] {
        assert!(!slot.contains_key(field), "{field}");
    }
    let cell = campaign["planned"]["plan"]["cells"][1].as_object().unwrap();
    assert_eq!(cell.keys().collect::<Vec<_>>(), ["kind", "lane", "rate"]);
    // Pages have the frames all the same.
    let row = linerate(["show", &scratch.file("bench")]).run().ok().stdout;
    assert!(row.contains("1017"), "{row}");
}

/// The words of a type: `integer or null`, `list of numbers`.
fn of_type(schema: &Value, root: &Value) -> String {
    let listed = |all: &[Value], between: &str| {
        all.iter()
            .map(|one| of_type(one, root))
            .collect::<Vec<_>>()
            .join(between)
    };
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix("#/$defs/"))
    {
        let words = words(&root["$defs"][name]);
        return words.map_or(format!("[{name}](#{})", name.to_lowercase()), |words| {
            words.join(", ")
        });
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return listed(any, " or ");
    }
    match &schema["type"] {
        Value::Array(several) => {
            let one = |name: &Value| {
                let mut one = schema.clone();
                one["type"] = name.clone();
                of_type(&one, root)
            };
            several.iter().map(one).collect::<Vec<_>>().join(" or ")
        }
        Value::String(name) if name == "array" => match schema["prefixItems"].as_array() {
            Some(parts) => format!("\\[{}\\]", listed(parts, ", ")),
            None => format!("list of {}", of_type(&schema["items"], root)),
        },
        Value::String(name) if name == "object" => match &schema["additionalProperties"] {
            Value::Object(_) => {
                format!("name -> {}", of_type(&schema["additionalProperties"], root))
            }
            _ => "object".into(),
        },
        Value::String(name) => name.clone(),
        _ => "any".into(),
    }
}

/// The values of an enum without data, as code.
fn words(schema: &Value) -> Option<Vec<String>> {
    let code = |word: &Value| word.as_str().map(|word| format!("`{word}`"));
    match (&schema["enum"], &schema["oneOf"]) {
        (Value::Array(all), _) => all.iter().map(code).collect(),
        (_, Value::Array(all)) => {
            let of = |one: &Value| words(one).or_else(|| Some(vec![code(&one["const"])?]));
            Some(all.iter().map(of).collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}

/// The definitions that a schema refers to, with those that they refer to, in the order of the fields.
fn refers_to<'s>(schema: &'s Value, root: &'s Value, known: &mut Vec<&'s str>) {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix("#/$defs/"))
        && !known.contains(&name)
    {
        known.push(name);
        refers_to(&root["$defs"][name], root, known);
    }
    match schema {
        Value::Object(members) => members
            .values()
            .for_each(|inner| refers_to(inner, root, known)),
        Value::Array(items) => items.iter().for_each(|inner| refers_to(inner, root, known)),
        _ => {}
    }
}

fn row(name: &str, field: &Value, absent: bool, root: &Value) -> String {
    let absent = if absent { ", or absent" } else { "" };
    let about = field["description"]
        .as_str()
        .unwrap_or_default()
        .replace('|', "\\|");
    format!(
        "| `{name}` | {}{absent} | {about} |\n",
        of_type(field, root)
    )
}

fn section(name: &str, root: &Value) -> String {
    let schema = &root["$defs"][name];
    let about = schema["description"].as_str().unwrap_or_default();
    let mut out = format!("\n## {name}\n\n{about}\n\n");
    if let Some(fields) = schema["properties"].as_object() {
        out += "| field | type | |\n|---|---|---|\n";
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, field) in fields {
            out += &row(name, field, !required.contains(&name.as_str().into()), root);
        }
    } else if let Some(forms) = schema["oneOf"].as_array() {
        out += "| form | type | |\n|---|---|---|\n";
        for form in forms {
            let (name, inner) = match form["properties"]
                .as_object()
                .and_then(|all| all.iter().next())
            {
                Some((name, inner)) => (name.as_str(), inner),
                None => (form["const"].as_str().unwrap_or_default(), form),
            };
            let mut inner = inner.clone();
            inner["description"] = form["description"].clone();
            out += &row(name, &inner, false, root);
        }
    }
    out
}

/// The variable that makes the test write the schema and the document instead of only comparing them.
const WRITE: &str = "LINERATE_WRITE_DOCUMENTS";

/// docs/record-fields.md is made of the schema, which comes from the types.
#[test]
fn the_document_of_all_fields_is_that_of_the_schema() {
    let types = schema_of_types();
    if std::env::var_os(WRITE).is_some() {
        fs::write(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../report/src/printed.schema.json"
            ),
            &types,
        )
        .unwrap();
    }
    assert!(
        SCHEMA == types,
        "printed.schema.json is not that of the types: {WRITE}=1 writes it"
    );
    let root = linerate_line("show --schema").run().ok().json();
    let files = [
        "Campaign",
        "HostFacts",
        "TrialRecord",
        "SlotFacts",
        "Summary",
    ];
    let mut names = files.to_vec();
    files
        .into_iter()
        .for_each(|name| refers_to(&root["$defs"][name], &root, &mut names));
    let beginning = "# Fields of records\n\nAll fields of the files of a record ([records.md](records.md)), as the JSON Schema has them that `linerate show --schema` prints. A test \
        makes this page of that schema. Rates are frames/s, times nanoseconds (`_ns`), lengths bytes with FCS (`_fcs`), shares 0 to 1.\n\nFiles: \
        `campaign.json` is a [Campaign](#campaign), `host.json` [HostFacts](#hostfacts), each line of `trials.jsonl` a [TrialRecord](#trialrecord), each line of \
        `facts.jsonl` [SlotFacts](#slotfacts), `summary.json` a [Summary](#summary).\n";
    let with_fields = |name: &&&str| words(&root["$defs"][**name]).is_none();
    let all: String = names
        .iter()
        .filter(with_fields)
        .map(|name| section(name, &root))
        .collect();
    let (file, made) = (
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record-fields.md"),
        format!("{beginning}{all}"),
    );
    if std::env::var_os(WRITE).is_some() {
        fs::write(file, &made).unwrap();
    }
    assert!(
        fs::read_to_string(file).unwrap() == made,
        "docs/record-fields.md is not that of the schema: {WRITE}=1 writes it"
    );
    // The guide names no field that is not there.
    let guide = fs::read_to_string(file.replace("record-fields", "records")).unwrap();
    let known = |field: &str| {
        root["$defs"]
            .as_object()
            .unwrap()
            .values()
            .any(|of| has_field(of, field))
    };
    let mut within = false;
    for line in guide.lines() {
        within = line.starts_with("| field |") || within && line.starts_with('|');
        let first = line
            .split('|')
            .nth(1)
            .filter(|_| within)
            .unwrap_or_default();
        for field in first.split('`').skip(1).step_by(2) {
            let last = field.trim_end_matches("[]").rsplit('.').next().unwrap();
            assert!(known(last), "docs/records.md: no field '{field}' in {line}");
        }
    }
}

fn has_field(schema: &Value, field: &str) -> bool {
    schema["properties"].get(field).is_some()
        || schema["oneOf"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|form| has_field(form, field))
}
