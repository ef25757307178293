//! From a checked tree to types.

use super::{Boot, Host, Interface, Lab, OperatingSystem, Role};
use crate::names::Named;
use crate::value::{Entry, Tree, Value};

/// The lab of a tree that has no faults.
pub(super) fn lab(tree: &Tree) -> Lab {
    let hosts = tree.table("hosts").map(|t| t.entries.as_slice()).unwrap_or_default();
    Lab {
        title: tree.text("title").map(String::from),
        isolated: tree.flag("isolated") == Some(true),
        link_speed: speed(tree, "link-speed"),
        hosts: hosts.iter().filter_map(host).collect(),
        remarks: Vec::new(),
    }
}

fn host(entry: &Entry) -> Option<Host> {
    let Value::Table(tree) = &entry.node.value else { return None };
    let named = |key: &str| tree.text(key).map(String::from);
    let end = |key: &str| tree.table(key).map(interface);
    let system: Option<OperatingSystem> = tree.choice("system");
    Some(Host {
        name: entry.key.clone(),
        roles: roles(tree),
        ssh: tree.text("ssh")?.parse().ok()?,
        system,
        tool: tree.choice("tool"),
        sudo: tree.flag("sudo") == Some(true),
        send: tree.tables("send").map(interface).collect(),
        receive: end("receive"),
        inside: end("in"),
        outside: end("out"),
        management: end("management"),
        boot: tree.table("boot").map(boot).unwrap_or_default(),
        power_cycle: tree.texts("power-cycle"),
        console: tree.texts("console"),
        config_save: named("config-save")
            .or_else(|| system.and_then(OperatingSystem::config_save).map(String::from)),
    })
}

/// What a host's tree says it is for, each once.
pub(super) fn roles(host: &Tree) -> Vec<Role> {
    let named = host.choices("role");
    Role::all().filter(|role| named.contains(role)).collect()
}

/// An interface of a tree.
pub(super) fn interface(tree: &Tree) -> Interface {
    Interface {
        name: tree.text("name").map(String::from),
        mac: tree.text("mac").and_then(|mac| mac.parse().ok()),
        addresses: tree.texts("addresses").iter().filter_map(|a| a.parse().ok()).collect(),
        networks: tree.texts("networks"),
        next_hops: tree.texts("next-hops").iter().filter_map(|a| a.parse().ok()).collect(),
        speed: speed(tree, "speed"),
        netmap: tree.flag("netmap"),
        threads: tree.number_u32("threads"),
    }
}

fn boot(tree: &Tree) -> Boot {
    Boot {
        timeout_ns: tree.number("timeout").unwrap_or(Boot::default().timeout_ns),
        reaches: tree.texts("reaches").iter().filter_map(|a| a.parse().ok()).collect(),
        from: tree.text("from").map(String::from),
    }
}

fn speed(tree: &Tree, key: &str) -> Option<f64> {
    match tree.get(key)?.value {
        Value::Speed(speed) => Some(speed),
        _ => None,
    }
}
