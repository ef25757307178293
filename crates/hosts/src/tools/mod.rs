//! Generators and receivers that hosts have, linerate's own beside other tools: their command lines and their output.
//!
//! Each tool has two halves. [`command`] turns a [`Task`] into an [`Invocation`], a vector of arguments and never a shell's text,
//! or a refusal that names the missing capability. A [`Monitor`] takes its output, in pieces of any size and from hosts that
//! cannot be trusted, and keeps a [`Report`]: samples, totals, state, and faults with remedies. Memory is bounded whatever comes.

pub mod fault;
mod iperf3;
mod linerate;
mod lines;
mod monitor;
mod netperf;
mod pkt_gen;
mod report;
mod task;
mod trafgen;

pub use fault::{Fault, FaultKind};
pub use monitor::{Exit, Monitor};
pub use report::{MOST_SAMPLES, Report, Sample, State, Totals};
use task::Checked;
pub use task::{Invocation, Task, one_flow};

use fault::Signs;
use linerate_plan::Backend;
use linerate_plan::backend::Unsuitable;
use monitor::Parse;

/// Which side of the DUT a tool stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It sends.
    Generator,
    /// It counts received frames.
    Receiver,
}

/// A program that sends or counts.
struct Program {
    backend: Backend,
    generator: fn(&Checked<'_>) -> Result<Invocation, Unsuitable>,
    receiver: fn(&Checked<'_>) -> Result<Invocation, Unsuitable>,
    parser: fn(Side) -> Box<dyn Parse>,
    /// Its own messages that are faults.
    faults: &'static Signs,
}

/// The programs of hosts; `linerate_plan::backend` has the capabilities of each. The one for linerate itself serves all of its
/// own backends.
static PROGRAMS: [Program; 5] = [
    Program {
        backend: Backend::PktGen,
        generator: pkt_gen::generator,
        receiver: pkt_gen::receiver,
        parser: |side| Box::new(pkt_gen::PktGen::new(side)),
        faults: &pkt_gen::FAULTS,
    },
    Program {
        backend: Backend::Iperf3,
        generator: iperf3::generator,
        receiver: iperf3::receiver,
        parser: |side| Box::new(iperf3::Iperf3::new(side)),
        faults: &iperf3::FAULTS,
    },
    Program {
        backend: Backend::Netperf,
        generator: netperf::generator,
        receiver: netperf::receiver,
        parser: |side| Box::new(netperf::Netperf::new(side)),
        faults: &netperf::FAULTS,
    },
    Program {
        backend: Backend::Trafgen,
        generator: trafgen::generator,
        receiver: |wanted| wanted.cannot("receive: let pkt-gen, iperf3 or linerate receive"),
        parser: |_| Box::new(trafgen::Trafgen::default()),
        faults: &trafgen::FAULTS,
    },
    Program {
        backend: Backend::Linerate,
        generator: linerate::generator,
        receiver: linerate::receiver,
        parser: |side| Box::new(linerate::Linerate::new(side)),
        faults: &linerate::FAULTS,
    },
];

fn program(tool: Backend) -> &'static Program {
    PROGRAMS.iter().find(|row| row.backend == tool).unwrap_or(&PROGRAMS[4])
}

/// The command that sends or receives. A receiver's task has the interface of the receiver; it has to run before the generator.
///
/// # Errors
/// The capability that the tool lacks.
pub fn command(tool: Backend, side: Side, task: &Task) -> Result<Invocation, Unsuitable> {
    let wanted = task.checked(tool)?;
    match side {
        Side::Generator => (program(tool).generator)(&wanted),
        Side::Receiver => (program(tool).receiver)(&wanted),
    }
}

#[cfg(test)]
mod argument_tests;
#[cfg(test)]
mod tests;
