//! `linerate plan`: experiments as files, read and shown, never run.

use crate::output::faulty;
use crate::prelude::*;
use linerate_measure::experiment::System;
use linerate_measure::record::Direction;
use linerate_measure::strategy::first_blocks;
use linerate_plan as plan;
use linerate_plan::campaign::Campaign;
use linerate_plan::changes::changes;
use linerate_plan::lab::Lab;
use linerate_plan::schema::schema;
use linerate_plan::timetable::Timetable;
use linerate_runner::plans::{SHIPPED, campaign, check_lab, parse, read, shipped};
use linerate_runner::testbed::hosts::rehearsal::rehearse;
use linerate_runner::testbed::hosts::{bytes_of_lab, folder, read as read_lab};

#[derive(Args)]
#[command(after_help = "Examples:
  linerate plan list                           the plans that come with linerate, by name
  linerate plan show firewalls                 cells, schedule, duration, and every change on every host
  linerate plan show firewalls --quick
  linerate plan show lab/firewalls --lab LAB.toml    the same, and each command on each host
  linerate plan example > my.toml              a commented plan to begin with
  linerate plan example firewalls > my.toml    a plan that comes with linerate
  linerate plan check my.toml                  every fault of it and of its lab file, with line, column and remedy
  linerate plan schema > plan.schema.json      for editors that complete and check TOML

None of these commands runs a plan or changes anything.

Exit status: 0 no faults; 1 a file cannot be read; 2 a plan or a lab file has faults, or bad arguments.")]
pub struct Plan {
    #[command(subcommand)]
    action: PlanAction,
}

/// Verbs of plans.
#[derive(Subcommand)]
pub enum PlanAction {
    /// List all faults of plans and of the lab files that they name: file, line, column and remedy
    Check {
        /// Plans; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Check this lab file, instead of those that the plans name
        #[arg(long, value_name = "FILE")]
        lab: Option<PathBuf>,
        #[command(flatten)]
        printed: Printed,
    },
    Show(ShowPlan),
    /// List the plans that come with linerate, most of them of published experiments
    List {
        #[command(flatten)]
        printed: Printed,
    },
    /// Print a commented plan to begin with, or a plan that comes with linerate
    Example {
        /// A name that `plan list` shows
        #[arg(value_name = "NAME")]
        name: Option<PathBuf>,
    },
    /// Print the JSON Schema of plans
    Schema,
}

/// Print what a plan will do: cells (a variant with its traffic), schedule, duration, changes, needs and expectations
#[derive(Args)]
pub struct ShowPlan {
    /// The plan: a file, - for standard input, or a name that `plan list` shows
    #[arg(value_name = "PLAN")]
    file: PathBuf,
    /// Show the short form that the plan defines
    #[arg(long)]
    quick: bool,
    /// Operating system of the DUT, if the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = names_of::<System>())]
    system: Option<System>,
    /// Show the commands on the hosts of this lab file, instead of the one that the plan names, without connecting to them
    #[arg(long, value_name = "FILE")]
    lab: Option<PathBuf>,
    /// Print the text of linerate's scripts in these commands, too
    #[arg(long)]
    scripts: bool,
    #[command(flatten)]
    printed: Printed,
}

/// Blocks whose order is shown.
const BLOCKS_SHOWN: u32 = 3;

/// Runs the verb.
///
/// # Errors
/// A file that cannot be read.
pub fn run(args: &Plan) -> Exit {
    match &args.action {
        PlanAction::Check {
            files,
            lab,
            printed,
        } => check(files, lab.as_deref(), printed),
        PlanAction::Show(args) => show_plan(args),
        PlanAction::Example { name } => example(name.as_deref()),
        PlanAction::List { printed } => list(printed),
        PlanAction::Schema => all_of(&format!("{:#}\n", schema())),
    }
}

fn example(name: Option<&Path>) -> Exit {
    let unknown = |name: &Path| {
        usage(format!(
            "no plan '{}' comes with linerate: `linerate plan list` names them",
            name.display()
        ))
    };
    all_of(match name {
        None => plan::EXAMPLE,
        Some(name) => shipped(name).ok_or_else(|| unknown(name))?,
    })
}

fn list(how: &Printed) -> Exit {
    let plans: Vec<(&str, plan::Plan)> = SHIPPED
        .iter()
        .map(|(name, text)| {
            let plan = plan::Plan::read(text.as_bytes());
            (
                *name,
                plan.unwrap_or_else(|faults| {
                    unreachable!("the tests check shipped plans: {faults:?}")
                }),
            )
        })
        .collect();
    let record = || {
        let one = |(name, plan): &(&str, plan::Plan)| {
            let systems = &plan.systems;
            let campaign = |quick| plan.campaign(systems[0], quick);
            let seconds =
                |quick| campaign(quick).map(|c| Timetable::new(c).total_ns / 1_000_000_000);
            json!({
                "name": name, "title": plan.title, "systems": systems, "seconds": seconds(false),
                "quick_seconds": seconds(true), "source": campaign(false).and_then(|c| c.experiment.source.clone()),
            })
        };
        plans.iter().map(one).collect::<Vec<_>>()
    };
    result(how, record, || pages::plan_list(&plans))
}

/// The lab file of a plan for hosts: the one that is given, or else the one that the plan names.
fn lab_of(plan: &plan::Plan, file: &Path, given: Option<&Path>) -> Option<PathBuf> {
    match &plan.campaign(plan.systems[0], false)?.lab {
        plan::campaign::Lab::Embedded { .. } => None,
        plan::campaign::Lab::File { path, .. } => {
            Some(given.map_or_else(|| folder(file).join(path), Into::into))
        }
    }
}

/// Whether the tools that a lab file names can send and count as a plan wants it.
fn check_tools(plan: &Campaign, lab: &Lab) -> Result<()> {
    let both = plan
        .kinds
        .iter()
        .any(|kind| kind.direction == Direction::Both);
    match lab.both_ways(|host| host.tool).map_err(usage) {
        Err(why) if both => Err(why),
        _ => Ok(()),
    }
}

/// Whether a plan is one that comes with linerate: the lab file that it names is an example.
fn is_shipped(file: &Path) -> bool {
    !input::is_stdin(file) && !file.is_file()
}

fn check(files: &[PathBuf], lab: Option<&Path>, how: &Printed) -> Exit {
    let (mut faulty, mut unreadable) = (false, false);
    let (mut listed, mut page) = (Vec::new(), Document::default());
    let mut labs: Vec<PathBuf> = Vec::new();
    if files.iter().filter(|file| input::is_stdin(file)).count() > 1 {
        bail_usage!("standard input (-) can be read once only");
    }
    for file in files {
        let bytes = match read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                tell(told(&error));
                unreadable = true;
                continue;
            }
        };
        let name = input::name(file);
        let (told, plan) = match parse(file, &bytes) {
            Ok(plan) => {
                let full = plan.campaign(plan.systems[0], false);
                let of_tuning = full.map_or(Vec::new(), plan::Tuning::warnings);
                ([plan.remarks.clone(), of_tuning].concat(), Some(plan))
            }
            Err(faults) => (faults, None),
        };
        faulty |= plan.is_none();
        page.append(pages::diagnostics(&name, &told));
        listed.extend(told.into_iter().map(|one| one.of(&*name)));
        if let Some(plan) = plan {
            page.say(pages::plan_line(&name, &plan));
            let first = plan.campaign(plan.systems[0], false);
            first.map_or(Ok(()), |of| check_lab(of, &name, lab.is_some()))?;
            let own = lab_of(&plan, file, lab);
            let read = own.as_deref().and_then(|own| read_lab(own).ok());
            if let (Some(of), Some(lab)) = (first, &read) {
                check_tools(of, lab)?;
            }
            labs.extend(own.filter(|own| own.exists() || lab.is_some() || !is_shipped(file)));
        }
    }
    labs.dedup();
    for file in &labs {
        let bytes = match bytes_of_lab(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                tell(told(&error));
                unreadable = true;
                continue;
            }
        };
        let name = input::name(file);
        let (told, lab) = match Lab::read(&bytes) {
            Ok(lab) => (lab.remarks.clone(), Some(lab)),
            Err(faults) => (faults, None),
        };
        faulty |= lab.is_none();
        page.append(pages::diagnostics(&name, &told));
        listed.extend(told.into_iter().map(|one| one.of(&*name)));
        if let Some(lab) = lab {
            page.say(pages::lab_line(&name, &lab));
        }
    }
    result(how, || listed, || page)?;
    exit(match (faulty, unreadable) {
        (true, _) => USAGE,
        (false, true) => FAILED,
        (false, false) => SUCCESS,
    })
}

fn show_plan(args: &ShowPlan) -> Exit {
    let ShowPlan {
        file,
        quick,
        system,
        lab: asked,
        scripts,
        printed,
    } = args;
    let name = input::name(file);
    let plan = parse(file, &read(file)?).map_err(|faults| faulty(&name, &faults))?;
    let of_plan = lab_of(&plan, file, None).filter(|_| asked.is_none());
    if let Some(absent) = of_plan
        .as_ref()
        .filter(|lab| !lab.exists() && !is_shipped(file))
    {
        tell(format!(
            "{name} names the lab file {}, which is not there: the commands on its hosts are not shown",
            absent.display()
        ));
    }
    let named = asked.clone().or(of_plan.filter(|lab| lab.exists()));
    let lab = named.as_deref().map(read_lab).transpose()?;
    let of_lab = |lab: &Lab| lab.dut()?.system?.of_plans();
    let campaign = campaign(
        &plan,
        &name,
        system.or(lab.as_ref().and_then(of_lab)),
        *quick,
    )?;
    check_lab(campaign, &name, lab.is_some())?;
    lab.as_ref()
        .map_or(Ok(()), |lab| check_tools(campaign, lab))?;
    let rehearsed = lab
        .as_ref()
        .map(|lab| rehearse(campaign, lab, folder(file)))
        .transpose()?;
    // Without a seed in the plan, the run draws one; seed 1 shows an example of an order.
    let design = campaign.design(campaign.experiment.trials.seed.unwrap_or(1));
    let blocks = Timetable::new(campaign).blocks.min(BLOCKS_SHOWN.into()) as u32;
    let blocks = first_blocks(design, blocks);
    let record = || {
        json!({
            "campaign": campaign,
            "timetable": Timetable::new(campaign),
            "first_blocks": blocks,
            "changes": changes(campaign),
            "hosts": rehearsed,
            "remarks": plan.remarks,
        })
    };
    let page = || {
        let named = named.as_deref().map(input::name);
        let site = named.as_deref().zip(lab.as_ref());
        let mut page = pages::plan(&plan, campaign, &blocks, site);
        rehearsed
            .iter()
            .for_each(|parts| page.append(pages::rehearsal(parts, *scripts)));
        page
    };
    result(printed, record, page)
}
