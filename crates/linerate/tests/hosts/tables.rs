//! Routes and neighbours of a DUT of Linux that a variant replaces: they come back.

use super::lab::{RealLab, gentle};

/// A variant that has them, in place of rules.
const VARIANT: &str = r#"[variants.rules]
neighbours.explicit = [
  { address = "198.19.128.7", mac = "02:00:00:00:00:77", end = "out" },
  { address = "198.19.128.8", mac = "02:00:00:00:00:88", end = "out" },
  { address = "198.19.128.9", mac = "02:00:00:00:00:99", end = "out" },
]
routes.explicit = [
  { to = "203.0.113.0/24", via = "198.19.128.2", end = "out" },
  { to = "192.0.2.0/24", via = "198.19.128.2", end = "out" },
  { to = "198.51.100.0/24", via = "198.19.128.2", end = "out" },
  { to = "2001:db8:5::/48", via = "2001:db8::2", end = "out" },
]

[collect]
commands = ["ip neigh show dev {out}; ip route; ip -6 route"]
"#;

#[test]
#[ignore = "needs root and openssh-server"]
fn routes_and_neighbours_that_were_there_come_back() {
    let lab = RealLab::new();
    lab.on(
        "dut",
        "sysctl -qw net.ipv6.conf.all.forwarding=1
        ip neigh replace 198.19.128.7 lladdr 02:00:00:00:00:07 dev out0 nud permanent
        ip -6 addr add 2001:db8::1/64 dev out0 nodad
        ip route add 203.0.113.0/24 via 198.18.128.2 dev in0 proto static
        ip route add 203.0.113.0/24 via 198.18.128.2 dev in0 metric 100 mtu 1400
        ip route add 198.51.100.0/24 proto static nexthop via 198.18.128.2 dev in0 weight 1 nexthop via 198.19.128.2 dev out0 weight 2
        ip -6 route add 2001:db8:5::/48 via 2001:db8::9 dev out0",
    );
    let state = || {
        lab.on("dut", "ip neigh show nud permanent; ip neigh show to 198.19.128.9; ip route; ip -6 route | grep -v ^fe80")
    };
    let before = state();
    // Of these, one has been learned.
    lab.on(
        "dut",
        "ip neigh replace 198.19.128.8 lladdr 02:00:00:00:00:08 dev out0 nud reachable",
    );
    let rules = "[variants.rules]\nrules = { tool = \"nftables\", filter = \"stateless\", before = 1000 }\n";
    let plan = gentle().replace(rules, VARIANT).replace(
        "duration = \"200 ms\"\nblocks = 8",
        "duration = \"50 ms\"\nblocks = 1\norder = \"sequential\"",
    );
    let ended = lab.run(&plan, &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{}", ended.stderr);
    let said = trials[1]["collected"][0]["output"]["Ok"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", ended.stderr));
    for part in [
        "198.19.128.7 lladdr 02:00:00:00:00:77 PERMANENT",
        "198.19.128.8 lladdr 02:00:00:00:00:88 PERMANENT",
        "203.0.113.0/24 via 198.19.128.2 dev out0 \n",
        "198.51.100.0/24 via 198.19.128.2 dev out0 \n",
        "2001:db8:5::/48 via 2001:db8::2 dev out0",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(state(), before, "{}", ended.stderr);
}
