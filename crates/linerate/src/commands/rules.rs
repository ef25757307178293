//! `linerate ruleset`: rule sets of firewalls, as text.

use crate::args::number;
use crate::prelude::*;
use linerate_plan::names::Named;
use linerate_plan::rules::{
    EntryKind, Firewall, IpfwFormat, Kind, MAX_ENTRIES, MAX_RULES, MAX_STATES, Part, RuleSet,
};
use std::fs::File;

#[derive(Args)]
#[command(after_help = "Examples:
  linerate ruleset nftables --stateless                   the smallest filter
  linerate ruleset pf --stateful -o pf.conf               pf's stateful set, as a file
  linerate ruleset ipf --stateless --rules 1000           a thousand rules before the last
  linerate ruleset pf --stateless --table 99999 --plain   the set \"100000\" of netbenches: it has 99,999 entries
  linerate ruleset nftables --stateless --table 1M --entries hosts --seed 7
  linerate ruleset pf --stateful --states 10M --part loader   /boot/loader.conf
  linerate ruleset iptables --stateless --table 10k --part ipset   the ipsets
  linerate ruleset pf --nat --interface ix1
  sudo linerate lab up
  linerate ruleset nftables --stateful --rules 1k | sudo ip netns exec linerate-dut0 nft -f -
  sudo linerate lab down

Firewalls:
  nftables    Linux: nft -f
  iptables    Linux: iptables-restore and ip6tables-restore, both from one file; tables are ipsets
  pf          FreeBSD: pfctl -f
  openbsd-pf  OpenBSD: pfctl -f
  ipfw        FreeBSD: a shell script, or with --commands what ipfw itself reads
  ipf         FreeBSD's IP Filter: ipf -f; has no tables

docs/rules.md describes each set and its source.

Exit status: 0 written; 1 the rule set cannot be written; 2 bad arguments, or no such set.")]
pub struct Rules {
    /// Whose rules: nftables, iptables, pf, openbsd-pf, ipfw or ipf
    #[arg(value_parser = |name: &str| Firewall::parse_name(name, "a firewall"))]
    firewall: Firewall,

    #[command(flatten)]
    kind: KindChoice,

    /// IP versions of the addresses [default: both on Linux, 4 elsewhere]
    #[arg(long, value_parser = families())]
    family: Option<Families>,

    /// Number of rules that match nothing, placed before the last ones: up to 100,000 for each IP version
    #[arg(long, value_name = "N", value_parser = rules)]
    rules: Option<u32>,

    /// Number of entries of a table in which each frame's source is looked up: up to 10,000,000 for each IP version
    #[arg(long, value_name = "N", value_parser = entries)]
    table: Option<u32>,

    /// Entries of rules and table: networks (/24, /64) or hosts
    #[arg(long, value_parser = names_of::<EntryKind>(), default_value = "networks")]
    entries: EntryKind,

    /// Draw rules and entries at random from this seed [default: count up from 1.1.1.0/24]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Add an entry for the test traffic to the table, so that lookups succeed
    #[arg(long)]
    hit: bool,

    /// Number of states to make room for: pf's limit, and the settings of --part sysctl and --part loader
    #[arg(long, value_name = "N", value_parser = states)]
    states: Option<u64>,

    /// The interface that translated frames leave by [default on Linux: those of the lab, out*]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// nftables: a flow table of these two interfaces, by which established connections pass the rules
    #[arg(
        long,
        value_name = "IN,OUT",
        value_delimiter = ',',
        conflicts_with = "interface"
    )]
    flow_table: Option<Vec<String>>,

    /// pf: do not let pfctl turn rules into a table
    #[arg(long)]
    no_optimization: bool,

    /// ipfw: write commands for one ipfw process, instead of a shell script
    #[arg(long)]
    commands: bool,

    /// Part to write: rules, ipset, sysctl (lines of sysctl.conf) or loader (lines of /boot/loader.conf)
    #[arg(long, value_name = "PART", default_value = "rules", value_parser = |name: &str| Part::parse_name(name, "a part"))]
    part: Part,

    /// Write no comments: BSD sets are then those of netbenches, the public archive, byte for byte
    #[arg(long)]
    plain: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Handling of a frame by the rules.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct KindChoice {
    /// Judge each frame by itself
    #[arg(long)]
    stateless: bool,

    /// Keep a state for each connection
    #[arg(long)]
    stateful: bool,

    /// Keep states, and replace the generator's addresses by the firewall's own
    #[arg(long)]
    nat: bool,
}

impl Rules {
    /// The rule set that is asked for; it may have faults.
    pub fn set(&self) -> RuleSet {
        let kind = match (self.kind.stateful, self.kind.nat) {
            (true, _) => Kind::Stateful,
            (_, true) => Kind::Nat,
            _ => Kind::Stateless,
        };
        let [inside, outside] = [0, 1].map(|end| self.flow_table.as_ref()?.get(end).cloned());
        RuleSet {
            families: self.family,
            rules_before: self.rules.unwrap_or(0),
            table: self.table,
            entries: self.entries,
            seed: self.seed,
            hit: self.hit,
            states: self.states,
            flow_table: self.flow_table.is_some(),
            inside,
            interface: self.interface.clone().or(outside),
            optimize: !self.no_optimization,
            ipfw_format: if self.commands {
                IpfwFormat::Commands
            } else {
                IpfwFormat::Script
            },
            ..RuleSet::new(self.firewall, kind)
        }
    }
}

/// Entries of a table that take a while to write: some 100 MB are written in a second.
const MANY: u32 = 5_000_000;

fn rules(text: &str) -> Result<u32, String> {
    number(text, 0, MAX_RULES.into()).map(|n| n as u32)
}

fn entries(text: &str) -> Result<u32, String> {
    number(text, 0, MAX_ENTRIES.into()).map(|n| n as u32)
}

fn states(text: &str) -> Result<u64, String> {
    number(text, 1, MAX_STATES)
}

/// Runs the verb.
///
/// # Errors
/// There is no such set, or it cannot be written.
pub fn run(args: &Rules) -> Exit {
    let set = args.set();
    let faults: Vec<String> = set
        .faults()
        .into_iter()
        .chain(set.part_fault(args.part))
        .map(told)
        .collect();
    if !faults.is_empty() {
        return Err(usage(faults.join("\nlinerate: ")));
    }
    let comments = if args.plain {
        Vec::new()
    } else {
        set.comments(args.part)
    };
    // A line of progress would be in the way of a text on the terminal.
    let shows = args.table.is_some_and(|entries| entries > MANY)
        && (args.out.is_some() || !std::io::stdout().is_terminal());
    let progress = shows.then(|| Progress::of_bytes("the rule set", None));
    match &args.out {
        Some(path) => {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            set.write_part(
                args.part,
                &comments,
                &mut Counted {
                    out: file,
                    bytes: 0,
                    progress,
                },
            )
            .with_context(|| {
                format!(
                    "cannot write {}: what is in it is not complete",
                    path.display()
                )
            })?;
        }
        // Standard output keeps its error to itself until the end.
        None => drop(set.write_part(
            args.part,
            &comments,
            &mut Counted {
                out: Output,
                bytes: 0,
                progress,
            },
        )),
    }
    DONE
}

fn told(fault: Diagnostic) -> String {
    Diagnostic {
        subject: None,
        ..fault
    }
    .to_string()
}

/// The output of the text, with a line of progress.
struct Counted<W> {
    out: W,
    bytes: u64,
    progress: Option<Progress>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        self.progress
            .iter()
            .for_each(|line| line.advance_bytes(self.bytes));
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
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
        for wrong in [
            "",
            "k",
            "-1",
            "1.5k",
            "1kk",
            "ten",
            "é",
            "99999999999999999999",
            "18446744073709551615k",
        ] {
            assert!(entries(wrong).is_err(), "{wrong}");
        }
    }
}
