//! Pacing: when the frames of a load are due. generator.bpf.c does the same for XDP live frames: change both.

use crate::clock::monotonic_ns;
use linerate_wire::{Load, Traffic};

/// A generator that could not run catches up with the frames of at most this time, in nanoseconds.
pub const CATCH_UP_NS: u64 = 100_000_000;

/// Cost of one frame; credit grows by a nanosecond times thousandths of frames per second, 1e-12 frames.
const FRAME_CREDIT: u64 = 1_000_000_000_000;

/// Threads that share bursts begin this long after their start, so that all of them run.
const TOGETHER_NS: u64 = 50_000_000;

/// The load, with a common start of its threads if they share bursts.
pub(super) fn together(load: &Load, traffic: &Traffic, threads: usize) -> Load {
    let shared = traffic.burst > 0 && threads > 1 && load.not_before_ns == 0;
    let not_before_ns = if shared {
        monotonic_ns() + TOGETHER_NS
    } else {
        load.not_before_ns
    };
    Load {
        not_before_ns,
        ..*load
    }
}

/// Answer of a [`Pacer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The number of frames that may leave now; at least one.
    Frames(u32),
    /// Nanoseconds until the next frame.
    Wait(u64),
    /// The load is used up.
    Over,
}

/// Decides when frames are due. Credit grows with time at the wanted rate, and a frame costs one. Missed frames of up to
/// [`CATCH_UP_NS`] are sent later; the longest delay is kept.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Thousandths of frames per second; 0: as fast as possible.
    pub(super) rate_mfps: u64,
    duration_ns: u64,
    pub(super) frames_left: u64,
    /// A change of the rate: nanoseconds since the first frame, and the new rate in the unit above.
    pub(super) step: Option<(u64, u64)>,
    /// Repeated bursts: `rate` is then the rate within a burst, and `step` has a period instead of a rate.
    pub(super) burst: Option<Burst>,
    credit: u64,
    /// When the load ends, at the latest.
    pub deadline_ns: u64,
    /// When it began.
    pub first_ns: Option<u64>,
    last_ns: u64,
    /// The longest time between a due frame and the next look at the clock, in nanoseconds.
    pub stall_ns: u64,
}

/// The bursts of a load and their progress. Times are in nanoseconds, those of the schedule in 1024ths of a nanosecond.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    pub frames: u64,
    left: u64,
    /// Begin of the first burst; 0: with the first frame.
    epoch_ns: u64,
    /// From the begin of a burst to the begin of the next.
    pub period: u64,
    /// From the begin of the first burst to the begin of the next.
    next: u64,
    /// Begin of the present burst (0 between bursts), and end of the last one.
    began_ns: u64,
    ended_ns: u64,
    /// Number of finished bursts, and their total time.
    ended: (u64, u64),
}

impl Burst {
    /// Begins the next burst if it is due, and returns its delay; otherwise the nanoseconds until then.
    fn begin(&mut self, now_ns: u64, first_ns: u64) -> Result<u64, u64> {
        let due_ns = if self.epoch_ns > 0 {
            self.epoch_ns
        } else {
            first_ns
        } + (self.next >> 10);
        let late_ns = now_ns.checked_sub(due_ns).ok_or_else(|| due_ns - now_ns)?;
        self.next += (late_ns.saturating_sub(CATCH_UP_NS) << 10) + self.period;
        (self.left, self.began_ns) = (self.frames, now_ns);
        Ok(late_ns)
    }

    /// The last frame of the burst has left.
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

    /// The load in the traffic's bursts, if it has a rate and no number of frames. All `directions` share each burst.
    /// Each of the threads sends its share of every burst: their schedules begin with the load's `not_before_ns`.
    #[must_use]
    pub fn in_bursts(
        mut self,
        load: &Load,
        traffic: &Traffic,
        ways: u32,
        (thread, threads): (usize, usize),
    ) -> Self {
        if traffic.burst == 0 || self.rate_mfps == 0 || load.frames.is_some() {
            return self;
        }
        let (all, threads) = (u64::from(traffic.burst * ways), threads.max(1) as u64);
        let frames = all / threads + u64::from((thread as u64) < all % threads);
        if frames == 0 {
            self.frames_left = 0;
        }
        let period = |mfps: u64| {
            let mfps = u128::from(mfps) * u128::from(threads);
            let ns_1024 = ((u128::from(all) * u128::from(FRAME_CREDIT)) << 10) / mfps;
            u64::try_from(ns_1024).unwrap_or(u64::MAX >> 1)
        };
        let burst = Burst {
            frames,
            left: 0,
            epoch_ns: load.not_before_ns,
            period: period(self.rate_mfps),
            next: 0,
            began_ns: 0,
            ended_ns: 0,
            ended: (0, 0),
        };
        self.step = self.step.map(|(after_ns, mfps)| (after_ns, period(mfps)));
        self.rate_mfps = traffic.burst_fps.map_or(0, |fps| {
            (fps * 1000.0 * f64::from(ways) / threads as f64).round() as u64
        });
        Pacer {
            burst: Some(burst),
            ..self
        }
    }

    /// Number of finished bursts, and their total time in nanoseconds.
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
        } else if let Some((after_ns, mfps)) =
            self.step.take_if(|(after_ns, _)| lasted >= *after_ns)
        {
            let before = elapsed.saturating_sub(lasted - after_ns);
            self.credit = self
                .credit
                .saturating_add(before.min(CATCH_UP_NS).saturating_mul(self.rate_mfps));
            (elapsed, self.rate_mfps) = (elapsed - before, mfps);
        }
        if self.rate_mfps == 0 {
            self.stall_ns = self.stall_ns.max(elapsed);
            return Due::Frames(most as u32);
        }
        self.stall_ns = self
            .stall_ns
            .max(elapsed.saturating_sub(self.until_due_ns()));
        let limit = FRAME_CREDIT.saturating_add(CATCH_UP_NS.saturating_mul(self.rate_mfps));
        self.credit = self
            .credit
            .saturating_add(elapsed.saturating_mul(self.rate_mfps))
            .min(limit);
        match self.credit / FRAME_CREDIT {
            0 => Due::Wait(self.until_due_ns().min(self.deadline_ns - now_ns)),
            frames => Due::Frames(frames.min(most) as u32),
        }
    }

    /// Nanoseconds from the last clock reading to the next frame.
    fn until_due_ns(&self) -> u64 {
        FRAME_CREDIT
            .saturating_sub(self.credit)
            .div_ceil(self.rate_mfps)
    }

    /// Takes note of due frames that have left.
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
            - self
                .credit
                .saturating_sub(cost)
                .checked_div(self.rate_mfps)
                .unwrap_or(0)
                .min(self.last_ns)
    }
}

#[cfg(test)]
#[path = "pacer_tests.rs"]
mod tests;
