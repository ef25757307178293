//! The page of `linerate reproduce`: number of agreements, then each illustration, printed beside recomputed, and its plots.

use super::numbers::rate_unit;
use super::words::together;
use crate::document::{Bar, Bars, Document, Table, Tone};
use linerate_import::reproduce::{BlockFound, Figure, PlotFound, PlotPoint, PlotText, Reproduction, State};

/// The reproduction of a document's figures.
pub fn reproduction(found: &Reproduction) -> Document {
    let mut page = Document::default();
    page.paragraph(&found.document, Tone::Strong);
    page.paragraph(&answer(found), Tone::Strong);
    wrong(&mut page, found);
    let figures = found.figures.iter().map(|f| ((f.illustration.as_str(), f.caption.as_str()), f));
    for ((illustration, caption), figures) in together(figures) {
        page.heading(&format!("Illustration {illustration}: {caption}"));
        let mut blocks = found.blocks.iter().filter(|b| b.illustration == illustration).peekable();
        if blocks.peek().is_none() {
            table(&mut page, &figures);
        }
        blocks.for_each(|found_block| block(&mut page, found_block, &figures));
    }
    for plot in &found.plots {
        draw(&mut page, plot);
    }
    page
}

fn answer(found: &Reproduction) -> String {
    let n = |state| found.count(state);
    if found.figures.is_empty() {
        return "No printed figures, only plots.".into();
    }
    format!(
        "Of {} printed figures {} agree with the data, {} are cut off where one would round, {} are wrong in print, {} have no data.",
        found.figures.len(),
        n(State::Agrees),
        n(State::Truncated),
        n(State::WrongInPrint),
        n(State::NoData)
    )
}

fn wrong(page: &mut Document, found: &Reproduction) {
    let slips = found.figures.iter().filter(|f| f.state == State::WrongInPrint).map(|slip| {
        format!(
            "illustration {}, {}, {}: prints {}; {}",
            slip.illustration,
            slip.row,
            slip.column,
            slip.printed,
            slip.note.as_deref().or(slip.computed.as_deref()).unwrap_or_default()
        )
    });
    page.list("Wrong in print", "- ", slips, Tone::Warning);
}

fn table(page: &mut Document, figures: &[&Figure]) {
    let table = Table::of(figures)
        .column("", "", |f| f.row.as_str())
        .column("what", "", |f| f.column.as_str())
        .column("printed", "", |f| short(&f.printed))
        .column("recomputed", "", |f| f.computed.clone())
        .column("", "", |f| word(f.state));
    page.table(table);
    let mut why: Vec<&str> =
        figures.iter().filter(|f| f.state == State::NoData).filter_map(|f| f.note.as_deref()).collect();
    why.dedup();
    why.into_iter().for_each(|note| page.item("no data: ", note, Tone::Note));
}

/// ministat's long sentence takes a column's width.
fn short(printed: &str) -> String {
    if printed.starts_with("No diff") { "No diff. proven".into() } else { printed.into() }
}

fn word(state: State) -> &'static str {
    match state {
        State::Agrees => "agrees",
        State::Truncated => "cut off",
        State::WrongInPrint => "WRONG",
        State::NoData => "no data",
    }
}

fn block(page: &mut Document, block: &BlockFound, figures: &[&Figure]) {
    if !block.data {
        let note = figures.iter().find_map(|f| f.note.clone()).unwrap_or_default();
        page.item("no data: ", &note, Tone::Note);
        return;
    }
    let agree = figures.iter().filter(|f| f.state == State::Agrees).count();
    let eras = if block.eras.is_empty() { "none".into() } else { block.eras.join(", ") };
    page.paragraph(
        &format!("{agree} of {} numbers agree; arithmetic that gives all of them: {eras}.", figures.len()),
        Tone::Plain,
    );
    let plot = match block.plot {
        Some(PlotText::Same) => "The text with its plot is the same.",
        Some(PlotText::SameWithSeparateBars) => {
            "The text with its plot is the same, with ministat's option -s."
        }
        Some(PlotText::Differs) => "The text with its plot differs.",
        None => "Its plot has not survived in print.",
    };
    page.paragraph(plot, Tone::Note);
    block.differing.iter().for_each(|line| page.item("differs: ", line, Tone::Warning));
}

fn draw(page: &mut Document, plot: &PlotFound) {
    page.heading(&format!("Illustration {}: {}", plot.illustration, plot.caption));
    let all = || plot.series.iter().flat_map(|s| &s.points).filter_map(|p| p.runs);
    let top = all().map(|r| r[2]).fold(0.0, f64::max);
    if top <= 0.0 {
        page.paragraph("no data: not in this archive", Tone::Note);
        return;
    }
    let (scale, unit) = rate_unit(top);
    let told =
        format!("Median of the runs in {unit}, # to the least run, - to the greatest; by {}.", plot.axis);
    page.paragraph(&told, Tone::Note);
    for series in &plot.series {
        page.paragraph(&series.name, Tone::Plain);
        let bar = |p: &PlotPoint| Bar { name: p.at.clone(), runs: p.runs.map(|r| r.map(|v| v / scale)) };
        page.bars(Bars { points: series.points.iter().map(bar).collect(), top: top / scale });
    }
}
