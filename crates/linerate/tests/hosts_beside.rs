//! `linerate run` on labs of hosts, with so few frames that these tests may run side by side: lost hosts, killed campaigns, changes and their
//! undoing, rights.

#[path = "hosts/black_box.rs"]
mod black_box;
#[path = "hosts/both.rs"]
mod both;
#[path = "hosts/campaigns.rs"]
mod campaigns;
#[path = "hosts/connecting.rs"]
mod connecting;
#[path = "hosts/lab.rs"]
pub mod lab;
#[path = "hosts/lost.rs"]
mod lost;
#[path = "hosts/namespaces.rs"]
mod namespaces;
#[path = "hosts/rules.rs"]
mod rules;
#[path = "hosts/settings.rs"]
mod settings;
#[path = "hosts/site.rs"]
pub mod site;
#[path = "hosts/sudo.rs"]
mod sudo;
#[path = "hosts/tables.rs"]
mod tables;
