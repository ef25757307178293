//! Searches for an equilibrium throughput.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::equilibrium;

fuzz_target!(|bytes: &[u8]| {
    let run = equilibrium::read("x", bytes);
    assert!(run.estimate.is_some() || !run.problems.is_empty());
    equilibrium::command(bytes);
});
