//! The kind of a file and the place that it belongs to, from its path: `<CPU>/<card>/<topic>/{configs,results}/<label>/...`, or
//! the older `<CPU>-<card>/<topic>/...`; in results `bench.<image>.<config>.<pktgen>.<n>.{receiver,sender,info,...}`.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A receiver's log.
    Receiver,
    /// A generator's log.
    Sender,
    /// The test and its system.
    Info,
    /// Medians, one a line.
    Medians,
    /// Equilibrium throughputs, one a line.
    Equilibrium,
    /// A table over sets.
    Series,
    /// Output of a tool in a test of the netperf collection (`<topic>/Results/<series>/<file>`, `<topic>/Tests/<test>/<file>`),
    /// without any layout of its own.
    Printed,
    /// A part of a test of Conductor.
    Conductor,
    /// A part of a DUT's configuration.
    Config,
    /// A profile: a call graph of pmcstat, or folded stacks. Only its end is read.
    Profile(&'static str),
    /// Messages of pmcstat's conversion.
    PmcLog,
    /// Something that is counted by its name and not read: pages, pictures, counters.
    Other(&'static str),
    /// Named like a log without suffix, or nothing known: the content decides.
    Unknown,
}

impl Kind {
    /// Name in lists and records.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Receiver => "receiver",
            Kind::Sender => "sender",
            Kind::Info => "info",
            Kind::Medians => "medians",
            Kind::Equilibrium => "equilibrium",
            Kind::Series => "series",
            Kind::Printed => "printed",
            Kind::Conductor => "test",
            Kind::Config => "config",
            Kind::PmcLog => "pmc log",
            Kind::Profile(name) | Kind::Other(name) => name,
            Kind::Unknown => "other",
        }
    }

    /// Most bytes of a file of this kind. Larger files are not of this kind.
    pub fn largest(self) -> u64 {
        match self {
            Kind::Receiver | Kind::Sender => 64 << 20,
            Kind::Unknown => 64 << 10,
            _ => 1 << 20,
        }
    }
}

/// The kind of a file by its path below a results or configuration folder.
pub fn kind(path: &str) -> Kind {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    if folders.split('/').any(is_configs) {
        return Kind::Config;
    }
    if let Some(stem) = name.strip_prefix("netstat.") {
        return if stem.is_empty() {
            Kind::Unknown
        } else {
            Kind::Other("netstat")
        };
    }
    if name.starts_with("pps.") || name.starts_with("none.") {
        // `pps.fastforwarding`; for `none.data` and `pps.bak` the extension decides.
        let by_end = by_end(name);
        return if by_end == Kind::Unknown {
            Kind::Medians
        } else {
            by_end
        };
    }
    let of_test = folders
        .split('/')
        .any(|folder| matches!(folder, "Results" | TESTS));
    match by_end(name) {
        Kind::Unknown if name.ends_with(".cfg") && test_folder(path).is_some() => Kind::Conductor,
        Kind::Unknown | Kind::Other("page" | "record") if of_test => Kind::Printed,
        by_end => by_end,
    }
}

fn by_end(name: &str) -> Kind {
    const ENDS: [(&str, Kind); 28] = [
        (".receiver", Kind::Receiver),
        (".info", Kind::Info),
        (".pps", Kind::Medians),
        (".equilibrium", Kind::Equilibrium),
        (".equilibrium.max", Kind::Equilibrium),
        (".throughpt", Kind::Equilibrium),
        (".data", Kind::Series),
        (".data.max", Kind::Series),
        (".graph", Kind::Profile("graph")),
        (".stack", Kind::Profile("stack")),
        (".folded", Kind::Profile("stack")),
        (".folded.txt", Kind::Profile("stack")),
        (".pmc.log", Kind::PmcLog),
        (".during", Kind::Other("during")),
        (".md", Kind::Other("page")),
        (".txt", Kind::Other("page")),
        (".html", Kind::Other("page")),
        (".svg", Kind::Other("picture")),
        (".png", Kind::Other("picture")),
        (".plt", Kind::Other("picture")),
        (".gnuplot", Kind::Other("picture")),
        (".pdf", Kind::Other("picture")),
        (".json", Kind::Other("record")),
        (".jsonl", Kind::Other("record")),
        (".bak", Kind::Other("backup")),
        (".orig", Kind::Other("backup")),
        (".old", Kind::Other("backup")),
        ("~", Kind::Other("backup")),
    ];
    let ends = ENDS.iter().filter(|(end, _)| name.ends_with(end));
    if let Some((_, kind)) = ends.max_by_key(|(end, _)| end.len()) {
        return *kind;
    }
    if sender(name).is_some() {
        Kind::Sender
    } else {
        Kind::Unknown
    }
}

/// The part of a generator's log before `.sender...`, and which generator it is (`""`, `_2`, `_gen2`, `_gen2_2`).
pub fn sender(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind(".sender")?;
    let which = &name[at + ".sender".len()..];
    (which.is_empty() || (which.starts_with('_') && !which.contains('.')))
        .then(|| (&name[..at], which))
}

/// A folder of configurations: `configs`, `configs.dco`.
pub fn is_configs(folder: &str) -> bool {
    folder == "configs" || folder.starts_with("configs.")
}

/// A folder of logs below the one with their medians: `RAW`, `RAW.1rx`.
pub fn is_raw(folder: &str) -> bool {
    folder == "RAW" || folder.starts_with("RAW.")
}

/// A folder of profiling runs: `PMC`, `pmc`.
pub fn is_profiling(folder: &str) -> bool {
    folder.eq_ignore_ascii_case("PMC")
        || folder
            .get(..4)
            .is_some_and(|f| f.eq_ignore_ascii_case("PMC."))
}

/// The folder of all tests of a topic.
const TESTS: &str = "Tests";

/// The test that a file belongs to: `tunnel` of `IPSEC/Tests/tunnel/output`.
pub fn test_folder(path: &str) -> Option<&str> {
    let mut parts = path.rsplit_once('/')?.0.split('/');
    parts.find(|part| *part == TESTS)?;
    parts.next()
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A file's name without its ending: `bench.a.1` of `bench.a.1.sender_gen2`, `bench.a.1.info`.
pub fn stem(path: &str) -> &str {
    let name = file_name(path);
    let name = sender(name).map_or(name, |(stem, _)| stem);
    name.strip_suffix(".info")
        .or_else(|| name.strip_suffix(".receiver"))
        .unwrap_or(name)
}

/// The stem of `bench.<stem>.info` and its like: `bench.info` has none.
pub fn set_stem(name: &str) -> &str {
    match name.strip_prefix("bench") {
        Some("") => "",
        Some(rest) => rest.strip_prefix('.').unwrap_or(name),
        None => name,
    }
}

/// The `<x>` of a folder `RAW.<x>` that a path leads through.
pub fn raw_suffix(folder: &str) -> Option<&str> {
    folder
        .rsplit('/')
        .find(|part| is_raw(part))?
        .strip_prefix("RAW.")
}

/// The sets that have an `.info`, by its folder: they decide how names of logs are read.
#[derive(Debug, Clone, Default)]
pub struct KnownSets(pub BTreeMap<String, BTreeSet<String>>);

impl KnownSets {
    /// The set that a log belongs to, as `bench.<set>.info` has it, and which of its runs it is. `a.1` is run 1 of the set `a`,
    /// unless there is a set `a.1`.
    pub fn split(&self, folder: &str, stem: &str) -> (String, Option<u32>) {
        let stem = set_stem(stem);
        let (prefix, last) = stem.rsplit_once('.').unwrap_or(("", stem));
        let digits = last.len() <= 9 && last.bytes().all(|b| b.is_ascii_digit());
        let Some(number) = last.parse::<u32>().ok().filter(|_| digits) else {
            return (stem.into(), None);
        };
        let here = self.0.get(folder).is_some_and(|sets| sets.contains(prefix));
        let whole = self.0.values().any(|sets| sets.contains(stem));
        let plausible = number < if prefix.is_empty() { 100 } else { 1000 };
        let numbered = here || (!whole && plausible);
        if numbered {
            (prefix.into(), Some(number))
        } else {
            (stem.into(), None)
        }
    }
}

/// Subject of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The DUT as the archive names it: `Xeon_E5-2650_8Cores`.
    pub machine: Option<String>,
    /// Network card: `Chelsio_T540-CR`.
    pub card: Option<String>,
    /// The topic: `firewalls`, `hw.ix.num_queues`.
    pub topic: Option<String>,
    /// Name of the series, which mostly contains the system: `fbsd11.1-yandex`.
    pub label: Option<String>,
}

/// Derives machine, card, topic and label from the parts of a folder's absolute path.
pub fn place(parts: &[&str]) -> Place {
    let some = |text: String| (!text.is_empty()).then_some(text);
    let results = parts
        .iter()
        .rposition(|p| matches!(*p, "results" | "result" | "Results" | TESTS));
    let before = &parts[..results.unwrap_or(parts.len())];
    let label = results.and_then(|at| some(parts[at + 1..].join("/")));
    let Some(at) = before.iter().rposition(|p| machine(p).is_some()) else {
        // A machine that no rule knows: the topic stands before the results all the same.
        let topic = results.and_then(|_| before.last()).map(|t| t.to_string());
        return Place {
            topic,
            label,
            ..Place::default()
        };
    };
    let (name, card) = machine(before[at]).expect("this part is a machine");
    let (card, topic) = match card {
        Some(card) => (Some(card), &before[at + 1..]),
        None => (
            before.get(at + 1).copied(),
            before.get(at + 2..).unwrap_or_default(),
        ),
    };
    Place {
        machine: Some(name.into()),
        card: card.and_then(|c| some(c.into())),
        topic: some(topic.join("/")),
        label,
    }
}

/// `Xeon_E5-2650_8Cores`, `Xeon_E5-2650v4_2x12Cores`, or with the card behind it: `AMD_GX-412TC_4Cores-Intel_i210AT`.
fn machine(part: &str) -> Option<(&str, Option<&str>)> {
    let end = part.find("Cores")? + "Cores".len();
    let counted = part[..end - "Cores".len()].ends_with(|c: char| c.is_ascii_digit());
    match &part[end..] {
        _ if !counted => None,
        "" => Some((part, None)),
        rest => rest
            .strip_prefix(['-', '_'])
            .map(|card| (&part[..end], Some(card))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(path: &str) -> Place {
        place(&path.split('/').collect::<Vec<_>>())
    }

    #[test]
    fn kinds_by_name() {
        for (path, found) in [
            ("x/results/l/bench.forwarding.1.receiver", Kind::Receiver),
            ("bench.a.1.sender_gen2_2", Kind::Sender),
            ("bench.a.1.sender", Kind::Sender),
            ("bench.a.sender.pmc.log", Kind::PmcLog),
            ("pps.fastforwarding", Kind::Medians),
            ("none.nobind", Kind::Medians),
            ("none.data", Kind::Series),
            ("gnuplot.data.max", Kind::Series),
            ("null.equilibrium.max", Kind::Equilibrium),
            ("equilibrium.throughpt", Kind::Equilibrium),
            ("gnuplot.bak", Kind::Other("backup")),
            ("PMC/netstat.off.after.txt", Kind::Other("netstat")),
            ("PMC/forwarding.folded.txt", Kind::Profile("stack")),
            ("bench.aes-cbc-128.aesni.1", Kind::Unknown),
            ("285702.fastforwarding", Kind::Unknown),
            ("t/configs/351/etc/rc.conf", Kind::Config),
            ("t/configs.dco/null/etc/x.info", Kind::Config),
            ("VANILLA/Results/VIMAGE/enabled.txt", Kind::Printed),
            ("IPSEC/Tests/tunnel/output", Kind::Printed),
            ("IPSEC/Tests/tunnel/run.jsonl", Kind::Printed),
            ("IPSEC/Tests/tunnel/dut.cfg", Kind::Conductor),
            ("IPSEC/Tests/tunnel/dut.cfg~", Kind::Other("backup")),
            ("x/results/l/notes.txt", Kind::Other("page")),
            ("records/campaign.json", Kind::Other("record")),
        ] {
            assert_eq!(kind(path), found, "{path}");
        }
        assert_eq!(
            sender("bench.a.1.sender_gen2_2"),
            Some(("bench.a.1", "_gen2_2"))
        );
    }

    #[test]
    fn places_of_both_layouts() {
        let place = parts("/data/Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017");
        let found = [place.machine, place.card, place.topic, place.label].map(Option::unwrap);
        assert_eq!(
            found,
            [
                "Xeon_E5-2650_8Cores",
                "Chelsio_T540-CR",
                "firewalls",
                "fbsd.2017"
            ]
        );
        for joined in [
            "AMD_GX-412TC_4Cores-Intel_i210AT",
            "AMD_GX-412TC_4Cores_Intel_i210AT",
        ] {
            let place = parts(&format!("{joined}/ipsec/result/a/b"));
            let found = [place.machine, place.card, place.topic, place.label].map(Option::unwrap);
            assert_eq!(
                found,
                ["AMD_GX-412TC_4Cores", "Intel_i210AT", "ipsec", "a/b"]
            );
        }
        let dual = parts("Xeon_E5-2650v4_2x12Cores/Mellanox_ConnectX-3");
        assert_eq!(
            (dual.card.as_deref(), dual.topic),
            (Some("Mellanox_ConnectX-3"), None)
        );
    }

    #[test]
    fn unknown_places_are_left_open() {
        assert_eq!(parts("/tmp/a"), Place::default());
        let place = parts("/tmp/MyRouter/ix0/forwarding/results/x");
        assert_eq!(
            (
                place.machine,
                place.topic.as_deref(),
                place.label.as_deref()
            ),
            (None, Some("forwarding"), Some("x"))
        );
        assert_eq!(parts("synthesis"), Place::default());
    }

    proptest! {
        #[test]
        fn any_path_is_taken(path in "\\PC{0,80}") {
            kind(&path);
            place(&path.split('/').collect::<Vec<_>>());
            is_profiling(&path);
        }
    }

    fn known(folder: &str, sets: &[&str]) -> KnownSets {
        KnownSets(
            [(
                folder.to_string(),
                sets.iter().map(|s| s.to_string()).collect(),
            )]
            .into(),
        )
    }

    #[test]
    fn names_of_runs() {
        let none = KnownSets::default();
        assert_eq!(
            none.split("r", "bench.forwarding.inet4.10"),
            ("forwarding.inet4".into(), Some(10))
        );
        assert_eq!(
            none.split("r", "bench.forwarding.inet4"),
            ("forwarding.inet4".into(), None)
        );
        assert_eq!(none.split("r", "bench.1.1"), ("1".into(), Some(1)));
        assert_eq!(none.split("r", "bench.3"), (String::new(), Some(3)));
        assert_eq!(none.split("r", "bench.4096"), ("4096".into(), None));
        assert_eq!(none.split("r", "bench"), (String::new(), None));
        assert_eq!(
            none.split("r", "benchmark.1"),
            ("benchmark".into(), Some(1))
        );
    }

    #[test]
    fn infos_decide_what_is_a_number() {
        let raw = known("l/RAW", &["1024", "pf-stateful.64", ""]);
        assert_eq!(raw.split("l/RAW", "bench.1024.1"), ("1024".into(), Some(1)));
        assert_eq!(
            raw.split("l/RAW", "bench.pf-stateful.64"),
            ("pf-stateful.64".into(), None)
        );
        assert_eq!(
            raw.split("l/RAW", "bench.pf-stateful.64.2"),
            ("pf-stateful.64".into(), Some(2))
        );
        assert_eq!(raw.split("l/RAW", "bench.7"), (String::new(), Some(7)));
        // A profiling run beside it.
        assert_eq!(
            known("l/RAW", &["64"]).split("l/PMC", "bench.64"),
            ("64".into(), None)
        );
    }

    #[test]
    fn suffixes_of_raw_folders() {
        assert_eq!(raw_suffix("a/RAW.1rx"), Some("1rx"));
        assert_eq!(
            (raw_suffix("a/RAW"), raw_suffix("a"), raw_suffix(".")),
            (None, None, None)
        );
    }
}
