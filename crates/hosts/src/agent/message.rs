//! The messages, each a JSON object on a line: `{"id": 7, "what": "go", "with": {"at_ns": 12}}`.
//!
//! Unknown fields are ignored, so that a newer side may send more; an unknown message is answered by an error. Times are of the
//! agent's CLOCK_MONOTONIC, in nanoseconds.

use super::connecting::{EndCounts, Opening};
use super::{LONGEST, SPOKEN};
use crate::stamps::Stamps;
use crate::words::printable;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::CpuShare;
use linerate_plan::Backend;
use linerate_wire::{Filter, Load, Traffic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Request {
    /// The first message: the controller's version of the protocol, and of linerate.
    Hello { protocol: u32, linerate: String },
    /// The controller is there. It has no answer.
    Heartbeat {},
    /// Asks for the time of its clock.
    Clock {},
    /// Make a port.
    Prepare(Box<Port>),
    /// Give these ports up; all of them where none are named.
    Release { ports: Vec<String> },
    /// Be ready with these ports for their load, with its samples and answers, once it is this controller's turn on the host.
    Arm {
        ports: Vec<String>,
        #[serde(flatten)]
        order: Order,
    },
    /// Starts the armed load, at a moment of the agent's clock, or at once if that is past.
    Go { at_ns: u64 },
    /// End the load, or give the turn back.
    Stop {},
    /// Asks for the counters of these ports.
    Counters { ports: Vec<String> },
    /// Asks these ends of connections how far the connections of the load came.
    Connections { ports: Vec<String> },
    /// Asks for the stamps of the cards of these ports, since the start.
    Stamps { ports: Vec<String> },
    /// The last message: end the load, give all ports up, and go.
    Goodbye {},
}

/// A message of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Reply {
    /// The answer to a hello of the same version: the CPUs that may be used, and the name of the clock: agents that give the same
    /// one run on one machine. Empty where it has none.
    Welcome { cpus: Vec<u32>, clock: String },
    /// The agent is there.
    Heartbeat {},
    /// When the question was read, and when the answer was written.
    Time { heard_ns: u64, answered_ns: u64 },
    /// The order is done; of a go: it will start.
    Done {},
    /// The load is armed, after so many nanoseconds of waiting for another linerate on this host.
    Armed { waited_ns: u64 },
    /// The load is not armed: it is the turn of another linerate on this host, in words.
    Busy { by: String },
    /// A port is there, and what sends or counts, with the reason if that is not the fastest.
    Prepared {
        backend: Backend,
        why: Option<String>,
    },
    /// The first frame of a generator has left; a receiver counts.
    Began { port: String, at_ns: u64 },
    /// The test frames that a port has counted since the start, at one moment of the load.
    Sample(Sample),
    /// The load has ended: failures while it ran, and how busy the CPUs were.
    Ended {
        faults: Vec<String>,
        cpus: Vec<CpuShare>,
    },
    /// Counters of ports, by name.
    Counters {
        ports: BTreeMap<String, PortCounters>,
    },
    /// How far connections came, by the port's name.
    Connections { ports: BTreeMap<String, EndCounts> },
    /// The stamps of cards or drivers, by the port's name.
    Stamps { ports: BTreeMap<String, Stamps> },
    /// The last message; with the reason if it was not requested.
    Goodbye { why: Option<String> },
    /// The order could not be carried out.
    Error(Fault),
}

/// The count of a port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub port: String,
    /// When it was read.
    pub at_ns: u64,
    /// Test frames since the start; of a client, connections that it has attempted.
    pub frames: u64,
    /// Connections that have closed at this end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}: {why} ({remedy})")]
pub struct Fault {
    /// Kind of fault.
    pub code: Code,
    /// The operation.
    pub what: String,
    /// Why it failed.
    pub why: String,
    pub remedy: String,
}

/// Consequence of a fault for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A line is no message: the session ends.
    Malformed,
    /// A message is not known to this version: the session goes on.
    Unknown,
    /// A request was not carried out.
    #[serde(other)]
    Failed,
}

/// A message as a line, with its end.
pub fn encode<M: Serialize>(id: u64, message: &M) -> Vec<u8> {
    // The messages are maps with keys of text: there is nothing that JSON could not say.
    let message = serde_json::to_string(message).unwrap_or_default();
    format!("{{\"id\":{id},{}\n", message.trim_start_matches('{')).into_bytes()
}

/// Reads a line.
///
/// # Errors
/// The line is not a message, or an unknown one; with the number for the answer, if it has one.
pub fn decode<M: DeserializeOwned>(line: &[u8]) -> Result<(u64, M), (u64, Fault)> {
    let malformed = |id, why: String| (id, Fault::malformed(why));
    if line.len() > LONGEST {
        return Err(malformed(0, format!("it is longer than {LONGEST} bytes")));
    }
    let mut value = serde_json::from_slice::<Value>(line)
        .map_err(|e| malformed(0, format!("it is no JSON: {e}")))?;
    let Some(fields) = value.as_object_mut() else {
        return Err(malformed(0, "it is no JSON object".into()));
    };
    let id = fields.get("id").and_then(Value::as_u64).unwrap_or(0);
    fields
        .entry("with")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    let Some(name) = fields.get("what").and_then(Value::as_str).map(String::from) else {
        return Err(malformed(id, "it does not say what it is".into()));
    };
    serde_json::from_str(&value.to_string())
        .map(|message| (id, message))
        .map_err(|error| {
            let error = error.to_string();
            match error.starts_with(&format!("unknown variant `{name}`")) {
                true => (id, Fault::unknown(&name)),
                // serde repeats its input: for a flood, that would be the flood.
                false => malformed(id, format!("{}: {}", shown(&name), printable(&error, 300))),
            }
        })
}

impl Fault {
    /// A request that was not carried out.
    pub fn new(what: impl Into<String>, why: impl ToString, remedy: impl Into<String>) -> Fault {
        Fault {
            code: Code::Failed,
            what: what.into(),
            why: why.to_string(),
            remedy: remedy.into(),
        }
    }

    /// A line that is no message.
    pub fn malformed(why: impl ToString) -> Fault {
        let remedy = "nothing but the protocol may pass there: no text of a shell's start-up files, and both sides linerate";
        Fault {
            code: Code::Malformed,
            ..Fault::new("reading a message", why, remedy)
        }
    }

    fn unknown(name: &str) -> Fault {
        let what = format!("message '{}'", shown(name));
        let remedy = "install the same version of linerate on both hosts";
        Fault {
            code: Code::Unknown,
            ..Fault::new(what, "this linerate does not know it", remedy)
        }
    }

    /// A controller that speaks another version of the protocol.
    pub fn version(theirs: u32, their_linerate: &str, our_linerate: &str) -> Fault {
        let their_linerate = shown(their_linerate);
        let why = format!(
            "the controller (linerate {their_linerate}) speaks version {theirs}, this host's linerate {our_linerate} version {SPOKEN}"
        );
        let remedy = match theirs > SPOKEN {
            true => format!("install linerate {their_linerate} on this host"),
            false => format!("install linerate {our_linerate} where the controller runs"),
        };
        Fault::new("agreeing on a protocol", why, remedy)
    }

    /// A message that has no place there.
    pub fn order(what: impl Into<String>, why: impl ToString) -> Fault {
        Fault::new(
            what,
            why,
            "the controller is at fault: report it with this message",
        )
    }
}

/// A line that is longer than any message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {LONGEST} bytes")]
pub struct TooLong;

/// The end of a stream that has not become a line yet.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    dead: bool,
}

impl Lines {
    /// Takes bytes and hands on each line that they end, without its end.
    ///
    /// # Errors
    /// A line is too long: nothing after it makes sense, now or later.
    pub fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), TooLong> {
        while let Some(end) = memchr::memchr(b'\n', bytes).filter(|_| !self.dead) {
            if self.begun.len() + end > LONGEST {
                break;
            }
            if self.begun.is_empty() {
                each(without_return(&bytes[..end]));
            } else {
                self.begun.extend_from_slice(&bytes[..end]);
                each(without_return(&self.begun));
                self.begun.clear();
            }
            bytes = &bytes[end + 1..];
        }
        if self.dead || self.begun.len() + bytes.len() > LONGEST {
            *self = Lines {
                begun: Vec::new(),
                dead: true,
            };
            return Err(TooLong);
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }
}

/// Terminals (ssh -t) end lines with both.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The role of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The port sends.
    Generator(Box<Traffic>),
    /// The port counts.
    Receiver(Filter),
    /// The port opens connections, and is their client. `server`: the interface of their server, if this host has that as well.
    Client {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
    /// The port is the server of connections.
    Server,
}

/// A port that is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Name from now on; the port replaces one of the same name.
    pub name: String,
    /// Interface of the port.
    pub interface: String,
    /// Whether the user has said that this interface leads to nothing but the lab (RFC 6815).
    pub isolated: bool,
    /// How frames leave or arrive: one of linerate's own backends. `linerate` leaves the choice to the agent.
    pub backend: Backend,
    /// The CPUs that it works on, one thread on each; the agent's choice where none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Generator or receiver.
    pub role: Role,
}

/// The load that a host's ports are armed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Who measures: agents with the same name here have their turn on a host together.
    pub turn: String,
    /// The load of each generator; receivers report for its duration.
    pub load: Load,
    /// Between two samples of the counters, in nanoseconds.
    pub sample_ns: u64,
    /// Whether receivers answer each frame, and generators count the answers that arrive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer: bool,
    /// How far the clocks of streams' generators are ahead of the receivers', in nanoseconds, by the low byte of the stream. Streams
    /// that are not named are stamped by the receiver's own clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead_ns: Vec<(u8, i64)>,
    /// The connections, where the ports are ends of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Box<Opening>>,
}

/// More samples than a thousand a second say nothing, and cost.
const SHORTEST_SAMPLE_NS: u64 = 1_000_000;
/// Frames between two looks at the clock: a load must end at its time.
const MOST_UNSTAMPED: u32 = 65_536;
/// Threads of a port.
const MOST_CPUS: usize = 256;
/// Letters of a port's name.
const LONGEST_NAME: usize = 40;
/// Bytes of the name of who measures.
pub const LONGEST_TURN: usize = 100;
/// The kernel's limit on an interface's name, less its end (IFNAMSIZ).
const LONGEST_INTERFACE: usize = 15;

impl Port {
    /// Refuses impossible ports before they are made.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let refuse = |why: &str| {
            let what = format!("preparing port {}", shown(&self.name));
            Err(Fault::order(what, why))
        };
        if !is_label(&self.name, LONGEST_NAME) {
            return refuse(&format!("its name must have 1 to {LONGEST_NAME} letters"));
        }
        if !is_interface(&self.interface) {
            let name = shown(&self.interface);
            return refuse(&format!("'{name}' is not a valid interface name"));
        }
        if self.cpus.len() > MOST_CPUS || self.cpus.iter().any(|cpu| *cpu >= 8192) {
            return refuse(&format!(
                "it can have at most {MOST_CPUS} CPUs, of numbers below 8192"
            ));
        }
        if self.cpus.iter().collect::<BTreeSet<_>>().len() != self.cpus.len() {
            return refuse("a CPU is named twice");
        }
        if !self.backend.is_own() {
            return refuse(&format!("an agent has no backend {}", self.backend));
        }
        let possible = match &self.role {
            Role::Generator(traffic) if traffic.stamp_every > MOST_UNSTAMPED => {
                return refuse(&format!(
                    "one frame in 1 to {MOST_UNSTAMPED} can be stamped"
                ));
            }
            Role::Generator(traffic) => traffic.check(),
            Role::Receiver(filter) => filter.check(),
            Role::Client { server } => {
                let named = server.iter().all(|server| is_interface(server));
                return if named {
                    Ok(())
                } else {
                    refuse("its server has no valid interface name")
                };
            }
            Role::Server => Ok(()),
        };
        possible.or_else(|error| refuse(&error.to_string()))
    }
}

/// A text of 1 to so many bytes, without control characters.
fn is_label(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Names are put into paths of /sys.
fn is_interface(name: &str) -> bool {
    let plain = name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    plain && is_label(name, LONGEST_INTERFACE) && !matches!(name, "." | "..")
}

/// The beginning of a text that came from elsewhere, fit to be printed.
pub(super) fn shown(text: &str) -> String {
    printable(text, 60)
}

impl Order {
    /// Refuses impossible loads.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let refuse = |why: &str| Err(Fault::order("arming the load", why));
        if let Err(error) = self.load.check() {
            return refuse(&error.to_string());
        }
        if !is_label(&self.turn, LONGEST_TURN) {
            return refuse(&format!("who measures must have 1 to {LONGEST_TURN} bytes"));
        }
        if let Some(opening) = &self.opening {
            opening.check()?;
        }
        match self.sample_ns >= SHORTEST_SAMPLE_NS {
            true => Ok(()),
            false => refuse("samples are a millisecond apart at least"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_arrive(text in "[a-c\n]{0,60}", cut in 1usize..7) {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.as_bytes().chunks(cut) {
                lines.take(piece, |line| found.push(String::from_utf8(line.to_vec()).unwrap())).unwrap();
            }
            let whole = text.rsplit_once('\n').map_or(Vec::new(), |(whole, _)| whole.split('\n').collect());
            prop_assert_eq!(found, whole);
        }
    }

    #[test]
    fn a_flood_without_end_is_refused_and_not_kept() {
        let mut lines = Lines::default();
        let mib = vec![b'x'; 1 << 20];
        let taken = (0..100)
            .take_while(|_| lines.take(&mib, |_| panic!("no line ended")).is_ok())
            .count();
        assert_eq!(taken, LONGEST >> 20);
        assert!(lines.begun.capacity() == 0);
        assert_eq!(
            lines.take(b"\n{}\n", |_| panic!("it is dead")),
            Err(TooLong)
        );
    }

    #[test]
    fn a_long_line_that_ends_in_the_same_piece_is_refused() {
        let mut bytes = vec![b'x'; LONGEST + 1];
        bytes.push(b'\n');
        assert_eq!(
            Lines::default().take(&bytes, |_| panic!("too long")),
            Err(TooLong)
        );
    }
}

#[cfg(test)]
mod spec_tests {
    use super::super::tests::{generator, order, receiver};
    use super::*;

    #[test]
    fn what_can_be_passes() {
        generator().check().unwrap();
        receiver().check().unwrap();
        order().check().unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let port = |change: fn(&mut Port)| {
            let mut port = generator();
            change(&mut port);
            port.check().unwrap_err()
        };
        port(|p| p.name.clear());
        port(|p| p.interface = "../x".into());
        port(|p| p.interface = "..".into());
        port(|p| p.cpus = vec![1, 1]);
        port(|p| p.cpus = vec![9000]);
        port(|p| {
            p.role = Role::Receiver(Filter {
                streams: 0,
                ..Filter::of_campaign(0)
            })
        });
        port(|p| p.backend = Backend::PktGen);
        let traffic = |change: fn(&mut Traffic)| {
            let mut port = generator();
            let Role::Generator(traffic) = &mut port.role else {
                unreachable!()
            };
            change(traffic);
            port.check().unwrap_err()
        };
        traffic(|t| t.mix.pattern = vec![63]);
        traffic(|t| t.stamp_every = u32::MAX);
        traffic(|t| t.frame.family = linerate_wire::Family::V6);
        Order {
            sample_ns: 0,
            ..order()
        }
        .check()
        .unwrap_err();
        Order {
            load: Load {
                batch: 0,
                ..order().load
            },
            ..order()
        }
        .check()
        .unwrap_err();
    }
}
