//! `linerate rfc2544`: the tests of RFC 2544, and of documents after it.

use super::run::{self, Which};
use crate::args::{CampaignArgs, Headers, Share, directions, duration, families, names_of};
use crate::output::{result, tell, usage};
use anyhow::Result;
use clap::Args;
use clap::builder::ArgPredicate;
use linerate_measure::experiment::{Benchmark, Measure, Method, Trials};
use linerate_measure::record::Mode;
use linerate_plan::campaign::{Campaign, Lab};
use linerate_plan::names::Named;
use linerate_plan::rules::Families;
use linerate_plan::settings::Befalls;
use linerate_plan::timetable::{Timetable, tests};
use linerate_plan::units::{Rate, parse_link_speed};
use linerate_plan::{BuiltIn, duration_text, parse_duration_ns};
use linerate_report::pages;
use linerate_runner::session::{Session, chosen, of_arguments};
use linerate_runner::testbed::hosts::Site;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: as long as the tests take]")))]
#[command(after_help = "Examples:
  linerate rfc2544 --estimate                        how long the whole suite takes; nothing is sent
  sudo linerate rfc2544 --quick                      two frame sizes in trials of 1 s: below 3 minutes, not RFC 2544
  sudo linerate rfc2544 --test throughput            one test, seven frame sizes
  sudo linerate rfc2544 --test latency --size 64 --size 1518
  sudo linerate rfc2544 --family 6                   IPv6 (RFC 5180)
  sudo linerate rfc2544 --filters 25 --test throughput     a modifier: also --networks 256, --broadcast
  sudo linerate rfc2544 --addresses random --ports random --test throughput    1,000 random flows (RFC 4814)
  sudo linerate rfc2544 --ipv6-share 0%,10%,50%,90% --test throughput --size 128     IPv4 and IPv6 at once (RFC 5180)
  sudo linerate rfc2544 --test throughput --bursts 16 --bursts 64 --bursts 256 --bursts 1024 --size 64
  sudo linerate rfc2544 --variant nft-stateful --test back-to-back --repeats 10
  sudo linerate rfc2544 --test reset --event forwarding-off=500ms --duration 5s
  linerate rfc2544 --lab LAB.toml --link-speed 10G   the hosts of a real lab
  linerate rfc2544 lab/firewalls --lab LAB.toml --link-speed 10G     every cell of a plan on these hosts
  linerate rfc2544 --quick --simulate rate=10kpps    without packets: a simulated DUT

All tests but frame-loss and forwarding-rate need the throughput: linerate searches for it first. The whole suite takes
some 20 hours: choose tests and sizes, and see the estimate first. Sizes, times, repeats and waits are RFC 2544's; each
page names the sections that a run departs from. docs/rfc2544.md describes the methods.

Exit status: 0 measured, even if a result is marked; 1 an error, or a test without a result; 2 bad arguments; 4
everything is skipped; 130 interrupted (`linerate run --resume DIR` continues).")]
pub struct Rfc2544 {
    /// A plan: a file, or a name that `linerate plan list` shows. Each of its cells is tested [default: the variants of --variant]
    #[arg(value_name = "PLAN", conflicts_with_all = ["variants", "size", "family", "flows", "direction", "networks", "ports", "addresses", "source_macs", "ipv6_share", "extension_headers", "broadcast", "bursts", "filters"])]
    pub plan: Option<PathBuf>,

    /// Test to carry out; may be repeated [default: the plan's; without a plan throughput, latency, frame-loss, back-to-back and recovery,
    /// and reset with --event]
    #[arg(long = "test", value_name = "TEST", value_parser = names_of::<Benchmark>())]
    pub tests: Vec<Benchmark>,

    /// Variant of the DUT (`linerate bench --help` lists them); may be repeated [default: forwarding]
    #[arg(long = "variant", value_name = "VARIANT")]
    pub variants: Vec<BuiltIn>,

    /// Frame length in bytes with FCS; may be repeated [default: 64, 128, 256, 512, 1024, 1280, 1518]
    #[arg(long, value_name = "SIZE")]
    pub size: Vec<String>,

    /// IP version: 4, 6 or both
    #[arg(long, value_parser = families(), default_value_if("extension_headers", ArgPredicate::IsPresent, "6"), default_value = "4")]
    pub family: Families,

    /// Flows (pairs of addresses and ports), up to 5,000,000 [default: 1; 1,000 with random ports or addresses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: Option<u32>,

    /// Destination networks, in random order, with a route to each (section 12: 256). There is at least one flow for each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub networks: u32,

    #[command(flatten)]
    pub headers: Headers,

    /// One frame in 100 is a broadcast frame (section 11.1)
    #[arg(long)]
    pub broadcast: bool,

    /// Send loads in bursts of N frames with pauses between them (section 21: 16, 64, 256, 1024); may be repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub bursts: Vec<u32>,

    /// Measure a DUT with N filters for each N: the last filter passes the frames, the others match nothing (section 11.4: 1,25)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "variants", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub filters: Vec<u32>,

    /// Direction of the frames: forward, or both at once (section 14). Loads are those of each direction
    #[arg(long, value_name = "DIRECTION", value_parser = directions(), default_value = "forward")]
    pub direction: String,

    /// Length of the trials of throughput and frame-loss; the trials of all other tests scale with it [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Runs of each repeated test [default: latency and delay-variation 20, back-to-back 50, recovery and reset 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeats: Option<u32>,

    /// Search method of throughput: mlrsearch (RFC 9971), or bisection with one trial at each load [default: mlrsearch]
    #[arg(long = "search", value_name = "METHOD", value_parser = names_of::<Method>())]
    pub method: Option<Method>,

    /// Precision of throughput and of bursts: the largest distance of the two bounds, relative to the upper bound [default: 0.5%]
    #[arg(long, value_name = "SHARE")]
    pub width: Option<Share>,

    /// Further trials with loss before a burst counts as too long, or, in a bisection, a load as too high [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub verify: Option<u32>,

    /// Event of the reset test: forwarding-off=TIME, link-down=TIME (default 100ms) or rules-reloaded. Plans have further events: a killed
    /// process, a reboot, a power cut, a command
    #[arg(long, value_name = "EVENT[=TIME]", value_parser = event, conflicts_with = "plan")]
    pub event: Option<(Befalls, Option<u64>)>,

    /// Speed of the slower link, whose line rate is 100 % of the load: 10G [default: the speed that the hosts of a lab file report; in the
    /// embedded lab 100 % is 95 % of the tester's own rate]
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// Your statement that the DUT is set up as its instructions say (section 7), which `linerate conformance` cites. With a lab file, set
    /// `statement` there
    #[arg(long, value_name = "TEXT")]
    pub statement: Option<String>,

    /// Print the time and the number of trials of each test, and measure nothing
    #[arg(long)]
    pub estimate: bool,

    #[command(flatten)]
    pub which: Which,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}

/// Frame lengths of RFC 2544, section 9, for Ethernet. RFC 5180 has the same for IPv6.
const SIZES: [&str; 7] = ["64", "128", "256", "512", "1024", "1280", "1518"];

fn event(text: &str) -> Result<(Befalls, Option<u64>), String> {
    let (name, time) = text.split_once('=').map_or((text, None), |(name, time)| (name, Some(time)));
    let what = Befalls::parse_name(name, "an event")?;
    Ok((what, time.map(parse_duration_ns).transpose()?))
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Rfc2544) -> Result<ExitCode> {
    run::begin(&args.campaign);
    let (plan, site) = match &args.plan {
        Some(file) => chosen(&args.which.choice(), file, args.campaign.simulate.is_some() || args.estimate)?,
        None => own(args)?,
    };
    let plan = testing(args, plan)?;
    if args.estimate {
        let times = tests(&plan);
        result(&args.campaign.printed, || &times, || pages::estimate(&plan, &times))?;
        return Ok(ExitCode::SUCCESS);
    }
    let campaign = CampaignArgs {
        name: Some(args.campaign.name.clone().unwrap_or("rfc2544".into())),
        ..args.campaign.clone()
    };
    let session = Session::new(&campaign.wanted(), None, plan, site)?;
    if !args.campaign.quiet {
        tell(pages::estimate_line(&Timetable::new(session.plan()), &tests(session.plan())));
        session.tell_lengths();
    }
    run::carry_out(session, &campaign)
}

/// The plan of the options, without a plan's file, and the hosts of `--lab`.
fn own(args: &Rfc2544) -> Result<(Campaign, Option<Site>)> {
    let (family, factor) = run::family(args.family);
    let bytes = |size: &str| size.parse::<u32>().map_or(size.to_string(), |bytes| format!("{bytes} B"));
    let sizes: Vec<String> = match args.size.is_empty() {
        true => SIZES.iter().map(|size| bytes(size)).collect(),
        false => args.size.iter().map(|size| bytes(size)).collect(),
    };
    let quick = if args.size.is_empty() { "levels.size = [\"64 B\", \"1518 B\"]\n" } else { "" };
    let random = args.networks > 1 || args.headers.draws();
    let flows = args.flows.unwrap_or(if args.headers.draws() { 1000 } else { 1 });
    let [headers, factors] = args.headers.lines();
    let bursts = match &args.bursts[..] {
        [] => String::new(),
        some => format!(
            "[factors.burst]\nabout = \"frames of each burst\"\nsets = \"traffic.burst\"\nlevels = {some:?}\n"
        ),
    };
    let mut rest = format!(
        "[traffic]\nformat = \"rfc2544\"\nfamily = \"{family}\"\nflows = {}\norder = \"{}\"\n\
         networks = {}\nbroadcast-every = {}\ndirection = {}\n\
         {headers}{factor}{factors}{bursts}[factors.size]\nabout = \"frame length with FCS\"\nsets = \"traffic.size\"\nlevels = {}\n\
         [trials]\nmeasure = \"rfc2544\"\nduration = {}\n\
         [quick]\nduration = \"1 s\"\nrepeats = 3\npause = \"1 ms\"\ndrain = \"200 ms\"\nsettle = \"200 ms\"\n\
         {quick}",
        flows.max(args.networks),
        if random { "random" } else { "sequential" },
        args.networks,
        if args.broadcast { 100 } else { 0 },
        json!(args.direction),
        json!(sizes),
        json!(args.duration.map_or("60 s".into(), |time| duration_text(time.as_nanos() as u64))),
    );
    let lasting = |ns: u64| format!(", for = {}", json!(duration_text(ns)));
    let event = args.event.map_or(String::new(), |(what, ns)| {
        format!("event = {{ what = {}{} }}\n", json!(what.name()), ns.map_or(String::new(), lasting))
    });
    let variant = |name: &str, of: String| format!("[variants.{}]\n{of}\n{event}", json!(name));
    for name in args.variants.iter().map(|variant| &variant.name) {
        rest += &variant(name, format!("from = {}", json!(name)));
    }
    for filters in &args.filters {
        rest += &variant(
            &format!("filters-{filters}"),
            format!("rules = {{ tool = \"nftables\", filter = \"stateless\", before = {} }}", filters - 1),
        );
    }
    if args.variants.is_empty() && args.filters.is_empty() {
        rest += &variant("forwarding", "from = \"forwarding\"".into());
    }
    let offline = args.campaign.simulate.is_some() || args.estimate;
    of_arguments(&args.which.choice(), offline, |lab| {
        format!(
            "title = \"linerate rfc2544\"\nquestion = \"How fast is this router by RFC 2544?\"\n[lab]\n{lab}\n{rest}"
        )
    })
}

/// The plan with these tests in place of its trials.
fn testing(args: &Rfc2544, mut plan: Campaign) -> Result<Campaign> {
    match &mut plan.lab {
        Lab::Embedded { mode: Mode::EndHosts, .. } => {
            bail_usage!(
                "this plan measures TCP between end hosts: TCP chooses the load itself, and RFC 2544 tests routers"
            );
        }
        // Inline, the load waits for the DUT, so no frame is lost.
        Lab::Embedded { mode, statement, .. } => {
            *mode = Mode::Threaded;
            *statement = args.statement.clone().or(statement.take());
        }
        Lab::File { .. } if args.statement.is_some() => {
            bail_usage!(
                "--statement is for the embedded lab: the lab file has the key `statement` of its DUT"
            );
        }
        Lab::File { .. } => {}
    }
    plan.experiment.link_speed = args.link_speed.or(plan.experiment.link_speed);
    plan.cells.iter_mut().for_each(|cell| cell.rate = Rate::Max);
    let own = plan.experiment.trials.clone();
    let usual = linerate_plan::tests_of_rfc2544(args.which.quick);
    let base = if own.measure == Measure::Rfc2544 {
        own
    } else {
        Trials { seed: own.seed, reboot: own.reboot, ..usual }
    };
    let mut trials = Trials {
        duration_ns: args.duration.map_or(base.duration_ns, |duration| duration.as_nanos() as u64),
        budget_ns: args.campaign.budget.map(|budget| budget.as_nanos() as u64).or(base.budget_ns),
        seed: args.campaign.seed.or(base.seed),
        repeats: args.repeats.or(base.repeats),
        verify: args.verify.unwrap_or(base.verify),
        method: args.method.unwrap_or(base.method),
        width: args.width.map(|width| width.0).or(base.width),
        ..base
    };
    if !args.tests.is_empty() {
        trials.tests = Benchmark::ALL.into_iter().filter(|test| args.tests.contains(test)).collect();
    }
    let bisects = trials.method == Method::Bisection || trials.tests.contains(&Benchmark::BackToBack);
    if args.verify.is_some() && !bisects {
        bail_usage!(
            "--verify is for --search bisection and for --test back-to-back: MLRsearch repeats trials by its goals"
        );
    }
    // Its bursts are of another kind.
    if args.tests.is_empty() && !args.bursts.is_empty() {
        trials.tests.retain(|test| *test != Benchmark::BackToBack);
    }
    let has_event = plan.lanes.iter().any(|lane| lane.settings.event.is_some());
    if args.tests.is_empty() && has_event && !trials.tests.contains(&Benchmark::Reset) {
        trials.tests.push(Benchmark::Reset);
    }
    trials.check_goals().map_err(usage)?;
    plan.experiment.trials = trials;
    // Expectations concern the plan's own loads.
    plan.experiment.expectations.clear();
    Ok(plan)
}
