//! A log-linear histogram of nanoseconds: 32 buckets for each power of two, so that a value is known to about 3 %.
//!
//! eBPF programs fill the same buckets (`time_bucket` in `linerate.h`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of buckets: values below 32 ns exactly, then 32 for each power of two up to 2^43 ns (2.4 hours).
pub const BUCKETS: usize = 1280;

/// Counts of nanosecond values in log-linear buckets, kept sparsely.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// (bucket index, count), ascending, counts never 0.
    buckets: Vec<(u16, u64)>,
}

/// The bucket of a value in nanoseconds.
pub fn bucket(ns: u64) -> usize {
    if ns < 32 {
        return ns as usize;
    }
    let shift = 58 - ns.leading_zeros() as usize;
    (shift * 32 + (ns >> shift) as usize).min(BUCKETS - 1)
}

/// The smallest value, in nanoseconds, of a bucket.
pub fn lower_edge(bucket: usize) -> u64 {
    if bucket < 64 {
        return bucket as u64;
    }
    let shift = bucket / 32 - 1;
    ((bucket - shift * 32) as u64) << shift
}

/// The middle of a bucket in nanoseconds.
fn middle(bucket: u16) -> u64 {
    let low = lower_edge(bucket as usize);
    low + (lower_edge(bucket as usize + 1) - low) / 2
}

impl Histogram {
    /// From dense counts, one per bucket; counts beyond [`BUCKETS`] are ignored.
    pub fn from_dense(counts: &[u64]) -> Self {
        let buckets = counts
            .iter()
            .take(BUCKETS)
            .enumerate()
            .filter(|(_, n)| **n > 0);
        Histogram {
            buckets: buckets.map(|(i, n)| (i as u16, *n)).collect(),
        }
    }

    /// Adds one value.
    pub fn record(&mut self, ns: u64) {
        self.add(bucket(ns) as u16, 1);
    }

    /// Adds so many of a value.
    pub fn record_many(&mut self, ns: u64, n: u64) {
        if n > 0 {
            self.add(bucket(ns) as u16, n);
        }
    }

    /// Adds all of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        other
            .buckets
            .iter()
            .for_each(|(index, n)| self.add(*index, *n));
    }

    /// Every value less `ns`, and 0 for those below it: again to the 3 % of the buckets, each value as the middle of its own.
    pub fn beyond(&self, ns: u64) -> Histogram {
        let mut beyond = Histogram::default();
        for (index, n) in &self.buckets {
            beyond.add(bucket(middle(*index).saturating_sub(ns)) as u16, *n);
        }
        beyond
    }

    fn add(&mut self, index: u16, n: u64) {
        match self.buckets.binary_search_by_key(&index, |b| b.0) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(n),
            Err(at) => self.buckets.insert(at, (index, n)),
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, b| sum.saturating_add(b.1))
    }

    /// The mean in nanoseconds, to the 3 % of the buckets: every value counts as the middle of its own. `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self
            .buckets
            .iter()
            .map(|&(index, n)| middle(index) as f64 * n as f64)
            .sum();
        (!self.buckets.is_empty()).then(|| sum / self.count() as f64)
    }

    /// Counts by power of two: (the least value, the number of values from there to below its double), without gaps from the first
    /// to the last that has any. The first power is 0, for values 0 and 1.
    pub fn powers(&self) -> Vec<(u64, u64)> {
        let power = |index: u16| lower_edge(index as usize).max(1).ilog2();
        let [Some(first), Some(last)] = [self.buckets.first(), self.buckets.last()] else {
            return Vec::new();
        };
        let of = |p| {
            self.buckets
                .iter()
                .filter(|b| power(b.0) == p)
                .map(|b| b.1)
                .sum()
        };
        (power(first.0)..=power(last.0))
            .map(|p| (if p == 0 { 0 } else { 1 << p }, of(p)))
            .collect()
    }

    /// The value in nanoseconds below or at which the share `quantile` (0..=1) of all values lies: the middle of its
    /// bucket. `None` when empty.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let total = self.count();
        let rank = ((quantile * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        self.buckets.iter().find_map(|&(index, n)| {
            seen += n;
            (seen >= rank).then(|| middle(index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn edges_enclose_the_value(ns in 0u64..1 << 43) {
            let b = bucket(ns);
            prop_assert!(lower_edge(b) <= ns && ns < lower_edge(b + 1), "{ns} in {b}");
            prop_assert!((lower_edge(b + 1) - lower_edge(b)) as f64 <= (ns as f64 / 31.0).max(1.0));
        }

        #[test]
        fn quantiles_are_within_a_bucket_of_the_sorted_values(mut values in prop::collection::vec(0u64..1 << 30, 1..200)) {
            let mut h = Histogram::default();
            values.iter().for_each(|v| h.record(*v));
            values.sort_unstable();
            let median = values[values.len().div_ceil(2) - 1];
            prop_assert_eq!(bucket(h.quantile(0.5).unwrap()), bucket(median));
            prop_assert_eq!(h.count(), values.len() as u64);
        }
    }

    #[test]
    fn values_beyond_a_value() {
        let mut h = Histogram::default();
        [5, 1000, 5000, 5000].into_iter().for_each(|v| h.record(v));
        assert_eq!(h.beyond(0), h);
        let beyond = h.beyond(h.quantile(0.5).unwrap());
        assert_eq!((beyond.count(), beyond.quantile(0.5)), (4, Some(0)));
        assert!(
            beyond.quantile(1.0).unwrap().abs_diff(4000) <= 5000 / 32,
            "{beyond:?}"
        );
    }

    #[test]
    fn empty_has_no_quantile() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.quantile(0.5), empty.mean(), empty.powers()),
            (None, None, Vec::new())
        );
    }

    #[test]
    fn means_and_powers_of_two() {
        let mut h = Histogram::default();
        [0, 1, 3, 8, 15, 1024, 1100, 2047]
            .into_iter()
            .for_each(|v| h.record(v));
        let powers = h.powers();
        assert_eq!(
            (powers.len(), powers[0], powers[1], powers[3]),
            (11, (0, 2), (2, 1), (8, 2))
        );
        assert_eq!((powers[9], powers[10]), ((512, 0), (1024, 3)));
        assert!(
            (h.mean().unwrap() / (4198.0 / 8.0) - 1.0).abs() < 0.03,
            "{:?}",
            h.mean()
        );
    }
}
