//! The shell: values, as a real `sh` computes them, and refusals.

use crate::benchlab::values::Values;
use linerate_plan::Diagnostic;

fn values(text: &str) -> Values {
    let mut values = Values::default();
    let problems = values.read(text, "t");
    assert!(problems.is_empty(), "{problems:#?}");
    values
}

fn problems(text: &str) -> Vec<Diagnostic> {
    Values::default().read(text, "t")
}

#[track_caller]
fn is(text: &str, name: &str, value: &str) {
    let values = values(text);
    let found = &values
        .get(name)
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .text;
    assert_eq!(found.as_deref(), Ok(value), "{text}");
}

#[test]
fn quotes_escapes_and_continued_lines() {
    is("A=plain", "A", "plain");
    is("A='a $B `c` \\d'", "A", "a $B `c` \\d");
    is("A=\"a \\\"b\\\" \\$c \\d\"", "A", "a \"b\" $c \\d");
    is("A=a\\ b", "A", "a b");
    is("A=\"one \\\n two\"", "A", "one  two");
    is("A=one\\\ntwo", "A", "onetwo");
    is("A=\"two\nlines\"", "A", "two\nlines");
    is("A=a'b'\"c\"", "A", "abc");
    is("A=", "A", "");
    is("A=1 B=2;C=3 # A=4\n# A=5", "C", "3");
    is("A=a#b", "A", "a#b");
    is("A=1\r\nB=2\r\n", "A", "1");
    is("A=\"100 $\"", "A", "100 $");
}

#[test]
fn variables_and_their_defaults() {
    is("A=1\nB=${A}2$A", "B", "121");
    is(": ${A:=\"x\"}\n: ${A:=\"y\"}", "A", "x");
    is("A=\n: ${A:=x}", "A", "x");
    is("A=\n: ${A=x}", "A", "");
    is("B=\"${A:-1 ${C-2}}\"", "B", "1 2");
    is("A=1\nB=${A:+yes}${C+no}", "B", "yes");
    is("A=1\nA=$A$A\nA=$A$A", "A", "1111");
    is("export A=1 B\nreadonly C=2", "C", "2");
    is("A=a\nA+=b", "A", "ab");
    is("set -eu\nunset A; A=1\n:\ntrue", "A", "1");
    is(
        "A=(one 'two three'\n four)\nB=\"${A[@]}\"",
        "B",
        "one two three four",
    );
}

#[test]
fn what_only_a_running_shell_knows_is_unknown() {
    for (text, why) in [
        ("A=`hostname`", "command"),
        ("A=$(echo \")\" ; date)", "command"),
        ("A=$((1+2))", "compute"),
        ("A=\"x${B%.*}\"", "compute"),
        ("A=${#B}", "compute"),
        ("A=$1", "compute"),
        ("A=$HOME", "the environment is not read"),
        ("A=$'x'", "compute"),
        ("B=$(x)\nA=${B:-y}", "command"),
    ] {
        let values = values(text);
        let found = values.get("A").unwrap().text.clone().unwrap_err();
        assert!(found.contains(why), "{text}: {found}");
        assert_eq!(values.known("A"), None);
    }
}

#[test]
fn what_runs_something_is_refused_with_its_line() {
    for (text, line, says) in [
        ("A=1\nreboot\n", 2, "'reboot' is a command"),
        ("A=1 reboot", 1, "runs a program"),
        ("f() {\n A=1\n}\n", 1, "'f' is a command"),
        ("{ reboot; }", 1, "'{' is a command"),
        ("if [ x ]; then\nA=1\nfi", 1, "'if' is a command"),
        ("[ -n \"$A\" ] && A=1", 1, "'[' is a command"),
        ("for i in 1 2; do A=$i; done", 1, "'for' is a command"),
        (". ./other.config", 1, "'.' is a command"),
        ("eval \"A=1\"", 1, "'eval' is a command"),
        ("A=1 > /etc/passwd", 1, "> makes this a command"),
        ("A=1 | sh", 1, "| makes this a command"),
        ("A=1 &", 1, "& makes this a command"),
        ("A=$(x", 1, "never closed"),
        ("A=\"x\nB=1", 1, "never closed"),
        ("A='x", 1, "never closed"),
        ("A=${B", 1, "never closed"),
        ("A=(1 2", 1, "never closed"),
        ("then A=1", 1, "'then' is a command"),
        ("set -- a b", 1, "'set' is a command"),
        ("\"$A\"", 1, "'\"$A\"' is a command"),
        ("A=1 )", 1, ") makes this a command"),
        ("cat <<EOF\nreboot\nEOF\n", 1, "'cat' is a command"),
    ] {
        let problems = problems(text);
        let first = problems
            .first()
            .unwrap_or_else(|| panic!("{text} is taken"));
        assert!(first.message.contains(says), "{text}: {}", first.message);
        let at = text[..first.span.start].matches('\n').count() + 1;
        assert_eq!(at, line, "{text}");
    }
    // All commands are reported, not only the first, but not the words that end a block.
    assert_eq!(problems("reboot\nA=1\nif x; then\nhalt\nfi\n").len(), 3);
}

#[test]
fn names_that_contain_each_other_twice_do_not_fill_the_memory() {
    let mut text = String::from("A0=xxxxxxxxxxxxxxxx\n");
    for n in 0..200 {
        text += &format!("A{}=\"$A{n}$A{n}\"\n", n + 1);
    }
    let values = values(&text);
    assert!(
        values
            .get("A200")
            .unwrap()
            .text
            .as_deref()
            .unwrap_err()
            .contains("longer than")
    );
    let total: usize = values
        .iter()
        .filter_map(|(_, v)| v.text.as_deref().ok())
        .map(str::len)
        .sum();
    assert!(total < 1 << 20, "{total}");
    let deep = format!("A={}1{}", "${B:-".repeat(10_000), "}".repeat(10_000));
    assert!(problems(&deep)[0].message.contains("more than 8 levels"));
    assert!(problems(&"export ".repeat(100_000)).is_empty());
    assert!(
        problems(&"A=1\n".repeat(20_000))[0]
            .message
            .contains("more than 10000 assignments")
    );
    assert_eq!(problems(&"reboot\n".repeat(20_000)).len(), 100);
}
