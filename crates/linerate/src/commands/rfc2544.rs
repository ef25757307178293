//! `linerate rfc2544`: the tests of RFC 2544, and of documents after it.

use super::run::{self, Which};
use crate::args::HEADERS;
use crate::args::keyed::{Keys, Opt, Verb, key, levels, stands_for};
use crate::prelude::*;
use clap::builder::ArgPredicate;
use linerate_plan::campaign::Lab;
use linerate_plan::names::Named;
use linerate_plan::settings::EventKind;
use linerate_plan::timetable::{Timetable, tests};
use linerate_plan::{Keyed, Source, duration_text, parse_duration_ns};
use linerate_runner::session::{Session, chosen, of_arguments};

/// Options of `rfc2544` that are keys of a plan.
#[derive(Debug)]
pub struct Options;

impl Verb for Options {
    const OPTIONS: &'static [&'static [Opt]] = &[
        &[
            key("--test", "trials.tests", "TEST").many(),
            key("--flows", "traffic.flows", "N").about(
                "Flows (they differ in addresses or ports), up to 5,000,000 [default: 1; 1,000 with random ports or addresses]",
            ),
            key("--networks", "traffic.networks", "N"),
        ],
        &HEADERS,
        &[
            key("--direction", "traffic.direction", "DIRECTION"),
            key("--duration", "trials.duration", "TIME").about(
                "Length of the trials of throughput and frame-loss; the trials of all other tests scale with it [default: 60s]",
            ),
            key("--repeats", "trials.repeats", "N"),
            key("--search", "trials.method", "METHOD"),
            key("--width", "trials.width", "SHARE"),
            key("--verify", "trials.verify", "N"),
            key("--link-speed", "lab.link-speed", "SPEED"),
            key("--statement", "lab.statement", "TEXT"),
            key("--cpus", "lab.generator-cpus", "LIST"),
            key("--dut-cpus", "lab.dut-cpus", "LIST"),
        ],
    ];
    const OWN: &'static [Keyed] = &[
        stands_for("--family", "traffic.family"),
        stands_for("--sizes", "traffic.size"),
        stands_for("--budget", "trials.budget"),
        stands_for("--event", "variants.event"),
    ];
}

#[derive(Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: as long as the tests take]")))]
#[command(mut_arg("quick", |arg| arg.help("Two frame sizes in trials of 1 s: a quick look, shorter than RFC 2544 recommends. \
    With a plan: its short form")))]
#[command(mut_arg("full", |arg| arg.help("Print the whole page, not one screen. You must give it for the whole suite, which takes some 20 hours: that is, \
    unless you give a plan, --quick, --test, --sizes, --variant, --simulate or --estimate")))]
#[command(after_help = "Examples:
  linerate rfc2544 --estimate                        how long the whole suite takes; nothing is sent
  sudo linerate rfc2544 --full                       all of it, some 20 hours
  sudo linerate rfc2544 --quick                      two frame sizes in trials of 1 s: some 2 minutes
  sudo linerate rfc2544 --test throughput            one test, seven frame sizes
  sudo linerate rfc2544 --test latency --sizes 64 --sizes 1518
  sudo linerate rfc2544 --quick --family 6           IPv6 (RFC 5180)
  sudo linerate rfc2544 --filters 25 --test throughput   with a condition of RFC 2544, section 11; others: --networks 256, --broadcast
  sudo linerate rfc2544 --addresses random --ports random --test throughput    1,000 random flows (RFC 4814)
  sudo linerate rfc2544 --ipv6-share 0%,10%,50%,90% --test throughput \\
      --sizes 128                                 IPv4 and IPv6 at once (RFC 5180)
  sudo linerate rfc2544 --test throughput --sizes 64 --bursts 16 --bursts 256
  sudo linerate rfc2544 --variant nft-stateful --test back-to-back --repeats 10
  sudo linerate rfc2544 --test reset --event forwarding-off=500ms --duration 5s
  linerate rfc2544 --quick --lab LAB.toml --link-speed 10G   the hosts of a real lab
  linerate rfc2544 lab/firewalls --lab LAB.toml --link-speed 10G     every cell of a plan on these hosts
  linerate rfc2544 --quick --simulate rate=10kpps    without packets: a simulated DUT

All tests but frame-loss and forwarding-rate need the throughput, so linerate searches for it first. If the DUT is unstable
(six successive trials at 1 %, 10 % or 50 % of its rate lose frames), linerate refuses the tests that need the throughput. The whole suite takes
some 20 hours: choose tests and sizes, and see the estimate first. Sizes, times, repeats and waits are RFC 2544's; each
page names the sections that a run departs from. docs/rfc2544.md describes the methods. For a report to print or a PDF:
linerate show -o page.html && chromium --headless --print-to-pdf=page.pdf page.html (root adds --no-sandbox)

Exit status: 0 measured, even if the page warns about a result; 1 an error, or a test without a result (it is no error if
back-to-back or recovery has no result because the DUT carries line rate); 2 bad arguments; 3 an expectation was missed, or
--fail-if-slower found a slower variant; 4 nothing can be measured here; 5 an expectation or --fail-if-slower is undecided;
130 interrupted (`linerate run --resume DIR` continues).")]
pub struct Rfc2544 {
    /// A plan: a file, or a name that `linerate plan list` shows. Each of its cells is tested [default: the variants of --variant]
    #[arg(value_name = "PLAN", conflicts_with_all = ["variants", "size", "family", "flows", "direction", "networks", "ports", "addresses", "source-macs", "ipv6-share", "extension-headers", "broadcast", "bursts", "filters"])]
    plan: Option<PathBuf>,

    /// Variant of the DUT (`linerate bench --help` lists them); may be repeated [default: forwarding]
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<BuiltIn>,

    /// Frame lengths in bytes with FCS: 64,1518; may be repeated [default: 64, 128, 256, 512, 1024, 1280, 1518]
    #[arg(
        long = "sizes",
        alias = "size",
        value_name = "LIST",
        value_delimiter = ','
    )]
    size: Vec<String>,

    /// IP version: 4, 6 or both [default: 4; 6 with --extension-headers]
    #[arg(long, value_parser = families(), default_value_if("extension-headers", ArgPredicate::IsPresent, "6"), default_value = "4", hide_default_value = true)]
    family: Families,

    #[command(flatten)]
    keys: Keys<Options>,

    /// One frame in 100 is a broadcast frame (section 11.1)
    #[arg(long)]
    broadcast: bool,

    /// Send loads in bursts of N frames with pauses between them (section 21: 16, 64, 256, 1024); may be repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    bursts: Vec<u32>,

    /// For each number N in the list, measure a DUT with N filters: the last accepts the frames, the others match nothing (section
    /// 11.4: 1,25)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "variants", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    filters: Vec<u32>,

    /// Event of the reset test: forwarding-off or link-down, each for TIME (default 100ms), or rules-reloaded. Plans have further events: a killed
    /// process, a reboot, a power cut, a command
    #[arg(long, value_name = "EVENT[=TIME]", value_parser = event, conflicts_with = "plan")]
    event: Option<(EventKind, Option<u64>)>,

    /// Print the time and the number of trials of each test, and measure nothing
    #[arg(long)]
    estimate: bool,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    campaign: CampaignArgs,
}

/// Frame lengths of RFC 2544, section 9, for Ethernet. RFC 5180 has the same for IPv6.
const SIZES: [&str; 7] = ["64", "128", "256", "512", "1024", "1280", "1518"];

/// Speed in bit/s of links that neither the lab file nor an option names, in an estimate, and its text.
const SUPPOSED: (f64, &str) = (1e10, "10 Gbit/s");

fn event(text: &str) -> Result<(EventKind, Option<u64>), String> {
    let (name, time) = text
        .split_once('=')
        .map_or((text, None), |(name, time)| (name, Some(time)));
    let what = EventKind::parse_name(name, "an event")?;
    Ok((what, time.map(parse_duration_ns).transpose()?))
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Rfc2544) -> Exit {
    run::begin(&args.campaign);
    let chooses = !args.keys.is_empty() || !args.size.is_empty() || !args.variants.is_empty();
    let is_bare = args.plan.is_none() && !chooses && args.campaign.simulate.is_none();
    let is_long = is_bare && !(args.which.quick || args.campaign.full || args.estimate);
    let (choice, offline) = (
        args.which.choice(),
        args.campaign.simulate.is_some() || args.estimate || is_long,
    );
    let (plan, site) = match &args.plan {
        Some(file) => chosen(&choice, file, offline, |plan| {
            *plan = args.keys.over(std::mem::take(plan));
            testing(args, plan)
        })?,
        None => of_arguments(&choice, offline, own(args)?)?,
    };
    // After the faults of the arguments, which no shorter form would mend.
    if is_long {
        bail_usage!(
            "all tests with all frame sizes take some 20 hours: --quick for a look in some 2 minutes, --full for all of them, --test and --sizes to choose, --estimate for the times"
        );
    }
    if args.estimate {
        let (mut plan, mut supposed) = (plan, None);
        let (speed, most) = (
            &mut plan.experiment.link_speed,
            plan.experiment.trials.max_fps,
        );
        if matches!(plan.lab, Lab::File { .. }) && speed.is_none() && most.is_none() {
            (*speed, supposed) = (Some(SUPPOSED.0), Some(SUPPOSED.1));
        }
        let times = tests(&plan);
        result(
            &args.campaign.printed,
            || &times,
            || pages::estimate(&plan, &times, supposed),
        )?;
        return DONE;
    }
    let campaign = CampaignArgs {
        name: Some(args.campaign.name.clone().unwrap_or("rfc2544".into())),
        ..args.campaign.clone()
    };
    let session = Session::new(&campaign.wanted(), None, plan, site)?;
    if !args.campaign.quiet {
        tell(pages::estimate_line(
            &Timetable::new(session.plan()),
            &tests(session.plan()),
        ));
        session.tell_lengths();
    }
    run::carry_out(session, &campaign)
}

/// The plan of the options, without a plan's file.
fn own(args: &Rfc2544) -> Result<Source> {
    let mut plan = args.keys.over(Source::default());
    plan.set("", &["title"], "linerate rfc2544");
    plan.set("", &["question"], "How fast is this router by RFC 2544?");
    plan.set("", &["traffic", "format"], "rfc2544");
    levels(
        &mut plan,
        "--family",
        "traffic.family",
        &run::versions(args.family),
    );
    let draws = ["--ports", "--addresses"]
        .iter()
        .any(|option| args.keys.text(option).is_some_and(|how| how != "counted"));
    let networks = args
        .keys
        .of("--networks")
        .first()
        .and_then(Value::as_u64)
        .unwrap_or(1);
    if draws || networks > 1 {
        plan.set("", &["traffic", "order"], "random");
    }
    if args.broadcast {
        plan.set("--broadcast", &["traffic", "broadcast-every"], 100);
    }
    variants(args, &mut plan);
    plan.set("", &["quick"], json!({}));
    testing(args, &mut plan)?;
    let flows = args
        .keys
        .of("--flows")
        .first()
        .and_then(Value::as_u64)
        .unwrap_or(if draws { 1000 } else { 1 });
    plan.set("--flows", &["traffic", "flows"], flows.max(networks));
    if !args.bursts.is_empty() {
        plan.set("", &["factors", "burst", "about"], "frames of each burst");
        plan.set("--bursts", &["factors", "burst", "sets"], "traffic.burst");
        plan.set(
            "--bursts",
            &["factors", "burst", "levels"],
            json!(args.bursts),
        );
    }
    sizes(args, &mut plan);
    Ok(plan)
}

/// Sets the factor of frame lengths.
fn sizes(args: &Rfc2544, plan: &mut Source) {
    let bytes = |size: &str| {
        size.parse::<u32>()
            .map_or(size.to_string(), |bytes| format!("{bytes} B"))
    };
    let all: Vec<String> = if args.size.is_empty() {
        SIZES.iter().map(|size| bytes(size)).collect()
    } else {
        args.size.iter().map(|size| bytes(size)).collect()
    };
    plan.set("", &["factors", "size", "about"], "frame length with FCS");
    plan.set("--sizes", &["factors", "size", "sets"], "traffic.size");
    plan.set("--sizes", &["factors", "size", "levels"], all);
    if args.size.is_empty() {
        plan.set("", &["quick", "levels", "size"], json!(["64 B", "1518 B"]));
    }
}

/// Sets the variants of the DUT: those that are named, or filters, or forwarding.
fn variants(args: &Rfc2544, plan: &mut Source) {
    let mut names: Vec<String> = args
        .variants
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    if args.filters.is_empty() {
        run::set_variants(plan, &args.variants);
        if names.is_empty() {
            names.push("forwarding".into());
        }
    }
    for filters in &args.filters {
        let name = format!("filters-{filters}");
        let rules = json!({ "tool": "nftables", "filter": "stateless", "before": filters - 1 });
        plan.set("--filters", &["variants", &name, "rules"], rules);
        names.push(name);
    }
    for (name, (what, ns)) in names
        .iter()
        .flat_map(|name| args.event.map(|event| (name, event)))
    {
        plan.set("--event", &["variants", name, "event", "what"], what.name());
        if let Some(ns) = ns {
            plan.set(
                "--event",
                &["variants", name, "event", "for"],
                duration_text(ns),
            );
        }
    }
}

/// Puts the tests in the place of a plan's trials. A plan of such tests keeps its own, as far as no option says otherwise.
fn testing(args: &Rfc2544, plan: &mut Source) -> Result<()> {
    let hosts = plan.has(&["lab", "file"]) || args.which.lab.is_some();
    if hosts && args.keys.has("--statement") {
        bail_usage!(
            "--statement is for the embedded lab: the lab file has the key `statement` of its DUT"
        );
    }
    // Expectations concern the plan's own loads.
    plan.remove(&["expect"]);
    if plan.text(&["trials", "measure"]) != Some("rfc2544") {
        run::without_load(plan, &[]);
        plan.set("", &["trials", "measure"], "rfc2544");
        plan.set("", &["trials", "duration"], "60 s");
        if plan.has(&["quick"]) {
            let quick = [
                ("duration", json!("1 s")),
                ("repeats", json!(3)),
                ("pause", json!("1 ms")),
            ];
            let waits = [("drain", json!("200 ms")), ("settle", json!("200 ms"))];
            for (key, value) in quick.into_iter().chain(waits) {
                plan.set("", &["quick", key], value);
            }
        }
    }
    for (option, key) in [
        ("--duration", "duration"),
        ("--repeats", "repeats"),
        ("--test", "tests"),
    ] {
        if args.keys.has(option) {
            plan.remove(&["quick", key]);
        }
    }
    args.keys.set(plan);
    args.campaign.wanted().set(plan);
    Ok(())
}
