//! The folder of a site: pages in it and in the folders that it has for them, and nowhere else.

use crate::error::{Doing, Error};
use crate::files::list;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file that tells a site from any other folder.
const MARK: &str = ".linerate-site";
const MARK_TEXT: &[u8] =
    b"linerate made the pages of this folder, and replaces them when it makes the site again.\n";

/// A folder that takes the pages of a site.
#[derive(Debug)]
pub struct SiteFolder {
    path: PathBuf,
    root: File,
    /// Folders of the site by name, each once it has been made.
    folders: Vec<(&'static str, File)>,
    allowed: &'static [&'static str],
}

impl SiteFolder {
    /// Makes the folder, or takes the pages of an earlier site out of it: `files` beside each other, and those that end with `.html`
    /// in `folders`. Other files stay.
    ///
    /// # Errors
    /// The folder cannot be made, or holds files and is no site.
    pub fn create(
        path: &Path,
        files: &[&str],
        folders: &'static [&'static str],
    ) -> Result<Self, Error> {
        let shown = path.display();
        fs::create_dir_all(path).doing(format_args!("make the folder {shown}"))?;
        let open = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(path);
        let root = open.doing(format_args!("open the folder {shown}"))?;
        let entries = list(&root, usize::MAX).doing(format_args!("read the folder {shown}"))?;
        let ours = entries
            .iter()
            .any(|(name, kind)| name == MARK && kind.as_ref().is_ok_and(|k| k.is_file()));
        if !ours && !entries.is_empty() {
            return Err(Error::Refused(format!(
                "{shown} is not empty, and not a site of linerate: name a new folder with -o"
            )));
        }
        let site = SiteFolder {
            path: path.to_path_buf(),
            root,
            folders: Vec::new(),
            allowed: folders,
        };
        if ours {
            site.clear(files)
                .doing(format_args!("remove the old pages of {shown}"))?;
        } else {
            site.new_file(None, MARK, MARK_TEXT)
                .doing(format_args!("write {}", path.join(MARK).display()))?;
        }
        Ok(site)
    }

    fn clear(&self, files: &[&str]) -> io::Result<()> {
        files
            .iter()
            .try_for_each(|file| remove(&self.root, OsStr::new(file)))?;
        for folder in self.allowed {
            let folder = match open_folder(&self.root, folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            for (name, _) in list(&folder, usize::MAX)? {
                if Path::new(&name).extension() == Some(OsStr::new("html")) {
                    remove(&folder, &name)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a file: `NAME`, or `FOLDER/NAME` with one of its folders.
    ///
    /// # Errors
    /// The file cannot be written, or its name leads elsewhere.
    pub fn write(&mut self, file: &str, text: &str) -> Result<(), Error> {
        let shown = self.path.join(file);
        let (folder, name) = match file.split_once('/') {
            Some((folder, name)) => (self.allowed.iter().find(|known| **known == folder), name),
            None => (None, file),
        };
        if (folder.is_none() && file.contains('/'))
            || name.contains('/')
            || matches!(name, "" | "." | "..")
        {
            return Err(Error::Refused(format!(
                "{} does not belong to the site",
                shown.display()
            )));
        }
        let written = match folder {
            Some(folder) => self
                .below(folder)
                .and_then(|at| self.new_file(Some(at), name, text.as_bytes())),
            None => self.new_file(None, name, text.as_bytes()),
        };
        written.doing(format_args!("write {}", shown.display()))
    }

    /// The place of an open folder.
    fn below(&mut self, folder: &'static str) -> io::Result<usize> {
        if let Some(at) = self.folders.iter().position(|(name, _)| *name == folder) {
            return Ok(at);
        }
        match mkdirat(&self.root, folder, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => {}
            other => other?,
        }
        self.folders
            .push((folder, open_folder(&self.root, folder)?));
        Ok(self.folders.len() - 1)
    }

    fn new_file(&self, folder: Option<usize>, name: &str, bytes: &[u8]) -> io::Result<()> {
        let at = folder
            .and_then(|at| self.folders.get(at))
            .map_or(&self.root, |(_, folder)| folder);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(at, name, flags, Mode::from_raw_mode(0o666))?).write_all(bytes)
    }
}

/// Opens a folder, and not what a link leads to.
fn open_folder(root: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(root, name, flags, Mode::empty())?.into())
}

fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const FOLDERS: &[&str] = &["sets", "topics"];

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("linerate-site-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn create(path: &Path) -> Result<SiteFolder, Error> {
        SiteFolder::create(path, &["index.html"], FOLDERS)
    }

    #[test]
    fn a_site_replaces_its_own_pages_and_nothing_else() {
        let scratch = Scratch::new("own");
        let path = scratch.0.join("new/site");
        let mut site = create(&path).unwrap();
        site.write("index.html", "one").unwrap();
        site.write("sets/a.html", "one").unwrap();
        for wrong in [
            "../x.html",
            "sets/../x",
            "other/x.html",
            "sets/",
            "/x",
            "sets/a/b",
            "..",
        ] {
            assert!(site.write(wrong, "").is_err(), "{wrong}");
        }
        assert!(site.write("index.html", "twice").is_err());
        fs::write(path.join("sets/notes.txt"), "mine").unwrap();
        let mut again = create(&path).unwrap();
        assert!(!path.join("sets/a.html").exists() && path.join("sets/notes.txt").exists());
        again.write("index.html", "two").unwrap();
        assert_eq!(fs::read_to_string(path.join("index.html")).unwrap(), "two");
    }

    #[test]
    fn other_folders_and_links_are_left_alone() {
        let scratch = Scratch::new("others");
        let full = scratch.0.join("full");
        fs::create_dir(&full).unwrap();
        fs::write(full.join("thesis.tex"), "mine").unwrap();
        assert!(create(&full).unwrap_err().to_string().contains("not empty"));
        assert!(create(&full.join("thesis.tex")).is_err());
        let path = scratch.0.join("site");
        let outside = scratch.0.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("page.html"), "mine").unwrap();
        drop(create(&path).unwrap());
        symlink(&outside, path.join("sets")).unwrap();
        // Neither emptied nor written to through the link.
        assert!(create(&path).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        fs::remove_file(path.join("sets")).unwrap();
        symlink(outside.join("page.html"), path.join("index.html")).unwrap();
        create(&path)
            .unwrap()
            .write("index.html", "a page")
            .unwrap();
        assert_eq!(
            fs::read_to_string(outside.join("page.html")).unwrap(),
            "mine"
        );
    }
}
