//! Generators that run in user space: AF_PACKET, AF_XDP and the in-memory link.
//!
//! [`FrameSource`] gives the next frame, [`Pacer`] the number of frames due; both are functions of their inputs, the clock
//! included. generator.bpf.c does the same for XDP live frames: change both. [`UserGenerator`] has one thread per CPU: each asks
//! its pacer for the frames due and hands them to its transmitter.

use super::port::{Made, Port, Target, ThreadCounters, Worker, monotonic_ns, no_stamps};
use crate::error::Error;
use linerate_hosts::stamps::Stamp;
use linerate_plan::Backend;
use linerate_wire::{
    Flow, FlowOrder, FlowPicker, FlowSpace, FrameTemplate, Load, MILLION, Second, Signature, SourceMacs,
    SplitMix64, Traffic,
};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A generator that was kept from running catches up with no more than this time's worth of frames.
pub const CATCH_UP_NS: u64 = 100_000_000;

/// Cost of one frame; credit grows by a nanosecond times thousandths of frames per second, 1e-12 frames.
const FRAME_CREDIT: u64 = 1_000_000_000_000;

/// Up to this many flows are kept in a table: computing one costs several divisions.
const TABLE: u64 = 16_384;

/// The frames of one generator thread, one after the other: lengths, flows, sequence numbers and stamps. Sequence numbers
/// and flows go on from one load to the next, as the receiver's account does.
#[derive(Debug, Clone)]
pub struct FrameSource {
    /// One for each different length.
    templates: Vec<FrameTemplate>,
    /// Indexes into `templates`.
    pattern: Vec<usize>,
    step: usize,
    flows: FlowSpace,
    table: Vec<Flow>,
    source_macs: SourceMacs,
    picker: FlowPicker,
    /// Offset of the picked flow number: sequential threads start apart.
    first_flow: u64,
    /// All frames belong to it.
    pub stream: u16,
    /// The number that the next frame gets.
    pub sequence: u64,
    stamp_every: u32,
    stamp_in: u32,
    /// IPv6 frames between these, their share in millionths, and how much of one is due.
    second: Option<(Box<FrameSource>, u32, u32)>,
}

impl FrameSource {
    /// The frames of thread number `thread` out of `threads`.
    ///
    /// # Errors
    /// Traffic that cannot be sent.
    pub fn new(traffic: &Traffic, thread: usize, threads: usize) -> Result<Self, Error> {
        traffic.check()?;
        let flows = traffic.flows.usable_len()?;
        let (templates, pattern) = templates(traffic)?;
        let sequential = traffic.order == FlowOrder::Sequential;
        let first_flow = u64::from(flows) * thread as u64 / threads.max(1) as u64;
        let small = u64::from(flows) <= TABLE;
        let second =
            traffic.second().zip(traffic.ipv6.as_ref()).map(|(frames, Second { millionths, .. })| {
                let first_stream = frames.first_stream.wrapping_add(threads as u8);
                let source = FrameSource::new(&Traffic { first_stream, ..frames }, thread, threads)?;
                Ok::<_, Error>((Box::new(source), *millionths, 0))
            });
        Ok(FrameSource {
            templates,
            pattern,
            step: 0,
            table: if small { traffic.flows.iter().collect() } else { Vec::new() },
            flows: traffic.flows.clone(),
            source_macs: traffic.source_macs,
            picker: FlowPicker::new(of_thread(traffic.order, thread), flows),
            first_flow: if sequential { first_flow } else { 0 },
            stream: traffic.stream(thread),
            sequence: 0,
            stamp_every: traffic.stamp_every.max(1),
            stamp_in: 0,
            second: second.transpose()?,
        })
    }

    /// The stream of its IPv6 frames between others, and the number that the next of them gets.
    pub fn second(&self) -> Option<(u16, u64)> {
        self.second.as_ref().map(|(second, ..)| (second.stream, second.sequence))
    }

    /// A new load begins, in which one frame in so many is stamped: the first one, to begin with.
    pub fn begin(&mut self, stamp_every: u32) {
        (self.stamp_in, self.stamp_every) = (0, stamp_every.max(1));
        if let Some((second, ..)) = &mut self.second {
            second.begin(stamp_every);
        }
    }

    /// Writes the next frame, without FCS, at the start of `buf` and returns its length. If it is one that carries a
    /// stamp, that is `now_ns`.
    ///
    /// # Panics
    /// If `buf` is shorter than [`FrameSource::longest`].
    #[inline]
    pub fn fill(&mut self, buf: &mut [u8], now_ns: u64) -> usize {
        if let Some((second, millionths, due)) = &mut self.second {
            *due += *millionths;
            if *due >= MILLION {
                *due -= MILLION;
                return second.fill(buf, now_ns);
            }
        }
        let template = &self.templates[self.pattern[self.step]];
        self.step = if self.step + 1 == self.pattern.len() { 0 } else { self.step + 1 };
        let mut flow = u64::from(self.picker.next()) + self.first_flow;
        if flow >= self.flows.len() {
            flow -= self.flows.len();
        }
        let time_ns = if self.stamp_in > 1 { 0 } else { now_ns };
        self.stamp_in = if self.stamp_in > 1 { self.stamp_in - 1 } else { self.stamp_every };
        let signature = Signature { stream: self.stream, sequence: self.sequence, time_ns };
        self.sequence += 1;
        let length = match self.table.get(flow as usize) {
            Some(flow) => template.fill(buf, flow, Some(&signature)),
            None => template.fill(buf, &self.flows.flow(flow), Some(&signature)),
        };
        let interface = if self.flows.is_mirrored() { 2 } else { 1 };
        if let Some(mac) = self.source_macs.of_flow(flow, interface) {
            buf[6..12].copy_from_slice(&mac.0);
        }
        length
    }

    /// Whether the last frame carries a stamp.
    pub fn stamped(&self) -> bool {
        self.stamp_in == self.stamp_every
    }

    /// The last `frames` frames were never sent: their sequence numbers are given again. Flows and lengths go on.
    pub fn unsent(&mut self, frames: u64) {
        self.sequence = self.sequence.saturating_sub(frames);
    }

    /// The longest frame in bytes, without FCS.
    pub fn longest(&self) -> usize {
        let second = self.second.as_ref().map_or(0, |(second, ..)| second.longest());
        self.templates.iter().map(FrameTemplate::len).max().unwrap_or(0).max(second)
    }
}

fn templates(traffic: &Traffic) -> Result<(Vec<FrameTemplate>, Vec<usize>), Error> {
    let mut templates: Vec<FrameTemplate> = Vec::new();
    let mut pattern = Vec::with_capacity(traffic.mix.pattern.len());
    for &len_fcs in &traffic.mix.pattern {
        let known = templates.iter().position(|t| t.len_fcs() == len_fcs);
        if known.is_none() {
            templates.push(FrameTemplate::new(&traffic.frame, len_fcs)?);
        }
        pattern.push(known.unwrap_or(templates.len() - 1));
    }
    Ok((templates, pattern))
}

/// The order with a seed of the thread's own.
fn of_thread(order: FlowOrder, thread: usize) -> FlowOrder {
    let own = |seed: u64| SplitMix64::new(seed.wrapping_add(thread as u64)).next_u64();
    match order {
        FlowOrder::Sequential => FlowOrder::Sequential,
        FlowOrder::Random { seed } => FlowOrder::Random { seed: own(seed) },
        FlowOrder::Zipf { exponent, seed } => FlowOrder::Zipf { exponent, seed: own(seed) },
    }
}

/// Answer of a [`Pacer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So many frames may leave now; at least one.
    Frames(u32),
    /// None before this number of nanoseconds has passed.
    Wait(u64),
    /// The load is used up.
    Over,
}

/// Decides when frames are due. Credit grows with time at the wanted rate, and a frame costs one; missed frames are caught up
/// with, up to [`CATCH_UP_NS`], and the longest delay is kept.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Thousandths of frames per second; 0: as fast as possible.
    pub(super) rate_mfps: u64,
    duration_ns: u64,
    pub(super) frames_left: u64,
    /// Another rate from a moment on: nanoseconds since the first frame, and the rate as above.
    pub(super) step: Option<(u64, u64)>,
    /// Repeated bursts; the rate is then that within one, and `step` has another period in place of a rate.
    pub(super) burst: Option<Burst>,
    credit: u64,
    /// When the load ends, at the latest.
    pub deadline_ns: u64,
    /// When it began.
    pub first_ns: Option<u64>,
    last_ns: u64,
    /// The longest time for which a frame was due and the clock was not looked at.
    pub stall_ns: u64,
}

/// Bursts of a load, as far as they have been sent. Times are in nanoseconds, those of the schedule in 1024ths of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    frames: u64,
    left: u64,
    /// From the beginning of one to that of the next.
    pub period: u64,
    /// From the first frame to the beginning of the next one.
    next: u64,
    /// When the present one began; 0 between them. When the last one ended.
    began_ns: u64,
    ended_ns: u64,
    /// Those that ended, and their time together.
    ended: (u64, u64),
}

impl Burst {
    /// Begins the next one if it is due, and returns how late it is; otherwise the nanoseconds until then.
    fn begin(&mut self, now_ns: u64, first_ns: u64) -> Result<u64, u64> {
        let due_ns = first_ns + (self.next >> 10);
        let late_ns = now_ns.checked_sub(due_ns).ok_or_else(|| due_ns - now_ns)?;
        self.next += (late_ns.saturating_sub(CATCH_UP_NS) << 10) + self.period;
        (self.left, self.began_ns) = (self.frames, now_ns);
        Ok(late_ns)
    }

    /// The last frame of one has left by now.
    fn end(&mut self, now_ns: u64) {
        if self.began_ns > 0 && self.left == 0 {
            self.ended = (self.ended.0 + 1, self.ended.1 + (now_ns - self.began_ns));
            (self.began_ns, self.ended_ns) = (0, now_ns);
        }
    }
}

impl Pacer {
    /// The share of thread number `thread` out of `threads` in a load.
    pub fn new(load: &Load, thread: usize, threads: usize) -> Self {
        let (thread, threads) = (thread as u64, threads.max(1) as u64);
        let share = |n: u64| n / threads + u64::from(thread < n % threads);
        let mfps = |rate: f64| ((rate * 1000.0 / threads as f64).round() as u64).max(1);
        Pacer {
            rate_mfps: load.rate.map_or(0, mfps),
            duration_ns: load.duration_ns,
            frames_left: load.frames.map_or(u64::MAX, share),
            step: load.step.map(|step| (step.after_ns, mfps(step.rate))),
            burst: None,
            credit: FRAME_CREDIT,
            deadline_ns: u64::MAX,
            first_ns: None,
            last_ns: 0,
            stall_ns: 0,
        }
    }

    /// The same load in the traffic's bursts, if it has a rate and no number of frames; with so many directions, in one burst together.
    #[must_use]
    pub fn in_bursts(mut self, load: &Load, traffic: &Traffic, ways: u32) -> Self {
        if traffic.burst == 0 || self.rate_mfps == 0 || load.frames.is_some() {
            return self;
        }
        let frames = u64::from(traffic.burst * ways);
        let period = |mfps: u64| {
            let ns_1024 = ((u128::from(frames) * u128::from(FRAME_CREDIT)) << 10) / u128::from(mfps);
            u64::try_from(ns_1024).unwrap_or(u64::MAX >> 1)
        };
        let burst = Burst {
            frames,
            left: 0,
            period: period(self.rate_mfps),
            next: 0,
            began_ns: 0,
            ended_ns: 0,
            ended: (0, 0),
        };
        self.step = self.step.map(|(after_ns, mfps)| (after_ns, period(mfps)));
        self.rate_mfps = traffic.burst_fps.map_or(0, |fps| (fps * 1000.0 * f64::from(ways)).round() as u64);
        Pacer { burst: Some(burst), ..self }
    }

    /// Bursts that ended, and their time together in nanoseconds.
    pub fn bursts(&self) -> (u64, u64) {
        self.burst.map_or((0, 0), |burst| burst.ended)
    }

    /// How many frames, at most `most`, are due at `now_ns`. The first call starts the clock.
    #[inline]
    pub fn due(&mut self, now_ns: u64, most: u32) -> Due {
        if self.first_ns.is_none() {
            (self.first_ns, self.last_ns) = (Some(now_ns), now_ns);
            self.deadline_ns = now_ns.saturating_add(self.duration_ns);
        }
        if let Some(burst) = &mut self.burst {
            burst.end(now_ns);
        }
        if self.frames_left == 0 || now_ns >= self.deadline_ns {
            return Due::Over;
        }
        let mut elapsed = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        let lasted = now_ns - self.first_ns.unwrap_or(now_ns);
        let mut most = u64::from(most.max(1)).min(self.frames_left);
        if let Some(burst) = &mut self.burst {
            if let Some((_, period)) = self.step.take_if(|(after_ns, _)| lasted >= *after_ns) {
                burst.period = period;
            }
            if burst.left == 0 {
                match burst.begin(now_ns, now_ns - lasted) {
                    Ok(late_ns) => self.stall_ns = self.stall_ns.max(late_ns),
                    Err(ns) => return Due::Wait(ns.min(self.deadline_ns - now_ns)),
                }
                // The gap after the last frame of the one before.
                let since = (now_ns - burst.ended_ns).saturating_mul(self.rate_mfps);
                (self.credit, elapsed) = (self.credit.saturating_add(since).min(FRAME_CREDIT), 0);
            }
            most = most.min(burst.left);
        } else if let Some((after_ns, mfps)) = self.step.take_if(|(after_ns, _)| lasted >= *after_ns) {
            let before = elapsed.saturating_sub(lasted - after_ns);
            self.credit = self.credit.saturating_add(before.min(CATCH_UP_NS).saturating_mul(self.rate_mfps));
            (elapsed, self.rate_mfps) = (elapsed - before, mfps);
        }
        if self.rate_mfps == 0 {
            self.stall_ns = self.stall_ns.max(elapsed);
            return Due::Frames(most as u32);
        }
        self.stall_ns = self.stall_ns.max(elapsed.saturating_sub(self.until_due_ns()));
        let limit = FRAME_CREDIT.saturating_add(CATCH_UP_NS.saturating_mul(self.rate_mfps));
        self.credit = self.credit.saturating_add(elapsed.saturating_mul(self.rate_mfps)).min(limit);
        match self.credit / FRAME_CREDIT {
            0 => Due::Wait(self.until_due_ns().min(self.deadline_ns - now_ns)),
            frames => Due::Frames(frames.min(most) as u32),
        }
    }

    /// Nanoseconds from the last clock reading to the next frame.
    fn until_due_ns(&self) -> u64 {
        FRAME_CREDIT.saturating_sub(self.credit).div_ceil(self.rate_mfps)
    }

    /// So many of the due frames have left.
    #[inline]
    pub fn spent(&mut self, frames: u32) {
        self.frames_left = self.frames_left.saturating_sub(frames.into());
        if let Some(burst) = &mut self.burst {
            burst.left = burst.left.saturating_sub(frames.into());
        }
        if self.rate_mfps > 0 {
            self.credit = self.credit.saturating_sub(u64::from(frames) * FRAME_CREDIT);
        }
    }

    /// When, by the schedule, due frame number `index` (0: the first) should have left; without a rate, now.
    #[inline]
    pub fn scheduled_ns(&self, index: u32) -> u64 {
        let cost = (u64::from(index) + 1).saturating_mul(FRAME_CREDIT);
        self.last_ns
            - self.credit.saturating_sub(cost).checked_div(self.rate_mfps).unwrap_or(0).min(self.last_ns)
    }
}

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
        let counters = counters.into_iter().chain([&self.bursts, &self.bursts_ns]);
        counters.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        [&self.finished, &self.stop].iter().for_each(|flag| flag.store(false, Ordering::Relaxed));
    }

    fn publish(&self, source: &FrameSource, pacer: &Pacer) {
        self.first_ns.store(pacer.first_ns.unwrap_or(0), Ordering::Relaxed);
        self.stall_ns.store(pacer.stall_ns, Ordering::Relaxed);
        let (bursts, bursts_ns) = pacer.bursts();
        self.bursts.store(bursts, Ordering::Relaxed);
        self.bursts_ns.store(bursts_ns, Ordering::Relaxed);
        self.sequence.store(source.sequence, Ordering::Relaxed);
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
                let work = Arc::new(Mutex::new((source, transmitter(target, thread, longest)?)));
                crew.push(Member { cpu: *cpu, stream, tally: Arc::default(), work });
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
        self.members.iter().flatten().for_each(|m| m.tally.stop.store(true, Ordering::Relaxed));
        let mut result = Ok(());
        for mut thread in self.threads.drain(..) {
            result = result.and(thread.join());
        }
        result
    }

    fn spawn(&self, thread: usize, load: &Load) -> Result<Worker, Error> {
        let Member { cpu, tally, work, .. } = &self.crew()[thread];
        let (cpu, tally, work) = (*cpu, tally.clone(), work.clone());
        let pacer = Pacer::new(load, thread, self.crew().len()).in_bursts(load, &self.traffic, 1);
        let (batch, not_before_ns, stamp_every) =
            (load.batch.max(1), load.not_before_ns, self.traffic.stamp_every_of(load));
        Worker::spawn(format!("generator-{cpu}"), Some(cpu), move |_| {
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
        self.crew().iter().for_each(|m| m.tally.reset());
        for thread in 0..self.crew().len() {
            self.threads.push(self.spawn(thread, load)?);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let thread = |(queue, Member { cpu, stream, tally, .. }): (u32, &Member<T>)| ThreadCounters {
            broadcasts: 0,
            bursts: (read(&tally.bursts), read(&tally.bursts_ns)),
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
            reverse: false,
            ipv6: false,
        };
        (0..).zip(self.crew()).map(thread).collect()
    }

    fn stamp(&mut self, by_card: bool) -> io::Result<()> {
        self.members.iter().flatten().try_for_each(|member| member.work().1.stamp(by_card))
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.crew().iter().flat_map(|member| member.work().1.stamps().to_vec()).collect()
    }

    fn finished(&self) -> bool {
        let done: Vec<bool> = self.crew().iter().map(|m| m.tally.finished.load(Ordering::Acquire)).collect();
        // A thread that ended early has failed: the load is no longer the requested one.
        let ended = |thread: usize| self.threads.get(thread).is_none_or(Worker::has_ended);
        (0..done.len()).any(|thread| ended(thread) && !done[thread]) || done.iter().all(|done| *done)
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

#[cfg(test)]
mod tests;
