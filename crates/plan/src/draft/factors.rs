//! Factors: the fields they set, and their levels as values of those fields.

use super::Draft;
use crate::diagnostic::{Diagnostic, Problems, Span, suggestion};
use crate::schema::Field;
use crate::value::{Entry, Node, Tree, Value, label};
use serde_json::Value as Json;

/// Levels of one factor at most.
const MOST_LEVELS: usize = 1000;

/// Something that is varied.
#[derive(Debug)]
pub(in super::super) struct FactorDraft {
    pub(in super::super) name: String,
    pub(in super::super) about: Option<String>,
    pub(in super::super) span: Span,
    pub(in super::super) sets: Vec<(Field, Span)>,
    pub(in super::super) levels: Vec<Level>,
    /// Levels of the quick form.
    pub(in super::super) quick: Option<Vec<Level>>,
    pub(in super::super) alone: bool,
    /// The variants that it varies.
    pub(in super::super) variants: Vec<usize>,
}

/// A level.
#[derive(Debug, Clone)]
pub(in super::super) struct Level {
    /// As it is shown: `64 B`, `1000`.
    pub(in super::super) label: String,
    /// A value for each field that is set.
    pub(in super::super) values: Vec<Node>,
}

impl FactorDraft {
    /// The levels of a form.
    pub(in super::super) fn levels(&self, quick: bool) -> &[Level] {
        self.quick
            .as_deref()
            .filter(|_| quick)
            .unwrap_or(&self.levels)
    }

    /// The label of the level that a raw value means: `10_000` and `10000` are the same, as are `64 B` and `64B`.
    pub(in super::super) fn label_of(&self, raw: &Json) -> Option<&str> {
        let (field, _) = self.sets.first()?;
        let value = Value::Scalar(field.kind.read(raw).ok()?);
        let mut all = self.levels.iter().chain(self.quick.iter().flatten());
        all.find(|l| l.values.first().is_some_and(|n| n.value == value))
            .map(|l| l.label.as_str())
    }
}

pub(super) fn factors(draft: &Draft, problems: &mut Vec<Diagnostic>) -> Vec<FactorDraft> {
    let Some(table) = draft.tree.table("factors") else {
        unknown_quick(draft, &[], problems);
        return Vec::new();
    };
    let mut factors = Vec::new();
    for Entry {
        key,
        key_span,
        node,
    } in &table.entries
    {
        if key == "variant" {
            let help = "call it something else";
            problems.fault(
                *key_span,
                "'variant' names the variants themselves, not a factor",
                help,
            );
        }
        if let Some(tree) = node.table() {
            factors.push(factor(draft, key, *key_span, tree, problems));
        }
    }
    twice(&factors, problems);
    unknown_quick(draft, &factors, problems);
    factors
}

fn factor(
    draft: &Draft,
    name: &str,
    span: Span,
    tree: &Tree,
    problems: &mut Vec<Diagnostic>,
) -> FactorDraft {
    let mut sets = Vec::new();
    for node in tree.list("sets") {
        let Some(path) = node.text() else { continue };
        match Field::parse(path) {
            Ok(field) => sets.push((field, node.span)),
            Err(wrong) => problems.push(wrong.within(node.span)),
        }
    }
    let levels = levels(tree.get("levels"), &sets, problems);
    let quick = draft
        .tree
        .table("quick")
        .and_then(|q| q.table("levels"))
        .and_then(|l| l.get(name));
    FactorDraft {
        name: name.into(),
        about: tree.text("about").map(str::to_string),
        span,
        levels,
        quick: quick.map(|node| self::levels(Some(node), &sets, problems)),
        alone: tree.text("combine") == Some("alone"),
        variants: variants(draft, tree, problems),
        sets,
    }
}

fn variants(draft: &Draft, tree: &Tree, problems: &mut Vec<Diagnostic>) -> Vec<usize> {
    if tree.get("variants").is_none() {
        return (0..draft.variants.len()).collect();
    }
    draft.named(tree.list("variants"), problems)
}

fn levels(
    node: Option<&Node>,
    sets: &[(Field, Span)],
    problems: &mut Vec<Diagnostic>,
) -> Vec<Level> {
    let Some(node) = node else { return Vec::new() };
    let Value::List(items) = &node.value else {
        let help = "write a list of levels such as [1, 10, 100]";
        problems.fault(node.span, "a factor's levels are a list", help);
        return Vec::new();
    };
    if items.is_empty() || items.len() > MOST_LEVELS {
        let message = format!(
            "a factor has 1 to {MOST_LEVELS} levels, not {}",
            items.len()
        );
        problems.push(Diagnostic::at(node.span, message));
        return Vec::new();
    }
    let mut levels: Vec<Level> = Vec::new();
    for item in items {
        let Some(raw) = item.scalar() else { continue };
        let Some(values) = values(raw, item.span, sets, problems) else {
            continue;
        };
        let level = Level {
            label: label(raw),
            values,
        };
        let equal = |l: &&Level| {
            l.values
                .iter()
                .zip(&level.values)
                .all(|(a, b)| a.value == b.value)
        };
        if !sets.is_empty() && levels.iter().any(|l| equal(&l)) {
            let help = "leave one of them out; to measure the same twice, write a variant with `apart = true`";
            problems.fault(
                item.span,
                format!("the level {} is there twice", level.label),
                help,
            );
        } else {
            levels.push(level);
        }
    }
    levels
}

fn values(
    raw: &Json,
    span: Span,
    sets: &[(Field, Span)],
    problems: &mut Vec<Diagnostic>,
) -> Option<Vec<Node>> {
    let mut values = Vec::new();
    for (field, _) in sets {
        match field.kind.read(raw) {
            Ok(value) => values.push(Node {
                span,
                value: Value::Scalar(value),
            }),
            Err(wrong) => {
                let message = format!("{}: {}", field.path(), wrong.message);
                problems.push(Diagnostic {
                    message,
                    ..wrong.within(span)
                });
                return None;
            }
        }
    }
    Some(values)
}

/// Two factors must not set the same field, for the second would undo the first.
fn twice(factors: &[FactorDraft], problems: &mut Vec<Diagnostic>) {
    for (at, factor) in factors.iter().enumerate() {
        for (field, span) in &factor.sets {
            let clash = |other: &&FactorDraft| {
                other.sets.iter().any(|(f, _)| f.path() == field.path())
                    && other.variants.iter().any(|v| factor.variants.contains(v))
            };
            if let Some(other) = factors[..at].iter().find(clash) {
                let message = format!("the factor '{}' sets {} already", other.name, field.path());
                problems.fault(*span, message, "a field can be set by one factor");
            }
        }
    }
}

fn unknown_quick(draft: &Draft, factors: &[FactorDraft], problems: &mut Vec<Diagnostic>) {
    let Some(levels) = draft.tree.table("quick").and_then(|q| q.table("levels")) else {
        return;
    };
    let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
    for entry in levels
        .entries
        .iter()
        .filter(|e| !names.contains(&e.key.as_str()))
    {
        let help = match names.is_empty() {
            true => "this plan has no factors".into(),
            false => suggestion(&entry.key, names.iter().copied()),
        };
        problems.fault(
            entry.key_span,
            format!("there is no factor '{}'", entry.key),
            help,
        );
    }
}
