//! The guest's only file system: an archive that the kernel unpacks into memory. Programs come from this machine, with their libraries.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of a guest, with the links of a merged /usr.
pub struct Archive {
    pub files: linerate_linux::guest::archive::Archive,
}

impl Archive {
    pub fn new() -> Archive {
        let mut files = linerate_linux::guest::archive::Archive::default();
        for folder in ["bin", "sbin", "lib", "lib64"] {
            files.folder(Path::new("/usr").join(folder));
            files.link(format!("/{folder}"), format!("usr/{folder}"));
        }
        Archive { files }
    }

    /// A file, folder or link of this machine, with all that a folder has.
    pub fn copy(&mut self, from: &Path, to: &Path) {
        let kind = fs::symlink_metadata(from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        if kind.is_symlink() {
            self.files.link(to, fs::read_link(from).unwrap());
        } else if kind.is_dir() {
            self.files.folder(to);
            for inside in fs::read_dir(from).unwrap().map(|inside| inside.unwrap()) {
                self.copy(&inside.path(), &to.join(inside.file_name()));
            }
        } else {
            let mode = kind.permissions().mode() & 0o777;
            self.files.file(to, mode, fs::read(from).unwrap());
        }
    }

    /// Programs of this machine by their names, with the links that lead to them, and their libraries. Those that are absent are left out.
    pub fn programs(&mut self, names: &str) {
        let mut real = BTreeSet::new();
        for name in names.split_whitespace() {
            let places = ["/usr/sbin", "/usr/bin", "/usr/lib/openssh"]
                .map(|place| Path::new(place).join(name));
            let Some(mut path) = places.into_iter().find(|place| place.exists()) else {
                continue;
            };
            while let Ok(target) = fs::read_link(&path) {
                self.copy(&path, &path);
                path = in_usr(&path.parent().unwrap().join(target));
            }
            self.copy(&path, &path);
            real.insert(path);
        }
        self.libraries(real);
    }

    /// The libraries that these programs are linked with.
    pub fn libraries(&mut self, programs: impl IntoIterator<Item = PathBuf>) {
        let said = Command::new("ldd")
            .args(programs)
            .output()
            .expect("libc-bin is installed")
            .stdout;
        let said = String::from_utf8(said).unwrap();
        let paths = said
            .split_whitespace()
            .filter(|word| word.starts_with('/') && !word.ends_with(':'));
        for path in paths.collect::<BTreeSet<_>>() {
            self.files
                .file(in_usr(Path::new(path)), 0o755, fs::read(path).unwrap());
        }
    }
}

/// The path without `..` and without the links of a merged /usr.
fn in_usr(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part.as_os_str().to_str() {
            Some("..") => drop(clean.pop()),
            Some("bin" | "sbin" | "lib" | "lib64") if clean == Path::new("/") => {
                clean.extend([Path::new("usr"), part.as_ref()])
            }
            _ => clean.push(part),
        }
    }
    clean
}
