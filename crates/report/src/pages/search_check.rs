//! This implementation of searches beside reference results.

use crate::prelude::*;
use linerate_search::reference::Check;

/// Differences, and how much was compared.
pub fn search_check(file: &str, checks: &[Check]) -> Document {
    let mut page = Document::default();
    let different: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
    let all = counted(checks.len(), "result");
    match different.len() {
        _ if checks.is_empty() => page.warn(format!("{file} contains no reference results.")),
        0 => page.answer(format!("All {all} of {file} agree.")),
        n => page.answer(format!("{n} of {all} of {file} differ.")),
    }
    let table = Table::of(different)
        .column("result", "", |check| check.of.clone())
        .column("reference", "", |check| check.expected.clone())
        .column("linerate", "", |check| check.found.clone());
    page.section("Differences", table);
    let of = |part: &'static str| {
        checks
            .iter()
            .filter(move |check| check.of.starts_with(part))
    };
    let parts = [
        ("classification", "equal classes and quantiles"),
        ("RFC 9971", "equal classes and conditional throughput"),
        (
            "replay",
            "equal bounds, conditional throughput, and lost frames of each trial",
        ),
        ("SplitMix64", "equal numbers"),
        (
            "searches",
            "median within 1 % (quartiles overlap, if 2 % apart); 1.2 times the trials at most",
        ),
    ];
    let table = Table::of(parts)
        .column("part", "", |(part, _)| *part)
        .column("agree", "", |(part, _)| {
            format!(
                "{}/{}",
                of(part).filter(|check| check.agrees).count(),
                of(part).count()
            )
        })
        .column("agrees if", "", |(_, what)| *what);
    page.section("Compared", table);
    page
}
