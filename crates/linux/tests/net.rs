//! Namespaces, links, knobs and counters on the real kernel. Every test makes its own namespaces, with addresses of the
//! benchmarking ranges, and touches nothing else.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_linux::Error;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::guard::{self, Refusal};
use linerate_linux::net::napi;
use linerate_linux::net::netlink::{Route, VethEnd};
use linerate_linux::net::procnet;
use linerate_linux::net::registry::{LabRecord, NamespaceRecord, Registry};
use linerate_linux::net::{Netns, sysctl, sysfs};
use linerate_linux::process::Owner;

const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

/// Two namespaces joined by a veth pair a0/b0.
struct Pair {
    a: Netns,
    b: Netns,
    route_a: Route,
    route_b: Route,
}

impl Pair {
    fn new(queues: u32) -> Pair {
        let a = Netns::anonymous().unwrap().with_label("test-a");
        let b = Netns::anonymous().unwrap().with_label("test-b");
        let (route_a, route_b) = (Route::open(&a).unwrap(), Route::open(&b).unwrap());
        route_a
            .create_veth(&end("a0", MAC_A), &end("b0", MAC_B), &b, queues)
            .unwrap();
        Pair {
            a,
            b,
            route_a,
            route_b,
        }
    }

    fn up(self) -> Pair {
        self.route_a.set_up(self.index_a(), true).unwrap();
        self.route_b.set_up(self.index_b(), true).unwrap();
        self.route_a
            .wait_running(self.index_a(), Duration::from_secs(60))
            .unwrap();
        self.route_b
            .wait_running(self.index_b(), Duration::from_secs(60))
            .unwrap();
        self
    }

    /// Addresses 198.18.0.1 and .2, 2001:2::1 and ::2, with static neighbours.
    fn addressed(self) -> Pair {
        for (net, prefix) in [("198.18.0.", 24), ("2001:2::", 64)] {
            let (one, two) = (ip(&format!("{net}1")), ip(&format!("{net}2")));
            self.route_a
                .add_address(self.index_a(), one, prefix)
                .unwrap();
            self.route_b
                .add_address(self.index_b(), two, prefix)
                .unwrap();
            self.route_a
                .add_neighbour(self.index_a(), two, MAC_B)
                .unwrap();
            self.route_b
                .add_neighbour(self.index_b(), one, MAC_A)
                .unwrap();
        }
        self
    }

    fn index_a(&self) -> u32 {
        self.route_a.link("a0").unwrap().index
    }

    fn index_b(&self) -> u32 {
        self.route_b.link("b0").unwrap().index
    }
}

fn end(name: &str, mac: [u8; 6]) -> VethEnd {
    VethEnd {
        name: name.into(),
        mac,
        mtu: 1400,
        index: 0,
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn bind(ns: &Netns, address: &str) -> UdpSocket {
    let socket = ns.enter(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    socket
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_anonymous_namespace_is_new_and_empty() {
    let (here, ns) = (Netns::current().unwrap(), Netns::anonymous().unwrap());
    assert_ne!(here, ns);
    assert_eq!(Netns::current().unwrap(), here);
    assert_eq!(
        ns.enter(|| Netns::current().unwrap().inode()).unwrap(),
        ns.inode()
    );
    let links = Route::open(&ns).unwrap().links().unwrap();
    assert_eq!(
        links
            .iter()
            .map(|link| link.name.as_str())
            .collect::<Vec<_>>(),
        ["lo"]
    );
    assert!(links[0].loopback && !links[0].up);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_panic_inside_goes_on_in_the_caller() {
    let ns = Netns::anonymous().unwrap();
    let result = std::panic::catch_unwind(|| ns.enter(|| panic!("inside")));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_command_and_a_worker_thread_run_inside() {
    let ns = Netns::anonymous().unwrap();
    let output = ns
        .command("readlink")
        .arg("/proc/self/ns/net")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        format!("net:[{}]", ns.inode())
    );
    let worker = ns.clone();
    let inside = std::thread::spawn(move || {
        worker.current_thread_enter().unwrap();
        Netns::current().unwrap().inode()
    });
    assert_eq!(inside.join().unwrap(), ns.inode());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_persistent_name_is_made_found_and_removed() {
    let name = format!("linerate-test-{}", std::process::id());
    let ns = Netns::anonymous().unwrap();
    ns.persist(&name).unwrap();
    let found = Netns::open(&name).unwrap();
    let again = ns.persist(&name).unwrap_err();
    Netns::remove_persistent(&name).unwrap();
    assert_eq!(found, ns);
    assert_eq!(
        again.to_string(),
        format!("cannot create /run/netns/{name}: File exists")
    );
    assert!(Netns::open(&name).unwrap_err().is_missing());
}

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

/// Not a test of its own: run by the next one as the process to be killed.
#[test]
#[ignore = "needs root: run by make test as root"]
fn holder_of_a_namespace() {
    let Ok(path) = std::env::var("LINERATE_TEST_HOLD") else {
        return;
    };
    let (ours, theirs) = (Netns::anonymous().unwrap(), Netns::open(path).unwrap());
    Route::open(&ours)
        .unwrap()
        .create_veth(&end("held", MAC_A), &end("witness", MAC_B), &theirs, 1)
        .unwrap();
    eprintln!("ready {}", ours.inode());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_killed_process_leaves_nothing_behind() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ns = Netns::anonymous().unwrap();
    let route = Route::open(&ns).unwrap();
    let before = mounts();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "holder_of_a_namespace",
            "--include-ignored",
            "--nocapture",
        ])
        .env(
            "LINERATE_TEST_HOLD",
            format!("/proc/{}/fd/{}", std::process::id(), ns.as_fd().as_raw_fd()),
        )
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("ready ").map(str::to_owned));
    let inode: u64 = ready.expect("the child's namespace").parse().unwrap();
    assert!(route.link("witness").is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
    // One end of a veth pair lives only as long as the other: it goes when the dead process's namespace goes.
    until("the end of the namespace", || {
        route.link("witness").is_err()
    });
    let own = |line: &&str| line.contains(&inode.to_string());
    assert_eq!(mounts().lines().find(own), None);
    assert_eq!(before.lines().find(own), None);
    let names = fs::read_dir("/run/netns")
        .map(|names| names.flatten().collect::<Vec<_>>())
        .unwrap_or_default();
    assert!(
        names
            .iter()
            .all(|name| Netns::open(name.path()).map_or(true, |found| found.inode() != inode))
    );
}

#[test]
fn a_lab_record_is_written_listed_and_removed() {
    let root = std::env::temp_dir().join(format!("linerate-registry-{}", std::process::id()));
    let registry = Registry::at(&root);
    assert!(registry.list().unwrap().records.is_empty());
    let mut record = LabRecord::begin("lab-1", 1_700_000_000);
    registry.write(&record).unwrap();
    assert!(
        registry.clear_remains().unwrap().is_empty(),
        "its process runs"
    );
    record.complete = true;
    registry.write(&record).unwrap();
    fs::write(root.join("labs/bad.json"), "{").unwrap();
    fs::write(
        root.join("labs/new.json"),
        fs::read_to_string(root.join("labs/lab-1.json")).unwrap(),
    )
    .unwrap();
    let listing = registry.list().unwrap();
    assert_eq!(
        (listing.records, listing.damaged.len()),
        (vec![record.clone()], 2)
    );
    registry.take_down(&record).unwrap();
    registry.take_down(&record).unwrap();
    assert!(registry.list().unwrap().records.is_empty());
    fs::remove_dir_all(root).unwrap();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn remains_of_a_dead_process_are_cleared_and_nothing_else() {
    let root = std::env::temp_dir().join(format!("linerate-remains-{}", std::process::id()));
    let registry = Registry::at(&root);
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let (ours, foreign) = (Netns::anonymous().unwrap(), Netns::anonymous().unwrap());
    let mut record = LabRecord {
        owner: Owner {
            pid: dead,
            ..Owner::this()
        },
        ..LabRecord::begin("half", 1)
    };
    for (role, ns, inode) in [("dut", &ours, ours.inode()), ("other", &foreign, 1)] {
        let name = format!("linerate-remains-{}-{role}", std::process::id());
        ns.persist(&name).unwrap();
        record
            .namespaces
            .insert(role.into(), NamespaceRecord { name, inode });
    }
    registry.write(&record).unwrap();
    registry
        .write(&LabRecord {
            complete: true,
            name: "whole".into(),
            namespaces: Default::default(),
            ..record.clone()
        })
        .unwrap();
    let cleared = registry.clear_remains().unwrap();
    let left = Netns::open(&record.namespaces["other"].name);
    Netns::remove_persistent(&record.namespaces["other"].name).unwrap();
    assert_eq!(cleared, ["half"]);
    assert!(
        Netns::open(&record.namespaces["dut"].name)
            .unwrap_err()
            .is_missing()
    );
    assert_eq!(left.unwrap(), foreign);
    assert_eq!(registry.list().unwrap().records.len(), 1);
    fs::remove_dir_all(root).unwrap();
}
