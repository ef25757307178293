//! The commands. They read files and settings, and change nothing. A script gathers small commands of a kind, because a process
//! costs more than its answer.

use crate::systems::question::device;
use crate::systems::{Kernel, is_name};

/// Settings that bear on forwarding, without those of [`OF_MACHINE`].
const SYSCTLS: &[&str] = &[
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv4.ip_early_demux",
    "net.ipv4.tcp_early_demux",
    "net.ipv4.udp_early_demux",
    "net.ipv4.ip_default_ttl",
    "net.ipv4.icmp_ratelimit",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv6.fib_multipath_hash_policy",
    "net.ipv6.route.gc_thresh",
    "net.ipv6.route.max_size",
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
    "kernel.printk",
    "net.ipv4.conf.all.accept_source_route",
    "net.ipv4.conf.all.secure_redirects",
    "net.ipv6.conf.all.accept_source_route",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling",
];

/// Settings that bear on forwarding and that a network namespace does not show: the machine has them once.
pub const OF_MACHINE: [&str; 23] = [
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv6.neigh.default.gc_thresh1",
    "net.ipv6.neigh.default.gc_thresh2",
    "net.ipv6.neigh.default.gc_thresh3",
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
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
];

/// Settings of each interface: the kernel combines them with those of `all` in ways of their own. With slashes, the dot of a name
/// is one.
const OF_INTERFACES: [&str; 6] = [
    "net/ipv4/conf/*/rp_filter",
    "net/ipv4/conf/*/log_martians",
    "net/ipv4/conf/*/send_redirects",
    "net/ipv4/conf/*/accept_redirects",
    "net/ipv4/conf/*/forwarding",
    "net/ipv6/conf/*/accept_redirects",
];

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

/// The system, as [`systems::detect`](crate::systems) reads it.
const SYSTEM: &str = r#"echo '==> uname <=='
uname -a
head -n 40 /etc/os-release /etc/version /etc/platform /etc/product_name /etc/nanobsd.conf /usr/local/opnsense/version/core 2>/dev/null
echo '==> mount <=='
mount | grep ' on / '; :"#;

/// Settings of Linux that are written down for the next boot.
const LINUX_BOOT: &str = r#"for f in /etc/sysctl.conf /etc/sysctl.d/*.conf; do
[ -r "$f" ] && echo "==> $f <==" && grep -E '^[[:space:]]*-?(net|kernel|vm|fs)[./]' "$f" | grep -viE 'pass|secret|psk|key|token'
done
for f in /etc/modprobe.d/*.conf; do
[ -r "$f" ] && echo "==> $f <==" && grep -E '^[[:space:]]*options[[:space:]]+nf_conntrack[[:space:]]' "$f"
done
echo '==> /proc/cmdline <=='
tr ' ' '\n' </proc/cmdline | grep -E '^(mitigations|nosmt|isolcpus|nohz_full|rcu_nocbs|intel_idle\.|processor\.|idle|maxcpus|nopti|pti|iommu|intel_iommu|amd_iommu|intel_pstate)'
:"#;

/// The commands for a host's configuration, with these interfaces of it.
pub fn questions(kernel: Kernel, interfaces: &[String]) -> Vec<Vec<String>> {
    match kernel {
        Kernel::Linux => linux(interfaces),
        Kernel::FreeBsd => freebsd(interfaces),
        Kernel::OpenBsd | Kernel::NetBsd => openbsd(),
    }
}

/// The name of a question: its command line, or the name of a script with its arguments.
pub fn label(argv: &[String]) -> String {
    match argv {
        [sh, c, _, name @ ..] if sh == "sh" && c == "-c" => name.join(" "),
        words => words.join(" "),
    }
}

fn linux(interfaces: &[String]) -> Vec<Vec<String>> {
    let names: Vec<&str> = valid(interfaces);
    let sysctl = ["-e"].iter().chain(SYSCTLS).chain(&OF_MACHINE).chain(&OF_INTERFACES);
    let mut all = vec![
        script(SYSTEM, "system", &[]),
        script(CPUS, "cpus", &[]),
        script(INTERFACES, "interfaces", &names),
        sysctls(sysctl.map(|word| (*word).into()).collect()),
        ["ip", "-d", "-j", "addr", "show"].map(String::from).into(),
        script(QUEUEING, "tc", &names),
        script(NEIGHBOURS, "neighbours", &[]),
        script(NFT, "nft", &[]),
        script(IPTABLES, "iptables", &[]),
        script(SESSION, "session", &[]),
        script(LINUX_BOOT, "boot", &[]),
    ];
    all.extend(names.iter().map(|name| script(ETHTOOL, "ethtool", &[name])));
    all
}

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

/// Settings of the next boot that bear on the network. Other lines may hold secrets, and are not asked for.
const BOOT: &str = r#"for f in /boot/loader.conf /boot/loader.conf.local /etc/sysctl.conf /etc/sysctl.conf.local; do
[ -r $f ] && echo "==> $f <==" &&
grep -E '^[[:space:]]*((hw|net|machdep|dev|ddb|compat|vm\.pmap|vm\.swapencrypt|kern\.(hz|ipc|random|sched|eventtimer|timecounter|bufcachepercent|maxclusters))\.?|kern\.hz|[a-z0-9_]*_load=)' $f | grep -viE 'pass|secret|psk|key|token'
done
for f in /etc/rc.conf /etc/rc.conf.local; do
[ -r $f ] && echo "==> $f <==" &&
grep -E '^(gateway_enable|ipv6_gateway_enable|harvest_mask|powerd_enable|powerd_flags|pf_enable|ipfilter_enable|firewall_enable|firewall_type|firewall_script|firewall_logging|cloned_interfaces|cpu_microcode_enable|performance_cx_lowest|performance_cpu_freq|jail_enable|disablelrotso_enable|vlans_[a-z0-9]*|ifconfig_[a-z]*[0-9]+)=' $f | grep -viE 'pass|secret|psk|key|token'
done
[ -r /etc/pf.conf ] && echo '==> /etc/pf.conf <==' && grep -E '^[[:space:]]*set[[:space:]]+(limit|optimization|skip)' /etc/pf.conf
:"#;

/// The parts of the boot messages that describe CPUs, and where cards are.
const MESSAGES: &str = r#"f=/var/run/dmesg.boot
[ -r $f ] || exit 1
grep -E '^(CPU: |FreeBSD/SMP: |real memory)|numa-domain|RSS table size' $f; :"#;

/// FreeBSD's settings that bear on forwarding; a name stands for all that begin with it.
const FREEBSD: &str = "-i hw.model hw.ncpu hw.physmem hw.clockrate hw.ibrs_disable hw.ibrs_active hw.mds_disable \
    hw.mds_disable_state hw.spec_store_bypass_disable hw.spec_store_bypass_disable_active hw.intrbalance hw.pci.honor_msi_blacklist \
    hw.em hw.igb hw.ix hw.ixl hw.ice hw.cxgbe hw.mlx5 hw.vtnet hw.intr_storm_threshold kern.ident kern.osrelease kern.hz kern.vm_guest kern.smp \
    kern.sched.name kern.sched.topology_spec kern.timecounter.hardware kern.eventtimer.timer kern.eventtimer.periodic \
    kern.eventtimer.idletick kern.random.harvest kern.ipc.nmbclusters kern.ipc.nmbjumbop kern.ipc.nmbufs kern.ipc.maxsockbuf kern.ipc.soacceptqueue \
    machdep.hyperthreading_allowed machdep.hyperthreading_intr_allowed machdep.mitigations machdep.syscall_ret_flush_l1d \
    machdep.idle vm.pmap.pti dev.cpu.0.freq dev.cpu.0.freq_levels dev.cpu.0.cx_lowest net.isr net.inet.ip net.inet.icmp \
    net.inet.tcp net.inet.udp net.inet6.ip6 net.link.bridge net.link.ifqmaxlen net.link.ether.inet net.link.lagg net.pf net.inet.ipf net.route \
    net.fibs net.bpf.optimize_writers net.bpf.bufsize net.add_addr_allfibs";

/// Settings of OpenBSD and NetBSD that bear on forwarding.
const OPENBSD: &str = "hw.model hw.ncpu hw.ncpuonline hw.physmem hw.vendor hw.smt hw.cpuspeed hw.setperf hw.perfpolicy \
    kern.osrelease kern.clockrate kern.timecounter kern.netlivelocks kern.pool_debug machdep.lidaction net.inet.ip net.inet6.ip6 \
    net.inet.icmp net.inet.tcp net.inet.udp net.inet.carp net.inet.ipcomp net.bpf.bufsize net.pipex kern.bufcachepercent \
    kern.maxclusters ddb.panic machdep.allowaperture machdep.kbdreset vm.swapencrypt";

fn freebsd(interfaces: &[String]) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_ascii_whitespace().map(String::from).collect::<Vec<_>>();
    let names = valid(interfaces);
    let devices = names.iter().filter_map(|name| device(name));
    let mut all = vec![script(SYSTEM, "system", &[]), sysctls(words(FREEBSD))];
    all.extend(devices.map(|device| sysctls(vec!["-i".into(), device])));
    let plain = [
        "ifconfig -a",
        "pciconf -lvc",
        "vmstat -i",
        "kldstat",
        "pfctl -s info",
        "pfctl -s memory",
        "pfctl -s rules",
        "ipfw list",
        "ipfstat -io",
    ];
    all.extend(plain.map(words));
    all.extend([
        // After vmstat, which names the interrupts.
        script(CPUSETS, "cpusets", &[]),
        script(IPF_STATES, "ipfstat", &["-s"]),
        script(ROUTES, "routes", &[]),
        script(BSD_NEIGHBOURS, "neighbours", &[]),
        script(BOOT, "boot", &[]),
        script(MESSAGES, "dmesg", &[]),
    ]);
    all
}

fn openbsd() -> Vec<Vec<String>> {
    let words = |line: &str| line.split_ascii_whitespace().map(String::from).collect::<Vec<_>>();
    // hwfeatures leaves IPv6 addresses out.
    let plain = [
        "ifconfig -a hwfeatures",
        "ifconfig -a",
        "vmstat -i",
        "pfctl -s info",
        "pfctl -s memory",
        "pfctl -s rules",
    ];
    let scripts =
        [script(ROUTES, "routes", &[]), script(BSD_NEIGHBOURS, "neighbours", &[]), script(BOOT, "boot", &[])];
    [script(SYSTEM, "system", &[]), sysctls(words(OPENBSD))]
        .into_iter()
        .chain(plain.map(words))
        .chain(scripts)
        .collect()
}

/// The command that lists a host's interfaces: [`interfaces`](super::interfaces) reads its answer.
pub fn listing(kernel: Kernel) -> Vec<String> {
    let line = if kernel == Kernel::Linux { "ip -d -j link show" } else { "ifconfig -a" };
    line.split(' ').map(String::from).collect()
}

/// Variables of rc.conf that are asked for: `*` stands for any rest.
const RC: &[&str] = &[
    "gateway_enable",
    "ipv6_gateway_enable",
    "harvest_mask",
    "powerd_*",
    "pf_enable",
    "ipfilter_enable",
    "firewall_enable",
    "firewall_type",
    "firewall_script",
    "firewall_logging",
    "cloned_interfaces",
    "cpu_microcode_enable",
    "performance_*",
    "jail_enable",
    "disablelrotso_enable",
    "vlans_*",
    "ifconfig_*",
];

/// Whether a line of a file for the next boot is one that is asked for.
pub(super) fn asked_at_boot(file: &str, line: &str) -> bool {
    let name = line.trim().trim_start_matches('-').split(['=', ' ']).next().unwrap_or_default();
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    match file {
        _ if file.starts_with("/etc/rc.conf") => {
            RC.iter().any(|pattern| fits(pattern)) && !name.starts_with("ifconfig_wlan")
        }
        "/etc/pf.conf" => name == "set",
        "/proc/cmdline" => CMDLINE.iter().any(|pattern| fits(pattern)),
        _ if file.contains("modprobe") => line.trim().starts_with("options nf_conntrack"),
        _ => {
            let root = name.split(['.', '/']).next().unwrap_or_default();
            name.ends_with("_load")
                || ["hw", "net", "machdep", "dev", "ddb", "compat", "kern", "kernel", "vm", "fs"]
                    .contains(&root)
        }
    }
}

/// Words of Linux' command line that are asked for.
const CMDLINE: &[&str] = &[
    "mitigations*",
    "nosmt*",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "intel_idle.*",
    "processor.*",
    "idle",
    "maxcpus",
    "nopti",
    "pti",
    "iommu*",
    "intel_iommu",
    "amd_iommu",
    "intel_pstate",
];

/// Whether a setting of a BSD system is one that is asked for.
pub(super) fn asked(name: &str) -> bool {
    let all = FREEBSD.split_ascii_whitespace().chain(OPENBSD.split_ascii_whitespace());
    let whole = |rest: &str| rest.is_empty() || rest.starts_with('.');
    all.filter(|prefix| prefix.contains('.')).any(|prefix| name.strip_prefix(prefix).is_some_and(whole))
}

/// Whether a setting of Linux is one that is asked for.
pub(super) fn asked_of_linux(name: &str) -> bool {
    let of_interface = |pattern: &&str| {
        let (before, after) = pattern.split_once('*').unwrap_or_default();
        name.strip_prefix(&before.replace('/', "."))
            .is_some_and(|rest| rest.ends_with(&after.replace('/', ".")))
    };
    SYSCTLS.contains(&name) || OF_MACHINE.contains(&name) || OF_INTERFACES.iter().any(of_interface)
}

/// Settings. sysctl(8) fails if one of them is not there, or is for root alone; the others are answers all the same. The shell
/// expands patterns.
fn sysctls(arguments: Vec<String>) -> Vec<String> {
    const ALL: &str = "command -v sysctl >/dev/null || exit 127\ncd /proc/sys 2>/dev/null\nsysctl $@; :";
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    script(ALL, "sysctl", &names)
}

/// Names that neither a shell nor a program takes for anything else.
pub(crate) fn valid(interfaces: &[String]) -> Vec<&str> {
    let plain = |name: &&str| is_name(name) && !name.starts_with(['-', '.']);
    interfaces.iter().map(String::as_str).filter(plain).collect()
}

pub(crate) fn script(text: &str, name: &str, args: &[&str]) -> Vec<String> {
    ["sh", "-c", text, name].iter().chain(args).map(|word| (*word).to_string()).collect()
}
