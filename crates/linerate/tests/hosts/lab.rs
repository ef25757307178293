//! A lab of three hosts in a row, each a namespace with an sshd: `g0` - `in0`, `out0` - `r0`.
#![allow(dead_code, reason = "each test program uses a part of this")]

use super::site::Site;
use crate::common::LINERATE;
use crate::sshd::SshHost;
use linerate_linux::net::Netns;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::netlink::{Route, VethEnd};
use std::ops::Deref;
use std::time::Duration;

/// A router with and without a long rule set.
pub const PLAN: &str = r#"
title = "Rules on a router of its own"
question = "What do a thousand rules cost?"

[lab]
file = "LAB.toml"
systems = ["linux"]

[variants.forwarding]
about = "the kernel's routing, no firewall"

[variants.rules]
rules = { tool = "nftables", filter = "stateless", before = 1000 }

[compare]
with = "forwarding"

[trials]
duration = "200 ms"
blocks = 8

[[expect]]
of = "rules"
is = "slower"
than = "forwarding"
because = "each frame is held against a thousand rules"
"#;

/// The plan at a low rate, for tests that run side by side, and without an expectation.
pub fn gentle() -> String {
    let expectation = PLAN.find("[[expect]]").unwrap();
    PLAN[..expectation].replace(
        "[trials]",
        "[traffic]\nrate = \"2 kpps\"\nflows = 200\n\n[trials]",
    )
}

/// The campaign of one reset test.
pub fn reset(event: &str) -> String {
    format!(
        r#"
title = "An interruption"
question = "How long?"

[lab]
file = "LAB.toml"
systems = ["linux"]
link-speed = "1 Gbit/s"

[variants.forwarding]
event = {{ {event} }}

[trials]
duration = "1 s"
measure = "rfc2544"
tests = ["throughput", "reset"]
repeats = 1
drain = "20 ms"
settle = "1 ms"
method = "bisection"
width = "50 %"
min-load = "2 kpps"
max-load = "4 kpps"
"#
    )
}

/// The lab file.
pub const LAB: &str = r#"
isolated = true

[hosts.generator]
role = "generator"
ssh = "generator"
tool = "linerate"
[hosts.generator.send]
name = "g0"
mac = "02:00:00:00:00:01"
addresses = ["198.18.128.2/24"]

[hosts.dut]
role = "dut"
ssh = "dut"
[hosts.dut.in]
name = "in0"
mac = "02:00:00:00:00:02"
addresses = ["198.18.128.1/24"]
[hosts.dut.out]
name = "out0"
mac = "02:00:00:00:00:03"
addresses = ["198.19.128.1/24"]
[hosts.dut.boot]
timeout = "5 s"

[hosts.receiver]
role = "receiver"
ssh = "receiver"
tool = "linerate"
[hosts.receiver.receive]
name = "r0"
mac = "02:00:00:00:00:04"
addresses = ["198.19.128.2/24"]
"#;

/// Lines of a shell that set up the generator `g0`.
pub const GENERATOR: &str = "ip addr add 198.18.128.2/24 dev g0; ip link set g0 up; ip route add 198.19.0.0/16 via 198.18.128.1";

/// Lines of a shell that set up the receiver `r0`.
pub const RECEIVER: &str = "ip addr add 198.19.128.2/24 dev r0; ip link set r0 up";

/// The way back from a receiver that is a host of its own.
pub const BACK: &str = "ip route add 198.18.128.0/24 via 198.19.128.1";

/// Lines of a shell that set up the router between `in0` and `out0`.
pub const DUT: &str =
    "ip addr add 198.18.128.1/24 dev in0; ip addr add 198.19.128.1/24 dev out0; ip link set in0 up; ip link set out0 up
    ip route add 198.18.0.0/16 via 198.18.128.2; ip route add 198.19.0.0/16 via 198.19.128.2
    ip neigh replace 198.18.128.2 lladdr 02:00:00:00:00:01 dev in0 nud permanent
    ip neigh replace 198.18.128.3 lladdr 02:00:00:00:00:05 dev in0 nud permanent
    ip neigh replace 198.19.128.2 lladdr 02:00:00:00:00:04 dev out0 nud permanent
    echo 1 > /proc/sys/net/ipv4/ip_forward
    for i in all default in0 out0; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done";

/// Addresses of the three hosts for IPv6. Without a route, a host whose port is a socket would answer each frame with an ICMPv6 error.
pub const GENERATOR_IPV6: &str =
    "ip addr add 2001:2:0:7f00::2/64 dev g0 nodad; ip route add 2001:2:0:8000::/49 via 2001:2:0:7f00::1
    ip route add blackhole 2001:2:0:10::/64";
pub const RECEIVER_IPV6: &str =
    "ip addr add 2001:2:0:ff00::2/64 dev r0 nodad; ip route add 2001:2::/49 via 2001:2:0:ff00::1
    ip route add blackhole 2001:2:0:8010::/64";
pub const DUT_IPV6: &str = "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    ip addr add 2001:2:0:7f00::1/64 dev in0 nodad; ip addr add 2001:2:0:ff00::1/64 dev out0 nodad
    ip route add 2001:2::/49 via 2001:2:0:7f00::2; ip route add 2001:2:0:8000::/49 via 2001:2:0:ff00::2
    ip neigh replace 2001:2:0:7f00::2 lladdr 02:00:00:00:00:01 dev in0 nud permanent
    ip neigh replace 2001:2:0:ff00::2 lladdr 02:00:00:00:00:04 dev out0 nud permanent";

/// A lab file whose interfaces have IPv6 addresses as well.
pub fn with_ipv6(file: &str) -> String {
    let mut file = file.to_string();
    for (four, six) in [
        ("198.18.128", "2001:2:0:7f00"),
        ("198.19.128", "2001:2:0:ff00"),
    ] {
        for host in [1, 2] {
            let address = format!("\"{four}.{host}/24\"");
            file = file.replace(&address, &format!("{address}, \"{six}::{host}/64\""));
        }
    }
    file
}

/// The lab file with one host at both ends of the DUT.
pub fn with_one_tester(file: &str) -> String {
    let (first, last) = file.split_once("[hosts.receiver]").unwrap();
    let receive = last.split_once("[hosts.receiver.receive]").unwrap().1;
    let file = [first.trim_end(), "\n[hosts.generator.receive]", receive].concat();
    file.replace(
        "role = \"generator\"",
        "role = [\"generator\", \"receiver\"]",
    )
}

/// The hosts, and a folder with a lab file.
pub struct RealLab {
    pub site: Site,
    switch: Option<Netns>,
    /// State of the DUT before.
    before: String,
}

impl Deref for RealLab {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

/// A second generator, which feeds the same interface of the DUT through a switch.
const SECOND: &str = r#"
[hosts.second]
role = "generator"
ssh = "second"
tool = "linerate"
[hosts.second.send]
name = "g0"
mac = "02:00:00:00:00:05"
addresses = ["198.18.128.3/24"]
"#;

/// Connects two hosts with a cable whose ends have these names, and Ethernet addresses that end with these bytes.
fn cable(
    number: u32,
    [from, to]: [&Netns; 2],
    [name, peer_name]: [&str; 2],
    [mac, peer_mac]: [u8; 2],
) {
    let end = |name: &str, mac, index| VethEnd {
        name: name.into(),
        mac: [2, 0, 0, 0, 0, mac],
        mtu: 1500,
        index,
    };
    let (near, far) = (
        end(name, mac, 200 + number),
        end(peer_name, peer_mac, 300 + number),
    );
    Route::open(from)
        .unwrap()
        .create_veth(&near, &far, to, 1)
        .unwrap();
    // Redirected frames need the NAPI of the other end.
    for (end, netns) in [(name, from), (peer_name, to)] {
        Ethtool::open(netns)
            .unwrap()
            .set_feature(end, "rx-gro", true)
            .unwrap();
    }
}

/// Puts the program under test into the host's PATH.
pub fn has_linerate(host: &SshHost) {
    host.stand_in("linerate", &format!("#!/bin/sh\nexec {LINERATE} \"$@\"\n"));
}

/// Runs lines of a shell in a namespace.
pub fn run(netns: &Netns, lines: &str) -> String {
    let output = netns
        .command("sh")
        .args(["-e", "-c", lines])
        .output()
        .unwrap();
    assert!(output.status.success(), "{lines}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl RealLab {
    pub fn new() -> RealLab {
        let site = Site::new(&["generator", "dut", "receiver"]);
        let [generator, dut] = [0, 1].map(|n| &site.ssh.hosts[n].netns);
        cable(0, [generator, dut], ["g0", "in0"], [1, 2]);
        RealLab::of(site, None, LAB)
    }

    /// With routes and addresses of IPv6 as well.
    pub fn with_ipv6() -> RealLab {
        let mut lab = RealLab::new();
        lab.on("generator", GENERATOR_IPV6);
        lab.on("receiver", RECEIVER_IPV6);
        lab.on("dut", DUT_IPV6);
        lab.write("LAB.toml", &with_ipv6(LAB));
        lab.before = lab.state();
        lab
    }

    /// With one host at both ends of the DUT.
    pub fn with_one_tester() -> RealLab {
        let site = Site::new(&["generator", "dut"]);
        let [tester, dut] = [0, 1].map(|n| &site.ssh.hosts[n].netns);
        cable(0, [tester, dut], ["g0", "in0"], [1, 2]);
        RealLab::of(site, None, &with_one_tester(LAB))
    }

    /// With two generators, whose cables end at a switch before the DUT.
    pub fn with_two_generators() -> RealLab {
        let site = Site::new(&["generator", "dut", "receiver", "second"]);
        let [generator, dut, second] = [0, 1, 3].map(|n| &site.ssh.hosts[n].netns);
        let switch = Netns::anonymous().unwrap().with_label("switch");
        run(
            &switch,
            "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; ip link add br0 type bridge; ip link set br0 up",
        );
        cable(0, [&switch, dut], ["s2", "in0"], [0x12, 2]);
        cable(2, [generator, &switch], ["g0", "s0"], [1, 0x10]);
        cable(3, [second, &switch], ["g0", "s1"], [5, 0x11]);
        run(
            &switch,
            "for i in s0 s1 s2; do ip link set $i master br0; ip link set $i up; done
            bridge fdb replace 02:00:00:00:00:02 dev s2 master static",
        );
        run(
            second,
            "ip addr add 198.18.128.3/24 dev g0; ip link set g0 up; ip route add 198.19.0.0/16 via 198.18.128.1",
        );
        RealLab::of(site, Some(switch), &[LAB, SECOND].concat())
    }

    /// The rest of it, from the DUT's interface towards the generators on.
    fn of(site: Site, switch: Option<Netns>, file: &str) -> RealLab {
        let end = if site.ssh.hosts.len() > 2 { 2 } else { 0 };
        let [dut, receiver] = [1, end].map(|n| &site.ssh.hosts[n].netns);
        cable(1, [dut, receiver], ["out0", "r0"], [3, 4]);
        let lab = RealLab {
            site,
            switch,
            before: String::new(),
        };
        lab.on("generator", GENERATOR);
        let receiver = lab.ssh.hosts[end].name.clone();
        lab.on(&receiver, RECEIVER);
        if end > 0 {
            lab.on(&receiver, BACK);
        }
        lab.on("dut", DUT);
        for (host, link) in [(0, "g0"), (1, "in0"), (1, "out0"), (end, "r0")] {
            let route = Route::open(&lab.ssh.hosts[host].netns).unwrap();
            route
                .wait_running(route.link(link).unwrap().index, Duration::from_secs(60))
                .unwrap();
        }
        for host in lab.ssh.hosts.iter().filter(|host| host.name != "dut") {
            has_linerate(host);
        }
        lab.write("LAB.toml", file);
        let before = lab.state();
        RealLab { before, ..lab }
    }

    /// Runs lines of a shell on the switch between generators and DUT.
    pub fn on_switch(&self, lines: &str) -> String {
        run(self.switch.as_ref().unwrap(), lines)
    }

    /// Runs lines of a shell in a host's namespace.
    pub fn on(&self, host: &str, lines: &str) -> String {
        let host = self.ssh.hosts.iter().find(|h| h.name == host).unwrap();
        run(&host.netns, lines)
    }

    /// The parts of the DUT's state that a campaign may change.
    fn state(&self) -> String {
        self.on(
            "dut",
            "sysctl -n net.ipv4.ip_forward; nft list ruleset; cat /proc/net/ip_tables_names; ethtool -k in0; ethtool -k out0; ip -o link show in0 | sed 's/link-netns.*//'; ip route; ip neigh show dev in0 nud permanent",
        )
    }

    /// The state that it must have after a campaign is the present one.
    pub fn look(&mut self) {
        self.before = self.state();
    }

    pub fn before(&self) -> &str {
        &self.before
    }

    #[track_caller]
    pub fn is_as_it_was(&self) {
        assert_eq!(self.state(), self.before);
        for host in &self.ssh.hosts {
            assert_eq!(
                host.running("linerate agent"),
                0,
                "{}: {:?}",
                host.name,
                host.processes()
            );
        }
    }
}
