//! Configuration sets: folders of files that are put on the DUT, one folder for each variant.
//!
//! sysctl.conf becomes `sysctls` and loader.conf `boot`, setting by setting; every other file is carried over as it is. A set that
//! lacks one of its files would be another configuration: it is left out as a whole.

use super::join;
use super::notes::Notes;
use super::router::Router;
use crate::netbenches::shell::{Item, items};
use linerate_hosts::folder::{File, Folder};
use std::collections::BTreeMap;

/// A folder's or file's name, fit for a plan.
pub(super) fn name(name: &str) -> String {
    let fine: String = name
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(80)
        .collect();
    match fine.trim() {
        "" => "unnamed".into(),
        name => name.to_string(),
    }
}

/// Sets of one folder at most.
const MOST_SETS: usize = 500;
/// Most settings or files of one set, which is the limit of a plan.
const MOST_ENTRIES: usize = 900;

/// A configuration set.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Set {
    /// Name, fit for a plan.
    pub(super) name: String,
    /// Whether the others are compared with it.
    pub(super) baseline: bool,
    /// Files with their paths from the root.
    pub(super) files: Vec<(String, String)>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) boot: BTreeMap<String, String>,
    /// Values of its rc.conf.
    pub(super) router: Router,
    /// Values of the reference's rc.conf, if the set is for both.
    pub(super) reference: Option<Router>,
    /// Whether it is the BSD Router Project's.
    pub(super) bsdrp: bool,
}

/// The sets of a folder, in the order in which the script takes them.
pub(super) fn sets(folder: &Folder, notes: &mut Notes) -> Vec<Set> {
    let mut by_name: BTreeMap<&str, Vec<(&str, &File)>> = BTreeMap::new();
    for file in &folder.files {
        match file.path.split_once('/') {
            Some((set, path)) => by_name.entry(set).or_default().push((path, file)),
            None => notes.left(
                &join(&folder.path, &file.path),
                None,
                "it is in no set".into(),
            ),
        }
    }
    let mut sets: Vec<Set> = Vec::new();
    for (name, files) in by_name {
        let place = join(&folder.path, name);
        let unread = folder
            .unread
            .iter()
            .filter(|(path, _)| path.split('/').next() == Some(name));
        let needed = unread
            .clone()
            .find(|(path, _)| !is_account(path.split_once('/').map_or("", |(_, p)| p)));
        if let Some((path, _)) = needed {
            notes.left(
                &place,
                None,
                format!("the set is left out: it would lack {path}"),
            );
        } else if sets.len() >= MOST_SETS {
            notes.left(
                &place,
                None,
                format!("the set is left out: more than {MOST_SETS}"),
            );
        } else if let Some(mut set) = set(&place, &files, notes) {
            set.name = unique(self::name(name), &sets);
            let counts = (set.sysctls.len(), set.boot.len(), set.files.len());
            let (name, (sysctls, boot, files)) = (&set.name, counts);
            let what =
                format!("variant {name}: {sysctls} sysctls, {boot} boot settings, {files} files");
            notes.carry(&place, None, what);
            sets.push(set);
        }
    }
    baseline(&mut sets);
    sets
}

fn unique(name: String, sets: &[Set]) -> String {
    let taken = |name: &str| name == "tester-baseline" || sets.iter().any(|set| set.name == name);
    let numbered = || {
        (2..)
            .map(|n| format!("{name} {n}"))
            .find(|name| !taken(name))
    };
    if taken(&name) {
        numbered().unwrap_or_default()
    } else {
        name
    }
}

/// The set with "default" or else "forwarding" in its name is the baseline.
fn baseline(sets: &mut [Set]) {
    let named = |part: &str, sets: &[Set]| {
        sets.iter()
            .position(|set| set.name.to_lowercase().contains(part))
    };
    let at = named("default", sets)
        .or_else(|| named("forwarding", sets))
        .unwrap_or(0);
    if let Some(set) = sets.get_mut(at) {
        set.baseline = true;
    }
}

fn set(place: &str, files: &[(&str, &File)], notes: &mut Notes) -> Option<Set> {
    let both = ["dut/", "refendpoint/"]
        .iter()
        .all(|part| files.iter().any(|(path, _)| path.starts_with(part)));
    let mut set = Set::default();
    for (path, file) in files {
        let whole = join(place, path);
        match path.split_once('/').filter(|_| both) {
            Some(("dut", path)) => one(&mut set, &whole, path, file, notes)?,
            Some(("refendpoint", path)) => {
                let reference = set.reference.get_or_insert_default();
                if is_rc(path) {
                    reference.read(&String::from_utf8_lossy(&file.bytes));
                }
            }
            _ if both => notes.left(
                &whole,
                None,
                "it is neither for the DUT nor for the reference".into(),
            ),
            _ => one(&mut set, &whole, path, file, notes)?,
        }
    }
    if both {
        let what = "a plan configures the DUT alone: put these files on the reference by hand";
        notes.left(&join(place, "refendpoint"), None, what.into());
    }
    if set.files.len() > MOST_ENTRIES
        || set.sysctls.len() > MOST_ENTRIES
        || set.boot.len() > MOST_ENTRIES
    {
        notes.left(
            place,
            None,
            format!("the set is left out: more than {MOST_ENTRIES} files or settings"),
        );
        return None;
    }
    Some(set)
}

/// Takes a file into a set. `None`: the set cannot be without it.
fn one(set: &mut Set, place: &str, path: &str, file: &File, notes: &mut Notes) -> Option<()> {
    if is_account(path) {
        notes.left(
            place,
            None,
            "accounts and keys of hosts stay as they are".into(),
        );
        return Some(());
    }
    let fine = !path.chars().any(char::is_control)
        && path.trim() == path
        && !path.split('/').any(|p| p == "..");
    let text = std::str::from_utf8(&file.bytes).ok().filter(|_| fine);
    let Some(text) = text else {
        notes.left(
            place,
            None,
            "the set is left out: this file, or its path, is no text".into(),
        );
        return None;
    };
    if path == "etc/rc.conf.misc" || text.contains("BSD Router Project") {
        set.bsdrp = true;
    }
    if is_rc(path) {
        set.router.read(text);
    }
    match path {
        "etc/sysctl.conf" | "etc/sysctl.conf.local" => {
            settings(&mut set.sysctls, place, text, notes)
        }
        "boot/loader.conf" | "boot/loader.conf.local" => {
            settings(&mut set.boot, place, text, notes)
        }
        _ if path.starts_with("boot/loader.conf.d/") => settings(&mut set.boot, place, text, notes),
        _ => {
            if file.executable {
                notes.left(
                    place,
                    None,
                    "that it may be executed: a plan writes plain files".into(),
                );
            }
            set.files.push((format!("/{path}"), text.to_string()));
        }
    }
    Some(())
}

fn is_rc(path: &str) -> bool {
    path == "etc/rc.conf" || path == "etc/rc.conf.local"
}

/// Files that say who may log in.
fn is_account(path: &str) -> bool {
    let path = path
        .strip_prefix("dut/")
        .or_else(|| path.strip_prefix("refendpoint/"))
        .unwrap_or(path);
    let databases = [
        "etc/passwd",
        "etc/master.passwd",
        "etc/pwd.db",
        "etc/spwd.db",
        "etc/group",
    ];
    databases.contains(&path)
        || path.starts_with("etc/ssh/")
        || path.split('/').any(|part| part == ".ssh")
}

/// `name=value` lines, with `"` around values and comments behind a `#`.
fn settings(to: &mut BTreeMap<String, String>, place: &str, text: &str, notes: &mut Notes) {
    for Item {
        name,
        value,
        line,
        closed,
    } in items(text)
    {
        if is_setting(&name) && closed && !value.chars().any(char::is_control) {
            to.insert(name, value);
        } else {
            notes.left(
                place,
                Some(line),
                format!("this is no setting: {}", format!("{name} {value}").trim()),
            );
        }
    }
}

fn is_setting(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/%".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    begins && name.len() <= 100 && name.chars().all(allowed) && !name.contains("..")
}
