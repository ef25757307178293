//! Causes that the DUT's CPUs show: others that are idle, a hypervisor, other programs, siblings, queues, the governor.

use super::{FORWARDING, cpu, explained, explanation, first};
use crate::common::Made;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::experiment::{Experiment, System, Trials};
use linerate_measure::record::{
    Collected, CpuHolder, CpuShare, Ended, Explanation, LabKind, Mode, Planned, Searched,
    SearchedGoal, SenderTime, SlotFacts, Strength,
};
use linerate_profile::Profile;
use linerate_search::{Goal, Limits, Outcome};

#[test]
fn cpus_tell_of_others_that_are_idle_and_of_the_hypervisor() {
    let idle = explained(&[cpu(0, 1.0, 0.0), cpu(1, 0.05, 0.0)], FORWARDING);
    assert_eq!(first(&idle), Some("idle-cpus"), "{:?}", idle.findings);
    let stolen = explained(&[cpu(0, 0.9, 0.3), cpu(1, 0.9, 0.1)], FORWARDING);
    assert_eq!(first(&stolen), Some("steal"), "{:?}", stolen.findings);
    let both_busy = explained(&[cpu(0, 1.0, 0.0), cpu(1, 1.0, 0.0)], FORWARDING);
    assert_eq!(first(&both_busy), None);
}

/// A search that ended at 100,000 frames/s: above it, 400 of a million frames found the queue full. `others`, `steal`: shares of the DUT's
/// CPU in trials with this loss, and without.
fn searched(others: [f64; 2], steal: f64) -> Explanation {
    let mut made = Made::new(&[1e5], |campaign, trials| {
        campaign.asked.mode = Mode::Threaded;
        campaign.asked.lab = LabKind::Namespaces;
        campaign.roles.dut = vec![1];
        for (n, trial) in trials.iter_mut().enumerate() {
            let lossy = n >= 3;
            trial.asked_fps = Some(if lossy { 101_000.0 } else { 100_000.0 });
            trial.cpus = vec![CpuShare {
                others: Some(others[usize::from(!lossy)]),
                ..cpu(1, 0.2, if lossy { steal } else { 0.0 })
            }];
            trial.dut = [("Ip.ForwDatagrams".to_string(), 1_000_000)].into();
            if lossy {
                trial.loss_ratio = 400e-6;
                trial.losses = vec![Loss {
                    place: "DUT in: receive ring full".into(),
                    side: Side::Dut,
                    cause: Cause::QueueFull,
                    frames: 400,
                }];
            }
        }
    });
    let outcome = Outcome {
        lower: Some(100_000.0),
        upper: Some(101_000.0),
        conditional: Some(100_000.0),
        irregular: None,
    };
    made.summary.searches = vec![Searched {
        slot: 0,
        goals: vec![SearchedGoal {
            name: "ndr".into(),
            goal: Goal::new(0.0, 0, 1_000_000_000, 1_000_000_000),
            outcome,
            interval: [None; 2],
        }],
        limits: Limits { min: 1e3, max: 1e6 },
        stalls: Some(0.0),
        loads: Vec::new(),
        stability: None,
        table: None,
        ended: Some(Ended::Known),
    }];
    explanation(&made)
}

#[test]
fn the_limit_of_a_search_is_what_the_trials_above_it_lost() {
    let causes = |explanation: &Explanation| -> Vec<String> {
        let findings = explanation.findings.iter();
        findings.map(|finding| finding.cause.clone()).collect()
    };
    // Threads wait for a moment whenever they wake up: that is no other program.
    let bursts = searched([0.005, 0.005], 0.0);
    assert_eq!(causes(&bursts), ["ring-overrun"], "{bursts:?}");
    let statement = "A queue of the DUT overflowed: 0.04 % of the frames found it full.";
    assert_eq!(bursts.findings[0].statement, statement);
    let evidence = &bursts.findings[0].evidence;
    assert!(
        evidence.contains(&"in 3 trials at 101000 to 101000 a second".to_string()),
        "{evidence:?}"
    );
    // Others had the CPU for a millisecond of each second more than without loss; the lost frames came in 0.4 ms.
    let others = searched([0.006, 0.005], 0.0);
    assert_eq!(causes(&others), ["ring-overrun", "other-programs"]);
    let statement = &others.findings[0].statement;
    let meanwhile = "found it full, while other programs had CPU 1.";
    assert!(statement.ends_with(meanwhile), "{statement}");
    let stolen = searched([0.005, 0.005], 0.011);
    assert_eq!(causes(&stolen), ["ring-overrun", "steal"]);
    let statement = &stolen.findings[0].statement;
    let meanwhile = "found it full, while the hypervisor had taken CPU 1 away.";
    assert!(statement.ends_with(meanwhile), "{statement}");
}

/// A DUT of a lab of hosts with its answers to some questions.
pub fn configured(made: &mut Made, answers: &[(&str, &str)]) {
    let kernel = Kernel::Linux;
    let interfaces = ["in0", "out0"].map(String::from);
    let commands = questions(kernel, &interfaces)
        .into_iter()
        .map(|argv| label(&argv));
    // Only a campaign knows the addresses of this question.
    let ways = answers.iter().filter(|(name, _)| name.starts_with("way "));
    let commands = commands.chain(ways.map(|(name, _)| name.to_string()));
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

/// A lab whose thread that sends waited while these had its CPU for so many of 100 ms each.
fn held(others: &[(&str, bool, u64)]) -> Option<linerate_measure::record::Finding> {
    waited(
        others,
        others.iter().map(|(_, _, ms)| ms).sum(),
        0,
        "other-programs",
    )
}

/// The finding of a cause in a lab whose thread waited for so many ms by the kernel's scheduler, with interrupts by timers.
fn waited(
    others: &[(&str, bool, u64)],
    ms: u64,
    interrupts: u64,
    cause: &str,
) -> Option<linerate_measure::record::Finding> {
    let made = Made::new(&[1e6], |campaign, trials| {
        campaign.asked.mode = Mode::Inline;
        campaign.asked.lab = LabKind::Namespaces;
        campaign.roles.generator = vec![1];
        campaign.roles.dut = vec![1];
        let holder = |(name, of_kernel, ms): &(&str, bool, u64)| CpuHolder {
            name: (*name).into(),
            of_kernel: *of_kernel,
            ns: ms * 1_000_000,
        };
        let waited_ns = ms * 1_000_000;
        let sender = SenderTime {
            cpu: 1,
            load_ns: 100_000_000,
            ran_ns: 100_000_000 - waited_ns,
            waited_ns,
            slices: 9,
            counted_ns: 100_000_000,
            others: Some(others.iter().map(holder).collect()),
        };
        for trial in trials {
            trial.senders = vec![sender.clone()];
            trial.dut.insert("CPU1: interrupt LOC".into(), interrupts);
            trial.cpus = vec![CpuShare {
                // By ticks, a tenth: what was counted says more.
                others: Some(0.1),
                ..cpu(1, 1.0, 0.0)
            }];
        }
    });
    let found = explanation(&made).findings.into_iter();
    found.clone().find(|of| of.cause == cause)
}

/// A thread that goes on in a softirq after another was woken ran on, whatever the scheduler says.
#[test]
fn a_sender_did_not_wait_longer_than_others_had_its_cpu() {
    let evidence = waited(&[("timers", false, 8)], 50, 0, "other-programs")
        .unwrap()
        .evidence;
    assert_eq!(
        evidence[0],
        "the thread that sends, on CPU 1, ran for 92 % of the load's time and waited for 8.0 % of it"
    );
}

#[test]
fn frequent_interrupts_by_timers_are_told() {
    let says = |n| waited(&[], 0, n, "timer-interrupts").map(|found| found.statement);
    assert_eq!(says(100), None);
    assert_eq!(
        says(2_000).unwrap(),
        "CPU 1, which forwards, is interrupted by its timer 20000 times a second."
    );
}

#[test]
fn those_who_had_the_cpu_while_the_sender_waited_are_named() {
    let says = |others: &[(&str, bool, u64)]| held(others).map(|found| found.statement);
    let statement = |who: &str| Some(format!("{who} of CPU 1, which forwards."));
    assert_eq!(
        says(&[("sh", false, 12), ("kworker", true, 1)]),
        statement("Another program (sh) takes 13 %")
    );
    assert_eq!(
        says(&[("ksoftirqd", true, 30)]),
        statement("A thread of the kernel (ksoftirqd) takes 30 %")
    );
    assert_eq!(
        says(&[("linerate", false, 40)]),
        statement("Another linerate takes 40 %")
    );
    assert_eq!(
        says(&[("rustc", false, 12), ("cc1", false, 10), ("sh", false, 2)]),
        statement("Other programs (rustc, cc1) take 24 %")
    );
    // The lab's own frames take a little of the kernel's threads for softirqs, and 3 % are not noticed.
    assert_eq!(says(&[("ksoftirqd", true, 4)]), None);
    assert_eq!(says(&[("sh", false, 3)]), None);
    let evidence = held(&[("sh", false, 12), ("kworker", true, 1)])
        .unwrap()
        .evidence;
    assert_eq!(
        evidence,
        [
            "the thread that sends, on CPU 1, ran for 87 % of the load's time and waited for 13 % of it",
            "others had CPU 1 meanwhile: sh for 12 %, kworker (kernel) for 1.0 %"
        ]
    );
}

/// Disciplines and filters are at one of the interfaces, and the change is made there.
#[test]
fn changes_are_made_at_the_devices_that_have_the_cause() {
    let patch = |tc: &str, cause: &str| {
        let mut made = Made::new(&[1e6], |campaign, _| {
            campaign.asked.lab = LabKind::Namespaces
        });
        let cards = "/sys/class/net/in0/ifindex:2\n/sys/class/net/out0/ifindex:3\n";
        configured(&mut made, &[("interfaces in0 out0", cards), ("tc", tc)]);
        let way = "handle_softirqs;net_rx_action;veth_poll";
        let stacks = format!("{way} 500\n{way};__dev_xmit_skb 300\n{way};tcf_classify 200\n");
        made.stacks.insert(0, Profile::of_folded(&stacks));
        let found = explanation(&made).findings.into_iter();
        let finding = found.clone().find(|of| of.cause == cause);
        let finding = finding.unwrap_or_else(|| panic!("{:?}", found.collect::<Vec<_>>()));
        let run = finding
            .patch
            .map(|patch| patch["commands"][0]["run"].clone());
        run.map_or(finding.untried.unwrap_or_default(), |run| {
            run.as_str().unwrap().into()
        })
    };
    let shaped = r#"==> qdisc <==
[{"kind":"tbf","handle":"1:","dev":"out0","root":true},{"kind":"tbf","handle":"1:","dev":"ifb0","root":true},
 {"kind":"clsact","handle":"ffff:","dev":"in0","parent":"ffff:fff1"}]
==> ingress in0 <==
[{"protocol":"ip","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800"}}]
==> egress in0 <==
[]
"#;
    let own = patch(shaped, "queueing-discipline");
    assert_eq!(own, "for dev in {out}; do tc qdisc del dev $dev root; done");
    let filters = patch(shaped, "traffic-filters");
    assert!(
        filters.starts_with("for place in {in}:ingress; do"),
        "{filters}"
    );
    // One discipline is on a device that the test does not use; filters choose classes.
    let elsewhere = r#"==> qdisc <==
[{"kind":"tbf","handle":"1:","dev":"ifb0","root":true},{"kind":"noqueue","handle":"0:","dev":"out0","root":true}]
==> root out0 <==
[{"protocol":"ip","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800"}}]
"#;
    let others = patch(elsewhere, "queueing-discipline");
    assert!(others.contains("$3 != \"0:\""), "{others}");
    let classes = patch(elsewhere, "traffic-filters");
    assert!(
        classes.starts_with("the filters choose classes"),
        "{classes}"
    );
}
