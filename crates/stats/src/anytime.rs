//! Intervals of a median that are valid at every moment, so that somebody may look after each value and stop when the interval pleases.
//!
//! Whether a value lies below the true median is the toss of a fair coin. The probability of the tosses under a coin of unknown bias, every
//! bias being equally probable, divided by their probability under the fair coin, is a martingale:
//! E = 2^n j! (n - j)! / (n + 1)! after `j` of `n` values below. So the probability that it ever reaches 1 / error is at most the error
//! (J. Ville, "Étude critique de la notion de collectif", 1939). All medians for which E has not reached that are an interval between two
//! order statistics: D. A. Darling & H. Robbins, "Confidence sequences for mean, variance, and median", Proc. Natl. Acad. Sci. 58 (1967);
//! H. Robbins, "Statistical methods related to the law of the iterated logarithm", Ann. Math. Stat. 41 (1970).

use super::ln_choose;
use std::f64::consts::LN_2;

/// The bound k after `n` values: the interval reaches from the k-th smallest value to the k-th largest. 0 if there is no interval yet.
///
/// The intervals of all `n` together cover the median with a probability of at least 1 - `error`. With an error of 5 % the first one comes
/// with 8 values.
pub fn cut(n: usize, error: f64) -> usize {
    let least = n as f64 * LN_2 - (n as f64 + 1.0).ln() + error.ln();
    let excluded = |below: &usize| ln_choose(n, *below) <= least;
    // The number of ways grows up to the middle, which is never excluded.
    let (mut low, mut high) = (0, n / 2);
    while low < high {
        let middle = low.midpoint(high);
        if excluded(&middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial_half_cut;
    use linerate_wire::SplitMix64;
    use proptest::prelude::*;

    #[test]
    fn first_intervals_by_hand() {
        // 2^8 / 9 = 28 is above 20, 2^7 / 8 = 16 is not.
        assert_eq!((cut(7, 0.05), cut(8, 0.05)), (0, 1));
        // 2^11 / (12 * 11) = 15.5, 2^12 / (13 * 12) = 26.3.
        assert_eq!((cut(11, 0.05), cut(12, 0.05)), (1, 2));
        assert_eq!((cut(0, 0.05), cut(1, 0.05)), (0, 0));
    }

    proptest! {
        #[test]
        fn they_are_wider_than_those_of_one_look(n in 0usize..5000, error in 0.001f64..0.2) {
            let k = cut(n, error);
            prop_assert!(k <= binomial_half_cut(n, 1.0 - error));
            prop_assert!(k <= cut(n + 1, error) && cut(n, error / 2.0) <= k);
            // Both ends are there, and in order.
            prop_assert!(k == 0 || 2 * k <= n);
        }
    }

    /// Fair coins, looked at after each of 2,000 tosses.
    #[test]
    fn looking_at_every_moment_errs_in_five_percent_at_most() {
        let cuts: Vec<usize> = (0..=2000).map(|n| cut(n, 0.05)).collect();
        let mut random = SplitMix64::new(7);
        let mut wrong = 0;
        for _ in 0..2000 {
            let mut below = 0;
            wrong += usize::from((1..=2000).any(|n| {
                below += (random.next_u64() >> 63) as usize;
                below < cuts[n] || n - below < cuts[n]
            }));
        }
        println!(
            "{:.1} % of sequences leave their interval",
            wrong as f64 / 20.0
        );
        assert!((20..=100).contains(&wrong), "{wrong} of 2000");
    }
}
