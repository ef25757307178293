//! Parquet: a row for each trial, cell or fact of many campaigns. docs/archive-schema.md describes the columns.

mod rows;
mod stored;
mod values;

use crate::figures::{Figure, Of, SCHEMA, Unit, all_facts};
use crate::pages::Records;
use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use hmac_sha256::Hash;
pub use rows::Rows;
use rows::{GROUP, LAB, figures, physical};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
pub use stored::{Group, Stored};
use values::Values;

/// A file that is being written.
pub struct Archive<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    columns: Vec<&'static Figure>,
    waiting: Vec<Values>,
    /// Rows of the campaigns that wait.
    held: usize,
}

impl<W: Write + Send> Archive<W> {
    /// Begins a file of these rows. `lab`: the lab of all its campaigns, if they have one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(to: W, rows: Rows, lab: Option<&str>) -> Result<Self> {
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
        let about = Value::Object(about).to_string();
        let version = SCHEMA.to_string();
        let entries = [
            ("linerate.schema", version.as_str()),
            ("linerate.rows", rows.name()),
            ("linerate.columns", &about),
        ];
        let entries = entries
            .into_iter()
            .chain(lab.map(|lab| (LAB, lab)))
            .map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()))
            .collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("linerate ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(entries))
            .build();
        let file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        let waiting = columns.iter().map(|_| Values::default()).collect();
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
        let id = &identity(records);
        let mut taken = false;
        let mut add = |of: Option<Of<'_>>| {
            let Some(of) = of else { return Ok(()) };
            taken = true;
            self.row(&Of { folder, id, ..of })
        };
        match rows {
            Rows::Trials => trials
                .iter()
                .try_for_each(|trial| add(Of::trial(records, trial)))?,
            Rows::Cells => summary
                .rows
                .iter()
                .try_for_each(|row| add(Of::cell(records, row)))?,
            Rows::Facts => all_facts(records)
                .iter()
                .try_for_each(|fact| add(Of::fact(records, fact)))?,
        }
        Ok(taken)
    }

    fn row(&mut self, of: &Of<'_>) -> Result<()> {
        for (figure, waiting) in self.columns.iter().zip(&mut self.waiting) {
            waiting.push(physical(figure.unit), figure.value(of));
        }
        self.held += 1;
        if self.held == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    /// Adds the rows of a group of another file whose campaigns are wanted, and returns how many.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn copy(&mut self, group: &Group, wanted: impl Fn(&str) -> bool) -> Result<usize> {
        let wanted: Vec<bool> = group.ids().map(wanted).collect();
        let mut from = 0;
        while from < wanted.len() {
            let until = wanted.len().min(from + GROUP - self.held);
            let part = &wanted[from..until];
            for (own, values) in self.waiting.iter_mut().zip(&group.values) {
                own.extend(values, from, part);
            }
            self.held += part.iter().filter(|wanted| **wanted).count();
            if self.held == GROUP {
                self.write()?;
            }
            from = until;
        }
        Ok(wanted.into_iter().filter(|wanted| *wanted).count())
    }

    /// Writes the rows that are held as a group.
    fn write(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (figure, waiting) in self.columns.iter().zip(&mut self.waiting) {
            let Some(column) = group.next_column()? else {
                break;
            };
            std::mem::take(waiting).write(physical(figure.unit), column)?;
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

/// The name of a campaign among all: it stays the same when the campaign goes on, is moved, or is read by a later linerate.
pub fn identity(records: &Records<'_>) -> String {
    let Records {
        campaign, trials, ..
    } = *records;
    let mut hash = Hash::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    add(&campaign.name);
    add(&campaign.started);
    if let Some(from) = &campaign.imported {
        for text in [&from.machine, &from.card, &from.topic, &from.label] {
            add(text.as_deref().unwrap_or_default());
        }
    }
    campaign.slots.iter().for_each(|slot| add(&slot.name));
    if let Some(first) = trials.iter().min_by_key(|trial| trial.trial) {
        let (sent, received) = (first.generator.frames, first.receiver.frames);
        let rates = first.rates.map(|rates| (rates.offered, rates.received));
        add(&format!(
            "{} {} {} {sent} {received} {rates:?}",
            first.trial, first.slot, first.began_ns
        ));
    }
    let bytes = hash.finalize();
    bytes[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
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

    /// Writes as many campaigns of 1,000 trials; `ids` has their names.
    fn written(campaigns: usize, ids: &mut Vec<String>) -> bytes::Bytes {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes, Rows::Trials, Some("a lab")).unwrap();
        for number in 0..campaigns {
            let slots = vec![Slot {
                name: "cell".into(),
                ..Slot::default()
            }];
            let campaign = Campaign {
                slots,
                name: format!("{number}"),
                ..Campaign::default()
            };
            let trials = vec![
                TrialRecord {
                    trial: number as u64,
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
            ids.push(identity(&records));
            assert!(archive.add("folder", &records).unwrap());
        }
        archive.finish().unwrap();
        bytes.into()
    }

    #[test]
    fn many_rows_are_written_in_groups() {
        let file = SerializedFileReader::new(written(17, &mut Vec::new())).unwrap();
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

    #[test]
    fn rows_that_are_read_are_those_that_were_written() {
        let mut ids = Vec::new();
        let bytes = written(17, &mut ids);
        let copy = |wanted: &dyn Fn(&str) -> bool| {
            let stored = Stored::open(bytes.clone(), Rows::Trials).unwrap();
            let mut copy = Vec::new();
            let mut archive = Archive::new(&mut copy, Rows::Trials, stored.lab.as_deref()).unwrap();
            let copied = (0..stored.groups())
                .map(|at| archive.copy(&stored.group(at).unwrap(), wanted).unwrap())
                .sum::<usize>();
            archive.finish().unwrap();
            (copied, copy)
        };
        assert_eq!(copy(&|_| true), (17_000, bytes.to_vec()));
        // Rows of a campaign that two groups have.
        let (copied, one) = copy(&|id| id == ids[16]);
        assert_eq!(copied, 1000);
        let one = Stored::open(bytes::Bytes::from(one), Rows::Trials).unwrap();
        assert_eq!(
            (one.count(&ids[16]).unwrap(), one.count(&ids[0]).unwrap()),
            (1000, 0)
        );
        let trials: Vec<_> = one.group(0).unwrap().wholes("trial").collect();
        assert_eq!(trials, [Some(16); 1000]);
    }

    #[test]
    fn other_files_are_refused() {
        let bytes = written(1, &mut Vec::new());
        let fault = |bytes: Vec<u8>, rows| {
            let stored = Stored::open(bytes::Bytes::from(bytes), rows);
            stored
                .err()
                .map(|fault| fault.to_string())
                .unwrap_or_default()
        };
        let of = |old: &[u8], new: &[u8]| {
            let mut bytes = bytes.to_vec();
            let at = bytes
                .windows(old.len())
                .rposition(|part| part == old)
                .unwrap();
            bytes[at..at + old.len()].copy_from_slice(new);
            bytes
        };
        assert_eq!(fault(bytes.to_vec(), Rows::Trials), "");
        assert!(fault(bytes.to_vec(), Rows::Cells).contains("no cells"));
        assert!(fault(bytes[..bytes.len() / 2].into(), Rows::Trials).contains("Parquet"));
        let later = of(b"linerate.schema\x18\x012", b"linerate.schema\x18\x013");
        assert!(fault(later, Rows::Trials).contains("not of version 2"));
        let others = of(b"linerate.schema", b"otherrate.schem");
        assert!(fault(others, Rows::Trials).contains("did not write"));
    }
}
