//! Configuration files, in every grammar.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::config::{Grammar, MOST_SETTINGS, settings};

fuzz_target!(|bytes: &[u8]| {
    for grammar in [Grammar::Assignments, Grammar::Rules] {
        assert!(settings(grammar, bytes).len() <= MOST_SETTINGS + 1);
    }
});
