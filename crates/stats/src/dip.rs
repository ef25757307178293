//! Hartigan's dip: how far a distribution is from having one mode.

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
        misfit =
            misfit.max(hulls.left_misfit(sorted, widest.low)).max(hulls.right_misfit(sorted, widest.high));
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
        Hulls { minorant: hull(x, low, high, 1.0), majorant: hull(x, low, high, -1.0) }
    }

    /// The largest distance is at a corner of either. The new modal interval goes from the minorant's corner at or
    /// before it to the majorant's corner at or after it.
    fn widest(&self, x: &[f64]) -> Widest {
        let mut widest =
            Widest { gap: 0.0, low: self.minorant[0], high: *self.majorant.last().expect("a corner") };
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
            consider((corner + 1) as f64 - line(x, a, b, *corner, 0.0), a, *corner);
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
    let share = if width > 0.0 { (x[i] - x[a]) / width } else { 1.0 };
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
