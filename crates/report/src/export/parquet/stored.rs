//! A file that was written before, by this linerate or by another version.

use super::rows::{GROUP, LAB, Rows, figures, physical};
use super::values::Values;
use crate::figures::{Figure, SCHEMA};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

/// A file whose columns are known.
pub struct Stored<R: ChunkReader + 'static> {
    file: SerializedFileReader<R>,
    /// The columns of this version, each with its place in the file.
    columns: Vec<(&'static Figure, Option<usize>)>,
    /// The lab of its campaigns.
    pub lab: Option<String>,
}

/// Rows of a file.
pub struct Group {
    columns: Vec<(&'static Figure, Option<usize>)>,
    pub(super) values: Vec<Values>,
}

impl<R: ChunkReader + 'static> Stored<R> {
    /// Opens a file that must have such rows.
    ///
    /// # Errors
    /// The file is another one, or a later linerate has written it.
    pub fn open(from: R, rows: Rows) -> Result<Self> {
        let file = SerializedFileReader::new(from)?;
        let about = file.metadata().file_metadata();
        let entry = |key: &str| {
            let entries = about.key_value_metadata()?;
            entries.iter().find(|entry| entry.key == key)?.value.clone()
        };
        match entry("linerate.schema").map(|version| version.parse()) {
            None => return fault("linerate did not write it".into()),
            Some(Ok(SCHEMA)) => {}
            Some(_) => {
                return fault(format!(
                    "its columns are not of version {SCHEMA}, which this linerate knows"
                ));
            }
        }
        if entry("linerate.rows").as_deref() != Some(rows.name()) {
            return fault(format!("its rows are no {}", rows.name()));
        }
        let there = about.schema_descr().columns();
        let mut known = 0;
        let columns = figures(rows).map(|figure| {
            let (name, _) = figure.column();
            let Some(at) = there.iter().position(|column| column.name() == name) else {
                return Ok((figure, None));
            };
            let column = &there[at];
            if column.physical_type() != physical(figure.unit)
                || column.max_rep_level() > 0
                || column.max_def_level() != 1
            {
                return fault(format!("its column {name} has another type"));
            }
            known += 1;
            Ok((figure, Some(at)))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        if known < there.len() {
            return fault("it has columns of a later linerate".into());
        }
        let lab = entry(LAB);
        let groups = file.metadata().row_groups();
        if groups
            .iter()
            .any(|group| !(0..=GROUP as i64).contains(&group.num_rows()))
        {
            return fault(format!("a row group has more than {GROUP} rows"));
        }
        Ok(Stored { file, columns, lab })
    }

    pub fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Reads a row group.
    ///
    /// # Errors
    /// The group cannot be read.
    pub fn group(&self, at: usize) -> Result<Group> {
        self.read(at, |_| true)
    }

    /// How many rows a campaign has.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn count(&self, id: &str) -> Result<usize> {
        let mut rows = 0;
        for at in (0..self.groups()).filter(|at| self.may_have(*at, id)) {
            let group = self.read(at, |figure| figure.name == "id")?;
            rows += group.ids().filter(|of| *of == id).count();
        }
        Ok(rows)
    }

    /// Whether a row group may have rows of a campaign, by its least and greatest campaign.
    pub fn may_have(&self, group: usize, id: &str) -> bool {
        let place = self.columns.iter().find(|(figure, _)| figure.name == "id");
        let Some(place) = place.and_then(|(_, place)| *place) else {
            return false;
        };
        let statistics = self
            .file
            .metadata()
            .row_group(group)
            .column(place)
            .statistics();
        let ends = statistics.and_then(|s| Some((s.min_bytes_opt()?, s.max_bytes_opt()?)));
        ends.is_none_or(|(least, most)| (least..=most).contains(&id.as_bytes()))
    }

    fn read(&self, at: usize, wanted: impl Fn(&Figure) -> bool) -> Result<Group> {
        let group = self.file.get_row_group(at)?;
        let rows = group.metadata().num_rows() as usize;
        let read = |(figure, place): &(&'static Figure, Option<usize>)| match place {
            Some(place) if wanted(figure) => {
                let column = group.get_column_reader(*place)?;
                Values::read(physical(figure.unit), column, rows)
            }
            _ => Ok(Values::absent(rows)),
        };
        let values = self.columns.iter().map(read).collect::<Result<Vec<_>>>()?;
        Ok(Group {
            columns: self.columns.clone(),
            values,
        })
    }
}

impl Group {
    /// The campaign of each row; none has an empty name.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.column("id");
        let ids = ids.into_iter().flat_map(|ids| ids.by_row(&ids.texts));
        ids.map(|id| id.and_then(|id| id.as_utf8().ok()).unwrap_or_default())
    }

    /// The whole number of each row in a column; nothing without such a column.
    pub fn wholes(&self, name: &str) -> impl Iterator<Item = Option<i64>> {
        let column = self.column(name).into_iter();
        column.flat_map(|column| column.by_row(&column.wholes).map(|whole| whole.copied()))
    }

    fn column(&self, name: &str) -> Option<&Values> {
        let at = self.columns.iter().position(|(of, _)| of.name == name)?;
        self.values.get(at)
    }
}

fn fault<T>(why: String) -> Result<T> {
    Err(ParquetError::General(why))
}
