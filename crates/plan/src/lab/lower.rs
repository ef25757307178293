//! From a checked tree to types.

use super::{Host, Lab, OperatingSystem, Role};
use crate::names::Named;
use crate::value::{Entry, Tree};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// The lab of a tree that has no faults.
pub(super) fn lab(tree: &Tree) -> Lab {
    Lab {
        title: tree.read("title"),
        isolated: tree.read("isolated") == Some(true),
        link_speed: tree.read("link-speed"),
        hosts: tree.within("hosts").iter().filter_map(host).collect(),
        remarks: Vec::new(),
    }
}

fn host(entry: &Entry) -> Option<Host> {
    let tree = entry.node.table()?;
    let mut host: Host = typed(tree)?;
    host.name.clone_from(&entry.key);
    host.roles = roles(tree);
    let save = host.system.and_then(OperatingSystem::config_save);
    host.config_save = host.config_save.or_else(|| save.map(String::from));
    Some(host)
}

/// The roles of a host's tree, each once.
pub(super) fn roles(host: &Tree) -> Vec<Role> {
    let named: Vec<Role> = host.words("role");
    Role::all().filter(|role| named.contains(role)).collect()
}

/// A host or an interface of a tree; `None` where something in it is broken.
pub(super) fn typed<T: DeserializeOwned>(tree: &Tree) -> Option<T> {
    serde_json::from_value(Json::Object(tree.json())).ok()
}
