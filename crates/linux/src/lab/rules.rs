//! Rule sets: loaded by the tools that administrators use, taken away again, and asked how much they have dropped.

use super::Setup;
use crate::error::Error;
use crate::net::Netns;
use crate::net::conntrack;
use crate::process::{self, Input, Job};
use linerate_measure::record::RuleCount;
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::counts;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Name of the nftables counter in front of a drop.
pub const DROP_COUNTER: &str = "dropped";

/// Bytes of a listing of rules that are read: a million rules have some 100 MB.
const MOST_LISTED: usize = 256 << 20;

/// Words of a program whose rules do not fit into the buffer of its netlink socket. Root alone can make that larger than
/// net.core.wmem_max.
const TOO_LONG: &str = "Message too long";

/// Rules that fit into it: each takes some 350 bytes of 208 KiB.
const RULES_AT_ONCE: usize = 500;

/// Time limit of clearing a rule set: one of a million entries takes a while.
const CLEAR_WITHIN: Duration = Duration::from_secs(60);

/// A program that has loaded rules, as the way to remove and count them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Loader {
    /// nft. Drops are in the named counter [`DROP_COUNTER`].
    Nft,
    /// This iptables or ip6tables. Its drops are those of rules and policies.
    IpTables(String),
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
        RuleSet {
            namespace,
            interrupted,
            loaders: BTreeSet::new(),
            tracks: false,
            drops,
        }
    }

    /// Runs a setup's loaders.
    pub fn load(&mut self, setup: &Setup) -> Result<(), Error> {
        self.tracks |= setup.tracks;
        for job in &setup.rules {
            // Noted before it runs: if it fails, the rules that it has loaded by then must be removed as well.
            self.loaders.extend(loader(job));
            let run = |job: &Job| {
                job.run(|path| self.namespace.command(path), self.interrupted)
                    .map(drop)
            };
            let loaded = match run(job) {
                // Nothing of it was loaded. No frame comes yet, so the rules need not come at once.
                Err(e) if e.to_string().contains(TOO_LONG) && job.file.is_none() => {
                    in_parts(job, RULES_AT_ONCE).iter().try_for_each(run)
                }
                ran => ran,
            };
            loaded.map_err(|e| {
                let text = e.to_string();
                let remedy = if text.contains(TOO_LONG) {
                    "; only root may give the kernel that many rules at once: use sudo"
                } else {
                    ""
                };
                Error::Refused(format!(
                    "cannot load the rule set of {}: {text}{remedy}",
                    setup.name
                ))
            })?;
        }
        Ok(())
    }

    /// Removes all rules, and forgets the connections that they tracked: a state of one rule set must not affect the next.
    pub fn clear(&mut self) -> Result<(), Error> {
        while let Some(loader) = self.loaders.first() {
            let job = match loader {
                Loader::IpSet => Some(Job::new("ipset", &["destroy"])),
                Loader::IpTables(program) if !is_nft(program) => self.clearing_legacy(program)?,
                Loader::Nft | Loader::IpTables(_) => {
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
        self.count_from_0();
        Ok(())
    }

    /// The rules were replaced, and their counters began again.
    pub fn count_from_0(&self) {
        self.drops.store(0, Ordering::Relaxed);
    }

    /// Restores the tables that are in use to nothing: the job, if there are any. They are listed in /proc/net of the namespace.
    fn clearing_legacy(&self, program: &str) -> Result<Option<Job>, Error> {
        let list = if family(program) == "iptables" {
            "ip_tables_names"
        } else {
            "ip6_tables_names"
        };
        let path = format!("/proc/thread-self/net/{list}");
        let tables = self
            .namespace
            .enter(|| std::fs::read_to_string(&path))?
            .unwrap_or_default();
        let text: String = tables.lines().map(empty_table).collect();
        let restore = Job::new(companion(program, "restore"), &[]);
        Ok((!text.is_empty()).then(|| restore.with_input(Input::text(text))))
    }

    pub fn is_empty(&self) -> bool {
        self.loaders.iter().all(|loader| *loader == Loader::IpSet)
    }

    /// Frames that the rules have dropped since the last call. The call takes milliseconds, so it is made only when frames are
    /// missing: all growth since then belongs to this trial.
    pub fn dropped_since(&self) -> Option<u64> {
        let counts = self.loaders.iter().map(|loader| {
            let (job, firewall) = match loader {
                Loader::Nft => (Job::new("nft", &["list", "counters"]), Firewall::Nftables),
                Loader::IpTables(program) => (
                    Job::new(companion(program, "save"), &["-c"]),
                    Firewall::Iptables,
                ),
                Loader::IpSet => return Some(0),
            };
            Some(dropped(&listed(&job, firewall, &self.namespace)?))
        });
        let now: u64 = counts.sum::<Option<u64>>()?;
        Some(now - self.drops.swap(now, Ordering::Relaxed).min(now))
    }

    /// The place of frames that the rules dropped, for the ledger.
    pub fn place(&self) -> String {
        match self
            .loaders
            .iter()
            .any(|loader| matches!(loader, Loader::IpTables(_)))
        {
            false => format!("DUT: dropped by the rule set (counter {DROP_COUNTER})"),
            true => "DUT: dropped by the rule set (rules and policies that drop)".into(),
        }
    }
}

/// A rule set of linerate's own in several parts, which are loaded one after the other. Every part opens the blocks of the part before
/// it again.
fn in_parts(job: &Job, lines: usize) -> Vec<Job> {
    let mut text = Vec::new();
    let _ = job.input.write(&mut text);
    let (mut parts, mut part, mut full) = (Vec::new(), String::new(), 0);
    let mut open: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let words = line.trim();
        part += &format!("{line}\n");
        match words.split_whitespace().next() {
            _ if words.ends_with('{') || words.starts_with('*') => open.push(format!("{words}\n")),
            Some("}" | "COMMIT") => drop(open.pop()),
            // nft wants them again.
            Some("type" | "flags") => open.iter_mut().last().into_iter().for_each(|block| {
                *block += &format!("{words}\n");
            }),
            _ => full += 1,
        }
        if full >= lines {
            let again = open.concat();
            open.iter().for_each(|block| {
                part += if block.starts_with('*') {
                    "COMMIT\n"
                } else {
                    "}\n"
                }
            });
            parts.push(std::mem::replace(&mut part, again));
            full = 0;
        }
    }
    parts.push(part);
    let add = |(number, text): (usize, String)| {
        let mut job = job.clone().with_input(Input::text(text));
        if number > 0 && job.name() != "nft" {
            job.args.push("--noflush".into());
        }
        job
    };
    parts.into_iter().enumerate().map(add).collect()
}

/// The loader of a job's rules; `None` for programs that keep no rules in the kernel.
fn loader(job: &Job) -> Option<Loader> {
    match job.name() {
        "nft" => Some(Loader::Nft),
        "ipset" => Some(Loader::IpSet),
        name if name.starts_with("ip") && name.contains("tables") => {
            Some(Loader::IpTables(job.program.clone()))
        }
        _ => None,
    }
}

/// Which of both an iptables is.
fn family(program: &str) -> &'static str {
    if file_name(Path::new(program)).starts_with("ip6") {
        "ip6tables"
    } else {
        "iptables"
    }
}

/// Whether an iptables works on nf_tables, by its name, or by the target of a link with its name: distributions have links
/// (alternatives) to either.
fn is_nft(program: &str) -> bool {
    let target = process::find(program)
        .and_then(|path| path.canonicalize().ok())
        .unwrap_or_default();
    [Path::new(program), &target]
        .iter()
        .any(|path| file_name(path).contains("-nft"))
}

/// The companion of an iptables that saves or restores, in the same folder where one was named.
fn companion(program: &str, verb: &str) -> String {
    let (path, family) = (Path::new(program), family(program));
    let infix = ["-nft", "-legacy"]
        .into_iter()
        .find(|infix| file_name(path).contains(infix))
        .unwrap_or("");
    path.with_file_name(format!("{family}{infix}-{verb}"))
        .display()
        .to_string()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
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
    let chains: String = chains
        .iter()
        .map(|chain| format!(":{chain} ACCEPT [0:0]\n"))
        .collect();
    format!("*{table}\n{chains}COMMIT\n")
}

/// The counters of a namespace's rules, as a program lists them; `None` if it fails.
pub(super) fn listed(job: &Job, firewall: Firewall, namespace: &Netns) -> Option<Vec<RuleCount>> {
    let mut listing = String::new();
    let add = |line: &str| {
        if listing.len() < MOST_LISTED {
            listing.push_str(line);
            listing.push('\n');
        }
    };
    job.run_lines(|path| namespace.command(path), None, add)
        .ok()?;
    Some(counts(firewall, &listing))
}

/// The frames that counters of drops have counted: those of nftables by their name, those of iptables by rule or policy.
fn dropped(counts: &[RuleCount]) -> u64 {
    let drops = |count: &&RuleCount| match count.rule.split_once(": ").map_or("", |(_, rule)| rule)
    {
        policy if policy.starts_with("policy of ") => policy.ends_with(", DROP"),
        rule if rule.starts_with("-A ") => {
            let words: Vec<&str> = rule.split_whitespace().collect();
            words
                .windows(2)
                .any(|pair| matches!(pair, ["-j", "DROP" | "REJECT"]))
        }
        counter => counter.strip_prefix("counter ") == Some(DROP_COUNTER),
    };
    counts.iter().filter(drops).map(|count| count.frames).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nfts_counters_are_read() {
        let counter = |name: &str, packets| {
            format!("\tcounter {name} {{\n\t\tpackets {packets} bytes 9\n\t}}\n")
        };
        let text = format!(
            "table inet a {{\n{}{}}}\ntable ip6 b {{\n{}}}\n",
            counter("dropped", 7),
            counter("other", 5),
            counter("dropped", 2)
        );
        let frames = |text: &str| dropped(&counts(Firewall::Nftables, text));
        assert_eq!((frames(&text), frames(""), frames("{")), (9, 0, 0));
    }

    #[test]
    fn iptables_rules_and_policies_that_drop_are_counted() {
        for (line, dropped) in [
            (":FORWARD DROP [7:420]", 7),
            (":FORWARD ACCEPT [9:420]", 0),
            (":USER - [9:420]", 0),
            ("[5:300] -A FORWARD -s 198.18.0.0/15 -j DROP", 5),
            (
                "[6:300] -A FORWARD -j REJECT --reject-with icmp-port-unreachable",
                6,
            ),
            ("[5:300] -A FORWARD -j ACCEPT", 0),
            (
                "[5:300] -A FORWARD -m comment --comment \"-j DROP\" -j ACCEPT",
                0,
            ),
            ("*filter", 0),
            ("# Generated by iptables-save", 0),
            ("[x:300] -A FORWARD -j DROP", 0),
            ("[", 0),
            ("", 0),
        ] {
            let counts = counts(Firewall::Iptables, &format!("*filter\n{line}\n"));
            assert_eq!(super::dropped(&counts), dropped, "{line}");
        }
    }

    #[test]
    fn the_companions_of_an_iptables_are_of_its_kind() {
        assert!(!is_nft("iptables-legacy-restore"));
        assert_eq!(
            companion("iptables-legacy-restore", "save"),
            "iptables-legacy-save"
        );
        assert!(is_nft("/x/ip6tables-nft-restore"));
        assert_eq!(
            companion("/x/ip6tables-nft-restore", "save"),
            "/x/ip6tables-nft-save"
        );
        assert_eq!(companion("iptables-restore", "save"), "iptables-save");
    }

    #[test]
    fn a_rule_set_in_parts_has_each_line_once_in_its_block() {
        let text = "table inet l\ndelete table inet l\ntable inet l {\n  counter dropped { }\n  set s {\n    type ipv4_addr\n    \
                    elements = {\n      1.1.1.1,\n      1.1.1.2,\n      1.1.1.3\n    }\n  }\n  chain f {\n    type filter;\n    a\n    b\n  }\n}\n";
        let parts = |job: &str, text: &str| -> Vec<(String, usize)> {
            let jobs = in_parts(&Job::new(job, &[]).with_input(Input::text(text)), 4);
            let text = |job: &Job| {
                let mut text = Vec::new();
                job.input.write(&mut text).unwrap();
                (
                    String::from_utf8(text).unwrap().replace([' ', '\n'], ""),
                    job.args.len(),
                )
            };
            jobs.iter().map(text).collect()
        };
        let first = "tableinetldeletetableinetltableinetl{counterdropped{}sets{typeipv4_addrelements={1.1.1.1,}}}";
        let second =
            "tableinetl{sets{typeipv4_addrelements={1.1.1.2,1.1.1.3}}chainf{typefilter;ab}}";
        let third = "tableinetl{chainf{typefilter;}}";
        assert_eq!(
            parts("nft", text),
            [first, second, third].map(|part| (part.to_string(), 0))
        );
        let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A a\n-A b\n-A c\n-A d\nCOMMIT\n";
        let [first, second] = [
            "*filter:FORWARDACCEPT[0:0]-Aa-Ab-AcCOMMIT",
            "*filter-AdCOMMIT",
        ];
        assert_eq!(
            parts("iptables-restore", text),
            [(first.into(), 0), (second.into(), 1)]
        );
    }

    #[test]
    fn an_empty_table_has_all_its_chains() {
        assert_eq!(
            empty_table("raw"),
            "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
        );
        assert_eq!(empty_table("..."), "");
    }
}
