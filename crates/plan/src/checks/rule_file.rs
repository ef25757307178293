//! Rule files of the author's own: whether they can be used on this system, in this lab.

use super::Place;
use super::settings::{forgotten, tool, tools};
use crate::diagnostic::{Diagnostic, Span, listed};
use crate::names::Named;
use crate::rules::Firewall;
use crate::rules::own::{Meaning, RuleFile};
use crate::value::Tree;
use std::collections::BTreeMap;

/// Keys that apply only to a rule set that linerate writes.
const OF_WRITTEN: [&str; 6] = ["filter", "before", "table", "states", "hash", "optimize"];

/// The rule file of a cell, if it has one.
pub(in super::super) fn rule_file(place: &Place<'_>, tree: &Tree) -> Result<Option<RuleFile>, Diagnostic> {
    let Some(rules) = tree.table("rules").filter(|rules| rules.text("filter") != Some("none")) else {
        return Ok(None);
    };
    let Some(name) = rules.text("file") else {
        return match rules.entry("map") {
            Some(map) => Err(Diagnostic::at(map.key_span, "there is no file whose names could be mapped")
                .remedy("add file = \"fw.nft\", or leave it out")),
            None => Ok(None),
        };
    };
    let span = rules.get("file").map_or(Span::default(), |node| node.span);
    if let Some(entry) = OF_WRITTEN.iter().find_map(|key| rules.entry(key)) {
        let message =
            format!("a rule file has rules of its own: {} is for rule sets that linerate writes", entry.key);
        return Err(Diagnostic::at(entry.key_span, message).remedy("leave it out, or the file"));
    }
    if let Some(problem) = tool(place, rules) {
        return Err(problem);
    }
    let text = match place.draft.files.get(name) {
        Some((_, Ok(text))) => text,
        Some((_, Err(why))) => {
            let message = format!("the rule file {name} cannot be read: {why}");
            return Err(Diagnostic::at(span, message).remedy("name a file by its way from the plan's folder"));
        }
        None => return Ok(None),
    };
    let firewall = rules.read("tool").map(|firewall: Firewall| firewall.on(place.system));
    let mut file = RuleFile::read(name, text, firewall, &map(rules)).map_err(|wrong| Diagnostic {
        message: wrong.head(),
        subject: None,
        place: None,
        ..wrong.within(span)
    })?;
    file.firewall = file.firewall.on(place.system);
    let known = tools(place.system);
    let of_system = if file.firewall.is_pf() { "pf".into() } else { file.firewall.to_string() };
    if !known.contains(&of_system.as_str()) {
        let message =
            format!("{name} is a rule file of {}, which {} does not have", file.firewall, place.system);
        return Err(Diagnostic::at(span, message).remedy(format!("there it is {}", listed(known, "or"))));
    }
    let states = if file.firewall == Firewall::Ipfw { forgotten(place, tree, Firewall::Ipfw) } else { None };
    states.map_or(Ok(Some(file)), Err)
}

fn map(rules: &Tree) -> BTreeMap<String, Meaning> {
    rules
        .within("map")
        .iter()
        .filter_map(|e| Some((e.key.clone(), Meaning::of_name(e.node.text()?)?)))
        .collect()
}
