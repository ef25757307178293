//! `.info` files of both grammars, and the dates in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::info::{Info, utc};

fuzz_target!(|bytes: &[u8]| {
    let info = Info::read(bytes);
    assert!(!info.facts.is_empty() || !info.problems.is_empty());
    info.image_revision();
    utc(&String::from_utf8_lossy(bytes));
});
