//! Rules for causes that the tests' machine cannot have: functions of FreeBSD, a hypervisor that takes time, CPUs without work.

use linerate_explain::{Records, explain};
use linerate_measure::audit::Audit;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{
    Asked, Campaign, CpuShare, Explanation, Finding, HostFacts, Mode, Roles, Slot, Stopped, TrialRecord,
};
use linerate_measure::summary::summarise;
use linerate_measure::trial::Rates;
use linerate_profile::Profile;
use std::collections::BTreeMap;

/// What a DUT without a cause does all the time.
const FORWARDING: &str = "ithread_loop;iflib_rxeof;ether_input;ip_tryforward 700\n";

/// Explains a campaign of one slot on hosts.
fn explained(cpus: &[CpuShare], folded: &str) -> Explanation {
    counted(cpus, folded, &[])
}

/// The same, with counters of the DUT in each trial of a million frames.
fn counted(cpus: &[CpuShare], folded: &str, counters: &[(&str, u64)]) -> Explanation {
    let slot = Slot { variant: "forwarding".into(), no_ceiling: true, ..Slot::default() };
    let campaign = Campaign {
        slots: vec![slot],
        asked: Asked {
            mode: Mode::Hosts,
            generator: "xdp".into(),
            receiver: "xdp".into(),
            ..Asked::default()
        },
        roles: Roles { dut: vec![0, 1], ..Roles::default() },
        ..Campaign::default()
    };
    let trial = |n: u64| TrialRecord {
        trial: n,
        block: n as u32,
        rates: Some(Rates { offered: 1e6, received: 1e6, seconds: 1.0 }),
        audit: Audit { valid: true, ..Audit::default() },
        generator: PortCounters { frames: 1_000_000, ..PortCounters::default() },
        cpus: cpus.to_vec(),
        dut: counters.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        ..TrialRecord::default()
    };
    let trials: Vec<TrialRecord> = (0..6).map(trial).collect();
    let summary = summarise(&campaign, &trials, Stopped::Trials, 0);
    let stacks = BTreeMap::from([(0, Profile::of_folded(folded))]);
    let host = HostFacts::default();
    let records = Records {
        campaign: &campaign,
        host: &host,
        summary: &summary,
        trials: &trials,
        facts: &[],
        stacks: &stacks,
    };
    let mut all = explain(&records);
    assert_eq!(all.len(), 1);
    let tried = |finding: &Finding| finding.patch.is_some() != finding.untried.is_some();
    assert!(all[0].findings.iter().all(tried), "an experiment, or why there is none: {:?}", all[0].findings);
    all.remove(0)
}

fn first(explanation: &Explanation) -> Option<&str> {
    explanation.findings.first().map(|finding| finding.cause.as_str())
}

fn cpu(cpu: u32, busy: f64, steal: f64) -> CpuShare {
    CpuShare { cpu, busy, softirq: busy, steal, user: 0.0, frequency: None }
}

#[test]
fn functions_of_freebsd_have_the_same_causes() {
    let causes = [
        ("ether_input;random_harvest_queue_ 40", "entropy-harvest"),
        ("ether_input;ip_tryforward;in_arpinput;__rw_wlock_hard;lock_delay 200", "lock-contention"),
        ("ether_input;ip_tryforward;pfil_run_hooks;ipfw_chk 300", "linear-rules"),
        ("ether_input;ip_tryforward;pfil_run_hooks;pf_test;pf_test_rule 300", "linear-rules"),
        ("ether_input;bridge_input;bridge_forward 200", "bridge"),
        ("ether_input;tcp_lro_rx 90", "frame-merging"),
        ("ether_input;ip_tryforward;ip_output;in_delayed_cksum 90", "checksum-in-software"),
        ("ether_input;bpf_mtap;bpf_filter 90", "packet-tap"),
        ("ether_input;ip_tryforward;pfil_run_hooks;ipfw_chk;ipfw_log 90", "logging"),
        ("ether_input;ip_tryforward;ip_fragment 90", "fragmentation"),
    ];
    for (stack, cause) in causes {
        let folded = format!("{FORWARDING}ithread_loop;iflib_rxeof;{stack}\n");
        let found = explained(&[], &folded);
        let evidence = found.findings.iter().flat_map(|finding| &finding.evidence).collect::<Vec<_>>();
        assert_eq!(first(&found), Some(cause), "{stack}: {evidence:?}");
    }
    let clean = explained(&[], FORWARDING);
    assert!(clean.findings.is_empty(), "{:?}", clean.findings);
}

#[test]
fn a_share_within_the_error_of_the_samples_is_no_finding() {
    let folded = |times: u32| format!("a;ip_tryforward {}\na;bridge_input {}\n", 97 * times, 3 * times);
    assert_eq!(first(&explained(&[], &folded(1))), None);
    assert_eq!(first(&explained(&[], &folded(10))), Some("bridge"));
}

#[test]
fn cpus_tell_of_others_that_are_idle_and_of_the_hypervisor() {
    let idle = explained(&[cpu(0, 1.0, 0.0), cpu(1, 0.05, 0.0)], FORWARDING);
    assert_eq!(first(&idle), Some("idle-cpus"), "{:?}", idle.findings);
    let stolen = explained(&[cpu(0, 0.9, 0.3), cpu(1, 0.9, 0.1)], FORWARDING);
    assert_eq!(first(&stolen), Some("steal"), "{:?}", stolen.findings);
    let both_busy = explained(&[cpu(0, 1.0, 0.0), cpu(1, 1.0, 0.0)], FORWARDING);
    assert_eq!(first(&both_busy), None);
}

#[test]
fn counters_tell_of_tables_and_budgets() {
    let causes = [
        ("Conntrack.insert_failed", 5_000, "connection-table"),
        ("CPU0: time_squeeze", 20_000, "budget-squeezes"),
        ("arp_cache.unresolved_discards", 30_000, "neighbour-table"),
        ("in: rx_pause", 400, "flow-control"),
    ];
    for (name, n, cause) in causes {
        assert_eq!(first(&counted(&[], FORWARDING, &[(name, n)])), Some(cause), "{name}");
    }
    let clash = counted(&[], FORWARDING, &[("Conntrack.drop", 5_000), ("Conntrack.insert_failed", 5_000)]);
    assert!(clash.findings[0].statement.contains("no free port"), "{:?}", clash.findings[0]);
    let queues = [("in: rx_queue_0_packets", 990_000), ("in: rx_queue_1_packets", 10_000)];
    assert_eq!(first(&counted(&[], FORWARDING, &queues)), Some("one-queue"));
    let even = [("in: rx_queue_0_packets", 490_000), ("in: rx_queue_1_packets", 510_000)];
    assert_eq!(first(&counted(&[], FORWARDING, &even)), None);
}

#[test]
fn every_cause_is_found_absent_or_not_examined() {
    let all = explained(&[], FORWARDING);
    let mut named: Vec<&str> = all.absent.iter().map(String::as_str).collect();
    named.extend(all.not_examined.iter().map(|not| not.cause.as_str()));
    let mut causes: Vec<&str> = linerate_explain::causes().collect();
    named.sort_unstable();
    causes.sort_unstable();
    assert_eq!(named, causes);
    assert!(all.not_examined.iter().all(|not| !not.reason.is_empty()));
}
