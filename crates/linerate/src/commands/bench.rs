//! `linerate bench`: a plan out of arguments, carried out as any other.

use super::run;
use crate::args::{
    CampaignArgs, Cpus, Headers, Sizes, cpu_list, directions, duration, families, mapping, names_of,
    own_backend, sizes,
};
use crate::output::{all_of, usage};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::ArgPredicate;
use linerate_linux::host::cpu;
use linerate_measure::experiment::System;
use linerate_measure::record::States;
use linerate_plan::campaign::Campaign;
use linerate_plan::rules::Families;
use linerate_plan::rules::own::Meaning;
use linerate_plan::settings;
use linerate_plan::text_form::rate;
use linerate_plan::units::{Rate, parse_link_speed};
use linerate_plan::{Backend, BuiltIn, Diagnostic, Plan, duration_text};
use linerate_runner::input;
use linerate_runner::session::Session;
use linerate_wire::{FlowOrder, FrameMix, Transport};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 30s, unless --trials is given]")))]
#[command(after_help = "Examples:
  sudo linerate bench                            IPv4 and IPv6, smallest frames, 2,000 flows
  sudo linerate bench --variant nft-stateless --variant nft-stateful
  sudo linerate bench --rules /etc/nftables.conf     what do my own rules cost?
  sudo linerate bench --rules fw.nft --map eth1=in --map eth0=out --map 192.168.1.0/24=in
  sudo linerate bench --sizes 64,512,1518,imix --family 4
  sudo linerate bench --mode threaded --rate 500kpps  open loop: loss and latency at this load
  sudo linerate bench --direction both           frames from both sides at once
  sudo linerate bench --variant known-loss=1000  is exactly one loss in 1,000 found?
  linerate bench                                 without root: a slower tester
  linerate bench --simulate loss=1000            without packets: a simulated DUT

Variants:
  forwarding           the kernel's routing alone (always measured, as the baseline)
  nft-stateless        nftables filter without connection tracking
  nft-stateful         nftables filter with connection tracking; its first rule passes established connections
  nat                  nftables masquerade
  bridge               a bridge instead of a router
  routed-bridge        a router whose inside interface is the only member of a bridge that has the address
  macvlan, vlan        a router whose interfaces are macvlan, or 802.1Q VLANs, on top of the two ends
  vxlan                a router that puts frames into a VXLAN tunnel towards the receiver
  nested               a router in a network stack of its own: a nested network namespace
  xdp                  an XDP program that forwards by the kernel's routing table
  known-rate=N         passes exactly N frames/s on each CPU: a DUT with a known answer
  known-loss=N         loses exactly every N-th frame
  known-duplication=N  sends exactly every N-th frame twice
  known-delay=T        delays every frame by T, up to 200us
  known-delays=T/T     delays frames by the first and the second time in turn
  known-queue=N@N      a queue (frames@frames/s) on each CPU that drops the frames for which it has no room
  known-outage=T@T     drops every frame for the first time, from the second time after the first frame of each load

A rule file is input of nft or output of iptables-save. linerate loads it in the lab's namespace, never on this host,
and replaces its interfaces and networks with the lab's: `in` is the generator's side, `out` the receiver's. Without
--map linerate guesses, and prints its guess. docs/rules.md has more.

These arguments are a plan: --print-plan prints it, `linerate run` carries it out, and `linerate run --resume DIR`
continues a campaign that was stopped.

Exit status: 0 measured; 1 an error, or a variant without a result: it could not be measured here, none of its trials
was valid, or it dropped every frame (except known-loss=1); 2 bad arguments; 3 --fail-if-slower found a slower variant; 4 everything is
skipped; 130 interrupted (the results so far are recorded and shown).")]
pub struct Bench {
    /// Variant of the DUT (see below); may be repeated. The same variant twice compares it with itself
    #[arg(long = "variant", value_name = "VARIANT")]
    pub variants: Vec<BuiltIn>,

    /// Measure a DUT with the rules of this file (nft or iptables-save); may be repeated. Implies --family 4, unless --family is given
    #[arg(long = "rules", value_name = "FILE")]
    pub rules: Vec<PathBuf>,

    /// End of the lab that replaces an interface or network of the rule files: eth0=out, 192.168.1.0/24=in,
    /// 198.18.0.0/15=elsewhere; may be repeated [default: guessed and printed]
    #[arg(long = "map", value_name = "NAME=END", value_parser = mapping, requires = "rules")]
    pub map: Vec<(String, Meaning)>,

    /// Frame lengths in bytes with FCS, measured side by side: 64,1518,imix,genome:aaafg,rfc2544
    #[arg(long, value_name = "LIST", value_parser = sizes, default_value = "64")]
    pub sizes: Sizes,

    /// IP version: 4, 6 or both
    #[arg(long, value_parser = families(), default_value_ifs([("rules", ArgPredicate::IsPresent, "4"), ("ipv6_share", ArgPredicate::IsPresent, "4"), ("extension_headers", ArgPredicate::IsPresent, "6")]), default_value = "both")]
    pub family: Families,

    /// Flows (pairs of addresses and ports), up to 5,000,000
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: u32,

    /// State of the connections when a trial begins, for DUTs that track them: established (seen in both directions), one-way (never
    /// answered), new (unknown to the DUT: the first frame of each flow opens one)
    #[arg(long, value_name = "STATES", value_parser = names_of::<States>(), default_value = "established")]
    pub states: States,

    /// Order of the flows' frames: sequential, random (uniform, RFC 4814), zipf:EXPONENT (few flows have most frames)
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    pub order: FlowOrder,

    #[command(flatten)]
    pub headers: Headers,

    /// Offered load: max, 500kpps, 1Gbit/s:l1 (with preamble and gap), 1Gbit/s:l2, 50% (of --link-speed)
    #[arg(long, value_name = "RATE", default_value = "max")]
    pub rate: Rate,

    /// Direction of the frames: forward, or both at once. --rate is the rate of each direction
    #[arg(long, value_name = "DIRECTION", value_parser = directions(), default_value = "forward")]
    pub direction: String,

    /// Link speed that is 100 % of line rate: 10G
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// Length of one trial. Trials of all variants, frame lengths and IP versions alternate
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = duration)]
    pub duration: Duration,

    /// Trials of each combination of variant, frame length and IP version [default: until the intervals of the ratios are narrower than
    /// 2 %, or the budget is used up]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: Option<u32>,

    /// inline: closed loop, all on the generator's CPU; shows the cost per frame. threaded: open loop, the DUT has its own CPUs; shows
    /// loss and latency
    #[arg(long, value_parser = ["inline", "threaded"], default_value = "inline")]
    pub mode: String,

    /// CPUs of the generator, one thread each: 1 or 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<Cpus>,

    /// CPUs of the DUT, in threaded mode
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub dut_cpus: Option<Cpus>,

    /// Protocol above IP: udp, tcp (SYN segments) or icmp (echo requests)
    #[arg(long, default_value = "udp")]
    pub transport: Transport,

    /// How frames leave and arrive [default: xdp for root, af-packet in a user namespace for everyone else]
    #[arg(long, value_name = "BACKEND", value_parser = own_backend())]
    pub port: Option<Backend>,

    /// Leave the UDP checksum of IPv4 frames zero (RFC 768 permits it), so that GRO does not verify it
    #[arg(long)]
    pub no_udp_checksum: bool,

    /// Frames that the generator hands over at once [default: the number that measures best]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub batch: Option<u32>,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stamp_every: u32,

    /// Print these arguments as a plan for `linerate run`, and measure nothing
    #[arg(long)]
    pub print_plan: bool,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Bench) -> Result<ExitCode> {
    let composed = compose(args)?;
    if args.print_plan {
        return all_of(&composed.text());
    }
    check_cpus(args)?;
    let campaign = composed.campaign()?;
    run::begin(&args.campaign);
    let session = Session::new(&args.campaign.wanted(), None, campaign, None)?;
    run::carry_out(session, &args.campaign)
}

/// A plan skips cells without their CPUs; an argument that names a missing CPU is an error.
fn check_cpus(args: &Bench) -> Result<()> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let named = [&args.cpus, &args.dut_cpus].into_iter().flatten().flat_map(|cpus| &cpus.0);
    match named.into_iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => {
            bail_usage!("CPU {cpu} is not online, or not allowed to this process: there are {online:?}")
        }
        None => Ok(()),
    }
}

/// A plan as text, each line with the argument that it comes from.
#[derive(Default)]
struct Composed(Vec<(String, &'static str)>);

impl Composed {
    /// Keys and their values, each behind the argument that it comes from; JSON writes strings, numbers and lists as TOML does. A key
    /// without a value is left out.
    fn keys<'k>(&mut self, keys: impl IntoIterator<Item = (&'static str, &'k str, Value)>) {
        let keys = keys.into_iter().filter(|(.., value)| !value.is_null());
        self.0.extend(keys.map(|(argument, key, value)| (format!("{key} = {value}"), argument)));
    }

    fn section<'k>(
        &mut self,
        argument: &'static str,
        name: &str,
        keys: impl IntoIterator<Item = (&'static str, &'k str, Value)>,
    ) {
        self.0.extend([(String::new(), ""), (format!("[{name}]"), argument)]);
        self.keys(keys);
    }

    fn text(&self) -> String {
        self.0.iter().map(|(line, _)| format!("{line}\n")).collect()
    }

    fn campaign(&self) -> Result<Campaign> {
        let mut files = |name: &str| input::rules(Path::new(name));
        let plan = Plan::read_with(self.text().as_bytes(), &mut files).map_err(|faults| {
            usage(faults.iter().map(|fault| self.told(fault)).collect::<Vec<_>>().join("\nlinerate: "))
        })?;
        let mut campaign = plan.campaign(System::Linux, false).cloned().context("the plan is for Linux")?;
        campaign.name_by_frames();
        Ok(campaign)
    }

    /// A fault of the plan, reported at its argument. Remedies name keys of a plan.
    fn told(&self, fault: &Diagnostic) -> String {
        let line = fault.place.and_then(|place| self.0.get(place.line.saturating_sub(1)));
        let argument = line.map_or("", |(_, argument)| *argument);
        let mut remedy = fault.remedy.clone();
        for (key, argument) in [
            ("add link-speed = \"10 Gbit/s\" to [lab]", "add --link-speed 10G"),
            ("add mode = \"threaded\"", "add --mode threaded"),
            ("fewer levels", "fewer --sizes and --variant, or --trials"),
            ("more generator-cpus", "more --cpus"),
            ("name a file by its way from the plan's folder", "name a file of rules"),
            (linerate_plan::rules::own::SAY_TOOL, "give it what nft list ruleset or iptables-save prints"),
        ] {
            remedy = remedy.map(|remedy| remedy.replace(key, argument));
        }
        let map = argument == "--rules" && remedy.as_ref().is_some_and(|remedy| remedy.contains("map"));
        let fault = Diagnostic { remedy, place: None, evidence: None, ..fault.clone() };
        let fault = if argument.is_empty() { fault } else { fault.of(argument) };
        format!("{fault}{}", if map { " (--map NAME=in, --map NAME=out)" } else { "" })
    }
}

fn compose(args: &Bench) -> Result<Composed> {
    let mut plan = Composed::default();
    plan.keys([
        ("", "title", json!("linerate bench")),
        ("", "question", json!("How many frames does this machine forward?")),
    ]);
    let cpus = |cpus: &Option<Cpus>| json!(cpus.as_ref().map(|cpus| settings::cpu_list(&cpus.0)));
    let lab = [
        ("--mode", "mode", json!(args.mode)),
        ("--cpus", "generator-cpus", cpus(&args.cpus)),
        ("--dut-cpus", "dut-cpus", cpus(&args.dut_cpus)),
        ("--link-speed", "link-speed", json!(args.link_speed.map(|s| format!("{} Mbit/s", s / 1e6)))),
        ("--port", "port", json!(args.port.map(Backend::name))),
        ("--batch", "batch", json!(args.batch)),
    ];
    plan.section("", "lab", lab);
    let families: Vec<String> = families_of(args)?.iter().map(ToString::to_string).collect();
    let sizes: Vec<String> = args.sizes.0.iter().map(size).collect();
    let mut levels = vec![("--family", "family", families), ("--sizes", "size", sizes)];
    levels.extend(args.headers.keys());
    plan.section("", "traffic", traffic(args, &levels)?);
    let variants = variants(args, &mut plan)?;
    levels.retain(|(.., levels)| levels.len() > 1);
    for (argument, name, levels) in &levels {
        let sets = json!(format!("traffic.{name}"));
        let keys = [(*argument, "sets", sets), (*argument, "levels", json!(levels))];
        plan.section("", &format!("factors.{name}"), keys);
    }
    // Each ratio that a reader will look at decides when to stop; without ratios, the share of the tester's ceiling does.
    let interests: &[&str] = match (variants > 1, levels.iter().any(|(_, name, _)| *name != "size")) {
        (true, true) => &["variants", "levels"],
        (true, false) => &["variants"],
        (false, true) => &["levels"],
        (false, false) => &["ceilings"],
    };
    let until = args.trials.is_none().then_some(UNTIL);
    plan.section("", "compare", [("", "what", json!(interests)), ("", "until", json!(until))]);
    // As `bench` has always had it: a number of trials that is asked for is run.
    let budget = args.campaign.budget.or_else(|| args.trials.is_none().then_some(DEFAULT_BUDGET));
    let time = |time: Duration| duration_text(time.as_nanos() as u64);
    let trials = [
        ("--duration", "duration", json!(time(args.duration))),
        ("--trials", "blocks", json!(args.trials)),
        ("--budget", "budget", json!(budget.map(time))),
        ("--seed", "seed", json!(args.campaign.seed)),
    ];
    plan.section("", "trials", trials);
    Ok(plan)
}

/// The IP versions that are asked for, as far as this kernel has them.
fn families_of(args: &Bench) -> Result<&'static [&'static str]> {
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists() || args.campaign.simulate.is_some();
    match args.family {
        Families::Ipv6 if !ipv6 => bail_usage!("this kernel has no IPv6: leave --family 6 out"),
        Families::Ipv6 => Ok(&["IPv6"]),
        Families::Both if ipv6 => Ok(&["IPv4", "IPv6"]),
        Families::Ipv4 | Families::Both => Ok(&["IPv4"]),
    }
}

/// The keys of the frames. `levels`: those that may have several, which are a factor then, with their arguments.
fn traffic<'l>(
    args: &Bench,
    levels: &'l [(&'static str, &'static str, Vec<String>)],
) -> Result<impl Iterator<Item = (&'static str, &'l str, Value)>> {
    let transport = match args.transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::IcmpEcho => "ICMP",
    };
    let rate = (args.rate != Rate::Max).then(|| rate::serialize(&args.rate, serde_json::value::Serializer));
    let ipv4 = levels.iter().any(|(.., values)| values.iter().any(|value| value == "IPv4"));
    let unchecked = args.no_udp_checksum && transport == "UDP" && ipv4;
    let only = levels.iter().map(|(argument, name, values)| match &values[..] {
        [only] => (*argument, *name, json!(only)),
        _ => (*argument, *name, Value::Null),
    });
    Ok(only.chain([
        ("--transport", "transport", json!(transport)),
        ("--flows", "flows", json!(args.flows)),
        ("--order", "order", json!(args.order.to_string())),
        ("--rate", "rate", json!(rate.transpose()?)),
        ("--no-udp-checksum", "checksum", json!(unchecked.then_some(false))),
        ("--stamp-every", "stamp-every", json!(args.stamp_every)),
        ("--direction", "direction", json!((args.direction != "forward").then_some(&args.direction))),
    ]))
}

/// One length as a plan has it, with its unit.
fn size(mix: &FrameMix) -> String {
    match mix.pattern.as_slice() {
        [length] => format!("{length} B"),
        _ => mix.to_string(),
    }
}

/// The requested variants. Plain forwarding is the baseline of every other variant, unless the user compares something by hand or
/// checks linerate with a DUT whose answer is known. Returns the number of variants.
fn variants(args: &Bench, plan: &mut Composed) -> Result<usize> {
    let mut names: HashMap<String, usize> = HashMap::new();
    // The same variant twice gets a number, so that the names differ.
    let mut variant = |plan: &mut Composed, argument, name: &str, from: &str| {
        let number = names.entry(name.into()).or_default();
        *number += 1;
        let name = if *number == 1 { name.into() } else { format!("{name}#{number}") };
        let states = (args.states != States::default()).then(|| args.states.to_string());
        let keys = [
            (argument, "from", json!(from)),
            (argument, "apart", json!((*number > 1).then_some(true))),
            ("--states", "states", json!(states)),
        ];
        plan.section(argument, &format!("variants.{}", json!(name)), keys);
    };
    let mut own = args.variants.iter();
    if !own.any(|variant| variant.name == "forwarding" || variant.settings.dut.is_known()) {
        variant(plan, "--variant", "forwarding", "forwarding");
    }
    args.variants.iter().for_each(|own| variant(plan, "--variant", &own.name, &own.name));
    let mut unused: Vec<&(String, Meaning)> = args.map.iter().collect();
    for path in &args.rules {
        let file = path.display().to_string();
        variant(plan, "--rules", file.rsplit('/').next().unwrap_or_default(), "forwarding");
        plan.keys([("--rules", "rules.file", json!(file))]);
        let text = input::rules(path).unwrap_or_default();
        // With several files, each takes the entries of the map whose names it contains.
        let there = |(name, _): &(String, Meaning)| args.rules.len() == 1 || text.contains(name.as_str());
        for (name, end) in args.map.iter().filter(|entry| there(entry)) {
            plan.keys([("--map", &*format!("rules.map.{}", json!(name)), json!(end.to_string()))]);
        }
        unused.retain(|entry| !there(entry));
    }
    match unused.first() {
        Some((name, _)) => bail_usage!("--map {name}: no rule file names it"),
        None => Ok(names.values().sum()),
    }
}

/// Time for all trials, where neither time nor trials are named.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);

/// Trials go on until all ratios are known this well.
const UNTIL: &str = "2 %";
