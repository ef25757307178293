//! Tests with loads of their own that may run side by side.

mod agent;
mod common;
mod hosts_beside;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;
mod stand;
mod tuning;
