//! MLRsearch (RFC 9971): one search for several goals.
//!
//! Each goal is reached over coarser ones: less time for each load and twice the width. Their seekers name the load that they want to
//! know next, and the smallest load is measured: loss at a small load saves trials at larger ones. The RFC leaves the choice of loads
//! open; this one takes the steps that its authors' implementation is documented to take.

use crate::class::{bounds, class};
use crate::goal::{Goal, GoalError};
use crate::grid::Grid;
use crate::{Limits, Request, Search, Trial};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A search for several goals.
#[derive(Debug, Clone)]
pub struct Mlr {
    grid: Grid,
    seekers: Vec<Seeker>,
    /// The trials by the grid step of their load.
    trials: BTreeMap<i64, Vec<Trial>>,
    /// The width of the last steps towards a bound, which all seekers share: they look for neighbours.
    pace: i64,
    phase: Phase,
    due: Option<Due>,
}

/// A requested trial.
#[derive(Debug, Clone, Copy)]
struct Due {
    step: i64,
    duration_ns: u64,
    /// The width of its target and the number of its seeker; `None` for the first trials.
    sought: Option<(i64, usize)>,
}

/// The first trials find the rate forwarded under the highest load; then the seekers choose.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Highest,
    Forwarded,
    /// The second load, with which the third one is compared.
    Beside(i64),
    Seek,
}

impl Mlr {
    /// # Errors
    /// The goals do not fit into one search.
    pub fn new(goals: &[Goal], limits: Limits) -> Result<Mlr, GoalError> {
        Goal::check_all(goals, limits)?;
        let widths: Vec<f64> = goals.iter().map(|goal| goal.width).collect();
        let grid = Grid::new(limits, &widths);
        let seekers = goals.iter().map(|goal| Seeker::new(goal, &grid)).collect();
        Ok(Mlr {
            grid,
            seekers,
            trials: BTreeMap::new(),
            pace: 0,
            phase: Phase::Highest,
            due: None,
        })
    }

    /// The strictest loss ratio, the longest duration and the widest width of the goals' first targets.
    fn first(&self) -> (f64, u64, i64) {
        let targets = || self.seekers.iter().map(|seeker| &seeker.targets[0]);
        let loss = targets().map(|target| target.goal.loss).fold(1.0, f64::min);
        let duration_ns = targets()
            .map(|target| target.goal.final_ns)
            .max()
            .unwrap_or_default();
        (
            loss,
            duration_ns,
            targets().map(|target| target.width).max().unwrap_or(1),
        )
    }

    /// The load that would lose just the strictest goal's loss ratio, if the system forwarded the rate of this trial.
    fn forwarded(&self, trial: &Trial) -> i64 {
        self.grid
            .step(trial.load * (1.0 - trial.loss) / (1.0 - self.first().0))
    }

    fn begin(&mut self, a: i64, b: i64) {
        self.pace = (a - b).abs();
        self.phase = Phase::Seek;
        for seeker in &mut self.seekers {
            seeker.turn((Some(a.min(b)), Some(a.max(b))));
        }
    }

    fn seek(&mut self) -> Option<Due> {
        let (trials, grid, pace) = (&self.trials, &self.grid, self.pace);
        let nominate = |(number, seeker): (usize, &mut Seeker)| {
            let (step, width) = seeker.nominate(trials, grid, pace)?;
            let duration_ns = seeker.target().goal.final_ns;
            Some(Due {
                step,
                duration_ns,
                sought: Some((width, number)),
            })
        };
        let all: Vec<Due> = self
            .seekers
            .iter_mut()
            .enumerate()
            .filter_map(nominate)
            .collect();
        all.into_iter().min_by_key(|due| {
            (
                due.step,
                Reverse(due.duration_ns),
                Reverse(due.sought.map(|s| s.0)),
            )
        })
    }

    fn choose(&mut self) -> Option<Due> {
        let (_, duration_ns, width) = self.first();
        let last = |step: i64| self.trials[&step].last().copied();
        let step = match self.phase {
            Phase::Highest => Some(self.grid.steps),
            Phase::Forwarded => {
                let forwarded = self.forwarded(&last(self.grid.steps)?);
                place(forwarded, width, (None, Some(self.grid.steps)), &self.grid)
            }
            Phase::Beside(second) => {
                let trial = last(second)?;
                if trial.loss > self.first().0 {
                    place(
                        self.forwarded(&trial),
                        width,
                        (None, Some(second)),
                        &self.grid,
                    )
                } else {
                    place(
                        second + width,
                        width,
                        (Some(second), Some(self.grid.steps)),
                        &self.grid,
                    )
                }
            }
            Phase::Seek => return self.seek(),
        };
        if let Some(step) = step {
            return Some(Due {
                step,
                duration_ns,
                sought: None,
            });
        }
        // Nothing lies between: the loads are neighbours.
        let known = if let Phase::Beside(second) = self.phase {
            second
        } else {
            self.grid.steps
        };
        self.begin(known, known);
        self.seek()
    }
}

impl Search for Mlr {
    fn next(&mut self) -> Option<Request> {
        if self.due.is_none() {
            self.due = self.choose();
        }
        let due = self.due?;
        Some(Request {
            load: self.grid.load(due.step),
            duration_ns: due.duration_ns,
        })
    }

    fn observe(&mut self, trial: Trial) {
        let Some(due) = self.due.take() else { return };
        let at = Trial {
            load: self.grid.load(due.step),
            ..trial
        };
        self.trials.entry(due.step).or_default().push(at);
        match (self.phase, due.sought) {
            (Phase::Highest, _) if self.forwarded(&at) >= self.grid.steps => {
                self.begin(due.step, due.step)
            }
            (Phase::Highest, _) => self.phase = Phase::Forwarded,
            (Phase::Forwarded, _) => self.phase = Phase::Beside(due.step),
            (Phase::Beside(second), _) => self.begin(second, due.step),
            (Phase::Seek, Some((width, number))) => {
                self.pace = width;
                let seeker = &mut self.seekers[number];
                if seeker.confirmed(due.step, &self.trials) {
                    self.pace = seeker.stride;
                }
            }
            (Phase::Seek, None) => {}
        }
    }
}

/// A coarser goal on the way to the goal, or the goal itself.
#[derive(Debug, Clone, Copy)]
struct Target {
    goal: Goal,
    /// Width of the goal, in steps.
    width: i64,
}

/// A pair of loads, in steps.
type Pair = (Option<i64>, Option<i64>);

/// Searches for the bounds of one goal.
#[derive(Debug, Clone)]
struct Seeker {
    /// From the coarsest to the goal itself.
    targets: Vec<Target>,
    at: usize,
    /// The bounds of the previous target, or the loads of the first trials. They stay while trials of other goals move the bounds.
    from: Pair,
    /// The next step outwards.
    stride: i64,
    /// The side on which the last nomination looked for a bound.
    outwards: Option<Side>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Down,
    Up,
}

impl Seeker {
    fn new(goal: &Goal, grid: &Grid) -> Seeker {
        let ratio = goal.initial_ns as f64 / goal.sum_ns as f64;
        let target = |coarser: u32| {
            let sum_ns = match coarser {
                0 => goal.sum_ns,
                all if all == goal.coarser => goal.initial_ns,
                some => {
                    (goal.sum_ns as f64 * ratio.powf(f64::from(some) / f64::from(goal.coarser)))
                        as u64
                }
            };
            let final_ns = if coarser == 0 {
                goal.final_ns
            } else {
                goal.final_ns.min(sum_ns)
            };
            Target {
                goal: Goal {
                    sum_ns,
                    final_ns,
                    ..*goal
                },
                width: grid.width(goal.width) << coarser,
            }
        };
        let targets = (0..=goal.coarser).rev().map(target).collect();
        Seeker {
            targets,
            at: 0,
            from: (None, None),
            stride: 0,
            outwards: None,
        }
    }

    fn target(&self) -> &Target {
        &self.targets[self.at]
    }

    /// Begins with a target at these loads.
    fn turn(&mut self, from: Pair) {
        self.from = from;
        let width = self.target().width;
        self.stride = 2 * from
            .0
            .zip(from.1)
            .map_or(width, |(low, high)| width.max(high - low));
    }

    fn bounds(&self, trials: &BTreeMap<i64, Vec<Trial>>) -> Pair {
        let goal = &self.target().goal;
        bounds(
            trials
                .iter()
                .map(|(step, trials)| (*step, class(goal, trials))),
        )
    }

    /// The next load, with the width of its target; `None`: the goal is reached.
    fn nominate(
        &mut self,
        trials: &BTreeMap<i64, Vec<Trial>>,
        grid: &Grid,
        pace: i64,
    ) -> Option<(i64, i64)> {
        loop {
            let bounds = self.bounds(trials);
            self.outwards = None;
            if let Some(nomination) = self
                .revisit(bounds)
                .or_else(|| self.explore(bounds, grid, pace))
            {
                return Some(nomination);
            }
            if self.at + 1 == self.targets.len() {
                return None;
            }
            self.at += 1;
            self.turn(bounds);
        }
    }

    /// Whether a trial at this load can improve a bound.
    fn worth(&self, load: i64, (low, high): Pair) -> bool {
        let inside = low.is_none_or(|low| low < load) && high.is_none_or(|high| load < high);
        inside
            && low
                .zip(high)
                .is_none_or(|(low, high)| high - low > self.target().width)
    }

    /// The loads known from the previous target: their middle, if that halves the width, then each.
    fn revisit(&mut self, bounds: Pair) -> Option<(i64, i64)> {
        let width = self.target().width;
        let (low, high) = self.from;
        let between = low
            .zip(high)
            .filter(|(low, high)| (width + 1..=2 * width).contains(&(high - low)));
        let half = between.map(|(low, high)| middle(low, high, width));
        let load = [half, low, high]
            .into_iter()
            .flatten()
            .find(|load| self.worth(*load, bounds))?;
        self.stride = 2 * width;
        Some((load, width))
    }

    /// A load beyond the only bound, in growing steps, or between both bounds.
    fn explore(&mut self, bounds: Pair, grid: &Grid, pace: i64) -> Option<(i64, i64)> {
        let width = self.target().width;
        let stride = self.stride.max(pace);
        match bounds {
            (None, Some(high)) if high > 0 => {
                let load = place(high - stride, width, bounds, grid)
                    .filter(|load| self.worth(*load, bounds))?;
                self.outwards = Some(Side::Down);
                Some((load, stride))
            }
            (Some(low), None) if low < grid.steps => {
                let load = place(low + stride, width, bounds, grid)
                    .filter(|load| self.worth(*load, bounds))?;
                self.outwards = Some(Side::Up);
                Some((load, stride))
            }
            (Some(low), Some(high)) if high - low > width => {
                let half = middle(low, high, width);
                // A bound may come from another goal's trials, far from the loads known before: then steps from the near bound
                // are shorter than half of the way.
                let down = place(high - stride, width, bounds, grid).filter(|load| {
                    self.from
                        .1
                        .is_some_and(|known| half < *load && *load < known)
                });
                let up = place(low + stride, width, bounds, grid).filter(|load| {
                    self.from
                        .0
                        .is_some_and(|known| known < *load && *load < half)
                });
                if let Some(load) = down.or(up) {
                    self.outwards = Some(if down.is_some() { Side::Down } else { Side::Up });
                    return Some((load, stride));
                }
                let narrow = (half - low).min(high - half);
                self.stride = 2 * narrow.max(width);
                Some((half, narrow))
            }
            _ => None,
        }
    }

    /// Whether the trial at this load moved the bound; then the next step is twice as long.
    fn confirmed(&mut self, load: i64, trials: &BTreeMap<i64, Vec<Trial>>) -> bool {
        let (low, high) = self.bounds(trials);
        let moved = match self.outwards {
            Some(Side::Down) => high == Some(load),
            Some(Side::Up) => low == Some(load),
            None => false,
        };
        if moved {
            self.stride *= 2;
        }
        moved
    }
}

/// The load, moved to at least the width from each bound, or to the limit of the search if that is near. `None`: the load is outside
/// the bounds, or they leave no room.
fn place(load: i64, width: i64, (low, high): Pair, grid: &Grid) -> Option<i64> {
    let (least, most) = (low.unwrap_or(0), high.unwrap_or(grid.steps));
    if low.is_some_and(|low| load <= low) || high.is_some_and(|high| load >= high || high <= 0) {
        return None;
    }
    if least + width >= most {
        return if low.is_none() {
            Some(least)
        } else {
            Some(most).filter(|_| high.is_none())
        };
    }
    let (mut first, mut last) = (least + width, most - width);
    if first > last {
        first = middle(least, most, width);
        last = first;
    }
    Some(if load < first {
        low.map_or(least, |_| first)
    } else if load > last {
        high.map_or(most, |_| last)
    } else {
        load
    })
}

/// A load between two others, chosen so that repeated halving ends with parts of exactly the width: the upper part is the width times
/// a power of two, the lower part the rest.
fn middle(low: i64, high: i64, width: i64) -> i64 {
    let distance = high - low;
    if distance < 2 * width {
        return if width % 2 == 0 {
            middle(low, high, width / 2)
        } else {
            low + distance / 2
        };
    }
    let mut part = width;
    while distance - 2 * part > 2 * part {
        part *= 2;
    }
    let wider = distance - 2 * part;
    // The more even of both splits.
    if distance == 2 * width || part * (distance - part) > 2 * part * wider {
        low + part
    } else {
        low + wider
    }
}
