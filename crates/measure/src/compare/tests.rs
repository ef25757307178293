use super::*;
use crate::slower::{Slowdown, slowdown};

const CONFIDENCE: f64 = 0.95;

fn rates(name: &str, values: &[f64]) -> Rates {
    let blocks = (0..values.len() as u32).collect();
    Rates {
        name: name.into(),
        values: values.into(),
        blocks,
        ..Rates::default()
    }
}

#[test]
fn a_drift_that_both_share_is_taken_out_by_pairing() {
    let drift: Vec<f64> = (0..12).map(|i| 7.0e6 + 0.4e6 * f64::from(i)).collect();
    let slower: Vec<f64> = drift
        .iter()
        .enumerate()
        .map(|(i, v)| v * (0.69 + 0.001 * (i % 3) as f64))
        .collect();
    let (a, b) = (rates("a", &drift), rates("b", &slower));
    let paired = compare(&a, &b, true, CONFIDENCE).unwrap();
    assert_eq!((paired.outcome, paired.blocks), (Outcome::Slower, Some(12)));
    assert!(
        (paired.change.ratio.median - 0.69).abs() < 0.002,
        "{:?}",
        paired.change
    );
    let ratio = paired.change.ratio;
    assert_eq!(slowdown(&ratio, 0.3), Slowdown::Proven);
    assert_eq!(slowdown(&ratio, 0.35), Slowdown::Excluded);
    let unpaired = compare(&a, &b, false, CONFIDENCE).unwrap();
    let width = |c: &Comparison| c.change.ratio.high.unwrap() - c.change.ratio.low.unwrap();
    assert!(width(&unpaired) > 20.0 * width(&paired));
    assert!(
        unpaired.warnings.iter().any(|w| w.contains("drifted")),
        "{:?}",
        unpaired.warnings
    );
}

#[test]
fn five_blocks_have_an_interval_that_says_what_it_assumes() {
    let a = rates("a", &[100.0, 110.0, 90.0, 105.0, 95.0]);
    let b = rates("b", &[70.0, 75.9, 63.0, 72.0, 66.0]);
    let found = compare(&a, &b, true, CONFIDENCE).unwrap();
    assert_eq!(
        (found.outcome, found.change.method),
        (Outcome::Slower, Method::PairedT)
    );
    assert!(found.warnings.iter().any(|w| w.contains("near normal")));
    let one = compare(&rates("a", &[1.0]), &rates("b", &[0.5]), true, CONFIDENCE).unwrap();
    assert_eq!(
        (one.outcome, one.change.ratio.low),
        (Outcome::NotShown, None)
    );
    assert_eq!(slowdown(&one.change.ratio, 0.03), Slowdown::Undecided);
}

#[test]
fn nothing_in_common_is_no_comparison() {
    let a = Rates {
        blocks: vec![0],
        ..rates("a", &[1.0])
    };
    let b = Rates {
        blocks: vec![1],
        ..rates("b", &[1.0])
    };
    assert!(compare(&a, &b, true, CONFIDENCE).is_none());
    assert!(compare(&rates("a", &[]), &rates("b", &[1.0]), false, CONFIDENCE).is_none());
    assert!(
        compare(
            &rates("a", &[0.0; 6]),
            &rates("b", &[1.0; 6]),
            true,
            CONFIDENCE
        )
        .is_none()
    );
}

#[test]
fn a_verdict_needs_the_rate_and_the_share_where_there_is_one() {
    let (a, b) = (
        rates("a", &[10.0, 10.1, 9.9, 10.0, 10.2, 9.8]),
        rates("b", &[8.0, 8.1, 7.9, 8.0, 8.2, 7.8]),
    );
    let absolute = compare(&a, &b, false, CONFIDENCE).unwrap();
    assert_eq!(absolute.outcome, Outcome::Slower);
    let (share_a, share_b) = (
        rates("a", &[0.5, 0.51, 0.49, 0.5, 0.505, 0.495]),
        rates("b", &[0.5, 0.505, 0.495, 0.51, 0.49, 0.5]),
    );
    let relative = absolute.clone().with_shares(&share_a, &share_b);
    assert_eq!(relative.outcome, Outcome::NotShown);
    assert_eq!(relative.held(0.03).slowdown, Slowdown::Undecided);
    // With other batches, the tester is faster, and the DUT's share smaller, at the same rate.
    let same = compare(&a, &a, false, CONFIDENCE).unwrap();
    let same = same.with_shares(&a, &b);
    assert_eq!(same.outcome, Outcome::NotShown);
    assert_eq!(same.held(0.03).slowdown, Slowdown::Undecided);
    let both = absolute.with_shares(&a, &b);
    assert_eq!(both.outcome, Outcome::Slower);
    assert_eq!(both.held(0.03).slowdown, Slowdown::Proven);
    // Noise is no slow-down, and hides none that is excluded.
    let mut noisy = both.clone();
    noisy.disturbed = Some("b was disturbed".into());
    let held = noisy.held(0.03);
    assert_eq!(held.slowdown, Slowdown::Undecided);
    assert!(
        held.known.contains("not judged: b was disturbed"),
        "{held:?}"
    );
    assert_eq!(noisy.held(0.5).slowdown, Slowdown::Excluded);
    // Whatever the intervals are: with other batches, nothing is decided.
    let batches = both.without_verdict("their batches differ".into());
    assert_eq!(batches.outcome, Outcome::NotShown);
    let held = batches.held(0.03);
    assert_eq!(held.slowdown, Slowdown::Undecided);
    assert!(held.known.contains("their batches differ"), "{held:?}");
}

#[test]
fn equal_sets_are_told_apart_as_rarely_as_promised() {
    let mut random = linerate_wire::SplitMix64::new(11);
    let mut normal = || {
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    };
    for (n, paired) in [(5, true), (12, true), (5, false), (12, false)] {
        let wrong = (0..1000)
            .filter(|_| {
                let mut set = || (0..n).map(|_| (0.02 * normal()).exp()).collect::<Vec<_>>();
                let (a, b) = (rates("a", &set()), rates("b", &set()));
                compare(&a, &b, paired, CONFIDENCE).unwrap().outcome != Outcome::NotShown
            })
            .count();
        assert!(wrong <= 65, "n = {n}, paired {paired}: {wrong} of 1000");
    }
}

#[test]
fn what_is_dropped_is_told_from_what_is_slower() {
    let speeds: Vec<f64> = (0..12).map(|i| 1.0e6 + 0.03e6 * f64::from(i)).collect();
    let passing = Rates {
        handled: speeds.clone(),
        ..rates("passing", &speeds)
    };
    let half: Vec<f64> = speeds.iter().map(|v| v / 2.0).collect();
    let wobbling = speeds
        .iter()
        .enumerate()
        .map(|(i, v)| v * (0.995 + 0.002 * (i % 6) as f64))
        .collect();
    let dropping = Rates {
        handled: wobbling,
        dropped: 0.5,
        lost: 0.5,
        ..rates("dropping", &half)
    };
    for paired in [true, false] {
        let found = compare(&passing, &dropping, paired, CONFIDENCE).unwrap();
        assert_eq!(
            (found.outcome, found.dropped, found.lost),
            (Outcome::Slower, [0.0, 0.5], [0.0, 0.5])
        );
        assert_eq!(
            found.handled.unwrap().outcome(),
            Outcome::NotShown,
            "{:?}",
            found.handled
        );
    }
    assert_eq!(
        compare(&passing, &passing, true, CONFIDENCE)
            .unwrap()
            .handled,
        None
    );
}
