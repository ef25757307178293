//! From trials to a verdict: a row per slot, ratios paired by block, what the limit was, and what to beware of.

use crate::audit::ceiling_is_clear;
use crate::histogram::Histogram;
use crate::plan::results::results;
use crate::record::{Campaign, Mode, Slot, Summary, TrialRecord, VERSION};
use crate::schedule::{Design, Schedule, Stopped};
use crate::stats::{
    Estimate, autocorrelation, coefficient_of_variation, median, median_interval, paired_ratio,
};
use crate::units::{LINK_SPEEDS, SIMPLE_IMIX_AVERAGE, bits_layer_1, bits_layer_2, line_rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a slot came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// Trials whose audit held, and all of them.
    pub valid_trials: usize,
    /// All trials of this slot.
    pub trials: usize,
    /// Median offered load in frames/s.
    pub offered: f64,
    /// Forwarding rate: received frames/s, median over valid trials with its 95 % interval.
    pub received: Estimate,
    /// Lost share of what was sent, over all valid trials together.
    pub loss_ratio: f64,
    /// Bit/s at layer 1 of the forwarding rate.
    pub bits_layer_1: f64,
    /// Bit/s at layer 2.
    pub bits_layer_2: f64,
    /// Nanoseconds per frame and CPU: CPUs of the generator / forwarding rate in inline mode, 1 / rate otherwise.
    pub ns_per_frame: f64,
    /// The same without the tester's own part, where that is known (inline mode with a calibrated ceiling).
    pub dut_ns_per_frame: Option<f64>,
    /// Share of the line rate for this frame length, by link speed.
    pub line_share: BTreeMap<String, f64>,
    /// Share of the line rate for simple IMIX at the same frame rate, by link speed.
    pub line_share_imix: BTreeMap<String, f64>,
    /// What the limit was.
    pub limit: Limit,
    /// CPUs that were at least 95 % busy in the median trial, to the tick: the kernel counts in hundredths of a second.
    pub full_cpus: Vec<u32>,
    /// Latency quantiles in nanoseconds: p50, p99, p99.9 of stamped frames; empty where none arrived.
    pub latency_ns: BTreeMap<String, u64>,
    /// Frames that arrived more than once, and out of order, over valid trials.
    pub duplicates: u64,
    /// See `duplicates`.
    pub reordered: u64,
    /// Losses by place, over valid trials, largest first.
    pub losses: Vec<(String, u64)>,
    /// Drift and noise of this slot, for the warnings.
    pub variation: f64,
}

/// What kept a rate from being higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The tester itself: this is the ceiling that the others are held against.
    Calibration,
    /// The DUT: the tester could have done clearly more.
    Dut,
    /// The tester was too close to its own ceiling: the DUT may be faster.
    Tester,
    /// The rate that was asked for.
    OfferedLoad,
    /// Nothing valid was measured.
    Unknown,
}

/// Two slots held against each other, paired by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The slot in question.
    pub slot: usize,
    /// The slot it is compared with.
    pub with: usize,
    /// Median of the ratios slot / with, with its 95 % interval.
    pub ratio: Estimate,
}

impl Comparison {
    /// Whether the interval excludes "equal".
    pub fn proven_different(&self) -> bool {
        matches!((self.ratio.low, self.ratio.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
    }
}

/// Puts the verdict together. `peak_memory` in bytes.
pub fn summarise(campaign: &Campaign, trials: &[TrialRecord], stopped: Stopped, peak_memory: u64) -> Summary {
    let mut rows: Vec<Row> = campaign.slots.iter().map(|slot| row(campaign, slot, trials)).collect();
    let ceilings: Vec<Estimate> = rows.iter().map(|r| r.received).collect();
    for (row, slot) in rows.iter_mut().zip(&campaign.slots) {
        judge_limit(row, slot, slot.ceiling.map(|c| ceilings[c]), campaign.asked.mode);
    }
    let schedule = replayed(campaign, trials, stopped);
    let comparisons =
        campaign.slots.iter().filter_map(|slot| compare(slot, trials, schedule.as_ref())).collect();
    let seconds = trials.iter().map(|t| t.began_ns + t.timing.load_ns()).max().unwrap_or(0) as f64 / 1e9;
    let load: u64 = trials.iter().map(|t| t.timing.load_ns()).sum();
    let mut summary = Summary {
        version: VERSION,
        stopped,
        seconds,
        load_share: if seconds > 0.0 { load as f64 / 1e9 / seconds } else { 0.0 },
        peak_memory,
        rows,
        comparisons,
        warnings: Vec::new(),
        results: None,
    };
    summary.results = campaign.planned.as_deref().map(|planned| {
        let ratio = |of: usize, than: usize| ratio(of, than, trials, schedule.as_ref());
        Box::new(results(planned, &summary.rows, trials, &ratio))
    });
    summary.warnings = warnings(campaign, trials, &summary);
    summary
}

fn row(campaign: &Campaign, slot: &Slot, trials: &[TrialRecord]) -> Row {
    let all: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
    let valid: Vec<&TrialRecord> = all.iter().copied().filter(|t| t.audit.valid).collect();
    let received: Vec<f64> = valid.iter().filter_map(|t| Some(t.rates?.received)).collect();
    let offered: Vec<f64> = valid.iter().filter_map(|t| Some(t.rates?.offered)).collect();
    let nothing = Estimate { median: 0.0, low: None, high: None, n: 0 };
    let rate = median_interval(&received, 0.95).unwrap_or(nothing);
    let length = slot.average_len_fcs();
    let generator = slot.cpus.as_ref().unwrap_or(&campaign.roles.generator);
    let cpus = if campaign.asked.mode == Mode::Inline { generator.len() } else { 1 };
    let sent: u64 = valid.iter().map(|t| t.generator.frames).sum();
    let lost: u64 = valid.iter().map(|t| t.generator.frames.saturating_sub(t.receiver.unique())).sum();
    let mut latency = Histogram::default();
    valid.iter().for_each(|t| latency.merge(&t.receiver.latency));
    Row {
        slot: slot.id,
        valid_trials: valid.len(),
        trials: all.len(),
        offered: median(&offered).unwrap_or(0.0),
        received: rate,
        loss_ratio: if sent > 0 { lost as f64 / sent as f64 } else { 0.0 },
        bits_layer_1: bits_layer_1(rate.median, length),
        bits_layer_2: bits_layer_2(rate.median, length),
        ns_per_frame: if rate.median > 0.0 { cpus as f64 * 1e9 / rate.median } else { 0.0 },
        dut_ns_per_frame: None,
        line_share: line_shares(rate.median, length),
        line_share_imix: line_shares(rate.median, SIMPLE_IMIX_AVERAGE),
        limit: Limit::Unknown,
        full_cpus: full_cpus(&valid),
        latency_ns: quantiles(&latency),
        duplicates: valid.iter().map(|t| t.receiver.duplicates()).sum(),
        reordered: valid.iter().map(|t| t.receiver.reordered()).sum(),
        losses: losses_by_place(&valid),
        variation: coefficient_of_variation(&received),
    }
}

fn line_shares(fps: f64, length: f64) -> BTreeMap<String, f64> {
    LINK_SPEEDS.iter().map(|(name, bits)| (name.to_string(), fps / line_rate(*bits, length))).collect()
}

fn full_cpus(trials: &[&TrialRecord]) -> Vec<u32> {
    let mut by_cpu: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for share in trials.iter().flat_map(|t| &t.cpus) {
        by_cpu.entry(share.cpu).or_default().push(share.busy);
    }
    by_cpu.into_iter().filter(|(_, busy)| median(busy) >= Some(0.95)).map(|(cpu, _)| cpu).collect()
}

fn quantiles(latency: &Histogram) -> BTreeMap<String, u64> {
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
        .iter()
        .filter_map(|(name, q)| Some((name.to_string(), latency.quantile(*q)?)))
        .collect()
}

fn losses_by_place(trials: &[&TrialRecord]) -> Vec<(String, u64)> {
    let mut by_place: BTreeMap<&str, u64> = BTreeMap::new();
    for loss in trials.iter().flat_map(|t| &t.losses) {
        *by_place.entry(&loss.place).or_default() += loss.frames;
    }
    let mut losses: Vec<(String, u64)> = by_place.into_iter().map(|(p, n)| (p.to_string(), n)).collect();
    losses.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    losses
}

/// The share of lost frames below which a DUT counts as not overloaded.
const LOSSLESS: f64 = 0.001;

fn judge_limit(row: &mut Row, slot: &Slot, ceiling: Option<Estimate>, mode: Mode) {
    let paced = slot.asked_fps.is_some_and(|asked| row.offered >= asked * 0.995 && row.loss_ratio < LOSSLESS);
    row.limit = match ceiling {
        // Nobody knows what the tester of an imported slot could do.
        _ if row.valid_trials == 0 || slot.imported.is_some() => Limit::Unknown,
        _ if paced => Limit::OfferedLoad,
        // Hosts of their own: what was offered and got lost in the DUT was more than it can do. A DUT that lost nothing may do more.
        None if slot.no_ceiling && row.loss_ratio >= LOSSLESS => Limit::Dut,
        None if slot.no_ceiling => Limit::Tester,
        None => Limit::Calibration,
        Some(c) => {
            let (low, high) = (c.low.unwrap_or(c.median), row.received.high.unwrap_or(row.received.median));
            if c.n > 0 && ceiling_is_clear(low, high) { Limit::Dut } else { Limit::Tester }
        }
    };
    if let (Some(c), Mode::Inline, true) = (ceiling, mode, slot.asked_fps.is_none()) {
        let tester = row.ns_per_frame * row.received.median / c.median;
        row.dut_ns_per_frame =
            (c.median > 0.0 && row.received.median > 0.0).then_some(row.ns_per_frame - tester);
    }
}

/// The schedule at the end of the campaign, whose intervals allow for having been looked at before. `None` where another one chose
/// the trials: in imported records, and those of older versions.
fn replayed(campaign: &Campaign, trials: &[TrialRecord], stopped: Stopped) -> Option<Schedule> {
    if campaign.imported.is_some() {
        return None;
    }
    let mut schedule = Schedule::replay(Design::of(campaign), trials).ok()?;
    schedule.finish(stopped);
    Some(schedule)
}

fn compare(slot: &Slot, trials: &[TrialRecord], schedule: Option<&Schedule>) -> Option<Comparison> {
    let with = slot.baseline?;
    Some(Comparison { slot: slot.id, with, ratio: ratio(slot.id, with, trials, schedule)? })
}

/// The ratio of two slots' rates by the schedule, or of all blocks that have both where there is none.
fn ratio(of: usize, than: usize, trials: &[TrialRecord], schedule: Option<&Schedule>) -> Option<Estimate> {
    if let Some(schedule) = schedule {
        return schedule.ratio(of, than);
    }
    let rate = |t: &TrialRecord| t.audit.valid.then_some(t.rates?.received);
    let mut blocks: BTreeMap<u32, (Option<f64>, Option<f64>)> = BTreeMap::new();
    for trial in trials {
        let entry = blocks.entry(trial.block).or_default();
        if trial.slot == of {
            entry.0 = rate(trial);
        } else if trial.slot == than {
            entry.1 = rate(trial);
        }
    }
    let pairs: Vec<(f64, f64)> = blocks.into_values().filter_map(|(a, b)| Some((a?, b?))).collect();
    paired_ratio(&pairs, 0.95)
}

fn warnings(campaign: &Campaign, trials: &[TrialRecord], summary: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    for (row, slot) in summary.rows.iter().zip(&campaign.slots) {
        // A plan gives each of its cells a name of its own.
        let name = if campaign.planned.is_some() { slot.variant.clone() } else { slot.title() };
        out.extend(slot_warnings(&name, row, slot, trials));
    }
    out.extend(other_programs(campaign, trials));
    let steal = median(&trials.iter().flat_map(|t| &t.cpus).map(|c| c.steal).collect::<Vec<_>>());
    if steal >= Some(0.01) {
        let percent = 100.0 * steal.unwrap_or(0.0);
        out.push(format!(
            "the hypervisor took {percent:.1} % of the CPUs' time (steal): absolute rates are too low"
        ));
    }
    out
}

/// XDP does its work inside the kernel: user time on the lab's CPUs is that of other programs, and it is charged to the DUT.
fn other_programs(campaign: &Campaign, trials: &[TrialRecord]) -> Option<String> {
    const NOTICEABLE: f64 = 0.04;
    if campaign.asked.receiver != "xdp" {
        return None;
    }
    let roles = &campaign.roles;
    let ours = |cpu: &u32| [&roles.generator, &roles.dut, &roles.receiver].iter().any(|r| r.contains(cpu));
    let of = |t: &TrialRecord| t.cpus.iter().filter(|c| ours(&c.cpu)).map(|c| c.user).fold(0.0, f64::max);
    let user = trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64;
    (user >= NOTICEABLE).then(|| {
        format!(
            "other programs used {:.0} % of a CPU that the lab was working on: rates are too low and losses too high; stop them, or give the lab other CPUs with --cpus",
            100.0 * user
        )
    })
}

fn slot_warnings(title: &str, row: &Row, slot: &Slot, trials: &[TrialRecord]) -> Vec<String> {
    let mut out = Vec::new();
    let invalid = row.trials - row.valid_trials;
    if invalid > 0 && slot.imported.is_some() {
        let first = trials.iter().find(|t| t.slot == slot.id && !t.audit.valid);
        let why = first.and_then(|t| t.audit.checks.first()).map_or("", |c| &c.found);
        out.push(format!("{title}: {invalid} of {} runs have no figure (the first: {why})", row.trials));
    } else if invalid > 0 {
        let of_slot = trials.iter().filter(|t| t.slot == slot.id);
        let why = of_slot.flat_map(|t| t.audit.failures()).next().unwrap_or_default();
        out.push(format!(
            "{title}: {invalid} of {} trials failed their audit and are not in the verdict (the first: {why})",
            row.trials
        ));
    }
    if row.limit == Limit::Tester && slot.no_ceiling {
        out.push(format!("{title}: the DUT lost nothing of what it was offered; it may be faster than this"));
    } else if row.limit == Limit::Tester {
        out.push(format!(
            "{title}: too close to what the tester can do without a DUT; the DUT may be faster than this"
        ));
    }
    if row.received.low.is_none() && row.valid_trials > 0 && slot.imported.is_none() {
        out.push(format!(
            "{title}: {} valid trials are too few for a 95 % interval (6 are needed)",
            row.valid_trials
        ));
    }
    let series: Vec<f64> = trials
        .iter()
        .filter(|t| t.slot == slot.id && t.audit.valid)
        .filter_map(|t| Some(t.rates?.received))
        .collect();
    if series.len() >= 8 && autocorrelation(&series) > 0.5 && row.variation > 0.05 {
        out.push(format!(
            "{title}: the machine's speed drifted between trials (variation {:.0} %): trust the ratios, which are paired, more than the absolute rates",
            100.0 * row.variation
        ));
    }
    if row.duplicates > 0 {
        out.push(format!("{title}: {} frames arrived more than once", row.duplicates));
    }
    out
}

#[cfg(test)]
mod tests;
