//! The wiring of the kinds of DUT: namespaces, links and the interfaces on them.
//!
//! Every lane has two links to the tester; their DUT ends are the cards. The forwarding part names its interfaces `inN` and
//! `outN`, whatever the kind, so that one rule set fits all; if those are not the cards, the cards are `card-inN` and
//! `card-outN`.
//!
//! | kind | between the cards |
//! |---|---|
//! | forwarding, xdp, known-... | the cards are the router's interfaces |
//! | bridge | one bridge, no router |
//! | routed-bridge | the router's inside interface is a bridge, with the inside card as its only member |
//! | macvlan | the router's interfaces are macvlans in bridge mode, one on each card |
//! | vlan | the router's interfaces are VLANs, one on each card; frames are tagged on both links |
//! | nested | a second namespace routes; the first holds the cards, and hands frames over by a bridge and a veth pair on either side, as container and jail hosts do |
//! | vxlan | the router puts frames into a tunnel; a second namespace takes them out and bridges them to the outside card. Routing, encapsulation, a veth, decapsulation and a bridge are measured together |
//! | vrf | the cards are the router's interfaces, and belong to a VRF |
//! | two-routers, gre, ipip, ... | the inside card is the first router's, the outside card the second's; a veth pair joins them, and a tunnel over it (`tunnels.rs`) |

use super::addresses::mac;
use super::setup::interface_names;
use super::{DutEnd, Interface, LabSpec, Node, Setup};
use crate::error::Error;
use crate::net::netlink::{VethEnd, VxlanSpec};
use crate::net::{MacAddr, sysctl};
use linerate_plan::settings::Dut;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// 802.1Q tags of the frames on the link to the generator…
pub const INSIDE_VLAN: u16 = 2;
/// …and to the receiver.
pub const OUTSIDE_VLAN: u16 = 4;
/// The tunnel's outer addresses: of the generator's half, where no flow of the tester starts.
pub(super) const UNDERLAY: [Ipv4Addr; 2] =
    [Ipv4Addr::new(198, 18, 0, 5), Ipv4Addr::new(198, 18, 0, 6)];
pub(super) const UNDERLAY_PREFIX: u8 = 30;
/// Outer IPv4, UDP and VXLAN headers and the inner Ethernet header (RFC 7348 section 5).
const VXLAN_OVERHEAD: u32 = 50;
const VXLAN_ID: u32 = 100;
const VXLAN_PORT: u16 = 4789;

/// A lane under construction.
pub(super) struct Wiring<'a> {
    pub spec: &'a LabSpec,
    /// The namespaces of generator and receiver.
    pub tester: [&'a Arc<Node>; 2],
    pub number: usize,
    pub setup: &'a Setup,
}

impl Wiring<'_> {
    /// The ends of the tester: generator and receiver. They carry the tester's frames, whatever the DUT's MTU.
    fn tester_ends(&self) -> [VethEnd; 2] {
        let mtu = self.spec.mtu();
        [
            self.end(format!("g{}", self.number), 1, mtu),
            self.end(format!("r{}", self.number), 4, mtu),
        ]
    }

    /// The interfaces of the tester, once they are connected.
    pub fn tester_interfaces(&self) -> Result<[Interface; 2], Error> {
        let [generator, receiver] = self.tester;
        let [g, r] = self.tester_ends();
        Ok([generator.interface(&g.name)?, receiver.interface(&r.name)?])
    }

    /// Ends are numbered apart: both ends of a pair with the same number come up late (docs/packet-io.md).
    pub(super) fn end(&self, name: String, role: u8, mtu: u32) -> VethEnd {
        let index = 10 * (self.number as u32 + 1) + u32::from(role);
        VethEnd {
            name,
            mac: mac(self.number, role),
            mtu,
            index,
        }
    }

    /// Makes the DUT's namespaces and links, without their settings. For the tester baseline, links the tester's ends to each other.
    pub fn connect(&self) -> Result<Option<DutEnd>, Error> {
        let (kind, label) = (self.setup.settings.dut, self.setup.name.as_str());
        if kind == Dut::TesterBaseline {
            let ([generator, receiver], [g, r]) = (self.tester, self.tester_ends());
            generator
                .route
                .create_veth(&g, &r, &receiver.namespace, self.spec.queues())?;
            return Ok(None);
        }
        let names = interface_names(self.number);
        let [card_in, card_out] =
            ["card-in", "card-out"].map(|name| format!("{name}{}", self.number));
        let cards = match kind {
            Dut::Macvlan | Dut::Vlan | Dut::Nested => [card_in, card_out],
            Dut::RoutedBridge => [card_in, names[1].clone()],
            Dut::Vxlan => [names[0].clone(), card_out],
            _ if kind.tunnel().is_some() => [names[0].clone(), card_out],
            _ => names.clone(),
        };
        // The node that forwards comes first, and the cards are at these.
        let (nodes, cards_at) = match kind {
            Dut::Bridge => (vec![Node::switch(label, "")?], [0, 0]),
            Dut::Nested => (
                vec![Node::router(label)?, Node::switch(label, "host")?],
                [1, 1],
            ),
            Dut::Vxlan => (
                vec![
                    Node::router(label)?,
                    Node::switch(label, "far end of the tunnel")?,
                ],
                [0, 1],
            ),
            Dut::Vrf => (vec![Node::vrf(label)?], [0, 0]),
            _ if kind.tunnel().is_some() => (
                vec![Node::router(label)?, Node::second_router(label)?],
                [0, 1],
            ),
            _ => (vec![Node::router(label)?], [0, 0]),
        };
        let [inside, outside] = cards_at.map(|at| &nodes[at]);
        self.cards(inside, outside, &cards)?;
        match (kind, nodes.as_slice()) {
            (Dut::Bridge, [node, ..]) => {
                node.bridge(
                    "br0",
                    &[(&cards[0], &[]), (&cards[1], &[self.receiver_mac()])],
                )?;
            }
            (Dut::RoutedBridge, [router, ..]) => {
                router.below(&cards[0])?;
                let bridge = router.bridge(&names[0], &[(&cards[0], &[])])?;
                router.route.set_mac(bridge, mac(self.number, 5))?;
            }
            (Dut::Vrf, [router, ..]) => router.enslave(&cards)?,
            (Dut::Macvlan | Dut::Vlan, [router, ..]) => self.stacked(router, &names, &cards)?,
            (Dut::Nested, [inner, outer]) => self.nested(inner, outer, &names, &cards)?,
            (Dut::Vxlan, [router, far]) => self.vxlan(router, far, &names[1], &cards[1])?,
            _ => {}
        }
        let between = match (kind.tunnel(), nodes.as_slice()) {
            (Some(tunnel), [first, second]) => {
                Some(self.join(tunnel, [first, second], &names[1])?)
            }
            _ => None,
        };
        let cards = [inside.interface(&cards[0])?, outside.interface(&cards[1])?];
        // The last router has its outside interface by itself, if there are two.
        let router = match between {
            Some(_) => cards.clone(),
            None => [
                nodes[0].interface(&names[0])?,
                nodes[0].interface(&names[1])?,
            ],
        };
        let mut dut = DutEnd::new(nodes, cards, router, self.spec.interrupted);
        dut.between = between;
        Ok(Some(dut))
    }

    /// Macvlans or VLANs on the cards.
    fn stacked(
        &self,
        router: &Arc<Node>,
        names: &[String; 2],
        cards: &[String; 2],
    ) -> Result<(), Error> {
        let sides = names
            .iter()
            .zip(cards)
            .zip([(5, INSIDE_VLAN), (6, OUTSIDE_VLAN)]);
        for ((name, card), (role, tag)) in sides {
            let (lower, address) = (router.below(card)?, mac(self.number, role));
            match self.setup.settings.dut {
                Dut::Macvlan => router.route.create_macvlan(name, address, lower)?,
                _ => router.route.create_vlan(name, address, lower, tag)?,
            }
        }
        Ok(())
    }

    /// A veth pair and a bridge on either side of the inner router.
    fn nested(
        &self,
        inner: &Arc<Node>,
        outer: &Arc<Node>,
        names: &[String; 2],
        cards: &[String; 2],
    ) -> Result<(), Error> {
        for (side, (bridge, role)) in [("br-in", 5), ("br-out", 6)].into_iter().enumerate() {
            let (mtu, queues) = (self.mtus()[side], self.queues()[side]);
            let near = self.end(format!("to-{}", names[side]), role + 2, mtu);
            let far = self.end(names[side].clone(), role, mtu);
            outer
                .route
                .create_veth(&near, &far, &inner.namespace, queues)?;
            // Frames go to the router on the one side, to the receiver on the other.
            let (card, router) = if side == 0 {
                (vec![], vec![far.mac])
            } else {
                (vec![self.receiver_mac()], vec![])
            };
            outer.bridge(bridge, &[(&cards[side], &card), (&near.name, &router)])?;
        }
        Ok(())
    }

    fn vxlan(
        &self,
        router: &Arc<Node>,
        far: &Arc<Node>,
        outside: &str,
        card: &str,
    ) -> Result<(), Error> {
        let mtu = self.mtus()[1];
        let [near, beyond] = [("under0", 5), ("under1", 6)]
            .map(|(name, role)| self.end(name.into(), role, mtu + VXLAN_OVERHEAD));
        router
            .route
            .create_veth(&near, &beyond, &far.namespace, self.queues()[1])?;
        for (node, under, name, own) in [(router, &near, outside, 0), (far, &beyond, "tunnel", 1)] {
            let index = node.below(&under.name)?;
            node.route
                .add_address(index, UNDERLAY[own].into(), UNDERLAY_PREFIX)?;
            let other = if own == 0 { &beyond } else { &near };
            node.route
                .add_neighbour(index, UNDERLAY[1 - own].into(), other.mac)?;
            node.route.create_vxlan(&VxlanSpec {
                name,
                mac: mac(self.number, 7 + own as u8),
                mtu,
                id: VXLAN_ID,
                local: UNDERLAY[own],
                remote: UNDERLAY[1 - own],
                port: VXLAN_PORT,
            })?;
        }
        far.bridge("br0", &[("tunnel", &[]), (card, &[self.receiver_mac()])])?;
        // The far end is the lab's, and its bridge no firewall, whatever br_netfilter does elsewhere on the machine.
        for of in ["iptables", "ip6tables", "arptables"] {
            let name = format!("net/bridge/bridge-nf-call-{of}");
            if sysctl::get(&far.namespace, &name).is_ok() {
                sysctl::set(&far.namespace, &name, "0")?;
            }
        }
        Ok(())
    }

    fn receiver_mac(&self) -> MacAddr {
        mac(self.number, 4)
    }

    /// The two links to the tester.
    fn cards(
        &self,
        inside: &Arc<Node>,
        outside: &Arc<Node>,
        names: &[String; 2],
    ) -> Result<(), Error> {
        let ([generator, receiver], [g, r]) = (self.tester, self.tester_ends());
        let ([near_mtu, far_mtu], [near_queues, far_queues]) = (self.mtus(), self.queues());
        let (near, far) = (
            self.end(names[0].clone(), 2, near_mtu),
            self.end(names[1].clone(), 3, far_mtu),
        );
        generator
            .route
            .create_veth(&g, &near, &inside.namespace, near_queues)?;
        outside
            .route
            .create_veth(&far, &r, &receiver.namespace, far_queues)
    }

    pub(super) fn mtus(&self) -> [u32; 2] {
        [&self.setup.settings.inside, &self.setup.settings.outside]
            .map(|end| end.mtu.unwrap_or(self.spec.mtu()))
    }

    /// A link has as many queues as either side wants; how many the DUT uses is set afterwards.
    pub(super) fn queues(&self) -> [u32; 2] {
        let own = self.spec.queues();
        [&self.setup.settings.inside, &self.setup.settings.outside]
            .map(|end| end.queues().unwrap_or(1).max(own))
    }
}
