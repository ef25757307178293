//! The public archive of FreeBSD forwarding results: imported, checked, reproduced, searched for changes; and the labs of its script.

mod benchlab;
mod dataset;
mod history;
mod import;
mod reproduce;
mod site;
