//! A line that says how far something is: on terminals only, and never on standard output.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is shown.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether standard error is a terminal on which a line can be written over, and somebody wants to see it.
fn is_seen() -> bool {
    std::io::stderr().is_terminal() && !crate::output::is_dumb() && !SILENT.load(Ordering::Relaxed)
}

/// A progress line; silent when standard error is not a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A line for a campaign of about `budget`.
    pub fn new(budget: Duration) -> Self {
        let bar = ProgressBar::new(budget.as_millis() as u64);
        shown(bar, "{bar:24} {elapsed:>3} of at most {prefix}  {msg}", &format!("{} s", budget.as_secs()))
    }

    /// A line for reading: of `total` bytes, or of nobody knows how many.
    pub fn reading(name: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{bar:24} {percent:>3} % of {prefix}",
            None => "{bytes} of {prefix}",
        };
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        shown(bar, template, name)
    }

    /// A line for something that says nothing of how far it is.
    pub fn busy(what: &str) -> Self {
        let line = shown(ProgressBar::no_length(), "{spinner} {elapsed:>3}  {prefix}", what);
        if !line.0.is_hidden() {
            line.0.enable_steady_tick(Duration::from_millis(200));
        }
        line
    }

    /// A line for work of unknown length, which [`Progress::say`] fills.
    pub fn of_steps() -> Self {
        let bar = ProgressBar::no_length();
        if is_seen() {
            let style = ProgressStyle::with_template("{elapsed:>3}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress(bar)
    }

    /// Says what is going on now.
    pub fn say(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
        self.0.tick();
    }

    /// Prints something else, with the line out of the way.
    pub fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Moves to `elapsed`.
    pub fn advance(&self, elapsed: Duration) {
        self.0.set_position(elapsed.as_millis() as u64);
    }

    /// Moves to so many bytes read.
    pub fn advance_bytes(&self, bytes: u64) {
        self.0.set_position(bytes);
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
    Progress(bar)
}

/// A line that says how much was read, for what takes longer than two seconds and has no known end.
pub struct Counting {
    bar: ProgressBar,
    began: Instant,
}

impl Counting {
    /// Nothing is shown for the first two seconds, nor without a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Counting { bar, began: Instant::now() }
    }

    /// Says what is going on now.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if self.bar.is_hidden() {
            if self.began.elapsed() < Duration::from_secs(2) || !is_seen() {
                return;
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(text());
        self.bar.tick();
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
