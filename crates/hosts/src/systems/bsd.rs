//! Answers of FreeBSD, OpenBSD and NetBSD: ifconfig(8), arp(8) and ndp(8), route(8), netstat(1).

use super::facts::{COUNTERS, Interface, Neighbour, Pause, Way};
use super::text::{MOST_ENTRIES, address, is_name, lines, mac, pairs, shown};
use linerate_measure::collector::Counters;
use linerate_plan::lab::HostAddress;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The kind of an interface, by its name: `igb` of igb0.
pub fn kind(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Whether an interface is no card, and may count the frames of others again. A VLAN of FreeBSD is `igb0.5`.
pub fn is_stacked(name: &str) -> bool {
    const KINDS: &str = "lo enc pflog pfsync bridge vlan svlan lagg trunk tun tap gif gre wg carp ipfw usbus vxlan stf ipsec vm- plip";
    name.contains(['.', '@']) || KINDS.split(' ').any(|of| of == kind(name))
}

/// All interfaces of `ifconfig -a`.
pub fn interfaces(text: &str) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for line in lines(text) {
        if !line.starts_with([' ', '\t']) {
            let begun = header(line);
            if begun.is_some() && interfaces.len() == MOST_ENTRIES {
                break;
            }
            interfaces.extend(begun);
        } else if let Some(interface) = interfaces.last_mut() {
            detail(line.trim(), interface);
        }
    }
    interfaces
}

/// `igb1: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500`.
fn header(line: &str) -> Option<Interface> {
    let (name, rest) = line.split_once(": ")?;
    let rest = rest.trim_start().strip_prefix("flags=")?;
    let flags = rest
        .split_once('<')
        .and_then(|(_, f)| f.split_once('>'))
        .map_or("", |(flags, _)| flags);
    let mtu = after(rest, "mtu").and_then(|mtu| mtu.parse().ok());
    let up = flags.split(',').any(|f| f == "UP");
    is_name(name).then(|| Interface {
        name: name.into(),
        up,
        mtu,
        ..Interface::default()
    })
}

fn detail(line: &str, interface: &mut Interface) {
    let Some((key, value)) = line.split_once([' ', '\t']) else {
        return;
    };
    let value = value.trim();
    match key.trim_end_matches(':') {
        "ether" | "lladdr" | "address" => {
            interface.mac = interface.mac.or_else(|| mac(value.split(' ').next()?))
        }
        "inet" if interface.addresses.len() < MOST_ENTRIES => {
            interface.addresses.extend(inet(value))
        }
        "inet6" if interface.addresses.len() < MOST_ENTRIES => {
            interface.addresses.extend(inet6(value))
        }
        "media" => media(value, interface),
        "status" => {
            interface.link = match value {
                "active" => Some(true),
                "no carrier" | "no network" | "down" => Some(false),
                _ => None,
            }
        }
        _ => {}
    }
}

/// `198.18.0.205 netmask 0xffffff00 broadcast …`, `10.0.2.15/24 broadcast …`, `10.0.0.1 --> 10.0.0.2 netmask …`.
fn inet(value: &str) -> Option<HostAddress> {
    let first = value.split_ascii_whitespace().next()?;
    if first.contains('/') {
        return first.parse().ok();
    }
    let address: IpAddr = address(first)?;
    let bits = after(value, "netmask").and_then(|mask| match mask.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => mask.parse::<std::net::Ipv4Addr>().ok().map(u32::from),
    });
    // A mask with holes describes no network.
    let length = bits
        .filter(|b| b.leading_ones() + b.trailing_zeros() >= 32)
        .map(|b| b.leading_ones() as u8);
    Some(HostAddress { address, length })
}

/// `fe80::20d:b9ff:fe41:ca3d%igb1 prefixlen 64 scopeid 0x2`, `fe80::1%wm0/64 flags 0`.
fn inet6(value: &str) -> Option<HostAddress> {
    let first = value.split_ascii_whitespace().next()?;
    let (text, attached) = first
        .split_once('/')
        .map_or((first, None), |(a, l)| (a, Some(l)));
    let length = attached
        .or(after(value, "prefixlen"))
        .and_then(|l| l.parse().ok())
        .filter(|l| *l <= 128);
    Some(HostAddress {
        address: address(text).filter(IpAddr::is_ipv6)?,
        length,
    })
}

/// The word that follows a key.
fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .skip_while(|word| *word != key)
        .nth(1)
}

/// `Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)`, `Ethernet autoselect (1000baseT full-duplex,master)`,
/// `Ethernet 10Gbase-T <full-duplex>`.
fn media(value: &str, interface: &mut Interface) {
    interface.media = Some(shown(value));
    // The medium in use stands in brackets, the configured one before them.
    let current = value
        .split_once('(')
        .map_or(value, |(_, c)| c.trim_end_matches(')'));
    let words = || {
        current
            .split([' ', '<', '>', ',', '(', ')', '\t'])
            .filter(|w| !w.is_empty())
    };
    interface.speed = words().find_map(speed);
    let has = |what: &str| words().any(|w| w.eq_ignore_ascii_case(what));
    if has("full-duplex") || has("half-duplex") {
        interface.full_duplex = Some(has("full-duplex"));
    }
    // A driver that never shows pauses may use them: absence is no "off".
    let flow = |name: &str| {
        (interface.speed.is_some() && (has(name) || has("flowcontrol") || has("flow")))
            .then_some(true)
    };
    let (rx, tx) = (flow("rxpause"), flow("txpause"));
    interface.pause = Pause {
        rx: rx.or(interface.pause.rx),
        tx: tx.or(interface.pause.tx),
        ..interface.pause
    };
}

/// Bit/s of a medium's name: `1000baseT`, `10Gbase-SR`, `2500Base-T`, `100GBase-CR4`, `10baseT/UTP`.
fn speed(word: &str) -> Option<f64> {
    let lower = word.to_ascii_lowercase();
    let (number, _) = lower.split_once("base")?;
    let (number, unit) = match number.strip_suffix('g') {
        Some(number) => (number, 1e9),
        None => (number, 1e6),
    };
    number
        .parse::<f64>()
        .ok()
        .map(|n| n * unit)
        .filter(|bits| (1e6..1e13).contains(bits))
}

/// Flow control by a driver's settings, which override the negotiated state: 0 none, 1 obeyed, 2 sent, 3 both.
pub fn pause(settings: &BTreeMap<String, String>, pause: &mut Pause) {
    let number = |key: &str| {
        settings
            .iter()
            .find(|(name, _)| name.ends_with(key))
            .and_then(|(_, v)| v.trim().parse::<u8>().ok())
    };
    if let Some(mode) = number(".fc").or(number(".pause_settings")) {
        *pause = Pause {
            rx: Some(mode & 1 != 0),
            tx: Some(mode & 2 != 0),
            ..Pause::default()
        };
    }
    if let Some(rx) = number(".rx_pauseframe_control") {
        pause.rx = Some(rx != 0);
    }
    if let Some(tx) = number(".tx_pauseframe_control") {
        pause.tx = Some(tx != 0);
    }
}

/// Entries of `arp -an` and `ndp -an`.
pub fn neighbours(text: &str) -> Vec<Neighbour> {
    lines(text)
        .filter_map(|line| sentence(line).or_else(|| row(line)))
        .take(MOST_ENTRIES)
        .collect()
}

/// FreeBSD and NetBSD: `? (198.18.0.203) at 0c:c4:7a:ab:29:35 on igb1 expires in 1193 seconds [ethernet]`.
fn sentence(line: &str) -> Option<Neighbour> {
    let (_, rest) = line.split_once(" (")?;
    let (host, rest) = rest.split_once(") at ")?;
    let (station, rest) = rest.split_once(" on ")?;
    let mut words = rest.split_ascii_whitespace();
    let interface = words.next().filter(|w| is_name(w))?.to_string();
    let permanent = words.any(|w| w == "permanent");
    Some(Neighbour {
        address: address(host)?,
        mac: mac(station.trim()),
        interface,
        permanent,
    })
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
    let rest: Vec<&str> = words.collect();
    // The host's own addresses are among them, flagged so.
    (rest.last() != Some(&"l")).then(|| {
        let permanent = rest.contains(&"permanent");
        Neighbour {
            address,
            mac,
            interface,
            permanent,
        }
    })
}

/// The answer of `route -n get ADDRESS`: lines `  interface: igb2`.
pub fn way(text: &str) -> Option<Way> {
    let value = |key: &str| {
        pairs(text, ':')
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    };
    let interface = value("interface").filter(|i| is_name(i))?.to_string();
    let flags = value("flags").unwrap_or("");
    // OpenBSD names the interface's own address as gateway of a network that is at it.
    let gateway = value("gateway")
        .and_then(address)
        .filter(|_| flags.is_empty() || flags.contains("GATEWAY"));
    Some(Way { gateway, interface })
}

/// Rows of `netstat -i` with -b and -d in any combination, of FreeBSD, OpenBSD and NetBSD: those of the interfaces themselves,
/// `<Link#2>`, not those of their addresses. Each with its columns by name. OpenBSD's has drops and errors in tables of their own.
///
/// The header names the columns; as `Address` may be empty, they are counted from the right.
pub fn link_rows(text: &str) -> BTreeMap<&str, BTreeMap<&str, u64>> {
    let mut columns: Vec<&str> = Vec::new();
    let mut all: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for line in lines(text) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(32).collect();
        if words.first() == Some(&"Name") {
            let after = words
                .iter()
                .position(|w| *w == "Address")
                .map_or(words.len(), |at| at + 1);
            columns = words[after..].to_vec();
            continue;
        }
        let is_link = words.get(2).is_some_and(|w| w.starts_with("<Link"));
        if !is_link
            || columns.is_empty()
            || words.len() < 3 + columns.len()
            || all.len() == MOST_ENTRIES
        {
            continue;
        }
        let name = words[0].trim_end_matches('*');
        let values = columns.iter().zip(&words[words.len() - columns.len()..]);
        let numbers = values.filter_map(|(column, value)| Some((*column, value.parse().ok()?)));
        if is_name(name) {
            let row = all.entry(name).or_default();
            numbers.for_each(|(column, value)| {
                row.entry(column).or_insert(value);
            });
        }
    }
    all
}

/// The counters of [`link_rows`] that all systems have. OpenBSD counts frames that found its software queue full among those that came
/// in, and once more as `Idrop`: they are `rx_dropped`, and not `rx_missed`.
pub fn counters(text: &str) -> BTreeMap<String, Counters> {
    // Names differ between systems; none has two of a kind.
    let sums: [&[&str]; 4] = [
        &["Ipkts"],
        &["Ierrs", "Ifail", "Idrop", "Iqdrops"],
        &["Opkts"],
        &["Oerrs", "Ofail", "Drop", "Drops", "Odrop", "Oqdrops"],
    ];
    let of = |(name, row): (&str, BTreeMap<&str, u64>)| {
        let sum = |names: &[&str]| {
            names
                .iter()
                .filter_map(|n| row.get(n).copied())
                .reduce(u64::saturating_add)
        };
        let counted = COUNTERS
            .iter()
            .zip(sums)
            .filter_map(|(name, of)| Some((name.to_string(), sum(of)?)));
        let mut counted: Counters = counted.collect();
        if let Some(dropped) = row.get("Idrop").filter(|_| row.contains_key("Odrop")) {
            counted.insert("rx_dropped".into(), *dropped);
            counted.insert("rx_missed".into(), row.get("Ierrs").copied().unwrap_or(0));
        }
        (name.to_owned(), counted)
    };
    link_rows(text).into_iter().map(of).collect()
}

/// Interrupts of `vmstat -i` with their totals: `irq11: em0:irq0   2   0`, `irq96/em0  12  3`. The last number is a rate.
pub fn interrupts(text: &str) -> impl Iterator<Item = (String, u64)> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name @ .., total, _] = words.as_slice() else {
            return None;
        };
        let name = shown(&name.join(" "));
        Some((name, total.parse().ok()?))
            .filter(|(name, _)| !["", "Total"].contains(&name.as_str()))
    };
    lines(text).filter_map(row).take(MOST_ENTRIES)
}

/// Workstreams of `netstat -Q`: CPU, protocol, and packets that were dispatched, dispatched half, dropped because the queue was full, queued,
/// handled. Rows `   0   0   ip    0     0     3564        0        0        0     3564` below `WSID`.
pub fn workstreams(text: &str) -> impl Iterator<Item = (u32, &str, Vec<u64>)> {
    let rows = lines(text).skip_while(|line| !line.starts_with("WSID"));
    let rows = rows.filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, cpu, name, _, _, numbers @ ..] = words.as_slice() else {
            return None;
        };
        Some((
            cpu.parse().ok()?,
            *name,
            numbers.iter().map_while(|n| n.parse().ok()).collect(),
        ))
    });
    rows.take(MOST_ENTRIES)
}

/// Counters of pf, of `pfctl -s info`: `  searches        56      28.0/s` is `pf: searches`; the number of states is none.
pub fn pf(text: &str) -> Counters {
    let line = |line: &str| {
        let mut words = line.trim().rsplitn(2, |c: char| c.is_ascii_whitespace());
        words.next().filter(|rate| rate.ends_with("/s"))?;
        let rest = words.next()?.trim_end();
        let (name, total) = rest.rsplit_once(|c: char| c.is_ascii_whitespace())?;
        Some((format!("pf: {}", shown(name.trim())), total.parse().ok()?))
    };
    lines(text).filter_map(line).take(MOST_ENTRIES).collect()
}

/// States of pf, of `pfctl -s info`; none where pf is off.
pub fn pf_states(text: &str) -> Option<u64> {
    let below = |key| lines(text).find_map(|line| line.trim().strip_prefix(key));
    below("Status: Enabled")?;
    below("current entries")?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The most states of pf, of `pfctl -s memory`: `states        hard limit   100000`.
pub fn most_pf_states(text: &str) -> Option<u64> {
    let limit = |line: &str| {
        line.trim()
            .strip_prefix("states")?
            .trim()
            .strip_prefix("hard limit")?
            .trim()
            .parse()
            .ok()
    };
    lines(text).find_map(limit)
}

/// FreeBSD's settings of a card: `dev.em.0` of `em0`.
pub fn device(name: &str) -> Option<String> {
    let (driver, unit) = name.split_at(name.find(|c: char| c.is_ascii_digit())?);
    let driver = if driver == "vcxl" { "cxl" } else { driver };
    let whole = !driver.is_empty()
        && driver.chars().all(|c| c.is_ascii_lowercase())
        && unit.parse::<u32>().is_ok();
    whole.then(|| format!("dev.{driver}.{unit}"))
}
