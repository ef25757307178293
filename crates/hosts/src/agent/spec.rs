//! The ports that a host is asked for and the load that they are armed with, checked before anything is made of them.

use super::message::{Fault, printable};
use linerate_plan::Backend;
use linerate_wire::{Filter, Load, Traffic};
use serde::{Deserialize, Serialize};

/// The role of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It sends.
    Generator(Box<Traffic>),
    /// It counts.
    Receiver(Filter),
}

/// A port that is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Its name from now on; it replaces a port of the same name.
    pub name: String,
    /// Its interface.
    pub interface: String,
    /// Whether the user has said that this interface leads to nothing but the lab (RFC 6815).
    pub isolated: bool,
    /// How frames leave or arrive: one of linerate's own backends.
    pub backend: Backend,
    /// The CPUs that it works on, one thread on each; the agent's choice where none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Generator or receiver.
    pub role: Role,
}

/// The load that a host's ports are armed with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The load of each generator; receivers report for its duration.
    pub load: Load,
    /// Between two samples of the counters, in nanoseconds.
    pub sample_ns: u64,
    /// Whether receivers answer each frame, and generators count the answers that arrive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer: bool,
}

/// More samples than a thousand a second say nothing, and cost.
const SHORTEST_SAMPLE_NS: u64 = 1_000_000;
/// Frames between two looks at the clock: a load must end at its time.
const MOST_UNSTAMPED: u32 = 65_536;
/// Threads of a port.
const MOST_CPUS: usize = 256;
/// Letters of a port's name.
const LONGEST_NAME: usize = 40;
/// The kernel's limit on an interface's name, less its end (IFNAMSIZ).
const LONGEST_INTERFACE: usize = 15;

fn wrong(what: impl Into<String>, why: impl Into<String>) -> Fault {
    Fault::new(what, why.into(), "the controller asked for what cannot be: report it with this message")
}

impl Port {
    /// Refuses impossible ports before they are made.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let what = || format!("preparing port {}", shown(&self.name));
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || self.name.chars().any(char::is_control) {
            return Err(wrong(what(), format!("its name must have 1 to {LONGEST_NAME} letters")));
        }
        check_interface(&self.interface).map_err(|why| wrong(what(), why))?;
        if self.cpus.len() > MOST_CPUS || self.cpus.iter().any(|cpu| *cpu >= 8192) {
            return Err(wrong(
                what(),
                format!("it can have at most {MOST_CPUS} CPUs, of numbers below 8192"),
            ));
        }
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.len() != self.cpus.len() {
            return Err(wrong(what(), "a CPU is named twice"));
        }
        if !self.backend.is_own() {
            return Err(wrong(what(), format!("an agent has no backend {}", self.backend)));
        }
        match &self.role {
            Role::Generator(traffic) if traffic.stamp_every > MOST_UNSTAMPED => {
                Err(wrong(what(), format!("one frame in 1 to {MOST_UNSTAMPED} can be stamped")))
            }
            Role::Generator(traffic) => traffic.check().map_err(|e| wrong(what(), e.to_string())),
            Role::Receiver(filter) => filter.check().map_err(|e| wrong(what(), e.to_string())),
        }
    }
}

/// Names are put into paths of /sys.
fn check_interface(name: &str) -> Result<(), String> {
    let plain = name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    match !name.is_empty() && name.len() <= LONGEST_INTERFACE && plain && !matches!(name, "." | "..") {
        true => Ok(()),
        false => Err(format!("'{}' is not a valid interface name", shown(name))),
    }
}

/// The beginning of a text that came from elsewhere, fit to be printed.
pub(super) fn shown(text: &str) -> String {
    printable(text, 60)
}

impl Order {
    /// Refuses impossible loads.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let what = "arming the load";
        self.load.check().map_err(|e| wrong(what, e.to_string()))?;
        match self.sample_ns >= SHORTEST_SAMPLE_NS {
            true => Ok(()),
            false => Err(wrong(what, "samples are a millisecond apart at least")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{generator, order, receiver};
    use super::*;

    #[test]
    fn what_can_be_passes() {
        generator().check().unwrap();
        receiver().check().unwrap();
        order().check().unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let port = |change: fn(&mut Port)| {
            let mut port = generator();
            change(&mut port);
            port.check().unwrap_err()
        };
        port(|p| p.name.clear());
        port(|p| p.interface = "../x".into());
        port(|p| p.interface = "..".into());
        port(|p| p.cpus = vec![1, 1]);
        port(|p| p.cpus = vec![9000]);
        port(|p| p.role = Role::Receiver(Filter { streams: 0, ..Filter::of_campaign(0) }));
        port(|p| p.backend = Backend::PktGen);
        let traffic = |change: fn(&mut Traffic)| {
            let mut port = generator();
            let Role::Generator(traffic) = &mut port.role else { unreachable!() };
            change(traffic);
            port.check().unwrap_err()
        };
        traffic(|t| t.mix.pattern = vec![63]);
        traffic(|t| t.stamp_every = u32::MAX);
        traffic(|t| t.frame.family = linerate_wire::Family::V6);
        Order { sample_ns: 0, ..order() }.check().unwrap_err();
        Order { load: Load { batch: 0, ..order().load }, ..order() }.check().unwrap_err();
    }
}
