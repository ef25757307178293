//! An in-memory link with a simulated device under test: the whole command line runs on it without privileges, and the effect of
//! the device on frames is known exactly.
//!
//! Frames are built, signed, stamped, recognised and accounted for as on a real link. Time is simulated: a trial takes only the
//! CPU time that its frames need, and its result does not depend on how busy the machine is.

use super::frame_source::FrameSource;
use super::pacer::{Due, Pacer};
use super::user_receiver::Account;
use crate::error::Error;
use crate::trial::Outcome;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::counters::{PortCounters, StreamCounters};
use linerate_measure::trial::{Machine, Sample, Step, Timing};
use linerate_wire::{Filter, Load, Traffic};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The rate, in frames/s, of a load that is to be as fast as possible.
pub const MAXIMUM: f64 = 2e6;

/// Frames of such a load at most, however long it is: they take the host a moment. One above the device's rate has more.
const MOST: f64 = 10_000.0;

/// Frames that are due at once at most.
const BATCH: u32 = 64;

/// Frames that the simulated device lets pass in one burst above its rate.
const BURST: f64 = 32.0;

/// Frames that it holds at most to delay them.
const HELD: usize = 1 << 18;

/// A frame stays in it no longer.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// Effect of the simulated device under test on frames. The default forwards all of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryDut {
    /// The most it forwards, in frames/s.
    pub rate: Option<f64>,
    /// One in this many arriving frames is lost.
    pub loss_one_in: Option<u64>,
    /// One in this many forwarded frames goes out twice.
    pub duplicate_one_in: Option<u64>,
    /// Time that each frame spends in it.
    pub delay: Duration,
    /// Frames that it holds above its rate before it loses any; 0: [`BURST`].
    pub queue: u64,
    /// Loses every frame for a time, from a moment of the load on.
    pub outage: Option<(Duration, Duration)>,
}

impl MemoryDut {
    /// Frames that it takes at once.
    fn room(&self) -> f64 {
        if self.queue > 0 {
            self.queue as f64
        } else {
            BURST
        }
    }

    /// Whether it forwards nothing at this time of a load.
    fn is_out(&self, load_ns: u64) -> bool {
        let Some((lasts, after)) = self.outage else {
            return false;
        };
        let [lasts, after] = [lasts, after].map(|time| time.as_nanos() as u64);
        load_ns >= after && load_ns - after < lasts
    }
}

/// A generator, a simulated device and a receiver.
pub struct MemoryLink {
    source: FrameSource,
    pacer: Pacer,
    frame: Vec<u8>,
    dut: SimulatedDut,
    account: Account,
    frames: u64,
    bytes: u64,
    /// When the last frame left.
    last_ns: u64,
    traffic: Traffic,
    /// The clock, in nanoseconds. It goes on from trial to trial; 0 would be no time stamp.
    now_ns: u64,
}

/// Result of a trial.
#[derive(Debug, Clone, Default)]
pub struct MemoryTrial {
    /// Samples.
    pub outcome: Outcome,
    /// The generator's counters.
    pub sent: PortCounters,
    /// The receiver's counters.
    pub received: PortCounters,
    /// Frames that the device has lost, and why.
    pub losses: Vec<Loss>,
    /// Copies that it has made.
    pub copies: u64,
}

impl MemoryLink {
    /// A generator of `traffic` and a receiver.
    ///
    /// # Errors
    /// Traffic that cannot be sent.
    pub fn new(traffic: &Traffic) -> Result<MemoryLink, Error> {
        let source = FrameSource::new(traffic, 0, 1)?;
        let filter = Filter {
            unsigned: !traffic.frame.signed,
            ..Filter::of_campaign(traffic.campaign)
        };
        Ok(MemoryLink {
            pacer: Pacer::new(&Load::lasting(Duration::ZERO), 0, 1),
            frame: vec![0; source.longest()],
            source,
            dut: SimulatedDut::default(),
            account: Account::new(filter),
            frames: 0,
            bytes: 0,
            last_ns: 0,
            traffic: traffic.clone(),
            now_ns: 1,
        })
    }

    /// Runs one trial through a device. A load without a rate is as fast as possible.
    pub fn trial(
        &mut self,
        timing: Timing,
        load: Load,
        dut: MemoryDut,
        interrupted: &AtomicBool,
    ) -> MemoryTrial {
        let began_ns = self.now_ns;
        self.begin(timing, load, dut);
        let before = self.source.second();
        let mut machine = Machine::new(timing);
        loop {
            let sample = match machine.step() {
                Step::Start => None,
                Step::Stop => {
                    // The device keeps nothing.
                    let last = self.dut.held.back().map_or(0, |(at_ns, _)| *at_ns);
                    self.deliver_until(last);
                    None
                }
                Step::Sample(at) => self
                    .send_until(began_ns + at, interrupted)
                    .then(|| self.sample(at)),
                Step::Drain(at) => {
                    self.deliver_until(began_ns + at);
                    Some(self.sample(self.now_ns - began_ns))
                }
                Step::Settle(ns) => {
                    self.deliver_until(self.now_ns + ns);
                    None
                }
                Step::Done => break,
            };
            machine.done(sample, self.now_ns - began_ns);
        }
        let [warm_up, samples] = machine.into_samples();
        MemoryTrial {
            outcome: Outcome {
                warm_up,
                samples,
                began_ns,
                ..Outcome::default()
            },
            sent: self.sent(before),
            received: self.account.counters(),
            losses: self.dut.losses(),
            copies: self.dut.duplicated,
        }
    }

    /// Gets everything ready for a load.
    fn begin(&mut self, timing: Timing, load: Load, dut: MemoryDut) {
        let load_s = timing.load_ns() as f64 / 1e9;
        let bounded = if load.frames.is_some() {
            MAXIMUM
        } else {
            MAXIMUM.min(MOST / load_s)
        };
        let fastest = bounded.max(2.0 * dut.rate.unwrap_or(0.0));
        let duration_ns = u64::MAX;
        let paced = Load {
            rate: Some(load.rate.unwrap_or(fastest)),
            duration_ns,
            ..load
        };
        self.pacer = Pacer::new(&paced, 0, 1);
        if load.rate.is_some() {
            let burst_fps = self.traffic.burst_fps.or(Some(fastest));
            let traffic = Traffic {
                burst_fps,
                ..self.traffic.clone()
            };
            self.pacer = self.pacer.clone().in_bursts(&load, &traffic, 1, (0, 1));
        }
        let began_ns = self.now_ns;
        self.dut = SimulatedDut {
            dut,
            tokens: dut.room(),
            began_ns,
            ..SimulatedDut::default()
        };
        self.source.begin(self.traffic.stamp_every_of(&paced));
        self.account.reset(&Load {
            duration_ns: timing.load_ns(),
            ..paced
        });
        (self.frames, self.bytes, self.last_ns) = (0, 0, began_ns);
    }

    /// The generator's counters of a load. `before`: its mixed IPv6 frames when the load began.
    fn sent(&self, before: Option<(u16, u64)>) -> PortCounters {
        let (stream, next_sequence) = (self.source.stream, self.source.sequence);
        let (bursts, bursts_ns) = self.pacer.bursts();
        let second =
            self.source
                .second()
                .zip(before)
                .map(|((stream, next_sequence), (_, before))| {
                    let frames = next_sequence - before;
                    StreamCounters {
                        stream,
                        frames,
                        next_sequence,
                        ipv6: true,
                        ..StreamCounters::default()
                    }
                });
        let own = self.frames - second.map_or(0, |second| second.frames);
        let stream = StreamCounters {
            stream,
            frames: own,
            next_sequence,
            ..StreamCounters::default()
        };
        PortCounters {
            frames: self.frames,
            bytes: self.bytes,
            streams: [stream].into_iter().chain(second).collect(),
            active_ns: self.last_ns - self.dut.began_ns,
            bursts,
            bursts_ns,
            ..PortCounters::default()
        }
    }

    /// Sends the frames due until then; `false` after an interrupt.
    fn send_until(&mut self, end_ns: u64, interrupted: &AtomicBool) -> bool {
        while !interrupted.load(Ordering::Relaxed) {
            match self.pacer.due(self.now_ns, BATCH) {
                Due::Frames(due) => {
                    (0..due).for_each(|index| self.send(self.pacer.scheduled_ns(index)));
                    self.pacer.spent(due);
                }
                Due::Wait(ns) if self.now_ns + ns < end_ns => self.deliver_until(self.now_ns + ns),
                Due::Wait(_) | Due::Over => {
                    self.deliver_until(end_ns);
                    return true;
                }
            }
        }
        false
    }

    /// Sends a frame that, by the schedule, leaves at `schedule_ns`.
    fn send(&mut self, schedule_ns: u64) {
        let length = self.source.fill(&mut self.frame, self.now_ns);
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + length as u64);
        self.last_ns = self.now_ns;
        let leaves_ns = self
            .now_ns
            .saturating_add(self.dut.dut.delay.min(LONGEST_DELAY).as_nanos() as u64);
        for _ in 0..self.dut.copies(schedule_ns) {
            if leaves_ns > self.now_ns {
                self.dut
                    .held
                    .push_back((leaves_ns, self.frame[..length].into()));
            } else {
                arrive(&mut self.account, &self.frame[..length], leaves_ns);
            }
        }
    }

    /// Lets time pass, and hands over the frames that the device lets go until then.
    fn deliver_until(&mut self, now_ns: u64) {
        while let Some((at_ns, frame)) = self.dut.held.front().filter(|(at_ns, _)| *at_ns <= now_ns)
        {
            arrive(&mut self.account, frame, *at_ns);
            self.dut.held.pop_front();
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn sample(&self, t_ns: u64) -> Sample {
        Sample {
            t_ns,
            sent: self.frames,
            received: self.account.frames(),
        }
    }
}

fn arrive(account: &mut Account, frame: &[u8], now_ns: u64) {
    let before = account.frames();
    account.observe(frame, frame.len(), now_ns);
    account.add_to_queue(0, 0, account.frames() - before);
}

/// The simulated device.
#[derive(Default)]
struct SimulatedDut {
    dut: MemoryDut,
    arrived: u64,
    forwarded: u64,
    lost: u64,
    over_rate: u64,
    no_room: u64,
    duplicated: u64,
    /// Frames that may pass now, and the schedule's time for which that was computed.
    tokens: f64,
    tokens_ns: u64,
    /// When the load began.
    began_ns: u64,
    out: u64,
    /// Frames on their way, with the time when they leave.
    held: VecDeque<(u64, Box<[u8]>)>,
}

impl SimulatedDut {
    fn losses(&self) -> Vec<Loss> {
        let loss = |place: &str, frames: u64, cause: Cause| Loss {
            place: format!("simulated DUT: {place}"),
            frames,
            side: Side::Dut,
            cause,
        };
        let mut all = vec![
            loss("planned loss", self.lost, Cause::Dropped),
            loss("planned outage", self.out, Cause::Dropped),
            loss(
                "over its rate, queue full",
                self.over_rate,
                Cause::QueueFull,
            ),
            loss("queue full", self.no_room, Cause::QueueFull),
        ];
        all.retain(|loss| loss.frames > 0);
        all
    }

    /// The number of copies that the device forwards of a frame that, by the schedule, arrives at `schedule_ns`.
    fn copies(&mut self, schedule_ns: u64) -> u32 {
        self.arrived += 1;
        let every = |n: Option<u64>, count: u64| n.is_some_and(|n| count.is_multiple_of(n.max(1)));
        if every(self.dut.loss_one_in, self.arrived) {
            self.lost += 1;
            return 0;
        }
        if self.dut.is_out(schedule_ns.saturating_sub(self.began_ns)) {
            self.out += 1;
            return 0;
        }
        if !self.within_rate(schedule_ns) {
            self.over_rate += 1;
            return 0;
        }
        if self.held.len() + 2 > HELD {
            self.no_room += 1;
            return 0;
        }
        self.forwarded += 1;
        if every(self.dut.duplicate_one_in, self.forwarded) {
            self.duplicated += 1;
            return 2;
        }
        1
    }

    /// A token bucket: it fills at the device's rate, and every frame takes one token.
    fn within_rate(&mut self, schedule_ns: u64) -> bool {
        let Some(rate) = self.dut.rate else {
            return true;
        };
        let elapsed =
            schedule_ns.saturating_sub(std::mem::replace(&mut self.tokens_ns, schedule_ns));
        self.tokens = (self.tokens + elapsed as f64 * 1e-9 * rate).min(self.dut.room());
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}
