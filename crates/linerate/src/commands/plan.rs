//! From the arguments of `bench` to slots: which variants, frames and rates stand side by side.

use crate::cli::{Bench, FamilyChoice};
use crate::output::usage;
use crate::rule_files;
use crate::testbed::{SlotLoad, TrafficKind};
use anyhow::{Context, Result};
use linerate_linux::lab::{Setup, Variant};
use linerate_measure::record::Slot;
use linerate_plan::rules::own::{Meaning, RuleFile};
use linerate_plan::settings::Dut;
use linerate_plan::timing::Timing;
use linerate_wire::{Family, FlowSpace, FrameMix, FrameSpec, MacAddr, Transport};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What will be measured.
pub struct Plan {
    /// Lanes; the first is the tester baseline.
    pub variants: Vec<Variant>,
    /// Rule files, whose lanes follow those, with the names of these.
    pub rules: Vec<(String, RuleFile)>,
    /// Kinds of traffic.
    pub kinds: Vec<TrafficKind>,
    /// Which lane and kind each slot is.
    pub layout: Vec<SlotLoad>,
    /// The slots as they are recorded.
    pub slots: Vec<Slot>,
    /// What a reader should know about the choice of frames.
    pub notes: Vec<String>,
}

/// Lays out the slots. `cpus`: the generator's; `ipv6`: whether this kernel has it.
///
/// # Errors
/// Frames, flows or rates that cannot be.
pub fn plan(args: &Bench, cpus: &[u32], ipv6: bool) -> Result<Plan> {
    let variants = variants(args);
    let rules = rule_files(args)?;
    let names = lane_names(&variants, &rules);
    let notes = rules.iter().flat_map(RuleFile::notes).collect();
    let rules = names[variants.len()..].iter().cloned().zip(rules).collect();
    let mut plan = Plan { variants, rules, kinds: Vec::new(), layout: Vec::new(), slots: Vec::new(), notes };
    for size in &args.sizes.0 {
        let first_slot = plan.slots.len();
        for family in families(args, ipv6)? {
            let kind = kind(args, family, size, cpus, &mut plan.notes)?;
            let asked = rate(args, &kind.mix, cpus.len())?;
            plan.kinds.push(kind);
            plan.add_kind(&names, asked, first_slot);
        }
    }
    Ok(plan)
}

impl Plan {
    /// The DUT of each lane.
    pub fn setups(&self) -> Vec<Setup> {
        let mut setups: Vec<Setup> = self.variants.iter().map(Setup::from).collect();
        for (name, file) in &self.rules {
            let setup = Setup { name: name.clone(), ..Setup::of(Dut::Forwarding) };
            setups.push(setup.with_rule_file(file, setups.len()));
        }
        setups
    }

    /// Adds a slot per lane for the kind added last. `first_slot` is the first of the same size, whatever its family.
    fn add_kind(&mut self, names: &[String], asked: Option<f64>, first_slot: usize) {
        let kind_number = self.kinds.len() - 1;
        let kind = &self.kinds[kind_number];
        let ceiling = self.slots.len();
        for (lane, name) in names.iter().enumerate() {
            let id = self.slots.len();
            let other_family = ceiling > first_slot;
            let baseline = match lane {
                0 => None,
                1 if other_family => Some(first_slot + 1),
                1 => None,
                _ => Some(ceiling + 1),
            };
            let asked_fps = if lane == 0 { None } else { asked };
            self.layout.push(SlotLoad { lane, kind: kind_number });
            self.slots.push(Slot {
                id,
                variant: name.clone(),
                family: kind.frame.family.to_string(),
                transport: kind.frame.transport.to_string(),
                frame: kind.mix.name.clone(),
                lengths_fcs: kind.mix.pattern.clone(),
                l4_checksum: kind.frame.l4_checksum,
                signed: kind.frame.signed,
                asked_fps,
                ceiling: (lane > 0).then_some(ceiling),
                baseline,
                flows: None,
                cpus: None,
                no_ceiling: false,
                imported: None,
            });
        }
    }
}

/// Tester baseline, then what was asked for. Plain forwarding is the baseline of every other variant, unless the user compares
/// something by hand or checks linerate with a DUT whose answer is known.
fn variants(args: &Bench) -> Vec<Variant> {
    let known = |v: &Variant| {
        use Variant::{KnownDelay, KnownDuplication, KnownLoss, KnownRate};
        matches!(v, KnownRate(_) | KnownLoss(_) | KnownDuplication(_) | KnownDelay(_))
    };
    let mut all = vec![Variant::TesterBaseline];
    if !args.variants.contains(&Variant::Forwarding) && !args.variants.iter().any(known) {
        all.push(Variant::Forwarding);
    }
    all.extend(args.variants.iter().cloned());
    all
}

/// The same variant twice gets a number, so that the two can be told apart.
fn lane_names(variants: &[Variant], rules: &[RuleFile]) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut name = |name: String| {
        let n = seen.entry(name.clone()).or_default();
        *n += 1;
        if *n == 1 { name } else { format!("{name}#{n}") }
    };
    let of_file = |file: &RuleFile| file.file.rsplit('/').next().unwrap_or_default().to_string();
    variants.iter().map(ToString::to_string).chain(rules.iter().map(of_file)).map(&mut name).collect()
}

/// The rule files, read. With several of them, each takes of the map what is in it.
fn rule_files(args: &Bench) -> Result<Vec<RuleFile>> {
    let mut found = Vec::new();
    let mut unused: BTreeMap<String, Meaning> = args.map.iter().cloned().collect();
    for path in &args.rules {
        let file = path.display().to_string();
        let text =
            rule_files::text(path).map_err(|why| usage(format!("--rules {file} cannot be read: {why}")))?;
        let there = |(name, _): &&(String, Meaning)| args.rules.len() == 1 || text.contains(name.as_str());
        let map: BTreeMap<String, Meaning> = args.map.iter().filter(there).cloned().collect();
        unused.retain(|name, _| !map.contains_key(name));
        let read = RuleFile::read(&file, &text, None, &map)
            .map_err(|wrong| usage(format!("{wrong} (--map NAME=in, --map NAME=out)")))?;
        if !read.firewall.is_linux() {
            return Err(usage(format!(
                "{file} is a rule file of {}: here are nftables and iptables; a plan with a lab file measures it on a host that has it",
                read.firewall
            )));
        }
        found.push(read);
    }
    match unused.keys().next() {
        Some(name) => Err(usage(format!("--map {name}: no rule file names it"))),
        None => Ok(found),
    }
}

fn families(args: &Bench, ipv6: bool) -> Result<Vec<Family>> {
    match args.family {
        FamilyChoice::V4 => Ok(vec![Family::V4]),
        FamilyChoice::V6 if !ipv6 => Err(usage("this kernel has no IPv6: leave --family 6 out")),
        FamilyChoice::V6 => Ok(vec![Family::V6]),
        FamilyChoice::Both if ipv6 => Ok(vec![Family::V4, Family::V6]),
        FamilyChoice::Both => Ok(vec![Family::V4]),
    }
}

fn kind(
    args: &Bench,
    family: Family,
    size: &FrameMix,
    cpus: &[u32],
    notes: &mut Vec<String>,
) -> Result<TrafficKind> {
    let nowhere = MacAddr([2, 0, 0, 0, 0, 0]);
    let mut frame = FrameSpec::new(nowhere, nowhere, family, args.transport);
    frame.l4_checksum = !(args.no_udp_checksum && family == Family::V4 && args.transport == Transport::Udp);
    let mix = long_enough(size, &frame, notes);
    let flows = FlowSpace::benchmark(family, args.flows).map_err(usage)?;
    Ok(TrafficKind { frame, mix, flows: Arc::new(flows), order: args.order, cpus: cpus.to_vec() })
}

/// The smallest frame that carries a signature is longer than 64 bytes for IPv6 and TCP: it is used instead, and named.
pub fn long_enough(size: &FrameMix, frame: &FrameSpec, notes: &mut Vec<String>) -> FrameMix {
    let least = frame.min_len_fcs();
    if size.min_len_fcs() >= least {
        return size.clone();
    }
    let pattern: Vec<u16> = size.pattern.iter().map(|l| (*l).max(least)).collect();
    let name = if pattern.len() == 1 { least.to_string() } else { format!("{} (least {least})", size.name) };
    notes.push(format!(
        "{} {} frames are at least {least} bytes long where they carry linerate's signature; {} was asked for",
        frame.family, frame.transport, size.name
    ));
    FrameMix { name, pattern }
}

fn rate(args: &Bench, mix: &FrameMix, threads: usize) -> Result<Option<f64>> {
    args.rate.frames_per_second(mix.average_len_fcs(), args.link_speed, threads).map_err(usage)
}

/// What a trial takes beyond its load: start, stop, drain, reading.
pub const BETWEEN: Duration = Duration::from_millis(30);

/// How long all trials will take at most, for the progress line.
pub fn expected(args: &Bench, slots: usize, timing: &Timing) -> Duration {
    let block_ns = slots as u64 * (timing.load_ns() + BETWEEN.as_nanos() as u64);
    args.trials.map_or(args.budget, |trials| Duration::from_nanos(u64::from(trials).saturating_mul(block_ns)))
}

/// The times of one trial.
///
/// # Errors
/// Trials that do not fit the budget.
pub fn timing(args: &Bench, slots: usize) -> Result<Timing> {
    let run_ns = args.duration.as_nanos() as u64;
    if run_ns < 10_000_000 {
        return Err(usage("--duration: a trial of less than 10ms measures how it starts, not how it runs"));
    }
    let block_ns = Timing::slice(run_ns).load_ns().saturating_mul(slots as u64);
    if args.trials.is_none() && block_ns > args.budget.as_nanos() as u64 {
        return Err(usage(format!(
            "one block of {slots} trials takes {:.1} s, more than --budget: give it more time, or use fewer --sizes and --variant, a shorter --duration, or --trials",
            block_ns as f64 / 1e9
        )));
    }
    Ok(Timing::slice(run_ns))
}

/// A seed for those who gave none.
///
/// # Errors
/// The clock is before 1970.
pub fn seed(args: &Bench) -> Result<u64> {
    let since = || std::time::UNIX_EPOCH.elapsed().context("reading the clock");
    args.seed.map_or_else(|| Ok(since()?.as_nanos() as u64), Ok)
}
