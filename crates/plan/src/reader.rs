//! From TOML to a tree of typed values. It finds every fault of form and keeps all valid entries, so that later checks can run
//! too.

use super::diagnostic::{Diagnostic, MOST, Span, listed, meant};
use super::grammar::{Key, Kind, Table};
use super::value::{Entry, Node, Tree, Value};
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Entries of one list or table at most.
const MOST_ENTRIES: usize = 1000;

/// Reads the text of a file whose keys are those of `root`.
pub(crate) fn read(text: &str, root: &'static Table) -> (Tree, Vec<Diagnostic>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // Text behind a syntax error may be misread: report only syntax errors.
        return (Tree::default(), errors.iter().take(MOST).map(|e| syntax(e, text.len())).collect());
    }
    let mut reader = Reader { root, problems: Vec::new() };
    let tree = reader.table(table.get_ref(), root, &[], Span::default());
    (tree, reader.problems)
}

fn syntax(error: &toml::de::Error, length: usize) -> Diagnostic {
    let span = error.span().map_or(Span { start: length, end: length }, Span::from);
    let problem = Diagnostic::at(span, error.message().to_string());
    let helps = [
        ("string values must be quoted", "put texts, and numbers with a unit, in quotes: \"250 ms\""),
        ("invalid basic string", "the text does not end: close the quotes"),
        ("invalid literal string", "the text does not end: close the quotes"),
        ("missing escaped value", "write \\\\ for a backslash, or put the text in single quotes"),
        ("duplicate key", "a name can be given once: remove one, or rename it"),
        ("key with no value", "write KEY = VALUE"),
        ("unclosed", "close the bracket"),
        ("unexpected key or value", "one KEY = VALUE to a line"),
        ("recurs", "so many levels are not needed"),
    ];
    match helps.into_iter().find(|(part, _)| error.message().contains(part)) {
        Some((_, help)) => problem.remedy(help),
        None => problem,
    }
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
    fn table(&mut self, table: &DeTable<'_>, grammar: &'static Table, path: &[&str], at: Span) -> Tree {
        let mut tree = Tree::default();
        for (name, value) in in_order(table) {
            let key_span = Span::from(name.span());
            let Some(key) = grammar.find(name.get_ref()) else {
                self.unknown(name.get_ref(), key_span, grammar, path);
                continue;
            };
            let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
            let node = self.value(value, &key.kind, &path);
            tree.entries.push(Entry { key: key.name.to_string(), key_span, node });
        }
        for key in grammar.all().filter(|key| key.required) {
            if !table.iter().any(|(name, _)| name.get_ref() == key.name) {
                self.missing(key, grammar, path, at);
            }
        }
        tree
    }

    fn missing(&mut self, key: &Key, grammar: &Table, path: &[&str], at: Span) {
        // `[trials]` says where it is; `a factor` does not.
        let told = path.is_empty() || grammar.what.starts_with('[');
        let place = if told { String::new() } else { format!(" in {}", dotted(path)) };
        let message = format!("{} needs {}{place}", grammar.what, key.name);
        let help = format!("add {} = ... ({})", key.name, key.kind.wants());
        self.fault(Diagnostic::at(at, message).remedy(help));
    }

    fn unknown(&mut self, name: &str, span: Span, grammar: &Table, path: &[&str]) {
        if self.problems.len() >= MOST {
            return; // looking for what was meant takes a while
        }
        let shown: String = name.chars().take(60).collect();
        let place = if path.is_empty() { self.root.what.to_string() } else { format!("[{}]", dotted(path)) };
        let names = || grammar.all().map(|key| key.name);
        let help = match (meant(name, names()), elsewhere(self.root, name, path)) {
            (Some(near), _) => format!("did you mean '{near}'?"),
            (None, Some(place)) => format!("it belongs in {place}"),
            (None, None) => format!("there are {}", listed(&names().collect::<Vec<_>>(), "and")),
        };
        self.fault(Diagnostic::at(span, format!("{place} has no key '{shown}'")).remedy(help));
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, kind: &Kind, path: &[&str]) -> Node {
        let span = Span::from(value.span());
        let value = match (kind, value.get_ref()) {
            (Kind::Table(grammar), DeValue::Table(table)) => {
                Value::Table(self.table(table, grammar, path, head(span)))
            }
            (Kind::Tables(grammar), DeValue::Array(items)) => {
                Value::List(self.items(items, &Kind::Table(grammar), path))
            }
            (Kind::Named(of, _), DeValue::Table(table)) => Value::Table(self.named(table, of, path)),
            (Kind::Selector, DeValue::Table(table)) => Value::Table(self.named(table, &Kind::Levels, path)),
            (Kind::Levels, DeValue::Array(items)) => Value::List(self.items(items, &Kind::Levels, path)),
            (Kind::List(of) | Kind::OneOrMore(of), DeValue::Array(items)) => {
                if items.is_empty() {
                    let help = format!("write {}, or leave the key out", kind.wants());
                    self.fault(Diagnostic::at(span, "this list is empty").remedy(help));
                }
                Value::List(self.items(items, of, path))
            }
            (Kind::OneOrMore(of), _) => Value::List(vec![self.value(value, of, path)]),
            (Kind::List(of), DeValue::String(_) | DeValue::Integer(_)) => {
                let help = format!("put it in brackets: [...], {}", of.wants());
                self.fault(Diagnostic::at(span, "a list is wanted here").remedy(help));
                Value::Broken
            }
            (Kind::Table(_) | Kind::Tables(_) | Kind::Named(..), _)
            | (_, DeValue::Table(_) | DeValue::Array(_)) => {
                let found = value.get_ref().type_str();
                let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
                let message = format!("'{}' does not take {article} {found}", dotted(path));
                self.fault(Diagnostic::at(head(span), message).remedy(format!("write {}", kind.wants())));
                Value::Broken
            }
            (_, scalar) => self.scalar(scalar, kind, span),
        };
        Node { span, value }
    }

    fn scalar(&mut self, value: &DeValue<'_>, kind: &Kind, span: Span) -> Value {
        match raw(value).and_then(|raw| kind.read(&raw)) {
            Ok(json) => Value::Scalar(json),
            Err(wrong) => {
                self.fault(wrong.within(span));
                Value::Broken
            }
        }
    }

    fn items(&mut self, items: &[Spanned<DeValue<'_>>], of: &Kind, path: &[&str]) -> Vec<Node> {
        self.too_many(items.len(), items.first().map(Spanned::span), path);
        items.iter().take(MOST_ENTRIES).map(|item| self.value(item, of, path)).collect()
    }

    /// A table with names of the author's choice.
    fn named(&mut self, table: &DeTable<'_>, of: &Kind, path: &[&str]) -> Tree {
        let mut tree = Tree::default();
        let entries = in_order(table);
        self.too_many(entries.len(), entries.first().map(|(name, _)| name.span()), path);
        for (name, value) in entries.into_iter().take(MOST_ENTRIES) {
            let key_span = Span::from(name.span());
            let name: &str = name.get_ref();
            if let Some(why) = bad_name(name) {
                self.fault(Diagnostic::at(key_span, why).remedy("use letters, digits and simple signs"));
                continue;
            }
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            let node = self.value(value, of, &path);
            tree.entries.push(Entry { key: name.to_string(), key_span, node });
        }
        tree
    }
}

impl Reader {
    fn too_many(&mut self, entries: usize, first: Option<std::ops::Range<usize>>, path: &[&str]) {
        if entries > MOST_ENTRIES {
            let message = format!("'{}' has {entries} entries: at most {MOST_ENTRIES}", dotted(path));
            let help = "rules, tables and routes are generated: say how many";
            let first = first.map(Span::from).unwrap_or_default();
            self.fault(Diagnostic::at(first, message).remedy(help));
        }
    }
}

/// A table's span reaches over all of its lines: its first characters are enough to show.
fn head(span: Span) -> Span {
    Span { start: span.start, end: span.end.min(span.start + 60) }
}

fn bad_name(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("a name must not be empty".into());
    }
    if name.chars().count() > 100 {
        return Some("a name of more than 100 characters".into());
    }
    name.chars().any(char::is_control).then(|| "a name must not contain control characters".into())
}

fn dotted(path: &[&str]) -> String {
    path.join(".")
}

fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

fn raw(value: &DeValue<'_>) -> Result<Json, Diagnostic> {
    let far_too_large = || Diagnostic::new("this number is far too large");
    match value {
        DeValue::Boolean(flag) => Ok((*flag).into()),
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(n) => {
            let n = i128::from_str_radix(n.as_str(), n.radix()).ok();
            n.and_then(serde_json::Number::from_i128).map(Json::Number).ok_or_else(far_too_large)
        }
        DeValue::Float(n) => match n.as_str().parse::<f64>() {
            Ok(n) if n.is_finite() => Ok(n.into()),
            _ => Err(Diagnostic::new("this number is not finite")),
        },
        _ => Err(Diagnostic::new("dates and times have no use here").remedy("put a text in quotes")),
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
            let place = if place.is_empty() { key.name.to_string() } else { format!("{place}.{}", key.name) };
            match key.kind {
                _ if depth == 0 => None,
                Kind::Table(inner) => search(inner, name, &place, depth - 1),
                Kind::Tables(inner) => search(inner, name, &place, depth - 1).map(|p| format!("[{p}]")),
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
