//! `linerate run`: a plan, carried out.

pub mod hosts;
mod prepare;
mod verdict;

use super::plan_file::{self, read};
use crate::campaign::{self, Earlier};
use crate::cli::Run;
use crate::interrupt::{self, INTERRUPTED as STOP, interrupted};
use crate::output::{FAILED, INTERRUPTED, faulty, tell, usage};
use crate::progress::{self, Progress};
use crate::testbed::{
    Backend, HOSTS_BATCH, Hosts, PACED_BATCH, SequentialLabs, Simulated, Testbed, parse_simulation,
};
use anyhow::{Context, Result, bail};
use hosts::Site;
use linerate_plan::campaign::{Campaign as Plan, Interest, Lab};
use linerate_plan::settings::Dut;
use linerate_plan::timetable::Timetable;

use linerate_linux::host;
use linerate_linux::host::journal::{Consent, Journal, Reservation};
use linerate_linux::net::userns;
use linerate_linux::ports::memory::MemoryDut;
use linerate_linux::records::{RecordStore, StoredCampaign, utc_now};
use linerate_measure::record::{Asked, Campaign, HostFacts, Planned, VERSION};
use linerate_measure::strategy::Stopped;
use linerate_plan::timing::Timing;
use linerate_plan::units::Rate;
use prepare::{Prepared, prepare};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdict::report;

/// Exit status where this machine can measure nothing of the plan.
const SKIPPED: u8 = 4;

/// Runs the verb.
///
/// # Errors
/// What kept it from measuring.
pub fn run(args: &Run) -> Result<ExitCode> {
    interrupt::install();
    if args.quiet {
        progress::silence();
    }
    let consent = if args.allow_host_changes { Consent::Allowed } else { Consent::Refused };
    let session = match (&args.resume, &args.plan) {
        (Some(directory), _) => Session::resumed(args, directory, consent)?,
        (None, Some(file)) => Session::fresh(args, file, consent)?,
        (None, None) => return Err(usage("name a plan, or --resume and a campaign's folder")),
    };
    session.run(args, consent)
}

/// Everything that is known before the first frame.
struct Session {
    planned: Planned,
    prepared: Prepared,
    facts: HostFacts,
    simulated: Option<MemoryDut>,
    /// The hosts of the plan's lab, where it is not this machine's own.
    site: Option<Site>,
    /// The campaign that is resumed.
    earlier: Option<(RecordStore, StoredCampaign)>,
    /// Where the host may be changed: no other campaign may meanwhile.
    reserved: Option<Reservation>,
}

impl Session {
    /// A new campaign.
    fn fresh(args: &Run, file: &Path, consent: Consent) -> Result<Session> {
        let simulated = args.simulate.as_deref().map(parse_simulation).transpose().map_err(usage)?;
        let Chosen { mut plan, site } = chosen(args, file, simulated.is_some())?;
        if let Some(budget) = args.budget {
            (plan.trials.budget_ns, plan.trials.blocks) = (Some(budget.as_nanos() as u64), None);
        }
        plan.trials.seed = Some(seed(args.seed.or(plan.trials.seed))?);
        let reserved = may_run(&plan, simulated.is_some(), consent)?;
        let prepared = prepared(&plan, site.as_ref(), consent, simulated.is_some())?;
        let planned = Planned { file: file.display().to_string(), plan, skipped: prepared.skipped.clone() };
        let facts = facts(site.as_ref());
        Ok(Session { planned, prepared, facts, simulated, site, earlier: None, reserved })
    }

    /// A campaign that was stopped.
    fn resumed(args: &Run, directory: &Path, consent: Consent) -> Result<Session> {
        let (store, stored) = RecordStore::reopen(directory)?;
        let Some(planned) = stored.campaign.planned.as_deref().cloned() else {
            return Err(usage(format!(
                "{} cannot be resumed: it was not started by `linerate run`",
                directory.display()
            )));
        };
        if let Some(summary) = stored.summary.as_ref().filter(|s| is_over(s.stopped)) {
            return Err(usage(format!(
                "this campaign came to its end ({}): `linerate show {}` prints it, `linerate run {}` begins a new one",
                serde_json::to_value(summary.stopped)?.as_str().unwrap_or_default(),
                directory.display(),
                planned.file
            )));
        }
        let simulated = args.simulate.as_deref().map(parse_simulation).transpose().map_err(usage)?;
        if simulated.is_some() != (stored.campaign.asked.lab == SIMULATED) {
            return Err(usage("resume a simulated campaign with the same --simulate, and others without it"));
        }
        check_unchanged_plan(&planned)?;
        let site = match &planned.plan.lab {
            Lab::File { path } if simulated.is_none() => {
                let file = hosts::lab_file(args, Path::new(&planned.file), path);
                let lab = hosts::read(&file)?;
                Some(Site::open(args, Path::new(&planned.file), lab, &planned.plan.trials)?)
            }
            _ => None,
        };
        let facts = facts(site.as_ref());
        let differences = host_differences(&stored.host, &facts);
        if !differences.is_empty() {
            bail!(
                "the machine has changed, so its rates cannot be compared: {}; start a new campaign",
                differences.join("; ")
            );
        }
        let changed = site.iter().flat_map(Site::notes).find(|note| !stored.campaign.notes.contains(note));
        if let Some(note) = changed {
            bail!(
                "the lab has changed, so its rates cannot be compared: it now has {note}; start a new campaign"
            );
        }
        let reserved = may_run(&planned.plan, simulated.is_some(), consent)?;
        let prepared = prepared(&planned.plan, site.as_ref(), consent, simulated.is_some())?;
        let image =
            prepared.notes.iter().find(|n| n.starts_with(hosts::IMAGE) && !stored.campaign.notes.contains(n));
        if let Some(note) = image {
            bail!(
                "an image has changed, so its rates cannot be compared: it is now {note}; start a new campaign"
            );
        }
        let cells = |skipped: &[linerate_measure::record::Skipped]| {
            skipped.iter().map(|s| s.cell).collect::<Vec<_>>()
        };
        if cells(&prepared.skipped) != cells(&planned.skipped) {
            // A ceiling is skipped for want of those that it belongs to: that explains nothing.
            let new = prepared.skipped.iter().filter(|s| !planned.plan.is_ceiling(s.cell));
            let now = new.filter(|s| planned.lacking(s.cell).is_empty()).flat_map(|s| &s.reasons).next();
            bail!(
                "what can be measured here has changed since the campaign began: then {} cells were skipped, now {}{}",
                planned.skipped.len(),
                prepared.skipped.len(),
                now.map_or(String::new(), |reason| format!(" ({reason})"))
            );
        }
        Ok(Session { planned, prepared, facts, simulated, site, earlier: Some((store, stored)), reserved })
    }

    fn run(self, args: &Run, consent: Consent) -> Result<ExitCode> {
        let Session { planned, mut prepared, facts, simulated, site, earlier, reserved: _reserved } = self;
        let plan = &planned.plan;
        if args.fail_if_slower.is_some() && !plan.comparisons.iter().any(|c| c.why == Interest::Variants) {
            return Err(usage(format!(
                "{} compares no variant with another, so --fail-if-slower has nothing to judge: add a variant, and `with` to its [compare]",
                planned.file
            )));
        }
        if prepared.skipped.len() == plan.cells.len() {
            for reason in reasons(&planned) {
                eprintln!("linerate: {}: skipped: {reason}", planned.file);
            }
            return Ok(ExitCode::from(SKIPPED));
        }
        let timetable = Timetable::new(plan);
        let progress = Progress::new(Duration::from_nanos(timetable.trials_ns));
        let stored_batch = earlier.as_ref().map(|(_, stored)| stored.campaign.asked.batch);
        let campaign = plan.trials.seed.unwrap_or_default() as u8;
        let (mut stand, batch) = match (simulated, &site) {
            (Some(dut), _) => (Standing::Simulated(simulate(plan, &prepared, dut)?), 1),
            (None, Some(site)) => {
                progress.say("preparing the hosts");
                (Standing::Hosts(Box::new(site.stand(plan, &prepared, campaign)?)), HOSTS_BATCH)
            }
            (None, None) => match embedded(plan, &mut prepared, consent, stored_batch, &progress) {
                Err(_) if interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
                other => other.map(|(turns, batch)| (Standing::Embedded(Box::new(turns)), batch))?,
            },
        };
        let (campaign, store, earlier) = match earlier {
            Some((store, stored)) => {
                let trials = stored.trials;
                eprintln!("linerate: going on after {} trials", trials.len());
                (stored.campaign, store, Some(Earlier { trials }))
            }
            None => {
                let base = Path::new("linerate-results");
                let campaign = record(args, planned, &prepared, &stand, batch)?;
                let store = RecordStore::create(base, &campaign.name, args.out.as_deref())?;
                (campaign, store, None)
            }
        };
        let finished = campaign::run(&campaign, &facts, stand.stand(), store, earlier, &progress);
        // The hosts are put back before anything is said.
        progress.say("putting everything back");
        let (began, with_hosts) = (Instant::now(), matches!(stand, Standing::Hosts(_)));
        let (left, reboots) = stand.take_down();
        drop(progress);
        for left in &left {
            tell(format!("not everything could be put back: {left}"));
        }
        let mut finished = finished?;
        if with_hosts {
            finished.put_back(began.elapsed(), reboots)?;
        }
        let code = report(args, &campaign, &facts, finished)?;
        Ok(if left.is_empty() { code } else { ExitCode::from(FAILED) })
    }
}

/// Where the trials take place.
enum Standing {
    /// In memory.
    Simulated(Simulated),
    /// In namespaces of this machine.
    Embedded(Box<SequentialLabs>),
    /// On hosts.
    Hosts(Box<Hosts>),
}

impl Standing {
    fn stand(&mut self) -> &mut dyn Testbed {
        match self {
            Standing::Simulated(stand) => stand,
            Standing::Embedded(stand) => stand.as_mut(),
            Standing::Hosts(stand) => stand.as_mut(),
        }
    }

    /// What records call the lab, its generator and its receiver.
    fn names(&self, prepared: &Prepared) -> [String; 3] {
        let names = match (self, prepared.backend) {
            (Standing::Simulated(_), _) => [SIMULATED, "memory", "memory"],
            (Standing::Embedded(_), Backend::Xdp) => ["namespaces", "xdp-live-frames", "xdp"],
            (Standing::Embedded(_), Backend::Packet) => ["namespaces", "af-packet", "af-packet"],
            (Standing::Hosts(hosts), _) => {
                let [generator, receiver] = hosts.names();
                return ["hosts".into(), generator, receiver];
            }
        };
        names.map(String::from)
    }

    /// Puts everything back; what could not be, and how often the DUT was rebooted for it.
    fn take_down(self) -> (Vec<String>, u32) {
        match self {
            Standing::Hosts(hosts) => hosts.take_down(),
            Standing::Simulated(_) | Standing::Embedded(_) => (Vec::new(), 0),
        }
    }
}

/// What is to be carried out, and where.
struct Chosen {
    plan: Plan,
    site: Option<Site>,
}

/// The plan's campaign that was asked for.
fn chosen(args: &Run, file: &Path, simulated: bool) -> Result<Chosen> {
    let name = file.display().to_string();
    let read = plan_file::parse(file, &read(file)?).map_err(|faults| faulty(&name, &faults))?;
    let plan = plan_file::campaign(&read, &name, args.system, args.quick)?;
    let Lab::File { path } = plan.lab.clone() else {
        return match args.lab {
            Some(_) => Err(usage(format!(
                "{name} is for the embedded lab of this machine: --lab has no meaning for it"
            ))),
            None => Ok(Chosen { plan: plan.clone(), site: None }),
        };
    };
    if simulated {
        return Ok(Chosen { plan: plan.clone(), site: None });
    }
    let lab = hosts::read(&hosts::lab_file(args, file, &path))?;
    let site = Site::open(args, file, lab, &plan.trials)?;
    let system = hosts::system(args, &site, &read)?;
    let plan = plan_file::campaign(&read, &name, system, args.quick)?.clone();
    Ok(Chosen { plan, site: Some(site) })
}

/// What can be measured.
fn prepared(plan: &Plan, site: Option<&Site>, consent: Consent, simulated: bool) -> Result<Prepared> {
    match plan.lab {
        Lab::File { .. } => hosts::prepare(plan, site),
        Lab::Embedded { .. } => prepare(plan, consent, simulated),
    }
}

/// What machine the figures belong to.
fn facts(site: Option<&Site>) -> HostFacts {
    site.map_or_else(|| host::facts(Path::new("/")), Site::host_facts)
}

/// Without root there is no embedded lab. Nothing has been touched yet. Who may change the host does so alone.
fn may_run(plan: &Plan, simulated: bool, consent: Consent) -> Result<Option<Reservation>> {
    if simulated || matches!(plan.lab, Lab::File { .. }) {
        return Ok(None);
    }
    if !userns::may_administer_networks() {
        bail!("plans set up namespaces, rule sets and eBPF programs: run it with sudo");
    }
    let reserved = (consent == Consent::Allowed).then(|| Journal::of_this_host().reserve()).transpose()?;
    super::lab::clear_remains()?;
    Ok(reserved)
}

fn seed(wanted: Option<u64>) -> Result<u64> {
    let drawn = || Ok(std::time::UNIX_EPOCH.elapsed().context("reading the clock")?.as_nanos() as u64);
    wanted.map_or_else(drawn, Ok)
}

fn is_over(stopped: Stopped) -> bool {
    !matches!(stopped, Stopped::Interrupted | Stopped::Failed)
}

/// The plan's file as it is now must come to the plan that was recorded.
fn check_unchanged_plan(planned: &Planned) -> Result<()> {
    let Ok(bytes) = read(Path::new(&planned.file)) else {
        eprintln!(
            "linerate: {} cannot be read any more: going on by the plan that was recorded",
            planned.file
        );
        return Ok(());
    };
    let then = &planned.plan;
    let now = plan_file::parse(Path::new(&planned.file), &bytes).ok();
    let now = now.as_ref().and_then(|now| now.campaign(then.system, then.quick)).cloned();
    let same = now.is_some_and(|mut now| {
        // What the command line may have set.
        now.trials.seed = then.trials.seed;
        (now.trials.budget_ns, now.trials.blocks) = (then.trials.budget_ns, then.trials.blocks);
        now == *then
    });
    if !same {
        return Err(usage(format!(
            "{} has changed since this campaign began, or a rule file that it names has, and its trials would not belong together: put the plan back, or begin a new campaign",
            planned.file
        )));
    }
    Ok(())
}

/// What of a machine must not change in the middle of a campaign.
fn host_differences(then: &HostFacts, now: &HostFacts) -> Vec<String> {
    let facts = |f: &HostFacts| {
        [
            ("kernel", f.kernel.clone()),
            ("machine", f.machine.clone()),
            ("CPU", f.cpu_model.clone()),
            ("CPUs", f.cpus.to_string()),
            ("hypervisor", f.hypervisor.clone().unwrap_or_default()),
            ("governor", f.governor.clone()),
        ]
    };
    let pairs = facts(then).into_iter().zip(facts(now));
    let changed = pairs.filter(|((_, then), (_, now))| then != now);
    changed.map(|((what, then), (_, now))| format!("{what} was '{then}' and is '{now}'")).collect()
}

/// Each reason once.
fn reasons(planned: &Planned) -> Vec<&String> {
    let mut all: Vec<&String> = planned.skipped.iter().flat_map(|s| &s.reasons).collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|reason| seen.insert(*reason));
    all
}

/// What is recorded as the lab of a simulated campaign.
const SIMULATED: &str = "simulated";

fn simulate(plan: &Plan, prepared: &Prepared, dut: MemoryDut) -> Result<Simulated> {
    let duts = plan.lanes.iter().map(|lane| (lane.settings.dut != Dut::TesterBaseline).then_some(dut));
    let beyond = Timetable::new(plan).trial_ns.saturating_sub(timing(plan).load_ns());
    let beyond = Duration::from_nanos(beyond);
    Simulated::new(duts.collect(), &prepared.kinds, prepared.layout.clone(), beyond)
}

/// The labs, the first of them built, with the batch size: chosen by trying, or as it was when the campaign began.
fn embedded(
    plan: &Plan,
    prepared: &mut Prepared,
    consent: Consent,
    batch: Option<u32>,
    progress: &Progress,
) -> Result<(SequentialLabs, u32)> {
    progress.say("building the lab");
    let campaign = plan.trials.seed.unwrap_or_default() as u8;
    let (labs, places) = prepared.labs(plan, consent, campaign)?;
    let mut turns = SequentialLabs::new(labs, places);
    let measured = |cell: &usize| !prepared.is_skipped(*cell);
    let is_dut = |cell: &usize| measured(cell) && !plan.is_ceiling(*cell);
    let fastest = (0..plan.cells.len()).find(|cell| is_dut(cell) && plan.cells[*cell].rate == Rate::Max);
    let batch = match (batch, fastest) {
        (Some(batch), _) => batch,
        (None, Some(cell)) => {
            progress.say("sending the learning frames, choosing the batch size");
            let (batch, measured) = turns.choose_batch(cell, &STOP)?;
            prepared.notes.push(format!("batch size {batch} chosen by measurement ({measured})"));
            batch
        }
        (None, None) => PACED_BATCH,
    };
    turns.set_batch(batch);
    Ok((turns, batch))
}

fn timing(plan: &Plan) -> Timing {
    match plan.lab {
        Lab::File { .. } => Timing::of_hosts(plan.trials.duration_ns),
        Lab::Embedded { .. } => Timing::slice(plan.trials.duration_ns),
    }
}

fn record(
    args: &Run,
    planned: Planned,
    prepared: &Prepared,
    standing: &Standing,
    batch: u32,
) -> Result<Campaign> {
    let file = Path::new(&planned.file);
    let stem = file.file_stem().map_or("plan".into(), |stem| stem.to_string_lossy().into_owned());
    let plan = &planned.plan;
    let [lab, generator, receiver] = standing.names(prepared);
    Ok(Campaign {
        version: VERSION,
        linerate: env!("CARGO_PKG_VERSION").into(),
        name: args.name.clone().unwrap_or(stem),
        started: utc_now(),
        asked: Asked {
            command: std::env::args().collect(),
            mode: prepared.mode,
            lab,
            generator,
            receiver,
            flows: plan.kinds.iter().map(|k| u64::from(k.flows)).max().unwrap_or(0),
            order: plan.kinds.first().map_or(String::new(), |k| k.order.to_string()),
            rate: "max".into(),
            timing: timing(plan),
            budget_ns: plan.trials.budget_ns.unwrap_or(0),
            trials: plan.trials.blocks,
            batch,
            seed: plan.trials.seed.unwrap_or_default(),
        },
        roles: prepared.roles.clone(),
        slots: prepared.slots.clone(),
        notes: prepared.notes.clone(),
        rule_files: Default::default(),
        planned: Some(Box::new(planned)),
        imported: None,
    })
}
