//! A chart of a page as an SVG file of its own: with a white ground, its title, its legend and its origin.

use super::xml;
use crate::chart::Chart;
use crate::document::{Block, Document};
use crate::format::html::{legend, plain, svg};
use maud::{PreEscaped, html};

/// Characters of a line of its texts.
const CHARACTERS: usize = 95;
/// Height of a line, and the space at the left of it.
const LINE: usize = 22;
const LEFT: usize = 12;

/// All charts of a page that have a point, in their order.
pub fn charts(page: &Document) -> Vec<&Chart> {
    let blocks = page.flat().into_iter();
    let charts = blocks.filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None });
    charts.filter(|chart| chart.extents().is_some()).collect()
}

/// The file; `None` without a point. `origin`: the campaign, in words.
pub fn picture(chart: &Chart, origin: &str) -> Option<String> {
    let thinned = chart.thinned();
    let (chart, each) = thinned.as_ref().map_or((chart, 1), |(thin, each)| (thin, *each));
    let drawn = svg::svg(chart)?;
    let (width, height) = (svg::WIDTH as usize, svg::height(chart)? as usize);
    let title = wrapped(&chart.title);
    let keys = keys(chart);
    let notes = wrapped(&format!("{} {origin}", legend(chart, each)));
    let below = LINE * title.len() + height;
    let line = |number: usize| below + LINE * (number + 1) - 4;
    let whole = line(keys.len() + notes.len());
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(whole) viewBox=(format!("0 0 {width} {whole}"))
            role="img" font-family="sans-serif" font-size="15" fill="#1B1F24" {
            title { (plain(&chart.title)) }
            rect width="100%" height="100%" fill="#FFFFFF" {}
            @for (number, text) in title.iter().enumerate() {
                text x=(LEFT) y=(LINE * (number + 1) - 4) font-weight="bold" { (text) }
            }
            g transform=(format!("translate(0 {})", LINE * title.len())) { (PreEscaped(drawn)) }
            @for (number, (mark, color, name)) in keys.iter().enumerate() {
                text x=(LEFT) y=(line(number)) fill=(color) { (mark) }
                text x=(LEFT + LINE) y=(line(number)) { (plain(name)) }
            }
            @for (number, text) in notes.iter().enumerate() {
                text x=(LEFT) y=(line(keys.len() + number)) fill="#57606A" { (text) }
            }
        }
    };
    Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", xml(&file.into_string())))
}

/// Mark, colour and name of each series, or of each shade.
fn keys(chart: &Chart) -> Vec<(char, String, String)> {
    if chart.is_of_cells() {
        let name = |figure| format!("{figure}: {}", chart.y.label);
        return svg::scale(chart)
            .into_iter()
            .map(|(color, figure)| ('\u{25a0}', color, name(figure)))
            .collect();
    }
    let several = chart.series.iter().enumerate().filter(|_| chart.series.len() > 1);
    several
        .map(|(number, series)| {
            let (mark, color) = svg::key(series, number);
            (mark, color, series.name.clone())
        })
        .collect()
}

/// A text in lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in plain(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < CHARACTERS => {
                *line += &format!(" {word}");
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}
