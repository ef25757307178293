//! The two kinds of files of a test: the main file has the number of trials and names the players, a player's file has its host
//! and the steps of four phases.

use super::ini::Entry;
use super::interpolation::{self, BUDGET, spend};
use super::source::{Source, Value, integer};
use super::{Form, MOST_TRIALS, MOST_WORKERS, Options, PHASES, Step, Test, Worker, step};
use linerate_hosts::phases::Phase;
use linerate_plan::diagnostic::{Diagnostic, MOST, Span, listed};

/// Keys of `[Test]` that Conductor knows.
const TEST_KEYS: [&str; 4] = ["trials", "format", "output", "max_message_size"];
/// Keys of `[Master]` or `[Coordinator]` that Conductor knows.
const MASTER_KEYS: [&str; 5] = [
    "player",
    "conductor",
    "cmdport",
    "resultsport",
    "max_message_size",
];
/// Characters of an address.
const MOST_HOST: usize = 255;

/// Reads a test. `file` returns the bytes of a file, or the reason why it cannot: of the main file by its path, and of the
/// players' by the names that the main file gives them.
///
/// # Errors
/// All faults: first the main file's, then those of each player's file.
pub fn read(
    main: &str,
    options: &Options,
    file: impl Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Test, Vec<Diagnostic>> {
    let mut budget = BUDGET;
    let bytes =
        file(main).map_err(|why| Diagnostic::new(format!("cannot be read: {why}")).of(main));
    let bytes = bytes.map_err(|fault| vec![fault])?;
    let mut source = Source::new(main, &bytes, &mut budget).map_err(|fault| vec![fault])?;
    if is_player(&source) {
        let help = "give the file with [Test] and [Clients] or [Workers], which names this one";
        source.add(
            Span::default(),
            "this is the file of a player, not of a test",
            help,
        );
        return Err(source.faults());
    }
    source.misspelt_sections(&["Test", "Clients", "Workers"]);
    let (trials, form) = (trials(&mut source), form(&mut source));
    let (mut workers, mut of_players) = (Vec::new(), Vec::new());
    for (name, path) in players(&mut source, options) {
        let (message, help) = match file(&path.text) {
            Ok(bytes) if spend(source.budget, bytes.len()) => {
                match player(&name, &path.text, &bytes, options, source.budget) {
                    Ok(worker) => workers.push(worker),
                    Err(faults) => {
                        of_players.extend(faults.into_iter().take(MOST - of_players.len()))
                    }
                }
                continue;
            }
            Ok(_) => {
                let help = "put long commands into scripts on the hosts";
                ("the players' files are too much together".into(), help)
            }
            Err(why) => {
                let message = format!("the player's file {} cannot be read: {why}", path.text);
                (message, "put it beside this file, or write its path")
            }
        };
        source.add(path.span, message, help);
    }
    let mut faults = source.faults();
    faults.extend(of_players);
    faults.truncate(MOST);
    match trials {
        Some(trials) if faults.is_empty() => Ok(Test {
            name: name(main),
            trials,
            form,
            workers,
        }),
        _ => Err(faults),
    }
}

/// The name of a test by the path of its main file: most main files are named conductor.cfg, in a folder with the name of the
/// test.
pub(super) fn name(main: &str) -> String {
    let mut parts = main
        .rsplit('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let file = parts.next().unwrap_or(main);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match parts.next() {
        Some(folder) if matches!(stem, "conductor" | "master" | "test") && folder != ".." => {
            folder.into()
        }
        _ => stem.into(),
    }
}

/// Whether this is the file of a player and not of a test.
fn is_player(source: &Source<'_>) -> bool {
    let has = |name: &&str| source.ini.section(name).is_some();
    !["Test", "Clients", "Workers"].iter().any(has) && PHASES.iter().any(|(name, _)| has(name))
}

/// How many trials a test has.
fn trials(source: &mut Source<'_>) -> Option<u32> {
    if source.ini.section("Test").is_none() {
        source.missing(
            "there is no section [Test]".into(),
            "add [Test] with `trials: 1`".into(),
        );
        return None;
    }
    source.optional("Test", "trials", &TEST_KEYS);
    // Without the key, Conductor has run one trial since 2025.
    let Some(value) = source.get("Test", "trials") else {
        return Some(1);
    };
    let trials = |text: &str| {
        u32::try_from(integer(text)?)
            .ok()
            .filter(|n| (1..=MOST_TRIALS).contains(n))
    };
    let help = format!("write a whole number from 1 to {MOST_TRIALS}");
    source.valid(value, trials, "a number of trials", &help)
}

/// How results are to be shown: a key of 2025.
fn form(source: &mut Source<'_>) -> Option<Form> {
    let value = source.get("Test", "format")?;
    let form = |text: &str| match text {
        "text" => Some(Form::Text),
        "json" => Some(Form::Json),
        _ => None,
    };
    source.valid(value, form, "a format of results", "write text or json")
}

/// The selected players: each with its worker's name, and the path of its file.
fn players(source: &mut Source<'_>, options: &Options) -> Vec<(String, Value)> {
    let Some(section) = source.either(["Clients", "Workers"], "`name: file` for each player")
    else {
        return Vec::new();
    };
    let all = source.ini.section(section).expect("it has just been found");
    let (span, names): (Span, Vec<String>) = (
        all.span,
        all.entries.iter().map(|e| e.key.clone()).collect(),
    );
    if !(1..=MOST_WORKERS).contains(&names.len()) {
        let message = format!("[{section}] names {} players", names.len());
        source.add(
            span,
            message,
            format!("write `name: file` for each of 1 to {MOST_WORKERS} players"),
        );
        return Vec::new();
    }
    let wanted: Vec<String> = options
        .workers
        .iter()
        .map(|name| name.to_lowercase())
        .collect();
    for name in wanted.iter().filter(|name| !names.contains(name)) {
        let known = listed(&names[..names.len().min(20)], "and");
        source.add(
            span,
            format!("[{section}] has no worker '{name}'"),
            format!("it has {known}"),
        );
    }
    let names = names
        .into_iter()
        .filter(|name| wanted.is_empty() || wanted.contains(name));
    names
        .filter_map(|name| Some((name.clone(), path(source, section, &name)?)))
        .collect()
}

fn path(source: &mut Source<'_>, section: &str, name: &str) -> Option<Value> {
    let value = source.get(section, name)?;
    let span = value.span;
    let path =
        |text: &str| (!text.is_empty() && !text.contains(['\0', '\n'])).then(|| text.to_string());
    let text = source.valid(
        value,
        path,
        "the path of a file",
        "write the path of the player's file",
    )?;
    Some(Value { text, span })
}

/// Reads a player's file.
///
/// # Errors
/// Faults of the file.
fn player(
    name: &str,
    file: &str,
    bytes: &[u8],
    options: &Options,
    budget: &mut usize,
) -> Result<Worker, Vec<Diagnostic>> {
    let mut source = Source::new(file, bytes, budget).map_err(|fault| vec![fault])?;
    source.misspelt_sections(&[
        "Master",
        "Coordinator",
        "Startup",
        "Run",
        "Collect",
        "Reset",
    ]);
    let addresses = addresses(&mut source);
    let phases = PHASES
        .map(|(name, phase)| (phase, steps(&mut source, name, phase, options.limit_s)))
        .into();
    let faults = source.faults();
    match addresses {
        Some((host, conductor, command_port, results_port)) if faults.is_empty() => {
            let (name, file) = (name.to_string(), file.to_string());
            Ok(Worker {
                name,
                file,
                host,
                conductor,
                command_port,
                results_port,
                phases,
            })
        }
        _ => Err(faults),
    }
}

/// Player, conductor, and the two ports.
fn addresses(source: &mut Source<'_>) -> Option<(String, String, u16, u16)> {
    let section = source.either(
        ["Master", "Coordinator"],
        "player, conductor, cmdport and resultsport",
    )?;
    let examples = ["192.0.2.1", "192.0.2.254", "6970", "6971"];
    let [player, conductor, command, results] =
        std::array::from_fn(|at| source.need(section, MASTER_KEYS[at], &MASTER_KEYS, examples[at]));
    let host = |text: &str| is_host(text).then(|| text.to_string());
    let mut host = |value| {
        source.valid(
            value?,
            host,
            "the address of a host",
            "write a name or an address",
        )
    };
    let (player, conductor) = (host(player), host(conductor));
    let port = |text: &str| u16::try_from(integer(text)?).ok().filter(|port| *port > 0);
    let mut port = |value| source.valid(value?, port, "a port", "write a number from 1 to 65535");
    let (command, results) = (port(command), port(results));
    Some((player?, conductor?, command?, results?))
}

/// Whether this may be a host's name or address. ssh would take one that begins with `-` for an option.
fn is_host(host: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "-._:%@[]".contains(c);
    !host.is_empty()
        && !host.starts_with('-')
        && host.chars().count() <= MOST_HOST
        && host.chars().all(fits)
}

/// The steps of a phase: its own, and behind them those of `[DEFAULT]`, which every phase has.
///
/// Only keys such as `step1` make steps of `[DEFAULT]`. Conductor makes one of everything there, and would run the value of
/// `cmdport` as a command in each phase.
fn steps(source: &mut Source<'_>, name: &str, phase: Phase, limit_s: u32) -> Vec<Step> {
    let Some(section) = source.ini.section(name) else {
        if !source.is_misspelt(name) {
            source.missing(
                format!("there is no section [{name}]"),
                format!("add [{name}]; it may be empty"),
            );
        }
        return Vec::new();
    };
    let defaults = source.ini.defaults();
    let is_shared =
        |entry: &&Entry| step::is_numbered(&entry.key) && section.get(&entry.key).is_none();
    let (mut steps, mut faults) = (Vec::new(), Vec::new());
    for entry in section
        .entries
        .iter()
        .chain(defaults.entries.iter().filter(is_shared))
    {
        let line = source.lines.place(entry.key_span.start).0;
        let expanded = interpolation::expand(&entry.value, section, defaults, source.budget);
        let step = expanded
            .map_err(|fault| fault.within(entry.value_span))
            .and_then(|command| {
                step::read(phase, &entry.key, &command, limit_s, line)
                    .map_err(|fault| fault.within(entry.key_span))
            });
        match step {
            Ok(step) => steps.push(step),
            Err(fault) => faults.push(fault),
        }
    }
    faults.into_iter().for_each(|fault| source.put(fault));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_ssh_can_be_given() {
        for host in [
            "192.168.5.1",
            "fe80::1%ix0",
            "[::1]",
            "lynx1",
            "root@lynx1.example",
            "münchen.example",
        ] {
            assert!(is_host(host), "{host}");
        }
        for host in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "a\u{7f}",
            "$(x)",
            &"a".repeat(300),
        ] {
            assert!(!is_host(host), "{host}");
        }
    }
}
