//! What no file says: the machine type, and the versions of the tools in use.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    let spawn = |program: &str| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    };
    // Users' PATH often lacks the folders of administration tools.
    let child = spawn(program).or_else(|_| spawn(&format!("/usr/sbin/{program}")));
    let mut child = child.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => "not installed".to_string(),
        _ => format!("unknown ({e})"),
    })?;
    let began = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if began.elapsed() >= most {
            // Both fail only where it has ended in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("unknown ({program} did not answer within {} s)", most.as_secs_f64()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        // What is not text is no version; it then reads as silence.
        let _ = stdout.take(4096).read_to_string(&mut text);
    }
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
        let began = Instant::now();
        let slow = first_line("sleep", &["5"], Duration::from_millis(50)).unwrap_err();
        assert!(slow.contains("did not answer") && began.elapsed() < Duration::from_secs(3), "{slow}");
        assert!(first_line("true", &[], Duration::from_secs(1)).unwrap_err().contains("says nothing"));
    }

    #[test]
    fn this_machine_has_a_type() {
        assert!(!machine().is_empty() && !machine().starts_with("unknown"));
    }
}
