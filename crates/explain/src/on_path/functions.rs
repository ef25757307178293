//! The functions of kernels that belong to what frames meet, by its kind and its word.

use linerate_hosts::configuration::Item;
use linerate_measure::record::Met;

/// Rows: kind, word (`*`: any), functions. The first that fits counts.
type Row = (Met, &'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    (
        Met::Route,
        "multipath",
        &[
            "fib_select_multipath",
            "fib_select_path",
            "fib_multipath_hash",
            "rt6_multipath_hash",
            "fib6_select_path",
        ],
    ),
    (Met::Route, "encap", &["lwtunnel_*"]),
    (
        Met::Route,
        "nexthop",
        &["nexthop_*", "fib_select_multipath"],
    ),
    (Met::Route, "table", &["fib_rules_lookup"]),
    (Met::PolicyRule, "*", &["fib_rules_lookup"]),
    (Met::Ipsec, "ipsec", &["ipsec*", "key_*", "esp_*", "ah_*"]),
    (
        Met::Ipsec,
        "*",
        &[
            "__xfrm_policy_check*",
            "__xfrm_route_forward",
            "xfrm_lookup*",
            "xfrm_policy_lookup*",
            "xfrm_output*",
            "xfrm_input",
            "esp_*",
            "esp6_*",
        ],
    ),
    (Met::PacketFilter, "nftables", &["nft_do_chain*"]),
    (
        Met::PacketFilter,
        "bridge",
        &["nft_do_chain*", "ebt_do_table*"],
    ),
    (
        Met::PacketFilter,
        "iptables",
        &["ipt_do_table*", "ip6t_do_table*"],
    ),
    (
        Met::PacketFilter,
        "flow tables",
        &["nf_flow_offload_*", "flow_offload_*"],
    ),
    (Met::PacketFilter, "pf", &["pf_test*"]),
    (Met::PacketFilter, "ipfw", &["ipfw_chk"]),
    (Met::PacketFilter, "ipf", &["ipf_check", "fr_check"]),
    (
        Met::Set,
        "nftables",
        &[
            "nft_lookup_eval*",
            "nft_dynset_*",
            "nft_rbtree_*",
            "nft_hash_*",
            "nft_rhash_*",
            "nft_pipapo_*",
            "nft_bitmap_*",
        ],
    ),
    (Met::Logging, "log", &["nf_log_*", "nfulnl_*"]),
    (Met::Logging, "ipfw", &["ipfw_log*"]),
    (Met::Logging, "pf", &["pflog_packet"]),
    (
        Met::UserQueue,
        "*",
        &["nf_queue*", "__nf_queue*", "nfqnl_*"],
    ),
    (
        Met::ConnectionTracking,
        "conntrack",
        &[
            "nf_conntrack_*",
            "__nf_conntrack_*",
            "nf_ct_*",
            "__nf_ct_*",
            "nf_confirm*",
            "ipv4_conntrack_*",
            "ipv6_conntrack_*",
            "ipv4_confirm*",
            "ipv6_confirm*",
            "resolve_normal_ct*",
            "init_conntrack*",
            "early_drop*",
        ],
    ),
    (
        Met::ConnectionTracking,
        "helpers",
        &[
            "nf_ct_helper*",
            "__nf_ct_try_assign_helper",
            "nf_nat_helper*",
            "nft_ct_helper_*",
            "sip_help*",
            "ftp_help",
            "help",
        ],
    ),
    (
        Met::ConnectionTracking,
        "nat",
        &[
            "nf_nat_*",
            "__nf_nat_*",
            "nft_masq_*",
            "nft_nat_*",
            "nft_redir_*",
            "masquerade_tg*",
        ],
    ),
    (
        Met::ConnectionTracking,
        "net.netfilter.nf_conntrack_acct",
        &["nf_ct_acct_*"],
    ),
    (
        Met::ConnectionTracking,
        "net.netfilter.nf_conntrack_checksum",
        &["nf_checksum*", "nf_ip_checksum", "nf_ip6_checksum"],
    ),
    (
        Met::ConnectionTracking,
        "pf",
        &["pf_find_state*", "pf_test_state*", "pf_create_state*"],
    ),
    (Met::ConnectionTracking, "ipfw", &["ipfw_dyn_*"]),
    (
        Met::Program,
        "generic",
        &[
            "do_xdp_generic*",
            "netif_receive_generic_xdp*",
            "bpf_prog_run_generic_xdp*",
        ],
    ),
    (
        Met::QueueingDiscipline,
        "pf",
        &["altq_*", "hfsc_*", "cbq_*", "priq_*", "fairq_*"],
    ),
    (
        Met::QueueingDiscipline,
        "clsact",
        &["tc_run*", "tcx_run*", "sch_handle_*"],
    ),
    (
        Met::QueueingDiscipline,
        "ingress",
        &["tc_run*", "tcx_run*", "sch_handle_ingress*"],
    ),
    (
        Met::PacketSocket,
        "*",
        &[
            "packet_rcv*",
            "tpacket_rcv*",
            "dev_queue_xmit_nit*",
            "run_filter*",
            "bpf_mtap*",
            "bpf_tap*",
        ],
    ),
    (Met::Device, "bridge", &["br_*", "bridge_*"]),
    (Met::Device, "vlan", &["vlan_*"]),
    (Met::Device, "vxlan", &["vxlan_*"]),
    (Met::Device, "bond", &["bond_*"]),
    (Met::Device, "team", &["team_*"]),
    (Met::Device, "macvlan", &["macvlan_*"]),
    (Met::Device, "macvtap", &["macvlan_*", "macvtap_*"]),
    (Met::Device, "ipvlan", &["ipvlan_*"]),
    (Met::Device, "vrf", &["vrf_*", "l3mdev_*"]),
    (Met::Device, "wireguard", &["wg_*"]),
    (Met::Device, "ifb", &["ifb_*"]),
    (
        Met::Device,
        "gre",
        &["gre_*", "ipgre_*", "__gre_*", "ip_tunnel_*"],
    ),
    (
        Met::Device,
        "gretap",
        &["gre_*", "ipgre_*", "__gre_*", "ip_tunnel_*"],
    ),
    (Met::Device, "ipip", &["ipip_*", "ip_tunnel_*"]),
    (Met::Device, "sit", &["sit_*", "ipip6_*", "ip_tunnel_*"]),
    (Met::Device, "geneve", &["geneve_*"]),
    (Met::Device, "tun", &["tun_*"]),
    (Met::Device, "xfrm", &["xfrmi_*"]),
    (Met::Device, "netkit", &["netkit_*"]),
    (Met::Device, "lagg", &["lagg_*"]),
    (Met::Device, "wg", &["wg_*"]),
    (Met::Device, "gif", &["gif_*", "in_gif_*"]),
    (Met::Setting, "rp_filter", &["__fib_validate_source*"]),
    (Met::Setting, "log_martians", &["ip_handle_martian_source*"]),
    (
        Met::Tracing,
        "event",
        &["trace_event_*", "__traceiter_*", "perf_trace_*"],
    ),
    (
        Met::Tracing,
        "tracer",
        &[
            "function_trace_*",
            "ftrace_*",
            "arch_ftrace_*",
            "function_graph_*",
        ],
    ),
    (
        Met::Tracing,
        "probe",
        &[
            "kprobe_*",
            "kretprobe_*",
            "optimized_callback*",
            "arch_ftrace_*",
            "kprobe_ftrace_*",
        ],
    ),
    (
        Met::Tracing,
        "function",
        &["ftrace_*", "arch_ftrace_*", "bpf_trampoline_*"],
    ),
    (Met::Hook, "br_netfilter", &["br_nf_*", "br_validate_*"]),
    (Met::Hook, "netgraph", &["ng_*"]),
    (Met::Hook, "dummynet", &["dummynet_*"]),
    (Met::Hook, "ipsec", &["ipsec*", "key_*"]),
];

/// The functions of a kind and a word.
pub(super) fn of(kind: Met, word: &str) -> Vec<String> {
    let row = ROWS
        .iter()
        .find(|(of, wanted, _)| *of == kind && (*wanted == word || *wanted == "*"));
    if let Some((.., functions)) = row {
        return functions.iter().map(|name| name.to_string()).collect();
    }
    match kind {
        Met::QueueingDiscipline => {
            let own = ["enqueue", "dequeue"].map(|what| format!("{word}_{what}*"));
            let common = ["__dev_xmit_skb", "sch_direct_xmit", "__qdisc_run*"].map(String::from);
            own.into_iter().chain(common).collect()
        }
        // `u32 mirred`: the kind of the filters, and those of their actions.
        Met::TrafficFilter => {
            let mut words = word.split(' ');
            let filter = words.next().map(|filter| match filter {
                "flower" => "fl_classify*".to_string(),
                "matchall" => "mall_classify*".into(),
                other => format!("{other}_classify*"),
            });
            let actions = words.map(|action| match action {
                "gact" => "tcf_gact_*".to_string(),
                other => format!("tcf_{other}_*"),
            });
            filter.into_iter().chain(actions).collect()
        }
        Met::Hook if word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            vec![word.into()]
        }
        _ => Vec::new(),
    }
}

/// Functions below those of an entry whose time is not its own: the driver below a queue, the look-up of the route below a rule.
pub(super) fn apart(item: &Item) -> &'static [&'static str] {
    match (item.kind, item.word.as_str()) {
        // The filters and programs that hang there are entries of their own.
        (Met::QueueingDiscipline, "clsact" | "ingress") => {
            &["tcf_classify*", "__tcf_classify*", "bpf_prog_*"]
        }
        (Met::QueueingDiscipline, _) => &["dev_hard_start_xmit"],
        (Met::PolicyRule | Met::Route, _) => {
            &["fib_table_lookup", "fib6_table_lookup", "ip6_pol_route*"]
        }
        (Met::Device, _) => FURTHER,
        (Met::Hook, "br_netfilter") => &[
            "br_handle_frame_finish",
            "br_forward_finish",
            "br_dev_queue_push_xmit",
            "br_pass_frame_up",
        ],
        _ => &[],
    }
}

/// Where a virtual device hands frames on: to a protocol, to a queue, to a driver.
const FURTHER: &[&str] = &[
    "ip_rcv*",
    "ip_list_rcv*",
    "ip_sublist_rcv*",
    "ipv6_rcv*",
    "ipv6_list_rcv*",
    "netif_receive_skb*",
    "__netif_receive_skb*",
    "netif_rx*",
    "__netif_rx*",
    "__dev_queue_xmit*",
    "dev_hard_start_xmit",
    "nf_hook_slow*",
    "ether_demux",
    "ip_input",
];
