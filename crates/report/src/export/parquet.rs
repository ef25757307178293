//! Parquet: a row for each trial, or for each cell, of many campaigns. docs/archive-schema.md describes the columns.

use crate::figures::{CELL, COMMON, Figure, Of, TRIAL, Unit};
use crate::pages::Records;
use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// Version of the columns.
const VERSION: &str = "1";
/// Rows that are held until they are written as a group.
const GROUP: usize = 1 << 14;

/// The rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Trials,
    Cells,
}

/// The columns that such rows have.
fn figures(rows: Rows) -> impl Iterator<Item = &'static Figure> {
    COMMON.iter().chain(if rows == Rows::Trials {
        TRIAL.iter()
    } else {
        CELL.iter()
    })
}

fn physical(unit: Unit) -> Physical {
    match unit {
        Unit::Text => Physical::BYTE_ARRAY,
        Unit::Flag => Physical::BOOLEAN,
        Unit::Time | Unit::Count | Unit::Cell | Unit::Nanoseconds => Physical::INT64,
        Unit::FramesPerSecond | Unit::BitsPerSecond | Unit::Plain => Physical::DOUBLE,
    }
}

/// A file that is being written.
pub struct Archive<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    columns: Vec<&'static Figure>,
    waiting: Vec<Waiting>,
    /// Rows of the campaigns that wait.
    held: usize,
}

/// The values of a column that are not written yet, and for each row whether it has one.
#[derive(Default)]
struct Waiting {
    there: Vec<i16>,
    texts: Vec<ByteArray>,
    wholes: Vec<i64>,
    reals: Vec<f64>,
    flags: Vec<bool>,
}

impl<W: Write + Send> Archive<W> {
    /// Begins a file of these rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(to: W, rows: Rows) -> Result<Self> {
        let columns: Vec<&Figure> = figures(rows).collect();
        let field = |figure: &&Figure| {
            let logical = match figure.unit {
                Unit::Text => Some(LogicalType::String),
                Unit::Time => Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
                _ => None,
            };
            let (name, _) = figure.column();
            let builder = Type::primitive_type_builder(&name, physical(figure.unit))
                .with_logical_type(logical);
            Ok(Arc::new(
                builder.with_repetition(Repetition::OPTIONAL).build()?,
            ))
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("linerate")
            .with_fields(fields)
            .build()?;
        let about: serde_json::Map<String, Value> = self::columns(rows)
            .into_iter()
            .map(|(name, about)| (name, about.into()))
            .collect();
        let kind = if rows == Rows::Trials {
            "trials"
        } else {
            "cells"
        };
        let about = Value::Object(about).to_string();
        let entries = [
            ("linerate.schema", VERSION),
            ("linerate.rows", kind),
            ("linerate.columns", &about),
        ];
        let entries = entries.map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("linerate ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(Vec::from(entries)))
            .build();
        let file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        let waiting = columns.iter().map(|_| Waiting::default()).collect();
        Ok(Archive {
            file,
            rows,
            columns,
            waiting,
            held: 0,
        })
    }

    /// Adds the rows of a campaign, and tells whether there are any.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(&mut self, folder: &str, records: &Records<'_>) -> Result<bool> {
        let Records {
            summary, trials, ..
        } = *records;
        let rows = self.rows;
        let mut add = |of: Option<Of<'_>>| of.map_or(Ok(()), |of| self.row(&Of { folder, ..of }));
        match rows {
            Rows::Trials => trials
                .iter()
                .try_for_each(|trial| add(Of::trial(records, trial)))?,
            Rows::Cells => summary
                .rows
                .iter()
                .try_for_each(|row| add(Of::cell(records, row)))?,
        }
        Ok(match rows {
            Rows::Trials => !trials.is_empty(),
            Rows::Cells => !summary.rows.is_empty(),
        })
    }

    fn row(&mut self, of: &Of<'_>) -> Result<()> {
        for (figure, waiting) in self.columns.iter().zip(&mut self.waiting) {
            let value = figure.value(of);
            let there = match (physical(figure.unit), &value) {
                (_, None) => None,
                (Physical::BYTE_ARRAY, Some(text)) => {
                    text.as_str().map(|t| waiting.texts.push(t.into()))
                }
                (Physical::BOOLEAN, Some(flag)) => {
                    flag.as_bool().map(|flag| waiting.flags.push(flag))
                }
                (Physical::INT64, Some(whole)) => whole.as_i64().map(|n| waiting.wholes.push(n)),
                (_, Some(real)) => real.as_f64().map(|real| waiting.reals.push(real)),
            };
            waiting.there.push(there.is_some().into());
        }
        self.held += 1;
        if self.held == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    /// Writes the rows that are held as a group.
    fn write(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (figure, waiting) in self.columns.iter().zip(&mut self.waiting) {
            let Waiting {
                there,
                texts,
                wholes,
                reals,
                flags,
            } = std::mem::take(waiting);
            let Some(mut column) = group.next_column()? else {
                break;
            };
            let there = Some(&there[..]);
            match physical(figure.unit) {
                Physical::BYTE_ARRAY => column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, there, None)?,
                Physical::BOOLEAN => column
                    .typed::<BoolType>()
                    .write_batch(&flags, there, None)?,
                Physical::INT64 => column
                    .typed::<Int64Type>()
                    .write_batch(&wholes, there, None)?,
                _ => column
                    .typed::<DoubleType>()
                    .write_batch(&reals, there, None)?,
            };
            column.close()?;
        }
        group.close()?;
        self.held = 0;
        Ok(())
    }

    /// Writes the rest, and ends the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if self.held > 0 {
            self.write()?;
        }
        self.file.close().map(drop)
    }
}

/// The columns of a file: name, and meaning with unit.
pub fn columns(rows: Rows) -> Vec<(String, String)> {
    figures(rows).map(Figure::column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use linerate_measure::record::{Campaign, HostFacts, Slot, Stopped, TrialRecord};
    use linerate_measure::summary::summarise;
    use std::collections::BTreeMap;

    #[test]
    fn many_rows_are_written_in_groups() {
        let slots = vec![Slot {
            name: "cell".into(),
            ..Slot::default()
        }];
        let campaign = Campaign {
            slots,
            ..Campaign::default()
        };
        let trials = vec![
            TrialRecord {
                trial: 7,
                ..TrialRecord::default()
            };
            1000
        ];
        let summary = summarise(&campaign, &trials, Stopped::Trials, 0);
        let (host, stacks) = (HostFacts::default(), BTreeMap::new());
        let records = Records {
            campaign: &campaign,
            host: &host,
            summary: &summary,
            trials: &trials,
            facts: &[],
            stacks: &stacks,
        };
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes, Rows::Trials).unwrap();
        (0..17).for_each(|_| assert!(archive.add("folder", &records).unwrap()));
        archive.finish().unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let groups: Vec<i64> = file
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect();
        assert_eq!(groups, [GROUP as i64, 17_000 - GROUP as i64]);
        assert_eq!(
            file.metadata().file_metadata().created_by(),
            Some(concat!("linerate ", env!("CARGO_PKG_VERSION")))
        );
    }
}
