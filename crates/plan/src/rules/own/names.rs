//! The interfaces and networks of a rule file, and their meanings in a lab.

use super::tokens::{Token, TokenKind};
use crate::lab::types::HostAddress;
use crate::rules::Firewall;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;

/// Meaning of a rule file's name in a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// The interface towards the generator, the network behind it, or the DUT's address there.
    In,
    /// The interface towards the receiver, the network behind it, or the DUT's address there.
    Out,
    /// A network that no test frame is from or to.
    Elsewhere,
}

impl Meaning {
    /// The names of the meanings, with descriptions.
    pub const NAMES: [(&str, &str); 3] = [
        (
            "in",
            "the generator's side: its interface, the network behind it, or the DUT's address there",
        ),
        ("out", "the receiver's side"),
        ("elsewhere", "a network that no test frame is from or to"),
    ];
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One end of a lab's DUT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabEnd {
    /// Interface of this end.
    pub interface: String,
    /// The networks of the test frames behind it, one for each IP version.
    pub networks: Vec<String>,
    /// The DUT's addresses.
    pub addresses: Vec<String>,
}

/// An address with the length of its network; none for an address alone.
pub(super) type Net = (IpAddr, Option<u8>);

/// A name in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub name: String,
    line: usize,
    /// The side of frames that come in or go out by it; `None` if the rule does not name it, or excludes it.
    end: Option<Meaning>,
}

/// Words before the name of something that is no interface.
const NFT_OBJECTS: [&str; 19] = [
    "table", "chain", "set", "map", "jump", "goto", "define", "redefine", "counter", "quota",
    "limit", "name", "inet", "ip", "ip6", "arp", "bridge", "netdev", "comment",
];
const IPTABLES_INTERFACE: [&str; 6] = [
    "-i",
    "--in-interface",
    "--physdev-in",
    "-o",
    "--out-interface",
    "--physdev-out",
];
const TRANSLATES: [&str; 7] = [
    "masquerade",
    "snat",
    "MASQUERADE",
    "SNAT",
    "nat",
    "nat-to",
    "binat",
];
const ACCEPTS: [&str; 5] = ["accept", "ACCEPT", "pass", "allow", "permit"];
/// Networks that, apart from the test networks, appear only in lists of forbidden source addresses.
const BOGONS: [&str; 5] = [
    "192.0.2.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "100.64.0.0/10",
];
/// Words of a value, or of a line, that are looked at: a file of one endless line must not take for ever.
const MOST_WORDS: usize = 200;

pub(super) fn net(text: &str) -> Option<Net> {
    let HostAddress { address, length } = text.parse().ok()?;
    Some((address, length))
}

/// A file's words, and the values of its variables and sets.
pub(super) struct Names<'t> {
    firewall: Firewall,
    tokens: Vec<Token<'t>>,
    values: HashMap<String, Vec<&'t str>>,
    /// Lines that translate addresses, and lines that accept frames.
    lines: [HashSet<usize>; 2],
}

impl<'t> Names<'t> {
    pub fn new(firewall: Firewall, tokens: Vec<Token<'t>>) -> Self {
        let lines = [&TRANSLATES[..], &ACCEPTS].map(|words| {
            tokens
                .iter()
                .filter(|t| t.is(words))
                .map(|t| t.line)
                .collect::<HashSet<usize>>()
        });
        let mut names = Names {
            firewall,
            tokens,
            values: HashMap::new(),
            lines,
        };
        for at in 0..names.tokens.len() {
            if let Some((name, value)) = names.variable(at) {
                names.values.insert(name, value);
            }
        }
        names
    }

    fn word(&self, at: usize) -> &'t str {
        self.tokens
            .get(at)
            .filter(|t| t.kind != TokenKind::Sign)
            .map_or("", |t| t.text)
    }

    fn sign(&self, at: usize, sign: &str) -> bool {
        self.tokens.get(at).is_some_and(|t| t.is_sign(sign))
    }

    /// The variable or set that begins here: `define lan = { ... }`, `set lan { ... elements = { ... } }`, `lan = "em1"`.
    fn variable(&self, at: usize) -> Option<(String, Vec<&'t str>)> {
        let token = &self.tokens[at];
        match self.firewall {
            Firewall::Nftables if token.is(&["define", "redefine"]) && self.sign(at + 2, "=") => {
                Some((
                    format!("${}", self.word(at + 1)),
                    self.value(at + 3, false).0,
                ))
            }
            Firewall::Nftables if token.is(&["set"]) && self.sign(at + 2, "{") => {
                let within = self.tokens[at..]
                    .iter()
                    .take(MOST_WORDS)
                    .take_while(|t| !t.is_sign("}"));
                let elements = at + within.take_while(|t| !t.is(&["elements"])).count();
                if !self.tokens.get(elements)?.is(&["elements"]) {
                    return None;
                }
                Some((
                    format!("@{}", self.word(at + 1)),
                    self.value(elements + 2, false).0,
                ))
            }
            Firewall::Pf | Firewall::OpenbsdPf | Firewall::Ipfw
                if token.kind == TokenKind::Word && self.sign(at + 1, "=") =>
            {
                let line = self.tokens[at..]
                    .iter()
                    .take(MOST_WORDS)
                    .skip(2)
                    .take_while(|t| t.line == token.line);
                let words = line.filter(|t| t.kind != TokenKind::Sign).map(|t| t.text);
                Some((format!("${}", token.text), words.collect()))
            }
            _ => None,
        }
    }

    /// The words of a value that begins here, and whether it is negated. `keys`: of a map, those that are looked up.
    fn value(&self, mut at: usize, keys: bool) -> (Vec<&'t str>, bool) {
        let mut negated = false;
        loop {
            match self.tokens.get(at) {
                Some(t) if t.is_sign("!") => negated = true,
                Some(t) if t.is_sign("=") || t.is_sign("\"") || t.is_sign("(") => {}
                Some(t) if t.is(&["vmap", "map", "==", "eq"]) => {}
                Some(t) if t.is(&["not", "ne", "!"]) => negated = true,
                _ => break,
            }
            at += 1;
        }
        if self.word(at) == "$" && self.sign(at + 1, "{") {
            let name = format!("${}", self.word(at + 2));
            return (self.values.get(&name).cloned().unwrap_or_default(), negated);
        }
        if !self.sign(at, "{") {
            return (
                Some(self.word(at))
                    .filter(|w| !w.is_empty())
                    .into_iter()
                    .collect(),
                negated,
            );
        }
        let mut words = Vec::new();
        let mut is_value = false;
        for token in self.tokens[at + 1..]
            .iter()
            .take_while(|t| !t.is_sign("}"))
            .take(MOST_WORDS)
        {
            match token.kind {
                TokenKind::Sign if token.text == ":" => is_value = keys,
                TokenKind::Sign if token.text == "," => is_value = false,
                TokenKind::Sign => {}
                _ if is_value => {}
                _ => words.push(token.text),
            }
        }
        (words, negated)
    }

    /// The values of words, with variables and sets resolved.
    fn resolved(&self, words: Vec<&'t str>) -> Vec<&'t str> {
        let (mut found, mut open, mut left) = (Vec::new(), words, MOST_WORDS);
        open.reverse();
        while let Some(word) = open.pop().filter(|_| left > 0) {
            left -= 1;
            match self.values.get(word) {
                Some(values) => open.extend(values.iter().rev().copied().take(left)),
                None => found.push(word),
            }
        }
        found
    }

    /// The interfaces, as often as rules name them.
    pub fn interfaces(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for at in 0..self.tokens.len() {
            let Some(end) = self.names_interface(at) else {
                continue;
            };
            let (words, negated) = self.value(at + 1, true);
            // `iifname . oifname { a . b }` has both sides in one value.
            let joined = self.word(at + 1) == "." || at > 0 && self.word(at - 1) == ".";
            let negated = negated || at > 0 && self.sign(at - 1, "!");
            let end = end.filter(|_| !negated && !joined);
            for name in self
                .resolved(words)
                .into_iter()
                .filter(|name| is_interface(name))
            {
                seen.push(Seen {
                    name: name.into(),
                    line: self.tokens[at].line,
                    end,
                });
            }
        }
        seen
    }

    /// Whether an interface's name follows, and on which side of the rule it is.
    fn names_interface(&self, at: usize) -> Option<Option<Meaning>> {
        let token = &self.tokens[at];
        let end = |inward: &[&str], outward: &[&str], neither: &[&str]| {
            let found = [
                (inward, Some(Meaning::In)),
                (outward, Some(Meaning::Out)),
                (neither, None),
            ];
            found
                .into_iter()
                .find(|(words, _)| token.is(words))
                .map(|(_, end)| end)
        };
        match self.firewall {
            Firewall::Nftables => end(
                &["iif", "iifname"],
                &["oif", "oifname"],
                &["device", "devices", "ibrname", "obrname"],
            ),
            Firewall::Iptables => end(
                &IPTABLES_INTERFACE[..2],
                &IPTABLES_INTERFACE[3..5],
                &["--physdev-in", "--physdev-out"],
            ),
            Firewall::Ipfw => end(&["recv"], &["xmit", "if"], &["via"]),
            Firewall::Pf | Firewall::OpenbsdPf | Firewall::Ipf => {
                if !token.is(&["on"]) {
                    return None;
                }
                let inward = at > 0 && self.word(at - 1) == "in";
                let outward = at > 0 && ["out", "nat", "binat"].contains(&self.word(at - 1));
                Some(if inward {
                    Some(Meaning::In)
                } else {
                    outward.then_some(Meaning::Out)
                })
            }
        }
    }

    /// Which of two interfaces leads where: translated frames leave by the outer one, or a rule accepts from one to the other; or else the
    /// first is the inner one. With the reason.
    pub fn guessed_ends(
        &self,
        seen: &[Seen],
        names: &[&str],
    ) -> Option<(BTreeMap<String, Meaning>, String)> {
        let [translates, accepts] = &self.lines;
        let goes = |seen: &&Seen, end| seen.end == Some(end);
        let out = seen
            .iter()
            .find(|s| goes(s, Meaning::Out) && translates.contains(&s.line));
        let accepted = || {
            let outs: HashMap<usize, &str> = seen
                .iter()
                .filter(|s| goes(s, Meaning::Out))
                .map(|s| (s.line, s.name.as_str()))
                .collect();
            let to_other = |s: &&Seen| outs.get(&s.line).is_some_and(|out| *out != s.name);
            seen.iter()
                .find(|s| goes(s, Meaning::In) && accepts.contains(&s.line) && to_other(s))
        };
        let other = |name: &str| names.iter().find(|n| **n != name).map(|n| n.to_string());
        let (inside, outside, why) = match (names, out) {
            ([_], Some(out)) => (
                None,
                out.name.clone(),
                "translated frames leave by it".to_string(),
            ),
            ([_, _], Some(out)) => (
                other(&out.name),
                out.name.clone(),
                format!("translated frames leave by {}", out.name),
            ),
            ([first, second], None) => {
                match accepted().and_then(|a| Some((a.name.clone(), other(&a.name)?))) {
                    Some((from, to)) => (
                        Some(from.clone()),
                        to.clone(),
                        format!("a rule accepts from {from} to {to}"),
                    ),
                    None => (
                        Some(first.to_string()),
                        second.to_string(),
                        "in the order of the file".to_string(),
                    ),
                }
            }
            _ => return None,
        };
        let inside = inside.map(|name| (name, Meaning::In));
        Some((
            inside
                .into_iter()
                .chain([(outside, Meaning::Out)])
                .collect(),
            why,
        ))
    }

    /// The private network of an IP version that frames come from as the rules see it: the source of translated frames, or else
    /// of frames accepted from the inner interface, or of any accepted frames.
    pub fn inner_network(&self, v4: bool, inside: Option<&str>, seen: &[Seen]) -> Option<&'t str> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            let token = &self.tokens[at];
            let source = match self.firewall {
                Firewall::Nftables => token.is(&["saddr"]),
                Firewall::Iptables => token.is(&["-s", "--source"]),
                _ => token.is(&["from"]),
            };
            let (words, negated) = if source {
                self.value(at + 1, true)
            } else {
                continue;
            };
            let network = self.resolved(words).into_iter().find(|w| is_private(w, v4));
            found.extend(
                network
                    .filter(|_| !negated)
                    .map(|network| (network, token.line)),
            );
        }
        let [translates, accepts] = &self.lines;
        let inward = |s: &&Seen| s.end == Some(Meaning::In) && Some(s.name.as_str()) == inside;
        let from_inside: HashSet<usize> = seen.iter().filter(inward).map(|s| s.line).collect();
        let pick = |fits: &dyn Fn(&usize) -> bool| {
            found
                .iter()
                .find(|(_, line)| fits(line))
                .map(|(network, _)| *network)
        };
        pick(&|line| translates.contains(line))
            .or_else(|| pick(&|line| accepts.contains(line) && from_inside.contains(line)))
            .or_else(|| pick(&|line| accepts.contains(line)))
    }

    /// Whether a network is listed among those that no frame may come from.
    pub fn lists_bogon(&self, network: &str) -> bool {
        let has = |wanted: &str| self.tokens.iter().any(|t| t.text == wanted);
        has(network) && BOGONS.into_iter().any(has)
    }

    /// Whether some word is in a test network.
    pub fn names_tests(&self, v4: bool) -> bool {
        self.tokens
            .iter()
            .filter_map(|t| net(t.text))
            .any(|(address, _)| is_test(address) && address.is_ipv4() == v4)
    }

    /// The text with the lab's names instead of those in the map.
    pub fn mapped(
        &self,
        text: &str,
        map: &BTreeMap<String, Meaning>,
        ends: &[LabEnd; 2],
    ) -> String {
        let (names, nets) = lookup(map);
        let (mut mapped, mut from) = (String::with_capacity(text.len()), 0);
        for (at, token) in self.tokens.iter().enumerate() {
            if let Some(replacement) = self
                .looked_up(at, &names, &nets)
                .and_then(|(_, m)| in_lab(m, token.text, ends))
            {
                mapped += &text[from..token.at];
                mapped += replacement;
                from = token.at + token.text.len();
            }
        }
        mapped + &text[from..]
    }

    /// The names of a map that are not in the file.
    pub fn missing<'m>(&self, map: &'m BTreeMap<String, Meaning>) -> Vec<&'m str> {
        let (names, nets) = lookup(map);
        let there: HashSet<&str> = (0..self.tokens.len())
            .filter_map(|at| self.looked_up(at, &names, &nets))
            .map(|(name, _)| name)
            .collect();
        map.keys()
            .map(String::as_str)
            .filter(|name| !there.contains(name))
            .collect()
    }

    fn looked_up<'m>(
        &self,
        at: usize,
        names: &Lookup<'m, &str>,
        nets: &Lookup<'m, Net>,
    ) -> Option<(&'m str, Meaning)> {
        let word = self.word(at);
        match net(word) {
            Some(net) => nets.get(&net).copied(),
            None => names
                .get(word)
                .copied()
                .filter(|_| self.may_be_interface(at)),
        }
    }

    fn may_be_interface(&self, at: usize) -> bool {
        let before = || {
            (0..at)
                .rev()
                .map(|i| &self.tokens[i])
                .find(|t| !t.is_sign("\"") && !t.is_sign("!"))
        };
        match self.firewall {
            Firewall::Nftables => {
                !before().is_some_and(|t| t.is(&NFT_OBJECTS) || t.is(&["flowtable"]))
            }
            Firewall::Iptables => before().is_some_and(|t| t.is(&IPTABLES_INTERFACE)),
            _ => !self.sign(at + 1, "="),
        }
    }
}

type Lookup<'m, K> = HashMap<K, (&'m str, Meaning)>;

/// A map's names, and its networks, to be looked up.
fn lookup(map: &BTreeMap<String, Meaning>) -> (Lookup<'_, &str>, Lookup<'_, Net>) {
    let all = || {
        map.iter()
            .map(|(name, meaning)| (name.as_str(), (name.as_str(), *meaning)))
    };
    let nets = all()
        .filter_map(|(name, meaning)| Some((net(name)?, meaning)))
        .collect();
    (
        all().filter(|(name, _)| net(name).is_none()).collect(),
        nets,
    )
}

/// The lab's name for a word.
fn in_lab<'e>(meaning: Meaning, word: &str, ends: &'e [LabEnd; 2]) -> Option<&'e str> {
    let end = match meaning {
        Meaning::In => &ends[0],
        Meaning::Out => &ends[1],
        Meaning::Elsewhere => {
            return Some(if word.contains(':') {
                "2001:200::/48"
            } else {
                "198.20.0.0/15"
            });
        }
    };
    let Some((address, length)) = net(word) else {
        return Some(&end.interface);
    };
    let all = if length.is_some() {
        &end.networks
    } else {
        &end.addresses
    };
    all.iter()
        .find(|text| text.contains(':') == address.is_ipv6())
        .map(String::as_str)
}

fn is_interface(word: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-@*+".contains(c);
    let loopback = matches!(word, "lo" | "lo0");
    !loopback
        && word.len() <= 15
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(fine)
}

fn is_test(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.octets()[0] == 198 && a.octets()[1] & 0xfe == 18,
        IpAddr::V6(a) => a.segments()[..3] == [0x2001, 2, 0],
    }
}

fn is_private(word: &str, v4: bool) -> bool {
    match net(word) {
        Some((IpAddr::V4(a), Some(length))) => v4 && a.is_private() && length < 31,
        Some((IpAddr::V6(a), Some(length))) => {
            !v4 && a.segments()[0] & 0xfe00 == 0xfc00 && length < 127
        }
        _ => false,
    }
}
