//! pkt-gen's command line, as the logs' first line has it, and the facts in it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The host it ran on, where the log says it.
    pub host: Option<String>,
    /// Whether it was run by sudo.
    pub sudo: bool,
    /// The program: `pkt-gen`, `equilibrium`; empty where the log names none.
    pub program: String,
    /// Option -> its value, empty for a flag.
    pub options: BTreeMap<char, String>,
    /// The command line as it stands in the log.
    pub text: String,
}

/// pkt-gen's options that take a value, by its usage text.
const PKT_GEN_VALUES: &str = "ifntrlxdsDSabcopTwRXCHPFM";
/// Those of the archive's `equilibrium`.
const EQUILIBRIUM_VALUES: &str = "dtrlp";

/// The frame length of pkt-gen without -l, in bytes without FCS.
const DEFAULT_LENGTH: u64 = 60;

impl Command {
    /// Takes apart what follows `CMD` in a log.
    pub fn parse(host: Option<&[u8]>, command: &[u8]) -> Self {
        let text = String::from_utf8_lossy(command).into_owned();
        let words = words(&text);
        let sudo = words.first().is_some_and(|w| w == "sudo");
        let mut words = words.into_iter().skip(usize::from(sudo));
        let program = words.next().unwrap_or_default();
        let values = if program.ends_with("pkt-gen") { PKT_GEN_VALUES } else { EQUILIBRIUM_VALUES };
        let options = options(words, values);
        let host = host.map(|h| String::from_utf8_lossy(h).trim().to_string());
        Command { host, sudo, program, options, text }
    }

    fn value(&self, option: char) -> Option<&str> {
        self.options.get(&option).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// `tx`, `rx`, ...
    pub fn function(&self) -> Option<&str> {
        self.value('f')
    }

    /// Frame length in bytes without FCS, where this command decides it (a sender's does).
    pub fn length(&self) -> Option<u64> {
        if self.function() != Some("tx") {
            return None;
        }
        match self.options.get(&'l') {
            Some(value) => value.parse().ok(),
            None => Some(DEFAULT_LENGTH),
        }
    }

    /// Frames a second asked for by -R.
    pub fn rate(&self) -> Option<u64> {
        let value = self.value('R')?;
        let (digits, scale) = match value.as_bytes().last()? {
            b'k' | b'K' => (&value[..value.len() - 1], 1_000),
            b'm' | b'M' => (&value[..value.len() - 1], 1_000_000),
            _ => (value, 1),
        };
        digits.parse::<u64>().ok()?.checked_mul(scale)
    }

    /// `inet4` or `inet6`: by -4 and -6, or by the addresses.
    pub fn family(&self) -> Option<&'static str> {
        if self.options.contains_key(&'6') {
            return Some("inet6");
        }
        if self.options.contains_key(&'4') {
            return Some("inet4");
        }
        let destination = self.value('d')?;
        Some(if destination.starts_with('[') { "inet6" } else { "inet4" })
    }

    /// Flows: addresses and ports of the source times those of the destination.
    pub fn flows(&self) -> Option<u64> {
        range(self.value('s')?)?.checked_mul(range(self.value('d')?)?)
    }

    /// What the command line says, by name; lengths are without FCS unless the name says otherwise.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        const NAMES: [(char, &str); 13] = [
            ('f', "function"),
            ('i', "interface"),
            ('n', "count"),
            ('w', "wait_s"),
            ('T', "interval_ms"),
            ('s', "source"),
            ('d', "destination"),
            ('p', "threads"),
            ('c', "cpus"),
            ('a', "affinity"),
            ('b', "burst"),
            ('F', "fragments"),
            ('C', "rings"),
        ];
        let mut facts: Vec<(&'static str, String)> = Vec::new();
        if self.program.ends_with("pkt-gen") {
            let said = NAMES.iter().filter_map(|(o, name)| Some((*name, self.value(*o)?.to_string())));
            facts.extend(said);
        }
        facts.extend(self.host.iter().map(|h| ("host", h.clone())));
        facts.extend(self.length().map(|l| ("length", l.to_string())));
        facts.extend(self.length().map(|l| ("length_fcs", l.saturating_add(4).to_string())));
        facts.extend(self.family().map(|f| ("family", f.to_string())));
        facts.extend(self.flows().map(|f| ("flows", f.to_string())));
        facts.extend(self.rate().map(|r| ("rate_pps", r.to_string())));
        if !self.text.is_empty() {
            facts.push(("command", self.text.clone()));
        }
        facts
    }
}

/// Splits at blanks; quotes keep a word together and are taken off.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quote, mut begun) = (None, false);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => (quote, begun) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (c, _) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// `-f tx`, `-ftx` and `-N`, as getopt reads them.
fn options(words: impl Iterator<Item = String>, values: &str) -> BTreeMap<char, String> {
    let mut options = BTreeMap::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-') else { continue };
        let mut letters = letters.chars();
        while let Some(option) = letters.next() {
            if !values.contains(option) {
                options.insert(option, String::new());
                continue;
            }
            let attached: String = letters.by_ref().collect();
            let value = if attached.is_empty() { words.next().unwrap_or_default() } else { attached };
            options.insert(option, value);
        }
    }
    options
}

/// How many pairs of address and port a range has: `198.18.10.1:2000-198.18.10.20`, `[2001:2::1]-[2001:2::14]:9`.
fn range(text: &str) -> Option<u64> {
    let (first, last) = if text.starts_with('[') {
        text.split_once("]-").map_or((text, text), |(_, last)| (text, last))
    } else {
        text.split_once('-').unwrap_or((text, text))
    };
    let (from, from_port) = end(first)?;
    let (to, to_port) = end(last)?;
    let addresses = to.checked_sub(from)?.checked_add(1)?;
    let ports = match (from_port, to_port) {
        (Some(from), Some(to)) => u64::from(to.checked_sub(from)?) + 1,
        _ => 1,
    };
    u64::try_from(addresses).ok()?.checked_mul(ports)
}

/// One end of a range: an address as a number, and its port.
fn end(text: &str) -> Option<(u128, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').unwrap_or((rest, ""));
        let port =
            rest.strip_prefix(':').map(|p| p.split('-').next().unwrap_or(p).parse()).transpose().ok()?;
        return Some((u128::from(address.parse::<Ipv6Addr>().ok()?), port));
    }
    let (address, port) = text.split_once(':').map_or((text, None), |(a, p)| (a, Some(p)));
    let port = port.map(str::parse).transpose().ok()?;
    Some((u128::from(u32::from(address.parse::<Ipv4Addr>().ok()?)), port))
}
