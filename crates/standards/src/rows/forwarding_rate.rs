//! RFC 2889, section 5.1: forwarding rate.

use super::{figures, must, should};
use crate::Part::Test;
use crate::Section;
use crate::case::{SECOND, seconds};
use linerate_measure::experiment::Benchmark::ForwardingRate;
use linerate_measure::record;

pub const SECTIONS: &[Section] = &[(
    Test(ForwardingRate),
    &[
        must(
            "2889-5.1a",
            "FRMOL and the maximum forwarding rate, each with its load",
            |case| {
                case.each_of(rates(case), "sizes with both, and their loads", |_, figure| {
                let record::ForwardingRate { frmol, frmol_offered, mfr, mfr_offered, .. } = *figure;
                let known = frmol_offered > 0.0 && mfr_offered > 0.0 && mfr >= frmol;
                (!known).then(|| {
                    format!("FRMOL {frmol:.0} at {frmol_offered:.0}, MFR {mfr:.0} at {mfr_offered:.0}")
                })
            })
            },
        ),
        should(
            "2889-5.1b",
            "trials of 30 s, adjustable from 1 to 300 s",
            |case| {
                case.each_trial(ForwardingRate, "trials of 1 to 300 s", |trial| {
                    (!(SECOND..=300 * SECOND).contains(&trial.timing.run_ns))
                        .then(|| format!("{} s", seconds(trial.timing.run_ns)))
                })
            },
        ),
    ],
)];

figures!(rates, ForwardingRate);
