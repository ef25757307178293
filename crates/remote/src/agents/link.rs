//! The pipes to an agent, and the process that holds them: ssh, `ip netns exec`, or the agent itself.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Two pipes to an agent.
pub struct Link {
    input: Box<dyn Write + Send>,
    output: Box<dyn Read + Send>,
    rest: Rest,
}

/// What is left of a link once its pipes are in use.
pub(super) struct Rest {
    child: Option<Child>,
    complaints: Arc<Complaints>,
}

/// What a process has said on its standard error.
#[derive(Default)]
struct Complaints {
    end: Mutex<Vec<u8>>,
    complete: AtomicBool,
}

/// What is kept of a process's complaints: their end.
const KEPT: usize = 4096;
/// What is shown of them.
const SHOWN: usize = 600;
/// How long the last words of a process that has closed its output are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How often is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

impl Link {
    /// Pipes that somebody else has made.
    pub fn of_pipes(input: impl Write + Send + 'static, output: impl Read + Send + 'static) -> Link {
        let rest = Rest { child: None, complaints: Arc::default() };
        Link { input: Box::new(input), output: Box::new(output), rest }
    }

    /// Starts a process whose standard input and output lead to an agent. What it says on its standard error is kept for messages.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<Link> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a process without pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let complaints = Arc::<Complaints>::default();
        if let Some(errors) = child.stderr.take() {
            let kept = Arc::clone(&complaints);
            std::thread::spawn(move || keep(errors, &kept));
        }
        let rest = Rest { child: Some(child), complaints };
        Ok(Link { input: Box::new(input), output: Box::new(output), rest })
    }

    pub(super) fn split(self) -> (Box<dyn Write + Send>, Box<dyn Read + Send>, Rest) {
        (self.input, self.output, self.rest)
    }
}

fn keep(mut errors: impl Read, complaints: &Complaints) {
    let mut piece = [0; 4096];
    while let Ok(length) = errors.read(&mut piece) {
        if length == 0 {
            break;
        }
        let mut kept = complaints.end.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..length]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
    complaints.complete.store(true, Ordering::Release);
}

impl Rest {
    /// The end of what the process complained of, on one line. Where it is about to end, its last words are waited for.
    pub fn complaints(&self) -> String {
        let began = Instant::now();
        while self.child.is_some()
            && !self.complaints.complete.load(Ordering::Acquire)
            && began.elapsed() < LAST_WORDS
        {
            std::thread::sleep(LOOK);
        }
        let kept = self.complaints.end.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept).trim().replace('\n', " / ");
        let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        text[from..].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    /// Waits for the process's end; kills it when it takes longer.
    pub fn end(&mut self, within: Duration) {
        let Some(child) = &mut self.child else { return };
        let began = Instant::now();
        while began.elapsed() < within {
            match child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK),
                _ => return,
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
