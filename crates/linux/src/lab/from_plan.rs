//! From the settings of a plan to a setup of the embedded lab.

use super::filler::Filler;
use super::setup::Step;
use super::{Setup, interface_names};
use crate::host::journal::Change;
use crate::process::{Input, Job};
use linerate_plan::BuiltIn;
use linerate_plan::placeholders::fill;
use linerate_plan::rules::{Kind, RuleSet};
use linerate_plan::settings::{Command, Settings, System};
use linerate_wire::Family;
use std::time::Duration;

/// How long a command of a plan may take that does not say.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);
/// How long loading a rule set may take: some tools are slow with many rules, and ten million entries are many for any.
pub(super) const LOAD_WITHIN: Duration = Duration::from_secs(300);

impl From<&BuiltIn> for Setup {
    fn from(variant: &BuiltIn) -> Setup {
        let setup = Setup::from_settings(&variant.name, 0, &variant.settings, &[Family::V4, Family::V6]);
        setup.unwrap_or_else(|faults| unreachable!("{} is sound: {faults:?}", variant.name))
    }
}

impl Setup {
    /// The setup of a plan's settings, as lane number `lane` of a lab. `families`: the IP versions of the lane's traffic, for which
    /// tables are filled and rules are written.
    ///
    /// # Errors
    /// All that cannot be read, or that the embedded lab cannot do.
    pub fn from_settings(
        name: &str,
        lane: usize,
        settings: &Settings,
        families: &[Family],
    ) -> Result<Setup, Vec<String>> {
        let mut faults = Vec::new();
        if !settings.boot.is_empty() {
            let keys: Vec<&str> = settings.boot.keys().map(String::as_str).collect();
            faults.push(format!(
                "settings that take effect at boot ({}) need a lab of real hosts",
                keys.join(", ")
            ));
        }
        let [inside, outside] = interface_names(lane);
        let named = |text: &str| fill(text, &inside, &outside);
        let filler = |count: Option<u32>| {
            let count = |family| if families.contains(&family) { count.unwrap_or(0) } else { 0 };
            Filler { v4: count(Family::V4), v6: count(Family::V6) }
        };
        let step = |command: &Command| {
            let within = command.within_ns.map_or(COMMAND_WITHIN, Duration::from_nanos);
            let shell = |line: &str| Job::new("sh", &["-c", &named(line)]).within(within);
            Step { run: shell(&command.run), undo: command.undo.as_deref().map(shell) }
        };
        let rules = settings.rules.as_ref().map(|rules| rule_set(rules, families)).transpose();
        let rules = rules.unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let setup = Setup {
            name: name.to_owned(),
            dut: settings.dut,
            sysctls: settings.sysctls.iter().map(|(key, value)| (named(key), named(value))).collect(),
            inside: settings.inside.clone(),
            outside: settings.outside.clone(),
            routes: settings.routes.explicit.clone(),
            more_routes: filler(settings.routes.count),
            neighbours: settings.neighbours.explicit.clone(),
            more_neighbours: filler(settings.neighbours.count),
            rules: rules.as_ref().map(jobs).unwrap_or_default(),
            tracks: rules.as_ref().is_some_and(|r| r.kind != Kind::Stateless),
            room: rules.as_ref().and_then(|r| r.states),
            states: settings.states,
            modules: settings.modules.clone(),
            files: settings.files.iter().map(|f| (named(&f.path), named(&f.text))).collect(),
            commands: settings.commands.iter().map(step).collect(),
            host: rules.as_ref().map(host_changes).unwrap_or_default(),
            own: None,
        };
        let setup = match &settings.rule_file {
            Some(file) => setup.with_rule_file(file, lane),
            None => setup,
        };
        faults.extend(setup.faults());
        if faults.is_empty() { Ok(setup) } else { Err(faults) }
    }
}

/// The rule set that a plan describes, for these IP versions alone: rules for others would stand in the way of each frame.
fn rule_set(rules: &RuleSet, families: &[Family]) -> Result<RuleSet, String> {
    if !rules.firewall.is_linux() {
        return Err("the embedded lab has the firewalls of Linux: nftables and iptables".into());
    }
    let set = rules.for_frames(System::Linux, families, None);
    match set.faults().into_iter().next() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(set),
    }
}

/// The programs that load a rule set; its text is written while they read it.
fn jobs(set: &RuleSet) -> Vec<Job> {
    let job = |load: linerate_plan::rules::Load| {
        let set = set.clone();
        let text = Input::writer(move |mut out| set.write_part(load.part, &[], &mut out));
        Job::new(load.program, load.arguments).with_input(text).within(LOAD_WITHIN)
    };
    set.loads().into_iter().map(job).collect()
}

/// Room for the states, as a minimum, and the hash as it is sized.
fn host_changes(set: &RuleSet) -> Vec<Change> {
    let change = |(name, value): (String, String)| {
        let change = Change::sysctl(&name, &value).ok()?;
        Some(if name.ends_with("_max") { change.or_more() } else { change })
    };
    set.sysctls().into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::rules::Firewall;
    use linerate_plan::settings::{Command, Dut, End, File, More, Neighbour, Route};
    use std::process;

    #[test]
    fn settings_become_a_setup() {
        let settings = Settings {
            dut: Dut::Macvlan,
            sysctls: [("net.ipv4.conf.{out}.rp_filter".to_string(), "1".to_string())].into(),
            routes: More {
                count: Some(5),
                explicit: vec![Route { to: "203.0.113.0/24".parse().unwrap(), via: None, end: End::In }],
            },
            neighbours: More {
                count: None,
                explicit: vec![Neighbour {
                    address: "198.19.0.9".parse().unwrap(),
                    mac: "02:00:00:00:00:01".parse().unwrap(),
                    end: End::Out,
                }],
            },
            files: vec![File { path: "x".into(), text: "{in}".into() }],
            commands: vec![Command {
                run: "ip link show {in}".into(),
                undo: Some("false".into()),
                within_ns: None,
            }],
            rules: Some(RuleSet { states: Some(1000), ..RuleSet::new(Firewall::Nftables, Kind::Stateful) }),
            ..Settings::default()
        };
        let setup = Setup::from_settings("x", 3, &settings, &[Family::V6]).unwrap();
        assert_eq!((setup.more_routes.v4, setup.more_routes.v6), (0, 5));
        assert_eq!(setup.routes[0].to.to_string(), "203.0.113.0/24");
        assert_eq!(setup.neighbours[0].mac.0, [2, 0, 0, 0, 0, 1]);
        assert_eq!(setup.sysctls.keys().collect::<Vec<_>>(), ["net.ipv4.conf.out3.rp_filter"]);
        assert_eq!(setup.files, [("x".to_string(), "in3".to_string())]);
        assert!(setup.tracks && setup.room == Some(1000));
        let host: Vec<(&str, bool)> = setup.host.iter().map(|c| (c.file.as_str(), c.at_least)).collect();
        let (max, buckets) =
            ("proc/sys/net/netfilter/nf_conntrack_max", "proc/sys/net/netfilter/nf_conntrack_buckets");
        assert_eq!(host, [(max, true), (buckets, false)]);
        assert_eq!(setup.commands[0].run.args, ["-c", "ip link show in3"]);
        let loader = &setup.rules[0];
        let text = Job::new("cat", &[]).with_input(loader.input.clone());
        let text = text.run(|path| process::Command::new(path), None).unwrap().stdout;
        assert!(
            text.contains("ct state") && text.contains("2001:2::/48") && !text.contains("198.18"),
            "{text}"
        );
    }

    #[test]
    fn all_that_cannot_be_is_said_at_once() {
        let route = Route {
            to: "10.0.0.0/8".parse().unwrap(),
            via: Some("2001:2::1".parse().unwrap()),
            end: End::Out,
        };
        let settings = Settings {
            boot: [("isolcpus".to_string(), "1".to_string())].into(),
            routes: More { count: None, explicit: vec![route] },
            sysctls: [("../x".to_string(), "1".to_string())].into(),
            rules: Some(RuleSet::new(Firewall::Pf, Kind::Stateless)),
            ..Settings::default()
        };
        let faults = Setup::from_settings("x", 0, &settings, &[Family::V4]).unwrap_err();
        assert_eq!(faults.len(), 4, "{faults:#?}");
    }
}
