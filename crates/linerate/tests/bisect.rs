//! Bisections of lists: simulated ones whose step is known, and rule files with real packets.

use crate::common::{Program, Running, Scratch, campaign, linerate_line, wait_for};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A list of 64 levels, between whose trials nothing differs but the simulated DUT.
const PLAN: &str = r#"
title = "A list"
question = "From which level on is it slower?"
[traffic]
size = "64 B"
[trials]
duration = "100 ms"
blocks = 3
[variants.forwarding]
[variants.other]
from = "forwarding"
[factors.sizes]
sets = "traffic.size"
levels = ["64 B", "128 B"]
[factors.routes]
sets = "routes.count"
levels = [LEVELS]
[[expect]]
of = "forwarding"
slower-than = "other"
because = "it concerns what is left out"
"#;

/// A folder with the plan.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    let levels: Vec<String> = (1..=64).map(|level: u32| level.to_string()).collect();
    let plan = PLAN.replace("LEVELS", &levels.join(", "));
    fs::write(scratch.path().join("plan.toml"), plan).unwrap();
    scratch
}

const OVER: &str = "bisect plan.toml --over routes --variant other --out records --seed 4";
/// Rates of pairs scatter by 1.5 %.
const STEP: &str = "--simulate rate=20kpps,noise=1.06%,step=3%@18";

fn summary(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("records/summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The level of a slot, from 1 on.
fn level(folder: &Path, slot: &Value) -> u64 {
    let text = fs::read_to_string(folder.join("records/campaign.json")).unwrap();
    let campaign: Value = serde_json::from_str(&text).unwrap();
    let slot = &campaign["slots"][slot.as_u64().unwrap() as usize];
    slot["levels"][0][1].as_u64().unwrap() + 1
}

#[test]
fn a_simulated_step_is_found() {
    let scratch = folder();
    let run = |line: String| linerate_line(&line).dir(scratch.path()).run();
    let ended = run(format!("{OVER} {STEP}")).ok();
    let says = "The list became slower with 18: probability";
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(
        words.join(" ").contains(says) && words.contains(&"culprit"),
        "{ended:?}"
    );

    let found = &summary(scratch.path())["bisection"];
    let [slot, after] = ["slot", "after"].map(|of| level(scratch.path(), &found["culprit"][of]));
    assert_eq!(
        (&found["verdict"], slot, after),
        (&"found".into(), 18, 17),
        "{found:#}"
    );
    assert!(found["culprit"]["probability"].as_f64().unwrap() >= 0.98);
    let ratio = &found["culprit"]["ratio"];
    assert!(ratio["high"].as_f64().unwrap() < 1.0 && ratio["low"].as_f64().unwrap() > 0.9);
    let asked = found["elements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|of| of["trials"] != 0);
    assert!((6..=10).contains(&asked.count()), "{found:#}");

    // Others show the same.
    let again = run("show records".into()).ok();
    assert_eq!(again.stdout, ended.stdout);
    let whole = run("show records --full".into()).ok();
    assert!(
        whole.stdout.contains("What was measured of the list"),
        "{whole:?}"
    );
    let json = run("show records --json".into()).ok();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(&json["summary"]["bisection"], found);
}

#[test]
fn ends_that_do_not_differ_are_undecided_and_more_time_goes_on() {
    let scratch = folder();
    let dut = "--simulate rate=20kpps,noise=1.06%";
    let run = |line: String| linerate_line(&line).dir(scratch.path()).run();
    let ended = run(format!("{OVER} {dut} --budget 8s"));
    let ended = ended.fails(
        5,
        &["linerate run --resume records --simulate", "--budget "],
    );
    assert!(ended.stdout.contains("undecided"), "{ended:?}");
    let found = &summary(scratch.path())["bisection"];
    assert_eq!(
        (&found["verdict"], &found["culprit"]),
        (&"undecided-ends".into(), &Value::Null)
    );
    let before = campaign::trials(&scratch.path().join("records")).len();

    run(format!("run --resume records {dut}")).fails(2, &["--budget"]);
    run(format!("run --resume records {dut} --budget 16s")).fails(5, &[]);
    assert!(campaign::trials(&scratch.path().join("records")).len() > before + 40);
}

#[test]
fn the_page_says_what_is_faster_undecided_or_a_further_step() {
    let scratch = folder();
    let plan = "bisect plan.toml --over routes --variant other --seed 4";
    let run = |more: &str| {
        let line = format!("{plan} --simulate rate=20kpps,noise=0.5%,{more}");
        let ended = linerate_line(&line).dir(scratch.path()).run().no_panic();
        let words: Vec<&str> = ended.stdout.split_whitespace().collect();
        (ended.status.code(), words.join(" "))
    };
    let (status, page) = run("step=-5%@30");
    assert!(
        status == Some(5) && page.contains("So nothing became slower."),
        "{page}"
    );
    let (status, page) = run("step=5%@30 --budget 6s");
    let says = "With which element it became slower is undecided; the most probable one is";
    assert!(status == Some(5) && page.contains(says), "{page}");
    let (status, page) = run("step=4%@18,step=2%@40 --name two");
    let says = [
        "The list became slower with 18:",
        "A further step: 64 is",
        "It is behind 18,",
    ];
    assert!(
        status == Some(0) && says.iter().all(|words| page.contains(words)),
        "{page}"
    );
    let listed = linerate_line("list").dir(scratch.path()).run().ok();
    let says = ["slower from 18 on", "nothing became slower", "undecided"];
    assert!(
        says.iter().all(|words| listed.stdout.contains(words)),
        "{listed:?}"
    );
}

/// kill -9 in the middle, again and again: every trial is kept, and the choices and the result are those of a run that nobody killed.
#[test]
fn a_bisection_survives_kills() {
    let (whole, killed) = (folder(), folder());
    linerate_line(&format!("{OVER} {STEP}"))
        .dir(whole.path())
        .run()
        .ok();
    let records = killed.path().join("records");
    let begun = || records.join("campaign.json").exists();
    let start = || -> Running {
        let line = match begun() {
            true => "run --resume records --simulate rate=20kpps,noise=1.06%,step=3%@18".into(),
            false => format!("{OVER} {STEP}"),
        };
        linerate_line(&line).dir(killed.path()).start()
    };
    let (mut trials, mut kills) = (0, 0);
    while kills < 8 {
        let mut running = start();
        let wanted = trials + 3 + 5 * kills;
        wait_for("trials", || {
            let recorded = campaign::trials(&records).len();
            (recorded >= wanted || !running.runs()).then_some(())
        });
        running.signal(libc::SIGKILL);
        let ended = running.wait().no_panic();
        if ended.status.code().is_some() {
            break;
        }
        let recorded = campaign::trials(&records).len();
        assert!(recorded >= wanted, "{recorded} of {wanted}");
        (trials, kills) = (recorded, kills + 1);
    }
    assert!(kills >= 1, "{kills} kills");
    let resume = "run --resume records --simulate rate=20kpps,noise=1.06%,step=3%@18";
    if !records.join("summary.json").exists() {
        linerate_line(resume).dir(killed.path()).run().ok();
    }
    let order = |folder: &Path| -> Vec<(Value, Value)> {
        let trials = campaign::trials(&folder.join("records"));
        trials
            .iter()
            .map(|trial| (trial["block"].clone(), trial["slot"].clone()))
            .collect()
    };
    assert_eq!(order(killed.path()), order(whole.path()));
    let [of_killed, of_whole] =
        [&killed, &whole].map(|folder| summary(folder.path())["bisection"].clone());
    assert_eq!(of_killed, of_whole);
}

#[test]
fn lists_that_cannot_be_are_refused_with_what_to_do() {
    let scratch = folder();
    fs::create_dir(scratch.path().join("empty")).unwrap();
    let refused = [
        ("bisect", "name a list: --rules FOLDER"),
        ("bisect plan.toml", "name one of sizes, routes with --over"),
        (
            "bisect plan.toml --over routes",
            "name one of forwarding, other with --variant",
        ),
        (
            "bisect plan.toml --over rules",
            "--over rules: this plan has sizes, routes",
        ),
        ("bisect plan.toml --rules x", "cannot be used with"),
        ("bisect --rules empty", "a list has two elements or more"),
        (
            "bisect --rules none.nft --rules neither.nft",
            "cannot read the rule file none.nft",
        ),
        (
            "bisect plan.toml --fail-if-slower 3%",
            "finds the slower element by itself",
        ),
    ];
    for (line, says) in refused {
        let ended = linerate_line(line).dir(scratch.path()).run();
        ended.fails(2, &[says]);
    }
    let plan = fs::read_to_string(scratch.path().join("plan.toml")).unwrap();
    let plan = plan.replace("blocks = 3", "blocks = 3\norder = \"bisection\"");
    fs::write(scratch.path().join("plan.toml"), plan).unwrap();
    let checked = linerate_line("plan check plan.toml")
        .dir(scratch.path())
        .run();
    assert_eq!(checked.status.code(), Some(2));
    assert!(
        checked
            .stdout
            .contains("a bisection is of the levels of one factor"),
        "{checked:?}"
    );
}

/// A series of rule files in a folder, each with its own comment. From one on they have these rules more, which match nothing.
fn series(folder: &Path, files: usize, from: usize, more: usize) {
    fs::create_dir(folder.join("history")).unwrap();
    for number in 1..=files {
        let rules = if number >= from { more } else { 0 };
        let rules: String = (0..rules)
            .map(|rule| {
                format!(
                    "    ip daddr 203.0.113.{} udp dport {} drop\n",
                    rule % 250,
                    1 + rule
                )
            })
            .collect();
        let text = format!(
            "# revision {number}\ntable inet filter {{\n  chain forward {{\n    type filter hook forward priority filter; policy accept;\n    ip saddr 192.0.2.{number} drop\n{rules}  }}\n}}\n"
        );
        fs::write(folder.join(format!("history/r{number}.nft")), text).unwrap();
    }
}

/// The result and the page. Whoever measures beside it may make trials invalid; then it takes longer, and is undecided rather than wrong.
fn bisected(scratch: &Scratch, line: &str, seconds: u64) -> (Value, String) {
    let line = format!("bisect --rules history --batch 64 --out records {line}");
    let ended = linerate_line(&line)
        .dir(scratch.path())
        .within(seconds)
        .run();
    let ended = ended.no_panic();
    assert!(matches!(ended.status.code(), Some(0 | 5)), "{ended:?}");
    (summary(scratch.path())["bisection"].clone(), ended.stdout)
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_rule_file_that_halves_the_rate_is_found() {
    let scratch = Scratch::new();
    series(scratch.path(), 5, 4, 200);
    let (found, page) = bisected(&scratch, "--duration 20ms --budget 2min", 150);
    // Twice as long for each frame: no noise hides that.
    let [slot, after] = ["slot", "after"].map(|of| level(scratch.path(), &found["culprit"][of]));
    assert_eq!((slot, after), (4, 3), "{found:#}");
    let why = "sudo linerate bench --rules history/r3.nft --rules history/r4.nft --profile";
    assert_eq!(page.contains(why), found["verdict"] == "found", "{page}");
}

#[test]
#[ignore = "needs root and nft: run by make test-long as root"]
fn takes_minutes_a_rule_that_costs_60_ns_is_found_among_32() {
    let scratch = Scratch::new();
    series(scratch.path(), 32, 18, 5);
    let (found, _) = bisected(&scratch, "--budget 10min", 900);
    let slot = level(scratch.path(), &found["culprit"]["slot"]);
    assert_eq!(
        (&found["verdict"], slot),
        (&"found".into(), 18),
        "{found:#}"
    );
}

/// A git tree with a rule file that six commits change, and one that changes something else.
fn tree(folder: &Path) {
    let git = |args: &[&str]| {
        let own = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-C",
            "tree",
        ];
        Program::new("git")
            .args(own)
            .args(args.iter())
            .dir(folder)
            .run()
            .ok()
    };
    fs::create_dir_all(folder.join("tree/etc")).unwrap();
    git(&["init", "--quiet"]);
    for number in 1..=7 {
        let changed = if number == 3 { "other.txt" } else { "fw.nft" };
        let text = format!(
            "table inet filter {{\n  chain forward {{\n    type filter hook forward priority filter; policy accept;\n    ip saddr 192.0.2.{number} drop\n  }}\n}}\n"
        );
        fs::write(folder.join("tree/etc").join(changed), text).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", &format!("revision {number}")]);
        git(&["tag", &format!("r{number}")]);
    }
}

#[test]
#[ignore = "needs git"]
fn a_commit_is_found() {
    let scratch = Scratch::new();
    tree(scratch.path());
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    // r1, r2, r4, r5, r6: the fourth is r5. The working tree is one commit further.
    let dut = "--simulate rate=20kpps,noise=0.5%,step=5%@4 --seed 2 --out records";
    let ended = run(&format!(
        "bisect --commits r1..r6 --tree tree --rules etc/fw.nft {dut}"
    ))
    .ok();
    let commit = |tag: &str| {
        let args = ["-C", "tree", "rev-parse", "--short", tag];
        let named = Program::new("git")
            .args(args)
            .dir(scratch.path())
            .run()
            .ok();
        format!("{}:etc/fw.nft", named.stdout.trim())
    };
    let says = format!("The list became slower with {}: probability", commit("r5"));
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(&says), "{says}: {ended:?}");
    let text = fs::read_to_string(scratch.path().join("records/campaign.json")).unwrap();
    let levels = ["r1", "r2", "r4", "r5", "r6"].map(commit);
    let campaign: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        campaign["planned"]["experiment"]["factors"][0]["levels"],
        serde_json::json!(levels)
    );

    let refused = [
        ("--commits r1", "write GOOD..BAD"),
        ("--commits r1...r6", "write GOOD..BAD"),
        ("--commits r6..r7 --rules b.nft", "give --rules once"),
        (
            "--commits r2..r3",
            "no commit of this range changed etc/fw.nft",
        ),
    ];
    for (more, says) in refused {
        let line = format!("bisect --tree tree --rules etc/fw.nft {more} --simulate rate=1kpps");
        run(&line).fails(2, &[says]);
    }
    let line = "bisect --tree tree --rules etc/fw.nft --simulate rate=1kpps --commits";
    run(&format!("{line}=--upload-pack=x..r6")).fails(1, &["looking for --upload-pack=x", "git: "]);
    run(&format!("{line}=none..r6")).fails(1, &["looking for none", "git: "]);
}
