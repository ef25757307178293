//! The pictures of the 2018 paper: the points of its plots, its tables, and its blocks of ministat.

use super::points::{Compared, Point, page_of, pictures};
use super::{CORPUS, linked, made};
use crate::common::Scratch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/paper");

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
