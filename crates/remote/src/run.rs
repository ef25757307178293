//! One command on a host, waited for; with an input, if it has one.

use crate::{ExecutionTarget, Fault, Finished, Heard, Interrupt, Kind, Order, Result, Session};
use linerate_hosts::phases::{Cause, Output};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often is looked at the clock.
const LOOK: Duration = Duration::from_millis(20);
/// Keeps its input in a new file, whose name it prints; keeps nothing where not all has arrived. Who has not taken the file after LINGER
/// seconds was killed.
const SPOOL: &str = r#"
IFS= read -r size && umask 077 && f=$(mktemp /tmp/linerate.XXXXXXXX) || exit 1
trap 'rm -f "$f"; exit 1' HUP INT TERM
if cat >"$f" && [ "$(($(wc -c <"$f")))" -eq "$size" ]; then
	(
		trap '' HUP INT TERM
		left=LINGER
		while [ -e "$f" ] && [ "$left" -gt 0 ]; do
			sleep 1
			left=$((left - 1))
		done
		rm -f "$f"
	) </dev/null >/dev/null 2>&1 &
	echo "$f" && exit 0
fi
rm -f "$f"
exit 1
"#;
/// Seconds within which a command takes its input, also on a host that is slow to open a session.
const LINGER: u32 = 60;
/// Bytes of error messages that are kept.
const COMPLAINT: usize = 4096;
/// A piece of a file.
const PIECE: usize = 64 * 1024;

impl ExecutionTarget {
    /// Runs a command and waits for its end. A command that fails is no error.
    ///
    /// # Errors
    /// The host was lost, or runs no commands.
    pub fn run(&self, order: &Order, interrupted: Interrupt<'_>) -> Result<Finished> {
        self.exchange(order, None, interrupted, &mut |_| {})
    }

    /// Runs a command with this input, which arrives as a whole before the command begins: so the command can be ended at any time,
    /// and never takes a part for the whole.
    pub(super) fn run_with(
        &self,
        order: &Order,
        input: &[u8],
        interrupted: Interrupt<'_>,
    ) -> Result<Finished> {
        let command = SPOOL.replace("LINGER", &LINGER.to_string());
        let spool = Order {
            command,
            most_output: COMPLAINT,
            ..order.clone()
        };
        let mut text = format!("{}\n", input.len()).into_bytes();
        text.extend_from_slice(input);
        let spooled =
            self.exchange(&spool, Some(&mut text.as_slice()), interrupted, &mut |_| {})?;
        let name = spooled.text().trim().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/.".contains(c);
        if !spooled.is_success() || !name.starts_with("/tmp/linerate.") || !name.chars().all(plain)
        {
            return Ok(spooled);
        }
        // The file has no name while the command reads it: however the command ends, nothing stays behind.
        let command = format!("exec <{name} && rm -f {name} || exit; {}", order.command);
        let order = Order {
            command,
            ..order.clone()
        };
        self.run(&order, interrupted)
    }

    /// Runs a command, with an input if it has one, keeps its output and passes it on, and waits for its end. The input may be what cannot be read.
    pub(super) fn exchange(
        &self,
        order: &Order,
        input: Option<&mut dyn Read>,
        interrupted: Interrupt<'_>,
        each: &mut dyn FnMut(Heard),
    ) -> Result<Finished> {
        let mut kept = [(); 2].map(|()| Output::new(order.most_output));
        let kind = match input {
            Some(_) => Kind::Fed,
            None => Kind::Watched,
        };
        let mut session = Session::start(self, kind, order)?;
        let mut input = input.map(Feed::of);
        loop {
            let mut wanted: Vec<_> = session.watched().map(|fd| (fd, libc::POLLIN)).collect();
            if let Some(feed) = &mut input {
                let fed = feed.go_on(&session);
                fed.map_err(|error| self.error(Fault::Here, error.to_string()))?;
                let room = session.input().filter(|_| feed.has_more());
                wanted.extend(room.map(|fd| (fd, libc::POLLOUT)));
            }
            pipes::poll(&wanted, LOOK).map_err(self.system("wait for ssh"))?;
            let now = monotonic_ns();
            let over = session.step(self, now, &mut |heard| {
                if let Heard::Wrote(stream, bytes) = &heard {
                    kept[*stream as usize].push(bytes);
                }
                each(heard);
            });
            if let Some(outcome) = over? {
                let [stdout, stderr] = kept;
                return Ok(Finished {
                    outcome,
                    stdout,
                    stderr,
                });
            }
            if let Some(lost) = self.lost() {
                return Err(lost);
            }
            if session.is_ready() {
                session.go(now);
            }
            if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
                session.stop(Cause::Interrupt, now);
            }
        }
    }
}

/// The input of a command, with at most one piece in memory.
struct Feed<'r> {
    /// `None` once all of it was read, or the command reads no more.
    content: Option<&'r mut dyn Read>,
    piece: Vec<u8>,
    sent: usize,
    length: usize,
}

impl<'r> Feed<'r> {
    fn of(content: &'r mut dyn Read) -> Feed<'r> {
        Feed {
            content: Some(content),
            piece: vec![0; PIECE],
            sent: 0,
            length: 0,
        }
    }

    /// Whether to wait for room.
    fn has_more(&self) -> bool {
        self.content.is_some()
    }

    /// Sends as much as there is room for, and closes the input behind the last of it.
    fn go_on(&mut self, session: &Session) -> io::Result<()> {
        if let Some(content) = self.content.as_mut().filter(|_| self.sent == self.length) {
            (self.sent, self.length) = (0, content.read(&mut self.piece)?);
            if self.length == 0 {
                self.content = None;
                session.close_input();
            }
        }
        if self.sent < self.length {
            match session.feed(&self.piece[self.sent..self.length]) {
                Ok(written) => self.sent += written,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // The command reads no more: it will print the reason, or its status shows that this is right.
                Err(_) => (self.content, self.sent) = (None, self.length),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// A linerate that is killed takes no input.
    #[test]
    fn an_input_that_nobody_takes_is_removed() {
        let spooled = |input: &[u8]| {
            let mut sh = Command::new("sh");
            let sh = sh
                .args(["-c", &SPOOL.replace("LINGER", "5")])
                .stdin(Stdio::piped());
            let mut sh = sh.stdout(Stdio::piped()).spawn().unwrap();
            sh.stdin.take().unwrap().write_all(input).unwrap();
            String::from_utf8(sh.wait_with_output().unwrap().stdout).unwrap()
        };
        assert_eq!(spooled(b"9\nhalf"), "");
        let file = PathBuf::from(spooled(b"6\nrules\n").trim());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "rules\n");
        while file.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
