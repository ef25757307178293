//! Checks of one host: its roles and its interfaces fit together, and it can be reached.

use super::super::{OperatingSystem, Role};
use super::HostTree;
use crate::backend::Backend;
use crate::diagnostic::{Diagnostic, Problems, listed, suggestion};

/// The interfaces, each with the roles that have one of it.
const INTERFACES: [(&str, &[Role]); 4] = [
    ("send", &[Role::Generator]),
    ("receive", &[Role::Receiver]),
    ("in", &[Role::Dut, Role::Reference]),
    ("out", &[Role::Dut, Role::Reference]),
];

pub(super) fn check(host: &HostTree<'_>, all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    if !host.roles.is_empty() {
        interfaces(host, problems);
        tool(host, problems);
        together(host, problems);
    }
    names(host, problems);
    boot(host, all, problems);
    let system = host.tree.get("system").filter(|_| host.is(Role::Dut));
    if let Some(node) = system.filter(|_| host.tree.read("system") == Some(OperatingSystem::NetBsd)) {
        let help = "it is measured as it is; variants that set something are not possible on it";
        problems.push(Diagnostic::warning(node.span, "plans have no settings for NetBSD").remedy(help));
    }
}

fn interfaces(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    for (key, roles) in INTERFACES {
        let role = roles.iter().find(|role| host.is(**role));
        match (role, host.tree.entry(key)) {
            (Some(role), None) => {
                let message = format!("{} is a {} without [{key}]", host.name, role.key());
                let help = format!("add [hosts.{}.{key}] with name = \"...\"", host.name);
                problems.fault(host.span, message, help);
            }
            (None, Some(entry)) => {
                let names: Vec<&str> = roles.iter().map(|r| r.key()).collect();
                let message = format!(
                    "'{key}' is an interface of a {}, and {} does not have that role",
                    listed(&names, "or"),
                    host.name
                );
                let help = format!("leave it out, or add \"{}\" to its role", names[0]);
                problems.fault(entry.key_span, message, help);
            }
            _ => {}
        }
    }
    for (key, _, tree) in host.interfaces() {
        let only: &[(&str, &[&str])] =
            &[("networks", &["in", "out"]), ("next-hops", &["in", "out"]), ("threads", &["send"])];
        for (setting, belongs) in only {
            if let Some(entry) = tree.entry(setting).filter(|_| !belongs.contains(&key)) {
                let message = format!("[{key}] has no {setting}");
                let help = format!("it belongs to {}; leave it out here", listed(belongs, "and"));
                problems.fault(entry.key_span, message, help);
            }
        }
    }
}

/// Faults of hosts that are a DUT and a tester at once.
fn together(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let tests = host.is(Role::Generator) || host.is(Role::Receiver);
    let node = host.tree.get("role").map_or(host.span, |n| n.span);
    if host.is(Role::Dut) && (tests || host.is(Role::Reference)) {
        let help = "give the other roles to another host, or use the embedded lab: linerate bench";
        problems.fault(node, "a DUT is nothing else: it would be busy with both", help);
    }
}

fn tool(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(entry) = host.tree.entry("tool") else { return };
    if !host.is(Role::Generator) && !host.is(Role::Receiver) {
        let help = "leave it out: it is for generators and receivers";
        problems.fault(entry.key_span, format!("{} sends and counts nothing", host.name), help);
    }
    let (tool, system) = (host.tree.text("tool"), host.tree.text("system"));
    let bsd = system.is_some_and(|s| !["linux", "vyos"].contains(&s));
    let backend = tool.and_then(|name| name.parse::<Backend>().ok());
    if let Some(backend) = backend.filter(|backend| bsd && backend.capabilities().linux) {
        let (name, system) = (&host.name, system.unwrap_or_default());
        let message = format!("{backend} runs on Linux, and {name} runs {system}");
        problems.fault(entry.node.span, message, "write \"pkt-gen\" or \"iperf3\", say");
    }
    for (key, _, tree) in host.interfaces().filter(|(key, ..)| ["send", "receive"].contains(key)) {
        let node = tree.get("netmap").filter(|n| n.scalar() == Some(&false.into()));
        if let Some(node) = node.filter(|_| backend == Some(Backend::PktGen)) {
            let help = "use another tool, or another interface";
            problems.fault(node.span, format!("pkt-gen needs netmap at [{key}]"), help);
        }
    }
}

/// An interface does one thing.
fn names(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (key, _, tree) in host.interfaces() {
        let Some((node, name)) = tree.get("name").and_then(|node| Some((node, node.text()?))) else {
            continue;
        };
        if let Some((_, other)) = seen.iter().find(|(n, _)| *n == name) {
            let message = format!("{name} is the interface of [{other}] already");
            problems.fault(node.span, message, "name another: each does one thing");
        }
        seen.push((name, key));
    }
}

fn boot(host: &HostTree<'_>, all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let from = host.tree.table("boot").and_then(|boot| boot.get("from"));
    let names = || all.iter().map(|host| host.name);
    if let Some((node, name)) = from.and_then(|node| Some((node, node.text()?)))
        && !names().any(|n| n == name)
    {
        let shown: String = name.chars().take(60).collect();
        problems.fault(node.span, format!("there is no host '{shown}'"), suggestion(name, names()));
    }
}
