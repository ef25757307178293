//! The BSDs. OpenBSD has pf as a part of it, and nearly always on; pfSense and OPNsense are made of FreeBSD.

use super::scripts::writable;
use super::{Family, Form, Input, List, Modules, Program, Step, WAS};
use linerate_measure::experiment::System;
use linerate_plan::offload::{OFFLOADS, Offload};
use linerate_plan::rules::own::RuleFile;
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::{CardSetting, CardValue, Interface, Settings};
use std::net::Ipv6Addr;

/// The file that the loader reads after its own configuration (loader.conf(5)).
const LOADER: &str = "/boot/loader.conf.local";
/// Adds lines to a file.
const APPEND: &str = concat!(writable!(), r#"cat >>"$1""#);
/// Prints whether a module's file is loaded.
const MODULE_READ: &str = r#"kldstat -q -n "$1" && echo there || echo absent"#;

pub(super) const FREEBSD: Family = Family {
    modules: Ok(Modules {
        look: MODULE_READ,
        load: ["kldload", "-n"],
        unload: "kldunload",
    }),
    no_boot_settings: None,
    no_cpus: "on a real host the driver's queues decide: boot settings such as hw.igb.num_queues",
    interface,
    bridge: |list| {
        list.module("if_bridge", MODULE);
        list.bsd_bridge("addm", "deletem");
    },
    route: super::tables::bsd_route,
    neighbour: super::tables::bsd_neighbour,
    firewall,
};

pub(super) const OPENBSD: Family = Family {
    modules: Err("OpenBSD loads no modules"),
    no_boot_settings: Some("no file sets them for OpenBSD's kernel: see config(8)"),
    no_cpus: "OpenBSD has no setting for it",
    interface,
    bridge: |list| list.bsd_bridge("add", "del"),
    route: super::tables::bsd_route,
    neighbour: super::tables::bsd_neighbour,
    firewall: openbsd_pf,
};

fn firewall(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    super::off::all_but(
        list,
        file.map(|file| file.firewall)
            .or(rules.map(|set| set.firewall)),
    );
    if let Some(file) = file
        && turn_on(list, file.firewall, file.translates())
    {
        super::rules::load_rule_file(list, file);
    }
    if let Some(set) = rules {
        rule_set(list, set);
    }
}

/// The loader's settings, for the next boot.
pub fn boot(list: &mut List<'_>, settings: &Settings, rules: Option<&RuleSet>) {
    let own = settings
        .boot
        .iter()
        .map(|(name, value)| (list.target.fill(name), list.target.fill(value)));
    let all: Vec<(String, String)> = own
        .chain(rules.map(RuleSet::loader_settings).unwrap_or_default())
        .collect();
    if all.is_empty() {
        return;
    }
    for (name, value) in &all {
        if name.contains(['"', '\n', '=']) || value.contains(['"', '\n']) {
            list.refuse(
                format!("boot setting {name}"),
                "loader.conf has no way to write this name or value",
            );
        }
    }
    let lines: String = all
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\"\n"))
        .collect();
    let at = list.steps.steps.len();
    list.file(LOADER, lines.clone());
    if let Some(step) = list.steps.steps.get_mut(at) {
        step.what = format!("boot settings in {LOADER}");
        step.apply = Program::script(APPEND, [LOADER]).reading(Input::Text(lines));
    }
    list.steps.reboot = true;
}

/// Prints an interface's flags, if its card has large receive offload: ifconfig(8) of OpenBSD turns it on without an error, and without
/// effect, where the card has none.
const LRO_READ: &str = r#"said=$(ifconfig "$1" hwfeatures) || exit 1
case $said in
*hwfeatures=*[\<,]LRO[\>,]*) printf '%s\n' "$said" | head -n 1 ;;
*) echo "$1 has no large receive offload: see its hwfeatures in ifconfig $1 hwfeatures" >&2; exit 1 ;;
esac"#;

/// The question for the flags of an interface before one is set so.
fn flags_of(system: System, name: &str, given: &str) -> Program {
    match (system, given) {
        (System::OpenBsd, "tcplro") => Program::script(LRO_READ, [name]),
        _ => Program::new(["ifconfig", name]),
    }
}

/// A flag of an interface, as ifconfig is given it: `lro`, `-lro`; `None` for one that it does not show.
pub(super) fn ifconfig(system: System, name: &str, given: &str) -> Option<Step> {
    let plain = given.trim_start_matches('-');
    let [shown, plain] = OFFLOADS
        .iter()
        .filter_map(|offload| offload.flag(system))
        .find(|[_, known]| *known == plain)?;
    let read = flags_of(system, name, given).asking(Form::Flag {
        shown,
        given: plain,
    });
    let set = |to: &str| Program::new(["ifconfig", name, to]);
    Some(Step::value(format!("{plain} of {name}"), read, set, given))
}

fn interface(list: &mut List<'_>, name: &str, wanted: &Interface) {
    let system = list.target.system;
    if let Some(mtu) = wanted.mtu {
        list.mtu(name, mtu);
    }
    if wanted.set.contains_key(&CardSetting::TxChecksum) {
        // The kernel turns TSO off with txcsum, and does not turn it on again with it. The first value read is the last one
        // restored.
        for [shown, given] in
            Offload::of(CardSetting::Tso).filter_map(|offload| offload.flag(system))
        {
            let (read, form) = (
                Program::new(["ifconfig", name]),
                Form::Flag { shown, given },
            );
            let back = Program::new(["ifconfig", name, super::WAS]);
            list.change(
                format!("{given} of {name} beside txcsum"),
                read,
                form,
                Program::new(["true"]),
                back,
            );
        }
    }
    for (setting, value) in &wanted.set {
        let sign = match value {
            CardValue::Switch(true) => "",
            _ => "-",
        };
        let flags = Offload::of(*setting).filter_map(|offload| offload.flag(system));
        let steps: Vec<Step> = flags
            .filter_map(|[_, given]| ifconfig(system, name, &format!("{sign}{given}")))
            .collect();
        let has_none = steps.is_empty();
        list.steps.steps.extend(steps);
        if has_none {
            list.refuse(
                format!("{} of {name}", setting.key()),
                format!(
                    "{system} has no switch for it: its driver's own sysctls and boot settings may"
                ),
            );
        }
    }
    // Plans name nothing else there.
    let known = Interface {
        mtu: wanted.mtu,
        set: wanted.set.clone(),
        ..Interface::default()
    };
    if *wanted != known {
        let why = "its driver's own sysctls and boot settings have these";
        list.refuse(format!("interrupts and steering of {name}"), why);
    }
}

/// Whether a new ipfw accepts frames without a matching rule: otherwise it denies all, this connection too (ipfw(4)).
const ACCEPTS: &str = "net.inet.ip.fw.default_to_accept";
/// Prints a variable of the kernel's environment, or nothing.
const KENV_READ: &str = r#"kenv -q "$1" 2>/dev/null; exit 0"#;
/// Puts one back, or takes it away.
const KENV_BACK: &str = r#"was=$(cat)
if [ -n "$was" ]; then kenv "$1=$was" >/dev/null; else kenv -q -u "$1" >/dev/null 2>&1; exit 0; fi"#;
/// Prints whether a part of the kernel is there, built in or as a module.
pub(super) const PART_READ: &str = r#"kldstat -q -m "$1" && echo there || echo absent"#;
/// Loads a module, unless there is such a part.
const PART_LOAD: &str = r#"if kldstat -q -m "$1"; then
	echo "$1 is there already: linerate would not know what to put back" >&2; exit 1
fi
kldload "$1""#;
/// Unloads a module that was absent.
const PART_BACK: &str = r#"[ "$1" != absent ] || kldunload "$2""#;

/// FreeBSD's modules by the part of the kernel: some are built in.
pub(super) const MODULE: Modules = Modules {
    look: PART_READ,
    load: ["kldload", "-n"],
    unload: "kldunload",
};

/// IP Filter in the kernel, and on.
const IPF_ON: &str = r#"if kldstat -q -m ipfilter && ipf -V 2>/dev/null | grep -q '^Running: yes'; then
	echo "IP Filter is on already: linerate would not know what to put back" >&2; exit 1
fi
kldload -n ipl && { ipf -E 2>/dev/null || true; }"#;
/// IP Filter off where it was.
const IPF_BACK: &str = r#"[ "$1" != off ] || ipf -D"#;

/// A firewall, on and without rules; `nat`: it translates addresses. Whether there is such a one.
fn turn_on(list: &mut List<'_>, firewall: Firewall, nat: bool) -> bool {
    let script = |script| Program::script(script, [""; 0]);
    match firewall {
        Firewall::Pf => {
            // Undone last, when pf is off: a pf that is on is in use.
            list.module("pf", MODULE);
            super::pf::turn(list, true);
        }
        Firewall::Ipfw => {
            let read = Program::script(KENV_READ, [ACCEPTS]);
            let back = Program::script(KENV_BACK, [ACCEPTS]).reading(Input::Was);
            let apply = Program::new(["kenv", &format!("{ACCEPTS}=1")]);
            list.change(format!("kenv {ACCEPTS}"), read, Form::Whole, apply, back);
            part(list, "ipfw");
            if nat {
                part(list, "ipfw_nat");
            }
        }
        Firewall::Ipf if list.target.system == System::FreeBsd => {
            let back = Program::script(IPF_BACK, [WAS]);
            list.change(
                "IP Filter",
                script(super::off::IPF_READ),
                Form::Trimmed,
                script(IPF_ON),
                back,
            );
        }
        other => {
            list.refuse(
                format!("rules of {other}"),
                format!("{} has no such firewall", list.target.system),
            );
            return false;
        }
    }
    true
}

/// A firewall with these rules.
fn rule_set(list: &mut List<'_>, set: &RuleSet) {
    if !turn_on(list, set.firewall, set.kind == Kind::Nat) {
        return;
    }
    for (name, value) in set.sysctls() {
        list.sysctl(&name, &value);
    }
    written(list, set);
}

/// The programs that load a set's rules.
fn written(list: &mut List<'_>, set: &RuleSet) {
    let global = |text: &String| {
        let address: Ipv6Addr = text.split(['/', '%']).next()?.parse().ok()?;
        (!address.is_unicast_link_local()).then_some(address)
    };
    let address6 = list.target.outside.addresses.iter().find_map(global);
    let set = &RuleSet {
        address6,
        ..set.clone()
    };
    for load in set.loads() {
        let what = format!("rule set by {}", load.program);
        super::rules::load(list, set.firewall, what, Program::loading(set, &load), &[]);
    }
    if set.firewall.is_pf() {
        super::pf::forget(list);
    }
}

/// A part of the kernel by its module.
fn part(list: &mut List<'_>, module: &str) {
    let (read, apply) = (
        Program::script(PART_READ, [module]),
        Program::script(PART_LOAD, [module]),
    );
    list.change(
        module,
        read,
        Form::Trimmed,
        apply,
        Program::script(PART_BACK, [WAS, module]),
    );
}

/// pf with the variant's rules.
fn openbsd_pf(list: &mut List<'_>, file: Option<&RuleFile>, rules: Option<&RuleSet>) {
    super::pf::turn(list, true);
    if let Some(file) = file {
        super::rules::load_rule_file(list, file);
    }
    let Some(set) = rules else { return };
    written(list, set);
}

/// Prints whether there is such an interface.
const INTERFACE_READ: &str = r#"ifconfig "$1" >/dev/null 2>&1 && echo there || echo absent"#;
/// Takes one away that was absent: making it fails where it is the host's own, which stays.
const INTERFACE_BACK: &str = r#"[ "$1" != absent ] || ifconfig "$2" destroy"#;

impl List<'_> {
    /// The MTU, by ifconfig.
    fn mtu(&mut self, name: &str, mtu: u32) {
        let set = |to: &str| Program::new(["ifconfig", name, "mtu", to]);
        let read = Program::new(["ifconfig", name]);
        self.value(
            format!("MTU of {name}"),
            read,
            Form::After("mtu"),
            set,
            &mtu.to_string(),
        );
    }

    /// A bridge of both interfaces.
    fn bsd_bridge(&mut self, add: &'static str, delete: &'static str) {
        let bridge = "bridge198";
        let (read, make) = (
            Program::script(INTERFACE_READ, [bridge]),
            Program::new(["ifconfig", bridge, "create"]),
        );
        self.change(
            bridge,
            read,
            Form::Trimmed,
            make,
            Program::script(INTERFACE_BACK, [WAS, bridge]),
        );
        let port = |name: &str, to: bool| {
            Program::new(["ifconfig", bridge, if to { add } else { delete }, name])
        };
        self.bridged(bridge, port, |state| {
            Program::new(["ifconfig", bridge, state])
        });
    }
}
