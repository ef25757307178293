//! Variables, read by their types; each is noted as carried over or not.

use super::super::notes::Notes;
use super::super::shell::Values;
use super::super::traffic;
use linerate_hosts::pktgen::Command;
use linerate_plan::backend::{Backend, Runs};
use linerate_plan::lab::{Host, HostAddress, Ssh, is_interface};
use std::net::IpAddr;
use std::str::FromStr;

pub(super) struct Reader<'a> {
    pub(super) values: &'a Values,
    pub(super) notes: &'a mut Notes,
}

impl Reader<'_> {
    /// The first of some variables that is known and not empty, read as a type.
    pub(super) fn typed<T: FromStr>(&mut self, names: &[impl AsRef<str>], what: &str, to: &str) -> Option<T> {
        let name = names.iter().map(AsRef::as_ref).find(|name| self.values.known(name).is_some())?;
        let (text, value) = (self.values.known(name)?, self.values.get(name)?);
        self.notes.used(name);
        match text.parse() {
            Ok(read) => {
                self.notes.carry_value(name, value, to);
                Some(read)
            }
            Err(_) => {
                let shown: String = text.chars().take(60).collect();
                self.notes.left_value(value, format!("{name}: '{shown}' is not a valid {what}"));
                None
            }
        }
    }

    /// The destination of ssh for a host; an impossible one if it is unknown: a note says so, and the lab file shows the gap.
    pub(super) fn ssh(&mut self, name: &str, to: &str) -> Ssh {
        let nobody = || Ssh { user: None, host: "unknown".into(), port: None };
        self.typed(&[name], "destination of ssh", to).unwrap_or_else(nobody)
    }

    /// The addresses of an interface: one at most.
    pub(super) fn addresses(&mut self, name: &str, to: &str) -> Vec<HostAddress> {
        let address: Option<IpAddr> = self.typed(&[name], "IP address", to);
        address.map(|address| HostAddress { address, length: None }).into_iter().collect()
    }

    /// The name of an interface.
    pub(super) fn interface(&mut self, names: &[String], to: &str) -> Option<String> {
        self.typed(names, "interface name", to).map(|Name(name)| name)
    }

    /// The command in a variable.
    pub(super) fn command(&mut self, name: &str) -> Option<Command> {
        traffic::command(self.values, name)
    }

    /// An Ethernet address among a command's options.
    pub(super) fn option<T: FromStr>(&mut self, variable: &str, option: char) -> Option<T> {
        self.command(variable)?.option(option)?.parse().ok()
    }

    /// The program of a command: the host's tool, and sudo.
    pub(super) fn program(&mut self, variable: &str, command: &Command, host: &mut Host, to: &str) {
        let program = command.program().rsplit('/').next().unwrap_or_default();
        let tool = match program {
            // It runs pkt-gen itself.
            "equilibrium" => Some(Backend::PktGen),
            other => {
                other.parse().ok().filter(|tool: &Backend| !matches!(tool.capabilities().runs, Runs::Memory))
            }
        };
        let Some(value) = self.values.get(variable) else { return };
        match tool {
            Some(tool) => {
                host.tool = host.tool.or(Some(tool));
                host.sudo |= command.sudo;
                self.notes.carry_value(variable, value, to);
            }
            None => {
                let shown: String = program.chars().take(40).collect();
                self.notes.used(variable);
                self.notes.left_value(value, format!("{variable}: linerate cannot drive '{shown}'"));
            }
        }
        for option in traffic::other_options(command) {
            self.notes.left_value(value, format!("{variable}: pkt-gen's {option}"));
        }
    }

    /// `ping -c 2 A && ping -c 2 B`: the hosts that must answer. Anything else is reported.
    pub(super) fn pings(&mut self, name: &str) -> Vec<IpAddr> {
        let (Some(text), Some(value)) = (self.values.known(name), self.values.get(name)) else {
            return Vec::new();
        };
        self.notes.used(name);
        let mut reaches = Vec::new();
        for part in text.split("&&").map(str::trim) {
            match pinged(part) {
                Some(address) if !reaches.contains(&address) => reaches.push(address),
                Some(_) => {}
                None => {
                    let shown: String = part.chars().take(80).collect();
                    self.notes.left_value(value, format!("{name}: it also asks for '{shown}'"));
                }
            }
        }
        reaches.truncate(100);
        if !reaches.is_empty() {
            self.notes.carry_value(name, value, "hosts.dut.boot.reaches");
        }
        reaches
    }
}

struct Name(String);

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let name = plain(text);
        if is_interface(&name) { Ok(Name(name)) } else { Err(()) }
    }
}

/// An interface's name without `netmap:` and the signs behind it.
pub(super) fn plain(text: &str) -> String {
    let text = text.trim().strip_prefix("netmap:").unwrap_or(text.trim());
    text.trim_end_matches(['^', '+']).to_string()
}

/// Whether a command opens interfaces with netmap.
pub(super) fn is_netmap(command: &Command) -> bool {
    ["pkt-gen", "equilibrium"].iter().any(|name| command.program().ends_with(name))
}

/// The address of a single ping.
fn pinged(command: &str) -> Option<IpAddr> {
    let mut words = command.split_whitespace().peekable();
    words.next().filter(|w| matches!(*w, "ping" | "ping6" | "/sbin/ping" | "/sbin/ping6"))?;
    let mut address = None;
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("c" | "t" | "i" | "W" | "s" | "w") => {
                words.next()?;
            }
            Some("q" | "n" | "6" | "4") => {}
            Some(_) => return None,
            None if address.is_none() => address = Some(word.parse().ok()?),
            None => return None,
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pings_are_taken_for_pings() {
        let address = |text: &str| pinged(text).map(|a| a.to_string());
        assert_eq!(address("ping -c 2 198.19.0.203").as_deref(), Some("198.19.0.203"));
        assert_eq!(address("ping6 -c 2 2001:2::203").as_deref(), Some("2001:2::203"));
        for other in [
            "/data/reqroutes 816800",
            "ping -c 2 host",
            "ping 198.18.0.1; reboot",
            "ping -S 1.1.1.1 2.2.2.2",
            "",
        ] {
            assert_eq!(address(other), None, "{other}");
        }
        assert_eq!((plain("netmap:ix0^"), plain("vcxl0")), ("ix0".into(), "vcxl0".into()));
    }
}
