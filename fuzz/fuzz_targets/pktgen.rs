//! pkt-gen logs: both readings of a log, whole and in two pieces, and both figures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_hosts::pktgen::Reader;
use linerate_import::netbenches::logs::Received;

fuzz_target!(|bytes: &[u8]| {
    let received = Received::read("x", bytes);
    assert!(received.medians.is_none_or(|medians| medians.mean <= medians.upper));
    let mut whole = Reader::new();
    whole.feed(bytes);
    let mut halves = Reader::new();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    halves.feed(first);
    halves.feed(second);
    assert_eq!(whole.finish(), halves.finish());
});
