//! The controller's side of a session: which answer belongs to which question, whether the agent is still there, and what it says in
//! between.

use super::message::{Code, Fault, Reply, Request, decode, encode};
use super::silence::Silence;
use super::{BEAT_NS, FEATURES, GREET_NS, SILENCE_NS, SPOKEN, Versions};
use std::collections::BTreeMap;

/// What a line of the agent's meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The answer to a request: the request's number.
    Answer(u64, Reply),
    /// What a load says; the number of its go.
    Said(u64, Reply),
    /// A heartbeat, or text of the host's shell before the session begins.
    Nothing,
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The agent is not there any more, or has nobody to speak to.
    #[error("the connection ended{}", after(.0))]
    Closed(
        /// What it said last, or what the host's shell said.
        String,
    ),
    /// Nothing was heard of it.
    #[error("nothing was heard of the agent for {0} ms")]
    Silent(
        /// Milliseconds.
        u64,
    ),
    /// It ended the session.
    #[error("the agent ended the session: {0}")]
    Left(
        /// Its reason.
        String,
    ),
    /// It speaks no version that we do, or does not want us.
    #[error("{0}")]
    Refused(
        /// Its fault.
        Box<Fault>,
    ),
    /// What it says makes no sense.
    #[error("what it says makes no sense: {0}")]
    Nonsense(
        /// Why.
        String,
    ),
}

fn after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" (it said: {said})") }
}

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
    waiting: BTreeMap<u64, Request>,
    /// Numbers of the loads that were let go.
    loads: Vec<u64>,
    silence: Silence,
    beat_ns: u64,
    /// What the host's shell printed before the session began.
    preamble: String,
}

/// Text before the session begins, from a shell's start-up files or a banner; more is no agent.
const LONGEST_PREAMBLE: usize = 64 << 10;
/// What of it is kept to be shown.
const KEPT_PREAMBLE: usize = 400;

impl Session {
    /// A session that begins.
    pub fn new(now_ns: u64) -> Session {
        Session {
            phase: Phase::New,
            next: 1,
            waiting: BTreeMap::new(),
            loads: Vec::new(),
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
    pub fn greet(&mut self, linerate: &str, now_ns: u64) -> (u64, Vec<u8>) {
        self.greet_as(SPOKEN, linerate, now_ns)
    }

    /// The same, speaking other versions.
    pub fn greet_as(&mut self, protocol: Versions, linerate: &str, now_ns: u64) -> (u64, Vec<u8>) {
        self.phase = Phase::Greeting;
        (self.silence, self.beat_ns) = (Silence::since(now_ns), now_ns);
        let features = FEATURES.iter().map(ToString::to_string).collect();
        self.ask(Request::Hello { protocol, linerate: linerate.into(), features })
    }

    /// Asks: the request's number, and the line to be written.
    pub fn ask(&mut self, request: Request) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        let line = encode(id, &request);
        if !matches!(request, Request::Heartbeat {}) {
            self.waiting.insert(id, request);
        }
        (id, line)
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
            return Err(Lost::Closed(String::new()));
        }
        match decode::<Reply>(line) {
            Ok((id, reply)) => {
                self.silence = Silence::since(now_ns);
                self.reply(id, reply)
            }
            Err(_) if self.phase == Phase::Greeting => self.preamble(line),
            // A newer agent may say what we do not know, as long as we did not ask.
            Err(unread) if unread.fault.code == Code::Unknown && !self.waiting.contains_key(&unread.id) => {
                self.silence = Silence::since(now_ns);
                Ok(Heard::Nothing)
            }
            Err(unread) => self.over(Lost::Nonsense(unread.fault.why)),
        }
    }

    fn reply(&mut self, id: u64, reply: Reply) -> Result<Heard, Lost> {
        match (&reply, self.waiting.get(&id)) {
            (Reply::Heartbeat {}, _) => Ok(Heard::Nothing),
            (Reply::Goodbye { why: Some(why), .. }, _) => self.over(Lost::Left(why.clone())),
            (Reply::Began { .. } | Reply::Sample(_) | Reply::Ended { .. }, _) if self.loads.contains(&id) => {
                if matches!(reply, Reply::Ended { .. }) {
                    self.loads.retain(|load| *load != id);
                }
                Ok(Heard::Said(id, reply))
            }
            (Reply::Error(fault), _) if self.phase == Phase::Greeting => {
                self.over(Lost::Refused(Box::new(fault.clone())))
            }
            // A line of ours was not understood: it is not known which.
            (Reply::Error(fault), None) if fault.code == Code::Malformed => {
                self.over(Lost::Refused(Box::new(fault.clone())))
            }
            (_, Some(asked)) if asked.is_answered_by(&reply) => {
                match (asked, &reply) {
                    (Request::Hello { .. }, _) => self.phase = Phase::Open,
                    (Request::Go { .. }, Reply::Going {}) => self.loads.push(id),
                    (Request::Goodbye {}, Reply::Goodbye { .. }) => self.phase = Phase::Over,
                    _ => {}
                }
                self.waiting.remove(&id);
                Ok(Heard::Answer(id, reply))
            }
            (_, Some(asked)) => {
                let why = format!("{asked:?} was not answered, but {reply:?} said");
                self.over(Lost::Nonsense(why.chars().take(300).collect()))
            }
            // An answer that nobody waits for any more.
            (_, None) => Ok(Heard::Nothing),
        }
    }

    fn preamble(&mut self, line: &[u8]) -> Result<Heard, Lost> {
        self.preamble.push_str(&String::from_utf8_lossy(line));
        self.preamble.push('\n');
        if self.preamble.len() > LONGEST_PREAMBLE {
            let said = self.said();
            return self.over(Lost::Nonsense(format!("it is not a linerate agent: {said}")));
        }
        Ok(Heard::Nothing)
    }

    /// What the host's shell printed before the session began, fit to be shown.
    pub fn said(&self) -> String {
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
        Lost::Closed(self.said())
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
            Phase::Over => return Err(Lost::Closed(String::new())),
        };
        if silent > most {
            return self.over(Lost::Silent(silent / 1_000_000)).map(|_| None);
        }
        if self.phase == Phase::Open && now_ns.saturating_sub(self.beat_ns) >= BEAT_NS {
            self.beat_ns = now_ns;
            return Ok(Some(self.ask(Request::Heartbeat {}).1));
        }
        Ok(None)
    }
}
