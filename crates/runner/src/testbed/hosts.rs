//! A lab of hosts as a testbed: the DUT set up over ssh for one lane at a time, generators and receiver driven by their linerate or by
//! the tools that they have.

mod accounts;
mod connecting;
mod preparation;
pub mod rehearsal;
mod site;
mod tester;

pub use preparation::prepare;
pub use site::{Site, bytes_of_lab, folder, read, state, system};

use super::collectors::Scene;
use super::connecting::SHORTEST_TIMEOUT_NS;
use super::connections::{Freshness, Timeouts, after_load};
use super::prepare::Prepared;
use super::{EventRun, Request, Testbed, TrialOutcome};
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::messages::tell;
use anyhow::{Result, anyhow, bail};
use connecting::{Opened, table};
use linerate_hosts::agent::connecting::EndCounts;
use linerate_hosts::agent::merge::Seen;
use linerate_hosts::counters;
use linerate_hosts::dut_changes::{Input, Program, Step, Steps, forget};
use linerate_hosts::systems::Kernel;
use linerate_linux::lab::ledger::Account;
use linerate_linux::trial::under_load;
use linerate_measure::audit::Cause;
use linerate_measure::collector::Collectors;
use linerate_measure::counters::PortCounters;
use linerate_measure::experiment::{Reboot, System};
use linerate_measure::record::{Connections, LabKind, States};
use linerate_measure::trial::{Shape, Timing};
use linerate_plan::campaign::Collect;
use linerate_plan::lab::Host;
use linerate_plan::names::Named;
use linerate_plan::rules::Kind;
use linerate_plan::settings::{End, Event, EventKind};
use linerate_remote::TrialResult;
use linerate_remote::dut::RemoteDut;
use linerate_remote::{Left, RemoteError, line};
use linerate_wire::Transport;
use linerate_wire::units::grouped;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tester::{BATCH, Learned, Tester};

/// The fault if no frame of many arrives.
const NOTHING_THROUGH: &str = "no frame comes through: check cables, links, the DUT's routes and forwarding, and whether its rules pass the frames (linerate lab check)";

/// The fault if the tester's own interfaces have not counted one of the frames that its programs sent.
const NOTHING_SENT: &str = "the tester's own interfaces counted none of its frames as sent: its card or driver drops them (linerate lab check; tool = \"af-packet\" in the lab file sends another way)";

/// A lane that has lost the device this often is given up: it may crash the device.
const MOST_LOSSES: u32 = 2;

/// Flows that a DUT without states is shown before the first trial.
const ENOUGH_TO_LEARN: u64 = 10_000;
/// Connections that show whether frames come through.
const CONNECTIONS_TO_LEARN: u64 = 64;
/// Rules and entries whose loading takes a while.
const MANY_RULES: u64 = 10_000;

/// The DUT of a lab of hosts, with the steps of its lanes.
struct Device {
    dut: RemoteDut,
    /// Interfaces of the DUT, towards generator and receiver.
    ends: [String; 2],
    /// By lane of the plan.
    lanes: Vec<Steps>,
    /// Whether it is rebooted before each trial.
    reboot: Reboot,
    /// Data to collect in each trial.
    collect: Collect,
    /// By lane: the steps of its event, or why it cannot be.
    events: Vec<Result<Vec<Step>, String>>,
    /// By slot: destinations of its frames, each with a source.
    addresses: Vec<Vec<[IpAddr; 2]>>,
}

impl Device {
    fn new(site: &Site, host: &Host, prepared: &Prepared) -> Result<Device> {
        let plan = &prepared.plan;
        let reboot = plan.experiment.trials.reboot;
        let (dut, ends) = (
            site.dut(host, reboot)?,
            site.ends(host)?.map(|end| end.name.clone()),
        );
        let lanes = site
            .steps(plan)?
            .into_iter()
            .map(Result::unwrap_or_default)
            .collect();
        let events = site.events(plan)?;
        Ok(Device {
            dut,
            ends,
            lanes,
            reboot,
            collect: plan.collect.clone(),
            events,
            addresses: (0..plan.cells.len())
                .map(|cell| prepared.addresses(cell))
                .collect(),
        })
    }

    /// Prepares the collectors of a trial.
    fn before_trial(&self, request: &Request) -> Collectors<'static> {
        let (host, kernel) = (Some(self.dut.observed()), self.dut.kernel());
        let (ends, configuration) = (
            self.ends.clone(),
            request.configuration.then_some(request.slot),
        );
        let telemetry = request.telemetry.map(|what| (what, Vec::new()));
        // An event takes the host away, or its links.
        let load = (!matches!(request.shape, Shape::Event { .. })).then(|| request.timing.load());
        let scene = Scene {
            host,
            lane: None,
            switches: None,
            of_programs: false,
            kernel,
            ends,
            telemetry,
            load,
            configuration,
            addresses: self.addresses[request.slot].clone(),
        };
        scene.before(scene.ask(), &self.collect)
    }
}

/// A slot of a lab of hosts.
#[derive(Debug, Clone)]
struct HostSlot {
    /// Lane of the plan.
    lane: usize,
    /// Kind of traffic.
    kind: usize,
    /// Flows that the DUT is to have seen before the first trial.
    flows: u64,
    /// How far connections are to be, where the DUT keeps states.
    states: Option<States>,
    /// The program that makes the DUT forget its states.
    forget: Option<Program>,
    /// Whether its rules are pf's, and make no states.
    stateless_pf: bool,
    /// The event of the DUT in trials that want an event.
    event: Option<Event>,
    /// The connections that are opened, if some are.
    connections: Option<connecting::Kind>,
}

impl HostSlot {
    fn new(prepared: &Prepared, cell: usize, networks: &[String]) -> HostSlot {
        let (plan, lane) = (&prepared.plan, prepared.lane(cell));
        let (traffic, settings) = (
            &plan.kinds[plan.cells[cell].kind],
            &plan.lanes[lane].settings,
        );
        let flows = u64::from(traffic.flows);
        // A repeated SYN on a connection that has been answered: only Linux is known to let it pass.
        let linux = matches!(plan.experiment.system, System::Linux | System::Vyos);
        let states = settings.tracks().then_some(match settings.states {
            _ if traffic.connections.is_some() => States::New,
            States::Established if traffic.transport == Transport::Tcp && !linux => States::OneWay,
            states => states,
        });
        let all = states.is_some_and(|states| states != States::New);
        let connections = prepared
            .traffic(cell)
            .connections
            .map(|spec| connecting::Kind::new(spec, settings));
        HostSlot {
            lane,
            kind: prepared.kind_of[cell],
            flows: if connections.is_some() {
                CONNECTIONS_TO_LEARN
            } else if all {
                flows
            } else {
                flows.min(ENOUGH_TO_LEARN)
            },
            states,
            forget: settings
                .firewall()
                .and_then(|firewall| forget(firewall, networks.to_vec())),
            stateless_pf: settings
                .rules
                .as_ref()
                .is_some_and(|rules| rules.firewall.is_pf() && rules.kind == Kind::Stateless),
            event: settings.event.clone(),
            connections,
        }
    }
}

/// Hosts, ready for trials.
pub struct Hosts {
    tester: Tester,
    /// None where the tester's cards are connected to each other, or by a black box.
    device: Option<Device>,
    is_black_box: bool,
    slots: Vec<HostSlot>,
    /// The lane that the device is set up for.
    standing: Option<usize>,
    /// Kinds of traffic that the standing lane has seen; with the time of the flows in both directions, if it has seen both.
    learned: BTreeMap<usize, Option<Freshness>>,
    /// Lanes that cannot be measured, and why: their trials are marked, and the others go on.
    broken: BTreeMap<usize, String>,
    /// How often the device was lost, by the lane that it was set up for.
    losses: BTreeMap<usize, u32>,
    /// Whether the device has to be reached again before anything else.
    lost: bool,
}

impl Hosts {
    /// The hosts of a lab. Nothing is done before the first trial.
    ///
    /// # Errors
    /// A host lacks something, or another linerate uses it.
    pub fn new(site: &Site, prepared: &Prepared) -> Result<Hosts> {
        let plan = &prepared.plan;
        let networks = [End::In, End::Out]
            .into_iter()
            .flat_map(|end| site.lab.networks(end));
        let networks: Vec<String> = networks.map(String::from).collect();
        Ok(Hosts {
            device: site
                .lab
                .dut()
                .map(|dut| Device::new(site, dut, prepared))
                .transpose()?,
            is_black_box: site.lab.black_box.is_some(),
            tester: site.tester(prepared)?,
            slots: (0..plan.cells.len())
                .map(|cell| HostSlot::new(prepared, cell, &networks))
                .collect(),
            standing: None,
            learned: BTreeMap::new(),
            broken: BTreeMap::new(),
            losses: BTreeMap::new(),
            lost: false,
        })
    }

    /// Brings the device to a lane.
    fn bring(&mut self, lane: usize) -> Result<()> {
        let Some(device) = &mut self.device else {
            return Ok(());
        };
        if self.lost {
            let back = device.dut.recover(Some(&STOP));
            back.map_err(|error| anyhow!("{error}; nothing can be measured without it"))?;
            self.lost = false;
        }
        let steps = &device.lanes[lane];
        let size = |step: &Step| match &step.apply.input {
            Input::Rules(set, _) => set.size(),
            _ => 0,
        };
        let rules: u64 = steps.steps.iter().map(size).sum();
        if rules >= MANY_RULES && self.standing != Some(lane) {
            tell(format!(
                "{} loads {} rules and entries of tables",
                device.dut.name(),
                grouped(rules)
            ));
        }
        let done = match (self.standing == Some(lane), device.reboot) {
            (true, Reboot::EachTrial) => device.dut.reboot_as_it_is(steps, Some(&STOP)),
            (true, _) => return Ok(()),
            (false, reboot) => device
                .dut
                .set_up(steps, reboot == Reboot::EachTrial, Some(&STOP)),
        };
        self.standing = None;
        self.learned.clear();
        done?;
        self.standing = Some(lane);
        Ok(())
    }

    /// Records the fault of a lane, if other lanes, or this one later, can still be measured.
    fn mark(&mut self, lane: usize, error: RemoteError) -> Result<String> {
        let why = error.to_string();
        let left = error.fault.left();
        if left == Left::Nothing {
            return Err(error.into());
        }
        self.standing = None;
        self.lost |= left != Left::Others;
        let losses = self.losses.entry(lane).or_default();
        *losses += 1;
        if left == Left::AllOnceBack && *losses < MOST_LOSSES {
            tell(format!(
                "{why}; this trial is marked as failed, and the campaign continues"
            ));
            return Ok(why);
        }
        tell(format!(
            "{why}; its trials are marked as failed, and the campaign continues with the others"
        ));
        self.broken.insert(lane, why.clone());
        let lanes = self.device.as_ref().map_or(0, |device| device.lanes.len());
        if (0..lanes).all(|lane| self.broken.contains_key(&lane)) {
            bail!("all variants of the plan failed; the last: {why}");
        }
        Ok(why)
    }

    /// Whether the loss of the device caused an error elsewhere: its end of a cable goes down with it.
    fn lost_by(&mut self, error: anyhow::Error) -> Result<RemoteError> {
        if self.lost {
            return Err(error);
        }
        match look(&mut self.device) {
            Err(lost) if lost.fault.left() == Left::AllOnceBack => Ok(lost),
            _ => Err(error),
        }
    }

    /// Shows the device the flows of a slot, unless it has seen them and cannot have forgotten them. Returns the fault if none came
    /// through.
    fn learn(&mut self, slot: &HostSlot, timing: Timing) -> Result<Option<&'static str>> {
        let length = Duration::from_nanos(timing.load_ns());
        let stale = |fresh: &Option<Freshness>| {
            fresh
                .as_ref()
                .is_some_and(|fresh| fresh.expires_within(Instant::now(), length))
        };
        if self
            .learned
            .get(&slot.kind)
            .is_some_and(|fresh| !stale(fresh))
        {
            return Ok(None);
        }
        let began = Instant::now();
        let answer = slot.states == Some(States::Established);
        let fresh = match self.tester.learn(slot.kind, slot.flows, answer)? {
            Learned::Nothing => return Ok(Some(NOTHING_THROUGH)),
            Learned::Unsent => return Ok(Some(NOTHING_SENT)),
            Learned::OneWay => None,
            Learned::Answered => Some(Freshness::new(began, slot.flows, Timeouts::SHORTEST)),
        };
        self.learned.insert(slot.kind, fresh);
        Ok(None)
    }

    /// Makes the device forget its states, if trials are to open connections. Returns why it does not.
    fn forget_states(&self, slot: &HostSlot) -> Option<String> {
        let (Some(States::New), Some(device), Some(command)) =
            (slot.states, &self.device, &slot.forget)
        else {
            return None;
        };
        let why = device
            .dut
            .observed()
            .output(&line(&command.argv, false))
            .err()?;
        Some(format!(
            "the DUT does not forget its states ({}): {why}",
            command.shown()
        ))
    }

    fn measure(&mut self, request: &Request) -> Result<TrialOutcome> {
        let slot = self.slots[request.slot].clone();
        self.bring(slot.lane)?;
        if let Some(fault) = self.learn(&slot, request.timing)? {
            // If the device is lost, that is the reason.
            look(&mut self.device)?;
            return Ok(TrialOutcome::failed(fault.into()));
        }
        if let Some(why) = self.forget_states(&slot) {
            return Ok(TrialOutcome::failed(why));
        }
        let mut collectors = self
            .device
            .as_ref()
            .map(|device| device.before_trial(request));
        let before = look(&mut self.device)?;
        let began = Instant::now();
        let (result, event_run) = self.run(&slot, request)?;
        let event = event_run.as_ref().and(slot.event.as_ref());
        if let Some(device) = &mut self.device
            && event.is_some_and(Event::boots)
        {
            // The DUT's settings are gone: it is set up again for the next trial.
            self.standing = None;
            device.dut.finish_reboot()?;
        }
        let after = look(&mut self.device)?;
        let mut accounts = self.accounts(&result, event, before.as_ref().zip(after.as_ref()));
        let from = result.outcome.began_ns;
        collectors
            .iter_mut()
            .for_each(|all| all.load([from, from + request.timing.load_ns()]));
        // The device answers again: its counters have been read.
        let found = collectors.map(Collectors::after).unwrap_or_default();
        let skew_ns = (result.late.len() > 1).then(|| result.skew_ns());
        let TrialResult {
            mut outcome,
            sent,
            received,
            clocks,
            stamped,
            cpus,
            waited_ns,
            ends,
            ..
        } = result;
        if slot.stateless_pf && event.is_none() {
            let passed = received.iter().map(PortCounters::unique).sum();
            outcome
                .faults
                .extend(counters::past_the_rules(&accounts[0].dut, passed));
        }
        let fresh = self.learned.get_mut(&slot.kind).and_then(Option::as_mut);
        // Each flow is in one of these frames, which open or renew connections.
        let states = slot
            .states
            .map(|wanted| after_load(wanted, fresh, began, sent[0].frames));
        let states = states.map(|states| Connections {
            states,
            tracked: None,
            limit: None,
            unanswered: None,
        });
        let (opened, states) = self.opened(&slot, ends, &mut accounts, request.timing, states);
        let mut outcome = TrialOutcome::new(outcome, [sent, received], accounts, found);
        outcome.evidence.connections = states;
        if let Some(opened) = opened {
            opened.enter(&mut outcome);
        }
        (outcome.record.skew_ns, outcome.record.clocks) = (skew_ns, clocks);
        (outcome.record.stamped, outcome.record.tester_cpus) = (stamped, cpus);
        outcome.record.waited_ns = waited_ns;
        outcome.add_event(slot.event.as_ref(), event_run);
        Ok(outcome)
    }

    /// Where the frames of a trial went, by direction.
    fn accounts(
        &self,
        result: &TrialResult,
        event: Option<&Event>,
        seen: Option<(&Seen, &Seen)>,
    ) -> Vec<Account> {
        let frames = match &result.ends {
            Some(ends) => ends.frames.clone(),
            None => [result.sent.clone(), result.received.clone()],
        };
        let silent = event.is_some_and(|event| event.boots() || event.what == EventKind::LinkDown);
        if silent {
            accounts::of_silence(&frames, "DUT: down, or its link", Cause::Dropped)
        } else if self.is_black_box {
            accounts::of_silence(&frames, accounts::IN_BLACK_BOX, Cause::Unexplained)
        } else {
            let ends = self.device.as_ref().map(|device| &device.ends);
            accounts::of_counters(ends, &frames, seen)
        }
    }

    /// The connections of a trial, if it was one of connections, and those that the DUT tracks.
    fn opened(
        &self,
        slot: &HostSlot,
        ends: Option<EndCounts>,
        accounts: &mut Vec<Account>,
        timing: Timing,
        states: Option<Connections>,
    ) -> (Option<Opened>, Option<Connections>) {
        let Some((ends, kind)) = ends.zip(slot.connections) else {
            return (None, states);
        };
        let opened = Opened::new(ends, &kind.spec, accounts, timing.load_ns());
        let linux = |device: &&Device| device.dut.kernel() == Kernel::Linux;
        let Some(host) = self.device.as_ref().filter(linux).map(|d| d.dut.observed()) else {
            return (Some(opened), states);
        };
        if kind.usual && opened.all_closed() && timing.load_ns() < SHORTEST_TIMEOUT_NS {
            let tracked = opened.tracked(&host, &kind.spec);
            accounts[0].second_counts.extend(tracked);
        }
        (Some(opened), states.map(|states| table(&host, states)))
    }

    /// Runs the load; an event happens to the device meanwhile if the trial wants one.
    fn run(
        &mut self,
        slot: &HostSlot,
        request: &Request,
    ) -> Result<(TrialResult, Option<EventRun>)> {
        let Shape::Event { after_ns } = request.shape else {
            return Ok((self.tester.trial(slot.kind, request, &|_| {})?, None));
        };
        let (Some(Device { dut, events, .. }), Some(event)) = (&mut self.device, &slot.event)
        else {
            bail!("the trial needs an event, and its variant has no [event]");
        };
        let steps = events[slot.lane]
            .as_ref()
            .map_err(|why| anyhow!("{}: {why}", event.what.name()))?;
        let (what, tester) = (event.what, &mut self.tester);
        let after_ns = request.timing.warm_up_ns + after_ns;
        let act =
            |over: &dyn Fn() -> bool| dut.carry_out_event(what, steps, event.lasts_ns(), over);
        let (result, event_run) = under_load(after_ns, act, |began| {
            tester.trial(slot.kind, request, began)
        });
        let event_run = event_run
            .map(|((done, ran), times)| (done.map_err(|error| error.to_string()), times, ran));
        Ok((result?, event_run))
    }

    fn is_device(&self, host: &str) -> bool {
        self.device
            .as_ref()
            .is_some_and(|device| device.dut.name() == host)
    }

    /// How often the device was rebooted.
    fn reboots(&self) -> u32 {
        self.device
            .as_ref()
            .map_or(0, |device| device.dut.reboots())
    }
}

impl Testbed for Hosts {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        let (lane, before) = (self.slots[request.slot].lane, self.reboots());
        if let Some(why) = self.broken.get(&lane) {
            return Ok(TrialOutcome::failed(why.clone()));
        }
        let mut shown = match self.measure(request) {
            Err(error) if !interrupted() => {
                let lost = match error.downcast::<RemoteError>() {
                    Ok(lost) if self.is_device(&lost.host) => lost,
                    Ok(other) => self.lost_by(other.into())?,
                    Err(other) => self.lost_by(other)?,
                };
                TrialOutcome::failed(self.mark(lane, lost)?)
            }
            other => other?,
        };
        shown.record.reboots = self.reboots() - before;
        Ok(shown)
    }

    fn dut(&self, slot: usize) -> Option<usize> {
        Some(self.slots[slot].lane)
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        (LabKind::Hosts, self.tester.names.clone(), BATCH)
    }

    fn notes(&self) -> Vec<String> {
        self.tester.notes.clone()
    }

    /// Puts the device back, and lets the hosts go.
    fn take_down(self: Box<Self>) -> (Vec<String>, u32) {
        let before = self.reboots();
        let Hosts { tester, device, .. } = *self;
        let mut failed = tester.take_down();
        let Some(mut device) = device else {
            return (failed, 0);
        };
        match device.dut.put_back() {
            Err(error) => failed.push(error.to_string()),
            Ok(_) if device.dut.owes_boot() => failed.push(format!(
                "{}: the restored settings take effect only at its next boot: reboot it",
                device.dut.name()
            )),
            Ok(undone) => failed.extend(
                undone
                    .waits(RESTORE)
                    .map(|said| format!("{}: {said}", device.dut.name())),
            ),
        }
        (failed, device.dut.reboots() - before)
    }
}

/// The command that tries again.
pub const RESTORE: &str = "linerate lab restore";

fn look(device: &mut Option<Device>) -> Result<Option<Seen>, RemoteError> {
    device.as_mut().map(|device| device.dut.look()).transpose()
}
