//! Arguments of `linerate rules`.

use super::values::FamilyChoice;
use clap::{Args, ValueEnum};
use linerate_plan::rules::{
    EntryKind, Families, Firewall, IpfwFormat, Kind, MAX_ENTRIES, MAX_RULES, MAX_STATES, Part, RuleSet,
};
use std::path::PathBuf;

/// Arguments of `linerate rules`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate rules nftables --stateless                   the smallest filter
  linerate rules pf --stateful -o pf.conf               the 2018 paper's, as a file
  linerate rules ipf --stateless --rules 1000           a thousand rules before the last
  linerate rules pf --stateless --table 99999 --plain   the archive's table \"100000\", to the byte
  linerate rules nftables --stateless --table 1M --entries hosts --seed 7
  linerate rules pf --stateful --states 10M --part loader
                                                        what /boot/loader.conf needs for ten million states
  linerate rules iptables --stateless --table 10k --part ipset
                                                        the ipsets; without --part, the rules
  linerate rules pf --nat --interface ix1
  sudo linerate lab up
  linerate rules nftables --stateful --rules 1k | sudo ip netns exec linerate-dut0 nft -f -
  sudo linerate lab down

Firewalls:
  nftables    Linux: nft -f
  iptables    Linux: iptables-restore and ip6tables-restore, both from one file; tables are ipsets
  pf          FreeBSD: pfctl -f
  openbsd-pf  OpenBSD: pfctl -f
  ipfw        FreeBSD: a shell script, or with --commands what ipfw itself reads
  ipf         FreeBSD's IP Filter: ipf -f; has no tables

docs/rules.md says what each set has in it, and where it is from.

Exit status: 0 written; 1 it cannot be written; 2 bad arguments, or no such set.")]
pub struct Rules {
    /// Whose rules: nftables, iptables, pf, openbsd-pf, ipfw or ipf
    pub firewall: Firewall,

    #[command(flatten)]
    pub kind: KindChoice,

    /// IP versions of the addresses [default: both on Linux, 4 elsewhere]
    #[arg(long, value_enum)]
    pub family: Option<FamilyChoice>,

    /// Rules that match nothing, in front of the last ones, up to 100,000; for each IP version
    #[arg(long, value_name = "N", value_parser = rules)]
    pub rules: Option<u32>,

    /// A table of so many entries that each frame's source is looked up in, up to 10,000,000; for each IP version
    #[arg(long, value_name = "N", value_parser = entries)]
    pub table: Option<u32>,

    /// What rules and table name: networks (/24, /64) or hosts
    #[arg(long, value_enum, default_value = "networks")]
    pub entries: EntryChoice,

    /// Draws rules and entries at random, the same each time [default: counts up from 1.1.1.0/24 on]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// One entry of the table is for test traffic, which passes by it: a lookup that finds something
    #[arg(long)]
    pub hit: bool,

    /// Room for so many states: pf's limit, and the settings that --part sysctl and --part loader write
    #[arg(long, value_name = "N", value_parser = states)]
    pub states: Option<u64>,

    /// The interface that translated frames leave by [default on Linux: the lab's, out*]
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// pf: keep rules as rules, instead of letting pfctl make a table of them
    #[arg(long)]
    pub no_optimization: bool,

    /// ipfw: commands that one ipfw reads, instead of a script that starts one for each
    #[arg(long)]
    pub commands: bool,

    /// What to write: rules, ipset, sysctl (lines of sysctl.conf) or loader (lines of /boot/loader.conf)
    #[arg(long, value_name = "PART", default_value = "rules")]
    pub part: Part,

    /// No comments: BSD sets are then the archive's, byte for byte
    #[arg(long)]
    pub plain: bool,

    /// A file to write to, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What the rules do with a frame.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct KindChoice {
    /// Look at each frame by itself
    #[arg(long)]
    pub stateless: bool,

    /// Keep a state for each connection
    #[arg(long)]
    pub stateful: bool,

    /// Keep states, and replace the generator's addresses by the firewall's own
    #[arg(long)]
    pub nat: bool,
}

/// What rules and tables name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EntryChoice {
    /// /24 of IPv4, /64 of IPv6
    Networks,
    /// Single addresses
    Hosts,
}

impl Rules {
    /// The rule set that is asked for; it may have faults.
    pub fn set(&self) -> RuleSet {
        let kind = match (self.kind.stateful, self.kind.nat) {
            (true, _) => Kind::Stateful,
            (_, true) => Kind::Nat,
            _ => Kind::Stateless,
        };
        RuleSet {
            families: self.family.map(|family| match family {
                FamilyChoice::V4 => Families::Ipv4,
                FamilyChoice::V6 => Families::Ipv6,
                FamilyChoice::Both => Families::Both,
            }),
            rules_before: self.rules.unwrap_or(0),
            table: self.table,
            entries: match self.entries {
                EntryChoice::Networks => EntryKind::Networks,
                EntryChoice::Hosts => EntryKind::Hosts,
            },
            seed: self.seed,
            hit: self.hit,
            states: self.states,
            interface: self.interface.clone(),
            optimize: !self.no_optimization,
            ipfw_format: if self.commands { IpfwFormat::Commands } else { IpfwFormat::Script },
            ..RuleSet::new(self.firewall, kind)
        }
    }
}

fn rules(text: &str) -> Result<u32, String> {
    number(text, 0, MAX_RULES.into()).map(|n| n as u32)
}

fn entries(text: &str) -> Result<u32, String> {
    number(text, 0, MAX_ENTRIES.into()).map(|n| n as u32)
}

fn states(text: &str) -> Result<u64, String> {
    number(text, 1, MAX_STATES)
}

/// A number such as 1000, 1_000, 10k or 1M.
fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let plain = text.trim().replace('_', "");
    let scaled = [("k", 1_000), ("K", 1_000), ("m", 1_000_000), ("M", 1_000_000)];
    let (digits, scale) = scaled
        .iter()
        .find_map(|(unit, scale)| plain.strip_suffix(unit).map(|digits| (digits, *scale)))
        .unwrap_or((&plain, 1));
    let value = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    let value = value.ok_or_else(|| format!("'{text}' is not a number: write 1000, 10k or 1M"))?;
    if (least..=most).contains(&value) { Ok(value) } else { Err(format!("from {least} to {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_bounds() {
        assert_eq!(
            [rules("10k"), rules("100_000"), entries("10M")],
            [Ok(10_000), Ok(100_000), Ok(10_000_000)]
        );
        assert_eq!([rules("0"), entries(" 5 ")], [Ok(0), Ok(5)]);
        assert_eq!(rules("100001"), Err("from 0 to 100000".into()));
        assert_eq!(states("0"), Err("from 1 to 2147483647".into()));
        for wrong in
            ["", "k", "-1", "1.5k", "1kk", "ten", "é", "99999999999999999999", "18446744073709551615k"]
        {
            assert!(entries(wrong).is_err(), "{wrong}");
        }
    }
}
