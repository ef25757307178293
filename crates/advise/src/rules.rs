//! All rules, by topic, and the settings of the literature that no rule is about.

mod cards;
mod cpus;
pub mod endhost;
mod firewall;
mod forwarding;
mod linux;
mod openbsd;
mod queues;
mod sources;

use crate::rule::Rule;
pub use sources::SOURCES;

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
