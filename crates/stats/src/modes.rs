//! Does a set gather in two places? By Hartigan's dip: how far its distribution is from having one mode.

/// Critical values of the dip times the root of n at a level of 5 %, from 40,000 to a million sets of n uniform values each
/// (20,000 for the last): 5 % of the sets have a larger dip. It hardly changes beyond.
const CRITICAL: [(f64, f64); 15] = [
    (6.0, 0.4036),
    (7.0, 0.4234),
    (8.0, 0.4354),
    (9.0, 0.4397),
    (10.0, 0.4417),
    (12.0, 0.4503),
    (15.0, 0.4597),
    (20.0, 0.4702),
    (30.0, 0.4832),
    (50.0, 0.4968),
    (100.0, 0.5105),
    (200.0, 0.5216),
    (500.0, 0.5323),
    (1000.0, 0.5361),
    (3000.0, 0.5433),
];

/// Most values that are examined. Of more values, this number of evenly spaced ones is: modes that these cannot show are too
/// slight to matter, and the time stays bounded.
const MOST: usize = 10_000;

/// Two places where values gather.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Median of the lower group.
    pub low: f64,
    /// Median of the upper group.
    pub high: f64,
    /// Share of the values in the lower group.
    pub low_share: f64,
}

/// The two modes of sorted finite values, if these are not compatible with one.
///
/// Hartigan's dip against the uniform distribution, which of all with one mode is the hardest to distinguish from two (see
/// [`dip`]): one in 20 sets of uniform values is called two-moded wrongly, and fewer of any other with one
/// mode, of normal ones 1.5 % at n = 10 and 0.5 % at n = 30. Fewer than 6 values are never called so. Values that are equal
/// because they were rounded are spread evenly over the rounding step, so that they do not become modes. The border between the
/// groups leaves the least squares within them.
pub fn two_modes(sorted: &[f64]) -> Option<Modes> {
    let critical = critical(sorted.len().min(MOST))?;
    let width = sorted[sorted.len() - 1] - sorted[0];
    if !(width.is_finite() && width > 0.0) {
        return None;
    }
    let thinned = thin(sorted);
    let spread: Vec<f64> = spread_ties(&thinned)
        .iter()
        .map(|v| (v - sorted[0]) / width)
        .collect();
    if dip(&spread) <= critical {
        return None;
    }
    let cut = best_cut(&thinned)?;
    let (low, high) = thinned.split_at(cut);
    Some(Modes {
        low: super::median_sorted(low)?,
        high: super::median_sorted(high)?,
        low_share: cut as f64 / thinned.len() as f64,
    })
}

/// The critical dip of n values; `None` for fewer than the table begins with.
fn critical(n: usize) -> Option<f64> {
    let n = n as f64;
    let after = CRITICAL.partition_point(|(size, _)| *size <= n);
    let (size, scaled) = *CRITICAL.get(after.checked_sub(1)?)?;
    let scaled = match CRITICAL.get(after) {
        Some((next, larger)) => scaled + (larger - scaled) * (n / size).ln() / (next / size).ln(),
        None => scaled,
    };
    Some(scaled / n.sqrt())
}

fn thin(sorted: &[f64]) -> Vec<f64> {
    if sorted.len() <= MOST {
        return sorted.to_vec();
    }
    let step = sorted.len() as f64 / MOST as f64;
    (0..MOST)
        .map(|i| sorted[((i as f64 + 0.5) * step) as usize])
        .collect()
}

/// Equal values moved apart, evenly over the unit of their last decimal.
fn spread_ties(sorted: &[f64]) -> Vec<f64> {
    let groups = || sorted.chunk_by(|a, b| a == b);
    let Some(exponent) = sorted.iter().map(|v| last_decimal(*v)).min() else {
        return Vec::new();
    };
    let unit = 10f64.powi(exponent);
    let place = |k: usize, of: usize| (k as f64 + 0.5) / of as f64 - 0.5;
    groups()
        .flat_map(|g| (0..g.len()).map(move |k| g[k] + unit * place(k, g.len())))
        .collect()
}

/// The power of ten of the last digit in a value's shortest decimal form: -2 for 11.75, 3 for 7000.
fn last_decimal(value: f64) -> i32 {
    if value == 0.0 {
        return i32::MAX;
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
    exponent.parse::<i32>().unwrap_or(0) - decimals as i32
}

/// How many of the values belong to the lower of two groups, so that the squares within both are least.
fn best_cut(sorted: &[f64]) -> Option<usize> {
    let n = sorted.len();
    let width = sorted[n - 1] - sorted[0];
    let relative = |v: &f64| (v - sorted[0]) / width;
    let total: f64 = sorted.iter().map(relative).sum();
    let mut sum = 0.0;
    let mut best = (0.0, None);
    for (i, v) in sorted[..n - 1].iter().enumerate() {
        sum += relative(v);
        let (low, high) = (i as f64 + 1.0, (n - i - 1) as f64);
        // The squares between the groups.
        let between = sum * sum / low + (total - sum).powi(2) / high;
        if between > best.0 && sorted[i + 1] > *v {
            best = (between, Some(i + 1));
        }
    }
    best.1
}

/// The dip of sorted values: the least distance between their distribution function and any with one mode, from
/// 1 / (2 n) up to below 1/4. For n < 2, or equal values, 0.
///
/// Hartigan & Hartigan, "The dip test of unimodality", Ann. Stat. 13 (1985); Hartigan, "Computation of the dip
/// statistic", Appl. Stat. 34 (1985). A modal interval shrinks from the whole range to where the greatest convex
/// minorant and the least concave majorant are farthest apart; outside it, the minorant on the left and the majorant on
/// the right are the best fit, and the largest misfit met on the way is twice the dip.
pub fn dip(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n < 2 || sorted[0] == sorted[n - 1] {
        return 0.0;
    }
    let (mut low, mut high) = (0, n - 1);
    // Distances are counted in values, 1 / n each. A step of the distribution function is one high: no fit is closer.
    let mut misfit = 1.0f64;
    loop {
        let hulls = Hulls::of(sorted, low, high);
        let widest = hulls.widest(sorted);
        if widest.gap <= misfit {
            break;
        }
        misfit = misfit
            .max(hulls.left_misfit(sorted, widest.low))
            .max(hulls.right_misfit(sorted, widest.high));
        if (widest.low, widest.high) == (low, high) {
            break;
        }
        (low, high) = (widest.low, widest.high);
    }
    misfit / (2.0 * n as f64)
}

/// Corners, by index in ascending order, of the hulls of the distribution function over an interval. The function steps
/// from i to i + 1 at value i: the minorant touches the feet of the steps, the majorant their tops.
struct Hulls {
    minorant: Vec<usize>,
    majorant: Vec<usize>,
}

/// Where majorant and minorant are farthest apart.
struct Widest {
    gap: f64,
    low: usize,
    high: usize,
}

impl Hulls {
    fn of(x: &[f64], low: usize, high: usize) -> Hulls {
        Hulls {
            minorant: hull(x, low, high, 1.0),
            majorant: hull(x, low, high, -1.0),
        }
    }

    /// The largest distance is at a corner of either. The new modal interval goes from the minorant's corner at or
    /// before it to the majorant's corner at or after it.
    fn widest(&self, x: &[f64]) -> Widest {
        let mut widest = Widest {
            gap: 0.0,
            low: self.minorant[0],
            high: *self.majorant.last().expect("a corner"),
        };
        let mut consider = |gap, low, high| {
            if gap > widest.gap {
                widest = Widest { gap, low, high };
            }
        };
        let mut segment = 0;
        for corner in &self.majorant {
            while segment + 2 < self.minorant.len() && self.minorant[segment + 1] <= *corner {
                segment += 1;
            }
            let (a, b) = (self.minorant[segment], self.minorant[segment + 1]);
            consider(
                (corner + 1) as f64 - line(x, a, b, *corner, 0.0),
                a,
                *corner,
            );
        }
        let mut segment = 0;
        for corner in &self.minorant {
            while segment + 2 < self.majorant.len() && self.majorant[segment + 1] < *corner {
                segment += 1;
            }
            let (a, b) = (self.majorant[segment], self.majorant[segment + 1]);
            consider(line(x, a, b, *corner, 1.0) - *corner as f64, *corner, b);
        }
        widest
    }

    /// How far the distribution function rises above the minorant up to a corner of it.
    fn left_misfit(&self, x: &[f64], end: usize) -> f64 {
        let segments = self.minorant.windows(2).take_while(|s| s[1] <= end);
        let rise = |a, b| (a..=b).map(move |i| (i + 1) as f64 - line(x, a, b, i, 0.0));
        segments.flat_map(|s| rise(s[0], s[1])).fold(0.0, f64::max)
    }

    /// How far the majorant lies above the distribution function from a corner of it on.
    fn right_misfit(&self, x: &[f64], start: usize) -> f64 {
        let segments = self.majorant.windows(2).skip_while(|s| s[0] < start);
        let rise = |a, b| (a..=b).map(move |i| line(x, a, b, i, 1.0) - i as f64);
        segments.flat_map(|s| rise(s[0], s[1])).fold(0.0, f64::max)
    }
}

/// The height over value `i` of the line between steps `a` and `b`, at their feet or (`top` 1) tops.
fn line(x: &[f64], a: usize, b: usize, i: usize, top: f64) -> f64 {
    let width = x[b] - x[a];
    let share = if width > 0.0 {
        (x[i] - x[a]) / width
    } else {
        1.0
    };
    a as f64 + top + share * (b - a) as f64
}

/// Corners of the convex hull below (`side` 1) or above (-1) the points (x[i], i), by the monotone chain.
fn hull(x: &[f64], low: usize, high: usize, side: f64) -> Vec<usize> {
    let mut corners: Vec<usize> = Vec::new();
    for i in low..=high {
        while let [.., a, b] = corners[..] {
            let turn = (x[b] - x[a]) * (i - a) as f64 - (x[i] - x[a]) * (b - a) as f64;
            if turn * side > 0.0 {
                break;
            }
            corners.pop();
        }
        corners.push(i);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{normal, sorted, uniform};
    use linerate_wire::SplitMix64;

    #[test]
    fn dips_known_in_closed_form() {
        // Two equal heaps: 1/4 in the limit. Evenly spaced values: a step is one high, half of it is the dip.
        let heaps: Vec<f64> = (0..1000)
            .map(|i| f64::from(i % 2) * 1e9 + f64::from(i))
            .collect();
        assert!((dip(&sorted(heaps)) - 0.25).abs() < 0.002);
        let even: Vec<f64> = (0..50).map(f64::from).collect();
        assert!((dip(&even) - 0.01).abs() < 1e-12);
        assert_eq!((dip(&[1.0]), dip(&[2.0, 2.0])), (0.0, 0.0));
        // As the R package diptest has it, to its digits.
        assert!((dip(&[7.0, 7.1, 7.2, 11.6, 11.7]) - 0.195_555_555_555_555_57).abs() < 1e-12);
    }

    #[test]
    fn one_in_twenty_uniform_sets_and_fewer_normal_ones() {
        let mut random = SplitMix64::new(5);
        let mut rate = |n: usize, draw: fn(&mut SplitMix64) -> f64| {
            let set = |r: &mut SplitMix64| sorted((0..n).map(|_| draw(r)).collect());
            let fired = (0..4000)
                .filter(|_| two_modes(&set(&mut random)).is_some())
                .count();
            fired as f64 / 4000.0
        };
        for n in [6, 10, 11, 30, 70] {
            let found = rate(n, uniform);
            assert!((0.035..0.065).contains(&found), "uniform, {n}: {found}");
            let normals = rate(n, normal);
            assert!(normals < 0.035, "normal, {n}: {normals}");
            let skewed = rate(n, |r| normal(r).exp());
            assert!(skewed < 0.035, "lognormal, {n}: {skewed}");
            let heavy = rate(n, |r| normal(r) / normal(r));
            assert!(heavy < 0.035, "Cauchy, {n}: {heavy}");
            // Rounded to so few digits that most values tie.
            let rounded = rate(n, |r| (3.0 * normal(r)).round() / 10.0);
            assert!(rounded < 0.05, "rounded, {n}: {rounded}");
        }
        assert!(
            two_modes(&[7.0, 7.1, 7.2, 11.6, 11.7]).is_none(),
            "five values are never enough"
        );
    }

    #[test]
    fn the_two_speeds_of_a_virtual_machine() {
        let mut random = SplitMix64::new(6);
        let mut mixture = |n: usize, digits: f64| {
            let value = |r: &mut SplitMix64| {
                let mode = if uniform(r) < 0.5 { 7.0 } else { 11.7 };
                (mode * (1.0 + 0.02 * normal(r)) * digits).round() / digits
            };
            sorted((0..n).map(|_| value(&mut random)).collect())
        };
        for (n, least) in [(10, 140), (20, 190), (40, 200)] {
            let found = (0..200)
                .filter(|_| two_modes(&mixture(n, 1e6)).is_some())
                .count();
            assert!(found >= least, "n = {n}: {found} of 200");
        }
        let modes = two_modes(&mixture(40, 10.0)).unwrap();
        assert!(
            (modes.low - 7.0).abs() < 0.2 && (modes.high - 11.7).abs() < 0.3,
            "{modes:?}"
        );
        let many = two_modes(&mixture(1_000_000, 1e6)).unwrap();
        assert!((many.low_share - 0.5).abs() < 0.01, "{many:?}");
    }

    #[test]
    fn decimals() {
        assert_eq!(
            [11.75, 7000.0, 0.001, -3.0, 1e300].map(last_decimal),
            [-2, 3, -3, 0, 300]
        );
    }
}
