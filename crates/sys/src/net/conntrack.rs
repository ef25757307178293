//! The connections that a namespace tracks: how many there are, and their end.

use super::netlink::socket::Socket;
use super::{Error, Netns, sysctl};

/// linux/netfilter/nfnetlink.h and nfnetlink_conntrack.h: `NFNL_SUBSYS_CTNETLINK` and `IPCTNL_MSG_CT_DELETE`.
const DELETE: u16 = 1 << 8 | 2;

/// Forgets all connections of the namespace. A kernel that has no connection tracking, or has not begun it, has none.
pub fn flush(ns: &Netns) -> Result<(), Error> {
    // `struct nfgenmsg` of any family, without a filter: all of them.
    let asked = ns.run(|| {
        let mut socket = Socket::open(libc::NETLINK_NETFILTER)
            .map_err(|e| Error::kernel(format!("open a netfilter socket in namespace {}", ns.label()), e))?;
        Ok(socket.request(DELETE, 0, &[libc::AF_UNSPEC as u8, 0, 0, 0], |_, _| {}))
    });
    match asked {
        Ok(Ok(())) => Ok(()),
        // EINVAL: nobody serves that subsystem. ENOENT: nothing matched.
        Ok(Err(f)) if matches!(f.source.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        Ok(Err(f)) => Err(f.into_error(format!("forget the connections of namespace {}", ns.label()))),
        Err(e) if e.errno() == Some(libc::EPROTONOSUPPORT) => Ok(()),
        Err(e) => Err(e),
    }
}

/// How many connections the namespace tracks now; `None` where the kernel does not track any.
pub fn count(ns: &Netns) -> Option<u64> {
    sysctl::get(ns, "net/netfilter/nf_conntrack_count").ok()?.trim().parse().ok()
}
