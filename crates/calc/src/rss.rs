//! Receive-side scaling: which queue a card puts a flow into, and how evenly flows spread.
//!
//! The card hashes addresses and ports with a key (Toeplitz), takes the low bits of the hash as an index into its indirection
//! table, and finds the queue there.

use crate::Unit::Count;
use crate::{CalcError, Calculation, Result, Unit, amounts, within};
use linerate_wire::words::Joined;
use linerate_wire::{EndpointRange, Family, Flow, FlowSpace, MAX_FLOWS};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Most bytes that are hashed: two IPv6 addresses and two ports.
const MOST_INPUT: usize = 36;
/// Most slots of an indirection table.
const MOST_SLOTS: usize = 1 << 16;

/// The secret that a card hashes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key of Microsoft's specification, with its published hashes.
    pub fn microsoft() -> Key {
        Key(vec![
            0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
            0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
            0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
        ])
    }

    /// A key that gives both directions of a connection the same hash (Woo and Park 2012).
    pub fn symmetric() -> Key {
        Key([0x6d, 0x5a].repeat(20))
    }

    /// The 32 bits from this bit on, the highest first.
    fn window(&self, bit: usize) -> u32 {
        let byte = |at: usize| u64::from(self.0.get(bit / 8 + at).copied().unwrap_or(0));
        let bytes = (0..5).fold(0, |bits, at| bits << 8 | byte(at));
        (bytes >> (8 - bit % 8)) as u32
    }
}

/// `microsoft`, `symmetric`, or 40 to 64 bytes in hexadecimal, with or without colons, as ethtool -x prints them.
impl FromStr for Key {
    type Err = CalcError;

    fn from_str(text: &str) -> Result<Key> {
        match text.trim() {
            "microsoft" => return Ok(Key::microsoft()),
            "symmetric" => return Ok(Key::symmetric()),
            _ => {}
        }
        let digits: Vec<u8> = text
            .bytes()
            .filter(|b| !b.is_ascii_whitespace() && *b != b':')
            .collect();
        let digit = |b: u8| (b as char).to_digit(16).map(|n| n as u8);
        let bytes = digits
            .chunks(2)
            .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?));
        let bytes = bytes
            .collect::<Option<Vec<u8>>>()
            .filter(|bytes| (40..=64).contains(&bytes.len()));
        bytes.map(Key).ok_or_else(|| {
            CalcError::new("this is not an RSS key: write its 40 to 64 bytes in hexadecimal, as ethtool -x prints them, or microsoft, or symmetric")
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Key::microsoft() {
            return f.write_str("microsoft");
        }
        f.write_str(&self.0.iter().map(|byte| format!("{byte:02x}")).joined(":"))
    }
}

/// Fields that a card hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// The addresses alone: the default of many cards for UDP.
    Addresses,
    /// Addresses and ports.
    Ports,
}

/// A card's way to choose a queue.
#[derive(Debug)]
pub struct Rss {
    key: Key,
    fields: Fields,
    table: Vec<u32>,
    /// The hash of each value of each byte: the hash of several bytes is their sum, without carries.
    bytes: Vec<[u32; 256]>,
}

impl Rss {
    /// A card with this indirection table, as ethtool -x prints it.
    ///
    /// # Errors
    /// The number of slots is not a power of two up to 65,536.
    pub fn new(key: Key, fields: Fields, table: Vec<u32>) -> Result<Rss> {
        if !table.len().is_power_of_two() || table.len() > MOST_SLOTS {
            let text = format!(
                "an indirection table of {} slots: cards have a power of two of them, up to 65,536",
                table.len()
            );
            return Err(CalcError::new(text));
        }
        let of_byte = |at: usize| {
            let windows: [u32; 8] = std::array::from_fn(|bit| key.window(8 * at + bit));
            let of = |value: usize| {
                (0..8)
                    .filter(|bit| value & (0x80 >> bit) != 0)
                    .fold(0, |hash, bit| hash ^ windows[bit])
            };
            std::array::from_fn(of)
        };
        let bytes = (0..MOST_INPUT).map(of_byte).collect();
        Ok(Rss {
            key,
            fields,
            table,
            bytes,
        })
    }

    /// A card whose table names its queues in turn, as drivers set it.
    ///
    /// # Errors
    /// No queues, more queues than slots, or a number of slots as [`Rss::new`] refuses it.
    pub fn in_turn(key: Key, fields: Fields, queues: u32, slots: u32) -> Result<Rss> {
        within("a table size", slots.into(), 1.0, MOST_SLOTS as f64, Count)?;
        within(
            "a number of queues",
            queues.into(),
            1.0,
            slots.into(),
            Count,
        )?;
        Rss::new(key, fields, (0..slots).map(|slot| slot % queues).collect())
    }

    /// The Toeplitz hash of a flow.
    pub fn hash(&self, flow: &Flow) -> u32 {
        let (input, length) = input(flow, self.fields);
        input[..length]
            .iter()
            .zip(&self.bytes)
            .fold(0, |hash, (byte, of)| hash ^ of[usize::from(*byte)])
    }

    /// The slot of a hash.
    pub fn slot(&self, hash: u32) -> usize {
        hash as usize & (self.table.len() - 1)
    }

    /// The queue of a flow.
    pub fn queue(&self, flow: &Flow) -> u32 {
        self.table[self.slot(self.hash(flow))]
    }

    /// The queues that the table names, each with its slots and the flows of this space that it gets.
    pub fn spread(&self, space: &FlowSpace) -> Vec<Share> {
        let mut in_slot = vec![0u64; self.table.len()];
        for flow in space.iter() {
            in_slot[self.slot(self.hash(&flow))] += 1;
        }
        let mut shares: std::collections::BTreeMap<u32, Share> = Default::default();
        for (queue, flows) in self.table.iter().zip(in_slot) {
            let share = shares.entry(*queue).or_insert(Share {
                queue: *queue,
                slots: 0,
                flows: 0,
            });
            share.slots += 1;
            share.flows += flows;
        }
        shares.into_values().collect()
    }

    /// A space of at least so many flows, whose hashes fall into each slot equally often. `None` where the key or the fields allow
    /// none of this form.
    ///
    /// The hash is linear: the slots of a block of addresses and ports that is aligned to a power of two are the sums of its bits'
    /// windows of the key. If these windows reach all slots, they reach each equally often.
    pub fn even(&self, family: Family, flows: u64) -> Option<FlowSpace> {
        let addresses = if family == Family::V4 { 4 } else { 16 };
        // Bit positions in the input, the lowest bit of each field first: ports of both sides, then addresses of both sides.
        let low_bits = |end: usize, count: usize| (0..count).map(move |bit| 8 * end - 1 - bit);
        let ports = if self.fields == Fields::Ports {
            PORT_BITS
        } else {
            0
        };
        let fields = [
            (2 * addresses + 2, ports),
            (2 * addresses, ADDRESS_BITS),
            (addresses, ADDRESS_BITS),
            (2 * addresses + 4, ports),
        ];
        let positions = fields
            .into_iter()
            .enumerate()
            .flat_map(|(field, (end, count))| low_bits(end, count).map(move |at| (field, at)));
        let wanted = self.table.len().trailing_zeros();
        let mut used = [0u32; 4];
        let mut basis: Vec<u32> = Vec::new();
        for (field, at) in positions {
            let enough = 1u64 << used.iter().sum::<u32>().min(63) >= flows;
            if basis.len() as u32 == wanted && enough {
                break;
            }
            used[field] += 1;
            let mut window = self.slot(self.key.window(at)) as u32;
            basis
                .iter()
                .for_each(|known| window = window.min(window ^ known));
            if window != 0 {
                basis.push(window);
            }
        }
        let [source_port, destination, source, destination_port] = used;
        let side = |first: IpAddr, address_bits: u32, port_bits: u32| {
            let last = match first {
                IpAddr::V4(v4) => {
                    IpAddr::V4(Ipv4Addr::from(u32::from(v4) + (1 << address_bits) - 1))
                }
                IpAddr::V6(v6) => {
                    IpAddr::V6(Ipv6Addr::from(u128::from(v6) + (1 << address_bits) - 1))
                }
            };
            let port = 1 << PORT_BITS;
            EndpointRange::new(first, last, port, port + (1 << port_bits) - 1).ok()
        };
        let [from, to]: [IpAddr; 2] = match family {
            Family::V4 => [
                Ipv4Addr::new(198, 18, 10, 64).into(),
                Ipv4Addr::new(198, 19, 10, 64).into(),
            ],
            Family::V6 => {
                let address = |net| Ipv6Addr::new(0x2001, 2, 0, net, 0, 0, 0, 64).into();
                [address(0x10), address(0x8010)]
            }
        };
        let space = FlowSpace::new(
            side(from, source, source_port)?,
            side(to, destination, destination_port)?,
        )
        .ok()?;
        (basis.len() as u32 == wanted && space.len() >= flows && space.usable_len().is_ok())
            .then_some(space)
    }
}

/// Bits of a port that an even space varies: from 16,384 on.
const PORT_BITS: usize = 14;
/// Bits of an address that it varies: .64 to .127, so that no network's first or last address is among them.
const ADDRESS_BITS: usize = 6;

/// A queue's part of a flow space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the queue.
    pub queue: u32,
    /// Slots of the table that name it.
    pub slots: u32,
    /// Flows that it gets.
    pub flows: u64,
}

/// The bytes that are hashed: source and destination address, then source and destination port.
fn input(flow: &Flow, fields: Fields) -> ([u8; MOST_INPUT], usize) {
    let mut bytes = [0; MOST_INPUT];
    let mut length = 0;
    let mut add = |part: &[u8]| {
        bytes[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    };
    for address in [flow.src, flow.dst] {
        match address {
            IpAddr::V4(v4) => add(&v4.octets()),
            IpAddr::V6(v6) => add(&v6.octets()),
        }
    }
    if fields == Fields::Ports {
        add(&flow.src_port.to_be_bytes());
        add(&flow.dst_port.to_be_bytes());
    }
    (bytes, length)
}

/// The queue of a flow, or the spread of many.
///
/// # Errors
/// More flows than a generator takes.
pub fn rss(card: &Rss, space: &FlowSpace) -> Result {
    space.usable_len()?;
    let shares = card.spread(space);
    let (flows, queues) = (space.len() as f64, shares.len() as f64);
    let most = shares.iter().map(|share| share.flows).max().unwrap_or(0) as f64;
    let least = shares.iter().map(|share| share.flows).min().unwrap_or(0) as f64;
    let page = Calculation::new("Receive-side scaling")
        .given_text("flows", space.to_string())
        .given_text("hashed", if card.fields == Fields::Ports { "addresses and ports" } else { "addresses alone" })
        .given("slots", card.table.len() as f64, Count)
        .given("queues", queues, Count)
        .given_text("key", card.key.to_string())
        .formula(&[
            "hash = XOR, over each bit n that is 1 in (source address, destination address, ports), of the 32 bits of the key from bit n on",
            "queue = table[hash modulo slots]",
            "share of an even spread = flows / (queues x flows of the busiest queue), where all flows have the same rate",
        ])
        .source("Microsoft, \"RSS hashing functions\" and \"Verifying the RSS hash calculation\"")
        .source("Linux, Documentation/networking/scaling.rst")
        .note("The key and the table are those that ethtool -x prints (Linux). Many drivers draw the key anew at each start; ethtool -X sets it.")
        .note("Many cards hash UDP by addresses alone: ethtool -n IFACE rx-flow-hash udp4 prints it. Fragments and tunnels never have ports.");
    if space.len() == 1 {
        let flow = space.flow(0);
        let hash = card.hash(&flow);
        let (slot, queue) = (card.slot(hash), card.queue(&flow));
        return Ok(page
            .answer(format!(
                "The flow's hash is {hash:#010x}: slot {slot}, queue {queue}."
            ))
            .result("slot", slot as f64, Count)
            .result("queue", queue, Count)
            .result_text("hash", format!("{hash:#010x}")));
    }
    let even = flows / (queues * most);
    let (all, busiest, share) = (
        Count.show(flows),
        Count.show(most),
        Unit::Share.show(most / flows),
    );
    let row = |share: &Share| {
        let numbers = [
            f64::from(share.queue),
            f64::from(share.slots),
            share.flows as f64,
        ]
        .map(|n| (n, Count));
        amounts(
            None,
            &[&numbers[..], &[(share.flows as f64 / flows, Unit::Share)]].concat(),
        )
    };
    Ok(page
        .answer(if least == most { format!("{all} flows spread evenly: {busiest} for each of {queues} queues.") } else { format!(
                "The busiest of {queues} queues gets {share} of {all} flows. When this queue is full, all {queues} together carry {} of what an even spread would.",
                Unit::Share.show(even)
            ) })
        .result("flows of the busiest queue", most, Count)
        .result("flows of the idlest queue", least, Count)
        .result("share of the busiest queue", most / flows, Unit::Share)
        .result("share of an even spread", even, Unit::Share)
        .table(&["queue", "slots", "flows", "share"], shares.iter().map(row).collect()))
}

/// A flow space that this card spreads evenly, and the proof of it.
///
/// # Errors
/// There is none: the key is too regular for the table, or too many flows are asked for.
pub fn rss_even(card: &Rss, family: Family, flows: u64) -> Result {
    within(
        "a number of flows",
        flows as f64,
        1.0,
        MAX_FLOWS.into(),
        Count,
    )?;
    let space = card.even(family, flows).ok_or_else(|| {
        CalcError::new(format!(
            "no block of {flows} flows spreads evenly over {} slots with this key and these fields: ask for fewer flows, or hash the ports too",
            card.table.len()
        ))
    })?;
    let page = rss(card, &space)?
        .result_text("linerate", format!("--src {} --dst {}", space.source(), space.destination()))
        .result_text("pkt-gen", format!("-s {} -d {}", space.source(), space.destination()))
        .note("Each slot of the table gets the same number of flows; queues get the same where they have the same number of slots.");
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(src: &str, src_port: u16, dst: &str, dst_port: u16) -> Flow {
        Flow {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            src_port,
            dst_port,
        }
    }

    /// Microsoft, "Verifying the RSS hash calculation": destination, source, hash of the addresses, hash with the ports.
    #[test]
    fn published_test_vectors() {
        let vectors = [
            (
                ("161.142.100.80", 1766),
                ("66.9.149.187", 2794),
                0x323e_8fc2,
                0x51cc_c178,
            ),
            (
                ("65.69.140.83", 4739),
                ("199.92.111.2", 14230),
                0xd718_262a,
                0xc626_b0ea,
            ),
            (
                ("12.22.207.184", 38024),
                ("24.19.198.95", 12898),
                0xd2d0_a5de,
                0x5c2b_394a,
            ),
            (
                ("209.142.163.6", 2217),
                ("38.27.205.30", 48228),
                0x8298_9176,
                0xafc7_327f,
            ),
            (
                ("202.188.127.2", 1303),
                ("153.39.163.191", 44251),
                0x5d18_09c5,
                0x10e8_28a2,
            ),
            (
                ("3ffe:2501:200:3::1", 1766),
                ("3ffe:2501:200:1fff::7", 2794),
                0x2cc1_8cd5,
                0x4020_7d3d,
            ),
            (
                ("ff02::1", 4739),
                ("3ffe:501:8::260:97ff:fe40:efab", 14230),
                0x0f0c_461c,
                0xdde5_1bbf,
            ),
            (
                ("fe80::200:f8ff:fe21:67cf", 38024),
                ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
                0x4b61_e985,
                0x02d1_feef,
            ),
        ];
        let card = |fields| Rss::in_turn(Key::microsoft(), fields, 8, 128).unwrap();
        let (addresses, ports) = (card(Fields::Addresses), card(Fields::Ports));
        for ((dst, dst_port), (src, src_port), plain, with_ports) in vectors {
            let flow = flow(src, src_port, dst, dst_port);
            assert_eq!(
                (addresses.hash(&flow), ports.hash(&flow)),
                (plain, with_ports),
                "{dst}"
            );
            assert_eq!(ports.queue(&flow), (with_ports & 127) % 8);
        }
    }

    #[test]
    fn a_symmetric_key_puts_both_directions_into_one_queue() {
        let card = Rss::in_turn(Key::symmetric(), Fields::Ports, 16, 128).unwrap();
        let there = flow("198.18.10.7", 2001, "198.19.10.99", 53);
        let back = Flow {
            src: there.dst,
            dst: there.src,
            src_port: there.dst_port,
            dst_port: there.src_port,
        };
        assert_eq!(card.hash(&there), card.hash(&back));
        let other = Rss::in_turn(Key::microsoft(), Fields::Ports, 16, 128).unwrap();
        assert_ne!(other.hash(&there), other.hash(&back));
    }

    #[test]
    fn keys_are_read_as_ethtool_prints_them() {
        let text = Key::microsoft()
            .0
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<Vec<_>>()
            .join(":");
        assert_eq!(text.parse(), Ok(Key::microsoft()));
        assert_eq!(text.replace(':', "").parse(), Ok(Key::microsoft()));
        assert_eq!(Key::symmetric().to_string().parse(), Ok(Key::symmetric()));
        for bad in [
            "",
            "6d:5a",
            "zz",
            &"6d".repeat(65),
            &format!("{text}:6"),
            "\u{3b1}\u{3b1}",
        ] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tables_that_no_card_has_are_refused() {
        let made =
            |queues, slots| Rss::in_turn(Key::microsoft(), Fields::Ports, queues, slots).is_ok();
        assert!(made(1, 1) && made(6, 64) && made(64, 64));
        assert!(
            !made(0, 64)
                && !made(65, 64)
                && !made(4, 0)
                && !made(4, 48)
                && !made(4, 1 << 17)
                && !made(4, u32::MAX)
        );
        assert!(Rss::new(Key::microsoft(), Fields::Ports, Vec::new()).is_err());
    }

    /// The constructed space is exactly even for any key that allows one; keys without order nearly always do.
    #[test]
    fn constructed_spaces_are_exactly_even() {
        for (family, fields, slots) in [
            (Family::V4, Fields::Ports, 128),
            (Family::V6, Fields::Ports, 512),
            (Family::V4, Fields::Addresses, 64),
            (Family::V6, Fields::Addresses, 128),
        ] {
            // To a symmetric key the bits of both addresses are the same, and are too few.
            let keys = [Key::microsoft(), Key::symmetric()];
            for key in keys
                .into_iter()
                .take(if fields == Fields::Ports { 2 } else { 1 })
            {
                let card = Rss::in_turn(key, fields, slots, slots).unwrap();
                let space = card.even(family, 2000).unwrap();
                assert!(space.len() >= 2000);
                let shares = card.spread(&space);
                assert_eq!(shares.len(), slots as usize);
                assert!(
                    shares
                        .iter()
                        .all(|share| share.flows == space.len() / u64::from(slots)),
                    "{shares:?}"
                );
            }
        }
        let zero = Rss::in_turn(Key(vec![0; 40]), Fields::Ports, 4, 128).unwrap();
        assert_eq!(zero.even(Family::V4, 2000), None);
        assert!(
            rss_even(&zero, Family::V4, 2000)
                .unwrap_err()
                .to_string()
                .contains("128 slots")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Bit by bit as the specification writes it, against the sums of bytes.
        #[test]
        fn bytes_and_bits_give_the_same_hash(key in prop::collection::vec(any::<u8>(), 40..=64), src: u32, dst: u32, ports: (u16, u16)) {
            let flow = Flow { src: Ipv4Addr::from(src).into(), dst: Ipv4Addr::from(dst).into(), src_port: ports.0, dst_port: ports.1 };
            let card = Rss::in_turn(Key(key.clone()), Fields::Ports, 4, 128).unwrap();
            let (bytes, length) = input(&flow, Fields::Ports);
            let mut expected = 0u32;
            for bit in (0..8 * length).filter(|bit| bytes[bit / 8] & (0x80 >> (bit % 8)) != 0) {
                expected ^= (0..32).fold(0, |hash, at| hash << 1 | u32::from(key[(bit + at) / 8] >> (7 - (bit + at) % 8) & 1));
            }
            prop_assert_eq!(card.hash(&flow), expected);
        }

        #[test]
        fn a_random_key_has_an_even_space_or_none(key in prop::collection::vec(any::<u8>(), 40), slots in 0u32..8, flows in 1u64..500) {
            let card = Rss::in_turn(Key(key), Fields::Ports, 1 << slots, 1 << slots).unwrap();
            if let Some(space) = card.even(Family::V4, flows) {
                let shares = card.spread(&space);
                prop_assert!(shares.iter().all(|share| share.flows == shares[0].flows) && space.len() >= flows);
            }
        }
    }
}
