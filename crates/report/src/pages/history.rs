//! Time lines with their changes: regressions first, then improvements, then each time line that changed with a plot, and
//! one line for each that did not.

#[cfg(test)]
mod tests;

use super::results::changes::{change, change_interval};
use crate::document::letter;
use crate::document::{Level, Point, Strip};
use crate::prelude::*;
use linerate_measure::history::campaigns::{DROPPED, EMULATED};
use linerate_measure::history::facts::Cause;
use linerate_measure::history::{Followed, Found, History, Judged};

/// Short time lines are listed one by one up to this number.
const LISTED: usize = 20;

/// Most causes that the page names for each change.
const CAUSES: usize = 6;

/// The page of `linerate history`. ASCII only.
pub fn history(history: &History) -> Document {
    let mut page = Document::default();
    let emulated = |key: &linerate_measure::history::Key| key.machine == EMULATED;
    if history.timelines.iter().any(|t| emulated(&t.key)) {
        page.warn("EMULATED: some of the figures below are of a CPU that QEMU emulates, NOT of any machine.");
        page.gap();
    }
    if history
        .timelines
        .iter()
        .any(|t| t.key.simulated && !emulated(&t.key))
    {
        page.warn("SIMULATED: some of the figures below are of a simulated DUT inside linerate, NOT of any machine.");
        page.gap();
    }
    page.answer(answer(history));
    page.append(tables(history, usize::MAX));
    history
        .timelines
        .iter()
        .filter(|t| !t.changes.is_empty())
        .for_each(|t| timeline(&mut page, t));
    unchanged(&mut page, history);
    short(&mut page, history);
    page
}

/// How many changes there are, in a sentence.
pub(super) fn answer(history: &History) -> String {
    let (down, up): (Vec<&Found>, Vec<&Found>) = history
        .timelines
        .iter()
        .flat_map(|t| &t.changes)
        .partition(|change| change.is_regression());
    let changed = history
        .timelines
        .iter()
        .filter(|t| !t.changes.is_empty())
        .count();
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
            format!(
                " By chance alone about {e:.1} of the {enough} with enough points would seem to change."
            )
        }
    };
    let found = format!(
        "{} and {}",
        counted(down.len(), "regression"),
        counted(up.len(), "improvement")
    );
    format!("{found} in {}.{chance}", counted(changed, "time line"))
}

/// The changes of both directions, at most this many of each.
pub(super) fn tables(history: &History, most: usize) -> Document {
    let mut page = Document::default();
    page.section("Regressions, largest first", changes(history, true, most));
    page.section("Improvements, largest first", changes(history, false, most));
    page
}

/// The changes of one direction.
fn changes(history: &History, regressions: bool, most: usize) -> Table {
    let lettered = history.timelines.iter().flat_map(|t| {
        t.changes
            .iter()
            .enumerate()
            .map(move |(i, change)| (t, change, letter(i)))
    });
    let mut rows: Vec<(&Judged, &Found, char)> = lettered.collect();
    rows.retain(|(_, change, _)| change.is_regression() == regressions);
    rows.sort_by(|a, b| b.1.relative().abs().total_cmp(&a.1.relative().abs()));
    rows.truncate(most);
    Table::of(rows)
        .column("what", "", |(t, _, mark)| {
            format!("{} ({mark}): {}", t.key.what(), t.key.place())
        })
        .column("at", "", |(_, c, _)| short_time(&c.at))
        .column("change", "%", |(_, c, _)| change(&c.ratio))
        .column("95 %", "interval", |(_, c, _)| change_interval(&c.ratio))
        .column("from", "", |(t, c, _)| {
            Cell::number(c.from, level(t, c.from))
        })
        .column("to", "", |(t, c, _)| Cell::number(c.to, level(t, c.to)))
        .optional("p", "", |(_, c, _)| fixed(c.p, 3))
        .into()
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

/// A rate, or a ratio in percent.
fn level(timeline: &Judged, value: f64) -> String {
    if timeline.measure == "rate" {
        rate_with_unit(value)
    } else {
        format!("{} %", percent(value))
    }
}

/// A time line with its number of points.
fn title(timeline: &Judged) -> String {
    let points = counted(timeline.points.len(), "point");
    format!(
        "{}: {}: {points}, {}",
        timeline.key.what(),
        timeline.key.place(),
        range(timeline)
    )
}

fn timeline(page: &mut Document, timeline: &Judged) {
    page.heading(format!("{}: {}", timeline.key.what(), timeline.key.place()));
    let followed = if timeline.measure == "rate" {
        "forwarding rate"
    } else {
        &timeline.measure
    };
    let overall = timeline.overall.map_or(String::new(), |o| {
        format!("; from the first level to the last {} %", signed(o - 1.0))
    });
    let points = counted(timeline.points.len(), "point");
    page.note(format!(
        "{followed}, {points}, noise {} %{overall}",
        noise(timeline)
    ));
    page.blocks.push(Block::Strip(strip(timeline)));
    for (i, change) in timeline.changes.iter().enumerate() {
        tell(page, timeline, change, &format!("{}  ", letter(i)));
    }
    of_the_machine(page, timeline, "-  ");
    for outlier in &timeline.outliers {
        let (at, value) = (short_time(&outlier.place), level(timeline, outlier.value));
        let text = format!(
            "{at}: {value} is {} % off its level",
            signed(outlier.relative)
        );
        page.item("o  ", text, Tone::Note);
    }
    timeline
        .warnings
        .iter()
        .for_each(|w| page.item("!  ", w, Tone::Warning));
}

fn noise(timeline: &Judged) -> String {
    significant(100.0 * timeline.noise, 2)
}

fn strip(timeline: &Judged) -> Strip {
    let point = |(i, p): (usize, &Followed)| Point {
        name: short_time(&p.place).into(),
        value: p.figure.value,
        outlier: timeline.outliers.iter().any(|o| o.index == i),
    };
    let levels = timeline.levels.iter().map(|l| Level {
        start: l.start,
        end: l.end,
        value: l.level.median,
    });
    let [least, greatest] = extremes(timeline);
    Strip {
        points: timeline.points.iter().enumerate().map(point).collect(),
        levels: levels.collect(),
        changes: timeline.changes.iter().map(|c| c.index).collect(),
        labels: [level(timeline, greatest), level(timeline, least)],
        figure: match timeline.measure.as_str() {
            "rate" => "forwarding rate, frames/s".into(),
            ratio => ratio.into(),
        },
    }
}

/// Changes that only the absolute rate shows.
fn of_the_machine(page: &mut Document, timeline: &Judged, mark: &str) {
    for change in &timeline.of_the_machine {
        let causes =
            told(&change.causes, timeline.points.len()).map_or(String::new(), |c| format!(". {c}"));
        let [what, why] = match timeline.key.tester {
            true => [
                "the tester alone",
                ": the machine changed there, and no DUT",
            ],
            false => [
                "the rate itself",
                ", which the ratio does not show: the machine or the tester changed there, not what is measured",
            ],
        };
        let text = format!(
            "{what} went by {} % at {} ({} -> {}){why}{causes}",
            signed(change.relative()),
            short_time(&change.at),
            rate_with_unit(change.from),
            rate_with_unit(change.to),
        );
        page.item(mark, text, Tone::Note);
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
    let [low, high] =
        [change.ratio.low, change.ratio.high].map(|end| signed(end.unwrap_or(1.0) - 1.0));
    let text = format!(
        "{} % {direction} from {} on (last before: {}): {} -> {}, 95 % interval {}..{} %, p = {:.3}{}{}",
        signed(change.relative().abs()).trim_start_matches('+'),
        short_time(&change.at),
        short_time(&change.after),
        level(timeline, change.from),
        level(timeline, change.to),
        low,
        high,
        change.p,
        at_first(timeline, change),
        change.made_good.as_deref().map_or(String::new(), |place| {
            format!("; repaired from {} on", short_time(place))
        }),
    );
    page.item(
        mark,
        text,
        if change.is_regression() {
            Tone::Strong
        } else {
            Tone::Plain
        },
    );
    let causes = told(&change.causes, timeline.points.len());
    page.entry(
        "   ",
        causes.unwrap_or("Nothing recorded changed there.".into()),
    );
}

/// The points of a short level one by one; of a longer one the first, if that is an outlier.
fn at_first(timeline: &Judged, change: &Found) -> String {
    let points = &timeline.points;
    let end = timeline
        .levels
        .iter()
        .find(|l| l.start == change.index)
        .map_or(change.index, |l| l.end);
    let length = end - change.index;
    if (1..=5).contains(&length) && end < points.len() {
        let values = points[change.index..end]
            .iter()
            .map(|p| level(timeline, p.figure.value));
        return format!("; for {length} points: {}", values.joined(", "));
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
        format!(
            "{} {} -> {}{commits} ({often})",
            cause.what, cause.before, cause.after
        )
    };
    let order = when(causes.len() > 1, ", most likely cause first");
    let told = some(causes.iter().map(one), CAUSES, "; ");
    (!causes.is_empty()).then(|| format!("Changed there{order}: {told}"))
}

fn range(timeline: &Judged) -> String {
    let [least, greatest] = extremes(timeline);
    format!("{}..{}", level(timeline, least), level(timeline, greatest))
}

/// The least and the greatest value.
fn extremes(timeline: &Judged) -> [f64; 2] {
    ends(timeline.points.iter().map(|p| p.figure.value)).unwrap_or_default()
}

fn unchanged(page: &mut Document, history: &History) {
    let quiet = history.timelines.iter().filter(|t| t.changes.is_empty());
    let quiet = quiet.filter_map(|t| Some((t, t.p?)));
    page.each("Without a change", quiet, |page, (timeline, p)| {
        let text = format!(
            "{}, noise {} %, p = {p:.2}",
            title(timeline),
            noise(timeline)
        );
        page.entry("=  ", text);
        of_the_machine(page, timeline, "   -  ");
        timeline
            .warnings
            .iter()
            .for_each(|w| page.item("   !  ", w, Tone::Warning));
    });
}

fn short(page: &mut Document, history: &History) {
    let short: Vec<&Judged> = history.timelines.iter().filter(|t| t.p.is_none()).collect();
    let heading = "Too few points to show a change (8 are needed)";
    if short.len() > LISTED {
        page.heading(heading);
        page.say(format!(
            "{} (--json lists them)",
            counted(short.len(), "time line")
        ));
    } else {
        page.list(heading, "?  ", short.into_iter().map(title), Tone::Plain);
    }
}
