//! Judgements of claims by estimates.

use super::*;
use Judgement::{Met, Missed, Undecided};
use proptest::prelude::*;

fn estimate(low: f64, high: f64) -> Estimate {
    Estimate {
        median: (low + high) / 2.0,
        low: Some(low),
        high: Some(high),
        n: 10,
    }
}

#[test]
fn intervals_decide() {
    for (claim, low, high, judgement) in [
        (Claim::Slower(0.0), 0.90, 0.99, Met),
        (Claim::Slower(0.0), 0.90, 1.01, Undecided),
        (Claim::Slower(0.0), 1.00, 1.01, Missed),
        (Claim::Slower(0.05), 0.90, 0.94, Met),
        (Claim::Slower(0.05), 0.96, 0.99, Missed),
        (Claim::Faster(0.05), 1.06, 1.07, Met),
        (Claim::Faster(0.05), 1.01, 1.02, Missed),
        (Claim::Within(0.15), 0.90, 1.10, Met),
        (Claim::Within(0.15), 0.80, 1.10, Undecided),
        (Claim::Within(0.15), 0.70, 0.80, Missed),
        (Claim::NoDifference, 0.99, 1.01, Met),
        (Claim::NoDifference, 1.01, 1.02, Missed),
        (Claim::AtLeast(1e5), 2e5, 3e5, Met),
        (Claim::AtLeast(1e5), 1e4, 2e4, Missed),
        (Claim::AtMost(1e5), 1e4, 2e5, Undecided),
        (Claim::AllPass, 1.0, 1.0, Met),
        (Claim::AllPass, 0.999, 0.999, Missed),
        (Claim::NonePasses, 0.0, 0.0, Met),
        (Claim::NonePasses, 1e-6, 1e-6, Missed),
    ] {
        assert_eq!(
            claim.judge(&estimate(low, high)),
            judgement,
            "{claim:?} {low} {high}"
        );
    }
    let none = Estimate {
        median: 0.5,
        low: None,
        high: None,
        n: 2,
    };
    assert_eq!(Claim::Slower(0.0).judge(&none), Undecided);
}

proptest! {
    /// A narrower interval inside another never turns a decision around.
    #[test]
    fn more_trials_do_not_reverse_a_judgement(a in 0.5f64..1.5, b in 0.0f64..0.3, inner in 0.0f64..1.0, by in 0.0f64..0.4) {
        let (wide, narrow) = (estimate(a, a + b), estimate(a + b * inner / 2.0, a + b * (1.0 - inner / 2.0)));
        for claim in [Claim::Slower(by), Claim::Faster(by), Claim::Within(by)] {
            let before = claim.judge(&wide);
            prop_assert!(before == Undecided || claim.judge(&narrow) == before);
        }
    }
}
