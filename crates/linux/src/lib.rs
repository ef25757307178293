//! Everything that touches the system: packet I/O, the embedded lab, host facts, records on disk. The only crate with
//! unsafe code, each block with its reason.
#![cfg(target_os = "linux")]

pub mod agent;
pub mod bpf;
mod clock;
pub mod dataset;
mod error;
pub mod files;
pub mod guest;
pub mod host;
pub mod journal;
pub mod lab;
pub mod net;
pub mod ports;
pub mod process;
pub mod records;
pub mod site;
mod sockets;
pub mod telemetry;
pub mod trial;
pub mod watch;

pub use error::Error;
