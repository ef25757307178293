//! `linerate tune`: which of many changes make a DUT faster, and the proof.

mod hint;
mod needs;
pub(super) mod record;

use super::report;
use super::run::{self, SKIPPED, Which};
use crate::args::CampaignArgs;
use crate::output::{FAILED, INTERRUPTED, faulty, print_place, result, tell};
use anyhow::{Context, Result, bail};
use clap::Args;
use hint::Place;
use linerate_linux::records::{make_folder, write_document};
use linerate_measure::experiment::{Interest, Trials};
use linerate_measure::record::{Proof, Slot, Verdict as Proven, Warning};
use linerate_measure::tuning::{LeftOut, Stage, Tuned, confirming_runs, screening_runs};
use linerate_plan::campaign::Campaign as Plan;
use linerate_plan::tuning::{Candidate, Combined, Tuning};
use linerate_report::pages;
use linerate_runner::handle;
use linerate_runner::interrupt::interrupted;
use linerate_runner::messages::told;
use linerate_runner::session::{Measured, Session, Wanted, chosen};
use linerate_runner::testbed::hosts::{self, Site};
use linerate_stats::screening::Runs;
use needs::Needs;
use record::RECORD;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// The plan of the changes that were kept.
pub(super) const KEPT: &str = "kept.toml";
/// The last campaign, and its variants.
const TOGETHER: &str = "together";
pub(super) const ENDS: [&str; 2] = ["as-it-is", "tuned"];
const SECOND: u64 = 1_000_000_000;
/// Why a change that leaves the closed loop is not tried.
const OPEN: &str = "inline, the load does not wait for the CPU that it hands frames to, so its rate would be too low: write mode = \"threaded\" below [lab] of the plan";

/// Find the changes that make a DUT faster.
#[derive(Debug, Args)]
// Expectations of speed are for `run`, which shares these arguments.
#[command(mut_arg("fail_if_slower", |arg| arg.hide(true)))]
#[command(mut_arg("keep", |arg| arg.help("On the router of a real lab, leave the changes that help in place \
    (`linerate apply --revert` takes them back)")))]
#[command(after_help = "Examples:
  sudo linerate tune tune                    'tune', a plan that comes with
                                             linerate: ten settings, 5 minutes
  sudo linerate tune my.toml --budget 10min  a plan of your own
  linerate tune my.toml --lab LAB.toml       on a real router (docs/lab-file.md)
  linerate show linerate-results/TIME-NAME   the verdict again
  sudo linerate apply last                   make the changes that helped

A tuning takes the plan's budget (or --budget), and the time to set up the DUTs: a few seconds in the \
embedded lab; on real hosts, the reboots.

The plan's first variant is the DUT as it is. Each other variant changes one setting of the first (in the plan, it has the key `from` with the name of the first). \
Of the variants that try different values of one setting, at most one is kept. \
About half of the time goes to a screening: a few runs, each with half of the changes, show the effect of each \
change, averaged over the others. Fresh trials then test the changes that may matter, in all combinations; \
the more changes there are, the clearer an effect must be. Last, the DUT with the changes that help is measured beside the DUT as \
it is. docs/tuning.md has the method and its limits.

Every change is undone; with --keep, those that help stay on the router of a real lab until `linerate \
apply --revert`. The folder of the records also has kept.toml, a plan that compares the DUT as it is with the tuned DUT.

Exit status: 0 measured, whether or not a change helps; 1 an error; 2 bad arguments, or a plan that names no \
changes; 4 this machine cannot run the plan; 130 interrupted (a tuning cannot be continued).")]
pub struct Tune {
    /// The plan: a file (docs/tuning.md), or a name that `linerate plan list` shows
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub campaign: CampaignArgs,
}

impl Tune {
    /// The plan, and the hosts of its lab.
    fn chosen(&self, simulated: bool) -> Result<(Plan, Option<Site>)> {
        chosen(&self.which.choice(), &self.plan, simulated, |_| Ok(()))
    }
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Tune) -> Result<ExitCode> {
    let how = &args.campaign;
    if how.fail_if_slower.is_some() {
        bail_usage!("--fail-if-slower is for `linerate run`");
    }
    run::begin(how);
    let name = args.plan.display().to_string();
    let (plan, site) = args.chosen(how.simulate.is_some())?;
    if how.keep && site.is_none() {
        bail_usage!(
            "--keep is for the router of a real lab: this lab is gone with the tuning, and kept.toml has its result"
        );
    }
    let mut tuning = Tuning::of(&plan).map_err(|faults| faulty(&name, &faults))?;
    let mut left_out = std::mem::take(&mut tuning.left_out);
    match untried(&plan, &tuning, args, site.as_ref()) {
        Err(_) if interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
        untried => left_out.extend(untried?),
    }
    for LeftOut { name, reason } in &left_out {
        tell(format!("{name} is not tried: {reason}"));
    }
    let tried = |change: &Candidate| left_out.iter().all(|left| left.name != change.name);
    tuning.changes.retain(tried);
    if tuning.changes.is_empty() {
        tell("no change of this plan can be tried here");
        return Ok(ExitCode::from(SKIPPED));
    }
    let needs = Needs::of(&plan, &tuning)?;
    needs.check(
        args,
        budget(&plan, how),
        tuning.changes.len(),
        site.is_some() && !how.quiet,
    )?;
    let stem = args
        .plan
        .file_stem()
        .map_or("tune".into(), |stem| stem.to_string_lossy());
    let stem = how.name.clone().unwrap_or(stem.into_owned());
    let folder = make_folder(Path::new(handle::RESULTS), &stem, how.out.as_deref())?;
    let changes = tuning
        .changes
        .iter()
        .map(|change| (change.name.clone(), change.keys()));
    let mut tuned = Tuned {
        base: tuning.base(),
        simulated: how.simulate.is_some(),
        left_out,
        ..Tuned::new(plan.experiment.title.clone(), name, changes)
    };
    for (change, candidate) in tuned.changes.iter_mut().zip(&tuning.changes) {
        change.factor.clone_from(&candidate.factor);
    }
    let place = Place::of(&plan, args, site.as_ref());
    let mut tuner = Tuner {
        args,
        place,
        plan,
        kept: None,
        site,
        tuning,
        tuned,
        needs,
        folder,
    };
    let ended = tuner.tune();
    if tuner.tuned.stages.is_empty() && !interrupted() {
        // Nothing was measured: the folder goes, unless there are trials in it.
        let _ = fs::remove_dir(&tuner.folder);
        return ended;
    }
    tuner.conclude(&ended)?;
    match ended {
        _ if interrupted() => Ok(ExitCode::from(INTERRUPTED)),
        ended => ended,
    }
}

/// The changes that cannot be tried, with the reasons: the others are.
fn untried(plan: &Plan, tuning: &Tuning, args: &Tune, site: Option<&Site>) -> Result<Vec<LeftOut>> {
    let all = match site {
        Some(site) => untried_on_hosts(plan, tuning, site)?,
        None => {
            let session = Session::new(&args.campaign.wanted(), None, plan.clone(), None)?;
            let open = plan
                .open_loops()
                .map(|name| (name.to_string(), OPEN.to_string()));
            let lacking = session.lacking().into_iter().chain(open);
            let mut all: Vec<_> = lacking.collect();
            for (name, reason) in session.try_out(tuning.base_variant())? {
                if all.iter().all(|(known, _)| *known != name) {
                    all.push((name, reason));
                }
            }
            all
        }
    };
    let is_change = |name: &str| tuning.changes.iter().any(|change| change.name == name);
    let changes = all.into_iter().filter(|(name, _)| is_change(name));
    Ok(changes
        .map(|(name, reason)| LeftOut { name, reason })
        .collect())
}

/// The variants that the DUT of these hosts cannot have, with the reasons: the DUT lacks the setting, or refused it when linerate tried.
fn untried_on_hosts(plan: &Plan, tuning: &Tuning, site: &Site) -> Result<Vec<(String, String)>> {
    let mut plan = plan.clone();
    plan.is_for(&site.lab);
    let mut lacking = hosts::prepare(&plan, Some(site))?.lacking();
    let possible = |variant: &str| lacking.iter().all(|(name, _)| name != variant);
    let cells = (0..plan.cells.len()).filter(|cell| !plan.is_ceiling(*cell));
    let cells: Vec<_> = cells
        .map(|cell| &plan.cells[cell])
        .filter(|cell| possible(&cell.variant))
        .collect();
    let lanes: Vec<usize> = cells.iter().map(|cell| cell.lane).collect();
    let base = cells.iter().find(|cell| tuning.is_base(&cell.variant));
    let Some(base) = base else {
        return Ok(lacking);
    };
    let failed = site.try_out(&plan, base.lane, &lanes)?;
    lacking.extend(cells.iter().filter_map(|cell| {
        let why = failed.get(&cell.lane)?;
        Some((cell.variant.clone(), why.clone()))
    }));
    Ok(lacking)
}

/// Time for all trials in nanoseconds, if it bounds them.
fn budget(plan: &Plan, how: &CampaignArgs) -> Option<u64> {
    how.budget
        .map(|budget| budget.as_nanos() as u64)
        .or(plan.experiment.trials.budget_ns)
}

/// A tuning that goes on.
struct Tuner<'a> {
    args: &'a Tune,
    plan: Plan,
    /// The plan of the last campaign, and the lane of the kept changes in it.
    kept: Option<(Plan, usize)>,
    /// The hosts, for the first campaign.
    site: Option<Site>,
    /// Where the result can be applied.
    place: Option<Place>,
    tuning: Tuning,
    tuned: Tuned,
    needs: Needs,
    folder: PathBuf,
}

impl Tuner<'_> {
    fn tune(&mut self) -> Result<ExitCode> {
        let all: Vec<usize> = (0..self.tuning.changes.len()).collect();
        let runs = screening_runs(&self.tuned.factor_of(&all));
        let Some(stage) = self.stage("screening", &all, runs, 0)? else {
            return Ok(ExitCode::from(SKIPPED));
        };
        let unclear = stage.0.unclear();
        let survivors = self.tuned.screened(stage.0).context(unclear)?;
        if survivors.is_empty() || interrupted() {
            return Ok(ExitCode::SUCCESS);
        }
        let runs = confirming_runs(&self.tuned.factor_of(&survivors));
        let Some(stage) = self.stage("confirmation", &survivors, runs, 1)? else {
            return Ok(ExitCode::from(FAILED));
        };
        let unclear = stage.0.unclear();
        let kept = self.tuned.confirmed(stage.0).context(unclear)?;
        if kept.is_empty() || interrupted() {
            return Ok(ExitCode::SUCCESS);
        }
        let runs = vec![vec![false; kept.len()], vec![true; kept.len()]];
        let Some((stage, measured)) = self.stage(TOGETHER, &kept, runs, 2)? else {
            return Ok(ExitCode::from(FAILED));
        };
        let compared = measured
            .finished
            .summary
            .comparisons
            .iter()
            .find(|c| c.why == Interest::Variants);
        let ratio = compared.and_then(|compared| compared.against.ratio);
        let records = stage.records.clone();
        let proof = ratio.map_or_else(
            || Proof::not_run("no trial was valid"),
            |ratio| Proof::of(ratio, records),
        );
        (self.tuned.together, self.tuned.stages) = (
            Some(proof),
            [self.tuned.stages.clone(), vec![stage]].concat(),
        );
        Ok(ExitCode::SUCCESS)
    }

    /// Runs a campaign of some of the changes, in the time of this stage. `None`: it cannot be measured here, and the reason is told.
    fn stage(
        &mut self,
        name: &str,
        changes: &[usize],
        runs: Runs,
        stage: usize,
    ) -> Result<Option<(Stage, Measured)>> {
        let how = &self.args.campaign;
        let Combined {
            text,
            campaign: plan,
            cells,
        } = self.combined(name, changes, &runs, stage)?;
        if name == TOGETHER {
            self.write_kept(&text)?;
            self.kept = Some((plan.clone(), plan.cells[cells[1]].lane));
        }
        let site = match self.site.take() {
            None if how.simulate.is_none() => self.args.chosen(false)?.1,
            site => site,
        };
        tell(format!(
            "{name}: {} runs of {}",
            runs.len(),
            names(&self.tuning.changes, changes)
        ));
        let session = Session::new(&how.wanted(), None, plan, site)?;
        let reasons = session.reasons_to_skip();
        // A run that is missing takes the balance from a design.
        if !reasons.is_empty() {
            reasons
                .iter()
                .for_each(|reason| tell(format!("{name}: skipped: {reason}")));
            return Ok(None);
        }
        let records = self.folder.join(name);
        let alone = Wanted {
            out: Some(records.clone()),
            keep: false,
            ..how.wanted()
        };
        let Some(mut measured) = session.measure(&alone, name.into(), &self.folder)? else {
            bail!("{name} was interrupted before its first trial");
        };
        if let Some(failure) = measured.finished.failure.take() {
            return Err(failure);
        }
        let warnings = by_run(
            &measured.campaign.slots,
            &measured.finished.summary.warnings,
        );
        let trials = linerate_linux::records::read(&records)?.trials;
        let mut stage = Stage {
            name: name.into(),
            records: records.display().to_string(),
            changes: changes.to_vec(),
            runs,
            levels: Vec::new(),
            trials: [0; 2],
            warnings,
        };
        stage.measure(&cells, &trials);
        Ok(Some((stage, measured)))
    }

    /// The experiment of a stage.
    fn combined(
        &self,
        name: &str,
        changes: &[usize],
        runs: &[Vec<bool>],
        stage: usize,
    ) -> Result<Combined> {
        let how = &self.args.campaign;
        let of_all = |run: &Vec<bool>| -> Vec<bool> {
            let made = |at: usize| {
                changes
                    .iter()
                    .position(|change| *change == at)
                    .is_some_and(|at| run[at])
            };
            (0..self.tuning.changes.len()).map(made).collect()
        };
        let whole: Runs = runs.iter().map(of_all).collect();
        let then = &self.plan.experiment.trials;
        let budget = budget(&self.plan, how);
        let trials = Trials {
            blocks: if budget.is_some() { None } else { then.blocks },
            budget_ns: budget.map(|budget| self.needs.share(stage, budget)),
            seed: how.seed.or(then.seed),
            until: None,
            ..then.clone()
        };
        let title = format!("{}: {name}", self.plan.experiment.title);
        let question = format!("{name}: {}", names(&self.tuning.changes, changes));
        let variant = |run: usize| {
            if name == TOGETHER {
                ENDS[run].into()
            } else {
                format!("run-{run}")
            }
        };
        self.tuning
            .experiment(&self.plan, [&title, &question], &whole, variant, &trials)
            .map_err(|faults| faulty(format!("{}, {name}", self.args.plan.display()), &faults))
    }

    /// Writes and shows the record. Changes that are proven to help stay, if they are to.
    fn conclude(&mut self, ended: &Result<ExitCode>) -> Result<()> {
        if interrupted() {
            self.tuned.stopped = Some("interrupted".into());
        } else if let Err(error) = ended {
            self.tuned.stopped = Some(told(error));
        }
        let (how, tuned) = (&self.args.campaign, &self.tuned);
        write_document(&self.folder, RECORD, tuned)?;
        if !how.quiet {
            result(&how.printed, || tuned, || pages::tuning(tuned))?;
            print_place(&how.printed, &self.folder);
        }
        if how.report {
            report::beside(&self.folder, how.quiet)?;
        }
        let proven = tuned
            .together
            .as_ref()
            .is_some_and(|proof| proof.verdict == Proven::Proven);
        let stays = how.keep && ended.is_ok() && proven && !interrupted();
        let place = self.place.as_ref().filter(|_| proven && !stays);
        let system = self.plan.experiment.system;
        if let Some(hint) = place.and_then(|place| place.hint(tuned, system, &self.folder))
            && !how.quiet
        {
            tell(hint);
        }
        if let Some((plan, lane)) = self.kept.as_ref().filter(|_| stays) {
            let site = self.args.chosen(false)?.1.context("the lab has no hosts")?;
            let revert = site.keep(plan, *lane)?;
            tell(format!(
                "the changes that help stay; to take them back: {revert}"
            ));
        }
        Ok(())
    }

    /// Writes the plan of the result, with its rule files beside it.
    fn write_kept(&self, text: &str) -> Result<()> {
        let named = |name: &str| {
            Path::new(name)
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
        };
        let files = self
            .tuning
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        for (name, text) in files.filter(|(name, _)| named(name)).chain([(KEPT, text)]) {
            let path = self.folder.join(name);
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .context("making a folder for a rule file")?;
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// Warnings with the runs that they are about: one for all runs that have the same.
fn by_run(slots: &[Slot], warnings: &[Warning]) -> Vec<String> {
    let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
    for Warning { slot, text, .. } in warnings {
        let run = slot.and_then(|slot| slots.get(slot));
        let run = run.map(|slot| slot.variant.as_str());
        match texts.iter_mut().find(|(known, _)| known == text) {
            Some((_, runs)) => runs.extend(run),
            None => texts.push((text, run.into_iter().collect())),
        }
    }
    let line = |(text, runs): (&str, Vec<&str>)| match runs[..] {
        [] => text.to_string(),
        [a, b, _, _, ..] => format!("{a}, {b} and {} more: {text}", runs.len() - 2),
        _ => format!("{}: {text}", runs.join(", ")),
    };
    texts.into_iter().map(line).collect()
}

fn names(changes: &[Candidate], of: &[usize]) -> String {
    of.iter()
        .map(|change| changes[*change].name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_name_their_runs() {
        let slot = |variant: &str| Slot {
            variant: variant.into(),
            ..Slot::default()
        };
        let slots = ["run-0", "run-1", "run-2", "run-3"].map(slot);
        let warning = |slot, text: &str| Warning {
            slot,
            text: text.into(),
            spoils: None,
        };
        let mut all = vec![
            warning(Some(1), "3 of 19 trials failed"),
            warning(None, "busy"),
        ];
        all.extend((0..4).map(|slot| warning(Some(slot), "too few")));
        assert_eq!(
            by_run(&slots, &all),
            [
                "run-1: 3 of 19 trials failed",
                "busy",
                "run-0, run-1 and 2 more: too few"
            ]
        );
    }
}
