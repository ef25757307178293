//! Linux: `ip`, `ethtool`, `sysctl`, `nft` and `iptables`, and the kernel's files for settings without a tool.

use super::{Family, List, Modules, Program, Undo};
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::{Firewall, Kind, Part, RuleSet};

/// Takes our tables away, whether or not they are there.
const NFT_GONE: &str =
    "for f in ip ip6; do nft add table $f linerate && nft delete table $f linerate || exit 1; done";
/// Removes our ipsets, if there are any.
const IPSETS_GONE: &str =
    "for s in linerate4 linerate6; do ipset destroy \"$s\" 2>/dev/null; done; exit 0";

/// Loads the module whose settings say how many states there may be. The rules would load it later, and it stays, as the rules' own modules do.
const CONNTRACK: &str =
    "[ -e /proc/sys/net/netfilter/nf_conntrack_max ] || exec modprobe -- nf_conntrack";

/// Prints whether a module is loaded, or a part of the kernel.
const MODULE_READ: &str =
    r#"[ -e "/sys/module/$(printf %s "$1" | tr - _)" ] && echo there || echo absent"#;

pub(super) const FAMILY: Family = Family {
    modules: Ok(Modules {
        look: MODULE_READ,
        load: ["modprobe", "--"],
        unload: "rmmod",
    }),
    no_boot_settings: Some(
        "each boot loader of Linux has its own file: set the kernel's command line by hand",
    ),
    no_cpus: "on a real host the queues' interrupts decide: interface.irq, interface.queues",
    interface: super::cards::interface,
    bridge,
    route: super::tables::linux_route,
    neighbour: super::tables::linux_neighbour,
    firewall,
};

fn bridge(list: &mut List<'_>) {
    let bridge = "linerate0";
    list.with_undo(
        "bridge linerate0",
        Program::new(["ip", "link", "add", "name", bridge, "type", "bridge"]),
        Program::new(["ip", "link", "del", "dev", bridge]),
    );
    let port = |name: &str, to: bool| {
        let master: &[&str] = if to {
            &["master", bridge]
        } else {
            &["nomaster"]
        };
        Program::new(
            ["ip", "link", "set", "dev", name]
                .iter()
                .chain(master)
                .copied(),
        )
    };
    let up = |state: &str| Program::new(["ip", "link", "set", "dev", bridge, state]);
    list.bridged("bridge linerate0", port, up);
}

fn firewall(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    if let Some(file) = file {
        super::rules::load_rule_file(list, file);
    }
    if let Some(set) = rules {
        rule_set(list, set);
    }
}

fn rule_set(list: &mut List<'_>, set: &RuleSet) {
    if set.states.is_some() {
        list.add(
            "connection tracking",
            None,
            Program::script(CONNTRACK, [""; 0]),
            Undo::Stays,
        );
    }
    for (name, value) in set.sysctls() {
        list.sysctl(&name, &value);
    }
    for load in set.loads() {
        let apply = Program::loading(set, &load);
        let what = format!("rule set by {}", load.program);
        match (set.firewall, load.part) {
            (Firewall::Nftables, _) => {
                list.with_undo(what, apply, Program::script(NFT_GONE, [""; 0]));
            }
            (_, Part::Ipset) => list.with_undo(what, apply, Program::script(IPSETS_GONE, [""; 0])),
            (firewall, _) => {
                let tables = if set.kind == Kind::Nat {
                    &["filter", "nat"][..]
                } else {
                    &["filter"]
                };
                super::rules::load(list, firewall, what, apply, tables);
            }
        }
    }
}
