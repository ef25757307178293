//! A printed block of ministat compared with the data, number by number and as text.

use super::mapping::{Block, Evidence};
use super::printed::PrintedBlock;
use super::{BlockFound, Figure, PlotText, State};
use linerate_stats::ministat::{self, Confidence, Dataset, Era, Options, Summary, difference};

const COLUMNS: [&str; 6] = ["N", "Min", "Max", "Median", "Avg", "Stddev"];
const DIFFERENCES: [&str; 5] = [
    "difference",
    "its error",
    "difference in %",
    "its error in %",
    "pooled s",
];

/// Judges a block: as a whole, and each of its numbers by the arithmetic of the document's time.
pub fn judge(block: &Block, era: Era, evidence: &Evidence) -> (BlockFound, Vec<Figure>) {
    let printed = PrintedBlock::read(&block.printed);
    let name = |i: usize| printed.names.get(i).cloned().unwrap_or_default();
    let sources = block.sources.iter().enumerate();
    let sets =
        sources.map(|(i, source)| Some(Dataset::new(name(i), evidence.get(source)?.to_vec())));
    let sets: Option<Vec<Dataset>> = sets.collect();
    let sets =
        sets.filter(|sets| !sets.is_empty() && sets.iter().all(|set| set.sorted().len() >= 3));
    let eras = Era::ALL.into_iter().filter(|era| match &sets {
        Some(sets) => numbers(sets, *era, &printed).iter().all(|n| n.0 == n.1),
        None => follows(&printed, *era),
    });
    let text = sets
        .as_ref()
        .filter(|_| printed.plot)
        .map(|sets| plot(sets, era, &printed));
    let (plot, differing) = text.unzip();
    let whole = BlockFound {
        illustration: block.illustration.clone(),
        caption: block.caption.clone(),
        eras: eras.map(|e| e.to_string()).collect(),
        data: sets.is_some(),
        plot,
        differing: differing.unwrap_or_default(),
    };
    let figures = match &sets {
        Some(sets) => with_data(block, &numbers(sets, era, &printed)),
        None => vec![without_data(block, &printed, &whole.eras)],
    };
    (whole, figures)
}

/// Every printed number beside the computed one, as text, with row and column.
fn numbers(
    sets: &[Dataset],
    era: Era,
    printed: &PrintedBlock,
) -> Vec<(String, String, usize, &'static str)> {
    let options = Options {
        era,
        plot: false,
        ..Options::default()
    };
    let computed = PrintedBlock::read(&ministat::block(sets, &options));
    let mut out = Vec::new();
    for (i, (told, found)) in printed.rows.iter().zip(&computed.rows).enumerate() {
        let figures = told.iter().zip(found).zip(COLUMNS);
        out.extend(figures.map(|((p, c), name)| (p.clone(), c.clone(), i, name)));
    }
    for (i, (told, found)) in printed
        .differences
        .iter()
        .zip(&computed.differences)
        .enumerate()
    {
        let [p, c] =
            [told, found].map(|d| String::from(if d.proven { "proven" } else { "not proven" }));
        out.push((p, c, i + 1, "verdict"));
        let figures = told.figures.iter().zip(&found.figures).zip(DIFFERENCES);
        out.extend(figures.map(|((p, c), name)| (p.clone(), c.clone(), i + 1, name)));
    }
    out
}

/// Whether the printed differences follow from the printed rows by the arithmetic of an era: all that can be checked without
/// data. The rows have eight digits, so that the sixth of a difference may be off by one.
fn follows(printed: &PrintedBlock, era: Era) -> bool {
    let summary = |row: &[String; 6]| {
        let [n, min, max, median, avg, stddev] =
            row.clone().map(|f| f.parse::<f64>().unwrap_or(f64::NAN));
        Summary {
            n: n as usize,
            min,
            max,
            median,
            avg,
            stddev,
            variance: stddev * stddev,
        }
    };
    let rows: Vec<Summary> = printed.rows.iter().map(summary).collect();
    let Some((first, others)) = rows.split_first() else {
        return false;
    };
    !others.is_empty()
        && others
            .iter()
            .zip(&printed.differences)
            .all(|(other, told)| {
                let found = difference(first, other, Confidence::default(), era);
                let figures = [
                    found.delta,
                    found.error,
                    found.percent,
                    found.percent_error,
                    found.pooled,
                ];
                let near = |(p, c): (&String, f64)| {
                    p.parse::<f64>()
                        .is_ok_and(|p| (p - c).abs() <= 2e-5 * p.abs().max(c.abs()))
                };
                told.proven == found.proven && told.figures.iter().zip(figures).all(near)
            })
}

/// Whether all of the printed text is ministat's, and which of its lines are not.
fn plot(sets: &[Dataset], era: Era, printed: &PrintedBlock) -> (PlotText, Vec<String>) {
    let differing = |separate_bars: bool| -> Vec<String> {
        let options = Options {
            era,
            separate_bars,
            width: printed.width,
            ..Options::default()
        };
        let computed = PrintedBlock::read(&ministat::block(sets, &options)).lines;
        let mut expected = computed
            .iter()
            .map(|l| plain(l))
            .collect::<Vec<_>>()
            .into_iter();
        let missing = |line: &&String| expected.next().as_ref() != Some(&plain(line));
        printed.lines.iter().filter(missing).cloned().collect()
    };
    let (together, apart) = (differing(false), differing(true));
    match (together.len(), apart.len()) {
        (0, _) => (PlotText::Same, Vec::new()),
        (_, 0) => (PlotText::SameWithSeparateBars, Vec::new()),
        (n, m) => (PlotText::Differs, if n <= m { together } else { apart }),
    }
}

/// A line as it can be compared: documents turn tabs into blanks, but not within a plot.
fn plain(line: &str) -> String {
    if line.starts_with('|') {
        line.into()
    } else {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn figure(block: &Block, row: String, column: &str, printed: &str) -> Figure {
    Figure {
        illustration: block.illustration.clone(),
        caption: block.caption.clone(),
        row,
        column: column.into(),
        printed: printed.into(),
        sources: block.sources.clone(),
        ..Figure::default()
    }
}

fn with_data(block: &Block, numbers: &[(String, String, usize, &'static str)]) -> Vec<Figure> {
    let judged = numbers
        .iter()
        .map(|(printed, computed, row, column)| Figure {
            computed: Some(computed.clone()),
            state: if printed == computed {
                State::Agrees
            } else {
                State::WrongInPrint
            },
            ..figure(block, format!("set {}", row + 1), column, printed)
        });
    judged.collect()
}

/// One figure for the whole block: its numbers cannot be judged one by one.
fn without_data(block: &Block, printed: &PrintedBlock, eras: &[String]) -> Figure {
    let why = block
        .missing
        .clone()
        .unwrap_or_else(|| "not in this archive".into());
    let rows = printed.rows.len();
    let note = match eras {
        [] => format!("{why}; the printed differences do not follow from the printed rows"),
        eras => format!(
            "{why}; the printed differences follow from the printed rows, as {} computes them",
            eras.join(", ")
        ),
    };
    Figure {
        note: Some(note),
        ..figure(
            block,
            format!("{rows} sets"),
            "block",
            "a block of ministat",
        )
    }
}
