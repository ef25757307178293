//! The counts of a trial's tools, as the result of the trial.

use super::running::Running;
use super::window::{Counts, Window};
use super::{NOTHING_ARRIVED, ToolTrial};
use crate::agents::Flown;
use linerate_hosts::tools::Side;
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::Transport;

/// Samples of a live tool that arrive this much later than others: its seconds cannot be put on our clock.
const MOST_LAG_NS: u64 = 2_000_000_000;
/// A tool's frame has no FCS.
const FCS: u64 = 4;

/// Tools that are over.
pub(super) struct Account<'a, 'h> {
    pub trial: &'a ToolTrial<'h>,
    pub generators: &'a [Running<'h>],
    pub receiver: Option<&'a Running<'h>>,
    /// When generators got the order to go; `None` without that order.
    pub go_ns: Option<u64>,
    /// Ended because the user wants to stop: missing parts are no fault.
    pub interrupted: bool,
}

impl Account<'_, '_> {
    /// `faults`: those seen while it ran.
    pub fn flown(&self, faults: Vec<String>) -> Flown {
        let mut flown = Flown::default();
        flown.outcome.faults = faults;
        let Some(go_ns) = self.go_ns else { return flown };
        self.starts(go_ns, &mut flown);
        let sent: Vec<Counts> = self.generators.iter().map(Running::counts).collect();
        self.generators.iter().for_each(|g| flown.generator.add(counters(g, g.frames())));
        let counted = self.counted();
        let received = match counted {
            Some(receiver) => {
                flown.receiver = counters(receiver, receiver.frames());
                vec![receiver.counts()]
            }
            None => self.told(&sent, &mut flown),
        };
        let tools = self.generators.iter().chain(self.receiver);
        flown.outcome.faults.extend(tools.clone().flat_map(|tool| tool.faults(self.interrupted)));
        flown.outcome.faults.extend(tools.filter_map(doubt).filter(|_| !self.interrupted));
        self.window(&sent, &received, counted, go_ns, &mut flown);
        flown
    }

    fn starts(&self, go_ns: u64, flown: &mut Flown) {
        for generator in self.generators {
            let Some((began, error_ns)) = generator.session.began_here() else { continue };
            flown.within_ns = flown.within_ns.max(error_ns);
            let name = format!(
                "{} {} {}",
                generator.host.place.name(),
                generator.host.tool,
                generator.task.interface
            );
            flown.late.push((name, began as i64 - go_ns as i64));
        }
    }

    /// The receiver, if it has counts of its own. netserver reports only to its client.
    fn counted(&self) -> Option<&Running<'_>> {
        self.receiver.filter(|receiver| receiver.host.tool != Backend::Netperf)
    }

    /// Counts of the far end that the generators report, spread evenly over their sent frames. A stream loses nothing.
    fn told(&self, sent: &[Counts], flown: &mut Flown) -> Vec<Counts> {
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
        sent: &[Counts],
        received: &[Counts],
        counted: Option<&Running<'_>>,
        go_ns: u64,
        flown: &mut Flown,
    ) {
        let timing = &self.trial.timing;
        let arrived = Window::of(sent, counted.map(|_| &received[0]), timing);
        let window = arrived.or_else(|| Window::of(sent, None, timing));
        let faults = &mut flown.outcome.faults;
        let Some(window) = window else {
            flown.outcome.began_ns = go_ns;
            if faults.is_empty() && !self.interrupted {
                let names: Vec<String> = self.generators.iter().map(Running::name).collect();
                faults.push(format!(
                    "{}: no frame was sent; run its command on that host by hand",
                    names.join(", ")
                ));
            }
            return;
        };
        let seen = window.until(sent.iter().chain(received));
        let samples = seen.samples(sent, received);
        if let (None, Some(receiver)) = (arrived, counted) {
            let rate = linerate_measure::trial::rates(&samples).map_or(0.0, |rates| rates.offered);
            faults.push(format!(
                "{}: {} frames were sent, {rate:.0} a second, and it {NOTHING_ARRIVED}; look at the cables, the destination MAC, the \
                 DUT's forwarding, routes, ARP and filters, and whether the receiver counts without a DUT",
                receiver.name(),
                flown.generator.frames,
            ));
        } else if seen.to < window.to && faults.is_empty() && !self.interrupted {
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
    let report = tool.report();
    let silent = tool.host.tool == Backend::Netperf && tool.side == Side::Receiver;
    if silent || !tool.faults(false).is_empty() || tool.frames() == 0 {
        return None;
    }
    let name = tool.name();
    if !report.totals.said {
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
