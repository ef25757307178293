//! Finds campaigns, and reads their folders back.

use super::{CAMPAIGN, FACTS, HOST, SUMMARY, TRIALS, failed, stacks_of};
use crate::Error;
use crate::files;
use linerate_measure::record::{
    Campaign, HostFacts, Lines, SlotFacts, Summary, TrialRecord, read_document, read_lines,
};
use linerate_profile::Profile;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The record of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCampaign {
    /// The request and the set-up.
    pub campaign: Campaign,
    /// The machine; nothing but defaults where the campaign ended before it was written.
    pub host: HostFacts,
    /// All whole trials.
    pub trials: Vec<TrialRecord>,
    /// How the DUT was configured, for each slot that was asked.
    pub facts: Vec<SlotFacts>,
    /// The verdict, where the campaign got that far.
    pub summary: Option<Summary>,
    /// Sentences about missing parts (after a full disk, a power failure, a copy in part). Figures of the summary may then be of trials
    /// that are not in the record.
    pub missing: Vec<String>,
    /// Trials in the middle of the record are missing: it cannot go on.
    pub is_damaged: bool,
}

/// Reads the record in `directory`.
///
/// # Errors
/// The folder is not a record, cannot be read, its `campaign.json` is malformed, or it was written by a newer linerate.
pub fn read(directory: &Path) -> Result<StoredCampaign, Error> {
    let campaign = head(directory)?;
    let Lines {
        documents: mut trials,
        cut_off,
        broken,
    } = lines::<TrialRecord>(directory, TRIALS)?;
    let facts = facts(directory)?;
    let summary: Option<Summary> = document(directory, SUMMARY)?;
    let unreadable = broken.iter().chain(&facts.broken);
    let mut missing: Vec<String> = unreadable
        .map(|why| format!("a line is left out: {why}"))
        .collect();
    let strays = trials.extract_if(.., |trial| trial.slot >= campaign.slots.len());
    let strays = strays.map(|trial| (trial.trial, trial.slot + 1));
    missing.extend(strays.map(|(trial, cell)| {
        format!(
            "trial {trial} of {TRIALS} is left out: it belongs to cell {cell}, and {CAMPAIGN} has {}",
            campaign.slots.len()
        )
    }));
    let is_damaged = !missing.is_empty();
    // A campaign that goes on has trials that its last summary does not know.
    if !is_running(directory) {
        for (file, _) in [(TRIALS, cut_off), (FACTS, facts.cut_off)]
            .iter()
            .filter(|(_, cut_off)| *cut_off)
        {
            missing.push(format!("the last line of {file} is cut off and left out"));
        }
        let counted = summary
            .iter()
            .flat_map(|s| &s.rows)
            .map(|row| row.trials)
            .sum::<usize>();
        if counted > trials.len() {
            missing.push(format!(
                "{SUMMARY} counts {counted} trials, and {TRIALS} holds {}",
                trials.len()
            ));
        }
    }
    let host = document(directory, HOST)?.unwrap_or_default();
    Ok(StoredCampaign {
        campaign,
        host,
        trials,
        facts: facts.documents,
        summary,
        missing,
        is_damaged,
    })
}

/// Reads `campaign.json` alone.
///
/// # Errors
/// As [`read`].
pub fn head(directory: &Path) -> Result<Campaign, Error> {
    document(directory, CAMPAIGN)?.ok_or_else(|| {
        if let Err(gone) = fs::metadata(directory) {
            return failed("read the record", directory)(gone);
        }
        let (shown, reason) = (directory.display(), why_not(directory));
        Error::Refused(format!("{shown} is not a record of linerate: {reason}"))
    })
}

/// Reads the machine and the verdict alone, as far as they are there.
///
/// # Errors
/// One of them is malformed, or was written by a newer linerate.
pub fn verdict(directory: &Path) -> Result<(HostFacts, Option<Summary>), Error> {
    Ok((
        document(directory, HOST)?.unwrap_or_default(),
        document(directory, SUMMARY)?,
    ))
}

/// Whether the campaign in `directory` has its verdict.
pub fn has_ended(directory: &Path) -> bool {
    directory.join(SUMMARY).is_file()
}

/// Whether a linerate of this machine is writing the record: it holds a lock on its trials. By the number of the file alone, because
/// some file systems show another device there.
pub fn is_running(directory: &Path) -> bool {
    let Ok(trials) = fs::metadata(directory.join(TRIALS)) else {
        return false;
    };
    let number = format!(":{}", trials.ino());
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut words = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.any(|line| line.contains(&"FLOCK") && line.iter().any(|word| word.ends_with(&number)))
}

impl StoredCampaign {
    /// The stacks of slots that were profiled, of the record in `directory`.
    ///
    /// # Errors
    /// A file of stacks that the summary names cannot be read.
    pub fn stacks(&self, directory: &Path) -> Result<BTreeMap<usize, Profile>, Error> {
        let profiles = self.summary.iter().flat_map(|summary| &summary.profiles);
        let read = |slot: usize| {
            let path = directory.join(stacks_of(slot, ""));
            let text = text(&path)?
                .ok_or_else(|| Error::Refused(format!("{} is missing", path.display())))?;
            Ok((slot, Profile::of_folded(&text)))
        };
        profiles.map(|profile| read(profile.slot)).collect()
    }
}

/// How the DUT was configured, by slot.
pub(super) fn facts(directory: &Path) -> Result<Lines<SlotFacts>, Error> {
    lines(directory, FACTS)
}

fn lines<T: serde::de::DeserializeOwned>(directory: &Path, name: &str) -> Result<Lines<T>, Error> {
    let path = directory.join(name);
    let text = text(&path)?.unwrap_or_default();
    Ok(read_lines(&path.display().to_string(), &text)?)
}

/// How many bytes of a file are whole lines.
pub(super) fn whole_lines(path: &Path) -> Result<u64, Error> {
    let bytes = files::read(path, usize::MAX).map_err(failed("read", path))?;
    Ok(bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at as u64 + 1))
}

fn document<T: serde::de::DeserializeOwned>(
    directory: &Path,
    name: &str,
) -> Result<Option<T>, Error> {
    let path = directory.join(name);
    match text(&path)? {
        Some(text) => Ok(Some(read_document(&path.display().to_string(), &text)?)),
        None => Ok(None),
    }
}

/// The text of a file; `None` without a file. Invalid UTF-8 is replaced: the JSON reader then reports its place.
fn text(path: &Path) -> Result<Option<String>, Error> {
    match files::read(path, usize::MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(failed("read", path)(e)),
    }
}

fn why_not(directory: &Path) -> String {
    let Ok(entries) = fs::read_dir(directory) else {
        return "it is not a folder".into();
    };
    let paths = entries.flatten().map(|e| e.path());
    // Names of campaigns begin with the time, so that the greatest is the newest.
    let newest: Option<PathBuf> = paths.filter(|p| p.join(CAMPAIGN).exists()).max();
    match newest {
        Some(record) => {
            format!(
                "it has no {CAMPAIGN}, but holds records; the newest is {}",
                record.display()
            )
        }
        None => format!("it has no {CAMPAIGN}"),
    }
}

/// Folders below each other that are looked into.
const DEEPEST: usize = 32;

/// The folders of all campaigns at or below `directory`, in the order of their paths. Links are not followed, and unreadable
/// folders below it are skipped.
///
/// # Errors
/// `directory` itself cannot be read.
pub fn find(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    fs::read_dir(directory).map_err(failed("read", directory))?;
    let mut found = Vec::new();
    let mut open = vec![(directory.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        if folder.join(CAMPAIGN).is_file() {
            found.push(folder);
            continue;
        }
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = below.filter(|e| depth < DEEPEST && e.file_type().is_ok_and(|t| t.is_dir()));
        open.extend(folders.map(|e| (e.path(), depth + 1)));
    }
    found.sort();
    Ok(found)
}
