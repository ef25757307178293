//! OpenBSD: pf is part of the system, and nearly always on.

use super::{Family, Form, Input, List, Program, Undo, WAS};
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::{Firewall, RuleSet};
use linerate_plan::settings::{Feature, Interface};

/// Prints whether pf is on, then its rules.
const PF_READ: &str = r#"pfctl -s info 2>/dev/null | grep -q '^Status: Enabled' && echo on || echo off
pfctl -s rules 2>/dev/null; exit 0"#;
/// pf on.
const PF_ON: &str = r#"pfctl -s info | grep -q '^Status: Enabled' || pfctl -q -e"#;
/// The rules that [`PF_READ`] printed, and on or off as it was. States are left alone: linerate's own connection has one. The host's
/// file comes first, because tables, queues and options are not printed with the rules.
const PF_BACK: &str = r#"IFS= read -r was
rules=$(cat)
if [ -z "$rules" ]; then
	pfctl -q -F rules
else
	[ ! -e /etc/pf.conf ] || pfctl -q -f /etc/pf.conf
	[ "$(pfctl -s rules)" = "$rules" ] || printf '%s\n' "$rules" | pfctl -q -f - || exit 1
fi
is=$(pfctl -s info 2>/dev/null | grep -q '^Status: Enabled' && echo on || echo off)
[ "$is" = "$was" ] || if [ "$was" = on ]; then pfctl -q -e; else pfctl -q -d; fi"#;
/// pf off.
const PF_OFF: &str = r#"pfctl -s info | grep -q '^Status: Disabled' || pfctl -q -d"#;

pub(super) const FAMILY: Family = Family {
    modules: Err("OpenBSD loads no modules"),
    no_boot_settings: Some("no file sets them for OpenBSD's kernel: see config(8)"),
    no_cpus: "OpenBSD has no setting for it",
    interface,
    bridge: |list| list.bsd_bridge("add", "del"),
    route: super::tables::bsd_route,
    neighbour: super::tables::bsd_neighbour,
    firewall: pf,
};

fn interface(list: &mut List<'_>, name: &str, wanted: &Interface) {
    if let Some(mtu) = wanted.mtu {
        list.mtu(name, mtu);
    }
    for (feature, on) in &wanted.features {
        match feature {
            Feature::Lro => list.flag(name, &["LRO"], "tcplro", *on),
            other => list.refuse(format!("{} of {name}", other.key()), "OpenBSD has no switch for it"),
        }
    }
    list.refuse_queues(name, wanted);
}

/// pf with the variant's rules; without rules it is off: the variant is a router without a firewall.
fn pf(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    let on = if rules.is_some() || file.is_some() { PF_ON } else { PF_OFF };
    let script = |script| Program::script(script, [""; 0]);
    list.change("pf", script(PF_READ), Form::Whole, script(on), script(PF_BACK).reading(Input::Was));
    if let Some(file) = file {
        super::shared::load_rule_file(list, file);
    }
    let Some(set) = rules else { return };
    if set.firewall != Firewall::OpenbsdPf {
        return list.refuse(format!("rules of {}", set.firewall), "OpenBSD has pf");
    }
    for load in set.loads() {
        let apply = Program::loading(set, &load);
        list.add("rule set by pfctl", None, apply, Undo::Stays);
    }
}

/// Prints whether there is such an interface.
const INTERFACE_READ: &str = r#"ifconfig "$1" >/dev/null 2>&1 && echo there || echo absent"#;
/// Takes one away that was absent: making it fails where it is the host's own, which stays.
const INTERFACE_BACK: &str = r#"[ "$1" != absent ] || ifconfig "$2" destroy"#;

impl List<'_> {
    /// The MTU, by ifconfig.
    pub fn mtu(&mut self, name: &str, mtu: u32) {
        let set = |to: &str| Program::new(["ifconfig", name, "mtu", to]);
        let read = Program::new(["ifconfig", name]);
        self.value(format!("MTU of {name}"), read, Form::After("mtu"), set, &mtu.to_string());
    }

    /// A feature, by ifconfig: shown under one of these names, set by that.
    pub fn flag(&mut self, name: &str, shown: &'static [&'static str], given: &'static str, on: bool) {
        let set = |to: &str| Program::new(["ifconfig", name, to]);
        let (read, form) = (Program::new(["ifconfig", name]), Form::Flag { shown, given });
        let wanted = if on { given.to_string() } else { format!("-{given}") };
        self.value(format!("{given} of {name}"), read, form, set, &wanted);
    }

    /// Refuses settings that no system of this family has for an interface.
    pub fn refuse_queues(&mut self, name: &str, wanted: &Interface) {
        let set = [
            (wanted.queues.is_some(), "queues"),
            (wanted.rx_ring.is_some() || wanted.tx_ring.is_some(), "rings"),
            (wanted.rx_wait_ns.is_some() || wanted.rx_wait_frames.is_some(), "interrupt moderation"),
            (wanted.rps.is_some() || wanted.rfs.is_some() || wanted.xps.is_some(), "packet steering"),
            (wanted.irq.is_some(), "interrupts"),
            (!wanted.private_flags.is_empty(), "private flags"),
        ];
        for (_, what) in set.into_iter().filter(|(is_set, _)| *is_set) {
            self.refuse(format!("{what} of {name}"), "its driver's own sysctls and boot settings have these");
        }
    }

    /// A bridge of both interfaces.
    pub fn bsd_bridge(&mut self, add: &'static str, delete: &'static str) {
        let bridge = "bridge0";
        let (read, make) =
            (Program::script(INTERFACE_READ, [bridge]), Program::new(["ifconfig", bridge, "create"]));
        self.change(bridge, read, Form::Trimmed, make, Program::script(INTERFACE_BACK, [WAS, bridge]));
        let port =
            |name: &str, to: bool| Program::new(["ifconfig", bridge, if to { add } else { delete }, name]);
        self.bridged(bridge, port, |state| Program::new(["ifconfig", bridge, state]));
    }
}
