//! AF_XDP: frames in memory that this process shares with the driver. The main way on cards whose drivers have zero copy;
//! everywhere else in copy mode, which needs no privilege beyond a namespace of one's own.
//!
//! Reading order: af_xdp/rings.rs, af_xdp/socket.rs, the generator here, af_xdp/receiver.rs.

mod receiver;
mod rings;
mod socket;

pub use receiver::receiver;

use self::socket::Transmitting;
use super::user_generator::crew::{Tally, Transmit, UserGenerator};
use super::user_generator::{FrameSource, Pacer};
use super::{Target, monotonic_ns, xdp_receiver};
use crate::bpf;
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::sockets::set_option;
use aya::Ebpf;
use linerate_plan::Backend;
use linerate_wire::{LARGEST_BATCH, Traffic};
use std::io;
use std::time::{Duration, Instant};

/// Memory for each thread's frames.
const MEMORY: u32 = 4 << 20;

/// How long the last frames may take to leave.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// `XDP_MAX_TX_SKB_BUDGET` (include/uapi/linux/if_xdp.h, since Linux 6.17): frames sent per call in copy mode, else 32.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// A generator that sends through AF_XDP sockets: thread number `i` has one on queue `i` of the interface.
///
/// Frames count as sent when the kernel reports them as completed. In copy mode a frame that the driver dropped (a veth's
/// ring is full) counts as refused: its sequence number is used up, and the interface's own drop counter shows it as well.
pub type AfXdpGenerator = UserGenerator<XdpSender>;

impl AfXdpGenerator {
    /// See [`generator`](super::generator). No XDP program is needed, and none loaded, in copy mode.
    ///
    /// # Errors
    /// Frames too long for the interface, fewer queues than CPUs, no privilege (CAP_NET_RAW).
    pub fn new(
        namespace: &Netns,
        targets: &[Target],
        traffic: &Traffic,
        cpus: &[u32],
    ) -> Result<Self, Error> {
        Self::with(Backend::AfXdp, targets, traffic, cpus, |&Target { ifindex, .. }, thread, longest| {
            let mut sender = namespace.run(|| XdpSender::open(ifindex, thread as u32, longest))?;
            // Drivers such as i40e do not send from zero-copy queues before an XDP program is attached. Where another one is attached
            // already, or none may be, this is no error: the first load shows whether frames leave.
            if sender.socket.zero_copy && thread + 1 == cpus.len() {
                sender.program = attach_pass(namespace, ifindex).ok();
            }
            Ok(sender)
        })
    }
}

fn attach_pass(namespace: &Netns, ifindex: u32) -> Result<Ebpf, Error> {
    let mut ebpf = bpf::SOCKETS.load(&[], &[], &[])?;
    xdp_receiver::attach(&mut ebpf, "pass", namespace, ifindex)?;
    Ok(ebpf)
}

/// One thread's socket and frames.
pub struct XdpSender {
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
    program: Option<Ebpf>,
}

impl XdpSender {
    fn open(ifindex: u32, queue: u32, longest: usize) -> Result<Self, Error> {
        let chunk = if longest <= 2048 { 2048 } else { 4096 };
        let socket = Transmitting::transmitting(ifindex, queue, chunk, MEMORY / chunk)?;
        // Where the kernel does not know it, more calls are made.
        let _ = set_option(&socket.fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &LARGEST_BATCH);
        let free: Vec<u64> = socket.umem.addresses().collect();
        let lengths = vec![0; free.len()];
        Ok(XdpSender { socket, free, lengths, chunk, dropped: 0, ifindex, queue, program: None })
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
            tx.push(libc::xdp_desc { addr, len: len as u32, options: 0 });
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
                None | Some(Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR)) => break,
                Some(_) => {
                    error.map_or(Ok(()), Err).doing(format_args!("send frames through {}", self.name()))?
                }
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
            bytes +=
                self.lengths.get((address / u64::from(self.chunk)) as usize).map_or(0, |len| u64::from(*len));
        }
        self.socket.completion.release();
        tally.sent(frames, bytes);
    }

    fn under_way(&self) -> usize {
        self.lengths.len() - self.free.len()
    }
}

impl Transmit for XdpSender {
    fn send(&mut self, source: &mut FrameSource, due: u32, _: &Pacer, tally: &Tally) -> Result<u32, Error> {
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

    fn idle(&mut self, tally: &Tally) -> u64 {
        if self.under_way() > 0 {
            // An error comes back with the next frame.
            let _ = self.kick(tally);
            self.reap(tally);
        }
        u64::MAX
    }

    fn finish(&mut self, tally: &Tally) -> Result<(), Error> {
        let until = Instant::now() + LAST_FRAMES;
        while self.under_way() > 0 {
            self.kick(tally)?;
            self.reap(tally);
            if self.under_way() > 0 && Instant::now() > until {
                let operation =
                    format_args!("send the last {} frames through {}", self.under_way(), self.name());
                return Err(Error::system(operation, io::ErrorKind::TimedOut));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}
