//! The hosts of a configuration: who is reached where, with which interfaces, addresses and tools.

mod reader;
mod router;

use super::notes::Notes;
use super::sets::Set;
use super::shell::Values;
use super::traffic::{self, SENDERS};
use linerate_hosts::pktgen::Command;
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Interface, OperatingSystem, Role, Ssh};
use reader::Reader;

/// `REBOOT_TIMEOUT` counts the script's looks, which are 5 s apart, after 20 s.
const LOOK_NS: u64 = 5_000_000_000;
/// A lab file's bounds.
const LONGEST_BOOT_NS: u64 = 86_400_000_000_000;

/// The lab of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Testbed {
    /// The hosts.
    pub(super) hosts: Vec<Host>,
    /// Whether the DUT is rebooted before each trial.
    pub(super) reboots: bool,
}

/// Makes hosts. `set` is the configuration of the DUT that is taken for the usual one.
pub(super) fn testbed(values: &Values, set: Option<&Set>, notes: &mut Notes) -> Testbed {
    let mut reader = Reader { values, notes };
    let mut hosts = vec![dut(&mut reader, set)];
    hosts.extend(testers(&mut reader));
    hosts.extend(reference(&mut reader));
    if let Some(set) = set {
        router::complete(&mut hosts, set, &mut reader);
    }
    boot(&mut hosts, &mut reader);
    let reboots = reader.values.known("NO_REBOOT").is_none_or(|v| v == "0");
    for name in ["NO_REBOOT", "BENCH_ITER", "AF", "RECEIVER_STOP_CMD", "SENDER_STOP_CMD"] {
        reader.notes.used(name);
    }
    Testbed { hosts, reboots }
}

fn host(name: &str, roles: &[Role], ssh: Ssh) -> Host {
    Host { name: name.into(), roles: roles.to_vec(), ssh, ..Host::default() }
}

/// Files are put on the DUT by root, as the script does it.
fn as_root(mut ssh: Ssh) -> Ssh {
    ssh.user.get_or_insert_with(|| "root".into());
    ssh
}

fn dut(reader: &mut Reader<'_>, set: Option<&Set>) -> Host {
    let ssh = reader.ssh("DUT_ADMIN", "hosts.dut.ssh");
    let mut dut = host("dut", &[Role::Dut], as_root(ssh));
    let mac = |reader: &mut Reader<'_>, side: &str, to: &str| {
        reader.typed(&[&format!("DUT_LAB_IF_MAC_{side}_SIDE")], "Ethernet address", to)
    };
    let inside_mac = mac(reader, "SENDER", "hosts.dut.in.mac")
        .or_else(|| reader.option(SENDERS[0], 'D').or_else(|| reader.option(SENDERS[0], 'd')));
    dut.inside = Some(Interface { mac: inside_mac, ..Interface::default() });
    let outside_mac = mac(reader, "RECEIVER", "hosts.dut.out.mac");
    dut.outside = Some(Interface { mac: outside_mac, ..Interface::default() });
    dut.system = set.filter(|set| set.bsdrp).map(|_| OperatingSystem::Bsdrp);
    dut
}

/// Generators and the receiver; one host where both are reached at the same place.
fn testers(reader: &mut Reader<'_>) -> Vec<Host> {
    let same = reader.values.known("SENDER_ADMIN") == reader.values.known("RECEIVER_ADMIN");
    let (generator, receiver) = if same { ("tester", "tester") } else { ("generator", "receiver") };
    let mut first = tester(reader, generator, "", [SENDERS[0], SENDERS[1]]);
    let end = receiving(reader, receiver);
    let mut hosts = Vec::new();
    if same {
        first.roles.push(Role::Receiver);
        first.receive = Some(end.interface);
        first.tool = first.tool.or(end.tool);
        first.sudo |= end.sudo;
        reader.notes.used("RECEIVER_ADMIN");
        hosts.push(first);
    } else {
        let ssh = reader.ssh("RECEIVER_ADMIN", &format!("hosts.{receiver}.ssh"));
        let mut second = host(receiver, &[Role::Receiver], if end.sudo { ssh } else { as_root(ssh) });
        second.receive = Some(end.interface);
        second.tool = end.tool;
        second.sudo = end.sudo;
        hosts.extend([first, second]);
    }
    if reader.values.known("SENDER_ADMIN_2").is_some() {
        let more = tester(reader, "generator2", "_2", [SENDERS[2], SENDERS[3]]);
        // One host that is named twice is one host.
        match hosts.iter_mut().find(|h| h.ssh == more.ssh && h.roles.contains(&Role::Generator)) {
            Some(host) => host.send.extend(more.send),
            None => hosts.push(more),
        }
    }
    for host in &mut hosts {
        distinct(host);
    }
    hosts
}

/// A generator, with an interface for each of its commands.
fn tester(reader: &mut Reader<'_>, name: &str, suffix: &str, commands: [&'static str; 2]) -> Host {
    let ssh = reader.ssh(&format!("SENDER_ADMIN{suffix}"), &format!("hosts.{name}.ssh"));
    let mut made = host(name, &[Role::Generator], ssh);
    for (at, variable) in commands.into_iter().enumerate() {
        // SENDER_LAB_IF and SENDER_LAB_IF_2 of the first host, SENDER_2_LAB_IF and SENDER_2_LAB_IF_2 of the second.
        let stem = if suffix.is_empty() { "SENDER" } else { "SENDER_2" };
        let number = if at == 0 { "" } else { "_2" };
        let command = reader.command(variable);
        if command.is_none() && at > 0 {
            continue;
        }
        if let Some(command) = &command {
            reader.program(variable, command, &mut made, &format!("hosts.{name}.send, and traffic"));
        }
        made.send.push(sending(reader, name, [stem, number], command.as_ref(), variable));
    }
    if !made.sudo {
        made.ssh = as_root(made.ssh);
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
    let interface = reader.interface(&[of("LAB_IF")], &format!("{place}.name"));
    let macs = [of("LAB_IF_MAC"), of("LAB_MAC"), of("MAC"), format!("PKTGEN_IF_MAC_{stem}{number}")];
    let mac = reader.typed(&macs, "Ethernet address", &format!("{place}.mac"));
    let addresses = reader.addresses(&of("LAB_IP"), &format!("{place}.addresses"));
    let used = command.and_then(|c| c.option('i').or(c.option('t'))).map(reader::plain);
    let threads = command.and_then(|c| c.option('p')?.parse().ok()).filter(|n| (1..=256).contains(n));
    let by_command =
        || command.filter(|c| c.program().ends_with("pkt-gen")).and_then(|c| c.option('S')?.parse().ok());
    if let (Some(value), Some(_)) = (reader.values.get(variable), threads) {
        reader.notes.carry_value(variable, value, &format!("{place}.threads"));
    }
    Interface {
        name: used.filter(|name| linerate_plan::lab::is_interface(name)).or(interface),
        mac: by_command().or(mac),
        addresses,
        netmap: command.filter(|c| reader::is_netmap(c)).map(|_| true),
        threads,
        ..Interface::default()
    }
}

/// The receiving end: its interface, tool, and whether sudo runs it.
struct Receiving {
    interface: Interface,
    tool: Option<Backend>,
    sudo: bool,
}

fn receiving(reader: &mut Reader<'_>, name: &str) -> Receiving {
    let place = format!("hosts.{name}.receive");
    let mut scratch = Host::default();
    let command = reader.command("RECEIVER_START_CMD");
    if let Some(command) = &command {
        reader.program("RECEIVER_START_CMD", command, &mut scratch, &place);
    } else {
        reader.notes.used("RECEIVER_START_CMD");
    }
    let interface = reader.interface(&["RECEIVER_LAB_IF".into()], &format!("{place}.name"));
    let macs = ["RECEIVER_LAB_IF_MAC", "RECEIVER_LAB_MAC", "RECEIVER_MAC", "PKTGEN_IF_MAC_RECEIVER"];
    let mac = reader.typed(&macs, "Ethernet address", &format!("{place}.mac"));
    let addresses = reader.addresses("RECEIVER_LAB_IP", &format!("{place}.addresses"));
    let sender = reader.command(SENDERS[0]).filter(|c| c.program().ends_with("equilibrium"));
    let used = command.as_ref().and_then(|c| c.option('i')).or(sender.as_ref().and_then(|c| c.option('r')));
    let used = used.map(reader::plain).filter(|name| linerate_plan::lab::is_interface(name));
    let netmap = command.iter().chain(&sender).any(reader::is_netmap).then_some(true);
    let interface = Interface { name: used.or(interface), mac, addresses, netmap, ..Interface::default() };
    Receiving { interface, tool: scratch.tool, sudo: scratch.sudo }
}

/// Two commands on one interface are one interface.
fn distinct(host: &mut Host) {
    let mut seen: Vec<Interface> = Vec::new();
    for interface in std::mem::take(&mut host.send) {
        if interface.name.is_none() || !seen.iter().any(|s| s.name == interface.name) {
            seen.push(interface);
        }
    }
    host.send = seen;
}

fn reference(reader: &mut Reader<'_>) -> Option<Host> {
    reader.values.known("REF_ADMIN")?;
    let ssh = reader.ssh("REF_ADMIN", "hosts.reference.ssh");
    let mut reference = host("reference", &[Role::Reference], as_root(ssh));
    reference.inside = Some(Interface::default());
    reference.outside = Some(Interface::default());
    Some(reference)
}

/// The return of the DUT after a boot: the script's timeout, and the addresses that it must reach.
fn boot(hosts: &mut [Host], reader: &mut Reader<'_>) {
    let looks: Option<u64> =
        reader.typed(&["REBOOT_TIMEOUT"], "number of looks, 5 s apart", "hosts.dut.boot.timeout");
    let target = reader.values.known("IS_DUT_ONLINE_TARGET").map(String::from);
    let from = target.and_then(|target| {
        let at = hosts.iter().position(|h| target.parse::<Ssh>().is_ok_and(|ssh| ssh.host == h.ssh.host))?;
        (at > 0).then(|| hosts[at].name.clone())
    });
    let reaches = reader.pings("IS_DUT_ONLINE_CMD");
    reader.notes.used("IS_DUT_ONLINE_TARGET");
    let Some(dut) = hosts.first_mut() else { return };
    if let Some(looks) = looks {
        dut.boot.timeout_ns = looks.saturating_mul(LOOK_NS).clamp(1_000_000_000, LONGEST_BOOT_NS);
    }
    dut.boot.from = from.filter(|_| !reaches.is_empty());
    // A neighbour of the DUT that is neither generator nor receiver is the reference.
    router::pinged(hosts, &reaches);
    hosts[0].boot.reaches = reaches;
}

/// Why a variable is not carried over.
pub(super) fn why_not(name: &str) -> &'static str {
    match name {
        "PMC_EVENT" | "PMC_DURATION" | "PMC" => "plans do not profile",
        "BEFORE_CMD" => {
            "it runs on the DUT before each trial; a variant's commands run once, before all of them"
        }
        "CUSTOM_CMD" => "it runs on the DUT during each trial; plans have no such command",
        "PKT_TO_SEND" => "a plan's trials have a length in time",
        "SSH_CMD" => "the system's ssh client is used, with its own configuration",
        "MAIL" | "RESULTS_DIR" => "it is about the script's report",
        "IMAGES_DIR" | "CONFIG_SET_DIR" | "PKTGEN_DIR" => "name it on the command line",
        _ if traffic::SENDERS.contains(&name) => "it is not understood",
        _ => "a lab and a plan have nothing like it",
    }
}
