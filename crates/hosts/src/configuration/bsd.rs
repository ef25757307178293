//! The answers of FreeBSD, and those of OpenBSD and NetBSD that are alike: sysctl(8), ifconfig(8), pciconf(8), vmstat(8), pf and ipfw.

use super::{Bounded, Card, Configuration, Cpu, Interrupt, Link};
use crate::systems::MOST_ENTRIES;
use crate::systems::bsd::{self, device};
use crate::systems::text::{cpu_list, lines, pairs, shown, sysctls};
use linerate_measure::experiment::System;
use linerate_plan::offload::OFFLOADS;
use std::collections::BTreeMap;

/// Parts of the names of settings that moderate interrupts.
const MODERATION: [&str; 7] = [
    "int_delay",
    ".itr",
    "interrupt_rate",
    "holdoff",
    "coalesce",
    "enable_aim",
    "intr_rate",
];
/// The beginnings of settings that are mitigations, or say whether they are in use.
const MITIGATIONS: [&str; 6] = [
    "machdep.mitigations.",
    "hw.ibrs",
    "hw.mds_",
    "hw.spec_store",
    "vm.pmap.pti",
    "machdep.syscall_ret_flush",
];
/// Groups of interfaces that are no plain cards.
const STACKED: [&str; 12] = [
    "bridge", "lagg", "trunk", "vlan", "gif", "gre", "wg", "tun", "tap", "vxlan", "ipsec", "carp",
];

impl Configuration {
    pub(super) fn bsd_routes(&mut self, answer: &str) {
        let families = [("Internet", "IPv4"), ("Internet6", "IPv6")];
        let known = |(theirs, ours): (&str, &str)| {
            let (_, n) = pairs(answer, ':').find(|(name, _)| *name == theirs)?;
            Some((ours.to_string(), n.parse().ok()?))
        };
        self.routes = families.into_iter().filter_map(known).collect();
    }

    pub(super) fn kldstat(&mut self, answer: &str) {
        let name = |line: &str| {
            line.split_ascii_whitespace()
                .nth(4)
                .filter(|word| *word != "Name")
                .map(shown)
        };
        self.modules = lines(answer).filter_map(name).take(MOST_ENTRIES).collect();
    }

    pub(super) fn ipf_states(&mut self, answer: &str) {
        // Version 4 prints `12 active`.
        let active = |line: &str| {
            let (n, what) = line.trim().split_once(char::is_whitespace)?;
            ["active", "active state table entries"]
                .contains(&what.trim())
                .then(|| n.parse().ok())?
        };
        // `state_max  min 0x1  max 0x7fffffff  current 4013`
        let current = |name: &str| {
            let line =
                lines(answer).find(|line| line.split_ascii_whitespace().next() == Some(name))?;
            line.split_ascii_whitespace().next_back()?.parse().ok()
        };
        let (entries, most) = (lines(answer).find_map(active), current("state_max"));
        self.enter_table("ipf", [entries, most, current("state_size")]);
    }

    pub(super) fn pf_state(&mut self, answer: &str) {
        if answer.contains("Status: Enabled") {
            self.enter_table("pf", [bsd::pf_states(answer), None, None]);
        }
    }

    pub(super) fn pf_limits(&mut self, answer: &str) {
        self.enter_table("pf", [None, bsd::most_pf_states(answer), None]);
    }

    /// Boot messages: `FreeBSD/SMP: 2 package(s) x 12 core(s) x 2 hardware threads`, `t5nex0: <Chelsio T520-CR> … numa-domain 1 on pci14`.
    pub(super) fn messages(&mut self, answer: &str) {
        for line in lines(answer) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let number = |unit: &str| {
                let at = words.iter().position(|word| *word == unit)?;
                words
                    .get(at.checked_sub(1)?)?
                    .parse::<u32>()
                    .ok()
                    .filter(|n| (1..=1024).contains(n))
            };
            if line.starts_with("FreeBSD/SMP: ") && line.contains("core(s)") {
                // `2 package(s) x 8 core(s) x 2 SMT threads`; `1 package(s) x 2 cache groups x 4 core(s)`.
                let threads = number("hardware").or(number("SMT")).unwrap_or(1);
                let sockets = number("package(s)").unwrap_or(1);
                let cores = number("core(s)").unwrap_or(1) * number("cache").unwrap_or(1);
                self.topology(sockets, cores, threads);
            } else if let Some(model) = line.strip_prefix("CPU: ") {
                let model = model.rsplit_once(" (").map_or(model, |(model, _)| model);
                self.machine.model.get_or_insert_with(|| shown(model));
            } else if let Some((_, domain)) = line.split_once("numa-domain ")
                && let Some((name, _)) = line.split_once(": ")
                && let Some(Ok(node)) = domain.split(' ').next().map(str::parse::<u32>)
            {
                // Ports of Chelsio's cards are children of the card: t5nex0 has cxl0 and cxl1.
                let is_nexus = name
                    .trim_end_matches(|c: char| c.is_ascii_digit())
                    .ends_with("nex");
                let own = |card: &&mut Card| {
                    card.name == name
                        || is_nexus && card.name.contains("cxl")
                        || is_nexus && card.name.starts_with("cc")
                };
                self.cards.iter_mut().filter(own).for_each(|card| {
                    card.pci.node.get_or_insert(node);
                });
            }
        }
    }

    /// CPUs by their numbers, where nothing surer is known: threads of a core, cores of a socket follow each other.
    fn topology(&mut self, sockets: u32, cores: u32, threads: u32) {
        let known = self.machine.cpus.iter().any(|cpu| cpu.siblings.len() > 1);
        let all = sockets.saturating_mul(cores).saturating_mul(threads);
        let fits = self.machine.cpus.is_empty() || self.machine.cpus.len() as u32 == all;
        if known || !fits || all > 4096 {
            return;
        }
        for cpu in 0..all {
            let core = cpu / threads;
            let of = self.machine.cpu_mut(cpu);
            (of.core, of.socket) = (Some(core), Some(core / cores));
            of.siblings = (core * threads..(core + 1) * threads).collect();
        }
    }

    /// Entries, most and buckets of a table, as far as they are known.
    fn enter_table(&mut self, owner: &str, [entries, most, buckets]: [Option<u64>; 3]) {
        if entries.or(most).or(buckets).is_some() {
            let table = self.connections.entry(owner.into()).or_default();
            table.entries = table.entries.or(entries);
            table.most = table.most.or(most);
            table.buckets = table.buckets.or(buckets);
        }
    }

    pub(super) fn settings(&mut self, answer: &str) {
        let mut found = sysctls(answer);
        // OpenBSD has it in `kern.clockrate=tick = 10000, hz = 100, profhz = 1000, stathz = 100` alone.
        if let Some(rates) = found.get("kern.clockrate")
            && let Some(hz) = rates
                .split([',', '{'])
                .find_map(|rate| rate.trim().strip_prefix("hz = "))
        {
            let hz = hz.to_string();
            found.entry("kern.hz".into()).or_insert(hz);
        }
        let number = |name: &str| found.get(name).and_then(|value| value.parse::<u64>().ok());
        let text = |name: &str| found.get(name).filter(|value| !value.is_empty()).cloned();
        let machine = &mut self.machine;
        machine.model = text("hw.model");
        machine.memory = number("hw.physmem").or(number("hw.physmem64"));
        machine.clock_source = text("kern.timecounter.hardware");
        machine.virtual_machine = text("kern.vm_guest").filter(|guest| guest != "none");
        if found
            .get("hw.vendor")
            .is_some_and(|vendor| vendor.contains("QEMU"))
        {
            machine.virtual_machine = text("hw.vendor");
        }
        let count = number("hw.ncpuonline")
            .or(number("hw.ncpu"))
            .filter(|n| *n <= 4096)
            .unwrap_or(0);
        let frequency = number("dev.cpu.0.freq")
            .or(number("hw.cpuspeed"))
            .map(|mhz| mhz as f64 * 1e6);
        // The first of `2600/95000 2400/85000` is the highest.
        let levels = text("dev.cpu.0.freq_levels");
        let possible = levels
            .and_then(|all| all.split(['/', ' ']).next()?.parse::<f64>().ok())
            .map(|mhz| mhz * 1e6);
        let siblings = siblings(answer);
        let cpu = |cpu: u32| {
            let core = siblings.iter().position(|core| core.contains(&cpu));
            let own = core.map_or(vec![cpu], |core| siblings[core].clone());
            // Groups of siblings are listed only where there are any.
            let (core, siblings) = (core.map_or(Some(cpu), |core| Some(siblings[core][0])), own);
            Cpu {
                cpu,
                core,
                siblings,
                frequency,
                possible,
                ..Cpu::default()
            }
        };
        machine.cpus = (0..count as u32).map(cpu).collect();
        let is_mitigation =
            |(name, _): &(&String, &String)| MITIGATIONS.iter().any(|part| name.starts_with(part));
        machine.mitigations = found
            .iter()
            .filter(is_mitigation)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // pf's other numbers come from pfctl.
        let buckets = number("net.pf.states_hashsize");
        let [count, most, of_ipfw] = ["dyn_count", "dyn_max", "curr_dyn_buckets"]
            .map(|name| number(&format!("net.inet.ip.fw.{name}")));
        self.enter_table("pf", [None, None, buckets]);
        self.enter_table("ipfw", [count, most, of_ipfw]);
        self.sysctls.extend(found);
    }

    /// Settings of a card: `dev.em.0.fc: 0`.
    pub(super) fn device(&mut self, node: &str, answer: &str) {
        let Some(card) = self
            .cards
            .iter_mut()
            .find(|card| device(&card.name).as_deref() == Some(node))
        else {
            return;
        };
        let found: BTreeMap<String, String> = sysctls(answer);
        bsd::pause(&found, &mut card.pause);
        let of = |name: &str| {
            found
                .get(&format!("{node}.{name}"))
                .filter(|value| !value.is_empty())
        };
        let number = |name: &str| of(name).and_then(|value| value.parse::<u32>().ok());
        card.driver = of("%driver").cloned();
        card.driver_version = of("iflib.driver_version").or(of("driver_version")).cloned();
        card.firmware = of("fw_version").or(of("firmware_version")).cloned();
        card.pci.node = of("%domain").and_then(|node| node.parse().ok());
        let numbered = |part: &str| {
            let prefix = format!("{node}.{part}");
            let queue = |name: &String| {
                let digits = name.strip_prefix(&prefix)?;
                let end = digits.find(|c: char| !c.is_ascii_digit())?;
                digits[..end].parse::<u32>().ok()
            };
            let mut queues: Vec<u32> = found.keys().filter_map(queue).collect();
            queues.sort_unstable();
            queues.dedup();
            (!queues.is_empty()).then_some(queues.len() as u32)
        };
        let both = number("act_vq_pairs")
            .or(number("conf.channels"))
            .or_else(|| numbered("queue").or_else(|| numbered("que")));
        let rx = numbered("iflib.rxq")
            .or(number("nrxq"))
            .or_else(|| numbered("queue_rx_"));
        let tx = numbered("iflib.txq")
            .or(number("ntxq"))
            .or_else(|| numbered("queue_tx_"));
        match (rx, tx) {
            (None, None) => {
                card.combined_queues = Bounded {
                    now: both,
                    most: number("max_vq_pairs"),
                }
            }
            (rx, tx) => (card.rx_queues.now, card.tx_queues.now) = (rx, tx),
        }
        let set = |name: &str| number(name).filter(|n| *n > 0);
        card.rx_ring = Bounded {
            now: set("iflib.override_nrxds")
                .or(set("qsize_rxq"))
                .or(set("conf.rx_queue_size")),
            most: set("conf.rx_queue_size_max"),
        };
        card.tx_ring = Bounded {
            now: set("iflib.override_ntxds")
                .or(set("qsize_txq"))
                .or(set("conf.tx_queue_size")),
            most: set("conf.tx_queue_size_max"),
        };
        for (name, value) in &found {
            if let Some(short) = name
                .strip_prefix(node)
                .and_then(|rest| rest.strip_prefix('.'))
            {
                driver_setting(card, name, short, value);
            }
        }
    }

    pub(super) fn ifconfig(&mut self, answer: &str) {
        for interface in bsd::interfaces(answer) {
            if let Some(card) = self.card_mut(&interface.name) {
                card.found = true;
                (card.mtu, card.speed, card.addresses) =
                    (interface.mtu, interface.speed, interface.addresses);
                // A setting of the driver is surer than the medium.
                let pause = card.pause;
                card.pause.rx = pause.rx.or(interface.pause.rx);
                card.pause.tx = pause.tx.or(interface.pause.tx);
            }
        }
        let (mut name, mut flags) = ("", "");
        for line in lines(answer) {
            if !line.starts_with([' ', '\t']) {
                (name, flags) = line.split_once(": ").unwrap_or_default();
                continue;
            }
            let (key, value) = line.trim().split_once([':', '=', ' ']).unwrap_or_default();
            let value = value.trim();
            match key {
                "options" => {
                    if let Some(card) = self.card_mut(name) {
                        freebsd_offloads(card, value);
                    }
                }
                "hwfeatures" => {
                    if let Some(card) = self.card_mut(name) {
                        openbsd_offloads(card, value, flags);
                    }
                }
                "groups" if self.card(name).is_none() && self.links.len() < MOST_ENTRIES => {
                    let kind = value.split_ascii_whitespace().next().unwrap_or_default();
                    let known = self.links.iter().any(|link| link.name == name);
                    if STACKED.contains(&kind) && !known {
                        self.links.push(Link {
                            name: shown(name),
                            kind: kind.into(),
                            ..Link::default()
                        });
                    }
                }
                "member" | "laggport" | "trunkport" => {
                    let kind = if key == "member" { "bridge" } else { "lagg" };
                    let master = shown(name);
                    if let Some(card) = self.card_mut(value.split(' ').next().unwrap_or_default()) {
                        (card.master, card.master_kind) = (Some(master), Some(kind.into()));
                    }
                }
                _ => {}
            }
        }
    }

    /// `em0@pci0:0:4:0: class=…`, and below it `link x8(x8) speed 5.0(8.0)`.
    pub(super) fn pciconf(&mut self, answer: &str) {
        let mut name = "";
        for line in lines(answer) {
            if !line.starts_with([' ', '\t']) {
                name = line.split_once('@').map_or("", |(name, _)| name);
            }
            let Some(card) = self.card_mut(name) else {
                continue;
            };
            if let Some((_, rest)) = line.split_once("@pci") {
                let slot = rest
                    .split([':', '\t'])
                    .take(4)
                    .collect::<Vec<_>>()
                    .join(":");
                card.pci.slot = Some(shown(&format!("pci{slot}")));
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            while let Some(word) = words.next() {
                let mut both = || {
                    let (now, most) = words.next()?.split_once('(')?;
                    let plain = |text: &str| text.trim_matches(['x', ')']).parse::<f64>().ok();
                    Some((plain(now), plain(most)))
                };
                match word {
                    "link" => {
                        if let Some((now, most)) = both() {
                            let lanes = |n: Option<f64>| {
                                n.filter(|n| (1.0..=64.0).contains(n)).map(|n| n as u32)
                            };
                            (card.pci.width, card.pci.most_width) = (lanes(now), lanes(most));
                        }
                    }
                    "speed" => {
                        if let Some(speeds) = both() {
                            (card.pci.speed, card.pci.most_speed) = speeds;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// `irq11: em0:irq0`, `irq264: ix0:que 0`; of OpenBSD `irq65/em1`, `irq65/vio0:1`.
    pub(super) fn vmstat(&mut self, answer: &str) {
        for (interrupt, _) in bsd::interrupts(answer) {
            let rest = interrupt.strip_prefix("irq");
            let Some((number, name)) =
                rest.and_then(|rest| rest.split_once(": ").or_else(|| rest.split_once('/')))
            else {
                continue;
            };
            let Ok(number) = number.parse() else { continue };
            let mut of = name
                .split([':', ' '])
                .next()
                .unwrap_or_default()
                .to_string();
            // Queues of Chelsio's ports: t5nex0:1a3 is one of cxl1, on the first card.
            if let Some(("t5nex0", port)) = name.split_once(':')
                && let Some(port) = port.chars().next().filter(char::is_ascii_digit)
            {
                of = format!("cxl{port}");
            }
            if let Some(card) = self.card_mut(&of) {
                card.interrupts.push(Interrupt {
                    number,
                    name: name.into(),
                    ..Interrupt::default()
                });
            }
        }
    }

    /// `irq 264 mask: 0, 1`.
    pub(super) fn cpusets(&mut self, answer: &str) {
        for (key, cpus) in pairs(answer, ':') {
            let number = key
                .strip_prefix("irq ")
                .and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
            let Some(number) = number else { continue };
            let of = self
                .cards
                .iter_mut()
                .flat_map(|card| &mut card.interrupts)
                .find(|one| one.number == number);
            if let Some(one) = of {
                one.allowed = cpu_list(&cpus.replace(' ', ""));
            }
        }
    }
}

/// Keeps a driver's setting by its name without the card's.
fn driver_setting(card: &mut Card, name: &str, short: &str, value: &str) {
    let own = short.split('.').count() == 1 && !short.starts_with('%');
    if MODERATION.iter().any(|part| name.contains(part)) {
        card.coalescing.insert(short.into(), value.into());
    } else if own
        || short.starts_with("iflib.") && short.split('.').count() == 2
        || short.starts_with("conf.")
    {
        card.settings.insert(short.into(), value.into());
    }
    // The CPU that a queue's interrupt was given to.
    if let Some(queue) = short
        .strip_prefix("iflib.rxq")
        .and_then(|rest| rest.strip_suffix(".cpu"))
        && let (Ok(_), Ok(cpu)) = (queue.parse::<u32>(), value.parse())
    {
        let name = format!("rxq{queue}");
        card.interrupts.push(Interrupt {
            name,
            cpus: vec![cpu],
            ..Interrupt::default()
        });
    }
}

/// Words in brackets: `8843<UP,BROADCAST,RUNNING>`.
fn bracketed(text: &str) -> impl Iterator<Item = &str> {
    text.split(['<', '>', ',']).skip(1)
}

fn freebsd_offloads(card: &mut Card, options: &str) {
    let known = OFFLOADS
        .iter()
        .filter(|offload| offload.flag(System::FreeBsd).is_some());
    card.features
        .extend(known.map(|offload| (offload.name.to_string(), false)));
    for word in bracketed(options).filter(|word| !word.is_empty()).take(64) {
        card.features
            .insert(shown(offload(word).unwrap_or(word)), true);
    }
}

/// OpenBSD: what the card can do is on, but for LRO, which is a flag.
fn openbsd_offloads(card: &mut Card, features: &str, flags: &str) {
    let has = |part: &str| bracketed(features).any(|word| word.starts_with(part));
    let found = [
        ("rx-checksumming", has("CSUM_")),
        ("tx-checksumming", has("CSUM_")),
        ("tcp-segmentation-offload", has("TSOv")),
        (
            "large-receive-offload",
            has("LRO") && bracketed(flags).any(|flag| flag == "LRO"),
        ),
    ];
    card.features
        .extend(found.map(|(ours, on)| (ours.to_string(), on)));
}

/// The name of ethtool(8) for an offload of ifconfig(8).
pub fn offload(word: &str) -> Option<&'static str> {
    OFFLOADS
        .iter()
        .find(|offload| offload.freebsd[0] == word)
        .map(|offload| offload.name)
}

/// CPUs of one core, of `kern.sched.topology_spec`: `<cpu count="2" mask="3">0, 1</cpu>` with a `<flag name="SMT">` behind it.
fn siblings(answer: &str) -> Vec<Vec<u32>> {
    let groups = answer
        .split("<cpu ")
        .skip(1)
        .take(MOST_ENTRIES)
        .filter(|group| group.contains("name=\"SMT\""));
    let cpus = groups.filter_map(|group| {
        let (_, rest) = group.split_once('>')?;
        let cpus = cpu_list(&rest.split('<').next()?.replace(' ', ""));
        (!cpus.is_empty()).then_some(cpus)
    });
    cpus.collect()
}
