//! Generators and receivers that hosts have, linerate's own beside those of others: their command lines, and what they print.
//!
//! Each tool has two halves. `generator` and `receiver` turn [`Traffic`] into an [`Invocation`], a vector of arguments and never
//! a shell's text, or a [`Refusal`] that says what the tool cannot do. A [`Monitor`] takes what it prints, in pieces of any
//! size and from hosts that cannot be trusted, and keeps a [`Report`]: samples, totals, state, and what went wrong with what
//! to do about it. Memory is bounded whatever comes.

pub mod fault;
mod iperf3;
mod linerate;
mod lines;
mod monitor;
mod netperf;
mod pkt_gen;
mod report;
mod traffic;
mod trafgen;

pub use fault::{Fault, FaultKind};
pub use monitor::{Exit, Monitor};
pub use report::{MOST_SAMPLES, Report, Sample, State, Totals};
pub use traffic::{Endpoints, Invocation, Refusal, Traffic, Transport};

pub use linerate_plan::lab::Tool;

/// Which side of the DUT a tool stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It sends.
    Generator,
    /// It counts what arrives.
    Receiver,
}

/// The command that sends this traffic.
///
/// # Errors
/// What the tool cannot do.
pub fn generator(tool: Tool, traffic: &Traffic) -> Result<Invocation, Refusal> {
    traffic.checked(tool)?;
    match tool {
        Tool::PktGen => pkt_gen::generator(traffic),
        Tool::Iperf3 => iperf3::generator(traffic),
        Tool::Netperf => netperf::generator(traffic),
        Tool::Trafgen => trafgen::generator(traffic),
        Tool::Linerate => linerate::generator(traffic),
    }
}

/// The command that receives this traffic. Its `interface` is that of the receiver. It has to run before the generator.
///
/// # Errors
/// What the tool cannot do.
pub fn receiver(tool: Tool, traffic: &Traffic) -> Result<Invocation, Refusal> {
    traffic.checked(tool)?;
    match tool {
        Tool::PktGen => pkt_gen::receiver(traffic),
        Tool::Iperf3 => iperf3::receiver(traffic),
        Tool::Netperf => netperf::receiver(traffic),
        Tool::Trafgen => Err(Refusal::of(tool, "receive: let pkt-gen, iperf3 or linerate receive")),
        Tool::Linerate => linerate::receiver(traffic),
    }
}

/// Whether the tool prints its samples as they come, so that it can be ended when enough was seen. The others print what they know when
/// they end by themselves.
pub fn is_live(tool: Tool) -> bool {
    matches!(tool, Tool::PktGen | Tool::Linerate)
}

#[cfg(test)]
mod argument_tests;
#[cfg(test)]
mod tests;
