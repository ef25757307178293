//! How often campaigns err: identical slots under many kinds of noise, at any look. docs/method.md has the figures
//! (`LINERATE_MANY_CAMPAIGNS=1 cargo test --release -p linerate-measure error_rate -- --nocapture` prints them).

use super::*;
use linerate_stats::paired_ratio;
use linerate_wire::SplitMix64;
use std::f64::consts::TAU;

/// Whether so many campaigns are simulated that the documents can have the figures.
const MANY: bool = option_env!("LINERATE_MANY_CAMPAIGNS").is_some();
const CAMPAIGNS: u64 = if MANY { 2000 } else { 400 };

/// Effect of a machine on the rates of successive trials. Logarithms.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Normal(f64),
    /// No mean, no variance.
    Cauchy(f64),
    /// Two speeds, each kept for some trials.
    Modes,
    /// A speed that remembers nine tenths from trial to trial.
    Autocorrelated,
    /// A speed that wanders, half a percent each trial.
    Walk,
    /// A speed that rises by a tenth in all.
    Rising,
}

const ALL: [Noise; 9] = [
    Noise::Normal(0.004),
    Noise::Normal(0.01),
    Noise::Normal(0.02),
    Noise::Normal(0.1),
    Noise::Cauchy(0.01),
    Noise::Modes,
    Noise::Autocorrelated,
    Noise::Walk,
    Noise::Rising,
];

struct Machine {
    noise: Noise,
    random: SplitMix64,
    state: f64,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Self {
        // Other draws for each kind of noise: only signs count, which do not depend on its size.
        let kind = format!("{noise:?}")
            .bytes()
            .fold(seed, |all, byte| all.rotate_left(9) ^ u64::from(byte));
        Machine {
            noise,
            random: SplitMix64::new(kind),
            state: 0.0,
        }
    }

    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// The rate of the next trial, `done` (0..1) being the share of the campaign that is over.
    fn rate(&mut self, done: f64) -> f64 {
        let own = 0.01 * self.normal();
        let log = match self.noise {
            Noise::Normal(spread) => spread * self.normal(),
            Noise::Cauchy(scale) => {
                (scale * (TAU / 2.0 * (self.uniform() - 0.5)).tan()).clamp(-9.0, 9.0)
            }
            Noise::Modes => {
                if self.uniform() < 0.2 {
                    self.state = if self.state == 0.0 { -0.3 } else { 0.0 };
                }
                self.state + own
            }
            Noise::Autocorrelated => {
                self.state = 0.9 * self.state + 0.03 * self.normal();
                self.state + own
            }
            Noise::Walk => {
                self.state += 0.005 * self.normal();
                self.state + own
            }
            Noise::Rising => 0.1 * done + own,
        };
        log.exp()
    }
}

fn excludes(e: Estimate, ratio: f64) -> bool {
    e.low.is_some_and(|low| low > ratio) || e.high.is_some_and(|high| high < ratio)
}

/// One campaign of slots that are all the same: whether the interval of any comparison ever excludes 1.
fn ever_told_apart(design: &Design, noise: Noise, seed: u64) -> Vec<bool> {
    let mut strategy = Blocks::new(Design {
        seed,
        ..design.clone()
    });
    let mut machine = Machine::new(noise, !seed);
    let most = f64::from(design.trials.blocks.unwrap()) * design.slots.len() as f64;
    let mut apart = vec![false; design.comparisons.len()];
    let mut trials = 0.0;
    let mut look = |strategy: &Blocks| {
        for (apart, (_, ratio)) in apart.iter_mut().zip(strategy.watched()) {
            *apart |= ratio.is_some_and(|e| excludes(e, 1.0));
        }
    };
    while let Ok(request) = strategy.next(&at(0)) {
        strategy.observe(&observed(request, Some(machine.rate(trials / most))));
        trials += 1.0;
        if strategy.block_is_over() {
            look(&strategy);
        }
    }
    look(&strategy);
    apart
}

/// As [`ever_told_apart`], of slots whose trials follow each other.
fn told_apart_in_sequence(design: &Design, noise: Noise, seed: u64) -> Vec<bool> {
    let mut strategy = Sequential::new(design.clone());
    let mut machine = Machine::new(noise, !seed);
    let most = f64::from(design.trials.blocks.unwrap()) * design.slots.len() as f64;
    let mut trials = Vec::new();
    while let Ok(request) = strategy.next(&at(0)) {
        trials.push(observed(
            request,
            Some(machine.rate(trials.len() as f64 / most)),
        ));
    }
    let of = |w: &Comparison| strategy.ratio(w.of, w.than, Figure::Received, &trials);
    design
        .comparisons
        .iter()
        .map(|w| of(w).is_some_and(|e| excludes(e, 1.0)))
        .collect()
}

/// The worst rate of all comparisons.
fn error_rate(
    design: &Design,
    noise: Noise,
    campaign: fn(&Design, Noise, u64) -> Vec<bool>,
) -> f64 {
    let mut wrong = vec![0u64; design.comparisons.len()];
    for seed in 0..CAMPAIGNS {
        let apart = campaign(design, noise, seed);
        wrong
            .iter_mut()
            .zip(apart)
            .for_each(|(wrong, apart)| *wrong += u64::from(apart));
    }
    wrong.into_iter().max().unwrap() as f64 / CAMPAIGNS as f64
}

/// Three standard deviations above 5 %.
const AT_MOST: f64 = 0.05 + 3.0 * if MANY { 0.0049 } else { 0.0109 };

#[test]
fn no_look_tells_identical_slots_apart_too_often() {
    for most in [13, 60] {
        let design = design(2, vec![pair(1, 0)], blocks(most), 0);
        for noise in ALL {
            let rate = error_rate(&design, noise, ever_told_apart);
            println!("{most} blocks, {noise:?}: {:.1} %", 100.0 * rate);
            assert!(rate <= AT_MOST, "{noise:?}: {rate}");
        }
    }
}

#[test]
fn stopping_and_dropping_do_not_add_errors() {
    let stopping = Trials {
        until: Some(0.02),
        ..blocks(60)
    };
    let design = design(5, vec![pair(2, 1), pair(3, 1), pair(4, 1)], stopping, 0);
    for noise in [
        Noise::Normal(0.01),
        Noise::Normal(0.02),
        Noise::Modes,
        Noise::Walk,
    ] {
        let rate = error_rate(&design, noise, ever_told_apart);
        println!(
            "three comparisons, stopped at 2 %, {noise:?}: {:.1} %",
            100.0 * rate
        );
        assert!(rate <= AT_MOST, "{noise:?}: {rate}");
    }
}

#[test]
fn one_after_the_other_measures_the_drift() {
    let design = design(2, vec![pair(1, 0)], blocks(60), 0);
    for noise in [
        Noise::Normal(0.02),
        Noise::Modes,
        Noise::Autocorrelated,
        Noise::Walk,
        Noise::Rising,
    ] {
        let rate = error_rate(&design, noise, told_apart_in_sequence);
        println!("one after the other, {noise:?}: {:.1} %", 100.0 * rate);
        let independent = matches!(noise, Noise::Normal(_));
        assert!(
            if independent {
                rate <= AT_MOST
            } else {
                rate >= 0.15
            },
            "{noise:?}: {rate}"
        );
        assert!(
            !matches!(noise, Noise::Walk | Noise::Rising) || rate >= 0.3,
            "{noise:?}: {rate}"
        );
    }
}

/// A difference of 3 %: how often it is proven, and the width of the last interval, compared with that of a single look at the
/// end.
#[test]
fn looking_costs_little_width() {
    for (most, noise) in [(30, 0.02), (60, 0.02), (60, 0.05), (240, 0.05)] {
        let (mut width, mut fixed_width, mut proven) = (0.0, 0.0, 0);
        for seed in 0..400 {
            let mut strategy = Blocks::new(design(2, vec![pair(1, 0)], blocks(most), seed));
            let mut machine = Machine::new(Noise::Normal(noise), !seed);
            let mut pairs = vec![(0.0, 0.0); most as usize];
            while let Ok(request) = strategy.next(&at(0)) {
                let rate = machine.rate(0.0) * if request.slot == 1 { 0.97 } else { 1.0 };
                strategy.observe(&observed(request, Some(rate)));
                let pair = &mut pairs[request.block as usize];
                *(if request.slot == 1 {
                    &mut pair.0
                } else {
                    &mut pair.1
                }) = rate;
            }
            let last = received(&strategy, 1, 0).unwrap();
            width += last.relative_width();
            fixed_width += paired_ratio(&pairs, 0.95).unwrap().relative_width();
            proven += u32::from(excludes(last, 1.0));
        }
        let (wider, proven) = (100.0 * (width / fixed_width - 1.0), f64::from(proven) / 4.0);
        println!(
            "{most} blocks, noise {noise}: {wider:.1} % wider, 3 % proven in {proven:.0} % of campaigns"
        );
        assert!(wider < 8.0, "{most} blocks: {wider} % wider");
    }
}
