//! The private folder in which the sockets of connections stand.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Beginning of a folder's name; the number of its process follows.
const NAME: &str = "linerate-ssh-";
/// The longest path of a folder: ssh adds a name of its own, and a socket's path has 107 bytes.
const LONGEST: usize = 107 - 20 - 17;

/// A folder that only its owner can enter. It goes with the last connection.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of this process.
    pub fn shared() -> io::Result<Arc<Folder>> {
        static SHARED: Mutex<Weak<Folder>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = shared.upgrade() {
            return Ok(folder);
        }
        let folder = Arc::new(Folder::new()?);
        *shared = Arc::downgrade(&folder);
        Ok(folder)
    }

    fn new() -> io::Result<Folder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let long = |path: &PathBuf| path.as_os_str().as_bytes().len() > LONGEST - 40;
        let above =
            Some(std::env::temp_dir()).filter(|path| !long(path)).unwrap_or_else(|| PathBuf::from("/tmp"));
        clear(&above);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("{NAME}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
            }
        }
    }

    /// A path for a socket that no other has.
    pub fn socket(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.0.join(format!("m{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes folders whose process was killed. One that is not empty is still in use.
fn clear(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_its_owner_can_enter_it_and_it_goes_with_its_last_user() {
        let folder = Folder::new().unwrap();
        let path = folder.0.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(folder.socket(), folder.socket());
        drop(folder);
        assert!(!path.exists());
    }
}
