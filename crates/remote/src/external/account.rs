//! The result of a trial, from the counts of its tools.

use super::running::Running;
use super::window::Window;
use super::{Flight, NOTHING_ARRIVED};
use crate::agents::Flown;
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

impl Flight<'_> {
    /// The result of the trial, when its tools are over.
    pub(super) fn flown(&mut self) -> Flown {
        let mut flown = Flown::default();
        flown.outcome.faults = std::mem::take(&mut self.faults);
        let (Some(go_ns), interrupted) = (self.go_ns, self.is_interrupted()) else { return flown };
        self.starts(go_ns, &mut flown);
        let sent: Vec<Series> = self.generators.iter().map(Running::counts).collect();
        self.generators.iter().for_each(|g| flown.generator.add(counters(g, g.frames())));
        // netserver reports only to its client.
        let counted = self.receiver.as_ref().filter(|receiver| receiver.host.tool != Backend::Netperf);
        let received = match counted {
            Some(receiver) => {
                flown.receiver = counters(receiver, receiver.frames());
                vec![receiver.counts()]
            }
            None => self.told(&sent, &mut flown),
        };
        flown.outcome.faults.extend(self.all().flat_map(|tool| tool.faults(interrupted)));
        flown.outcome.faults.extend(self.all().filter_map(doubt).filter(|_| !interrupted));
        self.window(&sent, &received, counted, go_ns, &mut flown);
        flown
    }

    fn starts(&self, go_ns: u64, flown: &mut Flown) {
        for generator in &self.generators {
            let Some((began, error_ns)) = generator.session.began_here() else { continue };
            let (place, tool) = (generator.host.place.name(), generator.host.tool);
            flown.within_ns = flown.within_ns.max(error_ns);
            let name = format!("{place} {tool} {}", generator.task.interface);
            flown.late.push((name, began as i64 - go_ns as i64));
        }
    }

    /// Counts of the far end that the generators report, spread evenly over their sent frames. A stream loses nothing.
    fn told(&self, sent: &[Series], flown: &mut Flown) -> Vec<Series> {
        let mut received = Vec::new();
        for (generator, sent) in self.generators.iter().zip(sent) {
            let lost = match generator.task.traffic.frame.transport {
                Transport::Tcp => Some(0),
                _ => generator.report().totals.lost,
            };
            let Some(lost) = lost else { continue };
            let frames = generator.frames().saturating_sub(lost);
            flown.receiver.add(counters(generator, frames));
            received.push(sent.scaled(frames));
        }
        received
    }

    fn window(
        &self,
        sent: &[Series],
        received: &[Series],
        counted: Option<&Running<'_>>,
        go_ns: u64,
        flown: &mut Flown,
    ) {
        let (timing, interrupted) = (&self.trial.timing, self.is_interrupted());
        let arrived = Window::of(sent, counted.map(|_| &received[0]), timing);
        let window = arrived.or_else(|| Window::of(sent, None, timing));
        let faults = &mut flown.outcome.faults;
        let Some(window) = window else {
            flown.outcome.began_ns = go_ns;
            if faults.is_empty() && !interrupted {
                let names = self.generators.iter().map(Running::name).collect::<Vec<_>>().join(", ");
                faults.push(format!("{names}: no frame was sent; run its command on that host by hand"));
            }
            return;
        };
        let seen = window.until(sent.iter().chain(received));
        let samples = seen.samples(sent, received);
        if let (None, Some(receiver)) = (arrived, counted) {
            let rate = trial::rates(&samples).map_or(0.0, |rates| rates.offered);
            faults.push(format!(
                "{}: {} frames were sent, {rate:.0} a second, and it {NOTHING_ARRIVED}; look at the cables, the destination MAC, the \
                 DUT's forwarding, routes, ARP and filters, and whether the receiver counts without a DUT",
                receiver.name(),
                flown.generator.frames,
            ));
        } else if seen.to < window.to && faults.is_empty() && !interrupted {
            let missing = (window.to - seen.to.max(window.from)) as f64 / 1e9;
            faults.push(format!(
                "the load ended {missing:.1} s before the window did; run it again, with a longer trial if it repeats"
            ));
        }
        flown.outcome.began_ns = window.began;
        flown.outcome.samples = samples;
    }
}

fn counters(tool: &Running<'_>, frames: u64) -> PortCounters {
    let frame = u64::from(tool.task.frame_len_fcs()).saturating_sub(FCS);
    PortCounters { frames, bytes: frames.saturating_mul(frame).min(u64::MAX >> 8), ..PortCounters::default() }
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
