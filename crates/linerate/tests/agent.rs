//! `linerate agent` on real packets: three hosts, each a network namespace with an agent of its own, driven as over ssh.

mod common;

#[path = "agent/faults.rs"]
mod faults;
#[path = "agent/hosts.rs"]
mod hosts;
#[path = "agent/trials.rs"]
mod trials;
