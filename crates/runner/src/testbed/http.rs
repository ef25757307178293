//! The embedded lab with HTTP: wrk makes requests at the inside of the DUT, and nginx answers them at its outside.
//!
//! A frame of the audit and the record is a request here: sent when wrk made it, received when it had its answer. nginx counts beside.

use super::collectors::Scene;
use super::connecting::{full, limit};
use super::connections::tracked;
use super::embedded::{GroupLab, SequentialLabs, lab_spec, scene, turn};
use super::nginx::{self, LATE};
use super::prepare::{Prepared, distinct};
use super::{Request, TrialOutcome};
use crate::interrupt::INTERRUPTED as STOP;
use anyhow::{Context, Result};
use linerate_hosts::tools::http::{WRK_SCRIPT, answered, wrk_arguments};
use linerate_linux::lab::http::{HttpEnds, SERVER};
use linerate_linux::lab::ledger::{self, Account};
use linerate_linux::lab::{EmbeddedLab, Lane};
use linerate_linux::net::conntrack;
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::Job;
use linerate_linux::trial::Outcome;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Connections, HttpOf, HttpTrial, States};
use linerate_measure::trial::{Moment, Sample, Shape, Timing};
use linerate_plan::settings::File;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::thread;

/// The file with what wrk prints at its end.
const SCRIPT: &str = "figures.lua";

/// A lab with the programs of HTTP at both ends.
pub struct HttpLab {
    prepared: Rc<Prepared>,
    /// The plan's number of each lane.
    lanes: Vec<usize>,
    lab: EmbeddedLab,
}

/// The labs of a plan, built when they are needed.
pub fn http_labs(prepared: &Prepared) -> SequentialLabs<HttpLab> {
    // Nothing is handed over in batches.
    SequentialLabs::with_batch(prepared, Some(1), 1)
}

/// Whether a plan's cells are all of HTTP, or none is.
///
/// # Errors
/// Some are and some are not.
pub fn makes_requests(prepared: &Prepared) -> Result<bool> {
    let of_cell = |cell: usize| prepared.slots[cell].http.is_some();
    match distinct(prepared.measured().map(of_cell))[..] {
        [one] => Ok(one),
        [] => Ok(false),
        _ => bail_usage!(
            "requests of HTTP and frames cannot be measured in one campaign: make two campaigns"
        ),
    }
}

impl GroupLab for HttpLab {
    fn stand(prepared: &Rc<Prepared>, group: usize, _batch: u32) -> Result<HttpLab> {
        let mut spec = lab_spec(prepared, group);
        // Answers come back.
        spec.both_ways = true;
        let (lanes, setups) = prepared.setups(group)?;
        let lab = EmbeddedLab::build(spec, &setups).context("building the embedded lab")?;
        Ok(HttpLab {
            prepared: Rc::clone(prepared),
            lanes,
            lab,
        })
    }

    fn lab(&self) -> &EmbeddedLab {
        &self.lab
    }

    fn programs() -> Option<[&'static str; 2]> {
        Some(["wrk", "nginx"])
    }

    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        if request.shape != Shape::Constant || request.rate.is_some() {
            bail_usage!("wrk makes requests as fast as they are answered");
        }
        let (prepared, cell) = (&*self.prepared, request.slot);
        let number = self
            .lanes
            .iter()
            .position(|lane| *lane == prepared.lane(cell));
        let lane = &self.lab.lanes[number.context("a measured cell has its lane")?];
        if let Some(fault) = &lane.fault {
            return Ok(TrialOutcome::failed(fault.clone()));
        }
        let of = prepared.slots[cell].http.context("a cell of HTTP")?;
        let cpus = &prepared.kinds[prepared.kind_of[cell]].cpus;
        let scene = Scene {
            of_programs: true,
            ..scene(prepared, lane, request)
        };
        let asked = scene.ask();
        let turn = turn(prepared);
        if let Some(dut) = &lane.dut {
            conntrack::flush(&dut.namespace).context("forgetting the DUT's connections")?;
        }
        let script = File {
            path: SCRIPT.into(),
            text: WRK_SCRIPT.into(),
        };
        let files = nginx::files(cpus.len(), &of.object.to_string(), of.object);
        let ends = HttpEnds::new(&self.lab, lane, [&[script], &files])
            .context("giving addresses to client and server")?;
        let mut collectors = scene.before(asked, &prepared.plan.collect);
        lane.dut.iter().for_each(|dut| dut.begin_load());
        let before = ledger::snapshot(lane)?;
        let Exchanged {
            http,
            began_ns,
            faults,
        } = exchange(&ends, &of, cpus, &request.timing, |moment| {
            collectors.during(moment);
        })?;
        let after = ledger::snapshot(lane)?;
        drop(ends);
        let waited_ns = turn.waited_ns;
        drop(turn);
        let found = collectors.after();
        let states = states(lane)?;
        let outcome = Outcome {
            samples: samples(&http),
            began_ns,
            faults: faults.into_iter().chain(states.and_then(full)).collect(),
            ..Outcome::default()
        };
        let ports = ports(&http);
        // Where a program failed, its counts say nothing more.
        let fault = http.fault(&of).filter(|_| outcome.faults.is_empty());
        let counts = match outcome.faults.is_empty() && fault.is_none() {
            true => http.second_counts(&of).into(),
            false => Vec::new(),
        };
        let account = Account {
            losses: http.losses().collect(),
            second_counts: counts,
            dut: of_dut(lane, [&before, &after]),
        };
        let mut outcome = TrialOutcome::new(outcome, ports, vec![account], found);
        outcome.evidence.connections = states;
        outcome.evidence.faults.extend(fault);
        outcome.record.http = Some(Box::new(http));
        outcome.record.waited_ns = waited_ns;
        Ok(outcome)
    }
}

/// The counts of both programs.
struct Exchanged {
    http: HttpTrial,
    began_ns: u64,
    faults: Vec<String>,
}

/// Runs both programs: a process of nginx on each of these CPUs, and wrk on all of them.
fn exchange(
    ends: &HttpEnds<'_>,
    of: &HttpOf,
    cpus: &[u32],
    timing: &Timing,
    mut at: impl FnMut(Moment),
) -> Result<Exchanged> {
    let load = |(): &mut ()| {
        let before = ends.again()?;
        at(Moment::Began);
        let began_ns = monotonic_ns();
        let made = make_requests(ends, of, cpus, timing);
        at(Moment::Ended);
        Ok((began_ns, made, [before, ends.again()?]))
    };
    let ran = nginx::beside(ends, cpus, timing, &mut (), load, |()| 0)?;
    let (mut http, mut faults) = (HttpTrial::default(), ran.faults);
    let mut began_ns = monotonic_ns();
    if let Some((began, made, [before, after])) = ran.load {
        began_ns = began;
        match made {
            Ok(found) => http = found,
            Err(fault) => faults.push(fault),
        }
        http.again = [0, 1].map(|end| after[end] - before[end]);
    }
    if let Some(served) = ran.served {
        // wrk looks by a connection of its own whether there is a server.
        let accepted = served.accepted.saturating_sub(1);
        (http.served, http.accepted) = (served.requests, accepted);
    }
    Ok(Exchanged {
        http,
        began_ns,
        faults,
    })
}

/// Runs wrk on these CPUs. Returns its counts, or why there are none.
fn make_requests(
    ends: &HttpEnds<'_>,
    of: &HttpOf,
    cpus: &[u32],
    timing: &Timing,
) -> Result<HttpTrial, String> {
    let [folder, _] = ends.folders();
    let seconds = timing.load_ns().div_ceil(1_000_000_000);
    let script = format!("{folder}/{SCRIPT}");
    let words = wrk_arguments(of, SERVER, (cpus.len() as u32, seconds), &script);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let job = Job::new("wrk", &words).within(timing.load() + LATE);
    // On a thread of its own, which is bound to the CPUs.
    let ran = thread::scope(|scope| scope.spawn(|| ends.client(&job, cpus, &STOP)).join());
    let output = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let output = output.map_err(|error| format!("wrk: {error}"))?;
    answered(&output).ok_or_else(|| "wrk printed no figures".into())
}

/// The samples of the load: its beginning and its end.
fn samples(http: &HttpTrial) -> Vec<Sample> {
    let made = http.answered + http.failed();
    [(0, 0, 0), (http.took_ns, made, http.answered)]
        .map(|(t_ns, sent, received)| Sample {
            t_ns,
            sent,
            received,
        })
        .to_vec()
}

/// The requests that were made, and those that were answered.
fn ports(http: &HttpTrial) -> [Vec<PortCounters>; 2] {
    let port = |frames, bytes| {
        vec![PortCounters {
            frames,
            bytes,
            ..PortCounters::default()
        }]
    };
    [
        port(http.answered + http.failed(), 0),
        port(http.answered, http.read),
    ]
}

/// The connections that the DUT tracks.
fn states(lane: &Lane) -> Result<Option<Connections>> {
    let dut = lane.dut.as_ref().map(|dut| &dut.namespace);
    let states = dut.map(|dut| tracked(dut, States::New)).transpose()?;
    Ok(states.flatten().map(|states| Connections {
        limit: limit(lane),
        ..states
    }))
}

/// The DUT's counters that changed. The frames of the kernels at both ends are not accounted for.
fn of_dut(lane: &Lane, snapshots: [&ledger::Snapshot; 2]) -> BTreeMap<String, u64> {
    let none = [PortCounters::default()];
    let accounts = ledger::account(lane, snapshots, [&none, &none]);
    accounts
        .into_iter()
        .flat_map(|account| account.dut)
        .collect()
}
