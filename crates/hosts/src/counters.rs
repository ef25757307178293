//! Everything that a host counts, by name: the command that prints it, and the counters in its output. It is read before a load and
//! after it.

use crate::agent::merge::Seen;
use crate::configuration::{script, valid};
use crate::dut_changes::NESTED;
use crate::systems::question::device;
use crate::systems::text::{bounded, lines, pairs, sections, shown, sysctls};
use crate::systems::{Facts, Kernel, MOST_ENTRIES, Question, procnet};
use linerate_measure::collector::Counters;
use std::collections::BTreeMap;

/// Linux: the files of the list, in sections; of a nested router's network namespace, if there is one.
const LINUX: &str = r#"cd /proc || exit
in=; [ ! -e /run/netns/NESTED ] || in='ip netns exec NESTED'
for f in FILES; do
[ -r $f ] || continue
echo "==> $f <=="
$in cat /proc/$f
done
for i; do echo "==> ethtool -S $i <=="; $in ethtool -S "$i" 2>/dev/null; done; :"#;

/// FreeBSD. The arguments are the settings of its cards. The jail of a nested router has its interfaces and counts for itself.
const FREEBSD: &str = r#"in=; ! jls -j NESTED >/dev/null 2>&1 || in='jexec NESTED'
ask() { echo "==> $* <=="; "$@" 2>/dev/null; }
inside() { echo "==> $* <=="; $in "$@" 2>/dev/null; }
inside netstat -ibdnW
inside netstat -s
ask netstat -Q
ask netstat -m
ask vmstat -i
ask vmstat -z
for d; do ask sysctl -i "$d"; done
ask pfctl -s info; :"#;

/// OpenBSD and NetBSD. The arguments are the forms of netstat that count by interface. OpenBSD prints drops and errors in turn; the
/// cards' own counters are in kstat(1).
const OPENBSD: &str = r#"ask() { echo "==> $* <=="; "$@" 2>/dev/null; }
for form; do ask netstat $form; done
ask kstat
ask netstat -s
ask netstat -m
ask vmstat -i
ask sysctl net.inet.ip.ifq net.inet6.ip6.ifq kern.netlivelocks
ask pfctl -s info; :"#;

/// The command, for the interfaces towards generator and receiver.
pub fn question(kernel: Kernel, interfaces: &[String; 2]) -> Vec<String> {
    let names = valid(interfaces);
    match kernel {
        Kernel::Linux => {
            let own = ["net/dev"].iter().chain(&procnet::OF_NAMESPACE);
            let files: Vec<&str> = own.chain(&procnet::OF_ALL_NAMESPACES).chain(&["stat"]).copied().collect();
            script(&LINUX.replace("FILES", &files.join(" ")).replace("NESTED", NESTED), "counters", &names)
        }
        Kernel::FreeBsd => {
            let devices: Vec<String> = names.iter().filter_map(|name| device(name)).collect();
            let of_cpus = ["kern.cp_times"].into_iter();
            let all: Vec<&str> = of_cpus.chain(devices.iter().map(String::as_str)).collect();
            script(&FREEBSD.replace("NESTED", NESTED), "counters", &all)
        }
        Kernel::OpenBsd | Kernel::NetBsd => {
            let forms: &[&str] = if kernel == Kernel::OpenBsd { &["-ind", "-ine"] } else { &["-ibdn"] };
            script(OPENBSD, "counters", forms)
        }
    }
}

/// The counters in its output. Those of a card's driver begin with its end, `in: ` or `out: `.
pub fn read(kernel: Kernel, interfaces: &[String; 2], output: &[u8]) -> Seen {
    let (text, mut facts, mut all) = (bounded(output), Facts::of_kernel(kernel), Counters::new());
    let mut by_interface = String::new();
    for (title, lines) in sections(&text) {
        if all.len() > MOST_ENTRIES {
            break;
        }
        let text = &*lines.join("\n");
        let of_end = |found: Counters, name: &str| {
            let end = interfaces.iter().position(|end| end == name || device(end).as_deref() == Some(name));
            let end = ["in", "out"].get(end.unwrap_or(2)).copied().unwrap_or(name).to_string();
            found.into_iter().map(move |(name, n)| (format!("{end}: {name}"), n))
        };
        let words: Vec<&str> = title.split(' ').collect();
        match words.as_slice() {
            ["net/dev"] => facts.answer(&Question::Counters, text.as_bytes(), 0),
            ["netstat", "-Q"] => all.extend(workstreams(text)),
            ["netstat", "-m"] => all.extend(mbufs(text)),
            ["netstat", "-s"] => facts.answer(&Question::Statistics, text.as_bytes(), 0),
            ["netstat", ..] => by_interface.extend([text, "\n"]),
            ["kstat"] => {
                all.extend(kstats(text).flat_map(|(name, found)| of_end(found, name).collect::<Vec<_>>()))
            }
            ["ethtool", "-S", name] => {
                let (names, values) = procnet::driver(text);
                let named = names.iter().map(|name| shown(name)).zip(values);
                all.extend(of_end(named.collect(), name));
            }
            ["sysctl", "-i", "kern.cp_times"] => all.extend(ticks(text)),
            ["sysctl", "-i", name] => all.extend(of_end(numbers(text), name)),
            ["sysctl", ..] => all.extend(numbers(text)),
            ["vmstat", "-i"] => all.extend(interrupts(text)),
            ["vmstat", "-z"] => all.extend(zones(text)),
            ["pfctl", ..] => all.extend(pf(text)),
            [file] => all.extend(procnet::of_file(file, text)),
            _ => {}
        }
    }
    if !by_interface.is_empty() {
        facts.answer(&Question::Counters, by_interface.as_bytes(), 0);
    }
    for (end, name) in ["in", "out"].into_iter().zip(interfaces) {
        let missed = all.get(&format!("{end}: {MISSED}")).copied().unwrap_or(0);
        if let Some(counted) = facts.counters.get_mut(name).and_then(|c| c.get_mut("rx_missed")) {
            *counted = missed.max(*counted);
        }
    }
    facts.counters.retain(|name, _| interfaces.contains(name));
    all.extend(facts.statistics);
    Seen { links: facts.counters, counters: all }
}

/// Names in kstat(1) of OpenBSD for frames that a card had no room for in its ring.
const MISSED: &str = "stats rx missed";

/// Counters of kstat(1) by interface: `em1:0:em-stats:0`, and below it `       rx missed: 0 packets`. Lengths of queues and names of
/// states are none.
fn kstats(text: &str) -> impl Iterator<Item = (&str, Counters)> {
    let mut all: BTreeMap<&str, Counters> = BTreeMap::new();
    let mut part = ("", "");
    for line in lines(text) {
        if !line.starts_with([' ', '\t']) {
            let mut words = line.trim_end().split(':');
            let (name, kind) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
            // `em-stats`, `ix-stats`: the driver's name is not needed.
            part = (name, kind.split_once('-').map_or(kind, |(_, kind)| kind));
        } else if let Some((key, value)) = line.trim().split_once(": ")
            && let Some(Ok(count)) = value.split(' ').next().map(str::parse::<u64>)
            && !key.contains("qlen")
            && all.len() < MOST_ENTRIES
        {
            // One driver prints a name twice, and frames and bytes by the same.
            let unit = if value.ends_with(" bytes") { " bytes" } else { "" };
            let name = format!("{} {}{unit}", shown(part.1), shown(key));
            all.entry(part.0).or_default().insert(name, count);
        }
    }
    all.into_iter()
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
    sysctls(text).into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

/// `kern.cp_times: user nice system interrupt idle` for each CPU: `CPU0: ticks interrupt`.
fn ticks(text: &str) -> Counters {
    const STATES: [&str; 5] = ["user", "nice", "system", "interrupt", "idle"];
    let Some((_, values)) = pairs(text, ':').find(|(name, _)| *name == "kern.cp_times") else {
        return Counters::new();
    };
    let values = values.split_ascii_whitespace().take(MOST_ENTRIES).enumerate();
    let named = values.filter_map(|(at, value)| {
        Some((format!("CPU{}: ticks {}", at / STATES.len(), STATES[at % STATES.len()]), value.parse().ok()?))
    });
    named.collect()
}

/// `irq11: em0:irq0                        2          0`, `irq96/em0  12  3`: `interrupt irq11: em0:irq0`.
fn interrupts(text: &str) -> Counters {
    let line = |line: &str| {
        let (rest, _) = line.trim_end().rsplit_once([' ', '\t'])?;
        let (name, total) = rest.trim_end().rsplit_once([' ', '\t'])?;
        let name = name.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        Some((format!("interrupt {}", shown(&name)), total.parse().ok()?))
            .filter(|(name, _)| name != "interrupt Total")
    };
    lines(text).filter_map(line).take(MOST_ENTRIES).collect()
}

/// Zones of memory that had none to give: `mbuf_cluster:  2048,  47123,  506,  6, 762,   0,   0,   0`. The title names the columns.
fn zones(text: &str) -> Counters {
    let mut all = lines(text);
    let column = |line: &str| line.split_ascii_whitespace().position(|word| word == "FAIL");
    let Some(at) = all.find_map(column) else { return Counters::new() };
    let line = |line: &str| {
        let (name, values) = line.split_once(':')?;
        // The first column of the title is the name's.
        let failed = values.split(',').nth(at.checked_sub(1)?)?.trim().parse().ok()?;
        Some((format!("zone {}: failed", shown(name)), failed))
    };
    all.filter_map(line).take(MOST_ENTRIES).collect()
}

/// Rows `   0   0   ip    0     0     3564        0        0        0     3564` below `Workstreams:`: `CPU0: netisr ip dispatched`.
fn workstreams(text: &str) -> Counters {
    const COLUMNS: [&str; 5] = ["dispatched", "hybrid dispatched", "dropped", "queued", "handled"];
    let rows = lines(text).skip_while(|line| !line.starts_with("Workstreams")).skip(2);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, cpu, name, _, _, values @ ..] = words.as_slice() else { return None };
        let cpu: u32 = cpu.parse().ok()?;
        let named = COLUMNS.iter().zip(values).filter_map(|(column, value)| {
            Some((format!("CPU{cpu}: netisr {} {column}", shown(name)), value.parse().ok()?))
        });
        Some(named.collect::<Vec<_>>())
    };
    rows.filter_map(row).flatten().take(MOST_ENTRIES).collect()
}

/// Requests for packet memory that were refused or had to wait: `0/0/0 requests for mbufs denied (…)`.
fn mbufs(text: &str) -> Counters {
    let line = |line: &str| {
        let (values, what) = line.trim().split_once(' ')?;
        if !what.contains("requests for") || !(what.contains("denied") || what.contains("delayed")) {
            return None;
        }
        let what = what.split(" (").next()?;
        let sum = values.split('/').map_while(|n| n.parse::<u64>().ok()).fold(0, u64::saturating_add);
        Some((format!("mbufs: {}", shown(what)), sum))
    };
    lines(text).filter_map(line).collect()
}

/// Counters of pf: `  searches        56      28.0/s`; the number of states is none.
fn pf(text: &str) -> Counters {
    let line = |line: &str| {
        let mut words = line.trim().rsplitn(2, |c: char| c.is_ascii_whitespace());
        words.next().filter(|rate| rate.ends_with("/s"))?;
        let rest = words.next()?.trim_end();
        let (name, total) = rest.rsplit_once(|c: char| c.is_ascii_whitespace())?;
        Some((format!("pf: {}", shown(name.trim())), total.parse().ok()?))
    };
    lines(text).filter_map(line).take(MOST_ENTRIES).collect()
}
