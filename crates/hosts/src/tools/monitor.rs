//! One monitor for every tool: bytes go in as they come, a report can be looked at any time.

use super::fault::{self, Fault, FaultKind, Signs};
use super::{Side, parser};
use crate::phases::Status;
use linerate_plan::Backend;

/// Parses the output of a tool.
pub(super) trait Parse: Send {
    /// Takes a line; `false` if it has no figures of the tool. `last`: it had no end, because the tool has ended.
    fn line(&mut self, line: &[u8], last: bool, report: &mut Report) -> bool;

    /// The tool has ended.
    fn end(&mut self, _: &mut Report) {}
}

/// Takes the output of a tool, line by line.
pub struct Monitor {
    report: Report,
    /// Of standard output and of standard error: a piece of one never ends up within a line of the other.
    lines: [Lines; 2],
    parser: Box<dyn Parse>,
    /// The tool's own messages that are faults.
    signs: &'static Signs,
}

impl Monitor {
    /// A monitor of a tool that has printed nothing yet.
    pub fn new(tool: Backend, side: Side) -> Self {
        let (parser, signs) = parser(tool, side);
        Monitor {
            report: Report::default(),
            lines: Default::default(),
            parser,
            signs,
        }
    }

    /// The report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the next piece of standard output, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.take(0, |lines, see| lines.feed(bytes, see));
    }

    /// Takes the next piece of standard error.
    pub fn feed_errors(&mut self, bytes: &[u8]) {
        self.take(1, |lines, see| lines.feed(bytes, see));
    }

    /// Takes lines of an output. A line without figures may show a fault, by the tool's own words or the system's.
    fn take(&mut self, output: usize, feed: impl FnOnce(&mut Lines, &mut dyn FnMut(&[u8], bool))) {
        let (report, parser, signs) = (&mut self.report, &mut self.parser, self.signs);
        feed(&mut self.lines[output], &mut |line, last| {
            if !parser.line(line, last, report)
                && let Some(kind) = fault::find(signs, line).or_else(|| fault::common(line))
            {
                report.fault(kind, line);
            }
        });
    }

    /// The tool has ended; `None`: the connection to its host broke. `asked`: whether it was ended on purpose, by signal or deadline.
    pub fn end(&mut self, status: Option<Status>, asked: bool) {
        self.take(1, |lines, see| lines.end(see));
        self.take(0, |lines, see| lines.end(see));
        self.parser.end(&mut self.report);
        if self.report.fatal().is_none() {
            self.judge(status, asked);
        }
        self.report.moves(State::Over);
    }

    /// A tool without a reported fault may still have one.
    fn judge(&mut self, status: Option<Status>, asked: bool) {
        let told = match status.map(|status| Status::of_shell(status.as_shells_say())) {
            None => Some((
                FaultKind::PeerGone,
                "the connection to its host broke".to_string(),
            )),
            Some(Status::Exit(127)) => Some((
                FaultKind::NotInstalled,
                "exit status 127: no such command".into(),
            )),
            Some(Status::Exit(126)) => Some((
                FaultKind::NoPrivilege,
                "exit status 126: cannot be executed".into(),
            )),
            Some(Status::Signal(signal)) if !asked => {
                Some((FaultKind::Crashed, format!("ended by signal {signal}")))
            }
            // timeout(1) ends with 124.
            Some(Status::Exit(status))
                if !matches!(status, 0 | 124) && !asked && !self.report.totals.said =>
            {
                Some((
                    FaultKind::Other,
                    format!("exit status {status}, and no totals"),
                ))
            }
            Some(_) => None,
        };
        match told {
            Some((kind, message)) => self.report.fault(kind, message.as_bytes()),
            None if !self.report.has_traffic() => self
                .report
                .fault(FaultKind::NoTraffic, b"it ended, and no frame had passed"),
            None => {}
        }
    }
}

/// One interval of a tool's own clock, usually a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// End in microseconds, on the tool's clock: pkt-gen's begins anywhere, the others' with the test.
    pub end_us: u64,
    /// Length in microseconds.
    pub interval_us: u64,
    /// Frames in it, where the tool counts them.
    pub packets: Option<u64>,
    /// Bits/s, at the tool's layer: pkt-gen counts frames without FCS, iperf3 and netperf their payload.
    pub bps: Option<f64>,
}

impl Sample {
    /// Whether anything passed in it.
    pub fn has_traffic(&self) -> bool {
        self.packets
            .map_or(self.bps.is_some_and(|bps| bps > 0.0), |packets| packets > 0)
    }
}

/// A tool's own totals, or the sums of its samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Frames sent or received, where the tool counts them.
    pub packets: Option<u64>,
    /// Bytes, at the tool's layer.
    pub bytes: Option<u64>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Frames that the far end did not get, by the tool's own count.
    pub lost: Option<u64>,
    /// TCP of the sender, where the tool asks its kernel.
    pub tcp: Option<Tcp>,
    /// Whether they are the tool's own totals. Otherwise these are the sums of its samples, and frames after the last one are
    /// missing.
    pub said: bool,
}

/// TCP as the sender's kernel sees it (TCP_INFO), over all connections of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The smoothed round-trip time in microseconds: the least, the mean and the largest of the intervals.
    pub rtt_us: [u64; 3],
    /// The largest congestion window in bytes.
    pub most_cwnd: u64,
}

/// State of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Frames that come now are not counted yet: it has said nothing, or waits for its link.
    #[default]
    Starting,
    /// The tool is ready, or runs.
    Up,
    /// The tool is through, or gave up: see the faults.
    Over,
}

/// Samples that are kept: a day of seconds. Later ones count only in the totals.
pub const MOST_SAMPLES: usize = 90_000;

/// Everything that a tool has said so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub state: State,
    /// Intervals, the first [`MOST_SAMPLES`].
    pub samples: Vec<Sample>,
    /// Totals.
    pub totals: Totals,
    /// Faults, each kind once.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Whether a frame has passed.
    pub fn has_traffic(&self) -> bool {
        let counted = self.totals.packets.or(self.totals.bytes).unwrap_or(0);
        counted > 0 || self.samples.iter().any(Sample::has_traffic)
    }

    /// The fault that ended it, if one did.
    pub fn fatal(&self) -> Option<&Fault> {
        self.faults.iter().find(|f| f.kind.is_fatal())
    }

    pub(super) fn sample(&mut self, sample: Sample) {
        self.moves(State::Up);
        if !self.totals.said {
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                if let Some(more) = more {
                    *sum = Some(sum.unwrap_or(0).saturating_add(more));
                }
            };
            add(&mut self.totals.packets, sample.packets);
            let seconds = sample.interval_us as f64 * 1e-6;
            add(
                &mut self.totals.bytes,
                sample.bps.map(|bps| (bps * seconds / 8.0).round() as u64),
            );
            self.totals.seconds = Some(self.totals.seconds.unwrap_or(0.0) + seconds);
        }
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Goes on to a state, never back.
    pub(super) fn moves(&mut self, to: State) {
        self.state = self.state.max(to);
    }

    /// Enters the tool's own totals, which are its last output.
    pub(super) fn says(&mut self, totals: Totals) {
        self.totals = Totals {
            said: true,
            ..totals
        };
        self.moves(State::Over);
    }

    pub(super) fn fault(&mut self, kind: FaultKind, message: &[u8]) {
        if let Some(known) = self.faults.iter_mut().find(|f| f.kind == kind) {
            known.count = known.count.saturating_add(1);
        } else {
            self.faults.push(Fault::new(kind, message));
        }
        if kind.is_fatal() {
            self.moves(State::Over);
        }
    }
}

/// A line's first bytes that are kept: pkt-gen's longest has some 200, its echoed command line some 1000.
const LONGEST_LINE: usize = 16 * 1024;

/// Bytes on their way to be lines.
#[derive(Debug, Clone, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes the next piece and calls `see` with each whole line, without its end.
    fn feed(&mut self, bytes: &[u8], see: &mut dyn FnMut(&[u8], bool)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.partial.is_empty() {
                see(cut(&rest[..end]), false);
            } else {
                self.keep(&rest[..end]);
                let whole = std::mem::take(&mut self.partial);
                see(cut(&whole), false);
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// The last line, which had no end.
    fn end(&mut self, see: &mut dyn FnMut(&[u8], bool)) {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            see(cut(&partial), true);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// As much of a line as is looked at, without carriage returns at its ends (trafgen begins lines with them).
fn cut(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(LONGEST_LINE)];
    let line = line.strip_prefix(b"\r").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in pieces {
            lines.feed(piece, &mut |line, _| seen.push(line.to_vec()));
        }
        lines.end(&mut |line, _| seen.push(line.to_vec()));
        seen
    }

    #[test]
    fn pieces_make_lines() {
        assert_eq!(
            lines(&[b"a", b"b\n\rc\r\n", b"", b"\nd"]),
            [&b"ab"[..], b"c", b"", b"d"]
        );
    }

    #[test]
    fn an_endless_line_is_cut() {
        let long = vec![b'x'; LONGEST_LINE];
        let seen = lines(&[&long, &long, &long, b"\nend\n"]);
        assert_eq!((seen[0].len(), &seen[1][..]), (LONGEST_LINE, &b"end"[..]));
        assert_eq!(
            lines(&[&[&long[..], &long, b"\n"].concat()])[0].len(),
            LONGEST_LINE
        );
    }

    #[test]
    fn lines_are_whole_whatever_comes_between() {
        let mut monitor = Monitor::new(Backend::PktGen, Side::Receiver);
        let sample = b"290.703575 main_thread [1441] 729113 pps (730571 pkts in 1002000 usec)\n";
        monitor.feed_errors(&sample[..30]);
        monitor.feed(b"Received 730571 packets, 60 bytes each, ");
        monitor.feed_errors(&sample[30..]);
        monitor.feed(b"in 1.00 seconds.\n");
        let report = monitor.report();
        assert_eq!(
            (
                report.samples.len(),
                report.totals.said,
                report.faults.len()
            ),
            (1, true, 0)
        );
    }
}
