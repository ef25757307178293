//! Stamps of cards and of their drivers: which an interface has, by which clock, and how those of sent frames come back.

use super::port::Port;
use crate::clock::{clock_ns, monotonic_ns};
use crate::error::Error;
use crate::host::changes::{Change, HostChanges};
use crate::net::Netns;
use crate::net::ethtool::{Ethtool, RX_ALL, Stamping, TX_ON};
use crate::net::netlink::message::{u32_at, u64_at};
use crate::sockets::{set_option, wait_readable};
use linerate_hosts::clock::{Offset, Probe};
use linerate_hosts::stamps::{Kept, Reading, Stamp};
use linerate_wire::{Recognised, recognise};
use rustix::event::{PollFd, PollFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The clock that stamps an interface's frames.
#[derive(Debug)]
pub struct StampClock {
    /// The number of the card's clock, and its device; none where the driver stamps, by CLOCK_REALTIME.
    card: Option<(u32, File)>,
    /// Why it is not the card's, where it is not.
    pub why: Option<String>,
}

impl StampClock {
    /// Has a port's frames stamped: by the card, if it can stamp all that are sent, or all that arrive; else by its driver, with the
    /// reason. The card is switched on for it, until `changes` are undone.
    pub fn start(
        namespace: &Netns,
        interface: &str,
        sends: bool,
        port: &mut dyn Port,
        changes: &mut HostChanges,
    ) -> StampClock {
        let mut by_card = || {
            port.stamp(false).map_err(|error| error.to_string())?;
            let card = switch_on(namespace, interface, sends, changes)?;
            let clock = StampClock {
                card: Some(card),
                why: None,
            };
            let stamps = clock.read().and_then(|_| port.stamp(true)).map(|()| clock);
            stamps.map_err(|error| {
                // The driver's, which have been there already.
                let _ = port.stamp(false);
                format!("the card's stamps cannot be used: {error}")
            })
        };
        let why = |why: String| StampClock {
            card: None,
            why: Some(format!("{interface}: {why}")),
        };
        by_card().unwrap_or_else(why)
    }

    /// The number of the card's clock, if it is the card's.
    pub fn card(&self) -> Option<u32> {
        self.card.as_ref().map(|(number, _)| *number)
    }

    /// Reads it beside CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn read(&self) -> io::Result<Reading> {
        let offset = match &self.card {
            None => bracketed(libc::CLOCK_REALTIME)?,
            Some((_, device)) => match beside_realtime(device) {
                Ok(card) => {
                    let system = bracketed(libc::CLOCK_REALTIME)?;
                    Offset {
                        ns: card.ns + system.ns,
                        within_ns: card.within_ns.saturating_add(system.within_ns),
                    }
                }
                // Before Linux 5.0, and of drivers that cannot: by the device as a clock (FD_TO_CLOCKID in clock_getres(2)).
                Err(_) => bracketed(!device.as_raw_fd() << 3 | 3)?,
            },
        };
        let monotonic_ns = monotonic_ns();
        Ok(Reading {
            monotonic_ns,
            ns: offset.there(monotonic_ns),
            within_ns: offset.within_ns,
        })
    }
}

/// The number of the card's clock, and its device; or why it cannot stamp.
fn switch_on(
    namespace: &Netns,
    interface: &str,
    sends: bool,
    changes: &mut HostChanges,
) -> Result<(u32, File), String> {
    let say = |error: Error| error.to_string();
    let ethtool = Ethtool::open(namespace).map_err(say)?;
    let clock = usable(&ethtool.stamping(interface).map_err(say)?, sends)?;
    let path = format!("/dev/ptp{clock}");
    let device = File::open(&path)
        .map_err(|error| format!("cannot open the card's clock {path}: {error}"))?;
    let [tx, rx] = ethtool.hardware_stamps(interface).map_err(say)?;
    let wanted = if sends { [TX_ON, rx] } else { [tx, RX_ALL] };
    changes
        .set(&Change::stamps(interface, wanted))
        .map_err(say)?;
    Ok((clock, device))
}

/// The clock of a card that stamps all frames of one direction.
fn usable(can: &Stamping, sends: bool) -> Result<u32, &'static str> {
    let wanted = match sends {
        true => libc::SOF_TIMESTAMPING_TX_HARDWARE,
        false => libc::SOF_TIMESTAMPING_RX_HARDWARE,
    };
    let wanted = wanted | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    match can.clock.filter(|_| can.flags & wanted == wanted) {
        None => Err("this card stamps in software only"),
        Some(_) if sends && can.tx_types & 1 << TX_ON == 0 => {
            Err("this card stamps no frames that it sends, or PTP's only")
        }
        Some(_) if !sends && can.rx_filters & 1 << RX_ALL == 0 => {
            Err("of the frames that arrive, this card stamps PTP's only")
        }
        Some(clock) => Ok(clock),
    }
}

/// Readings for one comparison of clocks.
const READINGS: u32 = 20;

fn implausible() -> io::Error {
    io::Error::other("the clock's times are not plausible")
}

/// A clock minus CLOCK_MONOTONIC.
fn bracketed(clock: libc::clockid_t) -> io::Result<Offset> {
    let probe = |_| {
        let (asked, there) = (monotonic_ns(), clock_ns(clock));
        Probe {
            asked,
            there: [there.into(); 2],
            error_ns: 0,
            received: monotonic_ns(),
        }
    };
    let probes: Vec<Probe> = (0..READINGS).map(probe).collect();
    Offset::of(&probes)
        .filter(|_| probes.iter().all(|probe| probe.there[0] > 0))
        .ok_or_else(implausible)
}

/// `struct ptp_sys_offset_extended` of linux/ptp_clock.h: the number of samples, 12 reserved bytes, and for each of up to 25
/// samples the time of the system, of the card, and of the system again (`struct ptp_clock_time`: seconds, nanoseconds, 4 reserved bytes).
const HEAD: usize = 16;
const TIME: usize = 16;
const EXTENDED: usize = HEAD + 25 * 3 * TIME;
/// _IOWR('=', 9, struct ptp_sys_offset_extended)
const PTP_SYS_OFFSET_EXTENDED: u32 = 3 << 30 | (EXTENDED as u32) << 16 | (b'=' as u32) << 8 | 9;

/// A card's clock minus CLOCK_REALTIME, by the kernel's readings right before and after the card's register. (PTP_SYS_OFFSET_PRECISE
/// gives no bounds.)
fn beside_realtime(device: &File) -> io::Result<Offset> {
    let mut bytes = [0; EXTENDED];
    bytes[..4].copy_from_slice(&READINGS.to_ne_bytes());
    // SAFETY: the kernel reads and writes as many bytes as the request's number says, which is the buffer's length.
    let status = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            PTP_SYS_OFFSET_EXTENDED as _,
            bytes.as_mut_ptr(),
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Offset::of(&samples(&bytes)).ok_or_else(implausible)
}

fn samples(bytes: &[u8]) -> Vec<Probe> {
    let time = |bytes: &[u8]| {
        let (seconds, ns) = (u64_at(bytes, 0)? as i64, u32_at(bytes, 8)?);
        Some(i128::from(seconds) * 1_000_000_000 + i128::from(ns))
    };
    let sample = |sample: &[u8]| {
        let [before, card, after] = [0, TIME, 2 * TIME].map(|at| time(sample.get(at..)?));
        let system = |ns: i128| u64::try_from(ns).ok();
        Some(Probe {
            asked: system(before?)?,
            there: [card?; 2],
            error_ns: 0,
            received: system(after?)?,
        })
    };
    bytes[HEAD..]
        .chunks_exact(3 * TIME)
        .take(READINGS as usize)
        .filter_map(sample)
        .collect()
}

/// Frames that leave a socket and whose stamps are asked for.
pub(super) struct Asked {
    by_card: bool,
    /// The control message of each frame that is to be stamped.
    control: Box<Control>,
    /// Stamps that have not come back. Some never do: many cards stamp one frame at a time.
    pending: u64,
    kept: Kept,
    /// Room for a frame.
    buffer: Vec<u8>,
}

#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    flags: u32,
}

/// How long the last stamps may take; a card's come by an interrupt or a work queue.
const LAST_MS: i64 = 20;

impl Asked {
    pub fn new(socket: &OwnedFd, by_card: bool, longest: usize) -> io::Result<Asked> {
        let [flags, shown] = match by_card {
            true => [
                libc::SOF_TIMESTAMPING_TX_HARDWARE,
                libc::SOF_TIMESTAMPING_RAW_HARDWARE,
            ],
            false => [
                libc::SOF_TIMESTAMPING_TX_SOFTWARE,
                libc::SOF_TIMESTAMPING_SOFTWARE,
            ],
        };
        set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &shown)?;
        let header = libc::cmsghdr {
            // SAFETY: it only computes a length.
            cmsg_len: unsafe { libc::CMSG_LEN(size_of::<u32>() as u32) } as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SO_TIMESTAMPING,
        };
        let control = Box::new(Control { header, flags });
        Ok(Asked {
            by_card,
            control,
            pending: 0,
            kept: Kept::default(),
            buffer: vec![0; longest],
        })
    }

    /// Asks for the stamp of a frame that is about to be sent, or does not.
    pub fn of(&self, message: &mut libc::msghdr, wanted: bool) {
        let control = (&raw const *self.control).cast_mut().cast();
        message.msg_control = if wanted {
            control
        } else {
            std::ptr::null_mut()
        };
        message.msg_controllen = if wanted { size_of::<Control>() as _ } else { 0 };
    }

    /// These frames have been sent.
    pub fn sent(&mut self, messages: &[libc::mmsghdr]) {
        self.pending += messages
            .iter()
            .filter(|m| !m.msg_hdr.msg_control.is_null())
            .count() as u64;
    }

    pub fn forget(&mut self) {
        self.pending = 0;
        self.kept.clear();
    }

    pub fn stamps(&self) -> &[Stamp] {
        self.kept.stamps()
    }

    /// Takes the stamps that are there.
    pub fn collect(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while self.pending > 0 {
            match self.take(socket) {
                Ok(()) => self.pending -= 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the stamps once all frames have been sent.
    pub fn collect_last(&mut self, socket: &OwnedFd) -> io::Result<()> {
        loop {
            let before = self.pending;
            self.collect(socket)?;
            let mut poll = [PollFd::new(socket, PollFlags::ERR)];
            if self.pending > 0 {
                wait_readable(&mut poll, LAST_MS)?;
            }
            if self.pending == 0 || (before == self.pending && poll[0].revents().is_empty()) {
                return Ok(());
            }
        }
    }

    /// Takes a message of the socket's error queue: a frame, and the time when it left.
    fn take(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let mut control = [0u64; 32];
        let mut vector = libc::iovec {
            iov_base: self.buffer.as_mut_ptr().cast(),
            iov_len: self.buffer.len(),
        };
        // SAFETY: plain data; zero is a valid value of every field.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut vector, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header points to a vector, a buffer and control data of these lengths, which outlive the call.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        let Recognised::Test { signature, .. } = recognise(&self.buffer[..length]) else {
            return Ok(());
        };
        if let Some(ns) = left_ns(&message, self.by_card) {
            self.kept.add((signature.stream, signature.sequence, ns));
        }
        Ok(())
    }
}

/// The stamp of a received message: of the card, or of the driver.
fn left_ns(message: &libc::msghdr, by_card: bool) -> Option<u64> {
    // SAFETY: the kernel has filled the message's control data, which is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the macros return only headers that lie wholly in the control data.
        let header = unsafe { next.read() };
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: such a message has three of them: by the driver, nothing, by the card. Alignment does not matter.
            let times = unsafe {
                libc::CMSG_DATA(next)
                    .cast::<[libc::timespec; 3]>()
                    .read_unaligned()
            };
            let time = times[if by_card { 2 } else { 0 }];
            let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            return Some(ns).filter(|ns| *ns > 0);
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_that_cannot_stamp_say_why() {
        // As an i350 says it: TX_HARDWARE, RX_HARDWARE, RAW_HARDWARE and the software's.
        let card = Stamping {
            flags: 0x5f,
            clock: Some(2),
            tx_types: 0b11,
            rx_filters: 0b11,
        };
        assert_eq!((usable(&card, true), usable(&card, false)), (Ok(2), Ok(2)));
        // An 82580's predecessors: PTP only.
        let ptp = Stamping {
            rx_filters: 1 << 12 | 1,
            ..card
        };
        assert_eq!(
            (
                usable(&ptp, true).is_ok(),
                usable(&ptp, false).unwrap_err().contains("PTP")
            ),
            (true, true)
        );
        // One-step only.
        assert!(
            usable(
                &Stamping {
                    tx_types: 0b101,
                    ..card
                },
                true
            )
            .unwrap_err()
            .contains("it sends")
        );
        for software in [
            Stamping {
                flags: 0x1a,
                ..card
            },
            Stamping {
                clock: None,
                ..card
            },
        ] {
            assert_eq!(
                usable(&software, true),
                Err("this card stamps in software only")
            );
        }
    }

    #[test]
    fn the_kernels_samples_of_a_card_bound_its_offset() {
        let mut bytes = vec![0; EXTENDED];
        // The card's clock is 37 s ahead; its register is read 400 ns after the system's, and the system's again 600 ns later.
        for (nth, sample) in bytes[HEAD..].chunks_exact_mut(3 * TIME).enumerate() {
            let ns = 1_000 * nth as u32;
            for (time, (seconds, ns)) in sample.chunks_exact_mut(TIME).zip([
                (100i64, ns),
                (137, ns + 400),
                (100, ns + 1_000),
            ]) {
                time[..8].copy_from_slice(&seconds.to_ne_bytes());
                time[8..12].copy_from_slice(&ns.to_ne_bytes());
            }
        }
        let found = samples(&bytes);
        assert_eq!(found.len(), READINGS as usize);
        assert_eq!(
            Offset::of(&found),
            Some(Offset {
                ns: 36_999_999_900,
                within_ns: 500
            })
        );
        assert!(samples(&bytes[..HEAD + 40]).is_empty());
        // The number that the kernel's header gives on x86 and ARM.
        assert_eq!(PTP_SYS_OFFSET_EXTENDED, 0xc4c0_3d09);
    }

    #[test]
    fn the_clock_of_drivers_is_the_systems() {
        let clock = StampClock {
            card: None,
            why: None,
        };
        let (reading, now) = (clock.read().unwrap(), clock_ns(libc::CLOCK_REALTIME));
        assert!(
            now.abs_diff(reading.ns) < 60_000_000_000 && reading.within_ns < 1_000_000,
            "{reading:?}"
        );
        // A device that is no clock.
        let none = StampClock {
            card: Some((0, File::open("/dev/null").unwrap())),
            why: None,
        };
        assert!(none.read().unwrap_err().to_string().contains("plausible"));
    }
}
