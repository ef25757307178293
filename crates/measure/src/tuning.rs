//! Which of many changes make a DUT faster: designs of the experiments, and the verdict of their trials.
//!
//! A screening tells the changes that may matter from those that do not. Fresh trials of the survivors then confirm their effects, with
//! a correction for their number; trials that chose a change cannot prove it as well.

use crate::record::{Proof, TrialRecord};
use linerate_stats::Estimate;
use linerate_stats::effect::holm;
use linerate_stats::screening::{
    self, Effect, Runs, combinations, factorial, levels, with_interactions,
};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Format version of [`Tuned`].
pub const VERSION: u32 = 1;
/// A change survives the screening below this p. One in ten without any effect does.
const SURVIVES: f64 = 0.1;
/// A confirmed effect has a p below this, corrected for the number of survivors.
const CONFIRMED: f64 = 0.05;
/// Runs of a confirmation, at least: with fewer, the spread between runs is not known.
const CONFIRMING: usize = 16;
/// Most combinations of survivors of which all are measured; more take a screening design.
const CROSSED: usize = 16;
/// Set-ups of one combination at most.
const COPIES: usize = 4;

/// Most changes of one tuning.
pub const MOST: usize = screening::MOST;

/// The record of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// Format version, [`VERSION`].
    pub version: u32,
    /// The plan's title.
    pub title: String,
    /// The plan's file.
    pub plan: String,
    /// Whether the DUT was simulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// The DUT as it is, before any change: its variant's name, with its settings.
    #[serde(default)]
    pub base: String,
    /// The changes, in the order of the plan.
    pub changes: Vec<Change>,
    /// Changes of the plan that were not tried.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The campaigns, in the order of time.
    pub stages: Vec<Stage>,
    /// Effects of two changes together, beyond their own: those that are clear in the last stage that shows any.
    pub interactions: Vec<Interaction>,
    /// The DUT with all changes that were kept, measured beside the DUT as it is; `None` if nothing was kept.
    pub together: Option<Proof>,
    /// Why it ended before the verdict.
    pub stopped: Option<String>,
}

/// A change that was not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name of its variant.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// A change with its effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The name of its variant.
    pub name: String,
    /// Keys with their values.
    pub keys: Vec<String>,
    /// The factor that it is a level of: the key that its other levels give other values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<String>,
    /// Effect in the screening.
    pub screened: Option<Measured>,
    /// Effect in the confirmation.
    pub confirmed: Option<Measured>,
    pub verdict: Verdict,
}

/// The effect of a change on the rate, as an average over the settings of all others. A level of a factor is compared with the factor as
/// it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The rate with it divided by that without; its 95 % interval; `n`: runs.
    pub ratio: Estimate,
    /// Probability of as large an effect by chance; in a confirmation corrected for the number of changes (Holm).
    pub p: f64,
}

/// Verdict on a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Proven to help.
    Kept,
    /// Proven to help, and another level of its factor is kept: its effect was larger.
    NotChosen,
    /// Proven to cost.
    Harmful,
    /// The screening saw an effect, and fresh trials did not confirm it.
    NotConfirmed,
    /// The screening saw no effect.
    NoEffect,
    /// No run that makes it has a valid trial, and runs without it have: frames do not pass.
    Breaks,
    /// The change was not measured to the end.
    #[default]
    Unknown,
}

/// One campaign of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Name of the stage: `screening`.
    pub name: String,
    /// The folder of its records.
    pub records: String,
    /// The changes that it varies, indices into [`Tuned::changes`].
    pub changes: Vec<usize>,
    /// For each run, by change, whether it is made. Variant `run-N` of the records is run N.
    pub runs: Runs,
    /// Relative rate of each run, as a logarithm; `None` without a valid trial.
    pub levels: Vec<Option<f64>>,
    /// Trials, and those of them that count.
    pub trials: [usize; 2],
    /// Limits of the results.
    pub warnings: Vec<String>,
}

/// The effect of two changes together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// Indices into [`Tuned::changes`].
    pub of: [usize; 2],
    /// The rate with both, divided by that which their own effects give.
    pub measured: Measured,
}

/// The runs of a screening, by the factors of the changes.
pub fn screening_runs(factor_of: &[usize]) -> Runs {
    screening::screening(factor_of)
}

/// The runs that confirm survivors, by their factors.
pub fn confirming_runs(factor_of: &[usize]) -> Runs {
    if combinations(factor_of) > CROSSED {
        return screening::screening(factor_of);
    }
    let once = factorial(factor_of);
    let least = CONFIRMING.max(2 * (factor_of.len() + 1));
    let copies = least.div_ceil(once.len()).min(COPIES);
    (0..copies).flat_map(|_| once.clone()).collect()
}

impl Stage {
    /// The relative rates of its runs. `slots`: that of each run.
    pub fn measure(&mut self, slots: &[usize], trials: &[TrialRecord]) {
        let rates: Vec<Vec<Option<f64>>> = slots.iter().map(|slot| rates(*slot, trials)).collect();
        let counted = rates.iter().flatten().flatten().count();
        self.trials = [
            trials.iter().filter(|t| slots.contains(&t.slot)).count(),
            counted,
        ];
        self.levels = levels(&rates);
    }

    /// The changes without which there would be valid trials, indices into its own.
    fn breaking(&self) -> Vec<usize> {
        let runs = || self.runs.iter().zip(&self.levels);
        let breaks = |change: &usize| runs().all(|(run, level)| !run[*change] || level.is_none());
        let breaking: Vec<usize> = (0..self.changes.len()).filter(breaks).collect();
        let others = runs().filter(|(run, _)| breaking.iter().all(|change| !run[*change]));
        let (all, valid) = others.fold((0, 0), |(all, n), (_, level)| {
            (all + 1, n + usize::from(level.is_some()))
        });
        // Where most other runs fail as well, it is something else.
        if 2 * valid > all {
            breaking
        } else {
            Vec::new()
        }
    }

    /// The stage without these of its changes, and without the runs that make them.
    fn without(&self, breaking: &[usize]) -> Stage {
        let works = |run: &[bool]| breaking.iter().all(|change| !run[*change]);
        let others = |all: &[bool]| -> Vec<bool> {
            (0..all.len())
                .filter(|at| !breaking.contains(at))
                .map(|at| all[at])
                .collect()
        };
        let kept = self
            .runs
            .iter()
            .zip(&self.levels)
            .filter(|(run, _)| works(run));
        let (runs, levels) = kept.map(|(run, level)| (others(run), *level)).unzip();
        let changes = self
            .changes
            .iter()
            .enumerate()
            .filter(|(at, _)| !breaking.contains(at));
        Stage {
            changes: changes.map(|(_, change)| *change).collect(),
            runs,
            levels,
            ..self.clone()
        }
    }

    /// Why its trials do not tell its changes apart, and what to do.
    pub fn unclear(&self) -> String {
        let ([trials, valid], records) = (self.trials, &self.records);
        let (runs, silent) = (
            self.runs.len(),
            self.levels.iter().filter(|level| level.is_none()).count(),
        );
        let base =
            |(run, level): (&Vec<bool>, &Option<f64>)| level.is_none() && !run.contains(&true);
        if 2 * valid < trials {
            format!(
                "only {valid} of {trials} trials were valid: linerate show {records} --trials has the reasons"
            )
        } else if 2 * silent > runs {
            let as_it_is = if self.runs.iter().zip(&self.levels).any(base) {
                ", nor through the DUT as it is"
            } else {
                ""
            };
            format!(
                "no frame passed in {silent} of {runs} runs{as_it_is}: linerate show {records} says where the frames were lost"
            )
        } else {
            format!(
                "{valid} trials are too few to tell the changes apart: give it a larger --budget"
            )
        }
    }

    /// Effects of the changes and of their pairs; `None` if the runs do not show them.
    fn effects(&self, factor_of: &[usize]) -> Option<Vec<Effect>> {
        with_interactions(&self.runs, factor_of, &self.levels, SURVIVES)
    }
}

/// The rates of a slot's valid trials, by block.
fn rates(slot: usize, trials: &[TrialRecord]) -> Vec<Option<f64>> {
    let mut all = Vec::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.slot == slot && trial.audit.valid)
    {
        all.resize(all.len().max(trial.block as usize + 1), None);
        all[trial.block as usize] = trial.rates.map(|rates| rates.received);
    }
    all
}

impl Tuned {
    /// A tuning that begins. `changes`: their names and keys.
    pub fn new(
        title: String,
        plan: String,
        changes: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Tuned {
        let change = |(name, keys)| Change {
            name,
            keys,
            factor: None,
            screened: None,
            confirmed: None,
            verdict: Verdict::Unknown,
        };
        let changes = changes.into_iter().map(change).collect();
        let (left_out, stages, interactions) = (Vec::new(), Vec::new(), Vec::new());
        let (version, base, together, stopped) = (VERSION, String::new(), None, None);
        Tuned {
            version,
            title,
            plan,
            simulated: false,
            base,
            changes,
            left_out,
            stages,
            interactions,
            together,
            stopped,
        }
    }

    /// Whether its parts name changes that exist: a file can hold anything.
    pub fn is_sound(&self) -> bool {
        let mut named = self
            .interactions
            .iter()
            .flat_map(|i| i.of)
            .chain(self.stages.iter().flat_map(|s| s.changes.clone()));
        named.all(|change| change < self.changes.len())
    }

    /// The gain of the kept changes together by their confirmed effects; `None` without any, or without an interval. Of its logarithm, the
    /// half-widths of the effects are added as squares.
    pub fn confirmed_gain(&self) -> Option<Estimate> {
        let kept = self.changes.iter().filter(|c| c.verdict == Verdict::Kept);
        let (mut middle, mut below, mut above) = (0.0, 0.0, 0.0);
        let mut least = usize::MAX;
        for change in kept {
            let Estimate {
                median,
                low,
                high,
                n,
            } = change.confirmed?.ratio;
            middle += median.ln();
            below += (median / low?).ln().powi(2);
            above += (high? / median).ln().powi(2);
            least = least.min(n);
        }
        (least < usize::MAX).then(|| Estimate {
            median: middle.exp(),
            low: Some((middle - below.sqrt()).exp()),
            high: Some((middle + above.sqrt()).exp()),
            n: least,
        })
    }

    /// The factor of each of these changes: a number that the levels of one factor have in common.
    pub fn factor_of(&self, changes: &[usize]) -> Vec<usize> {
        let first = |change: &usize| {
            let factor = self.changes[*change].factor.as_ref()?;
            self.changes
                .iter()
                .position(|other| other.factor.as_ref() == Some(factor))
        };
        changes
            .iter()
            .map(|change| first(change).unwrap_or(*change))
            .collect()
    }

    /// Adds the screening. Returns the survivors, or `None` if its trials are too few.
    pub fn screened(&mut self, stage: Stage) -> Option<Vec<usize>> {
        let effects = self.add(stage)?;
        let mut survivors = Vec::new();
        for (at, measured) in effects {
            let survives = measured.p < SURVIVES;
            survivors.extend(survives.then_some(at));
            let change = &mut self.changes[at];
            change.screened = Some(measured);
            change.verdict = if survives {
                Verdict::Unknown
            } else {
                Verdict::NoEffect
            };
        }
        Some(survivors)
    }

    /// Adds the confirmation of survivors. Returns the changes to keep, or `None` if its trials are too few.
    pub fn confirmed(&mut self, stage: Stage) -> Option<Vec<usize>> {
        let effects = self.add(stage)?;
        let corrected = holm(
            &effects
                .iter()
                .map(|(_, measured)| measured.p)
                .collect::<Vec<_>>(),
        );
        let mut kept = Vec::new();
        for ((at, measured), p) in effects.into_iter().zip(corrected) {
            let side = measured.ratio.side_of(1.0).filter(|_| p < CONFIRMED);
            let change = &mut self.changes[at];
            change.confirmed = Some(Measured { p, ..measured });
            change.verdict = match side {
                None | Some(Ordering::Equal) => Verdict::NotConfirmed,
                Some(Ordering::Greater) => Verdict::Kept,
                Some(Ordering::Less) => Verdict::Harmful,
            };
            kept.extend((change.verdict == Verdict::Kept).then_some(at));
        }
        Some(self.best(kept))
    }

    /// Of the changes that help, those to keep: of each factor the level with the largest effect.
    fn best(&mut self, mut helping: Vec<usize>) -> Vec<usize> {
        let effect = |tuned: &Tuned, change: usize| {
            let confirmed = tuned.changes[change].confirmed;
            confirmed.map_or(1.0, |measured| measured.ratio.median)
        };
        let factor_of = self.factor_of(&(0..self.changes.len()).collect::<Vec<_>>());
        let all = helping.clone();
        helping.retain(|change| {
            let rivals = all
                .iter()
                .filter(|other| factor_of[**other] == factor_of[*change]);
            let best = rivals.copied().max_by(|a, b| {
                let by_effect = effect(self, *a).total_cmp(&effect(self, *b));
                by_effect.then(b.cmp(a))
            });
            best == Some(*change)
        });
        for change in all.iter().filter(|change| !helping.contains(change)) {
            self.changes[*change].verdict = Verdict::NotChosen;
        }
        helping
    }

    /// Adds a campaign. Returns the effect of each of its changes.
    fn add(&mut self, stage: Stage) -> Option<Vec<(usize, Measured)>> {
        let breaking = stage.breaking();
        breaking
            .iter()
            .for_each(|at| self.changes[stage.changes[*at]].verdict = Verdict::Breaks);
        let working = stage.without(&breaking);
        let found = working.effects(&self.factor_of(&working.changes));
        let at = |number: usize| working.changes[number];
        let mut own = Vec::new();
        let mut together = Vec::new();
        for Effect {
            of: (a, b),
            ratio,
            p,
        } in found.iter().flatten().copied()
        {
            let measured = Measured { ratio, p };
            match b {
                None => own.push((at(a), measured)),
                Some(b) if p < CONFIRMED => together.push(Interaction {
                    of: [at(a), at(b)],
                    measured,
                }),
                Some(_) => {}
            }
        }
        if found.is_some() {
            self.interactions = together;
        }
        self.stages.push(stage);
        found.map(|_| own)
    }
}

#[cfg(test)]
mod tests;
