//! The parts of iperf3's JSON that are read, in all versions: unknown fields are ignored, missing ones stay unknown.

use super::kind;
use crate::tools::Side;
use crate::tools::report::{Report, Sample, State, Totals};
use serde::Deserialize;

/// A document of `-J`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Document {
    start: Start,
    intervals: Vec<Interval>,
    end: End,
    error: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start {
    test_start: TestStart,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TestStart {
    protocol: String,
    /// Bytes of a datagram, or of a write to a TCP stream.
    blksize: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sum {
    end: Option<f64>,
    seconds: Option<f64>,
    bytes: Option<f64>,
    bits_per_second: Option<f64>,
    packets: Option<f64>,
    lost_packets: Option<f64>,
    omitted: bool,
}

impl Document {
    /// Enters it.
    pub fn into_report(self, side: Side, report: &mut Report) {
        let start = self.start.test_start;
        let is_udp = start.protocol.eq_ignore_ascii_case("udp");
        let datagram = start.blksize.and_then(whole).filter(|bytes| is_udp && *bytes > 0);
        for interval in self.intervals.iter().filter(|i| !i.sum.omitted) {
            report.sample(interval.sum.sample(datagram));
        }
        match self.error {
            // Ended by a signal to itself: its samples count, its totals are of no whole test.
            Some(error) if error.starts_with("interrupt - ") || error.starts_with("error - interrupt - ") => {
            }
            Some(error) => report.fault(kind(error.as_bytes()), error.as_bytes()),
            None => self.end.into_totals(side, datagram, report),
        }
        report.moves(State::Over);
    }
}

impl Sum {
    fn sample(&self, datagram: Option<u64>) -> Sample {
        let seconds = self.seconds.filter(|s| s.is_finite() && (0.0..1e9).contains(s));
        let packets = datagram.and(self.bytes).and_then(whole).zip(datagram).map(|(bytes, of)| bytes / of);
        let end = self.end.filter(|s| (0.0..1e9).contains(s)).unwrap_or(0.0);
        Sample {
            end_us: (end * 1e6).round() as u64,
            interval_us: (seconds.unwrap_or(0.0) * 1e6).round() as u64,
            packets,
            bps: self.bits_per_second.filter(|b| b.is_finite() && *b >= 0.0),
        }
    }
}

impl End {
    /// Counts of the whole test. Those of a client's `sum` are the server's view: lost of those sent.
    fn into_totals(self, side: Side, datagram: Option<u64>, report: &mut Report) {
        let ours = match side {
            Side::Generator => self.sum_sent.as_ref().or(self.sum.as_ref()),
            Side::Receiver => self.sum_received.as_ref().or(self.sum.as_ref()),
        };
        let Some(ours) = ours else { return };
        let Some(bytes) = ours.bytes.and_then(whole) else { return };
        let lost = |sum: &Option<Sum>| sum.as_ref().and_then(|s| s.lost_packets).and_then(whole);
        let counted = ours.packets.and_then(whole).filter(|_| side == Side::Generator);
        report.says(Totals {
            bytes: Some(bytes),
            packets: datagram.map(|of| bytes / of).or(counted),
            seconds: ours.seconds.filter(|s| (0.0..1e9).contains(s)),
            lost: lost(&self.sum_received).or(lost(&self.sum)),
            said: true,
        });
    }
}

/// A count, which JSON gives as any number.
fn whole(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then(|| number.round() as u64)
}
