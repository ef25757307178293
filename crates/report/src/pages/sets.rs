//! Sets of runs, and their picture: rates over the numbers in their names, or bars side by side over their names.

mod places;
#[cfg(test)]
mod tests;

use crate::prelude::*;
use linerate_measure::history::revision::Revision;
use linerate_measure::record::{Imported, PrintedThroughput};
use linerate_stats::median_interval;
use linerate_wire::units::{LINK_SPEEDS, SIMPLE_IMIX_AVERAGE, line_rate};
pub use places::numbered;
use places::{Place, Places, places};

/// Series, and names of an axis, that can be told apart.
const MOST_SERIES: usize = 8;
const MOST_NAMES: usize = 60;
/// Names of sets, and campaigns, that stand beside each other.
pub const MOST_SHARED: usize = 6;
pub const MOST_CAMPAIGNS: usize = 30;
/// The fewest points of a line.
const FEWEST: usize = 3;
/// Numbers that are further apart than this are shown by their ratio.
const FAR: f64 = 50.0;

/// The quantity of a set's runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Frames/s.
    #[default]
    Frames,
    /// Mbit/s of Ethernet.
    Ethernet,
    /// Mbit/s of payload.
    Payload,
    /// Numbers without a unit.
    Unnamed,
}

impl Unit {
    pub const ALL: [Unit; 4] = [Unit::Frames, Unit::Ethernet, Unit::Payload, Unit::Unnamed];

    pub fn is_mbits(self) -> bool {
        matches!(self, Unit::Ethernet | Unit::Payload)
    }

    /// The label of an axis; `frames` is the unit that frames/s are shown in.
    fn axis(self, frames: &str) -> String {
        match self {
            Unit::Frames => format!("forwarding rate, {frames}"),
            Unit::Ethernet => "throughput, Mbit/s".into(),
            Unit::Payload => "throughput, Mbit/s of payload".into(),
            Unit::Unnamed => "as printed, without a unit".into(),
        }
    }
}

/// Runs of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    pub name: String,
    /// The configuration, without IP version and frames.
    pub variant: String,
    /// `IPv4`, `IPv6`, or nothing where it is not known.
    pub family: String,
    /// Length of the frames with FCS, if they have one and it is known.
    pub frame: Option<u16>,
    pub unit: Unit,
    /// Measured under a profiler or without a DUT, or with a fault: in no comparison.
    pub aside: bool,
    /// The median of the runs, with its 95 % interval.
    pub rate: Estimate,
    pub runs: Vec<f64>,
    /// Whether the runs are samples of one run, or may be: then they have no interval and are in no test.
    pub samples: bool,
    /// The set that the campaign compares it with.
    pub baseline: Option<usize>,
}

impl Set {
    /// All sets of a campaign.
    pub fn all(campaign: &Campaign, summary: &Summary, trials: &[TrialRecord]) -> Vec<Set> {
        let mut runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.audit.valid) {
            runs.entry(trial.slot)
                .or_default()
                .extend(trial.rates.map(|rates| rates.received));
        }
        let set = |row: &Row| {
            let slot = campaign.slots.get(row.slot)?;
            let set = Set {
                name: row.name.clone(),
                variant: slot.variant.clone(),
                family: slot.family.clone(),
                frame: <[u16; 1]>::try_from(&slot.lengths_fcs[..])
                    .ok()
                    .map(|[length]| length),
                unit: Unit::Frames,
                aside: slot.is_calibration()
                    || slot
                        .imported
                        .as_ref()
                        .is_some_and(|imported| imported.profiling),
                rate: row.received,
                runs: runs.remove(&row.slot).unwrap_or_default(),
                samples: false,
                baseline: slot.baseline,
            };
            let is_sample = |trial: &TrialRecord| {
                trial
                    .imported
                    .as_ref()
                    .is_some_and(|t| t.samples == Some(1))
            };
            let mut own = trials
                .iter()
                .filter(|trial| trial.slot == row.slot)
                .peekable();
            Some(if own.peek().is_some() && own.all(is_sample) {
                set.of_samples()
            } else {
                set
            })
        };
        let mut sets: Vec<Set> = summary.rows.iter().filter_map(set).collect();
        sets.extend(
            campaign
                .imported
                .iter()
                .flat_map(|imported| equilibria(imported)),
        );
        let throughputs = campaign
            .imported
            .iter()
            .flat_map(|imported| &imported.throughputs);
        sets.extend(throughputs.map(Set::of_throughput));
        sets
    }

    /// Runs of a configuration in frames/s, and nothing else known of it.
    pub fn of_runs(variant: &str, runs: Vec<f64>) -> Set {
        Set {
            name: variant.into(),
            variant: variant.into(),
            family: String::new(),
            frame: None,
            unit: Unit::Frames,
            aside: false,
            rate: median_interval(&runs, 0.95).unwrap_or_default(),
            runs,
            samples: false,
            baseline: None,
        }
    }

    pub fn of_throughput(found: &PrintedThroughput) -> Set {
        let unit = if found.unit.is_empty() {
            Unit::Unnamed
        } else {
            Unit::Payload
        };
        // A copy of another test's result is none of this one.
        let aside = found.profiling || !found.problems.is_empty();
        let set = Set {
            unit,
            aside,
            ..Set::of_runs(&found.name, found.values.clone())
        };
        if found.whole { set } else { set.of_samples() }
    }

    /// The set, whose runs are samples of one run.
    fn of_samples(self) -> Set {
        Set {
            samples: true,
            rate: Estimate {
                low: None,
                high: None,
                ..self.rate
            },
            ..self
        }
    }

    /// Whether it has a rate that can be compared.
    pub fn counts(&self) -> bool {
        !self.aside && self.rate.n > 0
    }

    /// Whether a picture has it beside sets of other campaigns.
    pub fn is_comparable(&self) -> bool {
        self.counts() && self.unit != Unit::Unnamed
    }
}

/// Searches for an equilibrium throughput.
fn equilibria(imported: &Imported) -> impl Iterator<Item = Set> {
    imported.equilibria.iter().map(|found| {
        let published = found
            .published
            .as_ref()
            .map(|published| published.values.clone());
        let runs =
            published.unwrap_or_else(|| found.runs.iter().filter_map(|run| run.estimate).collect());
        Set {
            unit: Unit::Ethernet,
            ..Set::of_runs(&found.name, runs)
        }
    })
}

/// Pictures of the sets of a campaign, which share a title and the subject that numbers in their names are of: one for each unit.
pub fn pictures(title: &str, topic: &str, sets: &[Set]) -> Vec<Chart> {
    let of = |unit: Unit| -> Vec<&Set> {
        sets.iter()
            .filter(|set| set.counts() && set.unit == unit)
            .collect()
    };
    let of_unit = |unit| match unit {
        // Nobody knows whether two of them are of the same unit.
        Unit::Unnamed => of(unit)
            .into_iter()
            .filter_map(|set| picture(title, topic, &[set]))
            .collect(),
        _ => Vec::from_iter(picture(title, topic, &of(unit))),
    };
    Unit::ALL.into_iter().flat_map(of_unit).collect()
}

/// How many sets have a point in these pictures.
pub fn drawn(charts: &[Chart]) -> usize {
    let series = charts
        .iter()
        .flat_map(|chart| &chart.series)
        .filter(|series| series.look != Look::Limit);
    series.map(|series| series.points.len()).sum()
}

/// The picture of sets of one unit.
pub fn picture(title: &str, topic: &str, sets: &[&Set]) -> Option<Chart> {
    let Places { label, of } = places(topic, sets)?;
    let all: Vec<(String, Place, &Set)> = of
        .into_iter()
        .zip(sets)
        .map(|((series, place), set)| (series, place, *set))
        .collect();
    chart(title, label, all)
}

/// The picture of sets that stand along an axis by their names, in series that are known.
pub fn along(title: &str, axis: &str, sets: &[(String, Set)]) -> Option<Chart> {
    let number = |set: &Set| numbered(&set.variant).filter(|(rest, _)| rest.is_empty());
    let points = |name: &str| sets.iter().filter(|(series, _)| series == name).count();
    let long = sets.iter().all(|(series, _)| points(series) >= FEWEST);
    let numbers: Option<Vec<f64>> = sets.iter().map(|(_, set)| Some(number(set)?.1)).collect();
    let numbers = numbers.filter(|_| long);
    let place = |at: usize, set: &Set| match &numbers {
        Some(numbers) => Place::Number(numbers[at]),
        None => Place::Name(set.variant.clone()),
    };
    let placed = sets
        .iter()
        .enumerate()
        .map(|(at, (series, set))| (series.clone(), place(at, set), set));
    chart(title, axis.into(), placed.collect())
}

/// One picture of the sets of several campaigns, each with its name: a line for each campaign where their sets have numbers, bars
/// for each campaign where sets of the same name are in several.
pub fn together(title: &str, topic: &str, campaigns: &[(String, Vec<&Set>)]) -> Option<Chart> {
    let mut over: Option<String> = None;
    let mut lines = Vec::new();
    for (name, sets) in campaigns {
        let Some(Places { label, of }) = places(topic, sets) else {
            continue;
        };
        let numbers = of
            .iter()
            .all(|(_, place)| matches!(place, Place::Number(_)));
        if numbers && *over.get_or_insert_with(|| label.clone()) == label {
            let line = |series: &str| join([name.as_str(), series]);
            lines.extend(
                of.into_iter()
                    .zip(sets)
                    .map(|((series, place), set)| (line(&series), place, *set)),
            );
        }
    }
    if let Some(label) = over {
        return chart(title, label, lines);
    }
    // A name without an IP version is mostly one of IPv4; years differ in one word; the last revision stands for all.
    let label_of = |set: &Set| {
        let words = set
            .variant
            .split('.')
            .filter(|word| Revision::parse(word).is_none());
        let name = words.joined(".").replace("statefull", "stateful");
        join([
            if name.is_empty() {
                "last revision"
            } else {
                &name
            },
            when(set.family == "IPv6", "IPv6"),
        ])
    };
    let labelled = |sets: &[&'_ Set]| {
        sets.iter()
            .map(|set| label_of(set))
            .collect::<BTreeSet<String>>()
    };
    let mut shared: BTreeMap<String, usize> = BTreeMap::new();
    for (_, sets) in campaigns {
        labelled(sets)
            .into_iter()
            .for_each(|name| *shared.entry(name).or_default() += 1);
    }
    let mut shared: Vec<(String, usize)> = shared.into_iter().filter(|(_, n)| *n > 1).collect();
    shared.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    shared.truncate(MOST_SHARED);
    let mut bars = Vec::new();
    if shared.is_empty() && campaigns.iter().all(|(_, sets)| sets.len() == 1) {
        let only = campaigns
            .iter()
            .flat_map(|(name, sets)| sets.iter().map(move |set| (name, *set)));
        bars.extend(only.map(|(name, set)| (String::new(), Place::Name(name.clone()), set)));
    }
    let has_shared = |sets: &[&Set]| {
        let labels = labelled(sets);
        shared.iter().any(|(known, _)| labels.contains(known))
    };
    for (name, sets) in campaigns
        .iter()
        .filter(|(_, sets)| has_shared(sets))
        .take(MOST_CAMPAIGNS)
    {
        for (series, _) in &shared {
            let last = sets.iter().rev().find(|set| label_of(set) == *series);
            bars.extend(last.map(|set| (series.clone(), Place::Name(name.clone()), *set)));
        }
    }
    chart(title, "campaign".into(), bars)
}

fn join<const N: usize>(parts: [&str; N]) -> String {
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .joined(" ")
}

/// A line over numbers, bars over names. Bars begin at 0, and so do the rates of lines.
fn chart(title: &str, label: String, sets: Vec<(String, Place, &Set)>) -> Option<Chart> {
    let of = sets.first()?.2.unit;
    let largest = sets
        .iter()
        .flat_map(|(_, _, set)| set.runs.iter().copied().chain([set.rate.median]));
    let frames = RateUnit::of(largest);
    let RateUnit { scale, name: unit } = if of == Unit::Frames {
        frames
    } else {
        RateUnit {
            scale: 1.0,
            name: "",
        }
    };
    let x_scale = x_scale(&sets);
    let names: &[String] = match &x_scale {
        Scale::Names(names) => &names[..names.len().min(MOST_NAMES)],
        _ => &[],
    };
    let mut series = by_name(&sets, names, scale);
    if series.len() > MOST_SERIES {
        let top = |series: &Series| series.points.iter().map(|spot| spot.y).fold(0.0, f64::max);
        series.sort_by(|a, b| top(b).total_cmp(&top(a)));
        series.truncate(MOST_SERIES);
    }
    let several = series.len() > 1;
    for one in &mut series {
        one.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        if one.name.is_empty() {
            one.name = if several { "others" } else { "median" }.into();
        }
    }
    if label.starts_with("frame length") && names.is_empty() && of == Unit::Frames {
        series.extend(limits(&series, scale, None));
    }
    let known = series
        .iter()
        .flat_map(|series| &series.points)
        .any(|spot| spot.interval.is_some());
    let chart = Chart::new(
        title,
        Axis::new(label, x_scale),
        Axis::from_zero(of.axis(unit)),
        series,
    );
    Some(if known { chart.of_medians() } else { chart })
}

/// Numbers by their ratio where they are far apart; names where there are no numbers, or no ratios.
fn x_scale(sets: &[(String, Place, &Set)]) -> Scale {
    let numbers = |place: &Place| match place {
        Place::Number(number) => Some(*number),
        Place::Name(_) => None,
    };
    let mut numbers: Vec<f64> = sets
        .iter()
        .filter_map(|(_, place, _)| numbers(place))
        .collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    match (numbers.first(), numbers.last()) {
        (Some(low), Some(high)) if *low > 0.0 && high / low > FAR => Scale::Log,
        // 0 has no place on an axis of ratios.
        (Some(low), Some(high)) if *low > 0.0 || *high <= FAR => Scale::Linear { from_zero: false },
        _ => {
            let mut names: Vec<String> = Vec::new();
            for (_, place, _) in sets {
                if let Place::Name(name) = place
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
            }
            names.extend(numbers.iter().map(f64::to_string));
            Scale::Names(names)
        }
    }
}

/// A series for each name that sets have. `names`: those along the axis; none where it has numbers.
fn by_name(sets: &[(String, Place, &Set)], names: &[String], scale: f64) -> Vec<Series> {
    let at = |place: &Place| match place {
        Place::Number(number) if names.is_empty() => Some(*number),
        Place::Number(number) => names
            .iter()
            .position(|name| *name == number.to_string())
            .map(|at| at as f64),
        Place::Name(name) => names
            .iter()
            .position(|known| known == name)
            .map(|at| at as f64),
    };
    let look = if names.is_empty() {
        Look::Line
    } else {
        Look::Bars
    };
    let mut series: Vec<Series> = Vec::new();
    for (name, place, set) in sets {
        let Some(x) = at(place) else { continue };
        let spot = Spot::of(x, &set.rate, set.runs.iter().copied(), scale);
        match series.iter_mut().find(|series| series.name == *name) {
            Some(series) => series.points.push(spot),
            None => series.push(Series::new(name.as_str(), look, [spot])),
        }
    }
    series
}

/// The line rate over the frame length, and that of simple IMIX: of a link of so many bit/s where that is known and it carries every
/// point, else of the slowest Ethernet that does.
pub fn limits(series: &[Series], scale: f64, link: Option<f64>) -> Vec<Series> {
    // Frames that a card sends for an instant beyond the line rate are an error of clocks.
    const TOLERANCE: f64 = 1.001;
    let points = || series.iter().flat_map(|series| &series.points);
    let carries =
        |bits: f64| points().all(|spot| spot.y * scale <= TOLERANCE * line_rate(bits, spot.x));
    let mut speeds = link.into_iter().chain(LINK_SPEEDS.map(|(_, bits)| bits));
    let Some(bits) = speeds.find(|bits| carries(*bits)) else {
        return Vec::new();
    };
    let name = format!("{} Gbit/s", bits / 1e9);
    let own = || points().map(|spot| spot.x);
    let [least, greatest] = ends(own()).unwrap_or_default();
    // Between two lengths the line rate is no straight line.
    let between = (1..16).map(|n| least * (greatest / least).powf(f64::from(n) / 16.0).max(1.0));
    let mut lengths: Vec<f64> = own().chain(between.map(f64::round)).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let limit = |name: String, rate: &dyn Fn(f64) -> f64| {
        Series::new(
            name,
            Look::Limit,
            lengths
                .iter()
                .map(|length| Spot::at(*length, rate(*length) / scale)),
        )
    };
    vec![
        limit(format!("line rate, {name}"), &|length| {
            line_rate(bits, length)
        }),
        limit(format!("line rate of simple IMIX, {name}"), &|_| {
            line_rate(bits, SIMPLE_IMIX_AVERAGE)
        }),
    ]
}
