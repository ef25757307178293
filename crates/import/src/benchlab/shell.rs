//! The shell of bench-lab.sh's configurations: assignments, taken apart and never executed.
//!
//! Of the POSIX shell (XCU 2) this knows quotes, comments, continued lines, `NAME=word`, `export`, lists of bash, and the idiom
//! `: ${NAME:=word}`. What would run something is a fault, because what comes behind it may depend on it; a word that would run
//! something has a value that nobody knows.

mod words;

use linerate_plan::diagnostic::{Diagnostic, Span};

/// Faults that are told of one file.
const MOST_FAULTS: usize = 100;
/// Statements of one file at most.
const MOST_STATEMENTS: usize = 10_000;

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// `$NAME`, `${NAME}`, and what becomes of it where it is not set.
    Variable {
        name: String,
        otherwise: Otherwise,
    },
    /// What only a shell that runs could know: the reason.
    Computed(&'static str),
}

/// What `${NAME...}` says about a variable that is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Otherwise {
    Nothing,
    /// `-`, `:-`: another word. `empty`: also where it is empty.
    Use {
        empty: bool,
        word: Word,
    },
    /// `=`, `:=`: another word, which it is set to.
    Assign {
        empty: bool,
        word: Word,
    },
    /// `+`, `:+`: this word where it is set, else nothing.
    Instead {
        empty: bool,
        word: Word,
    },
}

/// A word: its parts, one after the other.
pub(super) type Word = Vec<Part>;

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// The line that it begins on, from 1.
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// `NAME=word`, `NAME+=word`.
    Assign { name: String, word: Word, append: bool },
    /// `: word...`: only what its `${NAME:=word}` set.
    Nothing(Vec<Word>),
    /// `unset NAME`.
    Unset(String),
}

/// What a word that begins a command means, where it is no assignment.
const COMMANDS: [(&[&str], &str, &str); 5] = [
    (&["if", "case", "[", "[[", "test", "!"], "is a condition", "write what is the case"),
    (&["for", "while", "until", "select"], "is a loop", "write its results"),
    (&["function"], "defines a function", "write its results"),
    (&[".", "source"], "reads another file", "put that file's lines here"),
    (&["eval", "exec"], "runs what is in a text", "write its results"),
];

/// What ends or divides a block, whose beginning has been told.
const CLOSERS: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// Takes a text apart. Statements that are right are returned although others are not.
pub(super) fn parse(text: &str) -> (Vec<Statement>, Vec<Diagnostic>) {
    let mut parser =
        Parser { text, at: 0, line: 1, counted: 0, statements: Vec::new(), problems: Vec::new() };
    while parser.problems.len() < MOST_FAULTS && parser.statement() {}
    (parser.statements, parser.problems)
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    line: usize,
    /// Up to where lines are counted.
    counted: usize,
    statements: Vec<Statement>,
    problems: Vec<Diagnostic>,
}

/// What a word of a command turned out to be.
enum Begun {
    Assignment { name: String, append: bool },
    Word(Word),
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn starts(&self, with: &str) -> bool {
        self.text[self.at..].starts_with(with)
    }

    pub(super) fn fault(&mut self, start: usize, message: impl Into<String>, help: &str) {
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
        let span = Span { start, end: self.at.clamp(start, line_end.max(start)) };
        self.problems.push(Diagnostic::at(span, message).remedy(help));
    }

    /// The line that a place is on. Places are asked for in their order.
    fn line(&mut self, at: usize) -> usize {
        self.line += self.text[self.counted..at].bytes().filter(|b| *b == b'\n').count();
        self.counted = at;
        self.line
    }

    /// Blanks and continued lines; with `lines`, also what separates statements, and comments.
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

    /// Reads a statement; false at the end.
    fn statement(&mut self) -> bool {
        self.blanks(true);
        if self.at == self.text.len() {
            return false;
        }
        if self.statements.len() >= MOST_STATEMENTS {
            self.fault(
                self.at,
                format!("more than {MOST_STATEMENTS} assignments"),
                "a configuration has some thirty",
            );
            return false;
        }
        let start = self.at;
        let line = self.line(start);
        let before = self.statements.len();
        if self.command(start, line).is_none() {
            // What is wrong has been told; the statement is as if it were not there.
            self.statements.truncate(before);
            self.skip_line();
        }
        true
    }

    /// Assignments, or one of the few commands that do nothing. `None` where a fault was told.
    fn command(&mut self, start: usize, line: usize) -> Option<()> {
        let mut prefix = 0;
        loop {
            self.blanks(false);
            if self.ends() {
                return Some(());
            }
            let word_start = self.at;
            match self.begun()? {
                Begun::Assignment { name, append } => {
                    let word = self.value()?;
                    self.statements.push(Statement { line, action: Action::Assign { name, word, append } });
                    prefix += 1;
                }
                Begun::Word(word) if prefix == 0 => return self.other(&word, start, line),
                Begun::Word(_) => {
                    self.fault(word_start, "this runs a program", "write assignments only");
                    return None;
                }
            }
        }
    }

    /// Whether a statement ends here; other signs between words are told.
    fn ends(&self) -> bool {
        matches!(self.peek(), None | Some('\n' | ';'))
    }

    /// `NAME=`, `NAME+=`, or else a whole word.
    fn begun(&mut self) -> Option<Begun> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        if is_name(name) {
            let append = after.starts_with("+=");
            if append || after.starts_with('=') {
                self.at += length + 1 + usize::from(append);
                return Some(Begun::Assignment { name: name.to_string(), append });
            }
        }
        self.word().map(Begun::Word)
    }

    /// What is behind the `=`: a word, or a list in parentheses, whose words are joined by blanks.
    fn value(&mut self) -> Option<Word> {
        if self.peek() != Some('(') {
            return self.word();
        }
        let open = self.at;
        self.at += 1;
        let mut joined = Word::new();
        loop {
            self.blanks(true);
            match self.peek() {
                Some(')') => {
                    self.at += 1;
                    return Some(joined);
                }
                Some(_) => {
                    let word = self.word()?;
                    if !joined.is_empty() {
                        joined.push(Part::Text(" ".into()));
                    }
                    joined.extend(word);
                }
                None => {
                    self.at = open + 1;
                    self.fault(open, "this list is never closed", "close it: )");
                    self.at = self.text.len();
                    return None;
                }
            }
        }
    }

    /// A command that is no assignment.
    fn other(&mut self, word: &Word, start: usize, line: usize) -> Option<()> {
        let name = match word.as_slice() {
            [Part::Text(name)] => name.as_str(),
            _ => "",
        };
        match name {
            ":" | "true" => {
                let words = self.arguments()?;
                self.statements.push(Statement { line, action: Action::Nothing(words) });
                Some(())
            }
            "export" | "readonly" => self.exported(line),
            "set" if self.set_options() => Some(()),
            "unset" => {
                let words = self.arguments()?;
                for word in words {
                    if let [Part::Text(name)] = word.as_slice() {
                        self.statements.push(Statement { line, action: Action::Unset(name.clone()) });
                    }
                }
                Some(())
            }
            closer if CLOSERS.contains(&closer) && !self.problems.is_empty() => None,
            _ => {
                self.refuse(name, start);
                None
            }
        }
    }

    /// `export NAME=word NAME`.
    fn exported(&mut self, line: usize) -> Option<()> {
        loop {
            self.blanks(false);
            if self.ends() {
                return Some(());
            }
            if let Begun::Assignment { name, append } = self.begun()? {
                let word = self.value()?;
                self.statements.push(Statement { line, action: Action::Assign { name, word, append } });
            }
        }
    }

    fn refuse(&mut self, name: &str, start: usize) {
        let known = COMMANDS.iter().find(|(words, ..)| words.contains(&name));
        let shown: String = name.chars().take(40).collect();
        self.blanks(false);
        match known {
            Some((_, what, help)) => {
                self.fault(start, format!("'{shown}' {what}: nothing is executed"), help)
            }
            None if self.starts("(") => {
                self.fault(
                    start,
                    format!("this defines a function, {shown}: nothing is executed"),
                    "write its results",
                );
            }
            None if shown.is_empty() => {
                self.fault(start, "this runs something: nothing is executed", "write NAME=\"value\"")
            }
            None => {
                let message = format!("this runs a program, {shown}: nothing is executed");
                self.fault(start, message, "write NAME=\"value\", or put a # in front of it");
            }
        }
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
}

/// Whether a word is the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().next().is_some_and(|c| !c.is_ascii_digit()) && name.chars().all(fine)
}
