//! FreeBSD: the commands that print a sample, and their output.

use super::Answers;
use super::queues::Layout;
use crate::cpus::CpuTimes;
use crate::systems::bsd::{self, link_rows};
use crate::systems::text::{lines, pairs, shown, statistics, sysctls};
use crate::systems::{Kernel, MOST_ENTRIES};
use linerate_measure::collector::Counters;
use linerate_measure::record::RuleCount;
use linerate_measure::watch::{Interface, Interrupt, Sample, Side, Table};
use std::collections::BTreeMap;

/// Commands that run once: the names of the drivers' counters. Some of a driver's other values read registers whose reading has effects, or
/// fill pages: only counters of frames are asked for.
pub const BEFORE: &str = r#"
oids=
for i in $(ifconfig -l); do
	driver=${i%%[0-9]*} unit=${i##*[!0-9]}
	[ "$i" = "$driver$unit" ] || continue
	oids="$oids $(sysctl -qN "dev.$driver.$unit" 2>/dev/null | grep -iE 'packet|pkt|byte|frame|octet|drop|discard|ovflow|overrun|overflow|miss|err|enqueues|csum|no_desc|no_buf|\.cnt$' | grep -vE 'dump|debug|%' | tr '\n' ' ')"
done
"#;

/// Commands that ask for those counters.
pub const CARDS: &str = r#"[ "$oids" ] && { echo '==> dev <=='; date +%s.%N; sysctl -q $oids; }"#;

/// Commands that run for some samples: rules.
pub const RULES: &str = "ask pfctl -vsr\nask ipfw -a list";

/// Words of counters of IP that mean a lost packet.
const LOST: [&str; 8] = [
    "drop",
    "discard",
    "no bufs",
    "no route",
    "can't be forwarded",
    "not forwardable",
    "bad header",
    "no buffer",
];
/// Counters of `pfctl -si` that mean a packet that pf did not let pass for a reason of its own; `match` is no loss.
const PF_LOST: [&str; 9] = [
    "bad-offset",
    "memory",
    "congestion",
    "state-mismatch",
    "state-insert",
    "state-limit",
    "src-limit",
    "synproxy",
    "map-failed",
];

/// A sample of a host's output; `here_ns`: the time when the output arrived, which counts if the host's clock is too coarse.
pub fn sample(text: &str, here_ns: u64) -> Sample {
    let answers = Answers::of(text);
    let mut sample = answers.begin(here_ns);
    sample.cpus = CpuTimes::of(Kernel::FreeBsd, answers.to("sysctl -n kern.cp_times")).ticks();
    let drivers = answers.to("dev");
    let driver_at_ns = answers.read_at(drivers);
    sample.interfaces = interfaces(answers.to("netstat -ibdnW"), drivers);
    sample
        .interfaces
        .values_mut()
        .for_each(|interface| interface.driver_at_ns = driver_at_ns);
    let interrupts = bsd::interrupts(answers.to("vmstat -ia"));
    sample.interrupts = interrupts
        .map(|(name, total)| Interrupt {
            name,
            counts: vec![total],
        })
        .collect();
    for (cpu, _, numbers) in bsd::workstreams(answers.to("netstat -Q")) {
        let sum = sample.softnet.entry(cpu).or_default();
        let column = |at: usize| numbers.get(at).copied().unwrap_or(0);
        // A drop is a packet that found its queue full.
        sum.processed = sum.processed.saturating_add(column(4));
        sum.dropped = sum.dropped.saturating_add(column(2));
    }
    sample.counters = lost(&answers);
    sample.states = states(&answers);
    if sample.states.is_none() {
        let why = "states and rules: neither pf nor ipfw is on, or it answers only root (--sudo)";
        sample.missing.push(why.into());
    }
    if answers.0.contains_key("ipfw -a list") {
        let mut rules = pf_rules(answers.to("pfctl -vsr"));
        rules.extend(ipfw_rules(answers.to("ipfw -a list")));
        sample.rules = Some(rules);
    }
    if sample
        .interfaces
        .values()
        .all(|interface| interface.queues.is_empty())
    {
        sample
            .missing
            .push("queues: no driver counts the frames of its queues (sysctl dev)".into());
    }
    sample
}

/// `netstat -ibdnW`, with the drivers' counters.
fn interfaces(netstat: &str, dev: &str) -> BTreeMap<String, Interface> {
    let mut drivers: BTreeMap<String, (Vec<&str>, Vec<u64>)> = BTreeMap::new();
    for (name, value) in pairs(dev, ':') {
        // `dev.em.0.mac_stats.crc_errs` belongs to em0.
        let mut parts = name.strip_prefix("dev.").unwrap_or_default().splitn(3, '.');
        if let (Some(driver), Some(unit), Some(rest), Ok(value)) =
            (parts.next(), parts.next(), parts.next(), value.parse())
        {
            let (names, values) = drivers.entry(format!("{driver}{unit}")).or_default();
            names.push(rest);
            values.push(value);
        }
    }
    let of = |(name, columns): (&str, BTreeMap<&str, u64>)| {
        let sum = |names: &[&str]| {
            names
                .iter()
                .filter_map(|name| columns.get(name))
                .fold(0, |sum: u64, n| sum.saturating_add(*n))
        };
        let side = |packets, bytes, errors, drops: &[&str]| Side {
            packets: sum(&[packets]),
            bytes: sum(&[bytes]),
            errors: sum(&[errors]),
            drops: sum(drops),
            overruns: 0,
        };
        let mut interface = Interface {
            stacked: bsd::is_stacked(name),
            rx: side("Ipkts", "Ibytes", "Ierrs", &["Idrop", "Iqdrops"]),
            tx: side(
                "Opkts",
                "Obytes",
                "Oerrs",
                &["Drop", "Drops", "Odrop", "Oqdrops"],
            ),
            collisions: sum(&["Coll", "Colls"]),
            ..Interface::default()
        };
        if let Some((names, values)) = drivers.get(name) {
            Layout::of(names).fill(names, values, &mut interface);
        }
        (name.to_owned(), interface)
    };
    link_rows(netstat).into_iter().map(of).collect()
}

/// Counters of IP and of pf that mean a lost packet.
fn lost(answers: &Answers<'_>) -> Counters {
    let ip = ["netstat -s -p ip", "netstat -s -p ip6"].map(|title| statistics(answers.to(title)));
    let is_lost = |name: &str| match name.strip_prefix("pf: ") {
        Some(of_pf) => PF_LOST.contains(&of_pf),
        None => LOST.iter().any(|word| name.contains(word)),
    };
    let all = ip
        .into_iter()
        .flatten()
        .chain(bsd::pf(answers.to("pfctl -s info")));
    all.filter(|(name, n)| *n > 0 && is_lost(name)).collect()
}

/// States of pf, or dynamic rules of ipfw.
fn states(answers: &Answers<'_>) -> Option<Table> {
    if let Some(entries) = bsd::pf_states(answers.to("pfctl -s info")) {
        let limit = bsd::most_pf_states(answers.to("pfctl -s memory")).unwrap_or(0);
        return Some(Table { entries, limit });
    }
    let dynamic = sysctls(answers.to("sysctl -q net.inet.ip.fw.dyn_count net.inet.ip.fw.dyn_max"));
    let value = |name: &str| dynamic.get(name)?.parse().ok();
    let limit = value("net.inet.ip.fw.dyn_max").unwrap_or(0);
    value("net.inet.ip.fw.dyn_count").map(|entries| Table { entries, limit })
}

/// `pfctl -vsr`: a rule, and a line `[ Evaluations: 13  Packets: 237 …`.
fn pf_rules(text: &str) -> Vec<RuleCount> {
    let mut rule = "";
    let mut all = Vec::new();
    for line in lines(text) {
        match line.trim().strip_prefix('[') {
            None => rule = line.trim(),
            Some(counted) => {
                let mut words = counted
                    .split_ascii_whitespace()
                    .skip_while(|word| *word != "Packets:")
                    .skip(1);
                if let Some(frames) = words
                    .next()
                    .and_then(|n| n.parse().ok())
                    .filter(|_| !rule.is_empty())
                {
                    all.push(RuleCount {
                        rule: format!("pf: {}", shown(rule)),
                        frames,
                    });
                }
            }
        }
    }
    all.truncate(MOST_ENTRIES);
    all
}

/// `ipfw -a list`: number, packets, bytes and rule; dynamic rules come after the line that begins with `##`.
fn ipfw_rules(text: &str) -> Vec<RuleCount> {
    let row = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse::<u32>().ok()?;
        let frames = words.next()?.parse().ok()?;
        words.next()?.parse::<u64>().ok()?;
        let rule = words.collect::<Vec<_>>().join(" ");
        Some(RuleCount {
            rule: format!("ipfw: {number:05} {}", shown(&rule)),
            frames,
        })
    };
    lines(text)
        .take_while(|line| !line.starts_with("##"))
        .filter_map(row)
        .take(MOST_ENTRIES)
        .collect()
}
