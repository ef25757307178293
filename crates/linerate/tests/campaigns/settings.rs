//! The settings of a plan are in place while its trials run, as the system's own tools show.

use super::experiment::Experiment;
use linerate_hosts::configuration::{Card, Configuration};
use linerate_measure::record::SlotFacts;
use serde_json::Value;

const PLAN: &str = r#"
title = "Settings"
question = "Are they there?"

[traffic]
flows = 100

[variants.plain]
about = "routing"

[variants.set]
rules = { tool = "nftables", filter = "stateful", before = 3, table = 5 }
sysctls = { "net.ipv4.ip_early_demux" = 0, "net.ipv4.conf.all.rp_filter" = 2 }
interface = { mtu = "1700 B", gro = false, queues = 2, rps = "1" }
routes = { count = 7 }
files = [{ path = "etc/test.conf", text = "inside is {in}\n" }]
commands = [
  { run = "ip neigh add 198.18.77.77 lladdr 02:00:00:00:00:77 dev {in}", undo = "ip neigh del 198.18.77.77 dev {in}" },
  { run = "tc qdisc add dev {in} root pfifo", undo = "tc qdisc del dev {in} root" },
]

[variants.iptables]
rules = { tool = "iptables", filter = "nat" }

[collect]
what = ["queues", "interrupts"]
during = ["grep . etc/test.conf; while ip link show {in} | grep -c mtu; do sleep 0.01; done"]
commands = [
  "nft list ruleset",
  "sysctl net.ipv4.ip_early_demux",
  "ip -d link show {in}",
  "cat etc/test.conf",
  "ip route",
  "ip neigh",
  "iptables-legacy-save -t nat; iptables-nft-save -t nat",
]

[lab]
batch = 32
[trials]
duration = "200 ms"
blocks = 2
"#;

/// The output of a command after a trial, by the beginning of the command.
#[track_caller]
fn said(trial: &Value, command: &str) -> String {
    let all = trial["collected"].as_array().unwrap();
    let answer = all
        .iter()
        .find(|c| c["command"].as_str().unwrap().starts_with(command));
    let answer = answer.unwrap_or_else(|| panic!("no {command} in {all:#?}"));
    answer["output"].to_string()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_a_plan_sets_is_there() {
    let experiment = Experiment::new(PLAN, "");
    experiment.is_complete(experiment.run("").run());
    experiment.blocks_are_complete(2);
    let campaign = experiment.document("campaign.json");
    let variant_of = |trial: &Value| {
        let slot = trial["slot"].as_u64().unwrap() as usize;
        campaign["slots"][slot]["variant"]
            .as_str()
            .unwrap()
            .to_string()
    };
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for trial in experiment.trials() {
        let variant = variant_of(&trial);
        *seen.entry(variant.clone()).or_default() += 1;
        match variant.as_str() {
            "set" => is_set(&trial),
            "plain" => is_plain(&trial),
            "iptables" => {
                assert!(
                    said(&trial, "iptables").contains("MASQUERADE"),
                    "{}",
                    said(&trial, "iptables")
                )
            }
            other => assert!(other.contains("baseline"), "{other}"),
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    is_known(&experiment, &campaign);
    // Commands run where the settings are, while the trial does.
    let during = experiment
        .trials()
        .into_iter()
        .filter(|trial| variant_of(trial) == "set");
    let during: Vec<String> = during.map(|trial| said(&trial, "grep")).collect();
    assert!(
        during.iter().any(|said| said.contains("inside is")),
        "{during:#?}"
    );
    // A busy machine may give a command no more time than for its first line.
    assert!(
        during.iter().any(|said| said.contains("\\n1\\n")),
        "{during:#?}"
    );
}

/// The records say how each DUT was set, by its own answers.
#[track_caller]
fn is_known(experiment: &Experiment, campaign: &Value) {
    let stored = linerate_linux::records::read(&experiment.records()).unwrap();
    let of = |variant: &str| {
        let named = |facts: &&SlotFacts| campaign["slots"][facts.slot]["variant"] == variant;
        let facts = stored
            .facts
            .iter()
            .find(named)
            .unwrap_or_else(|| panic!("no facts of {variant}"));
        Configuration::recorded(facts).unwrap()
    };
    assert_eq!(stored.facts.len(), 3, "one for each DUT");
    let (set, plain) = (of("set"), of("plain"));
    let of_cards = |found: &Configuration| -> Vec<_> {
        let of = |card: &Card| {
            (
                card.mtu,
                card.features["generic-receive-offload"],
                card.receive_queues(),
            )
        };
        found.cards.iter().map(of).collect()
    };
    assert_eq!(
        of_cards(&set)[0],
        (Some(1700), false, Some(2)),
        "{:#?}",
        set.cards
    );
    assert_eq!(
        of_cards(&plain)[0],
        (Some(1500), true, Some(1)),
        "{:#?}",
        plain.cards
    );
    let (card, bare) = (&set.cards[0], &plain.cards[0]);
    assert_eq!((card.found, card.kind.as_deref()), (true, Some("veth")));
    assert_eq!(
        card.receive
            .values()
            .map(|queue| queue.rps.clone())
            .collect::<Vec<_>>(),
        [[1], [1]]
    );
    assert!(bare.receive.values().all(|queue| queue.rps.is_empty()));
    let kinds = |card: &Card| {
        card.qdiscs
            .iter()
            .map(|qdisc| qdisc.kind.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (kinds(card), kinds(bare)),
        (vec!["pfifo".to_string()], vec!["noqueue".to_string()])
    );
    let sysctl = |found: &Configuration, name: &str| found.number(&format!("net.ipv4.{name}"));
    assert_eq!(
        ["conf.all.rp_filter", "ip_early_demux"].map(|name| sysctl(&set, name)),
        [Some(2), Some(0)]
    );
    assert_eq!(
        ["conf.all.rp_filter", "ip_early_demux"].map(|name| sysctl(&plain, name)),
        [Some(0), Some(1)]
    );
    // Only the first network of a machine has it.
    if std::path::Path::new("/proc/sys/net/core/netdev_budget").exists() {
        assert!(
            plain.number("net.core.netdev_budget").is_some(),
            "settings of the machine are known as well"
        );
    }
    assert!(
        plain.rule_sets.is_empty() && set.rule_sets.len() == 1,
        "{:#?}",
        set.rule_sets
    );
    let rules = &set.rule_sets[0];
    assert!(
        rules.tracks() && rules.sets == 1 && rules.longest().unwrap().rules >= 4,
        "{rules:#?}"
    );
    assert!(
        of("iptables")
            .rule_sets
            .iter()
            .any(linerate_hosts::configuration::RuleSet::tracks)
    );
    assert_eq!(
        set.neighbours["PERMANENT"],
        plain.neighbours["PERMANENT"] + 1
    );
    assert_eq!(set.routes["IPv4"], plain.routes["IPv4"] + 7);
    let machine = &plain.machine;
    assert!(
        !machine.cpus.is_empty() && machine.cores().is_some() && !machine.mitigations.is_empty()
    );
}

#[track_caller]
fn has(trial: &Value, command: &str, parts: &[&str]) {
    let said = said(trial, command);
    for part in parts {
        assert!(said.contains(part), "{command}: no '{part}' in {said}");
    }
}

fn is_set(trial: &Value) {
    has(trial, "nft", &["ct state", "elements"]);
    has(trial, "sysctl", &["net.ipv4.ip_early_demux = 0"]);
    has(trial, "ip -d link", &["mtu 1700", "veth"]);
    has(trial, "cat", &["inside is "]);
    has(trial, "ip neigh", &["02:00:00:00:00:77"]);
    let routes = said(trial, "ip route").matches("\\n").count();
    assert!(routes >= 7 + 2, "{}", said(trial, "ip route"));
    figures(trial);
}

fn is_plain(trial: &Value) {
    assert!(
        !said(trial, "nft").contains("table"),
        "{}",
        said(trial, "nft")
    );
    has(trial, "sysctl", &["net.ipv4.ip_early_demux = 1"]);
    has(trial, "ip -d link", &["mtu 1500"]);
    assert!(!said(trial, "ip neigh").contains("02:00:00:00:00:77"));
    figures(trial);
}

/// The counters of queues and interrupts: a trial makes some of them grow.
fn figures(trial: &Value) {
    let dut = trial["dut"].as_object().unwrap();
    for part in [
        "in: rx_queue",
        "interrupt",
        "softnet processed",
        "Ip.ForwDatagrams",
    ] {
        let found = dut
            .iter()
            .any(|(name, n)| name.contains(part) && n.as_u64().unwrap() > 0);
        assert!(found, "no '{part}' in {dut:?}");
    }
}
