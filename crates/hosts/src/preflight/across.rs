//! Tools that send by their system's own stack, iperf3 and netperf: they need two hosts, and routes from each to the other.

use super::{Port, Problems, Station, alike, is_link_local, ports, tool};
use crate::systems::{Facts, Interface, Kernel};
use linerate_plan::Backend;
use linerate_plan::lab::{Lab, Role};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Ways between generators and receiver that are asked for with [`crate::systems::Question::Way`], by the names of the hosts: their
/// interfaces' addresses must be known. Not more than 16 for a host.
pub fn ways(lab: &Lab, facts: &BTreeMap<String, Facts>) -> BTreeMap<String, Vec<IpAddr>> {
    let receiver = lab.receiver();
    let of = |host: &linerate_plan::lab::Host, key: &str| -> Vec<IpAddr> {
        let Some(facts) = facts.get(&host.name) else { return Vec::new() };
        let ports: Vec<Port<'_>> = ports(lab, host).into_iter().filter(|port| port.key == key).collect();
        ports.iter().filter_map(|port| port.found(facts).ok()).flat_map(addresses).take(16).collect()
    };
    let mut asked: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for generator in lab.generators().filter(|host| host.name != receiver.name) {
        asked.insert(generator.name.clone(), of(receiver, "receive"));
        let back = asked.entry(receiver.name.clone()).or_default();
        back.extend(of(generator, "send"));
        back.truncate(16);
    }
    asked.retain(|_, to| !to.is_empty());
    asked
}

/// Those of an interface that frames can be sent to.
pub(super) fn addresses(interface: &Interface) -> impl Iterator<Item = IpAddr> + '_ {
    interface.addresses.iter().map(|a| a.address).filter(|a| !is_link_local(*a))
}

pub(super) fn check(lab: &Lab, stations: &[Station<'_>], problems: &mut Problems) {
    let Some(receiver) = stations.iter().find(|s| s.host.roles.contains(&Role::Receiver)) else { return };
    for generator in stations.iter().filter(|s| s.host.roles.contains(&Role::Generator)) {
        let tool = tool(generator.host, generator.facts);
        let Some(tool) = tool.filter(|tool| tool.uses_host_stack()) else { continue };
        if generator.host.name == receiver.host.name {
            problems.fault(
                generator.host,
                format!("{} would not send over the cables", tool.name()),
                "generator and receiver are one host, whose system sends nothing to itself over cables",
                "let linerate or pkt-gen send, or give each a host",
            );
            continue;
        }
        let theirs = super::tool(receiver.host, receiver.facts);
        if theirs != Some(tool) {
            let evidence = format!("{} uses {}", receiver.host.name, theirs.map_or("nothing", Backend::name));
            let remedy = format!("write tool = \"{}\" for both", tool.name());
            let what = format!("{} has no server to connect to", tool.name());
            problems.fault(generator.host, &what, &evidence, &remedy);
        }
        let needs = format!("{} sends by the system's routes", tool.name());
        route(lab, (generator, "send"), (receiver, "receive"), &needs, problems);
        route(lab, (receiver, "receive"), (generator, "send"), &needs, problems);
    }
}

/// Whether one host's system sends frames for the other's interface by its own of the lab. Ways that were not asked for are not
/// judged.
fn route(
    lab: &Lab,
    (from, key): (&Station<'_>, &str),
    (to, far): (&Station<'_>, &str),
    needs: &str,
    problems: &mut Problems,
) {
    let own = ports(lab, from.host);
    let names: Vec<&str> = own
        .iter()
        .filter(|port| port.key == key)
        .filter_map(|port| port.found(from.facts).ok())
        .map(|i| i.name.as_str())
        .collect();
    let theirs = ports(lab, to.host);
    let theirs = theirs.iter().filter(|port| port.key == far).filter_map(|port| port.found(to.facts).ok());
    for address in theirs.flat_map(addresses) {
        let Some(way) = from.facts.ways.get(&address) else { continue };
        let what = format!("it has no route to {address} of {} over the lab", to.host.name);
        let evidence = match way {
            Some(way) if names.contains(&way.interface.as_str()) => continue,
            Some(way) => {
                format!("{needs}, and its way there is by {}, not {}", way.interface, names.join(", "))
            }
            None => format!("{needs}, and it has no way there"),
        };
        problems.fault(from.host, &what, &evidence, add(lab, from, key, address));
    }
}

/// The command that makes the route: over the DUT's interface at the same cable.
fn add(lab: &Lab, from: &Station<'_>, key: &str, to: IpAddr) -> String {
    let dut = lab.dut();
    let near = dut.and_then(|dut| if key == "send" { dut.inside.as_ref() } else { dut.outside.as_ref() });
    let hop = near.and_then(|i| i.addresses.iter().map(|a| a.address).find(|a| alike(*a, to)));
    let hop = hop.map_or("NEIGHBOUR".to_string(), |hop| hop.to_string());
    match from.kernel() {
        Some(Kernel::Linux) => format!("ip route add {to} via {hop}"),
        _ if to.is_ipv6() => format!("route add -inet6 {to} {hop}"),
        _ => format!("route add -host {to} {hop}"),
    }
}
