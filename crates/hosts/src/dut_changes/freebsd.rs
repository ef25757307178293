//! FreeBSD, and what is made of it.

use super::shared::writable;
use super::{Form, Input, List, Program, Undo};
use linerate_plan::rules::RuleSet;
use linerate_plan::settings::{Dut, End, Feature, Interface, Settings};

/// What the loader reads after its own configuration (loader.conf(5)).
const LOADER: &str = "/boot/loader.conf.local";
/// Adds lines to a file.
const APPEND: &str = concat!(writable!(), r#"cat >>"$1""#);
/// Prints whether a module's file is loaded.
const MODULE_READ: &str = r#"kldstat -q -n "$1" && echo there || echo absent"#;

/// All that a variant sets.
pub fn settings(list: &mut List<'_>, settings: &Settings, rules: Option<&RuleSet>) {
    list.modules(settings, MODULE_READ, ["kldload", "-n"], "kldunload");
    if settings.cpus.is_some() {
        list.refuse(
            "cpus",
            "on a real host the driver's queues decide: boot settings such as hw.igb.num_queues",
        );
    }
    list.sysctls(settings);
    for end in [End::In, End::Out] {
        let name = list.target.end(end).name.clone();
        interface(list, &name, if end == End::In { &settings.inside } else { &settings.outside });
    }
    match settings.dut {
        Dut::Forwarding | Dut::TesterBaseline => {}
        Dut::Bridge => list.bsd_bridge("addm", "deletem"),
        other => list.refuse(format!("dut {other}"), super::bsd::NO_KIND),
    }
    list.bsd_tables(settings);
    if let Some(file) = &settings.rule_file
        && super::freebsd_rules::firewall(list, file.firewall, file.translates())
    {
        super::own_rules::load(list, file);
    }
    if let Some(set) = rules {
        super::freebsd_rules::rule_set(list, set);
    }
    list.commands(settings);
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
        // The kernel takes TSO away with txcsum, and does not bring it back with it. What is read first is put back last.
        for (shown, given) in TSO {
            let read = List::read(Program::new(["ifconfig", name]), Form::Flag { shown, given });
            let back = Program::new(["ifconfig", name, super::WAS]);
            list.add(
                format!("{given} of {name} beside txcsum"),
                read,
                Program::new(["true"]),
                Undo::Run(back),
            );
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
