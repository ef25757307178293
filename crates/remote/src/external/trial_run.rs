//! A trial of tools: when there is enough of each phase.

use super::running::{END_NS, Running, SECOND_NS, ToolHost, UP_WITHIN_S};
use super::window::{until, window};
use crate::{Driver, Notice, RemoteError, Result, TrialResult};
use linerate_hosts::agent::merge::Series;
use linerate_hosts::phases::{Action, Design, Event, Outcome, Phase, Rules};
use linerate_hosts::tools::{Sample, Side, Task};
use linerate_linux::ports::monotonic_ns;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// In the fault of a trial whose receiver counted nothing although frames were sent. Where it is known that generator and receiver
/// work, it is the device that forwards nothing, and the rate is 0.
pub const NOTHING_ARRIVED: &str = "has counted none of them";

/// A tool that prints a line a second and has printed none for so long stands still. (Beside loads of the highest priority, one
/// was kept from a CPU for 5 s.)
const STANDSTILL_NS: u64 = 10_000_000_000;
/// A second at each end of a load is no whole one, and one is for the way.
const SPARE_S: u64 = 3;

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
    pub fn run(&self, interrupted: &AtomicBool) -> Result<TrialResult> {
        let mut trial_run = TrialRun::new(self, interrupted)?;
        let hosts = trial_run.tools.iter().map(Running::step).collect();
        let places: Vec<Arc<_>> = trial_run
            .tools
            .iter()
            .map(|tool| tool.host.place.clone())
            .collect();
        let rules = Rules {
            grace_ns: END_NS,
            most_output: 0,
            held: true,
            ..Rules::default()
        };
        let design = Design {
            trials: 1,
            phases: [true, true, true, false],
            hosts,
            rules,
        };
        let mut observe = |notice: Notice<'_>| trial_run.take(notice);
        // An interrupt is the trial's: it ends the generators first, and frames under way still count.
        let over = Driver::new(design, places, &mut observe).run(&AtomicBool::new(false));
        over.map_err(|error| RemoteError::system("this machine", "wait for ssh", &error))?;
        trial_run
            .error
            .take()
            .map_or_else(|| Ok(trial_run.result()), Err)
    }
}

/// A trial under way.
pub(super) struct TrialRun<'a> {
    pub(super) trial: &'a ToolTrial<'a>,
    interrupted: &'a AtomicBool,
    /// The generators, and then the receiver if there is one.
    pub(super) tools: Vec<Running<'a>>,
    /// The phase with its beginning, until there is enough of it.
    phase: Option<(Phase, u64)>,
    /// The number of samples that were looked at.
    seen: usize,
    /// When all generators sent.
    sending: Option<u64>,
    pub(super) faults: Vec<String>,
    /// Why the trial has no result.
    error: Option<RemoteError>,
}

impl<'a> TrialRun<'a> {
    fn new(trial: &'a ToolTrial<'a>, interrupted: &'a AtomicBool) -> Result<TrialRun<'a>> {
        let load_s = trial.timing.load_ns().div_ceil(SECOND_NS) + SPARE_S;
        // Where a link has to come up first, the others go on until it has, and until the device forwards.
        let wait_s = trial
            .generators
            .iter()
            .map(|(_, t)| u64::from(t.link_wait_s))
            .max()
            .unwrap_or(0);
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
        let (mut longest, mut tools) = (0, Vec::new());
        for (host, task) in trial.generators {
            longest = longest.max(seconds(host));
            tools.push(Running::new(
                host,
                Side::Generator,
                lasting(task, seconds(host)),
            )?);
        }
        // The receiver is there first, while sessions are made and clocks compared, and last.
        if let Some((host, task)) = &trial.receiver {
            let task = lasting(task, longest + wait_s + 2 * UP_WITHIN_S);
            tools.push(Running::new(host, Side::Receiver, task)?);
        }
        let (seen, faults) = (0, Vec::new());
        Ok(TrialRun {
            trial,
            interrupted,
            tools,
            phase: None,
            seen,
            sending: None,
            faults,
            error: None,
        })
    }

    pub(super) fn generators(&self) -> &[Running<'a>] {
        &self.tools[..self.trial.generators.len()]
    }

    pub(super) fn receiver(&self) -> Option<&Running<'a>> {
        self.tools.get(self.trial.generators.len())
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// When the generators got the order to send.
    pub(super) fn go_ns(&self) -> Option<u64> {
        self.generators()
            .iter()
            .filter_map(|generator| Some(generator.start?.went_ns))
            .min()
    }

    fn take(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Action {
                at_ns,
                action: Action::Phase { phase, .. },
            } => {
                self.phase = Some((*phase, at_ns));
            }
            Notice::Action {
                action: Action::Report(report),
                ..
            } => {
                let tool = &mut self.tools[report.step.host];
                tool.ended(&report.end);
                if report.end.outcome == Outcome::TimedOut {
                    self.error.get_or_insert(tool.late(tool.limit_s()));
                }
            }
            Notice::Began(step, start) => self.tools[step.host].start = Some(start),
            Notice::Wrote(step, stream, bytes) => {
                self.tools[step.host].heard[stream as usize].extend(bytes)
            }
            Notice::Trouble { host, error, .. } => {
                self.error.get_or_insert(self.tools[host].trouble(error));
            }
            Notice::Idle(event) => *event = self.look(monotonic_ns()),
            Notice::Action { .. } | Notice::Started(_) | Notice::Back { .. } => {}
        }
    }

    /// Reads what has arrived, and says when there is enough of a phase.
    fn look(&mut self, now: u64) -> Option<Event> {
        self.tools.iter_mut().for_each(|tool| tool.read(now));
        let (phase, since) = self.phase?;
        let enough = match phase {
            Phase::SetUp => self.is_receiver_up(now),
            Phase::Run => self.is_run_over(now),
            Phase::Collect | Phase::Reset => Ok(self.is_hurried() || self.is_quiet(since, now)),
        };
        let enough = enough
            .map_err(|error| self.error.get_or_insert(error))
            .unwrap_or(true);
        let stop = self.error.is_some() || (phase == Phase::SetUp && self.is_interrupted());
        (stop || enough).then(|| {
            self.phase = None;
            if stop {
                Event::Interrupt
            } else {
                Event::Enough
            }
        })
    }

    fn is_receiver_up(&self, now: u64) -> Result<bool> {
        let Some(receiver) = self.receiver() else {
            return Ok(true);
        };
        let up = receiver.is_up(now);
        if !up && (receiver.over_ns.is_some() || receiver.has_fault()) {
            return Err(receiver.failure());
        }
        receiver.in_time(up, now)
    }

    /// Whether the window is over, or something else is.
    fn is_run_over(&mut self, now: u64) -> Result<bool> {
        if self.is_interrupted() {
            return Ok(true);
        }
        if self.is_broken() {
            let begun = self.generators().iter().find(|g| g.cannot_begin());
            return begun.map_or(Ok(true), |g| Err(g.failure()));
        }
        let (mut over, mut live, mut flow) = (true, true, true);
        for generator in self.generators().iter().filter(|g| g.over_ns.is_none()) {
            over = false;
            live &= generator.is_live();
            flow &= generator.in_time(
                generator.report().has_traffic() || !generator.is_live(),
                now,
            )?;
        }
        let silent = self.stands_still(now);
        let samples: usize = self
            .tools
            .iter()
            .map(|tool| tool.report().samples.len())
            .sum();
        if over || silent.is_some() || (live && samples != self.seen && self.is_covered()) {
            self.faults.extend(silent.filter(|_| !over));
            return Ok(true);
        }
        self.seen = samples;
        self.sending = self.sending.or(flow.then_some(now));
        let patience = self.trial.patience.as_nanos() as u64;
        let in_vain = self
            .sending
            .is_some_and(|since| now.saturating_sub(since) > patience);
        Ok(in_vain && self.has_seen_nothing())
    }

    /// One that ended before its time, or cannot go on. Those that print when they are through end by themselves.
    fn is_broken(&self) -> bool {
        let ended = |tool: &Running<'_>| tool.over_ns.is_some() && tool.is_live();
        self.tools
            .iter()
            .any(|tool| tool.has_fault() || ended(tool))
    }

    /// Words for a tool that has printed a line a second, and prints nothing any more.
    fn stands_still(&self, now: u64) -> Option<String> {
        let silent = |tool: &&Running<'_>| {
            let last = tool
                .last_sample_ns()
                .filter(|_| tool.is_live() && tool.over_ns.is_none());
            last.is_some_and(|last| now.saturating_sub(last) > STANDSTILL_NS)
        };
        let tool = self.tools.iter().find(silent)?;
        Some(format!(
            "{}: it has printed nothing for {} s, and was ended; see on that host whether it was stopped, or starves for CPU time",
            tool.name(),
            STANDSTILL_NS / SECOND_NS
        ))
    }

    /// The receiver, if it shows received frames as they come.
    fn watched_receiver(&self) -> Option<&Running<'a>> {
        self.receiver().filter(|receiver| receiver.is_live())
    }

    /// Whether all have counted until the window's end.
    fn is_covered(&self) -> bool {
        let sent: Vec<Series> = self.generators().iter().map(Running::counts).collect();
        let received = self.watched_receiver().map(Running::counts);
        window(&sent, received.as_ref(), &self.trial.timing)
            .is_some_and(|window| until(window, sent.iter().chain(&received)) == window)
    }

    fn has_seen_nothing(&self) -> bool {
        let received = self.watched_receiver().map(Running::counts);
        received.is_some_and(|received| received.first_frames(self.go_ns().unwrap_or(0)).is_none())
    }

    /// Whether the last frames are not waited for.
    fn is_hurried(&self) -> bool {
        self.go_ns().is_none() || self.is_interrupted() || self.is_broken()
    }

    /// Whether no frame is under way any more, as far as the trial waits for that.
    fn is_quiet(&self, since: u64, now: u64) -> bool {
        let Some(receiver) = self.receiver().filter(|r| r.over_ns.is_none()) else {
            return true;
        };
        let passed = now.saturating_sub(since);
        match receiver.host.tool {
            // iperf3's document comes when the test is over at its end, too.
            Backend::Iperf3 => passed > STANDSTILL_NS,
            tool if tool.capabilities().live => {
                let timing = &self.trial.timing;
                let last = receiver.report().samples.last();
                let after = |s: &Sample| {
                    let arrived = receiver.last_sample_ns().unwrap_or(0);
                    arrived.saturating_sub(s.interval_us.saturating_mul(1000)) > since
                        && s.packets == Some(0)
                };
                passed >= timing.drain_ns || (passed >= timing.quiet_ns && last.is_some_and(after))
            }
            _ => true,
        }
    }
}
