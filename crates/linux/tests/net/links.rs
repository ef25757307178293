//! Links, bridges, addresses and routes, and the guard that refuses interfaces which carry other traffic.

use super::{MAC_A, MAC_B, Pair, bind, end, ip, until};
use linerate_linux::Error;
use linerate_linux::net::Netns;
use linerate_linux::net::guard::{self, Refusal};
use linerate_linux::net::netlink::Route;
use std::time::Duration;

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_veth_pair_has_what_was_asked_on_both_ends() {
    let pair = Pair::new(3);
    for (route, name, mac) in [(&pair.route_a, "a0", MAC_A), (&pair.route_b, "b0", MAC_B)] {
        let link = route.link(name).unwrap();
        assert_eq!((link.name.as_str(), link.mac, link.mtu), (name, mac, 1400));
        assert_eq!(link.num_rx_queues, 3);
        assert_eq!(link.kind.as_deref(), Some("veth"));
        assert!(
            !link.up
                && !link.carrier
                && !link.running
                && link.master.is_none()
                && link.lower.is_none()
        );
    }
    let waited = pair
        .route_a
        .wait_running(pair.index_a(), Duration::from_millis(1))
        .unwrap_err();
    assert_eq!(
        waited.to_string(),
        "cannot wait for interface a0 in namespace test-a: Connection timed out"
    );
    let pair = pair.up();
    assert!(pair.route_a.link("a0").unwrap().carrier);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn errors_name_operation_object_and_the_kernels_reason() {
    let pair = Pair::new(1);
    let twice = pair
        .route_a
        .create_veth(&end("a0", MAC_A), &end("b1", MAC_B), &pair.b, 1)
        .unwrap_err();
    assert!(
        twice
            .to_string()
            .starts_with("cannot create veth interface a0 in namespace test-a: File exists"),
        "{twice}"
    );
    let nowhere =
        pair.route_a
            .add_route(ip("198.19.0.0"), 16, Some(ip("198.18.9.9")), pair.index_a());
    let nowhere = nowhere.unwrap_err().to_string();
    let start = "cannot add route 198.19.0.0/16 via 198.18.9.9 by interface a0 in namespace test-a: Network is ";
    assert!(nowhere.starts_with(start), "{nowhere}");
    assert!(
        nowhere.contains("(Nexthop has invalid gateway)"),
        "{nowhere}"
    );
    let missing = pair.route_a.link("nowhere").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "there is no interface nowhere in namespace test-a"
    );
    assert!(matches!(missing, Error::Missing(_)));
    let gone = pair.route_a.set_up(4711, true).unwrap_err();
    assert_eq!(
        gone.to_string(),
        "cannot set interface number 4711 up in namespace test-a: No such device"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn packets_cross_the_pair_in_both_families() {
    let pair = Pair::new(1).up().addressed();
    for (one, two) in [
        ("198.18.0.1:0", "198.18.0.2:7000"),
        ("[2001:2::1]:0", "[2001:2::2]:7000"),
    ] {
        let (from, to) = (bind(&pair.a, one), bind(&pair.b, two));
        // The kernel reports a running link shortly before its queue takes frames (linkwatch_do_dev): the first ones may be lost.
        until("a packet", || {
            from.send_to(b"x", two).unwrap();
            to.recv(&mut [0; 8]).is_ok_and(|len| len == 1)
        });
    }
    let stats = pair.route_b.link("b0").unwrap().stats;
    assert!(stats.rx_packets >= 2, "{stats:?}");
    let addresses = pair.route_a.addresses().unwrap();
    assert!(addresses.contains(&(pair.index_a(), ip("198.18.0.1"), 24)));
    assert!(addresses.contains(&(pair.index_a(), ip("2001:2::1"), 64)));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_bridge_forwards_by_static_entries() {
    let bridge_ns = Netns::anonymous().unwrap();
    let bridge = Route::open(&bridge_ns).unwrap();
    let master = bridge.create_bridge("br0").unwrap();
    let ends = ["198.18.0.1", "198.18.0.2"].map(|address| {
        let ns = Netns::anonymous().unwrap();
        let last = address.as_bytes()[address.len() - 1] - b'0';
        let name = format!("p{last}");
        let mac = [2, 0, 0, 0, 0, last];
        let port = [2, 0, 0, 0, 1, last];
        bridge
            .create_veth(&end(&name, port), &end("e0", mac), &ns, 1)
            .unwrap();
        let index = bridge.link(&name).unwrap().index;
        bridge.set_master(index, master).unwrap();
        bridge.add_fdb(index, mac).unwrap();
        bridge.set_up(index, true).unwrap();
        let end = Route::open(&ns).unwrap();
        let link = end.link("e0").unwrap().index;
        end.set_up(link, true).unwrap();
        end.add_address(link, ip(address), 24).unwrap();
        end.add_neighbour(link, ip("198.18.0.1"), [2, 0, 0, 0, 0, 1])
            .unwrap();
        end.add_neighbour(link, ip("198.18.0.2"), [2, 0, 0, 0, 0, 2])
            .unwrap();
        ns
    });
    bridge.set_up(master, true).unwrap();
    assert_eq!(bridge.link("br0").unwrap().kind.as_deref(), Some("bridge"));
    assert_eq!(bridge.link("p1").unwrap().master, Some(master));
    let (from, to) = (
        bind(&ends[0], "198.18.0.1:0"),
        bind(&ends[1], "198.18.0.2:7000"),
    );
    for port in ["p1", "p2"] {
        bridge
            .wait_running(bridge.link(port).unwrap().index, Duration::from_secs(60))
            .unwrap();
    }
    for end in &ends {
        let end = Route::open(end).unwrap();
        end.wait_running(end.link("e0").unwrap().index, Duration::from_secs(60))
            .unwrap();
    }
    // The first ones may be lost: see above.
    until("a packet", || {
        from.send_to(b"xy", "198.18.0.2:7000").unwrap();
        to.recv(&mut [0; 8]).is_ok_and(|len| len == 2)
    });
    assert_eq!(bridge.link("p1").unwrap().master, Some(master));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn default_routes_are_seen_and_the_guard_refuses_them() {
    let pair = Pair::new(1).up().addressed();
    let lab = [pair.a.inode()];
    let examine = || guard::examine(&pair.a, "a0", &lab).unwrap().reasons;
    assert!(examine().is_empty());
    assert_eq!(
        guard::examine(&pair.a, "a0", &[]).unwrap().reasons,
        [Refusal::NotInLabNamespace]
    );
    pair.route_a
        .add_route(
            ip("198.18.128.0"),
            17,
            Some(ip("198.18.0.2")),
            pair.index_a(),
        )
        .unwrap();
    assert!(pair.route_a.default_route_interfaces().unwrap().is_empty());
    pair.route_a
        .add_route(ip("::"), 0, Some(ip("2001:2::2")), pair.index_a())
        .unwrap();
    assert_eq!(
        pair.route_a.default_route_interfaces().unwrap(),
        [pair.index_a()]
    );
    assert_eq!(examine(), [Refusal::DefaultRoute]);
    pair.route_a
        .add_address(pair.index_a(), ip("203.0.113.9"), 32)
        .unwrap();
    assert_eq!(
        examine(),
        [
            Refusal::DefaultRoute,
            Refusal::ForeignAddress(ip("203.0.113.9"))
        ]
    );
    let loopback = guard::examine(&pair.a, "lo", &lab).unwrap();
    assert!(guard::permit(&loopback, &["lo".into()], "send by").is_err());
    assert!(
        guard::examine(&pair.a, "gone", &lab)
            .unwrap_err()
            .is_missing()
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn the_guard_looks_through_a_bridge() {
    let pair = Pair::new(1).up();
    let master = pair.route_a.create_bridge("br0").unwrap();
    pair.route_a.set_master(pair.index_a(), master).unwrap();
    pair.route_a.set_up(master, true).unwrap();
    pair.route_a
        .add_address(master, ip("198.18.0.1"), 24)
        .unwrap();
    pair.route_a
        .add_route(ip("0.0.0.0"), 0, Some(ip("198.18.0.2")), master)
        .unwrap();
    let found = guard::examine(&pair.a, "a0", &[pair.a.inode()]).unwrap();
    assert_eq!(found.reasons, [Refusal::DefaultRoute]);
    assert_eq!(
        guard::permit(&found, &["a0".into()], "send by")
            .unwrap()
            .len(),
        1
    );
}
