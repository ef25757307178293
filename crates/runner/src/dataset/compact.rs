//! Many small files of a month become one.

use super::partition::{COMPACT, Partition, id_of};
use super::{Dataset, broken};
use anyhow::{Result, bail};
use linerate_report::export::{Archive, Rows};
use std::collections::BTreeSet;
use std::io::{self, BufWriter};

/// The files that went and came.
#[derive(Debug, Default)]
pub struct Compacted {
    /// Files that went.
    pub before: usize,
    /// Files that came.
    pub after: usize,
    /// Remains of writers that were killed, which were removed.
    pub removed: usize,
    /// Months that stay as they are, with the reason.
    pub left: Vec<String>,
}

impl Dataset {
    /// Makes one file of the files of each month. A reader finds the old files or the new one, and a kill leaves one of both.
    ///
    /// # Errors
    /// The file system cannot do that, or a file cannot be written.
    pub fn compact(&self) -> Result<Compacted> {
        let held = self.folder.lock(true)?;
        if !held.is_sure() || !self.folder.exchanges() {
            bail!(
                "the file system of {} has no locks, or cannot exchange two folders at once, so that readers would see rows twice or not at all: compact a copy of the archive on a local disk",
                self.folder.root().display()
            );
        }
        let mut done = Compacted::default();
        // Their writers would hold the lock.
        for draft in self.folder.drafts()? {
            self.folder.remove_draft(&draft)?;
            done.removed += 1;
        }
        let (places, _) = self.places()?;
        for (place, _) in places {
            for (rows, _) in Rows::ALL {
                match self.compact_one(rows, &place) {
                    Ok(Some(files)) => {
                        done.before += files;
                        done.after += 1;
                    }
                    Ok(None) => {}
                    Err(why) => done.left.push(format!("{}: {why}", place.file(rows, ""))),
                }
            }
        }
        Ok(done)
    }

    /// Compacts a month, and returns how many files it had, if there was something to do.
    fn compact_one(&self, rows: Rows, place: &Partition) -> Result<Option<usize>> {
        let folder = place.file(rows, "");
        let folder = folder.trim_end_matches('/');
        let mut names: Vec<String> = Vec::new();
        for (name, is_folder) in self.folder.list(folder)? {
            if is_folder || (name != COMPACT && id_of(&name).is_none()) {
                bail!("{name} does not belong to an archive");
            }
            names.push(name);
        }
        if names.len() < 2 {
            return Ok(None);
        }
        // The old rows come first.
        names.sort_by_key(|name| name != COMPACT);
        let mut files = Vec::new();
        for name in &names {
            let path = place.file(rows, name);
            let stored = self.stored(rows, &path)?;
            files.push((path, stored.ok_or_else(|| broken(name, &"it is gone"))?));
        }
        let mut fault = None;
        let written = self.folder.replace_folder(folder, COMPACT, |file| {
            let write = || -> Result<()> {
                let mut all = Archive::new(BufWriter::new(&file), rows, Some(&place.lab))?;
                let mut there = BTreeSet::new();
                for (path, stored) in &files {
                    let mut own = BTreeSet::new();
                    if stored.lab.as_ref() != Some(&place.lab) {
                        bail!("{path} is of another lab");
                    }
                    for at in 0..stored.groups() {
                        let group = stored.group(at).map_err(|fault| broken(path, &fault))?;
                        own.extend(group.ids().map(String::from));
                        all.copy(&group, |_| true)?;
                    }
                    if let Some(twice) = own.iter().find(|id| there.contains(*id)) {
                        bail!("the campaign {twice} is there twice");
                    }
                    there.append(&mut own);
                }
                Ok(all.finish()?)
            };
            write().map_err(|why| {
                fault = Some(why);
                io::ErrorKind::Other.into()
            })
        });
        match fault {
            Some(why) => Err(why),
            None => Ok(written.map(|()| Some(names.len()))?),
        }
    }
}
