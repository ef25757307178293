//! The logs of netmap's pkt-gen: its command line, a sample of each interval, its summary, and its failures.
//!
//! Both grammars of its years are read, from receivers and senders, as a file or line by line from a running one:
//!
//! - old: `S.u main_thread [line] N pps (N pkts in N usec)`,
//! - new: `S.u main_thread [line] N pps (N pkts N bps in N usec) F avg_batch N min_space`.
//!
//! Time stamps are modulo 1000 s and are unwrapped. Text between the lines (shells' traces, terminals' escapes, ssh's messages)
//! is counted, and never becomes a number.

mod command;
mod line;
pub mod steady;
#[cfg(test)]
mod tests;

pub use command::Command;
pub use line::{Line, Sample, SummaryLine, parse};
use std::collections::BTreeSet;

/// pkt-gen's summary at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Frames.
    pub packets: Option<u64>,
    /// Length of a frame in bytes without FCS.
    pub length: Option<u64>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Frames a second.
    pub pps: Option<f64>,
    /// Bits a second, of frames without FCS.
    pub bps: Option<f64>,
}

/// Content of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// The command line, where the log has one.
    pub command: Option<Command>,
    /// The intervals, each with its line (from 1) in the log.
    pub samples: Vec<(u64, Sample)>,
    /// The summary; a receiver that was terminated has none.
    pub summary: Option<Summary>,
    /// Reasons why it has no figures: pkt-gen crashed, or could not begin.
    pub crashes: BTreeSet<&'static str>,
    /// Newlines read.
    pub newlines: u64,
}

impl Log {
    /// Length of a frame in bytes without FCS: from the summary, the command line, or the samples' bits and frames.
    pub fn frame_length(&self) -> Option<u64> {
        let said = self.summary.and_then(|s| s.length);
        said.or_else(|| self.command.as_ref()?.length())
            .or_else(|| self.counted_length())
    }

    fn counted_length(&self) -> Option<u64> {
        let busiest = self.samples.iter().map(|(_, s)| s).max_by_key(|s| s.pps)?;
        let bits = busiest.bps?.checked_div(busiest.pps)?;
        (bits > 0).then(|| (bits as f64 / 8.0).round() as u64)
    }
}

/// Takes a log as it comes, in pieces of any size or line by line.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    log: Log,
    summary: Summary,
    partial: Vec<u8>,
    clock: Clock,
}

/// A line that never ends is not kept beyond this.
const LONGEST_LINE: usize = 64 * 1024;

impl Reader {
    /// A reader that has seen nothing.
    pub fn new() -> Self {
        Reader::default()
    }

    /// Takes the next piece. Lines may be cut anywhere between pieces. Calls `see` with each whole line's number (from 1), its
    /// bytes without newline, and its kind.
    #[inline]
    pub fn feed_with(&mut self, bytes: &[u8], mut see: impl FnMut(u64, &[u8], &Line<'_>)) {
        if self.log.samples.is_empty() {
            // A guess, bounded by the input: a line of the new grammar has some 120 bytes.
            self.log.samples.reserve(bytes.len() / 110);
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.partial.is_empty() {
                self.line(&rest[..end], &mut see);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(&rest[..end]);
                self.line(&whole, &mut see);
            }
            self.log.newlines += 1;
            rest = &rest[end + 1..];
        }
        let room = LONGEST_LINE.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(&rest[..rest.len().min(room)]);
    }

    /// Takes the next piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.feed_with(bytes, |_, _, _| ());
    }

    /// The log so far, without a line that has not ended yet.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The whole log, a last line without newline included.
    pub fn finish_with(mut self, mut see: impl FnMut(u64, &[u8], &Line<'_>)) -> Log {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.line(&partial, &mut see);
        }
        let heard = self.summary != Summary::default();
        Log {
            summary: heard.then_some(self.summary),
            ..self.log
        }
    }

    /// The whole log, a last line without newline included.
    pub fn finish(self) -> Log {
        self.finish_with(|_, _, _| ())
    }

    #[inline]
    fn line(&mut self, bytes: &[u8], see: &mut impl FnMut(u64, &[u8], &Line<'_>)) {
        let number = self.log.newlines + 1;
        let line = parse(bytes);
        if let Line::Sample(mut sample) | Line::ScaledSample(mut sample) = line {
            sample.time_us = self.clock.unwrapped(sample.time_us);
            self.log.samples.push((number, sample));
        } else {
            self.remember(line);
        }
        see(number, bytes, &line);
    }

    #[cold]
    fn remember(&mut self, line: Line<'_>) {
        match line {
            Line::Command(host, command) => {
                self.log
                    .command
                    .get_or_insert_with(|| Command::parse(host, command));
            }
            Line::Summary(part) => self.summarised(part),
            Line::Crash(words) => drop(self.log.crashes.insert(words)),
            Line::Sample(_)
            | Line::ScaledSample(_)
            | Line::Message
            | Line::Shell
            | Line::Unknown => {}
        }
    }

    fn summarised(&mut self, part: SummaryLine) {
        let negative = match part {
            SummaryLine::Total { seconds, .. } => seconds < 0.0,
            SummaryLine::Speed { pps, bps } => {
                pps.is_sign_negative() || bps.is_some_and(f64::is_sign_negative)
            }
        };
        if negative {
            self.log
                .crashes
                .insert("pkt-gen crashed: negative speed or time in its summary");
            return;
        }
        match part {
            SummaryLine::Total {
                packets,
                length,
                seconds,
            } => {
                self.summary.packets = Some(packets);
                self.summary.length = length;
                self.summary.seconds = Some(seconds);
            }
            SummaryLine::Speed { pps, bps } => {
                self.summary.pps = Some(pps);
                self.summary.bps = bps;
            }
        }
    }
}

const WRAP_US: u64 = 1_000_000_000;

/// Unwraps the stamps of one log.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Time of the last stamp, unwrapped, in microseconds.
    last_us: Option<u64>,
}

impl Clock {
    /// The time nearest to the last one that has this stamp: messages of several threads overtake each other by a little.
    pub fn unwrapped(&mut self, stamp: u64) -> u64 {
        let time = match self.last_us {
            None => stamp,
            Some(last) => {
                let base = last - last % WRAP_US;
                let before = last % WRAP_US;
                if stamp + WRAP_US / 2 < before {
                    base.saturating_add(WRAP_US).saturating_add(stamp)
                } else if stamp > before + WRAP_US / 2 && base >= WRAP_US {
                    base - WRAP_US + stamp
                } else {
                    base.saturating_add(stamp)
                }
            }
        };
        self.last_us = Some(time);
        time
    }
}
