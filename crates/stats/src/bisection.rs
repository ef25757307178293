//! From which element of an ordered list on is everything slower? Bayesian bisection with noisy answers.
//!
//! The first element of the list is good and the last one is not. One of the others is asked at a time, until its side is known, and then
//! the one that halves the probability: M. Horstein, "Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory 9 (1963);
//! R. Waeber, P. I. Frazier & S. G. Henderson, "Bisection search with noisy responses", SIAM J. Control Optim. 51 (2013). There an
//! answer is wrong with a known probability. Here it is a figure, and its likelihood takes the place of that probability.
//!
//! A figure is a contrast: the logarithm of an element's rate less the mean logarithm of both ends' rates of the same block. So a drift of
//! the machine is in none of it. A good element has the contrast +h and a slow one -h, where h is half the difference of the ends. If
//! there are several steps, elements between them lie between these values, and the largest of two is where the contrast changes its
//! sign. Therefore half of the prior of each side is its end's value, and the other half any value of that side, up to twice h.

use super::{median, sorted};

/// The relative standard error of a median absolute deviation, times the root of the number of values, of a normal distribution.
const ERROR: f64 = 1.17;
/// Degrees of freedom of Student's t as the distribution of contrasts: heavy tails, so that one outlier decides nothing.
const FREEDOM: f64 = 4.0;
/// Values of the prior between the middle and twice h.
const GRID: usize = 16;
/// Probabilities that differ by less are alike.
const ALIKE: f64 = 1e-6;
/// The ratio of the standard deviation to the median absolute deviation, of a normal distribution.
const NORMAL: f64 = 1.4826;

/// The logarithm of the odds that an element is on the slow side: ln P(contrasts | slow) - ln P(contrasts | good).
///
/// `half` is h, above 0; `spread` the standard deviation of a contrast. P(contrasts | side) is the mean over the prior of the product of
/// t densities with [`FREEDOM`] degrees of freedom and this scale.
pub fn evidence(contrasts: &[f64], half: f64, spread: f64) -> f64 {
    if contrasts.is_empty() {
        return 0.0;
    }
    // The grid is no finer.
    let scale = spread.max(half / GRID as f64);
    let likelihood = |level: f64| -> f64 {
        let of = |contrast: &f64| {
            let z = (contrast - level * half) / scale;
            -(FREEDOM + 1.0) / 2.0 * (z * z / FREEDOM).ln_1p()
        };
        contrasts.iter().map(of).sum()
    };
    let side = |sign: f64| {
        let between = (0..GRID).map(|n| likelihood(sign * 2.0 * (n as f64 + 0.5) / GRID as f64));
        let between = mean_exp(&between.collect::<Vec<_>>());
        mean_exp(&[likelihood(sign), between])
    };
    side(-1.0) - side(1.0)
}

/// ln of the mean of e^x.
fn mean_exp(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    most + (sum / logs.len() as f64).ln()
}

/// The standard deviation of contrasts whose levels differ from group to group: that of a normal distribution with the same median absolute
/// deviation from the groups' medians, corrected for the medians, plus its own standard error: too small a spread would decide too soon.
/// 0 without two values in a group.
pub fn spread(groups: &[Vec<f64>]) -> f64 {
    let groups = groups.iter().filter(|group| group.len() > 1);
    let mut deviations = Vec::new();
    let mut medians = 0;
    for group in groups {
        let middle = median(group).unwrap_or_default();
        deviations.extend(group.iter().map(|value| (value - middle).abs()));
        medians += 1;
    }
    let n = deviations.len() as f64;
    let deviation = median(&sorted(deviations)).unwrap_or_default();
    match n > 0.0 {
        true => {
            NORMAL * deviation * (n / (n - f64::from(medians))).sqrt() * (1.0 + ERROR / n.sqrt())
        }
        false => 0.0,
    }
}

/// The probability of each element that the slow side begins with it, given the [`evidence`] about some elements. Before, all but the first
/// are equally probable: P(k) is proportional to the product of the odds of all elements from k on.
pub fn posterior(elements: usize, evidence: &[(usize, f64)]) -> Vec<f64> {
    let mut logs = vec![f64::NEG_INFINITY; elements];
    for (at, log) in logs.iter_mut().enumerate().skip(1) {
        let slow = evidence.iter().filter(|(element, _)| *element >= at);
        *log = slow.map(|(_, odds)| odds).sum();
    }
    let all = mean_exp(&logs) + (elements as f64).ln();
    logs.iter().map(|log| (log - all).exp()).collect()
}

/// The element whose answer halves the probability best: that for which the probability of being slow is the nearest to a half. Neither
/// the first nor the last, and none that is not `free`. Of elements that answer the same, the one nearest to the median.
pub fn halving(posterior: &[f64], free: impl Fn(usize) -> bool) -> Option<usize> {
    let mut slow = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (element, probability) in posterior.iter().enumerate() {
        slow += probability;
        let distance = (slow - 0.5).abs();
        let inner = element > 0 && element + 1 < posterior.len();
        let nearer = |(_, least): (usize, f64)| match slow < 0.5 {
            true => distance <= least + ALIKE,
            false => distance < least - ALIKE,
        };
        if inner && free(element) && best.is_none_or(nearer) {
            best = Some((element, distance));
        }
    }
    best.map(|(element, _)| element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn evidence_follows_the_side() {
        let [half, spread] = [0.015, 0.012];
        assert_eq!(evidence(&[], half, spread), 0.0);
        let of = |contrast: f64, n: usize| evidence(&vec![contrast; n], half, spread);
        assert!(of(-0.015, 5) > of(-0.015, 2) && of(-0.015, 2) > 1.0);
        assert!((of(0.015, 5) + of(-0.015, 5)).abs() < 1e-9);
        assert!(of(0.0, 50).abs() < 1e-9);
        // Between the steps of two, it is on the side of the nearer end.
        assert!(of(-0.005, 40) > 4.0 && of(0.005, 40) < -4.0);
        // One outlier takes little back.
        let outlier = evidence(&[-0.015, -0.015, -0.015, -0.015, 3.0], half, spread);
        assert!((outlier - of(-0.015, 4)).abs() < 1.0, "{outlier}");
        // Exact rates.
        assert!(evidence(&[-0.015; 8], half, 0.0) > 20.0);
    }

    #[test]
    fn the_spread_leaves_out_levels_and_outliers() {
        let group = |level: f64| (0..101).map(|n| level + f64::from(n) / 100.0).collect();
        let one: f64 = spread(&[group(0.0)]);
        assert!(
            (one / (NORMAL * 0.25) / (1.0 + ERROR / 101f64.sqrt()) - 1.0).abs() < 0.01,
            "{one}"
        );
        let two = spread(&[group(0.0), group(70.0), vec![9.0]]);
        assert!((0.9..1.0).contains(&(two / one)), "{two}");
        assert_eq!((spread(&[]), spread(&[vec![1.0]])), (0.0, 0.0));
        let mut wild: Vec<f64> = group(0.0);
        wild[3] = 1e9;
        assert!((spread(&[wild]) / one - 1.0).abs() < 0.05);
    }

    #[test]
    fn without_evidence_all_but_the_first_are_equal() {
        assert_eq!(posterior(5, &[]), [0.0, 0.25, 0.25, 0.25, 0.25]);
        assert_eq!(posterior(2, &[]), [0.0, 1.0]);
        assert_eq!(halving(&posterior(65, &[]), |_| true), Some(32));
        assert_eq!(halving(&posterior(2, &[]), |_| true), None);
        assert_eq!(halving(&posterior(5, &[]), |e| e == 3), Some(3));
        // All but 7 and 8 are excluded: the answers of 1 to 6 would be the same, and so would those of 8 and 9.
        let two = posterior(11, &[(6, -20.0), (8, 20.0)]);
        assert_eq!(halving(&two, |_| true), Some(7));
        assert_eq!(halving(&two, |e| e != 7), Some(6));
        assert_eq!(halving(&two, |e| e > 7), Some(8));
    }

    proptest! {
        #[test]
        fn exact_answers_find_each_step(elements in 2usize..200, at in 1usize..200) {
            let at = at.min(elements - 1);
            let mut known = Vec::new();
            let mut asked = 0;
            loop {
                let now = posterior(elements, &known);
                prop_assert!((now.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                if now[at] > 0.99 {
                    break;
                }
                let free = |element: usize| known.iter().all(|(other, _)| *other != element);
                let next = halving(&now, free).unwrap();
                known.push((next, if next >= at { 12.0 } else { -12.0 }));
                asked += 1;
            }
            prop_assert!(asked <= (elements - 1).ilog2() + 1, "{} of {}", asked, elements);
        }

        #[test]
        fn evidence_and_posterior_are_numbers(
            contrasts in prop::collection::vec(-10.0f64..10.0, 0..40), half in 1e-9f64..1.0, spread in 0.0f64..1.0, at in 1usize..9,
        ) {
            let odds = evidence(&contrasts, half, spread);
            prop_assert!(odds.is_finite());
            let opposite: Vec<f64> = contrasts.iter().map(|contrast| -contrast).collect();
            prop_assert!((evidence(&opposite, half, spread) + odds).abs() < 1e-6);
            let all = posterior(9, &[(at, odds)]);
            prop_assert!(all.iter().all(|p| (0.0..=1.0).contains(p)) && (all.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
