//! Changes of time lines: place, size, and warnings.

use super::facts::{Cause, causes, mixed_setup};
use super::{Figure, Key, Point, Timeline, revision};
use linerate_stats::Estimate;
use linerate_stats::changepoint::{self, Changes, FEWEST, Segment};
use linerate_stats::modes::two_modes;
use linerate_stats::outliers::outliers;
use linerate_stats::sorted;
use linerate_stats::trend::{mann_kendall, neighbours_alike};
use serde::Serialize;

/// Start of the random orders: the same results give the same answer.
const SEED: u64 = 1;

/// The ratio to a reference is followed where at least this share of the points has it.
const MOSTLY: f64 = 0.8;

/// A distance between neighbouring points is a gap from this multiple of the usual one on.
const GAP: f64 = 5.0;

/// The level of the tests behind warnings.
const LEVEL: f64 = 0.01;

/// Result of a history.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct History {
    /// The time lines, those with the largest regression first.
    pub timelines: Vec<Judged>,
    /// How many of them could have shown a change.
    pub long_enough: usize,
    /// How many of those would seem to change by chance alone.
    pub expected_by_chance: f64,
}

/// A time line with the changes found in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Properties that its points share.
    pub key: Key,
    /// The figure: `rate` in frames/s, or `ratio to tester-baseline`, to the tester alone in the same campaign.
    pub measure: String,
    /// Points, with the figures that are followed.
    pub points: Vec<Followed>,
    /// Probability that points without any change would look as much like some; `None` where they are too few.
    pub p: Option<f64>,
    /// Noise between neighbouring points, relative.
    pub noise: f64,
    /// The levels.
    pub levels: Vec<Segment>,
    /// The changes between them whose intervals exclude 0, in order.
    pub changes: Vec<Found>,
    /// Last level / first level, if there are changes.
    pub overall: Option<f64>,
    /// Single points off their level.
    pub outliers: Vec<Outlier>,
    /// Changes of the rate that the ratio does not show, or of the tester alone: the machine or the tester changed, not the DUT.
    pub of_the_machine: Vec<Found>,
    pub warnings: Vec<String>,
}

/// A point of a judged time line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Followed {
    /// Where it stands.
    pub place: String,
    /// The figure that is followed.
    pub figure: Figure,
    /// Folder or file that it is from.
    pub source: String,
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Index of the first point of the new level.
    pub index: usize,
    /// The last point of the old level.
    pub after: String,
    /// The first point of the new level.
    pub at: String,
    /// Old level.
    pub from: f64,
    /// New level.
    pub to: f64,
    /// New level / old level, with its 95 % interval.
    pub ratio: Estimate,
    /// Probability that a series without this change would show one as clear anywhere.
    pub p: f64,
    /// Where a later level is back at the old one or beyond.
    pub made_good: Option<String>,
    /// Other changes at this point, most likely cause first.
    pub causes: Vec<Cause>,
}

impl Found {
    /// Whether it became slower.
    pub fn is_regression(&self) -> bool {
        self.ratio.median < 1.0
    }

    /// Whether the interval excludes that both levels are equal.
    pub fn is_proven(&self) -> bool {
        self.ratio.side_of(1.0).is_some()
    }

    fn unproven(&self) -> String {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let interval = match (self.ratio.low, self.ratio.high) {
            (Some(low), Some(high)) => format!(
                "its 95 % interval {:+.1}..{:+.1} % includes 0",
                percent(low),
                percent(high)
            ),
            _ => "it has no interval".into(),
        };
        format!(
            "the level may have changed by {:+.1} % at {}, but {interval}: neither slower nor faster is proven",
            100.0 * self.relative(),
            self.at
        )
    }

    /// New level / old level - 1.
    pub fn relative(&self) -> f64 {
        self.ratio.median - 1.0
    }
}

/// A point off its level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlier {
    /// Index of the point.
    pub index: usize,
    /// Where it stands.
    pub place: String,
    /// The figure.
    pub value: f64,
    /// Relative to its level.
    pub relative: f64,
}

impl Judged {
    /// The largest loss, negative; 0 without losses.
    pub fn worst(&self) -> f64 {
        self.changes
            .iter()
            .map(|c| c.relative())
            .fold(0.0, f64::min)
    }
}

/// Judges every time line. Calls `each` with the index before each of them.
pub fn judge(timelines: &[Timeline], mut each: impl FnMut(usize)) -> History {
    let mut judged: Vec<Judged> = Vec::with_capacity(timelines.len());
    let mut expected = 0.0;
    for (index, timeline) in timelines.iter().enumerate() {
        each(index);
        let (one, level) = self::timeline(timeline);
        expected += if one.p.is_some() { level } else { 0.0 };
        judged.push(one);
    }
    let long_enough = judged.iter().filter(|j| j.p.is_some()).count();
    // Stable: those without a regression stay in the order of their keys.
    judged.sort_by(|a, b| a.worst().total_cmp(&b.worst()));
    History {
        timelines: judged,
        long_enough,
        expected_by_chance: expected,
    }
}

fn timeline(timeline: &Timeline) -> (Judged, f64) {
    let points = &timeline.points;
    if timeline.key.tester {
        let (mut judged, level) = followed(timeline, "rate", points, |p| p.rate);
        judged.of_the_machine = std::mem::take(&mut judged.changes);
        judged.overall = None;
        return (judged, level);
    }
    let Some(to) = reference(points) else {
        return followed(timeline, "rate", points, |p| p.rate);
    };
    let ratio = |p: &Point| p.relative.as_ref().filter(|r| r.to == to).map(|r| r.figure);
    let known: Vec<Point> = points
        .iter()
        .filter(|p| ratio(p).is_some())
        .cloned()
        .collect();
    let (mut judged, level) = followed(timeline, &format!("ratio to {to}"), &known, |p| {
        ratio(p).unwrap_or(p.rate)
    });
    let (by_rate, _) = followed(timeline, "rate", &known, |p| p.rate);
    judged.of_the_machine = by_rate
        .changes
        .into_iter()
        .filter(|c| !judged.changes.iter().any(|j| same(j, c)))
        .collect();
    let lost = points.len() - known.len();
    if lost > 0 {
        judged.warnings.push(format!(
            "{lost} points have no ratio to {to}, and are left out"
        ));
    }
    (judged, level)
}

/// The common reference of nearly all points.
fn reference(points: &[Point]) -> Option<String> {
    let to = &points.iter().find_map(|p| p.relative.as_ref())?.to;
    let with = points
        .iter()
        .filter(|p| p.relative.as_ref().is_some_and(|r| r.to == *to))
        .count();
    (with as f64 >= MOSTLY * points.len() as f64).then(|| to.clone())
}

/// Whether two changes are one: at the same place, in the same direction.
fn same(a: &Found, b: &Found) -> bool {
    a.index == b.index && a.is_regression() == b.is_regression()
}

fn followed(
    timeline: &Timeline,
    measure: &str,
    points: &[Point],
    figure: impl Fn(&Point) -> Figure,
) -> (Judged, f64) {
    let figures: Vec<Figure> = points.iter().map(&figure).collect();
    let series: Vec<changepoint::Point> = figures
        .iter()
        .map(|f| changepoint::Point {
            value: f.value,
            error: f.error,
        })
        .collect();
    let found = changepoint::changes(&series, SEED);
    let modes = residual_modes(&found);
    let all = (0..found.changes.len()).map(|i| change(points, &found, i));
    let (changes, unproven): (Vec<Found>, _) = all.partition(Found::is_proven);
    let judged = Judged {
        key: timeline.key.clone(),
        measure: measure.into(),
        points: points
            .iter()
            .zip(&figures)
            .map(|(p, f)| Followed {
                place: p.place.name.clone(),
                figure: *f,
                source: p.source.clone(),
            })
            .collect(),
        p: found.p,
        noise: found.noise,
        levels: found.segments.clone(),
        overall: overall(&found).filter(|_| !changes.is_empty()),
        changes,
        outliers: if modes.is_some() {
            Vec::new()
        } else {
            off_level(points, &figures, &found)
        },
        of_the_machine: Vec::new(),
        warnings: Vec::new(),
    };
    let mut warnings = warnings(points, &judged, &found, modes);
    warnings.extend(unproven.iter().map(Found::unproven));
    (Judged { warnings, ..judged }, found.level)
}

fn overall(found: &Changes) -> Option<f64> {
    match found.segments.as_slice() {
        [first, .., last] => Some(last.level.median / first.level.median),
        _ => None,
    }
}

fn change(points: &[Point], found: &Changes, i: usize) -> Found {
    let change = &found.changes[i];
    let (old, new) = (found.segments[i].level, found.segments[i + 1].level);
    let down = new.median < old.median;
    // Back within the old level's interval, or beyond it.
    let back = |v: f64| {
        if down {
            Some(v) >= old.low
        } else {
            old.high.is_none_or(|high| v <= high)
        }
    };
    let later = found
        .segments
        .iter()
        .skip(i + 2)
        .find(|s| back(s.level.median));
    let name = |index: usize| {
        points
            .get(index)
            .map(|p| p.place.name.clone())
            .unwrap_or_default()
    };
    Found {
        index: change.at,
        after: name(change.at - 1),
        at: name(change.at),
        from: old.median,
        to: new.median,
        ratio: change.ratio,
        p: change.p,
        made_good: later.filter(|_| down).map(|s| name(s.start)),
        causes: causes(points, change.at),
    }
}

/// The two modes of the relative residuals around the levels.
fn residual_modes(found: &Changes) -> Option<(f64, f64)> {
    let modes = two_modes(&sorted(found.residuals.iter().copied()))?;
    Some((modes.low, modes.high))
}

fn off_level(points: &[Point], figures: &[Figure], found: &Changes) -> Vec<Outlier> {
    let all = outliers(&found.residuals, &sorted(found.residuals.iter().copied()));
    all.farthest
        .iter()
        .map(|o| Outlier {
            index: o.point - 1,
            place: points[o.point - 1].place.name.clone(),
            value: figures[o.point - 1].value,
            relative: o.value,
        })
        .collect()
}

fn warnings(
    points: &[Point],
    judged: &Judged,
    found: &Changes,
    modes: Option<(f64, f64)>,
) -> Vec<String> {
    let n = points.len();
    let mut out = Vec::new();
    if found.p.is_none() {
        out.push(format!(
            "{n} points are too few: from {FEWEST} on a change can be shown"
        ));
    }
    if let Some((low, high)) = modes {
        out.push(format!(
            "the points gather in two modes, {:.1} % below and {:.1} % above the level: a change that is no larger may be another mode",
            -100.0 * low,
            100.0 * high
        ));
    }
    if neighbours_alike(&found.residuals).is_some_and(|p| p < LEVEL) {
        out.push("neighbouring points are alike beyond the changes found (a slow drift, or a level missed): changes are found more often than they should be".into());
    }
    if found.changes.is_empty() {
        out.extend(slow(points, judged));
    }
    out.extend(gap(points));
    out.extend(setups(points));
    out.extend(at_the_end(judged));
    if found.thinned > 1 {
        out.push(format!(
            "{n} points are many: {} neighbours at a time were taken together to look for changes",
            found.thinned
        ));
    }
    out
}

/// A trend without a step.
fn slow(points: &[Point], judged: &Judged) -> Option<String> {
    let values: Vec<f64> = judged.points.iter().map(|p| p.figure.value).collect();
    let trend = mann_kendall(&values).filter(|t| t.p < LEVEL && points.len() >= FEWEST)?;
    let third = values.len() / 3;
    let (first, last) = (
        linerate_stats::median(&values[..third])?,
        linerate_stats::median(&values[values.len() - third..])?,
    );
    Some(format!(
        "no step, but a slow {}: {:+.1} % from the first third to the last",
        if trend.tau > 0.0 { "rise" } else { "decline" },
        100.0 * (last / first - 1.0)
    ))
}

/// The largest gap between neighbouring revisions or days.
fn gap(points: &[Point]) -> Option<String> {
    let steps: Vec<f64> = points
        .windows(2)
        .map(|w| distance(&w[0], &w[1]))
        .collect::<Option<_>>()?;
    let usual = linerate_stats::median(&steps).filter(|u| *u > 0.0 && steps.len() >= FEWEST)?;
    let (at, largest) = steps.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    (*largest > GAP * usual).then(|| {
        format!(
            "a gap of {:.0} times the usual distance between {} and {}",
            largest / usual,
            points[at].place.name,
            points[at + 1].place.name
        )
    })
}

/// Distance of points: commits or days. Across releases there is no such measure.
fn distance(a: &Point, b: &Point) -> Option<f64> {
    match (&a.place.revision, &b.place.revision) {
        (Some(old), Some(new)) if a.place.release.is_none() => Some(f64::from(new.since(old)?)),
        (None, None) => Some(revision::days(&b.place.name)? - revision::days(&a.place.name)?),
        _ => None,
    }
}

fn setups(points: &[Point]) -> Option<String> {
    let mixed = mixed_setup(points);
    (!mixed.is_empty()).then(|| {
        format!(
            "the set-up is not the same at all points, and changes may be due to that: {}",
            mixed.join(", ")
        )
    })
}

/// A possible change that begins with the newest points.
fn at_the_end(judged: &Judged) -> Option<String> {
    let n = judged.points.len();
    let last: Vec<&Outlier> = judged
        .outliers
        .iter()
        .filter(|o| o.index + 2 >= n)
        .collect();
    let newest = last.last().filter(|o| o.index + 1 == n)?;
    let many = if last.len() == 2 {
        "the last two points are"
    } else {
        "the last point is"
    };
    Some(format!(
        "{many} off the level ({}: {:+.1} %): an outlier, or the beginning of a change; three points tell",
        newest.place,
        100.0 * newest.relative
    ))
}

#[cfg(test)]
mod tests;
