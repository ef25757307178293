//! Advice as lines for files: a shell script, an Ansible playbook, a diff; and as a plan that tests it.

mod plan;

use crate::Path;
use crate::item::{Item, Lasting, Setting, State};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

pub use plan::plan;

/// Items to be written as lines.
#[derive(Debug, Default)]
pub struct Chosen<'a> {
    pub items: Vec<&'a Item>,
    /// Items to be measured first, or to be decided about: their lines are comments.
    pub open: Vec<&'a Item>,
    /// Whether a person has chosen the items by their names.
    pub named: bool,
    /// The path that an end host is tested on.
    pub path: Option<Path>,
    /// Texts of files that change, by path; `None`: there is no such file. Those that are not here are not known.
    pub texts: BTreeMap<String, Option<String>>,
}

impl<'a> Chosen<'a> {
    /// The items that have lines. `named`: a person has chosen them, also those that are to be measured.
    pub fn of(items: &'a [Item], named: bool) -> Chosen<'a> {
        let changes = items.iter().filter(|item| item.is_change());
        let is_open = |item: &&Item| item.state == State::Measure || item.reserve.is_some();
        let (open, items) = changes.partition(|item| !named && is_open(item));
        Chosen {
            items,
            open,
            named,
            ..Chosen::default()
        }
    }
}

/// A way to write the lines.
type Form = fn(&Chosen) -> String;

/// Ways to write the lines, with their names.
pub const FORMS: [(&str, Form); 4] = [
    ("shell", shell),
    ("ansible", ansible),
    (DIFF, diff),
    ("plan", plan),
];
/// The one that needs the texts of files.
pub const DIFF: &str = "diff";

/// The changes of files, each file's together and without repetitions: later lines of the same key win.
pub fn files<'a>(items: &[&'a Item]) -> BTreeMap<&'a str, Vec<&'a Lasting>> {
    let mut files: BTreeMap<&str, Vec<&Lasting>> = BTreeMap::new();
    for lasting in items
        .iter()
        .flat_map(|item| &item.settings)
        .filter_map(|setting| setting.lasting.as_ref())
    {
        let lines = files.entry(&lasting.file).or_default();
        lines.retain(|known| known.key != lasting.key);
        lines.push(lasting);
    }
    files
}

/// Words that rules of pf.conf(5) begin with, as a regular expression. Options must come before.
const RULES: &str =
    "table|altq|queue|match|scrub|no|nat|rdr|binat|pass|block|anchor|antispoof|load|include";

/// The lines of a file and what becomes of them: ` ` stays, `-` goes, `+` comes. Lines with a key go, the new ones come at the end, or
/// before the rules where they must. `None`: the file is not there yet.
fn edits<'a>(text: Option<&'a str>, lines: &[&'a Lasting]) -> Vec<(char, &'a str)> {
    let bare = |line: &str| line.replace([' ', '\t'], "");
    let keys: Vec<String> = lines.iter().map(|lasting| bare(&lasting.key)).collect();
    let goes = |line: &str| keys.iter().any(|key| bare(line).starts_with(key.as_str()));
    let new = |option: bool| {
        let of = lines.iter().filter(move |lasting| lasting.option == option);
        of.filter_map(|lasting| Some(('+', lasting.line.as_deref()?)))
    };
    let heading = text
        .is_none()
        .then(|| lines.iter().find_map(|lasting| lasting.heading.as_deref()))
        .flatten();
    let is_rule = |line: &str| {
        RULES
            .split('|')
            .any(|word| line.trim_start().starts_with(word))
    };
    let all: Vec<&str> = text.unwrap_or_default().lines().collect();
    let rules = all
        .iter()
        .position(|line| is_rule(line))
        .unwrap_or(all.len());
    let old = |lines: &[&'a str]| {
        lines
            .iter()
            .map(|line| (if goes(line) { '-' } else { ' ' }, *line))
            .collect::<Vec<_>>()
    };
    let (before, behind) = (old(&all[..rules]), old(&all[rules..]));
    let heading = heading
        .into_iter()
        .flat_map(str::lines)
        .map(|line| ('+', line));
    heading
        .chain(before)
        .chain(new(true))
        .chain(behind)
        .chain(new(false))
        .collect()
}

/// The text of a file after these changes; `None`: it is not there yet.
pub fn changed(text: Option<&str>, lines: &[&Lasting]) -> String {
    edits(text, lines)
        .into_iter()
        .filter(|(sign, _)| *sign != '-')
        .flat_map(|(_, line)| [line, "\n"])
        .collect()
}

/// A word that every shell takes as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Text before the lines of an item that is to be measured, or decided about.
fn measure(item: &Item) -> String {
    if let Some(reserve) = &item.reserve {
        return format!("Comments, because {reserve}");
    }
    let test = item
        .test()
        .map_or(String::new(), |test| format!(": {test}"));
    format!("It helps some machines and harms others: measure it first{test}")
}

/// Settings that a person must make in a menu, as comments.
fn by_hand(item: &Item, indent: &str) -> String {
    let one = |setting: &Setting| {
        let (place, wanted) = (setting.place.as_ref()?, setting.wanted.as_ref()?);
        Some(format!(
            "{indent}# to last, in {place}: {} = {wanted}\n",
            setting.name
        ))
    };
    item.settings.iter().filter_map(one).collect()
}

/// Lines as comments.
fn commented(lines: &str) -> String {
    lines.lines().map(|line| format!("# {line}\n")).collect()
}

/// All items, one after the other: those to be measured as comments.
fn each(chosen: &Chosen, indent: &str, one: impl Fn(&Item) -> String) -> String {
    let head = |item: &Item| format!("\n{indent}# {}: {}\n", item.id, item.title);
    let live = chosen.items.iter().map(|item| head(item) + &one(item));
    let open = chosen.open.iter();
    let open = open.map(|item| {
        format!(
            "{}{indent}# {}\n{}",
            head(item),
            measure(item),
            commented(&one(item))
        )
    });
    live.chain(open).collect()
}

/// Functions of the script. A line of a file takes the place of those that begin with its key, blanks aside.
const FUNCTIONS: &str = r#"#!/bin/sh
# Advice of linerate. Read it before you run it as root. A change that fails is named, and the others are made.
set -u
failed=0
try() { "$@" || { failed=1; echo "failed: $*" >&2; }; }
# put VALUE FILE...
put() { v=$1; shift; for f; do echo "$v" >"$f" || return; done; }
# For the next boot: begin FILE HEADING; keep FILE KEY [LINE [BEFORE]]
begin() { [ -e "$1" ] || printf '%s\n' "$2" >"$1"; }
keep() {
	[ -e "$1" ] || : >"$1" || return
	awk -v k="$2" -v new="${3-}" -v before="${4-}" 'BEGIN { gsub(/[ \t]/, "", k) }
		{ s = $0; gsub(/[ \t]/, "", s) }
		index(s, k) == 1 { next }
		before != "" && new != "" && $0 ~ before { print new; new = "" }
		{ print }
		END { if (new != "") print new }' "$1" >"$1.new" && cat "$1.new" >"$1" && rm "$1.new"
}
"#;

/// A script for /bin/sh: of each item the changes of the running system, then those of the files.
pub fn shell(chosen: &Chosen) -> String {
    let line = |words: &[&str]| {
        format!(
            "try {}\n",
            words
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" ")
        )
    };
    let one = |item: &Item| {
        let mut out = String::new();
        for runtime in item
            .settings
            .iter()
            .filter_map(|setting| setting.runtime.as_ref())
        {
            out += &match runtime.argv() {
                Ok(argv) => line(&argv.iter().map(String::as_str).collect::<Vec<_>>()),
                // The shell expands a pattern of paths.
                Err((path, value)) => format!("try put {} {path}\n", quoted(value)),
            };
        }
        out += &by_hand(item, "");
        for (file, lines) in files(&[item]) {
            let heading = lines.iter().find_map(|lasting| lasting.heading.as_deref());
            out += &heading.map_or(String::new(), |heading| line(&["begin", file, heading]));
            for lasting in lines {
                let before = lasting.option.then(|| format!("^[ \t]*({RULES})"));
                let words = ["keep", file, &lasting.key]
                    .into_iter()
                    .chain(lasting.line.as_deref());
                out += &line(&words.chain(before.as_deref()).collect::<Vec<_>>());
            }
        }
        out
    };
    format!("{FUNCTIONS}{}\nexit $failed\n", each(chosen, "", one))
}

/// A JSON string, which YAML and TOML read too.
fn text(plain: &str) -> String {
    Value::from(plain).to_string()
}

/// A playbook.
pub fn ansible(chosen: &Chosen) -> String {
    let one = |item: &Item| {
        let mut out = String::new();
        for runtime in item
            .settings
            .iter()
            .filter_map(|setting| setting.runtime.as_ref())
        {
            let argv = runtime.argv().unwrap_or_else(|(path, value)| {
                let script = "for f in $1; do echo \"$2\" >\"$f\" || exit 1; done";
                ["sh", "-c", script, "sh", path, value]
                    .map(String::from)
                    .into()
            });
            let argv: Vec<String> = argv.iter().map(|word| text(word)).collect();
            let _ = writeln!(
                out,
                "    - name: {}\n      ansible.builtin.command:\n        argv: [{}]",
                text(&item.title),
                argv.join(", ")
            );
        }
        out += &by_hand(item, "    ");
        for (file, lines) in files(&[item]) {
            if let Some(heading) = lines.iter().find_map(|lasting| lasting.heading.as_ref()) {
                let _ = writeln!(
                    out,
                    "    - name: {}\n      ansible.builtin.copy:\n        dest: {}\n        content: {}\n        force: false",
                    text(&format!("{file} exists")),
                    text(file),
                    text(&format!("{heading}\n"))
                );
            }
            for lasting in lines {
                let _ = writeln!(
                    out,
                    "    - name: {}\n      ansible.builtin.lineinfile:\n        path: {}\n        regexp: {}",
                    text(&format!(
                        "{file}: {}",
                        lasting.line.as_deref().unwrap_or(&lasting.key)
                    )),
                    text(file),
                    text(&format!("^\\s*{}", pattern(&lasting.key)))
                );
                let _ = match &lasting.line {
                    Some(line) => {
                        let before = || {
                            format!(
                                "\n        insertbefore: {}\n        firstmatch: true",
                                text(&format!("^\\s*({RULES})"))
                            )
                        };
                        let place = if lasting.option {
                            before()
                        } else {
                            String::new()
                        };
                        writeln!(
                            out,
                            "        line: {}{place}\n        create: true",
                            text(line)
                        )
                    }
                    None => writeln!(out, "        state: absent"),
                };
            }
        }
        out
    };
    let none = if chosen.items.is_empty() { " []" } else { "" };
    format!(
        "# Advice of linerate.\n- hosts: all\n  become: true\n  tasks:{none}\n{}",
        each(chosen, "    ", one)
    )
}

/// The key as a regular expression, with blanks before `=`.
fn pattern(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        match c {
            '=' => out.push_str("\\s*="),
            ' ' => out.push_str("\\s+"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            c => out.extend(['\\', c]),
        }
    }
    out
}

/// A diff for `patch -d / -p1`. Lines of a file whose text is not known, and of items to be measured, are comments.
pub fn diff(chosen: &Chosen) -> String {
    let mut out = String::new();
    for (file, lines) in files(&chosen.items) {
        out += &match chosen.texts.get(file) {
            Some(text) => unified(file, text.as_deref(), &lines),
            None => format!(
                "# The text of {file} is not known here. By hand:\n{}",
                comments(file, &lines)
            ),
        };
    }
    for item in &chosen.open {
        let lines: String = files(&[item])
            .iter()
            .map(|(file, lines)| comments(file, lines))
            .collect();
        if !lines.is_empty() {
            let _ = write!(
                out,
                "# {}: {}. {}\n{lines}",
                item.id,
                item.title,
                measure(item)
            );
        }
    }
    out
}

/// `# FILE: -LINE`, `# FILE: +LINE`
fn comments(file: &str, lines: &[&Lasting]) -> String {
    let line = |sign: char, line: &String| format!("# {file}: {sign}{line}\n");
    let of = |lasting: &&Lasting| {
        let [was, line] = [('-', &lasting.was), ('+', &lasting.line)]
            .map(|(sign, text)| text.iter().map(|text| line(sign, text)).collect::<String>());
        was + &line
    };
    lines.iter().map(of).collect()
}

/// The changes of a file with three lines around each, as diff(1) writes them with -u. Empty where nothing changes.
fn unified(file: &str, text: Option<&str>, lines: &[&Lasting]) -> String {
    const AROUND: usize = 3;
    const CUT: &str = "\n\\ No newline at end of file";
    let mut edits: Vec<(char, String)> = edits(text, lines)
        .into_iter()
        .map(|(sign, line)| (sign, line.to_string()))
        .collect();
    // A last line without its end gets one.
    let cut = text.is_some_and(|text| !text.is_empty() && !text.ends_with('\n'));
    if let Some(at) = edits
        .iter()
        .rposition(|(sign, _)| *sign != '+')
        .filter(|_| cut)
    {
        if edits[at].0 == ' ' {
            edits.insert(at + 1, ('+', edits[at].1.clone()));
        }
        edits[at] = ('-', edits[at].1.clone() + CUT);
    }
    let near = |at: usize| {
        let end = edits.len().min(at + AROUND + 1);
        edits[at.saturating_sub(AROUND)..end]
            .iter()
            .any(|(sign, _)| *sign != ' ')
    };
    let (mut out, mut before, mut after, mut at) = (String::new(), 0, 0, 0);
    while at < edits.len() {
        let end = (at..edits.len())
            .find(|at| !near(*at))
            .unwrap_or(edits.len());
        let count = |sign: char| {
            edits[at..end]
                .iter()
                .filter(|(of, _)| [' ', sign].contains(of))
                .count()
        };
        let (old, new) = (count('-'), count('+'));
        if end > at {
            // An empty range is behind the line that it names.
            let from = |before: usize, n: usize| before + usize::from(n > 0);
            let _ = writeln!(
                out,
                "@@ -{},{old} +{},{new} @@",
                from(before, old),
                from(after, new)
            );
            edits[at..end]
                .iter()
                .for_each(|(sign, line)| out += &format!("{sign}{line}\n"));
        }
        (before, after, at) = (
            before + old + usize::from(end == at),
            after + new + usize::from(end == at),
            end.max(at + 1),
        );
    }
    let from = if text.is_some() { file } else { "/dev/null" };
    if out.is_empty() {
        out
    } else {
        format!("--- {from}\n+++ {file}\n{out}")
    }
}
