//! Whether the settings of a variant are possible: on this system, in this lab, together.

pub(super) mod rules;

use super::place::Place;
use crate::card::{CardSetting, ROWS};
use crate::diagnostic::{Diagnostic, Problems, Span, listed};
use crate::draft::TESTER_BASELINE;
use crate::settings::{Dut, Event, EventKind};
use crate::value::{Entry, Tree};
use crate::{forms, lower};
use linerate_measure::experiment::System;
pub(in super::super) use rules::rule_file;
use rules::rules;

/// Checks everything that applies to one cell.
pub(in super::super) fn settings(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    dut(place, tree, problems);
    end_hosts(place, tree, problems);
    rules(place, tree, problems);
    interface(place, tree, problems);
    image(tree, problems);
    kernel(place, tree, problems);
    for key in ["image", "boot"] {
        boot(place, tree, key, problems);
    }
    names(tree, problems);
    event(place, tree, problems);
    tables(place, tree, problems);
    for node in tree.tables("files").filter_map(|file| file.get("path")) {
        path(place, node.text().unwrap_or_default(), node.span, problems);
    }
    for (node, command) in tree.list("commands").iter().zip(tree.tables("commands")) {
        undo(place, node.span, command, problems);
    }
}

/// Faults of an event: missing keys, or a lab in which it is not possible.
fn event(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let (Some(table), Some(event)) = (tree.table("event"), lower::settings(tree).event) else {
        return;
    };
    let Some(named) = table.get("what") else {
        let span = tree.get("event").map_or(place.span(), |event| event.span);
        return problems.fault(
            span,
            "an event needs its kind",
            "add what = \"forwarding-off\"",
        );
    };
    let takes: &[&str] = match event.what {
        EventKind::ForwardingOff => &["for"],
        EventKind::LinkDown => &["for", "end"],
        EventKind::ProcessKilled => &["process", "run"],
        EventKind::Command => &["run", "undo", "for"],
        EventKind::RulesReloaded
        | EventKind::FirewallRestarted
        | EventKind::Reboot
        | EventKind::PowerOff => &[],
    };
    let word = named.text().unwrap_or_default();
    for entry in table
        .entries
        .iter()
        .filter(|e| e.key != "what" && !takes.contains(&e.key.as_str()))
    {
        problems.fault(
            entry.key_span,
            format!("{word} does not take {}", entry.key),
            "leave it out",
        );
    }
    if let Some((why, help)) = lacks(place, tree, &event) {
        problems.fault(named.span, format!("{word}: {why}"), help);
    }
}

/// Reason why an event cannot happen to a DUT, and the remedy.
fn lacks(place: &Place<'_>, tree: &Tree, event: &Event) -> Option<(&'static str, &'static str)> {
    let Event {
        what,
        process,
        run,
        undo,
        ..
    } = event;
    let dut: Dut = tree.read("dut").unwrap_or_default();
    match what {
        EventKind::ProcessKilled if process.is_none() => {
            Some(("no process is named", "add process = \"bird\""))
        }
        EventKind::Command if run.is_none() || undo.is_none() => {
            Some(("a command needs its undoing", "add run and undo"))
        }
        EventKind::RulesReloaded | EventKind::FirewallRestarted
            if tree.table("rules").is_none() =>
        {
            Some((
                "the variant has no rules",
                "add rules, or choose another event",
            ))
        }
        EventKind::FirewallRestarted if !place.embedded => Some((
            "linerate can do so in the embedded lab only",
            "use rules-reloaded, or a command with its own undoing",
        )),
        EventKind::Reboot | EventKind::PowerOff if place.embedded => Some((
            "this machine would go down",
            "give the plan a lab file, or choose another event",
        )),
        EventKind::ForwardingOff if !dut.routes() => {
            Some(("the DUT does not route", "choose another event"))
        }
        EventKind::LinkDown
            if place.embedded
                && (dut != Dut::Forwarding
                    || ["routes", "neighbours"]
                        .iter()
                        .any(|k| tree.get(k).is_some())) =>
        {
            Some((
                "linerate puts back the addresses, routes and neighbours of the test traffic, and no others",
                "choose a forwarding DUT without tables of its own, or another event",
            ))
        }
        _ => None,
    }
}

/// End hosts have a path between them, and settings of their kernels; nothing else has a path.
fn end_hosts(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    const KEYS: [&str; 2] = ["path", "sysctls"];
    if !place.draft.is_of_end_hosts() {
        if let Some(entry) = tree.entry("path") {
            let help = "add mode = \"end-hosts\" to [lab], or leave the path out";
            problems.fault(entry.key_span, "a path is between two end hosts", help);
        }
        return;
    }
    let baseline = tree.read("dut") == Some(Dut::TesterBaseline);
    let known = |e: &&Entry| KEYS.contains(&e.key.as_str()) || baseline && e.key == "dut";
    for entry in tree.entries.iter().filter(|e| !known(e)) {
        let message = format!(
            "{} cannot be set where the end hosts are measured",
            entry.key
        );
        problems.fault(
            entry.key_span,
            message,
            format!("leave it out: there are {}", listed(&KEYS, "and")),
        );
    }
    let lacking: Vec<&str> = ["rtt", "rate"]
        .into_iter()
        .filter(|key| {
            tree.table("path")
                .is_none_or(|path| path.get(key).is_none())
        })
        .collect();
    if !lacking.is_empty() && !baseline {
        let message = format!(
            "the path between the end hosts of '{}' lacks {}",
            place.name(),
            listed(&lacking, "and")
        );
        problems.fault(
            place.span(),
            message,
            "add path = { rtt = \"100 ms\", rate = \"1 Gbit/s\" }, say",
        );
    }
}

/// In the embedded lab files stand in a folder of the DUT's own; elsewhere they are the host's.
fn path(place: &Place<'_>, path: &str, span: Span, problems: &mut Vec<Diagnostic>) {
    let problem = match (place.embedded, path) {
        (_, "") => return,
        (_, path) if path.split('/').any(|part| part == "..") => {
            Diagnostic::at(span, "a path must not go up").remedy("write it without '..'")
        }
        (true, path) if path.starts_with('/') => {
            Diagnostic::at(span, "the embedded lab writes no files of this host")
                .remedy("write a name without folders: commands run where the file is")
        }
        (false, path) if !path.starts_with('/') => {
            Diagnostic::at(span, "a file's path begins at the root")
                .remedy("write \"/etc/pf.conf\", say")
        }
        _ => return,
    };
    problems.push(problem);
}

/// Names of settings, which become paths or arguments of programs.
fn names(tree: &Tree, problems: &mut Vec<Diagnostic>) {
    for (key, what) in [("sysctls", "a kernel setting"), ("boot", "a boot setting")] {
        for Entry {
            key: name,
            key_span,
            ..
        } in tree.within(key)
        {
            if !forms::is_name(name, "._-/%{}") {
                let message = format!(
                    "'{}' is not a valid name of {what}",
                    name.chars().take(60).collect::<String>()
                );
                problems.fault(
                    *key_span,
                    message,
                    "write letters, digits, '_', '-' and '.'",
                );
            }
            problems.extend(
                forms::placeholders_known(name)
                    .err()
                    .map(|wrong| wrong.within(*key_span)),
            );
        }
    }
}

fn tables(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    for key in ["routes", "neighbours"] {
        let bridged = tree.read("dut") == Some(Dut::Bridge);
        if let Some(entry) = tree.entry(key).filter(|_| bridged) {
            let help = "leave it out, or use a factor's variants = [...]";
            problems.fault(
                entry.key_span,
                format!("'{}' is a bridge: it has no {key}", place.name()),
                help,
            );
        }
    }
    for route in tree
        .table("routes")
        .into_iter()
        .flat_map(|t| t.tables("explicit"))
    {
        let is_v6 = |key: &str| route.text(key).map(|text| text.contains(':'));
        let differ = is_v6("via").is_some_and(|via| is_v6("to").is_some_and(|to| to != via));
        if let Some(node) = route.get("via").filter(|_| differ) {
            let help = "name a next hop of the network's IP version";
            problems.fault(node.span, "the next hop is of the other IP version", help);
        }
    }
}

fn undo(place: &Place<'_>, span: Span, command: &Tree, problems: &mut Vec<Diagnostic>) {
    let by_reboot = command.read("undone-by-reboot") == Some(true);
    let problem = match (command.get("undo").is_some(), by_reboot) {
        (true, true) => {
            Diagnostic::at(span, "either `undo` or a reboot undoes a command").remedy("leave one of the two out")
        }
        (false, false) => Diagnostic::at(span, "nothing says how this command is undone")
            .remedy("add undo = \"...\", so that the host is left as it was found"),
        (false, true) if place.embedded => {
            Diagnostic::at(span, "the embedded lab cannot reboot this machine").remedy("add undo = \"...\"")
        }
        (false, true) if !place.reboots() => {
            Diagnostic::at(span, "a reboot undoes this command, and the plan allows none, so it would be part of every other variant")
                .remedy("add reboot = \"when-needed\" to [trials], or undo = \"...\"")
        }
        _ => return,
    };
    problems.push(problem);
}

fn dut(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let Some((dut, node)) = tree.read::<Dut>("dut").zip(tree.get("dut")) else {
        if place.name() == TESTER_BASELINE {
            let help = "call the variant something else, or add dut = \"tester-baseline\"";
            problems.fault(
                place.span(),
                "'tester-baseline' is the tester without a DUT",
                help,
            );
        }
        return;
    };
    let span = node.span;
    let linux = matches!(place.system, System::Linux | System::Vyos);
    let only_linux = matches!(dut, Dut::Macvlan | Dut::Xdp) || dut.is_known();
    if only_linux && !linux {
        let help =
            "give the variant systems = [\"linux\"], or a section for this system with another dut";
        problems.fault(span, format!("{} has no {dut}", place.system), help);
    }
    if dut == Dut::Nested && place.system == System::OpenBsd {
        let help = "give the variant systems = [\"freebsd\"]";
        problems.fault(span, "OpenBSD has no network stacks inside its own", help);
    }
    if dut == Dut::TesterBaseline {
        let set: Vec<&Entry> = tree
            .entries
            .iter()
            .filter(|e| !["dut", "cpus"].contains(&e.key.as_str()))
            .collect();
        if let Some(entry) = set.first() {
            let message = format!("without a DUT there is nothing to set {} of", entry.key);
            problems.fault(entry.key_span, message, "leave it out");
        }
        if !place.embedded && place.draft.variants.len() > 1 {
            let help = "measure it with a plan of its own";
            problems.fault(
                span,
                "in a real lab, the tester baseline needs other cables",
                help,
            );
        }
    }
}

fn interface(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    if place.embedded {
        veth(tree, problems);
    }
    if matches!(place.system, System::Linux | System::Vyos) {
        return;
    }
    let of_system = ROWS.iter().map(|row| row.setting);
    let of_system = of_system.filter(|setting| setting.is_of(place.system));
    let known: Vec<&str> = std::iter::once("mtu")
        .chain(of_system.map(CardSetting::key))
        .collect();
    for entry in interfaces(tree)
        .flat_map(|t| &t.entries)
        .filter(|e| !known.contains(&e.key.as_str()) && e.key != "in" && e.key != "out")
    {
        let message = format!(
            "interfaces of {} have no {} to set",
            place.system, entry.key
        );
        let help = format!(
            "there are {}; drivers' own settings are sysctls or boot settings",
            listed(&known, "and")
        );
        problems.fault(entry.key_span, message, help);
    }
}

/// The table for both interfaces, and the table of each.
fn interfaces(tree: &Tree) -> impl Iterator<Item = &Tree> {
    let both = tree.table("interface");
    let ends = ["in", "out"]
        .into_iter()
        .filter_map(move |end| both?.table(end));
    both.into_iter().chain(ends)
}

/// Faults for features that the virtual links of the embedded lab lack.
fn veth(tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let threads = |table: &Tree| table.read("threaded-napi") == Some(true);
    for table in interfaces(tree) {
        let threaded = threads(table) || tree.table("interface").is_some_and(threads);
        for entry in &table.entries {
            let key = entry.key.as_str();
            let why = match CardSetting::of_key(key).map(|setting| setting.row().veth) {
                Some(why) => why,
                None if key == "irq" && !threaded => {
                    Some("it has no interrupts; with threaded-napi = true, irq is for the threads")
                }
                None if key == "private-flags" => Some("its driver has none"),
                None => None,
            };
            let Some(why) = why else { continue };
            let message = format!(
                "{} cannot be set on a veth link of the embedded lab: {why}",
                entry.key
            );
            problems.fault(
                entry.key_span,
                message,
                "leave it out, or name a real lab: file = \"lab.toml\"",
            );
        }
    }
}

/// An image can be installed and undone. Its keys may come together from several variants and factors.
fn image(tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let Some(entry) = tree.entry("image") else {
        return;
    };
    let Some(image) = tree.table("image").filter(|t| !t.entries.is_empty()) else {
        return;
    };
    let lacks = |key: &&str| image.text(key).is_none_or(|text| text.trim().is_empty());
    let lacking: Vec<&str> = ["file", "install", "undo"]
        .into_iter()
        .filter(lacks)
        .collect();
    if !lacking.is_empty() {
        let help = "add file = \"images/new.img.xz\", install = \"xzcat | upgrade\" and the line that puts the old one back: undo = \"...\"";
        let message = format!("the image lacks {}", listed(&lacking, "and"));
        problems.fault(entry.key_span, message, help);
    }
}

/// A kernel is booted in a guest of this machine, and its DUT is an embedded lab there.
fn kernel(place: &Place<'_>, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let Some(entry) = tree.entry("kernel") else {
        return;
    };
    if !place.embedded {
        let message =
            "a kernel is booted in a guest of this machine, and this plan is for real hosts";
        let help = "leave it out; a kernel for real hosts is an image: [variants.NAME.image]";
        problems.fault(entry.key_span, message, help);
    }
}

/// Settings that take effect at boot (`key`: settings, or an image) need reboots.
fn boot(place: &Place<'_>, tree: &Tree, key: &str, problems: &mut Vec<Diagnostic>) {
    let Some(entry) = tree
        .entry(key)
        .filter(|_| tree.table(key).is_some_and(|t| !t.entries.is_empty()))
    else {
        return;
    };
    if place.embedded {
        let help = "name a real lab: file = \"lab.toml\"";
        problems.fault(
            entry.key_span,
            "the embedded lab cannot reboot this machine",
            help,
        );
    } else if !place.reboots() {
        let help = "add reboot = \"when-needed\" to [trials]";
        let what = if key == "image" {
            "an image needs"
        } else {
            "settings for the boot need"
        };
        problems.fault(entry.key_span, format!("{what} reboots"), help);
    }
}
