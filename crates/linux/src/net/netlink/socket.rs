//! One netlink socket: send a request, read its answers until the acknowledgement or the end of the dump.

use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::attributes::{Body, align, attribute, text, u16_at, u32_at};
use crate::net::Error;
use crate::sockets::set_option;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, send, socket_with,
};

/// Asks for all objects.
pub(crate) const DUMP: u16 = libc::NLM_F_DUMP as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;
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

    /// All answers to a request. A dump that a change made inconsistent is begun again.
    pub(crate) fn collect(&mut self, kind: u16, flags: u16, body: &Body) -> Result<Vec<Vec<u8>>, Failure> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut answers = Vec::new();
            if self.request(kind, flags, body, &mut |body| answers.push(body.to_vec()))? {
                return Ok(answers);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EINTR).into())
    }

    /// Sends a request and passes each answer to `each`; `false` if the kernel reports an inconsistent dump: an object may be
    /// missing, or be there twice.
    pub(crate) fn request(
        &mut self,
        kind: u16,
        flags: u16,
        body: &Body,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let ack = if flags & DUMP == DUMP { 0 } else { libc::NLM_F_ACK as u16 };
        let mut message = Vec::with_capacity(HEADER + body.0.len());
        put_message(&mut message, kind, flags | ack, self.sequence, body);
        self.transmit(&message)?;
        let mut consistent = true;
        loop {
            let length = self.receive(RecvFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while let Some((header, payload, next)) = split(rest) {
                rest = next;
                if header.sequence != self.sequence {
                    continue;
                }
                consistent &= !header.has(libc::NLM_F_DUMP_INTR);
                if step(&header, payload, each)? {
                    return Ok(consistent);
                }
            }
        }
    }

    /// Sends requests, as many in each message as [`BATCH`] holds, until there are no more or `go_on` returns false. The kernel
    /// carries a message out while it is being sent, and answers only errors: all answers are there when the call returns.
    /// Returns the number of requests, or of the first that failed (counted from 1).
    pub(crate) fn pipeline(
        &mut self,
        kind: u16,
        flags: u16,
        bodies: &mut dyn Iterator<Item = Body>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<u64, (u64, Failure)> {
        let mut done = 0;
        let mut message = Vec::with_capacity(BATCH);
        while go_on() {
            let first = self.sequence.wrapping_add(1);
            message.clear();
            while message.len() < BATCH - LARGEST
                && let Some(body) = bodies.next()
            {
                self.sequence = self.sequence.wrapping_add(1);
                put_message(&mut message, kind, flags, self.sequence, &body);
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
                    let failure = step(&header, payload, &mut |_| {}).err();
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
                // SO_RCVTIMEO reports EAGAIN, "Resource temporarily unavailable": replace it by a timeout.
                Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT.into()),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

fn put_message(bytes: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, body: &Body) {
    let flags = flags | libc::NLM_F_REQUEST as u16;
    bytes.extend_from_slice(&((HEADER + body.0.len()) as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&0u32.to_ne_bytes());
    bytes.extend_from_slice(&body.0);
    bytes.resize(align(bytes.len()), 0);
}

struct Header {
    kind: u16,
    flags: u16,
    sequence: u32,
}

impl Header {
    fn has(&self, flag: libc::c_int) -> bool {
        self.flags & flag as u16 != 0
    }
}

/// The first message in `bytes`, its payload and the rest.
fn split(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let header = Header { kind: u16_at(bytes, 4)?, flags: u16_at(bytes, 6)?, sequence: u32_at(bytes, 8)? };
    let payload = bytes.get(HEADER..length)?;
    Some((header, payload, bytes.get(align(length)..).unwrap_or_default()))
}

/// Hands an answer over; `true` once the request is answered.
fn step(header: &Header, payload: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
    match header.kind {
        // An acknowledgement is an error of number 0; the end of a dump carries an errno as well.
        ERROR | DONE => match u32_at(payload, 0).unwrap_or(0) as i32 {
            code if code < 0 => {
                let source = io::Error::from_raw_os_error(code.wrapping_neg());
                Err(Failure { source, detail: words(header, payload) })
            }
            _ => Ok(true),
        },
        _ => {
            each(payload);
            Ok(false)
        }
    }
}

/// The kernel's words: behind the errno and, for an error, behind the request it quotes.
fn words(header: &Header, payload: &[u8]) -> Option<String> {
    if !header.has(libc::NLM_F_ACK_TLVS) {
        return None;
    }
    let quoted = match header.kind {
        DONE => 0,
        _ if header.has(libc::NLM_F_CAPPED) => HEADER,
        _ => align(u32_at(payload, 4)? as usize),
    };
    attribute(payload, quoted.checked_add(4)?, ACK_TEXT).map(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(flags: libc::c_int, code: i32, rest: &[u8]) -> Result<bool, Failure> {
        let header = Header { kind: ERROR, flags: flags as u16, sequence: 1 };
        step(&header, &[&code.to_ne_bytes(), rest].concat(), &mut |_| {})
    }

    #[test]
    fn an_error_brings_the_kernels_words() {
        let rest = Body(vec![0; HEADER]).text(ACK_TEXT, "Invalid MTU").0;
        let flags = libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED;
        let failure = error(flags, -libc::EINVAL, &rest).err().unwrap();
        assert_eq!(failure.source.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(failure.detail.as_deref(), Some("Invalid MTU"));
    }

    #[test]
    fn an_acknowledgement_ends_the_request_and_garbage_does_not_panic() {
        assert!(matches!(error(0, 0, &[]), Ok(true)));
        assert!(error(libc::NLM_F_ACK_TLVS, -1, &[0xff; 7]).is_err());
        assert!(error(libc::NLM_F_ACK_TLVS, i32::MIN, &[0xff; 40]).is_err());
        for length in 0..40 {
            assert!(split(&vec![0xff; length]).is_none());
            assert!(split(&vec![0; length]).is_none());
        }
    }
}
