//! The receiver: an XDP program that counts test frames per CPU, queue and stream, and drops them.

use super::attached::{Attached, Names, attach_for_any_mtu, give_way};
use super::findings::{RECENT, TAGS, report, tag_gap_ns};
use super::user_receiver::{FOREIGN, foreign_counters};
use super::{Arrival, Port};
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::programs::xdp::XdpMode;
use linerate_measure::counters::{
    Delays, OUTAGES, Outage, PortCounters, QueueCounters, StreamCounters,
};
use linerate_plan::Backend;
use linerate_stats::histogram::{BUCKETS, Histogram};
use linerate_wire::{Filter, Findings, Load, STREAMS};

/// Words of a stream's window; `WINDOW_WORDS` in receiver.bpf.c.
const WINDOW_WORDS: usize = 8192;

/// `struct queue` in receiver.bpf.c: frames, bytes, and foreign frames by kind.
type Queue = [u64; 2 + FOREIGN.len()];

/// `struct stream` in receiver.bpf.c: received, duplicates, reordered, too late, and the next sequence number; the rest is not read.
type Stream = [u64; 8];

/// Counts since `base`.
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

/// `struct control` in receiver.bpf.c.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Control {
    /// Whether test frames go up the stack to be answered.
    answered: u64,
    finding: u64,
    first_ns: u64,
    tag_after_ns: u64,
    tag_gap_ns: u64,
    tag_next_ns: u64,
    tagged: u64,
    pad: u64,
}

/// `struct found` in receiver.bpf.c: the latest arrival, the next sequence number, the last loss, the shortest outage, and all outages as
/// beginning, end and missing frames.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Found {
    last_ns: u64,
    next: u64,
    lost_ns: u64,
    shortest_ns: u64,
    outages: [[u64; 3]; OUTAGES],
}

/// `struct delays` in receiver.bpf.c.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct DelaysOfCpu {
    frames: u64,
    pairs: u64,
    min_ns: u64,
    max_ns: u64,
    least_ns: i64,
    most_ns: i64,
    pad: [u64; 2],
}

/// Arrays of the findings.
struct Finding {
    found: MappedArray<Found>,
    recent: MappedArray<u64>,
    delays: MappedArray<DelaysOfCpu>,
    differences: MappedArray<u64>,
    /// When a frame was sent, and its delay.
    tags: MappedArray<[u64; 2]>,
}

/// An XDP receiver on one interface.
pub struct XdpReceiver {
    namespace: Netns,
    at: Arrival,
    queues: MappedArray<Queue>,
    streams: MappedArray<Stream>,
    latencies: MappedArray<u64>,
    /// How far each stream's generator's clock is ahead of ours.
    ahead: MappedArray<i64>,
    sample: MappedArray<Sample>,
    control: MappedArray<Control>,
    /// Once a load has asked for it.
    finding: Option<Finding>,
    filter: Filter,
    queue_count: u32,
    cpus: usize,
    base: Snapshot,
    /// Holds the program on the interface; dropping it detaches.
    attached: Attached,
    _ebpf: Ebpf,
}

const RECEIVE: Names = ["receive", "receive_frags"];

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
    pub fn new(namespace: &Netns, at: Arrival, filter: Filter) -> Result<Self, Error> {
        XdpReceiver::replacing(
            give_way(namespace, at.ifindex),
            false,
            namespace,
            at,
            filter,
        )
    }

    /// A receiver, with findings if they are wanted, in the place of another program of ours on the interface: a card would lose its link if
    /// that were detached.
    fn replacing(
        other: Option<Attached>,
        finds: bool,
        namespace: &Netns,
        at: Arrival,
        filter: Filter,
    ) -> Result<Self, Error> {
        let queues = at.queues;
        let cpus = bpf::possible_cpus();
        let queues = queues.max(1);
        let streams = usize::from(filter.streams).clamp(1, STREAMS);
        let numbers = [
            ("QUEUES", queues),
            ("STREAM_BASE", u32::from(filter.campaign)),
            ("STREAMS_USED", streams as u32),
            ("PASS_FOREIGN", u32::from(filter.pass_foreign)),
            ("FINDS", u32::from(finds)),
            ("UNSIGNED", u32::from(filter.unsigned)),
        ];
        let (found, of_cpus, tags) = if finds {
            (streams, cpus, TAGS)
        } else {
            (1, 1, 1)
        };
        let elements = [
            ("queues", cpus as u32 * queues),
            ("streams", (cpus * STREAMS) as u32),
            ("windows", (streams * WINDOW_WORDS) as u32),
            ("latencies", (cpus * BUCKETS) as u32),
            ("found", found as u32),
            ("recent", (found * RECENT) as u32),
            ("delays", of_cpus as u32),
            ("differences", (of_cpus * 2 * BUCKETS) as u32),
            ("tags", tags as u32),
        ];
        let mut ebpf = bpf::RECEIVER.load(&numbers, &[], &elements)?;
        let attached = match other {
            None => {
                attach_for_any_mtu(XdpMode::Default, &mut ebpf, RECEIVE, namespace, at.ifindex)?
            }
            Some(other) => other.hand_over(&mut ebpf, RECEIVE, namespace, at.ifindex)?,
        };
        let finding = finds.then(|| {
            Ok::<_, Error>(Finding {
                found: MappedArray::take(&mut ebpf, "found", streams)?,
                recent: MappedArray::take(&mut ebpf, "recent", streams * RECENT)?,
                delays: MappedArray::take(&mut ebpf, "delays", cpus)?,
                differences: MappedArray::take(&mut ebpf, "differences", cpus * 2 * BUCKETS)?,
                tags: MappedArray::take(&mut ebpf, "tags", TAGS)?,
            })
        });
        let mut receiver = XdpReceiver {
            namespace: namespace.clone(),
            at,
            finding: finding.transpose()?,
            queues: MappedArray::take(&mut ebpf, "queues", cpus * queues as usize)?,
            streams: MappedArray::take(&mut ebpf, "streams", cpus * STREAMS)?,
            latencies: MappedArray::take(&mut ebpf, "latencies", cpus * BUCKETS)?,
            ahead: MappedArray::take(&mut ebpf, "ahead", STREAMS)?,
            sample: MappedArray::take(&mut ebpf, "sample", 1)?,
            control: MappedArray::take(&mut ebpf, "control", 1)?,
            filter: Filter {
                streams: streams as u16,
                ..filter
            },
            queue_count: queues,
            cpus,
            base: Snapshot::default(),
            attached,
            _ebpf: ebpf,
        };
        receiver.base = receiver.snapshot();
        Ok(receiver)
    }

    /// Gets ready for the findings that a load asks for.
    fn prepare(&mut self, load: &Load) -> Result<(), Error> {
        if load.findings.is_some() && self.finding.is_none() {
            let (namespace, at, filter) = (self.namespace.clone(), self.at, self.filter);
            let attached = Attached {
                link: self.attached.link.take(),
                ..self.attached
            };
            let finding = XdpReceiver::replacing(Some(attached), true, &namespace, at, filter)?;
            (0..STREAMS).for_each(|stream| finding.ahead.set(stream, self.ahead.get(stream)));
            finding.control.set(0, self.control.get(0));
            *self = finding;
        }
        let control = Control {
            answered: self.control.get(0).answered,
            ..Control::default()
        };
        let Some(Findings {
            every_frame,
            tag_after_ns,
        }) = load.findings
        else {
            self.control.set(0, control);
            return Ok(());
        };
        if let Some(finding) = &self.finding {
            for stream in 0..usize::from(self.filter.streams) {
                if finding.found.get(stream).last_ns > 0 {
                    finding.found.set(stream, Found::default());
                    (0..RECENT).for_each(|n| finding.recent.set(stream * RECENT + n, 0));
                }
            }
            (0..self.cpus).for_each(|cpu| finding.delays.set(cpu, DelaysOfCpu::default()));
            (0..self.cpus * 2 * BUCKETS).for_each(|n| finding.differences.set(n, 0));
        }
        let tag_gap_ns = tag_gap_ns(
            load,
            Findings {
                every_frame,
                tag_after_ns,
            },
        );
        let finding = 1 + u64::from(every_frame);
        self.control.set(
            0,
            Control {
                finding,
                tag_after_ns,
                tag_gap_ns,
                ..control
            },
        );
        Ok(())
    }

    fn add_findings(&self, counters: &mut PortCounters) {
        let control = self.control.get(0);
        let Some(Finding {
            found,
            delays,
            differences,
            tags,
            ..
        }) = self.finding.as_ref().filter(|_| control.finding > 0)
        else {
            return;
        };
        let mut all = Delays::default();
        for (cpu, of_cpu) in delays
            .iter()
            .enumerate()
            .filter(|(_, of_cpu)| of_cpu.frames > 0)
        {
            let DelaysOfCpu {
                frames,
                min_ns,
                max_ns,
                least_ns,
                most_ns,
                ..
            } = of_cpu;
            let [earlier, later] = [0, 1].map(|sign| {
                let from = (2 * cpu + sign) * BUCKETS;
                let dense: Vec<u64> = (from..from + BUCKETS).map(|n| differences.get(n)).collect();
                Histogram::from_dense(&dense)
            });
            let of_cpu = Delays {
                frames,
                min_ns,
                max_ns,
                least_ns,
                most_ns,
                earlier,
                later,
                ..Delays::default()
            };
            all.add(of_cpu);
        }
        all.tagged = tags
            .iter()
            .take(control.tagged as usize)
            .map(|[sent, delay]| (sent, delay))
            .collect();
        let mut streams = 0;
        for (id, found) in (0..)
            .zip(found.iter())
            .filter(|(_, found)| found.last_ns > 0)
        {
            streams += 1;
            let stream = u16::from(self.filter.campaign) << 8 | id;
            let outages = found.outages.iter().filter(|[from_ns, ..]| *from_ns > 0);
            counters
                .outages
                .extend(outages.map(|&[from_ns, to_ns, missing]| Outage {
                    stream,
                    from_ns,
                    to_ns,
                    missing,
                }));
            counters.last_loss_ns = counters
                .last_loss_ns
                .max(Some(found.lost_ns).filter(|lost_ns| *lost_ns > 0));
        }
        counters.sort_outages();
        report(counters, all, streams);
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
            let mut counters = StreamCounters {
                stream,
                ..StreamCounters::default()
            };
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
        (0..self.filter.streams)
            .map(one)
            .filter(|counters| counters.frames > 0)
            .collect()
    }
}

impl Port for XdpReceiver {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        self.prepare(load)?;
        self.sample.set(
            0,
            Sample {
                length: 0,
                kind: 0,
                bytes: [0; 64],
            },
        );
        self.base = self.snapshot();
        Ok(())
    }

    fn foreign_sample(&self) -> Option<Vec<u8>> {
        let sample = self.sample.get(0);
        let length = (sample.length as usize).min(sample.bytes.len());
        (length > 0).then(|| sample.bytes[..length].to_vec())
    }

    fn frames(&self) -> u64 {
        self.queues
            .iter()
            .zip(&self.base.queues)
            .map(|(now, base)| now[0] - base[0])
            .sum()
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
        self.add_findings(&mut counters);
        counters
    }

    fn let_through(&mut self, on: bool) -> bool {
        self.control.set(
            0,
            Control {
                answered: u64::from(on),
                ..self.control.get(0)
            },
        );
        true
    }

    fn set_clocks(&mut self, ahead_ns: &[(u8, i64)]) {
        (0..STREAMS).for_each(|stream| self.ahead.set(stream, 0));
        ahead_ns
            .iter()
            .for_each(|(stream, ns)| self.ahead.set(usize::from(*stream), *ns));
    }

    fn stop(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
