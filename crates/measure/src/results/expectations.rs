//! Whether the author's expectations were met.

use super::{Expected, Found, JudgedPair};
use crate::experiment::{Expectation, Judgement};

pub(super) fn expectations(found: &Found<'_>) -> Vec<Expected> {
    found.experiment.expectations.iter().map(|e| expected(found, e)).collect()
}

fn expected(found: &Found<'_>, expectation: &Expectation) -> Expected {
    let pairs: Vec<JudgedPair> = expectation.pairs.iter().map(|p| judged(found, expectation, *p)).collect();
    Expected {
        words: expectation.words.clone(),
        because: expectation.because.clone(),
        line: expectation.line,
        claim: expectation.claim,
        judgement: overall(&pairs),
        reasons: reasons(found, &pairs),
        pairs,
    }
}

fn judged(found: &Found<'_>, expectation: &Expectation, (of, than): (usize, Option<usize>)) -> JudgedPair {
    let estimate = match than {
        Some(than) => found.ratio(of, than),
        None => Some(found.estimate(of)).filter(|e| e.n > 0),
    };
    let judgement = estimate.map(|e| expectation.claim.judge(&e));
    JudgedPair { of, than, estimate, judgement }
}

/// Missed if one pair is, met if all are that were measured.
fn overall(pairs: &[JudgedPair]) -> Option<Judgement> {
    let mut judgements = pairs.iter().filter_map(|p| p.judgement).peekable();
    judgements.peek()?;
    Some(judgements.fold(Judgement::Met, |all, one| match (all, one) {
        (Judgement::Missed, _) | (_, Judgement::Missed) => Judgement::Missed,
        (Judgement::Undecided, _) | (_, Judgement::Undecided) => Judgement::Undecided,
        _ => Judgement::Met,
    }))
}

/// Why pairs are not judged, each reason once.
fn reasons(found: &Found<'_>, pairs: &[JudgedPair]) -> Vec<String> {
    if pairs.is_empty() {
        let form = if found.experiment.quick { "the quick form" } else { "the plan on this system" };
        return vec![format!("{form} has no such cells")];
    }
    let mut reasons: Vec<String> = Vec::new();
    for pair in pairs.iter().filter(|p| p.judgement.is_none()) {
        let cells = std::iter::once(pair.of).chain(pair.than);
        let mut lacking: Vec<String> = cells.flat_map(|cell| found.planned.lacking(cell)).cloned().collect();
        if lacking.is_empty() {
            lacking.push("no block has a valid trial of each of its cells".into());
        }
        reasons.extend(lacking);
    }
    reasons.sort();
    reasons.dedup();
    reasons
}
