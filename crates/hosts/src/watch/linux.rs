//! Linux: the commands that print a sample on another host, and files of counters. Lines that are malformed are passed over.

use super::Answers;
use super::queues::Layout;
use crate::counters;
use crate::cpus::CpuTimes;
use crate::systems::procnet::{InterruptRow, driver, interrupts, is_drop, net_dev, softnet};
use crate::systems::text::lines;
use crate::systems::{Kernel, MOST_ENTRIES};
use linerate_measure::watch::{Interface, Interrupt, Sample, Side, Softnet, Table};
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::counts;
use std::collections::BTreeMap;

/// Commands that ask for the state and the drivers' counters of interfaces.
pub const CARDS: &str = r#"echo '==> links <=='; grep -s . /sys/class/net/*/ifindex /sys/class/net/*/carrier /sys/class/net/*/speed; ls -d /sys/class/net/*/lower_* 2>/dev/null
for i in $(ls /sys/class/net); do
	[ -e "/sys/class/net/$i/device" ] && { echo "==> ethtool $i <=="; date +%s.%N; ethtool -S "$i" 2>/dev/null; }
done"#;

/// Commands that run for some samples: rules.
pub const RULES: &str = r#"echo '==> iptables <=='; [ -s /proc/net/ip_tables_names ] && iptables-save -c 2>/dev/null
echo '==> nft <=='; nft -t list ruleset 2>&1 || echo 'linerate: no answer'"#;

/// A sample of a host's output; `here_ns`: the time when the output arrived, which counts if the host's clock is too coarse.
pub fn sample(text: &str, here_ns: u64) -> Sample {
    let answers = Answers::of(text);
    let mut sample = answers.begin(here_ns);
    sample.interfaces = net_dev(answers.to("cat /proc/net/dev"))
        .filter_map(interface)
        .take(MOST_ENTRIES)
        .collect();
    links(answers.to("links"), &mut sample.interfaces);
    for (name, interface) in &mut sample.interfaces {
        let said = answers.to(&format!("ethtool {name}"));
        interface.driver_at_ns = answers.read_at(said);
        let (names, values) = driver(said);
        Layout::of(&names).fill(&names, &values, interface);
    }
    files(&mut sample, &|path| {
        let title = if path == "stat" {
            "grep ^cpu /proc/stat"
        } else {
            &format!("cat /proc/{path}")
        };
        answers.to(title).into()
    });
    if let Some(listing) = answers.0.get("nft") {
        let mut rules = counts(Firewall::Iptables, answers.to("iptables"));
        rules.extend(counts(Firewall::Nftables, listing));
        rules.truncate(MOST_ENTRIES);
        if listing.contains("linerate: no answer") {
            let why = listing.lines().next().unwrap_or_default();
            sample
                .missing
                .push(format!("rules: nft does not answer: {}", why.trim()));
        }
        sample.rules = Some(rules);
    }
    sample
}

/// Takes what files below /proc say, by their paths there; an empty text is a file that is not there.
pub fn files(sample: &mut Sample, file: &dyn Fn(&str) -> String) {
    sample.cpus = CpuTimes::of(Kernel::Linux, &file("stat")).ticks();
    for path in ["interrupts", "softirqs"] {
        let text = file(path);
        let (cpus, rows) = interrupts(&text);
        let cpus: Vec<u32> = cpus
            .iter()
            .filter_map(|cpu| cpu.strip_prefix("CPU")?.parse().ok())
            .collect();
        // Of CPUs that are offline, /proc/softirqs has counts and /proc/interrupts does not.
        if sample.interrupt_cpus.is_empty() {
            sample.interrupt_cpus = cpus;
        } else if sample.interrupt_cpus != cpus {
            continue;
        }
        let all = sample.interrupt_cpus.len();
        let rows = rows
            .filter(|(_, counts, _)| counts.len() == all)
            .filter_map(interrupt);
        sample.interrupts.extend(rows.take(MOST_ENTRIES));
    }
    let text = file("net/softnet_stat");
    let of_cpu = |(cpu, numbers): (u32, Vec<u64>)| {
        let [processed, dropped, squeezed, ..] = numbers[..] else {
            return None;
        };
        Some((
            cpu,
            Softnet {
                processed,
                dropped,
                squeezed,
            },
        ))
    };
    sample.softnet = softnet(&text).filter_map(of_cpu).collect();
    let all = counters::files(true).flat_map(|(path, read)| read(&file(path)));
    sample.counters = all
        .filter(|(name, value)| *value > 0 && is_drop(name))
        .collect();
    let table = |value: &str| {
        file(&format!("sys/net/netfilter/nf_conntrack_{value}"))
            .trim()
            .parse()
            .ok()
    };
    sample.states = table("count")
        .zip(table("max"))
        .map(|(entries, limit)| Table { entries, limit });
    if sample.states.is_none() {
        sample
            .missing
            .push("connections: the kernel tracks none (nf_conntrack is not loaded)".into());
    }
}

/// An interrupt with its device, unless it never came.
fn interrupt((name, counts, device): InterruptRow<'_>) -> Option<Interrupt> {
    // Names of others are explained there: `Local timer interrupts`.
    let device = device.filter(|_| name.starts_with(|c: char| c.is_ascii_digit()));
    let name = device.map_or(name.into(), |device| format!("{name} {device}"));
    counts
        .iter()
        .any(|count| *count > 0)
        .then_some(Interrupt { name, counts })
}

/// An interface of /proc/net/dev. The kernel adds the frames that the card had no room for to the drops.
fn interface((name, numbers): (&str, [u64; 16])) -> Option<(String, Interface)> {
    let side = |[bytes, packets, errors, drops]: [u64; 4], overruns| Side {
        packets,
        bytes,
        drops,
        errors,
        overruns,
    };
    let [rx, _, tx, _] = [0, 4, 8, 12].map(|at| [0, 1, 2, 3].map(|nth| numbers[at + nth]));
    let interface = Interface {
        rx: side(rx, numbers[4]),
        tx: side(tx, 0),
        collisions: numbers[13],
        stacked: name == "lo",
        ..Interface::default()
    };
    name.chars()
        .all(|c| c.is_ascii_graphic())
        .then(|| (name.to_owned(), interface))
}

/// Lines `/sys/class/net/eth0/carrier:1`, and `/sys/class/net/br0/lower_eth0` of an interface that stands on another.
fn links(text: &str, interfaces: &mut BTreeMap<String, Interface>) {
    for line in lines(text) {
        let Some((name, rest)) = line
            .strip_prefix("/sys/class/net/")
            .and_then(|line| line.split_once('/'))
        else {
            continue;
        };
        let Some(interface) = interfaces.get_mut(name) else {
            continue;
        };
        match rest.split_once(':') {
            Some(("ifindex", value)) => interface.index = value.trim().parse().unwrap_or(0),
            Some(("carrier", value)) => interface.carrier = Some(value.trim() == "1"),
            // Mbit/s; -1 without a link.
            Some(("speed", value)) => {
                interface.speed = value
                    .trim()
                    .parse::<f64>()
                    .ok()
                    .filter(|speed| *speed > 0.0)
                    .map(|speed| speed * 1e6)
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

    const HOST: &str = "motd\n==> date +%s.%N <==\n1700000000.000000005\n==> cat /proc/net/dev <==\nInter-|   Receive   |  Transmit\n face |bytes packets\n\
        \x20 eth0: 100 2 3 4 5 0 0 0 200 6 7 8 0 9 0 0\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  br0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
        ==> links <==\n/sys/class/net/eth0/ifindex:2\n/sys/class/net/eth0/carrier:1\n/sys/class/net/eth0/speed:10000\n/sys/class/net/lo/speed:-1\n/sys/class/net/br0/lower_eth0\n\
        ==> ethtool eth0 <==\n1700000000.100000000\nNIC statistics:\n     rx_queue_0_packets: 7\n     [1]: rx_ucast_packets: 8\n     rx_csum_errors: 9\n     other: 0\n\
        ==> grep ^cpu /proc/stat <==\ncpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\n\
        ==> cat /proc/interrupts <==\n           CPU0       CPU2\n 36:   0  6890809 PCI-MSIX-0000:00:02.0   1-edge      eth0-rx-0\n 40: 0 0 x y\nLOC: 5 6 Local timer interrupts\nERR: 0\n\
        ==> cat /proc/softirqs <==\n CPU0 CPU2\n NET_RX: 1 2\n==> cat /proc/net/softnet_stat <==\n0de7d18a 00000001 0000001d 0 0 0 0 0 0 0001acbd 0 0 00000002 0 0\n\
        ==> cat /proc/net/snmp <==\nIp: Forwarding InDiscards\nIp: 1 7\n==> cat /proc/sys/net/netfilter/nf_conntrack_count <==\n12\n==> cat /proc/sys/net/netfilter/nf_conntrack_max <==\n262144\n==> nft <==\ntable ip a {\n\tchain b {\n\t\tcounter packets 5 bytes 300 accept\n\t}\n}\n";

    #[test]
    fn what_a_host_prints_becomes_a_sample() {
        let sample = sample(HOST, 1);
        let eth0 = &sample.interfaces["eth0"];
        let rx = Side {
            packets: 2,
            bytes: 100,
            drops: 4,
            errors: 3,
            overruns: 5,
        };
        let tx = Side {
            packets: 6,
            bytes: 200,
            drops: 8,
            errors: 7,
            overruns: 0,
        };
        assert_eq!(
            (eth0.rx, eth0.tx, eth0.collisions, eth0.index),
            (rx, tx, 9, 2)
        );
        assert_eq!((eth0.carrier, eth0.speed), (Some(true), Some(1e10)));
        assert_eq!(eth0.driver_at_ns, 1_700_000_000_100_000_000);
        let queue = |packets| Queue {
            rx: Some(Side {
                packets,
                ..Side::default()
            }),
            tx: None,
        };
        assert_eq!(eth0.queues, [queue(7), queue(8)]);
        assert_eq!(eth0.driver, [("rx_csum_errors".into(), 9)].into());
        let stacked: Vec<bool> = sample
            .interfaces
            .values()
            .map(|interface| interface.stacked)
            .collect();
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
            [
                ("36 eth0-rx-0", &[0, 6_890_809][..]),
                ("LOC", &[5, 6]),
                ("NET_RX", &[1, 2])
            ]
        );
        assert_eq!(
            sample.softnet,
            [(
                2,
                Softnet {
                    processed: 0x0de7_d18a,
                    dropped: 1,
                    squeezed: 29
                }
            )]
            .into()
        );
        assert_eq!(sample.counters, [("Ip.InDiscards".into(), 7)].into());
        assert_eq!(
            sample.states,
            Some(Table {
                entries: 12,
                limit: 262_144
            })
        );
        assert_eq!(sample.rules.as_ref().map(Vec::len), Some(1));
        assert_eq!(
            (sample.at_ns, sample.missing),
            (1_700_000_000_000_000_005, vec![])
        );
    }

    #[test]
    fn parts_that_are_missing_are_named() {
        let sample = sample(
            "==> date +%s.%N <==\n1700000000.N\n==> nft <==\nOperation not permitted\nlinerate: no answer\n==> end <==\n",
            7,
        );
        assert_eq!(sample.at_ns, 7);
        assert_eq!(sample.missing.len(), 3, "{:?}", sample.missing);
    }

    /// A file that is not asked for on a host would never say anything.
    #[test]
    fn every_file_is_asked_for() {
        let [_, asked] = counters::sampling(Kernel::Linux);
        files(&mut Sample::default(), &|path| {
            let is_asked = asked
                .lines()
                .any(|line| line.ends_with(&format!(" /proc/{path}")));
            assert!(is_asked, "{path}");
            String::new()
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn no_output_makes_it_panic(text in "(==> (cat /proc/net/dev|links|ethtool e|grep \\^cpu /proc/stat|cat /proc/interrupts|cat /proc/net/softnet_stat|nft) <==\n|\\PC{0,20}\n|CPU0 CPU1\n|e: [0-9 ]{1,40}\n|/sys/class/net/e/speed:1\n){0,16}") {
            sample(&text, 1);
        }
    }
}
