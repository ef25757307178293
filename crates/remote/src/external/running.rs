//! One tool on one host: its step and its output.

use crate::error::{Fault as Why, RemoteError};
use crate::{ExecutionTarget, Result, Start, line};
use linerate_hosts::agent::merge::Series;
use linerate_hosts::phases::{End, Host, Mode, Outcome, Phase, Signal, Status, Step};
use linerate_hosts::tools::fault::remedy;
use linerate_hosts::tools::{
    self, Fault, FaultKind, Invocation, Monitor, Report, Sample, Side, State, Task,
};
use linerate_hosts::words::unless_empty;
use linerate_plan::Backend;
use std::sync::Arc;

/// How much longer than it should a tool may take to come up.
pub(super) const UP_WITHIN_S: u64 = 10;
pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Most bytes that a tool may print, and most for each sample. Beyond, it is ended.
const MOST_LINES: u64 = 8 << 20;
const MOST_SAMPLE: u64 = 512;
/// Most bytes of a tool that prints JSON: the longest document that is read is shorter.
const MOST_JSON: u64 = 96 << 20;
/// A server without output about it is taken for up after this time.
const SETTLED_NS: u64 = 1_000_000_000;
/// How long a tool that was asked to end may take to print its totals, and how long then each harder way to end it.
pub(super) const END_NS: u64 = 4_000_000_000;

/// A host, and its tool that sends or counts.
#[derive(Debug, Clone)]
pub struct ToolHost {
    /// How it is reached. Its silence is how long a load goes on there without linerate: about a second is right.
    pub place: Arc<ExecutionTarget>,
    /// The tool.
    pub tool: Backend,
    /// Whether it is run by `sudo -n`.
    pub sudo: bool,
}

/// A tool on its host, from before its beginning to its end.
pub(super) struct Running<'a> {
    pub host: &'a ToolHost,
    pub side: Side,
    pub task: Task,
    pub invocation: Invocation,
    /// When it began.
    pub start: Option<Start>,
    /// Output that was not read yet: standard output and standard error.
    pub heard: [Vec<u8>; 2],
    monitor: Monitor,
    /// When each sample was here.
    arrivals: Vec<u64>,
    written: u64,
    flooded: bool,
    /// When it was over, or was given up.
    pub over_ns: Option<u64>,
}

impl<'a> Running<'a> {
    /// One that has not begun.
    pub fn new(host: &'a ToolHost, side: Side, task: Task) -> Result<Running<'a>> {
        let refused = |what: String| RemoteError::new(host.place.name(), Why::Tester, what);
        let invocation =
            tools::command(host.tool, side, &task).map_err(|what| refused(what.to_string()))?;
        Ok(Running {
            host,
            side,
            task,
            invocation,
            start: None,
            heard: Default::default(),
            monitor: Monitor::new(host.tool, side),
            arrivals: Vec::new(),
            written: 0,
            flooded: false,
            over_ns: None,
        })
    }

    /// The step that runs it, on a host of its own.
    pub fn step(&self) -> Host {
        let command = format!("exec {}", line(&self.invocation.argv, false));
        let limit_ns = self.limit_s() * SECOND_NS;
        let (phase, mode) = match self.side {
            Side::Generator => (Phase::Run, Mode::Timed { limit_ns }),
            Side::Receiver => (
                Phase::SetUp,
                Mode::Background {
                    limit_ns: Some(limit_ns),
                },
            ),
        };
        let stop = match self.invocation.stop_signal {
            "INT" => Signal::Interrupt,
            "KILL" => Signal::Kill,
            _ => Signal::Terminate,
        };
        let mut phases: [Vec<Step>; 4] = Default::default();
        phases[phase as usize].push(Step { command, mode });
        Host {
            name: self.host.place.name().into(),
            sudo: self.host.sudo,
            stop,
            phases,
        }
    }

    /// Seconds that it may take: it ends by itself before.
    pub fn limit_s(&self) -> u64 {
        u64::from(self.invocation.limit_s) + UP_WITHIN_S
    }

    pub fn report(&self) -> &Report {
        self.monitor.report()
    }

    /// Name in messages: `gen: pkt-gen (sending on igb2)`.
    pub fn name(&self) -> String {
        format!(
            "{}: {} ({})",
            self.host.place.name(),
            self.host.tool,
            self.doing()
        )
    }

    /// Task in words.
    pub fn doing(&self) -> String {
        let verb = match self.side {
            Side::Generator => "sending on",
            Side::Receiver => "receiving on",
        };
        format!("{verb} {}", self.task.interface)
    }

    /// Whether it prints its samples as they come, so that it can be ended early. The others print their figures when they end by
    /// themselves.
    pub fn is_live(&self) -> bool {
        self.host.tool.capabilities().live
    }

    /// Whether frames that come now are counted.
    pub fn is_up(&self, now: u64) -> bool {
        let ran = self
            .start
            .map_or(0, |start| now.saturating_sub(start.at_ns));
        match self.report().state {
            State::Up => true,
            // iperf3 -J and netserver listen without a word.
            State::Starting => !self.is_live() && ran > SETTLED_NS,
            State::Over => false,
        }
    }

    /// Reads the output that has arrived.
    pub fn read(&mut self, now: u64) {
        // Standard error has the cause of a failure, and the totals its effect.
        let [output, errors] = std::mem::take(&mut self.heard);
        self.written = self
            .written
            .saturating_add((output.len() + errors.len()) as u64);
        self.flooded |= self.written > self.most_output();
        if !self.flooded {
            self.monitor.feed_errors(&errors);
            self.monitor.feed(&output);
        }
        self.arrivals
            .resize(self.monitor.report().samples.len(), now);
    }

    /// Reads the rest: the tool is over.
    pub fn ended(&mut self, end: &End) {
        self.read(end.ended_ns);
        let (status, asked) = match end.outcome {
            Outcome::Ended(status) => (Some(status), false),
            _ => (Some(Status::Exit(0)).filter(|_| !end.may_still_run), true),
        };
        self.monitor.end(status, asked);
        self.arrivals
            .resize(self.monitor.report().samples.len(), end.ended_ns);
        self.over_ns = Some(end.ended_ns);
    }

    /// The error of its session.
    pub fn trouble(&self, error: &RemoteError) -> RemoteError {
        let RemoteError { host, fault, said } = error;
        if self.host.sudo && said.contains("sudo") {
            return self.failed(&Fault::new(FaultKind::NoPrivilege, said.as_bytes()));
        }
        let said = self.doing() + &unless_empty("; ", said, "");
        RemoteError::new(host, *fault, said)
    }

    fn most_output(&self) -> u64 {
        match self.host.tool {
            Backend::Iperf3 => MOST_JSON,
            _ => MOST_LINES + MOST_SAMPLE * self.arrivals.len() as u64,
        }
    }

    /// The error of a tool that failed before there was a load.
    pub fn failed(&self, fault: &Fault) -> RemoteError {
        let (tool, doing) = (self.host.tool, self.doing());
        self.error(format!(
            "{tool} failed while {doing}: {}; {}",
            fault.message,
            remedy(tool, fault.kind)
        ))
    }

    /// Whether it is up, which it should be by a certain time.
    pub fn in_time(&self, up: bool, now: u64) -> Result<bool> {
        let within_s = u64::from(self.invocation.lead_s) + UP_WITHIN_S;
        let since = self.start.map_or(now, |start| start.went_ns);
        let late = !up && now.saturating_sub(since) > within_s * SECOND_NS;
        if late {
            Err(self.late(within_s))
        } else {
            Ok(up)
        }
    }

    /// The error of a tool that did not come up within these seconds.
    pub fn late(&self, within_s: u64) -> RemoteError {
        let (tool, doing, command) = (self.host.tool, self.doing(), self.invocation.argv.join(" "));
        self.error(format!(
            "{tool} did nothing for {within_s} s while {doing}; see whether its interface has a link, and run it there by hand: \
             {command}"
        ))
    }

    fn error(&self, said: String) -> RemoteError {
        RemoteError::new(self.host.place.name(), Why::Tester, said)
    }

    /// Counts of the tool, on our clock.
    pub fn counts(&self) -> Series {
        let report = self.report();
        if !report.samples.is_empty() {
            return counts(&report.samples, &self.arrivals, |sample| {
                sample.packets.or(self.segments(sample)).unwrap_or(0)
            });
        }
        // One that prints nothing but totals does so when it is through.
        match (self.over_ns, report.totals.seconds, self.frames()) {
            (Some(over), Some(seconds), frames) if frames > 0 && seconds > 0.0 => {
                Series::even(over.saturating_sub((seconds * 1e9) as u64), over, frames)
            }
            _ => Series::default(),
        }
    }

    /// Frames in all; of a stream, full segments.
    pub fn frames(&self) -> u64 {
        let totals = self.report().totals;
        let payload = u64::from(self.task.payload().max(1));
        totals
            .packets
            .or(totals.bytes.map(|bytes| bytes / payload))
            .unwrap_or(0)
            .min(MOST_FRAMES)
    }

    fn segments(&self, sample: &Sample) -> Option<u64> {
        let bytes = sample.bps? / 8.0 * sample.interval_us as f64 * 1e-6;
        Some((bytes / f64::from(self.task.payload().max(1))) as u64)
    }

    /// When its last sample was here.
    pub fn last_sample_ns(&self) -> Option<u64> {
        self.arrivals.last().copied()
    }

    /// The longest time that a sample was under way, beside the quickest one.
    pub fn lag_ns(&self) -> u64 {
        let all = || ahead(&self.report().samples, &self.arrivals);
        let lag = all()
            .max()
            .zip(all().min())
            .map_or(0, |(most, least)| most - least);
        u64::try_from(lag).unwrap_or(u64::MAX)
    }

    pub fn has_fault(&self) -> bool {
        self.flooded
            || self
                .report()
                .faults
                .iter()
                .any(|f| f.kind.is_fatal() && f.kind != FaultKind::NoTraffic)
    }

    /// Whether another try would fail as well. After a crash, or without an answer from the other end, it may succeed.
    pub fn cannot_begin(&self) -> bool {
        use FaultKind::{Crashed, Garbled, NoTraffic, PeerGone};
        let passing = [Crashed, Garbled, NoTraffic, PeerGone];
        let told = self.report().fatal();
        !self.report().has_traffic() && told.is_some_and(|fault| !passing.contains(&fault.kind))
    }

    /// The error of a tool that has ended before its time.
    pub fn failure(&self) -> RemoteError {
        let ended = Fault::new(FaultKind::Crashed, b"it ended");
        self.failed(self.report().fatal().unwrap_or(&ended))
    }

    /// All its faults, in words with the host and the remedy. `interrupted`: then the end of the other side is no fault.
    pub fn faults(&self, interrupted: bool) -> Vec<String> {
        let name = self.name();
        if self.flooded {
            let most = self.most_output() >> 20;
            return vec![format!(
                "{name}: it printed more than {most} MiB and was ended; see on that host what it prints"
            )];
        }
        // The trial, which sees both sides, reports that nothing passed.
        let ours = |fault: &&Fault| {
            fault.kind != FaultKind::NoTraffic
                && !(interrupted && fault.kind == FaultKind::PeerGone)
        };
        let words = |fault: &Fault| {
            let often = if fault.count > 1 {
                format!(" ({} times)", fault.count)
            } else {
                String::new()
            };
            format!(
                "{name}: {}{often}; {}",
                fault.message,
                remedy(self.host.tool, fault.kind)
            )
        };
        self.report()
            .faults
            .iter()
            .filter(ours)
            .map(words)
            .collect()
    }
}

/// More frames than any generator sends: a host that prints more is not believed, and sums stay in range.
const MOST_FRAMES: u64 = 1 << 56;

/// By how much our clock is ahead of the tool's, at most: for each sample, with the time when it was here.
fn ahead<'a>(samples: &'a [Sample], here: &'a [u64]) -> impl Iterator<Item = i128> + 'a {
    samples
        .iter()
        .zip(here)
        .map(|(sample, here)| i128::from(*here) - i128::from(sample.end_us) * 1000)
}

/// Counts of one tool on our clock. The clock of a tool is ours plus a constant, over so short a time; and no line is here before its
/// interval has ended. So the quickest line is nearest to the constant, and the others' delays do not matter.
pub(super) fn counts(samples: &[Sample], here: &[u64], frames: impl Fn(&Sample) -> u64) -> Series {
    let Some(constant) = ahead(samples, here).min() else {
        return Series::default();
    };
    let moment = |us: u64| u64::try_from(i128::from(us) * 1000 + constant).unwrap_or(0);
    let first =
        moment(samples[0].end_us).saturating_sub(samples[0].interval_us.saturating_mul(1000));
    let mut sum = 0u64;
    let ends = samples.iter().map(|sample| {
        sum = sum.saturating_add(frames(sample)).min(MOST_FRAMES);
        (moment(sample.end_us), sum)
    });
    Series::new([(first, 0)].into_iter().chain(ends))
}
