//! Knobs and counters: ethtool, sysfs, sysctls, drops, and the threads of NAPI.

use super::{Pair, bind, ip, until};
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::napi;
use linerate_linux::net::procnet;
use linerate_linux::net::{Netns, sysctl, sysfs};
use std::fs;

#[test]
#[ignore = "needs root: run by make test as root"]
fn ethtool_reads_and_sets() {
    let pair = Pair::new(2).up();
    let tool = Ethtool::open(&pair.a).unwrap();
    assert_eq!(sysfs::read(&pair.a, "class/net/a0/speed").unwrap(), "10000");
    for on in [true, false] {
        tool.set_feature("a0", "rx-gro", on).unwrap();
        let gro = tool
            .features("a0")
            .unwrap()
            .into_iter()
            .find(|feature| feature.name == "rx-gro")
            .unwrap();
        assert_eq!((gro.active, gro.changeable), (on, true));
    }
    let stats = tool.stats("a0").unwrap();
    assert!(
        stats.iter().any(|(name, _)| name == "rx_queue_1_drops"),
        "{stats:?}"
    );
    let second = |way| sysfs::exists(&pair.a, &format!("class/net/a0/queues/{way}-1"));
    assert!(second("rx") && second("tx"));
    tool.set_channels("a0", 1, 1).unwrap();
    assert!(!second("rx") && !second("tx"));
    assert!(
        tool.set_feature("a0", "no-such-thing", true)
            .unwrap_err()
            .is_missing()
    );
    // A veth stamps in software: on transmission, on reception, and says so.
    let stamps = tool.stamping("a0").unwrap();
    assert_eq!(
        (stamps.flags & 0x1f, stamps.clock),
        (0x1a, None),
        "{stamps:?}"
    );
    assert_eq!(
        tool.hardware_stamps("a0").unwrap_err().errno(),
        Some(libc::EOPNOTSUPP)
    );
    assert_eq!(
        tool.set_hardware_stamps("a0", [1, 1]).unwrap_err().errno(),
        Some(libc::EOPNOTSUPP)
    );
    assert!(tool.stats("b0").unwrap_err().is_missing());
    assert!(tool.stats("lo").is_ok_and(|stats| stats.is_empty()) || tool.stats("lo").is_err());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn sysfs_is_that_of_the_namespace_and_has_no_mount_point() {
    let mounts = || {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        all.lines()
            .filter(|line| line.contains(" - sysfs "))
            .count()
    };
    let before = mounts();
    let pair = Pair::new(2).up();
    assert!(sysfs::exists(&pair.a, "class/net/a0") && !sysfs::exists(&pair.a, "class/net/b0"));
    let mask = "class/net/a0/queues/tx-0/xps_cpus";
    sysfs::write(&pair.a, mask, "1").unwrap();
    assert!(sysfs::read(&pair.a, mask).unwrap().ends_with('1'));
    sysfs::write(&pair.a, "class/net/a0/queues/rx-1/rps_cpus", "1").unwrap();
    let wrong = sysfs::write(&pair.a, "class/net/b0/threaded", "1").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "cannot write 1 to class/net/b0/threaded in the sysfs of namespace test-a: No such file or directory"
    );
    // The kernel's tables of flows have a power of two of entries (`store_rps_dev_flow_table_cnt` in net/core/net-sysfs.c).
    let flows = "class/net/a0/queues/rx-0/rps_flow_cnt";
    let set = |value: &str| sysfs::set(&pair.a, flows, value, |kept| kept == value);
    set("1024").unwrap();
    let other = set("1000").unwrap_err().to_string();
    assert_eq!(
        other,
        format!("1000 was written to {flows}, and the kernel keeps 1024")
    );
    assert_eq!(mounts(), before);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn sysctls_are_those_of_the_namespace() {
    let (one, other) = (
        Netns::anonymous().unwrap(),
        Netns::anonymous().unwrap().with_label("test"),
    );
    let key = "net/ipv4/ip_forward";
    sysctl::apply(&other, &[(key, "0"), ("net/ipv6/conf/all/forwarding", "1")]).unwrap();
    sysctl::set(&one, key, "1").unwrap();
    assert_eq!(
        (
            sysctl::get(&one, key).unwrap().as_str(),
            sysctl::get(&other, key).unwrap().as_str()
        ),
        ("1", "0")
    );
    let error = sysctl::set(&other, "net/ipv4/no_such_key", "1")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "cannot set net/ipv4/no_such_key to 1 in namespace test: No such file or directory"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_lost_packet_is_counted_where_it_was_lost() {
    let pair = Pair::new(1).up().addressed();
    sysctl::set(&pair.b, "net/ipv4/ip_forward", "1").unwrap();
    pair.route_a
        .add_route(ip("198.19.0.0"), 16, Some(ip("198.18.0.2")), pair.index_a())
        .unwrap();
    let before = procnet::drop_counters(&pair.b).unwrap();
    let from = bind(&pair.a, "198.18.0.1:0");
    for _ in 0..5 {
        from.send_to(b"x", "198.19.0.1:7000").unwrap();
    }
    let lost = || procnet::grown(&before, &procnet::drop_counters(&pair.b).unwrap());
    until("IpExt.InNoRoutes", || {
        lost().get("IpExt.InNoRoutes") == Some(&5)
    });
    assert!(before.contains_key("b0.rx_dropped") && before.contains_key("Ip6.InDiscards"));
    assert!(
        before.contains_key("b0.ethtool.rx_queue_0_drops"),
        "{before:?}"
    );
    assert!(procnet::counters(&pair.a).unwrap()["Ip.OutRequests"] >= 5);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn napi_threads_are_found_in_their_own_namespace_and_pinned() {
    let pairs = [Pair::new(2).up(), Pair::new(2).up()];
    let mut all = Vec::new();
    for pair in &pairs {
        Ethtool::open(&pair.b)
            .unwrap()
            .set_feature("b0", "rx-gro", true)
            .unwrap();
        assert!(napi::threads(&pair.b, "b0").unwrap().is_empty());
        napi::set_threaded(&pair.b, "b0").unwrap();
        let threads = napi::threads(&pair.b, "b0").unwrap();
        assert_eq!(threads.len(), 2, "{threads:?}");
        all.extend(threads);
    }
    let by_name = napi::threads_by_name(std::path::Path::new("/proc"), "b0").unwrap();
    assert!(
        all.iter().all(|thread| by_name.contains(thread)),
        "{all:?} {by_name:?}"
    );
    napi::pin(all[0].pid, 0).unwrap();
    assert!(napi::pin(all[0].pid, 1 << 20).is_err());
}
