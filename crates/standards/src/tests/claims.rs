//! Claims follow from the rows, and are of the tests that were asked for.

use super::*;
use linerate_measure::record::{Ended, Skipped, Warning, Why};

#[test]
fn the_claim_follows_from_the_rows() {
    let mut made = sound();
    let claim = |made: &Made, document: &str| {
        made.judged()
            .claims
            .into_iter()
            .find(|claim| claim.document == document)
            .unwrap()
    };
    let latency = claim(&made, "RFC 8219");
    assert_eq!(
        latency.to_string(),
        "RFC 8219 latency: conditionally compliant (8219-4, 8219-5.3)"
    );
    let throughput = claim(&made, "RFC 2544");
    let deviations = vec!["2544-7d", "2544-8a", "2544-14", "2544-25"];
    assert_eq!(
        (throughput.compliance, &throughput.rows),
        (Compliance::Conditionally, &deviations)
    );
    assert_eq!(
        claim(&made, "RFC 2889").compliance,
        Compliance::Unconditionally
    );
    assert!(made.judged().holds());
    made.links(&LINKS.replace("198.19.0.1", "198.20.0.1"));
    let throughput = claim(&made, "RFC 2544");
    assert_eq!(
        (throughput.compliance, &throughput.rows),
        (Compliance::NotCompliant, &vec!["2544-13a"])
    );
    assert!(
        !made.judged().holds()
            && made
                .judged()
                .line()
                .contains("; RFC 9004 back-to-back: not compliant")
    );
    made.campaign.asked.lab = LabKind::Simulated;
    assert_eq!(
        claim(&made, "RFC 2889").compliance,
        Compliance::Simulated,
        "a simulation complies with nothing"
    );
    made.design().measure = Measure::Rate;
    let Made {
        campaign,
        host,
        trials,
        facts,
        summary,
    } = &made;
    assert_eq!(
        conformance(&Records {
            campaign,
            host,
            trials,
            facts,
            summary: Some(summary)
        }),
        None
    );
}

/// Only tests that were asked for, and events that are resets, have claims; those of a quick run say so.
#[test]
fn claims_are_of_what_was_asked_for() {
    let tests = |made: &Made| -> Vec<String> {
        let claims = made.judged().claims;
        claims
            .iter()
            .map(|claim| claim.to_string().split(':').next().unwrap().to_owned())
            .collect()
    };
    let mut made = sound();
    assert!(
        tests(&made).contains(&"RFC 6201 reset".to_owned()),
        "{:?}",
        tests(&made)
    );
    made.figures_of_resets(EventClass::Interruption);
    made.design().tests = vec![Benchmark::Latency, Benchmark::Reset];
    made.campaign.planned.as_mut().unwrap().experiment.quick = true;
    made.traffic().frame.family = Family::V6;
    let quick = [
        "RFC 2544 latency, quick",
        "RFC 8219 latency, quick",
        "RFC 9971 MLRsearch, quick",
    ];
    let others = [
        "RFC 5180 IPv6, quick",
        "RFC 4814 random addresses and ports, quick",
    ];
    assert_eq!(tests(&made), [&quick[..], &others].concat());
}

#[test]
fn tests_that_were_not_made_are_not_run_and_claim_nothing() {
    let mut made = sound();
    made.design().tests = vec![Benchmark::FrameLoss];
    let now = made.statuses();
    assert_eq!(
        now["9004-6.4"],
        (
            Status::NotRun,
            "back-to-back is not part of this campaign".into()
        )
    );
    assert_eq!(now["2544-26.3a"].0, Status::Met);
    assert!(
        made.judged()
            .claims
            .iter()
            .all(|claim| !claim.document.contains("9004"))
    );
}

/// Nobody can ask a black box: what the operator states of it stands in the place of its answers.
#[test]
fn a_black_box_can_comply_with_what_its_operator_states() {
    let mut made = sound();
    made.facts.clear();
    made.host.kernel.clear();
    let open = ["2544-7b", "2544-7c", "2544-13a"];
    let now = made.statuses();
    for id in open {
        assert_ne!(now[id].0, Status::Met, "{id}");
    }
    assert!(now["2544-7c"].1.contains("`software` and `configuration`"));
    let mut state = |key: &str, said: &str| {
        made.campaign.standing.insert(key.into(), said.into());
    };
    state(SOFTWARE, "ExampleOS 7.2.1");
    state(CONFIGURATION, "appliance.cfg, SHA-256 0123");
    state(ADDRESSES, "198.18.0.1/16, 198.19.0.1/16");
    let now = made.statuses();
    for (id, status) in open
        .into_iter()
        .zip([Status::Met, Status::Met, Status::NotApplicable])
    {
        assert_eq!(now[id].0, status, "{id}: {}", now[id].1);
    }
}

/// RFC 9004, section 6.1: a DUT that forwards the highest load has no longest burst.
#[test]
fn a_test_without_a_result_claims_nothing() {
    let mut made = sound();
    for of in &mut made.summary.benchmarks {
        let tested = of
            .tests
            .iter_mut()
            .filter(|tested| tested.test == Benchmark::BackToBack);
        tested.for_each(|tested| {
            (tested.why, tested.figures) = (Some(Why::AtMaximum), Figures::None)
        });
    }
    let judged = made.judged();
    let claims: Vec<&Claim> = judged
        .claims
        .iter()
        .filter(|claim| claim.test == "back-to-back")
        .collect();
    assert_eq!(claims.len(), 2);
    assert!(
        claims
            .iter()
            .all(|claim| claim.compliance == Compliance::NoResult)
    );
    assert!(judged.holds() && judged.line().contains("RFC 9004 back-to-back: no claim"));
}

/// Of the tests of seven sizes, the throughput at one size has no result: neither it nor what rests on its search has a claim.
#[test]
fn a_cell_without_a_result_leaves_its_test_without_a_claim() {
    let mut made = sound();
    let lacking = &mut made.summary.benchmarks[2].tests[0];
    assert_eq!(lacking.test, Benchmark::Throughput);
    (lacking.why, lacking.figures) = (Some(Why::Unstable), Figures::None);
    let judged = made.judged();
    let claims: Vec<String> = judged.claims.iter().map(Claim::to_string).collect();
    let said = "no claim, because cells have no complete result: forwarding 256 B (the DUT is unstable: it loses frames far below its rate)";
    for (test, complete) in [
        ("2544 throughput", false),
        ("9971 MLRsearch", false),
        ("4814 random addresses and ports", false),
        ("2889 forwarding-rate", true),
    ] {
        let of = claims.iter().find(|claim| claim.contains(test)).unwrap();
        assert_eq!(!of.ends_with(&format!("{test}: {said}")), complete, "{of}");
    }
    assert!(!judged.holds());
    // A test that is not complete has figures, and no claim.
    let mut made = sound();
    made.summary.benchmarks[0].tests[1].why = Some(Why::Unfinished);
    made.campaign.planned.as_mut().unwrap().skipped = vec![Skipped {
        cell: 3,
        reasons: vec!["nft is missing".into()],
        optional: false,
    }];
    let said = "RFC 2544 latency: no claim, because cells have no complete result: forwarding 64 B (the campaign ended before this test was complete); forwarding 256 B (nft is missing)";
    assert!(
        made.judged().line().contains(said),
        "{}",
        made.judged().line()
    );
}

#[test]
fn a_search_without_a_rate_makes_no_claim() {
    let mut made = sound();
    made.design().measure = Measure::Search;
    made.design().goals = vec![WantedGoal {
        name: "rfc2544".into(),
        loss: 0.0,
        exceed: 0,
        times_ns: None,
    }];
    assert!(!made.judged().line().contains("no claim"));
    made.summary.searches[1].goals[0].outcome.lower = None;
    made.summary.searches[1].ended = Some(Ended::Unstable);
    made.summary.searches[2].ended = None;
    let line = made.judged().line();
    for said in [
        "forwarding 128 B (the DUT is unstable",
        "forwarding 256 B (the campaign ended before the search",
    ] {
        assert!(line.contains(said), "{line}");
    }
    assert!(!made.judged().holds());
}

/// A disturbance of the tester alone does not concern the DUT, and a test that is not compliant stays so.
#[test]
fn disturbed_trials_make_no_claim() {
    let mut made = sound();
    let mut warn = |slot, spoils: &str| {
        made.summary.warnings = vec![Warning {
            slot,
            text: String::new(),
            spoils: Some(spoils.into()),
        }];
        made.judged()
    };
    assert!(warn(Some(0), "of the tester").holds());
    let judged = warn(None, "other programs took 13 % of a CPU of the lab");
    let all = |compliance| {
        judged
            .claims
            .iter()
            .all(|claim| claim.compliance == compliance)
    };
    assert!(all(Compliance::Disturbed) && !judged.holds());
    let said = "RFC 2544 throughput: no claim, because the trials were disturbed: other programs took 13 % of a CPU of the lab; ";
    assert!(judged.line().contains(said), "{}", judged.line());
    made.links(&LINKS.replace("198.19.0.1", "198.20.0.1"));
    assert!(
        made.judged()
            .line()
            .contains("RFC 2544 throughput: not compliant")
    );
}

/// A MUST that the records cannot show counts as not met, also where RFC 9004 takes it over.
#[test]
fn a_must_of_rfc_2544_that_is_not_shown_is_not_met_for_rfc_9004() {
    let mut made = sound();
    made.campaign.standing.clear();
    let (status, because) = made.statuses()["9004-5a"].clone();
    assert_eq!(status, Status::NotRun);
    assert!(
        because.contains("not shown to be kept: 2544-7a"),
        "{because}"
    );
}
