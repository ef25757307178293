//! Knowledge about other systems: facts, commands and their output, changes of a DUT and their undoing, external tools, the
//! agent's protocol. Pure: nothing is run here.
#![forbid(unsafe_code)]

pub mod agent;
pub mod clock;
pub mod configuration;
pub mod counters;
pub mod cpus;
pub mod dut_changes;
pub mod folder;
pub mod phases;
pub mod pktgen;
pub mod preflight;
pub mod rehearsal;
pub mod stamps;
pub mod systems;
pub mod tools;
pub mod watch;
pub mod words;
