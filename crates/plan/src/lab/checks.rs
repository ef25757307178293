//! Faults that remain in a lab of correct form: missing roles, cables that lead nowhere, duplicate addresses.

mod cabling;
mod hosts;

use super::{Role, lower};
use crate::diagnostic::{Diagnostic, Problems, Span};
use crate::names::Named;
use crate::value::{Entry, Tree};

/// A host's tree with its place.
pub(super) struct HostTree<'a> {
    pub(super) name: &'a str,
    pub(super) span: Span,
    pub(super) tree: &'a Tree,
    pub(super) roles: Vec<Role>,
}

impl<'a> HostTree<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        let tree = entry.node.table()?;
        Some(HostTree { name: &entry.key, span: entry.key_span, tree, roles: lower::roles(tree) })
    }

    pub(super) fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Its interfaces: the key that they stand under, and each one's place and tree.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&'static str, Span, &'a Tree)> + use<'a> {
        let tree = self.tree;
        ["send", "receive", "in", "out", "management"].into_iter().flat_map(move |key| {
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
    let Some(named) = tree.entry("hosts") else { return };
    let Some(table) = named.node.table() else { return };
    let all: Vec<HostTree<'_>> = table.entries.iter().filter_map(HostTree::of).collect();
    for host in &all {
        hosts::check(host, &all, problems);
    }
    roles(&all, named.key_span, problems);
    cabling::check(&all, problems);
    if let Some(node) = tree.get("isolated").filter(|node| node.scalar() == Some(&false.into())) {
        let help = "say true once nothing but the lab's own hosts can receive what is sent in it (RFC 6815)";
        problems.push(Diagnostic::warning(node.span, "nothing will be sent in this lab").remedy(help));
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
            let help = format!("give a host role = \"{}\"; one host may have several roles", role.key());
            problems.fault(span, format!("this lab has no {}", role.key()), help);
        }
        for host in having.iter().skip(1).filter(|_| role != Role::Generator) {
            let message = format!("{} is a {} already: a lab has one", having[0].name, role.key());
            let node = host.tree.get("role").map_or(host.span, |n| n.span);
            problems.fault(node, message, "write a lab file for each");
        }
    }
    let dut = all.iter().any(|host| host.is(Role::Dut));
    for host in all.iter().filter(|host| host.is(Role::Reference) && !dut) {
        let help = "give a host role = \"dut\", or leave the reference out";
        problems.fault(host.span, "a reference is the far end of a DUT's tunnels", help);
    }
}
