//! `linerate rules`: rule sets of firewalls, as text.

use crate::cli::Rules;
use crate::output::Output;
use crate::output::usage;
use crate::progress::Progress;
use anyhow::{Context, Result};
use linerate_plan::Diagnostic;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Bytes after which it may take a while, and progress is shown: some 100 MB are written in a second.
const MUCH: u64 = 100 << 20;

/// Runs the verb.
///
/// # Errors
/// There is no such set, or it cannot be written.
pub fn run(args: &Rules) -> Result<ExitCode> {
    let set = args.set();
    let faults: Vec<String> = set.faults().into_iter().chain(set.part_fault(args.part)).map(told).collect();
    if !faults.is_empty() {
        return Err(usage(faults.join("\nlinerate: ")));
    }
    let comments = if args.plain { Vec::new() } else { set.comments(args.part) };
    match &args.output {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let mut out = Counted::new(file, true);
            set.write_part(args.part, &comments, &mut out)
                .with_context(|| format!("cannot write {}: what is in it is not complete", path.display()))?;
        }
        None => {
            let mut out = Counted::new(Output, !std::io::stdout().is_terminal());
            // Standard output keeps its error to itself until the end.
            let _ = set.write_part(args.part, &comments, &mut out);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn told(fault: Diagnostic) -> String {
    Diagnostic { subject: None, ..fault }.to_string()
}

/// Where the text goes, with a line that says how much it was once that is much.
struct Counted<W> {
    out: W,
    bytes: u64,
    shows: bool,
    progress: Option<Progress>,
}

impl<W: Write> Counted<W> {
    /// `shows`: a line of progress would not be in the text's way.
    fn new(out: W, shows: bool) -> Self {
        Counted { out, bytes: 0, shows, progress: None }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        if self.shows && self.bytes > MUCH {
            let progress = self.progress.get_or_insert_with(|| Progress::reading("the rule set", None));
            progress.advance_bytes(self.bytes);
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
