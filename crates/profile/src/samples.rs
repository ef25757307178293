//! Stacks that other tools print with the innermost function first.

use crate::Profile;
use std::io::{self, BufRead, Read, Write};

/// Bytes of a line at most. The rest of a longer one counts as another line.
const LONGEST: u64 = 64 << 10;
/// Functions of a stack at most.
const DEEPEST: usize = 1024;

/// The functions of one stack, the innermost first.
#[derive(Default)]
struct Stack(Vec<String>);

impl Stack {
    fn push(&mut self, name: &str) {
        if self.0.len() < DEEPEST {
            self.0.push(name.replace(';', ":"));
        }
    }

    /// Ends the stack: it goes into the profile.
    fn count(&mut self, samples: u64, profile: &mut Profile) {
        if !self.0.is_empty() {
            let names: Vec<String> = self.0.drain(..).rev().collect();
            profile.add(&names.join(";"), samples);
        }
    }
}

/// Calls `each` with each line, without its end.
pub(crate) fn lines(input: &mut impl BufRead, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    while input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? > 0 {
        each(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(())
}

pub(crate) fn write(profile: &Profile, output: &mut impl Write) -> io::Result<()> {
    profile
        .lines()
        .iter()
        .try_for_each(|line| writeln!(output, "{line}"))
}

/// Stacks of DTrace's `stack()`: a function on each indented line, then a line with the number of samples.
pub(crate) fn fold_dtrace(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let (mut profile, mut stack) = (Profile::default(), Stack::default());
    lines(input, |line| match line.trim_start() {
        "" => stack.0.clear(),
        text => match text.parse() {
            Ok(samples) => stack.count(samples, &mut profile),
            Err(_) if text.len() < line.len() => stack.push(without_offset(text)),
            Err(_) => stack.0.clear(),
        },
    })?;
    write(&profile, output)
}

/// Whether a line begins the entry of a map of btrace or bpftrace whose key is a stack: `@[`, `@name[`.
pub(crate) fn begins_entry(line: &str) -> bool {
    line.trim_start_matches("^C").starts_with('@') && line.ends_with('[')
}

/// Maps of stacks of btrace(8) and bpftrace: `@[`, a function on each line, and `]: 12` on a line of its own or behind the last
/// function. Further parts of a key, `, swapper/0]: 12`, are left out.
pub(crate) fn fold_btrace(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let (mut profile, mut stack, mut is_open) = (Profile::default(), Stack::default(), false);
    lines(input, |line| {
        if begins_entry(line) {
            stack.0.clear();
            is_open = true;
        } else if is_open {
            let end = line
                .rsplit_once("]: ")
                .and_then(|(last, n)| Some((last, n.parse().ok()?)));
            let (text, samples) = end.map_or((line, None), |(last, samples)| (last, Some(samples)));
            match text.trim_start() {
                "" => {}
                key if key.starts_with(',') => {}
                function => stack.push(without_count(without_offset(function))),
            }
            if let Some(samples) = samples {
                stack.count(samples, &mut profile);
                is_open = false;
            }
        }
    })?;
    write(&profile, output)
}

/// Samples of `perf script`: a line with the command, and an indented line for each function. The command is the outermost one.
pub(crate) fn fold_perf(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let (mut profile, mut stack, mut command) =
        (Profile::default(), Stack::default(), String::new());
    let end = |stack: &mut Stack, command: &mut String, profile: &mut Profile| {
        if !command.is_empty() && !stack.0.is_empty() {
            stack.push(command);
        }
        stack.count(1, profile);
        command.clear();
    };
    lines(input, |line| {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with('#') {
            end(&mut stack, &mut command, &mut profile);
        } else if text.len() == line.len() {
            end(&mut stack, &mut command, &mut profile);
            command = command_of(line);
        } else if let Some((_, function)) = text.split_once(' ') {
            stack.push(&function_of(function.trim_start()));
        }
    })?;
    end(&mut stack, &mut command, &mut profile);
    write(&profile, output)
}

/// `ksoftirqd/0     9 [000] 158665.571607: cpu-clock:`: everything before the first word that is a process number.
fn command_of(line: &str) -> String {
    let is_process = |word: &&str| {
        word.split('/')
            .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let words: Vec<&str> = line
        .split_whitespace()
        .take_while(|word| !is_process(word))
        .collect();
    words.join("_")
}

/// `ip_input+0x12 ([kernel.kallsyms])`. Without a symbol, the name of the file in brackets stands for the function.
fn function_of(text: &str) -> String {
    let (symbol, file) = text.rsplit_once(" (").unwrap_or((text, ""));
    let file = file
        .trim_end_matches(')')
        .rsplit('/')
        .next()
        .unwrap_or("")
        .trim_matches(['[', ']']);
    match without_offset(symbol.trim()) {
        "[unknown]" if !file.is_empty() && file != "unknown" => format!("[{file}]"),
        symbol => symbol.into(),
    }
}

/// bpftrace writes offsets in decimal.
fn without_count(text: &str) -> &str {
    let offset = |(_, offset): &(&str, &str)| {
        !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_digit())
    };
    text.rsplit_once('+')
        .filter(offset)
        .map_or(text, |(name, _)| name)
}

fn without_offset(text: &str) -> &str {
    text.rsplit_once("+0x").map_or(text, |(name, _)| name)
}
