use super::*;
use linerate_plan::rules::{Firewall, Kind};
use std::process;

/// A variant that comes with linerate.
pub fn built_in(name: &str) -> Setup {
    Setup::from(&name.parse::<BuiltIn>().unwrap())
}

#[test]
fn built_in_variants_are_sound_setups() {
    for name in [
        "forwarding",
        "nft-stateless",
        "nft-stateful",
        "nat",
        "bridge",
        "xdp",
        "known-rate=5",
        "known-delay=50us",
    ] {
        assert_eq!(built_in(name).name, name);
    }
    let nat = built_in("nat");
    assert!(nat.tracks && nat.rules.len() == 1 && nat.settings.dut == Dut::Forwarding);
}

#[test]
fn settings_become_a_setup() {
    let settings = Settings {
        sysctls: [("net.ipv4.conf.{out}.rp_filter".to_string(), "1".to_string())].into(),
        files: vec![File {
            path: "x".into(),
            text: "{in}".into(),
        }],
        commands: vec![Command {
            run: "ip link show {in}".into(),
            undo: Some("false".into()),
            within_ns: None,
        }],
        rules: Some(RuleSet {
            states: Some(1000),
            ..RuleSet::new(Firewall::Nftables, Kind::Stateful)
        }),
        ..Settings::default()
    };
    let setup = Setup::from_settings("x", 3, &settings, &[Family::V6]).unwrap();
    let Settings {
        sysctls,
        files,
        commands,
        ..
    } = &setup.settings;
    assert_eq!(
        sysctls.keys().collect::<Vec<_>>(),
        ["net.ipv4.conf.out3.rp_filter"]
    );
    assert_eq!(
        (files[0].path.as_str(), files[0].text.as_str()),
        ("x", "in3")
    );
    assert!(setup.tracks && setup.room == Some(1000));
    let host: Vec<(&str, bool)> = setup
        .host
        .iter()
        .map(|c| (c.file.as_str(), c.at_least))
        .collect();
    let (max, buckets) = (
        "proc/sys/net/netfilter/nf_conntrack_max",
        "proc/sys/net/netfilter/nf_conntrack_buckets",
    );
    assert_eq!(host, [(max, true), (buckets, false)]);
    assert_eq!(
        shell(&commands[0], &commands[0].run).args,
        ["-c", "ip link show in3"]
    );
    let text = Job::new("cat", &[]).with_input(setup.rules[0].input.clone());
    let text = text.run(|path| process::Command::new(path), None).unwrap();
    assert!(
        text.contains("ct state") && text.contains("2001:2::/48") && !text.contains("198.18"),
        "{text}"
    );
}

#[test]
fn rules_and_sysctls_can_be_exchanged_and_nothing_else() {
    let plain = built_in("forwarding");
    let mut other = built_in("nft-stateful");
    assert!(plain.differs_only_in_rules(&other));
    other
        .settings
        .sysctls
        .insert("net.ipv4.ip_early_demux".into(), "0".into());
    assert!(plain.differs_only_in_rules(&other));
    other.settings.outside.mtu = Some(9000);
    assert!(!plain.differs_only_in_rules(&other));
    assert!(!plain.differs_only_in_rules(&built_in("bridge")));
}

#[test]
fn rfs_needs_the_hosts_table() {
    let mut setup = Setup::of(Dut::Forwarding);
    setup.settings.inside.rfs = Some(4096);
    let changes = setup.host_changes().unwrap();
    assert_eq!(
        (changes[0].file.as_str(), changes[0].at_least),
        ("proc/sys/net/core/rps_sock_flow_entries", true)
    );
}
