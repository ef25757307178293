//! The page of `linerate reproduce`: number of agreements, then each illustration, printed beside recomputed, and its plots.

use super::numbers::{rate_unit, together};
use crate::document::{Bar, Bars, Block, Document, Table, Tone};
use linerate_import::reproduce::{BlockFound, Figure, PlotFound, PlotPoint, PlotText, Reproduction, State};

/// The reproduction of a document's figures.
pub fn reproduction(found: &Reproduction) -> Document {
    let mut page = Document::default();
    page.answer(&found.document);
    page.answer(answer(found));
    let slips = found.figures.iter().filter(|f| f.state == State::WrongInPrint).map(|slip| {
        let Figure { illustration, row, column, printed, .. } = slip;
        let instead = slip.note.as_deref().or(slip.computed.as_deref()).unwrap_or_default();
        format!("illustration {illustration}, {row}, {column}: prints {printed}; {instead}")
    });
    page.list("Wrong in print", "- ", slips, Tone::Warning);
    let figures = found.figures.iter().map(|f| ((f.illustration.as_str(), f.caption.as_str()), f));
    for ((illustration, caption), figures) in together(figures) {
        page.heading(format!("Illustration {illustration}: {caption}"));
        let mut blocks = found.blocks.iter().filter(|b| b.illustration == illustration).peekable();
        if blocks.peek().is_none() {
            table(&mut page, &figures);
        }
        blocks.for_each(|found_block| block(&mut page, found_block, &figures));
    }
    found.plots.iter().for_each(|plot| draw(&mut page, plot));
    page
}

fn answer(found: &Reproduction) -> String {
    if found.figures.is_empty() {
        return "No printed figures, only plots.".into();
    }
    let [agree, cut, wrong, none] =
        [State::Agrees, State::Truncated, State::WrongInPrint, State::NoData].map(|state| found.count(state));
    format!(
        "Of {} printed figures {agree} agree with the data, {cut} are cut off where one would round, {wrong} are wrong in print, {none} have no data.",
        found.figures.len(),
    )
}

fn table(page: &mut Document, figures: &[&Figure]) {
    let table = Table::of(figures)
        .column("", "", |f| f.row.as_str())
        .column("what", "", |f| f.column.as_str())
        // ministat's long sentence takes a column's width.
        .column("printed", "", |f| match f.printed.starts_with("No diff") {
            true => "No diff. proven",
            false => &f.printed,
        })
        .column("recomputed", "", |f| f.computed.clone())
        .column("", "", |f| match f.state {
            State::Agrees => "agrees",
            State::Truncated => "cut off",
            State::WrongInPrint => "WRONG",
            State::NoData => "no data",
        });
    page.table(table);
    let mut why: Vec<&str> =
        figures.iter().filter(|f| f.state == State::NoData).filter_map(|f| f.note.as_deref()).collect();
    why.dedup();
    why.into_iter().for_each(|note| page.item("no data: ", note, Tone::Note));
}

fn block(page: &mut Document, block: &BlockFound, figures: &[&Figure]) {
    if !block.data {
        let note = figures.iter().find_map(|f| f.note.clone()).unwrap_or_default();
        page.item("no data: ", note, Tone::Note);
        return;
    }
    let agree = figures.iter().filter(|f| f.state == State::Agrees).count();
    let eras = if block.eras.is_empty() { "none".into() } else { block.eras.join(", ") };
    let of = figures.len();
    page.say(format!("{agree} of {of} numbers agree; arithmetic that gives all of them: {eras}."));
    page.note(match block.plot {
        Some(PlotText::Same) => "The text with its plot is the same.",
        Some(PlotText::SameWithSeparateBars) => {
            "The text with its plot is the same, with ministat's option -s."
        }
        Some(PlotText::Differs) => "The text with its plot differs.",
        None => "Its plot has not survived in print.",
    });
    block.differing.iter().for_each(|line| page.item("differs: ", line, Tone::Warning));
}

fn draw(page: &mut Document, plot: &PlotFound) {
    page.heading(format!("Illustration {}: {}", plot.illustration, plot.caption));
    let all = plot.series.iter().flat_map(|s| &s.points).filter_map(|p| p.runs);
    let top = all.map(|r| r[2]).fold(0.0, f64::max);
    if top <= 0.0 {
        page.note("no data: not in this archive");
        return;
    }
    let (scale, unit) = rate_unit(top);
    let axis = &plot.axis;
    page.note(format!("Median of the runs in {unit}, # to the least run, - to the greatest; by {axis}."));
    for series in &plot.series {
        page.say(&series.name);
        let bar = |p: &PlotPoint| Bar { name: p.at.clone(), runs: p.runs.map(|r| r.map(|v| v / scale)) };
        let points = series.points.iter().map(bar).collect();
        page.blocks.push(Block::Bars(Bars { points, top: top / scale }));
    }
}
