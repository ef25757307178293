//! One trial as a pure state machine: warm up, run, drain, settle. The effects live in the system crate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The times of a trial, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Load that is offered, but not part of the measured window.
    pub warm_up_ns: u64,
    /// The measured window.
    pub run_ns: u64,
    /// Between two samples of the counters.
    pub interval_ns: u64,
    /// Where frames are missing after the stop, the receiver must have been quiet for this long…
    pub quiet_ns: u64,
    /// …and is waited for no longer than this.
    pub drain_ns: u64,
    /// Pause after the trial.
    pub settle_ns: u64,
    /// The receiver is waited for no less than this, even where no frame is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_drain_ns: u64,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Timing {
    /// A slice of the embedded lab: short, because slices of all variants alternate. Nothing is under way between
    /// namespaces a few milliseconds after the stop, so RFC 2544's two-second waits would only waste the budget.
    pub fn slice(run_ns: u64) -> Self {
        Timing {
            warm_up_ns: (run_ns / 10).min(100_000_000),
            run_ns,
            interval_ns: (run_ns / 10).clamp(10_000_000, 1_000_000_000),
            quiet_ns: 5_000_000,
            drain_ns: 500_000_000,
            ..Timing::default()
        }
    }

    /// A trial over hosts: a card's queues and a router's take longer to fill and to empty. RFC 2544 (section 23) waits two seconds for
    /// the last frames.
    pub fn of_hosts(run_ns: u64) -> Self {
        Timing {
            warm_up_ns: (run_ns / 10).clamp(100_000_000, 2_000_000_000),
            run_ns,
            interval_ns: (run_ns / 20).clamp(20_000_000, 1_000_000_000),
            quiet_ns: 100_000_000,
            drain_ns: 2_000_000_000,
            ..Timing::default()
        }
    }

    /// A trial of TCP over a path with this round-trip time. Slow start doubles the window each round trip, and overshoots; what was lost
    /// then is sent again within some ten more, and until then the receiver reads in lumps. RFC 6349 measures the equilibrium after it.
    pub fn of_end_hosts(run_ns: u64, rtt_ns: u64) -> Self {
        Timing {
            warm_up_ns: (30 * rtt_ns).max(300_000_000),
            interval_ns: 100_000_000,
            quiet_ns: 10_000_000,
            ..Timing::of_hosts(run_ns)
        }
    }

    /// The times for another window: samples keep their share of it.
    pub fn lasting(self, run_ns: u64) -> Timing {
        let interval_ns = match self.run_ns {
            same if same == run_ns => self.interval_ns,
            then => {
                (u128::from(self.interval_ns) * u128::from(run_ns) / u128::from(then.max(1))) as u64
            }
        };
        Timing {
            run_ns,
            interval_ns: interval_ns.max(1),
            ..self
        }
    }

    /// Without the waits that RFC 2544 wants around a trial.
    pub fn without_waits(self) -> Timing {
        Timing {
            settle_ns: 0,
            least_drain_ns: 0,
            ..self
        }
    }

    /// Between two samples of the warm-up, which is shorter than the window.
    fn warm_up_interval_ns(&self) -> u64 {
        (self.warm_up_ns / WARM_UP_SAMPLES)
            .max(LEAST_INTERVAL_NS)
            .min(self.interval_ns)
    }

    /// All time under load.
    pub fn load(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.load_ns())
    }

    /// All time under load, in nanoseconds.
    pub fn load_ns(&self) -> u64 {
        self.warm_up_ns + self.run_ns
    }
}

/// Samples of a warm-up, unless they would be closer together than…
const WARM_UP_SAMPLES: u64 = 5;
/// …this, or further apart than those of the window.
const LEAST_INTERVAL_NS: u64 = 2_000_000;

/// How the load of a trial changes over its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One rate throughout.
    #[default]
    Constant,
    /// So many frames at the trial's load, as fast as possible without one, and then none (RFC 2544, section 26.4).
    Burst { frames: u64 },
    /// Another rate, in frames/s, from this time of the window on (section 26.5).
    Step { after_ns: u64, fps: f64 },
    /// One rate; the plan's event happens to the DUT at this time of the window (section 26.6, RFC 6201).
    Event { after_ns: u64 },
}

/// Which way frames go through the DUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From its inside to its outside.
    #[default]
    Forward,
    /// From its outside to its inside.
    Reverse,
    /// Both at once, at equal rates.
    Both,
}

impl Direction {
    /// The directions that its frames take.
    pub fn ways(self) -> &'static [Direction] {
        match self {
            Direction::Forward => &[Direction::Forward],
            Direction::Reverse => &[Direction::Reverse],
            Direction::Both => &[Direction::Forward, Direction::Reverse],
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Shape {
    pub fn is_constant(&self) -> bool {
        *self == Shape::Constant
    }
}

/// Counters at one moment of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Nanoseconds since the load began.
    pub t_ns: u64,
    /// Frames sent so far.
    pub sent: u64,
    /// Test frames received so far, copies included.
    pub received: u64,
}

/// A moment of a trial that is reported to collectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The first frame has left.
    Began,
    /// The load has ended.
    Ended,
}

/// The next step for the driver of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Start the receiver's counting and then the generator; time 0 is when the generator begins.
    Start,
    /// Take a sample at this time (nanoseconds since the start), or as soon after as possible.
    Sample(u64),
    /// Stop the generator and wait until it has stopped.
    Stop,
    /// Look at the receiver at this time.
    Drain(u64),
    /// Wait this long.
    Settle(u64),
    /// The trial is over.
    Done,
}

/// How long after its end a window may still be looked for: generators go on for longer than that unless they are stopped.
const LATEST_NS: u64 = 40_000_000;

/// The state of one trial. Ask [`Machine::step`], do it, report it with [`Machine::done`].
#[derive(Debug, Clone)]
pub struct Machine {
    timing: Timing,
    step: Step,
    warm_up: Vec<Sample>,
    samples: Vec<Sample>,
    /// When the receiver's count last changed.
    last_change_ns: u64,
    last_received: u64,
    stopped_ns: u64,
}

impl Machine {
    /// A trial that has not begun.
    pub fn new(timing: Timing) -> Self {
        Machine {
            timing,
            step: Step::Start,
            warm_up: Vec::new(),
            samples: Vec::new(),
            last_change_ns: 0,
            last_received: 0,
            stopped_ns: 0,
        }
    }

    pub fn step(&self) -> Step {
        self.step
    }

    /// The step is done, at `now_ns` since the start. `sample`: the one that was taken in [`Step::Sample`] or [`Step::Drain`].
    pub fn done(&mut self, sample: Option<Sample>, now_ns: u64) {
        self.step = match (self.step, sample) {
            (Step::Start, _) => Step::Sample(0),
            (Step::Sample(at), Some(sample)) => self.sampled(at, sample),
            (Step::Sample(_), None) => Step::Stop,
            (Step::Stop, _) => {
                (self.stopped_ns, self.last_change_ns) = (now_ns, now_ns);
                Step::Drain(now_ns)
            }
            (Step::Drain(_), sample) => self.drained(sample, now_ns),
            (Step::Settle(_) | Step::Done, _) => Step::Done,
        }
    }

    fn sampled(&mut self, at: u64, sample: Sample) -> Step {
        let begin = self.timing.warm_up_ns;
        if at < begin {
            self.warm_up.push(sample);
            // A sample right after a late one has no rate.
            let interval = self.timing.warm_up_interval_ns();
            return Step::Sample((at + interval).max(sample.t_ns + interval / 2).min(begin));
        }
        self.samples.push(sample);
        let end = self.timing.load_ns();
        let another = sample.t_ns + self.timing.interval_ns;
        match sample.t_ns >= end {
            // The program did not run for the whole window: the load continues, and one sample gives no rate.
            true if self.samples.len() == 1 && another <= end + LATEST_NS => Step::Sample(another),
            true => Step::Stop,
            false => Step::Sample((at + self.timing.interval_ns).max(sample.t_ns).min(end)),
        }
    }

    fn drained(&mut self, sample: Option<Sample>, now_ns: u64) -> Step {
        let mut complete = false;
        if let Some(sample) = sample {
            complete = sample.received >= sample.sent;
            if sample.received != self.last_received {
                (self.last_received, self.last_change_ns) = (sample.received, now_ns);
            }
        }
        let quiet = now_ns.saturating_sub(self.last_change_ns) >= self.timing.quiet_ns;
        let waited = now_ns.saturating_sub(self.stopped_ns);
        let (least, long) = (
            waited >= self.timing.least_drain_ns,
            waited >= self.timing.drain_ns,
        );
        match least && (complete || quiet || long) {
            true if self.timing.settle_ns > 0 => Step::Settle(self.timing.settle_ns),
            true => Step::Done,
            false => Step::Drain(now_ns + self.timing.quiet_ns / 10),
        }
    }

    /// The samples of the warm-up, and those of the measured window: the first at its beginning.
    pub fn into_samples(self) -> [Vec<Sample>; 2] {
        [self.warm_up, self.samples]
    }
}

/// Rates over the window of samples, in frames/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Frames sent a second: the offered load as measured.
    pub offered: f64,
    /// Test frames received a second, copies included.
    pub received: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
}

/// The mean rates between the first and the last sample; `None` for fewer than two, or no time between them.
pub fn rates(samples: &[Sample]) -> Option<Rates> {
    let (first, last) = (samples.first()?, samples.last()?);
    let seconds = last.t_ns.checked_sub(first.t_ns)? as f64 / 1e9;
    if seconds <= 0.0 {
        return None;
    }
    let per_second = |a: u64, b: u64| b.saturating_sub(a) as f64 / seconds;
    Some(Rates {
        offered: per_second(first.sent, last.sent),
        received: per_second(first.received, last.received),
        seconds,
    })
}

/// A part of a window in which one rate is offered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Frames/s that were asked for.
    pub asked: f64,
    /// `None` if it was too short for a rate.
    pub rates: Option<Rates>,
}

/// The parts of a window for which rates were asked. A burst has none.
pub fn parts(samples: &[Sample], timing: &Timing, shape: Shape, asked: Option<f64>) -> Vec<Part> {
    let part = |asked: Option<f64>, samples: &[Sample]| {
        Some(Part {
            asked: asked?,
            rates: rates(samples),
        })
    };
    match shape {
        Shape::Burst { .. } => Vec::new(),
        Shape::Step { after_ns, fps } => {
            let at = timing.warm_up_ns + after_ns;
            let before = &samples[..samples.partition_point(|sample| sample.t_ns <= at)];
            let after = &samples[samples.partition_point(|sample| sample.t_ns < at)..];
            [part(asked, before), part(Some(fps), after)]
                .into_iter()
                .flatten()
                .collect()
        }
        Shape::Constant | Shape::Event { .. } => part(asked, samples).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a machine against a DUT that holds `late` frames for `late_ns` after the stop.
    fn drive(timing: Timing, late_ns: u64) -> (Vec<Sample>, Vec<Step>, u64) {
        let mut machine = Machine::new(timing);
        let (mut now, mut steps, mut stopped) = (0, Vec::new(), None);
        loop {
            let step = machine.step();
            steps.push(step);
            let sent = |t: u64| t.min(timing.load_ns()) / 1000;
            let sample = |t: u64| {
                let held = stopped.is_some_and(|s| t < s + late_ns);
                Sample {
                    t_ns: t,
                    sent: sent(t),
                    received: sent(t) - if held { 5 } else { 0 },
                }
            };
            let taken = match step {
                Step::Sample(at) | Step::Drain(at) => {
                    now = now.max(at) + 1000;
                    Some(sample(now))
                }
                Step::Stop => {
                    stopped = Some(now);
                    None
                }
                Step::Settle(ns) => {
                    now += ns;
                    None
                }
                Step::Done => break,
                Step::Start => None,
            };
            machine.done(taken, now);
        }
        let [warm_up, samples] = machine.into_samples();
        assert!(
            warm_up.iter().all(|sample| sample.t_ns < timing.warm_up_ns),
            "{warm_up:?}"
        );
        assert!(
            warm_up.windows(2).all(|two| two[0].t_ns < two[1].t_ns),
            "{warm_up:?}"
        );
        (samples, steps, now - stopped.unwrap())
    }

    #[test]
    fn the_warm_up_has_samples_of_its_own_that_change_no_rate() {
        let sampled = |warm_up_ns: u64| {
            let mut machine = Machine::new(Timing {
                warm_up_ns,
                ..Timing::slice(100_000_000)
            });
            machine.done(None, 0);
            while let Step::Sample(t_ns) = machine.step() {
                // Nothing is received before the window.
                let received = t_ns.saturating_sub(warm_up_ns);
                machine.done(
                    Some(Sample {
                        t_ns,
                        sent: t_ns,
                        received,
                    }),
                    t_ns,
                );
            }
            let [warm_up, window] = machine.into_samples();
            let rates = rates(&window).unwrap();
            assert_eq!(
                (rates.offered, rates.received, window[0].t_ns),
                (1e9, 1e9, warm_up_ns)
            );
            warm_up
                .iter()
                .map(|sample| sample.t_ns / 1_000_000)
                .collect::<Vec<u64>>()
        };
        assert_eq!(sampled(10_000_000), [0, 2, 4, 6, 8]);
        assert_eq!(
            sampled(1_000_000),
            [0],
            "short ones end before there is another sample"
        );
        assert_eq!(
            sampled(100_000_000),
            [0, 10, 20, 30, 40, 50, 60, 70, 80, 90],
            "as often as in the window"
        );
        assert!(sampled(0).is_empty());
    }

    #[test]
    fn samples_span_the_window_and_phases_come_in_order() {
        let timing = Timing {
            settle_ns: 7,
            ..Timing::slice(250_000_000)
        };
        let (samples, steps, _) = drive(timing, 0);
        assert_eq!(steps[0], Step::Start);
        assert_eq!(steps[steps.len() - 2..], [Step::Settle(7), Step::Done]);
        assert!(samples.len() >= 10, "{}", samples.len());
        let r = rates(&samples).unwrap();
        assert!(
            (r.seconds - 0.25).abs() < 0.001 && (r.offered - 1e6).abs() < 10.0,
            "{r:?}"
        );
    }

    #[test]
    fn a_sampler_that_was_late_for_its_window_takes_a_later_one_but_not_much_later() {
        let sampled = |late_ns: u64| {
            let mut machine = Machine::new(Timing::slice(10_000_000));
            machine.done(None, 0);
            let (mut late, mut t_ns) = (late_ns, 0);
            while let Step::Sample(at) = machine.step() {
                t_ns = at.max(t_ns) + std::mem::take(&mut late);
                machine.done(
                    Some(Sample {
                        t_ns,
                        sent: t_ns,
                        received: t_ns,
                    }),
                    t_ns,
                );
            }
            rates(&machine.into_samples()[1]).map(|r| r.seconds)
        };
        assert_eq!(sampled(0), Some(0.01));
        assert_eq!(sampled(25_000_000), Some(0.01));
        assert_eq!(
            sampled(500_000_000),
            None,
            "the load is over by then, or the clock jumps"
        );
    }

    #[test]
    fn draining_waits_for_stragglers_but_not_for_ever() {
        let timing = Timing::slice(50_000_000);
        let held = drive(timing, 4_000_000).2;
        assert!((4_000_000..5_000_000).contains(&held), "{held}");
        assert!(drive(timing, 0).2 < 1_000_000);
        let waits = drive(
            Timing {
                least_drain_ns: 2_000_000_000,
                ..timing
            },
            0,
        )
        .2;
        assert!((2_000_000_000..2_010_000_000).contains(&waits), "{waits}");
        assert!(drive(timing, u64::MAX / 2).2 < 600_000_000);
    }

    #[test]
    fn a_step_has_two_parts() {
        let timing = Timing::slice(100_000_000);
        let at = |ms: u64, sent| Sample {
            t_ns: 10_000_000 + ms * 1_000_000,
            sent,
            received: 0,
        };
        let samples = [at(0, 0), at(30, 300), at(60, 600), at(61, 605), at(90, 750)];
        let shape = Shape::Step {
            after_ns: 60_000_000,
            fps: 5000.0,
        };
        let found: Vec<(f64, f64)> = parts(&samples, &timing, shape, Some(10_000.0))
            .iter()
            .map(|part| (part.asked, part.rates.unwrap().offered.round()))
            .collect();
        assert_eq!(found, [(10_000.0, 10_000.0), (5000.0, 5000.0)]);
        assert_eq!(
            parts(&samples[..3], &timing, shape, None),
            [Part {
                asked: 5000.0,
                rates: None
            }]
        );
        assert_eq!(
            parts(&samples, &timing, Shape::Burst { frames: 9 }, Some(1.0)),
            []
        );
    }

    #[test]
    fn no_rate_without_two_samples() {
        assert_eq!(rates(&[]), None);
        assert_eq!(
            rates(&[Sample {
                t_ns: 1,
                sent: 1,
                received: 1
            }]),
            None
        );
    }
}
