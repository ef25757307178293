//! The modules of a kernel: those that a lab may need, with those that they need.

use super::{GuestError, elf};
use crate::process::{Input, Job};
use linerate_plan::tunnel::TUNNELS;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Bytes of a module at most, unpacked.
const LONGEST: usize = 64 << 20;

/// Folders of a kernel's modules that a lab may need, and the files outside of them.
const FOLDERS: [&str; 7] = [
    "net/netfilter/",
    "net/ipv4/netfilter/",
    "net/ipv6/netfilter/",
    "net/bridge/",
    "net/8021q/",
    "net/packet/",
    "net/ipv6/",
];
const FILES: [&str; 13] = [
    "veth",
    "macvlan",
    "vxlan",
    "vrf",
    "dummy",
    "ifb",
    "tun",
    "sch_netem",
    "sch_tbf",
    "sch_fq",
    // Connection tracking has its hash from these, by their names.
    "crc32c_generic",
    "crc32c_intel",
    "crc32c_cryptoapi",
];
/// The guest speaks through these.
pub const CHANNEL: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Ciphers by instructions of the CPU, which other systems load where a CPU has them.
pub const OF_CPU: [&str; 2] = ["aesni_intel", "ghash_clmulni_intel"];

/// Reads a file of the tree, by its path below the folder of the modules.
pub type Read<'r> = dyn Fn(&str) -> std::io::Result<Vec<u8>> + 'r;

/// A module, unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub content: Vec<u8>,
    /// Modules that come first.
    pub depends: Vec<String>,
    /// Other names, by which the kernel asks for it.
    pub aliases: Vec<String>,
}

/// The name of a module's file: `kernel/drivers/net/veth.ko.xz` is `veth`.
pub fn name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    Some(file.split_once(".ko")?.0.replace('-', "_"))
}

/// Whether a lab may need the module of this path, below `kernel/`.
pub fn is_wanted(path: &str) -> bool {
    let below = path.strip_prefix("kernel/").unwrap_or(path);
    let by_name = |wanted: &str| name(path).is_some_and(|name| name == wanted);
    let tunnels = TUNNELS.iter().flat_map(|tunnel| tunnel.modules).copied();
    let files = FILES
        .into_iter()
        .chain(CHANNEL)
        .chain(OF_CPU)
        .chain(tunnels);
    (FOLDERS.iter().any(|folder| below.starts_with(folder)) && !below.contains("/ipvs/"))
        || files.into_iter().any(by_name)
}

/// The modules of these paths that are wanted, or are in `also`, with all that they depend on.
///
/// # Errors
/// A module cannot be read.
pub fn closure(
    paths: &[String],
    also: &BTreeSet<String>,
    read: &Read<'_>,
) -> Result<BTreeMap<String, Module>, GuestError> {
    let by_name: BTreeMap<String, &String> = paths
        .iter()
        .filter_map(|path| Some((name(path)?, path)))
        .collect();
    let wanted = by_name
        .iter()
        .filter(|(name, path)| is_wanted(path) || also.contains(*name));
    let mut open: VecDeque<String> = wanted.map(|(name, _)| name.clone()).collect();
    let mut all = BTreeMap::new();
    while let Some(next) = open.pop_front() {
        let Some(path) = by_name.get(&next).filter(|_| !all.contains_key(&next)) else {
            continue;
        };
        let content = read(path).map_err(GuestError::failed(format!("read the module {path}")))?;
        let module = of_file(path, content)?;
        open.extend(module.depends.iter().cloned());
        all.insert(next, module);
    }
    Ok(all)
}

/// A module of its file.
fn of_file(path: &str, content: Vec<u8>) -> Result<Module, GuestError> {
    let content = match path.rsplit_once(".ko").map(|(_, end)| end) {
        Some(".xz") => unpacked("xz", path, content)?,
        Some(".zst") => unpacked("zstd", path, content)?,
        Some(".gz") => unpacked("gzip", path, content)?,
        _ => content,
    };
    let Some(info) = elf::section(&content, ".modinfo") else {
        return Err(GuestError::Refused(format!("{path} is no kernel module")));
    };
    let (mut depends, mut aliases) = (Vec::new(), Vec::new());
    for line in info.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        match line.split_once('=') {
            Some(("depends", names)) => depends.extend(
                names
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(|name| name.replace('-', "_")),
            ),
            Some(("alias", name)) if !name.contains(char::is_whitespace) => {
                aliases.push(name.replace('-', "_"));
            }
            _ => {}
        }
    }
    Ok(Module {
        content,
        depends,
        aliases,
    })
}

/// The output of a program that unpacks its input.
fn unpacked(program: &str, path: &str, content: Vec<u8>) -> Result<Vec<u8>, GuestError> {
    let content: Arc<[u8]> = content.into();
    let input = Input::writer(move |out| out.write_all(&content));
    let (mut out, mut whole) = (Vec::new(), true);
    let take = &mut |bytes: &[u8]| {
        whole &= out.len() + bytes.len() <= LONGEST;
        if whole {
            out.extend_from_slice(bytes);
        }
    };
    Job::new(program, &["-dc"])
        .with_input(input)
        .drive(|path| Command::new(path), None, take)
        .map_err(|e| GuestError::Refused(format!("the module {path} cannot be unpacked: {e}")))?;
    match whole {
        true => Ok(out),
        false => Err(GuestError::Refused(format!(
            "the module {path} has more than {} MiB",
            LONGEST >> 20
        ))),
    }
}

/// All modules below a folder, by their paths.
pub fn below(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![String::new()];
    while let Some(part) = open.pop() {
        let Ok(entries) = std::fs::read_dir(folder.join(&part)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = match part.as_str() {
                "" => entry.file_name().to_string_lossy().into_owned(),
                part => format!("{part}/{}", entry.file_name().to_string_lossy()),
            };
            // Links (`build`, `source`) lead out of it.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() && name(&path).is_some() => all.push(path),
                _ => {}
            }
        }
    }
    all.sort();
    all
}

/// The names by which each module is asked for, as the guest reads it: its name, those that come first, and its other names.
pub fn index(modules: &BTreeMap<String, Module>) -> String {
    let line = |(name, module): (&String, &Module)| {
        format!(
            "{name} {} {}\n",
            module.depends.join(","),
            module.aliases.join(" ")
        )
    };
    modules.iter().map(line).collect()
}

/// The modules to load for a name, dependencies first; none if no module has the name.
pub fn order(index: &str, wanted: &str) -> Vec<String> {
    let wanted = wanted.replace('-', "_");
    let lines: Vec<Vec<&str>> = index
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    let find = |wanted: &str| {
        let named = lines.iter().find(|line| line[0] == wanted);
        named.or_else(|| lines.iter().find(|line| line[2..].contains(&wanted)))
    };
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    let first = find(&wanted).map(|line| line[0]);
    // With each, whether its dependencies are in the order.
    let mut open: Vec<(&str, bool)> = first.map(|name| (name, false)).into_iter().collect();
    while let Some((next, complete)) = open.pop() {
        if complete {
            order.push(next.to_owned());
        } else if seen.insert(next) {
            open.push((next, true));
            let depends = find(next).map_or("", |line| line[1]).split(',');
            open.extend(
                depends
                    .filter(|name| !name.is_empty())
                    .map(|name| (name, false)),
            );
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_and_chosen_by_their_paths() {
        assert_eq!(name("kernel/net/nf-x.ko.zst").as_deref(), Some("nf_x"));
        assert_eq!(name("modules.builtin"), None);
        for wanted in [
            "kernel/net/netfilter/nf_tables.ko",
            "kernel/drivers/net/vxlan/vxlan.ko.xz",
            "kernel/drivers/char/virtio_console.ko",
            "kernel/net/ipv4/ip_gre.ko.xz",
        ] {
            assert!(is_wanted(wanted), "{wanted}");
        }
        for other in [
            "kernel/net/wireless/cfg80211.ko",
            "kernel/net/netfilter/ipvs/ip_vs.ko",
        ] {
            assert!(!is_wanted(other), "{other}");
        }
    }

    #[test]
    fn a_module_is_loaded_after_all_that_it_needs() {
        let index = "a b,c net_pf_16\nb c \nc  rtnl_link_c\n";
        assert_eq!(order(index, "a"), ["c", "b", "a"]);
        assert_eq!(order(index, "net-pf-16"), ["c", "b", "a"]);
        assert_eq!(order(index, "rtnl-link-c"), ["c"]);
        assert!(order(index, "d").is_empty());
        assert_eq!(order("a b \nb a \n", "a").len(), 2);
    }
}
