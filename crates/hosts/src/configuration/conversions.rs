//! Outputs and files of a saved directory as answers: each function makes an answer of a path and its text.

use super::boot::is_secret;
use crate::systems::OPNSENSE;
use crate::systems::text::{lines, pairs};
use std::collections::BTreeMap;

/// Makes an answer of a saved output or file, by its name.
pub(super) type Convert = fn(&str, &str) -> String;

/// The part of `pfctl -sa` that has the rules.
pub(super) fn filter_rules(_: &str, text: &str) -> String {
    const TITLE: &str = "FILTER RULES:";
    let is_title = |line: &&str| {
        let words = line.strip_suffix(':').unwrap_or_default();
        !words.is_empty() && words.chars().all(|c| c.is_ascii_uppercase() || c == ' ')
    };
    let from = lines(text).skip_while(|line| *line != TITLE).skip(1);
    from.take_while(|line| !is_title(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The output as it is.
pub(super) fn text(_: &str, text: &str) -> String {
    text.into()
}

/// Without lines that may hold a key or a password.
pub(super) fn plain(_: &str, text: &str) -> String {
    lines(text)
        .filter(|line| !is_secret(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Under the path as its title.
pub(super) fn section(path: &str, text: &str) -> String {
    let root = if path.starts_with("etc/") || path.starts_with("usr/") {
        "/"
    } else {
        ""
    };
    format!("==> {root}{path} <==\n{}\n", text.trim_end())
}

/// The line of opnsense-version(8), `OPNsense 24.7.1 (amd64)`, as the file that has the version.
pub(super) fn opnsense(_: &str, text: &str) -> String {
    let version = text.split_ascii_whitespace().nth(1).unwrap_or_default();
    section(OPNSENSE, &format!("\"product_version\": \"{version}\""))
}

pub(super) fn uname(_: &str, text: &str) -> String {
    section("uname", text.trim())
}

/// As grep(1) prints lines of files.
pub(super) fn listed(path: &str, text: &str) -> String {
    lines(text)
        .filter(|line| !line.is_empty())
        .map(|line| format!("/{path}:{line}\n"))
        .collect()
}

/// Two lines of a machine that may have a thousand CPUs.
pub(super) fn cpuinfo(_: &str, text: &str) -> String {
    let of = |key: &str| lines(text).find(|line| line.starts_with(key));
    listed(
        "proc/cpuinfo",
        &["model name", "flags"]
            .map(|key| of(key).unwrap_or_default())
            .join("\n"),
    )
}

pub(super) fn meminfo(_: &str, text: &str) -> String {
    let total = lines(text).find(|line| line.starts_with("MemTotal"));
    listed("proc/meminfo", total.unwrap_or_default())
}

/// The output of lscpu(1) as files of the kernel.
pub(super) fn lscpu(_: &str, text: &str) -> String {
    let value = |key: &str| {
        pairs(text, ':')
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    };
    let number = |key: &str| {
        value(key)
            .and_then(|n| n.parse::<u32>().ok())
            .filter(|n| (1..=8192).contains(n))
    };
    let mut out: String = value("Model name")
        .map(|model| format!("/proc/cpuinfo:model name: {model}\n"))
        .unwrap_or_default();
    if let Some(kind) = value("Hypervisor vendor") {
        out += &format!("/proc/cpuinfo:flags: hypervisor\n/sys/hypervisor/type:{kind}\n");
    }
    let cpu = "/sys/devices/system/cpu";
    let (threads, cores) = (
        number("Thread(s) per core").unwrap_or(1),
        number("Core(s) per socket").unwrap_or(1),
    );
    let all = number("CPU(s)").unwrap_or(0);
    // The usual order of Linux: first one thread of each core, then the others.
    for nth in 0..all {
        let core = nth % (all / threads).max(1);
        let siblings: Vec<String> = (0..threads)
            .map(|thread| (core + thread * (all / threads)).to_string())
            .collect();
        out += &format!(
            "{cpu}/cpu{nth}/topology/physical_package_id:{}\n{cpu}/cpu{nth}/topology/core_id:{core}\n{cpu}/cpu{nth}/topology/thread_siblings_list:{}\n",
            core / cores,
            siblings.join(",")
        );
    }
    for node in 0..number("NUMA node(s)").unwrap_or(0).min(64) {
        let cpus = value(&format!("NUMA node{node} CPU(s)")).unwrap_or_default();
        out += &format!("/sys/devices/system/node/node{node}/cpulist:{cpus}\n");
    }
    out
}

/// How many routes `netstat -rn` lists, by family.
pub(super) fn netstat(_: &str, text: &str) -> String {
    let (mut family, mut counts) = ("", BTreeMap::<&str, u64>::new());
    for line in lines(text) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [title] if title.starts_with("Internet") => family = title.trim_end_matches(':'),
            [first, ..] if words.len() > 3 && !family.is_empty() && *first != "Destination" => {
                *counts.entry(family).or_default() += 1
            }
            _ => {}
        }
    }
    counts
        .iter()
        .map(|(family, n)| format!("{family}: {n}\n"))
        .collect()
}

/// How many neighbours `arp -an` lists, by state.
pub(super) fn arp(_: &str, text: &str) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for line in lines(text).filter(|line| line.contains(" at ")) {
        let state = ["incomplete", "permanent"]
            .into_iter()
            .find(|state| line.contains(state));
        *counts.entry(state.unwrap_or("reachable")).or_default() += 1;
    }
    counts
        .iter()
        .map(|(state, n)| format!("{n} {}\n", state.to_ascii_uppercase()))
        .collect()
}
