//! The list of all questions about a configuration: the systems that each is for, its command, the reader of its answer, and the names
//! by which a saved folder has it. No command changes anything. A script gathers small commands of a kind, because a process costs more
//! than its answer.

use super::conversions::{
    Convert, arp, cpuinfo, filter_rules, listed, lscpu, meminfo, netstat, opnsense, plain, section,
    text, uname,
};
use super::{Configuration, RuleSet, boot, path, rule_sets, settings};
use crate::systems::bsd::device;
use crate::systems::text::{script, valid};
use crate::systems::{ALL, BSD, FILES, FREEBSD, Kernel, LINUX, OPENBSD};
use std::net::IpAddr;

/// A question: the systems that it is for; its name, behind which there may be names of interfaces; how it is put; the reader of its answer;
/// and the outputs and files of a saved folder that become an answer. See [`glob`](super::boot::glob).
pub(super) type Asked = (
    &'static [Kernel],
    &'static str,
    Command,
    Read,
    &'static [(&'static str, Convert)],
);

/// How a question is put.
pub(super) enum Command {
    /// A program with arguments, by its name.
    Line,
    /// A script.
    Script(&'static str),
    /// A script that gets the names of all interfaces.
    OfInterfaces(&'static str),
    /// A script for each interface.
    EachInterface(&'static str),
    /// A script that gets the addresses of the test's frames: pairs of a destination and a source.
    OfAddresses(&'static str),
    /// Settings of the system.
    Settings,
    /// Settings of each interface's device.
    EachDevice,
    /// Settings of the next boot.
    Boot,
}

/// Who reads an answer.
pub(super) enum Read {
    Host(fn(&mut Configuration, &str)),
    /// Gets the name of the interface or device, too.
    Card(fn(&mut Configuration, &str, &str)),
    Rules(fn(&str) -> Option<RuleSet>),
}

impl Configuration {
    const QUESTIONS: &[Asked] = {
        use Command::{
            Boot, EachDevice, EachInterface, Line, OfAddresses, OfInterfaces, Script, Settings,
        };
        use Read::{Card, Host, Rules};
        &[
            (
                ALL,
                "system",
                Script(SYSTEM),
                Host(Self::system),
                &[
                    ("uname-*", uname),
                    ("opnsense-version*", opnsense),
                    (
                        "etc/os-release etc/version etc/platform etc/product_name etc/nanobsd.conf usr/local/opnsense/version/core",
                        section,
                    ),
                ],
            ),
            (
                LINUX,
                "cpus",
                Script(CPUS),
                Host(Self::cpu_files),
                &[
                    ("lscpu-*", lscpu),
                    ("cpuinfo-* proc/cpuinfo", cpuinfo),
                    ("meminfo-* proc/meminfo", meminfo),
                    (
                        "sys/devices/system/* sys/class/dmi/id/* sys/hypervisor/type",
                        listed,
                    ),
                ],
            ),
            (
                LINUX,
                "interfaces",
                OfInterfaces(INTERFACES),
                Host(Self::interface_files),
                &[(
                    "proc/irq/* proc/net/packet proc/net/fib_triestat proc/net/rt6_stats sys/class/net/*",
                    listed,
                )],
            ),
            (LINUX, "sysctl", Settings, Host(Self::sysctl), &[]),
            (
                LINUX,
                "ip -d -j addr show",
                Line,
                Host(Self::links),
                &[("ip-*link*", text)],
            ),
            (
                LINUX,
                "tc",
                Script(path::scripts::QUEUEING),
                Host(Self::queueing),
                &[("tc-*qdisc*", |_, text| section("qdisc", text))],
            ),
            (
                LINUX,
                "neighbours",
                Script(NEIGHBOURS),
                Host(Self::neighbours),
                &[("arp-an | arp-a* | arp-*", arp)],
            ),
            (
                LINUX,
                "nft",
                Script(NFT),
                Host(Self::nftables),
                &[("nft-*", text)],
            ),
            (
                LINUX,
                "iptables",
                Script(IPTABLES),
                Host(Self::iptables),
                &[("iptables-save", |_, text| section("ip", text))],
            ),
            (LINUX, "session", Script(SESSION), Host(Self::session), &[]),
            (
                LINUX,
                "way",
                OfAddresses(path::scripts::WAY),
                Host(Self::ways),
                &[],
            ),
            (
                LINUX,
                "policy",
                Script(path::scripts::POLICY),
                Host(Self::policy),
                &[],
            ),
            (
                LINUX,
                "hooks",
                Script(path::scripts::HOOKS),
                Host(Self::hooks),
                &[],
            ),
            (
                LINUX,
                "programs",
                Script(path::scripts::PROGRAMS),
                Host(Self::programs),
                &[],
            ),
            (
                LINUX,
                "tracing",
                Script(path::scripts::TRACING),
                Host(Self::tracing),
                &[],
            ),
            (
                LINUX,
                "ethtool",
                EachInterface(ETHTOOL),
                Card(Self::ethtool),
                &[],
            ),
            (BSD, "sysctl", Settings, Host(Self::settings), &[]),
            (
                FREEBSD,
                "sysctl -i dev",
                EachDevice,
                Card(Self::device),
                &[],
            ),
            // hwfeatures leaves IPv6 addresses out.
            (
                OPENBSD,
                "ifconfig -a hwfeatures",
                Line,
                Host(Self::ifconfig),
                &[("ifconfig-*hwfeatures", plain)],
            ),
            (
                BSD,
                "ifconfig -a",
                Line,
                Host(Self::ifconfig),
                &[("ifconfig-a | ifconfig-*", plain)],
            ),
            (
                FREEBSD,
                "pciconf -lvc",
                Line,
                Host(Self::pciconf),
                &[("pciconf-lvc | pciconf-lv* | pciconf-*", text)],
            ),
            (
                BSD,
                "vmstat -i",
                Line,
                Host(Self::vmstat),
                &[("vmstat-i | vmstat-i*", text)],
            ),
            (
                FREEBSD,
                "kldstat",
                Line,
                Host(Self::kldstat),
                &[("kldstat- | kldstat-*", text)],
            ),
            (
                BSD,
                "pfctl -s info",
                Line,
                Host(Self::pf_state),
                &[(
                    "pfctl-si | pfctl-sinfo | pfctl-v*si pfctl-v*sinfo | pfctl-sa",
                    text,
                )],
            ),
            (
                BSD,
                "pfctl -s memory",
                Line,
                Host(Self::pf_limits),
                &[("pfctl-sm | pfctl-smemory | pfctl-sa", text)],
            ),
            (
                BSD,
                "pfctl -s rules",
                Line,
                Rules(rule_sets::pf),
                &[
                    ("pfctl-sr | pfctl-srules | pfctl-v*sr pfctl-v*srules", text),
                    ("pfctl-*sa", filter_rules),
                ],
            ),
            (
                FREEBSD,
                "ipfw list",
                Line,
                Rules(rule_sets::ipfw),
                &[("ipfw-list | ipfw-show | ipfw-*show ipfw-*list", text)],
            ),
            (
                FREEBSD,
                "ipfstat -io",
                Line,
                Rules(rule_sets::ipf),
                &[("ipfstat-io", text)],
            ),
            // Behind vmstat, which names the interrupts.
            (
                FREEBSD,
                "cpusets",
                Script(CPUSETS),
                Host(Self::cpusets),
                &[("cpuset-*", text)],
            ),
            (
                FREEBSD,
                "ipfstat -s",
                Script(IPF_STATES),
                Host(Self::ipf_states),
                &[("ipfstat-s ipf-T*", text)],
            ),
            (
                BSD,
                "routes",
                Script(ROUTES),
                Host(Self::bsd_routes),
                &[("netstat-rn | netstat-*r*", netstat)],
            ),
            (
                BSD,
                "neighbours",
                Script(BSD_NEIGHBOURS),
                Host(Self::neighbours),
                &[("arp-an | arp-a* | arp-*", arp)],
            ),
            (
                FREEBSD,
                "dmesg",
                Script(MESSAGES),
                Host(Self::messages),
                &[("dmesg-*", plain)],
            ),
            (
                BSD,
                "way",
                OfAddresses(path::scripts::BSD_WAY),
                Host(Self::bsd_ways),
                &[],
            ),
            (
                FREEBSD,
                "netgraph",
                Script(path::scripts::NETGRAPH),
                Host(Self::netgraph),
                &[("ngctl-list", text)],
            ),
            (
                FREEBSD,
                "taps",
                Script(path::scripts::TAPS),
                Host(Self::taps),
                &[("netstat-B", text)],
            ),
            (
                BSD,
                "ipsec",
                Script(path::scripts::IPSEC),
                Host(Self::ipsec_policies),
                &[("setkey-DP | ipsecctl-sflow", text)],
            ),
            (
                BSD,
                "queues",
                Script(path::scripts::QUEUES),
                Host(Self::queues),
                &[("pfctl-sq | pfctl-squeue | pfctl-v*sq pfctl-v*squeue", text)],
            ),
            (ALL, "boot", Boot, Host(Self::boot), &[]),
        ]
    };

    /// Enters the answer to a question, if it is known here.
    pub(super) fn enter(&mut self, kernel: Kernel, asked: &str, answer: &str) {
        let earlier = EARLIER.iter().find(|(earlier, _)| *earlier == asked);
        let asked = earlier.map_or(asked, |(_, now)| *now);
        let is_asked = |(_, name, ..): &&Asked| {
            asked
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.']))
        };
        match of_family(kernel)
            .filter(is_asked)
            .max_by_key(|(_, name, ..)| name.len())
        {
            Some((.., Read::Host(read), _)) => read(self, answer),
            Some((.., Read::Card(read), _)) => {
                read(self, asked.rsplit(' ').next().unwrap_or_default(), answer)
            }
            Some((.., Read::Rules(read), _)) => self.rule_sets.extend(read(answer)),
            None => {}
        }
    }
}

/// Questions as earlier versions put them, whose records are read.
const EARLIER: [(&str, &str); 5] = [
    ("ip -d -j link show", "ip -d -j addr show"),
    ("pfctl -si", "pfctl -s info"),
    ("pfctl -sm", "pfctl -s memory"),
    ("pfctl -sr", "pfctl -s rules"),
    ("pfctl -vsr", "pfctl -s rules"),
];

/// The questions whose answers may be of a host with this kernel: BSD systems have programs of each other.
pub(super) fn of_family(kernel: Kernel) -> impl Iterator<Item = &'static Asked> {
    let is_linux = kernel == Kernel::Linux;
    Configuration::QUESTIONS
        .iter()
        .filter(move |asked| asked.0.iter().any(|of| (*of == Kernel::Linux) == is_linux))
}

/// The commands of a question, with these interfaces and addresses.
fn commands(
    (_, name, command, ..): &Asked,
    kernel: Kernel,
    names: &[&str],
    addresses: &[[IpAddr; 2]],
) -> Vec<Vec<String>> {
    match command {
        Command::OfAddresses(_) if addresses.is_empty() => Vec::new(),
        Command::OfAddresses(text) => {
            let words: Vec<String> = addresses.iter().flatten().map(IpAddr::to_string).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            vec![script(text, name, &words)]
        }
        Command::Line => vec![name.split(' ').map(String::from).collect()],
        Command::Script(text) => vec![script(&text.replace("FILES", &FILES.join(" ")), name, &[])],
        Command::OfInterfaces(text) => vec![script(text, name, names)],
        Command::EachInterface(text) => {
            names.iter().map(|one| script(text, name, &[one])).collect()
        }
        Command::Settings => vec![settings::command(&settings::of(kernel))],
        Command::EachDevice => {
            let devices = names.iter().filter_map(|name| device(name));
            devices
                .map(|device| settings::command(&["-i", &device]))
                .collect()
        }
        Command::Boot => vec![script(&boot::script(kernel), name, &[])],
    }
}

/// The commands for a host's configuration, with these interfaces of it.
pub fn questions(kernel: Kernel, interfaces: &[String]) -> Vec<Vec<String>> {
    questions_of_test(kernel, interfaces, &[])
}

/// [`questions`], and one about the ways of a test's frames: their destinations, each with a source.
pub fn questions_of_test(
    kernel: Kernel,
    interfaces: &[String],
    addresses: &[[IpAddr; 2]],
) -> Vec<Vec<String>> {
    let names = valid(interfaces);
    let asked = Configuration::QUESTIONS
        .iter()
        .filter(|asked| asked.0.contains(&kernel));
    asked
        .flat_map(|asked| commands(asked, kernel, &names, addresses))
        .collect()
}

/// The name of a question: its command line, or the name of a script with its arguments.
pub fn label(argv: &[String]) -> String {
    match argv {
        [sh, c, _, name @ ..] if sh == "sh" && c == "-c" => name.join(" "),
        words => words.join(" "),
    }
}

/// The command that lists a host's interfaces: [`interfaces`](super::interfaces) reads its answer.
pub fn listing(kernel: Kernel) -> Vec<String> {
    let line = if kernel == Kernel::Linux {
        "ip -d -j link show"
    } else {
        "ifconfig -a"
    };
    line.split(' ').map(String::from).collect()
}

/// Files of the CPUs, as grep(1) prints them: `PATH:LINE`.
const CPUS: &str = r#"c=/sys/devices/system/cpu
grep -sH -m 2 -e '^model name' -e '^flags' /proc/cpuinfo
grep -sH -m 1 '^MemTotal' /proc/meminfo
grep -sH '' $c/online $c/isolated $c/smt/active $c/cpufreq/boost $c/intel_pstate/no_turbo \
$c/cpu[0-9]*/topology/physical_package_id $c/cpu[0-9]*/topology/core_id $c/cpu[0-9]*/topology/thread_siblings_list \
$c/cpu[0-9]*/cpufreq/scaling_governor $c/cpu[0-9]*/cpufreq/scaling_cur_freq $c/cpu[0-9]*/cpufreq/scaling_max_freq \
$c/cpu[0-9]*/cpufreq/cpuinfo_max_freq /sys/devices/system/node/node[0-9]*/cpulist $c/vulnerabilities/* \
/sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/hypervisor/type \
/sys/devices/system/clocksource/clocksource0/[ac]*_clocksource; :"#;

/// Files of interfaces; the interrupts where one of them is a device, and `/proc/irq/NUMBER/NAME/`.
pub(crate) const INTERFACES: &str = r#"f= irqs=
for i; do
d=/sys/class/net/$i
f="$f $d/ifindex $d/speed $d/threaded $d/gro_flush_timeout $d/napi_defer_hard_irqs
$d/queues/rx-*/rps_cpus $d/queues/rx-*/rps_flow_cnt $d/queues/tx-*/xps_cpus"
[ -e $d/device ] || continue
irqs='/proc/irq/*/smp_affinity_list /proc/irq/*/effective_affinity_list'
f="$f $d/device/numa_node $d/device/current_link_speed $d/device/current_link_width $d/device/max_link_speed
$d/device/max_link_width $d/device/msi_irqs/* $d/device/irq $d/device/../msi_irqs/* $d/device/../irq"
done
[ -z "$irqs" ] || printf '%s\n' /proc/irq/*/*/
grep -sH '' $f $irqs /proc/net/packet /proc/net/fib_triestat /proc/net/rt6_stats; :"#;

/// The interfaces of this ssh session: towards the client, and with the address that it has reached. sudo takes the variable from
/// the environment, so those of the parent processes are read as well.
const SESSION: &str = r#"p=$$ c=$SSH_CONNECTION
while [ -z "$c" ] && [ "${p:-1}" -gt 1 ]; do
c=$(tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
p=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$p/status" 2>/dev/null)
done
set -- $c
[ $# -ge 4 ] || exit 0
case $1 in
*%*) echo "${1#*%}" ;;
*) ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p' ;;
esac
ip -o addr show to "${3%%\%*}" | awk '{ print $2 }'; :"#;

/// Settings of an interface by ethtool(8), in sections. A virtual one has few of them.
const ETHTOOL: &str = r#"command -v ethtool >/dev/null || exit 127
ask() { echo "==> $* <=="; ethtool "$@"; }
ask -k "$1"
ask -l "$1"
[ -e "/sys/class/net/$1/device" ] || exit 0
for o in -i -g -c -a -x; do ask $o "$1"; done
for t in udp4 tcp4 udp6 tcp6; do ask -n "$1" rx-flow-hash $t; done; :"#;

/// How many neighbours are in each state.
const NEIGHBOURS: &str = r#"command -v ip >/dev/null || exit 127
ip neigh show | awk '{n[$NF]++} END {for (s in n) print n[s], s}'"#;

/// Rules of nftables. The question itself would load the module.
const NFT: &str = r#"command -v nft >/dev/null || exit 127
if [ -e /proc/modules ]; then
read -r r </proc/sys/kernel/osrelease
grep -qs '^nf_tables ' /proc/modules || grep -qs '/nf_tables\.ko' "/lib/modules/$r/modules.builtin" || exit 0
fi
exec nft -s -t list ruleset"#;

/// Rules of the older iptables, which are not among those of nftables.
const IPTABLES: &str = r#"for v in ip ip6; do
read -r t </proc/net/${v}_tables_names || continue
[ -n "$t" ] || continue
s=${v}tables-legacy-save
command -v $s >/dev/null || s=${v}tables-save
echo "==> $v <=="
$s
done 2>/dev/null; :"#;

/// The system, as [`systems::detect`](crate::systems) reads it.
const SYSTEM: &str = r#"echo '==> uname <=='
uname -a
head -n 40 FILES 2>/dev/null
echo '==> mount <=='
mount | grep ' on / '; :"#;

/// Routes by address family: those below `Internet:`, without the title of the columns.
const ROUTES: &str = r#"netstat -rn | awk '/^Internet/ {f = $1; next} NF > 3 && f && $1 != "Destination" && $3 !~ /[Llbmc]/ {n[f]++} END {for (f in n) print f, n[f]}'"#;

/// How many neighbours are known, and how many are not.
const BSD_NEIGHBOURS: &str = r#"{ arp -an; ndp -an; } 2>/dev/null | awk '/^Neighbor|^Host/ || / l *$/ {next} /incomplete/ {n["INCOMPLETE"]++; next}
/permanent| R *$/ {n["PERMANENT"]++; next} NF > 3 {n["REACHABLE"]++} END {for (s in n) print n[s], s}'"#;

/// The states of ipf, and how many there may be.
const IPF_STATES: &str = "ipfstat -s && ipf -T state_max,state_size";

/// The CPUs that may take each interrupt.
const CPUSETS: &str =
    r#"for i in $(vmstat -i | sed -n 's/^irq\([0-9]*\):.*/\1/p'); do cpuset -g -x $i; done; :"#;

/// The parts of the boot messages that describe CPUs, and where cards are.
const MESSAGES: &str = r#"f=/var/run/dmesg.boot
[ -r $f ] || exit 1
grep -E '^(CPU: |FreeBSD/SMP: |real memory)|numa-domain|RSS table size' $f; :"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_reader_and_a_name_of_its_own() {
        for kernel in ALL.iter().copied() {
            let addresses = ["198.19.0.1", "198.18.0.1"].map(|one| one.parse().unwrap());
            let labels: Vec<String> = questions_of_test(kernel, &["em0".into()], &[addresses])
                .iter()
                .map(|argv| label(argv))
                .collect();
            assert_eq!(
                labels
                    .iter()
                    .collect::<std::collections::BTreeSet<_>>()
                    .len(),
                labels.len(),
                "{labels:?}"
            );
            for (_, name, .., saved) in Configuration::QUESTIONS
                .iter()
                .filter(|asked| asked.0.contains(&kernel))
            {
                assert!(labels.iter().any(|label| label.starts_with(name)), "{name}");
                saved
                    .iter()
                    .for_each(|(forms, _)| assert!(!forms.starts_with('*'), "{forms}"));
            }
        }
    }
}
