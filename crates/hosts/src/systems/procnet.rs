//! Counters of Linux under /proc, by name.

pub use linerate_measure::collector::{Counters, grown};
use std::collections::BTreeMap;

/// The files below /proc of a network namespace.
pub const OF_NAMESPACE: [&str; 4] = ["net/snmp", "net/netstat", "net/snmp6", "net/stat/nf_conntrack"];
/// Files that the machine has once; the kernel counts by CPU in them, for all namespaces together.
pub const OF_ALL_NAMESPACES: [&str; 6] = [
    "net/softnet_stat",
    "net/stat/rt_cache",
    "net/stat/arp_cache",
    "net/stat/ndisc_cache",
    "interrupts",
    "softirqs",
];

/// The counters of a file, by its path; none of a file that is not known here.
pub fn of_file(path: &str, text: &str) -> Counters {
    match path.rsplit('/').next().unwrap_or_default() {
        "snmp" | "netstat" => parse_snmp(text),
        "snmp6" => parse_snmp6(text),
        "nf_conntrack" => parse_stat("Conntrack", text),
        "rt_cache" => parse_stat("RtCache", text),
        "arp_cache" => parse_stat("Arp", text),
        "ndisc_cache" => parse_stat("Ndisc", text),
        "softnet_stat" => parse_softnet(text),
        "interrupts" | "softirqs" => by_cpu(text),
        "stat" => parse_ticks(text),
        _ => Counters::new(),
    }
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

/// A file of /proc/net/stat: a line of names, then a line of hexadecimal numbers for each CPU, summed up: `Conntrack.drop`.
/// `entries` is the same number on every line.
pub fn parse_stat(group: &str, text: &str) -> Counters {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let mut counters = Counters::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_whitespace()) {
            let Ok(value) = u64::from_str_radix(value, 16) else { continue };
            let sum = counters.entry(format!("{group}.{name}")).or_insert(0);
            *sum = if *name == "entries" { value } else { sum.saturating_add(value) };
        }
    }
    counters
}

/// Columns of softnet_stat (softnet_seq_show in net/core/net-procfs.c): packets, those that found the backlog full, polls that ended for
/// lack of time or budget, interrupts from other CPUs, packets that a flow limit refused.
const SOFTNET: [(usize, &str); 5] =
    [(0, "processed"), (1, "dropped"), (2, "time_squeeze"), (9, "received_rps"), (10, "flow_limit")];
/// The column with the CPU's number, since Linux 5.10.
const SOFTNET_CPU: usize = 12;

/// softnet_stat: a line for each CPU: `CPU0: softnet processed`.
pub fn parse_softnet(text: &str) -> Counters {
    let mut counters = Counters::new();
    for (nth, line) in text.lines().enumerate() {
        let words = line.split_whitespace();
        let numbers: Vec<u64> = words.map_while(|word| u64::from_str_radix(word, 16).ok()).take(16).collect();
        let cpu = numbers.get(SOFTNET_CPU).copied().unwrap_or(nth as u64);
        let known = SOFTNET.iter().filter_map(|(at, name)| Some((name, *numbers.get(*at)?)));
        counters.extend(known.map(|(name, n)| (format!("CPU{cpu}: softnet {name}"), n)));
    }
    counters
}

/// The columns of a CPU in /proc/stat.
const TICKS: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// /proc/stat: lines `cpu0 12 0 …` of the kernel's ticks: `CPU0: ticks softirq`.
pub fn parse_ticks(text: &str) -> Counters {
    let line = |line: &str| {
        let (cpu, values) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu: u32 = cpu.parse().ok()?;
        let values = values.split_whitespace().map_while(|value| value.parse::<u64>().ok());
        let named = TICKS.iter().zip(values);
        Some(named.map(|(name, n)| (format!("CPU{cpu}: ticks {name}"), n)).collect::<Vec<_>>())
    };
    text.lines().filter_map(line).flatten().collect()
}

/// Counters of a driver in its order, as `ethtool -S` prints them: lines `     rx_packets: 12`, `     [0]: rx_ucast_packets: 12`.
pub fn driver(text: &str) -> (Vec<String>, Vec<u64>) {
    let row = |line: &str| -> Option<(String, u64)> {
        let (name, value) = line.rsplit_once(':')?;
        Some((name.strip_prefix("     ").unwrap_or(name).to_owned(), value.trim().parse().ok()?))
    };
    let (names, values): (Vec<String>, Vec<u64>) = text.lines().filter_map(row).take(1 << 16).unzip();
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
        None if name.starts_with(' ') && !heading.is_empty() => format!("{heading}: {}", name.trim()),
        None => {
            heading.clear();
            name.trim().into()
        }
    };
    names.into_iter().map(&mut named).collect()
}

/// interrupts and softirqs: a line of CPUs, then lines of `name: count count ... words`.
pub fn by_cpu(text: &str) -> Counters {
    let mut lines = text.lines();
    let cpus: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let mut all = Counters::new();
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let mut words = rest.split_whitespace();
        let counts: Vec<u64> = words.by_ref().take(cpus.len()).map_while(|w| w.parse().ok()).collect();
        for (cpu, n) in cpus.iter().zip(counts) {
            all.insert(format!("{cpu}: interrupt {}", name.trim()), n);
        }
    }
    all
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
        let reading =
            |values: &[(&str, u64)]| values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<Counters>();
        let before = reading(&[("same", 1), ("grown", 2), ("shrunk", 9)]);
        let after = reading(&[("same", 1), ("grown", 5), ("shrunk", 1), ("new", 4)]);
        assert_eq!(grown(&before, &after), reading(&[("grown", 3), ("new", 4)]));
    }

    #[test]
    fn softnet_by_the_cpus_own_number() {
        let text =
            "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 00000000 00000005 0 0\n00000007 0 0\n";
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
        let (names, values) =
            driver("NIC statistics:\n     rx_queue_0_packets: 12\n     x: -1\n     [0]: rx_discards: 8\n");
        assert_eq!(
            (names, values),
            (["rx_queue_0_packets", "[0]: rx_discards"].map(String::from).into(), vec![12, 8])
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
        assert_eq!(grown(&by_cpu(softirqs), &later), Counters::from([("CPU1: interrupt NET_RX".into(), 3)]));
        for odd in ["", "CPU0", ":\n:", "CPU0\nx: y\n: 1\nz: 99999999999999999999"] {
            assert!(by_cpu(odd).len() <= 1, "{odd}");
        }
    }
}
