//! Linux: `ip`, `ethtool`, `sysctl`, `nft` and `iptables`, and the kernel's files for settings without a tool.

use super::shared::LINES_BACK;
use super::{Family, Form, Input, List, Modules, Program, Read, Step, Undo};
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::{Firewall, Part, RuleSet};
use linerate_plan::settings::{Feature, Interface};

/// Prints the files of an interface's queues (`rx`, `tx`) of one name, each with its content.
const QUEUES_READ: &str =
    r#"for f in /sys/class/net/"$1"/queues/"$2"-*/"$3"; do [ -e "$f" ] && echo "$f $(cat "$f")"; done"#;
/// Writes the rest of its arguments into these files, in turn.
const QUEUES_PUT: &str = r#"set -e
if=$1 kind=$2 file=$3; shift 3
n=0
while [ -e "/sys/class/net/$if/queues/$kind-$n" ]; do
	value=$1; shift; set -- "$@" "$value"
	printf '%s\n' "$value" >"/sys/class/net/$if/queues/$kind-$n/$file"
	n=$((n + 1))
done
[ "$n" -gt 0 ]"#;
/// Prints the CPUs of an interface's interrupts.
const IRQS_READ: &str = r#"for i in $(ls "/sys/class/net/$1/device/msi_irqs" 2>/dev/null); do
	f=/proc/irq/$i/smp_affinity_list; [ -e "$f" ] && echo "$f $(cat "$f")"
done"#;
/// Spreads an interface's interrupts over the CPUs that are the rest of its arguments.
const IRQS_PUT: &str = r#"if=$1; shift
done=0
for i in $(ls "/sys/class/net/$if/device/msi_irqs" 2>/dev/null); do
	f=/proc/irq/$i/smp_affinity_list; [ -e "$f" ] || continue
	printf '%s\n' "$1" >"$f" 2>/dev/null && done=1
	cpu=$1; shift; set -- "$@" "$cpu"
done
[ "$done" = 1 ] || { echo "$if has no interrupts that can be moved" >&2; exit 1; }"#;
/// Where ethtool has the second of two settings on one line: `Adaptive RX: off  TX: on`.
const ADAPTIVE_TX: &str = "Adaptive RX/TX";
/// Takes our table away, whether or not it is there.
const NFT_GONE: &str = "nft add table inet linerate && exec nft delete table inet linerate";
/// Removes our ipsets, if there are any.
const IPSETS_GONE: &str = "for s in linerate4 linerate6; do ipset destroy \"$s\" 2>/dev/null; done; exit 0";

/// Loads the module whose settings say how many states there may be. The rules would load it later, and it stays, as the rules' own modules do.
const CONNTRACK: &str = "[ -e /proc/sys/net/netfilter/nf_conntrack_max ] || exec modprobe -- nf_conntrack";

/// Prints whether a module is loaded, or a part of the kernel.
const MODULE_READ: &str = r#"[ -e "/sys/module/$(printf %s "$1" | tr - _)" ] && echo there || echo absent"#;

pub(super) const FAMILY: Family = Family {
    modules: Ok(Modules { look: MODULE_READ, load: ["modprobe", "--"], unload: "rmmod" }),
    no_boot_settings: Some(
        "each boot loader of Linux has its own file: set the kernel's command line by hand",
    ),
    no_cpus: "on a real host the queues' interrupts decide: interface.irq, interface.queues",
    interface,
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
        let master: &[&str] = if to { &["master", bridge] } else { &["nomaster"] };
        Program::new(["ip", "link", "set", "dev", name].iter().chain(master).copied())
    };
    let up = |state: &str| Program::new(["ip", "link", "set", "dev", bridge, state]);
    list.bridged("bridge linerate0", port, up);
}

fn interface(list: &mut List<'_>, name: &str, wanted: &Interface) {
    if let Some(mtu) = wanted.mtu {
        list.kernel_file(format!("MTU of {name}"), &format!("/sys/class/net/{name}/mtu"), &mtu.to_string());
    }
    for (feature, on) in &wanted.features {
        feature_of(list, name, *feature, *on);
    }
    for (flag, on) in &wanted.private_flags {
        let set = |to: &str| Program::new(["ethtool", "--set-priv-flags", name, flag, to]);
        let read = Program::new(["ethtool", "--show-priv-flags", name]);
        list.value(
            format!("private flag {flag} of {name}"),
            read,
            Form::Line(flag.clone()),
            set,
            on_off(*on),
        );
    }
    let wait = wanted.rx_wait_ns.map(|ns| (ns / 1000) as u32);
    for (value, what, option, given) in [
        (wanted.queues, "queues", CHANNELS, "combined"),
        (wanted.rx_ring, "receive ring", RINGS, "rx"),
        (wanted.tx_ring, "transmit ring", RINGS, "tx"),
        (wait, "receive interrupt wait", COALESCING, "rx-usecs"),
        (wanted.rx_wait_frames, "frames per receive interrupt", COALESCING, "rx-frames"),
    ] {
        if let Some(value) = value {
            list.steps.steps.push(ethtool(
                format!("{what} of {name}"),
                option,
                name,
                given,
                &value.to_string(),
            ));
        }
    }
    steering(list, name, wanted);
}

/// Options of ethtool that set something. The one that shows it is the small letter.
const OFFLOADS: &str = "-K";
const CHANNELS: &str = "-L";
const RINGS: &str = "-G";
const COALESCING: &str = "-C";
const PAUSE: &str = "-A";

/// The name by which ethtool shows what it is given by another.
fn shown<'a>(option: &str, given: &'a str) -> &'a str {
    match (option, given) {
        (OFFLOADS, "gro") => "generic-receive-offload",
        (OFFLOADS, "gso") => "generic-segmentation-offload",
        (OFFLOADS, "tso") => "tcp-segmentation-offload",
        (OFFLOADS, "lro") => "large-receive-offload",
        (OFFLOADS, "rx") => "rx-checksumming",
        (OFFLOADS, "tx") => "tx-checksumming",
        (OFFLOADS, "rxvlan") => "rx-vlan-offload",
        (OFFLOADS, "txvlan") => "tx-vlan-offload",
        (OFFLOADS, "ntuple") => "ntuple-filters",
        (OFFLOADS, "rxhash") => "receive-hashing",
        (CHANNELS, "combined") => "Combined",
        (CHANNELS | RINGS | PAUSE, "rx") => "RX",
        (CHANNELS | RINGS | PAUSE, "tx") => "TX",
        (PAUSE, "autoneg") => "Autonegotiate",
        (COALESCING, "adaptive-rx") => "Adaptive RX",
        (COALESCING, "adaptive-tx") => ADAPTIVE_TX,
        (_, given) => given,
    }
}

/// A value that ethtool sets.
pub(super) fn ethtool(what: String, option: &str, name: &str, given: &str, to: &str) -> Step {
    let set = |value: &str| Program::new(["ethtool", option, name, given, value]);
    let program = Program::new(["ethtool", &option.to_lowercase(), name]);
    Step::value(what, Read { program, form: Form::Line(shown(option, given).into()) }, set, to)
}

/// Steers the work of queues to CPUs.
fn steering(list: &mut List<'_>, name: &str, wanted: &Interface) {
    if let Some(cpus) = &wanted.rps {
        queues(
            list,
            format!("receive packet steering of {name}"),
            [name, "rx", "rps_cpus"],
            vec![mask(cpus)],
        );
    }
    if let Some(flows) = wanted.rfs {
        list.sysctl("net.core.rps_sock_flow_entries", &flows.to_string());
        queues(
            list,
            format!("receive flow steering of {name}"),
            [name, "rx", "rps_flow_cnt"],
            vec![flows.to_string()],
        );
    }
    if let Some(cpus) = wanted.xps.as_ref().filter(|cpus| !cpus.is_empty()) {
        let masks = cpus.iter().map(|cpu| mask(&[*cpu])).collect();
        queues(list, format!("transmit packet steering of {name}"), [name, "tx", "xps_cpus"], masks);
    }
    if let Some(cpus) = wanted.irq.as_ref().filter(|cpus| !cpus.is_empty()) {
        let arguments = std::iter::once(name.to_string()).chain(cpus.iter().map(u32::to_string));
        let back = Program::script(LINES_BACK, [""; 0]).reading(Input::Was);
        let (read, apply) = (Program::script(IRQS_READ, [name]), Program::script(IRQS_PUT, arguments));
        list.change(format!("interrupts of {name}"), read, Form::Whole, apply, back);
    }
}

fn queues(list: &mut List<'_>, what: String, which: [&str; 3], values: Vec<String>) {
    let arguments = which.into_iter().map(String::from).chain(values);
    let back = Program::script(LINES_BACK, [""; 0]).reading(Input::Was);
    let (read, apply) = (Program::script(QUEUES_READ, which), Program::script(QUEUES_PUT, arguments));
    list.change(what, read, Form::Whole, apply, back);
}

/// CPUs as the kernel's files have them: words of 32 bits, the highest first.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let word =
        |n: u32| cpus.iter().filter(|cpu| *cpu / 32 == n).fold(0u32, |word, cpu| word | 1 << (cpu % 32));
    (0..words).rev().map(|n| format!("{:08x}", word(n))).collect::<Vec<_>>().join(",")
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn feature_of(list: &mut List<'_>, name: &str, feature: Feature, on: bool) {
    let (option, all): (&str, &[&str]) = match feature {
        Feature::Gro => (OFFLOADS, &["gro"]),
        Feature::Gso => (OFFLOADS, &["gso"]),
        Feature::Tso => (OFFLOADS, &["tso"]),
        Feature::Lro => (OFFLOADS, &["lro"]),
        Feature::RxChecksum => (OFFLOADS, &["rx"]),
        Feature::TxChecksum => (OFFLOADS, &["tx"]),
        Feature::VlanOffload => (OFFLOADS, &["rxvlan", "txvlan"]),
        Feature::UdpGroForwarding => (OFFLOADS, &["rx-udp-gro-forwarding"]),
        Feature::FlowControl => (PAUSE, &["rx", "tx"]),
        Feature::AdaptiveInterrupts => (COALESCING, &["adaptive-rx", "adaptive-tx"]),
        Feature::ThreadedNapi => {
            let path = format!("/sys/class/net/{name}/threaded");
            return list.kernel_file(format!("threaded NAPI of {name}"), &path, if on { "1" } else { "0" });
        }
        Feature::VlanTso => {
            return list.refuse("vlan-tso", "Linux has no such switch: tso is for tagged frames as well");
        }
    };
    for given in all {
        let what = match option {
            OFFLOADS => format!("{given} of {name}"),
            _ => format!("{} ({given}) of {name}", feature.key()),
        };
        list.steps.steps.push(ethtool(what, option, name, given, on_off(on)));
    }
}

fn firewall(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    if let Some(file) = file {
        super::shared::load_rule_file(list, file);
    }
    if let Some(set) = rules {
        rule_set(list, set);
    }
}

fn rule_set(list: &mut List<'_>, set: &RuleSet) {
    if set.states.is_some() {
        list.add("connection tracking", None, Program::script(CONNTRACK, [""; 0]), Undo::Stays);
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
            (firewall, _) => super::shared::load(list, firewall, what, apply, &["filter", "nat"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks_have_words_of_32_bits() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[0, 2, 3]), "0000000d");
        assert_eq!(mask(&[1, 32, 63]), "80000001,00000002");
        assert_eq!(mask(&[]), "00000000");
    }
}
