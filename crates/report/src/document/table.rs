//! Tables, column by column.

use super::Link;
use serde::Serialize;

/// A cell of a table: numbers keep their value, in the unit of their column, beside the digits that mean something.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Not known, or it does not apply.
    Nothing,
    Text(String),
    Link(Link),
    /// A text, and a shorter one for narrow pages.
    Long {
        text: String,
        short: String,
    },
    Number {
        value: f64,
        text: String,
    },
    Interval {
        low: f64,
        high: f64,
        text: String,
    },
    /// A share of the longest bar, 0..1.
    Bar {
        share: f64,
    },
}

impl Cell {
    /// The figures from `low` to `high`, as a text.
    pub fn range(low: f64, high: f64, text: impl Into<String>) -> Cell {
        Cell::Interval {
            low,
            high,
            text: text.into(),
        }
    }

    pub fn number(value: f64, text: impl Into<String>) -> Cell {
        Cell::Number {
            value,
            text: text.into(),
        }
    }

    /// The text that a reader sees. Each format draws bars itself.
    pub fn text(&self) -> &str {
        match self {
            Cell::Nothing => "-",
            Cell::Text(text)
            | Cell::Link(Link { text, .. })
            | Cell::Long { text, .. }
            | Cell::Number { text, .. }
            | Cell::Interval { text, .. } => text,
            Cell::Bar { .. } => "",
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.into())
    }
}

impl From<Link> for Cell {
    fn from(link: Link) -> Self {
        Cell::Link(link)
    }
}

impl From<usize> for Cell {
    fn from(n: usize) -> Self {
        Cell::number(n as f64, n.to_string())
    }
}

impl<C: Into<Cell>> From<Option<C>> for Cell {
    fn from(cell: Option<C>) -> Self {
        cell.map_or(Cell::Nothing, Into::into)
    }
}

/// A column of a table with a heading of two lines. The second is the unit of its numbers, if they have one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub head: [String; 2],
    /// Whether it is left out without room for it.
    pub optional: bool,
    pub cells: Vec<Cell>,
}

impl Column {
    /// Heading in one line.
    pub fn title(&self) -> String {
        match self.head[0].strip_suffix('-') {
            Some(begin) => format!("{begin}{}", self.head[1]),
            None => self.head.join(" ").trim().into(),
        }
    }
}

/// A table whose first column names the rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    pub columns: Vec<Column>,
}

impl Table {
    /// A table with a row for each of `rows`, and no column yet.
    pub fn of<R>(rows: impl IntoIterator<Item = R>) -> Rows<R> {
        Rows {
            rows: rows.into_iter().collect(),
            table: Table::default(),
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }
}

/// A table under construction, column by column.
pub struct Rows<R> {
    rows: Vec<R>,
    table: Table,
}

impl<R> Rows<R> {
    pub fn column<C: Into<Cell>>(
        mut self,
        first: &str,
        second: &str,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        let cells = self.rows.iter().map(|row| cell(row).into()).collect();
        self.table.columns.push(Column {
            head: [first.into(), second.into()],
            optional: false,
            cells,
        });
        self
    }

    /// A column that is left out without room for it.
    pub fn optional<C: Into<Cell>>(
        self,
        first: &str,
        second: &str,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        let mut rows = self.column(first, second, cell);
        rows.table.columns.last_mut().expect("just added").optional = true;
        rows
    }

    /// A column that is left out where no row has anything in it.
    pub fn if_any<C: Into<Cell>>(self, first: &str, second: &str, cell: impl Fn(&R) -> C) -> Self {
        self.column(first, second, cell).without_nothing()
    }

    /// A column that is left out where no row has anything in it, or without room for it.
    pub fn optional_if_any<C: Into<Cell>>(
        self,
        first: &str,
        second: &str,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        self.optional(first, second, cell).without_nothing()
    }

    /// Without the last column where it is empty.
    fn without_nothing(mut self) -> Self {
        let is_empty = |column: &mut Column| column.cells.iter().all(|cell| *cell == Cell::Nothing);
        self.table.columns.pop_if(is_empty);
        self
    }

    /// Columns that a condition decides about.
    pub fn when(self, condition: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if condition { columns(self) } else { self }
    }
}

impl<R> From<Rows<R>> for Table {
    fn from(rows: Rows<R>) -> Self {
        rows.table
    }
}
