//! `linerate reproduce`: the printed figures, against the medians behind them.

use crate::common::{Scratch, linerate};
use serde_json::Value;

const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/paper");
const NETBENCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

fn found() -> Value {
    let json = linerate(["reproduce", "--json", PAPER, NETBENCHES])
        .run()
        .ok()
        .stdout;
    serde_json::from_str(&json).unwrap()
}

fn figures<'a>(document: &'a Value, illustration: &str) -> Vec<&'a Value> {
    let figures = document["figures"].as_array().unwrap();
    figures
        .iter()
        .filter(|f| f["illustration"] == illustration)
        .collect()
}

/// Of the paper: illustration -> figures that agree, are cut off, are wrong, have no data.
const STATES: [(&str, [usize; 4]); 15] = [
    ("9", [17, 7, 0, 6]),
    ("11", [13, 5, 0, 12]),
    ("12", [0, 0, 0, 8]),
    ("19", [17, 7, 3, 0]),
    ("20", [9, 3, 0, 0]),
    ("22", [21, 6, 3, 0]),
    ("23", [15, 12, 0, 0]),
    ("25", [2, 4, 0, 0]),
    ("27", [3, 3, 0, 0]),
    ("5", [30, 0, 0, 0]),
    ("13", [18, 0, 0, 0]),
    ("18", [25, 0, 0, 0]),
    ("21", [18, 0, 0, 0]),
    ("24", [18, 0, 0, 0]),
    ("29", [18, 0, 0, 0]),
];

#[test]
fn every_figure_of_the_paper_is_judged() {
    let found = found();
    let paper = &found[0];
    for (illustration, expected) in STATES {
        let figures = figures(paper, illustration);
        let count = |state: &str| figures.iter().filter(|f| f["state"] == state).count();
        let states = ["agrees", "truncated", "wrong-in-print", "no-data"].map(count);
        assert_eq!(states, expected, "illustration {illustration}");
    }
    let judged: usize = STATES.iter().flat_map(|(_, n)| n).sum();
    assert_eq!(paper["figures"].as_array().unwrap().len(), judged);
}

#[test]
fn slips_in_print_are_found_and_explained() {
    let found = found();
    let slips: Vec<_> = found[0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["state"] == "wrong-in-print")
        .map(|f| {
            ["illustration", "row", "printed", "note"].map(|k| f[k].as_str().unwrap().to_string())
        })
        .collect();
    let expected = [
        [
            "19",
            "E5-2650v4 (2x12) & cxgbe",
            "12.40 Mpps",
            "12.4142 Mpps; the printed figure may be a slip in the last",
        ],
        [
            "19",
            "E5-2650v4 (2x12) & cxgbe",
            "12.40 Mpps",
            "12.4127 Mpps; the printed figure may be a slip in the last",
        ],
        ["19", "C2758 (8) & ixgbe", "3.06 Mpps", "3.0817 Mpps"],
        [
            "22",
            "E5-2650v4 (2x12) & ixgbe",
            "8.61 Mpps",
            "8.3540 Mpps; the printed figure may be the maximum of the runs",
        ],
        [
            "22",
            "E5-2650v4 (2x12) & ml4en",
            "3.92 Mpps",
            "3.4923 Mpps; the printed figure may be the median of",
        ],
        [
            "22",
            "E5-2650v2 (8) & cxgbe",
            "5.75 Mpps",
            "4.6485 Mpps; the printed figure may be the median of",
        ],
    ];
    assert_eq!(slips.len(), expected.len(), "{slips:#?}");
    for (slip, wanted) in slips.iter().zip(expected) {
        assert_eq!(slip[..3], wanted[..3], "{slips:#?}");
        assert!(slip[3].contains(wanted[3]), "{slip:?}");
        assert!(
            slip[3].contains("the printed difference was computed with the data"),
            "{slip:?}"
        );
    }
}

#[test]
fn blocks_say_which_ministat_made_them() {
    let found = found();
    let eras = |document: usize, illustration: &str| {
        let blocks = found[document]["blocks"].as_array().unwrap();
        let block = blocks
            .iter()
            .find(|b| b["illustration"] == illustration)
            .unwrap();
        (
            block["eras"].clone(),
            block["plot"].clone(),
            block["data"].clone(),
        )
    };
    assert_eq!(
        eras(0, "21"),
        (serde_json::json!(["fb11"]), Value::Null, true.into())
    );
    assert_eq!(eras(0, "5").0, serde_json::json!(["fb11", "new"]));
    assert_eq!(eras(1, "perf-1").1, "same-with-separate-bars");
    assert_eq!(
        eras(1, "82580-1"),
        (serde_json::json!(["old", "mid"]), Value::Null, false.into())
    );
    assert_eq!(
        eras(1, "perf-3").1,
        "differs",
        "its last line lacks a parenthesis"
    );
}

#[test]
fn plots_are_drawn_where_there_are_data() {
    let page = linerate(["reproduce", "--only", "10,31", PAPER])
        .run()
        .ok()
        .stdout;
    let line = |start: &str| {
        page.lines()
            .find(|l| l.trim_start().starts_with(start))
            .unwrap_or_default()
    };
    assert!(line("8 ").contains("10.96 |####"), "{page}");
    assert!(
        line("1000 ").contains("0.85") || line("1000 ").contains('|'),
        "{page}"
    );
    assert!(!page.contains("Illustration 9:"), "{page}");
    let paper = &found()[0]["plots"];
    let points = |i: usize| paper[i]["series"][0]["points"].as_array().unwrap().len();
    assert_eq!([points(0), points(1), points(2), points(3)], [8, 8, 24, 7]);
    // The plots stand before the tables and blocks.
    let plots = paper
        .as_array()
        .unwrap()
        .iter()
        .take_while(|plot| plot["axis"] != "set-up");
    let all = plots.flat_map(|p| p["series"].as_array().unwrap());
    let missing = all
        .flat_map(|s| s["points"].as_array().unwrap())
        .filter(|p| p["runs"].is_null());
    assert_eq!(missing.count(), 0);
}

#[test]
fn what_cannot_be_read_is_named() {
    let scratch = Scratch::new();
    let folder = scratch.path().to_str().unwrap();
    linerate(["reproduce", folder])
        .run()
        .fails(1, &["holds no results"]);
    // Results of something else.
    let other = scratch
        .path()
        .join("other/Machine/Card/topic/results/label");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("a.pps"), "1000000\n1010000\n1020000\n").unwrap();
    linerate(["reproduce", &scratch.file("other")])
        .run()
        .fails(1, &["nothing behind any of the printed"]);
    linerate(["reproduce", "/nonexistent"])
        .run()
        .fails(1, &["/nonexistent"]);
    linerate(["reproduce"]).run().fails(2, &["ARCHIVE"]);
    let mapping = scratch.file("m.toml");
    std::fs::write(&mapping, "document = 'd'\nera = 'fb12'\n").unwrap();
    linerate(["reproduce", folder, "--mapping", &mapping])
        .run()
        .fails(1, &["m.toml", "line 2", "fb12"]);
}

#[test]
fn a_mapping_of_ones_own_is_used() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("Machine/Card/topic/results/label");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.pps"), "1000000\n1010000\n1020000\n").unwrap();
    std::fs::write(folder.join("b.pps"), "2000000\n2010000\n2020000\n").unwrap();
    let mapping = scratch.file("m.toml");
    let text = "document = 'mine'\nera = 'new'\n[[table]]\nillustration = '1'\ncaption = 'c'\ncolumns = ['a', 'b']\n[[table.row]]\nsetup = 's'\nprinted = ['1.01 Mpps', '2.02 Mpps']\ndifference = '99% +/- 4%'\nsources = ['Machine/Card/topic/results/label/a.pps', 'Machine/Card/topic/results/label/b.pps']\n";
    std::fs::write(&mapping, text).unwrap();
    let root = scratch.path().to_str().unwrap();
    let page = linerate(["reproduce", root, "--mapping", &mapping])
        .run()
        .ok()
        .stdout;
    assert!(page.contains("Of 3 printed figures 2 agree"), "{page}");
    let flat: Vec<&str> = page.split_whitespace().collect();
    assert!(
        flat.join(" ")
            .contains("a slip in the last digit, or the maximum of the runs"),
        "{page}"
    );
    linerate(["reproduce", root, "--mapping", &mapping, "--only", "7"])
        .run()
        .fails(2, &["no illustration 7", "there are "]);
}
