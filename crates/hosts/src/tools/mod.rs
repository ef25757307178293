//! Generators and receivers that hosts have, linerate's own beside other tools: their command lines and their output.
//!
//! Each tool has two halves. [`command`] turns a [`Task`] into an [`Invocation`], a vector of arguments and never a shell's text,
//! or a refusal that names the missing capability. A [`Monitor`] takes its output, in pieces of any size and from hosts that
//! cannot be trusted, and keeps a [`Report`]: samples, totals, state, and faults with remedies. Memory is bounded whatever comes.

pub mod fault;
mod iperf3;
mod linerate;
mod monitor;
mod netperf;
mod pkt_gen;
mod task;
mod trafgen;

pub use fault::{Fault, FaultKind};
use linerate_plan::Backend;
use linerate_plan::backend::Unsuitable;
use monitor::Parse;
pub use monitor::{MOST_SAMPLES, Monitor, Report, Sample, State, Totals};
pub use task::{Invocation, Task, one_flow};

/// Which side of the DUT a tool stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It sends.
    Generator,
    /// It counts received frames.
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
        (Backend::Trafgen, Side::Receiver) => Err("receive: let pkt-gen, iperf3 or linerate receive".into()),
        (_, Side::Generator) => linerate::generator(tool, task),
        (_, Side::Receiver) => Ok(linerate::receiver(tool, task)),
    });
    made.map_err(|what| Unsuitable { backend: tool, what })
}

/// The parser of a tool's output. The one for linerate itself serves all of its own backends.
fn parser(tool: Backend, side: Side) -> Box<dyn Parse> {
    match tool {
        Backend::PktGen => Box::new(pkt_gen::PktGen::new(side)),
        Backend::Iperf3 => Box::new(iperf3::Iperf3 { side, document: Vec::new() }),
        Backend::Netperf => Box::new(netperf::Netperf { side, began: None }),
        Backend::Trafgen => Box::new(trafgen::Trafgen::default()),
        _ => Box::new(linerate::Linerate { side }),
    }
}

#[cfg(test)]
mod argument_tests;
#[cfg(test)]
mod tests;
