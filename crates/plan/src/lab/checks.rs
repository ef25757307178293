//! Faults that remain in a lab of correct form: missing roles, cables that lead nowhere, duplicate addresses.

use super::{HostAddress, Interface, OperatingSystem, Role, is_black_box, roles_of, typed};
use crate::backend::Backend;
use crate::diagnostic::{Diagnostic, Problems, Span, listed, suggestion};
use crate::names::Named;
use crate::value::{Entry, Tree};
use std::collections::HashMap;
use std::net::IpAddr;

/// A host's tree with its place.
struct HostTree<'a> {
    name: &'a str,
    span: Span,
    tree: &'a Tree,
    roles: Vec<Role>,
}

impl<'a> HostTree<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        let tree = entry.node.table()?;
        Some(HostTree {
            name: &entry.key,
            span: entry.key_span,
            tree,
            roles: roles_of(tree),
        })
    }

    fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Interfaces of the host: the key that they stand under, and each one's place and tree.
    fn interfaces(&self) -> impl Iterator<Item = (&'static str, Span, &'a Tree)> + use<'a> {
        let tree = self.tree;
        ["send", "receive", "in", "out", "management"]
            .into_iter()
            .flat_map(move |key| {
                let node = tree.get(key);
                let several = tree.list(key).iter();
                node.into_iter().chain(several).filter_map(move |node| {
                    let tree = node.table()?;
                    let key_span = tree.entries.first().map(|e| e.key_span);
                    Some((key, key_span.unwrap_or(node.span), tree))
                })
            })
    }
}

/// Finds faults, and facts worth a remark.
pub(super) fn check(tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let Some(named) = tree.entry("hosts") else {
        return;
    };
    let Some(table) = named.node.table() else {
        return;
    };
    let all: Vec<HostTree<'_>> = table.entries.iter().filter_map(HostTree::of).collect();
    for host in &all {
        one_host(host, &all, problems);
    }
    roles(&all, named.key_span, problems);
    cabling(&all, problems);
    if let Some(node) = tree
        .get("isolated")
        .filter(|node| node.scalar() == Some(&false.into()))
    {
        let help = "set it to true when only hosts of the lab can receive what is sent (RFC 6815)";
        problems
            .push(Diagnostic::warning(node.span, "nothing will be sent in this lab").remedy(help));
    }
}

/// A lab has generators, a receiver, and at most one of each of the others.
fn roles(all: &[HostTree<'_>], span: Span, problems: &mut Vec<Diagnostic>) {
    for role in Role::all() {
        let having: Vec<&HostTree<'_>> = all.iter().filter(|host| host.is(role)).collect();
        let needed = matches!(role, Role::Generator | Role::Receiver);
        // A role that could not be read may be this one.
        let unread = all.iter().any(|host| host.roles.is_empty());
        if having.is_empty() && needed && !unread {
            let help = format!(
                "give a host role = \"{}\"; one host may have several roles",
                role.key()
            );
            problems.fault(span, format!("this lab has no {}", role.key()), help);
        }
        for host in having.iter().skip(1).filter(|_| role != Role::Generator) {
            let message = format!(
                "{} is a {} already: a lab has one",
                having[0].name,
                role.key()
            );
            let node = host.tree.get("role").map_or(host.span, |n| n.span);
            problems.fault(node, message, "write a lab file for each");
        }
    }
    let dut = all.iter().any(|host| host.is(Role::Dut));
    for host in all.iter().filter(|host| host.is(Role::Reference) && !dut) {
        let help = "give a host role = \"dut\", or leave the reference out";
        problems.fault(
            host.span,
            "a reference is the far end of a DUT's tunnels",
            help,
        );
    }
}

/// The interfaces, each with the roles that have one of it.
const INTERFACES: [(&str, &[Role]); 4] = [
    ("send", &[Role::Generator]),
    ("receive", &[Role::Receiver]),
    ("in", &[Role::Dut, Role::Reference]),
    ("out", &[Role::Dut, Role::Reference]),
];

fn one_host(host: &HostTree<'_>, all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    black_box(host, all, problems);
    reach(host, problems);
    if !host.roles.is_empty() {
        interfaces(host, problems);
        tool(host, problems);
        together(host, problems);
    }
    names(host, problems);
    boot(host, all, problems);
    let system = host.tree.get("system").filter(|_| host.is(Role::Dut));
    if let Some(node) = system.filter(|_| host.tree.read("system") == Some(OperatingSystem::NetBsd))
    {
        let help = "it is measured as it is; variants that set something are not possible on it";
        problems
            .push(Diagnostic::warning(node.span, "plans have no settings for NetBSD").remedy(help));
    }
}

/// Keys that are for a host that somebody can log in to.
const OF_LOGINS: [&str; 10] = [
    "ssh",
    "namespace",
    "system",
    "tool",
    "sudo",
    "boot",
    "power-cycle",
    "console",
    "silence",
    "config-save",
];

/// A device that nobody can log in to: frames are addressed to it, and nothing else is done with it.
fn black_box(host: &HostTree<'_>, all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let Some(entry) = host
        .tree
        .entry("black-box")
        .filter(|_| is_black_box(host.tree))
    else {
        for key in ["software", "configuration"] {
            if let Some(entry) = host.tree.entry(key) {
                let message = format!(
                    "{} is no black box: linerate asks it for its {key}",
                    host.name
                );
                problems.fault(entry.key_span, message, "leave it out");
            }
        }
        return;
    };
    if host.roles != [Role::Dut] {
        let help = "leave it out: linerate runs on the hosts that send and count";
        problems.fault(entry.key_span, "only a dut can be a black box", help);
    }
    for entry in OF_LOGINS.iter().filter_map(|key| host.tree.entry(key)) {
        let message = format!("{} is a black box, which has no {}", host.name, entry.key);
        problems.fault(
            entry.key_span,
            message,
            "leave it out, or leave black-box out",
        );
    }
    for reference in all.iter().filter(|host| host.is(Role::Reference)) {
        let help = "leave it out: tunnels are set up on the DUT, and nobody can log in to it";
        problems.fault(
            reference.span,
            "a black box has no far end of tunnels",
            help,
        );
    }
    if let Some((_, span, tree)) = host
        .interfaces()
        .find(|(key, _, tree)| *key == "in" && mac(tree).is_none())
    {
        let node = tree.get("mac").map_or(span, |node| node.span);
        let help =
            "write mac = \"...\": the generator shows it with `ip neigh` after a ping of the DUT";
        problems.fault(
            node,
            format!(
                "nobody can ask {} for the Ethernet address of [in]",
                host.name
            ),
            help,
        );
    }
}

/// Exactly one way leads to a host.
fn reach(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    if is_black_box(host.tree) {
        return;
    }
    match (host.tree.entry("ssh"), host.tree.entry("namespace")) {
        (None, None) => {
            let help = match host.is(Role::Dut) {
                true => {
                    "add ssh = \"user@host\", namespace = \"NAME\" for a namespace of this machine, or black-box = true if nobody can log in"
                }
                false => {
                    "add ssh = \"user@host\", or namespace = \"NAME\" for a namespace of this machine"
                }
            };
            problems.fault(
                host.span,
                format!("nothing says how to reach {}", host.name),
                help,
            );
        }
        (Some(_), Some(entry)) => {
            let message = format!("{} has ssh and namespace", host.name);
            problems.fault(entry.key_span, message, "leave one of them out");
        }
        _ => {}
    }
    for key in ["power-cycle", "console", "sudo"] {
        if let Some(entry) = host
            .tree
            .entry(key)
            .filter(|_| host.tree.entry("namespace").is_some())
        {
            let message = format!("a namespace has no {key}");
            problems.fault(entry.key_span, message, "leave it out");
        }
    }
}

fn interfaces(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    for (key, roles) in INTERFACES {
        let role = roles.iter().find(|role| host.is(**role));
        match (role, host.tree.entry(key)) {
            (Some(role), None) => {
                let message = format!("{} is a {} without [{key}]", host.name, role.key());
                let help = format!("add [hosts.{}.{key}] with name = \"...\"", host.name);
                problems.fault(host.span, message, help);
            }
            (None, Some(entry)) => {
                let names: Vec<&str> = roles.iter().map(|r| r.key()).collect();
                let message = format!(
                    "'{key}' is an interface of a {}, and {} does not have that role",
                    listed(&names, "or"),
                    host.name
                );
                let help = format!("leave it out, or add \"{}\" to its role", names[0]);
                problems.fault(entry.key_span, message, help);
            }
            _ => {}
        }
    }
    for (key, _, tree) in host.interfaces() {
        let only: &[(&str, &[&str])] = &[
            ("networks", &["in", "out"]),
            ("next-hops", &["in", "out"]),
            ("threads", &["send"]),
        ];
        for (setting, belongs) in only {
            if let Some(entry) = tree.entry(setting).filter(|_| !belongs.contains(&key)) {
                let message = format!("[{key}] has no {setting}");
                let help = format!(
                    "it belongs to {}; leave it out here",
                    listed(belongs, "and")
                );
                problems.fault(entry.key_span, message, help);
            }
        }
    }
}

/// Faults of hosts that are a DUT and a tester at once.
fn together(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let tests = host.is(Role::Generator) || host.is(Role::Receiver);
    let node = host.tree.get("role").map_or(host.span, |n| n.span);
    if host.is(Role::Dut) && (tests || host.is(Role::Reference)) {
        let help = "give the other roles to another host, or use the embedded lab: linerate bench";
        problems.fault(
            node,
            "a DUT is nothing else: it would be busy with both",
            help,
        );
    }
}

fn tool(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(entry) = host.tree.entry("tool") else {
        return;
    };
    if !host.is(Role::Generator) && !host.is(Role::Receiver) {
        let help = "leave it out: it is for generators and receivers";
        problems.fault(
            entry.key_span,
            format!("{} sends and counts nothing", host.name),
            help,
        );
    }
    let (tool, system) = (host.tree.text("tool"), host.tree.text("system"));
    let bsd = system.is_some_and(|s| !["linux", "vyos"].contains(&s));
    let backend = tool.and_then(|name| name.parse::<Backend>().ok());
    if let Some(backend) = backend.filter(|backend| bsd && backend.capabilities().linux) {
        let (name, system) = (&host.name, system.unwrap_or_default());
        let message = format!("{backend} runs on Linux, and {name} runs {system}");
        problems.fault(
            entry.node.span,
            message,
            "write \"pkt-gen\" or \"iperf3\", say",
        );
    }
    for (key, _, tree) in host
        .interfaces()
        .filter(|(key, ..)| ["send", "receive"].contains(key))
    {
        let node = tree
            .get("netmap")
            .filter(|n| n.scalar() == Some(&false.into()));
        if let Some(node) = node.filter(|_| backend == Some(Backend::PktGen)) {
            let help = "use another tool, or another interface";
            problems.fault(node.span, format!("pkt-gen needs netmap at [{key}]"), help);
        }
    }
}

/// An interface does one thing.
fn names(host: &HostTree<'_>, problems: &mut Vec<Diagnostic>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (key, _, tree) in host.interfaces() {
        let Some((node, name)) = tree.get("name").and_then(|node| Some((node, node.text()?)))
        else {
            continue;
        };
        if let Some((_, other)) = seen.iter().find(|(n, _)| *n == name) {
            let message = format!("{name} is the interface of [{other}] already");
            problems.fault(node.span, message, "name another: each does one thing");
        }
        seen.push((name, key));
    }
}

fn boot(host: &HostTree<'_>, all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let from = host.tree.table("boot").and_then(|boot| boot.get("from"));
    let names = || all.iter().map(|host| host.name);
    if let Some((node, name)) = from.and_then(|node| Some((node, node.text()?)))
        && !names().any(|n| n == name)
    {
        let shown: String = name.chars().take(60).collect();
        problems.fault(
            node.span,
            format!("there is no host '{shown}'"),
            suggestion(name, names()),
        );
    }
}

fn cabling(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    once(all, problems);
    let dut = all.iter().find(|host| host.is(Role::Dut));
    let reference = all.iter().find(|host| host.is(Role::Reference));
    if let Some(dut) = dut {
        cable(dut, "in", &with(all, Role::Generator, "send"), problems);
        let beyond = match reference {
            Some(_) => with(all, Role::Reference, "in"),
            None => with(all, Role::Receiver, "receive"),
        };
        cable(dut, "out", &beyond, problems);
    }
    if let Some(reference) = reference {
        cable(
            reference,
            "out",
            &with(all, Role::Receiver, "receive"),
            problems,
        );
    }
    next_hops(all, problems);
    ranges(all, problems);
}

/// The interfaces of a role, with their hosts' names.
fn with<'a>(all: &[HostTree<'a>], role: Role, key: &str) -> Vec<(&'a str, Interface)> {
    let having = all.iter().filter(|host| host.is(role));
    having
        .flat_map(|host| {
            host.interfaces()
                .filter(|(k, ..)| *k == key)
                .map(|(.., tree)| (host.name, interface(tree)))
        })
        .collect()
}

/// Ethernet and IP addresses belong to one interface each.
fn once(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, String> = HashMap::new();
    for host in all {
        for (key, _, tree) in host.interfaces() {
            let place = format!("{}.{key}", host.name);
            for (text, span) in addresses(tree) {
                let alone = text.split('/').next().unwrap_or_default().to_string();
                if let Some(other) = seen.insert(alone, place.clone()) {
                    let message = format!("{text} is the address of {other} already");
                    problems.fault(span, message, "each interface has addresses of its own");
                }
            }
            if let Some((node, mac)) = mac(tree) {
                let octets: [u8; 6] = mac.0;
                if mac.is_multicast() || octets == [0; 6] {
                    let help = "write the interface's own, as the host shows it";
                    problems.fault(
                        node,
                        format!("{mac} cannot be the Ethernet address of an interface"),
                        help,
                    );
                }
            }
        }
    }
}

fn mac(tree: &Tree) -> Option<(Span, linerate_wire::MacAddr)> {
    Some((tree.get("mac")?.span, tree.read("mac")?))
}

fn addresses(tree: &Tree) -> impl Iterator<Item = (&str, Span)> {
    let nodes = tree.list("addresses").iter().chain(tree.get("mac"));
    nodes.filter_map(|node| Some((node.text()?, node.span)))
}

fn interface(tree: &Tree) -> Interface {
    typed(tree).unwrap_or_default()
}

/// One cable: an end that neither has a name nor an address can only be found by asking for the route to the other end; and where both
/// ends have addresses of a family, one must be in the other's network.
fn cable(
    host: &HostTree<'_>,
    key: &'static str,
    peers: &[(&str, Interface)],
    problems: &mut Vec<Diagnostic>,
) {
    let Some((_, span, tree)) = host.interfaces().find(|(k, ..)| *k == key) else {
        return;
    };
    let own = interface(tree);
    let named = ["name", "mac", "addresses"]
        .iter()
        .any(|key| tree.get(key).is_some());
    if !named && peers.iter().all(|(_, peer)| peer.addresses.is_empty()) && !peers.is_empty() {
        let message = format!("nothing says which interface of {} [{key}] is", host.name);
        problems.fault(
            span,
            message,
            "add name = \"igb1\", its mac, or its addresses",
        );
    }
    for (other, peer) in peers {
        for is_v4 in [true, false] {
            let of_family = |addresses: &[HostAddress]| -> Vec<HostAddress> {
                addresses
                    .iter()
                    .copied()
                    .filter(|a| a.address.is_ipv4() == is_v4)
                    .collect()
            };
            let (ours, theirs) = (of_family(&own.addresses), of_family(&peer.addresses));
            let routed = own.next_hops.iter().any(|hop| hop.is_ipv4() == is_v4);
            if let Some(far) = unreachable(&ours, &theirs).filter(|_| !routed) {
                let message = format!(
                    "{far} of {other} is in no network of [{key}] of {}",
                    host.name
                );
                let node = tree.get("addresses").map_or(span, |n| n.span);
                let help =
                    "give both ends of the cable addresses of one network, or name next-hops";
                problems.fault(node, message, help);
            }
        }
    }
}

/// The first far address, if no near one reaches any of them.
fn unreachable(near: &[HostAddress], far: &[HostAddress]) -> Option<HostAddress> {
    let reached = |a: &HostAddress, b: &HostAddress| {
        let ways = [a.reaches(b.address), b.reaches(a.address)];
        ways.iter().all(Option::is_none) || ways.contains(&Some(true))
    };
    let any = near.iter().any(|a| far.iter().any(|b| reached(a, b)));
    if any || near.is_empty() {
        None
    } else {
        far.first().copied()
    }
}

/// A next hop is in a network of its interface, where these are known.
fn next_hops(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    for host in all {
        for (key, _, tree) in host.interfaces() {
            let own = interface(tree);
            for node in tree.list("next-hops") {
                let Some(text) = node.text() else { continue };
                let Ok(hop) = text.parse::<IpAddr>() else {
                    continue;
                };
                let of_family: Vec<_> = own
                    .addresses
                    .iter()
                    .filter(|a| a.address.is_ipv4() == hop.is_ipv4())
                    .collect();
                let known: Vec<bool> = of_family.iter().filter_map(|a| a.reaches(hop)).collect();
                if !known.is_empty() && known.len() == of_family.len() && !known.contains(&true) {
                    let message = format!("{hop} is in no network of [{key}] of {}", host.name);
                    problems.fault(
                        node.span,
                        message,
                        "name the neighbour that frames are handed to",
                    );
                }
            }
        }
    }
}

/// Finds addresses of frames outside the ranges for benchmarks, which belong to others.
fn ranges(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let aside = ["198.18.0.0/15", "2001:2::/48"].map(|text| text.parse::<HostAddress>());
    for host in all {
        for (.., tree) in host.interfaces() {
            for node in tree.list("networks") {
                let Some(text) = node.text() else { continue };
                let Ok(network) = text.parse::<HostAddress>() else {
                    continue;
                };
                let within = |range: &HostAddress| {
                    range.reaches(network.address) == Some(true) && network.length >= range.length
                };
                if !aside.iter().flatten().any(within) {
                    let help = "198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180) are set aside for benchmarks";
                    let message = format!(
                        "{text} may be somebody's: frames with its addresses must not get out"
                    );
                    problems.push(Diagnostic::warning(node.span, message).remedy(help));
                }
            }
        }
    }
}
