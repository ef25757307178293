//! The network interfaces of a machine: driver, speed, MTU, queues. Never their addresses.

use super::{line, names, unknown};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FOLDER: &str = "sys/class/net";

/// Each interface with a device behind it, by name. Those without (bridges, veth, tunnels) are only counted: their names
/// often are those of customers or containers.
pub fn interfaces(root: &Path) -> BTreeMap<String, String> {
    let names = match names(root, FOLDER) {
        Ok(names) => names,
        Err(error) => return BTreeMap::from([("all".into(), unknown(FOLDER, &error))]),
    };
    let mut all = BTreeMap::new();
    let mut virtuals: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        let folder = root.join(FOLDER).join(&name);
        if folder.join("device").exists() {
            all.insert(name.clone(), describe(root, &name));
        } else if folder.is_dir() && name != "lo" {
            *virtuals.entry(kind(root, &name)).or_default() += 1;
        }
    }
    if !virtuals.is_empty() {
        let kinds = virtuals.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>();
        all.insert("(without a device)".into(), kinds.join(", "));
    }
    all
}

fn describe(root: &Path, name: &str) -> String {
    let driver = fs::read_link(root.join(format!("{FOLDER}/{name}/device/driver"))).ok();
    let driver = driver.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
    // The kernel answers EINVAL while the link is down and -1 where a driver does not know.
    let speed = line(root, &format!("{FOLDER}/{name}/speed")).and_then(|s| s.parse::<u32>().ok());
    let mtu = line(root, &format!("{FOLDER}/{name}/mtu"));
    format!(
        "driver {}, {}, MTU {}, {} receive and {} transmit queues",
        driver.as_deref().unwrap_or("unknown"),
        speed.map_or("speed unknown".into(), |s| format!("{s} Mbit/s")),
        mtu.as_deref().unwrap_or("unknown"),
        queues(root, name, "rx-"),
        queues(root, name, "tx-"),
    )
}

fn queues(root: &Path, name: &str, prefix: &str) -> usize {
    let queues = names(root, &format!("{FOLDER}/{name}/queues")).unwrap_or_default();
    queues.iter().filter(|queue| queue.starts_with(prefix)).count()
}

/// `bridge`, `bond`, `vlan`, … as far as the kernel says, else `other`.
fn kind(root: &Path, name: &str) -> String {
    let text = super::read_start(root, &format!("{FOLDER}/{name}/uevent"), 4096).unwrap_or_default();
    let kind = text.lines().find_map(|l| l.strip_prefix("DEVTYPE="));
    kind.unwrap_or("other").to_string()
}
