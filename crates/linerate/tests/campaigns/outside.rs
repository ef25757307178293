//! The state of the host outside the records, which a campaign must leave unchanged.

use super::experiment::Experiment;
use crate::common::{self, Program, wait_for};
use std::fs;

/// The host, as far as a campaign could change it.
pub struct Outside {
    links: String,
    rules: String,
    mounts: Vec<String>,
    names: Vec<String>,
    settings: Vec<(String, String)>,
}

/// Settings that a router has. The test adds those of the whole host that its plans change: no other test changes the same ones.
const SETTINGS: [&str; 3] = [
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
];

fn said(program: &str, args: &[&str]) -> String {
    Program::new(program).args(args).run().ok().stdout
}

/// Without comments, which have the time in them.
fn tables(text: &str) -> String {
    text.lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| format!("{l}\n"))
        .collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

/// Mounts without their number and their parent's.
fn mounts() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    text.lines()
        .map(|l| l.splitn(4, ' ').nth(3).unwrap().to_string())
        .collect()
}

fn setting(name: &str) -> (String, String) {
    (
        name.to_string(),
        fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default(),
    )
}

impl Outside {
    /// The state now, with settings of the whole host. Connection tracking's tables, which exist only after their first use, are used first.
    pub fn now(of_the_host: &[&str]) -> Self {
        let settings = SETTINGS
            .iter()
            .chain(of_the_host)
            .map(|name| setting(name))
            .collect();
        let (links, rules) = links_and_rules();
        Outside {
            links,
            rules,
            mounts: mounts(),
            names: lines(&common::lab::names()),
            settings,
        }
    }
}

fn links_and_rules() -> (String, String) {
    let legacy = tables(&said("iptables-legacy-save", &[]));
    let rules = said("nft", &["list", "ruleset"]) + &legacy + &said("ipset", &["list", "-n"]);
    (said("ip", &["-o", "link"]), rules)
}

impl Outside {
    /// Nothing of the campaign is left, and every setting is as it was.
    #[track_caller]
    pub fn is_as_it_was(&self, experiment: &Experiment, when: &str) {
        self.nothing_is_left(experiment, when);
        let now: Vec<_> = self
            .settings
            .iter()
            .map(|(name, _)| setting(name))
            .collect();
        assert_eq!(now, self.settings, "{when}");
        let books = fs::read_dir("/run/linerate/host")
            .into_iter()
            .flatten()
            .flatten();
        let books: Vec<String> = books.map(|e| e.path().display().to_string()).collect();
        let of_the_dead = |book: &String| {
            let name = book.rsplit('/').next().unwrap_or_default();
            let pid = name
                .split('-')
                .next()
                .and_then(|pid| pid.parse::<u32>().ok());
            pid.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
        };
        let left: Vec<&String> = books.iter().filter(|b| of_the_dead(b)).collect();
        assert!(left.is_empty(), "{when}: {left:?}");
    }

    /// No process, namespace, link, rule, mount or file is left. Settings may be: after kill -9, the next linerate puts them back.
    #[track_caller]
    pub fn nothing_is_left(&self, experiment: &Experiment, when: &str) {
        wait_for(
            &format!("the campaign's processes to be gone, {when}"),
            || processes_of(experiment).is_empty().then_some(()),
        );
        let (links, rules) = links_and_rules();
        assert_eq!((&links, &rules), (&self.links, &self.rules), "{when}");
        // Other programs' mounts and names may go meanwhile; none may come.
        let new = |now: &[String], then: &[String]| -> Vec<String> {
            now.iter()
                .filter(|line| !then.contains(line))
                .cloned()
                .collect()
        };
        assert_eq!(new(&mounts(), &self.mounts), [""; 0], "{when}: mounts");
        let names = lines(&common::lab::names());
        assert_eq!(
            new(&names, &self.names),
            [""; 0],
            "{when}: namespaces with names"
        );
        let files: Vec<_> = fs::read_dir(experiment.temporary())
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect();
        assert!(files.is_empty(), "{when}: {files:?}");
    }
}

/// The processes that the experiment has started, which are known by their environment. A namespace without a name is there as
/// long as a process holds it: where none of these is left, none of their namespaces is.
pub fn processes_of(experiment: &Experiment) -> Vec<u32> {
    let mark = format!("TMPDIR={}\0", experiment.temporary().display());
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    pids.filter(marked).collect()
}

/// Network namespaces other than this one's that the experiment's processes are in or have open.
pub fn namespaces_of(experiment: &Experiment) -> usize {
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let mut found = std::collections::BTreeSet::new();
    for pid in processes_of(experiment) {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path());
        let links = open
            .chain([format!("/proc/{pid}/ns/net").into()])
            .filter_map(|p| fs::read_link(p).ok());
        found.extend(links.filter(|l| l.to_string_lossy().starts_with("net:[") && *l != own));
    }
    found.len()
}
