//! Parquet: a row for each trial, or for each cell, of many campaigns. docs/archive-schema.md describes the columns.

use crate::pages::Records;
use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use linerate_measure::calendar;
use linerate_measure::record::{Campaign, HostFacts, Row, Slot, TrialRecord};
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

/// A trial or a cell, with all that it belongs to.
struct Of<'a> {
    /// Where its campaign is.
    folder: &'a str,
    campaign: &'a Campaign,
    host: &'a HostFacts,
    slot: &'a Slot,
    /// Present in rows of trials, and in rows of cells.
    trial: Option<&'a TrialRecord>,
    cell: Option<&'a Row>,
}

/// How a column finds its values; `None` where there is no value.
enum Values {
    Text(fn(&Of<'_>) -> Option<String>),
    Whole(fn(&Of<'_>) -> Option<u64>),
    Real(fn(&Of<'_>) -> Option<f64>),
    Flag(fn(&Of<'_>) -> Option<bool>),
    /// Seconds since 1970.
    Time(fn(&Of<'_>) -> Option<i64>),
}

/// A column: its name, its meaning with its unit, and its values.
type Column = (&'static str, &'static str, Values);

use Values::{Flag, Real, Text, Time, Whole};

/// The columns that trials and cells have.
const BOTH: [Column; 20] = [
    (
        "folder",
        "folder of the campaign below the one that was exported; its path where several were",
        Text(|of| Some(of.folder.into())),
    ),
    ("campaign", "name of the campaign", Text(|of| Some(of.campaign.name.clone()))),
    ("started", "when the campaign began, UTC", Time(|of| calendar::seconds(&of.campaign.started))),
    (
        "lab",
        "where trials ran: namespaces, hosts, simulated, imported",
        Text(|of| Some(of.campaign.asked.lab.to_string())),
    ),
    ("machine", "the DUT's machine: as its owner names it, or the model of its CPU", Text(machine)),
    ("kernel", "kernel of the machine that ran linerate", Text(|of| known(&of.host.kernel))),
    ("linerate", "version that wrote the records", Text(|of| Some(of.campaign.linerate.clone()))),
    (
        "cell",
        "number of the cell in its campaign, from 1 as on pages",
        Whole(|of| Some(of.slot.id as u64 + 1)),
    ),
    ("name", "name of the cell, unique in its campaign", Text(|of| Some(of.slot.name.clone()))),
    (
        "variant",
        "variant without levels",
        Text(|of| known(&of.slot.plan_variant).or(known(&of.slot.variant))),
    ),
    ("levels", "levels of the plan's factors, as a JSON object", Text(levels)),
    ("family", "IPv4 or IPv6", Text(|of| known(&of.slot.family))),
    ("transport", "UDP, TCP or ICMP echo", Text(|of| known(&of.slot.transport))),
    ("frame", "frame length as it was asked for: 64, IMIX", Text(|of| known(&of.slot.frame))),
    (
        "frame_bytes",
        "mean frame length with FCS, bytes",
        Real(|of| Some(of.slot.average_len_fcs()).filter(|l| *l > 0.0)),
    ),
    (
        "direction",
        "forward, reverse or both: then figures are of both together",
        Text(|of| Some(of.slot.direction.to_string())),
    ),
    (
        "flows",
        "flows",
        Whole(|of| of.slot.flows.or(Some(of.campaign.asked.flows)).filter(|flows| *flows > 0)),
    ),
    (
        "asked_fps",
        "load asked for, frames/s in each direction; none: as much as possible",
        Real(|of| of.trial.map_or(of.slot.asked_fps, |t| t.asked_fps)),
    ),
    ("tester_alone", "whether there was no DUT", Flag(|of| Some(of.slot.is_calibration()))),
    (
        "source",
        "file of an imported figure",
        Text(|of| {
            of.trial?
                .imported
                .as_ref()
                .map(|i| i.file.clone())
                .or_else(|| of.slot.imported.as_ref().map(|i| i.set.clone()))
        }),
    ),
];

const TRIAL: [Column; 19] = [
    ("trial", "number of the trial in its campaign, from 0", Whole(|of| Some(of.trial?.trial))),
    (
        "block",
        "block of the trial: trials of one block ran side by side",
        Whole(|of| Some(of.trial?.block.into())),
    ),
    ("valid", "whether the audit held: the others are in no result", Flag(|of| Some(of.trial?.audit.valid))),
    ("invalid_because", "the first check that failed", Text(|of| of.trial?.audit.failures().next())),
    ("test", "test of RFC 2544 that it belongs to", Text(|of| named(&of.trial?.benchmark?))),
    ("began_ns", "beginning, ns since the campaign's first trial", Whole(|of| Some(of.trial?.began_ns))),
    (
        "took_ns",
        "how long it took with set-up and drain, ns",
        Whole(|of| Some(of.trial?.took_ns).filter(|ns| *ns > 0)),
    ),
    ("load_ns", "how long the load lasted, ns", Whole(|of| Some(of.trial?.timing.load_ns()))),
    ("offered_fps", "offered load as measured, frames/s", Real(|of| Some(of.trial?.rates?.offered))),
    ("received_fps", "received frames/s", Real(|of| Some(of.trial?.rates?.received))),
    ("loss_ratio", "lost frames by sent frames", Real(|of| Some(of.trial?.loss_ratio))),
    ("sent_frames", "frames sent", Whole(|of| Some(of.trial?.generator.frames))),
    ("received_frames", "frames received at least once", Whole(|of| Some(of.trial?.receiver.unique()))),
    ("duplicate_frames", "frames received once more", Whole(|of| Some(of.trial?.receiver.duplicates()))),
    ("reordered_frames", "frames received out of order", Whole(|of| Some(of.trial?.receiver.reordered()))),
    ("latency_min_ns", "least latency of stamped frames, ns", Whole(|of| latency(of, 0.0))),
    ("latency_p50_ns", "median latency, ns", Whole(|of| latency(of, 0.5))),
    ("latency_p99_ns", "99th percentile, ns", Whole(|of| latency(of, 0.99))),
    ("latency_p999_ns", "99.9th percentile, ns", Whole(|of| latency(of, 0.999))),
];

const CELL: [Column; 22] = [
    ("trials", "trials", Whole(|of| Some(of.cell?.trials as u64))),
    ("valid_trials", "trials that are in the figures", Whole(|of| Some(of.cell?.valid_trials as u64))),
    ("offered_fps", "median offered load, frames/s", Real(|of| measured(of).map(|row| row.offered))),
    (
        "received_fps",
        "forwarding rate: median of the valid trials, frames/s",
        Real(|of| Some(measured(of)?.received.median)),
    ),
    ("received_low_fps", "lower end of its 95 % interval, frames/s", Real(|of| of.cell?.received.low)),
    ("received_high_fps", "upper end of its 95 % interval, frames/s", Real(|of| of.cell?.received.high)),
    ("variation", "standard deviation of the rate by its mean", Real(|of| Some(measured(of)?.variation))),
    (
        "loss_ratio",
        "lost frames by sent frames, over all valid trials",
        Real(|of| Some(measured(of)?.loss_ratio)),
    ),
    (
        "dropped_ratio",
        "frames that the DUT dropped by those that reached it",
        Real(|of| Some(measured(of)?.dropped)),
    ),
    (
        "ns_per_frame",
        "time of a frame and CPU, ns",
        Real(|of| Some(measured(of)?.ns_per_frame).filter(|ns| *ns > 0.0)),
    ),
    (
        "limited_by",
        "what limited the rate: dut, tester, offered-load, ...",
        Text(|of| named(&of.cell?.limit)),
    ),
    (
        "tester_ratio",
        "rate by that of the tester alone, paired by block",
        Real(|of| Some(of.cell?.ceiling?.ratio?.median)),
    ),
    (
        "baseline_cell",
        "number of the cell that it is compared with",
        Whole(|of| Some(of.cell?.baseline?.than as u64 + 1)),
    ),
    (
        "baseline_ratio",
        "rate by that cell's, paired by block",
        Real(|of| Some(of.cell?.baseline?.ratio?.median)),
    ),
    ("baseline_low", "lower end of its 95 % interval", Real(|of| of.cell?.baseline?.ratio?.low)),
    ("baseline_high", "upper end of its 95 % interval", Real(|of| of.cell?.baseline?.ratio?.high)),
    (
        "latency_min_ns",
        "least latency of stamped frames, ns",
        Whole(|of| of.cell?.latency_ns.get("min").copied()),
    ),
    ("latency_p50_ns", "median latency, ns", Whole(|of| of.cell?.latency_ns.get("p50").copied())),
    ("latency_p99_ns", "99th percentile, ns", Whole(|of| of.cell?.latency_ns.get("p99").copied())),
    ("latency_p999_ns", "99.9th percentile, ns", Whole(|of| of.cell?.latency_ns.get("p99.9").copied())),
    (
        "delay_variation_ns",
        "99.9th percentile beyond the least of the same trial (RFC 5481), ns",
        Whole(|of| of.cell?.latency_ns.get("pdv").copied()),
    ),
    ("goodput_bps", "payload of TCP, bit/s", Real(|of| Some(of.cell?.tcp.as_ref()?.bits.median))),
];

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.into())
}

/// The name of a value in records.
fn named(value: &impl serde::Serialize) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.as_str()?.into())
}

fn machine(of: &Of<'_>) -> Option<String> {
    let imported = of.campaign.imported.as_ref();
    imported.and_then(|origin| origin.machine.clone()).or_else(|| known(&of.host.cpu_model))
}

fn levels(of: &Of<'_>) -> Option<String> {
    let planned = of.campaign.planned.as_ref()?;
    let labels = planned.experiment.labels(&of.slot.levels);
    let object: serde_json::Map<_, _> =
        labels.map(|(factor, label)| (factor.name.clone(), label.into())).collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

fn latency(of: &Of<'_>, quantile: f64) -> Option<u64> {
    let trial = of.trial?;
    trial.receiver.latency.beyond(trial.clocks.map_or(0, |clocks| clocks.shift_ns)).quantile(quantile)
}

fn measured<'a>(of: &Of<'a>) -> Option<&'a Row> {
    of.cell.filter(|row| row.received.n > 0)
}

/// A file that is being written.
pub struct Archive<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    columns: Vec<Column>,
    waiting: Vec<Waiting>,
    /// Their rows.
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
        let own = if rows == Rows::Trials { Vec::from(TRIAL) } else { Vec::from(CELL) };
        let columns: Vec<Column> = BOTH.into_iter().chain(own).collect();
        let field = |(name, _, values): &Column| {
            let (physical, logical) = match values {
                Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Whole(_) => (Physical::INT64, None),
                Real(_) => (Physical::DOUBLE, None),
                Flag(_) => (Physical::BOOLEAN, None),
                Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
            };
            let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).build()?))
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("linerate").with_fields(fields).build()?;
        let about: serde_json::Map<_, _> =
            columns.iter().map(|(name, about, _)| (name.to_string(), (*about).into())).collect();
        let kind = if rows == Rows::Trials { "trials" } else { "cells" };
        let about = serde_json::Value::Object(about).to_string();
        let entries = [("linerate.schema", VERSION), ("linerate.rows", kind), ("linerate.columns", &about)];
        let entries = entries.map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("linerate ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(Vec::from(entries)))
            .build();
        let file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        let waiting = columns.iter().map(|_| Waiting::default()).collect();
        Ok(Archive { file, rows, columns, waiting, held: 0 })
    }

    /// Adds the rows of a campaign.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(&mut self, folder: &str, records: &Records<'_>) -> Result<()> {
        let Records { campaign, host, summary, trials, .. } = *records;
        let of = |slot: usize| campaign.slots.get(slot);
        match self.rows {
            Rows::Trials => trials.iter().try_for_each(|trial| {
                let Some(slot) = of(trial.slot) else { return Ok(()) };
                self.row(&Of { folder, campaign, host, slot, trial: Some(trial), cell: None })
            }),
            Rows::Cells => summary.rows.iter().try_for_each(|cell| {
                let Some(slot) = of(cell.slot) else { return Ok(()) };
                self.row(&Of { folder, campaign, host, slot, trial: None, cell: Some(cell) })
            }),
        }
    }

    fn row(&mut self, of: &Of<'_>) -> Result<()> {
        for ((_, _, values), waiting) in self.columns.iter().zip(&mut self.waiting) {
            let there = match values {
                Text(f) => f(of).map(|text| waiting.texts.push(text.into_bytes().into())),
                Whole(f) => f(of).and_then(|n| i64::try_from(n).ok()).map(|n| waiting.wholes.push(n)),
                Real(f) => f(of).map(|real| waiting.reals.push(real)),
                Flag(f) => f(of).map(|flag| waiting.flags.push(flag)),
                Time(f) => f(of).map(|seconds| waiting.wholes.push(1000 * seconds)),
            };
            waiting.there.push(there.is_some().into());
        }
        self.held += 1;
        if self.held == GROUP { self.write() } else { Ok(()) }
    }

    /// Writes the rows that are held as a group.
    fn write(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for ((_, _, values), waiting) in self.columns.iter().zip(&mut self.waiting) {
            let Waiting { there, texts, wholes, reals, flags } = std::mem::take(waiting);
            let Some(mut column) = group.next_column()? else { break };
            let there = Some(&there[..]);
            match values {
                Text(_) => column.typed::<ByteArrayType>().write_batch(&texts, there, None)?,
                Whole(_) | Time(_) => column.typed::<Int64Type>().write_batch(&wholes, there, None)?,
                Real(_) => column.typed::<DoubleType>().write_batch(&reals, there, None)?,
                Flag(_) => column.typed::<BoolType>().write_batch(&flags, there, None)?,
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
pub fn columns(rows: Rows) -> Vec<(&'static str, &'static str)> {
    let own: &[Column] = if rows == Rows::Trials { &TRIAL } else { &CELL };
    BOTH.iter().chain(own).map(|(name, about, _)| (*name, *about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use linerate_measure::record::Stopped;
    use linerate_measure::summary::summarise;
    use std::collections::BTreeMap;

    #[test]
    fn many_rows_are_written_in_groups() {
        let slots = vec![Slot { name: "cell".into(), ..Slot::default() }];
        let campaign = Campaign { slots, ..Campaign::default() };
        let trials = vec![TrialRecord { trial: 7, ..TrialRecord::default() }; 1000];
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
        (0..17).for_each(|_| archive.add("folder", &records).unwrap());
        archive.finish().unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let groups: Vec<i64> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [GROUP as i64, 17_000 - GROUP as i64]);
        assert_eq!(
            file.metadata().file_metadata().created_by(),
            Some(concat!("linerate ", env!("CARGO_PKG_VERSION")))
        );
    }
}
