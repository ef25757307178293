//! A change that a tuning kept, as a change of a host.

use super::{Change, flag};
use crate::Runtime;
use crate::host::Host;
use crate::item::{Basis, Item, Lasting, Setting, State, Topic};
use crate::setting::Scope;
use linerate_hosts::configuration::Configuration;
use linerate_hosts::systems::Kernel;
use linerate_measure::experiment::System;
use linerate_plan::card::{CardSetting, CardValue, Linux};
use linerate_plan::offload::Offload;
use linerate_plan::placeholders::{PLACEHOLDERS, fill};
use linerate_plan::settings::{Interface, Settings, cpu_mask};
use linerate_plan::sysctl::Lasts;

/// A change that was measured.
pub struct Kept<'a> {
    /// The name of its variant.
    pub name: &'a str,
    /// Keys with their values, as a plan has them: `interface.gro = false`.
    pub keys: &'a [String],
    /// The settings of a variant that makes it.
    pub settings: &'a Settings,
    /// Growth of the rate as a share.
    pub gain: f64,
}

const NO_CHANGE: &str = "`linerate apply` cannot set it: set it by hand";
const OF_A_LAB: &str = "it names an interface of a lab: name the lab file with --lab";
/// Keys that a host cannot keep, and why; the first word of a key decides.
const OF_THE_LAB: [(&str, &str); 8] = [
    (
        "rules",
        "the rule set is for the networks of the lab, and only the lab has it",
    ),
    (
        "dut",
        "it says how the lab is built, and only the lab has it",
    ),
    (
        "path",
        "it says how the lab is built, and only the lab has it",
    ),
    (
        "cpus",
        "it says how the lab is built, and only the lab has it",
    ),
    (
        "states",
        "it is about the connections of the lab, and only the lab has them",
    ),
    (
        "routes",
        "the routes are for frames of the lab, and only the lab has them",
    ),
    (
        "neighbours",
        "the neighbours are for frames of the lab, and only the lab has them",
    ),
    (
        "event",
        "it happens during trials, and only the lab has them",
    ),
];

/// The change on a host with these facts; `None` if its system is not known here. `ends`: the interfaces towards generator and receiver,
/// where they are known.
pub fn kept(
    found: &Configuration,
    change: &Kept,
    ends: Option<[&str; 2]>,
) -> Option<Result<Item, String>> {
    let host = Host::new(found, Default::default())?;
    let of_key = |key: &String| {
        let path = key.split(" = ").next().unwrap_or_default();
        settings(&host, change.settings, ends, path).map_err(|why| format!("{path}: {why}"))
    };
    let settings = change
        .keys
        .iter()
        .map(of_key)
        .collect::<Result<Vec<_>, _>>();
    let of_cards = |key: &String| key.starts_with("interface.");
    let is_of_cards = ends.is_none() && change.keys.iter().any(of_cards);
    let stays = session(found).filter(|_| is_of_cards).unwrap_or_default();
    Some(settings.map(|settings| Item {
        id: change.name.into(),
        topic: Topic::Forwarding,
        state: State::Change,
        title: change.keys.join(", "),
        settings: settings.into_iter().flatten().collect(),
        evidence: None,
        computation: None,
        why: "A tuning has measured it.".into(),
        measured: Vec::new(),
        gain: change.gain,
        basis: Basis::Same,
        certainty: 1.0,
        cost: stays,
        note: None,
        reserve: None,
        plan: None,
        patch: None,
    }))
}

/// Whether some host of this system may keep a change with these keys. `ends`: whether the interfaces towards generator and receiver are
/// known.
pub fn may_keep(keys: &[String], system: System, ends: bool) -> bool {
    let is_free_bsd = system.parent().unwrap_or(system) == System::FreeBsd;
    keys.iter().all(|key| {
        let path = key.split(" = ").next().unwrap_or_default();
        let in_braces = |(word, _): &(&str, &str)| path.contains(&format!("{{{word}}}"));
        let Some(of_card) = path.strip_prefix("interface.") else {
            return match path.split('.').next() {
                Some("sysctls") => ends || !PLACEHOLDERS.iter().any(in_braces),
                Some("boot") => is_free_bsd,
                _ => false,
            };
        };
        let of_end = ["in.", "out."]
            .iter()
            .find_map(|end| of_card.strip_prefix(end));
        let is_known = |key: &str| key == "rps" || CardSetting::of_key(key).is_some();
        (ends || of_end.is_none()) && is_known(of_end.unwrap_or(of_card))
    })
}

/// The cards that stay as they are, because they carry the ssh session, in words.
fn session(found: &Configuration) -> Option<String> {
    let cards = found.cards.iter().map(|card| card.name.as_str());
    let kept: Vec<&str> = cards.filter(|name| found.carries_session(name)).collect();
    let names = kept.join(", ");
    (!kept.is_empty())
        .then(|| format!("{names} stays as it is, because your ssh session goes over it"))
}

/// The settings of a host that a key of a plan means.
fn settings(
    host: &Host,
    wanted: &Settings,
    ends: Option<[&str; 2]>,
    path: &str,
) -> Result<Vec<Setting>, String> {
    if let Some(name) = path.strip_prefix("sysctls.") {
        let value = wanted.sysctls.get(name).ok_or(NO_CHANGE)?;
        let in_braces = |(word, _): &(&str, &str)| name.contains(&format!("{{{word}}}"));
        let name = match ends {
            Some([inside, outside]) => fill(name, inside, outside),
            None if PLACEHOLDERS.iter().any(in_braces) => return Err(OF_A_LAB.into()),
            None => name.into(),
        };
        let change = Scope::of(host).kernel(&name, host.lasts(&name), value);
        return Ok(vec![setting(host, &name, value, change)]);
    }
    if let Some(name) = path.strip_prefix("boot.") {
        let value = wanted.boot.get(name).ok_or(NO_CHANGE)?;
        if host.kernel != Kernel::FreeBsd {
            return Err(NO_CHANGE.into());
        }
        let change = Scope::of(host).kernel(name, Lasts::Loader, value);
        return Ok(vec![setting(host, name, value, change)]);
    }
    if let Some(key) = path.strip_prefix("interface.") {
        return interfaces(host, wanted, ends, key);
    }
    let first = path.split('.').next().unwrap_or_default();
    let known = OF_THE_LAB.iter().find(|(name, _)| *name == first);
    Err(known.map_or(NO_CHANGE, |(_, why)| why).into())
}

/// A setting with its change. What OPNsense and pfSense find in their files, they write anew.
fn setting(host: &Host, name: &str, wanted: &str, (runtime, lasting): Change) -> Setting {
    Setting {
        name: name.into(),
        wanted: Some(wanted.into()),
        runtime,
        lasting: lasting.filter(|_| !host.is_appliance()),
        ..Setting::default()
    }
}

/// The settings of interfaces: of both ends, or of one.
fn interfaces(
    host: &Host,
    wanted: &Settings,
    ends: Option<[&str; 2]>,
    key: &str,
) -> Result<Vec<Setting>, String> {
    let (of, key) = match (key.strip_prefix("in."), key.strip_prefix("out.")) {
        (Some(key), _) => (Some(0), key),
        (_, Some(key)) => (Some(1), key),
        _ => (None, key),
    };
    let both = [&wanted.inside, &wanted.outside];
    let all: Vec<(&str, &Interface)> = match (ends, of) {
        (Some(ends), Some(of)) => vec![(ends[of], both[of])],
        (Some(ends), None) => ends.into_iter().zip(both).collect(),
        (None, Some(_)) => return Err(OF_A_LAB.into()),
        (None, None) => {
            let cards = host.found.cards.iter().map(|card| card.name.as_str());
            cards
                .filter(|name| !host.found.carries_session(name))
                .map(|name| (name, both[0]))
                .collect()
        }
    };
    if all.is_empty() {
        return Err("the host has no card whose settings may change".into());
    }
    let mut found = Vec::new();
    for (name, wanted) in all {
        let card = host.found.card(name);
        let scope = Scope {
            card: Some(card.ok_or_else(|| format!("the host has no interface {name}"))?),
            ..Scope::of(host)
        };
        found.extend(scope.of_card(key, wanted)?);
    }
    Ok(found)
}

impl Scope<'_> {
    /// The settings of this card that a key of an interface means.
    fn of_card(&self, key: &str, wanted: &Interface) -> Result<Vec<Setting>, String> {
        let (host, card) = (self.host, self.card_name());
        let is_linux = host.kernel == Kernel::Linux;
        if let (true, "rps", Some(cpus)) = (is_linux, key, &wanted.rps) {
            let path = format!("/sys/class/net/{card}/queues/rx-*/rps_cpus");
            return Ok(vec![self.file(&path, &cpu_mask(cpus))]);
        }
        let named = CardSetting::of_key(key).and_then(|set| Some((set, *wanted.set.get(&set)?)));
        let (set, value) = named.ok_or(NO_CHANGE)?;
        let by_ethtool = |option: &'static str, word: &str, link: &str, value: &str| {
            let change = self.ethtool(option, word, link, value);
            setting(
                host,
                &format!("ethtool {option} {card} {word}"),
                value,
                change,
            )
        };
        let switch = value.per(1);
        match set.row().linux {
            _ if !is_linux => of_bsd(self, set, value),
            Linux::Offloads => Ok(Offload::of(set)
                .filter(|offload| !offload.ethtool.is_empty())
                .map(|offload| by_ethtool("-K", offload.ethtool, offload.link, &switch))
                .collect()),
            Linux::Pauses => Ok([("rx", "RxFlowControl"), ("tx", "TxFlowControl")]
                .map(|(word, link)| by_ethtool("-A", word, link, &switch))
                .into()),
            Linux::Ethtool {
                option,
                words,
                unit,
            } => Ok(words
                .iter()
                .map(|[word, _]| by_ethtool(option, word, link_key(word, option), &value.per(unit)))
                .collect()),
            Linux::File(file) => {
                let path = format!("/sys/class/net/{card}/{file}");
                Ok(vec![self.file(&path, &value.to_string())])
            }
            Linux::Nothing(why) => Err(why.into()),
        }
    }

    /// A file of an interface, which systemd-tmpfiles(8) writes at a boot.
    fn file(&self, path: &str, value: &str) -> Setting {
        let virtual_one = self.card.is_some_and(|card| card.kind.is_some());
        let line = format!("w {path} - - - - {value}");
        let lasting = Lasting::of(super::TMPFILES, &format!("w {path} "), line);
        let runtime = Runtime::File {
            path: path.into(),
            value: value.into(),
        };
        let lasting = Some(lasting).filter(|_| !virtual_one);
        setting(self.host, path, value, (Some(runtime), lasting))
    }
}

/// The settings of a card of FreeBSD, until the next boot.
fn of_bsd(scope: &Scope, set: CardSetting, value: CardValue) -> Result<Vec<Setting>, String> {
    let (host, card) = (scope.host, scope.card_name());
    let is_off = value == CardValue::Switch(false);
    let of = |offload: &'static Offload| {
        let [_, given] = offload.flag(host.kernel.into())?;
        let runtime = Runtime::Ifconfig {
            arguments: vec![card.into(), flag(given, is_off)],
        };
        let name = format!("ifconfig {card} {given}");
        Some(setting(host, &name, &value.per(1), (Some(runtime), None)))
    };
    let all: Vec<Setting> = Offload::of(set).filter_map(of).collect();
    if all.is_empty() {
        return Err(NO_CHANGE.into());
    }
    Ok(all)
}

/// The key of systemd.link(5) for a word of ethtool(8) whose number it takes as it is; empty without one.
fn link_key(word: &str, option: &str) -> &'static str {
    match (option, word) {
        ("-G", "rx") => "RxBufferSize",
        ("-G", "tx") => "TxBufferSize",
        ("-L", "combined") => "CombinedChannels",
        ("-C", "rx-frames") => "RxMaxCoalescedFrames",
        ("-C", "tx-frames") => "TxMaxCoalescedFrames",
        ("-C", "adaptive-rx") => "UseAdaptiveRxCoalesce",
        ("-C", "adaptive-tx") => "UseAdaptiveTxCoalesce",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_hosts::configuration::{Card, Release};

    fn host(kernel: &str) -> Configuration {
        let card = |name: &str, kind: Option<&str>| Card {
            name: name.into(),
            kind: kind.map(String::from),
            found: true,
            ..Card::default()
        };
        Configuration {
            system: Release {
                kernel: kernel.into(),
                ..Release::default()
            },
            cards: vec![card("eth0", None), card("v1", Some("veth"))],
            ..Configuration::default()
        }
    }

    fn wanted() -> Settings {
        let mut all = Settings::default();
        all.sysctls
            .insert("net.core.netdev_budget".into(), "600".into());
        all.sysctls
            .insert("net.ipv4.conf.{in}.rp_filter".into(), "0".into());
        for end in [&mut all.inside, &mut all.outside] {
            end.rps = Some(vec![1]);
            for (set, value) in [
                (CardSetting::Gro, CardValue::Switch(false)),
                (CardSetting::RxRing, CardValue::Number(1024)),
                (CardSetting::RxWait, CardValue::Number(30_000)),
            ] {
                end.set.insert(set, value);
            }
        }
        all
    }

    /// Arguments, or the name with the value, and the line that lasts.
    fn shown(kernel: &str, key: &str, ends: Option<[&str; 2]>) -> Result<Vec<String>, String> {
        let (found, settings) = (host(kernel), wanted());
        let change = Kept {
            name: "c",
            keys: &[format!("{key} = 1")],
            settings: &settings,
            gain: 0.1,
        };
        let item = kept(&found, &change, ends).unwrap()?;
        let line = |setting: &Setting| {
            let runtime = setting
                .runtime
                .as_ref()
                .map(|runtime| match runtime.argv() {
                    Ok(argv) => argv.join(" "),
                    Err((path, value)) => format!("{path} {value}"),
                });
            let line = setting
                .lasting
                .as_ref()
                .and_then(|lasting| lasting.line.clone());
            format!(
                "{} | {}",
                runtime.unwrap_or_default(),
                line.unwrap_or_default()
            )
        };
        Ok(item.settings.iter().map(line).collect())
    }

    #[test]
    fn settings_of_a_host_are_made_at_once_and_for_the_next_boot() {
        let lines = |key: &str| shown("linux", key, None).unwrap();
        assert_eq!(
            lines("sysctls.net.core.netdev_budget"),
            ["sysctl net.core.netdev_budget=600 | net.core.netdev_budget = 600"]
        );
        // A virtual interface is made anew at each boot.
        assert_eq!(
            lines("interface.rx-ring"),
            [
                "ethtool -G eth0 rx 1024 | RxBufferSize=1024",
                "ethtool -G v1 rx 1024 | "
            ]
        );
        assert_eq!(
            lines("interface.gro")[0],
            "ethtool -K eth0 gro off | GenericReceiveOffload=no"
        );
        assert_eq!(
            lines("interface.rx-wait")[0],
            "ethtool -C eth0 rx-usecs 30 | "
        );
        assert_eq!(
            lines("interface.rps")[0],
            "/sys/class/net/eth0/queues/rx-*/rps_cpus 00000002 | w /sys/class/net/eth0/queues/rx-*/rps_cpus - - - - 00000002"
        );
        let of_lab = shown("linux", "interface.out.gro", Some(["eth0", "v1"])).unwrap();
        assert_eq!(of_lab, ["ethtool -K v1 gro off | "]);
        let named = "sysctls.net.ipv4.conf.{in}.rp_filter";
        let of_lab = shown("linux", named, Some(["eth0", "v1"])).unwrap();
        assert!(of_lab[0].starts_with("sysctl net.ipv4.conf.eth0.rp_filter=0 |"));
    }

    #[test]
    fn a_change_that_a_host_cannot_keep_says_why() {
        let why = |kernel: &str, key: &str| shown(kernel, key, None).unwrap_err();
        assert_eq!(
            why("linux", "rules.before"),
            "rules.before: the rule set is for the networks of the lab, and only the lab has it"
        );
        let mut found = host("linux");
        found.session = vec!["eth0".into()];
        let change = Kept {
            name: "c",
            keys: &["interface.gro = false".into()],
            settings: &wanted(),
            gain: 0.1,
        };
        let item = kept(&found, &change, None).unwrap().unwrap();
        assert_eq!(item.settings.len(), 1);
        assert!(
            item.cost.starts_with("eth0 stays as it is"),
            "{}",
            item.cost
        );
        assert!(why("linux", "interface.in.gro").ends_with(OF_A_LAB));
        assert!(why("linux", "sysctls.net.ipv4.conf.{in}.rp_filter").ends_with(OF_A_LAB));
        assert!(why("linux", "commands").ends_with(NO_CHANGE));
        assert!(why("linux", "boot.isolcpus").ends_with(NO_CHANGE));
        assert!(why("freebsd", "interface.rx-ring").ends_with(NO_CHANGE));
        let gone = shown("linux", "interface.gro", Some(["eth0", "eth9"])).unwrap_err();
        assert!(gone.ends_with("the host has no interface eth9"), "{gone}");
    }

    #[test]
    fn what_no_host_can_keep_is_known_without_a_host() {
        for (key, on_linux, with_ends) in [
            ("sysctls.net.core.netdev_budget", true, true),
            ("sysctls.net.ipv4.conf.{in}.rp_filter", false, true),
            ("interface.gro", true, true),
            ("interface.rps", true, true),
            ("interface.in.gro", false, true),
            ("interface.no-such", false, false),
            ("rules.before", false, false),
            ("commands", false, false),
            ("boot.isolcpus", false, false),
        ] {
            let keys = [format!("{key} = 1")];
            let may = [false, true].map(|ends| may_keep(&keys, System::Linux, ends));
            assert_eq!(may, [on_linux, with_ends], "{key}");
            let kept = shown("linux", key, Some(["eth0", "v1"]));
            assert_eq!(kept.is_ok(), with_ends, "{key}: {kept:?}");
        }
        let both = ["sysctls.a.b = 1", "rules.before = 0"].map(String::from);
        assert!(!may_keep(&both, System::Linux, true), "whole or not at all");
        assert!(may_keep(&["boot.hw.x = 1".into()], System::OpnSense, false));
    }
}
