//! Whether a firewall's rules are possible: those that linerate writes, and those of a file.

use crate::checks::place::Place;
use crate::diagnostic::{Diagnostic, Problems, Span, listed};
use crate::lower;
use crate::names::Named;
use crate::rules::own::{Meaning, RuleFile};
use crate::rules::{Firewall, RuleSet};
use crate::value::Tree;
use linerate_measure::experiment::System;
use std::collections::BTreeMap;

/// Keys that apply only to a rule set that linerate writes.
const OF_WRITTEN: [&str; 7] = [
    "filter",
    "before",
    "table",
    "states",
    "hash",
    "flow-table",
    "optimize",
];

/// Where each trial is to begin without states, the firewall must be able to forget them.
fn forgotten(place: &Place<'_>, tree: &Tree, firewall: Firewall) -> Option<Diagnostic> {
    let at = tree
        .entry("states")
        .filter(|_| tree.text("states") == Some("new"))?;
    if place.embedded || firewall.can_forget() {
        return None;
    }
    let message = "ipfw forgets its states only together with its rules";
    let help = "measure \"established\" or \"one-way\" states, or another firewall";
    Some(Diagnostic::at(at.key_span, message).remedy(help))
}

pub(super) fn rules(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let Some(rules) = tree.table("rules") else {
        return;
    };
    let Some(first) = rules.entries.first() else {
        return;
    };
    if rules.text("filter") == Some("none")
        || ["file", "map"]
            .into_iter()
            .any(|key| rules.get(key).is_some())
    {
        return;
    }
    let lacking: Vec<&str> = ["tool", "filter"]
        .into_iter()
        .filter(|key| rules.get(key).is_none())
        .collect();
    if !lacking.is_empty() {
        let varied = place.levels.iter().any(|(f, _)| {
            place.draft.factors[*f]
                .sets
                .iter()
                .any(|(field, span)| field.keys[0] == "rules" && *span != Span::default())
        });
        let message = format!(
            "the rule set of '{}' lacks {}",
            place.name(),
            listed(&lacking, "and")
        );
        let help = match varied && rules.get("tool").is_none() {
            true => format!(
                "a factor sets its rules: give the factor variants = [...] without '{}', or the variant rules.tool",
                place.name()
            ),
            false => "add tool = \"nftables\" and filter = \"stateless\", say".to_string(),
        };
        problems.fault(first.key_span, message, help);
        return;
    }
    problems.extend(tool(place, rules));
    problems.extend(
        rules
            .read("tool")
            .and_then(|firewall| forgotten(place, tree, firewall)),
    );
    if let Some(at) = rules
        .entry("hash")
        .filter(|_| rules.get("states").is_none())
    {
        let help = "add states = 100000, say";
        problems.fault(
            at.key_span,
            "the hash is sized for a number of states",
            help,
        );
    }
    let set = lower::settings(tree)
        .rules
        .map(|rules| rules.for_frames(place.system, &[place.family], Some(["in", "out"])));
    for fault in set.iter().flat_map(RuleSet::faults) {
        let key = match fault.subject.as_deref() {
            Some("rules-before") => "before",
            Some(key @ ("table" | "states" | "hit" | "seed" | "flow-table" | "optimize")) => key,
            _ => "filter",
        };
        let span = rules
            .entry(key)
            .map_or(first.key_span, |entry| entry.key_span);
        problems.push(Diagnostic {
            subject: None,
            ..fault.within(span)
        });
    }
}

/// Whether the system has the firewall that is named.
fn tool(place: &Place<'_>, rules: &Tree) -> Option<Diagnostic> {
    let node = rules.get("tool")?;
    let tool = node.text()?;
    let tools = tools(place.system);
    if tools.contains(&tool) {
        return None;
    }
    let message = format!("{} has no {tool}", place.system);
    let help = format!(
        "there it is {}; or give the variant systems = [...] without it",
        listed(tools, "or")
    );
    Some(Diagnostic::at(node.span, message).remedy(help))
}

/// The firewalls of a system.
pub(crate) fn tools(system: System) -> &'static [&'static str] {
    match system {
        System::Linux | System::Vyos => &["nftables", "iptables"],
        System::FreeBsd => &["ipfw", "pf", "ipf"],
        // Their kernels have no IP Filter.
        System::PfSense | System::OpnSense => &["ipfw", "pf"],
        System::OpenBsd => &["pf"],
    }
}

/// The rule file of a cell, if it has one.
pub(crate) fn rule_file(place: &Place<'_>, tree: &Tree) -> Result<Option<RuleFile>, Diagnostic> {
    let Some(rules) = tree
        .table("rules")
        .filter(|rules| rules.text("filter") != Some("none"))
    else {
        return Ok(None);
    };
    let Some(name) = rules.text("file") else {
        return match rules.entry("map") {
            Some(map) => Err(Diagnostic::at(
                map.key_span,
                "there is no file whose names could be mapped",
            )
            .remedy("add file = \"fw.nft\", or leave it out")),
            None => Ok(None),
        };
    };
    let span = rules.get("file").map_or(Span::default(), |node| node.span);
    if let Some(entry) = OF_WRITTEN.iter().find_map(|key| rules.entry(key)) {
        let message = format!(
            "a rule file has rules of its own: {} is for rule sets that linerate writes",
            entry.key
        );
        return Err(Diagnostic::at(entry.key_span, message).remedy("leave it out, or the file"));
    }
    if let Some(problem) = tool(place, rules) {
        return Err(problem);
    }
    let text = match place.draft.files.get(name) {
        Some((_, Ok(text))) => text,
        Some((_, Err(why))) => {
            let message = format!("cannot read the rule file {name}: {why}");
            return Err(Diagnostic::at(span, message).remedy("name a file that exists"));
        }
        None => return Ok(None),
    };
    let firewall = rules
        .read("tool")
        .map(|firewall: Firewall| firewall.on(place.system));
    let mut file =
        RuleFile::read(name, text, firewall, &map(rules)).map_err(|wrong| Diagnostic {
            message: wrong.head(),
            subject: None,
            place: None,
            remedy: wrong
                .remedy
                .as_ref()
                .map(|remedy| match place.draft.key("rules", "map") {
                    option if option != "map" && remedy.contains("map ") => {
                        format!("{remedy} ({option} NAME=in, {option} NAME=out)")
                    }
                    _ => remedy.clone(),
                }),
            ..wrong.within(span)
        })?;
    file.firewall = file.firewall.on(place.system);
    let known = tools(place.system);
    let of_system = if file.firewall.is_pf() {
        "pf".into()
    } else {
        file.firewall.to_string()
    };
    if !known.contains(&of_system.as_str()) {
        let message = format!(
            "{name} is a rule file of {}, which {} does not have",
            file.firewall, place.system
        );
        return Err(
            Diagnostic::at(span, message).remedy(format!("there it is {}", listed(known, "or")))
        );
    }
    forgotten(place, tree, file.firewall).map_or(Ok(Some(file)), Err)
}

fn map(rules: &Tree) -> BTreeMap<String, Meaning> {
    rules
        .within("map")
        .iter()
        .filter_map(|e| Some((e.key.clone(), Meaning::of_name(e.node.text()?)?)))
        .collect()
}
