//! One netlink socket: send a request, read its answers until the acknowledgement or the end of the dump.

use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR,
};

use super::attributes::{align, attributes_after, text, u16_at, u32_at};
use crate::net::Error;
use crate::sockets::set_option;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, send, socket_with,
};

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG`: the kernel's words in an extended acknowledgement.
const ACK_TEXT: u16 = 1;
/// The kernel fills at most 32 KiB per read of a dump; single answers about cards with many functions can be longer.
const BUFFER: usize = 256 * 1024;
/// Bytes of requests that are sent at once; a socket's default send buffer holds three times as many.
const BATCH: usize = 64 * 1024;
/// No request of a pipeline is longer.
const LARGEST: usize = 256;
/// How long the kernel may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often a dump is begun again because the table changed meanwhile.
const DUMP_ATTEMPTS: usize = 8;

/// An errno, and the kernel's own words for it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) source: io::Error,
    pub(crate) detail: Option<String>,
}

impl Failure {
    pub(crate) fn into_error(self, operation: String) -> Error {
        Error::Kernel { operation, source: self.source, detail: self.detail }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Failure {
        Failure { source, detail: None }
    }
}

/// A netlink socket with its own numbering of requests.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// What one message means for the request under way.
enum Step {
    Continue,
    Finished,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open(protocol: libc::c_int) -> io::Result<Socket> {
        let protocol = NonZero::new(protocol as u32).map(Protocol::from_raw);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        // Both are niceties of newer kernels (4.12, 4.3): without them errors are only terser.
        let _ = set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &1i32);
        let _ = set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, &1i32);
        set_socket_timeout(&fd, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Socket { fd, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Sends a request and hands each answer to `each`; begins a dump again when the kernel says it was interrupted
    /// (so `each` may see the same object twice: use [`Socket::collect`] for dumps).
    pub(crate) fn request(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(u16, &[u8]),
    ) -> Result<(), Failure> {
        self.attempt(kind, flags, body, &mut each).map(|_| ())
    }

    /// All answers to a request: message type and body. A dump that a change made inconsistent is begun again.
    pub(crate) fn collect(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
    ) -> Result<Vec<(u16, Vec<u8>)>, Failure> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut answers = Vec::new();
            let mut keep = |kind, body: &[u8]| answers.push((kind, body.to_vec()));
            if self.attempt(kind, flags, body, &mut keep)? {
                return Ok(answers);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EINTR).into())
    }

    /// One attempt; `false` if the kernel says that the dump is inconsistent.
    fn attempt(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        each: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<bool, Failure> {
        self.send(kind, flags, body)?;
        let mut consistent = true;
        loop {
            let length = self.receive(RecvFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while let Some((header, payload, next)) = split(rest) {
                rest = next;
                if header.sequence != self.sequence {
                    continue;
                }
                consistent &= header.flags & NLM_F_DUMP_INTR == 0;
                if let Step::Finished = step(&header, payload, each)? {
                    return Ok(consistent);
                }
            }
        }
    }

    /// Sends requests, as many in each message as [`BATCH`] holds, until `next` has none or `go_on` says no. The kernel carries a
    /// message out while it is being sent, and answers only errors: all answers are there when the call returns. Gives the number
    /// of requests, or of the first that failed (counted from 1).
    pub(crate) fn pipeline(
        &mut self,
        Pipeline { kind, flags }: Pipeline,
        go_on: &mut dyn FnMut() -> bool,
        mut next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, (u64, Failure)> {
        let (mut done, mut more) = (0, true);
        let (mut message, mut body) = (Vec::with_capacity(BATCH), Vec::new());
        while more && go_on() {
            let first = self.sequence.wrapping_add(1);
            message.clear();
            while more && message.len() < BATCH - LARGEST {
                body.clear();
                more = next(&mut body);
                if more {
                    self.sequence = self.sequence.wrapping_add(1);
                    put_message(&mut message, kind, flags | NLM_F_REQUEST, self.sequence, &body);
                }
            }
            if message.is_empty() {
                break;
            }
            self.transmit(&message).map_err(|e| (done + 1, e.into()))?;
            if let Some((sequence, failure)) = self.first_error(first)? {
                return Err((done + u64::from(sequence.wrapping_sub(first)) + 1, failure));
            }
            done += u64::from(self.sequence.wrapping_sub(first)) + 1;
        }
        Ok(done)
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let ack = if flags & NLM_F_DUMP == NLM_F_DUMP { 0 } else { NLM_F_ACK };
        let mut message = Vec::with_capacity(HEADER + body.len());
        put_message(&mut message, kind, flags | NLM_F_REQUEST | ack, self.sequence, body);
        self.transmit(&message)
    }

    /// An unconnected netlink socket sends to the kernel.
    fn transmit(&self, message: &[u8]) -> io::Result<()> {
        send(&self.fd, message, SendFlags::empty())?;
        Ok(())
    }

    /// The first error among the answers that are there, to requests from number `first` on.
    fn first_error(&mut self, first: u32) -> Result<Option<(u32, Failure)>, (u64, Failure)> {
        let mut found: Option<(u32, Failure)> = None;
        loop {
            let length = match self.receive(RecvFlags::DONTWAIT) {
                Ok(length) => length,
                Err(e) if e.raw_os_error() == Some(libc::ETIMEDOUT) => return Ok(found),
                // More errors than the socket holds: the first ones are there.
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => continue,
                Err(e) => return Err((0, e.into())),
            };
            let mut rest = &self.buffer[..length];
            while let Some((header, payload, next)) = split(rest) {
                rest = next;
                let ours = header.sequence.wrapping_sub(first) <= self.sequence.wrapping_sub(first);
                if ours && found.is_none() {
                    let failure = step(&header, payload, &mut |_, _| {}).err();
                    found = failure.map(|failure| (header.sequence, failure));
                }
            }
        }
    }

    /// Reads one datagram from the kernel; those of other processes are passed over.
    fn receive(&mut self, flags: RecvFlags) -> io::Result<usize> {
        loop {
            match recvfrom(&self.fd, &mut self.buffer[..], RecvFlags::TRUNC | flags) {
                Ok((_, length, _)) if length > self.buffer.len() => return Err(Errno::MSGSIZE.into()),
                Ok((_, length, from)) => {
                    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    if from.is_none_or(|from| from.pid() == 0) {
                        return Ok(length);
                    }
                }
                Err(Errno::INTR) => {}
                // What SO_RCVTIMEO reports is EAGAIN, "Resource temporarily unavailable": say what it is.
                Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT.into()),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// What all requests of a pipeline have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipeline {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
}

fn put_message(bytes: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, body: &[u8]) {
    bytes.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&0u32.to_ne_bytes());
    bytes.extend_from_slice(body);
    bytes.resize(align(bytes.len()), 0);
}

struct Header {
    kind: u16,
    flags: u16,
    sequence: u32,
}

/// The first message in `bytes`, its payload and what follows.
fn split(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let header = Header { kind: u16_at(bytes, 4)?, flags: u16_at(bytes, 6)?, sequence: u32_at(bytes, 8)? };
    let payload = bytes.get(HEADER..length)?;
    Some((header, payload, bytes.get(align(length)..).unwrap_or_default()))
}

fn step(header: &Header, payload: &[u8], each: &mut dyn FnMut(u16, &[u8])) -> Result<Step, Failure> {
    match header.kind {
        // An acknowledgement is an error of number 0; the end of a dump carries an errno as well.
        NLMSG_ERROR | NLMSG_DONE => match u32_at(payload, 0).unwrap_or(0) as i32 {
            code if code < 0 => {
                let source = io::Error::from_raw_os_error(code.wrapping_neg());
                Err(Failure { source, detail: words(header, payload) })
            }
            _ => Ok(Step::Finished),
        },
        kind => {
            each(kind, payload);
            Ok(Step::Continue)
        }
    }
}

/// The kernel's words: behind the errno and, for an error, behind the request it quotes.
fn words(header: &Header, payload: &[u8]) -> Option<String> {
    if header.flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let quoted = match header.kind {
        NLMSG_DONE => 0,
        _ if header.flags & NLM_F_CAPPED != 0 => HEADER,
        _ => align(u32_at(payload, 4)? as usize),
    };
    let mut found = attributes_after(payload, quoted.checked_add(4)?);
    found.find(|(kind, _)| *kind == ACK_TEXT).map(|(_, value)| text(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(flags: u16, code: i32, rest: &[u8]) -> Result<Step, Failure> {
        let header = Header { kind: NLMSG_ERROR, flags, sequence: 1 };
        step(&header, &[&code.to_ne_bytes(), rest].concat(), &mut |_, _| {})
    }

    #[test]
    fn an_error_brings_the_kernels_words() {
        let mut rest = vec![0; HEADER];
        crate::net::netlink::attributes::push(&mut rest, ACK_TEXT, b"Invalid MTU\0");
        let failure = error(NLM_F_ACK_TLVS | NLM_F_CAPPED, -libc::EINVAL, &rest).err().unwrap();
        assert_eq!(failure.source.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(failure.detail.as_deref(), Some("Invalid MTU"));
    }

    #[test]
    fn an_acknowledgement_ends_the_request_and_garbage_does_not_panic() {
        assert!(matches!(error(0, 0, &[]), Ok(Step::Finished)));
        assert!(error(NLM_F_ACK_TLVS, -1, &[0xff; 7]).is_err());
        assert!(error(NLM_F_ACK_TLVS, i32::MIN, &[0xff; 40]).is_err());
        for length in 0..40 {
            assert!(split(&vec![0xff; length]).is_none());
            assert!(split(&vec![0; length]).is_none());
        }
    }
}
