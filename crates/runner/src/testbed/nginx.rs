//! nginx at the outside of a DUT, for the time of a load: a process on each of some CPUs.

use super::prepare::{Prepared, TrafficKind, distinct};
use crate::interrupt::interrupted;
use anyhow::{Context, Result};
use linerate_hosts::tools::http::{
    STATUS_PORT, STATUS_REQUEST, Served, nginx, nginx_arguments, served,
};
use linerate_linux::lab::http::{HttpEnds, SERVER};
use linerate_linux::lab::{EmbeddedLab, Lane};
use linerate_linux::process::Job;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{ByNginx, Mode};
use linerate_measure::trial::Timing;
use linerate_plan::settings::File;
use linerate_wire::ConnectionSpec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How long nginx may take to listen.
const START_WITHIN: Duration = Duration::from_secs(5);
/// How long a load may take beyond its time: a first connection may have to be tried again.
pub(super) const LATE: Duration = Duration::from_secs(20);
/// The time between two questions to nginx while linerate waits for it.
const POLL: Duration = Duration::from_millis(5);
/// The object of connections, which their requests do not name.
const INDEX: &str = "index.html";

/// The files of so many processes, with an object of this name and these bytes.
pub(super) fn files(processes: usize, object: &str, bytes: u32) -> Vec<File> {
    let file = |path: String, text: String| File { path, text };
    let configurations =
        (0..processes).map(|n| file(configuration(n), nginx(SERVER, status_port(n))));
    let object = file(object.into(), "x".repeat(bytes as usize));
    configurations.chain([object]).collect()
}

/// The file of the configuration of one of nginx's processes, and the port of its counters.
fn configuration(process: usize) -> String {
    format!("nginx-{process}.conf")
}

/// See [`configuration`].
fn status_port(process: usize) -> u16 {
    STATUS_PORT + process as u16
}

/// A load that nginx was there for.
pub(super) struct Ran<T> {
    /// `None` if nginx did not listen, or the user wants to stop.
    pub load: Option<T>,
    /// nginx's counters after it; `None` if it did not answer.
    pub served: Option<Served>,
    pub faults: Vec<String>,
}

/// Runs a load while nginx listens. `with`: what the load uses; `arrived`: requests that nginx must have counted when all is over.
///
/// # Errors
/// As the load.
pub(super) fn beside<W: ?Sized, T>(
    ends: &HttpEnds<'_>,
    cpus: &[u32],
    timing: &Timing,
    with: &mut W,
    load: impl FnOnce(&mut W) -> Result<T>,
    arrived: impl Fn(&W) -> u64,
) -> Result<Ran<T>> {
    let [_, folder] = ends.folders();
    let drain = Duration::from_nanos(timing.drain_ns);
    let over = AtomicBool::new(false);
    let serve = |(process, cpu): (usize, &u32)| {
        let words = nginx_arguments(folder, &configuration(process));
        let seconds = START_WITHIN + timing.load() + LATE + drain;
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
        let listens = asked.until(
            START_WITHIN,
            |_| true,
            || servers.iter().any(ScopedJoinHandle::is_finished),
        );
        let runs = listens.is_some() && !interrupted();
        let ran = runs.then(|| load(with));
        let served = listens.and_then(|_| asked.when_quiet(drain, || arrived(with)));
        over.store(true, Ordering::Relaxed);
        let ended = servers.into_iter().filter_map(|server| {
            server
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // The reason for what a client says.
        let ended: Vec<String> = ended.map(|why| format!("nginx: {why}")).collect();
        let silent = match (listens, served) {
            (None, _) if ended.is_empty() => Some("nginx did not listen"),
            (Some(_), None) => Some("nginx does not answer after the load"),
            _ => None,
        };
        let mut faults = distinct(ended);
        faults.extend(silent.map(String::from));
        Ok(Ran {
            load: ran.transpose()?,
            served,
            faults,
        })
    })
}

/// Asks the processes of nginx for their counters, and counts the questions, which are connections and requests themselves.
struct Asked<'a> {
    ends: &'a HttpEnds<'a>,
    processes: usize,
    questions: u64,
}

impl Asked<'_> {
    /// The counters of all processes without the questions.
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
            accepted: sum.accepted.saturating_sub(self.questions),
            requests: sum.requests.saturating_sub(self.questions),
            ..sum
        })
    }

    /// The counters when no client's connection is open any more and all requests were counted, or after this time, when only those are open
    /// that the DUT keeps from closing.
    fn when_quiet(&mut self, longest: Duration, arrived: impl Fn() -> u64) -> Option<Served> {
        let own = self.processes as u64;
        let quiet = |served: &Served| served.open <= own && served.requests >= arrived();
        self.until(longest, quiet, interrupted)
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

/// nginx as the server of connections.
pub(super) struct Server<'a> {
    ends: HttpEnds<'a>,
    lane: &'a Lane,
    cpus: &'a [u32],
    /// Frames that its kernel had sent before.
    sent: u64,
}

impl<'a> Server<'a> {
    /// At the outside of a lane, if nginx answers these connections: on the CPUs of the load, or in threaded mode on the receiver's.
    ///
    /// # Errors
    /// The kernel refuses an address or a setting, or there is no right to mount.
    pub fn of(
        prepared: &'a Prepared,
        kind: &'a TrafficKind,
        connections: &ConnectionSpec,
        (lab, lane): (&'a EmbeddedLab, &'a Lane),
    ) -> Result<Option<Server<'a>>> {
        if !connections.served_by.is_nginx() {
            return Ok(None);
        }
        let cpus = match prepared.mode {
            Mode::Threaded => &prepared.roles.receiver,
            _ => &kind.cpus,
        };
        let files = files(cpus.len(), INDEX, connections.object.into());
        let ends = HttpEnds::new(lab, lane, [&[], &files]).context("giving nginx its address")?;
        ends.forget_connections()
            .context("setting up the server's kernel")?;
        Ok(Some(Server {
            ends,
            lane,
            cpus,
            sent: sent_by_kernel(lane),
        }))
    }

    /// Adds the frames that its kernel has sent to those sent by the tester's programs: to the servers, to the clients.
    pub fn join(&self, mut frames: [Vec<PortCounters>; 2]) -> [Vec<PortCounters>; 2] {
        frames[0][1].frames += sent_by_kernel(self.lane).saturating_sub(self.sent);
        frames
    }

    /// Ends when nothing of its connections is left.
    pub fn end(self) {
        self.ends.withdraw(interrupted);
    }

    /// As [`beside`], with nginx's counts.
    ///
    /// # Errors
    /// As the load.
    pub fn beside<W: ?Sized, T>(
        &self,
        timing: &Timing,
        with: &mut W,
        load: impl FnOnce(&mut W) -> Result<T>,
        arrived: impl Fn(&W) -> u64,
    ) -> Result<(Ran<T>, ByNginx)> {
        let before = self.ends.dropped()?;
        let ran = beside(&self.ends, self.cpus, timing, with, load, arrived)?;
        let Served {
            requests, accepted, ..
        } = ran.served.unwrap_or_default();
        let counted = ByNginx {
            requests,
            accepted,
            dropped: self.ends.dropped()? - before,
            ..ByNginx::default()
        };
        Ok((ran, counted))
    }
}

/// Frames that the kernel at the outside of a lane has sent.
fn sent_by_kernel(lane: &Lane) -> u64 {
    let link = lane.receiver.link();
    link.map_or(0, |link| link.stats.tx_packets + link.stats.tx_dropped)
}
