//! A plan whose form is right: its parts found, and the names that refer to each other resolved.

mod factors;
mod selectors;

use super::built_in;
use super::diagnostic::{Diagnostic, Problems, Span, suggestion};
use super::names::Named;
use super::value::{Entry, Lists, Node, Tree};
pub(super) use factors::FactorDraft;
use linerate_measure::experiment::{Interest, System};
pub(super) use selectors::{Expected, Selector, Who};
use std::collections::BTreeMap;

/// The name that the tester without a DUT goes by.
pub(super) const TESTER_BASELINE: &str = "tester-baseline";

/// A plan in parts.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) tree: Tree,
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
    pub(super) fn new(tree: Tree, problems: &mut Vec<Diagnostic>) -> Draft {
        let systems = match systems(tree.table("lab")) {
            empty if empty.is_empty() => vec![System::Linux],
            named => named,
        };
        let mut draft = Draft {
            systems,
            variants: Vec::new(),
            factors: Vec::new(),
            baseline: 0,
            expected: Vec::new(),
            quick_variants: None,
            files: BTreeMap::new(),
            tree,
        };
        draft.variants(problems);
        draft.baseline(problems);
        draft.factors = factors::factors(&draft, problems);
        draft.quick_variants(problems);
        draft.expected = selectors::expected(&draft, problems);
        draft
    }

    /// Reads the rule files that variants and factors name.
    pub(super) fn read_files(&mut self, read: &mut dyn FnMut(&str) -> Result<String, String>) {
        let mut named = Vec::new();
        self.variants.iter().for_each(|variant| rule_files(&variant.tree, &mut named));
        for factor in &self.factors {
            let levels = factor.levels.iter().chain(factor.quick.iter().flatten());
            for (at, _) in factor.sets.iter().enumerate().filter(|(_, (f, _))| f.keys == ["rules", "file"]) {
                named.extend(levels.clone().filter_map(|level| level.values.get(at)));
            }
        }
        let mut files = BTreeMap::new();
        for node in named {
            if let Some(name) = node.text() {
                files.entry(name.to_string()).or_insert_with(|| (node.span, read(name)));
            }
        }
        self.files = files;
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.tree.table("lab").is_none_or(|lab| lab.get("file").is_none())
    }

    /// Which comparisons the stopping rule waits for.
    pub(super) fn decides(&self, interest: Interest) -> bool {
        let word = match interest {
            Interest::Variants => "variants",
            Interest::Levels(_) => "levels",
            Interest::Expectation(_) => "expectations",
            Interest::Ceiling => "ceilings",
        };
        let named = self.tree.table("compare").map(|c| c.words::<String>("what")).unwrap_or_default();
        if named.is_empty() {
            !["levels", "ceilings"].contains(&word)
        } else {
            named.iter().any(|n| n == word)
        }
    }

    /// The variant of this name. An unknown name is a fault.
    pub(super) fn variant(&self, name: &str, span: Span, problems: &mut Vec<Diagnostic>) -> Option<usize> {
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
        list.iter().filter_map(|node| self.variant(node.text()?, node.span, problems)).collect()
    }

    fn variants(&mut self, problems: &mut Vec<Diagnostic>) {
        let Some(named) = self.tree.get("variants") else { return };
        if named.table().is_none() {
            return;
        }
        for Entry { key, key_span, node } in self.tree.within("variants") {
            let Some(tree) = node.table() else { continue };
            let own = systems(Some(tree));
            let systems = if own.is_empty() { self.systems.clone() } else { own };
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
            problems.fault(named.span, "a plan needs at least one variant", "add [variants.forwarding]");
        }
        self.parents(problems);
    }

    fn parents(&mut self, problems: &mut Vec<Diagnostic>) {
        for at in 0..self.variants.len() {
            let Some(from) = self.variants[at].tree.entry("from") else { continue };
            let Some(name) = from.node.text() else { continue };
            let is_it = |variant: &VariantDraft| variant.name == name;
            // A variant may have the name of the built-in one that it is from.
            if self.variants.iter().position(is_it).is_none_or(|parent| parent == at)
                && let Some(mut tree) = built_in::tree(name, from.node.span)
            {
                tree.overlay(&self.variants[at].tree, Lists::Extend);
                self.variants[at].tree = tree;
                continue;
            }
            self.variants[at].parent = self.variant(name, from.node.span, problems);
        }
        for at in 0..self.variants.len() {
            if let Some(circle) = self.circle(at) {
                // Told once, at its first member; then cut, so that the rest can be checked.
                let span = self.variants[at].tree.get("from").map_or(self.variants[at].span, |n| n.span);
                let help = "one of them must not have `from`";
                problems.fault(span, format!("these variants are from each other: {circle}"), help);
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
        let Some(with) = self.tree.table("compare").and_then(|c| c.get("with")) else { return };
        let named = with.text().and_then(|name| self.variant(name, with.span, problems));
        self.baseline = named.unwrap_or(0);
    }

    fn quick_variants(&mut self, problems: &mut Vec<Diagnostic>) {
        let Some(quick) = self.tree.table("quick").filter(|q| q.get("variants").is_some()) else { return };
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
