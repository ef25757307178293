//! Blocks of ministat that were published, recomputed from their data: those of the source documents, and those of the README
//! files in the FreeBSD forwarding archive.

use linerate_stats::ministat::{
    Columns, Confidence, DEFAULT_WIDTH, Dataset, Era, MAX_LINE, Options, PointReader, Summary,
    block, difference, format_g,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
const GOLDENS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/ministat/goldens.json"
);

/// The symbols that rows and names begin with.
const SYMBOLS: &str = "x+*%#@O";

/// The lines of a text without differences between terminals and documents: tabs, and blanks at the end.
fn plain<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines
        .into_iter()
        .map(|line| line.replace('\t', "        ").trim_end().to_owned())
        .collect()
}

/// The words of a row of figures, without its symbol.
fn figures(row: &str) -> Option<String> {
    let (symbol, rest) = row.trim().split_at_checked(1)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let numbers = words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok());
    (numbers && SYMBOLS.contains(symbol)).then(|| words.join(" "))
}

/// Options that differ between published documents.
fn variants(width: usize, confidence: Confidence) -> Vec<(String, Options)> {
    let mut all = Vec::new();
    for era in Era::ALL {
        for (flag, separate_bars, plot) in [
            ("", false, true),
            (" -s", true, true),
            (" -A", false, false),
        ] {
            let options = Options {
                era,
                confidence,
                width,
                plot,
                separate_bars,
                ..Options::default()
            };
            all.push((format!("{era}{flag}"), options));
        }
    }
    all
}

/// The variants that make exactly these lines of the sets.
fn equal_variants(
    sets: &[Dataset],
    lines: &[String],
    width: usize,
    confidence: Confidence,
) -> Vec<String> {
    let equal = |options: &Options| plain(block(sets, options).lines()) == lines;
    variants(width, confidence)
        .into_iter()
        .filter(|(_, options)| equal(options))
        .map(|(name, _)| name)
        .collect()
}

/// Sets of an entry of `goldens.json`, under the names that its text has.
fn golden_sets(entry: &Value, names: &[String]) -> Vec<Dataset> {
    let inputs = entry["inputs"].as_array().unwrap().iter().enumerate();
    let points = |input: &Value| {
        input
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_f64().unwrap())
            .collect()
    };
    inputs
        .map(|(i, input)| Dataset::new(names.get(i).cloned().unwrap_or_default(), points(input)))
        .collect()
}

/// Rows and differences of an era, as `goldens.json` has them.
fn rows_and_tests(sets: &[Dataset], era: Era) -> (Vec<String>, Vec<Value>) {
    let text = block(
        sets,
        &Options {
            era,
            plot: false,
            ..Options::default()
        },
    );
    let rows = text.lines().filter(|line| figures(line).is_some());
    let rows = rows
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let summaries: Vec<Summary> = sets.iter().map(|set| set.summary(era)).collect();
    let tests = summaries.iter().skip(1).map(|other| {
        let found = difference(&summaries[0], other, Confidence::default(), era);
        let g = |figure| format_g(figure, 6);
        match found.proven {
            false => "No difference proven at 95.0% confidence".into(),
            true => serde_json::json!({
                "diff": g(found.delta), "pm": g(found.error), "rel": g(found.percent),
                "relpm": g(found.percent_error), "pooled": g(found.pooled),
            }),
        }
    });
    (rows, tests.collect())
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|s| s.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn blocks_of_the_source_documents_are_those_of_their_eras() {
    let text = fs::read_to_string(GOLDENS).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut reproduced, mut with_plot) = (0, 0);
    for entry in entries
        .iter()
        .filter(|entry| entry["generations"].is_array())
    {
        let place = format!("{} line {}", entry["seed"], entry["line"]);
        let mut lines = plain(strings(&entry["text"]).iter().map(String::as_str));
        let names: Vec<String> = lines
            .iter()
            .take_while(|l| !l.starts_with("+--"))
            .map(|l| l[2..].into())
            .collect();
        let sets = golden_sets(entry, &names);
        let same = |era: &Era| {
            let (rows, tests) = rows_and_tests(&sets, *era);
            rows == strings(&entry["rows"]) && tests == *entry["tests"].as_array().unwrap()
        };
        let eras: Vec<&str> = Era::ALL.into_iter().filter(same).map(Era::name).collect();
        assert_eq!(eras, strings(&entry["generations"]), "{place}");
        reproduced += 1;
        if lines.is_empty() {
            continue;
        }
        if entry["text_equal_incl_plot"] == false {
            // The document lost the last bracket.
            *lines.last_mut().unwrap() += ")";
        }
        let found = equal_variants(&sets, &lines, DEFAULT_WIDTH, Confidence::default());
        assert!(
            found.iter().any(|name| name.starts_with("fb11")),
            "{place}: {found:?}"
        );
        for name in strings(&entry["text_equal_incl_plot"]) {
            assert!(found.contains(&name), "{place}: {name} not in {found:?}");
        }
        with_plot += 1;
    }
    assert_eq!((entries.len(), reproduced, with_plot), (21, 17, 11));
}

/// The four blocks of the source documents whose data are not known: their differences follow from their rows.
#[test]
fn differences_follow_from_printed_rows() {
    let text = fs::read_to_string(GOLDENS).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    for entry in entries
        .iter()
        .filter(|entry| !entry["generations"].is_array())
    {
        let rows: Vec<Summary> = strings(&entry["rows"])
            .iter()
            .map(|row| summary_of(row))
            .collect();
        for (other, printed) in rows.iter().skip(1).zip(entry["tests"].as_array().unwrap()) {
            let found = difference(&rows[0], other, Confidence::default(), Era::Old);
            assert_eq!(found.proven, printed.is_object());
            let close = |figure: f64, key: &str| {
                let printed: f64 = printed[key].as_str().unwrap().parse().unwrap();
                assert!(
                    (figure / printed - 1.0).abs() < 1e-5,
                    "{key}: {figure} for {printed}"
                );
            };
            if found.proven {
                close(found.delta, "diff");
                close(found.error, "pm");
                close(found.percent, "rel");
                close(found.percent_error, "relpm");
                close(found.pooled, "pooled");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 9);
}

fn summary_of(row: &str) -> Summary {
    let words: Vec<f64> = figures(row)
        .unwrap()
        .split(' ')
        .map(|word| word.parse().unwrap())
        .collect();
    let [n, min, max, median, avg, stddev] = words[..] else {
        panic!("{row}")
    };
    Summary {
        n: n as usize,
        min,
        max,
        median,
        avg,
        stddev,
        variance: stddev * stddev,
    }
}

/// A block in a document.
struct Published {
    /// The document, from the corpus' root.
    document: PathBuf,
    /// The line of its headings, counted from 1.
    line: usize,
    /// All its lines.
    lines: Vec<String>,
    /// Rows of the block, by their words.
    rows: Vec<String>,
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// The blocks of a document: around each line of headings, the lines above it that belong to it, and the rows and differences
/// below.
fn published(document: &Path, text: &str) -> Vec<Published> {
    let lines: Vec<&str> = text.lines().collect();
    let is_heading = |line: &&str| {
        line.split_whitespace()
            .eq(["N", "Min", "Max", "Median", "Avg", "Stddev"])
    };
    let above = |line: &str| {
        let mut chars = line.trim_start().chars();
        let first = chars.next().unwrap_or(' ');
        first == '|'
            || line.trim_start().starts_with("+-")
            || SYMBOLS.contains(first) && chars.next() == Some(' ')
    };
    let below = |line: &str| {
        figures(line).is_some()
            || ["confidence", "+/-", "pooled"]
                .iter()
                .any(|word| line.contains(word))
    };
    let headings = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_heading(line))
        .map(|(number, _)| number);
    let of = |heading: usize| {
        let start = heading
            - lines[..heading]
                .iter()
                .rev()
                .take_while(|line| above(line))
                .count();
        let end = heading
            + 1
            + lines[heading + 1..]
                .iter()
                .take_while(|line| below(line))
                .count();
        let rows = lines[heading..end]
            .iter()
            .filter_map(|line| figures(line))
            .collect();
        let lines = plain(lines[start..end].iter().copied());
        Published {
            document: document.into(),
            line: heading + 1,
            lines,
            rows,
        }
    };
    headings.map(of).collect()
}

/// The points of a file of numbers; `None` for all other files.
fn points(bytes: &[u8]) -> Option<Vec<f64>> {
    let mut reader = PointReader::new(Columns::default());
    reader.feed(bytes).ok()?;
    reader.finish().ok().filter(|points| points.len() >= 3)
}

/// The files of numbers of the corpus, by the rows that they give in each era.
#[derive(Default)]
struct Inputs {
    by_row: HashMap<String, Vec<(PathBuf, Vec<f64>)>>,
}

impl Inputs {
    fn add(&mut self, path: &Path, points: &[f64]) {
        let set = Dataset::new("", points.to_vec());
        let row = |era| {
            block(
                std::slice::from_ref(&set),
                &Options {
                    era,
                    headings: false,
                    plot: false,
                    ..Options::default()
                },
            )
        };
        let mut rows: Vec<String> = Era::ALL
            .iter()
            .filter_map(|era| figures(&row(*era)))
            .collect();
        rows.dedup();
        for row in rows {
            let files = self.by_row.entry(row).or_default();
            if files.iter().all(|(known, _)| known != path) {
                files.push((path.into(), points.to_vec()));
            }
        }
    }

    /// The file that a row of a document comes from: the nearest, if there are several.
    fn of(&self, row: &str, document: &Path) -> Option<&(PathBuf, Vec<f64>)> {
        let shared = |path: &Path| {
            path.components()
                .zip(document.components())
                .take_while(|(a, b)| a == b)
                .count()
        };
        self.by_row
            .get(row)?
            .iter()
            .max_by_key(|(path, _)| shared(path))
    }
}

/// Reads the corpus: its files of numbers, and the blocks of its README files.
fn read_corpus() -> (Inputs, Vec<Published>) {
    let (mut inputs, mut blocks, mut found) = (Inputs::default(), Vec::new(), Vec::new());
    for folder in ["netbenches", "paper"] {
        files(&Path::new(CORPUS).join(folder), &mut found);
    }
    for path in found {
        let relative = path.strip_prefix(CORPUS).unwrap();
        let bytes = fs::read(&path).unwrap();
        if path.ends_with("README.md") {
            blocks.extend(published(relative, &String::from_utf8_lossy(&bytes)));
        } else if bytes.len() < MAX_LINE
            && let Some(points) = points(&bytes)
        {
            inputs.add(relative, &points);
        }
    }
    (inputs, blocks)
}

/// Whether the data of a block are near it, and the variants that make it of them; or the rows whose data are not there.
fn reproduce<'a>(
    block: &'a Published,
    inputs: &Inputs,
) -> Result<(bool, Vec<String>), Vec<&'a str>> {
    let names = block
        .lines
        .iter()
        .map(|line| line.get(2..).unwrap_or_default().to_owned());
    let found: Vec<_> = block
        .rows
        .iter()
        .map(|row| inputs.of(row, &block.document).ok_or(row))
        .collect();
    let missing: Vec<&str> = found
        .iter()
        .filter_map(|f| f.as_ref().err())
        .map(|row| row.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let files: Vec<&(PathBuf, Vec<f64>)> = found.into_iter().flatten().collect();
    let folder = block.document.parent().unwrap();
    let beside = files.iter().all(|(path, _)| path.starts_with(folder));
    let sets: Vec<Dataset> = files
        .iter()
        .zip(names)
        .map(|((_, points), name)| Dataset::new(name, points.clone()))
        .collect();
    let edge = block.lines.iter().find(|line| line.starts_with("+--"));
    let width = edge.map_or(DEFAULT_WIDTH, |edge| edge.len() - 2);
    let level = block
        .lines
        .iter()
        .find_map(|line| line.split_once("% confidence")?.0.rsplit(' ').next());
    let confidence = level.map_or(Confidence::default(), |level| level.parse().unwrap());
    Ok((
        beside,
        equal_variants(&sets, &block.lines, width, confidence),
    ))
}

/// Blocks with sets that are not in the corpus, and how many of their rows that concerns: other releases, other patches.
const WITHOUT_DATA: [(&str, usize); 17] = [
    (
        "netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd13-r364730.D26162/README.md:21",
        1,
    ),
    (
        "netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/txabdicate/results/fbsd16-n311215.D58513/README.md:78",
        1,
    ),
    (
        "netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/txabdicate/results/fbsd16-n311215.D58513/README.md:91",
        1,
    ),
    (
        "netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/txabdicate/results/fbsd16-n311215.D58513/README.md:104",
        1,
    ),
    (
        "netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/txabdicate/results/fbsd16-n311215.D58513/README.md:117",
        1,
    ),
    (
        "netbenches/Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex/README.md:25",
        1,
    ),
    (
        "netbenches/Atom_C2558_4Cores/Intel_i350/forwarding-fastforwarding/results/fbsd10.2/README.md:25",
        1,
    ),
    (
        "netbenches/Atom_C2758_8Cores/Chelsio_T520-SO/firewalls/results/fbsd15-n302145/README.md:68",
        6,
    ),
    (
        "netbenches/Atom_C2758_8Cores/Chelsio_T540-CR/fullview/results/fbsd13-r368766D27401D27412/README.md:35",
        2,
    ),
    (
        "netbenches/Atom_C2758_8Cores/Chelsio_T540-CR/fullview/results/fbsd13-r368766D27401D27412/README.md:57",
        2,
    ),
    (
        "netbenches/Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/NUMA-crossing/results/fbsd13-r358171/README.md:11",
        1,
    ),
    (
        "netbenches/Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd-c255761-mlxperf/README.md:47",
        2,
    ),
    (
        "netbenches/Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/main-vs-stable13/README.md:81",
        3,
    ),
    (
        "netbenches/Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/main-vs-stable13/README.md:105",
        3,
    ),
    (
        "netbenches/Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/main-vs-stable13/README.md:131",
        3,
    ),
    (
        "netbenches/Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/main-vs-stable13/README.md:156",
        3,
    ),
    (
        "paper/Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex/README.md:25",
        1,
    ),
];

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn blocks_of_the_archives_documents_are_reproduced() {
    let (inputs, blocks) = read_corpus();
    let (mut beside, mut elsewhere, mut without) = (0, 0, Vec::new());
    let mut by_era = BTreeMap::new();
    for block in &blocks {
        let place = format!("{}:{}", block.document.display(), block.line);
        match reproduce(block, &inputs) {
            Ok((near, variants)) => {
                assert!(
                    !variants.is_empty(),
                    "{place} is not reproduced:\n{}",
                    block.lines.join("\n")
                );
                *if near { &mut beside } else { &mut elsewhere } += 1;
                *by_era.entry(variants.join(", ")).or_insert(0) += 1;
            }
            Err(missing) => {
                assert!(
                    follows(block),
                    "{place}: the differences do not follow from the rows"
                );
                without.push((place, missing.len()));
            }
        }
    }
    let without: Vec<(&str, usize)> = without
        .iter()
        .map(|(place, rows)| (place.as_str(), *rows))
        .collect();
    assert_eq!(without, WITHOUT_DATA);
    // Of 100 blocks: data in the folder of the document or below, and in other folders of the corpus.
    assert_eq!((beside, elsewhere), (68, 15));
    let by_era: Vec<(&str, i32)> = by_era
        .iter()
        .map(|(variants, n)| (variants.as_str(), *n))
        .collect();
    let expected = [
        ("fb11 -s", 2),
        ("fb11 -s, new -s", 41),
        ("fb11, new", 2),
        ("mid -s", 2),
        ("mid -s, fb11 -s, new -s", 5),
        ("new -s", 2),
        ("old -s", 1),
        ("old -s, mid -s", 2),
        ("old -s, mid -s, fb11 -s, new -s", 23),
        ("old, old -s, mid, mid -s, fb11, fb11 -s, new, new -s", 3),
    ];
    assert_eq!(by_era, expected);
}

/// Whether the differences of a block follow from its rows, as far as these are printed: with either relative error.
fn follows(block: &Published) -> bool {
    let rows: Vec<Summary> = block
        .rows
        .iter()
        .map(|row| summary_of(&format!("x {row}")))
        .collect();
    let numbers = |line: &str| -> Vec<f64> {
        line.split([' ', '%', ')'])
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let is_figure = |line: &&String| line.contains("+/-") || line.contains("pooled");
    let printed: Vec<f64> = block
        .lines
        .iter()
        .filter(is_figure)
        .flat_map(|line| numbers(line))
        .collect();
    let close = |a: &f64, b: &f64| (a / b - 1.0).abs() < 1e-4;
    // Some documents leave the last line out.
    let shown = if block.lines.iter().any(|line| line.contains("pooled")) {
        5
    } else {
        4
    };
    [Era::Old, Era::New].into_iter().any(|era| {
        let found = rows
            .iter()
            .skip(1)
            .map(|row| difference(&rows[0], row, Confidence::default(), era));
        let figures: Vec<f64> = found
            .filter(|found| found.proven)
            .flat_map(|d| {
                [d.delta, d.error, d.percent, d.percent_error, d.pooled]
                    .into_iter()
                    .take(shown)
            })
            .collect();
        figures.len() == printed.len() && figures.iter().zip(&printed).all(|(a, b)| close(a, b))
    })
}
