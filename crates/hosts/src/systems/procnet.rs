//! Counters of Linux under /proc, by name.

use super::text::lines;
pub use linerate_measure::collector::{Counters, grown};
use std::collections::BTreeMap;

/// The counters in the text of a file.
pub type Read = fn(&str) -> Counters;

/// Counters of IP, in both versions, that mean a lost packet.
const IP_DROPS: &str = "InHdrErrors InTooBigErrors InNoRoutes InAddrErrors InUnknownProtos InTruncatedPkts InDiscards \
                        OutDiscards OutNoRoutes ReasmFails FragFails";
/// Counters of lost packets of connection tracking. `invalid` is a packet that it did not accept: lost if the rule set drops such packets.
const CONNTRACK_DROPS: [&str; 4] = ["drop", "early_drop", "insert_failed", "invalid"];
/// Counters of lost packets of a link.
const LINK_DROPS: [&str; 5] = [
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_missed",
];

/// Whether a counter means a lost packet: `Ip.InDiscards`, `Conntrack.drop`, `g0.rx_dropped`, `g0.ethtool.rx_queue_0_drops`. One loss
/// may be counted in several places, so they say where, and do not add up.
pub fn is_drop(name: &str) -> bool {
    let Some((group, counter)) = name.split_once('.') else {
        return false;
    };
    if counter.starts_with("ethtool.") || LINK_DROPS.contains(&counter) {
        return true;
    }
    match group {
        "Ip" | "IpExt" | "Ip6" => IP_DROPS.split(' ').any(|known| known == counter),
        "TcpExt" => counter == "IPReversePathFilter",
        "Conntrack" => CONNTRACK_DROPS.contains(&counter),
        _ => false,
    }
}

/// Rows of net/dev: a name, 8 numbers of received frames, 8 of sent ones.
pub fn net_dev(text: &str) -> impl Iterator<Item = (&str, [u64; 16])> {
    lines(text).filter_map(|line| {
        // A name may contain a colon, numbers do not.
        let (name, rest) = line.rsplit_once(':')?;
        let words = rest.split_ascii_whitespace();
        let numbers: Vec<u64> = words.map_while(|n| n.parse().ok()).take(16).collect();
        Some((name.trim(), numbers.try_into().ok()?))
    })
}

/// snmp and netstat: pairs of lines, `Ip: NAME NAME` and `Ip: 1 2`. Negative values (limits) are left out.
pub(crate) fn parse_snmp(text: &str) -> Counters {
    let mut counters = Counters::new();
    let mut lines = text.lines().peekable();
    while let Some((group, names)) = lines.next().and_then(|line| line.split_once(':')) {
        let of_group = |line: &&str| {
            line.split_once(':')
                .is_some_and(|(other, _)| other == group)
        };
        let Some((_, values)) = lines
            .next_if(of_group)
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            counters.extend(
                value
                    .parse()
                    .ok()
                    .map(|value| (format!("{group}.{name}"), value)),
            );
        }
    }
    counters
}

/// snmp6: a line `Ip6InDiscards 1` for each counter, named `Ip6.InDiscards` here as its IPv4 companion is.
pub(crate) fn parse_snmp6(text: &str) -> Counters {
    let line = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let (group, counter) = name.split_at(name.find('6')? + 1);
        Some((format!("{group}.{counter}"), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// A file of /proc/net/stat: a line of names, then a line of hexadecimal numbers for each CPU, summed up: `Conntrack.drop`.
/// `entries` is the same number on every line.
pub(crate) fn parse_stat(group: &str, text: &str) -> Counters {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let mut counters = Counters::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_whitespace()) {
            let Ok(value) = u64::from_str_radix(value, 16) else {
                continue;
            };
            let sum = counters.entry(format!("{group}.{name}")).or_insert(0);
            *sum = if *name == "entries" {
                value
            } else {
                sum.saturating_add(value)
            };
        }
    }
    counters
}

/// Columns of softnet_stat (softnet_seq_show in net/core/net-procfs.c): packets, those that found the backlog full, polls that ended for
/// lack of time or budget, interrupts from other CPUs, packets that a flow limit refused.
const SOFTNET: [(usize, &str); 5] = [
    (0, "processed"),
    (1, "dropped"),
    (2, "time_squeeze"),
    (9, "received_rps"),
    (10, "flow_limit"),
];
/// The column with the CPU's number, since Linux 5.10; before, lines are of the online CPUs in order.
const SOFTNET_CPU: usize = 12;

/// Rows of softnet_stat: a CPU and its numbers.
pub fn softnet(text: &str) -> impl Iterator<Item = (u32, Vec<u64>)> {
    lines(text).enumerate().filter_map(|(nth, line)| {
        let words = line.split_whitespace();
        let numbers: Vec<u64> = words
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .take(16)
            .collect();
        let cpu = numbers.get(SOFTNET_CPU).map_or(nth as u64, |cpu| *cpu);
        Some((u32::try_from(cpu).ok()?, numbers))
    })
}

/// softnet_stat: `CPU0: softnet processed`.
pub(crate) fn parse_softnet(text: &str) -> Counters {
    let row = |(cpu, numbers): (u32, Vec<u64>)| {
        let named =
            move |(at, name)| Some((format!("CPU{cpu}: softnet {name}"), *numbers.get(at)?));
        SOFTNET.into_iter().filter_map(named)
    };
    softnet(text).flat_map(row).collect()
}

/// The columns of a CPU in /proc/stat.
const TICKS: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];

/// Rows of /proc/stat with the kernel's ticks, `cpu0 12 0 …`: a CPU and its numbers. The first line, `cpu`, is the sum.
pub fn ticks(text: &str) -> impl Iterator<Item = (u32, Vec<u64>)> {
    let row = |line: &str| {
        let (cpu, values) = line.strip_prefix("cpu")?.split_once(' ')?;
        let values = values
            .split_ascii_whitespace()
            .map_while(|value| value.parse().ok());
        Some((cpu.parse().ok()?, values.collect()))
    };
    lines(text).filter_map(row)
}

/// /proc/stat: `CPU0: ticks softirq`.
pub(crate) fn parse_ticks(text: &str) -> Counters {
    let row = |(cpu, numbers): (u32, Vec<u64>)| {
        let named = TICKS.into_iter().zip(numbers);
        named.map(move |(name, n)| (format!("CPU{cpu}: ticks {name}"), n))
    };
    ticks(text).flat_map(row).collect()
}

/// Counters of a driver in its order, as `ethtool -S` prints them: lines `     rx_packets: 12`, `     [0]: rx_ucast_packets: 12`.
pub fn driver(text: &str) -> (Vec<String>, Vec<u64>) {
    let row = |line: &str| -> Option<(String, u64)> {
        let (name, value) = line.rsplit_once(':')?;
        Some((
            name.strip_prefix("     ").unwrap_or(name).to_owned(),
            value.trim().parse().ok()?,
        ))
    };
    let (names, values): (Vec<String>, Vec<u64>) =
        text.lines().filter_map(row).take(1 << 16).unzip();
    (under_headings(names), values)
}

/// Names of a driver's counters, each for itself: vmxnet3 has `Tx Queue#`, whose value is the number of a queue, above that queue's
/// `  ucast pkts tx`, which becomes `Tx Queue 0: ucast pkts tx`.
pub fn under_headings(names: Vec<String>) -> Vec<String> {
    let (mut numbers, mut heading) = (BTreeMap::<String, u32>::new(), String::new());
    let mut named = |name: String| match name.strip_suffix('#') {
        Some(of) => {
            let number = numbers.entry(of.into()).or_default();
            heading = format!("{} {number}", of.trim());
            *number += 1;
            heading.clone()
        }
        None if name.starts_with(' ') && !heading.is_empty() => {
            format!("{heading}: {}", name.trim())
        }
        None => {
            heading.clear();
            name.trim().into()
        }
    };
    names.into_iter().map(&mut named).collect()
}

/// A line of interrupts or softirqs: the name, a count for each CPU, and the last word behind them: a device.
pub type InterruptRow<'a> = (&'a str, Vec<u64>, Option<&'a str>);

/// interrupts and softirqs: a line of CPUs, then lines of `name: count count ... words`. Counts without a CPU are one.
pub fn interrupts(text: &str) -> (Vec<&str>, impl Iterator<Item = InterruptRow<'_>>) {
    let mut all = lines(text);
    let cpus: Vec<&str> = all
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let most = cpus.len();
    let row = move |line| {
        let (name, rest) = str::split_once(line, ':')?;
        let mut words = rest.split_ascii_whitespace();
        let counts = words
            .by_ref()
            .take(most)
            .map_while(|w| w.parse().ok())
            .collect();
        Some((name.trim(), counts, words.next_back()))
    };
    (cpus, all.filter_map(row))
}

pub(crate) fn by_cpu(text: &str) -> Counters {
    let (cpus, rows) = interrupts(text);
    let row = |(name, counts, _): InterruptRow<'_>| {
        let named = cpus
            .iter()
            .zip(counts)
            .map(|(cpu, n)| (format!("{cpu}: interrupt {name}"), n));
        named.collect::<Vec<_>>()
    };
    rows.flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_lines_become_named_counters() {
        let text = "Ip: Forwarding InDiscards\nIp: 1 7\nTcp: MaxConn InSegs\nTcp: -1 3\n";
        let expected = [
            ("Ip.Forwarding", 1),
            ("Ip.InDiscards", 7),
            ("Tcp.InSegs", 3),
        ];
        assert_eq!(
            parse_snmp(text),
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
    }

    #[test]
    fn a_group_without_values_does_not_take_those_of_the_next() {
        let counters = parse_snmp("Ip: A\nTcp: B\nTcp: 2\n");
        assert_eq!(counters, Counters::from([("Tcp.B".to_owned(), 2)]));
    }

    #[test]
    fn ipv6_counters_are_named_like_those_of_ipv4() {
        let counters =
            parse_snmp6("Ip6InDiscards                   \t4\nIcmp6OutType143\t2\nnonsense\n");
        assert_eq!(counters["Ip6.InDiscards"], 4);
        assert_eq!(counters["Icmp6.OutType143"], 2);
        assert_eq!(counters.len(), 2);
    }

    #[test]
    fn conntrack_is_summed_over_cpus_but_entries_is_not() {
        let counters = parse_stat(
            "Conntrack",
            "entries  drop early_drop\n00000010 00000001 0000000a\n00000010 00000002 0\n",
        );
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
            parse_stat("A", text);
            parse_softnet(text);
            parse_ticks(text);
            driver(text);
            by_cpu(text);
        }
        parse_stat("A", "a a\nffffffffffffffff ffffffffffffffff\n");
    }

    #[test]
    fn only_growth_is_reported() {
        let reading = |values: &[(&str, u64)]| {
            values
                .iter()
                .map(|(n, v)| ((*n).to_owned(), *v))
                .collect::<Counters>()
        };
        let before = reading(&[("same", 1), ("grown", 2), ("shrunk", 9)]);
        let after = reading(&[("same", 1), ("grown", 5), ("shrunk", 1), ("new", 4)]);
        assert_eq!(grown(&before, &after), reading(&[("grown", 3), ("new", 4)]));
    }

    #[test]
    fn softnet_by_the_cpus_own_number() {
        let text = "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 00000000 00000005 0 0\n00000007 0 0\n";
        let counters = parse_softnet(text);
        assert_eq!(counters["CPU5: softnet processed"], 10);
        assert_eq!(counters["CPU5: softnet time_squeeze"], 2);
        assert_eq!(counters["CPU5: softnet received_rps"], 3);
        assert_eq!(counters["CPU5: softnet flow_limit"], 4);
        assert_eq!(counters["CPU1: softnet processed"], 7);
    }

    #[test]
    fn ticks_and_drivers() {
        let counters = parse_ticks("cpu  9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9\nintr 5\n");
        assert_eq!((counters["CPU1: ticks steal"], counters.len()), (8, 8));
        let (names, values) = driver(
            "NIC statistics:\n     rx_queue_0_packets: 12\n     x: -1\n     [0]: rx_discards: 8\n",
        );
        assert_eq!(
            (names, values),
            (
                ["rx_queue_0_packets", "[0]: rx_discards"]
                    .map(String::from)
                    .into(),
                vec![12, 8]
            )
        );
    }

    #[test]
    fn counters_by_cpu() {
        let text = "           CPU0       CPU1\n  1:        9          0   IO-APIC   1-edge      i8042\nLOC:  100 200   Local timer interrupts\nERR:          3\n";
        let counters = by_cpu(text);
        assert_eq!(counters["CPU0: interrupt 1"], 9);
        assert_eq!(counters["CPU1: interrupt LOC"], 200);
        assert_eq!(counters["CPU0: interrupt ERR"], 3);
        assert_eq!(counters.len(), 5);
        let softirqs = "                    CPU0       CPU1       \n          HI:          1          2\n      NET_RX:  5 6\n";
        let later = by_cpu(&softirqs.replace("5 6", "5 9"));
        assert_eq!(
            grown(&by_cpu(softirqs), &later),
            Counters::from([("CPU1: interrupt NET_RX".into(), 3)])
        );
        for odd in [
            "",
            "CPU0",
            ":\n:",
            "CPU0\nx: y\n: 1\nz: 99999999999999999999",
        ] {
            assert!(by_cpu(odd).len() <= 1, "{odd}");
        }
    }
}
