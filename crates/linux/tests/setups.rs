//! Setups on the real kernel: every kind of DUT carries known frames from end to end, all its settings are in place, and
//! impossible setups are refused. All in namespaces of the tests' own.

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
#[path = "setups/shapes.rs"]
mod shapes;
#[path = "setups/telemetry.rs"]
mod telemetry;
#[path = "setups/tunnels.rs"]
mod tunnels;
