//! What other systems say and take: facts, commands and their output, changes of a DUT and what undoes them, external tools, the
//! agent's protocol. Pure: nothing is run here.
#![forbid(unsafe_code)]

pub mod agent;
pub mod hosts;
pub mod phases;
pub mod pktgen;
pub mod reconfigure;
pub mod rehearsal;
pub mod tools;
