//! TCP of an end host: buffers by the bandwidth-delay product. None of this matters for packets that are only forwarded.

use super::sources::GUIDE;
use crate::host::Host;
use crate::item::Role;
use crate::item::Topic::EndHost;
use crate::rule::Kind::{Measure, Undo};
use crate::rule::{RULE, Rule, Study};
use crate::setting::{Scope, Worked, gone, is, least, least_by, worked};
use linerate_calc::tcp::bdp_bytes;
use linerate_hosts::systems::Kernel::{FreeBsd, Linux};

const END: Rule = Rule {
    topic: EndHost,
    on: Linux,
    roles: &[Role::EndHost],
    ..RULE
};

/// All speed tweaks of the guide together, on OpenBSD 5.1: 803 instead of 368 Mbit/s.
pub const TWEAKS: &[Study] = &[(
    GUIDE,
    &[
        (
            118.2,
            "Core 2 Quad Q9300, em, OpenBSD 5.1 (MP), one TCP connection: all tweaks together, 803 instead of 368 Mbit/s",
        ),
        (
            143.8,
            "Core 2 Quad Q9300, em, OpenBSD 5.1 (SP), one TCP connection: all tweaks together, 868 instead of 356 Mbit/s",
        ),
    ],
)];

/// The plan that measures them.
const PLAN: &str = "tcp-endhost";

/// All tweaks, and buffers alone between hosts of Linux.
const ON_LINUX: &[Study] = &[
    TWEAKS[0],
    (
        "docs/tuning.md",
        &[(
            232.0,
            "AMD EPYC under KVM, Linux 6.18, one TCP connection over 1 Gbit/s and 100 ms: 32 MiB instead of the kernel's buffers, 941 instead of 283 Mbit/s",
        )],
    ),
];

const BUFFERS: &str = "A connection has at most one window in flight for each round trip: a window below bandwidth x delay leaves the link idle.";
const MEMORY: &str = "Each connection that needs it may take that much memory.";

pub const RULES: &[Rule] = &[
    Rule {
        id: "linux-tcp-buffers",
        title: "Let TCP windows grow to the bandwidth-delay product",
        sets: &[
            least_by("net.core.rmem_max", memory),
            least_by("net.core.wmem_max", memory),
            least_by("net.ipv4.tcp_rmem", three),
            least_by("net.ipv4.tcp_wmem", three),
        ],
        why: BUFFERS,
        measured: ON_LINUX,
        computed: idle,
        cost: MEMORY,
        plan: PLAN,
        ..END
    },
    Rule {
        id: "linux-tcp-idle",
        kind: Measure,
        title: "Keep the congestion window over pauses, and save no metrics of closed connections",
        sets: &[
            is("net.ipv4.tcp_slow_start_after_idle", "0"),
            is("net.ipv4.tcp_no_metrics_save", "1"),
        ],
        why: "After a pause, a connection need not begin with slow start. Losses of one connection do not slow the next ones to the same host.",
        prior: 0.05,
        plan: PLAN,
        cost: "A burst after a pause may meet a full queue.",
        ..END
    },
    Rule {
        id: "linux-tcp-htcp",
        kind: Measure,
        title: "Try another congestion control: htcp",
        sets: &[is("net.ipv4.tcp_congestion_control", "htcp")],
        when: |host| {
            // Whoever has chosen bbr has measured.
            if host.value("net.ipv4.tcp_congestion_control") == Some("bbr") {
                return None;
            }
            let there = host
                .value("net.ipv4.tcp_available_congestion_control")
                .map(|all| all.split(' ').any(|name| name == "htcp"));
            match there {
                Some(true) => Some("htcp is loaded".into()),
                Some(false) => Some(
                    "htcp is not loaded: the change loads tcp_htcp, if this kernel has it".into(),
                ),
                None => Some(String::new()),
            }
        },
        why: "H-TCP grows faster on long fast paths. calomel.org's guide is of the time before cubic was refined and bbr (Linux 4.9) came: compare with both.",
        prior: 0.02,
        plan: PLAN,
        cost: "Fairness to other connections differs.",
        ..END
    },
    Rule {
        id: "linux-tcp-options",
        title: "Keep window scaling, selective acknowledgements and time stamps on",
        sets: &[
            is("net.ipv4.tcp_window_scaling", "1"),
            is("net.ipv4.tcp_sack", "1"),
            is("net.ipv4.tcp_timestamps", "1"),
            least("net.ipv4.tcp_ecn", "1"),
        ],
        why: "Without scaling a window has 64 KiB at most; without SACK a loss costs a whole window. ECN 2 answers those who ask for it.",
        prior: 0.2,
        plan: PLAN,
        ..END
    },
    Rule {
        id: "linux-tcp-ports",
        kind: Measure,
        title: "Have more local ports for outgoing connections",
        sets: &[
            is("net.ipv4.ip_local_port_range", "1024 65535"),
            least("net.ipv4.tcp_tw_reuse", "1"),
        ],
        why: "A host that opens many connections a second runs out of ports: they wait a minute before they are used again. The first and the last port must have different parity: with 1024, connect() looks at even ports first, bind() at odd ones, so that each has half of the range (ip-sysctl.rst of Linux). calomel.org's guide has 1024 65000.",
        prior: 0.0,
        cost: "A service that starts late may find its port in use: name it in net.ipv4.ip_local_reserved_ports.",
        notes: &[(
            (4, 19),
            "From Linux 4.19 on, tcp_tw_reuse is 2 by default: it reuses the ports of loopback connections only.",
        )],
        ..END
    },
    Rule {
        id: "linux-tcp-syncookies",
        title: "Keep SYN cookies on",
        sets: &[least("net.ipv4.tcp_syncookies", "1")],
        when: |host| {
            host.value("net.ipv4.tcp_syncookies")
                .filter(|value| *value == "0")
                .map(|_| "they are off, as in calomel.org's guide".into())
        },
        why: "Cookies are sent only while the queue of half-open connections is full: turning them off gains nothing, and a SYN flood stops the service.",
        prior: 0.0,
        ..END
    },
    Rule {
        id: "linux-path-mtu",
        title: "Keep path MTU discovery on",
        sets: &[
            is("net.ipv4.ip_no_pmtu_disc", "0"),
            is("net.ipv4.tcp_mtu_probing", "1"),
        ],
        covers: &["net.ipv4.tcp_base_mss"],
        when: |host| {
            host.value("net.ipv4.ip_no_pmtu_disc")
                .filter(|value| *value != "0")
                .map(|_| "it is off, as in calomel.org's guide".into())
        },
        why: "Without it packets that are too long are cut up on the way. Where ICMP is lost, probing (net.ipv4.tcp_mtu_probing=1, from tcp_base_mss on) finds the MTU.",
        prior: 0.1,
        ..END
    },
    Rule {
        id: "linux-adv-win-scale",
        until: Some((6, 5)),
        outside: "Later kernels measure the overhead of packets themselves.",
        kind: Undo,
        title: "Do not set tcp_adv_win_scale: the kernel sizes the window",
        sets: &[gone("net.ipv4.tcp_adv_win_scale")],
        why: "14 announces nearly the whole buffer as window: packets that need more memory than data are dropped.",
        prior: 0.0,
        ..END
    },
    Rule {
        id: "freebsd-tcp-buffers",
        on: FreeBsd,
        since: Some((7, 0)),
        outside: "net.inet.tcp.recvspace and net.inet.tcp.sendspace have the fixed size.",
        title: "Let TCP windows grow to the bandwidth-delay product",
        sets: &[
            least_by("kern.ipc.maxsockbuf", twice),
            least_by("net.inet.tcp.sendbuf_max", window),
            least_by("net.inet.tcp.recvbuf_max", window),
        ],
        why: BUFFERS,
        measured: TWEAKS,
        computed: idle,
        cost: MEMORY,
        ..END
    },
];

/// The bandwidth-delay product in bytes, with its computation.
fn product(host: &Host) -> (f64, String) {
    let known = host.demands.rate.or(host.fastest()).is_some();
    let assumed = if known {
        ""
    } else {
        " (assumed: no link speed is known)"
    };
    let (rate, rtt) = path(host);
    let bytes = bdp_bytes(rate, rtt);
    (
        bytes,
        format!(
            "{} Gbit/s{assumed} x {} ms / 8 = {bytes:.0} bytes",
            rate / 1e9,
            rtt / 1e6
        ),
    )
}

/// The smallest present limit of a window.
fn narrowest(host: &Host) -> Option<(&'static str, f64)> {
    const LIMITS: [&str; 4] = [
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.inet.tcp.recvbuf_max",
        "net.inet.tcp.sendbuf_max",
    ];
    let last = |name: &'static str| {
        Some((
            name,
            host.value(name)?
                .split_ascii_whitespace()
                .next_back()?
                .parse::<f64>()
                .ok()?,
        ))
    };
    let limits = LIMITS
        .into_iter()
        .filter_map(last)
        .filter(|(_, bytes)| *bytes > 0.0);
    limits.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// By how much more a connection carries with a window that is large enough: the product against the smallest present limit.
fn idle(host: &Host) -> Option<f64> {
    Some((product(host).0 / narrowest(host)?.1 - 1.0).clamp(0.0, 100.0))
}

/// The derivation of [`idle`].
fn gain(host: &Host) -> String {
    match (product(host), narrowest(host)) {
        ((bytes, _), Some((name, limit))) if bytes > limit => format!(
            "; gain: {name} lets at most {limit} bytes pass in each round trip, {:.0} Mbit/s, and {bytes:.0} / {limit} - 1 = {:+.0} %",
            8e3 * limit / host.demands.rtt_ns,
            100.0 * (bytes / limit - 1.0)
        ),
        (_, Some((name, limit))) => format!("; gain: none, {name} has {limit} bytes"),
        (_, None) => String::new(),
    }
}

/// A power of two that holds `times` the product: at least the guide's 16 MiB, at most 1 GiB.
fn size(host: &Host, times: f64, because: &str) -> (u64, String) {
    const GUIDES: u64 = 16 << 20;
    let (bytes, how) = product(host);
    let size = ((times * bytes).min(1e12) as u64)
        .next_power_of_two()
        .clamp(GUIDES, 1 << 30);
    let how = format!(
        "{how}{because}; rounded up to a power of two, at least the 16777216 of calomel.org's guide: {size}{}",
        gain(host)
    );
    (size, how)
}

fn window(scope: &Scope) -> Option<Worked> {
    let (size, how) = size(scope.host, 1.0, "");
    worked(size, how)
}

/// A buffer of Linux, which holds the overhead of packets as well.
fn of_linux(host: &Host) -> (u64, String) {
    size(
        host,
        2.0,
        "; twice that, because packet overhead fills part of a buffer (docs/tuning.md: with 16 MiB, 11 MB of data were in flight)",
    )
}

fn memory(scope: &Scope) -> Option<Worked> {
    let (size, how) = of_linux(scope.host);
    worked(size, how)
}

/// Kernel memory of a buffer: as much again for the overhead of its packets.
fn twice(scope: &Scope) -> Option<Worked> {
    let (size, how) = size(scope.host, 1.0, "");
    worked(
        2 * size,
        format!(
            "{how}; twice that for the overhead of packets: {}",
            2 * size
        ),
    )
}

/// The least, the first and the largest size of a buffer.
fn three(scope: &Scope) -> Option<Worked> {
    let (size, how) = of_linux(scope.host);
    worked(format!("4096 524288 {size}"), how)
}

/// Bit/s and round-trip time in ns of the connections of an end host.
pub fn path(host: &Host) -> (f64, f64) {
    (
        host.demands.rate.or(host.fastest()).unwrap_or(1e9),
        host.demands.rtt_ns,
    )
}
