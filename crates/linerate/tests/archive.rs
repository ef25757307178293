//! The public archive of FreeBSD forwarding results: imported, checked, reproduced, searched for changes; and the labs of its script.

mod common;

#[path = "archive/benchlab.rs"]
mod benchlab;
#[path = "archive/history.rs"]
mod history;
#[path = "archive/import.rs"]
mod import;
#[path = "archive/reproduce.rs"]
mod reproduce;
#[path = "archive/site.rs"]
mod site;
