//! The AF_XDP receiver: an XDP program hands every frame of a queue to the queue's socket.

use super::socket::{Receiving, dropped};
use crate::bpf;
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::net::netlink::Route;
use crate::ports::port::{Arrival, monotonic_ns};
use crate::ports::user_receiver::{Receive, Shared, UserReceiver};
use crate::ports::xdp_receiver::attach;
use crate::sockets::wait_readable;
use aya::Ebpf;
use aya::maps::{Map, XskMap};
use linerate_plan::Backend;
use linerate_wire::Filter;
use rustix::event::{PollFd, PollFlags};
use std::os::fd::AsRawFd;

/// Bytes in front of a received frame (XDP_PACKET_HEADROOM).
const HEADROOM: usize = 256;
/// Chunks for each queue.
const CHUNKS: u32 = 4096;
/// Frames that are counted at once, with one look at the clock.
const BATCH: usize = 64;
/// Looks at each queue, so that the end is noticed under any load…
const ROUNDS: usize = 64;
/// …and the longest wait, likewise.
const WAIT_MS: i64 = 50;

/// A receiver with an AF_XDP socket on every queue of an interface and one thread for all of them.
///
/// All frames end here, foreign ones too: nothing goes up the network stack. Latency is taken when a frame is read, at most 64
/// frames to a look at the clock. Frames without room in a socket are reported as `refused`: the tester lost them, not the DUT.
///
/// # Errors
/// No privilege (XDP programs need root, or CAP_BPF and CAP_NET_ADMIN), another XDP program on the interface, an MTU above the
/// size of a page; `filter.pass_foreign`.
pub fn receiver(
    namespace: &Netns,
    Arrival { ifindex, queues }: Arrival,
    filter: Filter,
    cpu: Option<u32>,
) -> Result<UserReceiver, Error> {
    if filter.pass_foreign {
        let why = "an AF_XDP receiver passes nothing up the stack: use --port xdp or af-packet where others need ARP";
        return Err(Error::Refused(why.into()));
    }
    let chunk = chunk_for(Route::open(namespace)?.link_by_index(ifindex)?.mtu as usize)?;
    let queues = queues.max(1);
    let mut ebpf = bpf::SOCKETS.load(&[], &[], &[("sockets", queues)])?;
    let open = |queue| Receiving::receiving(ifindex, queue, chunk, CHUNKS);
    let mut sockets = namespace.run(|| (0..queues).map(open).collect::<Result<Vec<_>, _>>())?;
    sockets.iter_mut().for_each(give_all_chunks);
    redirect(&mut ebpf, &sockets)?;
    attach(&mut ebpf, "to_socket", namespace, ifindex)?;
    let descriptors: Vec<_> = sockets.iter().map(|s| s.fd.clone()).collect();
    let dropped = move || {
        // The program is taken off the interface when the receiver goes.
        let _attached = &ebpf;
        descriptors.iter().map(|fd| dropped(fd)).sum()
    };
    let receiver = XdpQueues { sockets, batch: Vec::with_capacity(BATCH) };
    UserReceiver::spawn(Backend::AfXdp, filter, cpu, receiver, Box::new(dropped))
}

/// The smallest chunk that holds the interface's longest frame.
fn chunk_for(mtu: usize) -> Result<u32, Error> {
    let longest = mtu + 14 + 8 + HEADROOM;
    match longest {
        0..=2048 => Ok(2048),
        2049..=4096 => Ok(4096),
        _ => Err(Error::Refused(format!(
            "AF_XDP receives frames of up to {} bytes, the interface's MTU is {mtu}: lower it, or use --port xdp or af-packet",
            4096 - HEADROOM
        ))),
    }
}

/// Lets the kernel receive into every chunk.
fn give_all_chunks(socket: &mut Receiving) {
    socket.umem.addresses().for_each(|address| socket.fill.push(address));
    socket.fill.submit();
}

/// Gives the XDP program the socket of each queue.
fn redirect(ebpf: &mut Ebpf, sockets: &[Receiving]) -> Result<(), Error> {
    let error = |e: &dyn std::error::Error| bpf::program_error("to_socket", e);
    let map: &mut Map =
        ebpf.map_mut("sockets").ok_or_else(|| Error::Refused("there is no map 'sockets'".into()))?;
    let mut map = XskMap::try_from(map).map_err(|e| error(&e))?;
    for (queue, socket) in sockets.iter().enumerate() {
        map.set(queue as u32, socket.fd.as_raw_fd(), 0).map_err(|e| error(&e))?;
    }
    Ok(())
}

/// The sockets by queue.
struct XdpQueues {
    sockets: Vec<Receiving>,
    batch: Vec<libc::xdp_desc>,
}

impl XdpQueues {
    /// Counts up to a batch of frames of one queue and gives their chunks back; returns how many there were.
    fn drain(&mut self, queue: usize, shared: &Shared) -> usize {
        let socket = &mut self.sockets[queue];
        self.batch.clear();
        self.batch.extend(std::iter::from_fn(|| socket.frames.pop()).take(BATCH));
        if self.batch.is_empty() {
            return 0;
        }
        let now_ns = monotonic_ns();
        let cpu = rustix::thread::sched_getcpu() as u32;
        shared.count(|account| {
            let before = account.frames();
            for frame in &self.batch {
                let len = frame.len as usize;
                account.observe(socket.umem.bytes(frame.addr, len), len, now_ns);
            }
            account.add_to_queue(cpu, queue as u32, account.frames() - before);
        });
        for frame in &self.batch {
            socket.fill.push(socket.umem.chunk_of(frame.addr));
        }
        socket.fill.submit();
        socket.frames.release();
        if socket.fill.needs_wakeup() {
            // A failure is no loss: `poll` wakes the driver as well.
            let _ = socket.kick();
        }
        self.batch.len()
    }
}

impl Receive for XdpQueues {
    fn receive(&mut self, shared: &Shared) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let frames: usize = (0..self.sockets.len()).map(|queue| self.drain(queue, shared)).sum();
            if frames == 0 {
                break;
            }
        }
        let mut poll: Vec<_> = self.sockets.iter().map(|s| PollFd::new(&s.fd, PollFlags::IN)).collect();
        wait_readable(&mut poll, WAIT_MS).doing("wait for AF_XDP sockets")
    }
}
