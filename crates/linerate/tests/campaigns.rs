//! `linerate run`, end to end: campaigns of plans, stopped by everything that stops a program, and resumed.

mod common;

#[path = "campaigns/directions.rs"]
mod directions;
#[path = "campaigns/end_hosts.rs"]
mod end_hosts;
#[path = "campaigns/experiment.rs"]
mod experiment;
#[path = "campaigns/faults.rs"]
mod faults;
#[path = "campaigns/host.rs"]
mod host;
#[path = "campaigns/interrupted.rs"]
mod interrupted;
#[path = "campaigns/killed.rs"]
mod killed;
#[path = "campaigns/losses.rs"]
mod losses;
#[path = "campaigns/modifiers.rs"]
mod modifiers;
#[path = "campaigns/order.rs"]
mod order;
#[path = "campaigns/outside.rs"]
mod outside;
#[path = "campaigns/own_rules.rs"]
mod own_rules;
#[path = "campaigns/profiled.rs"]
mod profiled;
#[path = "campaigns/proven.rs"]
mod proven;
#[path = "campaigns/refused.rs"]
mod refused;
#[path = "campaigns/settings.rs"]
mod settings;
#[path = "campaigns/shipped.rs"]
mod shipped;
#[path = "campaigns/states.rs"]
mod states;
#[path = "campaigns/status.rs"]
mod status;
#[path = "campaigns/terminal.rs"]
mod terminal;
