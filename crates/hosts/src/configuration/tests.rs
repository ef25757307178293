use super::*;
use proptest::prelude::*;

fn ends() -> [String; 2] {
    ["eth0", "eth1"].map(String::from)
}

fn of(answers: &[(&str, &str)]) -> Configuration {
    let answer = |(command, output): &(&str, &str)| Collected {
        command: (*command).into(),
        output: Ok((*output).to_string()),
    };
    Configuration::of(
        Kernel::Linux,
        &ends(),
        &answers.iter().map(answer).collect::<Vec<_>>(),
    )
}

#[test]
fn files_of_cpus() {
    let found = of(&[(
        "cpus",
        "/proc/cpuinfo:model name\t: Intel(R) Xeon(R) CPU E5-2650 v2\n\
         /proc/cpuinfo:flags\t\t: fpu vme hypervisor lm\n\
         /sys/devices/system/cpu/online:0-3\n\
         /sys/devices/system/cpu/cpu0/topology/physical_package_id:0\n\
         /sys/devices/system/cpu/cpu0/topology/core_id:0\n\
         /sys/devices/system/cpu/cpu0/topology/thread_siblings_list:0,2\n\
         /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave\n\
         /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq:1200000\n\
         /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq:2600000\n\
         /sys/devices/system/node/node1/cpulist:1,3\n\
         /sys/devices/system/cpu/vulnerabilities/meltdown:Mitigation: PTI\n\
         /sys/class/dmi/id/product_name:Standard PC (Q35 + ICH9, 2009)\n",
    )]);
    let machine = found.machine;
    assert_eq!(
        machine.model.as_deref(),
        Some("Intel(R) Xeon(R) CPU E5-2650 v2")
    );
    assert_eq!(
        machine.virtual_machine.as_deref(),
        Some("Standard PC (Q35 + ICH9, 2009)")
    );
    assert_eq!((machine.cpus.len(), &machine.nodes[&1]), (4, &vec![1, 3]));
    let cpu = &machine.cpus[0];
    assert_eq!(
        (cpu.core, cpu.siblings.as_slice()),
        (Some(0), [0, 2].as_slice())
    );
    assert_eq!(cpu.governor.as_deref(), Some("powersave"));
    assert_eq!((cpu.frequency, cpu.possible), (Some(1.2e9), Some(2.6e9)));
    assert_eq!(machine.mitigations["meltdown"], "Mitigation: PTI");
}

#[test]
fn files_of_interfaces() {
    let found = of(&[(
        "interfaces eth0 eth1",
        "/proc/irq/41/eth0-TxRx-0/\n/proc/irq/42/eth0-TxRx-1/\n/proc/irq/9/acpi/\n\
         /sys/class/net/eth0/ifindex:2\n\
         /sys/class/net/eth0/speed:10000\n\
         /sys/class/net/eth0/threaded:1\n\
         /sys/class/net/eth0/queues/rx-0/rps_cpus:00000001,00000003\n\
         /sys/class/net/eth0/queues/rx-0/rps_flow_cnt:4096\n\
         /sys/class/net/eth0/queues/tx-0/xps_cpus:2\n\
         /sys/class/net/eth0/device/numa_node:1\n\
         /sys/class/net/eth0/device/current_link_speed:2.5 GT/s PCIe\n\
         /sys/class/net/eth0/device/max_link_speed:8.0 GT/s PCIe\n\
         /sys/class/net/eth0/device/current_link_width:4\n\
         /sys/class/net/eth0/device/max_link_width:8\n\
         /sys/class/net/eth0/device/msi_irqs/41:msix\n\
         /sys/class/net/eth0/device/msi_irqs/42:msix\n\
         /proc/irq/41/smp_affinity_list:0-3\n\
         /proc/irq/41/effective_affinity_list:2\n\
         /proc/net/packet:sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
         /proc/net/packet:0000000000000000 3      3    0003   2     1 0      0      12345\n\
         /proc/net/packet:0000000000000000 3      3    88cc   2     1 0      0      12346\n\
         /proc/net/packet:0000000000000000 3      3    0003   0     1 0      0      12347\n\
         /proc/net/fib_triestat:Main:\n/proc/net/fib_triestat:\tPrefixes:       800\n\
         /proc/net/fib_triestat:Null ptrs: 4\n/proc/net/fib_triestat:Local:\n/proc/net/fib_triestat:\tPrefixes:       800\n\
         /proc/net/rt6_stats:000d 0009 0000 0010 0000 0000 0000\n",
    )]);
    let card = found.card("eth0").unwrap();
    assert!(card.found && !found.card("eth1").unwrap().found);
    assert_eq!(
        (card.speed, card.napi_threaded, card.taps),
        (Some(1e10), Some(true), Some(2))
    );
    assert_eq!(
        card.receive[&0],
        ReceiveQueue {
            rps: vec![0, 1, 32],
            rfs: 4096
        }
    );
    assert_eq!(card.xps[&0], [1]);
    let Pci {
        node,
        width,
        most_width,
        speed,
        most_speed,
        ..
    } = card.pci;
    assert_eq!((node, width, most_width), (Some(1), Some(4), Some(8)));
    assert_eq!((speed, most_speed), (Some(2.5), Some(8.0)));
    let names: Vec<&str> = card
        .interrupts
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["eth0-TxRx-0", "eth0-TxRx-1"]);
    assert_eq!(
        (
            card.interrupts[0].allowed.len(),
            card.interrupts[0].cpus.as_slice()
        ),
        (4, [2].as_slice())
    );
    assert_eq!(
        found.routes,
        BTreeMap::from([("IPv4".into(), 800), ("IPv6".into(), 16)])
    );
}

#[test]
fn ethtool_in_sections() {
    let found = of(&[(
        "ethtool eth0",
        "==> -k eth0 <==\nFeatures for eth0:\nrx-checksumming: on [fixed]\n\ttx-checksum-ipv4: off\n\
         large-receive-offload: on\nrx-udp-gro-forwarding: off\n\
         ==> -l eth0 <==\nChannel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\n\
         Other:\t\t1\nCombined:\t63\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t8\n\
         ==> -i eth0 <==\ndriver: ixgbe\nversion: 6.1.0\nfirmware-version: 0x8000095c\nbus-info: 0000:01:00.0\n\
         ==> -g eth0 <==\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
         Current hardware settings:\nRX:\t\t512\nTX:\t\t512\n\
         ==> -c eth0 <==\nCoalesce parameters for eth0:\nAdaptive RX: on  TX: off\nrx-usecs: 1\ntx-usecs: n/a\n\
         ==> -a eth0 <==\nPause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n\
         ==> -x eth0 <==\nRX flow hash indirection table for eth0 with 8 RX ring(s):\n    0:      0     1     2     3\n\
         \x20   4:      4     5     6     7\nRSS hash key:\n6d:5a:56:da\nRSS hash function:\n    toeplitz: on\n\
         ==> -n eth0 rx-flow-hash udp4 <==\nUDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n\n\
         ==> -n eth0 rx-flow-hash tcp4 <==\nCannot get RX network flow hashing options: Operation not supported\n",
    )]);
    let card = found.card("eth0").unwrap();
    assert_eq!(card.driver.as_deref(), Some("ixgbe"));
    assert_eq!(card.pci.slot.as_deref(), Some("0000:01:00.0"));
    assert!(card.features["large-receive-offload"] && !card.features["rx-udp-gro-forwarding"]);
    assert_eq!(
        card.combined_queues,
        Bounded {
            now: Some(8),
            most: Some(63)
        }
    );
    assert_eq!(
        (card.rx_queues, card.receive_queues()),
        (Bounded::default(), Some(8))
    );
    assert_eq!(
        card.rx_ring,
        Bounded {
            now: Some(512),
            most: Some(4096)
        }
    );
    let expected = [
        ("adaptive-rx", "on"),
        ("adaptive-tx", "off"),
        ("rx-usecs", "1"),
    ];
    assert_eq!(
        card.coalescing,
        expected.map(|(k, v)| (k.into(), v.into())).into()
    );
    assert_eq!((card.pause.rx, card.pause.tx), (Some(true), Some(false)));
    assert_eq!(card.indirection, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(card.hash_key.as_deref(), Some("6d:5a:56:da"));
    assert_eq!(card.hash_fields["udp4"], ["IP SA", "IP DA"]);
    assert_eq!(found.unanswered.len(), 1);
    let lacks = &found.unanswered[0];
    assert_eq!(lacks.question, "ethtool -n eth0 rx-flow-hash tcp4");
    assert!(lacks.why.ends_with("Operation not supported"), "{lacks:?}");
}

/// Settings that drivers of virtual cards lack are no settings.
#[test]
fn refusals_of_ethtool_are_no_facts() {
    let no = "netlink error: Operation not supported\n";
    let found = of(&[(
        "ethtool eth0",
        &format!(
            "==> -c eth0 <==\n{no}==> -a eth0 <==\n{no}==> -l eth0 <==\n{no}\
             ==> -x eth0 <==\nRX flow hash indirection table for eth0 with 4 RX ring(s):\nOperation not supported\n\
             RSS hash key:\nOperation not supported\nRSS hash function:\n    toeplitz: on\n    xor: off\n    crc32: off\n\
             ==> -n eth0 rx-flow-hash udp4 <==\nUDP over IPV4 flows use these fields for computing Hash flow key:\nNone\n"
        ),
    )]);
    let card = found.card("eth0").unwrap();
    assert!(
        card.coalescing.is_empty() && card.hash_fields.is_empty(),
        "{card:?}"
    );
    let silent: Vec<_> = found
        .unanswered
        .iter()
        .map(|of| (of.question.as_str(), of.why.as_str()))
        .collect();
    let why = "netlink error: Operation not supported";
    let expected = [
        ("ethtool -c eth0", why),
        ("ethtool -a eth0", why),
        ("ethtool -l eth0", why),
        ("ethtool -x eth0", "Operation not supported"),
        ("ethtool -n eth0 rx-flow-hash udp4", "None"),
    ];
    assert_eq!(silent, expected);
}

#[test]
fn links_and_queueing() {
    let found = of(&[
        (
            "ip -d -j addr show",
            r#"[{"ifname":"lo","mtu":65536},
            {"ifname":"eth0","mtu":9000,"addr_info":[{"local":"198.18.1.1","prefixlen":24}],"master":"br0","xdp":{"mode":2,"prog":{"id":3,"name":"pass"}},
             "linkinfo":{"info_kind":"veth"}},
            {"ifname":"br0","mtu":1500,"linkinfo":{"info_kind":"bridge","info_data":{"vlan_filtering":0,"nf_call_iptables":1}}},
            {"ifname":"eth1.7","link":"eth1","linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":7}}}]"#,
        ),
        (
            "tc eth0 eth1",
            r#"==> qdisc <==
[{"kind":"fq_codel","handle":"0:","dev":"eth0","root":true},{"kind":"clsact","handle":"ffff:","dev":"eth1","parent":"ffff:fff1"}]
==> ingress eth1 <==
[{"protocol":"ip","pref":1,"kind":"u32","chain":0},{"protocol":"ip","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800"}}]
"#,
        ),
        ("neighbours", "4 PERMANENT\n12 FAILED\n"),
    ]);
    let card = found.card("eth0").unwrap();
    assert_eq!((card.mtu, card.kind.as_deref()), (Some(9000), Some("veth")));
    assert_eq!(
        (card.master.as_deref(), card.master_kind.as_deref()),
        (Some("br0"), Some("bridge"))
    );
    assert_eq!(
        card.xdp,
        Some(Xdp {
            mode: "generic".into(),
            program: Some("pass".into())
        })
    );
    let of_links: Vec<_> = found
        .links
        .iter()
        .map(|l| (l.name.as_str(), l.kind.as_str(), l.below.as_deref()))
        .collect();
    assert_eq!(
        of_links,
        [("br0", "bridge", None), ("eth1.7", "vlan", Some("eth1"))]
    );
    assert_eq!(found.links[0].settings["nf_call_iptables"], "1");
    assert_eq!(
        card.qdiscs,
        [Qdisc {
            kind: "fq_codel".into(),
            parent: "root".into()
        }]
    );
    assert_eq!(found.card("eth1").unwrap().filters["ingress"], 1);
    assert_eq!(found.neighbours["FAILED"], 12);
}

#[test]
fn rules_are_counted_by_chain() {
    let found = of(&[
        (
            "nft",
            r#"table inet f {
	set blocked {
		type ipv4_addr
		flags interval
	}

	flowtable fast {
		hook ingress priority filter
		devices = { "eth0", "eth1" }
	}

	chain forward {
		type filter hook forward priority filter - 10; policy drop;
		comment "a { brace"
		ct state vmap { established : accept, related : accept,
				 new : jump fresh }
		ip saddr @blocked counter drop
		ip daddr 10.0.0.1 log prefix "no { " drop
		goto rest
	}

	chain fresh {
		accept
	}
	chain rest {
		tcp dport { 22, 80 } accept
	}
	chain input {
		type filter hook input priority filter; policy accept;
		ip saddr 10.0.0.1 drop
	}
}
table ip nat { # handle 3
	chain post {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "eth1" masquerade
	}
}
"#,
        ),
        (
            "iptables",
            "==> ip <==\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [1:2]\n:mine - [0:0]\n\
             -A INPUT -j ACCEPT\n-A FORWARD -m conntrack --ctstate NEW -j mine\n-A mine -m set --match-set x src -j DROP\n\
             -A mine -j LOG\nCOMMIT\n==> ip6 <==\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n",
        ),
    ]);
    let [nft, iptables] = found.rule_sets.as_slice() else {
        panic!("{:?}", found.rule_sets)
    };
    assert_eq!(
        (nft.filter.as_str(), nft.sets, nft.flow_tables.as_slice()),
        ("nftables", 1, ["fast".to_string()].as_slice())
    );
    let forwarding: Vec<(&str, u64)> = nft
        .forwarding()
        .iter()
        .map(|c| (c.name.as_str(), c.rules))
        .collect();
    assert_eq!(
        forwarding,
        [("forward", 4), ("post", 1), ("fresh", 1), ("rest", 1)]
    );
    let chain = nft.longest().unwrap();
    assert_eq!(
        (chain.hook.as_deref(), chain.priority.as_deref()),
        (Some("forward"), Some("filter - 10"))
    );
    assert_eq!(
        (chain.lookups, chain.counting, chain.logging, chain.tracking),
        (2, 1, 1, 1)
    );
    assert!(nft.tracks());
    let chain = iptables.longest().unwrap();
    assert_eq!(
        (
            chain.name.as_str(),
            chain.rules,
            chain.lookups,
            chain.logging
        ),
        ("mine", 2, 1, 1)
    );
    let names: Vec<&str> = iptables
        .forwarding()
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(names, ["FORWARD", "FORWARD", "mine"]);
    assert!(iptables.tracks());
}

#[test]
fn silence_has_its_reason_and_a_cut_answer_says_so() {
    let long = "12 STALE\n".repeat(MOST_BYTES);
    let kept = kept(long, MOST_BYTES);
    assert!(kept.len() <= MOST_BYTES + CUT.len() && kept.ends_with(CUT));
    let answers = [
        Collected {
            command: "nft".into(),
            output: Err("the program is not there".into()),
        },
        Collected {
            command: "neighbours".into(),
            output: Ok(kept),
        },
    ];
    let found = Configuration::of(Kernel::Linux, &ends(), &answers);
    let said: Vec<&str> = found.unanswered.iter().map(|u| u.why.as_str()).collect();
    assert_eq!(
        said,
        [
            "the program is not there",
            "only the first 256 KiB are known"
        ]
    );
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Configuration>(&json).unwrap(), found);
}

#[test]
fn questions_change_nothing_and_quote_nothing_strange() {
    for kernel in [
        Kernel::Linux,
        Kernel::FreeBsd,
        Kernel::OpenBsd,
        Kernel::NetBsd,
    ] {
        let strange = ["a b".to_string(), "$(reboot)".to_string()];
        for argv in questions(kernel, &strange) {
            assert!(
                argv.iter().skip(3).all(|word| !word.contains(['(', ' '])),
                "{argv:?}"
            );
        }
    }
    let labels: Vec<String> = questions(Kernel::Linux, &ends())
        .iter()
        .map(|argv| label(argv))
        .collect();
    assert!(
        labels.contains(&"ethtool eth1".to_string()) && labels.contains(&"cpus".to_string()),
        "{labels:?}"
    );
}

proptest! {
    #[test]
    fn hostile_answers_do_no_harm(parts in proptest::collection::vec(prop_oneof![
        Just("/sys/class/net/eth0/queues/rx-4294967295/rps_cpus:"), Just("ffffffff,"), Just("/proc/irq/1/x/"),
        Just("/sys/devices/system/cpu/cpu99999999999/topology/core_id:1"), Just("\n"), Just("==> -x eth0 <=="),
        Just("==> -k eth0 <=="), Just("    0: 1 2 3"), Just("{"), Just("}"), Just("table a b {"), Just("chain c {"),
        Just("\t\tjump c"), Just("type filter hook forward priority 0; policy accept;"), Just("[{\"ifname\":\"eth0\"}]"),
        Just("\""), Just("*filter"), Just(":A B [0:0]"), Just("-A A -j A"), Just("é\u{0}"), Just(": :"), Just("==> ip -j rule show <=="), Just("==> hooks <=="), Just("hook x {"), Just("-4294967296 f [m]"),
        Just("[{\"options\":{\"prog\":{\"id\":-1}}}]"), Just("==> net <=="), Just("[{\"tc\":[{\"kind\":\"tcx\"}]}]"),
    ], 0..40), command in 0usize..14) {
        let commands = ["cpus", "interfaces eth0", "sysctl", "ip -d -j addr show", "tc", "neighbours", "nft", "iptables", "ethtool eth0",
            "way 192.0.2.1 192.0.2.2", "policy", "hooks", "programs", "tracing"];
        let found = of(&[(commands[command], &parts.concat())]);
        found.rule_sets.iter().for_each(|set| assert!(set.longest().is_none_or(|chain| chain.rules < 100)));
        prop_assert!(found.on_path(&[]).0.len() <= 100);
        prop_assert!(found.machine.cpus.len() <= 8193);
    }
}
