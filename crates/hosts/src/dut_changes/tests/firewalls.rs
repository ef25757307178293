//! Firewalls, their rules and their states: put on a host, and put back.

use super::*;
use linerate_plan::rules::own::RuleFile;

fn with_rules(system: System, firewall: Firewall, kind: Kind) -> Steps {
    let settings = Settings {
        rules: Some(RuleSet::new(firewall, kind)),
        ..Settings::default()
    };
    let target = target(system);
    let set = settings.rules.as_ref().unwrap().for_frames(
        system,
        &[Family::V4],
        Some([&target.inside.name, &target.outside.name]),
    );
    steps(&settings, Some(&set), &target).unwrap()
}

#[test]
fn firewalls_are_put_on_and_off() {
    assert_eq!(
        lines(&with_rules(System::FreeBsd, Firewall::Pf, Kind::Stateful)),
        [
            "ipfw off: sh / sh",
            "IP Filter off: sh / true",
            "module pf: kldload -n pf / sh 7 kldunload pf",
            "pf: sh on / sh back 198.18.0.0/16 198.19.0.0/16",
            "rule set by pfctl: pfctl -f - / stays",
            "states of the test networks killed: sh forget 198.18.0.0/16 198.19.0.0/16 / stays",
        ]
    );
    let accepts = "net.inet.ip.fw.default_to_accept";
    assert_eq!(
        lines(&with_rules(System::FreeBsd, Firewall::Ipfw, Kind::Nat)),
        [
            "pf: sh off / sh back 198.18.0.0/16 198.19.0.0/16".into(),
            "IP Filter off: sh / true".into(),
            format!("kenv {accepts}: kenv {accepts}=1 / sh {accepts}"),
            "ipfw: sh ipfw / sh 7 ipfw".into(),
            "ipfw_nat: sh ipfw_nat / sh 7 ipfw_nat".into(),
            "rule set by ipfw: ipfw -q /dev/stdin / ipfw -q -f flush".into(),
        ]
    );
    assert_eq!(
        lines(&with_rules(
            System::Linux,
            Firewall::Nftables,
            Kind::Stateless
        )),
        ["rule set by nft: nft -f - / sh"]
    );
    assert_eq!(
        lines(&with_rules(System::OpenBsd, Firewall::Pf, Kind::Stateless)),
        [
            "pf: sh on / sh back 198.18.0.0/16 198.19.0.0/16",
            "rule set by pfctl: pfctl -f - / stays",
            "states of the test networks killed: sh forget 198.18.0.0/16 198.19.0.0/16 / stays",
        ]
    );
}

#[test]
fn no_firewall_turns_off_whatever_runs_and_no_word_of_it_leaves_the_host_as_it_is() {
    let plain = Settings {
        no_firewall: true,
        ..Settings::default()
    };
    let pf = "pf: sh off / sh back 198.18.0.0/16 198.19.0.0/16";
    let wanted: [(System, &[&str]); 5] = [
        (System::OpenBsd, &[pf]),
        (System::OpnSense, &[pf, "ipfw off: sh / sh"]),
        (System::PfSense, &[pf, "ipfw off: sh / sh"]),
        (
            System::FreeBsd,
            &[pf, "ipfw off: sh / sh", "IP Filter off: sh / true"],
        ),
        (
            System::Linux,
            &[
                "rules of nftables: sh off / sh back",
                "rules of iptables: sh off ip / sh back ip",
                "rules of ip6tables: sh off ip6 / sh back ip6",
            ],
        ),
    ];
    for (system, lines_of) in wanted {
        let made = steps(&plain, None, &target(system)).unwrap();
        assert_eq!(lines(&made), lines_of, "{system}");
        // The change may cut linerate's own connection, and is read back.
        for step in &made.steps {
            assert!(
                step.cuts && step.check.as_ref().unwrap().is_met_by("off"),
                "{system}"
            );
            assert!(!step.check.as_ref().unwrap().is_met_by("on"), "{system}");
        }
        let silent = steps(&Settings::default(), None, &target(system)).unwrap();
        assert_eq!(silent, Steps::default(), "{system}");
        // A nested router has a network stack without rules.
        let nested = Settings {
            dut: Dut::Nested,
            ..plain.clone()
        };
        if let Ok(made) = steps(&nested, None, &target(system)) {
            let of = |step: &Step| {
                lines_of
                    .iter()
                    .any(|line| line.starts_with(&format!("{}:", step.what)))
            };
            assert!(!made.steps.iter().any(of), "{system}");
        }
    }
}

/// A router that has tracked no connection since it was booted has no such settings.
#[test]
fn connection_tracking_is_there_before_its_limits_are_read() {
    let mut rules = RuleSet::new(Firewall::Nftables, Kind::Stateful);
    rules.states = Some(1000);
    let steps = steps(&Settings::default(), Some(&rules), &target(System::Linux)).unwrap();
    let what: Vec<_> = steps.steps.iter().map(|step| step.what.as_str()).collect();
    assert_eq!(
        what[..2],
        [
            "connection tracking",
            "sysctl net.netfilter.nf_conntrack_max"
        ]
    );
}

#[test]
fn rule_files_of_users_are_loaded_and_the_host_s_rules_come_back() {
    let of = |system, text: &str| {
        let file = RuleFile::read("own.rules", text, None, &BTreeMap::new()).unwrap();
        let settings = Settings {
            rule_file: Some(file),
            ..Settings::default()
        };
        steps(&settings, None, &target(system)).unwrap()
    };
    let loaded = |steps: &Steps| match &steps.steps.last().unwrap().apply.input {
        Input::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let nft = of(
        System::Linux,
        "table ip t {\n chain c { iifname lan oifname wan ip saddr 10.0.0.0/8 accept; }\n}\n",
    );
    assert_eq!(lines(&nft), ["rule file own.rules by nft: nft -f - / sh"]);
    assert_eq!(
        loaded(&nft),
        "table ip t {\n chain c { iifname eth1 oifname eth2 ip saddr 198.18.0.0/16 accept; }\n}\n"
    );
    let iptables = of(
        System::Linux,
        "*raw\nCOMMIT\n*filter\n-A FORWARD -i a -o b -j ACCEPT\nCOMMIT\n",
    );
    let read = iptables.steps[0].read.as_ref().unwrap();
    assert_eq!(read.program.argv[4..], ["iptables", "filter", "raw"]);
    let pf = "ext=\"em0\"\npass out on $ext from 10.0.0.0/8 nat-to ($ext)\n";
    for system in [System::FreeBsd, System::OpenBsd] {
        let mut steps = of(system, pf);
        assert!(
            lines(&steps)
                .last()
                .unwrap()
                .starts_with("states of the test networks killed")
        );
        steps.steps.pop();
        let last = "rule file own.rules by pfctl, after two rules that pass linerate's ssh: sh file / stays";
        assert_eq!(lines(&steps).last().unwrap(), last);
        assert!(steps.steps.iter().any(|step| step.what == "pf"));
        assert!(
            loaded(&steps).starts_with("ext=\"ix1\""),
            "{}",
            loaded(&steps)
        );
    }
    let ipfw = of(
        System::FreeBsd,
        "#!/bin/sh\nipfw -q add 1 nat 1 config if em0\n",
    );
    let whats: Vec<&str> = ipfw.steps.iter().map(|step| step.what.as_str()).collect();
    assert_eq!(
        whats,
        [
            "pf",
            "IP Filter off",
            "kenv net.inet.ip.fw.default_to_accept",
            "ipfw",
            "ipfw_nat",
            "rule file own.rules by sh"
        ]
    );
}

/// linerate's own connection has a state, too.
#[test]
fn pf_forgets_the_states_of_the_test_networks_alone() {
    let networks = ["198.18.0.0/16", "2001:2:0:8000::/49"].map(String::from);
    let program = forget(Firewall::OpenbsdPf, networks.to_vec()).unwrap();
    assert_eq!(
        program.argv[4..],
        ["forget", "198.18.0.0/16", "2001:2:0:8000::/49"]
    );
    assert!(!program.argv.iter().any(|word| word.contains("-F states")));
    assert_eq!(forget(Firewall::Ipfw, Vec::new()), None);
}
