//! Connections that are kept open at the same time: all are opened, then each carries a request and its answer, then all are closed.

use super::EventRun;
use super::prepare::Prepared;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use anyhow::Result;
use linerate_linux::lab::Lane;
use linerate_linux::lab::events::Event;
use linerate_linux::net::conntrack;
use linerate_linux::ports::connections::{Closed, ConnectionEnds, Next, Opener, Wanted};
use linerate_linux::ports::{Port, monotonic_ns};
use linerate_linux::trial::{self, LOOK, Outcome, sleep_until};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Kept;
use linerate_measure::trial::{Moment, Sample, Timing};
use linerate_plan::rules::Kind;
use linerate_plan::settings::Dut;
use linerate_wire::Load;
use linerate_wire::units::grouped;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A load ends by itself after this time, and this long for each connection: ten times as long as through 10,000 rules.
const LONGEST: Duration = Duration::from_secs(10);
/// See [`LONGEST`].
const LONGEST_OF_EACH: Duration = Duration::from_micros(500);
/// How often is looked for the end of a load.
const POLL: Duration = Duration::from_millis(1);
/// Where frames are missing after a load, nothing may have arrived for so long.
const QUIET: Duration = Duration::from_millis(100);
/// Ports that Linux gives out behind one address by masquerading (1024 to 65535), to each server.
const MASQUERADE_PORTS: u64 = 64_512;

/// How connections were kept open, and what happened to the DUT meanwhile.
pub(super) type Held = (Kept, Option<EventRun>);

/// Opens `open` connections, keeps them open for the time of the trial's window and that of the lane's event, sends a request on each,
/// and closes them. Returns the samples of the opening, or of the closing where that is asked for, the connections that were attempted, and the event.
pub(super) fn run(
    ends: &mut ConnectionEnds,
    wanted: Wanted,
    open: u32,
    (timing, load): (Timing, Load),
    lane: &Lane,
    mut at: impl FnMut(Moment, u64),
) -> Result<(Outcome, PortCounters, Option<Held>)> {
    let paced = load
        .rate
        .map_or(0.0, |rate| f64::from(open) / rate.max(1.0));
    let longest = LONGEST + LONGEST_OF_EACH * open + Duration::from_secs_f64(paced);
    let load = Load {
        frames: Some(open.into()),
        duration_ns: longest.as_nanos() as u64,
        ..load
    };
    let slab = conntrack::slab_bytes();
    let (mut opener, closed) = ends.ports(wanted.clone());
    let mut outcome = Outcome::default();
    carry_out(&mut opener, &load, &closed, &mut outcome, |began_ns| {
        at(Moment::Began, began_ns)
    })?;
    let (attempted, open_ns) = (opener.counters(), opener.busy_ns());
    drop(opener);
    let opened = ends.open();
    outcome.samples = samples(open_ns, attempted.frames, opened);
    let grown = || Some(conntrack::slab_bytes()?.saturating_sub(slab?));
    let dut = lane.dut.as_ref().map(|dut| &dut.namespace);
    let (entries, slab_bytes) = (dut.and_then(conntrack::count), dut.and_then(|_| grown()));
    sleep_until(monotonic_ns() + timing.run_ns, LOOK, interrupted);
    let event = happen(lane, outcome.began_ns)?;
    let (mut times, mut closing) = ([0; 2], PortCounters::default());
    for (next, took_ns) in [Next::Request, Next::Fin].into_iter().zip(&mut times) {
        if interrupted() || opened == 0 {
            break;
        }
        let (mut opener, closed) = ends.resume(wanted.clone(), next);
        carry_out(&mut opener, &load, &closed, &mut outcome, |_| {})?;
        *took_ns = opener.busy_ns();
        closing = opener.counters();
    }
    at(Moment::Ended, outcome.began_ns);
    let [ask_ns, close_ns] = times;
    if wanted.connections.close.is_some() && close_ns > 0 {
        let (asked, closed) = (closing.frames, ends.closed().frames());
        outcome.samples = samples(close_ns, asked, closed);
    }
    let kept = Kept {
        asked: open.into(),
        open_ns,
        ask_ns,
        close_ns,
        entries,
        slab_bytes,
    };
    Ok((outcome, attempted, Some((kept, event))))
}

/// The samples of one phase: its begin and its end.
fn samples(took_ns: u64, sent: u64, received: u64) -> Vec<Sample> {
    [(0, 0, 0), (took_ns, sent, received)]
        .map(|(t_ns, sent, received)| Sample {
            t_ns,
            sent,
            received,
        })
        .to_vec()
}

/// Carries out the event of a lane's variant, if it has one.
fn happen(lane: &Lane, began_ns: u64) -> Result<Option<EventRun>> {
    if lane.dut.is_none() || lane.setup.settings.event.is_none() || interrupted() {
        return Ok(None);
    }
    let event = Event::of(lane)?;
    let (ran, from_ns) = (event.words(), monotonic_ns());
    let done = event.carry_out(interrupted).map_err(|e| e.to_string());
    let times = [from_ns, monotonic_ns()].map(|ns| ns.saturating_sub(began_ns));
    Ok(Some((done, times, ran)))
}

/// One load, until it is over and nothing arrives any more.
fn carry_out(
    opener: &mut Opener<&ConnectionEnds>,
    load: &Load,
    closed: &Closed<'_>,
    outcome: &mut Outcome,
    mut began: impl FnMut(u64),
) -> Result<()> {
    opener.start(load)?;
    match trial::first_frame(opener, &STOP)? {
        Ok(began_ns) if outcome.began_ns == 0 => {
            outcome.began_ns = began_ns;
            began(began_ns);
        }
        Ok(_) => {}
        Err(fault) => outcome.faults.push(fault),
    }
    while !opener.finished() && !interrupted() {
        std::thread::sleep(POLL);
    }
    opener.stop()?;
    let (mut seen, mut since) = (closed.frames(), Instant::now());
    while seen < opener.frames() && since.elapsed() < QUIET && !interrupted() {
        std::thread::sleep(POLL);
        let now = closed.frames();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// Which tables of the DUTs hold fewer connections than are to be open, with the arithmetic.
pub(super) fn notes(prepared: &Prepared) -> Vec<String> {
    let mut notes = BTreeSet::new();
    for cell in prepared.measured() {
        let spec = prepared.traffic(cell).connections;
        let Some((spec, open)) = spec.and_then(|spec| Some((spec, u64::from(spec.open?)))) else {
            continue;
        };
        let (variant, lane) = (&prepared.plan.cells[cell].variant, prepared.lane(cell));
        let settings = &prepared.plan.lanes[lane].settings;
        let kind = settings.rules.as_ref().map(|rules| rules.kind);
        let own = settings
            .rule_file
            .as_ref()
            .is_some_and(|file| file.tracks());
        let tracks = own || kind.is_some_and(|kind| kind != Kind::Stateless);
        if settings.dut == Dut::TesterBaseline || !tracks {
            continue;
        }
        let asked = grouped(open);
        let limit = settings.sysctls.iter().find(|(name, _)| {
            ["net.netfilter.nf_conntrack_max", "net.nf_conntrack_max"].contains(&name.as_str())
        });
        let states = settings.rules.as_ref().and_then(|rules| rules.states);
        let room = match limit.and_then(|(_, value)| value.to_string().parse().ok()) {
            Some(0) => u64::MAX,
            Some(room) => room,
            None => conntrack::room().max(states.map_or(0, u64::from)),
        };
        if room < open {
            notes.insert(format!(
                "{variant}: {asked} connections are to be open at the same time, and the DUT's table holds {} (nf_conntrack_max): {} or more will be refused, by the table or by a rule",
                grouped(room),
                grouped(open - room)
            ));
        }
        let ports = MASQUERADE_PORTS * u64::from(spec.servers);
        if kind == Some(Kind::Nat) && ports < open {
            notes.insert(format!(
                "{variant}: {asked} connections are to be open at the same time, and one address has {} ports for each of {} servers: at most {} get a port",
                grouped(MASQUERADE_PORTS),
                spec.servers,
                grouped(ports)
            ));
        }
    }
    notes.into_iter().collect()
}
