//! The shell of bench-lab.sh's configurations: assignments, evaluated while they are read. Nothing is executed.
//!
//! Of the POSIX shell (XCU 2) this knows quotes, comments, continued lines, `NAME=word`, `export`, lists of bash, and the idiom
//! `: ${NAME:=word}`. A command that would run something is a fault, because later lines may depend on it; a word that would run
//! something has an unknown value.

use linerate_plan::diagnostic::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Most faults shown for one file.
const MOST_FAULTS: usize = 100;
/// Statements of one file at most.
const MOST_STATEMENTS: usize = 10_000;
/// `${A:-${B:-${C...}}}` nests at most so deep.
const DEEPEST: usize = 8;
/// Bytes of one value at most: names that contain each other twice would else fill any memory.
const LONGEST: usize = 16 << 10;
/// Most bytes of all names and values of a shell.
const MOST_HELD: usize = 8 << 20;

/// Why a value is not known.
const RUNS: &str = "a command would have to be run for it";
const ARITHMETIC: &str = "it is computed";
const PATTERN: &str = "it is cut out of another by a pattern";
const STATE: &str = "it is an argument, or the state, of a running shell";
const BASH: &str = "it is written in a way of bash that is not read";

/// Meaning of a command's first word that is no assignment.
const COMMANDS: [(&[&str], &str, &str); 5] = [
    (&["if", "case", "[", "[[", "test", "!"], "is a condition", "write what is the case"),
    (&["for", "while", "until", "select"], "is a loop", "write its results"),
    (&["function"], "defines a function", "write its results"),
    (&[".", "source"], "reads another file", "put that file's lines here"),
    (&["eval", "exec"], "runs what is in a text", "write its results"),
];

/// Words that end or divide a block. The fault is at the block's beginning.
const CLOSERS: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// A variable's value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Which file assigned it, by the caller's number.
    pub(super) file: usize,
    /// The line that assigned it.
    pub(super) line: usize,
    /// The value, or the reason why it is unknown.
    pub(super) text: Result<String, String>,
}

/// The variables of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Values {
    all: BTreeMap<String, Value>,
    /// Names that values were made of.
    referred: BTreeSet<String>,
    /// Bytes of names and values.
    held: usize,
}

impl Values {
    /// A variable's value where it is known and not empty.
    pub(super) fn known(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.text.as_deref().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.all.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.all.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether another value was made of this variable.
    pub(super) fn is_referred(&self, name: &str) -> bool {
        self.referred.contains(name)
    }

    /// Runs a file's assignments, as `. file` would. Returns the faults; with faults, the variables mean nothing.
    pub(super) fn read(&mut self, text: &str, file: usize) -> Vec<Diagnostic> {
        let mut shell = Shell {
            values: self,
            file,
            text,
            at: 0,
            line: 1,
            counted: 0,
            statements: 0,
            live: true,
            using: true,
            problems: Vec::new(),
        };
        while shell.problems.len() < MOST_FAULTS && shell.statement() {}
        shell.problems
    }

    fn remove(&mut self, name: &str) {
        if let Some(value) = self.all.remove(name) {
            self.held -= bytes(name, &value.text);
        }
    }

    fn set(&mut self, name: &str, value: Value) {
        self.remove(name);
        let held = self.held + bytes(name, &value.text);
        if held <= MOST_HELD {
            self.held = held;
            self.all.insert(name.to_string(), value);
        }
    }
}

fn bytes(name: &str, text: &Result<String, String>) -> usize {
    let (Ok(text) | Err(text)) = text;
    size_of::<Value>() + 2 * name.len() + text.len()
}

/// A word's value as far as it is known.
#[derive(Default)]
struct Word {
    text: String,
    /// Why not all of it is known.
    unknown: Option<String>,
    /// Whether there is more in it than text.
    computed: bool,
}

impl Word {
    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() <= LONGEST {
            self.text.push_str(text);
        } else {
            self.fail(format!("it is longer than {LONGEST} bytes"));
        }
    }

    /// Adds the value of a part that is not literal text, or the reason why it is unknown.
    fn add(&mut self, part: Result<&str, &str>) {
        self.computed = true;
        match part {
            Ok(text) => self.push(text),
            Err(why) => self.fail(why.into()),
        }
    }

    fn fail(&mut self, why: String) {
        self.unknown.get_or_insert(why);
    }

    fn value(self) -> Result<String, String> {
        self.unknown.map_or(Ok(self.text), Err)
    }

    /// The text, if it is a literal.
    fn literal(&self) -> Option<&str> {
        (!self.computed).then_some(self.text.as_str())
    }
}

struct Shell<'v, 't> {
    values: &'v mut Values,
    file: usize,
    text: &'t str,
    at: usize,
    /// The line that the statement begins on.
    line: usize,
    /// Up to where lines are counted.
    counted: usize,
    statements: usize,
    /// False within a `${NAME:-word}` that is not taken.
    live: bool,
    /// False in the arguments of `:`, where `${NAME:=word}` sets NAME and does not use it.
    using: bool,
    problems: Vec<Diagnostic>,
}

/// Methods that return `None` have reported a fault.
impl<'t> Shell<'_, 't> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn starts(&self, with: &str) -> bool {
        self.text[self.at..].starts_with(with)
    }

    fn fault(&mut self, start: usize, message: impl Into<String>, help: &str) {
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
        let span = Span { start, end: self.at.clamp(start, line_end.max(start)) };
        self.problems.push(Diagnostic::at(span, message).remedy(help));
    }

    fn unclosed<T>(&mut self, start: usize, what: &str, close: char) -> Option<T> {
        self.at = start + 1;
        self.fault(start, format!("{what} is never closed"), &format!("close it: {close}"));
        self.at = self.text.len();
        None
    }

    /// Blanks and continued lines; with `lines`, also separators of statements, and comments.
    fn blanks(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.starts("\\\n") => self.at += 2,
                Some('\\') if self.starts("\\\r\n") => self.at += 3,
                Some('\n' | ';') if lines => self.at += 1,
                Some('#') => self.skip_line(),
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |n| self.at + n);
    }

    /// Carries out a statement; false at the end.
    fn statement(&mut self) -> bool {
        self.blanks(true);
        if self.at == self.text.len() {
            return false;
        }
        if self.statements >= MOST_STATEMENTS {
            let message = format!("more than {MOST_STATEMENTS} assignments");
            self.fault(self.at, message, "a configuration has some thirty");
            return false;
        }
        self.line += self.text[self.counted..self.at].bytes().filter(|b| *b == b'\n').count();
        self.counted = self.at;
        if self.command().is_none() {
            self.skip_line();
        }
        true
    }

    /// Assignments, or one of the few commands that do nothing.
    fn command(&mut self) -> Option<()> {
        let start = self.at;
        let mut assigned = false;
        loop {
            self.blanks(false);
            let word_start = self.at;
            if self.ends() {
                return Some(());
            } else if self.assignment()? {
                assigned = true;
            } else {
                let word = self.word()?;
                if !assigned {
                    return self.other(word.literal().unwrap_or_default(), start);
                }
                self.fault(word_start, "this runs a program", "write assignments only");
                return None;
            }
        }
    }

    /// Whether a statement ends here; other signs between words are faults.
    fn ends(&self) -> bool {
        matches!(self.peek(), None | Some('\n' | ';'))
    }

    /// Carries out `NAME=word` or `NAME+=word`; false if there is no assignment here.
    fn assignment(&mut self) -> Option<bool> {
        let start = self.at;
        let name = self.name();
        let append = self.starts("+=");
        if !is_name(name) || !(append || self.starts("=")) {
            self.at = start;
            return Some(false);
        }
        self.at += 1 + usize::from(append);
        let word = self.value()?;
        let mut whole = Word::default();
        if let Some(before) = self.values.get(name).filter(|_| append) {
            whole.add(before.text.as_deref().map_err(String::as_str));
        }
        whole.add(word.value().as_deref().map_err(String::as_str));
        self.set(name, whole.value());
        self.statements += 1;
        Some(true)
    }

    fn set(&mut self, name: &str, text: Result<String, String>) {
        if self.live {
            self.values.set(name, Value { file: self.file, line: self.line, text });
        }
    }

    /// The value behind the `=`: a word, or a list in parentheses, whose words are joined by blanks.
    fn value(&mut self) -> Option<Word> {
        let open = self.at;
        if !self.starts("(") {
            return self.word();
        }
        self.at += 1;
        let mut joined = Word::default();
        loop {
            self.blanks(true);
            match self.peek() {
                Some(')') => {
                    self.at += 1;
                    return Some(joined);
                }
                Some(_) => {
                    let word = self.word()?;
                    joined.push(if joined.computed { " " } else { "" });
                    joined.add(word.value().as_deref().map_err(String::as_str));
                }
                None => return self.unclosed(open, "this list", ')'),
            }
        }
    }

    /// A command that is no assignment.
    fn other(&mut self, name: &str, start: usize) -> Option<()> {
        match name {
            ":" | "true" => {
                self.using = false;
                let arguments = self.arguments();
                self.using = true;
                self.statements += 1;
                arguments.map(drop)
            }
            "export" | "readonly" => loop {
                self.blanks(false);
                if self.ends() {
                    return Some(());
                }
                if !self.assignment()? {
                    self.word()?;
                }
            },
            "set" if self.set_options() => Some(()),
            "unset" => {
                for word in self.arguments()? {
                    word.literal().into_iter().for_each(|name| self.values.remove(name));
                    self.statements += 1;
                }
                Some(())
            }
            closer if CLOSERS.contains(&closer) && !self.problems.is_empty() => None,
            _ => self.refuse(name, start),
        }
    }

    fn refuse(&mut self, name: &str, start: usize) -> Option<()> {
        let known = COMMANDS.iter().find(|(words, ..)| words.contains(&name));
        let shown: String = name.chars().take(40).collect();
        self.blanks(false);
        let (what, help) = match known {
            Some((_, what, help)) => (format!("'{shown}' {what}"), *help),
            None if self.starts("(") => (format!("this defines a function, {shown}"), "write its results"),
            None if shown.is_empty() => ("this runs something".into(), "write NAME=\"value\""),
            None => {
                (format!("this runs a program, {shown}"), "write NAME=\"value\", or put a # in front of it")
            }
        };
        self.fault(start, format!("{what}: nothing is executed"), help);
        None
    }

    /// The words up to the end of a statement.
    fn arguments(&mut self) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.blanks(false);
            if self.ends() {
                return Some(words);
            }
            words.push(self.word()?);
        }
    }

    /// `set -eu`: about the running shell alone.
    fn set_options(&mut self) -> bool {
        let end = self.text[self.at..].find(['\n', ';']).map_or(self.text.len(), |n| self.at + n);
        let options = self.text[self.at..end].split('#').next().unwrap_or_default();
        let is_option = |word: &str| {
            let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
            !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic())
        };
        let fine = options.split_whitespace().all(is_option);
        if fine {
            self.at = end;
        }
        fine
    }

    /// A word, up to a blank or a sign that separates commands.
    fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut word = Word::default();
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\r' | '\n' | ';') => return Some(word),
                Some(')') if self.at > start => return Some(word),
                Some('(') if word.literal().is_some_and(is_name) => {
                    return Some(word); // the one who asked for it sees the parenthesis
                }
                Some(sign @ ('<' | '>' | '|' | '&' | '(' | ')')) => return self.sign(sign),
                Some(_) => self.piece(&mut word, 0)?,
            }
        }
    }

    /// A sign that makes a word part of a command.
    fn sign(&mut self, sign: char) -> Option<Word> {
        let start = self.at;
        let here = self.starts("<<");
        let what = match sign {
            '<' | '>' => "this reads or writes a file",
            '|' => "this hands something to a program, or depends on one",
            '&' => "this runs in the background, or depends on a program",
            _ => "this runs something",
        };
        self.at += 1;
        self.fault(start, format!("{what}: nothing is executed"), "put values with such signs in quotes");
        if here {
            // The lines of a here-document are no statements, and where it ends may be computed.
            self.at = self.text.len();
        }
        None
    }

    /// The next part of a word outside of quotes.
    fn piece(&mut self, word: &mut Word, depth: usize) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            '\'' => {
                self.at += 1;
                let rest = &self.text[self.at..];
                let Some((quoted, _)) = rest.split_once('\'') else {
                    return self.unclosed(start, "this quote", '\'');
                };
                word.push(quoted);
                self.at += quoted.len() + 1;
            }
            '"' => self.double(word, depth)?,
            '$' | '`' => self.dollar(word, depth, false)?,
            '\\' => {
                self.at += 1;
                match self.take() {
                    Some('\n') | None => {}
                    Some('\r') if self.starts("\n") => self.at += 1,
                    Some(c) => word.push(c.encode_utf8(&mut [0; 4])),
                }
            }
            c => {
                self.at += c.len_utf8();
                word.push(c.encode_utf8(&mut [0; 4]));
            }
        }
        Some(())
    }

    fn double(&mut self, word: &mut Word, depth: usize) -> Option<()> {
        let open = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return self.unclosed(open, "this quote", '"'),
                Some('$' | '`') => self.dollar(word, depth, true)?,
                Some(c) => {
                    self.at += c.len_utf8();
                    match (c, self.peek()) {
                        ('"', _) => return Some(()),
                        ('\\', Some('\n')) => self.at += 1,
                        ('\\', Some(c @ ('$' | '`' | '"' | '\\'))) => {
                            self.at += 1;
                            word.push(c.encode_utf8(&mut [0; 4]));
                        }
                        _ => word.push(c.encode_utf8(&mut [0; 4])),
                    }
                }
            }
        }
    }

    /// `$NAME`, `${...}`, `$(...)`, a backquote.
    fn dollar(&mut self, word: &mut Word, depth: usize, quoted: bool) -> Option<()> {
        let start = self.at;
        if self.take() == Some('`') {
            self.skip(start, '`', '`')?;
            word.add(Err(RUNS));
            return Some(());
        }
        match self.peek() {
            Some('{') => {
                self.at += 1;
                self.braced(word, start, depth)?;
            }
            Some('(') => {
                let why = if self.starts("((") { ARITHMETIC } else { RUNS };
                self.at += 1;
                self.skip(start, '(', ')')?;
                word.add(Err(why));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                self.refer(name, depth);
                self.variable(word, name);
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                word.add(Err(STATE));
            }
            Some('\'') if !quoted => {
                self.at += 1;
                self.skip(start, '\'', '\'')?;
                word.add(Err(BASH));
            }
            _ => word.push("$"),
        }
        Some(())
    }

    /// Skips unread text up to and with its closing sign.
    fn skip(&mut self, start: usize, open: char, close: char) -> Option<()> {
        let mut depth = 1;
        while let Some(c) = self.take() {
            match c {
                '\\' => {
                    self.take();
                }
                quote @ ('\'' | '"') if close == ')' => self.skip(start, quote, quote)?,
                c if c == close => depth -= 1,
                c if c == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
        self.unclosed(start, if close == '}' { "this brace" } else { "this" }, close)
    }

    fn name(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn refer(&mut self, name: &str, depth: usize) {
        if self.using || depth > 0 {
            self.values.referred.insert(name.into());
        }
    }

    /// The value of a variable.
    fn variable(&self, word: &mut Word, name: &str) {
        match self.values.get(name) {
            Some(value) => word.add(value.text.as_deref().map_err(String::as_str)),
            None => {
                let shown: String = name.chars().take(60).collect();
                let why =
                    format!("{shown}, which is part of it, is not set before; the environment is not read");
                word.add(Err(&why));
            }
        }
    }

    /// The text between `${` and `}`.
    fn braced(&mut self, word: &mut Word, start: usize, depth: usize) -> Option<()> {
        let name = self.name();
        if !is_name(name) {
            word.add(Err(if self.starts("#") { ARITHMETIC } else { STATE }));
            return self.skip(start, '{', '}');
        }
        if self.starts("[@]") || self.starts("[*]") {
            self.at += 3;
        }
        let empty = self.starts(":");
        self.at += usize::from(empty);
        let operator = self.peek();
        match operator {
            Some('}') if !empty => {}
            Some('-' | '=' | '+' | '?') if depth < DEEPEST => {}
            Some('-' | '=' | '+' | '?') => {
                let message = format!("more than {DEEPEST} levels of ${{...}}");
                self.fault(start, message, "write the value itself");
                return None;
            }
            _ => {
                word.add(Err(PATTERN));
                return self.skip(start, '{', '}');
            }
        }
        self.at += 1;
        self.refer(name, depth);
        if operator == Some('}') {
            self.variable(word, name);
            return Some(());
        }
        let value = self.values.get(name);
        let missing = value.is_none_or(|v| empty && v.text.as_deref() == Ok(""));
        let taken = match operator {
            Some('-' | '=') => missing,
            Some('+') => !missing,
            _ => false, // `?`: the script would end there
        };
        let live = self.live;
        self.live &= taken;
        let other = self.within_braces(start, depth + 1);
        self.live = live;
        let other = other?.value();
        match taken {
            true => {
                word.add(other.as_deref().map_err(String::as_str));
                if operator == Some('=') {
                    self.set(name, other);
                }
            }
            false if operator == Some('+') => word.add(Ok("")),
            false => self.variable(word, name),
        }
        Some(())
    }

    /// The word up to the brace that closes, quotes taken off.
    fn within_braces(&mut self, start: usize, depth: usize) -> Option<Word> {
        let mut word = Word::default();
        loop {
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Some(word);
                }
                Some(_) => self.piece(&mut word, depth)?,
                None => return self.unclosed(start, "this brace", '}'),
            }
        }
    }
}

/// Whether a word is the name of a variable.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().next().is_some_and(|c| !c.is_ascii_digit()) && name.chars().all(fine)
}
