//! The namespaces of a lab, and the interfaces in them.

use crate::error::Error;
use crate::host::cpu;
use crate::net::ethtool::{Ethtool, Feature};
use crate::net::napi::{self, NapiThread};
use crate::net::netlink::{LinkInfo, Route};
use crate::net::{MacAddr, Netns, sysctl};
use std::sync::Arc;
use std::time::Duration;

/// How long a new link may take to come up.
const START_WITHIN: Duration = Duration::from_secs(10);

/// The tester's namespaces have no IP at all: a stack that answered or announced itself would send foreign frames.
const QUIET: [(&str, &str); 2] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// A router that sends no answers and no announcements; these exist in every network namespace with IP version 4…
const ROUTER_V4: [(&str, &str); 5] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
];

/// …and these with version 6. Multicast listener reports cannot be turned off, but their repetition put off.
const ROUTER_V6: [(&str, &str); 8] = [
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/forwarding", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    (
        "net/ipv6/conf/default/mldv1_unsolicited_report_interval",
        "86400000",
    ),
    (
        "net/ipv6/conf/default/mldv2_unsolicited_report_interval",
        "86400000",
    ),
];

/// A VRF's interface, and its table.
pub(super) const VRF: &str = "vrf0";
const VRF_TABLE: u8 = 198;
/// The part of the second of two routers in a row.
pub(super) const SECOND_ROUTER: &str = "second router";

/// A namespace of a lab.
#[derive(Debug)]
pub struct Node {
    /// Part in a DUT, for names and messages; empty for the one that forwards, and for the tester's.
    pub role: &'static str,
    pub namespace: Netns,
    pub(super) route: Route,
}

impl Node {
    /// A namespace of the tester.
    pub(super) fn tester(label: &str) -> Result<Arc<Node>, Error> {
        Node::prepared(label, "", quieten)
    }

    /// A host at the end of a path, as the kernel makes it; IPv4 alone, so that nothing announces itself in the middle of a trial.
    pub(super) fn end_host(label: &str) -> Result<Arc<Node>, Error> {
        Node::prepared(label, "", quieten)
    }

    /// Something that forwards packets.
    pub(super) fn router(label: &str) -> Result<Arc<Node>, Error> {
        Node::prepared(&format!("DUT of {label}"), "", make_router)
    }

    /// A router with a VRF, whose table its routes belong to.
    pub(super) fn vrf(label: &str) -> Result<Arc<Node>, Error> {
        let namespace = Netns::anonymous()?.with_label(&format!("DUT of {label}"));
        make_router(&namespace)?;
        let route = Route::open(&namespace)?.in_table(VRF_TABLE);
        let vrf = route.create_vrf(VRF, VRF_TABLE.into())?;
        route.set_up(vrf, true)?;
        Ok(Arc::new(Node {
            role: "",
            namespace,
            route,
        }))
    }

    /// The router behind the first.
    pub(super) fn second_router(label: &str) -> Result<Arc<Node>, Error> {
        let title = format!("DUT of {label} ({SECOND_ROUTER})");
        Node::prepared(&title, SECOND_ROUTER, make_router)
    }

    /// Something that passes frames on without looking at IP: with IPv6 it would report its multicast groups, at times in the
    /// middle of a trial.
    pub(super) fn switch(label: &str, role: &'static str) -> Result<Arc<Node>, Error> {
        let title = if role.is_empty() {
            String::new()
        } else {
            format!(" ({role})")
        };
        Node::prepared(&format!("DUT of {label}{title}"), role, |namespace| {
            make_router(namespace)?;
            quieten(namespace)
        })
    }

    /// A new namespace with settings that come before its interfaces.
    fn prepared(
        label: &str,
        role: &'static str,
        prepare: impl FnOnce(&Netns) -> Result<(), Error>,
    ) -> Result<Arc<Node>, Error> {
        let namespace = Netns::anonymous()?.with_label(label);
        prepare(&namespace)?;
        Ok(Arc::new(Node {
            role,
            route: Route::open(&namespace)?,
            namespace,
        }))
    }

    pub(super) fn interface(self: &Arc<Node>, name: &str) -> Result<Interface, Error> {
        let link = self.route.link(name)?;
        Ok(Interface {
            name: name.into(),
            index: link.index,
            mac: link.mac,
            node: Arc::clone(self),
        })
    }

    /// Makes a bridge of these ports. Frames to a port's addresses are sent there from the first one on.
    pub(super) fn bridge(
        self: &Arc<Node>,
        name: &str,
        ports: &[(&str, &[MacAddr])],
    ) -> Result<u32, Error> {
        let bridge = self.route.create_bridge(name)?;
        for (port, behind) in ports {
            let port = self.interface(port)?;
            port.set_up()?;
            self.route.set_master(port.index, bridge)?;
            for address in *behind {
                self.route.add_fdb(port.index, *address)?;
            }
        }
        self.route.set_up(bridge, true)?;
        Ok(bridge)
    }

    /// Puts interfaces into the VRF, before they have addresses and routes, which would stay in the main table.
    pub(super) fn enslave(self: &Arc<Node>, names: &[String]) -> Result<(), Error> {
        let vrf = self.route.link(VRF)?.index;
        for name in names {
            let interface = self.interface(name)?;
            self.route.set_master(interface.index, vrf)?;
            if interface.link()?.master != Some(vrf) {
                return Err(Error::Refused(format!("{name} does not belong to {VRF}")));
            }
        }
        Ok(())
    }

    /// An interface that others stand on has no IPv6 of its own, and reports nothing.
    pub(super) fn below(self: &Arc<Node>, name: &str) -> Result<u32, Error> {
        if has_ipv6(&self.namespace) {
            sysctl::set(
                &self.namespace,
                &format!("net/ipv6/conf/{name}/disable_ipv6"),
                "1",
            )?;
        }
        let interface = self.interface(name)?;
        interface.set_up()?;
        Ok(interface.index)
    }

    /// Waits until all links that are set up can send.
    pub(super) fn wait_running(&self) -> Result<(), Error> {
        self.route.wait_all_running(START_WITHIN)
    }
}

fn make_router(namespace: &Netns) -> Result<(), Error> {
    sysctl::apply(namespace, &ROUTER_V4)?;
    if has_ipv6(namespace) {
        sysctl::apply(namespace, &ROUTER_V6)
    } else {
        Ok(())
    }
}

fn quieten(namespace: &Netns) -> Result<(), Error> {
    // A kernel without IPv6 has nothing to be quietened.
    if has_ipv6(namespace) {
        sysctl::apply(namespace, &QUIET)
    } else {
        Ok(())
    }
}

pub(super) fn has_ipv6(namespace: &Netns) -> bool {
    sysctl::get(namespace, "net/ipv6/conf/all/forwarding").is_ok()
}

/// One end of a link.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name in its namespace.
    pub name: String,
    /// Number in its namespace.
    pub index: u32,
    pub mac: MacAddr,
    pub node: Arc<Node>,
}

impl Interface {
    /// The link as the kernel counts it.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link(&self) -> Result<LinkInfo, Error> {
        self.node.route.link_by_index(self.index)
    }

    pub(super) fn set_up(&self) -> Result<(), Error> {
        self.node.route.set_up(self.index, true)
    }

    pub(super) fn wait_running(&self) -> Result<(), Error> {
        self.node.route.wait_running(self.index, START_WITHIN)
    }

    pub(super) fn ethtool(&self) -> Result<Ethtool, Error> {
        Ethtool::open(&self.node.namespace)
    }

    /// Turns GRO on, which gives a veth the NAPI that redirected frames need.
    pub(super) fn enable_napi(&self) -> Result<(), Error> {
        self.ethtool()?.set_feature(&self.name, "rx-gro", true)
    }

    /// Takes from a veth what makes its frames pass by the NAPI of its peer: the offload of TCP segmentation
    /// (`veth_skb_is_eligible_for_gro` in drivers/net/veth.c). Redirected frames take the NAPI in any case.
    pub(super) fn send_to_napi(&self) -> Result<(), Error> {
        let ethtool = self.ethtool()?;
        let segments = |feature: &Feature| feature.name.starts_with("tx-tcp") && feature.active;
        let features = ethtool.features(&self.name)?.into_iter();
        features
            .filter(segments)
            .try_for_each(|feature| ethtool.set_feature(&self.name, &feature.name, false))
    }

    /// Has the kernel compute the checksums before a veth sends a frame. Otherwise, an XDP program at the other end passes the frame on without them.
    pub(super) fn compute_checksums(&self) -> Result<(), Error> {
        let ethtool = self.ethtool()?;
        let features = ethtool.features(&self.name)?.into_iter();
        features
            .filter(|feature| feature.name.starts_with("tx-checksum") && feature.active)
            .try_for_each(|feature| ethtool.set_feature(&self.name, &feature.name, false))
    }

    /// The kernel's threads that poll it; none if it is not threaded.
    pub(super) fn napi_threads(&self) -> Result<Vec<NapiThread>, Error> {
        napi::threads(&self.node.namespace, &self.name)
    }

    /// Lets NAPI threads do the receiving, each bound to one of `cpus`, or unbound if `cpus` is empty.
    pub(super) fn thread_napi(&self, cpus: &[u32]) -> Result<(), Error> {
        let (namespace, name) = (&self.node.namespace, &self.name);
        napi::set_threaded(namespace, name)?;
        let threads = self.napi_threads()?;
        if threads.is_empty() {
            return Err(Error::Refused(format!(
                "the kernel made no NAPI threads for {name}: threaded mode needs Linux 5.17 or newer"
            )));
        }
        for (thread, cpu) in threads.iter().zip(cpus.iter().cycle()) {
            napi::pin(thread.pid, *cpu as usize)?;
            let kept = cpu::parse_list(&napi::allowed(thread.pid)?);
            if kept != [*cpu] {
                let pid = thread.pid;
                return Err(Error::Refused(format!(
                    "NAPI thread {pid} of {name} was bound to CPU {cpu}, and the kernel keeps {kept:?}"
                )));
            }
        }
        threads
            .iter()
            .try_for_each(|thread| napi::favour(thread.pid))
    }
}
