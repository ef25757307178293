//! The controller's side of a session: matches answers to questions, watches whether the agent is still there, and passes on its
//! messages in between.

use super::message::{Code, Reply, Request, decode, encode};
use super::silence::Silence;
use super::{BEAT_NS, GREET_NS, SILENCE_NS};
use std::collections::BTreeSet;

/// Meaning of a line of the agent's.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The answer to a request: the request's number.
    Answer(u64, Reply),
    /// A message of a load; with the number of its go.
    Said(u64, Reply),
    /// A heartbeat, or text of the host's shell before the session begins.
    Nothing,
}

/// Why a session is over, in words.
pub type Lost = String;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Greeting,
    Open,
    Over,
}

/// The controller's side of a session.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    next: u64,
    waiting: BTreeSet<u64>,
    /// Numbers of the loads that were let go.
    loads: BTreeSet<u64>,
    silence: Silence,
    beat_ns: u64,
    /// Output of the host's shell before the session began.
    preamble: String,
}

/// Text before the session begins, from a shell's start-up files or a banner; more is no agent.
const LONGEST_PREAMBLE: usize = 64 << 10;
/// Bytes of it that messages show.
const KEPT_PREAMBLE: usize = 400;

impl Session {
    /// A session that begins.
    pub fn new(now_ns: u64) -> Session {
        Session {
            phase: Phase::New,
            next: 1,
            waiting: BTreeSet::new(),
            loads: BTreeSet::new(),
            silence: Silence::since(now_ns),
            beat_ns: now_ns,
            preamble: String::new(),
        }
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Greets: the line to be written.
    pub fn greet(&mut self, protocol: u32, linerate: &str, now_ns: u64) -> (u64, Vec<u8>) {
        self.phase = Phase::Greeting;
        (self.silence, self.beat_ns) = (Silence::since(now_ns), now_ns);
        self.ask(&Request::Hello { protocol, linerate: linerate.into() })
    }

    /// Asks: the request's number, and the line to be written.
    pub fn ask(&mut self, request: &Request) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        match request {
            Request::Heartbeat {} => {}
            Request::Go { .. } => drop((self.waiting.insert(id), self.loads.insert(id))),
            _ => drop(self.waiting.insert(id)),
        }
        (id, encode(id, request))
    }

    /// Waits no longer for an answer: should it come, it is passed over.
    pub fn forget(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// Takes a line that came at `now_ns`.
    ///
    /// # Errors
    /// The session is over, and why.
    pub fn line(&mut self, line: &[u8], now_ns: u64) -> Result<Heard, Lost> {
        if self.phase == Phase::Over {
            return Err(self.closed());
        }
        match decode::<Reply>(line) {
            Ok((id, reply)) => {
                self.silence = Silence::since(now_ns);
                self.reply(id, reply)
            }
            // A shell may talk before the greeting is written.
            Err(_) if matches!(self.phase, Phase::New | Phase::Greeting) => self.preamble(line),
            // A newer agent may send unknown messages, as long as they are no answers.
            Err((id, fault)) if fault.code == Code::Unknown && !self.waiting.contains(&id) => {
                self.silence = Silence::since(now_ns);
                Ok(Heard::Nothing)
            }
            Err((_, fault)) => self.over(format!("it sent a malformed message: {}", fault.why)),
        }
    }

    fn reply(&mut self, id: u64, reply: Reply) -> Result<Heard, Lost> {
        let waited = self.waiting.contains(&id);
        match &reply {
            Reply::Heartbeat {} => return Ok(Heard::Nothing),
            Reply::Goodbye { why: Some(why) } => {
                return self.over(format!("the agent ended the session: {why}"));
            }
            Reply::Began { .. } | Reply::Sample(_) | Reply::Ended { .. } if self.loads.contains(&id) => {
                if matches!(reply, Reply::Ended { .. }) {
                    self.loads.remove(&id);
                }
                return Ok(Heard::Said(id, reply));
            }
            Reply::Error(fault) if self.phase == Phase::Greeting => return self.over(fault.to_string()),
            // A line of ours was not understood: it is not known which.
            Reply::Error(fault) if !waited && fault.code == Code::Malformed => {
                return self.over(fault.to_string());
            }
            // A late answer, which no caller waits for.
            _ if !waited => return Ok(Heard::Nothing),
            Reply::Welcome { .. } => self.phase = Phase::Open,
            Reply::Goodbye { .. } => self.phase = Phase::Over,
            Reply::Error(_) => drop(self.loads.remove(&id)),
            _ => {}
        }
        self.waiting.remove(&id);
        Ok(Heard::Answer(id, reply))
    }

    fn preamble(&mut self, line: &[u8]) -> Result<Heard, Lost> {
        self.preamble.push_str(&String::from_utf8_lossy(line));
        self.preamble.push('\n');
        if self.preamble.len() > LONGEST_PREAMBLE {
            let said = self.said();
            return self.over(format!("it is not a linerate agent: {said}"));
        }
        Ok(Heard::Nothing)
    }

    /// Output of the host's shell before the session began, made safe to show.
    fn said(&self) -> String {
        let plain = self.preamble.trim().chars().take(KEPT_PREAMBLE);
        plain.map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    fn over(&mut self, lost: Lost) -> Result<Heard, Lost> {
        self.phase = Phase::Over;
        Err(lost)
    }

    /// The stream has ended: why the session is over.
    pub fn closed(&mut self) -> Lost {
        self.phase = Phase::Over;
        let said = self.said();
        let said = if said.is_empty() { said } else { format!(" (it said: {said})") };
        format!("the connection ended{said}")
    }

    /// Time has passed: a line to be written, if one is due.
    ///
    /// # Errors
    /// Nothing was heard for too long.
    pub fn tick(&mut self, now_ns: u64) -> Result<Option<Vec<u8>>, Lost> {
        let silent = self.silence.look(now_ns);
        let most = match self.phase {
            Phase::New => return Ok(None),
            Phase::Greeting => GREET_NS,
            Phase::Open => SILENCE_NS,
            Phase::Over => return Err(self.closed()),
        };
        if silent > most {
            let why = format!("nothing was heard of the agent for {} ms", silent / 1_000_000);
            return self.over(why).map(|_| None);
        }
        if self.phase == Phase::Open && now_ns.saturating_sub(self.beat_ns) >= BEAT_NS {
            self.beat_ns = now_ns;
            return Ok(Some(self.ask(&Request::Heartbeat {}).1));
        }
        Ok(None)
    }
}
