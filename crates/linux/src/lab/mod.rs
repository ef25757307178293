//! The embedded lab: generator, DUT and receiver in network namespaces, joined by veth pairs.
//!
//! One generator and one receiver namespace serve all lanes; a lane is a variant with a DUT namespace and links of its own,
//! so that variants stand side by side and can alternate within fractions of a second. The namespaces have no names: they
//! exist as long as this process does, and the kernel removes them with everything inside, also after kill -9.

pub mod addresses;
mod cards;
pub mod collectors;
mod dut;
pub mod filler;
mod lane;
pub mod ledger;
mod own_rules;
mod program;
pub mod room;
mod rules;
pub mod setup;
pub mod support;
mod topology;

pub use dut::DutEnd;
pub use lane::Lane;
pub use own_rules::OwnRules;
pub use rules::DROP_COUNTER;
pub use setup::Setup;
pub use topology::interface_names;

use crate::error::Error;
use crate::host::changes::{Change, Consent, Host, HostChanges};
use crate::net::ethtool::Ethtool;
use crate::net::netlink::{LinkInfo, Route};
use crate::net::registry::NamespaceRecord;
use crate::net::{MacAddr, Netns, napi, sysctl};
use linerate_plan::settings::Mode;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use topology::Wiring;

/// How a lab is laid out.
#[derive(Debug, Clone)]
pub struct LabSpec {
    pub mode: Mode,
    /// CPUs of the generator's threads; one queue for each CPU number up to the highest, when there are several.
    pub generator_cpus: Vec<u32>,
    /// CPUs of the DUT's NAPI threads, in threaded mode.
    pub dut_cpus: Vec<u32>,
    /// Longest frame in bytes with FCS.
    pub longest_fcs: u16,
    /// Flows that connection tracking must have room for.
    pub flows: u64,
    /// Whether settings of the whole host may be changed, while the lab stands.
    pub host_changes: Consent,
    /// Set when the user wants to stop: programs that are running are then ended.
    pub interrupted: Option<&'static AtomicBool>,
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

    /// Whether two generator CPUs send into one of a card's receive queues.
    fn shares(&self, queues: u32) -> bool {
        let used: std::collections::BTreeSet<u32> =
            self.generator_cpus.iter().map(|cpu| cpu % queues.max(1)).collect();
        used.len() < self.generator_cpus.len()
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
    pub mac: MacAddr,
}

/// A lab that is up.
pub struct EmbeddedLab {
    /// Where the generator's interfaces are.
    pub generator: Netns,
    /// Where the receiver's interfaces are.
    pub receiver: Netns,
    /// The DUTs, in the order they were asked for.
    pub lanes: Vec<Lane>,
    pub spec: LabSpec,
    generator_route: Route,
    receiver_route: Route,
    /// Dropped last: the host is restored when nothing needs its changes any more.
    host: HostChanges,
}

/// How long a new link may take to come up.
const START_WITHIN: Duration = Duration::from_secs(2);

/// The tester's namespaces have no IP at all: a stack that answered or announced itself would send foreign frames.
const QUIET: [(&str, &str); 2] =
    [("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")];

impl EmbeddedLab {
    /// Builds a lab with a lane for each setup.
    ///
    /// # Errors
    /// No privilege, an impossible setup, no consent to a change of the host, or a missing kernel feature. After an error the lab
    /// is removed, and the host is restored.
    pub fn build(spec: LabSpec, setups: &[Setup]) -> Result<Self, Error> {
        let mut host = Host::this().begin();
        for name in setups.iter().flat_map(|setup| &setup.settings.modules) {
            need_module(&mut host, name, spec.host_changes)?;
        }
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
            host,
        };
        for setup in setups {
            let lane = lab.lane(setup.clone())?;
            lab.lanes.push(lane);
        }
        lab.change_host()?;
        for lane in &mut lab.lanes {
            if let Some(dut) = &mut lane.dut {
                dut.furnish(&lane.setup, &lab.spec)?;
            }
        }
        Ok(lab)
    }

    fn lane(&self, setup: Setup) -> Result<Lane, Error> {
        let wiring = Wiring { lab: self, number: self.lanes.len(), setup: &setup };
        let mut dut = match setup.settings.dut {
            linerate_plan::settings::Dut::TesterBaseline => {
                wiring.tester_baseline()?;
                None
            }
            _ => Some(wiring.dut()?),
        };
        let [g, r] = wiring.tester();
        let generator = interface(&self.generator_route, &g.name)?;
        let receiver = interface(&self.receiver_route, &r.name)?;
        self.generator_route.set_up(generator.index, true)?;
        self.receiver_route.set_up(receiver.index, true)?;
        let mut host = Vec::new();
        // A veth shows a carrier before its queues are live, and loses frames sent in between.
        if let Some(dut) = &mut dut {
            if let Some(queues) = setup.settings.inside.queues {
                // The generator redirects, which needs no queue of its own end.
                let own = self.spec.queues().max(queues);
                Ethtool::open(&self.generator)?.set_channels(&generator.name, own, queues)?;
            }
            host = dut.configure(&setup, &self.spec, generator.mac, receiver.mac)?;
            host.extend(setup.host_changes()?);
            for route in dut.routes() {
                route.wait_all_running(START_WITHIN)?;
            }
        }
        self.generator_route.wait_running(generator.index, START_WITHIN)?;
        self.receiver_route.wait_running(receiver.index, START_WITHIN)?;
        let receiver_queues = self.receiver_route.link_by_index(receiver.index)?.num_rx_queues;
        let shared_queue = setup.settings.inside.queues.is_some_and(|queues| self.spec.shares(queues));
        let (flows, interrupted) = (self.spec.flows, self.spec.interrupted);
        Ok(Lane { setup, generator, receiver, receiver_queues, shared_queue, dut, host, flows, interrupted })
    }

    /// Makes the changes to the host that the lanes want, if they are agreed to.
    fn change_host(&mut self) -> Result<(), Error> {
        let mut wanted: Vec<Change> = self.lanes.iter().flat_map(|lane| lane.host.clone()).collect();
        // Minima last: a number with a minimum may have been set below it.
        wanted.sort_by_key(|change| (change.at_least, change.clone()));
        wanted.dedup();
        let clash = wanted.windows(2).find(|pair| pair[0].file == pair[1].file && !pair[1].at_least);
        if let Some([one, other]) = clash {
            return Err(Error::Refused(format!(
                "/{} cannot be {} and {} at once: it is the whole host's, so these lanes cannot stand side by side",
                one.file, one.value, other.value
            )));
        }
        let refused = self.spec.host_changes == Consent::Refused;
        if refused {
            wanted = Host::this().outstanding(&wanted)?;
            if !wanted.is_empty() {
                let by_hand: Vec<String> = wanted.iter().map(Change::by_hand).collect();
                return Err(without_consent(&by_hand));
            }
        }
        for change in &wanted {
            self.host.set(change)?;
        }
        for (change, refusal) in self.lanes.iter().filter_map(Lane::lacks_states) {
            if refused {
                return Err(refusal);
            }
            self.host.set(&change)?;
        }
        Ok(())
    }

    /// Gives the receivers CPUs of their own: their interfaces' NAPI threads. Their XDP programs must be attached.
    ///
    /// # Errors
    /// The kernel has no threaded NAPI.
    pub fn thread_receivers(&self, cpus: &[u32]) -> Result<(), Error> {
        self.lanes.iter().try_for_each(|lane| thread_napi(&self.receiver, &lane.receiver.name, cpus))
    }

    /// The generator's and receiver's links as the kernel counts them.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tester_links(&self, lane: &Lane) -> Result<(LinkInfo, LinkInfo), Error> {
        let generator = self.generator_route.link_by_index(lane.generator.index)?;
        let receiver = self.receiver_route.link_by_index(lane.receiver.index)?;
        Ok((generator, receiver))
    }

    /// The namespaces by role, with the names that [`EmbeddedLab::persist`] gives them.
    pub fn names(&self, prefix: &str) -> BTreeMap<String, NamespaceRecord> {
        let record = |name, namespace: &Netns| NamespaceRecord { name, inode: namespace.inode() };
        self.named(prefix).map(|(role, name, namespace)| (role, record(name, namespace))).collect()
    }

    fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (String, String, &'a Netns)> {
        let tester = [("generator", &self.generator), ("receiver", &self.receiver)];
        let tester = tester.map(|(role, ns)| (role.to_string(), format!("{prefix}-{role}"), ns));
        let duts = self.lanes.iter().filter_map(|lane| Some((&lane.setup.name, lane.dut.as_ref()?)));
        let duts = duts.enumerate().flat_map(move |(n, (setup, dut))| {
            dut.namespaces().enumerate().map(move |(part, (role, ns))| match part {
                0 => (format!("dut {n} ({setup})"), format!("{prefix}-dut{n}"), ns),
                _ => (format!("dut {n}, {role} ({setup})"), format!("{prefix}-dut{n}-{part}"), ns),
            })
        });
        tester.into_iter().chain(duts)
    }

    /// Gives the namespaces names, so that they outlive the process and `ip netns exec` reaches them.
    ///
    /// # Errors
    /// A name is taken, or /run/netns cannot be written.
    pub fn persist(&self, prefix: &str) -> Result<(), Error> {
        for lane in &self.lanes {
            if let Some(dut) = &lane.dut {
                dut.outlive()?;
            }
            // Receivers other than XDP programs (tcpdump, sockets) need the NAPI that such a program brings along.
            enable_napi(&self.receiver, &lane.receiver.name)?;
        }
        self.named(prefix).try_for_each(|(_, name, namespace)| namespace.persist(&name))
    }
}

fn without_consent(by_hand: &[String]) -> Error {
    Error::Refused(format!(
        "this lab needs other settings of the whole host, and linerate changes nothing outside its namespaces without consent. By hand: {}",
        by_hand.join("; ")
    ))
}

/// A module must be there; loading it changes the host.
fn need_module(host: &mut HostChanges, name: &str, consent: Consent) -> Result<(), Error> {
    match (support::module(name), consent) {
        (Ok(support::Module::Present), _) => Ok(()),
        (Ok(support::Module::Loadable), Consent::Allowed) => Ok(host.load_module(name)?),
        (Ok(support::Module::Loadable), Consent::Refused) => {
            Err(without_consent(&[format!("modprobe {name}")]))
        }
        (Err(reason), _) => Err(Error::Refused(reason)),
    }
}

fn quieten(namespace: &Netns) -> Result<(), Error> {
    if sysctl::get(namespace, QUIET[0].0).is_err() {
        return Ok(()); // a kernel without IPv6 has nothing to be quietened
    }
    sysctl::apply(namespace, &QUIET)
}

fn interface(route: &Route, name: &str) -> Result<Interface, Error> {
    let link = route.link(name)?;
    Ok(Interface { name: name.into(), index: link.index, mac: link.mac })
}

/// Turns GRO on, which gives a veth the NAPI that redirected frames need.
fn enable_napi(namespace: &Netns, name: &str) -> Result<(), Error> {
    Ethtool::open(namespace)?.set_feature(name, "rx-gro", true)
}

/// Lets NAPI threads do the receiving of an interface, each bound to one of `cpus`, or unbound if `cpus` is empty.
fn thread_napi(namespace: &Netns, name: &str, cpus: &[u32]) -> Result<(), Error> {
    napi::set_threaded(namespace, name)?;
    let threads = napi::threads(namespace, name)?;
    if threads.is_empty() {
        return Err(Error::Refused(format!(
            "the kernel made no NAPI threads for {name}: threaded mode needs Linux 5.17 or newer"
        )));
    }
    for (thread, cpu) in threads.iter().zip(cpus.iter().cycle()) {
        napi::pin(thread.pid, *cpu as usize)?;
    }
    threads.iter().try_for_each(|thread| napi::favour(thread.pid))
}
