//! A lab's hosts held against its file: everything that would spoil a campaign, told at once and before it.
//!
//! What only frames can show, that one sent arrives, is not here: nothing here sends.

mod cables;
mod host;
mod way;

use super::{Facts, Interface, Kernel, Question};
use crate::lab::{Host, Interface as LabInterface, Lab, Role};
use crate::plan::settings::End;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing would be measured, or something else.
    Fault,
    /// Figures would be doubtful.
    Warning,
}

/// Something wrong with a host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The host, by its name in the lab file.
    pub host: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What shows it.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

/// What is asked of the hosts beside the lab file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Bytes that must be free where results are kept until they are fetched.
    pub free_bytes: u64,
    /// Seconds by which a host's clock may be off.
    pub clock_s: f64,
}

impl Default for Needs {
    fn default() -> Self {
        Needs { free_bytes: 64 << 20, clock_s: 2.0 }
    }
}

/// Holds the hosts' facts, by their names, against the lab. All problems come at once, in the order of the lab file; of a host
/// without facts it says that it was not asked.
pub fn check(lab: &Lab, facts: &BTreeMap<String, Facts>, needs: &Needs) -> Vec<Problem> {
    let mut problems = Problems::default();
    for host in &lab.hosts {
        let Some(facts) = facts.get(&host.name) else {
            problems.fault(host, "nothing is known of it", "it was not asked", "ask it again");
            continue;
        };
        if let Some(why) = &facts.unreachable {
            let remedy = format!("try: ssh {}", host.ssh);
            problems.fault(host, "it cannot be reached", why, &remedy);
            continue;
        }
        host::check(host, facts, needs, &mut problems);
    }
    let known = |host: &Host| facts.get(&host.name).filter(|f| f.unreachable.is_none());
    let stations: Vec<Station<'_>> =
        lab.hosts.iter().filter_map(|host| Some(Station { host, facts: known(host)? })).collect();
    for station in &stations {
        cables::interfaces(lab, station, &mut problems);
    }
    for cable in cables(lab, &stations) {
        cables::check(&cable, &mut problems);
    }
    way::check(lab, &stations, &mut problems);
    problems.found
}

/// Addresses whose way the DUT is asked for, with [`Question::Way`]: one of each network behind it, in each version of IP.
pub fn ways_to_ask(lab: &Lab) -> Vec<Question> {
    let ends = [End::In, End::Out];
    let networks = ends.iter().flat_map(|end| lab.networks(*end));
    networks.filter_map(way::first_address).map(Question::Way).collect()
}

/// What is asked for each of a host's interfaces in the lab.
pub fn interface_questions(host: &Host, facts: &Facts) -> Vec<Question> {
    let Some(kernel) = facts.kernel() else { return Vec::new() };
    let found = of_the_lab(host).into_iter().filter_map(|(_, wanted)| found(wanted, facts).ok());
    found.flat_map(|interface| Question::interface(kernel, &interface.name)).collect()
}

/// A host that has answered.
struct Station<'a> {
    host: &'a Host,
    facts: &'a Facts,
}

impl Station<'_> {
    fn kernel(&self) -> Option<Kernel> {
        self.facts.kernel()
    }
}

/// One end of a cable.
struct Plug<'a> {
    station: &'a Station<'a>,
    wanted: &'a LabInterface,
    found: &'a Interface,
}

/// A cable whose both ends were found.
struct Cable<'a> {
    ends: [Plug<'a>; 2],
}

/// A host's interfaces that frames pass, with their keys in the lab file.
fn of_the_lab(host: &Host) -> Vec<(&'static str, &LabInterface)> {
    let send = host.send.iter().map(|i| ("send", i));
    let others = [("receive", &host.receive), ("in", &host.inside), ("out", &host.outside)];
    send.chain(others.into_iter().filter_map(|(key, i)| Some((key, i.as_ref()?)))).collect()
}

/// The interface that the file means: by its name, its Ethernet address, or one of its addresses.
fn found<'a>(wanted: &LabInterface, facts: &'a Facts) -> Result<&'a Interface, String> {
    if let Some(name) = &wanted.name {
        return facts.interface(name).ok_or_else(|| format!("there is no interface {name}"));
    }
    let by_mac = facts.interfaces.iter().find(|i| wanted.mac.is_some() && i.mac == wanted.mac);
    let has =
        |i: &&Interface| wanted.addresses.iter().any(|a| i.addresses.iter().any(|b| a.address == b.address));
    by_mac.or_else(|| facts.interfaces.iter().find(has)).ok_or_else(|| {
        let mut said: Vec<String> = wanted.mac.iter().map(ToString::to_string).collect();
        said.extend(wanted.addresses.iter().map(ToString::to_string));
        format!(
            "no interface has {}",
            if said.is_empty() { "what the lab file says".into() } else { said.join(", ") }
        )
    })
}

/// The lab's cables: from each sending interface to the DUT, from the DUT by way of the reference to the receiver; without a
/// DUT from generator to receiver.
fn cables<'a>(lab: &'a Lab, stations: &'a [Station<'a>]) -> Vec<Cable<'a>> {
    let having = |role: Role| stations.iter().filter(move |s| s.host.roles.contains(&role));
    let plug = |station: &'a Station<'a>, wanted: &'a LabInterface| {
        Some(Plug { station, wanted, found: found(wanted, station.facts).ok()? })
    };
    let sending: Vec<Plug<'a>> =
        having(Role::Generator).flat_map(|s| s.host.send.iter().filter_map(move |i| plug(s, i))).collect();
    let end = |role: Role, pick: fn(&Host) -> Option<&LabInterface>| {
        having(role).find_map(|s| plug(s, pick(s.host)?))
    };
    let receiving = || end(Role::Receiver, |h| h.receive.as_ref());
    let mut pairs: Vec<(Option<Plug<'a>>, Option<Plug<'a>>)> = Vec::new();
    if lab.dut().is_none() {
        pairs.extend(sending.into_iter().map(|s| (Some(s), receiving())));
    } else {
        pairs.extend(sending.into_iter().map(|s| (Some(s), end(Role::Dut, |h| h.inside.as_ref()))));
        let dut_out = end(Role::Dut, |h| h.outside.as_ref());
        if lab.reference().is_some() {
            pairs.push((dut_out, end(Role::Reference, |h| h.inside.as_ref())));
            pairs.push((end(Role::Reference, |h| h.outside.as_ref()), receiving()));
        } else {
            pairs.push((dut_out, receiving()));
        }
    }
    pairs.into_iter().filter_map(|(a, b)| Some(Cable { ends: [a?, b?] })).collect()
}

#[derive(Default)]
struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    fn fault(&mut self, host: &Host, what: &str, evidence: &str, remedy: &str) {
        self.add(Severity::Fault, host, what, evidence, remedy);
    }

    fn warning(&mut self, host: &Host, what: &str, evidence: &str, remedy: &str) {
        self.add(Severity::Warning, host, what, evidence, remedy);
    }

    /// A host with two roles may have the same problem twice.
    fn add(&mut self, severity: Severity, host: &Host, what: &str, evidence: &str, remedy: &str) {
        let problem = Problem {
            host: host.name.clone(),
            severity,
            what: what.into(),
            evidence: evidence.into(),
            remedy: remedy.into(),
        };
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }
}

/// Bit/s for a person: `10 Gbit/s`.
fn speed(bits: f64) -> String {
    if bits >= 1e9 { format!("{} Gbit/s", bits / 1e9) } else { format!("{} Mbit/s", bits / 1e6) }
}

/// Whether an address is of the version of another.
fn alike(a: IpAddr, b: IpAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}

#[cfg(test)]
mod tests;
