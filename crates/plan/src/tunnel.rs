//! Tunnels between two routers in a row: the first puts packets into the tunnel, the second takes them out.

use crate::dut::Dut;
use linerate_wire::Family;

/// How two routers in a row are joined.
#[derive(Debug)]
pub struct Tunnel {
    pub dut: Dut,
    /// Kind of link at both ends, as the kernel calls it; `ipsec` has none.
    pub link: &'static str,
    /// Name, with the kernel's configuration for it.
    pub needs: &'static str,
    /// Modules of Linux that have it.
    pub modules: &'static [&'static str],
    /// Bytes that it adds to a packet, at most.
    pub overhead: u32,
    /// Whether it carries Ethernet frames.
    pub ethernet: bool,
    /// The one IP version that it carries; none if it carries both.
    pub only: Option<Family>,
}

/// Every kind. Headers: outer IPv4 20, GRE 4 (RFC 2784), UDP 8; GENEVE 8 and inner Ethernet 14 (RFC 8926); WireGuard 16 and its authentication
/// 16; ESP 8, initialisation vector 8, padding and trailer 2 to 5, authentication 16 (RFC 4303, RFC 4106).
pub static TUNNELS: [Tunnel; 7] = [
    PLAIN,
    Tunnel {
        dut: Dut::Gre,
        link: "gre",
        needs: "GRE (CONFIG_NET_IPGRE)",
        modules: &["ip_gre"],
        overhead: 24,
        ethernet: false,
        ..PLAIN
    },
    Tunnel {
        dut: Dut::Ipip,
        link: "ipip",
        needs: "IPIP (CONFIG_NET_IPIP)",
        modules: &["ipip"],
        overhead: 20,
        ethernet: false,
        only: Some(Family::V4),
    },
    Tunnel {
        dut: Dut::Sit,
        link: "sit",
        needs: "SIT (CONFIG_IPV6_SIT)",
        modules: &["sit"],
        overhead: 20,
        ethernet: false,
        only: Some(Family::V6),
    },
    Tunnel {
        dut: Dut::Geneve,
        link: "geneve",
        needs: "GENEVE (CONFIG_GENEVE)",
        modules: &["geneve"],
        overhead: 50,
        ..PLAIN
    },
    Tunnel {
        dut: Dut::Wireguard,
        link: "wireguard",
        needs: "WireGuard (CONFIG_WIREGUARD)",
        modules: &["wireguard"],
        overhead: 60,
        ethernet: false,
        ..PLAIN
    },
    Tunnel {
        dut: Dut::Ipsec,
        link: "ipsec",
        needs: "ESP with AES-GCM (CONFIG_INET_ESP, CONFIG_XFRM_USER, CONFIG_CRYPTO_GCM)",
        modules: &["esp4", "xfrm_user", "gcm", "seqiv", "ghash_generic"],
        overhead: 57,
        ..PLAIN
    },
];

/// Two routers without a tunnel.
const PLAIN: Tunnel = Tunnel {
    dut: Dut::TwoRouters,
    link: "veth",
    needs: "veth pairs (CONFIG_VETH)",
    modules: &[],
    overhead: 0,
    ethernet: true,
    only: None,
};

impl Dut {
    /// How its two routers are joined; none for a DUT that is one device.
    pub fn tunnel(self) -> Option<&'static Tunnel> {
        TUNNELS.iter().find(|tunnel| tunnel.dut == self)
    }
}
