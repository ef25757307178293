//! Firewalls of a DUT that has rules of its own: a campaign leaves them unchanged.

use super::lab::{RealLab, gentle};

/// A plan with rules of this tool, as short as possible, that records the number of lines of rules after each trial.
fn plan(tool: &str, count: &str) -> String {
    gentle()
        .replace("nftables", tool)
        .replace(
            "[trials]",
            &format!("[collect]\ncommands = [\"{count}\"]\n\n[trials]"),
        )
        .replace(
            "duration = \"200 ms\"\nblocks = 8",
            "duration = \"50 ms\"\nblocks = 1\norder = \"sequential\"",
        )
}

/// Rules of a DUT, as its own tools print them: without the time of day and the counters of policies.
struct Firewall {
    tool: &'static str,
    save: &'static str,
    /// Rules of the DUT's own.
    own: &'static str,
}

const NFTABLES: Firewall = Firewall {
    tool: "nftables",
    save: "nft list ruleset",
    own: "nft -f - <<'END'
table inet own {
	set lan {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/8, 192.0.2.1 }
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		ip saddr @lan counter drop comment \"of its own\"
	}
}
table ip nat {
	chain out {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 192.0.2.0/24 masquerade
	}
}
END",
};

const IPTABLES: Firewall = Firewall {
    tool: "iptables",
    save: "iptables-save | sed '/^#/d; s/ \\[[0-9:]*\\]$//'; ip6tables-save | sed '/^#/d; s/ \\[[0-9:]*\\]$//'",
    own: "iptables-restore <<'END'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:own - [0:0]
-A FORWARD -s 192.0.2.0/24 -m comment --comment \"of its own\" -j own
-A own -p tcp -m tcp --dport 22 -j ACCEPT
-A own -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
END
ip6tables -A INPUT -s 2001:db8::/32 -j DROP",
};

/// Runs a campaign on a DUT without rules, and one on a DUT that has some.
fn is_left_as_it_was(firewall: &Firewall, programs: &str) {
    let lab = RealLab::new();
    for name in ["iptables", "ip6tables"]
        .iter()
        .flat_map(|n| ["", "-save", "-restore"].map(|end| (n, end)))
    {
        let (family, end) = name;
        lab.ssh.hosts[1].stand_in(
            &format!("{family}{end}"),
            &format!("#!/bin/sh\nexec {family}-{programs}{end} \"$@\"\n"),
        );
    }
    let path = format!("PATH={}:$PATH\n", lab.ssh.hosts[1].programs().display());
    let saved = || lab.on("dut", &format!("{path}{}", firewall.save));
    let count = format!("({}) | wc -l", firewall.save.replace('\\', "\\\\"));
    let campaign = |out: &str| {
        let plan = plan(firewall.tool, &count);
        lab.write("plan.toml", &plan);
        let ended = lab
            .linerate(&["run", "plan.toml", "--out", out])
            .run()
            .no_panic();
        let trials = super::site::trials(&lab.scratch.file(out));
        let lines = |n: usize| -> u32 {
            let said = &trials[n]["collected"][0]["output"]["Ok"];
            said.as_str()
                .and_then(|n| n.trim().parse().ok())
                .unwrap_or_else(|| panic!("{said}: {}", ended.stderr))
        };
        assert_eq!(trials.len(), 2, "{}", ended.stderr);
        // There were a thousand between, in place of the host's own (iptables) or beside them.
        assert!(
            lines(0) < 100 && lines(1) > 1000,
            "{} and {} lines",
            lines(0),
            lines(1)
        );
    };
    if programs == "legacy" {
        // The kernel has the tables built in, or other namespaces use the module: it would keep them.
        lab.write("plan.toml", &plan(firewall.tool, &count));
        let refused = lab
            .linerate(&["run", "plan.toml", "--out", "refused"])
            .run()
            .no_panic();
        let seen = lab.on("dut", "cat /proc/net/ip_tables_names");
        if seen.is_empty()
            && refused
                .stderr
                .contains("would keep an empty table filter of iptables")
        {
            lab.on(
                "dut",
                &format!("{path}iptables -t filter -S; ip6tables -t filter -S"),
            );
        }
    }
    campaign("empty");
    let is_rule = |line: &&str| line.starts_with("-A") || line.starts_with("table");
    let after = saved();
    assert_eq!(after.lines().filter(is_rule).count(), 0, "{after}");
    assert!(
        after
            .lines()
            .all(|line| !line.starts_with(':') || line.ends_with(" ACCEPT")),
        "{after}"
    );

    lab.on("dut", &format!("{path}{}", firewall.own));
    let before = saved();
    assert!(before.contains("of its own"), "{before}");
    campaign("own");
    assert_eq!(saved(), before);
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn nftables_of_the_host_is_as_it_was() {
    is_left_as_it_was(&NFTABLES, "nft");
}

#[test]
#[ignore = "needs root, openssh-server and iptables"]
fn takes_minutes_iptables_over_nftables_is_as_it_was() {
    is_left_as_it_was(&IPTABLES, "nft");
}

#[test]
#[ignore = "needs root, openssh-server and iptables"]
fn legacy_iptables_is_as_it_was() {
    is_left_as_it_was(&IPTABLES, "legacy");
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_user_s_rule_file_takes_the_place_of_the_host_s_rules() {
    let lab = RealLab::new();
    let path = format!("PATH={}:$PATH\n", lab.ssh.hosts[1].programs().display());
    let saved = || lab.on("dut", &format!("{path}{}", NFTABLES.save));
    lab.on("dut", &format!("{path}{}", NFTABLES.own));
    let before = saved();
    lab.write(
        "fw.nft",
        "#!/usr/sbin/nft -f\nflush ruleset\ntable inet fw {\n  chain forward {\n    type filter hook forward priority 0; policy drop;\n    iifname lan oifname wan ip saddr 10.0.0.0/8 accept\n  }\n}\n",
    );
    let plan = plan("nftables", "nft list ruleset");
    let made = "{ tool = \"nftables\", filter = \"stateless\", before = 1000 }";
    lab.write("plan.toml", &plan.replace(made, "{ file = \"fw.nft\" }"));
    let ended = lab
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    let trials = super::site::trials(&lab.scratch.file("records"));
    assert_eq!(trials.len(), 2, "{}", ended.stderr);
    let there = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert!(
        there.contains("iifname \"in0\" oifname \"out0\" ip saddr 198.18."),
        "{there}"
    );
    assert!(!there.contains("of its own"), "{there}");
    assert!(
        trials[1]["receiver"]["frames"].as_u64() > Some(0),
        "{}",
        trials[1]
    );
    assert_eq!(saved(), before);
}
