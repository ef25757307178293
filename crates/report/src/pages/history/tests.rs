//! Pages of histories with planted changes.

use super::*;
use crate::format::Style;
use linerate_measure::history::revision::{Place, Revision};
use linerate_measure::history::{Figure, Key, Point, Relative, Timeline, judge};
use std::collections::BTreeMap;

fn place(revision: u32) -> Place {
    Place::at_revision(
        Revision::parse(&revision.to_string())
            .expect("a revision")
            .0,
    )
}

/// Points at r300001, r300002, ... with a noise of about 1 %, times `factor(index)`.
fn timeline(variant: &str, n: usize, factor: impl Fn(usize) -> f64) -> Timeline {
    const NOISE: [f64; 7] = [0.3, -1.1, 0.8, 0.1, -0.4, 1.2, -0.7];
    let point = |i: usize| Point {
        place: place(300_001 + i as u32),
        rate: Figure {
            value: 750e3 * (1.0 + 0.01 * NOISE[i * 3 % 7]) * factor(i),
            error: 0.0,
            runs: 5,
        },
        relative: None,
        facts: BTreeMap::new(),
        source: "x".into(),
    };
    let key = Key {
        machine: "Atom".into(),
        variant: variant.into(),
        ..Key::default()
    };
    Timeline {
        key,
        points: (0..n).map(point).collect(),
    }
}

fn text(timelines: &[Timeline], width: usize) -> String {
    history(&judge(timelines, |_| {})).text(Style {
        color: false,
        width,
    })
}

/// Without line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn dip(i: usize) -> f64 {
    match i {
        12 => 0.6,
        13..=15 => 0.88,
        30 => 0.7,
        _ => 1.0,
    }
}

#[test]
fn the_tester_alone_is_no_regression() {
    let mut alone = timeline("tester-baseline", 20, |i| if i < 10 { 1.0 } else { 0.8 });
    alone.key.tester = true;
    let page = joined(&text(&[alone], 200));
    assert!(
        page.starts_with("No change found in 1 time line.")
            && page.contains("- the tester alone went by -20 % at r300011")
            && page.contains("the machine changed there, and no DUT"),
        "{page}"
    );
}

#[test]
fn regressions_first_then_the_plot_and_the_causes() {
    let all = joined(&text(
        &[timeline("steady", 20, |_| 1.0), timeline("broken", 40, dip)],
        100,
    ));
    let at = |what: &str| {
        all.find(what)
            .unwrap_or_else(|| panic!("no '{what}' in\n{all}"))
    };
    assert!(
        all.starts_with("1 regression and 1 improvement in 1 time line."),
        "{all}"
    );
    let order = [
        "Regressions, largest first",
        "Improvements, largest first",
        "broken: Atom",
        "slower from r300013 on (last before: r300012): ",
        "; for 4 points: 4",
        "repaired from r300017 on",
        "Changed there: source r300012 -> r300013, that one commit (as at every point)",
        "r300031: ",
        "Without a change",
        "= steady: Atom: 20 points",
    ];
    let places: Vec<usize> = order.iter().map(|o| at(o)).collect();
    assert!(places.windows(2).all(|w| w[0] < w[1]), "{places:?}\n{all}");
}

#[test]
fn the_plot_has_levels_points_outliers_and_marks() {
    let judged = judge(&[timeline("broken", 40, dip)], |_| {})
        .timelines
        .remove(0);
    let lines = crate::format::strip(&strip(&judged), 100);
    let column = |point: usize| "759.0 kpps |".len() + 2 * point;
    let axis = &lines[lines.len() - 2];
    assert_eq!(
        (axis.find('a'), axis.find('b')),
        (Some(column(12)), Some(column(16))),
        "{lines:#?}"
    );
    let outlier = lines
        .iter()
        .find(|l| l.as_bytes().get(column(30)) == Some(&b'o'));
    assert!(outlier.is_some(), "{lines:#?}");
    assert!(
        lines[0].contains('*') && lines.iter().any(|l| l.contains("-*-*-")),
        "{lines:#?}"
    );
    let last = lines.last().unwrap();
    assert!(
        last.trim_start().starts_with("r300001") && last.ends_with("r300040"),
        "{last}"
    );
}

#[test]
fn every_width_is_kept() {
    let timelines = [
        timeline("broken", 90, dip),
        timeline("short", 3, |_| 1.0),
        timeline("s", 30, |_| 1.0),
    ];
    for width in [40, 60, 80, 120, 160] {
        let all = text(&timelines, width);
        assert!(all.is_ascii());
        let longest = all.lines().map(str::len).max().unwrap();
        assert!(longest <= width, "{longest} of {width}:\n{all}");
    }
}

#[test]
fn nothing_to_show() {
    let short = text(&[timeline("short", 5, |_| 1.0)], 80);
    assert!(
        short.starts_with("1 time line, too short to show a change: 8 points are needed."),
        "{short}"
    );
    assert!(short.contains("?  short: Atom: 5 points"), "{short}");
    let many: Vec<Timeline> = (0..30)
        .map(|i| timeline(&i.to_string(), 3, |_| 1.0))
        .collect();
    assert!(text(&many, 80).contains("30 time lines (--json lists them)"));
    assert!(
        text(&[timeline("flat", 20, |_| 1.0)], 80).starts_with("No change found in 1 time line.")
    );
}

#[test]
fn ratios_are_percentages_and_the_machine_is_named() {
    let mut followed = timeline("forwarding", 24, |i| if i < 12 { 1.0 } else { 0.7 });
    for (i, point) in followed.points.iter_mut().enumerate() {
        let figure = Figure {
            value: 0.5 + 0.001 * (i % 5) as f64,
            error: 0.0,
            runs: 6,
        };
        point.relative = Some(Relative {
            to: "tester-baseline".into(),
            figure,
        });
    }
    let steady = text(std::slice::from_ref(&followed), 100);
    assert!(steady.contains("50.0 %..50.4 %"), "{steady}");
    let told = "the rate itself went by -30 % at r300013";
    assert!(joined(&steady).contains(told), "{steady}");
}
