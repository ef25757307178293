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
