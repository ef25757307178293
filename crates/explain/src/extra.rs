//! Time that plain forwarding does not take, and that no rule knows: functions that neither plain forwarding nor a usual firewall calls, with
//! the place where they hang.

pub(crate) mod functions;

use crate::case::{Case, PROGRAM};
use crate::rules::{Found, RULE, Rule, Try, percent};
use crate::spent::Spent;
use functions::{ANY_WAY, DISPATCHERS, ERRORS, PLACES, any, is_called, is_usual};
use linerate_profile::{Profile, works_on_frames};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The texts of its findings.
pub(crate) const EXTRA: Rule = Rule {
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

/// Least part of a frame's time.
const LEAST: f64 = 0.05;

/// Functions and their callers, as one extra.
#[derive(Default)]
struct Extra {
    samples: u64,
    /// Samples by the innermost function.
    own: BTreeMap<String, u64>,
    /// Samples by the stack above the function.
    above: BTreeMap<String, u64>,
}

/// The extras of a slot by function, the largest first. `claimed`: by findings, which explain these stacks.
pub(crate) fn look(case: &Case<'_>, claimed: &[Spent]) -> Result<Vec<Found>, String> {
    let profile = case.profile()?;
    if case.is_plain(case.slot.id) {
        return Ok(Vec::new());
    }
    let plain = case.plain().ok_or(
        "no plain forwarding was profiled beside it: the plan needs a variant without settings",
    )?;
    let known: HashSet<&str> = plain
        .stacks()
        .flat_map(|(stack, _)| stack.split(';'))
        .collect();
    let extras = extras(profile, &known, claimed);
    let found = extras.into_iter().filter_map(|(function, extra)| {
        let spent = case.part(extra.samples, profile).of(&function);
        let found = spent
            .is_clear(LEAST)
            .then(|| found(&function, &extra, &spent))?;
        Some(found.with("system", case.system()))
    });
    Ok(found.collect())
}

fn extras(profile: &Profile, known: &HashSet<&str>, claimed: &[Spent]) -> Vec<(String, Extra)> {
    let mut extras: BTreeMap<String, Extra> = BTreeMap::new();
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
        let at = at.unwrap_or(functions.len() - 1);
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
        let extra = extras.entry(functions[at].to_string()).or_default();
        extra.samples += samples;
        let own = functions.last().map_or("", |name| name);
        *extra.own.entry(own.into()).or_default() += samples;
        *extra.above.entry(functions[..at].join(";")).or_default() += samples;
    }
    let mut all: Vec<(String, Extra)> = extras.into_iter().collect();
    all.sort_by_key(|(_, extra)| Reverse(extra.samples));
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
    Found::observed(spent.share, evidence.into_iter().flatten())
        .with("what", words(function))
        .with(
            "cost",
            format!("up to {} of a frame's time", percent(spent.share)),
        )
        .with("place", place)
        .with("command", command)
}

/// A function in words: an eBPF program by its name and its tag.
fn words(function: &str) -> String {
    let program = function.strip_prefix(PROGRAM);
    match program.and_then(|program| program.split_once('_')) {
        Some((tag, name)) => format!("the eBPF program {name} (tag {tag})"),
        None => function.into(),
    }
}

/// Where a function hangs, and the command that lists what is there.
fn place(above: &str, function: &str) -> (&'static str, &'static str) {
    /// Callers that tell: those farther away are of all frames.
    const NEAR: usize = 4;
    let near = above.split(';').chain([function]).rev().take(NEAR);
    if above
        .rsplit(';')
        .next()
        .is_some_and(|caller| is_called(caller, "__netif_receive_skb*"))
    {
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
        all.map(|(name, extra)| {
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
        assert_eq!(all[0].0, "ng_ipfw_input");
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
