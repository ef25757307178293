//! Readers of Linux's answers about the way of frames.

use super::{Attached, Configuration, Device, Filter, Program, Traced, Way, enter, word};
use crate::configuration::Qdisc;
use crate::systems::linux::entries;
use crate::systems::text::{lines, sections, shown};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Route {
    #[serde(rename = "type")]
    kind: String,
    gateway: Option<String>,
    via: Option<Via>,
    dev: Option<String>,
    table: Option<Value>,
    encap: Option<String>,
    out: Value,
    nhid: Option<u64>,
    nexthops: Vec<NextHop>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Via {
    host: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NextHop {
    gateway: Option<String>,
    via: Option<Via>,
    dev: Option<String>,
    encap: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Link {
    ifname: String,
    ifindex: u32,
    link: Option<String>,
    master: Option<String>,
    linkinfo: LinkInfo,
    xdp: Option<Xdp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LinkInfo {
    info_kind: String,
    info_data: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Xdp {
    mode: u32,
    prog: BpfProgram,
    attached: Vec<OneXdp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OneXdp {
    mode: u32,
    prog: BpfProgram,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BpfProgram {
    id: u64,
    name: Option<String>,
    tag: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FilterEntry {
    kind: String,
    options: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QdiscEntry {
    kind: String,
    dev: String,
    root: bool,
    parent: String,
}

impl From<BpfProgram> for Program {
    fn from(program: BpfProgram) -> Program {
        Program {
            id: program.id,
            name: program.name.as_deref().map_or("?".into(), word),
            tag: shown(&program.tag),
        }
    }
}

impl Route {
    fn way(&self, title: &str) -> Way {
        let address = title.rsplit(' ').next().unwrap_or_default();
        let hops = self
            .nexthops
            .iter()
            .map(|hop| (&hop.gateway, &hop.via, &hop.dev));
        let own = [(&self.gateway, &self.via, &self.dev)];
        let all: Vec<_> = own
            .into_iter()
            .chain(hops)
            .filter(|hop| hop.2.is_some())
            .collect();
        let mut devices: Vec<String> = all
            .iter()
            .flat_map(|hop| hop.2.as_deref().map(shown))
            .collect();
        devices.dedup();
        let via = all.iter().filter_map(|(gateway, via, _)| {
            gateway
                .as_deref()
                .or(via.as_ref().map(|via| via.host.as_str()))
        });
        let via: Vec<String> = via.map(shown).collect();
        let table = match &self.table {
            Some(Value::String(name)) => shown(name),
            Some(Value::Number(number)) => number.to_string(),
            _ => "main".into(),
        };
        let mut special = Vec::new();
        if self.nexthops.len() > 1 {
            special.push((
                "multipath",
                format!("{} next hops for {address}", self.nexthops.len()),
            ));
        }
        let encap = self
            .encap
            .as_ref()
            .or(self.nexthops.iter().find_map(|hop| hop.encap.as_ref()));
        if let Some(encap) = encap {
            let program = self.out["prog"].as_str().or(self.out.as_str());
            let program = program.map_or(String::new(), |program| format!(" {}", shown(program)));
            special.push((
                "encap",
                format!("encapsulation {}{program} for {address}", shown(encap)),
            ));
        }
        if !["", "unicast"].contains(&self.kind.as_str()) {
            special.push(("type", format!("{} for {address}", shown(&self.kind))));
        }
        if !["main", "local", "default"].contains(&table.as_str()) {
            special.push(("table", format!("table {table} for {address}")));
        }
        if let Some(id) = self.nhid {
            special.push(("nexthop", format!("next hop object {id} for {address}")));
        }
        let via = if via.is_empty() {
            String::new()
        } else {
            format!("via {}, ", via.join(" and "))
        };
        let says = match devices.is_empty() {
            true => shown(&self.kind),
            false => format!("{via}device {}, table {table}", devices.join(" and ")),
        };
        Way {
            address: shown(address),
            says: format!("{}: {says}", shown(title)),
            devices,
            special,
        }
    }
}

/// Types of routes that drop, by the error with which `ip route get` answers for them.
const DROPPING: [(&str, &str); 3] = [
    ("No route to host", "unreachable"),
    ("Permission denied", "prohibit"),
    ("Invalid argument", "blackhole"),
];

impl Configuration {
    pub(in super::super) fn ways(&mut self, answer: &str) {
        for (title, text) in sections(answer) {
            let known = self
                .path
                .ways
                .iter()
                .any(|way| title.ends_with(&format!(" {}", way.address)));
            match entries::<Route>(text.as_bytes()).first() {
                Some(route) if !known => enter(&mut self.path.ways, route.way(title)),
                Some(_) => {}
                None => {
                    let why = lines(text).last().unwrap_or("no answer");
                    let drops = DROPPING.iter().find(|(error, _)| why.ends_with(error));
                    match drops {
                        Some((_, kind)) => {
                            let route = Route {
                                kind: (*kind).into(),
                                ..Route::default()
                            };
                            enter(&mut self.path.ways, route.way(title));
                        }
                        None => self.lacks("way", &format!("{title}: {why}")),
                    }
                }
            }
        }
    }

    pub(in super::super) fn policy(&mut self, answer: &str) {
        for (title, text) in sections(answer) {
            if title.ends_with("rule show") {
                self.policy_rules(text);
            } else {
                self.ipsec(title, text);
            }
        }
    }

    fn policy_rules(&mut self, text: &str) {
        /// The rules that every system has: priority and table.
        const OWN: [(u64, &str); 3] = [(0, "local"), (32_766, "main"), (32_767, "default")];
        for rule in entries::<BTreeMap<String, Value>>(text.as_bytes()) {
            let priority = rule.get("priority").and_then(Value::as_u64).unwrap_or(0);
            let table = rule
                .get("table")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let plain = ["priority", "src", "table", "protocol"];
            let is_own = OWN.contains(&(priority, table))
                && rule.keys().all(|key| plain.contains(&key.as_str()))
                && rule.get("src").and_then(Value::as_str) == Some("all");
            if is_own {
                continue;
            }
            let value = |value: &Value| match value {
                Value::String(text) => shown(text),
                Value::Null => String::new(),
                other => shown(&other.to_string()),
            };
            let words = rule.iter().filter(|(key, _)| *key != "priority");
            let words: Vec<String> = words
                .map(|(key, of)| format!("{} {}", shown(key), value(of)).trim_end().into())
                .collect();
            enter(
                &mut self.path.rules,
                format!("{priority}: {}", words.join(" ")),
            );
        }
    }

    /// `SPD IN  0 OUT 0 FWD 1`, `SAD count 0`.
    fn ipsec(&mut self, title: &str, text: &str) {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let number = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse::<u64>().ok()
        };
        let names = [
            ("IN", "in"),
            ("OUT", "out"),
            ("FWD", "forward"),
            ("count", "states"),
        ];
        let known = names
            .iter()
            .filter_map(|(theirs, ours)| Some((ours.to_string(), number(theirs)?)));
        let known: BTreeMap<String, u64> = known.collect();
        // A kernel without IPsec has no such socket.
        if known.is_empty() && !text.contains("not supported") {
            self.lacks("policy", &format!("{title}: {}", text.trim()));
        }
        self.path
            .ipsec
            .extend(known.into_iter().filter(|(_, n)| *n > 0));
    }

    /// The devices of `ip -d -j addr show`.
    pub(in super::super) fn devices(&mut self, answer: &str) {
        for link in entries::<Link>(answer.as_bytes()) {
            let mode = |mode| match mode {
                2 => "generic",
                3 => "hardware",
                _ => "driver",
            };
            let data = |name: &str| link.linkinfo.info_data.get(name);
            let below = data("link").and_then(Value::as_str).map(String::from);
            let xdp = link
                .xdp
                .into_iter()
                .flat_map(|xdp| match xdp.attached.is_empty() {
                    true => vec![(mode(xdp.mode), Program::from(xdp.prog))],
                    false => xdp
                        .attached
                        .into_iter()
                        .map(|one| (mode(one.mode), one.prog.into()))
                        .collect(),
                });
            let device = Device {
                index: link.ifindex,
                id: data("id").and_then(Value::as_u64),
                kind: shown(&link.linkinfo.info_kind),
                below: link.link.or(below).as_deref().map(shown),
                master: link.master.as_deref().map(shown),
                xdp: xdp.collect(),
                name: shown(&link.ifname),
            };
            enter(&mut self.path.devices, device);
        }
    }

    /// A line of `/proc/net/packet`: `0000000066 3 3 0003 2 1 0 0 1234`.
    pub(in super::super) fn packet_socket(&mut self, line: &str) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let protocol = words
            .get(3)
            .and_then(|word| u16::from_str_radix(word, 16).ok());
        let device = words.get(4).and_then(|word| word.parse().ok());
        if let Some(socket) = protocol.zip(device) {
            enter(&mut self.path.sockets, socket);
        }
    }

    pub(in super::super) fn traffic_control(&mut self, answer: &str) {
        for (title, text) in sections(answer) {
            if title == "qdisc" {
                for entry in entries::<QdiscEntry>(text.as_bytes()) {
                    let parent = if entry.root {
                        "root".into()
                    } else {
                        shown(&entry.parent)
                    };
                    let kind = shown(&entry.kind);
                    enter(
                        &mut self.path.qdiscs,
                        (shown(&entry.dev), Qdisc { kind, parent }),
                    );
                }
            } else if let Some(device) = title.strip_prefix("classes ") {
                let classes = lines(text)
                    .filter(|line| line.starts_with("class "))
                    .count() as u64;
                self.path.classes.insert(shown(device), classes);
            } else if let Some((direction, device)) = title.split_once(' ') {
                for entry in entries::<FilterEntry>(text.as_bytes()) {
                    let filter = filter(direction, device, entry);
                    filter
                        .into_iter()
                        .for_each(|filter| enter(&mut self.path.filters, filter));
                }
            }
        }
    }

    pub(in super::super) fn hooks(&mut self, answer: &str) {
        let all = sections(answer);
        if !all
            .iter()
            .any(|(title, text)| *title == "hooks" && !text.trim().is_empty())
        {
            self.lacks("hooks", "nft or the kernel does not list them");
        }
        for (title, text) in all {
            match title {
                // The number of a queue is the first of a line's numbers.
                "nfnetlink_queue" => {
                    let number =
                        |line: &str| line.split_ascii_whitespace().next()?.parse::<u32>().ok();
                    self.path
                        .queues
                        .extend(lines(text).filter_map(number).take(64));
                }
                "hooks" => self.netfilter_hooks(text),
                _ => {}
            }
        }
    }

    /// `-0000000200 ipv4_conntrack_in [nf_conntrack]` below `hook prerouting {`. Chains of nftables are known from its rules.
    fn netfilter_hooks(&mut self, text: &str) {
        let is_priority = |word: &str| word.trim_start_matches(['-', '+']).parse::<u32>().is_ok();
        let mut hook = String::new();
        for line in lines(text).map(str::trim) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["hook", name, ..] => hook = shown(name),
                [priority, function, ..]
                    if function != "chain"
                        && self.path.hooks.len() < 512
                        && is_priority(priority) =>
                {
                    self.path.hooks.insert((hook.clone(), shown(function)));
                }
                _ => {}
            }
        }
    }

    /// Answers of bpftool, and those that linerate gives itself on its own machine (`tcx`).
    pub(in super::super) fn programs(&mut self, answer: &str) {
        let all = sections(answer);
        let part = |name: &str| {
            let found = all.iter().find(|(title, _)| *title == name);
            found.map_or("", |(_, text)| *text)
        };
        let programs: BTreeMap<u64, Program> = entries::<BpfProgram>(part("prog").as_bytes())
            .into_iter()
            .map(|program| (program.id, program.into()))
            .collect();
        let program = |of: &Map<String, Value>| {
            let id = ["prog_id", "id"]
                .iter()
                .find_map(|key| of.get(*key)?.as_u64())?;
            let text = |key: &str| of.get(key).and_then(Value::as_str).map(shown);
            Some(programs.get(&id).cloned().unwrap_or_else(|| Program {
                id,
                name: text("name").unwrap_or("?".into()),
                tag: text("tag").unwrap_or_default(),
            }))
        };
        let of_net = entries::<Map<String, Value>>(part("net").as_bytes());
        let of_net = of_net.iter().filter_map(|all| all.get("tc")?.as_array());
        let of_net: Vec<Map<String, Value>> = of_net
            .flatten()
            .filter_map(|one| one.as_object().cloned())
            .collect();
        for one in of_net.iter().chain(&entries(part("tcx").as_bytes())) {
            let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
            // Programs of filters are known from these.
            if !text("kind").starts_with("tcx") && !text("kind").starts_with("netkit") {
                continue;
            }
            let Some(program) = program(one) else {
                continue;
            };
            let (device, place) = (Some(shown(text("devname"))), shown(text("kind")));
            enter(
                &mut self.path.programs,
                Attached {
                    device,
                    place,
                    program,
                },
            );
        }
        for link in entries::<Map<String, Value>>(part("link").as_bytes()) {
            let text = |key: &str| link.get(key).and_then(Value::as_str).unwrap_or_default();
            let place = match text("type") {
                "netfilter" => format!("netfilter {}", text("hook")),
                "tracing" => format!("tracing {}", text("attach_type")),
                "raw_tracepoint" => format!("tracepoint {}", text("tp_name")),
                "perf_event" | "kprobe_multi" => text("type").replace('_', " "),
                _ => continue,
            };
            let Some(program) = program(&link) else {
                continue;
            };
            let place = shown(place.trim());
            enter(
                &mut self.path.programs,
                Attached {
                    device: None,
                    place,
                    program,
                },
            );
        }
    }

    pub(in super::super) fn tracing(&mut self, answer: &str) {
        if sections(answer).is_empty() && !answer.trim().is_empty() {
            self.lacks("tracing", answer.trim());
        }
        for (title, text) in sections(answer) {
            let file = title.rsplit('/').next().unwrap_or_default();
            let kind = match file {
                "current_tracer" => "tracer",
                "set_event" => "event",
                "kprobe_events" | "uprobe_events" => "probe",
                _ => "function",
            };
            for line in lines(text).map(str::trim).filter(|line| !line.is_empty()) {
                if line.starts_with("head: ") {
                    self.lacks("tracing", line);
                } else if line != "nop" {
                    let name = line.split(' ').next().unwrap_or_default();
                    enter(
                        &mut self.path.tracing,
                        Traced {
                            kind,
                            name: word(name),
                        },
                    );
                }
            }
        }
    }
}

/// A filter; `None` for the entries that stand for a kind or for a table of others.
fn filter(direction: &str, device: &str, entry: FilterEntry) -> Option<Filter> {
    let options = entry.options.as_object()?;
    if options.contains_key("ht_divisor") {
        return None;
    }
    let program = options
        .get("prog")
        .and_then(|program| BpfProgram::deserialize(program).ok());
    let actions = options.get("actions").and_then(Value::as_array);
    let action = |action: &Value| {
        let kind = shown(action.get("kind")?.as_str()?);
        Some((
            kind,
            action.get("to_dev").and_then(Value::as_str).map(shown),
        ))
    };
    Some(Filter {
        device: shown(device),
        direction: shown(direction),
        kind: shown(&entry.kind),
        program: program.map(Program::from),
        actions: actions
            .into_iter()
            .flatten()
            .filter_map(action)
            .take(32)
            .collect(),
    })
}
