//! The pipes of a session: its input with linerate's signs of life, and its output with the lines of the supervising shell in it.

use linerate_linux::process::pipes;
use memchr::memmem;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a program with pipes to its input and from both its outputs.
pub fn spawn_piped(command: &mut Command) -> io::Result<(Child, OwnedFd, [OwnedFd; 2])> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(input), Some(output), Some(errors)) => {
            Ok((child, input.into(), [output.into(), errors.into()]))
        }
        _ => unreachable!("they were asked for"),
    }
}

/// Waits for a program's end; kills it when that takes longer.
pub fn end_within(child: &mut Child, within: Duration) {
    let began = Instant::now();
    while let Ok(None) = child.try_wait() {
        if began.elapsed() >= within {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a call was put off only because nothing was there.
pub fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// How often the thread looks around at least.
const LOOK: Duration = Duration::from_millis(100);

/// The input of a session.
#[derive(Debug)]
pub struct Control(Mutex<Option<File>>);

impl Control {
    /// The writing end of a pipe. Writers never wait for room in it.
    pub fn new(pipe: OwnedFd) -> io::Result<Arc<Control>> {
        pipes::no_waiting(&pipe)?;
        Ok(Arc::new(Control(Mutex::new(Some(File::from(pipe))))))
    }

    /// Writes as much as there is room for.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.pipe() {
            Some(pipe) => pipe.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes a line. Without room, the reader has been stuck for a long time, and the line is dropped.
    pub fn line(&self, line: &str) -> io::Result<()> {
        match self.write(format!("{line}\n").as_bytes()) {
            Err(e) if would_block(&e) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Writes all of it, for which there is room unless this user has very many pipes.
    pub fn write_all(&self, mut bytes: &[u8], within: Duration) -> io::Result<()> {
        let end = Instant::now() + within;
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(e) if would_block(&e) && Instant::now() < end => {
                    let Some(fd) = self.fd() else { return Err(e) };
                    pipes::poll(&[(fd, libc::POLLOUT)], LOOK)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The descriptor to poll before writing.
    pub fn fd(&self) -> Option<RawFd> {
        self.pipe().as_ref().map(File::as_raw_fd)
    }

    /// The end of the input.
    pub fn close(&self) {
        *self.pipe() = None;
    }

    fn pipe(&self) -> MutexGuard<'_, Option<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that is kept alive.
struct Kept {
    control: Weak<Control>,
    every: Duration,
    due: Instant,
}

#[derive(Default)]
struct Heart {
    kept: Vec<Kept>,
    beats: bool,
}

static HEART: Mutex<Heart> = Mutex::new(Heart {
    kept: Vec::new(),
    beats: false,
});

/// Writes a beat every so often, for as long as the session exists. It does so on a thread of its own: a caller that waits for a disk
/// must not lose a host over it.
pub fn keep_alive(control: &Arc<Control>, every: Duration) -> io::Result<()> {
    let mut heart = heart();
    heart.kept.push(Kept {
        control: Arc::downgrade(control),
        every,
        due: Instant::now(),
    });
    if !heart.beats {
        thread::Builder::new().name("heart".into()).spawn(beat)?;
        heart.beats = true;
    }
    Ok(())
}

fn heart() -> MutexGuard<'static, Heart> {
    HEART.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beat() {
    loop {
        let mut heart = heart();
        let now = Instant::now();
        heart.kept.retain_mut(|kept| {
            let Some(control) = kept.control.upgrade() else {
                return false;
            };
            if kept.due <= now {
                kept.due = now + kept.every;
                return control.line(".").is_ok();
            }
            true
        });
        let Some(next) = heart.kept.iter().map(|kept| kept.due).min() else {
            heart.beats = false;
            return;
        };
        drop(heart);
        thread::sleep(next.saturating_duration_since(now).min(LOOK));
    }
}

/// The longest text behind a mark.
const LONGEST: usize = 128;

/// A part of the text that came over a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Written by the command.
    Bytes(Vec<u8>),
    /// Said by the supervising shell.
    Marked(String),
}

/// Separates marked lines from the text around them, however it is cut into pieces.
#[derive(Debug)]
pub struct Scanner {
    mark: Vec<u8>,
    held: Vec<u8>,
}

impl Scanner {
    pub fn new(mark: &str) -> Scanner {
        Scanner {
            mark: format!("{mark} ").into_bytes(),
            held: Vec::new(),
        }
    }

    /// Takes the next piece. A possible beginning of a marked line is held back.
    pub fn feed(&mut self, piece: &[u8], parts: &mut Vec<Part>) {
        let joined;
        let mut rest = match self.held.is_empty() {
            true => piece,
            false => {
                joined = [std::mem::take(&mut self.held).as_slice(), piece].concat();
                &joined
            }
        };
        while let Some(at) = memmem::find(rest, &self.mark) {
            hand_over(&rest[..at], parts);
            let line = &rest[at + self.mark.len()..];
            match line.iter().take(LONGEST).position(|b| *b == b'\n') {
                Some(end) => {
                    parts.push(Part::Marked(
                        String::from_utf8_lossy(&line[..end]).trim_end().to_owned(),
                    ));
                    rest = &line[end + 1..];
                }
                None if line.len() < LONGEST => {
                    self.held = rest[at..].to_vec();
                    return;
                }
                None => {
                    hand_over(&rest[at..at + self.mark.len()], parts);
                    rest = line;
                }
            }
        }
        let kept = self.beginning(rest);
        hand_over(&rest[..rest.len() - kept], parts);
        self.held = rest[rest.len() - kept..].to_vec();
    }

    /// Nothing more will come.
    pub fn finish(&mut self, parts: &mut Vec<Part>) {
        hand_over(&std::mem::take(&mut self.held), parts);
    }

    /// How much of the end could be the beginning of a mark.
    fn beginning(&self, rest: &[u8]) -> usize {
        let most = rest.len().min(self.mark.len() - 1);
        (1..=most)
            .rev()
            .find(|n| self.mark.starts_with(&rest[rest.len() - n..]))
            .unwrap_or(0)
    }
}

fn hand_over(bytes: &[u8], parts: &mut Vec<Part>) {
    if !bytes.is_empty() {
        parts.push(Part::Bytes(bytes.to_vec()));
    }
}

/// A mark that cannot be guessed.
pub fn fresh_mark() -> io::Result<String> {
    let mut random = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().fold("linerate-".to_owned(), |mark, byte| {
        format!("{mark}{byte:02x}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All bytes, and all marked lines with the number of bytes before them.
    fn scan(pieces: &[&[u8]]) -> (Vec<u8>, Vec<(usize, String)>) {
        let (mut bytes, mut marked, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let mut scanner = Scanner::new("aab");
        pieces
            .iter()
            .for_each(|piece| scanner.feed(piece, &mut parts));
        scanner.finish(&mut parts);
        for part in parts {
            match part {
                Part::Bytes(b) => bytes.extend(b),
                Part::Marked(text) => marked.push((bytes.len(), text)),
            }
        }
        (bytes, marked)
    }

    #[test]
    fn marked_lines_are_found_and_the_rest_is_left_as_it_is() {
        let (bytes, marked) = scan(&[b"xaab ready\nyaaab over 3\nzaab", b" end"]);
        assert_eq!(bytes, b"xyazaab end");
        assert_eq!(marked, [(1, "ready".to_owned()), (3, "over 3".to_owned())]);
        let long = [b"aab ".as_slice(), &[b'x'; 1000], b"\n"].concat();
        assert_eq!(scan(&[&long]), (long, Vec::new()));
    }

    #[test]
    fn marks_differ() {
        assert_ne!(fresh_mark().unwrap(), fresh_mark().unwrap());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_it_is_cut(text in "[ab \n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..5)) {
            let text = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            prop_assert_eq!(scan(&pieces), scan(&[text]));
        }
    }
}
