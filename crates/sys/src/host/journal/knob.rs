//! Settings of this host that are no files: of cards, addresses, routes, neighbours and rule sets. Each has a path as a file would
//! have, and a value that is read and written as text, so that the journal treats them as it treats files.
//!
//! | path | value |
//! |---|---|
//! | `card/eth1/mtu` | `1500` |
//! | `card/eth1/feature/rx-gro` | `on`, `off` |
//! | `card/eth1/queues`, `card/eth1/rings` | receive and transmit: `4 4` |
//! | `address/eth1/198.18.0.1/24` | `there`, `none` |
//! | `route/eth1/203.0.113.0/24` | `via 198.19.0.2`, `direct`, `none` |
//! | `neighbour/eth1/198.19.0.2` | its Ethernet address, `none` |
//! | `rules/nftables` | `there`, `none` |

use crate::net::ethtool::Ethtool;
use crate::net::netlink::Route;
use crate::net::{Error, Netns};
use crate::process::{Input, Job};
use linerate_wire::MacAddr;
use std::io;
use std::net::IpAddr;

/// What is not there.
pub const NONE: &str = "none";
/// What is there, and has no other value.
pub const THERE: &str = "there";

/// A setting that is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Knob<'a> {
    Mtu(&'a str),
    Feature(&'a str, &'a str),
    Queues(&'a str),
    Rings(&'a str),
    Address(&'a str, IpAddr, u8),
    Route(&'a str, IpAddr, u8),
    Neighbour(&'a str, IpAddr),
    Rules,
}

/// Reads a path; `None` where it is none of a knob.
pub(super) fn parse(path: &str) -> Option<Knob<'_>> {
    let parts: Vec<&str> = path.split('/').collect();
    let interface = |name: &&str| crate::net::netlink::check_name(name).is_ok();
    if parts.len() > 1 && parts[0] != "rules" && !interface(&parts[1]) {
        return None;
    }
    let ip = |text: &str| text.parse::<IpAddr>().ok();
    let prefix = |address: IpAddr, text: &str| {
        text.parse::<u8>().ok().filter(|length| *length <= if address.is_ipv4() { 32 } else { 128 })
    };
    Some(match parts.as_slice() {
        ["card", card, "mtu"] => Knob::Mtu(card),
        ["card", card, "feature", name] => Knob::Feature(card, name),
        ["card", card, "queues"] => Knob::Queues(card),
        ["card", card, "rings"] => Knob::Rings(card),
        ["address", card, address, length] => {
            Knob::Address(card, ip(address)?, prefix(ip(address)?, length)?)
        }
        ["route", card, to, length] => Knob::Route(card, ip(to)?, prefix(ip(to)?, length)?),
        ["neighbour", card, address] => Knob::Neighbour(card, ip(address)?),
        ["rules", "nftables"] => Knob::Rules,
        _ => return None,
    })
}

impl Knob<'_> {
    /// Its value; not found where its card is gone.
    pub fn read(&self) -> io::Result<String> {
        let namespace = Netns::current()?;
        let route = Route::open(&namespace)?;
        let ethtool = || Ethtool::open(&namespace);
        let pair = |a: u32, b: u32| format!("{a} {b}");
        let there = |there: bool| if there { THERE } else { NONE }.to_string();
        Ok(match self {
            Knob::Mtu(card) => route.link(card)?.mtu.to_string(),
            Knob::Feature(card, name) => {
                route.link(card)?;
                let features = ethtool()?.features(card)?;
                let feature = features.iter().find(|f| f.name == *name).ok_or(io::ErrorKind::NotFound)?;
                if feature.active { "on" } else { "off" }.into()
            }
            Knob::Queues(card) => {
                route.link(card)?;
                let c = ethtool()?.channels(card)?;
                pair(c.rx.max(c.combined), c.tx.max(c.combined))
            }
            Knob::Rings(card) => {
                route.link(card)?;
                let rings = ethtool()?.rings(card)?;
                pair(rings.rx, rings.tx)
            }
            Knob::Address(card, address, length) => {
                let index = route.link(card)?.index;
                there(route.addresses()?.contains(&(index, *address, *length)))
            }
            Knob::Route(card, to, length) => route
                .main_route(route.link(card)?.index, *to, *length)?
                .map_or(NONE.into(), |via| via.map_or("direct".into(), |via| format!("via {via}"))),
            Knob::Neighbour(card, address) => route
                .neighbour(route.link(card)?.index, *address)?
                .map_or(NONE.into(), |mac| MacAddr(mac).to_string()),
            Knob::Rules => there(!nft(&namespace, Job::new("nft", &["list", "tables"]))?.trim().is_empty()),
        })
    }

    /// Sets it.
    pub fn write(&self, value: &str) -> io::Result<()> {
        let namespace = Netns::current()?;
        let route = Route::open(&namespace)?;
        let ethtool = || Ethtool::open(&namespace);
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("'{value}' is no value for it"));
        let pair = || {
            let (a, b) = value.split_once(' ').ok_or_else(wrong)?;
            Ok::<_, io::Error>((a.parse().map_err(|_| wrong())?, b.parse().map_err(|_| wrong())?))
        };
        match self {
            Knob::Mtu(card) => route.set_mtu(route.link(card)?.index, value.parse().map_err(|_| wrong())?)?,
            Knob::Feature(card, name) => ethtool()?.set_feature(card, name, value == "on")?,
            Knob::Queues(card) => {
                let (rx, tx) = pair()?;
                ethtool()?.set_channels(card, rx, tx)?;
            }
            Knob::Rings(card) => {
                let (rx, tx) = pair()?;
                ethtool()?.set_rings(card, rx, tx)?;
            }
            Knob::Address(card, address, length) => {
                let index = route.link(card)?.index;
                match value {
                    NONE => route.remove_address(index, *address, *length)?,
                    _ => route.add_address(index, *address, *length)?,
                }
            }
            Knob::Route(card, to, length) => {
                let index = route.link(card)?.index;
                match value {
                    NONE => route.remove_route(*to, *length, index)?,
                    "direct" => route.add_route(*to, *length, None, index)?,
                    via => {
                        let via =
                            via.strip_prefix("via ").and_then(|via| via.parse().ok()).ok_or_else(wrong)?;
                        route.add_route(*to, *length, Some(via), index)?;
                    }
                }
            }
            Knob::Neighbour(card, address) => {
                let index = route.link(card)?.index;
                match value {
                    NONE => route.remove_neighbour(index, *address)?,
                    mac => {
                        let mac = mac.parse::<MacAddr>().map_err(|_| wrong())?;
                        route.add_neighbour(index, *address, mac.0)?;
                    }
                }
            }
            // Only ever taken away: what loads them writes them.
            Knob::Rules if value == NONE => {
                let job = Job::new("nft", &["-f", "-"]).with_input(Input::text("flush ruleset\n"));
                nft(&namespace, job)?;
            }
            Knob::Rules => {}
        }
        Ok(())
    }
}

fn nft(namespace: &Netns, job: Job) -> io::Result<String> {
    job.run(|path| namespace.command(path), None).map(|done| done.stdout).map_err(io::Error::other)
}

/// What a path is, in words.
pub(super) fn words(path: &str) -> String {
    match parse(path) {
        Some(Knob::Mtu(card)) => format!("the MTU of {card}"),
        Some(Knob::Feature(card, name)) => format!("{name} of {card}"),
        Some(Knob::Queues(card)) => format!("the queues of {card}"),
        Some(Knob::Rings(card)) => format!("the rings of {card}"),
        Some(Knob::Address(card, address, length)) => format!("address {address}/{length} of {card}"),
        Some(Knob::Route(card, to, length)) => format!("the route to {to}/{length} by {card}"),
        Some(Knob::Neighbour(card, address)) => format!("neighbour {address} of {card}"),
        Some(Knob::Rules) => "the rule set of nftables".into(),
        None => format!("/{path}"),
    }
}

/// An error of the kernel keeps its kind: what is gone needs no putting back.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let missing = error.get_ref().and_then(|e| e.downcast_ref::<Error>()).is_some_and(Error::is_missing);
    missing || error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_nothing_else_is() {
        let v4 = "198.18.0.1".parse().unwrap();
        assert_eq!(parse("card/eth1.5/mtu"), Some(Knob::Mtu("eth1.5")));
        assert_eq!(parse("card/e/feature/rx-gro"), Some(Knob::Feature("e", "rx-gro")));
        assert_eq!(parse("address/e/198.18.0.1/24"), Some(Knob::Address("e", v4, 24)));
        assert_eq!(parse("rules/nftables"), Some(Knob::Rules));
        for none in [
            "proc/sys/net/x/y",
            "card//mtu",
            "card/a b/mtu",
            "card/0123456789abcdef/mtu",
            "card/e/speed",
            "address/e/198.18.0.1/33",
            "address/e/x/24",
            "route/e/198.18.0.0",
            "rules/pf",
            "",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
        assert_eq!(words("route/e/198.18.0.1/32"), "the route to 198.18.0.1/32 by e");
    }
}
