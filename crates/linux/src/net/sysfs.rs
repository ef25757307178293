//! A namespace's own /sys: queues' XPS and RPS masks, threaded NAPI.
//!
//! A sysfs belongs to the network namespace of the thread that mounts it. Each access has a thread with a mount namespace of its
//! own, and both end with it: a killed process leaves no mount behind.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

use super::netns::unshare;
use super::{Error, Netns};
use crate::files::is_plain;

/// Reads a file such as `class/net/g0/queues/tx-0/xps_cpus`; the final newline is left out.
pub fn read(ns: &Netns, path: &str) -> Result<String, Error> {
    let text = access(ns, path, &format!("read {path}"), |file| fs::read_to_string(file))?;
    Ok(text.trim_end().to_owned())
}

/// Writes a file such as `class/net/g0/threaded`.
pub fn write(ns: &Netns, path: &str, value: &str) -> Result<(), Error> {
    // No O_CREAT: only a file that is there can be set.
    let write = |file: &Path| OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes());
    access(ns, path, &format!("write {value} to {path}"), write)
}

/// Whether a file or folder is there.
pub fn exists(ns: &Netns, path: &str) -> bool {
    access(ns, path, "look", |file| file.metadata()).is_ok()
}

fn access<T: Send>(
    ns: &Netns,
    path: &str,
    operation: &str,
    f: impl FnOnce(&Path) -> io::Result<T> + Send,
) -> Result<T, Error> {
    let failed = |e| Error::kernel(format!("{operation} in the sysfs of namespace {}", ns.label()), e);
    if !is_plain(path) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a plain relative path")));
    }
    ns.run(|| {
        mount_here().map_err(|e| explain(format!("mount the sysfs of namespace {}", ns.label()), e))?;
        f(&Path::new("/sys").join(path)).map_err(failed)
    })
}

/// Gives the calling thread a mount namespace, with the sysfs of its network namespace at /sys.
pub(crate) fn mount_here() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // Unmounting on the host takes effect here as well; mounts made here stay here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?)
}

fn explain(operation: String, error: io::Error) -> Error {
    if error.raw_os_error() == Some(libc::EPERM) {
        let reason =
            "Operation not permitted: it needs root, or a user namespace with its own mount namespace in \
                      which an unmasked /sys is visible"
                .to_owned();
        return Error::Unsupported { operation, reason };
    }
    Error::kernel(operation, error)
}
