//! A validator of the part of JSON Schema that linerate's own schemas use.

use serde_json::{Map, Value};

/// Faults of a value; patterns are not checked.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    collect(schema, schema, value, "", &mut out);
    out
}

fn collect(root: &Value, schema: &Value, value: &Value, path: &str, out: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name
            .strip_prefix("#/$defs/")
            .expect("all definitions are in one place");
        assert!(root["$defs"][name].is_object(), "no definition {name}");
        return collect(root, &root["$defs"][name], value, path, out);
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let fits = |one: &&Value| {
            let mut wrong = Vec::new();
            collect(root, one, value, path, &mut wrong);
            wrong.is_empty()
        };
        if !any.iter().any(|one| fits(&one)) {
            out.push(format!("{path}: none of {any:?} is {value}"));
        }
    }
    if !has_type(&schema["type"], value) {
        out.push(format!(
            "{path}: {value} is not of the type {}",
            schema["type"]
        ));
    }
    let is_one = |words: &Value| words.as_array().is_none_or(|words| words.contains(value));
    if !is_one(&schema["enum"]) || schema.get("const").is_some_and(|c| c != value) {
        out.push(format!("{path}: {value} is none of {}", schema["enum"]));
    }
    let number = value.as_f64();
    let beyond = |bound: &str, outside: fn(f64, f64) -> bool| {
        number.is_some_and(|n| {
            schema[bound]
                .as_f64()
                .is_some_and(|bound| outside(n, bound))
        })
    };
    if beyond("minimum", |n, least| n < least) || beyond("maximum", |n, most| n > most) {
        out.push(format!("{path}: {value} is out of bounds"));
    }
    if let Some(items) = value.as_array() {
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        if items.len() < least {
            out.push(format!("{path}: too short"));
        }
        for (at, item) in items.iter().enumerate() {
            let of_place = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
            if of_place.is_object() {
                collect(root, of_place, item, &format!("{path}[{at}]"), out);
            }
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
    for required in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !members.contains_key(required) {
            out.push(format!("{path}: {required} is missing"));
        }
    }
    // Of names that are numbers, one pattern.
    let pattern = schema["patternProperties"]
        .as_object()
        .and_then(|all| all.values().next());
    for (key, member) in members {
        let path = format!("{path}.{key}");
        match (
            schema["properties"].get(key),
            &schema["additionalProperties"],
        ) {
            (Some(property), _) => collect(root, property, member, &path, out),
            (None, _) if pattern.is_some() => collect(root, pattern.unwrap(), member, &path, out),
            (None, Value::Bool(false)) => out.push(format!("{path}: there is no such key")),
            (None, other) if other.is_object() => collect(root, other, member, &path, out),
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
        "null" => value.is_null(),
        other => panic!("the validator does not know the type {other}"),
    };
    match wanted {
        Value::String(one) => is(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}
