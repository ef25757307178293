//! The k-th smallest of all pairwise differences or sums without making the pairs.

/// An integer that is ordered as [`f64::total_cmp`] orders the value.
pub(crate) fn key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The value of a [`key`].
pub(crate) fn value(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// Two values with a number of pairs at most as large as each.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    /// Fewer than k pairs are at most this.
    below: i64,
    pairs_below: u64,
    /// At least k pairs are at most this.
    at: i64,
    pairs_at: u64,
}

impl Bracket {
    /// Around all pairs from `least` to `most`.
    fn around(least: f64, most: f64, pairs: u64) -> Bracket {
        // 0 and -0 are two keys and one number.
        let least = if least == 0.0 { -0.0 } else { least };
        Bracket {
            below: key(least) - 1,
            pairs_below: 0,
            at: key(most),
            pairs_at: pairs,
        }
    }

    /// The k-th smallest. `count` gives the number of pairs that are at most a value, and `within` finds all pairs above one
    /// value and at most another, at most `enough` of them.
    fn select(
        mut self,
        k: u64,
        enough: u64,
        count: impl Fn(f64) -> u64,
        within: impl Fn(f64, f64) -> Vec<f64>,
    ) -> f64 {
        let mut steps = 0;
        while self.at - 1 > self.below && self.pairs_at - self.pairs_below > enough {
            let probe = self.probe(k, steps);
            let pairs = count(value(probe));
            if pairs >= k {
                (self.at, self.pairs_at) = (probe, pairs);
            } else {
                (self.below, self.pairs_below) = (probe, pairs);
            }
            steps += 1;
        }
        if self.at - 1 == self.below {
            return value(self.at);
        }
        let mut left = within(value(self.below), value(self.at));
        let (_, found, _) =
            left.select_nth_unstable_by((k - self.pairs_below - 1) as usize, f64::total_cmp);
        *found
    }

    /// The next value to look at. By turns a little above and a little below the place of the k-th pair if the pairs were spread
    /// evenly, so that it gets caught between, and in the middle, so that an uneven spread does not make it slow. If that was not
    /// enough, the middle of the representable values, which can be halved at most 64 times.
    fn probe(&self, k: u64, steps: usize) -> i64 {
        let share = (k - self.pairs_below) as f64 / (self.pairs_at - self.pairs_below) as f64;
        let margin = 0.1 * share.min(1.0 - share);
        let share = match steps % 3 {
            0 => share + margin,
            1 => share - margin,
            _ => 0.5,
        };
        let guess = key(value(self.below) * (1.0 - share) + value(self.at) * share);
        if steps < 48 && guess > self.below && guess < self.at {
            return guess;
        }
        self.below + (self.at.wrapping_sub(self.below) as u64 / 2) as i64
    }
}

/// The k-th smallest (from 1) of the differences `second[j] - first[i]`, both sorted and finite.
///
/// The matrix of differences has sorted rows and columns, so the differences up to a value are counted along its
/// staircase in n + m steps (the idea of Johnson & Mizoguchi, SIAM J. Comput. 7, 1978); bisection over the values until
/// no more than n + m differences are left, and selection among those.
pub fn difference(first: &[f64], second: &[f64], k: u64) -> f64 {
    let (n, m) = (first.len(), second.len());
    let (least, most) = (second[0] - first[n - 1], second[m - 1] - first[0]);
    let bracket = Bracket::around(least, most, n as u64 * m as u64);
    bracket.select(
        k,
        (n + m) as u64,
        |v| differences_up_to(first, second, v),
        |below, most| differences_within(first, second, below, most),
    )
}

fn differences_up_to(first: &[f64], second: &[f64], most: f64) -> u64 {
    let mut i = 0;
    let mut pairs = 0;
    for b in second {
        while i < first.len() && b - first[i] > most {
            i += 1;
        }
        pairs += (first.len() - i) as u64;
    }
    pairs
}

/// All differences above `below` and at most `most`.
fn differences_within(first: &[f64], second: &[f64], below: f64, most: f64) -> Vec<f64> {
    let mut found = Vec::new();
    let mut i = 0;
    for b in second {
        while i < first.len() && b - first[i] > most {
            i += 1;
        }
        found.extend(first[i..].iter().map(|a| b - a).take_while(|d| *d > below));
    }
    found
}

/// The k-th smallest (from 1) of the Walsh sums `values[i] + values[j]`, i <= j, of sorted finite values.
pub fn walsh_sum(values: &[f64], k: u64) -> f64 {
    let n = values.len();
    let bracket = Bracket::around(
        2.0 * values[0],
        2.0 * values[n - 1],
        n as u64 * (n as u64 + 1) / 2,
    );
    bracket.select(
        k,
        n as u64,
        |v| walsh_sums_up_to(values, v),
        |below, most| walsh_sums_within(values, below, most),
    )
}

fn walsh_sums_up_to(values: &[f64], most: f64) -> u64 {
    let mut end = values.len();
    let mut ordered = 0;
    for a in values {
        while end > 0 && a + values[end - 1] > most {
            end -= 1;
        }
        ordered += end as u64;
    }
    let diagonal = values.partition_point(|a| a + a <= most) as u64;
    (ordered + diagonal) / 2
}

/// All Walsh sums above `below` and at most `most`.
fn walsh_sums_within(values: &[f64], below: f64, most: f64) -> Vec<f64> {
    let mut found = Vec::new();
    let mut end = values.len();
    for (i, a) in values.iter().enumerate() {
        while end > i && a + values[end - 1] > most {
            end -= 1;
        }
        if end <= i {
            break;
        }
        found.extend(
            values[i..end]
                .iter()
                .rev()
                .map(|b| a + b)
                .take_while(|sum| *sum > below),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            -5.0..5.0f64,
            (-3i32..3).prop_map(f64::from),
            -1e300..1e300f64
        ];
        prop::collection::vec(value, 1..40).prop_map(|mut v| {
            v.sort_unstable_by(f64::total_cmp);
            v
        })
    }

    proptest! {
        #[test]
        fn the_same_as_sorting_all_pairs(x in values(), y in values(), at in 0.0..1.0f64) {
            let mut all: Vec<f64> = y.iter().flat_map(|b| x.iter().map(move |a| b - a)).collect();
            all.sort_unstable_by(f64::total_cmp);
            let k = (at * all.len() as f64) as usize;
            prop_assert_eq!(difference(&x, &y, k as u64 + 1), all[k]);
            let mut all: Vec<f64> =
                (0..x.len()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| x[i] + x[j]).collect();
            all.sort_unstable_by(f64::total_cmp);
            let k = (at * all.len() as f64) as usize;
            prop_assert_eq!(walsh_sum(&x, k as u64 + 1), all[k]);
        }

        #[test]
        fn keys_order_as_values_do(a: f64, b: f64) {
            prop_assert_eq!(key(a).cmp(&key(b)), a.total_cmp(&b));
            prop_assert_eq!(value(key(a)).to_bits(), a.to_bits());
        }
    }
}
