//! The experiments of findings: written as plans, and carried out.

use super::run;
use crate::args::CampaignArgs;
use crate::output::tell;
use anyhow::{Context, Result};
use linerate_linux::host;
use linerate_measure::record::{After, Campaign, Explanation, HostFacts, LabKind, Proof};
use linerate_plan::campaign::Campaign as Plan;
use linerate_plan::proof::Change;
use linerate_runner::interrupt::interrupted;
use linerate_runner::messages::told;
use linerate_runner::session::{Session, Wanted, changes_of_machine};
use linerate_runner::testbed::hosts::folder;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the kernel is sampled in each cell of an experiment: some 1,000 samples tell a cause of 2 % from nothing.
const PROFILE_NS: u64 = 1_000_000_000;

/// The experiment of a finding.
pub struct Experiment {
    /// Index of the explanation, and of the finding in it.
    place: (usize, usize),
    /// The cause that it is about.
    cause: String,
    /// The cause, and the cell where several have it.
    name: String,
    /// The plan, or the reason why there is none.
    plan: Result<linerate_plan::Proof, String>,
}

/// The experiments of all findings whose change a plan can make, in each slot: slots differ in their frames and settings, even where their
/// findings say the same.
pub fn experiments(campaign: &Campaign, explanations: &[Explanation]) -> Vec<Experiment> {
    let finding = |(e, f): (usize, usize)| &explanations[e].findings[f];
    let of_slot =
        |(e, of): (usize, &Explanation)| (0..of.findings.len()).map(|f| (e, f)).collect::<Vec<_>>();
    let all = explanations.iter().enumerate().flat_map(of_slot);
    let all: Vec<(usize, usize)> = all.filter(|at| finding(*at).patch.is_some()).collect();
    // The cell is part of the name where the cause has several.
    let is_alone = |at: (usize, usize)| {
        let same = |other: &&(usize, usize)| finding(**other).cause == finding(at).cause;
        all.iter().filter(same).count() == 1
    };
    let name = |at: (usize, usize)| match is_alone(at) {
        true => finding(at).cause.clone(),
        false => format!("{}-cell-{}", finding(at).cause, explanations[at.0].slot + 1),
    };
    let planned = campaign.planned.as_deref();
    let measured = match planned.map(|planned| Plan::joined(planned, &campaign.slots)) {
        Some(Ok(plan)) => Ok(plan),
        Some(Err(error)) => Err(format!("the plan in the record cannot be read: {error}")),
        None => Err("the campaign was not carried out by a plan".into()),
    };
    let beside = folder(Path::new(
        planned
            .and_then(|of| of.file.as_deref())
            .unwrap_or_default(),
    ));
    // From the root, so that a plan elsewhere finds the file.
    let place = |file: &str| {
        beside
            .join(file)
            .canonicalize()
            .map_or(file.into(), |found| found.display().to_string())
    };
    let experiment = |at: (usize, usize)| {
        let finding = finding(at);
        let plan = measured
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|measured| {
                let words = format!("without {}", finding.cause);
                let patch = finding
                    .patch
                    .as_ref()
                    .ok_or("no plan can make this change")?;
                let change = Change {
                    words: &words,
                    because: &finding.mechanism,
                    patch,
                    beside_plain: linerate_explain::is_beside_plain(&finding.cause),
                };
                linerate_plan::Proof::new(measured, explanations[at.0].slot, &change, &place)
                    .map_err(|faults| {
                        let faults = faults
                            .iter()
                            .map(|fault| fault.message.as_str())
                            .collect::<Vec<_>>();
                        format!("no plan can make this change here: {}", faults.join("; "))
                    })
            });
        Experiment {
            place: at,
            cause: finding.cause.clone(),
            name: name(at),
            plan,
        }
    };
    all.iter().copied().map(experiment).collect()
}

/// Writes the plans into a folder, each with its rule files. Returns their paths.
///
/// # Errors
/// A file cannot be written, or is there with another content.
pub fn write(experiments: &[Experiment], folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut plans = Vec::new();
    for Experiment { name, plan, .. } in experiments {
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => {
                tell(format!("{name}: {why}"));
                continue;
            }
        };
        let path = folder.join(format!("{name}.toml"));
        write_new(&path, &plan.text)?;
        for (name, text) in &plan.files {
            write_new(&folder.join(name), text)?;
        }
        plans.push(path);
    }
    Ok(plans)
}

/// Writes a file that is not there yet, or is the same.
fn write_new(path: &Path, text: &str) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", path.display()))
}

/// Runs the experiments that need nothing but the embedded lab of this machine, and puts the answer of each into its finding. Records
/// go beside those of the campaign. Returns false if it was interrupted.
pub fn prove(
    experiments: Vec<Experiment>,
    campaign: &Campaign,
    then: &HostFacts,
    directory: &Path,
    budget: Option<Duration>,
    explanations: &mut [Explanation],
) -> bool {
    run::begin(&CampaignArgs::default());
    let base = directory.parent().unwrap_or(directory);
    let number = experiments.len();
    for (at, experiment) in experiments.into_iter().enumerate() {
        let Experiment {
            place,
            cause,
            name,
            plan,
        } = experiment;
        let cell = campaign.name_of(explanations[place.0].slot);
        tell(format!(
            "experiment {} of {number}: {cell} without {cause}",
            at + 1
        ));
        let name = format!("{}-without-{name}", campaign.name);
        let allowed = || cheap(campaign, then).map_or(Ok(()), Err);
        let proof = match allowed().and(plan) {
            Ok(plan) => one(plan.campaign, &cause, name, base, budget)
                .unwrap_or_else(|error| Proof::not_run(told(&error))),
            Err(reason) => Proof::not_run(reason),
        };
        explanations[place.0].findings[place.1].proof = Some(proof);
        if interrupted() {
            return false;
        }
    }
    true
}

/// Why experiments of this campaign cannot simply be run here; `None` if they can.
fn cheap(campaign: &Campaign, then: &HostFacts) -> Option<String> {
    match campaign.asked.lab {
        LabKind::Simulated => Some("the DUT was simulated".into()),
        LabKind::Imported => Some("the campaign was measured elsewhere".into()),
        LabKind::Hosts => Some(
            "the DUT is another host: write the plan with --write-plans, and `linerate run` it"
                .into(),
        ),
        LabKind::Namespaces => {
            let changes = changes_of_machine(then, &host::facts(Path::new("/")));
            (!changes.is_empty()).then(|| {
                format!(
                    "this is not the machine that was measured: {}",
                    changes.join("; ")
                )
            })
        }
    }
}

/// Runs an experiment. The kernel is sampled without the change and with it: the rate alone does not tell whether the change removed the
/// cause.
fn one(
    mut plan: Plan,
    cause: &str,
    name: String,
    base: &Path,
    budget: Option<Duration>,
) -> Result<Proof> {
    if let Some(budget) = budget {
        plan.experiment.trials.budget_ns = Some(budget.as_nanos() as u64);
    }
    plan.collect.profile_ns = Some(PROFILE_NS);
    let wanted = Wanted::default();
    let Some(measured) = Session::new(&wanted, None, plan, None)?.measure(&wanted, name, base)?
    else {
        return Ok(Proof::not_run("interrupted"));
    };
    let finished = measured.finished;
    if let Some(failure) = finished.failure {
        return Err(failure);
    }
    let expected = finished
        .summary
        .expectations
        .first()
        .context("the plan expects something")?;
    let pair = expected.pairs.first();
    let ratio = pair.and_then(|pair| pair.estimate);
    let rate = |cell: usize| {
        Some(
            finished
                .summary
                .rows
                .iter()
                .find(|row| row.slot == cell)?
                .received,
        )
    };
    let rates = pair.and_then(|pair| Some((rate(pair.than?)?, rate(pair.of)?)));
    let records = finished.directory.display().to_string();
    let unmeasured = finished
        .summary
        .unmeasured
        .iter()
        .map(|u| format!("{} {}", u.name, u.why));
    let reasons: Vec<String> = expected.reasons.iter().cloned().chain(unmeasured).collect();
    let of_nothing =
        rates.and_then(|(before, after)| Proof::of_nothing(before, after, records.clone()));
    let not_run = || Proof {
        records: Some(records.clone()),
        ..Proof::not_run(reasons.join("; "))
    };
    let explained = |cell: Option<usize>| {
        let mut all = finished.summary.explanations.iter();
        all.find(|of| Some(of.slot) == cell)
    };
    let [then, now] = [pair.and_then(|pair| pair.than), pair.map(|pair| pair.of)].map(explained);
    Ok(match ratio {
        Some(ratio) => Proof::of(ratio, records).about(After::of(cause, then, now)),
        None => of_nothing.unwrap_or_else(not_run),
    })
}
