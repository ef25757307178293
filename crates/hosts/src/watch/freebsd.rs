//! FreeBSD: the commands that print a sample, and their output.

use super::queues::Layout;
use super::{fine_time, sections};
use crate::cpus::CpuTimes;
use crate::systems::bsd::link_rows;
use crate::systems::text::{lines, number, pairs, shown, statistics, sysctls};
use crate::systems::{Kernel, MOST_ENTRIES};
use linerate_measure::collector::Counters;
use linerate_measure::record::RuleCount;
use linerate_measure::watch::{Interface, Interrupt, Sample, Side, Softnet, Table};
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

/// Commands that run for each sample.
pub const EACH: &str = r#"
echo '@@ time'; date +%s.%N
echo '@@ cpus'; sysctl -n kern.cp_times
echo '@@ netstat'; netstat -ibdnW
[ "$oids" ] && { echo '@@ dev'; date +%s.%N; sysctl -q $oids; }
echo '@@ interrupts'; vmstat -ia
echo '@@ netisr'; netstat -Q
echo '@@ ip'; netstat -s -p ip; netstat -s -p ip6
echo '@@ pf'; pfctl -si 2>/dev/null && { echo '@@ pflimits'; pfctl -sm; }
echo '@@ dyn'; sysctl -q net.inet.ip.fw.dyn_count net.inet.ip.fw.dyn_max"#;

/// Commands that run for some samples: rules.
pub const RULES: &str = r#"
echo '@@ pfrules'; pfctl -vsr 2>/dev/null
echo '@@ ipfw'; ipfw -a list 2>/dev/null"#;

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

/// A sample of the sections that a host has printed; `here_ns`: when they arrived, which counts if the host's clock is too coarse.
pub fn sample(text: &str, here_ns: u64) -> Sample {
    let sections = sections(text);
    let section = |name: &str| sections.get(name).copied().unwrap_or_default();
    let at_ns = fine_time(section("time"));
    let mut sample = Sample { at_ns: at_ns.unwrap_or(here_ns), ..Sample::default() };
    sample.cpus = CpuTimes::of(Kernel::FreeBsd, section("cpus")).ticks();
    let driver_at_ns = fine_time(section("dev")).filter(|_| at_ns.is_some()).unwrap_or(0);
    sample.interfaces = interfaces(section("netstat"), section("dev"));
    sample.interfaces.values_mut().for_each(|interface| interface.driver_at_ns = driver_at_ns);
    sample.interrupts = interrupts(section("interrupts"));
    sample.softnet = netisr(section("netisr"));
    sample.counters = lost(section("ip"), section("pf"));
    sample.states = states(&section, &mut sample.missing);
    if sections.contains_key("ipfw") {
        let mut rules = pf_rules(section("pfrules"));
        rules.extend(ipfw_rules(section("ipfw")));
        sample.rules = Some(rules);
    }
    if at_ns.is_none() {
        sample.missing.push(
            "the host's clock shows whole seconds: rates are by the time at which samples arrived".into(),
        );
    }
    if sample.interfaces.values().all(|interface| interface.queues.is_empty()) {
        sample.missing.push("queues: no driver counts the frames of its queues (sysctl dev)".into());
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
            names.iter().filter_map(|name| columns.get(name)).fold(0, |sum: u64, n| sum.saturating_add(*n))
        };
        let side = |packets, bytes, errors, drops: &[&str]| Side {
            packets: sum(&[packets]),
            bytes: sum(&[bytes]),
            errors: sum(&[errors]),
            drops: sum(drops),
            overruns: 0,
        };
        let mut interface = Interface {
            stacked: is_stacked(name),
            rx: side("Ipkts", "Ibytes", "Ierrs", &["Idrop", "Iqdrops"]),
            tx: side("Opkts", "Obytes", "Oerrs", &["Drop", "Drops", "Odrop", "Oqdrops"]),
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

/// Interfaces that count the frames of others again, by the names that FreeBSD gives them.
fn is_stacked(name: &str) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = [
        "lo", "vlan", "lagg", "bridge", "pflog", "pfsync", "enc", "gif", "gre", "tun", "tap", "wg", "carp",
        "ipfw", "usbus",
    ];
    kinds.contains(&kind) || name.contains('.')
}

/// `vmstat -i`: a name, a total and a rate; names contain blanks.
fn interrupts(text: &str) -> Vec<Interrupt> {
    let row = |line: &str| {
        let (rest, _) = line.trim_end().rsplit_once(char::is_whitespace)?;
        let (name, total) = rest.trim_end().rsplit_once(char::is_whitespace)?;
        let name = shown(name.trim());
        let total = total.parse().ok().filter(|_| !matches!(name.as_str(), "Total" | ""))?;
        Some(Interrupt { name, counts: vec![total] })
    };
    lines(text).filter_map(row).take(MOST_ENTRIES).collect()
}

/// The workstreams of `netstat -Q` by CPU: a drop is a packet that found its queue full.
fn netisr(text: &str) -> BTreeMap<u32, Softnet> {
    let mut rows = lines(text).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let Some(header) = rows.find(|words| words.first() == Some(&"WSID")) else { return BTreeMap::new() };
    let column = |words: &[&str], name: &str| -> Option<u64> {
        words.get(header.iter().position(|column| *column == name)?)?.parse().ok()
    };
    let mut all: BTreeMap<u32, Softnet> = BTreeMap::new();
    for words in rows.take(MOST_ENTRIES) {
        let Some(cpu) = column(&words, "CPU").and_then(|cpu| u32::try_from(cpu).ok()) else { continue };
        let sum = all.entry(cpu).or_default();
        sum.processed = sum.processed.saturating_add(column(&words, "Handled").unwrap_or(0));
        sum.dropped = sum.dropped.saturating_add(column(&words, "QDrops").unwrap_or(0));
    }
    all
}

/// Counters of `netstat -s` and `pfctl -si` that mean a lost packet.
fn lost(ip: &str, pf: &str) -> Counters {
    let is_lost = |name: &String| LOST.iter().any(|word| name.contains(word));
    let mut all: Counters = statistics(ip).into_iter().filter(|(name, n)| *n > 0 && is_lost(name)).collect();
    let of_pf = lines(pf).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().filter(|name| PF_LOST.contains(name))?;
        Some((format!("pf: {name}"), words.next()?.parse().ok().filter(|n| *n > 0)?))
    });
    all.extend(of_pf);
    all
}

/// States of pf, or dynamic rules of ipfw.
fn states<'a>(section: &impl Fn(&str) -> &'a str, missing: &mut Vec<String>) -> Option<Table> {
    let is_on = section("pf").lines().any(|line| line.trim_start().starts_with("Status: Enabled"));
    let after = |text: &'a str, key: &str| {
        lines(text)
            .find_map(|line| number(line.trim().strip_prefix(key)?.split_ascii_whitespace().next_back()?))
    };
    if is_on {
        let entries = section("pf").lines().find_map(|line| {
            line.trim().strip_prefix("current entries")?.split_ascii_whitespace().next()?.parse().ok()
        })?;
        return Some(Table { entries, limit: after(section("pflimits"), "states").unwrap_or(0) });
    }
    let dynamic = sysctls(section("dyn"));
    let value = |name: &str| dynamic.get(name)?.parse().ok();
    if let (Some(entries), limit) = (value("net.inet.ip.fw.dyn_count"), value("net.inet.ip.fw.dyn_max")) {
        return Some(Table { entries, limit: limit.unwrap_or(0) });
    }
    missing.push("states and rules: neither pf nor ipfw is on, or it answers only root (--sudo)".into());
    None
}

/// `pfctl -vsr`: a rule, and a line `[ Evaluations: 13  Packets: 237 …`.
fn pf_rules(text: &str) -> Vec<RuleCount> {
    let mut rule = "";
    let mut all = Vec::new();
    for line in lines(text) {
        match line.trim().strip_prefix('[') {
            None => rule = line.trim(),
            Some(counted) => {
                let mut words =
                    counted.split_ascii_whitespace().skip_while(|word| *word != "Packets:").skip(1);
                if let Some(frames) = words.next().and_then(|n| n.parse().ok()).filter(|_| !rule.is_empty()) {
                    all.push(RuleCount { rule: format!("pf: {}", shown(rule)), frames });
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
        Some(RuleCount { rule: format!("ipfw: {number:05} {}", shown(&rule)), frames })
    };
    lines(text).take_while(|line| !line.starts_with("##")).filter_map(row).take(MOST_ENTRIES).collect()
}
