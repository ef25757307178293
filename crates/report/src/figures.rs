//! The catalogue of figures: the name of each, its unit, its place in the records and its meaning stand here alone. Parquet has all
//! of them, Prometheus some; tests hold the documents against it.

mod known;
mod of;

use crate::prelude::*;
pub use known::all_facts;
use linerate_import::netbenches::facts;
pub use of::Of;
use of::{count_of, fact, known, levels, machine, origin, positive, source, time};
use serde_json::Value;

/// The unit of a figure, which each form names in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Text,
    /// Yes or no.
    Flag,
    /// Milliseconds since 1970.
    Time,
    /// A number of things.
    Count,
    /// The number of a cell, from 1; records count slots from 0.
    Cell,
    Nanoseconds,
    FramesPerSecond,
    BitsPerSecond,
    /// A ratio, or a number whose name says its unit.
    Plain,
}

impl Unit {
    /// The ends of a column's name in archives, of its meaning, and of a metric's name.
    fn ends(self) -> [&'static str; 3] {
        match self {
            Unit::Nanoseconds => ["_ns", ", ns", "_seconds"],
            Unit::FramesPerSecond => ["_fps", ", frames/s", "_frames_per_second"],
            Unit::BitsPerSecond => ["_bps", ", bit/s", "_bits_per_second"],
            _ => [""; 3],
        }
    }
}

/// A figure.
#[derive(Debug)]
pub struct Figure {
    /// The name, without the unit.
    pub name: &'static str,
    pub unit: Unit,
    /// The meaning, without the unit.
    about: &'static str,
    pub source: Source,
}

/// Where a figure comes from; there is no value where it is not known, or does not apply.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A place in a row of the summary.
    Row(&'static str),
    /// A function of the records.
    Found(fn(&Of<'_>) -> Option<Value>),
}

impl Figure {
    /// Name and meaning in archives.
    pub fn column(&self) -> (String, String) {
        let [name, about, _] = self.unit.ends();
        (
            format!("{}{name}", self.name),
            format!("{}{about}", self.about),
        )
    }

    /// Name and meaning among metrics.
    pub fn metric(&self) -> (String, String) {
        let (first, rest) = self.about.split_at(1);
        (
            format!("{}{}", self.name, self.unit.ends()[2]),
            format!("{}{rest}.", first.to_uppercase()),
        )
    }

    pub fn value(&self, of: &Of<'_>) -> Option<Value> {
        let place = match self.source {
            Source::Found(found) => return found(of),
            Source::Row(place) => place,
        };
        // Without a rate, a row has zeros.
        if matches!(self.unit, Unit::FramesPerSecond | Unit::Plain) {
            of.measured()?;
        }
        let value = of
            .cell
            .as_ref()?
            .1
            .pointer(place)
            .filter(|value| !value.is_null())?;
        match self.unit {
            Unit::Cell => Some((value.as_u64()? + 1).into()),
            _ => Some(value.clone()),
        }
    }

    /// The number in the unit of a metric: times are in seconds.
    pub fn measured(&self, of: &Of<'_>) -> Option<f64> {
        let value = self.value(of)?.as_f64()?;
        Some(if self.unit == Unit::Nanoseconds {
            value / 1e9
        } else {
            value
        })
    }
}

use Unit::{BitsPerSecond, Cell, Count, Flag, FramesPerSecond, Nanoseconds, Plain, Text, Time};

type Words = &'static str;

const fn found(name: Words, unit: Unit, about: Words, of: fn(&Of<'_>) -> Option<Value>) -> Figure {
    Figure {
        name,
        unit,
        about,
        source: Source::Found(of),
    }
}

const fn row(name: Words, unit: Unit, about: Words, place: Words) -> Figure {
    Figure {
        name,
        unit,
        about,
        source: Source::Row(place),
    }
}

/// Version of the columns. A later one may add columns; the number rises when a column changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// Figures of a campaign.
pub static CAMPAIGN: [Figure; 11] = [
    found("schema", Count, "version of the columns", |_| {
        Some(SCHEMA.into())
    }),
    found(
        "id",
        Text,
        "the campaign among all: made of its name, time, cells and first trial",
        |of| known(of.id),
    ),
    found(
        "folder",
        Text,
        "folder of the campaign below the one that was exported; its path where several were",
        |of| Some(of.folder.into()),
    ),
    found("campaign", Text, "name of the campaign", |of| {
        Some(of.campaign.name.as_str().into())
    }),
    found("started", Time, "when the campaign began, UTC", |of| {
        time(&of.campaign.started)
    }),
    found(
        "testbed",
        Text,
        "where trials ran: namespaces, hosts, simulated, imported",
        |of| Some(of.campaign.asked.lab.to_string().into()),
    ),
    found(
        "machine",
        Text,
        "the DUT's machine: as its owner names it, or the model of its CPU",
        machine,
    ),
    found(
        "card",
        Text,
        "network card of an imported campaign, as its owner names it",
        |of| origin(of, |of| &of.card),
    ),
    found("topic", Text, "subject of an imported campaign", |of| {
        origin(of, |of| &of.topic)
    }),
    found(
        "label",
        Text,
        "name of an imported campaign's series",
        |of| origin(of, |of| &of.label),
    ),
    found("linerate", Text, "version that wrote the records", |of| {
        Some(of.campaign.linerate.as_str().into())
    }),
];

/// Figures that the trials and the row of a cell have in common.
pub static COMMON: [Figure; 16] = [
    found(
        "kernel",
        Text,
        "kernel of the machine that ran linerate; of an imported set, that of the DUT",
        |of| match of.campaign.imported {
            Some(_) => fact(of, facts::UNAME).map(Value::from),
            None => known(&of.host.kernel),
        },
    ),
    found(
        "revision",
        Text,
        "source revision of an imported set's kernel, as uname has it",
        |of| fact(of, facts::REVISION).map(Value::from),
    ),
    found(
        "built",
        Time,
        "when an imported set's kernel was built, UTC, as uname has it",
        |of| time(fact(of, facts::BUILT_UTC)?),
    ),
    found(
        "cell",
        Count,
        "number of the cell in its campaign, from 1 as on pages",
        |of| Some((of.slot.id as u64 + 1).into()),
    ),
    found(
        "name",
        Text,
        "name of the cell, unique in its campaign",
        |of| Some(of.slot.name.as_str().into()),
    ),
    found("variant", Text, "variant without levels", |of| {
        known(&of.slot.plan_variant).or(known(&of.slot.variant))
    }),
    found(
        "levels",
        Text,
        "levels of the plan's factors, as a JSON object",
        levels,
    ),
    found("family", Text, "IPv4 or IPv6", |of| known(&of.slot.family)),
    found("transport", Text, "UDP, TCP or ICMP echo", |of| {
        known(&of.slot.transport)
    }),
    found(
        "frame",
        Text,
        "frame length as it was asked for: 64, IMIX",
        |of| known(&of.slot.frame),
    ),
    found(
        "frame_bytes",
        Plain,
        "mean frame length with FCS, bytes",
        |of| positive(of.slot.average_len_fcs()),
    ),
    found(
        "direction",
        Text,
        "forward, reverse or both: then figures are of both together",
        |of| Some(of.slot.direction.to_string().into()),
    ),
    found("flows", Count, "flows", |of| {
        of.slot
            .flows
            .or(Some(of.campaign.asked.flows))
            .filter(|n| *n > 0)
            .map(Value::from)
    }),
    found(
        "asked",
        FramesPerSecond,
        "load asked for in each direction; none: as much as possible",
        |of| {
            of.trial
                .map_or(of.slot.asked_fps, |t| t.asked_fps)
                .map(Value::from)
        },
    ),
    found("tester_alone", Flag, "whether there was no DUT", |of| {
        Some(of.slot.is_calibration().into())
    }),
    found("source", Text, "file of an imported figure", source),
];

/// A fact of a campaign or of a cell.
pub static FACT: [Figure; 3] = [
    found(
        "cell",
        Count,
        "number of the cell whose fact it is; none: the whole campaign's",
        |of| Some((of.fact?.cell? as u64 + 1).into()),
    ),
    found("fact", Text, "what is known", |of| known(&of.fact?.name)),
    found(
        "value",
        Text,
        "as the system, the driver or the tool has it",
        |of| known(&of.fact?.value),
    ),
];

/// Figures of trials.
pub static TRIAL: [Figure; 19] = [
    found(
        "trial",
        Count,
        "number of the trial in its campaign, from 0",
        |of| Some(of.trial?.trial.into()),
    ),
    found(
        "block",
        Count,
        "block of the trial: trials of one block ran side by side",
        |of| Some(of.trial?.block.into()),
    ),
    found(
        "valid",
        Flag,
        "whether the audit held: the others are in no result",
        |of| Some(of.trial?.audit.valid.into()),
    ),
    found(
        "invalid_because",
        Text,
        "the first check that failed",
        |of| of.trial?.audit.failures().next().map(Value::from),
    ),
    found(
        "test",
        Text,
        "test of RFC 2544 that it belongs to, or stability, before a search",
        |of| serde_json::to_value(of.trial?.benchmark?).ok(),
    ),
    found(
        "began",
        Nanoseconds,
        "beginning, since the campaign's first trial",
        |of| count_of(of, |trial| trial.began_ns),
    ),
    found(
        "took",
        Nanoseconds,
        "how long it took with set-up and drain",
        |of| {
            Some(of.trial?.took_ns)
                .filter(|ns| *ns > 0)
                .map(Value::from)
        },
    ),
    found("load", Nanoseconds, "how long the load lasted", |of| {
        count_of(of, |trial| trial.timing.load_ns())
    }),
    found(
        "offered",
        FramesPerSecond,
        "offered load as measured",
        |of| positive(of.trial?.rates?.offered),
    ),
    found(
        "received",
        FramesPerSecond,
        "forwarding rate as measured",
        |of| Some(of.trial?.rates?.received.into()),
    ),
    found("loss_ratio", Plain, "lost frames by sent frames", |of| {
        let trial = of.trial?;
        let is_offered = trial.rates.is_some_and(|rates| rates.offered > 0.0);
        (trial.generator.frames > 0 || is_offered).then(|| trial.loss_ratio.into())
    }),
    found("sent_frames", Count, "frames sent", |of| {
        count_of(of, |trial| trial.generator.frames)
    }),
    found(
        "received_frames",
        Count,
        "frames received at least once",
        |of| count_of(of, |trial| trial.receiver.unique()),
    ),
    found(
        "duplicate_frames",
        Count,
        "frames received once more",
        |of| count_of(of, |trial| trial.receiver.duplicates()),
    ),
    found(
        "reordered_frames",
        Count,
        "frames received out of order",
        |of| count_of(of, |trial| trial.receiver.reordered()),
    ),
    found(
        "latency_min",
        Nanoseconds,
        "least latency of stamped frames",
        |of| of.latency(0.0),
    ),
    found("latency_p50", Nanoseconds, "median latency", |of| {
        of.latency(0.5)
    }),
    found("latency_p99", Nanoseconds, "99th percentile", |of| {
        of.latency(0.99)
    }),
    found("latency_p999", Nanoseconds, "99.9th percentile", |of| {
        of.latency(0.999)
    }),
];

/// Figures of cells.
pub static CELL: [Figure; 23] = [
    row("trials", Count, "trials of the cell", "/trials"),
    row(
        "valid_trials",
        Count,
        "trials that are in the figures",
        "/valid_trials",
    ),
    found("offered", FramesPerSecond, "median offered load", |of| {
        positive(of.measured()?.offered)
    }),
    row(
        "received",
        FramesPerSecond,
        "forwarding rate: the median of the valid trials",
        "/received/median",
    ),
    row(
        "received_low",
        FramesPerSecond,
        "lower end of its 95 % interval",
        "/received/low",
    ),
    row(
        "received_high",
        FramesPerSecond,
        "upper end of its 95 % interval",
        "/received/high",
    ),
    row(
        "variation",
        Plain,
        "standard deviation of the rate by its mean",
        "/variation",
    ),
    found(
        "loss_ratio",
        Plain,
        "lost frames by sent frames, over all valid trials",
        |of| {
            let row = of.measured().filter(|row| row.offered > 0.0)?;
            Some(row.loss_ratio.into())
        },
    ),
    found(
        "dropped_ratio",
        Plain,
        "frames that the DUT dropped by those that reached it; only in namespaces",
        |of| {
            let counts = !matches!(of.campaign.asked.lab, LabKind::Hosts | LabKind::Imported);
            counts.then_some(of.measured()?.dropped.into())
        },
    ),
    found("ns_per_frame", Plain, "time of a frame and CPU, ns", |of| {
        let own = of.measured().filter(|_| of.campaign.imported.is_none())?;
        positive(own.ns_per_frame)
    }),
    found(
        "limited_by",
        Text,
        "what limited the rate: dut, tester, offered-load, ...",
        |of| {
            let limit = Some(of.measured()?.limit).filter(|limit| *limit != Limit::Unknown)?;
            serde_json::to_value(limit).ok()
        },
    ),
    row(
        "tester_ratio",
        Plain,
        "rate by that of the tester alone, paired by block",
        "/ceiling/ratio/median",
    ),
    row(
        "baseline_cell",
        Cell,
        "number of the cell that it is compared with",
        "/baseline/than",
    ),
    row(
        "baseline_ratio",
        Plain,
        "rate by that cell's, paired by block",
        "/baseline/ratio/median",
    ),
    row(
        "baseline_low",
        Plain,
        "lower end of its 95 % interval",
        "/baseline/ratio/low",
    ),
    row(
        "baseline_high",
        Plain,
        "upper end of its 95 % interval",
        "/baseline/ratio/high",
    ),
    row(
        "latency_min",
        Nanoseconds,
        "least latency of stamped frames",
        "/latency_ns/min",
    ),
    row(
        "latency_p50",
        Nanoseconds,
        "median latency",
        "/latency_ns/p50",
    ),
    row(
        "latency_p99",
        Nanoseconds,
        "99th percentile",
        "/latency_ns/p99",
    ),
    row(
        "latency_p999",
        Nanoseconds,
        "99.9th percentile",
        "/latency_ns/p99.9",
    ),
    found(
        "open",
        Count,
        "connections held open at the same time: the fewest of the valid trials",
        |of| Some(of.measured()?.kept.as_ref()?.open[0].into()),
    ),
    row(
        "delay_variation",
        Nanoseconds,
        "latency beyond the least of the same trial, 99.9th percentile (RFC 5481, PDV)",
        "/latency_ns/pdv",
    ),
    row(
        "goodput",
        BitsPerSecond,
        "payload that TCP carried: the median of the valid trials",
        "/tcp/bits/median",
    ),
];

#[cfg(test)]
mod tests;
