//! The connections that a namespace tracks: how many there are, and their end.

use super::netlink::message::{Body, attribute};
use super::netlink::socket::{DUMP, Failure, Socket};
use super::{Netns, sysctl};
use crate::Error;
use crate::host::memory_bytes;

/// linux/netfilter/nfnetlink.h and nfnetlink_conntrack.h: `NFNL_SUBSYS_CTNETLINK` with `IPCTNL_MSG_CT_GET`…
const GET: u16 = 1 << 8 | 1;
/// …and `IPCTNL_MSG_CT_DELETE`.
const DELETE: u16 = 1 << 8 | 2;
/// `struct nfgenmsg` of any address family.
const ANY: [u8; 4] = [libc::AF_UNSPEC as u8, 0, 0, 0];
/// `CTA_STATUS`, `CTA_STATUS_MASK`: an entry's flags, and which of them a dump filters by (Linux 5.17; older kernels give all).
const STATUS: u16 = 3;
const STATUS_MASK: u16 = 26;
/// `IPS_SEEN_REPLY` (linux/netfilter/nf_conntrack_common.h): frames of both directions have been seen.
const SEEN_REPLY: u32 = 1 << 1;

/// Forgets all connections of the namespace. A kernel that has no connection tracking, or has not begun it, has none.
pub fn flush(ns: &Netns) -> Result<(), Error> {
    ask(ns, "forget", |socket| {
        socket.collect(DELETE, 0, &Body(ANY.to_vec()))
    })
    .map(drop)
}

/// How many connections of the namespace have been seen in one direction only: no frame came back. The kernel walks its whole table,
/// some milliseconds.
pub fn unanswered(ns: &Netns) -> Result<u64, Error> {
    let body = Body(ANY.to_vec());
    let body = body
        .with(STATUS, &0u32.to_be_bytes())
        .with(STATUS_MASK, &SEEN_REPLY.to_be_bytes());
    let count = ask(ns, "list", |socket| {
        let mut found = 0;
        socket.request(GET, DUMP, &body, &mut |entry| {
            found += u64::from(is_unanswered(entry))
        })?;
        Ok(found)
    })?;
    Ok(count.unwrap_or(0))
}

/// Whether an entry of a dump lacks its reply.
fn is_unanswered(entry: &[u8]) -> bool {
    let status = attribute(entry, ANY.len(), STATUS).and_then(|value| value.try_into().ok());
    status.is_some_and(|status| u32::from_be_bytes(status) & SEEN_REPLY == 0)
}

/// Asks the kernel about connections; `None` where it tracks none.
fn ask<T: Send>(
    ns: &Netns,
    verb: &str,
    request: impl FnOnce(&mut Socket) -> Result<T, Failure> + Send,
) -> Result<Option<T>, Error> {
    match ns.enter(|| request(&mut Socket::open(libc::NETLINK_NETFILTER)?))? {
        Ok(found) => Ok(Some(found)),
        Err(failure) => match failure.source.raw_os_error() {
            // The kernel lacks netfilter's sockets, or that subsystem; or nothing matched.
            Some(libc::EPROTONOSUPPORT | libc::EINVAL | libc::ENOENT) => Ok(None),
            _ => Err(failure.into_error(format!(
                "{verb} the connections of namespace {}",
                ns.label()
            ))),
        },
    }
}

/// Bytes of the kernel's slab of connections, those of all namespaces; `None` if it cannot be read. Data of NAT are elsewhere.
pub fn slab_bytes() -> Option<u64> {
    slab_of(&std::fs::read_to_string("/proc/slabinfo").ok()?)
}

/// Bytes of the objects in use, of /proc/slabinfo: `nf_conntrack <active objects> <objects> <bytes of each> ...`.
fn slab_of(slabs: &str) -> Option<u64> {
    let mut words = slabs.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nf_conntrack").then_some(words)
    })?;
    let active: u64 = words.next()?.parse().ok()?;
    active.checked_mul(words.nth(1)?.parse().ok()?)
}

/// How many connections this host's table holds. The kernel decides it by the memory when the module is loaded
/// (`nf_conntrack_init_start` in net/netfilter/nf_conntrack_core.c).
pub fn room() -> u64 {
    let limit = std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse().ok());
    match limit {
        // No limit.
        Some(0) => u64::MAX,
        Some(limit) => limit,
        None => match memory_bytes() {
            bytes if bytes > 4 << 30 => 262_144,
            bytes if bytes > 1 << 30 => 65_536,
            bytes => (bytes / 16_384 / 8).max(1024),
        },
    }
}

/// How many connections the namespace tracks now; `None` where the kernel does not track any.
pub fn count(ns: &Netns) -> Option<u64> {
    sysctl::get(ns, "net/netfilter/nf_conntrack_count")
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slab_of_connections_is_read() {
        let slabs = "slabinfo - version: 2.1\n# name <active_objs> ...\nnf_conntrack_expect 1 1 224 18 1 : x\n\
                     nf_conntrack 1000 1008 256 16 1 : tunables 0 0 0\n";
        assert_eq!(slab_of(slabs), Some(256_000));
        for odd in ["", "nf_conntrack", "nf_conntrack 1 2", "nf_conntrack x 2 3"] {
            assert_eq!(slab_of(odd), None, "{odd}");
        }
        let large = format!("nf_conntrack {0} 1 {0}", u64::MAX);
        assert_eq!(slab_of(&large), None);
    }

    #[test]
    fn entries_without_a_reply_are_told_by_their_status() {
        let entry = |status: u32| {
            Body(ANY.to_vec())
                .with(1, &[1, 2, 3])
                .with(STATUS, &status.to_be_bytes())
                .0
        };
        assert!(is_unanswered(&entry(0x188)) && !is_unanswered(&entry(0x18a)));
        for odd in [&[][..], &[0; 3], &ANY] {
            assert!(!is_unanswered(odd));
        }
    }
}
