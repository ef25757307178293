//! All rules, by topic, and the settings of the literature that no rule is about.

mod cards;
mod cpus;
pub mod endhost;
mod firewall;
mod forwarding;
mod linux;
mod openbsd;
mod queues;

use crate::rule::Rule;

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let topics = [
        forwarding::RULES,
        queues::RULES,
        cards::RULES,
        cpus::RULES,
        firewall::RULES,
        linux::RULES,
        endhost::RULES,
        openbsd::RULES,
    ];
    topics.into_iter().flatten()
}

/// The source of an illustration of the 2018 paper.
macro_rules! paper {
    ($illustration:literal) => {
        concat!(
            "'Tuning FreeBSD for routing and firewalling' (2018), illustration ",
            $illustration
        )
    };
}
pub(crate) use paper;

pub const PAGE: &str = "BSD Router Project, 'FreeBSD forwarding Performance'";
pub const LAB: &str = "BSD Router Project, lab of an IBM x3550 M3 with Intel 82580";
pub const P2015: &str = "'Measure Twice, Code Once' (2015), tables 2 and 3";
pub const GUIDE: &str = "calomel.org's guide";

/// A part of each source's name in the rules, and where it is found.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "'Tuning FreeBSD",
        "Olivier Cochard-Labbé, 'Tuning FreeBSD for routing and firewalling', 2018",
    ),
    (
        "'Measure Twice",
        "George V. Neville-Neil and Jim Thompson, 'Measure Twice, Code Once: Network Performance Analysis for FreeBSD', 2015",
    ),
    (
        "Project, 'FreeBSD forw",
        "BSD Router Project (BSDRP), documentation: 'FreeBSD forwarding Performance'",
    ),
    (
        "lab of an IBM",
        "BSD Router Project (BSDRP), documentation: 'Forwarding performance lab of an IBM System x3550 M3 with Intel 82580'",
    ),
    (
        "calomel.org",
        "'Network Tuning and Performance', https://calomel.org/network_performance.html",
    ),
];

/// Names that the literature mentions and that are no advice, with the reason. `*` stands for any rest.
pub const EXCLUDED: &[(&str, &str)] = &[
    ("dev.cxl.0.stats*", "counters, which `linerate watch` shows"),
    (
        "net.ipv4.tcp_available_congestion_control",
        "read only: which algorithms there are",
    ),
    ("kernel.domainname", "a name, not a matter of speed"),
    (
        "kernel.printk",
        "messages on the console: `linerate explain` finds rules that log",
    ),
    (
        "ddb.panic",
        "the kernel's debugger: about crashes, not speed",
    ),
    (
        "machdep.allowaperture",
        "access of X to the hardware: a risk, and no matter of forwarding",
    ),
    ("machdep.kbdreset", "a key combination"),
    (
        "vm.swapencrypt.enable",
        "encryption of swap: on by default since OpenBSD 3.9",
    ),
    (
        "net.inet.carp.*",
        "redundancy of firewalls: a choice of the network, not of speed",
    ),
    (
        "speed_tweaks",
        "a label of the results of calomel.org's guide",
    ),
    (
        "jail_enable",
        "the lab of illustration 26: forwarding in a jail costs nothing (illustration 27)",
    ),
    ("jail_list", "the lab of illustration 26"),
    (
        "firewall_script",
        "the lab's rule file: `linerate ruleset` writes such files",
    ),
    (
        "firewall_enable",
        "the lab's choice of firewall; what a firewall costs is `linerate run lab/firewalls`",
    ),
    ("pf_enable", "the lab's choice of firewall"),
    ("static_routes", "the lab's addresses"),
    (
        "static_arp_pairs",
        "tried against the lock of ARP, without effect (2018 paper, section II.E)",
    ),
    ("route_*", "the lab's addresses"),
    ("static_arp_*", "the lab's addresses"),
    (
        "vlans_*",
        "the lab's VLANs; what tagging costs is `linerate run lab/vlan`",
    ),
];
