//! Rule sets: loaded by the tools that administrators use, taken away again, and asked how much they have dropped.

use super::Setup;
use crate::error::Error;
use crate::net::Netns;
use crate::net::conntrack;
use crate::process::{self, Input, Job};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Name of the nftables counter in front of a drop.
pub const DROP_COUNTER: &str = "dropped";

/// Time limit of clearing a rule set: one of a million entries takes a while.
const CLEAR_WITHIN: Duration = Duration::from_secs(60);

/// A program that has loaded rules, as the way to remove and count them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Loader {
    /// Its drops are in the named counter [`DROP_COUNTER`].
    Nft,
    /// Its drops are those of rules and policies.
    IpTables {
        /// `iptables` or `ip6tables`, as the program was called.
        family: &'static str,
        /// It works on the older tables instead of nf_tables.
        legacy: bool,
        program: String,
    },
    /// Comes last: rules refer to its sets.
    IpSet,
}

/// The rule set of a DUT.
#[derive(Debug)]
pub(super) struct RuleSet {
    namespace: Netns,
    /// Set when the user wants to stop.
    interrupted: Option<&'static AtomicBool>,
    loaders: BTreeSet<Loader>,
    tracks: bool,
    /// The value of its own counters when they were last read.
    drops: AtomicU64,
}

impl RuleSet {
    pub fn new(namespace: &Netns, interrupted: Option<&'static AtomicBool>) -> RuleSet {
        let (namespace, drops) = (namespace.clone(), AtomicU64::new(0));
        RuleSet { namespace, interrupted, loaders: BTreeSet::new(), tracks: false, drops }
    }

    /// Runs a setup's loaders.
    pub fn load(&mut self, setup: &Setup) -> Result<(), Error> {
        self.tracks |= setup.tracks;
        for job in &setup.rules {
            // Noted before it runs: if it fails, the rules that it has loaded by then must be removed as well.
            self.loaders.extend(loader(job));
            let run = job.run(|path| self.namespace.command(path), self.interrupted);
            run.map_err(|e| Error::Refused(format!("cannot load the rule set of {}: {e}", setup.name)))?;
        }
        Ok(())
    }

    /// Removes all rules, and forgets the connections that they tracked: a state of one rule set must not affect the next.
    pub fn clear(&mut self) -> Result<(), Error> {
        while let Some(loader) = self.loaders.first() {
            let job = match loader {
                Loader::IpSet => Some(Job::new("ipset", &["destroy"])),
                Loader::IpTables { legacy: true, family, program } => self.clear_legacy(family, program)?,
                Loader::Nft | Loader::IpTables { .. } => {
                    Some(Job::new("nft", &["-f", "-"]).with_input(Input::text("flush ruleset\n")))
                }
            };
            if let Some(job) = job.map(|job| job.within(CLEAR_WITHIN)) {
                let run = job.run(|path| self.namespace.command(path), self.interrupted);
                run.map_err(|e| Error::Refused(format!("cannot take the rule set away: {e}")))?;
            }
            self.loaders.pop_first();
        }
        if std::mem::take(&mut self.tracks) {
            conntrack::flush(&self.namespace)?;
        }
        self.drops.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Restores the tables that are in use to nothing, if there are any. They are listed in /proc/net of the namespace.
    fn clear_legacy(&self, family: &str, program: &str) -> Result<Option<Job>, Error> {
        let list = if family == "iptables" { "ip_tables_names" } else { "ip6_tables_names" };
        let path = format!("/proc/thread-self/net/{list}");
        let tables = self.namespace.enter(|| std::fs::read_to_string(&path))?.unwrap_or_default();
        let text: String = tables.lines().map(empty_table).collect();
        let restore = Job::new(brother(program, family, "restore"), &[]);
        Ok((!text.is_empty()).then(|| restore.with_input(Input::text(text))))
    }

    pub fn is_empty(&self) -> bool {
        self.loaders.iter().all(|loader| *loader == Loader::IpSet)
    }

    /// Frames that the rules have dropped since the last call. The call takes milliseconds, so it is made only when frames are
    /// missing: all growth since then belongs to this trial.
    pub fn dropped_since(&self) -> Option<u64> {
        let counts = self.loaders.iter().map(|loader| match loader {
            Loader::Nft => nft_drops(&self.namespace),
            Loader::IpTables { program, family, .. } => {
                saved_drops(&brother(program, family, "save"), &self.namespace)
            }
            Loader::IpSet => Some(0),
        });
        let now: u64 = counts.sum::<Option<u64>>()?;
        Some(now - self.drops.swap(now, Ordering::Relaxed).min(now))
    }

    /// The place of frames that the rules dropped, for the ledger.
    pub fn place(&self) -> String {
        match self.loaders.iter().any(|loader| matches!(loader, Loader::IpTables { .. })) {
            false => format!("DUT: dropped by the rule set (counter {DROP_COUNTER})"),
            true => "DUT: dropped by the rule set (rules and policies that drop)".into(),
        }
    }
}

/// The loader of a job's rules; `None` for programs that keep no rules in the kernel.
fn loader(job: &Job) -> Option<Loader> {
    match job.name() {
        "nft" => Some(Loader::Nft),
        "ipset" => Some(Loader::IpSet),
        name => {
            let family = ["iptables", "ip6tables"].into_iter().find(|family| name.starts_with(family))?;
            Some(Loader::IpTables { family, legacy: !is_nft(&job.program), program: job.program.clone() })
        }
    }
}

/// Whether an iptables works on nf_tables, by its name, or by the target of a link with its name: distributions have links
/// (alternatives) to either.
fn is_nft(program: &str) -> bool {
    let target = process::find(program).and_then(|path| path.canonicalize().ok()).unwrap_or_default();
    [Path::new(program), &target].iter().any(|path| file_name(path).contains("-nft"))
}

/// The brother of an iptables that saves or restores, in the same folder where one was named.
fn brother(program: &str, family: &str, verb: &str) -> String {
    let path = Path::new(program);
    let infix = ["-nft", "-legacy"].into_iter().find(|infix| file_name(path).contains(infix)).unwrap_or("");
    path.with_file_name(format!("{family}{infix}-{verb}")).display().to_string()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A table without rules, in the words of iptables-restore: chains of users go by being left out.
fn empty_table(table: &str) -> String {
    let chains: &[&str] = match table {
        "filter" | "security" => &["INPUT", "FORWARD", "OUTPUT"],
        "nat" => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
        "raw" => &["PREROUTING", "OUTPUT"],
        "mangle" => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
        _ => return String::new(),
    };
    let chains: String = chains.iter().map(|chain| format!(":{chain} ACCEPT [0:0]\n")).collect();
    format!("*{table}\n{chains}COMMIT\n")
}

fn nft_drops(namespace: &Netns) -> Option<u64> {
    let job = Job::new("nft", &["-j", "list", "counters"]);
    let finished = job.run(|path| namespace.command(path), None).ok()?;
    counted_by_nft(&finished.stdout)
}

fn counted_by_nft(json: &str) -> Option<u64> {
    let document: serde_json::Value = serde_json::from_str(json).ok()?;
    let objects = document.get("nftables")?.as_array()?;
    let counters = objects.iter().filter_map(|o| o.get("counter"));
    let dropped = counters.filter(|c| c.get("name").and_then(|n| n.as_str()) == Some(DROP_COUNTER));
    Some(dropped.filter_map(|c| c.get("packets")?.as_u64()).sum())
}

fn saved_drops(save: &str, namespace: &Netns) -> Option<u64> {
    let mut dropped = 0;
    let job = Job::new(save, &["-c"]);
    job.run_lines(|path| namespace.command(path), None, |line| dropped += dropped_by_line(line)).ok()?;
    Some(dropped)
}

/// Dropped packets by a line of `iptables-save -c`: `:FORWARD DROP [7:420]`, `[7:420] -A FORWARD -j DROP`.
fn dropped_by_line(line: &str) -> u64 {
    let packets = |counts: &str| counts.trim_start_matches('[').split(':').next()?.parse::<u64>().ok();
    let words: Vec<&str> = line.split_whitespace().collect();
    let counted = match words.as_slice() {
        [chain, "DROP", counts] if chain.starts_with(':') => packets(counts),
        [counts, "-A", rule @ ..] if counts.starts_with('[') => {
            let drops = rule.windows(2).any(|pair| matches!(pair, ["-j", "DROP" | "REJECT"]));
            if drops { packets(counts) } else { None }
        }
        _ => None,
    };
    counted.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nfts_counters_are_read() {
        let json = r#"{"nftables":[{"metainfo":{}},{"counter":{"name":"dropped","packets":7,"bytes":9}},
            {"counter":{"name":"other","packets":5}},{"counter":{"name":"dropped","family":"ip6","packets":2}}]}"#;
        assert_eq!(counted_by_nft(json), Some(9));
        assert_eq!(counted_by_nft(r#"{"nftables":[]}"#), Some(0));
        assert_eq!(counted_by_nft("{"), None);
    }

    #[test]
    fn iptables_rules_and_policies_that_drop_are_counted() {
        for (line, dropped) in [
            (":FORWARD DROP [7:420]", 7),
            (":FORWARD ACCEPT [9:420]", 0),
            (":USER - [9:420]", 0),
            ("[5:300] -A FORWARD -s 198.18.0.0/15 -j DROP", 5),
            ("[6:300] -A FORWARD -j REJECT --reject-with icmp-port-unreachable", 6),
            ("[5:300] -A FORWARD -j ACCEPT", 0),
            ("[5:300] -A FORWARD -m comment --comment \"-j DROP\" -j ACCEPT", 0),
            ("*filter", 0),
            ("# Generated by iptables-save", 0),
            ("[x:300] -A FORWARD -j DROP", 0),
            ("[", 0),
            ("", 0),
        ] {
            assert_eq!(dropped_by_line(line), dropped, "{line}");
        }
    }

    #[test]
    fn the_brothers_of_an_iptables_are_of_its_kind() {
        assert!(!is_nft("iptables-legacy-restore"));
        assert_eq!(brother("iptables-legacy-restore", "iptables", "save"), "iptables-legacy-save");
        assert!(is_nft("/x/ip6tables-nft-restore"));
        assert_eq!(brother("/x/ip6tables-nft-restore", "ip6tables", "save"), "/x/ip6tables-nft-save");
        assert_eq!(brother("iptables-restore", "iptables", "save"), "iptables-save");
    }

    #[test]
    fn an_empty_table_has_all_its_chains() {
        assert_eq!(empty_table("raw"), "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n");
        assert_eq!(empty_table("..."), "");
    }
}
