//! Ports as the controller wants them: on interfaces that it named, that the guard permits, and that it did not come in by.

use crate::error::{Doing, Error};
use crate::host::autogroup::Ahead;
use crate::host::changes::HostChanges;
use crate::host::{cpu, quota};
use crate::net::netlink::{LinkInfo, Route};
use crate::net::registry::Registry;
use crate::net::{Netns, guard};
use crate::ports::answer::Answerer;
use crate::ports::connections::End;
use crate::ports::stamps::StampClock;
use crate::ports::{self, Arrival, Port, Target};
use linerate_hosts::agent::message::{self, Fault, Role};
use linerate_hosts::stamps::{Reading, Stamps};
use linerate_measure::counters::PortCounters;
use linerate_wire::MacAddr;
use rustix::process::{Pid, getsid, setpriority_process};
use std::fs;
use std::iter;
use std::net::IpAddr;
use std::time::Duration;

/// How an agent serves.
#[derive(Debug, Clone)]
pub struct Options {
    /// This program's version.
    pub linerate: String,
    /// The connection that the controller came by, if there is one.
    pub connection: Option<Connection>,
}

/// A port that is there.
pub(super) struct Made {
    pub port: Box<dyn Port>,
    pub sends: bool,
    pub namespace: Netns,
    pub ifindex: u32,
    /// The CPUs of its threads.
    cpus: Vec<u32>,
    /// Whose frames it sends or counts.
    pub campaign: u8,
    /// Who answers its frames, or counts the answers to them.
    pub answerer: Option<Answerer>,
    /// Frames that its interface had sent before the start.
    before: u64,
    /// Why a generator has not the backend that is tried first.
    pub why: Option<String>,
    /// Which clock stamps its frames, where stamps of cards are wanted, and its reading before the load.
    stamped: Option<(StampClock, Reading)>,
}

impl Made {
    /// Lets its frames be answered, and the answers be counted, until the next load; or not.
    pub fn answer(&mut self, wanted: bool) -> Result<(), Error> {
        // A receiver that takes frames from the stack cannot let them through, so answers would not arrive.
        let hears = self.sends || self.port.let_through(wanted);
        let begin = if self.sends {
            Answerer::listen
        } else {
            Answerer::start
        };
        let wanted = (wanted && hears).then(|| begin(&self.namespace, self.ifindex, self.campaign));
        self.answerer = wanted.transpose()?;
        Ok(())
    }

    /// Reads what is compared with the same after a load: the clock that stamps, and the frames that the interface has sent.
    pub fn read_before(&mut self) -> Result<(), Error> {
        self.before = self.sent()?;
        if let Some((clock, before)) = &mut self.stamped {
            *before = clock.read().doing("read the clock of a card")?;
        }
        Ok(())
    }

    fn sent(&self) -> Result<u64, Error> {
        Ok(Route::open(&self.namespace)?
            .link_by_index(self.ifindex)?
            .stats
            .tx_packets)
    }

    /// The CPUs that its load needs: those of its threads, and those on which frames have arrived since the start.
    pub fn cpus(&self) -> Vec<u32> {
        let arrived = self
            .port
            .counters()
            .queues
            .into_iter()
            .filter(|queue| queue.frames > 0);
        self.cpus
            .iter()
            .copied()
            .filter(|_| self.sends)
            .chain(arrived.map(|queue| queue.cpu))
            .collect()
    }

    /// Everything counted since the start.
    pub fn counters(&self) -> PortCounters {
        let answers = self.answerer.as_ref().map_or(0, Answerer::frames);
        let left = self
            .sends
            .then(|| self.sent().ok())
            .flatten()
            .map(|sent| sent.saturating_sub(self.before));
        PortCounters {
            answers,
            left,
            ..self.port.counters()
        }
    }

    /// The stamps since the start.
    pub fn stamps(&self) -> Result<Stamps, Error> {
        let Some((clock, before)) = &self.stamped else {
            return Ok(Stamps::default());
        };
        let after = clock.read().doing("read the clock of a card")?;
        let (card, why, frames) = (clock.card(), clock.why.clone(), self.port.stamps());
        Ok(Stamps {
            card,
            why,
            clock: [*before, after],
            frames,
        })
    }
}

/// How long a link may take to come back: opening a card for testing can take it down for a moment.
const LINK_WITHIN: Duration = Duration::from_secs(10);

/// Makes a port. `changes`: those of this host, where its card is to stamp frames.
///
/// # Errors
/// The interface must not be used, is not there or down, or the port cannot be made.
pub(super) fn make(
    wanted: &message::Port,
    options: &Options,
    changes: &mut HostChanges,
) -> Result<Made, Fault> {
    let namespace = Netns::current().map_err(|e| fault(wanted, e, "run the agent as root"))?;
    let link = permitted(&namespace, wanted, options)?;
    let cpus = cpus(wanted)?;
    let (made, sends, campaign, card_stamps) = match &wanted.role {
        Role::Generator(traffic) => {
            let frame = &traffic.frame;
            let source = match frame.src_mac {
                none if none == MacAddr::default() => MacAddr(link.mac),
                source => source,
            };
            let target = Target {
                ifindex: link.index,
                source,
                destination: frame.dst_mac,
            };
            let made = ports::generator_at(wanted.backend, &namespace, target, traffic, &cpus);
            (made, true, traffic.campaign, traffic.card_stamps)
        }
        Role::Receiver(filter) => {
            let at = Arrival {
                ifindex: link.index,
                queues: link.num_rx_queues,
            };
            let backend = wanted.backend.resolved(0);
            let port = ports::receiver(backend, &namespace, at, *filter, cpus.first().copied());
            let port = port.map(|port| (port, None));
            (port, false, filter.campaign, filter.card_stamps)
        }
        Role::Client { server } => {
            let server = server.as_ref().map(|server| {
                let server = message::Port {
                    interface: server.clone(),
                    ..wanted.clone()
                };
                permitted(&namespace, &server, options)
            });
            let server = server.transpose()?.map(|server| server.index);
            let target = Target {
                ifindex: link.index,
                source: MacAddr(link.mac),
                destination: MacAddr::default(),
            };
            let client = Some((target, cpus.clone()));
            let end = End::new(&namespace, client, server, turns(&link));
            (end.map(|end| (Box::new(end) as _, None)), true, 0, false)
        }
        Role::Server => {
            let end = End::new(&namespace, None, Some(link.index), turns(&link));
            (end.map(|end| (Box::new(end) as _, None)), false, 0, false)
        }
    };
    let (mut port, why) = made.map_err(|e| unsuitable(wanted, &e))?;
    let stamped = card_stamps.then(|| {
        let clock = StampClock::start(&namespace, &wanted.interface, sends, &mut *port, changes);
        (clock, Reading::default())
    });
    // An XDP program, or switching stamps on, may have taken the link down.
    let route =
        Route::open(&namespace).and_then(|route| route.wait_running(link.index, LINK_WITHIN));
    route.map_err(|e| fault(wanted, e, LINK))?;
    Ok(Made {
        port,
        sends,
        namespace,
        ifindex: link.index,
        cpus,
        campaign,
        answerer: None,
        before: 0,
        why,
        stamped,
    })
}

/// Whether frames go back by `XDP_TX`. A veth does that only where its other end has a program as well.
fn turns(link: &LinkInfo) -> bool {
    link.kind.as_deref() != Some("veth")
}

const LINK: &str = "is the cable in, and the other end up?";

fn fault(wanted: &message::Port, why: impl ToString, remedy: impl Into<String>) -> Fault {
    let what = format!("preparing port {} on {}", wanted.name, wanted.interface);
    Fault::new(what, why, remedy)
}

fn unsuitable(wanted: &message::Port, error: &Error) -> Fault {
    let remedy = match error {
        Error::System { .. } if error.errno() == Some(libc::EBUSY) => {
            "another XDP program is on the interface: ip link set dev INTERFACE xdp off"
        }
        Error::System { .. } => "run the agent as root (sudo linerate agent)",
        Error::Program { .. } => {
            "choose af-packet for this host: its kernel has no live frames (5.18) or no BPF"
        }
        _ => "choose other frames, or another port: tool = \"af-packet\" in the lab file",
    };
    fault(wanted, error, remedy)
}

/// The link, if test traffic may use it.
fn permitted(
    namespace: &Netns,
    wanted: &message::Port,
    options: &Options,
) -> Result<LinkInfo, Fault> {
    let interface = &wanted.interface;
    let named = |e: Error| fault(wanted, e, "name an interface of this host (ip link)");
    let route = Route::open(namespace).map_err(named)?;
    let link = route.link(interface).map_err(named)?;
    if let Some(connection) = &options.connection
        && connection.uses(namespace, interface).map_err(named)?
    {
        let why = format!(
            "linerate's own connection from {} comes in by it",
            connection.client
        );
        return Err(fault(
            wanted,
            why,
            "name an interface that leads to the device under test",
        ));
    }
    let examination =
        guard::examine(namespace, interface, &Registry::of_this_host().inodes()).map_err(named)?;
    let confirmed: &[String] = if wanted.isolated {
        std::slice::from_ref(interface)
    } else {
        &[]
    };
    if guard::permit(&examination, confirmed, "use").is_err() {
        let remedy = match examination.reasons.contains(&guard::Refusal::Loopback) {
            true => "name an interface that leads to the device under test".into(),
            false => format!(
                "if {interface} leads to nothing else, say so in the lab file: isolated = true"
            ),
        };
        return Err(fault(wanted, examination.why(), remedy));
    }
    if !link.up {
        let remedy = format!("ip link set {interface} up");
        return Err(fault(wanted, "the interface is down", remedy));
    }
    if !link.running {
        route
            .wait_running(link.index, LINK_WITHIN)
            .map_err(|e| fault(wanted, e, LINK))?;
    }
    Ok(link)
}

/// The CPUs that were named, or one: the last, because the first has the machine's interrupts.
fn cpus(wanted: &message::Port) -> Result<Vec<u32>, Fault> {
    let online =
        cpu::online_cpus().map_err(|e| fault(wanted, e, "look at the agent's CPU affinity"))?;
    if let Some(cpu) = wanted.cpus.iter().find(|cpu| !online.contains(cpu)) {
        let why = format!("CPU {cpu} is not online, or not allowed to the agent");
        return Err(fault(wanted, why, format!("this host has CPUs {online:?}")));
    }
    let cpus: Vec<u32> = match (wanted.cpus.is_empty(), &wanted.role) {
        (false, _) => wanted.cpus.clone(),
        (true, Role::Generator(_) | Role::Client { .. }) => {
            online.last().copied().into_iter().collect()
        }
        (true, Role::Receiver(_) | Role::Server) => online.first().copied().into_iter().collect(),
    };
    quota::suffices_for(&cpus)
        .map_err(|why| fault(wanted, why, "a load needs whole CPUs"))
        .map(|()| cpus)
}

/// Both ends of the controller's connection to this host: test traffic must never be sent there, whatever the options. sshd sets it in
/// SSH_CONNECTION. sudo removes that from the environment, so those of the parent processes are read as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The controller's address.
    pub client: IpAddr,
    /// Ours.
    pub server: IpAddr,
}

/// Processes between the session's first and this one: shells, sudo, su, env, timeout, ...
const MOST_ANCESTORS: usize = 32;
/// Most bytes read of a process's environment.
const MOST_ENVIRONMENT: usize = 1 << 20;

impl Connection {
    /// Reads `client port server port`.
    pub fn parse(text: &str) -> Option<Connection> {
        let mut words = text.split_ascii_whitespace();
        let mut address = || {
            // fe80::1%eth0
            let word = words.next()?.split('%').next()?;
            words.next()?.parse::<u16>().ok()?;
            Some(word.parse::<IpAddr>().ok()?.to_canonical())
        };
        Some(Connection {
            client: address()?,
            server: address()?,
        })
    }

    /// The connection that this process was started over.
    pub fn of_this_process() -> Option<Connection> {
        let own = std::env::var("SSH_CONNECTION").ok();
        own.as_deref().and_then(Connection::parse).or_else(|| {
            ancestors()
                .find_map(|pid| of_environment(&fs::read(format!("/proc/{pid}/environ")).ok()?))
        })
    }

    /// Whether the connection uses an interface, or a link that it is connected with.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn uses(&self, namespace: &Netns, interface: &str) -> Result<bool, Error> {
        let route = Route::open(namespace)?;
        let group = guard::connected(&route.links()?, route.link(interface)?.index);
        let ours = route
            .addresses()?
            .iter()
            .any(|(index, ip, _)| *ip == self.server && group.contains(index));
        // The answers may leave by another link than the questions come in by.
        Ok(ours
            || route
                .link_towards(self.client)
                .is_some_and(|index| group.contains(&index)))
    }
}

fn of_environment(environment: &[u8]) -> Option<Connection> {
    let environment = &environment[..environment.len().min(MOST_ENVIRONMENT)];
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    Connection::parse(std::str::from_utf8(value).ok()?)
}

/// Nice value of those that come before ordinary programs, and behind generators.
const BEHIND_GENERATORS: i32 = -10;

/// Puts the process that carries the controller's connection before ordinary programs, and behind generators, with those between it and this one: generators
/// may have all CPUs for themselves, and signs of life and stops must come through. Their sessions are put back when the result is dropped.
/// Not being allowed to is no error.
pub(super) fn connection_goes_first() -> Vec<Ahead> {
    let carries = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        ["sshd", "dropbear"]
            .iter()
            .any(|server| name.starts_with(server))
    };
    let Some(last) = ancestors().position(|pid| carries(&pid)) else {
        return Vec::new();
    };
    let before = |pid: u32| {
        let _ = setpriority_process(Pid::from_raw(pid as i32), BEHIND_GENERATORS);
        let session = |pid| getsid(Pid::from_raw(pid as i32)).ok();
        let own = session(pid) == session(std::process::id());
        (!own)
            .then(|| Ahead::of(pid, BEHIND_GENERATORS).ok())
            .flatten()
            .flatten()
    };
    ancestors().take(last + 1).filter_map(before).collect()
}

/// The processes that started this one, the last first.
fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))?
            .trim()
            .parse()
            .ok()?;
        (parent > 1).then_some(parent)
    };
    iter::successors(parent(&std::process::id()), parent).take(MOST_ANCESTORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sshd_says_is_read() {
        let connection = |client: &str, server: &str| {
            Some(Connection {
                client: client.parse().unwrap(),
                server: server.parse().unwrap(),
            })
        };
        assert_eq!(
            Connection::parse("192.0.2.7 50122 192.0.2.1 22"),
            connection("192.0.2.7", "192.0.2.1")
        );
        assert_eq!(
            Connection::parse("fe80::2%eth0 1 fe80::1%eth0 22"),
            connection("fe80::2", "fe80::1")
        );
        assert_eq!(
            Connection::parse("::ffff:192.0.2.7 1 ::ffff:192.0.2.1 2"),
            connection("192.0.2.7", "192.0.2.1")
        );
        for wrong in [
            "",
            "192.0.2.7",
            "192.0.2.7 1 x 2",
            "192.0.2.7 99999 192.0.2.1 22",
            "UNKNOWN 1 UNKNOWN 2",
        ] {
            assert_eq!(Connection::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn it_is_found_in_an_environment() {
        let environment = b"HOME=/\0SSH_CONNECTION=192.0.2.7 1 192.0.2.1 22\0X=\xff\0";
        assert!(of_environment(environment).is_some());
        assert_eq!(
            of_environment(b"XSSH_CONNECTION=192.0.2.7 1 192.0.2.1 22\0"),
            None
        );
        assert!(ancestors().next().is_some());
    }
}
