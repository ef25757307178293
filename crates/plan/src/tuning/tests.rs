use super::*;
use linerate_measure::experiment::System;

const PLAN: &str = r#"
        title = "t"
        question = "q"
        [variants.router]
        sysctls = { "net.ipv4.conf.all.rp_filter" = 1 }
        [variants.loose]
        from = "router"
        sysctls = { "net.ipv4.conf.all.rp_filter" = 0 }
        [variants.no-gro]
        from = "router"
        interface.gro = false
        [variants.rules]
        from = "router"
        rules = { tool = "nftables", filter = "stateless", before = 100 }
        [traffic]
        flows = 7
        [trials]
        duration = "100 ms"
        blocks = 6
    "#;

fn plan(text: &str) -> Campaign {
    Plan::read(text.as_bytes())
        .unwrap()
        .campaign(System::Linux, false)
        .unwrap()
        .clone()
}

#[test]
fn changes_are_made_together() {
    let plan = plan(PLAN);
    let tuning = Tuning::of(&plan).unwrap();
    let words: Vec<String> = tuning.changes.iter().flat_map(Candidate::keys).collect();
    assert_eq!(
        words[..2],
        [
            "sysctls.net.ipv4.conf.all.rp_filter = 0",
            "interface.gro = false"
        ]
    );
    let trials = &plan.experiment.trials;
    let runs = [
        vec![false; 3],
        vec![true, true, false],
        vec![true; 3],
        vec![true; 3],
    ];
    let name = |n: usize| format!("run-{n}");
    let Combined {
        campaign: made,
        cells,
        ..
    } = tuning
        .experiment(&plan, ["t", "q"], &runs, name, trials)
        .unwrap();
    let of = |run: usize| &made.lanes[made.cells[cells[run]].lane].settings;
    assert_eq!(of(0), &plan.lanes[plan.cells[1].lane].settings);
    assert_eq!(of(1).sysctls["net.ipv4.conf.all.rp_filter"], "0");
    assert!(of(1).rules.is_none() && of(2).rules.is_some());
    assert_eq!(of(2), of(3));
    assert_ne!(
        made.cells[cells[2]].lane, made.cells[cells[3]].lane,
        "each run has a DUT of its own"
    );
    assert_eq!(made.kinds[made.cells[cells[3]].kind].flows, 7);
}

#[test]
fn changes_that_give_one_key_different_values_are_levels_of_a_factor() {
    let budgets = "[variants.small]\nfrom = \"rules\"\nrules.before = 5\n[variants.large]\nfrom = \"router\"\n\
            rules = { tool = \"nftables\", filter = \"stateless\", before = 1000 }";
    let tuning = Tuning::of(&plan(&(PLAN.to_string() + budgets))).unwrap();
    let factors: Vec<Option<&str>> = tuning
        .changes
        .iter()
        .map(|change| change.factor.as_deref())
        .collect();
    let before = Some("rules.before");
    assert_eq!(factors, [None, None, before, before, before]);
    assert_eq!(tuning.factor_of(), [0, 1, 2, 2, 2]);
}

/// A name has two spellings, and a value may have quotes.
#[test]
fn one_change_in_other_words_is_no_second_change() {
    let more = r#"
            [variants.slashes]
            from = "router"
            sysctls = { "net/ipv4/conf/all/rp_filter" = "0" }
            [variants.as-before]
            from = "router"
            sysctls = { "net/ipv4/conf/all/rp_filter" = true }
            [variants.strict]
            from = "router"
            sysctls = { "net/ipv4/conf/all/rp_filter" = "2" }
        "#;
    let plan = plan(&(PLAN.to_string() + more));
    let tuning = Tuning::of(&plan).unwrap();
    let left_out: Vec<(&str, &str)> = tuning
        .left_out
        .iter()
        .map(|left| (left.name.as_str(), left.reason.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            ("slashes", "'loose' is the same change"),
            ("as-before", NOTHING_NEW)
        ]
    );
    let strict = tuning.changes.last().unwrap();
    let key = "sysctls.net.ipv4.conf.all.rp_filter";
    assert_eq!(strict.keys(), [format!("{key} = 2")]);
    assert_eq!(strict.factor.as_deref(), Some(key));
    let said = Tuning::warnings(&plan);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|one| !one.is_fault()), "{said:?}");
    let place = said[1].place.unwrap();
    assert!(said[1].message.contains("does not try 'as-before'"));
    assert_eq!(place.line, PLAN.lines().count() + 4, "{said:?}");
    // In one table, it is a fault of any plan.
    let twice = PLAN.replace(
        "\"net.ipv4.conf.all.rp_filter\" = 0",
        "\"net.ipv4.conf.all.rp_filter\" = 0, \"net/ipv4/conf/all/rp_filter\" = 1",
    );
    let fault = &Plan::read(twice.as_bytes()).unwrap_err()[0];
    assert!(fault.message.contains("has a value already"), "{fault}");
}

#[test]
fn faults() {
    let fault = |text: &str| Tuning::of(&plan(text)).unwrap_err()[0].message.clone();
    // A change that excludes two others, which do not exclude each other.
    let both = PLAN.to_string()
        + "[variants.both]\nfrom = \"rules\"\nrules.before = 5\ninterface.gro = true";
    assert_eq!(
        fault(&both),
        "'both' cannot be made together with 'no-gro', because they give interface.gro different values; nor with 'rules', because \
             they give rules.before different values: variants that exclude each other must all set the same key, each to another value"
    );
    let warnings = Tuning::warnings(&plan(&both));
    assert!(
        warnings[0]
            .message
            .starts_with("`linerate tune` refuses this plan: 'both' cannot"),
        "{warnings:?}"
    );
    // Part of a change of another.
    let part = PLAN.to_string()
        + "[variants.part]\nfrom = \"no-gro\"\nsysctls = { \"net.ipv4.tcp_sack\" = 0 }";
    assert!(
        fault(&part).contains("'no-gro' and 'part' both set interface.gro = false"),
        "{}",
        fault(&part)
    );
    let many: String = (0..=MOST)
        .map(|n| format!("[variants.m{n}]\nfrom = \"router\"\nsysctls = {{ \"a.b{n}\" = 1 }}\n"))
        .collect();
    assert!(fault(&(PLAN.to_string() + &many)).contains("at most 30"));
    let factor = PLAN.to_string() + "[factors.flows]\nsets = \"traffic.flows\"\nlevels = [1, 2]";
    assert!(fault(&factor).contains("factor 'flows'"));
    assert!(
        Tuning::warnings(&plan(&factor)).is_empty(),
        "it is for `run`"
    );
    let alone = PLAN.split("[variants.loose]").next().unwrap().to_string()
        + "[trials]\nduration = \"1 s\"\nblocks = 6";
    assert!(fault(&alone).contains("no changes"));
}
