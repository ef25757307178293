//! The rules of packet filters, counted: `nft list ruleset`, `iptables-save`, `pfctl -sr`, `ipfw list`.

use crate::systems::text::{sections, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Chains that are kept of a rule set, and jumps of a chain.
const MOST: usize = 20_000;
/// The hooks of forwarded frames.
const FORWARDING: [&str; 5] = ["ingress", "prerouting", "forward", "postrouting", "egress"];

/// The rules of a packet filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RuleSet {
    /// `nftables`, `iptables`, `pf`, `ipfw`, `ipf`.
    pub filter: String,
    pub chains: Vec<Chain>,
    /// Sets, maps and tables that have names.
    pub sets: u64,
    /// Flow tables: established connections pass by the rules.
    pub flow_tables: Vec<String>,
}

/// A list of rules that are tried one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Chain {
    /// `ip`, `ip6`, `inet`, `bridge`, `netdev`; empty where the filter knows none.
    pub family: String,
    pub table: String,
    pub name: String,
    /// The place in the way of a packet; `None`: only other chains lead there.
    pub hook: Option<String>,
    pub priority: Option<String>,
    pub policy: Option<String>,
    pub rules: u64,
    /// Rules that look an address or a port up in a set, map or table.
    pub lookups: u64,
    /// Rules that count packets.
    pub counting: u64,
    /// Rules that log packets.
    pub logging: u64,
    /// Rules that need connections to be tracked.
    pub tracking: u64,
    /// Chains that its rules lead to.
    pub leads_to: BTreeSet<String>,
}

impl RuleSet {
    /// The chains that forwarded frames can come to.
    pub fn forwarding(&self) -> Vec<&Chain> {
        let of_hook = |chain: &&Chain| {
            chain
                .hook
                .as_deref()
                .is_some_and(|hook| FORWARDING.contains(&hook))
        };
        let mut found: Vec<&Chain> = self.chains.iter().filter(of_hook).collect();
        let mut at = 0;
        while let Some(from) = found.get(at).copied() {
            let next = self.chains.iter().filter(|to| {
                (&to.family, &to.table) == (&from.family, &from.table)
                    && from.leads_to.contains(&to.name)
                    && !found.iter().any(|known| std::ptr::eq(*known, *to))
            });
            let next: Vec<&Chain> = next.collect();
            found.extend(next);
            at += 1;
        }
        found
    }

    /// Among these the one with most rules.
    pub fn longest(&self) -> Option<&Chain> {
        self.forwarding()
            .into_iter()
            .max_by_key(|chain| chain.rules)
    }

    /// Whether a rule that forwarded frames can come to needs connections to be tracked.
    pub fn tracks(&self) -> bool {
        self.forwarding().iter().any(|chain| chain.tracking > 0)
    }

    /// Whether it has a rule.
    fn has_rules(&self) -> bool {
        self.chains.iter().any(|chain| chain.rules > 0) || !self.flow_tables.is_empty()
    }

    /// `None` where it has no rule.
    pub(super) fn some(self) -> Option<RuleSet> {
        self.has_rules().then_some(self)
    }

    fn rule(&mut self, text: &str, signs: &Signs) {
        let Some(chain) = self.chains.last_mut() else {
            return;
        };
        let words: Vec<&str> = words(text).collect();
        let has = |signs: &[&str]| words.iter().any(|word| signs.contains(word));
        let begins = |prefix| words.iter().any(|word| word.starts_with(prefix));
        chain.rules += 1;
        chain.lookups += u64::from(has(signs.lookup) || signs.prefix.is_some_and(begins));
        chain.counting += u64::from(signs.counts || has(&["counter"]));
        chain.logging += u64::from(has(signs.log));
        chain.tracking += u64::from(has(signs.track));
        chain.jumps(&words, signs);
    }
}

impl Chain {
    /// The chains that the words of a rule, or of a line of one, lead to.
    fn jumps(&mut self, words: &[&str], signs: &Signs) {
        let jumps = words
            .iter()
            .zip(words.iter().skip(1))
            .filter(|(word, _)| signs.jump.contains(word));
        // A verdict map has several: `{ 1 : jump a, 2 : jump b }`.
        let names = jumps.map(|(_, to)| shown(to.trim_end_matches([',', '}', ';'])));
        let room = MOST.saturating_sub(self.leads_to.len());
        self.leads_to.extend(names.take(room));
    }
}

/// Words by which a filter's rules are understood.
struct Signs {
    lookup: &'static [&'static str],
    /// The beginning of a word that stands for a lookup.
    prefix: Option<&'static str>,
    log: &'static [&'static str],
    track: &'static [&'static str],
    jump: &'static [&'static str],
    /// Whether every rule counts.
    counts: bool,
}

const NFT: Signs = Signs {
    lookup: &["{", "vmap", "map"],
    prefix: Some("@"),
    log: &["log", "\"LOG\"", "\"NFLOG\""],
    track: &[
        "ct",
        "masquerade",
        "snat",
        "dnat",
        "redirect",
        "\"conntrack\"",
        "\"state\"",
        "\"connmark\"",
        "\"MASQUERADE\"",
        "\"SNAT\"",
        "\"DNAT\"",
        "\"REDIRECT\"",
    ],
    jump: &["jump", "goto"],
    counts: false,
};

const IPTABLES: Signs = Signs {
    lookup: &["--match-set", "multiport"],
    prefix: None,
    log: &["LOG", "NFLOG"],
    track: &[
        "conntrack",
        "state",
        "connmark",
        "MASQUERADE",
        "SNAT",
        "DNAT",
        "REDIRECT",
    ],
    jump: &["-j", "-g"],
    counts: true,
};

const PF: Signs = Signs {
    lookup: &[],
    prefix: Some("<"),
    log: &["log"],
    track: &[
        "keep", "modulate", "synproxy", "nat", "rdr", "binat", "nat-to", "rdr-to", "binat-to",
    ],
    jump: &[],
    counts: true,
};

const IPFW: Signs = Signs {
    lookup: &[],
    prefix: Some("table("),
    log: &["log"],
    track: &["keep-state", "check-state", "limit", "nat", "record-state"],
    jump: &[],
    counts: true,
};

/// `pfctl -sr`. Every rule is tried; the last that matches decides. One that passes keeps state unless it says `no state` (OpenBSD from
/// 4.1 on, which does not print it, and FreeBSD from 7.0 on).
pub fn pf(text: &str) -> Option<RuleSet> {
    const BEGINNINGS: [&str; 9] = [
        "pass",
        "block",
        "match",
        "scrub",
        "anchor",
        "nat",
        "rdr",
        "binat",
        "antispoof",
    ];
    // With -v, each begins with its number.
    let plain = |line| match str::split_once(line, ' ') {
        Some((number, rule)) if number.starts_with('@') => rule,
        _ => line,
    };
    let is_rule =
        |line: &&str| BEGINNINGS.contains(&line.split([' ', '-']).next().unwrap_or_default());
    let whole = |line: &str| match line.starts_with("pass ") && !line.contains(" state") {
        true => format!("{line} keep state"),
        false => line.to_string(),
    };
    let rules: Vec<String> = text.lines().map(plain).filter(is_rule).map(whole).collect();
    one_chain("pf", rules.iter().map(String::as_str), &PF)
}

/// `ipfstat -io`: `pass in quick on lo0`. The last rule that matches decides, unless it is quick.
pub fn ipf(text: &str) -> Option<RuleSet> {
    let is_rule = |line: &&str| {
        ["pass", "block", "count", "log"].contains(&line.split(' ').next().unwrap_or_default())
    };
    one_chain("ipf", text.lines().map(str::trim).filter(is_rule), &PF)
}

/// `ipfw list`: `00100 allow ip from any to any keep-state :default`.
pub fn ipfw(text: &str) -> Option<RuleSet> {
    let rule = |line: &str| {
        let (number, rule) = line.split_once(' ')?;
        number.parse::<u32>().ok().map(|_| ())?;
        Some(rule.to_string())
    };
    let rules: Vec<String> = text.lines().map_while(rule).take(MOST * 10).collect();
    // The last one is always there.
    if rules.len() < 2 {
        None
    } else {
        one_chain("ipfw", rules.iter().map(String::as_str), &IPFW)
    }
}

/// A filter without chains: forwarded packets pass by all rules.
fn one_chain<'a>(
    filter: &str,
    rules: impl Iterator<Item = &'a str>,
    signs: &Signs,
) -> Option<RuleSet> {
    let chain = Chain {
        name: "rules".into(),
        hook: Some("forward".into()),
        ..Chain::default()
    };
    let mut found = RuleSet {
        filter: filter.into(),
        chains: vec![chain],
        ..RuleSet::default()
    };
    rules.for_each(|rule| found.rule(rule, signs));
    found.some()
}

/// Words outside of comments and prefixes; a name in quotation marks is one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let quoted = rest
            .strip_prefix('"')
            .and_then(|inner| inner.find('"'))
            .map(|end| end + 2);
        let end = quoted
            .or_else(|| rest.find(char::is_whitespace))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// By how much a line goes deeper into braces.
fn depth(line: &str) -> i32 {
    let mut in_quotes = false;
    line.chars().fold(0, |depth, c| {
        in_quotes ^= c == '"';
        match c {
            '{' if !in_quotes => depth + 1,
            '}' if !in_quotes => depth - 1,
            _ => depth,
        }
    })
}

/// `nft -s -t list ruleset`, with or without rules.
pub fn nftables(text: &str) -> RuleSet {
    let mut found = RuleSet {
        filter: "nftables".into(),
        ..RuleSet::default()
    };
    let (mut level, mut table, mut in_chain) = (0, (String::new(), String::new()), false);
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut first = line.split_ascii_whitespace();
        match (level, first.next().unwrap_or_default()) {
            (0, "table") => {
                let mut part = || first.next().map(shown).unwrap_or_default();
                table = (part(), part());
            }
            (1, object) => {
                let name = first.next().map(shown).unwrap_or_default();
                in_chain = object == "chain" && found.chains.len() < MOST;
                match object {
                    "set" | "map" => found.sets += 1,
                    "flowtable" if found.flow_tables.len() < MOST => found.flow_tables.push(name),
                    "chain" if in_chain => {
                        let (family, table) = table.clone();
                        found.chains.push(Chain {
                            family,
                            table,
                            name,
                            ..Chain::default()
                        });
                    }
                    _ => {}
                }
            }
            (2, "type") if in_chain && line.contains(" hook ") => {
                base(line, found.chains.last_mut())
            }
            (2, "}") => {}
            (2, word) if in_chain && word != "comment" => found.rule(line, &NFT),
            // A rule with a long set goes on over several lines.
            (3, _) if in_chain => {
                let words: Vec<&str> = words(line).collect();
                found
                    .chains
                    .last_mut()
                    .into_iter()
                    .for_each(|chain| chain.jumps(&words, &NFT));
            }
            _ => {}
        }
        level = (level + depth(line)).max(0);
    }
    found
}

/// `type filter hook forward priority filter - 10; policy accept;`
fn base(line: &str, chain: Option<&mut Chain>) {
    let Some(chain) = chain else { return };
    let after = |key: &str| {
        line.split_once(key)
            .map(|(_, rest)| rest.split(';').next().unwrap_or_default())
    };
    chain.hook = after(" hook ")
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .map(shown);
    chain.priority = after(" priority ").map(shown);
    chain.policy = after(" policy ").map(shown);
}

/// `iptables-save` of a family, `ip` or `ip6`.
fn iptables(found: &mut RuleSet, family: &str, text: &str) {
    found.filter = "iptables".into();
    let (mut table, first) = (String::new(), found.chains.len());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('*') {
            table = shown(name);
        } else if let Some((name, rest)) =
            line.strip_prefix(':').and_then(|line| line.split_once(' '))
        {
            if found.chains.len() >= MOST {
                continue;
            }
            let policy = rest
                .split(' ')
                .next()
                .filter(|policy| *policy != "-")
                .map(shown);
            let hook = policy.is_some().then(|| shown(name).to_ascii_lowercase());
            let (family, table, name) = (family.to_string(), table.clone(), shown(name));
            found.chains.push(Chain {
                family,
                table,
                name,
                hook,
                policy,
                ..Chain::default()
            });
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let name = rule.split(' ').next().unwrap_or_default();
            let place = found.chains[first..]
                .iter()
                .position(|c| c.table == table && c.name == name);
            let Some(place) = place else { continue };
            // Rules are entered into the last chain.
            let last = found.chains.len() - 1;
            found.chains.swap(first + place, last);
            found.rule(rule, &IPTABLES);
            found.chains.swap(first + place, last);
        }
    }
}

/// The tables of both families, with or without rules.
pub fn of_iptables(answer: &str) -> RuleSet {
    let mut found = RuleSet::default();
    sections(answer)
        .into_iter()
        .for_each(|(family, text)| iptables(&mut found, family, text));
    found
}
