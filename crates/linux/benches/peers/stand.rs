//! Our own generator and receiver on an embedded lab, and the measured window that all contestants share.

use crate::Failure;
use linerate_linux::bpf;
use linerate_linux::host::changes::Consent;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Lane, Setup};
use linerate_linux::ports::attached::attach;
use linerate_linux::ports::live::LiveFrames;
use linerate_linux::ports::xdp_receiver::XdpReceiver;
use linerate_linux::ports::{Arrival, Port, Target, monotonic_ns};
use linerate_measure::record::Mode;
use linerate_wire::{
    Family, Filter, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
};
use std::time::{Duration, Instant};

/// The generators' CPU; the benchmark itself sleeps on the other.
pub const GENERATOR_CPU: u32 = 0;
/// Flows of all contests: 20 sources times 100 destinations.
pub const FLOWS: u32 = 2000;
/// Shortest Ethernet frame, with FCS: the hardest case.
pub const FRAME_FCS: u16 = 64;
/// Load before the measured window.
const WARM_UP: Duration = Duration::from_millis(20);
/// Ending live frames takes the kernel some 20 ms after the last frame: the next contestant is not to share them.
const REST: Duration = Duration::from_millis(40);
/// How long a first frame of our own may take.
const START_WITHIN: Duration = Duration::from_secs(2);
/// How closely the moment of a frame is to be known: 1e-5 of the window over which pacing is measured.
const EDGE_NS: u64 = 20_000;
/// Edges at either end of that window; their median counts.
const EDGES: usize = 15;
/// Between those edges: longer than a turn on the CPU.
const APART: Duration = Duration::from_millis(5);
/// High byte of our stream ids.
const CAMPAIGN: u8 = 1;

/// Which program of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Writes and numbers each frame.
    Full,
    /// Redirects, and nothing else: the machine's limit.
    Limit,
}

/// Result of a slice.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Frames/s by the generator's own counter.
    pub sent: f64,
    /// Frames/s by the receiver's.
    pub received: f64,
}

/// A lab with generators that reach all its lanes.
pub struct Testbed {
    generators: Vec<LiveFrames>,
    receivers: Vec<XdpReceiver>,
    /// Dropped last.
    pub lab: EmbeddedLab,
}

impl Testbed {
    /// Builds the lab, inline, with `cpus` queues' worth of links. There are no receivers yet.
    ///
    /// # Errors
    /// No privilege, or a kernel that lacks something.
    pub fn build(cpus: &[u32], setups: &[Setup]) -> Result<Testbed, Failure> {
        let spec = LabSpec {
            both_ways: false,
            mode: Mode::Inline,
            generator_cpus: cpus.to_vec(),
            dut_cpus: Vec::new(),
            longest_fcs: FRAME_FCS,
            flows: u64::from(FLOWS),
            host_changes: Consent::Refused,
            interrupted: None,
        };
        Ok(Testbed {
            generators: Vec::new(),
            receivers: Vec::new(),
            lab: EmbeddedLab::build(spec, setups)?,
        })
    }

    /// Puts a receiver that counts all UDP frames, signed or not, on every lane: the same for all contestants.
    ///
    /// # Errors
    /// The kernel does not take the program.
    pub fn receive_on_all(&mut self) -> Result<(), Failure> {
        for lane in &self.lab.lanes {
            let at = Arrival {
                ifindex: lane.receiver.index,
                queues: self.lab.spec.queues(),
            };
            self.receivers.push(XdpReceiver::new(
                &self.lab.receiver.namespace,
                at,
                filter(true),
            )?);
        }
        Ok(())
    }

    /// Adds a generator; its number.
    ///
    /// # Errors
    /// The kernel does not take the program.
    pub fn add(&mut self, kind: Kind, cpus: &[u32], flows: u32) -> Result<usize, Failure> {
        let targets: Vec<Target> = self.lab.lanes.iter().map(target).collect();
        let first = self.lab.lanes.first().ok_or("a lab without lanes")?;
        let traffic = traffic(first, flows)?;
        let program = (kind != Kind::Full).then_some("gen_limit");
        let generator = LiveFrames::new(
            &self.lab.generator.namespace,
            &targets,
            &traffic,
            cpus,
            program,
        )?;
        self.generators.push(generator);
        Ok(self.generators.len() - 1)
    }

    /// The receiver of a lane.
    pub fn receiver(&mut self, lane: usize) -> &mut XdpReceiver {
        &mut self.receivers[lane]
    }

    /// One slice at full speed, counted by the lane's receiver.
    ///
    /// # Errors
    /// No frame left, or the generator ended early.
    pub fn slice(
        &mut self,
        generator: usize,
        lane: usize,
        batch: u32,
        window: Duration,
    ) -> Result<Rates, Failure> {
        slice(
            &mut self.generators[generator],
            &mut self.receivers[lane],
            lane,
            batch,
            window,
        )
    }

    /// One slice with a receiver that is attached for it alone: the one with all of our accounting, or one that only
    /// drops. Only the generator's count stands for both: inline, all that is sent has been forwarded.
    ///
    /// # Errors
    /// As [`Testbed::slice`].
    pub fn slice_with(
        &mut self,
        accounting: bool,
        generator: usize,
        lane: usize,
        window: Duration,
    ) -> Result<f64, Failure> {
        let (namespace, ifindex) = (
            &self.lab.receiver.namespace,
            self.lab.lanes[lane].receiver.index,
        );
        let generator = &mut self.generators[generator];
        if accounting {
            let mut receiver =
                XdpReceiver::new(namespace, Arrival { ifindex, queues: 1 }, filter(false))?;
            return Ok(slice(generator, &mut receiver, lane, 64, window)?.sent);
        }
        // A yardstick: a receiver that counts nothing.
        let mut program = bpf::RECEIVER.load(&[], &[], &[])?;
        attach(&mut program, "bare_drop", namespace, ifindex)?;
        Ok(slice(generator, &mut Uncounted, lane, 64, window)?.sent)
    }

    /// The rates that are reached when `rate` frames/s are asked for, over `window`.
    ///
    /// # Errors
    /// As [`Testbed::slice`].
    pub fn paced(
        &mut self,
        generator: usize,
        lane: usize,
        rate: f64,
        window: Duration,
    ) -> Result<Rates, Failure> {
        let (generator, receiver) = (&mut self.generators[generator], &mut self.receivers[lane]);
        generator.aim(lane);
        receiver.reset()?;
        generator.start(&Load {
            rate: Some(rate),
            ..load(window * 2 + START_WITHIN)
        })?;
        let rates = paced_rates(generator, receiver, rate, window);
        generator.stop()?;
        std::thread::sleep(REST);
        rates
    }
}

/// Both rates between two moments at which a frame was just counted: at 1,000 frames/s, a window that begins and ends
/// anywhere would be wrong by up to a frame in 2,000, which is the bar itself.
fn paced_rates(
    generator: &LiveFrames,
    receiver: &XdpReceiver,
    asked: f64,
    window: Duration,
) -> Result<Rates, Failure> {
    let (sent, received) = (|| generator.frames(), || receiver.frames());
    let first = edge(sent)?;
    std::thread::sleep(WARM_UP);
    let before = (typical_edge(sent, asked)?, typical_edge(received, asked)?);
    std::thread::sleep(window.saturating_sub(Duration::from_nanos(monotonic_ns() - before.0.1)));
    let after = (typical_edge(sent, asked)?, typical_edge(received, asked)?);
    if after.0.0 <= first.0 {
        return Err("the generator stands still".into());
    }
    Ok(Rates {
        sent: between(before.0, after.0),
        received: between(before.1, after.1),
    })
}

fn between((frames, ns): (u64, u64), (later_frames, later_ns): (u64, u64)) -> f64 {
    (later_frames - frames) as f64 / (later_ns - ns) as f64 * 1e9
}

/// The edge with the median delay of several, taken apart: one that another process's turn on the CPU held up by some
/// milliseconds, and that the generator has made good since, says nothing of the rate.
fn typical_edge(counter: impl Fn() -> u64, asked: f64) -> Result<(u64, u64), Failure> {
    let mut edges = Vec::new();
    for _ in 0..EDGES {
        edges.push(edge(&counter)?);
        std::thread::sleep(APART);
    }
    let (first, began) = edges[0];
    let delay =
        |(frames, ns): &(u64, u64)| (ns - began) as f64 - (frames - first) as f64 / asked * 1e9;
    edges.sort_by(|a, b| delay(a).total_cmp(&delay(b)));
    Ok(edges[EDGES / 2])
}

/// A counter at the moment of its change, which is known to within [`EDGE_NS`]: count and CLOCK_MONOTONIC.
fn edge(counter: impl Fn() -> u64) -> Result<(u64, u64), Failure> {
    let end = Instant::now() + START_WITHIN;
    let (mut seen, mut at) = (counter(), monotonic_ns());
    while Instant::now() < end {
        let (before, now, after) = (monotonic_ns(), counter(), monotonic_ns());
        if now != seen && after - at < EDGE_NS {
            return Ok((now, before));
        }
        (seen, at) = (now, after);
    }
    Err("no frame was counted".into())
}

/// Runs a generator at full speed and counts for `window`.
fn slice(
    generator: &mut LiveFrames,
    receiver: &mut dyn Count,
    lane: usize,
    batch: u32,
    window: Duration,
) -> Result<Rates, Failure> {
    generator.aim(lane);
    receiver.reset()?;
    generator.start(&Load {
        batch,
        ..load(window + Duration::from_secs(1))
    })?;
    let end = Instant::now() + START_WITHIN;
    while generator.began_ns().is_none() {
        if generator.finished() || Instant::now() > end {
            generator.stop()?; // says why, where there is a reason
            return Err("no frame left the generator".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(WARM_UP);
    let (sent, received) = (generator.frames(), receiver.total());
    let began = Instant::now();
    std::thread::sleep(window);
    let (sent, received) = (generator.frames() - sent, receiver.total() - received);
    let seconds = began.elapsed().as_secs_f64();
    let early = generator.finished();
    generator.stop()?;
    std::thread::sleep(REST);
    if early {
        return Err("the generator ended before its time".into());
    }
    Ok(Rates {
        sent: sent as f64 / seconds,
        received: received as f64 / seconds,
    })
}

/// The receiver's rate over `window`, whoever sends.
pub fn count(receiver: &dyn Port, window: Duration) -> f64 {
    let (before, began) = (receiver.frames(), Instant::now());
    std::thread::sleep(window);
    (receiver.frames() - before) as f64 / began.elapsed().as_secs_f64()
}

/// The part of a receiver that a slice needs.
trait Count {
    fn reset(&mut self) -> Result<(), Failure>;
    fn total(&self) -> u64;
}

impl Count for XdpReceiver {
    fn reset(&mut self) -> Result<(), Failure> {
        Ok(self.start(&load(Duration::ZERO))?)
    }

    fn total(&self) -> u64 {
        self.frames()
    }
}

/// A receiver that counts nothing.
struct Uncounted;

impl Count for Uncounted {
    fn reset(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn total(&self) -> u64 {
        0
    }
}

/// A load that ends by itself.
pub fn load(duration: Duration) -> Load {
    Load::lasting(duration)
}

/// The filter of all receivers here.
pub fn filter(unsigned: bool) -> Filter {
    Filter {
        streams: 2,
        unsigned,
        ..Filter::of_campaign(CAMPAIGN)
    }
}

fn target(lane: &Lane) -> Target {
    let (source, destination) = (MacAddr(lane.generator.mac), MacAddr(lane.destination_mac()));
    Target {
        ifindex: lane.generator.index,
        source,
        destination,
    }
}

/// Form of every frame, but for the signature of ours.
pub fn frame(lane: &Lane) -> FrameSpec {
    let (to, from) = (MacAddr(lane.destination_mac()), MacAddr(lane.generator.mac));
    FrameSpec::new(to, from, Family::V4, Transport::Udp)
}

fn traffic(lane: &Lane, flows: u32) -> Result<Traffic, Failure> {
    let flows = FlowSpace::benchmark(Family::V4, flows)?;
    Ok(Traffic {
        campaign: CAMPAIGN,
        ..Traffic::new(frame(lane), FrameMix::single(FRAME_FCS), flows)
    })
}
