//! Simulated systems under test.

use crate::{Search, Trial};
use serde::Deserialize;

/// The constants of all systems of a file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct Constants {
    /// Highest forwarding rate of each system, in frames/s.
    capacity: f64,
    /// Length of a slot, in seconds; each has its own noise.
    slot_s: f64,
    /// Frames that the queue holds during a stall without loss.
    queue_frames: f64,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            capacity: 1_000_000.0,
            slot_s: 0.1,
            queue_frames: 256.0,
        }
    }
}

/// Most slots of one trial.
const MOST_SLOTS: u64 = 10_000_000;

/// SplitMix64.
#[derive(Debug, Clone, Copy)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

/// How a simulated system loses frames.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    /// Frames above its capacity.
    Hard,
    /// Each trial has a capacity up to 2 % smaller.
    Spread,
    /// The system stands still for up to 10 ms, in this share of the slots.
    Stalls(f64),
    /// The capacity changes to 0.8 of itself and back, in a fiftieth of the slots.
    Modes,
    /// Every 100,000th frame, whatever the load.
    Floor,
    /// All frames.
    Dead,
}

/// A system under test whose noise follows from a seed.
#[derive(Debug, Clone)]
pub struct System {
    model: Model,
    of: Constants,
    rng: Rng,
    slow: bool,
}

impl System {
    /// `None`: no system has this name.
    pub fn new(model: &str, of: Constants, seed: u64) -> Option<System> {
        let model = match model {
            "hard" => Model::Hard,
            "spread" => Model::Spread,
            "stalls" => Model::Stalls(0.01),
            "busy" => Model::Stalls(0.1),
            "modes" => Model::Modes,
            "floor" => Model::Floor,
            "dead" => Model::Dead,
            _ => return None,
        };
        Some(System {
            model,
            of,
            rng: Rng::new(seed),
            slow: false,
        })
    }

    /// Carries out a search of at most `most` trials.
    pub fn measure(&mut self, search: &mut impl Search, most: usize) -> Vec<Trial> {
        let mut trials = Vec::new();
        while let Some(request) = search.next().filter(|_| trials.len() < most) {
            let (load, duration_ns) = (request.load, request.duration_ns);
            let (sent, lost) = self.trial(load, duration_ns as f64 / 1e9);
            let trial = Trial {
                load,
                duration_ns,
                effective_ns: duration_ns,
                loss: ratio(sent, lost),
            };
            search.observe(trial);
            trials.push(trial);
        }
        trials
    }

    /// The frames that a trial sends, and those that it loses. `load`: frames/s; `seconds`: its length.
    pub fn trial(&mut self, load: f64, seconds: f64) -> (u64, u64) {
        let sent = (load * seconds).floor();
        let capacity = self.of.capacity;
        let above = |capacity: f64| (load * seconds - capacity * seconds).max(0.0);
        let lost: f64 = match self.model {
            Model::Hard => above(capacity),
            Model::Spread => above(capacity * (1.0 - 0.02 * self.rng.uniform())),
            Model::Floor => above(capacity).max((sent / 100_000.0).floor()),
            Model::Dead => sent,
            Model::Stalls(share) => self.slots(seconds).map(|_| self.stalled(load, share)).sum(),
            Model::Modes => self.slots(seconds).map(|_| self.changed(load)).sum(),
        };
        (sent as u64, lost.floor().min(sent) as u64)
    }

    fn slots(&self, seconds: f64) -> std::ops::Range<u64> {
        0..((seconds / self.of.slot_s).round_ties_even() as u64).min(MOST_SLOTS)
    }

    /// Frames lost in a slot that may have a stall.
    fn stalled(&mut self, load: f64, share: f64) -> f64 {
        let (whether, how_long) = (self.rng.uniform(), self.rng.uniform());
        let over = self.over(load, self.of.capacity);
        if whether < share {
            over.max(load * (0.01 * how_long) - self.of.queue_frames)
        } else {
            over
        }
    }

    /// Frames lost in a slot before which the capacity may change.
    fn changed(&mut self, load: f64) -> f64 {
        self.slow ^= self.rng.uniform() < 0.02;
        self.over(load, self.of.capacity * if self.slow { 0.8 } else { 1.0 })
    }

    /// Frames of a slot beyond a capacity.
    fn over(&self, load: f64, capacity: f64) -> f64 {
        (load * self.of.slot_s - capacity * self.of.slot_s).max(0.0)
    }
}

/// The loss ratio; 0 if no frames were sent.
pub fn ratio(sent: u64, lost: u64) -> f64 {
    if sent == 0 {
        0.0
    } else {
        lost as f64 / sent as f64
    }
}
