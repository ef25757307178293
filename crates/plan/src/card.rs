//! The catalogue of those settings of cards that are a switch or a number. A row has a setting's key in plans and what it means, how
//! Linux sets and shows it, and why the virtual links of the embedded lab lack it. A new setting is a name in [`CardSetting`] and a row;
//! for an offload, [`crate::offload`] has the names of its parts.

use crate::grammar::{Key, Kind, key};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A setting of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardSetting {
    Gro,
    Gso,
    Tso,
    Lro,
    RxChecksum,
    TxChecksum,
    VlanOffload,
    VlanTso,
    UdpGroForwarding,
    FlowControl,
    AdaptiveInterrupts,
    ThreadedNapi,
    Queues,
    RxRing,
    TxRing,
    #[serde(rename = "rx-wait-ns", alias = "rx-wait")]
    RxWait,
    RxWaitFrames,
    #[serde(rename = "tx-wait-ns", alias = "tx-wait")]
    TxWait,
    TxWaitFrames,
    #[serde(rename = "gro-flush-timeout-ns", alias = "gro-flush-timeout")]
    GroFlushTimeout,
    NapiDeferHardIrqs,
}

/// The value of a setting: on or off, or a number in the smallest unit of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CardValue {
    Switch(bool),
    Number(u64),
}

/// Settings with their values.
pub type CardSettings = BTreeMap<CardSetting, CardValue>;

/// How Linux sets a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linux {
    /// `ethtool -K`, by the words of [`crate::offload::Offload`].
    Offloads,
    /// `ethtool OPTION IF WORD VALUE` for each word, which ethtool shows by another. A number of ethtool is so many of the key's
    /// smallest unit.
    Ethtool {
        option: &'static str,
        words: &'static [[&'static str; 2]],
        unit: u64,
    },
    /// A file of the interface below /sys/class/net.
    File(&'static str),
    /// `ethtool -A`: pause frames, whose negotiation is another setting.
    Pauses,
    /// Not at all, with the reason.
    Nothing(&'static str),
}

/// A row of the catalogue.
#[derive(Debug)]
pub struct Row {
    pub setting: CardSetting,
    pub(crate) key: Key,
    /// Name in the steps of hosts: `receive ring`.
    pub what: &'static str,
    pub linux: Linux,
    /// Why a virtual link of the embedded lab lacks it.
    pub(crate) veth: Option<&'static str>,
}

/// The catalogue, in the order of [`CardSetting`].
pub static ROWS: [Row; 21] = [
    offload(CardSetting::Gro, "gro", "Generic receive offload (Linux)."),
    offload(CardSetting::Gso, "gso", "Generic segmentation offload (Linux)."),
    offload(CardSetting::Tso, "tso", "TCP segmentation offload."),
    offload(CardSetting::Lro, "lro", "Large receive offload: should be off on a router."),
    offload(CardSetting::RxChecksum, "rx-checksum", "The card verifies checksums."),
    offload(CardSetting::TxChecksum, "tx-checksum", "The card writes checksums."),
    offload(CardSetting::VlanOffload, "vlan-offload", "The card takes VLAN tags off and puts them on."),
    Row {
        linux: Linux::Nothing("Linux has no such switch: tso is for tagged frames as well"),
        veth: Some("Linux has no such switch"),
        ..offload(CardSetting::VlanTso, "vlan-tso", "TCP segmentation offload of tagged frames (FreeBSD: vlanhwtso).")
    },
    offload(
        CardSetting::UdpGroForwarding,
        "udp-gro-forwarding",
        "UDP frames of a flow are merged before they are forwarded (Linux).",
    ),
    Row {
        linux: Linux::Pauses,
        veth: Some("it sends no pause frames"),
        ..offload(CardSetting::FlowControl, "flow-control", "Ethernet pause frames (Linux).")
    },
    Row {
        linux: ethtool("-C", &[["adaptive-rx", "Adaptive RX"], ["adaptive-tx", ADAPTIVE_TX]]),
        veth: NO_INTERRUPTS,
        ..offload(CardSetting::AdaptiveInterrupts, "adaptive-interrupts", "The interrupt rate adapts itself (Linux).")
    },
    Row {
        what: "threaded NAPI",
        linux: Linux::File("threaded"),
        ..offload(
            CardSetting::ThreadedNapi,
            "threaded-napi",
            "NAPI polls in kernel threads instead of softirqs (Linux).",
        )
    },
    number(
        CardSetting::Queues,
        key("queues", Kind::count(1, 1024)).about("Receive and transmit queues (Linux)."),
        "queues",
        ethtool("-L", &[["combined", "Combined"]]),
    ),
    Row {
        veth: FIXED_RING,
        ..number(
            CardSetting::RxRing,
            key("rx-ring", Kind::count(1, 65_536)).about("Descriptors of each receive queue (Linux)."),
            "receive ring",
            ethtool("-G", &[["rx", "RX"]]),
        )
    },
    Row {
        veth: FIXED_RING,
        ..number(
            CardSetting::TxRing,
            key("tx-ring", Kind::count(1, 65_536)).about("Descriptors of each transmit queue (Linux)."),
            "transmit ring",
            ethtool("-G", &[["tx", "TX"]]),
        )
    },
    waits(
        CardSetting::RxWait,
        key("rx-wait", Kind::duration(US, S)).about("A receive interrupt waits at most this long for more frames (Linux)."),
        "receive interrupt wait",
        &[["rx-usecs", "rx-usecs"]],
        US,
    ),
    waits(
        CardSetting::RxWaitFrames,
        key("rx-wait-frames", Kind::count(1, 65_535)).about("A receive interrupt waits for at most this many frames (Linux)."),
        "frames per receive interrupt",
        &[["rx-frames", "rx-frames"]],
        1,
    ),
    waits(
        CardSetting::TxWait,
        key("tx-wait", Kind::duration(US, S)).about("A transmit interrupt waits at most this long for more frames (Linux)."),
        "transmit interrupt wait",
        &[["tx-usecs", "tx-usecs"]],
        US,
    ),
    waits(
        CardSetting::TxWaitFrames,
        key("tx-wait-frames", Kind::count(1, 65_535)).about("A transmit interrupt waits for at most this many frames (Linux)."),
        "frames per transmit interrupt",
        &[["tx-frames", "tx-frames"]],
        1,
    ),
    number(
        CardSetting::GroFlushTimeout,
        key("gro-flush-timeout", Kind::duration(0, S))
            .about("How long GRO may hold frames back, and deferred interrupts may stay off (Linux)."),
        "GRO flush timeout",
        Linux::File("gro_flush_timeout"),
    ),
    number(
        CardSetting::NapiDeferHardIrqs,
        key("napi-defer-hard-irqs", Kind::count(0, i32::MAX as u64))
            .about("Number of polls without a frame after which the interrupt is on again (Linux; with gro-flush-timeout)."),
        "deferral of interrupts",
        Linux::File("napi_defer_hard_irqs"),
    ),
];

/// Their keys in plans.
pub(crate) static KEYS: [Key; ROWS.len()] = {
    let mut keys = [ROWS[0].key; ROWS.len()];
    let mut nth = 0;
    while nth < keys.len() {
        keys[nth] = ROWS[nth].key;
        nth += 1;
    }
    keys
};

/// Where ethtool has the second of two settings on one line: `Adaptive RX: off  TX: on`.
pub const ADAPTIVE_TX: &str = "Adaptive RX/TX";
const US: u64 = 1000;
const S: u64 = 1_000_000_000;
const NO_INTERRUPTS: Option<&str> = Some("it has no interrupts");
const FIXED_RING: Option<&str> = Some("its ring always holds 256 frames");

const fn offload(setting: CardSetting, name: &'static str, about: &'static str) -> Row {
    Row {
        setting,
        key: key(name, Kind::Flag).about(about),
        what: name,
        linux: Linux::Offloads,
        veth: None,
    }
}

const fn number(setting: CardSetting, key: Key, what: &'static str, linux: Linux) -> Row {
    Row {
        setting,
        key,
        what,
        linux,
        veth: None,
    }
}

/// The moderation of interrupts.
const fn waits(
    setting: CardSetting,
    key: Key,
    what: &'static str,
    words: &'static [[&'static str; 2]],
    unit: u64,
) -> Row {
    let option = "-C";
    Row {
        veth: NO_INTERRUPTS,
        ..number(
            setting,
            key,
            what,
            Linux::Ethtool {
                option,
                words,
                unit,
            },
        )
    }
}

const fn ethtool(option: &'static str, words: &'static [[&'static str; 2]]) -> Linux {
    let unit = 1;
    Linux::Ethtool {
        option,
        words,
        unit,
    }
}

impl CardSetting {
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name of its key in a plan.
    pub fn key(self) -> &'static str {
        self.row().key.name
    }

    /// The setting of a key in a plan.
    pub fn of_key(key: &str) -> Option<CardSetting> {
        ROWS.iter()
            .find(|row| row.key.name == key)
            .map(|row| row.setting)
    }
}

impl CardValue {
    /// As ethtool(8) takes it, whose numbers are so many of the smallest unit.
    pub fn per(self, unit: u64) -> String {
        match self {
            CardValue::Switch(on) => if on { "on" } else { "off" }.into(),
            CardValue::Number(number) => (number / unit).to_string(),
        }
    }
}

/// As the kernel's files have it.
impl fmt::Display for CardValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardValue::Switch(on) => write!(f, "{}", u8::from(*on)),
            CardValue::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Settings, without those that older records have as null.
pub(crate) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<CardSettings, D::Error> {
    let all = BTreeMap::<CardSetting, Option<CardValue>>::deserialize(from)?;
    let known = all
        .into_iter()
        .filter_map(|(setting, value)| Some((setting, value?)));
    Ok(known.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::Offload;

    #[test]
    fn each_setting_has_its_row_and_links_of_the_lab_can_be_set_or_say_why_not() {
        for (nth, row) in ROWS.iter().enumerate() {
            assert_eq!(row.setting as usize, nth, "{}", row.key.name);
            assert_eq!(CardSetting::of_key(row.key.name), Some(row.setting));
            // `linux::lab::cards` sets them.
            let known = matches!(row.linux, Linux::Offloads | Linux::File(_))
                || row.setting == CardSetting::Queues;
            assert_eq!(known, row.veth.is_none(), "{}", row.key.name);
            let is_offload = Offload::of(row.setting).next().is_some();
            let may_be = matches!(row.linux, Linux::Offloads | Linux::Nothing(_));
            assert_eq!(is_offload, may_be, "{}", row.key.name);
        }
        assert_eq!(CardValue::Number(20_500).per(US), "20");
        assert_eq!(
            CardValue::Switch(true).per(1) + &CardValue::Switch(false).to_string(),
            "on0"
        );
    }
}
