//! Do the spreads of two sets differ?

use super::distribution::t_two_sided;
use super::median_sorted;
use super::moments::Moments;

/// Fewer values are not tested: distances from a median that is made of them come in equal pairs, which makes false
/// alarms of 4 sets in 100 at a level of 1 %.
const FEWEST: usize = 7;

/// Two-sided p of equal spreads, of sorted sets; `None` for fewer than 7 values in one, infinite ones, or where neither
/// varies.
///
/// Brown & Forsythe, "Robust tests for the equality of variances", J. Am. Stat. Assoc. 69 (1974): Student's pooled t
/// test of the distances from the medians. It holds its level for skewed and heavy-tailed values, where the F test of
/// two variances does not.
pub fn brown_forsythe(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len() < FEWEST || second.len() < FEWEST {
        return None;
    }
    let (a, b) = (distances(first)?, distances(second)?);
    let df = (a.n + b.n) as f64 - 2.0;
    let (na, nb) = (a.n as f64, b.n as f64);
    let pooled = (((na - 1.0) / df).sqrt() * a.stddev?).hypot(((nb - 1.0) / df).sqrt() * b.stddev?);
    let t = (a.mean - b.mean) / (pooled * (1.0 / na + 1.0 / nb).sqrt());
    (pooled > 0.0 && t.is_finite()).then(|| t_two_sided(t, df))
}

fn distances(sorted: &[f64]) -> Option<Moments> {
    let median = median_sorted(sorted)?;
    Moments::of(&sorted.iter().map(|v| (v - median).abs()).collect::<Vec<f64>>())
}
