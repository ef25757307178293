//! The commands. They read files and settings, and change nothing. A script gathers small commands of a kind, because a process
//! costs more than its answer.

use crate::systems::{Kernel, is_name};

/// Settings that bear on forwarding.
const SYSCTLS: &[&str] = &[
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.all.log_martians",
    "net.ipv4.conf.all.send_redirects",
    "net.ipv4.ip_early_demux",
    "net.ipv4.tcp_early_demux",
    "net.ipv4.udp_early_demux",
    "net.ipv4.ip_default_ttl",
    "net.ipv4.icmp_ratelimit",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv6.fib_multipath_hash_policy",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv6.neigh.default.gc_thresh1",
    "net.ipv6.neigh.default.gc_thresh2",
    "net.ipv6.neigh.default.gc_thresh3",
    "net.ipv6.route.gc_thresh",
    "net.ipv6.route.max_size",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.dev_weight",
    "net.core.dev_weight_rx_bias",
    "net.core.dev_weight_tx_bias",
    "net.core.netdev_tstamp_prequeue",
    "net.core.rps_sock_flow_entries",
    "net.core.flow_limit_cpu_bitmap",
    "net.core.gro_normal_batch",
    "net.core.default_qdisc",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_acct",
    "net.netfilter.nf_conntrack_timestamp",
    "net.netfilter.nf_conntrack_events",
    "net.netfilter.nf_conntrack_checksum",
    "net.netfilter.nf_conntrack_tcp_loose",
    "net.netfilter.nf_conntrack_tcp_be_liberal",
    "net.netfilter.nf_conntrack_udp_timeout",
    "net.netfilter.nf_conntrack_udp_timeout_stream",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-arptables",
    "kernel.numa_balancing",
    "kernel.nmi_watchdog",
    "kernel.timer_migration",
    "kernel.bpf_stats_enabled",
    "kernel.randomize_va_space",
];

/// The same for an interface.
const OF_INTERFACE: [&str; 4] = ["rp_filter", "log_martians", "send_redirects", "forwarding"];

/// Files of the CPUs, as grep(1) prints them: `PATH:LINE`.
const CPUS: &str = r#"c=/sys/devices/system/cpu
grep -sH -m 2 -e '^model name' -e '^flags' /proc/cpuinfo
grep -sH '' $c/online $c/isolated $c/smt/active $c/cpufreq/boost $c/intel_pstate/no_turbo \
$c/cpu[0-9]*/topology/physical_package_id $c/cpu[0-9]*/topology/core_id $c/cpu[0-9]*/topology/thread_siblings_list \
$c/cpu[0-9]*/cpufreq/scaling_governor $c/cpu[0-9]*/cpufreq/scaling_cur_freq $c/cpu[0-9]*/cpufreq/scaling_max_freq \
$c/cpu[0-9]*/cpufreq/cpuinfo_max_freq /sys/devices/system/node/node[0-9]*/cpulist $c/vulnerabilities/* \
/sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/hypervisor/type \
/sys/devices/system/clocksource/clocksource0/current_clocksource; :"#;

/// Files of interfaces; the interrupts where one of them is a device, and `/proc/irq/NUMBER/NAME/`.
const INTERFACES: &str = r#"f= irqs=
for i; do
d=/sys/class/net/$i
f="$f $d/ifindex $d/speed $d/threaded $d/gro_flush_timeout $d/napi_defer_hard_irqs
$d/queues/rx-*/rps_cpus $d/queues/rx-*/rps_flow_cnt $d/queues/tx-*/xps_cpus"
[ -e $d/device ] || continue
irqs='/proc/irq/*/smp_affinity_list /proc/irq/*/effective_affinity_list'
f="$f $d/device/numa_node $d/device/current_link_speed $d/device/current_link_width $d/device/max_link_speed
$d/device/max_link_width $d/device/msi_irqs/* $d/device/../msi_irqs/*"
done
[ -z "$irqs" ] || printf '%s\n' /proc/irq/*/*/
grep -sH '' $f $irqs /proc/net/packet /proc/net/fib_triestat /proc/net/rt6_stats; :"#;

/// Settings of an interface by ethtool(8), in sections. A virtual one has few of them.
const ETHTOOL: &str = r#"command -v ethtool >/dev/null || exit 127
ask() { echo "==> $* <=="; ethtool "$@"; }
ask -k "$1"
ask -l "$1"
[ -e "/sys/class/net/$1/device" ] || exit 0
for o in -i -g -c -a -x; do ask $o "$1"; done
for t in udp4 tcp4 udp6 tcp6; do ask -n "$1" rx-flow-hash $t; done; :"#;

/// Queueing disciplines, and the filters of interfaces where any can be.
const QUEUEING: &str = r#"command -v tc >/dev/null || exit 127
q=$(tc -j qdisc show) || exit
echo "==> qdisc <=="
echo "$q"
for i; do
case $q in *clsact*|*ingress*)
for d in ingress egress; do echo "==> $d $i <=="; tc -j filter show dev "$i" $d; done ;;
esac
case $q in *prio*|*htb*|*hfsc*|*drr*|*cbq*) echo "==> root $i <=="; tc -j filter show dev "$i" ;; esac
done; :"#;

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

/// The commands for a host's configuration, with these interfaces of it.
pub fn questions(kernel: Kernel, interfaces: &[String; 2]) -> Vec<Vec<String>> {
    match kernel {
        Kernel::Linux => linux(interfaces),
        Kernel::FreeBsd | Kernel::OpenBsd | Kernel::NetBsd => Vec::new(),
    }
}

/// The name of a question: its command line, or the name of a script with its arguments.
pub fn label(argv: &[String]) -> String {
    match argv {
        [sh, c, _, name @ ..] if sh == "sh" && c == "-c" => name.join(" "),
        words => words.join(" "),
    }
}

fn linux(interfaces: &[String; 2]) -> Vec<Vec<String>> {
    let names: Vec<&str> = valid(interfaces);
    let mut sysctl: Vec<String> = ["sysctl", "-e"].iter().chain(SYSCTLS).map(|w| (*w).into()).collect();
    for name in &names {
        // With slashes, a dot of a name is one.
        sysctl.extend(OF_INTERFACE.iter().map(|setting| format!("net/ipv4/conf/{name}/{setting}")));
    }
    let mut all = vec![
        script(CPUS, "cpus", &[]),
        script(INTERFACES, "interfaces", &names),
        sysctl,
        ["ip", "-d", "-j", "link", "show"].map(String::from).into(),
        script(QUEUEING, "tc", &names),
        script(NEIGHBOURS, "neighbours", &[]),
        script(NFT, "nft", &[]),
        script(IPTABLES, "iptables", &[]),
    ];
    all.extend(names.iter().map(|name| script(ETHTOOL, "ethtool", &[name])));
    all
}

/// Names that neither a shell nor a program takes for anything else.
fn valid(interfaces: &[String; 2]) -> Vec<&str> {
    let plain = |name: &&str| is_name(name) && !name.starts_with(['-', '.']);
    interfaces.iter().map(String::as_str).filter(plain).collect()
}

fn script(text: &str, name: &str, args: &[&str]) -> Vec<String> {
    ["sh", "-c", text, name].iter().chain(args).map(|word| (*word).to_string()).collect()
}
