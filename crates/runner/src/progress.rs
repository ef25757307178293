//! A progress line: on terminals only, and never on standard output.

use crate::archive::Progress as Seen;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is shown.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Prints a message that is no error to standard error, unless nothing is to be shown.
pub fn mention(text: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        crate::messages::tell(text);
    }
}

/// Whether standard error is a terminal on which a line can be overwritten, and the user wants progress.
fn is_seen() -> bool {
    std::io::stderr().is_terminal()
        && !crate::messages::is_dumb()
        && !SILENT.load(Ordering::Relaxed)
}

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// A progress line; silent when standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    /// When it may appear.
    from: Instant,
}

impl Progress {
    /// A line for a campaign of so much time, or about so much.
    pub fn new(total: Duration, is_exact: bool) -> Self {
        let template = match is_exact {
            true => "{bar:24} {elapsed:>3} of {prefix}  {msg}",
            false => "{bar:24} {elapsed:>3} of about {prefix}  {msg}",
        };
        let progress = shown(ProgressBar::no_length(), template, "");
        progress.lasts(total);
        progress
    }

    /// Corrects the time of the whole.
    pub fn lasts(&self, total: Duration) {
        self.bar.set_length(total.as_millis() as u64);
        self.bar.set_prefix(format!("{:#}", HumanDuration(total)));
    }

    /// Whether somebody sees it.
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// A line for bytes: of `total`, or of an unknown number.
    pub fn of_bytes(name: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{bar:24} {percent:>3} % of {prefix}",
            None => "{bytes} of {prefix}",
        };
        shown(
            total.map_or_else(ProgressBar::no_length, ProgressBar::new),
            template,
            name,
        )
    }

    /// A line for work of unknown length, which [`Progress::say`] fills.
    pub fn of_steps() -> Self {
        let line = shown(ProgressBar::no_length(), "{elapsed:>3}  {msg}", "");
        if !line.bar.is_hidden() {
            line.bar.enable_steady_tick(Duration::from_secs(1));
        }
        line
    }

    /// Progress of files that are usually read in a moment: nothing is shown for two seconds.
    pub fn of_files() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Progress {
            bar,
            from: Instant::now() + PATIENCE,
        }
    }

    /// Says how many files have been read, from time to time: a clock for each would cost more than the file.
    pub fn files(&self, seen: Seen) {
        if seen.files.is_multiple_of(64) {
            self.say(format!(
                "{} files, {} MB read",
                seen.files,
                seen.bytes / 1_000_000
            ));
        }
    }

    /// Shows the current step.
    pub fn say(&self, text: impl Into<String>) {
        if self.bar.is_hidden() && Instant::now() >= self.from && is_seen() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(text.into());
        self.bar.tick();
    }

    /// Tells something that stays on the screen.
    pub fn tell(&self, text: &str) {
        if !SILENT.load(Ordering::Relaxed) {
            self.aside(|| crate::messages::tell(text));
        }
    }

    /// Prints something else, with the line out of the way.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Moves to `elapsed`. Work that takes longer than was said has no end that is known.
    pub fn advance(&self, elapsed: Duration) {
        if self
            .bar
            .length()
            .is_some_and(|total| total < elapsed.as_millis() as u64)
        {
            self.bar.unset_length();
            let style = ProgressStyle::with_template("{elapsed:>3} instead of {prefix}  {msg}");
            self.bar
                .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        self.bar.set_position(elapsed.as_millis() as u64);
    }

    /// Moves to this number of bytes.
    pub fn advance_bytes(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

/// A line of this shape, where standard error is a terminal.
fn shown(bar: ProgressBar, template: &str, prefix: &str) -> Progress {
    if is_seen() {
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(prefix.to_owned());
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    Progress {
        bar,
        from: Instant::now(),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
