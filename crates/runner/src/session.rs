//! A campaign from its plan to its records: what may be measured here is prepared, carried out, and put back.

mod arguments;
mod plain;
mod recording;
mod resuming;

use crate::campaign::Finished;
use crate::fault::Watcher;
use crate::interrupt::interrupted;
use crate::messages::{faulty, tell, usage};
use crate::progress::Progress;
use crate::testbed::guests::{Guests, kernels};
use crate::testbed::hosts::{self, Site};
use crate::testbed::prepare::{Prepared, distinct, prepare};
use crate::testbed::{
    EndHosts, SequentialLabs, Simulated, Simulation, Testbed, connection_labs, http_labs,
    makes_requests, opens_connections, parse_simulation, try_out,
};
use crate::{campaign, input, kept, plans};
use anyhow::{Context, Result, bail};
pub use arguments::{of_arguments, told};
use linerate_linux::host;
use linerate_linux::host::autogroup::{Ahead, standing};
use linerate_linux::host::changes::{Consent, Host};
use linerate_linux::net::userns;
use linerate_linux::records::{RecordStore, StoredCampaign};
use linerate_measure::experiment::{Measure, System};
use linerate_measure::record::{Campaign, HostFacts, LabKind, Mode, TrialRecord};
use linerate_plan::campaign::{Campaign as Plan, Kind, Lab};
use linerate_plan::keys::PROFILE_NS;
use linerate_plan::lab::Lab as LabFile;
use linerate_plan::names::Named;
use linerate_plan::timetable::Timetable;
use linerate_plan::{Backend, Diagnostic, Source, duration_text};
use linerate_remote::Approach;
use linerate_report::pages;
use recording::record;
pub use resuming::changes_of_machine;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of a lab that stays up.
const KEPT: &str = "linerate";

/// How a campaign is carried out, whatever its plan.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Time for all trials, instead of the plan's.
    pub budget: Option<Duration>,
    /// Seed of the order of trials, instead of the plan's.
    pub seed: Option<u64>,
    /// Folder of the records.
    pub out: Option<PathBuf>,
    /// Whether settings of the whole host may be changed.
    pub allow_host_changes: bool,
    /// Whether the kernel is sampled after the trials.
    pub profile: bool,
    /// Whether the embedded lab stays up.
    pub keep: bool,
    /// The simulated DUT, in the words of the arguments.
    pub simulate: Option<String>,
    /// Kernels that alternate, each in a guest, instead of the plan's.
    pub kernels: Vec<String>,
    /// Whether guests may be emulated: their figures are of no real machine.
    pub emulated: bool,
}

impl Wanted {
    /// Sets the budget and the seed of a plan, if they are wanted.
    pub fn set(&self, plan: &mut Source) {
        if let Some(budget) = self.budget {
            plan.set(
                "--budget",
                &["trials", "budget"],
                duration_text(budget.as_nanos() as u64),
            );
            plan.remove(&["quick", "budget"]);
        }
        if let Some(seed) = self.seed {
            plan.set("--seed", &["trials", "seed"], seed);
        }
        self.set_kernels(plan);
    }

    fn set_kernels(&self, plan: &mut Source) {
        if !self.kernels.is_empty() {
            plan.set("--kernel", &["factors", "kernel", "sets"], "kernel");
            let levels = self.kernels.as_slice();
            plan.set("--kernel", &["factors", "kernel", "levels"], levels);
        }
    }
}

/// Which of a plan's campaigns, and on which hosts.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The plan's quick form.
    pub quick: bool,
    /// The DUT's system, where the plan is for several.
    pub system: Option<System>,
    /// The lab file, instead of the one that the plan names.
    pub lab: Option<PathBuf>,
    /// How hosts are reached.
    pub approach: Approach,
}

/// A campaign, and everything that is known of it before the first frame.
pub struct Session {
    /// The plan's file, if it has one.
    file: Option<String>,
    prepared: Prepared,
    facts: HostFacts,
    simulated: Option<Simulation>,
    /// The hosts of the plan's lab, unless it is the embedded one.
    site: Option<Site>,
    /// The guests of the plan's kernels.
    guests: Option<Guests>,
    /// The campaign that is resumed.
    earlier: Option<(RecordStore, StoredCampaign)>,
    /// Who may change the host does so alone.
    _reserved: Option<std::fs::File>,
}

impl Session {
    /// A new campaign of a plan's file.
    pub fn of_file(choice: &Choice, wanted: &Wanted, file: &Path) -> Result<Session> {
        if input::is_stdin(file) {
            bail_usage!("a plan that is carried out is a file: resuming it needs its place");
        }
        let simulated = wanted.simulate.is_some();
        let (mut plan, site) = chosen(choice, file, simulated, |plan| {
            wanted.set_kernels(plan);
            Ok(())
        })?;
        if wanted.profile && site.is_none() {
            plan = plain::with_plain(plan, choice, file, simulated);
        }
        // Not as keys of the plan, which refuses a budget below one block: that block is run.
        let trials = &mut plan.experiment.trials;
        if let Some(budget) = wanted.budget {
            (trials.budget_ns, trials.blocks) = (Some(budget.as_nanos() as u64), None);
        }
        trials.seed = wanted.seed.or(trials.seed);
        Session::new(wanted, Some(file.display().to_string()), plan, site)
    }

    /// A new campaign. `file`: the plan's file, if it has one.
    ///
    /// # Errors
    /// The reason why this machine, or the lab, cannot measure it.
    pub fn new(
        wanted: &Wanted,
        file: Option<String>,
        plan: Plan,
        site: Option<Site>,
    ) -> Result<Session> {
        Self::with_batch(wanted, file, plan, site, None)
    }

    /// As [`Session::new`]. `batch`: frames that guests hand over at once, in a campaign that is resumed.
    fn with_batch(
        wanted: &Wanted,
        file: Option<String>,
        mut plan: Plan,
        site: Option<Site>,
        batch: Option<u32>,
    ) -> Result<Session> {
        let simulated = wanted
            .simulate
            .as_deref()
            .map(parse_simulation)
            .transpose()
            .map_err(usage)?;
        let drawn = || {
            std::time::UNIX_EPOCH
                .elapsed()
                .map(|time| time.as_nanos() as u64)
        };
        let seed = &mut plan.experiment.trials.seed;
        *seed = Some(seed.map_or_else(drawn, Ok).context("reading the clock")?);
        if let Some(site) = &site {
            put_into(&mut plan, site);
        }
        let consent = if wanted.allow_host_changes {
            Consent::Allowed
        } else {
            Consent::Refused
        };
        let mut _reserved = None;
        let mut guests = None;
        let in_guests = simulated.is_none() && !kernels(&plan).is_empty();
        if wanted.emulated && !in_guests {
            bail_usage!(
                "--emulated is for kernels in guests: name them with --kernel, or `kernel` in the plan"
            );
        }
        let mut prepared = match &plan.lab {
            _ if in_guests => {
                check_guests(wanted, &plan)?;
                let (prepared, booted) = Guests::boot(&mut plan, wanted.emulated, batch)?;
                guests = Some(booted);
                prepared
            }
            Lab::File { .. } => hosts::prepare(&plan, site.as_ref())?,
            Lab::Embedded { .. } if simulated.is_some() => prepare(&plan, consent, true, None)?,
            Lab::Embedded { mode, port, .. } => {
                let no_xdp = enter(*mode, *port)?;
                let alone = (consent == Consent::Allowed).then(|| Host::this().reserve());
                _reserved = alone.transpose()?;
                kept::clear_remains()?;
                prepare(&plan, consent, false, no_xdp)?
            }
        };
        // A campaign that was stopped is resumed with the same DUT alone.
        let dut = wanted
            .simulate
            .iter()
            .map(|dut| ("the simulated DUT".to_owned(), dut.clone()));
        prepared.standing.extend(dut);
        let mut facts = site
            .as_ref()
            .map_or_else(|| host::facts(Path::new("/")), Site::host_facts);
        if let Some(guests) = &guests {
            facts.kernel = format!("{}, with guests that run {}", facts.kernel, guests.labels());
        }
        Ok(Session {
            file,
            prepared,
            facts,
            simulated,
            site,
            guests,
            earlier: None,
            _reserved,
        })
    }

    /// The plan's file, if it has one.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Whether this machine, or the lab, can measure none of the cells.
    pub fn measures_nothing(&self) -> bool {
        self.prepared.measured().next().is_none()
    }

    /// The plan of the trials.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Says which frames are longer than was asked for, before a long campaign.
    pub fn tell_lengths(&self) {
        distinct(self.prepared.plan.kinds.iter().filter_map(Kind::lengthened))
            .iter()
            .for_each(tell);
    }

    /// Why cells cannot be measured here.
    pub fn reasons_to_skip(&self) -> Vec<&String> {
        distinct(self.prepared.skipped.iter().flat_map(|s| &s.reasons))
    }

    /// The variants that cannot be measured here, with the reasons.
    pub fn lacking(&self) -> Vec<(String, String)> {
        self.prepared.lacking()
    }

    /// The variants that the DUT of the embedded lab does not take, or that change nothing of it, with the reasons. `base`: the variant of the
    /// DUT as it is.
    ///
    /// # Errors
    /// The DUT as it is cannot be made either.
    pub fn try_out(&self, base: &str) -> Result<Vec<(String, String)>> {
        if self.simulated.is_some() {
            return Ok(Vec::new());
        }
        try_out(&self.prepared, base)
    }

    /// Runs the campaign, and puts everything back. `base`: the folder below which it makes one for the records, unless the arguments
    /// name one. `None`: it was interrupted before the first trial.
    ///
    /// # Errors
    /// The reason why it could not measure.
    pub fn measure(self, wanted: &Wanted, name: String, base: &Path) -> Result<Option<Measured>> {
        let progress = progress(&self.prepared.plan);
        let Session {
            file,
            mut prepared,
            mut facts,
            simulated,
            site,
            guests,
            earlier,
            _reserved,
        } = self;
        let kind = guests.as_ref().map(Guests::kind);
        let ahead = simulated.is_none().then(Ahead::this);
        let set = ahead.as_ref().and_then(|ahead| ahead.as_ref().ok());
        let _watcher = Watcher::of(set.and_then(Option::as_ref));
        facts.priority = ahead.as_ref().filter(|_| site.is_none()).map(standing);
        let asked_ns = wanted.profile.then_some(PROFILE_NS);
        let profile_ns = prepared.plan.collect.profile_ns.or(asked_ns);
        // Records first: where they cannot be written, nothing is set up for nothing.
        let (store, stored) = match earlier {
            Some((store, stored)) => (store, Some(stored)),
            None => (
                RecordStore::create(base, &name, wanted.out.as_deref())?,
                None,
            ),
        };
        let batch = stored.as_ref().map(|stored| stored.campaign.asked.batch);
        let (site, keep) = (site.as_ref(), wanted.keep);
        let before = stored.as_ref().map_or(0, |stored| stored.trials.len());
        let simulated = simulated.map(|of| of.after(before as u64));
        let made = match guests {
            Some(guests) => Ok(Box::new(guests) as Box<dyn Testbed>),
            None => testbed(&mut prepared, simulated, site, keep, batch, &progress),
        };
        let mut testbed = match made {
            Ok(standing) => standing,
            Err(error) => {
                if stored.is_none() {
                    store.abandon();
                }
                return if interrupted() { Ok(None) } else { Err(error) };
            }
        };
        let (campaign, earlier) = match stored {
            Some(stored) => {
                let (campaign, trials) = continued(stored, &store, wanted)?;
                (campaign, Some(trials))
            }
            None => (record(name, file, prepared, testbed.as_ref(), kind), None),
        };
        let finished = campaign::run(
            &campaign,
            &facts,
            testbed.as_mut(),
            store,
            earlier,
            profile_ns,
            &progress,
        );
        // The hosts are restored before any output.
        progress.say("putting everything back");
        let began = Instant::now();
        let lab = testbed.lab().filter(|_| wanted.keep && finished.is_ok());
        let kept = lab.map(|lab| kept::keep(lab, KEPT)).transpose()?;
        let (left, reboots) = take_down(testbed, progress);
        let mut finished = finished?;
        if campaign.asked.lab == LabKind::Hosts {
            finished.put_back(began.elapsed(), reboots)?;
        }
        Ok(Some(Measured {
            campaign,
            facts,
            finished,
            left: !left.is_empty(),
            kept,
        }))
    }
}

/// Refuses what guests cannot do.
fn check_guests(wanted: &Wanted, plan: &Plan) -> Result<()> {
    if wanted.keep {
        bail_usage!("--keep: a guest cannot be kept");
    }
    if plan.kinds.iter().any(Kind::needs_nginx) {
        bail_usage!("guests have no wrk and no nginx: leave out the kernels or HTTP");
    }
    Ok(())
}

/// Enters into a plan what its lab says.
fn put_into(plan: &mut Plan, site: &Site) {
    let knows_speed = plan.experiment.link_speed.is_some();
    plan.is_for(&site.lab);
    if !knows_speed && plan.experiment.trials.measure == Measure::Rfc2544 {
        plan.experiment.link_speed = site.link_speed();
    }
}

/// A campaign that was carried out.
pub struct Measured {
    pub campaign: Campaign,
    pub facts: HostFacts,
    pub finished: Finished,
    /// Whether something could not be put back.
    pub left: bool,
    /// Where the lab is that was kept.
    pub kept: Option<String>,
}

/// The plan's campaign that was asked for, and the hosts of its lab, if it is for hosts. `with`: lays arguments over the file.
///
/// # Errors
/// The faults of the file or the arguments, or the reason why the lab cannot be measured.
pub fn chosen(
    choice: &Choice,
    file: &Path,
    simulated: bool,
    with: impl FnOnce(&mut Source) -> Result<()>,
) -> Result<(Plan, Option<Site>)> {
    let name = file.display().to_string();
    let in_file = |faults: Vec<Diagnostic>| match faults.iter().all(|fault| fault.place.is_some()) {
        true => faulty(&name, &faults),
        false => told(faults),
    };
    let mut source = linerate_plan::Plan::source(&plans::read(file)?).map_err(in_file)?;
    with(&mut source)?;
    let read = plans::of(file, &source).map_err(in_file)?;
    let plan = plans::campaign(&read, &name, choice.system, choice.quick)?;
    plans::check_lab(plan, &name, choice.lab.is_some())?;
    let Lab::File { path, .. } = &plan.lab else {
        return Ok((plan.clone(), None));
    };
    if simulated {
        let lab = match &choice.lab {
            Some(lab) => Some(hosts::read(lab)?),
            None => hosts::read(&hosts::folder(file).join(path)).ok(),
        };
        return Ok((in_lab(plan.clone(), lab.as_ref()), None));
    }
    let site = open_site(choice, file, path, plan)?;
    let system = hosts::system(choice.system, &site, &read.systems)?;
    Ok((
        plans::campaign(&read, &name, system, choice.quick)?.clone(),
        Some(site),
    ))
}

/// The plan for a lab file whose hosts nobody reaches. Tests of RFC 2544 have its link speed.
fn in_lab(mut plan: Plan, lab: Option<&LabFile>) -> Plan {
    let Some(lab) = lab else { return plan };
    plan.is_for(lab);
    if plan.experiment.trials.measure == Measure::Rfc2544 {
        plan.experiment.link_speed = plan.experiment.link_speed.or(lab.link_speed);
    }
    plan
}

/// The hosts of a plan's lab file, which is the one that the command line names, or beside the plan.
fn open_site(choice: &Choice, file: &Path, named: &str, plan: &Plan) -> Result<Site> {
    let lab = choice
        .lab
        .clone()
        .unwrap_or_else(|| hosts::folder(file).join(named));
    if choice.lab.is_none() && !lab.exists() {
        bail!(
            "cannot read the lab file {}, which {} names: this plan needs real hosts, so give --lab FILE (`linerate lab example` prints one to begin with)",
            lab.display(),
            file.display()
        );
    }
    Site::open(choice.approach.clone(), file, &lab, &plan.experiment.trials)
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

fn progress(plan: &Plan) -> Progress {
    let is_exact = plan.experiment.trials.measure == Measure::Rate;
    Progress::new(
        Duration::from_nanos(Timetable::new(plan).trials_ns),
        is_exact,
    )
}

/// A campaign that goes on, with its trials so far. Another budget is recorded.
fn continued(
    stored: StoredCampaign,
    store: &RecordStore,
    wanted: &Wanted,
) -> Result<(Campaign, Vec<TrialRecord>)> {
    let StoredCampaign {
        campaign, trials, ..
    } = stored;
    tell(format!(
        "continuing after {}",
        pages::counted(trials.len(), "trial")
    ));
    if wanted.budget.is_some() {
        store.write_campaign(&campaign)?;
    }
    Ok((campaign, trials))
}

/// Says what could not be put back, when the line of the progress is gone.
fn take_down(testbed: Box<dyn Testbed>, progress: Progress) -> (Vec<String>, u32) {
    let (left, reboots) = testbed.take_down();
    drop(progress);
    for left in &left {
        tell(format!("not everything could be put back: {left}"));
    }
    (left, reboots)
}

/// The labs of a plan in the namespaces of this machine. `batch`: frames that are handed over at once; `None`: chosen by trying.
///
/// # Errors
/// A lab cannot be built.
pub fn local(prepared: &mut Prepared, batch: Option<u32>) -> Result<Box<dyn Testbed>> {
    testbed(prepared, None, None, false, batch, &Progress::of_steps())
}

/// Where a plan's trials take place, ready for them. `batch`: that of the campaign that is resumed.
fn testbed(
    prepared: &mut Prepared,
    simulated: Option<Simulation>,
    site: Option<&Site>,
    keep: bool,
    batch: Option<u32>,
    progress: &Progress,
) -> Result<Box<dyn Testbed>> {
    let (connections, http) = (opens_connections(prepared)?, makes_requests(prepared)?);
    if (connections || http) && simulated.is_some() {
        bail_usage!("a simulated DUT has no connections: leave out --simulate or the connections");
    }
    if let Some(simulation) = simulated {
        let timing = prepared.plan.timing();
        return Ok(Box::new(Simulated::new(
            prepared.clone(),
            simulation,
            timing,
        )?));
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
    if http {
        if keep {
            bail_usage!("--keep: a lab of HTTP cannot be kept");
        }
        return Ok(Box::new(http_labs(prepared)));
    }
    if connections {
        if keep {
            bail_usage!("--keep: a lab of connections cannot be kept");
        }
        if prepared.backend != Backend::Xdp {
            bail_usage!(
                "both ends of connections are XDP programs, and this would be measured with {}: leave out `port`, and run it as root, on Linux 5.18 or newer",
                prepared.backend
            );
        }
        return Ok(Box::new(connection_labs(prepared, batch)));
    }
    progress.say("building the lab, choosing the batch size");
    if keep {
        let [group] = distinct(prepared.measured().map(|cell| prepared.group(cell)))[..] else {
            bail_usage!(
                "--keep: this plan takes several labs, one after the other, and one can be kept"
            );
        };
        kept::can_keep(KEPT, &prepared.setups(group)?.1)?;
    }
    Ok(Box::new(SequentialLabs::new(prepared, batch)?))
}
