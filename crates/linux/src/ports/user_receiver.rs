//! The account of a receiver that runs in user space (AF_PACKET, AF_XDP, memory): the counters of the XDP receiver's program,
//! under the same names, from the same bytes.

use super::findings::Finder;
use super::port::{Made, Port, Worker, no_stamps};
use crate::error::Error;
use linerate_hosts::stamps::{Kept, Stamp};
use linerate_measure::counters::{PortCounters, QueueCounters, StreamCounters};
use linerate_plan::Backend;
use linerate_stats::histogram::{BUCKETS, Histogram, bucket};
use linerate_wire::{
    Filter, ForeignKind, Load, Observed, Recognised, STREAMS, SequenceWindow, Signature, recognise,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kinds of frames that are no test frames of the campaign.
pub const FOREIGN: [&str; 6] = ["ARP", "IPv4", "IPv6", "ICMPv6", "other", "other campaign's"];
const OTHER_CAMPAIGN: usize = 5;

/// Bytes kept of the first foreign frame.
const SAMPLE: usize = 64;

/// Frames that have arrived. Each start resets the counters, but not the windows that find duplicates, because sequence numbers
/// continue.
pub struct Account {
    filter: Filter,
    windows: Vec<Option<SequenceWindow>>,
    /// How far each stream's generator's clock is ahead of ours.
    ahead_ns: Vec<i64>,
    streams: Vec<StreamCounters>,
    queues: Vec<QueueCounters>,
    frames: u64,
    bytes: u64,
    foreign: [u64; FOREIGN.len()],
    latency: Vec<u64>,
    finder: Option<Finder>,
    /// Stamps of the card, or of its driver, where they are wanted.
    stamps: Option<(ByCard, Kept)>,
    foreign_sample: Option<Vec<u8>>,
}

/// Whether a card has stamped, and not its driver.
pub(super) type ByCard = bool;

impl Account {
    /// An empty account; `pass_foreign` means nothing here.
    pub fn new(filter: Filter) -> Self {
        let streams = usize::from(filter.streams).clamp(1, STREAMS);
        Account {
            filter,
            windows: vec![None; streams],
            ahead_ns: vec![0; streams],
            streams: vec![StreamCounters::default(); streams],
            queues: Vec::new(),
            frames: 0,
            bytes: 0,
            foreign: [0; FOREIGN.len()],
            latency: vec![0; BUCKETS],
            finder: None,
            stamps: None,
            foreign_sample: None,
        }
    }

    /// Sets the counters to 0, for this load.
    pub fn reset(&mut self, load: &Load) {
        self.finder = Finder::of(load);
        self.streams.fill(StreamCounters::default());
        self.queues.clear();
        (self.frames, self.bytes, self.foreign) = (0, 0, Default::default());
        self.latency.fill(0);
        self.stamps.iter_mut().for_each(|(_, kept)| kept.clear());
        self.foreign_sample = None;
    }

    /// Counts a frame (without FCS) that was `len` bytes long on the wire and arrived at `now_ns`.
    #[inline]
    pub fn observe(&mut self, frame: &[u8], len: usize, now_ns: u64) {
        self.observe_stamped(frame, len, now_ns, None);
    }

    /// Counts a frame that was stamped.
    #[inline]
    pub(super) fn observe_stamped(
        &mut self,
        frame: &[u8],
        len: usize,
        now_ns: u64,
        stamp: Option<(ByCard, u64)>,
    ) {
        match recognise(frame) {
            _ if self.filter.unsigned && could_be_test_frame(frame) => self.test_frame(len),
            Recognised::Test { signature, .. } => match self.stream_of(&signature) {
                Some(id) => self.signed(id, &signature, len, now_ns, stamp),
                None => self.foreign(OTHER_CAMPAIGN, frame),
            },
            Recognised::Foreign(kind) => self.foreign(foreign_index(kind), frame),
        }
    }

    /// The number of a frame's stream, if it is one of ours.
    fn stream_of(&self, signature: &Signature) -> Option<usize> {
        let [campaign, id] = signature.stream.to_be_bytes();
        (campaign == self.filter.campaign && usize::from(id) < self.windows.len())
            .then_some(id.into())
    }

    #[cold]
    fn foreign(&mut self, kind: usize, frame: &[u8]) {
        self.foreign[kind] += 1;
        self.foreign_sample
            .get_or_insert_with(|| frame[..frame.len().min(SAMPLE)].to_vec());
    }

    fn test_frame(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }

    fn signed(
        &mut self,
        id: usize,
        signature: &Signature,
        len: usize,
        now_ns: u64,
        stamp: Option<(ByCard, u64)>,
    ) {
        self.test_frame(len);
        let window = self.windows[id].get_or_insert_default();
        let observed = self.streams[id].count(window, signature.sequence);
        if let Some(age) = signature.age_ns(now_ns.wrapping_add_signed(self.ahead_ns[id])) {
            self.latency[bucket(age)] += 1;
            if let (Some(finder), Observed::New | Observed::Reordered) =
                (&mut self.finder, observed)
            {
                finder.observe(id, signature.stream, signature.sequence, now_ns, age);
            }
            if let (Some((wanted, kept)), Some((by_card, ns))) = (&mut self.stamps, stamp)
                && by_card == *wanted
            {
                kept.add((signature.stream, signature.sequence, ns));
            }
        }
    }

    /// See [`Port::set_clocks`].
    fn set_clocks(&mut self, ahead_ns: &[(u8, i64)]) {
        self.ahead_ns.fill(0);
        for (stream, ns) in ahead_ns {
            self.ahead_ns
                .get_mut(usize::from(*stream))
                .into_iter()
                .for_each(|ahead| *ahead = *ns);
        }
    }

    /// Test frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// So many of the test frames came through this queue on this CPU.
    pub fn add_to_queue(&mut self, cpu: u32, queue: u32, frames: u64) {
        match self
            .queues
            .iter_mut()
            .find(|q| (q.cpu, q.queue) == (cpu, queue))
        {
            _ if frames == 0 => {}
            Some(known) => known.frames += frames,
            None => self.queues.push(QueueCounters { cpu, queue, frames }),
        }
    }

    /// Everything as a port reports it.
    pub fn counters(&self) -> PortCounters {
        let streams = self
            .streams
            .iter()
            .enumerate()
            .filter(|(_, s)| s.frames > 0);
        let id = |low: usize| u16::from(self.filter.campaign) << 8 | low as u16;
        let mut counters = PortCounters {
            frames: self.frames,
            bytes: self.bytes,
            foreign: foreign_counters(self.foreign),
            queues: self.queues.clone(),
            streams: streams
                .map(|(low, s)| StreamCounters {
                    stream: id(low),
                    ..*s
                })
                .collect(),
            latency: Histogram::from_dense(&self.latency),
            ..PortCounters::default()
        };
        self.finder
            .iter()
            .for_each(|finder| finder.report(&mut counters));
        counters
    }
}

/// Counts of the kinds in [`FOREIGN`], by name.
pub(super) fn foreign_counters(counts: [u64; FOREIGN.len()]) -> BTreeMap<String, u64> {
    FOREIGN
        .iter()
        .map(|kind| kind.to_string())
        .zip(counts)
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The number of a kind in [`FOREIGN`].
pub fn foreign_index(kind: ForeignKind) -> usize {
    match kind {
        ForeignKind::Arp => 0,
        ForeignKind::Ipv4 => 1,
        ForeignKind::Ipv6 => 2,
        ForeignKind::Icmpv6 => 3,
        ForeignKind::Other(_) | ForeignKind::Runt => 4,
    }
}

/// Whether an untagged or tagged frame carries UDP, TCP or ICMP, as frames of generators without signatures do.
fn could_be_test_frame(frame: &[u8]) -> bool {
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let at = if matches!((byte(12), byte(13)), (0x81, 0) | (0x88, 0xa8)) {
        16
    } else {
        12
    };
    let protocol = match (byte(at), byte(at + 1)) {
        (0x08, 0) => byte(at + 11),
        (0x86, 0xdd) => byte(at + 8),
        _ => return false,
    };
    matches!(protocol, 1 | 6 | 17)
}

impl<F: Fn() -> u64 + Send> Kernel for F {
    fn dropped(&self) -> u64 {
        self()
    }
}

/// State that a receiving thread and the port share.
pub(super) struct Shared {
    account: Mutex<Account>,
    /// A copy of the account's frames, to be sampled without a lock.
    frames: AtomicU64,
}

impl Shared {
    /// Lets `f` count a batch of frames.
    pub fn count<R>(&self, f: impl FnOnce(&mut Account) -> R) -> R {
        let mut account = self.lock();
        let result = f(&mut account);
        self.frames.store(account.frames, Ordering::Relaxed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How frames arrive.
pub(super) trait Receive: Send + 'static {
    /// Waits for frames, no longer than some 50 ms, and counts all that are there.
    ///
    /// # Errors
    /// The port is gone.
    fn receive(&mut self, shared: &Shared) -> Result<(), Error>;
}

/// The kernel's side of a receiver.
pub(super) trait Kernel: Send {
    /// Frames that were dropped before the receiver saw them, since it was made.
    fn dropped(&self) -> u64;

    /// See [`Port::stamp`].
    fn stamp(&self, _: ByCard) -> io::Result<()> {
        Err(no_stamps(Backend::AfXdp))
    }
}

/// A receiver in user space: one thread, if frames have to be fetched, and the account.
pub(super) struct UserReceiver {
    backend: Backend,
    shared: Arc<Shared>,
    thread: Worker,
    /// Goes after the thread has ended, with all that it holds.
    kernel: Box<dyn Kernel>,
    dropped_before: u64,
}

impl UserReceiver {
    /// A receiver with a thread, on `cpu` if one is given. `kernel` counts drops.
    pub(super) fn spawn(
        backend: Backend,
        filter: Filter,
        cpu: Option<u32>,
        mut receive: impl Receive,
        kernel: impl Kernel + 'static,
    ) -> Made {
        let account = Mutex::new(Account::new(filter));
        let shared = Arc::new(Shared {
            account,
            frames: AtomicU64::new(0),
        });
        let its = shared.clone();
        let thread = Worker::spawn("receiver", cpu, move |stop| {
            while !stop.load(Ordering::Relaxed) {
                receive.receive(&its)?;
            }
            Ok(())
        })?;
        Ok(Box::new(UserReceiver {
            backend,
            shared,
            thread,
            kernel: Box::new(kernel),
            dropped_before: 0,
        }))
    }
}

impl Port for UserReceiver {
    fn backend(&self) -> Backend {
        self.backend
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        self.stop()?;
        self.dropped_before = self.kernel.dropped();
        self.shared.count(|account| account.reset(load));
        Ok(())
    }

    fn foreign_sample(&self) -> Option<Vec<u8>> {
        self.shared.lock().foreign_sample.clone()
    }

    /// A socket beside the stack takes nothing from it; AF_XDP takes all.
    fn let_through(&mut self, _: bool) -> bool {
        self.backend != Backend::AfXdp
    }

    fn set_clocks(&mut self, ahead_ns: &[(u8, i64)]) {
        self.shared.lock().set_clocks(ahead_ns);
    }

    fn stamp(&mut self, by_card: ByCard) -> io::Result<()> {
        self.kernel.stamp(by_card)?;
        self.shared.lock().stamps = Some((by_card, Kept::default()));
        Ok(())
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.shared
            .lock()
            .stamps
            .as_ref()
            .map_or(Vec::new(), |(_, kept)| kept.stamps().to_vec())
    }

    fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    fn counters(&self) -> PortCounters {
        let counters = self.shared.lock().counters();
        PortCounters {
            refused: self.kernel.dropped() - self.dropped_before,
            ..counters
        }
    }

    fn stop(&mut self) -> Result<(), Error> {
        if self.thread.has_ended() {
            self.thread.join()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Filter {
        Filter {
            streams: 2,
            ..Filter::of_campaign(7)
        }
    }

    fn udp(signature: &Signature) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        (frame[14], frame[17], frame[23]) = (0x45, 46, 17);
        frame[42..].copy_from_slice(&signature.encode());
        frame
    }

    #[test]
    fn streams_duplicates_latency_and_foreign_frames() {
        let mut account = Account::new(filter());
        for (stream, sequence, time_ns) in [
            (0x701, 5, 1000),
            (0x701, 5, 0),
            (0x701, 4, 3000),
            (0x801, 0, 0),
            (0x702, 0, 0),
        ] {
            account.observe(
                &udp(&Signature {
                    stream,
                    sequence,
                    time_ns,
                }),
                60,
                2000,
            );
        }
        account.observe(&[0xff; 10], 10, 0);
        assert_eq!(
            account.foreign_sample.as_ref().unwrap()[42..],
            udp(&Signature {
                stream: 0x801,
                ..Default::default()
            })[42..]
        );
        account.add_to_queue(1, 2, 3);
        let c = account.counters();
        let expected = StreamCounters {
            stream: 0x701,
            frames: 3,
            duplicates: 1,
            reordered: 1,
            too_late: 0,
            next_sequence: 6,
            ipv6: false,
        };
        assert_eq!((c.frames, c.bytes, c.streams), (3, 180, vec![expected]));
        assert_eq!((c.foreign["other campaign's"], c.foreign["other"]), (2, 1));
        assert_eq!(
            (c.latency.count(), c.latency.quantile(0.5)),
            (2, Some(0)),
            "a stamp from the future is no latency"
        );
        assert_eq!(
            c.queues,
            [QueueCounters {
                cpu: 1,
                queue: 2,
                frames: 3
            }]
        );
        account.reset(&Load::lasting(std::time::Duration::from_secs(1)));
        assert_eq!(account.counters(), PortCounters::default());
        // A generator whose clock is ahead by 7 s, as by an estimate that is 3 us too small.
        account.set_clocks(&[(1, 6_999_997_000), (200, 5)]);
        for latency in [1_000, 5_000] {
            let time_ns = 7_000_000_000;
            account.observe(
                &udp(&Signature {
                    stream: 0x701,
                    sequence: 90,
                    time_ns,
                }),
                60,
                latency,
            );
        }
        let latency = account.counters().latency;
        assert_eq!(
            (latency.count(), latency.quantile(0.5)),
            (2, Some(0)),
            "below 0 counts as 0"
        );
        assert_eq!(bucket(latency.quantile(1.0).unwrap()), bucket(2_000));
        account.reset(&Load::lasting(std::time::Duration::from_secs(1)));
        account.observe(
            &udp(&Signature {
                stream: 0x701,
                sequence: 5,
                time_ns: 0,
            }),
            60,
            0,
        );
        assert_eq!(
            account.counters().duplicates(),
            1,
            "the window outlives the reset"
        );
    }

    #[test]
    fn unsigned_frames_count_if_asked_for() {
        let mut account = Account::new(Filter {
            unsigned: true,
            ..filter()
        });
        let mut frame = vec![0; 60];
        (frame[12], frame[23]) = (8, 17);
        account.observe(&frame, 60, 0);
        frame[23] = 2;
        account.observe(&frame, 60, 0);
        assert_eq!(
            (
                account.counters().frames,
                account.counters().foreign["IPv4"]
            ),
            (1, 1)
        );
    }
}
