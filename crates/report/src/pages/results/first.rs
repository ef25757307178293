//! The first page: the answer on one screen. The whole page has everything else.

use super::super::plan::{departures, titled};
use super::changes::{change, change_interval};
use super::trust::trust;
use super::{Shown, benchmarks, bisection, end_hosts, flood, has_rate, kept, searches, stability};
use super::{answer, compared};
use crate::format::Style;
use crate::prelude::*;
use linerate_explain::DOUBTS;
use linerate_measure::experiment::Measure;
use linerate_measure::record::{Benchmarked, Figures, Finding, Strength};

/// Lines of the first page at most, on a terminal of 80 columns.
pub const LINES: usize = 24;
const COLUMNS: usize = 80;
/// Characters of a warning.
const SHORT: usize = 140;
/// Characters of the limits, and of the reason why something has no figure.
const REASON: usize = 240;

/// How much of a campaign the page shows.
#[derive(Clone, Copy)]
struct Room {
    sentences: usize,
    warnings: usize,
    notes: usize,
    /// Commands to go on with.
    next: usize,
    /// Lines about the rules that frames pass.
    rules: usize,
    /// Whether lines about the table of connections, and the memory that it takes, are shown.
    tables: bool,
    rows: usize,
}

/// The page of the campaign whose records are in this folder.
pub fn first(page: &Document, shown: &Shown<'_>, records: &str) -> Document {
    // Rows that were asked for come before notes, warnings and further sentences; the answer itself before rows; and answers before
    // commands to go on with.
    let ample = [
        (5, 3, 2, 3, 4),
        (5, 2, 1, 3, 4),
        (4, 3, 2, 3, 4),
        (4, 2, 1, 3, 4),
        (5, 1, 0, 3, 4),
        (4, 1, 0, 3, 4),
        (5, 1, 0, 1, 4),
        (4, 1, 0, 1, 4),
        (3, 1, 0, 1, 3),
        (2, 1, 0, 1, 2),
    ];
    let scarce = [
        (2, 1, 0, 3, 2),
        (2, 1, 0, 1, 1),
        (2, 0, 0, 1, 1),
        (1, 1, 0, 1, 1),
        (1, 0, 0, 1, 1),
    ];
    let rooms = [
        (&ample[..], 4, true),
        (&scarce[..], 4, true),
        (&scarce[1..], 4, false),
        (&scarce[..], 2, true),
        (&scarce[..], 0, true),
    ];
    let rooms = rooms.into_iter().flat_map(|(rooms, least, tables)| {
        (least..=12).rev().flat_map(move |rows| {
            rooms
                .iter()
                .map(move |&(sentences, warnings, notes, next, rules)| Room {
                    sentences,
                    warnings,
                    notes,
                    next,
                    rules,
                    tables,
                    rows,
                })
        })
    });
    let pages = rooms.map(|room| with(page, shown, records, room));
    let style = Style {
        color: false,
        width: COLUMNS,
    };
    let mut last = Document::default();
    for page in pages {
        if page.text(style).lines().count() <= LINES {
            return page;
        }
        last = page;
    }
    last
}

fn with(before: &Document, shown: &Shown<'_>, records: &str, room: Room) -> Document {
    let mut page = before.clone();
    begin(&mut page, shown, room);
    page.gap();
    table_of(&mut page, shown, room.rows);
    page.gap();
    let summary = shown.summary;
    let bisects = summary.bisection.is_some();
    if summary.benchmarks.is_empty() && summary.searches.is_empty() && !bisects {
        page.fact("limit", limits(shown));
        page.fact(shown.word(["latency", "to open", "answer"]), latency(shown));
        if room.tables {
            page.fact("table", flood::lasting(shown));
            page.fact("memory", kept::memory(shown));
        }
    }
    page.fact("cause", cause(shown, records));
    if let Some(filters) = super::filters::filters(shown).filter(|words| words != "none") {
        page.fact("filter", short(&filters));
    }
    let passed = super::figures::passed(shown);
    let rules = if bisects { 0 } else { room.rules };
    let more = passed.len().saturating_sub(rules);
    for (at, (text, slots)) in passed.into_iter().enumerate().take(rules) {
        let names: Vec<String> = slots.into_iter().map(|slot| shown.name(slot)).collect();
        let label = when(at == 0, "rules");
        let more = when(
            at + 1 == rules && more > 0,
            format!("; {more} more with --full"),
        );
        page.fact(label, format!("{}: {text}{more}", listed(&names)));
    }
    page.fact("expected", expected(shown));
    let warnings: Vec<String> = warnings(shown).iter().map(|text| short(text)).collect();
    match (warnings.len(), room.warnings) {
        (0, _) => page.fact("warnings", "none"),
        (n, 0) => page.fact("warnings", format!("{n}, on the whole page")),
        (n, most) => {
            let shown = warnings.into_iter().take(most);
            shown.for_each(|text| page.item("warning  ", text, Tone::Warning));
            if n > most {
                let more = format!("{} more: linerate show {records} --full", n - most);
                page.item("warning  ", more, Tone::Note);
            }
        }
    }
    // How large batches are was measured for the tester's sake.
    let notes = shown
        .campaign
        .notes
        .iter()
        .filter(|note| !note.starts_with("batch size"));
    notes
        .take(room.notes)
        .for_each(|note| page.fact("note", note));
    let mut commands = next(shown, records);
    if room.next < 2 {
        commands.retain(|command| command.ends_with("--full"));
    }
    for (at, command) in commands.into_iter().enumerate() {
        page.entry(if at == 0 { "next     " } else { "         " }, command);
    }
    page.fact("records", records);
    page
}

/// The answer, what lacks one, and whether to trust it.
fn begin(page: &mut Document, shown: &Shown<'_>, room: Room) {
    if shown.planned.file.is_some() {
        page.say(titled(&shown.planned.experiment));
    }
    let missing = answer::missing(shown)
        .into_iter()
        .chain(answer::unmeasured(shown));
    page.items(
        "",
        missing.map(|text| cut(&text, REASON)),
        Tone::Warning,
        (room.warnings.max(1), " without a result"),
    );
    if !shown.summary.benchmarks.is_empty() {
        page.say(departures(
            &shown.planned.experiment,
            benchmarks::sizes(shown),
        ));
    }
    sentences(shown)
        .into_iter()
        .take(room.sentences)
        .for_each(|sentence| page.answer(sentence));
    page.fact("trust", trust(shown));
    page.fact("low load", short(&stability::line(shown)));
}

/// The one table of the page.
fn table_of(page: &mut Document, shown: &Shown<'_>, rows: usize) {
    if !shown.summary.benchmarks.is_empty() {
        tests(page, shown, rows);
    } else if !shown.summary.searches.is_empty() {
        goals(page, shown, rows);
    } else if let Some(found) = &shown.summary.bisection {
        first_rows(page, bisection::table(shown, found), rows);
    } else if shown.is_of_end_hosts() {
        first_rows(page, end_hosts::short(shown), rows);
    } else if kept::has_rows(shown) {
        first_rows(page, kept::table(shown, false), rows);
    } else if flood::has_rows(shown) {
        first_rows(page, flood::table(shown, flood::flooded(shown)), rows);
        page.fact("table", flood::left_out(shown));
    } else {
        cells(page, shown, rows);
    }
}

/// Limits of the results: tests and cells without a figure, then warnings.
fn warnings(shown: &Shown<'_>) -> Vec<String> {
    let tests = shown.summary.benchmarks.iter().flat_map(|of| {
        let without = of
            .tests
            .iter()
            .filter_map(|tested| Some((tested.test, tested.why?)));
        without.map(|(test, why)| {
            format!(
                "{}, {}: {}",
                shown.name(of.slot),
                test.title(),
                why.words(test)
            )
        })
    });
    let broken = [Stopped::Interrupted, Stopped::Failed].contains(&shown.summary.stopped);
    let broken = broken.then(|| format!("the campaign is not whole: {}", shown.summary.ended()));
    broken
        .into_iter()
        .chain(tests)
        .chain(super::skips(shown))
        .chain(super::warned(shown, 1))
        .collect()
}

/// A text of one or two lines: the whole page has the rest of it.
fn short(text: &str) -> String {
    cut(text, SHORT)
}

/// The first words of a text, at most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    let cut: String = text.chars().take(most).collect();
    format!(
        "{} ...",
        cut.rsplit_once(' ')
            .map_or(cut.as_str(), |(begin, _)| begin)
    )
}

/// The answer, the most important sentence first.
fn sentences(shown: &Shown<'_>) -> Vec<String> {
    let summary = shown.summary;
    if !summary.benchmarks.is_empty() {
        let nearly = benchmarks::nearly(shown);
        return benchmarks::single(shown)
            .into_iter()
            .chain(nearly)
            .collect();
    }
    if !summary.searches.is_empty() {
        return searches::sentences(shown);
    }
    if let Some(found) = &summary.bisection {
        return bisection::sentences(shown, found);
    }
    let first = if shown.is_of_end_hosts() {
        end_hosts::sentence(shown)
    } else {
        answer::rate(shown)
    };
    kept::sentences(shown)
        .into_iter()
        .chain([first])
        .chain(compared::compared(shown))
        .chain(answer::open(shown))
        .collect()
}

/// The trust and the table of the first page, for the whole page.
pub fn top(page: &mut Document, shown: &Shown<'_>) {
    page.fact("trust", trust(shown));
    cells(page, shown, usize::MAX);
}

/// The table of rates.
fn cells(page: &mut Document, shown: &Shown<'_>, most: usize) {
    let unit = shown.unit();
    let mut rows: Vec<&Row> = shown.with_dut().collect();
    if rows.is_empty() {
        rows = shown.rows().filter(|row| row.trials > 0).collect();
    }
    let gigabits = |bits: f64| number(bits / 1e9, 3);
    // A calculated figure beside the measured one of the same length would differ.
    let measured_1518 = rows
        .iter()
        .filter_map(|row| shown.slot(row.slot))
        .any(|slot| slot.lengths_fcs == [1518]);
    let paced = |row: &Row| {
        shown
            .slot(row.slot)
            .is_none_or(|slot| slot.asked_fps.is_some())
    };
    let table = Table::of(rows.iter().copied())
        .column("", "", |r| shown.name(r.slot))
        .column("rate", unit.name, |r| unit.median(&r.received))
        .column("95 %", "interval", |r| {
            if has_rate(r) {
                unit.interval(&r.received)
            } else {
                "no valid trial".into()
            }
        })
        .when(shown.loses(), |table| {
            let [lost, of] = shown.loss_head();
            table.column(lost, of, |r| shown.lost(r.slot))
        })
        .if_any("change", "%", |r| {
            let ratio = r.baseline?.ratio?;
            Some(match (change_interval(&ratio), ratio.side_of(1.0)) {
                (Some(_), Some(_)) => change(&ratio),
                (Some(interval), None) => interval,
                (None, _) => "too few".into(),
            })
        })
        .if_any("ns per", shown.word(["frame", "conn.", "request"]), |r| {
            (!paced(r) && r.ns_per_frame > 0.0).then(|| number(r.ns_per_frame, 3))
        })
        .optional_if_any("Gbit/s", "of objects", |r| {
            r.http.map(|http| gigabits(http.payload))
        })
        .when(!shown.sends_frames(), |table| {
            let [of, what] = match shown.opens_connections() {
                true => ["time to", "open p50"],
                false => ["time to", "answer p50"],
            };
            table
                .optional_if_any(of, what, |r| {
                    r.latency_ns.get("p50").map(|ns| span(*ns as f64))
                })
                .optional_if_any("", "p99", |r| {
                    r.latency_ns.get("p99").map(|ns| span(*ns as f64))
                })
        })
        .when(shown.sends_frames(), |table| {
            table
                .optional("Gbit/s", "layer 2", |r| {
                    has_rate(r).then(|| gigabits(r.bits_layer_2))
                })
                .when(!measured_1518, |table| {
                    table.optional("calculated", "at 1518 B", |r| {
                        has_rate(r).then(|| gigabits(r.received.median * 8.0 * 1518.0))
                    })
                })
        });
    first_rows(page, table, most);
    page.fact("changes", references(shown, &rows[..most.min(rows.len())]));
}

/// The references of the changes, where rows have different ones: `row 2 of the table is compared with flows 1; rows 3, 4 with demux 1`.
fn references(shown: &Shown<'_>, rows: &[&Row]) -> String {
    let numbered = rows.iter().zip(1..);
    let told = numbered
        .filter_map(|(row, number)| Some((compared::reference(shown, row)?, number.to_string())));
    let told = together(told);
    if told.len() < 2 {
        return String::new();
    }
    let words = told.iter().enumerate().map(|(at, (reference, rows))| {
        let (word, are) = match rows.len() {
            1 => ("row", "is"),
            _ => ("rows", "are"),
        };
        let verb = when(at == 0, format!(" of the table {are} compared"));
        format!("{word} {}{verb} with {reference}", rows.join(", "))
    });
    short(&words.joined("; "))
}

/// The results of searches.
fn goals(page: &mut Document, shown: &Shown<'_>, most: usize) {
    let table = Table::from(searches::table(shown));
    let rows = table.rows();
    first_rows(page, table, most);
    if rows > 0 {
        page.note(searches::CONDITIONAL);
    }
}

/// The results of RFC 2544's tests, a row for each frame length.
fn tests(page: &mut Document, shown: &Shown<'_>, most: usize) {
    let with_figures = |of: &&Benchmarked| {
        of.tests
            .iter()
            .any(|tested| tested.figures != Figures::None)
    };
    let all: Vec<&Benchmarked> = shown
        .summary
        .benchmarks
        .iter()
        .filter(with_figures)
        .collect();
    let unit = RateUnit::of(all.iter().filter_map(|of| Some(of.maximum?.fps)));
    macro_rules! figure {
        ($kind:ident, $f:ident, $cell:expr) => {
            |of| {
                of.tests.iter().find_map(|tested| match &tested.figures {
                    Figures::$kind($f) => $cell,
                    _ => None,
                })
            }
        };
    }
    let table = Table::of(all.iter().copied())
        .column("", "", |of| shown.name(of.slot))
        .if_any(
            "throughput",
            unit.name,
            figure!(Throughput, f, Some(rate(f.fps, unit.scale, 4))),
        )
        .if_any(
            "latency",
            "mean",
            figure!(Latency, f, Some(span(f.mean_ns))),
        )
        .if_any(
            "burst",
            "frames",
            figure!(BackToBack, f, Some(number(f.mean, 4))),
        )
        .if_any(
            "recovery",
            "mean",
            figure!(Recovery, f, f.mean_ns.map(span)),
        )
        .if_any(
            "reset",
            "by loss",
            figure!(Reset, f, f.by_loss_ns.map(span)),
        );
    first_rows(page, table, most);
}

/// The first rows of a table, and a note of those that are left out; without any row, no heads.
pub(super) fn first_rows(page: &mut Document, table: impl Into<Table>, most: usize) {
    let mut table = table.into();
    let all = table.rows();
    for column in &mut table.columns {
        column.cells.truncate(most);
    }
    if table.rows() > 0 {
        page.table(table);
    }
    match all.saturating_sub(most) {
        0 => {}
        n if n == all => page.note(format!("The table of {n} rows is on the whole page.")),
        1 => page.note("1 more row is on the whole page."),
        n => page.note(format!("{n} more rows are on the whole page.")),
    }
}

/// Limits of the rates, with the cells where these differ.
fn limits(shown: &Shown<'_>) -> String {
    let rows = shown.with_dut();
    let rows = rows.filter(|row| has_rate(row) && row.kept.is_none());
    let told = together(rows.map(|row| (row.limit, row)));
    let one = told.len() == 1;
    let words = |(limit, rows): (Limit, Vec<&Row>)| {
        if one {
            return Some(answer::why(shown, rows[0], shown.slot(rows[0].slot)?));
        }
        let names: Vec<String> = rows.iter().map(|row| shown.name(row.slot)).collect();
        Some(format!(
            "{}: {}",
            super::figures::limit(limit)?,
            listed(&names)
        ))
    };
    cut(&told.into_iter().filter_map(words).joined("; "), REASON)
}

/// Latency of the first cell that has one. Of connections that are kept open, the table has the times.
fn latency(shown: &Shown<'_>) -> String {
    let rows = shown.with_dut();
    let found = rows.filter(|row| row.kept.is_none()).find_map(|row| {
        let at = |name: &str| row.latency_ns.get(name).map(|ns| time(*ns as f64));
        let [median, most] = [at("p50")?, at("p99.9")?];
        let until = when(row.timed_by_client, ", from SYN to SYN/ACK at the client");
        Some(format!(
            "{median} in the median, 99.9 % within {most}{until} ({})",
            shown.name(row.slot)
        ))
    });
    found.unwrap_or_default()
}

/// The strongest finding that the records show, and how many others there are.
fn cause(shown: &Shown<'_>, records: &str) -> String {
    let all = shown
        .summary
        .explanations
        .iter()
        .flat_map(|of| of.findings.iter().map(move |found| (of.slot, found)));
    // A doubt is about the trials: the line of trust has it.
    let is_doubt = |(_, found): &(usize, &Finding)| DOUBTS.contains(&found.cause.as_str());
    let doubted = all.clone().any(|found| is_doubt(&found));
    let all = all.filter(|found| !is_doubt(found));
    let different = |all: &mut dyn Iterator<Item = (usize, &Finding)>| {
        distinct(all.map(|(_, found)| (found.cause.clone(), found.statement.clone()))).len()
    };
    let possible = different(&mut all.clone());
    let all = all.filter(|(_, found)| found.strength > Strength::Possible);
    if all.clone().next().is_none() {
        return match (possible, shown.summary.profiles.len()) {
            (0, 0) => String::new(),
            (0, _) => {
                let none = match doubted {
                    true => "none but what disturbed the trials",
                    false => "none of the known ones",
                };
                format!("{none}; where time goes: linerate explain {records}")
            }
            (n, _) => {
                let causes = counted(n, "possible cause");
                format!("{causes}, none certain: linerate explain {records}")
            }
        };
    }
    let others = different(&mut all.clone()).saturating_sub(1);
    let first = all.max_by(|a, b| {
        a.1.strength
            .cmp(&b.1.strength)
            .then(a.1.weight.total_cmp(&b.1.weight))
    });
    first.map_or(String::new(), |(slot, found)| {
        let more = match others {
            0 => String::new(),
            _ => format!(" ({others} more: linerate explain)"),
        };
        short(&format!("{}: {}", shown.name(slot), found.statement)) + &more
    })
}

/// Expectations by their judgements; the first that was missed by its words.
fn expected(shown: &Shown<'_>) -> String {
    let missed = shown
        .summary
        .expectations
        .iter()
        .filter(|e| e.judgement == Some(Judgement::Missed));
    let missed = missed.take(1).map(|e| -> String {
        let pairs = e.pairs.iter();
        let cells = pairs.filter(|pair| pair.judgement == Some(Judgement::Missed));
        let cells: Vec<String> = cells.map(|pair| shown.name(pair.of)).collect();
        // Of several pairs, those that missed it.
        match e.pairs.len() {
            0 | 1 => e.words.clone(),
            _ => format!("{} (not for {})", e.words, listed(&cells)),
        }
    });
    let all = shown.summary.expectations.len();
    let tally = answer::tallied(shown).unwrap_or_default();
    match missed.last() {
        None => tally,
        Some(words) if all == 1 => format!("MISSED: {}", short(&words)),
        Some(words) => format!("MISSED: {} (of {all} expectations: {tally})", short(&words)),
    }
}

/// Three commands to go on with.
fn next(shown: &Shown<'_>, records: &str) -> Vec<String> {
    let steps =
        linerate_measure::advice::next_steps(shown.campaign, shown.host.cpus, shown.summary);
    let command = |step: String| {
        let at = step.find("sudo linerate").or(step.find("linerate "))?;
        Some(step[at..].replace("DIRECTORY", records))
            .filter(|command| !command.contains(", ") && !command.contains(';'))
    };
    let is_limit = |row: &Row| matches!(row.limit, Limit::Dut | Limit::DutDrops);
    let bisects = shown.summary.bisection.is_some();
    let explain =
        (!bisects && shown.with_dut().any(is_limit)).then(|| format!("linerate explain {records}"));
    let is_claimed = shown.planned.experiment.trials.measure == Measure::Rfc2544;
    let conformance = is_claimed.then(|| format!("linerate conformance {records}"));
    let own = conformance
        .into_iter()
        .chain(explain)
        .chain(steps.into_iter().filter_map(command).take(1));
    let others = [
        format!("linerate show {records} --full"),
        format!("linerate show {records} --format html -o page.html"),
    ];
    own.chain(others).take(3).collect()
}
