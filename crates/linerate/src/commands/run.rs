//! `linerate run`: a plan, carried out.

pub mod hosts;
mod prepare;
mod verdict;

use super::plan_file::{self, read};
use crate::campaign::{self, Earlier};
use crate::cli::{CampaignArgs, Run};
use crate::commands;
use crate::interrupt::{self, INTERRUPTED as STOP, interrupted};
use crate::output::{FAILED, INTERRUPTED, faulty, tell, usage};
use crate::progress::{self, Progress};
use crate::testbed::{HOSTS_BATCH, Hosts, PACED_BATCH, SequentialLabs, Simulated, Testbed, parse_simulation};
use anyhow::{Context, Result, bail};
use hosts::Site;
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign as Plan, Interest, Lab};
use linerate_plan::settings::{Dut, Mode};
use linerate_plan::timetable::Timetable;

use linerate_linux::host;
use linerate_linux::host::journal::{Consent, Journal, Reservation};
use linerate_linux::net::userns;
use linerate_linux::ports::memory::MemoryDut;
use linerate_linux::records::{RecordStore, StoredCampaign, utc_now};
use linerate_measure::record::{Asked, Campaign, HostFacts, LabKind, Planned, VERSION};
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
    begin(&args.campaign);
    let session = match (&args.resume, &args.plan) {
        (Some(directory), _) => Session::resumed(args, directory)?,
        (None, Some(file)) => Session::of_file(args, file)?,
        (None, None) => return Err(usage("name a plan, or --resume and a campaign's folder")),
    };
    session.run(&args.campaign)
}

/// What every campaign begins with.
pub fn begin(args: &CampaignArgs) {
    interrupt::install();
    if args.quiet {
        progress::silence();
    }
}

fn consent(args: &CampaignArgs) -> Consent {
    if args.allow_host_changes { Consent::Allowed } else { Consent::Refused }
}

/// A campaign, and everything that is known of it before the first frame.
pub struct Session {
    planned: Planned,
    prepared: Prepared,
    facts: HostFacts,
    simulated: Option<MemoryDut>,
    /// The hosts of the plan's lab, where it is not this machine's own.
    site: Option<Site>,
    /// The campaign that is resumed.
    earlier: Option<(RecordStore, StoredCampaign)>,
    access: Access,
}

impl Session {
    /// A new campaign of a plan's file.
    fn of_file(args: &Run, file: &Path) -> Result<Session> {
        let Chosen { mut plan, site } = chosen(args, file, args.campaign.simulate.is_some())?;
        if let Some(budget) = args.campaign.budget {
            (plan.trials.budget_ns, plan.trials.blocks) = (Some(budget.as_nanos() as u64), None);
        }
        plan.trials.seed = args.campaign.seed.or(plan.trials.seed);
        Session::new(&args.campaign, Some(file), plan, site)
    }

    /// A new campaign. `file`: the plan's, where it has one.
    ///
    /// # Errors
    /// What keeps this machine, or the lab, from measuring it.
    pub fn new(
        args: &CampaignArgs,
        file: Option<&Path>,
        mut plan: Plan,
        site: Option<Site>,
    ) -> Result<Session> {
        let simulated = args.simulate.as_deref().map(parse_simulation).transpose().map_err(usage)?;
        plan.trials.seed = Some(seed(plan.trials.seed)?);
        let access = access(&plan, simulated.is_some(), consent(args))?;
        let prepared = prepared(&plan, site.as_ref(), args, &access)?;
        let file = file.map(|file| file.display().to_string());
        let planned = Planned { file, plan, skipped: prepared.skipped.clone() };
        let facts = facts(site.as_ref());
        Ok(Session { planned, prepared, facts, simulated, site, earlier: None, access })
    }

    /// A campaign that was stopped.
    fn resumed(args: &Run, directory: &Path) -> Result<Session> {
        let (store, stored) = RecordStore::reopen(directory)?;
        let Some(planned) = stored.campaign.planned.as_deref().cloned() else {
            return Err(usage(format!(
                "{} cannot be resumed: it was not started by `linerate run` or `linerate bench`",
                directory.display()
            )));
        };
        if let Some(summary) = stored.summary.as_ref().filter(|s| is_over(s.stopped)) {
            return Err(usage(format!(
                "this campaign came to its end ({}): `linerate show {}` prints it, `linerate {}` begins a new one",
                serde_json::to_value(summary.stopped)?.as_str().unwrap_or_default(),
                directory.display(),
                planned.file.as_ref().map_or("bench".into(), |file| format!("run {file}"))
            )));
        }
        let simulate = args.campaign.simulate.as_deref();
        let simulated = simulate.map(parse_simulation).transpose().map_err(usage)?;
        if simulated.is_some() != (stored.campaign.asked.lab == LabKind::Simulated) {
            return Err(usage("resume a simulated campaign with the same --simulate, and others without it"));
        }
        let file = planned.file.as_deref().map(Path::new);
        file.map_or(Ok(()), |file| check_unchanged_plan(file, &planned.plan))?;
        let site = match &planned.plan.lab {
            Lab::File { path } if simulated.is_none() => {
                let plan = file.unwrap_or(Path::new(""));
                let lab = hosts::read(&hosts::lab_file(args, plan, path))?;
                Some(Site::open(args, plan, lab, &planned.plan.trials)?)
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
        let access = access(&planned.plan, simulated.is_some(), consent(&args.campaign))?;
        let prepared = prepared(&planned.plan, site.as_ref(), &args.campaign, &access)?;
        let then = &stored.campaign.standing;
        if let Some((what, now)) = prepared.standing.iter().find(|(what, now)| then.get(*what) != Some(now)) {
            bail!(
                "the lab has changed, so its rates cannot be compared: {what} is now {now}; start a new campaign"
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
        Ok(Session { planned, prepared, facts, simulated, site, earlier: Some((store, stored)), access })
    }

    /// Carries it out, prints the result, and gives the exit status.
    ///
    /// # Errors
    /// What kept it from measuring.
    pub fn run(self, args: &CampaignArgs) -> Result<ExitCode> {
        let Session { planned, mut prepared, facts, simulated, site, earlier, access: _access } = self;
        let plan = &planned.plan;
        let name = planned.file.as_deref().unwrap_or("bench").to_string();
        if args.fail_if_slower.is_some() && !plan.comparisons.iter().any(|c| c.why == Interest::Variants) {
            return Err(usage(format!(
                "{name} compares no variant with another, so --fail-if-slower has nothing to judge: add a variant, and `with` to its [compare]",
            )));
        }
        if prepared.skipped.len() == plan.cells.len() {
            for reason in reasons(&planned) {
                eprintln!("linerate: {name}: skipped: {reason}");
            }
            return Ok(ExitCode::from(SKIPPED));
        }
        let progress = Progress::new(Duration::from_nanos(Timetable::new(plan).trials_ns));
        let stem = Path::new(&name).file_stem().map_or("plan".into(), |stem| stem.to_string_lossy());
        let name = args.name.clone().unwrap_or(stem.into_owned());
        // Records first: where they cannot be written, nothing is set up for nothing.
        let (store, stored) = match earlier {
            Some((store, stored)) => (store, Some(stored)),
            None => (RecordStore::create(Path::new("linerate-results"), &name, args.out.as_deref())?, None),
        };
        let batch = stored.as_ref().map(|stored| stored.campaign.asked.batch);
        let standing = Standing::new(plan, &mut prepared, simulated, site.as_ref(), args, batch, &progress);
        let (mut standing, batch) = match standing {
            Ok(standing) => standing,
            Err(error) => {
                if stored.is_none() {
                    store.abandon();
                }
                return if interrupted() { Ok(ExitCode::from(INTERRUPTED)) } else { Err(error) };
            }
        };
        let (campaign, earlier) = match stored {
            Some(StoredCampaign { campaign, trials, .. }) => {
                eprintln!("linerate: going on after {} trials", trials.len());
                (campaign, Some(Earlier { trials }))
            }
            None => (record(name, planned, &prepared, &standing, batch)?, None),
        };
        let finished = campaign::run(&campaign, &facts, standing.testbed(), store, earlier, &progress);
        // The hosts are put back before anything is said.
        progress.say("putting everything back");
        let began = Instant::now();
        let kept = if args.keep && finished.is_ok() { standing.keep()? } else { None };
        let with_hosts = matches!(standing, Standing::Hosts(_));
        let (left, reboots) = standing.take_down();
        drop(progress);
        for left in &left {
            tell(format!("not everything could be put back: {left}"));
        }
        let mut finished = finished?;
        if with_hosts {
            finished.put_back(began.elapsed(), reboots)?;
        }
        let code = report(args, &campaign, &facts, finished)?;
        if let Some(kept) = kept {
            eprintln!("{kept}");
        }
        Ok(if left.is_empty() { code } else { ExitCode::from(FAILED) })
    }
}

/// Name of a lab that `--keep` leaves up.
const KEPT: &str = "linerate";

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
    /// Where a plan's trials take place, ready for them, and how many frames are handed over at once.
    fn new(
        plan: &Plan,
        prepared: &mut Prepared,
        simulated: Option<MemoryDut>,
        site: Option<&Site>,
        args: &CampaignArgs,
        batch: Option<u32>,
        progress: &Progress,
    ) -> Result<(Standing, u32)> {
        let campaign = plan.trials.seed.unwrap_or_default() as u8;
        match (simulated, site) {
            (Some(dut), _) => Ok((Standing::Simulated(simulate(plan, prepared, dut)?), 1)),
            (None, Some(site)) => {
                progress.say("preparing the hosts");
                let hosts = site.stand(plan, prepared, campaign)?;
                Ok((Standing::Hosts(Box::new(hosts)), HOSTS_BATCH))
            }
            (None, None) => {
                let (labs, batch) = embedded(plan, prepared, args, batch, progress)?;
                Ok((Standing::Embedded(Box::new(labs)), batch))
            }
        }
    }

    /// Gives the lab that stands names, so that it outlives this process. Returns what to tell the user.
    fn keep(&self) -> Result<Option<String>> {
        let Standing::Embedded(labs) = self else { return Ok(None) };
        labs.standing().map(|embedded| commands::lab::keep(embedded.lab(), KEPT)).transpose()
    }

    fn testbed(&mut self) -> &mut dyn Testbed {
        match self {
            Standing::Simulated(stand) => stand,
            Standing::Embedded(stand) => stand.as_mut(),
            Standing::Hosts(stand) => stand.as_mut(),
        }
    }

    /// What records call the lab, its generator and its receiver.
    fn names(&self, prepared: &Prepared) -> (LabKind, [String; 2]) {
        let both = |backend: Backend| [backend.name(), backend.name()].map(String::from);
        match self {
            Standing::Simulated(_) => (LabKind::Simulated, both(Backend::Memory)),
            Standing::Embedded(_) => (LabKind::Namespaces, both(prepared.backend)),
            Standing::Hosts(hosts) => (LabKind::Hosts, hosts.names()),
        }
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
fn prepared(plan: &Plan, site: Option<&Site>, args: &CampaignArgs, access: &Access) -> Result<Prepared> {
    match plan.lab {
        Lab::File { .. } => hosts::prepare(plan, site),
        Lab::Embedded { .. } => {
            prepare(plan, consent(args), args.simulate.is_some(), access.no_xdp.as_deref())
        }
    }
}

/// What machine the figures belong to.
fn facts(site: Option<&Site>) -> HostFacts {
    site.map_or_else(|| host::facts(Path::new("/")), Site::host_facts)
}

/// What this process may do, found out before anything is touched.
#[derive(Default)]
struct Access {
    /// Who may change the host does so alone.
    _reserved: Option<Reservation>,
    /// Why XDP is out of the question.
    no_xdp: Option<String>,
}

/// A process that may not make namespaces gets a user namespace, which must happen while it has one thread.
fn access(plan: &Plan, simulated: bool, consent: Consent) -> Result<Access> {
    let Lab::Embedded { mode, port, .. } = plan.lab else { return Ok(Access::default()) };
    if simulated {
        return Ok(Access::default());
    }
    let may = userns::may_administer_networks();
    if port.is_some_and(|port| port != Backend::AfPacket) && !may {
        bail!("XDP and AF_XDP need root: run it with sudo");
    }
    if mode == Mode::Threaded && !(may && userns::is_initial()) {
        return Err(usage(
            "threaded mode binds kernel threads to CPUs, which needs root outside of any user namespace: use sudo",
        ));
    }
    if !may {
        userns::enter().context("measuring without root, in a user namespace")?;
    }
    let _reserved = (consent == Consent::Allowed).then(|| Journal::of_this_host().reserve()).transpose()?;
    commands::lab::clear_remains()?;
    Ok(Access { _reserved, no_xdp: (!may).then(|| "not root".into()) })
}

fn seed(wanted: Option<u64>) -> Result<u64> {
    let drawn = || Ok(std::time::UNIX_EPOCH.elapsed().context("reading the clock")?.as_nanos() as u64);
    wanted.map_or_else(drawn, Ok)
}

fn is_over(stopped: Stopped) -> bool {
    !matches!(stopped, Stopped::Interrupted | Stopped::Failed)
}

/// The plan's file as it is now must come to the plan that was recorded.
fn check_unchanged_plan(file: &Path, then: &Plan) -> Result<()> {
    let name = file.display();
    let Ok(bytes) = read(file) else {
        eprintln!("linerate: {name} cannot be read any more: going on by the plan that was recorded");
        return Ok(());
    };
    let now = plan_file::parse(file, &bytes).ok();
    let now = now.as_ref().and_then(|now| now.campaign(then.system, then.quick)).cloned();
    let same = now.is_some_and(|mut now| {
        // What the command line may have set.
        now.trials.seed = then.trials.seed;
        (now.trials.budget_ns, now.trials.blocks) = (then.trials.budget_ns, then.trials.blocks);
        now == *then
    });
    if !same {
        return Err(usage(format!(
            "{name} has changed since this campaign began, or a rule file that it names has, and its trials would not belong together: put the plan back, or begin a new campaign",
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

fn simulate(plan: &Plan, prepared: &Prepared, dut: MemoryDut) -> Result<Simulated> {
    let duts = plan.lanes.iter().map(|lane| (lane.settings.dut != Dut::TesterBaseline).then_some(dut));
    let beyond = Timetable::new(plan).trial_ns.saturating_sub(timing(plan).load_ns());
    let beyond = Duration::from_nanos(beyond);
    Simulated::new(duts.collect(), &prepared.kinds, prepared.layout.clone(), beyond)
}

/// The labs, the first of them built, with the batch size: as it was when the campaign began, as the plan has it, or chosen by trying.
fn embedded(
    plan: &Plan,
    prepared: &mut Prepared,
    args: &CampaignArgs,
    batch: Option<u32>,
    progress: &Progress,
) -> Result<(SequentialLabs, u32)> {
    progress.say("building the lab");
    let campaign = plan.trials.seed.unwrap_or_default() as u8;
    let (labs, places) = prepared.labs(plan, consent(args), campaign)?;
    if args.keep {
        let [lab] = labs.as_slice() else {
            return Err(usage(
                "--keep: this plan takes several labs, one after the other, and one can be kept",
            ));
        };
        commands::lab::can_keep(KEPT, &lab.setups)?;
    }
    let mut turns = SequentialLabs::new(labs, places);
    let measured = |cell: &usize| !prepared.is_skipped(*cell);
    let is_dut = |cell: &usize| measured(cell) && !plan.is_ceiling(*cell);
    let fastest = (0..plan.cells.len()).find(|cell| is_dut(cell) && plan.cells[*cell].rate == Rate::Max);
    let wanted = match plan.lab {
        Lab::Embedded { batch, .. } => batch,
        Lab::File { .. } => None,
    };
    let batch = match (batch.or(wanted), fastest) {
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
    name: String,
    planned: Planned,
    prepared: &Prepared,
    standing: &Standing,
    batch: u32,
) -> Result<Campaign> {
    let plan = &planned.plan;
    let (lab, [generator, receiver]) = standing.names(prepared);
    let first = plan.cells.iter().enumerate().find(|(at, _)| !plan.is_ceiling(*at));
    Ok(Campaign {
        version: VERSION,
        linerate: env!("CARGO_PKG_VERSION").into(),
        name,
        started: utc_now(),
        asked: Asked {
            command: std::env::args().collect(),
            mode: prepared.mode,
            lab,
            generator,
            receiver,
            flows: plan.kinds.iter().map(|k| u64::from(k.flows)).max().unwrap_or(0),
            order: plan.kinds.first().map_or(String::new(), |k| k.order.to_string()),
            rate: first.map_or("max".into(), |(_, cell)| cell.rate.to_string()),
            timing: timing(plan),
            budget_ns: plan.trials.budget_ns.unwrap_or(0),
            trials: plan.trials.blocks,
            batch,
            seed: plan.trials.seed.unwrap_or_default(),
        },
        roles: prepared.roles.clone(),
        slots: prepared.slots.clone(),
        notes: prepared.notes.clone(),
        standing: prepared.standing.clone(),
        planned: Some(Box::new(planned)),
        imported: None,
    })
}
