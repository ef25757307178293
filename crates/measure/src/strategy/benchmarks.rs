//! The tests of RFC 2544 and later RFCs.
//!
//! The tester alone and the throughput of every slot come first, then one test after the other. Within a test, the slots take turns. An
//! invalid trial is repeated; three in succession end the test of their slot.

use super::goals::ATTEMPTS;
use super::searches::OF_CEILING;
use super::{Design, Figure, History, Observed, Searches, Strategy, TrialRequest};
use crate::experiment::{Benchmark, CURVE_STEP, SEARCH_WIDTH, Trials};
use crate::record::{Ended, Searched, Stopped, Why};
use crate::trial::Shape;
use linerate_search::{Bursts, Curve, Outcome, Search, Trial};
use linerate_stats::Estimate;

/// Load of a recovery test, as a share of the throughput (RFC 2544, section 26.5), and the share of that load after it.
const OVERLOAD: f64 = 1.1;
const REDUCED: f64 = 0.5;
/// A result above this share of the longest burst allowed is repeated with longer bursts (RFC 9004, section 6.2).
const NEAR: f64 = 0.9;
/// The shortest load of a burst's trial, in nanoseconds.
const SHORTEST_NS: u64 = 10_000_000;

/// The tests of a design.
pub struct Rfc2544 {
    design: Design,
    searches: Searches,
    /// The tests after throughput, and how many of them have begun.
    tests: Vec<Benchmark>,
    begun: usize,
    courses: Vec<Course>,
    /// The request whose trial has not been observed.
    due: Option<TrialRequest>,
    trials: u32,
    /// Index of the course whose turn is next.
    turn: usize,
}

/// The choices and results of a test of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Benched {
    pub slot: usize,
    pub test: Benchmark,
    /// The highest load that the tester keeps, in frames/s.
    pub highest: Option<f64>,
    /// The least rate that the tester offered in three failed trials beside the DUT, where the highest load follows from it.
    pub kept: Option<f64>,
    /// Line rate of the links, in frames/s.
    pub line: Option<f64>,
    /// The throughput, in frames/s.
    pub throughput: Option<f64>,
    /// The longest burst of each search, in frames.
    pub bursts: Vec<u64>,
    /// Longest burst allowed, and the distance of the two lengths that ended a search, in frames.
    pub most: u64,
    pub step: u64,
    /// Why it was not run, or is not complete.
    pub why: Option<Why>,
}

/// A test of a slot.
#[derive(Debug, Clone)]
struct Course {
    slot: usize,
    test: Benchmark,
    kind: Kind,
    /// Whether one of its trials was valid.
    valid: bool,
    /// Offered frames/s of invalid trials in succession.
    failed: Vec<f64>,
    /// Whether frames are known to pass, and the number of latest trials without any.
    passed: bool,
    silent: usize,
    why: Option<Why>,
}

/// The choice of its trials.
#[derive(Debug, Clone)]
enum Kind {
    /// One trial, `left` more times.
    Runs {
        load: f64,
        shape: Shape,
        left: u32,
    },
    /// The loss at falling loads, from this one down.
    Curve {
        curve: Curve,
        max: f64,
    },
    Bursts(LongestBursts),
    Nothing,
}

/// Searches for the longest burst, one after the other.
#[derive(Debug, Clone)]
struct LongestBursts {
    search: Bursts,
    left: u32,
    found: Vec<u64>,
    /// Step of the last finished search, in frames.
    step: u64,
    /// Frames of the longest burst of any search.
    longest: u64,
    /// Frames/s of a burst, and of the DUT behind it.
    rate: f64,
    throughput: f64,
    paced: bool,
}

impl Rfc2544 {
    /// The tests of a design.
    pub fn new(design: Design) -> Rfc2544 {
        let asked = &design.trials.tests;
        let needed = asked.iter().any(|test| test.needs_throughput());
        let tests = asked
            .iter()
            .copied()
            .filter(|test| *test != Benchmark::Throughput)
            .collect();
        let searches = Searches::of_throughput(design.clone(), needed);
        Rfc2544 {
            design,
            searches,
            tests,
            begun: 0,
            courses: Vec::new(),
            due: None,
            trials: 0,
            turn: 0,
        }
    }

    fn request(&mut self, history: &History<'_>) -> Option<TrialRequest> {
        if let Ok(request) = self.searches.next(history) {
            return Some(request);
        }
        loop {
            for at in 0..self.courses.len() {
                let number = (self.turn + at) % self.courses.len();
                if let Some(request) = self.courses[number].next(&self.design) {
                    self.turn = number;
                    return Some(request);
                }
            }
            let test = *self.tests.get(self.begun)?;
            self.begun += 1;
            for slot in self.searches.slots() {
                // A reset takes the same time with any frame length.
                if test != Benchmark::Reset || self.design.slots[slot].shortest {
                    self.courses.push(self.course(test, slot));
                }
            }
        }
    }

    /// Throughput of a slot in frames/s, and whether its highest load lost nothing.
    ///
    /// # Errors
    /// Why the slot has no throughput.
    fn throughput(&self, slot: usize) -> Result<(f64, bool), Why> {
        match self.searches.bounds(slot) {
            Some((_, Some(Ended::Silent))) => Err(Why::Silent),
            Some((_, Some(Ended::Unstable))) => Err(Why::Unstable),
            Some((
                Outcome {
                    lower: Some(lower),
                    upper,
                    ..
                },
                _,
            )) => Ok((lower, upper.is_none())),
            Some((_, Some(Ended::Known))) => Err(Why::NoThroughput),
            Some((_, Some(Ended::Tester | Ended::Table))) => Err(Why::Tester),
            _ => Err(Why::Unfinished),
        }
    }

    fn course(&self, test: Benchmark, slot: usize) -> Course {
        let kind = self.kind(test, slot);
        let why = kind.as_ref().err().copied();
        let (kind, passed) = (kind.unwrap_or(Kind::Nothing), self.throughput(slot).is_ok());
        Course {
            slot,
            test,
            kind,
            valid: false,
            failed: Vec::new(),
            passed,
            silent: 0,
            why,
        }
    }

    fn kind(&self, test: Benchmark, slot: usize) -> Result<Kind, Why> {
        let trials = &self.design.trials;
        let highest = self.searches.highest(slot).ok_or(Why::Tester)?;
        if !test.needs_throughput() {
            let curve = Curve::new(
                highest,
                trials.step.unwrap_or(CURVE_STEP),
                trials.load_ns(test),
            );
            return Ok(Kind::Curve {
                curve,
                max: highest,
            });
        }
        let (throughput, at_highest) = self.throughput(slot)?;
        let after_ns = trials.before_ns(test);
        let (load, shape) = match test {
            Benchmark::BackToBack | Benchmark::Recovery if at_highest => {
                return Err(Why::AtMaximum);
            }
            Benchmark::BackToBack => {
                let frames = |ns: u64| (highest * ns as f64 / 1e9) as u64;
                let width = trials.width.unwrap_or(SEARCH_WIDTH);
                return Ok(Kind::Bursts(LongestBursts {
                    search: Bursts::new(frames(trials.load_ns(test)), width, trials.verify),
                    left: trials.runs(test),
                    found: Vec::new(),
                    step: 0,
                    longest: frames(trials.duration_ns / 2).max(1),
                    rate: highest,
                    throughput,
                    // No medium sets the gap between its frames.
                    paced: self.design.slots[slot].ceiling.is_some(),
                }));
            }
            Benchmark::Recovery => {
                let load = (OVERLOAD * throughput).min(highest);
                (
                    load,
                    Shape::Step {
                        after_ns,
                        fps: REDUCED * load,
                    },
                )
            }
            Benchmark::Reset if !self.design.slots[slot].event => return Err(Why::NoEvent),
            Benchmark::Reset => (throughput, Shape::Event { after_ns }),
            _ => (throughput, Shape::Constant),
        };
        Ok(Kind::Runs {
            load,
            shape,
            left: trials.runs(test),
        })
    }

    fn benched(&self, test: Benchmark, slot: usize) -> Benched {
        let course = self
            .courses
            .iter()
            .find(|course| course.slot == slot && course.test == test);
        let throughput = self.throughput(slot);
        let bursts = course.and_then(|course| match &course.kind {
            Kind::Bursts(bursts) => Some(bursts),
            _ => None,
        });
        let unfinished = || course.is_none_or(|course| !course.is_over());
        let why = match (test, course.and_then(|course| course.why)) {
            (_, Some(why)) => Some(why),
            (Benchmark::Throughput, None) => match self.searches.bounds(slot) {
                Some((_, None)) => Some(Why::Unfinished),
                _ => throughput.err(),
            },
            (_, None) => unfinished().then_some(Why::Unfinished),
        };
        Benched {
            slot,
            test,
            highest: self.searches.highest(slot),
            kept: self.searches.kept(slot),
            line: self.design.line_rate(slot),
            throughput: throughput.ok().map(|(fps, _)| fps),
            bursts: bursts.map_or(Vec::new(), |bursts| bursts.found.clone()),
            most: bursts.map_or(0, |bursts| bursts.search.most()),
            step: bursts.map_or(0, |bursts| bursts.step),
            why,
        }
    }
}

impl Strategy for Rfc2544 {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        if self.design.trials.is_over(history.elapsed_ns) {
            return Err(Stopped::Budget);
        }
        if self.due.is_none() {
            self.due = self.request(history).map(|request| TrialRequest {
                block: self.trials,
                ..request
            });
        }
        self.due.ok_or(Stopped::Precise)
    }

    fn observe(&mut self, trial: &Observed) {
        self.due = None;
        self.trials += 1;
        let TrialRequest {
            slot, benchmark, ..
        } = trial.request;
        let course = |course: &Course| course.slot == slot && Some(course.test) == benchmark;
        match self.courses.iter().position(course) {
            Some(at) => {
                self.courses[at].observe(&self.design.of_each(trial));
                self.turn = at + 1;
            }
            None => self.searches.observe(trial),
        }
    }

    /// A replay requests no trial after the last recorded one, so tests without trials show only here.
    fn finish(&mut self, stopped: Stopped) {
        self.searches.finish(stopped);
        if stopped == Stopped::Precise {
            let _ = self.request(&History {
                elapsed_ns: 0,
                trials: &[],
            });
        }
    }

    fn progress(&self) -> Option<String> {
        match self.begun.checked_sub(1).and_then(|at| self.tests.get(at)) {
            None => self.searches.progress(),
            Some(test) => Some(test.title().into()),
        }
    }

    fn searches(&self) -> Vec<Searched> {
        self.searches.searches()
    }

    fn highest(&self, slot: usize) -> Option<f64> {
        self.searches.highest(slot)
    }

    fn benchmarks(&self) -> Vec<Benched> {
        let tests = &self.design.trials.tests;
        let has = |slot: usize, test: Benchmark| {
            test != Benchmark::Reset || self.design.slots[slot].shortest
        };
        let of_slot = |slot: usize| {
            tests
                .iter()
                .filter(move |test| has(slot, **test))
                .map(move |test| self.benched(*test, slot))
        };
        self.searches
            .slots()
            .into_iter()
            .flat_map(of_slot)
            .collect()
    }

    fn ratio(
        &self,
        of: usize,
        than: usize,
        figure: Figure,
        trials: &[Observed],
    ) -> Option<Estimate> {
        self.searches.ratio(of, than, figure, trials)
    }
}

impl Course {
    fn is_over(&self) -> bool {
        match &self.kind {
            Kind::Runs { left, .. } => *left == 0,
            Kind::Curve { curve, .. } => curve.clone().next().is_none(),
            Kind::Bursts(bursts) => bursts.left == 0,
            Kind::Nothing => true,
        }
    }

    fn next(&mut self, design: &Design) -> Option<TrialRequest> {
        if self.why.is_some() || self.is_over() {
            return None;
        }
        let mut duration_ns = design.trials.load_ns(self.test);
        let (load, shape) = match &mut self.kind {
            Kind::Runs { load, shape, .. } => (Some(*load), *shape),
            Kind::Curve { curve, .. } => (Some(curve.next()?.load), Shape::Constant),
            Kind::Bursts(bursts) => {
                let frames = bursts.search.next()?;
                // Until the DUT has forwarded the burst.
                duration_ns = ((1e9 * frames as f64 / bursts.throughput) as u64).max(SHORTEST_NS);
                (bursts.paced.then_some(bursts.rate), Shape::Burst { frames })
            }
            Kind::Nothing => return None,
        };
        if load.is_some_and(|load| load * (duration_ns as f64) < 1e9)
            && !matches!(shape, Shape::Burst { .. })
        {
            self.why = Some(Why::NoFrame);
            return None;
        }
        Some(TrialRequest {
            slot: self.slot,
            block: 0,
            load,
            duration_ns,
            shape,
            benchmark: Some(self.test),
        })
    }

    fn observe(&mut self, trial: &Observed) {
        if !trial.valid {
            self.failed.push(trial.offered.unwrap_or(0.0));
            if self.failed.len() >= ATTEMPTS {
                self.give_up();
            }
            return;
        }
        self.valid = true;
        self.failed.clear();
        self.passed |= trial.loss_ratio < 1.0;
        self.silent = if self.passed && trial.loss_ratio >= 1.0 {
            self.silent + 1
        } else {
            0
        };
        if self.silent >= ATTEMPTS {
            self.why = Some(Why::Silent);
        }
        match &mut self.kind {
            Kind::Runs { left, .. } => *left = left.saturating_sub(1),
            Kind::Curve { curve, .. } => {
                let (load, duration_ns) = (
                    trial.request.load.unwrap_or_default(),
                    trial.request.duration_ns,
                );
                curve.observe(Trial {
                    load,
                    duration_ns,
                    effective_ns: duration_ns,
                    loss: trial.loss_ratio,
                });
            }
            Kind::Bursts(bursts) => bursts.observe(trial.loss_ratio > 0.0),
            Kind::Nothing => {}
        }
    }

    /// Beside a busy DUT the tester may be slower than alone: the loads begin again below the rate that it kept.
    fn give_up(&mut self) {
        let kept = OF_CEILING
            * std::mem::take(&mut self.failed)
                .into_iter()
                .fold(f64::INFINITY, f64::min);
        match &mut self.kind {
            Kind::Curve { curve, max }
                if !self.valid && kept > 0.0 && kept < OF_CEILING * 0.995 * *max =>
            {
                (*curve, *max) = (curve.from(kept), kept);
            }
            _ => self.why = Some(Why::Tester),
        }
    }
}

impl LongestBursts {
    fn observe(&mut self, loses: bool) {
        self.search.observe(loses);
        if self.search.next().is_some() {
            return;
        }
        let (frames, most) = (self.search.longest(), self.search.most());
        if frames as f64 >= NEAR * most as f64 && most < self.longest {
            self.search = self.search.up_to(most.saturating_mul(2).min(self.longest));
            return;
        }
        self.found.push(frames);
        self.step = self.search.step();
        self.left = self.left.saturating_sub(1);
        self.search = self.search.up_to(most);
    }
}

/// The estimated trials of a test, and their time. `None`: the tester without a DUT.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Estimated {
    pub test: Option<Benchmark>,
    pub trials: u64,
    pub ns: u64,
}

/// Assumptions of an estimate: the tester's own rate in frames/s, unless a link is slower; the share of the highest load that the DUT
/// forwards; and the frames that its queue holds.
const SUPPOSED_FPS: f64 = 1e6;
const SUPPOSED_SHARE: f64 = 0.6;
const SUPPOSED_QUEUE: u64 = 1000;
/// Most trials of an estimate.
const MOST_TRIALS: usize = 1_000_000;

/// Runs the tests, or searches, after the `past` trials without packets: against DUTs that forward the highest rate of their past
/// trials, or else the assumed DUT. `took`: the time of a trial in nanoseconds.
pub fn estimate(
    design: Design,
    past: &[Observed],
    took: impl Fn(&TrialRequest) -> u64,
) -> Vec<Estimated> {
    let mut all: Vec<Estimated> = Vec::new();
    let trials = Trials {
        budget_ns: None,
        extended_ns: None,
        ..design.trials
    };
    let slots = design
        .slots
        .iter()
        .map(|slot| (slot.tester, slot.direction.ways().len() as f64));
    let slots: Vec<(bool, f64)> = slots.collect();
    let mut seen = vec![0.0f64; slots.len()];
    let mut strategy = super::strategy(Design { trials, ..design });
    let mut past = past.iter();
    for _ in 0..MOST_TRIALS {
        let Ok(request) = strategy.next(&History {
            elapsed_ns: 0,
            trials: &[],
        }) else {
            break;
        };
        let (tester, ways) = slots[request.slot];
        if let Some(trial) = past.next() {
            seen[request.slot] = seen[request.slot].max(trial.received.unwrap_or(0.0) / ways);
            strategy.observe(trial);
            continue;
        }
        let at = all
            .iter()
            .position(|known| known.test == request.benchmark)
            .unwrap_or_else(|| {
                all.push(Estimated {
                    test: request.benchmark,
                    trials: 0,
                    ns: 0,
                });
                all.len() - 1
            });
        all[at].trials += 1;
        all[at].ns = all[at].ns.saturating_add(took(&request));
        let limit = match seen[request.slot] {
            0.0 => SUPPOSED_SHARE * strategy.highest(request.slot).unwrap_or(SUPPOSED_FPS),
            seen => seen,
        };
        let offered = request.load.unwrap_or(SUPPOSED_FPS);
        let received = if tester { offered } else { offered.min(limit) };
        let loses = match request.shape {
            Shape::Burst { frames } => frames > SUPPOSED_QUEUE,
            _ => received < offered,
        };
        strategy.observe(&Observed {
            request,
            valid: true,
            received: Some(ways * received),
            handled: Some(ways * received),
            offered: Some(ways * offered),
            loss_ratio: if loses {
                (1.0 - received / offered).max(0.01)
            } else {
                0.0
            },
            full: None,
        });
    }
    all
}
