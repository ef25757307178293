//! An archive as a dataset: Parquet files by lab, year and month, which engines read without linerate.
//!
//! A campaign has three files with one name: facts, cells and, as the last that is written, trials. `compact` makes one file of all
//! campaigns of a month.

mod check;
mod compact;
mod partition;

pub use check::Checked;
pub use compact::Compacted;
pub use partition::Partition;

use anyhow::{Result, anyhow, bail};
use linerate_linux::dataset::DatasetFolder;
use linerate_measure::record::{Stopped, Summary};
use linerate_measure::summary::summarise;
use linerate_report::export::{Archive, Rows, Stored, identity};
use linerate_report::pages::Records;
use partition::{COMPACT, file_of};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A dataset.
pub struct Dataset {
    folder: DatasetFolder,
}

/// The result of adding a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New,
    /// The archive has the same.
    Same,
    /// An earlier state gave way to it.
    Replaced,
    /// The archive has this many trials of it, which are more: it stays as it is.
    Kept(usize),
}

/// Where the rows of a campaign are.
enum Found {
    Nowhere,
    /// In a file of their own, and how many can be read.
    Alone(Vec<u8>, usize),
    /// In the file of a month.
    Among(Stored<File>),
}

impl Dataset {
    /// Makes an archive, or takes one that is there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(root: &Path) -> Result<Self> {
        let folder = DatasetFolder::create(root)?;
        Ok(Dataset { folder })
    }

    /// Takes an archive that is there.
    ///
    /// # Errors
    /// The folder is not there, or is no archive.
    pub fn open(root: &Path) -> Result<Self> {
        let folder = DatasetFolder::open(root)?;
        Ok(Dataset { folder })
    }

    /// Adds a campaign. `from`: its folder; `lab`: the name of its lab; without one, the lab under which the
    /// archive has it, or the kind of its testbed.
    ///
    /// # Errors
    /// The campaign has no trial, is there as one of another lab, or cannot be written.
    pub fn add(&self, records: &Records<'_>, from: &str, lab: Option<&str>) -> Result<Added> {
        if records.trials.is_empty() {
            bail!("no single trial is recorded there");
        }
        let own = own_summary(records);
        let records = &Records {
            summary: own.as_ref().unwrap_or(records.summary),
            ..*records
        };
        let id = identity(records);
        let mut place = Partition::of_campaign(records.campaign, lab);
        let mut held = self.folder.lock(false)?;
        match self.elsewhere(&place, &id)? {
            Some(other) if lab.is_some() => bail!(
                "the archive has it as a campaign of the lab {lab}: add it with --lab {lab}, or without",
                lab = other.lab
            ),
            Some(other) => place = other,
            None => {}
        }
        let files = files(records, from, &place.lab)?;
        let mut alone = false;
        loop {
            let mut found = Vec::new();
            for (rows, bytes) in &files {
                let there = self.find(*rows, &place, &id)?;
                let same = match &there {
                    Found::Nowhere => false,
                    Found::Alone(of, _) => of == bytes,
                    Found::Among(of) => extracted(of, *rows, &id)? == *bytes,
                };
                found.push((*rows, bytes, there, same));
            }
            let there = Self::trials(&found, &id)?;
            if there > records.trials.len() {
                return Ok(Added::Kept(there));
            }
            let replaced = found
                .iter()
                .any(|(.., of, same)| !same && !matches!(of, Found::Nowhere));
            if replaced && !alone {
                // Nobody else may replace them meanwhile.
                drop(held);
                held = self.folder.lock(true)?;
                alone = true;
                continue;
            }
            let mut added = if there > 0 { Added::Same } else { Added::New };
            for (rows, bytes, of, _) in found.into_iter().filter(|(.., same)| !same) {
                let name = |name: &str| place.file(rows, name);
                match of {
                    Found::Among(_) if !held.is_sure() => bail!(
                        "it is in a file of many campaigns, and this file system has no locks: replace it in a copy of the archive on a local disk"
                    ),
                    Found::Among(of) => {
                        let bytes = replaced_in(&of, rows, &place.lab, records, from, &id)?;
                        self.folder.write(&name(COMPACT), &bytes)?;
                    }
                    _ => self.folder.write(&name(&file_of(&id)), bytes)?,
                }
                if there > 0 {
                    added = Added::Replaced;
                }
            }
            return Ok(added);
        }
    }

    /// How many trials of a campaign are there.
    fn trials(found: &[(Rows, &Vec<u8>, Found, bool)], id: &str) -> Result<usize> {
        let trials = found.iter().find(|(rows, ..)| *rows == Rows::Trials);
        Ok(match trials {
            Some((_, _, Found::Among(of), _)) => of.count(id)?,
            Some((_, _, Found::Alone(_, rows), _)) => *rows,
            _ => 0,
        })
    }

    /// Finds the rows of a campaign in its month.
    fn find(&self, rows: Rows, place: &Partition, id: &str) -> Result<Found> {
        let among = self.stored(rows, &place.file(rows, COMPACT))?;
        let among = match among {
            Some(of) if of.count(id)? > 0 => Some(of),
            _ => None,
        };
        let path = place.file(rows, &file_of(id));
        let alone = self.folder.file(&path)?;
        Ok(match (alone, among) {
            (None, None) => Found::Nowhere,
            (None, Some(of)) => Found::Among(of),
            (Some(mut file), None) => {
                let mut bytes = Vec::new();
                let read = file.read_to_end(&mut bytes);
                read.map_err(|why| broken(&path, &why))?;
                // A broken file is replaced.
                let there = Stored::open(file, rows).and_then(|of| of.count(id));
                Found::Alone(bytes, there.unwrap_or_default())
            }
            (Some(_), Some(_)) => bail!("it is there twice: {path}, and in {COMPACT} beside it"),
        })
    }

    /// The place in another lab that has a campaign.
    fn elsewhere(&self, place: &Partition, id: &str) -> Result<Option<Partition>> {
        for (name, _) in self.folder.list(Rows::Trials.name())? {
            let Some(other) = place.of_lab(&name).filter(|other| other.lab != place.lab) else {
                continue;
            };
            if !matches!(self.find(Rows::Trials, &other, id)?, Found::Nowhere) {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// Opens a file; `None` without it.
    fn stored(&self, rows: Rows, path: &str) -> Result<Option<Stored<File>>> {
        let Some(file) = self.folder.file(path)? else {
            return Ok(None);
        };
        let stored = Stored::open(file, rows).map_err(|fault| broken(path, &fault))?;
        Ok(Some(stored))
    }
}

/// The summary of exactly these trials, where that of the records is of others: the campaign goes on, or its records are damaged.
fn own_summary(records: &Records<'_>) -> Option<Summary> {
    let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
    for trial in records.trials {
        *counted.entry(trial.slot).or_default() += 1;
    }
    let mut rows = records.summary.rows.iter();
    let agrees = rows.all(|row| counted.remove(&row.slot).unwrap_or_default() == row.trials);
    let own = || summarise(records.campaign, records.trials, Stopped::Failed, 0);
    (!agrees || !counted.is_empty()).then(own)
}

/// The files of a campaign, trials last.
fn files(records: &Records<'_>, from: &str, lab: &str) -> Result<Vec<(Rows, Vec<u8>)>> {
    let of = |(rows, _): (Rows, &str)| {
        let mut bytes = Vec::new();
        let mut file = Archive::new(&mut bytes, rows, Some(lab))?;
        file.add(from, records)?;
        file.finish()?;
        Ok((rows, bytes))
    };
    Rows::ALL.into_iter().map(of).collect()
}

/// The file that a campaign would have, by its rows in the file of a month.
fn extracted(of: &Stored<File>, rows: Rows, id: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = Archive::new(&mut bytes, rows, of.lab.as_deref())?;
    for at in (0..of.groups()).filter(|at| of.may_have(*at, id)) {
        file.copy(&of.group(at)?, |found| found == id)?;
    }
    file.finish()?;
    Ok(bytes)
}

/// The file of a month in which a campaign has other rows.
fn replaced_in(
    of: &Stored<File>,
    rows: Rows,
    lab: &str,
    records: &Records<'_>,
    from: &str,
    id: &str,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = Archive::new(&mut bytes, rows, Some(lab))?;
    for at in 0..of.groups() {
        file.copy(&of.group(at)?, |found| found != id)?;
    }
    file.add(from, records)?;
    file.finish()?;
    Ok(bytes)
}

fn broken(path: &str, fault: &impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{path} cannot be read: {fault}")
}
