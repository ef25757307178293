//! The JSON Schema of plans, for editors: made from the tables that the reader uses.

use super::field;
use super::grammar::{Key, Kind, Table};
use super::keys::PLAN;
use super::settings::DUTS;
use serde_json::{Map, Value, json};

/// The schema, draft 2020-12. TOML's integers are JSON's, its tables are objects.
pub fn schema() -> Value {
    of(
        &PLAN,
        "A plan of linerate",
        "An experiment: what is compared with what, under which load, how often, and what is expected.",
    )
}

/// The schema of files whose keys are those of `root`.
pub(crate) fn of(root: &'static Table, title: &str, description: &str) -> Value {
    let mut definitions = Map::new();
    let mut schema = table(root, &mut definitions);
    let object = schema.as_object_mut().expect("tables are objects");
    object.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    object.insert("title".into(), json!(title));
    object.insert("description".into(), json!(description));
    object.insert("$defs".into(), Value::Object(definitions));
    schema
}

fn table(table: &'static Table, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for key in table.all() {
        properties.insert(key.name.into(), property(key, definitions));
    }
    let required: Vec<&str> = table.all().filter(|key| key.required).map(|key| key.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn property(key: &'static Key, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = kind(&key.kind, definitions);
    let object = schema.as_object_mut().expect("schemas are objects");
    let words = match &key.kind {
        Kind::Choice(words) => Some(*words),
        Kind::List(Kind::Choice(words)) | Kind::OneOrMore(Kind::Choice(words)) => Some(*words),
        Kind::Dut => Some(&DUTS[..]),
        _ => None,
    };
    let meanings = words
        .unwrap_or_default()
        .iter()
        .map(|(word, meaning)| format!(" {word}: {meaning}."))
        .collect::<String>();
    object.insert("description".into(), json!(format!("{}{meanings}", key.about)));
    schema
}

/// A table that occurs in several places is defined once and referred to.
fn defined(of: &'static Table, definitions: &mut Map<String, Value>) -> Value {
    let name: String = of
        .what
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == ' ')
        .collect::<String>()
        .replace(' ', "-");
    if !definitions.contains_key(&name) {
        definitions.insert(name.clone(), Value::Null);
        let schema = table(of, definitions);
        definitions.insert(name.clone(), schema);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn kind(kind: &'static Kind, definitions: &mut Map<String, Value>) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Line => json!({ "type": "string", "minLength": 1 }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Form(form) | Kind::Within(form, ..) => {
            json!({ "type": "string", "pattern": form.pattern, "examples": [form.example] })
        }
        Kind::CpuCount => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 8192 }, { "const": "all" }] })
        }
        Kind::Dut => dut(),
        Kind::Setting => scalar(),
        Kind::Choice(words) => json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() }),
        Kind::Levels => json!({ "type": "array", "items": scalar(), "minItems": 1 }),
        Kind::Selector => selector(),
        Kind::List(of) => json!({ "type": "array", "items": self::kind(of, definitions), "minItems": 1 }),
        Kind::OneOrMore(of) => {
            let one = if matches!(of, Kind::Line) { fields() } else { self::kind(of, definitions) };
            json!({ "anyOf": [one.clone(), { "type": "array", "items": one, "minItems": 1 }] })
        }
        Kind::Table(of) => defined(of, definitions),
        Kind::Tables(of) => json!({ "type": "array", "items": defined(of, definitions) }),
        Kind::Named(of, _) => {
            json!({ "type": "object", "additionalProperties": self::kind(of, definitions) })
        }
    }
}

fn scalar() -> Value {
    json!({ "type": ["integer", "number", "boolean", "string"] })
}

fn dut() -> Value {
    let plain: Vec<&str> = DUTS.iter().map(|(name, _)| *name).filter(|name| !name.contains('=')).collect();
    json!({ "anyOf": [{ "enum": plain }, { "type": "string", "pattern": "^known-(rate|loss|duplication|delay)=.+$" }] })
}

fn selector() -> Value {
    let cells = json!({
        "type": "object",
        "properties": { "variant": { "type": "string", "description": "A variant's name." } },
        "additionalProperties": scalar(),
        "minProperties": 1
    });
    json!({ "anyOf": [{ "type": "string", "minLength": 1 }, cells] })
}

/// The fields that a factor may set.
fn fields() -> Value {
    let paths = field::all().into_iter().map(|(path, _)| path);
    let (open, closed): (Vec<String>, Vec<String>) = paths.partition(|path| path.ends_with('.'));
    let open = open.join("|").replace('.', "\\.");
    json!({ "anyOf": [{ "enum": closed }, { "type": "string", "pattern": format!("^({open}).+$") }] })
}
