//! `linerate run`: a plan, carried out.

use super::slower::{UNDECIDED, status, told};
use crate::prelude::*;
use linerate_linux::records::head;
use linerate_measure::experiment::{Interest, Judgement, Measure, Order, System, Trials};
use linerate_measure::record::{BisectionVerdict, LabKind};
use linerate_measure::slower::{Slowdown, of_variants};
use linerate_plan::Source;
use linerate_plan::campaign::Campaign as Plan;
use linerate_runner::campaign::Finished;
use linerate_runner::plans::shipped;
use linerate_runner::progress::{self};
use linerate_runner::session::{Choice, Measured, Session, Wanted};

#[derive(Args)]
#[command(after_help = "Examples:
  linerate plan list                       the plans that come with linerate
  linerate plan show firewalls             what this plan would do and change, and how long it takes
  sudo linerate run firewalls --quick      the plan's short form: less than a minute
  sudo linerate run firewalls
  sudo linerate run my.toml                a plan of your own
  linerate run lab/tuning --lab LAB.toml   on the hosts of a real lab, over ssh (docs/lab-file.md)
  sudo linerate run last                   carries out the plan of the newest campaign again (of another one: linerate run DIR)
  sudo linerate run --resume linerate-results/20260101T120000Z-firewalls
  sudo linerate run my.toml --quiet --fail-if-slower 3%       for CI
  linerate run my.toml --simulate ok       no packets at all: a simulated DUT, all of whose variants are equally fast
  linerate show linerate-results/TIME-NAME   the tables again

Variants that this machine cannot run are skipped, with the reason, and the rest is measured. The exit status is then
1, unless the plan marks these variants `optional = true`. In the plans that come with linerate, each variant that
needs a firewall or a certain kind of link (such as VXLAN) is optional. Settings of the whole host (such as the size of the connection table) are changed only with --allow-host-changes. linerate
writes them down first and restores them at the end; if it is killed, the next campaign in the embedded lab, or `linerate lab restore`, restores them.

Exit status: 0 measured, and no expectation of the plan was missed; 1 an error, or some variant has no result: it could
not be measured here, none of its trials was valid, or it dropped every test frame (except with --simulate); 2 the plan has faults, or bad
arguments (nothing is touched); 3 an expectation was missed, or --fail-if-slower found a slower variant; 4 no variant can
be measured here; 5 an expectation or --fail-if-slower is undecided, and none is missed; 130 interrupted (the results so far are recorded and shown; --resume continues).")]
pub struct Run {
    /// The plan: a file (docs/plans.md has the format), a name that `linerate plan list` shows, or the folder of a campaign, whose plan is
    /// then run again
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    plan: Option<PathBuf>,

    /// Continue the stopped campaign of `run`, `bench`, `search`, `bisect` or `rfc2544` in this directory: its trials are kept, and the rest follows
    /// in the recorded order. If the time of a search, a bisection or RFC 2544's tests ran out, give a larger --budget
    #[arg(long, value_name = "DIR", value_parser = handle::folder, conflicts_with_all = ["plan", "quick", "system", "name", "out", "seed"])]
    resume: Option<PathBuf>,

    /// For its message: other verbs have it.
    #[arg(long, alias = "size", hide = true)]
    sizes: Option<String>,

    /// Measure each variant in a guest of QEMU that runs this kernel, as `linerate bench --kernel` does; may be repeated
    #[arg(long = "kernel", value_name = "KERNEL", conflicts_with_all = ["simulate", "resume"])]
    kernels: Vec<String>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    campaign: CampaignArgs,
}

/// Which of a plan's campaigns, and on which hosts.
#[derive(Debug, Args)]
pub struct Which {
    /// Use the short form that the plan defines
    #[arg(long)]
    pub quick: bool,

    /// Operating system of the DUT, if the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = names_of::<System>())]
    system: Option<System>,

    /// Lab file of the hosts, instead of the one that the plan names
    #[arg(long, value_name = "FILE")]
    pub lab: Option<PathBuf>,

    #[command(flatten)]
    ssh: Ssh,
}

impl Which {
    /// As the runner takes it.
    pub fn choice(&self) -> Choice {
        Choice {
            quick: self.quick,
            system: self.system,
            lab: self.lab.clone(),
            approach: self.ssh.approach(),
        }
    }
}

/// Exit status where this machine can measure nothing of the plan.
pub const SKIPPED: u8 = 4;

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Run) -> Exit {
    if let Some(sizes) = &args.sizes {
        bail_usage!(
            "a plan has its own frame sizes: linerate bench --sizes {sizes}, or edit the plan (linerate bench --print-plan prints that of bench)"
        );
    }
    begin(&args.campaign);
    let choice = args.which.choice();
    let wanted = Wanted {
        kernels: args.kernels.clone(),
        ..args.campaign.wanted()
    };
    let mut campaign = args.campaign.clone();
    let session = match (&args.resume, &args.plan) {
        (Some(directory), _) => Session::resumed(&choice, &wanted, directory)?,
        (None, Some(file)) => match recorded(file) {
            Some((folder, before)) => {
                if before.asked.lab == LabKind::Simulated && wanted.simulate.is_none() {
                    bail_usage!(
                        "{} was simulated: add --simulate ok to simulate it again. To measure this machine, name its plan, or repeat its command without --simulate",
                        folder.display()
                    );
                }
                // The name of a folder has the time when its campaign began.
                campaign.name.get_or_insert(before.name.clone());
                Session::of_file(&again(choice, &before), &wanted, &folder)?
            }
            None => Session::of_file(&choice, &wanted, file)?,
        },
        (None, None) => bail_usage!("name a plan, or --resume and a campaign's folder"),
    };
    carry_out(session, &campaign)
}

/// The campaign whose plan is to be run again: its folder, or `last`. A plan's file or name comes first.
fn recorded(plan: &Path) -> Option<(PathBuf, Campaign)> {
    let folder = match plan.to_str() {
        Some(name) if !plan.exists() && name.starts_with("last") => handle::folder(name).ok()?,
        _ if shipped(plan).is_some() && !plan.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            return None;
        }
        _ => plan.to_owned(),
    };
    let campaign = folder.is_dir().then(|| head(&folder).ok())??;
    Some((folder, campaign))
}

/// The choice with the form and the system that a campaign had.
fn again(choice: Choice, campaign: &Campaign) -> Choice {
    let experiment = campaign.planned.as_ref().map(|planned| &planned.experiment);
    Choice {
        quick: choice.quick || experiment.is_some_and(|experiment| experiment.quick),
        system: choice
            .system
            .or(experiment.map(|experiment| experiment.system)),
        ..choice
    }
}

/// First steps of every campaign.
pub fn begin(args: &CampaignArgs) {
    interrupt::install();
    if args.quiet {
        progress::silence();
    }
}

/// Runs a campaign, prints the result, and returns the exit status.
///
/// # Errors
/// The reason why it could not measure.
pub fn carry_out(session: Session, args: &CampaignArgs) -> Exit {
    let plan = session.plan();
    let name = session.file().unwrap_or("bench").to_string();
    if args.fail_if_slower.is_some()
        && !plan
            .experiment
            .comparisons
            .iter()
            .any(|c| c.why == Interest::Variants)
    {
        let add = match session.file() {
            Some(_) => "a variant, and `with` to its [compare]",
            None => "--variant NAME, such as --variant nft-stateful",
        };
        bail_usage!(
            "{name} compares no variant with another, so --fail-if-slower has nothing to judge: add {add}",
        );
    }
    if session.measures_nothing() {
        for reason in session.reasons_to_skip() {
            tell(format!("{name}: skipped: {reason}"));
        }
        return exit(SKIPPED);
    }
    let stem = Path::new(&name)
        .file_stem()
        .map_or("plan".into(), |stem| stem.to_string_lossy());
    let name = args.name.clone().unwrap_or(stem.into_owned());
    if let Some(short) = pages::too_short(plan).filter(|_| !args.quiet) {
        tell(short);
    }
    let parent = args.out.as_ref().and_then(|out| out.parent());
    let missing = |parent: &&Path| !parent.as_os_str().is_empty() && !parent.exists();
    if let Some(parent) = parent.filter(missing).filter(|_| !args.quiet) {
        tell(format!(
            "--out: makes {}, which is not there",
            parent.display()
        ));
    }
    let Some(Measured {
        campaign,
        facts,
        finished,
        left,
        kept,
    }) = session.measure(&args.wanted(), name, Path::new(handle::RESULTS))?
    else {
        return exit(INTERRUPTED);
    };
    let code = report(args, &campaign, &facts, finished)?;
    if let Some(kept) = kept {
        eprintln!("{kept}");
    }
    if left { exit(FAILED) } else { Ok(code) }
}

/// IP versions as a plan names them.
pub fn versions(wanted: Families) -> Vec<Value> {
    let all: &[&str] = match wanted {
        Families::Ipv4 => &["IPv4"],
        Families::Ipv6 => &["IPv6"],
        Families::Both => &["IPv4", "IPv6"],
    };
    all.iter().map(|name| json!(name)).collect()
}

/// Keys that say how trials are run, in the full and the quick form.
pub const OF_TRIALS: [&str; 18] = [
    "duration", "blocks", "budget", "until", "order", "pause", "measure", "goals", "method",
    "step", "width", "min-load", "max-load", "tests", "repeats", "verify", "drain", "settle",
];

/// Takes the load and the trials out of a plan, and keeps those keys of its trials. What such a search needs stands in their place: an
/// open loop, where frames can be lost.
pub fn without_load(plan: &mut Source, keep: &[&str]) {
    plan.remove(&["traffic", "rate"]);
    plan.remove(&["compare", "until"]);
    for factor in plan.factors_of("traffic.rate") {
        plan.remove(&["factors", &factor]);
        plan.remove(&["quick", "levels", &factor]);
    }
    for key in OF_TRIALS.iter().filter(|key| !keep.contains(key)) {
        plan.remove(&["trials", key]);
        plan.remove(&["quick", key]);
    }
    if plan.text(&["lab", "mode"]) != Some("end-hosts") && !plan.has(&["lab", "file"]) {
        plan.set("", &["lab", "mode"], "threaded");
    }
}

/// Sets variants that come with linerate; forwarding, if none is named.
pub fn set_variants(plan: &mut Source, variants: &[BuiltIn]) {
    let named = variants.iter().map(|variant| variant.name.as_str());
    for name in named.chain(variants.is_empty().then_some("forwarding")) {
        plan.set("--variant", &["variants", name, "from"], name);
    }
}

/// Prints the result, and returns the exit status for scripts.
fn report(args: &CampaignArgs, campaign: &Campaign, facts: &HostFacts, finished: Finished) -> Exit {
    let Finished {
        summary,
        directory,
        facts: configured,
        failure,
        ..
    } = finished;
    if !args.quiet || !args.printed.is_text() {
        print(&output::campaign(
            &args.printed,
            args.full,
            &directory,
            campaign,
            facts,
            &summary,
            &configured,
        )?);
    }
    if args.report {
        super::report::beside(&directory, args.quiet)?;
    }
    if let Some(file) = &args.junit {
        super::export::verdicts_of(&directory, args.fail_if_slower, file)?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let simulate = args
        .simulate
        .as_ref()
        .map_or(String::new(), |dut| format!(" --simulate {dut}"));
    let emulated = when(args.emulated, " --emulated");
    let resumed = format!("{}{simulate}{emulated}", directory.display());
    if summary.stopped == Stopped::Interrupted {
        tell(format!(
            "stopped; to resume: linerate run --resume {resumed}"
        ));
        return exit(INTERRUPTED);
    }
    let goes_on =
        |trials: &Trials| trials.measure != Measure::Rate || trials.order == Order::Bisection;
    let searching = campaign
        .planned
        .as_deref()
        .filter(|of| goes_on(&of.experiment.trials));
    if let Some(planned) = searching.filter(|_| summary.stopped == Stopped::Budget && !args.quiet) {
        let plan = Plan::joined(planned, &campaign.slots)?;
        tell(pages::going_on(&plan, &resumed));
    }
    if let Some(found) = &summary.bisection {
        return exit(match found.verdict {
            BisectionVerdict::Found => SUCCESS,
            BisectionVerdict::NothingToCompare => FAILED,
            _ => UNDECIDED,
        });
    }
    let limit = args.fail_if_slower.map(|Share(limit)| limit);
    let slower = limit.map_or(Slowdown::Excluded, |limit| {
        told(&of_variants(&summary, limit))
    });
    let verdict = missed(args, &summary).max(slower);
    let lacking = campaign.missing();
    if args.quiet {
        for (variant, why) in &lacking {
            tell(format!("{variant} was not measured: {}", why.join("; ")));
        }
        for unmeasured in &summary.unmeasured {
            tell(format!("{} {}", unmeasured.name, unmeasured.why));
        }
    }
    let whole = summary.unmeasured.is_empty() && lacking.is_empty();
    exit(if whole { status(verdict) } else { FAILED })
}

/// Whether the campaign missed an expectation of the plan. In quiet mode, which has no page, it names each one.
fn missed(args: &CampaignArgs, summary: &Summary) -> Slowdown {
    let judged = |wanted| {
        summary
            .expectations
            .iter()
            .filter(move |e| e.judgement == Some(wanted))
    };
    for expected in judged(Judgement::Missed).filter(|_| args.quiet) {
        tell(format!("expectation missed: {}", expected.words));
    }
    match (
        judged(Judgement::Missed).count(),
        judged(Judgement::Undecided).count(),
    ) {
        (0, 0) => Slowdown::Excluded,
        (0, _) => Slowdown::Undecided,
        _ => Slowdown::Proven,
    }
}
