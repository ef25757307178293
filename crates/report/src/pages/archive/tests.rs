use super::*;
use crate::format::Style;
use linerate_import::netbenches::{ImportedSlot, ImportedTrial, Published, ResultDirectory};

fn run(log: &str, median: Option<f64>, sound: Option<f64>) -> Run {
    let trial = ImportedTrial {
        file: log.into(),
        sound,
        ..ImportedTrial::default()
    };
    Run {
        trial,
        median_pps: median,
        ..Run::default()
    }
}

fn example() -> Archive {
    let agreeing = Set {
        slot: ImportedSlot {
            set: "a".into(),
            published: Some(Published {
                file: "r/a.pps".into(),
                values: vec![1000.0],
                ..Published::default()
            }),
            agrees: Some(true),
            rule: Some(Rule::Upper),
            ..ImportedSlot::default()
        },
        runs: vec![run("r/bench.a.1.receiver", Some(1000.0), Some(1030.0))],
        ..Set::default()
    };
    let mut edited = agreeing.clone();
    edited.slot.set = "b".into();
    edited.runs = vec![run("r/bench.b.1.receiver", Some(1000.0), Some(1001.0))];
    (edited.slot.agrees, edited.slot.rule) = (Some(false), None);
    edited.slot.disagreement = Some("dropped by hand: run 2 (1)".into());
    let slot = ImportedSlot {
        set: "c".into(),
        agrees: None,
        rule: None,
        ..agreeing.slot.clone()
    };
    let alone = Set {
        slot,
        runs: Vec::new(),
        ..agreeing.clone()
    };
    let directory = ResultDirectory {
        path: "r".into(),
        sets: vec![agreeing, edited, alone],
        ..Default::default()
    };
    let problem = FileProblem {
        path: "r/bench.b.1.receiver".into(),
        kind: "receiver",
        reason: "nothing arrived: all 60 samples are 0".into(),
        set: Some("b".into()),
    };
    Archive {
        directories: vec![directory],
        problems: vec![problem],
        files: [("receiver", 2)].into(),
        bytes: 5000,
    }
}

#[test]
fn the_answer_the_counts_the_disagreements_and_what_is_broken() {
    let text = archive(&example()).text(Style::default());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "2 runs of 3 sets in 1 results folders: of 2 sets with logs and published medians, 1 agree exactly, 1 do not.",
        "r, b: dropped by hand: run 2 (1)",
        "published medians without logs",
        // With logs, and by what was published.
        "r a 1 1.000",
        "r c 0 1.000",
        "differ by more than 1 % in 1 of 2 runs",
        "r/bench.a.1.receiver: 1000 by the archive, 1030 steady (+3.0 %)",
        "Problems: receiver",
        "nothing arrived: all 60 samples are 0",
    ] {
        assert!(flat.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("bench.b.1.receiver: 1000"));
}

#[test]
fn lines_keep_within_the_width_and_are_ascii() {
    let mut odd = example();
    odd.directories[0].sets[1].slot.disagreement = Some("\u{1b}[31m\u{e9} differs".repeat(20));
    let text = archive(&odd).text(Style {
        color: false,
        width: 60,
    });
    assert!(
        text.lines()
            .all(|l| l.len() <= 60 && l.bytes().all(|b| (b' '..=b'~').contains(&b))),
        "{text}"
    );
}
