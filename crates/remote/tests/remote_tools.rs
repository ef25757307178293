//! Trials over hosts without linerate, with the real sshd: pkt-gen's stand-in on simulated hosts, and tools of this machine.

#[path = "common/sshd.rs"]
mod sshd;

#[path = "remote_tools/bsd.rs"]
mod bsd;
#[path = "remote_tools/faults.rs"]
mod faults;
#[path = "remote_tools/linux.rs"]
mod linux;
#[path = "remote_tools/pkt_gen.rs"]
mod pkt_gen;
