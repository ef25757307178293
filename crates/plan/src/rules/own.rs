//! Rule files of administrators: their firewall, the meaning of their interfaces and networks in a lab, and their handling of
//! frames.
//!
//! A file is read as words, not as rules. Names are replaced word by word and line by line, so that line numbers in the
//! firewall's messages are those of the file.

mod names;
pub mod passed;
#[cfg(test)]
mod tests;
mod tokens;

use super::Firewall;
use crate::diagnostic::{Diagnostic, Lines, Span, listed};
use linerate_measure::record::RuleCount;
pub use names::{LabEnd, Meaning};
use names::{Names, net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokens::{Token, TokenKind, tokens};

/// The remedy where nothing shows a rule file's firewall.
pub const SAY_TOOL: &str = "begin a file of nftables with the line #!/usr/sbin/nft -f; in a plan, add tool = \"nftables\", \"iptables\", \"pf\" or \"ipfw\" to its [variants.NAME.rules]";

/// Most bytes of a rule file. Readers of files enforce it.
pub const MOST_BYTES: usize = 4 << 20;

/// A rule file, with the meanings of its names in a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFile {
    /// Name of the file, as it was given.
    pub file: String,
    /// Whose rules.
    pub firewall: Firewall,
    /// Interfaces and networks of the file, with their meanings in a lab.
    pub map: BTreeMap<String, Meaning>,
    /// Names of the map whose meanings are guesses, with the reason for each.
    pub guessed: BTreeMap<String, String>,
    /// Text of the file, as it is.
    pub text: String,
}

impl RuleFile {
    /// Reads the text of a file. Without a `firewall` it is recognised. Names without an entry in `map` are guessed if the file
    /// leaves no doubt.
    ///
    /// # Errors
    /// The fault in the file or in the map.
    pub fn read(
        file: &str,
        text: &str,
        firewall: Option<Firewall>,
        map: &BTreeMap<String, Meaning>,
    ) -> Result<RuleFile, Diagnostic> {
        let read = || {
            if let Some(at) = text.find('\0') {
                let at = Span {
                    start: at,
                    end: at + 1,
                };
                return Err(Diagnostic::at(at, "this file is not text").remedy("name a rule file"));
            }
            let firewall = firewall.map_or_else(|| recognised(text), Ok)?;
            let tokens = tokens(text, firewall)?;
            refuse(firewall, &tokens)?;
            let mut read = RuleFile {
                file: file.into(),
                firewall,
                map: map.clone(),
                guessed: BTreeMap::new(),
                text: text.into(),
            };
            read.complete(&Names::new(firewall, tokens))?;
            Ok(read)
        };
        read().map_err(|fault: Diagnostic| match fault.span.end {
            0 => fault.of(file),
            _ => Lines::new(text).locate(fault.of(file)),
        })
    }

    /// Guesses the missing entries of the map.
    fn complete(&mut self, names: &Names<'_>) -> Result<(), Diagnostic> {
        let seen = names.interfaces();
        let mut interfaces: Vec<&str> = Vec::new();
        for one in &seen {
            if !interfaces.contains(&one.name.as_str()) && interfaces.len() <= MOST_NAMED {
                interfaces.push(&one.name);
            }
        }
        if let Some(missing) = names.missing(&self.map).first() {
            let message = format!("the file names no '{missing}', which is to be mapped");
            let help = net(missing).map_or_else(
                || named(&interfaces),
                |_| "write it as the file does".into(),
            );
            return Err(Diagnostic::new(message).remedy(help));
        }
        if let Some((name, _)) = self
            .map
            .iter()
            .find(|(n, m)| **m == Meaning::Elsewhere && net(n).is_none_or(|n| n.1.is_none()))
        {
            let message = format!("'{name}' is not a network, and only a network can be elsewhere");
            let help = "leave it out: what the map does not name stays as it is";
            return Err(Diagnostic::new(message).remedy(help));
        }
        self.complete_ends(names, &seen, &interfaces)?;
        let bogon = "198.18.0.0/15";
        if !self.map.contains_key(bogon) && names.lists_bogon(bogon) {
            let why = "it stands in a list of networks that no frame may come from";
            self.guess(bogon, Meaning::Elsewhere, why);
        }
        let is_inside =
            |(name, end): &(&String, &Meaning)| **end == Meaning::In && net(name).is_none();
        let inside = self
            .map
            .iter()
            .find(is_inside)
            .map(|(name, _)| name.clone());
        for v4 in [true, false] {
            let given = |(name, _): (&String, &Meaning)| {
                net(name).is_some_and(|(a, l)| l.is_some() && a.is_ipv4() == v4)
            };
            let given = self
                .map
                .iter()
                .filter(|(_, m)| **m != Meaning::Elsewhere)
                .any(given);
            if given || names.names_tests(v4) && !(v4 && self.map.contains_key(bogon)) {
                continue;
            }
            if let Some(network) = names.inner_network(v4, inside.as_deref(), &seen) {
                self.guess(network, Meaning::In, "frames come from it");
            }
        }
        Ok(())
    }

    fn complete_ends(
        &mut self,
        names: &Names<'_>,
        seen: &[names::Seen],
        interfaces: &[&str],
    ) -> Result<(), Diagnostic> {
        let given: Vec<(String, Meaning)> = self
            .map
            .iter()
            .filter(|(n, _)| net(n).is_none())
            .map(|(n, m)| (n.clone(), *m))
            .collect();
        let has = |end| given.iter().any(|(_, m)| *m == end);
        if interfaces.is_empty() || has(Meaning::In) && has(Meaning::Out) {
            return Ok(());
        }
        let unsure = || {
            let help = format!(
                "{}: map the one towards the generator to \"in\", and the one towards the receiver to \"out\"",
                named(interfaces)
            );
            Diagnostic::new("nothing says which of the file's interfaces are the lab's")
                .remedy(help)
        };
        match given.as_slice() {
            [] => {
                let (ends, why) = names.guessed_ends(seen, interfaces).ok_or_else(unsure)?;
                for (name, end) in ends {
                    // The reason of the outer interface tells nothing of the inner one.
                    let of_other = why.starts_with("translated") && end == Meaning::In;
                    let why = if of_other { OTHER } else { &why };
                    self.guess(&name, end, why);
                }
            }
            // Of two, the other one is at the other end.
            [(one, end)] if interfaces.len() == 2 => {
                let other = interfaces
                    .iter()
                    .find(|name| *name != one)
                    .ok_or_else(unsure)?;
                let end = if *end == Meaning::In {
                    Meaning::Out
                } else {
                    Meaning::In
                };
                self.guess(other, end, OTHER);
            }
            _ if interfaces.len() == 1 => {}
            _ => return Err(unsure()),
        }
        Ok(())
    }

    fn guess(&mut self, name: &str, meaning: Meaning, why: &str) {
        self.map.insert(name.into(), meaning);
        self.guessed.insert(name.into(), why.into());
    }

    /// The text with a lab's names in place of the file's: `[in, out]`. Every line stays where it is.
    pub fn mapped(&self, ends: &[LabEnd; 2]) -> String {
        Names::new(self.firewall, self.tokens()).mapped(&self.text, &self.map, ends)
    }

    /// A rule as its tool lists it in a lab, with the file's own names: those that stand for one interface or network alone.
    pub fn in_its_words(&self, rule: &str, ends: &[LabEnd; 2]) -> String {
        let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, meaning) in self
            .map
            .iter()
            .filter(|(_, meaning)| **meaning != Meaning::Elsewhere)
        {
            let end = &ends[usize::from(*meaning == Meaning::Out)];
            let there = match net(name) {
                None => Some(&end.interface),
                Some((a, Some(_))) => end.networks.iter().find(|n| n.contains(':') == a.is_ipv6()),
                Some(_) => None,
            };
            there
                .into_iter()
                .for_each(|there| back.entry(there).or_default().push(name));
        }
        let (mut said, mut from) = (String::new(), 0);
        for token in tokens(rule, self.firewall).unwrap_or_default() {
            if let Some([name]) = back.get(token.text).map(Vec::as_slice) {
                said += &rule[from..token.at];
                said += name;
                from = token.at + token.text.len();
            }
        }
        said + &rule[from..]
    }

    /// Tokens of the text. [`RuleFile::read`] has already read it without a fault.
    fn tokens(&self) -> Vec<Token<'_>> {
        tokens(&self.text, self.firewall).unwrap_or_default()
    }

    fn has(&self, words: &[&str]) -> bool {
        self.tokens().iter().any(|token| token.is(words))
    }

    /// Whether it makes the firewall keep a state for each flow.
    pub fn tracks(&self) -> bool {
        match self.firewall {
            Firewall::Nftables => self.has(&["ct", "masquerade", "snat", "dnat", "redirect"]),
            Firewall::Iptables => self.has(&[
                "*nat",
                "conntrack",
                "state",
                "connmark",
                "connlimit",
                "connbytes",
            ]),
            Firewall::Ipfw => {
                self.has(&["keep-state", "check-state", "record-state", "limit", "nat"])
            }
            Firewall::Pf | Firewall::OpenbsdPf | Firewall::Ipf => true,
        }
    }

    /// Whether it replaces addresses.
    pub fn translates(&self) -> bool {
        self.has(&[
            "nat",
            "nat-to",
            "rdr-to",
            "masquerade",
            "snat",
            "dnat",
            "redirect",
            "*nat",
        ])
    }

    /// Whether some of its rules count their frames.
    pub fn counts(&self) -> bool {
        self.firewall != Firewall::Nftables || self.has(&["counter"])
    }

    /// The program that loads it from its standard input, with its arguments.
    pub fn program(&self) -> (&'static str, &'static [&'static str]) {
        self.firewall.program(self.is_ipv6(), self.is_script())
    }

    fn is_ipv6(&self) -> bool {
        let head = self.text.lines().next().unwrap_or_default();
        head.contains("ip6tables")
            || self
                .tokens()
                .iter()
                .any(|t| net(t.text).is_some_and(|(a, _)| a.is_ipv6()))
    }

    fn is_script(&self) -> bool {
        !matches!(
            first_words(&self.text).first(),
            Some(
                &("add"
                    | "table"
                    | "nat"
                    | "pipe"
                    | "queue"
                    | "flush"
                    | "-f"
                    | "-q"
                    | "delete"
                    | "set")
            )
        )
    }

    /// Notes for a reader.
    pub fn notes(&self) -> Vec<String> {
        let mapped = |(name, meaning): (&String, &Meaning)| match self.guessed.get(name) {
            Some(why) => format!("{name} is '{meaning}' (a guess: {why})"),
            None => format!("{name} is '{meaning}'"),
        };
        let mapped: Vec<String> = self.map.iter().map(mapped).collect();
        let mut notes = Vec::new();
        if !mapped.is_empty() {
            notes.push(format!("{}: {}", self.file, mapped.join("; ")));
        }
        if !self.counts() {
            notes.push(format!(
                "{}: no rule has a counter, so the page cannot list the rules that match most frames",
                self.file
            ));
        }
        notes
    }
}

/// Why an interface is at the end where the one that was recognised is not.
const OTHER: &str = "it is the only other interface";
/// Interfaces that a message lists at most.
const MOST_NAMED: usize = 8;

fn named(interfaces: &[&str]) -> String {
    match interfaces {
        [] => "it names none".into(),
        more if more.len() > MOST_NAMED => {
            format!("it names {} and more", more[..MOST_NAMED].join(", "))
        }
        few => format!("it names {}", listed(few, "and")),
    }
}

/// A tool's messages about its standard input, with the file's name instead.
pub fn told_of(file: &str, said: &str) -> String {
    let lines = said.lines().map(|line| {
        let line = line.replace("/dev/stdin:", &format!("{file}:"));
        match line.strip_prefix("stdin:") {
            Some(rest) => format!("{file}:{rest}"),
            None => line.replace("Error occurred at line: ", &format!("{file}, line ")),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The counters in a listing of `nft list ruleset` or `iptables-save -c`, in its order.
pub fn counts(firewall: Firewall, listing: &str) -> Vec<RuleCount> {
    if firewall == Firewall::Nftables {
        nftables(listing)
    } else {
        iptables(listing)
    }
}

/// Growth of the rules' counters between two listings, without rules that did not count.
pub fn grown(before: &[RuleCount], after: &[RuleCount]) -> Vec<RuleCount> {
    if before.len() != after.len() {
        return Vec::new();
    }
    let since = |(before, after): (&RuleCount, &RuleCount)| RuleCount {
        rule: after.rule.clone(),
        frames: after.frames.saturating_sub(before.frames),
    };
    before
        .iter()
        .zip(after)
        .map(since)
        .filter(|count| count.frames > 0)
        .collect()
}

fn nftables(listing: &str) -> Vec<RuleCount> {
    let mut counts = Vec::new();
    let mut blocks: Vec<&str> = Vec::new();
    let mut rule = String::new();
    for line in listing.lines().map(str::trim) {
        match line {
            "}" => _ = blocks.pop(),
            header if header.ends_with('{') => blocks.push(header.trim_end_matches(['{', ' '])),
            line => {
                // A long list of addresses goes on in the next line.
                rule.push_str(line);
                if line.ends_with(',') {
                    rule.push(' ');
                    continue;
                }
                counts.extend(of_nft_rule(&blocks, &rule));
                rule.clear();
            }
        }
    }
    counts
}

fn of_nft_rule(blocks: &[&str], rule: &str) -> Option<RuleCount> {
    let table = blocks.first()?.strip_prefix("table ")?;
    let block = blocks.get(1)?;
    let (before, counted) = match block.strip_prefix("chain ") {
        Some(_) => rule.split_once("counter packets ")?,
        None => (
            "",
            rule.strip_prefix("packets ")
                .filter(|_| block.starts_with("counter "))?,
        ),
    };
    let mut words = counted.splitn(4, ' ');
    let frames = words.next()?.parse().ok()?;
    let rest = words
        .nth(2)
        .map_or(String::new(), |rest| format!(" {rest}"));
    let rule = match block.strip_prefix("chain ") {
        Some(chain) => format!("{table} {chain}: {before}counter{rest}"),
        None => format!("{table}: {block}"),
    };
    Some(RuleCount { rule, frames })
}

fn iptables(listing: &str) -> Vec<RuleCount> {
    let mut table = "";
    let mut counts = Vec::new();
    for line in listing.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some((counted, rule)) =
            line.strip_prefix('[').and_then(|l| l.split_once("] "))
        {
            let frames = counted.split(':').next().and_then(|n| n.parse().ok());
            counts.extend(frames.map(|frames| RuleCount {
                rule: format!("{table}: {rule}"),
                frames,
            }));
        } else if let Some(policy) = line.strip_prefix(':') {
            let words: Vec<&str> = policy.split(' ').collect();
            let [chain, verdict @ ("ACCEPT" | "DROP"), counted] = words[..] else {
                continue;
            };
            let frames = counted
                .trim_start_matches('[')
                .split(':')
                .next()
                .and_then(|n| n.parse().ok());
            let rule = format!("{table}: policy of {chain}, {verdict}");
            counts.extend(frames.map(|frames| RuleCount { rule, frames }));
        }
    }
    counts
}

/// Refuses statements that reach beyond the file.
fn refuse(firewall: Firewall, tokens: &[Token<'_>]) -> Result<(), Diagnostic> {
    match firewall {
        Firewall::Nftables | Firewall::Pf | Firewall::OpenbsdPf => {
            let Some(token) = tokens.iter().find(|t| t.is(&["include"])) else {
                return Ok(());
            };
            let help = match firewall {
                Firewall::Nftables => {
                    "put its lines here, or load all of it and save it as one file: nft list ruleset"
                }
                _ => "put its lines here",
            };
            let message = "this file includes another, which linerate does not read";
            Err(Diagnostic::at(token.span(), message).remedy(help))
        }
        Firewall::Iptables => {
            // A program of the file's choice, run as root.
            let starts = |t: &&Token<'_>| {
                t.kind == TokenKind::Word && (t.text.starts_with("--mod") || cluster_has_m(t.text))
            };
            let Some(token) = tokens.iter().find(starts) else {
                return Ok(());
            };
            let message = format!("'{}' would run a program", token.text);
            Err(Diagnostic::at(token.span(), message).remedy("leave it out"))
        }
        Firewall::Ipfw => Ok(()),
        Firewall::Ipf => Err(
            Diagnostic::new("rule files of IP Filter cannot be measured")
                .remedy("there are nftables, iptables (iptables-save), pf and ipfw"),
        ),
    }
}

/// `-M`, alone or behind options that take no argument.
fn cluster_has_m(word: &str) -> bool {
    let Some(options) = word.strip_prefix('-').filter(|o| !o.starts_with('-')) else {
        return false;
    };
    options
        .trim_start_matches(['v', 'n', 'x', 'f', '4', '6', 'w', 'c', 'h'])
        .starts_with('M')
}

/// The words of the first line that is neither blank nor a comment.
fn first_words(text: &str) -> Vec<&str> {
    let first = text
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with('#'));
    first
        .map(|line| line.split_whitespace().collect())
        .unwrap_or_default()
}

/// Whose rules a text is.
///
/// # Errors
/// The text is of no tool that linerate knows.
pub fn recognised(text: &str) -> Result<Firewall, Diagnostic> {
    let shebang = text
        .lines()
        .next()
        .filter(|l| l.starts_with("#!"))
        .unwrap_or_default();
    if shebang.contains("nft") {
        return Ok(Firewall::Nftables);
    }
    let words = first_words(text);
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    let nft_object = [
        "table",
        "chain",
        "rule",
        "set",
        "map",
        "element",
        "counter",
        "flowtable",
        "ruleset",
    ];
    let runs = |program: &str| {
        text.lines().any(|l| {
            l.split_whitespace()
                .any(|w| w.trim_matches(['"', '\'']).ends_with(program))
        })
    };
    if shebang.contains("sh") {
        for (program, save) in [("nft", "nft list ruleset"), ("iptables", "iptables-save")] {
            if runs(program) && !runs("ipfw") {
                let message =
                    format!("this is a shell script that runs {program}, not a rule file");
                let remedy =
                    format!("run it where it belongs, and save what it makes: {save} > FILE");
                return Err(Diagnostic::at(
                    Span {
                        start: 0,
                        end: shebang.len(),
                    },
                    message,
                )
                .remedy(remedy));
            }
        }
    }
    match first {
        "table" if second.starts_with('<') => Ok(Firewall::Pf),
        "table"
            if !["create", "add", "flush", "destroy"]
                .contains(&words.get(2).copied().unwrap_or_default()) =>
        {
            Ok(Firewall::Nftables)
        }
        "define" | "include" | "destroy" => Ok(Firewall::Nftables),
        "add" | "create" | "insert" | "delete" | "flush" if nft_object.contains(&second) => {
            Ok(Firewall::Nftables)
        }
        "add" | "-f" | "-q" | "flush" | "table" | "nat" if second != "on" => Ok(Firewall::Ipfw),
        _ if first.starts_with('*') && text.lines().any(|l| l.trim() == "COMMIT") => {
            Ok(Firewall::Iptables)
        }
        _ if runs("ipfw") => Ok(Firewall::Ipfw),
        "set" | "scrub" | "match" | "block" | "pass" | "anchor" | "antispoof" | "nat" | "rdr"
        | "table" | "queue" => Ok(Firewall::Pf),
        _ if words.get(1) == Some(&"=") || first.contains('=') => Ok(Firewall::Pf),
        "" => Err(Diagnostic::new("the file has no rules").remedy("name a file with rules")),
        _ => Err(Diagnostic::new("nothing shows which firewall reads this file").remedy(SAY_TOOL)),
    }
}
