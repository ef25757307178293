//! The receiver: an XDP program that counts test frames per CPU, queue and stream, and drops them.

use super::user_receiver::{FOREIGN, foreign_counters};
use super::{Arrival, Port};
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::programs::ProgramError;
use aya::programs::xdp::XdpMode;
use linerate_measure::counters::{PortCounters, QueueCounters, StreamCounters};
use linerate_plan::Backend;
use linerate_stats::histogram::{BUCKETS, Histogram};
use linerate_wire::{Filter, Load, STREAMS};

/// Words of a stream's window; `WINDOW_WORDS` in receiver.bpf.c.
const WINDOW_WORDS: usize = 8192;

/// `struct queue` in receiver.bpf.c: frames, bytes, and foreign frames by kind.
type Queue = [u64; 2 + FOREIGN.len()];

/// `struct stream` in receiver.bpf.c: received, duplicates, reordered, too late, and the next sequence number; the rest is not read.
type Stream = [u64; 8];

/// What has been added since `base`.
fn grown<const N: usize>(now: &[u64; N], base: &[u64; N]) -> [u64; N] {
    std::array::from_fn(|i| now[i] - base[i])
}

/// `struct sample` in receiver.bpf.c.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Sample {
    length: u32,
    kind: u32,
    bytes: [u8; 64],
}

/// An XDP receiver on one interface.
pub struct XdpReceiver {
    queues: MappedArray<Queue>,
    streams: MappedArray<Stream>,
    latencies: MappedArray<u64>,
    /// How far each stream's generator's clock is ahead of ours.
    ahead: MappedArray<i64>,
    sample: MappedArray<Sample>,
    /// `struct control` in receiver.bpf.c: whether test frames go up the stack to be answered.
    control: MappedArray<u64>,
    filter: Filter,
    queue_count: u32,
    cpus: usize,
    base: Snapshot,
    /// Holds the program on the interface; dropping it detaches.
    _ebpf: Ebpf,
}

#[derive(Debug, Default)]
struct Snapshot {
    queues: Vec<Queue>,
    streams: Vec<Stream>,
    latencies: Vec<u64>,
}

impl XdpReceiver {
    /// Attaches a receiver to an interface of `namespace`.
    ///
    /// # Errors
    /// No privilege, or another XDP program is on the interface.
    pub fn new(
        namespace: &Netns,
        Arrival { ifindex, queues }: Arrival,
        filter: Filter,
    ) -> Result<Self, Error> {
        let cpus = bpf::possible_cpus();
        let queues = queues.max(1);
        let streams = usize::from(filter.streams).clamp(1, STREAMS);
        let numbers = [
            ("QUEUES", queues),
            ("STREAM_BASE", u32::from(filter.campaign)),
            ("STREAMS_USED", streams as u32),
            ("PASS_FOREIGN", u32::from(filter.pass_foreign)),
            ("UNSIGNED", u32::from(filter.unsigned)),
        ];
        let elements = [
            ("queues", cpus as u32 * queues),
            ("streams", (cpus * STREAMS) as u32),
            ("windows", (streams * WINDOW_WORDS) as u32),
            ("latencies", (cpus * BUCKETS) as u32),
        ];
        let mut ebpf = bpf::RECEIVER.load(&numbers, &[], &elements)?;
        attach_for_any_mtu(&mut ebpf, namespace, ifindex)?;
        let mut receiver = XdpReceiver {
            queues: MappedArray::take(&mut ebpf, "queues", cpus * queues as usize)?,
            streams: MappedArray::take(&mut ebpf, "streams", cpus * STREAMS)?,
            latencies: MappedArray::take(&mut ebpf, "latencies", cpus * BUCKETS)?,
            ahead: MappedArray::take(&mut ebpf, "ahead", STREAMS)?,
            sample: MappedArray::take(&mut ebpf, "sample", 1)?,
            control: MappedArray::take(&mut ebpf, "control", 1)?,
            filter: Filter { streams: streams as u16, ..filter },
            queue_count: queues,
            cpus,
            base: Snapshot::default(),
            _ebpf: ebpf,
        };
        receiver.base = receiver.snapshot();
        Ok(receiver)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            queues: self.queues.iter().collect(),
            streams: self.streams.iter().collect(),
            latencies: self.latencies.iter().collect(),
        }
    }

    fn latency(&self, now: &Snapshot) -> Histogram {
        let mut dense = vec![0; BUCKETS];
        for (i, (now, base)) in now.latencies.iter().zip(&self.base.latencies).enumerate() {
            dense[i % BUCKETS] += now - base;
        }
        Histogram::from_dense(&dense)
    }

    fn stream_counters(&self, now: &Snapshot) -> Vec<StreamCounters> {
        let one = |id: u16| {
            let stream = u16::from(self.filter.campaign) << 8 | id;
            let mut counters = StreamCounters { stream, ..StreamCounters::default() };
            for at in (0..self.cpus).map(|cpu| cpu * STREAMS + usize::from(id)) {
                let (now, base) = (&now.streams[at], &self.base.streams[at]);
                let [received, duplicates, reordered, too_late, ..] = grown(now, base);
                counters.frames += received;
                counters.duplicates += duplicates;
                counters.reordered += reordered;
                counters.too_late += too_late;
                counters.next_sequence = counters.next_sequence.max(now[4]);
            }
            counters
        };
        (0..self.filter.streams).map(one).filter(|counters| counters.frames > 0).collect()
    }
}

/// A veth whose other end has a large MTU takes only programs that know of frames in several pieces (Linux 5.18).
fn attach_for_any_mtu(ebpf: &mut Ebpf, namespace: &Netns, ifindex: u32) -> Result<(), Error> {
    match attach(ebpf, "receive", namespace, ifindex) {
        Err(e) if e.errno() == Some(libc::ERANGE) => attach(ebpf, "receive_frags", namespace, ifindex),
        other => other,
    }
}

/// Loads and attaches the XDP program `name` of an object: in the driver if possible, generic otherwise.
///
/// # Errors
/// The kernel's refusal.
pub fn attach(ebpf: &mut Ebpf, name: &str, namespace: &Netns, ifindex: u32) -> Result<(), Error> {
    let program = bpf::load_xdp(ebpf, name)?;
    let attached = namespace.enter(|| program.attach_to_if_index(ifindex, XdpMode::default()))?;
    attached.map(drop).map_err(|e| match e {
        ProgramError::SyscallError(e) => {
            Error::system(format_args!("attach an XDP program to interface number {ifindex}"), e.io_error)
        }
        _ => bpf::program_error(name, &e),
    })
}

impl Port for XdpReceiver {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn start(&mut self, _: &Load) -> Result<(), Error> {
        self.sample.set(0, Sample { length: 0, kind: 0, bytes: [0; 64] });
        self.base = self.snapshot();
        Ok(())
    }

    fn foreign_sample(&self) -> Option<Vec<u8>> {
        let sample = self.sample.get(0);
        let length = (sample.length as usize).min(sample.bytes.len());
        (length > 0).then(|| sample.bytes[..length].to_vec())
    }

    fn frames(&self) -> u64 {
        self.queues.iter().zip(&self.base.queues).map(|(now, base)| now[0] - base[0]).sum()
    }

    fn counters(&self) -> PortCounters {
        let now = self.snapshot();
        let mut counters = PortCounters::default();
        let mut foreign = [0; FOREIGN.len()];
        for (i, (now, base)) in now.queues.iter().zip(&self.base.queues).enumerate() {
            let [frames, bytes, kinds @ ..] = grown(now, base);
            counters.frames += frames;
            counters.bytes += bytes;
            foreign.iter_mut().zip(kinds).for_each(|(sum, n)| *sum += n);
            if frames > 0 {
                let (cpu, queue) = (i as u32 / self.queue_count, i as u32 % self.queue_count);
                counters.queues.push(QueueCounters { cpu, queue, frames });
            }
        }
        counters.foreign = foreign_counters(foreign);
        counters.streams = self.stream_counters(&now);
        counters.latency = self.latency(&now);
        counters
    }

    fn let_through(&mut self, on: bool) -> bool {
        self.control.set(0, u64::from(on));
        true
    }

    fn set_clocks(&mut self, ahead_ns: &[(u8, i64)]) {
        (0..STREAMS).for_each(|stream| self.ahead.set(stream, 0));
        ahead_ns.iter().for_each(|(stream, ns)| self.ahead.set(usize::from(*stream), *ns));
    }

    fn stop(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
