//! Labs that are left up on purpose, or were half-made when their process died: a small file for each.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Netns};
use crate::files;
use crate::process::{Owner, started};
use linerate_plan::settings::Dut;

/// Where records are kept; memory that a restart of the machine empties, as it does the namespaces.
pub const DEFAULT_ROOT: &str = "/run/linerate";

/// The form of records that this program writes.
pub const VERSION: u32 = 1;

/// A lab, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    /// The form of this record.
    pub version: u32,
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
    /// Its inode: a namespace made later under the same name is not ours to remove.
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
            version: VERSION,
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
        Registry { labs: root.as_ref().join("labs") }
    }

    /// Writes a record, in one step: a reader sees the old one or the new one.
    pub fn write(&self, record: &LabRecord) -> Result<(), Error> {
        let path = self.path(&record.name)?;
        let draft = self.labs.join(format!(".{}.{}.draft", record.name, std::process::id()));
        fs::create_dir_all(&self.labs)
            .map_err(|e| Error::kernel(format!("make {}", self.labs.display()), e))?;
        let written = files::replace(&path, &draft, record);
        // Listing the labs needs no root.
        let shown = written.and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o644)));
        shown.map_err(|e| Error::kernel(format!("write lab record {}", path.display()), e))
    }

    /// All records; a damaged file does not hide the others.
    pub fn list(&self) -> Result<Listing, Error> {
        let failed = |e| Error::kernel(format!("list lab records in {}", self.labs.display()), e);
        let mut listing = Listing::default();
        for (path, record) in files::documents(&self.labs, "json", parse).map_err(failed)? {
            match record {
                Ok(record) => listing.records.push(record),
                Err(reason) => listing.damaged.push((path, reason)),
            }
        }
        Ok(listing)
    }

    /// The inodes of the namespaces of all labs, as far as their records can be read.
    pub fn inodes(&self) -> Vec<u64> {
        let records = self.list().unwrap_or_default().records;
        records.iter().flat_map(|record| record.namespaces.values()).map(|ns| ns.inode).collect()
    }

    /// Removes a record and nothing else; one that is not there is no error.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name)?;
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::kernel(format!("remove lab record {}", path.display()), e))
            }
            _ => Ok(()),
        }
    }

    /// Removes the names of a lab's namespaces, and then its record.
    pub fn take_down(&self, record: &LabRecord) -> Result<(), Error> {
        for namespace in record.namespaces.values() {
            remove_if_ours(namespace)?;
        }
        self.remove(&record.name)
    }

    /// Takes down the labs that were never completed and whose process has ended; returns their names. Drafts of records of such
    /// processes are removed, too.
    pub fn clear_remains(&self) -> Result<Vec<String>, Error> {
        let mut cleared = Vec::new();
        let files = fs::read_dir(&self.labs).into_iter().flatten().flatten();
        for draft in files.filter(|file| is_abandoned_draft(&file.file_name().to_string_lossy())) {
            // Another linerate may be clearing as well.
            let _ = fs::remove_file(draft.path());
        }
        for record in self.list()?.records {
            if !record.complete && !record.owner.runs() {
                self.take_down(&record)?;
                cleared.push(record.name);
            }
        }
        Ok(cleared)
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.bytes().all(allowed) {
            let reason =
                "letters, digits, `-`, `_` and `.` are allowed, at most 100, not beginning with a dot";
            return Err(Error::Invalid { what: "the lab name", value: name.to_owned(), reason });
        }
        Ok(self.labs.join(format!("{name}.json")))
    }
}

/// Whether a file is the draft of a record (`.NAME.PID.draft`) whose writer has ended.
fn is_abandoned_draft(file: &str) -> bool {
    let pid = file.strip_prefix('.').and_then(|f| f.strip_suffix(".draft")).and_then(|f| f.rsplit_once('.'));
    pid.and_then(|(_, pid)| pid.parse().ok()).is_some_and(|pid| started(pid).is_none())
}

/// Removes a persistent name if it still leads to the recorded namespace, or to no namespace (its mount was never made). Another
/// linerate may do the same at this moment: a name that is already removed is no error.
fn remove_if_ours(namespace: &NamespaceRecord) -> Result<(), Error> {
    let removed = match Netns::open(&namespace.name) {
        Ok(found) if found.inode() != namespace.inode => Ok(()),
        Ok(_) | Err(Error::Invalid { what: "the file", .. }) => Netns::remove_persistent(&namespace.name),
        // A file of mode 0, never mounted upon, is closed even to its owner.
        Err(e) if e.errno() == Some(libc::EACCES) => Netns::remove_persistent(&namespace.name),
        Err(e) => Err(e),
    };
    removed.or_else(|e| if e.is_missing() { Ok(()) } else { Err(e) })
}

fn parse(path: &Path, text: &str) -> Result<LabRecord, String> {
    let record: LabRecord = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let named_alike = path.file_stem().is_some_and(|stem| stem == record.name.as_str());
    match record.version {
        VERSION if named_alike => Ok(record),
        VERSION => Err("the name inside is not that of the file".into()),
        other => Err(format!("version {other} is not known, only {VERSION}")),
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
        assert!(is_abandoned_draft(".a.lab.4194304.draft"));
        let own = format!(".lab.{}.draft", std::process::id());
        for kept in [own.as_str(), "lab.json", ".lab.draft", ".lab.x.draft", "lab.4194304.draft"] {
            assert!(!is_abandoned_draft(kept), "{kept}");
        }
    }
}
