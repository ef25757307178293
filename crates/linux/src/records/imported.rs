//! Records of campaigns that were measured elsewhere: many campaigns at once, each whole or absent.

use super::{CAMPAIGN, HOST, RecordsError, SUMMARY, TRIALS, make_empty, sync_directory};
use linerate_import::netbenches::records::Records;
use linerate_measure::record::Summary;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// File names may be 255 bytes long; a number must still fit behind.
const LONGEST_NAME: usize = 200;

/// The folder that takes the campaigns of one import.
#[derive(Debug)]
pub struct ImportStore {
    directory: PathBuf,
    /// The folder was not there before.
    made: bool,
    taken: BTreeSet<String>,
}

impl ImportStore {
    /// Makes the folder, which must be new or empty.
    ///
    /// # Errors
    /// It cannot be made, or has something in it.
    pub fn create(directory: &Path) -> Result<Self, RecordsError> {
        let made = !directory.exists();
        Ok(ImportStore { directory: make_empty(directory)?, made, taken: BTreeSet::new() })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a campaign's folder under another name, puts it on the disk with one call, and renames it: a reader sees the
    /// whole campaign or none.
    ///
    /// # Errors
    /// Something cannot be written. Campaigns written before are whole.
    pub fn write(&mut self, records: &Records, summary: &Summary) -> Result<PathBuf, RecordsError> {
        let name = self.free_name(&records.campaign.name);
        let (temporary, path) = (self.directory.join(format!(".{name}.new")), self.directory.join(name));
        let write = || -> io::Result<()> {
            fs::create_dir(&temporary)?;
            document(&temporary.join(CAMPAIGN), &records.campaign)?;
            document(&temporary.join(HOST), &records.host)?;
            let mut trials = BufWriter::new(File::create(temporary.join(TRIALS))?);
            for trial in &records.trials {
                serde_json::to_writer(&mut trials, trial)?;
                trials.write_all(b"\n")?;
            }
            trials.flush()?;
            document(&temporary.join(SUMMARY), summary)?;
            sync_file_system(&temporary)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|e| {
            // A part of a campaign is not a record; the error to report is the first one.
            let _ = fs::remove_dir_all(&temporary);
            RecordsError::system("write", &path, e)
        })?;
        Ok(path)
    }

    /// Puts the campaigns' names on the disk.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(self) -> Result<(), RecordsError> {
        sync_directory(&self.directory)
    }

    fn free_name(&mut self, name: &str) -> String {
        let allowed =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '+' };
        let base: String = name.chars().take(LONGEST_NAME).map(allowed).collect();
        let base = if base.trim_matches('.').is_empty() { "campaign".to_string() } else { base };
        let mut name = base.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}-{number}");
            number += 1;
        }
        name
    }
}

impl Drop for ImportStore {
    /// An import that came to nothing leaves nothing behind.
    fn drop(&mut self) {
        if self.made && self.taken.is_empty() {
            // Fails, and may, where something has got into it.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

fn document(path: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.flush()
}

/// One call for all files of a campaign, instead of one for each.
fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::read;
    use linerate_import::netbenches::{
        ImportedSlot, Published, ResultDirectory, Set, layout::Place, records::records,
    };
    use linerate_measure::strategy::Stopped;
    use linerate_measure::summary::summarise;

    fn example(label: &str) -> Records {
        let published = Published { values: vec![1e6, 2e6], file: "a.pps".into(), ..Published::default() };
        let slot = ImportedSlot { set: "a".into(), published: Some(published), ..ImportedSlot::default() };
        let set = Set { slot, ..Set::default() };
        let directory = ResultDirectory {
            place: Place { machine: Some("M_4Cores".into()), label: Some(label.into()), ..Place::default() },
            sets: vec![set],
            ..ResultDirectory::default()
        };
        records(directory, "0.1.0").unwrap()
    }

    #[test]
    fn campaigns_of_any_name_are_written_and_read_back() {
        let scratch = std::env::temp_dir().join(format!("linerate-import-{}", std::process::id()));
        let out = scratch.join("records");
        let mut store = ImportStore::create(&out).unwrap();
        let names = ["a/b", "a/b", "../../up", &"x".repeat(400)];
        let mut written = Vec::new();
        for label in names {
            let records = example(label);
            let summary = summarise(&records.campaign, &records.trials, Stopped::Trials, 0);
            let path = store.write(&records, &summary).unwrap();
            assert_eq!(path.parent(), Some(out.as_path()));
            let back = read(&path).unwrap();
            assert_eq!((back.campaign, back.trials.len()), (records.campaign, 2));
            written.push(path);
        }
        store.finish().unwrap();
        written.dedup();
        assert_eq!(written.len(), 4);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 4);
        assert!(ImportStore::create(&out).is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
