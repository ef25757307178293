//! A picture of a page as an SVG file of its own: with a white ground, its title, its legend and its origin.

use super::xml;
use crate::chart::Chart;
use crate::document::{Block, Document, Drawing};
use crate::format::html::{legend, plain, svg};
use crate::format::lines;
use maud::{PreEscaped, html};

/// Characters of a line of its texts.
const CHARACTERS: usize = 95;
/// Height of a line, and the space at the left of it.
const LINE: usize = 22;
const LEFT: usize = 12;

/// A picture of a page.
#[derive(Debug, Clone, Copy)]
pub enum Picture<'a> {
    Chart(&'a Chart),
    Drawing(&'a Drawing),
}

impl Picture<'_> {
    pub fn title(&self) -> &str {
        match self {
            Picture::Chart(chart) => &chart.title,
            Picture::Drawing(drawing) => &drawing.title,
        }
    }
}

/// All drawings of a page, and all charts that have a point, in their order.
pub fn pictures(page: &Document) -> Vec<Picture<'_>> {
    let blocks = page.flat().into_iter();
    blocks
        .filter_map(|block| match block {
            Block::Chart(chart) if chart.extents().is_some() => Some(Picture::Chart(chart)),
            Block::Drawing(drawing) => Some(Picture::Drawing(drawing)),
            _ => None,
        })
        .collect()
}

/// The file; `None` without a point. `origin`: the campaign, in words.
pub fn picture(of: Picture<'_>, origin: &str) -> Option<String> {
    let (drawn, [width, height], keys, says) = match of {
        Picture::Chart(chart) => {
            let thinned = chart.thinned();
            let (chart, each) = thinned
                .as_ref()
                .map_or((chart, 1), |(thin, each)| (thin, *each));
            let size = [svg::WIDTH, svg::height(chart)?].map(|length| length as usize);
            (svg::svg(chart)?, size, keys(chart), legend(chart, each))
        }
        Picture::Drawing(drawing) => {
            let says = if drawing.flames {
                format!("{}. ", drawing.says)
            } else {
                String::new()
            };
            (drawing.svg.clone(), size(&drawing.svg)?, Vec::new(), says)
        }
    };
    let title = lines(&plain(of.title()), CHARACTERS);
    let notes = lines(&plain(&format!("{says} {origin}")), CHARACTERS);
    let below = LINE * title.len() + height;
    let line = |number: usize| below + LINE * (number + 1) - 4;
    let whole = line(keys.len() + notes.len());
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" xmlns:fg="http://github.com/jonhoo/inferno" width=(width) height=(whole)
            viewBox=(format!("0 0 {width} {whole}")) role="img" font-family="sans-serif" font-size="15" fill="#1B1F24" {
            title { (plain(of.title())) }
            rect width="100%" height="100%" fill="#FFFFFF" {}
            @for (number, text) in title.iter().enumerate() {
                text x=(LEFT) y=(LINE * (number + 1) - 4) font-weight="bold" { (text) }
            }
            // Text of flame graphs has no size of its own.
            g transform=(format!("translate(0 {})", LINE * title.len())) font-size="12" { (PreEscaped(drawn)) }
            @for (number, (mark, color, name)) in keys.iter().enumerate() {
                text x=(LEFT) y=(line(number)) fill=(color) { (mark) }
                text x=(LEFT + LINE) y=(line(number)) { (plain(name)) }
            }
            @for (number, text) in notes.iter().enumerate() {
                text x=(LEFT) y=(line(keys.len() + number)) fill="#57606A" { (text) }
            }
        }
    };
    Some(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
        xml(&file.into_string())
    ))
}

/// Width and height of a drawing.
fn size(svg: &str) -> Option<[usize; 2]> {
    let (_, rest) = svg.split_once("viewBox=\"0 0 ")?;
    let (width, height) = rest.split_once('"')?.0.split_once(' ')?;
    Some([width.parse().ok()?, height.parse().ok()?])
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
    let several = chart
        .series
        .iter()
        .enumerate()
        .filter(|_| chart.series.len() > 1);
    several
        .map(|(number, series)| {
            let (mark, color) = svg::key(series, number);
            (mark, color, series.name.clone())
        })
        .collect()
}
