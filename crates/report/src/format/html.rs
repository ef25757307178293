//! A page for a browser: one file that loads nothing, and is complete without its script.

pub(crate) mod svg;

use super::render::{self, Format, Style};
use crate::document::Column;
use crate::prelude::*;
use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};

#[derive(Debug)]
pub struct Html;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

const SEARCH: &str = include_str!("html/search.js");

/// Nothing is loaded or sent, and nothing runs but the page's own scripts, which their hashes name; and what the search loads, which is
/// the index of its site.
fn policy(searches: bool) -> String {
    let hash = |script: &str| {
        let hash = hmac_sha256::Hash::hash(script.as_bytes());
        format!(
            "'sha256-{}'",
            base64::engine::general_purpose::STANDARD.encode(hash)
        )
    };
    let scripts = if searches {
        format!("{} {} 'strict-dynamic'", hash(SCRIPT), hash(SEARCH))
    } else {
        hash(SCRIPT)
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; base-uri 'none'; form-action 'none'"
    )
}

/// Sections of a page that needs no links to them.
const FEW_SECTIONS: usize = 3;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(&self, document: &Document, _: Style) -> String {
        let title = document.title.as_deref().map_or("linerate".into(), plain);
        let searches = document
            .blocks
            .iter()
            .any(|block| matches!(block, Block::Search { .. }));
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy(searches));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main { h1 { (title) } (sections(&document.blocks, 2, "s", false)) }
                    script { (PreEscaped(SCRIPT)) }
                    @if searches { script { (PreEscaped(SEARCH)) } }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// The section of a heading, or a part: its title, and what follows the title.
fn title_of(section: &[Block]) -> Option<&str> {
    match section.first() {
        Some(Block::Heading { text }) => Some(text),
        Some(Block::Part { title, .. }) => Some(title),
        _ => None,
    }
}

/// A section from each heading to the next, and one for each part. The first is followed by links to the others, where they are many.
/// `place` begins the names of all. Folded parts have no such links, and links to them only where they stand beside the first headings.
fn sections(all: &[Block], level: u8, place: &str, folded: bool) -> Markup {
    let is_part = |block: &Block| matches!(block, Block::Part { .. });
    let is_open = |block: &Block| matches!(block, Block::Part { folded: false, .. });
    let starts = |block: &Block| is_part(block) || matches!(block, Block::Heading { .. });
    let parts: Vec<&[Block]> = all
        .chunk_by(|one, next| !is_part(one) && !starts(next))
        .collect();
    let name = |at: usize| format!("{place}{at}");
    let linked = |part: &[Block]| level == 2 || !matches!(part, [Block::Part { folded: true, .. }]);
    let links: Vec<(usize, &str)> = parts
        .iter()
        .enumerate()
        .filter(|(_, part)| linked(part))
        .filter_map(|(at, part)| Some((at, title_of(part)?)))
        .collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @match part[0] {
                Block::Part { ref title, folded: true, ref blocks } => details id=(name(at)) {
                    summary { (heading(level, title)) }
                    (sections(blocks, level + 1, &(name(at) + "-"), true))
                },
                Block::Part { ref title, ref blocks, .. } => section id=(name(at)) {
                    (heading(level, title))
                    (sections(blocks, level + 1, &(name(at) + "-"), folded))
                },
                Block::Heading { ref text } => section id=(name(at)) {
                    (heading(level, text))
                    (blocks(&part[1..]))
                },
                _ => section { (blocks(part)) },
            }
            @if at == 0 && !folded && (links.len() > FEW_SECTIONS || all.iter().any(is_open)) {
                nav.contents aria-label="Contents" {
                    ul {
                        @for (at, text) in &links {
                            li { a href=(format!("#{}", name(*at))) { (rich(text)) } }
                        }
                    }
                }
            }
        }
    }
}

fn heading(level: u8, text: &str) -> Markup {
    match level {
        2 => html! { h2 { (rich(text)) } },
        3 => html! { h3 { (rich(text)) } },
        _ => html! { h4 { (rich(text)) } },
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
                1 => dl.below[is_below(&group[0])] { @for block in group { (block_of(block)) } },
                2 => ul { @for block in group { (block_of(block)) } },
                3 => pre.copied tabindex="0" { @for block in group { (block_of(block)) } },
                _ => (block_of(&group[0])),
            }
        }
    }
}

/// Whether its items belong to the entry above them.
fn is_below(block: &Block) -> bool {
    matches!(block, Block::Item { mark, .. } if mark.starts_with("  "))
}

/// Whether an item is the value of a name, and not an entry of a list.
fn is_name(mark: &str) -> bool {
    !matches!(mark.trim(), "" | "-" | "!")
}

fn block_of(block: &Block) -> Markup {
    match block {
        // Headings begin a section.
        Block::Heading { .. } | Block::Part { .. } => html! {},
        Block::Text {
            text,
            tone: Tone::Strong,
        } => html! { p.answer { strong { (rich(text)) } } },
        Block::Text { text, tone } => html! { p class=(tone.name()) { (rich(text)) } },
        Block::Item { mark, text, tone } if is_name(mark) => {
            html! { dt { (plain(mark.trim())) } dd class=(tone.name()) { (rich(text)) } }
        }
        // The item belongs to the entry above it.
        Block::Item { mark, text, tone } if mark == "  " => {
            html! { li.below class=(tone.name()) { (rich(text)) } }
        }
        Block::Item { text, tone, .. } => html! { li class=(tone.name()) { (rich(text)) } },
        Block::Code { line, tone } => html! { span class=(tone.name()) { (verbatim(line)) } "\n" },
        Block::Table(rows) => table(rows),
        Block::Bars(bars) => table(&drawn(bars)),
        Block::Strip(strip) => picture(&strip.chart()),
        Block::Chart(chart) => picture(chart),
        Block::Search { index } => html! { div.search data-index=(index) {} },
        Block::Links { links } => html! { nav { @for each in links { (link(each)) " " } } },
        Block::Drawing(drawing) => html! {
            figure {
                figcaption { (plain(&drawing.title)) }
                div class=(if drawing.flames { "picture flames" } else { "picture" }) role="img" aria-label=(plain(&drawing.says)) {
                    (PreEscaped(&drawing.svg))
                }
            }
        },
        Block::Gap => html! {},
    }
}

/// A picture with its legend, and its data behind a link.
fn picture(chart: &Chart) -> Markup {
    let thinned = chart.thinned();
    let (chart, each) = thinned
        .as_ref()
        .map_or((chart, 1), |(thin, each)| (thin, *each));
    let Some(drawn) = svg::svg(chart) else {
        return html! {};
    };
    html! {
        figure {
            figcaption { (plain(&chart.title)) }
            div.picture role="img" aria-label=(plain(&chart.title)) { (PreEscaped(drawn)) }
            p.note {
                @if chart.is_of_cells() {
                    (plain(&chart.y.label)) ": "
                    @for (color, figure) in svg::scale(chart) {
                        span.key { span.patch style=(format!("background: {color}")) aria-hidden="true" {} " " (figure) }
                    }
                } @else if chart.series.len() > 1 {
                    @for (number, series) in chart.series.iter().enumerate() {
                        span.key {
                            @let (mark, color) = svg::key(series, number);
                            span style=(format!("color: {color}")) aria-hidden="true" { (mark) }
                            " " (plain(&series.name))
                        }
                    }
                }
                (legend(chart, each))
                a download="data.csv" href=(data("text/csv", &csv(chart))) { "Data (CSV)" }
            }
        }
    }
}

/// The meaning of its strokes and dots, where it has one in `each` of its figures.
pub(crate) fn legend(chart: &Chart, each: usize) -> String {
    let spots = || chart.series.iter().flat_map(|series| &series.points);
    let interval = chart
        .interval
        .as_ref()
        .filter(|_| spots().any(|spot| spot.interval.is_some()));
    let mut text = interval.map_or(String::new(), |interval| {
        format!("Strokes: {}. ", plain(interval))
    });
    if spots().any(|spot| !spot.trials.is_empty()) {
        text += "Dots: trials. ";
    }
    if each > 1 {
        text += &format!(
            "Picture and data have one in {each} of its figures, with the least and the greatest. "
        );
    }
    text
}

/// The figures of a picture.
fn csv(chart: &Chart) -> String {
    let number = |at: f64, axis: &Axis| match &axis.scale {
        Scale::Names(names) | Scale::Order(names) => {
            names.get(at as usize).cloned().unwrap_or_default()
        }
        _ => at.to_string(),
    };
    let quoted = |text: &str| format!("\"{}\"", plain(text).replace('"', "\"\""));
    let mut text = format!(
        "series,{},{},low,high,trials\r\n",
        quoted(&chart.x.label),
        quoted(&chart.y.label)
    );
    for series in &chart.series {
        for spot in &series.points {
            let [low, high] = spot.interval.map_or(["".into(), "".into()], |ends| {
                ends.map(|end| end.to_string())
            });
            let trials = spot.trials.iter().map(f64::to_string).joined(" ");
            let x = quoted(&number(spot.x, &chart.x));
            text += &format!(
                "{},{x},{},{low},{high},{}\r\n",
                quoted(&series.name),
                spot.y,
                trials
            );
        }
    }
    text
}

/// An address that holds its data.
fn data(kind: &str, text: &str) -> String {
    let byte = |b: u8| match b {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(b).to_string(),
        b'-' | b'.' | b'_' | b',' | b';' | b':' | b'/' | b'(' | b')' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    format!(
        "data:{kind};charset=utf-8,{}",
        text.bytes().map(byte).collect::<String>()
    )
}

/// A table can be scrolled by itself where the page is narrow: by touch, or by keys once it has the focus.
fn table(table: &Table) -> Markup {
    let two = table
        .columns
        .iter()
        .any(|column| !column.head[1].is_empty());
    let of = |column: &Column| {
        let number = |cell: &Cell| matches!(cell, Cell::Number { .. } | Cell::Interval { .. });
        column.cells.iter().any(number).then_some("number")
    };
    if table.rows() == 0 {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="table" {
            table {
                thead {
                    tr {
                        @for column in &table.columns {
                            @let [first, second] = &column.head;
                            th scope="col" class=[of(column)] {
                                (plain(first)) @if two { br; span.unit { (plain(second)) } }
                            }
                        }
                    }
                }
                tbody {
                    @for row in 0..table.rows() {
                        tr {
                            @for (at, column) in table.columns.iter().enumerate() {
                                (cell(&column.cells[row], at == 0, of(column)))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Letters of a cell that is broken into lines.
const LONG: usize = 44;

fn cell(cell: &Cell, names: bool, of: Option<&str>) -> Markup {
    match cell {
        Cell::Number { value, text } => html! { td.number data-value=(value) { (plain(text)) } },
        Cell::Interval { low, text, .. } => html! { td.number data-value=(low) { (plain(text)) } },
        Cell::Bar { share } => {
            let share = if share.is_finite() {
                share.clamp(0.0, 1.0)
            } else {
                0.0
            };
            html! { td.bars { span.bar style=(format!("width: {:.1}%", 100.0 * share)) {} } }
        }
        other => {
            let text = other.text();
            let class = if text.chars().count() > LONG {
                Some("long")
            } else {
                of
            };
            let shown = match other {
                Cell::Link(to) => link(to),
                _ => rich(text),
            };
            html! {
                @if names { th scope="row" class=[class] { (shown) } } @else { td class=[class] { (shown) } }
            }
        }
    }
}

/// A name that leads to another page of the site, and to nothing else.
fn link(link: &Link) -> Markup {
    match link.address() {
        Some(to) => html! { a href=(to) { (plain(&link.text)) } },
        None => html! { span { (plain(&link.text)) } },
    }
}

/// Bars as a table with their figures.
fn drawn(bars: &Bars) -> Table {
    let run =
        |at: usize| move |bar: &&crate::document::Bar| bar.runs.map(|runs| number(runs[at], 4));
    Table::of(&bars.points)
        .column("", "", |bar| bar.name.trim())
        .column("least", "", run(0))
        .column("median", "", run(1))
        .column("greatest", "", run(2))
        .column("", "", |bar| {
            bar.runs.map(|runs| Cell::Bar {
                share: runs[1] / bars.top,
            })
        })
        .into()
}

/// Text in which code stands between backticks.
fn rich(text: &str) -> Markup {
    let text = plain(text);
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @if parts.len().is_multiple_of(2) { (text) } @else {
            @for (at, part) in parts.iter().enumerate() {
                @if at % 2 == 1 { code { (part) } } @else { (part) }
            }
        }
    }
}

/// A line as it is, without control characters but tabs.
fn verbatim(line: &str) -> String {
    line.trim_end()
        .chars()
        .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
        .collect()
}

/// Text without control characters. Its marks of HTML are escaped where it is written.
pub(crate) fn plain(text: &str) -> String {
    render::plain(text.trim_end())
}
