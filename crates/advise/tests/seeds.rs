//! Each setting that the source documents name is a rule's, or is left out for a stated reason.

use linerate_advise::rule::{Place, Rule};
use linerate_advise::{EXCLUDED, all};
use linerate_plan::sysctl::{Lasts, is_asked, lasts};
use std::collections::BTreeSet;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/seeds");

/// The settings of a text: sysctls and loader tunables, variables of rc.conf, words of ethtool(8) and ifconfig(8), limits of pf.conf.
fn settings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c))) {
            let word = word.trim_matches('.');
            let first = word.split('.').next().unwrap_or_default();
            let roots = ["net", "kern", "kernel", "hw", "dev", "machdep", "vm", "ddb"];
            if roots.contains(&first)
                && word.split('.').count() > 1
                && word.split('.').all(|part| !part.is_empty())
            {
                found.insert(word.to_string());
            }
        }
        // `gateway_enable="YES"`, `sysrc pf_enable="YES"`, `gateway_enable=YES` of the jail.
        for (at, _) in line.match_indices('=') {
            let name: String = line[..at]
                .chars()
                .rev()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            let name: String = name.chars().rev().collect();
            let before = line[..at - name.len()].chars().next_back();
            let value = &line[at + 1..];
            let is_variable = value.starts_with(['"', '“'])
                || value.starts_with("YES")
                || value.starts_with("NO");
            if is_variable && name.contains('_') && !matches!(before, Some('.' | '$' | '-')) {
                found.insert(name);
            }
        }
        for part in line.split("ifconfig_").skip(1) {
            let value = part.split('"').nth(1).unwrap_or_default();
            let flags = value
                .split_whitespace()
                .filter_map(|word| word.strip_prefix('-'));
            found.extend(flags.map(|flag| format!("ifconfig {flag}")));
        }
        if let Some((_, rest)) = line
            .split_once("for i in ")
            .filter(|_| line.contains("ethtool -K"))
        {
            let words = rest
                .split(';')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            found.extend(words.map(|word| format!("ethtool -K {word}")));
        }
        if let Some((_, rest)) = line.split_once("ethtool -A ") {
            found.extend(
                rest.split_whitespace()
                    .skip(1)
                    .step_by(2)
                    .map(|word| format!("ethtool -A {word}")),
            );
        }
        for word in [
            "txqueuelen",
            "initcwnd",
            "initrwnd",
            "mtu",
            "rngd",
            "set limit states",
        ] {
            if line.contains(&format!("{word} ")) {
                found.insert(word.into());
            }
        }
    }
    found
}

fn names(rule: &Rule) -> Vec<String> {
    let of = |set: &linerate_advise::rule::Set| match set.place {
        Place::Offload(offload) => {
            vec![
                format!("ethtool -K {}", offload.ethtool),
                format!("ifconfig {}", offload.freebsd[1]),
            ]
        }
        Place::Ethtool { letter, word, .. } => vec![format!("ethtool {letter} {word}")],
        _ => ["all", "default"]
            .map(|each| set.name.replace("{each}", each))
            .into(),
    };
    let variable = |set: &linerate_advise::rule::Set| match lasts(set.name) {
        Lasts::Rc(variable) | Lasts::RcYes(variable) => Some(variable.into()),
        Lasts::Sysctl | Lasts::Loader => None,
    };
    let variables = rule.sets.iter().filter_map(variable);
    rule.sets
        .iter()
        .flat_map(of)
        .chain(variables)
        .chain(rule.covers.iter().map(|name| (*name).to_string()))
        .collect()
}

fn is_covered(setting: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => setting.starts_with(prefix.trim_end_matches('.')),
        None => setting == pattern || setting == "ifconfig lro" && pattern == "lro",
    };
    all().flat_map(names).any(|name| fits(&name)) || EXCLUDED.iter().any(|(name, _)| fits(name))
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn each_setting_of_the_documents_has_a_rule_or_a_reason() {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(SEEDS).unwrap() {
        found.extend(settings(
            &std::fs::read_to_string(entry.unwrap().path()).unwrap(),
        ));
    }
    assert!(
        found.len() > 110,
        "only {} settings: {found:?}",
        found.len()
    );
    let open: Vec<&String> = found.iter().filter(|name| !is_covered(name)).collect();
    assert!(open.is_empty(), "no rule and no reason for {open:#?}");
}

#[test]
fn settings_are_found_in_all_notations() {
    let text = "echo \"net.inet.ip.redirect=0\"  >> /etc/sysctl.conf\nhw.ix.num_queues=\"16”\nsysrc pf_enable=\"YES\"\n\
        for i in rx tx; do ethtool -K eth0 $i on; done\nethtool -A eth0 autoneg off rx off\nifconfig_X=\"YYY -tso4 -lro\"\n";
    let found = settings(text);
    let expected = [
        "ethtool -A autoneg",
        "ethtool -A rx",
        "ethtool -K rx",
        "ethtool -K tx",
        "hw.ix.num_queues",
        "ifconfig lro",
        "ifconfig tso4",
        "ifconfig_X",
        "net.inet.ip.redirect",
        "pf_enable",
    ];
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
    assert!(!is_covered("net.inet.tcp.no_such_setting") && !is_covered("ethtool -K nothing"));
}

#[test]
fn rules_are_whole() {
    let mut ids = BTreeSet::new();
    for rule in all() {
        assert!(ids.insert(rule.id), "{} twice", rule.id);
        assert!(
            !rule.title.is_empty() && !rule.why.is_empty(),
            "{}",
            rule.id
        );
        assert!(
            rule.why.ends_with('.') && (rule.cost.is_empty() || rule.cost.ends_with('.')),
            "{}",
            rule.id
        );
        assert!(
            rule.since
                .zip(rule.until)
                .is_none_or(|(since, until)| since <= until),
            "{}",
            rule.id
        );
        assert!(
            rule.measured.iter().all(|(source, effects)| {
                !source.is_empty()
                    && !effects.is_empty()
                    && effects.iter().all(|(_, on)| !on.is_empty())
            }),
            "{}",
            rule.id
        );
    }
}

#[test]
fn each_setting_of_a_rule_is_asked_for() {
    let sets = all().flat_map(|rule| rule.sets.iter().map(|set| (rule.on, set)));
    let mut number = 0;
    for (kernel, set) in sets.filter(|(_, set)| matches!(set.place, Place::Kernel)) {
        number += 1;
        // Those of a card are asked for by its node.
        let name = set.name.replace("{each}", "eth0");
        assert!(
            name.starts_with("dev.{dev}.") || is_asked(kernel.into(), &name),
            "{name} is no setting of plan/src/sysctl.rs"
        );
    }
    assert!(number > 60, "{number}");
}
