//! The machine type, and the versions of the tools in use: no file has them.

use crate::process::{Job, ProcessError};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// `x86_64`, as `uname -m` says.
pub fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// linerate and the tools that it calls.
pub fn versions() -> BTreeMap<String, String> {
    let nft = first_line("nft", &["--version"], Duration::from_secs(1));
    BTreeMap::from([
        ("linerate".into(), env!("CARGO_PKG_VERSION").into()),
        ("nft".into(), nft.unwrap_or_else(|reason| reason)),
    ])
}

/// The first line that a command prints, or why there is none. A command that takes longer than `most` is killed.
fn first_line(program: &str, arguments: &[&str], most: Duration) -> Result<String, String> {
    let run = Job::new(program, arguments).within(most).run(|path| Command::new(path), None);
    let text = match run {
        Ok(finished) => finished.stdout,
        Err(ProcessError::Failed { finished, .. }) => finished.stdout,
        Err(ProcessError::NotInstalled(_)) => return Err("not installed".into()),
        Err(ProcessError::TooSlow { .. }) => {
            return Err(format!("unknown ({program} did not answer within {} s)", most.as_secs_f64()));
        }
        Err(error) => return Err(format!("unknown ({error})")),
    };
    let line = text.lines().next().map(str::trim).filter(|l| !l.is_empty());
    line.map(String::from).ok_or_else(|| format!("unknown ({program} says nothing)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_asked_but_not_waited_for() {
        assert_eq!(first_line("echo", &["v1"], Duration::from_secs(1)).unwrap(), "v1");
        assert_eq!(
            first_line("no-such-tool-anywhere", &[], Duration::from_secs(1)).unwrap_err(),
            "not installed"
        );
        let began = std::time::Instant::now();
        let slow = first_line("sleep", &["5"], Duration::from_millis(50)).unwrap_err();
        assert!(slow.contains("did not answer") && began.elapsed() < Duration::from_secs(3), "{slow}");
        assert!(first_line("true", &[], Duration::from_secs(1)).unwrap_err().contains("says nothing"));
    }

    #[test]
    fn this_machine_has_a_type() {
        assert!(!machine().is_empty() && !machine().starts_with("unknown"));
    }
}
