//! Setups on the real kernel: every kind of DUT carries known frames from end to end, everything that a setup sets is there
//! afterwards, and what cannot be is refused. All in namespaces of the tests' own.

#[path = "setups/bench.rs"]
mod bench;
#[path = "setups/host.rs"]
mod host;
#[path = "setups/kinds.rs"]
mod kinds;
#[path = "setups/rules.rs"]
mod rules;
#[path = "setups/settings.rs"]
mod settings;
