//! `linerate run` on labs of hosts: the real sshd in each of several network namespaces.

#[path = "hosts/bsd.rs"]
mod bsd;
mod common;
#[path = "hosts/freebsd.rs"]
mod freebsd;
#[path = "hosts/lab.rs"]
mod lab;
#[path = "hosts/linux.rs"]
mod linux;
#[path = "hosts/lost.rs"]
mod lost;
#[path = "hosts/mixed.rs"]
mod mixed;
#[path = "../../sys/tests/common/sshd.rs"]
mod sshd;

use serde_json::Value;
use std::path::Path;

/// The finished trials of a campaign.
fn trials(records: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(records).join("trials.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
