//! Call graphs of FreeBSD's `pmcstat -G`. A function stands above the functions that called it, each indented by one more blank:
//!
//! ```text
//! @ cpu_clk_unhalted.thread [27499 samples]
//!
//! 23.91%  [6575]     in_lltable_lookup @ /boot/kernel/kernel
//!  100.0%  [6575]      arpresolve
//!   100.0%  [6575]       ether_output
//! ```
//!
//! Every path from an outermost caller to a sampled function is a stack. It has the samples of the outermost caller: samples of a
//! path that a graph leaves out (`-z`, or below pmcstat's threshold) are in no stack. FlameGraph's stackcollapse-pmc.pl counts the
//! same way, so that both print the same lines.

use std::io::{self, BufRead, Write};

/// Functions of a stack at most; pmcstat prints 32 (its option -z), unless it is told otherwise.
const DEEPEST: usize = 1024;
/// Bytes of a line at most. The beginning of a longer one is left out.
const LONGEST: usize = 1 << 20;

/// A line of a graph.
struct Entry<'a> {
    /// How many functions stand between it and the sampled one.
    depth: usize,
    samples: &'a [u8],
    name: &'a [u8],
}

/// `  100.0%  [6575]       ether_output`
fn entry(line: &[u8]) -> Option<Entry<'_>> {
    let depth = line
        .iter()
        .position(|b| *b != b' ')
        .filter(|depth| *depth < DEEPEST)?;
    let rest = &line[depth..];
    let share = rest
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'.'))
        .filter(|length| *length > 0)?;
    let rest = rest[share..].strip_prefix(b"%  [")?;
    let digits = rest
        .iter()
        .position(|b| !b.is_ascii_digit())
        .filter(|length| *length > 0)?;
    let name = rest[digits..].strip_prefix(b"]")?.trim_ascii_start();
    let length = name
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(name.len());
    (length > 0).then_some(Entry {
        depth,
        samples: &rest[..digits],
        name: &name[..length],
    })
}

/// Whether a line is one of a graph.
pub(crate) fn is_entry(line: &[u8]) -> bool {
    entry(line).is_some()
}

/// The event of a graph: `@ EVENT [N samples]`.
pub(crate) fn event(head: &[u8]) -> Option<String> {
    let line = head
        .split(|b| *b == b'\n')
        .find_map(|line| line.strip_prefix(b"@ "))?;
    Some(
        String::from_utf8_lossy(line)
            .split_whitespace()
            .next()?
            .into(),
    )
}

/// Writes the stacks of a graph, in its order.
pub(crate) fn fold(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut path = Path::default();
    // The beginning of a line whose end is in the next piece.
    let mut begun = Vec::new();
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            path.line(&begun, output)?;
            return path.write(output);
        }
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            if begun.is_empty() {
                path.line(&piece[from..end], output)?;
            } else {
                begun.extend_from_slice(&piece[from..end]);
                path.line(&begun, output)?;
                begun.clear();
            }
            from = end + 1;
        }
        if begun.len() + piece.len() - from > LONGEST {
            begun.clear();
        }
        begun.extend_from_slice(&piece[from..]);
        let length = piece.len();
        input.consume(length);
    }
}

/// The functions from the sampled one to the last that was read.
#[derive(Default)]
struct Path {
    names: Vec<Vec<u8>>,
    /// How many of them.
    length: usize,
    samples: Vec<u8>,
    stack: Vec<u8>,
}

impl Path {
    fn line(&mut self, line: &[u8], output: &mut impl Write) -> io::Result<()> {
        entry(line).map_or(Ok(()), |entry| self.step(&entry, output))
    }

    fn step(&mut self, entry: &Entry<'_>, output: &mut impl Write) -> io::Result<()> {
        if entry.depth < self.length {
            self.write(output)?;
        }
        if self.names.len() <= entry.depth {
            self.names.resize_with(entry.depth + 1, Vec::new);
        }
        // A caller whose line is missing.
        self.names[self.length.min(entry.depth)..entry.depth]
            .iter_mut()
            .for_each(Vec::clear);
        self.names[entry.depth].clear();
        self.names[entry.depth].extend_from_slice(entry.name);
        self.samples.clear();
        self.samples.extend_from_slice(entry.samples);
        self.length = entry.depth + 1;
        Ok(())
    }

    fn write(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.stack.clear();
        for (at, name) in self.names[..self.length].iter().rev().enumerate() {
            if at > 0 {
                self.stack.push(b';');
            }
            self.stack.extend_from_slice(name);
        }
        self.stack.push(b' ');
        self.stack.extend_from_slice(&self.samples);
        self.stack.push(b'\n');
        match self.length {
            0 => Ok(()),
            _ => output.write_all(&self.stack),
        }
    }
}
