//! Where the time of a frame goes, by stage of its way through the kernel.

use crate::case::{Case, PROGRAM};
use crate::extra::functions::is_called;
use linerate_measure::record::{Direction, Stage};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The stages, in the order of a frame's way, each with the functions that begin it. The innermost function of a stack that
/// begins a stage decides; of several names that fit it, the longest. Functions of Linux, then of FreeBSD.
const STAGES: [(&str, &[&str]); 17] = [
    (
        "tester",
        &[
            "xdp_test_run_batch",
            "bpf_test_run_xdp_live",
            "bpf_prog_*",
            "xdp_do_flush",
            "veth_ndo_xdp_xmit",
        ],
    ),
    // By name, they are no different from the tester's.
    ("eBPF programs", &[]),
    (
        "interrupt and poll",
        &[
            "net_rx_action",
            "handle_softirqs",
            "asm_common_interrupt",
            "ithread_loop",
            "intr_event_execute_handlers",
        ],
    ),
    (
        "driver, receive",
        &[
            "veth_poll",
            "*_poll",
            "*_rx_poll",
            "iflib_rxeof",
            "*_rxeof",
            "t4_intr",
            "service_iq*",
        ],
    ),
    (
        "frame buffers",
        &[
            "veth_xdp_rcv_skb",
            "__xdp_build_skb_from_frame",
            "napi_build_skb",
            "build_skb_around",
            "napi_skb_cache_get_bulk",
            "__alloc_skb",
            "kfree_skb*",
            "consume_skb",
            "sk_skb_reason_drop",
            "skb_release_data",
            "__kfree_skb",
            "page_pool_*",
            "napi_pp_put_page",
            "kmem_cache_*",
            "uma_zalloc*",
            "uma_zfree*",
            "m_freem",
            "mb_free_ext",
        ],
    ),
    (
        "GRO and demultiplexing",
        &[
            "gro_receive_skb",
            "dev_gro_receive",
            "napi_gro_receive",
            "ipv6_gro_receive",
            "__netif_receive_skb*",
            "netif_receive_skb_list_internal",
            "ether_input",
            "ether_nh_input",
            "ether_demux",
            "netisr_dispatch*",
        ],
    ),
    (
        "bridge",
        &[
            "br_handle_frame",
            "br_handle_frame_finish",
            "__br_forward",
            "br_dev_xmit",
            "bridge_input",
            "bridge_forward",
        ],
    ),
    (
        "IP",
        &[
            "ip_rcv",
            "ip_list_rcv",
            "ip_sublist_rcv",
            "ip_rcv_core",
            "ip_forward",
            "ip_output",
            "ip6_*",
            "ipv6_*",
            "ip_input",
            "ip_tryforward",
            "ip_fastforward",
        ],
    ),
    (
        "firewall hooks",
        &[
            "nf_hook_slow",
            "nf_hook_slow_list",
            "br_nf_*",
            "pfil_run_hooks",
            "pfil_mbuf_*",
        ],
    ),
    (
        "firewall rules",
        &[
            "nft_do_chain*",
            "ipt_do_table",
            "ip6t_do_table",
            "ipfw_chk",
            "pf_test",
            "pf_test_rule",
            "fr_check",
            "ipf_check",
        ],
    ),
    (
        "connection tracking",
        &[
            "nf_conntrack_*",
            "nf_confirm",
            "__nf_conntrack_*",
            "nf_ct_*",
            "pf_test_state*",
            "pf_find_state",
            "ipfw_dyn_*",
        ],
    ),
    (
        "address translation",
        &["nf_nat_*", "nft_nat_*", "pf_get_translation", "LibAlias*"],
    ),
    (
        "route lookup",
        &[
            "ip_route_input*",
            "fib_*",
            "__fib_validate_source",
            "ip6_route_*",
            "ip6_pol_route*",
            "fib4_lookup*",
            "fib6_*",
            "rt6_*",
            "rtalloc*",
            "ip_findroute",
            "rn_match",
        ],
    ),
    (
        "neighbour and output",
        &[
            "ip_finish_output2",
            "__ip_finish_output",
            "ip6_finish_output*",
            "neigh_*",
            "arpresolve*",
            "nd6_resolve*",
            "ether_output*",
        ],
    ),
    (
        "tunnel",
        &[
            "ip_tunnel_*",
            "iptunnel_*",
            "tunnel4_rcv",
            "tunnel64_rcv",
            "udp_tunnel_*",
            "ipip_*",
            "ipgre_*",
            "gre_*",
            "sit_*",
            "geneve_*",
            "vxlan_*",
            "gro_cell*",
            "wg_*",
            "wg_packet_rx_poll",
            "esp_*",
            "xfrm_*",
            "xfrm4_*",
            "xfrm6_*",
        ],
    ),
    (
        "queueing discipline",
        &[
            "__dev_queue_xmit",
            "__dev_xmit_skb",
            "sch_direct_xmit",
            "__qdisc_run",
            "altq_*",
        ],
    ),
    (
        "driver, transmit",
        &[
            "dev_hard_start_xmit",
            "*_start_xmit",
            "veth_xmit",
            "iflib_if_transmit",
            "*_txeof",
            "cxgbe_transmit",
            "eth_tx",
        ],
    ),
];

/// The stage of the DUT's eBPF programs.
const PROGRAMS_OF_DUT: usize = 1;

/// Functions that begin no stage: timers, the scheduler, system calls of other programs.
const OTHER: &str = "other";
/// Programs in user space.
const PROGRAMS: &str = "programs";

/// The time of each stage; empty where the slot was not profiled, or its frames were paced.
pub fn stages(case: &Case<'_>) -> Vec<Stage> {
    let (Ok(profile), Some(frame)) = (case.profile(), case.frame_ns()) else {
        return Vec::new();
    };
    let all = case.samples();
    let mut samples = [0u64; STAGES.len() + 1];
    let testers = case.testers();
    for (stack, n) in profile.stacks() {
        samples[stage(stack, testers.as_ref())] += n;
    }
    let names = STAGES
        .iter()
        .map(|(name, _)| *name)
        .chain([OTHER, PROGRAMS]);
    names
        .zip(samples.into_iter().chain([case.others()]))
        .map(|(name, n)| part(name, n, all, frame))
        .collect()
}

/// So many of all samples, as a part of a frame's time.
fn part(name: &str, samples: u64, all: f64, frame: f64) -> Stage {
    let share = samples as f64 / all;
    Stage {
        name: name.into(),
        ns: share * frame,
        error: (share * (1.0 - share) / all).sqrt() * frame,
    }
}

/// Functions of IP. Those by which packets enter it need not be in a stack: they end with a call of the next.
const IP: &[&str] = &["ip_*", "ip6_*", "ipv6_rcv*", "ipv6_list_rcv"];
/// Work that a router does for a tunnel elsewhere than on the way of a frame: the first one's…
const WRAPS: &[&str] = &["wg_packet_encrypt_worker", "wg_packet_tx_worker"];
/// …and the second one's.
const UNWRAPS: &[&str] = &[
    "gro_cell_poll",
    "wg_packet_decrypt_worker",
    "wg_packet_rx_poll",
];

/// The time of each of two routers in a row; empty for other DUTs, and where it cannot be told.
pub fn routers(case: &Case<'_>) -> Vec<Stage> {
    let steers = case.setting("/inside/rps").is_some();
    let forward = case.slot.direction == Direction::Forward;
    let is_told = case.tunnel().is_some() && forward && !steers;
    let (Ok(profile), Some(frame), true) = (case.profile(), case.frame_ns(), is_told) else {
        return Vec::new();
    };
    let mut samples = [0u64; 2];
    for (stack, n) in profile.stacks() {
        if let Some(router) = router(stack) {
            samples[router] += n;
        }
    }
    let named = ["first router", "second router"].into_iter().zip(samples);
    named
        .map(|(name, n)| part(name, n, case.samples(), frame))
        .collect()
}

/// The router of a stack, if it is known. A NAPI polls the first one's card; the link between both has none, so that its packets come by
/// the backlog of the CPU.
fn router(stack: &str) -> Option<usize> {
    let has = |wanted: &[&str]| {
        let mut functions = stack.split(';');
        functions.any(|name| wanted.iter().any(|wanted| is_called(name, wanted)))
    };
    if has(UNWRAPS) || has(IP) && has(&["process_backlog"]) {
        Some(1)
    } else {
        (has(WRAPS) || has(IP)).then_some(0)
    }
}

/// The number of the stage of a stack; that of [`STAGES`]' end for a stack of none. `testers`: eBPF programs of the tester, if they are
/// known; others are the DUT's.
fn stage(stack: &str, testers: Option<&HashSet<&str>>) -> usize {
    let begins = |name: &str| {
        if name.starts_with(PROGRAM) && testers.is_some_and(|own| !own.contains(name)) {
            return Some(PROGRAMS_OF_DUT);
        }
        let is_of = |wanted: &str| match wanted.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None => is_called(name, wanted),
        };
        let all = STAGES.iter().enumerate();
        let all = all.flat_map(|(stage, (_, functions))| functions.iter().map(move |f| (f, stage)));
        let fitting = all.filter(|(wanted, _)| is_of(wanted));
        let longest = fitting.max_by_key(|(wanted, stage)| (wanted.len(), Reverse(*stage)));
        longest.map(|(_, stage)| stage)
    };
    stack.rsplit(';').find_map(begins).unwrap_or(STAGES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_routers_the_backlog_and_the_tunnel_tell_whose_time_it_is() {
        let polled = "net_rx_action;__napi_poll;veth_poll;gro_receive_skb;ip_list_rcv";
        let backlog = "net_rx_action;__napi_poll;process_backlog;__netif_receive_skb;ip_rcv";
        let tail = "process_backlog;__netif_receive_skb_one_core";
        let cell = "net_rx_action;__napi_poll;gro_cell_poll;napi_complete_done";
        for (stack, wanted) in [
            (polled.into(), Some(0)),
            (format!("{polled};ip_forward;ip_tunnel_xmit"), Some(0)),
            (backlog.into(), Some(1)),
            (format!("{backlog};ip_local_deliver;gre_rcv"), Some(1)),
            (cell.into(), Some(1)),
            (format!("{tail};ip_local_deliver_finish;esp_input"), Some(1)),
            // The receiver, as a socket.
            (format!("{tail};tpacket_rcv"), None),
            (format!("{cell};ipv6_list_rcv;ip6_forward"), Some(1)),
            (
                "kthread;worker_thread;wg_packet_encrypt_worker".into(),
                Some(0),
            ),
            (
                "kthread;worker_thread;wg_packet_decrypt_worker".into(),
                Some(1),
            ),
            // The receiver polls as well, and no IP is there.
            (
                "net_rx_action;__napi_poll;veth_poll;bpf_prog_1".into(),
                None,
            ),
            ("net_rx_action".into(), None),
        ] {
            assert_eq!(router(&stack), wanted, "{stack}");
        }
    }

    #[test]
    fn the_innermost_function_that_begins_a_stage_decides() {
        let of = |stack: &str| {
            let own = HashSet::from(["bpf_prog_1_generate"]);
            STAGES
                .get(stage(stack, Some(&own)))
                .map_or(OTHER, |(name, _)| *name)
        };
        let way = "net_rx_action;__napi_poll;veth_poll;gro_receive_skb;ip_list_rcv;ip_sublist_rcv";
        assert_eq!(of(way), "IP");
        assert_eq!(
            of(&format!(
                "{way};nf_hook_slow_list;nft_do_chain_ipv4;nft_payload_eval"
            )),
            "firewall rules"
        );
        assert_eq!(
            of(&format!("{way};ip_rcv_finish_core;fib_table_lookup")),
            "route lookup"
        );
        assert_eq!(
            of("net_rx_action;__napi_poll;ixgbe_poll;memcpy"),
            "driver, receive"
        );
        assert_eq!(of("fork_exit;taskqueue_thread_loop"), OTHER);
        // Names of IPv6 begin as those of its other stages do.
        let way_6 = "gro_receive_skb;ipv6_list_rcv;ip6_sublist_rcv";
        assert_eq!(of(way_6), "IP");
        let of_6 = |inner: &str| of(&format!("{way_6};{inner}"));
        assert_eq!(of_6("ip6_route_input;ip6_pol_route"), "route lookup");
        assert_eq!(of_6("fib6_rule_lookup;fib6_node_lookup"), "route lookup");
        assert_eq!(
            of_6("ip6_output;ip6_finish_output2"),
            "neighbour and output"
        );
        assert_eq!(
            of("dev_gro_receive;ipv6_gro_receive"),
            "GRO and demultiplexing"
        );
        for inner in [
            "ip_tunnel_xmit",
            "wg_packet_rx_poll",
            "esp_output_head;crypto_aead_encrypt",
        ] {
            assert_eq!(of(&format!("{way};{inner}")), "tunnel");
        }
        let program = |name: &str| of(&format!("{way};{name}"));
        assert_eq!(program("bpf_prog_1_generate"), "tester");
        assert_eq!(program("bpf_prog_2_filter"), "eBPF programs");
    }
}
