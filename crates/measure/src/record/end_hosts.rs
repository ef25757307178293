//! TCP between end hosts: the path, and what was seen of it. Vocabulary of RFC 6349.

use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathOf {
    /// Round-trip time without load, in nanoseconds: half of it in each direction.
    pub rtt_ns: u64,
    /// Bit/s at layer 1 in each direction; `None`: no limit.
    pub rate: Option<f64>,
    /// Bytes of payload in a full segment, which is the frame of all rates: goodput is frames/s x 8 x this.
    pub payload: u32,
    /// Who delays the frames: `linerate` or `netem`, and why.
    pub by: String,
}

/// Bytes of a full segment's frame at layer 1 beyond its payload: preamble, gap, Ethernet, FCS, IPv4, and TCP with time stamps.
const OVERHEAD: f64 = 90.0;

impl PathOf {
    /// Frames/s at which full segments fill the path: the maximum achievable TCP throughput of RFC 6349, section 4.1.1, at this MTU.
    pub fn achievable(&self) -> Option<f64> {
        Some(self.rate? / (8.0 * (f64::from(self.payload) + OVERHEAD)))
    }

    /// Bit/s of payload of a rate in frames/s: goodput, at layer 4.
    pub fn goodput(&self, frames_per_second: f64) -> f64 {
        frames_per_second * 8.0 * f64::from(self.payload)
    }

    /// The bandwidth-delay product in bytes at layer 1.
    pub fn product(&self) -> Option<f64> {
        Some(self.rate? * self.rtt_ns as f64 / 8e9)
    }
}

/// One direction of a path, over a whole trial. A super-frame counts as its segments; with netem, whose kernel passes it on whole, as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCounts {
    /// Frames that came in…
    pub frames_in: u64,
    /// …went out…
    pub frames_out: u64,
    /// …found the queue full…
    pub frames_dropped: u64,
    /// …and were not taken by the host at the other end.
    pub frames_refused: u64,
    /// Bytes of these as IPv4 packets, the headers of a super-frame once.
    pub bytes_in: u64,
    /// See `bytes_in`.
    pub bytes_out: u64,
    /// See `bytes_in`.
    pub bytes_dropped: u64,
    /// See `bytes_in`.
    pub bytes_refused: u64,
    /// How much later than due the frames went out, in nanoseconds, all together.
    pub late_ns: u64,
    /// The latest of them.
    pub latest_ns: u64,
}

impl PathCounts {
    /// Whether every frame that came in has gone out or is known to be lost.
    pub fn is_whole(&self) -> bool {
        self.frames_in == self.frames_out + self.frames_dropped + self.frames_refused
    }
}

/// TCP in one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpTrial {
    /// Round-trip times of handshakes before the load, in nanoseconds.
    pub idle_ns: Vec<u64>,
    /// Round-trip time under load as the sender's TCP smooths it: least, mean and largest, in nanoseconds; `None`: iperf3 does not tell.
    pub loaded_ns: Option<[u64; 3]>,
    /// The largest congestion window in bytes.
    pub most_cwnd: Option<u64>,
    /// Segments that were sent again, by the sender's kernel.
    pub retransmits: Option<u64>,
    /// Bytes that iperf3's sender wrote…
    pub written: u64,
    /// …the path saw, each once; `None` where it does not look into frames…
    pub sent: Option<u64>,
    /// …and again…
    pub again: Option<u64>,
    /// …the receiver acknowledged on the path…
    pub acknowledged: Option<u64>,
    /// …and iperf3's receiver read.
    pub read: u64,
    /// The path: there and back.
    pub path: Vec<PathCounts>,
}

/// TCP of a slot, over its valid trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// Bit/s of payload that the receiving program read (layer 4).
    pub bits: Estimate,
    /// Bit/s of payload with which full segments fill the path; `None` without a rate.
    pub achievable: Option<f64>,
    /// Median round-trip time without load, in nanoseconds.
    pub idle_ns: f64,
    /// Median of the mean round-trip times under load.
    pub loaded_ns: Option<f64>,
    /// Buffer delay of RFC 6349, section 4.3: by how much the load makes the round-trip time longer, as a share of it without load.
    pub buffer_delay: Option<f64>,
    /// TCP efficiency of RFC 6349, section 4.2: the share of the sent bytes that was not sent again; `None` where the path does not see it.
    pub efficiency: Option<f64>,
    /// Bytes in flight on average: goodput x round-trip time under load. No window is smaller.
    pub in_flight: Option<f64>,
    /// By how much frames left the path later than due, on average, in nanoseconds; 0 where it does not know.
    pub late_ns: f64,
}
