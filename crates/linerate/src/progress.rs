//! A line that says how far a campaign is: on terminals only, and never on standard output.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A progress line; silent when standard error is not a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A line for a campaign of about `budget`.
    pub fn new(budget: Duration) -> Self {
        let bar = ProgressBar::new(budget.as_millis() as u64);
        if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:24} {elapsed:>3} of at most {prefix}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(format!("{} s", budget.as_secs()));
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

    /// Moves to `elapsed`.
    pub fn advance(&self, elapsed: Duration) {
        self.0.set_position(elapsed.as_millis() as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
