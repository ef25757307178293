//! How far connections are when a trial begins: as the plan has it, as the DUT's own counters and tables say.

use super::experiment::Experiment;
use crate::common::campaign::faults;
use serde_json::Value;

/// The trials of a variant.
fn of<'a>(experiment: &Experiment, trials: &'a [Value], variant: &str) -> Vec<&'a Value> {
    let campaign = experiment.document("campaign.json");
    let slots = campaign["slots"].as_array().unwrap();
    let slot = slots
        .iter()
        .find(|s| s["variant"] == variant)
        .unwrap_or_else(|| panic!("{variant}: {slots:?}"));
    trials.iter().filter(|t| t["slot"] == slot["id"]).collect()
}

/// The output of a command after a trial, as a number.
#[track_caller]
fn number(trial: &Value, command: &str) -> u64 {
    let all = trial["collected"].as_array().unwrap();
    let said = all
        .iter()
        .find(|c| c["command"].as_str().unwrap().contains(command));
    let text = said.unwrap_or_else(|| panic!("no {command}: {all:?}"))["output"]["Ok"].as_str();
    text.and_then(|t| t.trim().parse().ok())
        .unwrap_or_else(|| panic!("{command}: {all:?}"))
}

/// An administrator's rules, loaded by a command of the plan: only the kernel shows linerate that they keep states.
const OWN_RULES: &str = r#"
title = "Own rules"
question = "Are connections established?"

[variants.own]
files = [{ path = "fw.nft", text = """
table inet fw {
  counter known { }
  counter fresh { }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established,related counter name known accept
    iifname "{in}" ct state new counter name fresh accept
  }
}
""" }]
commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]

[variants.masquerading]
from = "own"
commands = [{ run = "nft add table ip nat; nft 'add chain ip nat post { type nat hook postrouting priority srcnat; }'; nft add rule ip nat post oifname {out} masquerade", undo = "nft delete table ip nat" }]

[collect]
commands = [
  "nft list counter inet fw known | awk '/packets/ { print $2 }'",
  "nft list counter inet fw fresh | awk '/packets/ { print $2 }'",
  "grep -c UNREPLIED /proc/net/nf_conntrack || true",
]

[lab]
batch = 32
[trials]
duration = "20 ms"
blocks = 2
"#;

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn rules_that_pass_established_connections_first_see_established_connections() {
    let experiment = Experiment::new(OWN_RULES, "");
    let ended = experiment.run("--full").run().ok();
    let trials = experiment.trials();
    for variant in ["own", "masquerading"] {
        let trials = of(&experiment, &trials, variant);
        let fresh: Vec<u64> = trials.iter().map(|t| number(t, "fresh")).collect();
        assert!(
            fresh.iter().all(|n| *n == fresh[0]),
            "{variant}: a trial had new connections: {fresh:?}"
        );
        let mut known = number(trials[0], "known");
        for trial in &trials[1..] {
            let sent = trial["generator"]["frames"].as_u64().unwrap();
            let now = number(trial, "known");
            assert_eq!(
                now - known,
                sent,
                "{variant}: every frame belongs to an established connection"
            );
            known = now;
        }
        for trial in trials {
            assert_eq!(number(trial, "UNREPLIED"), 0);
            let connections = &trial["connections"];
            assert_eq!(connections["states"], "established", "{connections}");
            assert_eq!(
                (&connections["tracked"], &connections["unanswered"]),
                (&2000.into(), &0.into())
            );
        }
    }
    let page = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        page.contains("states established: the DUT has seen every connection in both directions"),
        "{page}"
    );
}

const CHOSEN: &str = r#"
title = "States"
question = "As chosen?"

[traffic]
flows = 100_000

[variants.new]
rules = { tool = "nftables", filter = "stateful" }
states = "new"

[variants.one-way]
from = "new"
states = "one-way"

[variants.established]
from = "new"
states = "established"

[variants.stateless]
rules = { tool = "nftables", filter = "stateless" }

[collect]
commands = ["grep -c UNREPLIED /proc/net/nf_conntrack || true"]

[lab]
batch = 32
[trials]
duration = "20 ms"
blocks = 1
"#;

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_plan_chooses_how_far_connections_are() {
    let experiment = Experiment::new(CHOSEN, "");
    experiment.run("").run().counted();
    let trials = experiment.trials();
    for trial in of(&experiment, &trials, "new") {
        // Each frame opened a connection: there are more flows than frames.
        let (sent, tracked) = (
            &trial["generator"]["frames"],
            &trial["connections"]["tracked"],
        );
        assert_eq!(
            (&trial["connections"]["states"], sent),
            (&"new".into(), tracked)
        );
        assert_eq!(number(trial, "UNREPLIED"), sent.as_u64().unwrap());
    }
    for trial in of(&experiment, &trials, "one-way") {
        assert_eq!(trial["connections"]["states"], "one-way");
        assert_eq!(number(trial, "UNREPLIED"), 100_000);
    }
    for trial in of(&experiment, &trials, "established") {
        assert_eq!(trial["connections"]["states"], "established");
        assert_eq!(number(trial, "UNREPLIED"), 0);
    }
    assert!(
        of(&experiment, &trials, "stateless")
            .iter()
            .all(|t| t["connections"].is_null())
    );
}

const EXPIRING: &str = r#"
title = "Timeouts"
question = "Are connections shown again before they expire?"

[variants.stateful]
rules = { tool = "nftables", filter = "stateful" }
sysctls = { "net.netfilter.nf_conntrack_udp_timeout" = 3, "net.netfilter.nf_conntrack_udp_timeout_stream" = 3 }

[lab]
batch = 32
[trials]
duration = "50 ms"
pause = "1600 ms"
blocks = 2
order = "sequential"
"#;

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn connections_that_expire_between_trials_are_established_again() {
    let experiment = Experiment::new(EXPIRING, "");
    experiment.run("").run().counted();
    let trials = experiment.trials();
    for trial in of(&experiment, &trials, "stateful") {
        assert_eq!(trial["connections"]["states"], "established");
        assert_eq!(trial["connections"]["unanswered"], 0);
        assert_eq!(faults(trial), "");
    }
}

const THOUSAND: &str = r#"
title = "A thousand rules"
question = "What do they cost behind the rule that passes established connections?"

[traffic]
flows = 2_000

[variants.none]
rules = { tool = "nftables", filter = "stateful" }

[variants.thousand]
rules = { tool = "nftables", filter = "stateful", before = 1_000 }

[variants.nat]
rules = { tool = "nftables", filter = "nat" }

[variants.nat-thousand]
rules = { tool = "nftables", filter = "nat", before = 1_000 }

[variants.new]
about = "each frame opens a connection, and walks the rules"
from = "thousand"
states = "new"

[lab]
batch = 32
[trials]
duration = "40 ms"
blocks = 60

[compare]
what = ["expectations"]

[[expect]]
of = "thousand"
is = "same"
than = "none"
within = "5 %"
because = "established connections pass before the rules"

[[expect]]
of = "nat-thousand"
is = "same"
than = "nat"
within = "5 %"
because = "established connections pass before the rules"

[[expect]]
of = "new"
is = "slower"
than = "thousand"
by = "80 %"
because = "each frame is held against a thousand rules"
"#;

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn takes_minutes_a_thousand_rules_behind_established_connections_cost_next_to_nothing() {
    let experiment = Experiment::new(THOUSAND, "");
    experiment.run("").run().no_panic();
    let expectations = experiment.document("summary.json")["expectations"].clone();
    let [same, nat, new] = [0, 1, 2].map(|nth| &expectations[nth]);
    for expected in [same, nat] {
        let median = expected["pairs"][0]["estimate"]["median"].as_f64().unwrap();
        // On a noisy machine, the interval is wider than what is asked.
        assert!(
            expected["judgement"] != "missed" && (median - 1.0).abs() < 0.05,
            "{expectations:#}"
        );
    }
    assert_eq!(new["judgement"], "met", "{expectations:#}");
}
