//! Where the level of a series changes: for 8 to some hundred points in order, with outliers, two modes, and levels that may last
//! a few points only.
//!
//! The series is cut so that the sum of a robust cost and of a penalty for each cut is least, exactly, by dynamic programming
//! over the levels ([`partition`]). The cost of a point is the square of its distance from its level in units of the noise, and
//! hardly grows beyond three of them: an outlier costs about as much as it would a little farther out, and less than a cut
//! (Fearnhead & Rigaill, "Changepoint detection in the presence of outliers", J. Am. Stat. Assoc. 114 (2019), show that a bounded
//! cost is needed for that, and that absolute deviations or Huber's cost will not do).
//!
//! The penalty of that paper, a multiple of ln n, rests on normal noise. Here it is calibrated on the series itself ([`Calibrated`]), in two
//! steps. First, is there a change at all? Without changes, all orders of the points are equally likely: the series stays whole
//! unless it gains more by cuts than all but 2 % of random orders do, with any number of cuts anywhere. That holds for heavy
//! tails and two modes as well as for normal noise. Second, how many? Now the order of the residuals around the levels is
//! randomised, and the penalty of a cut is the price that at most 2 % of those orders would pay for one more cut; with each
//! answer the levels are found anew until nothing changes. docs/history.md has the measured error rates and the power.
//!
//! Alternatives considered: binary segmentation with a permutation test (E-divisive, as MongoDB and Hunter use it, Matteson &
//! James 2014) misses a level of a few points between two equal ones, the shape of a bug and its repair; PELT with squares takes
//! each outlier for two changes; Mann-Whitney scans have no power with four points on a side.

mod partition;
#[cfg(test)]
mod tests;

use super::{Estimate, median, median_sorted, shuffle, sorted};
use linerate_wire::SplitMix64;
use partition::{Counting, Partitioner};
use serde::{Deserialize, Serialize};

/// Fewer points cannot show a change: of 7, even the rarest of orders has a chance above 5 %.
pub const FEWEST: usize = 8;

/// From this number of points on, the level of the test is 2 %; below, 5 %: fewer orders exist than 2 % would need.
const MANY: usize = 14;

/// Longer series are thinned to at most this number of medians of neighbours before they are cut, and the cuts then moved to the
/// exact point: levels that last fewer than two of these groups are not found.
pub const LONGEST: usize = 2000;

/// Differences below this share of the level are no noise worth knowing, and no change either: figures that are equal for a
/// link's limit would otherwise have none at all.
const LEAST_NOISE: f64 = 5e-4;

/// Random orders, unless the series is long. One more, the order found, makes 1,000.
const ORDERS: usize = 999;

/// Cells of all random orders together, which bounds the time.
const CELLS: usize = 60_000_000;

/// The fewest random orders. With the order found they are 200, so that 2 % and 5 % are whole numbers of them.
const FEWEST_ORDERS: usize = 199;

/// Draws of each level.
const DRAWS: usize = 1999;

/// Most points drawn of a segment. For longer ones the spread is scaled: it goes with the root of their number.
const MOST_POINTS: usize = 200;

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// A rate, time or ratio: positive. Other values are replaced by the smallest positive one.
    pub value: f64,
    /// Relative standard error of the point itself, from the runs that it sums up; 0 where it is not known. Where it exceeds
    /// the noise between points, this point counts for less.
    pub error: f64,
}

/// The changes found in a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Probability that a series without any change would look as much like one with changes; `None` with too few points for a
    /// test.
    pub p: Option<f64>,
    /// The level of the test: the chance that a series without any change is cut.
    pub level: f64,
    /// Noise between neighbouring points, relative.
    pub noise: f64,
    /// The levels, in order; one without changes, none for an empty series.
    pub segments: Vec<Segment>,
    /// The changes between them: one less.
    pub changes: Vec<Change>,
    /// Relative distance of each point above (positive) or below its level.
    pub residuals: Vec<f64>,
    /// How many neighbouring points were taken together, for a series longer than [`LONGEST`]; otherwise 1.
    pub thinned: usize,
}

/// Points on one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// First point.
    pub start: usize,
    /// Behind the last point.
    pub end: usize,
    /// Median of the points, with its 95 % interval.
    pub level: Estimate,
}

/// A change of the level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// First point of the new level.
    pub at: usize,
    /// New level / old level.
    pub ratio: Estimate,
    /// Probability that a series without this change would show one as clear anywhere.
    pub p: f64,
}

/// Finds the changes of level in a series of points in order. Deterministic: random orders are drawn from `seed`.
///
/// Time: some 20 ms for 50 points, 0.3 s for 200, 2 s at [`LONGEST`] points and beyond.
pub fn changes(points: &[Point], seed: u64) -> Changes {
    let (values, errors) = logarithms(points);
    let group = values.len().div_ceil(LONGEST).max(1);
    let mut cuts = find(&grouped(&values, group), &grouped(&errors, group), seed);
    if group > 1 {
        let noise = noise(&values);
        cuts.starts = refined(&values, noise, &cuts.starts, group);
    }
    report(&values, cuts, group, seed)
}

/// Natural logarithms: noise and changes are relative. Errors stay as they are: d ln x = dx / x.
fn logarithms(points: &[Point]) -> (Vec<f64>, Vec<f64>) {
    let positive = |p: &&Point| p.value > 0.0 && p.value.is_finite();
    let least = points
        .iter()
        .filter(positive)
        .map(|p| p.value)
        .fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { least } else { 1.0 };
    let value = |p: &Point| {
        if positive(&p) {
            p.value.ln()
        } else {
            least.ln()
        }
    };
    let error = |p: &Point| {
        if p.error.is_finite() {
            p.error.max(0.0)
        } else {
            0.0
        }
    };
    (
        points.iter().map(value).collect(),
        points.iter().map(error).collect(),
    )
}

fn grouped(values: &[f64], group: usize) -> Vec<f64> {
    match group {
        1 => values.to_vec(),
        _ => values.chunks(group).filter_map(median).collect(),
    }
}

/// Noise between neighbours: differences of neighbours hold at most one change each, so their median holds none. For normal
/// noise it is the standard deviation.
fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    (median(&steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2).max(LEAST_NOISE)
}

/// The cuts found, and how sure they are.
struct Cuts {
    /// First points of all levels, 0 among them.
    starts: Vec<usize>,
    /// A p for each start but the first.
    p: Vec<f64>,
    p_any: Option<f64>,
    level: f64,
    noise: f64,
}

/// Finds the cuts, if there are any, with a penalty calibrated anew on the residuals of each round.
fn find(values: &[f64], errors: &[f64], seed: u64) -> Cuts {
    const ROUNDS: u64 = 6;
    let level = if values.len() < MANY { 0.05 } else { 0.02 };
    let noise = noise(values);
    let mut cuts = Cuts {
        starts: vec![0],
        p: Vec::new(),
        p_any: None,
        level,
        noise,
    };
    if values.len() < FEWEST {
        return cuts;
    }
    let mut partitioner = Partitioner::new(values, errors, noise);
    let whole = Calibrated::new(values, errors, noise, Counting::Levels, seed);
    let p = whole.p(partitioner.critical_penalty(Counting::Levels));
    cuts.p_any = Some(p);
    if p > level {
        return cuts;
    }
    cuts.starts = partitioner.cut(whole.penalty(level));
    for round in 1..=ROUNDS {
        let residuals = without_levels(values, &cuts.starts);
        let noise = self::noise(&residuals);
        let left = Calibrated::new(
            &residuals,
            errors,
            noise,
            Counting::Cuts,
            seed.wrapping_add(round),
        );
        let starts = partitioner.cut(left.penalty(level));
        cuts.p = partitioner
            .gains(&starts)
            .iter()
            .map(|gain| left.p(*gain))
            .collect();
        let settled = starts == cuts.starts;
        cuts.starts = starts;
        if settled {
            break;
        }
    }
    cuts
}

/// The ends of segments that begin at `starts`.
fn bounds(starts: &[usize], n: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = starts.iter().skip(1).copied().chain([n]);
    starts.iter().copied().zip(ends)
}

fn without_levels(values: &[f64], starts: &[usize]) -> Vec<f64> {
    let mut residuals = values.to_vec();
    for (start, end) in bounds(starts, values.len()) {
        let level = median(&values[start..end]).unwrap_or(0.0);
        residuals[start..end].iter_mut().for_each(|r| *r -= level);
    }
    residuals
}

/// Cuts between groups, moved to the point between the neighbouring levels that costs least.
fn refined(values: &[f64], noise: f64, starts: &[usize], group: usize) -> Vec<usize> {
    let n = values.len();
    let coarse: Vec<usize> = starts.iter().map(|s| s * group).collect();
    let levels: Vec<f64> = bounds(&coarse, n)
        .map(|(a, b)| median(&values[a..b]).unwrap_or_default())
        .collect();
    let exact = |i: usize| {
        let (from, to) = (coarse[i] - group, (coarse[i] + group).min(n));
        let cost = |v: f64, level: f64| partition::cost((v - level).abs() / noise);
        let step = |v: &f64| cost(*v, levels[i - 1]) - cost(*v, levels[i]);
        let costs = values[from..to].iter().scan(0.0, |sum, v| {
            *sum += step(v);
            Some(*sum)
        });
        let best = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, cost)| *cost < 0.0)
            .map_or(from, |(at, _)| from + at + 1)
    };
    (0..starts.len())
        .map(|i| if i == 0 { 0 } else { exact(i) })
        .collect()
}

fn report(values: &[f64], cuts: Cuts, thinned: usize, seed: u64) -> Changes {
    let residuals = without_levels(values, &cuts.starts);
    let bounds: Vec<(usize, usize)> = bounds(&cuts.starts, values.len())
        .filter(|(start, end)| start < end)
        .collect();
    let drawn = drawn(&residuals, &bounds, seed);
    let n = values.len();
    let levels: Vec<f64> = bounds
        .iter()
        .map(|(a, b)| median(&values[*a..*b]).unwrap_or_default())
        .collect();
    let segment = |(i, (start, end)): (usize, &(usize, usize))| Segment {
        start: *start,
        end: *end,
        level: interval(levels[i], n, drawn[i].iter().copied()),
    };
    let change = |(i, p): (usize, &f64)| {
        let errors = drawn[i + 1]
            .iter()
            .zip(&drawn[i])
            .map(|(after, before)| after - before);
        Change {
            at: cuts.starts[i + 1],
            ratio: interval(levels[i + 1] - levels[i], n, errors),
            p: *p,
        }
    };
    Changes {
        p: cuts.p_any,
        level: cuts.level,
        noise: cuts.noise.exp_m1(),
        segments: bounds.iter().enumerate().map(segment).collect(),
        changes: cuts.p.iter().enumerate().map(change).collect(),
        residuals: residuals.iter().map(|r| r.exp_m1()).collect(),
        thinned,
    }
}

/// The largest penalties at which random orders of a series are still cut.
#[derive(Debug)]
struct Calibrated {
    /// Sorted.
    critical: Vec<f64>,
}

impl Calibrated {
    /// Draws random orders of these points from `seed`.
    fn new(values: &[f64], errors: &[f64], noise: f64, counting: Counting, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut partitioner = Partitioner::new(values, errors, noise);
        let cells = values.len() * values.len().min(256);
        // A multiple of 100 with the order found.
        let orders = (CELLS / cells.max(1) / 100 * 100)
            .saturating_sub(1)
            .clamp(FEWEST_ORDERS, ORDERS);
        let critical = (0..orders).map(|_| {
            partitioner.reorder(|rows| shuffle(rows, &mut random));
            partitioner.critical_penalty(counting)
        });
        Calibrated {
            critical: sorted(critical),
        }
    }

    /// The penalty at which at most this share of the orders, the one found among them, are cut.
    fn penalty(&self, level: f64) -> f64 {
        let orders = self.critical.len() + 1;
        let allowed = (level * orders as f64 + 1e-9) as usize;
        // Larger than that of all but the allowed ones: the order found may be one of those.
        let at = (orders - allowed.max(1)).min(self.critical.len() - 1);
        self.critical[at] * (1.0 + 1e-9)
    }

    /// The share of the orders that are cut at this penalty, the one found among them.
    fn p(&self, penalty: f64) -> f64 {
        let smaller = self
            .critical
            .partition_point(|c| *c < penalty * (1.0 - 1e-9));
        (self.critical.len() - smaller + 1) as f64 / (self.critical.len() + 1) as f64
    }
}

/// Deviations of drawn levels, by segment: all levels of a series share their noise, so that a level of two points has an interval
/// too. (The interval of order statistics needs six points.) Each segment's level is drawn from all residuals (logarithms).
fn drawn(residuals: &[f64], bounds: &[(usize, usize)], seed: u64) -> Vec<Vec<f64>> {
    let mut random = SplitMix64::new(seed ^ 0x1e7e_15d0);
    // Levels follow their points, which makes the residuals too small: as with the n - 1 of a standard deviation.
    let points = residuals.len() as f64;
    let free = (points / (points - bounds.len() as f64).max(1.0)).sqrt();
    let mut segment = |(start, end): &(usize, usize)| {
        let points = (end - start).min(MOST_POINTS);
        let scale = free * (points as f64 / (end - start) as f64).sqrt();
        let mut sample = vec![0.0; points];
        let mut draw = |_| {
            sample.fill_with(|| residuals[random.below(residuals.len() as u32) as usize]);
            sample.sort_unstable_by(f64::total_cmp);
            median_sorted(&sample).unwrap_or(0.0) * scale
        };
        (0..DRAWS).map(&mut draw).collect::<Vec<f64>>()
    };
    bounds.iter().map(&mut segment).collect()
}

/// The percentile interval of a figure of `n` points, given as a logarithm. It suits medians: it never leaves the values.
fn interval(median: f64, n: usize, errors: impl Iterator<Item = f64>) -> Estimate {
    let errors = sorted(errors);
    let at = |share: f64| Some(median + errors[(share * errors.len() as f64) as usize]);
    Estimate {
        median,
        low: at(0.025),
        high: at(0.975),
        n,
    }
    .map(f64::exp)
}
