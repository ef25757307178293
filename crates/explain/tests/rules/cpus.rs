//! Causes that the DUT's CPUs show: others that are idle, a hypervisor, other programs, siblings, queues, the governor.

use super::{FORWARDING, cpu, explained, explanation, first};
use crate::common::Made;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::experiment::{Experiment, System, Trials};
use linerate_measure::record::{
    Collected, CpuShare, Explanation, LabKind, Planned, SlotFacts, Strength,
};
use linerate_profile::Profile;

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
