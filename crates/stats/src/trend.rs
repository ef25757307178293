//! Tests of the order of runs: does a series drift, do neighbours resemble each other, do values come in runs?

use super::distribution::{normal_p, normal_upper};
use super::ln_choose;
use super::rank::{Discrete, doubled_midranks, mann_whitney_null, tie_sizes};
use statrs::function::beta::beta_reg;

/// Most values for which the exact distribution of Kendall's statistic is counted out.
const EXACT_KENDALL: usize = 50;

/// From this number of values on, the number of runs is taken as normal.
const NORMAL_RUNS: usize = 1000;

/// A monotonic trend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Kendall's tau-b of the values with their order: 1 where each is larger than all before, -1 where smaller.
    pub tau: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Mann's test for a trend in the order of the values. `None` for fewer than 3 values or equal ones.
///
/// Mann, "Nonparametric tests against trend", Econometrica 13 (1945); Kendall, "Rank Correlation Methods". Up to 50
/// values the exact distribution: inversions of a shuffled set are a sum of independent Mann-Whitney statistics, one for
/// each group of ties against the smaller values. Beyond, normal with corrections for ties and continuity. Time n log n.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    let mut sorted = values.to_vec();
    let inversions = sort_counting(&mut sorted);
    let ties: Vec<usize> = tie_sizes(&sorted).collect();
    if n < 3 || ties.len() == 1 {
        return None;
    }
    let pairs = n as u64 * (n as u64 - 1) / 2;
    let untied = pairs
        - ties
            .iter()
            .map(|t| *t as u64 * (*t as u64 - 1) / 2)
            .sum::<u64>();
    let s = untied as f64 - 2.0 * inversions as f64;
    let tau = s / (pairs as f64 * untied as f64).sqrt();
    let p = if n <= EXACT_KENDALL {
        inversions_null(&ties).two_sided(inversions as usize)
    } else {
        let spread = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
        let variance =
            (spread(n as f64) - ties.iter().map(|t| spread(*t as f64)).sum::<f64>()) / 18.0;
        normal_p(s, 1.0, variance)
    };
    Some(Trend { tau, p })
}

fn inversions_null(ties: &[usize]) -> Discrete {
    let mut before = 0;
    let mut total = Discrete(vec![1.0]);
    for group in ties {
        total = total.plus(&mann_whitney_null(*group, before));
        before += group;
    }
    total
}

/// Sorts by merging, and counts the pairs in which an earlier value is larger.
fn sort_counting(values: &mut [f64]) -> u64 {
    let n = values.len();
    let mut scratch = values.to_vec();
    let mut inversions = 0;
    let mut width = 1;
    while width < n {
        for start in (0..n).step_by(2 * width) {
            let (middle, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut i, mut j) = (start, middle);
            for slot in &mut scratch[start..end] {
                if j >= end || (i < middle && values[i] <= values[j]) {
                    *slot = values[i];
                    i += 1;
                } else {
                    *slot = values[j];
                    j += 1;
                    inversions += (middle - i) as u64;
                }
            }
        }
        values.copy_from_slice(&scratch);
        width *= 2;
    }
    inversions
}

/// One-sided p of neighbours being more alike than chance makes them; `None` for fewer than 10 values or equal ones.
///
/// Bartels, "The rank version of von Neumann's ratio test for randomness", J. Am. Stat. Assoc. 77 (1982), with his beta
/// approximation: ranks make it as good for outliers and skewed values as for normal ones.
pub fn neighbours_alike(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if n < 10.0 {
        return None;
    }
    let ranks: Vec<f64> = doubled_midranks(values)
        .iter()
        .map(|r| *r as f64 / 2.0)
        .collect();
    let mean = (n + 1.0) / 2.0;
    let squares: f64 = ranks.iter().map(|r| (r - mean).powi(2)).sum();
    if squares <= 0.0 {
        return None;
    }
    let ratio = ranks.windows(2).map(|w| (w[0] - w[1]).powi(2)).sum::<f64>() / squares;
    let variance =
        4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
    if n > 1000.0 {
        return Some(normal_upper((2.0 - ratio) / variance.sqrt()));
    }
    // Symmetric about 2 within 0..4: a beta distribution of the same variance.
    let shape = (4.0 / variance - 1.0) / 2.0;
    Some(beta_reg(shape, shape, (ratio / 4.0).clamp(0.0, 1.0)))
}

/// Runs above and below the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// How many there are.
    pub count: usize,
    /// How many chance would make, on average.
    pub expected: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Wald and Wolfowitz's test for the number of runs above and below `median`, values equal to it left out. `None` if one side has
/// no values.
///
/// Wald & Wolfowitz, "On a test whether two samples are from the same population", Ann. Math. Statist. 11 (1940): the exact
/// distribution below 1,000 values, normal beyond.
pub fn runs(values: &[f64], median: f64) -> Option<Runs> {
    let signs: Vec<bool> = values
        .iter()
        .filter(|v| **v != median)
        .map(|v| *v > median)
        .collect();
    let above = signs.iter().filter(|s| **s).count();
    let below = signs.len() - above;
    if above == 0 || below == 0 {
        return None;
    }
    let count = 1 + signs.windows(2).filter(|w| w[0] != w[1]).count();
    let (a, b) = (above as f64, below as f64);
    let n = a + b;
    let expected = 1.0 + 2.0 * a * b / n;
    let p = if signs.len() < NORMAL_RUNS {
        runs_null(above, below).two_sided(count)
    } else {
        let variance = 2.0 * a * b * (2.0 * a * b - n) / (n * n * (n - 1.0));
        normal_p(count as f64 - expected, 0.5, variance)
    };
    Some(Runs { count, expected, p })
}

/// How many runs `above` and `below` values make in random order.
fn runs_null(above: usize, below: usize) -> Discrete {
    let all = ln_choose(above + below, above);
    // Ways to cut each kind into this number of runs.
    let ways = |a: usize, b: usize| {
        (ln_choose(above - 1, a - 1) + ln_choose(below - 1, b - 1) - all).exp()
    };
    let most = 2 * above.min(below) + 1;
    let share = |runs: usize| match runs {
        0 | 1 => 0.0,
        _ if runs.is_multiple_of(2) => 2.0 * ways(runs / 2, runs / 2),
        _ => ways(runs / 2, runs / 2 + 1) + ways(runs / 2 + 1, runs / 2),
    };
    Discrete((0..=most).map(share).collect())
}
