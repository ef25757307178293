//! Searches for a rate, one for each slot, in turns.
//!
//! The tester alone comes first: the rate that it can send and receive limits the loads, and the stalls of this machine limit the
//! length of trials. An invalid trial is repeated; three in succession end the search of their slot.

use super::goals::{ATTEMPTS, LEAST_FPS, suited};
use super::stability::Probe;
use super::{Design, Figure, FullTable, History, Observed, Strategy, TrialRequest};
use crate::experiment::{Benchmark, CURVE_STEP, Measure, Method, Trials, WantedGoal};
use crate::record::{Ended, Searched, SearchedGoal, SearchedLoad, Stopped};
use crate::trial::Shape;
use linerate_search::{
    Bisection, Curve, Goal, GoalError, Irregular, Limits, Mlr, Outcome, Search, Trial, interval,
    outcome,
};
use linerate_stats::{Estimate, median};
use std::collections::BTreeMap;

/// Trials of the tester alone as fast as possible, and the length of all its trials in nanoseconds.
const FULL: usize = 3;
const ALONE_NS: u64 = 250_000_000;
/// Trials at half of that rate, for the first tester slot: 5 s, but at most a tenth of the budget. The least and the most.
const HALF: [u64; 2] = [4, 20];
/// Highest load as a share of the tester's own rate: above it, the tester cannot keep a rate.
pub(super) const OF_CEILING: f64 = 0.95;
/// Most connections of a trial, as a share of the DUT's table: a table that is nearly full drops some.
const OF_TABLE: f64 = 0.9;

/// A search for each slot that has a DUT.
pub struct Searches {
    design: Design,
    /// The tester's slots.
    alone: BTreeMap<usize, Alone>,
    /// Number of trials that count the machine's stalls.
    half: usize,
    cells: Vec<Cell>,
    /// The request whose trial has not been observed.
    due: Option<TrialRequest>,
    blocks: u32,
    /// Index of the cell whose turn is next.
    turn: usize,
    /// The test that the searches belong to.
    benchmark: Option<Benchmark>,
    /// Whether to find only the highest load of each slot.
    only_limits: bool,
}

/// The tester without a DUT.
#[derive(Default)]
struct Alone {
    /// Received frames/s as fast as possible.
    full: Vec<f64>,
    /// Whether each trial at half rate lost frames, or was not valid.
    stalled: Vec<bool>,
    /// Invalid trials in succession.
    failed: usize,
}

impl Alone {
    fn is_known(&self, half: usize) -> bool {
        self.failed >= ATTEMPTS || (self.full.len() >= FULL && self.stalled.len() >= half)
    }

    /// The rate of the slowest trial.
    fn ceiling(&self) -> Option<f64> {
        (self.full.len() >= FULL).then(|| self.full.iter().copied().fold(f64::INFINITY, f64::min))
    }

    /// Whether a trial at half rate lost nothing.
    fn is_quiet(&self) -> bool {
        self.stalled.iter().any(|stalled| !stalled)
    }

    /// Stalls a second, from the share of trials without one. If every trial has stalls, the least number that fits.
    fn stalls(&self) -> Option<f64> {
        let trials = self.stalled.len() as f64;
        let clean = self
            .stalled
            .iter()
            .filter(|stalled| !**stalled)
            .count()
            .max(1) as f64;
        (trials > 0.0).then(|| (trials / clean).ln() / (ALONE_NS as f64 / 1e9))
    }
}

/// The search of a slot.
struct Cell {
    slot: usize,
    goals: Vec<Goal>,
    limits: Limits,
    stalls: Option<f64>,
    /// The trials before the search.
    probe: Option<Probe>,
    /// `None` before the tester's rate is known.
    search: Option<Box<dyn Search>>,
    trials: Vec<Trial>,
    /// Offered frames/s of invalid trials in succession.
    failed: Vec<f64>,
    /// The least of them, where the highest load follows from it.
    kept: Option<f64>,
    /// Whether a frame has ever come through, and the number of latest trials without any.
    passed: bool,
    silent: usize,
    /// The limit of the DUT's table of connections, where a trial at a higher load would fill it.
    table: Option<u64>,
    ended: Option<Ended>,
}

impl Searches {
    /// The searches of a design.
    pub fn new(design: Design) -> Searches {
        let searched: Vec<usize> = (0..design.slots.len())
            .filter(|s| !design.slots[*s].tester && !design.slots[*s].skipped)
            .collect();
        let alone = searched
            .iter()
            .filter_map(|slot| design.slots[*slot].ceiling);
        let alone = alone
            .filter(|slot| !design.slots[*slot].skipped)
            .map(|slot| (slot, Alone::default()));
        let limits = Limits {
            min: LEAST_FPS,
            max: LEAST_FPS,
        };
        let cell = |slot| Cell {
            slot,
            goals: Vec::new(),
            limits,
            stalls: None,
            probe: None,
            search: None,
            trials: Vec::new(),
            failed: Vec::new(),
            kept: None,
            passed: false,
            silent: 0,
            table: None,
            ended: None,
        };
        let cells = searched.iter().map(|slot| cell(*slot)).collect();
        let tenth = design.trials.budget_ns.unwrap_or(u64::MAX) / 10 / ALONE_NS;
        let half = tenth.clamp(HALF[0], HALF[1]) as usize;
        let (benchmark, only_limits) = (None, false);
        Searches {
            alone: alone.collect(),
            half,
            cells,
            due: None,
            blocks: 0,
            turn: 0,
            benchmark,
            only_limits,
            design,
        }
    }

    /// The searches of RFC 2544's throughput. `needed`: false finds only the highest loads.
    pub(super) fn of_throughput(design: Design, needed: bool) -> Searches {
        let goals = vec![design.trials.throughput_goal()];
        let trials = Trials {
            measure: Measure::Search,
            goals,
            ..design.trials
        };
        let searches = Searches::new(Design { trials, ..design });
        Searches {
            benchmark: Some(Benchmark::Throughput),
            only_limits: !needed,
            ..searches
        }
    }

    /// The slots that are searched.
    pub(super) fn slots(&self) -> Vec<usize> {
        self.cells.iter().map(|cell| cell.slot).collect()
    }

    /// The bounds that were found for a slot, and how its search ended.
    pub(super) fn bounds(&self, slot: usize) -> Option<(Outcome, Option<Ended>)> {
        let cell = self.cells.iter().find(|cell| cell.slot == slot)?;
        Some((cell.outcome(cell.goals.first()?), cell.ended))
    }

    /// The load that the tester offered beside the DUT of a slot, where its highest load follows from that and not from the tester's own rate.
    pub(super) fn kept(&self, slot: usize) -> Option<f64> {
        self.cells.iter().find(|cell| cell.slot == slot)?.kept
    }

    fn alone(&self) -> Option<TrialRequest> {
        // The machine's stalls do not depend on the frames.
        let half = |at: usize| if at == 0 { self.half } else { 0 };
        let unknown = |(at, (_, alone)): &(usize, (&usize, &Alone))| !alone.is_known(half(*at));
        let (_, (slot, alone)) = self.alone.iter().enumerate().find(unknown)?;
        // Frames of a burst follow each other at the link's rate: no load in bursts is higher.
        let line = self.design.line_rate(*slot).unwrap_or(f64::INFINITY);
        let load =
            (alone.full.len() >= FULL).then(|| alone.ceiling().unwrap_or_default().min(line) / 2.0);
        Some(TrialRequest {
            slot: *slot,
            block: self.blocks,
            load,
            duration_ns: ALONE_NS,
            shape: Shape::Constant,
            benchmark: None,
        })
    }

    fn request(&mut self) -> Option<TrialRequest> {
        if let Some(request) = self.alone() {
            return Some(request);
        }
        for at in 0..self.cells.len() {
            let number = (self.turn + at) % self.cells.len();
            let cell = &mut self.cells[number];
            let ceiling = self.design.slots[cell.slot]
                .ceiling
                .and_then(|slot| self.alone.get(&slot));
            let line = self.design.line_rate(cell.slot);
            cell.begin(
                &self.design.trials,
                line,
                ceiling,
                self.alone.values().next(),
            );
            if self.only_limits {
                continue;
            }
            let probing = cell.probing();
            let benchmark = probing.map_or(self.benchmark, |_| Some(Benchmark::Stability));
            if let Some(request) = probing.or_else(|| cell.next()) {
                self.turn = number;
                let load = Some(request.load);
                return Some(TrialRequest {
                    slot: cell.slot,
                    block: self.blocks,
                    load,
                    duration_ns: request.duration_ns,
                    shape: Shape::Constant,
                    benchmark,
                });
            }
        }
        None
    }
}

impl Strategy for Searches {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        if self.design.trials.is_over(history.elapsed_ns) {
            return Err(Stopped::Budget);
        }
        self.due = self.due.or_else(|| self.request());
        self.due.ok_or(Stopped::Precise)
    }

    fn observe(&mut self, trial: &Observed) {
        self.due = None;
        self.blocks += 1;
        let trial = &self.design.of_each(trial);
        if let Some(alone) = self.alone.get_mut(&trial.request.slot) {
            alone.failed = if trial.received.is_some() {
                0
            } else {
                alone.failed + 1
            };
            if trial.request.load.is_some() {
                // A stall can also keep the tester from its rate.
                alone
                    .stalled
                    .push(trial.received.is_none() || trial.loss_ratio > 0.0);
                alone.failed = 0;
            } else {
                alone.full.extend(trial.received);
            }
            return;
        }
        let Some(at) = self
            .cells
            .iter()
            .position(|cell| cell.slot == trial.request.slot)
        else {
            return;
        };
        self.cells[at].observe(&self.design.trials, trial);
        self.turn = at + 1;
    }

    /// A replay requests no trial after the last recorded one, so searches that are over, or cannot begin, show only here.
    fn finish(&mut self, stopped: Stopped) {
        if stopped == Stopped::Precise {
            let _ = self.request();
        }
    }

    fn progress(&self) -> Option<String> {
        if self.alone().is_some() {
            return Some("the tester alone".into());
        }
        let over = self
            .cells
            .iter()
            .filter(|cell| cell.ended.is_some())
            .count();
        Some(format!("{over} of {} searches done", self.cells.len()))
    }

    fn searches(&self) -> Vec<Searched> {
        self.cells
            .iter()
            .map(|cell| cell.found(&self.design.trials))
            .collect()
    }

    fn highest(&self, slot: usize) -> Option<f64> {
        let cell = self.cells.iter().find(|cell| cell.slot == slot)?;
        cell.search.as_ref().map(|_| cell.limits.max)
    }

    /// The ratio of the rates found, of all directions together; they have bounds but no confidence interval.
    fn ratio(&self, of: usize, than: usize, figure: Figure, _: &[Observed]) -> Option<Estimate> {
        let rate = |slot: usize| {
            let cell = self.cells.iter().find(|cell| cell.slot == slot)?;
            let of_each = cell
                .outcome(cell.goals.first()?)
                .conditional
                .filter(|rate| *rate > 0.0);
            of_each.map(|rate| rate * self.design.slots[slot].direction.ways().len() as f64)
        };
        let median = (figure == Figure::Received)
            .then(|| Some(rate(of)? / rate(than)?))
            .flatten()?;
        Some(Estimate {
            median,
            low: None,
            high: None,
            n: 1,
        })
    }
}

impl Cell {
    /// Makes the search once the tester is known. `first`: the slot of the tester whose trials show stalls.
    fn begin(
        &mut self,
        trials: &Trials,
        line: Option<f64>,
        alone: Option<&Alone>,
        first: Option<&Alone>,
    ) {
        if self.search.is_some() || self.ended.is_some() {
            return;
        }
        self.stalls = first.and_then(Alone::stalls);
        self.goals = trials.search_goals(suited(trials.duration_ns, self.stalls));
        let probe_ns = suited(trials.load_ns(Benchmark::Stability), self.stalls);
        self.probe = trials
            .stability
            .then(|| Probe::new(probe_ns, first.is_none_or(Alone::is_quiet)));
        let ceiling = alone.and_then(Alone::ceiling).map(|rate| OF_CEILING * rate);
        let max = [trials.max_fps, line, ceiling]
            .into_iter()
            .flatten()
            .reduce(f64::min);
        let min = trials.min_fps.unwrap_or(LEAST_FPS);
        match (alone.is_some() && ceiling.is_none(), max) {
            (false, Some(max)) => self.restart(trials, min, max),
            _ => self.ended = Some(Ended::Tester),
        }
    }

    fn restart(&mut self, trials: &Trials, min: f64, max: f64) {
        self.limits = Limits { min, max };
        self.trials.clear();
        let goals = self.goals.iter().filter(|goal| !self.refuses(goal));
        let goals: Vec<Goal> = goals.copied().collect();
        if goals.is_empty() && !self.goals.is_empty() {
            self.ended = Some(Ended::Unstable);
            return;
        }
        match searching(trials, &goals, self.limits) {
            Ok(search) => self.search = Some(search),
            // No load lies between the lowest load and the tester's rate.
            Err(_) => self.ended = Some(Ended::Tester),
        }
    }

    /// The next trial before the search.
    fn probing(&self) -> Option<linerate_search::Request> {
        let probe = self.probe.as_ref().filter(|_| self.ended.is_none())?;
        probe.next(self.limits.max)
    }

    /// Whether a goal is not searched for: no load without loss is known of a DUT that loses frames far below its rate.
    fn refuses(&self, goal: &Goal) -> bool {
        goal.loss == 0.0 && self.probe.as_ref().is_some_and(Probe::is_unstable)
    }

    fn next(&mut self) -> Option<linerate_search::Request> {
        if self.ended.is_some() {
            return None;
        }
        let request = self.search.as_mut()?.next();
        if request.is_none() {
            self.ended = Some(Ended::Known);
        }
        request
    }

    fn observe(&mut self, trials: &Trials, trial: &Observed) {
        let Some(load) = trial.request.load else {
            return;
        };
        if trial.received.is_some() {
            self.failed.clear();
            self.passed |= trial.loss_ratio < 1.0;
            self.silent = if self.passed && trial.loss_ratio >= 1.0 {
                self.silent + 1
            } else {
                0
            };
            if self.silent >= ATTEMPTS {
                self.ended = Some(Ended::Silent);
            }
            if let Some(probe) = self.probe.as_mut().filter(|probe| !probe.is_over()) {
                probe.observe(trial);
                if probe.is_over() && probe.is_unstable() {
                    self.restart(trials, self.limits.min, self.limits.max);
                }
                return;
            }
            let duration_ns = trial.request.duration_ns;
            let trial = Trial {
                load,
                duration_ns,
                effective_ns: duration_ns,
                loss: trial.loss_ratio,
            };
            self.trials.push(trial);
            if let Some(search) = &mut self.search {
                search.observe(trial);
            }
            return;
        }
        // Only the rate decides about the highest load.
        let begun = |probe: &&mut Probe| probe.knows_rate() && !probe.is_over();
        if let Some(probe) = self.probe.as_mut().filter(begun) {
            return probe.observe(trial);
        }
        // The table says nothing about the rate: the search begins again at a load whose connections it holds.
        if let Some(held) = trial.full.map(|table| self.held(trials, table)) {
            self.table = trial.full.map(|table| table.limit);
            if self.limits.min < held && held < load {
                self.failed.clear();
                self.restart(trials, self.limits.min, held);
                return;
            }
        }
        self.failed.push(trial.offered.unwrap_or(0.0));
        if self.failed.len() < ATTEMPTS {
            return;
        }
        if trial.full.is_some() {
            self.ended = Some(Ended::Table);
            return;
        }
        // Beside a busy DUT the tester may be slower than alone: the search begins again below the rate that it kept.
        let kept = std::mem::take(&mut self.failed)
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        if self.trials.is_empty() && kept < load * 0.995 && kept * OF_CEILING > self.limits.min {
            self.kept = Some(kept);
            self.restart(trials, self.limits.min, kept * OF_CEILING);
        } else {
            self.ended = Some(Ended::Tester);
        }
    }

    /// The highest load whose connections fit into a table in the longest trial.
    fn held(&self, trials: &Trials, table: FullTable) -> f64 {
        let longest = self.goals.iter().map(|goal| goal.final_ns).max();
        let load_ns = longest.unwrap_or(trials.duration_ns) + table.warm_up_ns;
        OF_TABLE * table.limit as f64 / (load_ns.max(1) as f64 / 1e9)
    }

    /// Bisection decides about a load by one trial; the result of MLRsearch follows from all trials.
    fn outcome(&self, goal: &Goal) -> Outcome {
        if self.refuses(goal) {
            return Outcome {
                lower: None,
                upper: None,
                conditional: None,
                irregular: Some(Irregular::Unstable),
            };
        }
        match self.search.as_ref().and_then(|search| search.bounds()) {
            Some((lower, upper)) => {
                let irregular = match (lower, upper) {
                    (Some(low), Some(high)) if (high - low) / high <= goal.width => None,
                    (Some(_), None) => Some(Irregular::MaxLoad),
                    (None, Some(high)) if high <= self.limits.min => Some(Irregular::MinLoad),
                    _ => Some(Irregular::Unfinished),
                };
                Outcome {
                    lower,
                    upper,
                    conditional: lower,
                    irregular,
                }
            }
            None => outcome(goal, self.limits, &self.trials),
        }
    }

    fn found(&self, trials: &Trials) -> Searched {
        let mut loads: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        self.trials
            .iter()
            .for_each(|t| loads.entry(t.load.to_bits()).or_default().push(t.loss));
        let load = |(load, losses): (u64, Vec<f64>)| SearchedLoad {
            load: f64::from_bits(load),
            trials: losses.len(),
            clean: losses.iter().filter(|loss| **loss == 0.0).count(),
            loss: median(&losses).unwrap_or_default(),
            most: losses.iter().copied().fold(0.0, f64::max),
        };
        let goal = |(wanted, goal): (&WantedGoal, &Goal)| SearchedGoal {
            name: wanted.name.clone(),
            goal: *goal,
            outcome: self.outcome(goal),
            interval: match self.refuses(goal) {
                true => [None; 2],
                false => interval(goal, &self.trials),
            },
        };
        Searched {
            slot: self.slot,
            goals: trials.goals.iter().zip(&self.goals).map(goal).collect(),
            limits: self.limits,
            stalls: self.stalls,
            stability: self.probe.as_ref().and_then(Probe::found),
            loads: loads.into_iter().map(load).collect(),
            table: self.table,
            ended: self.ended,
        }
    }
}

/// The search of a plan.
fn searching(
    trials: &Trials,
    goals: &[Goal],
    limits: Limits,
) -> Result<Box<dyn Search>, GoalError> {
    let limits = Limits::new(limits.min, limits.max)?;
    Ok(match (trials.measure, trials.method, goals) {
        (Measure::LossCurve, ..) => Box::new(Curve::new(
            limits.max,
            trials.step.unwrap_or(CURVE_STEP),
            trials.duration_ns,
        )),
        (_, Method::Bisection, [goal, ..]) => Box::new(Bisection::new(
            limits,
            goal.loss,
            goal.width,
            goal.final_ns,
            trials.verify,
        )?),
        _ => Box::new(Mlr::new(goals, limits)?),
    })
}
