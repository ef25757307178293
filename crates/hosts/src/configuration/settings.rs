//! Settings by the kernel's names: those that are asked for.

use super::questions::script;
use super::saved::glob;
use crate::systems::{BSD, Kernel, LINUX};

/// Settings that bear on forwarding, without those of [`OF_MACHINE`].
const SYSCTLS: &str = "net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.ip_early_demux net.ipv4.tcp_early_demux \
    net.ipv4.udp_early_demux net.ipv4.ip_default_ttl net.ipv4.icmp_ratelimit net.ipv4.fib_multipath_hash_policy \
    net.ipv6.fib_multipath_hash_policy net.ipv6.route.gc_thresh net.ipv6.route.max_size net.netfilter.nf_conntrack_max \
    net.netfilter.nf_conntrack_buckets net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_acct \
    net.netfilter.nf_conntrack_timestamp net.netfilter.nf_conntrack_events net.netfilter.nf_conntrack_checksum \
    net.netfilter.nf_conntrack_tcp_loose net.netfilter.nf_conntrack_tcp_be_liberal net.netfilter.nf_conntrack_udp_timeout \
    net.netfilter.nf_conntrack_udp_timeout_stream net.netfilter.nf_conntrack_tcp_timeout_established \
    net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables net.bridge.bridge-nf-call-arptables \
    kernel.numa_balancing kernel.nmi_watchdog kernel.timer_migration kernel.bpf_stats_enabled kernel.randomize_va_space \
    kernel.printk net.ipv4.conf.all.accept_source_route net.ipv4.conf.all.secure_redirects \
    net.ipv6.conf.all.accept_source_route net.ipv4.ip_local_port_range net.ipv4.ip_no_pmtu_disc net.ipv4.tcp_adv_win_scale \
    net.ipv4.tcp_available_congestion_control net.ipv4.tcp_base_mss net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn \
    net.ipv4.tcp_no_metrics_save net.ipv4.tcp_rmem net.ipv4.tcp_sack net.ipv4.tcp_slow_start_after_idle \
    net.ipv4.tcp_syncookies net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.tcp_mtu_probing \
    net.ipv4.tcp_moderate_rcvbuf net.ipv4.tcp_window_scaling";

/// Settings that bear on forwarding and that a network namespace does not show: the machine has them once.
pub const OF_MACHINE: &str = "net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 \
    net.ipv6.neigh.default.gc_thresh1 net.ipv6.neigh.default.gc_thresh2 net.ipv6.neigh.default.gc_thresh3 \
    net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.dev_weight \
    net.core.dev_weight_rx_bias net.core.dev_weight_tx_bias net.core.netdev_tstamp_prequeue net.core.rps_sock_flow_entries \
    net.core.flow_limit_cpu_bitmap net.core.gro_normal_batch net.core.default_qdisc net.core.rmem_max net.core.wmem_max \
    net.core.busy_poll net.core.busy_read net.core.bpf_jit_enable net.core.bpf_jit_harden";

/// Settings of each interface: the kernel combines them with those of `all` in ways of their own. With slashes, the dot of a name
/// is one.
const OF_INTERFACES: &str = "net/ipv4/conf/*/rp_filter net/ipv4/conf/*/log_martians net/ipv4/conf/*/send_redirects net/ipv4/conf/*/accept_redirects \
    net/ipv4/conf/*/forwarding net/ipv6/conf/*/accept_redirects";

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

/// The arguments of sysctl(8) for them. Those of a BSD system stand for all that begin with them.
pub(super) fn of(kernel: Kernel) -> Vec<&'static str> {
    let lists: &[&str] = match kernel {
        Kernel::Linux => &["-e", SYSCTLS, OF_MACHINE, OF_INTERFACES],
        Kernel::FreeBsd => &[FREEBSD],
        Kernel::OpenBsd | Kernel::NetBsd => &[OPENBSD],
    };
    lists
        .iter()
        .flat_map(|list| list.split_ascii_whitespace())
        .collect()
}

/// Whether a setting is one that is asked for. A BSD system may have settings of each other.
pub(super) fn is_asked(kernel: Kernel, name: &str) -> bool {
    let has = |asked: &str| match asked.split_once('*') {
        Some(_) => glob(&asked.replace('/', "."), name),
        None if kernel == Kernel::Linux => asked == name,
        None => {
            asked.contains('.')
                && name
                    .strip_prefix(asked)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    };
    let kernels = if kernel == Kernel::Linux { LINUX } else { BSD };
    kernels.iter().flat_map(|kernel| of(*kernel)).any(has)
}

/// The command for them. sysctl(8) fails if one of them is not there, or is for root alone; the others are answers all the same. The
/// shell expands patterns.
pub(super) fn command(names: &[&str]) -> Vec<String> {
    const ALL: &str =
        "command -v sysctl >/dev/null || exit 127\ncd /proc/sys 2>/dev/null\nsysctl $@; :";
    script(ALL, "sysctl", names)
}
