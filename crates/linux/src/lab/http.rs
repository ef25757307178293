//! A client and a server of HTTP at both ends of a lane. They send by the kernel's own stack, so the ends have addresses while they are here.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::workspace::Entry;
use super::{EmbeddedLab, Interface, Lane};
use crate::error::{Doing, Error};
use crate::net::{MacAddr, procnet, sysctl, userns};
use crate::process::{Job, ProcessError, find};
use linerate_plan::settings::File;
use rustix::process::geteuid;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// Addresses of client and server: those of the tester on the links to the DUT.
pub const CLIENT: IpAddr = GENERATOR_SIDE[0].tester;
/// See [`CLIENT`].
pub const SERVER: IpAddr = RECEIVER_SIDE[0].tester;

/// The user that owns nothing.
const NOBODY: [&str; 4] = [
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    // A change of the user has cleared it.
    "--pdeathsig=KILL",
];

/// How long the server may take to answer a question of linerate's own.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How long the server's kernel may take to give up connections: by its timers less than a second.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(3);
/// The time between two questions meanwhile.
const POLL: Duration = Duration::from_millis(5);

/// Both ends of a lane, with addresses.
pub struct HttpEnds<'a> {
    /// Each with the side that it belongs to.
    ends: [(&'a Interface, &'static Side); 2],
    /// Where the client and the server run.
    entries: [Entry; 2],
}

impl<'a> HttpEnds<'a> {
    /// Gives both ends their addresses. `files`: the files of the client and of the server.
    ///
    /// # Errors
    /// The kernel refuses an address or a setting, or there is no right to mount.
    pub fn new(
        lab: &'a EmbeddedLab,
        lane: &'a Lane,
        files: [&[File]; 2],
    ) -> Result<HttpEnds<'a>, Error> {
        let [client, server] = files;
        let ends = HttpEnds {
            ends: [
                (&lane.generator, &GENERATOR_SIDE[0]),
                (&lane.receiver, &RECEIVER_SIDE[0]),
            ],
            entries: [
                Entry::new(&lab.generator.namespace, client)?,
                Entry::new(&lab.receiver.namespace, server)?,
            ],
        };
        let macs = [lane.destination_mac(), lane.back_mac()];
        for (at, mac) in macs.into_iter().enumerate() {
            ends.join(at, mac)?;
            // An XDP program that redirects frames reaches a veth by its NAPI only.
            ends.ends[at].0.enable_napi()?;
            if lane.setup.is_program() {
                ends.ends[at].0.compute_checksums()?;
            }
        }
        // A closed connection keeps the port of its server, and not that of its client.
        let settings = [
            ("net/ipv4/ip_local_port_range", "1024 65535"),
            ("net/ipv4/ip_unprivileged_port_start", "0"),
            // Where the DUT drops a SYN, the client says so within 3 s.
            ("net/ipv4/tcp_syn_retries", "1"),
        ];
        for node in [&lab.generator, &lab.receiver] {
            sysctl::apply(&node.namespace, &settings)?;
        }
        let loopback = lab.receiver.route.link("lo")?.index;
        lab.receiver.route.set_up(loopback, true)?;
        Ok(ends)
    }

    /// Gives an end its address and its way through the DUT. `mac`: where its frames go.
    fn join(&self, at: usize, mac: MacAddr) -> Result<(), Error> {
        let ((interface, own), (_, other)) = (self.ends[at], self.ends[1 - at]);
        let (route, index) = (&interface.node.route, interface.index);
        route.add_address(index, own.tester, own.dut.1)?;
        route.add_neighbour(index, own.dut.0, mac)?;
        let (network, length) = other.network;
        route.add_route(network, length, Some(own.dut.0), index)
    }

    /// The folder of the client's files, and that of the server's.
    pub fn folders(&self) -> [&str; 2] {
        self.entries.each_ref().map(Entry::scratch)
    }

    /// Runs the client's program on these CPUs, as nobody where that is possible, and returns its output.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn client(
        &self,
        job: &Job,
        cpus: &[u32],
        cancelled: &AtomicBool,
    ) -> Result<String, ProcessError> {
        run(&self.entries[0], job, cpus, cancelled)
    }

    /// As [`HttpEnds::client`], for the server's program.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn server(
        &self,
        job: &Job,
        cpus: &[u32],
        cancelled: &AtomicBool,
    ) -> Result<String, ProcessError> {
        run(&self.entries[1], job, cpus, cancelled)
    }

    /// The server's answer on a port that only its own host reaches.
    ///
    /// # Errors
    /// The server does not listen, or does not answer in time.
    pub fn ask_server(&self, port: u16, request: &str) -> Result<String, Error> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&at, ANSWER_WITHIN)?;
            stream.set_read_timeout(Some(ANSWER_WITHIN))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.take(4096).read_to_string(&mut answer)?;
            Ok(answer)
        };
        let namespace = &self.ends[1].0.node.namespace;
        namespace
            .enter(ask)?
            .doing("ask the server for its counters")
    }

    /// Lets the server's kernel forget each connection as soon as it is closed, because client ports come again, or else after it has sent
    /// its last frame a second time.
    ///
    /// # Errors
    /// The kernel refuses a setting.
    pub fn forget_connections(&self) -> Result<(), Error> {
        let settings = [
            ("net/ipv4/tcp_max_tw_buckets", "0"),
            ("net/ipv4/tcp_synack_retries", "0"),
            ("net/ipv4/tcp_orphan_retries", "1"),
        ];
        sysctl::apply(&self.ends[1].0.node.namespace, &settings)
    }

    /// Takes the addresses away, and waits until the server's kernel has given up the connections that did not close: no trial is to hear of
    /// the one before.
    pub fn withdraw(&self, interrupted: impl Fn() -> bool) {
        self.remove_addresses();
        let until = Instant::now() + GIVEN_UP_WITHIN;
        let left = || {
            let sockets = self.ends[1]
                .0
                .node
                .namespace
                .run(|| Ok(fs::read_to_string("/proc/thread-self/net/sockstat")));
            let sockets = sockets.and_then(|text| text.doing("count sockets"));
            sockets.is_ok_and(|text| !text.contains("TCP: inuse 0"))
        };
        while left() && Instant::now() < until && !interrupted() {
            thread::sleep(POLL);
        }
    }

    fn remove_addresses(&self) {
        for (interface, side) in self.ends {
            let route = &interface.node.route;
            // Another lane's end gets it next. An end that never had it says so, and nobody wants to know.
            let _ = route.remove_address(interface.index, side.tester, side.dut.1);
        }
    }

    /// Connections that the server's kernel dropped, because the server had not accepted others.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn dropped(&self) -> Result<u64, Error> {
        self.counted(1, "TcpExt.ListenDrops")
    }

    /// Segments of TCP that the client's kernel and the server's have sent again.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn again(&self) -> Result<[u64; 2], Error> {
        Ok([
            self.counted(0, "Tcp.RetransSegs")?,
            self.counted(1, "Tcp.RetransSegs")?,
        ])
    }

    /// A counter of an end's kernel.
    fn counted(&self, at: usize, name: &str) -> Result<u64, Error> {
        let counters = procnet::counters(&self.ends[at].0.node.namespace)?;
        Ok(counters.get(name).copied().unwrap_or(0))
    }
}

impl Drop for HttpEnds<'_> {
    fn drop(&mut self) {
        self.remove_addresses();
    }
}

/// Runs a program at one end.
fn run(
    entry: &Entry,
    job: &Job,
    cpus: &[u32],
    cancelled: &AtomicBool,
) -> Result<String, ProcessError> {
    let bound = || {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu as usize));
        // The program inherits the CPUs of the thread that starts it.
        sched_setaffinity(None, &set)?;
        Ok::<_, io::Error>(())
    };
    if let Err(error) = bound() {
        let why = format!("cannot bind {} to CPUs {cpus:?}: {error}", job.name());
        return Err(ProcessError::Unfinished(why));
    }
    job.run(|program| as_nobody(entry, program), Some(cancelled))
}

/// A command without privileges, where this process can give them up.
fn as_nobody(entry: &Entry, program: &Path) -> Command {
    let may = geteuid().is_root() && userns::is_initial();
    match find("setpriv").filter(|_| may) {
        Some(setpriv) => {
            let mut command = entry.command(&setpriv);
            command.args(NOBODY).arg(program);
            command
        }
        None => entry.command(program),
    }
}
