//! pkt-gen's command line, as the logs' first line has it, and the facts in it.

use std::net::{IpAddr, Ipv6Addr};

/// A command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The host it ran on, if the log names it.
    pub host: Option<String>,
    /// Whether it was run by sudo.
    pub sudo: bool,
    /// The command line as it stands in the log.
    pub text: String,
    program: String,
    /// Options, each with its value, without quotes; empty for a flag.
    options: Vec<(char, String)>,
}

/// pkt-gen's options that take a value, by its usage text.
const PKT_GEN_VALUES: &str = "ifntrlxdsDSabcopTwRXCHPFM";
/// Options of the archive's `equilibrium` that take a value.
const EQUILIBRIUM_VALUES: &str = "dtrlp";

/// The frame length of pkt-gen without -l, in bytes without FCS.
const DEFAULT_LENGTH: u64 = 60;

impl Command {
    /// Parses the text behind `CMD` in a log.
    pub fn parse(host: Option<&[u8]>, command: &[u8]) -> Self {
        let text = String::from_utf8_lossy(command).into_owned();
        let host = host.map(|h| String::from_utf8_lossy(h).trim().to_string());
        let mut words = words(&text).into_iter();
        let first = words.next().unwrap_or_default();
        let sudo = first == "sudo";
        let program = if sudo {
            words.next().unwrap_or_default()
        } else {
            first
        }
        .to_string();
        let values = if program.ends_with("pkt-gen") {
            PKT_GEN_VALUES
        } else {
            EQUILIBRIUM_VALUES
        };
        let options = options(words, values);
        Command {
            host,
            sudo,
            program,
            options,
            text,
        }
    }

    /// The program: `pkt-gen`, `equilibrium`; empty where the log names none.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The value of an option, empty for a flag; `None` where the option is not given. The last one counts.
    pub fn option(&self, option: char) -> Option<&str> {
        self.options
            .iter()
            .rev()
            .find(|(o, _)| *o == option)
            .map(|(_, value)| value.as_str())
    }

    fn value(&self, option: char) -> Option<&str> {
        self.option(option).filter(|v| !v.is_empty())
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
        match self.option('l') {
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
        if self.option('6').is_some() {
            return Some("inet6");
        }
        if self.option('4').is_some() {
            return Some("inet4");
        }
        let destination = self.value('d')?;
        let first = End::parse(destination.split('-').next().unwrap_or_default());
        let is_v6 = first.map_or(destination.starts_with('['), |end| end.address.is_ipv6());
        Some(if is_v6 { "inet6" } else { "inet4" })
    }

    /// Flows: addresses and ports of the source times those of the destination.
    pub fn flows(&self) -> Option<u64> {
        range(self.value('s')?)?.checked_mul(range(self.value('d')?)?)
    }

    /// Values of the command line, by name; lengths are without FCS unless the name says otherwise.
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
        if self.program().ends_with("pkt-gen") {
            let said = NAMES
                .iter()
                .filter_map(|(o, name)| Some((*name, self.value(*o)?.to_string())));
            facts.extend(said);
        }
        facts.extend(self.host.iter().map(|h| ("host", h.clone())));
        facts.extend(self.length().map(|l| ("length", l.to_string())));
        facts.extend(
            self.length()
                .map(|l| ("length_fcs", l.saturating_add(4).to_string())),
        );
        facts.extend(self.family().map(|f| ("family", f.to_string())));
        facts.extend(self.flows().map(|f| ("flows", f.to_string())));
        facts.extend(self.rate().map(|r| ("rate_pps", r.to_string())));
        if !self.text.is_empty() {
            facts.push(("command", self.text.clone()));
        }
        facts
    }
}

/// The words of a text. Blanks separate them, but not within quotes.
fn words(text: &str) -> Vec<&str> {
    let mut quote = None;
    let separates = |c: char| {
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => return c.is_ascii_whitespace(),
            Some(open) if open == c => quote = None,
            Some(_) => {}
        }
        false
    };
    text.split(separates)
        .filter(|word| !word.is_empty())
        .collect()
}

/// `-f tx`, `-ftx` and `-N`, as getopt reads them.
fn options<'a>(mut words: impl Iterator<Item = &'a str>, values: &str) -> Vec<(char, String)> {
    let mut options = Vec::with_capacity(16);
    while let Some(word) = words.next() {
        let Some(mut letters) = word.strip_prefix('-').map(str::chars) else {
            continue;
        };
        while let Some(option) = letters.next().filter(char::is_ascii) {
            if !values.contains(option) {
                options.push((option, String::new()));
                continue;
            }
            let attached = letters.as_str();
            let value = if attached.is_empty() {
                words.next().unwrap_or_default()
            } else {
                attached
            };
            options.push((option, value.trim_matches(['"', '\'']).to_string()));
            break;
        }
    }
    options
}

/// The port of addresses that name none (pkt-gen's own).
const DEFAULT_PORT: u16 = 1234;

/// Number of pairs of address and port in a range: `198.18.10.1:2000-198.18.10.20`, `[2001:2::1]:9-[2001:2::14]`,
/// `6@[2001:2::1]-[2001:2::5:1]`. `None` if it is unknown. As in pkt-gen, the default of the last port is the first one, ends may
/// be swapped, and one group of 16 bits of an IPv6 address is varied: the last, or the one whose number is before the `@`.
fn range(text: &str) -> Option<u64> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (End::parse(first)?, End::parse(last)?);
    let addresses = match (first.address, last.address) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            u64::from(u32::from(from).abs_diff(u32::from(to))) + 1
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let group = first.group.unwrap_or(7);
            let others = |a: Ipv6Addr| {
                let mut groups = a.segments();
                std::mem::take(&mut groups[group]);
                groups
            };
            if others(from) != others(to) || last.group.is_some_and(|last| last != group) {
                return None;
            }
            u64::from(to.segments()[group].checked_sub(from.segments()[group])?) + 1
        }
        _ => return None,
    };
    let from = first.port.unwrap_or(DEFAULT_PORT);
    let ports = u64::from(from.abs_diff(last.port.unwrap_or(from))) + 1;
    addresses.checked_mul(ports)
}

/// One end of a range.
struct End {
    address: IpAddr,
    port: Option<u16>,
    /// Which group of an IPv6 address is varied.
    group: Option<usize>,
}

impl End {
    fn parse(text: &str) -> Option<End> {
        if let Ok(address) = text.parse() {
            return Some(End {
                address,
                port: None,
                group: None,
            });
        }
        let (group, text) = match text.split_once('@') {
            Some((group, text)) => (Some(group.parse::<usize>().ok()?.min(7)), text),
            None => (None, text),
        };
        let (address, rest) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, rest) = inside.split_once(']')?;
                (IpAddr::V6(address.parse().ok()?), rest)
            }
            None if group.is_some() => (IpAddr::V6(text.parse().ok()?), ""),
            None => {
                let (address, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (IpAddr::V4(address.parse().ok()?), rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if rest.is_empty() => None,
            None => return None,
        };
        Some(End {
            address,
            port,
            group,
        })
    }
}
