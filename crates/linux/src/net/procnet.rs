//! The counters of a namespace under /proc/net, by name; and those among them that mean "a packet was lost here".
//!
//! The parsers are pure: text in, numbers out; malformed lines are left out, nothing panics.

pub use linerate_measure::collector::{Counters, grown};
use std::fs;
use std::io;

use super::Netns;
use super::ethtool::Ethtool;
use super::netlink::{LinkInfo, Route};
use crate::error::{Doing, Error};

/// From text to counters.
type Parser = fn(&str) -> Counters;

/// The files, and how each is read.
const FILES: [(&str, Parser); 4] = [
    ("snmp", parse_snmp),
    ("netstat", parse_snmp),
    ("snmp6", parse_snmp6),
    ("stat/nf_conntrack", parse_conntrack),
];

/// Counters of IP, in both versions, that mean a lost packet.
const IP_DROPS: &str = "InHdrErrors InTooBigErrors InNoRoutes InAddrErrors InUnknownProtos InTruncatedPkts InDiscards \
                        OutDiscards OutNoRoutes ReasmFails FragFails";
/// The same of connection tracking. `invalid` is a packet that it did not accept: lost if the rule set drops such packets.
const CONNTRACK_DROPS: [&str; 4] = ["drop", "early_drop", "insert_failed", "invalid"];

/// Endings of drivers' counters that mean a lost packet. An XDP program that drops on purpose counts as well.
const DRIVER_DROPS: [&str; 4] = ["_drops", "_xdp_drops", "_xmit_errors", "xdp_tx_errors"];

/// All counters of snmp, snmp6, netstat and stat/nf_conntrack in the namespace. Files the kernel does not have are
/// left out.
pub fn counters(ns: &Netns) -> Result<Counters, Error> {
    ns.run(|| {
        let mut all = Counters::new();
        for (file, parse) in FILES {
            let path = format!("/proc/thread-self/net/{file}");
            match fs::read_to_string(&path) {
                Ok(text) => all.append(&mut parse(&text)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                failed => drop(failed.doing(format_args!("read {path} in namespace {}", ns.label()))?),
            }
        }
        Ok(all)
    })
}

/// Every counter of the namespace that means a lost packet, to be compared with a later reading: `Ip.InDiscards`,
/// `Conntrack.drop`, `g0.rx_dropped` (links), `g0.ethtool.rx_queue_0_drops` (their drivers). One loss may be counted in
/// several places, so they say where, and do not add up.
pub fn drop_counters(ns: &Netns) -> Result<Counters, Error> {
    let mut drops: Counters = counters(ns)?.into_iter().filter(|(name, _)| is_drop(name)).collect();
    let ethtool = Ethtool::open(ns)?;
    for link in Route::open(ns)?.links()? {
        drops.extend(link_drops(&link));
        // Drivers without counters return an error; a link may have been removed by now.
        let stats = ethtool.stats(&link.name).unwrap_or_default();
        let lost = stats.into_iter().filter(|(name, _)| DRIVER_DROPS.iter().any(|end| name.ends_with(end)));
        drops.extend(lost.map(|(name, value)| (format!("{}.ethtool.{name}", link.name), value)));
    }
    Ok(drops)
}

/// Whether a counter of [`counters`] means a lost packet.
pub(crate) fn is_drop(name: &str) -> bool {
    let Some((group, counter)) = name.split_once('.') else { return false };
    match group {
        "Ip" | "IpExt" | "Ip6" => IP_DROPS.split(' ').any(|known| known == counter),
        "TcpExt" => counter == "IPReversePathFilter",
        "Conntrack" => CONNTRACK_DROPS.contains(&counter),
        _ => false,
    }
}

fn link_drops(link: &LinkInfo) -> [(String, u64); 5] {
    let stats = &link.stats;
    [
        ("rx_dropped", stats.rx_dropped),
        ("tx_dropped", stats.tx_dropped),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_missed", stats.rx_missed),
    ]
    .map(|(counter, value)| (format!("{}.{counter}", link.name), value))
}

/// snmp and netstat: pairs of lines, `Ip: NAME NAME` and `Ip: 1 2`. Negative values (limits) are left out.
pub fn parse_snmp(text: &str) -> Counters {
    let mut counters = Counters::new();
    let mut lines = text.lines().peekable();
    while let Some((group, names)) = lines.next().and_then(|line| line.split_once(':')) {
        let of_group = |line: &&str| line.split_once(':').is_some_and(|(other, _)| other == group);
        let Some((_, values)) = lines.next_if(of_group).and_then(|line| line.split_once(':')) else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            counters.extend(value.parse().ok().map(|value| (format!("{group}.{name}"), value)));
        }
    }
    counters
}

/// snmp6: a line `Ip6InDiscards 1` for each counter, named `Ip6.InDiscards` here as its IPv4 brother is.
pub fn parse_snmp6(text: &str) -> Counters {
    let line = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let (group, counter) = name.split_at(name.find('6')? + 1);
        Some((format!("{group}.{counter}"), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// stat/nf_conntrack: a line of names, then a line of hexadecimal numbers for each CPU, summed up. `entries` is the
/// same number on every line.
pub fn parse_conntrack(text: &str) -> Counters {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let mut counters = Counters::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_whitespace()) {
            let Ok(value) = u64::from_str_radix(value, 16) else { continue };
            let sum = counters.entry(format!("Conntrack.{name}")).or_insert(0);
            *sum = if *name == "entries" { value } else { sum.saturating_add(value) };
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_lines_become_named_counters() {
        let text = "Ip: Forwarding InDiscards\nIp: 1 7\nTcp: MaxConn InSegs\nTcp: -1 3\n";
        let expected = [("Ip.Forwarding", 1), ("Ip.InDiscards", 7), ("Tcp.InSegs", 3)];
        assert_eq!(parse_snmp(text), expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn a_group_without_values_does_not_take_those_of_the_next() {
        let counters = parse_snmp("Ip: A\nTcp: B\nTcp: 2\n");
        assert_eq!(counters, Counters::from([("Tcp.B".to_owned(), 2)]));
    }

    #[test]
    fn ipv6_counters_are_named_like_those_of_ipv4() {
        let counters = parse_snmp6("Ip6InDiscards                   \t4\nIcmp6OutType143\t2\nnonsense\n");
        assert_eq!(counters["Ip6.InDiscards"], 4);
        assert_eq!(counters["Icmp6.OutType143"], 2);
        assert_eq!(counters.len(), 2);
    }

    #[test]
    fn conntrack_is_summed_over_cpus_but_entries_is_not() {
        let counters =
            parse_conntrack("entries  drop early_drop\n00000010 00000001 0000000a\n00000010 00000002 0\n");
        assert_eq!(counters["Conntrack.entries"], 16);
        assert_eq!(counters["Conntrack.drop"], 3);
        assert_eq!(counters["Conntrack.early_drop"], 10);
    }

    #[test]
    fn hostile_text_never_panics() {
        let texts = [
            "",
            ":",
            "::\n::\n",
            "Ip:\nIp:",
            "Ip: a\nIp: 99999999999999999999999",
            "6 1",
            "é6 é\n\u{0}6\t-1",
            "a b\n",
        ];
        for text in texts {
            parse_snmp(text);
            parse_snmp6(text);
            parse_conntrack(text);
        }
        parse_conntrack("a a\nffffffffffffffff ffffffffffffffff\n");
    }

    #[test]
    fn only_growth_is_reported() {
        let reading =
            |values: &[(&str, u64)]| values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<Counters>();
        let before = reading(&[("same", 1), ("grown", 2), ("shrunk", 9)]);
        let after = reading(&[("same", 1), ("grown", 5), ("shrunk", 1), ("new", 4)]);
        assert_eq!(grown(&before, &after), reading(&[("grown", 3), ("new", 4)]));
    }
}
