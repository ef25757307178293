//! `linerate plan`: experiments as files, read and shown, never run.

use super::run::hosts::rehearsal::rehearse;
use crate::cli::{Plan, PlanAction, Printed};
use crate::output::{FAILED, USAGE, faulty, print, result, usage};
use crate::{points, rule_files};
use anyhow::{Context, Result};
use linerate_linux::files;
use linerate_measure::strategy::first_blocks;
use linerate_plan as plan;
use linerate_plan::campaign::{Campaign, Lab as Where};
use linerate_plan::changes::changes;
use linerate_plan::lab::Lab;
use linerate_plan::schema::schema;
use linerate_plan::settings::System;
use linerate_plan::timetable::Timetable;
use linerate_plan::{Diagnostic, MOST_BYTES};
use linerate_report::document::Document;
use linerate_report::pages;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Blocks whose order is shown.
const BLOCKS_SHOWN: u32 = 3;

/// Runs the verb.
///
/// # Errors
/// A file that cannot be read.
pub fn run(args: &Plan) -> Result<ExitCode> {
    match &args.action {
        PlanAction::Check { files, printed } => check(files, printed),
        PlanAction::Show { file, quick, system, lab, printed } => {
            show_plan(file, *quick, *system, lab.as_deref(), printed)
        }
        PlanAction::Example { name } => example(name.as_deref()),
        PlanAction::List { printed } => list(printed),
        PlanAction::Schema => {
            print(&format!("{:#}\n", schema()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The plans that come with linerate: name and text.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The text of a shipped plan.
fn shipped(name: &Path) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| Path::new(shipped) == name).map(|(_, text)| *text)
}

/// Reads a plan: a file, or else a shipped plan by its name (which records may have as well: a folder is no file).
///
/// # Errors
/// The file cannot be read.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    if let Some(text) = shipped(file).filter(|_| !file.exists() || file.is_dir()) {
        return Ok(text.into());
    }
    let reading = || {
        let hint = if file.components().count() == 1 && file.extension().is_none() {
            " (`linerate plan list` has the names of those that come with linerate)"
        } else {
            ""
        };
        format!("cannot read the plan {}{hint}", file.display())
    };
    files::read(file, MOST_BYTES).with_context(reading)
}

/// As [`read`], and `-` is standard input: a plan that is only looked at needs no place beside its lab file.
fn read_any(file: &Path) -> Result<Vec<u8>> {
    if points::is_stdin(file) { points::read_stdin(MOST_BYTES) } else { read(file) }
}

/// Takes a plan apart that was read from here: rule files that it names are beside it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(file: &Path, bytes: &[u8]) -> std::result::Result<plan::Plan, Vec<Diagnostic>> {
    let folder = file.parent().unwrap_or(Path::new(""));
    plan::Plan::read_with(bytes, &mut |name| rule_files::text(&folder.join(name)))
}

/// The form of a plan that is asked for, on a system.
///
/// # Errors
/// It is not for that system, or has no quick form.
pub fn campaign<'p>(
    plan: &'p plan::Plan,
    name: &str,
    system: Option<System>,
    quick: bool,
) -> Result<&'p Campaign> {
    let system = system.unwrap_or(plan.systems()[0]);
    if quick && !plan.has_quick() {
        return Err(usage(format!("{name} has no quick form: add [quick]")));
    }
    plan.campaign(system, quick).ok_or_else(|| {
        let names: Vec<&str> = plan.systems().iter().map(|s| s.key()).collect();
        usage(format!("{name} is not for {system}: it is for {}", names.join(", ")))
    })
}

fn example(name: Option<&Path>) -> Result<ExitCode> {
    let unknown = |name: &Path| {
        usage(format!("no plan '{}' comes with linerate: `linerate plan list` names them", name.display()))
    };
    print(match name {
        None => plan::EXAMPLE,
        Some(name) => shipped(name).ok_or_else(|| unknown(name))?,
    });
    Ok(ExitCode::SUCCESS)
}

fn list(how: &Printed) -> Result<ExitCode> {
    let plans: Vec<(&str, plan::Plan)> = SHIPPED
        .iter()
        .map(|(name, text)| {
            let plan = plan::Plan::read(text.as_bytes());
            (*name, plan.unwrap_or_else(|faults| unreachable!("the tests check shipped plans: {faults:?}")))
        })
        .collect();
    let record = || {
        let one = |(name, plan): &(&str, plan::Plan)| {
            let systems = plan.systems();
            let campaign = |quick| plan.campaign(systems[0], quick);
            let seconds = |quick| campaign(quick).map(|c| Timetable::new(c).total_ns / 1_000_000_000);
            json!({
                "name": name, "title": plan.title(), "systems": systems, "seconds": seconds(false),
                "quick_seconds": seconds(true), "source": campaign(false).and_then(|c| c.source.clone()),
            })
        };
        plans.iter().map(one).collect::<Vec<_>>()
    };
    result(how, record, || pages::plan_list(&plans))?;
    Ok(ExitCode::SUCCESS)
}

fn check(files: &[PathBuf], how: &Printed) -> Result<ExitCode> {
    let (mut faulty, mut unreadable) = (false, false);
    let (mut listed, mut page) = (Vec::new(), Document::default());
    if files.iter().filter(|file| points::is_stdin(file)).count() > 1 {
        return Err(usage("standard input (-) can be read once only"));
    }
    for file in files {
        let bytes = match read_any(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("linerate: {error:#}");
                unreadable = true;
                continue;
            }
        };
        let name = points::name(file);
        let (told, plan) = match parse(file, &bytes) {
            Ok(plan) => (plan.remarks().to_vec(), Some(plan)),
            Err(faults) => (faults, None),
        };
        faulty |= plan.is_none();
        page.append(pages::diagnostics(&name, &told));
        listed.extend(told.into_iter().map(|one| one.of(&*name)));
        if let Some(plan) = plan {
            page.append(pages::plan_line(&name, &plan));
        }
    }
    result(how, || listed, || page)?;
    Ok(match (faulty, unreadable) {
        (true, _) => ExitCode::from(USAGE),
        (false, true) => ExitCode::from(FAILED),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn show_plan(
    file: &Path,
    quick: bool,
    system: Option<System>,
    lab: Option<&Path>,
    how: &Printed,
) -> Result<ExitCode> {
    let name = points::name(file);
    let plan = parse(file, &read_any(file)?).map_err(|faults| faulty(&name, &faults))?;
    let lab = lab.map(super::run::hosts::read).transpose()?;
    let of_lab = |lab: &Lab| lab.dut()?.system?.of_plans();
    let campaign = campaign(&plan, &name, system.or(lab.as_ref().and_then(of_lab)), quick)?;
    if lab.is_some() && !matches!(campaign.lab, Where::File { .. }) {
        return Err(usage(format!(
            "{name} is for the embedded lab of this machine: --lab has no meaning for it"
        )));
    }
    let folder = super::run::hosts::folder(file);
    let rehearsed = lab.as_ref().map(|lab| rehearse(campaign, lab, folder)).transpose()?;
    // Without a seed in the plan, the run draws one; an example shows what an order looks like.
    let blocks = first_blocks(campaign, campaign.trials.seed.unwrap_or(1), BLOCKS_SHOWN);
    let record = || {
        json!({
            "campaign": campaign,
            "timetable": Timetable::new(campaign),
            "first_blocks": blocks,
            "changes": changes(campaign),
            "hosts": rehearsed,
            "remarks": plan.remarks(),
        })
    };
    let page = || {
        let mut page = pages::plan(&plan, campaign, &blocks);
        rehearsed.iter().for_each(|parts| page.append(pages::rehearsal(parts)));
        page
    };
    result(how, record, page)?;
    Ok(ExitCode::SUCCESS)
}
