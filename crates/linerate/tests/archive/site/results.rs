//! Pages of results that stand beside the paper: tests of Conductor, and tables and blocks of ministat in the archive.

use super::points::{Compared, drawn, page_of, pictures};
use super::{CORPUS, linked, made};
use crate::common::Scratch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
