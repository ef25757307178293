//! The embedded lab with HTTP: wrk makes requests at the inside of the DUT, and nginx answers them at its outside.
//!
//! A frame of the audit and the record is a request here: sent when wrk made it, received when it had its answer. nginx counts beside.

use super::collectors::Scene;
use super::connecting::{full, limit};
use super::connections::tracked;
use super::embedded::{GroupLab, SequentialLabs, lab_spec, scene, turn};
use super::prepare::{Prepared, distinct};
use super::{Request, TrialOutcome};
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use anyhow::{Context, Result};
use linerate_hosts::tools::http::{
    STATUS_PORT, STATUS_REQUEST, Served, WRK_SCRIPT, answered, nginx, nginx_arguments, served,
    wrk_arguments,
};
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How long nginx may take to listen.
const START_WITHIN: Duration = Duration::from_secs(5);
/// How long wrk may take beyond its time: its first connection may have to be tried again.
const LATE: Duration = Duration::from_secs(20);
/// How often nginx is asked while linerate waits for it.
const POLL: Duration = Duration::from_millis(5);
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
        let files = files(&of, cpus.len());
        let files = files.each_ref().map(Vec::as_slice);
        let ends = HttpEnds::new(&self.lab, lane, files)
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

/// The files of the client, and of a server with so many processes.
fn files(of: &HttpOf, processes: usize) -> [Vec<File>; 2] {
    let file = |path: String, text: String| File { path, text };
    let configurations =
        (0..processes).map(|n| file(configuration(n), nginx(SERVER, status_port(n))));
    let object = file(of.object.to_string(), "x".repeat(of.object as usize));
    [
        vec![file(SCRIPT.into(), WRK_SCRIPT.into())],
        configurations.chain([object]).collect(),
    ]
}

/// The file of the configuration of one of nginx's processes, and the port of its counters.
fn configuration(process: usize) -> String {
    format!("nginx-{process}.conf")
}

/// See [`configuration`].
fn status_port(process: usize) -> u16 {
    STATUS_PORT + process as u16
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
    let [_, of_server] = ends.folders();
    let over = AtomicBool::new(false);
    let serve = |(process, cpu): (usize, &u32)| {
        let words = nginx_arguments(of_server, &configuration(process));
        let seconds = START_WITHIN + timing.load() + LATE + Duration::from_nanos(timing.drain_ns);
        let job = Job::new("nginx", &words.each_ref().map(String::as_str)).within(seconds);
        let ended = ends.server(&job, &[*cpu], &over);
        // A server ends only if it is ended.
        let fault = || {
            ended
                .err()
                .map_or("it ended by itself".into(), |e| e.to_string())
        };
        (!over.load(Ordering::Relaxed)).then(fault)
    };
    let serve = &serve;
    thread::scope(|scope| {
        let of_cpus = cpus.iter().enumerate();
        let servers: Vec<ScopedJoinHandle<'_, Option<String>>> = of_cpus
            .map(|each| scope.spawn(move || serve(each)))
            .collect();
        let mut asked = Asked {
            ends,
            processes: cpus.len(),
            questions: 0,
        };
        let (mut http, mut faults) = (HttpTrial::default(), Vec::new());
        let listens = asked.until(
            START_WITHIN,
            |_| true,
            || servers.iter().any(ScopedJoinHandle::is_finished),
        );
        let before = ends.again()?;
        at(Moment::Began);
        let began_ns = monotonic_ns();
        if listens.is_some() && !interrupted() {
            match make_requests(ends, of, cpus, timing) {
                Ok(found) => http = found,
                Err(fault) => faults.push(fault),
            }
        }
        at(Moment::Ended);
        let after = ends.again()?;
        for (again, (before, after)) in http.again.iter_mut().zip(before.into_iter().zip(after)) {
            *again = after - before;
        }
        if listens.is_some() {
            match asked.when_quiet(Duration::from_nanos(timing.drain_ns)) {
                Some(served) => {
                    (http.served, http.accepted) = (served.requests, served.accepted);
                }
                None => faults.push("nginx does not answer after the load".into()),
            }
        }
        over.store(true, Ordering::Relaxed);
        let ended = servers.into_iter().filter_map(|server| {
            server
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // The reason for what wrk says.
        let ended: Vec<String> = ended.map(|why| format!("nginx: {why}")).collect();
        if listens.is_none() && ended.is_empty() {
            faults.push("nginx did not listen".into());
        }
        faults.splice(0..0, distinct(ended));
        Ok(Exchanged {
            http,
            began_ns,
            faults,
        })
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

/// Asks the processes of nginx for their counters, and counts the questions, which are connections and requests themselves.
struct Asked<'a> {
    ends: &'a HttpEnds<'a>,
    processes: usize,
    questions: u64,
}

impl Asked<'_> {
    /// The counters of all processes without the questions, and without the connection by which wrk looks whether there is a server.
    fn now(&mut self) -> Option<Served> {
        let mut sum = Served::default();
        for process in 0..self.processes {
            let answer = self.ends.ask_server(status_port(process), STATUS_REQUEST);
            let of = served(&answer.ok()?)?;
            self.questions += 1;
            sum.open += of.open;
            sum.accepted += of.accepted;
            sum.requests += of.requests;
        }
        Some(Served {
            accepted: sum.accepted.saturating_sub(self.questions + 1),
            requests: sum.requests.saturating_sub(self.questions),
            ..sum
        })
    }

    /// The counters when no connection of wrk's is open any more, or after this time, when only those are that the DUT keeps from closing.
    fn when_quiet(&mut self, longest: Duration) -> Option<Served> {
        let own = self.processes as u64;
        self.until(longest, |served| served.open <= own, interrupted)
            .or_else(|| self.now())
    }

    /// Asks until the counters are as wanted; `None` if they are not so in time, or if `over`.
    fn until(
        &mut self,
        longest: Duration,
        wanted: impl Fn(&Served) -> bool,
        over: impl Fn() -> bool,
    ) -> Option<Served> {
        let until = Instant::now() + longest;
        loop {
            let found = self.now().filter(&wanted);
            if found.is_some() || over() || Instant::now() > until {
                return found;
            }
            thread::sleep(POLL);
        }
    }
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
