//! `linerate site`: pages over archives and campaigns, and the papers' pictures, held against the published tables.

mod points;

use crate::common::{Scratch, linerate, linerate_line};
use points::{Compared, Point, drawn, page_of, pictures};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/paper");
const NETBENCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");

/// A site, and its counts.
fn made(archives: &[&str], site: &str) -> Value {
    let arguments = ["site", "--json", "-o", site]
        .into_iter()
        .chain(archives.iter().copied());
    serde_json::from_str(&linerate(arguments).run().ok().stdout).unwrap()
}

/// All files of a folder by their paths below it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => {
                    let path = entry.path().strip_prefix(folder).unwrap().to_path_buf();
                    all.insert(path, fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    all
}

/// Every link of every page leads to a page of the site; returns the pages.
#[track_caller]
fn linked(site: &Path) -> BTreeMap<PathBuf, String> {
    let pages: BTreeMap<PathBuf, String> = files(site)
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "html"))
        .map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap()))
        .collect();
    let mut reached: BTreeSet<PathBuf> = [PathBuf::from("index.html")].into();
    let mut open = vec![PathBuf::from("index.html")];
    while let Some(page) = open.pop() {
        let text = pages
            .get(&page)
            .unwrap_or_else(|| panic!("no {}", page.display()));
        for link in text
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            if link.starts_with("data:") || link.starts_with('#') {
                continue;
            }
            let folder = page.parent().unwrap();
            let to = match link.strip_prefix("../") {
                Some(rest) => folder.parent().unwrap().join(rest),
                None => folder.join(link),
            };
            if reached.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    let all: BTreeSet<PathBuf> = pages.keys().cloned().collect();
    assert_eq!(reached, all, "pages without a link");
    pages
}

/// Illustrations of the 2018 paper that are plots, the folders behind them, and the points of their tables.
const PLOTS: [(&str, &str, usize); 10] = [
    (
        "6: queues",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/hw.cxgbe.nXxq10g/results/fbsd11.1",
        8,
    ),
    (
        "10: queues, patched",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/hw.cxgbe.nXxq10g.harvest.mask.351/results/fbsd11.1-yandex",
        8,
    ),
    (
        "17: queues, cxgbe",
        "Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/hw.cxgbe.nXxq/results/fbsd11.1-yandex",
        24,
    ),
    (
        "17: queues, ixgbe",
        "Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex",
        24,
    ),
    (
        "17: queues, mlx5en",
        "Xeon_E5-2650v4_2x12Cores/Mellanox_ConnectX-4/dev.mce.conf.channels/results/fbsd11.1-yandex",
        24,
    ),
    (
        "30: firewalls",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd11.1-yandex",
        14,
    ),
    (
        "31: rules",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls-stateless-rules/results/fbsd11.1-yandex",
        12,
    ),
    (
        "32: table size",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls-stateless-table/results/fbsd11.1-yandex",
        12,
    ),
    (
        "35: states",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls-statefull/results/fbsd11.1-yandex",
        14,
    ),
    (
        "36: states, lockless",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls-statefull/results/fbsd12.r328509-yandex",
        14,
    ),
];

#[test]
fn the_papers_pictures_have_the_published_points() {
    let scratch = Scratch::new();
    let site = scratch.file("site");
    made(&[PAPER], &site);
    let pages = linked(Path::new(&site));
    for (plot, folder, points) in PLOTS {
        let page = page_of(&pages, folder).unwrap();
        let found: Vec<usize> = pictures(page).iter().map(Vec::len).collect();
        assert_eq!(found, [points], "{plot}");
    }
    // In each of these, the author changed the file of runs after the table: README.md of the first has the new median.
    let differ = [
        "Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex: enabled-default: published [1203006.5, 502561.0, 1219576.0], the runs give [1206827.2, 1179102.5, 1219576.0]",
        "Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd11.1-yandex: forwarding.inet6: published [3437041.0, 3423911.0, 3477913.0], the runs give [3437041.0, 3422432.0, 3477913.0]",
        "Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex: 16: published [9706358.0, 9700977.0, 9791559.0], the runs give [9720981.5, 9700977.0, 9791559.0]",
    ];
    let expected = Compared {
        pictures: 55,
        agree: 348,
        without_runs: 0,
        differ: differ.map(String::from).into(),
    };
    assert_eq!(Compared::tables(PAPER, &pages), expected);
}

/// A figure as the paper prints it: rounded, or with further digits cut off.
fn is_printed(figure: &str, value: f64) -> bool {
    let digits = figure.trim_end_matches(['M', 'K']);
    let scale = if figure.ends_with('M') { 1e6 } else { 1e3 };
    let decimals = digits
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let cut = 10f64.powi(decimals as i32);
    let cut = (value / scale * cut).trunc() / cut;
    [value / scale, cut]
        .iter()
        .any(|value| format!("{value:.decimals$}") == digits)
}

/// The paper's tables and blocks of ministat as pictures: 9, 11, 19, 20, 22, 23, 25, 27 against the list of illustrations, and 5, 13, 18,
/// 21, 24, 29 against the rows of ministat that the paper prints.
#[test]
fn published_tables_and_blocks_of_the_paper_are_pictures() {
    let scratch = Scratch::new();
    let site = scratch.file("site");
    made(&[&format!("{CORPUS}/paper")], &site);
    let pages = linked(Path::new(&site));
    let (_, page) = pages
        .iter()
        .find(|(path, _)| path.to_str().unwrap().contains("tuning-freebsd"))
        .unwrap();
    let mut of: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for section in page.split("<h2").skip(1) {
        let heading = section.split('>').nth(1).unwrap_or_default();
        if let Some((number, _)) = heading
            .strip_prefix("Illustration ")
            .and_then(|rest| rest.split_once(':'))
        {
            of.insert(number, pictures(section).into_iter().flatten().collect());
        }
    }
    let list = fs::read_to_string(format!("{CORPUS}/paper/illustrations.tsv")).unwrap();
    let mut found: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for row in list
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>())
    {
        let medians = [7, 8].map(|at| row[at].parse::<f64>());
        let [Ok(a), Ok(b)] = medians else { continue };
        // In the archive's history only.
        if row[5].starts_with('@') {
            continue;
        }
        let points = &of[row[0]];
        // Of an even number of runs, the list has the upper of the two in the middle.
        let is = |point: &Point, median: f64| {
            let upper = |point: &Point| {
                let mut runs = point.runs.clone();
                runs.sort_by(f64::total_cmp);
                runs[runs.len() / 2]
            };
            point.median == median || (!point.runs.is_empty() && upper(point) == median)
        };
        let pair = |first: &&Point| {
            let second = points
                .iter()
                .find(|second| second.at == first.at && second.series != first.series);
            is(first, a) && second.is_some_and(|second| is(second, b))
        };
        assert!(
            points.iter().any(|point| pair(&point)),
            "{row:?} in {points:#?}"
        );
        let [right, wrong] = found.entry(row[0]).or_default();
        for (printed, median) in [(row[2], a), (row[3], b)] {
            *if is_printed(printed, median) {
                &mut *right
            } else {
                &mut *wrong
            } += 1;
        }
    }
    // The wrong ones are wrong in print: docs/reproduce.md has them.
    let expected = [
        ("11", [12, 0]),
        ("19", [15, 3]),
        ("20", [8, 0]),
        ("22", [17, 3]),
        ("23", [18, 0]),
        ("25", [4, 0]),
        ("27", [4, 0]),
        ("9", [16, 0]),
    ];
    assert_eq!(found, expected.into());
    let goldens = fs::read_to_string(format!("{CORPUS}/goldens.json")).unwrap();
    let goldens: Vec<Value> = serde_json::from_str(&goldens).unwrap();
    let mut rows = 0;
    for golden in goldens
        .iter()
        .filter(|golden| golden["seed"] == "000" && golden["sources"].is_array())
    {
        for row in golden["rows"].as_array().unwrap() {
            let row: Vec<f64> = row
                .as_str()
                .unwrap()
                .split_whitespace()
                .skip(1)
                .map(|n| n.parse().unwrap())
                .collect();
            let is = |point: &Point| {
                let end = |end: fn(f64, f64) -> f64| point.runs.iter().copied().reduce(end);
                let figures = [
                    point.runs.len() as f64,
                    end(f64::min).unwrap_or(0.0),
                    end(f64::max).unwrap_or(0.0),
                ];
                figures == row[..3] && point.median == row[3]
            };
            let blocks = ["5", "13", "18", "21", "24", "29"].map(|number| &of[number]);
            assert!(
                blocks.iter().any(|points| points.iter().any(is)),
                "{row:?} in {blocks:#?}"
            );
            rows += 1;
        }
    }
    assert_eq!(rows, 14);
}

/// The netperf collection: tests of Conductor with their output, iperf3, pkt-gen, and lists of numbers.
#[test]
fn published_results_of_conductors_tests_have_pages() {
    let scratch = Scratch::new();
    let site = scratch.file("site");
    let counts = made(&[&format!("{CORPUS}/netperf")], &site);
    let of = ["campaigns", "sets", "problems"].map(|key| counts[key].as_u64().unwrap());
    assert_eq!(of, [10, 13, 23], "{counts}");
    let pages = linked(Path::new(&site));
    let page = |name: &str| &pages[&PathBuf::from(format!("sets/{name}.html"))];
    let runs = |name: &str| {
        drawn(page(name))
            .into_iter()
            .flat_map(|point| point.runs)
            .collect::<Vec<_>>()
    };
    // Ten trials in the list of a conductor's steps: the whole of each test.
    let whole = runs("ipsec-iperf-aes-gcm-aesni-256-nopmc");
    assert_eq!(
        (whole.len(), &whole[..2], whole[9]),
        (10, &[1300.0, 1260.0][..], 1290.0)
    );
    assert_eq!(runs("pf-iperf3"), [8150.0]);
    assert_eq!(
        runs("ipsec-iperf-4host-forw-aes-nopmc")[4..6],
        [2340.0, 2480.0]
    );
    // The generator's block is the offered load.
    let offered = page("vanilla-pkt-gen");
    assert!(
        offered.contains("13.4") && offered.contains("1.338"),
        "{offered}"
    );
    assert!(page("ipsec-ipsec-results").contains("the file names no unit"));
    // Intervals of one run are in no test.
    assert!(pages[Path::new("topics/vanilla.html")].contains("samples, not runs"));
    let samples = page("vanilla-vimage");
    assert!(
        samples.contains("samples are not independent") && !samples.contains("Difference at"),
        "{samples}"
    );
    // A copy of another test's result says so, and so do tests without a result.
    assert!(
        page("ipsec-iperf-4host-forw-noipsec-nopmc")
            .contains("a copy of IPSEC/Tests/iperf-4host-forw-aes-nopmc")
    );
    let problems = &pages[Path::new("problems/all.html")];
    assert_eq!(
        problems
            .matches("a test of Conductor without its output")
            .count(),
        20
    );
    assert!(pages[Path::new("topics/ipsec.html")].contains("iperf-aes-gcm-aesni-256-nopmc"));
}

/// The other part of the archive has logs. Its author left runs out by hand, or had logs overwritten, where the least run differs; the
/// row of 2015 has the upper of two middle runs.
#[test]
fn published_tables_and_blocks_of_ministat_have_the_points_of_the_pictures() {
    let scratch = Scratch::new();
    let of = |part: &str| {
        let (archive, site) = (format!("{CORPUS}/{part}"), scratch.file("site"));
        let counts = made(&[&archive], &site);
        let pages = linked(Path::new(&site));
        (
            Compared::tables(&archive, &pages),
            Compared::readmes(&archive, &pages),
            pages,
            counts,
        )
    };
    let (_, readmes, pages, _) = of("paper");
    assert_eq!(
        readmes,
        Compared {
            agree: 84,
            without_runs: 9,
            ..Compared::default()
        }
    );
    illustration_9(&pages);
    let (tables, readmes, pages, counts) = of("netbenches");
    let differ = [
        "AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib: 311848: published [624595.5, 621955.0, 628503.5], the runs give [624595.5, 481515.0, 628503.5]",
        "AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib: 312905: published [586193.0, 581032.0, 588829.0], the runs give [584949.0, 409874.0, 588829.0]",
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017: 311703: published [5562864.0, 5553007.0, 5609344.0], the runs give [5562864.0, 1.0, 5609344.0]",
        "Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex: 16: published [9706358.0, 9700977.0, 9791559.0], the runs give [9706358.0, 4270198.0, 9791559.0]",
        "Xeon_L5630_4Cores/Intel_82599EB/ix.num_queues/results/fbsd11-routing.r287531: 2: published [1499909.0, 1481953.0, 1500378.0], the runs give [1496019.5, 1481953.0, 1500378.0]",
    ];
    let differ = differ.map(String::from).into();
    assert_eq!(
        tables,
        Compared {
            pictures: 43,
            agree: 170,
            without_runs: 306,
            differ
        }
    );
    let blocks = [
        "AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib: 311848: published [624595.5, 621955.0, 628503.5], the runs give [624595.5, 481515.0, 628503.5]",
        "AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib: 312905: published [586193.0, 581032.0, 588829.0], the runs give [584949.0, 409874.0, 588829.0]",
        "Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex: enabled-default: published [1206827.2, 1179102.5, 1219576.0], the runs give [1203006.5, 502561.0, 1219576.0]",
        "Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex: enabled-default: published [1206827.2, 1179102.5, 1219576.0], the runs give [1203006.5, 502561.0, 1219576.0]",
        "Atom_C2558_4Cores/Intel_i350/hw.intr_storm_threshold/results/fbsd11.1-yandex: 9000: published [1218047.0, 1202191.0, 1226396.5], the runs give [1214236.0, 853109.0, 1226396.5]",
    ];
    let expected = Compared {
        agree: 38,
        without_runs: 19,
        differ: blocks.map(String::from).into(),
        ..Compared::default()
    };
    assert_eq!(readmes, expected);
    let reason = |problem: &Value| problem["reason"].as_str().unwrap().to_string();
    let told: Vec<String> = counts["problems_found"]
        .as_array()
        .unwrap()
        .iter()
        .map(reason)
        .collect();
    let partly = told
        .iter()
        .filter(|reason| reason.contains("rows have no runs"))
        .count();
    let none = told
        .iter()
        .filter(|reason| reason.contains("rows has runs"))
        .count();
    assert_eq!(
        [partly, none],
        [18, 8],
        "each table with such rows, in a line"
    );
    let table = page_of(
        &pages,
        "Atom_C2758_8Cores/Chelsio_T520-SO/firewalls/results/fbsd15-n302145",
    )
    .unwrap();
    assert!(table.contains("gnuplot.data: 10 of its 14 rows have no runs in this folder"));
    let profiled = pages
        .values()
        .filter(|page| page.contains("Left out: runs beside a profiler"))
        .count();
    assert!(profiled > 0);
    frame_lengths(
        page_of(
            &pages,
            "AMD_G-T40E_2Cores/RTL8111E/RFC2544/results/fbsd10.3",
        )
        .unwrap(),
    );
    assert!(
        counts["pages"].as_u64() > Some(100) && counts["changes"].as_u64() > Some(8),
        "{counts}"
    );
}

/// Illustration 9 of the paper, the harvest mask on every machine, as bars side by side: its medians as the list of illustrations has them.
fn illustration_9(pages: &BTreeMap<PathBuf, String>) {
    let list = fs::read_to_string(format!("{CORPUS}/paper/illustrations.tsv")).unwrap();
    let points = drawn(&pages[Path::new("topics/kern-random-harvest-mask.html")]);
    let mut agree = 0;
    for row in list
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
    {
        let is_here =
            |file: &str| file.contains("/kern.random.harvest.mask/") && !file.starts_with('@');
        if row[0] != "9" || !row[4].starts_with("exact") || !is_here(row[5]) {
            continue;
        }
        for (set, median) in [("511-default", row[7]), ("351", row[8])] {
            let median: f64 = median.parse().unwrap();
            let found = points
                .iter()
                .any(|point| point.series == set && point.median == median);
            assert!(found, "{set} of {}: {median} in {points:#?}", row[1]);
            agree += 1;
        }
    }
    assert_eq!(agree, 14);
}

/// The rate over the frame length, below the line rate of 1 Gbit/s, with that of simple IMIX.
fn frame_lengths(page: &str) {
    let picture = pictures(page).remove(0);
    let at = |series: &str, length: &str| {
        let found = picture
            .iter()
            .find(|point| point.series.starts_with(series) && point.at == length);
        found
            .unwrap_or_else(|| panic!("{series} at {length} in {picture:#?}"))
            .median
    };
    assert_eq!(
        ["64", "128", "1280", "1518"].map(|length| at("median", length)),
        [152_694.0, 152_707.5, 96_152.0, 81_273.0]
    );
    assert_eq!(
        [64.0, 1518.0].map(|length| (1e9 / 8.0 / (length + 20.0f64)).round()),
        [1_488_095.0, 81_274.0]
    );
    assert_eq!(
        ["64", "1518"].map(|length| at("line rate, 1 G", length).round()),
        [1_488_095.0, 81_274.0]
    );
    let imix = (7.0 * 64.0 + 4.0 * 594.0 + 1518.0) / 12.0;
    assert!((at("line rate of simple IMIX", "64") - 1e9 / 8.0 / (imix + 20.0f64)).abs() < 1.0);
}

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
        pages[Path::new("index.html")].contains("SIMULATED")
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
