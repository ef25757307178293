//! `linerate history`: changes found in the archive's yearly series, and in campaigns with planted changes.

use crate::common::{Scratch, linerate};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn judged(directory: &Path) -> Value {
    let ended = linerate(["history", "--json", &directory.display().to_string()])
        .run()
        .ok();
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {}", ended.stdout))
}

fn testdata(path: &str) -> PathBuf {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/netbenches"
    ))
    .join(path)
}

fn timelines(history: &Value) -> &Vec<Value> {
    history["timelines"].as_array().unwrap()
}

/// The time line of a variant.
#[track_caller]
fn of<'a>(history: &'a Value, variant: &str) -> &'a Value {
    let mut of_variant = timelines(history)
        .iter()
        .filter(|t| t["key"]["variant"] == variant);
    let found = of_variant
        .next()
        .unwrap_or_else(|| panic!("no {variant} in {history:#}"));
    assert!(of_variant.next().is_none(), "two time lines of {variant}");
    found
}

/// Changes: the last place before, the first after, the relative size in percent.
fn changes(timeline: &Value) -> Vec<(String, String, i64)> {
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let percent =
        |c: &Value| ((c["ratio"]["median"].as_f64().unwrap() - 1.0) * 100.0).round() as i64;
    let change = |c: &Value| (text(&c["after"]), text(&c["at"]), percent(c));
    timeline["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(change)
        .collect()
}

fn outliers(timeline: &Value) -> Vec<&str> {
    timeline["outliers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["place"].as_str().unwrap())
        .collect()
}

const OF_2015: &str = "Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd11-head.2015";

/// One year of FreeBSD 11-head: the breakage of r284739, which all firewalls share, and its repair in steps.
#[test]
fn the_year_2015() {
    let history = judged(&testdata(OF_2015));
    assert_eq!(timelines(&history).len(), 3);
    for variant in ["fastforwarding", "ipfw-stateful", "pf-stateful"] {
        let timeline = of(&history, variant);
        assert_eq!(timeline["points"].as_array().unwrap().len(), 51);
        let found = changes(timeline);
        let (after, at, percent) = &found[0];
        assert_eq!(
            (after.as_str(), at.as_str()),
            ("r284168", "r284739"),
            "{variant}: {found:?}"
        );
        assert!((-11..=-8).contains(percent), "{variant}: {found:?}");
        assert_eq!(
            (found[1].0.as_str(), found[1].1.as_str()),
            ("r285433", "r285702"),
            "{variant}: {found:?}"
        );
        assert!(
            found[1..].iter().all(|(_, _, percent)| *percent > 0),
            "{variant}: {found:?}"
        );
        // The first build was worse still, and is distinguished from those that followed.
        assert!(outliers(timeline).contains(&"r284739"), "{variant}");
        assert!(timeline["changes"][0]["made_good"].is_string(), "{variant}");
        let source = &timeline["changes"][0]["causes"][0];
        assert_eq!(
            (&source["what"], &source["commits"]),
            (&"source".into(), &571.into())
        );
        // The slow rise over the year.
        let overall = timeline["overall"].as_f64().unwrap();
        assert!((1.05..1.12).contains(&overall), "{variant}: {overall}");
    }
    let pf = of(&history, "pf-stateful");
    let dips = outliers(pf);
    assert!(
        dips.contains(&"r289159") && dips.contains(&"r290914"),
        "{dips:?}"
    );
    let near = |(_, at, _): &(String, String, i64)| {
        ["r289159", "r289550", "r290914", "r291164"].contains(&at.as_str())
    };
    assert!(
        !changes(pf).iter().any(near),
        "single points are no levels: {:?}",
        changes(pf)
    );
    // Sets with all their runs stand for themselves, rows of tables for the others.
    let runs: Vec<u64> = pf["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["figure"]["runs"].as_u64().unwrap())
        .filter(|r| *r > 0)
        .collect();
    assert_eq!(runs, [5, 5]);
}

#[test]
fn the_year_2017() {
    let history = judged(&testdata(
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017",
    ));
    let [timeline] = &timelines(&history)[..] else {
        panic!("{history:#}")
    };
    let found = changes(timeline);
    assert_eq!(found[0], ("r312969".into(), "r313287".into(), 4));
    assert_eq!(found[1], ("r326001".into(), "r326237".into(), 1));
    assert_eq!(found.len(), 2);
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn the_whole_corpus() {
    let history = judged(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus/netbenches"
    )));
    let changed: Vec<&Value> = timelines(&history)
        .iter()
        .filter(|t| !t["changes"].as_array().unwrap().is_empty())
        .collect();
    assert_eq!(
        changed.len(),
        4,
        "the yearly series: {:?}",
        changed.iter().map(|t| &t["key"]).collect::<Vec<_>>()
    );
    assert!(
        timelines(&history).len() > changed.len(),
        "time lines across folders"
    );
    // Sizes of tables and numbers of queues are no revisions.
    let places = timelines(&history)
        .iter()
        .flat_map(|t| t["points"].as_array().unwrap());
    assert!(places.clone().count() > 200);
    assert!(
        places
            .map(|p| p["place"].as_str().unwrap())
            .all(|p| p.starts_with("r2")
                || p.starts_with("r3")
                || p.contains("fbsd")
                || p.contains("main"))
    );
}

/// One year on an APU2, forwarding: the medians of `AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd.2016/forwarding.data`
/// around its two changes, in kpps (github.com/ocochard/netbenches, BSD-2-Clause).
const OF_2016: [(u32, f64); 24] = [
    (302532, 543.7),
    (302973, 547.8),
    (303277, 559.5),
    (303601, 582.4),
    (303642, 585.0),
    (303643, 556.2),
    (303818, 577.2),
    (304096, 492.1),
    (304572, 497.8),
    (304970, 510.3),
    (305396, 523.8),
    (305711, 540.0),
    (305953, 556.9),
    (306320, 509.5),
    (306592, 504.2),
    (308387, 510.3),
    (308904, 524.3),
    (309220, 529.9),
    (309256, 522.9),
    (309257, 593.6),
    (309541, 640.0),
    (309856, 631.5),
    (310236, 626.8),
    (310988, 580.8),
];

#[test]
fn one_commit_of_2016() {
    let scratch = Scratch::new();
    let folder = scratch
        .path()
        .join("AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd.2016");
    fs::create_dir_all(&folder).unwrap();
    let rows: String = OF_2016
        .iter()
        .map(|(r, kpps)| format!("{r} {0} {0} {0}\n", kpps * 1e3))
        .collect();
    fs::write(
        folder.join("forwarding.data"),
        format!("#index median minimum maximum\n{rows}"),
    )
    .unwrap();
    let found = judged(scratch.path());
    let timeline = of(&found, "forwarding");
    let rise = changes(timeline)
        .into_iter()
        .find(|(_, _, percent)| *percent > 15);
    let (after, at, _) = rise.unwrap_or_else(|| panic!("{timeline:#}"));
    assert_eq!((after.as_str(), at.as_str()), ("r309256", "r309257"));
    let change = timeline["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["at"] == "r309257")
        .unwrap();
    assert_eq!(change["causes"][0]["commits"], 1);
}

/// A folder of simulated campaigns, one a day, whose DUT forwards `rate(day)`.
fn campaigns(scratch: &Scratch, days: u32, rate: impl Fn(u32) -> u32) {
    simulated(scratch, days, |day| format!("rate={}kpps", rate(day)));
}

/// A folder of campaigns, one a day, of a DUT that is simulated so.
fn simulated(scratch: &Scratch, days: u32, dut: impl Fn(u32) -> String) {
    for day in 0..days {
        let out = scratch.file(&format!("results/{}/{day}", day / 7));
        fs::create_dir_all(&out).unwrap();
        let line = format!(
            "bench --simulate {} --duration 20ms --trials 6 --family 4 --out {out}",
            dut(day)
        );
        linerate(line.split_whitespace()).run().no_panic();
        edit(&format!("{out}/campaign.json"), |c| {
            c["started"] = format!("2026-03-{:02}T06:00:00Z", day + 1).into();
        });
    }
}

fn edit(file: &str, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    change(&mut document);
    fs::write(file, document.to_string()).unwrap();
}

#[test]
fn a_planted_change_of_a_setting_is_found_and_named() {
    let scratch = Scratch::new();
    campaigns(&scratch, 12, |day| if day < 6 { 500 } else { 150 });
    for day in 0..12 {
        edit(
            &scratch.file(&format!("results/{}/{day}/host.json", day / 7)),
            |host| {
                host["settings"]["net.core.bpf_jit_harden"] =
                    if day < 6 { "0" } else { "2" }.into();
                host["kernel"] = format!("6.1.0-{}", day / 3).into();
            },
        );
    }
    // A folder that is no longer a campaign is reported, and stops nothing.
    fs::create_dir_all(scratch.file("results/broken")).unwrap();
    fs::write(
        scratch.file("results/broken/campaign.json"),
        "{\"version\": 1,",
    )
    .unwrap();
    let results = scratch.path().join("results");
    let history = judged(&results);
    let timeline = of(&history, "forwarding");
    assert_eq!(timeline["measure"], "ratio to tester-baseline");
    let [change] = &timeline["changes"].as_array().unwrap()[..] else {
        panic!("{timeline:#}")
    };
    assert_eq!(
        (&change["after"], &change["at"]),
        (
            &"2026-03-06T06:00:00Z".into(),
            &"2026-03-07T06:00:00Z".into()
        )
    );
    let relative = change["ratio"]["median"].as_f64().unwrap() - 1.0;
    assert!((-0.85..-0.5).contains(&relative), "{relative}");
    let causes = change["causes"].as_array().unwrap();
    assert_eq!(causes[0]["what"], "setting net.core.bpf_jit_harden");
    assert_eq!(
        (&causes[0]["before"], &causes[0]["after"]),
        (&"0".into(), &"2".into())
    );
    assert_eq!(causes[1]["what"], "kernel");
    assert!(
        history["skipped"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("broken"),
        "{}",
        history["skipped"]
    );

    let ended = linerate(["history", results.to_str().unwrap()]).run().ok();
    assert!(ended.stdout.starts_with("SIMULATED"), "{}", ended.stdout);
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for said in [
        "1 regression and 0 improvements",
        "slower from 2026-03-07T06:00 on",
        "setting net.core.bpf_jit_harden 0 -> 2 (nowhere else)",
    ] {
        assert!(text.contains(said), "no '{said}' in {}", ended.stdout);
    }
    assert!(
        ended.stderr.contains("left out") && ended.stderr.contains("broken"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_dut_that_begins_to_drop_frames_has_not_become_slower() {
    let scratch = Scratch::new();
    simulated(&scratch, 10, |day| {
        (if day < 5 { "ok" } else { "loss=2" }).into()
    });
    // Rates of a quiet machine, whatever else this one does.
    for day in 0..10 {
        let file = scratch.file(&format!("results/{}/{day}/trials.jsonl", day / 7));
        let steady = |line: &str| {
            let mut trial: Value = serde_json::from_str(line).unwrap();
            let offered = 1e6 + 1e3 * f64::from(day * day % 7);
            let lost = trial["loss_ratio"].as_f64().unwrap();
            trial["rates"] = serde_json::json!({ "offered": offered, "received": offered * (1.0 - lost), "seconds": 0.02 });
            trial["audit"]["valid"] = true.into();
            format!("{trial}\n")
        };
        let steady: String = fs::read_to_string(&file)
            .unwrap()
            .lines()
            .map(steady)
            .collect();
        fs::write(&file, steady).unwrap();
    }
    let ended = linerate(["history", &scratch.file("results")]).run().ok();
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for said in [
        " % less passes from 2026-03-06T06:00 on",
        "frames dropped by the DUT 0 % -> 50 % (nowhere else)",
    ] {
        assert!(text.contains(said), "no '{said}' in {}", ended.stdout);
    }
    assert!(!text.contains("slower from"), "{}", ended.stdout);
}

#[test]
fn a_few_campaigns_are_listed_and_nothing_is_claimed() {
    let scratch = Scratch::new();
    campaigns(&scratch, 2, |day| 500 - 200 * day);
    let ended = linerate(["history", scratch.path().to_str().unwrap()])
        .run()
        .ok();
    assert!(
        ended.stdout.contains("too short to show a change"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("2 points"), "{}", ended.stdout);
}

#[test]
fn nothing_to_judge() {
    let scratch = Scratch::new();
    linerate(["history", scratch.path().to_str().unwrap()])
        .run()
        .fails(1, &["nothing to judge", "campaigns"]);
    linerate(["history", &scratch.file("absent")])
        .run()
        .fails(1, &["absent"]);
    linerate(["history"]).run().fails(2, &["<DIR>"]);
    // Hostile names and tables.
    let folder = scratch.path().join("m/c/t/results/fbsd\u{e4}\u{1b}[2J");
    fs::create_dir_all(&folder).unwrap();
    let rows: String = (0..30)
        .map(|i| format!("{} 1e308 -1 nan\n{} 0 0 0\n", 276_669 + i, 286_669 + i))
        .collect();
    fs::write(
        folder.join("gnuplot.data"),
        format!("{rows}999999999999999999999 5 5 5\n293120 7 7 7\n"),
    )
    .unwrap();
    let ended = linerate(["history", scratch.path().to_str().unwrap()])
        .run()
        .no_panic();
    assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
}
