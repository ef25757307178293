//! The JSON Schema of plans, for editors, and the fields that a factor may set: both made from the tables that the reader uses.

use super::diagnostic::{Diagnostic, meant};
use super::grammar::{Key, Kind, Table};
use super::keys::{PLAN, SETTINGS, TRAFFIC};
use super::settings::DUTS;
use super::sysctl;
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
    object.insert(
        "$schema".into(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
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
    let required: Vec<&str> = table
        .all()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
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
    object.insert(
        "description".into(),
        json!(format!("{}{meanings}", key.about)),
    );
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
        Kind::Count { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Form(form) | Kind::Within(form, ..) => {
            json!({ "type": "string", "pattern": form.pattern, "examples": [form.example] })
        }
        Kind::Optional { form, .. } => json!({
            "anyOf": [{ "type": "boolean" }, { "type": "string", "pattern": form.pattern, "examples": [form.example] }]
        }),
        Kind::CpuCount => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 8192 }, { "const": "all" }] })
        }
        Kind::Dut => dut(),
        Kind::Setting => scalar(),
        Kind::Choice(words) => {
            json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
        }
        Kind::Levels => json!({ "type": "array", "items": scalar(), "minItems": 1 }),
        Kind::Selector => selector(),
        Kind::List(of) => {
            json!({ "type": "array", "items": self::kind(of, definitions), "minItems": 1 })
        }
        Kind::OneOrMore(of) => {
            let one = if matches!(of, Kind::Line) {
                fields()
            } else {
                self::kind(of, definitions)
            };
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
    let plain: Vec<&str> = DUTS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.contains('='))
        .collect();
    json!({ "anyOf": [{ "enum": plain }, { "type": "string", "pattern": "^known-(rate|loss|numbers|duplication|delays?|queue|outage)=.+$" }] })
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
    let paths = all().into_iter().map(|(path, _)| path);
    let (open, closed): (Vec<String>, Vec<String>) = paths.partition(|path| path.ends_with('.'));
    let open = open.join("|").replace('.', "\\.");
    json!({ "anyOf": [{ "enum": closed }, { "type": "string", "pattern": format!("^({open}).+$") }] })
}

/// A field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Whether it is one of the traffic's; otherwise one of the variants'.
    pub(super) traffic: bool,
    /// The keys that lead to it, without `traffic`.
    pub(super) keys: Vec<String>,
    /// Kind of its value.
    pub(super) kind: &'static Kind,
}

impl Field {
    /// Reads a path.
    pub(super) fn parse(path: &str) -> Result<Field, Diagnostic> {
        let path = path.trim();
        let all = all();
        // The name that follows an open path may have dots of its own.
        let is_it = |(known, _): &&(String, &Kind)| {
            let open = known.ends_with('.');
            if open {
                path.len() > known.len() && path.starts_with(known)
            } else {
                *known == path
            }
        };
        let Some((known, kind)) = all.iter().find(is_it) else {
            return Err(unknown(path, &all));
        };
        let (traffic, rest) = path
            .strip_prefix("traffic.")
            .map_or((false, path), |rest| (true, rest));
        let dots = known.matches('.').count() - usize::from(traffic);
        let mut keys: Vec<String> = rest.splitn(dots + 1, '.').map(String::from).collect();
        if let [table, name] = &mut keys[..]
            && table == "sysctls"
        {
            *name = sysctl::dotted(name).into_owned();
        }
        Ok(Field {
            traffic,
            keys,
            kind,
        })
    }

    /// The path as it is written.
    pub(super) fn path(&self) -> String {
        let prefix = if self.traffic { "traffic." } else { "" };
        format!("{prefix}{}", self.keys.join("."))
    }
}

fn unknown(path: &str, all: &[(String, &Kind)]) -> Diagnostic {
    let shown = path.chars().take(60).collect::<String>();
    let paths = || {
        all.iter()
            .map(|(path, _)| path.as_str())
            .filter(|path| !path.ends_with('.'))
    };
    let first = path.split('.').next().unwrap_or_default();
    let near: Vec<&str> = paths()
        .filter(|known| known.starts_with(&format!("{first}.")))
        .collect();
    let examples = match near.as_slice() {
        [] => "rules.before, traffic.flows, interface.queues and others (docs/plans.md)".into(),
        near => near.join(", "),
    };
    if near
        .iter()
        .any(|known| known.starts_with(&format!("{path}.")))
    {
        let help = format!("a factor sets single values: {examples}");
        return Diagnostic::new(format!("'{path}' is a table, not a single value")).remedy(help);
    }
    // Perhaps the last part is right and the way to it is not.
    let last = path.rsplit('.').next();
    let end = || paths().find(|known| known.rsplit('.').next() == last);
    let help = match meant(path, paths()).or_else(end) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {examples}"),
    };
    Diagnostic::new(format!("there is no field '{shown}' for a factor to set")).remedy(help)
}

/// All paths with their kinds. A path that ends in a dot takes any last part.
pub(super) fn all() -> Vec<(String, &'static Kind)> {
    let mut paths = Vec::new();
    collect(&TRAFFIC, "traffic.", &mut paths);
    collect(&SETTINGS, "", &mut paths);
    paths
}

fn collect(table: &'static Table, prefix: &str, paths: &mut Vec<(String, &'static Kind)>) {
    for key in table.all() {
        let path = format!("{prefix}{}", key.name);
        match &key.kind {
            Kind::Table(inner) => collect(inner, &(path + "."), paths),
            Kind::Named(of, _) => paths.push((path + ".", of)),
            Kind::List(_) | Kind::Tables(_) | Kind::Text => {}
            kind => paths.push((path, kind)),
        }
    }
}

#[cfg(test)]
mod field_tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_path() {
        for (path, _) in all() {
            let path = if path.ends_with('.') {
                path + "a.b"
            } else {
                path
            };
            assert_eq!(Field::parse(&path).unwrap().path(), path);
        }
        let dotted = Field::parse("sysctls.net.core.netdev_budget").unwrap();
        assert_eq!(dotted.keys, ["sysctls", "net.core.netdev_budget"]);
    }

    #[test]
    fn wrong_paths_say_what_was_meant() {
        let help = |path: &str| Field::parse(path).unwrap_err().remedy.unwrap();
        assert_eq!(help("rules.befor"), "did you mean \"rules.before\"?");
        assert_eq!(help("flows"), "did you mean \"traffic.flows\"?");
        assert_eq!(help("before"), "did you mean \"rules.before\"?");
        assert!(help("rules").contains("rules.before, rules.table"));
        assert!(help("rules.nothing-like-it").contains("rules.before"));
        assert!(
            Field::parse("modules").is_err()
                && Field::parse("").is_err()
                && Field::parse("sysctls.").is_err()
        );
    }
}
