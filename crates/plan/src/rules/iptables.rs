//! Input of iptables-restore and ip6tables-restore, and the ipsets of `ipset restore`.
//!
//! One text is for both: each program skips lines of the other, which begin with -4 or -6 (iptables(8)).

use super::{EntryKind, Families, INSIDE_NETWORKS, Kind, LAB_OUTSIDE, RuleSet, TEST_NETWORKS};
use std::io::{Result, Write};

/// The ipsets, of IPv4 and IPv6.
const SETS: [&str; 2] = ["linerate4", "linerate6"];

/// The IP versions of the set: index of IPv4 or IPv6, and the start of its lines.
fn versions(set: &RuleSet) -> impl Iterator<Item = (usize, &'static str)> + Clone {
    let marks = if set.families() == Families::Both { ["-4 ", "-6 "] } else { ["", ""] };
    set.versions().map(move |version| (version, marks[version]))
}

pub(super) fn write(set: &RuleSet, out: &mut impl Write) -> Result<()> {
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
            let name = SETS[version];
            writeln!(out, "{mark}-A FORWARD -m set --match-set {name} src -j {verdict}")?;
        }
    }
    let marked = set.families() == Families::Both;
    for entry in set.all_rules() {
        let mark = match (marked, entry.is_v6()) {
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
    let interface = set.interface.as_deref().unwrap_or(LAB_OUTSIDE).replace('*', "+");
    out.write_all(b"*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")?;
    for (version, mark) in versions(set) {
        let inside = INSIDE_NETWORKS[version];
        writeln!(out, "{mark}-A POSTROUTING -s {inside} -o {interface} -j MASQUERADE")?;
    }
    out.write_all(b"COMMIT\n")
}

/// Translation lets everything else pass, as in figure 11 of "Measure Twice, Code Once".
fn last_rules(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    if set.kind == Kind::Nat {
        return out.write_all(b"-A FORWARD -j ACCEPT\n");
    }
    let new = if set.kind == Kind::Stateful { " -m conntrack --ctstate NEW" } else { "" };
    for (version, mark) in versions(set) {
        writeln!(out, "{mark}-A FORWARD -d {}{new} -j ACCEPT", TEST_NETWORKS[version])?;
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
        writeln!(out, "create {} {kind} family {family} maxelem {room}", SETS[version])?;
    }
    for entry in set.versions().flat_map(|version| set.table_of(version)) {
        writeln!(out, "add {} {entry}", SETS[usize::from(entry.is_v6())])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{part, text};
    use super::super::{Firewall, Part};
    use super::*;

    fn set(kind: Kind) -> RuleSet {
        RuleSet::new(Firewall::Iptables, kind)
    }

    const CHAINS: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n";

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
        let v6 = RuleSet { families: Some(Families::Ipv6), rules_before: 1, ..set(Kind::Stateful) };
        assert_eq!(text(&v6), stateful);
    }

    #[test]
    fn translation_as_the_paper_has_it() {
        let nat =
            RuleSet { families: Some(Families::Ipv4), interface: Some("enp4s0f0".into()), ..set(Kind::Nat) };
        let rules: Vec<_> = text(&nat).lines().filter(|l| l.starts_with("-A")).map(String::from).collect();
        let paper = [
            "-A POSTROUTING -s 198.18.0.0/16 -o enp4s0f0 -j MASQUERADE",
            "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-A FORWARD -j ACCEPT",
        ];
        assert_eq!(rules, paper);
        assert!(text(&set(Kind::Nat)).contains("-6 -A POSTROUTING -s 2001:2::/49 -o out+ -j MASQUERADE\n"));
    }

    #[test]
    fn tables_are_ipsets() {
        let table = RuleSet { table: Some(2), hit: true, ..set(Kind::Stateless) };
        let ipset = "create linerate4 hash:net family inet maxelem 2\n\
            create linerate6 hash:net family inet6 maxelem 2\n\
            add linerate4 1.1.1.0/24\nadd linerate4 198.18.0.0/15\n\
            add linerate6 2001:db8:0:1::/64\nadd linerate6 2001:2::/48\n";
        assert_eq!(part(&table, Part::Ipset), ipset);
        assert!(text(&table).contains("-6 -A FORWARD -m set --match-set linerate6 src -j ACCEPT\n"));
        let hosts =
            RuleSet { families: Some(Families::Ipv4), entries: EntryKind::Hosts, hit: false, ..table };
        let ipset =
            "create linerate4 hash:ip family inet maxelem 2\nadd linerate4 1.1.1.1\nadd linerate4 1.1.2.1\n";
        assert_eq!(part(&hosts, Part::Ipset), ipset);
        assert!(text(&hosts).contains("\n-A FORWARD -m set --match-set linerate4 src -j DROP\n"));
    }
}
