//! Where the seconds of a trial's tools lie on our clock, which of them are its window, and the result in it.

use super::running::Running;
use super::{NOTHING_ARRIVED, TrialRun};
use crate::TrialResult;
use linerate_hosts::agent::merge::{Series, Window};
use linerate_hosts::tools::Side;
use linerate_measure::counters::PortCounters;
use linerate_measure::trial::{self, Timing};
use linerate_plan::Backend;
use linerate_wire::Transport;

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

/// Samples of a live tool that arrive this much later than others: its seconds cannot be put on our clock.
const MOST_LAG_NS: u64 = 2_000_000_000;

/// A tool's frame has no FCS.
const FCS: u64 = 4;

impl TrialRun<'_> {
    /// The result of the trial, when its tools are over.
    pub(super) fn result(&mut self) -> TrialResult {
        let mut result = TrialResult::of_ways(1);
        result.outcome.faults = std::mem::take(&mut self.faults);
        let (Some(go_ns), interrupted) = (self.go_ns(), self.is_interrupted()) else {
            return result;
        };
        self.starts(go_ns, &mut result);
        let sent: Vec<Series> = self.generators().iter().map(Running::counts).collect();
        self.generators()
            .iter()
            .for_each(|g| result.sent[0].add(counters(g, g.frames())));
        // netserver reports only to its client.
        let counted = self
            .receiver()
            .filter(|receiver| receiver.host.tool != Backend::Netperf);
        let received = match counted {
            Some(receiver) => {
                result.received[0] = counters(receiver, receiver.frames());
                vec![receiver.counts()]
            }
            None => self.told(&sent, &mut result),
        };
        result
            .outcome
            .faults
            .extend(self.tools.iter().flat_map(|tool| tool.faults(interrupted)));
        result
            .outcome
            .faults
            .extend(self.tools.iter().filter_map(doubt).filter(|_| !interrupted));
        self.count(&sent, &received, counted, go_ns, &mut result);
        result
    }

    fn starts(&self, go_ns: u64, result: &mut TrialResult) {
        for generator in self.generators() {
            if let Some(start) = generator.start {
                let (place, tool) = (generator.host.place.name(), generator.host.tool);
                let name = format!("{place} {tool} {}", generator.task.interface);
                result.began(name, start.at_ns as i64 - go_ns as i64, start.error_ns);
            }
        }
    }

    /// Counts of the far end that the generators report, spread evenly over their sent frames. A stream loses nothing.
    fn told(&self, sent: &[Series], result: &mut TrialResult) -> Vec<Series> {
        let mut received = Vec::new();
        for (generator, sent) in self.generators().iter().zip(sent) {
            let lost = match generator.task.traffic.frame.transport {
                Transport::Tcp => Some(0),
                _ => generator.report().totals.lost,
            };
            let Some(lost) = lost else { continue };
            let frames = generator.frames().saturating_sub(lost);
            result.received[0].add(counters(generator, frames));
            received.push(sent.scaled(frames));
        }
        received
    }

    fn count(
        &self,
        sent: &[Series],
        received: &[Series],
        counted: Option<&Running<'_>>,
        go_ns: u64,
        result: &mut TrialResult,
    ) {
        let (timing, interrupted) = (&self.trial.timing, self.is_interrupted());
        let arrived = window(sent, counted.map(|_| &received[0]), timing);
        let whole = arrived.or_else(|| window(sent, None, timing));
        let faults = &mut result.outcome.faults;
        let Some(whole) = whole else {
            result.outcome.began_ns = go_ns;
            if faults.is_empty() && !interrupted {
                let names: Vec<_> = self.generators().iter().map(Running::name).collect();
                let names = names.join(", ");
                faults.push(format!(
                    "{names}: no frame was sent; run its command on that host by hand"
                ));
            }
            return;
        };
        let seen = until(whole, sent.iter().chain(received));
        result.count(&seen, sent, received);
        let TrialResult { sent, outcome, .. } = result;
        let faults = &mut outcome.faults;
        // A load that was interrupted may have ended before the receiver told of it.
        let silent = counted.filter(|_| arrived.is_none() && !interrupted);
        if let Some(receiver) = silent {
            let rate = trial::rates(&outcome.samples).map_or(0.0, |rates| rates.offered);
            faults.push(format!(
                "{}: {} frames were sent, {rate:.0} a second, and it {NOTHING_ARRIVED}; look at the cables, the destination MAC, the \
                 DUT's forwarding, routes, ARP and filters, and whether the receiver counts without a DUT",
                receiver.name(),
                sent[0].frames,
            ));
        } else if seen.to < whole.to && faults.is_empty() && !interrupted {
            let missing = (whole.to - seen.to.max(whole.from)) as f64 / 1e9;
            faults.push(format!(
                "the load ended {missing:.1} s before the window did; run it again, with a longer trial if it repeats"
            ));
        }
    }
}

fn counters(tool: &Running<'_>, frames: u64) -> PortCounters {
    let frame = u64::from(tool.task.frame_len_fcs()).saturating_sub(FCS);
    PortCounters {
        frames,
        bytes: frames.saturating_mul(frame).min(u64::MAX >> 8),
        ..PortCounters::default()
    }
}

/// Why the figures of a tool that reported no fault cannot be believed, if they cannot.
fn doubt(tool: &Running<'_>) -> Option<String> {
    let silent = tool.host.tool == Backend::Netperf && tool.side == Side::Receiver;
    if silent || !tool.faults(false).is_empty() || tool.frames() == 0 {
        return None;
    }
    let name = tool.name();
    if !tool.report().totals.said {
        return Some(format!(
            "{name}: it ended without its totals, so what passed after its last second is not known; see on that host why it was killed"
        ));
    }
    let lag = tool.lag_ns();
    (tool.is_live() && lag > MOST_LAG_NS).then(|| {
        format!(
            "{name}: some of its seconds were here {:.1} s later than others, so its clock cannot be compared with ours; look at the \
             management link, and whether its clock was set",
            lag as f64 / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::running::counts;
    use super::*;
    use linerate_hosts::tools::Sample;
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
