//! Expectations: which cells they are about, and what is claimed of them.

use super::{Draft, TESTER_BASELINE};
use crate::campaign::Claim;
use crate::diagnostic::{Diagnostic, Problems, Span, listed, meant};
use crate::units::Rate;
use crate::value::{Entry, Node, Tree, Value, label};
use serde_json::Value as Json;

/// Which cells are meant.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Selector {
    pub(in super::super) who: Who,
    /// Levels by factor, as their labels.
    pub(in super::super) levels: Vec<(usize, String)>,
}

/// Which variant is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) enum Who {
    /// Any; or, of a partner, the same.
    #[default]
    Any,
    /// This one.
    Variant(usize),
    /// The tester alone, with the same frames.
    Ceiling,
}

/// An expectation.
#[derive(Debug)]
pub(in super::super) struct Expected {
    pub(in super::super) span: Span,
    pub(in super::super) of: Selector,
    pub(in super::super) than: Option<Selector>,
    pub(in super::super) claim: Claim,
    pub(in super::super) words: String,
    pub(in super::super) because: String,
}

pub(super) fn expected(draft: &Draft, problems: &mut Vec<Diagnostic>) -> Vec<Expected> {
    let mut all = Vec::new();
    for node in draft.tree.list("expect") {
        let Some(tree) = node.table() else { continue };
        let selector = |key: &str, problems: &mut Vec<Diagnostic>| {
            tree.get(key).map(|node| selector(draft, node, problems))
        };
        let (of, than) = (selector("of", problems), selector("than", problems));
        let claim = claim(tree, node.span, problems);
        if let (Some(Some(of)), Some(claim)) = (of, claim) {
            let words = words(draft, &of, than.as_ref().and_then(Option::as_ref), tree);
            let because = tree.text("because").unwrap_or_default().to_string();
            let span = tree.get("of").map_or(node.span, |n| n.span);
            if than.as_ref().is_none_or(Option::is_some) {
                all.push(Expected { span, of, than: than.flatten(), claim, words, because });
            }
        }
    }
    all
}

fn selector(draft: &Draft, node: &Node, problems: &mut Vec<Diagnostic>) -> Option<Selector> {
    match &node.value {
        Value::Scalar(Json::String(name)) => {
            Some(Selector { who: who(draft, name, node.span, problems)?, ..Selector::default() })
        }
        Value::Table(tree) => {
            let mut selector = Selector::default();
            let mut right = true;
            for entry in &tree.entries {
                right &= part(draft, entry, &mut selector, problems);
            }
            right.then_some(selector)
        }
        _ => {
            let help = "write a variant's name, or { variant = \"...\", FACTOR = LEVEL }";
            problems.fault(node.span, "this names no cells", help);
            None
        }
    }
}

fn who(draft: &Draft, name: &str, span: Span, problems: &mut Vec<Diagnostic>) -> Option<Who> {
    let name = name.trim();
    if name == TESTER_BASELINE && !draft.variants.iter().any(|v| v.name == name) {
        return Some(Who::Ceiling);
    }
    draft.variant(name, span, problems).map(Who::Variant)
}

fn part(draft: &Draft, entry: &Entry, selector: &mut Selector, problems: &mut Vec<Diagnostic>) -> bool {
    let Some(raw) = entry.node.scalar() else {
        let help = "write one level here, and another [[expect]] for another";
        problems.fault(entry.node.span, "an expectation is about one level of a factor", help);
        return false;
    };
    if entry.key == "variant" {
        let found = who(draft, &label(raw), entry.node.span, problems);
        selector.who = found.unwrap_or_default();
        return found.is_some();
    }
    let names: Vec<&str> = draft.factors.iter().map(|f| f.name.as_str()).collect();
    let Some(at) = names.iter().position(|n| *n == entry.key) else {
        let near = meant(&entry.key, names.iter().copied().chain(["variant"]));
        let help = match near {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("write variant, or a factor: {}", listed(&names, "or")),
        };
        problems.fault(entry.key_span, format!("there is no factor '{}'", entry.key), help);
        return false;
    };
    let factor = &draft.factors[at];
    if let Some(label) = factor.label_of(raw) {
        selector.levels.push((at, label.to_string()));
        return true;
    }
    if factor.levels.is_empty() {
        return false; // they are wrong themselves, which has been told
    }
    let labels: Vec<&str> = factor.levels.iter().map(|l| l.label.as_str()).collect();
    let message = format!("'{}' has no level {}", factor.name, label(raw));
    problems.fault(entry.node.span, message, format!("there are {}", listed(&labels, "and")));
    false
}

fn claim(tree: &Tree, span: Span, problems: &mut Vec<Diagnostic>) -> Option<Claim> {
    let is = tree.text("is")?;
    let at = tree.get("is").map_or(span, |n| n.span);
    let mut lacks = |key: &str, example: &str| {
        if tree.get(key).is_none() {
            problems.fault(at, format!("'{is}' needs {key}"), format!("add {key} = {example}"));
        }
        tree.get(key).is_some()
    };
    let (wanted, claim): (&[&str], Option<Claim>) = match is {
        "slower" | "faster" => {
            let compared = lacks("than", "\"VARIANT\"");
            let by = tree.read("by").unwrap_or(0.0);
            let claim = if is == "slower" { Claim::Slower(by) } else { Claim::Faster(by) };
            (&["than", "by"], compared.then_some(claim))
        }
        "same" => {
            let compared = lacks("than", "\"VARIANT\"") & lacks("within", "\"15 %\"");
            (&["than", "within"], tree.read("within").filter(|_| compared).map(Claim::Within))
        }
        "not-different" => (&["than"], lacks("than", "\"VARIANT\"").then_some(Claim::NoDifference)),
        _ => (&["rate"], if lacks("rate", "\"100 kpps\"") { rate(tree, is, problems) } else { None }),
    };
    for key in ["than", "by", "within", "rate"] {
        if let Some(entry) = tree.entry(key).filter(|_| !wanted.contains(&key)) {
            let help = format!("'{is}' takes {}", listed(wanted, "and"));
            problems.fault(entry.key_span, format!("'{is}' does not take {key}"), help);
        }
    }
    match claim {
        Some(Claim::Slower(by)) if by >= 1.0 => {
            let at = tree.get("by").map_or(at, |n| n.span);
            problems.fault(at, "nothing can be slower by 100 % or more", "write a share below 100 %");
            None
        }
        other => other,
    }
}

fn rate(tree: &Tree, is: &str, problems: &mut Vec<Diagnostic>) -> Option<Claim> {
    let node = tree.get("rate")?;
    match node.text()?.parse() {
        Ok(Rate::Frames(fps)) if is == "at-least" => Some(Claim::AtLeast(fps)),
        Ok(Rate::Frames(fps)) => Some(Claim::AtMost(fps)),
        _ => {
            let help = "write it in frames a second: \"100 kpps\"";
            problems.fault(node.span, "an expected rate is one of frames", help);
            None
        }
    }
}

fn words(draft: &Draft, of: &Selector, than: Option<&Selector>, tree: &Tree) -> String {
    let value = |key: &str| match tree.get(key).and_then(Node::scalar) {
        Some(Json::Number(share)) => format!("{} %", (share.as_f64().unwrap_or(0.0) * 1e6).round() / 1e4),
        Some(Json::String(rate)) => rate.parse::<Rate>().map_or(String::new(), |rate| rate.to_string()),
        _ => String::new(),
    };
    let of = name(draft, of);
    let than = than.map(|s| name(draft, s)).unwrap_or_default();
    match tree.text("is").unwrap_or_default() {
        side @ ("slower" | "faster") if tree.get("by").is_some() => {
            format!("{of} is at least {} {side} than {than}", value("by"))
        }
        side @ ("slower" | "faster") => format!("{of} is {side} than {than}"),
        "same" => format!("{of} is within {} of {than}", value("within")),
        "not-different" => format!("{of} is not proven to differ from {than}"),
        "at-least" => format!("{of} forwards at least {}", value("rate")),
        _ => format!("{of} forwards at most {}", value("rate")),
    }
}

fn name(draft: &Draft, selector: &Selector) -> String {
    let who = match selector.who {
        Who::Any => None,
        Who::Variant(at) => Some(draft.variants[at].name.clone()),
        Who::Ceiling => Some(TESTER_BASELINE.to_string()),
    };
    let level = |(at, label): &(usize, String)| format!("{} {label}", draft.factors[*at].name);
    let levels: Vec<String> = selector.levels.iter().map(level).collect();
    match (who, levels.is_empty()) {
        (Some(who), true) => who,
        (Some(who), false) => format!("{who} with {}", listed(&levels, "and")),
        (None, true) => "each".into(),
        (None, false) => listed(&levels, "and"),
    }
}
