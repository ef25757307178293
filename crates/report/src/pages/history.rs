//! Time lines with their changes: regressions first, then improvements, then each time line that changed with a plot, and
//! one line for each that did not.

#[cfg(test)]
mod tests;

use super::numbers::{counted, fixed, percent, significant};
use super::results::changes::{change, change_interval};
use crate::document::{Cell, Document, Level, Point, Strip, Table, Tone};
use crate::format::letter;
use linerate_measure::history::campaigns::DROPPED;
use linerate_measure::history::facts::Cause;
use linerate_measure::history::{Followed, Found, History, Judged};
use linerate_stats::Estimate;

/// Short time lines are listed one by one up to this number.
const LISTED: usize = 20;

/// Most causes that the page names for each change.
const CAUSES: usize = 6;

/// The page of `linerate history`. ASCII only.
pub fn history(history: &History) -> Document {
    let mut page = Document::default();
    if history.timelines.iter().any(|t| t.key.simulated) {
        let loud = "SIMULATED: some of the figures below are of a simulated DUT inside linerate, NOT of any machine.";
        page.paragraph(loud, Tone::Warning);
        page.gap();
    }
    page.paragraph(&answer(history), Tone::Strong);
    list(&mut page, history, "Regressions, largest first", Found::is_regression);
    list(&mut page, history, "Improvements, largest first", |c| !c.is_regression());
    let changed = history.timelines.iter().filter(|t| !t.changes.is_empty());
    changed.for_each(|t| timeline(&mut page, t));
    unchanged(&mut page, history);
    short(&mut page, history);
    page
}

fn answer(history: &History) -> String {
    let all = || history.timelines.iter().flat_map(|t| &t.changes);
    let (down, up) =
        (all().filter(|c| c.is_regression()).count(), all().filter(|c| !c.is_regression()).count());
    let changed = history.timelines.iter().filter(|t| !t.changes.is_empty()).count();
    if history.long_enough == 0 {
        let total = counted(history.timelines.len(), "time line");
        return format!("{total}, too short to show a change: 8 points are needed.");
    }
    let enough = counted(history.long_enough, "time line");
    if changed == 0 {
        return format!("No change found in {enough}.");
    }
    let chance = match history.expected_by_chance {
        e if e < 0.2 => String::new(),
        e => {
            format!(" By chance alone about {e:.1} of the {enough} with enough points would seem to change.")
        }
    };
    let found = format!("{} and {}", counted(down, "regression"), counted(up, "improvement"));
    format!("{found} in {}.{chance}", counted(changed, "time line"))
}

/// The changes of one direction as a table.
fn list(page: &mut Document, history: &History, title: &str, wanted: fn(&Found) -> bool) {
    let mut rows: Vec<(&Judged, &Found, char)> = history
        .timelines
        .iter()
        .flat_map(|t| t.changes.iter().enumerate().map(move |(i, c)| (t, c, letter(i))))
        .filter(|(_, change, _)| wanted(change))
        .collect();
    if rows.is_empty() {
        return;
    }
    let size = |c: &Found| c.relative.value.abs();
    rows.sort_by(|a, b| size(b.1).total_cmp(&size(a.1)));
    page.heading(title);
    let table = Table::of(rows)
        .column("what", "", |(t, _, mark)| format!("{} ({mark}): {}", t.key.what(), t.key.place()))
        .column("at", "", |(_, c, _)| short_time(&c.at))
        .column("change", "%", |(_, c, _)| change(&ratio(c)))
        .column("95 %", "interval", |(_, c, _)| change_interval(&ratio(c)))
        .column("from", "", |(t, c, _)| Cell::Number { value: c.from, text: level(t, c.from) })
        .column("to", "", |(t, c, _)| Cell::Number { value: c.to, text: level(t, c.to) })
        .optional("p", "", |(_, c, _)| fixed(c.p, 3));
    page.table(table);
}

/// To the minute: a campaign lasts longer than a second.
fn short_time(place: &str) -> &str {
    let time = place.len() == 20 && place.ends_with('Z') && place.is_ascii();
    if time { &place[..16] } else { place }
}

/// A relative change in percent with its sign.
fn signed(relative: f64) -> String {
    let value = 100.0 * relative;
    format!("{value:+.*}", if value.abs() < 9.95 { 1 } else { 0 })
}

fn ratio(change: &Found) -> Estimate {
    let linerate_stats::changepoint::Interval { value, low, high } = change.relative;
    Estimate { median: 1.0 + value, low: Some(1.0 + low), high: Some(1.0 + high), n: 0 }
}

fn is_rate(timeline: &Judged) -> bool {
    timeline.measure == "rate"
}

/// A rate, or a ratio in percent.
fn level(timeline: &Judged, value: f64) -> String {
    if is_rate(timeline) { rate(value) } else { format!("{} %", percent(value)) }
}

fn rate(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} Mpps", significant(v / 1e6, 4)),
        v if v >= 1e3 => format!("{} kpps", significant(v / 1e3, 4)),
        v => format!("{} pps", significant(v, 4)),
    }
}

fn timeline(page: &mut Document, timeline: &Judged) {
    page.heading(&format!("{}: {}", timeline.key.what(), timeline.key.place()));
    let followed = if is_rate(timeline) { "forwarding rate".to_string() } else { timeline.measure.clone() };
    let overall = timeline
        .overall
        .map_or(String::new(), |o| format!("; from the first level to the last {} %", signed(o - 1.0)));
    let points = counted(timeline.points.len(), "point");
    let noise = significant(100.0 * timeline.noise, 2);
    page.paragraph(&format!("{followed}, {points}, noise {noise} %{overall}"), Tone::Note);
    page.strip(strip(timeline));
    for (i, change) in timeline.changes.iter().enumerate() {
        tell(page, timeline, change, &format!("{}  ", letter(i)));
    }
    of_the_machine(page, timeline, "-  ");
    for outlier in &timeline.outliers {
        let off = format!(
            "{}: {} is {} % off its level",
            short_time(&outlier.place),
            level(timeline, outlier.value),
            signed(outlier.relative)
        );
        page.item("o  ", &off, Tone::Note);
    }
    timeline.warnings.iter().for_each(|w| page.item("!  ", w, Tone::Warning));
}

fn strip(timeline: &Judged) -> Strip {
    let outlier = |i| timeline.outliers.iter().any(|o| o.index == i);
    let point = |(i, p): (usize, &Followed)| Point {
        name: short_time(&p.place).into(),
        value: p.figure.value,
        outlier: outlier(i),
    };
    let (least, greatest) = extremes(timeline);
    Strip {
        points: timeline.points.iter().enumerate().map(point).collect(),
        levels: timeline
            .levels
            .iter()
            .map(|l| Level { start: l.start, end: l.end, value: l.value.value })
            .collect(),
        changes: timeline.changes.iter().map(|c| c.index).collect(),
        labels: [level(timeline, greatest), level(timeline, least)],
    }
}

/// Changes that only the absolute rate shows.
fn of_the_machine(page: &mut Document, timeline: &Judged, mark: &str) {
    for change in &timeline.of_the_machine {
        let causes = told(&change.causes, timeline.points.len()).map_or(String::new(), |c| format!(". {c}"));
        let text = format!(
            "the rate itself went by {} % at {} ({} -> {}), which the ratio does not show: the machine or the tester changed there, not what is measured{causes}",
            signed(change.relative.value),
            short_time(&change.at),
            rate(change.from),
            rate(change.to),
        );
        page.item(mark, &text, Tone::Note);
    }
}

/// One change in words.
fn tell(page: &mut Document, timeline: &Judged, change: &Found, mark: &str) {
    // A lower rate because of drops does not mean that a frame takes longer.
    let dropped = change.causes.iter().any(|c| c.what == DROPPED);
    let direction = match (change.is_regression(), dropped) {
        (true, false) => "slower",
        (false, false) => "faster",
        (true, true) => "less passes",
        (false, true) => "more passes",
    };
    let mut text = format!(
        "{} % {direction} from {} on (last before: {}): {} -> {}, 95 % interval {}..{} %, p = {:.3}",
        signed(change.relative.value.abs()).trim_start_matches('+'),
        short_time(&change.at),
        short_time(&change.after),
        level(timeline, change.from),
        level(timeline, change.to),
        signed(change.relative.low),
        signed(change.relative.high),
        change.p
    );
    text += &at_first(timeline, change);
    if let Some(place) = &change.made_good {
        text += &format!("; repaired from {} on", short_time(place));
    }
    let ink = if change.is_regression() { Tone::Strong } else { Tone::Plain };
    page.item(mark, &text, ink);
    let causes = told(&change.causes, timeline.points.len());
    page.item("   ", &causes.unwrap_or("Nothing recorded changed there.".into()), Tone::Plain);
}

/// The points of a short level one by one; of a longer one the first, if that is an outlier.
fn at_first(timeline: &Judged, change: &Found) -> String {
    let points = &timeline.points;
    let end = timeline.levels.iter().find(|l| l.start == change.index).map_or(change.index, |l| l.end);
    let length = end - change.index;
    if (1..=5).contains(&length) && end < points.len() {
        let values = points[change.index..end].iter().map(|p| level(timeline, p.figure.value));
        return format!("; for {length} points: {}", values.collect::<Vec<_>>().join(", "));
    }
    match timeline.outliers.iter().find(|o| o.index == change.index) {
        Some(first) => format!("; at first {} %", signed(first.value / change.from - 1.0)),
        None => String::new(),
    }
}

/// Other changes at the same point; `None` without known ones.
fn told(causes: &[Cause], points: usize) -> Option<String> {
    let one = |cause: &Cause| {
        let commits = match cause.commits {
            Some(1) => ", that one commit".to_string(),
            Some(n) => format!(", {n} commits"),
            None => String::new(),
        };
        let often = match cause.elsewhere {
            0 => "nowhere else".to_string(),
            n if n + 2 >= points => "as at every point".to_string(),
            1 => "once elsewhere".to_string(),
            n => format!("{n} times elsewhere"),
        };
        format!("{} {} -> {}{commits} ({often})", cause.what, cause.before, cause.after)
    };
    let told: Vec<String> = causes.iter().take(CAUSES).map(one).collect();
    let more = match causes.len().saturating_sub(CAUSES) {
        0 => String::new(),
        n => format!("; and {n} more (--json)"),
    };
    let order = if causes.len() > 1 { ", most likely cause first" } else { "" };
    (!causes.is_empty()).then(|| format!("Changed there{order}: {}{more}", told.join("; ")))
}

fn range(timeline: &Judged) -> String {
    let (least, greatest) = extremes(timeline);
    format!("{}..{}", level(timeline, least), level(timeline, greatest))
}

/// The least and the greatest value.
fn extremes(timeline: &Judged) -> (f64, f64) {
    let values = || timeline.points.iter().map(|p| p.figure.value);
    (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
}

fn unchanged(page: &mut Document, history: &History) {
    let quiet: Vec<&Judged> =
        history.timelines.iter().filter(|t| t.changes.is_empty() && t.p.is_some()).collect();
    if quiet.is_empty() {
        return;
    }
    page.heading("Without a change");
    for timeline in quiet {
        let points = counted(timeline.points.len(), "point");
        let line = format!(
            "{}: {}: {points}, {}, noise {} %, p = {:.2}",
            timeline.key.what(),
            timeline.key.place(),
            range(timeline),
            significant(100.0 * timeline.noise, 2),
            timeline.p.unwrap_or(1.0)
        );
        page.item("=  ", &line, Tone::Plain);
        of_the_machine(page, timeline, "   -  ");
        timeline.warnings.iter().for_each(|w| page.item("   !  ", w, Tone::Warning));
    }
}

fn short(page: &mut Document, history: &History) {
    let short: Vec<&Judged> = history.timelines.iter().filter(|t| t.p.is_none()).collect();
    if short.is_empty() {
        return;
    }
    page.heading("Too few points to show a change (8 are needed)");
    if short.len() > LISTED {
        page.paragraph(&format!("{} (--json lists them)", counted(short.len(), "time line")), Tone::Plain);
        return;
    }
    for timeline in short {
        let points = counted(timeline.points.len(), "point");
        let line =
            format!("{}: {}: {points}, {}", timeline.key.what(), timeline.key.place(), range(timeline));
        page.item("?  ", &line, Tone::Plain);
    }
}
