//! Things that frames meet on their way through a DUT beyond plain routing, with its share of a frame's time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything beyond plain routing that frames meet on their way through a DUT, by its own answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnPath {
    /// The entries, those with the largest share first; empty: nothing beyond plain routing.
    pub entries: Vec<PathEntry>,
    /// The way of the test's addresses through the DUT: `to 198.19.0.2: via 198.19.1.2, device out0, table main`.
    pub ways: Vec<String>,
    /// Parts of the list that are not known, each with the reason.
    pub not_known: Vec<String>,
    /// Whether the kernel was sampled: without a profile, no share is known.
    pub profiled: bool,
}

/// One thing on the way of frames.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathEntry {
    /// Kind of the entry.
    pub kind: Met,
    /// The entry in words: `htb, 3 classes`.
    pub name: String,
    /// The device or hook where it is: `out0`, `in0 ingress`; empty where it is the whole DUT's.
    pub place: String,
    /// The functions of the kernel that belong to it; `*` stands for any ending. Empty: it has none of its own.
    pub functions: Vec<String>,
    /// The part of a frame's time that these functions take, 0..1, with all that they call; `None` without a profile, without functions, or
    /// where it is within three standard errors of 0.
    pub share: Option<f64>,
    /// This time in nanoseconds; `None` where frames were paced.
    pub ns: Option<f64>,
    /// Standard error of the share, of the number of samples; `None` without a profile or functions.
    pub error: Option<f64>,
}

/// Kinds of things that frames meet.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Met {
    /// A route that is more than a next hop in the main table.
    #[default]
    Route,
    /// A policy rule that is none of the system's own.
    PolicyRule,
    /// IPsec policies and states.
    Ipsec,
    /// Hooks of a packet filter, with their rules.
    PacketFilter,
    /// A set, map or table of a packet filter.
    Set,
    /// Rules that log.
    Logging,
    /// A queue to a program: NFQUEUE, divert.
    UserQueue,
    /// The tracking of connections.
    ConnectionTracking,
    /// An eBPF program.
    Program,
    /// Filters of traffic control.
    TrafficFilter,
    /// A queueing discipline that is not the system's default.
    QueueingDiscipline,
    /// A socket that sees the frames.
    PacketSocket,
    /// A virtual device.
    Device,
    /// A setting that differs from the kernel's default.
    Setting,
    /// Tracing that is in force.
    Tracing,
    /// Another hook of the kernel.
    Hook,
}

impl Met {
    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Met::Route => "route",
            Met::PolicyRule => "policy rule",
            Met::Ipsec => "IPsec",
            Met::PacketFilter => "packet filter",
            Met::Set => "set",
            Met::Logging => "logging",
            Met::UserQueue => "queue to a program",
            Met::ConnectionTracking => "connection tracking",
            Met::Program => "eBPF program",
            Met::TrafficFilter => "traffic filter",
            Met::QueueingDiscipline => "queueing discipline",
            Met::PacketSocket => "packet socket",
            Met::Device => "virtual device",
            Met::Setting => "setting",
            Met::Tracing => "tracing",
            Met::Hook => "hook",
        }
    }
}
