//! Files of numbers, one a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::tables::{is_numbers, numbers};

fuzz_target!(|bytes: &[u8]| {
    let published = numbers("a.pps", bytes);
    assert!(published.values.iter().all(|v| v.is_finite() && *v >= 0.0));
    is_numbers(bytes);
});
