//! Which of many changes make a DUT faster: designs of the experiments, and the verdict of their trials.
//!
//! A screening tells the changes that may matter from those that do not. Fresh trials of the survivors then confirm their effects, with
//! a correction for their number; trials that chose a change cannot prove it as well.

use crate::record::{Proof, TrialRecord};
use linerate_stats::Estimate;
use linerate_stats::effect::holm;
use linerate_stats::screening::{self, Effect, Runs, factorial, levels, with_interactions};
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
/// Most survivors of which all combinations are measured; more take a screening design.
const CROSSED: usize = 4;
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
    /// Effect in the screening.
    pub screened: Option<Measured>,
    /// Effect in the confirmation.
    pub confirmed: Option<Measured>,
    pub verdict: Verdict,
}

/// The effect of a change on the rate, as an average over the settings of all others.
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

/// The runs of a screening, by the number of changes.
pub fn screening_runs(changes: usize) -> Runs {
    screening::screening(changes)
}

/// The runs that confirm survivors, by their number.
pub fn confirming_runs(survivors: usize) -> Runs {
    if survivors > CROSSED {
        return screening::screening(survivors);
    }
    let once = factorial(survivors);
    let copies = (CONFIRMING / once.len()).min(COPIES);
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
    fn effects(&self) -> Option<Vec<Effect>> {
        with_interactions(&self.runs, &self.levels, SURVIVES)
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
        Some(kept)
    }

    /// Adds a campaign. Returns the effect of each of its changes.
    fn add(&mut self, stage: Stage) -> Option<Vec<(usize, Measured)>> {
        let breaking = stage.breaking();
        breaking
            .iter()
            .for_each(|at| self.changes[stage.changes[*at]].verdict = Verdict::Breaks);
        let working = stage.without(&breaking);
        let found = working.effects();
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
mod tests {
    use super::*;
    use crate::trial::Rates;

    fn rated(received: f64) -> Rates {
        Rates {
            offered: received,
            received,
            seconds: 1.0,
        }
    }

    fn stage(name: &str, changes: Vec<usize>, runs: Runs, factors: &[f64]) -> Stage {
        let slots: Vec<usize> = (1..=runs.len()).collect();
        let mut trials = Vec::new();
        for block in 0..9 {
            for (run, slot) in runs.iter().zip(&slots) {
                let on = run.iter().zip(&changes).filter(|(on, _)| **on);
                let rate: f64 = on.map(|(_, change)| factors[*change]).product();
                // Set-ups and trials differ a little, each in its own way.
                let noise = 1.0 + 0.001 * ((slot * 7 + block * 13) % 11) as f64;
                let mut trial = TrialRecord {
                    slot: *slot,
                    block: block as u32,
                    ..TrialRecord::default()
                };
                trial.rates = Some(rated(1e6 * rate * noise));
                trial.audit.valid = true;
                trials.push(trial);
            }
        }
        // The fastest trial of all was not valid.
        trials[5].audit.valid = false;
        trials[5].rates = Some(rated(1e12));
        let mut stage = Stage {
            name: name.into(),
            records: String::new(),
            changes,
            runs,
            levels: Vec::new(),
            trials: [0; 2],
            warnings: Vec::new(),
        };
        stage.measure(&slots, &trials);
        assert_eq!(stage.trials[0], stage.trials[1] + 1);
        stage
    }

    #[test]
    fn what_helps_is_kept_and_what_costs_is_named() {
        let factors = [1.0, 1.2, 1.0, 0.5, 1.0];
        let names = (0..5).map(|n| (format!("change {n}"), vec![format!("key = {n}")]));
        let mut tuned = Tuned::new("t".into(), "p".into(), names);
        let left = tuned
            .screened(stage(
                "screening",
                (0..5).collect(),
                screening_runs(5),
                &factors,
            ))
            .unwrap();
        assert_eq!(left, [1, 3]);
        let runs = confirming_runs(left.len());
        assert_eq!(runs.len(), 16);
        assert_eq!(
            tuned
                .confirmed(stage("confirmation", left, runs, &factors))
                .unwrap(),
            [1]
        );
        let verdicts: Vec<Verdict> = tuned.changes.iter().map(|change| change.verdict).collect();
        use Verdict::{Harmful, Kept, NoEffect};
        assert_eq!(verdicts, [NoEffect, Kept, NoEffect, Harmful, NoEffect]);
        let of = |change: usize| tuned.changes[change].confirmed.unwrap().ratio;
        assert!((of(1).median - 1.2).abs() < 0.01 && (of(3).median - 0.5).abs() < 0.01);
        assert_eq!(tuned.interactions, []);
    }

    #[test]
    fn a_change_that_lets_no_frame_pass_is_named_and_left_out() {
        let factors = [1.0, 1.2, 1.0, 0.5, 1.0];
        let names = (0..5).map(|n| (format!("change {n}"), Vec::new()));
        let mut tuned = Tuned::new("t".into(), "p".into(), names);
        let mut screening = stage("screening", (0..5).collect(), screening_runs(5), &factors);
        let broken = screening.runs.iter().map(|run| run[4]);
        screening
            .levels
            .iter_mut()
            .zip(broken)
            .filter(|(_, broken)| *broken)
            .for_each(|(level, _)| *level = None);
        assert_eq!(tuned.screened(screening).unwrap(), [1, 3]);
        assert_eq!(
            (tuned.changes[4].verdict, tuned.changes[0].verdict),
            (Verdict::Breaks, Verdict::NoEffect)
        );
    }

    #[test]
    fn what_spoils_a_stage_is_named() {
        let mut spoilt = stage("screening", vec![0], screening_runs(1), &[1.0]);
        spoilt.records = "t/screening".into();
        spoilt.levels.fill(None);
        let runs = spoilt.runs.len();
        let lost = format!(
            "no frame passed in {runs} of {runs} runs, nor through the DUT as it is: linerate show t/screening"
        );
        assert!(spoilt.unclear().starts_with(&lost), "{}", spoilt.unclear());
        spoilt.trials = [40, 3];
        let invalid = "only 3 of 40 trials were valid: linerate show t/screening --trials";
        assert!(
            spoilt.unclear().starts_with(invalid),
            "{}",
            spoilt.unclear()
        );
        spoilt.trials = [4, 4];
        spoilt.levels.fill(Some(0.0));
        assert!(spoilt.unclear().contains("larger --budget"));
    }

    #[test]
    fn too_few_runs_are_no_verdict() {
        let mut tuned = Tuned::new("t".into(), "p".into(), [("a".into(), Vec::new())]);
        let mut few = stage("screening", vec![0], screening_runs(1), &[1.0]);
        few.levels.fill(None);
        few.levels[0] = Some(0.0);
        assert_eq!(tuned.screened(few), None);
        assert_eq!(tuned.changes[0].verdict, Verdict::Unknown);
    }

    #[test]
    fn confirmations_have_enough_runs() {
        for survivors in 1..=MOST {
            let n = confirming_runs(survivors).len();
            assert!(n >= 8 && n > survivors + 1, "{survivors}: {n}");
        }
    }
}
