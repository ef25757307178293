//! Commands on hosts with the real sshd, and their possible failures.

#[path = "common/sshd.rs"]
mod sshd;

#[path = "remote/campaign.rs"]
mod campaign;
#[path = "remote/changes.rs"]
mod changes;
#[path = "remote/commands.rs"]
mod commands;
#[path = "remote/connecting.rs"]
mod connecting;
#[path = "remote/dut.rs"]
mod dut;
#[path = "remote/faults.rs"]
mod faults;
#[path = "remote/phases.rs"]
mod phases;
#[path = "remote/sessions.rs"]
mod sessions;
