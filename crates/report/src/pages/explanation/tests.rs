//! The words of proofs, and the findings on pages for their owner and for others.

use super::*;
use linerate_measure::record::{After, Change, Slot, Stopped, Strength};
use linerate_measure::summary::summarise;
use linerate_stats::Estimate;

#[test]
fn proofs_say_what_was_gained() {
    let proof = |median: f64, half: f64| {
        let (low, high) = (Some(median - half), Some(median + half));
        proven(&Proof::of(
            Estimate {
                median,
                low,
                high,
                n: 9,
            },
            "r".into(),
        ))
    };
    let said =
        "proven: 61.3 % more frames with the change, 95 % interval +60.3..+62.3 %; records in r";
    assert_eq!(proof(1.613, 0.01), said);
    let said =
        "proven: 38.2 times the frames with the change, 95 % interval 37.2..39.2; records in r";
    assert_eq!(proof(38.2, 1.0), said);
    assert!(proof(0.97, 0.01).starts_with("refuted, no gain of 2 % or more: 3.0 % fewer frames"));
    assert!(
        proof(1.02, 0.05)
            .starts_with("not decided: no difference is shown, 95 % interval -3.0..+7.0 %")
    );
    let estimate = Estimate {
        median: 1.0,
        low: Some(0.99),
        high: Some(1.01),
        n: 9,
    };
    let still = Proof::of(estimate, "r".into()).about(After::StillThere);
    let said = "not decided: the change did not remove the cause here; no difference is shown, 95 % interval -1.0..+1.0 %; records in r";
    assert_eq!(proven(&still), said);
    assert_eq!(
        proven(&Proof::not_run("the DUT was simulated")),
        "not run: the DUT was simulated"
    );
    let rate = |fps: f64| Estimate {
        median: fps,
        low: Some(fps),
        high: Some(fps),
        n: 6,
    };
    let nothing = Proof::of_nothing(rate(0.0), rate(7e5), "r".into()).unwrap();
    let said = "proven: the DUT forwards no frame as measured, and 700000 frames/s with the change; records in r";
    assert_eq!(proven(&nothing), said);
    assert_eq!(Proof::of_nothing(rate(0.0), rate(0.0), "r".into()), None);
}

fn finding(cause: &str, strength: Strength, weight: f64) -> Finding {
    let statement = format!("It is {cause}.");
    Finding {
        cause: cause.into(),
        statement,
        strength,
        weight,
        ..Finding::default()
    }
}

#[test]
fn findings_of_several_slots_are_one_entry_and_the_strongest_is_first() {
    let slot = |id: usize, name: &str| Slot {
        id,
        name: name.into(),
        ..Slot::default()
    };
    let campaign = Campaign {
        slots: vec![slot(0, "a"), slot(1, "b")],
        ..Campaign::default()
    };
    let reason = NotExamined {
        cause: "locks".into(),
        reason: "it was not profiled".into(),
    };
    let explanations = vec![
        Explanation {
            slot: 0,
            findings: vec![
                finding("bridge", Strength::Observed, 0.2),
                finding("governor", Strength::Possible, 0.9),
            ],
            not_examined: vec![reason],
            ..Explanation::default()
        },
        Explanation {
            slot: 1,
            findings: vec![finding("bridge", Strength::Observed, 0.4)],
            ..Explanation::default()
        },
    ];
    let merged = merged(&explanations);
    let found: Vec<_> = merged
        .iter()
        .map(|(f, slots)| (f.cause.as_str(), f.weight, slots.len()))
        .collect();
    assert_eq!(found, [("bridge", 0.4, 2), ("governor", 0.9, 1)]);
    let mut other = explanations.clone();
    other[1].findings[0].statement = "It is another bridge.".into();
    let apart = super::merged(&other);
    let said: Vec<_> = apart
        .iter()
        .map(|(f, slots)| (&*f.statement, slots.len()))
        .collect();
    assert_eq!(
        said,
        [
            ("It is another bridge.", 1),
            ("It is bridge.", 1),
            ("It is governor.", 1)
        ]
    );
    assert_eq!(names(&campaign, &explanations, &merged[0].1), "");
    assert_eq!(names(&campaign, &explanations, &merged[1].1), "a: ");
    let mut counted = explanations.clone();
    let bridges = counted.iter_mut().map(|of| &mut of.findings[0].evidence);
    let said = |of: &[Explanation]| {
        let entry = super::merged(of).remove(0);
        evidence(&campaign, of, entry.0, &entry.1)
    };
    bridges.for_each(|evidence| evidence.extend(["1 port".into(), "no VLAN".into()]));
    assert_eq!(said(&counted), ["1 port", "no VLAN"]);
    counted[1].findings[0].evidence[0] = "2 ports".into();
    assert_eq!(
        said(&counted),
        ["a: 1 port; no VLAN", "b: 2 ports; no VLAN"]
    );
    let mut proven_each = explanations.clone();
    let bridges = proven_each.iter_mut().map(|of| &mut of.findings[0]);
    for (finding, why) in bridges.zip(["the first", "the second"]) {
        finding.proof = Some(Proof::not_run(why));
    }
    let entry = super::merged(&proven_each).remove(0);
    let mut page = Document::default();
    facts(&mut page, &campaign, &proven_each, entry.0, &entry.1);
    let text = page.text(crate::pages::Style::default());
    let proofs = ["a: not run: the first", "b: not run: the second"];
    assert!(proofs.iter().all(|proof| text.contains(proof)), "{text}");
    let mut page = Document::default();
    not_examined(&mut page, &explanations);
    assert!(
        page.text(crate::pages::Style::default())
            .contains("Not examined: locks, because it was not profiled.")
    );
}

#[test]
fn a_page_for_others_has_every_finding_with_its_undo() {
    let change = Change {
        system: "Linux".into(),
        commands: "do it".into(),
        undo: "take it back".into(),
    };
    let found = (0..=MOST).map(|n| Finding {
        changes: vec![change.clone()],
        ..finding(&format!("cause-{n}"), Strength::Observed, 0.1)
    });
    let reason = NotExamined {
        cause: "locks".into(),
        reason: "it was not profiled".into(),
    };
    let explanation = Explanation {
        findings: found.collect(),
        not_examined: vec![reason],
        ..Explanation::default()
    };
    let mut summary = summarise(&Campaign::default(), &[], Stopped::Trials, 0);
    summary.explanations = vec![explanation];
    let drawn = |whole| {
        let mut page = Document::default();
        section(&mut page, &Campaign::default(), &summary, whole);
        crate::format::FORMATS
            .iter()
            .find(|f| f.name() == "html")
            .unwrap()
            .render(&page, Default::default())
    };
    let counts = |whole| {
        ["<details", "take it back", "because it was not profiled"]
            .map(|text| drawn(whole).matches(text).count())
    };
    assert_eq!(counts(true), [MOST + 2, MOST + 1, 1]);
    assert_eq!(counts(false), [0, 0, 0]);
}

#[test]
fn the_time_of_two_routers_is_below_that_of_all_stages() {
    let stage = |name: &str, ns: f64| Stage {
        name: name.into(),
        ns,
        error: 1.0,
    };
    let one = Explanation {
        stages: vec![stage("IP", 60.0), stage("bridge", 0.0)],
        ..Explanation::default()
    };
    let two = Explanation {
        slot: 1,
        stages: vec![stage("IP", 100.0), stage("bridge", 0.0)],
        routers: vec![stage("first router", 70.0), stage("second router", 20.0)],
        ..Explanation::default()
    };
    let mut page = Document::default();
    stages(&mut page, &Campaign::default(), &[one, two]);
    let found = page.blocks.iter().find_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let cells = |column: usize| -> Vec<String> {
        let cells = &found.unwrap().columns[column].cells;
        cells.iter().map(|cell| cell.text().into()).collect()
    };
    let lines = [
        "IP",
        "together",
        "in the first router",
        "in the second router",
    ];
    assert_eq!(cells(0), lines);
    assert_eq!(cells(1), ["60", "60", "-", "-"]);
    assert_eq!(cells(2), ["100", "100", "70", "20"]);
}
