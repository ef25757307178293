//! Benchmark traffic must not leave an isolated lab (RFC 6815): an interface is examined before anything is sent.
//!
//! Frames sent by one link may leave by another: a bridge's other ports, the card under a VLAN. So all links of the
//! namespace that stand on, under or beside the interface are examined with it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::Netns;
use super::netlink::{LinkInfo, Route};
use crate::Error;

/// Why nothing should be sent by an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    #[error("is the loopback interface, which leads to no lab")]
    Loopback,
    /// The interface, or a link it is connected with, has one.
    #[error("carries a default route, so it leads to other networks")]
    DefaultRoute,
    /// The interface, or a link it is connected with, has it.
    #[error(
        "is connected with address {0}, which is not of a benchmarking range (198.18.0.0/15, 2001:2::/48)"
    )]
    ForeignAddress(IpAddr),
    /// The interface is not in a namespace that this program made as a lab.
    #[error("is not in a lab that linerate made")]
    NotInLabNamespace,
}

/// Facts about an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    pub iface: String,
    /// Reasons not to send; empty if there are none.
    pub reasons: Vec<Refusal>,
}

impl Examination {
    /// The reasons as a sentence.
    pub fn why(&self) -> String {
        let clauses: Vec<String> = self.reasons.iter().map(Refusal::to_string).collect();
        format!(
            "it {}. Benchmark traffic must stay in an isolated lab (RFC 6815)",
            clauses.join("; it ")
        )
    }
}

/// Examines an interface. `lab_namespaces`: the inodes of the namespaces that this program made as labs.
pub fn examine(ns: &Netns, iface: &str, lab_namespaces: &[u64]) -> Result<Examination, Error> {
    let route = Route::open(ns)?;
    let link = route.link(iface)?;
    let group = connected(&route.links()?, link.index);
    let mut reasons = BTreeSet::new();
    if link.loopback {
        reasons.insert(Refusal::Loopback);
    }
    if route
        .default_route_interfaces()?
        .iter()
        .any(|index| group.contains(index))
    {
        reasons.insert(Refusal::DefaultRoute);
    }
    let addresses = route
        .addresses()?
        .into_iter()
        .filter(|(index, ..)| group.contains(index));
    reasons.extend(
        addresses
            .filter(|(_, ip, _)| is_foreign(*ip))
            .map(|(_, ip, _)| Refusal::ForeignAddress(ip)),
    );
    if !lab_namespaces.contains(&ns.inode()) {
        reasons.insert(Refusal::NotInLabNamespace);
    }
    Ok(Examination {
        iface: iface.to_owned(),
        reasons: reasons.into_iter().collect(),
    })
}

/// Decides: nothing found is permitted; something found only if the user named the interface (`--isolated-lab`), and
/// then it comes back as warnings. `deed`: `send test traffic by`, say. Loopback leads to no lab, and naming it does not help.
pub fn permit(
    examination: &Examination,
    named: &[String],
    deed: &str,
) -> Result<Vec<String>, Error> {
    let Examination { iface, reasons } = examination;
    let is_loopback = reasons.contains(&Refusal::Loopback);
    if reasons.is_empty() || named.contains(iface) && !is_loopback {
        let warning = |reason: &Refusal| {
            format!("{iface} {reason}; used because --isolated-lab {iface} was given")
        };
        return Ok(reasons.iter().map(warning).collect());
    }
    let remedy = match is_loopback {
        true => "Choose an interface that leads to the device under test.".into(),
        false => format!("If {iface} leads to nothing else, say so: --isolated-lab {iface}"),
    };
    let why = examination.why();
    Err(Error::Refused(format!(
        "will not {deed} {iface}: {why}. {remedy}"
    )))
}

/// Whether an address lies outside the ranges set aside for benchmarks (RFC 2544: 198.18.0.0/15; RFC 5180:
/// 2001:2::/48) and is not one that every IPv6 link has (fe80::/10).
pub fn is_foreign(address: IpAddr) -> bool {
    !match address {
        IpAddr::V4(v4) => matches!(v4.octets(), [198, 18 | 19, ..]),
        IpAddr::V6(v6) => matches!(v6.segments(), [0x2001, 2, 0, ..] | [0xfe80..=0xfebf, ..]),
    }
}

/// The indexes of all links that `start` is connected with inside the namespace, itself among them.
pub(crate) fn connected(links: &[LinkInfo], start: u32) -> BTreeSet<u32> {
    let mut group = BTreeSet::from([start]);
    loop {
        let touches = |link: &LinkInfo| {
            [Some(link.index), link.master, link.lower]
                .into_iter()
                .flatten()
        };
        let near = links
            .iter()
            .filter(|link| touches(link).any(|index| group.contains(&index)));
        let grown: BTreeSet<u32> = near.flat_map(touches).chain([start]).collect();
        if grown == group {
            return group;
        }
        group = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: &str = "send test traffic by";

    fn examination(reasons: &[Refusal]) -> Examination {
        Examination {
            iface: "eth7".into(),
            reasons: reasons.to_vec(),
        }
    }

    #[test]
    fn only_benchmarking_and_link_local_addresses_are_ours() {
        for ours in [
            "198.18.0.0",
            "198.19.255.255",
            "2001:2::1",
            "2001:2:0:ffff::1",
            "fe80::1",
            "febf::1",
        ] {
            assert!(!is_foreign(ours.parse().unwrap()), "{ours}");
        }
        let foreign = [
            "198.17.255.255",
            "198.20.0.0",
            "10.0.0.1",
            "127.0.0.1",
            "::1",
            "2001:2:1::1",
            "2001:20::",
            "fec0::1",
            "::ffff:198.18.0.1",
        ];
        for foreign in foreign {
            assert!(is_foreign(foreign.parse().unwrap()), "{foreign}");
        }
    }

    #[test]
    fn a_finding_is_refused_unless_the_interface_was_named() {
        let found = examination(&[
            Refusal::DefaultRoute,
            Refusal::ForeignAddress("10.0.0.1".parse().unwrap()),
        ]);
        let error = permit(&found, &["eth8".into()], SEND)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "will not send test traffic by eth7: it carries a default route, so it leads to other networks; it is \
             connected with address 10.0.0.1, which is not of a benchmarking range (198.18.0.0/15, 2001:2::/48). \
             Benchmark traffic must stay in an isolated lab (RFC 6815). If eth7 leads to nothing else, say so: \
             --isolated-lab eth7"
        );
        assert_eq!(permit(&found, &["eth7".into()], SEND).unwrap().len(), 2);
        assert!(permit(&examination(&[]), &[], SEND).unwrap().is_empty());
    }

    #[test]
    fn loopback_is_never_permitted() {
        let error = permit(&examination(&[Refusal::Loopback]), &["eth7".into()], SEND).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("Choose an interface that leads to the device under test.")
        );
    }

    #[test]
    fn bridges_ports_and_vlans_are_connected() {
        let link = |index, master, lower| LinkInfo {
            index,
            master,
            lower,
            ..LinkInfo::default()
        };
        let links = [
            link(1, Some(5), None),
            link(2, Some(5), None),
            link(3, None, Some(2)),
            link(5, None, None),
            link(9, None, None),
        ];
        for start in [1, 2, 3, 5] {
            assert_eq!(connected(&links, start), BTreeSet::from([1, 2, 3, 5]));
        }
        assert_eq!(connected(&links, 9), BTreeSet::from([9]));
        assert_eq!(connected(&links, 7), BTreeSet::from([7]));
    }
}
