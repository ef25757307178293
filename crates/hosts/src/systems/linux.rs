//! Linux: `ip -j`, ethtool(8).

use super::facts::{COUNTERS, Interface, Neighbour, Pause, Way};
use super::procnet::net_dev;
use super::text::{MOST_BYTES, MOST_ENTRIES, is_name, mac, pairs, shown};
use linerate_measure::collector::Counters;
use linerate_plan::lab::HostAddress;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Signs of a hypervisor.
#[derive(Debug, Default)]
pub struct Signs {
    /// `/sys/hypervisor/type`.
    pub kind: Option<String>,
    /// Flags of the CPU.
    pub flags: String,
    /// The machine's maker and name.
    pub maker: String,
    /// The clocks that the kernel could use.
    pub clocks: String,
}

impl Signs {
    /// The hypervisor, as far as it shows itself: Xen by its own file, others by the CPU's flag, the machine's maker or the clock that
    /// only they have. `None`: no sign of one.
    pub fn hypervisor(self) -> Option<String> {
        const MAKERS: [&str; 7] = [
            "QEMU",
            "KVM",
            "Virtual",
            "VMware",
            "Bochs",
            "BHYVE",
            "OpenStack",
        ];
        const CLOCKS: [(&str, &str); 3] =
            [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
        let Signs {
            kind,
            flags,
            maker,
            clocks,
        } = self;
        let by_flag = flags.split_whitespace().any(|flag| flag == "hypervisor");
        let by_maker = MAKERS.iter().any(|name| maker.contains(name));
        let by_clock = CLOCKS
            .iter()
            .find(|(clock, _)| clocks.contains(clock))
            .map(|(_, name)| *name);
        match (kind, by_clock, maker.is_empty()) {
            (Some(kind), _, _) => Some(kind),
            (None, Some(name), true) => Some(name.into()),
            (None, Some(name), false) => Some(format!("{name} ({maker})")),
            (None, None, _) if !by_flag && !by_maker => None,
            (None, None, true) => Some("of unknown kind".into()),
            (None, None, false) => Some(maker),
        }
    }
}

/// An interface of `ip -d -j addr show`, or of `ip -d -j link show`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Link {
    pub ifname: String,
    flags: Vec<String>,
    mtu: Option<f64>,
    operstate: String,
    address: String,
    addr_info: Vec<AddressInfo>,
    /// The interface below it.
    pub link: Option<String>,
    pub master: Option<String>,
    pub txqlen: Option<u32>,
    pub linkinfo: LinkInfo,
    pub xdp: Option<Xdp>,
    pub parentbus: Option<String>,
    pub parentdev: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct LinkInfo {
    pub info_kind: String,
    pub info_data: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Xdp {
    pub mode: u32,
    pub prog: XdpProgram,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct XdpProgram {
    pub name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AddressInfo {
    local: String,
    prefixlen: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NeighbourEntry {
    dst: String,
    dev: String,
    lladdr: Option<String>,
    state: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RouteEntry {
    gateway: Option<String>,
    dev: Option<String>,
}

/// The entries of an answer that is a JSON array, or several; none where it is not.
pub fn entries<'a, T: Deserialize<'a>>(output: &'a [u8]) -> Vec<T> {
    // A warning may stand before it.
    let Some(begin) = memchr::memchr(b'[', output) else {
        return Vec::new();
    };
    let json = &output[begin..];
    let mut entries: Vec<T> = match json.len() <= MOST_BYTES {
        true => {
            let arrays = serde_json::Deserializer::from_slice(json).into_iter::<Vec<T>>();
            arrays
                .collect::<Result<Vec<_>, _>>()
                .unwrap_or_default()
                .into_iter()
                .flatten()
                .collect()
        }
        false => Vec::new(),
    };
    entries.truncate(MOST_ENTRIES);
    entries
}

/// Kinds of interfaces without a medium. Their speed is a constant of their driver.
const NO_MEDIUM: [&str; 2] = ["veth", "tun"];

/// All interfaces of `ip -d -j addr show`.
pub fn interfaces(output: &[u8]) -> Vec<Interface> {
    let links: Vec<Link> = entries(output);
    links
        .iter()
        .filter(|link| is_name(&link.ifname))
        .map(Link::interface)
        .collect()
}

impl Link {
    pub fn interface(&self) -> Interface {
        let has = |flag: &str| self.flags.iter().any(|f| f == flag);
        let link = match self.operstate.as_str() {
            "UP" => Some(true),
            "DOWN" | "LOWERLAYERDOWN" | "NOTPRESENT" => Some(false),
            _ if has("NO-CARRIER") => Some(false),
            _ if has("LOWER_UP") => Some(true),
            _ => None,
        };
        let addresses = self.addr_info.iter().filter_map(|info| {
            let address: IpAddr = info.local.parse().ok()?;
            let longest = if address.is_ipv4() { 32.0 } else { 128.0 };
            let length = info
                .prefixlen
                .filter(|l| (0.0..=longest).contains(l))
                .map(|l| l as u8);
            Some(HostAddress { address, length })
        });
        let kind = &self.linkinfo.info_kind;
        Interface {
            up: has("UP"),
            link,
            mtu: self
                .mtu
                .filter(|m| (0.0..=65_536.0).contains(m))
                .map(|m| m as u32),
            mac: mac(&self.address),
            addresses: addresses.collect(),
            media: NO_MEDIUM.contains(&kind.as_str()).then(|| kind.clone()),
            name: self.ifname.clone(),
            ..Interface::default()
        }
    }
}

/// Speed, duplex and link of `ethtool IF`.
pub fn ethtool(text: &str, interface: &mut Interface) {
    let is_virtual = interface
        .media
        .as_deref()
        .is_some_and(|kind| NO_MEDIUM.contains(&kind));
    for (key, value) in pairs(text, ':') {
        match key {
            "Speed" | "Port" if is_virtual => {}
            "Speed" => {
                let megabits = value
                    .strip_suffix("Mb/s")
                    .and_then(|n| n.parse::<f64>().ok());
                // A card without link reports Unknown!, some virtual ones -1.
                interface.speed = megabits.filter(|m| (1.0..1e7).contains(m)).map(|m| m * 1e6);
            }
            "Duplex" => {
                interface.full_duplex = match value {
                    "Full" => Some(true),
                    "Half" => Some(false),
                    _ => None,
                }
            }
            "Link detected" => {
                interface.link = match value {
                    "yes" => Some(true),
                    v if v.starts_with("no") => Some(false),
                    _ => interface.link,
                }
            }
            "Port" => interface.media = Some(shown(value)),
            _ => {}
        }
    }
}

/// Flow control of `ethtool -a IF`. The negotiated state overrides the requested one, which comes first.
pub fn pause(text: &str) -> Pause {
    let mut pause = Pause::default();
    for (key, value) in pairs(text, ':') {
        let on = match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        match key {
            "Autonegotiate" => pause.autoneg = on,
            "RX" | "RX negotiated" => pause.rx = on.or(pause.rx),
            "TX" | "TX negotiated" => pause.tx = on.or(pause.tx),
            _ => {}
        }
    }
    pause
}

/// Neighbours of `ip -j neigh show`.
pub fn neighbours(output: &[u8]) -> Vec<Neighbour> {
    let entries: Vec<NeighbourEntry> = entries(output);
    let parsed = entries.into_iter().filter_map(|entry| {
        let is = |state: &str| entry.state.iter().any(|s| s == state);
        let address = entry.dst.parse().ok()?;
        let failed = is("FAILED") || is("INCOMPLETE");
        let mac = entry.lladdr.as_deref().and_then(mac).filter(|_| !failed);
        is_name(&entry.dev).then(|| Neighbour {
            address,
            mac,
            interface: entry.dev.clone(),
            permanent: is("PERMANENT"),
        })
    });
    parsed.collect()
}

/// The way of `ip -j route get ADDRESS`.
pub fn way(output: &[u8]) -> Option<Way> {
    let entries: Vec<RouteEntry> = entries(output);
    let entry = entries.into_iter().next()?;
    let interface = entry.dev.filter(|d| is_name(d))?;
    Some(Way {
        gateway: entry.gateway.and_then(|g| g.parse().ok()),
        interface,
    })
}

/// The counters of `/proc/net/dev` that all systems have.
pub fn counters(text: &str) -> BTreeMap<String, Counters> {
    let of = |(name, n): (&str, [u64; 16])| {
        // Drivers differ in whether a frame without a place counts as an error or as a drop.
        let sums = [
            n[1],
            n[2].saturating_add(n[3]),
            n[9],
            n[10].saturating_add(n[11]),
        ];
        (
            name.to_string(),
            COUNTERS.into_iter().map(String::from).zip(sums).collect(),
        )
    };
    net_dev(text)
        .filter(|(name, _)| is_name(name))
        .take(MOST_ENTRIES)
        .map(of)
        .collect()
}
