//! The hosts of a configuration: who is reached where, with which interfaces, addresses and tools. Each variable that is read is
//! noted as carried over or not.

use super::notes::Notes;
use super::router;
use super::sets::Set;
use super::traffic::{self, SENDERS};
use super::values::Values;
use linerate_hosts::pktgen::Command;
use linerate_plan::backend::{Backend, Runs};
use linerate_plan::lab::{
    Host, HostAddress, Interface, OperatingSystem, Reach, Role, Ssh, is_interface,
};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;

/// `REBOOT_TIMEOUT` counts the script's looks, which are 5 s apart, after 20 s.
const LOOK_NS: u64 = 5_000_000_000;
/// A lab file's bounds.
const LONGEST_BOOT_NS: u64 = 86_400_000_000_000;

/// Makes hosts. `set` is the configuration of the DUT that is taken for the usual one.
pub(super) fn hosts(values: &Values, set: Option<&Set>, notes: &mut Notes) -> Vec<Host> {
    let mut reader = Reader { values, notes };
    let mut hosts = vec![dut(&mut reader, set)];
    hosts.extend(testers(&mut reader));
    hosts.extend(reference(&mut reader));
    if let Some(set) = set {
        router::complete(
            &mut hosts,
            &set.router,
            set.reference.as_ref(),
            reader.values,
            reader.notes,
        );
    }
    boot(&mut hosts, &mut reader);
    for name in [
        "NO_REBOOT",
        "BENCH_ITER",
        "PKT_TO_SEND",
        "AF",
        "RECEIVER_STOP_CMD",
        "SENDER_STOP_CMD",
    ] {
        reader.notes.used(name);
    }
    hosts
}

fn host(name: &str, role: Role, ssh: Ssh) -> Host {
    Host {
        name: name.into(),
        roles: vec![role],
        reach: Reach::Ssh(ssh),
        ..Host::default()
    }
}

/// Files are put on the DUT by root, as the script does it.
fn as_root(mut ssh: Ssh) -> Ssh {
    ssh.user.get_or_insert_with(|| "root".into());
    ssh
}

fn dut(reader: &mut Reader<'_>, set: Option<&Set>) -> Host {
    let ssh = reader.ssh("DUT_ADMIN", "hosts.dut.ssh");
    let mut dut = host("dut", Role::Dut, as_root(ssh));
    let mut mac = |side: &str, to: &str| {
        reader.typed(
            &[&format!("DUT_LAB_IF_MAC_{side}_SIDE")],
            "Ethernet address",
            to,
        )
    };
    let (inside, outside) = (
        mac("SENDER", "hosts.dut.in.mac"),
        mac("RECEIVER", "hosts.dut.out.mac"),
    );
    let sender = reader.command(SENDERS[0]);
    let option = |option: char| sender.as_ref()?.option(option)?.parse().ok();
    let inside = inside.or_else(|| option('D')).or_else(|| option('d'));
    dut.inside = Some(Interface {
        mac: inside,
        ..Interface::default()
    });
    dut.outside = Some(Interface {
        mac: outside,
        ..Interface::default()
    });
    dut.system = set.filter(|set| set.bsdrp).map(|_| OperatingSystem::Bsdrp);
    dut
}

/// Generators and the receiver; one host where both are reached at the same place.
fn testers(reader: &mut Reader<'_>) -> Vec<Host> {
    let same = reader.values.known("SENDER_ADMIN") == reader.values.known("RECEIVER_ADMIN");
    let (generator, receiver) = if same {
        ("tester", "tester")
    } else {
        ("generator", "receiver")
    };
    let mut first = tester(reader, generator, "SENDER_ADMIN", "SENDER");
    let mut second = receiving(reader, receiver);
    let mut hosts = if same {
        reader.notes.used("RECEIVER_ADMIN");
        first.roles.push(Role::Receiver);
        first.receive = second.receive;
        first.tool = first.tool.or(second.tool);
        first.sudo |= second.sudo;
        vec![first]
    } else {
        let ssh = reader.ssh("RECEIVER_ADMIN", &format!("hosts.{receiver}.ssh"));
        second.reach = Reach::Ssh(if second.sudo { ssh } else { as_root(ssh) });
        vec![first, second]
    };
    if reader.values.known("SENDER_ADMIN_2").is_some() {
        let more = tester(reader, "generator2", "SENDER_ADMIN_2", "SENDER_2");
        // One host that is named twice is one host.
        match hosts
            .iter_mut()
            .find(|h| h.reach == more.reach && h.roles.contains(&Role::Generator))
        {
            Some(host) => host.send.extend(more.send),
            None => hosts.push(more),
        }
    }
    for host in &mut hosts {
        // Two commands on one interface are one interface.
        let mut seen = BTreeSet::new();
        host.send
            .retain(|interface| interface.name.is_none() || seen.insert(interface.name.clone()));
    }
    hosts
}

/// A generator, with an interface for each of its commands. Variables of the first host begin with SENDER, and of the second with
/// SENDER_2; those of a second command end in _2.
fn tester(reader: &mut Reader<'_>, name: &str, admin: &str, stem: &str) -> Host {
    let ssh = reader.ssh(admin, &format!("hosts.{name}.ssh"));
    let mut made = host(name, Role::Generator, ssh.clone());
    for number in ["", "_2"] {
        let variable = format!("{stem}_START_CMD{number}");
        let command = reader.command(&variable);
        if let Some(command) = &command {
            reader.program(
                &variable,
                command,
                &mut made,
                &format!("hosts.{name}.send, and traffic"),
            );
        } else if !number.is_empty() {
            continue;
        }
        made.send.push(sending(
            reader,
            name,
            [stem, number],
            command.as_ref(),
            &variable,
        ));
    }
    if !made.sudo {
        made.reach = Reach::Ssh(as_root(ssh));
    }
    made
}

fn sending(
    reader: &mut Reader<'_>,
    host: &str,
    [stem, number]: [&str; 2],
    command: Option<&Command>,
    variable: &str,
) -> Interface {
    let of = |what: &str| format!("{stem}_{what}{number}");
    let place = format!("hosts.{host}.send");
    let macs = [
        of("LAB_IF_MAC"),
        of("LAB_MAC"),
        of("MAC"),
        format!("PKTGEN_IF_MAC_{stem}{number}"),
    ];
    let interface = reader.end(&place, &of("LAB_IF"), &macs, &of("LAB_IP"));
    let option = |option: char| command.and_then(|c| c.option(option));
    let used = option('i')
        .or(option('t'))
        .map(plain)
        .filter(|name| is_interface(name));
    let threads = option('p')
        .and_then(|n| n.parse().ok())
        .filter(|n| (1..=256).contains(n));
    if let (Some(value), Some(_)) = (reader.values.get(variable), threads) {
        reader
            .notes
            .carry_value(variable, value, &format!("{place}.threads"));
    }
    let by_command = command
        .filter(|c| c.program().ends_with("pkt-gen"))
        .and_then(|c| c.option('S'));
    Interface {
        name: used.or(interface.name),
        mac: by_command
            .and_then(|mac| mac.parse().ok())
            .or(interface.mac),
        netmap: command.filter(|c| is_netmap(c)).map(|_| true),
        threads,
        ..interface
    }
}

/// The receiver, but for its ssh destination.
fn receiving(reader: &mut Reader<'_>, name: &str) -> Host {
    let place = format!("hosts.{name}.receive");
    let mut made = Host {
        name: name.into(),
        roles: vec![Role::Receiver],
        ..Host::default()
    };
    let command = reader.command("RECEIVER_START_CMD");
    match &command {
        Some(command) => reader.program("RECEIVER_START_CMD", command, &mut made, &place),
        None => reader.notes.used("RECEIVER_START_CMD"),
    }
    let macs = [
        "RECEIVER_LAB_IF_MAC",
        "RECEIVER_LAB_MAC",
        "RECEIVER_MAC",
        "PKTGEN_IF_MAC_RECEIVER",
    ];
    let interface = reader.end(&place, "RECEIVER_LAB_IF", &macs, "RECEIVER_LAB_IP");
    let sender = reader
        .command(SENDERS[0])
        .filter(|c| c.program().ends_with("equilibrium"));
    let used = command
        .as_ref()
        .and_then(|c| c.option('i'))
        .or(sender.as_ref().and_then(|c| c.option('r')));
    let used = used.map(plain).filter(|name| is_interface(name));
    let netmap = command.iter().chain(&sender).any(is_netmap).then_some(true);
    made.receive = Some(Interface {
        name: used.or(interface.name),
        netmap,
        ..interface
    });
    made
}

fn reference(reader: &mut Reader<'_>) -> Option<Host> {
    reader.values.known("REF_ADMIN")?;
    let ssh = reader.ssh("REF_ADMIN", "hosts.reference.ssh");
    let mut reference = host("reference", Role::Reference, as_root(ssh));
    reference.inside = Some(Interface::default());
    reference.outside = Some(Interface::default());
    Some(reference)
}

/// The return of the DUT after a boot: the script's timeout, and the addresses that it must reach.
fn boot(hosts: &mut [Host], reader: &mut Reader<'_>) {
    let looks: Option<u64> = reader.typed(
        &["REBOOT_TIMEOUT"],
        "number of looks, 5 s apart",
        "hosts.dut.boot.timeout",
    );
    let target = reader
        .values
        .known("IS_DUT_ONLINE_TARGET")
        .and_then(|target| target.parse::<Ssh>().ok());
    let from = target.and_then(|target| {
        hosts
            .iter()
            .position(|h| h.reach.ssh().is_some_and(|ssh| ssh.host == target.host))
    });
    let from = from.filter(|at| *at > 0).map(|at| hosts[at].name.clone());
    let reaches = reader.pings("IS_DUT_ONLINE_CMD");
    reader.notes.used("IS_DUT_ONLINE_TARGET");
    // A neighbour of the DUT that is neither generator nor receiver is the reference.
    router::pinged(hosts, &reaches);
    let boot = &mut hosts[0].boot;
    if let Some(looks) = looks {
        boot.timeout_ns = looks
            .saturating_mul(LOOK_NS)
            .clamp(1_000_000_000, LONGEST_BOOT_NS);
    }
    boot.from = from.filter(|_| !reaches.is_empty());
    boot.reaches = reaches;
}

/// Why a variable is not carried over.
pub(super) fn why_not(name: &str) -> &'static str {
    match name {
        "PMC_EVENT" => {
            "linerate's profiles (collect.profile, --profile) sample an event that it chooses"
        }
        "PMC_DURATION" | "PMC" => {
            "the script profiles with -P or PMC=true only: set collect.profile, or run with --profile"
        }
        "BEFORE_CMD" => {
            "it runs on the DUT before each trial; write it as a variant's command with its undo, which runs at each set-up of the variant"
        }
        "DURING_IF" => "collect.during names the interfaces itself, as {in} and {out}",
        "SSH_CMD" => "the system's ssh client is used, with its own configuration",
        "MAIL" | "RESULTS_DIR" => "it is about the script's report",
        "IMAGES_DIR" | "CONFIG_SET_DIR" | "PKTGEN_DIR" => "name it on the command line",
        _ if traffic::SENDERS.contains(&name) => "it is not understood",
        _ => "a lab and a plan have nothing like it",
    }
}

/// Reads variables by their types.
struct Reader<'a> {
    values: &'a Values,
    notes: &'a mut Notes,
}

impl Reader<'_> {
    /// The first of some variables that is known and not empty, read as a type.
    fn typed<T: FromStr>(&mut self, names: &[impl AsRef<str>], what: &str, to: &str) -> Option<T> {
        self.read(names, what, to, |text| text.parse().ok())
    }

    fn read<T>(
        &mut self,
        names: &[impl AsRef<str>],
        what: &str,
        to: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let name = names
            .iter()
            .map(AsRef::as_ref)
            .find(|name| self.values.known(name).is_some())?;
        let (text, value) = (self.values.known(name)?, self.values.get(name)?);
        let found = read(text);
        if found.is_some() {
            self.notes.carry_value(name, value, to);
        } else {
            self.notes.used(name);
            self.notes
                .left_value(value, format!("{name}: '{text}' is not a valid {what}"));
        }
        found
    }

    /// The destination of ssh for a host; an impossible one if it is unknown: a note says so, and the lab file shows the gap.
    fn ssh(&mut self, name: &str, to: &str) -> Ssh {
        let nobody = || Ssh {
            user: None,
            host: "unknown".into(),
            port: None,
        };
        self.typed(&[name], "destination of ssh", to)
            .unwrap_or_else(nobody)
    }

    /// An interface of a tester: name, Ethernet address, and one IP address at most.
    fn end(
        &mut self,
        place: &str,
        name: &str,
        macs: &[impl AsRef<str>],
        address: &str,
    ) -> Interface {
        let of_interface = |text: &str| Some(plain(text)).filter(|name| is_interface(name));
        let name = self.read(
            &[name],
            "interface name",
            &format!("{place}.name"),
            of_interface,
        );
        let mac = self.typed(macs, "Ethernet address", &format!("{place}.mac"));
        let address: Option<IpAddr> =
            self.typed(&[address], "IP address", &format!("{place}.addresses"));
        let addresses = address
            .map(|address| HostAddress {
                address,
                length: None,
            })
            .into_iter()
            .collect();
        Interface {
            name,
            mac,
            addresses,
            ..Interface::default()
        }
    }

    /// The command in a variable.
    fn command(&mut self, name: &str) -> Option<Command> {
        traffic::command(self.values, name)
    }

    /// The program of a command: the host's tool, and sudo.
    fn program(&mut self, variable: &str, command: &Command, host: &mut Host, to: &str) {
        let program = command.program().rsplit('/').next().unwrap_or_default();
        let tool = match program {
            // equilibrium runs pkt-gen itself.
            "equilibrium" => Some(Backend::PktGen),
            other => other
                .parse()
                .ok()
                .filter(|tool: &Backend| tool.capabilities().runs != Runs::Memory),
        };
        let Some(value) = self.values.get(variable) else {
            return;
        };
        match tool {
            Some(tool) => {
                host.tool = host.tool.or(Some(tool));
                host.sudo |= command.sudo;
                self.notes.carry_value(variable, value, to);
            }
            None => {
                self.notes.used(variable);
                self.notes.left_value(
                    value,
                    format!("{variable}: linerate cannot drive '{program}'"),
                );
            }
        }
        for option in traffic::other_options(command) {
            self.notes
                .left_value(value, format!("{variable}: pkt-gen's {option}"));
        }
    }

    /// `ping -c 2 A && ping -c 2 B`: the hosts that must answer. Anything else is reported.
    fn pings(&mut self, name: &str) -> Vec<IpAddr> {
        let (Some(text), Some(value)) = (self.values.known(name), self.values.get(name)) else {
            return Vec::new();
        };
        self.notes.used(name);
        let mut reaches = Vec::new();
        for part in text.split("&&").map(str::trim) {
            match pinged(part) {
                Some(address) if !reaches.contains(&address) => reaches.push(address),
                Some(_) => {}
                None => self
                    .notes
                    .left_value(value, format!("{name}: it also asks for '{part}'")),
            }
        }
        reaches.truncate(100);
        if !reaches.is_empty() {
            self.notes
                .carry_value(name, value, "hosts.dut.boot.reaches");
        }
        reaches
    }
}

/// An interface's name without `netmap:` and the signs behind it.
fn plain(text: &str) -> String {
    let text = text.trim().strip_prefix("netmap:").unwrap_or(text.trim());
    text.trim_end_matches(['^', '+']).to_string()
}

/// Whether a command opens interfaces with netmap.
fn is_netmap(command: &Command) -> bool {
    ["pkt-gen", "equilibrium"]
        .iter()
        .any(|name| command.program().ends_with(name))
}

/// The address of a single ping.
fn pinged(command: &str) -> Option<IpAddr> {
    let mut words = command.split_whitespace().peekable();
    words
        .next()
        .filter(|w| matches!(*w, "ping" | "ping6" | "/sbin/ping" | "/sbin/ping6"))?;
    let mut address = None;
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("c" | "t" | "i" | "W" | "s" | "w") => {
                words.next()?;
            }
            Some("q" | "n" | "6" | "4") => {}
            Some(_) => return None,
            None if address.is_none() => address = Some(word.parse().ok()?),
            None => return None,
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pings_are_taken_for_pings() {
        let address = |text: &str| pinged(text).map(|a| a.to_string());
        assert_eq!(
            address("ping -c 2 198.19.0.203").as_deref(),
            Some("198.19.0.203")
        );
        assert_eq!(
            address("ping6 -c 2 2001:2::203").as_deref(),
            Some("2001:2::203")
        );
        for other in [
            "/data/reqroutes 816800",
            "ping -c 2 host",
            "ping 198.18.0.1; reboot",
            "ping -S 1.1.1.1 2.2.2.2",
            "",
        ] {
            assert_eq!(address(other), None, "{other}");
        }
        assert_eq!(
            (plain("netmap:ix0^"), plain("vcxl0")),
            ("ix0".into(), "vcxl0".into())
        );
    }
}
