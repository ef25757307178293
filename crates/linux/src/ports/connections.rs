//! Connections without state: XDP programs at both of the tester's interfaces turn each frame of a connection into the next one.
//!
//! The generator opens connections by live frames; the client's program is on its interface, the server's on the receiver's. Both set a
//! bit for each connection and stage, so that every connection is accounted for. docs/connections.md describes the frames.

mod end;
mod opener;
mod state;
#[cfg(test)]
mod tests;

use super::attached::not_attached;
use super::port::Target;
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
pub use end::End;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{ByNginx, ConnectionTrial, Flood};
use linerate_stats::histogram::{BUCKETS, Histogram};
use linerate_wire::{Close, ConnectionSpec, Family, HAS_ANSWER, IS_OPEN, MOST_CONNECTIONS, STAGES};
use opener::numbers_of_each;
pub use opener::{Closed, Opener};
use state::{Control, FOREIGN, OpenerState, Progress, Seen};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Words of the bits of a stage.
const WORDS: usize = MOST_CONNECTIONS as usize / 64;
/// Loads that can be told apart; the next one has the number of the first again. Between loads, frames are of none.
const EPOCHS: u32 = 15;
/// Connections under way at most, where each is finished on the CPU that opened it. Rings of a veth overflow from 256 on.
const WINDOW: u64 = 128;
/// One connection in so many is timed.
const STAMP_EVERY: u32 = 64;
/// `KEPT` there: the exchange of connections that are kept open. `KEPT_SERVER` and `KEPT_RESET` follow.
const KEPT: u32 = 5;
/// `WEB` there: the exchange of those that nginx answers.
const WEB: u32 = 8;
/// Stages there: the answer to the first frame, and the client's ACK.
const ANSWERED: u32 = 1;
const ASKED: u32 = 2;
/// Actions of XDP programs.
const XDP_TX: u32 = 3;
const XDP_REDIRECT: u32 = 4;

/// How long connections under way may say nothing: in the embedded lab, frames arrive before the opener runs again, or soon after...
const PATIENCE_NS: u32 = 200_000;
/// ...nginx is a program, and hosts have other programs, and cards that collect frames.
const PATIENCE_OF_OTHERS_NS: u32 = 20_000_000;

/// Attaches a program, which then holds the link: in the driver if possible, generic otherwise.
fn attach(program: &mut Xdp, name: &str, ifindex: u32) -> Result<(), Error> {
    let mut attach = |mode| {
        let attached = program.attach_to_if_index(ifindex, mode).map(|_| ());
        attached.map_err(|e| not_attached(name, ifindex, e))
    };
    let attached = attach(XdpMode::Default);
    match &attached {
        // Other programs, and missing rights, are the same for both.
        Err(e) if !matches!(e.errno(), Some(libc::EBUSY | libc::EPERM)) => {
            attach(XdpMode::Skb).or(attached)
        }
        _ => attached,
    }
}

/// An address in wire order but for the last word, to which the program adds numbers.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(v4) => [0, 0, 0, v4.to_bits()],
        IpAddr::V6(v6) => {
            let word = |n: u32| (v6.to_bits() >> (96 - 32 * n)) as u32;
            [word(0).to_be(), word(1).to_be(), word(2).to_be(), word(3)]
        }
    }
}

/// The ends of connections that this machine has: both, in the embedded lab.
pub struct ConnectionEnds {
    generator: Netns,
    ebpf: Arc<Ebpf>,
    control: MappedArray<Control>,
    openers: MappedArray<OpenerState>,
    ends: MappedArray<Seen>,
    bits: MappedArray<u64>,
    progress: MappedArray<Progress>,
    times: MappedArray<u64>,
    cpus: usize,
    /// Whether servers are among them.
    serves: bool,
    /// Loads so far, and connections of these.
    loads: u32,
    opened: u64,
    /// Of connections that are kept open: the openers' states when all had been opened.
    openings: Vec<OpenerState>,
    targets: Vec<Target>,
}

/// A load of connections.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The frames of each connection.
    pub connections: ConnectionSpec,
    /// The first client's address, and the first server's.
    pub first: [IpAddr; 2],
    /// The generator's CPUs.
    pub cpus: Vec<u32>,
    /// The target, by its number.
    pub target: usize,
    /// Whether frames go back by `XDP_TX`, which needs a program at the other end of a veth; otherwise, they are redirected.
    pub alone: bool,
    /// Whether the number under way is kept small where no rate is asked for: in the embedded lab, where each connection is finished on
    /// the CPU that opens it.
    pub closed_loop: bool,
    /// Whether the ends are hosts, whose other frames are none of ours, and whose connections are finished on any CPU.
    pub hosts: bool,
}

impl Wanted {
    fn family(&self) -> Family {
        if self.first[0].is_ipv6() {
            Family::V6
        } else {
            Family::V4
        }
    }
}

/// The next frame of connections that are kept open, by its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A request, which is answered.
    Request = IS_OPEN as isize + 1,
    /// The client's frame that closes the connection: its FIN, its RST, or the ACK on which the server sends FIN.
    Fin = HAS_ANSWER as isize + 1,
}

impl ConnectionEnds {
    /// Attaches clients to the interfaces of these targets in `generator`, and servers to these interfaces of `receiver`. `table`: whether a
    /// DUT changes sequence numbers, so that both ends have to remember those of each connection (8 bytes).
    ///
    /// # Errors
    /// No privilege, or a kernel without live frames (before 5.18).
    pub fn new(
        generator: &Netns,
        targets: &[Target],
        receiver: &Netns,
        servers: &[u32],
        table: bool,
    ) -> Result<Self, Error> {
        let cpus = bpf::possible_cpus();
        let elements = [
            ("openers", cpus as u32),
            ("ends", 2 * cpus as u32),
            ("bits", (STAGES * WORDS) as u32),
            ("progress", cpus as u32),
            ("times", (cpus * BUCKETS) as u32),
            ("ports", targets.len().max(1) as u32),
            (
                "peers",
                if table {
                    2 * MOST_CONNECTIONS as u32
                } else {
                    1
                },
            ),
        ];
        let constants = [("CPUS", cpus as u32), ("TABLE", table.into())];
        let mut ebpf = bpf::CONNECTIONS.load(&constants, &[], &elements)?;
        for name in ["open4", "open6", "resume4", "resume6"] {
            bpf::load_xdp(&mut ebpf, name)?;
        }
        let clients: Vec<u32> = targets.iter().map(|target| target.ifindex).collect();
        for (name, namespace, interfaces) in [
            ("client", generator, &clients[..]),
            ("server", receiver, servers),
        ] {
            let program = bpf::load_xdp(&mut ebpf, name)?;
            for ifindex in interfaces {
                namespace.enter(|| attach(program, name, *ifindex))??;
            }
        }
        generator.run(|| {
            (0..)
                .zip(targets)
                .try_for_each(|(n, target)| bpf::set_devmap(&mut ebpf, "ports", n, target.ifindex))
        })?;
        let control = MappedArray::take(&mut ebpf, "control", 1)?;
        // Before the first load, frames are of none.
        control.set(
            0,
            Control {
                epoch: EPOCHS,
                passes: 1,
                ..Control::default()
            },
        );
        Ok(ConnectionEnds {
            generator: generator.clone(),
            control,
            openers: MappedArray::take(&mut ebpf, "openers", cpus)?,
            ends: MappedArray::take(&mut ebpf, "ends", 2 * cpus)?,
            bits: MappedArray::take(&mut ebpf, "bits", STAGES * WORDS)?,
            progress: MappedArray::take(&mut ebpf, "progress", cpus)?,
            times: MappedArray::take(&mut ebpf, "times", cpus * BUCKETS)?,
            ebpf: Arc::new(ebpf),
            cpus,
            serves: !servers.is_empty(),
            loads: 0,
            opened: 0,
            openings: Vec::new(),
            targets: targets.to_vec(),
        })
    }

    /// The ports of a load: the generator's `frames` are connections that were attempted, the receiver's those that closed.
    pub fn ports(&mut self, wanted: Wanted) -> (Opener<&ConnectionEnds>, Closed<'_>) {
        self.begin(&wanted, self.loads);
        self.loads += 1;
        let ends = &*self;
        (Opener::new(ends, wanted, None), Closed { ends })
    }

    /// The next frame of each connection that is open, and the connections that had one.
    pub fn resume(&mut self, wanted: Wanted, next: Next) -> (Opener<&ConnectionEnds>, Closed<'_>) {
        if self.openings.is_empty() {
            self.openings = self.openers.iter().collect();
        }
        for n in 0..2 * self.cpus {
            self.ends
                .set_field(n, std::mem::offset_of!(Seen, closed), 0);
        }
        let resumed = next as u32;
        self.control.set(
            0,
            Control {
                resumed,
                ..self.control.get(0)
            },
        );
        let ends = &*self;
        (Opener::new(ends, wanted, Some(next)), Closed { ends })
    }

    /// Connections that are open at both ends, of those that are kept open.
    pub fn open(&self) -> u64 {
        self.reached(IS_OPEN + 1).pop().unwrap_or(0)
    }

    /// Whether a CPU has opened as many connections as there are numbers for it.
    pub fn are_numbers_used_up(&self, cpus: usize, spec: &ConnectionSpec) -> bool {
        self.opened_by()
            .iter()
            .any(|state| state.attempted >= numbers_of_each(cpus, spec))
    }

    /// The states of the openers when the last connection of the load had been attempted.
    fn opened_by(&self) -> Vec<OpenerState> {
        if self.openings.is_empty() {
            self.openers.iter().collect()
        } else {
            self.openings.clone()
        }
    }

    /// Counts the connections of the last load that closed.
    pub fn closed(&self) -> Closed<'_> {
        Closed { ends: self }
    }

    /// Sets all counters to 0, for connections of another number and with other tuples than those before. `load`: both ends have the same.
    fn begin(&mut self, wanted: &Wanted, load: u32) {
        // CPUs have ranges of their own, which overlap those of later loads least where all move by the longest.
        let opened = self.opened_by();
        self.opened += opened.iter().map(|s| s.attempted).max().unwrap_or(0);
        self.openings.clear();
        let ConnectionSpec {
            exchange,
            request,
            object,
            open,
            close,
            served_by,
            ..
        } = wanted.connections;
        let nginx = served_by.is_nginx();
        let kept = KEPT + close.unwrap_or(Close::Client) as u32;
        let [client, server] = wanted.first.map(words);
        let each = numbers_of_each(wanted.cpus.len(), &wanted.connections);
        let to_server = exchange.is_tcp() && self.serves;
        // Frames of other programs go on, and connections are finished on any CPU.
        let others = wanted.hosts || nginx;
        let control = Control {
            exchange: match open {
                Some(_) => kept,
                None if nginx => WEB,
                None => exchange as u32,
            },
            epoch: load % EPOCHS,
            request: request.into(),
            object: object.into(),
            turn: if wanted.alone { XDP_TX } else { XDP_REDIRECT },
            first_tuple: (self.opened % MOST_CONNECTIONS) as u32,
            client,
            server,
            stamp_every: STAMP_EVERY,
            tuples: (wanted.connections.pairs() - 1) as u32,
            resumed: 0,
            floods: wanted.connections.has_strays().into(),
            timed: if to_server { ASKED } else { ANSWERED },
            passes: others.into(),
            each: if others { each as u32 } else { 0 },
            patience_ns: [PATIENCE_NS, PATIENCE_OF_OTHERS_NS][usize::from(others)],
            illegal: (wanted.connections.illegal_each() * 1e12).round() as u64,
        };
        // Late frames of the load before set no bit.
        self.control.set(
            0,
            Control {
                epoch: EPOCHS,
                ..control
            },
        );
        let stages = wanted.connections.stages().len();
        (0..stages * WORDS).for_each(|word| self.bits.set(word, 0));
        (0..2 * self.cpus).for_each(|n| self.ends.set(n, Seen::default()));
        (0..self.cpus).for_each(|n| self.openers.set(n, OpenerState::default()));
        (0..self.cpus).for_each(|n| self.progress.set(n, Progress::default()));
        (0..self.cpus * BUCKETS).for_each(|n| self.times.set(n, 0));
        self.control.set(0, control);
    }

    /// The numbers of the connections that each CPU has attempted; all numbers where the client is elsewhere.
    fn ranges(&self) -> Vec<(u64, u64)> {
        if self.targets.is_empty() {
            return vec![(0, MOST_CONNECTIONS)];
        }
        let used = self.opened_by();
        let used = used.iter().filter(|state| state.attempted > 0);
        used.map(|state| (state.first, state.first + state.attempted))
            .collect()
    }

    /// Counters of clients and of servers.
    fn seen(&self) -> [Seen; 2] {
        [0, self.cpus].map(|from| {
            (from..from + self.cpus)
                .map(|n| self.ends.get(n))
                .fold(Seen::default(), |sum, one| {
                    let stages =
                        |a: [u64; STAGES], b: [u64; STAGES]| std::array::from_fn(|n| a[n] + b[n]);
                    Seen {
                        came: stages(sum.came, one.came),
                        went: stages(sum.went, one.went),
                        again: stages(sum.again, one.again),
                        came_bytes: sum.came_bytes + one.came_bytes,
                        went_bytes: sum.went_bytes + one.went_bytes,
                        closed: sum.closed + one.closed,
                        stale: sum.stale + one.stale,
                        changed: sum.changed + one.changed,
                        unwritten: sum.unwritten + one.unwritten,
                        foreign: std::array::from_fn(|n| sum.foreign[n] + one.foreign[n]),
                        flood: std::array::from_fn(|n| sum.flood[n] + one.flood[n]),
                        flood_answers: sum.flood_answers + one.flood_answers,
                        acks: std::array::from_fn(|n| sum.acks[n] + one.acks[n]),
                        shut: sum.shut + one.shut,
                        shifted: sum.shifted + one.shifted,
                        parts: sum.parts + one.parts,
                        read: sum.read + one.read,
                        refused: sum.refused + one.refused,
                    }
                })
        })
    }

    /// Frames that have arrived, by CPU.
    fn arrived(&self) -> Vec<(u32, u64)> {
        let of_cpu = |cpu: usize| {
            let both = [cpu, self.cpus + cpu].map(|end| self.ends.get(end).came);
            (cpu as u32, both.iter().flatten().sum())
        };
        (0..self.cpus)
            .map(of_cpu)
            .filter(|(_, frames)| *frames > 0)
            .collect()
    }

    /// Connections that reached each stage, by their bits.
    fn reached(&self, stages: usize) -> Vec<u64> {
        let of_stage = |stage: usize, (first, end): (u64, u64)| -> u64 {
            let words = first / 64..end.div_ceil(64);
            words
                .map(|word| u64::from(self.bits.get(stage * WORDS + word as usize).count_ones()))
                .sum()
        };
        (0..stages)
            .map(|stage| {
                self.ranges()
                    .into_iter()
                    .map(|range| of_stage(stage, range))
                    .sum()
            })
            .collect()
    }

    /// Frames that were sent and that arrived, each by direction: to the servers, to the clients.
    pub fn frames(&self) -> [Vec<PortCounters>; 2] {
        let [client, server] = self.seen();
        let sum = |stages: [u64; STAGES]| stages.iter().sum::<u64>();
        let port = |frames, bytes| PortCounters {
            frames,
            bytes,
            ..PortCounters::default()
        };
        let came = |seen: &Seen| PortCounters {
            foreign: Self::strangers(seen),
            ..port(sum(seen.came), seen.came_bytes)
        };
        let sent = [&client, &server].map(|seen| port(sum(seen.went), seen.went_bytes));
        let mut both = [sent, [came(&server), came(&client)]];
        for (ports, [frames, bytes]) in both.iter_mut().zip([client.flood, server.flood]) {
            ports[0].frames += frames;
            ports[0].bytes += bytes;
        }
        let [[to_server, _], [at_server, at_client]] = &mut both;
        to_server.frames += client.acks[1];
        at_server.frames += server.acks[0];
        at_client.frames += client.parts;
        // The DUT's own frames, which no server sent.
        let mut made = client.acks[0] + client.flood_answers;
        if client.shut > 0 {
            let handshakes = client.came[1].saturating_sub(server.came[0] - server.again[0]);
            at_client.frames -= handshakes;
            made += handshakes;
        }
        if made > 0 {
            at_client.foreign.insert("made by the DUT".into(), made);
        }
        both.map(Vec::from)
    }

    /// Times to establish the connections, in nanoseconds.
    fn establishment(&self) -> Histogram {
        let of_bucket = |bucket| {
            (0..self.cpus)
                .map(|cpu| self.times.get(cpu * BUCKETS + bucket))
                .sum()
        };
        Histogram::from_dense(&(0..BUCKETS).map(of_bucket).collect::<Vec<u64>>())
    }

    /// Frames that belong to no connection, by kind.
    fn strangers(seen: &Seen) -> BTreeMap<String, u64> {
        let kinds = FOREIGN
            .iter()
            .map(|kind| kind.to_string())
            .zip(seen.foreign);
        let others = [
            ("stale".to_string(), seen.stale),
            ("changed".to_string(), seen.changed),
        ];
        kinds
            .chain(others)
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// How far the connections of the load came.
    pub fn account(&self, connections: ConnectionSpec) -> ConnectionTrial {
        let stages = connections.stages();
        let [client, server] = self.seen();
        let states = self.opened_by();
        let loads = states
            .iter()
            .map(|state| state.last_ns.saturating_sub(state.first_ns));
        ConnectionTrial {
            attempted: states.iter().map(|state| state.attempted).sum(),
            reached: self.reached(stages.len()),
            arrived: (0..stages.len())
                .map(|n| client.came[n] + server.came[n])
                .collect(),
            again: (0..stages.len())
                .map(|n| client.again[n] + server.again[n])
                .collect(),
            changed: client.changed + server.changed,
            shifted: client.shifted,
            proxied: client.shut,
            stale: client.stale + server.stale,
            resets: client.foreign[0] + server.foreign[0],
            unwritten: client.unwritten + server.unwritten,
            given_up: states.iter().map(|state| state.given_up).sum(),
            idle_ns: states.iter().map(|state| state.idle_ns).max().unwrap_or(0),
            timed_by_client: connections.exchange.is_tcp()
                && !self.serves
                && !self.targets.is_empty(),
            flood: connections.has_strays().then(|| Flood {
                asked: connections.flood,
                illegal: connections.illegal,
                sent: client.flood[0],
                arrived: server.flood[0],
                answered: client.flood_answers,
                load_ns: loads.max().unwrap_or(0),
            }),
            nginx: connections.served_by.is_nginx().then(|| ByNginx {
                read: client.read,
                refused: client.refused,
                ..ByNginx::default()
            }),
            ..ConnectionTrial::default()
        }
    }
}
