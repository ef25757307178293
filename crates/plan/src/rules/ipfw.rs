//! Sets of ipfw: the archive's shell script, or the commands that one ipfw reads.

use super::{IpfwFormat, Kind, RuleSet};
use std::io::{Result, Write};

pub(super) fn write(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let script = set.ipfw_format == IpfwFormat::Script;
    // Start of each line, and the table's name, escaped for the shell.
    let (start, table) = if script { ("${fwcmd} ", "table\\(1\\)") } else { ("", "table(1)") };
    if script {
        out.write_all(b"fwcmd=\"/sbin/ipfw\"\n# Flush out the list before we begin.\n")?;
    }
    writeln!(out, "{start}-f flush")?;
    if set.table.is_some() {
        writeln!(out, "{start}table 1 create type addr")?;
        for entry in set.versions().flat_map(|version| set.table_of(version)) {
            writeln!(out, "{start}table 1 add {entry}")?;
        }
    }
    if set.kind == Kind::Nat {
        let interface = set.interface.as_deref().unwrap_or_default();
        writeln!(out, "{start}nat 1 config if {interface}")?;
    }
    let keep_state = if set.kind == Kind::Stateful { " keep-state" } else { "" };
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
    let number =
        if set.table.is_none() && set.rules_before == 0 && set.kind != Kind::Nat { "3000 " } else { "" };
    writeln!(out, "{start}add {number}allow ip from any to any{keep_state}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::super::{Families, Firewall};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet { ipfw_format: IpfwFormat::Commands, ..RuleSet::new(Firewall::Ipfw, kind) }
    }

    #[test]
    fn commands_need_no_shell() {
        let stateful = set(Kind::Stateful);
        assert_eq!(text(&stateful), "-f flush\nadd 3000 allow ip from any to any keep-state\n");
        let table = RuleSet { table: Some(2), families: Some(Families::Ipv6), ..set(Kind::Stateless) };
        let expected = "-f flush\ntable 1 create type addr\n\
            table 1 add 2001:db8:0:1::/64\ntable 1 add 2001:db8:0:2::/64\n\
            add deny ip from table(1) to any\nadd allow ip from any to any\n";
        assert_eq!(text(&table), expected);
    }

    #[test]
    fn translation() {
        let nat = RuleSet { interface: Some("ix0".into()), ..set(Kind::Nat) };
        let expected = "-f flush\nnat 1 config if ix0\nadd nat 1 ip from any to any via ix0\n\
            add allow ip from any to any\n";
        assert_eq!(text(&nat), expected);
    }

    #[test]
    fn hits_keep_states_where_the_set_does() {
        let hit = RuleSet { table: Some(1), hit: true, rules_before: 1, ..set(Kind::Stateful) };
        let expected = "-f flush\ntable 1 create type addr\ntable 1 add 198.18.0.0/15\n\
            add allow ip from table(1) to any keep-state\nadd deny ip from 1.1.1.0/24 to any\n\
            add allow ip from any to any keep-state\n";
        assert_eq!(text(&hit), expected);
    }
}
