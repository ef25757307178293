//! Answers test frames as the host that they are addressed to would, so that a DUT sees its connections in both directions; and counts
//! the answers at the other end.

use super::af_packet::bind_packet;
use super::port::Worker;
use crate::error::{Doing, Error};
use crate::net::Netns;
use crate::net::netlink::Route;
use crate::sockets::set_option;
use crate::sockets::wait_readable;
use linerate_wire::{Observed, Recognised, SequenceWindow, recognise};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, socket_with,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Room for frames that arrive while the thread does not run: some 80,000 short ones.
const RECEIVE_BUFFER: i32 = 64 << 20;
/// The longest wait, so that the end is noticed.
const WAIT_MS: i64 = 50;
/// The longest frame that an interface hands over.
const LONGEST: usize = 1 << 16;

/// A thread that answers every test frame of a campaign that arrives at an interface, once, through the same interface, or only counts
/// them. The frames must reach its AF_PACKET socket: see [`Port::let_through`](super::Port::let_through). It ends when dropped.
pub struct Answerer {
    frames: Arc<AtomicU64>,
    _thread: Worker,
}

impl Answerer {
    /// Starts to answer. `campaign`: high byte of the stream ids.
    ///
    /// # Errors
    /// No privilege (CAP_NET_RAW), no such interface.
    pub fn start(namespace: &Netns, ifindex: u32, campaign: u8) -> Result<Answerer, Error> {
        let own = Route::open(namespace)?.link_by_index(ifindex)?.mac;
        Self::spawn(namespace, ifindex, move |socket, frame| {
            let ours = linerate_wire::answer(frame) == Some(campaign);
            // The XDP receiver has changed the address that the frame was sent to.
            ours && {
                frame[6..12].copy_from_slice(&own);
                // A frame that the interface refuses is lost: its flow is shown again when the answers are counted.
                rustix::net::send(socket, frame, SendFlags::empty()).is_ok()
            }
        })
    }

    /// Starts to count the answers that arrive at a generator's interface: each frame's once, as a late one of an earlier load may
    /// come beside that of this. `campaign`: high byte of the stream ids.
    ///
    /// # Errors
    /// As [`Answerer::start`].
    pub fn listen(namespace: &Netns, ifindex: u32, campaign: u8) -> Result<Answerer, Error> {
        let mut answered = BTreeMap::new();
        Self::spawn(namespace, ifindex, move |_, frame| {
            is_first_answer(&mut answered, frame, campaign)
        })
    }

    fn spawn(
        namespace: &Netns,
        ifindex: u32,
        mut take: impl FnMut(&OwnedFd, &mut [u8]) -> bool + Send + 'static,
    ) -> Result<Answerer, Error> {
        let socket = namespace.enter(|| open(ifindex))?;
        let socket = socket.doing(format_args!(
            "open an AF_PACKET socket on interface number {ifindex}"
        ))?;
        let frames = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&frames);
        let run = move |stop: &AtomicBool| {
            let mut frame = vec![0; LONGEST];
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, _)) = recv(&socket, &mut frame[..], RecvFlags::empty()) else {
                    let _ = wait_readable(&mut [PollFd::new(&socket, PollFlags::IN)], WAIT_MS);
                    continue;
                };
                count.fetch_add(
                    take(&socket, &mut frame[..length]).into(),
                    Ordering::Relaxed,
                );
            }
            Ok(())
        };
        Ok(Answerer {
            frames,
            _thread: Worker::spawn("answerer", None, run)?,
        })
    }

    /// Frames answered, or counted, so far.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }
}

/// Whether it is the first answer to a frame of the campaign. `answered`: the sequence numbers of each stream.
fn is_first_answer(
    answered: &mut BTreeMap<u16, SequenceWindow>,
    frame: &[u8],
    campaign: u8,
) -> bool {
    let Recognised::Test { signature, .. } = recognise(frame) else {
        return false;
    };
    signature.stream >> 8 == u16::from(campaign)
        && matches!(
            answered
                .entry(signature.stream)
                .or_default()
                .observe(signature.sequence),
            Observed::New | Observed::Reordered
        )
}

fn open(ifindex: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    // Before Linux 4.20 the socket sees its own answers, too: they are no test frames of the direction that is answered.
    let _ = set_option(
        &socket,
        libc::SOL_PACKET,
        libc::PACKET_IGNORE_OUTGOING,
        &1i32,
    );
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
    // Without privilege the system's limit counts: frames are then lost, and those flows shown again.
    let _ = set_option(
        &socket,
        libc::SOL_SOCKET,
        libc::SO_RCVBUFFORCE,
        &RECEIVE_BUFFER,
    )
    .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER));
    bind_packet(&socket, ifindex, libc::ETH_P_ALL as u16)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::{
        Family, FlowSpace, FrameSpec, FrameTemplate, MacAddr, Signature, Transport,
    };

    #[test]
    fn an_answer_that_comes_twice_counts_once() {
        let spec = FrameSpec::new(MacAddr([2; 6]), MacAddr([4; 6]), Family::V4, Transport::Udp);
        let (template, flow) = (
            FrameTemplate::new(&spec, 64).unwrap(),
            FlowSpace::benchmark(Family::V4, 9).unwrap().flow(0),
        );
        let mut answered = BTreeMap::new();
        let mut counts = |stream, sequence| {
            let mut frame = vec![0; 64];
            let signature = Signature {
                stream,
                sequence,
                time_ns: 0,
            };
            let length = template.fill(&mut frame, &flow, Some(&signature));
            is_first_answer(&mut answered, &frame[..length], 7)
        };
        let arrived = [
            (0x0700, 1),
            (0x0700, 0),
            (0x0700, 1),
            (0x0701, 1),
            (0x0800, 2),
        ];
        assert_eq!(
            arrived.map(|(stream, sequence)| counts(stream, sequence)),
            [true, true, false, true, false]
        );
    }
}
