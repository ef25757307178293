//! Time that plain forwarding does not take, and that no rule knows: functions that neither plain forwarding nor a usual firewall calls, with
//! the place where they hang.

use crate::case::Case;
use crate::rules::{Found, RULE, Rule, Try, percent};
use crate::spent::{PROGRAM, Spent, is_called};
use linerate_profile::{Profile, works_on_frames};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The texts of its findings.
pub(crate) const EXTRA: Rule = Rule {
    cause: "unknown-extra",
    says: "{share} of a frame's time goes into {what}, in {place}. Plain forwarding does not call it.",
    mechanism: "No rule of linerate knows this function. Frames of this DUT pass it; those of plain forwarding, which was measured beside it, do not.",
    changes: &[[
        "{system}",
        "{command} (shows what is there: remove what frames need not pass)",
        "restore what was removed",
    ]],
    otherwise: Try::Not(
        "linerate does not know what to remove: remove it by hand, and measure again",
    ),
    ..RULE
};

/// Least part of a frame's time.
const LEAST: f64 = 0.05;

/// Functions that take frames by another way than plain forwarding, allocate and free them, or serve the machine: a trial may call them
/// where plain forwarding has no sample of them.
const ANY_WAY: &[&str] = &[
    "ip_rcv",
    "ip_rcv_core",
    "ip_rcv_finish*",
    "ip_list_rcv*",
    "ip_sublist_rcv*",
    "ip_forward*",
    "ip_output",
    "ip_mc_output",
    "ip_finish_output*",
    "__ip_finish_output",
    "ip_route_input*",
    "ipv6_rcv",
    "ipv6_list_rcv",
    "ip6_rcv_*",
    "ip6_list_rcv*",
    "ip6_sublist_rcv",
    "ip6_forward*",
    "ip6_output",
    "ip6_finish_output*",
    "__ip6_finish_output",
    "ip6_pol_route*",
    "ip6_route_input*",
    "fib_table_lookup",
    "fib_lookup*",
    "fib6_*",
    "neigh_*",
    "__neigh_*",
    "__netif_receive_skb*",
    "netif_receive_skb*",
    "napi_*",
    "__napi_*",
    "gro_*",
    "dev_gro_*",
    "inet_gro_*",
    "ipv6_gro_*",
    "udp*_gro_*",
    "skb_gro_*",
    "eth_type_trans",
    "process_backlog",
    "enqueue_to_backlog",
    "netif_rx*",
    "get_rps_cpu",
    "__skb_get_hash*",
    "__flow_dissect*",
    "__skb_flow_dissect*",
    "skb_copy*",
    "__skb_*",
    "skb_pp_cow_data",
    "pskb_*",
    "__pskb_*",
    "skb_ensure_writable*",
    "__icmp_send",
    "icmp_*",
    "icmp6_send",
    "ip_error",
    "ip6_pkt_*",
    "dst_*",
    "ipv4_dst_*",
    "ip_local_*",
    "__ip_local_*",
    "__qdisc_run*",
    "__dev_xmit_skb*",
    "dev_qdisc_enqueue*",
    "qdisc_*",
    "tbf_*",
    "htb_*",
    "pfifo_*",
    "fq_codel_*",
    "__dev_queue_xmit",
    "dev_hard_start_xmit",
    "sch_direct_xmit",
    "validate_xmit_skb*",
    "veth_*",
    "kfree_skb*",
    "__kfree_skb*",
    "sk_skb_reason_drop",
    "consume_skb",
    "skb_release_*",
    "skb_free_head",
    "__alloc_skb",
    "__build_skb*",
    "napi_build_skb",
    "build_skb*",
    "kmem_cache_*",
    "kmalloc*",
    "__kmalloc*",
    "kfree",
    "___slab_*",
    "__slab_*",
    "page_pool_*",
    "__page_pool_*",
    "mem*",
    "__mem*",
    "__pi_*",
    "free_*",
    "__free_*",
    "get_page*",
    "alloc_pages*",
    "__alloc_*",
    "xdp_*",
    "__xdp_*",
    "inet_addr_type*",
    "__inet_dev_addr_type",
    "__x86_*",
    "srso_*",
    "retbleed_*",
    "__fentry__",
    "asm_*",
    "sysvec_*",
    "__sysvec_*",
    "irq_*",
    "__irq_*",
    "handle_softirqs",
    "__do_softirq",
    "do_softirq*",
    "__local_bh_*",
    "net_rx_action",
    "net_tx_action",
    "hrtimer_*",
    "__hrtimer_*",
    "tick_*",
    "update_*",
    "sched*",
    "__sched*",
    "rcu_*",
    "__rcu_*",
    "native_*",
    "pv_*",
    "_raw_*",
    "__raw_*",
    "smp_*",
    "ktime_*",
    "clear_bhb_loop",
];

/// Functions that tell the sender of an error.
const ERRORS: &[&str] = &["__icmp_send", "icmp6_send", "icmp_send"];

/// Functions of a firewall with rules, sets, states and address translation, and of filters of tc.
const OF_FIREWALLS: &[&str] = &[
    "tc_run*",
    "tcx_run*",
    "sch_handle_*",
    "tcf_classify*",
    "__tcf_classify*",
    "u32_classify",
    "fl_classify",
    "mall_classify",
    "basic_classify",
    "fw_classify",
    "nf_hook_slow*",
    "nf_hook*",
    "nft_do_chain*",
    "nft_meta_*",
    "nft_payload*",
    "nft_cmp*",
    "nft_range*",
    "nft_bitwise*",
    "nft_byteorder*",
    "nft_counter*",
    "nft_immediate*",
    "nft_objref*",
    "nft_ct_get*",
    "nft_lookup*",
    "nft_set_*",
    "nft_rbtree_*",
    "nft_hash_*",
    "nft_rhash_*",
    "nft_pipapo_*",
    "nft_bitmap_*",
    "nft_array_*",
    "nft_masq*",
    "nft_nat*",
    "nft_redir*",
    "nft_pkt_*",
    "rhashtable_*",
    "jhash*",
    "ipt_do_table",
    "ip6t_do_table",
    "iptable_*",
    "ip6table_*",
    "nft_match_*",
    "nft_compat*",
    "nft_target_*",
    "tcp_mt",
    "udp_mt",
    "icmp_match",
    "multiport_mt*",
    "conntrack_mt*",
    "state_mt*",
    "comment_mt*",
    "mark_mt",
    "iprange_mt*",
    "set_match*",
    "ip_set_*",
    "hash_*",
    "ipv4_conntrack_*",
    "ipv6_conntrack_*",
    "ipv4_confirm*",
    "ipv6_confirm*",
    "nf_confirm",
    "nf_conntrack_in",
    "nf_conntrack_udp_*",
    "nf_conntrack_tcp_*",
    "nf_conntrack_icmp*",
    "nf_conntrack_handle_*",
    "nf_conntrack_hash_*",
    "nf_conntrack_find_*",
    "nf_conntrack_alloc*",
    "nf_conntrack_free",
    "nf_conntrack_tuple_*",
    "nf_conntrack_lock",
    "nf_conntrack_double_*",
    "nf_conntrack_get*",
    "nf_conntrack_destroy",
    "__nf_conntrack_*",
    "nf_ct_get_tuple*",
    "nf_ct_delete*",
    "nf_ct_destroy",
    "nf_ct_invert_tuple",
    "nf_ct_ext_*",
    "nf_ct_acct_*",
    "nf_ct_gc_*",
    "nf_ct_timeout_lookup",
    "nf_ct_add_*",
    "__nf_ct_refresh_acct",
    "nf_ct_refresh*",
    "nf_ct_seq*",
    "nf_ct_key_equal",
    "nf_ct_tuple_*",
    "nf_inet_addr_*",
    "early_drop*",
    "resolve_normal_ct",
    "init_conntrack*",
    "hash_conntrack*",
    "nf_nat_*",
    "__nf_nat_*",
    "get_unique_tuple",
    "find_appropriate_src",
    "in_range",
    "siphash*",
    "__siphash*",
    "get_l4proto",
    "nf_checksum*",
    "nf_ip_*",
    "nf_ip6_*",
    "udp_error*",
    "csum_partial*",
    "__skb_checksum*",
    "skb_checksum*",
    "pfil_*",
    "pf_*",
    "ipfw_*",
    "fr_check",
    "ipf_check",
];

/// Functions that only hand frames on to what hangs at them: the child that takes the time has the name.
const DISPATCHERS: &[&str] = &[
    "tcf_action_exec*",
    "cls_bpf_classify",
    "lwtunnel_*",
    "bpf_output",
    "bpf_input",
    "bpf_xmit",
    "run_lwt_bpf*",
    "dst_input",
    "dst_output",
    "bpf_trace_run*",
    "__bpf_trace_*",
    "__traceiter_*",
    "trace_call_bpf*",
    "__bpf_prog_*",
    "bpf_trampoline_*",
    "bpf_prog_run*",
    "__bpf_prog_run*",
    "do_xdp_generic*",
    "netif_receive_generic_xdp*",
    "bpf_prog_run_generic_xdp",
    "deliver_skb*",
    "dev_queue_xmit_nit*",
    "ret_from_fork*",
    "kthread",
    "worker_thread",
    "process_one_work",
    "process_scheduled_works",
];

/// Where functions hang, by the innermost of these functions on the stack: in words, with a command that lists what is there.
const PLACES: &[(&[&str], &str, &str)] = &[
    (
        &[
            "tcf_*",
            "__tcf_*",
            "tc_run*",
            "tcx_run*",
            "sch_handle_*",
            "cls_*",
        ],
        "a filter or action of tc",
        "tc filter show dev IF ingress; tc filter show dev IF egress; bpftool net",
    ),
    (
        &["lwtunnel_*", "seg6_*", "mpls_*", "ioam6_*"],
        "a route with an encapsulation",
        "ip -d route show table all",
    ),
    (
        &[
            "bpf_trace_run*",
            "__bpf_trace_*",
            "__traceiter_*",
            "trace_call_bpf*",
            "trace_event_*",
            "perf_trace_*",
            "perf_tp_*",
            "kprobe_*",
            "kretprobe_*",
            "fprobe_*",
            "ftrace_*",
            "arch_ftrace_*",
            "bpf_trampoline_*",
            "optimized_callback",
            "int3_*",
            "exc_int3",
            "asm_exc_int3",
            "asm_exc_debug",
            "function_trace_*",
        ],
        "a tracepoint, probe or tracer",
        "cat /sys/kernel/tracing/set_event /sys/kernel/tracing/kprobe_events /sys/kernel/tracing/current_tracer; bpftool perf; bpftool link",
    ),
    (
        &[
            "do_xdp_generic*",
            "netif_receive_generic_xdp*",
            "*_run_xdp",
            "veth_xdp_rcv*",
        ],
        "an XDP program",
        "ip -d link show; bpftool net",
    ),
    (
        &[
            "nf_hook_run_bpf",
            "nft_*",
            "ipt_*",
            "ip6t_*",
            "nf_*",
            "ip_vs_*",
        ],
        "a hook of netfilter",
        "nft list ruleset; iptables-save; nft list hooks",
    ),
    (
        &["xfrm*", "__xfrm*", "esp_*", "esp6_*"],
        "an IPsec policy or state",
        "ip xfrm policy; ip xfrm state",
    ),
    (
        &[
            "packet_rcv*",
            "tpacket_rcv*",
            "dev_queue_xmit_nit*",
            "deliver_skb*",
        ],
        "a packet socket",
        "ss --packet --processes",
    ),
    (
        &["dev_hard_start_xmit", "*_start_xmit"],
        "the driver of an interface that frames leave by",
        "ip -d link show",
    ),
    (
        &["__dev_queue_xmit", "__qdisc_run", "sch_*"],
        "a queueing discipline",
        "tc -s qdisc show",
    ),
    (
        &["kthread", "worker_thread"],
        "a thread of the kernel",
        "ps -e",
    ),
    (
        &["pfil_*", "ng_*"],
        "a hook of pfil or a netgraph node",
        "pfilctl hooks; ngctl list",
    ),
];

fn any(names: &[&str], name: &str) -> bool {
    names.iter().any(|wanted| match wanted.strip_prefix('*') {
        Some(ending) => name.ends_with(ending),
        None => is_called(name, wanted),
    })
}

/// Whether a usual firewall, or any way of frames through a kernel, calls the function.
pub(crate) fn is_usual(name: &str) -> bool {
    any(ANY_WAY, name) || any(OF_FIREWALLS, name)
}

/// Functions and their callers, as one extra.
#[derive(Default)]
struct Extra {
    samples: u64,
    /// Samples by the innermost function.
    own: BTreeMap<String, u64>,
    /// Samples by the stack above the function.
    above: BTreeMap<String, u64>,
}

/// The extras of a slot by function, the largest first. `claimed`: by findings, which explain these stacks.
pub(crate) fn look(case: &Case<'_>, claimed: &[Spent]) -> Result<Vec<Found>, String> {
    let profile = case.profile()?;
    if case.is_plain(case.slot.id) {
        return Ok(Vec::new());
    }
    let plain = case.plain().ok_or(
        "no plain forwarding was profiled beside it: a plan needs a variant without settings",
    )?;
    let known: HashSet<&str> = plain
        .stacks()
        .flat_map(|(stack, _)| stack.split(';'))
        .collect();
    let extras = extras(profile, &known, claimed);
    let found = extras.into_iter().filter_map(|(function, extra)| {
        let spent = case.part(extra.samples, profile).of(&function);
        let found = spent
            .is_clear(LEAST)
            .then(|| found(&function, &extra, &spent))?;
        Some(found.with("system", case.system()))
    });
    Ok(found.collect())
}

fn extras(profile: &Profile, known: &HashSet<&str>, claimed: &[Spent]) -> Vec<(String, Extra)> {
    let mut extras: BTreeMap<String, Extra> = BTreeMap::new();
    for (stack, samples) in profile.stacks() {
        if claimed.iter().any(|spent| spent.contains(stack)) {
            continue;
        }
        let mut functions: Vec<&str> = stack.split(';').collect();
        // An error that is sent for a frame is no part of its way.
        if let Some(error) = functions.iter().position(|name| any(ERRORS, name)) {
            functions.truncate(error + 1);
        }
        let is_known = |name: &str| known.contains(name) || is_usual(name);
        let Some(first) = functions.iter().position(|name| !is_known(name)) else {
            continue;
        };
        // What hangs at a dispatcher has the name, if it is unknown as well.
        let named = |name: &&str| !is_known(name) && !any(DISPATCHERS, name);
        let at = functions.iter().position(named);
        let at = at.unwrap_or(functions.len() - 1);
        if is_known(functions[at]) {
            continue;
        }
        // Programs beside the campaign are no part of a frame's way.
        let above = &functions[..first];
        let of_frames =
            above.iter().any(|name| any(ANY_WAY, name)) || works_on_frames(&above.join(";"));
        let of_kernel = functions[0].starts_with("ret_from_fork") || functions[0] == "kthread";
        if !of_frames && !of_kernel {
            continue;
        }
        let extra = extras.entry(functions[at].to_string()).or_default();
        extra.samples += samples;
        let own = functions.last().map_or("", |name| name);
        *extra.own.entry(own.into()).or_default() += samples;
        *extra.above.entry(functions[..at].join(";")).or_default() += samples;
    }
    let mut all: Vec<(String, Extra)> = extras.into_iter().collect();
    all.sort_by_key(|(_, extra)| Reverse(extra.samples));
    all
}

fn found(function: &str, extra: &Extra, spent: &Spent) -> Found {
    let most = |of: &BTreeMap<String, u64>| {
        let most = of.iter().max_by_key(|(_, samples)| **samples);
        most.map(|(name, samples)| (name.clone(), *samples as f64 / extra.samples as f64))
    };
    let above = most(&extra.above).map_or(String::new(), |(above, _)| above);
    let caller = above.rsplit(';').next().unwrap_or_default();
    let (place, command) = place(&above, function);
    let called = format!("{function} is called by {caller}: {place}");
    let inside = most(&extra.own).filter(|(name, _)| name != function);
    let inside = inside.map(|(name, share)| format!("{} of it is spent in {name}", percent(share)));
    let evidence = [Some(spent.evidence()), Some(called), inside];
    Found::observed(spent.share, evidence.into_iter().flatten())
        .with("what", words(function))
        .with(
            "cost",
            format!("up to {} of a frame's time", percent(spent.share)),
        )
        .with("place", place)
        .with("command", command)
}

/// A function in words: an eBPF program by its name and its tag.
fn words(function: &str) -> String {
    let program = function.strip_prefix(PROGRAM);
    match program.and_then(|program| program.split_once('_')) {
        Some((tag, name)) => format!("the eBPF program {name} (tag {tag})"),
        None => function.into(),
    }
}

/// Where a function hangs, and the command that lists what is there.
fn place(above: &str, function: &str) -> (&'static str, &'static str) {
    /// Callers that tell: those farther away are of all frames.
    const NEAR: usize = 4;
    let near = above.split(';').chain([function]).rev().take(NEAR);
    if above
        .rsplit(';')
        .next()
        .is_some_and(|caller| is_called(caller, "__netif_receive_skb*"))
    {
        return ("a receive handler of an interface", "ip -d link show");
    }
    let found = near.into_iter().find_map(|name| {
        PLACES
            .iter()
            .find(|(functions, ..)| any(functions, name))
            .map(|(_, place, command)| (*place, *command))
    });
    found.unwrap_or(("the way of frames through the IP stack", "perf record -g"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: &str = "do_softirq;net_rx_action;veth_poll;veth_xdp_rcv_one;gro_receive_skb;__netif_receive_skb_core;ip_rcv;ip_forward";

    fn found(stacks: &str) -> Vec<(String, u64, &'static str)> {
        let known: HashSet<&str> = WAY.split(';').collect();
        let profile = Profile::of_folded(&stacks.replace("WAY", WAY));
        let all = extras(&profile, &known, &[]).into_iter();
        all.map(|(name, extra)| {
            let above = extra.above.keys().next().unwrap();
            let place = place(above, &name).0;
            (name, extra.samples, place)
        })
        .collect()
    }

    #[test]
    fn an_extra_has_the_name_of_what_hangs_at_a_dispatcher() {
        let of = |stack: &str| found(&format!("{stack} 7\n")).pop();
        let named = |name: &str, place| Some((name.to_string(), 7, place));
        assert_eq!(
            of("WAY;nf_hook_slow;nft_do_chain;nft_match_eval;string_mt;bm_find"),
            named("string_mt", "a hook of netfilter")
        );
        assert_eq!(
            of("WAY;tc_run;tcf_classify;cls_bpf_classify;bpf_prog_1f_look"),
            named("bpf_prog_1f_look", "a filter or action of tc")
        );
        assert_eq!(
            of("WAY;lwtunnel_output;bpf_output;bpf_prog_1f_look"),
            named("bpf_prog_1f_look", "a route with an encapsulation")
        );
        assert_eq!(
            of("WAY;ip_options_compile"),
            named(
                "ip_options_compile",
                "the way of frames through the IP stack"
            )
        );
        assert_eq!(
            of("ret_from_fork_asm;kthread;worker_thread;wg_decrypt"),
            named("wg_decrypt", "a thread of the kernel")
        );
        // A dispatcher alone has its own time.
        assert_eq!(
            of("WAY;lwtunnel_output"),
            named("lwtunnel_output", "a route with an encapsulation")
        );
    }

    #[test]
    fn freebsd_has_extras_too() {
        let way = "fork_exit;_task_fn_rx;iflib_rxeof;ether_input;netisr_dispatch_src;ip_tryforward";
        let known: HashSet<&str> = way.split(';').collect();
        let stacks = format!("{way};pfil_run_hooks;ng_ipfw_input;ng_send_item 7\n");
        let all = extras(&Profile::of_folded(&stacks), &known, &[]);
        assert_eq!(all[0].0, "ng_ipfw_input");
    }

    #[test]
    fn plain_ways_usual_firewalls_and_other_programs_are_no_extra() {
        for stack in [
            "WAY;nf_hook_slow;nft_do_chain;nft_cmp_eval",
            "WAY;nf_hook_slow;nf_conntrack_in;resolve_normal_ct;__nf_conntrack_find_get",
            "WAY;lwtunnel_output;ip_output",
            "WAY;icmp_send;__icmp_send",
            "entry_SYSCALL_64;do_syscall_64;__x64_sys_getpid",
        ] {
            assert_eq!(found(&format!("{stack} 7\n")), [], "{stack}");
        }
    }

    #[test]
    fn programs_are_named() {
        assert_eq!(
            words("bpf_prog_1f_look_at"),
            "the eBPF program look_at (tag 1f)"
        );
        assert_eq!(words("string_mt"), "string_mt");
    }
}
