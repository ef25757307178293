//! `linerate import netbenches`: on real results, on any part of them, on trees that are hostile, and into records.

use crate::common::{Ended, Scratch, linerate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/netbenches"
);
const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

fn import(directory: &str, more: &[&str]) -> Ended {
    linerate(["import", "netbenches", directory].iter().chain(more))
        .within(120)
        .run()
}

#[track_caller]
fn sets(directory: &str) -> Vec<Value> {
    let found = folders(directory);
    let of = |folder: &Value| -> Vec<Value> {
        let place = |set: &Value| {
            let file = [&set["published"]["file"], &set["runs"][0]["file"]]
                .into_iter()
                .find_map(Value::as_str);
            file.and_then(|file| file.rsplit_once('/'))
                .map_or(".", |(dir, _)| dir)
                .to_string()
        };
        folder["sets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|set| {
                let mut set = set.clone();
                set["dir"] = place(&set).into();
                for key in ["machine", "card", "topic", "label"] {
                    set[key] = folder[key].clone();
                }
                set
            })
            .collect()
    };
    found.iter().flat_map(of).collect()
}

/// The results folders, as `--json` has them.
#[track_caller]
fn folders(directory: &str) -> Vec<Value> {
    let ended = import(directory, &["--json"]).ok();
    ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn in_testdata(path: &str) -> String {
    format!("{TESTDATA}/{path}")
}

/// Sets that were edited by hand, or whose logs were overwritten, by the corpus' own list, and the required messages.
const EDITED: [(&str, &str, &str); 6] = [
    (
        "fbsd12-head.iflib",
        "311848",
        "run 1: the log gives 481515, published is 622368.5",
    ),
    (
        "fbsd12-head.iflib",
        "312905",
        "run 1: the log gives 409874, published is 586193",
    ),
    (
        "LROTSO/results/fbsd11.1-yandex",
        "enabled-default",
        "dropped by hand: run 2 (502561)",
    ),
    (
        "hw.intr_storm_threshold/results/fbsd11.1-yandex",
        "9000",
        "dropped by hand: run 2 (853109)",
    ),
    ("fbsd.2017", "311703", "dropped by hand: run 5 (1)"),
    (
        "hw.ix.num_queues/results/fbsd11.1-yandex",
        "16",
        "dropped by hand: run 1 (4270198)",
    ),
];

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn every_set_agrees_that_nobody_has_edited() {
    let sets = sets(CORPUS);
    let count = |agrees: bool| sets.iter().filter(|s| s["agrees"] == agrees).count();
    assert_eq!((count(true), count(false)), (72, EDITED.len()));
    for (dir, set, difference) in EDITED {
        let found = sets
            .iter()
            .find(|s| text(s, "dir").ends_with(dir) && s["set"] == set);
        let found = found.unwrap_or_else(|| panic!("no {set} in {dir}"));
        assert_eq!(found["agrees"], false, "{found}");
        assert!(
            text(found, "disagreement").starts_with(difference),
            "{found}"
        );
    }
    // The corpus gives the reason for each folder: no disagreement without a reason.
    let manifest = fs::read_to_string(format!("{CORPUS}/MANIFEST.tsv")).unwrap();
    let reasons = [
        "hand-edited",
        "hand-dropped",
        "dropped by hand",
        "overwritten by a later PMC run",
    ];
    for set in sets.iter().filter(|s| s["agrees"] == false) {
        let mut rows = manifest
            .lines()
            .filter(|row| row.contains(text(set, "dir")));
        assert!(
            rows.any(|row| reasons.iter().any(|r| row.contains(r))),
            "{set}"
        );
    }
    let uppers = sets
        .iter()
        .filter(|s| s["rule"] == "upper")
        .map(|s| text(s, "dir"));
    assert!(
        uppers.clone().count() == 7
            && uppers
                .into_iter()
                .all(|dir| dir.contains("fbsd10.2") || dir.contains("r287531"))
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn sets_are_told_with_their_runs_and_where_they_come_from() {
    let sets = sets(CORPUS);
    let find = |dir: &str, set: &str| {
        sets.iter()
            .find(|s| text(s, "dir").ends_with(dir) && s["set"] == set)
            .unwrap_or_else(|| panic!("{dir} {set}"))
    };
    let early = find("fbsd11-routing.r287531", "2");
    assert_eq!(
        early["published"]["file"],
        format!("{}/pps.2", text(early, "dir"))
    );
    assert_eq!(early["runs"][1]["median_pps"], Value::Null);
    assert_eq!(
        (&early["rule"], &early["facts"]["sender.length_fcs"]),
        (&"mean".into(), &"64".into())
    );
    // Ten runs, in the order of their names.
    let ten = find(
        "AMD_G-T40E_2Cores/RTL8111E/firewalls/results/fbsd11.0",
        "forwarding",
    );
    let numbers: Vec<u64> = ten["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 10, 2, 3, 4, 5, 6, 7, 8, 9]);
    // Medians whose name cannot be derived from the logs'.
    let renamed = find("fullview/results/fbsd13-r368766D27401D27412", "inet4");
    assert!(
        text(&renamed["published"], "file").ends_with("r368766D27401D27412.inet4.pps")
            && renamed["agrees"] == true
    );
    // Logs in RAW.1rx, medians with that suffix.
    assert_eq!(
        find("ipfw/results/fbsd13-r355538", "ipfw-at-nic-level.1rx")["agrees"],
        true
    );
    // Medians without logs, logs without medians, and profiling runs, which are no part of any medians.
    assert_eq!(
        find("NUMA-crossing/results/fbsd13-r358171", "bench")["runs"],
        serde_json::json!([])
    );
    assert_eq!(
        find(
            "conf.rx_coalesce/results/fbsd12-stable.r354440.BSDRP.1.96/RAW",
            "tuned.inet6"
        )["published"],
        Value::Null
    );
    let profiled = find(
        "iflib.override_nXxds/results/fbsd15-n302145simple/PMC",
        "4096",
    );
    assert_eq!(
        (&profiled["profiling"], &profiled["agrees"]),
        (&true.into(), &Value::Null)
    );
    // The configuration describes the variant.
    let harvest = find(
        "AMD_GX-412TC_4Cores/Intel_i210AT/kern.random.harvest.mask/results/fbsd11.1",
        "351",
    );
    let settings = harvest["description"]["etc/rc.conf"].as_array().unwrap();
    let setting = |name: &str, value: &str| serde_json::json!({"name": name, "value": value});
    assert!(settings.contains(&setting("harvest_mask", "351")));
    assert!(settings.contains(&setting("gateway_enable", "YES")));
    assert_eq!(
        (text(harvest, "machine"), text(harvest, "card")),
        ("AMD_GX-412TC_4Cores", "Intel_i210AT")
    );
    assert_eq!(harvest["facts"]["revision"], "r322489");
    // The offered rates of two generators are added up.
    let two = find("fbsd13-r357572-20-0", "ipfw-standard");
    assert!(
        (two["runs"][0]["offered_pps"].as_f64().unwrap() - 2e7).abs() < 1e4,
        "{two}"
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn every_bad_input_is_told_with_its_reason() {
    let page = import(CORPUS, &[])
        .ok()
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for (file, reason) in [
        (
            "RTL8111E/firewalls/results/fbsd11.0/bench.fastforwarding.3.receiver",
            "nothing arrived: all 55 samples are 0",
        ),
        (
            "RAW/bench.364730.pf-stateful.inet4.3.receiver",
            "cut off or too short: 2 samples",
        ),
        (
            "hw.intr_storm_threshold/results/fbsd11.1-yandex/bench.1000-default.1.receiver",
            "pkt-gen crashed: poll err",
        ),
        (
            "hw.intr_storm_threshold/results/fbsd11.1-yandex/bench.1000-default.1.receiver",
            "ouch, thread exited with error",
        ),
        (
            "fbsd13-head.340244.D17901/bench.340244D17901.2.receiver",
            "negative speed or time",
        ),
        (
            "fbsd11.1-yandex/bench.511-default.1.receiver",
            "next to nothing arrived: 65 of 67 samples are 0",
        ),
        ("fbsd11.1-yandex/511-default.pps", "empty"),
        (
            "fbsd12-head.r320657.D11476/ipf-stateful.inet4.data",
            "empty",
        ),
        (
            "PMC/on/bench.simple_tx_on.inet4.manual.pmc.graph",
            "cut off in mid-line at a 4 KiB boundary",
        ),
        ("RAW/bench.ipfw-standard.1.sender_gen2", "nothing sent"),
    ] {
        let at = page
            .find(&format!("{file}: "))
            .unwrap_or_else(|| panic!("{file}"));
        let told = page[at..].split(" ! ").next().unwrap();
        assert!(told.contains(reason), "{file}: {told}");
    }
    assert!(page.contains("Nothing was written: --out RECORDS writes records."));
    // No failed run has become a number.
    let runs: Vec<Value> = sets(CORPUS)
        .iter()
        .flat_map(|s| s["runs"].as_array().unwrap().clone())
        .collect();
    let failed = runs.iter().filter(|r| r["median_pps"].is_null());
    assert!(failed.clone().count() == 18 && failed.into_iter().all(|r| r["problems"].is_array()));
}

#[test]
fn stale_equilibrium_values_are_told() {
    let all = folders(&in_testdata(
        "AMD_GX-412TC_4Cores/Intel_i210AT/ipsec/results/fbsd11.0",
    ));
    let mut searches = all
        .iter()
        .flat_map(|folder| folder["equilibria"].as_array().unwrap());
    let null = searches.find(|s| s["name"] == "null").unwrap();
    assert_eq!(null["agrees"], true);
    assert!(
        text(&null["problems"], "0").is_empty()
            && null["problems"][0]
                .as_str()
                .unwrap()
                .contains("of earlier runs"),
        "{null}"
    );
}

/// Any part of the tree gives the same answers, and the place is known from the path above it.
#[test]
fn any_part_of_the_tree_can_be_read() {
    const RAW: &str = "Atom_C2758_8Cores/Chelsio_T520-SO/firewalls/results/fbsd15-n302145";
    for (part, agree) in [
        ("AMD_GX-412TC_4Cores", 6),
        (RAW, 2),
        (
            "Xeon_E5-2650_8Cores/OneConnect_be3/kern.random.harvest.mask/result",
            2,
        ),
    ] {
        let found = sets(&in_testdata(part));
        assert_eq!(
            found.iter().filter(|s| s["agrees"] == true).count(),
            agree,
            "{part}"
        );
    }
    let logs = sets(&in_testdata(&format!("{RAW}/RAW")));
    assert_eq!((logs.len(), text(&logs[0], "dir")), (2, "."));
    for (key, value) in [
        ("machine", "Atom_C2758_8Cores"),
        ("card", "Chelsio_T520-SO"),
        ("topic", "firewalls"),
    ] {
        assert_eq!(text(&logs[0], key), value);
    }
    assert!(
        logs.iter()
            .all(|s| s["published"].is_null() && s["runs"].as_array().unwrap().len() == 5)
    );
}

#[test]
fn records_are_written_whole_and_can_be_shown() {
    let scratch = Scratch::new();
    let out = scratch.file("records");
    let part = in_testdata("Xeon_E5-2650v4_2x12Cores/Intel_82599ES");
    let told = import(&part, &["--out", &out]).ok();
    assert!(
        told.stdout.contains(&format!("In {out}: 1 campaign with ")),
        "{told:?}"
    );
    let names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        names,
        ["Xeon_E5-2650v4_2x12Cores-Intel_82599ES-hw.ix.num_queues-fbsd11.1-yandex"]
    );
    let campaign = format!("{out}/{}", names[0]);
    let shown = linerate(["show", &campaign]).run().ok();
    for expected in [
        "Imported, not audited by linerate.",
        "8-default 64 B",
        "16 64 B: dropped by hand: run 1 (4270198)",
    ] {
        assert!(
            shown.stdout.contains(expected),
            "{expected}\n{}",
            shown.stdout
        );
    }
    let trials = fs::read_to_string(format!("{campaign}/trials.jsonl")).unwrap();
    let trials: Vec<Value> = trials
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let logged = trials.iter().filter(|t| {
        t["imported"]["file"]
            .as_str()
            .unwrap()
            .ends_with(".receiver")
    });
    assert_eq!(logged.clone().count(), 10);
    assert!(
        logged
            .into_iter()
            .all(|t| t["samples"].as_array().unwrap().len() > 50 && t["imported"]["lines"][0] == 16)
    );
    linerate(["show", &campaign, "--trials"]).run().ok();
    // The message names the command that compares.
    let refused = linerate(["compare", &campaign]).run();
    let told = refused
        .fails(1, &["no two cells to compare", "name two variants"])
        .stderr;
    let (_, command) = told.trim_end().split_once("linerate compare ").unwrap();
    let two = command.split('\'').filter(|part| part.contains(':'));
    let ended = linerate(["compare"].into_iter().chain(two)).run().ok();
    assert!(
        ended.stdout.contains("5 against 5 values"),
        "{}",
        ended.stdout
    );
    // A folder with something in it is not written into.
    import(&part, &["--out", &out]).fails(1, &["not empty"]);
}

#[test]
fn what_holds_no_results_is_refused() {
    let scratch = Scratch::new();
    import(&scratch.file("absent"), &[]).fails(1, &["absent", "No such file"]);
    fs::write(scratch.file("README.md"), "nothing").unwrap();
    let out = scratch.file("out");
    import(scratch.path().to_str().unwrap(), &["--out", &out])
        .fails(1, &["holds no results", "*.receiver"]);
    assert!(!Path::new(&out).exists());
    import(&scratch.file("README.md"), &[]).fails(1, &["README.md"]);
}

/// A log of 60 samples around a rate, as pkt-gen writes it.
fn log(rate: u64) -> String {
    let mut text = String::from("CMD: pkt-gen -N -f rx -i ix0 -w 4\n");
    for second in 0..60 {
        let pps = rate + second % 3;
        text += &format!(
            "{second:03}.000001 main_thread [2277] {pps} pps ({pps} pkts {} bps in 1000000 usec) 2.57 avg_batch 0 min_space\n",
            480 * pps
        );
    }
    text
}

#[test]
fn hostile_trees_do_no_harm() {
    let scratch = Scratch::new();
    let results = scratch.path().join("M_4Cores/card/topic/results/l");
    fs::create_dir_all(&results).unwrap();
    let at = |name: &str| results.join(name);
    for run in 1..=3 {
        fs::write(at(&format!("bench.a.{run}.receiver")), log(1000 * run)).unwrap();
    }
    fs::write(at("a.pps"), "1001\n2001\n3001\n").unwrap();
    // Loops, links out of the tree, a pipe without a writer, names that are not UTF-8, gaps of gigabytes.
    std::os::unix::fs::symlink("..", at("loop")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at("bench.b.1.receiver")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(at("bench.c.1.receiver"))
            .status()
            .unwrap()
            .success()
    );
    fs::write(
        results.join(std::ffi::OsStr::from_bytes(
            b"bench.\xff\x1b[31m.1.receiver",
        )),
        log(7),
    )
    .unwrap();
    fs::File::create(at("bench.d.1.receiver"))
        .unwrap()
        .set_len(200 << 30)
        .unwrap();
    fs::File::create(at("d.graph"))
        .unwrap()
        .set_len(200 << 30)
        .unwrap();
    fs::write(at("bench.e.1.receiver"), []).unwrap();
    let mut deep = results.clone();
    (0..100).for_each(|_| deep.push("x"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("y.pps"), "1\n").unwrap();

    let ended = import(scratch.path().to_str().unwrap(), &[]).ok();
    let page = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for expected in [
        "of 1 sets with logs and published medians, 1 agree exactly.",
        "bench.d.1.receiver: larger than 64 MiB",
        "d.graph: cut off in mid-line at a 4 KiB boundary",
        "bench.e.1.receiver: empty",
        "more than 64 folders deep: not read",
        "link, not followed 2",
        "special, not read 1",
    ] {
        assert!(page.contains(expected), "{expected}\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\x1b'));
    let by_set: BTreeMap<String, Value> = sets(scratch.path().to_str().unwrap())
        .into_iter()
        .map(|s| (text(&s, "set").to_string(), s))
        .collect();
    assert_eq!(
        (&by_set["a"]["agrees"], &by_set["a"]["machine"]),
        (&true.into(), &"M_4Cores".into())
    );
    assert!(!by_set.contains_key("b") && !by_set.contains_key("c") && !by_set.contains_key("y"));
}

/// The archive's script counts a log for two sets if the name of one continues that of the other.
#[test]
fn the_scripts_pattern_takes_other_sets_logs() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.file(name);
    for (name, rate) in [("a.1", 1000), ("a.2", 2000), ("a.b.1", 5000)] {
        fs::write(at(&format!("bench.{name}.receiver")), log(rate)).unwrap();
    }
    for name in ["a", "a.b"] {
        fs::write(
            at(&format!("bench.{name}.info")),
            "IMAGE=\"\"\nCFG=\"a\"\nPKTGEN=\"\"\nUNAME=\"FreeBSD x 15.0\"",
        )
        .unwrap();
    }
    fs::write(at("a.pps"), "1001\n2001\n5001\n").unwrap();
    fs::write(at("a.b.pps"), "5001\n").unwrap();
    let found = sets(scratch.path().to_str().unwrap());
    assert!(found.iter().all(|s| s["agrees"] == true), "{found:?}");
    assert!(
        found[0]["problems"][0]
            .as_str()
            .unwrap()
            .contains("include logs of other sets")
    );
}
