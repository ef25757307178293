//! Commentary on extras: what a function means, and what an administrator can change about it. A comment explains what the profile shows,
//! and has no threshold of its own.

use super::functions::any;
use crate::case::PROGRAM;
use crate::rules::On::With;
use crate::rules::Try::{InLab, Keys, Not};
use crate::rules::{RULE, Rule};

pub(super) struct Comment {
    /// Names of extras; `bpf_prog_*` for programs.
    pub functions: &'static [&'static str],
    /// Functions below an extra that take frames on as plain forwarding would: their time is no part of it.
    pub onward: &'static [&'static str],
    pub rule: Rule,
}

impl Comment {
    /// The comment on a function.
    pub fn on(function: &str) -> Option<&'static Comment> {
        COMMENTS
            .iter()
            .find(|comment| any(comment.functions, function))
    }
}

/// eBPF programs, by the beginning of the command that shows them: how to take one out, and how to put it back.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "tc filter",
        "tc filter del dev IF ingress (or egress) pref N",
        "tc filter add dev IF ingress bpf da obj FILE sec SECTION",
    ),
    (
        "ip -d route",
        "ip route replace NETWORK via GATEWAY, without encap bpf",
        "ip route replace NETWORK encap bpf out obj FILE section SECTION via GATEWAY",
    ),
    (
        "ip -d link",
        "ip link set IF xdp off",
        "ip link set IF xdp obj FILE sec SECTION",
    ),
];

/// How to take a program out that is shown by this command, and how to put it back.
pub(super) fn ways_of_program(command: &str) -> (&'static str, &'static str) {
    let known = PROGRAMS.iter().find(|(of, ..)| command.starts_with(of));
    known.map_or(
        ("end the program that loaded it", "start the program again"),
        |(_, remove, restore)| (remove, restore),
    )
}

const BACK: &str = "(echo flush ruleset; cat OLD-RULES) | nft -f -, or iptables-restore OLD-RULES";
const ONLY_FIRST: &str = "ct state established,related accept before the rule, so that only first frames come to it; comparisons of addresses and ports before it, in the same rule";
const OF_AUTHOR: &str = "only the author of the rules knows which frames must come to this rule";

/// Where a device hands received frames on.
const RECEIVED: &[&str] = &[
    "__netif_receive_skb*",
    "netif_receive_skb*",
    "ip_rcv*",
    "ip_forward",
];

/// Takes the filters out that copy frames and do nothing else.
const WITHOUT_MIRRORS: &str = "for dev in {in} {out}; do for way in ingress egress; do tc filter show dev $dev $way | awk '/^filter/ { pref = 0; for (i = 1; i < NF; i++) if ($i == \"pref\") pref = $(i + 1) } \
    /Redirect to device| gact action (drop|shot)/ { decides[pref] } /Mirror to device/ { all[pref] } END { for (pref in all) if (!(pref in decides)) print pref }' | \
    while read pref; do tc filter del dev $dev $way pref $pref; done; done; done";

/// Takes the rules out that give connections a helper.
const WITHOUT_HELPERS: &str = "nft -a list ruleset | awk '{ gsub(/\"[^\"]*\"/, \"NAME\") } $1 == \"table\" { table = $2 \" \" $3 } $1 == \"chain\" { chain = $2 } \
    / helper set .*# handle/ { print \"delete rule\", table, chain, \"handle\", $NF }' | nft -f -";

/// Leaves the first next hop of each route.
const ONE_HOP: &str = "ip route show | awk '$1 != \"nexthop\" { net = $1; first = 1; next } first { print \"route replace\", net, $2, $3, $4, $5; first = 0 }' | ip -batch -";

const COMMENTS: &[Comment] = &[
    Comment {
        functions: &["bpf_prog_*"],
        onward: &[],
        rule: Rule {
            cause: "bpf-program",
            says: "{share} of a frame's time goes into {what}, in {place}.",
            mechanism: "The program runs once for each frame that comes to its place. Its instructions, look-ups in maps and helper functions are the frame's time.",
            changes: &[[
                "Linux",
                "{remove}, if nothing needs the program ({command}; bpftool prog show tag {tag}); comparisons that most frames end at first, in the program",
                "{restore}",
            ]],
            otherwise: Not(
                "a program decides what becomes of frames: only its author knows whether the DUT does without it",
            ),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "fib_multipath_hash*",
            "fib_select_multipath*",
            "fib_select_path*",
            "rt6_multipath_hash*",
            "fib6_select_path*",
        ],
        onward: &[],
        rule: Rule {
            cause: "multipath",
            says: "A route with several next hops takes {share} of a frame's time.",
            mechanism: "The kernel computes a hash of each frame's addresses, or of its ports as well, and looks for the next hop with this hash in a list. More next hops make this slower.",
            changes: &[
                [
                    "Linux",
                    "ip route replace NETWORK via GATEWAY, where one next hop is enough",
                    "ip route replace NETWORK nexthop via GATEWAY nexthop via OTHER",
                ],
                [
                    "Linux (a hash of addresses only)",
                    "sysctl net.ipv4.fib_multipath_hash_policy=0",
                    "sysctl net.ipv4.fib_multipath_hash_policy=1",
                ],
            ],
            otherwise: InLab(ONE_HOP),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "nf_queue*",
            "__nf_queue*",
            "nfqnl_*",
            "nft_queue_*",
            "nf_reinject*",
        ],
        onward: &[],
        rule: Rule {
            cause: "user-space-queue",
            says: "Rules hand frames to a program (NFQUEUE): this takes {share} of a frame's time in the kernel alone.",
            mechanism: "Each of these frames waits until a program has read it and sent its verdict back. The program's own time and the switches to it come on top, and a full queue drops frames.",
            changes: &[[
                "Linux (nftables, iptables)",
                "ct state established,related accept before the rule, so that the program sees first frames only; bypass (--queue-bypass) where none listens; queue num 0-3 fanout (--queue-balance 0:3 --queue-cpu-fanout) with one thread for each queue; no rule where no program listens",
                BACK,
            ]],
            gain: "{cost}, and the time of the program",
            otherwise: Not(
                "the program behind the queue decides about frames: only its author knows which it must see",
            ),
            ..RULE
        },
    },
    Comment {
        functions: &["tcf_mirred_*", "ifb_*"],
        onward: RECEIVED,
        rule: Rule {
            cause: "mirroring",
            says: "A filter of tc copies frames to another device, or redirects them to one (mirred): this takes {share} of a frame's time.",
            mechanism: "A copy is a frame of its own: it is allocated, queued, sent and freed. A frame that is redirected to an ifb goes through a queue and a softirq of its own before it is received.",
            changes: &[[
                "Linux",
                "tc filter del dev IF ingress (or egress) pref N; copies of some frames only (a filter for their addresses); a discipline at the interface that frames leave by, instead of an ifb",
                "tc filter add with the former filter",
            ]],
            otherwise: InLab(WITHOUT_MIRRORS),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "sip_help*",
            "help",
            "ftp_help",
            "tftp_help",
            "amanda_help",
            "h245_help",
            "q931_help",
            "ras_help",
            "conntrack_pptp_help",
            "netbios_ns_help",
            "snmp_conntrack_help",
        ],
        onward: &[],
        rule: Rule {
            cause: "connection-helper",
            says: "A helper of connection tracking ({what}) reads the payload of frames: this takes {share} of a frame's time.",
            mechanism: "A helper searches each frame of its connections for addresses and ports of further connections. A rule that gives the helper to all connections makes it read all frames.",
            changes: &[
                [
                    "Linux (nftables)",
                    "ct helper set only in a rule for the protocol's port: udp dport 5060 ct helper set \"sip\"",
                    BACK,
                ],
                [
                    "Linux (iptables)",
                    "iptables -t raw with --dport of the protocol before -j CT --helper; or the rule removed",
                    "iptables-restore OLD-RULES",
                ],
            ],
            otherwise: InLab(WITHOUT_HELPERS),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "nf_ct_deliver_cached_events",
            "nf_conntrack_eventmask_report",
            "__nf_conntrack_eventmask_report",
            "ctnetlink_conntrack_event",
        ],
        onward: &[],
        rule: Rule {
            cause: "connection-events",
            says: "A program follows the connections of the DUT: messages to it take {share} of a frame's time.",
            mechanism: "As long as a program listens (conntrackd, conntrack -E, an exporter of flows), the kernel writes a message for each connection that opens, changes or ends.",
            changes: &[
                [
                    "Linux",
                    "end the program, or let it follow fewer events or connections (conntrack -E -e DESTROY; Filter in conntrackd.conf)",
                    "start the program again",
                ],
                [
                    "Linux (no events at all)",
                    "sysctl net.netfilter.nf_conntrack_events=0",
                    "sysctl net.netfilter.nf_conntrack_events=2",
                ],
            ],
            otherwise: Keys(r#"{"sysctls": {"net.netfilter.nf_conntrack_events": 0}}"#),
            ..RULE
        },
    },
    Comment {
        functions: &["string_mt*", "u32_mt*", "bpf_mt*"],
        onward: &[],
        rule: Rule {
            cause: "payload-match",
            says: "Rules search the bytes of each frame ({what}): this takes {share} of a frame's time.",
            mechanism: "A search reads the frame from end to end, or byte by byte at many places; each further rule reads it again.",
            changes: &[["Linux (iptables, nftables)", ONLY_FIRST, BACK]],
            otherwise: Not(OF_AUTHOR),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "nft_socket_*",
            "socket_mt*",
            "socket_match*",
            "nf_sk_lookup*",
            "nft_tproxy_*",
            "tproxy_tg*",
        ],
        onward: &[],
        rule: Rule {
            cause: "socket-match",
            says: "Rules look for a local socket of each frame ({what}): this takes {share} of a frame's time.",
            mechanism: "A transparent proxy needs to know whether a socket of this machine has a frame's connection. The rule looks into the tables of sockets, for each frame and for each such rule.",
            changes: &[[
                "Linux (nftables, iptables)",
                "tcp dport of the proxied protocol before the expression, in the same rule; one such rule, which sets a mark that other rules compare",
                BACK,
            ]],
            otherwise: Not(OF_AUTHOR),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "nft_jhash_*",
            "nft_symhash_*",
            "nft_ng_*",
            "statistic_mt*",
            "hmark_tg*",
            "xt_cluster_mt*",
        ],
        onward: &[],
        rule: Rule {
            cause: "hash-expression",
            says: "Rules compute a hash or a random number for each frame ({what}): this takes {share} of a frame's time.",
            mechanism: "A hash of addresses spreads frames over servers or marks. Each rule computes the hash anew, although the result is the same for all frames of a connection.",
            changes: &[[
                "Linux (nftables, iptables)",
                "one rule with a map (jhash ip saddr mod 16 map { ... }) instead of one rule for each result; ct mark keeps the result for further frames",
                BACK,
            ]],
            otherwise: Not(OF_AUTHOR),
            ..RULE
        },
    },
    Comment {
        functions: &[
            "vxlan_*",
            "tunnel4_rcv",
            "tunnel64_rcv",
            "geneve_*",
            "gre_*",
            "ipgre_*",
            "gretap_*",
            "ip_tunnel_*",
            "ipip_*",
            "sit_*",
            "ip6_tnl_*",
            "ip6gre_*",
            "wg_*",
            "tun_*",
            "iptunnel_*",
            "seg6_*",
        ],
        onward: RECEIVED,
        rule: Rule {
            cause: "tunnel",
            says: "Frames go through a tunnel ({what}): this takes {share} of a frame's time.",
            mechanism: "The tunnel puts each frame into another one: it looks up a second route, writes headers, and sends the longer frame through the stack again. A tunnel that encrypts also reads all bytes.",
            changes: &[[
                "Linux",
                "ip route replace NETWORK via GATEWAY dev IF, for networks that need no tunnel",
                "ip route replace NETWORK dev TUNNEL",
            ]],
            tries: &[
                (With("vxlan"), Keys(r#"{"dut": "forwarding"}"#)),
                (With("tunnel"), Keys(r#"{"dut": "two-routers"}"#)),
            ],
            otherwise: Not("only the network's author knows which traffic needs the tunnel"),
            ..RULE
        },
    },
    Comment {
        functions: &["macvlan_*", "macvtap_*", "ipvlan_*"],
        onward: RECEIVED,
        rule: Rule {
            cause: "macvlan",
            says: "Frames pass a virtual interface on top of another one ({what}): this takes {share} of a frame's time.",
            mechanism: "Each frame goes through two interfaces: it is looked up by its Ethernet or IP address, counted twice, and sent by the lower interface as if that were the next machine.",
            changes: &[[
                "Linux",
                "ip link del MACVLAN; ip addr add ADDRESS dev IF, for the one interface that needs no second address",
                "ip link add MACVLAN link IF type macvlan mode bridge; ip addr add ADDRESS dev MACVLAN",
            ]],
            tries: &[(With("macvlan"), Keys(r#"{"dut": "forwarding"}"#))],
            otherwise: Not(
                "the interface belongs to the set-up of the network, and no plan made it",
            ),
            ..RULE
        },
    },
];

/// The rules of all comments.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    COMMENTS.iter().map(|comment| &comment.rule)
}

/// Whether a function is an eBPF program.
pub(super) fn is_program(function: &str) -> bool {
    function.starts_with(PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::super::functions::PLACES;
    use super::*;

    #[test]
    fn comments_are_found_by_the_names_of_functions() {
        let cause = |name| Comment::on(name).map(|comment| comment.rule.cause);
        assert_eq!(cause("sip_help_udp"), Some("connection-helper"));
        assert_eq!(cause("fib_multipath_hash"), Some("multipath"));
        assert_eq!(cause("bpf_prog_1f_look"), Some("bpf-program"));
        assert_eq!(cause("ip_options_compile"), None);
    }

    #[test]
    fn a_program_is_taken_out_where_it_hangs() {
        let shown = PLACES.iter().map(|(.., command)| *command);
        let known = shown.filter(|command| ways_of_program(command).0.contains("IF"));
        assert_eq!(known.count(), 3);
        assert!(ways_of_program("nft list hooks").0.contains("end"));
    }
}
