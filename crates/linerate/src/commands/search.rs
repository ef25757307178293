//! `linerate search`: the highest load that meets a goal, such as no loss.

use super::run::{self, Which};
use crate::args::{CampaignArgs, Headers, Share, directions, duration, families, names_of};
use crate::output::{result, usage};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::ArgPredicate;
use linerate_measure::experiment::{Measure, Method, Trials, WantedGoal};
use linerate_measure::record::Mode;
use linerate_measure::strategy::LEAST_FPS;
use linerate_plan::campaign::{Campaign, Lab};
use linerate_plan::rules::Families;
use linerate_plan::timetable::Timetable;
use linerate_plan::units::Rate;
use linerate_plan::{BuiltIn, duration_text, goal};
use linerate_report::pages;
use linerate_runner::input;
use linerate_runner::progress::Progress;
use linerate_runner::session::{Session, chosen, of_arguments};
use linerate_runner::testbed::hosts::Site;
use linerate_search::reference::Reference;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Bytes of a file of reference results at most.
const MOST_BYTES: usize = 64 << 20;
/// Exit status where a comparison with a reference differs.
const DIFFERS: u8 = 3;

#[derive(Debug, Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 10min, or twice the time that the goals take, if that is longer]")))]
#[command(after_help = "Examples:
  sudo linerate search                               NDR and PDR of this machine's forwarding, in some two minutes
  sudo linerate search --variant forwarding --variant nft-stateful      two DUTs, which take turns trial by trial
  sudo linerate search --goal pdr --width 1%         only PDR (at most 0.5 % loss), less precisely
  sudo linerate search --loss-curve --step 5%        the loss at falling loads, in steps of 5 %
  sudo linerate search --goal 0.1%:500ms:10s:0.5     a goal of your own
  sudo linerate search firewalls                     every cell of a plan
  linerate search --lab LAB.toml --max 5Mpps         the hosts of a real lab
  linerate search lab/forwarding --lab LAB.toml --max 5Mpps  every cell of a plan on these hosts
  linerate search --simulate rate=10kpps             without packets: a simulated DUT

Goals are LOSS:FINAL:SUM:EXCEED (RFC 9971). FINAL is the length of a full trial. Trials of the total length SUM decide
about a load: it is too high if trials that lose more than LOSS take more than the share EXCEED of SUM. ndr and pdr
choose the times by this machine: linerate first measures how often it stalls.
  ndr       no loss in half of the time        pdr       at most 0.5 % loss in half of the time
  rfc2544   no loss in a trial of 60 s         tst009    no loss in half of 120 s, trials of 60 s

A search uses the threaded lab, where the load does not wait for the DUT. docs/search.md has the method.

Exit status: 0 searched, even if a result is irregular; 1 an error, or a goal without a rate; 2 bad arguments;
3 --check found a difference; 4 everything is skipped; 130 interrupted (`linerate run --resume DIR` continues).")]
pub struct Search {
    /// A plan: a file, or a name that `linerate plan list` shows. Each of its cells is searched [default: the variants of --variant]
    #[arg(value_name = "PLAN", conflicts_with_all = ["variants", "size", "family", "flows", "direction", "ports", "addresses", "source_macs", "ipv6_share", "extension_headers"])]
    pub plan: Option<PathBuf>,

    /// Variant of the DUT (`linerate bench --help` lists them); may be repeated [default: forwarding]
    #[arg(long = "variant", value_name = "VARIANT")]
    pub variants: Vec<BuiltIn>,

    /// Frame length in bytes with FCS, or a mix: 64, 1518, imix
    #[arg(long, value_name = "SIZE", default_value = "64")]
    pub size: String,

    /// IP version: 4, 6 or both
    #[arg(long, value_parser = families(), default_value_if("extension_headers", ArgPredicate::IsPresent, "6"), default_value = "4")]
    pub family: Families,

    /// Flows (pairs of addresses and ports), up to 5,000,000
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: u32,

    /// Direction of the frames: forward, or both at once. Loads are those of each direction
    #[arg(long, value_name = "DIRECTION", value_parser = directions(), default_value = "forward")]
    pub direction: String,

    #[command(flatten)]
    pub headers: Headers,

    /// Goal of the search: ndr, pdr, rfc2544, tst009 or LOSS:FINAL:SUM:EXCEED (see below); may be repeated [default: ndr and pdr; ndr for
    /// bisection]
    #[arg(long = "goal", value_name = "GOAL", value_parser = wanted)]
    pub goals: Vec<WantedGoal>,

    /// Precision: the largest distance of the two bounds at the end, relative to the upper bound
    #[arg(long, value_name = "SHARE", default_value = "0.5%")]
    pub width: Share,

    /// The lowest load, in frames/s [default: 1kpps, or the plan's]
    #[arg(long, value_name = "RATE", value_parser = frames)]
    pub min: Option<f64>,

    /// The highest load, in frames/s: 5Mpps. Required with a lab file [default: 95 % of the rate of the tester alone]
    #[arg(long, value_name = "RATE", value_parser = frames)]
    pub max: Option<f64>,

    /// Search method: mlrsearch (RFC 9971), or bisection with one trial at each load, for comparisons
    #[arg(long, value_name = "METHOD", value_parser = names_of::<Method>(), default_value = "mlrsearch")]
    pub method: Method,

    /// With bisection: further trials with loss before a load counts as too high
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub verify: u32,

    /// Instead of a search, measure the loss at falling loads, down to two successive trials without loss (RFC 2544, 26.3)
    #[arg(long, conflicts_with_all = ["goals", "min", "method"])]
    pub loss_curve: bool,

    /// Step of the loss curve, as a share of the highest load
    #[arg(long, value_name = "SHARE", default_value = "10%", requires = "loss_curve")]
    pub step: Share,

    /// Length of the trials of ndr and pdr (shorter if this machine stalls often), and of a loss curve
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub duration: Duration,

    /// Compare this implementation with a file of reference results (docs/search.md), and measure nothing
    #[arg(long, value_name = "VECTORS", conflicts_with_all = ["plan", "variants", "goals", "min", "max", "lab"])]
    pub check: Option<PathBuf>,

    #[command(flatten)]
    pub which: Which,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}

/// Default time for all trials in nanoseconds, unless twice an undisturbed search takes longer.
const BUDGET_NS: u64 = 600_000_000_000;

fn wanted(text: &str) -> Result<WantedGoal, String> {
    goal::parse(text).map_err(|fault| fault.to_string())
}

fn frames(text: &str) -> Result<f64, String> {
    match text.parse::<Rate>() {
        Ok(Rate::Frames(fps)) if fps > 0.0 => Ok(fps),
        Ok(_) => Err(format!("'{text}' is not a number of frames a second: write 500kpps")),
        Err(fault) => Err(fault.to_string()),
    }
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not search.
pub fn run(args: &Search) -> Result<ExitCode> {
    if let Some(vectors) = &args.check {
        return check(args, vectors);
    }
    run::begin(&args.campaign);
    let (plan, site) = match &args.plan {
        Some(file) => chosen(&args.which.choice(), file, args.campaign.simulate.is_some())?,
        None => own(args)?,
    };
    let plan = searching(args, plan)?;
    let campaign = CampaignArgs {
        name: Some(args.campaign.name.clone().unwrap_or("search".into())),
        ..args.campaign.clone()
    };
    let session = Session::new(&campaign.wanted(), None, plan, site)?;
    if !args.campaign.quiet {
        session.tell_lengths();
    }
    run::carry_out(session, &campaign)
}

/// The plan of the options, without a plan's file, and the hosts of `--lab`.
fn own(args: &Search) -> Result<(Campaign, Option<Site>)> {
    let (family, factor) = run::family(args.family);
    let bytes = args.size.parse::<u32>().map_or(args.size.clone(), |bytes| format!("{bytes} B"));
    let names: Vec<&str> = args.variants.iter().map(|variant| variant.name.as_str()).collect();
    let names = if names.is_empty() { vec!["forwarding"] } else { names };
    let [headers, factors] = args.headers.lines();
    let mut rest = format!(
        "[traffic]\nfamily = \"{family}\"\nsize = {}\nflows = {}\ndirection = {}\n\
         {headers}{factor}{factors}[trials]\nduration = {}\nblocks = 10\n",
        json!(bytes),
        args.flows,
        json!(args.direction),
        json!(duration_text(args.duration.as_nanos() as u64)),
    );
    for name in names {
        rest += &format!("[variants.{}]\nfrom = {}\n", json!(name), json!(name));
    }
    of_arguments(&args.which.choice(), args.campaign.simulate.is_some(), |lab| {
        format!(
            "title = \"linerate search\"\nquestion = \"What is the highest load that meets the goals?\"\n\
             [lab]\n{lab}\n{rest}"
        )
    })
}

/// The plan with a search in place of its loads.
fn searching(args: &Search, mut plan: Campaign) -> Result<Campaign> {
    let hosts = matches!(plan.lab, Lab::File { .. });
    if hosts && args.max.is_none() {
        bail_usage!(
            "name the highest load with --max: with a lab file, linerate does not measure the tester without the DUT"
        );
    }
    match &mut plan.lab {
        Lab::Embedded { mode: Mode::EndHosts, .. } => {
            bail_usage!(
                "this plan measures TCP between end hosts: TCP chooses the load itself, so it cannot be searched"
            );
        }
        Lab::Embedded { mode, .. } => *mode = Mode::Threaded,
        Lab::File { .. } => {}
    }
    plan.cells.iter_mut().for_each(|cell| cell.rate = Rate::Max);
    let own = &plan.experiment.trials;
    let own_measure = own.measure;
    // The goals of a plan come before the usual ones.
    let goals = [&args.goals, &own.goals].into_iter().find(|goals| !goals.is_empty());
    // Bisection is for one goal.
    let usual = if args.method == Method::Bisection { &["ndr"][..] } else { &["ndr", "pdr"] };
    let usual = || usual.iter().filter_map(|name| goal::parse(name).ok()).collect();
    let goals = if args.loss_curve { Vec::new() } else { goals.cloned().unwrap_or_else(usual) };
    let trials = Trials {
        duration_ns: args.duration.as_nanos() as u64,
        budget_ns: args.campaign.budget.map(|budget| budget.as_nanos() as u64),
        seed: args.campaign.seed.or(own.seed),
        reboot: own.reboot,
        pause_ns: own.pause_ns,
        measure: if args.loss_curve { Measure::LossCurve } else { Measure::Search },
        goals,
        method: args.method,
        verify: args.verify,
        step: args.loss_curve.then_some(args.step.0),
        width: (!args.loss_curve).then_some(args.width.0),
        min_fps: args.min.or(own.min_fps),
        max_fps: args.max.or(own.max_fps),
        ..Trials::default()
    };
    if let Some(twice) = (1..trials.goals.len()).find(|at| trials.goals[..*at].contains(&trials.goals[*at])) {
        bail_usage!("--goal {} is given twice", trials.goals[twice].name);
    }
    if let (Method::Bisection, [_, second, ..]) = (trials.method, &trials.goals[..]) {
        bail_usage!("bisection searches for one goal, not also for {}: name one with --goal", second.name);
    }
    if args.verify > 0 && args.method != Method::Bisection {
        bail_usage!("--verify is for --method bisection: MLRsearch repeats trials by its goals");
    }
    if let Some(max) = trials.max_fps.filter(|max| trials.min_fps.is_none() && *max <= LEAST_FPS) {
        bail_usage!(
            "--max {max}pps is not above the lowest load, {LEAST_FPS}pps: name a lower one with --min"
        );
    }
    trials.check_goals().map_err(usage)?;
    plan.experiment.trials = trials;
    if args.campaign.budget.is_none() {
        let needed = Timetable::new(&plan).needed_ns;
        plan.experiment.trials.budget_ns = Some((2 * needed).max(BUDGET_NS));
    }
    // Expectations concern the plan's own loads.
    if own_measure == Measure::Rate {
        plan.experiment.expectations.clear();
    }
    Ok(plan)
}

/// Compares this implementation with reference results.
fn check(args: &Search, vectors: &std::path::Path) -> Result<ExitCode> {
    let name = vectors.display();
    let bytes = input::read(vectors, MOST_BYTES, ["file of reference results", ""])?;
    let reference: Reference = serde_json::from_slice(&bytes)
        .with_context(|| format!("{name} does not have the form of reference results (docs/search.md)"))?;
    let progress = Progress::of_files();
    let checks = reference.check(|part| progress.say(format!("searching: {part}")));
    drop(progress);
    // A file without results shows nothing.
    let different = checks.is_empty() || checks.iter().any(|check| !check.agrees);
    result(&args.campaign.printed, || &checks, || pages::search_check(&name.to_string(), &checks))?;
    Ok(if different { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}
