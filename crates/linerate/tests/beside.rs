//! Tests that measure nothing of this machine, and may run side by side.

mod apply;
mod captures;
mod common;
mod conduct;
mod lab_check;
mod plans;
mod rules;
mod serve;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;
mod usage;
