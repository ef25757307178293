//! Ports in user space. The in-memory link runs anywhere; AF_PACKET and AF_XDP run over a veth pair in a network namespace
//! of the test's own, which carries no addresses and reaches nothing.

use linerate_linux::net::Netns;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::ports::frame_source::FrameSource;
use linerate_linux::ports::memory::{MemoryDut, MemoryLink, MemoryTrial};
use linerate_linux::ports::{self, Arrival, Port, Target};
use linerate_measure::audit::{Evidence, SecondCount, audit};
use linerate_measure::counters::{Outage, PortCounters};
use linerate_measure::trial::{Rates, Timing};
use linerate_plan::Backend;
use linerate_wire::{
    Extensions, Family, Filter, Findings, FlowOrder, FlowSpace, FrameMix, FrameSpec, Load, MacAddr,
    RateStep, Recognised, Second, Selection, SourceMacs, Traffic, Transport, VlanTag, recognise,
};
use std::collections::HashSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicBool;
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
    let (mut last, mut quiet) = (receiver.frames(), Instant::now());
    while receiver.frames() < generator.frames() && quiet.elapsed() < Duration::from_secs(2) {
        if receiver.frames() != last {
            (last, quiet) = (receiver.frames(), Instant::now());
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

// ---- the in-memory link ----

fn at(rate: Option<f64>) -> Load {
    Load {
        rate,
        ..Load::lasting(Duration::MAX)
    }
}

fn memory(mix: &str, ms: u64, rate: f64, dut: MemoryDut) -> MemoryTrial {
    let mut link = MemoryLink::new(&traffic(mix)).unwrap();
    let timing = Timing {
        warm_up_ns: 0,
        ..Timing::slice(ms * 1_000_000)
    };
    let first = link.trial(timing, at(Some(rate)), dut, &AtomicBool::new(false));
    // Counted anew in the second trial, on a clock that goes on.
    let second = link.trial(timing, at(Some(rate)), dut, &AtomicBool::new(false));
    assert_eq!(
        (first.sent.frames, &first.losses),
        (second.sent.frames, &second.losses)
    );
    assert!(second.outcome.began_ns >= first.outcome.began_ns + timing.load_ns());
    let evidence = Evidence {
        rates: Some(Rates {
            offered: rate,
            received: rate,
            seconds: 0.1,
        }),
        generator: second.sent.clone(),
        receiver: second.received.clone(),
        losses: second.losses.clone(),
        second_counts: vec![SecondCount {
            place: "simulated DUT: copies".into(),
            frames: second.received.duplicates(),
            expected: second.copies,
        }],
        ..Evidence::default()
    };
    assert!(audit(&evidence).valid, "{:#?}", audit(&evidence));
    second
}

#[test]
fn memory_forwards_everything() {
    let MemoryTrial {
        sent,
        received,
        outcome,
        ..
    } = memory("imix", 120, 1e5, MemoryDut::default());
    assert_eq!((sent.frames, received.frames), (12_000, 12_000));
    assert_eq!(
        (sent.bytes, received.bytes),
        (12_000 / 12 * (7 * 60 + 4 * 590 + 1514), sent.bytes)
    );
    assert_eq!(received.latency.count(), 12_000 / 8);
    assert_eq!(
        (
            sent.streams[0].next_sequence,
            received.streams[0].next_sequence
        ),
        (24_000, 24_000)
    );
    let rate = linerate_measure::trial::rates(&outcome.samples).unwrap();
    assert!((rate.received / 1e5 - 1.0).abs() < 1e-3, "{rate:?}");
}

#[test]
fn memory_loses_exactly() {
    let dut = MemoryDut {
        loss_one_in: Some(1000),
        ..MemoryDut::default()
    };
    let MemoryTrial {
        sent,
        received,
        losses,
        ..
    } = memory("64", 50, 1.01e6, dut);
    assert_eq!(
        (sent.frames, received.frames, received.unique()),
        (50_500, 50_450, 50_450)
    );
    assert_eq!((losses.len(), losses[0].frames), (1, 50));
}

#[test]
fn memory_duplicates_exactly() {
    let dut = MemoryDut {
        duplicate_one_in: Some(100),
        loss_one_in: Some(2),
        ..MemoryDut::default()
    };
    let MemoryTrial {
        sent,
        received,
        copies,
        ..
    } = memory("64", 20, 1e6, dut);
    assert_eq!(
        (sent.frames, received.frames, received.unique()),
        (20_000, 10_100, 10_000)
    );
    assert_eq!((received.duplicates(), copies), (100, 100));
}

#[test]
fn memory_forwards_at_its_rate() {
    let dut = MemoryDut {
        rate: Some(30_000.0),
        ..MemoryDut::default()
    };
    let MemoryTrial { sent, received, .. } = memory("64", 500, 100_000.0, dut);
    assert_eq!(sent.frames, 50_000);
    let forwarded = received.frames as f64 / sent.frames as f64 * 100_000.0;
    assert!(
        (forwarded / 30_000.0 - 1.0).abs() < 0.005,
        "{forwarded} frames/s"
    );
    let MemoryTrial { sent, received, .. } = memory("64", 300, 29_999.0, dut);
    assert_eq!(
        sent.frames, received.frames,
        "what is below its rate passes"
    );
}

#[test]
fn memory_delays() {
    let dut = MemoryDut {
        delay: Duration::from_millis(3),
        ..MemoryDut::default()
    };
    let MemoryTrial { sent, received, .. } = memory("64", 300, 5_000.0, dut);
    assert_eq!(sent.frames, received.frames);
    let quantile = |q| received.latency.quantile(q).unwrap() as f64 / 1e6;
    // A bucket is 3 % wide.
    assert!(
        quantile(0.0) >= 2.9 && quantile(1.0) <= 3.2,
        "{} to {} ms",
        quantile(0.0),
        quantile(1.0)
    );
}

#[test]
fn memory_stops_when_told() {
    let mut link = MemoryLink::new(&traffic("64")).unwrap();
    let stop = AtomicBool::new(true);
    let trial = link.trial(
        Timing::slice(60_000_000_000),
        at(Some(1e9)),
        MemoryDut::default(),
        &stop,
    );
    assert_eq!(trial.sent.frames, 0);
}

#[test]
fn memory_is_as_fast_as_its_trial_lets_it() {
    let mut link = MemoryLink::new(&traffic("64")).unwrap();
    for (seconds, rate) in [(0.005, 2e6), (1.0, 1e4)] {
        let timing = Timing {
            warm_up_ns: 0,
            ..Timing::slice((seconds * 1e9) as u64)
        };
        let trial = link.trial(
            timing,
            at(None),
            MemoryDut::default(),
            &AtomicBool::new(false),
        );
        let found = trial.sent.frames as f64 / seconds;
        assert!(
            (found / rate - 1.0).abs() < 0.01,
            "{found} frames/s in {seconds} s"
        );
        assert_eq!(trial.sent.frames, trial.received.frames);
    }
}

/// A trial of a load of 100 ms without a warm-up.
fn through(dut: MemoryDut, load: Load) -> MemoryTrial {
    let timing = Timing {
        warm_up_ns: 0,
        ..Timing::slice(100_000_000)
    };
    let trial =
        MemoryLink::new(&traffic("64"))
            .unwrap()
            .trial(timing, load, dut, &AtomicBool::new(false));
    let lost: u64 = trial.losses.iter().map(|loss| loss.frames).sum();
    assert_eq!(trial.sent.frames, trial.received.unique() + lost);
    trial
}

#[test]
fn memory_passes_a_burst_that_its_queue_holds() {
    let dut = MemoryDut {
        rate: Some(1e6),
        queue: 256,
        ..MemoryDut::default()
    };
    // A queue of Q frames, drained at r and filled at R, takes Q R / (R - r) frames, less one: the first drains nothing.
    for (frames, passes) in [(511, true), (513, false)] {
        let MemoryTrial { sent, received, .. } = through(
            dut,
            Load {
                frames: Some(frames),
                ..at(Some(2e6))
            },
        );
        assert_eq!(
            (sent.frames, sent.frames == received.frames),
            (frames, passes)
        );
        assert!(
            sent.active_ns.abs_diff(frames * 500) <= 32_000,
            "{} ns",
            sent.active_ns
        );
    }
}

const EVERY_FRAME: Option<Findings> = Some(Findings {
    every_frame: true,
    tag_after_ns: 50_000_000,
});

#[test]
fn memory_finds_an_outage_and_the_last_loss() {
    let [lasts, after] = [20, 30].map(Duration::from_millis);
    let dut = MemoryDut {
        outage: Some((lasts, after)),
        ..MemoryDut::default()
    };
    let load = Load {
        findings: EVERY_FRAME,
        ..at(Some(1e5))
    };
    let MemoryTrial {
        mut received,
        outcome,
        sent,
        ..
    } = through(dut, load);
    received.since(outcome.began_ns);
    received.end_loss(&sent);
    let gap = 10_000;
    let Outage {
        from_ns,
        to_ns,
        missing,
        ..
    } = received.outages[0];
    assert!(
        from_ns.abs_diff(30_000_000) <= gap && to_ns.abs_diff(50_000_000) <= gap,
        "{from_ns} to {to_ns}"
    );
    assert_eq!(missing, 2000);
    assert!(
        received.last_loss_ns.unwrap().abs_diff(50_000_000) <= gap,
        "{:?}",
        received.last_loss_ns
    );
    assert!(
        received.outages.len() > 1 && received.outages[1..].iter().all(|short| short.missing == 0)
    );
    let delays = received.delays.unwrap();
    assert_eq!(
        (delays.frames, delays.broken, delays.later.count()),
        (8000, 1, 7998)
    );
    assert!(
        (500..=1100).contains(&delays.tagged.len()),
        "{}",
        delays.tagged.len()
    );
    assert!(
        delays
            .tagged
            .iter()
            .all(|(sent_ns, _)| *sent_ns >= 50_000_000)
    );
}

#[test]
fn memory_follows_a_step_and_finds_the_loss_at_the_end() {
    let dut = MemoryDut {
        outage: Some([20, 80].map(Duration::from_millis).into()),
        ..MemoryDut::default()
    };
    let step = Some(RateStep {
        after_ns: 40_000_000,
        rate: 5e4,
    });
    let load = Load {
        step,
        findings: EVERY_FRAME,
        ..at(Some(1e5))
    };
    let MemoryTrial {
        mut received,
        outcome,
        sent,
        ..
    } = through(dut, load);
    assert!(
        sent.frames.abs_diff(4000 + 3000) <= 2,
        "{} frames",
        sent.frames
    );
    received.since(outcome.began_ns);
    received.end_loss(&sent);
    assert!(
        received.last_loss_ns.unwrap() > 99_900_000,
        "no frame came after the loss: {received:?}"
    );
}

// ---- real sockets ----

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

/// Every frame that was sent is received, or counted as dropped by the receiver's own socket.
fn conserved(sent: &PortCounters, received: &PortCounters) {
    assert_eq!(
        sent.frames,
        received.unique() + received.refused,
        "{sent:?} {received:?}"
    );
    assert_eq!(
        (
            received.duplicates(),
            received.reordered(),
            received.foreign_total()
        ),
        (0, 0, 0),
        "{received:?}"
    );
    if received.refused == 0 {
        assert_eq!(sent.bytes, received.bytes);
        let next = |c: &PortCounters| {
            c.streams
                .iter()
                .map(|s| (s.stream, s.next_sequence))
                .collect::<Vec<_>>()
        };
        assert_eq!(next(sent), next(received));
    }
    let latency = received.latency.quantile(0.5).unwrap();
    assert!((500..5_000_000_000).contains(&latency), "{latency} ns");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_to_af_packet_is_exact() {
    let wire = wire(1);
    let mut receiver = packet_receiver(&wire);
    let mut generator = packet_generator(&wire, traffic("imix"), &[0, 0]);
    for _ in 0..2 {
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(None, 20_000, Some(6_000)),
        );
        assert_eq!(sent.frames, 6_000);
        assert_eq!(
            sent.streams.iter().map(|s| s.frames).collect::<Vec<_>>(),
            [3_000, 3_000]
        );
        conserved(&sent, &received);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_receives_tagged_and_foreign_frames() {
    let wire = wire(1);
    let mut receiver = packet_receiver(&wire);
    let mut tagged = traffic("128");
    tagged.frame.vlan = Some(linerate_wire::VlanTag { id: 7, priority: 0 });
    let mut generator = packet_generator(&wire, tagged, &[0]);
    let (sent, received, _) = trial(
        &mut *generator,
        &mut *receiver,
        &load(Some(20_000.0), 20_000, Some(1000)),
    );
    assert_eq!((sent.frames, sent.bytes), (1000, 124_000));
    conserved(&sent, &received);
    let mut other = traffic("64");
    other.campaign = 1;
    let mut generator = packet_generator(&wire, other, &[0]);
    receiver.start(&load(Some(20_000.0), 0, None)).unwrap();
    generator
        .start(&load(Some(20_000.0), 20_000, Some(100)))
        .unwrap();
    until(|| generator.finished());
    generator.stop().unwrap();
    until(|| receiver.counters().foreign_total() == 100);
    receiver.stop().unwrap();
    assert_eq!(
        (
            receiver.frames(),
            receiver.counters().foreign["other campaign's"]
        ),
        (0, 100)
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_xdp_to_af_packet_is_exact() {
    let wire = wire(2);
    let mut receiver = packet_receiver(&wire);
    // Twice, so that the queues have to be taken over from sockets that have just been closed.
    for _ in 0..2 {
        let mut traffic = traffic("imix");
        traffic.campaign = CAMPAIGN;
        let mut generator = xdp_generator(&wire, traffic, &[0, 0]);
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(None, 20_000, Some(6_000)),
        );
        assert_eq!(sent.frames + sent.refused, 6_000);
        assert_eq!(sent.frames, received.frames + received.refused);
        receiver = packet_receiver(&wire);
        let (sent, received, _) = trial(&mut *generator, &mut *receiver, &load(None, 100, None));
        assert!(sent.frames > 0);
        assert_eq!(sent.frames, received.unique() + received.refused);
        receiver = packet_receiver(&wire);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_to_af_xdp_is_exact() {
    let wire = wire(1);
    let mut receiver = xdp_receiver(&wire, 1);
    let mut generator = packet_generator(&wire, traffic("imix"), &[0]);
    for _ in 0..2 {
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(Some(50_000.0), 20_000, Some(4_000)),
        );
        assert_eq!(sent.frames, 4_000);
        conserved(&sent, &received);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_xdp_to_af_xdp_conserves_frames() {
    let wire = wire(2);
    let mut receiver = xdp_receiver(&wire, 2);
    let mut generator = xdp_generator(&wire, traffic("64"), &[0, 0]);
    let (sent, received, _) = trial(
        &mut *generator,
        &mut *receiver,
        &load(Some(40_000.0), 20_000, Some(6_000)),
    );
    assert_eq!(sent.frames + sent.refused, 6_000);
    conserved(&sent, &received);
}

/// Loads at `rate`; their rates by the generator's own first and last frame, as shares of it. No frame leaves before it is due.
fn paced(generator: &mut dyn Port, wire: &Wire, rate: f64, ms: u64, loads: usize) -> Vec<f64> {
    let mut receiver = packet_receiver(wire);
    let load = load(Some(rate), ms, None);
    let found = (0..loads).map(|_| {
        let (sent, received, took) = trial(generator, &mut *receiver, &load);
        let seconds = generator.active_ns().unwrap() as f64 / 1e9;
        assert!(
            sent.frames > 1 && sent.frames as f64 <= rate * ms as f64 / 1e3 + 1.0,
            "{sent:?}"
        );
        // The last of them was due then.
        let due = Duration::from_secs_f64((sent.frames - 1) as f64 / rate);
        assert!(took >= due, "{took:?} for {sent:?}");
        assert_eq!(sent.frames, received.unique() + received.refused);
        (sent.frames - 1) as f64 / seconds / rate
    });
    found.collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn both_generators_send_no_frame_before_it_is_due() {
    let wire = wire(1);
    paced(
        &mut *packet_generator(&wire, traffic("64"), &[0]),
        &wire,
        20_000.0,
        50,
        1,
    );
    paced(
        &mut *xdp_generator(&wire, traffic("64"), &[0]),
        &wire,
        20_000.0,
        50,
        1,
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_both_generators_keep_their_pace() {
    let kept = |mut shares: Vec<f64>, rate: f64| {
        shares.sort_by(f64::total_cmp);
        assert!(
            (shares[shares.len() / 2] - 1.0).abs() < 0.01,
            "{shares:?} of {rate} frames/s"
        );
    };
    for rate in [1_000.0, 50_000.0] {
        let wire = wire(1);
        kept(
            paced(
                &mut *packet_generator(&wire, traffic("64"), &[0]),
                &wire,
                rate,
                1000,
                3,
            ),
            rate,
        );
        kept(
            paced(
                &mut *xdp_generator(&wire, traffic("64"), &[0]),
                &wire,
                rate,
                1000,
                3,
            ),
            rate,
        );
    }
}

/// Frames that arrive at the receiver's end, as they were on the wire; of tagged ones, the kernel has taken the tag away.
fn captured(wire: &Wire, generator: &mut dyn Port, load: &Load) -> Vec<Vec<u8>> {
    // Redirected frames need the NAPI of the other end.
    Ethtool::open(&wire.namespace)
        .unwrap()
        .set_feature("r0", "rx-gro", true)
        .unwrap();
    let socket = wire
        .namespace
        .enter(|| packet_socket(wire.receiver))
        .unwrap();
    generator.start(load).unwrap();
    let (wanted, began) = (load.frames.unwrap() as usize, Instant::now());
    let mut all = Vec::new();
    while all.len() < wanted && began.elapsed() < Duration::from_secs(60) {
        let mut frame = vec![0; 4096];
        // SAFETY: the buffer is as long as the call is told.
        let length = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(length) {
            Ok(length) => all.push(frame[..length].to_vec()),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    generator.stop().unwrap();
    all
}

fn packet_socket(ifindex: u32) -> OwnedFd {
    // SAFETY: the descriptor is new and nobody else's; the structure is plain data, and as long as the call is told.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(socket >= 0);
        let socket = OwnedFd::from_raw_fd(socket);
        let room: libc::c_int = 32 << 20;
        let length = size_of_val(&room) as u32;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
        assert_eq!(
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const room).cast(),
                length
            ),
            0
        );
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = ifindex as i32;
        let length = size_of_val(&address) as u32;
        assert_eq!(
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length),
            0
        );
        socket
    }
}

/// The eBPF generator writes what the definition of the frames says, to the byte.
#[test]
#[ignore = "needs root: run by make test as root"]
fn ebpf_frames_are_those_of_user_space_to_the_byte() {
    let wire = wire(1);
    let random = Selection::Random { seed: 3 };
    let drawn = |family| {
        let flows = FlowSpace::benchmark(family, 50).unwrap().with_ports(random);
        flows.with_random_addresses(4, [62_974, 62_974]).unwrap()
    };
    let macs = Traffic {
        source_macs: SourceMacs::Random { seed: 5 },
        flows: drawn(Family::V4),
        ..traffic("64")
    };
    let of_ipv6 = |extensions, vlan| {
        let frame = FrameSpec {
            family: Family::V6,
            extensions,
            vlan,
            ..traffic("128").frame
        };
        Traffic {
            frame,
            flows: drawn(Family::V6),
            ..traffic("128")
        }
    };
    let tag = Some(VlanTag { id: 7, priority: 0 });
    let second = Some(Second {
        millionths: 300_000,
        flows: drawn(Family::V6),
    });
    // All are stamped: in user space each version has a distance of its own between stamps.
    let mixed = Traffic {
        ipv6: second,
        stamp_every: 1,
        mix: "genome:bbd".parse().unwrap(),
        ..macs.clone()
    };
    let tagged = Traffic {
        frame: FrameSpec {
            vlan: tag,
            ..mixed.frame
        },
        ..mixed.clone()
    };
    let all = [
        macs.clone(),
        macs.mirrored(),
        of_ipv6(Extensions::Chain, None),
        of_ipv6(Extensions::HopByHop, tag),
        of_ipv6(Extensions::Chain, tag),
        Traffic {
            order: FlowOrder::Random { seed: 9 },
            ..mixed.clone()
        },
        mixed,
        tagged,
    ];
    for traffic in all {
        let name = format!("{} {:?} {:?}", traffic.flows, traffic.frame, traffic.ipv6);
        let load = load(Some(20_000.0), 20_000, Some(200));
        let at = [target(wire.generator)];
        let mut generator =
            ports::generator(Backend::Xdp, &wire.namespace, &at, &traffic, &[0]).unwrap();
        let frames = captured(&wire, &mut *generator, &load);
        assert_eq!(frames.len(), 200, "{name}");
        let [there, back] = [at[0].source, at[0].destination];
        let mut source = FrameSource::new(&traffic.addressed(there, back), 0, 1).unwrap();
        source.begin(traffic.stamp_every);
        let mut sources = HashSet::new();
        for (number, frame) in frames.iter().enumerate() {
            let Recognised::Test { signature, .. } = recognise(frame) else {
                panic!("{name}: {frame:02x?}")
            };
            let mut expected = vec![0; source.longest()];
            let length = source.fill(&mut expected, signature.time_ns);
            expected.truncate(length);
            if traffic.frame.vlan.is_some() {
                expected.drain(12..16);
            }
            assert_eq!(frame[..], expected[..], "{name}: frame {number}");
            sources.insert(frame[6..12].to_vec());
        }
        let own = traffic.source_macs == SourceMacs::Own;
        assert!(
            if own {
                sources.len() == 1
            } else {
                sources.len() >= 45
            },
            "{name}: {sources:?}"
        );
    }
}

fn refusal<T>(result: Result<T, linerate_linux::Error>) -> String {
    match result {
        Err(linerate_linux::Error::Refused(why)) => why,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn unsuitable_traffic_is_refused_before_it_starts() {
    let wire = wire(1);
    let (namespace, targets) = (&wire.namespace, [target(wire.generator)]);
    let refused = |backend, mix, cpus: &[u32]| {
        refusal(ports::generator(
            backend,
            namespace,
            &targets,
            &traffic(mix),
            cpus,
        ))
    };
    let why = refused(Backend::AfPacket, "1519", &[0]);
    assert!(why.contains("need an MTU of 1501"), "{why}");
    let why = refused(Backend::AfXdp, "4101", &[0]);
    assert!(why.contains("at most 4100"), "{why}");
    let why = refused(Backend::AfXdp, "64", &[0, 0]);
    assert!(why.contains("has no queue 1"), "{why}");
    let why = refused(Backend::PktGen, "64", &[0]);
    assert!(why.contains("choose xdp, af-xdp, af-packet"), "{why}");
    assert!(
        ports::generator(
            Backend::AfPacket,
            namespace,
            &[target(9999)],
            &traffic("64"),
            &[0]
        )
        .is_err()
    );
    let nowhere = Arrival {
        ifindex: 9999,
        queues: 1,
    };
    assert!(ports::receiver(Backend::AfPacket, namespace, nowhere, FILTER, None).is_err());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_link_that_goes_down_is_an_error() {
    let wire = wire(1);
    for mut generator in [
        packet_generator(&wire, traffic("64"), &[0]),
        xdp_generator(&wire, traffic("64"), &[0]),
    ] {
        let link = |state| {
            wire.namespace
                .command("ip")
                .args(["link", "set", "g0", state])
                .status()
                .unwrap()
        };
        link("up");
        generator.start(&load(Some(1000.0), 600_000, None)).unwrap();
        until(|| generator.frames() > 0);
        link("down");
        until(|| generator.finished());
        assert!(generator.stop().is_err());
    }
}
