//! Ports: where frames leave and arrive. One trait, [`Port`], and one table of its implementations: XDP live frames and the XDP
//! receiver, AF_XDP, AF_PACKET. The in-memory link of simulations is in [`memory`].

mod af_packet;
mod af_xdp;
pub mod answer;
pub mod attached;
pub mod connections;
pub mod ends;
mod findings;
mod flow_table;
pub mod frame_source;
pub mod live;
pub mod memory;
mod pacer;
mod port;
mod redirect;
pub mod stamps;
pub mod user_generator;
pub mod user_receiver;
pub mod xdp_receiver;

use crate::error::Error;
use crate::net::Netns;
use crate::net::netlink::Route;
use linerate_plan::Backend;
use linerate_wire::{FCS_LEN, Filter, Traffic};
use live::LiveFrames;
use port::Made;
use xdp_receiver::XdpReceiver;

pub use crate::clock::monotonic_ns;
pub use port::go_first;
pub use port::{Arrival, Port, Target, ThreadCounters, pin_to_cpu};

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
        generator: |namespace, to, traffic, cpus| {
            Ok(Box::new(LiveFrames::new(
                namespace, to, traffic, cpus, None,
            )?))
        },
        receiver: |namespace, at, filter, _| Ok(Box::new(XdpReceiver::new(namespace, at, filter)?)),
    },
    Constructors {
        backend: Backend::AfXdp,
        generator: af_xdp::generator,
        receiver: af_xdp::receiver,
    },
    Constructors {
        backend: Backend::AfPacket,
        generator: af_packet::generator,
        receiver: af_packet::receiver,
    },
];

fn constructors(backend: Backend) -> Result<&'static Constructors, Error> {
    BACKENDS
        .iter()
        .find(|row| row.backend == backend)
        .ok_or_else(|| {
            let names = BACKENDS.each_ref().map(|row| row.backend.name()).join(", ");
            Error::Refused(format!(
                "{backend} has no port on this machine: choose {names}"
            ))
        })
}

/// A generator of both directions at once, each with the load's rate. `sides`: the namespaces of the DUT's inside and outside, each
/// with the targets of its frames. Frames from the outside are the answers to those from the inside.
///
/// # Errors
/// As [`generator`]; a backend that cannot, with the reason.
pub fn both_ways(
    backend: Backend,
    sides: [(&Netns, &[Target]); 2],
    traffic: &Traffic,
    cpus: &[u32],
) -> Made {
    let [(inside, targets), (outside, back)] = sides;
    match backend.resolved(traffic.mix.max_len_fcs()) {
        Backend::Xdp => {
            check(backend, inside, targets, traffic, cpus)?;
            check_length(outside, back, traffic)?;
            let both =
                LiveFrames::both(inside, targets, Some((outside, back)), traffic, cpus, None);
            Ok(Box::new(both.map_err(Error::naming_privileges)?))
        }
        Backend::AfPacket => {
            let first_stream = traffic
                .first_stream
                .wrapping_add((cpus.len() * traffic.streams_each()) as u8);
            let answers = Traffic {
                first_stream,
                ..traffic.mirrored()
            };
            let forward = generator(backend, inside, targets, traffic, cpus)?;
            let reverse = generator(backend, outside, back, &answers, cpus)?;
            Ok(Box::new(ends::Ends::new(vec![forward, reverse])))
        }
        other => Err(Error::Refused(format!(
            "both directions need a port that sends and receives at one interface; with {other} a queue has only one socket: use xdp or af-packet"
        ))),
    }
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
    let backend = check(backend, namespace, targets, traffic, cpus)?;
    (constructors(backend)?.generator)(namespace, targets, traffic, cpus)
        .map_err(Error::naming_privileges)
}

/// A generator at an interface whose driver may not transmit frames of XDP: one frame shows it, before the load. With
/// [`Backend::Linerate`], AF_PACKET sockets send then; the reason is returned.
///
/// # Errors
/// As [`generator`]; frames that were to leave by XDP, and do not.
pub fn generator_at(
    backend: Backend,
    namespace: &Netns,
    target: Target,
    traffic: &Traffic,
    cpus: &[u32],
) -> Result<(Box<dyn Port>, Option<String>), Error> {
    let targets = [target];
    let chosen = check(backend, namespace, &targets, traffic, cpus)?;
    if chosen != Backend::Xdp {
        return Ok((generator(chosen, namespace, &targets, traffic, cpus)?, None));
    }
    let live = LiveFrames::new(namespace, &targets, traffic, cpus, None);
    let proved = live.and_then(|mut live| {
        live.keep(redirect::ensure(namespace, &target)?);
        Ok(live)
    });
    match proved.map_err(Error::naming_privileges) {
        Ok(live) => Ok((Box::new(live), None)),
        Err(why) if backend == Backend::Linerate && Backend::AfPacket.check(traffic).is_ok() => {
            let port = generator(Backend::AfPacket, namespace, &targets, traffic, cpus)?;
            Ok((
                port,
                Some(format!(
                    "{why}. It sends from AF_PACKET sockets, which are several times slower"
                )),
            ))
        }
        Err(why) => Err(why),
    }
}

/// Refuses traffic that a backend cannot send. Returns the backend itself.
fn check(
    backend: Backend,
    namespace: &Netns,
    targets: &[Target],
    traffic: &Traffic,
    cpus: &[u32],
) -> Result<Backend, Error> {
    traffic.check()?;
    let backend = backend.resolved(traffic.mix.max_len_fcs());
    backend
        .check(traffic)
        .map_err(|e| Error::Refused(e.to_string()))?;
    if cpus.is_empty() || targets.is_empty() {
        return Err(Error::Refused(
            "a generator needs at least one CPU and one target".into(),
        ));
    }
    check_length(namespace, targets, traffic)?;
    Ok(backend)
}

/// Refuses frames that an interface would refuse one by one.
fn check_length(namespace: &Netns, targets: &[Target], traffic: &Traffic) -> Result<(), Error> {
    let (longest, route) = (
        u32::from(traffic.mix.max_len_fcs()),
        Route::open(namespace)?,
    );
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
pub fn receiver(
    backend: Backend,
    namespace: &Netns,
    at: Arrival,
    filter: Filter,
    cpu: Option<u32>,
) -> Made {
    filter.check()?;
    (constructors(backend)?.receiver)(namespace, at, filter, cpu).map_err(Error::naming_privileges)
}
