//! The page of `linerate import netbenches`: files read, medians that agree, differences, and broken files.

use crate::prelude::*;
use linerate_import::netbenches::{Archive, FileProblem, Rule, Run, Set};

/// Larger relative differences between the sounder figure and the archive's are shown.
const REMARKABLE: f64 = 0.01;
/// So many of the runs that differ most are listed.
const LISTED_RUNS: usize = 20;
/// So many sets have their rate on the page.
const LISTED_SETS: usize = 40;

/// The result of an import for a person to read. ASCII only.
pub fn archive(archive: &Archive) -> Document {
    let mut page = Document::default();
    let sets: Vec<&Set> = archive
        .directories
        .iter()
        .flat_map(|directory| &directory.sets)
        .collect();
    summary(&mut page, archive, &sets);
    let disagree = sets.iter().filter_map(|set| {
        let why = set.slot.disagreement.as_ref()?;
        Some(format!("{}, {}: {why}", set.directory(), set.slot.set))
    });
    page.entries("Sets that disagree with what was published", disagree);
    rates(&mut page, &sets);
    differing_runs(&mut page, &sets);
    files(&mut page, archive);
    page
}

/// The sets, by outcome.
fn summary(page: &mut Document, archive: &Archive, sets: &[&Set]) {
    let count_of = |is: fn(&Set) -> bool| sets.iter().filter(|set| is(set)).count() as u64;
    let both = count_of(|s| s.slot.agrees.is_some());
    let agree = count_of(|s| s.slot.agrees == Some(true));
    let disagree = count_of(|s| s.slot.agrees == Some(false));
    page.answer(format!(
        "{} runs of {} sets in {} results folders: of {} sets with logs and published medians, {} agree exactly{}.",
        grouped(sets.iter().map(|set| set.runs.len() as u64).sum::<u64>()),
        grouped(sets.len() as u64),
        grouped(archive.directories.len() as u64),
        grouped(both),
        grouped(agree),
        when(disagree > 0, format!(", {} do not", grouped(disagree))),
    ));
    let kinds = [
        (
            "agree, mean of the two middle samples",
            count_of(|s| s.slot.rule == Some(Rule::Mean)),
        ),
        (
            "agree, upper of the two (2015)",
            count_of(|s| s.slot.rule == Some(Rule::Upper)),
        ),
        ("disagree", disagree),
        (
            "logs without published medians",
            count_of(|s| s.slot.published.is_none() && !s.slot.profiling),
        ),
        ("profiling runs", count_of(|s| s.slot.profiling)),
        (
            "published medians without logs",
            count_of(|s| s.runs.is_empty()),
        ),
    ];
    let table = Table::of(kinds)
        .column("", "", |(kind, _)| *kind)
        .column("", "sets", |(_, n)| count(*n));
    page.section("Sets", table);
}

/// The median rate of each set: of its logs, else of what was published.
fn rates(page: &mut Document, sets: &[&Set]) {
    let rate = |set: &Set| {
        let logged: Vec<f64> = set.runs.iter().filter_map(|run| run.median_pps).collect();
        let published = || set.slot.published.as_ref().map(|of| of.values.clone());
        let mut all = if logged.is_empty() {
            published()?
        } else {
            logged
        };
        all.sort_by(f64::total_cmp);
        let n = all.len().checked_sub(1)?;
        Some((all[n / 2] + all[n.div_ceil(2)]) / 2.0)
    };
    let all: Vec<(&Set, f64)> = sets
        .iter()
        .filter_map(|set| Some((*set, rate(set)?)))
        .collect();
    if all.is_empty() {
        return;
    }
    let RateUnit { scale, name } = RateUnit::of(all.iter().map(|(_, fps)| *fps));
    let table = Table::of(all.iter().take(LISTED_SETS))
        .column("", "folder", |(set, _)| set.directory())
        .column("", "set", |(set, _)| set.slot.set.as_str())
        .column("", "runs", |(set, _)| count(set.runs.len() as u64))
        .column("median", name, |(_, fps)| number(fps / scale, 4));
    page.section("Rates", table);
    if all.len() > LISTED_SETS {
        page.note(format!(
            "and {} more sets: --json has them all, and --out RECORDS with `linerate show RECORDS/NAME` each folder's",
            grouped((all.len() - LISTED_SETS) as u64)
        ));
    }
}

fn differing_runs(page: &mut Document, sets: &[&Set]) {
    let ratio = |run: &Run| Some(run.trial.sound? / run.median_pps? - 1.0);
    let runs: Vec<(f64, &Run)> = sets
        .iter()
        .flat_map(|s| &s.runs)
        .filter_map(|run| Some((ratio(run)?, run)))
        .collect();
    if runs.is_empty() {
        return;
    }
    let mut differ: Vec<&(f64, &Run)> = runs.iter().filter(|(r, _)| r.abs() > REMARKABLE).collect();
    differ.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    page.heading("The steady part against the archive's lines");
    page.say(format!(
        "The archive drops the first 15 and the last 10 lines of a log, linerate what stands before and after the rate settles. The two medians differ by more than 1 % in {} of {} runs.",
        grouped(differ.len() as u64),
        grouped(runs.len() as u64),
    ));
    let told = differ.into_iter().map(|(ratio, run)| {
        let [archive, steady] =
            [run.median_pps, run.trial.sound].map(|r| significant(r.unwrap_or(0.0), 4));
        let percent = 100.0 * ratio;
        format!(
            "{}: {archive} by the archive, {steady} steady ({percent:+.1} %)",
            run.trial.file
        )
    });
    page.items(
        "- ",
        told,
        Tone::Plain,
        (LISTED_RUNS, "; --json has them all"),
    );
}

/// How many files of each kind were read, then every problem of every file.
fn files(page: &mut Document, archive: &Archive) {
    let mut kinds: BTreeMap<&str, (u64, Vec<String>)> = archive
        .files
        .iter()
        .map(|(kind, n)| (*kind, (*n, Vec::new())))
        .collect();
    for FileProblem {
        kind, path, reason, ..
    } in &archive.problems
    {
        kinds
            .entry(kind)
            .or_default()
            .1
            .push(format!("{path}: {reason}"));
    }
    page.heading("Files");
    page.table(
        Table::of(&kinds)
            .column("", "kind", |(kind, _)| **kind)
            .column("", "files", |(_, (files, _))| count(*files))
            .column("", "problems", |(_, (_, broken))| match broken.len() {
                0 => "".into(),
                n => count(n as u64),
            }),
    );
    page.note(format!("{} read.", bytes(archive.bytes)));
    for (kind, (_, problems)) in kinds {
        page.list(&format!("Problems: {kind}"), "! ", problems, Tone::Plain);
    }
}

#[cfg(test)]
mod tests;
