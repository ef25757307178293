//! Rule sets: loaded, exchanged on a standing lane, with their counts of drops; and loaders that misbehave.

use super::bench::{Frames, ask, built_in, lab, refusal, send};
use linerate_linux::lab::Setup;
use linerate_linux::lab::collectors::rules;
use linerate_linux::net::conntrack;
use linerate_linux::process::{Input, Job};
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::record::RulesPassed;
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::{Dut, Settings};
use linerate_wire::Family;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn nft(text: &str) -> Job {
    Job::new("nft", &["-f", "-"]).with_input(Input::text(text))
}

fn iptables(flavour: &str, text: &str) -> Job {
    Job::new(format!("iptables-{flavour}-restore"), &[]).with_input(Input::text(text))
}

fn with_rules(name: &str, rules: Vec<Job>) -> Setup {
    Setup {
        name: name.into(),
        rules,
        ..Setup::of(Dut::Forwarding)
    }
}

/// Drops the frames to one of the destinations of the traffic below.
const NFT_DROPS: &str = "table inet linerate {
  counter dropped { }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 198.19.10.1 counter name dropped drop
  }
}
";

const IPTABLES_DROPS: &str = "*filter
:FORWARD ACCEPT [0:0]
:OURS - [0:0]
-A FORWARD -j OURS
-A OURS -d 198.19.10.1 -j DROP
COMMIT
";

const IPTABLES_POLICY: &str = "*filter
:FORWARD DROP [0:0]
-A FORWARD -d 198.19.10.1 -j ACCEPT
COMMIT
";

/// 1,000 frames in 100 flows to 5 destinations: as many to each.
fn to_first_destination(shown: &super::bench::Shown) -> u64 {
    assert!(
        shown.account.balances(&shown.sent, &shown.received),
        "{:?}",
        shown.account
    );
    shown.dropped()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn drops_are_located_whatever_the_tool() {
    let cases = [
        ("nft", vec![nft(NFT_DROPS)], "counter dropped"),
        (
            "legacy",
            vec![iptables("legacy", IPTABLES_DROPS)],
            "rules and policies",
        ),
        (
            "iptables-nft",
            vec![iptables("nft", IPTABLES_DROPS)],
            "rules and policies",
        ),
        (
            "policy",
            vec![iptables("legacy", IPTABLES_POLICY)],
            "rules and policies",
        ),
    ];
    for (name, rules, place) in cases {
        let lab = lab(&with_rules(name, rules));
        let shown = send(&lab, Frames::of(Family::V4));
        let lost = to_first_destination(&shown);
        assert!(lost > 0 && lost < 1000, "{name}: {lost}");
        // The kernel may report over IPv6 that an interface came up, which the rules drop as well.
        let located = shown.lost("DUT: dropped by the rule set");
        assert!(
            (lost..=lost + 1).contains(&located),
            "{name}: {lost} {:?}",
            shown.account.losses
        );
        let named = shown
            .account
            .losses
            .iter()
            .any(|loss| loss.place.contains(place));
        assert!(named, "{name}: {:?}", shown.account.losses);
    }
}

/// Frames pass four rules of the chain and one in a chain of its own. The last rule is never reached.
const OWN_NFT: &str = "table ip own {
  chain one { ip daddr 198.19.10.77 counter drop; }
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname \"in0\" ip daddr 198.19.10.99 log drop
    ip saddr { 192.0.2.1, 192.0.2.2 } drop
    jump one
    iifname \"in0\" oifname \"out0\" counter accept comment \"the way, no { block\"
    counter log drop
  }
}
";

const OWN_IPTABLES: &str = "*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:one - [0:0]
-A FORWARD -i in0 -d 198.19.10.99/32 -j LOG
-A FORWARD -s 192.0.2.1/32 -j DROP
-A FORWARD -j one
-A FORWARD -i in0 -o out0 -m comment --comment \"the way\" -j ACCEPT
-A FORWARD -j LOG
-A one -d 198.19.10.77/32 -j DROP
COMMIT
";

/// A listing without comments, which have the time.
fn undated(listing: &str) -> String {
    let kept = listing.lines().filter(|line| !line.starts_with('#'));
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn the_rules_that_frames_pass_are_counted_and_stay() {
    for (text, list) in [
        (OWN_NFT, &["nft", "-s", "list", "ruleset"][..]),
        (OWN_IPTABLES, &["iptables-save"]),
    ] {
        let file = RuleFile::read("own", text, None, &BTreeMap::new()).unwrap();
        let settings = Settings {
            rule_file: Some(file),
            ..Settings::default()
        };
        let setup = Setup::from_settings("own", 0, &settings, &[Family::V4]).unwrap();
        let lab = lab(&setup);
        let listed = || undated(&ask(&lab, list[0], &list[1..]));
        let before = listed();
        let mut collector = rules(&lab.lanes[0]).unwrap();
        collector.before().unwrap();
        assert_ne!(listed(), before);
        let shown = send(&lab, Frames::of(Family::V4));
        shown.is_whole("frames pass rules with counters");
        let found = collector.after().unwrap();
        // 1,000 frames pass four rules, and the one in the chain of its own.
        let passed = RulesPassed {
            looks: 5_000,
            rules: 6,
            reached: 5,
            logging: 1_000,
            ..RulesPassed::default()
        };
        assert_eq!(found, [Artefact::Rules(passed)], "{text}");
        assert_eq!(listed(), before);
        send(&lab, Frames::of(Family::V4)).is_whole("the rules as before");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn rule_sets_are_exchanged_on_a_standing_lane() {
    let mut lab = lab(&built_in("nft-stateful"));
    let frames = Frames::of(Family::V4);
    send(&lab, frames).is_whole("stateful");
    let states = |lab: &linerate_linux::lab::EmbeddedLab| {
        conntrack::count(&lab.lanes[0].dut.as_ref().unwrap().namespace).unwrap()
    };
    assert!(states(&lab) >= 100, "{}", states(&lab));
    let steps: [(&str, Vec<Job>, bool, bool); 6] = [
        (
            "legacy",
            vec![iptables("legacy", IPTABLES_DROPS)],
            false,
            true,
        ),
        ("none", vec![], false, false),
        (
            "iptables-nft",
            vec![iptables("nft", IPTABLES_DROPS)],
            false,
            true,
        ),
        ("nft", vec![nft(NFT_DROPS)], false, true),
        ("nat", built_in("nat").rules, true, false),
        (
            "policy",
            vec![iptables("legacy", IPTABLES_POLICY)],
            false,
            true,
        ),
    ];
    for (name, rules, tracks, drops) in steps {
        replace_rules(&mut lab, rules, tracks);
        assert_eq!(states(&lab), 0, "{name}: states of the old rules are left");
        let shown = send(&lab, frames);
        assert_eq!(
            shown.dropped() > 0,
            drops,
            "{name}: {:?}",
            shown.account.losses
        );
        assert_eq!(
            shown.lost("inside the DUT"),
            0,
            "{name}: {:?}",
            shown.account.losses
        );
    }
    replace_rules(&mut lab, vec![], false);
    assert_eq!(ask(&lab, "nft", &["list", "ruleset"]).trim(), "");
    assert!(!ask(&lab, "iptables-legacy-save", &[]).contains("-A "));
    send(&lab, frames).is_whole("without rules again");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_setup_that_differs_in_rules_and_sysctls_takes_over_a_lane() {
    let plain = built_in("forwarding");
    let mut other = built_in("nft-stateless");
    other
        .settings
        .sysctls
        .insert("net.ipv4.ip_early_demux".into(), "0".into());
    let mut lab = lab(&plain);
    let demux = |lab: &linerate_linux::lab::EmbeddedLab| {
        ask(lab, "cat", &["/proc/sys/net/ipv4/ip_early_demux"])
    };
    assert_eq!(demux(&lab), "1\n");
    lab.lanes[0].exchange(&other).unwrap();
    assert_eq!(demux(&lab), "0\n");
    assert!(ask(&lab, "nft", &["list", "ruleset"]).contains("linerate"));
    assert_eq!(lab.lanes[0].setup.name, "nft-stateless");
    lab.lanes[0].exchange(&plain).unwrap();
    assert_eq!(demux(&lab), "1\n");
    assert_eq!(ask(&lab, "nft", &["list", "ruleset"]).trim(), "");
    let refused = lab.lanes[0]
        .exchange(&Setup::of(Dut::Bridge))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a lane of its own"), "{refused}");
    let mut host = plain.clone();
    host.settings
        .sysctls
        .insert("kernel.panic".into(), "77".into());
    let refused = lab.lanes[0].exchange(&host).unwrap_err().to_string();
    assert!(refused.contains("a lab of its own"), "{refused}");
}

/// Exchanges the rule set of the lane.
fn replace_rules(lab: &mut linerate_linux::lab::EmbeddedLab, rules: Vec<Job>, tracks: bool) {
    let lane = &mut lab.lanes[0];
    let setup = Setup {
        rules,
        tracks,
        ..lane.setup.clone()
    };
    lane.exchange(&setup).unwrap();
}

/// The rule sets of plans are loaded by the real tools, let every frame pass, and are removed again.
#[test]
#[ignore = "needs root: run by make test as root"]
fn rule_sets_of_plans_load_pass_and_go() {
    for (tool, filter, before, table) in [
        (Firewall::Nftables, Kind::Stateless, 20, Some(50)),
        (Firewall::Nftables, Kind::Stateful, 0, None),
        (Firewall::Nftables, Kind::Nat, 3, None),
        (Firewall::Iptables, Kind::Stateless, 20, None),
        (Firewall::Iptables, Kind::Stateless, 0, Some(50)),
        (Firewall::Iptables, Kind::Stateful, 5, None),
        (Firewall::Iptables, Kind::Nat, 0, None),
    ] {
        let rules = RuleSet {
            rules_before: before,
            table,
            hash_sized: false,
            ..RuleSet::new(tool, filter)
        };
        let settings = Settings {
            rules: Some(rules),
            ..Settings::default()
        };
        let name = format!("{tool:?} {filter:?} {before} {table:?}");
        let families = [Family::V4, Family::V6];
        let setup = Setup::from_settings(&name, 0, &settings, &families).unwrap();
        assert_eq!(setup.lacking(), Vec::<String>::new());
        let mut lab = lab(&setup);
        for family in families {
            let frames = Frames {
                len_fcs: 90,
                count: 400,
                ..Frames::of(family)
            };
            send(&lab, frames).is_whole(&format!("{name} {family}"));
        }
        replace_rules(&mut lab, vec![], false);
        assert_eq!(ask(&lab, "nft", &["list", "ruleset"]).trim(), "", "{name}");
        if tool == Firewall::Iptables && table.is_some() {
            assert_eq!(ask(&lab, "ipset", &["list", "-n"]), "", "{name}");
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn large_sets_are_streamed_into_the_tool() {
    const ENTRIES: u32 = 20_000;
    let text = |out: &mut dyn std::io::Write| {
        writeln!(
            out,
            "table inet linerate {{ set many {{ type ipv4_addr; elements = {{ 10.0.0.0"
        )?;
        for n in 1..ENTRIES {
            writeln!(out, ", {}", std::net::Ipv4Addr::from(0x0a00_0000 + n))?;
        }
        writeln!(
            out,
            "}} }}; chain forward {{ type filter hook forward priority filter;"
        )?;
        writeln!(out, "ip daddr @many drop; accept; }}; }}")
    };
    let rules = Job::new("nft", &["-f", "-"])
        .with_input(Input::writer(text))
        .within(Duration::from_secs(120));
    let mut lab = lab(&with_rules("set", vec![rules]));
    send(&lab, Frames::of(Family::V4)).is_whole("a large set");
    replace_rules(&mut lab, vec![nft(NFT_DROPS)], false);
    assert!(!ask(&lab, "nft", &["list", "ruleset"]).contains("set many"));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn loaders_that_fail_or_hang_are_reported_and_ended() {
    let wrong = refusal(&with_rules("wrong", vec![nft("table inet x { chain")])).to_string();
    assert!(
        wrong.starts_with("cannot load the rule set of wrong: nft failed"),
        "{wrong}"
    );
    assert!(wrong.contains("syntax error"), "{wrong}");
    let missing = refusal(&with_rules(
        "missing",
        vec![Job::new("no-such-loader", &[])],
    ))
    .to_string();
    assert!(
        missing.contains("no-such-loader is not installed"),
        "{missing}"
    );
    let began = Instant::now();
    let hanging = Job::new("sleep", &["70"]).within(Duration::from_millis(300));
    let hung = refusal(&with_rules("hung", vec![hanging])).to_string();
    assert!(
        hung.contains("did not end within 0.3 s and was killed"),
        "{hung}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "it was waited for"
    );
}

/// The limit of states is the host's: without consent nothing is changed, and the message names the setting to change.
#[test]
#[ignore = "needs root: run by make test as root"]
fn alone_too_many_states_are_refused_with_what_to_set() {
    let _one = super::host::one_at_a_time();
    let limit = "/proc/sys/net/netfilter/nf_conntrack_max";
    let before = std::fs::read_to_string(limit).unwrap();
    let states: u64 = before.trim().parse::<u64>().unwrap() + 1;
    let setup = Setup {
        room: Some(states),
        ..built_in("nft-stateful")
    };
    let refused = refusal(&setup);
    assert!(
        matches!(refused, linerate_linux::Error::Refused(_)),
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .contains(&format!("nf_conntrack_max={}", states * 2)),
        "{refused}"
    );
    assert_eq!(std::fs::read_to_string(limit).unwrap(), before);
}
