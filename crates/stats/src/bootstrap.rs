//! The bootstrap interval of a median, bias-corrected and accelerated.

use super::distribution::{normal_quantile, normal_upper};
use crate::Estimate;
use linerate_wire::SplitMix64;

/// Default number of replicates: the ends of a 95 % interval then vary by some 2 % of its width with the seed.
pub const REPLICATES: usize = 10_000;

/// Fewer values have no interval: even the whole range of 4 encloses the median only seven times in eight.
pub const FEWEST: usize = 5;

/// BCa interval of the median of sorted values: `None` for fewer than 5 values or an infinite one.
///
/// Efron, "Better bootstrap confidence intervals", J. Am. Stat. Assoc. 82 (1987). A replicate's median is an order statistic of n
/// draws with replacement, so its rank is drawn at once: the uniform order statistic is a Beta deviate (and for even n the next
/// one follows given it; David & Nagaraja, "Order Statistics", 2.1-2.5). That is the very distribution of resampling, at a cost
/// that does not grow with n. Ties with the median count one half in the bias correction, since the replicates of an odd count
/// are values of the set. The acceleration follows from the jackknife of the median, which has at most three distinct values; it
/// is 0 for even n.
///
/// Equal values give an interval without width. For few values its coverage is below the nominal one: at 95 %, 88 to 94 of 100
/// times for 5 to 12 values, whatever their distribution, 92 to 95 for more. The interval of order statistics does not, and is
/// wider.
pub fn median_bca(
    sorted: &[f64],
    confidence: f64,
    replicates: usize,
    seed: u64,
) -> Option<Estimate> {
    let n = sorted.len();
    if n < FEWEST || !sorted[0].is_finite() || !sorted[n - 1].is_finite() {
        return None;
    }
    let median = super::median_sorted(sorted)?;
    let drawn = super::sorted(medians(sorted, replicates, seed));
    let (below, up_to) = (
        drawn.partition_point(|v| *v < median),
        drawn.partition_point(|v| *v <= median),
    );
    let bias = normal_quantile((below + up_to) as f64 / (2 * replicates) as f64);
    let acceleration = acceleration(sorted);
    let at = |p: f64| {
        let z = bias + normal_quantile(p);
        let share = 1.0 - normal_upper(bias + z / (1.0 - acceleration * z));
        // Where nearly all replicates lie on one side the correction has no meaning: the plain percentile remains.
        let share = if share.is_finite() { share } else { p };
        drawn[((share * replicates as f64) as usize).min(replicates - 1)]
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Estimate {
        median,
        low: Some(at(tail)),
        high: Some(at(1.0 - tail)),
        n,
    })
}

/// The medians of `replicates` resamples, as they are drawn.
pub(super) fn medians(sorted: &[f64], replicates: usize, seed: u64) -> Vec<f64> {
    let mut random = Deviates(SplitMix64::new(seed));
    (0..replicates)
        .map(|_| replicate(sorted, &mut random))
        .collect()
}

/// The median of n values drawn with replacement.
fn replicate(sorted: &[f64], random: &mut Deviates) -> f64 {
    let n = sorted.len();
    let value = |u: f64| sorted[((u * n as f64) as usize).min(n - 1)];
    let half = (n / 2) as f64;
    if n % 2 == 1 {
        return value(random.beta(half + 1.0, half + 1.0));
    }
    let lower = random.beta(half, half + 1.0);
    // The least of n/2 uniform values between `lower` and 1.
    let upper = lower + (1.0 - lower) * (1.0 - random.uniform().powf(1.0 / half));
    f64::midpoint(value(lower), value(upper))
}

/// Efron's a of the median: a sixth of the skewness of its jackknife values.
fn acceleration(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n.is_multiple_of(2) {
        return 0.0;
    }
    let m = n / 2;
    let (below, middle, above) = (sorted[m - 1], sorted[m], sorted[m + 1]);
    // The median after removal of a value above, at or below it, and the number of such values.
    let left = [
        (m as f64, f64::midpoint(below, middle)),
        (1.0, f64::midpoint(below, above)),
        (m as f64, f64::midpoint(middle, above)),
    ];
    let width = above - below;
    if width <= 0.0 || !width.is_finite() {
        return 0.0;
    }
    let mean = left
        .iter()
        .map(|(count, v)| count * ((v - middle) / width))
        .sum::<f64>()
        / n as f64;
    let power = |p: i32| {
        left.iter()
            .map(|(count, v)| count * (mean - (v - middle) / width).powi(p))
            .sum::<f64>()
    };
    power(3) / (6.0 * power(2).powf(1.5))
}

/// Deviates of other distributions out of uniform ones.
struct Deviates(SplitMix64);

impl Deviates {
    /// Above 0, below 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Marsaglia's polar method; one of the pair is left unused.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); for shape >= 1.
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    fn beta(&mut self, a: f64, b: f64) -> f64 {
        let x = self.gamma(a);
        x / (x + self.gamma(b))
    }
}
