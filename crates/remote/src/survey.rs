//! A lab's hosts connected, and asked for all the facts that `linerate_hosts` checks. Nothing on them is changed.

mod asking;
mod frames;

use crate::{Connection, ExecutionTarget, Interrupt, RemoteError, Result, Target};
use asking::{Answer, ask};
pub use frames::{Frames, send_frames};

use linerate_hosts::phases::Status;
use linerate_hosts::preflight::{interface_questions, ways, ways_to_ask};
use linerate_hosts::systems::{Facts, Kernel, Question, Silence, Unanswered};
use linerate_plan::lab::{Host, Lab, Role};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Settings of connections that a lab file does not have.
#[derive(Debug, Clone, Default)]
pub struct Approach {
    /// Whether keys of hosts that are not known yet are accepted, and remembered.
    pub accept_new: bool,
    /// A configuration of ssh that is read instead of the user's.
    pub config: Option<PathBuf>,
    /// How long a load will take under which a DUT may not answer.
    pub load: Duration,
}

/// How long a host that sends may go on without linerate.
const SENDING: Duration = Duration::from_secs(3);
/// How long others may be silent, beside the time of a load.
const OTHERS: Duration = Duration::from_secs(20);

impl Approach {
    /// How a host is reached.
    pub fn target(&self, host: &Host) -> Target {
        let mut target = Target::of_lab(&host.name, &host.ssh);
        (target.accept_new, target.config) = (self.accept_new, self.config.clone());
        target.silence = if host.roles.contains(&Role::Generator) { SENDING } else { OTHERS + self.load };
        target
    }
}

/// Connects to all hosts of a lab, several at a time. Returns the hosts, and the errors of those that could not be reached, by
/// their names.
pub fn connect(
    lab: &Lab,
    approach: &Approach,
    cancelled: Interrupt<'_>,
) -> (BTreeMap<String, Arc<ExecutionTarget>>, BTreeMap<String, RemoteError>) {
    let targets: Vec<Target> = lab.hosts.iter().map(|host| approach.target(host)).collect();
    let (mut places, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for (host, answer) in lab.hosts.iter().zip(Connection::open_all(&targets, cancelled)) {
        match answer {
            Ok(connection) => {
                drop(places.insert(host.name.clone(), Arc::new(ExecutionTarget::from(connection))))
            }
            Err(error) => drop(errors.insert(host.name.clone(), error)),
        }
    }
    (places, errors)
}

/// Asks the hosts of a lab that have been reached, all at once. The facts of a host that is lost meanwhile say that it could not
/// be reached. If it is cancelled, the facts known until then are returned.
pub fn survey(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    cancelled: Interrupt<'_>,
) -> BTreeMap<String, Facts> {
    let mut facts = everywhere(lab, places, |host, place| Some(of_host(lab, host, place, cancelled)));
    // Between generators and receiver: each other's addresses are known now.
    let ways = ways(lab, &facts);
    ask_again(lab, places, &mut facts, cancelled, |host, _| {
        ways.get(&host.name).into_iter().flatten().copied().map(Question::Way).collect()
    });
    facts
}

/// Puts more questions to all hosts that are still there.
fn ask_again(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    facts: &mut BTreeMap<String, Facts>,
    cancelled: Interrupt<'_>,
    questions: impl Fn(&Host, &mut Facts) -> Vec<Question> + Sync,
) {
    let known = &*facts;
    let answered = everywhere(lab, places, |host, place| {
        let mut facts = known.get(&host.name).filter(|f| f.unreachable.is_none())?.clone();
        let kernel = facts.kernel()?;
        let (sudo, questions) = (is_root_by_sudo(host, &facts), questions(host, &mut facts));
        Some(match put(place, sudo, kernel, questions, &mut facts, cancelled) {
            Ok(()) => facts,
            Err(error) => unreachable(&error),
        })
    });
    facts.extend(answered);
}

/// Does something for each host that has been reached, on all at once.
fn everywhere<T: Send>(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    each: impl Fn(&Host, &ExecutionTarget) -> Option<T> + Sync,
) -> BTreeMap<String, T> {
    let each = &each;
    thread::scope(|scope| {
        let mut begun = Vec::new();
        for host in &lab.hosts {
            if let Some(place) = places.get(&host.name) {
                begun.push((host, scope.spawn(move || each(host, place))));
            }
        }
        let done = begun.into_iter().filter_map(|(host, thread)| match thread.join() {
            Ok(done) => Some((host.name.clone(), done?)),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.collect()
    })
}

/// The facts of a host that cannot be reached.
pub fn unreachable(error: &RemoteError) -> Facts {
    let said = if error.said.is_empty() { String::new() } else { format!(" ({})", error.said) };
    Facts::unreachable(format!("{}{said}", error.fault), error.fault.remedy())
}

fn of_host(lab: &Lab, host: &Host, place: &ExecutionTarget, cancelled: Interrupt<'_>) -> Facts {
    let mut facts = Facts::default();
    match rounds(lab, host, place, &mut facts, cancelled) {
        Ok(()) => facts,
        Err(error) => unreachable(&error),
    }
}

/// Later questions depend on earlier answers: the system decides about commands, addresses and ways about interfaces.
fn rounds(
    lab: &Lab,
    host: &Host,
    place: &ExecutionTarget,
    facts: &mut Facts,
    cancelled: Interrupt<'_>,
) -> Result<()> {
    // These are asked in the same words everywhere.
    put(place, false, Kernel::Linux, Question::first(), facts, cancelled)?;
    if let Some(system) = host.system {
        facts.assume(system);
    }
    let Some(kernel) = facts.kernel() else { return Ok(()) };
    let sudo = is_root_by_sudo(host, facts);
    let (mut second, ways) = (Question::second(kernel), ways_to_ask(lab, host, facts));
    second.extend(ways.iter().cloned());
    put(place, sudo, kernel, second, facts, cancelled)?;
    // The answers about interfaces show which of their ways are needed.
    let more = ways_to_ask(lab, host, facts).into_iter().filter(|way| !ways.contains(way)).collect();
    put(place, sudo, kernel, more, facts, cancelled)?;
    put(place, sudo, kernel, interface_questions(lab, host, facts), facts, cancelled)
}

/// Whether commands are run by sudo: where the lab file wants it, and it works.
fn is_root_by_sudo(host: &Host, facts: &Facts) -> bool {
    host.sudo && facts.sudo == Some(true) && facts.user != Some(0)
}

/// Puts questions to a host, and enters its answers.
fn put(
    place: &ExecutionTarget,
    sudo: bool,
    kernel: Kernel,
    questions: Vec<Question>,
    facts: &mut Facts,
    cancelled: Interrupt<'_>,
) -> Result<()> {
    let with_argv = |q: Question| q.argv(kernel).map(|argv| (q, argv));
    let (questions, programs): (Vec<_>, Vec<_>) = questions.into_iter().filter_map(with_argv).unzip();
    let answers = ask(place, sudo, &programs, cancelled)?;
    for ((question, argv), answer) in questions.iter().zip(&programs).zip(answers) {
        enter(facts, question, argv, answer);
    }
    Ok(())
}

fn enter(facts: &mut Facts, question: &Question, argv: &[String], answer: Answer) {
    let why = match answer.status {
        // That sudo is not there is an answer.
        Some(Status::Exit(126 | 127)) if *question != Question::Sudo => Some(Silence::Missing),
        None if answer.was_slow => Some(Silence::TooSlow),
        _ => None,
    };
    facts.unanswered.extend(why.map(|why| Unanswered { command: argv.join(" "), why }));
    let status = match answer.status {
        Some(Status::Exit(status)) => status,
        Some(Status::Signal(signal)) => 128 + signal,
        None => return,
    };
    match question {
        Question::Date => facts.date(&answer.output, answer.asked, answer.answered),
        _ => facts.answer(question, &answer.output, status),
    }
}
