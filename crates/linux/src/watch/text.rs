//! Linux's files of counters, and the commands that print them on another host. Pure: text in, numbers out; lines that are malformed
//! are passed over.

use crate::net::procnet::is_drop;
use linerate_hosts::cpus::CpuTimes;
use linerate_hosts::systems::Kernel;
use linerate_hosts::systems::procnet::{driver, parse_snmp, parse_snmp6, parse_stat};
use linerate_hosts::watch::queues::Layout;
use linerate_hosts::watch::{fine_time, sections};
use linerate_measure::watch::{Interface, Interrupt, Sample, Side, Softnet, Table};
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::counts;
use std::collections::BTreeMap;

/// Interfaces and interrupts that are read.
const MOST: usize = 20_000;

/// Commands that run on a host for each sample.
pub const EACH: &str = r#"
echo '@@ time'; date +%s.%N
echo '@@ dev'; cat /proc/net/dev
echo '@@ links'; grep -s . /sys/class/net/*/ifindex /sys/class/net/*/carrier /sys/class/net/*/speed; ls -d /sys/class/net/*/lower_* 2>/dev/null
for i in $(ls /sys/class/net); do
	[ -e "/sys/class/net/$i/device" ] && { echo "@@ ethtool $i"; date +%s.%N; ethtool -S "$i" 2>/dev/null; }
done
echo '@@ cpus'; grep '^cpu' /proc/stat
echo '@@ interrupts'; cat /proc/interrupts
echo '@@ softirqs'; cat /proc/softirqs
echo '@@ softnet'; cat /proc/net/softnet_stat
echo '@@ snmp'; cat /proc/net/snmp /proc/net/netstat
echo '@@ snmp6'; cat /proc/net/snmp6 2>/dev/null
echo '@@ conntrack'; cat /proc/net/stat/nf_conntrack 2>/dev/null
echo '@@ states'; cat /proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max 2>/dev/null"#;

/// Commands that run for some samples: rules.
pub const RULES: &str = r#"
echo '@@ iptables'; [ -s /proc/net/ip_tables_names ] && iptables-save -c 2>/dev/null
echo '@@ nft'; nft -t list ruleset 2>&1 || echo 'linerate: no answer'"#;

/// A sample of the sections that a host has printed; `here_ns`: when they arrived, which counts if the host's clock is too coarse.
pub fn sample(text: &str, here_ns: u64) -> Sample {
    let sections = sections(text);
    let section = |name: &str| sections.get(name).copied().unwrap_or_default();
    let at_ns = fine_time(section("time"));
    let mut sample = Sample { at_ns: at_ns.unwrap_or(here_ns), ..Sample::default() };
    sample.interfaces = net_dev(section("dev"));
    links(section("links"), &mut sample.interfaces);
    for (name, interface) in &mut sample.interfaces {
        let said = section(&format!("ethtool {name}"));
        interface.driver_at_ns = fine_time(said).filter(|_| at_ns.is_some()).unwrap_or(0);
        let (names, values) = driver(said);
        Layout::of(&names).fill(&names, &values, interface);
    }
    files(&mut sample, &|name| section(name).into());
    if let Some(listing) = sections.get("nft") {
        let mut rules = counts(Firewall::Iptables, section("iptables"));
        rules.extend(counts(Firewall::Nftables, listing));
        rules.truncate(MOST);
        if listing.contains("linerate: no answer") {
            let why = listing.lines().next().unwrap_or_default();
            sample.missing.push(format!("rules: nft does not answer: {}", why.trim()));
        }
        sample.rules = Some(rules);
    }
    if at_ns.is_none() {
        sample.missing.push(
            "the host's clock shows whole seconds: rates are by the time at which samples arrived".into(),
        );
    }
    sample
}

/// Takes what files of /proc say, by the names of sections; an empty text is a file that is not there.
pub fn files(sample: &mut Sample, file: &dyn Fn(&str) -> String) {
    sample.cpus = CpuTimes::of(Kernel::Linux, &file("cpus")).ticks();
    for name in ["interrupts", "softirqs"] {
        let (cpus, interrupts) = interrupts(&file(name));
        // Of CPUs that are offline, /proc/softirqs has counts and /proc/interrupts does not.
        if sample.interrupt_cpus.is_empty() {
            sample.interrupt_cpus = cpus;
        } else if sample.interrupt_cpus != cpus {
            continue;
        }
        sample.interrupts.extend(interrupts);
    }
    sample.softnet = softnet(&file("softnet"));
    let mut counters = parse_snmp(&file("snmp"));
    counters.append(&mut parse_snmp6(&file("snmp6")));
    counters.append(&mut parse_stat("Conntrack", &file("conntrack")));
    counters.retain(|name, value| *value > 0 && is_drop(name));
    sample.counters = counters;
    let states = file("states");
    let mut numbers = states.split_ascii_whitespace().map_while(|n| n.parse().ok());
    sample.states = numbers.next().zip(numbers.next()).map(|(entries, limit)| Table { entries, limit });
    if sample.states.is_none() {
        sample.missing.push("connections: the kernel tracks none (nf_conntrack is not loaded)".into());
    }
}

/// A line of CPUs, then lines of `name: count count ... chip device`. Those that never came are left out.
fn interrupts(text: &str) -> (Vec<u32>, Vec<Interrupt>) {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<u32> = header.filter_map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect();
    let row = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut rest = rest.trim_start();
        let mut counts = Vec::with_capacity(cpus.len());
        while counts.len() < cpus.len() {
            let (word, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            counts.push(word.parse().ok()?);
            rest = more.trim_start();
        }
        let name = name.trim();
        // Names of others are explained there: `Local timer interrupts`.
        let device = rest
            .split_ascii_whitespace()
            .next_back()
            .filter(|_| name.starts_with(|c: char| c.is_ascii_digit()));
        let came = counts.iter().any(|count| *count > 0);
        came.then(|| Interrupt {
            name: device.map_or(name.into(), |device| format!("{name} {device}")),
            counts,
        })
    };
    let interrupts = lines.filter_map(row).take(MOST).collect();
    (cpus, interrupts)
}

/// /proc/net/softnet_stat: a line of hexadecimal numbers for each CPU: processed, dropped, squeezed ..., and in column 13 the CPU's number
/// (Linux 5.14; before that, lines are of the online CPUs in order).
fn softnet(text: &str) -> BTreeMap<u32, Softnet> {
    let row = |(nth, line): (usize, &str)| {
        let numbers: Vec<u64> = line
            .split_ascii_whitespace()
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .take(13)
            .collect();
        let [processed, dropped, squeezed, ..] = numbers[..] else { return None };
        let cpu = numbers.get(12).map_or(nth as u64, |cpu| *cpu);
        Some((u32::try_from(cpu).ok()?, Softnet { processed, dropped, squeezed }))
    };
    text.lines().take(MOST).enumerate().filter_map(row).collect()
}

/// /proc/net/dev: two lines of headings, then `name: ` with 8 counters of received and 8 of sent frames.
fn net_dev(text: &str) -> BTreeMap<String, Interface> {
    let row = |line: &str| {
        // A name may contain a colon, numbers do not.
        let (name, rest) = line.rsplit_once(':')?;
        let n: Vec<u64> = rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [
            rx_bytes,
            rx_packets,
            rx_errors,
            rx_drops,
            rx_fifo,
            _,
            _,
            _,
            tx_bytes,
            tx_packets,
            tx_errors,
            tx_drops,
            _,
            collisions,
            ..,
        ] = n[..]
        else {
            return None;
        };
        // The kernel adds the frames that the card had no room for to the drops.
        let rx = Side {
            packets: rx_packets,
            bytes: rx_bytes,
            drops: rx_drops,
            errors: rx_errors,
            overruns: rx_fifo,
        };
        let tx =
            Side { packets: tx_packets, bytes: tx_bytes, drops: tx_drops, errors: tx_errors, overruns: 0 };
        let stacked = name.trim() == "lo";
        let is_plain = name.trim().chars().all(|c| c.is_ascii_graphic());
        is_plain.then(|| {
            (name.trim().to_owned(), Interface { rx, tx, collisions, stacked, ..Interface::default() })
        })
    };
    text.lines().filter_map(row).take(MOST).collect()
}

/// Lines `/sys/class/net/eth0/carrier:1`, and `/sys/class/net/br0/lower_eth0` of an interface that stands on another.
fn links(text: &str, interfaces: &mut BTreeMap<String, Interface>) {
    for line in text.lines().take(8 * MOST) {
        let Some((name, rest)) = line.strip_prefix("/sys/class/net/").and_then(|line| line.split_once('/'))
        else {
            continue;
        };
        let Some(interface) = interfaces.get_mut(name) else { continue };
        match rest.split_once(':') {
            Some(("ifindex", value)) => interface.index = value.trim().parse().unwrap_or(0),
            Some(("carrier", value)) => interface.carrier = Some(value.trim() == "1"),
            // Mbit/s; -1 without a link.
            Some(("speed", value)) => {
                interface.speed =
                    value.trim().parse::<f64>().ok().filter(|speed| *speed > 0.0).map(|speed| speed * 1e6)
            }
            _ => interface.stacked |= rest.starts_with("lower_"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::watch::Queue;
    use proptest::prelude::*;

    const HOST: &str = "motd\n@@ time\n1700000000.000000005\n@@ dev\nInter-|   Receive   |  Transmit\n face |bytes packets\n\
        \x20 eth0: 100 2 3 4 5 0 0 0 200 6 7 8 0 9 0 0\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  br0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
        @@ links\n/sys/class/net/eth0/ifindex:2\n/sys/class/net/eth0/carrier:1\n/sys/class/net/eth0/speed:10000\n/sys/class/net/lo/speed:-1\n/sys/class/net/br0/lower_eth0\n\
        @@ ethtool eth0\n1700000000.100000000\nNIC statistics:\n     rx_queue_0_packets: 7\n     [1]: rx_ucast_packets: 8\n     rx_csum_errors: 9\n     other: 0\n\
        @@ cpus\ncpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\n\
        @@ interrupts\n           CPU0       CPU2\n 36:   0  6890809 PCI-MSIX-0000:00:02.0   1-edge      eth0-rx-0\n 40: 0 0 x y\nLOC: 5 6 Local timer interrupts\nERR: 0\n\
        @@ softirqs\n CPU0 CPU2\n NET_RX: 1 2\n@@ softnet\n0de7d18a 00000001 0000001d 0 0 0 0 0 0 0001acbd 0 0 00000002 0 0\n\
        @@ snmp\nIp: Forwarding InDiscards\nIp: 1 7\n@@ states\n12\n262144\n@@ nft\ntable ip a {\n\tchain b {\n\t\tcounter packets 5 bytes 300 accept\n\t}\n}\n";

    #[test]
    fn what_a_host_prints_becomes_a_sample() {
        let sample = sample(HOST, 1);
        let eth0 = &sample.interfaces["eth0"];
        let rx = Side { packets: 2, bytes: 100, drops: 4, errors: 3, overruns: 5 };
        let tx = Side { packets: 6, bytes: 200, drops: 8, errors: 7, overruns: 0 };
        assert_eq!((eth0.rx, eth0.tx, eth0.collisions, eth0.index), (rx, tx, 9, 2));
        assert_eq!((eth0.carrier, eth0.speed), (Some(true), Some(1e10)));
        assert_eq!(eth0.driver_at_ns, 1_700_000_000_100_000_000);
        let queue = |packets| Queue { rx: Some(Side { packets, ..Side::default() }), tx: None };
        assert_eq!(eth0.queues, [queue(7), queue(8)]);
        assert_eq!(eth0.driver, [("rx_csum_errors".into(), 9)].into());
        let stacked: Vec<bool> = sample.interfaces.values().map(|interface| interface.stacked).collect();
        assert_eq!(stacked, [true, false, true], "br0, eth0, lo");
        assert_eq!(sample.cpus, [(0, [1, 2, 3, 9, 0, 6, 7, 8])].into());
        assert_eq!(sample.interrupt_cpus, [0, 2]);
        let interrupts: Vec<(&str, &[u64])> = sample
            .interrupts
            .iter()
            .map(|interrupt| (interrupt.name.as_str(), &interrupt.counts[..]))
            .collect();
        assert_eq!(
            interrupts,
            [("36 eth0-rx-0", &[0, 6_890_809][..]), ("LOC", &[5, 6]), ("NET_RX", &[1, 2])]
        );
        assert_eq!(
            sample.softnet,
            [(2, Softnet { processed: 0x0de7_d18a, dropped: 1, squeezed: 29 })].into()
        );
        assert_eq!(sample.counters, [("Ip.InDiscards".into(), 7)].into());
        assert_eq!(sample.states, Some(Table { entries: 12, limit: 262_144 }));
        assert_eq!(sample.rules.as_ref().map(Vec::len), Some(1));
        assert_eq!((sample.at_ns, sample.missing), (1_700_000_000_000_000_005, vec![]));
    }

    #[test]
    fn parts_that_are_missing_are_named() {
        let sample = sample(
            "@@ time\n1700000000.N\n@@ nft\nOperation not permitted\nlinerate: no answer\n@@ end\n",
            7,
        );
        assert_eq!(sample.at_ns, 7);
        assert_eq!(sample.missing.len(), 3, "{:?}", sample.missing);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_output_makes_it_panic(text in "(@@ (dev|links|ethtool e|cpus|interrupts|softnet|states|nft)\n|\\PC{0,20}\n|CPU0 CPU1\n|e: [0-9 ]{1,40}\n|/sys/class/net/e/speed:1\n){0,16}") {
            sample(&text, 1);
        }
    }
}
