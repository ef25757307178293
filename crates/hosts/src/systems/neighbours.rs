//! arp(8) and ndp(8) of the BSDs.

use super::MOST_ENTRIES;
use super::text::{address, is_name, lines, mac};
use linerate_wire::MacAddr;
use std::net::IpAddr;

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub address: IpAddr,
    /// Its Ethernet address; `None` before an answer.
    pub mac: Option<MacAddr>,
    /// The interface that it is behind.
    pub interface: String,
    /// Whether it stays until it is deleted.
    pub permanent: bool,
}

/// Entries of `arp -an` and `ndp -an`.
pub fn table(text: &str) -> Vec<Neighbour> {
    lines(text).filter_map(|line| sentence(line).or_else(|| row(line))).take(MOST_ENTRIES).collect()
}

/// FreeBSD and NetBSD: `? (198.18.0.203) at 0c:c4:7a:ab:29:35 on igb1 expires in 1193 seconds [ethernet]`.
fn sentence(line: &str) -> Option<Neighbour> {
    let (_, rest) = line.split_once(" (")?;
    let (host, rest) = rest.split_once(") at ")?;
    let (station, rest) = rest.split_once(" on ")?;
    let mut words = rest.split_ascii_whitespace();
    let interface = words.next().filter(|w| is_name(w))?.to_string();
    let permanent = words.any(|w| w == "permanent");
    Some(Neighbour { address: address(host)?, mac: mac(station.trim()), interface, permanent })
}

/// OpenBSD's arp, and everybody's ndp: `198.18.0.203  0c:c4:7a:ab:29:35  em1  19m58s`.
fn row(line: &str) -> Option<Neighbour> {
    let mut words = line.split_ascii_whitespace();
    let address = address(words.next()?)?;
    let station = words.next()?;
    let mac = mac(station);
    if mac.is_none() && station != "(incomplete)" {
        return None;
    }
    let interface = words.next().filter(|w| is_name(w))?.to_string();
    let permanent = words.any(|w| w == "permanent");
    Some(Neighbour { address, mac, interface, permanent })
}
