//! A lab that is up.

use super::topology::Wiring;
use super::{LabSpec, Lane, Node, Setup, support};
use crate::error::Error;
use crate::host::changes::{Change, Consent, Host, HostChanges};
use crate::net::Netns;
use crate::net::registry::NamespaceRecord;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A lab that is up.
pub struct EmbeddedLab {
    /// Where the generator's interfaces are.
    pub generator: Arc<Node>,
    /// Where the receiver's interfaces are.
    pub receiver: Arc<Node>,
    /// The DUTs, in the order they were asked for.
    pub lanes: Vec<Lane>,
    pub spec: LabSpec,
    /// Dropped last: the host is restored when nothing needs its changes any more.
    host: HostChanges,
}

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
        let (generator, receiver) = (Node::tester("generator")?, Node::tester("receiver")?);
        let mut lab = EmbeddedLab { generator, receiver, lanes: Vec::new(), spec, host };
        for (number, setup) in setups.iter().enumerate() {
            let tester = [&lab.generator, &lab.receiver];
            let lane = Lane::build(&Wiring { spec: &lab.spec, tester, number, setup })?;
            lab.lanes.push(lane);
        }
        lab.change_host()?;
        for lane in &mut lab.lanes {
            lane.furnish()?;
        }
        Ok(lab)
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
                return Err(without_consent(&by_hand.join("; ")));
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
        self.lanes.iter().try_for_each(|lane| lane.receiver.thread_napi(cpus))
    }

    /// The namespaces by role, with the names that [`EmbeddedLab::persist`] gives them.
    pub fn names(&self, prefix: &str) -> BTreeMap<String, NamespaceRecord> {
        let record = |name, namespace: &Netns| NamespaceRecord { name, inode: namespace.inode() };
        self.named(prefix).map(|(role, name, namespace)| (role, record(name, namespace))).collect()
    }

    fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (String, String, &'a Netns)> {
        let tester = [("generator", &self.generator), ("receiver", &self.receiver)];
        let tester =
            tester.map(|(role, node)| (role.to_string(), format!("{prefix}-{role}"), &node.namespace));
        let duts = self.lanes.iter().filter_map(|lane| Some((&lane.setup.name, lane.dut.as_ref()?)));
        let duts = duts.enumerate().flat_map(move |(n, (setup, dut))| {
            dut.nodes.iter().map(|node| &**node).enumerate().map(
                move |(part, Node { role, namespace, .. })| match part {
                    0 => (format!("dut {n} ({setup})"), format!("{prefix}-dut{n}"), namespace),
                    _ => (format!("dut {n}, {role} ({setup})"), format!("{prefix}-dut{n}-{part}"), namespace),
                },
            )
        });
        tester.into_iter().chain(duts)
    }

    /// Gives the namespaces names, so that they outlive the process and `ip netns exec` reaches them.
    ///
    /// # Errors
    /// A name is taken, or /run/netns cannot be written.
    pub fn persist(&self, prefix: &str) -> Result<(), Error> {
        for lane in &self.lanes {
            lane.dut.as_ref().map_or(Ok(()), |dut| dut.outlive())?;
            // Receivers other than XDP programs (tcpdump, sockets) need the NAPI that such a program brings along.
            lane.receiver.enable_napi()?;
        }
        self.named(prefix).try_for_each(|(_, name, namespace)| namespace.persist(&name))
    }
}

fn without_consent(by_hand: &str) -> Error {
    Error::Refused(format!(
        "this lab needs other settings of the whole host, and linerate changes nothing outside its namespaces without consent. By hand: {by_hand}"
    ))
}

/// A module must be there; loading it changes the host.
fn need_module(host: &mut HostChanges, name: &str, consent: Consent) -> Result<(), Error> {
    match (support::module(name), consent) {
        (Ok(support::Module::Present), _) => Ok(()),
        (Ok(support::Module::Loadable), Consent::Allowed) => host.load_module(name),
        (Ok(support::Module::Loadable), Consent::Refused) => {
            Err(without_consent(&format!("modprobe {name}")))
        }
        (Err(reason), _) => Err(Error::Refused(reason)),
    }
}
