//! Cuts a series so that the cost of its points and a penalty for each cut are least, exactly.

/// Distance from the level, in units of the noise, beyond which a point's cost hardly grows.
const BOUND: f64 = 3.0;

/// So much more a point costs that is infinitely far than one at [`BOUND`]: enough that an outlier beside a cut goes to the
/// side whose level is nearer.
const REST: f64 = 0.2;

/// Fewest points of a new level at either end of the series: two outliers that happen to come last are not rare enough, since
/// only one cut sets them apart.
const AT_ENDS: usize = 3;

/// Fewest points of a level within the series, which takes two cuts.
const SHORTEST: usize = 2;

/// Levels that are tried, at most; they are taken from the values.
const MOST_LEVELS: usize = 256;

/// Levels closer together than this, in units of the noise, are one: the cost of a point then is wrong by 0.004 at most
/// where it matters.
const LEVEL_STEP: f64 = 0.125;

/// Penalties below this do not matter: too many random orders would be cut.
const LEAST_PENALTY: f64 = 1.5;

/// The divisor of a segmentation's gain.
///
/// A level of a few points needs two cuts within the series but only one at its end, where random orders have such levels as
/// often: with a count of cuts alone, the ends would decide what is rare, and hide clear changes elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// The cuts: is there one more?
    Cuts,
    /// The levels, which are one more than the cuts: is there any?
    Levels,
}

/// The cost of a point at this distance from its level, in units of the noise.
pub fn cost(distance: f64) -> f64 {
    if distance <= BOUND {
        distance * distance
    } else {
        BOUND * BOUND * (1.0 + REST - REST * BOUND / distance)
    }
}

/// A series whose order may be changed, with the costs of its points at every level.
#[derive(Debug)]
pub struct Partitioner {
    /// costs[rows[t] * levels + l]: of point t at level l.
    costs: Vec<f64>,
    rows: Vec<usize>,
    levels: usize,
    /// Least cost of the points so far with the last level being l and older than one point, and where that level began.
    settled: Vec<(f64, usize)>,
    /// Least cost of the points so far with a last level that began with the last point.
    fresh: Vec<f64>,
    /// came[t]: where the last level before t began, if there is a cut at t.
    came: Vec<usize>,
}

impl Partitioner {
    /// A series in its own order. `errors` are those of the points themselves, `noise` is that between points.
    pub fn new(values: &[f64], errors: &[f64], noise: f64) -> Self {
        let levels = levels(values, noise);
        let row = |(value, error): (&f64, &f64)| {
            let unit = noise.max(*error);
            levels
                .iter()
                .map(move |l| cost((value - l).abs() / unit))
                .collect::<Vec<f64>>()
        };
        Partitioner {
            costs: values.iter().zip(errors).flat_map(row).collect(),
            rows: (0..values.len()).collect(),
            levels: levels.len(),
            settled: vec![(0.0, 0); levels.len()],
            fresh: vec![0.0; levels.len()],
            came: vec![0; values.len() + 1],
        }
    }

    /// Changes the order of the points.
    pub fn reorder(&mut self, order: impl FnOnce(&mut [usize])) {
        order(&mut self.rows);
    }

    fn row(&self, t: usize) -> &[f64] {
        &self.costs[self.rows[t] * self.levels..][..self.levels]
    }

    /// The least cost of points `from..to` on one level.
    pub fn on_one_level(&self, from: usize, to: usize) -> f64 {
        let mut sums = vec![0.0; self.levels];
        for t in from..to {
            sums.iter_mut()
                .zip(self.row(t))
                .for_each(|(sum, cost)| *sum += cost);
        }
        sums.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Where levels begin, 0 among them, if each cut costs `penalty`.
    pub fn cut(&mut self, penalty: f64) -> Vec<usize> {
        self.solve(penalty);
        let mut starts: Vec<usize> = self.starts().collect();
        starts.reverse();
        starts
    }

    /// Where the levels of the last solution begin, the last one first.
    fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        let last = self.came[self.rows.len()];
        std::iter::successors(Some(last), |start| (*start > 0).then(|| self.came[*start]))
    }

    /// The least sum of costs and penalties.
    fn solve(&mut self, penalty: f64) -> f64 {
        const {
            assert!(
                SHORTEST == 2,
                "two ages of a level are told apart: one point, and more"
            )
        };
        let n = self.rows.len();
        for l in 0..self.levels {
            self.settled[l] = (f64::INFINITY, 0);
            self.fresh[l] = self.row(0)[l];
        }
        let mut fresh_start = 0;
        let mut best = (f64::INFINITY, 0);
        for t in 1..n {
            let may_cut = t >= AT_ENDS && t + AT_ENDS <= n;
            let opened = if may_cut {
                best.0 + penalty
            } else {
                f64::INFINITY
            };
            self.came[t] = best.1;
            best = (f64::INFINITY, 0);
            let row = &self.costs[self.rows[t] * self.levels..][..self.levels];
            for ((settled, fresh), cost) in self.settled.iter_mut().zip(&mut self.fresh).zip(row) {
                if *fresh < settled.0 {
                    *settled = (*fresh, fresh_start);
                }
                settled.0 += cost;
                if settled.0 < best.0 {
                    best = *settled;
                }
                *fresh = opened + cost;
            }
            fresh_start = t;
        }
        self.came[n] = best.1;
        best.0
    }

    /// The largest penalty at which the series is still cut: the most that cuts save, divided by their number or that of the
    /// levels. Smaller ones than [`LEAST_PENALTY`] are returned as that.
    ///
    /// Dinkelbach, "On nonlinear fractional programming", Management Science 13 (1967): each answer is the next penalty.
    pub fn critical_penalty(&mut self, counting: Counting) -> f64 {
        let whole = self.on_one_level(0, self.rows.len());
        let more = if counting == Counting::Levels {
            1.0
        } else {
            0.0
        };
        let mut penalty = LEAST_PENALTY;
        loop {
            let cost = self.solve(penalty);
            let cuts = self.starts().count() - 1;
            if cuts == 0 {
                return penalty;
            }
            let costs = cost - penalty * cuts as f64;
            let next = (whole - costs) / (cuts as f64 + more);
            if next <= penalty * (1.0 + 1e-9) {
                return penalty;
            }
            penalty = next;
        }
    }

    /// Saving of each of these cuts, with the others in place.
    pub fn gains(&self, starts: &[usize]) -> Vec<f64> {
        let n = self.rows.len();
        let end = |i: usize| starts.get(i).copied().unwrap_or(n);
        let gain = |i: usize| {
            let (from, at, to) = (starts[i - 1], starts[i], end(i + 1));
            self.on_one_level(from, to) - self.on_one_level(from, at) - self.on_one_level(at, to)
        };
        (1..starts.len()).map(gain).collect()
    }
}

/// The levels to try: the values themselves, as far as they differ.
fn levels(values: &[f64], noise: f64) -> Vec<f64> {
    let sorted = crate::sorted(values.iter().copied());
    let mut step = noise * LEVEL_STEP;
    loop {
        let mut levels: Vec<f64> = Vec::new();
        for value in &sorted {
            if levels.last().is_none_or(|last| value - last > step) {
                levels.push(*value);
            }
        }
        if levels.len() <= MOST_LEVELS {
            return levels;
        }
        step *= 2.0;
    }
}
