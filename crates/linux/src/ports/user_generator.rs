//! Frames and pacing for generators that run in user space: AF_PACKET, AF_XDP and the in-memory link.
//!
//! [`FrameSource`] gives the next frame, [`Pacer`] the number of frames due; both are functions of their inputs, the clock
//! included. [`crew`] runs them on threads. generator.bpf.c does the same for XDP live frames: change both.

pub mod crew;

use crate::error::Error;
use linerate_wire::{
    Flow, FlowOrder, FlowPicker, FlowSpace, FrameTemplate, Load, Signature, SplitMix64, Traffic,
};

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
    picker: FlowPicker,
    /// Offset of the picked flow number: sequential threads start apart.
    first_flow: u64,
    /// All frames belong to it.
    pub stream: u16,
    /// The number that the next frame gets.
    pub sequence: u64,
    stamp_every: u32,
    stamp_in: u32,
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
        Ok(FrameSource {
            templates,
            pattern,
            step: 0,
            table: if small { traffic.flows.iter().collect() } else { Vec::new() },
            flows: traffic.flows.clone(),
            picker: FlowPicker::new(of_thread(traffic.order, thread), flows),
            first_flow: if sequential { first_flow } else { 0 },
            stream: traffic.stream(thread),
            sequence: 0,
            stamp_every: traffic.stamp_every.max(1),
            stamp_in: 0,
        })
    }

    /// A new load begins: its first frame is stamped.
    pub fn begin(&mut self) {
        self.stamp_in = 0;
    }

    /// Writes the next frame, without FCS, at the start of `buf` and returns its length. If it is one that carries a
    /// stamp, that is `now_ns`.
    ///
    /// # Panics
    /// If `buf` is shorter than [`FrameSource::longest`].
    #[inline]
    pub fn fill(&mut self, buf: &mut [u8], now_ns: u64) -> usize {
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
        match self.table.get(flow as usize) {
            Some(flow) => template.fill(buf, flow, Some(&signature)),
            None => template.fill(buf, &self.flows.flow(flow), Some(&signature)),
        }
    }

    /// The last `frames` frames were never sent: their sequence numbers are given again. Flows and lengths go on.
    pub fn unsent(&mut self, frames: u64) {
        self.sequence = self.sequence.saturating_sub(frames);
    }

    /// The longest frame in bytes, without FCS.
    pub fn longest(&self) -> usize {
        self.templates.iter().map(FrameTemplate::len).max().unwrap_or(0)
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
    rate_mfps: u64,
    duration_ns: u64,
    frames_left: u64,
    credit: u64,
    /// When the load ends, at the latest.
    pub deadline_ns: u64,
    /// When it began.
    pub first_ns: Option<u64>,
    last_ns: u64,
    /// The longest time for which a frame was due and the clock was not looked at.
    pub stall_ns: u64,
}

impl Pacer {
    /// The share of thread number `thread` out of `threads` in a load.
    pub fn new(load: &Load, thread: usize, threads: usize) -> Self {
        let (thread, threads) = (thread as u64, threads.max(1) as u64);
        let share = |n: u64| n / threads + u64::from(thread < n % threads);
        Pacer {
            rate_mfps: load.rate.map_or(0, |r| ((r * 1000.0 / threads as f64).round() as u64).max(1)),
            duration_ns: load.duration_ns,
            frames_left: load.frames.map_or(u64::MAX, share),
            credit: FRAME_CREDIT,
            deadline_ns: u64::MAX,
            first_ns: None,
            last_ns: 0,
            stall_ns: 0,
        }
    }

    /// How many frames, at most `most`, are due at `now_ns`. The first call starts the clock.
    #[inline]
    pub fn due(&mut self, now_ns: u64, most: u32) -> Due {
        if self.first_ns.is_none() {
            (self.first_ns, self.last_ns) = (Some(now_ns), now_ns);
            self.deadline_ns = now_ns.saturating_add(self.duration_ns);
        }
        if self.frames_left == 0 || now_ns >= self.deadline_ns {
            return Due::Over;
        }
        let elapsed = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        let most = u64::from(most.max(1)).min(self.frames_left);
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

#[cfg(test)]
mod tests;
