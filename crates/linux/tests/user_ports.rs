//! Ports in user space. The in-memory link runs anywhere; AF_PACKET and AF_XDP run over a veth pair in a network namespace
//! of the test's own, which carries no addresses and reaches nothing.

#[path = "user_ports/counts.rs"]
mod counts;
#[path = "user_ports/faults.rs"]
mod faults;
#[path = "user_ports/frames.rs"]
mod frames;
#[path = "user_ports/memory.rs"]
mod memory;
#[path = "user_ports/pace.rs"]
mod pace;

use linerate_linux::net::Netns;
use linerate_linux::ports::{self, Arrival, Port, Target};
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::{
    Family, Filter, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const CAMPAIGN: u8 = 0x5a;

fn traffic(mix: &str) -> Traffic {
    let (to, from) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let frame = FrameSpec::new(to, from, Family::V4, Transport::Udp);
    let flows = FlowSpace::benchmark(Family::V4, 100).unwrap();
    let traffic = Traffic::new(frame, mix.parse::<FrameMix>().unwrap(), flows);
    Traffic {
        campaign: CAMPAIGN,
        stamp_every: 8,
        ..traffic
    }
}

fn load(rate: Option<f64>, ms: u64, frames: Option<u64>) -> Load {
    Load {
        rate,
        frames,
        batch: 32,
        ..Load::lasting(Duration::from_millis(ms))
    }
}

/// One trial: frames sent, frames received, and the duration of sending.
fn trial(
    generator: &mut dyn Port,
    receiver: &mut dyn Port,
    load: &Load,
) -> (PortCounters, PortCounters, Duration) {
    receiver.start(load).unwrap();
    let began = Instant::now();
    generator.start(load).unwrap();
    while !generator.finished() {
        assert!(
            began.elapsed() < Duration::from_nanos(load.duration_ns) + Duration::from_secs(60),
            "the generator does not end"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = began.elapsed();
    generator.stop().unwrap();
    let arrived = || receiver.frames() + receiver.counters().refused;
    let (mut last, mut quiet) = (arrived(), Instant::now());
    while arrived() < generator.frames() && quiet.elapsed() < Duration::from_secs(20) {
        if arrived() != last {
            (last, quiet) = (arrived(), Instant::now());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    receiver.stop().unwrap();
    (generator.counters(), receiver.counters(), took)
}

/// Waits for what another thread brings about.
#[track_caller]
fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Tests with real sockets take turns: all of them want CPU 0, and some look at the clock.
static TURN: Mutex<()> = Mutex::new(());

/// A veth pair, g0 and r0, in a namespace of its own.
struct Wire {
    namespace: Netns,
    generator: u32,
    receiver: u32,
    _turn: MutexGuard<'static, ()>,
}

fn wire(queues: u32) -> Wire {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = Netns::anonymous().unwrap();
    let script = format!(
        "set -e
         for i in all default; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6 2>/dev/null || true; done
         ip link add g0 numtxqueues {queues} numrxqueues {queues} type veth \
            peer name r0 numtxqueues {queues} numrxqueues {queues}
         ip link set g0 up
         ip link set r0 up"
    );
    let status = namespace
        .command("sh")
        .args(["-c", &script])
        .status()
        .unwrap();
    assert!(status.success(), "no veth pair");
    let index = |name: &std::ffi::CStr| {
        // SAFETY: a terminated string.
        namespace
            .enter(|| unsafe { libc::if_nametoindex(name.as_ptr()) })
            .unwrap()
    };
    Wire {
        _turn: turn,
        generator: index(c"g0"),
        receiver: index(c"r0"),
        namespace,
    }
}

const FILTER: Filter = Filter {
    campaign: CAMPAIGN,
    streams: 4,
    unsigned: false,
    pass_foreign: false,
    card_stamps: false,
};

fn arrival(wire: &Wire, queues: u32) -> Arrival {
    Arrival {
        ifindex: wire.receiver,
        queues,
    }
}

fn target(ifindex: u32) -> Target {
    let (source, destination) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    Target {
        ifindex,
        source,
        destination,
    }
}

fn packet_receiver(wire: &Wire) -> Box<dyn Port> {
    ports::receiver(
        Backend::AfPacket,
        &wire.namespace,
        arrival(wire, 1),
        FILTER,
        None,
    )
    .unwrap()
}

fn xdp_receiver(wire: &Wire, queues: u32) -> Box<dyn Port> {
    ports::receiver(
        Backend::AfXdp,
        &wire.namespace,
        arrival(wire, queues),
        FILTER,
        None,
    )
    .unwrap()
}

fn packet_generator(wire: &Wire, traffic: Traffic, cpus: &[u32]) -> Box<dyn Port> {
    ports::generator(
        Backend::AfPacket,
        &wire.namespace,
        &[target(wire.generator)],
        &traffic,
        cpus,
    )
    .unwrap()
}

fn xdp_generator(wire: &Wire, traffic: Traffic, cpus: &[u32]) -> Box<dyn Port> {
    ports::generator(
        Backend::AfXdp,
        &wire.namespace,
        &[target(wire.generator)],
        &traffic,
        cpus,
    )
    .unwrap()
}
