//! A saved directory as answers: outputs of commands in files that are named after them (`sysctl-a.txt`, `pfctl-si.txt`), or a
//! file system tree (`etc/sysctl.conf`, `boot/loader.conf`, `proc/sys/…`, `sys/class/net/…`).

use super::questions::{asked, asked_at_boot, asked_of_linux};
use super::{MOST_BYTES, VERSION, interfaces, is_secret, kept};
use crate::systems::text::{self, lines, sections};
use crate::systems::{Kernel, is_name, question::device};
use linerate_measure::record::{Collected, SlotFacts};
use std::collections::BTreeMap;

/// Files with settings of the next boot: the end of the saved name, and the system's path.
const BOOT_FILES: [(&str, &str); 8] = [
    ("boot/loader.conf", "/boot/loader.conf"),
    ("loader.conf.local", "/boot/loader.conf.local"),
    ("loader.conf", "/boot/loader.conf"),
    ("rc.conf.local", "/etc/rc.conf.local"),
    ("rc.conf", "/etc/rc.conf"),
    ("sysctl.conf.local", "/etc/sysctl.conf.local"),
    ("sysctl.conf", "/etc/sysctl.conf"),
    ("pf.conf", "/etc/pf.conf"),
];

/// Beginnings of paths in a tree that [`of_saved`] reads.
const TREE: [&str; 15] = [
    "etc/sysctl.d/",
    "etc/modprobe.d/",
    "etc/os-release",
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/cmdline",
    "proc/irq/",
    "proc/net/packet",
    "proc/net/fib_triestat",
    "proc/net/rt6_stats",
    "proc/sys/",
    "sys/class/net/",
    "sys/class/dmi/id/",
    "sys/devices/system/",
    "sys/hypervisor/type",
];

/// Programs whose outputs are read.
const PROGRAMS: [&str; 22] = [
    "ipf", "sysctl", "ifconfig", "pciconf", "vmstat", "kldstat", "dmesg", "uname", "cpuset", "netstat",
    "arp", "pfctl", "ipfw", "ipfstat", "ip", "ethtool", "nft", "iptables", "lscpu", "cpuinfo", "meminfo",
    "tc",
];

/// Whether a file of a saved directory is of use, by its path in it.
pub fn is_wanted(path: &str) -> bool {
    boot_file(path).is_some()
        || TREE.iter().any(|wanted| path.starts_with(wanted))
        || !path.contains('/') && PROGRAMS.contains(&words(path).first().copied().unwrap_or_default())
}

fn boot_file(path: &str) -> Option<&'static str> {
    let path = path.strip_suffix(".txt").unwrap_or(path);
    let ends = |name: &str| {
        path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(['/', '-', '_']))
    };
    BOOT_FILES.iter().find(|(name, _)| ends(name)).map(|(_, path)| *path)
}

/// `pfctl-si.txt` -> `pfctl`, `si`; `sysctl-dev-em.txt` -> `sysctl`, `dev`, `em`.
fn words(path: &str) -> Vec<&str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name =
        [".txt", ".out", ".log", ".json"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let mut words: Vec<&str> = name.split(['-', '_', ' ']).filter(|word| !word.is_empty()).collect();
    // `dmesg.boot`, `sysctl.all`.
    if let Some(first) = words.first_mut() {
        *first = first.split('.').next().unwrap_or_default();
    }
    words
}

/// The answers of a saved directory, by the paths and texts of its files. Only answers to the [`questions`](super::questions) are
/// kept, and no lines that may hold secrets.
///
/// # Errors
/// No file shows which system it is.
pub fn of_saved(files: &BTreeMap<String, String>) -> Result<SlotFacts, String> {
    let kernel = kernel(files).ok_or(
        "no file in it shows the system: save uname-a.txt, sysctl-a.txt, boot/loader.conf, etc/rc.conf, proc/sys or etc/os-release",
    )?;
    let mut saved = Saved { kernel, ..Saved::default() };
    for (path, text) in files {
        saved.file(path, text);
    }
    Ok(saved.facts())
}

fn kernel(files: &BTreeMap<String, String>) -> Option<Kernel> {
    let of_word = |word: &str| match word {
        "FreeBSD" => Some(Kernel::FreeBsd),
        "OpenBSD" => Some(Kernel::OpenBsd),
        "NetBSD" => Some(Kernel::NetBsd),
        "Linux" => Some(Kernel::Linux),
        _ => None,
    };
    let said = files.iter().find_map(|(path, text)| match words(path).first().copied() {
        Some("uname") => of_word(text.split_ascii_whitespace().next()?),
        Some("sysctl") if boot_file(path).is_none() => lines(text).find_map(|line| {
            let value = line.strip_prefix("kern.ostype")?.trim_start_matches([':', '=', ' ']);
            of_word(value.trim())
        }),
        _ => None,
    });
    let has = |prefix: &str| files.keys().any(|path| path.starts_with(prefix));
    let sysctl = |name: &str| {
        let of = |(path, text): (&String, &String)| {
            words(path).first() == Some(&"sysctl") && text.lines().any(|line| line.starts_with(name))
        };
        files.iter().any(of)
    };
    let mut by_file = files.keys().filter_map(|path| boot_file(path));
    said.or_else(|| {
        (has("proc/") || has("sys/") || has("etc/os-release") || has("ethtool") || has("nft") || has("lscpu"))
            .then_some(Kernel::Linux)
    })
    .or_else(|| {
        by_file
            .any(|path| path.starts_with("/boot/") || path.starts_with("/etc/rc.conf"))
            .then_some(Kernel::FreeBsd)
    })
    .or_else(|| (sysctl("net.ipv4.") || sysctl("net.core.")).then_some(Kernel::Linux))
    .or_else(|| (sysctl("kern.random.harvest") || sysctl("dev.")).then_some(Kernel::FreeBsd))
    .or_else(|| {
        let said = |(path, text): (&String, &String)| path.starts_with("dmesg") && text.contains("FreeBSD");
        (has("pciconf") || files.iter().any(said)).then_some(Kernel::FreeBsd)
    })
}

struct Saved {
    kernel: Kernel,
    /// Answers by question, in their order.
    answers: Vec<(String, String)>,
    /// All settings together: each answer replaces the one before it.
    settings: String,
}

impl Default for Saved {
    fn default() -> Self {
        Saved { kernel: Kernel::Linux, answers: Vec::new(), settings: String::new() }
    }
}

impl Saved {
    fn add(&mut self, question: &str, text: &str) {
        let known = self.answers.iter_mut().find(|(known, _)| known == question);
        match known {
            Some((_, answer)) => answer.push_str(text),
            None => self.answers.push((question.into(), text.into())),
        }
    }

    fn file(&mut self, path: &str, text: &str) {
        if let Some(name) = boot_file(path) {
            let plain: Vec<&str> = lines(text).collect();
            self.section("boot", name, &plain);
            return;
        }
        if path.contains('/') || path == "etc/os-release" {
            return self.tree(path, text);
        }
        let words = words(path);
        let rest = words[1..].join("");
        match (words[0], rest.as_str()) {
            ("sysctl", _) => self.settings.push_str(&format!("{text}\n")),
            ("uname", _) => self.add("system", &format!("==> uname <==\n{}\n", text.trim())),
            ("ifconfig", _) => self.add("ifconfig -a", &plain(text)),
            ("pciconf", _) => self.add("pciconf -lvc", text),
            ("vmstat", rest) if rest.starts_with('i') => self.add("vmstat -i", text),
            ("kldstat", _) => self.add("kldstat", text),
            ("dmesg", _) => self.add("dmesg", &plain(text)),
            ("cpuset", _) => self.add("cpusets", text),
            ("arp", _) => self.add("neighbours", &neighbours(text)),
            ("netstat", rest) if rest.contains('r') && text.contains("Destination") => {
                self.add("routes", &routes(text))
            }
            ("pfctl", "sa") => {
                ["pfctl -s info", "pfctl -s memory", "pfctl -s rules"].iter().for_each(|q| self.add(q, text))
            }
            ("pfctl", "si" | "sinfo" | "vsi") => self.add("pfctl -s info", text),
            ("pfctl", "sm" | "smemory") => self.add("pfctl -s memory", text),
            ("pfctl", "sr" | "vsr" | "vvsr" | "srules") => self.add("pfctl -s rules", text),
            ("ipfw", "show" | "list" | "ashow" | "alist") => self.add("ipfw list", text),
            ("ipfstat", "io") => self.add("ipfstat -io", text),
            ("ipfstat", "s") => self.add("ipfstat -s", text),
            ("ipf", rest) if rest.starts_with('T') => self.add("ipfstat -s", text),
            ("ip", rest) if rest.contains("link") => self.add("ip -d -j link show", text),
            ("lscpu", _) => self.add("cpus", &lscpu(text)),
            ("cpuinfo" | "meminfo", _) => self.tree(&format!("proc/{}", words[0]), text),
            ("tc", rest) if rest.contains("qdisc") => self.add("tc", &format!("==> qdisc <==\n{text}\n")),
            ("nft", _) => self.add("nft", text),
            ("iptables", "save") => self.add("iptables", &format!("==> ip <==\n{text}\n")),
            ("ethtool", _) => {
                // ethtool-k-eth0, ethtool-eth0-k, ethtool-n-eth0-rx-flow-hash-udp4: one interface, one letter.
                let letter = words[1..].iter().find(|word| word.len() == 1);
                let name =
                    words[1..].iter().find(|word| word.len() > 1 && word.chars().any(|c| c.is_ascii_digit()));
                if let (Some(letter), Some(name)) = (letter, name.filter(|name| is_name(name))) {
                    let last = words.last().unwrap_or(&"");
                    self.add(
                        &format!("ethtool {name}"),
                        &format!("==> -{letter} {name} {last} <==\n{text}\n"),
                    );
                }
            }
            _ => {}
        }
    }

    /// Files of /proc and /sys, as grep(1) prints them.
    fn tree(&mut self, path: &str, text: &str) {
        let listed = |keep: &dyn Fn(&str) -> bool| -> String {
            lines(text).filter(|line| keep(line)).map(|line| format!("/{path}:{line}\n")).collect()
        };
        if let Some(name) = path.strip_prefix("proc/sys/") {
            let name = name.replace('/', ".");
            self.settings.push_str(&format!("{name} = {}\n", text.trim()));
        } else if path.starts_with("etc/sysctl.d/") || path.starts_with("etc/modprobe.d/") {
            let plain: Vec<&str> = lines(text).collect();
            self.section("boot", &format!("/{path}"), &plain);
        } else if path == "proc/cmdline" {
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            self.section("boot", "/proc/cmdline", &words);
        } else if path == "etc/os-release" {
            self.add("system", &format!("==> /{path} <==\n{text}\n"));
        } else if path == "proc/cpuinfo" {
            // Two lines of a machine with a thousand CPUs.
            let of = |key: &str| {
                lines(text).find(|line| line.starts_with(key)).map(|line| format!("/{path}:{line}\n"))
            };
            let said: String = ["model name", "flags"].into_iter().filter_map(of).collect();
            self.add("cpus", &said);
        } else if path == "proc/meminfo" {
            self.add("cpus", &listed(&|line| line.starts_with("MemTotal")));
        } else if path.starts_with("sys/devices/")
            || path.starts_with("sys/class/dmi/")
            || path.starts_with("sys/hypervisor/")
        {
            self.add("cpus", &listed(&|_| true));
        } else {
            self.add("interfaces", &listed(&|line| !line.is_empty()));
        }
    }

    fn section(&mut self, question: &str, title: &str, lines: &[&str]) {
        let plain: String = lines
            .iter()
            .filter(|line| asked_at_boot(title, line) && !is_secret(line))
            .map(|line| format!("{line}\n"))
            .collect();
        self.add(question, &format!("==> {title} <==\n{plain}"));
    }

    fn facts(mut self) -> SlotFacts {
        let found = self.interfaces();
        let devices: Vec<(String, String)> =
            found.iter().filter_map(|name| Some((name.clone(), device(name)?))).collect();
        let settings = std::mem::take(&mut self.settings);
        match self.kernel {
            Kernel::Linux => {
                let osrelease = |name: &str| asked_of_linux(name) || name == "kernel.osrelease";
                self.add("sysctl", &chosen(&settings, osrelease));
            }
            kernel => {
                let osrelease = |name: &str| asked(name) || name == "kern.osrelease";
                // Before the cards, which correct it.
                self.answers.insert(0, ("sysctl".into(), chosen(&settings, osrelease)));
                if kernel == Kernel::FreeBsd {
                    for (_, device) in devices {
                        let prefix = format!("{device}.");
                        self.add(
                            &format!("sysctl -i {device}"),
                            &chosen(&settings, |name| name.starts_with(&prefix)),
                        );
                    }
                }
            }
        }
        let answers = self.answers.into_iter().filter(|(_, text)| !text.trim().is_empty());
        let answers =
            answers.map(|(command, text)| Collected { command, output: Ok(kept(text, MOST_BYTES)) });
        SlotFacts {
            version: VERSION,
            slot: 0,
            kernel: self.kernel.name().into(),
            interfaces: found,
            answers: answers.collect(),
        }
    }

    /// Interfaces of the listing; without one, those with settings of their own.
    fn interfaces(&self) -> Vec<String> {
        let answer = |question: &str| {
            self.answers.iter().find(|(known, _)| known == question).map_or("", |(_, text)| text.as_str())
        };
        let listed = interfaces(self.kernel, answer(&super::listing(self.kernel).join(" ")));
        if !listed.is_empty() {
            return listed;
        }
        let mut found: Vec<String> = Vec::new();
        let mut see = |name: &str| {
            if is_name(name)
                && !name.starts_with("lo")
                && found.len() < 64
                && !found.iter().any(|known| known == name)
            {
                found.push(name.into());
            }
        };
        for (_, text) in sections(answer("boot")) {
            for name in
                lines(text).filter_map(|line| line.trim().strip_prefix("ifconfig_")?.split('=').next())
            {
                let plain = name.ends_with(|c: char| c.is_ascii_digit()) && !name.contains('_');
                let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                if plain && !["lo", "bridge", "lagg", "vlan", "wlan", "tun", "gif", "gre"].contains(&stem) {
                    see(name);
                }
            }
        }
        // Interfaces with a device; without any, all.
        for with in ["/device/", "/"] {
            for line in lines(answer("interfaces")) {
                let of = line.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once(with));
                of.into_iter().for_each(|(name, _)| see(name));
            }
            if answer("interfaces").contains("/device/") {
                break;
            }
        }
        for (question, _) in &self.answers {
            question.strip_prefix("ethtool ").into_iter().for_each(&mut see);
        }
        for line in lines(answer("vmstat -i")) {
            let name = line.strip_prefix("irq").and_then(|rest| rest.split_once(": ")).map(|(_, name)| name);
            let name = name.and_then(|name| name.split([':', ' ']).next()).unwrap_or_default();
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if CARDS.contains(&stem) {
                see(name);
            } else if stem.ends_with("nex") {
                // Two ports of a Chelsio card.
                ["cxl0", "cxl1"].into_iter().for_each(&mut see);
            }
        }
        found
    }
}

/// Drivers of cards, as FreeBSD and OpenBSD name interfaces.
const CARDS: [&str; 16] = [
    "em", "igb", "igc", "ix", "ixl", "ice", "cxl", "cc", "mce", "mlxen", "oce", "re", "bge", "bce", "bxe",
    "vtnet",
];

/// Settings of these names, with the lines that belong to them.
fn chosen(settings: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut keep = false;
    let mut out = String::new();
    for line in lines(settings) {
        let name = line.find([':', '=']).map(|at| line[..at].trim());
        let name = name.filter(|name| {
            name.contains('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-%/".contains(c))
        });
        if let Some(name) = name {
            keep = wanted(name) && !is_secret(name);
        }
        if keep {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Without lines that may hold a key or a password.
fn plain(text: &str) -> String {
    lines(text).filter(|line| !is_secret(line)).map(|line| format!("{line}\n")).collect()
}

/// The output of lscpu(1) as files of the kernel.
fn lscpu(text: &str) -> String {
    let value = |key: &str| text::pairs(text, ':').find(|(name, _)| *name == key).map(|(_, value)| value);
    let number =
        |key: &str| value(key).and_then(|n| n.parse::<u32>().ok()).filter(|n| (1..=8192).contains(n));
    let mut out: String =
        value("Model name").map(|model| format!("/proc/cpuinfo:model name: {model}\n")).unwrap_or_default();
    if let Some(kind) = value("Hypervisor vendor") {
        out += &format!("/proc/cpuinfo:flags: hypervisor\n/sys/hypervisor/type:{kind}\n");
    }
    let cpu = "/sys/devices/system/cpu";
    let (threads, cores) =
        (number("Thread(s) per core").unwrap_or(1), number("Core(s) per socket").unwrap_or(1));
    let all = number("CPU(s)").unwrap_or(0);
    // The usual order of Linux: first one thread of each core, then the others.
    for nth in 0..all {
        let core = nth % (all / threads).max(1);
        let siblings: Vec<String> =
            (0..threads).map(|thread| (core + thread * (all / threads)).to_string()).collect();
        out += &format!(
            "{cpu}/cpu{nth}/topology/physical_package_id:{}\n{cpu}/cpu{nth}/topology/core_id:{core}\n{cpu}/cpu{nth}/topology/thread_siblings_list:{}\n",
            core / cores,
            siblings.join(",")
        );
    }
    for node in 0..number("NUMA node(s)").unwrap_or(0).min(64) {
        let cpus = value(&format!("NUMA node{node} CPU(s)")).unwrap_or_default();
        out += &format!("/sys/devices/system/node/node{node}/cpulist:{cpus}\n");
    }
    out
}

/// How many routes `netstat -rn` lists, by family.
fn routes(text: &str) -> String {
    let (mut family, mut counts) = ("", BTreeMap::<&str, u64>::new());
    for line in lines(text) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [title] if title.starts_with("Internet") => family = title.trim_end_matches(':'),
            [first, ..] if words.len() > 3 && !family.is_empty() && *first != "Destination" => {
                *counts.entry(family).or_default() += 1
            }
            _ => {}
        }
    }
    counts.iter().map(|(family, n)| format!("{family}: {n}\n")).collect()
}

/// How many neighbours `arp -an` lists, by state.
fn neighbours(text: &str) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for line in lines(text).filter(|line| line.contains(" at ")) {
        let state = ["incomplete", "permanent"].into_iter().find(|state| line.contains(state));
        *counts.entry(state.unwrap_or("reachable")).or_default() += 1;
    }
    counts.iter().map(|(state, n)| format!("{n} {}\n", state.to_ascii_uppercase())).collect()
}
