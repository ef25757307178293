//! `linerate bench`: this machine's forwarding, in an embedded lab.

use super::plan;
use crate::campaign::{self, Finished};
use crate::cli::{Bench, BenchPort, ModeChoice};
use crate::interrupt;
use crate::output::{FAILED, INTERRUPTED, print, print_campaign, show, usage};
use crate::progress::Progress;
use crate::testbed::{Backend, Embedded, EmbeddedPlan, PACED_BATCH, Simulated, parse_simulation};
use anyhow::{Context, Result};
use linerate_linux::host::journal::Consent;
use linerate_linux::host::{self, cpu};
use linerate_linux::lab::Setup;
use linerate_linux::lab::support::{self, Need};
use linerate_linux::net::userns;
use linerate_linux::records::{RecordStore, utc_now};
use linerate_measure::record::{Asked, Campaign, HostFacts, Roles, VERSION};
use linerate_measure::strategy::Stopped;
use linerate_plan::campaign::Collect;
use linerate_plan::settings::Mode;
use linerate_plan::timing::Timing;
use linerate_plan::units::Rate;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// What kept it from measuring.
pub fn run(args: &Bench) -> Result<ExitCode> {
    interrupt::install();
    let simulated = args.simulate.as_deref().map(parse_simulation).transpose().map_err(usage)?;
    let backend = backend(args)?;
    let mode = match args.mode {
        ModeChoice::Inline => Mode::Inline,
        ModeChoice::Threaded => Mode::Threaded,
    };
    if args.keep {
        super::lab::can_keep(KEPT, &args.variants)?;
    }
    let roles = roles(args, mode)?;
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists() || args.simulate.is_some();
    let plan = plan::plan(args, &roles.generator, ipv6)?;
    let timing = plan::timing(args, plan.slots.len())?;
    let progress = Progress::new(plan::expected(args, plan.slots.len(), &timing));
    let mut session = Session { args, mode, backend, roles, timing, seed: plan::seed(args)?, plan };
    let store = RecordStore::create(Path::new("linerate-results"), &args.name, args.out.as_deref())?;
    let facts = host::facts(Path::new("/"));
    match simulated {
        Some(dut) => {
            let lanes = session.plan.variants.len() + session.plan.rules.len();
            let duts = (0..lanes).map(|lane| (lane > 0).then_some(dut)).collect();
            let mut stand =
                Simulated::new(duts, &session.plan.kinds, session.plan.layout.clone(), plan::BETWEEN)?;
            let campaign = session.campaign("simulated", ["memory", "memory"], 1);
            let finished = campaign::run(&campaign, &facts, &mut stand, store, None, &progress)?;
            drop(progress);
            report(args, &campaign, &facts, finished)
        }
        None => session.embedded(facts, store, progress),
    }
}

/// Name of a lab that `--keep` leaves up.
const KEPT: &str = "linerate";

struct Session<'a> {
    args: &'a Bench,
    mode: Mode,
    backend: Backend,
    roles: Roles,
    timing: Timing,
    seed: u64,
    plan: plan::Plan,
}

impl Session<'_> {
    fn embedded(&mut self, facts: HostFacts, store: RecordStore, progress: Progress) -> Result<ExitCode> {
        let (stop, result) = (&interrupt::INTERRUPTED, self.prepared(&progress));
        let (mut stand, batch) = match result {
            Ok(prepared) => prepared,
            Err(error) => {
                store.abandon();
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return Ok(ExitCode::from(INTERRUPTED));
                }
                return Err(error);
            }
        };
        let campaign = self.campaign(
            "namespaces",
            match self.backend {
                Backend::Xdp => ["xdp-live-frames", "xdp"],
                Backend::Packet => ["af-packet", "af-packet"],
            },
            batch,
        );
        let finished = campaign::run(&campaign, &facts, &mut stand, store, None, &progress)?;
        drop(progress);
        let code = report(self.args, &campaign, &facts, finished)?;
        if self.args.keep {
            eprintln!("{}", super::lab::keep(stand.lab(), KEPT)?);
        }
        Ok(code)
    }

    /// Builds the lab, sends the learning frames, and chooses the batch size.
    fn prepared(&mut self, progress: &Progress) -> Result<(Embedded, u32)> {
        progress.say("building the lab");
        super::lab::clear_remains()?;
        let setup = |setup| Setup { states: self.args.states, ..setup };
        let mut stand = Embedded::build(EmbeddedPlan {
            mode: self.mode,
            roles: self.roles.clone(),
            setups: self.plan.setups().into_iter().map(setup).collect(),
            kinds: self.plan.kinds.clone(),
            slots: self.plan.layout.clone(),
            stamp_every: self.args.stamp_every,
            campaign: self.seed as u8,
            flows: u64::from(self.args.flows),
            host_changes: Consent::Refused,
            backend: self.backend,
            collect: Collect::default(),
        })?;
        let stop = &interrupt::INTERRUPTED;
        progress.say("sending the learning frames");
        stand.learn(stop)?;
        let batch = match (self.args.batch, self.args.rate) {
            (Some(batch), _) => batch,
            (None, Rate::Max) => {
                progress.say("choosing the batch size");
                let slot = self.plan.slots.iter().position(|s| !s.is_calibration()).unwrap_or(0);
                let (batch, measured) = stand.choose_batch(slot, stop)?;
                self.plan.notes.push(format!("batch size {batch} chosen by measurement ({measured})"));
                batch
            }
            (None, _) => PACED_BATCH,
        };
        stand.set_batch(batch);
        Ok((stand, batch))
    }

    fn campaign(&self, lab: &str, [generator, receiver]: [&str; 2], batch: u32) -> Campaign {
        let args = self.args;
        Campaign {
            version: VERSION,
            linerate: env!("CARGO_PKG_VERSION").into(),
            name: args.name.clone(),
            started: utc_now(),
            asked: Asked {
                command: std::env::args().collect(),
                mode: self.mode,
                lab: lab.into(),
                generator: generator.into(),
                receiver: receiver.into(),
                flows: args.flows.into(),
                order: args.order.to_string(),
                rate: args.rate.to_string(),
                timing: self.timing,
                budget_ns: args.budget.as_nanos() as u64,
                trials: args.trials,
                batch,
                seed: self.seed,
            },
            roles: self.roles.clone(),
            slots: self.plan.slots.clone(),
            notes: self.plan.notes.clone(),
            rule_files: self.plan.rules.iter().cloned().collect(),
            planned: None,
            imported: None,
        }
    }
}

/// XDP where this process can load its programs; otherwise sockets, which need no more than a namespace of one's own. A process that
/// may not make one gets a user namespace, which must happen while it has one thread.
fn backend(args: &Bench) -> Result<Backend> {
    if args.simulate.is_some() {
        return Ok(Backend::Packet);
    }
    let may = userns::may_administer_networks();
    let refused = match args.port {
        Some(BenchPort::Xdp) => return Ok(Backend::Xdp),
        Some(BenchPort::AfPacket) => None,
        None if may => match support::lacking(&Need::Xdp) {
            None => return Ok(Backend::Xdp),
            refused => refused,
        },
        None => Some("not root".into()),
    };
    if args.mode == ModeChoice::Threaded && !(may && userns::is_initial()) {
        return Err(usage(
            "--mode threaded binds kernel threads to CPUs, which needs root outside of any user namespace: sudo linerate bench",
        ));
    }
    if !may {
        userns::enter().context("measuring without root, in a user namespace")?;
    }
    if let Some(reason) = refused {
        eprintln!(
            "linerate: {reason}: the tester uses AF_PACKET sockets, and is several times slower than with XDP as root"
        );
    }
    Ok(Backend::Packet)
}

fn roles(args: &Bench, mode: Mode) -> Result<Roles> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let asked = args.cpus.as_ref().map(|c| c.0.clone());
    let dut = args.dut_cpus.as_ref().map(|c| c.0.clone());
    for cpu in asked.iter().flatten().chain(dut.iter().flatten()) {
        if !online.contains(cpu) {
            return Err(usage(format!(
                "CPU {cpu} is not online, or not allowed to this process: there are {online:?}"
            )));
        }
    }
    if dut.is_some() && mode == Mode::Inline {
        return Err(usage(
            "--dut-cpus is for --mode threaded: inline, the DUT works on the generator's CPUs",
        ));
    }
    let mut roles = cpu::default_roles(&online, mode, asked);
    if let Some(dut) = dut {
        roles.receiver.clone_from(&dut);
        roles.dut = dut;
    }
    Ok(roles)
}

fn report(args: &Bench, campaign: &Campaign, facts: &HostFacts, finished: Finished) -> Result<ExitCode> {
    let Finished { summary, directory, failure, .. } = finished;
    if args.json {
        print_campaign(&directory, campaign, facts, &summary);
    } else {
        show(&linerate_report::text::summary(campaign, facts, &summary));
        print(&format!("Records: {}\n", directory.display()));
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    if summary.stopped == Stopped::Interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if summary.unmeasured.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
