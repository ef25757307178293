//! `linerate plan`, and the plans that come with it.

use crate::common::{LINERATE, Program, Scratch, linerate, linerate_line};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

mod on_hosts;
mod rule_files;
mod schema;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");

/// The plans of a folder.
fn plans(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder))
        .unwrap()
        .map(|e| e.unwrap().path());
    let mut plans: Vec<PathBuf> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    plans.sort();
    plans
}

fn name(plan: &Path) -> String {
    plan.file_stem().unwrap().to_string_lossy().into_owned()
}

fn show(plan: &Path, more: &[&str]) -> Value {
    let args = ["plan", "show", plan.to_str().unwrap(), "--json"];
    linerate(args.iter().chain(more)).run().ok().json()
}

#[test]
fn shipped_plans_have_no_faults() {
    let all: Vec<PathBuf> = plans(".").into_iter().chain(plans("lab")).collect();
    // By their names: the lab files that they name are examples.
    let names = all.iter().map(|plan| {
        let path = plan.strip_prefix(ROOT).unwrap().with_extension("");
        path.to_string_lossy().into_owned()
    });
    let args = ["plan", "check"].map(String::from);
    let ended = linerate(args.into_iter().chain(names)).run().ok();
    assert_eq!(
        ended.stdout.matches(": no faults; ").count(),
        all.len(),
        "{}",
        ended.stdout
    );
}

#[test]
fn every_experiment_is_there() {
    let embedded = [
        "a-a",
        "baseline",
        "bridge",
        "concurrent",
        "connection-rate",
        "connections",
        "directions",
        "established",
        "families",
        "firewalls",
        "flows",
        "forwarding",
        "http",
        "illegal",
        "macvlan",
        "modifiers",
        "mtu",
        "nat",
        "nat-ports",
        "nested",
        "new-states",
        "offloads",
        "planted",
        "queues",
        "routes",
        "rps",
        "rule-reload-stateful",
        "rules",
        "states",
        "synflood",
        "tables",
        "teardown",
        "threaded-napi",
        "tunnels",
        "vlan",
        "vrf",
        "vxlan",
        "xdp",
    ];
    let lab = [
        "baseline",
        "bridge",
        "card-features",
        "directions",
        "families",
        "firewalls",
        "forwarding",
        "harvest",
        "hyper-threading",
        "interrupts",
        "jail",
        "mtu",
        "nat",
        "new-states",
        "offloads",
        "queues",
        "queues-cxgbe",
        "receive-limit",
        "rules",
        "states",
        "tables",
        "tuning",
        "vlan",
    ];
    for (folder, names) in [(".", &embedded[..]), ("lab", &lab[..])] {
        let there: Vec<String> = plans(folder).iter().map(|p| name(p)).collect();
        for wanted in names {
            assert!(there.iter().any(|n| n == wanted), "{folder}/{wanted}");
        }
    }
}

#[test]
fn quick_forms_take_less_than_a_minute_each_and_ten_together() {
    let mut all = 0.0;
    for plan in plans(".") {
        let shown = show(&plan, &["--quick"]);
        let seconds = shown["timetable"]["total_ns"].as_f64().unwrap() / 1e9;
        assert!(seconds < 60.0, "{}: {seconds} s", plan.display());
        assert!(
            shown["timetable"]["blocks"].as_u64().unwrap() >= 6,
            "{}: too few blocks",
            plan.display()
        );
        all += seconds;
    }
    assert!(all > 60.0 && all < 600.0, "{all} s");
}

/// A plan is a test as well: its author must expect something of the quick form, except in the plan whose order of trials is
/// known to be wrong.
#[test]
fn quick_forms_judge_what_their_authors_expect() {
    for plan in plans(".").iter().filter(|p| name(p) != "sequential") {
        let campaign = &show(plan, &["--quick"])["campaign"];
        let judged = |e: &&Value| !e["pairs"].as_array().unwrap().is_empty();
        let expectations = campaign["expectations"].as_array().unwrap();
        assert!(
            expectations.iter().filter(judged).count() >= 1,
            "{}",
            plan.display()
        );
        let ceilings = campaign["cells"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["ceiling"].is_null());
        assert!(
            ceilings.count() >= 1,
            "{}: what can the tester do?",
            plan.display()
        );
    }
}

#[test]
fn every_plan_is_shown_for_every_system_and_form() {
    for plan in plans(".").into_iter().chain(plans("lab")) {
        let text = fs::read_to_string(&plan).unwrap();
        let path = plan.to_str().unwrap();
        let (named, others): (Vec<_>, Vec<_>) =
            ["linux", "vyos", "freebsd", "pfsense", "opnsense", "openbsd"]
                .into_iter()
                .partition(|system| {
                    let named =
                        |l: &str| l.starts_with("systems") && l.contains(&format!("\"{system}\""));
                    let derived = ["pfsense", "opnsense"].contains(system)
                        && text.contains("file = \"lab.toml\"")
                        && text
                            .lines()
                            .any(|l| l.starts_with("systems") && l.contains("\"freebsd\""));
                    derived
                        || text.lines().any(named)
                        || (*system == "linux" && !text.contains("file = \"lab.toml\""))
                });
        if let Some(other) = others.first() {
            let ended = linerate(["plan", "show", path, "--system", other]).run();
            let list = format!("`linerate plan list` shows which plans are for {other}");
            ended.fails(2, &["is not for", "it is for", &list]);
        }
        let [first, last] = [named.first(), named.last()];
        for system in first
            .into_iter()
            .chain(last.filter(|last| Some(*last) != first))
        {
            let shown = linerate(["plan", "show", path, "--system", system])
                .run()
                .ok()
                .stdout;
            for part in [
                "What is measured",
                "Schedule",
                "What will be changed",
                "time      about",
            ] {
                assert!(shown.contains(part), "{path}: no '{part}' in\n{shown}");
            }
            assert!(shown.is_ascii(), "{path}");
            let too_long = |line: &&str| line.len() > 120 && !line.contains('/');
            assert_eq!(shown.lines().find(too_long), None, "{path}");
        }
        if text.contains("\n[quick]") {
            let quick = linerate(["plan", "show", path, "--quick"]).run().ok();
            assert!(quick.stdout.contains("(quick form)"), "{path}");
        } else {
            linerate(["plan", "show", path, "--quick"])
                .run()
                .fails(2, &["has no quick form"]);
        }
    }
}

const BAD: &str = "title = \"t\"\nquestion = \"q\"\n[traffic]\nsize = 64\n[variants.a]\nfrom = \"b\"\n[variants.b]\nfrom = \"a\"\n\
                   [trials]\ndurration = \"1 s\"\nblocks = -1\n";

#[test]
fn bad_plans_are_told_with_their_places_and_nothing_is_touched() {
    let scratch = Scratch::new();
    let file = scratch.file("bad.toml");
    fs::write(&file, BAD).unwrap();
    let ended = linerate(["plan", "check", &file])
        .dir(scratch.path())
        .run()
        .status(2);
    for part in [
        "bad.toml:4:8: 64 of what? The unit is missing",
        "     4 | size = 64\n       |        ^^\n       = write \"64 B\"",
        "bad.toml:6:8: these variants are from each other: a from b from a",
        "bad.toml:10:1: [trials] has no key 'durration'",
        "did you mean 'duration'?",
        "bad.toml:11:10: -1 is negative",
    ] {
        assert!(
            ended.stdout.contains(part),
            "no '{part}' in\n{}",
            ended.stdout
        );
    }
    linerate(["plan", "show", &file])
        .run()
        .fails(2, &["bad.toml:4:8", "did you mean 'duration'?"]);
    assert_eq!(
        fs::read_dir(scratch.path()).unwrap().count(),
        1,
        "something was left behind"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), BAD);
}

/// A plan for hosts with ipfw and pf, and a lab with a router of FreeBSD.
fn for_hosts(scratch: &Scratch) -> String {
    let lab = linerate(["lab", "example", "three-hosts"])
        .run()
        .ok()
        .stdout;
    let lab = lab.replace("system = \"linux\"", "system = \"freebsd\"");
    fs::write(scratch.file("lab.toml"), lab).unwrap();
    let plan = linerate(["plan", "example", "lab/firewalls"])
        .run()
        .ok()
        .stdout;
    let file = scratch.file("plan.toml");
    fs::write(&file, plan).unwrap();
    file
}

#[test]
fn the_lab_file_of_a_plan_is_checked() {
    let scratch = Scratch::new();
    let (plan, lab) = (for_hosts(&scratch), scratch.file("lab.toml"));
    let check = |more: &[&str]| linerate([&["plan", "check", &plan], more].concat()).run();
    let told = check(&[]).ok().stdout;
    assert!(
        told.contains("lab.toml: no faults; generator generator; dut router"),
        "{told}"
    );
    let bad = fs::read_to_string(&lab)
        .unwrap()
        .replace("role = \"dut\"", "role = \"dutt\"");
    fs::write(scratch.file("bad.toml"), bad).unwrap();
    let told = check(&["--lab", &scratch.file("bad.toml")])
        .status(2)
        .stdout;
    assert!(
        told.contains("bad.toml:2") && told.contains("did you mean"),
        "{told}"
    );
    fs::remove_file(lab).unwrap();
    check(&[]).fails(1, &["cannot read the lab file", "lab.toml", "lab example"]);
    // The lab file that a plan of linerate names is an example.
    linerate(["plan", "check", "lab/firewalls"])
        .dir(scratch.path())
        .run()
        .ok();
    linerate(["plan", "check", "firewalls", "--lab", &plan])
        .run()
        .fails(2, &["--lab has no meaning"]);
}

#[test]
fn scripts_for_hosts_are_shown_with_what_undoes_them() {
    let scratch = Scratch::new();
    let plan = for_hosts(&scratch);
    let shown = linerate(["plan", "show", &plan, "--scripts"])
        .run()
        .ok()
        .stdout;
    let (_, of_pf) = shown.split_once("  pf: `").unwrap();
    let (script, _) = of_pf.split_once(" with ").unwrap();
    for line in [
        // The plain variant has no firewall.
        format!("  pf: `{script} with off`; undone by `{script} with back 198.18.0.0/16"),
        format!("  pf: `{script} with on`; undone by `{script} with back 198.18.0.0/16"),
        "  rule set by pfctl: `pfctl -f -`; undone by the entry \"pf\" above\n".into(),
        format!("\n{script}\n  # pf of FreeBSD and OpenBSD."),
        "\n  \tpfctl -q -e || return 1\n".into(),
    ] {
        assert!(shown.contains(&line), "{line}\n{shown}");
    }
    let short = linerate(["plan", "show", &plan]).run().ok().stdout;
    assert!(
        short.contains("--scripts prints the text") && !short.contains("pfctl -q -e"),
        "{short}"
    );
    let whole = shown.split("\nScripts of linerate").next().unwrap();
    assert!(short.starts_with(whole.trim_end()), "{short}");
    assert!(!shown.contains("a script of linerate"), "{shown}");
    let lab = scratch.file("lab.toml");
    let with = linerate(["plan", "show", &plan, "--lab", &lab, "--scripts"])
        .run()
        .ok()
        .stdout;
    assert_eq!(shown, with);
    fs::rename(&lab, scratch.file("other.toml")).unwrap();
    let without = linerate(["plan", "show", &plan]).run().ok();
    assert!(
        without.stderr.contains("names the lab file")
            && !without.stdout.contains("What would be done"),
        "{}",
        without.stderr
    );
}

#[test]
fn faults_as_json() {
    let scratch = Scratch::new();
    let (bad, good) = (scratch.file("bad.toml"), scratch.file("good.toml"));
    fs::write(&bad, BAD).unwrap();
    fs::write(&good, linerate(["plan", "example"]).run().ok().stdout).unwrap();
    let faults = linerate(["plan", "check", "--json", &good, &bad])
        .run()
        .status(2)
        .json();
    let list = faults.as_array().unwrap();
    assert!(
        list.len() >= 4
            && list
                .iter()
                .all(|f| f["subject"] == bad.as_str() && f["severity"] == "fault"),
        "{faults:#}"
    );
    let unit = list.iter().find(|f| f["line"] == 4).unwrap();
    assert_eq!(
        (unit["column"].as_u64(), unit["evidence"].as_str()),
        (Some(8), Some("size = 64"))
    );
    assert!(unit["remedy"].as_str().unwrap().contains("64 B"));
    assert_eq!(
        linerate(["plan", "check", "--json", &good])
            .run()
            .ok()
            .json(),
        serde_json::json!([])
    );
}

#[test]
fn files_that_are_no_plans() {
    let scratch = Scratch::new();
    linerate(["plan", "check", "/nonexistent.toml"])
        .run()
        .fails(1, &["/nonexistent.toml", "No such file"]);
    linerate(["plan", "show", scratch.path().to_str().unwrap()])
        .run()
        .fails(1, &["cannot read the plan", "directory"]);
    linerate(["plan", "check", "/dev/zero"])
        .run()
        .fails(1, &["/dev/zero", "not a regular file"]);
    linerate(["plan", "check"]).run().fails(2, &["FILE"]);
    let large = scratch.file("large.toml");
    fs::File::create(&large)
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    let noise = scratch.file("noise.toml");
    fs::write(&noise, b"title = \"\xff\xfe\"\n").unwrap();
    for (file, says) in [
        (&large, "at most 1048576 bytes"),
        (&noise, "byte 9 is not UTF-8"),
    ] {
        let ended = linerate(["plan", "check", file]).run().status(2);
        assert!(ended.stdout.contains(says), "{}", ended.stdout);
    }
    // A good plan beside a file that cannot be read is checked all the same.
    let good = plans(".").remove(0);
    let ended = linerate(["plan", "check", "/nonexistent.toml", good.to_str().unwrap()])
        .run()
        .status(1);
    assert!(ended.stdout.contains("no faults"), "{}", ended.stdout);
}

/// Every key is described.
#[test]
fn the_document_has_every_key() {
    fn keys(schema: &Value, out: &mut Vec<String>) {
        match schema {
            Value::Object(members) => {
                if let Some(properties) = members.get("properties").and_then(Value::as_object) {
                    out.extend(properties.keys().cloned());
                }
                members.values().for_each(|member| keys(member, out));
            }
            Value::Array(items) => items.iter().for_each(|item| keys(item, out)),
            _ => {}
        }
    }
    let text = fs::read_to_string(Path::new(ROOT).join("../docs/plans.md")).unwrap();
    let mut all = Vec::new();
    keys(&linerate(["plan", "schema"]).run().ok().json(), &mut all);
    all.sort();
    all.dedup();
    assert!(all.len() > 80, "{all:?}");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words: std::collections::HashSet<&str> = text.split(|c| !is_word(c)).collect();
    let missing: Vec<&String> = all
        .iter()
        .filter(|key| !words.contains(key.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn standard_input_is_checked_and_shown() {
    let shell = |line: &str| {
        let script = format!("linerate() {{ {LINERATE} \"$@\"; }}\n{line}");
        Program::new("sh").args(["-c", &script]).within(20).run()
    };
    let ended = shell("linerate plan example | linerate plan check -").ok();
    assert!(
        ended.stdout.starts_with("<stdin>: no faults; "),
        "{}",
        ended.stdout
    );
    assert!(
        shell("linerate plan example | linerate plan show -")
            .ok()
            .stdout
            .contains("Schedule")
    );
    shell("linerate plan example | linerate plan check - -").fails(2, &["can be read once only"]);
    shell("echo nonsense | linerate lab check -").fails(2, &["<stdin>:1"]);
    // However much comes.
    let ended = shell("yes | linerate plan check -").status(2);
    assert!(
        ended.stdout.contains("too large") || ended.stdout.contains("bytes"),
        "{}",
        ended.stdout
    );
    shell("yes | linerate lab check -").status(2);
}

/// Plans for FreeBSD are for the systems that are made from it. A black box is named as such, and nothing is set on it.
#[test]
fn plans_fit_opnsense_and_a_black_box_is_named() {
    let scratch = Scratch::new();
    let example = |name: &str| linerate(["lab", "example", name]).run().ok().stdout;
    let opnsense = example("three-hosts").replace("system = \"linux\"", "system = \"opnsense\"");
    assert!(opnsense.contains("opnsense"), "{opnsense}");
    fs::write(scratch.file("sense.toml"), opnsense).unwrap();
    fs::write(scratch.file("box.toml"), example("black-box")).unwrap();
    let shown = |line: &str| {
        let ended = linerate_line(&format!("plan show {line}"))
            .dir(scratch.path())
            .run();
        ended.ok().stdout
    };
    for plan in ["lab/firewalls", "lab/new-states", "lab/families", "lab/nat"] {
        let page = shown(&format!("{plan} --lab sense.toml"));
        assert!(
            page.contains("DUT       OPNsense; --system NAME shows the plan for "),
            "{page}"
        );
    }
    let page = shown("lab/firewalls --lab sense.toml");
    assert!(page.contains("pf-stateful"), "{page}");
    let page = shown("lab/firewalls --lab box.toml");
    let says = [
        "the hosts of box.toml",
        "appliance, a black box: linerate asks it nothing",
        "linerate sets nothing on a black box, and this needs",
        "Nothing, on no host.",
    ];
    assert!(says.iter().all(|said| page.contains(said)), "{page}");
    assert!(
        !page.contains("put back") && !page.contains("DUT       FreeBSD"),
        "{page}"
    );
}

#[test]
fn few_flows_for_new_states_are_told() {
    let scratch = Scratch::new();
    let plan = |flows: &str, load: &str| {
        format!(
            "title = \"t\"\nquestion = \"q\"\n[traffic]\nflows = {flows}\n{load}[variants.forwarding]\n[variants.new]\n\
             rules = {{ tool = \"nftables\", filter = \"stateful\" }}\nstates = \"new\"\n[trials]\nduration = \"1 s\"\nblocks = 6\n"
        )
    };
    let told = |flows: &str, load: &str| {
        fs::write(scratch.file("plan.toml"), plan(flows, load)).unwrap();
        let ended = linerate_line("plan check plan.toml")
            .dir(scratch.path())
            .run();
        ended.ok().stdout
    };
    let few = told("2000", "");
    assert!(
        few.contains("'new': states = \"new\" with 2,000 flows"),
        "{few}"
    );
    assert!(few.contains("no faults"), "{few}");
    let mode = "rate = \"10 kpps\"\n[lab]\nmode = \"threaded\"\n";
    assert!(told("5000", mode).contains("with 5,000 flows"));
    assert!(!told("12000", mode).contains("states = "));
    assert!(!told("200000", "").contains("states = "));
}

/// The plan that a record keeps is run again, in the same form, as a new campaign.
#[test]
fn a_recorded_campaign_is_run_again_from_its_folder() {
    let scratch = Scratch::new();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    let text = "title = \"t\"\nquestion = \"q\"\n[variants.forwarding]\n[variants.other]\n[trials]\nduration = \"50 ms\"\nblocks = 2\n[quick]\nblocks = 1\n";
    fs::write(scratch.file("plan.toml"), text).unwrap();
    run("run plan.toml --quick --simulate ok --quiet --out first").ok();
    fs::remove_file(scratch.file("plan.toml")).unwrap();
    run("run first --simulate ok --quiet --out second").ok();
    let trials = |folder: &str| {
        let all = fs::read_to_string(scratch.file(&format!("{folder}/trials.jsonl"))).unwrap();
        all.lines().count()
    };
    assert_eq!(trials("first"), trials("second"));
    let planned = |folder: &str| -> Value {
        let text = fs::read_to_string(scratch.file(&format!("{folder}/campaign.json"))).unwrap();
        let campaign: Value = serde_json::from_str(&text).unwrap();
        campaign["planned"].clone()
    };
    let [first, second] = [planned("first"), planned("second")];
    assert_eq!(first["source"], second["source"]);
    assert_eq!(second["experiment"]["quick"], true);
    run("run last --simulate ok --quiet --out third").fails(2, &["last"]);
    run("run second --simulate ok --quiet").ok();
    run("run last --simulate ok --quiet").ok();
    run("run last --simulate ok --quiet --out third").ok();
    // Each has the name of the plan behind its own time alone.
    let all = fs::read_dir(scratch.file("linerate-results")).unwrap();
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    let own = |name: &String| {
        name.split_once("Z-")
            .is_some_and(|(_, own)| own.starts_with("plan"))
    };
    assert!(names.len() == 2 && names.iter().all(own), "{names:?}");
    run("run last --size 128").fails(2, &["its own frame sizes: linerate bench --sizes 128"]);
    fs::create_dir(scratch.file("empty")).unwrap();
    run("run empty --simulate ok").fails(1, &["empty"]);
}
