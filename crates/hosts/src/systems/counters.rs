//! Counters of interfaces and protocols.

use super::MOST_ENTRIES;
use super::text::{is_name, lines, shown};
use std::collections::BTreeMap;

/// The counters of an interface; `None` where its system has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    pub interface: String,
    pub in_packets: Option<u64>,
    /// Received with errors; many drivers also count frames without a buffer here.
    pub in_errors: Option<u64>,
    /// Dropped on the way in.
    pub in_drops: Option<u64>,
    pub out_packets: Option<u64>,
    /// Not sent for errors.
    pub out_errors: Option<u64>,
    /// Dropped on the way out.
    pub out_drops: Option<u64>,
}

/// Rows of `netstat -i` with -b and -d in any combination, of FreeBSD, OpenBSD and NetBSD: those of the interfaces themselves,
/// `<Link#2>`, not those of their addresses.
///
/// The header names the columns; as `Address` may be empty, they are counted from the right.
pub fn netstat_i(text: &str) -> Vec<Counters> {
    let mut columns: Vec<&str> = Vec::new();
    let mut all: Vec<Counters> = Vec::new();
    for line in lines(text) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(32).collect();
        if words.first() == Some(&"Name") {
            let after = words.iter().position(|w| *w == "Address").map_or(words.len(), |at| at + 1);
            columns = words[after..].to_vec();
            continue;
        }
        let is_link = words.get(2).is_some_and(|w| w.starts_with("<Link"));
        if !is_link || columns.is_empty() || words.len() < 3 + columns.len() || all.len() == MOST_ENTRIES {
            continue;
        }
        let name = words[0].trim_end_matches('*');
        if !is_name(name) || all.iter().rev().take(4).any(|c| c.interface == name) {
            continue;
        }
        // Names differ between systems; none has two of a kind.
        let value = |names: &[&str]| {
            let values = words[words.len() - columns.len()..].iter();
            let found = columns.iter().zip(values).rfind(|(column, _)| names.contains(column));
            found.and_then(|(_, value)| value.parse().ok())
        };
        all.push(Counters {
            interface: name.into(),
            in_packets: value(&["Ipkts"]),
            in_errors: value(&["Ierrs", "Ifail"]),
            in_drops: value(&["Idrop", "Iqdrops"]),
            out_packets: value(&["Opkts"]),
            out_errors: value(&["Oerrs", "Ofail"]),
            out_drops: value(&["Drop", "Drops", "Odrop", "Oqdrops"]),
        });
    }
    all
}

/// Linux' `/proc/net/dev`: sixteen numbers behind a name.
pub fn proc_net_dev(text: &str) -> Vec<Counters> {
    let parsed = lines(text).filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let numbers: Vec<u64> =
            rest.split_ascii_whitespace().map_while(|w| w.parse().ok()).take(16).collect();
        let name = name.trim();
        (is_name(name) && numbers.len() == 16).then(|| Counters {
            interface: name.into(),
            in_packets: Some(numbers[1]),
            in_errors: Some(numbers[2]),
            in_drops: Some(numbers[3]),
            out_packets: Some(numbers[9]),
            out_errors: Some(numbers[10]),
            out_drops: Some(numbers[11]),
        })
    });
    parsed.take(MOST_ENTRIES).collect()
}

/// Lines `12 packets forwarded` below a protocol's name: the counters by protocol and name, such as `ip: packets forwarded`.
pub fn netstat_s(text: &str) -> BTreeMap<String, u64> {
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
            all.insert(format!("{protocol}: {}", shown(what)), count);
        }
    }
    all
}
