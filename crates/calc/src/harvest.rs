//! FreeBSD's `kern.random.harvest.mask`: which events the kernel collects entropy from, as a number, in bits and by name.

use crate::{Amount, CalcError, Calculation, PAPER_2018, Result};
use linerate_wire::words::Joined;
use std::fmt;
use std::str::FromStr;

/// The sources of FreeBSD 11 and later by their bits (sys/random.h), with the events that feed them. Later bits differ from release
/// to release.
pub const SOURCES: [(&str, &str); 11] = [
    ("CACHED", "entropy of the last boot"),
    ("ATTACH", "devices that are attached"),
    ("KEYBOARD", "keys"),
    ("MOUSE", "moves of the mouse"),
    ("NET_TUN", "frames of tun(4)"),
    ("NET_ETHER", "each Ethernet frame received"),
    ("NET_NG", "frames of netgraph(4)"),
    ("INTERRUPT", "each interrupt"),
    ("SWI", "software interrupts"),
    ("FS_ATIME", "times of access to files"),
    ("UMA", "allocations of kernel memory"),
];

/// Hardware sources of FreeBSD 12 and later in the order of their bits, without the `PURE_` that most begin with. They follow the
/// others: from bit 11 on, or from 12 where 11 is CALLOUT, as in FreeBSD 14.
const HARDWARE: [&str; 14] = [
    "OCTEON", "SAFE", "GLXSB", "HIFN", "RDRAND", "NEHEMIAH", "RNDTEST", "VIRTIO", "BROADCOM",
    "CCP", "DARN", "TPM", "VMGENID", "QUALCOMM",
];

/// Sources that cost a router something with each frame, under one lock: those that the 2018 paper leaves out.
pub const COSTLY: [&str; 2] = ["INTERRUPT", "NET_ETHER"];

/// A mask of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask(pub u32);

impl Mask {
    /// The bit of a source's name, in either case.
    fn bit(name: &str) -> Option<u32> {
        SOURCES
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|at| 1 << at)
    }

    /// Whether it has the source of this name.
    pub fn has(self, name: &str) -> bool {
        Mask::bit(name).is_some_and(|bit| self.0 & bit != 0)
    }

    /// The mask without these sources. Names that are not known change nothing.
    pub fn without(self, names: &[&str]) -> Mask {
        Mask(
            names
                .iter()
                .filter_map(|name| Mask::bit(name))
                .fold(self.0, |mask, bit| mask & !bit),
        )
    }

    /// As `kern.random.harvest.mask_bin` prints it, of the eleven sources and whatever bits are above.
    pub fn binary(self) -> String {
        format!("{:0width$b}", self.0, width = SOURCES.len())
    }
}

/// As `kern.random.harvest.mask_symbolic` prints it: the highest bit first, sources that are off in brackets. Bits without a name
/// here have their number.
impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |bit: u32| self.0 & (1 << bit) != 0;
        let above = (SOURCES.len() as u32..32)
            .rev()
            .filter(|bit| on(*bit))
            .map(|bit| format!("bit{bit}"));
        let named = SOURCES.iter().enumerate().rev();
        let named = named.map(|(bit, (name, _))| {
            if on(bit as u32) {
                (*name).into()
            } else {
                format!("[{name}]")
            }
        });
        f.write_str(&above.chain(named).joined(","))
    }
}

/// A number (`511`, `0x1ff`), bits as `mask_bin` prints them (nine or more: `00111111111`), or names as `mask_symbolic` does.
impl FromStr for Mask {
    type Err = CalcError;

    fn from_str(text: &str) -> Result<Mask> {
        let text = text.trim();
        let wrong = |why: String| {
            CalcError::new(format!(
                "{why}: write a number such as 511, bits such as 00111111111, or names such as [UMA],[FS_ATIME],SWI,INTERRUPT; \
                 the names are {}",
                SOURCES.map(|(name, _)| name).join(", ")
            ))
        };
        let bits = text.len() >= 9 && text.bytes().all(|b| matches!(b, b'0' | b'1'));
        let number = match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None if bits => u32::from_str_radix(text, 2).ok(),
            None => text.parse().ok(),
        };
        if let Some(mask) = number.filter(|_| text.bytes().all(|b| b.is_ascii_alphanumeric())) {
            return Ok(Mask(mask));
        }
        let mut mask = 0;
        let callout = text
            .split(',')
            .any(|name| name.trim().trim_matches(['[', ']']) == "CALLOUT");
        let newer = |name: &str| match (name, callout) {
            ("CALLOUT", _) => Some(1 << SOURCES.len()),
            (name, callout) => {
                let name = name.strip_prefix("PURE_").unwrap_or(name);
                let at = HARDWARE.iter().position(|known| *known == name)?;
                Some(1u32 << (SOURCES.len() + usize::from(callout) + at))
            }
        };
        for name in text.split(',').map(str::trim) {
            let off = name
                .strip_prefix('[')
                .and_then(|name| name.strip_suffix(']'));
            let above = || {
                name.strip_prefix("bit")?
                    .parse::<u32>()
                    .ok()
                    .and_then(|bit| 1u32.checked_shl(bit))
            };
            match Mask::bit(off.unwrap_or(name))
                .or_else(|| newer(off.unwrap_or(name)))
                .or_else(above)
            {
                Some(bit) if off.is_none() => mask |= bit,
                Some(_) => {}
                // Newer releases have more sources; one that is off has no bit to set.
                None if off.is_some_and(|name| !name.is_empty()) => {}
                None => {
                    let shown: String = name.chars().take(40).collect();
                    return Err(wrong(format!("there is no entropy source '{shown}'")));
                }
            }
        }
        Ok(Mask(mask))
    }
}

/// The mask in its three forms, and without sources that are to go: by default those that cost a router something.
///
/// # Errors
/// A name to go is not known.
pub fn harvest_mask(mask: Mask, without: &[&str]) -> Result {
    for name in without {
        if Mask::bit(name).is_none() {
            let known = SOURCES.map(|(name, _)| name).join(", ");
            return Err(CalcError::new(format!(
                "there is no entropy source '{name}': the names are {known}"
            )));
        }
    }
    let reduced = mask.without(without);
    let row = |bit: usize| {
        let (name, events) = SOURCES[bit];
        let state = |mask: Mask| if mask.has(name) { "on" } else { "off" };
        [
            f64::from(1u32 << bit).to_string(),
            name.into(),
            state(mask).into(),
            state(reduced).into(),
            events.into(),
        ]
        .map(Amount::text)
        .to_vec()
    };
    let rows = (0..SOURCES.len()).rev().map(row).collect();
    Ok(Calculation::new("Entropy harvest mask of FreeBSD")
        .given_text("mask", mask.0.to_string())
        .given_text("without", if without.is_empty() { "nothing".into() } else { without.join(", ") })
        .answer(if reduced == mask { format!("{} is {mask}.", mask.0) } else { format!("{} without {} is {}: {reduced}.", mask.0, without.join(" and "), reduced.0) })
        .result_text("mask", reduced.0.to_string())
        .result_text("mask_bin", reduced.binary())
        .result_text("mask_symbolic", reduced.to_string())
        .result_text("/etc/rc.conf", format!("harvest_mask=\"{}\"", reduced.0))
        .formula(&["mask = sum of the values of the sources that are on"])
        .source(format!("{PAPER_2018}, section II.E, illustrations 8 and 9")).source("FreeBSD, sys/sys/random.h; random(4)")
        .note("Before FreeBSD 11 the settings are kern.random.sys.harvest.*; values above 1024 differ from release to release.")
        .table(&["value", "source", "now", "then", "events"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bits_and_names_are_the_same_mask() {
        for text in [
            "351",
            "0x15f",
            "00101011111",
            "[UMA],[FS_ATIME],SWI,[INTERRUPT],NET_NG,[NET_ETHER],NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED",
        ] {
            assert_eq!(text.parse::<Mask>(), Ok(Mask(351)), "{text}");
        }
        // Newer releases: a source that is off and has no name here, and bits above.
        assert_eq!("[CALLOUT],UMA,swi".parse::<Mask>(), Ok(Mask(1024 + 256)));
        assert_eq!(
            Mask(1 << 14 | 1).to_string().parse::<Mask>(),
            Ok(Mask(1 << 14 | 1))
        );
        for bad in [
            "",
            "-1",
            "RADIO",
            "4294967296",
            "0x",
            "bit32",
            "[]",
            "[SWI",
            "0b1",
            "1.5",
            "\u{3b1}",
        ] {
            let said = bad.parse::<Mask>().unwrap_err().to_string();
            assert!(said.contains("NET_ETHER"), "{bad}: {said}");
        }
        assert!(harvest_mask(Mask(511), &["RADIO"]).is_err());
    }

    /// A router with FreeBSD 13.2 printed these three lines.
    #[test]
    fn as_a_router_prints_it() {
        let mask: Mask =
            "[UMA],FS_ATIME,SWI,INTERRUPT,NET_NG,[NET_ETHER],NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED"
                .parse()
                .unwrap();
        assert_eq!(mask, Mask(991));
        assert_eq!("000000000000001111011111".parse(), Ok(mask));
        assert!(mask.has("INTERRUPT") && !mask.has("NET_ETHER") && !mask.has("RADIO"));
        assert_eq!(mask.without(&COSTLY), Mask(863));
        // Machines with RDRAND: the default masks of FreeBSD 12 and 13, and of 14, without the sources that cost a router time.
        let less = "[UMA],[FS_ATIME],SWI,[INTERRUPT],NET_NG,[NET_ETHER],NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED";
        assert_eq!(format!("PURE_RDRAND,{less}").parse(), Ok(Mask(33_119)));
        assert_eq!(
            format!("PURE_RDRAND,[CALLOUT],{less}").parse(),
            Ok(Mask(65_887))
        );
        assert_eq!(
            format!("VMGENID,PURE_RDRAND,[CALLOUT],{less}").parse(),
            Ok(Mask(65_887 + (1 << 24)))
        );
    }
}
