//! Commands with an input.

use super::error::RemoteError;
use super::execution_target::ExecutionTarget;
use super::run::{Finished, Order};
use super::session::Session;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

/// Keeps its input in a new file, whose name it prints; keeps nothing where not all has arrived.
const SPOOL: &str = r#"
IFS= read -r size && umask 077 && f=$(mktemp /tmp/linerate.XXXXXXXX) || exit 1
cat >"$f" && [ "$(($(wc -c <"$f")))" -eq "$size" ] && echo "$f" && exit 0
rm -f "$f"
exit 1
"#;
/// Bytes of error messages that are kept.
const COMPLAINT: usize = 4096;
/// A piece of a file.
const PIECE: usize = 64 * 1024;

/// Runs a command with this input, which arrives as a whole before the command begins: so the command can be ended at any time, and
/// never takes a part for the whole.
pub(super) fn spooled(
    place: &ExecutionTarget,
    order: &Order<'_>,
    input: &[u8],
    interrupted: Option<&AtomicBool>,
) -> Result<Finished, RemoteError> {
    let mut text = format!("{}\n", input.len()).into_bytes();
    text.extend_from_slice(input);
    let mut content = text.as_slice();
    let spool = Order { command: SPOOL, most_output: COMPLAINT, ..order.clone() };
    let input = Feed::of(&mut content);
    let spooled = place
        .run_fed(&spool, Some(input), interrupted)?
        .map_err(|e| RemoteError::system(place.name(), "read a text", &e))?;
    let name = spooled.text().trim().to_string();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "/.".contains(c));
    if !spooled.is_success() || !name.starts_with("/tmp/linerate.") || !is_name(&name) {
        return Ok(spooled);
    }
    // The shell stays, to take the file away.
    let command = format!("({}) <{name}; status=$?; rm -f {name}; exit $status", order.command);
    place.run(&Order { command: &command, ..order.clone() }, interrupted)
}

/// The input of a command, with at most one piece in memory.
pub(super) struct Feed<'r> {
    /// `None` once all of it was read, or the command reads no more.
    content: Option<&'r mut dyn Read>,
    piece: Vec<u8>,
    sent: usize,
    length: usize,
}

impl<'r> Feed<'r> {
    pub fn of(content: &'r mut dyn Read) -> Feed<'r> {
        Feed { content: Some(content), piece: vec![0; PIECE], sent: 0, length: 0 }
    }

    /// Whether to wait for room.
    pub fn has_more(&self) -> bool {
        self.content.is_some()
    }

    /// Sends as much as there is room for, and closes the input behind the last of it.
    pub fn go_on(&mut self, session: &Session) -> io::Result<()> {
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
                // It reads no more: it will print the reason, or its status shows that this is right.
                Err(_) => (self.content, self.sent) = (None, self.length),
            }
        }
        Ok(())
    }
}
