//! Links that put packets into others for one far end: GRE, IPIP, SIT, GENEVE, WireGuard. Each is read back.

use std::net::Ipv4Addr;

use super::Route;
use super::link::{HEADER, link};
use super::message::{Body, attribute, attributes};
use crate::Error;
use crate::net::MacAddr;

/// linux/if_tunnel.h: of GRE, and of IPIP and SIT.
const GRE_LOCAL: u16 = 6;
const GRE_REMOTE: u16 = 7;
const IPTUN_LOCAL: u16 = 2;
const IPTUN_REMOTE: u16 = 3;
/// linux/if_link.h
const GENEVE_ID: u16 = 1;
const GENEVE_REMOTE: u16 = 2;
const GENEVE_PORT: u16 = 5;
const GENEVE_UDP_CSUM: u16 = 8;

/// Virtual network, and the port of RFC 8926.
const ID: u32 = 100;
const PORT: u16 = 6081;

/// One end of a tunnel over IPv4.
#[derive(Debug, Clone, Copy)]
pub struct TunnelSpec<'a> {
    /// Kind of link: `gre`, `ipip`, `sit`, `geneve` or `wireguard`.
    pub kind: &'a str,
    pub name: &'a str,
    /// Of a tunnel of Ethernet frames.
    pub mac: Option<MacAddr>,
    /// Largest packet inside.
    pub mtu: u32,
    pub local: Ipv4Addr,
    pub remote: Ipv4Addr,
}

impl Route {
    /// Makes one end of a tunnel; it is down.
    ///
    /// # Errors
    /// The kernel refuses it, or keeps other settings.
    pub fn create_tunnel(&self, spec: &TunnelSpec<'_>) -> Result<(), Error> {
        let body = link(0).number(libc::IFLA_MTU, spec.mtu);
        let body = spec
            .mac
            .iter()
            .fold(body, |body, mac| body.with(libc::IFLA_ADDRESS, mac));
        let data = data(spec);
        self.create(spec.name, body, spec.kind, data.clone())?;
        let asked = link(0).text(libc::IFLA_IFNAME, spec.name);
        let what = format_args!("look up interface {}", spec.name);
        let kept = self.ask(libc::RTM_GETLINK, 0, &asked, what)?;
        match kept.iter().any(|kept| keeps(kept, spec, &data)) {
            true => Ok(()),
            false => Err(Error::Refused(format!(
                "the kernel made {} interface {} with other settings than it was told",
                spec.kind, spec.name
            ))),
        }
    }
}

/// The settings of its kind. Without a checksum of UDP, as VXLAN has it.
fn data(spec: &TunnelSpec<'_>) -> Body {
    let (none, local, remote) = (Body::default(), spec.local.into(), spec.remote.into());
    match spec.kind {
        "gre" => none.ip(GRE_LOCAL, local).ip(GRE_REMOTE, remote),
        "ipip" | "sit" => none.ip(IPTUN_LOCAL, local).ip(IPTUN_REMOTE, remote),
        "geneve" => none
            .number(GENEVE_ID, ID)
            .ip(GENEVE_REMOTE, remote)
            .with(GENEVE_PORT, &PORT.to_be_bytes())
            .with(GENEVE_UDP_CSUM, &[0]),
        _ => none,
    }
}

/// Whether a link has the kind, the MTU and every setting that was asked for.
fn keeps(link: &[u8], spec: &TunnelSpec<'_>, data: &Body) -> bool {
    let info = attribute(link, HEADER, libc::IFLA_LINKINFO).unwrap_or_default();
    let kind = attribute(info, 0, libc::IFLA_INFO_KIND).map(super::message::text);
    let kept = attribute(info, 0, libc::IFLA_INFO_DATA).unwrap_or_default();
    kind.as_deref() == Some(spec.kind)
        && attribute(link, HEADER, libc::IFLA_MTU) == Some(&spec.mtu.to_ne_bytes())
        && attributes(&data.0, 0).all(|(kind, value)| attribute(kept, 0, kind) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_another_setting_is_not_the_one_that_was_asked_for() {
        let spec = |kind, remote| TunnelSpec {
            kind,
            name: "t",
            mac: None,
            mtu: 1400,
            local: [198, 18, 0, 5].into(),
            remote: [198, 18, 0, remote].into(),
        };
        let made = |of: &TunnelSpec<'_>| {
            let info = Body::default()
                .text(libc::IFLA_INFO_KIND, of.kind)
                .nest(libc::IFLA_INFO_DATA, data(of).number(99, 7));
            link(3)
                .number(libc::IFLA_MTU, of.mtu)
                .nest(libc::IFLA_LINKINFO, info)
        };
        for kind in ["gre", "ipip", "sit", "geneve", "wireguard"] {
            let asked = spec(kind, 6);
            let is_kept = |made: Body| keeps(&made.0, &asked, &data(&asked));
            assert!(is_kept(made(&asked)), "{kind}");
            assert!(!is_kept(made(&TunnelSpec { mtu: 1401, ..asked })));
            assert!(!is_kept(made(&spec("dummy", 6))));
            assert!(kind == "wireguard" || !is_kept(made(&spec(kind, 7))));
            assert!(!is_kept(Body::default()));
        }
    }
}
