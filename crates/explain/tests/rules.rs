//! Rules for causes that the tests' machine cannot have: functions of FreeBSD, a hypervisor that takes time, CPUs without work.

mod common;

use common::Made;
use linerate_explain::explain;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::experiment::{Experiment, System, Trials};
use linerate_measure::record::{
    Collected, CpuShare, Events, Explanation, Finding, LabKind, Planned, SlotFacts, SlotProfile,
    Strength, TrialRecord,
};
use linerate_profile::Profile;

/// Stacks of a DUT without a cause.
const FORWARDING: &str = "ithread_loop;iflib_rxeof;ether_input;ip_tryforward 700\n";

/// Explains a campaign of one slot on hosts.
fn explained(cpus: &[CpuShare], folded: &str) -> Explanation {
    counted(cpus, folded, &[])
}

/// Explains such a campaign, with counters of the DUT in each trial of a million frames.
fn counted(cpus: &[CpuShare], folded: &str, counters: &[(&str, u64)]) -> Explanation {
    let mut made = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.cpus = cpus.to_vec();
            // A router always counts some.
            let all = counters.iter().chain(&[("Ip.ForwDatagrams", 1_000_000)]);
            trial.dut = all.map(|(name, n)| (name.to_string(), *n)).collect();
        }
    });
    made.stacks.insert(0, Profile::of_folded(folded));
    explanation(&made)
}

fn explanation(made: &Made) -> Explanation {
    let mut all = explain(&made.records());
    assert_eq!(all.len(), 1);
    let tried = |finding: &Finding| finding.patch.is_some() != finding.untried.is_some();
    assert!(
        all[0].findings.iter().all(tried),
        "an experiment, or why there is none: {:?}",
        all[0].findings
    );
    all.remove(0)
}

fn first(explanation: &Explanation) -> Option<&str> {
    explanation
        .findings
        .first()
        .map(|finding| finding.cause.as_str())
}

fn cpu(cpu: u32, busy: f64, steal: f64) -> CpuShare {
    CpuShare {
        cpu,
        busy,
        softirq: busy,
        steal,
        user: 0.0,
        others: None,
        frequency: None,
    }
}

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
    let long = explained(&[], &format!("{FORWARDING}{chain};nft_payload_eval 300\n"));
    assert_eq!(first(&long), Some("linear-rules"), "{long:?}");
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

#[test]
fn cpus_tell_of_others_that_are_idle_and_of_the_hypervisor() {
    let idle = explained(&[cpu(0, 1.0, 0.0), cpu(1, 0.05, 0.0)], FORWARDING);
    assert_eq!(first(&idle), Some("idle-cpus"), "{:?}", idle.findings);
    let stolen = explained(&[cpu(0, 0.9, 0.3), cpu(1, 0.9, 0.1)], FORWARDING);
    assert_eq!(first(&stolen), Some("steal"), "{:?}", stolen.findings);
    let both_busy = explained(&[cpu(0, 1.0, 0.0), cpu(1, 1.0, 0.0)], FORWARDING);
    assert_eq!(first(&both_busy), None);
}

/// A DUT of a lab of hosts with its answers to some questions.
fn configured(made: &mut Made, answers: &[(&str, &str)]) {
    let kernel = Kernel::Linux;
    let interfaces = ["in0", "out0"].map(String::from);
    let commands = questions(kernel, &interfaces)
        .into_iter()
        .map(|argv| label(&argv));
    let answer = |command: String| {
        let said = answers.iter().find(|(name, _)| *name == command);
        Collected {
            output: said
                .map(|(_, said)| said.to_string())
                .ok_or("no answer".into()),
            command,
        }
    };
    made.facts = vec![SlotFacts {
        kernel: kernel.name().into(),
        interfaces: interfaces.to_vec(),
        answers: commands.map(answer).collect(),
        version: 1,
        slot: 0,
    }];
}

#[test]
fn cpus_of_a_host_tell_of_rings_other_programs_and_queues() {
    let host = |cpus: Vec<CpuShare>, lost: u64, counters: &[(&str, u64)]| {
        let place = Loss {
            place: "in0: rx ring".into(),
            side: Side::Dut,
            cause: Cause::QueueFull,
            frames: lost,
        };
        let mut made = Made::new(&[1e6], |campaign, trials| {
            campaign.asked.generator = "pkt-gen".into();
            campaign.asked.flows = 2000;
            for trial in trials {
                trial.cpus = cpus.clone();
                trial.receiver.frames = trial.generator.frames - lost;
                trial.losses = Some(place.clone())
                    .filter(|_| lost > 0)
                    .into_iter()
                    .collect();
                let all = counters.iter().chain(&[("Ip.ForwDatagrams", 1_000_000)]);
                trial.dut = all.map(|(name, n)| (name.to_string(), *n)).collect();
            }
        });
        made.stacks.insert(0, Profile::of_folded(FORWARDING));
        explanation(&made)
    };
    // The other CPU is full of something else.
    let burst = host(
        vec![
            cpu(0, 0.6, 0.0),
            CpuShare {
                softirq: 0.0,
                ..cpu(1, 1.0, 0.0)
            },
        ],
        100_000,
        &[],
    );
    assert_eq!(
        first(&burst),
        Some("ring-overrun"),
        "{:?}",
        burst.not_examined
    );
    assert!(
        burst.findings[0]
            .evidence
            .iter()
            .any(|line| line.contains("60 % busy")),
        "{:?}",
        burst.findings
    );
    let overload = host(vec![cpu(0, 1.0, 0.0), cpu(1, 0.6, 0.0)], 100_000, &[]);
    assert!(
        overload.absent.contains(&"ring-overrun".into()),
        "{overload:?}"
    );

    let user = host(
        vec![
            CpuShare {
                user: 0.4,
                softirq: 0.6,
                ..cpu(0, 1.0, 0.0)
            },
            cpu(1, 0.9, 0.0),
        ],
        0,
        &[],
    );
    assert_eq!(
        first(&user),
        Some("other-programs"),
        "{:?}",
        user.not_examined
    );
    assert!(
        user.findings[0].statement.contains("40 % of CPU 0"),
        "{:?}",
        user.findings[0]
    );

    let queues = [
        ("in: rx_queue_0_packets", 990_000),
        ("in: rx_queue_1_packets", 10_000),
    ];
    let one_queue = host(
        vec![cpu(0, 0.9, 0.0), cpu(1, 0.4, 0.0), cpu(2, 0.4, 0.0)],
        0,
        &queues,
    );
    assert_eq!(first(&one_queue), Some("one-queue"));
    let patch = one_queue.findings[0]
        .patch
        .as_ref()
        .map(|patch| patch["interface"]["in"]["rps"].clone());
    assert_eq!(
        patch,
        Some("0,1,2".into()),
        "{:?}",
        one_queue.findings[0].untried
    );
}

/// CPUs of a host that share a core, and fewer queues than CPUs.
#[test]
fn cpus_of_a_host_tell_of_siblings_and_of_queues_that_are_too_few() {
    let made = |cpus: [CpuShare; 2]| {
        let mut made = Made::new(&[1e6], |_, trials| {
            trials.iter_mut().for_each(|t| t.cpus = cpus.to_vec())
        });
        let siblings = |cpu: u32| {
            format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list:0-1\n")
        };
        let cpus = format!(
            "/sys/devices/system/cpu/online:0-1\n{}{}",
            siblings(0),
            siblings(1)
        );
        let card = "/sys/class/net/in0/ifindex:2\n/sys/class/net/in0/queues/rx-0/rps_cpus:0\n";
        configured(&mut made, &[("cpus", &cpus), ("interfaces in0 out0", card)]);
        made.stacks.insert(0, Profile::of_folded(FORWARDING));
        explanation(&made)
    };
    let both = made([cpu(0, 0.9, 0.0), cpu(1, 0.8, 0.0)]);
    let of =
        |all: &Explanation, cause: &str| all.findings.iter().find(|f| f.cause == cause).cloned();
    assert!(of(&both, "hyper-threads").is_some(), "{both:?}");
    let one = made([cpu(0, 1.0, 0.0), cpu(1, 0.1, 0.0)]);
    assert_eq!(of(&one, "hyper-threads"), None);
    let few = of(&one, "queues-fewer-than-cpus").unwrap_or_else(|| panic!("{one:?}"));
    assert_eq!(few.strength, Strength::Inferred);
    assert!(
        few.evidence[0].contains("CPUs: 2; CPUs that were full: 1"),
        "{:?}",
        few.evidence
    );
}

#[test]
fn the_governor_of_a_host_is_that_of_its_configuration() {
    let made = |governors: [&str; 2]| {
        let mut made = Made::new(&[1e6], |campaign, _| campaign.asked.lab = LabKind::Hosts);
        let governor = |(cpu, name)| {
            format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor:{name}\n")
        };
        let of_cpus: String = (0..)
            .zip(governors)
            .filter(|(_, name)| !name.is_empty())
            .map(governor)
            .collect();
        configured(
            &mut made,
            &[(
                "cpus",
                &format!("/sys/devices/system/cpu/online:0-1\n{of_cpus}"),
            )],
        );
        made.stacks.insert(0, Profile::of_folded(FORWARDING));
        explanation(&made)
    };
    let saving = made(["powersave", "powersave"]);
    let found = saving
        .findings
        .iter()
        .find(|f| f.cause == "frequency-governor");
    assert!(
        found.is_some_and(|f| f.statement.contains("'powersave'")),
        "{saving:?}"
    );
    assert!(
        made(["performance", "performance"])
            .absent
            .contains(&"frequency-governor".into())
    );
    let reason = |explanation: &Explanation| {
        explanation
            .not_examined
            .iter()
            .find(|n| n.cause == "frequency-governor")
            .map(|n| n.reason.clone())
    };
    assert_eq!(
        reason(&made(["", ""])).as_deref(),
        Some("the host shows no governor")
    );
}

#[test]
fn only_linux_tells_of_a_hypervisor() {
    let mut made = Made::new(&[1e6], |campaign, trials| {
        let experiment = Experiment {
            title: String::new(),
            question: String::new(),
            source: None,
            system: System::FreeBsd,
            quick: false,
            link_speed: None,
            factors: Vec::new(),
            comparisons: Vec::new(),
            expectations: Vec::new(),
            trials: Trials::default(),
        };
        let planned = Planned {
            file: None,
            source: None,
            experiment,
            plan: serde_json::Value::Null,
            skipped: Vec::new(),
        };
        campaign.planned = Some(Box::new(planned));
        trials
            .iter_mut()
            .for_each(|trial| trial.cpus = vec![cpu(0, 1.0, 0.0), cpu(1, 0.1, 0.0)]);
    });
    made.stacks.insert(0, Profile::of_folded(FORWARDING));
    let found = explanation(&made);
    assert!(
        !found.absent.contains(&"steal".into()),
        "{:?}",
        found.absent
    );
    assert_eq!(first(&found), Some("idle-cpus"));
    assert_eq!(found.findings[0].patch, None);
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
        assert_eq!(
            first(&counted(&[], FORWARDING, &[(name, n)])),
            Some(cause),
            "{name}"
        );
    }
    let clash = counted(
        &[],
        FORWARDING,
        &[
            ("Conntrack.drop", 5_000),
            ("Conntrack.insert_failed", 5_000),
        ],
    );
    assert!(
        clash.findings[0].statement.contains("no free port"),
        "{:?}",
        clash.findings[0]
    );
    let queues = [
        ("in: rx_queue_0_packets", 990_000),
        ("in: rx_queue_1_packets", 10_000),
    ];
    assert_eq!(first(&counted(&[], FORWARDING, &queues)), Some("one-queue"));
    let even = [
        ("in: rx_queue_0_packets", 490_000),
        ("in: rx_queue_1_packets", 510_000),
    ];
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

#[test]
fn freebsd_tells_why_it_drops() {
    let place = Loss {
        place: "in the DUT".into(),
        side: Side::Dut,
        cause: Cause::Dropped,
        frames: 500_000,
    };
    let mut made = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.receiver.frames = 500_000;
            trial.losses = vec![place.clone()];
        }
    });
    let drops = [
        "drop ips_cantforward in ip_tryforward",
        "drop ips_noroute in ip_tryforward",
    ];
    let drops = drops.map(|name| (name.to_string(), 5_000)).into();
    let events = Events {
        sent: 10_000,
        drops,
        ..Events::default()
    };
    made.summary.profiles.push(SlotProfile {
        events: Some(events),
        ..SlotProfile::default()
    });
    let found = explanation(&made);
    assert_eq!(first(&found), Some("frames-dropped"));
    assert!(
        found.findings[0].statement.contains("no route"),
        "{:?}",
        found.findings[0]
    );
    assert_eq!(found.findings[0].changes[0].system, "FreeBSD");
}

/// A record that lacks every evidence: no rule may call its cause absent.
#[test]
fn without_evidence_nothing_is_fine() {
    let bare = |change: fn(&mut TrialRecord)| {
        explanation(&Made::new(&[1e6], |_, trials| {
            trials.iter_mut().for_each(change)
        }))
    };
    let found = bare(|trial| trial.receiver.frames = trial.generator.frames - 200_000);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    // Hosts whose DUT loses frames: that is all that `tester-limit` needs.
    assert_eq!(found.absent, ["tester-limit"]);
    let reasons: Vec<&str> = found
        .not_examined
        .iter()
        .map(|not| not.reason.as_str())
        .collect();
    for lacking in [
        "the slot was not profiled (--profile)",
        "the DUT was not asked how it is configured",
        "the DUT's counters were not read",
        "how busy the DUT's CPUs were is not known",
        "it is not known where frames were lost",
    ] {
        assert!(
            reasons.iter().any(|reason| reason.contains(lacking)),
            "{lacking}: {reasons:?}"
        );
    }
    // Where no frame was lost, none was dropped.
    let found = bare(|trial| trial.receiver.frames = trial.generator.frames);
    let absent: Vec<&str> = found.absent.iter().map(String::as_str).collect();
    assert_eq!(absent, ["frames-dropped", "ring-overrun"]);
    // Nor is that a limit of the tester, of whose own rate nothing is known.
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let why = |cause: &str| {
        found
            .not_examined
            .iter()
            .find(|not| not.cause == cause)
            .map(|not| &*not.reason)
    };
    assert!(
        why("tester-limit")
            .unwrap()
            .contains("the tester without the DUT is not known")
    );
}

/// A DUT that was asked, and answers nothing.
#[test]
fn questions_without_an_answer_are_no_settings() {
    let interfaces = ["in0", "out0"].map(String::from);
    let asked = |kernel: Kernel, answer: fn(&str) -> Result<String, String>| {
        let mut made = Made::new(&[1e6], |_, trials| {
            trials
                .iter_mut()
                .for_each(|trial| trial.receiver.frames = trial.generator.frames)
        });
        let answers = questions(kernel, &interfaces)
            .iter()
            .map(|argv| label(argv))
            .collect::<Vec<_>>();
        let answers = answers.into_iter().map(|command| Collected {
            output: answer(&command),
            command,
        });
        made.facts = vec![SlotFacts {
            kernel: kernel.name().into(),
            interfaces: interfaces.to_vec(),
            answers: answers.collect(),
            version: 1,
            slot: 0,
        }];
        let mut absent = explanation(&made).absent;
        absent.retain(|cause| !["frames-dropped", "ring-overrun"].contains(&cause.as_str()));
        absent
    };
    assert_eq!(
        asked(Kernel::Linux, |_| Err("permission denied".into())),
        [""; 0]
    );
    // One that has no nft: its rules may be there all the same.
    let without_nft = |command: &str| match command {
        "nft" => Err("it ended with status 127".into()),
        _ => Ok(String::new()),
    };
    let absent = asked(Kernel::Linux, without_nft);
    for cause in ["linear-rules", "logging"] {
        assert!(!absent.contains(&cause.into()), "{cause}: {absent:?}");
    }
    assert!(absent.contains(&"traffic-filters".into()), "{absent:?}");
}

/// Each evidence by itself, and the causes that need it and nothing else to be called absent.
#[test]
fn each_evidence_clears_its_own_causes() {
    let lossless = |trial: &mut TrialRecord| trial.receiver.frames = trial.generator.frames;
    let cleared = |made: &Made| {
        let mut absent = explanation(made).absent;
        absent.retain(|cause| !["frames-dropped", "ring-overrun"].contains(&cause.as_str()));
        absent
    };
    let counters = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            lossless(trial);
            trial
                .dut
                .insert("CPU0: softnet processed".into(), 1_000_000);
        }
    });
    let of_counters = [
        "connection-table",
        "fragmentation",
        "budget-squeezes",
        "neighbour-table",
    ];
    assert_eq!(cleared(&counters), of_counters);
    let cpus = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            lossless(trial);
            trial.cpus = vec![cpu(0, 0.9, 0.0), cpu(1, 0.9, 0.0)];
        }
    });
    assert_eq!(cleared(&cpus), ["idle-cpus", "steal", "other-programs"]);
    let mut profiled = Made::new(&[1e6], |_, trials| trials.iter_mut().for_each(lossless));
    profiled.stacks.insert(0, Profile::of_folded(FORWARDING));
    let of_profile = [
        "linear-rules",
        "rule-expressions",
        "bridge-netfilter",
        "bridge",
        "reverse-path-filter",
        "logging",
        "policy-routing",
        "ipsec-policies",
        "queueing-discipline",
        "traffic-filters",
        "frame-merging",
        "checksum-in-software",
        "generic-xdp",
        "packet-tap",
        "fragmentation",
        "lock-contention",
        "entropy-harvest",
        "mitigations",
    ];
    assert_eq!(cleared(&profiled), of_profile);
    // A profile without a sample shows nothing, and says why it has none.
    profiled.stacks.insert(0, Profile::default());
    assert!(cleared(&profiled).is_empty());
    profiled.summary.profiles.push(SlotProfile {
        missing: vec!["profile: no perf".into()],
        ..SlotProfile::default()
    });
    let reasons = explanation(&profiled).not_examined;
    assert!(
        reasons
            .iter()
            .any(|not| not.reason.contains("profile: no perf")),
        "{reasons:?}"
    );
    // A loss at a known place is examined, and found.
    let full = Loss {
        place: "in: ring full".into(),
        side: Side::Dut,
        cause: Cause::QueueFull,
        frames: 50_000,
    };
    let overrun = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.receiver.frames = 950_000;
            trial.losses = vec![full.clone()];
        }
    });
    let found = explanation(&overrun);
    assert!(found.absent.contains(&"frames-dropped".into()), "{found:?}");
    let ring = found
        .not_examined
        .iter()
        .find(|not| not.cause == "ring-overrun")
        .unwrap();
    assert!(
        ring.reason.contains("how busy the CPUs were is not known"),
        "{ring:?}"
    );
}
