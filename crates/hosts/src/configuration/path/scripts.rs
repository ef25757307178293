//! The questions about the way of frames. None of them changes anything: modules that are not there are not loaded, and tracefs is mounted in a
//! mount namespace that ends with the question.

/// The names of the questions that only the way needs, and what is not known without their answers.
pub(in super::super) const QUESTIONS: [(&str, &str); 11] = [
    ("way", "the routes of the test's addresses"),
    ("policy", "policy rules and IPsec policies"),
    ("tc", "queueing disciplines and filters"),
    ("hooks", "other hooks of netfilter"),
    ("nft", "rules of nftables"),
    ("programs", "eBPF programs of tcx and of other links"),
    ("tracing", "tracing"),
    ("netgraph", "nodes of netgraph"),
    ("taps", "packet sockets"),
    ("ipsec", "policies of IPsec"),
    ("queues", "queues of pf"),
];

/// The routes of addresses, which are the arguments: pairs of a destination and a source. A frame comes in by the device that leads to its
/// source.
pub const WAY: &str = r#"command -v ip >/dev/null || exit 127
while [ $# -ge 2 ]; do
d=$(ip -o route get "$2" | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
echo "==> from $2 <=="
ip -d -j route get "$2"
echo "==> to $1 <=="
ip -d -j route get fibmatch "$1" from "$2" iif "${d:-lo}" 2>/dev/null || ip -d -j route get "$1"
shift 2
done; :"#;

/// Policy rules; IPsec policies and states, counted, because states have keys.
pub const POLICY: &str = r#"command -v ip >/dev/null || exit 127
ask() { echo "==> $* <=="; "$@"; }
ask ip -j rule show
ask ip -6 -j rule show
if [ -e /proc/modules ]; then
read -r r </proc/sys/kernel/osrelease
grep -qs '^xfrm_user ' /proc/modules || grep -qs '/xfrm_user\.ko' "/lib/modules/$r/modules.builtin" || exit 0
fi
ask ip xfrm policy count
ask ip xfrm state count; :"#;

/// Queueing disciplines of all devices; classes and filters of those that can have them.
pub const QUEUEING: &str = r#"command -v tc >/dev/null || exit 127
q=$(tc -j qdisc show) || exit
echo "==> qdisc <=="
echo "$q"
set -f
devices() { tc qdisc show | sed -n "s/^qdisc \($1\) .* dev \([^ ]*\).*/\2/p" | sort -u | head -n 64; }
case $q in *clsact*|*ingress*)
for i in $(devices 'clsact\|ingress'); do
for d in ingress egress; do echo "==> $d $i <=="; tc -j filter show dev "$i" $d; done
done ;;
esac
case $q in *prio*|*htb*|*hfsc*|*drr*|*cbq*|*ets*|*qfq*)
for i in $(devices 'prio\|htb\|hfsc\|drr\|cbq\|ets\|qfq'); do
echo "==> root $i <=="
tc -j filter show dev "$i"
echo "==> classes $i <=="
tc class show dev "$i" | head -n 4096
done ;;
esac; :"#;

/// Hooks of netfilter, and the queues and logs that programs read.
pub const HOOKS: &str = r#"for f in nfnetlink_queue nfnetlink_log; do
[ -e /proc/net/netfilter/$f ] && echo "==> $f <==" && cat /proc/net/netfilter/$f
done
command -v nft >/dev/null || exit 0
if [ -e /proc/modules ]; then
read -r r </proc/sys/kernel/osrelease
grep -qs '^nfnetlink_hook ' /proc/modules || grep -qs '/nfnetlink_hook\.ko' "/lib/modules/$r/modules.builtin" || exit 0
fi
echo "==> hooks <=="
nft list hooks 2>/dev/null; :"#;

/// eBPF programs that are attached by links, which no other program shows.
pub const PROGRAMS: &str = r#"command -v bpftool >/dev/null || exit 127
for w in net prog link; do echo "==> $w <=="; bpftool -j $w show; done; :"#;

/// Tracing that is in force. Tracefs is mounted for the question alone where it is not there.
pub const TRACING: &str = r#"look='cd "$1" || exit; for f in current_tracer set_event kprobe_events uprobe_events enabled_functions instances/*/current_tracer instances/*/set_event; do
[ -e "$f" ] || continue; echo "==> $f <=="; head -n 200 "$f"; done; :'
for t in /sys/kernel/tracing /sys/kernel/debug/tracing; do
[ -e $t/set_event ] || continue
set -- $t; eval "$look"; exit
done
t=/sys/kernel/tracing
[ -d $t ] || exit 0
command -v unshare >/dev/null || exit 127
exec unshare -m sh -c "mount -t tracefs tracefs $t && set -- $t && $look""#;

/// The routes of addresses, and policies of IPsec, on BSD systems.
pub const BSD_WAY: &str = r#"while [ $# -ge 2 ]; do
for a in "$2" "$1"; do
echo "==> to $a <=="
case $a in *:*) route -n get -inet6 "$a" ;; *) route -n get "$a" ;; esac
done
shift 2
done; :"#;

/// Nodes of netgraph. The program would load the module.
pub const NETGRAPH: &str = r#"kldstat -v 2>/dev/null | grep -qw netgraph || exit 0
ngctl list"#;

/// Packet sockets, which FreeBSD calls descriptors of bpf(4).
pub const TAPS: &str = "netstat -B";

/// Policies of IPsec, without keys. A kernel without IPsec has none.
pub const IPSEC: &str = r#"if command -v ipsecctl >/dev/null; then exec ipsecctl -s flow; fi
sysctl -n net.key.debug >/dev/null 2>&1 || exit 0
setkey -DP"#;

/// Queues of pf. Without pf there is none.
pub const QUEUES: &str = "pfctl -s queue 2>/dev/null; :";
