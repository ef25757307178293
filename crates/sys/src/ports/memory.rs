//! An in-memory link with a simulated device under test: the whole command line runs on it without privileges, and what the
//! device does to frames is known exactly.
//!
//! Frames are built, signed, stamped, recognised and accounted for as on a real link. The device's decisions depend on the
//! schedule of the load, not on when the host let the thread run, so that they come out the same on a busy machine.

use super::user_generator::crew::{Tally, Transmit, UserGenerator, rest};
use super::user_generator::{FrameSource, Pacer};
use super::user_receiver::{Account, Shared, UserReceiver};
use super::xdp_receiver::ReceiverOptions;
use super::{Generator, Load, Port, PortError, Traffic, monotonic_ns};
use linerate_core::audit::{Loss, Side};
use linerate_core::counters::PortCounters;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The rate, in frames/s, of a load that is to be as fast as possible: below what any host can do, so that it is met.
pub const MAXIMUM: f64 = 2e6;

/// Frames that the simulated device lets pass in one burst above its rate.
const BURST: f64 = 32.0;

/// Frames that it holds at most to delay them.
const HELD: usize = 1 << 18;

/// What the simulated device under test does to frames. The default forwards all of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryDut {
    /// The most it forwards, in frames/s.
    pub rate: Option<f64>,
    /// Every so many-th frame that arrives is lost.
    pub loss_one_in: Option<u64>,
    /// Every so many-th frame that it forwards goes out twice.
    pub duplicate_one_in: Option<u64>,
    /// Time that each frame spends in it.
    pub delay: Duration,
}

/// Two ports with a simulated device between them.
pub struct MemoryLink;

impl MemoryLink {
    /// A generator of `traffic` with one thread, and the receiver of what `dut` lets through.
    ///
    /// # Errors
    /// Traffic that cannot be sent.
    pub fn pair(traffic: Traffic, dut: MemoryDut) -> Result<(MemoryGenerator, MemoryReceiver), PortError> {
        let unsigned = !traffic.frame.signed;
        let options = ReceiverOptions {
            campaign: traffic.campaign,
            streams: 256,
            queues: 1,
            pass_foreign: false,
            unsigned,
        };
        let (receiver, counts, rate) = (Shared::new(&options), Arc::new(Counts::default()), traffic.rate);
        let (its_receiver, its_counts) = (receiver.clone(), counts.clone());
        let mut generator = UserGenerator::with("memory", traffic, &[None], |_, longest| {
            Ok(SimulatedDut::new(dut, longest, its_receiver.clone(), its_counts.clone()))
        })?;
        generator.set_rate(Some(rate.unwrap_or(MAXIMUM)));
        Ok((MemoryGenerator { generator, counts, dut }, UserReceiver::passive("memory", receiver)))
    }
}

/// The receiving end of a [`MemoryLink`].
pub type MemoryReceiver = UserReceiver;

/// The sending end of a [`MemoryLink`], and the device.
pub struct MemoryGenerator {
    generator: UserGenerator<SimulatedDut>,
    counts: Arc<Counts>,
    dut: MemoryDut,
}

impl MemoryGenerator {
    /// Frames that the device has lost since the start, and why.
    pub fn losses(&self) -> Vec<Loss> {
        let count = |place: &str, counter: &AtomicU64| {
            let frames = counter.load(Ordering::Relaxed);
            Loss { place: format!("simulated DUT: {place}"), frames, side: Side::Dut }
        };
        let Counts { lost, over_rate, no_room, .. } = &*self.counts;
        let all = [count("planned loss", lost), count("rate limit", over_rate), count("queue full", no_room)];
        all.into_iter().filter(|loss| loss.frames > 0).collect()
    }

    /// Copies that the device has made since the start.
    pub fn duplicates(&self) -> u64 {
        self.counts.duplicated.load(Ordering::Relaxed)
    }

    /// Changes the device, from the next start on.
    pub fn set_dut(&mut self, dut: MemoryDut) {
        self.dut = dut;
    }
}

impl Generator for MemoryGenerator {
    /// `None` is [`MAXIMUM`].
    fn set_rate(&mut self, rate: Option<f64>) {
        self.generator.set_rate(Some(rate.unwrap_or(MAXIMUM)));
    }

    fn set_batch(&mut self, batch: u32) {
        self.generator.set_batch(batch);
    }

    fn set_not_before(&mut self, at_ns: u64) {
        self.generator.set_not_before(at_ns);
    }
}

impl Port for MemoryGenerator {
    fn name(&self) -> &'static str {
        self.generator.name()
    }

    fn start(&mut self, load: &Load) -> Result<(), PortError> {
        self.generator.stop()?;
        self.counts.reset();
        self.generator.with_transmitter(0, |device| device.reset(self.dut));
        self.generator.start(load)
    }

    fn began_ns(&self) -> Option<u64> {
        self.generator.began_ns()
    }

    fn active_ns(&self) -> Option<u64> {
        self.generator.active_ns()
    }

    fn frames(&self) -> u64 {
        self.generator.frames()
    }

    fn counters(&self) -> PortCounters {
        self.generator.counters()
    }

    fn finished(&self) -> bool {
        self.generator.finished()
    }

    /// Waits for the frames that the device still holds.
    fn stop(&mut self) -> Result<(), PortError> {
        self.generator.stop()
    }
}

/// What the device did not simply forward.
#[derive(Debug, Default)]
struct Counts {
    lost: AtomicU64,
    over_rate: AtomicU64,
    no_room: AtomicU64,
    duplicated: AtomicU64,
}

impl Counts {
    fn reset(&self) {
        let all = [&self.lost, &self.over_rate, &self.no_room, &self.duplicated];
        all.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}

/// The simulated device, which runs on the generator's thread.
struct SimulatedDut {
    dut: MemoryDut,
    receiver: Arc<Shared>,
    counts: Arc<Counts>,
    frame: Vec<u8>,
    arrived: u64,
    forwarded: u64,
    /// Frames that may pass now, and the schedule's time for which that was computed.
    tokens: f64,
    tokens_ns: u64,
    /// Frames on their way, with the time when they leave.
    held: VecDeque<(u64, Box<[u8]>)>,
}

impl SimulatedDut {
    fn new(dut: MemoryDut, longest: usize, receiver: Arc<Shared>, counts: Arc<Counts>) -> Self {
        SimulatedDut {
            dut,
            receiver,
            counts,
            frame: vec![0; longest],
            arrived: 0,
            forwarded: 0,
            tokens: BURST,
            tokens_ns: 0,
            held: VecDeque::new(),
        }
    }

    fn reset(&mut self, dut: MemoryDut) {
        (self.dut, self.arrived, self.forwarded) = (dut, 0, 0);
        (self.tokens, self.tokens_ns) = (BURST, 0);
    }

    /// What becomes of a frame that, by the schedule, arrives at `schedule_ns`: the number of copies that go on.
    fn copies(&mut self, schedule_ns: u64) -> u32 {
        self.arrived += 1;
        let every = |n: Option<u64>, count: u64| n.is_some_and(|n| count.is_multiple_of(n.max(1)));
        if every(self.dut.loss_one_in, self.arrived) {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        if !self.within_rate(schedule_ns) {
            self.counts.over_rate.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        if self.held.len() + 2 > HELD {
            self.counts.no_room.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        self.forwarded += 1;
        if every(self.dut.duplicate_one_in, self.forwarded) {
            self.counts.duplicated.fetch_add(1, Ordering::Relaxed);
            return 2;
        }
        1
    }

    /// A token bucket: it fills at the device's rate, and every frame takes one token.
    fn within_rate(&mut self, schedule_ns: u64) -> bool {
        let Some(rate) = self.dut.rate else { return true };
        let elapsed = schedule_ns.saturating_sub(std::mem::replace(&mut self.tokens_ns, schedule_ns));
        self.tokens = (self.tokens + elapsed as f64 * 1e-9 * rate).min(BURST);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }

    /// Hands over the frames whose time has come.
    fn deliver(&mut self) {
        let now_ns = monotonic_ns();
        let due = self.held.partition_point(|(due_ns, _)| *due_ns <= now_ns);
        if due > 0 {
            let frames = self.held.drain(..due);
            self.receiver.count(|account| frames.for_each(|(_, frame)| arrive(account, &frame, now_ns)));
        }
    }

    /// Nanoseconds until a frame leaves the device.
    fn next_ns(&self) -> u64 {
        self.held.front().map_or(u64::MAX, |(due_ns, _)| due_ns.saturating_sub(monotonic_ns()))
    }
}

fn arrive(account: &mut Account, frame: &[u8], now_ns: u64) {
    let before = account.frames();
    account.observe(frame, frame.len(), now_ns);
    account.add_to_queue(0, 0, account.frames() - before);
}

impl Transmit for SimulatedDut {
    fn send(
        &mut self,
        source: &mut FrameSource,
        due: u32,
        pacer: &Pacer,
        tally: &Tally,
    ) -> Result<u32, PortError> {
        self.deliver();
        let (now_ns, mut bytes) = (monotonic_ns(), 0);
        let delay_ns = u64::try_from(self.dut.delay.as_nanos()).unwrap_or(u64::MAX);
        let receiver = self.receiver.clone();
        receiver.count(|account| {
            for index in 0..due {
                let len = source.fill(&mut self.frame, now_ns);
                bytes += len as u64;
                for _ in 0..self.copies(pacer.scheduled_ns(index)) {
                    if delay_ns > 0 {
                        self.held.push_back((now_ns.saturating_add(delay_ns), self.frame[..len].into()));
                    } else {
                        arrive(account, &self.frame[..len], now_ns);
                    }
                }
            }
        });
        tally.sent(due.into(), bytes);
        Ok(due)
    }

    fn idle(&mut self, _: &Tally) -> u64 {
        self.deliver();
        self.next_ns()
    }

    fn finish(&mut self, _: &Tally) -> Result<(), PortError> {
        while !self.held.is_empty() {
            rest(self.next_ns());
            self.deliver();
        }
        Ok(())
    }
}
