//! Where the seconds of tools lie on our clock, and which of them are a trial's window.

use linerate_hosts::agent::merge::{Series, merge};
use linerate_measure::trial;
use linerate_measure::trial::Timing;

/// More frames than any generator sends: a host that prints more is not believed, and sums stay in range.
pub(super) const MOST_FRAMES: u64 = 1 << 56;

const SECOND_NS: usize = 1_000_000_000;
/// A tool that reports more than a day is not believed.
const MOST_SECONDS: usize = 86_400;

/// Counts of one tool at moments of our clock, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The beginning of the first interval and the end of each, with the frames until then.
    pub points: Vec<(u64, u64)>,
}

/// An interval as a tool printed it, and when its line was here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    /// Its end on the tool's clock, in nanoseconds.
    pub end_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Frames in it.
    pub frames: u64,
    /// When its line was here, on our clock.
    pub here_ns: u64,
}

impl Counts {
    /// The clock of a tool is ours plus a constant, over so short a time; and no line is here before its interval has ended. So
    /// the quickest line is nearest to the constant, and the others' delays do not matter.
    pub fn of(intervals: &[Interval]) -> Counts {
        let ahead = |i: &Interval| i128::from(i.here_ns) - i128::from(i.end_ns);
        let Some(constant) = intervals.iter().map(ahead).min() else { return Counts::default() };
        let here = |ns: u64| u64::try_from(i128::from(ns) + constant).unwrap_or(0);
        let first = &intervals[0];
        let mut points = vec![(here(first.end_ns).saturating_sub(first.length_ns), 0)];
        let mut frames = 0u64;
        for interval in intervals {
            frames = frames.saturating_add(interval.frames).min(MOST_FRAMES);
            points.push((here(interval.end_ns), frames));
        }
        Counts { points }
    }

    /// Frames at an even rate, from one moment to another, by the second.
    pub fn even(from_ns: u64, to_ns: u64, frames: u64) -> Counts {
        let length = u128::from(to_ns.saturating_sub(from_ns)).max(1);
        let until = |ns: u64| (u128::from(frames) * u128::from(ns - from_ns) / length) as u64;
        let seconds = (from_ns..to_ns).step_by(SECOND_NS).take(MOST_SECONDS);
        Counts { points: seconds.map(|ns| (ns, until(ns))).chain([(to_ns, frames)]).collect() }
    }

    /// The same moments, scaled to this number of frames in all.
    pub fn scaled(&self, to: u64) -> Counts {
        let of = u128::from(self.points.last().map_or(0, |p| p.1)).max(1);
        let scale = |n: u64| (u128::from(n) * u128::from(to) / of) as u64;
        Counts { points: self.points.iter().map(|(t, n)| (*t, scale(*n))).collect() }
    }

    /// The beginning of the first interval that ends after `ns` and has frames.
    pub fn first_frames(&self, ns: u64) -> Option<(u64, u64)> {
        let flows = |pair: &&[(u64, u64)]| pair[1].0 > ns && pair[1].1 > pair[0].1;
        self.points.windows(2).find(flows).map(|pair| (pair[0].0, pair[1].0))
    }

    pub fn end(&self) -> Option<u64> {
        self.points.last().map(|p| p.0)
    }
}

/// When a trial's window is, on our clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// All send, and frames arrive.
    pub began: u64,
    pub from: u64,
    pub to: u64,
}

impl Window {
    /// `None` until all generators send and the receiver counts. The first interval with frames of each is left out, as frames
    /// may have flown in a part of it only. `received`: the receiver's counts; `None` if received frames cannot be seen.
    pub fn of(generators: &[Counts], received: Option<&Counts>, timing: &Timing) -> Option<Window> {
        let sending: Option<Vec<_>> = generators.iter().map(|counts| counts.first_frames(0)).collect();
        let sending = sending?;
        let first_sent = sending.iter().map(|(start, _)| *start).min()?;
        let mut began = sending.iter().map(|(_, end)| *end).max()?;
        if let Some(received) = received {
            began = began.max(received.first_frames(first_sent)?.1);
        }
        let from = began.saturating_add(timing.warm_up_ns);
        Some(Window { began, from, to: from.saturating_add(timing.run_ns) })
    }

    /// The same, up to where all have counted.
    pub fn until<'a>(mut self, all: impl IntoIterator<Item = &'a Counts>) -> Window {
        let end = all.into_iter().filter_map(Counts::end).min().unwrap_or(0);
        self.to = self.to.min(end);
        self
    }

    /// The counts in the window; empty for a window without duration.
    pub fn samples(&self, generators: &[Counts], received: &[Counts]) -> Vec<trial::Sample> {
        if self.to <= self.from {
            return Vec::new();
        }
        let series =
            |all: &[Counts]| all.iter().map(|c| Series::new(c.points.iter().copied())).collect::<Vec<_>>();
        merge(&series(generators), &series(received), self.began, self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    /// Seconds of a tool whose clock is 5 s ahead of ours, each here after these milliseconds.
    fn seconds(first: u64, frames: &[u64], late_ms: &[u64]) -> Counts {
        let interval = |(n, frames): (usize, &u64)| {
            let end_ns = (first + n as u64 + 1) * S;
            let late = late_ms[n % late_ms.len()] * 1_000_000;
            Interval { end_ns: end_ns + 5 * S, length_ns: S, frames: *frames, here_ns: end_ns + late }
        };
        Counts::of(&frames.iter().enumerate().map(interval).collect::<Vec<_>>())
    }

    #[test]
    fn the_quickest_line_tells_the_clock() {
        let counts = seconds(10, &[0, 7, 7], &[3, 400, 90]);
        let ms = 1_000_000;
        let moments =
            [(10 * S + 3 * ms, 0), (11 * S + 3 * ms, 0), (12 * S + 3 * ms, 7), (13 * S + 3 * ms, 14)];
        assert_eq!(counts.points, moments);
        assert_eq!(Counts::of(&[]), Counts::default());
    }

    #[test]
    fn the_window_begins_when_all_send_and_frames_arrive() {
        let timing = Timing { warm_up_ns: S, run_ns: 3 * S, ..Timing::slice(S) };
        let generators = [seconds(0, &[0, 5, 10, 10, 10, 10, 10, 10, 10], &[0]), seconds(2, &[9; 8], &[0])];
        assert_eq!(Window::of(&generators, Some(&seconds(0, &[0; 9], &[0])), &timing), None);
        // An ARP request before the load is not one of its frames.
        let received = seconds(0, &[1, 0, 0, 0, 4, 19, 19, 19, 19, 19], &[0]);
        let window = Window::of(&generators, Some(&received), &timing).unwrap();
        assert_eq!(window, Window { began: 5 * S, from: 6 * S, to: 9 * S });
        assert_eq!(window.until([&generators[0], &received]).to, 9 * S);
        let samples = window.samples(&generators, std::slice::from_ref(&received));
        let rates = trial::rates(&samples).unwrap();
        assert_eq!((rates.offered, rates.received, samples[0].t_ns), (19.0, 19.0, S));
    }

    #[test]
    fn a_part_of_what_was_sent() {
        let sent = Counts::even(S, 5 * S, 400);
        assert_eq!(sent.points, [(S, 0), (2 * S, 100), (3 * S, 200), (4 * S, 300), (5 * S, 400)]);
        assert_eq!(sent.scaled(100).points, [(S, 0), (2 * S, 25), (3 * S, 50), (4 * S, 75), (5 * S, 100)]);
        assert_eq!(Counts::even(S, S, 7).points, [(S, 7)]);
        assert_eq!(Counts::default().scaled(9), Counts::default());
        let window = Window { began: S, from: S, to: 5 * S };
        assert!(window.until([&Counts::even(0, S, 1)]).samples(&[sent], &[]).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_a_host_prints_is_no_panic(
            printed in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..9),
        ) {
            let interval = |(end_ns, length_ns, frames, here_ns)| Interval { end_ns, length_ns, frames, here_ns };
            let counts = [Counts::of(&printed.into_iter().map(interval).collect::<Vec<_>>())];
            let timing = Timing { warm_up_ns: S, run_ns: 3 * S, ..Timing::slice(S) };
            if let Some(window) = Window::of(&counts, Some(&counts[0]), &timing) {
                let samples = window.until(&counts).samples(&counts, &counts);
                prop_assert!(samples.windows(2).all(|w| w[0].t_ns <= w[1].t_ns && w[0].sent <= w[1].sent));
            }
        }
    }
}
