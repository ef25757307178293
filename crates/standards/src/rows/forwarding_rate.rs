//! RFC 2889, section 5.1: forwarding rate.

use super::{figures, row};
use crate::Level::{Must, Should};
use crate::Part::Test;
use crate::Row;
use crate::case::SECOND;
use linerate_measure::experiment::Benchmark::ForwardingRate;
use linerate_measure::record::{self, TrialRecord};

pub const ROWS: &[&Row] = &[
    &row(
        "2889-5.1a",
        Must,
        Test(ForwardingRate),
        "FRMOL and the maximum forwarding rate, each with its load",
        |case| {
            let wrong = |_: &_, figure: &record::ForwardingRate| {
                let record::ForwardingRate { frmol, frmol_offered, mfr, mfr_offered, .. } = *figure;
                let known = frmol_offered > 0.0 && mfr_offered > 0.0 && mfr >= frmol;
                (!known).then(|| {
                    format!("FRMOL {frmol:.0} at {frmol_offered:.0}, MFR {mfr:.0} at {mfr_offered:.0}")
                })
            };
            case.each_of(rates(case), wrong, "sizes with both, and their loads")
        },
    ),
    &row("2889-5.1b", Should, Test(ForwardingRate), "trials of 30 s, adjustable from 1 to 300 s", |case| {
        let other = |trial: &&TrialRecord| {
            (!(SECOND..=300 * SECOND).contains(&trial.timing.run_ns))
                .then(|| format!("trial {}: {} s", trial.trial, trial.timing.run_ns as f64 / 1e9))
        };
        case.each(case.of(ForwardingRate), other, "trials of 1 to 300 s")
    }),
];

figures!(rates, ForwardingRate);
