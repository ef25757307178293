//! Holds this implementation against a file of reference results: classes of loads, whole searches, and how searches of simulated
//! systems are distributed.
//!
//! The systems draw their noise from SplitMix64 and use only the four operations and floor, so that every language has the same ones to
//! the bit.

pub(crate) mod system;

use crate::class::{Class, class, outcome, quantile_loss};
use crate::goal::{Goal, PER_BILLION};
use crate::{Bisection, Limits, Mlr, Search, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use system::{Constants, ratio};
pub use system::{Rng, System};

/// The range of loads of bisections, in frames/s.
const BISECTED: Limits = Limits {
    min: 1_000.0,
    max: 14_880_952.0,
};
/// Most trials of one search.
const MOST_TRIALS: usize = 100_000;
/// Most searches of one system.
const MOST_SEARCHES: u64 = 10_000;

/// A file of reference results. Times are seconds, loads frames/s.
#[derive(Debug, Deserialize)]
pub struct Reference {
    #[serde(flatten)]
    constants: Constants,
    /// The first numbers of SplitMix64 with the seed 1, as text.
    #[serde(default, rename = "splitmix64_first_3_of_seed_1")]
    random: Vec<String>,
    #[serde(default)]
    example: Option<Example>,
    #[serde(default)]
    classification: Classification,
    #[serde(default)]
    replays: Vec<Replay>,
    /// By system and by `SET/GOAL` or `bisection SECONDS s`.
    #[serde(default)]
    distributions: BTreeMap<String, BTreeMap<String, Distribution>>,
}

/// The example of RFC 9971: trials that are added at points in time, at one load.
#[derive(Debug, Deserialize)]
struct Example {
    goals: Vec<Named>,
    /// Count, duration, effective duration, loss ratio.
    added: Vec<(usize, f64, f64, f64)>,
    points: Vec<Point>,
    /// Of the goals that are met in the end, at a load of 10^6 frames/s.
    #[serde(default)]
    conditional_throughput_at_1e6: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    goal: Short,
}

#[derive(Debug, Deserialize)]
struct Point {
    point: usize,
    classes: BTreeMap<String, Class>,
}

#[derive(Debug, Default, Deserialize)]
struct Classification {
    vectors: Vec<Vector>,
}

/// Trials at one load (duration, effective duration, loss ratio), and what they say.
#[derive(Debug, Deserialize)]
struct Vector {
    goal: Short,
    trials: Vec<(f64, f64, f64)>,
    class: Class,
    quantile_loss: f64,
}

/// A goal without the attributes that only a search needs.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Short {
    #[serde(rename = "final")]
    last: f64,
    sum: f64,
    loss: f64,
    exceed: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Full {
    loss_ratio: f64,
    exceed_ratio: f64,
    relative_width: f64,
    initial_trial_duration: f64,
    final_trial_duration: f64,
    duration_sum: f64,
    preceding_targets: u32,
}

/// The trials of a whole search (load, duration, sent, lost), and its results by goal.
#[derive(Debug, Deserialize)]
struct Replay {
    goals: BTreeMap<String, Full>,
    set: String,
    model: String,
    seed: u64,
    max_load: f64,
    min_load: f64,
    trials: Vec<(f64, f64, u64, u64)>,
    results: BTreeMap<String, Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    lower: Option<f64>,
    upper: Option<f64>,
    conditional: Option<f64>,
    regular: bool,
}

/// Quantiles of the conditional throughput over searches with the seeds 1, 2, ...; `None`: no search found one.
#[derive(Debug, Deserialize)]
struct Distribution {
    searches: u64,
    p25: Option<f64>,
    p50: Option<f64>,
    p75: Option<f64>,
    trials_p50: f64,
}

/// A comparison with the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// `classification 17`, `replay csit of busy, seed 5`, `searches of hard: csit/ndr`.
    pub of: String,
    /// The reference's result.
    pub expected: String,
    /// The result here.
    pub found: String,
    pub agrees: bool,
}

impl Check {
    /// `text` must differ for different values.
    fn exact<T>(of: String, expected: &T, found: &T, text: impl Fn(&T) -> String) -> Check {
        let [expected, found] = [expected, found].map(text);
        Check {
            agrees: expected == found,
            of,
            expected,
            found,
        }
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn exceed(ratio: f64) -> u32 {
    (ratio * f64::from(PER_BILLION)).round() as u32
}

impl From<Short> for Goal {
    fn from(short: Short) -> Goal {
        Goal::new(
            short.loss,
            exceed(short.exceed),
            ns(short.last),
            ns(short.sum),
        )
    }
}

impl From<Full> for Goal {
    fn from(full: Full) -> Goal {
        Goal {
            loss: full.loss_ratio,
            exceed: exceed(full.exceed_ratio),
            width: full.relative_width,
            initial_ns: ns(full.initial_trial_duration),
            final_ns: ns(full.final_trial_duration),
            sum_ns: ns(full.duration_sum),
            coarser: full.preceding_targets.min(16),
        }
    }
}

fn trial(duration: f64, effective: f64, loss: f64) -> Trial {
    Trial {
        load: 1e6,
        duration_ns: ns(duration),
        effective_ns: ns(effective),
        loss,
    }
}

impl Reference {
    /// All comparisons. `progress` gets the name of each part before its computation.
    pub fn check(&self, mut progress: impl FnMut(&str)) -> Vec<Check> {
        progress("classification");
        let mut rng = Rng::new(1);
        let numbers = self.random.iter().zip(1..).map(|(expected, number)| {
            let of = format!("SplitMix64 with seed 1, number {number}");
            Check::exact(of, expected, &rng.draw().to_string(), String::clone)
        });
        let mut checks: Vec<Check> = numbers.collect();
        checks.extend(self.example.iter().flat_map(Example::check));
        checks.extend(
            self.classification
                .vectors
                .iter()
                .enumerate()
                .map(|(number, vector)| vector.check(number)),
        );
        checks.extend(
            self.replays
                .iter()
                .flat_map(|replay| replay.check(self.constants)),
        );
        for (model, rows) in &self.distributions {
            progress(model);
            checks.extend(self.distribution(model, rows));
        }
        checks
    }

    /// The goals and the range of loads of a set, from the file's replays.
    fn set(&self, set: &str) -> Option<(&BTreeMap<String, Full>, Limits)> {
        let replay = self.replays.iter().find(|replay| replay.set == set)?;
        Some((
            &replay.goals,
            Limits {
                min: replay.min_load,
                max: replay.max_load,
            },
        ))
    }

    fn distribution(&self, model: &str, rows: &BTreeMap<String, Distribution>) -> Vec<Check> {
        // Searches of one set look for all its goals at once.
        let mut known: BTreeMap<&str, Result<Runs, &'static str>> = BTreeMap::new();
        let mut checks = Vec::new();
        for (name, row) in rows {
            let (set, goal) = name.split_once('/').unwrap_or((name, ""));
            let searches = row.searches.min(MOST_SEARCHES);
            if searches == 0 {
                continue;
            }
            let runs = known
                .entry(set)
                .or_insert_with(|| self.runs(model, set, searches))
                .as_ref();
            let of = format!("searches of {model}: {name}");
            let found = runs.map_err(|unknown| *unknown).and_then(|runs| {
                runs.by_goal
                    .get(goal)
                    .map(|values| (values, &runs.trials))
                    .ok_or("goal")
            });
            checks.push(match found {
                Ok((values, trials)) => row.check(of, values, trials),
                Err(unknown) => {
                    let found = format!("the {unknown} is not known here");
                    Check {
                        of,
                        expected: "a search".into(),
                        found,
                        agrees: false,
                    }
                }
            });
        }
        checks
    }

    /// Searches of a simulated system.
    ///
    /// # Errors
    /// The part of their description that is unknown.
    fn runs(&self, model: &str, set: &str, searches: u64) -> Result<Runs, &'static str> {
        let system = |seed| System::new(model, self.constants, seed).ok_or("system");
        let mut runs = Runs::default();
        let checked = |limits: Limits| Limits::new(limits.min, limits.max).map_err(|_| "range");
        if let Some(seconds) = set
            .strip_prefix("bisection ")
            .and_then(|rest| rest.strip_suffix(" s"))
        {
            let duration_ns = ns(seconds.parse().map_err(|_| "bisection's duration")?);
            let limits = checked(BISECTED)?;
            for seed in 1..=searches {
                let mut search =
                    Bisection::new(limits, 0.0, 0.005, duration_ns, 0).map_err(|_| "bisection")?;
                let trials = system(seed)?.measure(&mut search, MOST_TRIALS);
                runs.add("", search.bounds().and_then(|(lower, _)| lower));
                runs.trials.push(trials.len() as f64);
            }
            return Ok(runs);
        }
        let (goals, limits) = self.set(set).ok_or("set of goals")?;
        let limits = checked(limits)?;
        let all: Vec<Goal> = goals.values().map(|goal| Goal::from(*goal)).collect();
        for seed in 1..=searches {
            let mut search = Mlr::new(&all, limits).map_err(|_| "set of goals")?;
            let trials = system(seed)?.measure(&mut search, MOST_TRIALS);
            for (name, goal) in goals.keys().zip(&all) {
                runs.add(name, outcome(goal, limits, &trials).conditional);
            }
            runs.trials.push(trials.len() as f64);
        }
        Ok(runs)
    }
}

/// Results of many searches.
#[derive(Default)]
struct Runs {
    by_goal: BTreeMap<String, Vec<f64>>,
    trials: Vec<f64>,
}

impl Runs {
    fn add(&mut self, goal: &str, rate: Option<f64>) {
        self.by_goal
            .entry(goal.to_owned())
            .or_default()
            .extend(rate);
    }
}

impl Example {
    fn check(&self) -> Vec<Check> {
        let mut trials = Vec::new();
        let mut checks = Vec::new();
        for (point, (count, duration, effective, loss)) in (1..).zip(&self.added) {
            trials.extend(std::iter::repeat_n(
                trial(*duration, *effective, *loss),
                (*count).min(MOST_TRIALS),
            ));
            let expected = self
                .points
                .iter()
                .filter(|known| known.point == point)
                .flat_map(|known| &known.classes);
            for (name, expected) in expected {
                let Some(goal) = self.goals.iter().find(|goal| goal.name == *name) else {
                    continue;
                };
                let of = format!("RFC 9971, appendix C, point {point}: {name}");
                checks.push(Check::exact(
                    of,
                    expected,
                    &class(&goal.goal.into(), &trials),
                    |class| format!("{class:?}").to_lowercase(),
                ));
            }
        }
        for (name, expected) in &self.conditional_throughput_at_1e6 {
            let Some(goal) = self.goals.iter().find(|goal| goal.name == *name) else {
                continue;
            };
            let found = 1e6 * (1.0 - quantile_loss(&goal.goal.into(), &trials));
            let of = format!("RFC 9971, appendix C, conditional throughput: {name}");
            checks.push(Check::exact(of, expected, &found, f64::to_string));
        }
        checks
    }
}

impl Vector {
    fn check(&self, number: usize) -> Check {
        let goal = Goal::from(self.goal);
        let trials: Vec<Trial> = self
            .trials
            .iter()
            .map(|(d, effective, loss)| trial(*d, *effective, *loss))
            .collect();
        let found = (class(&goal, &trials), quantile_loss(&goal, &trials));
        let of = format!("classification {number}");
        Check::exact(
            of,
            &(self.class, self.quantile_loss),
            &found,
            |(class, loss)| format!("{}, loss {loss}", format!("{class:?}").to_lowercase()),
        )
    }
}

impl Replay {
    fn check(&self, of: Constants) -> Vec<Check> {
        let Replay {
            set, model, seed, ..
        } = self;
        let limits = Limits {
            min: self.min_load,
            max: self.max_load,
        };
        let name = format!(
            "replay of {set} on {model}, seed {seed}, up to {} frames/s",
            self.max_load
        );
        let made = |(load, duration, sent, lost): &(f64, f64, u64, u64)| {
            let loss = ratio(*sent, *lost);
            Trial {
                load: *load,
                ..trial(*duration, *duration, loss)
            }
        };
        let trials: Vec<Trial> = self.trials.iter().map(made).collect();
        let check = |(goal_name, goal): (&String, &Full)| {
            let expected = self.results.get(goal_name)?;
            let found = outcome(&Goal::from(*goal), limits, &trials);
            let found = Found {
                lower: found.lower,
                upper: found.upper,
                conditional: found.conditional,
                regular: found.irregular.is_none(),
            };
            Some(Check::exact(
                format!("{name}: {goal_name}"),
                expected,
                &found,
                Found::text,
            ))
        };
        let mut checks: Vec<Check> = self.goals.iter().filter_map(check).collect();
        // The system, where it is known here, loses the same frames in the same trials.
        checks.extend(System::new(model, of, *seed).map(|mut system| {
            let differs =
                (1usize..)
                    .zip(&self.trials)
                    .find_map(|(number, (load, duration, sent, lost))| {
                        let found = system.trial(*load, *duration);
                        (found != (*sent, *lost)).then_some((number, (*sent, *lost), found))
                    });
            let of = format!("{name}: frames of each trial");
            let (expected, found) = match differs {
                None => ((0, (0, 0)), (0, (0, 0))),
                Some((number, expected, found)) => ((number, expected), (number, found)),
            };
            Check::exact(
                of,
                &expected,
                &found,
                |(number, (sent, lost))| match number {
                    0 => format!("{} trials", self.trials.len()),
                    number => format!("trial {number} sends {sent} and loses {lost}"),
                },
            )
        }));
        checks
    }
}

impl Found {
    fn text(&self) -> String {
        let rate = |rate: Option<f64>| rate.map_or("none".into(), |rate| rate.to_string());
        format!(
            "lower {}, upper {}, conditional {} frames/s, {}",
            rate(self.lower),
            rate(self.upper),
            rate(self.conditional),
            if self.regular { "regular" } else { "irregular" }
        )
    }
}

impl Distribution {
    /// Agrees if the median is within 1 % and the reference's quartiles are within 2 %, or else if the quartiles overlap; and if the
    /// trials are at most 1.2 times the reference's.
    fn check(&self, of: String, values: &[f64], trials: &[f64]) -> Check {
        let [p25, p50, p75] = [0.25, 0.5, 0.75].map(|share| quantile(values, share));
        let trials = quantile(trials, 0.5).unwrap_or_default();
        let agrees = match (self.p25.zip(self.p75), p25.zip(p75), self.p50.zip(p50)) {
            (Some((low, high)), _, Some((expected, found))) if high <= low * 1.02 => {
                (found / expected - 1.0).abs() <= 0.01
            }
            (Some((low, high)), Some((p25, p75)), _) => p25 <= high && low <= p75,
            (expected, found, _) => expected.is_none() && found.is_none(),
        };
        let text = |quartiles: [Option<f64>; 3], trials: f64| {
            let [p25, p50, p75] =
                quartiles.map(|rate| rate.map_or("-".into(), |rate| format!("{rate:.0}")));
            format!("{p50} ({p25} to {p75}) frames/s in {trials} trials")
        };
        Check {
            of,
            expected: text([self.p25, self.p50, self.p75], self.trials_p50),
            found: text([p25, p50, p75], trials),
            agrees: agrees && trials <= 1.2 * self.trials_p50,
        }
    }
}

/// The quantile, by the reference's formula.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(((share * sorted.len() as f64) as usize).min(sorted.len().saturating_sub(1)))
        .copied()
}
