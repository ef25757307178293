//! The expectations of the plan's author, and whether the results meet them.

use super::super::numbers::{digits, words as rate_words};
use super::Shown;
use super::answer::certainty;
use super::changes::change_with_interval;
use crate::document::{Document, Tone};
use linerate_measure::experiment::Judgement;
use linerate_measure::results::JudgedPair;

/// Most pairs that are listed one by one.
const MOST: usize = 6;

/// One item for each expectation, with the pairs that decide it.
pub fn expectations(page: &mut Document, shown: &Shown<'_>) {
    for (at, expected) in shown.summary.expectations.iter().enumerate() {
        if at == 0 {
            page.heading("What was expected");
        }
        let (mark, tone) = match expected.judgement {
            Some(Judgement::Met) => ("met         ", Tone::Plain),
            Some(Judgement::Missed) => ("MISSED      ", Tone::Warning),
            Some(Judgement::Undecided) => ("undecided   ", Tone::Plain),
            None => ("not judged  ", Tone::Note),
        };
        page.item(mark, format!("{}, because {}", expected.words, expected.because), tone);
        let decides = |p: &&JudgedPair| p.judgement.is_some() && p.judgement == expected.judgement;
        let pairs = expected.pairs.iter().filter(decides).map(|pair| told(shown, pair));
        page.items("            ", pairs, tone, (MOST, ""));
        for reason in &expected.reasons {
            let partly = if expected.judgement.is_some() { "not judged for all: " } else { "" };
            page.item("            ", format!("{partly}{reason}"), Tone::Note);
        }
    }
}

fn told(shown: &Shown<'_>, pair: &JudgedPair) -> String {
    let of = shown.name(pair.of);
    match (pair.than, &pair.estimate) {
        (_, None) => format!("{of}: not measured"),
        (Some(than), Some(ratio)) => {
            format!("{of} against {}: {}", shown.name(than), change_with_interval(ratio))
        }
        (None, Some(rate)) => {
            let figure = rate_words(rate.median, digits(rate));
            format!("{of}: {figure} frames a second ({})", certainty(rate))
        }
    }
}
