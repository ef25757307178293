//! From a written plan or lab file to a tree of typed values. The reader finds every fault of form and keeps all valid entries, so that
//! later checks can run too.

use super::diagnostic::{Diagnostic, MOST, Span, listed, meant};
use super::grammar::{Key, Kind, Table};
use super::source::{self, Source, Written};
use super::sysctl;
use super::value::{Entry, Node, Tree, Value};
use serde_json::Value as Json;

/// Entries of one list or table at most.
const MOST_ENTRIES: usize = 1000;

/// Reads a file whose keys are those of `root`.
pub(crate) fn read(source: &Source, root: &'static Table) -> (Tree, Vec<Diagnostic>) {
    let mut reader = Reader {
        root,
        problems: Vec::new(),
    };
    let tree = reader.table(source.root(), root, &[], Span::default());
    (tree, reader.problems)
}

struct Reader {
    root: &'static Table,
    problems: Vec<Diagnostic>,
}

impl Reader {
    fn fault(&mut self, fault: Diagnostic) {
        if self.problems.len() < MOST {
            self.problems.push(fault);
        }
    }

    /// A table of known keys. `path`: the keys that lead to it. `at`: its place, for faults about missing keys.
    fn table(
        &mut self,
        table: &source::Table,
        grammar: &'static Table,
        path: &[&str],
        at: Span,
    ) -> Tree {
        let mut tree = Tree::default();
        for (name, key_span, value) in table {
            let Some(key) = grammar.find(name) else {
                self.unknown(name, *key_span, grammar, path);
                continue;
            };
            let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
            let node = self.value(value, &key.kind, &path);
            tree.entries.push(Entry {
                key: key.name.to_string(),
                key_span: *key_span,
                node,
            });
        }
        for key in grammar.all().filter(|key| key.required) {
            if !table.iter().any(|(name, ..)| name == key.name) {
                self.missing(key, grammar, path, at);
            }
        }
        tree
    }

    fn missing(&mut self, key: &Key, grammar: &Table, path: &[&str], at: Span) {
        // `[trials]` says where it is; `a factor` does not.
        let told = path.is_empty() || grammar.what.starts_with('[');
        let place = if told {
            String::new()
        } else {
            format!(" in {}", dotted(path))
        };
        let message = format!("{} needs {}{place}", grammar.what, key.name);
        let help = format!("add {} = ... ({})", key.name, key.kind.wants());
        self.fault(Diagnostic::at(at, message).remedy(help));
    }

    fn unknown(&mut self, name: &str, span: Span, grammar: &Table, path: &[&str]) {
        if self.problems.len() >= MOST {
            return; // looking for what was meant takes a while
        }
        let shown: String = name.chars().take(60).collect();
        let place = if path.is_empty() {
            self.root.what.to_string()
        } else {
            format!("[{}]", dotted(path))
        };
        let names = || grammar.all().map(|key| key.name);
        let help = match (meant(name, names()), elsewhere(self.root, name, path)) {
            (Some(near), _) => format!("did you mean '{near}'?"),
            (None, Some(place)) => format!("it belongs in {place}"),
            (None, None) => format!("there are {}", listed(&names().collect::<Vec<_>>(), "and")),
        };
        self.fault(Diagnostic::at(span, format!("{place} has no key '{shown}'")).remedy(help));
    }

    fn value(&mut self, written: &Written, kind: &Kind, path: &[&str]) -> Node {
        let span = written.span;
        let value = match (kind, &written.value) {
            (Kind::Table(grammar), source::Value::Table(table)) => {
                Value::Table(self.table(table, grammar, path, head(span)))
            }
            (Kind::Tables(grammar), source::Value::List(items)) => {
                Value::List(self.items(items, &Kind::Table(grammar), path))
            }
            (Kind::Named(of, _), source::Value::Table(table)) => {
                Value::Table(self.named(table, of, path))
            }
            (Kind::Selector, source::Value::Table(table)) => {
                Value::Table(self.named(table, &Kind::Levels, path))
            }
            (Kind::Levels, source::Value::List(items)) => {
                Value::List(self.items(items, &Kind::Levels, path))
            }
            (Kind::List(of) | Kind::OneOrMore(of), source::Value::List(items)) => {
                if items.is_empty() {
                    let help = format!("write {}, or leave the key out", kind.wants());
                    self.fault(Diagnostic::at(span, "this list is empty").remedy(help));
                }
                Value::List(self.items(items, of, path))
            }
            (Kind::OneOrMore(of), _) => Value::List(vec![self.value(written, of, path)]),
            (Kind::List(of), source::Value::Scalar(Json::String(_) | Json::Number(_))) => {
                let help = format!("put it in brackets: [...], {}", of.wants());
                self.fault(Diagnostic::at(span, "a list is wanted here").remedy(help));
                Value::Broken
            }
            (Kind::Table(_) | Kind::Tables(_) | Kind::Named(..), _)
            | (_, source::Value::Table(_) | source::Value::List(_)) => {
                let found = type_name(&written.value);
                let article = if found.starts_with(['a', 'i']) {
                    "an"
                } else {
                    "a"
                };
                let message = format!("'{}' does not take {article} {found}", dotted(path));
                let heading = match kind {
                    Kind::Named(..) => format!(", each below a line [{}.NAME]", dotted(path)),
                    _ => String::new(),
                };
                let remedy = format!("write {}{heading}", kind.wants());
                self.fault(Diagnostic::at(head(span), message).remedy(remedy));
                Value::Broken
            }
            (_, source::Value::Wrong(fault)) => {
                self.fault(fault.clone().within(span));
                Value::Broken
            }
            (_, source::Value::Scalar(scalar)) => self.scalar(scalar, kind, span),
        };
        Node { span, value }
    }

    fn scalar(&mut self, raw: &Json, kind: &Kind, span: Span) -> Value {
        match kind.read(raw) {
            Ok(json) => Value::Scalar(json),
            Err(wrong) => {
                self.fault(wrong.within(span));
                Value::Broken
            }
        }
    }

    fn items(&mut self, items: &[Written], of: &Kind, path: &[&str]) -> Vec<Node> {
        self.too_many(items.len(), items.first().map(|first| first.span), path);
        items
            .iter()
            .take(MOST_ENTRIES)
            .map(|item| self.value(item, of, path))
            .collect()
    }

    /// A table with names of the author's choice.
    fn named(&mut self, table: &source::Table, of: &Kind, path: &[&str]) -> Tree {
        let mut tree = Tree::default();
        self.too_many(table.len(), table.first().map(|(_, span, _)| *span), path);
        for (name, key_span, value) in table.iter().take(MOST_ENTRIES) {
            if let Some(why) = bad_name(name) {
                self.fault(
                    Diagnostic::at(*key_span, why).remedy("use letters, digits and simple signs"),
                );
                continue;
            }
            let is_sysctl = path.last() == Some(&"sysctls");
            let key = if is_sysctl {
                sysctl::dotted(name).into_owned()
            } else {
                name.clone()
            };
            if tree.entry(&key).is_some() {
                let message = format!("'{name}' is {key}, which has a value already");
                self.fault(Diagnostic::at(*key_span, message).remedy("leave one of them out"));
                continue;
            }
            let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            let mut node = self.value(value, of, &path);
            if let (true, Value::Scalar(Json::String(text))) = (is_sysctl, &mut node.value) {
                *text = sysctl::plain(text);
            }
            tree.entries.push(Entry {
                key,
                key_span: *key_span,
                node,
            });
        }
        tree
    }
}

impl Reader {
    fn too_many(&mut self, entries: usize, first: Option<Span>, path: &[&str]) {
        if entries > MOST_ENTRIES {
            let message = format!(
                "'{}' has {entries} entries: at most {MOST_ENTRIES}",
                dotted(path)
            );
            let help = "rules, tables and routes are generated: say how many";
            self.fault(Diagnostic::at(first.unwrap_or_default(), message).remedy(help));
        }
    }
}

/// A table's span reaches over all of its lines: its first characters are enough to show.
fn head(span: Span) -> Span {
    Span {
        start: span.start,
        end: span.end.min(span.start + 60),
    }
}

fn bad_name(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("a name must not be empty".into());
    }
    if name.chars().count() > 100 {
        return Some("a name of more than 100 characters".into());
    }
    name.chars()
        .any(char::is_control)
        .then(|| "a name must not contain control characters".into())
}

fn dotted(path: &[&str]) -> String {
    path.join(".")
}

/// The TOML name of a value's type.
fn type_name(value: &source::Value) -> &'static str {
    match value {
        source::Value::Scalar(Json::String(_)) => "string",
        source::Value::Scalar(Json::Bool(_)) => "boolean",
        source::Value::Scalar(number) => {
            if number.is_f64() {
                "float"
            } else {
                "integer"
            }
        }
        source::Value::Wrong(_) => "value",
        source::Value::List(_) => "array",
        source::Value::Table(_) => "table",
    }
}

/// Where else in the grammar a key of this name is.
fn elsewhere(root: &'static Table, name: &str, path: &[&str]) -> Option<String> {
    fn search(table: &'static Table, name: &str, place: &str, depth: usize) -> Option<String> {
        let here = table.find(name).is_some() && !place.is_empty();
        if here {
            return Some(format!("[{place}]"));
        }
        let deeper = |key: &'static Key| {
            let place = if place.is_empty() {
                key.name.to_string()
            } else {
                format!("{place}.{}", key.name)
            };
            match key.kind {
                _ if depth == 0 => None,
                Kind::Table(inner) => search(inner, name, &place, depth - 1),
                Kind::Tables(inner) => {
                    search(inner, name, &place, depth - 1).map(|p| format!("[{p}]"))
                }
                Kind::Named(Kind::Table(inner), _) => {
                    search(inner, name, &format!("{place}.NAME"), depth - 1)
                }
                _ => None,
            }
        };
        table.all().find_map(deeper)
    }
    let place = search(root, name, "", 4)?;
    (place != format!("[{}]", dotted(path))).then_some(place)
}
