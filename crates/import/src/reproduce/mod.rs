//! Printed figures compared with the data behind them: agreeing, cut off instead of rounded, wrong in print, or without data.

mod block;
mod judge;
mod mapping;
mod printed;

pub use mapping::{Block, Evidence, Mapping, Plot, PlotSeries, Table, TableRow};

use linerate_stats::ministat::Era;
use serde::Serialize;

/// Results for the printed figures of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    /// The document.
    pub document: String,
    /// Every printed figure, in the order of the mapping.
    pub figures: Vec<Figure>,
    /// Blocks of ministat as a whole.
    pub blocks: Vec<BlockFound>,
    /// Plots, drawn from the data.
    pub plots: Vec<PlotFound>,
}

/// A printed figure, and the one that the data give.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Illustration of the document.
    pub illustration: String,
    /// Its caption.
    pub caption: String,
    /// The row: a set-up, a set.
    pub row: String,
    /// The column: the compared set, `difference`, `median`.
    pub column: String,
    /// As printed.
    pub printed: String,
    /// As computed, in the same unit with a digit or two more; `None` without data.
    pub computed: Option<String>,
    pub state: State,
    /// A remark in words, if any.
    pub note: Option<String>,
    /// The files behind it.
    pub sources: Vec<String>,
}

/// Result for a printed figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is the computed one, rounded.
    Agrees,
    /// It is the computed one, with digits cut off where one would have rounded up.
    Truncated,
    /// The data give another.
    WrongInPrint,
    /// There are no data.
    #[default]
    NoData,
}

/// A block of ministat as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockFound {
    /// Illustration of the document.
    pub illustration: String,
    /// Its caption.
    pub caption: String,
    /// Generations of ministat whose arithmetic gives every printed number; with data, from the data, otherwise the differences
    /// from the printed rows.
    pub eras: Vec<String>,
    /// Whether there are data.
    pub data: bool,
    /// Whether the text with its plot is the same to the byte, and with which option; `None` where no plot has survived.
    pub plot: Option<PlotText>,
    /// Printed lines that ministat's output does not have.
    pub differing: Vec<String>,
}

/// The parts of a printed plot that are reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotText {
    /// All of the text, without options.
    Same,
    /// All of the text, with `-s`.
    SameWithSeparateBars,
    /// Not all of it.
    Differs,
}

/// A plot's data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotFound {
    /// Illustration of the document.
    pub illustration: String,
    /// Its caption.
    pub caption: String,
    /// The quantity along the axis.
    pub axis: String,
    /// The series.
    pub series: Vec<PlotLine>,
}

/// A series of a plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotLine {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<PlotPoint>,
}

/// A point of a plot: frames/s over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotPoint {
    /// Where it stands on the axis.
    pub at: String,
    /// The file behind it.
    pub source: String,
    /// Least run, median, greatest run; `None` without data.
    pub runs: Option<[f64; 3]>,
}

/// Compares every printed figure of a document with the data.
pub fn reproduce(mapping: &Mapping, evidence: &Evidence) -> Reproduction {
    let era = mapping.era;
    let of_table = |table: &Table| -> Vec<Figure> {
        table.rows.iter().flat_map(|row| judge::row(table, row, era, evidence)).collect()
    };
    let mut figures: Vec<Figure> = mapping.tables.iter().flat_map(of_table).collect();
    let judged = mapping.blocks.iter().map(|block| block::judge(block, era, evidence));
    let (blocks, of_blocks): (Vec<BlockFound>, Vec<Vec<Figure>>) = judged.unzip();
    figures.extend(of_blocks.into_iter().flatten());
    let plots = mapping.plots.iter().map(|plot| draw(plot, era, evidence)).collect();
    Reproduction { document: mapping.document.clone(), figures, blocks, plots }
}

impl Reproduction {
    /// How many figures are in a state.
    pub fn count(&self, state: State) -> usize {
        self.figures.iter().filter(|f| f.state == state).count()
    }

    /// Whether there is a file of those that are behind it.
    pub fn has_data(&self, evidence: &Evidence) -> bool {
        let points = self.plots.iter().flat_map(|plot| &plot.series).flat_map(|series| &series.points);
        let mut files = self.figures.iter().flat_map(|f| &f.sources).chain(points.map(|point| &point.source));
        files.any(|file| evidence.get(file).is_some())
    }

    /// Leaves only these illustrations.
    pub fn only(&mut self, wanted: &[String]) {
        let keep = |illustration: &str| wanted.iter().any(|w| w == illustration);
        self.figures.retain(|f| keep(&f.illustration));
        self.blocks.retain(|b| keep(&b.illustration));
        self.plots.retain(|p| keep(&p.illustration));
    }
}

fn draw(plot: &Plot, era: Era, evidence: &Evidence) -> PlotFound {
    let point = |series: &PlotSeries, at: &String| {
        let source = series.files.replace("{}", at);
        let summary = evidence.set(&source).map(|set| set.summary(era)).filter(|s| s.n > 0);
        let runs = summary.map(|s| [s.min, s.median, s.max]);
        PlotPoint { at: at.clone(), source, runs }
    };
    let line = |series: &PlotSeries| PlotLine {
        name: series.name.clone(),
        points: series.points.iter().map(|at| point(series, at)).collect(),
    };
    PlotFound {
        illustration: plot.illustration.clone(),
        caption: plot.caption.clone(),
        axis: plot.axis.clone(),
        series: plot.series.iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests;
