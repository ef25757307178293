//! Sets of nftables, in nft's own language.

use super::{EntryKind, Kind, LAB_OUTSIDE, RuleSet, TEST_NETWORKS};
use std::io::{Result, Write};

/// Words for IPv4 and IPv6 in an address, as a set's type, and as its name.
const ADDRESS: [&str; 2] = ["ip", "ip6"];
const TYPE: [&str; 2] = ["ipv4_addr", "ipv6_addr"];
const SETS: [&str; 2] = ["entries4", "entries6"];

/// Only rules that drop have counters: a counter on the path would add to the measured cost. The first two lines replace an
/// existing set: without them nft adds to it.
pub(super) fn write(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    out.write_all(b"table inet linerate\ndelete table inet linerate\ntable inet linerate {\n")?;
    let filters = set.kind != Kind::Nat || set.table.is_some() || set.rules_before > 0;
    if filters {
        out.write_all(b"  counter dropped { }\n")?;
    }
    for version in set.versions().filter(|_| set.table.is_some()) {
        elements(set, version, out)?;
    }
    if filters {
        forward(set, out)?;
    }
    if set.kind == Kind::Nat {
        postrouting(set, out)?;
    }
    out.write_all(b"}\n")
}

/// Networks are intervals to nft, in a tree; hosts are in a hash.
fn elements(set: &RuleSet, version: usize, out: &mut impl Write) -> Result<()> {
    write!(out, "  set {} {{\n    type {}\n", SETS[version], TYPE[version])?;
    if set.entries == EntryKind::Networks {
        out.write_all(b"    flags interval\n")?;
    }
    let mut any = false;
    for entry in set.table_of(version) {
        write!(out, "{}{entry}", if any { ",\n      " } else { "    elements = {\n      " })?;
        any = true;
    }
    out.write_all(if any { b"\n    }\n  }\n" } else { b"  }\n" })
}

fn forward(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    out.write_all(b"  chain forward {\n    type filter hook forward priority filter; policy accept;\n")?;
    if set.kind != Kind::Stateless {
        out.write_all(b"    ct state established,related accept\n")?;
    }
    if set.table.is_some() {
        let verdict = if set.hit { "accept" } else { "counter name dropped drop" };
        for version in set.versions() {
            writeln!(out, "    {} saddr @{} {verdict}", ADDRESS[version], SETS[version])?;
        }
    }
    for entry in set.all_rules() {
        writeln!(out, "    {} saddr {entry} drop", ADDRESS[usize::from(entry.is_v6())])?;
    }
    if set.kind != Kind::Nat {
        let new = if set.kind == Kind::Stateful { " ct state new" } else { "" };
        for version in set.versions() {
            writeln!(out, "    {} daddr {}{new} accept", ADDRESS[version], TEST_NETWORKS[version])?;
        }
        out.write_all(b"    counter name dropped drop\n")?;
    }
    out.write_all(b"  }\n")
}

fn postrouting(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    out.write_all(b"  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n")?;
    let interface = set.interface.as_deref().unwrap_or(LAB_OUTSIDE);
    let only = match (set.families().has_v4(), set.families().has_v6()) {
        (true, false) => "meta nfproto ipv4 ",
        (false, true) => "meta nfproto ipv6 ",
        _ => "",
    };
    writeln!(out, "    {only}oifname \"{interface}\" masquerade\n  }}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::super::{Families, Firewall};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet::new(Firewall::Nftables, kind)
    }

    const REPLACE: &str = "table inet linerate\ndelete table inet linerate\n";

    #[test]
    fn minimal_sets() {
        let stateless = "table inet linerate {
  counter dropped { }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 198.18.0.0/15 accept
    ip6 daddr 2001:2::/48 accept
    counter name dropped drop
  }
}
";
        assert_eq!(text(&set(Kind::Stateless)), format!("{REPLACE}{stateless}"));
        let stateful = stateless
            .replace("    ip daddr", "    ct state established,related accept\n    ip daddr")
            .replace("/15 accept", "/15 ct state new accept")
            .replace("/48 accept", "/48 ct state new accept");
        assert_eq!(text(&set(Kind::Stateful)), format!("{REPLACE}{stateful}"));
        let nat = "table inet linerate {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname \"out*\" masquerade
  }
}
";
        assert_eq!(text(&set(Kind::Nat)), format!("{REPLACE}{nat}"));
    }

    #[test]
    fn one_version_and_another_interface() {
        let nat =
            RuleSet { families: Some(Families::Ipv6), interface: Some("eth1".into()), ..set(Kind::Nat) };
        assert!(text(&nat).contains("    meta nfproto ipv6 oifname \"eth1\" masquerade\n"));
        let v4 = RuleSet { families: Some(Families::Ipv4), ..set(Kind::Stateless) };
        assert!(!text(&v4).contains("ip6"));
    }

    #[test]
    fn rules_and_tables_stand_before_the_last_rules() {
        let all = RuleSet {
            families: Some(Families::Ipv4),
            rules_before: 2,
            table: Some(2),
            ..set(Kind::Stateful)
        };
        let expected = "table inet linerate {
  counter dropped { }
  set entries4 {
    type ipv4_addr
    flags interval
    elements = {
      1.1.1.0/24,
      1.1.2.0/24
    }
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ip saddr @entries4 counter name dropped drop
    ip saddr 1.1.1.0/24 drop
    ip saddr 1.1.2.0/24 drop
    ip daddr 198.18.0.0/15 ct state new accept
    counter name dropped drop
  }
}
";
        assert_eq!(text(&all), format!("{REPLACE}{expected}"));
        let hit = RuleSet { hit: true, ..all.clone() };
        assert!(text(&hit).contains("1.1.1.0/24,\n      198.18.0.0/15\n    }"));
        assert!(text(&hit).contains("    ip saddr @entries4 accept\n"));
        let hosts = RuleSet { entries: EntryKind::Hosts, table: Some(0), ..all };
        assert!(text(&hosts).contains("  set entries4 {\n    type ipv4_addr\n  }\n"));
        let nat = RuleSet { kind: Kind::Nat, ..hosts };
        assert!(text(&nat).contains("policy accept;\n    ct state established,related accept\n"));
        assert!(text(&nat).contains("    ip saddr 1.1.2.1 drop\n  }\n  chain postrouting {\n"));
    }
}
