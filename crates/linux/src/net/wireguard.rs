//! Keys and peers of WireGuard's interfaces, by the kernel's generic netlink: no program is needed.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Netns;
use super::netlink::message::{Body, attribute, attributes};
use super::netlink::socket::{DUMP, Failure, GENERIC_HEADER as HEADER, Socket};
use crate::error::Error;

/// linux/wireguard.h
const GET_DEVICE: u8 = 0;
const SET_DEVICE: u8 = 1;
const IFINDEX: u16 = 1;
const PRIVATE_KEY: u16 = 3;
const OWN_KEY: u16 = 4;
const LISTEN_PORT: u16 = 6;
const PEERS: u16 = 8;
const PEER_KEY: u16 = 1;
const PEER_ENDPOINT: u16 = 4;
const PEER_KEEPALIVE: u16 = 5;
const PEER_HANDSHAKE: u16 = 6;
const PEER_ALLOWED: u16 = 9;
const ALLOWED_FAMILY: u16 = 1;
const ALLOWED_ADDRESS: u16 = 2;
const ALLOWED_LENGTH: u16 = 3;
/// Newer families demand it of attributes that hold others.
const NESTED: u16 = 0x8000;

pub(crate) type Key = [u8; 32];

/// A WireGuard interface, with the number of its family.
pub(crate) struct Wireguard {
    socket: Socket,
    family: u16,
    index: u32,
}

impl Wireguard {
    pub(crate) fn open(namespace: &Netns, index: u32) -> Result<Wireguard, Error> {
        let open = || {
            let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
            let family = socket.family("wireguard")?;
            Ok(Wireguard {
                socket,
                family,
                index,
            })
        };
        let opened: Result<_, Failure> = namespace.enter(open)?;
        opened.map_err(|failure| failure.into_error("speak to WireGuard".into()))
    }

    /// Sets the private key and the port. Returns the public key, which the kernel computes.
    pub(crate) fn set_key(&mut self, private: &Key, port: u16) -> Result<Key, Error> {
        let body = self.request(SET_DEVICE).with(PRIVATE_KEY, private);
        let body = body.with(LISTEN_PORT, &port.to_ne_bytes());
        self.set(&body)?;
        let kept = self.get()?;
        let of = |wanted| kept.iter().find_map(|body| attribute(body, HEADER, wanted));
        let key = of(OWN_KEY).and_then(|key| key.try_into().ok());
        key.filter(|_| of(LISTEN_PORT) == Some(&port.to_ne_bytes()))
            .ok_or_else(|| Error::Refused("WireGuard did not keep its key and its port".into()))
    }

    /// Sets the one peer, for all packets. The kernel sends at once what begins a handshake, and then every `keepalive` seconds, so that the
    /// session never lapses.
    pub(crate) fn set_peer(
        &mut self,
        key: &Key,
        (address, port): (Ipv4Addr, u16),
        keepalive: u16,
    ) -> Result<(), Error> {
        let family = (libc::AF_INET as u16).to_ne_bytes();
        let endpoint = [&family[..], &port.to_be_bytes(), &address.octets(), &[0; 8]].concat();
        let any = |family: libc::c_int, address: &[u8]| {
            Body::default()
                .with(ALLOWED_FAMILY, &(family as u16).to_ne_bytes())
                .with(ALLOWED_ADDRESS, address)
                .with(ALLOWED_LENGTH, &[0])
        };
        let allowed = Body::default()
            .nest(NESTED, any(libc::AF_INET, &Ipv4Addr::UNSPECIFIED.octets()))
            .nest(NESTED, any(libc::AF_INET6, &Ipv6Addr::UNSPECIFIED.octets()));
        let peer = Body::default()
            .with(PEER_KEY, key)
            .with(PEER_ENDPOINT, &endpoint)
            .with(PEER_KEEPALIVE, &keepalive.to_ne_bytes())
            .nest(PEER_ALLOWED | NESTED, allowed);
        let peers = Body::default().nest(NESTED, peer);
        self.set(&self.request(SET_DEVICE).nest(PEERS | NESTED, peers))?;
        let is_kept = |peer: &[u8]| {
            let allowed = attribute(peer, 0, PEER_ALLOWED).unwrap_or_default();
            attribute(peer, 0, PEER_KEY) == Some(key)
                && attribute(peer, 0, PEER_ENDPOINT) == Some(&endpoint)
                && attributes(allowed, 0).count() == 2
        };
        match self.peers(is_kept)? {
            true => Ok(()),
            false => Err(Error::Refused("WireGuard did not keep its peer".into())),
        }
    }

    /// Whether the peer has answered a handshake.
    pub(crate) fn has_met(&mut self) -> Result<bool, Error> {
        self.peers(|peer| {
            attribute(peer, 0, PEER_HANDSHAKE).is_some_and(|time| time.iter().any(|b| *b != 0))
        })
    }

    /// Whether any peer is so.
    fn peers(&mut self, is: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        let kept = self.get()?;
        let peers = kept
            .iter()
            .filter_map(|body| attribute(body, HEADER, PEERS));
        Ok(peers
            .flat_map(|peers| attributes(peers, 0))
            .any(|(_, peer)| is(peer)))
    }

    fn get(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let answers = self
            .socket
            .collect(self.family, DUMP, &self.request(GET_DEVICE));
        answers.map_err(|failure| failure.into_error("look up a WireGuard interface".into()))
    }

    fn set(&mut self, body: &Body) -> Result<(), Error> {
        let done = self.socket.collect(self.family, 0, body);
        done.map(drop)
            .map_err(|failure| failure.into_error("set up a WireGuard interface".into()))
    }

    fn request(&self, command: u8) -> Body {
        Body(vec![command, 1, 0, 0]).number(IFINDEX, self.index)
    }
}
