//! What hangs at the hooks of a frame's way: chains without rules, traces of rules, copies by a bridge, tracing.

use super::Look::{By, Cost};
use super::On::{Embedded, With};
use super::Try::{InLab, Not};
use super::{Found, Looked, RULE, Rule, Setting, WHOLE_MACHINE, joined, judged, up_to};
use crate::case::Case;
use crate::extra::functions::is_called;
use linerate_measure::experiment::System::Linux;
use linerate_measure::record::Strength;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "many-chains",
        look: By(chains),
        says: "Many base chains hang at the hooks of a frame's way, most of them without rules.",
        mechanism: "Each base chain is called for each frame, also where it has no rule that decides. Tables of programs that manage containers, virtual machines and firewalls add up.",
        changes: &[
            [
                "Linux (nftables)",
                "nft delete chain FAMILY TABLE CHAIN for base chains without rules; one base chain for each hook, which jumps to other chains",
                "(echo flush ruleset; cat OLD-RULES) | nft -f -",
            ],
            [
                "Linux (iptables-legacy), tables without rules",
                "rmmod iptable_raw iptable_mangle iptable_nat iptable_security",
                "modprobe -a iptable_raw iptable_mangle iptable_nat iptable_security",
            ],
        ],
        tries: &[(
            With("legacy"),
            Not(
                "tables of iptables-legacy are modules of the kernel: unload them by hand, and measure again",
            ),
        )],
        otherwise: InLab(WITHOUT_CHAINS),
        ..RULE
    },
    Rule {
        cause: "rule-tracing",
        look: Cost(TRACES, 0.02, Setting::None),
        says: "Rules trace frames (nftrace, -j TRACE): this takes {share} of a frame's time.",
        mechanism: "As long as one rule sets nftrace, also one of another network namespace, each chain and each rule asks whether it must report the frame. Frames with the mark are reported rule by rule.",
        changes: &[[
            "Linux (nftables, iptables), in each network namespace",
            "nft -a list ruleset | grep nftrace, iptables-save | grep TRACE; nft delete rule FAMILY TABLE CHAIN handle N",
            "(echo flush ruleset; cat OLD-RULES) | nft -f -",
        ]],
        otherwise: WHOLE_MACHINE,
        ..RULE
    },
    Rule {
        cause: "bridge-flooding",
        look: By(flooding),
        says: "A bridge copies frames to several ports, because it does not know the port of their destination.",
        mechanism: "Each port gets a copy of the frame, which is allocated, sent and freed. Unknown is an address whose machine has not sent for 300 s, or behind a port that does not learn.",
        changes: &[
            [
                "Linux (an address)",
                "bridge fdb add ADDRESS dev PORT master static; bridge link set dev PORT learning on",
                "bridge fdb del ADDRESS dev PORT master; bridge link set dev PORT learning off",
            ],
            [
                "Linux (a port)",
                "bridge link set dev PORT flood off, at ports behind which all machines are known",
                "bridge link set dev PORT flood on",
            ],
        ],
        tries: &[(Embedded, InLab(NO_FLOOD))],
        otherwise: Not(super::BY_HAND),
        ..RULE
    },
    Rule {
        cause: "second-pass",
        look: By(passes),
        says: "{what}",
        mechanism: "A pair of virtual interfaces, a tunnel or a program hands the frame to the stack again: it is received, filtered, routed and sent once more.",
        changes: &[[
            "Linux",
            "ip -s link show has the interfaces that send and receive as many frames as come in; ip route replace NETWORK via GATEWAY dev IF, for networks whose frames need not pass these",
            "ip route replace NETWORK with the former route",
        ]],
        otherwise: Not("only the network's author knows which frames need the other interfaces"),
        ..RULE
    },
    Rule {
        cause: "tracing",
        look: Cost(
            &[
                "trace_event_raw_event_*",
                "trace_event_buffer_*",
                "perf_trace_*",
                "perf_tp_event*",
                "bpf_trace_run*",
                "__bpf_trace_*",
                "__traceiter_*",
                "trace_call_bpf*",
                "bpf_trampoline_*",
                "kprobe_*",
                "kretprobe_*",
                "optimized_callback",
                "fprobe_*",
                "function_trace_call",
                "function_graph_*",
                "ftrace_*",
                "arch_ftrace_*",
            ],
            0.02,
            Setting::None,
        ),
        says: "The kernel traces what happens to each frame.",
        mechanism: "Events, probes and tracers write an entry for each call of a function or tracepoint. They are the whole machine's: also a program that traces something else, or a forgotten instance of tracefs, takes time from each frame.",
        changes: &[[
            "Linux",
            "cat /sys/kernel/tracing/set_event /sys/kernel/tracing/instances/*/set_event /sys/kernel/tracing/kprobe_events shows events and probes; echo > /sys/kernel/tracing/set_event; echo nop > /sys/kernel/tracing/current_tracer; bpftool link and bpftool perf name the programs",
            "the former lines into the same files",
        ]],
        otherwise: Not("tracing is the whole machine's: end it by hand, and measure again"),
        ..RULE
    },
];

/// Functions that ask whether a rule must be reported, and report it.
pub const TRACES: &[&str] = &["nft_trace_*", "__nft_trace*", "nf_trace_*", "nf_log_trace"];

/// Takes the base chains out that have no rule and no policy but `accept`.
const WITHOUT_CHAINS: &str = "nft list ruleset | awk '$1 == \"table\" { table = $2 \" \" $3 } $1 == \"chain\" { chain = $2; rules = 0; base = 0; next } \
    $1 == \"type\" && / hook / { base = /policy accept/; next } $1 == \"}\" { if (chain && base && !rules) print \"delete chain\", table, chain; chain = \"\"; next } \
    { rules++ }' | nft -f -";

/// Ports that the test does not need get no copies.
const NO_FLOOD: &str = "for port in /sys/class/net/*/brport; do dev=${port%/brport}; dev=${dev##*/}; [ $dev = {in} ] || [ $dev = {out} ] || bridge link set dev $dev flood off; done";

/// The base chains of a frame's way in words, if they are many and have few rules.
pub fn many(case: &Case<'_>) -> Result<Option<String>, String> {
    /// A system with a firewall, containers and virtual machines has some at each hook; the five tables of iptables-legacy have 8.
    const MANY: usize = 8;
    let other = if case.slot.family == "IPv6" {
        "ip"
    } else {
        "ip6"
    };
    case.configured(&["nft"], |found| {
        let sets = found.path.packet_filters.iter();
        let chains = sets.flat_map(|set| set.forwarding());
        let (base, rules) = chains
            .filter(|chain| chain.family != other)
            .fold((0, 0), |(base, rules), chain| {
                let is_base = usize::from(chain.hook.is_some());
                (base + is_base, rules + chain.rules as usize)
            });
        (base >= MANY && rules <= base).then(|| {
            format!("{base} base chains hang at the hooks of forwarded frames; all have {rules} rules together")
        })
    })
}

fn chains(case: &Case<'_>) -> Looked {
    const LEAST: f64 = 0.05;
    let many = many(case);
    if matches!(many, Ok(None)) {
        return Ok(None);
    }
    let spent = |functions| case.spent_usually(functions, &["nf_conntrack_*", "nf_nat_*"]);
    let tables = ["ipt_do_table", "ip6t_do_table"];
    let legacy = spent(&tables).is_ok_and(|spent| spent.is_clear(LEAST));
    let spent = spent(&["nft_do_chain*", tables[0], tables[1]]);
    // Without the number of chains, their time tells nothing.
    match many {
        Err(why) if spent.is_ok() => Err(why),
        many => Ok(judged(spent, LEAST, many)?.map(|found| found.when(legacy, "legacy"))),
    }
}

/// Frames that the stack receives more often than the tester sends them.
fn passes(case: &Case<'_>) -> Looked {
    /// Some frames of the DUT's own are no second pass.
    const LEAST: f64 = 1.5;
    // Two routers are what the plan asked for.
    if case.tunnel().is_some() {
        return Ok(None);
    }
    let received = case.counters(|name| ["Ip.InReceives", "Ip6.InReceives"].contains(&name))?;
    if received.is_empty() && case.system() != Linux {
        return Err("the DUT does not tell how many frames its IP stack received".into());
    }
    let passes = case.of_sent(received.values().sum());
    // A connection or a request has several frames.
    let is_counted = case.records.campaign.noun() == "frame";
    let counted =
        is_counted.then(|| format!("the DUT's IP stack received each frame {passes:.2} times"));
    // Where frames are steered to other CPUs, the first pass begins there as well.
    let is_again = case.setting("/inside/rps").is_none();
    let again = case.spent(AGAIN).ok();
    let again = again.filter(|spent| is_again && spent.is_clear(0.02));
    let what = if is_counted && passes >= LEAST {
        format!("Each frame passes the DUT's IP stack {passes:.1} times.")
    } else if again.is_some() && forwards_twice(case)? {
        "Frames pass the IP stack a second time, in a network namespace that linerate does not read.".into()
    } else {
        return Ok(None);
    };
    let found = match again {
        // The time contains that of all that frames meet then.
        Some(spent) => {
            let evidence = counted.into_iter().chain([spent.evidence()]);
            Found::observed(0.5 * spent.share, evidence).with("cost", up_to(spent.share))
        }
        None => Found::new(Strength::Inferred, 0.1, counted).with("cost", "not known"),
    };
    Ok(Some(found.with("what", what)))
}

/// Functions by which a frame comes to the stack that a virtual device hands over.
const AGAIN: &[&str] = &["process_backlog", "gro_cell_poll"];

/// Whether frames are forwarded both below these functions and elsewhere.
fn forwards_twice(case: &Case<'_>) -> Result<bool, String> {
    const FORWARD: &[&str] = &["ip_forward", "ip_output", "ip6_forward", "ip6_output"];
    let profile = case.profile()?;
    let has = |stack: &str, names: &[&str]| {
        let mut functions = stack.split(';');
        functions.any(|name| names.iter().any(|wanted| is_called(name, wanted)))
    };
    let both = [true, false].map(|again| {
        let of = |(stack, _): &(&str, u64)| has(stack, FORWARD) && has(stack, AGAIN) == again;
        case.part(
            profile
                .stacks()
                .filter(of)
                .map(|(_, samples)| samples)
                .sum(),
            profile,
        )
    });
    Ok(both.iter().all(|spent| spent.is_clear(0.02)))
}

fn flooding(case: &Case<'_>) -> Looked {
    const FLOODS: [&str; 2] = ["br_flood", "br_multicast_flood"];
    let profile = case.profile()?;
    // A frame for one port is not copied.
    let is_copy = |stack: &str| {
        let mut below = stack
            .split(';')
            .skip_while(|name| !FLOODS.iter().any(|flood| is_called(name, flood)));
        below.any(|name| is_called(name, "skb_clone") || is_called(name, "deliver_clone"))
    };
    let copies = profile.stacks().filter(|(stack, _)| is_copy(stack));
    let copies = case.part(copies.map(|(_, samples)| samples).sum(), profile);
    if !copies.is_clear(0.01) {
        return Ok(None);
    }
    let cards = case.configuration().map_or(&[][..], |found| &found.cards);
    let masters = cards.iter().filter_map(|card| card.master.as_deref());
    let masters: std::collections::BTreeSet<&str> = masters.collect();
    let setting = match masters.is_empty() {
        true => None,
        false => Some(format!("bridge: {}", joined(masters, ", "))),
    };
    judged(case.spent(&FLOODS), 0.02, Ok(setting))
}
