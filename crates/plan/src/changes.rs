//! The changes that a campaign will make, host by host, to read before they happen.

use super::campaign::{Campaign, Lab};
use super::forms::duration_text;
use super::settings::{Dut, End, Interface, Settings, cpu_list};
use super::sysctl::is_namespaced;
use super::value::label;
use crate::rules::{Kind, RuleSet};
use linerate_measure::experiment::System;
use linerate_wire::units::{counted, grouped};
use serde::Serialize;
use serde_json::Value;

/// Reach of a change, and the way to undo it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// A network namespace of the embedded lab, which is removed with the lab.
    Namespace,
    /// The host: restored afterwards.
    Host,
    /// The host, from its next boot on: restored, and rebooted.
    Boot,
    /// The host, and it stays: a loaded module.
    Stays,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The setting: `sysctl net.ipv4.ip_forward`.
    pub what: String,
    /// The new value; empty if `what` already contains it.
    pub to: String,
    /// How far that reaches.
    pub reach: Reach,
}

/// The changes of one host for some variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostChanges {
    /// Role of the host: DUT, generator, receiver.
    pub host: String,
    /// The lane, as an index into [`Campaign::lanes`]; none where it is for all of them.
    pub lane: Option<usize>,
    /// The changes, in the order in which they are made.
    pub changes: Vec<Change>,
}

/// Everything that a campaign changes.
pub fn changes(campaign: &Campaign) -> Vec<HostChanges> {
    let embedded = matches!(campaign.lab, Lab::Embedded { .. });
    let longest = campaign
        .kinds
        .iter()
        .map(|k| u32::from(k.size.max_len_fcs()))
        .max()
        .unwrap_or(64)
        .saturating_sub(18);
    let mut all = Vec::new();
    if !embedded && longest > 1500 {
        for host in ["generator", "receiver"] {
            let mtu = Change {
                what: "MTU".into(),
                to: format!("{longest} B"),
                reach: Reach::Host,
            };
            all.push(HostChanges {
                host: host.into(),
                lane: None,
                changes: vec![mtu],
            });
        }
    }
    for (at, lane) in campaign.lanes.iter().enumerate() {
        let mut list = List {
            system: campaign.experiment.system,
            embedded,
            changes: Vec::new(),
        };
        list.settings(&lane.settings);
        if !list.changes.is_empty() {
            all.push(HostChanges {
                host: "DUT".into(),
                lane: Some(at),
                changes: list.changes,
            });
        }
    }
    all
}

struct List {
    system: System,
    embedded: bool,
    changes: Vec<Change>,
}

impl List {
    fn add(&mut self, what: impl Into<String>, to: impl Into<String>) {
        let reach = if self.embedded {
            Reach::Namespace
        } else {
            Reach::Host
        };
        self.reaching(what, to, reach);
    }

    fn reaching(&mut self, what: impl Into<String>, to: impl Into<String>, reach: Reach) {
        self.changes.push(Change {
            what: what.into(),
            to: to.into(),
            reach,
        });
    }

    fn settings(&mut self, settings: &Settings) {
        if let Some(image) = &settings.image {
            let to = format!(
                "installed by `{}`, undone by `{}`",
                image.install, image.undo
            );
            self.reaching(format!("image {}", image.file), to, Reach::Boot);
        }
        for module in &settings.modules {
            self.reaching(format!("module {module}"), "loaded", Reach::Stays);
        }
        for (name, value) in &settings.boot {
            self.reaching(format!("boot setting {name}"), value, Reach::Boot);
        }
        for file in &settings.files {
            let lines = file.text.lines().count();
            self.add(format!("file {}", file.path), counted(lines, "line"));
        }
        for (name, value) in &settings.sysctls {
            let reach = if self.embedded && is_namespaced(name) {
                Reach::Namespace
            } else {
                Reach::Host
            };
            self.reaching(format!("sysctl {name}"), value, reach);
        }
        self.interfaces(settings);
        self.tables(settings);
        self.firewalls(settings);
        if let Some(rules) = &settings.rules {
            self.rules(rules);
        }
        if let Some(file) = &settings.rule_file {
            let lines = file.text.lines().count();
            let map: Vec<String> = file
                .map
                .iter()
                .map(|(name, end)| format!("{name} = {end}"))
                .collect();
            let map = if map.is_empty() {
                String::new()
            } else {
                format!("; {}", map.join(", "))
            };
            self.add(
                format!("rule file {} of {}", file.file, file.firewall),
                format!("{}{map}", counted(lines, "line")),
            );
        }
        for command in &settings.commands {
            let undo = command
                .undo
                .as_ref()
                .map_or("a reboot".to_string(), |undo| format!("`{undo}`"));
            self.add(
                format!("command `{}`", command.run),
                format!("undone by {undo}"),
            );
        }
    }

    fn interfaces(&mut self, settings: &Settings) {
        let (inside, outside) = (interface(&settings.inside), interface(&settings.outside));
        for (what, to) in &inside {
            let both = outside.contains(&(what.clone(), to.clone()));
            self.add(
                format!(
                    "{} {what}",
                    if both { "interfaces" } else { "interface in" }
                ),
                to,
            );
        }
        for (what, to) in outside.iter().filter(|change| !inside.contains(change)) {
            self.add(format!("interface out {what}"), to);
        }
        if let Some(entries) = settings.inside.rfs.max(settings.outside.rfs) {
            self.reaching(
                "sysctl net.core.rps_sock_flow_entries",
                entries.to_string(),
                Reach::Host,
            );
        }
    }

    fn tables(&mut self, settings: &Settings) {
        let counted = |n: u32, one: &str, many: &str| {
            format!("{} {}", grouped(n), if n == 1 { one } else { many })
        };
        if let Some(n) = settings.routes.count {
            self.add(
                "routing table",
                format!(
                    "{} more, which no frame takes",
                    counted(n, "route", "routes")
                ),
            );
        }
        for route in &settings.routes.explicit {
            let via = route.via.map_or("the tester".into(), |via| via.to_string());
            self.add(
                format!("route {}", route.to),
                format!("via {via} ({})", end(route.end)),
            );
        }
        if let Some(n) = settings.neighbours.count {
            self.add(
                "neighbour table",
                format!("{} more", counted(n, "entry", "entries")),
            );
        }
        for neighbour in &settings.neighbours.explicit {
            self.add(
                format!("neighbour {}", neighbour.address),
                format!("{} ({})", neighbour.mac, end(neighbour.end)),
            );
        }
    }

    /// Firewalls that the host runs by itself. The network stack of a nested DUT is new, and has none.
    fn firewalls(&mut self, settings: &Settings) {
        let which = match settings.firewall().is_some() {
            _ if self.embedded || settings.dut == Dut::Nested => return,
            false if settings.no_firewall => "firewalls",
            // FreeBSD can run several at once.
            true if self.system.parent().unwrap_or(self.system) == System::FreeBsd => {
                "other firewalls"
            }
            _ => return,
        };
        self.add(format!("{which} of the host"), "off");
    }

    fn rules(&mut self, rules: &RuleSet) {
        let mut to = match rules.kind {
            Kind::Nat => "address translation".to_string(),
            kind => kind.to_string(),
        };
        if rules.rules_before > 0 {
            to += &format!(", {} rules that match nothing", grouped(rules.rules_before));
        }
        if let Some(entries) = rules.table {
            to += &format!(", a table of {} entries", grouped(entries));
        }
        if rules.flow_table {
            to += ", with a flow table";
        }
        if !rules.optimize {
            to += ", without pf making a table of the rules";
        }
        self.add(format!("rule set of {}", rules.firewall), to);
        if let Some(states) = rules.states {
            let hash = if rules.hash_sized {
                "with the hash sized for it"
            } else {
                "with the hash as it is"
            };
            let reach = if rules.firewall.is_linux() || !self.embedded {
                Reach::Host
            } else {
                Reach::Namespace
            };
            self.reaching(
                "limit of states",
                format!("at least {}, {hash}", grouped(states)),
                reach,
            );
        }
    }
}

fn end(end: End) -> &'static str {
    if end == End::In { "in" } else { "out" }
}

/// The settings of an interface by their keys.
fn interface(settings: &Interface) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Ok(Value::Object(table)) = serde_json::to_value(settings) {
        table
            .iter()
            .for_each(|(key, value)| shown(key, value, &mut all));
    }
    all
}

fn shown(key: &str, value: &Value, all: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Null => return,
        Value::Object(table) => {
            return table
                .iter()
                .for_each(|(name, value)| shown(&format!("{key} {name}"), value, all));
        }
        Value::Array(cpus) => cpu_list(
            &cpus
                .iter()
                .filter_map(|n| n.as_u64())
                .map(|n| n as u32)
                .collect::<Vec<_>>(),
        ),
        Value::Number(ns) if key.ends_with("-ns") => duration_text(ns.as_u64().unwrap_or_default()),
        other => label(other),
    };
    all.push((key.trim_end_matches("-ns").to_string(), text));
}
