//! Carries out the phases of a campaign on many hosts at once: does the actions of `linerate_hosts::phases::Machine` and reports
//! the events.
//!
//! One thread waits for all sessions and connections. The first steps of a run make a [`StartGroup`], which begins at the same instant
//! on all hosts: all sessions are made ready, then the hosts' clocks are compared with this machine's, then all get the order to start. A lost host is connected again when a step is to be started there: in
//! the reset of the same trial, and in the next trial.
//!
//! The steps are those of a file for `conduct`, and the tools of a trial for `external`, which looks on and says when there is enough.

mod start_group;

pub use start_group::Started;

use crate::session::Start;
use crate::{
    ExecutionTarget, Fault, Heard, Kind, Need, Order, RemoteError, Result, Session, Stream, Target,
    allow_files,
};
use linerate_hosts::phases::{
    Action, Cause, Design, End, Event, Machine, Outcome, Output, Phase, Status, StepId, place,
};
use linerate_hosts::words::unless_empty;
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use start_group::StartGroup;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Something that a caller may want to write down or show.
#[derive(Debug)]
pub enum Notice<'a> {
    /// An action of the machine, at this time of CLOCK_MONOTONIC. The notice comes before the action.
    Action { at_ns: u64, action: &'a Action },
    /// A step has begun.
    Began(StepId, Start),
    /// A step has written this.
    Wrote(StepId, Stream, &'a [u8]),
    /// A run has begun on all its hosts.
    Started(&'a Started),
    /// A host was lost, or a step could not be started. The text: `r1: the connection was lost; look at ... [run of trial 1, step 2: sleep 30]`.
    Trouble {
        host: usize,
        error: &'a RemoteError,
        text: &'a str,
    },
    /// A host that was lost is connected again.
    Back { host: usize },
    /// Everything that has happened was dealt with: room for an event of the caller's own.
    Idle(&'a mut Option<Event>),
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
    group: Option<StartGroup>,
    events: VecDeque<Event>,
    observer: &'a mut dyn FnMut(Notice<'_>),
}

impl<'a> Driver<'a> {
    /// A campaign on these places, in the order of the design's hosts. The observer gets a notice of each event.
    ///
    /// # Panics
    /// There are not as many places as hosts.
    pub fn new(
        design: Design,
        places: Vec<impl Into<Arc<ExecutionTarget>>>,
        observer: &'a mut dyn FnMut(Notice<'_>),
    ) -> Driver<'a> {
        assert_eq!(design.hosts.len(), places.len(), "a place for each host");
        allow_files();
        let sites = places.into_iter().map(|place| Site::new(place.into()));
        Driver {
            machine: Machine::new(design),
            sites: sites.collect(),
            live: BTreeMap::new(),
            refused: BTreeMap::new(),
            group: None,
            events: VecDeque::new(),
            observer,
        }
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
            while let Some(event) = self.next() {
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

    fn next(&mut self) -> Option<Event> {
        let mut event = self.events.pop_front();
        if event.is_none() {
            (self.observer)(Notice::Idle(&mut event));
        }
        event
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        let mut of_run = false;
        for action in actions {
            (self.observer)(Notice::Action {
                at_ns: monotonic_ns(),
                action: &action,
            });
            match action {
                Action::Phase { phase, .. } => of_run = phase == Phase::Run,
                Action::Start(step) => {
                    if of_run {
                        self.group.get_or_insert_default().steps.insert(step, None);
                    }
                    self.sites[step.host].waiting.push_back(step);
                    self.open_waiting(step.host);
                }
                Action::End(step, cause) => self.end(step, cause),
                Action::Report(_) | Action::GivenUp(_) | Action::Trial { .. } | Action::Over => {}
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
            let State::Connected(place) = &self.sites[host].state else {
                return;
            };
            let order = order(self.machine.design(), step);
            let permit = place.permit_in_time(need(step));
            let opened =
                permit.and_then(|permit| Session::start_in(place, permit, Kind::Watched, &order));
            match opened {
                Ok(mut session) => {
                    session.output = Output::new(order.most_output);
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
        self.trouble(step.host, &[step], &error);
        let mut output = Output::new(said.len());
        output.push(said.as_bytes());
        self.ended(step, CANNOT_RUN, false, (monotonic_ns(), output));
    }

    fn end(&mut self, step: StepId, cause: Cause) {
        match self.live.get_mut(&step) {
            Some(live) if live.went_ns.is_some() => live.stop(cause, monotonic_ns()),
            // The step was not started yet, or is over.
            _ => self.over(step, cause.outcome(), false),
        }
    }

    fn over(&mut self, step: StepId, outcome: Outcome, may_still_run: bool) {
        let none = Output::new(0);
        let of = |mut live: Session| (live.began_ns, std::mem::replace(&mut live.output, none));
        let never = || (monotonic_ns(), Output::new(0));
        let began = self.live.remove(&step).map_or_else(never, of);
        self.ended(step, outcome, may_still_run, began);
    }

    /// Reports the end of a step to the machine, and ignores its later messages.
    fn ended(
        &mut self,
        step: StepId,
        outcome: Outcome,
        may_still_run: bool,
        (began_ns, output): (u64, Output),
    ) {
        let end = End {
            outcome,
            may_still_run,
            began_ns,
            ended_ns: monotonic_ns(),
            output,
        };
        self.events.push_back(Event::Ended(step, end));
        self.refused.remove(&step);
        self.sites[step.host].waiting.retain(|other| *other != step);
        self.group.iter_mut().for_each(|group| group.remove(step));
    }

    /// Waits until something happens, and takes it in.
    fn wait(&mut self) -> std::io::Result<()> {
        // Pipes of sites, and of steps.
        let mut sources: Vec<(usize, Option<StepId>)> = Vec::new();
        let mut wanted: Vec<(RawFd, libc::c_short)> = Vec::new();
        let mut add = |host, step, fd| {
            sources.push((host, step));
            wanted.push((fd, libc::POLLIN));
        };
        for (at, site) in self.sites.iter().enumerate() {
            site.watched().into_iter().for_each(|fd| add(at, None, fd));
        }
        for (step, live) in &self.live {
            let pipes = live.watched();
            pipes.for_each(|fd| add(step.host, Some(*step), fd));
        }
        let deadlines = self.live.values().filter_map(Session::deadline_ns);
        let left = deadlines.min().map(|at| at.saturating_sub(monotonic_ns()));
        let wake = left.map_or(LOOK, |left| Duration::from_nanos(left).min(LOOK));
        let ready = pipes::poll(&wanted, wake)?;
        let now = monotonic_ns();
        // The last messages of a lost host come before its loss.
        let mut lost = Vec::new();
        for ((host, step), _) in sources.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            match step {
                Some(step) => self.attend(step, now),
                None => lost.push(host),
            }
        }
        let due = self.live.iter().filter(|(_, live)| live.is_due(now));
        let due: Vec<StepId> = due.map(|(step, _)| *step).collect();
        due.into_iter().for_each(|step| self.attend(step, now));
        for host in 0..self.sites.len() {
            self.look_at(host, lost.contains(&host));
        }
        Ok(())
    }

    /// Takes in what a step has to say, and ends it when it is time.
    fn attend(&mut self, step: StepId, now: u64) {
        let Driver {
            live,
            sites,
            group,
            observer,
            ..
        } = self;
        let (Some(live), State::Connected(place)) = (live.get_mut(&step), &sites[step.host].state)
        else {
            return;
        };
        let outcome = live.step(place, now, &mut |heard| match heard {
            Heard::Began(start) => {
                group.iter_mut().for_each(|group| group.began(step, start));
                observer(Notice::Began(step, start));
            }
            Heard::Wrote(stream, bytes) => observer(Notice::Wrote(step, stream, &bytes)),
            Heard::Over(_) => {}
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                let may_still_run = live.status.is_none();
                self.over(step, outcome, may_still_run);
            }
            Err(error) if matches!(error.fault, Fault::Unheard(_)) => {
                let outcome = live.outcome();
                self.trouble(step.host, &[step], &error);
                self.over(step, outcome, false);
            }
            Err(error) if error.fault == Fault::Sessions => self.refused(step, error),
            Err(error) => self.lose(step.host, error),
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
        let mut steps: Vec<StepId> = self
            .live
            .keys()
            .filter(|step| step.host == host)
            .copied()
            .collect();
        steps.extend(waiting);
        steps.sort_unstable();
        self.sites[host].lose();
        self.trouble(host, &steps, &error);
        self.events.push_back(Event::Lost(host));
        for step in steps {
            self.over(step, Outcome::Lost, true);
        }
    }

    fn trouble(&mut self, host: usize, steps: &[StepId], error: &RemoteError) {
        let told = |step: &StepId| {
            let (place, command) = place(self.machine.design(), *step);
            format!("{place}: {command}")
        };
        let told: Vec<String> = steps.iter().map(told).collect();
        let told = unless_empty(" [", &told.join("; "), "]");
        (self.observer)(Notice::Trouble {
            host,
            error,
            text: &format!("{error}{told}"),
        });
    }

    /// Brings the sessions that are ready to their start.
    fn fire(&mut self) {
        let now = monotonic_ns();
        for (step, live) in &mut self.live {
            let waits = |group: &StartGroup| group.contains(*step);
            if live.is_ready() && !self.group.as_ref().is_some_and(waits) {
                live.go(now);
            }
        }
        let Some(group) = &mut self.group else { return };
        if group.advance(&mut self.live)
            && let Some(started) = self.group.take().and_then(|group| group.started())
        {
            (self.observer)(Notice::Started(&started));
        }
    }
}

/// A step's command, with its bounds.
fn order(Design { hosts, rules, .. }: &Design, step: StepId) -> Order {
    let host = &hosts[step.host];
    let planned = &host.steps(step.phase)[step.step];
    let limit_ns = rules.ends_after_ns(planned.mode);
    Order {
        limit: limit_ns.map_or(Duration::MAX, Duration::from_nanos),
        most_output: rules.most_output,
        stop: host.stop,
        grace: Duration::from_nanos(rules.grace_ns),
        sudo: host.sudo,
        ..Order::new(&planned.command)
    }
}

/// Steps of the reset always find room.
fn need(step: StepId) -> Need {
    match step.phase {
        Phase::Reset => Need::Last,
        _ => Need::Usual,
    }
}

/// How often a connection is looked at that has said nothing.
const LOOK_AT_SILENT: Duration = Duration::from_millis(250);

/// A host.
struct Site {
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
    Connected(Arc<ExecutionTarget>),
    Lost,
    Connecting(JoinHandle<Result<ExecutionTarget>>),
}

impl Site {
    fn new(place: Arc<ExecutionTarget>) -> Site {
        Site {
            target: place.ssh().map(|connection| connection.target().clone()),
            state: State::Connected(place),
            waiting: VecDeque::new(),
            looked: Instant::now(),
        }
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
            self.state = State::Connecting(std::thread::spawn(move || {
                ExecutionTarget::connect(&target, None)
            }));
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
                    self.state = State::Connected(Arc::new(place));
                    return Some(Change::Back);
                }
                Ok(Err(error)) => return Some(Change::Lost(error)),
                Err(_) => {}
            },
            other => self.state = other,
        }
        let State::Connected(place) = &self.state else {
            return None;
        };
        if !told && self.looked.elapsed() < LOOK_AT_SILENT {
            return None;
        }
        self.looked = Instant::now();
        place.lost().map(Change::Lost)
    }
}
