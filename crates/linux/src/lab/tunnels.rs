//! Two routers in a row, and the tunnel between them.
//!
//! The first has the inside card, the second the outside one, and a veth pair joins them. Routes to the receiver's networks lead
//! from the first through the tunnel, those to the generator's from the second.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side, mac};
use super::node::has_ipv6;
use super::topology::{UNDERLAY, UNDERLAY_PREFIX, Wiring};
use super::{DutEnd, Interface, Node};
use crate::error::Error;
use crate::net::netlink::{Route, TunnelSpec, VethEnd};
use crate::net::wireguard::Wireguard;
use crate::net::xfrm::{Direction, Half, Xfrm};
use crate::net::{MacAddr, Netns};
use linerate_plan::settings::Dut;
use linerate_plan::tunnel::Tunnel;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The end of the tunnel in the second router; in the first it is the router's outside interface.
const FAR_END: &str = "tunnel";
/// Of both directions, by the router that sends.
const SPIS: [u32; 2] = [0x1001, 0x1002];
/// Of WireGuard's ends, as its documentation has it.
const PORT: u16 = 51820;
/// Keys that keep nothing secret: the frames do not leave this machine.
const KEYS: [[u8; 32]; 2] = [[1; 32], [2; 32]];
/// Seconds, as WireGuard's documentation has it. A session that lapses while other lanes are measured would lose the next frames.
const KEEPALIVE: u16 = 25;
/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(20);

impl Wiring<'_> {
    /// Joins the routers, whose cards are there. Returns the first one's end of the link between them.
    pub(super) fn join(
        &self,
        tunnel: &Tunnel,
        routers: [&Arc<Node>; 2],
        outside: &str,
    ) -> Result<Interface, Error> {
        let mtu = self.mtus()[1];
        let is_link = matches!(tunnel.dut, Dut::TwoRouters | Dut::Ipsec);
        let ends = [outside, FAR_END];
        let under = if is_link { ends } else { ["under0", "under1"] };
        let [near, far]: [VethEnd; 2] = [0, 1].map(|own| {
            let role = 5 + own as u8;
            self.end(under[own].into(), role, mtu + tunnel.overhead)
        });
        let [first, second] = routers;
        first
            .route
            .create_veth(&near, &far, &second.namespace, self.queues()[1])?;
        // Ethernet addresses of the ends that packets are routed to.
        let macs = match is_link {
            true => [near.mac, far.mac],
            false => [7, 8].map(|role| mac(self.number, role)),
        };
        for (own, node) in routers.into_iter().enumerate() {
            let index = match is_link {
                true => node.interface(under[own])?.index,
                false => node.below(under[own])?,
            };
            node.route.set_up(index, true)?;
            if tunnel.overhead > 0 {
                let other = [far.mac, near.mac][own];
                let (here, there) = (UNDERLAY[own].into(), UNDERLAY[1 - own].into());
                node.route.add_address(index, here, UNDERLAY_PREFIX)?;
                node.route.add_neighbour(index, there, other)?;
            }
            if !is_link {
                node.route.create_tunnel(&TunnelSpec {
                    kind: tunnel.link,
                    name: ends[own],
                    mac: tunnel.ethernet.then_some(macs[own]),
                    mtu,
                    local: UNDERLAY[own],
                    remote: UNDERLAY[1 - own],
                })?;
            }
            if tunnel.dut == Dut::Ipsec {
                encrypt(&node.namespace, own)?;
            }
            let end = node.interface(ends[own])?;
            end.set_up()?;
            lead(&end, own, tunnel.ethernet.then_some(macs[1 - own]))?;
        }
        first.interface(under[0])
    }
}

/// Routes to what is behind the other router, whose Ethernet address this is, if there is one.
fn lead(end: &Interface, own: usize, other: Option<MacAddr>) -> Result<(), Error> {
    let (route, index) = (&end.node.route, end.index);
    let families = if has_ipv6(&end.node.namespace) { 2 } else { 1 };
    let beyond = [&RECEIVER_SIDE, &GENERATOR_SIDE][own];
    for Side { dut, network, .. } in beyond.iter().take(families) {
        let (gateway, host) = (dut.0, if dut.0.is_ipv4() { 32 } else { 128 });
        if let Some(mac) = other {
            route.add_route(gateway, host, None, index)?;
            route.add_neighbour(index, gateway, mac)?;
        }
        route.add_route(network.0, network.1, other.map(|_| gateway), index)?;
    }
    Ok(())
}

/// Makes a router encrypt what goes to the other one, and take nothing else from there.
fn encrypt(namespace: &Netns, own: usize) -> Result<(), Error> {
    let mut xfrm = Xfrm::open(namespace)?;
    let half = |from: usize| Half {
        from: UNDERLAY[from],
        to: UNDERLAY[1 - from],
        spi: SPIS[from],
    };
    [0, 1]
        .into_iter()
        .try_for_each(|from| xfrm.add_state(half(from)))?;
    let sides = [&GENERATOR_SIDE, &RECEIVER_SIDE];
    let families = if has_ipv6(namespace) { 2 } else { 1 };
    for family in 0..families {
        let networks = sides.map(|side| side[family].network);
        for from in [0, 1] {
            let direction = match from == own {
                true => Direction::Out,
                false => Direction::Forward,
            };
            xfrm.add_policy(direction, networks[from], networks[1 - from], half(from))?;
        }
    }
    Ok(())
}

/// Has both ends of WireGuard know each other, and waits until they do: frames that come before are lost.
pub(super) fn shake_hands(dut: &DutEnd, outside: &str) -> Result<(), Error> {
    let [first, second] = &dut.nodes[..] else {
        return Ok(());
    };
    let open = |node: &Arc<Node>, name: &str| {
        Wireguard::open(&node.namespace, node.interface(name)?.index)
    };
    let mut ends = [open(first, outside)?, open(second, FAR_END)?];
    let mut keys = [[0; 32]; 2];
    for (end, (key, private)) in ends.iter_mut().zip(keys.iter_mut().zip(&KEYS)) {
        *key = end.set_key(private, PORT)?;
    }
    for own in [1, 0] {
        ends[own].set_peer(&keys[1 - own], (UNDERLAY[1 - own], PORT), KEEPALIVE)?;
    }
    let began = Instant::now();
    while !(ends[0].has_met()? && ends[1].has_met()?) {
        if began.elapsed() > HANDSHAKE_WITHIN {
            let late = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            return Err(Error::system("wait for a handshake of WireGuard", late));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Makes one end of a tunnel in a namespace for trying things out, to find out whether the kernel can.
pub(super) fn attempt(namespace: &Netns, route: &Route, tunnel: &Tunnel) -> Result<(), Error> {
    match tunnel.dut {
        Dut::Ipsec => encrypt(namespace, 0),
        _ => route.create_tunnel(&TunnelSpec {
            kind: tunnel.link,
            name: FAR_END,
            mac: tunnel.ethernet.then_some(mac(0xffff, 3)),
            mtu: 1500,
            local: UNDERLAY[0],
            remote: UNDERLAY[1],
        }),
    }
}
