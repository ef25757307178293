//! Lab files: the hosts of a real lab, with their roles, addresses and cables.
//!
//! Lab files share the reader of plans: [`keys`] lists every key once, types are made of the tree, and [`checks`] finds
//! impossible labs. Nothing here reaches a host: later steps ask the hosts for facts that the file leaves out. docs/lab-file.md
//! has the format.

mod checks;
mod keys;
pub(crate) mod ssh;
#[cfg(test)]
mod tests;
pub(crate) mod types;

use crate::backend::Backend;
use crate::names::Named;
use crate::value::{Entry, Tree};
use crate::{Diagnostic, Source, reader, schema as plan_schema};
use linerate_wire::Family;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
pub use ssh::{Reach, Ssh};
use std::net::IpAddr;
pub use types::{Boot, Host, HostAddress, Interface, OperatingSystem, Role};
pub use types::{End, is_interface};

/// Bytes of a lab file at most.
pub const MOST_BYTES: usize = crate::MOST_BYTES;

/// A lab file to begin with, that explains itself.
pub const EXAMPLE: &str = include_str!("lab/example.toml");

/// A lab file with a host for each of generator, DUT and receiver.
pub const EXAMPLE_THREE_HOSTS: &str = include_str!("lab/example-three-hosts.toml");

/// A lab file with network namespaces of this machine, and the commands that make them.
pub const EXAMPLE_NAMESPACES: &str = include_str!("lab/example-namespaces.toml");

/// A lab file whose DUT nobody can log in to.
pub const EXAMPLE_BLACK_BOX: &str = include_str!("lab/example-black-box.toml");

/// Default networks of the frames' addresses on the side of the generator: the lower half of the ranges that RFC 2544 (section
/// C.2.2) and RFC 5180 (section 8) set aside for benchmarks.
pub const SOURCE_NETWORKS: [&str; 2] = ["198.18.0.0/16", "2001:2::/49"];
/// The networks of the frames' addresses on the side of the receiver, where a lab names none: the upper half.
pub const DESTINATION_NETWORKS: [&str; 2] = ["198.19.0.0/16", "2001:2:0:8000::/49"];

/// A lab whose file has no faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Lab {
    pub title: Option<String>,
    /// Whether the lab file declares the lab isolated, as RFC 6815 demands. Otherwise nothing may be sent in it.
    pub isolated: bool,
    /// Speed in bit/s that is 100 % of line rate, unless an interface has its own.
    pub link_speed: Option<f64>,
    /// The hosts that are reached, in the order of the file.
    pub hosts: Vec<Host>,
    /// A device under test that nobody can log in to.
    pub black_box: Option<Host>,
    /// Remarks: facts that are no faults.
    pub remarks: Vec<Diagnostic>,
}

impl Lab {
    /// Reads a lab file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn read(bytes: &[u8]) -> Result<Lab, Vec<Diagnostic>> {
        let source = Source::read(bytes, "a lab file", "name the hosts, and nothing more")?;
        let is_plan = "this is a plan, and no lab file";
        let help = "`linerate plan check` checks plans";
        let is_for = source.is_for(["hosts", "variants"], is_plan, help);
        is_for.map_err(|fault| vec![fault])?;
        let lines = source.lines();
        let (tree, mut problems) = reader::read(&source, &keys::LAB);
        if tree.entries.is_empty() && !problems.is_empty() {
            return Err(lines.locate_all(problems));
        }
        checks::check(&tree, &mut problems);
        if problems.iter().any(Diagnostic::is_fault) {
            problems.retain(Diagnostic::is_fault);
            return Err(lines.locate_all(problems));
        }
        let mut lab = lab(&tree);
        lab.remarks = lines.locate_all(problems);
        Ok(lab)
    }

    /// The device under test that is asked and set up; `None` where it is a black box, or where generator and receiver are connected
    /// to each other.
    pub fn dut(&self) -> Option<&Host> {
        self.having(Role::Dut).next()
    }

    /// Whether all hosts that are reached are network namespaces of this machine.
    pub fn is_local(&self) -> bool {
        self.hosts
            .iter()
            .all(|host| matches!(host.reach, Reach::Namespace(_)))
    }

    /// The device that frames pass, whether anybody can log in to it or not.
    pub fn device(&self) -> Option<&Host> {
        self.dut().or(self.black_box.as_ref())
    }

    /// The generators, at least one.
    pub fn generators(&self) -> impl Iterator<Item = &Host> {
        self.having(Role::Generator)
    }

    /// The receiver.
    pub fn receiver(&self) -> &Host {
        self.having(Role::Receiver)
            .next()
            .unwrap_or_else(|| unreachable!("a lab without one has a fault"))
    }

    /// Whether generators and receiver can all send and count at once. `tool`: that of a host, where it is known.
    ///
    /// # Errors
    /// A host whose tool cannot, and what to do.
    pub fn both_ways(&self, tool: impl Fn(&Host) -> Option<Backend>) -> Result<(), String> {
        for host in self.generators().chain([self.receiver()]) {
            let Some(tool) = tool(host) else { continue };
            let why = match tool {
                Backend::AfXdp => {
                    "a queue has only one such socket, which cannot both send and receive at one interface"
                }
                tool if !tool.is_own() => "it cannot send and count at once",
                _ => continue,
            };
            return Err(format!(
                "direction = \"both\" cannot be measured with {tool} on {}: {why}; use tool = \"linerate\", or direction = \"forward\"",
                host.name
            ));
        }
        Ok(())
    }

    /// The far end of the DUT's tunnels.
    pub fn reference(&self) -> Option<&Host> {
        self.having(Role::Reference).next()
    }

    fn having(&self, role: Role) -> impl Iterator<Item = &Host> {
        self.hosts
            .iter()
            .filter(move |host| host.roles.contains(&role))
    }

    /// The names of the DUT's interfaces, which a plan calls `{in}` and `{out}`. `None` where the file leaves one to be found out.
    pub fn placeholders(&self) -> Option<(&str, &str)> {
        let dut = self.dut()?;
        Some((
            dut.inside.as_ref()?.name.as_deref()?,
            dut.outside.as_ref()?.name.as_deref()?,
        ))
    }

    /// The networks of the frames' addresses on one side of the DUT.
    pub fn networks(&self, end: End) -> Vec<&str> {
        let interface = self.device().and_then(|dut| dut.end(end));
        let said = interface.map(|i| i.networks.as_slice()).unwrap_or_default();
        let default = match end {
            End::In => SOURCE_NETWORKS,
            End::Out => DESTINATION_NETWORKS,
        };
        if said.is_empty() {
            default.to_vec()
        } else {
            said.iter().map(String::as_str).collect()
        }
    }

    /// Next hop of the DUT for the networks on one of its sides: the one that its interface names, or else the address at the
    /// other end of the cable. `None` if the file has neither.
    pub fn next_hop(&self, end: End, family: Family) -> Option<IpAddr> {
        let is_it = |address: &IpAddr| address.is_ipv4() == (family == Family::V4);
        let said = self.dut()?.end(end)?.next_hops.iter().copied().find(is_it);
        said.or_else(|| {
            let peers = self.peers(end);
            peers
                .iter()
                .flat_map(|peer| &peer.addresses)
                .map(|a| a.address)
                .find(is_it)
        })
    }

    /// The interfaces at the other end of the cable from one of the DUT's.
    pub fn peers(&self, end: End) -> Vec<&Interface> {
        match (end, self.reference()) {
            (End::In, _) => self.generators().flat_map(|host| &host.send).collect(),
            (End::Out, Some(reference)) => reference.inside.iter().collect(),
            (End::Out, None) => self.receiver().receive.iter().collect(),
        }
    }
}

/// The lab of a tree that has no faults.
fn lab(tree: &Tree) -> Lab {
    let is_black_box = |entry: &&Entry| entry.node.table().is_some_and(is_black_box);
    let (black_boxes, hosts): (Vec<&Entry>, Vec<&Entry>) =
        tree.within("hosts").iter().partition(is_black_box);
    Lab {
        title: tree.read("title"),
        isolated: tree.read("isolated") == Some(true),
        link_speed: tree.read("link-speed"),
        hosts: hosts.into_iter().filter_map(host).collect(),
        black_box: black_boxes.into_iter().find_map(host),
        remarks: Vec::new(),
    }
}

fn host(entry: &Entry) -> Option<Host> {
    let tree = entry.node.table()?;
    let mut host: Host = typed(tree)?;
    host.name.clone_from(&entry.key);
    host.roles = roles_of(tree);
    host.reach = match (tree.text("namespace"), tree.text("ssh")) {
        (Some(name), _) => Reach::Namespace(name.into()),
        (None, Some(ssh)) => Reach::Ssh(ssh.parse().ok()?),
        (None, None) => Reach::default(),
    };
    let save = host.system.and_then(OperatingSystem::config_save);
    host.config_save = host.config_save.or_else(|| save.map(String::from));
    Some(host)
}

/// Whether nobody can log in to the host of this tree.
fn is_black_box(host: &Tree) -> bool {
    host.read("black-box") == Some(true)
}

/// The roles of a host's tree, each once.
fn roles_of(host: &Tree) -> Vec<Role> {
    let named: Vec<Role> = host.words("role");
    Role::all().filter(|role| named.contains(role)).collect()
}

/// A host or an interface of a tree; `None` where something in it is broken.
fn typed<T: DeserializeOwned>(tree: &Tree) -> Option<T> {
    serde_json::from_value(Json::Object(tree.json())).ok()
}

/// The JSON Schema of lab files, for editors.
pub fn schema() -> serde_json::Value {
    plan_schema::of(
        &keys::LAB,
        "A lab of linerate",
        "The hosts of a lab: what each is for, how it is reached, and how it is cabled.",
    )
}
