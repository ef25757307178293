//! Causes of a low rate are put into the DUT one at a time, and `linerate explain` must name them. The DUT without one must have
//! no finding. docs/explain.md has the hit rate.

mod proofs;

use crate::common::{Scratch, linerate};
use serde_json::Value;
use std::collections::BTreeMap;

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/causes");

/// The plans that put causes in.
const PLANS_OF_CAUSES: [&str; 8] = [
    "inline",
    "commented",
    "unknown",
    "tracing",
    "program",
    "tester",
    "threaded",
    "host",
];

/// Findings about the machine, which are true when tests or compilers run beside the campaign.
const OF_THE_MACHINE: [&str; 6] = [
    "other-programs",
    "timer-interrupts",
    "tracing",
    "steal",
    "mitigations",
    "frequency-governor",
];

/// Parts of a statement, by variant.
const SAYS: [(&str, &str); 52] = [
    ("connection-table-ports", "no free port"),
    ("fragmentation", "must not be fragmented"),
    ("frames-dropped-not-forwarding", "does not forward"),
    ("frames-dropped-no-route", "no route"),
    ("frames-dropped-rule", "a rule of the firewall drops them"),
    ("frames-dropped-time-to-live", "time to live"),
    (
        "frames-dropped-reverse-path",
        "the reverse-path filter expects",
    ),
    ("frames-dropped-blackhole", "is one that drops"),
    ("frames-dropped-unreachable", "is one that drops"),
    ("frames-dropped-prohibit", "is one that drops"),
    ("frames-dropped-policy", "a rule of the firewall drops them"),
    ("frames-dropped-limit", "a rule of the firewall drops them"),
    (
        "frames-dropped-shaper",
        "the queue of a queueing discipline",
    ),
    ("frames-dropped-returned", "are sent back"),
    ("frames-dropped-elsewhere", "leave the DUT by silent"),
    (
        "frames-dropped-local",
        "destination is an address of the DUT",
    ),
    ("frames-dropped-source", "source is an address of the DUT"),
    ("frames-dropped-ethernet", "Ethernet destination"),
    ("frames-dropped-ipsec", "an IPsec policy blocks them"),
    ("frames-dropped-refused", "a routing rule refuses them"),
    ("frames-dropped-queue", "rules queue them for a program"),
    ("frames-dropped-port", "the bridge does not forward"),
    ("rule-expressions", "Updates of sets"),
    ("rule-expressions-count", "Counts of connections"),
    ("rule-expressions-sets", "Look-ups in sets"),
    ("rule-expressions-rates", "Updates of sets"),
    ("rule-expressions-limits", "Limits and quotas"),
    ("rule-expressions-copies", "Copies and redirections"),
    ("rule-expressions-mirror", "Copies and redirections"),
    ("rule-expressions-connlimit", "Counts of connections"),
    ("rule-expressions-headers", "Changes of headers"),
    ("rule-expressions-ipset", "Look-ups in sets"),
    ("rule-expressions-meters", "Updates of sets"),
    ("rule-expressions-recent", "Updates of sets"),
    ("payload-match", "(string_mt)"),
    ("payload-match-u32", "(u32_mt)"),
    ("socket-match", "(nft_socket_eval)"),
    ("hash-expression", "(nft_jhash_eval)"),
    ("hash-expression-random", "(nft_ng_random_eval)"),
    ("hash-expression-statistic", "(statistic_mt)"),
    ("bpf-program", "program look (tag"),
    ("bpf-program-driver", "program look (tag"),
    ("bpf-program-route", "program look (tag"),
    ("connection-helper", "(sip_help_udp)"),
    ("connection-helper-iptables", "(sip_help_udp)"),
    ("macvlan", "(macvlan_start_xmit)"),
    ("tunnel", "(vxlan_xmit)"),
    ("tunnel-segments", "(seg6_input_core)"),
    ("unknown-extra-time", "into time_mt, in a hook"),
    ("unknown-extra-address", "into addrtype_mt"),
    ("unknown-extra-estimators", "into xt_rateest_tg"),
    ("unknown-extra-hours", "into nft_meta_get_eval_time"),
];

/// A variant and the findings about it: cause and statement, the first first.
struct Explained {
    variant: String,
    findings: Vec<(String, String)>,
}

impl Explained {
    /// The cause that was put in; `None` for a DUT without one.
    fn wanted(&self, causes: &[String]) -> Option<String> {
        let all = causes
            .iter()
            .filter(|cause| self.variant.starts_with(*cause));
        all.max_by_key(|cause| cause.len()).cloned()
    }

    /// The findings about the DUT, those about the machine left out unless they are wanted.
    fn of_dut(&self, wanted: Option<&str>) -> Vec<&(String, String)> {
        let counts = |cause: &str| !OF_THE_MACHINE.contains(&cause) || wanted == Some(cause);
        self.findings
            .iter()
            .filter(|(cause, _)| counts(cause))
            .collect()
    }

    /// Whether the right finding is the first, or there is none where nothing was put in.
    fn hit(&self, causes: &[String]) -> bool {
        self.place(causes) == Some(0)
    }

    /// The place of the right finding; the first, where nothing was put in and nothing is found.
    fn place(&self, causes: &[String]) -> Option<usize> {
        let wanted = self.wanted(causes);
        let found = self.of_dut(wanted.as_deref());
        let says = SAYS
            .iter()
            .find(|(variant, _)| *variant == self.variant)
            .map_or("", |(_, says)| says);
        let Some(wanted) = wanted else {
            return found.is_empty().then_some(0);
        };
        found
            .iter()
            .position(|(cause, statement)| *cause == wanted && statement.contains(says))
    }
}

/// One of the plans.
fn text(plan: &str) -> String {
    std::fs::read_to_string(format!("{PLANS}/{plan}.toml")).unwrap()
}

/// A campaign of a plan, with so long a profile of each variant.
fn campaign(text: &str, profile: &str, more: &[&str]) -> (Vec<Explained>, Vec<String>) {
    let scratch = Scratch::new();
    let text = text.replace("profile = true", &format!("profile = \"{profile}\""));
    std::fs::write(scratch.path().join("plan.toml"), text).unwrap();
    let ended = linerate(["run", "plan.toml", "--out", "records"])
        .args(more)
        .dir(scratch.path())
        .within(600)
        .run()
        .no_panic();
    // Status 1: a variant drops all frames.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(scratch.file(&format!("records/{name}"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (campaign, summary) = (read("campaign.json"), read("summary.json"));
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let explained = summary["explanations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|explanation| Explained {
            variant: text(
                &campaign["slots"][explanation["slot"].as_u64().unwrap() as usize]["plan_variant"],
            ),
            findings: explanation["findings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|finding| (text(&finding["cause"]), text(&finding["statement"])))
                .collect(),
        });
    let explained: Vec<Explained> = explained.collect();
    let slots = campaign["slots"].as_array().unwrap().iter();
    let duts = slots
        .filter(|slot| slot["plan_variant"] != "tester-baseline")
        .count();
    // A variant without a valid trial has no explanation; the page says why.
    assert_eq!(explained.len(), duts, "{}{}", ended.stdout, ended.stderr);
    // Every rule is named once for each slot: found, absent or not examined.
    let all = &summary["explanations"][0];
    let named = |list: &str| all[list].as_array().unwrap().clone();
    let mut causes: Vec<String> = named("absent").iter().map(text).collect();
    causes.extend(
        named("findings")
            .iter()
            .chain(&named("not_examined"))
            .map(|of| text(&of["cause"])),
    );
    (explained, causes)
}

/// Each variant that was not explained as it should be.
fn missed(explained: &[Explained], causes: &[String]) -> Vec<String> {
    let missed = explained.iter().filter(|explained| !explained.hit(causes));
    missed
        .map(|explained| format!("{}: {:?}", explained.variant, explained.findings))
        .collect()
}

/// Three causes of which a few samples are enough, or none: a rule set, a search in the bytes of frames, and frames without a route.
#[test]
#[ignore = "needs root, nft and tc"]
fn plain_causes_are_found() {
    let quick = r#"variants = ["clean", "linear-rules", "bridge-netfilter", "ipsec-policies", "#;
    let (before, after) = text("inline")
        .split_once(quick)
        .map(|(b, a)| (b.to_string(), a.to_string()))
        .unwrap();
    let plan = format!("{before}variants = [\"clean\", \"linear-rules\", {after}");
    let (explained, causes) = campaign(&plan, "500 ms", &["--quick"]);
    let [clean, put_in] = [true, false].map(|clean| {
        let of = |one: &&Explained| (one.variant == "clean") == clean;
        explained.iter().filter(of).collect::<Vec<_>>()
    });
    // Another finding comes first where the few samples do not tell which takes more.
    for one in put_in {
        let is_found = one.place(&causes).is_some();
        assert!(is_found, "{}: {:?}", one.variant, one.findings);
    }
    // Of the kernel's functions, other programs may have used some.
    let found = clean[0].of_dut(None);
    let wrong =
        |cause: &str| cause.starts_with("linear-rules") || cause.starts_with("frames-dropped");
    assert!(!found.iter().any(|(cause, _)| wrong(cause)), "{found:?}");
}

#[test]
#[ignore = "needs root, nft, tc and a quiet machine"]
fn figures_the_cause_that_was_put_in_is_found_first() {
    let (explained, causes) = campaign(&text("inline"), "300 ms", &["--quick"]);
    let missed = missed(&explained, &causes);
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
#[ignore = "needs root, nft, tc, tcpdump and clang"]
fn takes_minutes_the_hit_rate_of_every_cause() {
    const CAMPAIGNS: usize = 10;
    const LEAST: usize = 8;
    // The cause costs 1 to 2 % of a frame's time, and some samples do not show that.
    const SMALL: &str = "reverse-path-filter-sysctl";
    let mut hits: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for _ in 0..CAMPAIGNS {
        for plan in PLANS_OF_CAUSES {
            let more: &[&str] = if plan == "host" {
                &["--allow-host-changes"]
            } else {
                &[]
            };
            let (explained, causes) = campaign(&text(plan), "1 s", more);
            wrong.extend(missed(&explained, &causes));
            for one in explained {
                let (hit, all) = hits.entry(one.variant.clone()).or_default();
                *hit += usize::from(one.hit(&causes));
                *all += 1;
            }
        }
    }
    for (variant, (hit, all)) in &hits {
        println!("{variant:32} {hit:3} of {all}");
    }
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    let seldom: Vec<_> = hits
        .iter()
        .filter(|(variant, (hit, all))| *variant != SMALL && hit * CAMPAIGNS < all * LEAST)
        .collect();
    assert!(seldom.is_empty(), "{seldom:#?}");
}
