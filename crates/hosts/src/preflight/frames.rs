//! Whether frames arrive: pings between hosts, the counts that counters must show, and the causes of missing frames.
//!
//! Nothing here sends: [`plan`] chooses the frames, and [`judge()`] evaluates their counts.

use super::{Plug, Station, cables, cabling, is_link_local, ports, stations};
use crate::systems::Facts;
use crate::systems::ping::{FRAMES, Replies};
use linerate_plan::lab::{HostAddress, Lab, Role};
use linerate_plan::settings::End;
use linerate_plan::{Backend, Diagnostic, Severity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A host's interface, by the name of the host in the lab file and its own.
pub type At = (String, String);

/// Frames to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The interface that they leave.
    pub from: At,
    /// Address that the frames come from.
    pub source: IpAddr,
    /// Where they are sent to.
    pub to: IpAddr,
    /// The host of that address.
    pub whose: String,
    /// The interfaces that they arrive at, in that order; none at a black box, whose counters nobody can read.
    pub arrives: Vec<At>,
}

impl Probe {
    /// Whether the DUT forwards them.
    pub fn is_forwarded(&self) -> bool {
        self.arrives.len() > 1
    }
}

/// A test that did not run, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// From where to where.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Tests for a lab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Over each cable; then through the DUT.
    pub probes: Vec<Probe>,
    /// Tests that cannot run.
    pub skipped: Vec<Skipped>,
}

/// A probe that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The frames sent.
    pub probe: Probe,
    /// The result of ping.
    pub replies: Replies,
    /// Growth of the count of each of [`Probe::arrives`]; `None` without a counter.
    pub arrived: Vec<Option<u64>>,
    /// Other interfaces of the lab, of the first of these hosts, that counted as many.
    pub elsewhere: Vec<String>,
}

/// A port of the tester that sent a few test frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortTried {
    /// The host and the interface.
    pub from: At,
    /// The backend that sends.
    pub port: Backend,
    /// Why that is not the fastest.
    pub why: Option<String>,
    /// Frames that all ports sent together.
    pub sent: u64,
    /// Where they arrive.
    pub arrives: At,
    /// Growth of the count there; `None` without a counter.
    pub arrived: Option<u64>,
}

/// The problems that the frames of ports show. `to`: where the first of them go.
pub fn judge_ports(lab: &Lab, tried: &[PortTried], to: IpAddr) -> Vec<Diagnostic> {
    // Such a device asks for each destination by ARP, and nobody answers for it.
    let receiver = lab.receiver().receive.iter();
    let ends = lab.black_box.iter().filter_map(|host| host.end(End::Out));
    let mut addresses = receiver.chain(ends).flat_map(|end| &end.addresses);
    let connected = addresses.find(|address| address.reaches(to) == Some(true));
    let connected = connected.filter(|_| lab.black_box.is_some());
    let missing =
        |tried: &&PortTried| tried.sent == 0 || tried.arrived.is_some_and(|n| n < tried.sent);
    let problem = |PortTried {
                       from: (host, interface),
                       port,
                       sent,
                       arrives: (far, at),
                       arrived,
                       ..
                   }: &PortTried| {
        let what = format!("test frames that {interface} sends by {port} do not arrive");
        let evidence = match arrived {
            Some(arrived) => format!("{sent} frames sent; {at} of {far} counted {arrived}"),
            None => format!("{sent} frames sent"),
        };
        if let Some(network) = connected {
            let remedy = format!(
                "give the cable behind the device a smaller network, and the device a route for {to} by way of the receiver; or give the receiver 198.19.1.2: the one flow of `linerate rfc2544` goes there"
            );
            let why = format!(
                "{evidence}: the device has {to} in its own network {network}, and nobody answers its ARP requests for it"
            );
            return Diagnostic::new(what)
                .doubtful()
                .of(host)
                .evidence(why)
                .remedy(remedy);
        }
        let mut remedy = way(lab, to);
        remedy.push_str("see cable, switch and VLAN in between");
        if *port != Backend::AfPacket {
            remedy.push_str("; tool = \"af-packet\" in the lab file sends another way");
        }
        let [from, to] = networks(lab, to);
        Diagnostic::new(what)
            .of(host)
            .evidence(format!("{evidence}; they go from {from} to {to}"))
            .remedy(remedy)
    };
    tried.iter().filter(missing).map(problem).collect()
}

/// The networks of test frames, of the version of IP of this address: where they come from, and where they go.
fn networks(lab: &Lab, to: IpAddr) -> [String; 2] {
    [End::In, End::Out].map(|end| {
        let mut networks = lab.networks(end);
        networks.retain(|network| network.contains(':') == to.is_ipv6());
        networks.join(", ")
    })
}

/// Routes and addresses that a device needs to forward test frames, if nobody can ask it; empty for one that is asked.
fn way(lab: &Lab, to: IpAddr) -> String {
    let Some(black_box) = &lab.black_box else {
        return String::new();
    };
    let hop = |end: End| {
        let peers = lab.peers(end);
        let addresses = peers.iter().flat_map(|peer| &peer.addresses);
        let mut addresses = addresses.map(|own| own.address);
        let hop = addresses.find(|address| address.is_ipv6() == to.is_ipv6());
        let who = match end {
            End::In => "the generator",
            End::Out => "the receiver",
        };
        hop.map_or(who.into(), |hop| format!("{hop} ({who})"))
    };
    let [source, destination] = networks(lab, to);
    format!(
        "{} needs a route to {destination} by way of {}, one to {source} by way of {}, forwarding, and rules that pass UDP between them; then ",
        black_box.name,
        hop(End::Out),
        hop(End::In)
    )
}

/// Possible tests, by the hosts' answers: no more than the lab file allows.
pub fn plan(lab: &Lab, facts: &BTreeMap<String, Facts>) -> Plan {
    let mut plan = Plan::default();
    if !lab.isolated {
        plan.skip(
            "the whole lab",
            "its file does not say isolated = true: nothing is sent",
        );
        return plan;
    }
    let stations = stations(lab, facts);
    for [a, b] in &cables(lab, &stations) {
        // Who is measured is not asked to send.
        let is_dut = a.station.host.roles.contains(&Role::Dut);
        let (from, to) = if is_dut { (b, a) } else { (a, b) };
        plan.over(from, to);
    }
    plan.beside_black_box(lab, &stations);
    if lab.dut().is_some() {
        plan.through(lab, &stations);
    }
    plan
}

/// The interfaces of the lab that a host has, by their names there.
pub fn interfaces(lab: &Lab, host: &str, facts: &Facts) -> Vec<String> {
    let named = lab.hosts.iter().filter(|h| h.name == host);
    named
        .flat_map(|h| ports(lab, h))
        .filter_map(|p| p.found(facts).ok().map(|i| i.name.clone()))
        .collect()
}

impl Plan {
    fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(Skipped {
            what: what.into(),
            why: why.into(),
        });
    }

    fn over(&mut self, from: &Plug<'_>, to: &Plug<'_>) {
        let what = format!("{} to {}", shown(from), shown(to));
        if let Some(why) = obstacle(from, Some(to), &[from, to]) {
            return self.skip(what, why);
        }
        self.pings(
            what,
            from,
            &to.found.addresses,
            &to.station.host.name,
            &[at(to)],
        );
    }

    /// From each host beside a black box to the addresses that the lab file gives it.
    fn beside_black_box(&mut self, lab: &Lab, stations: &[Station<'_>]) {
        let Some(black_box) = &lab.black_box else {
            return;
        };
        for [a, b] in cabling(lab) {
            let (near, far) = if a.0.name == black_box.name {
                (b, a)
            } else {
                (a, b)
            };
            let Some(station) = stations
                .iter()
                .find(|station| station.host.name == near.0.name)
            else {
                continue;
            };
            let port = ports(lab, near.0)
                .into_iter()
                .find(|port| port.key == near.1 && *port.wanted == *near.2);
            let Some(found) = port.and_then(|port| port.found(station.facts).ok()) else {
                continue;
            };
            let plug = Plug {
                key: near.1,
                station,
                wanted: near.2,
                found,
            };
            let what = format!("{} to {}", shown(&plug), black_box.name);
            match obstacle(&plug, None, &[&plug]) {
                Some(why) => self.skip(what, why),
                None => self.pings(what, &plug, &far.2.addresses, &black_box.name, &[]),
            }
        }
    }

    /// Frames of each version of IP in which both ends of a cable have addresses of one network.
    fn pings(
        &mut self,
        what: String,
        from: &Plug<'_>,
        far: &[HostAddress],
        whose: &str,
        arrives: &[At],
    ) {
        let before = self.probes.len();
        for six in [false, true] {
            let of = |all: &[HostAddress]| {
                all.iter()
                    .filter(|a| usable(a, six))
                    .copied()
                    .collect::<Vec<_>>()
            };
            let (near, far) = (of(&from.found.addresses), of(far));
            let reach = |a: &HostAddress, b: &HostAddress| a.reaches(b.address) == Some(true);
            let pair = near
                .iter()
                .find_map(|a| Some((*a, *far.iter().find(|b| reach(a, b))?)));
            self.probes.extend(pair.map(|(source, to)| Probe {
                from: at(from),
                source: source.address,
                to: to.address,
                whose: whose.into(),
                arrives: arrives.to_vec(),
            }));
        }
        if self.probes.len() == before {
            self.skip(what, "the interfaces have no addresses of one network");
        }
    }

    /// From each generator through the DUT to the receiver, where the generator's system knows that way.
    fn through(&mut self, lab: &Lab, stations: &[Station<'_>]) {
        let ends = cables(lab, stations);
        let Some(receiving) = ends.iter().flatten().find(|p| p.key == "receive") else {
            return;
        };
        for [sending, inside] in &ends {
            if sending.key != "send" {
                continue;
            }
            let what = format!(
                "{} through {} to {}",
                shown(sending),
                inside.station.host.name,
                shown(receiving)
            );
            let others = ends.iter().filter(|ends| ends[0].key != "send").flatten();
            let passed: Vec<&Plug<'_>> = [sending, inside].into_iter().chain(others).collect();
            if let Some(why) = obstacle(sending, Some(receiving), &passed) {
                self.skip(what, why);
                continue;
            }
            let before = self.probes.len();
            for six in [false, true] {
                let source = sending.found.addresses.iter().find(|a| usable(a, six));
                let to = receiving
                    .found
                    .addresses
                    .iter()
                    .find(|a| usable(a, six) && leads(sending, a.address));
                if let (Some(source), Some(to)) = (source, to) {
                    self.probes.push(Probe {
                        from: at(sending),
                        source: source.address,
                        to: to.address,
                        whose: receiving.station.host.name.clone(),
                        arrives: vec![at(inside), at(receiving)],
                    });
                }
            }
            if self.probes.len() == before {
                self.skip(what, "the generator's system has no route there by the DUT; generators that write frames themselves need none");
            }
        }
    }
}

/// Whether a generator's system sends frames for this address to the DUT.
fn leads(sending: &Plug<'_>, to: IpAddr) -> bool {
    let way = sending.station.facts.ways.get(&to).and_then(Option::as_ref);
    way.is_some_and(|way| way.interface == sending.found.name && way.gateway.is_some())
}

fn at(plug: &Plug<'_>) -> At {
    (plug.station.host.name.clone(), plug.found.name.clone())
}

fn shown(plug: &Plug<'_>) -> String {
    format!("{} {}", plug.station.host.name, plug.found.name)
}

fn usable(address: &HostAddress, six: bool) -> bool {
    address.address.is_ipv6() == six && !is_link_local(address.address)
}

/// Why frames cannot go from one interface to another, past these. `to`: `None` for a black box.
fn obstacle(from: &Plug<'_>, to: Option<&Plug<'_>>, passed: &[&Plug<'_>]) -> Option<String> {
    let host = from.station.host;
    if to.is_some_and(|to| host.name == to.station.host.name) {
        return Some("they are one host, which sends nothing to itself over cables".into());
    }
    if let Some(dark) = passed
        .iter()
        .find(|plug| !plug.found.up || plug.found.link == Some(false))
    {
        return Some(format!("{} has no link", shown(dark)));
    }
    let facts = from.station.facts;
    let is_root = facts.user == Some(0) || (host.sudo && facts.sudo == Some(true));
    (!is_root).then(|| format!("ping needs root on {}", host.name))
}

/// The problems that the frames show.
pub fn judge(tried: &[Tried]) -> Vec<Diagnostic> {
    let still: Vec<&(String, String)> = tried.iter().filter_map(still).collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    for tried in tried {
        if let Some((severity, host, what, remedy)) = problem(tried, &still) {
            let problem = Diagnostic::new(what)
                .of(host)
                .evidence(evidence(tried))
                .remedy(remedy);
            found.extend(
                Some(Diagnostic {
                    severity,
                    ..problem
                })
                .filter(|problem| !found.contains(problem)),
            );
        }
    }
    found
}

/// The port at the other end of a cable whose counters did not move, nor those of another port, although its host answered.
fn still(tried: &Tried) -> Option<&(String, String)> {
    let answered = tried
        .replies
        .count
        .is_some_and(|(_, answered)| answered > 0);
    let unmoved = !tried.probe.is_forwarded()
        && tried.arrived.first() == Some(&Some(0))
        && tried.elsewhere.is_empty();
    tried.probe.arrives.first().filter(|_| answered && unmoved)
}

/// A problem: its host, and the remedy.
type Problem<'a> = (Severity, &'a str, String, &'static str);

/// The problem that the frames of a probe show, if any.
fn problem<'a>(tried: &'a Tried, still: &[&At]) -> Option<Problem<'a>> {
    use Severity::{Fault, Warning};
    let Tried {
        probe,
        replies,
        arrived,
        elsewhere,
    } = tried;
    let answered = replies.count.map_or(0, |(_, answered)| answered);
    let enough = |count: &Option<u64>| count.is_some_and(|n| n >= u64::from(FRAMES));
    let (from, to, whose) = (&probe.from.0, probe.to, &probe.whose);
    let from_to = format!("what it sends from {} to {to} of {whose}", probe.source);
    let Some((first_host, first_port)) = probe.arrives.first() else {
        let remedy = "nothing is wrong if that device answers no ping; otherwise see cable, switch and VLAN in between";
        return (answered == 0).then(|| {
            (
                Warning,
                from.as_str(),
                format!("{from_to} is not answered"),
                remedy,
            )
        });
    };
    let last = probe.arrives.len() - 1;
    if enough(&arrived[last]) && answered == 0 {
        let remedy = "nothing is wrong where frames go one way only; otherwise see for a firewall there, and for its way back";
        Some((
            Warning,
            from,
            format!("{from_to} arrives, and is not answered"),
            remedy,
        ))
    } else if answered == 0 && probe.is_forwarded() {
        let remedy =
            "see its forwarding, its routes, its firewall, and whom it takes for the next by ARP";
        let source = probe.source;
        Some(match enough(&arrived[0]) {
            true => (
                Fault,
                first_host,
                format!("it does not forward frames from {source} for {to} of {whose}"),
                remedy,
            ),
            false => (Fault, from, format!("{from_to} does not arrive"), remedy),
        })
    } else if answered == 0 && elsewhere.is_empty() {
        let remedy =
            "see cable, switch and VLAN in between, and whom it takes for that address by ARP";
        Some((Fault, from, format!("{from_to} does not arrive"), remedy))
    } else if answered == 0 {
        let what = format!("frames for {first_port} arrive at {}", elsewhere[0]);
        Some((
            Fault,
            first_host,
            what,
            "see for swapped cables, or correct the lab file",
        ))
    } else if let Some(at) = arrived
        .iter()
        .position(|count| count.is_some() && !enough(count))
    {
        not_counted(tried, still, at)
    } else if answered < FRAMES {
        let remedy = "see the counters of errors at both ends: a bad cable or transceiver loses frames of any load";
        Some((
            Warning,
            from,
            format!("of {from_to}, not everything is answered"),
            remedy,
        ))
    } else {
        None
    }
}

/// The problem of a port whose counters did not show the frames, although they were answered.
fn not_counted<'a>(tried: &'a Tried, still: &[&At], at: usize) -> Option<Problem<'a>> {
    let Tried {
        probe, elsewhere, ..
    } = tried;
    let (host, port) = &probe.arrives[at];
    if still.contains(&&probe.arrives[at]) {
        let what = format!(
            "the counters of {port} do not move, although frames that it takes are answered"
        );
        let remedy = "on FreeBSD, netstat may be of another release than the kernel: compare the two lines of `freebsd-version -ku`, and install the userland that fits the kernel";
        // Told once, of the cable.
        return (!probe.is_forwarded()).then_some((Severity::Fault, host, what, remedy));
    }
    let what = match elsewhere.first().filter(|_| at == 0) {
        Some(other) => format!("frames for {port} arrive at {other}"),
        None => format!("frames for {} pass {port} by", probe.to),
    };
    let remedy = "see for swapped cables, two interfaces in one network, or a way around the DUT; or correct the lab file";
    Some((Severity::Fault, host, what, remedy))
}

fn evidence(tried: &Tried) -> String {
    let mut parts = Vec::new();
    match tried.replies.count {
        Some((sent, answered)) => parts.push(format!("{answered} of {sent} pings were answered")),
        None => parts.push("ping did not end".to_string()),
    }
    if !tried.replies.said.is_empty()
        && tried
            .replies
            .count
            .is_none_or(|(_, answered)| answered == 0)
    {
        parts.push(tried.replies.said.clone());
    }
    for ((host, port), count) in tried.probe.arrives.iter().zip(&tried.arrived) {
        parts.extend(count.map(|n| format!("{port} of {host} counted {n} frames")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests;
