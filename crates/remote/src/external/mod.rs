//! Trials over hosts that do not all have linerate: their tools send and count, each as a supervised command on its host.
//!
//! The receiver begins and is up before any generator begins; generators begin together. Opening netmap takes the link down, and
//! a device may need a while before it forwards: so the window begins when all generators send and the receiver counts, not when
//! commands begin. The device itself gets no questions.
//!
//! Every load has its own end three times over: in the tool's arguments (a count or a time), in the timeout(1) in front of it,
//! and in the supervising shell, which ends it when it has not heard of linerate for [`crate::ExecutionTarget::silence`].
//!
//! docs/tools.md explains the figures. `running` is one tool on one host, [`Flight`] the order of steps, `account` the place of tools' seconds on
//! our clock, and the use of their totals.

mod account;
mod running;

use crate::{Flown, PROBES, RemoteError, Result};
use account::Window;
use linerate_hosts::agent::merge::Series;
use linerate_hosts::tools::{Sample, Side, Task};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use running::Running;
pub use running::ToolHost;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// In the fault of a trial whose receiver counted nothing although frames were sent. Where it is known that generator and receiver
/// work, it is the device that forwards nothing, and the rate is 0.
pub const NOTHING_ARRIVED: &str = "has counted none of them";

/// How often is looked at the clock and at whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How much longer than it should a tool may take to come up.
const UP_WITHIN_S: u64 = 10;
/// A tool that prints a line a second and has printed none for so long stands still.
const STANDSTILL_NS: u64 = 5_000_000_000;
/// A second at each end of a load is no whole one, and one is for the way.
const SPARE_S: u64 = 3;
/// How long the end of a trial may take where a host was lost.
const WIND_DOWN_NS: u64 = 3_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A trial to be run.
#[derive(Debug)]
pub struct ToolTrial<'a> {
    /// The generators, with their tasks. The trial sets the duration of their loads.
    pub generators: &'a [(ToolHost, Task)],
    /// The receiver; its task is that of the generators, with its own interface. Without one, the generators report the received
    /// frames (iperf3 and netperf do).
    pub receiver: Option<(&'a ToolHost, Task)>,
    /// Times of the trial. Tools count by the second, so a window of less than three is not precise.
    pub timing: Timing,
    /// How long the first frame may take to be counted once all generators send: a device that was just booted forwards nothing for
    /// a while. After it, the trial is over, with 0 frames received and a fault ([`NOTHING_ARRIVED`]).
    pub patience: Duration,
}

impl ToolTrial<'_> {
    /// Runs it. Ends early when `interrupted` becomes true. Loads that can be reached are stopped; the others end by themselves.
    ///
    /// Failures under load are in the faults of the result: the trial is not valid, and the next one may be.
    ///
    /// # Errors
    /// A tool cannot send this traffic or does not come up, or a host is lost.
    pub fn run(&self, interrupted: &AtomicBool) -> Result<Flown> {
        let mut flight = Flight::new(self, interrupted)?;
        let flown = flight.fly();
        if flown.is_err() {
            flight.wind_down();
        }
        flown
    }
}

/// A trial under way.
struct Flight<'a> {
    trial: &'a ToolTrial<'a>,
    interrupted: &'a AtomicBool,
    generators: Vec<Running<'a>>,
    receiver: Option<Running<'a>>,
    go_ns: Option<u64>,
    faults: Vec<String>,
}

impl<'a> Flight<'a> {
    fn new(trial: &'a ToolTrial<'a>, interrupted: &'a AtomicBool) -> Result<Flight<'a>> {
        let load_s = trial.timing.load_ns().div_ceil(SECOND_NS) + SPARE_S;
        // Where a link has to come up first, the others go on until it has, and until the device forwards.
        let wait_s = trial.generators.iter().map(|(_, t)| u64::from(t.link_wait_s)).max().unwrap_or(0);
        let patience_s = trial.patience.as_millis().div_ceil(1000) as u64;
        let seconds = |host: &ToolHost| match host.tool.capabilities().live {
            true => load_s + wait_s + patience_s + UP_WITHIN_S,
            false => load_s,
        };
        let lasting = |task: &Task, seconds: u64| {
            let mut task = task.clone();
            task.load.duration_ns = seconds.saturating_mul(SECOND_NS);
            task
        };
        let mut longest = 0;
        let mut generators = Vec::new();
        for (host, task) in trial.generators {
            longest = longest.max(seconds(host));
            generators.push(Running::start(host, Side::Generator, lasting(task, seconds(host)))?);
        }
        let mut receiver = None;
        if let Some((host, task)) = &trial.receiver {
            // The receiver is there first, while sessions are made and clocks compared, and last.
            let task = lasting(task, longest + wait_s + 2 * UP_WITHIN_S);
            receiver = Some(Running::start(host, Side::Receiver, task)?);
        }
        Ok(Flight { trial, interrupted, generators, receiver, go_ns: None, faults: Vec::new() })
    }

    fn fly(&mut self) -> Result<Flown> {
        if self.get_ready()? {
            self.send();
            self.watch()?;
        }
        self.end()?;
        Ok(self.flown())
    }

    fn all(&self) -> impl Iterator<Item = &Running<'a>> {
        self.generators.iter().chain(&self.receiver)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Running<'a>> {
        self.generators.iter_mut().chain(&mut self.receiver)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Waits a moment, and takes output of tools; returns the time.
    fn pump(&mut self) -> Result<u64> {
        let mut wanted: Vec<(RawFd, libc::c_short)> = Vec::new();
        for tool in self.all().filter(|tool| tool.over_ns.is_none()) {
            let place = tool.host.place.watched();
            wanted.extend(tool.session.watched().chain(place).map(|fd| (fd, libc::POLLIN)));
        }
        let waited = pipes::poll(&wanted, LOOK);
        waited.map_err(|e| RemoteError::system("this machine", "wait for ssh", &e))?;
        let now = monotonic_ns();
        self.all_mut().try_for_each(|tool| tool.hear(now))?;
        Ok(now)
    }

    /// Sessions are made, the receiver counts, clocks are compared. `false` if the user wants to stop.
    fn get_ready(&mut self) -> Result<bool> {
        let mut went = None;
        loop {
            let now = self.pump()?;
            if self.is_interrupted() {
                return Ok(false);
            }
            let asked = self.ask_clocks();
            let Some(receiver) = &mut self.receiver else {
                if asked {
                    return Ok(true);
                }
                continue;
            };
            let within = u64::from(receiver.invocation.lead_s) + UP_WITHIN_S;
            match went {
                None if receiver.session.is_ready() => {
                    receiver.session.go(now);
                    went = Some(now);
                }
                None => {}
                Some(_) if receiver.is_up(now) && asked => return Ok(true),
                Some(_) if receiver.over_ns.is_some() || receiver.has_fault() => {
                    return Err(receiver.failure());
                }
                Some(at) if !receiver.is_up(now) && now.saturating_sub(at) > within * SECOND_NS => {
                    return Err(receiver.late(within));
                }
                Some(_) => {}
            }
        }
    }

    /// Asks generators' clocks, each one question at a time; whether all have answered.
    fn ask_clocks(&mut self) -> bool {
        for generator in &mut self.generators {
            if generator.session.is_ready() && generator.session.questions < PROBES {
                generator.session.ask_clock();
            }
        }
        self.generators.iter().all(|g| g.session.is_ready() && g.session.questions >= PROBES)
    }

    fn send(&mut self) {
        self.go_ns = Some(monotonic_ns());
        for generator in &mut self.generators {
            generator.session.go(monotonic_ns());
        }
    }

    /// Looks on until the window is over, or something else is.
    fn watch(&mut self) -> Result<()> {
        let (mut seen, mut sending) = (0, None);
        loop {
            let now = self.pump()?;
            if self.is_interrupted() {
                return Ok(());
            }
            if self.is_broken() {
                return self
                    .generators
                    .iter()
                    .find(|g| g.cannot_begin())
                    .map_or(Ok(()), |g| Err(g.failure()));
            }
            let (mut live, mut flow) = (true, true);
            for generator in self.generators.iter().filter(|g| g.over_ns.is_none()) {
                self.look_at(generator, now)?;
                live &= generator.is_live();
                flow &= generator.report().has_traffic() || !generator.is_live();
            }
            if self.generators.iter().all(|g| g.over_ns.is_some()) {
                return Ok(());
            }
            if let Some(fault) = self.stands_still(now) {
                self.faults.push(fault);
                return Ok(());
            }
            let samples: usize = self.all().map(|tool| tool.report().samples.len()).sum();
            if live && samples != seen && self.is_covered() {
                return Ok(());
            }
            seen = samples;
            if flow && sending.is_none() {
                sending = Some(now);
            }
            let patience = self.trial.patience.as_nanos() as u64;
            if sending.is_some_and(|since| now.saturating_sub(since) > patience) && self.has_seen_nothing() {
                return Ok(());
            }
        }
    }

    /// A generator that sends nothing, or does not end.
    fn look_at(&self, generator: &Running<'_>, now: u64) -> Result<()> {
        let since = now.saturating_sub(self.go_ns.unwrap_or(now));
        let up_s = u64::from(generator.invocation.lead_s) + UP_WITHIN_S;
        let sent = generator.report().has_traffic() || !generator.is_live();
        if !sent && since > up_s * SECOND_NS {
            return Err(generator.late(up_s));
        }
        let limit_s = u64::from(generator.invocation.limit_s) + UP_WITHIN_S;
        if since > limit_s * SECOND_NS {
            return Err(generator.late(limit_s));
        }
        Ok(())
    }

    /// One that ended before its time, or cannot go on. Those that print when they are through end by themselves.
    fn is_broken(&self) -> bool {
        let ended = |tool: &Running<'_>| tool.over_ns.is_some() && tool.is_live();
        self.all().any(|tool| tool.has_fault() || ended(tool))
    }

    /// Words for a tool that has printed a line a second, and prints nothing any more.
    fn stands_still(&self, now: u64) -> Option<String> {
        let silent = |tool: &&Running<'_>| {
            let last = tool.last_sample_ns().filter(|_| tool.is_live() && tool.over_ns.is_none());
            last.is_some_and(|last| now.saturating_sub(last) > STANDSTILL_NS)
        };
        let tool = self.all().find(silent)?;
        Some(format!(
            "{}: it has printed nothing for {} s, and was ended; see on that host whether it was stopped, or starves for CPU time",
            tool.name(),
            STANDSTILL_NS / SECOND_NS
        ))
    }

    /// The receiver, if it shows received frames as they come.
    fn watched_receiver(&self) -> Option<&Running<'a>> {
        self.receiver.as_ref().filter(|receiver| receiver.is_live())
    }

    /// Whether all have counted until the window's end.
    fn is_covered(&self) -> bool {
        let sent: Vec<Series> = self.generators.iter().map(Running::counts).collect();
        let received = self.watched_receiver().map(Running::counts);
        Window::of(&sent, received.as_ref(), &self.trial.timing)
            .is_some_and(|window| window.until(sent.iter().chain(&received)) == window)
    }

    fn has_seen_nothing(&self) -> bool {
        let received = self.watched_receiver().map(Running::counts);
        received.is_some_and(|received| received.first_frames(self.go_ns.unwrap_or(0)).is_none())
    }

    /// Ends generators, waits for the last frames, ends the receiver.
    fn end(&mut self) -> Result<()> {
        let mut now = monotonic_ns();
        self.generators.iter_mut().for_each(|generator| generator.stop(now));
        while self.generators.iter().any(|g| g.over_ns.is_none()) {
            now = self.pump()?;
        }
        let hurry = self.go_ns.is_none() || self.is_interrupted() || self.is_broken();
        if !hurry {
            let since = now;
            while !self.is_quiet(since, now) {
                now = self.pump()?;
            }
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.stop(now);
        }
        while self.receiver.as_ref().is_some_and(|r| r.over_ns.is_none()) {
            self.pump()?;
        }
        Ok(())
    }

    /// Whether no frame is under way any more, as far as the trial waits for that.
    fn is_quiet(&self, since: u64, now: u64) -> bool {
        let Some(receiver) = self.receiver.as_ref().filter(|r| r.over_ns.is_none()) else { return true };
        let passed = now.saturating_sub(since);
        match receiver.host.tool {
            // iperf3's document comes when the test is over at its end, too.
            Backend::Iperf3 => passed > STANDSTILL_NS,
            tool if tool.capabilities().live => {
                let timing = &self.trial.timing;
                let last = receiver.report().samples.last();
                let after = |s: &Sample| {
                    let arrived = receiver.last_sample_ns().unwrap_or(0);
                    arrived.saturating_sub(s.interval_us.saturating_mul(1000)) > since && s.packets == Some(0)
                };
                passed >= timing.drain_ns || (passed >= timing.quiet_ns && last.is_some_and(after))
            }
            _ => true,
        }
    }

    /// Ends all tools that can be reached, within a time limit.
    fn wind_down(&mut self) {
        let until = monotonic_ns() + WIND_DOWN_NS;
        loop {
            let now = monotonic_ns();
            for tool in self.all_mut() {
                tool.stop(now);
                if tool.hear(now).is_err() {
                    tool.over_ns.get_or_insert(now);
                }
            }
            if now > until || self.all().all(|tool| tool.over_ns.is_some()) {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
