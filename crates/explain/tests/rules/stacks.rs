//! Causes that the functions of a profile show.

use super::{FORWARDING, explained, first};

#[test]
fn functions_of_freebsd_have_the_same_causes() {
    let causes = [
        ("ether_input;random_harvest_queue_ 40", "entropy-harvest"),
        (
            "ether_input;ip_tryforward;in_arpinput;__rw_wlock_hard;lock_delay 200",
            "lock-contention",
        ),
        (
            "ether_input;ip_tryforward;pfil_run_hooks;ipfw_chk 300",
            "linear-rules",
        ),
        (
            "ether_input;ip_tryforward;pfil_run_hooks;pf_test;pf_test_rule 300",
            "linear-rules",
        ),
        ("ether_input;bridge_input;bridge_forward 200", "bridge"),
        ("ether_input;tcp_lro_rx 90", "frame-merging"),
        (
            "ether_input;ip_tryforward;ip_output;in_delayed_cksum 90",
            "checksum-in-software",
        ),
        ("ether_input;bpf_mtap;bpf_filter 90", "packet-tap"),
        (
            "ether_input;ip_tryforward;pfil_run_hooks;ipfw_chk;ipfw_log 90",
            "logging",
        ),
        ("ether_input;ip_tryforward;ip_fragment 90", "fragmentation"),
    ];
    for (stack, cause) in causes {
        let folded = format!("{FORWARDING}ithread_loop;iflib_rxeof;{stack}\n");
        let found = explained(&[], &folded);
        let evidence = found
            .findings
            .iter()
            .flat_map(|finding| &finding.evidence)
            .collect::<Vec<_>>();
        assert_eq!(first(&found), Some(cause), "{stack}: {evidence:?}");
    }
    let clean = explained(&[], FORWARDING);
    assert!(clean.findings.is_empty(), "{:?}", clean.findings);
}

/// A card's queue below a virtual device, whose own transmission is above it.
#[test]
fn a_queue_below_a_virtual_device_is_found() {
    let below = "ip_output;dev_hard_start_xmit;macvlan_start_xmit;__dev_queue_xmit;__dev_xmit_skb";
    let queued = explained(&[], &format!("{FORWARDING}{below};tbf_enqueue 200\n"));
    assert_eq!(first(&queued), Some("queueing-discipline"), "{queued:?}");
    let driver = explained(
        &[],
        &format!("{FORWARDING}{below};sch_direct_xmit;dev_hard_start_xmit;veth_xmit 200\n"),
    );
    assert!(
        driver.absent.contains(&"queueing-discipline".into()),
        "{driver:?}"
    );
}

#[test]
fn expressions_of_rules_are_told_from_long_lists() {
    let chain = "ip_forward;nf_hook_slow;nft_do_chain";
    let sets = explained(
        &[],
        &format!("{FORWARDING}{chain} 20\n{chain};nft_lookup_eval;nft_rbtree_lookup 300\n"),
    );
    assert_eq!(first(&sets), Some("rule-expressions"), "{sets:?}");
    let said = "Look-ups in sets and maps by rules of the firewall take 29 % of a frame's time.";
    assert_eq!(sets.findings[0].statement, said);
    assert!(sets.absent.contains(&"linear-rules".into()), "{sets:?}");
    let meters = explained(
        &[],
        &format!("{FORWARDING}{chain};nft_dynset_eval;nft_rhash_update 300\n"),
    );
    assert!(
        meters.findings[0].statement.starts_with("Updates of sets"),
        "{meters:?}"
    );
    let of = |below: &str| explained(&[], &format!("{FORWARDING}{chain};{below} 300\n"));
    for (below, says) in [
        ("nft_payload_set_eval;skb_store_bits", "Changes of headers"),
        ("nf_do_netdev_egress;__dev_queue_xmit", "Copies and redir"),
    ] {
        let found = of(below);
        assert_eq!(first(&found), Some("rule-expressions"), "{found:?}");
        assert!(found.findings[0].statement.starts_with(says), "{found:?}");
    }
    let long = of("nft_payload_eval");
    assert_eq!(first(&long), Some("linear-rules"), "{long:?}");
    // Many kinds of comparisons, none of which takes much, are a long list; one that takes much is a finding of its own.
    let kinds = ["mac_mt", "ecn_mt4", "dscp_mt", "length_mt", "ttl_mt"];
    let mixed = kinds
        .map(|of| format!("{chain};nft_match_eval;{of} 40\n"))
        .concat();
    let mixed = explained(&[], &format!("{FORWARDING}{mixed}"));
    assert_eq!(first(&mixed), Some("linear-rules"), "{mixed:?}");
    let one = of("nft_match_eval;time_mt");
    assert!(one.absent.contains(&"linear-rules".into()), "{one:?}");
    let traced = explained(
        &[],
        &format!("{FORWARDING}nf_hook_slow;ipt_do_table;nf_log_trace;nf_log_packet 90\n"),
    );
    assert_eq!(first(&traced), Some("rule-tracing"), "{traced:?}");
    assert!(traced.absent.contains(&"logging".into()), "{traced:?}");
}

#[test]
fn a_share_within_the_error_of_the_samples_is_no_finding() {
    let folded = |times: u32| {
        format!(
            "a;ip_tryforward {}\na;bridge_input {}\n",
            97 * times,
            3 * times
        )
    };
    assert_eq!(first(&explained(&[], &folded(1))), None);
    assert_eq!(first(&explained(&[], &folded(10))), Some("bridge"));
}
