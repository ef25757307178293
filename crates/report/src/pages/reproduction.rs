//! The page of `linerate reproduce`: number of agreements, then each illustration as a picture of the data, printed beside recomputed.

use super::sets::{self, Set};
use crate::prelude::*;
use linerate_import::reproduce::{
    BlockFound, Figure, PlotFound, PlotLine, PlotPoint, PlotText, Reproduction, State,
};

/// The reproduction of a document's figures: with a picture of every illustration, or with bars of its plots alone.
pub fn reproduction(found: &Reproduction, pictures: bool) -> Document {
    let mut page = Document::default();
    page.answer(&found.document);
    page.answer(answer(found));
    let slips = found
        .figures
        .iter()
        .filter(|f| f.state == State::WrongInPrint)
        .map(|slip| {
            let Figure {
                illustration,
                row,
                column,
                printed,
                ..
            } = slip;
            let instead = slip
                .note
                .as_deref()
                .or(slip.computed.as_deref())
                .unwrap_or_default();
            format!("illustration {illustration}, {row}, {column}: prints {printed}; {instead}")
        });
    page.list("Wrong in print", "- ", slips, Tone::Warning);
    let mut sections: Vec<(&str, Document)> = Vec::new();
    let figures = found
        .figures
        .iter()
        .map(|f| ((f.illustration.as_str(), f.caption.as_str()), f));
    for ((illustration, caption), figures) in together(figures) {
        let mut section = Document::default();
        section.heading(format!("Illustration {illustration}: {caption}"));
        if pictures {
            let own = found
                .plots
                .iter()
                .filter(|plot| plot.illustration == illustration);
            own.filter_map(picture)
                .for_each(|chart| section.chart(chart));
        }
        let mut blocks = found
            .blocks
            .iter()
            .filter(|b| b.illustration == illustration)
            .peekable();
        if blocks.peek().is_none() {
            table(&mut section, &figures);
        }
        blocks.for_each(|found_block| block(&mut section, found_block, &figures));
        sections.push((illustration, section));
    }
    let printed = |plot: &&PlotFound| {
        found
            .figures
            .iter()
            .any(|f| f.illustration == plot.illustration)
    };
    for plot in found.plots.iter().filter(|plot| !printed(plot)) {
        let mut section = Document::default();
        section.heading(format!(
            "Illustration {}: {}",
            plot.illustration, plot.caption
        ));
        match picture(plot) {
            None => section.note("no data: not in this archive"),
            Some(chart) if pictures => section.chart(chart),
            Some(_) => bars(&mut section, plot),
        }
        sections.push((&plot.illustration, section));
    }
    // As the document has them, where they have numbers.
    sections.sort_by_key(|(illustration, _)| illustration.parse().unwrap_or(u32::MAX));
    sections
        .into_iter()
        .for_each(|(_, section)| page.append(section));
    page
}

fn answer(found: &Reproduction) -> String {
    if found.figures.is_empty() {
        return "No printed figures, only plots.".into();
    }
    let [agree, cut, wrong, none] = [
        State::Agrees,
        State::Truncated,
        State::WrongInPrint,
        State::NoData,
    ]
    .map(|state| found.count(state));
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
        .column("printed", "", |f| {
            if f.printed.starts_with("No diff") {
                "No diff. proven"
            } else {
                &f.printed
            }
        })
        .column("recomputed", "", |f| f.computed.clone())
        .column("", "", |f| match f.state {
            State::Agrees => "agrees",
            State::Truncated => "cut off",
            State::WrongInPrint => "WRONG",
            State::NoData => "no data",
        });
    page.table(table);
    let mut why: Vec<&str> = figures
        .iter()
        .filter(|f| f.state == State::NoData)
        .filter_map(|f| f.note.as_deref())
        .collect();
    why.dedup();
    why.into_iter()
        .for_each(|note| page.item("no data: ", note, Tone::Note));
}

fn block(page: &mut Document, block: &BlockFound, figures: &[&Figure]) {
    if !block.data {
        let note = figures
            .iter()
            .find_map(|f| f.note.clone())
            .unwrap_or_default();
        page.item("no data: ", note, Tone::Note);
        return;
    }
    let agree = figures.iter().filter(|f| f.state == State::Agrees).count();
    let eras = if block.eras.is_empty() {
        "none".into()
    } else {
        block.eras.join(", ")
    };
    let of = figures.len();
    page.say(format!(
        "{agree} of {of} numbers agree; arithmetic that gives all of them: {eras}."
    ));
    page.note(match block.plot {
        Some(PlotText::Same) => "The text with its plot is the same.",
        Some(PlotText::SameWithSeparateBars) => {
            "The text with its plot is the same, with ministat's option -s."
        }
        Some(PlotText::Differs) => "The text with its plot differs.",
        None => "Its plot has not survived in print.",
    });
    block
        .differing
        .iter()
        .for_each(|line| page.item("differs: ", line, Tone::Warning));
}

/// The points that have data; `None` where none has.
fn picture(plot: &PlotFound) -> Option<Chart> {
    let points = plot
        .series
        .iter()
        .flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let set = |(series, point): (&'_ PlotLine, &PlotPoint)| {
        let mut set = Set::of_runs(&point.at, point.all.clone()?);
        set.rate.median = point.runs.map_or(0.0, |[_, median, _]| median);
        Some((series.name.clone(), set))
    };
    let sets: Vec<(String, Set)> = points.filter_map(set).collect();
    sets::along(&format!("By {}", plot.axis), &plot.axis, &sets)
}

/// The points of a plot as bars of text.
fn bars(page: &mut Document, plot: &PlotFound) {
    let all = plot
        .series
        .iter()
        .flat_map(|s| &s.points)
        .filter_map(|p| p.runs);
    let top = all.map(|r| r[2]).fold(0.0, f64::max);
    let RateUnit { scale, name: unit } = RateUnit::of([top]);
    let axis = &plot.axis;
    page.note(format!(
        "Median of the runs in {unit}, # to the least run, - to the greatest; by {axis}."
    ));
    for series in &plot.series {
        page.say(&series.name);
        let bar = |p: &PlotPoint| Bar {
            name: p.at.clone(),
            runs: p.runs.map(|r| r.map(|v| v / scale)),
        };
        let points = series.points.iter().map(bar).collect();
        page.blocks.push(Block::Bars(Bars {
            points,
            top: top / scale,
        }));
    }
}
