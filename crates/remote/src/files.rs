//! Files to and from a host, over its connection.

use super::error::RemoteError;
use super::execution_target::ExecutionTarget;
use super::run::{Ending, Exchange, Finished, Order};
use super::session::{Kind, Session, Stream};
use linerate_hosts::phases::{Output, Status};
use std::io::{self, Read, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Writes a file beside its name, so that there is never half of one under it.
const PUSH: &str = r#"
IFS= read -r path && IFS= read -r size && part=$path.linerate &&
cat >"$part" && [ "$(($(wc -c <"$part")))" -eq "$size" ] && mv -f "$part" "$path" && exit 0
rm -f "$part"
exit 1
"#;
/// Keeps what it reads in a new file, whose name it prints; nothing of it where not all has arrived.
const SPOOL: &str = r#"
IFS= read -r size && umask 077 && f=$(mktemp /tmp/linerate.XXXXXXXX) || exit 1
cat >"$f" && [ "$(($(wc -c <"$f")))" -eq "$size" ] && echo "$f" && exit 0
rm -f "$f"
exit 1
"#;
const FETCH: &str = r#"IFS= read -r path && exec cat <"$path""#;
/// What is kept of complaints.
const COMPLAINT: usize = 4096;
/// A piece of a file.
const PIECE: usize = 64 * 1024;

/// A file that could not be sent or fetched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The connection.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The host's file system is full.
    #[error("{host}: no room for {path} ({said}); remove files there, or use another file system")]
    Full {
        /// What the host is called.
        host: String,
        /// The file there.
        path: String,
        /// What the host said.
        said: String,
    },
    /// The host refused.
    #[error("{host}: cannot {what} {path}: {said}")]
    Refused {
        /// What the host is called.
        host: String,
        /// What was tried.
        what: &'static str,
        /// The file there.
        path: String,
        /// What the host said.
        said: String,
    },
    /// It took too long.
    #[error("{host}: {path} was not through within {} s; see whether the connection is that slow, or a disk hangs", .limit.as_secs_f64())]
    TooSlow {
        /// What the host is called.
        host: String,
        /// The file there.
        path: String,
        /// How long it could have taken.
        limit: Duration,
    },
    /// The user wants to stop.
    #[error("{host}: {path} was left out because of an interrupt")]
    Interrupted {
        /// What the host is called.
        host: String,
        /// The file there.
        path: String,
    },
    /// It is longer than it may be.
    #[error("{host}: {path} is longer than {most} bytes")]
    TooLong {
        /// What the host is called.
        host: String,
        /// The file there.
        path: String,
        /// How long it could have been.
        most: u64,
    },
    /// The file on this side.
    #[error("{path} of {host} cannot be copied: {source}")]
    Here {
        /// What the host is called.
        host: String,
        /// The file there.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

/// The bounds that a copy is made in.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// How long it may take.
    pub limit: Duration,
    /// Bytes that may be fetched.
    pub most: u64,
    /// Whether the user wants to stop.
    pub interrupted: Option<&'a AtomicBool>,
}

impl Default for Bounds<'_> {
    fn default() -> Self {
        Bounds { limit: Duration::from_secs(60), most: 1 << 30, interrupted: None }
    }
}

impl ExecutionTarget {
    /// Writes a file of `size` bytes there. A file of that name is replaced, when all of the new one has arrived.
    ///
    /// # Errors
    /// The host is lost, full, or refuses; `content` has not as many bytes.
    pub fn push(
        &self,
        path: &str,
        size: u64,
        content: &mut dyn Read,
        bounds: &Bounds<'_>,
    ) -> Result<(), FileError> {
        let copy = Copy { place: self, path, what: "write", bounds };
        let mut exchange = copy.begin(PUSH, &format!("{path}\n{size}\n"))?;
        let mut complaint = Output::new(COMPLAINT);
        let mut content = content.take(size);
        let mut feed = Feed::of(&mut content);
        loop {
            feed.go_on(&exchange.session).map_err(|e| copy.here(e))?;
            exchange.wait(exchange.session.input().filter(|_| feed.has_more()))?;
            if let Some(ending) = exchange.step(&mut |_, bytes| complaint.push(bytes))? {
                return copy.judge(ending, &complaint);
            }
        }
    }

    /// Reads a file there into `to`.
    ///
    /// # Errors
    /// The host is lost or refuses; the file is too long; `to` cannot be written.
    pub fn fetch(&self, path: &str, to: &mut dyn Write, bounds: &Bounds<'_>) -> Result<u64, FileError> {
        let copy = Copy { place: self, path, what: "read", bounds };
        let mut exchange = copy.begin(FETCH, &format!("{path}\n"))?;
        let (mut complaint, mut length, mut failed) = (Output::new(COMPLAINT), 0, None);
        let ending = loop {
            exchange.wait(None)?;
            let ending = exchange.step(&mut |stream, bytes| match stream {
                Stream::Error => complaint.push(bytes),
                Stream::Output => {
                    length += bytes.len() as u64;
                    if failed.is_none() && length <= bounds.most {
                        failed = to.write_all(bytes).err();
                    }
                }
            })?;
            if let Some(error) = failed {
                return Err(copy.here(error));
            }
            if length > bounds.most {
                let (host, path) = (self.name().to_owned(), path.to_owned());
                return Err(FileError::TooLong { host, path, most: bounds.most });
            }
            if let Some(ending) = ending {
                break ending;
            }
        };
        copy.judge(ending, &complaint).map(|()| length)
    }
}

/// Why a command could not be given its input.
#[derive(Debug)]
pub(super) enum FedError {
    /// The connection.
    Remote(RemoteError),
    /// The input cannot be read here.
    Here(io::Error),
}

impl From<RemoteError> for FedError {
    fn from(error: RemoteError) -> Self {
        FedError::Remote(error)
    }
}

/// Runs a command with this as its input, of which there is never more than a piece in memory.
pub(super) fn fed(
    place: &ExecutionTarget,
    order: &Order<'_>,
    input: &mut dyn Read,
    interrupted: Option<&AtomicBool>,
) -> Result<Finished, FedError> {
    let mut kept = [Output::new(order.most_output), Output::new(order.most_output)];
    let mut exchange = Exchange::start(place, Kind::Fed, order, interrupted)?;
    let mut feed = Feed::of(input);
    loop {
        feed.go_on(&exchange.session).map_err(FedError::Here)?;
        exchange.wait(exchange.session.input().filter(|_| feed.has_more()))?;
        if let Some(ending) = exchange.step(&mut |stream, bytes| kept[stream as usize].push(bytes))? {
            let [stdout, stderr] = kept;
            return Ok(Finished { ending, stdout, stderr, took: exchange.began.elapsed() });
        }
    }
}

/// Runs a command with this as its input, all of which is there before the command begins: so it can be ended at any time, and never
/// takes a part for the whole.
pub(super) fn spooled(
    place: &ExecutionTarget,
    order: &Order<'_>,
    input: &[u8],
    interrupted: Option<&AtomicBool>,
) -> Result<Finished, FedError> {
    let mut content = format!("{}\n", input.len()).into_bytes();
    content.extend_from_slice(input);
    let spool = Order { command: SPOOL, most_output: COMPLAINT, ..order.clone() };
    let spooled = fed(place, &spool, &mut content.as_slice(), interrupted)?;
    let name = spooled.text().trim().to_string();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "/.".contains(c));
    if !spooled.is_success() || !name.starts_with("/tmp/linerate.") || !is_name(&name) {
        return Ok(spooled);
    }
    // The shell stays, to take the file away.
    let command = format!("({}) <{name}; status=$?; rm -f {name}; exit $status", order.command);
    Ok(place.run(&Order { command: &command, ..order.clone() }, interrupted)?)
}

/// The input of a command, piece by piece.
struct Feed<'r> {
    /// `None` once all of it was read, or the command reads no more.
    content: Option<&'r mut dyn Read>,
    piece: Vec<u8>,
    sent: usize,
    length: usize,
}

impl<'r> Feed<'r> {
    fn of(content: &'r mut dyn Read) -> Feed<'r> {
        Feed { content: Some(content), piece: vec![0; PIECE], sent: 0, length: 0 }
    }

    /// Whether to wait for room.
    fn has_more(&self) -> bool {
        self.content.is_some()
    }

    /// Sends what there is room for, and closes the input behind the last of it.
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
                // It reads no more: it will say why, or its status says that this is right.
                Err(_) => (self.content, self.sent) = (None, self.length),
            }
        }
        Ok(())
    }
}

/// A copy that is being made.
struct Copy<'a> {
    place: &'a ExecutionTarget,
    path: &'a str,
    what: &'static str,
    bounds: &'a Bounds<'a>,
}

impl<'a> Copy<'a> {
    fn begin(&self, command: &str, header: &str) -> Result<Exchange<'a>, FileError> {
        if self.path.is_empty() || self.path.contains(['\n', '\0']) {
            return Err(self.refused("a path has one line"));
        }
        let Bounds { limit, interrupted, .. } = *self.bounds;
        let order = Order::new(command).within(limit);
        let exchange = Exchange::start(self.place, Kind::Fed, &order, interrupted)?;
        // The header is shorter than a pipe.
        exchange.session.feed(header.as_bytes()).map_err(|e| self.here(e))?;
        Ok(exchange)
    }

    fn judge(&self, ending: Ending, complaint: &Output) -> Result<(), FileError> {
        let (host, path) = (self.place.name().to_owned(), self.path.to_owned());
        let said = String::from_utf8_lossy(&complaint.bytes()).trim().to_owned();
        match ending {
            Ending::Ended(Status::Exit(0)) => Ok(()),
            Ending::TimedOut => Err(FileError::TooSlow { host, path, limit: self.bounds.limit }),
            Ending::Interrupted => Err(FileError::Interrupted { host, path }),
            // FreeBSD and OpenBSD: "filesystem full" in the log of the kernel, the same words as on Linux for the program.
            Ending::Ended(_) if said.contains("No space left") || said.contains("quota exceeded") => {
                Err(FileError::Full { host, path, said })
            }
            Ending::Ended(_) if said.is_empty() => Err(self.refused("not all of it arrived")),
            Ending::Ended(_) => Err(self.refused(&said)),
        }
    }

    fn refused(&self, said: &str) -> FileError {
        let (host, path) = (self.place.name().to_owned(), self.path.to_owned());
        FileError::Refused { host, what: self.what, path, said: said.to_owned() }
    }

    fn here(&self, source: io::Error) -> FileError {
        FileError::Here { host: self.place.name().to_owned(), path: self.path.to_owned(), source }
    }
}
