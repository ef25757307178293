//! A lab's hosts against its file: everything that would spoil a campaign, reported at once and before it.
//!
//! [`frames`] tests whether frames arrive, which only frames can show.

mod cables;
mod find;
pub mod frames;
mod host;
mod way;

use crate::systems::{Facts, Interface, Kernel, Question, Unreachable};
use find::{LabEnd, cabling};
pub use find::{Port, ports};
pub use host::tool;
use linerate_plan::lab::{Host, Interface as LabInterface, Lab, Role};
use linerate_plan::settings::End;
use linerate_plan::{Backend, Diagnostic};
use std::collections::BTreeMap;
use std::net::IpAddr;
pub use way::ways;

/// Compares the hosts' facts, by their names, with the lab. All problems come at once, in the order of the lab file. A host
/// without facts is reported as not asked.
pub fn check(lab: &Lab, facts: &BTreeMap<String, Facts>) -> Vec<Diagnostic> {
    let mut out = Findings::default();
    whole(lab, &mut out);
    for host in &lab.hosts {
        let Some(facts) = facts.get(&host.name) else {
            out.fault(host, "nothing is known of it").evidence("it was not asked").remedy("ask it again");
            continue;
        };
        if let Some(Unreachable { why, remedy }) = &facts.unreachable {
            let remedy = format!("{remedy}; try: {}", host.reach.by_hand());
            out.fault(host, "it cannot be reached").evidence(why).remedy(remedy);
            continue;
        }
        host::check(lab, host, facts, &mut out);
    }
    let stations = stations(lab, facts);
    for station in &stations {
        cables::interfaces(lab, station, &mut out);
    }
    for cable in cables(lab, &stations) {
        cables::check(&cable, &mut out);
    }
    way::through(lab, &stations, &mut out);
    way::across(lab, &stations, &mut out);
    out.0
}

/// The hosts that have answered.
fn stations<'a>(lab: &'a Lab, facts: &'a BTreeMap<String, Facts>) -> Vec<Station<'a>> {
    let known = |host: &Host| facts.get(&host.name).filter(|f| f.unreachable.is_none());
    lab.hosts.iter().filter_map(|host| Some(Station { host, facts: known(host)? })).collect()
}

/// Checks of the whole lab, or of values that plans expect of the file.
fn whole(lab: &Lab, out: &mut Findings) {
    if let Some(dut) = lab.dut().filter(|_| lab.placeholders().is_none()) {
        out.warning(dut, "plans cannot name its interfaces")
            .evidence("the lab file leaves [in] or [out] without a name: {in} and {out} stand for these")
            .remedy("write name = \"...\" for both");
    }
    if !lab.isolated {
        let remedy = "say so once nothing but the lab's own hosts can receive what is sent in it (RFC 6815)";
        let what = Diagnostic::new("nothing will be sent in this lab");
        out.add(what).evidence("its file does not say isolated = true").remedy(remedy);
    }
}

/// Addresses whose way a host is asked for, with [`Question::Way`]: the DUT for one of each network behind it, in each version of
/// IP, and all hosts for the other ends of cables at interfaces that nothing else identifies. It takes the answers of
/// [`Question::second`].
pub fn ways_to_ask(lab: &Lab, host: &Host, facts: &Facts) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    if host.roles.contains(&Role::Dut) {
        let networks = [End::In, End::Out].into_iter().flat_map(|end| lab.networks(end));
        questions.extend(networks.filter_map(|n| way::behind(n, host, facts)).map(Question::Way));
    }
    for question in ports(lab, host).iter().flat_map(|port| port.ways(facts)) {
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions
}

/// Questions for each of a host's interfaces in the lab, when its ways are known.
pub fn interface_questions(lab: &Lab, host: &Host, facts: &Facts) -> Vec<Question> {
    let Some(kernel) = facts.kernel() else { return Vec::new() };
    let ports = ports(lab, host);
    let found = ports.iter().filter_map(|port| port.found(facts).ok());
    found.flat_map(|interface| Question::interface(kernel, &interface.name)).collect()
}

/// A host that has answered.
struct Station<'a> {
    host: &'a Host,
    facts: &'a Facts,
}

impl Station<'_> {
    fn is_linux(&self) -> bool {
        self.facts.kernel() == Some(Kernel::Linux)
    }

    fn tool(&self) -> Option<Backend> {
        tool(self.host, self.facts)
    }
}

/// One end of a cable.
struct Plug<'a> {
    key: &'static str,
    station: &'a Station<'a>,
    wanted: &'a LabInterface,
    found: &'a Interface,
}

/// The lab's cables whose both ends were found.
fn cables<'a>(lab: &'a Lab, stations: &'a [Station<'a>]) -> Vec<[Plug<'a>; 2]> {
    let plug = |(host, key, wanted): LabEnd<'a>| {
        let station = stations.iter().find(|station| station.host.name == host.name)?;
        let port = ports(lab, host).into_iter().find(|port| port.key == key && *port.wanted == *wanted)?;
        Some(Plug { key, station, wanted, found: port.found(station.facts).ok()? })
    };
    let found = |[a, b]: [LabEnd<'a>; 2]| Some([plug(a)?, plug(b)?]);
    cabling(lab).into_iter().filter_map(found).collect()
}

/// Problems as they are found.
#[derive(Default)]
struct Findings(Vec<Diagnostic>);

impl Findings {
    /// A fault of a host; its evidence and its remedy follow.
    fn fault(&mut self, host: &Host, what: impl Into<String>) -> &mut Self {
        self.add(Diagnostic::new(what).of(&host.name))
    }

    fn warning(&mut self, host: &Host, what: impl Into<String>) -> &mut Self {
        self.add(Diagnostic::new(what).of(&host.name).doubtful())
    }

    fn add(&mut self, problem: Diagnostic) -> &mut Self {
        self.0.push(problem);
        self
    }

    fn evidence(&mut self, evidence: impl Into<String>) -> &mut Self {
        let problem = self.0.pop().map(|problem| problem.evidence(evidence));
        self.0.extend(problem);
        self
    }

    /// Completes it. A host with two roles may have the same problem twice.
    fn remedy(&mut self, remedy: impl Into<String>) {
        let Some(problem) = self.0.pop().map(|problem| problem.remedy(remedy)) else { return };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }
}

/// Bit/s for a person: `10 Gbit/s`.
pub fn speed(bits: f64) -> String {
    if bits >= 1e9 { format!("{} Gbit/s", bits / 1e9) } else { format!("{} Mbit/s", bits / 1e6) }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Whether an address is of the version of another.
fn alike(a: IpAddr, b: IpAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}

#[cfg(test)]
mod tests;
