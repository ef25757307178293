//! Time lines with planted changes.

use super::*;
use crate::history::revision::Place;
use crate::history::{Relative, judge};
use linerate_wire::SplitMix64;
use std::collections::BTreeMap;

fn point(day: usize, rate: f64) -> Point {
    Point {
        place: Place::at_time(&format!(
            "2026-{:02}-{:02}T06:00:00Z",
            day / 28 + 1,
            day % 28 + 1
        )),
        rate: Figure {
            value: rate,
            error: 0.0,
            runs: 6,
        },
        relative: None,
        facts: BTreeMap::from([
            ("kernel".to_string(), format!("6.1.0-{}", day / 5)),
            (
                "setting net.core.bpf_jit_harden".to_string(),
                "0".to_string(),
            ),
        ]),
        source: format!("day {day}"),
    }
}

fn timeline(points: Vec<Point>) -> Timeline {
    Timeline {
        key: Key {
            variant: "forwarding".into(),
            ..Key::default()
        },
        points,
    }
}

/// Nearly normal: the sum of twelve uniform numbers.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12)
        .map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64)
        .sum::<f64>()
        - 6.0
}

/// 20 days with 1 % noise.
fn days(seed: u64) -> Vec<Point> {
    let mut random = SplitMix64::new(seed);
    (0..20)
        .map(|day| point(day, 1e6 * (1.0 + 0.01 * normal(&mut random))))
        .collect()
}

fn one(points: Vec<Point>) -> Judged {
    judge(&[timeline(points)], |_| {}).timelines.remove(0)
}

#[test]
fn a_planted_setting_is_named_before_what_changes_often() {
    let mut points = days(1);
    for point in &mut points[10..] {
        point.rate.value *= 0.9;
        *point
            .facts
            .get_mut("setting net.core.bpf_jit_harden")
            .unwrap() = "2".into();
    }
    let judged = one(points);
    let [change] = &judged.changes[..] else {
        panic!("{:?}", judged.changes)
    };
    assert_eq!((change.index, change.is_regression()), (10, true));
    assert!(
        (change.relative() + 0.1).abs() < 0.015 && change.ratio.high < Some(0.92),
        "{:?}",
        change.ratio
    );
    let causes: Vec<(&str, &str, &str, usize)> = change
        .causes
        .iter()
        .map(|c| {
            (
                c.what.as_str(),
                c.before.as_str(),
                c.after.as_str(),
                c.elsewhere,
            )
        })
        .collect();
    assert_eq!(
        causes,
        [
            ("setting net.core.bpf_jit_harden", "0", "2", 0),
            ("kernel", "6.1.0-1", "6.1.0-2", 2)
        ]
    );
}

#[test]
fn the_machine_is_told_from_what_is_measured() {
    // The machine loses a fifth of its speed on day 8; the forwarding of 15 % on day 14.
    let mut points = days(2);
    for (day, point) in points.iter_mut().enumerate() {
        let machine = if day >= 8 { 0.8 } else { 1.0 };
        let forwarding = if day >= 14 { 0.85 } else { 1.0 };
        let ratio = 0.5 * forwarding * point.rate.value / 1e6;
        point.rate.value *= machine * forwarding;
        let figure = Figure {
            value: ratio,
            error: 0.0,
            runs: 6,
        };
        point.relative = Some(Relative {
            to: "tester-baseline".into(),
            figure,
        });
    }
    let judged = one(points);
    assert_eq!(judged.measure, "ratio to tester-baseline");
    assert_eq!(
        judged.changes.iter().map(|c| c.index).collect::<Vec<_>>(),
        [14]
    );
    assert_eq!(
        judged
            .of_the_machine
            .iter()
            .map(|c| c.index)
            .collect::<Vec<_>>(),
        [8]
    );
}

/// The tester alone is no DUT that could regress.
#[test]
fn the_tester_alone_is_the_machine() {
    let mut points = days(2);
    points[8..].iter_mut().for_each(|p| p.rate.value *= 0.8);
    let mut alone = timeline(points);
    assert_eq!(
        judge(std::slice::from_ref(&alone), |_| {}).timelines[0]
            .changes
            .len(),
        1
    );
    alone.key.tester = true;
    let judged = judge(&[alone], |_| {}).timelines.remove(0);
    assert_eq!((judged.changes.len(), judged.worst()), (0, 0.0));
    assert_eq!(judged.of_the_machine[0].index, 8);
}

/// Short time lines with heavy tails, whose level falls by a little more than their noise.
#[test]
fn no_change_has_an_interval_that_includes_0() {
    let (mut proven, mut unproven) = (0, 0);
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut noise = || 0.01 * normal(&mut random) / normal(&mut random).abs().max(0.1);
        let level = |day| if day < 6 { 1e6 } else { 0.95e6 };
        let points = (0..12).map(|day| point(day, level(day) * (1.0 + noise())));
        let judged = one(points.collect());
        assert!(
            judged
                .changes
                .iter()
                .all(|c| c.ratio.low > Some(1.0) || c.ratio.high < Some(1.0))
        );
        proven += judged.changes.len();
        let mut warnings = judged.warnings.iter();
        unproven +=
            usize::from(warnings.any(|w| w.contains("neither slower nor faster is proven")));
    }
    assert!(
        proven > 0 && unproven > 0,
        "{proven} proven, {unproven} not"
    );
}

#[test]
fn a_few_ratios_do_not_make_a_time_line() {
    let mut points = days(3);
    let figure = Figure {
        value: 0.5,
        error: 0.0,
        runs: 6,
    };
    points[3].relative = Some(Relative {
        to: "tester-baseline".into(),
        figure,
    });
    let judged = one(points);
    assert_eq!((judged.measure.as_str(), judged.points.len()), ("rate", 20));
}

#[test]
fn a_regression_that_was_made_good_says_where() {
    let mut points = days(4);
    points[8..13].iter_mut().for_each(|p| p.rate.value *= 0.85);
    let judged = one(points);
    assert_eq!(judged.changes.len(), 2, "{:?}", judged.changes);
    assert_eq!(
        judged.changes[0].made_good.as_deref(),
        Some("2026-01-14T06:00:00Z")
    );
    assert!(judged.changes[1].made_good.is_none());
    assert!(judged.overall.is_some_and(|o| (o - 1.0).abs() < 0.02));
}

#[test]
fn a_single_dip_is_an_outlier() {
    let mut points = days(5);
    points[11].rate.value *= 0.69;
    let judged = one(points);
    assert!(judged.changes.is_empty());
    let outlier = judged
        .outliers
        .iter()
        .find(|o| o.index == 11)
        .expect("named");
    assert!((outlier.relative + 0.31).abs() < 0.03, "{outlier:?}");
}

fn warned(judged: &Judged, text: &str) -> bool {
    judged.warnings.iter().any(|w| w.contains(text))
}

#[test]
fn what_to_beware_of() {
    assert!(warned(&one(days(6)[..7].to_vec()), "7 points are too few"));
    let plain = one(days(6));
    assert_eq!(plain.warnings, [""; 0]);

    let mut last = days(6);
    last[19].rate.value *= 0.7;
    assert!(warned(&one(last), "the last point is off the level"));

    let mut random = SplitMix64::new(77);
    let mut modes = days(6);
    modes.iter_mut().for_each(|p| {
        p.rate.value *= if random.next_u64() >> 63 == 1 {
            0.6
        } else {
            1.0
        }
    });
    let modes = one(modes);
    assert!(
        warned(&modes, "two modes") && modes.changes.is_empty(),
        "{:?} {:?}",
        modes.warnings,
        modes.changes
    );
    assert!(modes.outliers.is_empty());

    let mut gap = days(6);
    gap.iter_mut()
        .skip(12)
        .for_each(|p| p.place = Place::at_time(&p.place.name.replace("2026-", "2027-")));
    assert!(warned(
        &one(gap),
        "a gap of 366 times the usual distance between 2026-01-12"
    ));

    let mut setup = days(6);
    setup.iter_mut().enumerate().for_each(|(i, p)| {
        p.facts.insert(
            "sender.flows".into(),
            if i < 9 { "2000" } else { "5000" }.into(),
        );
        p.facts.insert("sender.command".into(), i.to_string());
    });
    let setup = one(setup);
    assert!(
        warned(&setup, "may be due to that: sender.flows"),
        "{:?}",
        setup.warnings
    );

    let mut slow = days(6);
    slow.iter_mut()
        .enumerate()
        .for_each(|(i, p)| p.rate.value = 1e6 + 1e3 * i as f64 + (i % 2) as f64 * 4e3);
    let slow = one(slow);
    assert!(
        warned(&slow, "slow rise") || !slow.changes.is_empty(),
        "{:?}",
        slow.warnings
    );
}

#[test]
fn regressions_come_first_and_the_largest_of_them() {
    let planted = |factor: f64, seed: u64| {
        let mut points = days(seed);
        points[10..].iter_mut().for_each(|p| p.rate.value *= factor);
        timeline(points)
    };
    let history = judge(
        &[
            planted(1.0, 8),
            planted(1.3, 9),
            planted(0.95, 10),
            planted(0.8, 11),
        ],
        |_| {},
    );
    let worst: Vec<f64> = history
        .timelines
        .iter()
        .map(|t| (t.worst() * 20.0).round() / 20.0)
        .collect();
    assert_eq!(worst, [-0.2, -0.05, 0.0, 0.0]);
    assert_eq!(history.long_enough, 4);
    assert!((history.expected_by_chance - 0.08).abs() < 1e-9);
}

#[test]
fn commits_between_revisions_are_counted() {
    let revision = |n: u32| revision::Revision::parse(&n.to_string()).unwrap().0;
    let mut points = days(12);
    points[10..].iter_mut().for_each(|p| p.rate.value *= 1.2);
    for (i, point) in points.iter_mut().enumerate() {
        point.facts.clear();
        point.place = Place::at_revision(revision(309_220 + i as u32));
    }
    let judged = one(points);
    let [cause] = &judged.changes[0].causes[..] else {
        panic!("{:?}", judged.changes)
    };
    assert_eq!(
        (
            cause.what.as_str(),
            cause.before.as_str(),
            cause.after.as_str()
        ),
        ("source", "r309229", "r309230")
    );
    assert_eq!((cause.commits, cause.elsewhere), (Some(1), 18));
}
