//! QEMU's own protocol (QMP): one JSON object a line, over a pair of sockets.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long QEMU may take for an answer.
const WITHIN: Duration = Duration::from_secs(20);
/// Bytes of a line at most.
const LONGEST: u64 = 1 << 20;

/// The dialogue with one QEMU.
#[derive(Debug)]
pub struct Qmp(BufReader<UnixStream>);

impl Qmp {
    /// # Errors
    /// QEMU has ended, or says something else.
    pub fn open(socket: UnixStream) -> io::Result<Qmp> {
        socket.set_read_timeout(Some(WITHIN))?;
        socket.set_write_timeout(Some(WITHIN))?;
        let mut qmp = Qmp(BufReader::new(socket));
        qmp.message()?;
        qmp.order("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Gives an order, and returns its answer.
    ///
    /// # Errors
    /// QEMU has ended, or refuses.
    pub fn order(&mut self, what: &str, with: Value) -> io::Result<Value> {
        let order = json!({"execute": what, "arguments": with});
        self.0
            .get_mut()
            .write_all(format!("{order}\n").as_bytes())?;
        loop {
            let mut message = self.message()?;
            if let Some(fault) = message.get("error") {
                return Err(io::Error::other(format!("QEMU refuses {what}: {fault}")));
            }
            // The others are events.
            if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }

    fn message(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        Read::by_ref(&mut self.0)
            .take(LONGEST)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}
