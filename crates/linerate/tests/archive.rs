//! The public archive of FreeBSD forwarding results: read, checked and reproduced.

mod common;

#[path = "archive/reproduce.rs"]
mod reproduce;
