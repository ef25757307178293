//! The page of `linerate import netbenches`: files read, medians that agree, differences, and broken files.

use super::numbers::{bytes, count, grouped, significant};
use crate::document::{Document, Table, Tone};
use linerate_import::netbenches::{Archive, ResultDirectory, Rule, Run, Set};
use std::collections::BTreeMap;

/// Larger relative differences between the sounder figure and the archive's are shown.
const REMARKABLE: f64 = 0.01;
/// So many of the runs that differ most are listed.
const LISTED_RUNS: usize = 20;

/// The result of an import for a person to read. ASCII only.
pub fn archive(archive: &Archive) -> Document {
    let mut page = Document::default();
    let all = Sets::of(archive);
    page.paragraph(&all.answer(archive), Tone::Strong);
    counts(&mut page, &all);
    disagreements(&mut page, &all);
    differing_runs(&mut page, archive);
    files(&mut page, archive);
    problems(&mut page, archive);
    page
}

/// Sets, sorted by outcome.
struct Sets<'a> {
    all: Vec<(&'a ResultDirectory, &'a Set)>,
    runs: usize,
}

impl<'a> Sets<'a> {
    fn of(archive: &'a Archive) -> Self {
        let all: Vec<_> =
            archive.directories.iter().flat_map(|d| d.sets.iter().map(move |s| (d, s))).collect();
        let runs = all.iter().map(|(_, s)| s.runs.len()).sum();
        Sets { all, runs }
    }

    fn count(&self, is: impl Fn(&Set) -> bool) -> usize {
        self.all.iter().filter(|(_, s)| is(s)).count()
    }

    fn answer(&self, archive: &Archive) -> String {
        let both = self.count(|s| s.slot.agrees.is_some());
        let agree = self.count(|s| s.slot.agrees == Some(true));
        format!(
            "{} runs of {} sets in {} results folders: of {} sets with logs and published medians, {} agree exactly{}.",
            grouped(self.runs as u64),
            grouped(self.all.len() as u64),
            grouped(archive.directories.len() as u64),
            grouped(both as u64),
            grouped(agree as u64),
            match both - agree {
                0 => String::new(),
                n => format!(", {} do not", grouped(n as u64)),
            },
        )
    }
}

fn counts(page: &mut Document, all: &Sets<'_>) {
    page.heading("Sets");
    let kinds = [
        ("agree, mean of the two middle samples", all.count(|s| s.slot.rule == Some(Rule::Mean))),
        ("agree, upper of the two (2015)", all.count(|s| s.slot.rule == Some(Rule::Upper))),
        ("disagree", all.count(|s| s.slot.agrees == Some(false))),
        ("logs without published medians", all.count(|s| s.slot.published.is_none() && !s.slot.profiling)),
        ("profiling runs", all.count(|s| s.slot.profiling)),
        ("published medians without logs", all.count(|s| s.runs.is_empty())),
    ];
    page.table(
        Table::of(kinds).column("", "", |(kind, _)| *kind).column("", "sets", |(_, n)| count(*n as u64)),
    );
}

fn disagreements(page: &mut Document, all: &Sets<'_>) {
    let disagree = all.all.iter().filter_map(|(_, set)| {
        let what = set.slot.disagreement.as_ref()?;
        Some(format!("{}, {}: {what}", set.directory(), set.slot.set))
    });
    page.list("Sets that disagree with what was published", "- ", disagree, Tone::Plain);
}

fn differing_runs(page: &mut Document, archive: &Archive) {
    let ratio = |run: &Run| Some(run.trial.sound? / run.median_pps? - 1.0);
    let sets = archive.directories.iter().flat_map(|d| &d.sets);
    let runs: Vec<(f64, &Run)> =
        sets.flat_map(|s| &s.runs).filter_map(|run| Some((ratio(run)?, run))).collect();
    let mut differ: Vec<(f64, &Run)> = runs.iter().copied().filter(|(r, _)| r.abs() > REMARKABLE).collect();
    if runs.is_empty() {
        return;
    }
    page.heading("The steady part against the archive's lines");
    let text = format!(
        "The archive drops the first 15 and the last 10 lines of a log, linerate what stands before and after the rate settles. The two medians differ by more than 1 % in {} of {} runs.",
        grouped(differ.len() as u64),
        grouped(runs.len() as u64),
    );
    page.paragraph(&text, Tone::Plain);
    differ.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    for (ratio, run) in differ.iter().take(LISTED_RUNS) {
        let text = format!(
            "{}: {} by the archive, {} steady ({:+.1} %)",
            run.trial.file,
            significant(run.median_pps.unwrap_or(0.0), 4),
            significant(run.trial.sound.unwrap_or(0.0), 4),
            100.0 * ratio
        );
        page.item("- ", &text, Tone::Plain);
    }
    if differ.len() > LISTED_RUNS {
        page.item("- ", &format!("and {} more; --json has them all", differ.len() - LISTED_RUNS), Tone::Note);
    }
}

fn files(page: &mut Document, archive: &Archive) {
    page.heading("Files");
    let mut kinds: BTreeMap<&str, (u64, u64)> =
        archive.files.iter().map(|(kind, n)| (*kind, (*n, 0))).collect();
    archive.problems.iter().for_each(|problem| kinds.entry(problem.kind).or_default().1 += 1);
    let table = Table::of(kinds)
        .column("", "kind", |(kind, _)| *kind)
        .column("", "files", |(_, (files, _))| count(*files))
        .column("", "problems", |(_, (_, broken))| match broken {
            0 => "".into(),
            n => count(*n),
        });
    page.table(table);
    page.paragraph(&format!("{} read.", bytes(archive.bytes)), Tone::Note);
}

/// Every problem of every file, apart from the sound files.
fn problems(page: &mut Document, archive: &Archive) {
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for problem in &archive.problems {
        kinds.entry(problem.kind).or_default().push(format!("{}: {}", problem.path, problem.reason));
    }
    for (kind, told) in kinds {
        page.list(&format!("Problems: {kind}"), "! ", told, Tone::Plain);
    }
}

#[cfg(test)]
mod tests;
