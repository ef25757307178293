//! What `linerate lab check` prints: whether the lab is fit for a campaign, what is wrong host by host, and what the hosts are.

use super::numbers::counted;
use super::page::{Ink, Page, Style, Table};
use linerate_hosts::preflight::frames::{Skipped, Tried};
use linerate_hosts::preflight::{Problem, Severity, ports, speed, tool};
use linerate_hosts::systems::{Facts, Interface, Link};
use linerate_plan::lab::{Host, Lab};
use std::collections::BTreeMap;

/// What was found out about a lab.
#[derive(Debug, Clone, Copy)]
pub struct LabCheck<'a> {
    /// Its file's name.
    pub file: &'a str,
    /// What the file says.
    pub lab: &'a Lab,
    /// What its hosts said.
    pub facts: &'a BTreeMap<String, Facts>,
    /// What is wrong.
    pub problems: &'a [Problem],
    /// What was sent.
    pub tried: &'a [Tried],
    /// What was not sent, and why.
    pub skipped: &'a [Skipped],
}

/// A lab's state for a person to read: the answer, the problems of the lab and of each host, the hosts, and the frames that were sent.
pub fn lab_check(check: &LabCheck<'_>, style: Style) -> String {
    let mut page = Page::new(style);
    let count = |severity| check.problems.iter().filter(|p| p.severity == severity).count();
    let (faults, warnings) = (count(Severity::Fault), count(Severity::Warning));
    let hosts = counted(check.lab.hosts.len(), "host");
    let answer = match (faults, warnings) {
        (0, 0) => format!("{}: fit for a campaign; {hosts}, nothing wrong.", check.file),
        (0, _) => format!("{}: fit for a campaign; {hosts}, {}.", check.file, counted(warnings, "warning")),
        (_, 0) => format!("{}: not fit for a campaign; {hosts}, {}.", check.file, counted(faults, "fault")),
        _ => format!(
            "{}: not fit for a campaign; {hosts}, {}, {}.",
            check.file,
            counted(faults, "fault"),
            counted(warnings, "warning")
        ),
    };
    page.paragraph(&answer, if faults > 0 { Ink::Warning } else { Ink::Bold });
    problems(&mut page, "The lab", check.problems.iter().filter(|p| p.host.is_none()));
    for host in &check.lab.hosts {
        let own = check.problems.iter().filter(|p| p.host.as_deref() == Some(&host.name));
        problems(&mut page, &format!("{} ({})", host.name, host.ssh), own);
    }
    page.gap();
    page.table(&hosts_table(check));
    frames(&mut page, check);
    page.finish()
}

fn problems<'a>(page: &mut Page, heading: &str, problems: impl Iterator<Item = &'a Problem>) {
    let mut problems: Vec<&Problem> = problems.collect();
    problems.sort_by_key(|problem| problem.severity);
    if problems.is_empty() {
        return;
    }
    page.heading(heading);
    for problem in problems {
        let (mark, ink) = match problem.severity {
            Severity::Fault => ("  FAULT    ", Ink::Warning),
            Severity::Warning => ("  warning  ", Ink::Plain),
        };
        page.item(mark, &problem.what, ink);
        page.item("           ", &problem.evidence, Ink::Dim);
        page.item("           -> ", &problem.remedy, Ink::Plain);
    }
}

/// A row for each interface; the first of a host's says what the host is.
fn hosts_table(check: &LabCheck<'_>) -> Table {
    let mut table = Table::default()
        .column("host", "")
        .column("role", "")
        .column("system", "")
        .optional("version", "")
        .optional("CPUs", "")
        .column("tool", "")
        .column("end", "")
        .column("interface", "")
        .column("speed", "")
        .column("link", "");
    for host in &check.lab.hosts {
        let none = Facts::unreachable("", "");
        let facts = check.facts.get(&host.name).unwrap_or(&none);
        let mut own = of_host(host, facts);
        for port in ports(check.lab, host) {
            let found = port.found(facts);
            let mut row = own.clone();
            row.push(port.key.to_string());
            row.extend(match (&found, facts.unreachable.is_some()) {
                (Ok(interface), _) => of_interface(interface),
                (Err(_), true) => [port.wanted.name.clone().unwrap_or("?".into()), "?".into(), "?".into()],
                (Err(_), false) => ["not there".into(), "-".into(), "-".into()],
            });
            table.row(row);
            own = vec![String::new(); own.len()];
        }
    }
    table
}

fn of_host(host: &Host, facts: &Facts) -> Vec<String> {
    let roles: Vec<&str> = host.roles.iter().map(|role| role.key()).collect();
    let unknown = || "?".to_string();
    let system = facts.system.as_ref();
    let version =
        |s: &linerate_hosts::systems::System| if s.kernel.is_empty() { unknown() } else { s.kernel.clone() };
    vec![
        host.name.clone(),
        roles.join(", "),
        system.map_or_else(unknown, |s| s.product.clone().unwrap_or_else(|| s.system.key().to_string())),
        system.map_or_else(unknown, version),
        facts.cpus.map_or_else(unknown, |n| n.to_string()),
        tool(host, facts).map_or_else(|| "-".to_string(), |tool| tool.key().to_string()),
    ]
}

fn of_interface(interface: &Interface) -> [String; 3] {
    let link = match (interface.up, interface.link) {
        (false, _) => "off",
        (true, Link::Up) => "up",
        (true, Link::Down) => "down",
        (true, Link::Unknown) => "?",
    };
    [interface.name.clone(), interface.speed.map_or("?".into(), speed), link.into()]
}

fn frames(page: &mut Page, check: &LabCheck<'_>) {
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
        page.item("  ", &text, Ink::Plain);
    }
    for Skipped { what, why } in check.skipped {
        page.item("  not tried: ", &format!("{what}: {why}"), Ink::Dim);
    }
}
