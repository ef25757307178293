//! The fields that a factor may set, by their path: `rules.before`, `interface.in.queues`, `sysctls.net.core.netdev_budget`, `traffic.flows`.

use super::diagnostic::{Diagnostic, meant};
use super::grammar::{Kind, Table};
use super::keys::{SETTINGS, TRAFFIC};

/// A field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Whether it is one of the traffic's; otherwise one of the variants'.
    pub(super) traffic: bool,
    /// The keys that lead to it, without `traffic`.
    pub(super) keys: Vec<String>,
    /// What it takes.
    pub(super) kind: &'static Kind,
}

impl Field {
    /// Reads a path.
    pub(super) fn parse(path: &str) -> Result<Field, Diagnostic> {
        let (traffic, rest, table) = match path.trim().strip_prefix("traffic.") {
            Some(rest) => (true, rest, &TRAFFIC),
            None => (false, path.trim(), &SETTINGS),
        };
        match walk(table, rest, Vec::new()) {
            Step::Found(keys, kind) => Ok(Field { traffic, keys, kind }),
            Step::Inner(what) => {
                let help = format!("a factor sets single values: {}", examples(rest));
                Err(Diagnostic::new(format!("'{path}' is {what}, not a single value")).remedy(help))
            }
            Step::Nowhere => Err(unknown(path)),
        }
    }

    /// The path as it is written.
    pub(super) fn path(&self) -> String {
        let prefix = if self.traffic { "traffic." } else { "" };
        format!("{prefix}{}", self.keys.join("."))
    }
}

enum Step {
    Found(Vec<String>, &'static Kind),
    Inner(String),
    Nowhere,
}

fn walk(table: &'static Table, path: &str, mut keys: Vec<String>) -> Step {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let Some(key) = table.find(name) else { return Step::Nowhere };
    keys.push(key.name.to_string());
    match (&key.kind, rest) {
        (Kind::Table(inner), Some(rest)) => walk(inner, rest, keys),
        (Kind::Named(of, _), Some(rest)) if !rest.is_empty() => {
            // Names of settings have dots of their own.
            keys.push(rest.to_string());
            Step::Found(keys, of)
        }
        (Kind::Table(_) | Kind::Named(..), None) => Step::Inner("a table".into()),
        (Kind::List(_) | Kind::Tables(_) | Kind::Text, None) => Step::Inner("a list".into()),
        (_, None) => Step::Found(keys, &key.kind),
        _ => Step::Nowhere,
    }
}

fn unknown(path: &str) -> Diagnostic {
    let all = all();
    let wrong = Diagnostic::new(format!(
        "there is no field '{}' for a factor to set",
        path.chars().take(60).collect::<String>()
    ));
    if let Some(near) = meant(path, all.iter().map(String::as_str)) {
        return wrong.remedy(format!("did you mean \"{near}\"?"));
    }
    // Perhaps the last part is right and the way to it is not.
    let last = path.rsplit('.').next().unwrap_or(path);
    let ends: Vec<&String> = all.iter().filter(|p| p.rsplit('.').next() == Some(last)).collect();
    match ends.first() {
        Some(full) => wrong.remedy(format!("did you mean \"{full}\"?")),
        None => wrong.remedy(format!("there are {}", examples(path))),
    }
}

/// Paths that begin as this one does, or some of all.
fn examples(path: &str) -> String {
    let all = all();
    let first = path.split('.').next().unwrap_or_default();
    let beginning = format!("{first}.");
    let near: Vec<&str> = all.iter().map(String::as_str).filter(|p| p.starts_with(&beginning)).collect();
    if near.is_empty() {
        "rules.before, traffic.flows, interface.queues and others (docs/plans.md)".into()
    } else {
        near.join(", ")
    }
}

/// All paths, except those whose last part is the author's.
pub(super) fn all() -> Vec<String> {
    let mut paths = Vec::new();
    collect(&TRAFFIC, "traffic.", &mut paths);
    collect(&SETTINGS, "", &mut paths);
    paths
}

/// What paths whose last part is the author's begin with: `sysctls.`
pub(super) fn open() -> Vec<String> {
    let mut starts = Vec::new();
    collect_open(&SETTINGS, "", &mut starts);
    starts
}

fn collect(table: &'static Table, prefix: &str, paths: &mut Vec<String>) {
    for key in table.all() {
        match key.kind {
            Kind::Table(inner) => collect(inner, &format!("{prefix}{}.", key.name), paths),
            Kind::Named(..) | Kind::List(_) | Kind::Tables(_) | Kind::Text => {}
            _ => paths.push(format!("{prefix}{}", key.name)),
        }
    }
}

fn collect_open(table: &'static Table, prefix: &str, starts: &mut Vec<String>) {
    for key in table.all() {
        match key.kind {
            Kind::Table(inner) => collect_open(inner, &format!("{prefix}{}.", key.name), starts),
            Kind::Named(..) => starts.push(format!("{prefix}{}.", key.name)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_path() {
        for path in all() {
            assert_eq!(Field::parse(&path).unwrap().path(), path);
        }
        for start in open() {
            assert_eq!(Field::parse(&format!("{start}a.b")).unwrap().path(), format!("{start}a.b"));
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
