//! A file system that the kernel unpacks into memory when it starts (cpio, the form "newc").

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

/// Files of a guest, all of them root's.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    paths: BTreeSet<PathBuf>,
}

impl Archive {
    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        if !self.paths.insert(path.into()) {
            return;
        }
        if let Some(parent) = path.parent().filter(|parent| parent.parent().is_some()) {
            self.folder(parent);
        }
        let name = path.strip_prefix("/").unwrap_or(path);
        self.append(self.paths.len(), name, mode, content);
    }

    /// Numbers of an entry: inode, mode, owner, group, links, time, length, four of devices, length of the name, checksum.
    fn append(&mut self, inode: usize, name: &Path, mode: u32, content: &[u8]) {
        let name = name.as_os_str().as_bytes();
        let (length, name_length) = (content.len() as u32, name.len() as u32 + 1);
        let numbers = [
            inode as u32,
            mode,
            0,
            0,
            1,
            0,
            length,
            0,
            0,
            0,
            0,
            name_length,
            0,
        ];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08X}").bytes());
        }
        self.bytes.extend(name);
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub fn folder(&mut self, path: impl AsRef<Path>) {
        self.entry(path.as_ref(), FOLDER, b"");
    }

    pub fn file(&mut self, path: impl AsRef<Path>, mode: u32, content: impl AsRef<[u8]>) {
        self.entry(path.as_ref(), FILE | mode, content.as_ref());
    }

    pub fn link(&mut self, path: impl AsRef<Path>, to: impl AsRef<Path>) {
        self.entry(path.as_ref(), LINK, to.as_ref().as_os_str().as_bytes());
    }

    /// The archive as the kernel wants it.
    pub fn finish(mut self) -> Vec<u8> {
        self.append(0, Path::new("TRAILER!!!"), 0, b"");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_their_files_and_files_once() {
        let mut archive = Archive::default();
        for content in [&b"one"[..], b"two"] {
            archive.file("/a/b", 0o644, content);
        }
        let text = String::from_utf8(archive.finish()).unwrap();
        assert_eq!(text.matches("070701").count(), 3);
        assert!(text.find("a\0").unwrap() < text.find("a/b\0").unwrap());
        assert!(text.contains("one") && !text.contains("two") && text.len().is_multiple_of(4));
    }
}
