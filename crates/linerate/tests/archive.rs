//! The public archive of FreeBSD forwarding results: imported, checked, reproduced, searched for changes.

mod common;

#[path = "archive/history.rs"]
mod history;
#[path = "archive/import.rs"]
mod import;
#[path = "archive/reproduce.rs"]
mod reproduce;
