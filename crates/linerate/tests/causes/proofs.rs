//! `linerate explain --prove`: true causes are proven and never refuted, and those that are put into the records are never proven.

use super::text;
use crate::common::{Scratch, linerate};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Functions that are put into the profile of a DUT that has no such cause.
const UNFOUNDED: [(&str, &str); 10] = [
    ("ipsec-policies", "__xfrm_policy_check"),
    ("policy-routing", "fib_rules_lookup"),
    ("queueing-discipline", "__dev_xmit_skb"),
    ("generic-xdp", "do_xdp_generic"),
    ("frame-merging", "skb_gro_receive_list"),
    ("logging", "nf_log_packet"),
    ("reverse-path-filter", "nft_fib4_eval"),
    ("linear-rules", "nft_do_chain"),
    ("checksum-in-software", "skb_checksum_help"),
    ("fragmentation", "ip_do_fragment"),
];

/// The answer about the cause that a variant is named by.
#[derive(Debug)]
struct Answer {
    variant: String,
    /// `proven`; or `not found`.
    verdict: String,
    /// Ratio and reason.
    facts: String,
}

/// Measures a plan, changes its records, and runs the experiments of its findings.
fn answers(plan: &str, change: impl Fn(&Path, &Value)) -> Vec<Answer> {
    let scratch = Scratch::new();
    fs::write(scratch.file("plan.toml"), text(plan)).unwrap();
    let run = |args: &[&str]| {
        let run = linerate(args).dir(scratch.path()).within(3600);
        run.run().no_panic()
    };
    let ended = run(&["run", "plan.toml", "--out", "records", "--quiet"]);
    // Status 1: a variant drops all frames.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let records = scratch.path().join("records");
    let campaign = fs::read_to_string(records.join("campaign.json")).unwrap();
    let campaign: Value = serde_json::from_str(&campaign).unwrap();
    change(&records, &campaign);
    let explained = run(&["explain", "records", "--prove", "--budget", "8s", "--json"]);
    let of_slot = |explanation: &Value| {
        let slot = explanation["slot"].as_u64().unwrap() as usize;
        let variant = campaign["slots"][slot]["plan_variant"].as_str().unwrap();
        let findings = explanation["findings"].as_array().unwrap().iter();
        let own = findings.filter(|of| variant.starts_with(of["cause"].as_str().unwrap()));
        let own = own.max_by_key(|of| of["cause"].as_str().unwrap().len());
        let proof = own.map_or(&Value::Null, |of| &of["proof"]);
        let verdict = match (own, &proof["verdict"]) {
            (None, _) => "not found".into(),
            (Some(of), Value::Null) => format!("no experiment: {}", of["untried"]),
            (Some(_), verdict) => verdict.as_str().unwrap().to_string(),
        };
        Answer {
            variant: variant.into(),
            verdict,
            facts: format!("{} {}", proof["ratio"], proof["reason"]),
        }
    };
    let all = explained.json();
    let answers: Vec<Answer> = all.as_array().unwrap().iter().map(of_slot).collect();
    for answer in &answers {
        println!(
            "{:32} {:10} {}",
            answer.variant, answer.verdict, answer.facts
        );
    }
    answers
}

/// Puts half as many samples again into the profile of each variant, in the functions of the cause that it is named by.
fn put_in(records: &Path, campaign: &Value) {
    for (slot, of) in campaign["slots"].as_array().unwrap().iter().enumerate() {
        let variant = of["plan_variant"].as_str().unwrap();
        let Some((_, function)) = UNFOUNDED.iter().find(|(cause, _)| *cause == variant) else {
            continue;
        };
        let path = records.join(format!("profiles/{}.stack", slot + 1));
        let stacks = fs::read_to_string(&path).unwrap();
        let samples = stacks.lines().map(|line| line.rsplit(' ').next().unwrap());
        let samples: u64 = samples.map(|n| n.parse::<u64>().unwrap()).sum();
        let way = "handle_softirqs;net_rx_action;veth_poll";
        fs::write(path, format!("{stacks}{way};{function} {}\n", samples / 2)).unwrap();
    }
}

fn unchanged(_: &Path, _: &Value) {}

#[test]
#[ignore = "needs root, nft, iptables, tc and clang"]
fn takes_minutes_true_causes_are_proven_and_false_ones_are_not() {
    let true_ones = answers("changed", unchanged);
    let count = |verdict: &str| true_ones.iter().filter(|of| of.verdict == verdict).count();
    let (all, proven) = (true_ones.len(), count("proven"));
    println!(
        "{proven} of {all} true causes proven, {} refuted",
        count("refuted")
    );
    let false_ones = answers("unfounded", put_in);
    assert_eq!(false_ones.len(), UNFOUNDED.len());
    let believed = false_ones.iter().filter(|of| of.verdict == "proven");
    let believed: Vec<&Answer> = believed.collect();
    assert!(
        all >= 30 && count("refuted") == 0 && 30 * proven >= 27 * all,
        "{true_ones:#?}"
    );
    assert!(believed.is_empty(), "{believed:#?}");
}
