//! Things that frames meet on their way through a host: the answers that tell it. [`Configuration::on_path`] makes the list of them.

mod bsd;
mod filters;
mod linux;
mod met;
pub(super) mod scripts;

pub use met::Item;

use super::{Configuration, Link, Qdisc, RuleSet};
use crate::systems::text::shown;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Entries of each kind that are kept.
const MOST: usize = 4096;

/// The answers that tell what is on the way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// The ways of the addresses that were asked for.
    ways: Vec<Way>,
    /// Policy rules that the system does not have from the start, in words.
    pub rules: Vec<String>,
    /// IPsec policies by direction, and `states`.
    ipsec: BTreeMap<String, u64>,
    devices: Vec<Device>,
    /// By device.
    qdiscs: Vec<(String, Qdisc)>,
    /// Classes of queueing disciplines, by device.
    classes: BTreeMap<String, u64>,
    filters: Vec<Filter>,
    /// The protocol of each packet socket, and the index of its device; 0: every device.
    sockets: Vec<(u16, u32)>,
    /// Queues to programs that a program reads.
    queues: Vec<u32>,
    /// Hooks of netfilter that are no chains of nftables, with their functions.
    hooks: BTreeSet<(String, String)>,
    /// All base chains of packet filters, with or without rules.
    pub packet_filters: Vec<RuleSet>,
    sets: Vec<Set>,
    /// Parts of rules that have a cost of their own: `ct helper`, `queue`.
    parts: BTreeSet<&'static str>,
    /// Programs that no other answer shows.
    programs: Vec<Attached>,
    /// Tracing that is in force, in words.
    tracing: Vec<Traced>,
    /// Names of BSD's netgraph nodes that are no sockets of the question itself.
    nodes: Vec<(String, String)>,
    /// Packet sockets of BSD, each with its interface and its program.
    taps: Vec<(String, String)>,
    /// Interfaces with queues of pf, and all these queues.
    queues_of_pf: (Vec<String>, u64),
}

/// The way of an address.
#[derive(Debug, Clone, Default, PartialEq)]
struct Way {
    address: String,
    devices: Vec<String>,
    /// In words.
    says: String,
    /// Parts of it that plain routing does not have, each with the word that tells its functions.
    special: Vec<(&'static str, String)>,
}

/// A device of the host.
#[derive(Debug, Clone, Default, PartialEq)]
struct Device {
    name: String,
    index: u32,
    /// The kind of a virtual device; empty for a card.
    kind: String,
    /// The number among devices of the kind: the tag of a VLAN.
    id: Option<u64>,
    below: Option<String>,
    master: Option<String>,
    /// Attached XDP programs, each with its mode.
    xdp: Vec<(&'static str, Program)>,
}

/// A filter of traffic control.
#[derive(Debug, Clone, Default, PartialEq)]
struct Filter {
    device: String,
    /// `ingress`, `egress`, `root`.
    direction: String,
    kind: String,
    program: Option<Program>,
    /// Kinds of its actions, and the devices that frames are sent to.
    actions: Vec<(String, Option<String>)>,
}

/// An eBPF program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The kernel's number for it.
    pub id: u64,
    /// The name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// The hash of its instructions.
    pub tag: String,
}

/// A program with the place where it is attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Attached {
    /// The device, if it has one.
    device: Option<String>,
    /// `tcx/ingress`, `netfilter forward`.
    place: String,
    program: Program,
}

/// A set of a packet filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Set {
    name: String,
    /// `ipv4_addr . inet_service`.
    of: String,
    /// `interval`, `dynamic`.
    flags: String,
}

/// Tracing: its kind (`event`, `tracer`, `probe`), and its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Traced {
    kind: &'static str,
    name: String,
}

impl Program {
    /// `look (id 100, tag f03f3c893109830e)`
    fn words(&self) -> String {
        format!("{} (id {}, tag {})", self.name, self.id, self.tag)
    }
}

/// Adds an entry, if there is room.
fn enter<T>(all: &mut Vec<T>, one: T) {
    if all.len() < MOST {
        all.push(one);
    }
}

impl Configuration {
    /// Things that frames of these addresses meet beyond plain routing, and the ways of the addresses in words. Without addresses, frames of
    /// both IP versions, and the ways that were asked for.
    pub fn on_path(&self, addresses: &[IpAddr]) -> (Vec<Item>, Vec<String>) {
        let wanted: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let is_wanted = |way: &&Way| wanted.is_empty() || wanted.contains(&way.address);
        let ways: Vec<&Way> = self.path.ways.iter().filter(is_wanted).collect();
        let mut items = match self.system.kernel.as_str() {
            "linux" => met::of_linux(self, &ways, addresses),
            _ => bsd::met(self, &ways),
        };
        items.truncate(MOST);
        (items, ways.iter().map(|way| way.says.clone()).collect())
    }

    /// Questions about the way that have no answer, or a part of it, each with the reason.
    pub fn not_known_of_path(&self) -> Vec<String> {
        let asked = |question: &str| {
            let name = question.split(' ').next().unwrap_or_default();
            scripts::QUESTIONS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, what)| *what)
        };
        let lacking = self.unanswered.iter().filter_map(|lacking| {
            let what = asked(&lacking.question)?;
            Some(format!("{what} ({})", lacking.why))
        });
        let mut all: Vec<String> = lacking.collect();
        all.dedup();
        all
    }

    /// The devices above and below each other that frames pass, from these on.
    fn closure(&self, from: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let mut on_way: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<String> = from.into_iter().collect();
        while let Some(name) = open.pop() {
            if on_way.len() >= MOST || !on_way.insert(name.clone()) {
                continue;
            }
            let device = self.path.devices.iter().find(|device| device.name == name);
            let Some(device) = device else { continue };
            open.extend(device.master.clone());
            // The other end of a veth pair is another device.
            if !["veth", "netkit"].contains(&device.kind.as_str()) {
                open.extend(device.below.clone());
            }
            let sent = self
                .path
                .filters
                .iter()
                .filter(|filter| filter.device == name);
            open.extend(
                sent.flat_map(|filter| filter.actions.iter().filter_map(|(_, to)| to.clone())),
            );
        }
        on_way
    }

    /// An interface of a BSD system.
    fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// A short text of a stranger's words, as one word where it has none.
fn word(text: &str) -> String {
    let text = shown(text.trim());
    if text.is_empty() { "?".into() } else { text }
}

#[cfg(test)]
mod tests;
