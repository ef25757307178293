//! Which data stand behind which printed figure: a TOML file that people can extend. docs/reproduce.md has the format.

use linerate_stats::ministat::Era;
use serde::Deserialize;

/// A document with its figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The document: author, title, year.
    pub document: String,
    /// The generation of ministat that it was made with: `old`, `mid`, `fb11` or `new`.
    #[serde(deserialize_with = "linerate_wire::text::deserialize")]
    pub era: Era,
    /// Tables of medians.
    #[serde(default, rename = "table")]
    pub tables: Vec<Table>,
    /// Blocks of ministat.
    #[serde(default, rename = "block")]
    pub blocks: Vec<Block>,
    /// Plots.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
}

/// A table: two medians and their difference in each row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its number in the document: `9`.
    pub illustration: String,
    pub caption: String,
    /// Titles of the two columns.
    pub columns: [String; 2],
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<TableRow>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// The set-up, as printed.
    pub setup: String,
    /// Both medians, as printed, with their unit: `3.74 Mpps`.
    pub printed: [String; 2],
    /// The difference as printed: `11.66% +/- 8.15%`, or words (`No diff. proven`, `NA`).
    #[serde(default)]
    pub difference: String,
    /// Files of medians, relative to the archive; none where no data are known.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Why there are no data.
    #[serde(default)]
    pub missing: Option<String>,
}

/// A block of ministat.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its number or place in the document.
    pub illustration: String,
    pub caption: String,
    /// Files of medians, one for each set; none where no data are known.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Why there are no data.
    #[serde(default)]
    pub missing: Option<String>,
    /// The block as printed, with its plot where that has survived.
    pub printed: String,
}

/// A plot: medians, with the least and greatest run, of series of points.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its number in the document.
    pub illustration: String,
    pub caption: String,
    /// The quantity along a series.
    pub axis: String,
    /// The series.
    pub series: Vec<PlotSeries>,
}

/// A series of a plot.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSeries {
    /// Its name.
    pub name: String,
    /// Files of medians relative to the archive, with `{}` where the point's name is to stand.
    pub files: String,
    /// The points.
    pub points: Vec<String>,
}

/// Why a mapping cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MappingError(String);

impl Mapping {
    /// Reads a mapping; `name` is that of its file.
    ///
    /// # Errors
    /// No TOML of this form (with line and column), or an entry that contradicts itself.
    pub fn read(name: &str, text: &str) -> Result<Self, MappingError> {
        let mapping: Mapping = toml::from_str(text).map_err(|e| MappingError(format!("{name}: {e}")))?;
        mapping.check().map_err(|e| MappingError(format!("{name}: {e}")))?;
        Ok(mapping)
    }

    fn check(&self) -> Result<(), String> {
        for table in &self.tables {
            for row in &table.rows {
                let place = format!("illustration {}, {}", table.illustration, row.setup);
                two_or_none(row).map_err(|e| format!("{place}: {e}"))?;
                for printed in &row.printed {
                    super::printed::Printed::rate(printed).ok_or_else(|| {
                        format!("{place}: '{printed}' is no rate with its unit: write 3.74 Mpps or 726 Kpps")
                    })?;
                }
            }
        }
        for block in &self.blocks {
            let sets = super::printed::PrintedBlock::read(&block.printed).rows.len();
            let place = format!("illustration {}", block.illustration);
            if sets == 0 {
                return Err(format!("{place}: no row of figures (x   5   4500078 ...) in what is printed"));
            }
            if !block.sources.is_empty() && block.sources.len() != sets {
                return Err(format!(
                    "{place}: {sets} sets are printed, and {} sources named",
                    block.sources.len()
                ));
            }
        }
        for series in self.plots.iter().flat_map(|p| &p.series) {
            if !series.files.contains("{}") {
                return Err(format!(
                    "plot series {}: 'files' needs {{}} where the point stands",
                    series.name
                ));
            }
        }
        Ok(())
    }
}

fn two_or_none(row: &TableRow) -> Result<(), String> {
    match (row.sources.len(), &row.missing) {
        (2, None) | (0, Some(_)) => Ok(()),
        (2, Some(_)) => Err("it has sources, and 'missing' says why there are none".into()),
        (0, None) => Err("name two sources, or say in 'missing' why there are none".into()),
        (n, _) => Err(format!("two sources are needed, one for each column, and {n} are named")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Mapping::read("m.toml", text).unwrap_err().to_string()
    }

    const HEAD: &str = "document = 'd'\nera = 'fb11'\n";

    #[test]
    fn faults_name_file_and_place() {
        assert!(fault("document = 1").contains("m.toml: TOML parse error at line 1"));
        assert!(fault("document = 'd'\nera = 'x'").contains("line 2"));
        assert!(fault(&format!("{HEAD}colour = 1")).contains("unknown field `colour`"));
        let row = |rest: &str| {
            format!(
                "{HEAD}[[table]]\nillustration = '9'\ncaption = ''\ncolumns = ['a', 'b']\n[[table.row]]\nsetup = 's'\n{rest}"
            )
        };
        let printed = "printed = ['3.74 Mpps', '1 Mpps']\n";
        assert!(fault(&row(printed)).contains("illustration 9, s: name two sources"));
        assert!(fault(&row(&format!("{printed}sources = ['a']"))).contains("1 are named"));
        assert!(fault(&row("printed = ['3.74', '1 Mpps']\nmissing = 'x'")).contains("'3.74' is no rate"));
        assert!(Mapping::read("m", &row(&format!("{printed}missing = 'never committed'"))).is_ok());
        let block = format!("{HEAD}[[block]]\nillustration = '5'\ncaption = ''\nprinted = 'nothing'");
        assert!(fault(&block).contains("illustration 5: no row"));
    }
}
