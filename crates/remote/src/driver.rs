//! Carries out the phases of a campaign on many hosts at once: does the actions of `linerate_hosts::phases::Machine` and reports
//! the events.
//!
//! One thread waits for all sessions and connections. The first steps of a run make a [`Volley`], which begins at the same instant
//! on all hosts: all sessions are made ready, then the hosts' clocks are compared with this machine's, then all get the order to start. A lost host is connected again when a step is to be started there: in
//! the reset of the same trial, and in the next trial.

use crate::session::PROBES;
use crate::{ExecutionTarget, Fault, Heard, Kind, Need, RemoteError, Result, Session, Target, allow_files};
use linerate_hosts::phases::{
    Action, Cause, Design, End, Event, Machine, Outcome, Output, Phase, Signal, Status, StepId, Supervision,
    place,
};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Something that a caller may want to write down or show.
#[derive(Debug)]
pub enum Notice<'a> {
    /// An action of the machine, at this time of CLOCK_MONOTONIC. The notice comes before the action.
    Action { at_ns: u64, action: &'a Action },
    /// A run has begun on all its hosts.
    Started(&'a Started),
    /// A host was lost, or a step could not be started: `r1: the connection was lost; look at ... [run of trial 1, step 2: sleep 30]`.
    Trouble(&'a str),
    /// A host that was lost is connected again.
    Back { host: usize },
}

/// How often is looked at the clock and at whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How often a session is tried that the host does not take.
const TRIES: u32 = 3;
/// A shell's exit status for a command that it cannot run.
const CANNOT_RUN: Outcome = Outcome::Ended(Status::Exit(126));

/// A campaign on hosts.
pub struct Driver<'a> {
    machine: Machine,
    sites: Vec<Site>,
    live: BTreeMap<StepId, Session>,
    /// How often a host did not take a step's session.
    refused: BTreeMap<StepId, u32>,
    volley: Option<Volley>,
    events: VecDeque<Event>,
    observer: &'a mut dyn FnMut(Notice<'_>),
}

/// A pipe of something.
#[derive(Debug, Clone, Copy)]
enum Source {
    Site(usize),
    Step(StepId),
}

impl<'a> Driver<'a> {
    /// A campaign on these places, in the order of the design's hosts. The observer gets a notice of each event.
    ///
    /// # Panics
    /// There are not as many places as hosts.
    pub fn new(
        design: Design,
        places: Vec<ExecutionTarget>,
        observer: &'a mut dyn FnMut(Notice<'_>),
    ) -> Driver<'a> {
        assert_eq!(design.hosts.len(), places.len(), "a place for each host");
        allow_files();
        let sites = places.into_iter().map(Site::new).collect();
        let (live, refused, events) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Driver { machine: Machine::new(design), sites, live, refused, volley: None, events, observer }
    }

    /// Carries the campaign out. It ends whatever hosts do, because every step has a limit. An interrupt ends running steps;
    /// reset follows.
    ///
    /// # Errors
    /// This machine's pipes cannot be waited for.
    pub fn run(mut self, interrupted: &AtomicBool) -> std::io::Result<()> {
        let mut interrupt = Some(interrupted);
        while !self.machine.is_over() {
            if interrupt.is_some_and(|i| i.load(Ordering::Relaxed)) {
                interrupt = None;
                self.events.push_back(Event::Interrupt);
            }
            if self.machine.is_between() {
                self.events.push_back(Event::Go);
            }
            // The notice that a run has begun comes before the end of its trial: both events may have arrived at once.
            self.fire();
            while let Some(event) = self.events.pop_front() {
                let actions = self.machine.handle(event);
                self.carry_out(actions);
            }
            self.fire();
            if !self.machine.is_over() && !self.machine.is_between() {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        let run = |action: &Action| matches!(action, Action::Phase { phase: Phase::Run, .. });
        let begins = actions.iter().position(run);
        for (at, action) in actions.into_iter().enumerate() {
            (self.observer)(Notice::Action { at_ns: monotonic_ns(), action: &action });
            match action {
                Action::Start(step) => {
                    if begins.is_some_and(|begins| begins < at) {
                        self.volley.get_or_insert_with(Volley::default).add(step);
                    }
                    self.sites[step.host].waiting.push_back(step);
                    self.open_waiting(step.host);
                }
                Action::End(step, cause) => self.end(step, cause),
                Action::Report(_) | Action::Phase { .. } | Action::GivenUp(_) => {}
                Action::Trial { .. } | Action::Over => {}
            }
        }
    }

    /// Opens sessions for the steps that wait on a host, once it is connected. Where there is no room, a further connection is made.
    fn open_waiting(&mut self, host: usize) {
        if !self.sites[host].is_connected() {
            self.sites[host].connect();
            return;
        }
        while let Some(step) = self.sites[host].waiting.pop_front() {
            let State::Connected(place) = &self.sites[host].state else { return };
            let design = self.machine.design();
            let (planned, rules) = (&design.hosts[host].steps(step.phase)[step.step], &design.rules);
            let supervision = Supervision::new(rules.ends_after_ns(planned.mode), rules.grace_ns);
            let opened = place.permit_in_time(need(step)).and_then(|permit| {
                Session::start_in(place, permit, Kind::Watched, &planned.command, false, supervision)
            });
            match opened {
                Ok(mut session) => {
                    session.output = Output::new(rules.most_output);
                    self.live.insert(step, session);
                }
                Err(error) => self.cannot_run(step, error),
            }
        }
    }

    /// A session that the host refused: it is tried again when there is more room, but not for ever.
    fn refused(&mut self, step: StepId, error: RemoteError) {
        let worth = self.live.remove(&step).is_some_and(|live| live.refused());
        let refused = self.refused.entry(step).or_default();
        *refused += 1;
        if !worth || *refused >= TRIES {
            return self.cannot_run(step, error);
        }
        let queue = &mut self.sites[step.host].waiting;
        let at = queue.partition_point(|other| *other < step);
        queue.insert(at, step);
    }

    /// A command that could not be started on a host that is there.
    fn cannot_run(&mut self, step: StepId, error: RemoteError) {
        let said = format!("linerate: {error}\n");
        self.trouble(&[step], &error);
        let mut output = Output::new(said.len());
        output.push(said.as_bytes());
        let now = monotonic_ns();
        let end = End { outcome: CANNOT_RUN, may_still_run: false, began_ns: now, ended_ns: now, output };
        self.events.push_back(Event::Ended(step, end));
        self.forget(step);
    }

    fn end(&mut self, step: StepId, cause: Cause) {
        match self.live.get_mut(&step) {
            Some(live) if live.went_ns.is_some() => live.stop(cause, Signal::Terminate, monotonic_ns()),
            // The step was not started yet, or is over.
            _ => self.over(step, cause.outcome(), false),
        }
    }

    /// Reports the end of a step to the machine, and ignores its later messages.
    fn over(&mut self, step: StepId, outcome: Outcome, may_still_run: bool) {
        let ended_ns = monotonic_ns();
        let (began_ns, output) = match self.live.remove(&step) {
            Some(mut live) => (live.began_ns(), std::mem::replace(&mut live.output, Output::new(0))),
            None => (ended_ns, Output::new(0)),
        };
        let end = End { outcome, may_still_run, began_ns, ended_ns, output };
        self.events.push_back(Event::Ended(step, end));
        self.forget(step);
    }

    fn forget(&mut self, step: StepId) {
        self.live.remove(&step);
        self.refused.remove(&step);
        self.sites[step.host].waiting.retain(|waiting| *waiting != step);
        if let Some(volley) = &mut self.volley {
            volley.remove(step);
        }
    }

    /// Waits until something happens, and takes it in.
    fn wait(&mut self) -> std::io::Result<()> {
        let mut sources: Vec<(Source, RawFd)> = Vec::new();
        for (at, site) in self.sites.iter().enumerate() {
            sources.extend(site.watched().into_iter().map(|fd| (Source::Site(at), fd)));
        }
        for (step, live) in &self.live {
            sources.extend(live.watched().map(|fd| (Source::Step(*step), fd)));
        }
        let wanted: Vec<_> = sources.iter().map(|(_, fd)| (*fd, libc::POLLIN)).collect();
        let now = monotonic_ns();
        let deadlines = self.live.values().filter_map(Session::deadline_ns);
        let wake =
            deadlines.map(|at| Duration::from_nanos(at.saturating_sub(now))).min().unwrap_or(LOOK).min(LOOK);
        let ready = pipes::poll(&wanted, wake)?;
        let now = monotonic_ns();
        // The last messages of a lost host come before its loss.
        let mut lost = Vec::new();
        for ((source, _), _) in sources.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            match source {
                Source::Step(step) => self.hear(step, now)?,
                Source::Site(host) => lost.push(host),
            }
        }
        self.look_around(now);
        for host in 0..self.sites.len() {
            self.look_at(host, lost.contains(&host));
        }
        Ok(())
    }

    fn hear(&mut self, step: StepId, now: u64) -> std::io::Result<()> {
        let Some(live) = self.live.get_mut(&step) else { return Ok(()) };
        let (mut unheard, mut over) = (false, None);
        for heard in live.hear(now)? {
            match heard {
                Heard::Began => {
                    if let Some(volley) = &mut self.volley {
                        volley.began(step, live);
                    }
                }
                Heard::Wrote(_, bytes) => live.output.push(&bytes),
                Heard::Unheard => unheard = true,
                Heard::Over(status) => over = Some(live.over(status)),
            }
        }
        let site = &self.sites[step.host];
        if let (true, State::Connected(place)) = (unheard, &site.state) {
            let error = RemoteError::new(&site.name, Fault::Unheard(place.silence()), "");
            self.trouble(&[step], &error);
        }
        if let Some(outcome) = over {
            self.over(step, outcome, false);
        }
        Ok(())
    }

    /// Steps whose time is over, and sessions that wait for something in vain.
    fn look_around(&mut self, now: u64) {
        for step in self.live.keys().copied().collect::<Vec<_>>() {
            let Some(live) = self.live.get_mut(&step) else { continue };
            if live.press(now) {
                let outcome = live.given_up();
                self.over(step, outcome, true);
            } else if live.is_overdue(now) {
                match live.vanished(&self.sites[step.host].name) {
                    Ok(outcome) => self.over(step, outcome, false),
                    Err(error) if error.fault == Fault::Sessions => self.refused(step, error),
                    Err(error) => self.lose(step.host, error),
                }
            }
        }
    }

    /// Whether a host was lost, or is back.
    fn look_at(&mut self, host: usize, told: bool) {
        match self.sites[host].look(told) {
            None => {
                if self.sites[host].is_connected() && !self.sites[host].waiting.is_empty() {
                    self.open_waiting(host);
                }
            }
            Some(Change::Back) => {
                (self.observer)(Notice::Back { host });
                self.open_waiting(host);
            }
            Some(Change::Lost(error)) => self.lose(host, error),
        }
    }

    fn lose(&mut self, host: usize, error: RemoteError) {
        let waiting = std::mem::take(&mut self.sites[host].waiting);
        let mut steps: Vec<StepId> = self.live.keys().filter(|step| step.host == host).copied().collect();
        steps.extend(waiting);
        steps.sort_unstable();
        self.sites[host].lose();
        self.trouble(&steps, &error);
        self.events.push_back(Event::Lost(host));
        for step in steps {
            self.over(step, Outcome::Lost, true);
        }
    }

    fn trouble(&mut self, steps: &[StepId], error: &RemoteError) {
        let told = |step: &StepId| {
            let (place, command) = place(self.machine.design(), *step);
            format!("{place}: {command}")
        };
        let told: Vec<String> = steps.iter().map(told).collect();
        let told = if told.is_empty() { String::new() } else { format!(" [{}]", told.join("; ")) };
        (self.observer)(Notice::Trouble(&format!("{error}{told}")));
    }

    /// Brings the sessions that are ready to their start.
    fn fire(&mut self) {
        let now = monotonic_ns();
        for (step, live) in &mut self.live {
            if live.is_ready() && !self.volley.as_ref().is_some_and(|volley| volley.contains(*step)) {
                live.go(now);
            }
        }
        let Some(volley) = &mut self.volley else { return };
        if volley.advance(&mut self.live)
            && let Some(started) = self.volley.take().and_then(|volley| volley.started())
        {
            (self.observer)(Notice::Started(&started));
        }
    }
}

/// Steps of the reset always find room.
fn need(step: StepId) -> Need {
    if step.phase == Phase::Reset { Need::Last } else { Need::Usual }
}

/// How often a connection is looked at that has said nothing.
const LOOK_AT_SILENT: Duration = Duration::from_millis(250);

/// A host.
struct Site {
    name: String,
    target: Option<Target>,
    state: State,
    /// Steps that are started there once it is connected and has room for them.
    waiting: VecDeque<StepId>,
    looked: Instant,
}

/// A change of a host's connection.
enum Change {
    Lost(RemoteError),
    Back,
}

/// How it is reached.
enum State {
    Connected(ExecutionTarget),
    Lost,
    Connecting(JoinHandle<Result<ExecutionTarget>>),
}

impl Site {
    fn new(place: ExecutionTarget) -> Site {
        let target = place.ssh().map(|connection| connection.target().clone());
        let (name, state) = (place.name().to_owned(), State::Connected(place));
        Site { name, target, state, waiting: VecDeque::new(), looked: Instant::now() }
    }

    fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    fn watched(&self) -> Vec<RawFd> {
        match &self.state {
            State::Connected(place) => place.watched(),
            State::Lost | State::Connecting(_) => Vec::new(),
        }
    }

    /// Begins to connect again. The thread that does it is not waited for: it ends within the limit of the connection.
    fn connect(&mut self) {
        if let (State::Lost, Some(target)) = (&self.state, self.target.clone()) {
            self.state =
                State::Connecting(std::thread::spawn(move || ExecutionTarget::connect(&target, None)));
        }
    }

    /// A host is out of reach, and so is all that was connected to it. This machine stays, and the next step is tried there.
    fn lose(&mut self) {
        if self.target.is_some() {
            self.state = State::Lost;
        }
    }

    /// Whether something has changed. `told`: its connection has output.
    fn look(&mut self, told: bool) -> Option<Change> {
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Connecting(thread) if thread.is_finished() => match thread.join() {
                Ok(Ok(place)) => {
                    self.state = State::Connected(place);
                    return Some(Change::Back);
                }
                Ok(Err(error)) => return Some(Change::Lost(error)),
                Err(_) => {}
            },
            other => self.state = other,
        }
        let State::Connected(place) = &self.state else { return None };
        if !told && self.looked.elapsed() < LOOK_AT_SILENT {
            return None;
        }
        self.looked = Instant::now();
        place.lost().map(Change::Lost)
    }
}

/// Clocks that are asked at the same time.
const AT_ONCE: usize = 4;

/// When the first steps of a run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Each host's first step.
    pub starts: Vec<Start>,
    /// From the first to the last of them.
    pub skew_ns: u64,
    /// How wrong that can be.
    pub error_ns: u64,
}

/// When a step began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// CLOCK_MONOTONIC of this machine, in nanoseconds.
    pub at_ns: u64,
    /// Error of that: from the host's clock, or else from the times of the order and of its answer.
    pub error_ns: u64,
}

/// Steps that begin together.
#[derive(Debug, Default)]
struct Volley {
    steps: BTreeSet<StepId>,
    went: bool,
    starts: BTreeMap<StepId, Start>,
}

impl Volley {
    fn add(&mut self, step: StepId) {
        self.steps.insert(step);
    }

    /// Removes a step that is over, or was lost. If it had begun by then, it still counts.
    fn remove(&mut self, step: StepId) {
        if !self.starts.contains_key(&step) {
            self.steps.remove(&step);
        }
    }

    /// A step has begun.
    fn began(&mut self, step: StepId, session: &Session) {
        if let Some((at_ns, error_ns)) = session.began_here().filter(|_| self.steps.contains(&step)) {
            self.starts.insert(step, Start { at_ns, error_ns });
        }
    }

    /// Whether a step waits for the others.
    fn contains(&self, step: StepId) -> bool {
        !self.went && self.steps.contains(&step)
    }

    /// Does all that is possible now; returns whether all is done.
    fn advance(&mut self, live: &mut BTreeMap<StepId, Session>) -> bool {
        if !self.went {
            let ready = |step: &StepId| live.get(step).is_some_and(Session::is_ready);
            let asking =
                self.steps.iter().filter(|step| live.get(step).is_some_and(Session::is_asked)).count();
            if asking == 0 && !self.steps.iter().all(ready) {
                return false;
            }
            if self.ask_clocks(live, asking) {
                return false;
            }
            for step in &self.steps {
                if let Some(live) = live.get_mut(step) {
                    live.go(monotonic_ns());
                }
            }
            self.went = true;
        }
        self.steps.iter().all(|step| self.starts.contains_key(step))
    }

    /// Asks the next clocks; whether answers are still awaited.
    fn ask_clocks(&self, live: &mut BTreeMap<StepId, Session>, mut asking: usize) -> bool {
        let firsts = self.firsts();
        if firsts.len() > 1 {
            for step in firsts {
                let Some(live) = live.get_mut(&step).filter(|live| live.is_ready()) else { continue };
                if live.questions < PROBES && asking < AT_ONCE {
                    live.ask_clock();
                    asking += 1;
                }
            }
        }
        asking > 0
    }

    /// Each host's first step.
    fn firsts(&self) -> Vec<StepId> {
        let mut firsts: Vec<StepId> = self.steps.iter().copied().collect();
        firsts.dedup_by_key(|step| step.host);
        firsts
    }

    /// When they began.
    fn started(&self) -> Option<Started> {
        let starts: Vec<Start> =
            self.firsts().iter().filter_map(|step| self.starts.get(step)).copied().collect();
        let first = starts.iter().min_by_key(|start| start.at_ns)?;
        let last = starts.iter().max_by_key(|start| start.at_ns)?;
        let (skew_ns, error_ns) = (last.at_ns - first.at_ns, first.error_ns + last.error_ns);
        Some(Started { starts, skew_ns, error_ns })
    }
}
