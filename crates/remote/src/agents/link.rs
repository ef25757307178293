//! The pipes to an agent, and the process that holds them: ssh, `ip netns exec`, or the agent itself.

use crate::Control;
use linerate_linux::process::pipes::{self, Outlet};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Two pipes to an agent.
pub struct Link {
    pub(super) control: Arc<Control>,
    pub(super) output: Box<dyn Read + Send>,
    pub(super) rest: Rest,
}

/// The parts of a link that remain once its pipes are in use.
pub(super) struct Rest {
    child: Option<Child>,
    /// The process's standard error, and the end of its text.
    complaints: Mutex<(Outlet, Vec<u8>)>,
}

/// Most bytes of a process's standard error in a message: its end.
const SHOWN: usize = 600;
/// How long the last words of a process that has closed its output are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How often is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

impl Link {
    /// Uses existing pipes.
    ///
    /// # Errors
    /// The system does not take the pipe.
    pub fn of_pipes(input: impl Into<OwnedFd>, output: impl Read + Send + 'static) -> io::Result<Link> {
        let rest = Rest { child: None, complaints: Mutex::new((Outlet::new(None), Vec::new())) };
        Ok(Link { control: Control::new(input.into())?, output: Box::new(output), rest })
    }

    /// Starts a process whose standard input and output lead to an agent. Its standard error is kept for messages.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<Link> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a process without pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = Outlet::new(child.stderr.take().map(Into::into));
        let rest = Rest { child: Some(child), complaints: Mutex::new((errors, Vec::new())) };
        Ok(Link { rest, ..Link::of_pipes(input, output)? })
    }
}

impl Rest {
    /// The end of the process's standard error, on one line. If the process is about to end, waits for its last words.
    pub fn complaints(&self) -> String {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let (outlet, kept) = &mut *complaints;
        let began = Instant::now();
        while !outlet.is_closed() && began.elapsed() < LAST_WORDS {
            let _ = pipes::wait(std::slice::from_ref(outlet), LOOK);
            let _ = outlet.read(&mut |bytes| {
                kept.extend_from_slice(bytes);
                kept.drain(..kept.len().saturating_sub(SHOWN));
            });
        }
        let text = String::from_utf8_lossy(kept).trim().replace('\n', " / ");
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
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
