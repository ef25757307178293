//! Everything that a host counts: one list of its commands, with the readers of their answers. It is asked before a load and after it;
//! [`watch`](crate::watch) asks for a part of it again and again.

use crate::agent::merge::Seen;
use crate::cpus::states;
use crate::systems::bsd::{self, device};
use crate::systems::procnet::{
    Read, by_cpu, driver, parse_snmp, parse_snmp6, parse_softnet, parse_stat, parse_ticks,
};
use crate::systems::text::{
    ASK, bounded, lines, script, sections, shown, statistics, sysctls, valid,
};
use crate::systems::{BSD, FREEBSD, Kernel, LINUX, MOST_ENTRIES, NESTED, OPENBSD, linux};
use linerate_measure::collector::Counters;
use std::collections::BTreeMap;

/// How an answer is read.
#[derive(Clone, Copy)]
enum Reader {
    /// Frames by interface.
    Frames,
    /// Counters of the host.
    Host(Read),
    /// Counters of the card that ends the title.
    Card(Read),
    /// Counters by card.
    Cards(fn(&str) -> BTreeMap<&str, Counters>),
    /// `watch` reads it.
    Watched,
}

/// When a host is asked.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Before a load and after it.
    Load,
    /// For each sample of `watch`.
    Sample,
    Both,
}

/// The systems, when they are asked, the line for the shell, and the reader of the answer.
type Source = (&'static [Kernel], When, &'static str, Reader);

/// Everything that is counted. A line begins with a function of [`ASKING`]; the command behind it is the title of its answer.
const SOURCES: &[Source] = {
    use Reader::{Card, Cards, Frames, Host, Watched};
    use When::{Both, Load, Sample};
    &[
        (LINUX, Sample, "ask date +%s.%N", Watched),
        (LINUX, Both, "inside cat /proc/net/dev", Frames),
        (LINUX, Both, "inside cat /proc/net/snmp", Host(parse_snmp)),
        (
            LINUX,
            Both,
            "inside cat /proc/net/netstat",
            Host(parse_snmp),
        ),
        (LINUX, Both, "inside cat /proc/net/snmp6", Host(parse_snmp6)),
        (
            LINUX,
            Both,
            "inside cat /proc/net/stat/nf_conntrack",
            Host(|text| parse_stat("Conntrack", text)),
        ),
        // The kernel counts by CPU in these files, for all namespaces together.
        (
            LINUX,
            Both,
            "ask cat /proc/net/softnet_stat",
            Host(parse_softnet),
        ),
        (
            LINUX,
            Load,
            "ask cat /proc/net/stat/rt_cache",
            Host(|text| parse_stat("RtCache", text)),
        ),
        (
            LINUX,
            Load,
            "ask cat /proc/net/stat/arp_cache",
            Host(|text| parse_stat("Arp", text)),
        ),
        (
            LINUX,
            Load,
            "ask cat /proc/net/stat/ndisc_cache",
            Host(|text| parse_stat("Ndisc", text)),
        ),
        (LINUX, Both, "ask cat /proc/interrupts", Host(by_cpu)),
        (LINUX, Both, "ask cat /proc/softirqs", Host(by_cpu)),
        // The lines behind those of the CPUs are long where there are many interrupts.
        (LINUX, Both, "ask grep ^cpu /proc/stat", Host(parse_ticks)),
        (
            LINUX,
            Sample,
            "ask cat /proc/sys/net/netfilter/nf_conntrack_count",
            Watched,
        ),
        (
            LINUX,
            Sample,
            "ask cat /proc/sys/net/netfilter/nf_conntrack_max",
            Watched,
        ),
        (LINUX, Load, "each inside ethtool -S", Card(driver_counters)),
        (FREEBSD, Sample, "ask date +%s.%N", Watched),
        (FREEBSD, Sample, "ask sysctl -n kern.cp_times", Watched),
        // -W: names are not cut at five characters.
        (FREEBSD, Both, "inside netstat -ibdnW", Frames),
        // OpenBSD prints drops and errors in turn; the cards' own counters are in kstat(1).
        (&[Kernel::OpenBsd], Load, "ask netstat -ind", Frames),
        (&[Kernel::OpenBsd], Load, "ask netstat -ine", Frames),
        (&[Kernel::NetBsd], Load, "ask netstat -ibdn", Frames),
        (OPENBSD, Load, "ask kstat", Cards(kstats)),
        (BSD, Load, "inside netstat -s", Host(statistics)),
        (FREEBSD, Sample, "ask netstat -s -p ip", Watched),
        (FREEBSD, Sample, "ask netstat -s -p ip6", Watched),
        (FREEBSD, Both, "ask netstat -Q", Host(workstreams)),
        (BSD, Load, "ask netstat -m", Host(mbufs)),
        (BSD, Load, "ask vmstat -i", Host(interrupts)),
        (FREEBSD, Sample, "ask vmstat -ia", Watched),
        (FREEBSD, Load, "ask vmstat -z", Host(zones)),
        (FREEBSD, Load, "ask sysctl -i kern.cp_times", Host(ticks)),
        (FREEBSD, Load, "each ask sysctl -i", Card(numbers)),
        (
            OPENBSD,
            Load,
            "ask sysctl net.inet.ip.ifq net.inet6.ip6.ifq kern.netlivelocks",
            Host(numbers),
        ),
        (BSD, Both, "ask pfctl -s info", Host(bsd::pf)),
        (FREEBSD, Sample, "ask pfctl -s memory", Watched),
        (
            FREEBSD,
            Sample,
            "ask sysctl -q net.inet.ip.fw.dyn_count net.inet.ip.fw.dyn_max",
            Watched,
        ),
    ]
};

/// Functions of the shell: `inside` asks in the network stack of a nested router, if there is one (`$in`), `each` for all `$cards`.
const ASKING: &str = r#"inside() { echo "==> $* <=="; $in "$@" 2>/dev/null; }
each() { for card in $cards; do "$@" "$card"; done; }"#;

/// Finds a nested router.
fn nested(kernel: Kernel) -> String {
    let line = match kernel {
        Kernel::Linux => "[ ! -e /run/netns/NESTED ] || in='ip netns exec NESTED'",
        Kernel::FreeBsd => "! jls -j NESTED >/dev/null 2>&1 || in='jexec NESTED'",
        Kernel::OpenBsd | Kernel::NetBsd => "",
    };
    line.replace("NESTED", NESTED)
}

/// The functions of the shell that ask, and the lines that do.
fn lines_of(kernel: Kernel, when: When) -> [String; 2] {
    let is_due =
        |source: &&Source| source.0.contains(&kernel) && [when, When::Both].contains(&source.1);
    let lines = SOURCES
        .iter()
        .filter(is_due)
        .map(|(.., line, _)| format!("{line}\n"))
        .collect();
    [format!("{ASK}\n{ASKING}\n"), lines]
}

/// Commands that begin a session of `watch`, and those of each sample.
pub(crate) fn sampling(kernel: Kernel) -> [String; 2] {
    lines_of(kernel, When::Sample)
}

/// The command before a load and after it, for the interfaces towards generator and receiver.
pub fn question(kernel: Kernel, interfaces: &[String; 2]) -> Vec<String> {
    let names = valid(interfaces);
    let devices: Vec<String> = names.iter().filter_map(|name| device(name)).collect();
    let cards = if kernel == Kernel::FreeBsd {
        devices.iter().map(String::as_str).collect()
    } else {
        names
    };
    let [functions, lines] = lines_of(kernel, When::Load);
    script(
        &format!("{functions}cards=$* in=\n{}\n{lines}:", nested(kernel)),
        "counters",
        &cards,
    )
}

/// The command of a line, which is its answer's title.
fn command(line: &str) -> &str {
    line.trim_start_matches("each ")
        .split_once(' ')
        .map_or("", |(_, command)| command)
}

/// The command that prints the frames of all interfaces.
pub(crate) fn frames(kernel: Kernel) -> &'static str {
    let is_so = |(kernels, _, _, reader): &&Source| {
        kernels.contains(&kernel) && matches!(reader, Reader::Frames)
    };
    SOURCES
        .iter()
        .find(is_so)
        .map_or("", |(.., line, _)| command(line))
}

/// Files below /proc with the readers of their counters: those of a network namespace, or those that the machine has once.
pub fn files(of_namespace: bool) -> impl Iterator<Item = (&'static str, Read)> {
    let begin = if of_namespace {
        "inside cat /proc/"
    } else {
        "ask cat /proc/"
    };
    SOURCES
        .iter()
        .filter_map(move |(.., line, reader)| match reader {
            Reader::Host(read) => Some((line.strip_prefix(begin)?, *read)),
            _ => None,
        })
}

/// The reader of the answer with this title, and the card that it is of.
fn reader(kernel: Kernel, title: &str) -> Option<(Reader, &str)> {
    SOURCES
        .iter()
        .filter(|source| source.0.contains(&kernel))
        .find_map(|(.., line, reader)| {
            let card = title.strip_prefix(command(line))?;
            match reader {
                Reader::Card(_) => Some((*reader, card.strip_prefix(' ')?)),
                _ => card.is_empty().then_some((*reader, card)),
            }
        })
}

/// The counters in its output. Those of a card's driver begin with its end, `in: ` or `out: `.
pub fn read(kernel: Kernel, interfaces: &[String; 2], output: &[u8]) -> Seen {
    let (text, mut all) = (bounded(output), Counters::new());
    let mut by_interface = String::new();
    let of_end = |(name, found): (&str, Counters)| {
        let end = interfaces
            .iter()
            .position(|end| end == name || device(end).as_deref() == Some(name));
        let end = ["in", "out"]
            .get(end.unwrap_or(2))
            .copied()
            .unwrap_or(name)
            .to_string();
        found
            .into_iter()
            .map(move |(name, n)| (format!("{end}: {name}"), n))
    };
    for (title, text) in sections(&text) {
        if all.len() > MOST_ENTRIES {
            break;
        }
        match reader(kernel, title) {
            Some((Reader::Frames, _)) => by_interface.extend([text, "\n"]),
            Some((Reader::Host(read), _)) => all.extend(read(text)),
            Some((Reader::Card(read), card)) => all.extend(of_end((card, read(text)))),
            Some((Reader::Cards(read), _)) => all.extend(read(text).into_iter().flat_map(of_end)),
            Some((Reader::Watched, _)) | None => {}
        }
    }
    let mut links = match kernel {
        Kernel::Linux => linux::counters(&by_interface),
        _ => bsd::counters(&by_interface),
    };
    for (end, name) in ["in", "out"].into_iter().zip(interfaces) {
        let missed = all.get(&format!("{end}: {MISSED}")).copied().unwrap_or(0);
        if let Some(counted) = links.get_mut(name).and_then(|c| c.get_mut("rx_missed")) {
            *counted = missed.max(*counted);
        }
    }
    links.retain(|name, _| interfaces.contains(name));
    Seen {
        links,
        counters: all,
    }
}

/// Names in kstat(1) of OpenBSD for frames that a card had no room for in its ring.
const MISSED: &str = "stats rx missed";

/// Counters of kstat(1) by interface: `em1:0:em-stats:0`, and below it `       rx missed: 0 packets`. Lengths of queues and names of
/// states are none.
fn kstats(text: &str) -> BTreeMap<&str, Counters> {
    let mut all: BTreeMap<&str, Counters> = BTreeMap::new();
    let mut part = ("", "");
    for line in lines(text) {
        if !line.starts_with([' ', '\t']) {
            let mut words = line.trim_end().split(':');
            let (name, kind) = (
                words.next().unwrap_or_default(),
                words.nth(1).unwrap_or_default(),
            );
            // `em-stats`, `ix-stats`: the driver's name is not needed.
            part = (name, kind.split_once('-').map_or(kind, |(_, kind)| kind));
        } else if let Some((key, value)) = line.trim().split_once(": ")
            && let Some(Ok(count)) = value.split(' ').next().map(str::parse::<u64>)
            && !key.contains("qlen")
            && all.len() < MOST_ENTRIES
        {
            // One driver prints a name twice, and frames and bytes by the same.
            let unit = if value.ends_with(" bytes") {
                " bytes"
            } else {
                ""
            };
            let name = format!("{} {}{unit}", shown(part.1), shown(key));
            all.entry(part.0).or_default().insert(name, count);
        }
    }
    all
}

/// Why a trial under stateless rules of pf is none: frames that it let pass met no rule. They matched states that other rules had left
/// behind. `grown`: what the DUT counted meanwhile; `received`: frames that passed.
pub fn past_the_rules(grown: &Counters, received: u64) -> Option<String> {
    let of = |name: &str| grown.get(name).copied().unwrap_or(0);
    // Each frame meets the rules as it comes in and as it goes out. A pf that looks up no states sees none of them: it skips the
    // interfaces, or is not asked.
    let (met, looked_up) = (of("pf: match"), of("pf: searches"));
    (looked_up >= received && met < received).then(|| {
        format!(
            "pf's rules are stateless, and met {met} packets while {received} frames passed: the others matched states that earlier rules left behind; kill those of the test networks (pfctl -k NETWORK)"
        )
    })
}

/// Settings that are numbers: `dev.em.0.mac_stats.recv_no_buff`.
fn numbers(text: &str) -> Counters {
    sysctls(text)
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect()
}

/// The counters of a card's driver, by their names.
fn driver_counters(text: &str) -> Counters {
    let (names, values) = driver(text);
    names.iter().map(|name| shown(name)).zip(values).collect()
}

/// `kern.cp_times: user nice system interrupt idle` for each CPU: `CPU0: ticks interrupt`.
fn ticks(text: &str) -> Counters {
    const STATES: [&str; 5] = ["user", "nice", "system", "interrupt", "idle"];
    let values = text
        .split_once("kern.cp_times:")
        .map_or("", |(_, values)| values);
    let named = |(cpu, ticks)| {
        STATES
            .into_iter()
            .zip(ticks)
            .map(move |(state, n)| (format!("CPU{cpu}: ticks {state}"), n))
    };
    states::<5>(values.lines().next().unwrap_or_default())
        .into_iter()
        .enumerate()
        .flat_map(named)
        .collect()
}

/// `interrupt irq11: em0:irq0`.
fn interrupts(text: &str) -> Counters {
    bsd::interrupts(text)
        .map(|(name, total)| (format!("interrupt {name}"), total))
        .collect()
}

/// Zones of memory that had none to give: `mbuf_cluster:  2048,  47123,  506,  6, 762,   0,   0,   0`. The title names the columns.
fn zones(text: &str) -> Counters {
    let mut all = lines(text);
    let column = |line: &str| {
        line.split_ascii_whitespace()
            .position(|word| word == "FAIL")
    };
    let Some(at) = all.find_map(column) else {
        return Counters::new();
    };
    let line = |line: &str| {
        let (name, values) = line.split_once(':')?;
        // The first column of the title is the name's.
        let failed = values
            .split(',')
            .nth(at.checked_sub(1)?)?
            .trim()
            .parse()
            .ok()?;
        Some((format!("zone {}: failed", shown(name)), failed))
    };
    all.filter_map(line).take(MOST_ENTRIES).collect()
}

/// `CPU0: netisr ip dispatched`.
fn workstreams(text: &str) -> Counters {
    const COLUMNS: [&str; 5] = [
        "dispatched",
        "hybrid dispatched",
        "dropped",
        "queued",
        "handled",
    ];
    let row = |(cpu, name, numbers)| {
        let named = COLUMNS.into_iter().zip::<Vec<u64>>(numbers);
        named.map(move |(column, n)| (format!("CPU{cpu}: netisr {} {column}", shown(name)), n))
    };
    bsd::workstreams(text)
        .flat_map(row)
        .take(MOST_ENTRIES)
        .collect()
}

/// Requests for packet memory that were refused or had to wait: `0/0/0 requests for mbufs denied (…)`.
fn mbufs(text: &str) -> Counters {
    let line = |line: &str| {
        let (values, what) = line.trim().split_once(' ')?;
        if !what.contains("requests for") || !(what.contains("denied") || what.contains("delayed"))
        {
            return None;
        }
        let what = what.split(" (").next()?;
        let sum = values
            .split('/')
            .map_while(|n| n.parse::<u64>().ok())
            .fold(0, u64::saturating_add);
        Some((format!("mbufs: {}", shown(what)), sum))
    };
    lines(text).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_is_asked_twice_at_once_and_each_has_its_reader() {
        for kernel in [
            Kernel::Linux,
            Kernel::FreeBsd,
            Kernel::OpenBsd,
            Kernel::NetBsd,
        ] {
            for when in [When::Load, When::Sample] {
                let [_, lines] = lines_of(kernel, when);
                let mut commands: Vec<&str> = lines.lines().map(command).collect();
                assert!(
                    commands.iter().all(|command| !command.is_empty()),
                    "{lines}"
                );
                commands.sort_unstable();
                let all = commands.len();
                commands.dedup();
                assert_eq!(commands.len(), all, "{lines}");
                for line in lines.lines() {
                    let card = if line.starts_with("each ") {
                        "eth0"
                    } else {
                        ""
                    };
                    let title = format!("{} {card}", command(line));
                    assert_eq!(
                        reader(kernel, title.trim_end()).map(|(_, of)| of),
                        Some(card),
                        "{line}"
                    );
                }
            }
        }
    }

    #[test]
    fn files_are_of_a_namespace_or_of_the_machine() {
        let names = |of_namespace| {
            files(of_namespace)
                .map(|(path, _)| path)
                .collect::<Vec<_>>()
        };
        assert!(names(true).contains(&"net/snmp") && !names(true).contains(&"interrupts"));
        assert!(names(false).contains(&"interrupts") && !names(false).contains(&"net/snmp"));
    }
}
