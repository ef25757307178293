//! A plan as its author wrote it: the text of a file, arguments of a command line, or a file with arguments laid over it. Each value knows
//! the line or the argument that it comes from.

use super::diagnostic::{Diagnostic, Lines, MOST, Span};
use super::grammar::Kind;
use super::keys;
use serde_json::{Map, Value as Json};
use std::fmt::Write;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toml_writer::{ToTomlKey, ToTomlValue};

/// An option of a verb that is a key of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyed {
    /// The option: `--link-speed`.
    pub option: &'static str,
    /// The key with its table: `lab.link-speed`.
    pub key: &'static str,
}

impl Keyed {
    fn kind(&self) -> (&'static Kind, &'static str) {
        let mut found = (&Kind::Text, "");
        let mut table = &keys::PLAN;
        for name in self.key.split('.') {
            let Some(key) = table.find(name) else { break };
            found = (&key.kind, key.about);
            match &key.kind {
                Kind::Table(inner) => table = inner,
                Kind::List(of) => found.0 = of,
                _ => {}
            }
        }
        found
    }

    /// Help: the meaning of the key, with its default in brackets.
    pub fn about(&self) -> String {
        let about = self.kind().1.trim_end_matches('.');
        // The verb is one of those that the text names first: `search, rfc2544: the lowest load`.
        let is_verb = |word: &str| ["search", "loss-curve", "rfc2544"].contains(&word);
        let about = match about.split_once(": ") {
            Some((verbs, about)) if verbs.split(", ").all(is_verb) => {
                about[..1].to_uppercase() + &about[1..]
            }
            _ => about.to_string(),
        };
        match about.split_once(". Default: ") {
            Some((about, usual)) => format!("{about} [default: {usual}]"),
            None => about,
        }
    }

    /// The words that the key takes, with their meanings; none where it takes other values.
    pub fn words(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind().0 {
            Kind::Choice(words) => words,
            _ => &[],
        }
    }

    /// The value of a word of the command line, as a plan has it: `64` is `"64 B"`, `2m` is `"2 min"`, `10G` is `"10 Gbit/s"`.
    ///
    /// # Errors
    /// The key cannot have this value.
    pub fn read(&self, word: &str) -> Result<Json, Diagnostic> {
        let (kind, _) = self.kind();
        let word = word.trim();
        let raw: Json = match kind {
            Kind::Count { .. } => match word.replace('_', "").parse::<i64>() {
                Ok(number) => number.into(),
                Err(_) => word.into(),
            },
            Kind::Choice(words) => words
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(word))
                .map_or(word, |(known, _)| known)
                .into(),
            Kind::Form(form) | Kind::Within(form, ..) => form.spelled_out(word).into(),
            _ => word.into(),
        };
        kind.read(&raw).map(|_| raw)
    }
}

/// A plan as it was written.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Text of the file, and then a line for each argument.
    text: String,
    /// Bytes of the file.
    file: usize,
    root: Table,
    /// Whether arguments have changed the text of the file.
    changed: bool,
    /// Options of the verb, which remedies name instead of keys.
    options: Vec<Keyed>,
}

/// A table in the order of the text.
pub(crate) type Table = Vec<(String, Span, Written)>;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Scalar(Json),
    /// A scalar that no plan can have.
    Wrong(Diagnostic),
    List(Vec<Written>),
    Table(Table),
}

impl Source {
    /// The text of a file. `what` is its kind; `shorter` is the remedy for a file that is too long.
    ///
    /// # Errors
    /// The text is too long, is not UTF-8, or is not TOML.
    pub fn read(bytes: &[u8], what: &str, shorter: &str) -> Result<Source, Vec<Diagnostic>> {
        let text = super::text(bytes, what, shorter).map_err(|fault| vec![fault])?;
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            // Text behind a syntax error may be misread: report only syntax errors.
            let faults = errors
                .iter()
                .take(MOST)
                .map(|e| syntax(e, text.len()))
                .collect();
            return Err(Lines::new(text).locate_all(faults));
        }
        let root = entries(table.get_ref());
        Ok(Source {
            text: text.into(),
            file: text.len(),
            root,
            changed: false,
            options: Vec::new(),
        })
    }

    /// Refuses a text that is another kind of file: it has the other's table, and not its own.
    pub(crate) fn is_for(
        &self,
        [own, other]: [&str; 2],
        message: &str,
        remedy: &str,
    ) -> Result<(), Diagnostic> {
        let has = |table: &str| self.root.iter().any(|(key, ..)| key == table);
        match has(other) && !has(own) {
            true => Err(Diagnostic::new(message).remedy(remedy)),
            false => Ok(()),
        }
    }

    /// Remedies name these options.
    pub fn with_options(self, options: Vec<Keyed>) -> Source {
        Source { options, ..self }
    }

    /// Sets a key, as an argument says. Tables on the way are made. `argument` is named in faults, unless it is empty: nobody wrote it.
    pub fn set(&mut self, argument: &str, path: &[&str], value: impl Into<Json>) {
        self.changed = true;
        let start = self.text.len() + 1;
        self.text += &format!("\n{argument}");
        let span = Span {
            start,
            end: self.text.len(),
        };
        put(&mut self.root, path, Written::of(value.into(), span), span);
    }

    /// Takes a key away, if it is there.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((last, tables)) = path.split_last() else {
            return;
        };
        self.changed = true;
        let mut table = &mut self.root;
        for key in tables {
            match table.iter_mut().find(|(name, ..)| name == key) {
                Some((
                    ..,
                    Written {
                        value: Value::Table(inner),
                        ..
                    },
                )) => table = inner,
                _ => return,
            }
        }
        table.retain(|(name, ..)| name != last);
    }

    fn get(&self, path: &[&str]) -> Option<&Value> {
        let mut found = None;
        let mut table = &self.root;
        for key in path {
            let value = &table.iter().find(|(name, ..)| name == key)?.2.value;
            if let Value::Table(inner) = value {
                table = inner;
            }
            found = Some(value);
        }
        found
    }

    /// The names of factors that set this field alone.
    pub fn factors_of(&self, field: &str) -> Vec<String> {
        let Some(Value::Table(factors)) = self.get(&["factors"]) else {
            return Vec::new();
        };
        let sets = |name: &&String| self.text(&["factors", name, "sets"]) == Some(field);
        factors
            .iter()
            .map(|(name, ..)| name)
            .filter(sets)
            .cloned()
            .collect()
    }

    /// The keys of a table; none where there is none.
    pub fn keys(&self, path: &[&str]) -> Vec<String> {
        match self.get(path) {
            Some(Value::Table(table)) => table.iter().map(|(name, ..)| name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a key is there.
    pub fn has(&self, path: &[&str]) -> bool {
        self.get(path).is_some()
    }

    /// A key's text, if it has one.
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        match self.get(path)? {
            Value::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The place of a key in the text.
    pub(crate) fn place_of(&self, [table, key]: [&str; 2]) -> Option<Span> {
        let Value::Table(table) = self.get(&[table])? else {
            return None;
        };
        let entry = table.iter().find(|(name, ..)| name == key);
        entry.map(|(_, span, _)| *span)
    }

    pub(crate) fn root(&self) -> &Table {
        &self.root
    }

    pub(crate) fn options(&self) -> &[Keyed] {
        &self.options
    }

    /// The places of the text and of the arguments.
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines::with_arguments(&self.text, self.file)
    }

    /// The text of the file as its author wrote it; where arguments changed it, the plan with them.
    pub fn written(&self) -> String {
        if self.changed {
            self.toml()
        } else {
            self.text.clone()
        }
    }

    /// The plan as the text of a file.
    pub fn toml(&self) -> String {
        let mut out = String::new();
        write(&mut out, "", &self.root);
        out
    }
}

impl Written {
    fn of(value: Json, span: Span) -> Written {
        let value = match value {
            Json::Array(items) => Value::List(
                items
                    .into_iter()
                    .map(|item| Written::of(item, span))
                    .collect(),
            ),
            Json::Object(fields) => {
                let entry = |(key, value)| (key, span, Written::of(value, span));
                Value::Table(fields.into_iter().map(entry).collect())
            }
            scalar => Value::Scalar(scalar),
        };
        Written { span, value }
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Written {
        let read = match value.get_ref() {
            DeValue::Table(table) => Value::Table(entries(table)),
            DeValue::Array(items) => Value::List(items.iter().map(Written::read).collect()),
            scalar => raw(scalar).map_or_else(Value::Wrong, Value::Scalar),
        };
        Written {
            span: value.span().into(),
            value: read,
        }
    }

    fn json(&self) -> Json {
        match &self.value {
            Value::Scalar(scalar) => scalar.clone(),
            Value::Wrong(_) => Json::Null,
            Value::List(items) => items.iter().map(Written::json).collect(),
            Value::Table(table) => json(table).into(),
        }
    }

    /// The value on one line of TOML.
    fn inline(&self) -> String {
        match &self.value {
            Value::Scalar(Json::String(text)) => text.to_toml_value(),
            Value::Scalar(scalar) => scalar.to_string(),
            Value::Wrong(_) => String::new(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Written::inline).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entry = |(key, _, value): &(String, Span, Written)| {
                    format!("{} = {}", key.to_toml_key(), value.inline())
                };
                format!(
                    "{{ {} }}",
                    table.iter().map(entry).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

/// Keys and values without their places.
pub(crate) fn json(table: &Table) -> Map<String, Json> {
    table
        .iter()
        .map(|(key, _, value)| (key.clone(), value.json()))
        .collect()
}

/// Writes single values first, because TOML wants tables behind them.
fn write(out: &mut String, heading: &str, table: &Table) {
    let is_table = |(.., value): &&(String, Span, Written)| matches!(value.value, Value::Table(_));
    if !heading.is_empty() && (table.is_empty() || !table.iter().all(|entry| is_table(&entry))) {
        let _ = writeln!(out, "\n[{heading}]");
    }
    for (key, _, value) in table.iter().filter(|entry| !is_table(entry)) {
        let _ = writeln!(out, "{} = {}", key.to_toml_key(), value.inline());
    }
    for (key, _, value) in table {
        if let Value::Table(inner) = &value.value {
            let dot = if heading.is_empty() { "" } else { "." };
            write(out, &format!("{heading}{dot}{}", key.to_toml_key()), inner);
        }
    }
}

fn put(table: &mut Table, path: &[&str], value: Written, span: Span) {
    let [key, rest @ ..] = path else { return };
    let at = table
        .iter()
        .position(|(name, ..)| name == key)
        .unwrap_or_else(|| {
            table.push((
                key.to_string(),
                span,
                Written {
                    span,
                    value: Value::Table(Table::new()),
                },
            ));
            table.len() - 1
        });
    match &mut table[at].2.value {
        Value::Table(inner) if !rest.is_empty() => put(inner, rest, value, span),
        _ if rest.is_empty() => table[at] = (key.to_string(), span, value),
        // Faulty: a table should be here. The reader says so.
        _ => {}
    }
}

fn entries(table: &DeTable<'_>) -> Table {
    let mut all: Vec<(&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)> = table.iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    let entry = |(name, value): (&Spanned<DeString<'_>>, _)| {
        (
            name.get_ref().to_string(),
            name.span().into(),
            Written::read(value),
        )
    };
    all.into_iter().map(entry).collect()
}

fn raw(value: &DeValue<'_>) -> Result<Json, Diagnostic> {
    let far_too_large = || Diagnostic::new("this number is far too large");
    match value {
        DeValue::Boolean(flag) => Ok((*flag).into()),
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(n) => {
            let n = i128::from_str_radix(n.as_str(), n.radix()).ok();
            n.and_then(serde_json::Number::from_i128)
                .map(Json::Number)
                .ok_or_else(far_too_large)
        }
        DeValue::Float(n) => match n.as_str().parse::<f64>() {
            Ok(n) if n.is_finite() => Ok(n.into()),
            _ => Err(Diagnostic::new("this number is not finite")),
        },
        _ => {
            Err(Diagnostic::new("dates and times have no use here").remedy("put a text in quotes"))
        }
    }
}

fn syntax(error: &toml::de::Error, length: usize) -> Diagnostic {
    let span = error.span().map_or(
        Span {
            start: length,
            end: length,
        },
        Span::from,
    );
    let problem = Diagnostic::at(span, error.message().to_string());
    let helps = [
        (
            "string values must be quoted",
            "put texts, and numbers with a unit, in quotes: \"250 ms\"",
        ),
        (
            "invalid basic string",
            "the text does not end: close the quotes",
        ),
        (
            "invalid literal string",
            "the text does not end: close the quotes",
        ),
        (
            "missing escaped value",
            "write \\\\ for a backslash, or put the text in single quotes",
        ),
        (
            "duplicate key",
            "a name can be given once: remove one, or rename it",
        ),
        ("key with no value", "write KEY = VALUE"),
        ("unclosed", "close the bracket"),
        ("unexpected key or value", "one KEY = VALUE to a line"),
        ("recurs", "so many levels are not needed"),
    ];
    match helps
        .into_iter()
        .find(|(part, _)| error.message().contains(part))
    {
        Some((_, help)) => problem.remedy(help),
        None => problem,
    }
}

#[cfg(test)]
mod tests;
