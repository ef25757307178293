//! `linerate run` on labs of hosts, with real frames: the real sshd in each of several network namespaces.

mod booted;
mod generators;
mod kinds;
mod lab;
mod linux;
mod mixed;
mod site;
