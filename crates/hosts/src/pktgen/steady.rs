//! The sounder figure of a run: the median of its steady part, which begins and ends where the rate changes.
//!
//! 1. Samples of 0 before the first and after the last frame are left out.
//! 2. The level is the median of the samples that are not 0. The noise is 1.4826 / sqrt(2) times the median absolute
//!    difference of neighbours, which a change of level does not enlarge; at least 0.2 % of the level.
//! 3. Each sample is clamped to the median of five around it +/- 6 noises: a single wild sample moves no boundary.
//! 4. The run is cut in two at the point that reduces the sum of squares most, and the parts again, as long as a cut reduces it
//!    by more than 4 noise^2 ln(n): binary segmentation, with about the Schwarz criterion as the cost of a change.
//! 5. Parts at either end, as long as they lie in the first or last fifth, are ramp and tail where their median is more than 1 %
//!    outside the fences of the middle three fifths (Tukey's: 1.5 interquartile ranges beyond the quartiles).
//!
//! The number of lines before the first sample does not matter, and a run without ramp loses nothing. Two levels in mid-run stay
//! in, because the machine really had both. They are reported if both last at least a fifth of the run.

use super::Sample;

/// ministat refuses to work with fewer points.
pub const LEAST_POINTS: usize = 3;

/// Clamp, in noises.
const CLAMP: f64 = 6.0;
/// Noise is at least this share of the level.
const LEAST_NOISE: f64 = 0.002;
/// Ramp and tail are outside the range of the middle by at least this share.
const LEAST_DIFFERENCE: f64 = 0.01;
/// Smallest relative change in mid-run that is reported.
const TOLD_CHANGE: f64 = 0.05;
/// No run has more parts than this.
const MOST_PARTS: usize = 16;

/// The steady part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// Median, frames/s.
    pub median: f64,
    /// Samples of the log before it.
    pub first: usize,
    /// Samples in it.
    pub samples: usize,
    /// Greatest change in mid-run, if it is remarkable.
    pub change: Option<Change>,
}

/// A rate that changed in mid-run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Sample of the log, from 1, after which it changed.
    pub after: usize,
    /// Median before, frames/s.
    pub from: f64,
    /// Median afterwards, frames/s.
    pub to: f64,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * (self.to / self.from - 1.0);
        write!(
            f,
            "the rate changed in mid-run, from {:.0} to {:.0} ({percent:+.1} %) after sample {}",
            self.from, self.to, self.after
        )
    }
}

/// Finds the steady part of a log's samples. `None` with fewer than three steady samples, or where most of them are 0.
pub fn steady(samples: &[(u64, Sample)]) -> Option<Steady> {
    steady_rates(
        &samples
            .iter()
            .map(|(_, s)| s.pps as f64)
            .collect::<Vec<_>>(),
    )
}

/// Finds the steady part of a series of rates, which are 0 or more: the same for figures of any tool.
pub fn steady_rates(rates: &[f64]) -> Option<Steady> {
    let first = rates.iter().position(|r| *r > 0.0)?;
    let last = rates.iter().rposition(|r| *r > 0.0)?;
    let rates = &rates[first..=last];
    let mut scratch: Vec<f64> = rates.iter().copied().filter(|r| *r > 0.0).collect();
    let level = median(&mut scratch);
    scratch.clear();
    scratch.extend(rates.windows(2).map(|w| (w[1] - w[0]).abs()));
    let noise = (median(&mut scratch) * 1.4826 / std::f64::consts::SQRT_2).max(LEAST_NOISE * level);
    let parts = parts(&clamped(rates, CLAMP * noise), noise);
    let (from, to) = without_ends(rates, &parts, &mut scratch);
    let mut middle_of = |from: usize, to: usize| {
        scratch.clear();
        scratch.extend(&rates[from..to]);
        median(&mut scratch)
    };
    let middle = if to - from < LEAST_POINTS {
        0.0
    } else {
        middle_of(from, to)
    };
    if middle <= 0.0 {
        return None;
    }
    // The long parts, one behind the other.
    let long: Vec<(usize, usize)> = bounds(&parts)
        .filter(|(a, b)| *a >= from && *b <= to && is_long(b - a, rates.len()))
        .collect();
    let mut change: Option<Change> = None;
    for pair in long.windows(2) {
        let [left, right] = [pair[0], pair[1]];
        let found = Change {
            after: first + left.1,
            from: middle_of(left.0, left.1),
            to: middle_of(right.0, right.1),
        };
        let size = |c: &Change| (c.to - c.from).abs();
        if size(&found) > TOLD_CHANGE * middle
            && found.from > 0.0
            && change.is_none_or(|c| size(&found) > size(&c))
        {
            change = Some(found);
        }
    }
    Some(Steady {
        median: middle,
        first: first + from,
        samples: to - from,
        change,
    })
}

/// The median, mean of the two middle points; 0 of nothing. Reorders the values.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let half = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    if even {
        (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper) / 2.0
    } else {
        upper
    }
}

/// Each value within `reach` of the median of the five around it.
fn clamped(values: &[f64], reach: f64) -> Vec<f64> {
    let near = |i: usize| match values.len() {
        0..5 => values[i],
        n => {
            let from = i.saturating_sub(2).min(n - 5);
            middle_of_five([
                values[from],
                values[from + 1],
                values[from + 2],
                values[from + 3],
                values[from + 4],
            ])
        }
    };
    (0..values.len())
        .map(|i| values[i].clamp(near(i) - reach, near(i) + reach))
        .collect()
}

/// The middle of five values, without sorting: the median of the fifth, the greater of the lesser and the lesser of the
/// greater of two pairs.
fn middle_of_five([a, b, c, d, e]: [f64; 5]) -> f64 {
    let low = a.min(b).max(c.min(d));
    let high = a.max(b).min(c.max(d));
    low.max(high).min(low.min(high).max(e))
}

/// Where the parts begin, and the end of the last one: binary segmentation.
fn parts(values: &[f64], noise: f64) -> Vec<usize> {
    let n = values.len();
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0.0);
    // Around their mean, so that no digits are lost in the squares.
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    for v in values {
        sums.push(sums[sums.len() - 1] + (v - mean));
    }
    let least_gain = 4.0 * noise * noise * (n.max(2) as f64).ln();
    let mut cuts = vec![0, n];
    let mut open = vec![(0, n)];
    while let Some((from, to)) = open.pop() {
        if let Some(at) = cut(&sums, from, to, least_gain) {
            cuts.push(at);
            if cuts.len() > MOST_PARTS {
                break;
            }
            open.extend([(from, at), (at, to)]);
        }
    }
    cuts.sort_unstable();
    cuts
}

/// The cut of a part that takes most off its sum of squares, if it takes off enough.
fn cut(sums: &[f64], from: usize, to: usize, least_gain: f64) -> Option<usize> {
    let length = (to - from) as f64;
    let whole = sums[to] - sums[from];
    let base = whole * whole / length;
    let (mut best, mut found) = (least_gain, None);
    for at in from + 1..to {
        let left = sums[at] - sums[from];
        let right = whole - left;
        let lengths = ((at - from) as f64, (to - at) as f64);
        let gain = left * left / lengths.0 + right * right / lengths.1 - base;
        if gain > best {
            (best, found) = (gain, Some(at));
        }
    }
    found
}

fn bounds(parts: &[usize]) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
    parts.windows(2).map(|w| (w[0], w[1]))
}

fn is_long(part: usize, run: usize) -> bool {
    part * 5 >= run && part >= LEAST_POINTS
}

/// The run without ramp and tail.
fn without_ends(rates: &[f64], parts: &[usize], scratch: &mut Vec<f64>) -> (usize, usize) {
    let n = rates.len();
    let fifth = n / 5;
    let mut middle = rates[fifth..n - fifth].to_vec();
    middle.sort_unstable_by(f64::total_cmp);
    let (low, high) = (
        middle[middle.len() / 4],
        middle[middle.len() - 1 - middle.len() / 4],
    );
    let reach = 1.5 * (high - low);
    let (low, high) = (
        (low - reach) * (1.0 - LEAST_DIFFERENCE),
        (high + reach) * (1.0 + LEAST_DIFFERENCE),
    );
    let mut outside = |(from, to): (usize, usize)| {
        scratch.clear();
        scratch.extend(&rates[from..to]);
        !(low..=high).contains(&median(scratch))
    };
    let ramp = bounds(parts)
        .take_while(|part| part.1 <= fifth && outside(*part))
        .last();
    let from = ramp.map_or(0, |(_, end)| end);
    let tail = bounds(parts)
        .rev()
        .take_while(|part| n - part.0 <= fifth && outside(*part))
        .last();
    (from, tail.map_or(n, |(begin, _)| begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steady_of(rates: &[u64]) -> Option<Steady> {
        let sample = |pps: &u64| {
            (
                0,
                Sample {
                    pps: *pps,
                    ..Sample::default()
                },
            )
        };
        steady(&rates.iter().map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn ramp_and_tail_are_cut_where_the_rate_changes() {
        let mut rates = vec![0, 0, 401_221];
        rates.extend((0..40).map(|i| 561_000 + (i * 7919) % 3000));
        rates.extend([402_307, 12, 0, 0]);
        let steady = steady_of(&rates).unwrap();
        assert_eq!((steady.first, steady.samples, steady.change), (3, 40, None));
        assert!((561_000.0..564_000.0).contains(&steady.median));
    }

    #[test]
    fn a_dip_in_the_middle_stays_and_a_slow_start_goes() {
        let mut rates = vec![100_000, 200_000, 300_000, 700_000, 900_000];
        rates.extend([1_000_000; 30]);
        rates[20] = 0;
        rates[21] = 500_000;
        let steady = steady_of(&rates).unwrap();
        assert_eq!(
            (steady.first, steady.samples, steady.median),
            (5, 30, 1_000_000.0)
        );
    }

    #[test]
    fn a_run_without_ramp_keeps_every_sample() {
        let rates: Vec<u64> = (0..60).map(|i| 1_000_000 + (i * 7919) % 9000).collect();
        assert_eq!(
            steady_of(&rates).map(|s| (s.first, s.samples)),
            Some((0, 60))
        );
        // A slow drift is no ramp.
        let drift: Vec<u64> = (0..60)
            .map(|i| 1_000_000 + i * 500 + (i * 7919) % 20_000)
            .collect();
        assert_eq!(steady_of(&drift).map(|s| s.samples), Some(60));
        // Nor is the alternation of two rates.
        let two: Vec<u64> = (0..60)
            .map(|i| if i % 2 == 0 { 360_000 } else { 560_000 })
            .collect();
        assert_eq!(steady_of(&two).map(|s| s.samples), Some(60));
    }

    #[test]
    fn the_middle_of_five_in_any_order() {
        for i in 0..3125u32 {
            let five = [i % 5, i / 5 % 5, i / 25 % 5, i / 125 % 5, i / 625].map(f64::from);
            let mut sorted = five;
            sorted.sort_by(f64::total_cmp);
            assert_eq!(middle_of_five(five), sorted[2], "{five:?}");
        }
    }

    #[test]
    fn two_levels_stay_and_are_told() {
        let mut rates = vec![40_000];
        rates.extend([2_220_000; 30]);
        rates.extend([2_950_000; 33]);
        rates.push(97_000);
        let steady = steady_of(&rates).unwrap();
        assert_eq!((steady.first, steady.samples), (1, 63));
        let change = steady.change.unwrap();
        assert_eq!(
            (change.after, change.from, change.to),
            (31, 2_220_000.0, 2_950_000.0)
        );
        assert!(change.to_string().contains("+32.9 %"), "{change}");
    }

    #[test]
    fn what_mostly_received_nothing_has_no_sound_figure() {
        let mut rates = [0; 67];
        rates[10] = 9000;
        rates[50] = 12_000;
        assert_eq!(steady_of(&rates), None);
        assert_eq!(
            [steady_of(&[]), steady_of(&[0; 9]), steady_of(&[5, 5])],
            [None; 3]
        );
        assert_eq!(steady_of(&[5, 5, 5]).unwrap().median, 5.0);
    }

    proptest! {
        #[test]
        fn the_steady_part_is_a_part(rates in prop::collection::vec(0u64..3_000_000, 0..400)) {
            if let Some(s) = steady_of(&rates) {
                prop_assert!(s.first + s.samples <= rates.len() && s.samples >= 3);
                let part = &rates[s.first..s.first + s.samples];
                let least = *part.iter().min().unwrap() as f64;
                let most = *part.iter().max().unwrap() as f64;
                prop_assert!((least..=most).contains(&s.median));
            }
        }

        #[test]
        fn a_level_is_found_whatever_ramp_and_noise(
            ramp in prop::collection::vec(0u64..900_000, 0..6),
            tail in prop::collection::vec(0u64..900_000, 0..4),
            noise in prop::collection::vec(0u64..10_000, 40..80),
        ) {
            let steady = noise.iter().map(|n| 1_000_000 + n);
            let rates: Vec<u64> = ramp.into_iter().chain(steady).chain(tail).collect();
            let found = steady_of(&rates).unwrap();
            let mut sorted = noise.clone();
            sorted.sort_unstable();
            let exact = 1_000_000.0 + (sorted[noise.len() / 2] + sorted[(noise.len() - 1) / 2]) as f64 / 2.0;
            prop_assert!((found.median / exact - 1.0).abs() < 0.002, "{found:?} {exact}");
        }
    }
}
