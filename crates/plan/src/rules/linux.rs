//! Rule sets of Linux: nftables in nft's own language, and the input of iptables-restore, ip6tables-restore and `ipset restore`.
//!
//! One text of iptables is for both versions of IP: each program skips lines of the other, which begin with -4 or -6 (iptables(8)).

use super::{EntryKind, Families, INSIDE_NETWORKS, Kind, LAB_OUTSIDE, RuleSet, TEST_NETWORKS};
use std::io::{Result, Write};

/// Words for IPv4 and IPv6 in an address, as a set's type, and as its name.
const ADDRESS: [&str; 2] = ["ip", "ip6"];
const TYPE: [&str; 2] = ["ipv4_addr", "ipv6_addr"];
const NFT_SETS: [&str; 2] = ["entries4", "entries6"];

/// A table of its own for each IP version, as iptables has them: in a table `inet`, nft puts a check of the version in front of each
/// rule with an address. Only rules that drop have counters: a counter on the path would add to the measured cost. The first lines
/// replace an existing set of either version: without them nft adds to it.
pub(super) fn nftables(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    for table in ADDRESS {
        write!(
            out,
            "table {table} linerate\ndelete table {table} linerate\n"
        )?;
    }
    let filters =
        set.kind != Kind::Nat || set.flow_table || set.table.is_some() || set.rules_before > 0;
    for version in set.versions() {
        writeln!(out, "table {} linerate {{", ADDRESS[version])?;
        if filters {
            out.write_all(b"  counter dropped { }\n")?;
            if set.table.is_some() {
                elements(set, version, out)?;
            }
            flow_table(set, out)?;
            forward(set, version, out)?;
        }
        if set.kind == Kind::Nat {
            postrouting(set, out)?;
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}

/// Networks are intervals to nft, in a tree; hosts are in a hash.
fn elements(set: &RuleSet, version: usize, out: &mut impl Write) -> Result<()> {
    write!(
        out,
        "  set {} {{\n    type {}\n",
        NFT_SETS[version], TYPE[version]
    )?;
    if set.entries == EntryKind::Networks {
        out.write_all(b"    flags interval\n")?;
    }
    let mut any = false;
    for entry in set.table_of(version) {
        write!(
            out,
            "{}{entry}",
            if any {
                ",\n      "
            } else {
                "    elements = {\n      "
            }
        )?;
        any = true;
    }
    out.write_all(if any { b"\n    }\n  }\n" } else { b"  }\n" })
}

/// Frames of its connections leave where they arrive, before routing and rules.
fn flow_table(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let (Some(inside), Some(outside)) = (&set.inside, &set.interface) else {
        return Ok(());
    };
    writeln!(
        out,
        "  flowtable fast {{\n    hook ingress priority filter\n    devices = {{ \"{inside}\", \"{outside}\" }}\n  }}"
    )
}

fn forward(set: &RuleSet, version: usize, out: &mut impl Write) -> Result<()> {
    let address = ADDRESS[version];
    out.write_all(
        b"  chain forward {\n    type filter hook forward priority filter; policy accept;\n",
    )?;
    if set.flow_table {
        out.write_all(b"    ct state established flow add @fast\n")?;
    }
    if set.kind != Kind::Stateless {
        out.write_all(b"    ct state established,related accept\n")?;
    }
    if set.table.is_some() {
        let verdict = if set.hit {
            "accept"
        } else {
            "counter name dropped drop"
        };
        writeln!(out, "    {address} saddr @{} {verdict}", NFT_SETS[version])?;
    }
    for entry in set.misses(set.rules_before, version) {
        writeln!(out, "    {address} saddr {entry} drop")?;
    }
    if set.kind != Kind::Nat {
        let new = if set.kind == Kind::Stateful {
            " ct state new"
        } else {
            ""
        };
        writeln!(
            out,
            "    {address} daddr {}{new} accept\n    counter name dropped drop",
            TEST_NETWORKS[version]
        )?;
    }
    out.write_all(b"  }\n")
}

fn postrouting(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let interface = set.interface.as_deref().unwrap_or(LAB_OUTSIDE);
    out.write_all(
        b"  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n",
    )?;
    writeln!(out, "    oifname \"{interface}\" masquerade\n  }}")
}

/// The ipsets, of IPv4 and IPv6.
const IPSETS: [&str; 2] = ["linerate4", "linerate6"];

/// The IP versions of the set: index of IPv4 or IPv6, and the start of its lines.
fn versions(set: &RuleSet) -> impl Iterator<Item = (usize, &'static str)> + Clone {
    let marks = if set.families() == Families::Both {
        ["-4 ", "-6 "]
    } else {
        ["", ""]
    };
    set.versions().map(move |version| (version, marks[version]))
}

pub(super) fn iptables(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    if set.kind == Kind::Nat {
        translation(set, out)?;
    }
    out.write_all(b"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n")?;
    if set.kind != Kind::Stateless {
        out.write_all(b"-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n")?;
    }
    if set.table.is_some() {
        let verdict = if set.hit { "ACCEPT" } else { "DROP" };
        for (version, mark) in versions(set) {
            let name = IPSETS[version];
            writeln!(
                out,
                "{mark}-A FORWARD -m set --match-set {name} src -j {verdict}"
            )?;
        }
    }
    let marked = set.families() == Families::Both;
    for entry in set.all_rules() {
        let mark = match (marked, entry.address.is_ipv6()) {
            (false, _) => "",
            (true, false) => "-4 ",
            (true, true) => "-6 ",
        };
        writeln!(out, "{mark}-A FORWARD -s {entry} -j DROP")?;
    }
    last_rules(set, out)?;
    out.write_all(b"COMMIT\n")
}

fn translation(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    let interface = set
        .interface
        .as_deref()
        .unwrap_or(LAB_OUTSIDE)
        .replace('*', "+");
    out.write_all(b"*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")?;
    for (version, mark) in versions(set) {
        let inside = INSIDE_NETWORKS[version];
        writeln!(
            out,
            "{mark}-A POSTROUTING -s {inside} -o {interface} -j MASQUERADE"
        )?;
    }
    out.write_all(b"COMMIT\n")
}

/// Translation lets everything else pass, as in figure 11 of "Measure Twice, Code Once".
fn last_rules(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    if set.kind == Kind::Nat {
        return out.write_all(b"-A FORWARD -j ACCEPT\n");
    }
    let new = if set.kind == Kind::Stateful {
        " -m conntrack --ctstate NEW"
    } else {
        ""
    };
    for (version, mark) in versions(set) {
        writeln!(
            out,
            "{mark}-A FORWARD -d {}{new} -j ACCEPT",
            TEST_NETWORKS[version]
        )?;
    }
    out.write_all(b"-A FORWARD -j DROP\n")
}

pub(super) fn write_ipset(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    // Without maxelem, a set takes 65,536 entries.
    let room = set.table.unwrap_or(0).max(1);
    let kind = match set.entries {
        EntryKind::Networks => "hash:net",
        EntryKind::Hosts => "hash:ip",
    };
    for (version, _) in versions(set) {
        let family = ["inet", "inet6"][version];
        writeln!(
            out,
            "create {} {kind} family {family} maxelem {room}",
            IPSETS[version]
        )?;
    }
    for entry in set.versions().flat_map(|version| set.table_of(version)) {
        writeln!(
            out,
            "add {} {entry}",
            IPSETS[usize::from(entry.address.is_ipv6())]
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::super::{Families, Firewall};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet::new(Firewall::Nftables, kind)
    }

    const REPLACE: &str = "table ip linerate\ndelete table ip linerate\n\
        table ip6 linerate\ndelete table ip6 linerate\n";

    /// Both tables of a set, of the one for IPv4.
    fn both(v4: &str) -> String {
        let v6 = v4.replace("ip ", "ip6 ");
        let v6 = v6.replace("198.18.0.0/15", "2001:2::/48");
        format!("{REPLACE}{v4}{v6}")
    }

    /// Each table is of one IP version: in a table `inet`, nft checks the version in each rule with an address, iptables never.
    #[test]
    fn minimal_sets() {
        let stateless = "table ip linerate {
  counter dropped { }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 198.18.0.0/15 accept
    counter name dropped drop
  }
}
";
        assert_eq!(text(&set(Kind::Stateless)), both(stateless));
        let stateful = stateless
            .replace(
                "    ip daddr",
                "    ct state established,related accept\n    ip daddr",
            )
            .replace("/15 accept", "/15 ct state new accept");
        assert_eq!(text(&set(Kind::Stateful)), both(&stateful));
        let nat = "table ip linerate {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname \"out*\" masquerade
  }
}
";
        assert_eq!(text(&set(Kind::Nat)), both(nat));
    }

    #[test]
    fn one_version_and_another_interface() {
        let nat = RuleSet {
            families: Some(Families::Ipv6),
            interface: Some("eth1".into()),
            ..set(Kind::Nat)
        };
        let nat = text(&nat);
        assert!(nat.contains("table ip6 linerate {\n") && !nat.contains("table ip linerate {"));
        assert!(nat.contains("    oifname \"eth1\" masquerade\n"), "{nat}");
        let v4 = RuleSet {
            families: Some(Families::Ipv4),
            ..set(Kind::Stateless)
        };
        assert!(!text(&v4).contains("table ip6 linerate {"));
    }

    #[test]
    fn flow_tables_take_established_connections() {
        let fast = RuleSet {
            families: Some(Families::Ipv4),
            flow_table: true,
            inside: Some("in0".into()),
            interface: Some("out0".into()),
            ..set(Kind::Stateful)
        };
        let table = "  flowtable fast {
    hook ingress priority filter
    devices = { \"in0\", \"out0\" }
  }
";
        let slow = text(&RuleSet {
            flow_table: false,
            inside: None,
            interface: None,
            ..fast.clone()
        });
        let expected = slow
            .replace("  chain forward", &format!("{table}  chain forward"))
            .replace(
                "    ct state established,",
                "    ct state established flow add @fast\n    ct state established,",
            );
        assert_eq!(text(&fast), expected);
        let nat = text(&RuleSet {
            kind: Kind::Nat,
            ..fast.clone()
        });
        let lines = ["flow add @fast\n", "oifname \"out0\" masquerade\n", table];
        assert!(lines.iter().all(|line| nat.contains(line)), "{nat}");
        for (wrong, of) in [
            (
                RuleSet {
                    kind: Kind::Stateless,
                    ..fast.clone()
                },
                "flow-table",
            ),
            (
                RuleSet {
                    firewall: Firewall::Iptables,
                    ..fast.clone()
                },
                "flow-table",
            ),
            (
                RuleSet {
                    inside: None,
                    ..fast.clone()
                },
                "interface",
            ),
            (
                RuleSet {
                    interface: Some("out*".into()),
                    ..fast
                },
                "interface",
            ),
        ] {
            assert_eq!(wrong.faults()[0].subject.as_deref(), Some(of));
        }
    }

    #[test]
    fn rules_and_tables_stand_before_the_last_rules() {
        let all = RuleSet {
            families: Some(Families::Ipv4),
            rules_before: 2,
            table: Some(2),
            ..set(Kind::Stateful)
        };
        let expected = "table ip linerate {
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
        let hit = RuleSet {
            hit: true,
            ..all.clone()
        };
        assert!(text(&hit).contains("1.1.1.0/24,\n      198.18.0.0/15\n    }"));
        assert!(text(&hit).contains("    ip saddr @entries4 accept\n"));
        let hosts = RuleSet {
            entries: EntryKind::Hosts,
            table: Some(0),
            ..all
        };
        assert!(text(&hosts).contains("  set entries4 {\n    type ipv4_addr\n  }\n"));
        let nat = RuleSet {
            kind: Kind::Nat,
            ..hosts
        };
        assert!(text(&nat).contains("policy accept;\n    ct state established,related accept\n"));
        assert!(text(&nat).contains("    ip saddr 1.1.2.1 drop\n  }\n  chain postrouting {\n"));
    }
}

#[cfg(test)]
mod iptables_tests {
    use super::super::tests::{part, text};
    use super::super::{Firewall, Part};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet::new(Firewall::Iptables, kind)
    }

    const CHAINS: &str =
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n";

    #[test]
    fn filters_for_both_versions_and_for_one() {
        let stateless = format!(
            "{CHAINS}-4 -A FORWARD -d 198.18.0.0/15 -j ACCEPT\n-6 -A FORWARD -d 2001:2::/48 -j ACCEPT\n\
             -A FORWARD -j DROP\nCOMMIT\n"
        );
        assert_eq!(text(&set(Kind::Stateless)), stateless);
        let stateful = format!(
            "{CHAINS}-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n\
             -A FORWARD -s 2001:db8:0:1::/64 -j DROP\n\
             -A FORWARD -d 2001:2::/48 -m conntrack --ctstate NEW -j ACCEPT\n-A FORWARD -j DROP\nCOMMIT\n"
        );
        let v6 = RuleSet {
            families: Some(Families::Ipv6),
            rules_before: 1,
            ..set(Kind::Stateful)
        };
        assert_eq!(text(&v6), stateful);
    }

    #[test]
    fn translation_as_the_paper_has_it() {
        let nat = RuleSet {
            families: Some(Families::Ipv4),
            interface: Some("enp4s0f0".into()),
            ..set(Kind::Nat)
        };
        let rules: Vec<_> = text(&nat)
            .lines()
            .filter(|l| l.starts_with("-A"))
            .map(String::from)
            .collect();
        let paper = [
            "-A POSTROUTING -s 198.18.0.0/16 -o enp4s0f0 -j MASQUERADE",
            "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-A FORWARD -j ACCEPT",
        ];
        assert_eq!(rules, paper);
        assert!(
            text(&set(Kind::Nat))
                .contains("-6 -A POSTROUTING -s 2001:2::/49 -o out+ -j MASQUERADE\n")
        );
    }

    #[test]
    fn tables_are_ipsets() {
        let table = RuleSet {
            table: Some(2),
            hit: true,
            ..set(Kind::Stateless)
        };
        let ipset = "create linerate4 hash:net family inet maxelem 2\n\
            create linerate6 hash:net family inet6 maxelem 2\n\
            add linerate4 1.1.1.0/24\nadd linerate4 198.18.0.0/15\n\
            add linerate6 2001:db8:0:1::/64\nadd linerate6 2001:2::/48\n";
        assert_eq!(part(&table, Part::Ipset), ipset);
        assert!(
            text(&table).contains("-6 -A FORWARD -m set --match-set linerate6 src -j ACCEPT\n")
        );
        let hosts = RuleSet {
            families: Some(Families::Ipv4),
            entries: EntryKind::Hosts,
            hit: false,
            ..table
        };
        let ipset = "create linerate4 hash:ip family inet maxelem 2\nadd linerate4 1.1.1.1\nadd linerate4 1.1.2.1\n";
        assert_eq!(part(&hosts, Part::Ipset), ipset);
        assert!(text(&hosts).contains("\n-A FORWARD -m set --match-set linerate4 src -j DROP\n"));
    }
}
