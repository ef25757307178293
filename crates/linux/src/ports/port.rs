//! A place where frames leave or arrive, its threads, and the clock of both.

use crate::error::{Doing, Error};
use crate::host::cpu;
use linerate_hosts::agent::connecting::{EndCounts, Opening};
use linerate_hosts::stamps::Stamp;
use linerate_measure::counters::{PortCounters, QueueCounters, StreamCounters};
use linerate_plan::Backend;
use linerate_wire::{Load, MacAddr};
use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Where frames are sent to: an interface that a generator sends from, and the addresses to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Interface number in the generator's namespace.
    pub ifindex: u32,
    /// Ethernet address of the interface.
    pub source: MacAddr,
    /// The Ethernet address to send to.
    pub destination: MacAddr,
}

/// The interface that a receiver counts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Number in the receiver's namespace.
    pub ifindex: u32,
    /// Receive queues of the interface.
    pub queues: u32,
}

/// Counters of a generator's thread since the start.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCounters {
    pub cpu: u32,
    pub queue: u32,
    pub stream: u16,
    pub frames: u64,
    pub bytes: u64,
    pub refused: u64,
    pub broadcasts: u64,
    /// Number of finished bursts, and their total time in nanoseconds.
    pub bursts: (u64, u64),
    pub next_sequence: u64,
    /// CLOCK_MONOTONIC of the first frame; 0: not yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The longest time for which a frame was due and the thread did not run.
    pub stall_ns: u64,
    /// Whether the thread's share of the load is used up.
    pub finished: bool,
    /// Whether these are its frames towards the inside of the DUT, with both directions.
    pub reverse: bool,
    /// Whether these are its IPv6 frames, mixed with IPv4 frames.
    pub ipv6: bool,
}

impl ThreadCounters {
    /// The counters of this thread's mixed IPv6 frames; shared counters appear once.
    pub(super) fn of_second(self, stream: u16, frames: u64, next_sequence: u64) -> ThreadCounters {
        let (broadcasts, bursts) = (0, (0, 0));
        ThreadCounters {
            stream,
            frames,
            next_sequence,
            broadcasts,
            bursts,
            bytes: 0,
            refused: 0,
            ipv6: true,
            ..self
        }
    }
}

/// A place where frames leave or arrive: a generator or a receiver.
pub trait Port: Send {
    /// How frames leave or arrive.
    fn backend(&self) -> Backend;

    /// Sends to another of the targets that a generator was made for, from the next start on.
    fn aim(&mut self, target: usize) {
        let _ = target;
    }

    /// Sets all counters to 0 and starts. A generator sends until `load` is used up; a receiver ignores it and counts.
    ///
    /// # Errors
    /// An error of the system.
    fn start(&mut self, load: &Load) -> Result<(), Error>;

    /// Counters of each thread of a generator since the start.
    fn threads(&self) -> Vec<ThreadCounters> {
        Vec::new()
    }

    /// CLOCK_MONOTONIC, in nanoseconds, of a generator's first frame, once all of its threads have begun; `None` before it, and for
    /// receivers.
    fn began_ns(&self) -> Option<u64> {
        // A thread with a share of 0 frames never begins.
        let begun = |thread: &ThreadCounters| thread.first_ns > 0 || !thread.finished;
        let threads = self.threads().into_iter().filter(begun);
        threads
            .map(|thread| thread.first_ns)
            .min()
            .filter(|ns| *ns > 0)
    }

    /// Nanoseconds from a generator's first frame to its last, if it knows them; `None` otherwise, and for receivers.
    fn active_ns(&self) -> Option<u64> {
        let last = self.threads().iter().map(|thread| thread.last_ns).max()?;
        Some(last.saturating_sub(self.began_ns()?))
    }

    /// The first bytes of the first foreign frame since the start, where a receiver keeps them.
    fn foreign_sample(&self) -> Option<Vec<u8>> {
        None
    }

    /// Hands a receiver's test frames on to an [`Answerer`](super::answer::Answerer) as well, or stops that. Returns whether it can: one that takes
    /// frames away from packet sockets cannot.
    fn let_through(&mut self, on: bool) -> bool {
        let _ = on;
        false
    }

    /// Tells a receiver how far the clocks of streams' generators are ahead of its own, in nanoseconds, by the low byte of the
    /// stream; the other streams are stamped by its own clock.
    fn set_clocks(&mut self, ahead_ns: &[(u8, i64)]) {
        let _ = ahead_ns;
    }

    /// Tells an end of connections what those of the next load are. It counts from now on.
    ///
    /// # Errors
    /// This port is none, or the one before has not ended.
    fn open(&mut self, opening: &Opening) -> Result<(), Error> {
        let _ = opening;
        Err(Error::Refused("this port has no connections".into()))
    }

    /// Connections that have closed at this end since then: cheap, for samples.
    fn closed(&self) -> u64 {
        0
    }

    /// Everything that an end of connections has counted since then.
    fn ends(&self) -> Option<EndCounts> {
        None
    }

    /// Has the card stamp frames that carry a time stamp, or its driver, from now on. A card must have been switched on for it.
    ///
    /// # Errors
    /// This backend, or the kernel, cannot.
    fn stamp(&mut self, by_card: bool) -> io::Result<()> {
        let _ = by_card;
        Err(no_stamps(self.backend()))
    }

    /// Stamps of cards or drivers since the start; of a generator, once its load has ended.
    fn stamps(&self) -> Vec<Stamp> {
        Vec::new()
    }

    /// Test frames sent or received since the start: cheap, for samples.
    fn frames(&self) -> u64 {
        self.threads().iter().map(|thread| thread.frames).sum()
    }

    /// Everything counted since the start.
    fn counters(&self) -> PortCounters {
        sum(&self.threads(), self.active_ns())
    }

    /// Everything counted since the start by direction: one, or forward and reverse.
    fn directions(&self) -> Vec<PortCounters> {
        vec![self.counters()]
    }

    /// Frames by direction, forward and reverse, of a port that serves both: cheap, for samples.
    fn frames_each(&self) -> Option<[u64; 2]> {
        None
    }

    /// Whether a generator has used up its load, or died. Receivers never have.
    fn finished(&self) -> bool {
        false
    }

    /// Ends a generator's load now: afterwards, no frame leaves any more, and its counters stand still. A receiver counts on until
    /// its next start.
    ///
    /// # Errors
    /// A failure while it ran.
    fn stop(&mut self) -> Result<(), Error>;
}

/// The counters of these threads.
pub(super) fn sum<'a>(
    threads: impl IntoIterator<Item = &'a ThreadCounters>,
    active_ns: Option<u64>,
) -> PortCounters {
    let mut counters = PortCounters {
        active_ns: active_ns.unwrap_or(0),
        ..PortCounters::default()
    };
    for thread in threads {
        let ThreadCounters {
            cpu,
            queue,
            stream,
            frames,
            bytes,
            refused,
            next_sequence,
            stall_ns,
            ..
        } = *thread;
        counters.broadcasts += thread.broadcasts;
        counters.bursts += thread.bursts.0;
        counters.bursts_ns += thread.bursts.1;
        counters.frames += frames;
        counters.bytes += bytes;
        counters.refused += refused;
        counters.stall_ns = counters.stall_ns.max(stall_ns);
        counters.queues.push(QueueCounters { cpu, queue, frames });
        let ipv6 = thread.ipv6;
        let stream = StreamCounters {
            stream,
            frames,
            next_sequence,
            ipv6,
            ..StreamCounters::default()
        };
        counters.streams.push(stream);
    }
    counters
}

/// A backend whose frames no card stamps.
pub(super) fn no_stamps(backend: Backend) -> io::Error {
    let why = "has no stamps of cards, and af-packet has: tool = \"af-packet\" in the lab file";
    io::Error::other(format!("port {backend} {why}"))
}

/// A port that was made, or the reason why not.
pub(super) type Made = Result<Box<dyn Port>, Error>;

/// Puts the calling thread before ordinary programs; Linux counts threads, so that nothing else changes. Not being allowed to is no
/// error.
pub fn go_first() {
    let _ = rustix::process::setpriority_process(None, -20);
}

/// Puts the calling thread behind all others that want its CPU.
pub(super) fn go_last() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads `param`, and changes only the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) };
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed to this process.
pub fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    crate::net::napi::bind(None, cpu as usize)
}

/// A thread that ends on request, or by an error. Drop requests its end and waits for it.
pub(super) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Worker {
    /// Starts a thread, on `cpu` if one is given. `run` must return soon after its flag becomes true.
    pub fn spawn(
        name: impl Into<String>,
        cpu: Option<u32>,
        run: impl FnOnce(&AtomicBool) -> Result<(), Error> + Send + 'static,
    ) -> Result<Worker, Error> {
        let (name, stop) = (name.into(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let run = move || {
            let pinned = cpu.map_or(Ok(()), pin_to_cpu);
            pinned.doing(format_args!("bind a port's thread to CPU {cpu:?}"))?;
            let ran = run(&told);
            cpu::thread_ends();
            ran
        };
        let thread = Builder::new()
            .name(name)
            .spawn(run)
            .doing("start a port's thread")?;
        Ok(Worker {
            stop,
            thread: Some(thread),
        })
    }

    /// Whether it has ended, or was waited for.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Interrupts its system call by a signal ([`handle_signal`]).
    pub fn interrupt(&self) {
        if let Some(thread) = &self.thread {
            // SAFETY: the thread was not joined, so its handle is valid; it may have ended, and the call fails then.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGURG) };
        }
    }

    /// Requests its end, waits for it, and returns its error if it failed. The error is returned once.
    pub fn join(&mut self) -> Result<(), Error> {
        self.tell_to_stop();
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|_| Err(Error::Refused("a thread of the port panicked".into())))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The error has been reported when the port was stopped, or does not matter.
        let _ = self.join();
    }
}
