//! `linerate run`, end to end: campaigns of plans, stopped by everything that stops a program, and resumed.

mod connections;
mod directions;
mod end_hosts;
mod experiment;
mod faults;
mod flood;
mod host;
mod http;
mod interrupted;
mod kept;
mod killed;
mod losses;
mod modifiers;
mod numbers;
mod order;
mod outside;
mod own_rules;
mod profiled;
mod proven;
mod refused;
mod served;
mod settings;
mod shipped;
mod states;
mod status;
mod terminal;
