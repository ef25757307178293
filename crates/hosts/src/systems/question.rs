//! What is asked of a host: a command for each kernel. Commands are vectors of arguments; none changes anything.

use super::detect::{FILES, Kernel};
use std::net::IpAddr;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// What it runs; asked first, with [`Question::Files`] and [`Question::Mounts`]: others depend on it.
    Uname,
    /// The files that tell appliances.
    Files,
    /// What is mounted, and how.
    Mounts,
    /// Its clock.
    Date,
    /// Who we are there.
    User,
    /// Whether sudo asks for a password.
    Sudo,
    /// CPUs.
    Cpus,
    /// Interfaces, with links, speeds and addresses.
    Interfaces,
    /// Speed and link of one interface, where [`Question::Interfaces`] does not tell.
    Link(String),
    /// Flow control of one interface.
    Pause(String),
    /// Interfaces' counters.
    Counters,
    /// Protocols' counters.
    Statistics,
    /// ARP; on Linux neighbour discovery as well.
    Neighbours,
    /// Neighbour discovery, where it is a table of its own.
    Neighbours6,
    /// The routing table. Not on a router with a full table: ask for [`Question::Way`]s.
    Routes,
    /// The way to an address.
    Way(IpAddr),
    /// Free space in `/tmp` and `/var/tmp`.
    Disk,
    /// Settings by name.
    Sysctls(Vec<String>),
    /// Which generators and receivers are installed.
    Programs,
}

/// Programs that are looked for.
pub const PROGRAMS: [&str; 7] =
    ["linerate", "pkt-gen", "iperf3", "netperf", "netserver", "trafgen", "timeout"];

impl Question {
    /// What is asked before the kernel is known: these commands are the same everywhere.
    pub fn first() -> Vec<Question> {
        vec![
            // The sooner it is asked, the less time there is in which it may have been answered.
            Question::Date,
            Question::Uname,
            Question::Files,
            Question::Mounts,
            Question::User,
            Question::Sudo,
            Question::Disk,
            Question::Programs,
        ]
    }

    /// What is asked then, whatever the host is for.
    pub fn second(kernel: Kernel) -> Vec<Question> {
        let mut questions =
            vec![Question::Cpus, Question::Interfaces, Question::Counters, Question::Neighbours];
        if kernel != Kernel::Linux {
            questions.push(Question::Neighbours6);
        }
        questions.push(Question::Sysctls(forwarding(kernel).into_iter().map(String::from).collect()));
        questions
    }

    /// What is asked for each interface of the lab.
    pub fn interface(kernel: Kernel, name: &str) -> Vec<Question> {
        let all = [Question::Link(name.into()), Question::Pause(name.into())];
        all.into_iter().filter(|q| q.argv(kernel).is_some()).collect()
    }

    /// The command; `None` where that kernel tells it otherwise, or not at all, or an interface's name is none.
    pub fn argv(&self, kernel: Kernel) -> Option<Vec<String>> {
        use Kernel::{FreeBsd, Linux, NetBsd, OpenBsd};
        let words = |words: &[&str]| Some(words.iter().map(|w| (*w).to_string()).collect::<Vec<_>>());
        let named = |first: &[&str], name: &str| {
            (super::text::is_name(name) && !name.starts_with('-'))
                .then(|| first.iter().copied().chain([name]).map(String::from).collect::<Vec<_>>())
        };
        match (self, kernel) {
            (Question::Uname, _) => words(&["uname", "-a"]),
            (Question::Files, _) => words(&[&["head", "-n", "40"][..], &FILES[..]].concat()),
            (Question::Mounts, _) => words(&["mount"]),
            (Question::Date, _) => words(&["date", "+%s"]),
            (Question::User, _) => words(&["id", "-u"]),
            (Question::Sudo, _) => words(&["sudo", "-n", "true"]),
            (Question::Disk, _) => words(&["df", "-Pk", "/tmp", "/var/tmp"]),
            // which(1) is not everywhere.
            (Question::Programs, _) => {
                let script = "for p; do command -v \"$p\"; done; :";
                words(&[&["sh", "-c", script, "linerate"][..], &PROGRAMS[..]].concat())
            }
            (Question::Cpus, Linux) => words(&["nproc"]),
            (Question::Cpus, OpenBsd) => words(&["sysctl", "-n", "hw.ncpuonline"]),
            (Question::Cpus, FreeBsd | NetBsd) => words(&["sysctl", "-n", "hw.ncpu"]),
            (Question::Interfaces, Linux) => words(&["ip", "-j", "addr", "show"]),
            (Question::Interfaces, _) => words(&["ifconfig", "-a"]),
            (Question::Link(name), Linux) => named(&["ethtool"], name),
            (Question::Link(_), _) => None,
            (Question::Pause(name), Linux) => named(&["ethtool", "-a"], name),
            (Question::Pause(name), FreeBsd) => pause(name),
            (Question::Pause(_), _) => None,
            (Question::Counters, Linux) => words(&["cat", "/proc/net/dev"]),
            // -W: names are not cut at five characters.
            (Question::Counters, FreeBsd) => words(&["netstat", "-ibdnW"]),
            (Question::Counters, OpenBsd) => words(&["netstat", "-i", "-n", "-d"]),
            (Question::Counters, NetBsd) => words(&["netstat", "-ibdn"]),
            (Question::Statistics, _) => words(&["netstat", "-s"]),
            (Question::Neighbours, Linux) => words(&["ip", "-j", "neigh", "show"]),
            (Question::Neighbours, _) => words(&["arp", "-an"]),
            (Question::Neighbours6, Linux) => None,
            (Question::Neighbours6, _) => words(&["ndp", "-an"]),
            (Question::Routes, Linux) => words(&["ip", "-j", "route", "show"]),
            (Question::Routes, _) => words(&["netstat", "-rn"]),
            (Question::Way(to), _) => {
                let (to, six) = (to.to_string(), to.is_ipv6());
                match kernel {
                    Linux => words(&["ip", "-j", "route", "get", &to]),
                    _ if six => words(&["route", "-n", "get", "-inet6", &to]),
                    _ => words(&["route", "-n", "get", &to]),
                }
            }
            (Question::Sysctls(names), _) => sysctls(names, kernel),
        }
    }
}

/// Names only: no option, and no assignment, which would change something.
fn sysctls(names: &[String], kernel: Kernel) -> Option<Vec<String>> {
    let plain = |n: &String| {
        n.starts_with(|c: char| c.is_ascii_alphabetic())
            && n.chars().all(|c| c.is_ascii_alphanumeric() || "._-%/*".contains(c))
    };
    let mut argv = vec!["sysctl".to_string()];
    // FreeBSD's ignores unknown names with -i, Linux' with -e; OpenBSD's and NetBSD's go on after them anyway.
    argv.extend(match kernel {
        Kernel::FreeBsd => Some("-i".to_string()),
        Kernel::Linux => Some("-e".to_string()),
        Kernel::OpenBsd | Kernel::NetBsd => None,
    });
    (!names.is_empty() && names.iter().all(plain)).then(|| {
        argv.extend(names.iter().cloned());
        argv
    })
}

/// Drivers differ in what they call flow control: `fc` of em, igb, ix, ixl, ice; `pause_settings` of cxgbe; two of mlx5en.
fn pause(name: &str) -> Option<Vec<String>> {
    let at = name.find(|c: char| c.is_ascii_digit())?;
    let (driver, unit) = name.split_at(at);
    let driver = if driver == "vcxl" { "cxl" } else { driver };
    let whole =
        !driver.is_empty() && driver.chars().all(|c| c.is_ascii_lowercase()) && unit.parse::<u32>().is_ok();
    let keys = ["fc", "pause_settings", "rx_pauseframe_control", "tx_pauseframe_control"];
    whole.then(|| {
        let names = keys.iter().map(|key| format!("dev.{driver}.{unit}.{key}"));
        ["sysctl".to_string(), "-i".to_string()].into_iter().chain(names).collect()
    })
}

/// The settings that make a host forward, IPv4 and IPv6.
pub fn forwarding(kernel: Kernel) -> [&'static str; 2] {
    match kernel {
        Kernel::Linux => ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"],
        _ => ["net.inet.ip.forwarding", "net.inet6.ip6.forwarding"],
    }
}
