//! One tool on one host: its session and its output.

use crate::error::{Fault as Why, RemoteError};
use crate::{ExecutionTarget, Heard, Kind, Result, Session, line};
use linerate_hosts::agent::merge::Series;
use linerate_hosts::phases::{Cause, Signal, Supervision};
use linerate_hosts::tools::fault::remedy;
use linerate_hosts::tools::{self, Fault, FaultKind, Invocation, Monitor, Report, Sample, Side, State, Task};
use linerate_plan::Backend;
use std::sync::Arc;

/// Most bytes that a tool may print, and most for each sample. Beyond, it is ended.
const MOST_LINES: u64 = 8 << 20;
const MOST_SAMPLE: u64 = 512;
/// Most bytes of a tool that prints JSON: the longest document that is read is shorter.
const MOST_JSON: u64 = 96 << 20;
/// A server without output about it is taken for up after this time.
const SETTLED_NS: u64 = 1_000_000_000;
/// How long a tool that was asked to end may take to print its totals, and how long then each harder way to end it.
const END_NS: u64 = 4_000_000_000;

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

/// A tool on its host, from its session's beginning to its end.
pub(super) struct Running<'a> {
    pub host: &'a ToolHost,
    pub side: Side,
    pub task: Task,
    pub invocation: Invocation,
    pub session: Session,
    monitor: Monitor,
    /// When each sample was here.
    arrivals: Vec<u64>,
    written: u64,
    flooded: bool,
    /// When it was over, or was given up.
    pub over_ns: Option<u64>,
}

impl<'a> Running<'a> {
    /// Makes it ready; it begins on request.
    pub fn start(host: &'a ToolHost, side: Side, task: Task) -> Result<Running<'a>> {
        let refused = |what: String| RemoteError::new(host.place.name(), Why::Tester, what);
        let invocation = tools::command(host.tool, side, &task).map_err(|what| refused(what.to_string()))?;
        let command = format!("exec {}", line(&invocation.argv, false));
        let supervision = Supervision::new(None, END_NS);
        let session = Session::start_as(&host.place, Kind::Watched, &command, host.sudo, supervision)?;
        Ok(Running {
            host,
            side,
            task,
            invocation,
            session,
            monitor: Monitor::new(host.tool, side),
            arrivals: Vec::new(),
            written: 0,
            flooded: false,
            over_ns: None,
        })
    }

    pub fn report(&self) -> &Report {
        self.monitor.report()
    }

    /// Name in messages: `gen: pkt-gen (sending on igb2)`.
    pub fn name(&self) -> String {
        format!("{}: {} ({})", self.host.place.name(), self.host.tool, self.doing())
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
        let began = self.session.began.map(|(at, _)| at);
        match self.report().state {
            State::Up => true,
            // iperf3 -J and netserver listen without a word.
            State::Starting => !self.is_live() && began.is_some_and(|at| now.saturating_sub(at) > SETTLED_NS),
            State::Over => false,
        }
    }

    /// Takes the output that has arrived, and enforces a requested end.
    pub fn hear(&mut self, now: u64) -> Result<()> {
        if self.over_ns.is_some() {
            return Ok(());
        }
        // Standard error has the cause of a failure, and the totals its effect.
        let mut heard = [Vec::new(), Vec::new()];
        let step = self.session.step(&self.host.place, now, &mut |news| {
            if let Heard::Wrote(stream, bytes) = news {
                heard[stream as usize].extend(bytes);
            }
        });
        let [output, errors] = heard;
        self.wrote(&output, &errors, now);
        match step {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.monitor.end(self.session.status, self.session.is_ending());
                self.over_ns = Some(now);
            }
            Err(error) if self.host.sudo && error.said.contains("sudo") => {
                return Err(self.failed(&Fault::new(FaultKind::NoPrivilege, error.said.as_bytes())));
            }
            Err(error) => {
                let said = if error.said.is_empty() { String::new() } else { format!("; {}", error.said) };
                return Err(RemoteError { said: self.doing() + &said, ..error });
            }
        }
        self.arrivals.resize(self.monitor.report().samples.len(), now);
        Ok(())
    }

    fn wrote(&mut self, output: &[u8], errors: &[u8], now: u64) {
        self.written = self.written.saturating_add((output.len() + errors.len()) as u64);
        if self.written > self.most_output() {
            self.flooded = true;
            return self.session.stop(Cause::Limit, Signal::Kill, now);
        }
        self.monitor.feed_errors(errors);
        self.monitor.feed(output);
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
        self.error(format!("{tool} failed while {doing}: {}; {}", fault.message, remedy(tool, fault.kind)))
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

    /// Asks it to end so that it prints its totals.
    pub fn stop(&mut self, now: u64) {
        let signal = match self.invocation.stop_signal {
            "INT" => Signal::Interrupt,
            "KILL" => Signal::Kill,
            _ => Signal::Terminate,
        };
        if self.over_ns.is_none() {
            self.session.stop(Cause::Trial, signal, now);
        }
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
        totals.packets.or(totals.bytes.map(|bytes| bytes / payload)).unwrap_or(0).min(MOST_FRAMES)
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
        let lag = all().max().zip(all().min()).map_or(0, |(most, least)| most - least);
        u64::try_from(lag).unwrap_or(u64::MAX)
    }

    pub fn has_fault(&self) -> bool {
        self.report().faults.iter().any(|f| f.kind.is_fatal() && f.kind != FaultKind::NoTraffic)
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
            fault.kind != FaultKind::NoTraffic && !(interrupted && fault.kind == FaultKind::PeerGone)
        };
        let words = |fault: &Fault| {
            let often = if fault.count > 1 { format!(" ({} times)", fault.count) } else { String::new() };
            format!("{name}: {}{often}; {}", fault.message, remedy(self.host.tool, fault.kind))
        };
        self.report().faults.iter().filter(ours).map(words).collect()
    }
}

/// More frames than any generator sends: a host that prints more is not believed, and sums stay in range.
const MOST_FRAMES: u64 = 1 << 56;

/// By how much our clock is ahead of the tool's, at most: for each sample, with the time when it was here.
fn ahead<'a>(samples: &'a [Sample], here: &'a [u64]) -> impl Iterator<Item = i128> + 'a {
    samples.iter().zip(here).map(|(sample, here)| i128::from(*here) - i128::from(sample.end_us) * 1000)
}

/// Counts of one tool on our clock. The clock of a tool is ours plus a constant, over so short a time; and no line is here before its
/// interval has ended. So the quickest line is nearest to the constant, and the others' delays do not matter.
pub(super) fn counts(samples: &[Sample], here: &[u64], frames: impl Fn(&Sample) -> u64) -> Series {
    let Some(constant) = ahead(samples, here).min() else { return Series::default() };
    let moment = |us: u64| u64::try_from(i128::from(us) * 1000 + constant).unwrap_or(0);
    let first = moment(samples[0].end_us).saturating_sub(samples[0].interval_us.saturating_mul(1000));
    let mut sum = 0u64;
    let ends = samples.iter().map(|sample| {
        sum = sum.saturating_add(frames(sample)).min(MOST_FRAMES);
        (moment(sample.end_us), sum)
    });
    Series::new([(first, 0)].into_iter().chain(ends))
}
