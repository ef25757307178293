//! The window of a trial of tools, on our clock.

use linerate_hosts::agent::merge::{Series, Window};
use linerate_measure::trial::Timing;

/// The window of a trial; `None` until all generators send and the receiver counts. The first interval with frames of each is left out,
/// as frames may have been under way in a part of it only. `received`: the receiver's counts; `None` if received frames cannot be seen.
pub(super) fn window(
    generators: &[Series],
    received: Option<&Series>,
    timing: &Timing,
) -> Option<Window> {
    let first = |counts: &Series| counts.first_frames(0);
    let sending: Vec<_> = generators.iter().map(first).collect::<Option<_>>()?;
    let first_sent = sending.iter().map(|(start, _)| *start).min()?;
    let mut began = sending.iter().map(|(_, end)| *end).max()?;
    if let Some(received) = received {
        began = began.max(received.first_frames(first_sent)?.1);
    }
    Some(Window::new(began, timing))
}

/// A window, up to where all have counted.
pub(super) fn until<'a>(window: Window, all: impl IntoIterator<Item = &'a Series>) -> Window {
    let end = all.into_iter().filter_map(Series::end).min().unwrap_or(0);
    Window {
        to: window.to.min(end),
        ..window
    }
}

#[cfg(test)]
mod tests {
    use super::super::running::counts;
    use super::*;
    use linerate_hosts::tools::Sample;
    use linerate_measure::trial;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    /// Seconds of a tool whose clock is 5 s ahead of ours, each here after these milliseconds.
    fn seconds(first: u64, frames: &[u64], late_ms: &[u64]) -> Series {
        let sample = |(n, frames): (usize, &u64)| {
            let end_ns = (first + n as u64 + 1) * S;
            let late = late_ms[n % late_ms.len()] * 1_000_000;
            (
                of((end_ns + 5 * S) / 1000, S / 1000, *frames),
                end_ns + late,
            )
        };
        let (samples, here): (Vec<_>, Vec<_>) = frames.iter().enumerate().map(sample).unzip();
        counts(&samples, &here, |sample| sample.packets.unwrap())
    }

    fn of(end_us: u64, interval_us: u64, frames: u64) -> Sample {
        Sample {
            end_us,
            interval_us,
            packets: Some(frames),
            bps: None,
        }
    }

    #[test]
    fn the_quickest_line_tells_the_clock() {
        let counts = seconds(10, &[0, 7, 7], &[3, 400, 90]);
        let ms = 1_000_000;
        let moments = [
            (10 * S + 3 * ms, 0),
            (11 * S + 3 * ms, 0),
            (12 * S + 3 * ms, 7),
            (13 * S + 3 * ms, 14),
        ];
        assert_eq!(counts, Series::new(moments));
        assert_eq!(seconds(0, &[], &[0]), Series::default());
    }

    #[test]
    fn the_window_begins_when_all_send_and_frames_arrive() {
        let timing = Timing {
            warm_up_ns: S,
            run_ns: 3 * S,
            ..Timing::slice(S)
        };
        let generators = [
            seconds(0, &[0, 5, 10, 10, 10, 10, 10, 10, 10], &[0]),
            seconds(2, &[9; 8], &[0]),
        ];
        assert_eq!(
            window(&generators, Some(&seconds(0, &[0; 9], &[0])), &timing),
            None
        );
        // An ARP request before the load is not one of its frames.
        let received = seconds(0, &[1, 0, 0, 0, 4, 19, 19, 19, 19, 19], &[0]);
        let found = window(&generators, Some(&received), &timing).unwrap();
        assert_eq!(
            found,
            Window {
                began: 5 * S,
                from: 6 * S,
                to: 9 * S
            }
        );
        assert_eq!(until(found, [&generators[0], &received]).to, 9 * S);
        let samples = found.samples(&generators, std::slice::from_ref(&received));
        let rates = trial::rates(&samples).unwrap();
        assert_eq!(
            (rates.offered, rates.received, samples[0].t_ns),
            (19.0, 19.0, S)
        );
        let found = Window {
            began: S,
            from: S,
            to: 5 * S,
        };
        assert!(
            until(found, [&Series::even(0, S, 1)])
                .samples(&generators, &[])
                .is_empty()
        );
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
            if let Some(found) = window(&counts, Some(&counts[0]), &timing) {
                let samples = until(found, &counts).samples(&counts, &counts);
                prop_assert!(samples.windows(2).all(|w| w[0].t_ns <= w[1].t_ns && w[0].sent <= w[1].sent));
            }
        }
    }
}
