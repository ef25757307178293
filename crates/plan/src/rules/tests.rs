//! Rule sets against the archive's, and properties of all sets.

use super::*;
use crate::names::Named;
use proptest::prelude::*;

pub(super) fn part(set: &RuleSet, part: Part) -> String {
    let mut out = Vec::new();
    set.write_part(part, &[], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(super) fn text(set: &RuleSet) -> String {
    part(set, Part::Rules)
}

fn minimal(firewall: Firewall, kind: Kind) -> RuleSet {
    RuleSet::new(firewall, kind)
}

fn with_rules(firewall: Firewall, rules: u32) -> RuleSet {
    RuleSet {
        rules_before: rules,
        ..minimal(firewall, Kind::Stateless)
    }
}

fn with_table(firewall: Firewall, entries: u32) -> RuleSet {
    RuleSet {
        table: Some(entries),
        ..minimal(firewall, Kind::Stateless)
    }
}

/// Files of the archive, byte for byte, as listed in testdata/rules/README.md, but for a slip that ipf refuses. Their sizes by name count the last rules as well.
#[test]
fn sets_of_the_archive() {
    macro_rules! archived {
        ($name:literal) => {
            include_str!(concat!("../../testdata/rules/", $name))
        };
    }
    let states = RuleSet {
        states: Some(4_000_000),
        ..minimal(Firewall::Pf, Kind::Stateful)
    };
    let ipf =
        archived!("ipf-stateful.rules").replacen("pass out proto udp", "pass in proto udp", 1);
    for (set, archived) in [
        (minimal(Firewall::Ipf, Kind::Stateful), &*ipf),
        (
            minimal(Firewall::Pf, Kind::Stateful),
            archived!("pf-stateful.conf"),
        ),
        (
            minimal(Firewall::Pf, Kind::Stateless),
            archived!("pf-stateless.conf"),
        ),
        (states, archived!("pf-4M-states.conf")),
        (
            with_rules(Firewall::Ipf, 8),
            archived!("ipf-10-rules.rules"),
        ),
        (
            with_rules(Firewall::Ipfw, 9),
            archived!("ipfw-10-rules.rules"),
        ),
        (with_rules(Firewall::Pf, 9), archived!("pf-10-rules.conf")),
        (
            with_table(Firewall::Ipfw, 9),
            archived!("ipfw-10-entries.rules"),
        ),
        (
            with_table(Firewall::Pf, 99),
            archived!("pf-100-entries.conf"),
        ),
    ] {
        assert_eq!(text(&set), archived, "{set}");
    }
}

/// The archive's large sets, by their length and their end.
#[test]
fn large_sets_of_the_archive() {
    let table = "}\nblock quick from <t>\npass no state\n";
    for (set, bytes, end) in [
        (
            with_rules(Firewall::Ipf, 998),
            39_525,
            "from 1.4.233.0/24 to any\npass out quick all\npass in quick all\n",
        ),
        (
            with_rules(Firewall::Ipfw, 999),
            45_645,
            "${fwcmd} add deny ip from 1.4.234.0/24 to any\n${fwcmd} add allow ip from any to any\n",
        ),
        (
            with_rules(Firewall::Pf, 999),
            30_567,
            "block from 1.4.234.0/24 to any\npass no state\n",
        ),
        (
            with_table(Firewall::Pf, 999),
            12_623,
            &format!(",1.4.234.0/24{table}"),
        ),
        (
            with_table(Firewall::Pf, 9_999),
            133_484,
            &format!(",1.40.54.0/24{table}"),
        ),
        (
            with_table(Firewall::Pf, 99_999),
            1_402_589,
            &format!(",2.138.39.0/24{table}"),
        ),
    ] {
        let text = text(&set);
        assert_eq!(text.len(), bytes, "{set}");
        assert!(text.ends_with(end), "{set}: {}", &text[text.len() - 100..]);
    }
}

/// Configuration sets 1, 2 and 6 of the 2018 paper as the archive writes them; it keeps them as text in its scripts.
#[test]
fn minimal_sets_of_the_paper() {
    let ipfw = "#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\n# Flush out the list before we begin.\n${fwcmd} -f flush\n\
        ${fwcmd} add 3000 allow ip from any to any";
    assert_eq!(
        text(&minimal(Firewall::Ipfw, Kind::Stateless)),
        format!("{ipfw}\n")
    );
    assert_eq!(
        text(&minimal(Firewall::Ipfw, Kind::Stateful)),
        format!("{ipfw} keep-state\n")
    );
    assert_eq!(
        text(&minimal(Firewall::Ipf, Kind::Stateless)),
        "pass out all\npass in all\n"
    );
}

#[test]
fn comments_come_first_but_for_the_line_that_names_the_shell() {
    let set = with_rules(Firewall::Ipfw, 1);
    let mut out = Vec::new();
    set.write_part(Part::Rules, &["one".into(), "two".into()], &mut out)
        .unwrap();
    let commented = String::from_utf8(out).unwrap();
    assert!(
        commented.starts_with("#!/bin/sh\n# one\n# two\nfwcmd="),
        "{commented}"
    );
    assert_eq!(commented.replace("# one\n# two\n", ""), text(&set));
}

#[test]
fn names() {
    let name = |set: RuleSet| set.to_string();
    assert_eq!(
        name(with_rules(Firewall::Nftables, 1000)),
        "nft-stateless+1000 rules"
    );
    assert_eq!(
        name(minimal(Firewall::OpenbsdPf, Kind::Stateful)),
        "openbsd-pf-stateful"
    );
    let all = RuleSet {
        families: Some(Families::Ipv6),
        rules_before: 5,
        table: Some(10),
        hit: true,
        seed: Some(7),
        states: Some(100),
        hash_sized: false,
        ..minimal(Firewall::Iptables, Kind::Stateful)
    };
    let expected =
        "iptables-stateful IPv6+5 rules+table of 10, hit, seed 7+100 states, hash not sized";
    assert_eq!(name(all), expected);
    let hosts = RuleSet {
        entries: EntryKind::Hosts,
        ..with_table(Firewall::Ipfw, 3)
    };
    assert_eq!(name(hosts), "ipfw-stateless+table of 3, hosts");
    for (firewall, name) in Firewall::all().zip(Firewall::names()) {
        assert_eq!(firewall.to_string(), *name);
    }
    assert!(
        Firewall::parse_name("nft", "a firewall")
            .unwrap_err()
            .contains("there are nftables, iptables, pf")
    );
    for (part, name) in Part::all().zip(Part::names()) {
        assert_eq!(part.to_string(), *name);
    }
}

#[test]
fn a_plan_embeds_them() {
    let read = |json: &str| serde_json::from_str::<RuleSet>(json);
    let short = read(r#"{"firewall": "openbsd-pf", "kind": "stateful"}"#).unwrap();
    assert_eq!(short, minimal(Firewall::OpenbsdPf, Kind::Stateful));
    let long = read(
        r#"{"firewall": "nftables", "kind": "nat", "families": "both", "rules-before": 3, "table": 4,
            "entries": "hosts", "seed": 5, "hit": true, "states": 6, "hash-sized": false, "interface": "eth0",
            "optimize": false, "ipfw-format": "commands"}"#,
    )
    .unwrap();
    assert_eq!(
        (long.rules_before, long.hash_sized, long.optimize),
        (3, false, false)
    );
    assert_eq!(
        serde_json::from_str::<RuleSet>(&serde_json::to_string(&long).unwrap()).unwrap(),
        long
    );
    let plan = "firewall = 'ipfw'\nkind = 'stateless'\ntable = 100_000\nipfw-format = 'commands'\n";
    let expected = RuleSet {
        ipfw_format: IpfwFormat::Commands,
        ..with_table(Firewall::Ipfw, 100_000)
    };
    assert_eq!(toml::from_str::<RuleSet>(plan).unwrap(), expected);
    for wrong in [
        r#"{"firewall": "nftables"}"#,
        r#"{"firewall": "nftables", "kind": "stateless", "tabel": 4}"#,
        r#"{"firewall": "nftables", "kind": "stateless", "table": -4}"#,
        r#"{"firewall": "iptable", "kind": "stateless"}"#,
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_is_not_written() {
    let faulty = with_table(Firewall::Ipf, 1);
    let mut out = Vec::new();
    let error = faulty.write(&mut out).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(
        error
            .to_string()
            .contains("ipf has no tables: ask for rules"),
        "{error}"
    );
    let none = with_table(Firewall::Nftables, 1)
        .write_part(Part::Ipset, &[], &mut out)
        .unwrap_err();
    assert!(none.to_string().contains("has an ipset"), "{none}");
    assert!(out.is_empty());
}

/// A writer with room for this number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let set = with_table(Firewall::Nftables, 100_000);
    for room in [0, 10, 1_000_000] {
        assert_eq!(
            set.write(&mut Full(room)).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
    let short = minimal(Firewall::Nftables, Kind::Stateless);
    assert!(short.write(&mut Full(0)).is_err() && short.write(&mut Full(10_000)).is_ok());
}

fn families() -> impl Strategy<Value = Option<Families>> {
    proptest::option::of(prop_oneof![
        Just(Families::Ipv4),
        Just(Families::Ipv6),
        Just(Families::Both)
    ])
}

prop_compose! {
    fn any_set()(
        firewall in 0usize..6, kind in 0usize..3, families in families(), rules_before in 0u32..50,
        table in proptest::option::of(0u32..50), hosts: bool, seed: Option<u64>, hit: bool,
        states in proptest::option::of(0u64..1_000_000), hash_sized: bool,
        interface in proptest::option::of("[a-z]{1,8}[0-9*]?"), inside in proptest::option::of("[a-z]{1,8}"), optimize: bool, commands: bool,
    ) -> RuleSet {
        RuleSet {
            firewall: Firewall::all().nth(firewall).unwrap(),
            kind: [Kind::Stateless, Kind::Stateful, Kind::Nat][kind],
            families, rules_before, table, seed, hit, states, hash_sized, optimize, address6: None,
            flow_table: inside.is_some(), inside, interface,
            entries: if hosts { EntryKind::Hosts } else { EntryKind::Networks },
            ipfw_format: if commands { IpfwFormat::Commands } else { IpfwFormat::Script },
        }
    }
}

/// A set without most faults: options that contradict others are left out.
fn sound_set() -> impl Strategy<Value = RuleSet> {
    any_set().prop_map(|mut set| {
        set.optimize |= !set.firewall.is_pf();
        if set.firewall != Firewall::Ipfw {
            set.ipfw_format = IpfwFormat::Script;
        }
        if set.firewall == Firewall::Ipf {
            (set.table, set.states) = (None, None);
        }
        set.states = set.states.filter(|_| set.kind != Kind::Stateless);
        set.flow_table &= set.firewall == Firewall::Nftables && set.kind != Kind::Stateless;
        set.hit &= set.table.is_some_and(|n| n > 0) && set.entries == EntryKind::Networks;
        set
    })
}

/// The entries and rules in a text: words with an address outside the test networks.
fn addresses(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "{},".contains(c));
    words
        .filter(|w| w.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|w| w.contains(['.', ':']))
        .collect()
}

/// Firewalls refuse a rule that they have already (ipf), or ignore it.
#[test]
fn no_rule_is_there_twice() {
    for firewall in Firewall::all() {
        for kind in [Kind::Stateless, Kind::Stateful, Kind::Nat] {
            let interface = Some("ix0".to_string()).filter(|_| kind == Kind::Nat);
            let set = RuleSet {
                rules_before: 3,
                interface,
                ..minimal(firewall, kind)
            };
            for set in [
                RuleSet {
                    rules_before: 0,
                    ..set.clone()
                },
                set,
            ] {
                if !set.faults().is_empty() {
                    continue;
                }
                let text = text(&set);
                // Chains of nftables, and files of iptables for both IP versions, have lines that look alike.
                if !firewall.is_linux() {
                    let mut rules: Vec<&str> = text.lines().collect();
                    rules.sort_unstable();
                    let all = rules.len();
                    rules.dedup();
                    assert_eq!(rules.len(), all, "{set}: {text}");
                }
            }
        }
    }
    let ipf = text(&minimal(Firewall::Ipf, Kind::Stateful));
    for way in ["pass in", "pass out"] {
        for proto in ["icmp", "udp", "tcp"] {
            let rules = ipf
                .lines()
                .filter(|line| line.starts_with(way) && line.contains(&format!("proto {proto} ")));
            assert_eq!(rules.count(), 1, "{way} {proto}: {ipf}");
        }
    }
}

proptest! {
    #[test]
    fn sets_with_faults_and_only_those_are_refused(set in any_set()) {
        let mut out = Vec::new();
        prop_assert_eq!(set.write(&mut out).is_ok(), set.faults().is_empty());
        prop_assert_eq!(out.is_empty(), !set.faults().is_empty());
    }

    #[test]
    fn every_entry_is_there_once_and_none_is_in_the_way(set in sound_set()) {
        prop_assume!(set.faults().is_empty());
        let rules = text(&set);
        prop_assert!(rules.is_ascii() && rules.ends_with('\n'));
        let tables = if set.has_ipset() { part(&set, Part::Ipset) } else { String::new() };
        let both = rules + &tables;
        let mut others = addresses(&both);
        others.retain(|address| !TEST_NETWORKS.contains(address) && !INSIDE_NETWORKS.contains(address));
        let versions = set.versions().count();
        let entries = set.table.map_or(0, |n| n as usize - usize::from(set.hit));
        prop_assert_eq!(others.len(), versions * (set.rules_before as usize + entries));
        // Rules and entries are counted or drawn alike: each address is there for a rule and for an entry, and no more.
        let different: std::collections::HashSet<&str> = others.iter().copied().collect();
        prop_assert_eq!(different.len(), versions * entries.max(set.rules_before as usize));
    }

    #[test]
    fn comments_change_nothing_else(set in sound_set()) {
        prop_assume!(set.faults().is_empty());
        for each in Part::all() {
            if each == Part::Ipset && !set.has_ipset() {
                continue;
            }
            let comments = set.comments(each);
            prop_assert!(comments.iter().all(|line| line.is_ascii() && !line.contains('\n')));
            let mut out = Vec::new();
            set.write_part(each, &comments, &mut out).unwrap();
            let commented = String::from_utf8(out).unwrap();
            let head: String = comments.iter().map(|line| format!("# {line}\n")).collect();
            prop_assert_eq!(commented.replacen(&head, "", 1), part(&set, each));
        }
    }
}

#[test]
fn tables_of_linux_are_hashes_of_addresses() {
    let rules = |firewall, table| RuleSet {
        rules_before: 1,
        table,
        ..RuleSet::new(firewall, Kind::Stateless)
    };
    let entries = |firewall, system, table| {
        rules(firewall, table)
            .for_frames(system, &[Family::V4], None)
            .entries
    };
    for firewall in [Firewall::Nftables, Firewall::Iptables] {
        assert_eq!(entries(firewall, System::Linux, Some(0)), EntryKind::Hosts);
        assert_eq!(entries(firewall, System::Linux, None), EntryKind::Networks);
    }
    for (firewall, system) in [
        (Firewall::Pf, System::FreeBsd),
        (Firewall::Ipfw, System::FreeBsd),
        (Firewall::Pf, System::OpenBsd),
    ] {
        assert_eq!(entries(firewall, system, Some(10)), EntryKind::Networks);
    }
}
