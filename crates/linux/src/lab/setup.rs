//! The DUT of a lane: the settings of a plan, in the words of the embedded lab. Plans are checked where they are read; here, names that
//! become paths are checked when they are used.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use crate::error::Error;
use crate::host::changes::Change;
use crate::process::{Input, Job};
use linerate_measure::experiment::System;
use linerate_plan::BuiltIn;
use linerate_plan::placeholders::fill;
use linerate_plan::rules::RuleSet;
use linerate_plan::rules::own::LabEnd;
use linerate_plan::settings::{CardSetting, Command, Dut, Event, File, Settings};
use linerate_wire::Family;
use std::time::Duration;

/// How long a command of a plan may take that does not say.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);
/// How long loading a rule set may take: some tools are slow with many rules, and ten million entries are many for any.
const LOAD_WITHIN: Duration = Duration::from_secs(300);

/// A DUT. Other settings stay as the kernel makes them, except for those that keep a lab quiet (docs/packet-io.md).
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Name in messages, records and the ledger.
    pub name: String,
    /// The settings, with the names of this lane's interfaces. Sysctls of a namespace are set in the DUT's; the others are the
    /// host's, and need consent. Files are below the DUT's scratch folder, in which commands run.
    pub settings: Settings,
    /// IP versions for which routes and neighbours are generated.
    pub families: Vec<Family>,
    /// The programs that load the rule set, in this order.
    pub rules: Vec<Job>,
    /// Number in the lab.
    pub lane: usize,
    /// Whether the rules make the kernel keep a state for each flow.
    pub tracks: bool,
    /// Connections that must find room in the state table; as many as the lab has flows where none are named.
    pub room: Option<u64>,
    /// Settings of the whole host.
    pub host: Vec<Change>,
}

impl From<&BuiltIn> for Setup {
    fn from(variant: &BuiltIn) -> Setup {
        let setup = Setup::from_settings(
            &variant.name,
            0,
            &variant.settings,
            &[Family::V4, Family::V6],
        );
        setup.unwrap_or_else(|fault| unreachable!("{} is sound: {fault}", variant.name))
    }
}

impl Setup {
    /// A DUT of this kind with nothing set.
    pub fn of(dut: Dut) -> Setup {
        Setup {
            name: dut.to_string(),
            settings: Settings {
                dut,
                ..Settings::default()
            },
            families: vec![Family::V4, Family::V6],
            ..Setup::default()
        }
    }

    /// The setup of a plan's settings, as lane number `lane` of a lab. `families`: the IP versions of the lane's traffic, for which
    /// tables are filled and rules are written.
    ///
    /// # Errors
    /// A rule set that cannot be.
    pub fn from_settings(
        name: &str,
        lane: usize,
        settings: &Settings,
        families: &[Family],
    ) -> Result<Setup, String> {
        let [inside, outside] = interface_names(lane);
        let named = |text: &String| fill(text, &inside, &outside);
        let command = |c: &Command| Command {
            run: named(&c.run),
            undo: c.undo.as_ref().map(named),
            ..c.clone()
        };
        // Rules for other IP versions would stand in the way of each frame.
        let rules = settings.rules.as_ref().map(|rules| {
            let ends = rules.flow_table.then_some([inside.as_str(), &outside]);
            rules.for_frames(System::Linux, families, ends)
        });
        if let Some(fault) = rules.iter().flat_map(RuleSet::faults).next() {
            return Err(fault.to_string());
        }
        let mut setup = Setup {
            name: name.to_owned(),
            families: families.to_vec(),
            rules: rules.as_ref().map(jobs).unwrap_or_default(),
            lane,
            tracks: settings.tracks(),
            room: rules.as_ref().and_then(|r| r.states),
            host: rules.as_ref().map(host_changes).unwrap_or_default(),
            settings: Settings {
                sysctls: settings
                    .sysctls
                    .iter()
                    .map(|(key, value)| (named(key), named(value)))
                    .collect(),
                files: settings
                    .files
                    .iter()
                    .map(|f| File {
                        path: named(&f.path),
                        text: named(&f.text),
                    })
                    .collect(),
                commands: settings.commands.iter().map(command).collect(),
                event: settings.event.as_ref().map(|event| Event {
                    run: event.run.as_ref().map(named),
                    undo: event.undo.as_ref().map(named),
                    ..event.clone()
                }),
                ..settings.clone()
            },
        };
        if let Some(file) = &settings.rule_file {
            let (program, arguments) = file.program();
            let load = Job::new(program, arguments).reading(&file.file, file.mapped(&setup.ends()));
            setup.rules = vec![load.within(LOAD_WITHIN)];
        }
        Ok(setup)
    }

    /// The ends of its DUT, as a user's own rules name them.
    pub(super) fn ends(&self) -> [LabEnd; 2] {
        let [inside, outside] = interface_names(self.lane);
        [end(inside, &GENERATOR_SIDE), end(outside, &RECEIVER_SIDE)]
    }

    /// Whether the DUT is an eBPF program, which ends with this process.
    pub fn is_program(&self) -> bool {
        self.settings.dut == Dut::Xdp || self.settings.dut.is_known() || self.needs_pass()
    }

    /// Whether a program that passes everything keeps the inside interface polled: a veth has NAPI with GRO or a program, so where
    /// GRO itself is the question, both answers get the program.
    pub(super) fn needs_pass(&self) -> bool {
        let dut = self.settings.dut;
        let elsewhere = matches!(dut, Dut::KnownDuplication(_)) || dut.loses_of_server();
        let has_its_own = dut == Dut::Xdp || dut.is_known() && !elsewhere;
        self.settings.inside.set.contains_key(&CardSetting::Gro) && !has_its_own
    }

    /// Whether two setups differ in nothing but rules and the namespace's sysctls, which a standing lane can exchange.
    pub fn differs_only_in_rules(&self, other: &Setup) -> bool {
        let rest = |s: &Setup| Settings {
            sysctls: Default::default(),
            rules: None,
            rule_file: None,
            states: Default::default(),
            ..s.settings.clone()
        };
        rest(self) == rest(other) && self.families == other.families && self.host == other.host
    }

    /// Sysctls of the setup, of namespaces and of the host.
    pub(super) fn sysctls(&self) -> Result<Vec<Change>, Error> {
        self.settings
            .sysctls
            .iter()
            .map(|(key, value)| Change::sysctl(key, value))
            .collect()
    }

    /// Settings of the host that the setup implies or names. How much room the states need is known once the rules are loaded.
    pub(super) fn host_changes(&self) -> Result<Vec<Change>, Error> {
        let flows = self
            .settings
            .inside
            .rfs
            .max(self.settings.outside.rfs)
            .filter(|flows| *flows > 0);
        // Without the host's table of flows, a queue's is not looked at (Documentation/networking/scaling.rst).
        let table =
            flows.map(|flows| Change::sysctl("net.core.rps_sock_flow_entries", &flows.to_string()));
        let table = table.transpose()?.map(Change::or_more);
        Ok(self.host.iter().cloned().chain(table).collect())
    }
}

fn end(interface: String, sides: &[Side; 2]) -> LabEnd {
    LabEnd {
        interface,
        networks: sides
            .iter()
            .map(|side| format!("{}/{}", side.network.0, side.network.1))
            .collect(),
        addresses: sides.iter().map(|side| side.dut.0.to_string()).collect(),
    }
}

/// Names of the forwarding interfaces in lane number `lane`: towards the generator and towards the receiver. Rule sets and
/// sysctls can refer to them.
pub fn interface_names(lane: usize) -> [String; 2] {
    [format!("in{lane}"), format!("out{lane}")]
}

/// The programs that load a rule set; its text is written while they read it.
fn jobs(set: &RuleSet) -> Vec<Job> {
    let job = |load: linerate_plan::rules::Load| {
        let set = set.clone();
        let text = Input::writer(move |mut out| set.write_part(load.part, &[], &mut out));
        Job::new(load.program, load.arguments)
            .with_input(text)
            .within(LOAD_WITHIN)
    };
    set.loads().into_iter().map(job).collect()
}

/// A line of a plan for the shell, with the time that its command gives it.
pub(super) fn shell(command: &Command, line: &str) -> Job {
    let within = command
        .within_ns
        .map_or(COMMAND_WITHIN, Duration::from_nanos);
    Job::new("sh", &["-c", line]).within(within)
}

/// Room for the states, as a minimum, and the hash as it is sized.
fn host_changes(set: &RuleSet) -> Vec<Change> {
    let change = |(name, value): (String, String)| {
        let change = Change::sysctl(&name, &value).ok()?;
        Some(if name.ends_with("_max") {
            change.or_more()
        } else {
            change
        })
    };
    set.sysctls().into_iter().filter_map(change).collect()
}

#[cfg(test)]
pub(super) mod tests;
