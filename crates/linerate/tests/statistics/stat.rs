//! `linerate stat` is a drop-in for ministat: equal to Debian's byte for byte, and clear where that one is not.

use crate::common::{Ended, Program, Scratch, linerate};
use proptest::prelude::*;
use std::fmt::Write;

/// Form of a set's numbers.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Digits,
    Decimals,
    Rates,
    TinySpan,
    HugeRange,
    Ties,
    Constant,
    Zeros,
    LastBits,
    Negative,
}

const SHAPES: [Shape; 10] = [
    Shape::Digits,
    Shape::Decimals,
    Shape::Rates,
    Shape::TinySpan,
    Shape::HugeRange,
    Shape::Ties,
    Shape::Constant,
    Shape::Zeros,
    Shape::LastBits,
    Shape::Negative,
];

impl Shape {
    /// A number as text, out of something random.
    fn number(self, random: u64) -> String {
        let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
        match self {
            Shape::Digits => (random % 10).to_string(),
            Shape::Decimals => format!("{:.3}", unit * 1000.0),
            Shape::Rates => format!("{:.1}", 1e7 + (unit - 0.5) * 1e5),
            Shape::TinySpan => (1_000_000_000 + random % 4).to_string(),
            // Neither the squares nor their sum overflow: ministat crashes there.
            Shape::HugeRange => format!("{:e}", (unit - 0.5) * 10f64.powi(random as i32 % 150)),
            Shape::Ties => ["5", "5.0", "5.5"][random as usize % 3].into(),
            Shape::Constant => "7".into(),
            Shape::Zeros => ["0", "-0", "1", "-1"][random as usize % 4].into(),
            // Closer together, columns are lost in rounding: ministat then writes past the edge of its plot.
            Shape::LastBits => format!("{}", 1.0 + (random % 9) as f64 * 1000.0 * f64::EPSILON),
            Shape::Negative => format!("{}", -unit * 1e-6),
        }
    }
}

/// The numbers of a set: a shape, and the seed of each number.
type Numbers = (Shape, Vec<u64>);

fn numbers() -> impl Strategy<Value = Numbers> {
    let count = prop_oneof![6 => 3usize..12, 2 => 12usize..200, 1 => 200usize..2000];
    let random = count.prop_flat_map(|n| proptest::collection::vec(any::<u64>(), n));
    (proptest::sample::select(&SHAPES[..]), random)
}

/// Layout of the files, and arguments.
#[derive(Debug, Clone)]
struct Asked {
    columns: usize,
    column: usize,
    delimiters: &'static str,
    junk: u64,
    separate_bars: bool,
    no_differences: bool,
    no_plot: bool,
    quiet: bool,
    width: Option<usize>,
    confidence: Option<&'static str>,
}

fn asked() -> impl Strategy<Value = Asked> {
    let layout = (
        1usize..4,
        0usize..3,
        proptest::sample::select(&[" ", "\t", " \t", ",", ";,"][..]),
        any::<u64>(),
    );
    let width = prop_oneof![2usize..12, 20usize..160, Just(74), Just(80)];
    let confidence = proptest::sample::select(&["80", "90", "95", "98", "99", "99.5"][..]);
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    (
        layout,
        flags,
        proptest::option::of(width),
        proptest::option::of(confidence),
    )
        .prop_map(
            |(
                (columns, column, delimiters, junk),
                (separate_bars, no_differences, no_plot, quiet),
                width,
                confidence,
            )| Asked {
                columns,
                column: column % columns + 1,
                delimiters,
                junk,
                separate_bars,
                no_differences,
                no_plot,
                quiet,
                width,
                confidence,
            },
        )
}

impl Asked {
    /// A file of these numbers in their column, with things between them that do not count.
    fn file(&self, (shape, randoms): &Numbers) -> String {
        let delimiters: Vec<char> = self.delimiters.chars().collect();
        let mut text = String::new();
        for (line, random) in randoms.iter().enumerate() {
            for column in 1..=self.columns {
                let other = Shape::Decimals.number(random.rotate_left(column as u32 * 7));
                text += &if column == self.column {
                    shape.number(*random)
                } else {
                    other
                };
                text.push(delimiters[(random.rotate_right(5) as usize) % delimiters.len()]);
            }
            if !random.is_multiple_of(4) {
                text.pop();
            }
            text += match (self.junk ^ line as u64) % 32 {
                0 => "\r\n",
                1 => "  \n",
                2 => "\n\n",
                3 => "\n# 8\n",
                4 if self.delimiters.contains(' ') => " # 8\n",
                5 if line + 1 == randoms.len() => "",
                _ => "\n",
            };
        }
        text
    }

    /// The options that Debian's ministat has as well.
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        let flags = [
            ("-s", self.separate_bars),
            ("-n", self.no_differences),
            ("-A", self.no_plot),
        ];
        arguments.extend(
            flags
                .iter()
                .filter(|(_, set)| *set)
                .map(|(flag, _)| (*flag).into()),
        );
        arguments.extend(self.width.map(|width| format!("-w{width}")));
        arguments.extend(self.confidence.map(|confidence| format!("-c{confidence}")));
        if self.delimiters != " " {
            arguments.extend(["-d".into(), self.delimiters.into()]);
        }
        if self.columns > 1 {
            arguments.extend(["-C".into(), self.column.to_string()]);
        }
        arguments
    }
}

/// Without names and headings: FreeBSD's `-q`, which Debian's ministat does not have.
fn quietened(text: &str, sets: usize) -> String {
    let lines = text
        .lines()
        .skip(sets)
        .filter(|line| !line.starts_with("    N "));
    lines.fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{line}");
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(not(ministat), ignore = "needs ministat")]
    fn output_is_that_of_debians_ministat(sets in proptest::collection::vec(numbers(), 1..8), asked in asked()) {
        let scratch = Scratch::new();
        let names: Vec<String> = (0..sets.len()).map(|set| format!("set{set}")).collect();
        for (name, set) in names.iter().zip(&sets) {
            std::fs::write(scratch.file(name), asked.file(set)).unwrap();
        }
        let arguments = asked.arguments();
        let theirs = Program::new("ministat").args(&arguments).args(&names).dir(scratch.path()).run();
        let quiet = if asked.quiet { &["-q"][..] } else { &[] };
        let ours = linerate(["stat", "--era", "old"]).args(quiet).args(&arguments).args(&names);
        let ours = ours.dir(scratch.path()).run();
        let expected =
            if asked.quiet { quietened(&theirs.stdout, sets.len()) } else { theirs.stdout.clone() };
        prop_assert_eq!(&ours.stdout, &expected, "{:?}", arguments);
        prop_assert_eq!((ours.status.code(), theirs.status.code()), (Some(0), Some(0)));
    }
}

/// A folder with one file.
fn with(text: &str) -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.file("a.txt"), text).unwrap();
    scratch
}

/// `linerate stat` of a file `a.txt` with this text, with arguments.
fn stat(text: &str, arguments: &[&str]) -> Ended {
    let scratch = with(text);
    linerate(["stat"])
        .args(arguments)
        .args(["a.txt"])
        .dir(scratch.path())
        .run()
}

#[test]
fn what_ministat_reads_is_read() {
    let row = "x   4             1             4             3           2.5     1.2909944\n";
    for text in [
        "1\n2\n3\n4",
        "1\r\n2\r\n3\r\n4\r\n",
        "# c\n1\n2 # x\n\n3\n   \n 4\n",
        "0x1\n0x1p1\n3e0\n+4.\n",
        "1 9\n2\t9\n3\n4 9 9\n",
    ] {
        assert_eq!(
            stat(text, &["--era", "old", "-qn"]).ok().stdout,
            row,
            "{text:?}"
        );
    }
    let third = stat(
        "1,2;3\n\n4,5\n6;7,8\n9,,10,11\n",
        &["-qn", "-C3", "-d", ",;"],
    )
    .ok()
    .stdout;
    assert_eq!(
        third,
        "x   3             3            11             8     7.3333333     4.0414519\n"
    );
}

#[test]
fn what_has_no_figures_is_named_with_file_and_line() {
    let cases: [(&str, &[&str]); 10] = [
        ("", &["a.txt has 0 numbers", "at least 3"]),
        ("1\n", &["a.txt has 1 numbers", "at least 3"]),
        ("1\n2\n# 3\n", &["a.txt has 2 numbers"]),
        ("1\n2\nabc\n", &["a.txt, line 3", "\"abc\"", "not a number"]),
        ("1\n2x\n3\n", &["a.txt, line 2", "\"2x\""]),
        (
            "1\n2\nnan\n4\n",
            &["a.txt, line 3", "\"nan\"", "leave it out"],
        ),
        ("1\n-inf\n3\n", &["a.txt, line 2", "\"-inf\""]),
        ("1\n2\n1e309\n", &["a.txt, line 3", "too large"]),
        (
            "1e308\n1.7e308\n1.6e308\n",
            &["a.txt", "overflows", "divide"],
        ),
        ("1\n2\n3\n4\0 5\n", &["a.txt, line 4", "zero byte"]),
    ];
    for (text, says) in cases {
        for era in ["old", "new"] {
            let ended = stat(text, &["--era", era]).fails(1, says);
            assert_eq!(ended.stdout, "", "{text:?}");
        }
    }
    stat("1\n2\n3\n", &["-C", "2"]).fails(1, &["0 numbers in column 2"]);
    linerate(["stat", "/nonexistent/a"])
        .run()
        .fails(1, &["/nonexistent/a", "No such file"]);
    linerate(["stat", "/tmp"])
        .run()
        .fails(1, &["/tmp", "directory"]);
}

#[test]
fn a_deviation_lost_in_rounding_is_said() {
    // One pass: the squares of 10^9 and the next numbers differ in bits that they do not have.
    let text = "1000000000\n1000000001\n1000000002\n1000000003\n".repeat(5);
    let old = stat(&text, &["--era", "fb11", "-qn"]).ok();
    assert!(old.stdout.ends_with(" -nan\n"), "{}", old.stdout);
    assert!(
        old.stderr.contains("a.txt") && old.stderr.contains("--era new"),
        "{}",
        old.stderr
    );
    let new = stat(&text, &["-qn"]).ok();
    assert!(
        new.stdout.ends_with(" 1.1470787\n") && new.stderr.is_empty(),
        "{new:?}"
    );
    // Less, but still wrong.
    let some = stat(
        "100000001\n100000002\n100000003\n100000001\n",
        &["--era", "old", "-qn"],
    )
    .ok();
    assert!(some.stderr.contains("--era new"), "{some:?}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let cases: [(&str, &[&str]); 13] = [
        ("-c 94", &["94", "99.5"]),
        ("-c 95%", &["95%", "99.5"]),
        ("-C 0", &["--column", "from 1"]),
        ("-C x", &["--column", "from 1"]),
        ("-w 1", &["--width", "2 to"]),
        ("-w wide", &["--width", "2 to"]),
        ("--era 2015", &["2015", "fb11"]),
        ("-d=", &["--delimiters", "at least one"]),
        ("a b c d e f g h", &["8 files", "7 sets"]),
        ("- -", &["standard input", "once"]),
        ("-x a", &["-x"]),
        ("--full --json a", &["--json", "--full"]),
        ("--show 0 a", &["--show", "above 0"]),
    ];
    for (line, says) in cases {
        linerate(["stat"])
            .args(line.split(' '))
            .run()
            .fails(2, says);
    }
}

#[test]
fn standard_input_is_a_set() {
    let scratch = with("1\n2\n3\n");
    let bin = env!("CARGO_BIN_EXE_linerate");
    let shell = |line: &str| {
        let script = line.replace("STAT", &format!("{bin} stat"));
        Program::new("sh")
            .args(["-c", &script])
            .dir(scratch.path())
            .run()
            .ok()
            .stdout
    };
    let alone = shell("STAT < a.txt");
    assert!(alone.starts_with("x <stdin>\n+---"), "{alone}");
    assert_eq!(shell("STAT - < a.txt"), alone);
    assert!(shell("STAT -A a.txt - < a.txt").starts_with("x a.txt\n+ <stdin>\n"));
    // As ministat: options may stand behind files, letters together, and twice.
    assert_eq!(
        shell("STAT a.txt -n -n"),
        shell("STAT -An -w 20 -w 30 -- a.txt")
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is() {
    let scratch = with(&format!("{}9\n", "1\n".repeat(100_000)));
    let bin = env!("CARGO_BIN_EXE_linerate");
    let shell = |script: &str| {
        Program::new("sh")
            .args(["-c", script])
            .dir(scratch.path())
            .run()
    };
    let ended = shell(&format!(
        "{{ {bin} stat a.txt; echo \"status $?\" >&2; }} | head -n 1"
    ))
    .ok();
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("x a.txt\n", "status 0\n")
    );
    shell(&format!("{bin} stat a.txt > /dev/full")).fails(1, &["standard output", "No space left"]);
}

/// On a terminal the plot is as wide as it; ministat takes `COLUMNS` for the width between the edges.
#[test]
fn the_width_is_the_terminals() {
    let scratch = with("1\n2\n3\n");
    let bin = env!("CARGO_BIN_EXE_linerate");
    let width = |setup: &str| {
        let inner = format!("stty cols 100; {setup} {bin} stat a.txt");
        let ended = Program::new("script")
            .args(["-qec", &inner, "/dev/null"])
            .dir(scratch.path())
            .run()
            .ok();
        ended
            .stdout
            .lines()
            .find(|line| line.starts_with("+-"))
            .map(|line| line.trim_end().len())
    };
    assert_eq!(width(""), Some(100));
    assert_eq!(width("COLUMNS=50"), Some(52));
    assert_eq!(width("COLUMNS=none"), Some(100));
}

/// Three sets of the archive: Xeon E5-2650, Chelsio T540, machdep.hyperthreading_allowed, in packets/s.
fn with_three_sets() -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in [
        ("8rxq.pps", "4648451\n4735822\n4724896\n4632222\n4500078\n"),
        (
            "16rxq.pps",
            "4925106\n5070589.5\n5104512\n5198632\n5142971\n",
        ),
        (
            "disabled.pps",
            "5801231.5\n5783115\n5765684\n5780396\n5794597\n",
        ),
    ] {
        std::fs::write(scratch.file(name), text).unwrap();
    }
    scratch
}

#[test]
fn full_is_the_block_and_then_the_analysis() {
    let scratch = with_three_sets();
    let sets = ["8rxq.pps", "16rxq.pps", "disabled.pps"];
    let run = |args: &[&str]| {
        linerate(["stat"])
            .args(args)
            .args(sets)
            .dir(scratch.path())
            .run()
            .ok()
            .stdout
    };
    let (block, full) = (run(&["-s"]), run(&["-s", "--full"]));
    let analysis = full
        .strip_prefix(&block)
        .unwrap_or_else(|| panic!("{full}"));
    for part in [
        "\n16rxq.pps is 9.5 % higher than 8rxq.pps",
        "Mann-Whitney",
        "Welch",
        "Cliff",
        "Holm",
        "Warnings",
    ] {
        assert!(analysis.contains(part), "no '{part}' in:\n{analysis}");
    }
    assert_eq!(run(&["-s", "--full"]), full, "the bootstrap has a seed");
}

#[test]
fn json_has_ministats_figures_and_the_analysis() {
    let scratch = with_three_sets();
    let json = linerate([
        "stat",
        "--json",
        "--era",
        "fb11",
        "8rxq.pps",
        "16rxq.pps",
        "disabled.pps",
    ]);
    let json = json.dir(scratch.path()).run().ok().json();
    let ministat = &json["ministat"];
    assert_eq!(
        (&ministat["era"], &ministat["confidence_percent"]),
        (&"fb11".into(), &95.0.into())
    );
    let first = &ministat["sets"][0];
    assert_eq!(
        (&first["name"], &first["n"], &first["max"]),
        (&"8rxq.pps".into(), &5.into(), &4_735_822.0.into())
    );
    let difference = &ministat["differences"][1];
    assert_eq!(
        (&difference["name"], &difference["proven"]),
        (&"disabled.pps".into(), &true.into())
    );
    assert!(
        (difference["percent_error"].as_f64().unwrap() - 2.62824).abs() < 1e-5,
        "{difference}"
    );
    assert_eq!(json["analysis"]["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(json["analysis"]["sets"][2]["name"], "disabled.pps");
}
