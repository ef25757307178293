use super::*;
use linerate_plan::BuiltIn;

/// A variant that comes with linerate.
pub fn built_in(name: &str) -> Setup {
    Setup::from(&name.parse::<BuiltIn>().unwrap())
}

fn with(change: impl FnOnce(&mut Setup)) -> Vec<String> {
    let mut setup = Setup::of(Dut::Forwarding);
    change(&mut setup);
    setup.faults()
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
        let setup = built_in(name);
        assert_eq!(setup.name, name);
        assert!(setup.faults().is_empty(), "{:?}", setup.faults());
    }
    let nat = built_in("nat");
    assert!(nat.tracks && nat.rules.len() == 1 && nat.dut == Dut::Forwarding);
}

#[test]
fn what_a_veth_does_not_have_is_said() {
    let faults = with(|s| {
        s.inside.rx_ring = Some(512);
        s.inside.rx_wait_ns = Some(1000);
        s.outside.irq = Some(vec![0]);
        s.outside.private_flags.insert("x".into(), true);
        s.outside.features.insert(Feature::AdaptiveInterrupts, true);
        s.outside.features.insert(Feature::FlowControl, false);
    });
    assert_eq!(faults.len(), 6, "{faults:?}");
    assert!(faults.iter().all(|f| f.contains("cannot be set on a veth")), "{faults:?}");
    let threaded = with(|s| {
        s.inside.features.insert(Feature::ThreadedNapi, true);
        s.inside.irq = Some(vec![1]);
    });
    assert!(threaded.is_empty(), "{threaded:?}");
}

#[test]
fn hostile_settings_are_refused_all_at_once() {
    let faults = with(|s| {
        for key in ["net..x", "/etc/passwd", "net.ipv4.ip_forward\n", "kernel/../../x"] {
            s.sysctls.insert(key.into(), "1".into());
        }
        s.sysctls.insert("net.ipv4.ip_forward".into(), "1\n0".into());
        s.modules = vec!["../x".into(), "-r".into()];
        s.files = vec![("/etc/passwd".into(), String::new()), ("a/../../b".into(), String::new())];
        s.inside.mtu = Some(1);
        s.outside.queues = Some(0);
        s.outside.xps = Some(vec![]);
        s.more_routes = Filler { v4: filler::MOST + 1, v6: 0 };
        let to = "10.0.0.0/8".parse().unwrap();
        s.routes = vec![Route { to, via: Some("::1".parse().unwrap()), end: Default::default() }];
    });
    assert_eq!(faults.len(), 14, "{faults:#?}");
}

#[test]
fn kinds_without_tables_get_none() {
    let mut bridge = Setup::of(Dut::Bridge);
    bridge.more_routes = Filler { v4: 1, v6: 0 };
    assert_eq!(bridge.faults().len(), 1);
    let mut none = Setup::of(Dut::TesterBaseline);
    none.sysctls.insert("net.ipv4.ip_forward".into(), "1".into());
    assert_eq!(none.faults().len(), 1);
    assert_eq!(Setup::of(Dut::KnownDelay(200_001)).faults(), ["known-delay is at most 200us"]);
    assert_eq!(Setup::of(Dut::KnownLoss(0)).faults().len(), 1);
}

#[test]
fn rules_and_sysctls_can_be_exchanged_and_nothing_else() {
    let plain = built_in("forwarding");
    let mut other = built_in("nft-stateful");
    assert!(plain.differs_only_in_rules(&other));
    other.sysctls.insert("net.ipv4.ip_early_demux".into(), "0".into());
    assert!(plain.differs_only_in_rules(&other));
    other.outside.mtu = Some(9000);
    assert!(!plain.differs_only_in_rules(&other));
    assert!(!plain.differs_only_in_rules(&built_in("bridge")));
}

#[test]
fn rfs_needs_the_hosts_table() {
    let mut setup = Setup::of(Dut::Forwarding);
    setup.inside.rfs = Some(4096);
    let changes = setup.host_changes().unwrap();
    assert_eq!(
        (changes[0].file.as_str(), changes[0].at_least),
        ("proc/sys/net/core/rps_sock_flow_entries", true)
    );
}
