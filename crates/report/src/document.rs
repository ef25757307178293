//! The content of a page as blocks, independent of its format.

use crate::chart::{Axis, Chart, Look, Scale, Series, Spot, ends};
use serde::Serialize;

mod table;
pub use table::{Cell, Column, Rows, Table};

/// Meaning of a text for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Text and figures.
    Plain,
    /// The answer.
    Strong,
    /// Explanations.
    Note,
    /// A fact that the reader must not overlook.
    Warning,
}

impl Tone {
    pub fn name(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Strong => "strong",
            Tone::Note => "note",
            Tone::Warning => "warning",
        }
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// The title of a section.
    Heading { text: String },
    /// A paragraph.
    Text { text: String, tone: Tone },
    /// A text behind a mark: an entry of a list, or the value of a name.
    Item {
        mark: String,
        text: String,
        tone: Tone,
    },
    /// A line of another program's layout, or of code: neither broken nor cut, its tabs kept.
    Code { line: String, tone: Tone },
    /// Figures.
    Table(Table),
    /// A bar for each point.
    Bars(Bars),
    /// A line of values over time, with its levels and its changes.
    Strip(Strip),
    /// A picture of figures that the page has in words or in a table as well.
    Chart(Chart),
    /// A picture that is already drawn.
    Drawing(Drawing),
    /// A part of a page with headings of its own; folded, a reader of a page for a browser opens it.
    Part {
        title: String,
        folded: bool,
        blocks: Vec<Block>,
    },
    /// Names of other pages of the same site, in a line.
    Links { links: Vec<Link> },
    /// A search over this file of the same site, for pages that are read in a browser.
    Search { index: String },
    /// Something else begins.
    Gap,
}

/// A picture as SVG, without script and without texts of others that are not escaped.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Drawing {
    pub title: String,
    pub svg: String,
    /// The picture in words.
    pub says: String,
    /// Whether it is a flame graph.
    pub flames: bool,
}

/// A name that leads to another page of the same site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    pub text: String,
    /// The page's file relative to the file of this page.
    pub to: String,
}

impl Link {
    pub fn new(text: impl Into<String>, to: impl Into<String>) -> Link {
        Link {
            text: text.into(),
            to: to.into(),
        }
    }

    /// The address, if it leads to a file beside or below this page or in another folder of the site, and nowhere else.
    pub fn address(&self) -> Option<&str> {
        let plain =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/' | b'-' | b'_' | b'%');
        let begins = |with: &str| self.to.starts_with(with);
        let relative = self.to.starts_with(|c: char| c.is_ascii_alphanumeric())
            || begins("../")
            || begins("./");
        (relative && self.to.bytes().all(plain)).then_some(&self.to)
    }
}

/// A page, whose blocks a [`Format`] draws.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Document {
    /// Name of the page, for formats whose pages have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub blocks: Vec<Block>,
}

impl Document {
    /// A page with a title.
    pub fn titled(title: impl Into<String>) -> Document {
        Document {
            title: Some(title.into()),
            blocks: Vec::new(),
        }
    }

    /// An empty line before the next block.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading { text: text.into() });
    }

    pub fn paragraph(&mut self, text: impl Into<String>, tone: Tone) {
        self.blocks.push(Block::Text {
            text: text.into(),
            tone,
        });
    }

    /// A paragraph of text and figures.
    pub fn say(&mut self, text: impl Into<String>) {
        self.paragraph(text, Tone::Plain);
    }

    /// A paragraph with the answer.
    pub fn answer(&mut self, text: impl Into<String>) {
        self.paragraph(text, Tone::Strong);
    }

    pub fn links(&mut self, links: Vec<Link>) {
        self.blocks.push(Block::Links { links });
    }

    /// A paragraph that explains.
    pub fn note(&mut self, text: impl Into<String>) {
        self.paragraph(text, Tone::Note);
    }

    /// A paragraph above all that is there.
    pub fn above(&mut self, text: impl Into<String>, tone: Tone) {
        let text = text.into();
        self.blocks.insert(0, Block::Text { text, tone });
    }

    /// A paragraph that the reader must not overlook.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.paragraph(text, Tone::Warning);
    }

    pub fn item(&mut self, mark: &str, text: impl Into<String>, tone: Tone) {
        self.blocks.push(Block::Item {
            mark: mark.into(),
            text: text.into(),
            tone,
        });
    }

    /// An item in plain words.
    pub fn entry(&mut self, mark: &str, text: impl Into<String>) {
        self.item(mark, text, Tone::Plain);
    }

    /// A name and its value. Without a value, nothing.
    pub fn fact(&mut self, name: &str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.entry(&format!("{name:<9}"), text);
        }
    }

    /// Items with the same mark and tone, at most this many; the last one says how many more there are, and where.
    pub fn items<S: Into<String>>(
        &mut self,
        mark: &str,
        texts: impl IntoIterator<Item = S>,
        tone: Tone,
        (most, elsewhere): (usize, &str),
    ) {
        let mut texts = texts.into_iter();
        texts
            .by_ref()
            .take(most)
            .for_each(|text| self.item(mark, text, tone));
        let more = texts.count();
        if more > 0 {
            self.item(mark, format!("and {more} more{elsewhere}"), Tone::Note);
        }
    }

    /// A section with an entry for each text. Without texts, no section.
    pub fn list<S: Into<String>>(
        &mut self,
        heading: &str,
        mark: &str,
        texts: impl IntoIterator<Item = S>,
        tone: Tone,
    ) {
        self.each(heading, texts, |page, text| page.item(mark, text, tone));
    }

    /// A section with an entry in plain words for each text. Without texts, no section.
    pub fn entries<S: Into<String>>(&mut self, heading: &str, texts: impl IntoIterator<Item = S>) {
        self.list(heading, "- ", texts, Tone::Plain);
    }

    /// A section to which each entry adds its blocks. Without entries, no section.
    pub fn each<T>(
        &mut self,
        heading: &str,
        entries: impl IntoIterator<Item = T>,
        mut add: impl FnMut(&mut Document, T),
    ) {
        for (at, entry) in entries.into_iter().enumerate() {
            if at == 0 {
                self.heading(heading);
            }
            add(self, entry);
        }
    }

    /// Facts that limit how far the figures can be trusted.
    pub fn warnings<S: Into<String>>(&mut self, texts: impl IntoIterator<Item = S>) {
        self.list("Warnings", "! ", texts, Tone::Warning);
    }

    pub fn chart(&mut self, chart: Chart) {
        self.blocks.push(Block::Chart(chart));
    }

    /// Lines of another program's layout, or of code.
    pub fn code(&mut self, text: &str, tone: Tone) {
        self.blocks.extend(text.lines().map(|line| Block::Code {
            line: line.into(),
            tone,
        }));
    }

    /// One line behind a mark; further lines of the text stand below it.
    pub fn marked_code(&mut self, mark: &str, text: &str, tone: Tone) {
        for (at, line) in text.lines().enumerate() {
            let mark = if at == 0 {
                mark
            } else {
                &" ".repeat(mark.len())
            };
            self.code(&format!("{mark}{line}"), tone);
        }
    }

    pub fn table(&mut self, table: impl Into<Table>) {
        self.blocks.push(Block::Table(table.into()));
    }

    /// A section with a table. Without rows, no section.
    pub fn section(&mut self, heading: impl Into<String>, table: impl Into<Table>) {
        let table = table.into();
        if table.rows() > 0 {
            self.heading(heading);
            self.table(table);
        }
    }

    pub fn append(&mut self, other: Document) {
        self.blocks.extend(other.blocks);
    }

    /// A part with headings of its own, open.
    pub fn part(&mut self, title: impl Into<String>, of: Document) {
        self.blocks.push(Block::Part {
            title: title.into(),
            folded: false,
            blocks: of.blocks,
        });
    }

    /// A part with what `add` adds to it, which a reader opens. Without anything, no part.
    pub fn folded(&mut self, title: impl Into<String>, add: impl FnOnce(&mut Document)) {
        let mut part = Document::default();
        add(&mut part);
        if !part.blocks.is_empty() {
            self.blocks.push(Block::Part {
                title: title.into(),
                folded: true,
                blocks: part.blocks,
            });
        }
    }

    /// All blocks in one list: the title of a part is a heading.
    pub fn flat(&self) -> Vec<&Block> {
        flat(&self.blocks)
    }
}

fn flat<'a>(blocks: &'a [Block]) -> Vec<&'a Block> {
    let inner = |block: &'a Block| match block {
        Block::Part { blocks, .. } => flat(blocks),
        _ => Vec::new(),
    };
    blocks
        .iter()
        .flat_map(|block| std::iter::once(block).chain(inner(block)))
        .collect()
}

/// A plot of one bar for each point, with the spread of its runs at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bars {
    pub points: Vec<Bar>,
    /// The value at the right edge.
    pub top: f64,
}

/// A point to draw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// Where it stands on the axis.
    pub name: String,
    /// Least, median and greatest value, at least 0; `None` without values.
    pub runs: Option<[f64; 3]>,
}

/// A plot of values in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Strip {
    pub points: Vec<Point>,
    pub levels: Vec<Level>,
    /// Indices of the points at which the level changed; the first is called a.
    pub changes: Vec<usize>,
    /// The greatest and the least value, in words.
    pub labels: [String; 2],
    /// The quantity and its unit.
    pub figure: String,
}

impl Strip {
    /// The strip as a picture: points with outliers apart, levels, and a line at each change.
    pub fn chart(&self) -> Chart {
        let points = |outlier: bool| {
            let points = self
                .points
                .iter()
                .enumerate()
                .filter(move |(_, point)| point.outlier == outlier);
            points
                .map(|(at, point)| Spot::at(at as f64, point.value))
                .collect::<Vec<Spot>>()
        };
        let levels = self.levels.iter().filter(|level| level.end > level.start);
        let levels = levels.flat_map(|level| {
            [level.start, level.end].map(|at| Spot::at(at as f64 - 0.5, level.value))
        });
        let ends = ends(self.points.iter().map(|point| point.value)).unwrap_or_default();
        let change = |(number, at): (usize, &usize)| {
            let name = self.points.get(*at).map_or("", |point| point.name.as_str());
            let points = ends.map(|y| Spot::at(*at as f64 - 0.5, y));
            Series::new(format!("{} at {name}", letter(number)), Look::Limit, points)
        };
        let mut series = vec![
            Series::new("point", Look::Marks, points(false)),
            Series::new("outlier", Look::Marks, points(true)),
            Series::new("level", Look::Limit, levels),
        ];
        series.extend(self.changes.iter().enumerate().map(change));
        series.retain(|series| !series.points.is_empty());
        let names = self.points.iter().map(|point| point.name.clone()).collect();
        let title = match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => format!("{} to {}", first.name, last.name),
            _ => String::new(),
        };
        let y = Axis::new(self.figure.as_str(), Scale::Linear { from_zero: false });
        Chart::new(
            title,
            Axis::new("points in their order", Scale::Order(names)),
            y,
            series,
        )
    }
}

/// The letter of change number `i`.
pub fn letter(i: usize) -> char {
    char::from(b'a' + (i % 26) as u8)
}

/// A value of a [`Strip`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    pub name: String,
    pub value: f64,
    pub outlier: bool,
}

/// Points around one value: those from `start` to before `end`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    pub start: usize,
    pub end: usize,
    pub value: f64,
}
