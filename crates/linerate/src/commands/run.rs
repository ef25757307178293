//! `linerate run`: a plan, carried out.

use super::slower::{Claim, MISSED, any_slower};
use super::{lab, plan_file};
use crate::args::{CampaignArgs, Share, Ssh, names_of};
use crate::campaign::Finished;
use crate::interrupt::{self, interrupted};
use crate::output::{FAILED, INTERRUPTED, faulty, print_campaign, print_place, tell, usage};
use crate::progress::{self, Progress};
use crate::testbed::hosts::{self, Site};
use crate::testbed::prepare::{Prepared, distinct, prepare};
use crate::testbed::{EndHosts, SequentialLabs, Simulated, Testbed, parse_simulation};
use crate::{campaign, input};
use anyhow::{Context, Result, bail};
use clap::Args;
use linerate_linux::host;
use linerate_linux::host::autogroup::{Ahead, standing};
use linerate_linux::host::changes::{Consent, Host};
use linerate_linux::net::userns;
use linerate_linux::ports::memory::MemoryDut;
use linerate_linux::records::{RecordStore, StoredCampaign, utc_now};
use linerate_measure::experiment::{Interest, Judgement, Measure, System};
use linerate_measure::record::{
    Against, Asked, Campaign, Compared, HostFacts, LabKind, Mode, Planned, Skipped, Stopped, Summary,
    TrialRecord, VERSION,
};
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign as Plan, Kind, Lab, PROFILE_NS};
use linerate_plan::names::Named;
use linerate_plan::rules::Families;
use linerate_plan::timetable::Timetable;
use linerate_report::pages;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan list                       the plans that come with linerate
  linerate plan show firewalls             what it would do, how long, and what it would change
  sudo linerate run firewalls --quick      below a minute
  sudo linerate run firewalls
  sudo linerate run my.toml                a plan of your own
  linerate run lab/tuning --lab LAB.toml   on the hosts of a real lab, over ssh (docs/lab-file.md)
  sudo linerate run --resume linerate-results/20260101T120000Z-firewalls
  sudo linerate run my.toml --quiet --fail-if-slower 3%       for CI
  linerate run my.toml --simulate ok       no packets at all: a simulated DUT
  linerate show linerate-results/NAME      the tables again

Variants that this machine cannot run are skipped, with the reason, and the rest is measured: status 1, unless the
plan says `optional = true` of them, as those that come with linerate do of firewalls and kinds of links. Settings of the
whole host (such as the size of the connection table) are changed only with --allow-host-changes. linerate
writes them down first and restores them at the end; if it is killed, the next linerate restores them.

Exit status: 0 measured, and no expectation of the plan was missed; 1 an error, or a variant without a result:
it could not be measured here, none of its trials was valid, or it dropped every test frame; 2 the plan has faults, or bad arguments (nothing
is touched); 3 an expectation was missed, or --fail-if-slower found a slower variant; 4 everything is skipped;
130 interrupted (the results so far are recorded and shown; --resume continues).")]
pub struct Run {
    /// The plan: a file (docs/plans.md), or a name that `linerate plan list` shows
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,

    /// Continue the stopped campaign of `run`, `bench`, `search` or `rfc2544` in this directory, with all its trials and in the same order.
    /// With --budget, continue a search or tests whose time ran out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "quick", "system", "name", "out", "seed"])]
    pub resume: Option<PathBuf>,

    #[command(flatten)]
    pub which: Which,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}

/// Which of a plan's campaigns, and on which hosts.
#[derive(Debug, Args)]
pub struct Which {
    /// Use the plan's quick form
    #[arg(long)]
    pub quick: bool,

    /// Operating system of the DUT, if the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = names_of::<System>())]
    pub system: Option<System>,

    /// Lab file of the hosts, instead of the one that the plan names
    #[arg(long, value_name = "FILE")]
    pub lab: Option<PathBuf>,

    #[command(flatten)]
    pub ssh: Ssh,
}

/// Exit status where this machine can measure nothing of the plan.
pub const SKIPPED: u8 = 4;

/// Name of a lab that `--keep` leaves up.
const KEPT: &str = "linerate";

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Run) -> Result<ExitCode> {
    begin(&args.campaign);
    let session = match (&args.resume, &args.plan) {
        (Some(directory), _) => Session::resumed(args, directory)?,
        (None, Some(file)) => Session::of_file(args, file)?,
        (None, None) => bail_usage!("name a plan, or --resume and a campaign's folder"),
    };
    session.run(&args.campaign)
}

/// First steps of every campaign.
pub fn begin(args: &CampaignArgs) {
    interrupt::install();
    if args.quiet {
        progress::silence();
    }
}

/// A campaign, and everything that is known of it before the first frame.
pub struct Session {
    /// The plan's file, if it has one.
    file: Option<String>,
    prepared: Prepared,
    facts: HostFacts,
    simulated: Option<MemoryDut>,
    /// The hosts of the plan's lab, unless it is the embedded one.
    site: Option<Site>,
    /// The campaign that is resumed.
    earlier: Option<(RecordStore, StoredCampaign)>,
    /// Who may change the host does so alone.
    _reserved: Option<std::fs::File>,
}

impl Session {
    /// A new campaign of a plan's file.
    fn of_file(args: &Run, file: &Path) -> Result<Session> {
        if input::is_stdin(file) {
            bail_usage!("a plan that is carried out is a file: resuming it needs its place");
        }
        let (mut plan, site) = chosen(&args.which, file, args.campaign.simulate.is_some())?;
        if let Some(budget) = args.campaign.budget {
            let trials = &mut plan.experiment.trials;
            (trials.budget_ns, trials.blocks) = (Some(budget.as_nanos() as u64), None);
        }
        plan.experiment.trials.seed = args.campaign.seed.or(plan.experiment.trials.seed);
        Session::new(&args.campaign, Some(file.display().to_string()), plan, site)
    }

    /// A new campaign. `file`: the plan's file, if it has one.
    ///
    /// # Errors
    /// The reason why this machine, or the lab, cannot measure it.
    pub fn new(
        args: &CampaignArgs,
        file: Option<String>,
        mut plan: Plan,
        site: Option<Site>,
    ) -> Result<Session> {
        let simulated = args.simulate.as_deref().map(parse_simulation).transpose().map_err(usage)?;
        let drawn = || std::time::UNIX_EPOCH.elapsed().map(|time| time.as_nanos() as u64);
        let seed = &mut plan.experiment.trials.seed;
        *seed = Some(seed.map_or_else(drawn, Ok).context("reading the clock")?);
        let knows_speed = plan.experiment.link_speed.is_some();
        if let Some(site) =
            site.as_ref().filter(|_| !knows_speed && plan.experiment.trials.measure == Measure::Rfc2544)
        {
            plan.experiment.link_speed = site.link_speed();
        }
        let consent = if args.allow_host_changes { Consent::Allowed } else { Consent::Refused };
        let mut _reserved = None;
        let mut prepared = match &plan.lab {
            Lab::File { .. } => hosts::prepare(&plan, site.as_ref())?,
            Lab::Embedded { .. } if simulated.is_some() => prepare(&plan, consent, true, None)?,
            Lab::Embedded { mode, port, .. } => {
                let no_xdp = enter(*mode, *port)?;
                let alone = (consent == Consent::Allowed).then(|| Host::this().reserve());
                _reserved = alone.transpose()?;
                lab::clear_remains()?;
                prepare(&plan, consent, false, no_xdp)?
            }
        };
        // A campaign that was stopped is resumed with the same DUT alone.
        let dut = args.simulate.iter().map(|dut| ("the simulated DUT".to_owned(), dut.clone()));
        prepared.standing.extend(dut);
        let facts = site.as_ref().map_or_else(|| host::facts(Path::new("/")), Site::host_facts);
        Ok(Session { file, prepared, facts, simulated, site, earlier: None, _reserved })
    }

    /// A campaign that was stopped.
    fn resumed(args: &Run, directory: &Path) -> Result<Session> {
        let (store, mut stored) = RecordStore::reopen(directory)?;
        let shown = directory.display();
        if let Some(budget) = args.campaign.budget {
            extend(&mut stored, budget)?;
        }
        let Some(Planned { file, experiment, plan, skipped }) = stored.campaign.planned.as_deref().cloned()
        else {
            bail_usage!(
                "{shown} cannot be resumed: it was not started by `linerate run`, `linerate bench`, `linerate search` or `linerate rfc2544`"
            );
        };
        let plan = Plan::joined(&experiment, plan).with_context(|| format!("reading the plan in {shown}"))?;
        let ended = |summary: &&Summary| !matches!(summary.stopped, Stopped::Interrupted | Stopped::Failed);
        let extended =
            |summary: &&Summary| args.campaign.budget.is_some() && summary.stopped == Stopped::Budget;
        if let Some(summary) = stored.summary.as_ref().filter(|summary| ended(summary) && !extended(summary))
        {
            if summary.stopped == Stopped::Budget && experiment.trials.measure != Measure::Rate {
                bail_usage!("{}", pages::going_on(&plan, &shown.to_string()));
            }
            bail_usage!(
                "this campaign is complete, for {}: `linerate show {shown}` prints it, `linerate {}` begins a new one",
                summary.ended(),
                file.as_ref().map_or(verb(&stored.campaign).into(), |file| format!("run {file}"))
            );
        }
        let simulated = args.campaign.simulate.is_some();
        if simulated != (stored.campaign.asked.lab == LabKind::Simulated) {
            bail_usage!("a simulated campaign is resumed with its --simulate, and others without it");
        }
        if let Some(file) = &file {
            check_unchanged_plan(Path::new(file), &plan)?;
        }
        plan_file::check_lab(&plan, &shown.to_string(), args.which.lab.is_some())?;
        let site = match &plan.lab {
            Lab::File { path } if !simulated => {
                let file = Path::new(file.as_deref().unwrap_or_default());
                Some(open_site(&args.which, file, path, &plan)?)
            }
            _ => None,
        };
        let session = Session::new(&args.campaign, file, plan, site)?;
        let changes = session.changes(&stored, &skipped);
        if !changes.is_empty() {
            bail!(
                "something has changed since the campaign began, so its rates cannot be compared: {}; start a new campaign",
                changes.join("; ")
            );
        }
        Ok(Session { earlier: Some((store, stored)), ..session })
    }

    /// Changes since a campaign began: of the machine, of the lab, and of the cells that can be measured there.
    fn changes(&self, stored: &StoredCampaign, skipped: &[Skipped]) -> Vec<String> {
        let mut changes = changes_of_machine(&stored.host, &self.facts);
        let then = &stored.campaign.standing;
        let new = self.prepared.standing.iter().filter(|(what, now)| then.get(*what) != Some(now));
        changes.extend(new.map(|(what, now)| format!("in the lab, {what} is now {now}")));
        let cells = |skipped: &[Skipped]| skipped.iter().map(|s| s.cell).collect::<Vec<_>>();
        let (then, now) = (cells(skipped), cells(&self.prepared.skipped));
        if then != now {
            // A ceiling is skipped for want of those that it belongs to: that explains nothing.
            let is_new = |s: &&Skipped| !self.prepared.plan.is_ceiling(s.cell) && !then.contains(&s.cell);
            let reason = self.prepared.skipped.iter().filter(is_new).flat_map(|s| &s.reasons).next();
            changes.push(format!(
                "{} cells were skipped and {} are now{}",
                then.len(),
                now.len(),
                reason.map_or(String::new(), |reason| format!(" ({reason})"))
            ));
        }
        changes
    }

    /// What is measured.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Says which frames are longer than was asked for, before a long campaign.
    pub fn tell_lengths(&self) {
        distinct(self.prepared.plan.kinds.iter().filter_map(Kind::lengthened)).iter().for_each(tell);
    }

    /// Why cells cannot be measured here.
    pub fn reasons_to_skip(&self) -> Vec<&String> {
        distinct(self.prepared.skipped.iter().flat_map(|s| &s.reasons))
    }

    /// Runs the campaign, prints the result, and returns the exit status.
    ///
    /// # Errors
    /// The reason why it could not measure.
    pub fn run(self, args: &CampaignArgs) -> Result<ExitCode> {
        let plan = &self.prepared.plan;
        let name = self.file.as_deref().unwrap_or("bench").to_string();
        if args.fail_if_slower.is_some()
            && !plan.experiment.comparisons.iter().any(|c| c.why == Interest::Variants)
        {
            bail_usage!(
                "{name} compares no variant with another, so --fail-if-slower has nothing to judge: add a variant, and `with` to its [compare]",
            );
        }
        if self.prepared.measured().next().is_none() {
            for reason in self.reasons_to_skip() {
                tell(format!("{name}: skipped: {reason}"));
            }
            return Ok(ExitCode::from(SKIPPED));
        }
        let stem = Path::new(&name).file_stem().map_or("plan".into(), |stem| stem.to_string_lossy());
        let name = args.name.clone().unwrap_or(stem.into_owned());
        if let Some(short) = pages::too_short(plan).filter(|_| !args.quiet) {
            tell(short);
        }
        let Some(Measured { campaign, facts, finished, left, kept }) =
            self.measure(args, name, Path::new("linerate-results"))?
        else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        let code = report(args, &campaign, &facts, finished)?;
        if let Some(kept) = kept {
            eprintln!("{kept}");
        }
        Ok(if left { ExitCode::from(FAILED) } else { code })
    }

    /// Runs the campaign, and puts everything back. `base`: the folder below which it makes one for the records, unless the arguments
    /// name one. `None`: it was interrupted before the first trial.
    ///
    /// # Errors
    /// The reason why it could not measure.
    pub fn measure(self, args: &CampaignArgs, name: String, base: &Path) -> Result<Option<Measured>> {
        let plan = &self.prepared.plan;
        let is_exact = plan.experiment.trials.measure == Measure::Rate;
        let progress = Progress::new(Duration::from_nanos(Timetable::new(plan).trials_ns), is_exact);
        let Session { file, mut prepared, mut facts, simulated, site, earlier, _reserved } = self;
        let ahead = simulated.is_none().then(Ahead::this);
        facts.priority = ahead.as_ref().filter(|_| site.is_none()).map(standing);
        let profile_ns = prepared.plan.collect.profile_ns.or(args.profile.then_some(PROFILE_NS));
        // Records first: where they cannot be written, nothing is set up for nothing.
        let (store, stored) = match earlier {
            Some((store, stored)) => (store, Some(stored)),
            None => (RecordStore::create(base, &name, args.out.as_deref())?, None),
        };
        let batch = stored.as_ref().map(|stored| stored.campaign.asked.batch);
        let mut testbed = match testbed(&mut prepared, simulated, site.as_ref(), args.keep, batch, &progress)
        {
            Ok(standing) => standing,
            Err(error) => {
                if stored.is_none() {
                    store.abandon();
                }
                return if interrupted() { Ok(None) } else { Err(error) };
            }
        };
        let (campaign, earlier) = match stored {
            Some(StoredCampaign { campaign, trials, .. }) => {
                tell(format!("continuing after {}", pages::counted(trials.len(), "trial")));
                if args.budget.is_some() {
                    store.write_campaign(&campaign)?;
                }
                (campaign, Some(trials))
            }
            None => (record(name, file, prepared, testbed.as_ref()), None),
        };
        let finished =
            campaign::run(&campaign, &facts, testbed.as_mut(), store, earlier, profile_ns, &progress);
        // The hosts are restored before any output.
        progress.say("putting everything back");
        let began = Instant::now();
        let lab = testbed.lab().filter(|_| args.keep && finished.is_ok());
        let kept = lab.map(|lab| lab::keep(lab, KEPT)).transpose()?;
        let (left, reboots) = testbed.take_down();
        drop(progress);
        for left in &left {
            tell(format!("not everything could be put back: {left}"));
        }
        let mut finished = finished?;
        if campaign.asked.lab == LabKind::Hosts {
            finished.put_back(began.elapsed(), reboots)?;
        }
        Ok(Some(Measured { campaign, facts, finished, left: !left.is_empty(), kept }))
    }
}

/// Gives a search, or tests, that were stopped another time for all trials.
fn extend(stored: &mut StoredCampaign, budget: Duration) -> Result<()> {
    let Some(planned) = &mut stored.campaign.planned else { return Ok(()) };
    let trials = &mut planned.experiment.trials;
    if trials.measure == Measure::Rate {
        bail_usage!(
            "--budget: the intervals of this campaign depend on looks at shares of its own budget; begin a new campaign to change the budget"
        );
    }
    let used = Duration::from_nanos(stored.trials.last().map_or(0, TrialRecord::ended_ns));
    if budget <= used {
        bail_usage!(
            "--budget is the time for all trials, and the recorded ones took {:.1} s: name a longer time",
            used.as_secs_f64()
        );
    }
    trials.extended_ns = Some(budget.as_nanos() as u64);
    Ok(())
}

/// A campaign that was carried out.
pub struct Measured {
    pub campaign: Campaign,
    pub facts: HostFacts,
    pub finished: Finished,
    /// Whether something could not be put back.
    pub left: bool,
    /// Where the lab is that was kept.
    kept: Option<String>,
}

/// Differences between two machines, or one at two times, that rates depend on.
pub fn changes_of_machine(then: &HostFacts, now: &HostFacts) -> Vec<String> {
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
    let differ = pairs.filter(|((_, then), (_, now))| then != now);
    differ
        .map(|((what, then), (_, now))| format!("the machine's {what} was '{then}' and is '{now}'"))
        .collect()
}

/// The plan's campaign that was asked for, and the hosts of its lab, if it is for hosts.
pub fn chosen(args: &Which, file: &Path, simulated: bool) -> Result<(Plan, Option<Site>)> {
    let name = file.display().to_string();
    let read = plan_file::parse(file, &plan_file::read(file)?).map_err(|faults| faulty(&name, &faults))?;
    let plan = plan_file::campaign(&read, &name, args.system, args.quick)?;
    plan_file::check_lab(plan, &name, args.lab.is_some())?;
    let Lab::File { path } = &plan.lab else { return Ok((plan.clone(), None)) };
    if simulated {
        args.lab.as_deref().map(hosts::read).transpose()?;
        return Ok((plan.clone(), None));
    }
    let site = open_site(args, file, path, plan)?;
    let system = hosts::system(args.system, &site, &read.systems)?;
    Ok((plan_file::campaign(&read, &name, system, args.quick)?.clone(), Some(site)))
}

/// The campaign that arguments without a plan make, and the hosts of `--lab`, if there are any. `text`: their plan with these lines of
/// `[lab]`.
///
/// # Errors
/// The faults of the arguments, or the reason why the lab cannot be measured.
pub fn of_arguments(
    args: &Which,
    simulated: bool,
    text: impl Fn(&str) -> String,
) -> Result<(Plan, Option<Site>)> {
    let read = |lab: &str, system| -> Result<Plan> {
        let plan = linerate_plan::Plan::read(text(lab).as_bytes()).map_err(|faults| {
            let bare = |fault| linerate_plan::Diagnostic { place: None, evidence: None, ..fault }.to_string();
            usage(faults.into_iter().map(bare).collect::<Vec<_>>().join("\nlinerate: "))
        })?;
        let Some(mut campaign) = plan.campaign(system, args.quick).cloned() else {
            bail_usage!("--quick is the quick form of a plan: name a plan");
        };
        campaign.name_by_frames();
        Ok(campaign)
    };
    let Some(file) = &args.lab else {
        if args.system.is_some() {
            bail_usage!("--system is for the DUT of a lab of hosts: name its lab file with --lab");
        }
        return Ok((read("mode = \"threaded\"", System::Linux)?, None));
    };
    let lab = hosts::read(file)?;
    let on = |system: System| {
        read(&format!("file = {}\nsystems = [{}]", json!(file), json!(system.name())), system)
    };
    let stated = lab.dut().and_then(|dut| dut.system?.of_plans());
    let plan = on(args.system.or(stated).unwrap_or_default())?;
    if simulated {
        return Ok((plan, None));
    }
    let site = Site::open(args.ssh.approach(), Path::new(""), file, &plan.experiment.trials)?;
    let found = hosts::system(args.system, &site, &System::all().collect::<Vec<_>>())?;
    Ok((found.map_or(Ok(plan), on)?, Some(site)))
}

/// The IP version of a plan's traffic, and the factor that sweeps both if both are wanted.
pub fn family(wanted: Families) -> (&'static str, &'static str) {
    match wanted {
        Families::Ipv4 => ("IPv4", ""),
        Families::Ipv6 => ("IPv6", ""),
        Families::Both => {
            ("IPv4", "[factors.family]\nsets = \"traffic.family\"\nlevels = [\"IPv4\", \"IPv6\"]\n")
        }
    }
}

/// The verb that a campaign without a plan's file was begun by.
fn verb(campaign: &Campaign) -> &str {
    let verbs = ["bench", "search", "rfc2544"];
    let begun = campaign.asked.command.iter().find(|word| verbs.contains(&word.as_str()));
    begun.map_or("bench", String::as_str)
}

/// The hosts of a plan's lab file, which is the one that the command line names, or beside the plan.
fn open_site(args: &Which, file: &Path, named: &str, plan: &Plan) -> Result<Site> {
    let lab = args.lab.clone().unwrap_or_else(|| hosts::folder(file).join(named));
    Site::open(args.ssh.approach(), file, &lab, &plan.experiment.trials)
}

/// Checks the privileges of this process before anything is touched. Returns the reason if XDP cannot be used. A process that may
/// not make namespaces gets a user namespace, which must happen while it has one thread.
fn enter(mode: Mode, port: Option<Backend>) -> Result<Option<&'static str>> {
    let may = userns::may_administer_networks();
    if port.is_some_and(|port| port != Backend::AfPacket) && !may {
        bail!("XDP and AF_XDP need root: run it with sudo");
    }
    if mode == Mode::Threaded && !(may && userns::is_initial()) {
        bail_usage!(
            "threaded mode binds kernel threads to CPUs, which needs root outside of any user namespace: use sudo"
        );
    }
    if !may {
        userns::enter().context("measuring without root, in a user namespace")?;
    }
    Ok((!may).then_some("not root"))
}

/// Refuses a plan's file that no longer gives the recorded plan.
fn check_unchanged_plan(file: &Path, then: &Plan) -> Result<()> {
    let name = file.display();
    let Ok(bytes) = plan_file::read(file) else {
        tell(format!("{name} cannot be read any more: continuing with the recorded plan"));
        return Ok(());
    };
    let now = plan_file::parse(file, &bytes).ok();
    let now =
        now.as_ref().and_then(|now| now.campaign(then.experiment.system, then.experiment.quick)).cloned();
    let same = now.is_some_and(|mut now| {
        // The command line may have set these.
        let (trials, recorded) = (&mut now.experiment.trials, &then.experiment.trials);
        trials.seed = recorded.seed;
        trials.extended_ns = recorded.extended_ns;
        (trials.budget_ns, trials.blocks) = (recorded.budget_ns, recorded.blocks);
        // The hosts may have told it.
        now.experiment.link_speed = now.experiment.link_speed.or(then.experiment.link_speed);
        now == *then
    });
    if !same {
        bail_usage!(
            "{name} has changed since this campaign began, or a rule file that it names has, and its trials would not belong together: put the plan back, or begin a new campaign",
        );
    }
    Ok(())
}

/// Where a plan's trials take place, ready for them. `batch`: that of the campaign that is resumed.
fn testbed(
    prepared: &mut Prepared,
    simulated: Option<MemoryDut>,
    site: Option<&Site>,
    keep: bool,
    batch: Option<u32>,
    progress: &Progress,
) -> Result<Box<dyn Testbed>> {
    if let Some(dut) = simulated {
        return Ok(Box::new(Simulated::new(prepared.clone(), dut, prepared.plan.timing())?));
    }
    if let Some(site) = site {
        progress.say("preparing the hosts");
        return Ok(Box::new(hosts::Hosts::new(site, prepared)?));
    }
    if prepared.mode == Mode::EndHosts {
        if keep {
            bail_usage!("--keep: end hosts are made anew for each trial");
        }
        return Ok(Box::new(EndHosts::new(prepared)?));
    }
    progress.say("building the lab, choosing the batch size");
    if keep {
        let [group] = distinct(prepared.measured().map(|cell| prepared.group(cell)))[..] else {
            bail_usage!("--keep: this plan takes several labs, one after the other, and one can be kept");
        };
        lab::can_keep(KEPT, &prepared.setups(group)?.1)?;
    }
    Ok(Box::new(SequentialLabs::new(prepared, batch)?))
}

fn record(name: String, file: Option<String>, prepared: Prepared, testbed: &dyn Testbed) -> Campaign {
    let Prepared { plan, skipped, slots, mut notes, standing, roles, mode, .. } = prepared;
    notes.extend(testbed.notes().into_iter().inspect(|note| tell(note)));
    let (lab, [generator, receiver], batch) = testbed.names();
    let trials = &plan.experiment.trials;
    let first = plan.cells.iter().enumerate().find(|(at, _)| !plan.is_ceiling(*at));
    Campaign {
        version: VERSION,
        linerate: env!("CARGO_PKG_VERSION").into(),
        name,
        started: utc_now(),
        asked: Asked {
            command: std::env::args().collect(),
            mode,
            lab,
            generator,
            receiver,
            flows: plan.kinds.iter().map(|k| u64::from(k.flows)).max().unwrap_or(0),
            order: plan.kinds.first().map_or(String::new(), |k| k.order.to_string()),
            rate: first.map_or("max".into(), |(_, cell)| cell.rate.to_string()),
            timing: plan.timing(),
            batch,
            seed: trials.seed.unwrap_or_default(),
        },
        roles,
        slots,
        notes,
        standing,
        planned: Some(Box::new(Planned {
            file,
            skipped,
            plan: plan.without_experiment(),
            experiment: plan.experiment,
        })),
        imported: None,
    }
}

/// Prints the result, and returns the exit status for scripts.
fn report(
    args: &CampaignArgs,
    campaign: &Campaign,
    facts: &HostFacts,
    finished: Finished,
) -> Result<ExitCode> {
    let Finished { summary, directory, facts: configured, failure, .. } = finished;
    if !args.quiet {
        print_campaign(&args.printed, &directory, campaign, facts, &summary, &configured)?;
        print_place(&args.printed, &directory);
    }
    if args.report {
        super::report::beside(&directory, args.quiet)?;
    }
    if let Some(file) = &args.junit {
        super::export::verdicts_of(&directory, file)?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let simulate = args.simulate.as_ref().map_or(String::new(), |dut| format!(" --simulate {dut}"));
    let resumed = format!("{}{simulate}", directory.display());
    if summary.stopped == Stopped::Interrupted {
        tell(format!("stopped; to resume: linerate run --resume {resumed}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let searching = campaign.planned.as_deref().filter(|of| of.experiment.trials.measure != Measure::Rate);
    if let Some(planned) = searching.filter(|_| summary.stopped == Stopped::Budget && !args.quiet) {
        let plan = Plan::joined(&planned.experiment, planned.plan.clone())?;
        tell(pages::going_on(&plan, &resumed));
    }
    let missed = missed(args, &summary);
    let slower = args.fail_if_slower.is_some_and(|limit| is_slower(limit, &summary));
    let lacking = campaign.missing();
    if args.quiet {
        for (variant, why) in &lacking {
            tell(format!("{variant} was not measured: {}", why.join("; ")));
        }
        for unmeasured in &summary.unmeasured {
            tell(format!("{} {}", unmeasured.name, unmeasured.why));
        }
    }
    Ok(match (summary.unmeasured.is_empty() && lacking.is_empty(), missed || slower) {
        (false, _) => ExitCode::from(FAILED),
        (true, true) => ExitCode::from(MISSED),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Whether the campaign missed an expectation of the plan. In quiet mode, which has no page, it names each one.
fn missed(args: &CampaignArgs, summary: &Summary) -> bool {
    let missed: Vec<_> =
        summary.expectations.iter().filter(|e| e.judgement == Some(Judgement::Missed)).collect();
    for expected in missed.iter().filter(|_| args.quiet) {
        tell(format!("expectation missed: {}", expected.words));
    }
    !missed.is_empty()
}

/// Whether a variant is proven slower than the baseline variant, by at least this share.
fn is_slower(limit: Share, summary: &Summary) -> bool {
    let name = |cell: usize| summary.rows.get(cell).map_or("", |row| &row.name);
    let claim = |compared: &Compared| {
        let Against { than, ratio, cost, .. } = compared.against;
        Some(Claim { of: name(compared.of), than: name(than), drops: cost.is_some(), ratio: ratio? })
    };
    let judged = summary.comparisons.iter().filter(|c| c.why == Interest::Variants);
    any_slower(limit, judged.filter_map(claim))
}
