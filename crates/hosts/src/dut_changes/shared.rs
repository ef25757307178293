//! Changes that all systems have: sysctls, files, commands, modules.

use super::cards::{all_interrupts, offloads, offloads_back};
use super::scripts::{
    FILE_READ, FILES_READ, LINES_BACK, beside, file_write, files_read, lines_back, writable,
};
use super::{Family, Form, INSTALLATION_NS, Input, List, Modules, Program, Step, Undo, WAS};
use linerate_measure::experiment::System;
use linerate_plan::rules::RuleSet;
use linerate_plan::settings::{Dut, End, Settings};
use linerate_plan::sysctl::with_others;

/// A plan's file may hold a key.
const FILE_WRITE: &str = file_write!("077");
/// Unloads a module that was absent. One that is in use stays loaded, which does not affect others.
const MODULE_BACK: &str =
    r#"[ "$1" != absent ] || "$2" "$3" || echo "$3 is in use, and stays" >&2; exit 0"#;
/// Restores the file that [`FILE_READ`] printed.
const FILE_BACK: &str = concat!(
    writable!(),
    r#"set -e
IFS= read -r was
if [ "$was" != present ]; then rm -f "$1"; exit 0; fi
umask 077"#,
    beside!(),
    r#"mv -f "$1.linerate" "$1""#
);
/// Passes its input to a shell line: as many bytes as its first line says. If fewer come (the connection was cut, linerate was
/// killed) or more, the line is killed with all its processes before it sees an end, so that it never installs half of an image.
const INSTALL: &str = r#"IFS= read -r size || exit 1
{ if said=$(LC_ALL=C dd bs=65536 2>&1 >&3); then
	came=${said%% bytes*}
	if [ "${came##*[!0-9]}" != "$size" ]; then
		trap '' TERM
		kill -TERM 0
		sleep 1
		kill -KILL 0
	fi
fi; } 3>&1 | sh -c "$1""#;
/// Writes its second argument into the file that is its first: one of the kernel's.
const PUT: &str = r#"printf '%s\n' "$2" >"$1""#;

/// Forwarding, with the offloads of all cards: where a host forwards, Linux turns LRO off (`dev_disable_lro`), and leaves it off.
const FORWARDING_READ: &str = concat!(
    files_read!(),
    offloads!(),
    r#"for d in /sys/class/net/*/device; do [ -e "$d" ] || continue; d=${d%/device}; offloads "${d##*/}"; done; exit 0"#
);
const FORWARDING_BACK: &str = concat!(lines_back!(), offloads!(), offloads_back!());

/// A kernel setting.
pub(super) fn sysctl(system: System, name: &str, value: &str) -> Step {
    let is_linux = matches!(system, System::Linux | System::Vyos);
    let options: &[&str] = if is_linux {
        &["sysctl", "-q", "-w"]
    } else {
        &["sysctl"]
    };
    let set = |to: &str| {
        Program::new(
            options
                .iter()
                .map(|o| (*o).to_string())
                .chain([format!("{name}={to}")]),
        )
    };
    let what = format!("sysctl {name}");
    let others = is_linux.then(|| with_others(name)).flatten();
    let shown = Program::new(["sysctl", "-n", name]).asking(Form::Trimmed);
    if let Some(pattern) = others {
        let [read, back] = match name.ends_with("forward") || name.ends_with(".forwarding") {
            true => [FORWARDING_READ, FORWARDING_BACK],
            false => [FILES_READ, LINES_BACK],
        };
        let read = Program::script(read, [pattern]).asking(Form::Whole);
        let back = Program::script(back, [""; 0]).reading(Input::Was);
        return Step::change(what, read, set(value), back).checked(shown, [value]);
    }
    Step::value(what, shown, set, value)
}

impl List<'_> {
    /// All that a variant sets after the last boot.
    pub fn all(&mut self, settings: &Settings, rules: Option<&RuleSet>) {
        let family = Family::of(self.target.system);
        for module in &settings.modules {
            match family.modules {
                Ok(modules) => self.module(module, modules),
                Err(why) => self.refuse(format!("module {module}"), why),
            }
        }
        for (name, why) in settings
            .boot
            .keys()
            .zip(family.no_boot_settings.into_iter().cycle())
        {
            self.refuse(format!("boot setting {name}"), why);
        }
        if settings.cpus.is_some() {
            self.refuse("cpus", family.no_cpus);
        }
        for (name, value) in &settings.sysctls {
            self.sysctl(name, value);
        }
        for (end, wanted) in [(End::In, &settings.inside), (End::Out, &settings.outside)] {
            let name = self.target.end(end).name.clone();
            (family.interface)(self, &name, wanted);
        }
        self.kind(settings.dut);
        let nested = settings.dut == Dut::Nested;
        if nested {
            settings
                .sysctls
                .iter()
                .for_each(|(name, value)| self.nested_sysctl(name, value));
        }
        let made = self.steps.steps.len();
        self.tables(settings, family);
        if nested {
            self.inside_nested(made);
        }
        match rules.is_some() || settings.rule_file.is_some() {
            true if nested => self.refuse("rules of dut nested", super::kinds::NESTED_RULES),
            // The network stack is new, and has no rules.
            false if nested => {}
            false if settings.no_firewall => super::off::all_but(self, None),
            false => {}
            true => (family.firewall)(self, settings.rule_file.as_ref(), rules),
        }
        self.commands(settings);
    }

    fn tables(&mut self, settings: &Settings, family: &Family) {
        if settings.routes.count.is_some() || settings.neighbours.count.is_some() {
            self.refuse(
                "generated routes and neighbours",
                "linerate fills tables in the embedded lab only: let a command of the variant load them",
            );
        }
        for route in &settings.routes.explicit {
            let same = |hop: &&String| hop.contains(':') == route.to.address.is_ipv6();
            let hops = &self.target.end(route.end).next_hops;
            let said = route.via.map(|via| via.to_string());
            match said.or_else(|| hops.iter().find(same).cloned()) {
                Some(via) => (family.route)(self, route, &via),
                None => self.refuse(
                    format!("route {}", route.to),
                    "it names no next hop, and neither does the lab file for that interface",
                ),
            }
        }
        for neighbour in &settings.neighbours.explicit {
            (family.neighbour)(self, neighbour);
        }
    }

    /// Both interfaces in a bridge that was made before, then the bridge up.
    pub fn bridged(
        &mut self,
        bridge: &str,
        port: impl Fn(&str, bool) -> Program,
        up: impl Fn(&str) -> Program,
    ) {
        for name in self.names() {
            self.with_undo(
                format!("{name} in the bridge"),
                port(&name, true),
                port(&name, false),
            );
        }
        self.with_undo(format!("{bridge} up"), up("up"), up("down"));
    }

    /// A kernel setting.
    pub fn sysctl(&mut self, name: &str, value: &str) {
        let step = sysctl(
            self.target.system,
            &self.target.fill(name),
            &self.target.fill(value),
        );
        self.steps.steps.push(step);
    }

    /// Settings that outlive a boot: files, and the loader's settings. On systems that need a save command, the change is saved,
    /// and so is its undoing: undoing goes backwards, and saves once everything is restored.
    pub fn lasting(&mut self, settings: &Settings, rules: Option<&RuleSet>) {
        self.image(settings);
        let save = self
            .target
            .config_save
            .as_ref()
            .map(|save| Program::new(save.split_whitespace()));
        if let Some(save) = save.clone() {
            self.with_undo(SAVED, Program::new(["true"]), save);
        }
        let before = self.steps.steps.len();
        for file in &settings.files {
            self.file(&file.path, self.target.fill(&file.text));
        }
        if matches!(
            self.target.system,
            System::FreeBsd | System::PfSense | System::OpnSense
        ) {
            super::bsd::boot(self, settings, rules);
        }
        match save {
            _ if self.steps.steps.len() == before => self.steps.steps.truncate(self.steps.image),
            Some(save) => {
                let undo = self.undone_with(SAVED);
                self.add(SAVED, None, save, undo);
            }
            None => {}
        }
        self.steps.lasting = self.steps.steps.len();
    }

    /// An image, for the next boot: first of all.
    fn image(&mut self, settings: &Settings) {
        let Some(image) = &settings.image else { return };
        let install = Program::script(INSTALL, [self.target.fill(&image.install)]);
        let undo = Program::new(["sh", "-c", &self.target.fill(&image.undo)]);
        self.with_undo(
            format!("image {}", image.file),
            install.reading(Input::File(image.file.clone())),
            undo,
        );
        self.within(Some(INSTALLATION_NS));
        self.steps.image = self.steps.steps.len();
    }

    /// A kernel module.
    pub fn module(&mut self, module: &str, Modules { look, load, unload }: Modules) {
        let back = Program::script(MODULE_BACK, [WAS, unload, module]);
        let apply = Program::new(load.into_iter().chain([module]));
        self.change(
            format!("module {module}"),
            Program::script(look, [module]),
            Form::Trimmed,
            apply,
            back,
        );
    }

    /// A file with this content.
    pub fn file(&mut self, path: &str, text: String) {
        let path = self.target.fill(path);
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            self.refuse(
                format!("file {path}"),
                "write its whole path, from / on and without ..",
            );
            return;
        }
        let script = |script| Program::script(script, [path.clone()]);
        let (apply, back) = (
            script(FILE_WRITE).reading(Input::Text(text)),
            script(FILE_BACK).reading(Input::Was),
        );
        self.change(
            format!("file {path}"),
            script(FILE_READ),
            Form::Whole,
            apply,
            back,
        );
    }

    /// One of the kernel's files, with one line.
    pub fn kernel_file(&mut self, what: String, path: &str, value: &str) {
        let put = |value: &str| Program::script(PUT, [path, value]);
        self.value(what, Program::new(["cat", path]), Form::Trimmed, put, value);
    }

    /// The plan's own lines for a shell, last.
    pub fn commands(&mut self, settings: &Settings) {
        if !settings.commands.is_empty() && self.target.system == System::Linux {
            // One that switches off CPUs, for example, moves interrupts.
            let names = self.target.ports().map(|port| port.name.clone());
            names.iter().for_each(|name| all_interrupts(self, name));
        }
        for command in &settings.commands {
            let line = self.target.fill(&command.run);
            let undo = match &command.undo {
                Some(undo) => Undo::Run(Program::new(["sh", "-c", &self.target.fill(undo)])),
                None => Undo::Reboot,
            };
            self.add(
                format!("command `{line}`"),
                None,
                Program::new(["sh", "-c", &line]),
                undo,
            );
            self.within(command.within_ns);
        }
    }
}

/// The name of the steps that save the configuration.
const SAVED: &str = "saved configuration";
