//! Ranks with ties, the exact null distributions of the statistics made of them, and the tests by them: Mann and Whitney's of two
//! sets, Wilcoxon's of paired differences.

use crate::distribution::{normal_p, normal_quantile};
use crate::sorted;
use serde::Serialize;

/// Most pairs for which the distribution without ties is counted out: the normal approximation is off by less than 0.0005 beyond.
const EXACT_PAIRS: usize = 10_000;

/// Most additions for which the permutation distribution of tied values is counted out: some 30 ms.
const EXACT_STEPS: usize = 20_000_000;

/// Most differences for which the exact distribution of signed ranks is counted out.
const EXACT_DIFFERENCES: usize = 100;

/// Values in ascending order with their places, and the sizes of the groups that tie.
pub fn tie_sizes(sorted: &[f64]) -> impl Iterator<Item = usize> + '_ {
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len)
}

/// Ranks from 1, ties sharing the mean of theirs, times two so that they are whole; in the order of `values`.
pub fn doubled_midranks(values: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut before = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        // Ranks before+1 ..= before+len: twice their mean.
        let doubled = (2 * before + group.len() + 1) as u64;
        group.iter().for_each(|i| ranks[*i] = doubled);
        before += group.len();
    }
    ranks
}

/// A distribution over 0..len, as probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Discrete(pub Vec<f64>);

impl Discrete {
    /// Twice the smaller tail, at most 1: the usual two-sided p of a distribution that need not be symmetric.
    pub fn two_sided(&self, k: usize) -> f64 {
        let at_most: f64 = self.0.iter().take(k.saturating_add(1)).sum();
        let at_least: f64 = self.0.iter().skip(k).rev().sum();
        (2.0 * at_most.min(at_least)).min(1.0)
    }

    /// The smallest two-sided p that any outcome has.
    pub fn smallest_p(&self) -> f64 {
        let first = self.0.iter().copied().find(|p| *p > 0.0).unwrap_or(1.0);
        let last = self
            .0
            .iter()
            .rev()
            .copied()
            .find(|p| *p > 0.0)
            .unwrap_or(1.0);
        (2.0 * first.min(last)).min(1.0)
    }

    /// The largest k with P(X < k) <= `alpha` / 2, at least 0: how many outcomes an interval leaves out at each end.
    pub fn cut(&self, alpha: f64) -> usize {
        let mut below = 0.0;
        let mut k = 0;
        for p in &self.0 {
            below += p;
            // Sums of equal shares, such as 0.025 of 40 outcomes, must not fail by their rounding.
            if below > alpha / 2.0 * (1.0 + 1e-12) {
                break;
            }
            k += 1;
        }
        k
    }

    /// The distribution of the sum with an independent one.
    pub fn plus(&self, other: &Discrete) -> Discrete {
        let mut sum = vec![0.0; self.0.len() + other.0.len() - 1];
        for (i, p) in self.0.iter().enumerate() {
            for (j, q) in other.0.iter().enumerate() {
                sum[i + j] += p * q;
            }
        }
        Discrete(sum)
    }
}

/// Null distribution of Mann and Whitney's U of `n` and `m` values without ties, over 0..=n*m.
///
/// The generating function is the Gaussian binomial coefficient (Mann & Whitney 1947; Andrews, "The Theory of
/// Partitions", chapter 3), built factor by factor (1 - q^(m+i)) / (1 - q^i). The lower half is computed, in which no
/// digits are lost, and mirrored.
pub fn mann_whitney_null(n: usize, m: usize) -> Discrete {
    let (n, m) = (n.min(m), n.max(m));
    let half = n * m / 2;
    let mut p = vec![0.0; half + 1];
    p[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..=half).rev() {
            p[u] -= p[u - m - i];
        }
        for u in i..=half {
            p[u] += p[u - i];
        }
        let share = i as f64 / (m + i) as f64;
        p.iter_mut().for_each(|v| *v *= share);
    }
    let mut all = p.clone();
    all.extend((half + 1..=n * m).map(|u| p[n * m - u]));
    Discrete(all)
}

/// Null distribution of the sum of `chosen` of these whole numbers, each choice equally likely, over the sum minus
/// the least possible sum: the exact permutation distribution of a rank sum with ties.
///
/// Returns the least sum with it. One number after the other is chosen or not, with the probability that it has given
/// how many were chosen before (a shift algorithm in the manner of Streitberg & Roehmel 1986).
pub fn chosen_sum_null(numbers: &[u64], chosen: usize) -> (u64, Discrete) {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    let least: u64 = sorted[..chosen].iter().sum();
    let most: u64 = sorted[n - chosen..].iter().sum();
    // States hold the excess over the smallest sum of as many numbers, which never shrinks when another is added.
    let width = (most - least) as usize + 1;
    let mut states = vec![vec![0.0; width]; chosen + 1];
    states[0][0] = 1.0;
    for (i, number) in sorted.iter().enumerate() {
        for k in (0..chosen.min(i + 1)).rev() {
            let take = (chosen - k) as f64 / (n - i) as f64;
            let shift = (number - sorted[k]) as usize;
            let (lower, upper) = states.split_at_mut(k + 1);
            let (from, to) = (&mut lower[k], &mut upper[0]);
            for s in 0..width {
                let p = from[s];
                if p != 0.0 {
                    if s + shift < width {
                        to[s + shift] += p * take;
                    }
                    from[s] = p * (1.0 - take);
                }
            }
        }
    }
    (least, Discrete(states.swap_remove(chosen)))
}

/// Null distribution of the sum of those of these whole numbers that a fair coin picks, one toss for each.
pub fn coin_sum_null(numbers: &[u64]) -> Discrete {
    let total: u64 = numbers.iter().sum();
    let mut p = vec![0.0; total as usize + 1];
    p[0] = 1.0;
    let mut reached = 0;
    for number in numbers {
        let step = *number as usize;
        reached += step;
        for s in (0..=reached).rev() {
            let picked = if s >= step { p[s - step] } else { 0.0 };
            p[s] = 0.5 * (p[s] + picked);
        }
    }
    Discrete(p)
}

/// The outcome of a rank test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankTest {
    /// U: pairs in which the second set's value is the larger one, ties counting one half; or W: the sum of the ranks of the
    /// differences above 0.
    pub statistic: f64,
    /// Values that it rests on: differences of 0 are left out.
    pub n: usize,
    /// Two-sided p.
    pub p: f64,
    /// Whether p comes from the exact distribution rather than from the normal approximation.
    pub exact: bool,
    /// The smallest p that values of these counts and with these ties could have; 0 where p is approximate.
    pub smallest_p: f64,
}

impl RankTest {
    /// By the distribution of the outcome `k`: p is twice the smaller tail.
    fn exact(statistic: f64, n: usize, null: &Discrete, k: u64) -> RankTest {
        RankTest {
            statistic,
            n,
            p: null.two_sided(k as usize),
            exact: true,
            smallest_p: null.smallest_p(),
        }
    }

    /// By the normal approximation, with a correction for continuity.
    pub(super) fn approximate(statistic: f64, n: usize, (mean, variance): (f64, f64)) -> RankTest {
        let p = normal_p(statistic - mean, 0.5, variance);
        RankTest {
            statistic,
            n,
            p,
            exact: false,
            smallest_p: 0.0,
        }
    }
}

/// Counts of the pairs of two sets, by their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    /// Twice the pairs in which the second value is larger, plus those that tie.
    pub doubled_u: u64,
    /// The sum of t^3 - t over all groups of t equal values.
    pub ties: u128,
}

/// Compares each value of `first` with each of `second`, both sorted, in one pass.
pub fn pairs(first: &[f64], second: &[f64]) -> Pairs {
    let (mut i, mut j) = (0, 0);
    let mut found = Pairs {
        doubled_u: 0,
        ties: 0,
    };
    while i < first.len() || j < second.len() {
        let value = match (first.get(i), second.get(j)) {
            (Some(a), Some(b)) => a.min(*b),
            (Some(v), None) | (None, Some(v)) => *v,
            (None, None) => break,
        };
        let same = |values: &[f64]| values.iter().take_while(|v| **v == value).count();
        let (a, b) = (same(&first[i..]), same(&second[j..]));
        found.doubled_u += b as u64 * (2 * i + a) as u64;
        let t = (a + b) as u128;
        found.ties += t * t * t - t;
        (i, j) = (i + a, j + b);
    }
    found
}

/// Mann and Whitney's U test, of two sorted sets: does one tend to larger values than the other? `None` where one is empty.
///
/// Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Ann.
/// Math. Statist. 18 (1947). Few values: the exact distribution, with ties that of all assignments of the values seen
/// to the two sets; p is twice the smaller tail. Many: the normal approximation with corrections for ties and
/// continuity (Lehmann, "Nonparametrics", 1975, 1.5). Assumes independent values; if the spreads differ much, a small
/// p does not prove that the medians do.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 {
        return None;
    }
    let Pairs { doubled_u, ties } = pairs(first, second);
    let u = doubled_u as f64 / 2.0;
    if ties == 0 && n.saturating_mul(m) <= EXACT_PAIRS {
        return Some(RankTest::exact(
            u,
            n + m,
            &mann_whitney_null(n, m),
            doubled_u / 2,
        ));
    }
    let steps = (n + m)
        .saturating_mul(n.min(m))
        .saturating_mul(n.saturating_mul(m).saturating_mul(2));
    if ties > 0 && steps <= EXACT_STEPS {
        let both = if n <= m {
            [first, second]
        } else {
            [second, first]
        };
        let ranks = doubled_midranks(&both.concat());
        let (least, null) = chosen_sum_null(&ranks, n.min(m));
        let sum: u64 = ranks[..n.min(m)].iter().sum();
        return Some(RankTest::exact(u, n + m, &null, sum - least));
    }
    Some(RankTest::approximate(u, n + m, u_moments(n, m, ties)))
}

/// Mean and variance of U; `ties` as in [`Pairs`].
pub(super) fn u_moments(n: usize, m: usize, ties: u128) -> (f64, f64) {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    (
        n * m / 2.0,
        n * m / 12.0 * (all + 1.0 - ties as f64 / (all * (all - 1.0))),
    )
}

/// Wilcoxon's signed-rank test: do differences lie symmetrically about 0? `None` where none is other than 0.
///
/// Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945). Up to 100 differences: the exact
/// distribution over all signs, with ties too; more: the normal approximation with corrections for ties and continuity
/// (Lehmann, "Nonparametrics", 1975, 3.2). Assumes independent differences, symmetric about their median.
pub fn signed_rank(differences: &[f64]) -> Option<RankTest> {
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let n = kept.len();
    if n == 0 {
        return None;
    }
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranks = doubled_midranks(&sizes);
    let doubled: u64 = kept
        .iter()
        .zip(&ranks)
        .filter(|(d, _)| **d > 0.0)
        .map(|(_, r)| r)
        .sum();
    let w = doubled as f64 / 2.0;
    if n <= EXACT_DIFFERENCES {
        return Some(RankTest::exact(w, n, &coin_sum_null(&ranks), doubled));
    }
    let sizes = sorted(sizes);
    let ties: f64 = tie_sizes(&sizes)
        .map(|t| (t as f64).powi(3) - t as f64)
        .sum();
    let (mean, variance) = w_moments(n);
    Some(RankTest::approximate(w, n, (mean, variance - ties / 48.0)))
}

/// Mean and variance of W without ties.
fn w_moments(n: usize) -> (f64, f64) {
    let n = n as f64;
    (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0)
}

/// The outcomes that an interval of the differences between the values of two sets leaves out at each end, plus 1; 0 without an
/// interval.
pub(super) fn cut_of_pairs(n: usize, m: usize, alpha: f64) -> u64 {
    let exact = n.saturating_mul(m) <= EXACT_PAIRS;
    cut(
        exact.then(|| mann_whitney_null(n, m)),
        u_moments(n, m, 0),
        alpha,
    )
}

/// [`cut_of_pairs`] for the means of pairs of differences.
pub(super) fn cut_of_means(n: usize, alpha: f64) -> u64 {
    let exact = n <= EXACT_DIFFERENCES;
    cut(
        exact.then(|| coin_sum_null(&(1..=n as u64).collect::<Vec<_>>())),
        w_moments(n),
        alpha,
    )
}

fn cut(null: Option<Discrete>, (mean, variance): (f64, f64), alpha: f64) -> u64 {
    let approximate = || mean + 0.5 + normal_quantile(alpha / 2.0) * variance.sqrt();
    null.map_or_else(
        || approximate().floor().max(0.0) as u64,
        |null| null.cut(alpha) as u64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_their_mean_where_values_tie() {
        assert_eq!(doubled_midranks(&[3.0, 1.0, 2.0, 2.0]), [8, 2, 5, 5]);
        assert_eq!(
            tie_sizes(&[1.0, 2.0, 2.0, 3.0]).collect::<Vec<_>>(),
            [1, 2, 1]
        );
    }

    #[test]
    fn u_of_three_and_three() {
        // 20 arrangements: 1 1 2 3 3 3 3 2 1 1.
        let counts: Vec<f64> = mann_whitney_null(3, 3)
            .0
            .iter()
            .map(|p| (p * 20.0).round())
            .collect();
        assert_eq!(counts, [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        assert!((mann_whitney_null(3, 3).smallest_p() - 0.1).abs() < 1e-15);
    }

    #[test]
    fn both_ways_to_count_agree() {
        for (n, m) in [(1, 1), (1, 9), (4, 7), (13, 13), (20, 31)] {
            let numbers: Vec<u64> = (1..=(n + m) as u64).collect();
            let (least, counted) = chosen_sum_null(&numbers, n);
            assert_eq!(least as usize, n * (n + 1) / 2);
            let product = mann_whitney_null(n, m);
            assert_eq!(product.0.len(), counted.0.len());
            for (a, b) in product.0.iter().zip(&counted.0) {
                assert!((a - b).abs() <= 1e-11 * b, "{n} {m}: {a} {b}");
            }
            assert!((product.0.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn coins_and_ranks() {
        // Wilcoxon's signed ranks of three: 0 1 2 3 3 4 5 6.
        let p = coin_sum_null(&[1, 2, 3]);
        assert_eq!(p.0, [0.125, 0.125, 0.125, 0.25, 0.125, 0.125, 0.125]);
        assert_eq!(
            (p.two_sided(1), p.two_sided(5), p.two_sided(6)),
            (0.5, 0.5, 0.25)
        );
    }
}
