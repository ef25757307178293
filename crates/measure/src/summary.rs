//! From trials to a verdict: a row per slot, ratios paired by block, the limits, and warnings.

mod benchmarks;
mod machine;

pub use machine::{FORWARDS, NOTICEABLE, of_others};

use crate::audit::{Cause, Loss, Side, ceiling_is_clear};
use crate::experiment::Benchmark;
use crate::goodput::{fills, goodput};
use crate::record::{
    Benchmarked, Campaign, Connections, Direction, DirectionRow, Figures, LabKind, Limit, Mode,
    NOTHING_PASSES, Row, Searched, Slot, States, Stopped, Summary, Tested, TrialRecord, Unmeasured, VERSION,
    Warning, Why,
};
use crate::results::{self, Ratios};
use crate::trial::Rates;
use linerate_search::Irregular;
use linerate_stats::histogram::Histogram;
use linerate_stats::{Estimate, autocorrelation, coefficient_of_variation, median, median_interval};
use linerate_wire::units::{
    LINK_SPEEDS, SIMPLE_IMIX_AVERAGE, bits_layer_1, bits_layer_2, counted, line_rate,
};
use std::collections::BTreeMap;

/// Below this share of dropped frames, the rate alone decides.
const NOTICEABLE_DROPS: f64 = 0.01;

impl TrialRecord {
    /// Frames that the DUT handled and then dropped: by a rule, or for a reason of the kernel. Frames that found a queue full are not
    /// counted, for the DUT did no work for them, nor broadcast frames.
    pub fn dropped(&self) -> u64 {
        let work = |cause| matches!(cause, Cause::Dropped | Cause::Unexplained);
        let by_dut = self.losses.iter().filter(|l| l.side == Side::Dut && work(l.cause));
        by_dut.map(|l| l.frames).sum()
    }

    /// Frames/s that the DUT handled: forwarded and dropped ones.
    pub fn handled(&self) -> Option<f64> {
        let Rates { offered, received, .. } = self.rates?;
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

/// The loss ratio: lost frames by sent frames.
pub(crate) fn lost_share(valid: &[&TrialRecord]) -> f64 {
    let sent: u64 = valid.iter().map(|t| t.generator.frames).sum();
    let lost: u64 = valid.iter().map(|t| t.generator.frames.saturating_sub(t.receiver.unique())).sum();
    if sent > 0 { lost as f64 / sent as f64 } else { 0.0 }
}

/// Puts the verdict together. `peak_memory` in bytes.
pub fn summarise(campaign: &Campaign, trials: &[TrialRecord], stopped: Stopped, peak_memory: u64) -> Summary {
    let ratios = Ratios::new(campaign, trials, stopped);
    let searches = ratios.searches();
    let row = |slot: &Slot| {
        let load = searches.iter().find(|search| search.slot == slot.id).map(Searched::throughput);
        row(campaign, slot, trials, |trial| match load {
            // The loads of a search differ: its rate is the one at the throughput.
            Some(load) => {
                trial.asked_fps == load
                    && load.is_some()
                    && trial.benchmark.is_none_or(|test| test == Benchmark::Throughput)
            }
            None => searches.is_empty() || trial.asked_fps.is_none(),
        })
    };
    let mut rows: Vec<Row> = campaign.slots.iter().map(row).collect();
    let rates: Vec<Estimate> = rows.iter().map(|r| r.received).collect();
    for (row, slot) in rows.iter_mut().zip(&campaign.slots) {
        let ceiling = slot.ceiling.and_then(|c| Some((*rates.get(c)?, ratios.bounds(slot.id, c))));
        judge_limit(row, slot, ceiling, campaign.asked.mode);
    }
    for (at, slot) in campaign.slots.iter().enumerate() {
        let [ceiling, baseline] =
            [slot.ceiling, slot.baseline].map(|than| Some(ratios.against(&rows, at, than?)));
        (rows[at].ceiling, rows[at].baseline) = (ceiling, baseline);
    }
    let seconds = trials.iter().map(TrialRecord::ended_ns).max().unwrap_or(0) as f64 / 1e9;
    let load: u64 = trials.iter().map(|t| t.timing.load_ns()).sum();
    let benchmarks = benchmarks::benchmarked(&ratios.benchmarks(), trials);
    let mut summary = Summary {
        version: VERSION,
        stopped,
        seconds,
        reboots: trials.iter().map(|t| t.reboots).sum(),
        load_share: if seconds > 0.0 { load as f64 / 1e9 / seconds } else { 0.0 },
        peak_memory,
        unmeasured: match searches.is_empty() {
            true => unmeasured(campaign, &rows, trials, stopped),
            false => without_result(campaign, &searches, &benchmarks, stopped),
        },
        rows,
        comparisons: Vec::new(),
        series: Vec::new(),
        expectations: Vec::new(),
        warnings: Vec::new(),
        profiles: Vec::new(),
        explanations: Vec::new(),
        searches,
        benchmarks,
    };
    if let Some(planned) = &campaign.planned {
        results::add(&mut summary, planned, &ratios);
    }
    summary.warnings = warnings(campaign, trials, &summary);
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
    let valid: Vec<&TrialRecord> = all.iter().copied().filter(|t| t.audit.valid && counts(t)).collect();
    let received: Vec<f64> = valid.iter().filter_map(|t| Some(t.rates?.received)).collect();
    let offered: Vec<f64> = valid.iter().filter_map(|t| Some(t.rates?.offered)).collect();
    let sent: u64 = valid.iter().map(|t| t.generator.frames).sum();
    let rate = median_interval(&received, 0.95).unwrap_or_default();
    let dropped = dropped_share(campaign, &valid);
    let (lost, duplicates) = (lost_share(&valid), valid.iter().map(|t| t.receiver.duplicates()).sum());
    let handled = match dropped {
        0.0 => rate,
        _ => {
            let handled: Vec<f64> = valid.iter().filter_map(|t| t.handled()).collect();
            median_interval(&handled, 0.95).unwrap_or_default()
        }
    };
    let length = slot.average_len_fcs();
    let ways = slot.direction.ways().len() as f64;
    let generator = slot.cpus.as_ref().unwrap_or(&campaign.roles.generator);
    let cpus = if campaign.asked.mode == Mode::Inline { generator.len() } else { 1 };
    let stamped = || valid.iter().filter(|t| campaign.asked.lab != LabKind::Hosts || t.clocks.is_some());
    Row {
        slot: slot.id,
        name: slot.name.clone(),
        valid_trials: valid.len(),
        trials: all.len(),
        offered: offered_with(&offered, rate.median, lost, duplicates),
        received: rate,
        handled,
        dropped,
        loss_ratio: lost,
        directions: slot.direction.ways().iter().filter_map(|way| of_direction(*way, &valid)).collect(),
        bits_layer_1: bits_layer_1(rate.median, length),
        bits_layer_2: bits_layer_2(rate.median, length),
        ns_per_frame: if handled.median > 0.0 { cpus as f64 * 1e9 / handled.median } else { 0.0 },
        dut_ns_per_frame: None,
        ceiling: None,
        baseline: None,
        line_share: line_shares(rate.median / ways, length),
        line_share_imix: line_shares(rate.median / ways, SIMPLE_IMIX_AVERAGE),
        limit: Limit::Unknown,
        full_cpus: full_cpus(&valid),
        latency_ns: quantiles(stamped().copied()),
        clock_error_ns: stamped().filter_map(|t| t.clocks).map(|clocks| clocks.error_ns).max(),
        stamped: stamped().filter_map(|t| t.stamped.clone()).reduce(|all, one| all.and(&one)),
        duplicates,
        reordered: valid.iter().map(|t| t.receiver.reordered()).sum(),
        losses: losses_by_place(&valid),
        rules: hottest_rules(&valid, sent),
        variation: coefficient_of_variation(&received),
        connections: valid.last().and_then(|t| t.connections),
        tcp: slot.path.as_ref().and_then(|path| goodput(path, &valid, rate)),
    }
}

/// The median offered load. A window begins and ends while frames are under way, so at some thousand frames/s more frames may seem to
/// arrive than were sent; then the counts of the whole trials give the load.
fn offered_with(offered: &[f64], received: f64, lost: f64, duplicates: u64) -> f64 {
    let offered = median(offered).unwrap_or(0.0);
    if offered < received && lost < 1.0 && duplicates == 0 { received / (1.0 - lost) } else { offered }
}

/// The trials' figures of one direction; `None` if frames went in only one direction.
fn of_direction(direction: Direction, valid: &[&TrialRecord]) -> Option<DirectionRow> {
    let all = || valid.iter().flat_map(|t| &t.directions).filter(|way| way.direction == direction);
    all().next()?;
    let [offered, received] = [|r: &Rates| r.offered, |r: &Rates| r.received]
        .map(|of| all().filter_map(|way| way.rates.as_ref().map(of)).collect::<Vec<f64>>());
    let (sent, lost) = all().fold((0, 0), |(sent, lost), way| (sent + way.sent, lost + way.lost));
    let loss_ratio = if sent > 0 { lost as f64 / sent as f64 } else { 0.0 };
    let received = median_interval(&received, 0.95).unwrap_or_default();
    let duplicates = valid.iter().map(|t| t.receiver.duplicates()).sum();
    let offered = offered_with(&offered, received.median, loss_ratio, duplicates);
    Some(DirectionRow { direction, offered, received, loss_ratio })
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
    const WANTED: [(&str, f64); 5] =
        [("min", 0.0), ("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
    let values = latency.count() as f64;
    let known = |(name, q): &(&str, f64)| *name != "p99.99" || values * (1.0 - q) >= BEYOND;
    let quantile = |(name, q): &(&str, f64)| Some((name.to_string(), latency.quantile(*q)?));
    let pdv = variation.quantile(0.999).map(|ns| ("pdv".to_string(), ns));
    WANTED.iter().filter(|wanted| known(wanted)).filter_map(quantile).chain(pdv).collect()
}

fn losses_by_place(trials: &[&TrialRecord]) -> Vec<Loss> {
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
    rules.into_iter().take(HOTTEST).map(|(rule, frames)| (rule.to_string(), share(frames))).collect()
}

/// The share of lost frames below which a DUT counts as not overloaded.
const LOSSLESS: f64 = 0.001;

/// `ceiling`: the tester's rate alone, and bounds of the ratio to it, paired by block; a search has no blocks.
fn judge_limit(row: &mut Row, slot: &Slot, ceiling: Option<(Estimate, Option<[f64; 2]>)>, mode: Mode) {
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
        Some((c, _)) if c.n == 0 => Limit::Tester,
        Some((c, bounds)) => {
            let Estimate { median, low, high, .. } = row.handled;
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
    if let (Some((c, _)), Mode::Inline, true) = (ceiling, mode, slot.asked_fps.is_none()) {
        let tester = row.ns_per_frame * row.handled.median / c.median;
        row.dut_ns_per_frame =
            (c.median > 0.0 && row.handled.median > 0.0).then_some(row.ns_per_frame - tester);
    }
}

fn warnings(campaign: &Campaign, trials: &[TrialRecord], summary: &Summary) -> Vec<Warning> {
    let mut out = Vec::new();
    for (row, slot) in summary.rows.iter().zip(&campaign.slots) {
        // Slots without a valid trial are reported as unmeasured; a search has trials beside those of its rate.
        let searched = !summary.searches.is_empty();
        if row.valid_trials > 0 || slot.imported.is_some() || searched {
            let of_slot: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
            let warnings = slot_warnings(row, slot, &of_slot, searched).into_iter();
            out.extend(warnings.map(|(text, spoils)| Warning { slot: Some(slot.id), text, spoils }));
        }
    }
    out.extend(machine::warnings(campaign, trials).map(|(text, spoils)| Warning {
        slot: None,
        text,
        spoils,
    }));
    out
}

/// A warning, and [`Warning::spoils`].
type Said = (String, Option<String>);

/// `trials`: those of the slot. `searched`: a search chose them, whose result has bounds and no interval.
fn slot_warnings(row: &Row, slot: &Slot, trials: &[&TrialRecord], searched: bool) -> Vec<Said> {
    let mut out: Vec<Said> = Vec::new();
    let mut plain: Vec<String> = Vec::new();
    let (valid_trials, all) = (row.valid_trials, trials.len());
    let failed: Vec<&&TrialRecord> = trials.iter().filter(|t| !t.audit.valid).collect();
    if let Some(first) = failed.first() {
        let n = failed.len();
        plain.push(match slot.imported {
            Some(_) => {
                let why = first.audit.checks.first().map_or("", |c| &c.found);
                format!("{n} of {all} runs have no figure (the first: {why})")
            }
            None => {
                let why = first.audit.failures().next().unwrap_or_default();
                let out = if n == 1 { "its audit and is" } else { "their audit and are" };
                format!("{n} of {} failed {out} not in the verdict (the first: {why})", counted(all, "trial"))
            }
        });
    }
    if row.limit == Limit::Noisy && !searched {
        plain.push(
            "its trials scatter too much to tell whether the DUT or the tester was the limit: run more of them (--budget), on a quieter machine"
                .into(),
        );
    }
    if row.limit == Limit::Tester && !searched {
        plain.push(match slot.no_ceiling {
            true => "the DUT lost no frame; it may be faster than this".into(),
            false => {
                "too close to what the tester can do without a DUT; the DUT may be faster than this".into()
            }
        });
    }
    if row.received.low.is_none() && valid_trials > 0 && slot.imported.is_none() && !searched {
        let are = if valid_trials == 1 { "is" } else { "are" };
        let few = counted(valid_trials, "valid trial");
        plain.push(format!("{few} {are} too few for a 95 % interval (6 are needed)"));
    }
    let valid = || trials.iter().filter(|t| t.audit.valid);
    let series: Vec<f64> = valid().filter_map(|t| Some(t.rates?.received)).collect();
    if series.len() >= 8 && autocorrelation(&series) > 0.5 && row.variation > 0.05 {
        plain.push(format!(
            "the machine's speed drifted between trials (variation {:.0} %): trust the ratios, which are paired, more than the absolute rates",
            100.0 * row.variation
        ));
    }
    out.extend(valid().next_back().zip(row.connections).and_then(|(last, c)| few_new(c, last)));
    out.extend(one_way_only(row, trials));
    plain.extend(silent_since(trials).or_else(|| grown_loss(trials).filter(|_| searched)));
    if row.duplicates > 0 {
        plain.push(format!("{} arrived more than once", counted(row.duplicates as usize, "frame")));
    }
    plain.into_iter().map(|text| (text, None)).chain(out).collect()
}

/// Since when no frame came through, although some did before.
fn silent_since(trials: &[&TrialRecord]) -> Option<String> {
    let last = trials.iter().rposition(|trial| trial.receiver.unique() > 0)?;
    let silent = &trials[last + 1..];
    (silent.len() >= 3).then(|| {
        format!(
            "no frame came through in the last {} trials, from second {:.0} of the campaign on: the DUT or a link went down",
            silent.len(),
            silent[0].began_ns as f64 / 1e9
        )
    })
}

/// Whether the last trials lost clearly larger shares than earlier ones at higher loads.
fn grown_loss(trials: &[&TrialRecord]) -> Option<String> {
    const LAST: usize = 5;
    let valid = trials.iter().filter(|trial| trial.audit.valid && trial.shape.is_constant());
    let valid: Vec<(f64, f64)> =
        valid.filter_map(|trial| Some((trial.asked_fps?, trial.loss_ratio))).collect();
    let (before, last) = valid.split_at(valid.len().checked_sub(LAST)?);
    let more = |(load, loss): &(f64, f64)| {
        let higher = before.iter().filter(|(other, _)| 0.99 * other >= *load);
        let higher: Vec<f64> = higher.map(|(_, loss)| *loss).collect();
        higher.len() >= 3 && *loss > 1.5 * median(&higher).unwrap_or(1.0)
    };
    last.iter().all(more).then(|| {
        "the last trials lost larger shares than earlier trials at higher loads: the loss has grown with time"
            .into()
    })
}

/// The DUT passes frames in only one direction.
fn one_way_only(row: &Row, trials: &[&TrialRecord]) -> Option<Said> {
    let passes = |way: &DirectionRow| way.loss_ratio < 1.0;
    let none = row.directions.iter().find(|way| !passes(way))?.direction;
    row.directions.iter().find(|way| passes(way))?;
    let ways = trials.iter().flat_map(|t| &t.directions).filter(|way| way.direction == none);
    let most = ways.flat_map(|way| &way.losses).max_by_key(|loss| loss.frames);
    let place = most.map_or(String::new(), |loss| format!(" ({})", loss.place));
    let end = if none == Direction::Reverse { "outside" } else { "inside" };
    let passed = format!("no frame came through in the {none} direction");
    let why = format!(
        "the DUT drops frames that open a connection from its {end}, or all frames from there; the rate is that of the other direction"
    );
    Some((format!("{passed}{place}: {why}"), Some(passed)))
}

/// With new states, frames that opened no connection: a trial has more frames than flows.
fn few_new(c: Connections, last: &TrialRecord) -> Option<Said> {
    let frames = last.receiver.unique();
    let share = c.tracked? as f64 / frames.max(1) as f64;
    (c.states == States::New && share < 0.95).then(|| {
        let few = format!("only {:.1} % of the frames opened a connection", 100.0 * share);
        let text =
            format!("{few}: a trial has {frames} frames, so give it as many flows, in sequential order");
        (text, Some(few))
    })
}

// Slots without a figure, or without a meaningful one.

/// All unmeasured slots, without the skipped ones.
fn unmeasured(
    campaign: &Campaign,
    rows: &[Row],
    trials: &[TrialRecord],
    stopped: Stopped,
) -> Vec<Unmeasured> {
    let skipped = |slot: &Slot| campaign.planned.as_ref().is_some_and(|p| !p.lacking(slot.id).is_empty());
    let slots = campaign.slots.iter().filter(|s| s.imported.is_none() && !skipped(s));
    let of_slot = |slot: &Slot| {
        let why = why(campaign, slot, rows.get(slot.id)?, trials, stopped)?;
        Some(Unmeasured { slot: slot.id, name: slot.name.clone(), why })
    };
    slots.filter_map(of_slot).collect()
}

/// Goals without a rate, and tests without a result, except those that the highest load makes impossible.
fn without_result(
    campaign: &Campaign,
    searches: &[Searched],
    benchmarks: &[Benchmarked],
    stopped: Stopped,
) -> Vec<Unmeasured> {
    if matches!(stopped, Stopped::Interrupted | Stopped::Failed) {
        return Vec::new();
    }
    let lacking = |slot: usize, why: String| Unmeasured { slot, name: campaign.name_of(slot).into(), why };
    if !benchmarks.is_empty() {
        let tests = benchmarks.iter().flat_map(|of| of.tests.iter().map(|tested| (of.slot, tested)));
        let none = tests.filter(|(_, tested)| tested.figures == Figures::None);
        let lacking = |(slot, tested): (usize, &Tested)| {
            let why = tested.why.filter(|why| *why != Why::AtMaximum)?;
            Some(lacking(
                slot,
                format!("has no result for {}: {}", tested.test.title(), why.words(tested.test)),
            ))
        };
        return none.filter_map(lacking).collect();
    }
    let goals = searches.iter().flat_map(|search| {
        let none = search.goals.iter().filter(|goal| goal.outcome.lower.is_none());
        none.map(|goal| {
            let why = match goal.outcome.irregular {
                Some(Irregular::MinLoad) => "even the lowest load misses it",
                _ => search.stopped(stopped),
            };
            (search.slot, format!("has no rate for the goal {}: {why}", goal.name))
        })
    });
    let curves = searches.iter().filter(|search| search.goals.is_empty()).filter_map(|search| {
        let why = match search.loads.is_empty() {
            true => search.stopped(stopped),
            false => Some(NOTHING_PASSES).filter(|_| search.is_silent())?,
        };
        Some((search.slot, format!("has no loss curve: {why}")))
    });
    goals.chain(curves).map(|(slot, why)| lacking(slot, why)).collect()
}

fn why(
    campaign: &Campaign,
    slot: &Slot,
    row: &Row,
    trials: &[TrialRecord],
    stopped: Stopped,
) -> Option<String> {
    let cut_short = matches!(stopped, Stopped::Interrupted | Stopped::Failed);
    let of_slot: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
    // Whatever else the audit found follows from that.
    if dropped_share(campaign, &of_slot) >= 1.0 {
        return (!is_meant_to_drop(campaign, slot)).then(|| drops_all(campaign, slot, row, &of_slot));
    }
    let first = || of_slot.iter().find_map(|t| t.audit.failures().next()).unwrap_or_default();
    match (row.valid_trials, row.trials) {
        (0, 0) if cut_short => None,
        (0, 0) => Some("could not be measured: the time ran out before its first trial".into()),
        (0, 1) => Some(format!("could not be measured: its only trial failed its audit ({})", first())),
        (0, n) => {
            Some(format!("could not be measured: all {n} trials failed their audit (the first: {})", first()))
        }
        _ if row.received.n == 0 => Some("could not be measured: no trial had a window".into()),
        _ => None,
    }
}

/// A DUT with a known answer drops on purpose.
fn is_meant_to_drop(campaign: &Campaign, slot: &Slot) -> bool {
    campaign.asked.lab == LabKind::Simulated || slot.known_answer
}

fn drops_all(campaign: &Campaign, slot: &Slot, row: &Row, trials: &[&TrialRecord]) -> String {
    let addresses = if slot.family == "IPv6" { "2001:2::/48" } else { "198.18.0.0/15" };
    let losses = losses_by_place(trials);
    let place = losses.first().map_or("", |loss| &loss.place);
    let between = match &campaign.planned {
        Some(_) => "{in} and {out}",
        None => "the DUT's two interfaces",
    };
    let drops =
        |rule: &str| rule.split_whitespace().any(|w| ["drop", "reject"].contains(&&*w.to_lowercase()));
    let by = row.rules.iter().find(|(rule, _)| drops(rule)).map(|(rule, _)| format!(" by `{rule}`"));
    let resets: u64 = trials.iter().filter_map(|t| t.opened.as_ref()).map(|opened| opened.resets).sum();
    let answered = if resets > 0 { format!("; {resets} RST segments came instead") } else { String::new() };
    let by = by.unwrap_or_else(|| format!(" ({place}{answered})"));
    if slot.connections().is_some() {
        return format!(
            "let no connection pass{by}: its rules and settings must pass connections from {addresses} between {between}"
        );
    }
    format!("dropped every test frame{by}: its rules and settings must pass {addresses} between {between}")
}

#[cfg(test)]
mod tests;
