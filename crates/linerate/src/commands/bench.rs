//! `linerate bench`: a plan out of arguments, carried out as any other.

use super::run::{self, Session};
use crate::cli::{Bench, FamilyChoice};
use crate::output::{print, usage};
use crate::rule_files;
use anyhow::{Context, Result};
use linerate_linux::host::cpu;
use linerate_plan::campaign::Campaign;
use linerate_plan::rules::own::Meaning;
use linerate_plan::settings::System;
use linerate_plan::text_form::rate;
use linerate_plan::units::Rate;
use linerate_plan::{Diagnostic, Plan, duration_text};
use linerate_wire::Transport;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the verb.
///
/// # Errors
/// What kept it from measuring.
pub fn run(args: &Bench) -> Result<ExitCode> {
    let composed = compose(args)?;
    if args.print_plan {
        print(&composed.text());
        return Ok(ExitCode::SUCCESS);
    }
    check_cpus(args)?;
    let campaign = composed.campaign()?;
    run::begin(&args.campaign);
    Session::new(&args.campaign, None, campaign, None)?.run(&args.campaign)
}

/// CPUs that a plan cannot have are lacking there; here they are a slip of the pen.
fn check_cpus(args: &Bench) -> Result<()> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let named = [&args.cpus, &args.dut_cpus].into_iter().flatten().flat_map(|cpus| &cpus.0);
    match named.into_iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(usage(format!(
            "CPU {cpu} is not online, or not allowed to this process: there are {online:?}"
        ))),
        None => Ok(()),
    }
}

/// A plan as text, each line with the argument that it stands for.
#[derive(Default)]
struct Composed(Vec<(String, &'static str)>);

impl Composed {
    fn line(&mut self, argument: &'static str, line: impl Into<String>) {
        self.0.push((line.into(), argument));
    }

    fn section(&mut self, argument: &'static str, name: &str) {
        self.line("", "");
        self.line(argument, format!("[{name}]"));
    }

    fn text(&self) -> String {
        self.0.iter().map(|(line, _)| format!("{line}\n")).collect()
    }

    fn campaign(&self) -> Result<Campaign> {
        let mut files = |name: &str| rule_files::text(Path::new(name));
        let plan = Plan::read_with(self.text().as_bytes(), &mut files).map_err(|faults| {
            usage(faults.iter().map(|fault| self.told(fault)).collect::<Vec<_>>().join("\nlinerate: "))
        })?;
        let mut campaign = plan.campaign(System::Linux, false).cloned().context("the plan is for Linux")?;
        campaign.name_by_frames();
        Ok(campaign)
    }

    /// A fault of the plan, told of the argument. Remedies name keys as a plan has them.
    fn told(&self, fault: &Diagnostic) -> String {
        let line = fault.place.and_then(|place| self.0.get(place.line.saturating_sub(1)));
        let argument = line.map_or("", |(_, argument)| *argument);
        let mut remedy = fault.remedy.clone();
        for (key, argument) in [
            ("add link-speed = \"10 Gbit/s\" to [lab]", "add --link-speed 10G"),
            ("add mode = \"threaded\"", "add --mode threaded"),
            ("fewer levels", "fewer --sizes and --variant, or --trials"),
            ("more generator-cpus", "more --cpus"),
        ] {
            remedy = remedy.map(|remedy| remedy.replace(key, argument));
        }
        let map = argument == "--rules" && remedy.as_ref().is_some_and(|remedy| remedy.contains("map"));
        let fault = Diagnostic { remedy, place: None, evidence: None, ..fault.clone() };
        let fault = if argument.is_empty() { fault } else { fault.of(argument) };
        format!("{fault}{}", if map { " (--map NAME=in, --map NAME=out)" } else { "" })
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn compose(args: &Bench) -> Result<Composed> {
    let mut plan = Composed::default();
    plan.line("", "title = \"linerate bench\"");
    plan.line("", "question = \"How many frames does this machine forward?\"");
    lab(args, &mut plan);
    let families = traffic(args, &mut plan)?;
    let variants = variants(args, &mut plan)?;
    let several_sizes = args.sizes.0.len() > 1;
    if families.len() > 1 {
        factor(&mut plan, "--family", "family", &families);
    }
    if several_sizes {
        factor(&mut plan, "--sizes", "size", &args.sizes.0.iter().map(size).collect::<Vec<_>>());
    }
    plan.section("", "compare");
    // Each ratio that a reader will look at decides when to stop; where there is none, the share of the tester's ceiling.
    let interests = match (variants > 1, families.len() > 1) {
        (true, true) => "\"variants\", \"levels\"",
        (true, false) => "\"variants\"",
        (false, true) => "\"levels\"",
        (false, false) => "\"ceilings\"",
    };
    plan.line("", format!("what = [{interests}]"));
    trials(args, &mut plan);
    Ok(plan)
}

fn lab(args: &Bench, plan: &mut Composed) {
    plan.section("", "lab");
    plan.line("--mode", format!("mode = {}", quoted(&args.mode)));
    for (argument, key, cpus) in
        [("--cpus", "generator-cpus", &args.cpus), ("--dut-cpus", "dut-cpus", &args.dut_cpus)]
    {
        if let Some(cpus) = cpus {
            plan.line(argument, format!("{key} = \"{}\"", linerate_plan::settings::cpu_list(&cpus.0)));
        }
    }
    if let Some(speed) = args.link_speed {
        plan.line("--link-speed", format!("link-speed = \"{} Mbit/s\"", speed / 1e6));
    }
    if let Some(port) = &args.port {
        plan.line("--port", format!("port = {}", quoted(port.name())));
    }
    if let Some(batch) = args.batch {
        plan.line("--batch", format!("batch = {batch}"));
    }
}

/// Gives the IP versions.
fn traffic(args: &Bench, plan: &mut Composed) -> Result<Vec<String>> {
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists() || args.campaign.simulate.is_some();
    let families: &[&str] = match args.family {
        FamilyChoice::V6 if !ipv6 => return Err(usage("this kernel has no IPv6: leave --family 6 out")),
        FamilyChoice::V6 => &["IPv6"],
        FamilyChoice::Both if ipv6 => &["IPv4", "IPv6"],
        FamilyChoice::V4 | FamilyChoice::Both => &["IPv4"],
    };
    plan.section("", "traffic");
    if let [family] = families {
        plan.line("--family", format!("family = \"{family}\""));
    }
    if let [only] = args.sizes.0.as_slice() {
        plan.line("--sizes", format!("size = {}", quoted(&size(only))));
    }
    let transport = match args.transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::IcmpEcho => "ICMP",
    };
    plan.line("--transport", format!("transport = \"{transport}\""));
    plan.line("--flows", format!("flows = {}", args.flows));
    plan.line("--order", format!("order = \"{}\"", args.order));
    if args.rate != Rate::Max {
        let rate = rate::serialize(&args.rate, serde_json::value::Serializer)?;
        plan.line("--rate", format!("rate = {rate}"));
    }
    if args.no_udp_checksum && transport == "UDP" && families.contains(&"IPv4") {
        plan.line("--no-udp-checksum", "checksum = false");
    }
    plan.line("--stamp-every", format!("stamp-every = {}", args.stamp_every));
    Ok(families.iter().map(|family| family.to_string()).collect())
}

/// One length as a plan has it, with its unit.
fn size(mix: &linerate_wire::FrameMix) -> String {
    match mix.pattern.as_slice() {
        [length] => format!("{length} B"),
        _ => mix.to_string(),
    }
}

fn factor(plan: &mut Composed, argument: &'static str, name: &str, levels: &[String]) {
    let levels: Vec<String> = levels.iter().map(|level| quoted(level)).collect();
    plan.section("", &format!("factors.{name}"));
    plan.line(argument, format!("sets = \"traffic.{name}\""));
    plan.line(argument, format!("levels = [{}]", levels.join(", ")));
}

/// What was asked for. Plain forwarding is the baseline of every other variant, unless the user compares something by hand or checks
/// linerate with a DUT whose answer is known. Gives how many there are.
fn variants(args: &Bench, plan: &mut Composed) -> Result<usize> {
    let mut names = Names::default();
    let forwards = args.variants.iter().any(|variant| variant.name == "forwarding");
    if !forwards && !args.variants.iter().any(|variant| variant.settings.dut.is_known()) {
        names.variant(plan, args, "--variant", "forwarding", "forwarding");
    }
    for variant in &args.variants {
        names.variant(plan, args, "--variant", &variant.name, &variant.name);
    }
    let mut unused: BTreeMap<&str, Meaning> =
        args.map.iter().map(|(name, end)| (name.as_str(), *end)).collect();
    for path in &args.rules {
        let file = path.display().to_string();
        let name = file.rsplit('/').next().unwrap_or_default();
        names.variant(plan, args, "--rules", name, "forwarding");
        let text = rule_files::text(path).unwrap_or_default();
        // With several files, each takes of the map what is in it.
        let there = |(name, _): &&(String, Meaning)| args.rules.len() == 1 || text.contains(name.as_str());
        let map: Vec<&(String, Meaning)> = args.map.iter().filter(there).collect();
        unused.retain(|name, _| !map.iter().any(|(there, _)| there == name));
        plan.line("--rules", format!("rules.file = {}", quoted(&file)));
        for (name, end) in map {
            plan.line("--map", format!("rules.map.{} = \"{}\"", quoted(name), end));
        }
    }
    match unused.keys().next() {
        Some(name) => Err(usage(format!("--map {name}: no rule file names it"))),
        None => Ok(names.0.values().sum()),
    }
}

/// How often each name is taken: the same variant twice gets a number, so that the two can be told apart.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn variant(&mut self, plan: &mut Composed, args: &Bench, argument: &'static str, name: &str, from: &str) {
        let number = self.0.entry(name.into()).or_default();
        *number += 1;
        let name = if *number == 1 { name.into() } else { format!("{name}#{number}") };
        plan.section(argument, &format!("variants.{}", quoted(&name)));
        plan.line(argument, format!("from = {}", quoted(from)));
        if *number > 1 {
            plan.line(argument, "apart = true");
        }
        if !args.states.is_default() {
            plan.line("--states", format!("states = \"{}\"", args.states));
        }
    }
}

fn trials(args: &Bench, plan: &mut Composed) {
    let time = |time: Duration| quoted(&duration_text(time.as_nanos() as u64));
    // As `bench` has always had it: a number of trials that is asked for is run.
    let budget = args.campaign.budget.or_else(|| args.trials.is_none().then_some(DEFAULT_BUDGET));
    if args.trials.is_none() {
        plan.line("", format!("until = \"{} %\"", PRECISION_PERCENT));
    }
    plan.section("", "trials");
    plan.line("--duration", format!("duration = {}", time(args.duration)));
    if let Some(trials) = args.trials {
        plan.line("--trials", format!("blocks = {trials}"));
    }
    if let Some(budget) = budget {
        plan.line("--budget", format!("budget = {}", time(budget)));
    }
    if let Some(seed) = args.campaign.seed {
        plan.line("--seed", format!("seed = {seed}"));
    }
}

/// Time for all trials, where neither time nor trials are named.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);

/// Trials go on until all ratios are known this well.
const PRECISION_PERCENT: u32 = 2;
