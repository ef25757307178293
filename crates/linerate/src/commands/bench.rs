//! `linerate bench`: a plan out of arguments, carried out as any other.

use super::run;
use crate::args::keyed::{Keys, Opt, Verb, key, levels, stands_for};
use crate::args::{HEADERS, Sizes, mapping, sizes};
use crate::prelude::*;
use clap::builder::ArgPredicate;
use linerate_linux::host::cpu;
use linerate_linux::net::conntrack;
use linerate_measure::experiment::System;
use linerate_measure::record::States;
use linerate_plan::campaign::Campaign;
use linerate_plan::rules::own::{Meaning, RuleFile, recognised};
use linerate_plan::{Keyed, Plan, Source, parse_cpus};
use linerate_runner::session::{Session, Wanted, told};
use linerate_wire::FrameMix;
use std::collections::HashMap;

/// Options of `bench` that are keys of a plan.
#[derive(Debug)]
pub struct Options;

impl Verb for Options {
    const OPTIONS: &'static [&'static [Opt]] = &[
        &[
            key("--connections", "traffic.connections", "LIST").levels().alone("request"),
            key("--http", "traffic.http", "LIST").levels().alone("close"),
            key("--concurrent", "traffic.open", "N").levels(),
            key("--close", "traffic.close", "LIST").levels(),
            key("--servers", "traffic.servers", "N").levels(),
            key("--served-by", "traffic.served-by", "LIST").levels(),
            key("--flood", "traffic.flood", "LIST").levels(),
            key("--illegal", "traffic.illegal", "LIST").levels(),
            key("--object", "traffic.object", "BYTES").levels(),
            key("--flows", "traffic.flows", "N").about(
                "Number of flows, which differ in addresses or ports; with --http, concurrent connections [default: 2000; 64 with --http; for the variant FILE-new of --rules three quarters of what the connection table takes, at most 200,000]",
            ),
            key("--order", "traffic.order", "ORDER"),
        ],
        &HEADERS,
        &[
            key("--rate", "traffic.rate", "RATE"),
            key("--direction", "traffic.direction", "DIRECTION"),
            key("--link-speed", "lab.link-speed", "SPEED").about(
                "Link speed that counts as 100 %, the speed of the slower link; rates such as 50% need this option",
            ),
            key("--duration", "trials.duration", "TIME").about(
                "How long one trial measures [default: 250ms; 1s with --http; 100ms where --rules adds the variant FILE-new]",
            ),
            key("--trials", "trials.blocks", "N").about(
                "Trials of each combination of variant, frame length and IP version [default: until the 95 % intervals of \
                    the compared ratios are narrower than 2 %, or the budget is used up]",
            ),
            key("--mode", "lab.mode", "MODE").only(&["inline", "threaded"]),
            key("--cpus", "lab.generator-cpus", "LIST"),
            key("--dut-cpus", "lab.dut-cpus", "LIST"),
            key("--transport", "traffic.transport", "TRANSPORT"),
            key("--backend", "lab.port", "BACKEND"),
            key("--batch", "lab.batch", "N"),
            key("--stamp-every", "traffic.stamp-every", "N"),
        ],
    ];
    const OWN: &'static [Keyed] = &[
        stands_for("--family", "traffic.family"),
        stands_for("--sizes", "traffic.size"),
        stands_for("--budget", "trials.budget"),
        stands_for("--map", "rules.map"),
    ];
}

#[derive(Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 30s, unless --trials is given]")))]
#[command(mut_arg("seed", |arg| arg.help("Seed of the order of trials [default: random; the records have it]")))]
#[command(mut_arg("name", |arg| arg.help("Name of the campaign (this measurement and its records), and part of the name of its directory [default: bench]")))]
#[command(after_help = "Examples:
  sudo linerate bench                            IPv4 and IPv6, smallest frames, 2,000 flows
  sudo linerate bench --variant nft-stateless --variant nft-stateful
  sudo linerate bench --rules /etc/nftables.conf     what do my own rules cost?
  sudo linerate bench --rules fw.nft --map eth1=in --map eth0=out --map 192.168.1.0/24=in
  sudo linerate bench --connections request --variant nft-stateful   new connections a second
  sudo linerate bench --concurrent 100000 --variant nft-stateful     are 100,000 connections held at once?
  sudo linerate bench --http keep-alive --object 16384 --variant nat   requests a second, by wrk and nginx
  sudo linerate bench --sizes 64,512,1518,imix --family 4
  sudo linerate bench --mode threaded --rate 500kpps  open loop: loss and latency at this load
  sudo linerate bench --direction both           frames from both sides at once
  sudo linerate bench --variant known-loss=1000  is exactly one loss in 1,000 found?
  linerate bench                                 without root: a slower tester
  linerate bench --simulate loss=1000            without packets: a simulated DUT

Variants:
  forwarding           the kernel's routing alone. It is the baseline, unless you name it or a
                       known-... variant: then the first --variant is the baseline
  nft-stateless        nftables filter without connection tracking
  nft-stateful         nftables filter with connection tracking; its first rule accepts established connections
  nat                  nftables masquerade (the plans of linerate call it nft-nat)
  bridge               a bridge instead of a router
  routed-bridge        a router; its inside interface is the only port of a bridge, and the bridge has the address
  macvlan, vlan        a router with macvlan or 802.1Q VLAN interfaces on top of its two links
  vxlan                a router that puts frames into a VXLAN tunnel towards the receiver
  vrf                  a router with both interfaces in a VRF, which has a routing table of its own
  two-routers          two routers in a row, to compare tunnels with
  gre, ipip, sit, geneve, wireguard, ipsec
                       two routers in a row with such a tunnel between them: one wraps each packet, one unwraps it
  nested               a router in a second network namespace, inside the DUT's
  xdp                  an XDP program that forwards by the kernel's routing table
  known-rate=N         passes exactly N frames/s on each CPU: a DUT with a known answer
  known-loss=N         loses exactly every N-th frame
  known-loss=N@FRAME   loses exactly every N-th frame of this name in connections: syn, syn-ack, request, answer, fin or last-ack
  known-numbers=N      adds N to all TCP sequence numbers
  known-duplication=N  sends exactly every N-th frame twice
  known-delay=T        delays every frame by T, up to 200us
  known-delays=T/T     delays frames by the first and the second time in turn
  known-queue=N@R      on each CPU a queue of N frames, emptied at R frames/s; it drops what does not fit
  known-outage=T@S     drops every frame for the time T, from the time S after the first frame of each load

A rule file is input of nft or output of iptables-save. linerate loads it in the lab's namespace, never on this host,
and replaces its interfaces and networks with the lab's: `in` is the generator's side, `out` the receiver's. Without
--map linerate guesses, and prints its guess. docs/rules.md has more.

Terms: a campaign is one measurement, with a folder for its records. A variant is one kind of DUT; the baseline is
the variant that others are compared with. A cell is a variant with one frame length, IP version and value of each
factor. A block is one trial of each cell, in random order.

The arguments of `bench` make up a plan: --print-plan prints it, and `linerate run` carries it out. `linerate run
--resume DIR` continues a stopped campaign.

Exit status: 0 measured; 1 an error, or some variant has no result: it could not be measured here, none of its trials
was valid, or it dropped every frame (except known-loss=1, and with --simulate); 2 bad arguments; 3 --fail-if-slower found a slower variant; 4 no variant
can be measured here; 5 --fail-if-slower is undecided; 130 interrupted (the results so far are recorded and shown).")]
pub struct Bench {
    /// Variant of the DUT (see below); may be repeated. `forwarding` twice shows how much two equal DUTs differ
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<BuiltIn>,

    /// Measure a DUT with the rules of this file (nft or iptables-save); may be repeated. Implies --family 4, unless --family is
    /// given. If the rules track connections, the variant FILE-new is measured as well: each of its frames opens a connection
    #[arg(long = "rules", value_name = "FILE")]
    rules: Vec<PathBuf>,

    /// Side of the lab for an interface or network of the rule files: eth0=out, 192.168.1.0/24=in, 198.18.0.0/15=elsewhere (on neither
    /// side); may be repeated [default: guessed and printed]
    #[arg(long = "map", value_name = "NAME=END", value_parser = mapping, requires = "rules")]
    map: Vec<(String, Meaning)>,

    /// Frame lengths in bytes with FCS, measured in alternating trials: 64,1518,imix,genome:aaafg (RFC 6985),rfc2544 (its seven
    /// lengths)
    #[arg(long, alias = "size", value_name = "LIST", value_parser = sizes, default_value = "64", conflicts_with_all = CONNECT_IDS)]
    sizes: Sizes,

    /// IP version: 4, 6 or both [default: both; 4 with --rules, --connections, --served-by, --concurrent, --http or --ipv6-share; 6
    /// with --extension-headers]
    #[arg(long, value_parser = families(), default_value_ifs([("rules", ArgPredicate::IsPresent, "4"), ("ipv6-share", ArgPredicate::IsPresent, "4"), ("connections", ArgPredicate::IsPresent, "4"), ("served-by", ArgPredicate::IsPresent, "4"), ("concurrent", ArgPredicate::IsPresent, "4"), ("http", ArgPredicate::IsPresent, "4"), ("extension-headers", ArgPredicate::IsPresent, "6")]), default_value = "both", hide_default_value = true)]
    family: Families,

    /// State of the connections when a trial begins, for DUTs that track them: established (seen in both directions), one-way (never
    /// answered), new (unknown to the DUT: the first frame of each flow opens a connection) [default: established]
    #[arg(long, value_name = "STATES", value_parser = names_of::<States>(), conflicts_with_all = CONNECT_IDS)]
    states: Option<States>,

    /// Measure in a guest of QEMU that runs this kernel: the path of a bzImage or of a Debian package, a version in /boot, or `running`; if
    /// it is repeated, the kernels alternate and are compared. Needs KVM, or --emulated
    #[arg(long = "kernel", value_name = "KERNEL", conflicts_with = "simulate")]
    kernels: Vec<String>,

    #[command(flatten)]
    keys: Keys<Options>,

    /// Leave the UDP checksum of IPv4 frames zero (RFC 768 permits this), so that GRO does not verify checksums
    #[arg(long)]
    no_udp_checksum: bool,

    /// Print these arguments as a plan for `linerate run`, and measure nothing
    #[arg(long)]
    print_plan: bool,

    #[command(flatten)]
    campaign: CampaignArgs,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Bench) -> Exit {
    let source = source(args)?;
    check_cpus(args)?;
    let campaign = campaign(&source)?;
    if args.print_plan {
        return all_of(&source.toml());
    }
    run::begin(&args.campaign);
    let session = Session::new(&args.campaign.wanted(), None, campaign, None)?;
    run::carry_out(session, &args.campaign)
}

/// A plan skips cells without their CPUs; an argument that names a missing CPU is an error.
fn check_cpus(args: &Bench) -> Result<()> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let lists = ["--cpus", "--dut-cpus"]
        .into_iter()
        .filter_map(|option| args.keys.text(option));
    let named: Vec<u32> = lists
        .filter_map(|list| parse_cpus(list).ok())
        .flatten()
        .collect();
    match named.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => {
            bail_usage!(
                "CPU {cpu} is not online, or not allowed to this process: there are {online:?}"
            )
        }
        None => Ok(()),
    }
}

fn campaign(source: &Source) -> Result<Campaign> {
    let plan = Plan::of(source, &mut |name| input::rules(Path::new(name))).map_err(told)?;
    let mut campaign = plan
        .campaign(System::Linux, false)
        .cloned()
        .context("the plan is for Linux")?;
    campaign.name_by_frames();
    Ok(campaign)
}

/// The plan that the arguments make.
fn source(args: &Bench) -> Result<Source> {
    let mut plan = args.keys.over(Source::default());
    plan.set("", &["title"], "linerate bench");
    let question = if args.keys.has("--concurrent") {
        "How many connections does this machine keep open at the same time?"
    } else if args.keys.has("--http") {
        "How many HTTP requests does this machine carry?"
    } else if CONNECT.iter().any(|option| args.keys.has(option)) {
        "How many new connections does this machine forward?"
    } else {
        "How many frames does this machine forward?"
    };
    plan.set("", &["question"], question);
    let families = families_of(args)?;
    levels(&mut plan, "--family", "traffic.family", &families);
    if !CONNECT.iter().any(|option| args.keys.has(option)) {
        let sizes: Vec<Value> = args.sizes.0.iter().map(size).collect();
        levels(&mut plan, "--sizes", "traffic.size", &sizes);
    }
    args.keys.set(&mut plan);
    let ipv4 = families.contains(&json!("IPv4"));
    if args.no_udp_checksum
        && ipv4
        && args
            .keys
            .text("--transport")
            .is_none_or(|name| name == "UDP")
    {
        plan.set("--no-udp-checksum", &["traffic", "checksum"], false);
    }
    let variants = variants(args, &mut plan)?;
    // Each ratio that a reader will look at decides when to stop; without ratios, the share of the tester's ceiling does.
    let varied = [
        "family",
        "connections",
        "http",
        "open",
        "close",
        "servers",
        "served-by",
        "flood",
        "illegal",
        "object",
        "ipv6-share",
        "extension-headers",
    ];
    let interests: &[&str] = match (
        variants > 1,
        varied.iter().any(|name| plan.has(&["factors", name])) || args.kernels.len() > 1,
    ) {
        (true, true) => &["variants", "levels"],
        (true, false) => &["variants"],
        (false, true) => &["levels"],
        (false, false) => &["ceilings"],
    };
    plan.set("", &["compare", "what"], interests);
    let trials = args.keys.has("--trials");
    if !trials {
        plan.set("", &["compare", "until"], UNTIL);
    }
    // As `bench` has always had it: a number of trials that is asked for is run.
    if !trials {
        plan.set("", &["trials", "budget"], DEFAULT_BUDGET);
    }
    let wanted = Wanted {
        kernels: args.kernels.clone(),
        ..args.campaign.wanted()
    };
    wanted.set(&mut plan);
    Ok(plan)
}

/// The IP versions that are asked for, as far as this kernel has them.
fn families_of(args: &Bench) -> Result<Vec<Value>> {
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists() || args.campaign.simulate.is_some();
    match args.family {
        Families::Ipv6 if !ipv6 => bail_usage!("this kernel has no IPv6: leave --family 6 out"),
        Families::Both if !ipv6 => Ok(run::versions(Families::Ipv4)),
        families => Ok(run::versions(families)),
    }
}

/// One length as a plan has it, with its unit.
fn size(mix: &FrameMix) -> Value {
    match mix.pattern.as_slice() {
        [length] => json!(format!("{length} B")),
        _ => json!(mix.to_string()),
    }
}

/// Adds a variant to the plan. One that is named twice gets a number, so that the names differ.
fn add(
    args: &Bench,
    plan: &mut Source,
    names: &mut HashMap<String, usize>,
    [argument, name, from]: [&str; 3],
) -> String {
    let number = names.entry(name.into()).or_default();
    *number += 1;
    let name = if *number == 1 {
        name.into()
    } else {
        format!("{name}#{number}")
    };
    plan.set(argument, &["variants", &name, "from"], from);
    if *number > 1 {
        plan.set(argument, &["variants", &name, "apart"], true);
    }
    if let Some(states) = args.states {
        plan.set(
            "--states",
            &["variants", &name, "states"],
            states.to_string(),
        );
    }
    name
}

/// The requested variants. Plain forwarding is the baseline of every other variant, unless the user compares something by hand or
/// checks linerate with a DUT whose answer is known. Returns the number of variants.
fn variants(args: &Bench, plan: &mut Source) -> Result<usize> {
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut own = args.variants.iter();
    if !own.any(|variant| variant.name == "forwarding" || variant.settings.dut.is_known()) {
        add(
            args,
            plan,
            &mut names,
            ["--variant", "forwarding", "forwarding"],
        );
    }
    for own in &args.variants {
        add(args, plan, &mut names, ["--variant", &own.name, &own.name]);
    }
    let mut unused: Vec<&(String, Meaning)> = args.map.iter().collect();
    let mut first = Vec::new();
    // Where the user says nothing else of flows.
    let said = [&CONNECT[..], &["--flows"]].concat();
    let both_ways = args
        .keys
        .text("--direction")
        .is_some_and(|way| way == "both");
    let alone =
        args.states.is_none() && !both_ways && !said.iter().any(|option| args.keys.has(option));
    for path in &args.rules {
        let file = path.display().to_string();
        let short = file.rsplit('/').next().unwrap_or_default();
        let name = add(args, plan, &mut names, ["--rules", short, "forwarding"]);
        let text = input::rules(path).unwrap_or_default();
        if let Some(firewall) = recognised(&text)
            .ok()
            .filter(|firewall| !firewall.is_linux())
        {
            bail_usage!(
                "{file} is a rule file of {firewall}, and this machine has nftables and iptables: write a plan whose rules.file names the file, and run it on a router that has {firewall}: linerate run PLAN --lab LAB.toml (docs/rules.md)"
            );
        }
        plan.set("--rules", &["variants", &name, "rules", "file"], file);
        // With several files, each takes the entries of the map whose names it contains.
        let there =
            |(name, _): &(String, Meaning)| args.rules.len() == 1 || text.contains(name.as_str());
        for (from, end) in args.map.iter().filter(|entry| there(entry)) {
            plan.set(
                "--map",
                &["variants", &name, "rules", "map", from],
                end.to_string(),
            );
        }
        unused.retain(|entry| !there(entry));
        let own = args.map.iter().filter(|entry| there(entry));
        let file = RuleFile::read(&name, &text, None, &own.cloned().collect());
        if let Ok(file) = &file {
            announce(file, args.campaign.quiet);
            if alone && file.tracks() {
                first.push(name);
            }
        }
    }
    let lasting = if first_packets(plan, &first, &mut names) {
        FIRST_PACKETS_LAST
    } else if args.keys.has("--http") {
        HTTP_LASTS
    } else {
        USUAL_DURATION
    };
    if !args.keys.has("--duration") {
        plan.set("", &["trials", "duration"], lasting);
    }
    match unused.first() {
        Some((name, _)) => bail_usage!("--map {name}: no rule file names it"),
        None => Ok(names.values().sum()),
    }
}

/// Tells what was guessed of a rule file before anything is measured: a wrong guess measures something else.
fn announce(file: &RuleFile, quiet: bool) {
    let guessed = file.guessed.keys();
    let guessed = guessed.filter_map(|name| Some(format!("{name} is '{}'", file.map.get(name)?)));
    let guessed: Vec<String> = guessed.collect();
    if !guessed.is_empty() && !quiet {
        let elsewhere = guessed.iter().any(|text| text.ends_with("'elsewhere'"));
        let elsewhere = when(elsewhere, " ('elsewhere': on neither side of the DUT)");
        tell(format!(
            "{}: guessed: {}{elsewhere}; to correct a guess, give --map NAME=END",
            file.file,
            guessed.join(", ")
        ));
    }
}

/// Beside each of these variants, one in which each frame opens a connection: such a frame passes all rules in front of the one that
/// accepts it, and adds an entry to the table. Whether there are any.
fn first_packets(
    plan: &mut Source,
    variants: &[String],
    names: &mut HashMap<String, usize>,
) -> bool {
    let free = |of: &String| {
        let numbered = (2..).map(|number| format!("{of}-new#{number}"));
        let mut all = std::iter::once(format!("{of}-new")).chain(numbered);
        all.find(|name| !names.contains_key(name))
    };
    let new: Vec<String> = variants.iter().filter_map(free).collect();
    for (of, name) in variants.iter().zip(&new) {
        plan.set("--rules", &["variants", name, "from"], of.as_str());
        plan.set("--rules", &["variants", name, "states"], "new");
        names.insert(name.clone(), 1);
    }
    if !new.is_empty() {
        // More than a trial has frames, if the table holds so many.
        let flows = (conntrack::room() / 4 * 3).min(FIRST_PACKETS);
        plan.set("--rules", &["factors", "flows", "sets"], "traffic.flows");
        plan.set("--rules", &["factors", "flows", "levels"], vec![flows]);
        plan.set("--rules", &["factors", "flows", "variants"], new.as_slice());
    }
    !new.is_empty()
}

/// Options with which connections are opened instead of single frames sent.
const CONNECT: [&str; 4] = ["--connections", "--served-by", "--concurrent", "--http"];
/// Their names.
const CONNECT_IDS: [&str; 4] = ["connections", "served-by", "concurrent", "http"];

/// Connections that frames open in a trial, at most.
const FIRST_PACKETS: u64 = 200_000;

/// A trial of first packets: at 1.5 million frames a second, it has no more frames than connections.
const FIRST_PACKETS_LAST: &str = "100 ms";

/// The shortest load of wrk.
const HTTP_LASTS: &str = "1 s";

/// The load of other trials.
const USUAL_DURATION: &str = "250 ms";

/// Time for all trials, where neither time nor trials are named.
const DEFAULT_BUDGET: &str = "30 s";

/// Trials go on until all ratios are known this well.
const UNTIL: &str = "2 %";
