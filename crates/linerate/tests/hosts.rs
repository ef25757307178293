//! `linerate run` on labs of hosts, with real frames: the real sshd in each of several network namespaces.

mod common;
#[path = "hosts/generators.rs"]
mod generators;
#[path = "hosts/lab.rs"]
mod lab;
#[path = "hosts/linux.rs"]
mod linux;
#[path = "hosts/mixed.rs"]
mod mixed;
#[path = "hosts/site.rs"]
mod site;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;
