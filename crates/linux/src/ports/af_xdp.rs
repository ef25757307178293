//! AF_XDP: frames in memory that this process shares with the driver. The main way on cards whose drivers have zero copy;
//! everywhere else in copy mode, which needs no privilege beyond a namespace of one's own. To receive, an XDP program hands every
//! frame of a queue to the queue's socket.
//!
//! af_xdp/socket.rs has the sockets with their memory and rings.

mod socket;

use self::socket::{Receiving, Transmitting, dropped};
use super::attached::{Pass, attach};
use super::frame_source::FrameSource;
use super::pacer::Pacer;
use super::port::{Arrival, Made, Target};
use super::user_generator::{Tally, Transmit, UserGenerator};
use super::user_receiver::{Receive, Shared, UserReceiver};
use crate::bpf;
use crate::clock::monotonic_ns;
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::net::netlink::Route;
use crate::sockets::{set_option, wait_readable};
use aya::Ebpf;
use aya::maps::XskMap;
use linerate_plan::Backend;
use linerate_wire::{Filter, LARGEST_BATCH, Traffic};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory for each thread's frames.
const MEMORY: u32 = 4 << 20;

/// How long the last frames may take to leave.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// `XDP_MAX_TX_SKB_BUDGET` (include/uapi/linux/if_xdp.h, since Linux 6.17): frames sent per call in copy mode, else 32.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

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

/// A generator that sends through AF_XDP sockets: thread number `i` has one on queue `i` of the interface.
///
/// Frames count as sent when the kernel reports them as completed. In copy mode a frame that the driver dropped (a veth's
/// ring is full) counts as refused: its sequence number is used up, and the interface's own drop counter shows it as well. No XDP
/// program is needed, and none loaded, in copy mode.
///
/// # Errors
/// Frames too long for the interface, fewer queues than CPUs, no privilege (CAP_NET_RAW).
pub(super) fn generator(
    namespace: &Netns,
    targets: &[Target],
    traffic: &Traffic,
    cpus: &[u32],
) -> Made {
    UserGenerator::boxed(
        Backend::AfXdp,
        targets,
        traffic,
        cpus,
        |&Target { ifindex, .. }, thread, longest| {
            let mut sender = namespace.run(|| XdpSender::open(ifindex, thread as u32, longest))?;
            // Drivers such as i40e do not send from zero-copy queues before an XDP program is attached. Where another one is attached
            // already, or none may be, this is no error: the first load shows whether frames leave.
            if sender.socket.zero_copy && thread + 1 == cpus.len() {
                sender.pass = Pass::attach(namespace, ifindex).ok();
            }
            Ok(sender)
        },
    )
}

/// One thread's socket and frames.
struct XdpSender {
    socket: Transmitting,
    /// Chunks that the kernel does not have.
    free: Vec<u64>,
    /// Length of the frame in each chunk, by its number.
    lengths: Vec<u16>,
    chunk: u32,
    /// Frames in the kernel's hands that it has said it dropped: their completions are still to come.
    dropped: u64,
    ifindex: u32,
    queue: u32,
    /// An XDP program that the driver wants attached.
    pass: Option<Arc<Pass>>,
}

impl XdpSender {
    fn open(ifindex: u32, queue: u32, longest: usize) -> Result<Self, Error> {
        let chunk = if longest <= 2048 { 2048 } else { 4096 };
        let socket = Transmitting::transmitting(ifindex, queue, chunk, MEMORY / chunk)?;
        // Where the kernel does not know it, more calls are made.
        let _ = set_option(
            &socket.fd,
            libc::SOL_XDP,
            XDP_MAX_TX_SKB_BUDGET,
            &LARGEST_BATCH,
        );
        let free: Vec<u64> = socket.umem.addresses().collect();
        let lengths = vec![0; free.len()];
        Ok(XdpSender {
            socket,
            free,
            lengths,
            chunk,
            dropped: 0,
            ifindex,
            queue,
            pass: None,
        })
    }

    fn name(&self) -> String {
        format!("queue {} of interface number {}", self.queue, self.ifindex)
    }

    /// Builds up to `due` frames and puts them into the tx ring; returns their number. In copy mode the ring must not become a
    /// queue: frames that the kernel has not taken by now mean that the link is slower, and would only grow stale.
    fn submit(&mut self, source: &mut FrameSource, due: u32) -> u32 {
        let tx = &mut self.socket.frames;
        if !self.socket.zero_copy && tx.pending() >= due {
            return 0;
        }
        let frames = due.min(tx.room(due)).min(self.free.len() as u32);
        let now_ns = monotonic_ns();
        for addr in self.free.drain(self.free.len() - frames as usize..) {
            let len = source.fill(self.socket.umem.chunk(addr), now_ns);
            self.lengths[(addr / u64::from(self.chunk)) as usize] = len as u16;
            tx.push(libc::xdp_desc {
                addr,
                len: len as u32,
                options: 0,
            });
        }
        tx.submit();
        frames
    }

    /// Makes the kernel take the frames in the tx ring. In copy mode the work is done here, a budget of frames per call; in
    /// zero-copy mode the driver is woken if it sleeps.
    fn kick(&mut self, tally: &Tally) -> Result<(), Error> {
        // Each call takes at least one frame, or there is no point in another.
        for _ in 0..=self.lengths.len() {
            if !self.socket.frames.needs_wakeup() {
                break;
            }
            let before = self.socket.frames.pending();
            let error = self.socket.kick().err();
            let after = self.socket.frames.pending();
            match error.as_ref().map(|e| e.raw_os_error()) {
                Some(Some(libc::EBUSY)) if !self.socket.zero_copy => {
                    // "SKB completed but not sent" (net/xdp/xsk.c, __xsk_generic_xmit).
                    self.dropped += 1;
                    tally.refused(1);
                }
                None | Some(Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR))
                    if after < before => {}
                None | Some(Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR)) => {
                    break;
                }
                Some(_) => error
                    .map_or(Ok(()), Err)
                    .doing(format_args!("send frames through {}", self.name()))?,
            }
            if after == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes back the chunks of frames that have left, and counts these.
    fn reap(&mut self, tally: &Tally) {
        let (mut frames, mut bytes) = (0, 0);
        while let Some(address) = self.socket.completion.pop() {
            let address = self.socket.umem.chunk_of(address);
            self.free.push(address);
            if self.dropped > 0 {
                self.dropped -= 1;
                continue;
            }
            frames += 1;
            bytes += self
                .lengths
                .get((address / u64::from(self.chunk)) as usize)
                .map_or(0, |len| u64::from(*len));
        }
        self.socket.completion.release();
        tally.sent(frames, bytes);
    }

    fn under_way(&self) -> usize {
        self.lengths.len() - self.free.len()
    }
}

impl Transmit for XdpSender {
    fn send(
        &mut self,
        source: &mut FrameSource,
        due: u32,
        _: &Pacer,
        tally: &Tally,
    ) -> Result<u32, Error> {
        if self.free.len() < due as usize {
            self.reap(tally);
        }
        let frames = self.submit(source, due);
        self.kick(tally)?;
        self.reap(tally);
        if frames == 0 {
            std::thread::yield_now();
        }
        Ok(frames)
    }

    fn idle(&mut self, tally: &Tally) {
        if self.under_way() > 0 {
            // An error comes back with the next frame.
            let _ = self.kick(tally);
            self.reap(tally);
        }
    }

    fn finish(&mut self, tally: &Tally) -> Result<(), Error> {
        let until = Instant::now() + LAST_FRAMES;
        while self.under_way() > 0 {
            self.kick(tally)?;
            self.reap(tally);
            if self.under_way() > 0 && Instant::now() > until {
                let operation = format_args!(
                    "send the last {} frames through {}",
                    self.under_way(),
                    self.name()
                );
                return Err(Error::system(operation, io::ErrorKind::TimedOut));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// A receiver with an AF_XDP socket on every queue of an interface and one thread for all of them.
///
/// All frames end here, foreign ones too: nothing goes up the network stack. Latency is taken when a frame is read, at most 64
/// frames to a look at the clock. Frames without room in a socket are reported as `refused`: the tester lost them, not the DUT.
///
/// # Errors
/// No privilege (XDP programs need root, or CAP_BPF and CAP_NET_ADMIN), another XDP program on the interface, an MTU above the
/// size of a page; `filter.pass_foreign`.
pub(super) fn receiver(
    namespace: &Netns,
    Arrival { ifindex, queues }: Arrival,
    filter: Filter,
    cpu: Option<u32>,
) -> Made {
    if filter.pass_foreign {
        let why = "an AF_XDP receiver passes nothing up the stack: use --backend xdp or af-packet where others need ARP";
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
    let receiver = XdpQueues {
        sockets,
        batch: Vec::with_capacity(BATCH),
    };
    UserReceiver::spawn(Backend::AfXdp, filter, cpu, receiver, dropped)
}

/// The smallest chunk that holds the interface's longest frame.
fn chunk_for(mtu: usize) -> Result<u32, Error> {
    let longest = mtu + 14 + 8 + HEADROOM;
    match longest {
        0..=2048 => Ok(2048),
        2049..=4096 => Ok(4096),
        _ => Err(Error::Refused(format!(
            "AF_XDP receives frames of up to {} bytes, the interface's MTU is {mtu}: lower it, or use --backend xdp or af-packet",
            4096 - HEADROOM
        ))),
    }
}

/// Lets the kernel receive into every chunk.
fn give_all_chunks(socket: &mut Receiving) {
    socket
        .umem
        .addresses()
        .for_each(|address| socket.fill.push(address));
    socket.fill.submit();
}

/// Gives the XDP program the socket of each queue.
fn redirect(ebpf: &mut Ebpf, sockets: &[Receiving]) -> Result<(), Error> {
    let error = |e: &dyn std::error::Error| bpf::program_error("to_socket", e);
    let map = ebpf
        .map_mut("sockets")
        .ok_or_else(|| Error::Missing("BPF map 'sockets'".into()))?;
    let mut map = XskMap::try_from(map).map_err(|e| error(&e))?;
    for (queue, socket) in sockets.iter().enumerate() {
        map.set(queue as u32, socket.fd.as_raw_fd(), 0)
            .map_err(|e| error(&e))?;
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
        self.batch
            .extend(std::iter::from_fn(|| socket.frames.pop()).take(BATCH));
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
            let frames: usize = (0..self.sockets.len())
                .map(|queue| self.drain(queue, shared))
                .sum();
            if frames == 0 {
                break;
            }
        }
        let mut poll: Vec<_> = self
            .sockets
            .iter()
            .map(|s| PollFd::new(&s.fd, PollFlags::IN))
            .collect();
        wait_readable(&mut poll, WAIT_MS).doing("wait for AF_XDP sockets")
    }
}
