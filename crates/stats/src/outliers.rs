//! Values far from the others: named, never dropped.

use super::distribution::normal_quantile;
use super::median_sorted;
use serde::Serialize;

/// Iglewicz and Hoaglin's limit for the modified z-score.
const LIMIT: f64 = 3.5;

/// The score that the farthest of n normal values exceeds in one set of twenty: 400,000 to a million sets of each size.
const FARTHEST_NORMAL: [(f64, f64); 21] = [
    (3.0, 21.9),
    (4.0, 6.92),
    (5.0, 7.87),
    (6.0, 5.53),
    (7.0, 5.85),
    (8.0, 4.91),
    (9.0, 5.08),
    (10.0, 4.57),
    (11.0, 4.68),
    (12.0, 4.37),
    (13.0, 4.44),
    (14.0, 4.22),
    (15.0, 4.28),
    (16.0, 4.13),
    (18.0, 4.05),
    (20.0, 4.01),
    (25.0, 3.93),
    (30.0, 3.85),
    (40.0, 3.79),
    (50.0, 3.76),
    (100.0, 3.75),
];

/// Number of outliers that are named, the farthest first; all are counted.
const NAMED: usize = 20;

/// The values far from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outliers {
    /// How many there are.
    pub count: usize,
    /// The score beyond which a value is one.
    pub limit: f64,
    /// The farthest of them, in the order of the runs.
    pub farthest: Vec<Outlier>,
}

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlier {
    /// Place of the value in the order of the runs, from 1.
    pub point: usize,
    /// The value.
    pub value: f64,
    /// Distance from the median in standard deviations, these estimated from the middle of the data; signed.
    pub score: f64,
}

/// The values whose modified z-score exceeds a limit: 3.5, or more where normal values of this number would exceed that
/// in more than one set of twenty.
///
/// Iglewicz & Hoaglin, "How to Detect and Handle Outliers" (1993): 0.6745 (x - median) / MAD, MAD being the median
/// absolute deviation; where that is 0, (x - median) / (1.2533 x mean absolute deviation). Their limit alone would name
/// an outlier in one of five sets of 5 normal values, and in nearly every one of 10,000.
///
/// Fewer than 3 values have none.
pub fn outliers(values: &[f64], sorted: &[f64]) -> Outliers {
    let limit = limit(sorted.len());
    let none = Outliers {
        count: 0,
        limit,
        farthest: Vec::new(),
    };
    let Some(median) = median_sorted(sorted).filter(|m| m.is_finite()) else {
        return none;
    };
    let Some(deviation) = deviation(sorted, median) else {
        return none;
    };
    let score = |v: f64| (v - median) / deviation;
    let mut found: Vec<Outlier> = values
        .iter()
        .enumerate()
        .map(|(i, v)| Outlier {
            point: i + 1,
            value: *v,
            score: score(*v),
        })
        .filter(|o| o.score.abs() > limit)
        .collect();
    let count = found.len();
    found.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
    found.truncate(NAMED);
    found.sort_by_key(|o| o.point);
    Outliers {
        count,
        limit,
        farthest: found,
    }
}

/// The limit for n values; infinite for fewer than 3.
fn limit(n: usize) -> f64 {
    let size = n as f64;
    let Some(after) = FARTHEST_NORMAL.iter().position(|(n, _)| *n >= size) else {
        // Bonferroni's bound for normal deviates, plus the MAD's own error.
        return LIMIT.max(-normal_quantile(0.025 / size) * (1.0 + 8.0 / size));
    };
    let (above, at_above) = FARTHEST_NORMAL[after];
    let (below, at_below) = if after > 0 {
        FARTHEST_NORMAL[after - 1]
    } else {
        (2.0, f64::INFINITY)
    };
    if size == above {
        at_above
    } else {
        at_below + (at_above - at_below) * (size - below) / (above - below)
    }
}

/// The standard deviation as the middle of the data has it; `None` where it is 0.
fn deviation(sorted: &[f64], median: f64) -> Option<f64> {
    let distances = super::sorted(sorted.iter().map(|v| (v - median).abs()));
    let mad = median_sorted(&distances)?;
    if mad > 0.0 && mad.is_finite() {
        return Some(mad / 0.674_489_750_196_081_7);
    }
    let mean = distances.iter().filter(|d| d.is_finite()).sum::<f64>() / distances.len() as f64;
    (mean > 0.0).then_some(mean * (std::f64::consts::PI / 2.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::normal;
    use linerate_wire::SplitMix64;

    fn of(values: &[f64]) -> Outliers {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        outliers(values, &sorted)
    }

    #[test]
    fn the_one_that_is_out_is_named_with_its_place_and_distance() {
        let found = of(&[7.0e6, 7.06e6, 6.99e6, 7.01e6, 4.04e6]);
        assert_eq!(
            (
                found.count,
                found.farthest[0].point,
                found.farthest[0].value
            ),
            (1, 5, 4.04e6)
        );
        assert!(
            (found.farthest[0].score + 0.674_489_75 * 296.0).abs() < 1e-3,
            "{found:?}"
        );
        // The middle is without spread: the mean distance takes over, 4.16 / 10 x 1.25331 = 0.52138.
        let found = of(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.16, 9.0]);
        assert_eq!((found.count, found.farthest[0].value), (1, 9.0));
        assert!(
            (found.farthest[0].score - 4.0 / 0.521_378).abs() < 1e-3,
            "{found:?}"
        );
    }

    #[test]
    fn nothing_is_far_from_nothing() {
        for values in [&[][..], &[1.0], &[1.0, 1e9], &[3.0; 9], &[1.0, 2.0, 4.0]] {
            assert_eq!(of(values).count, 0, "{values:?}");
        }
        assert_eq!(of(&[1.0, 2.0, 3.0, f64::INFINITY]).count, 1);
        assert_eq!(of(&[f64::INFINITY; 4]).count, 0);
        assert_eq!(of(&[1e308, -1e308, 1e308, 0.0]).count, 0);
    }

    #[test]
    fn many_are_counted_and_the_farthest_named_in_order() {
        let values: Vec<f64> = (0..1000)
            .map(|i| {
                if i % 10 == 0 {
                    f64::from(i) * 1e3
                } else {
                    0.5 + f64::from(i % 7)
                }
            })
            .collect();
        let found = of(&values);
        assert_eq!((found.count, found.farthest.len()), (99, NAMED));
        assert!(found.farthest.windows(2).all(|w| w[0].point < w[1].point));
        assert_eq!(found.farthest[0].point, 801);
    }

    #[test]
    fn one_normal_set_in_twenty_has_one() {
        let mut random = SplitMix64::new(3);
        for (n, sets) in [
            (3, 4000),
            (5, 4000),
            (10, 4000),
            (17, 4000),
            (30, 4000),
            (100, 2000),
            (3000, 300),
        ] {
            let fired = (0..sets)
                .filter(|_| of(&(0..n).map(|_| normal(&mut random)).collect::<Vec<_>>()).count > 0)
                .count();
            let rate = fired as f64 / f64::from(sets);
            assert!((0.02..0.08).contains(&rate), "n = {n}: {rate}");
        }
    }
}
