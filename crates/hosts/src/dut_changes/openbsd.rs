//! OpenBSD: pf is part of the system, and nearly always on.

use super::{Family, Form, Input, List, Program, Undo};
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
        super::own_rules::load(list, file);
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
