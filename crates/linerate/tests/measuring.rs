//! Tests that measure this machine. One runs at a time, unless scripts/run-tests says otherwise.

mod advise;
mod bisect;
mod budget;
mod busy;
mod campaigns;
mod causes;
mod common;
mod documents;
mod flame;
mod hosts;
mod labs;
mod on_path;
mod peers;
mod records;
mod safety;
mod searches;
mod shipped;
mod simulations;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;
mod truth;
mod unprivileged;
mod watch;
