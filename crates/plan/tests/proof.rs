//! Experiments that prove a change.

use linerate_measure::experiment::System;
use linerate_plan::campaign::{Campaign, Lane};
use linerate_plan::proof::{AS_MEASURED, CHANGED, Change};
use linerate_plan::settings::{CardSetting, Dut};
use linerate_plan::{Plan, Proof};
use serde_json::{Value, json};

const BEGINNING: &str =
    "title = \"t\"\nquestion = \"q\"\ntrials = { duration = \"2 s\", blocks = 99 }\n";

fn campaign(lines: &str) -> Campaign {
    let file = |_: &str| {
        Ok("table ip f { chain c { iifname \"lan0\" oifname \"wan0\" accept; } }".to_string())
    };
    let plan = Plan::read_with(format!("{BEGINNING}{lines}").as_bytes(), &mut { file });
    let plan = plan.unwrap_or_else(|faults| panic!("{faults:#?}"));
    plan.campaign(plan.systems[0], false).unwrap().clone()
}

/// The proof of a change of the last cell.
fn proof(campaign: &Campaign, patch: Value) -> Result<Proof, String> {
    let change = Change {
        words: "a change",
        because: "it costs nothing",
        patch: &patch,
        beside_plain: false,
    };
    Proof::new(campaign, campaign.cells.len() - 1, &change, &beside)
        .map_err(|faults| faults[0].to_string())
}

/// A file stays where the plan names it.
fn beside(file: &str) -> String {
    file.into()
}

fn lane<'p>(proof: &'p Proof, variant: &str) -> &'p Lane {
    let lanes = &proof.campaign.lanes;
    lanes
        .iter()
        .find(|lane| lane.variants == [variant])
        .unwrap_or_else(|| panic!("{variant}: {}", proof.text))
}

#[test]
fn the_plan_is_one_that_a_person_would_write() {
    let measured = campaign(
        "traffic = { flows = 7, rate = \"500 kpps\" }\nlab.mode = \"threaded\"\n[variants.filtered]\n\
         rules = { tool = \"nftables\", filter = \"stateless\" }\nsysctls.\"net.ipv4.conf.all.rp_filter\" = 1\n\
         [factors.rules]\nsets = \"rules.before\"\nlevels = [10, 1000]",
    );
    let patch =
        json!({ "rules": { "before": 0 }, "sysctls": { "net.ipv4.conf.all.rp_filter": 0 } });
    let words = "neither rules nor a reverse-path filter";
    let change = Change {
        words,
        because: "frames went through 1,000 rules",
        patch: &patch,
        beside_plain: false,
    };
    let proof = Proof::new(&measured, measured.cells.len() - 1, &change, &beside).unwrap();
    assert_eq!(proof.text, include_str!("proof.toml"));
    assert_eq!(proof.campaign.cells.len(), 3, "with the ceiling");
    assert!(
        proof.campaign.cells[1..]
            .iter()
            .all(|cell| cell.ceiling == Some(0))
    );
}

/// Some causes show only beside plain forwarding. Where the change leaves plain forwarding, nothing is added.
#[test]
fn plain_forwarding_is_measured_where_the_cause_needs_it() {
    let variants = |settings: &str, patch: Value| {
        let measured = campaign(settings);
        let change = Change {
            words: "w",
            because: "b",
            patch: &patch,
            beside_plain: true,
        };
        let proof = Proof::new(&measured, measured.cells.len() - 1, &change, &beside).unwrap();
        let lanes = proof.campaign.lanes.into_iter();
        let names = lanes.map(|lane| lane.variants.concat());
        names
            .filter(|name| name != "tester-baseline")
            .collect::<Vec<_>>()
    };
    let copied = "[variants.copied]\ncommands = [{ run = \"tc copy\", undo = \"true\" }]";
    let more = json!({ "commands": [{ "run": "tc no copy", "undo": "true" }] });
    assert_eq!(variants(copied, more), ["as-measured", "changed", "plain"]);
    let other = variants(
        "[variants.other]\ndut = \"macvlan\"",
        json!({ "dut": "forwarding" }),
    );
    assert_eq!(other, ["as-measured", "changed"]);
}

/// Every cell of plans of many kinds: the experiment has its settings and its traffic, and the change alone differs.
#[test]
fn the_dut_is_as_it_was_measured() {
    const PLANS: [&str; 9] = [
        include_str!("../../../plans/tables.toml"),
        include_str!("../../../plans/states.toml"),
        include_str!("../../../plans/mtu.toml"),
        include_str!("../../../plans/offloads.toml"),
        include_str!("../../../plans/queues.toml"),
        include_str!("../../../plans/families.toml"),
        include_str!("../../../plans/planted.toml"),
        include_str!("../../../plans/lab/tuning.toml"),
        include_str!("../../../plans/lab/harvest.toml"),
    ];
    for text in PLANS {
        let plan = Plan::read(text.as_bytes()).unwrap();
        let measured = plan.campaign(plan.systems[0], false).unwrap();
        let patch = json!({ "sysctls": { "kern.x": 7 } });
        let change = Change {
            words: "w",
            because: "b",
            patch: &patch,
            beside_plain: false,
        };
        for (at, cell) in measured
            .cells
            .iter()
            .enumerate()
            .filter(|(at, _)| !measured.is_ceiling(*at))
        {
            let proof = Proof::new(measured, at, &change, &beside);
            let proof = proof.unwrap_or_else(|f| panic!("{}: {f:#?}", cell.name));
            let mut settings = measured.lanes[cell.lane].settings.clone();
            assert_eq!(
                lane(&proof, AS_MEASURED).settings,
                settings,
                "{}",
                proof.text
            );
            settings.sysctls.insert("kern.x".into(), "7".into());
            assert_eq!(lane(&proof, CHANGED).settings, settings, "{}", proof.text);
            assert_eq!(
                proof.campaign.kinds,
                [measured.kinds[cell.kind].clone()],
                "{}",
                proof.text
            );
            let variants = proof
                .campaign
                .cells
                .iter()
                .filter(|cell| cell.variant != "tester-baseline");
            assert!(
                variants.clone().count() == 2 && variants.clone().all(|own| own.rate == cell.rate)
            );
            assert_eq!(
                (&proof.campaign.lab, proof.campaign.experiment.link_speed),
                (&measured.lab, measured.experiment.link_speed)
            );
            assert_eq!(proof.campaign.experiment.system, measured.experiment.system);
        }
    }
}

#[test]
fn settings_are_removed_overridden_and_added() {
    let measured = campaign(
        "[variants.v]\nfrom = \"nat\"\ninterface.in = { gro = true, rps = \"0\" }\ndut = \"vlan\"\n\
         commands = [{ run = \"a\", undo = \"b\" }]",
    );
    let patch = json!({
        "rules": null, "dut": "forwarding", "interface": { "gro": false, "in": { "rps": null } },
        "commands": [{ "run": "c", "undo": "d" }],
    });
    let proof = proof(&measured, patch).unwrap();
    let changed = &lane(&proof, CHANGED).settings;
    assert_eq!(
        (changed.dut, &changed.rules, &changed.inside.rps),
        (Dut::Forwarding, &None, &None)
    );
    for end in [&changed.inside, &changed.outside] {
        assert_eq!(end.is_on(CardSetting::Gro), Some(false), "{}", proof.text);
    }
    let commands: Vec<&str> = changed
        .commands
        .iter()
        .map(|command| command.run.as_str())
        .collect();
    assert_eq!(commands, ["a", "c"]);
    assert!(lane(&proof, AS_MEASURED).settings.rules.is_some());
}

#[test]
fn rule_files_go_with_the_plan() {
    let measured = campaign(
        "[variants.own]\nrules = { file = \"/etc/fw/own.nft\", map = { lan0 = \"in\", wan0 = \"out\" } }",
    );
    let proof = proof(&measured, json!({ "cpus": 2 })).unwrap();
    let (was, is) = (
        &measured.lanes[1].settings.rule_file,
        &lane(&proof, CHANGED).settings.rule_file,
    );
    let (was, is) = (was.as_ref().unwrap(), is.as_ref().unwrap());
    assert_eq!(
        (&is.text, &is.map, is.file.as_str()),
        (&was.text, &was.map, "own.nft")
    );
    assert_eq!(proof.files.get("own.nft"), Some(&was.text));
}

#[test]
fn hosts_have_blocks_and_reboots() {
    let measured = campaign("[lab]\nfile = \"lab.toml\"\nsystems = [\"freebsd\"]\n[variants.v]");
    let proof = proof(&measured, json!({ "boot": { "hw.ix.unsupported_sfp": 1 } })).unwrap();
    let trials = &proof.campaign.experiment.trials;
    assert_eq!(
        (
            trials.blocks,
            trials.duration_ns,
            proof.campaign.experiment.system
        ),
        (Some(10), 2_000_000_000, System::FreeBsd)
    );
    assert!(
        proof.text.contains("reboot = \"when-needed\"")
            && proof.text.contains("file = \"lab.toml\"")
    );
}

#[test]
fn impossible_changes_say_why() {
    let measured = campaign("[variants.v]\ninterface.gro = false");
    for (patch, why) in [
        (json!({ "interface": { "gor": true } }), "no key 'gor'"),
        (json!({ "interface": { "gro": 1 } }), "does not belong here"),
        (json!({ "interface": { "rx-ring": 512 } }), "cannot be set"),
        (json!({ "interface": { "gro": false } }), "changes nothing"),
        (
            json!({ "rules": { "tool": "pf", "filter": "stateless" } }),
            "pf",
        ),
        (json!("all of it"), "a table of a variant's keys"),
    ] {
        let said = proof(&measured, patch.clone())
            .map(|proof| proof.text)
            .unwrap_err();
        assert!(said.contains(why), "{patch}: {said}");
    }
}

#[test]
fn records_without_the_author_s_text_say_so() {
    let measured = Campaign {
        source: String::new(),
        ..campaign("[variants.v]")
    };
    let said = proof(&measured, json!({ "cpus": 2 })).unwrap_err();
    assert!(
        said.contains("no plan as its author wrote it") && said.contains("measure it again"),
        "{said}"
    );
}

/// The quick form has levels and times of its own, and a section for a system is part of its variants.
#[test]
fn levels_of_the_quick_form_and_sections_of_systems_are_in_the_text() {
    let lines = "lab = { file = \"lab.toml\", systems = [\"linux\", \"opnsense\"] }\n[variants.v]\nsysctls.a = 1\n\
         freebsd.sysctls.b = 2\nopnsense.sysctls.c = 3\nlinux.sysctls.d = 4\n[factors.flows]\nsets = \"traffic.flows\"\n\
         levels = [1, 2]\n[quick]\nlevels.flows = [7, 8]";
    let plan = Plan::read(format!("{BEGINNING}{lines}").as_bytes()).unwrap();
    let measured = plan.campaign(System::OpnSense, true).unwrap();
    let proof = proof(measured, json!({ "sysctls": { "b": 5 } })).unwrap();
    assert_eq!(proof.campaign.kinds[0].flows, 8);
    let settings = |variant: &str| format!("{:?}", lane(&proof, variant).settings.sysctls);
    assert_eq!(settings(AS_MEASURED), r#"{"a": "1", "b": "2", "c": "3"}"#);
    assert_eq!(settings(CHANGED), r#"{"a": "1", "b": "5", "c": "3"}"#);
}
