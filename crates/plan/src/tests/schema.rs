//! The schema and the reader are of one mind.

use super::super::grammar::{Kind, Table};
use super::super::keys::PLAN;
use super::super::reader;
use super::super::schema::schema;
use serde_json::Value;
use std::fmt::Write;

/// What a schema refers to.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let name = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
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
        write!(out, "{separator} {key} = {}", example(root, value, depth - 1)).unwrap();
    }
    if schema["additionalProperties"].is_object() {
        let separator = if out.len() > 1 { "," } else { "" };
        write!(out, "{separator} name = {}", example(root, &schema["additionalProperties"], depth)).unwrap();
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
    let (_, problems) = reader::read(&text, &PLAN);
    let told: Vec<_> =
        problems.iter().map(|p| (&text[p.span.start..p.span.end], &p.message, &p.remedy)).collect();
    assert!(problems.is_empty(), "{told:#?}\n{text}");
}

#[test]
fn the_schema_has_every_key_of_the_reader() {
    fn compare(root: &Value, schema: &Value, table: &'static Table, depth: usize, seen: &mut usize) {
        let schema = resolved(root, schema);
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), table.all().count(), "{}", table.what);
        assert_eq!(schema["additionalProperties"], Value::Bool(false), "{}", table.what);
        for key in table.all() {
            let property = &properties[key.name];
            assert!(
                property["description"].as_str().is_some_and(|d| d.starts_with(key.about)),
                "{}",
                key.name
            );
            let required = schema["required"].as_array().unwrap().iter().any(|r| r == key.name);
            assert_eq!(required, key.required, "{}", key.name);
            *seen += 1;
            match key.kind {
                _ if depth == 0 => {}
                Kind::Table(inner) => compare(root, property, inner, depth - 1, seen),
                Kind::Tables(inner) => compare(root, &property["items"], inner, depth - 1, seen),
                Kind::Named(Kind::Table(inner), _) => {
                    compare(root, &property["additionalProperties"], inner, depth - 1, seen);
                }
                _ => {}
            }
        }
    }
    let (root, mut seen) = (schema(), 0);
    compare(&root, &root, &PLAN, 6, &mut seen);
    assert!(seen > 300, "{seen} keys");
}
