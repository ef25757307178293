//! Network namespaces and their contents: links, addresses, routes, knobs, counters; the guard that keeps test traffic inside a
//! lab (RFC 6815), and the register of labs left up on purpose.
//!
//! Reading order: [`netns`] (namespaces), [`netlink`] (their contents), [`ethtool`], [`sysfs`], [`sysctl`], [`napi`] (their
//! knobs), [`procnet`] (their counters), [`guard`] and [`registry`] (their safety).

pub mod conntrack;
pub mod ethtool;
pub mod guard;
pub mod napi;
pub mod netlink;
pub mod netns;
pub mod procnet;
pub mod programs;
pub mod registry;
pub mod sysctl;
pub mod sysfs;
pub mod userns;
pub(crate) mod wireguard;
pub(crate) mod xfrm;

pub use netns::Netns;

pub type MacAddr = [u8; 6];
