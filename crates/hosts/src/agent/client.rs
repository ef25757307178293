//! The controller's side of a session: matches answers to questions, watches whether the agent is still there, and keeps its
//! messages until somebody takes them.

use super::message::{Code, Reply, Request, decode, encode};
use super::{BEAT_NS, GREET_NS, IDLE_SILENCE_NS, LOADED_SILENCE_NS, Silence};
use crate::words::{one_line, unless_empty};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Open,
    Over,
}

/// The controller's side of a session.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    next: u64,
    /// By the number of a request: its answer with the time when it was here, once there is one.
    answers: BTreeMap<u64, Option<(u64, Reply)>>,
    /// Numbers of the loads that were let go.
    loads: BTreeSet<u64>,
    /// Messages of loads, by these numbers.
    said: VecDeque<(u64, Reply)>,
    silence: Silence,
    beat_ns: u64,
    /// Output of the host's shell before the session began.
    preamble: String,
    /// The last part of the standard error of the process that leads to the agent.
    complaints: Vec<u8>,
    /// Why the session is over, in words.
    lost: Option<String>,
}

/// Text before the session begins, from a shell's start-up files or a banner; more is no agent.
const LONGEST_PREAMBLE: usize = 64 << 10;
/// Bytes of it that messages show.
const KEPT_PREAMBLE: usize = 400;
/// Bytes that are kept of complaints: the last.
const KEPT_COMPLAINTS: usize = 600;
/// Most messages of loads that wait for a caller; the oldest are dropped.
const UNTAKEN: usize = 200_000;

impl Session {
    /// A session that begins.
    pub fn new(now_ns: u64) -> Session {
        Session {
            phase: Phase::Greeting,
            next: 1,
            answers: BTreeMap::new(),
            loads: BTreeSet::new(),
            said: VecDeque::new(),
            silence: Silence::since(now_ns),
            beat_ns: now_ns,
            preamble: String::new(),
            complaints: Vec::new(),
            lost: None,
        }
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Why the agent was lost; `None` while it is there, and after a goodbye.
    pub fn lost(&self) -> Option<&String> {
        self.lost.as_ref()
    }

    /// Ends the session; the first reason counts.
    pub fn lose(&mut self, why: impl Into<String>) {
        self.phase = Phase::Over;
        self.lost.get_or_insert_with(|| why.into());
    }

    /// Greets: the line to be written.
    pub fn greet(&mut self, protocol: u32, linerate: &str) -> (u64, Vec<u8>) {
        self.ask(&Request::Hello {
            protocol,
            linerate: linerate.into(),
        })
    }

    /// Asks: the request's number, and the line to be written.
    pub fn ask(&mut self, request: &Request) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        if *request != (Request::Heartbeat {}) {
            self.answers.insert(id, None);
        }
        if let Request::Go { .. } = request {
            self.loads.insert(id);
        }
        (id, encode(id, request))
    }

    /// Takes the answer to a request, with the time when it was here.
    pub fn answer(&mut self, id: u64) -> Option<(u64, Reply)> {
        let answer = self.answers.get_mut(&id)?.take()?;
        self.answers.remove(&id);
        Some(answer)
    }

    /// Takes the oldest message of a load.
    pub fn said(&mut self, load: u64) -> Option<Reply> {
        let at = self.said.iter().position(|(id, _)| *id == load)?;
        self.said.remove(at).map(|(_, reply)| reply)
    }

    /// Waits no longer for an answer: should it come, it is passed over.
    pub fn forget(&mut self, id: u64) {
        self.answers.remove(&id);
    }

    /// Takes a line that came at `now_ns`.
    pub fn line(&mut self, line: &[u8], now_ns: u64) {
        match decode::<Reply>(line) {
            _ if self.is_over() => {}
            Ok((id, reply)) => {
                self.silence = Silence::since(now_ns);
                self.reply(id, reply, now_ns);
            }
            // A shell may talk before the greeting is written.
            Err(_) if self.phase == Phase::Greeting => self.preamble(line),
            // A newer agent may send unknown messages, as long as they are no answers.
            Err((id, fault)) if fault.code == Code::Unknown && !self.is_waited_for(id) => {
                self.silence = Silence::since(now_ns);
            }
            Err((_, fault)) => self.lose(format!("it sent a malformed message: {}", fault.why)),
        }
    }

    fn is_waited_for(&self, id: u64) -> bool {
        self.answers.get(&id).is_some_and(Option::is_none)
    }

    fn reply(&mut self, id: u64, reply: Reply, now_ns: u64) {
        let waited = self.is_waited_for(id);
        match &reply {
            Reply::Heartbeat {} => return,
            Reply::Goodbye { why: Some(why) } => {
                return self.lose(format!("the agent ended the session: {why}"));
            }
            Reply::Began { .. } | Reply::Sample(_) | Reply::Ended { .. }
                if self.loads.contains(&id) =>
            {
                if matches!(reply, Reply::Ended { .. }) {
                    self.loads.remove(&id);
                }
                if self.said.len() >= UNTAKEN {
                    self.said.pop_front();
                }
                return self.said.push_back((id, reply));
            }
            Reply::Error(fault) if self.phase == Phase::Greeting => {
                return self.lose(fault.to_string());
            }
            // A line of ours was not understood: it is not known which.
            Reply::Error(fault) if !waited && fault.code == Code::Malformed => {
                return self.lose(fault.to_string());
            }
            // A late answer, which no caller waits for.
            _ if !waited => return,
            Reply::Welcome { .. } => self.phase = Phase::Open,
            Reply::Goodbye { .. } => self.phase = Phase::Over,
            Reply::Error(_) => drop(self.loads.remove(&id)),
            _ => {}
        }
        self.answers.insert(id, Some((now_ns, reply)));
    }

    fn preamble(&mut self, line: &[u8]) {
        self.preamble.push_str(&String::from_utf8_lossy(line));
        self.preamble.push('\n');
        if self.preamble.len() > LONGEST_PREAMBLE {
            self.lose(format!("it is not a linerate agent: {}", self.shell_said()));
        }
    }

    /// Output of the host's shell before the session began, made safe to show.
    fn shell_said(&self) -> String {
        one_line(&self.preamble, KEPT_PREAMBLE)
    }

    /// The process that leads to the agent has written this to standard error.
    pub fn complained(&mut self, bytes: &[u8]) {
        self.complaints.extend_from_slice(bytes);
        let over = self.complaints.len().saturating_sub(KEPT_COMPLAINTS);
        self.complaints.drain(..over);
    }

    /// The last part of that output, on one line.
    pub fn complaints(&self) -> String {
        let text = String::from_utf8_lossy(&self.complaints);
        one_line(&text.trim().replace('\n', " / "), KEPT_COMPLAINTS)
    }

    /// The stream has ended.
    pub fn closed(&mut self) {
        let said = unless_empty(" (it said: ", &self.shell_said(), ")");
        self.lose(format!("the connection ended{said}"));
    }

    /// Time has passed: a line to be written, if one is due. The agent is lost when nothing was heard for too long.
    pub fn tick(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let silent = self.silence.look(now_ns);
        let most = match self.phase {
            Phase::Over => return None,
            Phase::Greeting => GREET_NS,
            Phase::Open if self.loads.is_empty() => IDLE_SILENCE_NS,
            Phase::Open => LOADED_SILENCE_NS,
        };
        if silent > most {
            self.lose(format!(
                "nothing was heard of the agent for {} ms",
                silent / 1_000_000
            ));
            return None;
        }
        if self.phase == Phase::Greeting || now_ns.saturating_sub(self.beat_ns) < BEAT_NS {
            return None;
        }
        self.beat_ns = now_ns;
        Some(self.ask(&Request::Heartbeat {}).1)
    }
}
