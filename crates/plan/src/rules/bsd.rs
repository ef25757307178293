//! Rule sets of the BSDs: pf.conf of FreeBSD and OpenBSD; the archive's shell script of ipfw, or the commands that one ipfw reads;
//! ipf.rules of IP Filter.

use super::{Firewall, INSIDE_NETWORKS, IpfwFormat, Kind, PF_DEFAULT_ENTRIES, RuleSet};
use std::io::{Result, Write};

pub(super) fn pf(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    options(set, out)?;
    if set.table.is_some() {
        out.write_all(b"table <t> const{")?;
        for (number, entry) in set
            .versions()
            .flat_map(|version| set.table_of(version))
            .enumerate()
        {
            write!(out, "{}{entry}", if number == 0 { "" } else { "," })?;
        }
        out.write_all(b"}\n")?;
    }
    if set.kind == Kind::Nat {
        translation(set, out)?;
    }
    if set.table.is_some() {
        let verdict = match (set.hit, set.kind) {
            (false, _) => "block quick from <t>",
            (true, Kind::Stateless) => "pass quick from <t> no state",
            (true, _) => "pass quick from <t>",
        };
        writeln!(out, "{verdict}")?;
    }
    for entry in set.all_rules() {
        writeln!(out, "block from {entry} to any")?;
    }
    out.write_all(match set.kind {
        Kind::Stateless => b"pass no state\n",
        Kind::Stateful => b"pass\n",
        // As in figures 9 and 10 of "Measure Twice, Code Once".
        Kind::Nat => b"pass in quick all keep state\npass out quick all keep state\n",
    })
}

fn options(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let states = set.states.map(|states| format!("states {states}"));
    let entries = set.all_entries().filter(|n| *n > PF_DEFAULT_ENTRIES);
    let limits: Vec<String> = states
        .into_iter()
        .chain(entries.map(|n| format!("table-entries {n}")))
        .collect();
    if !limits.is_empty() {
        writeln!(out, "set limit {{ {} }}", limits.join(", "))?;
    }
    if !set.optimize {
        out.write_all(b"set ruleset-optimization none\n")?;
    }
    match set.kind {
        Kind::Nat => Ok(()),
        _ => out.write_all(b"set skip on lo0\n"),
    }
}

fn translation(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let interface = set.interface.as_deref().unwrap_or_default();
    for inside in set.versions().map(|version| INSIDE_NETWORKS[version]) {
        let to = match set.address6.filter(|_| inside.contains(':')) {
            Some(address) => address.to_string(),
            None => interface.into(),
        };
        match set.firewall {
            Firewall::OpenbsdPf => writeln!(
                out,
                "match out on {interface} from {inside} to any nat-to {to}"
            )?,
            _ => writeln!(out, "nat on {interface} from {inside} to any -> {to}")?,
        }
    }
    Ok(())
}

/// Table entries that a command of ipfw adds at once: ipfw reads lines of 4095 bytes, and an address with its value has 46 at most.
const ENTRIES_A_LINE: usize = 80;

pub(super) fn ipfw(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let script = set.ipfw_format == IpfwFormat::Script;
    // Start of each line, and the table's name, escaped for the shell.
    let (start, table) = if script {
        ("${fwcmd} ", "table\\(1\\)")
    } else {
        ("", "table(1)")
    };
    if script {
        out.write_all(b"fwcmd=\"/sbin/ipfw\"\n# Flush out the list before we begin.\n")?;
    }
    writeln!(out, "{start}-f flush")?;
    if set.table.is_some() {
        writeln!(out, "{start}table 1 create type addr")?;
        let mut entries = set
            .versions()
            .flat_map(|version| set.table_of(version))
            .peekable();
        while !script && entries.peek().is_some() {
            write!(out, "table 1 add")?;
            // More than one entry on a line have values; 0 is the one of those without.
            entries
                .by_ref()
                .take(ENTRIES_A_LINE)
                .try_for_each(|entry| write!(out, " {entry} 0"))?;
            writeln!(out)?;
        }
        entries.try_for_each(|entry| writeln!(out, "{start}table 1 add {entry}"))?;
    }
    if set.kind == Kind::Nat {
        let interface = set.interface.as_deref().unwrap_or_default();
        writeln!(out, "{start}nat 1 config if {interface}")?;
    }
    let keep_state = if set.kind == Kind::Stateful {
        " keep-state"
    } else {
        ""
    };
    if set.table.is_some() {
        match set.hit {
            false => writeln!(out, "{start}add deny ip from {table} to any")?,
            true => writeln!(out, "{start}add allow ip from {table} to any{keep_state}")?,
        }
    }
    for entry in set.all_rules() {
        writeln!(out, "{start}add deny ip from {entry} to any")?;
    }
    if set.kind == Kind::Nat {
        let interface = set.interface.as_deref().unwrap_or_default();
        writeln!(out, "{start}add nat 1 ip from any to any via {interface}")?;
    }
    // The archive numbers the only rule of a set, and lets ipfw number many.
    let number = if set.table.is_none() && set.rules_before == 0 && set.kind != Kind::Nat {
        "3000 "
    } else {
        ""
    };
    writeln!(
        out,
        "{start}add {number}allow ip from any to any{keep_state}"
    )
}

/// Configuration set 5 of the 2018 paper, as the archive has it, down to the blanks; but the archive's set has the rule for UDP that
/// leaves twice, which ipf refuses, and none for UDP that arrives.
const STATEFUL: &str = "pass in quick on lo0
pass out quick on lo0
pass in  proto icmp from any to any keep state
pass out proto icmp from any to any keep state
pass in proto udp from any to any keep state
pass out proto udp from any to any keep state
pass in proto tcp from any to any flags S/SAFR keep state
pass out proto tcp from any to any flags S/SAFR keep state
";

pub(super) fn ipf(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    for entry in set.all_rules() {
        writeln!(out, "block in quick from {entry} to any")?;
    }
    // The last rule that matches decides: if there are rules before, the archive ends the search.
    out.write_all(match (set.kind, set.rules_before) {
        (Kind::Stateless, 0) => b"pass out all\npass in all\n",
        (Kind::Stateless, _) => b"pass out quick all\npass in quick all\n",
        _ => STATEFUL.as_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Families;
    use super::super::tests::text;
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet::new(Firewall::Pf, kind)
    }

    #[test]
    fn limits_are_raised_where_they_must_be() {
        let large = RuleSet {
            table: Some(200_001),
            ..set(Kind::Stateless)
        };
        assert!(
            text(&large)
                .starts_with("set limit { table-entries 200001 }\nset skip on lo0\ntable <t> ")
        );
        let both = RuleSet {
            table: Some(100_001),
            families: Some(Families::Both),
            ..set(Kind::Stateless)
        };
        assert!(text(&both).starts_with("set limit { table-entries 200002 }\n"));
        let small = RuleSet {
            table: Some(200_000),
            ..set(Kind::Stateless)
        };
        assert!(text(&small).starts_with("set skip on lo0\n"));
        let states = RuleSet {
            table: Some(300_000),
            states: Some(5),
            ..set(Kind::Stateful)
        };
        assert!(text(&states).starts_with("set limit { states 5, table-entries 300000 }\n"));
    }

    #[test]
    fn rules_that_stay_rules() {
        let rules = RuleSet {
            rules_before: 1,
            optimize: false,
            ..set(Kind::Stateless)
        };
        let expected = "set ruleset-optimization none\nset skip on lo0\nblock from 1.1.1.0/24 to any\npass no state\n";
        assert_eq!(text(&rules), expected);
    }

    #[test]
    fn translation_in_the_words_of_each_system() {
        let nat = RuleSet {
            interface: Some("ix0".into()),
            ..set(Kind::Nat)
        };
        let passes = "pass in quick all keep state\npass out quick all keep state\n";
        assert_eq!(
            text(&nat),
            format!("nat on ix0 from 198.18.0.0/16 to any -> ix0\n{passes}")
        );
        let openbsd = RuleSet {
            firewall: Firewall::OpenbsdPf,
            states: Some(1_000_000_000),
            ..nat.clone()
        };
        let expected = "set limit { states 1000000000 }\nmatch out on ix0 from 198.18.0.0/16 to any nat-to ix0\n";
        assert_eq!(text(&openbsd), format!("{expected}{passes}"));
        let v6 = RuleSet {
            families: Some(Families::Ipv6),
            ..nat
        };
        assert!(text(&v6).starts_with("nat on ix0 from 2001:2::/49 to any -> ix0\n"));
        // em2 is fe80::b:5dff:fe00:3, too (openbsd-7.8/em/pf-rule-sets.txt of the corpus).
        let address6 = Some("2001:2:0:8000::1".parse().unwrap());
        let both = RuleSet {
            families: Some(Families::Both),
            address6,
            ..v6
        };
        let expected = "nat on ix0 from 198.18.0.0/16 to any -> ix0\n\
            nat on ix0 from 2001:2::/49 to any -> 2001:2:0:8000::1\n";
        assert!(text(&both).starts_with(expected), "{}", text(&both));
    }

    #[test]
    fn tables_of_both_versions_and_hits() {
        let hit = RuleSet {
            table: Some(2),
            hit: true,
            families: Some(Families::Both),
            ..set(Kind::Stateless)
        };
        let expected = "set skip on lo0\n\
            table <t> const{1.1.1.0/24,198.18.0.0/15,2001:db8:0:1::/64,2001:2::/48}\n\
            pass quick from <t> no state\npass no state\n";
        assert_eq!(text(&hit), expected);
        let stateful = RuleSet {
            kind: Kind::Stateful,
            ..hit
        };
        assert!(text(&stateful).ends_with("pass quick from <t>\npass\n"));
        let empty = RuleSet {
            table: Some(0),
            ..set(Kind::Stateless)
        };
        assert_eq!(
            text(&empty),
            "set skip on lo0\ntable <t> const{}\nblock quick from <t>\npass no state\n"
        );
    }
}

#[cfg(test)]
mod ipfw_tests {
    use super::super::tests::text;
    use super::super::{Families, Firewall};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet {
            ipfw_format: IpfwFormat::Commands,
            ..RuleSet::new(Firewall::Ipfw, kind)
        }
    }

    #[test]
    fn commands_need_no_shell() {
        let stateful = set(Kind::Stateful);
        assert_eq!(
            text(&stateful),
            "-f flush\nadd 3000 allow ip from any to any keep-state\n"
        );
        let table = RuleSet {
            table: Some(2),
            families: Some(Families::Ipv6),
            ..set(Kind::Stateless)
        };
        let expected = "-f flush\ntable 1 create type addr\n\
            table 1 add 2001:db8:0:1::/64 0 2001:db8:0:2::/64 0\n\
            add deny ip from table(1) to any\nadd allow ip from any to any\n";
        assert_eq!(text(&table), expected);
    }

    #[test]
    fn lines_with_many_entries_are_no_longer_than_ipfw_reads() {
        let (entries, seed) = (super::super::EntryKind::Hosts, Some(3));
        let table = RuleSet {
            table: Some(1000),
            entries,
            seed,
            families: Some(Families::Both),
            ..set(Kind::Stateless)
        };
        let text = text(&table);
        let added: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("table 1 add "))
            .collect();
        assert_eq!(added.len(), 2000 / ENTRIES_A_LINE);
        assert_eq!(
            added
                .iter()
                .flat_map(|line| line.split(" 0"))
                .filter(|entry| !entry.is_empty())
                .count(),
            2000
        );
        assert!(text.lines().all(|line| line.len() < 4095) && ENTRIES_A_LINE * 46 < 4000);
    }

    #[test]
    fn translation() {
        let nat = RuleSet {
            interface: Some("ix0".into()),
            ..set(Kind::Nat)
        };
        let expected = "-f flush\nnat 1 config if ix0\nadd nat 1 ip from any to any via ix0\n\
            add allow ip from any to any\n";
        assert_eq!(text(&nat), expected);
    }

    #[test]
    fn hits_keep_states_where_the_set_does() {
        let hit = RuleSet {
            table: Some(1),
            hit: true,
            rules_before: 1,
            ..set(Kind::Stateful)
        };
        let expected = "-f flush\ntable 1 create type addr\ntable 1 add 198.18.0.0/15 0\n\
            add allow ip from table(1) to any keep-state\nadd deny ip from 1.1.1.0/24 to any\n\
            add allow ip from any to any keep-state\n";
        assert_eq!(text(&hit), expected);
    }
}
