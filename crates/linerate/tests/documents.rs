//! Runs the commands in README.md and docs/*.md, and compares their output with that in the documents.
//!
//! A fenced `console` block is one shell script: its `$` lines run in one shell, in order, in the temporary folder of its
//! document, which has `testdata`. Output is compared in shape: numbers, units, line breaks and the figures of tables do not count, words, headings and
//! the first column do. A line `...` stands for anything. A block behind `<!-- not run: why -->` is left out, `make` is not run,
//! but its target must exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Seconds for one block. The longest shown takes some 15, alone.
const TIMEOUT: u32 = 600;
/// The document whose loads take minutes.
const QUESTIONS: &str = "docs/questions.md";
/// Between the outputs of a block's commands.
const MARK: &str = "=== end of command ===";
/// Words that go with a number, and change with its size.
const UNITS: [&str; 16] = [
    "ns", "us", "ms", "s", "min", "h", "thousand", "million", "billion", "pps", "kpps", "Mpps",
    "Gpps", "KiB", "MiB", "GiB",
];

struct Block {
    place: String,
    not_run: bool,
    /// Each with the output shown below it.
    commands: Vec<(String, String)>,
}

impl Block {
    fn needs_root(&self) -> bool {
        self.commands
            .iter()
            .any(|(command, _)| command.contains("sudo "))
    }

    fn is_make(&self) -> bool {
        self.commands
            .iter()
            .any(|(command, _)| command.starts_with("make "))
    }
}

fn documents() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(Path::new(ROOT).join("docs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect();
    all.push(Path::new(ROOT).join("README.md"));
    all.sort();
    all
}

fn blocks(name: &str, text: &str) -> Vec<Block> {
    let mut all = Vec::new();
    let (mut inside, mut not_run) = (false, false);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            if inside {
                let place = format!("{name}:{}", number + 1);
                all.push(Block {
                    place,
                    not_run,
                    commands: Vec::new(),
                });
            }
            not_run = false;
        } else if !inside {
            not_run = line.starts_with("<!-- not run: ") || (not_run && line.is_empty());
        } else if let Some(command) = line.strip_prefix("$ ") {
            let commands = &mut all.last_mut().unwrap().commands;
            commands.push((command.into(), String::new()));
        } else {
            let commands = &mut all.last_mut().unwrap().commands;
            let (_, output) = commands
                .last_mut()
                .expect("a console block begins with a command");
            *output += line;
            output.push('\n');
        }
    }
    assert!(!inside, "{name}: a block is not closed");
    all
}

/// Runs a block; the output of each of its commands, errors included.
fn run(block: &Block, folder: &Path) -> Vec<String> {
    let mut script = String::from("exec 2>&1\n");
    if is_root() {
        script += "sudo() { \"$@\"; }\n";
    }
    // Campaigns as short as they may be: the form of the output is compared, not its figures.
    script += "linerate() { case \"$1 $*\" in bench*--simulate*) command linerate \"$@\";; bench*--rate*) command linerate \"$@\" --duration 50ms;; bench*) command linerate \"$@\" --duration 20ms;; 'run run rules'*--quick*) command linerate \"$@\" --budget 6s;; *) command linerate \"$@\";; esac; }\n";
    for (command, _) in &block.commands {
        script += &format!("{command}\nprintf '%s\\n' '{MARK}'\n");
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    let path = format!(
        "{}:{}:/usr/sbin:/sbin",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("timeout")
        .args(["--kill-after=5", &TIMEOUT.to_string(), "sh", "-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .expect("timeout (coreutils) runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_ne!(
        output.status.code(),
        Some(124),
        "{}: not over after {TIMEOUT} s:\n{text}",
        block.place
    );
    // Linerates of other tests may measure.
    let of_others = |line: &&str| line.starts_with("linerate: waiting for another linerate ");
    let lines = text.split_inclusive('\n').filter(|line| !of_others(line));
    let text: String = lines.collect();
    let mut parts: Vec<String> = text.split(&format!("{MARK}\n")).map(String::from).collect();
    parts.pop(); // behind the last mark
    assert_eq!(
        parts.len(),
        block.commands.len(),
        "{}: the shell gave up:\n{text}",
        block.place
    );
    parts
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|o| o.stdout == b"0\n")
}

/// `#` for each number in a word, with signs, separators and SI prefix.
fn word(text: &str) -> String {
    let mut shape = String::new();
    let mut rest = text;
    while let Some(digit) = rest.find(|c: char| c.is_ascii_digit()) {
        let part = |c: char| c.is_ascii_digit() || "+-<>.,/".contains(c);
        let start = rest[..digit]
            .trim_end_matches(['+', '-', '<', '>', '.'])
            .len();
        let end = rest[digit..]
            .find(|c| !part(c))
            .map_or(rest.len(), |n| digit + n);
        shape += &rest[..start];
        shape.push('#');
        rest = &rest[end..];
        let unscaled = rest.trim_start_matches(['k', 'M', 'G', 'T']);
        if unscaled.starts_with("pps") || unscaled.starts_with("bit/s") {
            rest = unscaled;
        }
    }
    shape + rest
}

fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for text in text.split_whitespace() {
        let bare = text.trim_end_matches([',', '.', ';', ':', ')']);
        let word = if UNITS.contains(&bare) {
            "#".to_string()
        } else {
            word(text)
        };
        let number = word.trim_end_matches([',', '.', ';', ':', ')']) == "#";
        match (number, out.last()) {
            (true, Some(last)) if last == "#" => {}
            (true, _) => out.push("#".into()),
            _ => out.push(word),
        }
    }
    out
}

/// The parts of an output that must stay as they are. Line breaks do not count: they move with the length of the numbers.
fn shape(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        // A verdict is a figure, too: a busy machine hides small differences.
        let verdicts = [" slower than ", " faster than "];
        let decided = line.contains("..") && verdicts.iter().any(|verdict| line.contains(verdict));
        if decided || line.contains(" % slower and ") {
            out.push("(verdict)".into());
            continue;
        }
        // So is a met expectation: too few blocks leave it undecided.
        let line = match line.split_once("  ") {
            Some(("met" | "undecided", what)) => what,
            _ => line,
        };
        let cells: Vec<&str> = line
            .trim()
            .split("  ")
            .map(str::trim)
            .filter(|c| !c.is_empty())
            .collect();
        let is_number = |c: &&&str| c.contains(|c: char| c.is_ascii_digit()) && words(c) == ["#"];
        let row = cells.len() >= 3 && cells[1..].iter().filter(is_number).count() >= 2;
        for word in words(if row { cells[0] } else { line }) {
            if word != "#" || out.last().is_none_or(|last| last != "#") {
                out.push(word);
            }
        }
        if row {
            out.push("(row)".into());
        }
    }
    out
}

/// Whether `found` has the shape of `expected`, in which `...` stands for anything; otherwise how much of `expected`, in
/// words, was found.
fn fits(expected: &[String], found: &[String]) -> Result<(), usize> {
    let mut best = 0;
    // Where `...` was last, and how far its stretch reaches.
    let mut stretch: Option<(usize, usize)> = None;
    let (mut e, mut f) = (0, 0);
    while f < found.len() || e < expected.len() {
        best = best.max(e);
        if expected.get(e).is_some_and(|w| w == "...") {
            stretch = Some((e + 1, f));
            e += 1;
        } else if e < expected.len() && expected.get(e) == found.get(f) {
            (e, f) = (e + 1, f + 1);
        } else if let Some((after, from)) = stretch.filter(|(_, from)| *from < found.len()) {
            stretch = Some((after, from + 1));
            (e, f) = (after, from + 1);
        } else {
            return Err(best);
        }
    }
    Ok(())
}

fn check(block: &Block, folder: &Path) {
    for ((command, shown), found) in block.commands.iter().zip(run(block, folder)) {
        let (expected, actual) = (shape(shown), shape(&found));
        if let Err(at) = fits(&expected, &actual) {
            let (good, bad) = (
                expected[at.saturating_sub(12)..at].join(" "),
                &expected[at..],
            );
            let bad = bad[..bad.len().min(8)].join(" ");
            panic!(
                "{}: $ {command}\nprints something else than the document shows. Missing: `{bad}`, after `{good}`. \
                 It printed:\n{found}",
                block.place
            );
        }
    }
}

fn run_all(with_root: bool) {
    // Real loads come one after the other; the rest of a document waits for no other document.
    let documents = documents();
    let ran: usize = match with_root {
        true => documents
            .iter()
            .filter(|document| !document.ends_with(QUESTIONS))
            .map(|document| run_document(document, true))
            .sum(),
        false => std::thread::scope(|scope| {
            let all: Vec<_> = documents
                .iter()
                .map(|document| scope.spawn(|| run_document(document, false)))
                .collect();
            all.into_iter()
                .map(|ran| ran.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
                .sum()
        }),
    };
    assert!(
        ran >= 1,
        "no block was found: has the form of the documents changed?"
    );
}

/// Runs the blocks of a document in their order; how many there were.
fn run_document(document: &Path, with_root: bool) -> usize {
    let mut ran = 0;
    let name = document.file_name().unwrap().to_string_lossy().into_owned();
    let folder = std::env::temp_dir().join(format!(
        "linerate-{name}-{}-{with_root}",
        std::process::id()
    ));
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(Path::new(ROOT).join("testdata"), folder.join("testdata")).unwrap();
    for block in blocks(&name, &fs::read_to_string(document).unwrap()) {
        if !block.not_run && !block.is_make() && block.needs_root() == with_root {
            check(&block, &folder);
            ran += 1;
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    ran
}

#[test]
fn commands_without_root_print_what_the_documents_show() {
    run_all(false);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn commands_with_root_print_what_the_documents_show() {
    run_all(true);
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_questions_have_the_answers_that_are_shown() {
    assert!(run_document(&Path::new(ROOT).join(QUESTIONS), true) > 2);
}

#[test]
fn make_targets_and_linked_files_exist() {
    let makefile = fs::read_to_string(Path::new(ROOT).join("Makefile")).unwrap();
    let mut targets = 0;
    let more = ["ARCHITECTURE.md", "CHANGELOG.md"].map(|name| Path::new(ROOT).join(name));
    for document in documents().into_iter().chain(more) {
        let text = fs::read_to_string(&document).unwrap();
        for start in ["\n$ make ", "`make "] {
            for after in text.split(start).skip(1) {
                let target = after
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .next()
                    .unwrap();
                let found = makefile
                    .lines()
                    .any(|l| l.starts_with(&format!("{target}:")));
                assert!(
                    found,
                    "{}: the Makefile has no target {target}",
                    document.display()
                );
                targets += 1;
            }
        }
        for after in text.split("](").skip(1) {
            let link = after.split([')', '#']).next().unwrap();
            let file = document.parent().unwrap().join(link);
            assert!(
                link.contains("://") || file.exists(),
                "{}: no file {link}",
                document.display()
            );
        }
    }
    assert!(targets >= 2, "README.md names make bench and make test");
}

/// The comparison itself: differences that it must ignore, and differences that it must find.
#[test]
fn shapes_see_words_and_overlook_figures() {
    let same = |a: &str, b: &str| fits(&shape(a), &shape(b)).is_ok();
    let table = "        offered     95 %\nlengths    Mpps  Mpps  interval  limit\nbridge 64 B  1.49  1.47..1.51  0  DUT\n";
    let other = "        offered     95 %\nlengths    kpps  kpps  interval  limit\nbridge 64 B  812  too few  <0.001  tester\n";
    assert!(same(table, other));
    assert!(
        !same(table, &other.replace("bridge", "nat")),
        "the first column counts"
    );
    assert!(
        !same(table, &other.replace("limit", "bound")),
        "headings count"
    );
    assert!(
        !same(table, &format!("{other}nat 64 B  3  4  5\n")),
        "a row more is a difference"
    );
    let sentence =
        "forwards 1.49 million frames (95 % interval 1.4..1.5 million),\n671 ns per frame.\n";
    assert!(same(
        sentence,
        "forwards 972 thousand frames (95 % interval 940..989\nthousand), 1.03 us per frame.\n"
    ));
    assert!(!same(
        sentence,
        "forwards 972 thousand packets (95 % interval 940..989 thousand), 1 us per frame.\n"
    ));
    assert!(same("a\n...\nz 3\n", "a\nb\nc\nz 14,000\n") && same("...\n", "") && same("", ""));
    assert!(
        !same("a\n...\nz\n", "a\nb\n")
            && !same("a\n", "")
            && !same("", "a\n")
            && !same("...\nb\n", "b c\n")
    );
    assert!(same("52.5kpps 1Gbit/s", "1.2Mpps 30Mbit/s") && !same("52 pps", "52 frames"));
}
