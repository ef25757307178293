//! Small answers: numbers, settings, free space, paths.

use super::MOST_ENTRIES;
use super::question::PROGRAMS;
use super::text::{lines, shown};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Where it is mounted.
    pub mounted_on: String,
    /// Bytes that an ordinary user can still write; 0 where less than that is left.
    pub free: u64,
}

/// `name: value` of FreeBSD, `name=value` of OpenBSD, `name = value` of Linux and NetBSD.
pub fn sysctls(text: &str) -> BTreeMap<String, String> {
    let name = |n: &str| {
        n.contains('.')
            && n.len() <= 128
            && n.chars().all(|c| c.is_ascii_alphanumeric() || "._-%/".contains(c))
    };
    let pairs = lines(text).filter_map(|line| {
        let at = line.find([':', '='])?;
        let (key, value) = (line[..at].trim(), line[at + 1..].trim());
        name(key).then(|| (key.to_string(), shown(value)))
    });
    pairs.take(MOST_ENTRIES).collect()
}

/// File systems of `df -Pk`: `/dev/ada0p2 20307196 4213252 14469372 23% /`. A mount point may have blanks.
pub fn disks(text: &str) -> Vec<Disk> {
    let parsed = lines(text).filter_map(|line| {
        let percent = line.find("% ")?;
        let before: Vec<&str> = line[..percent].split_ascii_whitespace().collect();
        // The free space stands before the percentage; beyond its reserve FreeBSD's is negative.
        let free: i64 = before.len().checked_sub(2).and_then(|at| before[at].parse().ok())?;
        let free = u64::try_from(free).unwrap_or(0).saturating_mul(1024);
        Some(Disk { mounted_on: shown(&line[percent + 2..]), free })
    });
    let mut disks: Vec<Disk> = Vec::new();
    for disk in parsed.take(MOST_ENTRIES) {
        // Two paths asked for may be in one file system.
        if !disks.contains(&disk) && disks.len() < 64 {
            disks.push(disk);
        }
    }
    disks
}

/// Programs of `command -v`: a path for each that there is.
pub fn programs(text: &str) -> BTreeMap<String, String> {
    let found = lines(text).filter_map(|line| {
        let path = line.trim();
        let name = path.strip_prefix('/')?.rsplit('/').next()?;
        PROGRAMS.contains(&name).then(|| (name.to_string(), shown(path)))
    });
    found.collect()
}

/// Whether `mount` shows a read-only root: `… on / (ufs, local, read-only)`, `… on / type ext4 (ro,relatime)`.
pub fn read_only_root(text: &str) -> Option<bool> {
    let options = lines(text).filter_map(|line| {
        let (_, rest) = line.split_once(" on / ")?;
        let (_, options) = rest.split_once('(')?;
        Some(options.trim_end_matches(')'))
    });
    // The last mount covers the others.
    let last = options.last()?;
    Some(last.split(',').map(str::trim).any(|o| o == "read-only" || o == "ro"))
}
