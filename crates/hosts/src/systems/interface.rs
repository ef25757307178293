//! An interface of a host.

use linerate_plan::lab::HostAddress;
use linerate_wire::MacAddr;
use serde::Serialize;

/// Pause frames (IEEE 802.3 annex 31B): whether they are obeyed and sent; `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Those that arrive stop its transmitter.
    pub rx: Option<bool>,
    /// It sends them when its receiver is full.
    pub tx: Option<bool>,
}

impl Pause {
    /// Whether either is known to be on.
    pub fn is_on(&self) -> bool {
        self.rx == Some(true) || self.tx == Some(true)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Interface {
    pub name: String,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it has a link; `None` where the system does not say: virtual interfaces often do not.
    pub link: Option<bool>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
    pub mac: Option<MacAddr>,
    pub addresses: Vec<HostAddress>,
    /// Its medium in the system's words.
    pub media: Option<String>,
    /// Bit/s of its link.
    pub speed: Option<f64>,
    /// Whether it sends and receives at once.
    pub full_duplex: Option<bool>,
    pub pause: Pause,
}
