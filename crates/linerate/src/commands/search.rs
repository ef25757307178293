//! `linerate search`: the highest load that meets a goal, such as no loss.

use super::run::{self, Which};
use crate::args::HEADERS;
use crate::args::keyed::{Keys, Opt, Verb, key, levels, stands_for};
use crate::prelude::*;
use clap::builder::ArgPredicate;
use linerate_plan::{Keyed, Source};
use linerate_runner::session::{Session, chosen, of_arguments};
use linerate_search::reference::Reference;

/// Bytes of a file of reference results at most.
const MOST_BYTES: usize = 64 << 20;
/// Exit status where a comparison with a reference differs.
const DIFFERS: u8 = 3;

/// Options of `search` that are keys of a plan.
#[derive(Debug)]
pub struct Options;

impl Verb for Options {
    const OPTIONS: &'static [&'static [Opt]] = &[
        &[
            key("--connections", "traffic.connections", "KIND").alone("request"),
            key("--object", "traffic.object", "BYTES").about(
                "Bytes of the server's answer on each connection: at most 1,440 [default: 6, a frame of 64 bytes]",
            ),
            key("--flood", "traffic.flood", "RATE"),
            key("--sizes", "traffic.size", "SIZE"),
            key("--flows", "traffic.flows", "N"),
            key("--direction", "traffic.direction", "DIRECTION"),
        ],
        &HEADERS,
        &[
            key("--goal", "trials.goals", "GOAL").many().about(
                "The goals (see below): ndr, pdr, rfc2544, tst009 or LOSS:FINAL:SUM:EXCEED [default: ndr and pdr; ndr for a binary search]",
            ),
            key("--width", "trials.width", "SHARE"),
            key("--min", "trials.min-load", "RATE"),
            key("--max", "trials.max-load", "RATE"),
            key("--method", "trials.method", "METHOD"),
            key("--verify", "trials.verify", "N").about(
                "In a binary search: after a trial with loss, repeat it up to N times. The load counts as too high only if all repeats lose frames [default: 0]",
            ),
            key("--step", "trials.step", "SHARE").about(
                "With --loss-curve: step between loads, as a share of the highest load [default: 10 %]",
            ),
            key("--duration", "trials.duration", "TIME").usual("1s").about(
                "Length of each trial of a loss curve, and of the deciding trials (FINAL, see below) of the goals ndr and pdr. Where this machine stalls, trials are shorter. Other goals have their own times",
            ),
            key("--cpus", "lab.generator-cpus", "LIST"),
            key("--dut-cpus", "lab.dut-cpus", "LIST"),
        ],
    ];
    const OWN: &'static [Keyed] = &[
        stands_for("--family", "traffic.family"),
        stands_for("--budget", "trials.budget"),
    ];
}

#[derive(Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 10min, or twice the time that the goals take, if that is longer]")))]
#[command(mut_arg("step", |arg| arg.requires("loss_curve")))]
#[command(after_help = "Examples:
  sudo linerate search                               NDR and PDR of this machine, in some two minutes
  sudo linerate search --variant forwarding --variant nft-stateful    two DUTs in turns, trial by trial
  sudo linerate search --goal pdr --width 1%         only the PDR, less precisely
  sudo linerate search --loss-curve --step 5%        the loss at falling loads, in steps of 5 %
  sudo linerate search --goal 0.1%:500ms:10s:0.5     a goal of your own
  sudo linerate search --connections request         NDR and PDR in new connections a second
  sudo linerate search --connections request --flood 20kpps     the same under a flood of SYNs
  sudo linerate search firewalls                     every cell of a plan
  linerate search --lab LAB.toml --max 5Mpps         the hosts of a real lab
  linerate search lab/forwarding --lab LAB.toml --max 5Mpps  every cell of a plan on these hosts
  linerate search --simulate rate=10kpps             without packets: a simulated DUT

A goal is LOSS:FINAL:SUM:EXCEED (RFC 9971). LOSS is the loss ratio that a trial may have, FINAL the length of the
deciding trials, SUM their total length at one load, and EXCEED the share of SUM that may have more loss. A load
is too high if the trials that lost more than LOSS last longer, together, than EXCEED times SUM. The named goals:
  ndr       LOSS 0, EXCEED 0.5; FINAL is --duration, less where this machine stalls; SUM is 21 times FINAL
  pdr       LOSS 0.5 %, otherwise as ndr
  rfc2544   LOSS 0 in one trial of 60 s
  tst009    ETSI TST 009: LOSS 0, EXCEED 0.5, two trials of 60 s

So the NDR is not free of loss: together, the trials that lose frames may make up half of SUM.

First, trials of at most 1 s load the DUT with 1 %, 10 % and 50 % of the rate that it forwards at the highest
load. A DUT that loses frames in six successive trials at one of these loads is unstable: linerate then
refuses goals with LOSS 0, and advises pdr.

A search uses the threaded lab, where the load does not wait for the DUT. docs/search.md has the method.

Exit status: 0 each goal has a lower bound, even if an upper bound is missing or --width was not reached (an irregular
result, RFC 9971); 1 an error, or a goal that was refused or has no
lower bound; 2 bad arguments; 3 --check found a difference, an expectation was missed, or --fail-if-slower found a slower
variant; 4 no variant can be measured here; 5 an expectation or --fail-if-slower is undecided; 130 interrupted (`linerate run --resume DIR` continues).")]
pub struct Search {
    /// A plan: a file, or a name that `linerate plan list` shows. Each of its cells gets a search [default: the variants of
    /// --variant]
    #[arg(value_name = "PLAN", conflicts_with_all = ["variants", "sizes", "family", "flows", "direction", "ports", "addresses", "source-macs", "ipv6-share", "extension-headers"])]
    plan: Option<PathBuf>,

    /// Variant of the DUT (`linerate bench --help` lists them); may be repeated [default: forwarding]
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<BuiltIn>,

    /// IP version: 4, 6 or both [default: 4; 6 with --extension-headers]
    #[arg(long, value_parser = families(), default_value_if("extension-headers", ArgPredicate::IsPresent, "6"), default_value = "4", hide_default_value = true)]
    family: Families,

    #[command(flatten)]
    keys: Keys<Options>,

    /// Instead of a search, measure the loss at falling loads, down to two successive trials without loss (RFC 2544, 26.3)
    #[arg(long, conflicts_with_all = ["goal", "min", "method", "width"])]
    loss_curve: bool,

    /// Compare this implementation with a file of reference results (docs/search.md), and measure nothing
    #[arg(long, value_name = "VECTORS", conflicts_with_all = ["plan", "variants", "goal", "min", "max", "lab"])]
    check: Option<PathBuf>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    campaign: CampaignArgs,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not search.
pub fn run(args: &Search) -> Exit {
    if let Some(vectors) = &args.check {
        return check(args, vectors);
    }
    run::begin(&args.campaign);
    let (choice, simulated) = (args.which.choice(), args.campaign.simulate.is_some());
    let (plan, site) = match &args.plan {
        Some(file) => chosen(&choice, file, simulated, |plan| {
            *plan = args.keys.over(std::mem::take(plan));
            searching(args, plan);
            Ok(())
        })?,
        None => of_arguments(&choice, simulated, own(args))?,
    };
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

/// The plan of the options, without a plan's file.
fn own(args: &Search) -> Source {
    let mut plan = args.keys.over(Source::default());
    plan.set("", &["title"], "linerate search");
    plan.set(
        "",
        &["question"],
        "What is the highest load that meets the goals?",
    );
    levels(
        &mut plan,
        "--family",
        "traffic.family",
        &run::versions(args.family),
    );
    run::set_variants(&mut plan, &args.variants);
    searching(args, &mut plan);
    plan
}

/// Puts a search in the place of a plan's loads.
fn searching(args: &Search, plan: &mut Source) {
    // Expectations concern the plan's own loads.
    if plan
        .text(&["trials", "measure"])
        .is_none_or(|measure| measure == "rate")
    {
        plan.remove(&["expect"]);
    }
    let kept: &[&str] = if args.loss_curve {
        &["pause", "max-load"]
    } else {
        &["pause", "goals", "min-load", "max-load"]
    };
    run::without_load(plan, kept);
    plan.set(
        "",
        &["trials", "measure"],
        if args.loss_curve {
            "loss-curve"
        } else {
            "search"
        },
    );
    args.keys.set(plan);
    args.campaign.wanted().set(plan);
}

/// Compares this implementation with reference results.
fn check(args: &Search, vectors: &std::path::Path) -> Exit {
    let name = vectors.display();
    let bytes = input::read(vectors, MOST_BYTES, ["file of reference results", ""])?;
    let reference: Reference = serde_json::from_slice(&bytes).with_context(|| {
        format!("{name} does not have the form of reference results (docs/search.md)")
    })?;
    let progress = Progress::of_files();
    let checks = reference.check(|part| progress.say(format!("searching: {part}")));
    drop(progress);
    // A file without results shows nothing.
    let different = checks.is_empty() || checks.iter().any(|check| !check.agrees);
    result(
        &args.campaign.printed,
        || &checks,
        || pages::search_check(&name.to_string(), &checks),
    )?;
    exit(if different { DIFFERS } else { SUCCESS })
}
