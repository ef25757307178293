//! Buses between a network card and memory: PCI, PCI-X and PCI Express.

use crate::Unit::{Bits, ByteRate, Bytes, Count, Frames, Hertz, Transfers};
use crate::ethernet::SPEEDS;
use crate::{Amount, CalcError, Calculation, GUIDE, Result, amounts, link_speed, within};
use std::fmt;
use std::str::FromStr;

/// A slot of a card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slot {
    /// A parallel bus, which all cards and both directions share.
    Pci {
        /// Clock in MHz.
        mhz: f64,
        /// Width in bits.
        bits: f64,
        /// PCI-X instead of PCI.
        x: bool,
    },
    /// PCI Express, whose directions are apart.
    Express {
        /// 1 to 6.
        generation: u8,
        /// 1 to 32.
        lanes: u8,
    },
}

/// Transfers of a lane a second, by generation (PCI-SIG).
const TRANSFERS: [f64; 6] = [2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9];
/// Lanes that slots have.
const LANES: [u8; 7] = [1, 2, 4, 8, 12, 16, 32];
/// Share of a link that flow control and acknowledgements leave: 8 % less (Neugebauer et al. 2018). Generation 6 has them
/// in its units of 256 B.
const AFTER_CONTROL: f64 = 0.92;
/// Bytes of a card's descriptor.
const DESCRIPTOR: f64 = 16.0;
/// A 64-byte frame as it is in memory: without its FCS.
const SHORTEST: f64 = 60.0;

impl Slot {
    /// PCI Express.
    ///
    /// # Errors
    /// A generation or a number of lanes that does not exist.
    pub fn express(generation: u8, lanes: u8) -> Result<Slot> {
        match (1..=6).contains(&generation) && LANES.contains(&lanes) {
            true => Ok(Slot::Express { generation, lanes }),
            false => {
                let text = format!(
                    "PCIe {generation} x{lanes} does not exist: generations are 1 to 6, lanes 1, 2, 4, 8, 12, 16 or 32"
                );
                Err(CalcError::new(text))
            }
        }
    }

    /// Bytes a second after encoding: in each direction of PCI Express, of both together on a shared bus.
    pub fn bytes(self) -> f64 {
        let bits = if let Slot::Pci { bits, .. } = self {
            bits
        } else {
            1.0
        };
        self.transfers() * bits * self.encoding().0 / 8.0
    }

    /// The slots that are common.
    fn all() -> impl Iterator<Item = Slot> {
        let parallel = [
            (33.0, 32.0),
            (33.0, 64.0),
            (66.0, 32.0),
            (66.0, 64.0),
            (100.0, 64.0),
            (133.0, 64.0),
        ];
        let parallel = parallel.into_iter().map(|(mhz, bits)| Slot::Pci {
            mhz,
            bits,
            x: mhz >= 100.0,
        });
        parallel.chain(
            (1..=6).flat_map(|generation| {
                [1, 4, 8, 16].map(|lanes| Slot::Express { generation, lanes })
            }),
        )
    }

    /// Transfers a second: of all bits together, or of the clock.
    pub fn transfers(self) -> f64 {
        match self {
            Slot::Pci { mhz, .. } => mhz * 1e6,
            Slot::Express { generation, lanes } => {
                TRANSFERS[usize::from(generation - 1)] * f64::from(lanes)
            }
        }
    }

    /// The share of transfers that carries data, and its name.
    fn encoding(self) -> (f64, &'static str) {
        match self {
            Slot::Pci { .. } => (1.0, "none"),
            Slot::Express {
                generation: 1 | 2, ..
            } => (0.8, "8b/10b"),
            Slot::Express { generation: 6, .. } => (242.0 / 256.0, "242 of 256 B"),
            Slot::Express { .. } => (128.0 / 130.0, "128b/130b"),
        }
    }

    /// Bytes of headers around a write to memory, and the share that control leaves.
    fn costs(self) -> (f64, f64) {
        match self {
            Slot::Pci { .. } => (0.0, 1.0),
            Slot::Express { generation: 6, .. } => (16.0, 1.0),
            Slot::Express { .. } => (24.0, AFTER_CONTROL),
        }
    }

    /// Bytes a second that are left for data in writes of `payload` bytes.
    pub fn usable(self, payload: f64) -> f64 {
        let (header, left) = self.costs();
        self.bytes() * left * payload / (payload + header)
    }

    /// Bits a second that a card can receive and send at once.
    fn each_way(self, payload: f64) -> f64 {
        let shared = if matches!(self, Slot::Pci { .. }) {
            2.0
        } else {
            1.0
        };
        8.0 * self.usable(payload) / shared
    }

    /// Frames of 64 bytes a second that a card can receive and send at once: each with its descriptor, four of which go together.
    pub fn short_frames(self) -> f64 {
        let (header, left) = self.costs();
        let shared = if matches!(self, Slot::Pci { .. }) {
            2.0
        } else {
            1.0
        };
        self.bytes() * left / shared / (SHORTEST + header + DESCRIPTOR + header / 4.0)
    }

    /// The fastest Ethernet link of which `ports` ports run full in both directions; `None` below 10 Mbit/s.
    pub fn link(self, payload: f64, ports: f64) -> Option<f64> {
        SPEEDS
            .into_iter()
            .rev()
            .find(|link| self.each_way(payload) >= link * ports)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Pci { mhz, bits, x } => {
                write!(f, "PCI{} {mhz} MHz, {bits} bit", if *x { "-X" } else { "" })
            }
            Slot::Express { generation, lanes } => write!(f, "PCIe {generation} x{lanes}"),
        }
    }
}

/// `pcie3x8`, `3x8`, `gen3 x8`, as lspci has it (`8GT/s x8`), `pci33x32`, `pcix133x64`.
impl FromStr for Slot {
    type Err = CalcError;

    fn from_str(text: &str) -> Result<Slot> {
        let wrong = || {
            let shown: String = text.chars().take(40).collect();
            CalcError::new(format!(
                "'{shown}' is not a slot: write pcie3x8 (generation and lanes), '8GT/s x8' as lspci prints it, pci33x32 (MHz and bits) \
                 or pcix133x64"
            ))
        };
        let plain: String = text
            .to_ascii_lowercase()
            .chars()
            .filter(|c| !matches!(c, ' ' | ',' | '-'))
            .collect();
        let parallel = plain.strip_prefix("pcix").map(|rest| (rest, true));
        let parallel = parallel.or_else(|| {
            Some((
                plain.strip_prefix("pci").filter(|r| !r.starts_with('e'))?,
                false,
            ))
        });
        if let Some((rest, x)) = parallel {
            let (mhz, bits) = rest.split_once('x').ok_or_else(wrong)?;
            let mhz: f64 = mhz.trim_end_matches("mhz").parse().map_err(|_| wrong())?;
            let bits: f64 = bits.trim_end_matches("bit").parse().map_err(|_| wrong())?;
            within("the clock of a bus", mhz * 1e6, 1e6, 1e9, Hertz)?;
            return if matches!(bits, 32.0 | 64.0) {
                Ok(Slot::Pci { mhz, bits, x })
            } else {
                Err(wrong())
            };
        }
        let rest = ["pcie", "gen", "v"]
            .iter()
            .fold(plain.as_str(), |rest, begin| {
                rest.strip_prefix(begin).unwrap_or(rest)
            });
        let (generation, lanes) = rest.split_once('x').ok_or_else(wrong)?;
        let lanes = lanes.parse().map_err(|_| wrong())?;
        let generation = match generation.strip_suffix("gt/s") {
            Some(speed) => {
                let speed: f64 = speed.parse().map_err(|_| wrong())?;
                TRANSFERS
                    .iter()
                    .position(|known| *known == speed * 1e9)
                    .ok_or_else(wrong)? as u8
                    + 1
            }
            None => generation
                .trim_end_matches(".0")
                .parse()
                .map_err(|_| wrong())?,
        };
        Slot::express(generation, lanes)
    }
}

/// Capacity of a slot; without a slot, a table of all of them.
///
/// `payload` is the bus's largest payload in bytes (lspci: MaxPayload), `link` and `ports` the card's links.
///
/// # Errors
/// Impossible numbers.
pub fn pcie(slot: Option<Slot>, payload: f64, link: Option<f64>, ports: u32) -> Result {
    let payload = within("a payload", payload, 64.0, 4096.0, Bytes)?;
    let ports = within("a number of ports", ports.into(), 1.0, 64.0, Count)?;
    let link = link.map(link_speed).transpose()?;
    let (fits, several) = (
        |slot: Slot, link: f64| slot.each_way(payload) >= link * ports,
        if ports == 1.0 {
            "a port".into()
        } else {
            format!("{ports} ports")
        },
    );
    let row = |slot: Slot| {
        let most = slot
            .link(payload, ports)
            .map_or(Amount::text("none"), |bits| Amount::number(bits, Bits));
        let rates = [
            (slot.bytes(), ByteRate),
            (8.0 * slot.bytes(), Bits),
            (slot.usable(payload), ByteRate),
        ];
        let mut row = amounts(Some(&slot.to_string()), &rates);
        row.extend([Amount::number(slot.short_frames(), Frames), most]);
        row.extend(link.map(|link| Amount::text(if fits(slot, link) { "yes" } else { "no" })));
        row
    };
    let mut columns = vec![
        "slot",
        "bytes",
        "bits",
        "payload",
        "64-byte frames",
        "largest link",
    ];
    columns.extend(link.map(|_| "carried"));
    let page = Calculation::new("Bandwidth of a slot")
        .given("largest payload", payload, Bytes)
        .given("ports", ports, Count);
    let page = link
        .into_iter()
        .fold(page, |page, link| page.given("link speed", link, Bits));
    let page = match slot {
        Some(slot) => {
            let page = page.given("transfers", slot.transfers(), Transfers).given_text("encoding", slot.encoding().1);
            let (verb, most) = match link {
                Some(link) => (if fits(slot, link) { "carries" } else { "does not carry" }, Some(link)),
                None => ("carries", slot.link(payload, ports)),
            };
            let most = most.map_or("no Ethernet speed".into(), |bits| Bits.show(bits));
            page.answer(format!("{slot} {verb} {several} of {most} full in both directions.")).rows(&columns, vec![row(slot)])
        }
        None => page
            .answer("A lane carries 250 MB/s (PCIe 1) to 7.56 GB/s (PCIe 6) in each direction; PCI shares 132 MB/s among all cards.")
            .table(&columns, Slot::all().map(row).collect()),
    };
    Ok(page
        .formula(&[
            "PCI, PCI-X: bytes/s = clock x width / 8, shared by all cards and both directions",
            "PCIe: bytes/s = transfers/s x lanes x encoding / 8 in each direction",
            "payload = bytes/s x 0.92 x payload / (payload + 24 B); PCIe 6: without 0.92, 16 B",
            "64-byte frames: 60 B and a descriptor of 16 B, with headers, in each direction",
        ])
        .source("PCI-SIG, PCI Express Base Specification 6.0; PCI Local Bus 3.0; PCI-X 2.0")
        .source("Neugebauer et al., \"Understanding PCIe performance for end host networking\" (SIGCOMM 2018)")
        .source(format!("{GUIDE}, section \"Hardware\""))
        .note("A card that forwards receives and sends each frame once: it needs its ports' speed in each direction. On PCI a frame crosses the bus twice.")
        .note("The slot's width and speed count, not the card's: lspci -vv prints LnkCap and LnkSta, pciconf -lc on FreeBSD."))
}
