//! Where the seconds of a trial's tools lie on our clock, which of them are its window, and the result in it.

use super::running::Running;
use super::trial_run::{NOTHING_ARRIVED, TrialRun};
use super::window::{until, window};
use crate::TrialResult;
use linerate_hosts::agent::merge::Series;
use linerate_hosts::tools::Side;
use linerate_measure::counters::PortCounters;
use linerate_measure::trial;
use linerate_plan::Backend;
use linerate_wire::Transport;

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
