//! The threads of a user-space generator, one per CPU: each asks its pacer for the frames due and hands them to its transmitter.

use super::{Due, FrameSource, Pacer};
use crate::error::Error;
use crate::ports::port::{Port, Target, ThreadCounters, monotonic_ns};
use crate::ports::worker::Worker;
use linerate_plan::Backend;
use linerate_wire::{Load, Traffic};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Shorter waits are spun through: a sleeping thread wakes late by tens of microseconds.
const SPIN_NS: u64 = 150_000;
/// How much before the time a sleeping thread wants to be awake.
const EARLY_NS: u64 = 100_000;
/// The longest sleep, so that a stop is noticed.
const SLEEP_NS: u64 = 5_000_000;

/// How one thread's frames leave.
pub trait Transmit: Send + 'static {
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

    /// Nothing is due for a moment. Returns the nanoseconds after which it has something to do all the same.
    fn idle(&mut self, _tally: &Tally) -> u64 {
        u64::MAX
    }

    /// The load is over: sees to the frames that are still on their way.
    ///
    /// # Errors
    /// They do not leave.
    fn finish(&mut self, _tally: &Tally) -> Result<(), Error> {
        Ok(())
    }
}

/// Counters of one thread: written by that thread, read by any, in cache lines of its own (two, because processors fetch pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    frames: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
    /// 0: not yet.
    first_ns: AtomicU64,
    /// When the last batch had left.
    last_ns: AtomicU64,
    stall_ns: AtomicU64,
    sequence: AtomicU64,
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

    /// So many frames were refused by the port.
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
        let counters =
            [&self.frames, &self.bytes, &self.refused, &self.first_ns, &self.last_ns, &self.stall_ns];
        counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        [&self.finished, &self.stop].iter().for_each(|flag| flag.store(false, Ordering::Relaxed));
    }

    fn publish(&self, source: &FrameSource, pacer: &Pacer) {
        self.first_ns.store(pacer.first_ns.unwrap_or(0), Ordering::Relaxed);
        self.stall_ns.store(pacer.stall_ns, Ordering::Relaxed);
        self.sequence.store(source.sequence, Ordering::Relaxed);
    }
}

/// One writer: no need for a locked instruction.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// A generator in user space: threads with a way to transmit.
pub struct UserGenerator<T: Transmit> {
    backend: Backend,
    /// By target.
    members: Vec<Vec<Member<T>>>,
    aim: usize,
}

struct Member<T> {
    cpu: u32,
    stream: u16,
    tally: Arc<Tally>,
    /// Locked by the thread while it runs.
    work: Arc<Mutex<(FrameSource, T)>>,
    thread: Option<Worker>,
}

impl<T: Transmit> UserGenerator<T> {
    /// One thread for each of `cpus`; `transmitter` makes its transmitter to a target, from the thread's number and the longest
    /// frame in bytes without FCS.
    ///
    /// # Errors
    /// Traffic that cannot be sent, or the error of `transmitter`.
    pub(crate) fn with(
        backend: Backend,
        targets: &[Target],
        traffic: &Traffic,
        cpus: &[u32],
        mut transmitter: impl FnMut(&Target, usize, usize) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let mut members = Vec::with_capacity(targets.len());
        for target in targets {
            let traffic = traffic.addressed(target.source, target.destination);
            let mut crew = Vec::with_capacity(cpus.len());
            for (thread, cpu) in cpus.iter().enumerate() {
                let source = FrameSource::new(&traffic, thread, cpus.len())?;
                let (stream, longest) = (source.stream, source.longest());
                let work = Arc::new(Mutex::new((source, transmitter(target, thread, longest)?)));
                crew.push(Member { cpu: *cpu, stream, tally: Arc::default(), work, thread: None });
            }
            members.push(crew);
        }
        Ok(UserGenerator { backend, members, aim: 0 })
    }

    fn crew(&self) -> &[Member<T>] {
        &self.members[self.aim]
    }

    fn join(&mut self) -> Result<(), Error> {
        self.members.iter().flatten().for_each(|m| m.tally.stop.store(true, Ordering::Relaxed));
        let mut result = Ok(());
        for member in self.members.iter_mut().flatten() {
            let ended = member.thread.take().map_or(Ok(()), |mut thread| thread.join());
            result = result.and(ended);
        }
        result
    }

    fn spawn(&self, thread: usize, load: &Load) -> Result<Worker, Error> {
        let Member { cpu, tally, work, .. } = &self.crew()[thread];
        let (cpu, tally, work) = (*cpu, tally.clone(), work.clone());
        let pacer = Pacer::new(load, thread, self.crew().len());
        let (batch, not_before_ns) = (load.batch.max(1), load.not_before_ns);
        Worker::spawn(format!("generator-{cpu}"), Some(cpu), move |_| {
            // A failure only makes waits longer.
            let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
            await_start(not_before_ns, &tally);
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            let (source, transmit) = &mut *work;
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
    source.begin();
    let mut sending = false;
    while !tally.stopping() {
        let now_ns = monotonic_ns();
        if std::mem::take(&mut sending) {
            tally.last_ns.store(now_ns, Ordering::Relaxed);
        }
        match pacer.due(now_ns, batch) {
            Due::Over => break,
            Due::Wait(ns) => {
                let own = transmit.idle(tally);
                rest(ns.min(own));
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
pub(crate) fn rest(ns: u64) {
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
        self.crew().iter().for_each(|m| m.tally.reset());
        for thread in 0..self.crew().len() {
            self.members[self.aim][thread].thread = Some(self.spawn(thread, load)?);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let thread = |(queue, Member { cpu, stream, tally, .. }): (u32, &Member<T>)| ThreadCounters {
            cpu: *cpu,
            queue,
            stream: *stream,
            frames: read(&tally.frames),
            bytes: read(&tally.bytes),
            refused: read(&tally.refused),
            next_sequence: read(&tally.sequence),
            first_ns: read(&tally.first_ns),
            last_ns: read(&tally.last_ns),
            stall_ns: read(&tally.stall_ns),
            finished: tally.finished.load(Ordering::Acquire),
        };
        (0..).zip(self.crew()).map(thread).collect()
    }

    fn finished(&self) -> bool {
        let ended = |m: &Member<T>| m.thread.as_ref().is_none_or(Worker::has_ended);
        let done = |m: &Member<T>| m.tally.finished.load(Ordering::Acquire);
        // A thread that ended early has failed: the load is no longer the requested one.
        self.crew().iter().any(|m| ended(m) && !done(m)) || self.crew().iter().all(done)
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
