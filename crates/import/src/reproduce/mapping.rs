//! Which data stand behind which printed figure: a TOML file that people can extend (docs/reproduce.md has the format), and the
//! medians that it names: those committed to an archive, or else those recomputed from its logs.

use super::printed::{Printed, PrintedBlock};
use crate::netbenches::Archive;
use linerate_plan::Diagnostic;
use linerate_stats::ministat::{Dataset, Era};
use serde::Deserialize;
use std::collections::BTreeMap;

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
    /// Number in the document: `9`.
    pub illustration: String,
    pub caption: String,
    /// Titles of the two columns.
    pub columns: [String; 2],
    /// Rows of the table.
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
    /// Number or place in the document.
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
    /// Number in the document.
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
    /// Name of the series.
    pub name: String,
    /// Files of medians relative to the archive, with `{}` where the point's name is to stand.
    pub files: String,
    /// The points.
    pub points: Vec<String>,
}

impl Mapping {
    /// Reads a mapping; `name` is that of its file.
    ///
    /// # Errors
    /// No TOML of this form (with line and column), or an entry that contradicts itself.
    pub fn read(name: &str, text: &str) -> Result<Self, Diagnostic> {
        let mapping = toml::from_str(text).map_err(|error| error.to_string());
        let checked = mapping.and_then(|mapping: Mapping| mapping.check().map(|()| mapping));
        checked.map_err(|fault| Diagnostic::new(fault).of(name))
    }

    fn check(&self) -> Result<(), String> {
        for (table, row) in self
            .tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
        {
            let place = format!("illustration {}, {}", table.illustration, row.setup);
            if !matches!((row.sources.len(), &row.missing), (2, None) | (0, Some(_))) {
                return Err(format!(
                    "{place}: name two sources, or say in 'missing' why there are none"
                ));
            }
            if let Some(printed) = row
                .printed
                .iter()
                .find(|printed| Printed::rate(printed).is_none())
            {
                let help = "write 3.74 Mpps or 726 Kpps";
                return Err(format!(
                    "{place}: '{printed}' is no rate with its unit: {help}"
                ));
            }
        }
        for Block {
            illustration,
            sources,
            printed,
            ..
        } in &self.blocks
        {
            let (sets, named) = (PrintedBlock::read(printed).rows.len(), sources.len());
            if sets == 0 || (named > 0 && named != sets) {
                let what = "rows of figures (x   5   4500078 ...) are printed";
                return Err(format!(
                    "illustration {illustration}: {sets} {what}, and {named} sources named"
                ));
            }
        }
        let mut series = self.plots.iter().flat_map(|plot| &plot.series);
        match series.find(|series| !series.files.contains("{}")) {
            Some(wrong) => Err(format!(
                "plot series {}: 'files' needs {{}} where the point stands",
                wrong.name
            )),
            None => Ok(()),
        }
    }
}

/// Medians of runs in frames/s, by the path of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence(BTreeMap<String, Vec<f64>>);

impl Evidence {
    /// Adds the values of an archive. Existing values stay: the first archive decides.
    pub fn add(&mut self, archive: &Archive) {
        for directory in &archive.directories {
            for set in &directory.sets {
                let (file, values) = match (&set.slot.published, directory.path.as_str()) {
                    (Some(published), _) => (published.file.clone(), published.values.clone()),
                    (None, path) => {
                        let folder = if path == "." {
                            String::new()
                        } else {
                            format!("{path}/")
                        };
                        let values = set.runs.iter().filter_map(|r| r.median_pps).collect();
                        (format!("{folder}{}.pps", set.slot.set), values)
                    }
                };
                self.0.entry(file).or_insert(values);
            }
        }
    }

    /// The medians of a file.
    pub fn get(&self, source: &str) -> Option<&[f64]> {
        self.0.get(source).map(Vec::as_slice)
    }

    /// The medians of a file, for arithmetic.
    pub fn set(&self, source: &str) -> Option<Dataset> {
        Some(Dataset::new(source, self.get(source)?.to_vec()))
    }

    /// The other files of the same machine and card, with their medians.
    pub fn siblings<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, Dataset)> {
        let hardware = |path: &str| {
            path.split('/')
                .take(2)
                .map(String::from)
                .collect::<Vec<_>>()
        };
        let wanted = hardware(source);
        let others = self
            .0
            .keys()
            .filter(move |path| *path != source && hardware(path) == wanted);
        others.filter_map(|path| Some((path.as_str(), self.set(path)?)))
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        assert!(
            fault(&row(&format!("{printed}sources = ['a']")))
                .contains("illustration 9, s: name two sources")
        );
        assert!(
            fault(&row("printed = ['3.74', '1 Mpps']\nmissing = 'x'"))
                .contains("'3.74' is no rate")
        );
        assert!(Mapping::read("m", &row(&format!("{printed}missing = 'never committed'"))).is_ok());
        let block =
            format!("{HEAD}[[block]]\nillustration = '5'\ncaption = ''\nprinted = 'nothing'");
        assert!(fault(&block).contains("illustration 5: 0 rows of figures"));
    }
}
