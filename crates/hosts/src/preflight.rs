//! A lab's hosts against its file: everything that would spoil a campaign, reported at once and before it.
//!
//! [`frames`] tests whether frames arrive, which only frames can show.

mod cables;
pub mod frames;
mod host;
#[cfg(test)]
mod tests;
mod way;

use crate::systems::{Facts, Interface, Kernel, Question, Unreachable};
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
            out.fault(
                host,
                "nothing is known of it",
                "it was not asked",
                "ask it again",
            );
            continue;
        };
        if let Some(Unreachable { why, remedy }) = &facts.unreachable {
            let remedy = format!("{remedy}; try: {}", host.reach.by_hand());
            out.fault(host, "it cannot be reached", why, remedy);
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
    let station = |host: &'a Host| {
        let facts = facts.get(&host.name)?;
        let answered = facts.unreachable.is_none();
        answered.then_some(Station { host, facts })
    };
    lab.hosts.iter().filter_map(station).collect()
}

/// Checks of the whole lab, or of values that plans expect of the file.
fn whole(lab: &Lab, out: &mut Findings) {
    if let Some(dut) = lab.dut().filter(|_| lab.placeholders().is_none()) {
        out.warning(
            dut,
            "plans cannot name its interfaces",
            "the lab file leaves [in] or [out] without a name: {in} and {out} stand for these",
            "write name = \"...\" for both",
        );
    }
    if !lab.isolated {
        let remedy =
            "set `isolated = true` when only hosts of the lab can receive what is sent (RFC 6815)";
        let what = Diagnostic::new("nothing will be sent in this lab");
        out.add(what, "its file does not say isolated = true", remedy);
    }
}

/// Addresses whose way a host is asked for, with [`Question::Way`]: the DUT for one of each network behind it, in each version of
/// IP, and all hosts for the other ends of cables at interfaces that nothing else identifies. It takes the answers of
/// [`Question::second`].
pub fn ways_to_ask(lab: &Lab, host: &Host, facts: &Facts) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    if host.roles.contains(&Role::Dut) {
        let networks = [End::In, End::Out]
            .into_iter()
            .flat_map(|end| lab.networks(end));
        questions.extend(
            networks
                .filter_map(|n| way::behind(n, host, facts))
                .map(Question::Way),
        );
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
    let Some(kernel) = facts.kernel() else {
        return Vec::new();
    };
    let ports = ports(lab, host);
    let found = ports.iter().filter_map(|port| port.found(facts).ok());
    found
        .flat_map(|interface| Question::interface(kernel, &interface.name))
        .collect()
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
        let station = stations
            .iter()
            .find(|station| station.host.name == host.name)?;
        let port = ports(lab, host)
            .into_iter()
            .find(|port| port.key == key && *port.wanted == *wanted)?;
        Some(Plug {
            key,
            station,
            wanted,
            found: port.found(station.facts).ok()?,
        })
    };
    let found = |[a, b]: [LabEnd<'a>; 2]| Some([plug(a)?, plug(b)?]);
    cabling(lab).into_iter().filter_map(found).collect()
}

/// Problems as they are found.
#[derive(Default)]
struct Findings(Vec<Diagnostic>);

impl Findings {
    /// A fault of a host, with its evidence and its remedy.
    fn fault(
        &mut self,
        host: &Host,
        what: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Diagnostic::new(what).of(&host.name), evidence, remedy);
    }

    fn warning(
        &mut self,
        host: &Host,
        what: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let what = Diagnostic::new(what).of(&host.name).doubtful();
        self.add(what, evidence, remedy);
    }

    /// A host with two roles may have the same problem twice.
    fn add(&mut self, what: Diagnostic, evidence: impl Into<String>, remedy: impl Into<String>) {
        let problem = what.evidence(evidence).remedy(remedy);
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }
}

/// Bit/s for a person: `10 Gbit/s`.
pub fn speed(bits: f64) -> String {
    if bits >= 1e9 {
        format!("{} Gbit/s", bits / 1e9)
    } else {
        format!("{} Mbit/s", bits / 1e6)
    }
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

/// An interface of a lab file that frames pass.
#[derive(Debug, Clone)]
pub struct Port<'a> {
    /// Key in the file: `send`, `receive`, `in`, `out`.
    pub key: &'static str,
    /// Entry in the lab file.
    pub wanted: &'a LabInterface,
    /// The addresses at the other end of its cable.
    peers: Vec<IpAddr>,
}

/// A host's interfaces that frames pass.
pub fn ports<'a>(lab: &'a Lab, host: &'a Host) -> Vec<Port<'a>> {
    let send = host.send.iter().map(|i| ("send", i));
    let others = [
        ("receive", &host.receive),
        ("in", &host.inside),
        ("out", &host.outside),
    ];
    let all = send.chain(
        others
            .into_iter()
            .filter_map(|(key, i)| Some((key, i.as_ref()?))),
    );
    all.map(|(key, wanted)| Port {
        key,
        wanted,
        peers: peers(lab, host, key),
    })
    .collect()
}

/// One end of a cable: its host, the interface's key in the file, and its entry there.
pub(super) type LabEnd<'a> = (&'a Host, &'static str, &'a LabInterface);

/// The lab's cables, as its file has them: from each sending interface to the DUT, from the DUT by way of the reference to the receiver;
/// without a DUT from generator to receiver. A DUT may be a black box, which has no facts.
pub(super) fn cabling(lab: &Lab) -> Vec<[LabEnd<'_>; 2]> {
    fn end(host: Option<&Host>, end: End) -> Option<LabEnd<'_>> {
        let key = if end == End::In { "in" } else { "out" };
        host.and_then(|host| Some((host, key, host.end(end)?)))
    }
    let receiver = lab.receiver();
    let receiving = receiver
        .receive
        .iter()
        .map(|i| (receiver, "receive", i))
        .next();
    let (dut, reference) = (lab.device(), lab.reference());
    let first = if dut.is_some() {
        end(dut, End::In)
    } else {
        receiving
    };
    let sending = lab
        .generators()
        .flat_map(|host| host.send.iter().map(move |i| (host, "send", i)));
    let mut all: Vec<_> = sending.map(|send| (Some(send), first)).collect();
    if dut.is_some() {
        let next = if reference.is_some() {
            end(reference, End::In)
        } else {
            receiving
        };
        all.push((end(dut, End::Out), next));
    }
    if dut.is_some() && reference.is_some() {
        all.push((end(reference, End::Out), receiving));
    }
    all.into_iter()
        .filter_map(|(a, b)| Some([a?, b?]))
        .collect()
}

/// The addresses at the other end of a host's cables at this key.
fn peers(lab: &Lab, host: &Host, key: &str) -> Vec<IpAddr> {
    let is = |end: &LabEnd<'_>| end.0.name == host.name && end.1 == key;
    let far = cabling(lab)
        .into_iter()
        .filter_map(|[a, b]| match (is(&a), is(&b)) {
            (true, _) => Some(b.2),
            (_, true) => Some(a.2),
            _ => None,
        });
    far.flat_map(|i| &i.addresses).map(|a| a.address).collect()
}

impl Port<'_> {
    /// The interface of the host: by its name, its Ethernet address, one of its addresses, or else by the way to the other end.
    ///
    /// # Errors
    /// The name or addresses that no interface has.
    pub fn found<'f>(&self, facts: &'f Facts) -> Result<&'f Interface, String> {
        let wanted = self.wanted;
        if let Some(name) = &wanted.name {
            return facts
                .interface(name)
                .ok_or_else(|| format!("there is no interface {name}"));
        }
        if let Some(found) = by_address(wanted, facts).or_else(|| self.by_way(facts)) {
            return Ok(found);
        }
        let mut said: Vec<String> = wanted.mac.iter().map(ToString::to_string).collect();
        said.extend(wanted.addresses.iter().map(ToString::to_string));
        Err(match (said.is_empty(), self.peers.is_empty()) {
            (false, _) => format!("no interface has {}", said.join(", ")),
            (true, false) => format!("no interface leads to {}", listed(&self.peers)),
            (true, true) => "the lab file does not say which it is".into(),
        })
    }

    /// Questions for a host that identify the interface, if nothing else does.
    pub(super) fn ways(&self, facts: &Facts) -> Vec<Question> {
        let told = self.wanted.name.is_some() || by_address(self.wanted, facts).is_some();
        let peers = if told { &[][..] } else { &self.peers };
        peers.iter().copied().map(Question::Way).collect()
    }

    /// A neighbour is behind an interface, not behind a gateway.
    fn by_way<'f>(&self, facts: &'f Facts) -> Option<&'f Interface> {
        let ways = self
            .peers
            .iter()
            .filter_map(|peer| facts.ways.get(peer)?.as_ref());
        ways.filter(|way| way.gateway.is_none())
            .find_map(|way| facts.interface(&way.interface))
    }
}

/// By the Ethernet address, or one of the IP addresses, of the file.
pub(super) fn by_address<'f>(wanted: &LabInterface, facts: &'f Facts) -> Option<&'f Interface> {
    let has = |i: &&Interface| {
        wanted
            .addresses
            .iter()
            .any(|a| i.addresses.iter().any(|b| a.address == b.address))
    };
    let by_mac = facts
        .interfaces
        .iter()
        .find(|i| wanted.mac.is_some() && i.mac == wanted.mac);
    by_mac.or_else(|| facts.interfaces.iter().find(has))
}

fn listed(addresses: &[IpAddr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
