//! The embedded lab with connections: both ends are programs of the tester, and every connection is accounted for, by its stages.
//!
//! A frame of the state machine, the audit and the record is a connection here: sent when it was attempted, received when it closed. Its
//! frames are counted beside, in both directions, as those of any other load.

use super::collectors::Scene;
use super::connections::tracked;
use super::embedded::{GroupLab, SequentialLabs, lab_spec, scene, settle, targets, turn};
use super::keeping::{self, Held};
use super::nginx::Server;
use super::prepare::{Prepared, TrafficKind, distinct};
use super::{Request, TrialOutcome};
use crate::interrupt::INTERRUPTED as STOP;
use anyhow::{Context, Result};
use linerate_linux::lab::http::SERVER;
use linerate_linux::lab::ledger::{self, Account};
use linerate_linux::lab::{EmbeddedLab, Lane, support};
use linerate_linux::net::{conntrack, sysctl};
use linerate_linux::ports::Port;
use linerate_linux::ports::connections::{ConnectionEnds, Wanted};
use linerate_linux::trial::{self, Outcome};
use linerate_measure::audit::{Cause, Loss, SecondCount, Side};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{ByNginx, ConnectionTrial, Connections, Kept, Mode, States};
use linerate_measure::trial::{Moment, Shape, Timing};
use linerate_plan::rules::own;
use linerate_plan::settings::Dut;
use linerate_wire::{ConnectionSpec, Load, Traffic};
use std::net::IpAddr;
use std::rc::Rc;

/// First frames that are handed over at once: more of them overflow the rings of a veth, fewer cost more each.
const BATCH: u32 = 64;
/// Time in which connections are tried through a DUT, to see whether it changes sequence numbers.
const TRY_OUT_NS: u64 = 20_000_000;
/// Linux remembers connections that were reset for 10 s, and others longer: all are still there after shorter loads.
pub(super) const SHORTEST_TIMEOUT_NS: u64 = 9_000_000_000;

/// A lab with both ends of connections.
pub struct ConnectionLab {
    prepared: Rc<Prepared>,
    batch: u32,
    /// The plan's number of each lane.
    lanes: Vec<usize>,
    /// Before the lab: dropped in this order.
    ends: ConnectionEnds,
    lab: EmbeddedLab,
}

/// The labs of a plan, built when they are needed. `batch`: that of the campaign that is resumed.
pub fn connection_labs(prepared: &Prepared, batch: Option<u32>) -> SequentialLabs<ConnectionLab> {
    SequentialLabs::with_batch(prepared, batch, BATCH)
}

impl GroupLab for ConnectionLab {
    fn stand(prepared: &Rc<Prepared>, group: usize, batch: u32) -> Result<ConnectionLab> {
        let mut spec = lab_spec(prepared, group);
        // Frames come back, too.
        spec.both_ways = true;
        let (lanes, setups) = prepared.setups(group)?;
        let mut lab = EmbeddedLab::build(spec, &setups).context("building the embedded lab")?;
        if prepared.mode == Mode::Threaded {
            lab.lanes.iter_mut().for_each(Lane::share_inside);
        }
        let served = |cell| {
            let spec = prepared.traffic(cell).connections;
            spec.is_some_and(|spec| spec.served_by.is_nginx())
        };
        // nginx's kernel chooses its own numbers.
        let served = prepared.in_group(group).any(served);
        let mut ends = both_ends(&lab, served)?;
        if prepared.mode == Mode::Threaded && prepared.roles.receiver != prepared.roles.dut {
            lab.thread_receivers(&prepared.roles.receiver)
                .context("giving the receiver its CPU")?;
        }
        if !served && change_numbers(prepared, group, (&lab, &lanes), &mut ends)? {
            // Off their interfaces before others are put there.
            drop(ends);
            ends = both_ends(&lab, true)?;
        }
        Ok(ConnectionLab {
            prepared: Rc::clone(prepared),
            batch,
            lanes,
            ends,
            lab,
        })
    }

    fn lab(&self) -> &EmbeddedLab {
        &self.lab
    }

    fn notes(prepared: &Prepared) -> Vec<String> {
        keeping::notes(prepared)
    }

    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        if request.shape != Shape::Constant {
            bail_usage!("connections are opened at a constant rate only");
        }
        let (prepared, batch) = (&*self.prepared, self.batch);
        let Request {
            slot: cell, timing, ..
        } = *request;
        let number = self.number(cell)?;
        let lane = &self.lab.lanes[number];
        if let Some(fault) = &lane.fault {
            return Ok(TrialOutcome::failed(fault.clone()));
        }
        let kind = &prepared.kinds[prepared.kind_of[cell]];
        let connections = kind.traffic.connections.context("a cell of connections")?;
        let scene = Scene {
            of_programs: connections.served_by.is_nginx(),
            ..scene(prepared, lane, request)
        };
        let asked = scene.ask();
        let turn = turn(prepared);
        if let Some(dut) = &lane.dut {
            conntrack::flush(&dut.namespace).context("forgetting the DUT's connections")?;
        }
        let wanted = wanted(prepared, kind, connections, (number, lane));
        let server = Server::of(prepared, kind, &connections, (&self.lab, lane))?;
        let mut collectors = scene.before(asked, &prepared.plan.collect);
        let counted = lane.rule_counts();
        lane.dut.iter().for_each(|dut| dut.begin_load());
        let before = ledger::snapshot(lane)?;
        let load = (timing, request.load(batch));
        let during = |moment, _| collectors.during(moment);
        let at = (lane, server.as_ref());
        let carried = carry_out(&mut self.ends, wanted, load, at, during)?;
        let (outcome, by_nginx) = (carried.outcome, carried.counted);
        let (kept, event_run) = carried.held.unzip();
        let event_run = event_run.flatten();
        if event_run.is_some() {
            lane.dut.iter().for_each(|dut| dut.count_from_0());
        }
        let read = || {
            let frames = self.ends.frames();
            server
                .iter()
                .fold(frames, |frames, server| server.join(frames))
        };
        let frames = settle(lane, &before, false, read)?;
        server.into_iter().for_each(Server::end);
        let received = self.ends.closed().counters();
        let waited_ns = turn.waited_ns;
        drop(turn);
        let rules = counted
            .zip(lane.rule_counts())
            .map_or(Vec::new(), |(b, a)| own::grown(&b, &a));
        let found = collectors.after();
        let Counted {
            opened,
            states,
            account,
        } = self.count(lane, &connections, (kept, by_nginx), frames, timing)?;
        let (load_ns, mode) = (timing.load_ns(), prepared.mode);
        let mut faults = faults(lane, &opened, &connections, states, (load_ns, mode));
        let all = self.ends.are_numbers_used_up(kind.cpus.len(), &connections);
        faults.extend(used_up(all && connections.open.is_none(), &opened));
        let counters = [vec![carried.attempted], vec![received]];
        let mut outcome = TrialOutcome::new(outcome, counters, vec![account], found);
        outcome.evidence.faults.extend(faults);
        outcome.evidence.connections = states;
        outcome.evidence.closed_loop = prepared.mode == Mode::Inline && support::leaves_softirqs();
        outcome.evidence.passes_first_frames = opened.reached.first() > Some(&0);
        (outcome.record.opened, outcome.record.rules) = (Some(Box::new(opened)), rules);
        outcome.record.waited_ns = waited_ns;
        outcome.add_event(lane.setup.settings.event.as_ref(), event_run);
        Ok(outcome)
    }
}

impl ConnectionLab {
    /// The connections of a trial, when its frames are counted.
    fn count(
        &self,
        lane: &Lane,
        connections: &ConnectionSpec,
        (kept, by_nginx): (Option<Kept>, Option<ByNginx>),
        ([sent, came], mut accounts): ([Vec<PortCounters>; 2], Vec<Account>),
        timing: Timing,
    ) -> Result<Counted> {
        let mut opened = self.ends.account(*connections);
        opened.kept = kept;
        opened.nginx = by_nginx
            .zip(opened.nginx)
            .map(|(by_nginx, read)| by_nginx.with(read));
        let answered = end_at_dut(&mut accounts, &opened);
        opened.lost = accounts
            .iter()
            .flat_map(|account| account.losses.clone())
            .collect();
        let dut = lane.dut.as_ref().map(|dut| &dut.namespace);
        let states = dut.map(|dut| tracked(dut, States::New)).transpose()?;
        let states = states.flatten().map(|states| Connections {
            limit: limit(lane),
            ..states
        });
        let entries = states.and_then(|states| states.tracked);
        let mut account = account(&opened, connections, accounts, [&sent, &came], answered);
        let table = by_table(lane, &opened, entries, timing);
        account.second_counts.extend(table);
        let refused = refusals(lane, &opened, &account);
        account.second_counts.extend(refused);
        account.second_counts.extend(opened.counts_of_nginx());
        Ok(Counted {
            opened,
            states,
            account,
        })
    }

    /// The lab's number of a cell's lane.
    fn number(&self, cell: usize) -> Result<usize> {
        let lane = self.prepared.lane(cell);
        let mut lanes = self.lanes.iter();
        let number = lanes.position(|known| *known == lane);
        number.context("a measured cell has its lane")
    }
}

/// Both ends of the connections of a lab. `table`: whether they remember the numbers of each connection.
fn both_ends(lab: &EmbeddedLab, table: bool) -> Result<ConnectionEnds> {
    let servers: Vec<u32> = lab.lanes.iter().map(|lane| lane.receiver.index).collect();
    let (generator, receiver) = (&lab.generator.namespace, &lab.receiver.namespace);
    ConnectionEnds::new(generator, &targets(lab), receiver, &servers, table)
        .context("setting up both ends of the connections")
}

/// Whether a DUT of a group changes sequence numbers: some connections are tried through each that may. `lanes`: the plan's numbers of the
/// lab's lanes.
fn change_numbers(
    prepared: &Prepared,
    group: usize,
    (lab, lanes): (&EmbeddedLab, &[usize]),
    ends: &mut ConnectionEnds,
) -> Result<bool> {
    for (number, lane) in lab.lanes.iter().enumerate() {
        let cell = prepared
            .in_group(group)
            .find(|cell| prepared.lane(*cell) == lanes[number]);
        let cell = cell.context("a lane has its cells")?;
        let kind = &prepared.kinds[prepared.kind_of[cell]];
        let spec = kind.traffic.connections.context("a cell of connections")?;
        let settings = &lane.setup.settings;
        // The rule sets of linerate and the kernel's forwarding do not.
        let may = settings.rule_file.is_some()
            || !settings.commands.is_empty()
            || settings.dut.changes_numbers();
        if !may || lane.fault.is_some() || !spec.exchange.is_tcp() || spec.open.is_some() {
            continue;
        }
        let spec = ConnectionSpec {
            flood: 0,
            illegal: 0,
            ..spec
        };
        let timing = Timing {
            warm_up_ns: 0,
            ..Timing::slice(TRY_OUT_NS)
        };
        let load = Load {
            frames: Some(BATCH.into()),
            batch: BATCH,
            ..Load::lasting(timing.load())
        };
        let _turn = turn(prepared);
        let wanted = wanted(prepared, kind, spec, (number, lane));
        carry_out(ends, wanted, (timing, load), (lane, None), |_, _| {})?;
        let opened = ends.account(spec);
        if opened.changed > 0 && opened.closed() == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes the SYNs that the DUT answered and did not send on out of the losses. Returns their number.
fn end_at_dut(accounts: &mut [Account], opened: &ConnectionTrial) -> u64 {
    let of_flood = opened.flood.map_or(0, |flood| flood.answered);
    let of_connections = match (opened.proxied > 0, &opened.arrived[..]) {
        (true, [at_server, at_client, ..]) => at_client.saturating_sub(*at_server),
        _ => 0,
    };
    let answered = of_flood + of_connections;
    let losses = accounts.first_mut().map(|account| &mut account.losses);
    let mut left = answered;
    for loss in losses.into_iter().flatten() {
        if loss.side == Side::Dut && loss.cause != Cause::QueueFull {
            let ended = loss.frames.min(left);
            loss.frames -= ended;
            left -= ended;
        }
    }
    accounts
        .iter_mut()
        .for_each(|account| account.losses.retain(|loss| loss.frames > 0));
    answered - left
}

/// The request to both ends; `lane` with its number in the lab.
fn wanted(
    prepared: &Prepared,
    kind: &TrafficKind,
    connections: ConnectionSpec,
    lane: (usize, &Lane),
) -> Wanted {
    let [client, server] = first_addresses(&kind.traffic);
    let nginx = connections.served_by.is_nginx();
    Wanted {
        connections,
        first: [client, if nginx { SERVER } else { server }],
        cpus: kind.cpus.clone(),
        target: lane.0,
        alone: lane.1.setup.settings.dut == Dut::TesterBaseline,
        closed_loop: prepared.mode == Mode::Inline,
        hosts: false,
    }
}

/// The addresses of the first client and of the first server.
pub(super) fn first_addresses(traffic: &Traffic) -> [IpAddr; 2] {
    let first = traffic.flows.flow(0);
    [first.src, first.dst]
}

/// See [`ConnectionLab::count`].
struct Counted {
    opened: ConnectionTrial,
    states: Option<Connections>,
    account: Account,
}

/// The load of a trial, when it is over.
#[derive(Default)]
struct Carried {
    outcome: Outcome,
    /// The connections that were attempted.
    attempted: PortCounters,
    /// How they were kept open, if they were.
    held: Option<Held>,
    /// nginx's counts, if it answered them and did not fail.
    counted: Option<ByNginx>,
}

/// Opens the connections of a trial.
fn carry_out(
    ends: &mut ConnectionEnds,
    wanted: Wanted,
    (timing, load): (Timing, Load),
    (lane, server): (&Lane, Option<&Server<'_>>),
    during: impl FnMut(Moment, u64),
) -> Result<Carried> {
    let spec = wanted.connections;
    if let Some(open) = spec.open {
        let (outcome, attempted, held) =
            keeping::run(ends, wanted, open, (timing, load), lane, during)?;
        return Ok(Carried {
            outcome,
            attempted,
            held,
            counted: None,
        });
    }
    let open = |ends: &mut ConnectionEnds| {
        let (mut opener, mut closed) = ends.ports(wanted);
        let outcome = trial::run(timing, load, &mut opener, &mut closed, &STOP, during)?;
        Ok(Carried {
            outcome,
            attempted: opener.counters(),
            ..Carried::default()
        })
    };
    let Some(server) = server else {
        return open(ends);
    };
    let arrived = |ends: &ConnectionEnds| ends.account(spec).asked();
    let (ran, counted) = server.beside(&timing, ends, open, arrived)?;
    let mut carried = ran.load.unwrap_or_default();
    carried.counted = ran.faults.is_empty().then_some(counted);
    carried.outcome.faults.splice(0..0, ran.faults);
    Ok(carried)
}

/// The account of connections: those that failed, by the frame that did not arrive, and the counts of their frames in both directions.
/// `answered`: SYNs that the DUT answered and did not send on.
pub(super) fn account(
    opened: &ConnectionTrial,
    spec: &ConnectionSpec,
    frames: Vec<Account>,
    [sent, came]: [&[PortCounters]; 2],
    answered: u64,
) -> Account {
    let by_tester = |loss: &Loss| loss.side == Side::Tester;
    let side = if opened.lost.iter().all(by_tester) && !opened.lost.is_empty() {
        Side::Tester
    } else {
        Side::Dut
    };
    // Frames that found a queue full were no work for the DUT.
    let full = !opened.lost.is_empty()
        && opened
            .lost
            .iter()
            .all(|loss| loss.cause == Cause::QueueFull);
    let cause = if full {
        Cause::QueueFull
    } else {
        Cause::Dropped
    };
    let failed = opened.failures(spec).map(|(stage, frames)| Loss {
        place: format!("{stage} did not arrive"),
        frames,
        side,
        cause,
    });
    let mut account = Account {
        losses: failed.collect(),
        ..Account::default()
    };
    let ways = ["to the server", "to the client"]
        .iter()
        .zip(frames)
        .zip(sent.iter().zip(came));
    for (((way, of_frames), (sent, received)), answered) in ways.zip([answered, 0]) {
        let lost: u64 = of_frames.losses.iter().map(|loss| loss.frames).sum();
        account
            .second_counts
            .extend(
                of_frames
                    .second_counts
                    .into_iter()
                    .map(|count| SecondCount {
                        place: format!("{}, frames {way}", count.place),
                        ..count
                    }),
            );
        account.second_counts.push(SecondCount {
            place: format!("frames {way}, received or lost at known places"),
            frames: received.frames + lost,
            expected: sent.frames - answered,
        });
        account.dut.extend(of_frames.dut);
    }
    account
}

/// Whether the rules of a lane are linerate's own, so that its table has the connections of the load and no others, for the usual time.
fn has_usual_table(lane: &Lane) -> bool {
    let settings = &lane.setup.settings;
    let names = &mut settings.sysctls.keys();
    // Which connections are picked up in their midst changes neither their number nor their time.
    let usual =
        !names.any(|name| name.contains("netfilter") && !name.ends_with("nf_conntrack_tcp_loose"));
    settings.rules.is_some() && lane.setup.tracks && usual
}

/// Connections that a full table refused, by the DUT's own counters.
fn refusals(lane: &Lane, opened: &ConnectionTrial, account: &Account) -> Option<SecondCount> {
    let kept = opened.kept?;
    let full = limit(lane).is_some_and(|limit| kept.entries >= Some(limit));
    let counted = |name: &str| account.dut.get(name).copied().unwrap_or(0);
    (full && has_usual_table(lane)).then(|| SecondCount {
        place: "DUT: connections that its table refused".into(),
        frames: counted("Conntrack.drop") + counted("Conntrack.early_drop"),
        expected: opened.attempted.saturating_sub(opened.open().unwrap_or(0)),
    })
}

/// The entries of the DUT's table, as second counts. `entries`: those after the trial.
fn by_table(
    lane: &Lane,
    opened: &ConnectionTrial,
    entries: Option<u64>,
    timing: Timing,
) -> impl Iterator<Item = SecondCount> {
    let kept = opened.kept;
    let counted = match kept {
        Some(kept) => Some(kept.entries),
        None => (timing.load_ns() < SHORTEST_TIMEOUT_NS).then_some(entries),
    };
    let tracks = counted.and_then(|counted| agrees(lane, opened, counted));
    // Closed connections stay in the table until their timeouts.
    let left = kept
        .filter(|kept| kept.close_ns < SHORTEST_TIMEOUT_NS)
        .and_then(|_| agrees(lane, opened, entries))
        .map(|count| SecondCount {
            place: format!("{} after the last was closed", count.place),
            ..count
        });
    [tracks, left].into_iter().flatten()
}

/// The DUT's own count of connections, where all of them closed and none of its entries can have gone.
fn agrees(lane: &Lane, opened: &ConnectionTrial, entries: Option<u64>) -> Option<SecondCount> {
    let flood = opened.flood.unwrap_or_default();
    // An illegal SYN that rules drop is in no table.
    let strays = flood.arrived == flood.sent || flood.illegal > 0;
    let all = opened.closed() == opened.attempted && strays;
    (has_usual_table(lane) && all).then(|| SecondCount {
        place: "DUT: connections that it tracks".into(),
        frames: entries.unwrap_or(0),
        expected: opened.attempted + flood.arrived,
    })
}

/// How many connections the DUT's table holds.
pub(super) fn limit(lane: &Lane) -> Option<u64> {
    let dut = lane.dut.as_ref()?;
    let limit = sysctl::get(&dut.namespace, "net/netfilter/nf_conntrack_max").ok()?;
    // 0: no limit.
    limit.trim().parse().ok().filter(|limit| *limit > 0)
}

/// Reasons why a trial says nothing about the DUT's rate of connections.
fn faults(
    lane: &Lane,
    opened: &ConnectionTrial,
    spec: &ConnectionSpec,
    states: Option<Connections>,
    (load_ns, mode): (u64, Mode),
) -> Vec<String> {
    // How many the table holds is the question where they are kept open, and a flood may fill it.
    let states = states.filter(|_| spec.open.is_none() && !spec.has_strays());
    // The cause of waits for connections that failed, so it comes before them.
    let mut faults: Vec<String> = states.and_then(full).into_iter().collect();
    faults.extend(opened.faults(spec, load_ns, mode));
    if lane.dut.is_some() {
        faults.extend(lost_by_tester(opened, "a lower --rate, or other CPUs"));
    }
    faults
}

/// The fault of a trial that filled the DUT's table.
pub(super) fn full(states: Connections) -> Option<String> {
    let limit = states.full()?;
    let entries = states.tracked.unwrap_or(limit);
    Some(format!(
        "the DUT's table of connections was full: {entries} of {limit} (nf_conntrack_max), so the table decided and not the rate: use a shorter --duration, or a larger nf_conntrack_max"
    ))
}

/// The faults of a trial whose frames the tester lost, with the remedy.
pub(super) fn lost_by_tester(opened: &ConnectionTrial, remedy: &str) -> Vec<String> {
    let of_tester = opened.lost.iter().filter(|loss| loss.side == Side::Tester);
    let fault = |loss: &Loss| {
        let Loss { frames, place, .. } = loss;
        format!("the tester lost {frames} frames at {place}: use {remedy}")
    };
    of_tester.map(fault).collect()
}

/// The fault of a load that needed more numbers of connections than its CPUs have.
pub(super) fn used_up(used_up: bool, opened: &ConnectionTrial) -> Option<String> {
    used_up.then(|| {
        format!(
            "{} connections were attempted, and there are no more numbers for them: use a shorter --duration",
            opened.attempted
        )
    })
}

/// Whether a plan's cells are all of connections, or none is.
///
/// # Errors
/// Some are and some are not.
pub fn opens_connections(prepared: &Prepared) -> Result<bool> {
    let all = distinct(
        prepared
            .measured()
            .map(|cell| prepared.traffic(cell).connections.is_some()),
    );
    match all[..] {
        [one] => Ok(one),
        [] => Ok(false),
        _ => bail_usage!(
            "connections and single frames cannot be measured in one campaign: make two campaigns"
        ),
    }
}
