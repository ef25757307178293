//! Labs that are left up on purpose, or were half-made when their process died: a small file for each.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Netns;
use crate::error::{Doing, Error};
use crate::files;
use crate::process::{Owner, started};
use linerate_plan::settings::Dut;

/// Where records are kept; memory that a restart of the machine empties, as it does the namespaces.
pub const DEFAULT_ROOT: &str = "/run/linerate";

/// No record is nearly this long.
const LONGEST: usize = 1 << 20;

/// A lab, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    pub name: String,
    /// The process that makes, or made, the lab.
    #[serde(flatten)]
    pub owner: Owner,
    /// When the lab was made, in seconds since 1970.
    pub created: u64,
    /// Made completely. A record with `false` of a process that has ended is a remainder.
    pub complete: bool,
    /// The namespaces by role, such as `dut`.
    pub namespaces: BTreeMap<String, NamespaceRecord>,
    /// The DUT of each lane.
    #[serde(default)]
    pub duts: Vec<Dut>,
}

/// How far the lab of a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LabState {
    /// A lab with all its namespaces.
    Up,
    /// A lab that a process is making now.
    Beginning,
    /// A lab that was never finished, or has lost some of its namespaces.
    Unfinished,
}

/// A namespace of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// The name under which `ip netns` knows it.
    pub name: String,
    /// Inode of the namespace: one made later under the same name is not ours to remove.
    pub inode: u64,
}

/// All records of a registry.
#[derive(Debug, Default)]
pub struct Listing {
    /// The records, by name.
    pub records: Vec<LabRecord>,
    /// Files that could not be understood, and why.
    pub damaged: Vec<(PathBuf, String)>,
}

#[derive(Debug, Clone)]
pub struct Registry {
    labs: PathBuf,
}

impl LabRecord {
    /// A record, not yet complete, of a lab that this process is making.
    pub fn begin(name: &str, created: u64) -> LabRecord {
        LabRecord {
            name: name.to_owned(),
            owner: Owner::this(),
            created,
            complete: false,
            namespaces: BTreeMap::new(),
            duts: Vec::new(),
        }
    }

    /// The state of its lab now.
    pub fn state(&self) -> LabState {
        let there = |ns: &NamespaceRecord| match Netns::open(&ns.name) {
            Ok(found) => found.inode() == ns.inode,
            Err(error) => error.is_permission(),
        };
        match self.complete && self.namespaces.values().all(there) {
            true => LabState::Up,
            false if !self.complete && self.owner.runs() => LabState::Beginning,
            false => LabState::Unfinished,
        }
    }
}

impl Registry {
    /// The registry of this host.
    pub fn of_this_host() -> Registry {
        Registry::at(DEFAULT_ROOT)
    }

    /// The registry under `root` ([`DEFAULT_ROOT`], or a folder of a test).
    pub fn at(root: impl AsRef<Path>) -> Registry {
        Registry {
            labs: root.as_ref().join("labs"),
        }
    }

    /// Writes a record, in one step: a reader sees the old one or the new one.
    pub fn write(&self, record: &LabRecord) -> Result<(), Error> {
        let path = self.path(&record.name)?;
        let write = || {
            fs::create_dir_all(&self.labs)?;
            files::replace(&path, record)?;
            // Listing the labs needs no root.
            fs::set_permissions(&path, Permissions::from_mode(0o644))
        };
        write().doing(format_args!("write lab record {}", path.display()))
    }

    /// All records, by path; a damaged file does not hide the others, and a missing folder has none.
    pub fn list(&self) -> Result<Listing, Error> {
        let entries = match fs::read_dir(&self.labs) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Listing::default()),
            other => other.doing(format_args!("list lab records in {}", self.labs.display()))?,
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort();
        let mut listing = Listing::default();
        for path in paths {
            match files::read(&path, LONGEST).map(|bytes| parse(&path, &bytes)) {
                Ok(Ok(record)) => listing.records.push(record),
                Ok(Err(reason)) => listing.damaged.push((path, reason)),
                // Removed meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => listing.damaged.push((path, e.to_string())),
            }
        }
        Ok(listing)
    }

    /// The inodes of the namespaces of all labs, as far as their records can be read.
    pub fn inodes(&self) -> Vec<u64> {
        let records = self.list().unwrap_or_default().records;
        records
            .iter()
            .flat_map(|record| record.namespaces.values())
            .map(|ns| ns.inode)
            .collect()
    }

    /// Removes the names of a lab's namespaces, and then its record; one that is not there is no error.
    pub fn take_down(&self, record: &LabRecord) -> Result<(), Error> {
        for namespace in record.namespaces.values() {
            remove_if_ours(namespace)?;
        }
        let path = self.path(&record.name)?;
        let removed =
            fs::remove_file(&path).doing(format_args!("remove lab record {}", path.display()));
        removed.or_else(|e| if e.is_missing() { Ok(()) } else { Err(e) })
    }

    /// Takes down the labs that were never completed and whose process has ended; returns their names. Drafts of records of such
    /// processes are removed, too.
    pub fn clear_remains(&self) -> Result<Vec<String>, Error> {
        let files = fs::read_dir(&self.labs).into_iter().flatten().flatten();
        for draft in files.filter(|file| is_abandoned_draft(&file.file_name().to_string_lossy())) {
            // Another linerate may be clearing as well.
            let _ = fs::remove_file(draft.path());
        }
        let records = self.list()?.records.into_iter();
        let remains = records.filter(|record| !record.complete && !record.owner.runs());
        remains
            .map(|record| self.take_down(&record).map(|()| record.name))
            .collect()
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty()
            || name.len() > 100
            || name.starts_with('.')
            || !name.bytes().all(allowed)
        {
            let reason = "letters, digits, `-`, `_` and `.` are allowed, at most 100, not beginning with a dot";
            return Err(Error::unusable("the lab name", name, reason));
        }
        Ok(self.labs.join(format!("{name}.json")))
    }
}

/// Whether a file is the draft of a record (`NAME.PID.draft`) whose writer has ended.
fn is_abandoned_draft(file: &str) -> bool {
    let pid = file
        .strip_suffix(".draft")
        .and_then(|draft| draft.rsplit_once('.')?.1.parse().ok());
    pid.is_some_and(|pid| started(pid).is_none())
}

/// Removes a persistent name if it still leads to the recorded namespace, or to no namespace (its mount was never made). Another
/// linerate may do the same at this moment: a name that is already removed is no error.
fn remove_if_ours(namespace: &NamespaceRecord) -> Result<(), Error> {
    let removed = match Netns::open(&namespace.name) {
        Ok(found) if found.inode() != namespace.inode => Ok(()),
        // A file that is not a namespace has no errno; a file of mode 0, on which nothing was ever mounted, is closed even to its owner.
        Err(e) if !matches!(e.errno(), None | Some(libc::EACCES)) => Err(e),
        _ => Netns::remove_persistent(&namespace.name),
    };
    removed.or_else(|e| if e.is_missing() { Ok(()) } else { Err(e) })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<LabRecord, String> {
    let record: LabRecord = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    match path
        .file_stem()
        .is_some_and(|stem| stem == record.name.as_str())
    {
        true => Ok(record),
        false => Err("the name inside is not that of the file".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ü", "a\0"] {
            assert!(Registry::at("/nowhere").path(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn drafts_of_processes_that_are_gone_are_abandoned() {
        assert!(is_abandoned_draft("a.lab.4194304.draft"));
        let own = format!("lab.{}.draft", std::process::id());
        for kept in [own.as_str(), "lab.json", "lab.draft", "lab.x.draft"] {
            assert!(!is_abandoned_draft(kept), "{kept}");
        }
    }
}
