//! Many small programs run on a host in one session: their outputs and statuses, separated by a mark that cannot be guessed.

use crate::{
    ExecutionTarget, Heard, Interrupt, Order, Part, RemoteError, Result, Scanner, Stream, fresh_mark, words,
};
use linerate_hosts::phases::{Outcome, Status};
use linerate_hosts::systems::MOST_BYTES;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit for the programs of a session. Beyond it a program hangs: it is skipped, and the rest run again.
const LIMIT: Duration = Duration::from_secs(10);
/// Programs that may hang before a host is not asked any more.
const PATIENCE: usize = 3;
/// Bytes of a script: it must be sent as one command.
const LONGEST: usize = 32 * 1024;
/// The head of the script. The programs' standard error is for people, and is not read.
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

/// Runs programs one after the other; `sudo`: each by `sudo -n`. The answers are in the order of the programs.
pub fn ask(
    place: &ExecutionTarget,
    sudo: bool,
    programs: &[Vec<String>],
    interrupted: Interrupt<'_>,
) -> Result<Vec<Answer>> {
    ask_within(LIMIT, place, sudo, programs, interrupted)
}

/// The same, within other limits of a session.
pub fn ask_within(
    limit: Duration,
    place: &ExecutionTarget,
    sudo: bool,
    programs: &[Vec<String>],
    interrupted: Interrupt<'_>,
) -> Result<Vec<Answer>> {
    let lines: Vec<String> =
        programs.iter().enumerate().map(|(n, argv)| format!("ask {n} {}", words::line(argv, sudo))).collect();
    let mut listener = Listener { answers: vec![Answer::default(); lines.len()], current: None };
    let (mut next, mut hung) = (0, 0);
    while next < lines.len() && hung < PATIENCE {
        let fit = fitting(&lines[next..]);
        let asked = now();
        listener.answers[next..next + fit].iter_mut().for_each(|answer| answer.asked = asked);
        match session(limit, place, &lines[next..next + fit], &mut listener, interrupted)? {
            Outcome::Ended(_) => next += fit,
            Outcome::Interrupted => break,
            _ => {
                listener.current = None;
                let open = listener.answers[next..next + fit].iter().position(|a| a.status.is_none());
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

fn session(
    limit: Duration,
    place: &ExecutionTarget,
    lines: &[String],
    listener: &mut Listener,
    interrupted: Interrupt<'_>,
) -> Result<Outcome> {
    let mark = fresh_mark().map_err(|e| RemoteError::system(place.name(), "make a mark", &e))?;
    let script = format!("set -- {mark}; {HEAD}\n{}\n:", lines.join("\n"));
    let mut scanner = Scanner::new(&mark);
    let mut each = |heard| {
        if let Heard::Wrote(Stream::Output, bytes) = heard {
            let mut parts = Vec::new();
            scanner.feed(&bytes, &mut parts);
            parts.into_iter().for_each(|part| listener.take(part));
        }
    };
    place.exchange(&Order::new(script).within(limit), None, interrupted, &mut each)
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
                    answer.output.extend_from_slice(&bytes[..bytes.len().min(room)]);
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
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> ExecutionTarget {
        ExecutionTarget::Here { name: "here".into(), netns: None }
    }

    fn programs(all: &[&[&str]]) -> Vec<Vec<String>> {
        all.iter().map(|argv| argv.iter().map(|w| (*w).to_string()).collect()).collect()
    }

    #[test]
    fn each_program_has_its_own_answer() {
        let script = "printf 'linerate-00 end 1 0'; echo complaint >&2; exit 3";
        let asked = programs(&[&["echo", "a b"], &["sh", "-c", script], &["no-such-program"], &["true"]]);
        let answers = ask(&here(), false, &asked, None).unwrap();
        let told: Vec<_> =
            answers.iter().map(|a| (String::from_utf8_lossy(&a.output).into_owned(), a.status)).collect();
        let expected = [
            ("a b\n", Status::Exit(0)),
            ("linerate-00 end 1 0", Status::Exit(3)),
            ("", Status::Exit(127)),
            ("", Status::Exit(0)),
        ];
        assert_eq!(told, expected.map(|(text, status)| (text.to_string(), Some(status))));
        assert!(answers.iter().all(|a| a.asked > 0.0 && a.answered >= a.asked && !a.was_slow));
    }

    #[test]
    fn more_than_fits_into_a_command_is_asked_in_several() {
        let word = "x".repeat(1000);
        let asked: Vec<Vec<String>> = (0..100).map(|n| vec!["echo".into(), format!("{n}{word}")]).collect();
        let answers = ask(&here(), false, &asked, None).unwrap();
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(String::from_utf8_lossy(&answer.output), format!("{n}{word}\n"));
        }
    }

    #[test]
    fn who_does_not_end_is_passed_over_and_the_rest_is_asked() {
        let asked = programs(&[&["echo", "1"], &["sleep", "60"], &["echo", "3"]]);
        let answers = ask_within(Duration::from_secs(1), &here(), false, &asked, None).unwrap();
        assert_eq!((answers[0].output.as_slice(), answers[2].output.as_slice()), (&b"1\n"[..], &b"3\n"[..]));
        assert!(answers[1].was_slow && answers[1].status.is_none());
    }

    #[test]
    fn a_flood_is_cut() {
        let asked = programs(&[&["head", "-c", "20000000", "/dev/zero"], &["echo", "3"]]);
        let answers = ask(&here(), false, &asked, None).unwrap();
        assert_eq!((answers[0].output.len(), answers[1].output.as_slice()), (MOST_BYTES, &b"3\n"[..]));
    }
}
