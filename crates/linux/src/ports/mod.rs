//! Ports: where frames leave and arrive. One trait, [`Port`], and one table of its implementations: XDP live frames and the XDP
//! receiver, AF_XDP, AF_PACKET. The in-memory link of simulations is in [`memory`].

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
mod worker;
pub mod xdp_receiver;

use crate::net::netns::Netns;
use af_packet::AfPacketGenerator;
use af_xdp::AfXdpGenerator;
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::{Filter, Load, MacAddr, Traffic, WireError};
use live::LiveFrames;
use std::io;
use xdp_receiver::XdpReceiver;

/// Where frames are sent to: an interface that a generator sends from, and the addresses to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Interface number in the generator's namespace.
    pub ifindex: u32,
    /// Its Ethernet address.
    pub source: MacAddr,
    /// The Ethernet address to send to.
    pub destination: MacAddr,
}

/// The interface that a receiver counts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the receiver's namespace.
    pub ifindex: u32,
    /// Its receive queues.
    pub queues: u32,
}

type Made = Result<Box<dyn Port>, PortError>;

/// How one of linerate's own backends makes its ports.
struct Constructors {
    backend: Backend,
    generator: fn(&Netns, &[Target], &Traffic, &[u32]) -> Made,
    receiver: fn(&Netns, Arrival, Filter, Option<u32>) -> Made,
}

/// Linerate's own backends on this machine; `linerate_plan::backend` has their capabilities.
static BACKENDS: [Constructors; 3] = [
    Constructors {
        backend: Backend::Xdp,
        generator: |namespace, targets, traffic, cpus| {
            Ok(Box::new(LiveFrames::new(namespace, targets, traffic, cpus)?))
        },
        receiver: |namespace, at, filter, _| Ok(Box::new(XdpReceiver::new(namespace, at, filter)?)),
    },
    Constructors {
        backend: Backend::AfXdp,
        generator: |namespace, targets, traffic, cpus| {
            Ok(Box::new(AfXdpGenerator::new(namespace, targets, traffic, cpus)?))
        },
        receiver: |namespace, at, filter, cpu| Ok(Box::new(af_xdp::receiver(namespace, at, filter, cpu)?)),
    },
    Constructors {
        backend: Backend::AfPacket,
        generator: |namespace, targets, traffic, cpus| {
            Ok(Box::new(AfPacketGenerator::new(namespace, targets, traffic, cpus)?))
        },
        receiver: |namespace, at, filter, cpu| Ok(Box::new(af_packet::receiver(namespace, at, filter, cpu)?)),
    },
];

fn constructors(backend: Backend) -> Result<&'static Constructors, PortError> {
    BACKENDS.iter().find(|row| row.backend == backend).ok_or_else(|| {
        let names: Vec<&str> = BACKENDS.iter().map(|row| row.backend.name()).collect();
        PortError::Unsuitable(format!("{backend} has no port on this machine: choose {}", names.join(", ")))
    })
}

/// A generator in `namespace` with one thread on each of `cpus`. It can send to each of `targets` ([`Port::aim`]), the first to
/// begin with.
///
/// # Errors
/// Traffic that the backend cannot send, or an error of the system.
pub fn generator(
    backend: Backend,
    namespace: &Netns,
    targets: &[Target],
    traffic: &Traffic,
    cpus: &[u32],
) -> Made {
    traffic.check()?;
    let backend = backend.resolved(traffic.mix.max_len_fcs());
    backend.check(traffic).map_err(|e| PortError::Unsuitable(e.to_string()))?;
    if cpus.is_empty() || targets.is_empty() {
        return Err(PortError::Unsuitable("a generator needs at least one CPU and one target".into()));
    }
    (constructors(backend)?.generator)(namespace, targets, traffic, cpus)
}

/// A receiver in `namespace`, its thread, if it has one, on `cpu`.
///
/// # Errors
/// An error of the system, or a filter that the backend cannot apply.
pub fn receiver(backend: Backend, namespace: &Netns, at: Arrival, filter: Filter, cpu: Option<u32>) -> Made {
    filter.check()?;
    (constructors(backend)?.receiver)(namespace, at, filter, cpu)
}

/// Errors of ports.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A system call failed.
    #[error("cannot {operation} {object}: {source}{}", hint(.source))]
    System {
        /// The operation.
        operation: &'static str,
        /// Its object.
        object: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel did not take an eBPF program.
    #[error("the kernel does not accept the eBPF program {program}: {reason}")]
    Program {
        /// Program name.
        program: String,
        /// The last lines of the kernel's message.
        reason: String,
    },
    /// Traffic or a filter that cannot be.
    #[error(transparent)]
    Traffic(#[from] WireError),
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
    /// How frames leave or arrive.
    fn backend(&self) -> Backend;

    /// Sends to another of the targets that a generator was made for, from the next start on.
    fn aim(&mut self, target: usize) {
        let _ = target;
    }

    /// Sets all counters to 0 and starts. A generator sends until `load` is used up; a receiver ignores it and counts until it is
    /// stopped.
    ///
    /// # Errors
    /// An error of the system.
    fn start(&mut self, load: &Load) -> Result<(), PortError>;

    /// CLOCK_MONOTONIC, in nanoseconds, of a generator's first frame; `None` before it, and for receivers.
    fn began_ns(&self) -> Option<u64> {
        None
    }

    /// Nanoseconds from a generator's first frame to its last, if it knows them; `None` otherwise, and for receivers.
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
    fn finished(&self) -> bool {
        false
    }

    /// Ends the load now. Afterwards, no frame leaves any more, and the counters stand still.
    ///
    /// # Errors
    /// A failure while it ran.
    fn stop(&mut self) -> Result<(), PortError>;
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

/// Puts the calling thread before ordinary programs; Linux counts threads, so that nothing else changes. Not being allowed to is no
/// error.
pub(crate) fn go_first() {
    let _ = rustix::process::setpriority_process(None, -20);
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed to this process.
pub fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    crate::net::napi::bind(None, cpu as usize)
}
