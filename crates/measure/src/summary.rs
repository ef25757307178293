//! From trials to a verdict: a row per slot, ratios paired by block, the limits, and warnings.

mod benchmarks;
mod lacking;
mod machine;
mod senders;
mod stability;
mod throughputs;
mod warnings;

pub use machine::{FORWARDS, NOTICEABLE, of_others};
pub use senders::{Holder, Sending, beside as programs_beside};

use crate::audit::{Cause, Loss, Side, ceiling_is_clear};
use crate::experiment::Benchmark;
use crate::goodput::{fills, goodput};
use crate::record::{
    Asked, Campaign, Direction, DirectionRow, FloodRow, HttpRow, KeptRow, LabKind, Limit, Mode,
    Row, Searched, Slot, Stopped, Summary, TrialRecord, VERSION, answer_times,
};
use crate::results::{self, Ratios};
use crate::trial::Rates;
use linerate_stats::histogram::Histogram;
use linerate_stats::{Estimate, coefficient_of_variation, median, median_interval};
use linerate_wire::units::{
    LINK_SPEEDS, SIMPLE_IMIX_AVERAGE, bits_layer_1, bits_layer_2, line_rate,
};
use std::collections::BTreeMap;

/// Below this share of dropped frames, the rate alone decides.
const NOTICEABLE_DROPS: f64 = 0.01;

impl TrialRecord {
    /// Frames that the DUT handled and then dropped: by a rule, or for a reason of the kernel. Frames that found a queue full are not
    /// counted, for the DUT did no work for them, nor broadcast frames.
    pub fn dropped(&self) -> u64 {
        let work = |cause| matches!(cause, Cause::Dropped | Cause::Unexplained);
        let by_dut = self
            .losses
            .iter()
            .filter(|l| l.side == Side::Dut && work(l.cause));
        by_dut.map(|l| l.frames).sum()
    }

    /// Frames/s that the DUT handled: forwarded and dropped ones.
    pub fn handled(&self) -> Option<f64> {
        let Rates {
            offered, received, ..
        } = self.rates?;
        let dropped = self.dropped() as f64;
        Some(match self.receiver.unique() {
            0 if self.generator.frames > 0 => offered * dropped / self.generator.frames as f64,
            0 => 0.0,
            once => received * (1.0 + dropped / once as f64),
        })
    }
}

/// Whether this share of dropped frames is so large that the rate does not show the cost of a frame.
pub(crate) fn is_noticeable(dropped: f64) -> bool {
    dropped >= NOTICEABLE_DROPS
}

impl Row {
    /// Whether the DUT drops too many frames for its rate to show the cost of a frame.
    pub fn drops(&self) -> bool {
        is_noticeable(self.dropped)
    }

    /// The share of the load that found the DUT's queues full, over valid trials: what was offered above its rate.
    pub fn overload(&self) -> f64 {
        let frames = |of: fn(&Loss) -> bool| -> u64 {
            let losses = self.losses.iter().filter(|loss| of(loss));
            losses.map(|loss| loss.frames).sum()
        };
        let refused = frames(|loss| loss.side == Side::Dut && loss.cause == Cause::QueueFull);
        let lost = frames(|loss| loss.cause != Cause::NotForwarded);
        self.loss_ratio * refused as f64 / lost.max(1) as f64
    }
}

/// The DUT's dropped frames by the frames that it handled. 0 in a lab of hosts, where the same counters also count overload.
pub(crate) fn dropped_share(campaign: &Campaign, valid: &[&TrialRecord]) -> f64 {
    let dropped: u64 = valid.iter().map(|t| t.dropped()).sum();
    let once: u64 = valid.iter().map(|t| t.receiver.unique()).sum();
    if campaign.asked.mode == Mode::Hosts || dropped == 0 {
        return 0.0;
    }
    dropped as f64 / (dropped + once) as f64
}

/// The loss ratio: lost frames by sent frames. Of imported trials, whose frames were not counted, the rates that are known give it.
pub(crate) fn lost_share(valid: &[&TrialRecord]) -> f64 {
    let counted = |t: &&TrialRecord| (t.generator.frames, t.receiver.unique());
    let frames = valid.iter().map(counted);
    let (sent, lost) = frames.fold((0, 0), |(all, lost), (sent, arrived)| {
        (all + sent, lost + sent.saturating_sub(arrived))
    });
    if sent > 0 {
        return lost as f64 / sent as f64;
    }
    let rates = valid.iter().filter_map(|t| t.rates);
    let (sent, lost) =
        rates
            .filter(|rates| rates.offered > 0.0)
            .fold((0.0, 0.0), |(all, lost), rates| {
                (
                    all + rates.offered,
                    lost + (rates.offered - rates.received).max(0.0),
                )
            });
    if sent > 0.0 { lost / sent } else { 0.0 }
}

/// Puts the verdict together. `peak_memory` in bytes.
pub fn summarise(
    campaign: &Campaign,
    trials: &[TrialRecord],
    stopped: Stopped,
    peak_memory: u64,
) -> Summary {
    let ratios = Ratios::new(campaign, trials, stopped);
    let mut searches = ratios.searches();
    stability::count(&mut searches, trials);
    let row = |slot: &Slot| {
        let load = searches
            .iter()
            .find(|search| search.slot == slot.id)
            .map(Searched::throughput);
        row(campaign, slot, trials, |trial| match load {
            // The loads of a search differ: its rate is the one at the throughput.
            Some(load) => {
                trial.asked_fps == load
                    && load.is_some()
                    && trial
                        .benchmark
                        .is_none_or(|test| test == Benchmark::Throughput)
            }
            None => searches.is_empty() || trial.asked_fps.is_none(),
        })
    };
    let mut rows: Vec<Row> = campaign.slots.iter().map(row).collect();
    let rates: Vec<Estimate> = rows.iter().map(|r| r.received).collect();
    for (row, slot) in rows.iter_mut().zip(&campaign.slots) {
        let ceiling = slot
            .ceiling
            .and_then(|c| Some((*rates.get(c)?, ratios.bounds(slot.id, c))));
        // A search chooses its loads.
        let faster = maybe_faster(row, slot, campaign).filter(|_| searches.is_empty());
        judge_limit(row, slot, ceiling, &campaign.asked, faster.is_some());
    }
    for (at, slot) in campaign.slots.iter().enumerate() {
        let [ceiling, baseline] =
            [slot.ceiling, slot.baseline].map(|than| Some(ratios.against(&rows, at, than?)));
        (rows[at].ceiling, rows[at].baseline) = (ceiling, baseline);
    }
    let seconds = trials.iter().map(TrialRecord::ended_ns).max().unwrap_or(0) as f64 / 1e9;
    let share = |ns: u64| match seconds > 0.0 {
        true => ns as f64 / 1e9 / seconds,
        false => 0.0,
    };
    let bisection = ratios.bisection();
    let benchmarks = benchmarks::benchmarked(&ratios.benchmarks(), trials);
    let mut summary = Summary {
        version: VERSION,
        stopped,
        seconds,
        reboots: trials.iter().map(|t| t.reboots).sum(),
        load_share: share(trials.iter().map(|t| t.timing.load_ns()).sum()),
        waited_share: share(trials.iter().map(|t| t.waited_ns).sum()),
        peak_memory,
        unmeasured: match searches.is_empty() {
            true => lacking::unmeasured(campaign, &rows, trials, stopped, bisection.is_some()),
            false => lacking::without_result(campaign, &searches, &benchmarks, stopped),
        },
        rows,
        comparisons: Vec::new(),
        series: Vec::new(),
        expectations: Vec::new(),
        warnings: Vec::new(),
        profiles: Vec::new(),
        programs: Vec::new(),
        rules: Vec::new(),
        explanations: Vec::new(),
        searches,
        benchmarks,
        bisection,
    };
    if let Some(planned) = &campaign.planned {
        results::add(&mut summary, planned, &ratios);
    }
    summary.warnings = warnings::warnings(campaign, trials, &summary);
    summary
}

/// `counts`: whether a valid trial of the slot is part of its rate.
fn row(
    campaign: &Campaign,
    slot: &Slot,
    trials: &[TrialRecord],
    counts: impl Fn(&TrialRecord) -> bool,
) -> Row {
    let all: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
    let valid: Vec<&TrialRecord> = all
        .iter()
        .copied()
        .filter(|t| t.audit.valid && counts(t))
        .collect();
    let rates: Vec<Rates> = valid.iter().filter_map(|t| t.rates).collect();
    let received: Vec<f64> = rates.iter().map(|r| r.received).collect();
    // 0 where another tool's record does not tell it.
    let offered = rates.iter().map(|r| r.offered).filter(|fps| *fps > 0.0);
    let offered: Vec<f64> = offered.collect();
    let sent: u64 = valid.iter().map(|t| t.generator.frames).sum();
    let rate = median_interval(&received, 0.95).unwrap_or_default();
    let dropped = dropped_share(campaign, &valid);
    let lost = lost_share(&valid);
    let duplicates = valid.iter().map(|t| t.receiver.duplicates()).sum();
    let handled = if dropped > 0.0 { handled(&valid) } else { rate };
    let length = slot.average_len_fcs();
    let ways = slot.direction.ways();
    let directions = ways.iter().filter_map(|way| of_direction(*way, &valid));
    let ways = ways.len() as f64;
    let hosts = campaign.asked.lab == LabKind::Hosts;
    let stamped = || valid.iter().filter(|t| !hosts || t.clocks.is_some());
    Row {
        slot: slot.id,
        name: slot.name.clone(),
        valid_trials: valid.len(),
        trials: all.len(),
        offered: offered_with(&offered, rate.median, sent, lost, duplicates),
        received: rate,
        handled,
        dropped,
        loss_ratio: lost,
        directions: directions.collect(),
        bits_layer_1: bits_layer_1(rate.median, length),
        bits_layer_2: bits_layer_2(rate.median, length),
        ns_per_frame: ns_per_frame(campaign, slot, handled.median),
        dut_ns_per_frame: None,
        ceiling: None,
        baseline: None,
        line_share: line_shares(rate.median / ways, length),
        line_share_imix: line_shares(rate.median / ways, SIMPLE_IMIX_AVERAGE),
        limit: Limit::Unknown,
        full_cpus: full_cpus(&valid),
        latency_ns: answer_times(slot, &valid).unwrap_or_else(|| quantiles(stamped().copied())),
        clock_error_ns: stamped()
            .filter_map(|t| t.clocks)
            .map(|clocks| clocks.error_ns)
            .max(),
        timed_by_client: valid
            .iter()
            .any(|t| t.opened.as_ref().is_some_and(|o| o.timed_by_client)),
        stamped: stamped()
            .filter_map(|t| t.stamped.clone())
            .reduce(|all, one| all.and(&one)),
        duplicates,
        reordered: valid.iter().map(|t| t.receiver.reordered()).sum(),
        losses: losses_by_place(&valid),
        rules: hottest_rules(&valid, sent),
        variation: coefficient_of_variation(&received),
        unsteady: slot
            .is_calibration()
            .then(|| machine::unsteady(&valid))
            .flatten(),
        connections: valid.last().and_then(|t| t.connections),
        kept: KeptRow::of(&valid),
        flood: FloodRow::of(&valid),
        http: HttpRow::of(slot, &valid, rate.median),
        tcp: slot
            .path
            .as_ref()
            .and_then(|path| goodput(path, &valid, rate)),
    }
}

fn handled(valid: &[&TrialRecord]) -> Estimate {
    let handled: Vec<f64> = valid.iter().filter_map(|t| t.handled()).collect();
    median_interval(&handled, 0.95).unwrap_or_default()
}

/// CPU time of a frame; 0 where none was handled, in a simulation, which has no CPUs, and where the load did not wait for the DUT: at a
/// rate that was asked for, and with connections in threaded mode.
fn ns_per_frame(campaign: &Campaign, slot: &Slot, handled: f64) -> f64 {
    if slot.is_paced(campaign.asked.mode) {
        return 0.0;
    }
    let generator = slot.cpus.as_ref().unwrap_or(&campaign.roles.generator);
    let cpus = if campaign.asked.mode == Mode::Inline {
        generator.len()
    } else {
        1
    };
    if handled > 0.0 && campaign.asked.lab != LabKind::Simulated {
        cpus as f64 * 1e9 / handled
    } else {
        0.0
    }
}

/// The median offered load; 0 where it is not known. A window begins and ends while frames are under way, so at some thousand frames/s
/// more frames may seem to arrive than were sent; then the counts of the whole trials give the load.
fn offered_with(offered: &[f64], received: f64, sent: u64, lost: f64, duplicates: u64) -> f64 {
    let offered = median(offered).unwrap_or(0.0);
    if sent > 0 && offered < received && lost < 1.0 && duplicates == 0 {
        received / (1.0 - lost)
    } else {
        offered
    }
}

/// The trials' figures of one direction; `None` if frames went in only one direction.
fn of_direction(direction: Direction, valid: &[&TrialRecord]) -> Option<DirectionRow> {
    let all = || {
        valid
            .iter()
            .flat_map(|t| &t.directions)
            .filter(|way| way.direction == direction)
    };
    all().next()?;
    let [offered, received] = [|r: &Rates| r.offered, |r: &Rates| r.received].map(|of| {
        all()
            .filter_map(|way| way.rates.as_ref().map(of))
            .collect::<Vec<f64>>()
    });
    let (sent, lost) = all().fold((0, 0), |(sent, lost), way| {
        (sent + way.sent, lost + way.lost)
    });
    let loss_ratio = if sent > 0 {
        lost as f64 / sent as f64
    } else {
        0.0
    };
    let received = median_interval(&received, 0.95).unwrap_or_default();
    let duplicates = valid.iter().map(|t| t.receiver.duplicates()).sum();
    let offered = offered_with(&offered, received.median, sent, loss_ratio, duplicates);
    Some(DirectionRow {
        direction,
        offered,
        received,
        loss_ratio,
    })
}

fn line_shares(fps: f64, length: f64) -> BTreeMap<String, f64> {
    LINK_SPEEDS
        .iter()
        .map(|(name, bits)| (name.to_string(), fps / line_rate(*bits, length)))
        .collect()
}

/// The CPUs that were full, and not by other programs for the most part.
fn full_cpus(trials: &[&TrialRecord]) -> Vec<u32> {
    let mut by_cpu: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for share in trials.iter().flat_map(|t| &t.cpus) {
        let others = share.others.unwrap_or(0.0);
        let busy = if 2.0 * others < share.busy {
            share.busy
        } else {
            0.0
        };
        by_cpu.entry(share.cpu).or_default().push(busy);
    }
    by_cpu
        .into_iter()
        .filter(|(_, busy)| median(busy) >= Some(0.95))
        .map(|(cpu, _)| cpu)
        .collect()
}

/// Values that must lie beyond a quantile for it to be known.
const BEYOND: f64 = 10.0;

/// The least latency and its quantiles, as far as there are enough values for them, and the delay variation.
fn quantiles<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> BTreeMap<String, u64> {
    let (mut latency, mut variation) = (Histogram::default(), Histogram::default());
    for trial in trials {
        let found = &trial.receiver.latency;
        latency.merge(&found.beyond(trial.clocks.map_or(0, |clocks| clocks.shift_ns)));
        // Beyond the least of the same trial: each trial has its own error of the clocks.
        variation.merge(&found.beyond(found.quantile(0.0).unwrap_or(0)));
    }
    const WANTED: [(&str, f64); 5] = [
        ("min", 0.0),
        ("p50", 0.5),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ];
    let values = latency.count() as f64;
    let known = |(name, q): &(&str, f64)| *name != "p99.99" || values * (1.0 - q) >= BEYOND;
    let quantile = |(name, q): &(&str, f64)| Some((name.to_string(), latency.quantile(*q)?));
    let pdv = variation.quantile(0.999).map(|ns| ("pdv".to_string(), ns));
    WANTED
        .iter()
        .filter(|wanted| known(wanted))
        .filter_map(quantile)
        .chain(pdv)
        .collect()
}

/// The frames that these trials lost, by place, most frames first.
pub fn losses_by_place(trials: &[&TrialRecord]) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    for loss in trials.iter().flat_map(|t| &t.losses) {
        match losses.iter_mut().find(|known| known.place == loss.place) {
            Some(known) => known.frames += loss.frames,
            None => losses.push(loss.clone()),
        }
    }
    losses.sort_by_key(|loss| std::cmp::Reverse(loss.frames));
    losses
}

/// Rules of a file that are shown.
const HOTTEST: usize = 10;

fn hottest_rules(trials: &[&TrialRecord], sent: u64) -> Vec<(String, f64)> {
    // The order of rules that met as many frames is that of the file.
    let mut rules: Vec<(&str, u64)> = Vec::new();
    for count in trials.iter().flat_map(|t| &t.rules) {
        match rules.iter_mut().find(|(rule, _)| *rule == count.rule) {
            Some((_, frames)) => *frames += count.frames,
            None => rules.push((&count.rule, count.frames)),
        }
    }
    rules.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
    let share = |frames: u64| frames as f64 / sent.max(1) as f64;
    rules
        .into_iter()
        .take(HOTTEST)
        .map(|(rule, frames)| (rule.to_string(), share(frames)))
        .collect()
}

/// The share of lost frames below which a DUT counts as not overloaded.
const LOSSLESS: f64 = 0.001;

/// Why the DUT may be faster than the highest rate of an open loop, whatever the tester does alone; `None` where nothing says so.
/// (A closed loop waits for the DUT, as does a generator whose frames the kernel refuses while the DUT's queue is full; and hosts may send
/// pause frames.)
pub fn maybe_faster(row: &Row, slot: &Slot, campaign: &Campaign) -> Option<&'static str> {
    let (roles, asked) = (&campaign.roles, &campaign.asked);
    let open = asked.mode == Mode::Threaded && asked.lab == LabKind::Namespaces;
    let most = slot.asked_fps.is_none() && slot.connections().is_none();
    let shared =
        asked.receiver != "xdp" && roles.receiver.iter().any(|cpu| roles.dut.contains(cpu));
    let carried = asked.generator == "xdp"
        && row.loss_ratio < LOSSLESS
        && row.received.median > 0.99 * row.offered;
    match open && most {
        true if shared => Some("the receiver's program has a CPU of the DUT"),
        true if carried => Some("the DUT lost less than 0.1 % of the frames"),
        _ => None,
    }
}

/// `maybe_faster`: the DUT may be, whatever the tester does alone. `ceiling`: the tester's rate alone, and bounds of the ratio to it, paired by block; a search has no blocks.
fn judge_limit(
    row: &mut Row,
    slot: &Slot,
    ceiling: Option<(Estimate, Option<[f64; 2]>)>,
    asked: &Asked,
    maybe_faster: bool,
) {
    // A simulated tester takes no time: its rate without the DUT says nothing about the DUT.
    let simulated = asked.lab == LabKind::Simulated;
    // The audit of each valid trial has compared the offered load with the requested one.
    let paced = slot.asked_fps.is_some() && row.loss_ratio < LOSSLESS;
    row.limit = match ceiling {
        // The ceiling of an imported slot is unknown.
        _ if row.valid_trials == 0 || slot.imported.is_some() => Limit::Unknown,
        _ if paced => Limit::OfferedLoad,
        _ if fills(slot.path.as_ref(), row.received.median) => Limit::Path,
        // Hosts of their own: if frames got lost in the DUT, the offered load was more than it can do. A DUT without losses may
        // do more.
        None if slot.no_ceiling && row.loss_ratio >= LOSSLESS => Limit::Dut,
        None if slot.no_ceiling => Limit::Tester,
        None => Limit::Calibration,
        Some(_) if row.drops() => Limit::DutDrops,
        Some(_) if maybe_faster => Limit::Tester,
        // The DUT lost frames because more were offered, whatever the tester does alone.
        Some(_) if row.overload() >= LOSSLESS => Limit::Dut,
        Some(_) if simulated => Limit::Unknown,
        Some((c, _)) if c.n == 0 => Limit::Unknown,
        Some((c, bounds)) => {
            let Estimate {
                median, low, high, ..
            } = row.handled;
            let least = low.unwrap_or(median) / c.high.unwrap_or(c.median);
            let most = high.unwrap_or(median) / c.low.unwrap_or(c.median);
            let [least, most] = bounds.unwrap_or([least, most]);
            match [least, most].map(|ratio| ceiling_is_clear(1.0, ratio)) {
                [_, true] => Limit::Dut,
                [true, false] => Limit::Noisy,
                [false, false] => Limit::Tester,
            }
        }
    };
    let paced = slot.asked_fps.is_some() || simulated;
    if let (Some((c, _)), Mode::Inline, false) = (ceiling, asked.mode, paced) {
        let tester = row.ns_per_frame * row.handled.median / c.median;
        row.dut_ns_per_frame =
            (c.median > 0.0 && row.handled.median > 0.0).then_some(row.ns_per_frame - tester);
    }
}

#[cfg(test)]
mod tests;
