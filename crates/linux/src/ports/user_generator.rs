//! Generators that run in user space: AF_PACKET, AF_XDP and the in-memory link.
//!
//! [`FrameSource`] gives the next frame, [`Pacer`] the number of frames due; both are functions of their inputs, the clock
//! included. [`UserGenerator`] has one thread per CPU: each asks its pacer for the frames due and hands them to its transmitter.

use super::frame_source::FrameSource;
use super::pacer::{Due, Pacer, together};
use super::port::{Made, Port, Target, ThreadCounters, Worker, no_stamps};
use crate::clock::monotonic_ns;
use crate::error::Error;
use crate::host::cpu::GENERATOR;
use linerate_hosts::stamps::Stamp;
use linerate_plan::Backend;
use linerate_wire::{Load, Traffic};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shorter waits are spun through: a sleeping thread wakes late by tens of microseconds.
const SPIN_NS: u64 = 150_000;
/// How much before the time a sleeping thread wants to be awake.
const EARLY_NS: u64 = 100_000;
/// The longest sleep, so that a stop is noticed.
const SLEEP_NS: u64 = 5_000_000;

/// How one thread's frames leave.
pub(super) trait Transmit: Send + 'static {
    /// Takes up to `due` frames out of `source` and sends them; returns how many were used up. Adds the frames sent to `tally`.
    /// May return early, with 0 as well, if the port takes no more; must do so once `tally` says to stop.
    ///
    /// # Errors
    /// The port is gone.
    fn send(
        &mut self,
        source: &mut FrameSource,
        due: u32,
        pacer: &Pacer,
        tally: &Tally,
    ) -> Result<u32, Error>;

    /// See [`Port::stamp`].
    fn stamp(&mut self, _by_card: bool) -> io::Result<()> {
        Err(no_stamps(Backend::AfXdp))
    }

    /// A load begins.
    fn begin(&mut self) {}

    /// See [`Port::stamps`].
    fn stamps(&self) -> &[Stamp] {
        &[]
    }

    /// Nothing is due for a moment.
    fn idle(&mut self, _tally: &Tally) {}

    /// The load is over: waits for frames that have not left.
    ///
    /// # Errors
    /// Some cannot leave.
    fn finish(&mut self, _tally: &Tally) -> Result<(), Error> {
        Ok(())
    }
}

/// Counters of one thread: written by that thread, read by any, in cache lines of its own (two, because processors fetch pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    frames: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
    /// 0: not yet.
    first_ns: AtomicU64,
    /// When the last batch had left.
    last_ns: AtomicU64,
    stall_ns: AtomicU64,
    bursts: AtomicU64,
    bursts_ns: AtomicU64,
    sequence: AtomicU64,
    /// Mixed IPv6 frames of this load, which the other counters include, and the next sequence number.
    second: AtomicU64,
    second_sequence: AtomicU64,
    finished: AtomicBool,
    stop: AtomicBool,
}

impl Tally {
    /// Frames with these bytes in total have left.
    #[inline]
    pub fn sent(&self, frames: u64, bytes: u64) {
        add(&self.frames, frames);
        add(&self.bytes, bytes);
    }

    /// Counts frames that the port refused.
    #[inline]
    pub fn refused(&self, frames: u64) {
        add(&self.refused, frames);
    }

    /// Whether the thread is to end now.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        let counters = [
            &self.frames,
            &self.bytes,
            &self.refused,
            &self.first_ns,
            &self.last_ns,
            &self.stall_ns,
        ];
        let counters = counters
            .into_iter()
            .chain([&self.bursts, &self.bursts_ns, &self.second]);
        counters
            .into_iter()
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
        [&self.finished, &self.stop]
            .iter()
            .for_each(|flag| flag.store(false, Ordering::Relaxed));
    }

    fn publish(&self, source: &FrameSource, pacer: &Pacer) {
        self.first_ns
            .store(pacer.first_ns.unwrap_or(0), Ordering::Relaxed);
        self.stall_ns.store(pacer.stall_ns, Ordering::Relaxed);
        let (bursts, bursts_ns) = pacer.bursts();
        self.bursts.store(bursts, Ordering::Relaxed);
        self.bursts_ns.store(bursts_ns, Ordering::Relaxed);
        self.sequence.store(source.sequence, Ordering::Relaxed);
        if let Some((_, next)) = source.second() {
            // Never more than `frames`, which has counted them already.
            add(
                &self.second,
                next - self.second_sequence.swap(next, Ordering::Relaxed),
            );
        }
    }
}

/// One writer: no need for a locked instruction.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// A generator in user space: threads with a way to transmit.
pub(super) struct UserGenerator<T: Transmit> {
    backend: Backend,
    traffic: Traffic,
    /// By target.
    members: Vec<Vec<Member<T>>>,
    aim: usize,
    /// The threads of the load under way.
    threads: Vec<Worker>,
}

struct Member<T> {
    cpu: u32,
    stream: u16,
    /// The stream of its mixed IPv6 frames.
    second: Option<u16>,
    tally: Arc<Tally>,
    /// Locked by the thread while it runs.
    work: Arc<Mutex<(FrameSource, T)>>,
}

impl<T> Member<T> {
    fn work(&self) -> MutexGuard<'_, (FrameSource, T)> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transmit> UserGenerator<T> {
    /// One thread for each of `cpus`; `transmitter` makes its transmitter to a target, from the thread's number and the longest
    /// frame in bytes without FCS.
    ///
    /// # Errors
    /// Traffic that cannot be sent, or the error of `transmitter`.
    pub(super) fn boxed(
        backend: Backend,
        targets: &[Target],
        traffic: &Traffic,
        cpus: &[u32],
        mut transmitter: impl FnMut(&Target, usize, usize) -> Result<T, Error>,
    ) -> Made {
        let mut members = Vec::with_capacity(targets.len());
        for target in targets {
            let addressed = traffic.addressed(target.source, target.destination);
            let mut crew = Vec::with_capacity(cpus.len());
            for (thread, cpu) in cpus.iter().enumerate() {
                let source = FrameSource::new(&addressed, thread, cpus.len())?;
                let (stream, longest) = (source.stream, source.longest());
                let second = source.second().map(|(stream, _)| stream);
                let work = Arc::new(Mutex::new((source, transmitter(target, thread, longest)?)));
                crew.push(Member {
                    cpu: *cpu,
                    stream,
                    second,
                    tally: Arc::default(),
                    work,
                });
            }
            members.push(crew);
        }
        Ok(Box::new(UserGenerator {
            backend,
            traffic: traffic.clone(),
            members,
            aim: 0,
            threads: Vec::new(),
        }))
    }

    fn crew(&self) -> &[Member<T>] {
        &self.members[self.aim]
    }

    fn join(&mut self) -> Result<(), Error> {
        self.members
            .iter()
            .flatten()
            .for_each(|m| m.tally.stop.store(true, Ordering::Relaxed));
        let mut result = Ok(());
        for mut thread in self.threads.drain(..) {
            result = result.and(thread.join());
        }
        result
    }

    fn spawn(&self, thread: usize, load: &Load) -> Result<Worker, Error> {
        let Member {
            cpu, tally, work, ..
        } = &self.crew()[thread];
        let (cpu, tally, work) = (*cpu, tally.clone(), work.clone());
        let (of_all, traffic) = ((thread, self.crew().len()), &self.traffic);
        let pacer = Pacer::new(load, thread, of_all.1).in_bursts(load, traffic, 1, of_all);
        let (batch, not_before_ns, stamp_every) = (
            load.batch.max(1),
            load.not_before_ns,
            self.traffic.stamp_every_of(load),
        );
        Worker::spawn(format!("{GENERATOR}{cpu}"), Some(cpu), move |_| {
            // A failure only makes waits longer.
            let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
            await_start(not_before_ns, &tally);
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            let (source, transmit) = &mut *work;
            source.begin(stamp_every);
            run(source, transmit, pacer, batch, &tally)
        })
    }
}

fn await_start(at_ns: u64, tally: &Tally) {
    while !tally.stopping() {
        match at_ns.saturating_sub(monotonic_ns()) {
            0 => return,
            ns => rest(ns),
        }
    }
}

fn run<T: Transmit>(
    source: &mut FrameSource,
    transmit: &mut T,
    mut pacer: Pacer,
    batch: u32,
    tally: &Tally,
) -> Result<(), Error> {
    transmit.begin();
    let mut sending = false;
    while !tally.stopping() {
        let now_ns = monotonic_ns();
        if std::mem::take(&mut sending) {
            tally.last_ns.store(now_ns, Ordering::Relaxed);
        }
        match pacer.due(now_ns, batch) {
            Due::Over => break,
            Due::Wait(ns) => {
                transmit.idle(tally);
                rest(ns);
            }
            Due::Frames(due) => {
                let used = transmit.send(source, due, &pacer, tally);
                tally.publish(source, &pacer);
                pacer.spent(used?);
                sending = true;
            }
        }
    }
    tally.publish(source, &pacer);
    tally.finished.store(true, Ordering::Release);
    transmit.finish(tally)
}

/// Lets up to `ns` nanoseconds pass.
fn rest(ns: u64) {
    if ns > SPIN_NS {
        std::thread::sleep(Duration::from_nanos((ns - EARLY_NS).min(SLEEP_NS)));
    } else {
        (0..8).for_each(|_| std::hint::spin_loop());
    }
}

impl<T: Transmit> Port for UserGenerator<T> {
    fn backend(&self) -> Backend {
        self.backend
    }

    fn aim(&mut self, target: usize) {
        self.aim = target;
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        self.join()?;
        let load = &together(load, &self.traffic, self.crew().len());
        self.crew().iter().for_each(|m| m.tally.reset());
        for thread in 0..self.crew().len() {
            self.threads.push(self.spawn(thread, load)?);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let thread = |(
            queue,
            Member {
                cpu,
                stream,
                second,
                tally,
                ..
            },
        ): (u32, &Member<T>)| {
            let of_second = read(&tally.second);
            let own = ThreadCounters {
                broadcasts: 0,
                bursts: if queue == 0 {
                    (read(&tally.bursts), read(&tally.bursts_ns))
                } else {
                    (0, 0)
                },
                cpu: *cpu,
                queue,
                stream: *stream,
                frames: read(&tally.frames) - of_second,
                bytes: read(&tally.bytes),
                refused: read(&tally.refused),
                next_sequence: read(&tally.sequence),
                first_ns: read(&tally.first_ns),
                last_ns: read(&tally.last_ns),
                stall_ns: read(&tally.stall_ns),
                finished: tally.finished.load(Ordering::Acquire),
                reverse: false,
                ipv6: false,
            };
            [
                Some(own),
                second.map(|stream| own.of_second(stream, of_second, read(&tally.second_sequence))),
            ]
        };
        (0..).zip(self.crew()).flat_map(thread).flatten().collect()
    }

    fn stamp(&mut self, by_card: bool) -> io::Result<()> {
        self.members
            .iter()
            .flatten()
            .try_for_each(|member| member.work().1.stamp(by_card))
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.crew()
            .iter()
            .flat_map(|member| member.work().1.stamps().to_vec())
            .collect()
    }

    fn finished(&self) -> bool {
        let done: Vec<bool> = self
            .crew()
            .iter()
            .map(|m| m.tally.finished.load(Ordering::Acquire))
            .collect();
        // A thread that ended early has failed: the load is no longer the requested one.
        let ended = |thread: usize| self.threads.get(thread).is_none_or(Worker::has_ended);
        (0..done.len()).any(|thread| ended(thread) && !done[thread])
            || done.iter().all(|done| *done)
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.join()
    }
}

impl<T: Transmit> Drop for UserGenerator<T> {
    fn drop(&mut self) {
        // An error has been reported by `stop`, or the load never mattered.
        let _ = self.join();
    }
}
