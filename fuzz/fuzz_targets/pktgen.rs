//! pkt-gen logs: both readings of a log, whole and in two pieces, and both figures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::logs::Received;
use linerate_hosts::pktgen::Reader;

fuzz_target!(|bytes: &[u8]| {
    let received = Received::read(bytes);
    assert!(received.medians.is_none() || received.points >= 3);
    let mut whole = Reader::new();
    whole.feed(bytes);
    let mut halves = Reader::new();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    halves.feed(first);
    halves.feed(second);
    assert_eq!(whole.finish(), halves.finish());
});
