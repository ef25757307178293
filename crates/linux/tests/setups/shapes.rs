//! Loads that change, and what receivers find out about single frames.

use super::bench::{Frames, lab, send};
use linerate_linux::lab::Setup;
use linerate_plan::settings::Dut;
use linerate_wire::{Family, Findings, RateStep};

const EVERY_FRAME: Option<Findings> = Some(Findings { every_frame: true, tag_after_ns: 20_000_000 });

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_frame_is_looked_at_and_the_rate_steps() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let step = Some(RateStep { after_ns: 30_000_000, rate: 20_000.0 });
    let frames =
        Frames { count: 3000, rate: Some(40_000.0), step, findings: EVERY_FRAME, ..Frames::of(Family::V4) };
    let shown = send(&lab, frames);
    shown.is_whole("forwarding");
    // 1200 frames in 30 ms, and the others in 90.
    assert!(shown.sent.active_ns.abs_diff(120_000_000) < 1_000_000, "{} ns", shown.sent.active_ns);
    let delays = shown.received.delays.as_ref().unwrap();
    assert_eq!((delays.frames, delays.broken), (3000, 0));
    assert_eq!(delays.earlier.count() + delays.later.count(), 2999);
    assert!(
        delays.min_ns > 0 && delays.min_ns < delays.max_ns && delays.least_ns < delays.most_ns,
        "{delays:?}"
    );
    // Some thousand are spread over the 2 s that the load may last; these are in 100 ms of it.
    assert!((40..=60).contains(&delays.tagged.len()), "{} tagged", delays.tagged.len());
    assert_eq!((shown.received.last_loss_ns, shown.received.outages.len()), (None, 16));
    assert!(shown.received.outages.iter().all(|outage| outage.missing == 0 && outage.to_ns > outage.from_ns));
}
