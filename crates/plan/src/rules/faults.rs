//! Faults of rule sets: sets that a firewall cannot have, and numbers and names that are not possible.

use super::{
    EntryKind, Families, Firewall, IpfwFormat, Kind, MAX_ENTRIES, MAX_RULES, MAX_STATES, RuleSet,
};
use crate::diagnostic::Diagnostic;

impl RuleSet {
    /// Everything that is wrong with it; nothing if it can be written. The subject of each is a field of [`RuleSet`], as a plan names it.
    pub fn faults(&self) -> Vec<Diagnostic> {
        let interface = [self.interface_fault()];
        let all = self
            .lacking()
            .into_iter()
            .chain(self.impossible())
            .chain(interface)
            .chain(self.foreign());
        all.flatten().collect()
    }

    /// Features that the firewall or the kind of rules has not.
    fn lacking(&self) -> [Option<Diagnostic>; 6] {
        let (ipf, ipfw) = (
            self.firewall == Firewall::Ipf,
            self.firewall == Firewall::Ipfw,
        );
        let (nat, stateless) = (self.kind == Kind::Nat, self.kind == Kind::Stateless);
        let v6 = self.families() != Families::Ipv4;
        let has_states = self.states.is_some();
        let no_nat = "there is no address translation for ipf, because no source has one";
        let no_size = "there is no size for ipf's state table, because no source has one";
        let no_states = "a stateless rule set keeps no states";
        let others = "ask for pf or ipfw";
        let rules = "ask for rules instead, or for pf or ipfw";
        let stateful = "ask for a stateful one, or leave the number of states out";
        [
            fault(
                ipf && self.table.is_some(),
                "table",
                "ipf has no tables",
                rules,
            ),
            fault(ipf && nat, "kind", no_nat, others),
            fault(ipf && has_states, "states", no_size, others),
            fault(
                ipfw && nat && v6,
                "families",
                "ipfw translates IPv4 only",
                "ask for IPv4, or for pf",
            ),
            fault(stateless && has_states, "states", no_states, stateful),
            fault(
                self.flow_table && (stateless || self.firewall != Firewall::Nftables),
                "flow-table",
                "only nftables with connection tracking has a flow table",
                "ask for a stateful set of nftables or for its address translation, or leave the flow table out",
            ),
        ]
    }

    /// Numbers, hits and draws that are not possible.
    fn impossible(&self) -> [Option<Diagnostic>; 6] {
        let (rules, table, states) = (
            self.rules_before,
            self.table.unwrap_or(0),
            self.states.unwrap_or(1),
        );
        let hosts = self.entries == EntryKind::Hosts;
        let draws = rules > 0 || self.table.is_some();
        let wants_draw = self.seed.is_some() || hosts;
        let no_states = format!("{states} states are not possible");
        let many = format!("{rules} rules are too many, {MAX_RULES} at most");
        let large = format!("a table of {table} entries is too large");
        let no_entry = "a hit needs a table with one entry at least";
        let no_host = "a hit is the test network, which no host can be";
        let help = "a seed and hosts are for rules and tables";
        [
            fault(
                !(1..=MAX_STATES).contains(&states),
                "states",
                &no_states,
                &format!("from 1 to {MAX_STATES}"),
            ),
            fault(
                rules > MAX_RULES,
                "rules-before",
                &many,
                "more are a table's work",
            ),
            fault(
                table > MAX_ENTRIES,
                "table",
                &large,
                &format!("{MAX_ENTRIES} at most"),
            ),
            fault(self.hit && table == 0, "hit", no_entry, "add a table"),
            fault(
                self.hit && hosts,
                "hit",
                no_host,
                "ask for a table of networks",
            ),
            fault(
                wants_draw && !draws,
                "seed",
                "there is nothing to draw",
                help,
            ),
        ]
    }

    fn interface_fault(&self) -> Option<Diagnostic> {
        let firewall = self.firewall;
        let translates = self.kind == Kind::Nat && firewall != Firewall::Ipf;
        let form =
            "up to 15 letters, digits, '.', '_', ':', '@' and '-'; on Linux with '*' for the rest";
        let interface = self.interface.as_deref();
        if self.flow_table {
            // A device of a flow table has no '*' before Linux 6.16.
            let named = |end: Option<&str>| {
                end.is_some_and(|end| is_interface(end, firewall) && !end.contains('*'))
            };
            return fault(
                !(named(self.inside.as_deref()) && named(interface)),
                "interface",
                "a flow table needs the names of both interfaces",
                "in0 and out0, say",
            );
        }
        let (wrong, message, help) = match interface {
            None => (
                translates && !firewall.is_linux(),
                format!(
                    "address translation of {firewall} needs the interface that the frames leave by"
                ),
                "ix1, say",
            ),
            Some(name) if translates => (
                !is_interface(name, firewall),
                format!("'{name}' is not an interface name"),
                form,
            ),
            Some(_) => (
                true,
                "an interface is for address translation only".into(),
                "leave it out",
            ),
        };
        fault(wrong, "interface", &message, help)
    }

    /// Options of other firewalls.
    fn foreign(&self) -> [Option<Diagnostic>; 2] {
        let firewall = self.firewall;
        let commands = self.ipfw_format == IpfwFormat::Commands && firewall != Firewall::Ipfw;
        let no_tables =
            format!("only pf makes tables of rules: {firewall} has nothing to turn off");
        let no_commands =
            format!("only ipfw reads a file of its own commands, {firewall} does not");
        [
            fault(
                !self.optimize && !firewall.is_pf(),
                "optimize",
                &no_tables,
                "leave it out",
            ),
            fault(commands, "ipfw-format", &no_commands, "leave it out"),
        ]
    }
}

fn fault(wrong: bool, field: &str, message: &str, remedy: &str) -> Option<Diagnostic> {
    wrong.then(|| Diagnostic::new(message).of(field).remedy(remedy))
}

/// The name goes into the rules as it is: it must not be able to become a rule itself.
fn is_interface(name: &str, firewall: Firewall) -> bool {
    let stem = if firewall.is_linux() {
        name.strip_suffix('*').unwrap_or(name)
    } else {
        name
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
    !stem.is_empty() && name.len() <= 15 && stem.chars().all(fine) && !stem.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Named;

    fn set(firewall: Firewall, kind: Kind) -> RuleSet {
        RuleSet::new(firewall, kind)
    }

    #[test]
    fn minimal_sets_are_without_fault() {
        for firewall in Firewall::all() {
            for kind in [Kind::Stateless, Kind::Stateful] {
                assert_eq!(set(firewall, kind).faults(), [], "{firewall} {kind}");
            }
        }
        for firewall in [Firewall::Nftables, Firewall::Iptables] {
            assert_eq!(set(firewall, Kind::Nat).faults(), []);
        }
        for firewall in [Firewall::Pf, Firewall::OpenbsdPf, Firewall::Ipfw] {
            let nat = RuleSet {
                interface: Some("ix0".into()),
                ..set(firewall, Kind::Nat)
            };
            assert_eq!(nat.faults(), []);
        }
    }

    #[test]
    fn each_fault_is_found() {
        use Firewall::{Ipf, Ipfw, Nftables, Pf};
        use Kind::{Nat, Stateful, Stateless};
        let ix0 = || Some("ix0".to_string());
        let cases = [
            (
                RuleSet {
                    table: Some(1),
                    ..set(Ipf, Stateless)
                },
                "table",
                "ipf has no tables",
            ),
            (set(Ipf, Nat), "kind", "no address translation for ipf"),
            (
                RuleSet {
                    states: Some(1),
                    ..set(Ipf, Stateful)
                },
                "states",
                "ipf's state table",
            ),
            (
                RuleSet {
                    families: Some(Families::Both),
                    interface: ix0(),
                    ..set(Ipfw, Nat)
                },
                "families",
                "IPv4 only",
            ),
            (
                RuleSet {
                    states: Some(1),
                    ..set(Pf, Stateless)
                },
                "states",
                "keeps no states",
            ),
            (
                RuleSet {
                    states: Some(0),
                    ..set(Pf, Stateful)
                },
                "states",
                "0 states are not possible",
            ),
            (
                RuleSet {
                    states: Some(1 << 31),
                    ..set(Pf, Stateful)
                },
                "states",
                "2147483648 states",
            ),
            (
                RuleSet {
                    rules_before: 100_001,
                    ..set(Nftables, Stateless)
                },
                "rules-before",
                "100001 rules",
            ),
            (
                RuleSet {
                    table: Some(10_000_001),
                    ..set(Nftables, Stateless)
                },
                "table",
                "10000001 entries",
            ),
            (
                RuleSet {
                    hit: true,
                    ..set(Nftables, Stateless)
                },
                "hit",
                "one entry at least",
            ),
            (
                RuleSet {
                    hit: true,
                    table: Some(0),
                    ..set(Nftables, Stateless)
                },
                "hit",
                "one entry at least",
            ),
            (
                RuleSet {
                    hit: true,
                    table: Some(1),
                    entries: EntryKind::Hosts,
                    ..set(Pf, Stateless)
                },
                "hit",
                "which no host can be",
            ),
            (
                RuleSet {
                    seed: Some(1),
                    ..set(Nftables, Stateless)
                },
                "seed",
                "nothing to draw",
            ),
            (
                RuleSet {
                    entries: EntryKind::Hosts,
                    ..set(Nftables, Stateless)
                },
                "seed",
                "nothing to draw",
            ),
            (set(Pf, Nat), "interface", "translation of pf needs"),
            (
                RuleSet {
                    interface: ix0(),
                    ..set(Pf, Stateful)
                },
                "interface",
                "address translation only",
            ),
            (
                RuleSet {
                    optimize: false,
                    ..set(Ipfw, Stateless)
                },
                "optimize",
                "ipfw has nothing",
            ),
            (
                RuleSet {
                    ipfw_format: IpfwFormat::Commands,
                    ..set(Pf, Stateless)
                },
                "ipfw-format",
                "pf does not",
            ),
        ];
        for (set, field, message) in cases {
            let faults = set.faults();
            assert!(
                faults.len() == 1 && faults[0].message.contains(message),
                "{set:?} {faults:?}"
            );
            assert_eq!(faults[0].subject.as_deref(), Some(field), "{set:?}");
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = Some(MAX_ENTRIES + 1);
        let wrong = RuleSet {
            table,
            rules_before: u32::MAX,
            states: Some(0),
            ..set(Firewall::Ipf, Kind::Stateless)
        };
        let fields: Vec<_> = wrong
            .faults()
            .into_iter()
            .filter_map(|fault| fault.subject)
            .collect();
        assert_eq!(
            fields,
            [
                "table",
                "states",
                "states",
                "states",
                "rules-before",
                "table"
            ]
        );
    }

    #[test]
    fn names_of_interfaces() {
        let nat = |firewall, name: &str| RuleSet {
            interface: Some(name.into()),
            ..set(firewall, Kind::Nat)
        };
        for (firewall, name) in [
            (Firewall::Pf, "ix0"),
            (Firewall::Pf, "vlan2.4"),
            (Firewall::Nftables, "out*"),
            (Firewall::Iptables, "enp4s0f0"),
            (Firewall::Iptables, "veth1@if2"),
        ] {
            assert_eq!(nat(firewall, name).faults(), [], "{name}");
        }
        for (firewall, name) in [
            (Firewall::Nftables, ""),
            (Firewall::Nftables, "*"),
            (Firewall::Nftables, "a\" accept #"),
            (Firewall::Nftables, "o*t"),
            (Firewall::Iptables, "-j"),
            (Firewall::Iptables, "sixteen-letters0"),
            (Firewall::Pf, "out*"),
            (Firewall::Pf, "ix0\npass"),
            (Firewall::Ipfw, "$(reboot)"),
            (Firewall::Ipfw, "ix0;reboot"),
            (Firewall::Pf, "é"),
        ] {
            let faults = nat(firewall, name).faults();
            assert!(
                faults.len() == 1 && faults[0].message.contains("not an interface name"),
                "{name}"
            );
        }
    }
}
