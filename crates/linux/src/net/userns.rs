//! Root's powers over namespaces of one's own, without being root: a user namespace.

use super::netns::unshare;
use crate::error::{Doing, Error};
use rustix::thread::UnshareFlags;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Whether this process may make network namespaces as it is: CAP_SYS_ADMIN and CAP_NET_ADMIN are effective.
pub fn may_administer_networks() -> bool {
    const NEEDED: u64 = 1 << 12 | 1 << 21; // CAP_NET_ADMIN, CAP_SYS_ADMIN (include/uapi/linux/capability.h)
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|mask| mask & NEEDED == NEEDED)
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process is in the user namespace that the kernel began with, whose root is the host's.
pub fn is_initial() -> bool {
    const INITIAL: u64 = 0xEFFF_FFFD; // PROC_USER_INIT_INO (include/linux/proc_ns.h)
    fs::metadata("/proc/self/ns/user").is_ok_and(|namespace| namespace.ino() == INITIAL)
}

/// Moves this process, which must have a single thread, into a user namespace in which it is root over the network
/// namespaces that it makes from now on. Files are still made as the user.
///
/// # Errors
/// The host forbids it (some distributions do), or there are several threads.
pub fn enter() -> Result<(), Error> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(UnshareFlags::NEWUSER).map_err(|error| {
        Error::Refused(format!(
            "cannot make a user namespace: {error}; run as root (sudo), or let users make namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns"
        ))
    })?;
    let write =
        |path: &str, text: String| fs::write(path, text).doing(format_args!("write {path}"));
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))
}
