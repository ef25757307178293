//! The shipped plans are held against the schema that editors get: by a validator of the part of JSON Schema that it uses.

use super::{linerate, plans};
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

/// What is wrong with a value; patterns are not looked at.
fn faults(root: &Value, schema: &Value, value: &Value, path: &str, out: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").expect("all definitions are in one place");
        assert!(root["$defs"][name].is_object(), "no definition {name}");
        return faults(root, &root["$defs"][name], value, path, out);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |one: &&Value| {
            let mut wrong = Vec::new();
            faults(root, one, value, path, &mut wrong);
            wrong.is_empty()
        };
        if !any.iter().any(|one| fits(&one)) {
            out.push(format!("{path}: none of {any:?} is {value}"));
        }
    }
    if !has_type(&schema["type"], value) {
        out.push(format!("{path}: {value} is not of the type {}", schema["type"]));
    }
    let is_one = |words: &Value| words.as_array().is_none_or(|words| words.contains(value));
    if !is_one(&schema["enum"]) || schema.get("const").is_some_and(|c| c != value) {
        out.push(format!("{path}: {value} is none of {}", schema["enum"]));
    }
    let number = value.as_f64();
    let beyond = |bound: &str, outside: fn(f64, f64) -> bool| {
        number.is_some_and(|n| schema[bound].as_f64().is_some_and(|bound| outside(n, bound)))
    };
    if beyond("minimum", |n, least| n < least) || beyond("maximum", |n, most| n > most) {
        out.push(format!("{path}: {value} is out of bounds"));
    }
    if let Some(items) = value.as_array() {
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        if items.len() < least {
            out.push(format!("{path}: too short"));
        }
        for (at, item) in items.iter().enumerate().filter(|_| schema["items"].is_object()) {
            faults(root, &schema["items"], item, &format!("{path}[{at}]"), out);
        }
    }
    if let Some(members) = value.as_object() {
        object_faults(root, schema, members, path, out);
    }
}

fn object_faults(
    root: &Value,
    schema: &Value,
    members: &Map<String, Value>,
    path: &str,
    out: &mut Vec<String>,
) {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(required) {
            out.push(format!("{path}: {required} is missing"));
        }
    }
    for (key, member) in members {
        let path = format!("{path}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(property), _) => faults(root, property, member, &path, out),
            (None, Value::Bool(false)) => out.push(format!("{path}: there is no such key")),
            (None, other) if other.is_object() => faults(root, other, member, &path, out),
            _ => {}
        }
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |wanted: &str| match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the validator does not know the type {other}"),
    };
    match wanted {
        Value::String(one) => is(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn all_faults(root: &Value, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let table = DeTable::parse(text).unwrap();
    faults(root, root, &object(table.get_ref()), "", &mut out);
    out
}

#[test]
fn shipped_plans_fit_the_schema() {
    let root = schema();
    assert_eq!(root["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for plan in plans(".").into_iter().chain(plans("lab")) {
        let wrong = all_faults(&root, &fs::read_to_string(&plan).unwrap());
        assert!(wrong.is_empty(), "{}: {wrong:#?}", plan.display());
    }
}

/// The validator finds what the reader finds.
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
