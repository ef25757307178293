//! The shell of bench-lab.sh's configurations: assignments, evaluated while they are read. Nothing is executed.
//!
//! Of the POSIX shell (XCU 2) this knows quotes, comments, continued lines, `NAME=word`, `export`, lists of bash, and the idiom
//! `: ${NAME:=word}`. A command that would run something is a fault, because later lines may depend on it; a word that would run
//! something has an unknown value.

use super::values::{Value, Values};
use crate::shortened;
use linerate_plan::diagnostic::{Diagnostic, Lines, Problems, Span};
use std::rc::Rc;

/// Most faults shown for one file.
const MOST_FAULTS: usize = 100;
/// Statements of one file at most.
const MOST_STATEMENTS: usize = 10_000;
/// `${A:-${B:-${C...}}}` nests at most so deep.
const DEEPEST: usize = 8;
/// Bytes of one value at most: names that contain each other twice would else fill any memory.
const LONGEST: usize = 16 << 10;

/// Why a value is not known.
const RUNS: &str = "a command would have to be run for it";
const COMPUTED: &str = "only a running shell can compute it";

/// Words that end or divide a block. The fault is at the block's beginning.
const CLOSERS: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

impl Values {
    /// Runs a file's assignments, as `. file` would. Returns the faults; with faults, the variables mean nothing.
    pub(super) fn read(&mut self, text: &str, file: &str) -> Vec<Diagnostic> {
        let mut shell = Shell {
            values: self,
            file: file.into(),
            text,
            at: 0,
            lines: Lines::new(text),
            begun: 0,
            statements: 0,
            live: true,
            using: true,
            problems: Vec::new(),
        };
        while shell.problems.len() < MOST_FAULTS && shell.statement() {}
        shell.problems
    }
}

/// A word as far as it is known.
struct Word {
    /// Value of the word, or the reason why it is unknown.
    text: Result<String, String>,
    /// Whether there is more in it than literal text.
    computed: bool,
}

impl Word {
    fn new() -> Self {
        Word {
            text: Ok(String::new()),
            computed: false,
        }
    }

    fn push(&mut self, more: &str) {
        match &mut self.text {
            Ok(text) if text.len() + more.len() <= LONGEST => text.push_str(more),
            Ok(_) => self.text = Err(format!("it is longer than {LONGEST} bytes")),
            Err(_) => {}
        }
    }

    /// Adds the value of a part that is not literal text.
    fn add(&mut self, part: &Result<String, String>) {
        self.computed = true;
        match part {
            Ok(text) => self.push(text),
            Err(why) => self.unknown(why),
        }
    }

    /// Adds a part whose value is unknown.
    fn unknown(&mut self, why: &str) {
        self.computed = true;
        if self.text.is_ok() {
            self.text = Err(why.into());
        }
    }

    /// The text, if it is a literal.
    fn literal(&self) -> Option<&str> {
        self.text.as_deref().ok().filter(|_| !self.computed)
    }
}

struct Shell<'v, 't> {
    values: &'v mut Values,
    file: Rc<str>,
    text: &'t str,
    at: usize,
    lines: Lines<'t>,
    /// Where the statement begins.
    begun: usize,
    statements: usize,
    /// False within a `${NAME:-word}` that is not taken.
    live: bool,
    /// False in the arguments of `:`, where `${NAME:=word}` sets NAME and does not use it.
    using: bool,
    problems: Vec<Diagnostic>,
}

/// Methods that return `None` have reported a fault.
impl<'t> Shell<'_, 't> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes a text if it is next.
    fn takes(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        self.at += if next { text.len() } else { 0 };
        next
    }

    fn fault<T>(&mut self, start: usize, message: impl Into<String>, help: &str) -> Option<T> {
        self.problems.fault(
            Span {
                start,
                end: self.at.max(start),
            },
            message,
            help,
        );
        None
    }

    fn unclosed<T>(&mut self, start: usize, close: char) -> Option<T> {
        self.at = start + 1;
        let none = self.fault(start, "this is never closed", &format!("close it: {close}"));
        self.at = self.text.len();
        none
    }

    /// Skips blanks and continued lines; with `lines`, also separators of statements. A comment ends the line.
    fn blanks(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\n' | ';') if lines => self.at += 1,
                Some('#') => self.skip_line(),
                _ if self.takes("\\\n") || self.takes("\\\r\n") => {}
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Carries out a statement; false at the end.
    fn statement(&mut self) -> bool {
        self.blanks(true);
        if self.at == self.text.len() {
            return false;
        }
        if self.statements >= MOST_STATEMENTS {
            let message = format!("more than {MOST_STATEMENTS} assignments");
            return self
                .fault(self.at, message, "a configuration has some thirty")
                .unwrap_or(false);
        }
        self.begun = self.at;
        if self.command().is_none() {
            self.skip_line();
        }
        true
    }

    /// Assignments, or one of the few commands that do nothing.
    fn command(&mut self) -> Option<()> {
        let start = self.at;
        let mut assigned = false;
        while !self.ends() {
            let word_start = self.at;
            if self.assignment()? {
                assigned = true;
                continue;
            }
            let word = self.word()?;
            if !assigned {
                return self.other(word.literal().unwrap_or_default(), start);
            }
            return self.fault(word_start, "this runs a program", "write assignments only");
        }
        Some(())
    }

    /// Whether a statement ends behind blanks; other signs between words are faults.
    fn ends(&mut self) -> bool {
        self.blanks(false);
        matches!(self.peek(), None | Some('\n' | ';'))
    }

    /// Carries out `NAME=word` or `NAME+=word`; false if there is no assignment here.
    fn assignment(&mut self) -> Option<bool> {
        let start = self.at;
        let name = self.name();
        let append = self.takes("+=");
        if !is_name(name) || !(append || self.takes("=")) {
            self.at = start;
            return Some(false);
        }
        let word = self.value()?;
        let mut whole = Word::new();
        if let Some(before) = self.values.get(name).filter(|_| append) {
            whole.add(&before.text);
        }
        whole.add(&word.text);
        self.set(name, whole.text);
        self.statements += 1;
        Some(true)
    }

    fn set(&mut self, name: &str, text: Result<String, String>) {
        if self.live {
            let line = self.lines.place(self.begun).0;
            self.values.set(
                name,
                Value {
                    file: self.file.clone(),
                    line,
                    text,
                },
            );
        }
    }

    /// The value behind the `=`: a word, or a list in parentheses, whose words are joined by blanks.
    fn value(&mut self) -> Option<Word> {
        let open = self.at;
        if !self.takes("(") {
            return self.word();
        }
        let mut joined = Word::new();
        loop {
            self.blanks(true);
            if self.takes(")") {
                return Some(joined);
            } else if self.rest().is_empty() {
                return self.unclosed(open, ')');
            }
            let word = self.word()?;
            joined.push(if joined.computed { " " } else { "" });
            joined.add(&word.text);
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
            "export" | "readonly" => {
                while !self.ends() {
                    if !self.assignment()? {
                        self.word()?;
                    }
                }
                Some(())
            }
            "set" if self.options() => Some(()),
            "unset" => {
                for word in self.arguments()? {
                    word.literal()
                        .into_iter()
                        .for_each(|name| self.values.remove(name));
                    self.statements += 1;
                }
                Some(())
            }
            closer if CLOSERS.contains(&closer) && !self.problems.is_empty() => None,
            _ => {
                let shown = shortened(&self.text[start..self.at], 40);
                let message = format!("'{shown}' is a command: nothing is executed");
                self.fault(
                    start,
                    message,
                    "write NAME=\"value\", or put a # in front of it",
                )
            }
        }
    }

    /// The words up to the end of a statement.
    fn arguments(&mut self) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        while !self.ends() {
            words.push(self.word()?);
        }
        Some(words)
    }

    /// Takes `-eu` behind `set`, which is about the running shell alone.
    fn options(&mut self) -> bool {
        let line = self
            .rest()
            .split(['\n', ';', '#'])
            .next()
            .unwrap_or_default();
        let is_letters =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
        let fine = line
            .split_whitespace()
            .all(|word| word.strip_prefix(['-', '+']).is_some_and(is_letters));
        self.at += if fine { line.len() } else { 0 };
        fine
    }

    /// A word, up to a blank or a sign that separates commands.
    fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut word = Word::new();
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\r' | '\n' | ';') => return Some(word),
                Some(')') if self.at > start => return Some(word),
                // The one who asked for it sees the parenthesis.
                Some('(') if word.literal().is_some_and(is_name) => return Some(word),
                Some(sign @ ('<' | '>' | '|' | '&' | '(' | ')')) => return self.sign(sign),
                Some(_) => self.piece(&mut word, 0, false)?,
            }
        }
    }

    /// A sign that makes a word part of a command.
    fn sign(&mut self, sign: char) -> Option<Word> {
        let start = self.at;
        let here = self.rest().starts_with("<<");
        self.at += 1;
        let message = format!("{sign} makes this a command: nothing is executed");
        let none = self.fault(start, message, "put values with such signs in quotes");
        if here {
            // The lines of a here-document are no statements, and where it ends may be computed.
            self.at = self.text.len();
        }
        none
    }

    /// The next part of a word, perhaps within double quotes.
    fn piece(&mut self, word: &mut Word, depth: usize, quoted: bool) -> Option<()> {
        let start = self.at;
        match self.take()? {
            '\'' if !quoted => {
                let Some((text, _)) = self.rest().split_once('\'') else {
                    return self.unclosed(start, '\'');
                };
                word.push(text);
                self.at += text.len() + 1;
            }
            '"' if !quoted => self.pieces(word, (start, '"'), depth)?,
            '$' => self.dollar(word, start, depth, quoted)?,
            '`' => {
                self.skip(start, '`', '`')?;
                word.unknown(RUNS);
            }
            '\\' => self.escaped(word, quoted),
            _ => word.push(&self.text[start..self.at]),
        }
        Some(())
    }

    /// All parts up to a closing sign.
    fn pieces(
        &mut self,
        word: &mut Word,
        (start, close): (usize, char),
        depth: usize,
    ) -> Option<()> {
        while let Some(c) = self.peek() {
            if c == close {
                self.at += 1;
                return Some(());
            }
            self.piece(word, depth, close == '"')?;
        }
        self.unclosed(start, close)
    }

    /// The character behind a backslash. Within quotes, the backslash stays before most.
    fn escaped(&mut self, word: &mut Word, quoted: bool) {
        let start = self.at;
        let backslash = match self.take() {
            Some('\n') | None => return,
            Some('\r') if !quoted && self.takes("\n") => return,
            Some(c) => quoted && !"$`\"\\".contains(c),
        };
        word.push(&self.text[start - usize::from(backslash)..self.at]);
    }

    /// The part behind a `$`: `NAME`, `{...}`, `(...)`.
    fn dollar(&mut self, word: &mut Word, start: usize, depth: usize, quoted: bool) -> Option<()> {
        match self.peek() {
            Some('{') => {
                self.at += 1;
                self.braced(word, start, depth)?;
            }
            Some('(') => {
                let why = if self.rest().starts_with("((") {
                    COMPUTED
                } else {
                    RUNS
                };
                self.at += 1;
                self.skip(start, '(', ')')?;
                word.unknown(why);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                self.refer(name, depth);
                self.variable(word, name);
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                word.unknown(COMPUTED);
            }
            Some('\'') if !quoted => {
                self.at += 1;
                self.skip(start, '\'', '\'')?;
                word.unknown(COMPUTED);
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
        self.unclosed(start, close)
    }

    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
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
            Some(value) => word.add(&value.text),
            None => {
                let why = "which is part of it, is not set before; the environment is not read";
                word.unknown(&format!("{}, {why}", shortened(name, 60)));
            }
        }
    }

    /// The text between `${` and `}`.
    fn braced(&mut self, word: &mut Word, start: usize, depth: usize) -> Option<()> {
        let name = self.name();
        if !is_name(name) {
            word.unknown(COMPUTED);
            return self.skip(start, '{', '}');
        }
        let _ = self.takes("[@]") || self.takes("[*]");
        let empty = self.takes(":");
        let operator = self.peek().filter(|c| "-=+?".contains(*c));
        if operator.is_none() && (empty || self.peek() != Some('}')) {
            word.unknown(COMPUTED);
            return self.skip(start, '{', '}');
        }
        if operator.is_some() && depth >= DEEPEST {
            let message = format!("more than {DEEPEST} levels of ${{...}}");
            return self.fault(start, message, "write the value itself");
        }
        self.at += 1;
        self.refer(name, depth);
        let Some(operator) = operator else {
            self.variable(word, name);
            return Some(());
        };
        let missing = self
            .values
            .get(name)
            .is_none_or(|v| empty && v.text.as_deref() == Ok(""));
        let taken = match operator {
            '-' | '=' => missing,
            '+' => !missing,
            _ => false, // `?`: the script would end there
        };
        let live = self.live;
        self.live &= taken;
        let mut other = Word::new();
        let read = self.pieces(&mut other, (start, '}'), depth + 1);
        self.live = live;
        read?;
        match taken {
            true => {
                word.add(&other.text);
                if operator == '=' {
                    self.set(name, other.text);
                }
            }
            false if operator == '+' => word.computed = true,
            false => self.variable(word, name),
        }
        Some(())
    }
}

/// Whether a word is the name of a variable.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().next().is_some_and(|c| !c.is_ascii_digit()) && name.chars().all(fine)
}
