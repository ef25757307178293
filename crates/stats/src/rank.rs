//! Ranks with ties, and the exact null distributions of the statistics made of them.

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
    /// P(X <= k).
    pub fn at_most(&self, k: usize) -> f64 {
        self.0.iter().take(k.saturating_add(1)).sum::<f64>().min(1.0)
    }

    /// P(X >= k).
    pub fn at_least(&self, k: usize) -> f64 {
        self.0.iter().skip(k).rev().sum::<f64>().min(1.0)
    }

    /// Twice the smaller tail, at most 1: the usual two-sided p of a distribution that need not be symmetric.
    pub fn two_sided(&self, k: usize) -> f64 {
        (2.0 * self.at_most(k).min(self.at_least(k))).min(1.0)
    }

    /// The smallest two-sided p that any outcome has.
    pub fn smallest_p(&self) -> f64 {
        let first = self.0.iter().copied().find(|p| *p > 0.0).unwrap_or(1.0);
        let last = self.0.iter().rev().copied().find(|p| *p > 0.0).unwrap_or(1.0);
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
/// Its generating function is the Gaussian binomial coefficient (Mann & Whitney 1947; Andrews, "The Theory of
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_their_mean_where_values_tie() {
        assert_eq!(doubled_midranks(&[3.0, 1.0, 2.0, 2.0]), [8, 2, 5, 5]);
        assert_eq!(tie_sizes(&[1.0, 2.0, 2.0, 3.0]).collect::<Vec<_>>(), [1, 2, 1]);
    }

    #[test]
    fn u_of_three_and_three() {
        // 20 arrangements: 1 1 2 3 3 3 3 2 1 1.
        let counts: Vec<f64> = mann_whitney_null(3, 3).0.iter().map(|p| (p * 20.0).round()).collect();
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
        assert_eq!((p.at_most(1), p.at_least(5), p.two_sided(6)), (0.25, 0.25, 0.25));
    }
}
