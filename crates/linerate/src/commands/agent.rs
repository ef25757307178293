//! `linerate agent`: serves a controller that has started it, over ssh or another way that leads to its two pipes.

use crate::prelude::*;
use linerate_linux::agent::{self, Connection, Options};

/// Runs the verb.
///
/// # Errors
/// The verb was started by hand.
pub fn run() -> Exit {
    if std::io::stdin().is_terminal() {
        bail!(
            "linerate agent is started by linerate on another host, over ssh; it speaks no language for people (docs/agent.md)"
        );
    }
    interrupt::install();
    interrupt::be_patient();
    let options = Options {
        linerate: env!("CARGO_PKG_VERSION").into(),
        connection: Connection::of_this_process(),
    };
    let clean = agent::serve(
        std::io::stdin(),
        std::io::stdout(),
        options,
        &interrupt::INTERRUPTED,
    );
    exit(match (clean, interrupted()) {
        (true, _) => SUCCESS,
        (false, true) => INTERRUPTED,
        (false, false) => FAILED,
    })
}
