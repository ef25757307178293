//! Hosts whose firewalls are on, and appliances, whose own programs write the files of the system.

use super::{advice, item, router, wanted};
use linerate_advise::lines::{Chosen, plan, shell};
use linerate_advise::{Demands, Item, State, advise};
use linerate_hosts::configuration::{Chain, Configuration, ConnectionTable, RuleSet};

fn rules(filter: &str, rules: u64) -> RuleSet {
    let chain = Chain {
        hook: Some("forward".into()),
        rules,
        tracking: 1,
        ..Chain::default()
    };
    RuleSet {
        filter: filter.into(),
        chains: vec![chain],
        ..RuleSet::default()
    }
}

/// 13.2 with ipfw loaded, and pf with states.
fn both() -> Configuration {
    let mut found = router("13.2", "AMD GX-412TC SOC", 4, 1, "em", 1e9);
    found.machine.memory = Some(756 << 20);
    found.rule_sets = vec![rules("ipfw", 2), rules("pf", 1)];
    let table = |entries, most, buckets| ConnectionTable {
        entries,
        most,
        buckets,
    };
    let pf = table(Some(3), Some(100_000), None);
    found.connections.insert("pf".into(), pf);
    let ipfw = table(Some(0), Some(16_384), Some(256));
    found.connections.insert("ipfw".into(), ipfw);
    found
}

fn with(found: &Configuration, connections: u64) -> linerate_advise::Advice {
    let demands = Demands {
        connections: Some(connections),
        ..Demands::default()
    };
    advise(found, demands).unwrap()
}

#[test]
fn each_firewall_that_runs_is_named() {
    let all = advice(&both());
    let item = item(&all, "freebsd-no-firewall").unwrap();
    assert_eq!(
        item.evidence.as_deref(),
        Some("ipfw has 2 rules, pf has 1 rule")
    );
}

#[test]
fn the_size_of_pf_s_table_is_somebody_s_wish() {
    let mut found = both();
    let all = advice(&found);
    let item_of = |all| item(all, "freebsd-pf-states").unwrap();
    let open = item_of(&all);
    assert_eq!(open.state, State::Unjudged);
    let note = open.note.as_deref().unwrap();
    assert!(
        note.contains("3 of at most 100000 entries") && note.contains("--connections"),
        "{note}"
    );
    // ipfw's numbers are none of pf's.
    found.connections.remove("pf");
    let all = advice(&found);
    let note = item_of(&all).note.as_deref().unwrap();
    assert!(note.contains("pfctl -s memory"), "{note}");
    // Without pf there is nothing to be judged.
    found.rule_sets.pop();
    assert!(item(&advice(&found), "freebsd-pf-states").is_none());
}

fn script(all: &linerate_advise::Advice, id: &str) -> String {
    let items: Vec<Item> = vec![item(all, id).unwrap().clone()];
    shell(&Chosen::of(&items, false))
}

#[test]
fn a_table_that_takes_much_memory_is_a_decision() {
    let small = script(&with(&both(), 60_000), "freebsd-pf-states");
    assert!(small.contains("\ntry keep /etc/pf.conf"), "{small}");
    let large = with(&both(), 360_000);
    let states = item(&large, "freebsd-pf-states").unwrap();
    assert_eq!(
        wanted(states, "set limit states").as_deref(),
        Some("720000")
    );
    let reserve = states.reserve.as_deref().unwrap();
    assert!(reserve.contains("320.0 MiB of 756.0 MiB"), "{reserve}");
    let large = script(&large, "freebsd-pf-states");
    assert!(
        large.contains("\n# try keep /etc/pf.conf") && !large.contains("\ntry keep"),
        "{large}"
    );
}

#[test]
fn what_gains_nothing_is_a_comment() {
    let mut found = both();
    let mask = "kern.random.harvest.mask";
    found.sysctls.insert(mask.into(), "991".into());
    let lines = script(&advice(&found), "freebsd-harvest");
    assert!(
        lines.contains(&format!("\n# try sysctl {mask}=863")) && lines.contains("no speed"),
        "{lines}"
    );
}

#[test]
fn appliances_have_places_of_their_own() {
    for (product, tunables, states) in [
        (
            "OPNsense 24.7",
            "System > Settings > Tunables",
            "Firewall > Settings > Advanced > Firewall Maximum States",
        ),
        (
            "pfSense 2.7.2",
            "System > Advanced > System Tunables",
            "System > Advanced > Firewall & NAT > Firewall Maximum States",
        ),
    ] {
        let mut found = both();
        found.system.product = Some(product.into());
        found
            .sysctls
            .insert("net.inet6.ip6.redirect".into(), "1".into());
        let all = with(&found, 60_000);
        let redirect = item(&all, "freebsd-redirect").unwrap();
        let [setting] = &redirect.settings[..] else {
            panic!("{redirect:?}")
        };
        assert_eq!(setting.place.as_deref(), Some(tunables));
        assert!(setting.lasting.is_none() && setting.runtime.is_some());
        let pf = item(&all, "freebsd-pf-states").unwrap();
        assert_eq!(pf.state, State::Change);
        assert_eq!(pf.settings[0].place.as_deref(), Some(states));
        let file = |item: &Item| item.settings[1].lasting.as_ref().unwrap().file.clone();
        assert_eq!(file(pf), "/boot/loader.conf.local");
        let lines = script(&all, "freebsd-redirect");
        assert!(
            lines.contains(tunables) && !lines.contains("keep /etc"),
            "{lines}"
        );
    }
}

/// From 13.0 on the advice is about IPv6 alone, and so are the frames of its plan.
#[test]
fn a_plan_of_a_setting_of_ipv6_sends_ipv6() {
    let of = |release: &str, id: Option<&str>| {
        let found = router(release, "AMD GX-412TC SOC", 4, 1, "em", 1e9);
        let all = advice(&found);
        let items: Vec<Item> = all
            .items
            .into_iter()
            .filter(|item| id.is_none_or(|id| item.id == id))
            .collect();
        plan(&Chosen::of(&items, id.is_some()))
    };
    let redirect = of("13.2", Some("freebsd-redirect"));
    assert!(
        redirect.contains("family = \"IPv6\"") && redirect.contains("[variants.freebsd-redirect]"),
        "{redirect}"
    );
    let earlier = of("12.4", Some("freebsd-redirect"));
    assert!(!earlier.contains("family"), "{earlier}");
    let all = of("13.2", None);
    assert!(
        !all.contains("family =")
            && !all.contains("[variants.freebsd-redirect]")
            && all.contains("# freebsd-redirect is about IPv6"),
        "{all}"
    );
}

#[test]
fn the_limit_of_receive_work_names_the_host_s_card() {
    let found = router("13.2", "AMD GX-412TC SOC", 4, 1, "em", 1e9);
    let all = advice(&found);
    let note = item(&all, "freebsd-rx-process-limit").unwrap();
    let note = note.note.as_deref().unwrap();
    assert!(note.contains("dev.em.0.iflib.rx_budget"), "{note}");
}
