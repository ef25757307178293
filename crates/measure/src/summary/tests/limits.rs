//! The limit of an open loop.

use super::*;

#[test]
fn an_open_loop_without_a_loss_is_limited_by_the_tester() {
    let mut campaign = campaign();
    campaign.asked.mode = Mode::Threaded;
    campaign.asked.lab = LabKind::Namespaces;
    (campaign.asked.generator, campaign.asked.receiver) = ("xdp".into(), "xdp".into());
    let mut all = trials(1.5e6);
    let s = summarise(&campaign, &all, Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Tester);
    let warned = |w: &Warning| w.slot == Some(1) && w.text.contains("lost less than 0.1 %");
    assert!(s.warnings.iter().any(warned), "{:?}", s.warnings);
    // The kernel refuses a program's frames while the DUT's queue is full: they are not lost.
    campaign.asked.generator = "af-packet".into();
    let s = summarise(&campaign, &all, Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Dut);
    campaign.asked.generator = "xdp".into();
    all.iter_mut().for_each(|trial| trial.receiver.frames -= 10);
    let s = summarise(&campaign, &all, Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Dut);
    // The receiver's program shares a CPU with the DUT.
    campaign.asked.receiver = "af-packet".into();
    campaign.roles.dut = vec![1];
    campaign.roles.receiver = vec![1];
    let s = summarise(&campaign, &all, Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Tester);
    let warned = |w: &Warning| w.slot == Some(1) && w.text.contains("has a CPU of the DUT");
    assert!(s.warnings.iter().any(warned), "{:?}", s.warnings);
}

/// Slot 1 is close to the tester's own rate, and loses this many of a thousand frames at a place.
fn near_the_ceiling(lab: LabKind, lost: u64, place: &str) -> Summary {
    let mut campaign = campaign();
    campaign.asked.lab = lab;
    let mut all = Vec::new();
    for block in 0..10 {
        for (slot, fps, lost) in [(0, 1e6, 0), (1, 1e6, lost), (2, 5e5, 0)] {
            all.push(lossy(all.len() as u64, block, slot, fps, lost, place));
        }
    }
    summarise(&campaign, &all, Stopped::Trials, 0)
}

#[test]
fn a_dut_whose_queue_was_full_was_the_limit_and_not_the_tester() {
    const FULL: &str = "DUT in: receive ring full";
    let judged = |lost, place| {
        let s = near_the_ceiling(LabKind::Namespaces, lost, place);
        let warned = s.warnings.iter().any(|w| w.text.contains("too close"));
        (
            s.rows[1].limit,
            (1e3 * s.rows[1].overload()).round(),
            warned,
        )
    };
    assert_eq!(judged(30, FULL), (Limit::Dut, 30.0, false));
    assert_eq!(judged(0, FULL), (Limit::Tester, 0.0, true));
    // Frames that a rule dropped say nothing about the load.
    assert_eq!(judged(5, INSIDE), (Limit::Tester, 0.0, true));
}

#[test]
fn a_simulated_tester_is_no_limit_and_takes_no_time() {
    for (lost, limit) in [(500, Limit::Dut), (0, Limit::Unknown)] {
        let s = near_the_ceiling(LabKind::Simulated, lost, "queue full");
        let row = &s.rows[1];
        assert_eq!(
            (row.limit, row.ns_per_frame, row.dut_ns_per_frame),
            (limit, 0.0, None)
        );
        assert_eq!(s.warnings, []);
    }
}
