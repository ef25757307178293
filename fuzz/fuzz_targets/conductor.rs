//! Tests of Conductor: files one behind the other with byte 1 between them, the first of them the main file, are read and carried out
//! where they have no fault.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_hosts::phases::{Event, Machine, Phase};
use linerate_import::conductor::{Options, read};
use std::cell::Cell;

fuzz_target!(|bytes: &[u8]| {
    let files: Vec<&[u8]> = bytes.split(|b| *b == 1).collect();
    let next = Cell::new(0);
    // Players get the files in turn, whatever they call them.
    let test = read("conductor.cfg", &Options::default(), |_| {
        let file = files.get(next.replace(next.get() + 1));
        file.map(|file| file.to_vec()).ok_or_else(|| "No such file".to_string())
    });
    match test {
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 1000);
            assert!(faults.iter().all(|f| f.evidence.iter().all(|line| line.chars().count() <= 200)));
        }
        Ok(test) => {
            assert!(test.trials >= 1 && !test.workers.is_empty());
            let commands = || {
                test.workers
                    .iter()
                    .flat_map(|w| w.phases.iter().flat_map(|(_, steps)| steps))
                    .map(|s| &s.command)
            };
            assert!(commands().all(|command| !command.is_empty() && !command.contains('\0')));
            assert!(commands().map(String::len).sum::<usize>() <= 16 << 20);
            let mut machine = Machine::new(test.design(&Phase::ALL));
            machine.handle(Event::Go);
        }
    }
});
