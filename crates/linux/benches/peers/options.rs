//! Arguments, and the sizes of a quick and of a full run.

use std::path::PathBuf;
use std::time::Duration;

/// Text of `--help`.
pub const HELP: &str = "\
The speed benchmark: linerate against other packet generators and against the machine's limit. Needs root.

  --quick       few blocks, about a minute and a half; otherwise about five
  --json FILE   also write every slice and every bar as JSON ('-': to stdout, and the table to stderr)
  --seed N      seed of the order within blocks (default 1)
  --only LIST   of card,limit,threads,forwarding,receiver,pacing,memory (separated by commas)
  --help        this text

Exit status: 0 when every bar that could be measured was met, 1 when one was missed, 2 when it could not run.";

/// The contests, in the order they are run.
pub const CONTESTS: [&str; 7] = [
    "card",
    "limit",
    "threads",
    "forwarding",
    "receiver",
    "pacing",
    "memory",
];

/// The task that the arguments ask for.
pub enum Action {
    /// Print the help.
    Help,
    /// The benchmark.
    Run(Options),
    /// Be the process whose memory is measured.
    MemoryChild,
}

/// How to do it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Few blocks.
    pub quick: bool,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Seed of all orders.
    pub seed: u64,
    /// The contests to run.
    pub only: Vec<String>,
}

impl Options {
    /// Whether a contest was asked for.
    pub fn wants(&self, contest: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == contest)
    }

    /// Blocks of contests with external programs, whose slices take a second each.
    pub fn long_blocks(&self) -> usize {
        if self.quick { 6 } else { 18 }
    }

    /// Blocks of contests among our own programs.
    pub fn short_blocks(&self) -> usize {
        if self.quick { 8 } else { 40 }
    }

    /// Repetitions of each rate.
    pub fn pacing_runs(&self) -> usize {
        if self.quick { 3 } else { 6 }
    }

    /// The measured window where external programs take part.
    pub fn long_window(&self) -> Duration {
        Duration::from_millis(500)
    }

    /// The measured window among our own programs.
    pub fn short_window(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// Reads the arguments; `--bench`, which cargo adds, is ignored.
///
/// # Errors
/// The fault of the arguments.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Action, String> {
    let mut options = Options {
        quick: false,
        json: None,
        seed: 1,
        only: Vec::new(),
    };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--bench" => {}
            "--quick" => options.quick = true,
            "--json" => options.json = Some(value()?.into()),
            "--seed" => {
                let text = value()?;
                options.seed = text
                    .parse()
                    .map_err(|_| format!("--seed {text}: not a whole number"))?;
            }
            "--only" => options.only = contests(&value()?)?,
            "--help" | "-h" => return Ok(Action::Help),
            crate::memory::CHILD => return Ok(Action::MemoryChild),
            other => return Err(format!("there is no option {other}")),
        }
    }
    Ok(Action::Run(options))
}

fn contests(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|n| n.trim().to_string()).collect();
    match names.iter().find(|n| !CONTESTS.contains(&n.as_str())) {
        Some(unknown) => Err(format!(
            "--only {unknown}: there are {}",
            CONTESTS.join(", ")
        )),
        None => Ok(names),
    }
}
