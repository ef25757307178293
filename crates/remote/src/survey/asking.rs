//! Hosts are connected, and asked.

use crate::error::in_brackets;
use crate::{
    ExecutionTarget, Heard, Interrupt, Order, Part, RemoteError, Result, Scanner, Stream, Target,
    fresh_mark, line,
};
use linerate_hosts::configuration::{kept, label};
use linerate_hosts::phases::{Outcome, Status};
use linerate_hosts::preflight::{interface_questions, ways, ways_to_ask};
use linerate_hosts::systems::{Facts, Kernel, MOST_BYTES, Question, Silence, Unanswered, shown};
use linerate_measure::record::Collected;
use linerate_plan::lab::{Host, Lab, Reach, Role};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
        let usual = if host.roles.contains(&Role::Generator) {
            SENDING
        } else {
            OTHERS + self.load
        };
        let reached = match &host.reach {
            Reach::Ssh(ssh) => Target::from(ssh),
            Reach::Namespace(name) => Target {
                namespace: true,
                ..Target::new(name)
            },
        };
        Target {
            name: host.name.clone(),
            config: self.config.clone(),
            accept_new: self.accept_new,
            silence: host.silence_ns.map_or(usual, Duration::from_nanos),
            ..reached
        }
    }
}

/// Connects to all hosts of a lab, several at a time. Returns the hosts, and the errors of those that could not be reached, by
/// their names.
pub fn connect(
    lab: &Lab,
    approach: &Approach,
    cancelled: Interrupt<'_>,
) -> (
    BTreeMap<String, Arc<ExecutionTarget>>,
    BTreeMap<String, RemoteError>,
) {
    let targets: Vec<Target> = lab.hosts.iter().map(|host| approach.target(host)).collect();
    let (mut places, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for (host, answer) in lab
        .hosts
        .iter()
        .zip(ExecutionTarget::connect_all(&targets, cancelled))
    {
        match answer {
            Ok(place) => drop(places.insert(host.name.clone(), Arc::new(place))),
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
    let mut facts = everywhere(lab, places, |host, place| {
        Some(known(of_host(lab, host, place, cancelled)))
    });
    // Between generators and receiver: each other's addresses are known now.
    let ways = ways(lab, &facts);
    ask_again(lab, places, &mut facts, cancelled, |host, _| {
        ways.get(&host.name)
            .into_iter()
            .flatten()
            .copied()
            .map(Question::Way)
            .collect()
    });
    facts
}

/// Puts more questions to all hosts that are still there.
pub(super) fn ask_again(
    lab: &Lab,
    places: &BTreeMap<String, Arc<ExecutionTarget>>,
    facts: &mut BTreeMap<String, Facts>,
    cancelled: Interrupt<'_>,
    questions: impl Fn(&Host, &mut Facts) -> Vec<Question> + Sync,
) {
    let before = &*facts;
    let answered = everywhere(lab, places, |host, place| {
        let mut facts = before
            .get(&host.name)
            .filter(|f| f.unreachable.is_none())?
            .clone();
        facts.kernel()?;
        let questions = questions(host, &mut facts);
        Some(known(
            put(host, place, questions, &mut facts, cancelled).map(|()| facts),
        ))
    });
    facts.extend(answered);
}

/// Does something for each host that has been reached, on all at once.
pub(super) fn everywhere<T: Send>(
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
        let done = begun
            .into_iter()
            .filter_map(|(host, thread)| match thread.join() {
                Ok(done) => Some((host.name.clone(), done?)),
                Err(panic) => std::panic::resume_unwind(panic),
            });
        done.collect()
    })
}

/// The facts of a host that cannot be reached.
pub fn unreachable(error: &RemoteError) -> Facts {
    let said = in_brackets(&error.said);
    Facts::unreachable(format!("{}{said}", error.fault), error.fault.remedy())
}

/// The facts of a host, whether or not it was reached.
fn known(asked: Result<Facts>) -> Facts {
    asked.unwrap_or_else(|error| unreachable(&error))
}

/// Later questions depend on earlier answers: the system decides about commands, addresses and ways about interfaces.
fn of_host(
    lab: &Lab,
    host: &Host,
    place: &ExecutionTarget,
    cancelled: Interrupt<'_>,
) -> Result<Facts> {
    let mut facts = Facts::default();
    let put = |questions, facts: &mut Facts| put(host, place, questions, facts, cancelled);
    put(Question::first(), &mut facts)?;
    if let Some(system) = host.system {
        facts.assume(system);
    }
    let Some(kernel) = facts.kernel() else {
        return Ok(facts);
    };
    let (mut second, ways) = (Question::second(kernel), ways_to_ask(lab, host, &facts));
    second.extend(ways.iter().cloned());
    put(second, &mut facts)?;
    // The answers about interfaces show which of their ways are needed.
    let more = ways_to_ask(lab, host, &facts)
        .into_iter()
        .filter(|way| !ways.contains(way))
        .collect();
    put(more, &mut facts)?;
    put(interface_questions(lab, host, &facts), &mut facts)?;
    Ok(facts)
}

/// Whether commands are run by sudo: where the lab file wants it, and it works.
pub(super) fn is_root_by_sudo(host: &Host, facts: &Facts) -> bool {
    host.sudo && facts.sudo == Some(true) && facts.user != Some(0)
}

/// Puts questions to a host, and enters its answers. The first are asked in the same words everywhere.
pub(super) fn put(
    host: &Host,
    place: &ExecutionTarget,
    questions: Vec<Question>,
    facts: &mut Facts,
    cancelled: Interrupt<'_>,
) -> Result<()> {
    let (sudo, kernel) = (
        is_root_by_sudo(host, facts),
        facts.kernel().unwrap_or(Kernel::Linux),
    );
    let with_argv = |q: Question| q.argv(kernel).map(|argv| (q, argv));
    let (questions, programs): (Vec<_>, Vec<_>) =
        questions.into_iter().filter_map(with_argv).unzip();
    let answers = ask(LIMIT, place, sudo, &programs, cancelled)?;
    for ((question, argv), answer) in questions.iter().zip(&programs).zip(answers) {
        enter(facts, question, argv, answer);
    }
    Ok(())
}

fn enter(facts: &mut Facts, question: &Question, argv: &[String], answer: Answer) {
    let why = match answer.status {
        // "There is no sudo" is an answer.
        Some(Status::Exit(126 | 127)) if *question != Question::Sudo => Some(Silence::Missing),
        None if answer.was_slow => Some(Silence::TooSlow),
        _ => None,
    };
    facts.unanswered.extend(why.map(|why| Unanswered {
        command: argv.join(" "),
        why,
    }));
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

/// Time limit for the programs of a session. Beyond it a program hangs: it is skipped, and the rest run again.
const LIMIT: Duration = Duration::from_secs(10);
/// Programs that may hang before a host is not asked any more.
const PATIENCE: usize = 3;
/// Bytes of a script: it must be sent as one command.
const LONGEST: usize = 32 * 1024;
/// The head of the script. The programs' standard error is for people, and is read only where it gives a reason.
const HEAD: &str = "LC_ALL=C; export LC_ALL; m=$1; ask() { n=$1; shift; echo \"$m begin $n\"; \"$@\" 2>/dev/null; echo \"$m end $n $?\"; }";

/// The answer of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The first of its standard output.
    pub output: Vec<u8>,
    /// How it ended; `None` if it did not, or was never started.
    pub status: Option<Status>,
    /// Whether it was started and did not end in time.
    pub was_slow: bool,
    /// Before it was started, in seconds since 1970 by this machine's clock.
    pub asked: f64,
    /// After it had ended, the same.
    pub answered: f64,
}

/// Runs programs one after the other; `sudo`: each by `sudo -n`; `limit`: of a session. The answers are in the order of the programs.
pub(super) fn ask(
    limit: Duration,
    place: &ExecutionTarget,
    sudo: bool,
    programs: &[Vec<String>],
    interrupted: Interrupt<'_>,
) -> Result<Vec<Answer>> {
    let lines: Vec<String> = programs
        .iter()
        .enumerate()
        .map(|(n, argv)| format!("ask {n} {}", line(argv, sudo)))
        .collect();
    let mut listener = Listener {
        answers: vec![Answer::default(); lines.len()],
        current: None,
    };
    let (mut next, mut hung) = (0, 0);
    while next < lines.len() && hung < PATIENCE {
        let fit = fitting(&lines[next..]);
        let asked = now();
        listener.answers[next..next + fit]
            .iter_mut()
            .for_each(|answer| answer.asked = asked);
        match session(
            limit,
            place,
            &lines[next..next + fit],
            &mut listener,
            interrupted,
        )? {
            Outcome::Ended(_) => next += fit,
            Outcome::Interrupted => break,
            _ => {
                listener.current = None;
                let open = listener.answers[next..next + fit]
                    .iter()
                    .position(|a| a.status.is_none());
                let Some(at) = open.map(|at| next + at) else {
                    next += fit;
                    continue;
                };
                listener.answers[at].was_slow = true;
                (next, hung) = (at + 1, hung + 1);
            }
        }
    }
    Ok(listener.answers)
}

/// How many of these lines are sent at once: one at least.
fn fitting(lines: &[String]) -> usize {
    let mut length = 0;
    let fits = |line: &&String| {
        length += line.len() + 1;
        length <= LONGEST
    };
    lines.iter().take_while(fits).count().max(1)
}

/// Asks a host and keeps the first `most` bytes of each answer, or its reason where there is none. `sudo`: by `sudo -n`.
///
/// # Errors
/// The host cannot be reached, or the user wants to stop.
pub fn collect(
    place: &ExecutionTarget,
    sudo: bool,
    programs: &[Vec<String>],
    most: usize,
    interrupted: Interrupt<'_>,
) -> Result<Vec<Collected>> {
    let reasons: Vec<Vec<String>> = programs.iter().map(|argv| with_reasons(argv)).collect();
    let answers = ask(LIMIT, place, sudo, &reasons, interrupted)?;
    let collected = |(argv, answer): (&Vec<String>, Answer)| {
        let said = String::from_utf8_lossy(&answer.output).into_owned();
        let output = match answer.status {
            Some(Status::Exit(0)) => Ok(kept(said, most)),
            Some(Status::Exit(126 | 127)) => Err("the program is not there".into()),
            Some(_) if !said.trim().is_empty() => Err(shown(said.trim())),
            Some(status) => Err(format!("it {status}")),
            None if answer.was_slow => Err(format!("it had not ended after {} s", LIMIT.as_secs())),
            None => Err("it was not asked: programs before it did not end".into()),
        };
        Collected {
            command: label(argv),
            output,
        }
    };
    Ok(programs.iter().zip(answers).map(collected).collect())
}

/// The program with its errors in its output.
fn with_reasons(argv: &[String]) -> Vec<String> {
    if let [sh, c, text, rest @ ..] = argv
        && (sh.as_str(), c.as_str()) == ("sh", "-c")
    {
        let head = [sh.clone(), c.clone(), format!("exec 2>&1\n{text}")];
        return head.into_iter().chain(rest.iter().cloned()).collect();
    }
    let head = ["sh", "-c", "exec \"$@\" 2>&1", "sh"].map(String::from);
    head.into_iter().chain(argv.iter().cloned()).collect()
}

fn session(
    limit: Duration,
    place: &ExecutionTarget,
    lines: &[String],
    listener: &mut Listener,
    interrupted: Interrupt<'_>,
) -> Result<Outcome> {
    let mark = fresh_mark().map_err(place.system("make a mark"))?;
    let script = format!("set -- {mark}; {HEAD}\n{}\n:", lines.join("\n"));
    let mut scanner = Scanner::new(&mark);
    let mut each = |heard| {
        if let Heard::Wrote(Stream::Output, bytes) = heard {
            let mut parts = Vec::new();
            scanner.feed(&bytes, &mut parts);
            parts.into_iter().for_each(|part| listener.take(part));
        }
    };
    Ok(place
        .exchange(
            &Order::new(script).within(limit),
            None,
            interrupted,
            &mut each,
        )?
        .outcome)
}

/// Sorts output by program.
struct Listener {
    answers: Vec<Answer>,
    current: Option<usize>,
}

impl Listener {
    fn take(&mut self, part: Part) {
        match part {
            Part::Bytes(bytes) => {
                if let Some(answer) = self.current.and_then(|n| self.answers.get_mut(n)) {
                    let room = MOST_BYTES.saturating_sub(answer.output.len());
                    answer
                        .output
                        .extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }
            Part::Marked(text) => self.marked(&text),
        }
    }

    fn marked(&mut self, text: &str) {
        let mut words = text.split(' ');
        let what = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
        match (what, number()) {
            (Some("begin"), Some(n)) => self.current = Some(n),
            (Some("end"), Some(n)) if self.current == Some(n) => {
                self.current = None;
                if let (Some(answer), Some(status)) = (self.answers.get_mut(n), number()) {
                    answer.status = Some(Status::of_shell(status.min(255) as i32));
                    answer.answered = now();
                }
            }
            _ => {}
        }
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> ExecutionTarget {
        ExecutionTarget::Here {
            name: "here".into(),
            netns: None,
        }
    }

    fn programs(all: &[&[&str]]) -> Vec<Vec<String>> {
        all.iter()
            .map(|argv| argv.iter().map(|w| (*w).to_string()).collect())
            .collect()
    }

    #[test]
    fn each_program_has_its_own_answer() {
        let script = "printf 'linerate-00 end 1 0'; echo complaint >&2; exit 3";
        let asked = programs(&[
            &["echo", "a b"],
            &["sh", "-c", script],
            &["no-such-program"],
            &["true"],
        ]);
        let answers = ask(LIMIT, &here(), false, &asked, None).unwrap();
        let told: Vec<_> = answers
            .iter()
            .map(|a| (String::from_utf8_lossy(&a.output).into_owned(), a.status))
            .collect();
        let expected = [
            ("a b\n", Status::Exit(0)),
            ("linerate-00 end 1 0", Status::Exit(3)),
            ("", Status::Exit(127)),
            ("", Status::Exit(0)),
        ];
        assert_eq!(
            told,
            expected.map(|(text, status)| (text.to_string(), Some(status)))
        );
        assert!(
            answers
                .iter()
                .all(|a| a.asked > 0.0 && a.answered >= a.asked && !a.was_slow)
        );
    }

    #[test]
    fn more_than_fits_into_a_command_is_asked_in_several() {
        let word = "x".repeat(1000);
        let asked: Vec<Vec<String>> = (0..100)
            .map(|n| vec!["echo".into(), format!("{n}{word}")])
            .collect();
        let answers = ask(LIMIT, &here(), false, &asked, None).unwrap();
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(
                String::from_utf8_lossy(&answer.output),
                format!("{n}{word}\n")
            );
        }
    }

    #[test]
    fn who_does_not_end_is_passed_over_and_the_rest_is_asked() {
        let asked = programs(&[&["echo", "1"], &["sleep", "60"], &["echo", "3"]]);
        let answers = ask(Duration::from_secs(5), &here(), false, &asked, None).unwrap();
        assert_eq!(
            (answers[0].output.as_slice(), answers[2].output.as_slice()),
            (&b"1\n"[..], &b"3\n"[..])
        );
        assert!(answers[1].was_slow && answers[1].status.is_none());
    }

    #[test]
    fn a_flood_is_cut() {
        let asked = programs(&[&["head", "-c", "20000000", "/dev/zero"], &["echo", "3"]]);
        let answers = ask(LIMIT, &here(), false, &asked, None).unwrap();
        assert_eq!(
            (answers[0].output.len(), answers[1].output.as_slice()),
            (MOST_BYTES, &b"3\n"[..])
        );
    }
}
