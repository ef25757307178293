//! The embedded lab: generator, DUT and receiver in network namespaces, joined by veth pairs.
//!
//! One generator and one receiver namespace serve all lanes; a lane is a variant with a DUT namespace and links of its own,
//! so that variants stand side by side and can alternate within fractions of a second. The namespaces have no names: they
//! exist as long as this process does, and the kernel removes them with everything inside, also after kill -9.

pub mod addresses;
mod dut;
pub mod ledger;
pub mod variant;

pub use dut::DutEnd;
pub use variant::Variant;

use crate::net::ethtool::Ethtool;
use crate::net::netlink::{Route, VethSpec};
use crate::net::sysfs::NetSysfs;
use crate::net::{self, MacAddr, Netns, napi, sysctl};
use crate::ports::PortError;
use linerate_core::record::Mode;
use std::time::Duration;

/// What can go wrong with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A namespace, link, address or setting.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// An eBPF program or a port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A tool that loads rule sets.
    #[error("cannot load the rule set of {variant}: {reason}")]
    Rules {
        /// The variant.
        variant: String,
        /// What the tool says, or what to install.
        reason: String,
    },
    /// This kernel or machine lacks something.
    #[error("{0}")]
    Unsuitable(String),
}

/// How a lab is laid out.
#[derive(Debug, Clone)]
pub struct LabSpec {
    /// Inline or threaded.
    pub mode: Mode,
    /// CPUs of the generator's threads; one queue for each CPU number up to the highest, when there are several.
    pub generator_cpus: Vec<u32>,
    /// CPUs of the DUT's NAPI threads, in threaded mode.
    pub dut_cpus: Vec<u32>,
    /// Longest frame in bytes with FCS.
    pub longest_fcs: u16,
    /// Flows that connection tracking must have room for.
    pub flows: u64,
}

impl LabSpec {
    /// Queues of every link: an XDP redirect on CPU c uses queue c modulo their number, so several generator CPUs need as
    /// many as the highest number plus one to keep out of each other's way.
    pub fn queues(&self) -> u32 {
        match self.generator_cpus.len() {
            0 | 1 => 1,
            _ => self.generator_cpus.iter().max().map_or(1, |m| m + 1),
        }
    }

    fn mtu(&self) -> u32 {
        u32::from(self.longest_fcs).saturating_sub(18).max(1500)
    }
}

/// One end of a link.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name in its namespace.
    pub name: String,
    /// Number in its namespace.
    pub index: u32,
    /// Ethernet address.
    pub mac: MacAddr,
}

/// One end of a link to be made.
struct End {
    name: String,
    mac: MacAddr,
    index: u32,
}

/// A variant with its links.
pub struct Lane {
    /// What the DUT is.
    pub variant: Variant,
    /// Where frames leave.
    pub generator: Interface,
    /// Where they arrive.
    pub receiver: Interface,
    /// What is between; none for card to card.
    pub dut: Option<DutEnd>,
}

impl Lane {
    /// Where a generator addresses its frames to.
    pub fn destination_mac(&self) -> MacAddr {
        match &self.dut {
            Some(dut) if self.variant.routes() => dut.inside.mac,
            _ => self.receiver.mac,
        }
    }
}

/// A lab that is up.
pub struct EmbeddedLab {
    /// Where the generator's interfaces are.
    pub generator: Netns,
    /// Where the receiver's interfaces are.
    pub receiver: Netns,
    /// The variants, in the order they were asked for.
    pub lanes: Vec<Lane>,
    /// The layout.
    pub spec: LabSpec,
    generator_route: Route,
    receiver_route: Route,
}

/// How long a new link may take to come up.
const START_WITHIN: Duration = Duration::from_secs(2);

/// The tester's namespaces have no IP at all: a stack that answered or announced itself would send foreign frames.
const QUIET: [(&str, &str); 2] =
    [("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")];

impl EmbeddedLab {
    /// Builds a lab with a lane for each variant.
    ///
    /// # Errors
    /// No privilege, or something that the kernel does not have; what was built is gone with the error.
    pub fn build(spec: LabSpec, variants: &[Variant]) -> Result<Self, LabError> {
        let generator = Netns::anonymous()?.with_label("generator");
        let receiver = Netns::anonymous()?.with_label("receiver");
        for namespace in [&generator, &receiver] {
            quieten(namespace)?;
        }
        let mut lab = EmbeddedLab {
            generator_route: Route::open(&generator)?,
            receiver_route: Route::open(&receiver)?,
            generator,
            receiver,
            lanes: Vec::new(),
            spec,
        };
        for variant in variants {
            let lane = lab.lane(variant)?;
            lab.lanes.push(lane);
        }
        Ok(lab)
    }

    fn lane(&self, variant: &Variant) -> Result<Lane, LabError> {
        let number = self.lanes.len();
        let end = |prefix: &str, role: u8| End {
            name: format!("{prefix}{number}"),
            mac: addresses::mac(number, role),
            index: 10 * (number as u32 + 1) + u32::from(role),
        };
        let (g, inside, outside, r) = (end("g", 1), end("in", 2), end("out", 3), end("r", 4));
        let dut = if *variant == Variant::CardToCard {
            self.link(&self.generator_route, &g, &r, &self.receiver)?;
            None
        } else {
            let namespace = Netns::anonymous()?.with_label(&format!("DUT of {variant}"));
            let route = dut::prepare(&namespace)?;
            if !variant.routes() {
                quieten(&namespace)?; // a bridge with IPv6 reports its multicast groups, at times in the middle of a trial
            }
            self.link(&self.generator_route, &g, &inside, &namespace)?;
            self.link(&route, &outside, &r, &self.receiver)?;
            Some(DutEnd::new(namespace, route, &inside.name, &outside.name)?)
        };
        let generator = interface(&self.generator_route, &g.name)?;
        let receiver = interface(&self.receiver_route, &r.name)?;
        self.generator_route.set_up(generator.index, true)?;
        self.receiver_route.set_up(receiver.index, true)?;
        let mut lane = Lane { variant: variant.clone(), generator, receiver, dut };
        // A veth shows a carrier before its queues are live, and loses what is sent in between.
        if let Some(dut) = &mut lane.dut {
            dut.configure(&lane.variant, &self.spec, lane.generator.mac, lane.receiver.mac)?;
            dut.route.wait_running(dut.inside.index, START_WITHIN)?;
            dut.route.wait_running(dut.outside.index, START_WITHIN)?;
        }
        self.generator_route.wait_running(lane.generator.index, START_WITHIN)?;
        self.receiver_route.wait_running(lane.receiver.index, START_WITHIN)?;
        Ok(lane)
    }

    fn link(&self, route: &Route, end: &End, peer: &End, peer_ns: &Netns) -> Result<(), LabError> {
        Ok(route.create_veth(&VethSpec {
            name: &end.name,
            mac: end.mac,
            peer_name: &peer.name,
            peer_mac: peer.mac,
            peer_ns,
            queues: self.spec.queues(),
            mtu: self.spec.mtu(),
            txqueuelen: None,
            indexes: Some((end.index, peer.index)),
        })?)
    }

    /// Gives the receivers CPUs of their own: their interfaces' NAPI threads. Their XDP programs must be attached.
    ///
    /// # Errors
    /// The kernel has no threaded NAPI.
    pub fn thread_receivers(&self, cpus: &[u32]) -> Result<(), LabError> {
        self.lanes.iter().try_for_each(|lane| thread_napi(&self.receiver, &lane.receiver.name, cpus))
    }

    /// The generator's and receiver's links as the kernel counts them.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tester_links(
        &self,
        lane: &Lane,
    ) -> Result<(net::netlink::LinkInfo, net::netlink::LinkInfo), LabError> {
        let generator = self.generator_route.link_by_index(lane.generator.index)?;
        let receiver = self.receiver_route.link_by_index(lane.receiver.index)?;
        Ok((generator, receiver))
    }

    /// The names that [`EmbeddedLab::persist`] gives: role, name and inode of each namespace.
    pub fn names(&self, prefix: &str) -> Vec<(String, String, u64)> {
        self.named(prefix).map(|(role, name, namespace)| (role, name, namespace.inode())).collect()
    }

    fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (String, String, &'a Netns)> {
        let tester = [("generator", &self.generator), ("receiver", &self.receiver)];
        let tester = tester.map(|(role, ns)| (role.to_string(), format!("{prefix}-{role}"), ns));
        let duts = self.lanes.iter().filter_map(|lane| Some((&lane.variant, &lane.dut.as_ref()?.namespace)));
        let duts = duts
            .enumerate()
            .map(move |(n, (variant, ns))| (format!("dut {n} ({variant})"), format!("{prefix}-dut{n}"), ns));
        tester.into_iter().chain(duts)
    }

    /// Gives the namespaces names, so that they outlive the process and `ip netns exec` reaches them.
    ///
    /// # Errors
    /// A name is taken, or /run/netns cannot be written.
    pub fn persist(&self, prefix: &str) -> Result<(), LabError> {
        for lane in &self.lanes {
            if let Some(dut) = &lane.dut {
                dut.outlive()?;
            }
            // Whoever receives by other means than an XDP program (tcpdump, sockets) needs the NAPI that one brings along.
            enable_napi(&self.receiver, &lane.receiver.name)?;
        }
        Ok(self.named(prefix).try_for_each(|(_, name, namespace)| namespace.persist(&name))?)
    }
}

fn quieten(namespace: &Netns) -> Result<(), LabError> {
    if sysctl::get(namespace, QUIET[0].0).is_err() {
        return Ok(()); // a kernel without IPv6 has nothing to be quietened
    }
    Ok(sysctl::apply(namespace, &QUIET)?)
}

fn interface(route: &Route, name: &str) -> Result<Interface, LabError> {
    let link = route.link(name)?;
    Ok(Interface { name: name.into(), index: link.index, mac: link.mac })
}

/// Turns GRO on, which gives a veth the NAPI that redirected frames need.
fn enable_napi(namespace: &Netns, name: &str) -> Result<(), LabError> {
    Ok(Ethtool::open(namespace)?.set_feature(name, "rx-gro", true)?)
}

/// Lets NAPI threads do the receiving of an interface, each bound to one of `cpus`.
fn thread_napi(namespace: &Netns, name: &str, cpus: &[u32]) -> Result<(), LabError> {
    let sysfs = NetSysfs::mount(namespace)?;
    napi::set_threaded(&sysfs, name, true)?;
    let threads = napi::threads(namespace, name)?;
    if threads.is_empty() {
        return Err(LabError::Unsuitable(format!(
            "the kernel made no NAPI threads for {name}: threaded mode needs Linux 5.17 or newer"
        )));
    }
    for (thread, cpu) in threads.iter().zip(cpus.iter().cycle()) {
        napi::pin(thread.pid, *cpu as usize)?;
        napi::favour(thread.pid)?;
    }
    Ok(())
}
