//! The messages, each a JSON object on a line: `{"id": 7, "what": "go", "with": {"at_ns": 12}}`.
//!
//! Fields that are not known are passed over, so that a newer side may say more; a message that is not known is answered by an
//! error. Times are of the agent's CLOCK_MONOTONIC, in nanoseconds, unless they say otherwise.

use super::spec::{Order, Port, shown};
use super::{LONGEST, Versions};
use linerate_measure::counters::{PortCounters, QueueCounters};
use linerate_measure::record::{CpuShare, HostFacts};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is asked of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Request {
    /// The first message.
    Hello {
        /// What the controller speaks.
        protocol: Versions,
        /// Its version.
        linerate: String,
        /// What it can do beyond that.
        #[serde(default)]
        features: Vec<String>,
    },
    /// The controller is there. It has no answer.
    Heartbeat {},
    /// What time is it there?
    Clock {},
    /// What is this host?
    Facts {},
    /// Make a port.
    Prepare(Box<Port>),
    /// Give these ports up; all of them where none are named.
    Release {
        /// Names.
        #[serde(default)]
        ports: Vec<String>,
    },
    /// Be ready with these ports.
    Arm {
        /// Names.
        ports: Vec<String>,
        /// Their load, with its samples and answers.
        #[serde(flatten)]
        order: Order,
    },
    /// Start what is armed, at a moment of the agent's clock; at once where that is past.
    Go {
        /// When.
        at_ns: u64,
    },
    /// End the load.
    Stop {},
    /// What have these ports counted?
    Counters {
        /// Names.
        ports: Vec<String>,
    },
    /// The last message: end the load, give all ports up, and go.
    Goodbye {},
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Reply {
    /// The answer to a hello that can be agreed upon.
    Welcome {
        /// The version of the protocol that is spoken from now on.
        protocol: u32,
        /// The agent's version.
        linerate: String,
        /// What it can do beyond that.
        #[serde(default)]
        features: Vec<String>,
    },
    /// The agent is there.
    Heartbeat {},
    /// The time.
    Time {
        /// When the question was read.
        heard_ns: u64,
        /// When the answer was written.
        answered_ns: u64,
        /// The time of day then, in nanoseconds since 1970.
        wall_ns: u64,
    },
    /// The host.
    Facts(Box<Facts>),
    /// The port is there.
    Prepared(Box<Prepared>),
    /// The ports are gone.
    Released {},
    /// All is ready.
    Armed {},
    /// It will start.
    Going {},
    /// The first frame of a generator has left; a receiver counts.
    Began {
        /// The port.
        port: String,
        /// When.
        at_ns: u64,
    },
    /// The counters of a port at one moment of the load.
    Sample(Sample),
    /// The load has ended.
    Ended {
        /// When.
        at_ns: u64,
        /// Why.
        why: End,
        /// What went wrong while it ran.
        #[serde(default)]
        faults: Vec<String>,
        /// How busy the CPUs were.
        #[serde(default)]
        cpus: Vec<CpuShare>,
    },
    /// There is no load any more.
    Stopped {},
    /// What ports have counted.
    Counters {
        /// By name.
        ports: BTreeMap<String, PortCounters>,
    },
    /// The last message.
    Goodbye {
        /// Why, where nobody asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// It could not be done.
    Error(Fault),
}

/// Why a load has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its time, or its number of frames, was up.
    Done,
    /// It was stopped.
    Stopped,
    /// A port failed.
    Failed,
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// The counters of a port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The port.
    pub port: String,
    /// When they were read.
    pub at_ns: u64,
    /// Test frames since the start.
    pub frames: u64,
    /// By CPU and queue; once a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueCounters>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// As records have it.
    pub host: HostFacts,
    /// CPUs that may be used.
    pub cpus: Vec<u32>,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// Time of day, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Which boot of the kernel this is: agents that say the same share a kernel, and a clock.
    pub boot: String,
    /// Whether the agent runs as root.
    pub root: bool,
}

/// An interface of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: String,
    /// Its driver.
    pub driver: Option<String>,
    /// What kind of virtual link it is, where it is one.
    pub kind: Option<String>,
    /// Bit/s of its link, in millions; `None` where unknown or down.
    pub speed_mbps: Option<u32>,
    /// Largest packet.
    pub mtu: u32,
    /// Whether it is up.
    pub up: bool,
    /// Whether its link is there.
    pub carrier: bool,
    /// Receive and transmit queues.
    pub queues: (u32, u32),
    /// Descriptors of each receive and transmit queue, where the driver says.
    pub rings: Option<(u32, u32)>,
    /// What speaks against test traffic on it, in words; empty if nothing does.
    pub against: Vec<String>,
    /// Whether it is the one that the controller's connection comes in by: nothing is ever sent there.
    pub management: bool,
}

/// A port as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Its name.
    pub port: String,
    /// What it is: a backend's name
    pub kind: String,
    /// The interface.
    pub interface: Interface,
    /// The CPUs that it works on.
    pub cpus: Vec<u32>,
    /// What should be known about it.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}: {why} ({remedy})")]
pub struct Fault {
    /// What kind of fault it is.
    pub code: Code,
    /// What was tried.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The two sides speak no common version.
    Version,
    /// What was said is no message.
    Malformed,
    /// A message that this version does not know.
    Unknown,
    /// A message that has no place there.
    Order,
    /// Something else is being done.
    Busy,
    /// It must not be done: the interface leads elsewhere, or nobody agreed.
    Refused,
    /// It cannot be done, here or at all.
    Unsuitable,
    /// The system did not do it.
    System,
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// A line that is no message, with the number that it is answered under.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// Its number, where it has one.
    pub id: u64,
    /// [`Code::Unknown`] where it is only not known, [`Code::Malformed`] where it is no message at all.
    pub fault: Fault,
}

/// Messages of one direction.
pub trait Message: Serialize + DeserializeOwned {
    /// The names of all of them.
    const NAMES: &'static [&'static str];
}

impl Message for Request {
    const NAMES: &'static [&'static str] = &[
        "hello",
        "heartbeat",
        "clock",
        "facts",
        "prepare",
        "release",
        "arm",
        "go",
        "stop",
        "counters",
        "goodbye",
    ];
}

impl Message for Reply {
    const NAMES: &'static [&'static str] = &[
        "welcome",
        "heartbeat",
        "time",
        "facts",
        "prepared",
        "released",
        "armed",
        "going",
        "began",
        "sample",
        "ended",
        "stopped",
        "counters",
        "goodbye",
        "error",
    ];
}

impl Request {
    /// Whether a reply is the answer to this request.
    pub fn is_answered_by(&self, reply: &Reply) -> bool {
        use Request as Q;
        matches!(
            (self, reply),
            (_, Reply::Error(_))
                | (Q::Hello { .. }, Reply::Welcome { .. })
                | (Q::Clock {}, Reply::Time { .. })
                | (Q::Facts {}, Reply::Facts(_))
                | (Q::Prepare(_), Reply::Prepared(_))
                | (Q::Release { .. }, Reply::Released {})
                | (Q::Arm { .. }, Reply::Armed {})
                | (Q::Go { .. }, Reply::Going {})
                | (Q::Stop {}, Reply::Stopped {})
                | (Q::Counters { .. }, Reply::Counters { .. })
                | (Q::Goodbye {}, Reply::Goodbye { .. })
        )
    }
}

/// A message as a line, with its end.
pub fn encode<M: Message>(id: u64, message: &M) -> Vec<u8> {
    // The messages are maps with keys of text: there is nothing that JSON could not say.
    let mut value = serde_json::to_value(message).unwrap_or_default();
    value["id"] = id.into();
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Reads a line.
///
/// # Errors
/// It is no message, or none that is known.
pub fn decode<M: Message>(line: &[u8]) -> Result<(u64, M), Unread> {
    let malformed = |id, why: String| Unread { id, fault: Fault::malformed(why) };
    if line.len() > LONGEST {
        return Err(malformed(0, format!("it is longer than {LONGEST} bytes")));
    }
    let value =
        serde_json::from_slice::<Value>(line).map_err(|e| malformed(0, format!("it is no JSON: {e}")))?;
    let Value::Object(mut fields) = value else {
        return Err(malformed(0, "it is no JSON object".into()));
    };
    let id = fields.get("id").and_then(Value::as_u64).unwrap_or(0);
    let Some(Value::String(name)) = fields.remove("what") else {
        return Err(malformed(id, "it does not say what it is".into()));
    };
    if !M::NAMES.contains(&name.as_str()) {
        return Err(Unread { id, fault: Fault::unknown(&name) });
    }
    let with = fields.remove("with").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let message = serde_json::json!({ "what": name, "with": with });
    let message =
        serde_json::from_value(message).map_err(|e| malformed(id, format!("{name}: {}", shown_all(&e))))?;
    Ok((id, message))
}

/// serde repeats what it was given: of a flood, that would be the flood.
fn shown_all(error: &serde_json::Error) -> String {
    error.to_string().chars().take(300).map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl Fault {
    /// A line that is no message.
    pub fn malformed(why: impl Into<String>) -> Fault {
        Fault {
            code: Code::Malformed,
            what: "reading a message".into(),
            why: why.into(),
            remedy: "nothing but the protocol may pass there: no text of a shell's start-up files, and both sides linerate".into(),
        }
    }

    fn unknown(name: &str) -> Fault {
        Fault {
            code: Code::Unknown,
            what: format!("message '{}'", shown(name)),
            why: "this linerate does not know it".into(),
            remedy: "install the same version of linerate on both hosts".into(),
        }
    }

    /// Versions that have nothing in common.
    pub fn version(ours: Versions, theirs: Versions, their_linerate: &str, our_linerate: &str) -> Fault {
        let range = |v: Versions| match v.lowest == v.highest {
            true => v.highest.to_string(),
            false => format!("{} to {}", v.lowest, v.highest),
        };
        Fault {
            code: Code::Version,
            what: "agreeing on a protocol".into(),
            why: format!(
                "the controller (linerate {}) speaks version {}, this host's linerate {our_linerate} version {}",
                shown(their_linerate),
                range(theirs),
                range(ours)
            ),
            remedy: match theirs.lowest > ours.highest {
                true => format!("install linerate {} on this host", shown(their_linerate)),
                false => format!("install linerate {our_linerate} where the controller runs"),
            },
        }
    }

    /// A message that has no place there.
    pub fn order(what: impl Into<String>, why: impl Into<String>) -> Fault {
        let remedy = "the controller is at fault: report it with this message".into();
        Fault { code: Code::Order, what: what.into(), why: why.into(), remedy }
    }
}
