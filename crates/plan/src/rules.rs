//! Rule sets of firewalls, as text that their own tools read: pf, ipfw, IP Filter, iptables (with ipset), nftables.
//!
//! A [`RuleSet`] describes the rules, [`RuleSet::write`] streams them, [`RuleSet::loads`] names the programs that read them. Sets
//! of the BSD firewalls are byte for byte those of the netbenches archive (github.com/ocochard/netbenches) where it has them;
//! docs/rules.md names the source of each.

mod bsd;
mod entries;
mod faults;
mod linux;
mod loading;
pub mod own;
#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::lab::types::HostAddress;
use entries::Entries;
pub use entries::EntryKind;
use linerate_measure::experiment::System;
use linerate_wire::Family;
pub use loading::{Load, Part};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::net::Ipv6Addr;

/// Rules that match nothing, at most.
pub const MAX_RULES: u32 = 100_000;
/// Entries of a table, at most; for each IP version.
pub const MAX_ENTRIES: u32 = 10_000_000;
/// States, at most: the counters of the systems are 32 bits wide, and Linux' is signed.
pub const MAX_STATES: u64 = i32::MAX as u64;
/// Table entries that pf takes without `set limit table-entries` (pf.conf(5)).
const PF_DEFAULT_ENTRIES: u64 = 200_000;
/// Addresses that FreeBSD's pf takes in one request without `net.pf.request_maxcount`.
const PF_DEFAULT_REQUEST: u64 = 65_535;

/// The networks of benchmarks (RFC 2544, C.2.2, and RFC 5180): all test traffic is from and to them.
pub const TEST_NETWORKS: [&str; 2] = ["198.18.0.0/15", "2001:2::/48"];
/// The halves of them that the generator sends from, whose addresses are translated.
const INSIDE_NETWORKS: [&str; 2] = ["198.18.0.0/16", "2001:2::/49"];
/// The interfaces of the embedded lab's DUTs that lead to the receiver.
const LAB_OUTSIDE: &str = "out*";

/// A firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firewall {
    /// nftables, on Linux.
    Nftables,
    /// iptables and ip6tables, on Linux; tables are ipsets.
    Iptables,
    /// pf, on FreeBSD.
    Pf,
    /// pf, on OpenBSD, which translates addresses in other words.
    OpenbsdPf,
    /// ipfw, on FreeBSD.
    Ipfw,
    /// IP Filter, on FreeBSD.
    Ipf,
}

impl Firewall {
    /// The firewall on a system: pf of OpenBSD is another one.
    pub fn on(self, system: System) -> Firewall {
        if self == Firewall::Pf && system == System::OpenBsd {
            Firewall::OpenbsdPf
        } else {
            self
        }
    }

    /// Whether its states can be deleted while its rules stay.
    pub fn can_forget(self) -> bool {
        self != Firewall::Ipfw
    }

    /// Whether it is a firewall of Linux.
    pub fn is_linux(self) -> bool {
        matches!(self, Firewall::Nftables | Firewall::Iptables)
    }

    /// Whether it is pf of some system.
    pub fn is_pf(self) -> bool {
        matches!(self, Firewall::Pf | Firewall::OpenbsdPf)
    }
}

impl fmt::Display for Firewall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Handling of a frame by a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Looks at each frame by itself.
    Stateless,
    /// Keeps a state for each connection.
    Stateful,
    /// Keeps states, and replaces the generator's addresses by its own.
    Nat,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The IP versions whose addresses are in a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Families {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Both.
    Both,
}

impl Families {
    /// Whether IPv4 is one of them.
    pub fn has_v4(self) -> bool {
        self != Families::Ipv6
    }

    /// Whether IPv6 is one of them.
    pub fn has_v6(self) -> bool {
        self != Families::Ipv4
    }
}

/// How a set of ipfw is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpfwFormat {
    /// A shell script that starts ipfw for each line, as the archive has it.
    #[default]
    Script,
    /// A file that one ipfw reads: a table of millions is loaded in seconds, not hours.
    Commands,
}

/// A rule set. A plan embeds it as a table of these fields in kebab case; only `firewall` and `kind` must be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleSet {
    /// Whose rules.
    pub firewall: Firewall,
    /// Handling of a frame.
    pub kind: Kind,
    /// IP versions; `None` is both for Linux, and IPv4 for the others: so the archive has it, and rules without addresses are for
    /// all versions there.
    pub families: Option<Families>,
    /// Rules that match nothing, in front of those that let frames pass; for each IP version.
    #[serde(default)]
    pub rules_before: u32,
    /// Entries of a table that each frame's source is looked up in; for each IP version.
    pub table: Option<u32>,
    /// Whether rules and entries are for networks or hosts.
    #[serde(default)]
    pub entries: EntryKind,
    /// Draws rules and entries at random; `None` counts them up, as the archive does.
    pub seed: Option<u64>,
    /// The table's last entry is the test network, and a frame that is in the table passes: a lookup that finds something.
    #[serde(default)]
    pub hit: bool,
    /// States that the firewall must have room for.
    pub states: Option<u64>,
    /// Whether the hash is to be sized for these states.
    #[serde(default = "yes")]
    pub hash_sized: bool,
    /// Whether established connections pass by the rules in a flow table of both interfaces (nftables).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flow_table: bool,
    /// The interface towards the generator, for a flow table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The interface towards the receiver, for translated frames and for a flow table; `None` for the embedded lab's.
    pub interface: Option<String>,
    /// This interface's IPv6 address, where it is known: its name means link-local addresses to pf, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address6: Option<Ipv6Addr>,
    /// Whether pf may make a table of the rules, as it does by default.
    #[serde(default = "yes")]
    pub optimize: bool,
    /// How a set of ipfw is written.
    #[serde(default)]
    pub ipfw_format: IpfwFormat,
}

fn yes() -> bool {
    true
}

impl RuleSet {
    /// The minimal set.
    pub fn new(firewall: Firewall, kind: Kind) -> Self {
        RuleSet {
            firewall,
            kind,
            families: None,
            rules_before: 0,
            table: None,
            entries: EntryKind::default(),
            seed: None,
            hit: false,
            states: None,
            hash_sized: true,
            flow_table: false,
            inside: None,
            interface: None,
            address6: None,
            optimize: true,
            ipfw_format: IpfwFormat::default(),
        }
    }

    /// The IP versions of its addresses.
    pub fn families(&self) -> Families {
        self.families.unwrap_or(if self.firewall.is_linux() {
            Families::Both
        } else {
            Families::Ipv4
        })
    }

    /// The rule set for a system. `families`: the IP versions of the traffic, for rules and tables; `ends`: the interfaces
    /// towards the generator and the receiver, for address translation and flow tables (default: the embedded lab's).
    pub fn for_frames(
        &self,
        system: System,
        families: &[Family],
        ends: Option<[&str; 2]>,
    ) -> RuleSet {
        // nft would store networks as intervals in a tree; this measures a hash of this many entries.
        let in_hash = self.firewall.is_linux() && self.table.is_some();
        RuleSet {
            firewall: self.firewall.on(system),
            families: match (
                families.contains(&Family::V4),
                families.contains(&Family::V6),
            ) {
                (true, true) => Some(Families::Both),
                (true, false) => Some(Families::Ipv4),
                (false, true) => Some(Families::Ipv6),
                (false, false) => None,
            },
            entries: if in_hash {
                EntryKind::Hosts
            } else {
                self.entries
            },
            inside: ends
                .filter(|_| self.flow_table)
                .map(|[inside, _]| inside.to_string()),
            interface: ends
                .filter(|_| self.flow_table || self.kind == Kind::Nat)
                .map(|[_, outside]| outside.to_string()),
            // The archive's script starts a program for each entry: 20,000 of them take minutes.
            ipfw_format: match self.firewall {
                Firewall::Ipfw => IpfwFormat::Commands,
                _ => self.ipfw_format,
            },
            ..self.clone()
        }
    }

    /// Writes the rules, as [`Part::Rules`] and without comments of its own.
    ///
    /// # Errors
    /// The error of `out`, or [`io::ErrorKind::InvalidInput`] with the first of [`RuleSet::faults`].
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_part(Part::Rules, &[], out)
    }

    /// Writes a part with these lines as comments at its head. Takes time in proportion to its length, and little memory.
    ///
    /// # Errors
    /// As [`RuleSet::write`]; and `InvalidInput` for a part that does not exist.
    pub fn write_part(
        &self,
        part: Part,
        comments: &[String],
        out: &mut impl Write,
    ) -> io::Result<()> {
        if let Some(fault) = self
            .faults()
            .into_iter()
            .chain(self.part_fault(part))
            .next()
        {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
        }
        let mut out = BufWriter::with_capacity(1 << 16, out);
        let is_script = self.firewall == Firewall::Ipfw && self.ipfw_format == IpfwFormat::Script;
        if is_script && part == Part::Rules {
            out.write_all(b"#!/bin/sh\n")?;
        }
        // All these languages have the same comments.
        comments
            .iter()
            .try_for_each(|line| writeln!(out, "# {line}"))?;
        match part {
            Part::Rules => match self.firewall {
                Firewall::Nftables => linux::nftables(self, &mut out),
                Firewall::Iptables => linux::iptables(self, &mut out),
                Firewall::Pf | Firewall::OpenbsdPf => bsd::pf(self, &mut out),
                Firewall::Ipfw => bsd::ipfw(self, &mut out),
                Firewall::Ipf => bsd::ipf(self, &mut out),
            },
            Part::Ipset => linux::write_ipset(self, &mut out),
            Part::Sysctl => loading::write_settings(&self.sysctls(), "", &mut out),
            Part::Loader => loading::write_settings(&self.loader_settings(), "\"", &mut out),
        }?;
        out.flush()
    }

    /// The reason why the rule set lacks this part; `None` if it has it.
    pub fn part_fault(&self, part: Part) -> Option<Diagnostic> {
        let none = part == Part::Ipset && !self.has_ipset();
        let message = "only a rule set of iptables with a table has an ipset";
        none.then(|| {
            Diagnostic::new(message)
                .of("table")
                .remedy("leave --part out, or add a table")
        })
    }

    /// Whether there is an ipset beside the rules.
    pub fn has_ipset(&self) -> bool {
        self.firewall == Firewall::Iptables && self.table.is_some()
    }

    /// The IP versions of its addresses, as indices: 0 is IPv4, 1 is IPv6.
    fn versions(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let asked = [self.families().has_v4(), self.families().has_v6()];
        (0..2).filter(move |version| asked[*version])
    }

    /// Entries of one IP version that match nothing.
    fn misses(&self, count: u32, version: usize) -> impl Iterator<Item = HostAddress> + use<> {
        let entries = Entries {
            count,
            kind: self.entries,
            seed: self.seed,
        };
        let only = |asked: usize| if version == asked { usize::MAX } else { 0 };
        entries.v4().take(only(0)).chain(entries.v6().take(only(1)))
    }

    /// The entries of the table for an IP version, with its last one.
    fn table_of(&self, version: usize) -> impl Iterator<Item = HostAddress> + use<> {
        let misses = self.table.unwrap_or(0).saturating_sub(u32::from(self.hit));
        let hit = TEST_NETWORKS[version].parse().ok().filter(|_| self.hit);
        self.misses(misses, version).chain(hit)
    }

    /// How many rules and entries a host has to take.
    pub fn size(&self) -> u64 {
        self.versions().count() as u64
            * (u64::from(self.rules_before) + u64::from(self.table.unwrap_or(0)))
    }

    /// The rules that match nothing, of all IP versions.
    fn all_rules(&self) -> impl Iterator<Item = HostAddress> {
        self.versions()
            .flat_map(|version| self.misses(self.rules_before, version))
    }
}

/// A short name: `nft-stateless+1000 rules`.
impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.firewall {
            Firewall::Nftables => write!(f, "nft-{}", self.kind)?,
            other => write!(f, "{other}-{}", self.kind)?,
        }
        match self.families {
            Some(Families::Ipv4) => f.write_str(" IPv4")?,
            Some(Families::Ipv6) => f.write_str(" IPv6")?,
            Some(Families::Both) => f.write_str(" IPv4 and IPv6")?,
            None => {}
        }
        if self.rules_before > 0 {
            write!(f, "+{} rules", self.rules_before)?;
            f.write_str(if self.optimize { "" } else { " as rules" })?;
        }
        if let Some(entries) = self.table {
            write!(
                f,
                "+table of {entries}{}",
                if self.hit { ", hit" } else { "" }
            )?;
        }
        if self.rules_before > 0 || self.table.is_some() {
            f.write_str(if self.entries == EntryKind::Hosts {
                ", hosts"
            } else {
                ""
            })?;
        }
        if let Some(seed) = self.seed {
            write!(f, ", seed {seed}")?;
        }
        if self.flow_table {
            f.write_str("+flow table")?;
        }
        if let Some(states) = self.states {
            write!(
                f,
                "+{states} states{}",
                if self.hash_sized {
                    ""
                } else {
                    ", hash not sized"
                }
            )?;
        }
        Ok(())
    }
}
