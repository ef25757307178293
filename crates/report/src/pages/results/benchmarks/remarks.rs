//! The load of 100 %, and where the throughput says little of the DUT.

use super::super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{Benchmarked, Figures, Maximum};

/// The highest load of which nearly all frames come through, if it is far above the throughput.
pub fn nearly(shown: &Shown<'_>) -> Option<String> {
    let mut slots = shown.summary.benchmarks.iter();
    let (slot, most, throughput) = slots.find_map(|slot| {
        let mut figures = slot.tests.iter().map(|tested| &tested.figures);
        let throughput = figures.clone().find_map(|found| match found {
            Figures::Throughput(found) => Some(found.fps),
            _ => None,
        })?;
        let loads = figures.find_map(|found| match found {
            Figures::FrameLoss(loads) => Some(loads),
            _ => None,
        })?;
        let few = loads
            .iter()
            .filter(|at| at.lost as f64 <= FEW * at.sent as f64);
        let most = few.max_by(|a, b| a.offered.total_cmp(&b.offered))?;
        Some((slot.slot, most, throughput)).filter(|_| most.offered > FAR * throughput)
    })?;
    Some(format!(
        "{}: of {} frames/s, {:.0} times as many, {} % are lost: at the throughput, a short pause of the DUT decides, and not its capacity.",
        shown.name(slot),
        grouped(most.offered as u64),
        most.offered / throughput,
        percent(most.lost as f64 / most.sent.max(1) as f64),
    ))
}

/// The share of lost frames up to which nearly all come through.
const FEW: f64 = 0.01;
/// A load that is so many times the throughput shows that the DUT has the capacity.
const FAR: f64 = 2.0;

/// The load that is 100 %, and where the highest load is not 95 % of the tester's own rate.
pub fn medium(shown: &Shown<'_>, all: &[Benchmarked]) -> String {
    let maximum = all.iter().find_map(|slot| slot.maximum);
    let what = match maximum.map(|maximum| maximum.medium) {
        Some(true) => "100 % of the load is the theoretical rate of the slower link.",
        Some(false) => {
            "Virtual link: without a medium there is no theoretical rate. 100 % of the load is the reference rate: 95 % of the tester's ceiling, the rate that it sends and receives without a DUT."
        }
        None => "The tester's own rate is not known.",
    };
    let slower = all.iter().filter_map(|slot| {
        let Maximum {
            kept, tester_fps, ..
        } = slot.maximum?;
        Some(format!(
            " While the DUT was busy with {}, the tester reached only {} frames/s (the least of three trials that failed): the highest load is 95 % of this, {}.",
            shown.name(slot.slot),
            words(kept?, 3),
            words(tester_fps, 3)
        ))
    });
    what.to_string() + &slower.collect::<String>()
}
