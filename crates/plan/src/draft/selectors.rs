//! Expectations: the cells that they select, and their claims.

use super::{Draft, TESTER_BASELINE};
use crate::diagnostic::{Diagnostic, Problems, Span, listed, meant};
use crate::units::Rate;
use crate::value::{Entry, Node, Tree, Value, label};
use linerate_measure::experiment::Claim;
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
            let partner = than.as_ref().and_then(Option::as_ref).map(|than| name(draft, than));
            let words = words(&name(draft, &of), &partner.unwrap_or_default(), claim);
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

/// Required keys of a claim, each with an example, and its optional keys.
type Parts = (&'static [(&'static str, &'static str)], &'static [&'static str]);

fn claim(tree: &Tree, span: Span, problems: &mut Vec<Diagnostic>) -> Option<Claim> {
    const THAN: (&str, &str) = ("than", "\"VARIANT\"");
    let is = tree.text("is")?;
    let at = |key: &str| tree.get(key).map_or(span, |node| node.span);
    let before = problems.len();
    let (needs, may): Parts = match is {
        "slower" | "faster" => (&[THAN], &["by"]),
        "same" => (&[THAN, ("within", "\"15 %\"")], &[]),
        "not-different" => (&[THAN], &[]),
        _ => (&[("rate", "\"100 kpps\"")], &[]),
    };
    for (key, example) in needs.iter().filter(|(key, _)| tree.get(key).is_none()) {
        problems.fault(at("is"), format!("'{is}' needs {key}"), format!("add {key} = {example}"));
    }
    let wanted: Vec<&str> = needs.iter().map(|(key, _)| *key).chain(may.iter().copied()).collect();
    for key in ["than", "by", "within", "rate"] {
        if let Some(entry) = tree.entry(key).filter(|_| !wanted.contains(&key)) {
            let help = format!("'{is}' takes {}", listed(&wanted, "and"));
            problems.fault(entry.key_span, format!("'{is}' does not take {key}"), help);
        }
    }
    let by = tree.read("by").unwrap_or(0.0);
    if is == "slower" && by >= 1.0 {
        problems.fault(at("by"), "nothing can be slower by 100 % or more", "write a share below 100 %");
    }
    let rate = tree.text("rate").and_then(|rate| rate.parse().ok());
    let claim = match (is, rate) {
        ("slower", _) => Claim::Slower(by),
        ("faster", _) => Claim::Faster(by),
        ("same", _) => Claim::Within(tree.read("within")?),
        ("not-different", _) => Claim::NoDifference,
        ("at-least", Some(Rate::Frames(fps))) => Claim::AtLeast(fps),
        ("at-most", Some(Rate::Frames(fps))) => Claim::AtMost(fps),
        (_, None) => return None,
        _ => {
            let help = "write it in frames a second: \"100 kpps\"";
            problems.fault(at("rate"), "an expected rate is one of frames", help);
            return None;
        }
    };
    (problems.len() == before).then_some(claim)
}

fn words(of: &str, than: &str, claim: Claim) -> String {
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    match claim {
        Claim::Slower(0.0) => format!("{of} is slower than {than}"),
        Claim::Faster(0.0) => format!("{of} is faster than {than}"),
        Claim::Slower(by) => format!("{of} is at least {} slower than {than}", percent(by)),
        Claim::Faster(by) => format!("{of} is at least {} faster than {than}", percent(by)),
        Claim::Within(share) => format!("{of} is within {} of {than}", percent(share)),
        Claim::NoDifference => format!("{of} is not proven to differ from {than}"),
        Claim::AtLeast(rate) => format!("{of} forwards at least {}", Rate::Frames(rate)),
        Claim::AtMost(rate) => format!("{of} forwards at most {}", Rate::Frames(rate)),
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
