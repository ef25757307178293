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
    /// The data of every table, block and plot.
    pub plots: Vec<PlotFound>,
}

/// A printed figure, and the one that the data give.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Illustration of the document.
    pub illustration: String,
    /// Caption of the illustration.
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
    /// The printed figure is the computed one, rounded.
    Agrees,
    /// The printed figure is the computed one, with digits cut off where one would have rounded up.
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
    /// Caption of the block.
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

/// The points of a plot; of a table, a series for each column; or of a block of ministat, a point for each set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotFound {
    /// Illustration of the document.
    pub illustration: String,
    /// Caption of the plot.
    pub caption: String,
    /// The quantity along the axis.
    pub axis: String,
    /// The series.
    pub series: Vec<PlotLine>,
}

/// A series of a plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotLine {
    /// Name of the series.
    pub name: String,
    /// Points of the series.
    pub points: Vec<PlotPoint>,
}

/// A point of a plot: frames/s over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotPoint {
    /// Where it stands on the axis.
    pub at: String,
    /// The file behind it.
    pub source: String,
    /// Least run, median, greatest run; `None` without data, or where no run gave a figure.
    pub runs: Option<[f64; 3]>,
    /// All runs; `None` without data.
    #[serde(skip)]
    pub all: Option<Vec<f64>>,
}

/// Compares every printed figure of a document with the data.
pub fn reproduce(mapping: &Mapping, evidence: &Evidence) -> Reproduction {
    let era = mapping.era;
    let of_table = |table: &Table| -> Vec<Figure> {
        table
            .rows
            .iter()
            .flat_map(|row| judge::row(table, row, era, evidence))
            .collect()
    };
    let mut figures: Vec<Figure> = mapping.tables.iter().flat_map(of_table).collect();
    let judged = mapping
        .blocks
        .iter()
        .map(|block| block::judge(block, era, evidence));
    let (blocks, of_blocks): (Vec<BlockFound>, Vec<Vec<Figure>>) = judged.unzip();
    figures.extend(of_blocks.into_iter().flatten());
    let points = Points { era, evidence };
    let plots = mapping.plots.iter().map(|plot| points.of_plot(plot));
    let plots = plots.chain(mapping.tables.iter().map(|table| points.of_table(table)));
    let plots = plots
        .chain(mapping.blocks.iter().map(|block| points.of_block(block)))
        .collect();
    Reproduction {
        document: mapping.document.clone(),
        figures,
        blocks,
        plots,
    }
}

impl Reproduction {
    /// How many figures are in a state.
    pub fn count(&self, state: State) -> usize {
        self.figures.iter().filter(|f| f.state == state).count()
    }

    /// Whether there is a file of those that are behind it.
    pub fn has_data(&self, evidence: &Evidence) -> bool {
        let points = self
            .plots
            .iter()
            .flat_map(|plot| &plot.series)
            .flat_map(|series| &series.points);
        let mut files = self
            .figures
            .iter()
            .flat_map(|f| &f.sources)
            .chain(points.map(|point| &point.source));
        files.any(|file| evidence.get(file).is_some())
    }

    /// The names of its illustrations, each once, in the document's order.
    pub fn illustrations(&self) -> Vec<String> {
        let figures = self.figures.iter().map(|f| &f.illustration);
        let blocks = self.blocks.iter().map(|b| &b.illustration);
        let plots = self.plots.iter().map(|p| &p.illustration);
        let mut names: Vec<String> = Vec::new();
        for name in figures.chain(blocks).chain(plots) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Leaves only these illustrations.
    pub fn only(&mut self, wanted: &[String]) {
        let keep = |illustration: &str| wanted.iter().any(|w| w == illustration);
        self.figures.retain(|f| keep(&f.illustration));
        self.blocks.retain(|b| keep(&b.illustration));
        self.plots.retain(|p| keep(&p.illustration));
    }
}

/// Points of the evidence, by ministat's arithmetic of an era.
struct Points<'a> {
    era: Era,
    evidence: &'a Evidence,
}

impl Points<'_> {
    fn point(&self, at: &str, source: &str) -> PlotPoint {
        let set = self.evidence.set(source);
        let summary = set
            .as_ref()
            .map(|set| set.summary(self.era))
            .filter(|s| s.n > 0);
        PlotPoint {
            at: at.into(),
            source: source.into(),
            runs: summary.map(|s| [s.min, s.median, s.max]),
            all: self.evidence.get(source).map(<[f64]>::to_vec),
        }
    }

    fn of_table(&self, table: &Table) -> PlotFound {
        let column = |(at, name): (usize, &String)| {
            let points = table
                .rows
                .iter()
                .filter_map(|row| Some(self.point(&row.setup, row.sources.get(at)?)));
            PlotLine {
                name: name.clone(),
                points: points.collect(),
            }
        };
        let series = table.columns.iter().enumerate().map(column).collect();
        found(&table.illustration, &table.caption, "set-up", series)
    }

    fn of_block(&self, block: &Block) -> PlotFound {
        let stem = |path: &'_ String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name.strip_suffix(".pps").unwrap_or(name).to_string()
        };
        let points = block
            .sources
            .iter()
            .map(|source| self.point(&stem(source), source))
            .collect();
        let series = vec![PlotLine {
            name: String::new(),
            points,
        }];
        found(&block.illustration, &block.caption, "set", series)
    }

    fn of_plot(&self, plot: &Plot) -> PlotFound {
        let line = |series: &PlotSeries| {
            let points = series
                .points
                .iter()
                .map(|at| self.point(at, &series.files.replace("{}", at)));
            PlotLine {
                name: series.name.clone(),
                points: points.collect(),
            }
        };
        found(
            &plot.illustration,
            &plot.caption,
            &plot.axis,
            plot.series.iter().map(line).collect(),
        )
    }
}

fn found(illustration: &str, caption: &str, axis: &str, series: Vec<PlotLine>) -> PlotFound {
    let [illustration, caption, axis] = [illustration, caption, axis].map(String::from);
    PlotFound {
        illustration,
        caption,
        axis,
        series,
    }
}

#[cfg(test)]
mod tests;
