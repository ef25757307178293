//! Questions to a host: a command for each kernel. Commands are vectors of arguments; none changes anything.

use super::bsd::device;
use super::detect::{FILES, Kernel};
use linerate_plan::sysctl::forwarding;
use std::net::IpAddr;

/// The name of the jail or network namespace of a nested router, which `crate::dut_changes` makes.
pub(crate) const NESTED: &str = "linerate";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The host's system; asked first, with [`Question::Files`] and [`Question::Mounts`]: others depend on it.
    Uname,
    /// The files that identify appliances.
    Files,
    /// Mounted file systems, with their options.
    Mounts,
    Date,
    /// The user's number there.
    User,
    /// Whether sudo asks for a password.
    Sudo,
    Cpus,
    /// Interfaces, with links, speeds and addresses.
    Interfaces,
    /// Speed and link of one interface, if [`Question::Interfaces`] does not include them.
    Link(String),
    /// Flow control of one interface.
    Pause(String),
    Counters,
    /// ARP; on Linux neighbour discovery as well.
    Neighbours,
    /// Neighbour discovery, if it is a table of its own.
    Neighbours6,
    /// The way to an address; a whole routing table may be large.
    Way(IpAddr),
    /// Free space in `/tmp` and `/var/tmp`.
    Disk,
    /// Settings by name.
    Sysctls(Vec<String>),
    /// Which generators and receivers are installed.
    Programs,
}

/// Programs that are looked for.
pub const PROGRAMS: [&str; 7] = [
    "linerate",
    "pkt-gen",
    "iperf3",
    "netperf",
    "netserver",
    "trafgen",
    "timeout",
];

impl Question {
    /// Questions before the kernel is known: these commands are the same everywhere.
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

    /// Questions after that, for hosts of all roles.
    pub fn second(kernel: Kernel) -> Vec<Question> {
        let sysctls = Question::Sysctls(forwarding(kernel.into()).map(String::from).to_vec());
        let all = [
            Question::Cpus,
            Question::Interfaces,
            Question::Counters,
            Question::Neighbours,
            Question::Neighbours6,
            sysctls,
        ];
        all.into_iter()
            .filter(|q| q.argv(kernel).is_some())
            .collect()
    }

    /// Questions about each interface of the lab.
    pub fn interface(kernel: Kernel, name: &str) -> Vec<Question> {
        let all = [Question::Link(name.into()), Question::Pause(name.into())];
        all.into_iter()
            .filter(|q| q.argv(kernel).is_some())
            .collect()
    }

    /// The command; `None` where that kernel answers by another question, or not at all, or the name of an interface is not valid.
    pub fn argv(&self, kernel: Kernel) -> Option<Vec<String>> {
        use Kernel::{FreeBsd, Linux, NetBsd, OpenBsd};
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let named = |first: &str, name: &str| {
            (super::text::is_name(name) && !name.starts_with('-'))
                .then(|| words(&format!("{first} {name}")))
        };
        Some(words(match (self, kernel) {
            (Question::Uname, _) => "uname -a",
            (Question::Mounts, _) => "mount",
            (Question::Date, _) => "date +%s",
            (Question::User, _) => "id -u",
            (Question::Sudo, _) => "sudo -n true",
            (Question::Disk, _) => "df -Pk /tmp /var/tmp",
            (Question::Cpus, Linux) => "nproc",
            (Question::Cpus, OpenBsd) => "sysctl -n hw.ncpuonline",
            (Question::Cpus, FreeBsd | NetBsd) => "sysctl -n hw.ncpu",
            (Question::Interfaces, Linux) => {
                let (all, inside) = (
                    "ip -d -j addr show",
                    format!("ip -n {NESTED} -d -j addr show"),
                );
                let also = format!(
                    "{all} && {{ [ ! -e /run/netns/{NESTED} ] || {inside} 2>/dev/null || sudo -n {inside}; }}"
                );
                return Some(["sh", "-c", &also].map(String::from).to_vec());
            }
            // Interfaces of a nested router are there after an interrupted run.
            (Question::Interfaces, FreeBsd) => {
                let inside = format!("jexec {NESTED} ifconfig -a");
                let also =
                    format!("ifconfig -a; {{ {inside} || sudo -n {inside}; }} 2>/dev/null; :");
                return Some(["sh", "-c", &also].map(String::from).to_vec());
            }
            (Question::Interfaces, _) => "ifconfig -a",
            (Question::Counters, _) => crate::counters::frames(kernel),
            (Question::Neighbours, Linux) => "ip -j neigh show",
            (Question::Neighbours, _) => "arp -an",
            (Question::Neighbours6, _) if kernel != Linux => "ndp -an",
            (Question::Files, _) => return Some(words(&format!("head -n 40 {}", FILES.join(" ")))),
            // which(1) is not everywhere.
            (Question::Programs, _) => {
                let script = [
                    "sh",
                    "-c",
                    "for p; do command -v \"$p\"; done; :",
                    "linerate",
                ];
                return Some(
                    script
                        .iter()
                        .chain(&PROGRAMS)
                        .map(|w| (*w).to_string())
                        .collect(),
                );
            }
            (Question::Link(name), Linux) => return named("ethtool", name),
            (Question::Pause(name), Linux) => return named("ethtool -a", name),
            (Question::Pause(name), FreeBsd) => return pause(name),
            (Question::Way(to), Linux) => return Some(words(&format!("ip -j route get {to}"))),
            (Question::Way(to), _) if to.is_ipv6() => {
                return Some(words(&format!("route -n get -inet6 {to}")));
            }
            (Question::Way(to), _) => return Some(words(&format!("route -n get {to}"))),
            (Question::Sysctls(names), _) => return sysctls(names, kernel),
            (Question::Neighbours6 | Question::Link(_) | Question::Pause(_), _) => return None,
        }))
    }
}

/// Names only: no option, and no assignment, which would change something.
fn sysctls(names: &[String], kernel: Kernel) -> Option<Vec<String>> {
    let plain = |n: &String| {
        n.starts_with(|c: char| c.is_ascii_alphabetic())
            && n.chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-%/*".contains(c))
    };
    let first = std::iter::once("sysctl").chain(pass_over(kernel));
    let argv = first.map(String::from).chain(names.iter().cloned());
    (!names.is_empty() && names.iter().all(plain)).then(|| argv.collect())
}

/// The option of sysctl(8) that passes over unknown names; OpenBSD's and NetBSD's go on after them anyway.
pub(crate) fn pass_over(kernel: Kernel) -> Option<&'static str> {
    match kernel {
        Kernel::FreeBsd => Some("-i"),
        Kernel::Linux => Some("-e"),
        Kernel::OpenBsd | Kernel::NetBsd => None,
    }
}

/// Drivers' names for flow control: `fc` of em, igb, ix, ixl, ice; `pause_settings` of cxgbe; two of mlx5en.
fn pause(name: &str) -> Option<Vec<String>> {
    let device = device(name)?;
    let keys = [
        "fc",
        "pause_settings",
        "rx_pauseframe_control",
        "tx_pauseframe_control",
    ];
    let names: Vec<String> = keys.iter().map(|key| format!("{device}.{key}")).collect();
    sysctls(&names, Kernel::FreeBsd)
}
