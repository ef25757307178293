//! What `linerate reproduce` prints: how much agrees, then each illustration, printed beside recomputed, and its plots.

use super::numbers::rate_unit;
use super::page::{Ink, Page, Style, Table};
use super::plot::{Bar, bars};
use linerate_import::reproduce::{BlockFound, Figure, PlotFound, PlotText, Reproduction, State};

/// The reproduction of a document's figures.
pub fn reproduction(found: &Reproduction, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(&found.document, Ink::Bold);
    page.paragraph(&answer(found), Ink::Bold);
    wrong(&mut page, found);
    for (illustration, caption) in illustrations(found) {
        let of = |f: &&Figure| f.illustration == illustration;
        let blocks: Vec<&BlockFound> =
            found.blocks.iter().filter(|b| b.illustration == illustration).collect();
        page.heading(&format!("Illustration {illustration}: {caption}"));
        if blocks.is_empty() {
            table(&mut page, &found.figures.iter().filter(of).collect::<Vec<_>>());
        }
        for found_block in blocks {
            block(&mut page, found_block, &found.figures.iter().filter(of).collect::<Vec<_>>());
        }
    }
    for plot in &found.plots {
        draw(&mut page, plot, style);
    }
    page.finish()
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

fn wrong(page: &mut Page, found: &Reproduction) {
    let slips: Vec<&Figure> = found.figures.iter().filter(|f| f.state == State::WrongInPrint).collect();
    if slips.is_empty() {
        return;
    }
    page.heading("Wrong in print");
    for slip in slips {
        page.item(
            "- ",
            &format!(
                "illustration {}, {}, {}: prints {}; {}",
                slip.illustration,
                slip.row,
                slip.column,
                slip.printed,
                slip.note.as_deref().or(slip.computed.as_deref()).unwrap_or_default()
            ),
            Ink::Warning,
        );
    }
}

/// The illustrations with figures, in their order, each once.
fn illustrations(found: &Reproduction) -> Vec<(&str, &str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for figure in &found.figures {
        let this = (figure.illustration.as_str(), figure.caption.as_str());
        if !out.contains(&this) {
            out.push(this);
        }
    }
    out
}

fn table(page: &mut Page, figures: &[&Figure]) {
    let mut table = Table::default()
        .column("", "")
        .column("what", "")
        .column("printed", "")
        .column("recomputed", "")
        .column("", "");
    for figure in figures {
        table.row(vec![
            figure.row.clone(),
            figure.column.clone(),
            short(&figure.printed),
            figure.computed.clone().unwrap_or_else(|| "-".into()),
            word(figure.state).into(),
        ]);
    }
    page.table(&table);
    let mut why: Vec<&str> =
        figures.iter().filter(|f| f.state == State::NoData).filter_map(|f| f.note.as_deref()).collect();
    why.dedup();
    why.into_iter().for_each(|note| page.item("no data: ", note, Ink::Dim));
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

fn block(page: &mut Page, block: &BlockFound, figures: &[&Figure]) {
    if !block.data {
        let note = figures.iter().find_map(|f| f.note.clone()).unwrap_or_default();
        page.item("no data: ", &note, Ink::Dim);
        return;
    }
    let agree = figures.iter().filter(|f| f.state == State::Agrees).count();
    let eras = if block.eras.is_empty() { "none".into() } else { block.eras.join(", ") };
    page.paragraph(
        &format!("{agree} of {} numbers agree; arithmetic that gives all of them: {eras}.", figures.len()),
        Ink::Plain,
    );
    let plot = match block.plot {
        Some(PlotText::Same) => "The text with its plot is the same.",
        Some(PlotText::SameWithSeparateBars) => {
            "The text with its plot is the same, with ministat's option -s."
        }
        Some(PlotText::Differs) => "The text with its plot differs.",
        None => "Its plot has not survived in print.",
    };
    page.paragraph(plot, Ink::Dim);
    block.differing.iter().for_each(|line| page.item("differs: ", line, Ink::Warning));
}

fn draw(page: &mut Page, plot: &PlotFound, style: Style) {
    page.heading(&format!("Illustration {}: {}", plot.illustration, plot.caption));
    let all = || plot.series.iter().flat_map(|s| &s.points).filter_map(|p| p.runs);
    let top = all().map(|r| r[2]).fold(0.0, f64::max);
    if top <= 0.0 {
        page.paragraph("no data: not in this archive", Ink::Dim);
        return;
    }
    let (scale, unit) = rate_unit(top);
    let told =
        format!("Median of the runs in {unit}, # to the least run, - to the greatest; by {}.", plot.axis);
    page.paragraph(&told, Ink::Dim);
    for series in &plot.series {
        page.paragraph(&series.name, Ink::Plain);
        let rows: Vec<Bar> = series
            .points
            .iter()
            .map(|p| Bar { name: &p.at, runs: p.runs.map(|r| r.map(|v| v / scale)) })
            .collect();
        bars(&rows, top / scale, style.width.max(40)).iter().for_each(|line| page.verbatim(line, Ink::Plain));
    }
}
