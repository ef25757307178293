//! A campaign that was stopped goes on, where nothing has changed since that its rates depend on.

use super::{Choice, Session, Wanted, open_site};
use crate::messages::tell;
use crate::plans;
use anyhow::{Context, Result, bail};
use linerate_linux::records::{RecordStore, StoredCampaign};
use linerate_measure::experiment::{Measure, Order, Trials};
use linerate_measure::record::{
    Campaign, HostFacts, LabKind, Planned, Skipped, Stopped, Summary, TrialRecord,
};
use linerate_plan::campaign::{Campaign as Plan, Lab};
use linerate_report::pages;
use std::path::Path;
use std::time::Duration;

impl Session {
    /// A campaign that was stopped.
    pub fn resumed(choice: &Choice, wanted: &Wanted, directory: &Path) -> Result<Session> {
        let (store, mut stored) = RecordStore::reopen(directory)?;
        let shown = directory.display();
        if let Some(budget) = wanted.budget {
            extend(&mut stored, budget)?;
        }
        let Some(planned) = stored.campaign.planned.as_deref() else {
            bail_usage!(
                "{shown} cannot be resumed: it was not started by `linerate run`, `linerate bench`, `linerate search`, `linerate bisect` or `linerate rfc2544`"
            );
        };
        let plan = Plan::joined(planned, &stored.campaign.slots)
            .with_context(|| format!("reading the plan in {shown}"))?;
        let Planned { file, skipped, .. } = planned.clone();
        let ended =
            |summary: &&Summary| !matches!(summary.stopped, Stopped::Interrupted | Stopped::Failed);
        let extended =
            |summary: &&Summary| wanted.budget.is_some() && summary.stopped == Stopped::Budget;
        if let Some(summary) = stored
            .summary
            .as_ref()
            .filter(|summary| ended(summary) && !extended(summary))
        {
            if summary.stopped == Stopped::Budget && goes_on(&plan.experiment.trials) {
                bail_usage!("{}", pages::going_on(&plan, &shown.to_string()));
            }
            bail_usage!(
                "this campaign is complete, for {}: `linerate show {shown}` prints it, `linerate {}` begins a new one",
                summary.ended(),
                file.as_ref()
                    .map_or(verb(&stored.campaign).into(), |file| format!("run {file}"))
            );
        }
        let simulated = wanted.simulate.is_some();
        if simulated != (stored.campaign.asked.lab == LabKind::Simulated) {
            bail_usage!(
                "a simulated campaign is resumed with its --simulate, and others without it"
            );
        }
        if let Some(file) = &file {
            check_unchanged_plan(Path::new(file), &plan)?;
        }
        plans::check_lab(&plan, &shown.to_string(), choice.lab.is_some())?;
        let site = match &plan.lab {
            Lab::File { path, .. } if !simulated => {
                let file = Path::new(file.as_deref().unwrap_or_default());
                Some(open_site(choice, file, path, &plan)?)
            }
            _ => None,
        };
        let batch = Some(stored.campaign.asked.batch);
        let session = Session::with_batch(wanted, file, plan, site, batch)?;
        let changes = session.changes(&stored, &skipped);
        if !changes.is_empty() {
            bail!(
                "something has changed since the campaign began, so its rates cannot be compared: {}; start a new campaign",
                changes.join("; ")
            );
        }
        Ok(Session {
            earlier: Some((store, stored)),
            ..session
        })
    }

    /// Changes since a campaign began: of the machine, of the lab, and of the cells that can be measured there.
    fn changes(&self, stored: &StoredCampaign, skipped: &[Skipped]) -> Vec<String> {
        let mut changes = changes_of_machine(&stored.host, &self.facts);
        let then = &stored.campaign.standing;
        let new = self
            .prepared
            .standing
            .iter()
            .filter(|(what, now)| then.get(*what) != Some(now));
        changes.extend(new.map(|(what, now)| format!("in the lab, {what} is now {now}")));
        let cells = |skipped: &[Skipped]| skipped.iter().map(|s| s.cell).collect::<Vec<_>>();
        let (then, now) = (cells(skipped), cells(&self.prepared.skipped));
        if then != now {
            // A ceiling is skipped when all its cells are: they have the reason.
            let is_new =
                |s: &&Skipped| !self.prepared.plan.is_ceiling(s.cell) && !then.contains(&s.cell);
            let reason = self
                .prepared
                .skipped
                .iter()
                .filter(is_new)
                .flat_map(|s| &s.reasons)
                .next();
            changes.push(format!(
                "{} cells were skipped and {} are now{}",
                then.len(),
                now.len(),
                reason.map_or(String::new(), |reason| format!(" ({reason})"))
            ));
        }
        changes
    }
}

/// Whether a larger budget would leave the answer as it is.
fn goes_on(trials: &Trials) -> bool {
    trials.measure != Measure::Rate || trials.order == Order::Bisection
}

/// Gives a search, tests or a bisection that were stopped another time for all trials.
fn extend(stored: &mut StoredCampaign, budget: Duration) -> Result<()> {
    let Some(planned) = &mut stored.campaign.planned else {
        return Ok(());
    };
    let trials = &mut planned.experiment.trials;
    if !goes_on(trials) {
        bail_usage!(
            "--budget: the intervals of this campaign depend on looks at shares of its own budget; begin a new campaign to change the budget"
        );
    }
    let used = Duration::from_nanos(stored.trials.last().map_or(0, TrialRecord::ended_ns));
    if budget <= used {
        bail_usage!(
            "--budget is the time for all trials, and the recorded ones took {:.1} s: name a longer time",
            used.as_secs_f64()
        );
    }
    trials.extended_ns = Some(budget.as_nanos() as u64);
    Ok(())
}

/// Differences between two machines, or one at two times, that rates depend on.
pub fn changes_of_machine(then: &HostFacts, now: &HostFacts) -> Vec<String> {
    let facts = |f: &HostFacts| {
        [
            ("kernel", f.kernel.clone()),
            ("machine", f.machine.clone()),
            ("CPU", f.cpu_model.clone()),
            ("CPUs", f.cpus.to_string()),
            ("hypervisor", f.hypervisor.clone().unwrap_or_default()),
            ("governor", f.governor.clone()),
        ]
    };
    let pairs = facts(then).into_iter().zip(facts(now));
    let differ = pairs.filter(|((_, then), (_, now))| then != now);
    differ
        .map(|((what, then), (_, now))| format!("the machine's {what} was '{then}' and is '{now}'"))
        .collect()
}

/// The verb that a campaign without a plan's file was begun by.
fn verb(campaign: &Campaign) -> &str {
    let verbs = ["bench", "search", "bisect", "rfc2544"];
    let begun = campaign
        .asked
        .command
        .iter()
        .find(|word| verbs.contains(&word.as_str()));
    begun.map_or("bench", String::as_str)
}

/// Refuses a plan's file that no longer gives the recorded plan.
fn check_unchanged_plan(file: &Path, then: &Plan) -> Result<()> {
    let name = file.display();
    let Ok(bytes) = plans::read(file) else {
        tell(format!(
            "{name} cannot be read any more: continuing with the recorded plan"
        ));
        return Ok(());
    };
    let now = plans::parse(file, &bytes).ok();
    let now = now
        .as_ref()
        .and_then(|now| now.campaign(then.experiment.system, then.experiment.quick))
        .cloned();
    let same = now.is_some_and(|mut now| {
        // The command line may have set these.
        let (trials, recorded) = (&mut now.experiment.trials, &then.experiment.trials);
        trials.seed = recorded.seed;
        trials.extended_ns = recorded.extended_ns;
        (trials.budget_ns, trials.blocks) = (recorded.budget_ns, recorded.blocks);
        // The hosts may have told it.
        now.experiment.link_speed = now.experiment.link_speed.or(then.experiment.link_speed);
        // A comment is no change.
        now.source.clone_from(&then.source);
        now == *then
    });
    if !same {
        bail_usage!(
            "{name} has changed since this campaign began, or a rule file that it names has, and its trials would not belong together: put the plan back, or begin a new campaign",
        );
    }
    Ok(())
}
