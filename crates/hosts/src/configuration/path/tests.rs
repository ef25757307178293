//! Answers of a real Linux (iproute2 6.1, Linux 6.18), and the lists that are made of them.

use super::*;
use crate::systems::Kernel;
use linerate_measure::record::{Collected, Met};

const LINKS: &str = r#"[{"ifindex":1,"ifname":"lo","linkinfo":{}},
{"ifindex":22,"ifname":"in1","linkinfo":{"info_kind":"veth"}},
{"ifindex":23,"ifname":"out1","master":"br0","linkinfo":{"info_kind":"veth","info_slave_kind":"bridge"},
 "xdp":{"mode":2,"prog":{"id":105,"name":"pass","tag":"614b434cd8324ecc","jited":1},
 "attached":[{"mode":2,"prog":{"id":105,"name":"pass","tag":"614b434cd8324ecc","jited":1}}]}},
{"ifindex":24,"ifname":"br0","linkinfo":{"info_kind":"bridge","info_data":{}}},
{"ifindex":25,"link":"br0","ifname":"v7","linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":7}}},
{"ifindex":26,"ifname":"docker0","linkinfo":{"info_kind":"bridge"}},
{"ifindex":27,"ifname":"ifb0","linkinfo":{"info_kind":"ifb"}}]"#;

fn found(answers: &[(&str, &str)]) -> Configuration {
    let answer = |(command, text): &(&str, &str)| Collected {
        command: command.to_string(),
        output: Ok(text.to_string()),
    };
    let answers: Vec<Collected> = answers.iter().map(answer).collect();
    Configuration::of(Kernel::Linux, &["in1".into(), "out1".into()], &answers)
}

/// The entries as `name @ place`.
fn listed(answers: &[(&str, &str)]) -> Vec<String> {
    let (items, _) = found(answers).on_path(&[]);
    let say = |item: Item| match item.place.as_str() {
        "" => item.name,
        place => format!("{} @ {place}", item.name),
    };
    items.into_iter().map(say).collect()
}

#[test]
fn plain_routing_has_nothing_else() {
    let links = LINKS
        .replace(r#""master":"br0","#, "")
        .split("\"xdp\"")
        .next()
        .unwrap()
        .to_string();
    let links = format!("{}}}]", links.trim_end().trim_end_matches(','));
    let rules = r#"==> ip -j rule show <==
[{"priority":0,"src":"all","table":"local"},{"priority":32766,"src":"all","table":"main"},{"priority":32767,"src":"all","table":"default"}]
==> ip -6 -j rule show <==
[{"priority":0,"src":"all","table":"local"},{"priority":32766,"src":"all","table":"main"}]
==> ip xfrm policy count <==
	 SPD IN  0 OUT 0 FWD 0
==> ip xfrm state count <==
	 SAD count 0
"#;
    let way = r#"==> from 198.18.10.1 <==
[{"type":"unicast","dst":"198.18.10.1","gateway":"198.18.1.2","dev":"in1","table":"main","prefsrc":"198.18.1.1","flags":[],"uid":0,"cache":[]}]
==> to 198.19.10.1 <==
[{"type":"unicast","dst":"198.19.0.0/16","gateway":"198.19.1.2","dev":"out1","table":"main","protocol":"static","scope":"global","flags":[]}]
"#;
    let answers = [
        ("ip -d -j addr show", links.as_str()),
        ("policy", rules),
        ("way 198.19.10.1 198.18.10.1", way),
        ("nft", ""),
        (
            "tc",
            "==> qdisc <==\n[{\"kind\":\"noqueue\",\"dev\":\"in1\",\"root\":true}]\n",
        ),
        (
            "tracing",
            "==> current_tracer <==\nnop\n==> set_event <==\n",
        ),
        (
            "sysctl",
            "net.core.dev_weight = 64\nnet.ipv4.conf.all.rp_filter = 0\n",
        ),
    ];
    assert_eq!(listed(&answers), Vec::<String>::new());
    let to: IpAddr = "198.19.10.1".parse().unwrap();
    let (_, ways) = found(&answers).on_path(&[to]);
    assert_eq!(
        ways,
        ["to 198.19.10.1: via 198.19.1.2, device out1, table main"]
    );
}

#[test]
fn routes_and_policies_are_told() {
    let rules = "==> ip -j rule show <==\n[{\"priority\":0,\"src\":\"all\",\"table\":\"local\"},\
        {\"priority\":32765,\"src\":\"203.0.113.7\",\"table\":\"100\"},{\"priority\":32766,\"src\":\"all\",\"table\":\"main\",\"fwmark\":\"0x1\"}]\n\
        ==> ip xfrm policy count <==\n\t SPD IN  0 OUT 1 FWD 2\n==> ip xfrm state count <==\n\t SAD count 0\n";
    let way = r#"==> to 198.19.8.4 <==
[{"type":"unicast","dst":"198.19.8.0/24","table":"100","protocol":"boot","scope":"global","flags":[],"nexthops":[{"gateway":"198.19.0.2","dev":"out1","weight":1,"flags":[]},{"gateway":"198.19.0.3","dev":"v7","weight":2,"flags":[]}]}]
==> to 198.19.9.9 <==
[{"type":"unicast","dst":"198.19.9.0/24","encap":"bpf","out":"l.o:[prog]","gateway":"198.19.0.2","dev":"out1","table":"main","protocol":"boot","scope":"global","flags":[]}]
==> to 198.19.7.7 <==
RTNETLINK answers: Network is unreachable
==> to 198.19.6.6 <==
RTNETLINK answers: No route to host
"#;
    let answers = [("policy", rules), ("way 198.19.8.4 198.18.0.1", way)];
    assert_eq!(
        listed(&answers),
        [
            "2 next hops for 198.19.8.4",
            "table 100 for 198.19.8.4",
            "encapsulation bpf l.o:[prog] for 198.19.9.9",
            "unreachable for 198.19.6.6",
            "32765: src 203.0.113.7 table 100",
            "32766: fwmark 0x1 src all table main",
            "2 policies forward, 1 policy out",
        ]
    );
    let lacking = found(&answers).not_known_of_path();
    assert_eq!(
        lacking,
        [
            "the routes of the test's addresses (to 198.19.7.7: RTNETLINK answers: Network is unreachable)"
        ]
    );
}

#[test]
fn devices_are_those_of_the_way_with_what_hangs_there() {
    let qdiscs = r#"==> qdisc <==
[{"kind":"noqueue","handle":"0:","dev":"in1","root":true},{"kind":"htb","handle":"1:","dev":"out1","root":true},{"kind":"clsact","handle":"ffff:","dev":"in1","parent":"ffff:fff1"},
{"kind":"htb","handle":"1:","dev":"docker0","root":true},{"kind":"fq_codel","dev":"br0","root":true}]
==> ingress in1 <==
[{"protocol":"all","pref":49151,"kind":"bpf","chain":0},{"protocol":"all","pref":49151,"kind":"bpf","chain":0,"options":{"handle":"0x1","bpf_name":"l.o:[prog]","direct-action":true,"prog":{"id":100,"name":"look","tag":"f03f3c893109830e","jited":1}}},
{"kind":"u32","options":{"fh":"800:","ht_divisor":1}},{"kind":"u32","options":{"fh":"800::800","actions":[{"order":1,"kind":"mirred","mirred_action":"mirror","to_dev":"ifb0"}]}}]
==> classes out1 <==
class htb 1:1 root prio 0 rate 100Gbit ceil 100Gbit burst 0b cburst 0b
"#;
    let files = "/proc/net/packet:sk RefCnt Type Proto  Iface R Rmem   User   Inode\n\
        /proc/net/packet:00000000aa 3      3    0003   22     1 0      0      1234\n\
        /proc/net/packet:00000000bb 3      3    88cc   22     1 0      0      1235\n\
        /proc/net/packet:00000000cc 3      3    0003   26     1 0      0      1236\n";
    let way = r#"==> to 198.19.8.4 <==
[{"type":"unicast","dst":"198.19.8.0/24","dev":"v7","table":"main","flags":[]}]"#;
    let answers = [
        ("interfaces in1 out1", files),
        (
            "sysctl",
            "net.core.default_qdisc = fq_codel\nnet.bridge.bridge-nf-call-iptables = 1\nnet.ipv4.conf.br0.rp_filter = 2\n",
        ),
        ("ip -d -j addr show", LINKS),
        ("tc", qdiscs),
        ("way 198.19.8.4 198.18.0.1", way),
        (
            "programs",
            "==> tcx <==\n[{\"devname\":\"out1\",\"id\":9,\"kind\":\"tcx/egress\",\"name\":\"double\",\"tag\":\"1f\"}]\n",
        ),
    ];
    assert_eq!(
        listed(&answers),
        [
            "1 packet socket (all protocols) @ in1",
            "bridge @ br0",
            "vlan 7 on br0 @ v7",
            "ifb @ ifb0",
            "br_netfilter (net.bridge.bridge-nf-call-iptables = 1)",
            "htb, 1 class @ out1",
            "clsact @ in1",
            "tc program look (id 100, tag f03f3c893109830e) @ in1 ingress",
            "1 u32 filter (mirred) @ in1 ingress",
            "XDP program pass (id 105, tag 614b434cd8324ecc), generic mode @ out1",
            "tcx/egress program double (id 9, tag 1f) @ out1",
            "net.ipv4.conf.br0.rp_filter = 2 (default 0)",
        ]
    );
}

#[test]
fn firewalls_are_told_with_sets_and_extensions() {
    let rules = "table inet t {\n\tset blocked {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t}\n\n\tchain c {\n\t\t\
        type filter hook forward priority filter; policy accept;\n\t\tip saddr @blocked ct state new drop\n\t\t\
        udp dport 9 queue num 3\n\t\tct helper set \"sip\"\n\t\tlog prefix \"x \" accept\n\t}\n}\n\
        table bridge b {\n\tchain f {\n\t\ttype filter hook forward priority filter; policy accept;\n\t}\n}\n";
    let answers = [
        ("nft", rules),
        (
            "hooks",
            "==> nfnetlink_queue <==\n    3   1234     0 2 65531     0     0        0  1\n==> hooks <==\nfamily ip {\n\thook prerouting {\n\t\t-0000000200 ipv4_conntrack_in [nf_conntrack]\n\t\t 0000000000 chain inet t c [nf_tables]\n\t\t-0000000100 ip_vs_in_hook [ip_vs]\n\t}\n}\n",
        ),
        (
            "sysctl",
            "net.netfilter.nf_conntrack_acct = 1\nnet.netfilter.nf_conntrack_count = 7\n",
        ),
    ];
    assert_eq!(
        listed(&answers),
        [
            "nftables bridge b: 1 base chain, no rules @ forward",
            "nftables inet t: 1 base chain, 4 rules @ forward",
            "1 rule of nftables that log",
            "nftables set blocked (ipv4_addr, interval)",
            "NFQUEUE 3",
            "ip_vs_in_hook @ prerouting",
            "conntrack, 7 entries when linerate looked",
            "conntrack: helpers",
            "net.netfilter.nf_conntrack_acct = 1 (default 0)",
        ]
    );
    // Without a rule that tracks, frames meet no accounting.
    assert!(
        listed(&answers[2..])
            .iter()
            .any(|name| name.contains("acct"))
    );
    let none = [(
        "sysctl",
        "net.netfilter.nf_conntrack_acct = 1\nnet.netfilter.nf_conntrack_count = 0\n",
    )];
    assert_eq!(listed(&none), Vec::<String>::new());
}

#[test]
fn frames_pass_no_table_of_the_other_ip_version() {
    let table = |family: &str| {
        format!(
            "table {family} t {{\n\tchain c {{\n\t\ttype filter hook forward priority filter; policy accept;\n\t}}\n}}\n"
        )
    };
    let rules = ["ip", "ip6", "inet"].map(table).concat();
    let met = |addresses: &[&str]| -> Vec<String> {
        let addresses: Vec<_> = addresses.iter().map(|at| at.parse().unwrap()).collect();
        let (items, _) = found(&[("nft", &rules)]).on_path(&addresses);
        items.into_iter().map(|item| item.name).collect()
    };
    let [ip, ip6, inet] =
        ["ip", "ip6", "inet"].map(|family| format!("nftables {family} t: 1 base chain, no rules"));
    assert_eq!(met(&["198.18.0.1"]), [inet.clone(), ip.clone()]);
    assert_eq!(met(&["2001:2::1"]), [inet.clone(), ip6.clone()]);
    assert_eq!(met(&[]), [inet, ip, ip6]);
}

#[test]
fn tracing_is_told_by_name_where_frames_meet_it() {
    let answer = "==> current_tracer <==\nfunction\n==> set_event <==\nfib:fib_table_lookup\nsched:sched_switch\nsched:sched_waking\n\
        ==> enabled_functions <==\nhead: cannot open 'enabled_functions' for reading: Operation not permitted\n";
    let answers = [("tracing", answer)];
    assert_eq!(
        listed(&answers),
        [
            "tracer function",
            "event fib:fib_table_lookup",
            "2 other events"
        ]
    );
    let kinds = found(&answers)
        .on_path(&[])
        .0
        .into_iter()
        .map(|item| item.kind);
    assert!(kinds.into_iter().all(|kind| kind == Met::Tracing));
    let lacking = found(&answers).not_known_of_path();
    assert_eq!(
        lacking,
        ["tracing (head: cannot open 'enabled_functions' for reading: Operation not permitted)"]
    );
}
