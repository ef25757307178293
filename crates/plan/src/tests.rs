//! Plans as a whole: results of good ones, and messages about bad ones.

mod faults;
mod firewalls;
mod hostile;
mod results;
mod schema;
mod times;

use super::campaign::Requirement;
use super::rules::{Firewall, Kind};
use super::settings::{CardSetting, CardValue, Cpus, Dut, cpu_mask};
use super::*;
use linerate_measure::experiment::{Claim, Interest, Order};
use linerate_measure::strategy::first_blocks;
use linerate_wire::Family;

/// A plan with these lines added to the least that a plan needs.
fn plan(lines: &str) -> Result<Plan, Vec<Diagnostic>> {
    const LEAST: &str =
        "title = \"t\"\nquestion = \"q\"\ntrials = { duration = \"100 ms\", blocks = 10 }\n";
    Plan::read(format!("{LEAST}{lines}").as_bytes())
}

fn linux(lines: &str) -> Campaign {
    plan(lines)
        .unwrap_or_else(|f| panic!("{f:#?}"))
        .campaign(System::Linux, false)
        .unwrap()
        .clone()
}

fn names(campaign: &Campaign) -> Vec<&str> {
    campaign.cells.iter().map(|c| c.name.as_str()).collect()
}

#[test]
fn what_leaves_the_closed_loop_is_remarked() {
    let plan = |lab: &str, set: &str| {
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\n[lab]\n{lab}\n[variants.a]\nabout = \"a\"\n[variants.b]\n{set}\n[trials]\nduration = \"10 ms\"\nblocks = 10\n"
        );
        let plan = Plan::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}"));
        plan.remarks
            .iter()
            .map(|remark| remark.message.clone())
            .collect::<Vec<_>>()
    };
    for set in ["interface.in.rps = \"1\"", "interface.threaded-napi = true"] {
        let remarks = plan("", set);
        assert!(
            remarks.len() == 1 && remarks[0].starts_with("'b': inline, the load"),
            "{set}: {remarks:?}"
        );
        assert!(plan("mode = \"threaded\"", set).is_empty(), "{set}");
        assert!(plan("file = \"lab.toml\"", set).is_empty(), "{set}");
    }
    assert!(plan("", "interface.in.gro = false").is_empty());
}

#[test]
fn the_least_plan_has_a_cell_and_its_ceiling() {
    let campaign = linux("[variants.forwarding]");
    assert_eq!(names(&campaign), ["tester-baseline", "forwarding"]);
    let cell = &campaign.cells[1];
    assert_eq!((cell.ceiling, cell.baseline, cell.kind), (Some(0), None, 0));
    assert!(campaign.is_ceiling(0) && !campaign.is_ceiling(1));
    assert_eq!(
        (
            campaign.kinds[0].flows,
            campaign.kinds[0].size.pattern.as_slice()
        ),
        (2000, &[64][..])
    );
    assert_eq!(campaign.experiment.trials.order, Order::Blocks);
    assert!(campaign.experiment.comparisons.is_empty());
}

#[test]
fn what_a_variant_says_beats_what_it_is_from_and_lists_are_added_to() {
    let lines = r#"
        lab = { file = "lab.toml", systems = ["linux", "freebsd", "opnsense"] }
        [variants.a]
        modules = ["one"]
        sysctls = { x = 1, y = true }
        interface = { mtu = "1500 B", tso = false, out.mtu = "9000 B" }
        freebsd.sysctls = { x = 2 }
        freebsd.modules = ["two"]
        [variants.b]
        from = "a"
        modules = ["one", "three"]
        sysctls = { y = "text" }
        opnsense.sysctls = { x = 3 }
        freebsd.interface = { in.lro = false }
    "#;
    let plan = plan(lines).unwrap();
    let settings = |system: System| {
        let campaign = plan.campaign(system, false).unwrap();
        let cell = campaign.cells.iter().find(|c| c.variant == "b").unwrap();
        campaign.lanes[cell.lane].settings.clone()
    };
    let (linux, freebsd, opnsense) = (
        settings(System::Linux),
        settings(System::FreeBsd),
        settings(System::OpnSense),
    );
    assert_eq!(
        (linux.sysctls["x"].as_str(), linux.sysctls["y"].as_str()),
        ("1", "text")
    );
    assert_eq!(
        (
            freebsd.sysctls["x"].as_str(),
            opnsense.sysctls["x"].as_str()
        ),
        ("2", "3")
    );
    assert_eq!(linux.modules, ["one", "three"]);
    assert_eq!(opnsense.modules, ["one", "two", "three"]);
    assert_eq!(
        (linux.inside.mtu, linux.outside.mtu),
        (Some(1500), Some(9000))
    );
    const OFF: CardValue = CardValue::Switch(false);
    assert_eq!(
        freebsd.inside.set,
        [(CardSetting::Tso, OFF), (CardSetting::Lro, OFF)].into()
    );
    assert_eq!(freebsd.outside.set, [(CardSetting::Tso, OFF)].into());
}

#[test]
fn a_rule_set_can_be_left_out_again() {
    let lines = r#"
        [variants.a]
        rules = { tool = "nftables", filter = "nat", before = 5, table = 7, states = 9, hash = "default" }
        [variants.b]
        from = "a"
        rules.filter = "none"
    "#;
    let campaign = linux(lines);
    let rules = |at: usize| {
        campaign.lanes[campaign.cells[at].lane]
            .settings
            .rules
            .clone()
    };
    let set = rules(1).unwrap();
    assert_eq!(
        (set.firewall, set.kind, set.rules_before),
        (Firewall::Nftables, Kind::Nat, 5)
    );
    assert_eq!(
        (set.table, set.states, set.hash_sized),
        (Some(7), Some(9), false)
    );
    assert_eq!(rules(2), None);
}

#[test]
fn crossed_factors_multiply_and_others_add() {
    let lines = r#"
        [variants.a]
        [variants.b]
        dut = "bridge"
        [factors.family]
        sets = "traffic.family"
        levels = ["IPv4", "IPv6"]
        [factors.queues]
        sets = "interface.queues"
        levels = [1, 2, 4]
        combine = "alone"
        variants = ["a"]
        [factors.flows]
        sets = "traffic.flows"
        levels = [10, 20]
        combine = "alone"
        variants = ["a"]
    "#;
    let campaign = linux(lines);
    let of = |variant: &str| {
        campaign
            .cells
            .iter()
            .filter(|c| c.variant == variant)
            .count()
    };
    assert_eq!((of("a"), of("b")), (2 * (3 + 2), 2));
    // The tester's ceiling depends on frames, not on the DUT's queues: default flows, 10 and 20, of each family.
    assert_eq!(of("tester-baseline"), 6);
    assert!(names(&campaign).contains(&"a, family IPv6, queues 4"));
    assert!(names(&campaign).contains(&"tester-baseline, family IPv6, flows 20"));
    let six = campaign
        .cells
        .iter()
        .find(|c| c.name == "a, family IPv6, flows 20")
        .unwrap();
    assert_eq!(
        (
            campaign.kinds[six.kind].family,
            campaign.kinds[six.kind].flows
        ),
        (Family::V6, 20)
    );
    assert_eq!(
        campaign.kinds[six.kind].size.name, "84",
        "the least that carries a signature"
    );
    assert_eq!(
        campaign.experiment.factors[1].numbers,
        Some(vec![1.0, 2.0, 4.0])
    );
    assert_eq!(campaign.experiment.factors[0].numbers, None);
}

#[test]
fn cells_that_need_the_same_share_a_lane_unless_they_stand_apart() {
    let lines = r#"
        [variants.a]
        [variants.same]
        from = "a"
        [variants.apart]
        from = "a"
        apart = true
        [variants.host]
        sysctls = { "net.core.dev_weight" = 16 }
    "#;
    let campaign = linux(lines);
    let lane = |name: &str| {
        campaign
            .cells
            .iter()
            .find(|c| c.variant == name)
            .unwrap()
            .lane
    };
    assert_eq!(lane("a"), lane("same"));
    assert_ne!(lane("a"), lane("apart"));
    assert_eq!(campaign.lanes[lane("a")].variants, ["a", "same"]);
    let group = |name: &str| campaign.lanes[lane(name)].group;
    assert_eq!(group("a"), group("apart"));
    assert_ne!(
        group("a"),
        group("host"),
        "it changes what all namespaces share"
    );
}

#[test]
fn each_number_of_cpus_has_a_ceiling_of_its_own() {
    let campaign = linux("[variants.a]\n[factors.cores]\nsets = \"cpus\"\nlevels = [1, \"all\"]");
    assert_eq!(
        names(&campaign),
        [
            "tester-baseline, cores 1",
            "a, cores 1",
            "tester-baseline, cores all",
            "a, cores all"
        ]
    );
    assert_eq!(
        (campaign.cpus(0), campaign.cpus(2)),
        (Some(&Cpus::Count(1)), Some(&Cpus::All))
    );
    assert_eq!(campaign.cells[3].baseline, Some(1));
    assert!(
        campaign.lanes[campaign.cells[1].lane]
            .requirements
            .contains(&Requirement::Cpus(1))
    );
}

#[test]
fn a_plan_of_the_tester_alone_needs_no_other_ceiling() {
    let campaign = linux("[variants.tester-baseline]\ndut = \"tester-baseline\"");
    assert_eq!(names(&campaign), ["tester-baseline"]);
    assert_eq!(campaign.lanes[0].settings.dut, Dut::TesterBaseline);
    let campaign = linux("[variants.a]\n[variants.alone]\ndut = \"tester-baseline\"");
    assert_eq!(names(&campaign), ["alone", "a"]);
    assert_eq!(campaign.cells[1].ceiling, Some(0));
}

#[test]
fn comparisons_are_of_variants_levels_and_expectations() {
    let lines = r#"
        [variants.base]
        [variants.nft]
        rules = { tool = "nftables", filter = "stateless" }
        [factors.rules]
        sets = "rules.before"
        levels = [0, 10, 100]
        variants = ["nft"]
        [compare]
        with = "base"
        what = ["variants"]
        [[expect]]
        of = { rules = 100 }
        is = "slower"
        than = { rules = 10 }
        by = "5 %"
        because = "why"
        [[expect]]
        of = "nft"
        is = "same"
        than = "tester-baseline"
        within = "10 %"
        because = "why"
        [[expect]]
        of = "base"
        is = "at-least"
        rate = "100 kpps"
        because = "why"
    "#;
    let c = linux(lines);
    let at = |name: &str| c.cells.iter().position(|cell| cell.name == name).unwrap();
    let found = |of: &str, than: &str| {
        c.experiment
            .comparisons
            .iter()
            .find(|x| (x.of, x.than) == (at(of), at(than)))
            .unwrap()
    };
    assert!(found("nft, rules 100", "base").decides);
    assert_eq!(
        found("nft, rules 100", "nft, rules 0").why,
        Interest::Levels(0)
    );
    assert!(!found("nft, rules 100", "nft, rules 0").decides);
    assert_eq!(
        found("nft, rules 100", "nft, rules 10").why,
        Interest::Expectation(0)
    );
    assert_eq!(c.experiment.expectations[0].claim, Claim::Slower(0.05));
    assert_eq!(
        c.experiment.expectations[0].words,
        "rules 100 is at least 5 % slower than rules 10"
    );
    assert_eq!(c.experiment.expectations[1].pairs.len(), 3);
    assert_eq!(
        c.experiment.expectations[1].pairs[0],
        (at("nft, rules 0"), Some(at("tester-baseline")))
    );
    assert_eq!(c.experiment.expectations[2].pairs, [(at("base"), None)]);
    assert_eq!(c.cells[at("nft, rules 10")].baseline, Some(at("base")));
}

#[test]
fn the_quick_form_is_shorter_and_drops_what_it_does_not_have() {
    let lines = r#"
        [variants.a]
        [variants.b]
        dut = "bridge"
        [factors.flows]
        sets = "traffic.flows"
        levels = [1, 10, 1000]
        [[expect]]
        of = { flows = 10 }
        is = "same"
        than = { flows = 1 }
        within = "10 %"
        because = "why"
        [quick]
        duration = "50 ms"
        blocks = 7
        variants = ["a"]
        levels.flows = [1, 5]
    "#;
    let plan = plan(lines).unwrap();
    let (full, quick) = (
        plan.campaign(System::Linux, false).unwrap(),
        plan.campaign(System::Linux, true).unwrap(),
    );
    assert_eq!(
        names(quick),
        [
            "tester-baseline, flows 1",
            "a, flows 1",
            "tester-baseline, flows 5",
            "a, flows 5"
        ]
    );
    assert_eq!(
        (
            quick.experiment.trials.duration_ns,
            quick.experiment.trials.blocks
        ),
        (50_000_000, Some(7))
    );
    assert_eq!(
        (
            full.experiment.expectations[0].pairs.len(),
            quick.experiment.expectations[0].pairs.len()
        ),
        (2, 0)
    );
    assert!(Timetable::new(quick).total_ns < Timetable::new(full).total_ns);
}

#[test]
fn too_few_blocks_are_remarked() {
    let lines =
        "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"1 s\"\nblocks = 5";
    let remarks = Plan::read(lines.as_bytes()).unwrap().remarks.to_vec();
    assert!(
        remarks[0].message.contains("5 blocks") && remarks[0].place.unwrap().line == 4,
        "{remarks:?}"
    );
}

#[test]
fn changes_are_named_with_their_reach() {
    use changes::{Reach, changes};
    let lines = r#"
        [variants.a]
        modules = ["tcp_bbr"]
        sysctls = { "net.ipv4.ip_forward" = 1, "kernel.numa_balancing" = 0 }
        interface = { mtu = "9000 B", in.rps = "0-1" }
        routes.count = 1000
        neighbours.explicit = [{ address = "198.19.0.9", mac = "02:00:00:00:00:09", end = "in" }]
        rules = { tool = "nftables", filter = "stateful", before = 10, states = 5000 }
        files = [{ path = "x.conf", text = "a\nb\n" }]
        commands = [{ run = "true", undo = "false" }]
    "#;
    let all = changes(&linux(lines));
    assert_eq!(all.len(), 1);
    let line = |what: &str| {
        all[0]
            .changes
            .iter()
            .find(|c| c.what.starts_with(what))
            .unwrap()
    };
    assert_eq!(line("module tcp_bbr").reach, Reach::Stays);
    assert_eq!(
        (
            line("sysctl net.ipv4").to.as_str(),
            line("sysctl net.ipv4").reach
        ),
        ("1", Reach::Namespace)
    );
    assert_eq!(line("sysctl kernel").reach, Reach::Host);
    assert_eq!(line("interfaces mtu").to, "9000");
    assert_eq!(line("interface in rps").to, "0-1");
    assert!(line("routing table").to.starts_with("1,000 routes more"));
    assert_eq!(line("neighbour 198.19.0.9").to, "02:00:00:00:00:09 (in)");
    assert_eq!(
        line("rule set of nftables").to,
        "stateful, 10 rules that match nothing"
    );
    assert_eq!(line("limit of states").reach, Reach::Host);
    assert_eq!(line("file x.conf").to, "2 lines");
    assert_eq!(line("command `true`").to, "undone by `false`");
}

#[test]
fn campaigns_are_read_as_they_were_written() {
    let campaign = Plan::read(EXAMPLE.as_bytes())
        .unwrap()
        .campaign(System::Linux, false)
        .unwrap()
        .clone();
    let text = serde_json::to_string(&campaign).unwrap();
    let read = serde_json::from_str::<Campaign>(&text).unwrap();
    assert_eq!(
        Campaign {
            source: EXAMPLE.into(),
            ..read
        },
        campaign
    );
}

#[test]
fn a_lane_has_the_rule_set_of_its_system_and_of_its_traffic() {
    use crate::rules::{Families, Firewall};
    let lines = r#"
        lab = { file = "lab.toml", systems = ["freebsd", "openbsd"] }
        [variants.a]
        rules = { tool = "pf", filter = "nat", before = 3, states = 9, hash = "default", optimize = false }
        [factors.family]
        sets = "traffic.family"
        levels = ["IPv6", "IPv4"]
    "#;
    let plan = plan(lines).unwrap();
    for (system, firewall) in [
        (System::FreeBsd, Firewall::Pf),
        (System::OpenBsd, Firewall::OpenbsdPf),
    ] {
        let campaign = plan.campaign(system, false).unwrap();
        assert_eq!(campaign.families(0), [Family::V4, Family::V6]);
        let set = campaign.rule_set(0, Some(["ix0", "ix1"])).unwrap();
        assert_eq!(
            (set.firewall, set.families, set.rules_before),
            (firewall, Some(Families::Both), 3)
        );
        assert_eq!(
            (set.states, set.hash_sized, set.optimize),
            (Some(9), false, false)
        );
        assert_eq!(set.interface.as_deref(), Some("ix1"));
        assert!(set.faults().is_empty());
    }
}

#[test]
fn images_are_levels_of_a_factor_and_groups_of_their_own() {
    let lines = r#"
        lab = { file = "lab.toml", systems = ["freebsd"] }
        title = "t"
        question = "q"
        trials = { duration = "100 ms", blocks = 10, reboot = "when-needed" }
        collect.during = ["vmstat -i 1"]
        [variants.own]
        [variants.new]
        image = { install = "xzcat | upgrade", undo = "boot0cfg -s 1 ada0" }
        [factors.image]
        sets = "image.file"
        levels = ["a.img.xz", "b.img.xz"]
        variants = ["new"]
    "#;
    let plan = Plan::read(lines.as_bytes()).unwrap();
    let campaign = plan.campaign(System::FreeBsd, false).unwrap();
    let files: Vec<Option<&str>> = campaign
        .lanes
        .iter()
        .map(|l| l.settings.image.as_ref().map(|i| i.file.as_str()))
        .collect();
    assert_eq!(files, [None, Some("a.img.xz"), Some("b.img.xz")]);
    let groups: Vec<usize> = campaign.lanes.iter().map(|l| l.group).collect();
    assert_eq!(groups, [0, 1, 2]);
    assert_eq!(campaign.collect.during, ["vmstat -i 1"]);
    let changes = super::changes::changes(campaign);
    let first = &changes.iter().find(|c| c.lane == Some(1)).unwrap().changes[0];
    assert_eq!(
        (first.what.as_str(), first.reach),
        ("image a.img.xz", super::changes::Reach::Boot)
    );
}

#[test]
fn orders_come_from_the_seed_and_sequential_is_sequential() {
    let read = |text: &str| Plan::read(text.as_bytes()).unwrap();
    let plan = read(
        "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[variants.b]\ndut = \"bridge\"\n[trials]\nduration = \"1 s\"\nblocks = 10",
    );
    let campaign = plan.campaign(System::Linux, false).unwrap();
    let blocks = first_blocks(campaign.design(7), 5);
    assert_eq!(blocks.len(), 5);
    for block in &blocks {
        let mut sorted = block.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
    }
    assert_eq!(blocks, first_blocks(campaign.design(7), 5));
    assert_ne!(blocks, first_blocks(campaign.design(8), 5));
    let lines = "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"1 s\"\nblocks = 6\norder = \"sequential\"";
    let plan = read(lines);
    assert_eq!(plan.remarks.len(), 1);
    let campaign = plan.campaign(System::Linux, false).unwrap();
    assert_eq!(
        first_blocks(campaign.design(1), 2),
        [vec![0, 0], vec![1, 1]]
    );
}

#[test]
fn masks_of_cpus_have_words_of_32_bits() {
    assert_eq!(cpu_mask(&[]), "00000000");
    assert_eq!(cpu_mask(&[0, 2, 3]), "0000000d");
    assert_eq!(cpu_mask(&[1, 32, 63]), "80000001,00000002");
}
