//! The shipped plans against the schema for editors, and the JSON output against its own schema.

use super::{Scratch, linerate, plans};
use crate::common::schema::faults;
use serde_json::{Map, Value, json};
use std::fs;
use toml::de::{DeTable, DeValue};

fn schema() -> Value {
    linerate(["plan", "schema"]).run().ok().json()
}

/// TOML as JSON.
fn value(toml: &DeValue<'_>) -> Value {
    match toml {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Integer(n) => json!(i64::from_str_radix(n.as_str(), n.radix()).unwrap()),
        DeValue::Float(n) => json!(n.as_str().parse::<f64>().unwrap()),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| value(item.get_ref())).collect(),
        DeValue::Table(table) => object(table),
    }
}

fn object(table: &DeTable<'_>) -> Value {
    table
        .iter()
        .map(|(key, item)| (key.get_ref().to_string(), value(item.get_ref())))
        .collect::<Map<_, _>>()
        .into()
}

fn all_faults(root: &Value, text: &str) -> Vec<String> {
    faults(root, &object(DeTable::parse(text).unwrap().get_ref()))
}

#[test]
fn shipped_plans_fit_the_schema() {
    let root = schema();
    assert_eq!(
        root["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    for plan in plans(".").into_iter().chain(plans("lab")) {
        let wrong = all_faults(&root, &fs::read_to_string(&plan).unwrap());
        assert!(wrong.is_empty(), "{}: {wrong:#?}", plan.display());
    }
}

/// The validator and the reader find the same faults.
#[test]
fn plans_that_do_not_fit_the_schema_are_told_from_those_that_do() {
    let root = schema();
    let example = linerate(["plan", "example"]).run().ok().stdout;
    assert_eq!(all_faults(&root, &example), Vec::<String>::new());
    for (from, to) in [
        ("title = ", "titel = "),
        ("flows = 2000", "flows = 0"),
        ("flows = 2000", "flows = \"2000\""),
        ("levels = [0, 100, 1_000]", "levels = 5"),
        ("is = \"slower\"", "is = \"slow\""),
        ("filter = \"stateless\"", "filtre = \"stateless\""),
        ("sets = \"rules.before\"", "sets = 5"),
        ("because = ", "# because = "),
        ("until = \"2 %\"", "until = 2"),
    ] {
        let changed = example.replacen(from, to, 1);
        assert_ne!(changed, example, "{from}");
        assert!(!all_faults(&root, &changed).is_empty(), "{to}");
    }
}

const PLAN: &str = r#"
    title = "order"
    question = "does the order of flows matter?"
    [traffic]
    size = "64 B"
    [trials]
    duration = "20 ms"
    blocks = 2
    [variants.a]
    [variants.b]
    rules = { tool = "nftables", filter = "stateless" }
    [factors.order]
    sets = "traffic.order"
    levels = ["sequential", "random", "zipf:1.1"]
    [compare]
    with = "a"
    [[expect]]
    of = { variant = "b" }
    is = "slower"
    than = { variant = "a" }
    because = "rules cost something"
"#;

/// A value without its fractions, whose last digit may change where they are read again.
fn shape(value: &Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => Value::Null,
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(k, v)| (k.clone(), shape(v)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Bench, run and show print one shape, which is that of the types.
#[test]
fn campaigns_as_json_have_one_shape_and_fit_its_schema() {
    let schema = linerate(["show", "--schema"]).run().ok().json();
    let scratch = Scratch::new();
    let (plan, bench, run) = (
        scratch.file("plan.toml"),
        scratch.file("bench"),
        scratch.file("run"),
    );
    fs::write(&plan, PLAN).unwrap();
    let quick = ["--simulate", "loss=2", "--json", "--out"];
    let benched = [
        "bench",
        "--sizes",
        "64,imix",
        "--trials",
        "2",
        "--duration",
        "20ms",
    ];
    let tests = scratch.file("tests");
    let tested = [
        "rfc2544",
        "--quick",
        "--size",
        "64",
        "--duration",
        "100ms",
        "--test",
        "latency",
    ];
    let both = scratch.file("both");
    let of_both = [
        "bench",
        "--direction",
        "both",
        "--trials",
        "2",
        "--duration",
        "20ms",
    ];
    let run_it = ["run", plan.as_str()];
    let all = [
        (&benched[..], &bench),
        (&run_it, &run),
        (&tested, &tests),
        (&of_both, &both),
    ];
    for (words, folder) in all {
        let printed = linerate(words.iter().chain(&quick).copied().chain([folder.as_str()]))
            .run()
            .no_panic()
            .json();
        assert_eq!(faults(&schema, &printed), Vec::<String>::new(), "{words:?}");
        let shown = linerate(["show", "--json", folder]).run().ok().json();
        assert_eq!(shape(&shown), shape(&printed), "{words:?}");
        let rows = printed["summary"]["rows"].as_array().unwrap();
        for (row, slot) in rows
            .iter()
            .zip(printed["campaign"]["slots"].as_array().unwrap())
        {
            let (name, variant) = (
                row["name"].as_str().unwrap(),
                slot["variant"].as_str().unwrap(),
            );
            assert!(name.starts_with(variant), "{name}: {variant}");
        }
        let of_file =
            |name: &str| json!({ "$ref": format!("#/$defs/{name}"), "$defs": schema["$defs"] });
        for (file, name) in [
            ("trials.jsonl", "TrialRecord"),
            ("campaign.json", "Campaign"),
        ] {
            let text = fs::read_to_string(format!("{folder}/{file}")).unwrap();
            let documents: Vec<Value> = serde_json::Deserializer::from_str(&text)
                .into_iter()
                .map(Result::unwrap)
                .collect();
            for document in &documents {
                assert_eq!(
                    faults(&of_file(name), document),
                    Vec::<String>::new(),
                    "{words:?}"
                );
            }
        }
        let Some(comparison) = printed["summary"]["comparisons"].get(0) else {
            continue;
        };
        let slots = [&comparison["of"], &comparison["than"]];
        assert!(
            slots
                .iter()
                .all(|slot| rows.iter().any(|row| row["slot"] == **slot)),
            "{comparison}"
        );
    }
    // The validator finds keys that are not in the schema, and missing keys.
    let mut other = linerate(["show", "--json", &bench]).run().ok().json();
    other["summary"]["rows"][0]["new"] = 1.into();
    other["host"].as_object_mut().unwrap().remove("kernel");
    assert_eq!(faults(&schema, &other).len(), 2);
}
