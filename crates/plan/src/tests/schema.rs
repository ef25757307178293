//! The schema and the reader are of one mind.

use super::super::grammar::{Kind, Table};
use super::super::keys::{PLAN, SETTINGS, TRIALS};
use super::super::reader;
use super::super::schema::schema;
use super::Span;
use crate::Plan;
use serde_json::Value;
use std::fmt::Write;

/// The schema behind a reference.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix("#/$defs/"));
    name.map_or(schema, |name| &root["$defs"][name])
}

/// A value, in TOML's inline form, that a schema allows.
fn example(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = resolved(root, schema);
    if let Some(any) = schema["anyOf"].as_array() {
        return example(root, any.last().unwrap(), depth);
    }
    if let Some(first) = schema["examples"].get(0).or_else(|| schema["enum"].get(0)) {
        return first.to_string();
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    match &schema["type"] {
        _ if pattern.starts_with("^known-") => "\"known-loss=1000\"".into(),
        _ if pattern.contains("sysctls") => "\"sysctls.net.x\"".into(),
        Value::String(kind) => match kind.as_str() {
            "boolean" => "true".into(),
            "integer" => schema["minimum"].to_string(),
            "array" => format!("[{}]", example(root, &schema["items"], depth)),
            "object" => object(root, schema, depth),
            _ => "\"word\"".into(),
        },
        _ => "7".into(),
    }
}

fn object(root: &Value, schema: &Value, depth: usize) -> String {
    let mut out = String::from("{");
    let properties = schema["properties"].as_object().into_iter().flatten();
    // Sections for systems contain each other's like: a few levels show all keys.
    for (key, value) in properties.filter(|_| depth > 0) {
        let separator = if out.len() > 1 { "," } else { "" };
        write!(
            out,
            "{separator} {key} = {}",
            example(root, value, depth - 1)
        )
        .unwrap();
    }
    if schema["additionalProperties"].is_object() {
        let separator = if out.len() > 1 { "," } else { "" };
        write!(
            out,
            "{separator} name = {}",
            example(root, &schema["additionalProperties"], depth)
        )
        .unwrap();
    }
    out + " }"
}

#[test]
fn the_reader_takes_every_key_of_the_schema() {
    let root = schema();
    let mut text = String::new();
    let mut keys = 0;
    for (key, value) in root["properties"].as_object().unwrap() {
        writeln!(text, "{key} = {}", example(&root, value, 7)).unwrap();
        keys += 1;
    }
    assert!(keys >= 13 && text.len() > 2000, "{text}");
    let (_, problems) = reader::read(&Plan::source(text.as_bytes()).unwrap(), &PLAN);
    let told: Vec<_> = problems
        .iter()
        .map(|p| (&text[p.span.start..p.span.end], &p.message, &p.remedy))
        .collect();
    assert!(problems.is_empty(), "{told:#?}\n{text}");
}

#[test]
fn the_schema_has_every_key_of_the_reader() {
    fn compare(
        root: &Value,
        schema: &Value,
        table: &'static Table,
        depth: usize,
        seen: &mut usize,
    ) {
        let schema = resolved(root, schema);
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), table.all().count(), "{}", table.what);
        assert_eq!(
            schema["additionalProperties"],
            Value::Bool(false),
            "{}",
            table.what
        );
        for key in table.all() {
            let property = &properties[key.name];
            assert!(
                property["description"]
                    .as_str()
                    .is_some_and(|d| d.starts_with(key.about)),
                "{}",
                key.name
            );
            let required = schema["required"]
                .as_array()
                .unwrap()
                .iter()
                .any(|r| r == key.name);
            assert_eq!(required, key.required, "{}", key.name);
            *seen += 1;
            match key.kind {
                _ if depth == 0 => {}
                Kind::Table(inner) => compare(root, property, inner, depth - 1, seen),
                Kind::Tables(inner) => compare(root, &property["items"], inner, depth - 1, seen),
                Kind::Named(Kind::Table(inner), _) => {
                    compare(
                        root,
                        &property["additionalProperties"],
                        inner,
                        depth - 1,
                        seen,
                    );
                }
                _ => {}
            }
        }
    }
    let (root, mut seen) = (schema(), 0);
    compare(&root, &root, &PLAN, 6, &mut seen);
    assert!(seen > 300, "{seen} keys");
}

/// Every setting of a plan takes effect: no key of the grammar is lost on its way into the types.
#[test]
fn every_key_that_a_factor_can_set_reaches_its_type() {
    use crate::{lower, schema, value};
    let base = "rules = { tool = \"nftables\", filter = \"stateless\" }\nimage = { file = \"x\", install = \"x\", undo = \"x\" }";
    let (base, problems) = reader::read(&Plan::source(base.as_bytes()).unwrap(), &SETTINGS);
    assert!(problems.is_empty());
    let texts = [
        "1000 B",
        "imix",
        "10 %",
        "20 ms",
        "5.17",
        "1,3",
        "random",
        "5 kpps",
        "on-the-way",
        "bridge",
        "all",
        "1 Gbit/s",
    ];
    for (path, kind) in schema::all() {
        // A file takes the place of the rules that are written, and is read elsewhere.
        if path == "rules.file" || path == "rules.map." {
            continue;
        }
        let path = if path.ends_with('.') {
            path + "name"
        } else {
            path
        };
        let field = schema::Field::parse(&path).unwrap();
        let words = match kind {
            Kind::Choice(words) => words.iter().map(|(word, _)| Value::from(*word)).collect(),
            _ => texts.map(Value::from).to_vec(),
        };
        let raw = words
            .into_iter()
            .chain([7.into(), 700.into(), true.into(), false.into()]);
        let changes = |json: Value| {
            let node = value::Node {
                span: Span::default(),
                value: value::Value::Scalar(json),
            };
            let (mut settings, mut traffic) = (base.clone(), value::Tree::default());
            let tree = if field.traffic {
                &mut traffic
            } else {
                &mut settings
            };
            tree.set(&field.keys, &node);
            lower::settings(&settings) != lower::settings(&base)
                || lower::traffic(&traffic) != lower::traffic(&value::Tree::default())
        };
        assert!(
            raw.filter_map(|raw| kind.read(&raw).ok()).any(changes),
            "{path}"
        );
    }
    let (trials, _) = reader::read(
        &Plan::source(b"duration = \"1 s\"\nbudget = \"9 s\"\npause = \"1 ms\"").unwrap(),
        &TRIALS,
    );
    let plan = value::Tree {
        entries: vec![value::Entry {
            key: "trials".into(),
            key_span: Span::default(),
            node: value::Node {
                span: Span::default(),
                value: value::Value::Table(trials),
            },
        }],
    };
    let trials = lower::trials(&plan, false);
    assert_eq!(
        (trials.duration_ns, trials.budget_ns, trials.pause_ns),
        (1_000_000_000, Some(9_000_000_000), 1_000_000)
    );
}
