//! Two hosts of TCP and the path between them: namespaces of their own for each trial, so that none inherits a metric, a port in
//! TIME_WAIT or a window of another.

use super::addresses::mac;
use super::node::Node;
use super::path::netem::{self, Netem};
use super::path::{Flow, Link, Path, Tap};
use super::setup::Setup;
use crate::error::{Doing, Error};
use crate::net::netlink::VethEnd;
use crate::net::procnet::{self, Counters};
use crate::net::{MacAddr, Netns, sysctl};
use linerate_measure::record::PathCounts;
use linerate_plan::settings::PathBy;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Addresses of the end hosts: the tester's range (RFC 2544, C.2.2).
pub const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
pub const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
const PREFIX: u8 = 24;
/// The interface of each, and the length of its queue towards the path in packets.
const INTERFACE: &str = "path";

/// Who delays the frames, in words with the reason, and whether it is netem.
pub fn way(asked: PathBy) -> (bool, String) {
    match (asked, netem::lacking()) {
        (PathBy::Linerate, _) => (false, "linerate, as the plan says".into()),
        (_, None) => (true, "netem and tbf of the kernel".into()),
        (_, Some(why)) => (
            false,
            format!("linerate, because this kernel cannot: {why}"),
        ),
    }
}

/// Needs of end hosts with this setup that this machine lacks, each with the reason; empty if they can be made.
pub fn lacking(setup: &Setup) -> Vec<String> {
    let namespace = match Netns::anonymous() {
        Ok(namespace) => namespace,
        Err(error) => return vec![error.to_string()],
    };
    let by = setup
        .settings
        .path
        .as_ref()
        .map_or(PathBy::Auto, |path| path.by);
    let no_path = match by {
        PathBy::Netem => netem::lacking(),
        _ if way(by).0 => None,
        _ => Tap::new(&namespace, INTERFACE)
            .err()
            .map(|error| error.to_string()),
    };
    let of_host = |name: &String| {
        let key = sysctl::path_of(name).map_err(|error| error.to_string());
        match key.and_then(|key| {
            sysctl::is_settable(&namespace, &key).map_err(|error| error.to_string())
        }) {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "this kernel has no {name} for each namespace: it lacks the setting, or has one for the whole machine. Leave it out, or set it by hand beforehand"
            )),
            Err(error) => Some(error),
        }
    };
    let unknown = congestion_control(setup).and_then(|wanted| {
        let known = sysctl::get(&namespace, "net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        let missing = !known.split_whitespace().any(|name| name == wanted);
        missing.then(|| format!("this kernel has no congestion control {wanted}, but {known} (modprobe tcp_{wanted} may load it)"))
    });
    no_path
        .into_iter()
        .chain(unknown)
        .chain(setup.settings.sysctls.keys().filter_map(of_host))
        .collect()
}

const CONGESTION_CONTROL: &str = "net/ipv4/tcp_congestion_control";

/// The congestion control that a setup names. The sending program asks for it: as its default, a namespace takes only those that the whole
/// machine allows to everyone.
pub fn congestion_control(setup: &Setup) -> Option<&str> {
    let named = |name: &String| sysctl::path_of(name).is_ok_and(|path| path == CONGESTION_CONTROL);
    let (_, value) = setup
        .settings
        .sysctls
        .iter()
        .find(|(name, _)| named(name))?;
    Some(value)
}

/// Sender and receiver, joined.
pub struct EndHosts {
    /// First, so that nothing is on its way when the namespaces go.
    way: Way,
    nodes: [Arc<Node>; 2],
}

/// A path that stands.
enum Way {
    Own(Path),
    Kernel(Netem),
}

/// A path that is being made.
enum Joint {
    Taps([Result<Tap, Error>; 2]),
    Router(Arc<Node>),
}

/// The interfaces of the router, towards the sender and towards the receiver.
const TOWARDS: [&str; 2] = ["in0", "out0"];

/// A router between the hosts, which it knows by their Ethernet addresses.
fn router(nodes: &[Arc<Node>; 2], macs: [MacAddr; 2]) -> Result<Arc<Node>, Error> {
    // Without IPv6 it sends no packet of its own.
    let router = Node::switch("the path", "")?;
    let sides = nodes.iter().zip([SENDER, RECEIVER]).zip(TOWARDS);
    for (at, ((node, address), name)) in sides.enumerate() {
        let near = VethEnd {
            name: name.into(),
            mac: mac(0, 3 + at as u8),
            mtu: 1500,
            index: 10 + at as u32,
        };
        let far = VethEnd {
            name: INTERFACE.into(),
            mac: macs[at],
            mtu: 1500,
            index: 20 + at as u32,
        };
        router.route.create_veth(&near, &far, &node.namespace, 1)?;
        let index = router.route.link(name)?.index;
        router.route.set_up(index, true)?;
        router.route.add_neighbour(index, address, macs[at])?;
        router.route.add_route(address, 32, None, index)?;
    }
    Ok(router)
}

impl EndHosts {
    /// Makes both hosts with the sysctls of a setup, and joins them by netem or by this program.
    ///
    /// # Errors
    /// No privilege, no TAP, or a sysctl that this kernel does not take.
    pub fn new(setup: &Setup, link: Link, by_kernel: bool) -> Result<EndHosts, Error> {
        let nodes = [
            Node::end_host("sending host")?,
            Node::end_host("receiving host")?,
        ];
        let macs = [mac(0, 1), mac(0, 2)];
        // The addresses that the hosts send to: each other's, or the router's.
        let (joint, next) = match by_kernel {
            true => (Joint::Router(router(&nodes, macs)?), [mac(0, 3), mac(0, 4)]),
            false => (
                Joint::Taps(
                    nodes
                        .each_ref()
                        .map(|node| Tap::new(&node.namespace, INTERFACE)),
                ),
                [macs[1], macs[0]],
            ),
        };
        for (at, node) in nodes.iter().enumerate() {
            let [own, other] = if at == 0 {
                [SENDER, RECEIVER]
            } else {
                [RECEIVER, SENDER]
            };
            let index = node.route.link(INTERFACE)?.index;
            if !by_kernel {
                node.route.set_mac(index, macs[at])?;
            }
            node.route.add_address(index, own, PREFIX)?;
            node.route.set_up(index, true)?;
            node.route.add_neighbour(index, other, next[at])?;
            for change in setup
                .sysctls()?
                .iter()
                .filter(|change| change.key() != Some(CONGESTION_CONTROL))
            {
                sysctl::set(
                    &node.namespace,
                    change.key().unwrap_or_default(),
                    &change.value,
                )?;
            }
        }
        let way = match joint {
            Joint::Taps([sender, receiver]) => Way::Own(Path::new([sender?, receiver?], link)?),
            Joint::Router(node) => Way::Kernel(Netem::new(node, TOWARDS.map(String::from), link)?),
        };
        nodes.iter().try_for_each(|node| node.wait_running())?;
        Ok(EndHosts { way, nodes })
    }

    /// The namespace of the sender, and of the receiver.
    pub fn namespaces(&self) -> [&Netns; 2] {
        self.nodes.each_ref().map(|node| &node.namespace)
    }

    /// The counts of the path, there and back.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn path(&self) -> Result<[PathCounts; 2], Error> {
        match &self.way {
            Way::Own(path) => Ok(path.counts()),
            Way::Kernel(netem) => netem.counts(),
        }
    }

    /// The connections to this port of the receiver that carried most, so many together; `None` if the path does not look into frames.
    pub fn largest(&self, port: u16, count: usize) -> Option<Flow> {
        match &self.way {
            Way::Own(path) => Some(path.largest(port, count)),
            Way::Kernel(_) => None,
        }
    }

    /// Whether no frame is on its way.
    pub fn is_empty(&self) -> bool {
        match &self.way {
            Way::Own(path) => path.is_empty(),
            Way::Kernel(netem) => netem.counts().is_ok_and(|both| {
                both.iter()
                    .all(|path| path.frames_in == path.frames_out + path.frames_dropped)
            }),
        }
    }

    /// Why the path has ended, if it has.
    pub fn failure(&mut self) -> Option<String> {
        match &mut self.way {
            Way::Own(path) => path.failure(),
            Way::Kernel(_) => None,
        }
    }

    /// Round-trip times of so many handshakes of TCP, one after the other, in nanoseconds.
    ///
    /// # Errors
    /// A connection fails.
    pub fn handshakes(&self, count: usize, longest: Duration) -> Result<Vec<u64>, Error> {
        let [sender, receiver] = self.namespaces();
        let listener = receiver
            .enter(|| TcpListener::bind((RECEIVER, 0)))?
            .doing("listen on the receiving host")?;
        let to: SocketAddr = listener.local_addr().doing("ask for a port")?;
        let connect = || {
            let began = Instant::now();
            TcpStream::connect_timeout(&to, longest).map(|_| began.elapsed().as_nanos() as u64)
        };
        let all = || (0..count).map(|_| connect()).collect::<Result<Vec<_>, _>>();
        sender
            .enter(all)?
            .doing("connect the end hosts without load")
    }

    /// Waits until a program listens on a port of the receiver. Returns whether it does.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn wait_listening(&self, port: u16, longest: Duration) -> Result<bool, Error> {
        let table = "/proc/thread-self/net/tcp";
        let listening = format!(":{port:04X} 00000000:0000 0A");
        let until = Instant::now() + longest;
        self.namespaces()[1].run(|| {
            loop {
                if fs::read_to_string(table)
                    .doing(format_args!("read {table}"))?
                    .contains(&listening)
                {
                    return Ok(true);
                }
                if Instant::now() > until {
                    return Ok(false);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    }

    /// The counters of IP and TCP of the sender, and of the receiver.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counters(&self) -> Result<[Counters; 2], Error> {
        let [sender, receiver] = self.namespaces();
        Ok([procnet::all(sender)?, procnet::all(receiver)?])
    }

    /// Settings of TCP as they are on the sender; those that this kernel does not have are left out.
    pub fn settings(&self, names: &[&str]) -> Vec<(String, String)> {
        let value = |name: &&str| {
            let key = sysctl::path_of(name).ok()?;
            Some((
                name.to_string(),
                sysctl::get(self.namespaces()[0], &key)
                    .ok()?
                    .replace('\t', " "),
            ))
        };
        names.iter().filter_map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::settings::Dut;

    #[test]
    #[ignore = "needs root"]
    fn a_round_trip_takes_the_time_that_was_set() {
        let link = Link::half(20_000_000, Some(1e8));
        let hosts = EndHosts::new(&Setup::of(Dut::Forwarding), link, false).unwrap();
        let before = hosts.counters().unwrap();
        // Two frames of 90 bytes and the shortest of 84 take some 7 us each at 100 Mbit/s.
        let expected = 20_000_000..30_000_000;
        // A busy machine delays most of them.
        let (mut times, mut least) = (0, u64::MAX);
        while times < 100 && least >= expected.end {
            let one = hosts.handshakes(1, Duration::from_secs(30)).unwrap();
            (times, least) = (times + 1, least.min(one[0]));
        }
        assert!(expected.contains(&least), "{least} ns");
        let after = hosts.counters().unwrap();
        let grown =
            |at: usize, name: &str| after[at][name] - before[at].get(name).copied().unwrap_or(0);
        assert_eq!(
            grown(0, "IpExt.OutOctets"),
            hosts.path().unwrap()[0].bytes_in
        );
        assert!(grown(0, "Tcp.ActiveOpens") == times && grown(1, "Tcp.PassiveOpens") <= times);
    }
}
