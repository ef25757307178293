//! A simulated DUT in memory as a testbed: the whole command line without privileges. Its figures describe no real machine, and
//! every result says so.

use super::prepare::{Prepared, TrafficKind};
use super::{Request, Testbed, TrialOutcome};
use crate::interrupt::INTERRUPTED as STOP;
use anyhow::Result;
use linerate_linux::lab::ledger::Account;
use linerate_linux::ports::memory::{MemoryDut, MemoryLink};
use linerate_linux::trial::Outcome;
use linerate_measure::audit::SecondCount;
use linerate_measure::collector::Collection;
use linerate_measure::record::{Direction, LabKind};
use linerate_measure::trial::{Sample, Timing};
use linerate_plan::Backend;
use linerate_plan::parse_duration_ns;
use linerate_plan::timetable::Timetable;
use linerate_plan::units::Rate;
use linerate_wire::{SplitMix64, Traffic};
use std::f64::consts::TAU;
use std::time::Duration;

/// A simulated DUT, and what its rate depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Simulation {
    dut: MemoryDut,
    /// From which level of the plan's first factor on it is slower, and by which share.
    steps: Vec<(usize, f64)>,
    /// Standard deviation of the logarithm of its rate, from trial to trial.
    noise: f64,
    /// Trials that were recorded before.
    trials: u64,
}

impl Simulation {
    /// As it goes on after this number of trials.
    pub fn after(self, trials: u64) -> Simulation {
        Simulation { trials, ..self }
    }

    /// The rate of a trial as a share of the DUT's, at the level of the first factor.
    fn share(&self, level: usize, seed: u64) -> f64 {
        let steps = self.steps.iter().filter(|(from, _)| *from <= level + 1);
        let steps: f64 = steps.map(|(_, share)| 1.0 - share).product();
        let mut random = SplitMix64::new(SplitMix64::new(seed).next_u64() ^ self.trials);
        let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let normal = (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
        steps * (self.noise * normal).exp()
    }
}

/// Links for each kind of traffic, one for each of its directions. The DUT treats both alike.
pub struct Simulated {
    prepared: Prepared,
    links: Vec<Vec<MemoryLink>>,
    simulation: Simulation,
    /// Time of a trial beyond its load, and of all trials until now.
    beyond: Duration,
    passed: Duration,
}

impl Simulated {
    /// Links for every kind of traffic, to the same DUT.
    ///
    /// # Errors
    /// Frames that cannot be built.
    pub fn new(prepared: Prepared, simulation: Simulation, timing: Timing) -> Result<Self> {
        let link = |traffic: &Traffic, way: &Direction| {
            let (traffic, first_stream) = match way {
                Direction::Reverse => (traffic.mirrored(), traffic.streams_each() as u8),
                _ => (traffic.clone(), 0),
            };
            MemoryLink::new(&Traffic {
                campaign: 1,
                first_stream,
                ..traffic
            })
        };
        let of_kind = |kind: &TrafficKind| {
            kind.direction
                .ways()
                .iter()
                .map(|way| link(&kind.traffic, way))
                .collect::<Result<_, _>>()
        };
        let links = prepared
            .kinds
            .iter()
            .map(of_kind)
            .collect::<Result<_, _>>()?;
        let beyond = Timetable::new(&prepared.plan)
            .trial_ns
            .saturating_sub(timing.load_ns());
        Ok(Simulated {
            links,
            simulation,
            beyond: Duration::from_nanos(beyond),
            passed: Duration::ZERO,
            prepared,
        })
    }
}

impl Testbed for Simulated {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        let Request {
            slot: cell, timing, ..
        } = *request;
        let plan = &self.prepared.plan;
        let dut = if plan.is_ceiling(cell) {
            MemoryDut::default()
        } else {
            let level = plan.cells[cell]
                .levels
                .first()
                .map_or(0, |(_, level)| *level);
            let seed = plan.experiment.trials.seed.unwrap_or_default();
            let share = self.simulation.share(level, seed);
            let dut = self.simulation.dut;
            MemoryDut {
                rate: dut.rate.map(|rate| rate * share),
                ..dut
            }
        };
        self.simulation.trials += 1;
        self.passed += Duration::from_nanos(timing.load_ns()) + self.beyond;
        let (mut outcomes, mut accounts) = (Vec::new(), Vec::new());
        let mut counters = [Vec::new(), Vec::new()];
        for link in &mut self.links[self.prepared.kind_of[cell]] {
            let trial = link.trial(timing, request.load(1), dut, &STOP);
            // The DUT's own count of copies is the second count here.
            let copies = SecondCount {
                place: "simulated DUT: copies".into(),
                frames: trial.received.duplicates(),
                expected: trial.copies,
            };
            let (losses, second_counts) = (trial.losses, vec![copies]);
            accounts.push(Account {
                losses,
                second_counts,
                ..Account::default()
            });
            counters[0].push(trial.sent);
            counters[1].push(trial.received);
            outcomes.push(trial.outcome);
        }
        Ok(TrialOutcome::new(
            together(outcomes),
            counters,
            accounts,
            Collection::default(),
        ))
    }

    fn passed(&self) -> Option<Duration> {
        Some(self.passed)
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        (
            LabKind::Simulated,
            [Backend::Memory, Backend::Memory].map(|backend| backend.to_string()),
            1,
        )
    }
}

/// The samples of all directions as those of one trial: simulated clocks take them at the same moments.
fn together(outcomes: Vec<Outcome>) -> Outcome {
    let mut all = outcomes.into_iter();
    let forward = all.next().unwrap_or_default();
    let Some(reverse) = all.next() else {
        return forward;
    };
    let sum = |(a, b): (&Sample, &Sample)| Sample {
        sent: a.sent + b.sent,
        received: a.received + b.received,
        ..*a
    };
    let of = |a: &[Sample], b: &[Sample]| a.iter().zip(b).map(sum).collect();
    let warm_up = of(&forward.warm_up, &reverse.warm_up);
    let samples = of(&forward.samples, &reverse.samples);
    let (began_ns, faults) = (forward.began_ns, forward.faults);
    Outcome {
        warm_up,
        samples,
        each: [forward.samples, reverse.samples],
        began_ns,
        faults,
    }
}

/// Reads `ok`, or `loss=N,duplication=N,delay=T,rate=R,queue=N,outage=T@T,noise=SHARE,step=SHARE@N`.
///
/// # Errors
/// Says which part is wrong.
pub fn parse_simulation(text: &str) -> Result<Simulation, String> {
    let mut all = Simulation::default();
    if text == "ok" {
        return Ok(all);
    }
    for part in text.split(',') {
        let wrong = || {
            format!(
                "--simulate: cannot read '{part}': write ok, or a list of loss=N, duplication=N, delay=T, rate=R, queue=N, outage=T@T, noise=SHARE and step=SHARE@N, such as rate=500kpps"
            )
        };
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let dut = &mut all.dut;
        let one_in = || {
            value
                .parse::<u64>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(wrong)
        };
        let share = |text: &str| {
            let percent = text
                .strip_suffix('%')
                .and_then(|text| text.parse::<f64>().ok());
            let percent = percent.filter(|percent| (-100.0..100.0).contains(percent));
            percent.map(|percent| percent / 100.0).ok_or_else(wrong)
        };
        match name {
            "loss" => dut.loss_one_in = Some(one_in()?),
            "duplication" => dut.duplicate_one_in = Some(one_in()?),
            "queue" => dut.queue = one_in()?,
            "outage" => {
                let (lasts, after) = value.split_once('@').ok_or_else(wrong)?;
                let time = |text| parse_duration_ns(text).map(Duration::from_nanos);
                dut.outage = Some((time(lasts)?, time(after)?));
            }
            "delay" => dut.delay = Duration::from_nanos(parse_duration_ns(value)?),
            "rate" => match value.parse::<Rate>().map_err(|e| e.to_string())? {
                Rate::Frames(fps) => dut.rate = Some(fps),
                _ => {
                    return Err(format!(
                        "--simulate: rate wants frames/s, such as 500kpps, not '{value}'"
                    ));
                }
            },
            "noise" => all.noise = share(value)?,
            "step" => {
                let (by, level) = value.split_once('@').ok_or_else(wrong)?;
                let level = level.parse().map_err(|_| wrong())?;
                all.steps.push((level, share(by)?));
            }
            _ => return Err(wrong()),
        }
    }
    if (all.noise != 0.0 || !all.steps.is_empty()) && all.dut.rate.is_none() {
        return Err(
            "--simulate: noise and step change a rate: add one, such as rate=20kpps".into(),
        );
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulations_are_read() {
        assert_eq!(parse_simulation("ok"), Ok(Simulation::default()));
        let dut = parse_simulation("loss=1000,delay=50us,rate=500kpps")
            .unwrap()
            .dut;
        assert_eq!(
            (dut.loss_one_in, dut.delay, dut.rate),
            (Some(1000), Duration::from_micros(50), Some(5e5))
        );
        let dut = parse_simulation("queue=512,outage=100ms@1s").unwrap().dut;
        let outage = (Duration::from_millis(100), Duration::from_secs(1));
        assert_eq!((dut.queue, dut.outage), (512, Some(outage)));
        for text in [
            "",
            "queue=0",
            "outage=1s",
            "outage=1s@",
            "loss",
            "loss=0",
            "rate=max",
            "speed=1",
            "loss=1,",
            "noise=1%",
            "step=3%@2",
            "rate=1kpps,noise=1",
            "rate=1kpps,step=3%",
            "rate=1kpps,step=100%@2",
        ] {
            assert!(parse_simulation(text).is_err(), "{text}");
        }
    }
    #[test]
    fn rates_fall_from_their_levels_on_and_scatter() {
        let steps = parse_simulation("rate=1kpps,step=10%@3,step=50%@5").unwrap();
        let shares = [0, 1, 2, 3, 4, 9].map(|level| steps.share(level, 1));
        assert_eq!(shares, [1.0, 1.0, 0.9, 0.9, 0.45, 0.45]);
        let mut noisy = parse_simulation("rate=1kpps,noise=2%").unwrap();
        let rates = (0..1000).map(|trial| {
            noisy.trials = trial;
            noisy.share(0, 7)
        });
        let rates: Vec<f64> = rates.collect();
        let spread = linerate_stats::coefficient_of_variation(&rates);
        assert!((0.018..0.022).contains(&spread), "{spread}");
        // A resumed campaign continues the sequence of random numbers, and each seed has another sequence.
        noisy.trials = 3;
        assert!(noisy.share(0, 7) == rates[3] && noisy.share(0, 8) != rates[3]);
    }
}
