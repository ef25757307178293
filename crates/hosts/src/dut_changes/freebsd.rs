//! FreeBSD, and systems made of it.

use super::shared::writable;
use super::{Family, Form, Input, List, Modules, Program};
use linerate_plan::rules::RuleSet;
use linerate_plan::rules::own::RuleFile;
use linerate_plan::settings::{Feature, Interface, Settings};

/// The file that the loader reads after its own configuration (loader.conf(5)).
const LOADER: &str = "/boot/loader.conf.local";
/// Adds lines to a file.
const APPEND: &str = concat!(writable!(), r#"cat >>"$1""#);
/// Prints whether a module's file is loaded.
const MODULE_READ: &str = r#"kldstat -q -n "$1" && echo there || echo absent"#;

pub(super) const FAMILY: Family = Family {
    modules: Ok(Modules { look: MODULE_READ, load: ["kldload", "-n"], unload: "kldunload" }),
    no_boot_settings: None,
    no_cpus: "on a real host the driver's queues decide: boot settings such as hw.igb.num_queues",
    interface,
    bridge: |list| list.bsd_bridge("addm", "deletem"),
    route: super::tables::bsd_route,
    neighbour: super::tables::bsd_neighbour,
    firewall,
};

fn firewall(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    if let Some(file) = file
        && super::freebsd_rules::firewall(list, file.firewall, file.translates())
    {
        super::own_rules::load(list, file);
    }
    if let Some(set) = rules {
        super::freebsd_rules::rule_set(list, set);
    }
}

/// The loader's settings, for the next boot.
pub fn boot(list: &mut List<'_>, settings: &Settings, rules: Option<&RuleSet>) {
    let own = settings.boot.iter().map(|(name, value)| (list.target.fill(name), list.target.fill(value)));
    let all: Vec<(String, String)> =
        own.chain(rules.map(RuleSet::loader_settings).unwrap_or_default()).collect();
    if all.is_empty() {
        return;
    }
    for (name, value) in &all {
        if name.contains(['"', '\n', '=']) || value.contains(['"', '\n']) {
            list.refuse(format!("boot setting {name}"), "loader.conf has no way to write this name or value");
        }
    }
    let lines: String = all.iter().map(|(name, value)| format!("{name}=\"{value}\"\n")).collect();
    let at = list.steps.steps.len();
    list.file(LOADER, lines.clone());
    if let Some(step) = list.steps.steps.get_mut(at) {
        step.what = format!("boot settings in {LOADER}");
        step.apply = Program::script(APPEND, [LOADER]).reading(Input::Text(lines));
    }
    list.steps.reboot = true;
}

/// TCP segmentation offload by IP version, as ifconfig shows it and is given it.
const TSO: [(&[&str], &str); 2] = [(&["TSO4"], "tso4"), (&["TSO6"], "tso6")];

fn interface(list: &mut List<'_>, name: &str, wanted: &Interface) {
    if let Some(mtu) = wanted.mtu {
        list.mtu(name, mtu);
    }
    if wanted.features.contains_key(&Feature::TxChecksum) {
        // The kernel turns TSO off with txcsum, and does not turn it on again with it. The first value read is the last one
        // restored.
        for (shown, given) in TSO {
            let (read, form) = (Program::new(["ifconfig", name]), Form::Flag { shown, given });
            let back = Program::new(["ifconfig", name, super::WAS]);
            list.change(format!("{given} of {name} beside txcsum"), read, form, Program::new(["true"]), back);
        }
    }
    for (feature, on) in &wanted.features {
        let flags: &[(&'static [&'static str], &'static str)] = match feature {
            Feature::Tso => &TSO,
            Feature::Lro => &[(&["LRO"], "lro")],
            Feature::RxChecksum => &[(&["RXCSUM"], "rxcsum"), (&["RXCSUM_IPV6"], "rxcsum6")],
            Feature::TxChecksum => &[(&["TXCSUM"], "txcsum"), (&["TXCSUM_IPV6"], "txcsum6")],
            Feature::VlanOffload => &[(&["VLAN_HWTAGGING"], "vlanhwtag")],
            Feature::VlanTso => &[(&["VLAN_HWTSO"], "vlanhwtso")],
            other => {
                list.refuse(
                    format!("{} of {name}", other.key()),
                    "FreeBSD's drivers have sysctls for it, or nothing",
                );
                &[]
            }
        };
        for (shown, given) in flags {
            list.flag(name, shown, given, *on);
        }
    }
    list.refuse_queues(name, wanted);
}
