//! The result of `linerate lab check`, and its page: whether the lab is fit for a campaign, the problems of each host, and facts about the
//! hosts.

use super::numbers::counted;
use crate::document::{Document, Rows, Table, Tone};
use linerate_hosts::preflight::frames::{Skipped, Tried};
use linerate_hosts::preflight::{Port, ports, speed, tool};
use linerate_hosts::systems::{Facts, Interface};
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Lab};
use linerate_plan::{Diagnostic, Severity};
use serde::Serialize;
use std::collections::BTreeMap;

/// The results of a lab check. Speeds are in bit/s, times in seconds.
#[derive(Debug, Serialize)]
pub struct LabCheck<'a> {
    /// Its file's name.
    lab: &'a str,
    title: Option<&'a str>,
    isolated: bool,
    faults: usize,
    warnings: usize,
    hosts: Vec<CheckedHost<'a>>,
    frames: Vec<CheckedFrames<'a>>,
    not_tried: &'a [Skipped],
    problems: &'a [Diagnostic],
    remarks: &'a [Diagnostic],
}

#[derive(Debug, Serialize)]
struct CheckedHost<'a> {
    name: &'a str,
    roles: Vec<&'static str>,
    reach: String,
    reached: bool,
    system: Option<&'static str>,
    product: Option<&'a str>,
    kernel: Option<&'a str>,
    cpus: Option<u32>,
    user: Option<u32>,
    clock_ahead_s: Option<f64>,
    tool: Option<&'static str>,
    programs: &'a BTreeMap<String, String>,
    interfaces: Vec<CheckedPort<'a>>,
}

/// An interface of the lab file.
#[derive(Debug, Serialize)]
struct CheckedPort<'a> {
    key: &'static str,
    /// Its name in the file.
    name: Option<&'a str>,
    found: Option<&'a Interface>,
}

/// Frames that were sent as a test.
#[derive(Debug, Serialize)]
struct CheckedFrames<'a> {
    from: Place<'a>,
    source: String,
    to: String,
    whose: &'a str,
    sent: Option<u32>,
    answered: Option<u32>,
    /// In the order of their way.
    arrived: Vec<Place<'a>>,
    elsewhere: &'a [String],
}

/// An interface that frames passed.
#[derive(Debug, Serialize)]
struct Place<'a> {
    host: &'a str,
    interface: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
}

impl<'a> LabCheck<'a> {
    /// `file`: the lab file's name; `facts`: the answers of each host, by its name.
    pub fn new(
        file: &'a str,
        lab: &'a Lab,
        facts: &'a BTreeMap<String, Facts>,
        problems: &'a [Diagnostic],
        (tried, not_tried): (&'a [Tried], &'a [Skipped]),
    ) -> LabCheck<'a> {
        let count = |severity| problems.iter().filter(|p| p.severity == severity).count();
        LabCheck {
            lab: file,
            title: lab.title.as_deref(),
            isolated: lab.isolated,
            faults: count(Severity::Fault),
            warnings: count(Severity::Warning),
            hosts: lab.hosts.iter().map(|host| CheckedHost::new(lab, host, &facts[&host.name])).collect(),
            frames: tried.iter().map(CheckedFrames::new).collect(),
            not_tried,
            problems,
            remarks: &lab.remarks,
        }
    }
}

impl<'a> CheckedHost<'a> {
    fn new(lab: &'a Lab, host: &'a Host, facts: &'a Facts) -> Self {
        let system = facts.system.as_ref();
        let port = |port: Port<'a>| CheckedPort {
            key: port.key,
            name: port.wanted.name.as_deref(),
            found: port.found(facts).ok(),
        };
        CheckedHost {
            name: &host.name,
            roles: host.roles.iter().map(|role| role.key()).collect(),
            reach: host.reach.to_string(),
            reached: facts.unreachable.is_none(),
            system: system.map(|s| s.system.key()),
            product: system.and_then(|s| s.product.as_deref()),
            kernel: system.map(|s| s.kernel.as_str()).filter(|kernel| !kernel.is_empty()),
            cpus: facts.cpus,
            user: facts.user,
            clock_ahead_s: facts.clock.map(|clock| clock.ahead()),
            tool: tool(host, facts).map(Backend::name),
            programs: &facts.programs,
            interfaces: ports(lab, host).into_iter().map(port).collect(),
        }
    }
}

impl<'a> CheckedFrames<'a> {
    fn new(Tried { probe, replies, arrived, elsewhere }: &'a Tried) -> Self {
        let place = |(host, interface): &'a (String, String), counted| Place { host, interface, counted };
        CheckedFrames {
            from: place(&probe.from, None),
            source: probe.source.to_string(),
            to: probe.to.to_string(),
            whose: &probe.whose,
            sent: replies.count.map(|(sent, _)| sent),
            answered: replies.count.map(|(_, answered)| answered),
            arrived: probe.arrives.iter().zip(arrived).map(|(at, count)| place(at, *count)).collect(),
            elsewhere,
        }
    }
}

/// A lab's state for a person to read: the answer, the problems of the lab and of each host, the hosts, and the frames that were sent.
pub fn lab_check(check: &LabCheck<'_>) -> Document {
    let mut page = Document::default();
    let hosts = counted(check.hosts.len(), "host");
    let found = [(check.faults, "fault"), (check.warnings, "warning")].into_iter().filter(|(n, _)| *n > 0);
    let found: Vec<String> = found.map(|(n, kind)| counted(n, kind)).collect();
    let found = if found.is_empty() { "nothing wrong".into() } else { found.join(", ") };
    let (fit, tone) = if check.faults == 0 { ("fit", Tone::Strong) } else { ("not fit", Tone::Warning) };
    page.paragraph(format!("{}: {fit} for a campaign; {hosts}, {found}.", check.lab), tone);
    problems(&mut page, "The lab", check, None);
    for host in &check.hosts {
        problems(&mut page, &format!("{} ({})", host.name, host.reach), check, Some(host.name));
    }
    page.table(hosts_table(check));
    frames(&mut page, check);
    page.append(super::diagnostics(check.lab, check.remarks));
    page
}

fn problems(page: &mut Document, heading: &str, check: &LabCheck<'_>, subject: Option<&str>) {
    let own = check.problems.iter().filter(|problem| problem.subject.as_deref() == subject);
    let mut problems: Vec<&Diagnostic> = own.collect();
    problems.sort_by_key(|problem| problem.severity);
    if !problems.is_empty() {
        page.heading(heading);
    }
    for problem in problems {
        let (mark, tone) = match problem.severity {
            Severity::Fault => ("  FAULT    ", Tone::Warning),
            Severity::Warning => ("  warning  ", Tone::Plain),
        };
        page.item(mark, &problem.message, tone);
        problem.evidence.iter().for_each(|evidence| page.item("           ", evidence, Tone::Note));
        problem.remedy.iter().for_each(|remedy| page.item("           -> ", remedy, Tone::Plain));
    }
}

/// A row of the table: the host, where it is the host's first, and an interface.
type Row<'c> = (Option<&'c CheckedHost<'c>>, [String; 3], &'static str);

fn hosts_table<'c>(check: &'c LabCheck<'c>) -> Rows<Row<'c>> {
    let rows = check.hosts.iter().flat_map(|host| {
        let row =
            |(at, port): (usize, &CheckedPort<'_>)| ((at == 0).then_some(host), end(host, port), port.key);
        host.interfaces.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let of_host = |row: &Row<'c>, text: fn(&CheckedHost<'_>) -> Option<String>| {
        row.0.map_or(String::new(), |host| text(host).unwrap_or("?".into()))
    };
    Table::of(rows)
        .column("host", "", |row| of_host(row, |host| Some(host.name.into())))
        .column("role", "", |row| of_host(row, |host| Some(host.roles.join(", "))))
        .column("system", "", |row| of_host(row, |host| Some(host.product.or(host.system)?.into())))
        .optional("version", "", |row| of_host(row, |host| host.kernel.map(String::from)))
        .optional("CPUs", "", |row| of_host(row, |host| Some(host.cpus?.to_string())))
        .column("tool", "", |row| of_host(row, |host| Some(host.tool.unwrap_or("-").into())))
        .column("end", "", |row| row.2)
        .column("interface", "", |row| row.1[0].clone())
        .column("speed", "", |row| row.1[1].clone())
        .column("link", "", |row| row.1[2].clone())
}

/// Name, speed and link of an interface.
fn end(host: &CheckedHost<'_>, port: &CheckedPort<'_>) -> [String; 3] {
    match port.found {
        Some(interface) if host.reached => {
            let link = match (interface.up, interface.link) {
                (false, _) => "off",
                (true, Some(true)) => "up",
                (true, Some(false)) => "down",
                (true, None) => "?",
            };
            [interface.name.clone(), interface.speed.map_or("?".into(), speed), link.into()]
        }
        None if host.reached => ["not there", "-", "-"].map(String::from),
        _ => [port.name.unwrap_or("?"), "?", "?"].map(String::from),
    }
}

fn frames(page: &mut Document, check: &LabCheck<'_>) {
    if check.frames.is_empty() && check.not_tried.is_empty() {
        return;
    }
    page.heading("Frames");
    for CheckedFrames { from, source, to, whose, sent, answered, arrived, .. } in &check.frames {
        let through: Vec<&str> = arrived.iter().rev().skip(1).map(|place| place.host).collect();
        let through =
            if through.is_empty() { String::new() } else { format!(" through {}", through.join(", ")) };
        let count = match (sent, answered) {
            (Some(sent), Some(answered)) => format!("{answered} of {sent} answered"),
            _ => "no answer".into(),
        };
        let Place { host, interface, .. } = from;
        page.item(
            "  ",
            format!("{host} {interface} {source} to {to} of {whose}{through}: {count}"),
            Tone::Plain,
        );
    }
    for Skipped { what, why } in check.not_tried {
        page.item("  not tried: ", format!("{what}: {why}"), Tone::Note);
    }
}
