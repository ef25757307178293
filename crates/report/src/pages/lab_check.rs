//! The result of `linerate lab check`: whether the lab is fit for a campaign, the problems of each host, and facts about the hosts.

use crate::prelude::*;
use linerate_hosts::preflight::frames::{At, PortTried, Skipped, Tried};
use linerate_hosts::preflight::{Port, ports, speed, tool};
use linerate_hosts::systems::Facts;
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Lab};
use linerate_plan::{Diagnostic, Severity};
use serde_json::{Value, json};

/// A lab that has been checked.
pub struct LabCheck<'a> {
    /// Name of the lab file.
    pub file: &'a str,
    pub lab: &'a Lab,
    /// The answers of each host, by its name.
    pub facts: &'a BTreeMap<String, Facts>,
    pub problems: &'a [Diagnostic],
    /// Frames that were sent as a test, and those that were not.
    pub tried: &'a [Tried],
    pub skipped: &'a [Skipped],
    /// Ports of the tester that sent test frames.
    pub tester: &'a [PortTried],
}

impl LabCheck<'_> {
    fn count(&self, severity: Severity) -> usize {
        self.problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    }

    /// All results as JSON. Speeds are in bit/s, times in seconds.
    pub fn record(&self) -> Value {
        json!({
            "lab": self.file,
            "title": self.lab.title,
            "isolated": self.lab.isolated,
            "black_box": self.lab.black_box.as_ref().map(|host| &host.name),
            "faults": self.count(Severity::Fault),
            "warnings": self.count(Severity::Warning),
            "hosts": self.lab.hosts.iter().map(|host| self.host(host)).collect::<Vec<_>>(),
            "frames": self.tried.iter().map(frames).collect::<Vec<_>>(),
            "not_tried": self.skipped,
            "tester": self.tester,
            "problems": self.problems,
            "remarks": self.lab.remarks,
        })
    }

    fn host(&self, host: &Host) -> Value {
        let facts = &self.facts[&host.name];
        let system = facts.system.as_ref();
        let interface = |port: Port<'_>| {
            let found = port.found(facts).ok();
            json!({ "key": port.key, "name": port.wanted.name, "found": found })
        };
        let interfaces = ports(self.lab, host).into_iter().map(interface);
        json!({
            "name": host.name,
            "roles": host.roles.iter().map(|role| role.key()).collect::<Vec<_>>(),
            "reach": host.reach.to_string(),
            "reached": facts.unreachable.is_none(),
            "system": system.map(|system| system.system.key()),
            "product": system.and_then(|system| system.product.as_deref()),
            "kernel": kernel(facts),
            "cpus": facts.cpus,
            "user": facts.user,
            "clock_ahead_s": facts.clock.map(|clock| clock.ahead()),
            "tool": tool(host, facts).map(Backend::name),
            "programs": facts.programs,
            "interfaces": interfaces.collect::<Vec<_>>(),
        })
    }
}

fn kernel(facts: &Facts) -> Option<&str> {
    facts
        .system
        .as_ref()
        .map(|system| system.kernel.as_str())
        .filter(|kernel| !kernel.is_empty())
}

/// Frames that were sent, with the interfaces that they passed in the order of their way.
fn frames(
    Tried {
        probe,
        replies,
        arrived,
        elsewhere,
    }: &Tried,
) -> Value {
    let passed = |(at, counted): (&At, &Option<u64>)| {
        let (host, interface) = at;
        json!({ "host": host, "interface": interface, "counted": counted })
    };
    json!({
        "from": { "host": probe.from.0, "interface": probe.from.1 },
        "source": probe.source,
        "to": probe.to,
        "whose": probe.whose,
        "sent": replies.count.map(|(sent, _)| sent),
        "answered": replies.count.map(|(_, answered)| answered),
        "arrived": probe.arrives.iter().zip(arrived).map(passed).collect::<Vec<_>>(),
        "elsewhere": elsewhere,
    })
}

/// A lab's state for a person to read: the answer, the problems of the lab and of each host, the hosts, and the frames that were sent.
pub fn lab_check(check: &LabCheck<'_>) -> Document {
    let mut page = Document::default();
    let hosts = counted(check.lab.hosts.len(), "host");
    let found = [(Severity::Fault, "fault"), (Severity::Warning, "warning")];
    let found = found
        .map(|(severity, kind)| (check.count(severity), kind))
        .into_iter()
        .filter(|(n, _)| *n > 0);
    let found: Vec<String> = found.map(|(n, kind)| counted(n, kind)).collect();
    let found = if found.is_empty() {
        "nothing wrong".into()
    } else {
        found.join(", ")
    };
    let is_fit = check.count(Severity::Fault) == 0;
    let (fit, tone) = if is_fit {
        ("fit", Tone::Strong)
    } else {
        ("not fit", Tone::Warning)
    };
    page.paragraph(
        format!("{}: {fit} for a campaign; {hosts}, {found}.", check.file),
        tone,
    );
    problems(&mut page, "The lab", check, None);
    for host in &check.lab.hosts {
        problems(
            &mut page,
            &format!("{} ({})", host.name, host.reach),
            check,
            Some(&host.name),
        );
    }
    page.table(hosts_table(check));
    if let Some(black_box) = &check.lab.black_box {
        page.note(format!(
            "{} is a black box: linerate asks it nothing. Its forwarding, routes, rules, counters and CPUs are not known.",
            black_box.name
        ));
        let stated = [
            &black_box.statement,
            &black_box.software,
            &black_box.configuration,
        ];
        if stated.iter().any(|stated| stated.is_none()) {
            page.note("`linerate conformance` needs what only you know of it: write `statement`, `software` and `configuration` into the lab file.");
        }
    }
    sent(&mut page, check);
    page.append(super::diagnostics(check.file, &check.lab.remarks));
    page
}

fn problems(page: &mut Document, heading: &str, check: &LabCheck<'_>, subject: Option<&str>) {
    let own = check
        .problems
        .iter()
        .filter(|problem| problem.subject.as_deref() == subject);
    let mut problems: Vec<&Diagnostic> = own.collect();
    problems.sort_by_key(|problem| problem.severity);
    page.each(heading, problems, |page, problem| {
        let (mark, tone) = match problem.severity {
            Severity::Fault => ("  FAULT    ", Tone::Warning),
            Severity::Warning => ("  warning  ", Tone::Plain),
        };
        page.item(mark, &problem.message, tone);
        problem
            .evidence
            .iter()
            .for_each(|evidence| page.item("           ", evidence, Tone::Note));
        problem
            .remedy
            .iter()
            .for_each(|remedy| page.entry("           -> ", remedy));
    });
}

/// A row of the table: the host with its answers, where it is the host's first, and an interface.
type Row<'c> = (Option<(&'c Host, &'c Facts)>, [String; 3], &'static str);

fn hosts_table<'c>(check: &LabCheck<'c>) -> Rows<Row<'c>> {
    let rows = check.lab.hosts.iter().flat_map(|host| {
        let facts = &check.facts[&host.name];
        let row = |(at, port): (usize, Port<'_>)| {
            (
                (at == 0).then_some((host, facts)),
                end(&port, facts),
                port.key,
            )
        };
        ports(check.lab, host)
            .into_iter()
            .enumerate()
            .map(row)
            .collect::<Vec<_>>()
    });
    let of_host = |row: &Row<'c>, text: fn(&Host, &Facts) -> Option<String>| {
        row.0.map_or(String::new(), |(host, facts)| {
            text(host, facts).unwrap_or("?".into())
        })
    };
    let roles =
        |host: &Host, _: &Facts| Some(host.roles.iter().map(|role| role.key()).joined(", "));
    let system = |_: &Host, facts: &Facts| {
        let system = facts.system.as_ref()?;
        Some(
            system
                .product
                .clone()
                .unwrap_or_else(|| system.system.key().into()),
        )
    };
    Table::of(rows)
        .column("host", "", |row| {
            of_host(row, |host, _| Some(host.name.clone()))
        })
        .column("role", "", |row| of_host(row, roles))
        .column("system", "", |row| of_host(row, system))
        .optional("version", "", |row| {
            of_host(row, |_, facts| kernel(facts).map(String::from))
        })
        .optional("CPUs", "", |row| {
            of_host(row, |_, facts| Some(facts.cpus?.to_string()))
        })
        .column("tool", "", |row| {
            of_host(row, |host, facts| {
                Some(tool(host, facts).map_or("-", Backend::name).into())
            })
        })
        .column("end", "", |row| row.2)
        .column("interface", "", |row| row.1[0].clone())
        .column("speed", "", |row| row.1[1].clone())
        .column("link", "", |row| row.1[2].clone())
}

/// Name, speed and link of an interface.
fn end(port: &Port<'_>, facts: &Facts) -> [String; 3] {
    if facts.unreachable.is_some() {
        return [port.wanted.name.as_deref().unwrap_or("?"), "?", "?"].map(String::from);
    }
    let Ok(interface) = port.found(facts) else {
        return ["not there", "-", "-"].map(String::from);
    };
    let link = match (interface.up, interface.link) {
        (false, _) => "off",
        (true, Some(true)) => "up",
        (true, Some(false)) => "down",
        (true, None) => "?",
    };
    [
        interface.name.clone(),
        interface.speed.map_or("?".into(), speed),
        link.into(),
    ]
}

fn sent(page: &mut Document, check: &LabCheck<'_>) {
    if check.tried.is_empty() && check.skipped.is_empty() && check.tester.is_empty() {
        return;
    }
    page.heading("Frames");
    for Tried { probe, replies, .. } in check.tried {
        let through: Vec<&str> = probe
            .arrives
            .iter()
            .rev()
            .skip(1)
            .map(|(host, _)| host.as_str())
            .collect();
        let through = when(
            !through.is_empty(),
            format!(" through {}", through.join(", ")),
        );
        let count = match replies.count {
            Some((sent, answered)) => format!("{answered} of {sent} answered"),
            None => "no answer".into(),
        };
        let (host, interface) = &probe.from;
        let (source, to, whose) = (probe.source, probe.to, &probe.whose);
        let text = format!("{host} {interface} {source} to {to} of {whose}{through}: {count}");
        page.entry("  ", text);
    }
    for PortTried {
        from: (host, interface),
        port,
        why,
        sent,
        arrives: (far, at),
        arrived,
    } in check.tester
    {
        let arrived = arrived.map_or(String::new(), |n| {
            format!("; {at} of {far} counted {n} frames")
        });
        page.entry(
            "  ",
            format!("{host} {interface} sends by {port}: {sent} test frames{arrived}"),
        );
        why.iter()
            .for_each(|why| page.item("    ", why, Tone::Note));
    }
    for Skipped { what, why } in check.skipped {
        page.item("  not tried: ", format!("{what}: {why}"), Tone::Note);
    }
}
