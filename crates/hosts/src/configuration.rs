//! How a device under test is configured: the settings that bear on forwarding.
//!
//! [`questions`] has the commands, none of which changes anything; [`Configuration::of`] reads their output. Records keep the
//! output, so that a later linerate can read more from it. An answer is known by its [`label`]. As in
//! [`systems`](crate::systems), any bytes may come: parsers keep the parts that they recognise, and no more than
//! [`MOST_BYTES`] of an answer is kept.

mod boot;
mod bsd;
mod conversions;
pub mod ethtool;
mod interrupts;
mod linux;
mod path;
mod questions;
mod rule_sets;
mod saved;
mod settings;

pub use linux::mask as mask_of;
pub use path::{Item, Program};
pub(crate) use questions::INTERFACES;
pub use questions::{label, listing, questions, questions_of_test};
pub use rule_sets::{Chain, RuleSet};
pub use saved::{is_wanted, of_saved};

use crate::systems::bsd::{interfaces as bsd_interfaces, is_stacked, kind};
use crate::systems::text::{lines, sections, shown};
use crate::systems::{Interface, Kernel, Pause, appliance};
use linerate_measure::record::{Collected, SlotFacts};
use linerate_plan::lab::HostAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`Configuration`] that this program writes.
pub const VERSION: u32 = 1;
/// Bytes of an answer that records keep.
pub const MOST_BYTES: usize = 256 * 1024;
/// The last line of an answer that is longer.
pub const CUT: &str = "[linerate: the rest is left out]";

/// The settings of a host. A field is empty where its question has no answer, and then `unanswered` has the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Configuration {
    /// Version of this format, [`VERSION`].
    pub version: u32,
    pub system: Release,
    pub machine: Machine,
    /// The interfaces that were asked for, in their order.
    pub cards: Vec<Card>,
    /// The other interfaces that are no plain cards: bridges, bonds, VLANs, VRFs, tunnels.
    pub links: Vec<Link>,
    /// Settings by the kernel's name.
    pub sysctls: BTreeMap<String, String>,
    /// The packet filters that have rules.
    pub rule_sets: Vec<RuleSet>,
    /// The tables of connections, by their owner: `pf`, `ipfw`, `ipf`; `conntrack` of Linux.
    pub connections: BTreeMap<String, ConnectionTable>,
    /// Routes by address family: `IPv4`, `IPv6`.
    pub routes: BTreeMap<String, u64>,
    /// Neighbours by state: `REACHABLE`, `FAILED`.
    pub neighbours: BTreeMap<String, u64>,
    /// Settings of the next boot, by file and name.
    pub boot: BTreeMap<String, BTreeMap<String, String>>,
    /// Loaded modules, where the system lists them cheaply.
    pub modules: Vec<String>,
    /// Interfaces of the ssh session over which the host was asked, if it was asked over one.
    pub session: Vec<String>,
    /// Questions without an answer, or with a part of it.
    pub unanswered: Vec<Unanswered>,
    /// The answers about the way of frames.
    #[serde(skip)]
    pub path: path::Path,
}

/// The system that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Release {
    /// `linux`, `freebsd`, `openbsd`, `netbsd`.
    pub kernel: String,
    /// The kernel's release, if it is known: `13.2-RELEASE`, `6.12.8-amd64`.
    pub release: Option<String>,
    /// The distribution's or appliance's name and version, if it has one.
    pub product: Option<String>,
}

/// A question without an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unanswered {
    /// The command, as [`label`] has it; in a group of commands, the one that failed.
    pub question: String,
    /// The reason for no answer, or for a part only.
    pub why: String,
}

/// The machine, its CPUs and its firmware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// The CPU's model.
    pub model: Option<String>,
    /// Every CPU online.
    pub cpus: Vec<Cpu>,
    /// CPUs by NUMA node.
    pub nodes: BTreeMap<u32, Vec<u32>>,
    /// CPUs that the scheduler leaves alone.
    pub isolated: Vec<u32>,
    /// The hypervisor, or `of unknown kind` where a virtual machine does not name it; `None` if there is none, or it is not known.
    pub virtual_machine: Option<String>,
    /// CPU vulnerability, or its mitigation, and the state in the system's words.
    pub mitigations: BTreeMap<String, String>,
    /// Whether the CPU may exceed its nominal frequency.
    pub boost: Option<bool>,
    pub clock_source: Option<String>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

/// A CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cpu {
    pub cpu: u32,
    /// Socket of the CPU.
    pub socket: Option<u32>,
    /// Core in the socket.
    pub core: Option<u32>,
    /// The CPUs of its core, itself included: more than one share it.
    pub siblings: Vec<u32>,
    /// The governor of the frequency: `performance`, `schedutil`.
    pub governor: Option<String>,
    /// Frequency in Hz.
    pub frequency: Option<f64>,
    /// The highest frequency that is allowed, in Hz.
    pub most: Option<f64>,
    /// The highest frequency that it has, in Hz.
    pub possible: Option<f64>,
}

/// A value with its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bounded {
    pub now: Option<u32>,
    /// The most that the driver takes.
    pub most: Option<u32>,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Card {
    pub name: String,
    /// `false`: the system does not have it.
    pub found: bool,
    /// The kind of a virtual interface: `veth`, `vlan`, `bridge`.
    pub kind: Option<String>,
    pub driver: Option<String>,
    pub driver_version: Option<String>,
    pub firmware: Option<String>,
    pub pci: Pci,
    /// Bit/s of its link.
    pub speed: Option<f64>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// IP addresses with the lengths of their networks.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<HostAddress>,
    pub pause: Pause,
    /// Descriptors of a receive ring.
    pub rx_ring: Bounded,
    /// Descriptors of a transmit ring.
    pub tx_ring: Bounded,
    /// Queues that only receive.
    pub rx_queues: Bounded,
    /// Queues that only send.
    pub tx_queues: Bounded,
    /// Queues that do both.
    pub combined_queues: Bounded,
    /// Interrupt moderation: `rx-usecs`, `adaptive-rx`, by the names of ethtool(8) or of the driver.
    pub coalescing: BTreeMap<String, String>,
    /// Offloads, by the names of ethtool(8) where it has one: `large-receive-offload`.
    pub features: BTreeMap<String, bool>,
    /// Offloads that the driver does not let anybody change.
    pub fixed: Vec<String>,
    /// The fields of a frame that choose its receive queue, by flow type: `udp4` -> `IP SA`, `IP DA`.
    pub hash_fields: BTreeMap<String, Vec<String>>,
    /// The receive queue of each hash.
    pub indirection: Vec<u32>,
    /// The key of the hash, as hexadecimal bytes.
    pub hash_key: Option<String>,
    /// Whether kernel threads receive.
    pub napi_threaded: Option<bool>,
    /// By receive queue.
    pub receive: BTreeMap<u32, ReceiveQueue>,
    /// CPUs that send by a transmit queue (XPS), by queue.
    pub xps: BTreeMap<u32, Vec<u32>>,
    pub interrupts: Vec<Interrupt>,
    pub qdiscs: Vec<Qdisc>,
    /// Filters of traffic control, by direction: `ingress`, `egress`.
    pub filters: BTreeMap<String, u64>,
    /// The attached XDP program, if there is one.
    pub xdp: Option<Xdp>,
    /// The bridge, bond or VRF that it belongs to.
    pub master: Option<String>,
    /// The kind of that.
    pub master_kind: Option<String>,
    /// Sockets that see every frame of it: tcpdump, LLDP daemons.
    pub taps: Option<u32>,
    /// Other settings, by the driver's or the system's name.
    pub settings: BTreeMap<String, String>,
}

/// How a card is connected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pci {
    /// `0000:01:00.0`.
    pub slot: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
    /// Lanes in use.
    pub width: Option<u32>,
    /// Lanes that the card has.
    pub most_width: Option<u32>,
    /// GT/s of a lane.
    pub speed: Option<f64>,
    /// GT/s of a lane that the card can do.
    pub most_speed: Option<f64>,
}

/// How packets of a receive queue are steered to other CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReceiveQueue {
    /// CPUs that packets are steered to by their hash (RPS); empty: none.
    pub rps: Vec<u32>,
    /// Entries of its flow table (RFS); 0: off.
    pub rfs: u32,
}

/// An interrupt of a card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupt {
    pub number: u32,
    /// The driver's name for it: `eth0-TxRx-0`.
    pub name: String,
    /// CPUs that may take it.
    pub allowed: Vec<u32>,
    /// CPUs that take it.
    pub cpus: Vec<u32>,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Qdisc {
    pub kind: String,
    /// Where it hangs: `root`, `ffff:fff1`, `8001:1`.
    pub parent: String,
}

/// An XDP program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Xdp {
    /// `driver`, `generic` or `hardware`.
    pub mode: String,
    pub program: Option<String>,
}

/// An interface above or beside cards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Link {
    pub name: String,
    /// `bridge`, `bond`, `vlan`, `vrf`, `vxlan`, `gre`.
    pub kind: String,
    pub mtu: Option<u32>,
    /// The interface below it.
    pub below: Option<String>,
    pub master: Option<String>,
    /// Settings, as far as they are plain values: `vlan_filtering`, `nf_call_iptables`.
    pub settings: BTreeMap<String, String>,
}

/// A table of tracked connections: states of pf, dynamic rules of ipfw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConnectionTable {
    pub entries: Option<u64>,
    pub most: Option<u64>,
    pub buckets: Option<u64>,
}

impl Configuration {
    /// Reads the answers to [`questions`]. Answers that have no question here are passed over.
    pub fn of(kernel: Kernel, interfaces: &[String], answers: &[Collected]) -> Configuration {
        let card = |name: &String| Card {
            name: name.clone(),
            ..Card::default()
        };
        let mut found = Configuration {
            version: VERSION,
            system: Release {
                kernel: kernel.name().into(),
                ..Release::default()
            },
            cards: interfaces.iter().map(card).collect(),
            ..Configuration::default()
        };
        let is_off = |one: &Collected| {
            one.command.starts_with("pfctl")
                && matches!(&one.output, Ok(text) if text.contains("Status: Disabled"))
        };
        let pf_is_off = answers.iter().any(is_off);
        for Collected { command, output } in answers {
            // The rules are there, and not in force.
            if pf_is_off && command.starts_with("pfctl") {
                continue;
            }
            let text = match output {
                Ok(text) => text,
                Err(why) => {
                    found.lacks(command, why);
                    continue;
                }
            };
            if text.ends_with(CUT) {
                found.lacks(
                    command,
                    &format!("only the first {} KiB are known", MOST_BYTES / 1024),
                );
            }
            if command.starts_with("sysctl") && crate::systems::text::sysctls(text).is_empty() {
                found.lacks(
                    command,
                    text.lines().next_back().unwrap_or("it printed nothing"),
                );
            }
            found.enter(kernel, command, text);
        }
        if pf_is_off {
            found.connections.remove("pf");
        }
        found.as_written();
        found
    }

    /// Reads what a campaign has recorded; `None` if the kernel is not known here.
    pub fn recorded(facts: &SlotFacts) -> Option<Configuration> {
        Some(Configuration::of(
            Kernel::named(&facts.kernel)?,
            &facts.interfaces,
            &facts.answers,
        ))
    }

    /// Whether an interface carries the ssh session, alone or below a bridge, a bond or a VLAN.
    pub fn carries_session(&self, name: &str) -> bool {
        let mut carriers = self.session.clone();
        let mut known = 0;
        while known < carriers.len() {
            let upper = carriers[known].clone();
            let below = self
                .links
                .iter()
                .filter(|link| link.name == upper)
                .filter_map(|link| link.below.clone());
            let of_link =
                |link: &Link| (link.master.as_ref() == Some(&upper)).then(|| link.name.clone());
            let of_card =
                |card: &Card| (card.master.as_ref() == Some(&upper)).then(|| card.name.clone());
            let all = below
                .chain(self.links.iter().filter_map(of_link))
                .chain(self.cards.iter().filter_map(of_card));
            let new: Vec<String> = all.filter(|name| !carriers.contains(name)).collect();
            carriers.extend(new);
            known += 1;
        }
        carriers.iter().any(|carrier| carrier == name)
    }

    /// The interface of that name, if it was asked for.
    pub fn card(&self, name: &str) -> Option<&Card> {
        self.cards.iter().find(|card| card.name == name)
    }

    /// The table of connections of this owner.
    pub fn table(&self, owner: &str) -> Option<ConnectionTable> {
        self.connections.get(owner).copied()
    }

    /// A setting that is a number.
    pub fn number(&self, sysctl: &str) -> Option<i64> {
        self.sysctls.get(sysctl)?.trim().parse().ok()
    }

    /// A setting of the next boot, and the file that has it. The last file wins, as at boot.
    pub fn written(&self, name: &str) -> Option<(&str, &str)> {
        let of = |(file, settings): &(&'_ String, &BTreeMap<String, String>)| {
            settings.contains_key(name) && !file.is_empty()
        };
        let (file, settings) = self.boot.iter().rfind(of)?;
        Some((file, &settings[name]))
    }

    fn system(&mut self, answer: &str) {
        let all = sections(answer);
        let part = |name: &str| {
            let found = all.iter().find(|(title, _)| *title == name);
            found.map(|(_, text)| text.as_bytes()).unwrap_or_default()
        };
        if let Some(system) =
            crate::systems::detect(part("uname"), answer.as_bytes(), part("mount"))
        {
            self.system.release = Some(system.kernel).filter(|release| !release.is_empty());
            self.system.product = system.product;
        } else if let Some(kernel) = Kernel::named(&self.system.kernel) {
            // A saved folder may lack uname(1).
            let (_, product) = appliance(kernel, "", answer.as_bytes(), part("mount"));
            self.system.product = product;
        }
    }

    /// Adds what files say of a system that was not asked: the offloads of rc.conf.
    fn as_written(&mut self) {
        if self.system.release.is_none() {
            self.system.release = self
                .sysctls
                .get("kern.osrelease")
                .or(self.sysctls.get("kernel.osrelease"))
                .cloned();
        }
        for card in self
            .cards
            .iter_mut()
            .filter(|card| card.features.is_empty())
        {
            let name = format!("ifconfig_{}", card.name);
            let Some(line) = self
                .boot
                .values()
                .filter_map(|settings| settings.get(&name))
                .next_back()
            else {
                continue;
            };
            let off = line
                .split_ascii_whitespace()
                .filter_map(|word| bsd::offload(&word.strip_prefix('-')?.to_ascii_uppercase()));
            card.features
                .extend(off.map(|ours| (ours.to_string(), false)));
            let on = line
                .split_ascii_whitespace()
                .filter_map(|word| bsd::offload(&word.to_ascii_uppercase()));
            card.features
                .extend(on.map(|ours| (ours.to_string(), true)));
        }
    }

    /// Lines `12 STALE`.
    fn neighbours(&mut self, answer: &str) {
        let line = |line: &str| {
            let (number, name) = line.trim().split_once(' ')?;
            Some((shown(name), number.parse().ok()?))
        };
        self.neighbours = lines(answer).filter_map(line).take(64).collect();
    }

    fn card_mut(&mut self, name: &str) -> Option<&mut Card> {
        self.cards.iter_mut().find(|card| card.name == name)
    }

    fn lacks(&mut self, question: &str, why: &str) {
        let (question, why) = (crate::systems::shown(question), crate::systems::shown(why));
        self.unanswered.push(Unanswered { question, why });
    }
}

impl Machine {
    /// Cores, if they are known.
    pub fn cores(&self) -> Option<usize> {
        let all: Option<std::collections::BTreeSet<_>> = self
            .cpus
            .iter()
            .map(|cpu| Some((cpu.socket, cpu.core?)))
            .collect();
        all.map(|all| all.len()).filter(|n| *n > 0)
    }

    fn cpu_mut(&mut self, number: u32) -> &mut Cpu {
        let at = match self.cpus.binary_search_by_key(&number, |cpu| cpu.cpu) {
            Ok(at) => at,
            Err(at) => {
                self.cpus.insert(
                    at,
                    Cpu {
                        cpu: number,
                        ..Cpu::default()
                    },
                );
                at
            }
        };
        &mut self.cpus[at]
    }
}

impl Card {
    /// Queues that receive.
    pub fn receive_queues(&self) -> Option<u32> {
        match (self.rx_queues.now, self.combined_queues.now) {
            (None, None) => (!self.receive.is_empty()).then_some(self.receive.len() as u32),
            (rx, combined) => Some(rx.unwrap_or(0).saturating_add(combined.unwrap_or(0))),
        }
    }
}

/// The interfaces of a host that stand for cards, by the answer to [`listing`]; in a namespace without any, its virtual Ethernet.
pub fn interfaces(kernel: Kernel, answer: &str) -> Vec<String> {
    let (mut cards, mut ethernet) = (Vec::new(), Vec::new());
    if kernel == Kernel::Linux {
        for (name, kind) in linux::kinds(answer) {
            match kind.as_str() {
                "" if name != "lo" => cards.push(name),
                "veth" => ethernet.push(name),
                _ => {}
            }
        }
    } else {
        for Interface { name, .. } in bsd_interfaces(answer) {
            match kind(&name) {
                "epair" | "vether" => ethernet.push(name),
                _ if !is_stacked(&name) => cards.push(name),
                _ => {}
            }
        }
        ethernet.retain(|name| !name.ends_with('b'));
    }
    let mut all = if cards.is_empty() { ethernet } else { cards };
    all.retain(|name| crate::systems::is_name(name));
    // An output may have been saved more than once.
    let mut known = std::collections::BTreeSet::new();
    all.retain(|name| known.insert(name.clone()));
    all.truncate(MOST_CARDS);
    all
}

/// Interfaces that are asked for.
const MOST_CARDS: usize = 64;

/// An answer as records keep it: its first bytes, [`MOST_BYTES`] as a rule, in whole lines.
pub fn kept(mut output: String, most: usize) -> String {
    if output.len() > most {
        let end = (0..=most)
            .rev()
            .find(|at| output.is_char_boundary(*at))
            .unwrap_or(0);
        output.truncate(output[..end].rfind('\n').map_or(end, |at| at + 1));
        output.push_str(CUT);
    }
    output
}

/// The addresses in a text, `198.18.1.1/16, 198.19.1.1/16`.
pub fn addresses(text: &str) -> Vec<HostAddress> {
    text.split(',').filter_map(|one| one.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
