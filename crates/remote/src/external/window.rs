//! Where the seconds of a trial's tools lie on our clock, and which of them are the trial's window.

use linerate_hosts::agent::merge::{Series, merge};
use linerate_hosts::tools::Sample;
use linerate_measure::trial::{self, Timing};

/// More frames than any generator sends: a host that prints more is not believed, and sums stay in range.
pub(super) const MOST_FRAMES: u64 = 1 << 56;

/// By how much our clock is ahead of the tool's, at most: for each sample, with the time when it was here.
pub(super) fn ahead<'a>(samples: &'a [Sample], here: &'a [u64]) -> impl Iterator<Item = i128> + 'a {
    samples.iter().zip(here).map(|(sample, here)| i128::from(*here) - i128::from(sample.end_us) * 1000)
}

/// Counts of one tool on our clock. The clock of a tool is ours plus a constant, over so short a time; and no line is here before its
/// interval has ended. So the quickest line is nearest to the constant, and the others' delays do not matter.
pub(super) fn counts(samples: &[Sample], here: &[u64], frames: impl Fn(&Sample) -> u64) -> Series {
    let Some(constant) = ahead(samples, here).min() else { return Series::default() };
    let moment = |us: u64| u64::try_from(i128::from(us) * 1000 + constant).unwrap_or(0);
    let first = moment(samples[0].end_us).saturating_sub(samples[0].interval_us.saturating_mul(1000));
    let mut sum = 0u64;
    let ends = samples.iter().map(|sample| {
        sum = sum.saturating_add(frames(sample)).min(MOST_FRAMES);
        (moment(sample.end_us), sum)
    });
    Series::new([(first, 0)].into_iter().chain(ends))
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
    pub fn of(generators: &[Series], received: Option<&Series>, timing: &Timing) -> Option<Window> {
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
    pub fn until<'a>(mut self, all: impl IntoIterator<Item = &'a Series>) -> Window {
        let end = all.into_iter().filter_map(Series::end).min().unwrap_or(0);
        self.to = self.to.min(end);
        self
    }

    /// The counts in the window; empty for a window without duration.
    pub fn samples(&self, generators: &[Series], received: &[Series]) -> Vec<trial::Sample> {
        match self.to <= self.from {
            true => Vec::new(),
            false => merge(generators, received, self.began, self.from, self.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    /// Seconds of a tool whose clock is 5 s ahead of ours, each here after these milliseconds.
    fn seconds(first: u64, frames: &[u64], late_ms: &[u64]) -> Series {
        let sample = |(n, frames): (usize, &u64)| {
            let end_ns = (first + n as u64 + 1) * S;
            let late = late_ms[n % late_ms.len()] * 1_000_000;
            (of((end_ns + 5 * S) / 1000, S / 1000, *frames), end_ns + late)
        };
        let (samples, here): (Vec<_>, Vec<_>) = frames.iter().enumerate().map(sample).unzip();
        counts(&samples, &here, |sample| sample.packets.unwrap())
    }

    fn of(end_us: u64, interval_us: u64, frames: u64) -> Sample {
        Sample { end_us, interval_us, packets: Some(frames), bps: None }
    }

    #[test]
    fn the_quickest_line_tells_the_clock() {
        let counts = seconds(10, &[0, 7, 7], &[3, 400, 90]);
        let ms = 1_000_000;
        let moments =
            [(10 * S + 3 * ms, 0), (11 * S + 3 * ms, 0), (12 * S + 3 * ms, 7), (13 * S + 3 * ms, 14)];
        assert_eq!(counts, Series::new(moments));
        assert_eq!(seconds(0, &[], &[0]), Series::default());
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
        let window = Window { began: S, from: S, to: 5 * S };
        assert!(window.until([&Series::even(0, S, 1)]).samples(&generators, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_a_host_prints_is_no_panic(
            printed in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..9),
        ) {
            let sample = |(end, length, frames, here)| (of(end, length, frames), here);
            let (samples, here): (Vec<_>, Vec<_>) = printed.into_iter().map(sample).unzip();
            let counts = [counts(&samples, &here, |sample| sample.packets.unwrap())];
            let timing = Timing { warm_up_ns: S, run_ns: 3 * S, ..Timing::slice(S) };
            if let Some(window) = Window::of(&counts, Some(&counts[0]), &timing) {
                let samples = window.until(&counts).samples(&counts, &counts);
                prop_assert!(samples.windows(2).all(|w| w[0].t_ns <= w[1].t_ns && w[0].sent <= w[1].sent));
            }
        }
    }
}
