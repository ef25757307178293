//! The file of a player: its host, and the steps of four phases.

use super::interpolation::{self, Budget};
use super::main_file::Player;
use super::source::{Source, Value, text};
use super::value::{host_fault, integer};
use super::{Options, PHASES, Step, Worker, step};
use linerate_hosts::phases::Phase;
use linerate_plan::diagnostic::{Diagnostic, meant};

/// Keys of `[Master]` or `[Coordinator]` that Conductor knows.
const KEYS: [&str; 5] = ["player", "conductor", "cmdport", "resultsport", "max_message_size"];

/// Reads a player's file; `None` and a fault if a part of it is missing.
pub(super) fn read(
    player: &Player<'_>,
    options: &Options,
    budget: &mut Budget,
    faults: &mut Vec<Diagnostic>,
) -> Option<Worker> {
    let mut source = Source::new(player.file, text(player.file, player.bytes, faults)?, budget);
    let known = ["Master", "Coordinator", "Startup", "Run", "Collect", "Reset"];
    source.misspelt_sections(&known);
    let addresses = addresses(&mut source);
    let phases =
        PHASES.map(|(section, phase)| (phase, steps(&mut source, section, phase, options.limit_s))).into();
    source.problems.tell(faults);
    let [host, conductor, command_port, results_port] = addresses?;
    Some(Worker {
        name: player.name.to_string(),
        file: player.file.to_string(),
        host: host.text,
        conductor: conductor.text,
        command_port: command_port.text.parse().ok()?,
        results_port: results_port.text.parse().ok()?,
        phases,
    })
}

/// Player, conductor, and the two ports as plain numbers.
fn addresses(source: &mut Source<'_>) -> Option<[Value; 4]> {
    let section = source.either(["Master", "Coordinator"], "player, conductor, cmdport and resultsport")?;
    let examples = ["192.0.2.1", "192.0.2.254", "6970", "6971"];
    let [player, conductor, command, results] =
        std::array::from_fn(|at| source.need(section, KEYS[at], &KEYS, examples[at]));
    let host = host(source, "player", player);
    let conductor = self::host(source, "conductor", conductor);
    let command = port(source, command);
    let results = port(source, results);
    Some([host?, conductor?, command?, results?])
}

fn host(source: &mut Source<'_>, key: &str, value: Option<Value>) -> Option<Value> {
    let value = value?;
    match host_fault(&value.text) {
        None => Some(value),
        Some(why) => {
            source.problems.add(
                value.span,
                format!("the address of '{key}' {why}"),
                "write a name or an address",
            );
            None
        }
    }
}

fn port(source: &mut Source<'_>, value: Option<Value>) -> Option<Value> {
    let Value { text, span } = value?;
    match integer(&text) {
        Some(port @ 1..=65_535) => Some(Value { text: port.to_string(), span }),
        _ => {
            source.problems.add(span, format!("'{text}' is no port"), "write a number from 1 to 65535");
            None
        }
    }
}

/// The steps of a phase: its own, and behind them those of `[DEFAULT]`, which every phase has.
///
/// Only keys such as `step1` make steps of `[DEFAULT]`. Conductor makes one of everything there, and would run the value of
/// `cmdport` as a command in each phase.
fn steps(source: &mut Source<'_>, name: &str, phase: Phase, limit_s: u32) -> Vec<Step> {
    let Some(section) = source.ini.section(name) else {
        if !source.ini.sections.iter().any(|s| meant(s.name.trim(), [name]).is_some()) {
            let end = source.problems.end();
            source.problems.add(
                end,
                format!("there is no section [{name}]"),
                format!("add [{name}]; it may be empty"),
            );
        }
        return Vec::new();
    };
    let defaults = source.ini.defaults.entries.iter();
    let shared = defaults.filter(|entry| step::is_numbered(&entry.key) && section.get(&entry.key).is_none());
    let mut steps = Vec::new();
    for entry in section.entries.iter().chain(shared) {
        let line = source.problems.line(entry.key_span);
        let expanded = interpolation::expand(&entry.value, section, &source.ini.defaults, source.budget);
        let step = expanded.map_err(|wrong| (entry.value_span, wrong)).and_then(|command| {
            step::read(phase, entry, &command, limit_s, line).map_err(|wrong| (entry.key_span, wrong))
        });
        match step {
            Ok(step) => steps.push(step),
            Err((span, (message, help))) => source.problems.add(span, message, help),
        }
    }
    steps
}
