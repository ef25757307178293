//! The changes that bring a host of a real lab to a variant, and their undoing.
//!
//! [`steps`] turns settings into [`Step`]s for an operating system. A step first reads the state that it will change, for the
//! journal; then it changes it. Its undoing restores the recorded state. Programs are lists of arguments, and scripts are
//! constants of this module that take theirs as arguments: no text of a plan, a lab file or a host becomes part of a shell's
//! program. The one exception are a plan's own commands, which are shell lines by definition.

mod already;
mod bsd;
mod cards;
mod event;
mod form;
mod iptables;
mod kinds;
mod linux;
mod off;
mod pf;
mod rules;
mod scripts;
mod shared;
mod single;
mod tables;
#[cfg(test)]
mod tests;

pub use already::questions;
pub use event::event;
pub use form::Form;
pub use kinds::routes_by;
pub use single::{Runtime, content, content_of, file};

use linerate_measure::experiment::System;
use linerate_plan::placeholders::fill;
use linerate_plan::rules::own::{LabEnd, RuleFile};
use linerate_plan::rules::{Firewall, Load, Part, RuleSet};
use linerate_plan::settings::{End, Interface, Neighbour, Route, Settings};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// How long putting an image in place, or another back, may take beyond the time that it needs to arrive.
pub const INSTALLATION_NS: u64 = 1_800_000_000_000;

/// The status of a program of an undoing that has done what can be done now, and has to be run again later (EX_TEMPFAIL of
/// sysexits.h).
pub const LATER: u8 = 75;

/// Stands for the text that was read, in the arguments of an undoing.
pub const WAS: &str = "{was}";

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name of the program, and its arguments.
    pub argv: Vec<String>,
    /// Standard input of the program.
    pub input: Input,
}

impl Program {
    /// A program that reads nothing.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Program {
            argv: argv.into_iter().map(Into::into).collect(),
            input: Input::Nothing,
        }
    }

    /// A constant script with arguments.
    fn script<S: Into<String>>(
        script: &'static str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let head = ["sh", "-c", script, "linerate"].map(String::from);
        Program::new(
            head.into_iter()
                .chain(arguments.into_iter().map(Into::into)),
        )
    }

    /// A constant script that restores the text that was read.
    fn back(script: &'static str) -> Self {
        Program::script(script, [""; 0]).reading(Input::Was)
    }

    /// The question that has its value there in the program's output.
    fn asking(self, form: Form) -> Read {
        let program = self;
        Read { program, form }
    }

    /// The program that loads a part of a rule set.
    fn loading(set: &RuleSet, load: &Load) -> Self {
        let argv = std::iter::once(load.program).chain(load.arguments.iter().copied());
        Program::new(argv).reading(Input::Rules(Box::new(set.clone()), load.part))
    }

    /// For people, in one line: scripts of this module are long.
    pub fn shown(&self) -> String {
        let words: Vec<&str> = match script_of(&self.argv) {
            Some(Script { before, given, .. }) => {
                // Scripts may be given others.
                let plain = given.iter().filter(|word| !word.contains('\n'));
                let before = before.iter().map(String::as_str);
                before
                    .chain(["a script of linerate with"])
                    .chain(plain.map(String::as_str))
                    .collect()
            }
            None => self.argv.iter().map(String::as_str).collect(),
        };
        words
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn reading(self, input: Input) -> Self {
        Program { input, ..self }
    }

    /// The program with the text that was read in place of [`WAS`].
    pub fn given(&self, was: &str) -> Program {
        let argv = self
            .argv
            .iter()
            .map(|argument| argument.replace(WAS, was))
            .collect();
        let input = match &self.input {
            Input::Was => Input::Text(was.into()),
            other => other.clone(),
        };
        Program { argv, input }
    }
}

/// A script of this module among the arguments of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script<'a> {
    /// The words before it, which say where it runs.
    pub before: &'a [String],
    pub text: &'a str,
    /// The arguments of the script.
    pub given: &'a [String],
}

/// The script that these arguments run; `None` if they run a program of the host.
pub fn script_of(argv: &[String]) -> Option<Script<'_>> {
    let is_script = |w: &[String]| w[0] == "sh" && w[1] == "-c" && w[3] == "linerate";
    let at = argv.windows(4).position(is_script)?;
    Some(Script {
        before: &argv[..at],
        text: &argv[at + 2],
        given: &argv[at + 4..],
    })
}

/// The standard input of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// This text.
    Text(String),
    /// The bytes of this file of linerate's own machine, after a line with their number.
    File(String),
    /// The text that was read before the change.
    Was,
    /// A part of a rule set: large ones are written while they are read.
    Rules(Box<RuleSet>, Part),
}

/// How a change is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// By this program, in which [`WAS`] and [`Input::Was`] stand for the text that was read.
    Run(Program),
    /// By a reboot.
    Reboot,
    /// With an earlier step, which has this name.
    With(String),
    /// Not at all, and it need not be.
    Stays,
}

/// A question before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The program that prints it.
    pub program: Program,
    /// Where in its output the value is.
    pub form: Form,
}

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The changed setting, for people: `sysctl net.inet.ip.redirect`.
    pub what: String,
    /// The question before it.
    pub read: Option<Read>,
    /// In its input, [`Input::Was`] stands for the text that was read.
    pub apply: Program,
    /// The question after it.
    pub check: Option<Check>,
    pub undo: Undo,
    /// Time limit of either, in nanoseconds, if it is not the usual one.
    pub within_ns: Option<u64>,
    /// Whether either may cut the connection over which it is made. Then it is made once more over another: it can be.
    pub cuts: bool,
}

/// A question after a change: a program may end well, and the kernel or the card have passed over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub read: Read,
    /// The lines of the value, in turn: the first is that of the first queue.
    pub wanted: Vec<String>,
}

impl Check {
    /// Whether a value that was read is the wanted one.
    pub fn is_met_by(&self, value: &str) -> bool {
        let mut lines = value.split('\n').zip(self.wanted.iter().cycle());
        !self.wanted.is_empty() && lines.all(|(is, wanted)| same(is, wanted))
    }
}

/// Words are compared, not the white space between them, and numbers by value: `0x1f` is 31.
pub fn same(a: &str, b: &str) -> bool {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let is = |(a, b): (&str, &str)| a == b || number(a).is_some_and(|a| Some(a) == number(b));
    let (a, b) = (a.split_whitespace(), b.split_whitespace());
    a.clone().count() == b.clone().count() && a.zip(b).all(is)
}

/// A change that has to be undone: an entry of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoing {
    /// The changed setting.
    pub what: String,
    /// The program that puts it back; empty where a reboot does.
    pub argv: Vec<String>,
    /// Standard input of that program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// Whether the change outlives a boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
    /// Identifies the boot in which it was made, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Identifies the changed machine, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Whether it is known to have been made: it is written down before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
    /// Time limit in nanoseconds, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ns: Option<u64>,
    /// Whether undoing may cut the connection: see [`Step::cuts`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuts: bool,
}

impl Step {
    /// A change whose undoing takes the text that was read before.
    fn change(what: impl Into<String>, read: Read, apply: Program, back: Program) -> Step {
        let (what, undo) = (what.into(), Undo::Run(back));
        Step {
            what,
            read: Some(read),
            apply,
            check: None,
            undo,
            within_ns: None,
            cuts: false,
        }
    }

    /// A value that is set in the same form as it is restored, and read.
    fn value(what: impl Into<String>, read: Read, set: impl Fn(&str) -> Program, to: &str) -> Step {
        Step::change(what, read.clone(), set(to), set(WAS)).checked(read, [to])
    }

    /// The change with a question after it, whose lines must be these in turn.
    fn checked<S: Into<String>>(self, read: Read, wanted: impl IntoIterator<Item = S>) -> Step {
        let wanted = wanted.into_iter().map(Into::into).collect();
        Step {
            check: Some(Check { read, wanted }),
            ..self
        }
    }

    /// The undoing, with `was` as the recorded state; `None` if the change stays.
    pub fn undoing(&self, was: &str) -> Option<Undoing> {
        let (argv, input) = match &self.undo {
            Undo::With(_) | Undo::Stays => return None,
            Undo::Reboot => (Vec::new(), String::new()),
            Undo::Run(program) => {
                let Program { argv, input } = program.given(was);
                (
                    argv,
                    if let Input::Text(text) = input {
                        text
                    } else {
                        String::new()
                    },
                )
            }
        };
        let (what, within_ns, cuts) = (self.what.clone(), self.within_ns, self.cuts);
        Some(Undoing {
            what,
            argv,
            input,
            within_ns,
            cuts,
            ..Undoing::default()
        })
    }
}

/// An interface of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the interface.
    pub name: String,
    /// Addresses with the lengths of their networks, which move where the variant moves them.
    pub addresses: Vec<String>,
    /// The tester's addresses there: next hops of routes that do not name one.
    pub next_hops: Vec<String>,
    /// The networks of the test frames behind it.
    pub networks: Vec<String>,
}

impl Port {
    /// The replacement for names of users' rule files.
    fn in_rule_files(&self) -> LabEnd {
        let alone = |address: &String| address.split('/').next().unwrap_or_default().to_string();
        LabEnd {
            interface: self.name.clone(),
            networks: self.networks.clone(),
            addresses: self.addresses.iter().map(alone).collect(),
        }
    }
}

/// The host, as far as its settings must know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// System of the host.
    pub system: System,
    /// The interface towards the generator.
    pub inside: Port,
    /// The interface towards the receiver.
    pub outside: Port,
    /// The command that makes changes outlive a reboot, if its root is read-only.
    pub config_save: Option<String>,
}

impl Target {
    fn end(&self, end: End) -> &Port {
        if end == End::In {
            &self.inside
        } else {
            &self.outside
        }
    }

    fn fill(&self, text: &str) -> String {
        fill(text, &self.inside.name, &self.outside.name)
    }

    fn ports(&self) -> [&Port; 2] {
        [&self.inside, &self.outside]
    }
}

/// The steps of a variant on a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps {
    /// In the order in which they are made. They are undone in reverse.
    pub steps: Vec<Step>,
    /// How many of them, the first, outlive a boot. The others are to be made after it.
    pub lasting: usize,
    /// Whether some of those that last count from the next boot on.
    pub reboot: bool,
    /// How many of them, the first, put another image in place. They are made while the host runs its own image: who installs into the
    /// half of the disk that does not run would overwrite the host's own otherwise. The rest is made, and undone, while it runs the new
    /// one, whose files are others.
    pub image: usize,
}

/// The steps that bring a host to a variant. `rules` is the variant's rule set for this system (`Campaign::rule_set`).
///
/// # Errors
/// Everything that cannot be set, with the reason.
pub fn steps(
    settings: &Settings,
    rules: Option<&RuleSet>,
    target: &Target,
) -> Result<Steps, Vec<String>> {
    let target = Cow::Borrowed(target);
    let mut list = List {
        target,
        steps: Steps::default(),
        unsupported: Vec::new(),
    };
    list.lasting(settings, rules);
    list.all(settings, rules);
    if list.unsupported.is_empty() {
        Ok(list.steps)
    } else {
        Err(list.unsupported)
    }
}

/// The program that deletes a firewall's states and keeps its rules. pf deletes those of the test networks alone: with all, it would cut
/// linerate's own connection. `None` for ipfw, which has no such command.
pub fn forget(firewall: Firewall, networks: Vec<String>) -> Option<Program> {
    match firewall {
        Firewall::Nftables | Firewall::Iptables => Some(Program::new(["conntrack", "-F"])),
        Firewall::Pf | Firewall::OpenbsdPf => Some(pf::forget_networks(networks)),
        Firewall::Ipf => Some(Program::new(["ipf", "-FS"])),
        Firewall::Ipfw => None,
    }
}

/// The family's commands for steps that all families have.
struct Family {
    /// A script that prints whether a module is loaded, with commands to load and unload it; or the reason why there are no
    /// modules.
    modules: Result<Modules, &'static str>,
    /// Why a file sets no boot settings; `None` where one does.
    no_boot_settings: Option<&'static str>,
    no_cpus: &'static str,
    interface: fn(&mut List<'_>, &str, &Interface),
    bridge: fn(&mut List<'_>),
    route: fn(&mut List<'_>, &Route, &str),
    neighbour: fn(&mut List<'_>, &Neighbour),
    firewall: fn(&mut List<'_>, Option<&RuleFile>, Option<&RuleSet>),
}

#[derive(Clone, Copy)]
struct Modules {
    look: &'static str,
    load: [&'static str; 2],
    unload: &'static str,
}

impl Family {
    fn of(system: System) -> &'static Family {
        match system {
            System::Linux | System::Vyos => &linux::FAMILY,
            System::FreeBsd | System::PfSense | System::OpnSense => &bsd::FREEBSD,
            System::OpenBsd => &bsd::OPENBSD,
        }
    }
}

/// Steps as they come together.
struct List<'a> {
    /// The host, with its interfaces as a kind of DUT has them.
    target: Cow<'a, Target>,
    steps: Steps,
    unsupported: Vec<String>,
}

impl List<'_> {
    fn add(&mut self, what: impl Into<String>, read: Option<Read>, apply: Program, undo: Undo) {
        let what = what.into();
        self.steps.steps.push(Step {
            what,
            read,
            apply,
            check: None,
            undo,
            within_ns: None,
            cuts: false,
        });
    }

    /// How long the step that was added last, and its undoing, may take.
    fn within(&mut self, ns: Option<u64>) {
        if let Some(step) = self.steps.steps.last_mut() {
            step.within_ns = ns;
        }
    }

    /// A change whose undoing takes the text that was read before.
    fn change(
        &mut self,
        what: impl Into<String>,
        read: Program,
        form: Form,
        apply: Program,
        back: Program,
    ) {
        let step = Step::change(what, read.asking(form), apply, back);
        self.steps.steps.push(step);
    }

    /// A value that is set in the same form as it is restored.
    fn value(
        &mut self,
        what: impl Into<String>,
        read: Program,
        form: Form,
        set: impl Fn(&str) -> Program,
        to: &str,
    ) {
        let step = Step::value(what, read.asking(form), set, to);
        self.steps.steps.push(step);
    }

    /// A change whose undoing is known beforehand.
    fn with_undo(&mut self, what: impl Into<String>, apply: Program, undo: Program) {
        self.add(what, None, apply, Undo::Run(undo));
    }

    /// The undoing of a step that the latest step with this word in its name undoes, too.
    fn undone_with(&self, word: &str) -> Undo {
        let mut earlier = self.steps.steps.iter().rev().map(|step| &step.what);
        let step = earlier.find(|what| what.contains(word));
        step.map_or(Undo::Stays, |what| Undo::With(what.clone()))
    }

    /// Something that this system has no way for.
    fn refuse(&mut self, what: impl fmt::Display, why: impl fmt::Display) {
        self.unsupported.push(format!("{what}: {why}"));
    }
}
