//! Settings and counters of `ethtool`, by the SIOCETHTOOL ioctl on a socket of the device's namespace.
//!
//! Requests are byte buffers in the layout of linux/ethtool.h: the kernel copies them, so alignment does not matter, and
//! structures that end in an array need no unsafe code of their own.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use super::Netns;
use super::netlink::message::{text, u16_at, u32_at, u64_at};
use crate::error::{Doing, Error};
use crate::sockets::new_socket;
use linerate_hosts::systems::procnet::under_headings;

const GSET: u32 = 0x1;
const GDRVINFO: u32 = 0x3;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const GCHANNELS: u32 = 0x3c;
const SCHANNELS: u32 = 0x3d;
const GET_TS_INFO: u32 = 0x41;

/// Sets of strings (ETH_SS_STATS, ETH_SS_FEATURES) and the length of each string in them.
const STATS: u32 = 1;
const FEATURES: u32 = 4;
const STRING: usize = 32;
/// More strings than any card has; a limit for allocations whose size a driver gives.
const MOST_STRINGS: u32 = 1 << 16;

/// `tx_type` and `rx_filter` of linux/net_tstamp.h: stamp every frame that is sent, every frame that arrives.
pub const TX_ON: u32 = 1;
pub const RX_ALL: u32 = 1;

/// How a device stamps frames (`struct ethtool_ts_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamping {
    /// SOF_TIMESTAMPING_*
    pub flags: u32,
    /// The number N of its clock /dev/ptpN.
    pub clock: Option<u32>,
    /// A bit for each type of stamps of sent frames…
    pub tx_types: u32,
    /// …and for each choice of received frames.
    pub rx_filters: u32,
}

/// The ethtool calls of one namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    label: String,
}

/// An offload or other switch of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name, such as `rx-gro`.
    pub name: String,
    /// In force now.
    pub active: bool,
    /// Can be changed.
    pub changeable: bool,
}

impl Ethtool {
    /// Opens a socket for the calls inside `ns`.
    pub fn open(ns: &Netns) -> Result<Ethtool, Error> {
        let socket = ns.enter(|| new_socket(AddressFamily::INET, SocketType::DGRAM))?;
        let socket = socket.doing(format_args!(
            "open a control socket in namespace {}",
            ns.label()
        ))?;
        Ok(Ethtool {
            socket,
            label: ns.label().to_owned(),
        })
    }

    /// The switches of a device, in the kernel's order.
    pub fn features(&self, dev: &str) -> Result<Vec<Feature>, Error> {
        let what = "read the features of";
        let names = self.strings(dev, FEATURES, what)?;
        let blocks = names.len().div_ceil(32);
        let mut request = request(GFEATURES, &[blocks as u32], blocks * 16);
        self.call(dev, &mut request, what)?;
        let bit = |nth: usize, field: usize| {
            let word = u32_at(&request, 8 + nth / 32 * 16 + field * 4).unwrap_or(0);
            word >> (nth % 32) & 1 == 1
        };
        let feature = |(nth, name)| Feature {
            name,
            active: bit(nth, 2),
            changeable: bit(nth, 0) && !bit(nth, 3),
        };
        Ok(names
            .into_iter()
            .enumerate()
            .map(feature)
            .filter(|feature| !feature.name.is_empty())
            .collect())
    }

    /// Sets one switch, such as `rx-gro`; an error if the kernel did not do so.
    pub fn set_feature(&self, dev: &str, name: &str, on: bool) -> Result<(), Error> {
        let what = format!("switch feature {name} {} on", if on { "on" } else { "off" });
        let names = self.strings(dev, FEATURES, &what)?;
        let nth = names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                let (label, place) = (&self.label, "in this kernel for interface");
                Error::Missing(format!("feature {name} {place} {dev} in namespace {label}"))
            })?;
        let blocks = names.len().div_ceil(32);
        let mut request = request(SFEATURES, &[blocks as u32], blocks * 8);
        let (block, mask) = (8 + nth / 32 * 8, 1u32 << (nth % 32));
        put(&mut request, block, mask);
        put(&mut request, block + 4, if on { mask } else { 0 });
        match self.call(dev, &mut request, &what)? {
            0 => Ok(()),
            // One that cannot be changed may well be as wanted.
            _ if self
                .features(dev)?
                .iter()
                .any(|feature| feature.name == name && feature.active == on) =>
            {
                Ok(())
            }
            _ => Err(Error::Refused(format!(
                "cannot {}: the driver, or another feature it depends on, does not allow it",
                self.operation(&what, dev)
            ))),
        }
    }

    /// The name of a device's driver.
    pub fn driver(&self, dev: &str) -> Result<String, Error> {
        // cmd, and 192 bytes of which the first 32 are the name (struct ethtool_drvinfo).
        let mut request = request(GDRVINFO, &[], 192);
        self.call(dev, &mut request, "read the driver of")?;
        Ok(text(&request[4..4 + STRING]))
    }

    /// The driver's counters, in its order.
    pub fn stats(&self, dev: &str) -> Result<Vec<(String, u64)>, Error> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        self.read_stats(dev, &mut names, &mut values)?;
        Ok(names.into_iter().zip(values).collect())
    }

    /// [`Ethtool::stats`] for frequent reading: `names` are those of an earlier reading, and are read again only where their number
    /// has changed. Returns whether they were read.
    pub fn read_stats(
        &self,
        dev: &str,
        names: &mut Vec<String>,
        values: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let what = "read the statistics of";
        values.clear();
        let count = self.count(dev, STATS, what)? as usize;
        let changed = count != names.len();
        if changed {
            *names = under_headings(self.strings(dev, STATS, what)?);
        }
        if names.is_empty() {
            return Ok(changed);
        }
        // The kernel writes as many as there are now: room for more, should queues be added in this moment.
        let mut request = request(GSTATS, &[names.len() as u32], 2 * names.len() * 8 + 4096);
        self.call(dev, &mut request, what)?;
        let given = (u32_at(&request, 4).unwrap_or(0) as usize).min(names.len());
        names.truncate(given);
        values.extend((0..given).map(|nth| u64_at(&request, 8 + nth * 8).unwrap_or(0)));
        Ok(changed)
    }

    /// Bit/s of the wire (`struct ethtool_cmd`); `None` without a link.
    pub fn speed(&self, dev: &str) -> Option<f64> {
        let mut settings = request(GSET, &[], 40);
        self.call(dev, &mut settings, "read the settings of").ok()?;
        // Two halves, in Mbit/s; all ones: unknown.
        let megabits = u32::from(u16_at(&settings, 12)?) | u32::from(u16_at(&settings, 28)?) << 16;
        (megabits != 0 && megabits != u32::MAX && megabits != 0xffff)
            .then(|| f64::from(megabits) * 1e6)
    }

    /// How the device can stamp frames.
    pub fn stamping(&self, dev: &str) -> Result<Stamping, Error> {
        let mut info = request(GET_TS_INFO, &[], 40);
        self.call(dev, &mut info, "ask for the time stamps of")?;
        let word = |nth: usize| u32_at(&info, 4 * nth).unwrap_or(0);
        let clock = i32::try_from(word(2)).ok().map(|_| word(2));
        Ok(Stamping {
            flags: word(1),
            clock,
            tx_types: word(3),
            rx_filters: word(7),
        })
    }

    /// The stamps that the card takes now: `tx_type` and `rx_filter` of `struct hwtstamp_config`.
    pub fn hardware_stamps(&self, dev: &str) -> Result<[u32; 2], Error> {
        self.configure_stamps(
            libc::SIOCGHWTSTAMP,
            dev,
            [0; 2],
            "ask for the hardware time stamps of",
        )
    }

    /// Switches the card's stamps on or off. Returns its setting, which may stamp more frames than `stamps` asks for.
    pub fn set_hardware_stamps(&self, dev: &str, stamps: [u32; 2]) -> Result<[u32; 2], Error> {
        self.configure_stamps(
            libc::SIOCSHWTSTAMP,
            dev,
            stamps,
            "set the hardware time stamps of",
        )
    }

    fn configure_stamps(
        &self,
        number: libc::c_ulong,
        dev: &str,
        [tx, rx]: [u32; 2],
        what: &str,
    ) -> Result<[u32; 2], Error> {
        super::netlink::check_name(dev)?;
        // Flags, none of which exist, come first.
        let mut config = request(0, &[tx, rx], 0);
        let done = ioctl(&self.socket, number, dev, &mut config);
        done.map_err(|e| Error::system(self.operation(what, dev), e))?;
        Ok([4, 8].map(|at| u32_at(&config, at).unwrap_or(0)))
    }

    /// Sets the numbers of receive and transmit queues, and reads them back; on a card whose queues serve both directions, both must be
    /// the same.
    ///
    /// # Errors
    /// The driver refuses the numbers, or keeps others.
    pub fn set_channels(&self, dev: &str, rx: u32, tx: u32) -> Result<(), Error> {
        let what = format!("set {rx} receive and {tx} transmit channels of");
        let mut words = self.channels(dev, &what)?;
        let [max_rx, max_tx, _, max_combined, ..] = words;
        if max_rx == 0 && max_tx == 0 && max_combined > 0 {
            if rx != tx {
                return Err(Error::Refused(format!(
                    "cannot {}: this card's channels serve both directions: the numbers must be equal",
                    self.operation(&what, dev)
                )));
            }
            words[7] = rx;
        } else {
            (words[4], words[5]) = (rx, tx);
        }
        self.call(dev, &mut request(SCHANNELS, &words, 0), &what)?;
        let kept = self.channels(dev, &what)?;
        match kept[4..] == words[4..] {
            true => Ok(()),
            false => Err(Error::Refused(format!(
                "cannot {}: the driver keeps {} receive, {} transmit and {} combined",
                self.operation(&what, dev),
                kept[4],
                kept[5],
                kept[7]
            ))),
        }
    }

    /// The numbers of channels that a card can have and has: each of receive, transmit, other and combined.
    fn channels(&self, dev: &str, what: &str) -> Result<[u32; 8], Error> {
        let mut asked = request(GCHANNELS, &[], 32);
        self.call(dev, &mut asked, what)?;
        Ok(std::array::from_fn(|nth| {
            u32_at(&asked, 4 + nth * 4).unwrap_or(0)
        }))
    }

    /// How many strings a set has.
    fn count(&self, dev: &str, set: u32, what: &str) -> Result<u32, Error> {
        let mut info = request(GSSET_INFO, &[0, 1 << set, 0], 4);
        self.call(dev, &mut info, what)?;
        // The kernel clears the bits of sets that the device does not have.
        let there = u32_at(&info, 8).unwrap_or(0) & (1 << set) != 0;
        Ok(u32_at(&info, 16)
            .filter(|_| there)
            .unwrap_or(0)
            .min(MOST_STRINGS))
    }

    /// The strings of a set, by position.
    fn strings(&self, dev: &str, set: u32, what: &str) -> Result<Vec<String>, Error> {
        let count = self.count(dev, set, what)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut strings = request(GSTRINGS, &[set, count], count as usize * STRING);
        self.call(dev, &mut strings, what)?;
        let given = u32_at(&strings, 8).unwrap_or(0) as usize;
        Ok(strings[12..]
            .chunks_exact(STRING)
            .take(given)
            .map(text)
            .collect())
    }

    fn call(&self, dev: &str, request: &mut [u8], what: &str) -> Result<i32, Error> {
        super::netlink::check_name(dev)?;
        ioctl(&self.socket, libc::SIOCETHTOOL, dev, request)
            .map_err(|e| Error::system(self.operation(what, dev), e))
    }

    fn operation(&self, what: &str, dev: &str) -> String {
        format!("{what} interface {dev} in namespace {}", self.label)
    }
}

/// A request: the command, its first numbers, and room for the answer.
fn request(command: u32, words: &[u32], room: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = [command]
        .iter()
        .chain(words)
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    bytes.resize(bytes.len() + room, 0);
    bytes
}

fn put(request: &mut [u8], at: usize, word: u32) {
    request[at..at + 4].copy_from_slice(&word.to_ne_bytes());
}

fn ioctl(
    socket: &OwnedFd,
    number: libc::c_ulong,
    dev: &str,
    request: &mut [u8],
) -> io::Result<i32> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru {
        ifru_data: request.as_mut_ptr().cast(),
    };
    let mut ifreq = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru,
    };
    for (to, from) in ifreq.ifr_name.iter_mut().zip(dev.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the name is shorter than IFNAMSIZ (checked by the caller), so it ends in NUL; the data pointer is to a
    // buffer sized for the command in its first word (SIOCETHTOOL) or with the three of `struct hwtstamp_config`, and both outlive
    // the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut ifreq) };
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernels_layout() {
        let mut bytes = request(GSTRINGS, &[FEATURES, 2], 2 * STRING);
        assert_eq!(bytes.len(), 12 + 64);
        assert_eq!(u32_at(&bytes, 4), Some(FEATURES));
        put(&mut bytes, 12, 7);
        assert_eq!(u32_at(&bytes, 12), Some(7));
    }
}
