//! The answers of Linux: files as grep(1) prints them, `ip -d -j addr`, `tc -j`, ethtool(8), rule sets.

use super::{Card, Configuration, ConnectionTable, Cpu, Interrupt, Link, Pci, Qdisc, Xdp, ethtool};
use crate::systems::linux::{Signs, entries};
use crate::systems::text::{self, cpu_list, lines, sections, shown};
use crate::systems::{self, Interface, MOST_ENTRIES};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

impl Configuration {
    /// The names of the interfaces of an ssh session.
    pub(super) fn session(&mut self, answer: &str) {
        let names = lines(answer)
            .map(|name| shown(name.trim()))
            .filter(|name| !name.is_empty());
        self.session = names.take(2).collect();
    }

    pub(super) fn cpu_files(&mut self, answer: &str) {
        let machine = &mut self.machine;
        let mut signs = Signs::default();
        for (path, value) in files(answer) {
            let parts: Vec<&str> = path.rsplit('/').take(3).collect();
            let name = parts.first().copied().unwrap_or_default();
            let cpu = || {
                parts
                    .get(2)?
                    .strip_prefix("cpu")?
                    .parse()
                    .ok()
                    .filter(|n| *n < MOST_CPUS)
            };
            match (parts.get(1).copied().unwrap_or_default(), name) {
                ("proc", "cpuinfo") => {
                    let Some((key, value)) = value.split_once(':') else {
                        continue;
                    };
                    match key.trim() {
                        "model name" => machine.model = Some(shown(value)),
                        "flags" => signs.flags = value.into(),
                        _ => {}
                    }
                }
                ("proc", "meminfo") => {
                    let number = value
                        .split_ascii_whitespace()
                        .nth(1)
                        .and_then(|n| n.parse::<u64>().ok());
                    machine.memory = number.and_then(|kib| kib.checked_mul(1024));
                }
                ("cpu", "isolated") => machine.isolated = cpu_list(value),
                ("cpu", "online") => {
                    cpu_list(value)
                        .into_iter()
                        .for_each(|cpu| machine.cpu_mut(cpu).cpu = cpu);
                }
                ("cpufreq", "boost") => machine.boost = Some(value == "1"),
                ("intel_pstate", "no_turbo") => machine.boost = Some(value == "0"),
                ("vulnerabilities", name) => {
                    drop(machine.mitigations.insert(shown(name), shown(value)))
                }
                ("id", _) => {
                    signs.maker = format!("{} {}", signs.maker, shown(value))
                        .trim_start()
                        .into()
                }
                ("hypervisor", _) => signs.kind = Some(shown(value)),
                ("clocksource0", "available_clocksource") => signs.clocks = value.into(),
                ("clocksource0", _) => machine.clock_source = Some(shown(value)),
                (node, "cpulist") => {
                    let number = node.strip_prefix("node").and_then(|n| n.parse().ok());
                    machine
                        .nodes
                        .extend(number.map(|number| (number, cpu_list(value))));
                }
                file @ ("topology" | "cpufreq", _) => {
                    if let Some(number) = cpu() {
                        of_cpu(machine.cpu_mut(number), file, value);
                    }
                }
                _ => {}
            }
        }
        machine.virtual_machine = signs.hypervisor();
    }

    pub(super) fn interface_files(&mut self, answer: &str) {
        let mut interrupts = Interrupts::new();
        let mut of: BTreeMap<&str, Vectors> = BTreeMap::new();
        let (mut sockets, mut in_local) = (Vec::new(), false);
        for line in lines(answer) {
            if let Some((number, name)) = line
                .strip_prefix("/proc/irq/")
                .and_then(|l| l.strip_suffix('/')?.split_once('/'))
            {
                if let Ok(number) = number.parse() {
                    let (names, interrupt) = interrupts.entry(number).or_default();
                    interrupt.number = number;
                    names.push(shown(name));
                }
                continue;
            }
            let Some((path, value)) = line
                .split_once(':')
                .map(|(path, value)| (path, value.trim()))
            else {
                continue;
            };
            let parts: Vec<&str> = path.split('/').skip(1).collect();
            match parts.as_slice() {
                ["proc", "irq", number, file] => {
                    let known = number
                        .parse()
                        .ok()
                        .and_then(|number: u32| interrupts.get_mut(&number));
                    let Some((_, one)) = known else { continue };
                    match *file {
                        "smp_affinity_list" => one.allowed = cpu_list(value),
                        _ => one.cpus = cpu_list(value),
                    }
                }
                ["proc", "net", "packet"] => {
                    self.packet_socket(value);
                    sockets.extend(socket(value));
                }
                ["proc", "net", "fib_triestat"] => {
                    // Without policy routing, both of these are one table.
                    in_local = (value == "Local:") || in_local && !value.ends_with(':');
                    let prefixes = value.strip_prefix("Prefixes:").filter(|_| !in_local);
                    let prefixes = prefixes.and_then(|n| n.trim().parse::<u64>().ok());
                    let sum = self.routes.entry("IPv4".into()).or_default();
                    *sum = sum.saturating_add(prefixes.unwrap_or(0));
                }
                ["proc", "net", "rt6_stats"] => {
                    let entries = value
                        .split(' ')
                        .nth(3)
                        .and_then(|n| u64::from_str_radix(n, 16).ok());
                    self.routes.extend(entries.map(|n| ("IPv6".to_string(), n)));
                }
                ["sys", "class", "net", name, rest @ ..] => {
                    of.entry(name).or_default().enter(rest, value);
                    if let Some(card) = self.card_mut(name) {
                        of_card(card, rest, value);
                    }
                }
                _ => {}
            }
        }
        for (name, vectors) in of {
            if let Some(card) = self.card_mut(name) {
                taps_and_interrupts(card, vectors, &sockets, &interrupts);
            }
        }
    }

    pub(super) fn sysctl(&mut self, answer: &str) {
        self.sysctls.extend(text::sysctls(answer));
        let number = |name: &str| self.sysctls.get(name).and_then(|value| value.parse().ok());
        let table = ConnectionTable {
            entries: number("net.netfilter.nf_conntrack_count"),
            most: number("net.netfilter.nf_conntrack_max"),
            buckets: number("net.netfilter.nf_conntrack_buckets"),
        };
        if table != ConnectionTable::default() {
            self.connections.insert("conntrack".into(), table);
        }
    }

    pub(super) fn links(&mut self, answer: &str) {
        self.devices(answer);
        let kinds: BTreeMap<String, String> = kinds(answer).into_iter().collect();
        for entry in entries::<systems::linux::Link>(answer.as_bytes()) {
            let Interface { mtu, addresses, .. } = entry.interface();
            let kind = Some(shown(&entry.linkinfo.info_kind)).filter(|kind| !kind.is_empty());
            if let Some(card) = self.card_mut(&entry.ifname) {
                card.found = true;
                (card.kind, card.mtu) = (kind, mtu);
                card.addresses = addresses;
                card.settings.extend(
                    entry
                        .txqlen
                        .map(|n| ("txqueuelen".to_string(), n.to_string())),
                );
                card.master_kind = entry
                    .master
                    .as_ref()
                    .and_then(|master| kinds.get(master))
                    .map(|kind| shown(kind));
                card.master = entry.master.as_deref().map(shown);
                card.xdp = entry.xdp.map(|xdp| Xdp {
                    mode: match xdp.mode {
                        2 => "generic",
                        3 => "hardware",
                        _ => "driver",
                    }
                    .into(),
                    program: xdp.prog.name.as_deref().map(shown),
                });
                if card.pci.slot.is_none() && entry.parentbus.as_deref() == Some("pci") {
                    card.pci.slot = entry.parentdev.as_deref().map(shown);
                }
            } else if let Some(kind) =
                kind.filter(|kind| !["veth", "dummy", "ifb"].contains(&kind.as_str()))
                && self.links.len() < MOST_ENTRIES
            {
                let plain = |(name, value): (String, Value)| match value {
                    Value::String(text) => Some((shown(&name), shown(&text))),
                    Value::Number(_) | Value::Bool(_) => Some((shown(&name), value.to_string())),
                    _ => None,
                };
                self.links.push(Link {
                    name: shown(&entry.ifname),
                    kind,
                    mtu,
                    below: entry.link.as_deref().map(shown),
                    master: entry.master.as_deref().map(shown),
                    settings: entry
                        .linkinfo
                        .info_data
                        .into_iter()
                        .filter_map(plain)
                        .collect(),
                });
            }
        }
    }

    pub(super) fn queueing(&mut self, answer: &str) {
        self.traffic_control(answer);
        for (title, text) in sections(answer) {
            if title == "qdisc" {
                for entry in entries::<QdiscEntry>(text.as_bytes()) {
                    let parent = if entry.root {
                        "root".into()
                    } else {
                        shown(&entry.parent)
                    };
                    let Some(card) = self.card_mut(&entry.dev) else {
                        continue;
                    };
                    card.qdiscs.push(Qdisc {
                        kind: shown(&entry.kind),
                        parent,
                    });
                }
            } else if let Some((direction, name)) = title.split_once(' ')
                && direction != "classes"
                && let Some(card) = self.card_mut(name)
            {
                // A filter's first entry stands for its kind alone, without options.
                let filters = entries::<FilterEntry>(text.as_bytes());
                let n = filters
                    .iter()
                    .filter(|filter| !filter.options.is_null())
                    .count() as u64;
                card.filters.insert(direction.into(), n);
            }
        }
    }

    pub(super) fn ethtool(&mut self, name: &str, answer: &str) {
        for (title, text) in sections(answer) {
            let mut words = title.split(' ');
            let (option, flow) = (
                words.next().unwrap_or_default(),
                words.next_back().unwrap_or_default(),
            );
            let Some(card) = self.card_mut(name) else {
                return;
            };
            if let Some(why) = ethtool::enter(card, option, flow, text) {
                self.unanswered.push(super::Unanswered {
                    question: shown(&format!("ethtool {title}")),
                    why,
                });
            }
        }
    }
}

/// Interrupts by number, each with all names that it has.
type Interrupts = BTreeMap<u32, (Vec<String>, Interrupt)>;

/// An interface's index, and the interrupts of its device and of the device above it: that of virtio, whose own has none. Each may
/// have one line instead of messages.
#[derive(Default)]
struct Vectors {
    index: Option<u32>,
    own: Vec<u32>,
    line: Option<u32>,
    above: Vec<u32>,
    line_above: Option<u32>,
}

impl Vectors {
    fn enter(&mut self, path: &[&str], value: &str) {
        match path {
            ["ifindex"] => self.index = value.parse().ok(),
            ["device", "msi_irqs", number] => self.own.extend(number.parse::<u32>().ok()),
            ["device", "irq"] => self.line = value.parse().ok(),
            ["device", "..", "msi_irqs", number] => self.above.extend(number.parse::<u32>().ok()),
            ["device", "..", "irq"] => self.line_above = value.parse().ok(),
            _ => {}
        }
    }

    /// Empty: none is listed.
    fn numbers(self) -> Vec<u32> {
        let one = |line: Option<u32>| Vec::from_iter(line.filter(|line| *line > 0));
        // Above a card that has a line of its own is a bridge, whose interrupts are about slots.
        match (self.own.is_empty(), self.line, self.above.is_empty()) {
            (false, ..) => self.own,
            (_, Some(line), _) => one(Some(line)),
            (_, _, false) => self.above,
            _ => one(self.line_above),
        }
    }
}

/// Linux has no more (NR_CPUS).
const MOST_CPUS: u32 = 8192;
/// Interfaces with their kinds, of `ip -d -j addr show`.
pub fn kinds(answer: &str) -> Vec<(String, String)> {
    let all: Vec<systems::linux::Link> = entries(answer.as_bytes());
    all.into_iter()
        .map(|entry| (entry.ifname, entry.linkinfo.info_kind))
        .collect()
}

/// Lines `PATH:VALUE`.
fn files(answer: &str) -> impl Iterator<Item = (&str, &str)> {
    lines(answer)
        .filter_map(|line| line.split_once(':'))
        .map(|(path, value)| (path, value.trim()))
}

/// A file of a CPU's own: the last folder of its path, and its name.
fn of_cpu(cpu: &mut Cpu, file: (&str, &str), value: &str) {
    let hertz = || {
        value
            .parse::<f64>()
            .ok()
            .filter(|khz| (1.0..1e9).contains(khz))
            .map(|khz| khz * 1e3)
    };
    match file {
        ("topology", "physical_package_id") => cpu.socket = value.parse().ok(),
        ("topology", "core_id") => cpu.core = value.parse().ok(),
        ("topology", "thread_siblings_list") => cpu.siblings = cpu_list(value),
        ("cpufreq", "scaling_governor") => cpu.governor = Some(shown(value)),
        ("cpufreq", "scaling_cur_freq") => cpu.frequency = hertz(),
        ("cpufreq", "scaling_max_freq") => cpu.most = hertz(),
        ("cpufreq", "cpuinfo_max_freq") => cpu.possible = hertz(),
        _ => {}
    }
}

/// `sockets`: by the interface that each sees; 0: every interface.
fn taps_and_interrupts(
    card: &mut Card,
    vectors: Vectors,
    sockets: &[u32],
    interrupts: &Interrupts,
) {
    let index = vectors.index;
    card.found |= index.is_some();
    let all = sockets
        .iter()
        .filter(|of| **of == 0 || Some(**of) == index)
        .count();
    card.taps = index.map(|_| all as u32);
    // Numbers without a name are not in use. Lines are shared.
    let of = |names: &Vec<String>, one: &Interrupt| {
        let own = names
            .iter()
            .find(|name| card.is_named_in(name))
            .or(names.last());
        Interrupt {
            name: own.cloned().unwrap_or_default(),
            ..one.clone()
        }
    };
    let numbers = vectors.numbers();
    let known = interrupts
        .iter()
        .filter(|(number, (names, _))| match numbers.is_empty() {
            true => names.iter().any(|name| card.is_named_in(name)),
            false => numbers.contains(number),
        });
    card.interrupts = known.map(|(_, (names, one))| of(names, one)).collect();
}

fn of_card(card: &mut Card, path: &[&str], value: &str) {
    let queue = |name: &str| {
        let number: Option<u32> = name.split_once('-').and_then(|(_, n)| n.parse().ok());
        number.filter(|n| *n < MOST_QUEUES)
    };
    let Pci {
        node,
        width,
        most_width,
        speed,
        most_speed,
        ..
    } = &mut card.pci;
    // `8.0 GT/s PCIe`, `Unknown`.
    let transfers = || value.split(' ').next().and_then(|n| n.parse().ok());
    match path {
        ["speed"] => {
            card.speed = value
                .parse()
                .ok()
                .filter(|m| (1.0..1e7).contains(m))
                .map(|m: f64| m * 1e6)
        }
        ["threaded"] => card.napi_threaded = Some(value != "0"),
        [name @ ("gro_flush_timeout" | "napi_defer_hard_irqs")] => {
            card.settings.insert((*name).into(), shown(value));
        }
        ["queues", name, "rps_cpus"] => {
            if let Some(n) = queue(name) {
                card.receive.entry(n).or_default().rps = mask(value);
            }
        }
        ["queues", name, "rps_flow_cnt"] => {
            if let Some(n) = queue(name) {
                card.receive.entry(n).or_default().rfs = value.parse().unwrap_or(0);
            }
        }
        ["queues", name, "xps_cpus"] => drop(queue(name).map(|n| card.xps.insert(n, mask(value)))),
        ["device", "numa_node"] => *node = value.parse().ok(),
        ["device", "current_link_width"] => *width = value.parse().ok().filter(|w| *w > 0),
        ["device", "max_link_width"] => {
            *most_width = value.parse().ok().filter(|w| *w > 0 && *w < 255)
        }
        ["device", "current_link_speed"] => *speed = transfers(),
        ["device", "max_link_speed"] => *most_speed = transfers(),
        _ => {}
    }
}

/// A card has no more queues.
const MOST_QUEUES: u32 = 4096;

/// CPUs of a mask, in groups of 32 bits: `00000000,0000000f`.
pub fn mask(text: &str) -> Vec<u32> {
    let groups = text
        .trim()
        .rsplit(',')
        .take(MOST_CPUS as usize / 32)
        .enumerate();
    let of = |(nth, group): (usize, &str)| {
        let bits = u32::from_str_radix(group.trim(), 16).unwrap_or(0);
        (0..32)
            .filter(move |bit| bits >> bit & 1 == 1)
            .map(move |bit| nth as u32 * 32 + bit)
    };
    groups.flat_map(of).collect()
}

/// The interface's number of a packet socket that sees every protocol (ETH_P_ALL); 0: every interface.
fn socket(line: &str) -> Option<u32> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    (words.get(3) == Some(&"0003")).then(|| words.get(4)?.parse().ok())?
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QdiscEntry {
    kind: String,
    dev: String,
    root: bool,
    parent: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FilterEntry {
    options: Value,
}
