//! Words of the shell: quotes, escapes, and what stands behind a `$`.

use super::{Otherwise, Parser, Part, Word, is_name};

/// `${A:-${B:-${C...}}}` nests at most so deep.
const DEEPEST: usize = 8;

/// Why a value is not known.
const RUNS: &str = "a command would have to be run for it";
const ARITHMETIC: &str = "it is computed";
const PATTERN: &str = "it is cut out of another by a pattern";
const STATE: &str = "it is an argument, or the state, of a running shell";
const BASH: &str = "it is written in a way of bash that is not read";

impl Parser<'_> {
    /// A word, up to a blank or a sign that separates commands. `None` where a fault was told.
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut word = Word::new();
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\r' | '\n' | ';' | ')')
                    if self.at > start || self.peek() != Some(')') =>
                {
                    return Some(word);
                }
                Some('\'') => self.single(&mut word)?,
                Some('"') => self.double(&mut word, 0)?,
                Some('\\') => self.escaped(&mut word),
                Some('$' | '`') => self.dollar(&mut word, 0, false)?,
                Some('<' | '>' | '|' | '&' | '(' | ')') | None => return self.sign(start, word),
                Some(_) => push(&mut word, self.take()),
            }
        }
    }

    /// A sign that makes a word part of a command.
    fn sign(&mut self, start: usize, word: Word) -> Option<Word> {
        let function = self.starts("(") && matches!(word.as_slice(), [Part::Text(name)] if is_name(name));
        if function {
            return Some(word); // the one who asked for it sees the parenthesis
        }
        let from = self.at;
        self.at += 1;
        let here = self.starts("<") && self.text[from..].starts_with("<<");
        let what = match self.text[from..].chars().next() {
            Some('<' | '>') => "this reads or writes a file",
            Some('|') => "this hands something to a program, or depends on one",
            Some('&') => "this runs in the background, or depends on a program",
            _ => "this runs something",
        };
        self.fault(
            from.max(start),
            format!("{what}: nothing is executed"),
            "put values with such signs in quotes",
        );
        if here {
            // The lines of a here-document are no statements, and where it ends may be computed.
            self.at = self.text.len();
        }
        None
    }

    fn single(&mut self, word: &mut Word) -> Option<()> {
        let open = self.at;
        self.at += 1;
        let Some(end) = self.text[self.at..].find('\'') else {
            self.fault(open, "this quote is never closed", "close it: '");
            self.at = self.text.len();
            return None;
        };
        text(word, &self.text[self.at..self.at + end]);
        self.at += end + 1;
        Some(())
    }

    fn double(&mut self, word: &mut Word, depth: usize) -> Option<()> {
        let open = self.at;
        self.at += 1;
        text(word, "");
        loop {
            match self.peek() {
                None => {
                    self.at = open + 1;
                    self.fault(open, "this quote is never closed", "close it: \"");
                    self.at = self.text.len();
                    return None;
                }
                Some('"') => {
                    self.at += 1;
                    return Some(());
                }
                Some('\\') => {
                    self.at += 1;
                    match self.take() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => push(word, Some(c)),
                        Some(c) => {
                            push(word, Some('\\'));
                            push(word, Some(c));
                        }
                        None => {}
                    }
                }
                Some('$' | '`') => self.dollar(word, depth, true)?,
                Some(_) => push(word, self.take()),
            }
        }
    }

    fn escaped(&mut self, word: &mut Word) {
        self.at += 1;
        match self.take() {
            Some('\n') | None => {}
            Some('\r') if self.starts("\n") => self.at += 1,
            Some(c) => push(word, Some(c)),
        }
    }

    /// `$NAME`, `${...}`, `$(...)`, a backquote.
    fn dollar(&mut self, word: &mut Word, depth: usize, quoted: bool) -> Option<()> {
        let start = self.at;
        if self.take() == Some('`') {
            return self.backquoted(word, start);
        }
        match self.peek() {
            Some('{') => {
                self.at += 1;
                let part = self.braced(start, depth)?;
                word.push(part);
            }
            Some('(') => {
                let arithmetic = self.starts("((");
                self.parentheses(start)?;
                word.push(Part::Computed(if arithmetic { ARITHMETIC } else { RUNS }));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                word.push(Part::Variable { name, otherwise: Otherwise::Nothing });
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                word.push(Part::Computed(STATE));
            }
            Some('\'') if !quoted => {
                self.at += 1;
                self.skip_to('\'', start)?;
                word.push(Part::Computed(BASH));
            }
            _ => push(word, Some('$')),
        }
        Some(())
    }

    fn backquoted(&mut self, word: &mut Word, start: usize) -> Option<()> {
        self.skip_to('`', start)?;
        word.push(Part::Computed(RUNS));
        Some(())
    }

    /// Behind the next `end` that is not escaped.
    fn skip_to(&mut self, end: char, start: usize) -> Option<()> {
        while let Some(c) = self.take() {
            match c {
                '\\' => {
                    self.take();
                }
                c if c == end => return Some(()),
                _ => {}
            }
        }
        self.at = start + 1;
        self.fault(start, "this is never closed", "close it, or write the value itself");
        self.at = self.text.len();
        None
    }

    /// Behind the parenthesis that closes the next.
    fn parentheses(&mut self, start: usize) -> Option<()> {
        let mut open = 0_usize;
        while let Some(c) = self.take() {
            match c {
                '\\' => {
                    self.take();
                }
                quote @ ('\'' | '"') => self.skip_to(quote, start)?,
                '(' => open += 1,
                ')' => {
                    open -= 1;
                    if open == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        self.at = start + 1;
        self.fault(start, "this is never closed", "close it: )");
        self.at = self.text.len();
        None
    }

    fn name(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_string()
    }

    /// What is between `${` and `}`.
    fn braced(&mut self, start: usize, depth: usize) -> Option<Part> {
        let name = self.name();
        if !is_name(&name) {
            let length = self.starts("#");
            self.skip_brace(start)?;
            return Some(Part::Computed(if length { ARITHMETIC } else { STATE }));
        }
        for list in ["[@]", "[*]"] {
            if self.starts(list) {
                self.at += list.len();
            }
        }
        let empty = self.starts(":");
        self.at += usize::from(empty);
        let operator = self.peek();
        if !empty && operator == Some('}') {
            self.at += 1;
            return Some(Part::Variable { name, otherwise: Otherwise::Nothing });
        }
        if !matches!(operator, Some('-' | '=' | '+' | '?')) {
            self.skip_brace(start)?;
            return Some(Part::Computed(PATTERN));
        }
        self.at += 1;
        if depth >= DEEPEST {
            self.fault(start, format!("more than {DEEPEST} levels of ${{...}}"), "write the value itself");
            return None;
        }
        let word = self.within_braces(start, depth + 1)?;
        let otherwise = match operator {
            Some('-') => Otherwise::Use { empty, word },
            Some('=') => Otherwise::Assign { empty, word },
            Some('+') => Otherwise::Instead { empty, word },
            _ => Otherwise::Nothing, // `?`: the script would end there
        };
        Some(Part::Variable { name, otherwise })
    }

    /// The word up to the brace that closes, quotes taken off.
    fn within_braces(&mut self, start: usize, depth: usize) -> Option<Word> {
        let mut word = Word::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Some(word);
                }
                Some('\'') => self.single(&mut word)?,
                Some('"') => self.double(&mut word, depth)?,
                Some('\\') => self.escaped(&mut word),
                Some('$' | '`') => self.dollar(&mut word, depth, false)?,
                Some(_) => push(&mut word, self.take()),
                None => {
                    self.at = start + 2;
                    self.fault(start, "this brace is never closed", "close it: }");
                    self.at = self.text.len();
                    return None;
                }
            }
        }
    }

    fn skip_brace(&mut self, start: usize) -> Option<()> {
        let mut open = 1_usize;
        while let Some(c) = self.take() {
            match c {
                '\\' => {
                    self.take();
                }
                '{' => open += 1,
                '}' => {
                    open -= 1;
                    if open == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        self.at = start + 2;
        self.fault(start, "this brace is never closed", "close it: }");
        self.at = self.text.len();
        None
    }
}

fn push(word: &mut Word, c: Option<char>) {
    let Some(c) = c else { return };
    match word.last_mut() {
        Some(Part::Text(text)) => text.push(c),
        _ => word.push(Part::Text(c.into())),
    }
}

fn text(word: &mut Word, more: &str) {
    match word.last_mut() {
        Some(Part::Text(text)) => text.push_str(more),
        _ => word.push(Part::Text(more.into())),
    }
}
