//! Hosts that have linerate: an agent on each, asked in a dialogue ([`agent`]), trials over several of them, and a lab of them.

mod agent;
pub mod lab;
mod trial;

pub use agent::{Agent, Link};
pub use trial::{Member, Ports, Trial};
