//! The catalogue of the settings that a kernel knows by name: sysctls, and what the loader sets. It says which part of a machine has each,
//! in which file it lasts, and what changes with it. A new one is a name in a list; it needs a row of [`ELSEWHERE`] if its file is not that
//! of sysctl(8), and one of `WITH_OTHERS` if the kernel changes others with it. Cards' settings are in [`crate::card`] and
//! [`crate::offload`].

use linerate_measure::experiment::System;
use std::borrow::Cow;

/// Linux' settings that bear on forwarding, or on the ends of connections, and that each network namespace has.
const OF_NAMESPACES: &str = "net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.ip_early_demux net.ipv4.tcp_early_demux \
    net.ipv4.udp_early_demux net.ipv4.ip_default_ttl net.ipv4.icmp_ratelimit net.ipv4.fib_multipath_hash_policy \
    net.ipv6.fib_multipath_hash_policy net.ipv6.route.gc_thresh net.ipv6.route.max_size \
    net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_acct \
    net.netfilter.nf_conntrack_timestamp net.netfilter.nf_conntrack_events net.netfilter.nf_conntrack_checksum \
    net.netfilter.nf_conntrack_tcp_loose net.netfilter.nf_conntrack_tcp_be_liberal net.netfilter.nf_conntrack_udp_timeout \
    net.netfilter.nf_conntrack_udp_timeout_stream net.netfilter.nf_conntrack_tcp_timeout_established \
    net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables net.bridge.bridge-nf-call-arptables \
    net.ipv4.conf.all.accept_source_route net.ipv4.conf.all.secure_redirects \
    net.ipv6.conf.all.accept_source_route net.ipv4.ip_local_port_range net.ipv4.ip_no_pmtu_disc net.ipv4.tcp_adv_win_scale \
    net.ipv4.tcp_available_congestion_control net.ipv4.tcp_base_mss net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn \
    net.ipv4.tcp_no_metrics_save net.ipv4.tcp_rmem net.ipv4.tcp_sack net.ipv4.tcp_slow_start_after_idle \
    net.ipv4.tcp_syncookies net.ipv4.tcp_timestamps net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.ipv4.tcp_mtu_probing \
    net.ipv4.tcp_moderate_rcvbuf net.ipv4.tcp_window_scaling net.ipv4.fib_multipath_use_neigh net.ipv4.ip_forward_use_pmtu \
    net.ipv4.ip_forward_update_priority net.netfilter.nf_conntrack_log_invalid";

/// Settings of each interface, `default` and `all`: the kernel combines them in ways of its own. With slashes, the dot of a name is one.
const OF_INTERFACES: &str = "net/ipv4/conf/*/rp_filter net/ipv4/conf/*/log_martians net/ipv4/conf/*/send_redirects net/ipv4/conf/*/accept_redirects \
    net/ipv4/conf/*/forwarding net/ipv4/conf/*/src_valid_mark net/ipv6/conf/*/accept_redirects";

/// Settings that the machine has once, and whose value a network namespace shows.
const OF_MACHINE: &str = "net.netfilter.nf_conntrack_max net.netfilter.nf_conntrack_buckets kernel.numa_balancing kernel.nmi_watchdog \
    kernel.timer_migration kernel.bpf_stats_enabled kernel.randomize_va_space kernel.printk";

/// Settings that the machine has once, and that a network namespace does not show.
pub const HIDDEN: &str = "net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 \
    net.ipv6.neigh.default.gc_thresh1 net.ipv6.neigh.default.gc_thresh2 net.ipv6.neigh.default.gc_thresh3 \
    net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.dev_weight \
    net.core.dev_weight_rx_bias net.core.dev_weight_tx_bias net.core.netdev_tstamp_prequeue net.core.rps_sock_flow_entries \
    net.core.flow_limit_cpu_bitmap net.core.gro_normal_batch net.core.default_qdisc net.core.rmem_max net.core.wmem_max \
    net.core.busy_poll net.core.busy_read net.core.bpf_jit_enable net.core.bpf_jit_harden";

/// Other settings of the machine; a name stands for all that begin with it.
const OTHERS_OF_MACHINE: [&str; 3] = [
    "net.netfilter.nf_conntrack_expect_max",
    "net.nf_conntrack_max",
    "net.bpf",
];

/// FreeBSD's settings that bear on forwarding; a name stands for all that begin with it.
const FREEBSD: &str = "hw.model hw.ncpu hw.physmem hw.clockrate hw.ibrs_disable hw.ibrs_active hw.mds_disable \
    hw.mds_disable_state hw.spec_store_bypass_disable hw.spec_store_bypass_disable_active hw.intrbalance hw.pci.honor_msi_blacklist \
    hw.em hw.igb hw.ix hw.ixl hw.ice hw.cxgbe hw.mlx5 hw.vtnet hw.intr_storm_threshold kern.ident kern.osrelease kern.hz kern.vm_guest kern.smp \
    kern.sched.name kern.sched.topology_spec kern.timecounter.hardware kern.eventtimer.timer kern.eventtimer.periodic \
    kern.eventtimer.idletick kern.random.harvest kern.ipc.nmbclusters kern.ipc.nmbjumbop kern.ipc.nmbufs kern.ipc.maxsockbuf kern.ipc.soacceptqueue \
    machdep.hyperthreading_allowed machdep.hyperthreading_intr_allowed machdep.mitigations machdep.syscall_ret_flush_l1d \
    machdep.idle vm.pmap.pti dev.cpu.0.freq dev.cpu.0.freq_levels dev.cpu.0.cx_lowest net.isr net.inet.ip net.inet.icmp \
    net.inet.tcp net.inet.udp net.inet6.ip6 net.link.bridge net.link.ifqmaxlen net.link.ether.inet net.link.lagg net.pf net.inet.ipf net.route \
    net.fibs net.bpf.optimize_writers net.bpf.bufsize net.add_addr_allfibs";

/// Settings of OpenBSD and NetBSD that bear on forwarding, in the same way.
const OPENBSD: &str = "hw.model hw.ncpu hw.ncpuonline hw.physmem hw.vendor hw.smt hw.cpuspeed hw.setperf hw.perfpolicy \
    kern.osrelease kern.clockrate kern.timecounter kern.netlivelocks kern.pool_debug machdep.lidaction net.inet.ip net.inet6.ip6 \
    net.inet.icmp net.inet.tcp net.inet.udp net.inet.carp net.inet.ipcomp net.bpf.bufsize net.pipex kern.bufcachepercent \
    kern.maxclusters ddb.panic machdep.allowaperture machdep.kbdreset vm.swapencrypt";

/// Where a setting is written down for the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// sysctl.conf(5).
    Sysctl,
    /// This variable of rc.conf(5).
    Rc(&'static str),
    /// This variable of rc.conf(5), which is YES for 1.
    RcYes(&'static str),
    /// loader.conf(5): the running system does not change it.
    Loader,
}

/// FreeBSD's settings that sysctl.conf(5) does not set; a name stands for all that begin with it. `{dev}` is a card's node.
pub const ELSEWHERE: [(&str, Lasts); 10] = [
    (FORWARDING[2], Lasts::RcYes("gateway_enable")),
    (FORWARDING[3], Lasts::RcYes("ipv6_gateway_enable")),
    ("kern.random.harvest.mask", Lasts::Rc("harvest_mask")),
    ("hw.cxgbe.", Lasts::Loader),
    ("hw.em.", Lasts::Loader),
    ("hw.igb.", Lasts::Loader),
    ("hw.ix.", Lasts::Loader),
    ("dev.{dev}.iflib.override_", Lasts::Loader),
    ("machdep.hyperthreading_allowed", Lasts::Loader),
    ("net.pf.states_hashsize", Lasts::Loader),
];

/// The settings that make a host forward IPv4 and IPv6: those of Linux, then those of the BSDs.
pub const FORWARDING: [&str; 4] = [
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.inet.ip.forwarding",
    "net.inet6.ip6.forwarding",
];

/// Files that Linux changes with a setting, beside its own: those of each interface (`inet_forward_change` in net/ipv4/devinet.c,
/// `addrconf_forward_change` in net/ipv6/addrconf.c). In the order in which they are restored.
const WITH_OTHERS: [(&[&str], &str); 2] = [
    (
        &[FORWARDING[0], "net.ipv4.conf.all.forwarding"],
        "/proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/accept_redirects",
    ),
    (
        &[FORWARDING[1]],
        "/proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv6/conf/*/forwarding",
    ),
];

/// The settings of a system that are asked for. Those of a BSD system stand for all that begin with them.
pub fn asked(system: System) -> impl Iterator<Item = &'static str> {
    let lists: &[&str] = match system {
        System::Linux | System::Vyos => &[OF_NAMESPACES, OF_MACHINE, HIDDEN, OF_INTERFACES],
        System::OpenBsd => &[OPENBSD],
        System::FreeBsd | System::PfSense | System::OpnSense => &[FREEBSD],
    };
    lists.iter().flat_map(|list| list.split_ascii_whitespace())
}

/// Whether a setting is one that is asked for.
pub fn is_asked(system: System, name: &str) -> bool {
    let is_linux = matches!(system, System::Linux | System::Vyos);
    asked(system).any(|asked| match asked.replace('/', ".").split_once('*') {
        Some((before, after)) => name.starts_with(before) && name.ends_with(after),
        None if is_linux => asked == name,
        None => name
            .strip_prefix(asked)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
    })
}

/// A setting's name in the spelling with dots. sysctl(8) also has one with slashes, in which a dot is part of a name: the first separator
/// decides.
pub fn dotted(name: &str) -> Cow<'_, str> {
    let has_slashes = name
        .find(['.', '/'])
        .is_some_and(|at| name.as_bytes()[at] == b'/');
    if has_slashes {
        swapped(name).into()
    } else {
        name.into()
    }
}

/// A name in the other spelling: with dots for slashes, and slashes for dots.
pub fn swapped(name: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

/// A value of a setting as all spellings of it have it: words with a blank between them.
pub fn plain(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a setting of Linux belongs to a network namespace. Of the others, a namespace shows the value, or nothing
/// (net/core/sysctl_net_core.c, net/core/neighbour.c and net/netfilter/nf_conntrack_standalone.c of Linux 6).
pub fn is_namespaced(name: &str) -> bool {
    let dotted = name.replace('/', ".");
    let mut of_machine = [OF_MACHINE, HIDDEN]
        .into_iter()
        .flat_map(str::split_ascii_whitespace);
    dotted.starts_with("net.")
        && !of_machine.any(|known| known == dotted)
        && !OTHERS_OF_MACHINE
            .iter()
            .any(|known| dotted.starts_with(known))
}

/// Where a setting of FreeBSD is written down for the next boot.
pub fn lasts(name: &str) -> Lasts {
    let known = ELSEWHERE
        .iter()
        .find(|(begins, _)| name.starts_with(begins));
    known.map_or(Lasts::Sysctl, |(_, lasts)| *lasts)
}

/// The settings that make a host forward, IPv4 and IPv6.
pub fn forwarding(system: System) -> [&'static str; 2] {
    let [four, six, bsd4, bsd6] = FORWARDING;
    match system {
        System::Linux | System::Vyos => [four, six],
        _ => [bsd4, bsd6],
    }
}

/// The files of Linux, as a pattern of the shell, that change with a setting, and are restored with it.
pub fn with_others(name: &str) -> Option<String> {
    let known = WITH_OTHERS.iter().find(|(names, _)| names.contains(&name));
    // Interfaces without a value of their own follow (`devinet_copy_dflt_conf`).
    let follow = || {
        let of = name.strip_prefix("net.ipv4.conf.default.")?;
        Some(format!("/proc/sys/net/ipv4/conf/*/{of}"))
    };
    known.map(|(_, pattern)| (*pattern).into()).or_else(follow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_setting_has_one_place() {
        for system in [System::Linux, System::FreeBsd, System::OpenBsd] {
            let all: Vec<_> = asked(system).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            for name in forwarding(system) {
                assert!(is_asked(system, name), "{name}");
            }
        }
        for (nth, (begins, _)) in ELSEWHERE.iter().enumerate() {
            let is_of_card = begins.starts_with("dev.{dev}.");
            assert!(is_of_card || is_asked(System::FreeBsd, begins), "{begins}");
            let mut before = ELSEWHERE[..nth].iter();
            assert!(!before.any(|(known, _)| begins.starts_with(known)));
        }
    }

    #[test]
    fn both_spellings_are_one_name() {
        for (name, one) in [
            ("net.ipv4.ip_forward", "net.ipv4.ip_forward"),
            ("net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            (
                "net/ipv4/conf/g0.100/rp_filter",
                "net.ipv4.conf.g0/100.rp_filter",
            ),
            (
                "net.ipv4.conf.g0/100.rp_filter",
                "net.ipv4.conf.g0/100.rp_filter",
            ),
            ("dev.ix.0.fc", "dev.ix.0.fc"),
            ("", ""),
        ] {
            assert_eq!(dotted(name), one);
        }
        assert_eq!(plain(" 4096\t87380  1 "), "4096 87380 1");
    }

    #[test]
    fn settings_of_a_namespace_and_of_the_host() {
        for own in [
            "net.ipv4.ip_forward",
            "net/ipv6/conf/all/forwarding",
            "net.ipv4.conf.eth0/100.rp_filter",
            "net.netfilter.nf_conntrack_checksum",
            "net.core.somaxconn",
        ] {
            assert!(is_namespaced(own), "{own}");
        }
        for of_host in [
            "net.netfilter.nf_conntrack_max",
            "net.netfilter.nf_conntrack_expect_max",
            "kernel.numa_balancing",
            "net/core/netdev_budget",
            "net.core.rmem_max",
            "net.ipv4.neigh.default.gc_thresh3",
            "net.bpf_jit",
        ] {
            assert!(!is_namespaced(of_host), "{of_host}");
        }
    }

    #[test]
    fn settings_have_their_files() {
        assert_eq!(
            lasts("net.inet.ip.forwarding"),
            Lasts::RcYes("gateway_enable")
        );
        assert_eq!(lasts("hw.igb.rxd"), Lasts::Loader);
        assert_eq!(lasts("net.inet.ip.redirect"), Lasts::Sysctl);
        let follow = with_others("net.ipv4.conf.default.rp_filter").unwrap();
        assert_eq!(follow, "/proc/sys/net/ipv4/conf/*/rp_filter");
        assert_eq!(with_others("net.ipv4.conf.all.rp_filter"), None);
    }
}
