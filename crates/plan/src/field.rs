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
            if open { path.len() > known.len() && path.starts_with(known) } else { *known == path }
        };
        let Some((known, kind)) = all.iter().find(is_it) else { return Err(unknown(path, &all)) };
        let (traffic, rest) = path.strip_prefix("traffic.").map_or((false, path), |rest| (true, rest));
        let dots = known.matches('.').count() - usize::from(traffic);
        let keys = rest.splitn(dots + 1, '.').map(String::from).collect();
        Ok(Field { traffic, keys, kind })
    }

    /// The path as it is written.
    pub(super) fn path(&self) -> String {
        let prefix = if self.traffic { "traffic." } else { "" };
        format!("{prefix}{}", self.keys.join("."))
    }
}

fn unknown(path: &str, all: &[(String, &Kind)]) -> Diagnostic {
    let shown = path.chars().take(60).collect::<String>();
    let paths = || all.iter().map(|(path, _)| path.as_str()).filter(|path| !path.ends_with('.'));
    let first = path.split('.').next().unwrap_or_default();
    let near: Vec<&str> = paths().filter(|known| known.starts_with(&format!("{first}."))).collect();
    let examples = match near.as_slice() {
        [] => "rules.before, traffic.flows, interface.queues and others (docs/plans.md)".into(),
        near => near.join(", "),
    };
    if near.iter().any(|known| known.starts_with(&format!("{path}."))) {
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
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_path() {
        for (path, _) in all() {
            let path = if path.ends_with('.') { path + "a.b" } else { path };
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
