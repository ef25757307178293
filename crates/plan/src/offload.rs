//! The offloads of cards: their names in plans, in facts, in each system's programs and files, and in the kernel. A new one is a row here
//! and, where plans have it, one of [`crate::card`].

use crate::card::CardSetting;
use CardSetting::{
    Gro, Gso, Lro, RxChecksum, Tso, TxChecksum, UdpGroForwarding, VlanOffload, VlanTso,
};
use linerate_measure::experiment::System;

/// An offload, as far as one switch sets it.
#[derive(Debug, PartialEq, Eq)]
pub struct Offload {
    /// The setting of plans that it is a part of; `None`: plans have none.
    pub feature: Option<CardSetting>,
    /// Name in the facts of hosts: the one that `ethtool -k` shows, else ifconfig(8).
    pub name: &'static str,
    /// Word for `ethtool -K`; empty where Linux has no switch for it.
    pub ethtool: &'static str,
    /// The names of its parts in Linux' kernel.
    pub parts: &'static [&'static str],
    /// Key in systemd.link(5); empty without one.
    pub link: &'static str,
    /// How ifconfig(8) of FreeBSD shows it, and is given it; empty if it does not.
    pub freebsd: Flag,
    /// This pair for OpenBSD.
    pub openbsd: Flag,
}

/// A flag of ifconfig(8): as it is shown, and as it is given.
pub type Flag = [&'static str; 2];

const NO_FLAG: Flag = [""; 2];

const NONE: Offload = Offload {
    feature: None,
    name: "",
    ethtool: "",
    parts: &[],
    link: "",
    freebsd: NO_FLAG,
    openbsd: NO_FLAG,
};

/// A switch of FreeBSD alone, named as ifconfig(8) shows it.
const fn freebsd(feature: CardSetting, freebsd: Flag) -> Offload {
    Offload {
        feature: Some(feature),
        name: freebsd[0],
        freebsd,
        ..NONE
    }
}

/// A switch of Linux alone, with its name in facts, and its word for ethtool(8).
const fn linux(
    feature: Option<CardSetting>,
    [name, ethtool]: [&'static str; 2],
    parts: &'static [&'static str],
) -> Offload {
    Offload {
        feature,
        name,
        ethtool,
        parts,
        ..NONE
    }
}

pub const RX_CHECKSUMS: &Offload = &Offload {
    name: "rx-checksumming",
    ethtool: "rx",
    parts: &["rx-checksum"],
    link: "ReceiveChecksumOffload",
    ..freebsd(RxChecksum, ["RXCSUM", "rxcsum"])
};
pub const TX_CHECKSUMS: &Offload = &Offload {
    name: "tx-checksumming",
    ethtool: "tx",
    // A veth writes any checksum; a card may know one IP version at a time.
    parts: &[
        "tx-checksum-ip-generic",
        "tx-checksum-ipv4",
        "tx-checksum-ipv6",
    ],
    link: "TransmitChecksumOffload",
    ..freebsd(TxChecksum, ["TXCSUM", "txcsum"])
};
pub const TSO: &Offload = &Offload {
    name: "tcp-segmentation-offload",
    ethtool: "tso",
    parts: &["tx-tcp-segmentation", "tx-tcp-ecn-segmentation"],
    link: "TCPSegmentationOffload",
    ..freebsd(Tso, ["TSO4", "tso4"])
};
/// The other half of [`TSO`]: one word of ethtool(8) sets both.
pub const TSO6: &Offload = &Offload {
    parts: &["tx-tcp6-segmentation"],
    link: "TCP6SegmentationOffload",
    freebsd: ["TSO6", "tso6"],
    ..*TSO
};
pub const LRO: &Offload = &Offload {
    name: "large-receive-offload",
    ethtool: "lro",
    parts: &["rx-lro"],
    link: "LargeReceiveOffload",
    openbsd: ["LRO", "tcplro"],
    ..freebsd(Lro, ["LRO", "lro"])
};
pub const VLAN_TSO: &Offload = &freebsd(VlanTso, ["VLAN_HWTSO", "vlanhwtso"]);
pub const GSO: &Offload = &Offload {
    link: "GenericSegmentationOffload",
    ..linux(
        Some(Gso),
        ["generic-segmentation-offload", "gso"],
        &["tx-generic-segmentation"],
    )
};
pub const GRO: &Offload = &Offload {
    link: "GenericReceiveOffload",
    ..linux(Some(Gro), ["generic-receive-offload", "gro"], &["rx-gro"])
};
pub const SCATTER_GATHER: &Offload = &linux(None, ["scatter-gather", "sg"], &[]);
pub const RECEIVE_HASH: &Offload = &linux(None, ["receive-hashing", "rxhash"], &[]);
const UDP_GRO: &str = "rx-udp-gro-forwarding";

/// All offloads.
pub static OFFLOADS: [&Offload; 17] = [
    RX_CHECKSUMS,
    &freebsd(RxChecksum, ["RXCSUM_IPV6", "rxcsum6"]),
    TX_CHECKSUMS,
    &freebsd(TxChecksum, ["TXCSUM_IPV6", "txcsum6"]),
    TSO,
    TSO6,
    LRO,
    &freebsd(VlanOffload, ["VLAN_HWTAGGING", "vlanhwtag"]),
    &linux(
        Some(VlanOffload),
        ["rx-vlan-offload", "rxvlan"],
        &["rx-vlan-hw-parse"],
    ),
    &linux(
        Some(VlanOffload),
        ["tx-vlan-offload", "txvlan"],
        &["tx-vlan-hw-insert"],
    ),
    VLAN_TSO,
    GSO,
    GRO,
    &linux(Some(UdpGroForwarding), [UDP_GRO; 2], &[UDP_GRO]),
    SCATTER_GATHER,
    RECEIVE_HASH,
    &linux(None, ["ntuple-filters", "ntuple"], &[]),
];

impl Offload {
    /// The switches of a setting.
    pub fn of(feature: CardSetting) -> impl Iterator<Item = &'static Offload> {
        OFFLOADS
            .into_iter()
            .filter(move |offload| offload.feature == Some(feature))
    }

    /// The flag of ifconfig(8); `None` where the system has none for it.
    pub fn flag(&self, system: System) -> Option<Flag> {
        let flag = match system {
            System::Linux | System::Vyos => NO_FLAG,
            System::FreeBsd | System::PfSense | System::OpnSense => self.freebsd,
            System::OpenBsd => self.openbsd,
        };
        (flag != NO_FLAG).then_some(flag)
    }

    /// The words for `ethtool -K` that set it; none where Linux has no such offload.
    pub fn words(feature: CardSetting) -> Vec<&'static str> {
        let mut words: Vec<&str> = Offload::of(feature)
            .map(|offload| offload.ethtool)
            .collect();
        words.retain(|word| !word.is_empty());
        words.dedup();
        words
    }
}

impl CardSetting {
    /// Whether a system's cards have it.
    pub(crate) fn is_of(self, system: System) -> bool {
        matches!(system, System::Linux | System::Vyos)
            || Offload::of(self).any(|offload| offload.flag(system).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_set_somewhere() {
        for offload in OFFLOADS {
            let linux = !offload.ethtool.is_empty();
            assert!(
                linux || offload.flag(System::FreeBsd).is_some(),
                "{}",
                offload.name
            );
            assert!(
                linux || offload.parts.is_empty() && offload.link.is_empty(),
                "{}",
                offload.name
            );
        }
        assert_eq!(Offload::words(CardSetting::Tso), ["tso"]);
        assert_eq!(
            Offload::words(CardSetting::VlanOffload),
            ["rxvlan", "txvlan"]
        );
        assert!(Offload::words(CardSetting::VlanTso).is_empty());
    }
}
