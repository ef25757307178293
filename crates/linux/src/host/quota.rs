//! How much CPU time the control groups of a process give it. A generator that is held back in the kernel ends its load late, and
//! whoever should end it is held back as well.

use std::fs;
use std::path::{Path, PathBuf};

/// Refuses loads on these CPUs where this process may use fewer whole ones.
///
/// # Errors
/// A sentence with the limit, its place and the remedy.
pub fn suffices_for(cpus: &[u32]) -> Result<(), String> {
    let mut distinct = cpus.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    match limit(Path::new("/")) {
        Some((limit, group)) if limit < distinct.len() as f64 => Err(format!(
            "the control group {} lets linerate use {limit:.2} CPUs, and the load needs {}: raise the limit \
             (docker run --cpus, CPUQuota= of systemd), or start linerate outside this group",
            group.display(),
            distinct.len()
        )),
        _ => Ok(()),
    }
}

/// The least limit in CPUs of the groups that this process is in, and the folder of that group, by the files below `root`
/// (Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst of Linux).
fn limit(root: &Path) -> Option<(f64, PathBuf)> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let of_groups = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let is_cpu = controllers.split(',').any(|name| name == "cpu");
        (controllers.is_empty() || is_cpu)
            .then(|| limits(root, &mounts, controllers.is_empty(), Path::new(group)))
    });
    of_groups
        .flatten()
        .min_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// The limits of a group and of those above it. `unified`: version 2.
fn limits(root: &Path, mounts: &str, unified: bool, group: &Path) -> Vec<(f64, PathBuf)> {
    let mounted = mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (part, at) = (mount.next()?, mount.next()?);
        let mut words = file_system.split(' ');
        let (kind, options) = (words.next()?, words.nth(1).unwrap_or_default());
        let has_limits = match unified {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
        };
        has_limits.then(|| (Path::new(part), at.trim_start_matches('/')))
    });
    let Some((part, at)) = mounted else {
        return Vec::new();
    };
    // A container may see its own group as the root of the mount.
    let below = group.strip_prefix(part).unwrap_or(Path::new(""));
    let below = below.strip_prefix("/").unwrap_or(below);
    let folders = below.ancestors().map(|folder| Path::new(at).join(folder));
    folders
        .filter_map(|folder| {
            let read = |name: &str| fs::read_to_string(root.join(&folder).join(name)).ok();
            let (quota, period): (f64, f64) = match unified {
                true => {
                    let text = read("cpu.max")?;
                    let (quota, period) = text.trim().split_once(' ')?;
                    (quota.parse().ok()?, period.parse().ok()?)
                }
                false => {
                    let number = |name| read(name)?.trim().parse::<f64>().ok();
                    (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
                }
            };
            // -1 is no limit, as is the word max.
            (quota > 0.0 && period > 0.0).then(|| (quota / period, Path::new("/").join(folder)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
    const OWN: &str = "30 24 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    const FIRST: &str = "33 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                         34 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let v1 = "sys/fs/cgroup/cpu,cpuacct/a";
        for (name, group, mounts, files, expected) in [
            ("none", "0::/", "", &[][..], None),
            (
                "no limit",
                "0::/a",
                UNIFIED,
                &[("sys/fs/cgroup/a/cpu.max", "max 100000\n")],
                None,
            ),
            (
                "version 2",
                "0::/a/b",
                UNIFIED,
                &[
                    ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
                    ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"),
                ],
                Some((0.5, "/sys/fs/cgroup/a")),
            ),
            (
                "of a container",
                "0::/docker/1",
                OWN,
                &[("sys/fs/cgroup/cpu.max", "200000 100000\n")],
                Some((2.0, "/sys/fs/cgroup/")),
            ),
            (
                "version 1",
                "5:memory:/\n4:cpu,cpuacct:/a\n0::/",
                FIRST,
                &[
                    (&format!("{v1}/cpu.cfs_quota_us"), "20000\n"),
                    (&format!("{v1}/cpu.cfs_period_us"), "100000\n"),
                ],
                Some((0.2, "/sys/fs/cgroup/cpu,cpuacct/a")),
            ),
            (
                "version 1 without one",
                "4:cpu,cpuacct:/a",
                FIRST,
                &[
                    (&format!("{v1}/cpu.cfs_quota_us"), "-1\n"),
                    (&format!("{v1}/cpu.cfs_period_us"), "100000\n"),
                ],
                None,
            ),
        ] {
            let root = std::env::temp_dir().join(format!("linerate-quota-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            let all = [("proc/self/cgroup", group), ("proc/self/mountinfo", mounts)];
            for (path, text) in all.iter().chain(files) {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let expected = expected.map(|(cpus, group)| (cpus, PathBuf::from(group)));
            assert_eq!(limit(&root), expected, "{name}");
            fs::remove_dir_all(&root).unwrap();
        }
    }
}
