//! `linerate agent` on real packets: three hosts, each a network namespace with an agent of its own, driven as over ssh.

mod faults;
mod hosts;
mod trials;
