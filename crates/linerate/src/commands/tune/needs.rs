//! The time that a tuning needs.

use super::{SECOND, Tune};
use crate::output::{faulty, tell};
use anyhow::Result;
use linerate_measure::experiment::Trials;
use linerate_measure::tuning::{confirming_runs, screening_runs};
use linerate_plan::campaign::Campaign as Plan;
use linerate_plan::duration_text;
use linerate_plan::timetable::block_parts;
use linerate_plan::tuning::Tuning;
use linerate_stats::screening::Runs;

/// Factor of the time on a busy machine.
const SLACK: f64 = 2.0;
/// Blocks of the last campaign: a median's 95 % interval needs six trials.
const LEAST: f64 = 6.0;
/// Shares of the time beyond what they need: of the screening, the confirmation, and the campaign of all that helps together.
const SHARES: [f64; 3] = [0.5, 0.375, 0.125];
/// The time that the campaigns of a tuning need: each run of the screening and of the confirmation a trial, and the verdict an interval. As
/// many changes survive the screening as need the most runs.
pub(super) struct Needs {
    /// Nanoseconds of the screening, the confirmation and the last campaign, on a busy machine.
    stages: [u64; 3],
    /// The parts of the time, in nanoseconds.
    parts: Vec<(&'static str, u64)>,
}

impl Needs {
    pub(super) fn of(plan: &Plan, tuning: &Tuning) -> Result<Needs> {
        let factor_of = tuning.factor_of();
        let all = factor_of.len();
        let confirming = (1..=all)
            .map(|survivors| confirming_runs(&factor_of[..survivors]))
            .max_by_key(Vec::len)
            .unwrap_or_default();
        // Of each factor, its first level.
        let first = |at: usize| !factor_of[..at].contains(&factor_of[at]);
        let ends = vec![vec![false; all], (0..all).map(first).collect()];
        let mut needs = Needs {
            stages: [0; 3],
            parts: Vec::new(),
        };
        let stages = [
            (screening_runs(&factor_of), 1.0),
            (confirming, 1.0),
            (ends, LEAST),
        ];
        for ((runs, blocks), of_stage) in stages.into_iter().zip(&mut needs.stages) {
            let whole = |run: Vec<bool>| {
                (0..all)
                    .map(|at| run.get(at).copied().unwrap_or(false))
                    .collect()
            };
            let runs: Runs = runs.into_iter().map(whole).collect();
            let trials = Trials {
                blocks: Some(1),
                budget_ns: None,
                until: None,
                ..plan.experiment.trials.clone()
            };
            let name = &plan.experiment.title;
            let combined = tuning.experiment(
                plan,
                [name, name],
                &runs,
                |run| format!("run-{run}"),
                &trials,
            );
            let campaign = combined.map_err(|faults| faulty(name, &faults))?.campaign;
            for (part, ns) in block_parts(&campaign) {
                let ns = (SLACK * blocks * ns as f64) as u64;
                *of_stage += ns;
                match needs.parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, all)) => *all += ns,
                    None => needs.parts.push((part, ns)),
                }
            }
        }
        Ok(needs)
    }

    /// Whole seconds are easier to type.
    fn least_ns(&self) -> u64 {
        self.stages.iter().sum::<u64>().div_ceil(SECOND) * SECOND
    }

    /// Refuses a budget that is too short for a verdict; with `aloud`, tells how much time a tuning takes.
    pub(super) fn check(
        &self,
        args: &Tune,
        budget: Option<u64>,
        changes: usize,
        aloud: bool,
    ) -> Result<()> {
        let (least_ns, parts) = (self.least_ns(), self.parts());
        let least = duration_text(least_ns).replace(' ', "");
        if budget.is_some_and(|budget| budget < least_ns) {
            bail_usage!(
                "a tuning of {changes} changes takes at least {least} ({parts}): with less time some combinations have no trial, or the verdict has no interval. Give it --budget {least} or more, or the plan a shorter duration"
            );
        }
        if aloud {
            let name = args.plan.display();
            let lab = args
                .which
                .lab
                .as_ref()
                .map(|file| format!(" --lab {}", file.display()))
                .unwrap_or_default();
            let longer = budget.is_none_or(|budget| budget > least_ns);
            let shorter = longer
                .then(|| format!("; the shortest: linerate tune {name}{lab} --budget {least}"));
            tell(format!(
                "a tuning of {changes} changes takes at least {least} of trials ({parts}){}",
                shorter.unwrap_or_default()
            ));
        }
        Ok(())
    }

    /// The time of a stage, of a budget for all: what it needs, and its share of the rest.
    pub(super) fn share(&self, stage: usize, budget_ns: u64) -> u64 {
        let rest = budget_ns.saturating_sub(self.stages.iter().sum());
        self.stages[stage] + (SHARES[stage] * rest as f64) as u64
    }

    /// `8 min to start and stop trials, 36 s load`
    fn parts(&self) -> String {
        let mut parts = self.parts.clone();
        parts.retain(|(_, ns)| *ns > 0);
        parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let part = |(name, ns): &(&str, u64)| {
            format!("{} {name}", duration_text(ns.div_ceil(SECOND) * SECOND))
        };
        parts.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}
