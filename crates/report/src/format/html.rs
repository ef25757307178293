//! A page for a browser: one file that loads nothing, and needs no script.

mod svg;

use super::{Format, Style, plots};
use crate::chart::{Axis, Chart, Scale};
use crate::document::{Bars, Block, Cell, Document, Table, Tone};
use maud::{DOCTYPE, Markup, PreEscaped, html};

#[derive(Debug)]
pub struct Html;

const STYLE: &str = include_str!("html/page.css");

/// Nothing is loaded, sent or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Columns of a plot.
const WIDTH: usize = 100;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(&self, document: &Document, _: Style) -> String {
        let title = document.title.as_deref().map_or("linerate".into(), plain);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body { main { h1 { (title) } (sections(document)) } }
            }
        };
        page.into_string() + "\n"
    }
}

/// A section from each heading to the next.
fn sections(document: &Document) -> Markup {
    let parts = document.blocks.chunk_by(|_, next| !matches!(next, Block::Heading { .. }));
    html! {
        @for part in parts {
            section { (blocks(part)) }
        }
    }
}

fn blocks(all: &[Block]) -> Markup {
    let kind = |block: &Block| match block {
        Block::Item { mark, .. } if is_name(mark) => 1,
        Block::Item { .. } => 2,
        Block::Code { .. } => 3,
        _ => 0,
    };
    let same = |a: &Block, b: &Block| kind(a) == kind(b) && kind(a) > 0;
    html! {
        @for group in all.chunk_by(same) {
            @match kind(&group[0]) {
                1 => dl { @for block in group { (block_of(block)) } },
                2 => ul { @for block in group { (block_of(block)) } },
                3 => pre { @for block in group { (block_of(block)) } },
                _ => (block_of(&group[0])),
            }
        }
    }
}

/// Whether an item is the value of a name, and not an entry of a list.
fn is_name(mark: &str) -> bool {
    !matches!(mark.trim(), "" | "-" | "!")
}

fn block_of(block: &Block) -> Markup {
    match block {
        Block::Heading { text } => html! { h2 { (plain(text)) } },
        Block::Text { text, tone: Tone::Strong } => html! { p.answer { strong { (plain(text)) } } },
        Block::Text { text, tone } => html! { p class=(class(*tone)) { (plain(text)) } },
        Block::Item { mark, text, tone } if is_name(mark) => {
            html! { dt { (plain(mark.trim())) } dd class=(class(*tone)) { (plain(text)) } }
        }
        Block::Item { text, tone, .. } => html! { li class=(class(*tone)) { (plain(text)) } },
        Block::Code { line, tone } => html! { span class=(class(*tone)) { (plain(line)) } "\n" },
        Block::Table(rows) => table(rows),
        Block::Bars(bars) => table(&drawn(bars)),
        Block::Strip(strip) => html! {
            pre role="img" { @for line in plots::strip(strip, WIDTH) { (plain(&line)) "\n" } }
        },
        Block::Chart(chart) => picture(chart),
        Block::Drawing { title, svg } => html! {
            figure {
                figcaption { (plain(title)) }
                div.picture.flames role="img" aria-label=(plain(title)) { (PreEscaped(svg)) }
            }
        },
        Block::Gap => html! {},
    }
}

/// A picture with its legend, and its data behind a link.
fn picture(chart: &Chart) -> Markup {
    let Some(drawn) = svg::svg(chart) else { return html! {} };
    html! {
        figure {
            figcaption { (plain(&chart.title)) }
            div.picture role="img" aria-label=(plain(&chart.title)) { (PreEscaped(drawn)) }
            p.note {
                @if chart.series.len() > 1 {
                    @for (number, series) in chart.series.iter().enumerate() {
                        span.key {
                            @let (mark, color) = svg::key(series, number);
                            span style=(format!("color: {color}")) aria-hidden="true" { (mark) }
                            " " (plain(&series.name))
                        }
                    }
                }
                @if let Some(interval) = &chart.interval { "Strokes: " (interval) ". Dots: trials. " }
                a download="data.csv" href=(data("text/csv", &csv(chart))) { "Data (CSV)" }
            }
        }
    }
}

/// The figures of a picture.
fn csv(chart: &Chart) -> String {
    let number = |at: f64, axis: &Axis| match &axis.scale {
        Scale::Names(names) => names.get(at as usize).cloned().unwrap_or_default(),
        _ => at.to_string(),
    };
    let quoted = |text: &str| format!("\"{}\"", plain(text).replace('"', "\"\""));
    let mut text =
        format!("series,{},{},low,high,trials\r\n", quoted(&chart.x.label), quoted(&chart.y.label));
    for series in &chart.series {
        for spot in &series.points {
            let [low, high] =
                spot.interval.map_or(["".into(), "".into()], |ends| ends.map(|end| end.to_string()));
            let trials: Vec<String> = spot.trials.iter().map(f64::to_string).collect();
            let x = quoted(&number(spot.x, &chart.x));
            text += &format!("{},{x},{},{low},{high},{}\r\n", quoted(&series.name), spot.y, trials.join(" "));
        }
    }
    text
}

/// An address that holds its data.
fn data(kind: &str, text: &str) -> String {
    let byte = |b: u8| match b {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    format!("data:{kind};charset=utf-8,{}", text.bytes().map(byte).collect::<String>())
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Note => "note",
        Tone::Warning => "warning",
    }
}

/// A table can be scrolled by itself where the page is narrow: by touch, or by keys once it has the focus.
fn table(table: &Table) -> Markup {
    let head = |at: usize| table.columns.iter().map(move |column| column.head[at].as_str());
    let two = head(1).any(|text| !text.is_empty());
    html! {
        div.scroll tabindex="0" role="region" aria-label="table" {
            table {
                thead {
                    tr {
                        @for (first, second) in head(0).zip(head(1)) {
                            th scope="col" { (plain(first)) @if two { br; span.unit { (plain(second)) } } }
                        }
                    }
                }
                tbody {
                    @for row in 0..table.rows() {
                        tr {
                            @for (at, column) in table.columns.iter().enumerate() {
                                (cell(&column.cells[row], at == 0))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(cell: &Cell, names: bool) -> Markup {
    match cell {
        Cell::Number { value, text } => html! { td.number data-value=(value) { (plain(text)) } },
        Cell::Interval { low, text, .. } => html! { td.number data-value=(low) { (plain(text)) } },
        Cell::Bar { share } => {
            let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
            html! { td.bars { span.bar style=(format!("width: {:.1}%", 100.0 * share)) {} } }
        }
        other if names => html! { th scope="row" { (plain(other.text())) } },
        other => html! { td { (plain(other.text())) } },
    }
}

/// Bars as a table with their figures.
fn drawn(bars: &Bars) -> Table {
    let figure = |value: f64| Cell::number(value, crate::pages::numbers::significant(value, 4));
    let run = |at: usize| move |bar: &&crate::document::Bar| bar.runs.map(|runs| figure(runs[at]));
    Table::of(&bars.points)
        .column("", "", |bar| bar.name.trim())
        .column("least", "", run(0))
        .column("median", "", run(1))
        .column("greatest", "", run(2))
        .column("", "", |bar| bar.runs.map(|runs| Cell::Bar { share: runs[1] / bars.top }))
        .into()
}

/// Text without control characters. Its marks of HTML are escaped where it is written.
fn plain(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
