//! Time lines with their changes: regressions first, then improvements, then each time line that changed with a plot, and
//! one line for each that did not.

mod strip;
#[cfg(test)]
mod tests;

use super::numbers::{counted, percent, significant};
use super::page::{Ink, Page, Style, Table};
use linerate_measure::history::campaigns::DROPPED;
use linerate_measure::history::facts::Cause;
use linerate_measure::history::{Found, History, Judged};

/// Short time lines are listed one by one up to this number.
const LISTED: usize = 20;

/// Causes that are told of each change.
const CAUSES: usize = 6;

/// What `linerate history` prints. ASCII only.
pub fn history(history: &History, style: Style) -> String {
    let mut page = Page::new(style);
    if history.timelines.iter().any(|t| t.key.machine == "SIMULATED") {
        let loud = "SIMULATED: some of the figures below are of a simulated DUT inside linerate, NOT of any machine.";
        page.paragraph(loud, Ink::Warning);
        page.gap();
    }
    page.paragraph(&answer(history), Ink::Bold);
    list(&mut page, history, "Regressions, largest first", Found::is_regression);
    list(&mut page, history, "Improvements, largest first", |c| !c.is_regression());
    let changed = history.timelines.iter().filter(|t| !t.changes.is_empty());
    changed.for_each(|t| timeline(&mut page, t, style.width));
    unchanged(&mut page, history);
    short(&mut page, history);
    page.finish()
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
fn list(page: &mut Page, history: &History, title: &str, wanted: fn(&Found) -> bool) {
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
    let mut table = Table::default()
        .column("what", "")
        .column("at", "")
        .column("change", "%")
        .column("95 %", "interval")
        .column("from", "")
        .column("to", "")
        .optional("p", "");
    for (timeline, change, mark) in rows {
        table.row(vec![
            format!("{} ({mark}): {}", timeline.key.what(), timeline.key.place()),
            short_time(&change.at).into(),
            signed(change.relative.value),
            format!("{}..{}", signed(change.relative.low), signed(change.relative.high)),
            level(timeline, change.from),
            level(timeline, change.to),
            format!("{:.3}", change.p),
        ]);
    }
    page.table(&table);
}

/// The mark of change number `i` of a time line.
fn letter(i: usize) -> char {
    char::from(b'a' + (i % 26) as u8)
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

fn timeline(page: &mut Page, timeline: &Judged, width: usize) {
    page.heading(&format!("{}: {}", timeline.key.what(), timeline.key.place()));
    let followed = if is_rate(timeline) { "forwarding rate".to_string() } else { timeline.measure.clone() };
    let overall = timeline
        .overall
        .map_or(String::new(), |o| format!("; from the first level to the last {} %", signed(o - 1.0)));
    let points = counted(timeline.points.len(), "point");
    let noise = significant(100.0 * timeline.noise, 2);
    page.paragraph(&format!("{followed}, {points}, noise {noise} %{overall}"), Ink::Dim);
    for line in strip::strip(timeline, width, |v| level(timeline, v)) {
        page.verbatim(&line, Ink::Plain);
    }
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
        page.item("o  ", &off, Ink::Dim);
    }
    timeline.warnings.iter().for_each(|w| page.item("!  ", w, Ink::Warning));
}

/// What only the absolute rate shows.
fn of_the_machine(page: &mut Page, timeline: &Judged, mark: &str) {
    for change in &timeline.of_the_machine {
        let causes = told(&change.causes, timeline.points.len()).map_or(String::new(), |c| format!(". {c}"));
        let text = format!(
            "the rate itself went by {} % at {} ({} -> {}), which the ratio does not show: the machine or the tester changed there, not what is measured{causes}",
            signed(change.relative.value),
            short_time(&change.at),
            rate(change.from),
            rate(change.to),
        );
        page.item(mark, &text, Ink::Dim);
    }
}

/// One change in words.
fn tell(page: &mut Page, timeline: &Judged, change: &Found, mark: &str) {
    // What passes less because it is dropped is not slower for that.
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
    let ink = if change.is_regression() { Ink::Bold } else { Ink::Plain };
    page.item(mark, &text, ink);
    let causes = told(&change.causes, timeline.points.len());
    page.item("   ", &causes.unwrap_or("Nothing recorded changed there.".into()), Ink::Plain);
}

/// The points of a short level one by one; of a longer one the first, where that is an outlier.
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

/// What else changed; `None` where nothing is known to have.
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
    let values = || timeline.points.iter().map(|p| p.figure.value);
    let (least, greatest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    format!("{}..{}", level(timeline, least), level(timeline, greatest))
}

fn unchanged(page: &mut Page, history: &History) {
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
        page.item("=  ", &line, Ink::Plain);
        of_the_machine(page, timeline, "   -  ");
        timeline.warnings.iter().for_each(|w| page.item("   !  ", w, Ink::Warning));
    }
}

fn short(page: &mut Page, history: &History) {
    let short: Vec<&Judged> = history.timelines.iter().filter(|t| t.p.is_none()).collect();
    if short.is_empty() {
        return;
    }
    page.heading("Too few points to show a change (8 are needed)");
    if short.len() > LISTED {
        page.paragraph(&format!("{} (--json lists them)", counted(short.len(), "time line")), Ink::Plain);
        return;
    }
    for timeline in short {
        let points = counted(timeline.points.len(), "point");
        let line =
            format!("{}: {}: {points}, {}", timeline.key.what(), timeline.key.place(), range(timeline));
        page.item("?  ", &line, Ink::Plain);
    }
}
