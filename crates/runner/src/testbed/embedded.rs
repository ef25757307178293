//! The embedded lab as a testbed. Labs that cannot stand side by side, because they want the host in different states, stand one at a time.

mod batch;
mod sequential;
mod tester;

use super::collectors::Scene;
use super::connections::{Freshness, Timeouts, after_load, establish, tracked};
use super::prepare::{Prepared, TrafficKind, distinct};
use super::{EventRun, Request, TrialOutcome};
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::progress::mention;
use anyhow::{Context, Result, bail};
use batch::CANDIDATES;
use linerate_linux::host::turn::Turn;
use linerate_linux::lab::events::Event;
use linerate_linux::lab::ledger::{self, Account, Snapshot};
use linerate_linux::lab::{EmbeddedLab, LabSpec, Lane, support};
use linerate_linux::net::conntrack;
use linerate_linux::ports::Target;
use linerate_linux::telemetry::switches::Switches;
use linerate_linux::trial::{self, NOTHING_LEFT};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Connections, Direction, Mode, States};
use linerate_measure::trial::{Rates, Shape, Timing, rates};
use linerate_plan::Backend;
use linerate_plan::rules::own;
use linerate_plan::settings::Dut;
use linerate_wire::{Load, MacAddr, Traffic};
pub use sequential::{GroupLab, SequentialLabs};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tester::Tester;

/// An embedded lab for a group of lanes, ready for trials. Cells and kinds of traffic have the plan's numbers.
pub struct Embedded {
    prepared: Rc<Prepared>,
    group: usize,
    /// The plan's number of each lane.
    lanes: Vec<usize>,
    /// Before the lab: dropped in this order.
    tester: Tester,
    lab: EmbeddedLab,
    /// Counts who has the CPUs of the threads that send; `None` where the kernel does not let it.
    switches: Option<Switches>,
    /// Frames handed over at once.
    batch: u32,
    /// Frames/s that each cell's DUT took while it learned.
    pace: BTreeMap<usize, f64>,
    /// By cell: since when its connections are established; none where they are not.
    fresh: BTreeMap<usize, Freshness>,
    /// The turn of a trial, while its lane is prepared.
    turn: Option<Turn>,
}

impl Embedded {
    /// Builds the lab and makes the tester's ports.
    fn build(prepared: Rc<Prepared>, group: usize, batch: u32) -> Result<Self> {
        let kinds = kinds(&prepared, prepared.in_group(group));
        let (roles, spec) = (&prepared.roles, lab_spec(&prepared, group));
        let (lanes, setups) = prepared.setups(group)?;
        let lab = EmbeddedLab::build(spec, &setups).context("building the embedded lab")?;
        let tester = Tester::new(&lab, &prepared, &kinds)?;
        if prepared.mode == Mode::Threaded && roles.receiver != roles.dut {
            lab.thread_receivers(&roles.receiver)
                .context("giving the receiver its CPU")?;
        }
        let (pace, fresh) = (BTreeMap::new(), BTreeMap::new());
        let cpus = kinds.iter().flat_map(|(_, kind)| &kind.cpus);
        let switches = Switches::load(&cpus.copied().collect::<Vec<_>>()).ok();
        Ok(Embedded {
            switches,
            group,
            lanes,
            tester,
            lab,
            batch,
            pace,
            fresh,
            turn: None,
            prepared,
        })
    }

    /// The lab's number of a cell's lane.
    fn lane(&self, cell: usize) -> usize {
        let lane = self.prepared.lane(cell);
        self.lanes
            .iter()
            .position(|known| *known == lane)
            .expect("a measured cell has its lane")
    }

    /// Runs a load through a cell's DUT, before the trials; the receiver goes on counting.
    fn send(&mut self, cell: usize, timing: Timing, load: Load) -> Result<trial::Outcome> {
        let lane = self.lane(cell);
        let (generator, receiver) = self.tester.pair(self.prepared.kind_of[cell], lane);
        let _turn = self.turn.is_none().then(|| turn(&self.prepared));
        let mut attempts = 0;
        loop {
            attempts += 1;
            let outcome = trial::run(timing, load, generator, receiver, &STOP, |_, _| {})?;
            match outcome
                .faults
                .iter()
                .find(|fault| fault.starts_with(NOTHING_LEFT))
            {
                Some(fault) if attempts == ATTEMPTS => bail!("{fault} ({ATTEMPTS} attempts)"),
                Some(_) => {}
                None => return Ok(outcome),
            }
        }
    }

    /// Stops a cell's receiver and returns its counters.
    fn stop(&mut self, cell: usize) -> Result<PortCounters> {
        let lane = self.lane(cell);
        let (_, receiver) = self.tester.pair(self.prepared.kind_of[cell], lane);
        let counters = receiver.counters();
        receiver.stop()?;
        Ok(counters)
    }

    /// Sends flows through every DUT, so that no trial pays the cost of first frames (states, learned addresses, caches): RFC
    /// 2544's learning frames. A DUT with states sees each flow in both directions, or in those of the plan.
    ///
    /// # Errors
    /// The load could not be run.
    fn learn(&mut self) -> Result<()> {
        for cell in self.prepared.in_group(self.group).collect::<Vec<_>>() {
            let lane = self.lane(cell);
            let Lane { setup, fault, .. } = &self.lab.lanes[lane];
            if setup.settings.dut == Dut::TesterBaseline || fault.is_some() {
                continue;
            }
            let (tracks, states) = (setup.tracks, setup.settings.states);
            let all = self.prepared.traffic(cell).flows.len();
            let every = tracks && states == States::OneWay;
            let flows = if every { all } else { all.min(ENOUGH_TO_LEARN) };
            // A DUT with CPUs of its own would lose frames above its forwarding rate, and learn nothing from them.
            let (rate, each_ns) = match self.prepared.mode {
                Mode::Inline => (None, 5_000),
                Mode::Threaded | Mode::Hosts | Mode::EndHosts => (Some(50_000.0), 30_000),
            };
            let most_ns = 20_000_000 + flows * each_ns;
            let timing = Timing {
                warm_up_ns: 0,
                interval_ns: most_ns,
                ..Timing::slice(most_ns)
            };
            let began = Instant::now();
            let load = Load {
                rate,
                frames: Some(flows),
                ..Load::lasting(timing.load())
            };
            self.send(cell, timing, load)
                .context("sending the learning frames")?;
            let took = began.elapsed();
            let at_least = self.stop(cell)?.unique() as f64 / took.as_secs_f64();
            if self.keeps_states(lane) && states == States::Established {
                self.establish(cell)?;
            }
            if rate.is_none() {
                // Setting a load up and ending it takes longer than a thousand frames do: only a large number shows a pace.
                let pace = if at_least < SLOW {
                    self.probe(cell)?
                } else {
                    Some(at_least)
                };
                self.pace.extend(pace.map(|pace| (cell, pace)));
            }
        }
        Ok(())
    }

    /// Whether a lane's DUT tracks connections, by the kernel and not only by the plan: a user's own rules may track them as
    /// well.
    fn keeps_states(&self, lane: usize) -> bool {
        let dut = self.lab.lanes[lane].dut.as_ref();
        dut.is_some_and(|dut| conntrack::count(&dut.namespace).is_some_and(|count| count > 0))
    }

    /// Shows a cell's DUT all its flows in both directions. Flows that cannot be answered stay one-way, and the record says so.
    fn establish(&mut self, cell: usize) -> Result<()> {
        let number = self.lane(cell);
        self.fresh.remove(&cell);
        let (lane, traffic) = (&self.lab.lanes[number], self.prepared.traffic(cell));
        let Some(dut) = &lane.dut else { return Ok(()) };
        if !self.tester.let_through(number, true) {
            return Ok(());
        }
        let cpu = self.prepared.roles.control.first().copied();
        let shown = Traffic {
            campaign: self.prepared.campaign(),
            ..traffic.clone()
        };
        let began = Instant::now();
        let unanswered = establish(&self.lab, lane, &dut.namespace, &shown, cpu);
        self.tester.let_through(number, false);
        if unanswered.context("establishing the connections of the test traffic")? == 0 {
            let timeouts = Timeouts::of(
                &dut.namespace,
                traffic.frame.family,
                traffic.frame.transport,
            );
            self.fresh
                .insert(cell, Freshness::new(began, traffic.flows.len(), timeouts));
        }
        Ok(())
    }

    /// Sees to it before a trial that the DUT's connections are as the plan has them.
    fn prepare(&mut self, cell: usize, timing: Timing) -> Result<()> {
        let lane = &self.lab.lanes[self.lane(cell)];
        let Some(dut) = &lane.dut else { return Ok(()) };
        let length = Duration::from_nanos(timing.load_ns()) + SETTLE_WITHIN;
        let fresh = self.fresh.get(&cell);
        let stale = fresh.is_some_and(|fresh| fresh.expires_within(Instant::now(), length));
        let states = lane.setup.settings.states;
        if states == States::New || states == States::Established && stale {
            // None that is about to expire may be taken for one that was renewed.
            conntrack::flush(&dut.namespace).context("forgetting the DUT's connections")?;
        }
        if states == States::Established && stale {
            let same_lane = |other: &usize| self.prepared.lane(*other) == self.prepared.lane(cell);
            let others: Vec<usize> = self.fresh.keys().copied().filter(same_lane).collect();
            others
                .into_iter()
                .try_for_each(|other| self.establish(other))?;
        }
        Ok(())
    }

    /// Prepares a trial and returns its turn, which begins before connections are established: they may expire while another
    /// linerate has its turn.
    fn prepare_in_turn(&mut self, cell: usize, timing: Timing) -> Result<Option<Turn>> {
        self.turn = Some(turn(&self.prepared));
        let prepared = self.prepare(cell, timing);
        let turn = self.turn.take();
        prepared.map(|()| turn)
    }

    /// The DUT's connections after a trial of `frames` frames that began then.
    fn connections(
        &mut self,
        cell: usize,
        began: Instant,
        frames: u64,
    ) -> Result<Option<Connections>> {
        let lane = &self.lab.lanes[self.lane(cell)];
        let mut fresh = self.fresh.get_mut(&cell);
        let states = after_load(
            lane.setup.settings.states,
            fresh.as_deref_mut(),
            began,
            frames,
        );
        let Some(dut) = &lane.dut else {
            return Ok(None);
        };
        let found = tracked(&dut.namespace, states)?;
        if let Some(fresh) = fresh.filter(|_| found.is_some_and(|c| c.unanswered > Some(0))) {
            // Some expired after all: all are shown again before the next trial.
            fresh.forget();
        }
        Ok(found)
    }

    /// Rates of a short trial of a cell, as fast as possible.
    fn try_out(&mut self, cell: usize, run_ns: u64, batch: u32) -> Result<Option<Rates>> {
        let timing = Timing {
            warm_up_ns: 5_000_000,
            interval_ns: run_ns,
            ..Timing::slice(run_ns)
        };
        let outcome = self.send(
            cell,
            timing,
            Load {
                batch,
                ..Load::lasting(timing.load())
            },
        )?;
        self.stop(cell)?;
        Ok(rates(&outcome.samples))
    }

    /// Frames/s that a cell's DUT takes, roughly.
    fn probe(&mut self, cell: usize) -> Result<Option<f64>> {
        // Inline, the offered load is the load that the DUT takes, even if it drops it.
        Ok(self
            .try_out(cell, 20_000_000, 16)?
            .map(|rates| rates.offered))
    }

    /// Chooses the number of frames that the generators hand over at once, by trying on the cell given. Returns it with the rates measured.
    ///
    /// # Errors
    /// The load could not be run.
    pub fn choose_batch(&mut self, cell: usize) -> Result<(u32, String)> {
        let mut rounds = [[None; CANDIDATES.len()]; batch::ROUNDS];
        for (round, found) in rounds.iter_mut().enumerate() {
            for i in 0..CANDIDATES.len() {
                if interrupted() {
                    bail!("interrupted while the batch size was being chosen");
                }
                let i = (i + round) % CANDIDATES.len();
                found[i] = self
                    .try_out(cell, batch::PROBE_NS, CANDIDATES[i])?
                    .map(|rates| rates.received);
            }
        }
        self.batch = CANDIDATES[batch::choose(&rounds)];
        Ok((self.batch, batch::medians(&rounds)))
    }

    /// A batch is counted when it is through: of a DUT that takes a tenth of a millisecond for a frame, a large one would be a
    /// good part of a trial. And paced frames wait for their batch: a small one keeps latencies honest.
    fn batch_of(&self, request: &Request) -> u32 {
        let most = match (request.rate, self.pace.get(&request.slot)) {
            (Some(_), _) if request.burst == 0 => PACED_BATCH,
            (None, Some(pace)) if *pace < 2_000.0 => 1,
            (None, Some(pace)) if *pace < 8_000.0 => 4,
            (None, Some(pace)) if *pace < SLOW => 16,
            _ => u32::MAX,
        };
        self.batch.min(most)
    }
}

impl GroupLab for Embedded {
    fn stand(prepared: &Rc<Prepared>, group: usize, batch: u32) -> Result<Self> {
        let mut embedded = Embedded::build(Rc::clone(prepared), group, batch)?;
        embedded.learn()?;
        Ok(embedded)
    }

    fn lab(&self) -> &EmbeddedLab {
        &self.lab
    }

    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        let Request {
            slot: cell, timing, ..
        } = *request;
        let number = self.lane(cell);
        let lane = &self.lab.lanes[number];
        if let Some(fault) = &lane.fault {
            return Ok(TrialOutcome::failed(fault.clone()));
        }
        let asked = scene(&self.prepared, lane, request).ask();
        let turn = self.prepare_in_turn(cell, timing)?;
        let load = request.load(self.batch_of(request));
        let lane = &self.lab.lanes[number];
        let (generator, receiver) = self.tester.pair(self.prepared.kind_of[cell], number);
        let scene = Scene {
            switches: self.switches.as_ref(),
            ..scene(&self.prepared, lane, request)
        };
        let mut collectors = scene.before(asked, &self.prepared.plan.collect);
        let counted = lane.rule_counts();
        lane.dut.iter().for_each(|dut| dut.begin_load());
        let began = Instant::now();
        let mut before = None;
        let run = |began: &dyn Fn(u64)| {
            // Just before the receiver begins to count: a frame of the kernel's own that comes between is counted by one of them.
            before = Some(ledger::snapshot(lane)?);
            trial::run(
                timing,
                load,
                generator,
                receiver,
                &STOP,
                |moment, began_ns| {
                    began(began_ns);
                    collectors.during(moment);
                },
            )
        };
        let (outcome, event_run) = with_event(lane, request, run)?;
        let outcome = outcome?;
        let before = before.context("the load did not begin")?;
        let downed = event_run.is_some()
            && lane
                .setup
                .settings
                .event
                .as_ref()
                .is_some_and(Event::downs_link);
        let read = || [generator.directions(), receiver.directions()];
        let ([sent, received], accounts) = settle(lane, &before, downed, read)?;
        receiver.stop()?;
        let waited_ns = turn.as_ref().map_or(0, |turn| turn.waited_ns);
        drop(turn);
        let rules = counted
            .zip(lane.rule_counts())
            .map_or(Vec::new(), |(b, a)| own::grown(&b, &a));
        let found = collectors.after();
        // Each flow is in one of these frames, which open or renew connections.
        let connections = self.connections(cell, began, sent[0].frames)?;
        let mut outcome = TrialOutcome::new(outcome, [sent, received], accounts, found);
        (outcome.evidence.connections, outcome.record.rules) = (connections, rules);
        outcome.record.waited_ns = waited_ns;
        outcome.evidence.closed_loop = self.prepared.mode == Mode::Inline
            && self.prepared.backend == Backend::Xdp
            && event_run.is_none()
            && support::leaves_softirqs();
        outcome.add_event(
            self.lab.lanes[number].setup.settings.event.as_ref(),
            event_run,
        );
        Ok(outcome)
    }
}

/// Runs a load, and the lane's event under it where the request has one.
fn with_event<T>(
    lane: &Lane,
    request: &Request,
    load: impl FnOnce(&dyn Fn(u64)) -> T,
) -> Result<(T, Option<EventRun>)> {
    let Shape::Event { after_ns } = request.shape else {
        return Ok((load(&|_| {}), None));
    };
    let event = Event::of(lane)?;
    let ran = event.words();
    let after_ns = request.timing.warm_up_ns + after_ns;
    let (result, event_run) = trial::under_load(after_ns, |over| event.carry_out(over), load);
    Ok((
        result,
        event_run.map(|(done, times)| (done.map_err(|e| e.to_string()), times, ran)),
    ))
}

/// The lane's device, as a trial wants it observed.
pub(super) fn scene<'a>(prepared: &Prepared, lane: &'a Lane, request: &Request) -> Scene<'a> {
    let forwarding = match prepared.mode {
        Mode::Inline => &prepared.kinds[prepared.kind_of[request.slot]].cpus,
        Mode::Threaded | Mode::Hosts | Mode::EndHosts => &prepared.roles.dut,
    };
    let telemetry = request.telemetry.map(|what| (what, forwarding.clone()));
    let configuration = request.configuration.then_some(request.slot);
    Scene {
        telemetry,
        configuration,
        addresses: prepared.addresses(request.slot),
        ..Scene::of_lane(lane)
    }
}

/// The lab that the cells of a group need.
pub(super) fn lab_spec(prepared: &Prepared, group: usize) -> LabSpec {
    let kinds = kinds(prepared, prepared.in_group(group));
    let all = || kinds.iter().map(|(_, kind)| &kind.traffic);
    let roles = &prepared.roles;
    LabSpec {
        mode: prepared.mode,
        both_ways: kinds
            .iter()
            .any(|(_, kind)| kind.direction == Direction::Both),
        generator_cpus: roles.generator.clone(),
        dut_cpus: roles.dut.clone(),
        longest_fcs: all()
            .map(|traffic| traffic.mix.max_len_fcs())
            .max()
            .unwrap_or(64),
        flows: all().map(|traffic| traffic.flows.len()).max().unwrap_or(0),
        host_changes: prepared.consent,
        interrupted: Some(&STOP),
    }
}

/// Where the generator's frames leave into each lane.
pub(super) fn targets(lab: &EmbeddedLab) -> Vec<Target> {
    let of_lane = |lane: &Lane| Target {
        ifindex: lane.generator.index,
        source: MacAddr(lane.generator.mac),
        destination: MacAddr(lane.destination_mac()),
    };
    lab.lanes.iter().map(of_lane).collect()
}

/// The turn on the lab's CPUs, beside other linerates.
pub(super) fn turn(prepared: &Prepared) -> Turn {
    Turn::on(&prepared.roles.of_load(), interrupted, mention)
}

/// Loads of which no frame left, in succession, that end a campaign.
pub const ATTEMPTS: usize = 3;

/// Frames/s below which a batch takes long enough to matter.
const SLOW: f64 = 32_000.0;

/// Frames handed over at once where a rate was asked for.
pub const PACED_BATCH: u32 = 8;

/// Flows that a DUT without states is shown before the first trial: neighbours, caches and branch predictors.
const ENOUGH_TO_LEARN: u64 = 10_000;

/// How long frames may be under way after the load has ended, before they count as lost without trace: a CPU of a virtual machine may
/// stand still for so long.
const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// Reads the final counters. Where they do not balance, frames may still be in a ring whose thread has not been scheduled:
/// looks again, for a while.
///
/// `read`: frames sent and received by direction.
pub(super) fn settle(
    lane: &Lane,
    before: &Snapshot,
    downed: bool,
    read: impl Fn() -> [Vec<PortCounters>; 2],
) -> Result<([Vec<PortCounters>; 2], Vec<Account>)> {
    let began = Instant::now();
    loop {
        let after = ledger::snapshot(lane)?;
        let frames = read();
        let [sent, received] = &frames;
        let mut accounts = ledger::account(lane, [before, &after], [sent, received]);
        if downed {
            accounts.iter_mut().for_each(Account::link_down);
        }
        let mut ways = accounts.iter().zip(sent.iter().zip(received));
        if ways.all(|(account, (sent, received))| account.balances(sent, received))
            || began.elapsed() > SETTLE_WITHIN
        {
            return Ok((frames, accounts));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The kinds of traffic of these cells, with their numbers.
pub fn kinds(
    prepared: &Prepared,
    cells: impl Iterator<Item = usize>,
) -> Vec<(usize, &TrafficKind)> {
    let numbers = distinct(cells.map(|cell| prepared.kind_of[cell]));
    numbers
        .into_iter()
        .map(|kind| (kind, &prepared.kinds[kind]))
        .collect()
}
