//! Tables over sets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::tables::series;

fuzz_target!(|bytes: &[u8]| {
    let series = series("gnuplot.data", bytes);
    assert!(series.rows.iter().flat_map(|r| &r.values).all(|v| v.is_finite()));
    assert!(!series.rows.is_empty() || !series.problems.is_empty());
});
