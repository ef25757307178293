//! Causes that administrators meet: what the profile of a DUT has, and that of plain forwarding has not.

use super::{first, tried};
use crate::common::Made;
use linerate_explain::explain;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::experiment::{Experiment, System, Trials};
use linerate_measure::record::{Collected, Explanation, Planned, SlotFacts};
use linerate_profile::Profile;
use serde_json::{Value, json};

/// The way of all frames.
const WAY: &str = "do_softirq;net_rx_action;veth_poll;ip_rcv;ip_forward";

/// Explains a DUT with these settings of the plan and these answers to questions, beside plain forwarding.
fn beside_plain(stacks: &str, settings: &Value, given: &[(&str, &str)]) -> Explanation {
    let lane = |settings: &Value| json!({ "settings": settings });
    let plan = json!({
        "cells": [{ "lane": 0 }, { "lane": 1 }],
        "lanes": [lane(&json!({ "dut": "forwarding", "kernel": settings["kernel"] })), lane(settings)],
    });
    let experiment = Experiment {
        title: String::new(),
        question: String::new(),
        source: None,
        system: System::Linux,
        quick: false,
        link_speed: None,
        factors: Vec::new(),
        comparisons: Vec::new(),
        expectations: Vec::new(),
        trials: Trials::default(),
    };
    let mut made = Made::new(&[1e6, 5e5], |campaign, _| {
        campaign.planned = Some(Box::new(Planned {
            file: None,
            source: None,
            experiment,
            plan,
            skipped: Vec::new(),
        }));
    });
    let plain = format!("{WAY} 1000\n");
    made.stacks.insert(0, Profile::of_folded(&plain));
    let stacks = stacks.replace("WAY", WAY);
    made.stacks
        .insert(1, Profile::of_folded(&format!("{plain}{stacks}\n")));
    let interfaces = ["in0", "out0"].map(String::from);
    let answers = questions(Kernel::Linux, &interfaces);
    let answers = answers.iter().map(|argv| label(argv)).map(|command| {
        let given = given.iter().find(|(of, _)| *of == command);
        Collected {
            command,
            output: Ok(given.map_or(String::new(), |(_, text)| text.to_string())),
        }
    });
    made.facts.extend(given.first().map(|_| SlotFacts {
        kernel: Kernel::Linux.name().into(),
        interfaces: interfaces.to_vec(),
        answers: answers.collect(),
        version: 1,
        slot: 1,
    }));
    let mut all = explain(&made.records());
    assert_eq!(all[0].findings, [], "plain forwarding");
    assert!(all[1].findings.iter().all(tried), "{:?}", all[1].findings);
    all.remove(1)
}

/// In guests, plain forwarding is that of the same kernel.
#[test]
fn a_tunnel_that_the_plan_asks_for_is_tried_without_it_and_each_router_has_its_time() {
    let backlog = "do_softirq;net_rx_action;process_backlog";
    let deliver = "ip_local_deliver_finish;ip_protocol_deliver_rcu;gre_rcv";
    let wraps = "WAY;dev_hard_start_xmit;ipgre_xmit;ip_tunnel_xmit 200";
    let stacks = &format!("{wraps}\n{backlog};ip_rcv;ip_forward 200\n{backlog};{deliver} 100");
    for kernel in [Value::Null, json!("6.12.9-amd64")] {
        let settings = json!({ "dut": "gre", "kernel": kernel });
        let found = beside_plain(stacks, &settings, &[]);
        let causes: Vec<&str> = found.findings.iter().map(|of| &*of.cause).collect();
        assert_eq!(causes, ["tunnel"]);
        let proof = format!("{:?}", found.findings[0]);
        assert!(proof.contains("two-routers"), "{proof}");
        let routers: Vec<_> = found
            .routers
            .iter()
            .map(|of| (&*of.name, of.ns.round()))
            .collect();
        assert_eq!(
            routers,
            [("first router", 1600.0), ("second router", 400.0)]
        );
    }
    assert!(of_commands(stacks).routers.is_empty());
}

/// The first finding about a router with commands of its own.
fn of_commands(stacks: &str) -> Explanation {
    let commands = json!([{ "run": "some", "undo": "true" }]);
    let settings = json!({ "dut": "forwarding", "commands": commands });
    beside_plain(stacks, &settings, &[])
}

#[test]
fn comments_name_the_cause_of_an_extra() {
    let hook = "WAY;nf_hook_slow";
    let rules = "WAY;nf_hook_slow;nft_do_chain;nft_match_eval";
    for (stack, cause, says) in [
        (
            "WAY;ip_route_input_slow;fib_multipath_hash",
            "multipath",
            "A route with several next hops takes 9.1 %",
        ),
        (&*format!("{hook};nf_queue"), "user-space-queue", "NFQUEUE"),
        (
            "WAY;lwtunnel_input;seg6_input_core;ip6_output",
            "tunnel",
            "(seg6_input_core)",
        ),
        (
            &*format!("{rules};string_mt;bm_find"),
            "payload-match",
            "(string_mt)",
        ),
        (
            &*format!("{hook};nft_do_chain;nft_socket_eval"),
            "socket-match",
            "(nft_socket_eval)",
        ),
        (
            &*format!("{hook};nft_do_chain;nft_ng_random_eval"),
            "hash-expression",
            "(nft_ng_random_eval)",
        ),
        (
            &*format!("{hook};nf_confirm;sip_help_udp"),
            "connection-helper",
            "(sip_help_udp)",
        ),
        (
            "WAY;tc_run;tcf_classify;tcf_action_exec;tcf_mirred_act",
            "mirroring",
            "(mirred)",
        ),
        (
            "WAY;tc_run;cls_bpf_classify;bpf_prog_1f_look",
            "bpf-program",
            "the eBPF program look (tag 1f), in a filter or action of tc",
        ),
        (
            "process_backlog;ip_protocol_deliver_rcu;tunnel64_rcv",
            "tunnel",
            "(tunnel64_rcv)",
        ),
        (
            "WAY;dev_hard_start_xmit;vxlan_xmit;vxlan_xmit_one",
            "tunnel",
            "(vxlan_xmit)",
        ),
        (
            "WAY;dev_hard_start_xmit;macvlan_start_xmit",
            "macvlan",
            "(macvlan_start_xmit)",
        ),
        (
            &*format!("{hook};nf_confirm;nf_ct_deliver_cached_events;ctnetlink_conntrack_event"),
            "connection-events",
            "A program follows the connections",
        ),
        (
            "WAY;ip_route_input_slow;fib_multipath_hash;__skb_flow_dissect;bpf_flow_dissect;bpf_prog_1f_look",
            "bpf-program",
            "the eBPF program look (tag 1f), in the flow dissector of a network namespace",
        ),
        (
            "WAY;__netif_receive_skb_core.constprop.0;bpf_prog_1f_look",
            "bpf-program",
            "in the tcx hook of an interface",
        ),
        (
            &*format!("{rules};xt_cluster_mt"),
            "hash-expression",
            "(xt_cluster_mt)",
        ),
        (
            &*format!("{hook};nft_do_chain;nft_target_eval_xt;xt_rateest_tg"),
            "unknown-extra",
            "into xt_rateest_tg, in a hook of netfilter",
        ),
        (
            &*format!("{hook};nft_do_chain;nft_meta_get_eval_time;time64_to_tm"),
            "unknown-extra",
            "into nft_meta_get_eval_time",
        ),
        (
            "WAY;ip_options_compile",
            "unknown-extra",
            "into ip_options_compile",
        ),
    ] {
        let found = of_commands(&format!("{stack} 100"));
        assert_eq!(first(&found), Some(cause), "{stack}: {:?}", found.findings);
        let statement = &found.findings[0].statement;
        assert!(statement.contains(says), "{statement}");
        assert!(!statement.contains('{'), "{statement}");
    }
}

#[test]
fn functions_with_one_comment_are_one_finding_and_the_way_on_is_no_part_of_it() {
    let two = of_commands("WAY;fib_multipath_hash 60\nWAY;fib_select_multipath 50");
    assert_eq!(two.findings.len(), 1, "{:?}", two.findings);
    let evidence = &two.findings[0].evidence[0];
    assert!(
        evidence.contains("fib_multipath_hash, fib_select_multipath"),
        "{evidence}"
    );
    // What an ifb hands on is received as plain frames are.
    let on = "do_softirq;tasklet_action_common;ifb_ri_tasklet";
    let further = of_commands(&format!("{on};netif_receive_skb;ip_rcv 900\n{on} 10"));
    assert_eq!(further.findings, []);
    // The queue of an ifb is a part of the copy, until a discipline is set there.
    let queued = "WAY;tc_run;tcf_classify;tcf_action_exec;tcf_mirred_act;__dev_queue_xmit;sch_direct_xmit 200";
    let of = |kind: &str| {
        let tc =
            format!("==> qdisc <==\n[{{\"kind\":\"{kind}\",\"dev\":\"in0\",\"root\":true}}]\n");
        let commands = json!({ "dut": "forwarding", "commands": [1] });
        let links = r#"[{"ifindex":2,"ifname":"in0"}]"#;
        beside_plain(
            queued,
            &commands,
            &[("ip -d -j addr show", links), ("tc", &tc)],
        )
    };
    let copied = of("pfifo_fast");
    assert_eq!(first(&copied), Some("mirroring"), "{:?}", copied.findings);
    assert!(copied.absent.contains(&"queueing-discipline".into()));
    assert_eq!(first(&of("tbf")), Some("queueing-discipline"));
}

#[test]
fn programs_are_taken_out_where_they_hang() {
    let remedy = |stack: &str| {
        let found = of_commands(&format!("{stack};bpf_prog_1f_look 100"));
        let change = found.findings[0].changes[0].clone();
        (change.commands, change.undo)
    };
    let (commands, undo) = remedy("WAY;tc_run;cls_bpf_classify");
    assert!(commands.starts_with("tc filter del dev IF") && undo.starts_with("tc filter add"));
    let (commands, undo) = remedy("WAY;lwtunnel_output;bpf_output");
    assert!(commands.contains("without encap bpf") && undo.contains("encap bpf out"));
    let (commands, undo) = remedy("do_softirq;net_rx_action;veth_xdp_rcv_skb");
    assert!(commands.starts_with("ip link set IF xdp off") && undo.contains("xdp obj"));
}

#[test]
fn with_routing_rules_the_look_up_of_sources_belongs_to_them() {
    let stacks = "WAY;fib_rules_lookup 200\nWAY;fib_validate_source;__fib_validate_source 100";
    let settings = json!({ "dut": "forwarding", "commands": [1] });
    let asked = questions(Kernel::Linux, &["in0", "out0"].map(String::from));
    let mut asked = asked.iter().map(|argv| label(argv));
    let sysctl = asked.find(|of| of.starts_with("sysctl -e")).unwrap();
    let sysctls = |on| format!("net.ipv4.conf.all.rp_filter={on}\n");
    let causes = |on| {
        let found = beside_plain(stacks, &settings, &[(&*sysctl, &sysctls(on))]).findings;
        found.into_iter().map(|of| of.cause).collect::<Vec<_>>()
    };
    assert_eq!(causes(0), ["policy-routing"]);
    assert_eq!(causes(1), ["policy-routing", "reverse-path-filter"]);
}

#[test]
fn tracking_is_told_by_what_it_does() {
    let hook = "WAY;nf_hook_slow";
    let looked_up = format!("{hook};nf_conntrack_in;__nf_conntrack_find_get 100\n");
    let cause = |stacks: &str| first(&of_commands(stacks)).map(String::from);
    assert_eq!(cause(&looked_up).as_deref(), Some("connection-tracking"));
    let translated = format!("{looked_up}{hook};nf_nat_ipv4_out;nf_nat_manip_pkt 100");
    assert_eq!(cause(&translated).as_deref(), Some("address-translation"));
    let opened = format!("{translated}\n{hook};nf_conntrack_in;init_conntrack.isra.0 100");
    assert_eq!(cause(&opened).as_deref(), Some("new-connections"));
    // A firewall of the plan is what the plan asks about.
    let firewall = json!({ "dut": "forwarding", "rules": { "kind": "stateful" } });
    assert_eq!(beside_plain(&opened, &firewall, &[]).findings, []);
    // A helper is one of its own.
    let helped = format!("{hook};nf_confirm;sip_help_udp 100");
    assert_eq!(cause(&helped).as_deref(), Some("connection-helper"));
}

#[test]
fn chains_without_rules_are_told_from_long_lists() {
    let stacks = "WAY;nf_hook_slow;nft_do_chain_ipv4;nft_do_chain 400";
    let chain = |n: u32| {
        format!(
            "\tchain c{n} {{\n\t\ttype filter hook forward priority {n}; policy accept;\n\t}}\n"
        )
    };
    let of = |chains: u32| {
        let chains: String = (0..chains).map(chain).collect();
        let table = format!("table ip own {{\n{chains}}}\n");
        beside_plain(
            stacks,
            &json!({ "dut": "forwarding", "commands": [1] }),
            &[("nft", &table)],
        )
    };
    let many = of(40);
    assert_eq!(first(&many), Some("many-chains"), "{:?}", many.findings);
    assert!(many.findings[0].evidence[1].starts_with("40 base chains"));
    assert!(many.absent.contains(&"linear-rules".into()));
    let few = of(2);
    assert_eq!(first(&few), Some("linear-rules"), "{:?}", few.findings);
    assert!(few.absent.contains(&"many-chains".into()));
    // All tables of iptables-legacy, which no plan can unload.
    let tables = [
        ("raw", &["PREROUTING"][..]),
        ("mangle", &["PREROUTING", "FORWARD", "POSTROUTING"]),
        ("nat", &["PREROUTING", "POSTROUTING"]),
        ("filter", &["FORWARD"]),
        ("security", &["FORWARD"]),
    ];
    let of = |tables: &[(&str, &[&str])]| {
        let table = |(table, chains): &(&str, &[&str])| {
            let chain = |name: &&str| format!(":{name} ACCEPT [0:0]\n");
            let chains: String = chains.iter().map(chain).collect();
            format!("*{table}\n{chains}COMMIT\n")
        };
        let saved: String = tables.iter().map(table).collect();
        let saved = format!("==> ip <==\n{saved}");
        beside_plain(
            "WAY;nf_hook_slow;ipt_do_table 200",
            &json!({ "dut": "forwarding", "commands": [1] }),
            &[("iptables", &saved)],
        )
    };
    let all = of(&tables);
    assert_eq!(first(&all), Some("many-chains"), "{:?}", all.findings);
    let proof = serde_json::to_string(&all.findings[0]).unwrap();
    assert!(proof.contains("unload them by hand"), "{proof}");
    assert_eq!(of(&tables[..3]).findings, []);
}

#[test]
fn a_bridge_that_copies_floods() {
    let bridge = "WAY;br_handle_frame;br_handle_frame_finish;br_flood;maybe_deliver";
    let copied = of_commands(&format!(
        "{bridge};skb_clone 100\n{bridge};__br_forward 300"
    ));
    assert_eq!(
        first(&copied),
        Some("bridge-flooding"),
        "{:?}",
        copied.findings
    );
    let one_port = of_commands(&format!("{bridge};__br_forward 300"));
    assert_eq!(first(&one_port), Some("bridge"), "{:?}", one_port.findings);
    assert!(one_port.absent.contains(&"bridge-flooding".into()));
}

#[test]
fn tracing_is_found_by_its_functions() {
    for function in [
        "trace_event_raw_event_fib_table_lookup",
        "bpf_trace_run5",
        "function_trace_call",
    ] {
        let found = of_commands(&format!("WAY;{function};ring_buffer_lock_reserve 100"));
        assert_eq!(first(&found), Some("tracing"), "{:?}", found.findings);
    }
    // Rules that are traced are no long list.
    let rules = "WAY;nf_hook_slow;nft_do_chain";
    let found = of_commands(&format!(
        "{rules};nft_trace_init 200\n{rules};__nft_trace_packet 200"
    ));
    assert_eq!(first(&found), Some("rule-tracing"), "{:?}", found.findings);
    assert_eq!(found.findings.len(), 1, "{:?}", found.findings);
}
