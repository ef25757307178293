//! AF_PACKET: the port that always works. The generator hands frames to the driver by `sendmmsg`, past the queueing
//! discipline; the receiver reads a ring of blocks (TPACKET_V3) that the kernel fills with frames and hands over whole.

use super::frame_source::FrameSource;
use super::pacer::Pacer;
use super::port::{Arrival, Made, Target};
use super::stamps::Asked;
use super::user_generator::{Tally, Transmit, UserGenerator};
use super::user_receiver::{Account, Kernel, Receive, Shared, UserReceiver};
use crate::clock::{clock_ns, monotonic_ns};
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::net::netlink::message::{u16_at, u32_at};
use crate::sockets::{Mapping, bind, get_option, new_socket, set_option, wait_readable};
use linerate_hosts::stamps::Stamp;
use linerate_plan::Backend;
use linerate_wire::{Filter, Traffic};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const BLOCK: usize = 1 << 18;
/// Together 32 MiB: some 200,000 short frames, for when the thread does not run.
const BLOCKS: usize = 128;
/// A block is handed over when full, or after this time in milliseconds; it is the shortest there is.
const RETIRE_MS: u32 = 1;
/// The longest wait, so that the end is noticed.
const WAIT_MS: i64 = 50;

/// A generator that sends through AF_PACKET sockets, one thread and socket per CPU.
///
/// Frames count as sent when the kernel takes them. A frame that it does not take (ENOBUFS: the driver dropped it, a veth's
/// ring is full; EAGAIN: too many frames of this socket are under way) counts as refused and is offered again, so `refused`
/// counts attempts, and an interface's own drop counter may show the same ones.
///
/// # Errors
/// Frames longer than an interface takes; no privilege (CAP_NET_RAW).
pub(super) fn generator(
    namespace: &Netns,
    targets: &[Target],
    traffic: &Traffic,
    cpus: &[u32],
) -> Made {
    UserGenerator::boxed(
        Backend::AfPacket,
        targets,
        traffic,
        cpus,
        |&Target { ifindex, .. }, _, longest| {
            let socket = namespace.enter(|| PacketSender::open(ifindex))?;
            let socket = socket.doing(format_args!(
                "open an AF_PACKET socket on interface number {ifindex}"
            ))?;
            let (buffers, vectors, messages) = (Vec::new(), Vec::new(), Vec::new());
            Ok(PacketSender {
                socket,
                ifindex,
                longest,
                buffers,
                vectors,
                messages,
                asked: None,
            })
        },
    )
}

/// Binds an AF_PACKET socket to an interface; with protocol 0 it receives nothing.
pub(super) fn bind_packet(socket: &OwnedFd, ifindex: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: ifindex as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    bind(socket, &address)
}

/// One thread's socket and frames.
struct PacketSender {
    socket: OwnedFd,
    ifindex: u32,
    longest: usize,
    /// `messages` point to `vectors`, these into `buffers`; all three are replaced together.
    buffers: Vec<u8>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Frames whose stamps are asked for.
    asked: Option<Asked>,
}

// SAFETY: the pointers lead only into heap memory that the same value owns.
unsafe impl Send for PacketSender {}

impl PacketSender {
    fn open(ifindex: u32) -> io::Result<OwnedFd> {
        // Protocol 0: the socket never receives, which would cost time for every frame.
        let socket = new_socket(AddressFamily::PACKET, SocketType::RAW)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        let bytes = 8i32 << 20;
        // Where the system's limit cannot be passed, it is used: more EAGAIN, nothing else.
        let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes));
        bind_packet(&socket, ifindex, 0)?;
        Ok(socket)
    }

    /// Room for this number of frames.
    fn reserve(&mut self, frames: usize) {
        if frames <= self.messages.len() {
            return;
        }
        let stride = self.longest.next_multiple_of(64);
        self.buffers = vec![0; frames * stride];
        let chunks = self.buffers.chunks_exact_mut(stride);
        self.vectors = chunks
            .map(|c| libc::iovec {
                iov_base: c.as_mut_ptr().cast(),
                iov_len: 0,
            })
            .collect();
        let message = |vector: &mut libc::iovec| {
            // SAFETY: plain data; zero is a valid value of every field.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (vector, 1);
            message
        };
        self.messages = self.vectors.iter_mut().map(message).collect();
    }

    fn build(&mut self, source: &mut FrameSource, frames: usize, now_ns: u64) {
        self.reserve(frames);
        let stride = self.longest.next_multiple_of(64);
        let each = self
            .buffers
            .chunks_exact_mut(stride)
            .zip(&mut self.vectors)
            .zip(&mut self.messages);
        for ((buffer, vector), message) in each.take(frames) {
            vector.iov_len = source.fill(buffer, now_ns);
            if let Some(asked) = &self.asked {
                asked.of(&mut message.msg_hdr, source.stamped());
            }
        }
    }

    /// Offers the frames from `done` on until all are taken or time is up; returns the number of frames done with.
    fn offer(&mut self, frames: usize, pacer: &Pacer, tally: &Tally) -> Result<usize, Error> {
        let mut done = 0;
        while done < frames {
            let (rest, flags) = (&mut self.messages[done..frames], libc::MSG_DONTWAIT);
            // SAFETY: the headers point to vectors, buffers and control data that this value owns; none has a name.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as u32,
                    flags,
                )
            };
            if sent > 0 {
                let bytes = self.vectors[done..][..sent as usize]
                    .iter()
                    .map(|v| v.iov_len as u64)
                    .sum();
                tally.sent(sent as u64, bytes);
                done += sent as usize;
                // The call ended at a frame that was refused, though it does not say why.
                tally.refused(u64::from(done < frames));
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::EAGAIN) => tally.refused(1),
                Some(libc::EINTR) => {}
                _ => {
                    let operation =
                        format_args!("send frames through interface number {}", self.ifindex);
                    return Err(Error::system(operation, error));
                }
            }
            if tally.stopping() || monotonic_ns() >= pacer.deadline_ns {
                break;
            }
            std::thread::yield_now();
        }
        Ok(done)
    }
}

impl Transmit for PacketSender {
    fn send(
        &mut self,
        source: &mut FrameSource,
        due: u32,
        pacer: &Pacer,
        tally: &Tally,
    ) -> Result<u32, Error> {
        let frames = due as usize;
        self.build(source, frames, monotonic_ns());
        let done = self.offer(frames, pacer, tally);
        let taken = *done.as_ref().unwrap_or(&0);
        source.unsent((frames - taken) as u64);
        if let Some(asked) = &mut self.asked {
            asked.sent(&self.messages[..taken]);
            asked
                .collect(&self.socket)
                .doing("read time stamps of sent frames")?;
        }
        done.map(|done| done as u32)
    }

    fn stamp(&mut self, by_card: bool) -> io::Result<()> {
        self.asked = Some(Asked::new(&self.socket, by_card, self.longest)?);
        Ok(())
    }

    fn begin(&mut self) {
        self.asked.iter_mut().for_each(Asked::forget);
    }

    fn stamps(&self) -> &[Stamp] {
        self.asked.as_ref().map_or(&[], Asked::stamps)
    }

    fn finish(&mut self, _: &Tally) -> Result<(), Error> {
        let asked = self
            .asked
            .as_mut()
            .map_or(Ok(()), |asked| asked.collect_last(&self.socket));
        asked.doing("read the last time stamps of sent frames")
    }
}

/// A receiver that reads an AF_PACKET socket in promiscuous mode, on a thread of its own. It needs nothing of the driver, and
/// frames go up the network stack all the same, whatever the options say.
///
/// Latency is taken from the kernel's own time of each frame's arrival at the socket (CLOCK_REALTIME, moved to CLOCK_MONOTONIC by
/// the difference when its block is read), so that waiting in the ring does not count. Frames that were dropped because the ring
/// was full (`tp_drops`) are reported as `refused`: the tester lost them, not the DUT. The kernel does not report the queue of a
/// frame: all count as queue 0, on the CPU that read them.
///
/// # Errors
/// No privilege (CAP_NET_RAW), no such interface.
pub(super) fn receiver(
    namespace: &Netns,
    Arrival { ifindex, .. }: Arrival,
    filter: Filter,
    cpu: Option<u32>,
) -> Made {
    let ring = namespace.enter(|| Ring::open(ifindex))?;
    let ring = ring.doing(format_args!(
        "open an AF_PACKET ring on interface number {ifindex}"
    ))?;
    let kernel = RingSocket {
        socket: ring.socket.clone(),
        dropped: AtomicU64::new(0),
    };
    UserReceiver::spawn(Backend::AfPacket, filter, cpu, ring, kernel)
}

/// The socket of a ring.
struct RingSocket {
    socket: Arc<OwnedFd>,
    dropped: AtomicU64,
}

impl Kernel for RingSocket {
    fn dropped(&self) -> u64 {
        // Reading the statistics sets them to 0.
        let zero = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        let new = get_option(
            &self.socket,
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            zero,
        );
        let new = new.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.dropped.fetch_add(new, Ordering::Relaxed) + new
    }

    fn stamp(&self, by_card: bool) -> io::Result<()> {
        let [taken, shown] = match by_card {
            true => [
                libc::SOF_TIMESTAMPING_RX_HARDWARE,
                libc::SOF_TIMESTAMPING_RAW_HARDWARE,
            ],
            false => [
                libc::SOF_TIMESTAMPING_RX_SOFTWARE,
                libc::SOF_TIMESTAMPING_SOFTWARE,
            ],
        };
        set_option(
            &self.socket,
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            &(taken | shown),
        )?;
        set_option(
            &self.socket,
            libc::SOL_PACKET,
            libc::PACKET_TIMESTAMP,
            &shown,
        )
    }
}

/// The socket and its blocks.
struct Ring {
    socket: Arc<OwnedFd>,
    blocks: Mapping,
    /// The block that the kernel hands over next.
    next: usize,
}

impl Ring {
    fn open(ifindex: u32) -> io::Result<Self> {
        let level = libc::SOL_PACKET;
        // Protocol 0: nothing arrives before the ring is there and the socket is bound to one interface.
        let socket = new_socket(AddressFamily::PACKET, SocketType::RAW)?;
        set_option(
            &socket,
            level,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as i32),
        )?;
        let frame = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: frame,
            tp_frame_nr: (BLOCK * BLOCKS) as u32 / frame,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, level, libc::PACKET_RX_RING, &request)?;
        // Since Linux 4.20; older kernels also deliver frames that the interface sends, which `observe` skips.
        let _ = set_option(&socket, level, libc::PACKET_IGNORE_OUTGOING, &1i32);
        let blocks = Mapping::shared(&socket, BLOCK * BLOCKS, 0)?;
        bind_packet(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        let (mr_ifindex, mr_type) = (ifindex as i32, libc::PACKET_MR_PROMISC as u16);
        let promiscuous = libc::packet_mreq {
            mr_ifindex,
            mr_type,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&socket, level, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        Ok(Ring {
            socket: Arc::new(socket),
            blocks,
            next: 0,
        })
    }

    /// The first byte of the next block, and who has it.
    fn block(&self) -> (*const u8, &AtomicU32) {
        // SAFETY: `next` < BLOCKS, so this is inside the mapping; a block starts with its page-aligned descriptor.
        let start = unsafe { self.blocks.base().add(self.next * BLOCK) };
        // SAFETY: the status follows two u32 (`struct tpacket_block_desc`), is aligned, lives as long as `self`, and both
        // sides use it as one word.
        let status = unsafe { AtomicU32::from_ptr(start.add(8).cast()) };
        (start, status)
    }
}

impl Receive for Ring {
    fn receive(&mut self, shared: &Shared) -> Result<(), Error> {
        loop {
            let (start, status) = self.block();
            // Acquire: makes the kernel's writes before it gave the block away visible.
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the block is BLOCK bytes long, and is ours until the status is set back below.
            let block = unsafe { std::slice::from_raw_parts(start, BLOCK) };
            shared.count(|account| observe_block(account, block));
            // Release: the kernel gets the block after our last look at it.
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % BLOCKS;
        }
        let mut poll = [PollFd::new(&self.socket, PollFlags::IN)];
        wait_readable(&mut poll, WAIT_MS).doing("wait for an AF_PACKET ring")?;
        if !poll[0].revents().contains(PollFlags::ERR) {
            return Ok(());
        }
        let pending = get_option(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR, 0).unwrap_or(0);
        if pending == 0 {
            return Ok(());
        }
        Err(Error::system(
            "read an AF_PACKET ring",
            io::Error::from_raw_os_error(pending),
        ))
    }
}

/// Counts the frames of a block. Offsets are those of `struct tpacket_block_desc`: version, private area, status, number of
/// frames, offset of the first.
fn observe_block(account: &mut Account, block: &[u8]) {
    let clock_offset = clock_ns(libc::CLOCK_REALTIME).wrapping_sub(monotonic_ns());
    let (frames, first) = (
        u32_at(block, 12).unwrap_or(0),
        u32_at(block, 16).unwrap_or(0),
    );
    let (before, mut at) = (account.frames(), first as usize);
    for _ in 0..frames {
        let Some(length) = block
            .get(at..)
            .and_then(|header| observe(account, header, clock_offset))
        else {
            break;
        };
        at += length;
    }
    let cpu = rustix::thread::sched_getcpu() as u32;
    account.add_to_queue(cpu, 0, account.frames() - before);
}

/// Counts one frame, and gives the distance to the next. Offsets are those of `struct tpacket3_hdr`: next, seconds, nanoseconds, stored
/// length, length, status, offset of the frame; a `struct sockaddr_ll` follows it.
fn observe(account: &mut Account, header: &[u8], clock_offset: u64) -> Option<usize> {
    const ADDRESS: usize = size_of::<libc::tpacket3_hdr>();
    const PACKET_TYPE: usize = ADDRESS + std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
    let word = |at: usize| u32_at(header, at);
    let (next, stored, length) = (word(0)? as usize, word(12)? as usize, word(16)? as usize);
    let frame = header
        .get(usize::from(u16_at(header, 24)?)..)
        .and_then(|rest| rest.get(..stored));
    let outgoing = header.get(PACKET_TYPE) == Some(&libc::PACKET_OUTGOING);
    if let Some(frame) = frame.filter(|_| !outgoing) {
        // The kernel takes the outermost VLAN tag out of the frame.
        let status = word(20)?;
        let tag = if status & libc::TP_STATUS_VLAN_VALID != 0 {
            4
        } else {
            0
        };
        let arrived = u64::from(word(4)?) * 1_000_000_000 + u64::from(word(8)?);
        let by_card = status & libc::TP_STATUS_TS_RAW_HARDWARE != 0;
        let stamped = by_card || status & libc::TP_STATUS_TS_SOFTWARE != 0;
        // The time by a card's clock says nothing of the system's.
        let now = if by_card {
            monotonic_ns()
        } else {
            arrived.wrapping_sub(clock_offset)
        };
        account.observe_stamped(
            frame,
            length + tag,
            now,
            stamped.then_some((by_card, arrived)),
        );
    }
    Some(next)
}
