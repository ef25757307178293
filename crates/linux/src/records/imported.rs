//! Records of campaigns that were measured elsewhere: many campaigns at once, each whole or absent.

use super::{CAMPAIGN, HOST, SUMMARY, TRIALS, failed, make_empty, make_new, sanitised, sync_directory};
use crate::{Error, files};
use linerate_import::netbenches::records::Records;
use linerate_measure::record::Summary;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The folder that takes the campaigns of one import.
#[derive(Debug)]
pub struct ImportStore {
    directory: PathBuf,
    /// The folder was not there before.
    made: bool,
}

impl ImportStore {
    /// Makes the folder, which must be new or empty.
    ///
    /// # Errors
    /// It cannot be made, or has something in it.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let made = !directory.exists();
        Ok(ImportStore { directory: make_empty(directory)?, made })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a campaign's folder under another name, puts it on the disk with one call, and renames it: a reader sees the
    /// whole campaign or none.
    ///
    /// # Errors
    /// Something cannot be written. Campaigns written before are whole.
    pub fn write(&self, records: &Records, summary: &Summary) -> Result<PathBuf, Error> {
        let draft = self.directory.join(".new");
        let write = || -> io::Result<()> {
            fs::create_dir(&draft)?;
            files::write(&draft.join(CAMPAIGN), &records.campaign)?;
            files::write(&draft.join(HOST), &records.host)?;
            let mut trials = BufWriter::new(File::create(draft.join(TRIALS))?);
            for trial in &records.trials {
                serde_json::to_writer(&mut trials, trial)?;
                trials.write_all(b"\n")?;
            }
            trials.flush()?;
            files::write(&draft.join(SUMMARY), summary)?;
            // One call for all files of a campaign, instead of one for each.
            Ok(rustix::fs::syncfs(File::open(&draft)?)?)
        };
        let rename = |path: &Path| match fs::rename(&draft, path) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Err(ErrorKind::AlreadyExists.into()),
            other => other,
        };
        let written = write().map_err(failed("write", &draft));
        let named =
            written.and_then(|()| make_new(&self.directory, &sanitised(&records.campaign.name), "", rename));
        // A part of a campaign is not a record; the error to report is the first one.
        Ok(named.inspect_err(|_| drop(fs::remove_dir_all(&draft)))?.0)
    }

    /// Puts the campaigns' names on the disk.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(self) -> Result<(), Error> {
        sync_directory(&self.directory)
    }
}

impl Drop for ImportStore {
    /// A failed import leaves nothing behind.
    fn drop(&mut self) {
        if self.made {
            // Fails, and may, where anything is in it.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::read;
    use linerate_import::netbenches::{
        ImportedSlot, Published, ResultDirectory, Set, layout::Place, records::records,
    };
    use linerate_measure::record::Stopped;
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
        let store = ImportStore::create(&out).unwrap();
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
