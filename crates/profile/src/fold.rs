//! Output of other profilers as folded stacks.

use crate::distributions::{self, Distribution};
use crate::lockstat::{self, LockEvent};
use crate::{pmcstat, samples};
use serde::Serialize;
use std::io::{self, BufRead, Read, Write};

/// The profiler that an output is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A call graph of FreeBSD's `pmcstat -G`.
    Pmcstat,
    /// Stacks that a script of DTrace printed with `stack()`.
    Dtrace,
    /// Maps of stacks of OpenBSD's `btrace`, and of bpftrace.
    Btrace,
    /// `perf script` of Linux.
    Perf,
    /// Tables of `lockstat` of FreeBSD and illumos: nanoseconds that stacks waited for locks.
    Lockstat,
    /// Folded stacks.
    Folded,
}

/// Facts about an output that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folded {
    pub source: Source,
    /// The counted event, where the output names it.
    pub event: Option<String>,
    /// Whether the output ends within a line: a tool was ended while it wrote, or the disk was full.
    pub is_cut: bool,
}

/// Why there are no stacks.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("it is empty")]
    Empty,
    #[error(
        "it has no stacks that linerate reads: those of pmcstat -G, DTrace's stack(), btrace and bpftrace, perf script, lockstat, and folded stacks"
    )]
    Unknown,
    #[error(
        "it has nothing that linerate reads: distributions of DTrace's quantize(), or tables of lockstat with times (without -g)"
    )]
    NothingObserved,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Bytes that the format is recognised by.
const HEAD: u64 = 64 << 10;

/// Reads the output of a profiler and writes its stacks, folded. Stacks of pmcstat and folded ones keep their order; those of DTrace,
/// btrace and perf are sorted, each once.
///
/// # Errors
/// The input has no stacks, or it cannot be read, or the output not be written.
pub fn fold(mut input: impl BufRead, mut output: impl Write) -> Result<Folded, Fault> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head)?;
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::Empty);
    }
    let source = source_of(&head).ok_or(Fault::Unknown)?;
    let event = match source {
        Source::Pmcstat => pmcstat::event(&head),
        Source::Lockstat => Some("nanoseconds of waits for locks".into()),
        _ => None,
    };
    let mut input = Tail {
        input: io::Cursor::new(head).chain(input),
        last: b'\n',
    };
    match source {
        Source::Pmcstat => pmcstat::fold(&mut input, &mut output)?,
        Source::Dtrace => samples::fold_dtrace(&mut input, &mut output)?,
        Source::Btrace => samples::fold_btrace(&mut input, &mut output)?,
        Source::Perf => samples::fold_perf(&mut input, &mut output)?,
        Source::Lockstat => fold_lockstat(&mut input, &mut output)?,
        Source::Folded => drop(io::copy(&mut input, &mut output)?),
    }
    output.flush()?;
    Ok(Folded {
        source,
        event,
        is_cut: input.last != b'\n',
    })
}

fn fold_lockstat(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut reader = lockstat::Reader::default();
    samples::lines(input, |line| reader.line(line))?;
    reader.end();
    samples::write(&lockstat::folded(&reader.found), output)
}

/// The output of a tool of another system.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Observed {
    /// Distributions that a script of DTrace printed.
    Distributions(Vec<Distribution>),
    /// Waits for locks that lockstat printed.
    Locks(Vec<LockEvent>),
}

/// Reads distributions of DTrace, or tables of lockstat.
///
/// # Errors
/// The input has neither, or it cannot be read.
pub fn observed(mut input: impl BufRead) -> Result<Observed, Fault> {
    let (mut distributions, mut locks) = (
        distributions::Reader::default(),
        lockstat::Reader::default(),
    );
    samples::lines(&mut input, |line| {
        distributions.line(line);
        locks.line(line);
    })?;
    distributions.end();
    locks.end();
    let events: Vec<LockEvent> = locks
        .found
        .into_iter()
        .filter(|event| event.waited.waits > 0)
        .collect();
    match (events.is_empty(), distributions.found.is_empty()) {
        (false, _) => Ok(Observed::Locks(events)),
        (true, false) => Ok(Observed::Distributions(distributions.found)),
        (true, true) => Err(Fault::NothingObserved),
    }
}

/// Recognises the output by its first lines.
fn source_of(head: &[u8]) -> Option<Source> {
    let text = String::from_utf8_lossy(head);
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_address =
            |word: &&str| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let is_indented = line.starts_with([' ', '\t']);
        match words.as_slice() {
            _ if samples::begins_entry(line) => Some(Source::Btrace),
            _ if lockstat::is_event(line) || lockstat::is_record(&words) => Some(Source::Lockstat),
            _ if pmcstat::is_entry(line.as_bytes()) => Some(Source::Pmcstat),
            [address, _, ..] if is_indented && is_address(address) => Some(Source::Perf),
            [frame] if is_indented && frame.contains('`') => Some(Source::Dtrace),
            [.., _, samples] if !is_indented && line.contains(';') => {
                samples.parse::<u64>().ok().map(|_| Source::Folded)
            }
            _ => None,
        }
    })
}

/// Remembers the last byte that was read.
struct Tail<R> {
    input: R,
    last: u8,
}

impl<R: BufRead> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.last = buffer[..got].last().copied().unwrap_or(self.last);
        Ok(got)
    }
}

impl<R: BufRead> BufRead for Tail<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if amount > 0
            && let Ok(buffer) = self.input.fill_buf()
        {
            self.last = buffer.get(amount - 1).copied().unwrap_or(self.last);
        }
        self.input.consume(amount);
    }
}
