//! `linerate compare`: campaigns, their variants, and plain files.

use crate::common::{Bench, Campaign, Scratch, linerate, linerate_line};
use serde_json::Value;

fn simulated(dut: &str) -> Campaign {
    Bench::new(&format!(
        "--simulate {dut} --family 4 --variant nat --trials 8 --duration 60ms"
    ))
    .run()
}

fn path(campaign: &Campaign) -> &str {
    campaign.path()
}

#[test]
fn the_variants_of_a_campaign_are_paired_by_block() {
    let campaign = simulated("rate=400kpps");
    let folder = path(&campaign);
    let whole = linerate(["compare", folder]).run().ok();
    let two = linerate([
        "compare",
        &format!("{folder}:forwarding"),
        &format!("{folder}:nat"),
    ])
    .run()
    .ok();
    assert_eq!(whole.stdout, two.stdout);
    assert!(
        two.stdout.contains(" blocks") && two.stdout.contains("nat IPv4 64 B"),
        "{}",
        two.stdout
    );
    assert!(
        two.stdout.contains("    N           Min           Max"),
        "{}",
        two.stdout
    );
    let json = linerate(["compare", "--json", folder]).run().ok().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    // A busy machine may keep a trial or two from having a window.
    assert!(
        (6..=8).contains(&json["comparisons"][0]["blocks"].as_u64().unwrap()),
        "{json}"
    );
    assert_eq!(
        json["comparisons"][0]["change"]["method"],
        "order-statistics"
    );
}

#[test]
fn a_slower_campaign_fails_where_that_is_asked_for() {
    let (fast, slow) = (simulated("rate=800kpps"), simulated("rate=200kpps"));
    let (fast, slow) = (path(&fast), path(&slow));
    let gate = |a: &str, b: &str| linerate(["compare", a, b, "--fail-if-slower", "30%"]).run();
    let ended = gate(fast, slow).fails(3, &["slower", "30 %"]);
    assert!(
        ended.stdout.contains("% slower than forwarding IPv4 64 B"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .contains("Relative to the tester's own rate: change -75"),
        "{}",
        ended.stdout
    );
    let other_way = gate(slow, fast).ok();
    assert!(
        other_way.stdout.contains("times as fast as"),
        "{}",
        other_way.stdout
    );
    linerate(["compare", fast, slow]).run().ok();
    // A result that the second has not cannot have passed.
    let without = Bench::new("--simulate rate=800kpps --family 4 --trials 8 --duration 60ms").run();
    gate(fast, path(&without)).fails(1, &["has no variants of these names: nat IPv4 64 B"]);
    gate(path(&without), fast).ok();
}

#[test]
fn runs_of_other_tools_are_not_paired() {
    let scratch = Scratch::new();
    let archive = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/netbenches/AMD_GX-412TC_4Cores"
    );
    let out = scratch.file("imported");
    linerate(["import", "netbenches", archive, "--out", &out])
        .run()
        .ok();
    let folder = format!("{out}/AMD_GX-412TC_4Cores-Intel_i210AT-firewalls-fbsd12-head.iflib");
    let [a, b] = ["311848", "311849"].map(|variant| format!("{folder}:{variant}"));
    let json = linerate(["compare", "--json", &a, &b]).run().ok().json();
    let found = &json["comparisons"][0];
    assert_eq!(found["blocks"], Value::Null, "{found}");
    assert_eq!(found["change"]["method"], "hodges-lehmann");
    // Without a rate of the tester alone there are no shares of it: the rates are compared all the same.
    let again = scratch.file("again");
    linerate(["import", "netbenches", archive, "--out", &again])
        .run()
        .ok();
    let again = folder.replacen(&out, &again, 1);
    let json = linerate(["compare", "--json", &folder, &again])
        .run()
        .ok()
        .json();
    assert!(
        !json["comparisons"].as_array().unwrap().is_empty(),
        "{json}"
    );
}

#[test]
fn plain_files_are_rates() {
    let scratch = Scratch::new();
    let file = |name: &str, text: &str| {
        std::fs::write(scratch.path().join(name), text).unwrap();
        scratch.file(name)
    };
    let a = file("a", "100\n101\n99\n100.5\n100\n");
    let b = file("b", "# later\n90\n91\n89\n90\r\n90.5\n");
    let shown = linerate(["compare", &a, &b]).run().ok().stdout;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("% slower than") && flat.contains("5 against 5 values"),
        "{shown}"
    );
    linerate(["compare", &a, &b, "--fail-if-slower", "5%"])
        .run()
        .fails(3, &["slower"]);
    let unsure = linerate(["compare", &a, &a, "--fail-if-slower", "0.1%"])
        .run()
        .status(5);
    assert!(
        unsure
            .stderr
            .contains("longer campaigns decide whether it is 0.1 % slower"),
        "{}",
        unsure.stderr
    );
    // Slower, by 10 % in the median, but perhaps by less than 9.8 %.
    let near = linerate(["compare", &a, &b, "--fail-if-slower", "9.8%"])
        .run()
        .status(5);
    assert!(near.stderr.contains(" % slower than "), "{}", near.stderr);
    linerate(["compare", &a]).run().fails(2, &["alone"]);
    linerate(["compare", &a, &file("none", "")])
        .run()
        .fails(1, &["none has no numbers"]);
    linerate(["compare", &a, &file("word", "1\nx\n")])
        .run()
        .fails(1, &["line 2", "not a number"]);
    linerate(["compare", &a, &b, "--fail-if-slower", "3"])
        .run()
        .fails(2, &["write 3%"]);
    linerate(["compare", &a, &b, "-c", "97"])
        .run()
        .fails(2, &["97", "95"]);
    linerate(["compare", &a, "/nonexistent"])
        .run()
        .fails(1, &["/nonexistent"]);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let campaign = simulated("ok");
    let folder = path(&campaign);
    linerate(["compare", folder, &format!("{folder}:bridge")])
        .run()
        .fails(2, &["no such variant", "nat IPv4"]);
    // The cell that `explain` suggests is one that it takes.
    let [one, all] = [format!("{folder}:nat"), folder.to_string()];
    let told = linerate(["explain", &one, &all]).run().status(2).stderr;
    let suggested = told
        .split("such as ")
        .nth(1)
        .unwrap_or_else(|| panic!("{told}"));
    let suggested = suggested.trim().trim_matches('\'');
    linerate(["compare", &format!("{folder}:forwarding"), suggested])
        .run()
        .ok();
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("x"), "1\n2\n3\n").unwrap();
    linerate(["compare", &scratch.file("x"), folder])
        .run()
        .fails(1, &["has 3 variants", "choose one"]);
    linerate(["compare", &scratch.file("x"), &format!("{folder}:nat")])
        .run()
        .ok();
}

/// Pages leave the only level of a factor out: so do the list and the comparison. Cells are found by both names.
#[test]
fn names_are_those_of_the_page() {
    let scratch = Scratch::new();
    let plan = r#"
        title = "One order"
        question = "Is it left out?"
        trials = { duration = "20 ms", blocks = 8 }
        [variants.forwarding]
        [variants.nft-nat]
        from = "nat"
        [factors.order]
        sets = "traffic.order"
        levels = ["random"]
    "#;
    std::fs::write(scratch.path().join("plan.toml"), plan).unwrap();
    let said = |line: &str| {
        let ended = linerate_line(line).dir(scratch.path()).run().ok();
        ended
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    said("run plan.toml --simulate rate=400kpps --out results/one");
    let list = said("list results");
    assert!(list.contains("one SIMULATED: forwarding: 40"), "{list}");
    let compare = |a: &str, b: &str| {
        let cells = [a, b].map(|cell| format!("results/one:{cell}"));
        let line = linerate(["compare", &cells[0], &cells[1]]);
        line.dir(scratch.path()).run().ok().stdout
    };
    let short = compare("forwarding", "nft-nat");
    assert!(
        short.contains("nft-nat / forwarding ") && !short.contains("order random"),
        "{short}"
    );
    assert_eq!(
        short,
        compare("forwarding, order random", "nft-nat, order random")
    );
}

/// The tester's rate depends on the batch: the same rates, of campaigns with other batches.
#[test]
fn other_batches_decide_nothing() {
    let (fast, slow) = (simulated("rate=800kpps"), simulated("rate=200kpps"));
    let (fast, slow) = (path(&fast), path(&slow));
    let file = format!("{slow}/campaign.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut campaign: Value = serde_json::from_str(&text).unwrap();
    campaign["asked"]["batch"] = 16.into();
    std::fs::write(&file, campaign.to_string()).unwrap();
    for [a, b] in [[fast, slow], [slow, fast]] {
        let ended = linerate(["compare", a, b, "--fail-if-slower", "3%"])
            .run()
            .status(5);
        assert!(
            ended.stdout.starts_with("Undecided whether ")
                && ended.stderr.contains("the batches differ")
                && ended.stderr.contains("--batch 64"),
            "{} {}",
            ended.stdout,
            ended.stderr
        );
        let json = linerate(["compare", a, b, "--json"]).run().ok().json();
        assert_eq!(json["comparisons"][0]["outcome"], "not-shown");
    }
}

/// A slow-down in a disturbed campaign may be noise, on which CI must not fail. Variants of one campaign alternate.
#[test]
fn a_disturbed_campaign_is_named_and_not_slower() {
    let (fast, slow) = (simulated("rate=800kpps"), simulated("rate=200kpps"));
    let (fast, slow) = (path(&fast), path(&slow));
    let gate = |line: &str| {
        let line = format!("compare {line} --fail-if-slower 3%");
        linerate_line(&line).run()
    };
    let pair = format!("{fast}:forwarding {slow}:forwarding");
    gate(&pair).fails(3, &["slower"]);
    let file = format!("{slow}/summary.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut summary: Value = serde_json::from_str(&text).unwrap();
    let took = "other programs took 11 % of a CPU of the lab";
    let warning = serde_json::json!({ "slot": null, "text": took, "spoils": took });
    summary["warnings"] = serde_json::json!([warning]);
    std::fs::write(&file, summary.to_string()).unwrap();
    let folder = slow.rsplit('/').next().unwrap();
    let said = format!("{folder} was disturbed ({took})");
    let ended = gate(&pair).status(5);
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    let warnings = |line: &str| {
        let json = linerate_line(&format!("compare {line} --json"))
            .run()
            .ok()
            .json();
        json["warnings"].to_string()
    };
    let found = warnings(&pair);
    assert!(
        found.contains(&said) && found.contains("not from the DUT"),
        "{found}"
    );
    // Noise makes nothing faster.
    gate(&format!("{slow}:forwarding {fast}:forwarding")).ok();
    // One campaign of three is an outlier of its side; two are not.
    let others = [(); 2].map(|()| simulated("rate=200kpps"));
    let others = others.each_ref().map(path).join(" ");
    let several = format!("{fast} --against {slow} {others}");
    let json = linerate_line(&format!("compare {several} --json"))
        .run()
        .ok()
        .json();
    assert_eq!(json["comparisons"][0]["disturbed"], Value::Null);
    assert!(json["warnings"].to_string().contains(&said), "{json:#}");
    let several = format!(
        "{fast} --against {slow} {}",
        others.split(' ').next().unwrap()
    );
    let json = linerate_line(&format!("compare {several} --json"))
        .run()
        .ok()
        .json();
    assert!(json["comparisons"][0]["disturbed"].is_string(), "{json:#}");
    let within = warnings(slow);
    assert!(
        within.contains(&said) && within.contains("trials alternate"),
        "{within}"
    );
}

#[test]
fn a_row_that_the_other_campaign_lacks_is_compared_by_hand() {
    let with = simulated("ok");
    let without = Bench::new("--simulate ok --family 4 --trials 8 --duration 60ms").run();
    let (with, without) = (path(&with), path(&without));
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let whole = linerate(["compare", without, with]).run().ok().stdout;
    let command = format!("linerate compare {without}:forwarding {with}:nat");
    assert!(flat(&whole).contains(&command), "{whole}");
    assert!(flat(&whole).contains("drift of the machine"), "{whole}");
    // The only row there is; of several, that of the same variant.
    for (a, b) in [
        (without, format!("{with}:nat")),
        (without, format!("{with}:3")),
        (with, format!("{with}:nat")),
    ] {
        let told = linerate(["compare", a, &b]).run();
        let told = flat(&format!("{}{}", told.stdout, told.stderr));
        let same = a == with && told.contains("are the same cell");
        assert!(same || told.contains("nat IPv4 64 B"), "{a} {b}: {told}");
    }
    // Of several without the same variant, none is chosen: the message has the command.
    let three = Bench::new("--simulate ok --family 4 --variant bridge --trials 8 --duration 60ms");
    let three = three.run();
    let three = path(&three);
    let command = format!("linerate compare {three}:forwarding {with}:nat");
    linerate(["compare", three, &format!("{with}:nat")])
        .run()
        .fails(1, &["nothing to compare: ", &command]);
}

#[test]
fn several_campaigns_are_a_value_each() {
    let line = "--simulate rate=400kpps --family 4 --trials 3 --duration 30ms";
    let bench = || Bench::new(line).run();
    let all: Vec<Campaign> = (0..8).map(|_| bench()).collect();
    let folders: Vec<&str> = all.iter().map(path).collect();
    let args = |from: &[&str], to: &[&str]| {
        let mut args = vec!["compare"];
        args.extend(from);
        args.push("--against");
        args.extend(to);
        args.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let mut four = args(&folders[..4], &folders[4..]);
    four.extend(["--json".into(), "--fail-if-slower".into(), "50%".into()]);
    let json = linerate(&four).run().ok().json();
    let found = &json["comparisons"][0];
    assert_eq!(found["reference_rates"].as_array().unwrap().len(), 4);
    assert_eq!(found["campaigns"], true);
    assert!(found["change"]["low"].is_number(), "{found:#}");
    let three = linerate(args(&folders[..3], &folders[3..6])).run().ok();
    assert!(
        three.stdout.contains("3 against 3 campaigns") && three.stdout.contains("too few"),
        "{}",
        three.stdout
    );
    linerate(args(&[folders[0], folders[0]], &folders[1..2]))
        .run()
        .fails(2, &["given twice"]);
}

/// The campaign of a plan: its page, and its cells by name, colons included.
#[test]
fn a_plans_campaign_is_shown_and_its_cells_compared() {
    let scratch = Scratch::new();
    let folder = scratch.file("campaign");
    let plan = r#"
        title = "Order of flows"
        question = "Does it matter?"
        trials = { duration = "20 ms", blocks = 8 }
        [variants.forwarding]
        [factors.order]
        sets = "traffic.order"
        levels = ["sequential", "random", "zipf:1.1"]
    "#;
    let file = scratch.file("plan.toml");
    std::fs::write(&file, plan).unwrap();
    linerate([
        "run",
        &file,
        "--simulate",
        "rate=400kpps",
        "--seed",
        "1",
        "--out",
        &folder,
    ])
    .run()
    .ok();
    let shown = linerate(["show", "--full", &folder]).run().ok().stdout;
    assert!(
        shown.contains("NOT of this machine") && shown.contains("forwarding over order"),
        "{shown}"
    );
    let explained = linerate(["explain", &folder]).run().ok().stdout;
    assert!(explained.starts_with("SIMULATED: "), "{explained}");
    let parent = scratch.path().to_str().unwrap();
    let listed = linerate(["list", parent]).run().ok().stdout;
    assert!(listed.contains("SIMULATED: forwarding, order"), "{listed}");
    let json: Value =
        serde_json::from_str(&linerate(["show", "--json", &folder]).run().ok().stdout).unwrap();
    assert_eq!(
        json["summary"]["rows"][1]["name"],
        "forwarding, order sequential"
    );
    let cell = |level: &str| format!("{folder}:forwarding, order {level}");
    let compared = linerate(["compare", &cell("random"), &cell("zipf:1.1")])
        .run()
        .ok()
        .stdout;
    assert!(compared.contains("order zipf:1.1"), "{compared}");
    std::fs::remove_file(format!("{folder}/summary.json")).unwrap();
    let killed = linerate(["show", &folder, "--trials"]).run().ok();
    assert!(
        killed.stderr.contains("did not come to its end"),
        "{}",
        killed.stderr
    );
    assert!(
        killed.stdout.contains("forwarding over order") && killed.stdout.contains("   0 "),
        "{}",
        killed.stdout
    );
}

/// Two DUTs whose throughputs are known, in trials of 1 s behind queues of 512.
#[test]
fn throughputs_are_compared_by_their_bounds_and_not_by_all_trials() {
    let scratch = Scratch::new();
    let measured = |name: &str, verb: &str, dut: &str| {
        let out = scratch.file(name);
        let line = format!("{verb} --size 64 --simulate {dut} --out {out}");
        linerate(line.split(' ')).run();
        out
    };
    let verb = "rfc2544 --quick --duration 200ms --test throughput --test frame-loss --link-speed 20160kbit/s";
    let fast = measured("fast", verb, "rate=20kpps,queue=512");
    let again = measured("again", verb, "rate=20kpps,queue=512");
    let slow = measured("slow", verb, "rate=15kpps,queue=512");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words(&linerate(["compare", &fast, &slow]).run().ok().stdout);
    for said in [
        "The throughput of forwarding IPv4 64 B (slow) is lower than that of forwarding IPv4 64 B (fast)",
        "The bounds exclude that both are equal",
        "frame loss at the highest load",
    ] {
        assert!(shown.contains(said), "no '{said}' in {shown}");
    }
    let found = linerate(["compare", "--json", &fast, &slow])
        .run()
        .ok()
        .json();
    let found = &found["comparisons"][0];
    let ratio = found["change"]["median"].as_f64().unwrap();
    // 15,000 / 20,000, and 512 frames in the queue.
    assert!((0.74..0.82).contains(&ratio), "{found:#}");
    assert_eq!(found["change"]["method"], "bounds");
    let gate = |a: &str, b: &str, share: &str| {
        linerate(["compare", a, b, "--fail-if-slower", share]).run()
    };
    gate(&fast, &slow, "10%").fails(3, &["is slower than"]);
    gate(&slow, &fast, "10%").ok();
    gate(&fast, &again, "0.001%").fails(5, &["longer campaigns decide"]);
    gate(&fast, &again, "10%").ok();
    // The lists have the result, too.
    let list = words(
        &linerate(["list", scratch.path().to_str().unwrap()])
            .run()
            .ok()
            .stdout,
    );
    assert!(
        list.contains("forwarding IPv4 64 B: throughput 2"),
        "{list}"
    );
    let history = linerate(["history", "--json", scratch.path().to_str().unwrap()])
        .run()
        .ok()
        .json();
    let lines = history["timelines"].as_array().unwrap();
    let line = lines.iter().find(|line| {
        line["key"]["load"]
            .as_str()
            .unwrap()
            .ends_with(", throughput")
    });
    let points = line.unwrap()["points"].as_array().unwrap();
    let rates: Vec<f64> = points
        .iter()
        .map(|point| point["figure"]["value"].as_f64().unwrap())
        .collect();
    assert!(
        rates.len() == 3 && rates.iter().all(|rate| (17_000.0..23_000.0).contains(rate)),
        "{rates:?}"
    );
    // Rates at full load are another figure.
    let bench = measured(
        "bench",
        "bench --family 4 --trials 6 --duration 60ms",
        "rate=20kpps",
    );
    linerate(["compare", &fast, &bench]).run().fails(
        1,
        &[
            "nothing to compare: ",
            "not the same figure",
            "linerate rfc2544",
        ],
    );
    let file = scratch.file("rates");
    std::fs::write(&file, "1\n2\n3\n").unwrap();
    linerate(["compare", &fast, &file])
        .run()
        .fails(1, &["has results of searches"]);
}

/// `--out` puts campaigns beside the usual folder, and the ending of a file's name says its format.
#[test]
fn campaigns_beside_the_usual_folder_are_found_and_files_have_formats_by_their_names() {
    let scratch = Scratch::new();
    let here = |args: &[&str]| linerate(args.iter().copied()).dir(scratch.path()).run();
    let line = "bench --family 4 --trials 2 --duration 60ms --simulate rate=20kpps --out q1";
    here(&line.split(' ').collect::<Vec<_>>()).ok();
    let hint = "This folder has campaigns, such as q1: linerate list . shows them";
    assert!(here(&["list"]).ok().stdout.contains(hint));
    here(&["show"]).fails(2, &[hint]);
    assert!(!here(&["list", "."]).ok().stdout.contains("no campaign"));
    here(&["list", "nodir"]).fails(2, &["there is no folder nodir"]);
    let nested = line.replace("--out q1", "--out new/q");
    let told = here(&nested.split(' ').collect::<Vec<_>>()).ok().stderr;
    assert!(
        told.contains("--out: makes new, which is not there"),
        "{told}"
    );
    for (file, begins) in [
        ("p.html", "<!"),
        ("p.json", "{"),
        ("p.md", "**"),
        ("p.csv", ""),
    ] {
        here(&["show", "q1", "-o", file]).ok();
        let text = std::fs::read_to_string(scratch.path().join(file)).unwrap();
        assert!(
            text.trim_start().to_lowercase().starts_with(begins),
            "{file}: {text}"
        );
    }
    here(&["show", "q1", "-o", "p.pdf"]).fails(
        2,
        &["linerate show q1 -o page.html && chromium --headless --print-to-pdf=p.pdf page.html"],
    );
    here(&["show", "q1", "-o", "p.txt"]).fails(2, &[".html, .csv, .json or .md"]);
}
