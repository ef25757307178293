//! A plan whose form is right: its parts found, and the names that refer to each other resolved.

mod factors;

use super::built_in::{self, BuiltIn};
use super::diagnostic::{Diagnostic, Problems, Span, listed, meant, suggestion};
use super::names::Named;
use super::source::Keyed;
use super::value::{Entry, Lists, Node, Tree, Value, label};
use crate::units::{Rate, percent};
pub(super) use factors::FactorDraft;
use linerate_measure::experiment::{Claim, Interest, System};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The name that the tester without a DUT goes by.
pub(super) const TESTER_BASELINE: &str = "tester-baseline";

/// A plan in parts.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) tree: Tree,
    /// Options of the verb that are keys.
    options: Vec<Keyed>,
    pub(super) systems: Vec<System>,
    pub(super) variants: Vec<VariantDraft>,
    pub(super) factors: Vec<FactorDraft>,
    /// The variant that the others are compared with.
    pub(super) baseline: usize,
    pub(super) expected: Vec<Expected>,
    /// Variants of the quick form.
    pub(super) quick_variants: Option<Vec<usize>>,
    /// Rule files by their names in the plan: the first place that names each file, and its text or the reason why it could not
    /// be read.
    pub(super) files: BTreeMap<String, (Span, Result<String, String>)>,
}

/// A variant with its place in the text.
#[derive(Debug)]
pub(super) struct VariantDraft {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) tree: Tree,
    /// The variant it is from.
    pub(super) parent: Option<usize>,
    pub(super) systems: Vec<System>,
}

impl Draft {
    /// Resolves the names of a tree.
    pub(super) fn new(tree: Tree, options: Vec<Keyed>, problems: &mut Vec<Diagnostic>) -> Draft {
        let systems = match systems(tree.table("lab")) {
            empty if empty.is_empty() => vec![System::Linux],
            named => with_derived(named),
        };
        let mut draft = Draft {
            systems,
            variants: Vec::new(),
            factors: Vec::new(),
            baseline: 0,
            expected: Vec::new(),
            quick_variants: None,
            files: BTreeMap::new(),
            options,
            tree,
        };
        draft.variants(problems);
        draft.baseline(problems);
        draft.factors = factors::factors(&draft, problems);
        draft.quick_variants(problems);
        draft.expected = expected(&draft, problems);
        draft
    }

    /// Reads the rule files that variants and factors name.
    pub(super) fn read_files(&mut self, read: &mut dyn FnMut(&str) -> Result<String, String>) {
        let mut named = Vec::new();
        self.variants
            .iter()
            .for_each(|variant| rule_files(&variant.tree, &mut named));
        for factor in &self.factors {
            let levels = factor.levels.iter().chain(factor.quick.iter().flatten());
            for (at, _) in factor
                .sets
                .iter()
                .enumerate()
                .filter(|(_, (f, _))| f.keys == ["rules", "file"])
            {
                named.extend(levels.clone().filter_map(|level| level.values.get(at)));
            }
        }
        let mut files = BTreeMap::new();
        for node in named {
            if let Some(name) = node.text() {
                files
                    .entry(name.to_string())
                    .or_insert_with(|| (node.span, read(name)));
            }
        }
        self.files = files;
    }

    /// A key of a table in remedies: its option, if the verb has one.
    pub(super) fn key<'k>(&self, table: &str, key: &'k str) -> &'k str {
        let of_it = |keyed: &&Keyed| keyed.key.split_once('.') == Some((table, key));
        self.options
            .iter()
            .find(of_it)
            .map_or(key, |keyed| keyed.option)
    }

    /// A key with its value: `mode = "threaded"`, or `--mode threaded`.
    pub(super) fn with(&self, table: &str, key: &str, value: &str) -> String {
        match self.key(table, key) {
            option if option.starts_with("--") => {
                format!("{option} {}", value.replace(['"', ' '], ""))
            }
            key => format!("{key} = {value}"),
        }
    }

    /// How a key is added: `add mode = "threaded" to [lab]`, or `add --mode threaded`.
    pub(super) fn add(&self, table: &str, key: &str, value: &str) -> String {
        let with = self.with(table, key, value);
        match with.starts_with("--") {
            true => format!("add {with}"),
            false => format!("add {with} to [{table}]"),
        }
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.tree
            .table("lab")
            .is_none_or(|lab| lab.get("file").is_none())
    }

    /// Whether the hosts at both ends of a path are the device under test.
    pub(super) fn is_of_end_hosts(&self) -> bool {
        self.is_embedded()
            && self
                .tree
                .table("lab")
                .is_some_and(|lab| lab.text("mode") == Some("end-hosts"))
    }

    /// Which comparisons the stopping rule waits for.
    pub(super) fn decides(&self, interest: Interest) -> bool {
        let word = match interest {
            Interest::Variants => "variants",
            Interest::Levels(_) => "levels",
            Interest::Expectation(_) => "expectations",
            Interest::Ceiling => "ceilings",
        };
        let named = self.named_interests();
        if named.is_empty() {
            !["levels", "ceilings"].contains(&word)
        } else {
            named.iter().any(|n| n == word)
        }
    }

    /// Whether a form of the plan ends once its intervals are narrow.
    pub(super) fn has_until(&self) -> bool {
        let tables = ["compare", "quick"].map(|name| self.tree.table(name));
        let mut tables = tables.into_iter().flatten();
        tables.any(|table| table.get("until").is_some())
    }

    /// Which comparisons the plan names for the stopping rule.
    pub(super) fn named_interests(&self) -> Vec<String> {
        let compare = self.tree.table("compare");
        compare.map(|c| c.words("what")).unwrap_or_default()
    }

    /// The variant of this name. An unknown name is a fault.
    pub(super) fn variant(
        &self,
        name: &str,
        span: Span,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<usize> {
        let names = || self.variants.iter().map(|v| v.name.as_str());
        let found = names().position(|n| n == name);
        if found.is_none() {
            let fault = Diagnostic::at(span, format!("there is no variant '{name}'"));
            problems.push(fault.remedy(suggestion(name, names())));
        }
        found
    }

    /// The variants that a list names.
    fn named(&self, list: &[Node], problems: &mut Vec<Diagnostic>) -> Vec<usize> {
        list.iter()
            .filter_map(|node| self.variant(node.text()?, node.span, problems))
            .collect()
    }

    fn variants(&mut self, problems: &mut Vec<Diagnostic>) {
        let Some(named) = self.tree.get("variants") else {
            return;
        };
        if named.table().is_none() {
            return;
        }
        for Entry {
            key,
            key_span,
            node,
        } in self.tree.within("variants")
        {
            let Some(tree) = node.table() else { continue };
            let own = systems(Some(tree));
            let systems = if own.is_empty() {
                self.systems.clone()
            } else {
                own
            };
            let variant = VariantDraft {
                name: key.clone(),
                span: *key_span,
                tree: tree.clone(),
                parent: None,
                systems,
            };
            self.variants.push(variant);
        }
        if self.variants.is_empty() {
            problems.fault(
                named.span,
                "a plan needs at least one variant",
                "add [variants.forwarding]",
            );
        }
        self.parents(problems);
    }

    fn parents(&mut self, problems: &mut Vec<Diagnostic>) {
        for at in 0..self.variants.len() {
            let Some(from) = self.variants[at].tree.entry("from") else {
                continue;
            };
            let Some(name) = from.node.text() else {
                continue;
            };
            let mut others = self.variants.iter().enumerate();
            if !others.any(|(other, variant)| other != at && variant.name == name) {
                // A variant may have the name of the built-in one that it is from.
                if let Some(mut tree) = built_in::tree(name, from.node.span) {
                    tree.overlay(&self.variants[at].tree, Lists::Extend);
                    self.variants[at].tree = tree;
                    continue;
                }
                let names = self.variants.iter().map(|variant| variant.name.as_str());
                let built_in = BuiltIn::list().map(|(name, _)| name);
                let known = names.filter(|other| *other != name).chain(built_in);
                if let Some(near) = meant(name, known) {
                    let help = format!("did you mean \"{near}\"?");
                    let fault = format!("there is no variant '{name}'");
                    problems.fault(from.node.span, fault, help);
                    continue;
                }
            }
            self.variants[at].parent = self.variant(name, from.node.span, problems);
        }
        for at in 0..self.variants.len() {
            if let Some(circle) = self.circle(at) {
                // Told once, at its first member; then cut, so that the rest can be checked.
                let span = self.variants[at]
                    .tree
                    .get("from")
                    .map_or(self.variants[at].span, |n| n.span);
                let help = "one of them must not have `from`";
                problems.fault(
                    span,
                    format!("these variants are from each other: {circle}"),
                    help,
                );
                self.variants[at].parent = None;
            }
        }
    }

    /// The names of a circle that leads from a variant back to itself.
    fn circle(&self, start: usize) -> Option<String> {
        let mut names = vec![self.variants[start].name.as_str()];
        let mut at = self.variants[start].parent;
        while let Some(next) = at {
            names.push(&self.variants[next].name);
            if next == start {
                return Some(names.join(" from "));
            }
            if names.len() > self.variants.len() + 1 {
                return None; // a circle further up, told at its own members
            }
            at = self.variants[next].parent;
        }
        None
    }

    fn baseline(&mut self, problems: &mut Vec<Diagnostic>) {
        let Some(with) = self.tree.table("compare").and_then(|c| c.get("with")) else {
            return;
        };
        let named = with
            .text()
            .and_then(|name| self.variant(name, with.span, problems));
        self.baseline = named.unwrap_or(0);
    }

    fn quick_variants(&mut self, problems: &mut Vec<Diagnostic>) {
        let Some(quick) = self
            .tree
            .table("quick")
            .filter(|q| q.get("variants").is_some())
        else {
            return;
        };
        self.quick_variants = Some(self.named(quick.list("variants"), problems));
    }
}

/// The rule files that a variant names, in its sections as well.
fn rule_files<'t>(tree: &'t Tree, named: &mut Vec<&'t Node>) {
    for entry in &tree.entries {
        if let Some(inner) = entry.node.table() {
            match entry.key.as_str() {
                "rules" => named.extend(inner.get("file")),
                key if System::of_name(key).is_some() => rule_files(inner, named),
                _ => {}
            }
        }
    }
}

fn systems(tree: Option<&Tree>) -> Vec<System> {
    let mut systems: Vec<System> = Vec::new();
    for system in tree.map(|t| t.words("systems")).unwrap_or_default() {
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    systems
}

/// The systems given, and those that are made from FreeBSD, which take its settings.
fn with_derived(named: Vec<System>) -> Vec<System> {
    let derived = |system: &System| {
        let parent = system.parent().filter(|parent| *parent == System::FreeBsd);
        !named.contains(system) && parent.is_some_and(|parent| named.contains(&parent))
    };
    let all: Vec<System> = System::all().filter(derived).collect();
    named.into_iter().chain(all).collect()
}

/// Which cells are meant.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    pub(super) who: Who,
    /// Levels by factor, as their labels.
    pub(super) levels: Vec<(usize, String)>,
}

/// Which variant is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Who {
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
pub(super) struct Expected {
    pub(super) span: Span,
    pub(super) of: Selector,
    pub(super) than: Option<Selector>,
    pub(super) claim: Claim,
    pub(super) words: String,
    pub(super) because: String,
}

fn expected(draft: &Draft, problems: &mut Vec<Diagnostic>) -> Vec<Expected> {
    let mut all = Vec::new();
    for node in draft.tree.list("expect") {
        let Some(tree) = node.table() else { continue };
        let selector = |key: &str, problems: &mut Vec<Diagnostic>| {
            tree.get(key).map(|node| selector(draft, node, problems))
        };
        let (of, than) = (selector("of", problems), selector("than", problems));
        let claim = claim(tree, node.span, problems);
        if let (Some(Some(of)), Some(claim)) = (of, claim) {
            let partner = than
                .as_ref()
                .and_then(Option::as_ref)
                .map(|than| name(draft, than));
            let words = words(&name(draft, &of), &partner.unwrap_or_default(), claim);
            let because = tree.text("because").unwrap_or_default().to_string();
            let span = tree.get("of").map_or(node.span, |n| n.span);
            if than.as_ref().is_none_or(Option::is_some) {
                all.push(Expected {
                    span,
                    of,
                    than: than.flatten(),
                    claim,
                    words,
                    because,
                });
            }
        }
    }
    all
}

fn selector(draft: &Draft, node: &Node, problems: &mut Vec<Diagnostic>) -> Option<Selector> {
    match &node.value {
        Value::Scalar(Json::String(name)) => Some(Selector {
            who: who(draft, name, node.span, problems)?,
            ..Selector::default()
        }),
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

fn part(
    draft: &Draft,
    entry: &Entry,
    selector: &mut Selector,
    problems: &mut Vec<Diagnostic>,
) -> bool {
    let Some(raw) = entry.node.scalar() else {
        let help = "write one level here, and another [[expect]] for another";
        problems.fault(
            entry.node.span,
            "an expectation is about one level of a factor",
            help,
        );
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
        problems.fault(
            entry.key_span,
            format!("there is no factor '{}'", entry.key),
            help,
        );
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
    problems.fault(
        entry.node.span,
        message,
        format!("there are {}", listed(&labels, "and")),
    );
    false
}

/// Required keys of a claim, each with an example, and its optional keys.
type Parts = (
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

fn claim(tree: &Tree, span: Span, problems: &mut Vec<Diagnostic>) -> Option<Claim> {
    const THAN: (&str, &str) = ("than", "\"VARIANT\"");
    let is = tree.text("is")?;
    let at = |key: &str| tree.get(key).map_or(span, |node| node.span);
    let before = problems.len();
    let (needs, may): Parts = match is {
        "slower" | "faster" => (&[THAN], &["by"]),
        "same" => (&[THAN, ("within", "\"15 %\"")], &[]),
        "not-different" => (&[THAN], &[]),
        "all-pass" | "none-passes" => (&[], &[]),
        _ => (&[("rate", "\"100 kpps\"")], &[]),
    };
    for (key, example) in needs.iter().filter(|(key, _)| tree.get(key).is_none()) {
        problems.fault(
            at("is"),
            format!("'{is}' needs {key}"),
            format!("add {key} = {example}"),
        );
    }
    let wanted: Vec<&str> = needs
        .iter()
        .map(|(key, _)| *key)
        .chain(may.iter().copied())
        .collect();
    for key in ["than", "by", "within", "rate"] {
        if let Some(entry) = tree.entry(key).filter(|_| !wanted.contains(&key)) {
            let help = match &wanted[..] {
                [] => "leave it out".into(),
                wanted => format!("'{is}' takes {}", listed(wanted, "and")),
            };
            problems.fault(entry.key_span, format!("'{is}' does not take {key}"), help);
        }
    }
    let by = tree.read("by").unwrap_or(0.0);
    if is == "slower" && by >= 1.0 {
        problems.fault(
            at("by"),
            "nothing can be slower by 100 % or more",
            "write a share below 100 %",
        );
    }
    let rate = tree.text("rate").and_then(|rate| rate.parse().ok());
    let claim = match (is, rate) {
        ("slower", _) => Claim::Slower(by),
        ("faster", _) => Claim::Faster(by),
        ("same", _) => Claim::Within(tree.read("within")?),
        ("not-different", _) => Claim::NoDifference,
        ("all-pass", _) => Claim::AllPass,
        ("none-passes", _) => Claim::NonePasses,
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
    let percent = |share| format!("{} %", percent(share));
    match claim {
        Claim::Slower(0.0) => format!("{of} is slower than {than}"),
        Claim::Faster(0.0) => format!("{of} is faster than {than}"),
        Claim::Slower(by) => format!("{of} is at least {} slower than {than}", percent(by)),
        Claim::Faster(by) => format!("{of} is at least {} faster than {than}", percent(by)),
        Claim::Within(share) => format!("{of} is within {} of {than}", percent(share)),
        Claim::NoDifference => format!("{of} is not proven to differ from {than}"),
        Claim::AtLeast(rate) => format!("{of} forwards at least {}", Rate::Frames(rate)),
        Claim::AtMost(rate) => format!("{of} forwards at most {}", Rate::Frames(rate)),
        Claim::AllPass => format!("{of}: all pass"),
        Claim::NonePasses => format!("{of}: none passes"),
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
