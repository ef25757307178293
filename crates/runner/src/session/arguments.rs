//! Campaigns that arguments describe.

use super::*;

/// The faults of a plan's arguments.
pub fn told(mut faults: Vec<Diagnostic>) -> anyhow::Error {
    if faults.iter().any(|fault| fault.place.is_none()) {
        faults.retain(|fault| fault.place.is_none());
    }
    usage(
        faults
            .iter()
            .map(Diagnostic::to_string)
            .collect::<Vec<_>>()
            .join("\nlinerate: "),
    )
}

/// The campaign of a plan that is made of arguments, and the hosts of `--lab`, if there are any.
///
/// # Errors
/// The faults of the arguments, or the reason why the lab cannot be measured.
pub fn of_arguments(
    choice: &Choice,
    simulated: bool,
    plan: Source,
) -> Result<(Plan, Option<Site>)> {
    let read = |plan: &Source, system| -> Result<Plan> {
        let none = &mut |_: &str| Err("there is no folder that a rule file could be in".into());
        let plan = linerate_plan::Plan::of(plan, none).map_err(told)?;
        let Some(mut campaign) = plan.campaign(system, choice.quick).cloned() else {
            bail_usage!("--quick is the quick form of a plan: name a plan");
        };
        campaign.name_by_frames();
        Ok(campaign)
    };
    let Some(file) = &choice.lab else {
        if choice.system.is_some() {
            bail_usage!("--system is for the DUT of a lab of hosts: name its lab file with --lab");
        }
        return Ok((read(&plan, System::Linux)?, None));
    };
    let lab = hosts::read(file)?;
    let on = |system: System| {
        let mut plan = plan.clone();
        plan.remove(&["lab", "mode"]);
        plan.set("--lab", &["lab", "file"], file.display().to_string());
        plan.set("--system", &["lab", "systems"], [system.name()]);
        read(&plan, system)
    };
    let stated = lab.dut().and_then(|dut| dut.system?.of_plans());
    let plan = on(choice.system.or(stated).unwrap_or_default())?;
    if simulated {
        return Ok((in_lab(plan, Some(&lab)), None));
    }
    let site = Site::open(
        choice.approach.clone(),
        Path::new(""),
        file,
        &plan.experiment.trials,
    )?;
    let found = hosts::system(choice.system, &site, &System::all().collect::<Vec<_>>())?;
    Ok((found.map_or(Ok(plan), on)?, Some(site)))
}
