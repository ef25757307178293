//! AF_PACKET: the port that always works. The generator hands frames to the driver by `sendmmsg`, past the queueing
//! discipline; the receiver ([`receiver`]) reads a ring that the kernel fills.

mod receiver;

pub use receiver::receiver;

use super::user_generator::crew::{Tally, Transmit, UserGenerator};
use super::user_generator::{FrameSource, Pacer};
use super::{Target, monotonic_ns};
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::sockets::{bind, new_socket, set_option};
use linerate_plan::Backend;
use linerate_wire::Traffic;
use rustix::net::{AddressFamily, SocketType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A generator that sends through AF_PACKET sockets, one thread and socket per CPU.
///
/// Frames count as sent when the kernel takes them. A frame that it does not take (ENOBUFS: the driver dropped it, a veth's
/// ring is full; EAGAIN: too many frames of this socket are under way) counts as refused and is offered again, so `refused`
/// counts attempts, and an interface's own drop counter may show the same ones.
pub type AfPacketGenerator = UserGenerator<PacketSender>;

impl AfPacketGenerator {
    /// See [`generator`](super::generator).
    ///
    /// # Errors
    /// Frames longer than an interface takes; no privilege (CAP_NET_RAW).
    pub fn new(
        namespace: &Netns,
        targets: &[Target],
        traffic: &Traffic,
        cpus: &[u32],
    ) -> Result<Self, Error> {
        Self::with(Backend::AfPacket, targets, traffic, cpus, |&Target { ifindex, .. }, _, longest| {
            let socket = namespace.enter(|| PacketSender::open(ifindex))?;
            let socket =
                socket.doing(format_args!("open an AF_PACKET socket on interface number {ifindex}"))?;
            let (buffers, vectors, messages) = (Vec::new(), Vec::new(), Vec::new());
            Ok(PacketSender { socket, ifindex, longest, buffers, vectors, messages })
        })
    }
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
pub struct PacketSender {
    socket: OwnedFd,
    ifindex: u32,
    longest: usize,
    /// `messages` point to `vectors`, these into `buffers`; all three are replaced together.
    buffers: Vec<u8>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
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
        self.vectors = chunks.map(|c| libc::iovec { iov_base: c.as_mut_ptr().cast(), iov_len: 0 }).collect();
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
        for (buffer, vector) in self.buffers.chunks_exact_mut(stride).zip(&mut self.vectors).take(frames) {
            vector.iov_len = source.fill(buffer, now_ns);
        }
    }

    /// Offers the frames from `done` on until all are taken or time is up; returns the number of frames done with.
    fn offer(&mut self, frames: usize, pacer: &Pacer, tally: &Tally) -> Result<usize, Error> {
        let mut done = 0;
        while done < frames {
            let (rest, flags) = (&mut self.messages[done..frames], libc::MSG_DONTWAIT);
            // SAFETY: the headers point to vectors and buffers that this value owns; none has a name or control data.
            let sent = unsafe {
                libc::sendmmsg(self.socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, flags)
            };
            if sent > 0 {
                let bytes = self.vectors[done..][..sent as usize].iter().map(|v| v.iov_len as u64).sum();
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
                    let operation = format_args!("send frames through interface number {}", self.ifindex);
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
        source.unsent((frames - *done.as_ref().unwrap_or(&0)) as u64);
        done.map(|done| done as u32)
    }
}
