//! The page of `linerate explain` on one screen. `--full` has everything.

use super::*;
use crate::format::{FORMATS, Style};

/// Lines of the page on a terminal of the usual width.
const LINES: usize = 40;
/// Findings with their facts, further findings, and lines of the path: less and less, until the page fits.
const SIZES: [[usize; 3]; 6] = [
    [2, 3, 8],
    [1, 4, 8],
    [1, 3, 6],
    [1, 1, 5],
    [0, 4, 5],
    [0, 2, 3],
];
/// Cells whose limit is told.
const CELLS: usize = 4;

/// The largest page that fits.
pub(super) fn short(campaign: &Campaign, host: &HostFacts, summary: &Summary) -> Document {
    let page = |size: [usize; 3]| sized(campaign, host, summary, size);
    let fits = |page: &Document| FORMATS[0].render(page, Style::default()).lines().count() <= LINES;
    let [first @ .., last] = SIZES;
    let found = first.into_iter().map(page).find(fits);
    found.unwrap_or_else(|| page(last))
}

fn sized(
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    [whole, brief, of_path]: [usize; 3],
) -> Document {
    let mut page = Document::default();
    begin(&mut page, campaign);
    let explanations = &summary.explanations;
    limits(&mut page, campaign, summary, CELLS);
    let merged = merged(explanations);
    for (finding, slots) in merged.iter().take(whole) {
        page.gap();
        page.answer(&finding.statement);
        facts(&mut page, campaign, explanations, finding, slots);
    }
    let further: Vec<_> = merged.iter().skip(whole).collect();
    if !further.is_empty() {
        page.gap();
    }
    let said = further.iter().map(|(finding, slots)| {
        let names = names(campaign, explanations, slots);
        format!("{names}{} ({})", finding.statement, known(finding.strength))
    });
    page.items("- ", said, Tone::Plain, (brief, "; --full has them"));
    path::path(&mut page, campaign, explanations, Some(of_path));
    page.gap();
    let open = open(explanations);
    page.note(format!("linerate explain DIRECTORY --full shows all findings, where a {} takes its time, and the causes that were not examined. {open}", campaign.noun()));
    end(&mut page, campaign, host, summary);
    page
}
