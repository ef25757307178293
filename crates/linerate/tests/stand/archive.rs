//! The guest's only file system: an archive that the kernel unpacks into memory (cpio, the form "newc"). Programs come from this machine,
//! with their libraries.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

/// Files of a guest, all of them root's.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// The content.
    paths: BTreeSet<PathBuf>,
}

impl Archive {
    /// Empty, with the links of a merged /usr.
    pub fn new() -> Archive {
        let mut archive = Archive::default();
        for folder in ["bin", "sbin", "lib", "lib64"] {
            archive.folder(&Path::new("/usr").join(folder));
            archive.link(&format!("/{folder}"), &format!("usr/{folder}"));
        }
        archive
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        if !self.paths.insert(path.into()) {
            return;
        }
        if let Some(parent) = path.parent().filter(|parent| parent.parent().is_some()) {
            self.folder(parent);
        }
        let name = path.strip_prefix("/").unwrap();
        self.append(self.paths.len() as u32, name, mode, content);
    }

    /// Numbers of an entry: inode, mode, owner, group, links, time, length, two devices, length of the name, checksum.
    fn append(&mut self, inode: u32, name: &Path, mode: u32, content: &[u8]) {
        let name = name.as_os_str().as_bytes();
        let (length, name_length) = (content.len() as u32, name.len() as u32 + 1);
        let numbers = [inode, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend(b"070701");
        self.bytes.extend(
            numbers
                .map(|number| format!("{number:08X}"))
                .concat()
                .bytes(),
        );
        self.bytes.extend(name);
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub fn folder(&mut self, path: &Path) {
        self.entry(path, FOLDER, b"");
    }

    pub fn file(&mut self, path: &str, mode: u32, content: impl AsRef<[u8]>) {
        self.entry(Path::new(path), FILE | mode, content.as_ref());
    }

    pub fn link(&mut self, path: &str, to: &str) {
        self.entry(Path::new(path), LINK, to.as_bytes());
    }

    /// A file, folder or link of this machine, with all that a folder has.
    pub fn copy(&mut self, from: &Path, to: &Path) {
        let kind = fs::symlink_metadata(from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        if kind.is_symlink() {
            self.entry(
                to,
                LINK,
                fs::read_link(from).unwrap().as_os_str().as_bytes(),
            );
        } else if kind.is_dir() {
            self.folder(to);
            for inside in fs::read_dir(from).unwrap().map(|inside| inside.unwrap()) {
                self.copy(&inside.path(), &to.join(inside.file_name()));
            }
        } else {
            use std::os::unix::fs::PermissionsExt;
            self.entry(
                to,
                FILE | (kind.permissions().mode() & 0o777),
                &fs::read(from).unwrap(),
            );
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
            let content = fs::read(path).unwrap();
            self.entry(&in_usr(Path::new(path)), FILE | 0o755, &content);
        }
    }

    /// The archive as the kernel wants it.
    pub fn finish(mut self) -> Vec<u8> {
        self.append(0, Path::new("TRAILER!!!"), 0, b"");
        self.bytes
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
