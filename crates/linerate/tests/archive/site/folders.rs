//! The folder of a site: equal results fill it equally, other files stay, and hostile names stay inside.

use super::{files, linked, made};
use crate::common::{Scratch, linerate, linerate_line};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const NETBENCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

#[test]
fn the_same_results_make_the_same_site_and_nothing_else_is_touched() {
    let scratch = Scratch::new();
    let [one, two, campaign] = ["one", "two", "results/monday"].map(|name| scratch.file(name));
    linerate_line(&format!(
        "bench --simulate ok --trials 5 --name monday --out {campaign} --quiet"
    ))
    .run()
    .ok();
    let results = scratch.file("results");
    fs::create_dir_all(scratch.path().join("results/broken")).unwrap();
    fs::write(scratch.path().join("results/broken/campaign.json"), "{").unwrap();
    let counts = made(&[NETBENCHES, &results], &one);
    made(&[NETBENCHES, &results], &two);
    let [first, second] = [&one, &two].map(|site| files(Path::new(site)));
    assert_eq!(first, second);
    let pages = linked(Path::new(&one));
    assert!(
        pages[Path::new("index.html")].contains("SIMULATED: 1 of ")
            && pages[Path::new("index.html")].len() < 200_000
    );
    assert!(
        pages[Path::new("problems/all.html")].contains("broken"),
        "the campaign that cannot be read"
    );
    assert_eq!(counts["pages"].as_u64(), Some(pages.len() as u64));
    // Again in the same folder: old pages go, other files stay.
    for file in ["sets/old.html", "notes.txt"] {
        fs::write(Path::new(&one).join(file), "mine").unwrap();
    }
    made(&[NETBENCHES, &results], &one);
    let mut again = files(Path::new(&one));
    assert_eq!(again.remove(Path::new("notes.txt")).unwrap(), b"mine");
    assert_eq!(again, first);
    let told = linerate(["site", &results, "-o", &one]).run().ok();
    assert!(
        told.stdout.contains("index.html") && told.stdout.contains("1 campaign"),
        "{told:?}"
    );
}

#[test]
fn two_spellings_of_a_topic_have_one_page() {
    let scratch = Scratch::new();
    let [archive, site] = ["archive", "site"].map(|name| scratch.file(name));
    for (machine, topic) in [
        ("A", "harvest.mask"),
        ("B", "harvest_mask"),
        ("C", "harvest"),
    ] {
        let folder = Path::new(&archive).join(format!("{machine}_4Cores/C/{topic}/results/l"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.pps"), "1000000\n1010000\n1020000\n").unwrap();
    }
    let counts = made(&[&archive], &site);
    assert_eq!(counts["topics"].as_u64(), Some(2), "{counts}");
    let pages = linked(Path::new(&site));
    let topic = &pages[Path::new("topics/harvest-mask.html")];
    assert!(topic.contains("A_4Cores") && topic.contains("B_4Cores"));
}

#[test]
fn a_record_with_a_broken_line_is_shown_and_told() {
    let scratch = Scratch::new();
    let [results, site] = ["results", "site"].map(|name| scratch.file(name));
    linerate_line(&format!(
        "bench --simulate ok --family 4 --trials 3 --duration 20ms --out {results}/one --quiet"
    ))
    .run()
    .ok();
    let trials = format!("{results}/one/trials.jsonl");
    let text = fs::read_to_string(&trials).unwrap();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines[0] = lines[0].replacen("\"slot\":", "\"slot\":NaN", 1);
    let last = lines.len() - 1;
    lines[last] = lines[last].replacen("\"slot\":", "\"slot\":9", 1);
    fs::write(&trials, lines.join("\n") + "\n").unwrap();
    let counts = made(&[&results], &site);
    assert_eq!(counts["campaigns"].as_u64(), Some(1));
    let reasons = counts["problems_found"].as_array().unwrap();
    let told = |text: &str| {
        let says = |problem: &&serde_json::Value| {
            problem["path"] == "one" && problem["reason"].as_str().unwrap().contains(text)
        };
        reasons.iter().filter(says).count()
    };
    assert_eq!(told("trials.jsonl, line 1"), 1, "{counts}");
    assert_eq!(told("it belongs to cell 9"), 1, "{counts}");
}

/// The records that `import` made of an archive, and the archive itself, are one site; only broken files are the archive's alone.
#[test]
fn imported_records_make_the_site_of_their_archive() {
    let scratch = Scratch::new();
    let [records, of_records, of_archive] =
        ["records", "one", "two"].map(|name| scratch.file(name));
    linerate(["import", "netbenches", NETBENCHES, "--out", &records])
        .run()
        .ok();
    let [mut one, mut two] = [(&records[..], &of_records), (NETBENCHES, &of_archive)]
        .map(|(from, to)| made(&[from], to));
    for counts in [&mut one, &mut two] {
        for key in ["front", "pages", "problems", "problems_found"] {
            counts.as_object_mut().unwrap().remove(key);
        }
    }
    assert_eq!(one, two);
    assert!(one["changes"].as_u64() > Some(8), "{one}");
    let history =
        |site: &str| fs::read_to_string(Path::new(site).join("history/all.html")).unwrap();
    assert_eq!(history(&of_records), history(&of_archive));
}

#[test]
fn other_folders_are_refused_and_hostile_names_stay_inside() {
    let scratch = Scratch::new();
    let [archive, site, full, empty] =
        ["archive", "site", "full", "empty"].map(|name| scratch.file(name));
    fs::create_dir(&full).unwrap();
    fs::create_dir(&empty).unwrap();
    fs::write(Path::new(&full).join("thesis.tex"), "mine").unwrap();
    linerate(["site", NETBENCHES, "-o", &full])
        .run()
        .fails(1, &["not empty", "-o"]);
    linerate(["site", &empty, "-o", &site])
        .run()
        .fails(1, &["holds no results"]);
    linerate(["site", "/nonexistent", "-o", &site])
        .run()
        .fails(1, &["/nonexistent"]);
    linerate(["site", NETBENCHES]).run().fails(2, &["-o"]);
    let long = "x".repeat(200);
    let names = [
        "a",
        "A",
        "..a",
        "<script>alert(1)<",
        "q\"uote",
        "new\nline",
        "-",
        "\u{202e}",
        &long,
        "index",
        "all",
    ];
    for name in names {
        let folder = Path::new(&archive).join(format!("M_4Cores/{name}/{name}/results/{name}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("{}.pps", &name[..name.len().min(100)])),
            "1000000\n1010000\n1020000\n",
        )
        .unwrap();
    }
    // More machines, and more files that cannot be read, than a page has room for.
    for machine in 0..110 {
        let folder = Path::new(&archive).join(format!("Many{machine}_4Cores/C/t/results/l"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.pps"), "1000000\n1010000\n1020000\n").unwrap();
    }
    for set in 0..650 {
        fs::write(
            Path::new(&archive).join(format!("Many0_4Cores/C/t/results/l/{set}.pps")),
            "",
        )
        .unwrap();
    }
    symlink(&full, Path::new(&archive).join("link")).unwrap();
    let counts = made(&[&archive], &site);
    assert_eq!(counts["campaigns"].as_u64(), Some(names.len() as u64 + 110));
    let pages = linked(Path::new(&site));
    let topic = &pages[Path::new("topics/t.html")];
    assert!(
        topic.contains("Shown are 30 of 110 sets") && topic.contains("tables have all"),
        "{topic}"
    );
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c);
    assert!(
        pages
            .keys()
            .all(|path| path.to_str().unwrap().chars().all(plain)),
        "{:?}",
        pages.keys()
    );
    assert!(
        pages
            .values()
            .all(|page| !page.contains("<script>alert") && !page.contains("thesis"))
    );
    assert!(
        pages[Path::new("index.html")].len() < 200_000
            && pages.keys().any(|page| page.ends_with("all-2.html"))
    );
    let index = fs::read_to_string(Path::new(&site).join("sets.js")).unwrap();
    assert!(
        !index.contains('<') && index.contains("\\u003cscript>alert(1)\\u003c"),
        "{index}"
    );
}
