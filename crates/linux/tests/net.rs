//! Namespaces, links, knobs and counters on the real kernel. Every test makes its own namespaces, with addresses of the
//! benchmarking ranges, and touches nothing else.

#[path = "net/knobs.rs"]
mod knobs;
#[path = "net/links.rs"]
mod links;
#[path = "net/namespaces.rs"]
mod namespaces;
#[path = "net/records.rs"]
mod records;

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_linux::net::Netns;
use linerate_linux::net::netlink::{Route, VethEnd};

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
