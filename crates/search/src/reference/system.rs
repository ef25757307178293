//! Simulated systems under test.

use crate::{Search, Trial};

/// Frames/s that each system forwards at best.
const CAPACITY: f64 = 1_000_000.0;
/// Noise is drawn for each so many seconds.
const SLOT: f64 = 0.1;
/// Frames that a stall holds back without loss.
const QUEUE: f64 = 256.0;

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
    /// Above its capacity.
    Hard,
    /// Each trial has a capacity up to 2 % smaller.
    Spread,
    /// It stands still for up to 10 ms, in this share of the slots.
    Stalls(f64),
    /// Its capacity changes to 0.8 of it and back, in a fiftieth of the slots.
    Modes,
    /// Every 100,000th frame, whatever the load.
    Floor,
    /// All.
    Dead,
}

/// A system under test whose noise follows from a seed.
#[derive(Debug, Clone)]
pub struct System {
    model: Model,
    rng: Rng,
    slow: bool,
}

impl System {
    /// `None`: no system has this name.
    pub fn new(model: &str, seed: u64) -> Option<System> {
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
        Some(System { model, rng: Rng::new(seed), slow: false })
    }

    /// Carries out a search, with at most so many trials.
    pub fn measure(&mut self, search: &mut impl Search, most: usize) -> Vec<Trial> {
        let mut trials = Vec::new();
        while let Some(request) = search.next().filter(|_| trials.len() < most) {
            let loss = self.loss(request.load, request.duration_ns as f64 / 1e9);
            let duration_ns = request.duration_ns;
            let trial = Trial { load: request.load, duration_ns, effective_ns: duration_ns, loss };
            search.observe(trial);
            trials.push(trial);
        }
        trials
    }

    /// The loss ratio of a trial at this load, in frames/s, of so many seconds.
    fn loss(&mut self, load: f64, seconds: f64) -> f64 {
        let sent = (load * seconds).floor();
        let above = |capacity: f64| (load * seconds - capacity * seconds).max(0.0);
        let lost: f64 = match self.model {
            Model::Hard => above(CAPACITY),
            Model::Spread => above(CAPACITY * (1.0 - 0.02 * self.rng.uniform())),
            Model::Floor => above(CAPACITY).max((sent / 100_000.0).floor()),
            Model::Dead => sent,
            Model::Stalls(share) => self.slots(seconds).map(|_| self.stalled(load, share)).sum(),
            Model::Modes => self.slots(seconds).map(|_| self.changed(load)).sum(),
        };
        if sent > 0.0 { lost.floor().min(sent) / sent } else { 0.0 }
    }

    fn slots(&self, seconds: f64) -> std::ops::Range<u64> {
        0..(seconds / SLOT).round_ties_even() as u64
    }

    /// Frames lost in a slot that may have a stall.
    fn stalled(&mut self, load: f64, share: f64) -> f64 {
        let (whether, how_long) = (self.rng.uniform(), self.rng.uniform());
        let over = (load * SLOT - CAPACITY * SLOT).max(0.0);
        if whether < share { over.max(load * (0.01 * how_long) - QUEUE) } else { over }
    }

    /// Frames lost in a slot before which the capacity may change.
    fn changed(&mut self, load: f64) -> f64 {
        self.slow ^= self.rng.uniform() < 0.02;
        let capacity = CAPACITY * if self.slow { 0.8 } else { 1.0 };
        (load * SLOT - capacity * SLOT).max(0.0)
    }
}
