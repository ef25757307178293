//! The main file of a test: how many trials, and which players.

use super::interpolation::Budget;
use super::source::{Source, tell, text};
use super::value::integer;
use super::{Form, MOST_TRIALS, MOST_WORKERS, Options};
use linerate_plan::diagnostic::{Diagnostic, Span, listed};

/// Keys of `[Test]` that Conductor knows.
const KEYS: [&str; 4] = ["trials", "format", "output", "max_message_size"];

/// Values of `[Test]`.
pub(super) struct Head {
    pub(super) trials: u32,
    pub(super) form: Option<Form>,
}

/// A player's file.
pub(super) struct Player<'a> {
    /// The worker's name in the main file.
    pub(super) name: &'a str,
    /// Its path as the main file has it.
    pub(super) file: &'a str,
    pub(super) bytes: &'a [u8],
}

/// A function that gives the bytes of a file.
type Files<'f> = &'f dyn Fn(&str) -> Result<Vec<u8>, String>;
/// A function that takes each player's file.
type Each<'f> = &'f mut dyn FnMut(&Player<'_>, &mut Budget);

/// Reads the main file, and passes on the files of the selected players, one at a time. Returns the values of `[Test]`.
pub(super) fn read(
    main: &str,
    options: &Options,
    file: Files<'_>,
    budget: &mut Budget,
    faults: &mut Vec<Diagnostic>,
    each: Each<'_>,
) -> Option<Head> {
    let bytes = file(main).map_err(|why| {
        let problem = Diagnostic::at(Span::default(), format!("cannot be read: {why}"));
        tell(main, problem, faults);
    });
    let bytes = bytes.ok()?;
    let mut source = Source::new(main, text(main, &bytes, faults)?, budget);
    let head = if is_player(&source) {
        let help = "give the file with [Test] and [Clients] or [Workers], which names this one";
        source.problems.add(Span::default(), "this is the file of a player, not of a test", help);
        None
    } else {
        source.misspelt_sections(&["Test", "Clients", "Workers"]);
        let trials = trials(&mut source);
        let form = form(&mut source);
        workers(&mut source, options, file, each);
        trials.map(|trials| Head { trials, form })
    };
    source.problems.tell(faults);
    head
}

fn is_player(source: &Source<'_>) -> bool {
    let has = |name: &&str| source.ini.section(name).is_some();
    !["Test", "Clients", "Workers"].iter().any(has) && ["Startup", "Run", "Collect", "Reset"].iter().any(has)
}

fn trials(source: &mut Source<'_>) -> Option<u32> {
    if source.ini.section("Test").is_none() {
        let end = source.problems.end();
        source.problems.add(end, "there is no section [Test]", "add [Test] with `trials: 1`");
        return None;
    }
    source.optional("Test", "trials", &KEYS);
    // Without the key, Conductor has run one trial since 2025.
    let Some(value) = source.get("Test", "trials") else { return Some(1) };
    let (message, help) = match integer(&value.text) {
        Some(n) if (1..=i64::from(MOST_TRIALS)).contains(&n) => return u32::try_from(n).ok(),
        Some(n) if n > 0 => (format!("{} trials are too many", value.text), format!("at most {MOST_TRIALS}")),
        Some(_) => (format!("{} is not a number of trials", value.text), "write 1 or more".to_string()),
        None => {
            (format!("'{}' is not a number of trials", value.text), "write a whole number, such as 10".into())
        }
    };
    source.problems.add(value.span, message, help);
    None
}

/// How results are to be shown: a key of 2025.
fn form(source: &mut Source<'_>) -> Option<Form> {
    let value = source.get("Test", "format")?;
    match value.text.as_str() {
        "text" => Some(Form::Text),
        "json" => Some(Form::Json),
        other => {
            let message = format!("'{other}' is not a format of results");
            source.problems.add(value.span, message, "write text or json");
            None
        }
    }
}

fn workers(source: &mut Source<'_>, options: &Options, file: Files<'_>, each: Each<'_>) {
    let Some(section) = source.either(["Clients", "Workers"], "`name: file` for each player") else { return };
    let all = source.ini.section(section).expect("it has just been found");
    let (span, names): (Span, Vec<String>) =
        (all.span, all.entries.iter().map(|entry| entry.key.clone()).collect());
    if names.is_empty() {
        let help = "add `name: file` for each player";
        return source.problems.add(span, format!("[{section}] names no player"), help);
    }
    if names.len() > MOST_WORKERS {
        let message = format!("[{section}] names {} players: at most {MOST_WORKERS}", names.len());
        return source.problems.add(span, message, "make several tests of it");
    }
    let wanted: Vec<String> = options.workers.iter().map(|name| name.to_lowercase()).collect();
    for name in wanted.iter().filter(|name| !names.contains(name)) {
        let message = format!("[{section}] has no worker '{name}'");
        source.problems.add(
            span,
            message,
            format!("it has {}", listed(&names[..names.len().min(20)], "and")),
        );
    }
    for name in names.iter().filter(|name| wanted.is_empty() || wanted.contains(name)) {
        worker(source, section, name, file, each);
    }
}

fn worker(source: &mut Source<'_>, section: &str, name: &str, file: Files<'_>, each: Each<'_>) {
    let Some(path) = source.get(section, name) else { return };
    if path.text.is_empty() {
        let message = format!("'{name}' has no file");
        return source.problems.add(path.span, message, "write the path of the player's file");
    }
    if path.text.contains(['\0', '\n']) {
        return source.problems.add(path.span, format!("this is not a path of '{name}'"), "write one path");
    }
    match file(&path.text) {
        Ok(bytes) if !source.budget.file(bytes.len()) => {
            let message = "the players' files are too much together";
            source.problems.add(path.span, message, "put long commands into scripts on the hosts");
        }
        Ok(bytes) => each(&Player { name, file: &path.text, bytes: &bytes }, source.budget),
        Err(why) => {
            let message = format!("the player's file {} cannot be read: {why}", path.text);
            source.problems.add(path.span, message, "put it beside this file, or write its path");
        }
    }
}
