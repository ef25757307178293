//! Each rule finds its cause, finds it absent, or says which evidence it lacks.

use super::{FORWARDING, cpu, explained, explanation};
use crate::common::Made;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::record::{
    Collected, Explanation, Http, HttpOf, RulesPassed, SlotFacts, SlotProfile, TrialRecord,
};
use linerate_profile::Profile;

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
        "the cell was not profiled (--profile)",
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

/// Programs of HTTP have the CPUs of the DUT: there is no threaded mode for them.
#[test]
fn a_tester_that_was_the_limit_gets_a_remedy_of_its_own() {
    let http = HttpOf {
        http: Http::Close,
        object: 1024,
        connections: 64,
    };
    for (http, remedy) in [(None, "--mode threaded"), (Some(http), "--cpus")] {
        let made = Made::new(&[1e6, 0.99e6], |campaign, _| {
            campaign.slots[0].no_ceiling = false;
            let slot = &mut campaign.slots[1];
            (slot.no_ceiling, slot.ceiling, slot.http) = (false, Some(0), http);
        });
        let found = explanation(&made);
        let finding = found.findings.iter().find(|of| of.cause == "tester-limit");
        let commands = &finding.unwrap().changes[0].commands;
        assert!(commands.contains(remedy), "{commands}");
        assert_eq!(commands.contains("threaded"), http.is_none());
    }
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

/// A chain of iptables with 200 rules, of which the last logs.
fn long_list(passed: Option<[u64; 2]>) -> Explanation {
    let interfaces = ["eth0", "eth1"].map(String::from);
    let mut made = Made::new(&[1e6], |_, _| {});
    let rules = "-A FORWARD -s 192.0.2.1/32 -j DROP\n".repeat(199);
    let saved =
        format!("==> ip <==\n*filter\n:FORWARD ACCEPT [0:0]\n{rules}-A FORWARD -j LOG\nCOMMIT\n");
    let answers = questions(Kernel::Linux, &interfaces);
    let answers = answers.iter().map(|argv| label(argv)).map(|command| {
        let asked = command == "iptables";
        let output = Ok(if asked { saved.clone() } else { String::new() });
        Collected { command, output }
    });
    made.facts = vec![SlotFacts {
        kernel: Kernel::Linux.name().into(),
        interfaces: interfaces.to_vec(),
        answers: answers.collect(),
        version: 1,
        slot: 0,
    }];
    made.summary
        .rules
        .extend(passed.map(|[each, logging]| RulesPassed {
            frames: 1_000,
            looks: 1_000 * each,
            rules: 200,
            reached: each,
            logging: 1_000 * logging,
            ..RulesPassed::default()
        }));
    explanation(&made)
}

#[test]
fn rules_that_no_frame_reaches_are_no_cause_and_remedies_are_of_the_dut_s_own_firewall() {
    let causes = |passed| {
        let found = long_list(passed).findings.into_iter();
        let of_rules = found.filter(|f| ["linear-rules", "logging"].contains(&f.cause.as_str()));
        of_rules.collect::<Vec<_>>()
    };
    assert_eq!(causes(Some([1, 0])), []);
    assert_eq!(causes(Some([199, 0])).len(), 1);
    assert!(causes(Some([199, 0]))[0].evidence[0].contains("a frame passes 199 of 200 rules"));
    for found in [causes(None), causes(Some([200, 1]))] {
        assert_eq!(found.len(), 2);
        for finding in found {
            let systems = finding.changes.iter().map(|change| change.system.as_str());
            assert_eq!(systems.collect::<Vec<_>>(), ["Linux (iptables)"]);
        }
    }
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
        "second-pass",
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
        "traffic-filters",
        "logging",
        "policy-routing",
        "ipsec-policies",
        "queueing-discipline",
        "frame-merging",
        "checksum-in-software",
        "generic-xdp",
        "packet-tap",
        "fragmentation",
        "lock-contention",
        "entropy-harvest",
        "mitigations",
        "rule-tracing",
        "bridge-flooding",
        "tracing",
        "connection-tracking",
        "address-translation",
        "new-connections",
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
