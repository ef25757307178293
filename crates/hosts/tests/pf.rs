//! pf of a host comes back as it was, its firewall is never left open, and states do not outlive a variant: the steps for pf on the scripted
//! hosts, whose pfctl makes tables of lists as the real one does.

mod stand_in;

use linerate_hosts::dut_changes::{Input, Port, Program, Step, Target, steps};
use linerate_measure::experiment::System;
use linerate_plan::rules::own::{Meaning, RuleFile};
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::Settings;
use stand_in::Host;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

/// Lists of addresses, a macro, options, tables, an anchor and an included file.
const OWN: &str = "\
ext = \"igb2\" # towards the world
set limit { states 300000, table-entries 250000 }
set timeout { udp.first 30, adaptive.start 1000, adaptive.end 2000 }
set skip on lo0
table <bad> persist { 192.0.2.1, 192.0.2.2 }
table <office> const { 10.1.0.0/16 }
anchor \"guests/*\"
block return all
block drop in quick on $ext from { 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 203.0.113.0/24, 198.51.100.0/24, \\
	192.0.2.0/24, 100.64.0.0/10 } to any
pass in proto tcp from any to any port { 22, 80 }
pass from <office> to any
include \"MORE\"
";
const MORE: &str = "block drop in quick on igb2 from <bad> to any\n";
/// The states of a forwarded flow, of one that a variant translated, and of ssh.
const STATES: &str = "198.18.10.1 198.19.10.1\n198.19.10.1 198.18.10.1\n10.0.0.1 10.0.0.2\n";
const SSH: &str = "10.0.0.1 4000 10.0.0.2 22";

struct Pf {
    host: Host,
    system: System,
}

impl Pf {
    /// A host that runs the rules of its own file.
    fn new(system: System, name: &str) -> Pf {
        let kind = if system == System::FreeBsd {
            "freebsd"
        } else {
            "openbsd"
        };
        let host = Host::new(kind, &format!("pf-{kind}-{name}"));
        let pf = Pf { host, system };
        let more = pf.file("more.conf", MORE);
        let own = pf.file("pf.conf", &OWN.replace("MORE", &more));
        pf.host.set("rc.conf", &format!("pf_rules={own}"));
        pf.host.set("pf", "off");
        pf.does(&["pfctl", "-f", &own]);
        pf.does(&["pfctl", "-e"]);
        fs::write(pf.host.state.join("pf.states"), STATES).unwrap();
        fs::write(pf.host.state.join("log"), "").unwrap();
        pf
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.host.state.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    #[track_caller]
    fn does(&self, argv: &[&str]) -> String {
        let ended = self.host.command(argv).output().unwrap();
        assert!(ended.status.success(), "{argv:?}: {ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// The steps of a variant with these rules; none: pf off.
    fn steps(&self, rules: Option<RuleSet>, file: Option<RuleFile>) -> Vec<Step> {
        let port = |name: &str, network: &str| Port {
            name: name.into(),
            addresses: Vec::new(),
            next_hops: Vec::new(),
            networks: vec![network.into()],
        };
        let target = Target {
            system: self.system,
            inside: port("igb1", "198.18.0.0/16"),
            outside: port("igb2", "198.19.0.0/16"),
            config_save: None,
        };
        let settings = Settings {
            no_firewall: rules.is_none() && file.is_none(),
            rule_file: file,
            ..Settings::default()
        };
        steps(&settings, rules.as_ref(), &target).unwrap().steps
    }

    fn run(&self, program: &Program) -> Output {
        let argv: Vec<&str> = program.argv.iter().map(String::as_str).collect();
        let mut command = self.host.command(&argv);
        command
            .env("SSH_CONNECTION", SSH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let sent = match &program.input {
            Input::Text(text) => input.write_all(text.as_bytes()),
            Input::Rules(set, part) => set.write_part(*part, &[], &mut input),
            _ => Ok(()),
        };
        // A program may end before it has read all: its status tells.
        if let Err(error) = sent {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
        drop(input);
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn runs(&self, program: &Program) -> String {
        let ended = self.run(program);
        assert!(ended.status.success(), "{}{ended:?}", program.shown());
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Makes the steps of a variant. Returns the undoing of those that have one, the first made last.
    #[track_caller]
    fn make(&self, steps: &[Step]) -> Vec<Program> {
        let mut undoing = Vec::new();
        for step in steps {
            let was = step
                .read
                .as_ref()
                .map(|read| self.runs(&read.program))
                .unwrap_or_default();
            if let Some(back) = step.undoing(&was) {
                undoing.insert(
                    0,
                    Program {
                        argv: back.argv,
                        input: Input::Text(back.input),
                    },
                );
            }
            self.runs(&step.apply);
        }
        undoing
    }

    /// Everything that pfctl prints of it, by way of the step that reads it.
    fn state(&self) -> String {
        let steps = self.steps(Some(stateless()), None);
        let step = steps.iter().find(|step| step.what == "pf").unwrap();
        self.runs(&step.read.as_ref().unwrap().program)
    }

    fn log(&self) -> String {
        self.host.read("log")
    }
}

fn stateless() -> RuleSet {
    RuleSet {
        table: Some(3),
        ..RuleSet::new(Firewall::Pf, Kind::Stateless)
    }
}

/// A user's rules with everything that stays behind.
fn users() -> RuleFile {
    let text = "set limit table-entries 500000\nset optimization aggressive\nset timeout udp.first 1\nset skip on igb1\n\
        table <x> persist { 192.0.2.9 }\nanchor \"guests/*\"\nblock all\npass from <x>\n";
    RuleFile::read(
        "own.rules",
        text,
        Some(Firewall::Pf),
        &BTreeMap::from([("igb1".into(), Meaning::In)]),
    )
    .unwrap()
}

const SYSTEMS: [System; 2] = [System::FreeBsd, System::OpenBsd];

#[test]
fn rules_with_lists_tables_options_and_anchors_come_back() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "back");
        pf.file("guests.conf", "pass in on igb1 from 10.9.0.0/16 to any\n");
        let guests = pf.host.state.join("guests.conf").display().to_string();
        pf.does(&["pfctl", "-a", "guests/one", "-f", &guests]);
        // Somebody has added an address meanwhile.
        let table = pf.host.state.join("pf.tables/bad");
        fs::write(&table, "192.0.2.1\n192.0.2.2\n192.0.2.77\n").unwrap();
        let rules = pf.host.read("pf.rules");
        assert!(rules.contains("<__automatic_"), "{rules}");
        let state = pf.state();
        let none = if system == System::OpenBsd {
            pf.steps(None, None)
        } else {
            Vec::new()
        };
        for steps in [
            pf.steps(Some(stateless()), None),
            none,
            pf.steps(None, Some(users())),
        ] {
            let undoing = pf.make(&steps);
            undoing.iter().for_each(|program| drop(pf.runs(program)));
            assert_eq!(pf.state(), state, "{system}: {}", pf.log());
        }
        assert!(state.contains("address\t\tbad\t192.0.2.77"), "{state}");
        assert!(
            state.contains("rule\tguests/one\tpass in on igb1"),
            "{state}"
        );
        // No rule names a table that is not there.
        let rules = pf.host.read("pf.rules");
        let named = rules
            .split(['<', '>'])
            .find(|word| word.starts_with("__automatic_"))
            .unwrap();
        assert_eq!(
            pf.host.read(&format!("pf.tables/{named}")).lines().count(),
            7
        );
    }
}

#[test]
fn rules_that_somebody_loaded_by_hand_come_back_if_they_can_be_loaded() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "by-hand");
        let other = OWN
            .replace("block return all", "block drop all")
            .replace("include \"MORE\"\n", MORE);
        let other = pf.file("other.conf", &other);
        pf.does(&["pfctl", "-f", &other]);
        let state = pf.state();
        assert!(state.starts_with("on\nprinted\n"), "{state}");
        let undoing = pf.make(&pf.steps(Some(stateless()), None));
        undoing.iter().for_each(|program| drop(pf.runs(program)));
        assert_eq!(pf.state(), state, "{system}");
    }
}

#[test]
fn a_pf_whose_rules_could_not_be_put_back_is_not_touched() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "untouched");
        let rules = pf.host.read("pf.rules") + "garbage that pfctl prints and does not take\n";
        fs::write(pf.host.state.join("pf.rules"), &rules).unwrap();
        let steps = pf.steps(Some(stateless()), None);
        let read = steps
            .iter()
            .find(|step| step.what == "pf")
            .unwrap()
            .read
            .as_ref()
            .unwrap();
        let ended = pf.run(&read.program);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            !ended.status.success() && said.contains("could not be put back"),
            "{said}"
        );
        assert!(said.contains("Load that file"), "{said}");
        assert_eq!(
            (pf.host.read("pf.rules"), pf.log()),
            (rules, String::new()),
            "{system}"
        );
    }
}

#[test]
fn a_firewall_that_does_not_come_back_is_left_closed() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "closed");
        let undoing = pf.make(&pf.steps(Some(stateless()), None));
        // Somebody has changed the file meanwhile: into rules that let all pass, and into none that can be loaded.
        for (own, why) in [
            ("pass\n", "missing: rule "),
            ("garbage\n", "could not be loaded"),
        ] {
            pf.file("pf.conf", own);
            let back = undoing
                .iter()
                .find(|program| program.argv.contains(&"back".to_string()))
                .unwrap();
            let ended = pf.run(back);
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(
                !ended.status.success() && said.contains(why),
                "{system}: {said}"
            );
            assert!(
                said.contains("lets nothing pass but ssh from 10.0.0.1"),
                "{said}"
            );
            let rules = pf.host.read("pf.rules");
            assert!(
                rules.starts_with(
                    "block drop all\npass quick proto tcp from 10.0.0.1 to 10.0.0.2 port 22"
                ),
                "{rules}"
            );
            assert_eq!(rules.lines().count(), 3, "{rules}");
            assert_eq!(pf.host.read("pf"), "on\n");
        }
    }
}

#[test]
fn states_do_not_outlive_the_rules_that_made_them_and_ssh_s_stay() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "states");
        // No limit can be below the number of states that there are.
        let own = pf.host.state.join("pf.conf");
        let text = fs::read_to_string(&own)
            .unwrap()
            .replace("states 300000", "states 2");
        fs::write(&own, text).unwrap();
        fs::write(pf.host.state.join("pf.states"), "").unwrap();
        pf.does(&["pfctl", "-f", own.to_str().unwrap()]);
        fs::write(pf.host.state.join("pf.states"), STATES).unwrap();
        let undoing = pf.make(&pf.steps(Some(stateless()), None));
        assert_eq!(pf.host.read("pf.states"), "10.0.0.1 10.0.0.2\n", "{system}");
        fs::write(pf.host.state.join("pf.states"), STATES).unwrap();
        undoing.iter().for_each(|program| drop(pf.runs(program)));
        assert_eq!(pf.host.read("pf.states"), "10.0.0.1 10.0.0.2\n", "{system}");
    }
}

#[test]
fn pf_is_turned_on_under_rules_that_give_ssh_a_new_state() {
    let pf = Pf::new(System::OpenBsd, "turned-on");
    let undoing = pf.make(&pf.steps(None, None));
    assert_eq!(pf.host.read("pf"), "off\n");
    undoing.iter().for_each(|program| drop(pf.runs(program)));
    let log = pf.log();
    let at = |what: &str| {
        log.lines()
            .position(|line| line == what)
            .unwrap_or_else(|| panic!("{what}: {log}"))
    };
    assert!(
        at("pfctl -q -k 10.0.0.1 -k 10.0.0.2") < at("pfctl -q -e"),
        "{log}"
    );
    assert_eq!(pf.host.read("pf"), "on\n");
    assert!(pf.host.read("pf.states").contains("10.0.0.1 10.0.0.2"));
}

#[test]
fn a_user_s_rules_pass_linerate_s_ssh_before_all_others() {
    for system in SYSTEMS {
        let pf = Pf::new(system, "users");
        let steps = pf.steps(None, Some(users()));
        assert!(
            steps
                .iter()
                .any(|step| step.what.contains("pass linerate's ssh")),
            "{steps:?}"
        );
        pf.make(&steps);
        let rules = pf.host.read("pf.rules");
        let first =
            "pass quick proto tcp from 10.0.0.1 to 10.0.0.2 port 22 flags any keep state (sloppy)";
        assert!(rules.starts_with(first), "{rules}");
        assert!(rules.contains("\nblock all\n"), "{rules}");
    }
}
