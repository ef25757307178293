//! Advice as lines for files: a shell script, an Ansible playbook, a diff; and as a plan that tests it.

use crate::item::{Item, Lasting, Runtime, State};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A way to write the lines.
type Form = fn(&[&Item]) -> String;

/// Ways to write the lines, with their names.
pub const FORMS: [(&str, Form); 4] = [("shell", shell), ("ansible", ansible), ("diff", diff), ("plan", plan)];

/// The items that have lines.
pub fn with_lines(items: &[Item]) -> Vec<&Item> {
    items.iter().filter(|item| item.is_change()).collect()
}

/// The changes of files, each file's together and without repetitions: later lines of the same key win.
pub fn files<'a>(items: &[&'a Item]) -> BTreeMap<&'a str, Vec<&'a Lasting>> {
    let mut files: BTreeMap<&str, Vec<&Lasting>> = BTreeMap::new();
    for lasting in items.iter().flat_map(|item| &item.settings).filter_map(|setting| setting.lasting.as_ref())
    {
        let lines = files.entry(&lasting.file).or_default();
        lines.retain(|known| known.key != lasting.key);
        lines.push(lasting);
    }
    files
}

/// The text of a file after these changes; `None`: it is not there yet. Lines with a key go, the new ones come at the end, or first
/// where they must.
pub fn changed(text: Option<&str>, lines: &[&Lasting]) -> String {
    let bare = |line: &str| line.replace([' ', '\t'], "");
    let keys: Vec<String> = lines.iter().map(|lasting| bare(&lasting.key)).collect();
    let heading = || lines.iter().find_map(|lasting| lasting.heading.clone());
    let text = text.map_or_else(|| heading().unwrap_or_default(), String::from);
    let stays = |line: &&str| !keys.iter().any(|key| bare(line).starts_with(key.as_str()));
    let new = |first: bool| {
        lines
            .iter()
            .filter(move |lasting| lasting.first == first)
            .filter_map(|lasting| lasting.line.as_deref())
    };
    new(true).chain(text.lines().filter(stays)).chain(new(false)).flat_map(|line| [line, "\n"]).collect()
}

/// A word that every shell takes as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The head of an item: comments.
fn head(item: &Item, indent: &str) -> String {
    let measure = if item.state == State::Measure {
        " (measure it: it helps some machines and harms others)"
    } else {
        ""
    };
    format!("{indent}# {}: {}{measure}\n", item.id, item.title)
}

/// Changes a file: the line takes the place of those that begin with the key, blanks aside.
const KEEP: &str = r#"
# For the next boot: keep FILE KEY [LINE [first]]
keep() {
	[ -e "$1" ] || : >"$1"
	{
		[ "${4-}" != first ] || printf '%s\n' "$3"
		awk -v k="$2" '{ s = $0; gsub(/[ \t]/, "", s); gsub(/[ \t]/, "", k) } index(s, k) != 1' "$1"
		[ $# -ne 3 ] || printf '%s\n' "$3"
	} >"$1.new"
	cat "$1.new" >"$1"
	rm "$1.new"
}
"#;

/// A script for /bin/sh: the changes of the running system, then those of the files. A line takes the place of those with its key.
pub fn shell(items: &[&Item]) -> String {
    let mut out =
        String::from("#!/bin/sh\n# Advice of linerate. Read it before you run it as root.\nset -eu\n\n");
    for item in items {
        out += &head(item, "");
        for runtime in item.settings.iter().filter_map(|setting| setting.runtime.as_ref()) {
            let _ = match (runtime, runtime.argv()) {
                (_, Some(argv)) => {
                    writeln!(out, "{}", argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
                }
                (Runtime::File { path, value }, None) => match path.contains('*') {
                    // A pattern of paths: `for` expands it.
                    true => writeln!(out, "for f in {path}; do echo {} >\"$f\"; done", quoted(value)),
                    false => writeln!(out, "echo {} >{}", quoted(value), quoted(path)),
                },
                _ => Ok(()),
            };
        }
    }
    let files = files(items);
    if !files.is_empty() {
        out += KEEP;
    }
    for (file, lines) in files {
        if let Some(heading) = lines.iter().find_map(|lasting| lasting.heading.as_ref()) {
            let _ = writeln!(out, "[ -e {0} ] || printf '%s\\n' {1} >{0}", quoted(file), quoted(heading));
        }
        for lasting in lines {
            let first = lasting.first.then_some("first");
            let words: Vec<String> = [Some(file), Some(lasting.key.as_str()), lasting.line.as_deref(), first]
                .into_iter()
                .flatten()
                .map(quoted)
                .collect();
            let _ = writeln!(out, "keep {}", words.join(" "));
        }
    }
    out
}

/// A playbook. Texts are JSON strings, which YAML reads too.
pub fn ansible(items: &[&Item]) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut out = String::from("# Advice of linerate.\n- hosts: all\n  become: true\n  tasks:\n");
    for item in items {
        out += &head(item, "    ");
        for runtime in item.settings.iter().filter_map(|setting| setting.runtime.as_ref()) {
            let argv = match (runtime, runtime.argv()) {
                (_, Some(argv)) => argv,
                (Runtime::File { path, value }, _) => {
                    ["sh", "-c", "for f in $1; do echo \"$2\" >\"$f\"; done", "sh", path, value]
                        .map(String::from)
                        .into()
                }
                _ => continue,
            };
            let argv: Vec<String> = argv.iter().map(|word| text(word)).collect();
            let _ = writeln!(
                out,
                "    - name: {}\n      ansible.builtin.command:\n        argv: [{}]",
                text(&item.title),
                argv.join(", ")
            );
        }
    }
    for (file, lines) in files(items) {
        if let Some(heading) = lines.iter().find_map(|lasting| lasting.heading.as_ref()) {
            let content = format!("{heading}\n");
            let _ = writeln!(
                out,
                "    - name: {}\n      ansible.builtin.copy:\n        dest: {}\n        content: {}\n        force: false",
                text(&format!("{file} exists")),
                text(file),
                text(&content)
            );
        }
        for lasting in lines {
            let pattern = format!("^\\s*{}", pattern(&lasting.key));
            let _ = writeln!(
                out,
                "    - name: {}\n      ansible.builtin.lineinfile:\n        path: {}\n        regexp: {}",
                text(&format!("{file}: {}", lasting.line.as_deref().unwrap_or(&lasting.key))),
                text(file),
                text(&pattern)
            );
            let _ = match &lasting.line {
                Some(line) => {
                    let place = if lasting.first { "\n        insertbefore: BOF" } else { "" };
                    writeln!(out, "        line: {}{place}\n        create: true", text(line))
                }
                None => writeln!(out, "        state: absent"),
            };
        }
    }
    out
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

/// A diff to read: the lines that go, where the facts have them, and those that come. It names no line numbers.
pub fn diff(items: &[&Item]) -> String {
    let mut out = String::new();
    for (file, lines) in files(items) {
        let _ = writeln!(out, "--- {file}\n+++ {file}\n@@ @@");
        if let Some(heading) = lines.iter().find_map(|lasting| lasting.heading.as_ref()) {
            let _ = heading.lines().try_for_each(|line| writeln!(out, "+{line}"));
        }
        for lasting in lines {
            let _ = lasting.was.iter().try_for_each(|was| writeln!(out, "-{was}"));
            let _ = lasting.line.iter().try_for_each(|line| writeln!(out, "+{line}"));
        }
    }
    out
}

/// A plan for `linerate tune`: the DUT with the present values, and a variant for each item that a plan can make. Items of other
/// systems than Linux need the hosts of a lab file.
pub fn plan(items: &[&Item]) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let table = |values: &serde_json::Map<String, serde_json::Value>| {
        let pairs: Vec<String> =
            values.iter().map(|(name, value)| format!("{} = {value}", text(name))).collect();
        format!("{{ {} }}", pairs.join(", "))
    };
    let system = items.first().and_then(|item| item.id.split('-').next()).unwrap_or("linux");
    let mut out = String::from(
        "title = \"Recommended settings\"\nquestion = \"Which of them make this DUT faster?\"\nsource = \"linerate advise\"\n",
    );
    if system != "linux" {
        let _ = writeln!(out, "\n[lab]\nfile = \"lab.toml\"\nsystems = [{}]", text(system));
    }
    let changes = items.iter().filter_map(|item| Some((item, item.patch.as_ref()?.as_object()?)));
    let changes: Vec<_> = changes.collect();
    // The present values of the settings that variants change.
    let now =
        changes.iter().flat_map(|(item, _)| &item.settings).filter_map(|setting| match &setting.runtime {
            Some(Runtime::Sysctl { name, .. }) => {
                let value = setting.now.as_ref()?;
                Some((
                    name.clone(),
                    value.parse::<i64>().map_or_else(|_| value.as_str().into(), serde_json::Value::from),
                ))
            }
            _ => None,
        });
    let now: serde_json::Map<_, _> = now.collect();
    out += "\n[variants.as-it-is]\nabout = \"the present values\"\n";
    if !now.is_empty() {
        let _ = writeln!(out, "sysctls = {}", table(&now));
    }
    for (item, patch) in changes {
        let _ = writeln!(out, "\n[variants.{}]\nfrom = \"as-it-is\"\nabout = {}", item.id, text(&item.title));
        for (key, values) in patch.iter().filter_map(|(key, values)| Some((key, values.as_object()?))) {
            let _ = writeln!(out, "{key} = {}", table(values));
        }
    }
    // In a lab of hosts a trial is long, and loader tunables need boots.
    out += match system {
        "linux" => "\n[trials]\nduration = \"100 ms\"\nbudget = \"4 min\"\n",
        _ => "\n[trials]\nduration = \"30 s\"\nblocks = 10\npause = \"5 s\"\nreboot = \"when-needed\"\n",
    };
    out
}
