//! IPsec by NETLINK_XFRM: ESP in tunnel mode with AES-GCM (RFC 4106), by states and policies that are set by hand.

use std::net::{IpAddr, Ipv4Addr};

use super::Netns;
use super::netlink::Prefix;
use super::netlink::message::{Body, attribute, text};
use super::netlink::socket::{DUMP, Socket};
use crate::error::{Doing, Error};

/// linux/xfrm.h
const NEW_STATE: u16 = 0x10;
const GET_STATE: u16 = 0x12;
const NEW_POLICY: u16 = 0x13;
const GET_POLICY: u16 = 0x15;
const TEMPLATE: u16 = 5;
const ALGORITHM: u16 = 18;
const EXTRA_FLAGS: u16 = 24;
const MODE_TUNNEL: u8 = 1;
/// A state for packets of any IP version.
const ANY_FAMILY: u8 = 32;
/// The number of a packet begins again at 0: a campaign may send more than four thousand million.
const MAY_WRAP: u32 = 2;
/// No limit of bytes and packets, and no expiry.
const LIFETIME: [u64; 8] = [u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0, 0, 0, 0];
/// `struct xfrm_usersa_info`, and the place of its identity (destination, SPI, protocol) and of its mode.
const STATE: usize = 224;
const STATE_ID: usize = 56;
const STATE_MODE: usize = 214;
/// `struct xfrm_userpolicy_info`, and the place of its direction.
const POLICY: usize = 168;
const POLICY_DIRECTION: usize = 160;

const CIPHER: &str = "rfc4106(gcm(aes))";
/// AES-128 with its salt.
const KEY: [u8; 20] = *b"linerate-lab-key\0\0\0\x01";
const ICV_BITS: u32 = 128;

/// Packets that a policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Out = 1,
    Forward = 2,
}

/// One direction of a tunnel: its outer addresses, and its SPI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half {
    pub(crate) from: Ipv4Addr,
    pub(crate) to: Ipv4Addr,
    pub(crate) spi: u32,
}

/// States and policies of a namespace.
pub(crate) struct Xfrm(Socket);

impl Xfrm {
    pub(crate) fn open(namespace: &Netns) -> Result<Xfrm, Error> {
        let socket = namespace.enter(|| Socket::open(libc::NETLINK_XFRM))?;
        socket.map(Xfrm).doing("open a netlink socket for IPsec")
    }

    /// Adds the state that encrypts or decrypts this direction.
    ///
    /// # Errors
    /// The kernel lacks ESP or AES-GCM, or keeps another state.
    pub(crate) fn add_state(&mut self, half: Half) -> Result<(), Error> {
        let body = state(half);
        let id = body.0[STATE_ID..STATE_ID + 24].to_vec();
        self.ask(NEW_STATE, 0, &body, "add a state of ESP with AES-GCM")?;
        let kept = self.ask(GET_STATE, DUMP, &Body::default(), "list states of ESP")?;
        let is_kept = |kept: &Vec<u8>| {
            kept.get(STATE_ID..STATE_ID + 24) == Some(&id)
                && kept.get(STATE_MODE) == Some(&MODE_TUNNEL)
                && attribute(kept, STATE, ALGORITHM).map(text).as_deref() == Some(CIPHER)
        };
        kept_or(kept.iter().any(is_kept), "state")
    }

    /// Sends packets of these networks through the tunnel, or demands that they came by it.
    pub(crate) fn add_policy(
        &mut self,
        direction: Direction,
        from: Prefix,
        to: Prefix,
        half: Half,
    ) -> Result<(), Error> {
        let body = policy(direction, from, to, half);
        let selector = body.0[..SELECTOR].to_vec();
        self.ask(NEW_POLICY, 0, &body, "add a policy of IPsec")?;
        let kept = self.ask(GET_POLICY, DUMP, &Body::default(), "list policies of IPsec")?;
        let is_kept = |kept: &Vec<u8>| {
            kept.get(..SELECTOR) == Some(&selector)
                && kept.get(POLICY_DIRECTION) == Some(&(direction as u8))
                && attribute(kept, POLICY, TEMPLATE).is_some()
        };
        kept_or(kept.iter().any(is_kept), "policy")
    }

    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &Body,
        what: &str,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let answers = self.0.collect(kind, flags, body);
        answers.map_err(|failure| failure.into_error(what.into()))
    }
}

fn kept_or(kept: bool, what: &str) -> Result<(), Error> {
    let why = || Error::Refused(format!("the kernel did not keep a {what} of IPsec"));
    if kept { Ok(()) } else { Err(why()) }
}

/// `struct xfrm_selector`.
const SELECTOR: usize = 56;

/// `xfrm_address_t`.
fn address(address: IpAddr) -> Vec<u8> {
    let mut bytes = match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    bytes.resize(16, 0);
    bytes
}

/// `struct xfrm_id` of ESP.
fn id(half: Half, spi: u32) -> Vec<u8> {
    let esp = [libc::IPPROTO_ESP as u8, 0, 0, 0];
    [&address(half.to.into())[..], &spi.to_be_bytes(), &esp].concat()
}

fn lifetime() -> Vec<u8> {
    LIFETIME.map(u64::to_ne_bytes).concat()
}

/// `struct xfrm_usersa_info`, its algorithm and its flags.
fn state(half: Half) -> Body {
    let mut body = vec![0; SELECTOR];
    body.extend(id(half, half.spi));
    body.extend(address(half.from.into()));
    body.extend(lifetime());
    // The counters of traffic and of errors, and the numbers.
    body.resize(body.len() + 32 + 12 + 4 + 4, 0);
    body.extend((libc::AF_INET as u16).to_ne_bytes());
    // Packets in any order, as cards with several queues hand them over.
    body.extend([MODE_TUNNEL, 0, ANY_FAMILY]);
    body.resize(STATE, 0);
    let mut algorithm = CIPHER.as_bytes().to_vec();
    algorithm.resize(64, 0);
    for number in [KEY.len() as u32 * 8, ICV_BITS] {
        algorithm.extend(number.to_ne_bytes());
    }
    algorithm.extend(KEY);
    Body(body)
        .with(ALGORITHM, &algorithm)
        .number(EXTRA_FLAGS, MAY_WRAP)
}

/// `struct xfrm_userpolicy_info`, and its one template.
fn policy(direction: Direction, from: Prefix, to: Prefix, half: Half) -> Body {
    let family = |ip: IpAddr| if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u16;
    let mut body = [address(to.0), address(from.0), vec![0; 8]].concat();
    body.extend(family(to.0).to_ne_bytes());
    body.extend([to.1, from.1]);
    body.resize(SELECTOR, 0);
    body.extend(lifetime());
    // The counters of traffic, the priority and the number.
    body.resize(body.len() + 32 + 4 + 4, 0);
    body.push(direction as u8);
    body.resize(POLICY, 0);
    let mut template = id(half, 0);
    template.extend((libc::AF_INET as u16).to_ne_bytes());
    template.extend([0, 0]);
    template.extend(address(half.from.into()));
    // Any state of these ends, with any algorithm.
    template.extend([0, 0, 0, 0, MODE_TUNNEL, 0, 0, 0]);
    template.extend([0xff; 12]);
    Body(body).with(TEMPLATE, &template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_kernels_layout() {
        let [from, to] = [5, 6].map(|n| Ipv4Addr::new(198, 18, 0, n));
        let half = Half {
            from,
            to,
            spi: 0x1234,
        };
        let state = state(half).0;
        assert_eq!(state[72..76], [0, 0, 0x12, 0x34]);
        assert_eq!(state[76], 50);
        assert_eq!(state[80..84], from.octets());
        assert_eq!(state[212..214], 2u16.to_ne_bytes());
        assert_eq!(state[STATE_MODE..218], [1, 0, 32, 0]);
        let algorithm = attribute(&state, STATE, ALGORITHM).unwrap();
        assert_eq!(text(algorithm), CIPHER);
        assert_eq!(algorithm.len(), 64 + 8 + 20);
        let networks = [
            ("2001:2::".parse().unwrap(), 49),
            ("2001:2:0:8000::".parse().unwrap(), 49),
        ];
        let policy = policy(Direction::Forward, networks[0], networks[1], half).0;
        assert_eq!(policy[40..44], [10, 0, 49, 49]);
        assert_eq!(policy[POLICY_DIRECTION], 2);
        let template = attribute(&policy, POLICY, TEMPLATE).unwrap();
        assert_eq!(template.len(), 64);
        assert_eq!(template[28..32], from.octets());
        assert_eq!(template[48], 1);
    }
}
