//! What is read of iperf3's JSON, in all versions: what is not known is passed over, what is missing stays unknown.

use super::kind;
use crate::tools::Side;
use crate::tools::report::{Report, Sample, State};
use serde::Deserialize;

/// A whole document of `-J`, or an event of `--json-stream`.
pub struct Document {
    body: Body,
    /// An event of a stream is part of a test only.
    event: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
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

/// The event's name alone.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Event {
    event: Option<String>,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

impl Document {
    /// Reads one.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let Event { event: Some(event) } = serde_json::from_slice(bytes)? else {
            return Ok(Document { body: serde_json::from_slice(bytes)?, event: None });
        };
        let mut body = Body::default();
        match event.as_str() {
            "start" => body.start = serde_json::from_slice::<Data<Start>>(bytes)?.data,
            "interval" => body.intervals.push(serde_json::from_slice::<Data<Interval>>(bytes)?.data),
            "end" => body.end = serde_json::from_slice::<Data<End>>(bytes)?.data,
            "error" => body.error = Some(serde_json::from_slice::<Data<String>>(bytes)?.data),
            // What the other side said, and whatever comes later.
            _ => {}
        }
        Ok(Document { body, event: Some(event) })
    }

    /// Enters it. `datagram` is kept between the events of a stream.
    pub fn into_report(self, side: Side, datagram: &mut Option<u64>, report: &mut Report) {
        let Document { body, event } = self;
        let start = body.start.test_start;
        if start.protocol.eq_ignore_ascii_case("udp") {
            *datagram = start.blksize.and_then(whole).filter(|b| *b > 0);
        }
        for interval in body.intervals.into_iter().filter(|i| !i.sum.omitted) {
            report.sample(interval.sum.sample(*datagram));
        }
        if let Some(error) = body.error {
            if error.starts_with("interrupt - ") || error.starts_with("error - interrupt - ") {
                // Ended by a signal to itself: its samples count, its totals are of no whole test.
                return report.moves(State::Ended);
            }
            return report.fault(kind(error.as_bytes()), error.as_bytes());
        }
        if event.as_deref().is_none_or(|e| e == "end") {
            body.end.into_totals(side, *datagram, report);
            report.moves(State::Ended);
        }
    }
}

impl Sum {
    fn sample(&self, datagram: Option<u64>) -> Sample {
        let seconds = self.seconds.filter(|s| s.is_finite() && (0.0..1e9).contains(s));
        let packets = datagram.and(self.bytes).and_then(whole).zip(datagram).map(|(bytes, of)| bytes / of);
        let rate = |count: f64| seconds.filter(|s| *s > 0.0).map(|s| count / s);
        let end = self.end.filter(|s| (0.0..1e9).contains(s)).unwrap_or(0.0);
        Sample {
            end_us: (end * 1e6).round() as u64,
            interval_us: (seconds.unwrap_or(0.0) * 1e6).round() as u64,
            packets,
            pps: packets.and_then(|p| rate(p as f64)),
            bps: self.bits_per_second.filter(|b| b.is_finite() && *b >= 0.0),
            lost: self.lost_packets.and_then(whole),
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
        let totals = &mut report.totals;
        let counted = ours.packets.and_then(whole).filter(|_| side == Side::Generator);
        totals.bytes = Some(bytes);
        totals.packets = datagram.map(|of| bytes / of).or(counted);
        totals.seconds = ours.seconds.filter(|s| (0.0..1e9).contains(s));
        totals.lost = lost(&self.sum_received).or(lost(&self.sum));
        totals.said = true;
    }
}

/// A count, which JSON gives as any number.
fn whole(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then(|| number.round() as u64)
}
