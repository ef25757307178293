//! Answers as text: bounded, line by line, word by word; and those that are alike on all systems. Also the scripts that ask for them.

use linerate_wire::MacAddr;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Bytes of an answer that are looked at.
pub const MOST_BYTES: usize = 4 << 20;
/// Interfaces and neighbours that are kept of an answer.
pub const MOST_ENTRIES: usize = 20_000;

/// As much of an answer as is looked at.
pub fn bounded(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_BYTES)])
}

/// Lines of a text, without those beyond reason.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take(10 * MOST_ENTRIES)
}

/// Lines of two parts, without the blanks around them: `key: value`, `key=value`.
pub fn pairs(text: &str, separator: char) -> impl Iterator<Item = (&str, &str)> {
    lines(text)
        .filter_map(move |line| line.split_once(separator))
        .map(|(key, value)| (key.trim(), value.trim()))
}

/// A number alone on a line: of `date +%s`, `id -u`, `sysctl -n hw.ncpu`, `nproc`. The last one, as logins print before it.
pub fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    lines(text)
        .filter_map(|line| line.trim().parse().ok())
        .last()
}

/// A word that can be an interface's name.
pub fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 32
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-@:+".contains(c))
}

/// Names that neither a shell nor a program takes for anything else.
pub fn valid(interfaces: &[String]) -> Vec<&str> {
    let plain = |name: &&str| is_name(name) && !name.starts_with(['-', '.']);
    interfaces
        .iter()
        .map(String::as_str)
        .filter(plain)
        .collect()
}

/// A script of that name, which may have words of its own, with these arguments.
pub fn script(text: &str, name: &str, args: &[&str]) -> Vec<String> {
    let words = ["sh", "-c", text]
        .into_iter()
        .chain(name.split(' '))
        .chain(args.iter().copied());
    words.map(String::from).collect()
}

/// An Ethernet address; FreeBSD and Linux write two digits for each byte, old arp(8) of others one.
pub fn mac(word: &str) -> Option<MacAddr> {
    let mut bytes = [0; 6];
    let mut parts = word.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|p| (1..=2).contains(&p.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(MacAddr(bytes))
}

/// An IP address, without the zone of a link-local one.
pub fn address(word: &str) -> Option<IpAddr> {
    word.split('%').next()?.parse().ok()
}

/// A short text for a person, of a stranger's words.
pub fn shown(words: &str) -> String {
    crate::tools::fault::printable(words.as_bytes())
}

/// `name: value` of FreeBSD, `name=value` of OpenBSD, `name = value` of Linux and NetBSD.
pub fn sysctls(text: &str) -> BTreeMap<String, String> {
    let name = |n: &str| {
        n.contains('.')
            && n.len() <= 128
            && n.chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-%/".contains(c))
    };
    let pairs = lines(text).filter_map(|line| {
        let at = line.find([':', '='])?;
        let (key, value) = (line[..at].trim(), line[at + 1..].trim());
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        name(key).then(|| (key.to_string(), shown(&words.join(" "))))
    });
    pairs.take(MOST_ENTRIES).collect()
}

/// Whether `mount` shows a read-only root: `… on / (ufs, local, read-only)`, `… on / type ext4 (ro,relatime)`.
pub fn read_only_root(text: &str) -> Option<bool> {
    let options = lines(text).filter_map(|line| {
        let (_, rest) = line.split_once(" on / ")?;
        let (_, options) = rest.split_once('(')?;
        Some(options.trim_end_matches(')'))
    });
    // The last mount covers the others.
    let last = options.last()?;
    Some(
        last.split(',')
            .map(str::trim)
            .any(|o| o == "read-only" || o == "ro"),
    )
}

/// Lines `12 packets forwarded` below a protocol's name: the counters by protocol and name, such as `ip: packets forwarded`. Further numbers
/// are no part of a name, which must stay the same while they grow: `713 acks (for 182459 bytes)` is `tcp: acks (for N bytes)`.
pub fn statistics(text: &str) -> BTreeMap<String, u64> {
    let mut protocol = "";
    let mut all = BTreeMap::new();
    for line in lines(text) {
        let words = line.trim();
        if let Some(name) = line.strip_suffix(':').filter(|n| is_name(n.trim())) {
            protocol = name.trim();
        } else if let Some((number, what)) = words.split_once(' ')
            && let Ok(count) = number.parse()
            && !protocol.is_empty()
            && all.len() < MOST_ENTRIES
        {
            let words: Vec<String> = shown(what).split(' ').map(without_number).collect();
            all.insert(format!("{protocol}: {}", words.join(" ")), count);
        }
    }
    all
}

/// `N` for a number, in brackets, too.
fn without_number(word: &str) -> String {
    let digits = word.trim_matches(|c: char| c.is_ascii_punctuation());
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    if is_number {
        word.replace(digits, "N")
    } else {
        word.into()
    }
}

/// The function of the shell that asks a program for one of several answers in one output: a line with its title, and the answer.
pub const ASK: &str = r#"ask() { echo "==> $* <=="; "$@" 2>/dev/null; }"#;

/// The answers in an output, in their order: each is behind `==> TITLE <==`, a line which head(1) also writes above files.
pub fn sections(text: &str) -> Vec<(&str, &str)> {
    let (mut sections, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let title = line
            .trim_end()
            .strip_prefix("==> ")
            .and_then(|l| l.strip_suffix(" <=="));
        if let Some(title) = title {
            let before = open.replace((title, at + line.len()));
            sections.extend(before.map(|(title, from)| (title, &text[from..at])));
        }
        at += line.len();
    }
    sections.extend(open.map(|(title, from)| (title, &text[from..])));
    sections
}

/// A list of CPUs as the kernel writes it: `0-3,8`. Other text is passed over.
pub fn cpu_list(text: &str) -> Vec<u32> {
    /// Linux has at most this many CPUs (NR_CPUS).
    const MOST: u32 = 8192;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range: Option<(u32, u32)> = first.trim().parse().ok().zip(last.trim().parse().ok());
        range.map(|(first, last)| first..=last.min(MOST))
    };
    text.trim()
        .split(',')
        .filter_map(range)
        .flatten()
        .take(MOST as usize)
        .collect()
}
