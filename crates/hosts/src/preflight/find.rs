//! Which of a host's interfaces the lab file means.

use crate::systems::{Facts, Interface, Question};
use linerate_plan::lab::{Host, Interface as LabInterface, Lab};
use linerate_plan::settings::End;
use std::net::IpAddr;

/// An interface of a lab file that frames pass.
#[derive(Debug, Clone)]
pub struct Port<'a> {
    /// Its key in the file: `send`, `receive`, `in`, `out`.
    pub key: &'static str,
    /// Its entry in the lab file.
    pub wanted: &'a LabInterface,
    /// The addresses at the other end of its cable.
    peers: Vec<IpAddr>,
}

/// A host's interfaces that frames pass.
pub fn ports<'a>(lab: &'a Lab, host: &'a Host) -> Vec<Port<'a>> {
    let send = host.send.iter().map(|i| ("send", i));
    let others = [("receive", &host.receive), ("in", &host.inside), ("out", &host.outside)];
    let all = send.chain(others.into_iter().filter_map(|(key, i)| Some((key, i.as_ref()?))));
    all.map(|(key, wanted)| Port { key, wanted, peers: peers(lab, host, key) }).collect()
}

/// One end of a cable: its host, the interface's key in the file, and its entry there.
pub(super) type LabEnd<'a> = (&'a Host, &'static str, &'a LabInterface);

/// The lab's cables, as its file has them: from each sending interface to the DUT, from the DUT by way of the reference to the receiver;
/// without a DUT from generator to receiver.
pub(super) fn cabling(lab: &Lab) -> Vec<[LabEnd<'_>; 2]> {
    fn end(host: Option<&Host>, end: End) -> Option<LabEnd<'_>> {
        let key = if end == End::In { "in" } else { "out" };
        host.and_then(|host| Some((host, key, host.end(end)?)))
    }
    let receiver = lab.receiver();
    let receiving = receiver.receive.iter().map(|i| (receiver, "receive", i)).next();
    let (dut, reference) = (lab.dut(), lab.reference());
    let first = if dut.is_some() { end(dut, End::In) } else { receiving };
    let sending = lab.generators().flat_map(|host| host.send.iter().map(move |i| (host, "send", i)));
    let mut all: Vec<_> = sending.map(|send| (Some(send), first)).collect();
    if dut.is_some() {
        let next = if reference.is_some() { end(reference, End::In) } else { receiving };
        all.push((end(dut, End::Out), next));
    }
    if dut.is_some() && reference.is_some() {
        all.push((end(reference, End::Out), receiving));
    }
    all.into_iter().filter_map(|(a, b)| Some([a?, b?])).collect()
}

/// The addresses at the other end of a host's cables at this key.
fn peers(lab: &Lab, host: &Host, key: &str) -> Vec<IpAddr> {
    let is = |end: &LabEnd<'_>| end.0.name == host.name && end.1 == key;
    let far = cabling(lab).into_iter().filter_map(|[a, b]| match (is(&a), is(&b)) {
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
            return facts.interface(name).ok_or_else(|| format!("there is no interface {name}"));
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
        let ways = self.peers.iter().filter_map(|peer| facts.ways.get(peer)?.as_ref());
        ways.filter(|way| way.gateway.is_none()).find_map(|way| facts.interface(&way.interface))
    }
}

/// By the Ethernet address, or one of the IP addresses, of the file.
pub(super) fn by_address<'f>(wanted: &LabInterface, facts: &'f Facts) -> Option<&'f Interface> {
    let has =
        |i: &&Interface| wanted.addresses.iter().any(|a| i.addresses.iter().any(|b| a.address == b.address));
    let by_mac = facts.interfaces.iter().find(|i| wanted.mac.is_some() && i.mac == wanted.mac);
    by_mac.or_else(|| facts.interfaces.iter().find(has))
}

fn listed(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
