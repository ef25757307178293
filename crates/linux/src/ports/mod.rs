//! Ports: where frames leave and arrive. One trait, [`Port`], and one table of its implementations: XDP live frames and the XDP
//! receiver, AF_XDP, AF_PACKET. The in-memory link of simulations is in [`memory`].

pub mod af_packet;
pub mod af_xdp;
pub mod answer;
pub mod flow_table;
pub mod live;
pub mod mapped;
pub mod memory;
pub mod user_generator;
pub mod user_receiver;
mod worker;
pub mod xdp_receiver;

use crate::error::Error;
use crate::net::Netns;
use crate::net::netlink::Route;
use af_packet::AfPacketGenerator;
use af_xdp::AfXdpGenerator;
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::{FCS_LEN, Filter, Load, MacAddr, Traffic};
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

type Made = Result<Box<dyn Port>, Error>;

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

fn constructors(backend: Backend) -> Result<&'static Constructors, Error> {
    BACKENDS.iter().find(|row| row.backend == backend).ok_or_else(|| {
        let names: Vec<&str> = BACKENDS.iter().map(|row| row.backend.name()).collect();
        Error::Refused(format!("{backend} has no port on this machine: choose {}", names.join(", ")))
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
    backend.check(traffic).map_err(|e| Error::Refused(e.to_string()))?;
    if cpus.is_empty() || targets.is_empty() {
        return Err(Error::Refused("a generator needs at least one CPU and one target".into()));
    }
    check_length(namespace, targets, traffic)?;
    (constructors(backend)?.generator)(namespace, targets, traffic, cpus).map_err(Error::naming_privileges)
}

/// Refuses frames that an interface would refuse one by one.
fn check_length(namespace: &Netns, targets: &[Target], traffic: &Traffic) -> Result<(), Error> {
    let (longest, route) = (u32::from(traffic.mix.max_len_fcs()), Route::open(namespace)?);
    let needed = longest.saturating_sub((traffic.frame.l2_len() + FCS_LEN) as u32);
    for target in targets {
        let link = route.link_by_index(target.ifindex)?;
        if needed > link.mtu {
            let (name, mtu) = (link.name, link.mtu);
            return Err(Error::Refused(format!(
                "frames of {longest} bytes need an MTU of {needed}, and {name} has {mtu}: ip link set {name} mtu {needed}"
            )));
        }
    }
    Ok(())
}

/// A receiver in `namespace`, its thread, if it has one, on `cpu`.
///
/// # Errors
/// An error of the system, or a filter that the backend cannot apply.
pub fn receiver(backend: Backend, namespace: &Netns, at: Arrival, filter: Filter, cpu: Option<u32>) -> Made {
    filter.check()?;
    (constructors(backend)?.receiver)(namespace, at, filter, cpu).map_err(Error::naming_privileges)
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
    fn start(&mut self, load: &Load) -> Result<(), Error>;

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
    fn stop(&mut self) -> Result<(), Error>;
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
