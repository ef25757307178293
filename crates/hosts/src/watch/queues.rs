//! Which queue, direction and kind a driver's counter has, by its name. There is no standard: each driver has its own form, on Linux
//! (`ethtool -S`) and on FreeBSD (`sysctl dev`). They have in common a number, near a word for a queue or a direction, and words for
//! the kind.

use linerate_measure::collector::Counters;
use linerate_measure::watch::{Interface, Queue, Side};
use std::collections::BTreeMap;

/// Queues that are read of an interface.
const MOST_QUEUES: usize = 4096;
/// Words that a number belongs to if it is the number of a queue.
const QUEUES: [&str; 12] = [
    "queue", "q", "que", "ring", "rvec", "rxq", "txq", "rx", "tx", "rxstat", "txstat", "vec",
];
const RX: [&str; 8] = [
    "rx",
    "rxq",
    "rxstat",
    "in",
    "inpackets",
    "inoctets",
    "rcv",
    "ipackets",
];
const TX: [&str; 8] = [
    "tx",
    "txq",
    "txstat",
    "out",
    "outpackets",
    "outoctets",
    "xmit",
    "opackets",
];

/// Subject of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Packets,
    Bytes,
    Drops,
}

/// The counter of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    queue: usize,
    /// Whether it counts what left.
    tx: bool,
    kind: Kind,
    /// Of several counters of a kind the one with the highest rank counts; equal ones are parts, which are added.
    rank: u8,
}

/// How the counters of a driver, in their order, belong to queues.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    places: Vec<Option<Place>>,
    queues: usize,
}

impl Layout {
    /// By the names of all counters.
    pub fn of<S: AsRef<str>>(names: &[S]) -> Layout {
        let mut places: Vec<Option<Place>> =
            names.iter().map(|name| place(name.as_ref())).collect();
        let mut best: BTreeMap<(usize, bool, Kind), u8> = BTreeMap::new();
        for place in places.iter().flatten() {
            let rank = best.entry((place.queue, place.tx, place.kind)).or_default();
            *rank = place.rank.max(*rank);
        }
        for place in &mut places {
            *place = place.filter(|p| best.get(&(p.queue, p.tx, p.kind)) == Some(&p.rank));
        }
        // Some drivers number their drop counters beyond the queues that they have: a queue without a frame counter is left out.
        let counts: Vec<usize> = places
            .iter()
            .flatten()
            .filter(|p| p.kind != Kind::Drops)
            .map(|p| p.queue + 1)
            .collect();
        let queues = counts.iter().copied().max().unwrap_or(0);
        places
            .iter_mut()
            .for_each(|place| *place = place.filter(|p| p.queue < queues));
        Layout { places, queues }
    }

    /// Puts the values of the counters, in the order of their names, into an interface: those of queues, and the others that are
    /// not 0.
    pub fn fill<S: AsRef<str>>(&self, names: &[S], values: &[u64], interface: &mut Interface) {
        interface.queues = vec![Queue::default(); self.queues];
        let mut driver = Counters::new();
        for ((name, value), place) in names.iter().zip(values).zip(&self.places) {
            let Some(place) = place else {
                if *value > 0 {
                    driver.insert(name.as_ref().to_owned(), *value);
                }
                continue;
            };
            let queue = &mut interface.queues[place.queue];
            let side = if place.tx {
                &mut queue.tx
            } else {
                &mut queue.rx
            }
            .get_or_insert_with(Side::default);
            let sum = match place.kind {
                Kind::Packets => &mut side.packets,
                Kind::Bytes => &mut side.bytes,
                Kind::Drops => &mut side.drops,
            };
            *sum = sum.wrapping_add(*value);
        }
        interface.driver = driver;
    }
}

/// The counter of a queue that a name means.
fn place(name: &str) -> Option<Place> {
    let lower = name.to_ascii_lowercase();
    let words = words(&lower);
    let at = words
        .iter()
        .position(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let queue: usize = words[at]
        .parse()
        .ok()
        .filter(|queue| *queue < MOST_QUEUES)?;
    // `rx_queue_3_packets`, `queue_rx_3`, `[3]: rx_ucast_packets`, `rx_packets[3]`.
    let near = at.checked_sub(1).map(|before| words[before]);
    let in_brackets = lower.ends_with(']') && at + 1 == words.len();
    if !in_brackets && near.is_some_and(|word| !QUEUES.contains(&word)) {
        return None;
    }
    // FreeBSD's mlx5en counts each class of traffic of a queue: `txstat0tc1.packets`.
    let mut rest: Vec<&str> = words
        .iter()
        .enumerate()
        .filter(|(nth, _)| *nth != at)
        .map(|(_, w)| *w)
        .collect();
    if let Some(tc) = rest.iter().position(|word| *word == "tc") {
        rest.drain(tc..(tc + 2).min(rest.len()));
    }
    if rest
        .iter()
        .any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    {
        return None;
    }
    let has = |of: &[&str]| rest.iter().any(|word| of.contains(word));
    let (tx, rx) = (has(&TX), has(&RX));
    // A kind may name its direction once more (`rxq0.ipackets`).
    rest.retain(|word| {
        !QUEUES.contains(word)
            && !["iflib", "pf", "hstats", "vsi", "r", "rcv", "in", "out"].contains(word)
    });
    let (kind, rank, of_kind) = kind(&rest, near == Some("queue"))?;
    // The first to name the direction is the queue itself: `tx_queue_0_xdp_xmit`.
    let tx = match (tx, rx, of_kind) {
        (true, false, _) => true,
        (false, true, _) => false,
        (_, _, Some(tx)) => tx,
        _ => return None,
    };
    Some(Place {
        queue,
        tx,
        kind,
        rank,
    })
}

/// The kind that the words behind queue and direction mean, its rank, and its direction where it implies one. `in_words`: the name says
/// `queue`.
fn kind(rest: &[&str], in_words: bool) -> Option<(Kind, u8, Option<bool>)> {
    let joined = rest.join(" ");
    let is_drop = |word: &&str| {
        ["drop", "discard", "overrun", "ovflow", "overflow"].iter().any(|sign| word.starts_with(sign))
            // vmxnet3's frames without a receive buffer.
            || ["iqdrops", "oqdrops", "oob"].contains(word)
    };
    Some(match joined.as_str() {
        "packets" | "pkts" | "pkt" | "cnt" | "frames" | "pkt n" | "pkt num" | "ucast packets"
        | "mcast packets" | "bcast packets" | "ucast pkts" | "mcast pkts" | "bcast pkts"
        | "unicast packets" | "xmit pkts" => (Kind::Packets, 3, None),
        "ipackets" | "inpackets" => (Kind::Packets, 3, Some(false)),
        "opackets" | "outpackets" => (Kind::Packets, 3, Some(true)),
        // virtio_net of Linux 6.10 and later shows the frames of its queues by netlink alone (netdev's qstats).
        "xdp packets" | "xdp bytes" if !in_words => return None,
        // Frames that an XDP program has seen: all of them on veth, and a part of `packets` elsewhere.
        "xdp packets" | "xdp xmit" => (Kind::Packets, 2, None),
        // Frames that the stack gave to the queue (iflib), or whose checksum the card has checked (cxgbe): nearly all.
        "enqueues" | "rxcsum" => (Kind::Packets, 1, None),
        "bytes" | "octets" | "ucast bytes" | "mcast bytes" | "bcast bytes" | "xmit bytes" => {
            (Kind::Bytes, 3, None)
        }
        "ibytes" | "inoctets" => (Kind::Bytes, 3, Some(false)),
        "obytes" | "outoctets" => (Kind::Bytes, 3, Some(true)),
        "xdp bytes" => (Kind::Bytes, 2, None),
        // Frames for which a veth's peer had no room.
        "xdp xmit errors" => (Kind::Drops, 2, None),
        // An XDP program drops on purpose.
        _ if rest.contains(&"xdp") => return None,
        _ if rest.iter().any(is_drop) => {
            (Kind::Drops, 2, rest.contains(&"iqdrops").then_some(false))
        }
        _ => return None,
    })
}

/// Words and numbers of a name: `rxq00.packets` is `rxq`, `00`, `packets`.
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
    {
        let mut rest = part;
        while let Some(first) = rest.bytes().next() {
            let is_same = |b: u8| b.is_ascii_digit() == first.is_ascii_digit();
            let end = rest.bytes().position(|b| !is_same(b)).unwrap_or(rest.len());
            let (word, more) = rest.split_at(end);
            words.push(word);
            rest = more;
        }
    }
    words
}
