//! Lab files: faults have places in the text, and a lab without faults has what every lab has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_plan::lab::Lab;
use linerate_plan::settings::End;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
    match Lab::read(bytes) {
        Err(faults) => assert!(
            !faults.is_empty()
                && faults.iter().all(|f| (1..=lines).contains(&f.place.map_or(1, |place| place.line)))
        ),
        Ok(lab) => {
            assert!(lab.generators().count() > 0 && !lab.receiver().name.is_empty());
            for end in [End::In, End::Out] {
                assert!(!lab.networks(end).is_empty());
                lab.peers(end);
            }
        }
    }
});
