//! The page of `linerate lab check`: whether the lab is fit for a campaign, the problems of each host, and facts about the hosts.

use super::numbers::counted;
use crate::document::{Document, Rows, Table, Tone};
use linerate_hosts::preflight::frames::{Skipped, Tried};
use linerate_hosts::preflight::{Port, ports, speed, tool};
use linerate_hosts::systems::{Facts, Interface, System};
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Lab};
use linerate_plan::{Diagnostic, Severity};
use std::collections::BTreeMap;

/// The results of a lab check.
#[derive(Debug, Clone, Copy)]
pub struct LabCheck<'a> {
    /// Its file's name.
    pub file: &'a str,
    /// The lab file.
    pub lab: &'a Lab,
    /// Facts about each host, by its name.
    pub facts: &'a BTreeMap<String, Facts>,
    /// Problems found.
    pub problems: &'a [Diagnostic],
    /// Frames sent as a test.
    pub tried: &'a [Tried],
    /// Tests that did not run, with reasons.
    pub skipped: &'a [Skipped],
}

/// A lab's state for a person to read: the answer, the problems of the lab and of each host, the hosts, and the frames that were sent.
pub fn lab_check(check: &LabCheck<'_>) -> Document {
    let mut page = Document::default();
    let count = |severity| check.problems.iter().filter(|p| p.severity == severity).count();
    let (faults, warnings) = (count(Severity::Fault), count(Severity::Warning));
    let hosts = counted(check.lab.hosts.len(), "host");
    let found = [(faults, "fault"), (warnings, "warning")].into_iter().filter(|(n, _)| *n > 0);
    let found: Vec<String> = found.map(|(n, what)| counted(n, what)).collect();
    let found = if found.is_empty() { "nothing wrong".into() } else { found.join(", ") };
    let fit = if faults == 0 { "fit" } else { "not fit" };
    let answer = format!("{}: {fit} for a campaign; {hosts}, {found}.", check.file);
    page.paragraph(&answer, if faults > 0 { Tone::Warning } else { Tone::Strong });
    problems(&mut page, "The lab", check.problems.iter().filter(|p| p.subject.is_none()));
    for host in &check.lab.hosts {
        let own = check.problems.iter().filter(|p| p.subject.as_deref() == Some(&host.name));
        problems(&mut page, &format!("{} ({})", host.name, host.ssh), own);
    }
    page.table(hosts_table(check));
    frames(&mut page, check);
    page.append(super::diagnostics(check.file, check.lab.remarks()));
    page
}

fn problems<'a>(page: &mut Document, heading: &str, problems: impl Iterator<Item = &'a Diagnostic>) {
    let mut problems: Vec<&Diagnostic> = problems.collect();
    problems.sort_by_key(|problem| problem.severity);
    if problems.is_empty() {
        return;
    }
    page.heading(heading);
    for problem in problems {
        let (mark, ink) = match problem.severity {
            Severity::Fault => ("  FAULT    ", Tone::Warning),
            Severity::Warning => ("  warning  ", Tone::Plain),
        };
        page.item(mark, &problem.message, ink);
        problem.evidence.iter().for_each(|evidence| page.item("           ", evidence, Tone::Note));
        problem.remedy.iter().for_each(|remedy| page.item("           -> ", remedy, Tone::Plain));
    }
}

/// A row for each interface. A host's first row also describes the host.
fn hosts_table<'a>(check: &LabCheck<'a>) -> Rows<PortRow<'a>> {
    let rows = check.lab.hosts.iter().flat_map(|host| {
        let facts = check.facts.get(&host.name);
        let ports = ports(check.lab, host).into_iter().enumerate();
        ports.map(move |(at, port)| PortRow {
            host: (at == 0).then_some(host),
            facts,
            key: port.key,
            end: end(&port, facts),
        })
    });
    let unknown = || "?".to_string();
    let of_host = |row: &PortRow<'_>, text: &dyn Fn(&Host) -> String| row.host.map_or(String::new(), text);
    let system = |row: &PortRow<'_>, text: fn(&System) -> String| {
        of_host(row, &|_| row.facts.and_then(|f| f.system.as_ref()).map_or_else(unknown, text))
    };
    Table::of(rows)
        .column("host", "", |row| of_host(row, &|host| host.name.clone()))
        .column("role", "", |row| {
            of_host(row, &|host| host.roles.iter().map(|r| r.key()).collect::<Vec<_>>().join(", "))
        })
        .column("system", "", |row| {
            system(row, |s| s.product.clone().unwrap_or_else(|| s.system.key().to_string()))
        })
        .optional("version", "", |row| {
            system(row, |s| if s.kernel.is_empty() { "?".into() } else { s.kernel.clone() })
        })
        .optional("CPUs", "", |row| {
            of_host(row, &|_| row.facts.and_then(|f| f.cpus).map_or_else(unknown, |n| n.to_string()))
        })
        .column("tool", "", |row| {
            of_host(row, &|host| row.facts.and_then(|f| tool(host, f)).map_or("-", Backend::name).into())
        })
        .column("end", "", |row| row.key)
        .column("interface", "", |row| row.end[0].clone())
        .column("speed", "", |row| row.end[1].clone())
        .column("link", "", |row| row.end[2].clone())
}

/// An interface of a lab, and its host where it is the host's first.
struct PortRow<'a> {
    host: Option<&'a Host>,
    facts: Option<&'a Facts>,
    key: &'static str,
    /// Name, speed and link.
    end: [String; 3],
}

fn end(port: &Port<'_>, facts: Option<&Facts>) -> [String; 3] {
    let Some(facts) = facts.filter(|f| f.unreachable.is_none()) else {
        return [port.wanted.name.clone().unwrap_or("?".into()), "?".into(), "?".into()];
    };
    match port.found(facts) {
        Ok(interface) => of_interface(interface),
        Err(_) => ["not there", "-", "-"].map(String::from),
    }
}

fn of_interface(interface: &Interface) -> [String; 3] {
    let link = match (interface.up, interface.link) {
        (false, _) => "off",
        (true, Some(true)) => "up",
        (true, Some(false)) => "down",
        (true, None) => "?",
    };
    [interface.name.clone(), interface.speed.map_or("?".into(), speed), link.into()]
}

fn frames(page: &mut Document, check: &LabCheck<'_>) {
    if check.tried.is_empty() && check.skipped.is_empty() {
        return;
    }
    page.heading("Frames");
    for Tried { probe, replies, .. } in check.tried {
        let through: Vec<&str> = probe.arrives.iter().rev().skip(1).map(|(host, _)| host.as_str()).collect();
        let through =
            if through.is_empty() { String::new() } else { format!(" through {}", through.join(", ")) };
        let count = match replies.count {
            Some((sent, answered)) => format!("{answered} of {sent} answered"),
            None => "no answer".into(),
        };
        let (host, port) = &probe.from;
        let text =
            format!("{host} {port} {} to {} of {}{through}: {count}", probe.source, probe.to, probe.whose);
        page.item("  ", &text, Tone::Plain);
    }
    for Skipped { what, why } in check.skipped {
        page.item("  not tried: ", &format!("{what}: {why}"), Tone::Note);
    }
}
