//! One tool on one host: its session, and what it says.

use super::streams::{NUMBER, Streams};
use super::window::{Counts, Interval};
use super::{ToolError, ToolHost};
use crate::error::{Fault as Cut, RemoteError};
use crate::live::{Heard, Live};
use crate::session::{Kind, Session, Stream};
use crate::words::quoted;
use linerate_hosts::phases::{Status, Supervision};
use linerate_hosts::tools::{self, Exit, Fault, FaultKind, Invocation, Monitor, Report, Side, State, Task};
use linerate_plan::Backend;
use std::time::Duration;

/// A tool that has printed so much, and so much for each sample, is ended.
const MOST_LINES: u64 = 8 << 20;
const MOST_SAMPLE: u64 = 512;
/// The same of one that prints JSON: the longest document that is read is shorter.
const MOST_JSON: u64 = 96 << 20;
/// A server that says nothing of it is taken for up after so long.
const SETTLED_NS: u64 = 1_000_000_000;
/// How long a tool that was asked to end may take to print its totals, and how long then what is told to.
const TOTALS_NS: u64 = 5_000_000_000;
const END_NS: u64 = 2_000_000_000;

/// A tool on its host, from its session's beginning to its end.
pub(super) struct Running<'a> {
    pub host: &'a ToolHost,
    pub side: Side,
    pub task: Task,
    pub invocation: Invocation,
    pub live: Live,
    monitor: Monitor,
    /// When each sample was here.
    arrivals: Vec<u64>,
    streams: Streams,
    written: u64,
    flooded: bool,
    /// When it last said something.
    pub heard_ns: u64,
    /// When it was asked to end, and how far that has gone.
    asked_ns: Option<u64>,
    pressed: u32,
    /// When it was over, or was given up.
    pub over_ns: Option<u64>,
}

impl<'a> Running<'a> {
    /// Makes it ready; it begins when it is told to go.
    pub fn start(host: &'a ToolHost, side: Side, task: Task) -> Result<Running<'a>, ToolError> {
        let refused = |refusal| ToolError::Refused { host: host.place.name().into(), refusal };
        let invocation = tools::command(host.tool, side, &task).map_err(refused)?;
        let monitor = Monitor::new(host.tool, side);
        let words: Vec<String> = invocation.argv.iter().map(|word| quoted(word)).collect();
        let command = format!("echo {NUMBER}$$ >&2; exec {}", words.join(" "));
        let session = Session::start_as(&host.place, Kind::Watched, &command, host.sudo)?;
        Ok(Running {
            host,
            side,
            task,
            invocation,
            live: Live::of(session, Supervision::new(None, END_NS), 0),
            monitor,
            arrivals: Vec::new(),
            streams: Streams::default(),
            written: 0,
            flooded: false,
            heard_ns: 0,
            asked_ns: None,
            pressed: 0,
            over_ns: None,
        })
    }

    pub fn report(&self) -> &Report {
        self.monitor.report()
    }

    /// What messages call it: `gen: pkt-gen (sending on igb2)`.
    pub fn name(&self) -> String {
        format!("{}: {} ({})", self.host.place.name(), self.host.tool, self.doing())
    }

    /// What it is to do.
    pub fn doing(&self) -> String {
        let verb = match self.side {
            Side::Generator => "sending on",
            Side::Receiver => "receiving on",
        };
        format!("{verb} {}", self.task.interface)
    }

    /// Whether it prints its samples as they come, so that it can be ended when enough was seen. The others print what they know when
    /// they end by themselves.
    pub fn is_live(&self) -> bool {
        self.host.tool.capabilities().live
    }

    /// Whether frames that come now are counted.
    pub fn is_up(&self, now: u64) -> bool {
        let began = self.live.began.map(|(at, _)| at);
        match self.report().state {
            State::Ready | State::AtZero | State::Running => true,
            // iperf3 -J and netserver listen without a word.
            State::Starting => !self.is_live() && began.is_some_and(|at| now.saturating_sub(at) > SETTLED_NS),
            State::WaitingForLink | State::Ended | State::Failed => false,
        }
    }

    /// Takes what there is to hear, and presses on with an end that was asked for.
    pub fn hear(&mut self, now: u64) -> Result<(), ToolError> {
        if self.over_ns.is_some() {
            return Ok(());
        }
        let place = &self.host.place;
        let heard = self.live.hear(now);
        let mut heard = heard.map_err(|e| RemoteError::system(place.name(), "wait for ssh", &e))?;
        // What went wrong is told on standard error, and what follows from it in the totals.
        heard.sort_by_key(|heard| !matches!(heard, Heard::Wrote(Stream::Error, _)));
        for heard in heard {
            self.heard_ns = now;
            match heard {
                Heard::Began => {}
                Heard::Wrote(stream, bytes) => self.wrote(stream, &bytes, now),
                Heard::Unheard => {
                    return Err(
                        RemoteError::new(place.name(), Cut::Unheard(place.silence()), self.doing()).into()
                    );
                }
                Heard::Over(status) => self.over(exit(status), now),
            }
        }
        if let Some(lost) = place.lost() {
            return Err(RemoteError { said: format!("{}; {}", self.doing(), lost.said), ..lost }.into());
        }
        if self.over_ns.is_none() && self.live.is_overdue(now) {
            if self.live.began.is_none() && self.asked_ns.is_none() {
                return Err(self.not_started());
            }
            // Its session is gone and its host is not: somebody there killed it.
            self.over(Exit::Signal(libc::SIGKILL), now);
        }
        self.press(now);
        Ok(())
    }

    fn wrote(&mut self, stream: Stream, bytes: &[u8], now: u64) {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written > self.most_output() {
            if !self.flooded {
                self.flooded = true;
                self.kill(now);
            }
            return;
        }
        let lines = self.streams.take(stream, bytes);
        self.monitor.feed(&lines);
        self.arrivals.resize(self.monitor.report().samples.len(), now);
    }

    fn most_output(&self) -> u64 {
        match self.host.tool {
            Backend::Iperf3 => MOST_JSON,
            _ => MOST_LINES + MOST_SAMPLE * self.arrivals.len() as u64,
        }
    }

    fn over(&mut self, exit: Exit, now: u64) {
        let last = self.streams.finish();
        self.monitor.feed(&last);
        self.monitor.end(exit, self.asked_ns.is_some());
        self.arrivals.resize(self.monitor.report().samples.len(), now);
        self.over_ns = Some(now);
    }

    fn not_started(&self) -> ToolError {
        let error = self.live.not_started(self.host.place.name());
        if self.host.sudo && error.said.contains("sudo") {
            let fault = Fault::new(FaultKind::NoPrivilege, error.said.as_bytes());
            return self.failed(fault);
        }
        error.into()
    }

    /// It failed before there was a load.
    pub fn failed(&self, fault: Fault) -> ToolError {
        let host = self.host.place.name().into();
        ToolError::Failed { host, tool: self.host.tool, doing: self.doing(), fault }
    }

    /// It did not come up.
    pub fn late(&self, within: Duration) -> ToolError {
        let host = self.host.place.name().into();
        let command = self.invocation.argv.join(" ");
        ToolError::Late { host, tool: self.host.tool, doing: self.doing(), within, command }
    }

    /// Asks it to end so that it says its totals. Once is enough.
    pub fn stop(&mut self, now: u64) {
        if self.over_ns.is_some() || self.asked_ns.is_some() {
            return;
        }
        match (self.invocation.stop_signal, self.streams.process) {
            ("INT", Some(process)) => self.live.session.interrupt(process),
            ("KILL", _) => return self.kill(now),
            _ => self.live.session.terminate(),
        }
        self.asked_ns = Some(now);
    }

    fn kill(&mut self, now: u64) {
        self.asked_ns.get_or_insert(now);
        self.pressed = 2;
        self.live.session.kill();
    }

    /// One that was asked to end and does not is told to, then killed, then given up: the supervising shell has its orders.
    fn press(&mut self, now: u64) {
        let Some(asked) = self.asked_ns.filter(|_| self.over_ns.is_none()) else { return };
        let since = now.saturating_sub(asked);
        if since > TOTALS_NS && self.pressed == 0 {
            self.pressed = 1;
            self.live.session.terminate();
        } else if since > TOTALS_NS + END_NS && self.pressed == 1 {
            self.kill(now);
        } else if since > TOTALS_NS + 2 * END_NS {
            self.over(Exit::Lost, now);
        }
    }

    /// What it counted, on our clock.
    pub fn counts(&self) -> Counts {
        let samples = self.report().samples.iter().zip(&self.arrivals);
        let interval = |(sample, here): (&linerate_hosts::tools::Sample, &u64)| Interval {
            end_ns: sample.end_us.saturating_mul(1000),
            length_ns: sample.interval_us.saturating_mul(1000),
            frames: sample.packets.or(self.segments(sample)).unwrap_or(0),
            here_ns: *here,
        };
        let intervals: Vec<Interval> = samples.map(interval).collect();
        if !intervals.is_empty() {
            return Counts::of(&intervals);
        }
        // One that prints nothing but totals does so when it is through.
        let totals = self.report().totals;
        match (self.over_ns, totals.seconds, self.frames()) {
            (Some(over), Some(seconds), frames) if frames > 0 && seconds > 0.0 => {
                Counts::even(over.saturating_sub((seconds * 1e9) as u64), over, frames)
            }
            _ => Counts::default(),
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
            .min(super::window::MOST_FRAMES)
    }

    fn segments(&self, sample: &linerate_hosts::tools::Sample) -> Option<u64> {
        let bytes = sample.bps? / 8.0 * sample.interval_us as f64 * 1e-6;
        Some((bytes / f64::from(self.task.payload().max(1))) as u64)
    }

    /// When its last sample was here.
    pub fn last_sample_ns(&self) -> Option<u64> {
        self.arrivals.last().copied()
    }

    /// The longest time that a sample was under way, beside the quickest one.
    pub fn lag_ns(&self) -> u64 {
        let ahead = |(sample, here): (&linerate_hosts::tools::Sample, &u64)| {
            i128::from(*here) - i128::from(sample.end_us) * 1000
        };
        let all = || self.report().samples.iter().zip(&self.arrivals).map(ahead);
        let lag = all().max().zip(all().min()).map_or(0, |(most, least)| most - least);
        u64::try_from(lag).unwrap_or(u64::MAX)
    }

    /// Everything that it told of itself, in words with the host and the remedy. `interrupted`: that the other side has gone is none
    /// then.
    pub fn faults(&self, interrupted: bool) -> Vec<String> {
        let name = self.name();
        let mut faults = Vec::new();
        if self.flooded {
            faults.push(format!(
                "{name}: it printed more than {} MiB and was ended; see on that host what it prints",
                self.most_output() >> 20
            ));
            return faults;
        }
        // That nothing passed is the trial's to tell, which knows of both sides.
        let ours = |fault: &&Fault| {
            fault.kind != FaultKind::NoTraffic && !(interrupted && fault.kind == FaultKind::PeerGone)
        };
        let told = self.report().faults.iter().filter(ours);
        let words = |fault: &Fault| {
            let often = if fault.count > 1 { format!(" ({} times)", fault.count) } else { String::new() };
            format!("{name}: {}{often}; {}", fault.message, fault.remedy(self.host.tool))
        };
        faults.extend(told.map(words));
        faults
    }
}

fn exit(status: Status) -> Exit {
    match status {
        Status::Exit(number) => Exit::Status(number),
        Status::Signal(number) => Exit::Signal(number),
    }
}
