//! The answers of ethtool(8), in the sections of its script: `==> -k eth0 <==`.

use super::{Bounded, Card};
use crate::systems::linux::pause;
use crate::systems::text::{lines, pairs, shown};

/// Entries that are kept of a table.
const MOST: usize = 4096;

/// Enters a section of an interface. Returns the reason if it has none of the values that it is about.
pub fn enter(card: &mut Card, option: &str, flow: &str, text: &str) -> Option<String> {
    let done = match option {
        "-i" => information(card, text),
        "-k" => features(card, text),
        "-l" => channels(card, text),
        "-g" => rings(card, text),
        "-c" => coalescing(card, text),
        "-a" => {
            card.pause = pause(text);
            card.pause != Default::default()
        }
        "-x" => indirection(card, text),
        "-n" => {
            let fields = fields(text);
            let known = !fields.is_empty();
            card.hash_fields
                .extend(known.then(|| (flow.to_string(), fields)));
            known
        }
        _ => return None,
    };
    // The reason stands in the last line: one before it names the request. Where a part is unsupported, others follow.
    let all = || lines(text).filter(|line| !line.trim().is_empty());
    let said = || {
        all()
            .find(|line| line.ends_with("not supported"))
            .or(all().last())
            .unwrap_or("no answer")
    };
    (!done).then(|| shown(said().trim()))
}

fn information(card: &mut Card, text: &str) -> bool {
    let value = |key: &str| {
        let found = pairs(text, ':')
            .find(|(name, _)| *name == key)
            .map(|(_, value)| shown(value));
        found.filter(|value| !value.is_empty() && value != "N/A")
    };
    card.driver = value("driver");
    card.driver_version = value("version");
    card.firmware = value("firmware-version");
    card.pci.slot = value("bus-info");
    card.driver.is_some()
}

fn features(card: &mut Card, text: &str) -> bool {
    let fixed = pairs(text, ':')
        .filter(|(_, value)| value.ends_with("[fixed]"))
        .map(|(name, _)| shown(name));
    card.fixed = fixed.take(MOST).collect();
    let known = pairs(text, ':').filter_map(|(name, value)| {
        let on = match value.split_ascii_whitespace().next()? {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        Some((shown(name), on))
    });
    card.features = known.take(MOST).collect();
    !card.features.is_empty()
}

/// Blocks of the most that is possible, and of the present values: `RX: 4`, `TX: n/a`.
fn limits(text: &str) -> impl Fn(&str) -> Bounded {
    let at = text.find("Current hardware settings").unwrap_or(text.len());
    let (most, now) = text.split_at(at);
    let number = |part: &str, key: &str| {
        pairs(part, ':')
            .find(|(name, _)| *name == key)
            .and_then(|(_, value)| value.parse().ok())
    };
    move |key| Bounded {
        now: number(now, key),
        most: number(most, key),
    }
}

fn channels(card: &mut Card, text: &str) -> bool {
    let of = limits(text);
    (card.rx_queues, card.tx_queues, card.combined_queues) = (of("RX"), of("TX"), of("Combined"));
    [card.rx_queues, card.tx_queues, card.combined_queues]
        .iter()
        .any(|queues| queues.now.is_some())
}

fn rings(card: &mut Card, text: &str) -> bool {
    let of = limits(text);
    (card.rx_ring, card.tx_ring) = (of("RX"), of("TX"));
    card.rx_ring.now.is_some() || card.tx_ring.now.is_some()
}

/// `rx-usecs: 3`, and `Adaptive RX: off  TX: n/a`, which becomes `adaptive-rx`, `adaptive-tx`.
fn coalescing(card: &mut Card, text: &str) -> bool {
    for (name, value) in pairs(text, ':').take(MOST) {
        let group = ["Adaptive", "CQE mode"]
            .iter()
            .find(|group| name == format!("{group} RX"));
        let parts = match (group, value.split_once("TX:")) {
            (Some(group), Some((rx, tx))) => {
                let group = group.to_ascii_lowercase().replace(' ', "-");
                vec![
                    (format!("{group}-rx"), rx.trim()),
                    (format!("{group}-tx"), tx.trim()),
                ]
            }
            _ => vec![(name.to_string(), value)],
        };
        // Reasons also have a colon: `netlink error: Operation not supported`.
        let is_value = |value: &str| ["on", "off"].contains(&value) || value.parse::<u64>().is_ok();
        let known = parts.into_iter().filter(|(_, value)| is_value(value));
        card.coalescing
            .extend(known.map(|(name, value)| (shown(&name), shown(value))));
    }
    !card.coalescing.is_empty()
}

/// The table: rows `    8:      0     1     2 …`; and the key in the line behind `RSS hash key:`.
fn indirection(card: &mut Card, text: &str) -> bool {
    let mut all = lines(text);
    while let Some(line) = all.next() {
        if line.trim() == "RSS hash key:" {
            let key = all.next().map_or("", str::trim);
            let hexadecimal =
                key.len() <= 1024 && key.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
            card.hash_key = Some(key.to_string()).filter(|key| hexadecimal && key.contains(':'));
        } else if let Some((at, queues)) = line.split_once(':')
            && at.trim().parse::<usize>() == Ok(card.indirection.len())
        {
            let room = MOST - card.indirection.len();
            let queues = queues
                .split_ascii_whitespace()
                .map_while(|queue| queue.parse::<u32>().ok());
            card.indirection.extend(queues.take(room));
        }
    }
    !card.indirection.is_empty()
}

/// Letters by which ethtool(8) is given fields of the hash, with the beginnings of the lines that show them.
const LETTERS: [(&str, char); 9] = [
    ("L2DA", 'm'),
    ("VLAN tag", 'v'),
    ("L3 proto", 't'),
    ("IP SA", 's'),
    ("IP DA", 'd'),
    ("L4 bytes 0 & 1", 'f'),
    ("L4 bytes 2 & 3", 'n'),
    ("GTP TEID", 'e'),
    ("IPv6 flow label", 'l'),
];

/// Fields of the hash as ethtool(8) is given them: `sdfn`; `None` for one without a letter, or for none.
pub fn letters(fields: &[String]) -> Option<String> {
    let of = |field: &String| {
        LETTERS
            .iter()
            .find(|(shown, _)| field.starts_with(shown))
            .map(|(_, letter)| letter)
    };
    fields
        .iter()
        .map(of)
        .collect::<Option<String>>()
        .filter(|letters| !letters.is_empty())
}

/// A table of queues as words of `ethtool -X`: `equal 4`, `weight 6 1 1`; `None` where neither makes this table.
pub fn spread(table: &[u32]) -> Option<String> {
    let most = table.iter().copied().max()?;
    let queues = most
        .checked_add(1)
        .filter(|n| (*n as usize) <= table.len())?;
    if table
        .iter()
        .zip((0..queues).cycle())
        .all(|(queue, equal)| *queue == equal)
    {
        return Some(format!("equal {queues}"));
    }
    let weights: Vec<String> = (0..queues)
        .map(|queue| table.iter().filter(|of| **of == queue).count().to_string())
        .collect();
    table
        .is_sorted()
        .then(|| format!("weight {}", weights.join(" ")))
}

/// The words of `ethtool -X` for the table that `ethtool -x` shows.
pub fn shown_spread(text: &str) -> Option<String> {
    let mut card = Card::default();
    indirection(&mut card, text);
    spread(&card.indirection)
}

/// The letters for the fields that `ethtool -n IFACE rx-flow-hash FLOW` shows.
pub fn shown_letters(text: &str) -> Option<String> {
    letters(&fields(text))
}

/// Lines below `UDP over IPV4 flows use these fields …:`.
fn fields(text: &str) -> Vec<String> {
    let below = lines(text)
        .skip_while(|line| !line.contains("use these fields"))
        .skip(1);
    // virtio_net says that it has chosen none, and hashes all the same.
    below
        .map(shown)
        .filter(|field| !field.is_empty() && field != "None")
        .take(16)
        .collect()
}
