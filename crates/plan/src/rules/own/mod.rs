//! Rule files of administrators: their firewall, the meaning of their interfaces and networks in a lab, and their handling of
//! frames.
//!
//! A file is read as words, not as rules. Names are replaced word by word and line by line, so that line numbers in the
//! firewall's messages are those of the file.

mod counts;
mod formats;
mod names;
#[cfg(test)]
mod tests;
mod tokens;

pub use counts::{counts, grown};

use super::Firewall;
use crate::diagnostic::{Diagnostic, Lines, Span, listed};
use formats::{first_words, recognised, refuse};
pub use names::{LabEnd, Meaning};
use names::{Names, net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokens::Token;

/// Most bytes of a rule file. Readers of files enforce it.
pub const MOST_BYTES: usize = 4 << 20;

/// A rule file, with the meanings of its names in a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFile {
    /// Its name, as it was given.
    pub file: String,
    /// Whose rules.
    pub firewall: Firewall,
    /// Interfaces and networks of the file, with their meanings in a lab.
    pub map: BTreeMap<String, Meaning>,
    /// Names of the map whose meanings are guesses, with the reason for each.
    pub guessed: BTreeMap<String, String>,
    /// Its text, as it is.
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
        Self::of_text(file, text, firewall, map).map_err(|fault| match fault.span.end {
            0 => fault.of(file),
            _ => Lines::new(text).locate(fault.of(file)),
        })
    }

    fn of_text(
        file: &str,
        text: &str,
        firewall: Option<Firewall>,
        map: &BTreeMap<String, Meaning>,
    ) -> Result<RuleFile, Diagnostic> {
        if let Some(at) = text.find('\0') {
            let at = Span { start: at, end: at + 1 };
            return Err(Diagnostic::at(at, "this file is not text").remedy("name a rule file"));
        }
        let firewall = firewall.map_or_else(|| recognised(text), Ok)?;
        let tokens = tokens::tokens(text, firewall)?;
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
            let (message, help) = match net(missing) {
                Some(_) => (format!("names no '{missing}'"), "write it as the file does".to_string()),
                None => (format!("names no interface '{missing}'"), named(&interfaces)),
            };
            return Err(Diagnostic::new(format!("the file {message}, which is to be mapped")).remedy(help));
        }
        if let Some((name, _)) =
            self.map.iter().find(|(n, m)| **m == Meaning::Elsewhere && net(n).is_none_or(|n| n.1.is_none()))
        {
            let message = format!("'{name}' is not a network, and only a network can be elsewhere");
            return Err(
                Diagnostic::new(message).remedy("leave it out: what the map does not name stays as it is")
            );
        }
        self.complete_ends(names, &seen, &interfaces)?;
        let bogon = "198.18.0.0/15";
        if !self.map.contains_key(bogon) && names.lists_bogon(bogon) {
            self.guess(
                bogon,
                Meaning::Elsewhere,
                "it stands in a list of networks that no frame may come from",
            );
        }
        let inside =
            self.map.iter().find(|(n, m)| **m == Meaning::In && net(n).is_none()).map(|(n, _)| n.clone());
        for v4 in [true, false] {
            let given = |(name, _): (&String, &Meaning)| {
                net(name).is_some_and(|(a, l)| l.is_some() && a.is_ipv4() == v4)
            };
            let given = self.map.iter().filter(|(_, m)| **m != Meaning::Elsewhere).any(given);
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
        let given: Vec<(String, Meaning)> =
            self.map.iter().filter(|(n, _)| net(n).is_none()).map(|(n, m)| (n.clone(), *m)).collect();
        let has = |end| given.iter().any(|(_, m)| *m == end);
        if interfaces.is_empty() || has(Meaning::In) && has(Meaning::Out) {
            return Ok(());
        }
        let unsure = || {
            let help = format!(
                "{}: map the one towards the generator to \"in\", and the one towards the receiver to \"out\"",
                named(interfaces)
            );
            Diagnostic::new("nothing says which of the file's interfaces are the lab's").remedy(help)
        };
        match given.as_slice() {
            [] => {
                let (ends, why) = names.guessed_ends(seen, interfaces).ok_or_else(unsure)?;
                ends.into_iter().for_each(|(name, end)| self.guess(&name, end, &why));
            }
            // Of two, the other one is at the other end.
            [(one, end)] if interfaces.len() == 2 => {
                let other = interfaces.iter().find(|name| *name != one).ok_or_else(unsure)?;
                let end = if *end == Meaning::In { Meaning::Out } else { Meaning::In };
                self.guess(other, end, "it is the only other interface");
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
        for (name, meaning) in self.map.iter().filter(|(_, meaning)| **meaning != Meaning::Elsewhere) {
            let end = &ends[usize::from(*meaning == Meaning::Out)];
            let there = match net(name) {
                None => Some(&end.interface),
                Some((a, Some(_))) => end.networks.iter().find(|n| n.contains(':') == a.is_ipv6()),
                Some(_) => None,
            };
            there.into_iter().for_each(|there| back.entry(there).or_default().push(name));
        }
        let (mut said, mut from) = (String::new(), 0);
        for token in tokens::tokens(rule, self.firewall).unwrap_or_default() {
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
        tokens::tokens(&self.text, self.firewall).unwrap_or_default()
    }

    fn has(&self, words: &[&str]) -> bool {
        self.tokens().iter().any(|token| token.is(words))
    }

    /// Whether it makes the firewall keep a state for each flow.
    pub fn tracks(&self) -> bool {
        match self.firewall {
            Firewall::Nftables => self.has(&["ct", "masquerade", "snat", "dnat", "redirect"]),
            Firewall::Iptables => {
                self.has(&["*nat", "conntrack", "state", "connmark", "connlimit", "connbytes"])
            }
            Firewall::Ipfw => self.has(&["keep-state", "check-state", "record-state", "limit", "nat"]),
            Firewall::Pf | Firewall::OpenbsdPf | Firewall::Ipf => true,
        }
    }

    /// Whether it replaces addresses.
    pub fn translates(&self) -> bool {
        self.has(&["nat", "nat-to", "rdr-to", "masquerade", "snat", "dnat", "redirect", "*nat"])
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
            || self.tokens().iter().any(|t| net(t.text).is_some_and(|(a, _)| a.is_ipv6()))
    }

    fn is_script(&self) -> bool {
        !matches!(
            first_words(&self.text).first(),
            Some(&("add" | "table" | "nat" | "pipe" | "queue" | "flush" | "-f" | "-q" | "delete" | "set"))
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
                "{}: no rule has a counter, so nothing shows which rules the frames meet",
                self.file
            ));
        }
        notes
    }
}

/// Interfaces that a message lists at most.
const MOST_NAMED: usize = 8;

fn named(interfaces: &[&str]) -> String {
    match interfaces {
        [] => "it names none".into(),
        more if more.len() > MOST_NAMED => format!("it names {} and more", more[..MOST_NAMED].join(", ")),
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
