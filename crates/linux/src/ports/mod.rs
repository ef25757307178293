//! Ports: where frames leave and arrive. One trait; behind it XDP live frames, AF_XDP, AF_PACKET, an XDP receiver and an
//! in-memory port.

pub mod af_packet;
pub mod af_xdp;
pub mod answer;
pub mod flow_table;
pub mod live;
pub mod mapped;
pub mod memory;
pub(crate) mod socket;
pub mod user_generator;
pub mod user_receiver;
pub mod xdp_receiver;

use linerate_measure::counters::PortCounters;
use linerate_wire::{FlowOrder, FlowSpace, FrameMix, FrameSpec};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The traffic that a generator offers.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Headers.
    pub frame: FrameSpec,
    /// Frame lengths, with FCS.
    pub mix: FrameMix,
    /// Flows.
    pub flows: Arc<FlowSpace>,
    /// Their order.
    pub order: FlowOrder,
    /// Frames/s over all threads; `None` for as fast as possible.
    pub rate: Option<f64>,
    /// High byte of the stream ids: tells this campaign's frames from others'.
    pub campaign: u8,
    /// Low byte of the first thread's stream id; the next threads follow.
    pub first_stream: u8,
    /// One frame in this many carries a time stamp; at least 1.
    pub stamp_every: u32,
    /// Frames handed over at once.
    pub batch: u32,
}

impl Traffic {
    /// The stream id of generator thread number `thread`.
    pub fn stream(&self, thread: usize) -> u16 {
        u16::from(self.campaign) << 8 | u16::from(self.first_stream.wrapping_add(thread as u8))
    }
}

/// How long a generator runs. Whichever comes first ends it; it ends by itself, whatever happens to the process.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Time under load.
    pub duration: Duration,
    /// Frames over all threads.
    pub frames: Option<u64>,
}

/// What can go wrong at a port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A system call failed.
    #[error("cannot {operation} {object}: {source}{}", hint(.source))]
    System {
        /// What was tried.
        operation: &'static str,
        /// On what.
        object: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel did not take an eBPF program.
    #[error("the kernel does not accept the eBPF program {program}: {reason}")]
    Program {
        /// Program name.
        program: String,
        /// The last lines of what it says.
        reason: String,
    },
    /// The traffic cannot be sent through this port.
    #[error("{0}")]
    Unsuitable(String),
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (XDP needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW)",
        _ => "",
    }
}

impl PortError {
    /// For `map_err`: names operation and object.
    pub fn system(operation: &'static str, object: impl Into<String>) -> impl FnOnce(io::Error) -> PortError {
        let object = object.into();
        move |source| PortError::System { operation, object, source }
    }
}

/// A place where frames leave or arrive: a generator or a receiver.
pub trait Port: Send {
    /// What it is: `xdp-live-frames`, `af-packet`, …
    fn name(&self) -> &'static str;

    /// Sets all counters to 0 and starts. A receiver counts until it is stopped and ignores `load`; a generator sends
    /// until `load` is used up.
    ///
    /// # Errors
    /// What the system says.
    fn start(&mut self, load: &Load) -> Result<(), PortError>;

    /// CLOCK_MONOTONIC, in nanoseconds, of a generator's first frame; `None` before it, and for receivers.
    fn began_ns(&self) -> Option<u64>;

    /// Nanoseconds from a generator's first frame to its last, where it knows; `None` otherwise, and for receivers.
    fn active_ns(&self) -> Option<u64> {
        None
    }

    /// The first bytes of the first foreign frame since the start, where a receiver keeps them.
    fn foreign_sample(&self) -> Option<Vec<u8>> {
        None
    }

    /// Hands a receiver's test frames on to an [`answer::Answerer`] as well, or stops that. Returns whether it can: one that takes
    /// frames away from packet sockets cannot.
    fn let_through(&mut self, on: bool) -> bool {
        let _ = on;
        false
    }

    /// Test frames sent or received since the start: cheap, for samples.
    fn frames(&self) -> u64;

    /// Everything counted since the start.
    fn counters(&self) -> PortCounters;

    /// Whether a generator has used up its load, or died. Receivers never have.
    fn finished(&self) -> bool;

    /// Ends the load now. Afterwards, no frame leaves any more, and the counters stand still.
    ///
    /// # Errors
    /// What went wrong while it ran.
    fn stop(&mut self) -> Result<(), PortError>;
}

/// A port that sends, and whose load can be changed between starts.
pub trait Generator: Port {
    /// Changes the rate in frames/s over all threads, from the next start on; `None` is as fast as possible.
    fn set_rate(&mut self, rate: Option<f64>);

    /// Changes the number of frames handed over at once, from the next start on.
    fn set_batch(&mut self, batch: u32);

    /// Lets no frame leave before a moment of CLOCK_MONOTONIC, in nanoseconds, from the next start on: started a little before, the
    /// load begins at just that moment. 0: at once.
    fn set_not_before(&mut self, at_ns: u64);
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of all time stamps.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to, and the clock always exists. Not by rustix, which goes past the C library:
    // tests put a library with another clock before it.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed to this process.
pub fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    crate::net::napi::bind(None, cpu as usize)
}
