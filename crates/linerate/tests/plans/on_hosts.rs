//! `linerate plan show` about hosts: addresses that are asked for, firewalls that go off or are not there.

use super::for_hosts;
use crate::common::{Scratch, linerate, linerate_line};
use serde_json::Value;
use std::fs;

/// A plan of pkt-gen does not need the DUT's Ethernet address: the DUT is asked.
#[test]
fn an_address_that_is_asked_for_has_a_name_in_the_commands() {
    let scratch = Scratch::new();
    let lab = linerate(["lab", "example"]).run().ok().stdout;
    let lab = lab.replace("mac = \"00:0d:b9:41:ca:3d\"\n", "");
    let file = scratch.file("lab.toml");
    fs::write(&file, lab).unwrap();
    let shown = linerate(["plan", "show", "lab/forwarding", "--lab", &file])
        .run()
        .ok()
        .stdout;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("-D MAC-OF-router.in`")
            && flat.contains("(MAC-OF-router.in is asked at the start)"),
        "{shown}"
    );
    assert!(!shown.contains("cannot be measured"), "{shown}");
    // The firewalls of an OPNsense are off in this plan, whose variants have none.
    let lab = fs::read_to_string(&file).unwrap();
    fs::write(&file, lab.replace("bsdrp", "opnsense")).unwrap();
    let shown = linerate(["plan", "show", "lab/forwarding", "--lab", &file])
        .run()
        .ok()
        .stdout;
    for line in ["  pf: `script 1 with off`", "  ipfw off: `script "] {
        assert_eq!(shown.matches(line).count(), 2, "{line}\n{shown}");
    }
}

/// OPNsense has no IP Filter: its cells are left out, and take no time.
#[test]
fn what_a_system_lacks_takes_no_time() {
    let of = |system| {
        let args = [
            "plan",
            "show",
            "lab/firewalls",
            "--system",
            system,
            "--json",
        ];
        linerate(args).run().ok().json()
    };
    let (freebsd, opnsense) = (of("freebsd"), of("opnsense"));
    let cells = |of: &Value| of["campaign"]["cells"].as_array().unwrap().len();
    let seconds = |of: &Value| of["timetable"]["total_ns"].as_u64().unwrap();
    assert_eq!((cells(&freebsd), cells(&opnsense)), (14, 10));
    assert!(seconds(&opnsense) < seconds(&freebsd));
    assert!(!opnsense.to_string().contains("\"ipf-"));
}

/// The plan of docs/rules.md for the rules of an OPNsense. The page names the firewalls that go off, and no end that the plan lacks.
#[test]
fn a_router_s_own_rules_are_compared_with_no_packet_filter() {
    let scratch = Scratch::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = fs::read_to_string(format!("{root}/docs/rules.md")).unwrap();
    let (_, plan) = text.split_once("```toml\n").unwrap();
    let (plan, _) = plan.split_once("```").unwrap();
    let lab = linerate(["lab", "example", "three-hosts"]).run().ok();
    let lab = lab.stdout.replace("\"linux\"", "\"opnsense\"");
    fs::write(scratch.file("lab.toml"), lab).unwrap();
    fs::write(scratch.file("pf.conf"), "pass\n").unwrap();
    let file = scratch.file("plan.toml");
    let of = |verb: &str, text: &str| {
        fs::write(&file, text).unwrap();
        linerate(["plan", verb, &file]).run().ok().stdout
    };
    let checked = of("check", plan);
    assert!(
        checked.contains("plan.toml: no faults; 2 cells") && !checked.contains("warning"),
        "{checked}"
    );
    let shown = of("show", plan);
    for part in [
        "\nblocks    10: 20 trials\n",
        "What is compared\n  variants with the baseline, at the same levels: 1 comparison\n",
        "DUT for lane 1: without\n  firewalls of the host: off [on the host, put back afterwards]\n",
        "DUT for lane 2: with\n  other firewalls of the host: off [on the host, put back",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let until = "with = \"without\"\nuntil = \"1 %\"";
    let shown = of("show", &plan.replace("with = \"without\"", until));
    for part in [
        "\nblocks    10 at most: 20 trials\n",
        "levels: 1 comparison (the campaign goes on until these are precise)\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let silent = plan.replacen("rules = { filter = \"none\" }\n", "", 1);
    let checked = of("check", &silent);
    assert!(
        checked.contains("warning: 'without' keeps the rules that the host runs, and 'with'"),
        "{checked}"
    );
    let shown = of("show", &silent);
    assert!(
        shown.contains("Warning: line ") && !shown.contains("  firewalls of the host"),
        "{shown}"
    );
}

/// A lab file is no plan, and a plan no lab file: that is the one fault.
#[test]
fn plans_and_lab_files_are_told_apart() {
    let scratch = Scratch::new();
    let (plan, lab) = (for_hosts(&scratch), scratch.file("lab.toml"));
    let check = |line: &str| linerate_line(line).dir(scratch.path()).run();
    let told = check("plan check lab.toml").status(2).stdout;
    let says = "lab.toml: this is a lab file, and no plan\n       = `linerate lab check` checks lab files\n";
    assert_eq!(told, says);
    let says = ["this is a lab file, and no plan", "linerate lab check"];
    check("run lab.toml").fails(2, &says);
    let ended = check("lab check plan.toml");
    let told = format!("{}{}", ended.stdout, ended.stderr);
    ended.fails(2, &["plan.toml: this is a plan, and no lab file"]);
    assert!(
        told.contains("`linerate plan check`") && !told.contains("[hosts"),
        "{told}"
    );
    // Who writes both has a plan with a table too many.
    let both = fs::read_to_string(plan).unwrap()
        + &fs::read_to_string(lab)
            .unwrap()
            .split_once("[hosts")
            .map(|(_, hosts)| format!("\n[hosts{hosts}"))
            .unwrap();
    fs::write(scratch.file("both.toml"), both).unwrap();
    let told = check("plan check both.toml").status(2).stdout;
    assert!(
        told.contains("hosts") && !told.contains("this is"),
        "{told}"
    );
}
