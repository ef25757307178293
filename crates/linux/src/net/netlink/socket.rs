//! One netlink socket: send a request, read its answers until the acknowledgement or the end of the dump.

use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::message::{Body, align, attribute, text, u16_at, u32_at};
use crate::Error;
use crate::sockets::set_option;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, send,
    socket_with,
};

/// Asks for all objects.
pub(crate) const DUMP: u16 = libc::NLM_F_DUMP as u16;
/// Asks for an answer without an error as well.
const ACK: u16 = libc::NLM_F_ACK as u16;
/// Make an object, or put it in the place of one that is there.
pub(crate) const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;
/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// linux/genetlink.h: the length of its header, `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY` and its attributes.
pub(crate) const GENERIC_HEADER: usize = 4;
const CTRL: u16 = 0x10;
const CTRL_GETFAMILY: u8 = 3;
const CTRL_FAMILY_ID: u16 = 1;
const CTRL_FAMILY_NAME: u16 = 2;
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
    words: Option<String>,
}

impl Failure {
    pub(crate) fn into_error(self, operation: String) -> Error {
        let detail = self
            .words
            .map(|words| format!(" ({words})"))
            .unwrap_or_default();
        Error::System {
            operation,
            source: self.source,
            detail,
        }
    }
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(source: E) -> Failure {
        Failure {
            source: source.into(),
            words: None,
        }
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
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        // Both are niceties of newer kernels (4.12, 4.3): without them errors are only terser.
        let _ = set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &1i32);
        let _ = set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, &1i32);
        set_socket_timeout(&fd, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Socket {
            fd,
            sequence: 0,
            buffer: vec![0; BUFFER],
        })
    }

    /// The number under which a generic netlink family is known on this machine.
    pub(crate) fn family(&mut self, name: &str) -> Result<u16, Failure> {
        let body = Body(vec![CTRL_GETFAMILY, 1, 0, 0]).text(CTRL_FAMILY_NAME, name);
        let answers = self.collect(CTRL, 0, &body)?;
        let id = answers
            .iter()
            .find_map(|body| u16_at(attribute(body, GENERIC_HEADER, CTRL_FAMILY_ID)?, 0));
        id.ok_or_else(|| Errno::NOENT.into())
    }

    /// All answers to a request. A dump that a change made inconsistent is begun again.
    pub(crate) fn collect(
        &mut self,
        kind: u16,
        flags: u16,
        body: &Body,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut answers = Vec::new();
            if self.request(kind, flags, body, &mut |body| answers.push(body.to_vec()))? {
                return Ok(answers);
            }
        }
        Err(Errno::INTR.into())
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
        let ack = if flags & DUMP == DUMP { 0 } else { ACK };
        let mut message = Vec::with_capacity(HEADER + body.0.len());
        self.put(&mut message, kind, flags | ack, body);
        self.exchange(&message, self.sequence, each)
            .map_err(|(_, failure)| failure)
    }

    /// Sends requests, as many in each message as [`BATCH`] holds, until there are no more or `go_on` returns false. Of each
    /// message, only errors and the last request are answered. Returns the number of requests, or of the first that failed
    /// (counted from 1).
    pub(crate) fn pipeline(
        &mut self,
        kind: u16,
        bodies: &mut dyn Iterator<Item = Body>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<u64, (u64, Failure)> {
        let (mut done, mut bodies) = (0, bodies.peekable());
        let mut message = Vec::with_capacity(BATCH);
        while go_on() && bodies.peek().is_some() {
            let first = self.sequence.wrapping_add(1);
            message.clear();
            while let Some(body) = bodies.next() {
                let is_last = message.len() >= BATCH - 2 * LARGEST || bodies.peek().is_none();
                self.put(
                    &mut message,
                    kind,
                    REPLACE | if is_last { ACK } else { 0 },
                    &body,
                );
                if is_last {
                    break;
                }
            }
            let number = |sequence: u32| done + u64::from(sequence.wrapping_sub(first)) + 1;
            let answered = self.exchange(&message, first, &mut |_| {});
            answered.map_err(|(sequence, failure)| (number(sequence), failure))?;
            done = number(self.sequence);
        }
        Ok(done)
    }

    /// Adds a request with the next number to a message.
    fn put(&mut self, message: &mut Vec<u8>, kind: u16, flags: u16, body: &Body) {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = flags | libc::NLM_F_REQUEST as u16;
        message.extend_from_slice(&((HEADER + body.0.len()) as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&0u32.to_ne_bytes());
        message.extend_from_slice(&body.0);
        message.resize(align(message.len()), 0);
    }

    /// Sends the requests from number `first` to the present one, and reads until the last of them is answered. Whether the answers
    /// are consistent; or the number of the first request that failed.
    fn exchange(
        &mut self,
        message: &[u8],
        first: u32,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, (u32, Failure)> {
        // An unconnected netlink socket sends to the kernel.
        send(&self.fd, message, SendFlags::empty()).map_err(|e| (first, e.into()))?;
        let (last, mut consistent, mut failed) = (self.sequence, true, None);
        loop {
            let length = match self.receive() {
                Ok(length) => length,
                // More errors than the socket holds: the first ones are there.
                Err(Errno::NOBUFS) if first != last => continue,
                Err(e) => return Err(failed.unwrap_or((first, e.into()))),
            };
            let mut rest = &self.buffer[..length];
            while let Some((header, payload, next)) = split(rest) {
                rest = next;
                if header.sequence.wrapping_sub(first) > last.wrapping_sub(first) {
                    continue;
                }
                consistent &= !header.has(libc::NLM_F_DUMP_INTR);
                let answered = step(&header, payload, each);
                let is_over = !matches!(answered, Ok(false)) && header.sequence == last;
                if let (Err(failure), None) = (answered, &failed) {
                    failed = Some((header.sequence, failure));
                }
                if is_over {
                    return failed.map_or(Ok(consistent), Err);
                }
            }
        }
    }

    /// Reads one datagram from the kernel; those of other processes are passed over.
    fn receive(&mut self) -> Result<usize, Errno> {
        loop {
            match recvfrom(&self.fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, length, _)) if length > self.buffer.len() => return Err(Errno::MSGSIZE),
                Ok((_, length, from)) => {
                    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    if from.is_none_or(|from| from.pid() == 0) {
                        return Ok(length);
                    }
                }
                Err(Errno::INTR) => {}
                // SO_RCVTIMEO reports EAGAIN, "Resource temporarily unavailable": replace it by a timeout.
                Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT),
                Err(e) => return Err(e),
            }
        }
    }
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
    let header = Header {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        sequence: u32_at(bytes, 8)?,
    };
    let payload = bytes.get(HEADER..length)?;
    Some((
        header,
        payload,
        bytes.get(align(length)..).unwrap_or_default(),
    ))
}

/// Hands an answer over; `true` once the request is answered.
fn step(header: &Header, payload: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
    match header.kind {
        // An acknowledgement is an error of number 0; the end of a dump carries an errno as well.
        ERROR | DONE => match u32_at(payload, 0).unwrap_or(0) as i32 {
            code if code < 0 => {
                let source = io::Error::from_raw_os_error(code.wrapping_neg());
                Err(Failure {
                    source,
                    words: words(header, payload),
                })
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
        let header = Header {
            kind: ERROR,
            flags: flags as u16,
            sequence: 1,
        };
        step(&header, &[&code.to_ne_bytes(), rest].concat(), &mut |_| {})
    }

    #[test]
    fn an_error_brings_the_kernels_words() {
        let rest = Body(vec![0; HEADER]).text(ACK_TEXT, "Invalid MTU").0;
        let flags = libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED;
        let failure = error(flags, -libc::EINVAL, &rest).err().unwrap();
        assert_eq!(failure.source.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(failure.words.as_deref(), Some("Invalid MTU"));
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
