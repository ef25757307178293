//! Records that anybody may have written.

use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// From a folder that anybody may have written: pieces are exchanged, numbers are anything.
    #[test]
    fn no_records_make_it_panic(at in any::<prop::sample::Index>(), number in any::<u64>(), real in any::<f64>(), slot in any::<usize>(), which in 0..12usize) {
        let mut made = sound();
        let trial = at.index(made.trials.len());
        let trial = &mut made.trials[trial];
        match which {
            0 => trial.slot = slot,
            1 => trial.took_ns = number,
            2 => trial.timing.run_ns = number,
            3 => (trial.receiver.frames, trial.generator.frames) = (number, 0),
            4 => trial.asked_fps = Some(real),
            5 => made.campaign.slots.clear(),
            6 => made.campaign.slots[1].id = slot,
            7 => made.campaign.slots[1].lengths_fcs.clear(),
            8 => made.summary.benchmarks[0].slot = slot,
            9 => (made.summary.benchmarks[0].maximum, made.summary.searches[0].slot) = (None, slot),
            10 => (trial.generator.broadcasts, trial.receiver.bytes) = (number, number),
            _ => made.campaign.slots[1].levels = vec![(slot, slot)],
        }
        let _ = made.judged();
        made.facts.clear();
        made.trials.clear();
        made.summary.benchmarks.iter_mut().flat_map(|of| &mut of.tests).for_each(|tested| match &mut tested.figures {
            Figures::BackToBack(figure) => figure.bursts.clear(),
            Figures::FrameLoss(loads) => loads.iter_mut().for_each(|load| load.share = real),
            Figures::Latency(figure) => figure.runs.clear(),
            _ => {}
        });
        let _ = made.judged();
    }
}
