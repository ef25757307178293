//! A namespace's own /sys: queues' XPS and RPS masks, threaded NAPI.
//!
//! A sysfs belongs to the network namespace of the thread that mounts it. Each access has a thread with a mount namespace of its
//! own, and both end with it: a killed process leaves no mount behind.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

use super::Netns;
use super::netns::unshare;
use crate::error::{Doing, Error};
use crate::files::{is_plain, set_file};

/// Reads a file such as `class/net/g0/queues/tx-0/xps_cpus`; the final newline is left out.
pub fn read(ns: &Netns, path: &str) -> Result<String, Error> {
    let text = access(ns, path, &format!("read {path}"), |file| {
        fs::read_to_string(file)
    })?;
    Ok(text.trim_end().to_owned())
}

/// Writes a file such as `class/net/g0/threaded`.
pub fn write(ns: &Netns, path: &str, value: &str) -> Result<(), Error> {
    access(ns, path, &format!("write {value} to {path}"), |file| {
        set_file(file, value)
    })
}

/// Writes a file, and reads it back: what the kernel keeps must be as `is_wanted` finds.
///
/// # Errors
/// The kernel refuses the value, or keeps another one.
pub fn set(
    ns: &Netns,
    path: &str,
    value: &str,
    is_wanted: impl FnOnce(&str) -> bool,
) -> Result<(), Error> {
    let set = |file: &Path| set_file(file, value).and_then(|()| fs::read_to_string(file));
    let kept = access(ns, path, &format!("write {value} to {path}"), set)?;
    match is_wanted(kept.trim_end()) {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "{value} was written to {path}, and the kernel keeps {}",
            kept.trim_end()
        ))),
    }
}

/// Whether two masks of CPUs have the same CPUs: the kernel has as many words as CPUs need.
pub fn is_same_mask(one: &str, other: &str) -> bool {
    let digits = |mask: &str| mask.replace(',', "").trim_start_matches('0').to_owned();
    digits(one) == digits(other)
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
    if !is_plain(path) {
        return Err(Error::unusable(
            "the path",
            path,
            "it must lead down from /sys",
        ));
    }
    ns.run(|| {
        mount_here().doing(format_args!(
            "mount the sysfs of namespace {} (root, or a user namespace that sees all of /sys, can)",
            ns.label()
        ))?;
        let done = f(&Path::new("/sys").join(path));
        done.doing(format_args!("{operation} in the sysfs of namespace {}", ns.label()))
    })
}

/// Gives the calling thread a mount namespace, with the sysfs of its network namespace at /sys.
pub(crate) fn mount_here() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // Unmounting on the host takes effect here as well; mounts made here stay here.
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_compared_by_their_cpus() {
        assert!(is_same_mask("00000003", "3") && is_same_mask("00000001,00000000", "1,00000000"));
        assert!(is_same_mask("00000000", "0"));
        assert!(!is_same_mask("00000003", "2") && !is_same_mask("00000001,00000000", "1"));
    }
}
