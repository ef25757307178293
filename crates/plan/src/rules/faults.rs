//! Rule sets that cannot be: what is asked for contradicts itself, or the firewall has no such thing.

use super::{EntryKind, Families, Firewall, IpfwFormat, Kind, MAX_ENTRIES, MAX_RULES, MAX_STATES, RuleSet};

/// Why a rule set cannot be written. The text says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// IP Filter and tables.
    #[error("ipf has no tables: ask for rules instead, or for pf or ipfw")]
    IpfTable,
    /// IP Filter and address translation.
    #[error("there is no address translation for ipf, because no source has one: ask for pf or ipfw")]
    IpfNat,
    /// IP Filter and the number of states.
    #[error("there is no size for ipf's state table, because no source has one: ask for pf or ipfw")]
    IpfStates,
    /// Address translation of ipfw and IPv6.
    #[error("ipfw translates IPv4 only: ask for IPv4, or for pf")]
    IpfwNatIpv6,
    /// States that are not kept.
    #[error(
        "a stateless rule set keeps no states: ask for a stateful one, or leave the number of states out"
    )]
    StatelessStates,
    /// Too few or too many states.
    #[error("{0} states cannot be: from 1 to {MAX_STATES}")]
    States(u64),
    /// Too many rules.
    #[error("{0} rules are too many, {MAX_RULES} at most: more are a table's work")]
    Rules(u32),
    /// Too many entries.
    #[error("a table of {0} entries is too large, {MAX_ENTRIES} at most")]
    Table(u32),
    /// A hit without a table.
    #[error("a hit needs a table with one entry at least")]
    HitWithoutEntry,
    /// A hit in a table of hosts.
    #[error("a hit is the test network, which no host can be: ask for a table of networks")]
    HitOfHosts,
    /// A seed or hosts for nothing.
    #[error("there is nothing to draw: a seed and hosts are for rules and tables")]
    NothingToDraw,
    /// Translation without an interface to go by.
    #[error("address translation of {0} needs the interface that the frames leave by: ix1, say")]
    NoInterface(Firewall),
    /// An interface for nothing.
    #[error("an interface is for address translation only")]
    InterfaceForNothing,
    /// No name of an interface.
    #[error(
        "'{0}' is no name for an interface: up to 15 letters, digits, '.', '_', ':', '@' and '-'; on Linux with '*' for the rest"
    )]
    Interface(String),
    /// pf's optimizer is turned off for others.
    #[error("only pf makes tables of rules: {0} has nothing to turn off")]
    Optimizer(Firewall),
    /// ipfw's commands for others.
    #[error("only ipfw reads a file of its own commands: {0} has one format")]
    Commands(Firewall),
    /// The ipset of a set without one.
    #[error("only a rule set of iptables with a table has an ipset")]
    NoIpset,
}

impl Fault {
    /// The field of [`RuleSet`] that is at fault, as a plan writes it.
    pub fn field(&self) -> &'static str {
        match self {
            Fault::IpfTable | Fault::Table(_) | Fault::NoIpset => "table",
            Fault::IpfNat => "kind",
            Fault::IpfStates | Fault::StatelessStates | Fault::States(_) => "states",
            Fault::IpfwNatIpv6 => "families",
            Fault::Rules(_) => "rules-before",
            Fault::HitWithoutEntry | Fault::HitOfHosts => "hit",
            Fault::NothingToDraw => "seed",
            Fault::NoInterface(_) | Fault::InterfaceForNothing | Fault::Interface(_) => "interface",
            Fault::Optimizer(_) => "optimize",
            Fault::Commands(_) => "ipfw-format",
        }
    }
}

impl RuleSet {
    /// Everything that is wrong with it; nothing if it can be written.
    pub fn faults(&self) -> Vec<Fault> {
        let draws = self.rules_before > 0 || self.table.is_some();
        let wants_draw = self.seed.is_some() || self.entries == EntryKind::Hosts;
        let no_entry = self.table.unwrap_or(0) == 0;
        let of_ipf = self.firewall == Firewall::Ipf;
        let ipfw_nat = self.firewall == Firewall::Ipfw && self.kind == Kind::Nat;
        let commands = self.ipfw_format == IpfwFormat::Commands;
        let states = self.states.filter(|n| !(1..=MAX_STATES).contains(n));
        let checks = [
            (of_ipf && self.table.is_some()).then_some(Fault::IpfTable),
            (of_ipf && self.kind == Kind::Nat).then_some(Fault::IpfNat),
            (of_ipf && self.states.is_some()).then_some(Fault::IpfStates),
            (ipfw_nat && self.families() != Families::Ipv4).then_some(Fault::IpfwNatIpv6),
            (self.kind == Kind::Stateless && self.states.is_some()).then_some(Fault::StatelessStates),
            states.map(Fault::States),
            (self.rules_before > MAX_RULES).then_some(Fault::Rules(self.rules_before)),
            self.table.filter(|n| *n > MAX_ENTRIES).map(Fault::Table),
            (self.hit && no_entry).then_some(Fault::HitWithoutEntry),
            (self.hit && self.entries == EntryKind::Hosts).then_some(Fault::HitOfHosts),
            (wants_draw && !draws).then_some(Fault::NothingToDraw),
            self.interface_fault(),
            (!self.optimize && !self.firewall.is_pf()).then_some(Fault::Optimizer(self.firewall)),
            (commands && self.firewall != Firewall::Ipfw).then_some(Fault::Commands(self.firewall)),
        ];
        checks.into_iter().flatten().collect()
    }

    fn interface_fault(&self) -> Option<Fault> {
        let nat = self.kind == Kind::Nat && self.firewall != Firewall::Ipf;
        match &self.interface {
            None => (nat && !self.firewall.is_linux()).then_some(Fault::NoInterface(self.firewall)),
            Some(_) if !nat => Some(Fault::InterfaceForNothing),
            Some(name) => (!is_interface(name, self.firewall)).then(|| Fault::Interface(name.clone())),
        }
    }
}

/// The name goes into the rules as it is: it must not be able to become a rule itself.
fn is_interface(name: &str, firewall: Firewall) -> bool {
    let stem = if firewall.is_linux() { name.strip_suffix('*').unwrap_or(name) } else { name };
    let fine = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
    !stem.is_empty() && name.len() <= 15 && stem.chars().all(fine) && !stem.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use Fault::*;

    fn set(firewall: Firewall, kind: Kind) -> RuleSet {
        RuleSet::new(firewall, kind)
    }

    #[test]
    fn minimal_sets_are_without_fault() {
        for (firewall, _) in Firewall::ALL {
            for kind in [Kind::Stateless, Kind::Stateful] {
                assert_eq!(set(firewall, kind).faults(), [], "{firewall} {kind}");
            }
        }
        for firewall in [Firewall::Nftables, Firewall::Iptables] {
            assert_eq!(set(firewall, Kind::Nat).faults(), []);
        }
        for firewall in [Firewall::Pf, Firewall::OpenbsdPf, Firewall::Ipfw] {
            let nat = RuleSet { interface: Some("ix0".into()), ..set(firewall, Kind::Nat) };
            assert_eq!(nat.faults(), []);
        }
    }

    #[test]
    fn each_fault_is_found() {
        use Firewall::{Ipf, Ipfw, Nftables, Pf};
        use Kind::{Nat, Stateful, Stateless};
        let ix0 = || Some("ix0".to_string());
        let cases = [
            (RuleSet { table: Some(1), ..set(Ipf, Stateless) }, IpfTable),
            (set(Ipf, Nat), IpfNat),
            (RuleSet { states: Some(1), ..set(Ipf, Stateful) }, IpfStates),
            (RuleSet { families: Some(Families::Both), interface: ix0(), ..set(Ipfw, Nat) }, IpfwNatIpv6),
            (RuleSet { states: Some(1), ..set(Pf, Stateless) }, StatelessStates),
            (RuleSet { states: Some(0), ..set(Pf, Stateful) }, States(0)),
            (RuleSet { states: Some(1 << 31), ..set(Pf, Stateful) }, States(1 << 31)),
            (RuleSet { rules_before: 100_001, ..set(Nftables, Stateless) }, Rules(100_001)),
            (RuleSet { table: Some(10_000_001), ..set(Nftables, Stateless) }, Table(10_000_001)),
            (RuleSet { hit: true, ..set(Nftables, Stateless) }, HitWithoutEntry),
            (RuleSet { hit: true, table: Some(0), ..set(Nftables, Stateless) }, HitWithoutEntry),
            (
                RuleSet { hit: true, table: Some(1), entries: EntryKind::Hosts, ..set(Pf, Stateless) },
                HitOfHosts,
            ),
            (RuleSet { seed: Some(1), ..set(Nftables, Stateless) }, NothingToDraw),
            (RuleSet { entries: EntryKind::Hosts, ..set(Nftables, Stateless) }, NothingToDraw),
            (set(Pf, Nat), NoInterface(Pf)),
            (RuleSet { interface: ix0(), ..set(Pf, Stateful) }, InterfaceForNothing),
            (RuleSet { optimize: false, ..set(Ipfw, Stateless) }, Optimizer(Ipfw)),
            (RuleSet { ipfw_format: IpfwFormat::Commands, ..set(Pf, Stateless) }, Commands(Pf)),
        ];
        for (set, fault) in cases {
            assert_eq!(set.faults(), [fault], "{set:?}");
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = Some(MAX_ENTRIES + 1);
        let wrong =
            RuleSet { table, rules_before: u32::MAX, states: Some(0), ..set(Firewall::Ipf, Kind::Stateless) };
        let fields: Vec<_> = wrong.faults().iter().map(Fault::field).collect();
        assert_eq!(fields, ["table", "states", "states", "states", "rules-before", "table"]);
    }

    #[test]
    fn names_of_interfaces() {
        let nat = |firewall, name: &str| RuleSet { interface: Some(name.into()), ..set(firewall, Kind::Nat) };
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
            assert_eq!(nat(firewall, name).faults(), [Interface(name.into())], "{name}");
        }
    }
}
