//! Time that plain forwarding does not take, and that no rule knows: functions that neither plain forwarding nor a usual firewall calls, with
//! the place where they hang. Comments explain those that administrators often meet.

mod comments;
pub(crate) mod functions;

use crate::case::{Case, PROGRAM};
use crate::rules::{Found, RULE, Rule, Try, percent, up_to};
use crate::spent::Spent;
use comments::{Comment, is_program, ways_of_program};
use functions::{ANY_WAY, DISPATCHERS, ERRORS, LEAST, PLACES, any, is_called, is_usual};
use linerate_profile::{Profile, works_on_frames};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The texts of findings without a comment.
static EXTRA: Rule = Rule {
    cause: "unknown-extra",
    says: "{share} of a frame's time goes into {what}, in {place}. Plain forwarding does not call it.",
    mechanism: "No rule of linerate knows this function. Frames of this DUT pass it; those of plain forwarding, which was measured beside it, do not.",
    changes: &[[
        "{system}",
        "{command} (shows what is there: remove what frames need not pass)",
        "restore what was removed",
    ]],
    otherwise: Try::Not(
        "linerate does not know what to remove: remove it by hand, and measure again",
    ),
    ..RULE
};

/// The rules that findings are made by: those of comments, and the one for all others.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    comments::rules().chain([&EXTRA])
}

/// Functions with one comment, or one without, and their callers.
#[derive(Default)]
struct Extra {
    samples: u64,
    functions: BTreeMap<String, u64>,
    /// Samples by the innermost function.
    own: BTreeMap<String, u64>,
    /// Samples by the stack above the function.
    above: BTreeMap<String, u64>,
}

/// What was found by each rule, the largest first. `claimed`: by findings, which explain these stacks.
pub(crate) fn look(
    case: &Case<'_>,
    claimed: &[Spent],
) -> Result<BTreeMap<&'static str, Vec<Found>>, String> {
    let profile = case.profile()?;
    if case.is_plain(case.slot.id) {
        return Ok(BTreeMap::new());
    }
    let plain = case.plain().ok_or(
        "no plain forwarding was profiled beside it: the plan needs a variant without settings",
    )?;
    let known: HashSet<&str> = plain
        .stacks()
        .flat_map(|(stack, _)| stack.split(';'))
        .collect();
    let is_dut = |kind: &str| case.setting("/dut").is_some_and(|dut| dut == kind);
    let is_tunnel = case.tunnel().is_some();
    let mut all: BTreeMap<&'static str, Vec<Found>> = BTreeMap::new();
    for extra in extras(profile, &known, claimed) {
        let part = |samples: &u64| *samples as f64 / case.samples();
        let mut functions: Vec<(String, f64)> = extra
            .functions
            .iter()
            .map(|(name, samples)| (name.clone(), part(samples)))
            .collect();
        functions.sort_by(|a, b| b.1.total_cmp(&a.1));
        let first = functions[0].0.clone();
        let spent = case.part(extra.samples, profile).of(functions);
        if spent.is_clear(LEAST) {
            let cause = Comment::on(&first).map_or(EXTRA.cause, |comment| comment.rule.cause);
            let found = found(&first, &extra, &spent).with("system", case.system());
            let found = found.when(is_dut("vxlan"), "vxlan");
            let found = found.when(is_tunnel, "tunnel");
            let found = found.when(is_dut("macvlan"), "macvlan");
            all.entry(cause).or_default().push(found);
        }
    }
    Ok(all)
}

fn extras(profile: &Profile, known: &HashSet<&str>, claimed: &[Spent]) -> Vec<Extra> {
    let mut extras: BTreeMap<&str, Extra> = BTreeMap::new();
    for (stack, samples) in profile.stacks() {
        if claimed.iter().any(|spent| spent.contains(stack)) {
            continue;
        }
        let mut functions: Vec<&str> = stack.split(';').collect();
        // The DUT may send an error for a frame: the frame itself does not pass these functions.
        if let Some(error) = functions.iter().position(|name| any(ERRORS, name)) {
            functions.truncate(error + 1);
        }
        let is_known = |name: &str| known.contains(name) || is_usual(name);
        let Some(first) = functions.iter().position(|name| !is_known(name)) else {
            continue;
        };
        // A function that hangs at a dispatcher gives the name, if it is unknown as well.
        let named = |name: &&str| !is_known(name) && !any(DISPATCHERS, name);
        let at = functions.iter().position(named);
        // The time of a program is its own, wherever a function runs it.
        let own = functions
            .iter()
            .position(|name| program(name).is_some() && !is_known(name));
        let at = own.or(at).unwrap_or(functions.len() - 1);
        if is_known(functions[at]) {
            continue;
        }
        // Programs beside the campaign are no part of a frame's way.
        let above = &functions[..first];
        let of_frames =
            above.iter().any(|name| any(ANY_WAY, name)) || works_on_frames(&above.join(";"));
        let of_kernel = functions[0].starts_with("ret_from_fork") || functions[0] == "kthread";
        if !of_frames && !of_kernel {
            continue;
        }
        let name = functions[at];
        let comment = Comment::on(name);
        let is_onward = |below: &&str| comment.is_some_and(|of| any(of.onward, below));
        if functions[at + 1..].iter().any(is_onward) {
            continue;
        }
        // Each program is one of its own.
        let key = comment.filter(|_| !is_program(name));
        let extra = extras
            .entry(key.map_or(name, |of| of.rule.cause))
            .or_default();
        extra.samples += samples;
        *extra.functions.entry(name.into()).or_default() += samples;
        let own = functions.last().map_or("", |name| name);
        *extra.own.entry(own.into()).or_default() += samples;
        *extra.above.entry(functions[..at].join(";")).or_default() += samples;
    }
    let mut all: Vec<Extra> = extras.into_values().collect();
    all.sort_by_key(|extra| Reverse(extra.samples));
    all
}

fn found(function: &str, extra: &Extra, spent: &Spent) -> Found {
    let most = |of: &BTreeMap<String, u64>| {
        let most = of.iter().max_by_key(|(_, samples)| **samples);
        most.map(|(name, samples)| (name.clone(), *samples as f64 / extra.samples as f64))
    };
    let above = most(&extra.above).map_or(String::new(), |(above, _)| above);
    let caller = above.rsplit(';').next().unwrap_or_default();
    let (place, command) = place(&above, function);
    let called = format!("{function} is called by {caller}: {place}");
    let inside = most(&extra.own).filter(|(name, _)| name != function);
    let inside = inside.map(|(name, share)| format!("{} of it is spent in {name}", percent(share)));
    let evidence = [Some(spent.evidence()), Some(called), inside];
    let (remove, restore) = ways_of_program(command);
    let tag = program(function).map_or("", |(tag, _)| tag);
    Found::observed(spent.share, evidence.into_iter().flatten())
        .with("remove", remove)
        .with("restore", restore)
        .with("tag", tag)
        .with("what", words(function))
        .with("cost", up_to(spent.share))
        .with("place", place)
        .with("command", command)
}

/// The tag and the name of an eBPF program.
fn program(function: &str) -> Option<(&str, &str)> {
    function.strip_prefix(PROGRAM)?.split_once('_')
}

/// A function in words: an eBPF program by its name and its tag.
fn words(function: &str) -> String {
    match program(function) {
        Some((tag, name)) => format!("the eBPF program {name} (tag {tag})"),
        None => function.into(),
    }
}

/// Where a function hangs, and the command that lists what is there.
fn place(above: &str, function: &str) -> (&'static str, &'static str) {
    /// Callers that tell: those farther away are of all frames.
    const NEAR: usize = 4;
    let near = above.split(';').chain([function]).rev().take(NEAR);
    let caller = above.rsplit(';').next().unwrap_or_default();
    // Programs of tcx have no function between them and these two.
    if is_program(function) && any(&["__netif_receive_skb*", "__dev_queue_xmit"], caller) {
        return ("the tcx hook of an interface", "bpftool net");
    }
    if is_called(caller, "__netif_receive_skb*") {
        return ("a receive handler of an interface", "ip -d link show");
    }
    let found = near.into_iter().find_map(|name| {
        PLACES
            .iter()
            .find(|(functions, ..)| any(functions, name))
            .map(|(_, place, command)| (*place, *command))
    });
    found.unwrap_or(("the way of frames through the IP stack", "perf record -g"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: &str = "do_softirq;net_rx_action;veth_poll;veth_xdp_rcv_one;gro_receive_skb;__netif_receive_skb_core;ip_rcv;ip_forward";

    fn found(stacks: &str) -> Vec<(String, u64, &'static str)> {
        let known: HashSet<&str> = WAY.split(';').collect();
        let profile = Profile::of_folded(&stacks.replace("WAY", WAY));
        let all = extras(&profile, &known, &[]).into_iter();
        all.map(|extra| {
            let name = extra.functions.keys().next().unwrap().clone();
            let above = extra.above.keys().next().unwrap();
            let place = place(above, &name).0;
            (name, extra.samples, place)
        })
        .collect()
    }

    #[test]
    fn an_extra_has_the_name_of_what_hangs_at_a_dispatcher() {
        let of = |stack: &str| found(&format!("{stack} 7\n")).pop();
        let named = |name: &str, place| Some((name.to_string(), 7, place));
        assert_eq!(
            of("WAY;nf_hook_slow;nft_do_chain;nft_match_eval;string_mt;bm_find"),
            named("string_mt", "a hook of netfilter")
        );
        assert_eq!(
            of("WAY;tc_run;tcf_classify;cls_bpf_classify;bpf_prog_1f_look"),
            named("bpf_prog_1f_look", "a filter or action of tc")
        );
        assert_eq!(
            of("WAY;lwtunnel_output;bpf_output;bpf_prog_1f_look"),
            named("bpf_prog_1f_look", "a route with an encapsulation")
        );
        assert_eq!(
            of("WAY;ip_options_compile"),
            named(
                "ip_options_compile",
                "the way of frames through the IP stack"
            )
        );
        assert_eq!(
            of("ret_from_fork_asm;kthread;worker_thread;wg_decrypt"),
            named("wg_decrypt", "a thread of the kernel")
        );
        // A dispatcher alone has its own time.
        assert_eq!(
            of("WAY;lwtunnel_output"),
            named("lwtunnel_output", "a route with an encapsulation")
        );
    }

    #[test]
    fn freebsd_has_extras_too() {
        let way = "fork_exit;_task_fn_rx;iflib_rxeof;ether_input;netisr_dispatch_src;ip_tryforward";
        let known: HashSet<&str> = way.split(';').collect();
        let stacks = format!("{way};pfil_run_hooks;ng_ipfw_input;ng_send_item 7\n");
        let all = extras(&Profile::of_folded(&stacks), &known, &[]);
        assert!(all[0].functions.contains_key("ng_ipfw_input"));
    }

    #[test]
    fn plain_ways_usual_firewalls_and_other_programs_are_no_extra() {
        for stack in [
            "WAY;nf_hook_slow;nft_do_chain;nft_cmp_eval",
            "WAY;nf_hook_slow;nf_conntrack_in;resolve_normal_ct;__nf_conntrack_find_get",
            "WAY;lwtunnel_output;ip_output",
            "WAY;icmp_send;__icmp_send",
            "entry_SYSCALL_64;do_syscall_64;__x64_sys_getpid",
        ] {
            assert_eq!(found(&format!("{stack} 7\n")), [], "{stack}");
        }
    }

    #[test]
    fn programs_are_named() {
        assert_eq!(
            words("bpf_prog_1f_look_at"),
            "the eBPF program look_at (tag 1f)"
        );
        assert_eq!(words("string_mt"), "string_mt");
    }
}
