//! The registry of rules. A rule is data: how its cause is looked for, and what is said where it is found. Each file has a topic.

mod cpus;
mod filters;
mod hooks;
mod limits;
mod links;
mod path;
mod queues;
mod tracking;

use crate::case::Case;
use crate::spent::Spent;
use linerate_hosts::configuration::Configuration;
use linerate_measure::experiment::System;
use linerate_measure::record::{Change, Finding, Strength};
use serde_json::{Value, json};
use std::fmt::Display;

/// A rule. [`RULE`] has what most share. In its texts, `{name}` stands for a value of that name that was found.
pub(crate) struct Rule {
    /// Name of the cause: `linear-rules`.
    pub cause: &'static str,
    pub look: Look,
    /// The finding in one sentence.
    pub says: &'static str,
    /// How the cause costs frames or time.
    pub mechanism: &'static str,
    pub changes: Changes,
    /// The gain to expect.
    pub gain: &'static str,
    /// Experiments for some DUTs and findings: the first that fits is made.
    pub tries: &'static [(On, Try)],
    /// The experiment for all others.
    pub otherwise: Try,
}

/// How a cause is looked for.
pub(crate) enum Look {
    /// The time in functions of the kernel, from this share on; without a profile, the setting that brings them in.
    Cost(&'static [&'static str], f64, Setting),
    By(fn(&Case<'_>) -> Looked),
}

/// A setting that brings functions in.
#[derive(Clone, Copy)]
pub(crate) enum Setting {
    /// By the answers to questions that begin so.
    Asked(
        &'static [&'static str],
        fn(&Configuration) -> Option<String>,
    ),
    /// Offloads of a card, one of which is on, or off.
    Offload([&'static str; 2], bool),
    /// The DUT is not asked for it, with the reason.
    Unasked(&'static str),
    /// There is none: the time alone tells.
    None,
}

/// DUTs and findings that an experiment is for.
pub(crate) enum On {
    /// A DUT of the embedded lab.
    Embedded,
    System(System),
    /// A finding with this value.
    With(&'static str),
}

/// An experiment with a change.
#[derive(Clone, Copy)]
pub(crate) enum Try {
    /// Keys of a plan's variant, as JSON.
    Keys(&'static str),
    /// A command in a DUT of the embedded lab, which disappears with all that it was set to. It names devices by [`in_lab`].
    InLab(&'static str),
    /// There is none, with the reason.
    Not(&'static str),
}

/// Changes: system, commands, and the commands that undo them.
type Changes = &'static [[&'static str; 3]];
/// Remedies of a cause: changes, and an experiment.
type Ways = (Changes, Try);

/// Usual values of a rule: a cost of functions.
pub(crate) const RULE: Rule = Rule {
    cause: "",
    look: Look::Cost(&[], 0.02, Setting::None),
    says: "",
    mechanism: "",
    changes: &[],
    gain: "{cost}",
    tries: &[],
    otherwise: Try::Not(""),
};

/// Texts that a rule's texts may name as well.
const COMMON: [(&str, &str); 1] = [(
    "paper",
    "'Tuning FreeBSD for routing and firewalling', 2018, illustration",
)];

const BY_HAND: &str =
    "a plan could not put back what the host has there: change it by hand, and measure again";
const WHOLE_MACHINE: Try =
    Try::Not("it is set for the whole machine: change it by hand, and measure again");
const PROGRAM: Try = Try::Not("linerate did not start this program: end it, and measure again");
const STEER: Try = Try::Keys(r#"{"interface": {"in": {"rps": "{cpus}"}}}"#);
const STEERS_LINUX: Try = Try::Not("a plan steers frames to other CPUs on Linux only");
/// The interrupts of the inside interface on these CPUs, in turn.
const INTERRUPTS: &[(On, Try)] = &[(
    On::System(System::Linux),
    Try::Keys(r#"{"interface": {"in": {"irq": "{cpus}"}}}"#),
)];
const INTERRUPTS_OF_LINUX: Try = Try::Not("a plan sets the CPUs of interrupts on Linux only");
const MORE_QUEUES: Try = Try::Keys(r#"{"interface": {"queues": {cpus}}}"#);

/// All rules.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    [
        limits::RULES,
        queues::RULES,
        filters::RULES,
        path::RULES,
        cpus::RULES,
        links::RULES,
        hooks::RULES,
        tracking::RULES,
    ]
    .into_iter()
    .flatten()
}

/// A cause with its evidence; `None` where the cause is not there, or the reason why it could not look for it.
pub(crate) type Looked = Result<Option<Found>, String>;

/// A cause that was found, with the values that its rule's texts name.
pub(crate) struct Found {
    finding: Finding,
    values: Vec<(&'static str, String)>,
    /// Changes and experiments in the place of the rule's.
    instead: Option<Ways>,
    /// The time of functions that it was found by.
    pub spent: Option<Spent>,
}

impl Found {
    fn new(strength: Strength, weight: f64, evidence: impl IntoIterator<Item = String>) -> Found {
        let evidence = evidence.into_iter().collect();
        let finding = Finding {
            strength,
            weight,
            evidence,
            ..Finding::default()
        };
        Found {
            finding,
            values: Vec::new(),
            instead: None,
            spent: None,
        }
    }

    /// One that was measured, with its share.
    pub fn observed(share: f64, evidence: impl IntoIterator<Item = String>) -> Found {
        Found::new(Strength::Observed, share, evidence).with("share", percent(share))
    }

    pub fn with(mut self, name: &'static str, value: impl Display) -> Found {
        self.values.push((name, value.to_string()));
        self
    }

    /// A value that only says that something holds.
    pub fn when(self, holds: bool, name: &'static str) -> Found {
        if holds { self.with(name, "") } else { self }
    }

    /// The value of a name.
    fn value(&self, name: &str) -> Option<&str> {
        let own = self
            .values
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        own.chain(COMMON)
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// A text with its values, as they are `shown`. Other words in braces stay.
    fn fill(&self, text: &str, shown: impl Fn(&str) -> String) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once('{') {
            let word = behind
                .split_once('}')
                .and_then(|(word, after)| Some((self.value(word)?, after)));
            let (text, after) =
                word.map_or(("{".into(), behind), |(value, after)| (shown(value), after));
            out = out + before + &text;
            rest = after;
        }
        out + rest
    }

    fn text(&self, text: &str) -> String {
        self.fill(text, |value| value.into())
    }

    fn fits(&self, case: &Case<'_>, on: &On) -> bool {
        match on {
            On::Embedded => case.is_embedded(),
            On::System(system) => case.system() == *system,
            On::With(name) => self.value(name).is_some(),
        }
    }

    /// The keys of a plan's variant that make the change, or why none do.
    fn tried(&self, case: &Case<'_>, tried: Try) -> (Option<Value>, Option<String>) {
        let in_json = |value: &str| {
            let text = Value::from(value).to_string();
            text[1..text.len() - 1].to_string()
        };
        match tried {
            Try::Keys(keys) => (serde_json::from_str(&self.fill(keys, in_json)).ok(), None),
            Try::InLab(command) if case.is_embedded() => {
                let run = self.text(command);
                (
                    Some(json!({ "commands": [{ "run": run, "undo": "true" }] })),
                    None,
                )
            }
            Try::InLab(_) => (None, Some(BY_HAND.into())),
            Try::Not(why) => (None, Some(why.into())),
        }
    }
}

impl Rule {
    /// Looks for the cause in the records of a slot.
    ///
    /// # Errors
    /// Why it could not look.
    pub fn examine(&self, case: &Case<'_>) -> Looked {
        match self.look {
            Look::Cost(functions, least, setting) => {
                cost(case, case.spent(functions), least, setting)
            }
            Look::By(look) => look(case),
        }
    }

    pub fn finding(&self, case: &Case<'_>, found: Found) -> Finding {
        let first = self.tries.iter().find(|(on, _)| found.fits(case, on));
        let own = (
            self.changes,
            first.map_or(self.otherwise, |(_, tried)| *tried),
        );
        let (changes, tried) = found.instead.unwrap_or(own);
        let change = |texts: &[&str; 3]| {
            let [system, commands, undo] = texts.map(|text| found.text(text));
            Change {
                system,
                commands,
                undo,
            }
        };
        // `Linux (nftables)` says nothing to an administrator of iptables.
        let firewalls = case.firewalls();
        let is_own = |texts: &&[&str; 3]| {
            let tool = texts[0].split_once(" (").map(|(_, tool)| tool);
            tool.is_none_or(|tool| {
                firewalls.is_empty() || firewalls.iter().any(|of| tool.contains(of))
            })
        };
        let (patch, untried) = found.tried(case, tried);
        Finding {
            cause: self.cause.into(),
            statement: found.text(self.says),
            mechanism: self.mechanism.into(),
            changes: changes.iter().filter(is_own).map(change).collect(),
            gain: found.text(self.gain),
            patch,
            untried,
            ..found.finding
        }
    }
}

impl Setting {
    /// The setting in words, if the DUT has it.
    fn of(self, case: &Case<'_>) -> Result<Option<String>, String> {
        match self {
            Setting::Asked(questions, find) => case.configured(questions, find),
            Setting::Offload(names, on) => offload(case, names, on),
            Setting::Unasked(why) => Err(why.into()),
            Setting::None => Ok(None),
        }
    }
}

/// The setting of the reverse-path filter that is on.
fn rp_filter(case: &Case<'_>) -> Result<Option<String>, String> {
    let setting = Setting::Asked(&["sysctl"], |found| {
        let names = found
            .cards
            .first()
            .map(|card| card.name.as_str())
            .into_iter()
            .chain(["all"]);
        let on = names
            .map(|name| format!("net.ipv4.conf.{name}.rp_filter"))
            .find(|name| found.number(name) > Some(0))?;
        Some(format!("{on} = {}", found.sysctls[&on].trim()))
    });
    setting.of(case)
}

/// An offload of a card that is on, or off.
fn offload(case: &Case<'_>, names: [&str; 2], on: bool) -> Result<Option<String>, String> {
    let cards = &case.configuration()?.cards;
    if cards.iter().all(|card| card.features.is_empty()) {
        return Err("the DUT does not tell the offloads of its cards".into());
    }
    let state = if on { "on" } else { "off" };
    Ok(cards.iter().find_map(|card| {
        let name = names
            .into_iter()
            .find(|name| card.features.get(*name) == Some(&on))?;
        Some(format!("{}: {name} is {state}", card.name))
    }))
}

/// Evidence of a cause: the time of its functions; without a profile, the setting that brings them in. A setting whose cost a profile does
/// not show is no cause.
fn cost(case: &Case<'_>, spent: Result<Spent, String>, least: f64, setting: Setting) -> Looked {
    match setting {
        Setting::None if spent.is_err() => spent.map(|_| None),
        _ => judged(spent, least, setting.of(case)),
    }
}

/// As [`cost`], with the setting in words, if the DUT has it.
fn judged(
    spent: Result<Spent, String>,
    least: f64,
    setting: Result<Option<String>, String>,
) -> Looked {
    match (spent, setting) {
        (Ok(spent), setting) if spent.is_clear(least) => {
            let evidence = std::iter::once(spent.evidence()).chain(setting.ok().flatten());
            let found = Found::observed(spent.share, evidence).with("cost", up_to(spent.share));
            Ok(Some(Found {
                spent: Some(spent),
                ..found
            }))
        }
        (Ok(_), _) | (Err(_), Ok(None)) => Ok(None),
        (Err(why), Ok(Some(setting))) => {
            let evidence = [setting, format!("the cost of this is not known: {why}")];
            let found = Found::new(Strength::Possible, 0.1, evidence);
            Ok(Some(
                found.with("cost", "not known: profile it (--profile)"),
            ))
        }
        (Err(why), Err(why_not)) => Err(format!("{why}, and {why_not}")),
    }
}

/// The gain from a share of the time.
pub(crate) fn up_to(share: f64) -> String {
    format!("up to {} of a frame's time", percent(share))
}

/// `12.3 %`
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = match percent {
        10.0.. => 0,
        0.05.. => 1,
        // The first digit that is not 0.
        _ if percent > 0.0 => (-percent.log10()).ceil() as usize,
        _ => 1,
    };
    format!("{percent:.digits$} %")
}

/// A device of the embedded lab as a plan names it, whatever the number of its lane: `card-{in}` for the card below the macvlan `in3`.
fn in_lab(device: &str) -> String {
    let (below, name) = match device.strip_prefix("card-") {
        Some(name) => ("card-", name),
        None => ("", device),
    };
    let of_lane = |end: &str| {
        let number = name.strip_prefix(end)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("{below}{{{end}}}"))
    };
    of_lane("in")
        .or_else(|| of_lane("out"))
        .unwrap_or_else(|| device.into())
}

/// Numbers with this sign between them.
fn joined<T: Display>(all: impl IntoIterator<Item = T>, sign: &str) -> String {
    all.into_iter()
        .map(|one| one.to_string())
        .collect::<Vec<_>>()
        .join(sign)
}

#[cfg(test)]
mod tests;
