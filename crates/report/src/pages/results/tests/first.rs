//! The first page, on one screen.

use super::super::first::{LINES, first_rows};
use super::{blocks, campaign};
use crate::document::{Document, Table};
use crate::pages::tests::host;
use crate::pages::{Style, first as page};
use linerate_measure::record::{
    Explanation, Finding, SlotProfile, Stopped, Strength, Summary, Warning,
};
use linerate_measure::summary::summarise;

/// Whatever a campaign has, its first page is one screen, and nothing on it is cut at the right.
#[test]
fn the_first_page_of_every_plan_is_one_screen() {
    for (name, plan) in [
        ("a-a", &plan!("a-a")[..]),
        ("bridge", &plan!("bridge")[..]),
        ("families", &plan!("families")[..]),
        ("firewalls", &plan!("firewalls")[..]),
        ("flows", &plan!("flows")[..]),
        ("forwarding", &plan!("forwarding")[..]),
        ("latency", &plan!("latency")[..]),
        ("macvlan", &plan!("macvlan")[..]),
        ("mtu", &plan!("mtu")[..]),
        ("nat", &plan!("nat")[..]),
        ("new-states", &plan!("new-states")[..]),
        ("offloads", &plan!("offloads")[..]),
        ("queues", &plan!("queues")[..]),
        ("routes", &plan!("routes")[..]),
        ("rps", &plan!("rps")[..]),
        ("rules", &plan!("rules")[..]),
        ("states", &plan!("states")[..]),
        ("tables", &plan!("tables")[..]),
        ("tcp-endhost", &plan!("tcp-endhost")[..]),
        ("throughput", &plan!("throughput")[..]),
        ("vxlan", &plan!("vxlan")[..]),
        ("xdp", &plan!("xdp")[..]),
    ] {
        let mut c = campaign(plan, false);
        let trials = blocks(&c, |name| 1e6 + 1e4 * name.len() as f64);
        c.notes = vec!["a note about rules: ".repeat(20); 3];
        for trials in [&trials[..], &trials[..trials.len() / 7], &[]] {
            let mut found = summarise(&c, trials, Stopped::Budget, 0);
            found.warnings.extend((0..4).map(|n| Warning {
                slot: None,
                text: format!(
                    "warning {n}: {}",
                    "something disturbed the trials; ".repeat(9)
                ),
                spoils: Some("other programs took 38 % of a CPU of the lab".into()),
            }));
            let page = page(
                &c,
                &host(),
                &found,
                &[],
                "linerate-results/20260101T000000Z-something",
            )
            .unwrap();
            let text = page.text(Style {
                color: false,
                width: 80,
            });
            let lines: Vec<&str> = text.lines().collect();
            assert!(
                lines.len() <= LINES,
                "{name}: {} lines\n{text}",
                lines.len()
            );
            assert!(lines.iter().all(|line| line.len() <= 80), "{name}\n{text}");
            for what in ["trust", "records  linerate-results/", "--full"] {
                assert!(text.contains(what), "{name}: no {what}\n{text}");
            }
        }
    }
}

#[test]
fn a_tester_that_moved_is_not_quiet() {
    let c = campaign(plan!("nat"), false);
    let mut found = summarise(&c, &blocks(&c, |_| 1e6), Stopped::Budget, 0);
    let trust = |found: &Summary| {
        let page = page(&c, &host(), found, &[], "DIR").unwrap();
        let text = page.text(Style {
            color: false,
            width: 200,
        });
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with("trust"))
            .unwrap()
            .to_string()
    };
    assert!(trust(&found).contains("  quiet; "), "{}", trust(&found));
    found.rows[0].unsteady = Some([5e6, 10.2e6]);
    let said = "  unsteady: the tester alone moved between 5.000 Mpps and 10.20 Mpps; ";
    assert!(trust(&found).contains(said), "{}", trust(&found));
}

/// Two factors: a change of one is to that factor's first level.
#[test]
fn the_first_page_names_the_references_of_changes() {
    let plan = r#"
        title = "t"
        question = "q"
        trials = { duration = "100 ms", blocks = 8 }
        [variants.forwarding]
        [factors.demux]
        sets = "sysctls.net.ipv4.ip_early_demux"
        levels = [1, 0]
        [factors.flows]
        sets = "traffic.flows"
        levels = [1, 2000]
    "#;
    let c = campaign(plan.as_bytes(), false);
    let rate = |name: &str| match (name.contains("demux 0"), name.contains("flows 2000")) {
        _ if name.starts_with("tester") => 9e6,
        (false, false) => 2e6,
        (true, false) => 2.2e6,
        (false, true) => 1.5e6,
        (true, true) => 1.7e6,
    };
    let mut found = summarise(&c, &blocks(&c, rate), Stopped::Budget, 0);
    found.warnings.clear();
    let page = page(&c, &host(), &found, &[], "linerate-results/x").unwrap();
    let text = page.text(Style {
        color: false,
        width: 80,
    });
    assert!(
        text.contains(
            "changes  row 2 of the table is compared with flows 1; rows 3, 4 with demux 1"
        ),
        "{text}"
    );
    // Comparisons come before commands to go on with.
    for sentence in ["demux 1: flows 2000 is ", "flows 1: demux 0 is "] {
        assert!(text.contains(sentence), "no {sentence}\n{text}");
    }
    assert!(text.lines().count() <= LINES, "{text}");
}

/// A profile without a known cause, and causes that are possible at most, are told: the reader asked for them.
#[test]
fn the_first_page_tells_what_is_known_of_causes() {
    let c = campaign(plan!("forwarding"), false);
    let trials = blocks(&c, |_| 1e6);
    let told = |change: &dyn Fn(&mut Summary)| {
        let mut found = summarise(&c, &trials, Stopped::Budget, 0);
        change(&mut found);
        let text = page(&c, &host(), &found, &[], "X").unwrap().text(Style {
            color: false,
            width: 80,
        });
        let line = text.lines().find(|line| line.starts_with("cause"));
        line.map(|line| line.trim_start_matches("cause").trim().to_string())
    };
    assert_eq!(told(&|_| {}), None);
    let profiled = told(&|found| found.profiles.push(SlotProfile::default()));
    assert_eq!(
        profiled.as_deref(),
        Some("none of the known ones; where time goes: linerate explain X")
    );
    let finding = |strength| Finding {
        cause: "rules".into(),
        statement: "Frames pass a long list of rules.".into(),
        strength,
        ..Finding::default()
    };
    let with = |strength| {
        told(&|found| {
            found.explanations = vec![Explanation {
                slot: 1,
                findings: vec![finding(strength)],
                ..Explanation::default()
            }];
        })
    };
    assert_eq!(
        with(Strength::Possible).as_deref(),
        Some("1 possible cause, none certain: linerate explain X")
    );
    assert!(
        with(Strength::Inferred)
            .unwrap()
            .ends_with("Frames pass a long list of rules.")
    );
}

#[test]
fn rows_that_are_left_out_are_counted() {
    let said = |all, most| {
        let mut page = Document::default();
        let number = |row: &usize| row.to_string();
        let table = Table::of(0..all)
            .column("", "", number)
            .column("row", "", number);
        first_rows(&mut page, table, most);
        let (color, width) = (false, 80);
        page.text(Style { color, width })
    };
    assert!(said(3, 3).ends_with("2    2\n"), "{}", said(3, 3));
    assert!(said(4, 3).ends_with("1 more row is on the whole page.\n"));
    assert!(said(5, 3).ends_with("2 more rows are on the whole page.\n"));
    assert_eq!(
        said(5, 0).trim(),
        "The table of 5 rows is on the whole page."
    );
}
