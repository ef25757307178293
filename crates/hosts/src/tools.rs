//! Generators and receivers that hosts have, linerate's own beside other tools: their command lines and their output.
//!
//! Each tool has two halves. [`command`] turns a [`Task`] into an [`Invocation`], a vector of arguments and never a shell's text,
//! or a refusal that names the missing capability. A [`Monitor`] takes its output, in pieces of any size and from hosts that
//! cannot be trusted, and keeps a [`Report`]: samples, totals, state, and faults with remedies. Memory is bounded whatever comes.

#[cfg(test)]
mod argument_tests;
pub mod fault;
pub mod http;
mod iperf3;
mod linerate;
mod monitor;
mod netperf;
mod pkt_gen;
#[cfg(test)]
mod tests;
mod trafgen;

use fault::Signs;
pub use fault::{Fault, FaultKind};
pub use iperf3::between_end_hosts;
use linerate_plan::Backend;
use linerate_plan::backend::Unsuitable;
use linerate_wire::{EndpointRange, FlowSpace, FrameSpec, Load, MacAddr, Traffic, WireError};
use monitor::Parse;
pub use monitor::{MOST_SAMPLES, Monitor, Report, Sample, State, Tcp, Totals};
use std::net::IpAddr;

/// Which side of the DUT a tool stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that sends.
    Generator,
    /// The side that counts received frames.
    Receiver,
}

/// The command that sends or receives. A receiver's task has the interface of the receiver; it has to run before the generator.
///
/// # Errors
/// The capability that the tool lacks.
pub fn command(tool: Backend, side: Side, task: &Task) -> Result<Invocation, Unsuitable> {
    tool.check(&task.traffic)?;
    let made = task.check().and_then(|()| match (tool, side) {
        (Backend::PktGen, Side::Generator) => pkt_gen::generator(task),
        (Backend::PktGen, Side::Receiver) => Ok(pkt_gen::receiver(task)),
        (Backend::Iperf3, Side::Generator) => iperf3::generator(task),
        (Backend::Iperf3, Side::Receiver) => iperf3::receiver(task),
        (Backend::Netperf, Side::Generator) => netperf::generator(task),
        (Backend::Netperf, Side::Receiver) => netperf::receiver(task),
        (Backend::Trafgen, Side::Generator) => trafgen::generator(task),
        (Backend::Trafgen, Side::Receiver) => {
            Err("receive: let pkt-gen, iperf3 or linerate receive".into())
        }
        (_, Side::Generator) => linerate::generator(tool, task),
        (_, Side::Receiver) => Ok(linerate::receiver(tool, task)),
    });
    made.map_err(|what| Unsuitable {
        backend: tool,
        what,
    })
}

/// The parser of a tool's output, and its messages that are faults. The one for linerate itself serves all of its own backends.
fn parser(tool: Backend, side: Side) -> (Box<dyn Parse>, &'static Signs) {
    match tool {
        Backend::PktGen => (Box::new(pkt_gen::PktGen::new(side)), pkt_gen::FAULTS),
        Backend::Iperf3 => (Box::new(iperf3::Iperf3::new(side)), iperf3::FAULTS),
        Backend::Netperf => (
            Box::new(netperf::Netperf { side, began: None }),
            netperf::FAULTS,
        ),
        Backend::Trafgen => (Box::new(trafgen::Trafgen::default()), trafgen::FAULTS),
        _ => (Box::new(linerate::Linerate { side }), linerate::FAULTS),
    }
}

/// The frames that a tool has to send or to count.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The interface of the host that the tool runs on.
    pub interface: String,
    /// The frames. For TCP streams of iperf3 and netperf, the length is that of a full segment's frame.
    pub traffic: Traffic,
    /// How fast and how long: whole seconds, rounded up.
    pub load: Load,
    /// Threads, or parallel streams.
    pub threads: u32,
    /// Seconds to wait for the link, which opening netmap takes down.
    pub link_wait_s: u32,
}

/// Bytes without FCS of the header of Ethernet.
const ETHERNET: u32 = 14;
const FCS: u32 = 4;
/// A load of more than a day is a mistake.
const LONGEST_S: u32 = 86_400;

impl Task {
    /// Seconds that the load lasts.
    pub fn seconds(&self) -> u32 {
        self.load
            .duration_ns
            .div_ceil(1_000_000_000)
            .try_into()
            .unwrap_or(u32::MAX)
    }

    /// The length of its frames with FCS: the longest, if there are several.
    pub fn frame_len_fcs(&self) -> u32 {
        self.traffic.mix.max_len_fcs().into()
    }

    /// Bytes of payload in a frame; without TCP's options.
    pub fn payload(&self) -> u32 {
        let headers = self.traffic.frame.l3_len() + self.traffic.frame.l4_len();
        self.frame_len_fcs()
            .saturating_sub(ETHERNET + headers as u32 + FCS)
    }

    /// Refuses tasks that no tool can do, and texts that could be read as an option or a shell's text.
    pub(super) fn check(&self) -> Refusable<()> {
        let name = &self.interface;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@{}/+".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.chars().all(plain) {
            return Err(format!(
                "use an interface named {name:?}: that is no interface's name"
            ));
        }
        // Tools do not sign their frames.
        let unsigned = FrameSpec {
            signed: false,
            ..self.traffic.frame
        };
        if let Err(error) = (Traffic {
            frame: unsigned,
            ..self.traffic.clone()
        })
        .check()
        {
            return Err(format!("send this: {error}"));
        }
        if !(1..=LONGEST_S).contains(&self.seconds()) {
            return Err(format!("run for {} s: 1 to {LONGEST_S}", self.seconds()));
        }
        if self.threads == 0 || self.threads > 1024 {
            return Err(format!("run {} threads: 1 to 1024", self.threads));
        }
        match self.load.rate {
            Some(rate) if !(rate.is_finite() && rate >= 1.0) => {
                Err(format!("send {rate} frames/s: at least 1"))
            }
            _ => Ok(()),
        }
    }

    /// The ends of its flows.
    pub(super) fn ends(&self) -> [&EndpointRange; 2] {
        [
            self.traffic.flows.source(),
            self.traffic.flows.destination(),
        ]
    }

    /// Number of frames by the rate and the time; `None` without a rate.
    pub(super) fn frames(&self) -> Option<u64> {
        self.load
            .rate
            .map(|rate| (rate * f64::from(self.seconds())).round() as u64)
    }

    /// The frames' source address; `None` for the card's own.
    pub(super) fn source_mac(&self) -> Option<MacAddr> {
        Some(self.traffic.frame.src_mac).filter(|mac| *mac != MacAddr::default())
    }

    /// The frames' destination address: the DUT's port. Tools that send through the host's stack find it by ARP.
    pub(super) fn destination_mac(&self) -> Refusable<MacAddr> {
        let mac = Some(self.traffic.frame.dst_mac).filter(|mac| *mac != MacAddr::default());
        mac.ok_or("send without a destination MAC: it asks no ARP".into())
    }

    /// For tools that send from one socket: the two addresses. Refuses tasks that need frames of one's own.
    pub(super) fn through_the_stack(&self) -> Refusable<[IpAddr; 2]> {
        if self.ends().iter().any(|end| end.addresses() > 1) {
            let what = "vary addresses: it sends from the host's own address to one server; use pkt-gen, trafgen or linerate";
            return Err(what.into());
        }
        match self.source_mac() {
            Some(_) => {
                Err("set the frames' source address: it sends through the host's own stack".into())
            }
            None => Ok(self.ends().map(EndpointRange::first_address)),
        }
    }
}

/// Something that a tool can do, or a refusal: it completes the sentence "the tool cannot ...".
pub(super) type Refusable<T = Invocation> = Result<T, String>;

/// One flow between two addresses, for tools that send through the host's own stack.
///
/// # Errors
/// The addresses are of different IP versions.
pub fn one_flow(source: IpAddr, destination: IpAddr, port: u16) -> Result<FlowSpace, WireError> {
    let one = |address| EndpointRange::new(address, address, port, port);
    FlowSpace::new(one(source)?, one(destination)?)
}

/// A command to run on the host. Arguments are words, not to be joined without quoting.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The program and its arguments. They contain the deadline, so the load ends even if it is not stopped.
    pub argv: Vec<String>,
    /// Seconds after which it ends by itself in any case.
    pub limit_s: u32,
    /// Seconds that it spends before its first frame, at most.
    pub lead_s: u32,
    /// The signal that ends it early so that it still prints its totals, without `SIG`.
    pub stop_signal: &'static str,
}

impl Invocation {
    /// A command that is ended by this signal, after at most `seconds`; `lead_s`: see [`Invocation::lead_s`].
    ///
    /// Puts timeout(1) in front: FreeBSD 10.3, OpenBSD 7.0, NetBSD 8 and every Linux have it. In the foreground, because GNU's
    /// otherwise makes a process group of its own, and a kill of the original group would leave the load running.
    pub(super) fn bounded(signal: &'static str, lead_s: u32, seconds: u32, command: Words) -> Self {
        let words = [
            "timeout",
            "--foreground",
            "-s",
            signal,
            "-k",
            "5",
            &seconds.to_string(),
        ];
        let argv = words
            .into_iter()
            .map(String::from)
            .chain(command.0)
            .collect();
        Invocation {
            argv,
            limit_s: seconds + 5,
            lead_s,
            stop_signal: signal,
        }
    }
}

/// The words of a command.
pub(super) struct Words(Vec<String>);

impl Words {
    pub fn new<const N: usize>(words: [&str; N]) -> Words {
        Words(words.map(String::from).into())
    }

    pub fn word(mut self, word: impl ToString) -> Words {
        self.0.push(word.to_string());
        self
    }

    /// An option with its value.
    pub fn option(self, option: &str, value: impl ToString) -> Words {
        self.word(option).word(value)
    }
}
