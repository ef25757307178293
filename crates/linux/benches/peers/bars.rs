//! Bars and whether they were met; the tables and the JSON.

use crate::Failure;
use crate::blocks::Series;
use crate::options::Options;
use linerate_stats::Estimate;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The demand of a bar on the median.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// More than this.
    Above(f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// Shown only.
    Nothing,
}

impl Wanted {
    fn met(self, value: f64) -> Option<bool> {
        match self {
            Wanted::Above(bar) => Some(value > bar),
            Wanted::AtLeast(bar) => Some(value >= bar),
            Wanted::AtMost(bar) => Some(value <= bar),
            Wanted::Below(bar) => Some(value < bar),
            Wanted::Nothing => None,
        }
    }

    fn show(self, unit: &str) -> String {
        match self {
            Wanted::Above(bar) => format!("> {bar}{unit}"),
            Wanted::AtLeast(bar) => format!(">= {bar}{unit}"),
            Wanted::AtMost(bar) => format!("<= {bar}{unit}"),
            Wanted::Below(bar) => format!("< {bar}{unit}"),
            Wanted::Nothing => "-".into(),
        }
    }
}

/// One bar with what was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    /// Name of the comparison.
    pub name: String,
    /// Demand on the median.
    pub wanted: Wanted,
    /// Unit of the values, with a space in front where one belongs there.
    pub unit: &'static str,
    /// The median, its interval, and the number of blocks.
    pub measured: Option<Estimate>,
    /// Why nothing was measured.
    pub missing: Option<String>,
    /// Whether it was met; null where it could not be measured, or nothing is asked.
    pub met: Option<bool>,
}

impl Bar {
    fn cells(&self) -> [String; 5] {
        let met = match (self.met, &self.missing) {
            (Some(true), _) => "yes".into(),
            (Some(false), _) => "NO".into(),
            (None, Some(reason)) => reason.clone(),
            (None, None) => "-".into(),
        };
        let n = self.measured.map_or(0, |e| e.n).to_string();
        let measured = self
            .measured
            .map_or("-".into(), |e| estimate(&e, self.unit));
        [
            self.name.clone(),
            self.wanted.show(self.unit),
            measured,
            n,
            met,
        ]
    }
}

fn estimate(e: &Estimate, unit: &str) -> String {
    match (e.low, e.high) {
        (Some(low), Some(high)) => {
            format!(
                "{}{unit} [{}, {}]",
                number(e.median),
                number(low),
                number(high)
            )
        }
        _ => format!("{}{unit}", number(e.median)),
    }
}

/// Three significant digits or so.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

/// Everything that a run has found.
#[derive(Debug, Serialize)]
pub struct Report {
    kernel: String,
    cpus: usize,
    seed: u64,
    quick: bool,
    receiver: &'static str,
    series: Vec<Series>,
    bars: Vec<Bar>,
    not_run: Vec<(String, String)>,
}

/// Which receiver, because socket generators pay for it: see packet-io.md.
const RECEIVER: &str = "XDP program that counts all UDP frames and drops (socket generators pay for a conversion of their \
                        buffers at any XDP receiver); for iperf3 and hping3 the same program on a link with addresses, \
                        attached once the load had begun";

impl Report {
    /// An empty one.
    pub fn new(options: &Options) -> Report {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Report {
            kernel: kernel.trim().into(),
            cpus,
            seed: options.seed,
            quick: options.quick,
            receiver: RECEIVER,
            series: Vec::new(),
            bars: Vec::new(),
            not_run: Vec::new(),
        }
    }

    /// Adds a bar that was measured, or could not be.
    pub fn bar(
        &mut self,
        name: String,
        wanted: Wanted,
        unit: &'static str,
        measured: Result<Estimate, String>,
    ) {
        let (measured, missing) =
            measured.map_or_else(|reason| (None, Some(reason)), |e| (Some(e), None));
        let met = measured.and_then(|e| wanted.met(e.median));
        self.bars.push(Bar {
            name,
            wanted,
            unit,
            measured,
            missing,
            met,
        });
    }

    /// Adds a peer that did not run.
    pub fn not_run(&mut self, name: String, reason: String) {
        self.not_run.push((name, reason));
    }

    /// Adds raw rates.
    pub fn series(&mut self, series: Vec<Series>) {
        self.series.extend(series);
    }

    /// Whether none of the bars that could be measured was missed.
    pub fn all_met(&self) -> bool {
        self.bars.iter().all(|b| b.met != Some(false))
    }

    /// Prints the tables and writes the JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, options: &Options) -> Result<(), Failure> {
        let text = self.text()?;
        match &options.json {
            Some(path) if path == Path::new("-") => {
                eprint!("{text}");
                println!("{}", serde_json::to_string_pretty(self)?);
            }
            Some(path) => {
                print!("{text}");
                std::fs::write(path, serde_json::to_string_pretty(self)?)
                    .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
            }
            None => print!("{text}"),
        }
        Ok(())
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        writeln!(
            out,
            "Linux {}, {} CPUs, seed {}",
            self.kernel, self.cpus, self.seed
        )?;
        writeln!(
            out,
            "64-byte frames, 2,000 flows, one sending thread where no other number is given"
        )?;
        writeln!(out, "receiver: {}\n", self.receiver)?;
        let mut rows =
            vec![["contest", "contestant", "Mpps (median)", "range", "blocks"].map(String::from)];
        rows.extend(self.series.iter().map(series_cells));
        table(&mut out, &rows);
        if !self.not_run.is_empty() {
            writeln!(out, "\npeers that did not run:")?;
        }
        for (name, reason) in &self.not_run {
            writeln!(out, "  {name}: {reason}")?;
        }
        writeln!(out)?;
        let mut rows =
            vec![["bar", "wanted", "measured [95 %]", "blocks", "met"].map(String::from)];
        rows.extend(self.bars.iter().map(Bar::cells));
        table(&mut out, &rows);
        Ok(out)
    }
}

fn series_cells(series: &Series) -> [String; 5] {
    let rates: Vec<f64> = series.rates.iter().flatten().map(|r| r / 1e6).collect();
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    let median = series
        .median()
        .map_or("-".into(), |m| format!("{:.3}", m / 1e6));
    let range = if rates.is_empty() {
        "-".into()
    } else {
        format!("{low:.3}-{high:.3}")
    };
    [
        series.contest.clone(),
        series.name.clone(),
        median,
        range,
        rates.len().to_string(),
    ]
}

/// Columns as wide as their widest cell, two spaces apart.
fn table(out: &mut String, rows: &[[String; 5]]) {
    let width = |column: usize| {
        rows.iter()
            .map(|r| r[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, w)| format!("{cell:<w$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
}
